// A box's screen on the page: noVNC over the channel. It looks until it is told to control.
//
// The server is the box's: it gets the password it set itself and no other answer, and its clipboard goes
// to whoever opened the screen, never further. This file brings noVNC with it, so pages import it when
// they need it.
import RFB from "@novnc/novnc";
import type { Backend } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import { ScreenChannel } from "./rfb";
import { visible } from "./visible";

/** 8K: a larger one would only be said to make the window run out of memory. */
const MOST_PIXELS = 7680 * 4320;

/** Keys that would stay down in the box when the person's hands leave it: keysym and place. */
const HELD: [number, string][] = [
  [0xffe1, "ShiftLeft"],
  [0xffe2, "ShiftRight"],
  [0xffe3, "ControlLeft"],
  [0xffe4, "ControlRight"],
  [0xffe9, "AltLeft"],
  [0xffea, "AltRight"],
  [0xfe03, "AltRight"],
  [0xffeb, "MetaLeft"],
  [0xffec, "MetaRight"],
];

export interface ScreenView {
  control(on: boolean): void;
  /** Lets go of keys that are held. */
  letGo(): void;
  /** Gives the box's clipboard a text. */
  paste(text: string): void;
  /** Takes it off the page; `onLost` is not called. */
  close(): void;
}

interface Wanted {
  id: BoxId;
  password: string;
  onLive: () => void;
  onLost: (why: ControlError) => void;
  /** The box has put a text into its clipboard. */
  onClipboard: (text: string) => void;
}

class Bounded extends RFB {
  tooLarge: (() => void) | null = null;

  protected override _resize(width: number, height: number): void {
    if (width * height > MOST_PIXELS) this.tooLarge?.();
    else super._resize(width, height);
  }
}

export function showScreen(place: HTMLElement, backend: Backend, wanted: Wanted): ScreenView {
  const channel = new ScreenChannel(backend, wanted.id);
  const rfb = new Bounded(place, channel, { shared: true, credentials: { password: wanted.password } });
  let open = true;
  let why: ControlError | null = null;
  const refuse = (message: string, ...hints: string[]) => {
    why ??= { code: "failed", message, hints };
    rfb.disconnect();
  };

  rfb.viewOnly = true;
  rfb.focusOnClick = false;
  rfb.scaleViewport = true;
  rfb.resizeSession = false;
  rfb.background = "transparent";
  rfb.tooLarge = () => refuse("The box says its screen is larger than any.");
  rfb.addEventListener("connect", () => open && wanted.onLive());
  rfb.addEventListener("clipboard", (event) => open && wanted.onClipboard(event.detail.text));
  rfb.addEventListener("credentialsrequired", () => refuse("The screen asks for more than its password."));
  rfb.addEventListener("serververification", () => refuse("The screen asks to be trusted in a way AgentBox does not know."));
  rfb.addEventListener("securityfailure", (event) => {
    const reason = event.detail.reason;
    why = { code: "failed", message: "The screen did not accept its password.", hints: reason ? [visible(reason)] : [] };
  });
  rfb.addEventListener("disconnect", () => {
    if (!open) return;
    open = false;
    wanted.onLost(why ?? channel.why ?? { code: "failed", message: "The screen ended the connection.", hints: [] });
  });

  const letGo = () => HELD.forEach(([keysym, code]) => rfb.sendKey(keysym, code, false));
  return {
    control(on) {
      // In this order: who only looks sends nothing, not even that a key went up.
      if (!on) letGo();
      rfb.viewOnly = !on;
      rfb.focusOnClick = on;
      if (on) rfb.focus();
      else rfb.blur();
    },
    letGo,
    paste: (text) => rfb.clipboardPasteFrom(text),
    close() {
      if (!open) return;
      open = false;
      rfb.disconnect();
    },
  };
}
