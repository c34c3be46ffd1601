// A box's screen on the page: noVNC over the channel. It looks until it is told to control.
//
// The server is the box's: it gets the password it set itself and no other answer, and its clipboard goes
// to whoever opened the screen, never further. Its picture comes as pixels alone: nothing of it reaches the
// decoders of images and films that the webview has. This file brings noVNC with it, so pages import it
// when they need it.
import RFB from "@novnc/novnc";
import type { Backend } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import { ScreenChannel } from "./rfb";
import { visible } from "./visible";

/** 8K: a larger one would only be said to make the window run out of memory. */
const MOST_PIXELS = 7680 * 4320;

/** How a picture may come, by number: all of it is read in JavaScript. Tight, TightPNG, JPEG and H.264 are not here. */
const RAW = 0;
const COPY_RECT = 1;
const RRE = 2;
const HEXTILE = 5;
const ZLIB = 6;
const ZRLE = 16;
const DECODED = [RAW, COPY_RECT, RRE, HEXTILE, ZLIB, ZRLE];
/** What else the server may say. The extended clipboard is not here: it is compressed, and grows as it is read. */
const MORE = [
  -254, // compression, level 2
  -223, // the size of the desktop
  -224, // the last rectangle
  -258, // QEMU: keys by their place
  -261, // QEMU: lights of the keyboard
  -308, // the size of the desktop, extended
  -309, // xvp
  -312, // fence
  -313, // continuous updates
  -307, // the name of the desktop
  -316, // more buttons of the mouse
];
/** The cursor's picture: VMware's way, and as pixels. */
const CURSORS = [0x574d5664, -239];

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
  unreadable: (() => void) | null = null;

  constructor(...given: ConstructorParameters<typeof RFB>) {
    super(...given);
    for (const number of Object.keys(this._decoders).map(Number)) {
      if (!DECODED.includes(number)) delete this._decoders[number];
    }
  }

  protected override _resize(width: number, height: number): void {
    if (width * height > MOST_PIXELS) this.tooLarge?.();
    else super._resize(width, height);
  }

  protected override _sendEncodings(): void {
    const full = this._fbDepth === 24;
    const pictures = full ? [COPY_RECT, ZRLE, HEXTILE, RRE, ZLIB, RAW] : [COPY_RECT, RAW];
    RFB.messages.clientEncodings(this._sock, [...pictures, ...MORE, ...(full ? CURSORS : [])]);
  }

  protected override _handleDataRect(): boolean {
    if (this._FBU.encoding !== null && Object.hasOwn(this._decoders, this._FBU.encoding)) return super._handleDataRect();
    this.unreadable?.();
    return false;
  }

  /** Nobody asked for the extended clipboard: a negative length, and bytes that are passed over. */
  protected override _handleServerCutText(): boolean {
    if (this._sock.rQwait("clipboard", 7, 1)) return false;
    const length = new DataView(this._sock.rQpeekBytes(7).buffer).getInt32(3);
    if (length >= 0) return super._handleServerCutText();
    if (this._sock.rQwait("clipboard", 7 - length, 1)) return false;
    this._sock.rQskipBytes(7 - length);
    return true;
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
  rfb.unreadable = () => refuse("The box sends its screen in a way AgentBox does not read.");
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
