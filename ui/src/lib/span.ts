// Which cards of a long list are drawn: those around the one that has the keys.
//
// They stay the same for as long as that one is among them, else a card would move under a finger that
// reaches for it.

export const DRAWN = 30;

export class Span {
  /** The first that was drawn last time, and where it was. */
  #first: string | null = null;
  #from = 0;

  around(ids: readonly string[], current: string | null): { from: number; to: number } {
    const was = this.#first === null ? -1 : ids.indexOf(this.#first);
    let from = was >= 0 ? was : this.#from;
    const at = current === null ? -1 : ids.indexOf(current);
    if (at >= 0 && (at < from || at >= from + DRAWN)) from = at - Math.floor(DRAWN / 3);
    from = Math.max(0, Math.min(from, ids.length - DRAWN));
    this.#from = from;
    this.#first = ids[from] ?? null;
    return { from, to: Math.min(ids.length, from + DRAWN) };
  }
}
