// The way to the host. This is the only file that knows Tauri exists.
//
// It forwards and decides nothing: every gate is in the host. Listeners are registered before the
// subscription is made, else the first event, the snapshot, could pass unheard.
import { invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { HostEvent } from "./bindings/HostEvent";
import type { Request } from "./bindings/Request";

export interface Backend {
  /** Resolves with the reply named beside the request's variant; rejects with a `ControlError`. */
  call<T>(request: Request): Promise<T>;
  /** Events until `onDown`, after which nothing more comes: subscribe again. */
  subscribe(onEvent: (event: HostEvent) => void, onDown: (why: string) => void): Promise<() => void>;
  /** The page the window was opened for: one of the pages, or `box/<id>`. */
  initialPage(): Promise<string>;
}

export function tauriBackend(): Backend {
  return {
    call: <T>(request: Request) => invoke<T>("call", { request }),
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
