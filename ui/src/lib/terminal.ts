// A session of a box on the page: xterm over a stream of bytes.
//
// What comes is a box's word: it draws, and nothing else. It may not name the window, reach the clipboard
// or make a link that a click follows. This file brings xterm with it, so pages import it when they need it.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import type { Backend } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import { font, theme } from "./terminal-look";
import { asControlError } from "./words";

const SCROLLBACK = 5000;
/** AA, also where a box would have its text unseen. */
const CONTRAST = 4.5;
/** A window being dragged larger has many sizes on the way. */
const RESIZE_MS = 60;
/** Icon and title, links, and the clipboard. */
const NOT_FOR_A_BOX = [0, 1, 2, 8, 52];

/** How a session left the page: with its program's code, or for a reason. */
export type Ended = { code: number } | { problem: ControlError };

export interface Shown {
  focus(): void;
  /** Ends the stream and takes everything off the page; `onEnded` is not called. */
  close(): void;
}

interface Wanted {
  id: BoxId;
  session: string;
  /** For screen readers. */
  label: string;
  onEnded: (how: Ended) => void;
  /** The first bytes are drawn. */
  onLive: () => void;
  onCopied: (worked: boolean) => void;
}

export function showTerminal(place: HTMLElement, backend: Backend, wanted: Wanted): Shown {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const term = new Terminal({
    scrollback: SCROLLBACK,
    screenReaderMode: true,
    minimumContrastRatio: CONTRAST,
    cursorBlink: false,
    fontFamily: font(),
    fontSize: Math.max(11, Math.round(Number.parseFloat(getComputedStyle(place).fontSize) * 0.95) || 13),
    theme: theme(dark.matches),
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  for (const code of NOT_FOR_A_BOX) term.parser.registerOscHandler(code, () => true);
  term.open(place);
  term.textarea?.setAttribute("aria-label", wanted.label);
  fit.fit();

  let open = true;
  let live = false;
  const { id, session } = wanted;
  const call = backend.stream({ kind: "terminal", id, session, cols: term.cols, rows: term.rows }, (bytes) => {
    if (!open) return;
    return new Promise((drawn) =>
      term.write(bytes, () => {
        drawn();
        if (!live && open) wanted.onLive();
        live = true;
      }),
    );
  });
  const ended = (how: Ended) => {
    if (!open) return;
    term.options.disableStdin = true;
    wanted.onEnded(how);
  };
  call.done.then(
    (code) => ended({ code }),
    (thrown) => ended({ problem: asControlError(thrown) }),
  );

  term.onData((text) => call.write(new TextEncoder().encode(text)));
  // A byte each: mouse reports of old programs are no text.
  term.onBinary((text) => call.write(Uint8Array.from(text, (c) => c.charCodeAt(0) & 0xff)));
  term.onResize(({ cols, rows }) => call.resize(cols, rows));
  term.attachCustomKeyEventHandler((event) => {
    if (!isCopy(event) || !term.hasSelection()) return true;
    if (event.type === "keydown") void copy(term.getSelection()).then(wanted.onCopied);
    event.preventDefault();
    return false;
  });

  const paste = (event: ClipboardEvent) => {
    event.preventDefault();
    event.stopPropagation();
    const text = harmless(event.clipboardData?.getData("text/plain") ?? "");
    if (text !== "") term.paste(text);
  };
  // Before xterm's own, which would take the text as it is.
  place.addEventListener("paste", paste, { capture: true });

  const recolour = () => (term.options.theme = theme(dark.matches));
  dark.addEventListener("change", recolour);

  let timer: ReturnType<typeof setTimeout> | undefined;
  const sizes = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => fit.fit(), RESIZE_MS);
  });
  sizes.observe(place);

  return {
    focus: () => term.focus(),
    close() {
      open = false;
      clearTimeout(timer);
      sizes.disconnect();
      dark.removeEventListener("change", recolour);
      place.removeEventListener("paste", paste, { capture: true });
      call.end();
      term.dispose();
    },
  };
}

/** Ctrl+Shift+C: Ctrl+C alone is the box's. */
function isCopy(event: KeyboardEvent): boolean {
  return event.ctrlKey && event.shiftKey && !event.altKey && event.key.toLowerCase() === "c";
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Pasted text without control characters but tabs and line ends: with an escape in it, it could end the
 * paste early and have the rest taken as typed.
 */
export function harmless(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "");
}
