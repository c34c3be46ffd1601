// A box's screen as a channel: what noVNC takes for a WebSocket, over a stream of bytes.
//
// The server speaks first in RFB, so its first bytes are what opens the channel; until then nobody has
// anything to send.
import type { RawChannel } from "@novnc/novnc";
import type { Backend, StreamCall } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import { asControlError } from "./words";

// The numbers of `WebSocket`, which noVNC compares with.
export const CONNECTING = 0;
export const OPEN = 1;
export const CLOSING = 2;
export const CLOSED = 3;

const NORMAL = 1000;
const BROKEN = 1006;

export class ScreenChannel implements RawChannel {
  binaryType = "arraybuffer";
  readonly protocol = "";
  readyState = CONNECTING;
  onopen: RawChannel["onopen"] = null;
  onmessage: RawChannel["onmessage"] = null;
  onclose: RawChannel["onclose"] = null;
  onerror: RawChannel["onerror"] = null;
  /** Why it closed, when that was not meant. */
  why: ControlError | null = null;
  readonly #call: StreamCall;

  constructor(backend: Backend, id: BoxId) {
    this.#call = backend.stream({ kind: "screen", id }, (bytes) => this.#take(bytes));
    this.#call.done.then(
      () => this.#closed(NORMAL, ""),
      (thrown) => this.#broken(thrown),
    );
  }

  send(data: Uint8Array | ArrayBuffer): void {
    if (this.readyState === CONNECTING) throw new DOMException("The screen has not answered yet.", "InvalidStateError");
    // A copy: noVNC writes its next words over these.
    if (this.readyState === OPEN) this.#call.write(new Uint8Array(data).slice());
  }

  close(): void {
    if (this.readyState >= CLOSING) return;
    this.readyState = CLOSING;
    this.#call.end();
    // The host's word for it may take a while, and changes nothing.
    queueMicrotask(() => this.#closed(NORMAL, ""));
  }

  #take(bytes: Uint8Array): void {
    if (this.readyState === CONNECTING) {
      this.readyState = OPEN;
      this.onopen?.({ type: "open" });
    }
    if (this.readyState !== OPEN || bytes.length === 0) return;
    try {
      this.onmessage?.({ data: bytes.slice().buffer as ArrayBuffer });
    } catch (thrown) {
      // The server of a box may say anything; what cannot be read ends it.
      this.#call.end();
      this.#broken(thrown);
    }
  }

  #broken(thrown: unknown): void {
    if (this.readyState >= CLOSING) return;
    this.why = asControlError(thrown);
    this.onerror?.({ type: "error" });
    this.#closed(BROKEN, this.why.message);
  }

  #closed(code: number, reason: string): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.onclose?.({ code, reason });
  }
}
