// The time in the pictures: it stands still. To be imported before anything that asks for it.

export const NOW = Date.UTC(2031, 2, 5, 10);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

let shown = NOW;
const Real = Date;

class StillDate extends Real {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(shown);
    else super(...(given as [number]));
  }

  static override now(): number {
    return shown;
  }
}

globalThis.Date = StillDate as DateConstructor;

/** Does something at another time. */
export function then(at: number, act: () => void): void {
  shown = at;
  act();
  shown = NOW;
}
