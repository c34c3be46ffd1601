// The way to the host. This is the only file that knows Tauri exists.
//
// It forwards and decides nothing: every gate is in the host. Listeners are registered before the
// subscription is made, else the first event, the snapshot, could pass unheard.
import { Channel, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { BoxFolder } from "./bindings/BoxFolder";
import type { BoxId } from "./bindings/BoxId";
import type { HostEvent } from "./bindings/HostEvent";
import type { Request } from "./bindings/Request";
import type { Stream } from "./bindings/Stream";

export interface Backend {
  /** Resolves with the reply named beside the request's variant; rejects with a `ControlError`. */
  call<T>(request: Request): Promise<T>;
  /** Events until `onDown`, after which nothing more comes: subscribe again. */
  subscribe(onEvent: (event: HostEvent) => void, onDown: (why: string) => void): Promise<() => void>;
  /**
   * Starts what takes a while; what happens on the way comes to `onEvent` alone. Ending it takes
   * back what it has made so far, and then `done` rejects.
   */
  begin<T>(request: Request, onEvent: (event: HostEvent) => void): LongCall<T>;
  /**
   * Bytes of a box, as they come. What was given is counted as drawn when `onBytes` has returned, or when
   * the promise it returned is done: more comes only then.
   */
  stream(what: Flowing, onBytes: (bytes: Uint8Array) => void | Promise<void>): StreamCall;
  /** What the screen's server wants to hear. */
  screenPassword(id: BoxId): Promise<string>;
  /** What is in a folder of a box. */
  files(id: BoxId, path: string): Promise<BoxFolder>;
  /** Copies files that the person chooses in their own window into a folder of a box; how many. */
  copyIn(id: BoxId, to: string): Promise<number>;
  /**
   * Copies the files that were last dropped on the window into a folder of a box; how many. `names` are
   * those that were shown: the host refuses when others were dropped meanwhile.
   */
  copyDropped(id: BoxId, to: string, names: string[]): Promise<number>;
  /** Copies a file or folder of a box into a folder the person chooses; where to, none when they leave. */
  copyOut(id: BoxId, from: string): Promise<string | null>;
  /** Writes a text to a file that the person names; where it is, none when they leave it. */
  save(name: string, text: string): Promise<string | null>;
  /** Names of files that people drag over the window (none: they left) and drop on it. */
  onDrop(over: (names: string[] | null) => void, dropped: (names: string[]) => void): () => void;
  /** The person's own window for choosing a folder; none when they leave it. */
  chooseFolder(start: string | null): Promise<string | null>;
  /** Opens a box's web app or screen in the person's browser. */
  openPlace(id: BoxId, place: Place): Promise<void>;
  /** Which box's page is shown, none when another is: what is seen there is not told as a notification. */
  shows(id: BoxId | null): void;
  /** The page the window was opened for: one of the pages, or `box/<id>`. */
  initialPage(): Promise<string>;
}

export type Place = "web" | "screen";

/** One of a box's streams, or what it sends out: lines of `Traffic` as JSON. */
export type Flowing = Stream | Extract<Request, { method: "followTraffic" }>;

export interface LongCall<T> {
  done: Promise<T>;
  end(): void;
}

export interface StreamCall {
  /** How its program ended. Rejects with a `ControlError`, also when it was ended here. */
  done: Promise<number>;
  write(bytes: Uint8Array): void;
  resize(cols: number, rows: number): void;
  end(): void;
}

let calls = 0;

export function tauriBackend(): Backend {
  return {
    call: <T>(request: Request) => invoke<T>("call", { request }),
    begin<T>(request: Request, onEvent: (event: HostEvent) => void): LongCall<T> {
      const number = ++calls;
      const channel = new Channel<HostEvent>(onEvent);
      return {
        done: invoke<T>("begin", { number, request, onEvent: channel }),
        end: () => void invoke("hang_up", { number }),
      };
    },
    stream(what, onBytes) {
      const number = ++calls;
      const channel = new Channel<ArrayBuffer>(async (buffer) => {
        try {
          await onBytes(new Uint8Array(buffer));
        } finally {
          void invoke("stream_taken", { number, bytes: buffer.byteLength });
        }
      });
      // Keys keep their order: each waits for the one before it.
      let last: Promise<unknown> = Promise.resolve();
      return {
        done: invoke<number>("stream", { number, what, onBytes: channel }),
        write(bytes) {
          const send = () => invoke("stream_write", { number, bytes: Array.from(bytes) });
          last = last.then(send, send);
        },
        resize: (cols, rows) => void invoke("stream_resize", { number, cols, rows }),
        end: () => void invoke("hang_up", { number }),
      };
    },
    screenPassword: (id) => invoke<string>("screen_password", { id }),
    files: (id, path) => invoke<BoxFolder>("files", { id, path }),
    copyIn: (id, to) => invoke<number>("copy_in", { id, to }),
    copyDropped: (id, to, names) => invoke<number>("copy_dropped", { id, to, names }),
    copyOut: (id, from) => invoke<string | null>("copy_out", { id, from }),
    save: (name, text) => invoke<string | null>("save", { name, text }),
    onDrop(over, dropped) {
      const stops = [
        listen<string[] | null>("files-over", (event) => over(event.payload)),
        listen<string[]>("files-dropped", (event) => dropped(event.payload)),
      ];
      return () => stops.forEach((stop) => void stop.then((leave) => leave()));
    },
    chooseFolder: (start) => invoke<string | null>("choose_folder", { start }),
    openPlace: (id, place) => invoke<void>("open_place", { id, place }),
    shows: (id) => void invoke("shows", { id }),
    initialPage: () => invoke<string>("initial_page"),
    async subscribe(onEvent, onDown) {
      const stops = await Promise.all([
        listen<HostEvent>("host-event", (event) => onEvent(event.payload)),
        listen<{ why: string }>("host-down", (event) => onDown(event.payload.why)),
      ]);
      const leave = () => stops.forEach((stop) => stop());
      try {
        await invoke("subscribe");
      } catch (error) {
        leave();
        throw error;
      }
      return leave;
    },
  };
}
