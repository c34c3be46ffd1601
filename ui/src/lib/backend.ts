// The way to the host. This is the only file that knows Tauri exists.
//
// It forwards and decides nothing: every gate is in the host. Listeners are registered before the
// subscription is made, else the first event, the snapshot, could pass unheard.
import { Channel, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { BoxId } from "./bindings/BoxId";
import type { HostEvent } from "./bindings/HostEvent";
import type { Request } from "./bindings/Request";

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
  /** The person's own window for choosing a folder; none when they leave it. */
  chooseFolder(start: string | null): Promise<string | null>;
  /** Opens a box's web app or screen in the person's browser. */
  openPlace(id: BoxId, place: Place): Promise<void>;
  /** The page the window was opened for: one of the pages, or `box/<id>`. */
  initialPage(): Promise<string>;
}

export type Place = "web" | "screen";

export interface LongCall<T> {
  done: Promise<T>;
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
    chooseFolder: (start) => invoke<string | null>("choose_folder", { start }),
    openPlace: (id, place) => invoke<void>("open_place", { id, place }),
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
