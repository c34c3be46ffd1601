// Times as people say them. The exact time belongs in the `title` of what shows the relative one.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `12 s`, `3 min`, `5 h`, `2 days`. A time ahead of the clock counts as now. */
export function since(at: number, now: number): string {
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  const days = Math.floor(seconds / DAY);
  return days === 1 ? "1 day" : `${days} days`;
}

/** `12 s ago`, `3 min ago`, … */
export function ago(at: number, now: number): string {
  return `${since(at, now)} ago`;
}

export function exactTime(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "medium" });
}
