// The keyboard: which key means what. Modifiers leave a key to the system; a held key repeats only
// where that does no harm, so nothing is answered twice by leaning on it.

export type Action = "down" | "up" | "allow" | "deny" | "escape" | "inbox" | "boxes";

const PREFIX_MS = 1000;
const PLAIN: Record<string, Action> = { j: "down", k: "up", a: "allow", d: "deny", Escape: "escape" };
const AFTER_G: Record<string, Action> = { i: "inbox", b: "boxes" };

export class Keys {
  #prefixAt = Number.NEGATIVE_INFINITY;

  /** What this key press asks for, if anything. */
  read(event: KeyboardEvent): Action | null {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return null;
    const afterG = event.timeStamp - this.#prefixAt <= PREFIX_MS;
    this.#prefixAt = event.key === "g" && !event.repeat ? event.timeStamp : Number.NEGATIVE_INFINITY;
    const action = afterG ? AFTER_G[event.key] : PLAIN[event.key];
    const moves = action === "down" || action === "up";
    return action && (moves || !event.repeat) ? action : null;
  }
}
