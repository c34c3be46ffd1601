// What boxes used in the last minutes, for the small lines beside the numbers. Bounded in time, so that a
// window that is open for days keeps as much as one that was just opened.
import type { BoxId } from "./bindings/BoxId";
import type { BoxUsage } from "./bindings/BoxUsage";

export interface Point {
  at: number;
  cpuPercent: number | null;
  memoryBytes: number | null;
}

export type History = Record<BoxId, readonly Point[]>;

export const HISTORY_MS = 5 * 60_000;
/** However often somebody measures. */
const MOST = 200;

/** The history with what was just measured, without what is too old. */
export function remembered(history: History, boxes: readonly BoxUsage[], at: number): History {
  const next: History = {};
  for (const [id, points] of Object.entries(history)) {
    if ((points.at(-1)?.at ?? 0) > at - HISTORY_MS) next[id] = points;
  }
  for (const { id, cpuPercent, memoryBytes } of boxes) {
    const kept = (next[id] ?? []).filter((point) => point.at > at - HISTORY_MS && point.at <= at);
    next[id] = [...kept.slice(1 - MOST), { at, cpuPercent, memoryBytes }];
  }
  return next;
}

/** A line through the values, for `points` of a drawing 100 wide and 24 high, the newest at the right. */
export function path(points: readonly { at: number; value: number }[], most: number): string {
  const end = points.at(-1)?.at ?? 0;
  return points
    .map(({ at, value }) => {
      const x = 100 - ((end - at) / HISTORY_MS) * 100;
      const y = 23 - Math.min(1, value / Math.max(most, Number.EPSILON)) * 22;
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
}
