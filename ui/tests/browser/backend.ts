// The seam over a WebSocket: words as JSON, bytes of streams as binary with the stream's number before
// them. Only for tests: nothing of it is built into the window.
import type { Backend, LongCall, StreamCall } from "../../src/lib/backend";
import type { BoxFolder } from "../../src/lib/bindings/BoxFolder";
import type { HostEvent } from "../../src/lib/bindings/HostEvent";
import type { Request } from "../../src/lib/bindings/Request";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  event?(event: HostEvent): void;
  bytes?(bytes: Uint8Array): void | Promise<void>;
}

export async function socketBackend(address: string): Promise<Backend> {
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const waiting = new Map<number, Waiting>();
  let number = 0;
  let heard: ((event: HostEvent) => void) | null = null;
  let lost: ((why: string) => void) | null = null;
  const send = (message: object) => socket.send(JSON.stringify(message));

  function ask<T>(message: object, more: Partial<Waiting> = {}): { n: number; done: Promise<T> } {
    const n = ++number;
    const done = new Promise<T>((resolve, reject) => {
      waiting.set(n, { resolve: resolve as (value: unknown) => void, reject, ...more });
    });
    send({ n, ...message });
    return { n, done };
  }

  function said(text: string): void {
    const word = JSON.parse(text);
    if ("host" in word) heard?.(word.host);
    else if ("down" in word) lost?.(word.down);
    else if ("event" in word) waiting.get(word.n)?.event?.(word.event);
    else {
      const one = waiting.get(word.n);
      waiting.delete(word.n);
      if ("error" in word) one?.reject(word.error);
      else one?.resolve(word.ok);
    }
  }

  async function took(buffer: ArrayBuffer): Promise<void> {
    const n = new DataView(buffer).getUint32(0);
    const bytes = new Uint8Array(buffer, 4);
    await waiting.get(n)?.bytes?.(bytes);
    send({ n, op: "taken", bytes: bytes.byteLength });
  }

  socket.onmessage = ({ data }) => (typeof data === "string" ? said(data) : void took(data));
  socket.onclose = () => lost?.("the test ended");
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });

  return {
    call: <T>(request: Request) => ask<T>({ op: "call", request }).done,
    begin<T>(request: Request, event: (event: HostEvent) => void): LongCall<T> {
      const { n, done } = ask<T>({ op: "begin", request }, { event });
      return { done, end: () => send({ n, op: "hangUp" }) };
    },
    stream(what, bytes): StreamCall {
      const { n, done } = ask<number>({ op: "stream", what }, { bytes });
      return {
        done,
        write: (written) => send({ n, op: "write", bytes: Array.from(written) }),
        resize: (cols, rows) => send({ n, op: "resize", cols, rows }),
        end: () => send({ n, op: "hangUp" }),
      };
    },
    screenPassword: (id) => ask<string>({ op: "screenPassword", id }).done,
    files: (id, path) => ask<BoxFolder>({ op: "files", id, path }).done,
    // What needs a window of the desktop is the desktop's to test.
    copyIn: () => Promise.resolve(0),
    copyDropped: (_id, _to, _names) => Promise.resolve(0),
    copyOut: () => Promise.resolve(null),
    save: () => Promise.resolve(null),
    onDrop: () => () => {},
    chooseFolder: () => Promise.resolve(null),
    openPlace: () => Promise.resolve(),
    shows: () => {},
    initialPage: () => Promise.resolve(location.hash.slice(1) || "inbox"),
    async subscribe(onEvent, onDown) {
      heard = onEvent;
      lost = onDown;
      send({ n: 0, op: "subscribe" });
      return () => {
        heard = null;
        lost = null;
      };
    },
  };
}
