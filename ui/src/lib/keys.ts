// The keyboard: which key means what. Modifiers leave a key to the system, and a field that takes text
// keeps every key; a held key repeats only where that does no harm, so nothing is answered twice by
// leaning on it.
import type { Page } from "./state.svelte";

/** The number of a tab. */
export type Digit = "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8";
export type Action = "down" | "up" | "allow" | "deny" | "without" | "escape" | "search" | "open" | Digit | Page;

const PREFIX_MS = 1000;
const DIGITS: readonly Digit[] = ["1", "2", "3", "4", "5", "6", "7", "8"];
const PLAIN: Record<string, Action> = {
  j: "down",
  k: "up",
  a: "allow",
  d: "deny",
  w: "without",
  "/": "search",
  Escape: "escape",
  Enter: "open",
  ...Object.fromEntries(DIGITS.map((digit) => [digit, digit])),
};
export const AFTER_G: Record<string, Page> = {
  i: "inbox",
  b: "boxes",
  n: "new",
  a: "activity",
  c: "credentials",
  s: "integrations",
  r: "rules",
  e: "settings",
  u: "check-up",
};

export class Keys {
  #prefixAt = Number.NEGATIVE_INFINITY;
  #prefixed = false;

  /** What this key press asks for, if anything. */
  read(event: KeyboardEvent): Action | null {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || takesText(event.target)) return null;
    // Everything else that has the focus has its own use for Enter.
    if (event.key === "Enter" && !isCard(event.target)) return null;
    const prefixed = this.#prefixed;
    const afterG = prefixed && event.timeStamp - this.#prefixAt <= PREFIX_MS;
    this.#prefixed = event.key === "g" && !event.repeat;
    this.#prefixAt = event.timeStamp;
    const action = afterG ? AFTER_G[event.key] : PLAIN[event.key];
    // Whoever types `g a` slowly wants to see the activity: that must not allow anything.
    if (prefixed && (action === "allow" || action === "without")) return null;
    const moves = action === "down" || action === "up";
    return action && (moves || !event.repeat) ? action : null;
  }
}

function takesText(target: EventTarget | null): boolean {
  const field = "input:not([type=radio]):not([type=checkbox]), textarea, select";
  return target instanceof Element && target.matches(field);
}

function isCard(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches("article[data-card]");
}
