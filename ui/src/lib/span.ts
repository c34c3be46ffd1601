// Which cards of a long list are drawn: those around the one that has the keys.
//
// They stay the same for as long as that one is among them, else a card would move under a finger that
// reaches for it. When it has left them, as few others are drawn as are good to see: each costs time.

export const DRAWN = 30;
/** How many are drawn anew on the way to the next one. */
const NEW = 10;

export class Span {
  /** The first that was drawn last time, and where it was. */
  #first: string | null = null;
  #from = 0;

  /** Where the drawn ones begin. */
  around(ids: readonly string[], current: string | null): number {
    const was = this.#first === null ? -1 : ids.indexOf(this.#first);
    let from = was >= 0 ? was : this.#from;
    const at = current === null ? -1 : ids.indexOf(current);
    if (at >= from + DRAWN) from = at - DRAWN + NEW;
    else if (at >= 0 && at < from) from = at - NEW + 1;
    from = Math.max(0, Math.min(from, ids.length - DRAWN));
    this.#from = from;
    this.#first = ids[from] ?? null;
    return from;
  }
}
