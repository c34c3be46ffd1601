// The steps of making a box, as a list that is ticked off.
//
// The host tells each step as it begins, moves and ends. Those that every box has are listed from the
// start; others, such as building the image, take their place when they come.
import type { Progress } from "./bindings/Progress";

export interface Step {
  name: string;
  state: "waiting" | "running" | "done" | "failed" | "off";
  detail: string | null;
  /** 0 to 1 where it is known. */
  fraction: number | null;
  /** When it began, by this clock; none while it waits. */
  since: number | null;
  /** How long it took, once it ended. */
  tookMs: number | null;
}

/** What the host does for every box, in order. */
export const PLAN = ["Look at the project", "Make the box", "Copy the project"];

export function waiting(name: string): Step {
  return { name, state: "waiting", detail: null, fraction: null, since: null, tookMs: null };
}

/** The steps after the host told of one. */
export function told(steps: readonly Step[], progress: Progress, now: number): Step[] {
  const before = steps.find((step) => step.name === progress.step);
  const since = before?.since ?? now - progress.elapsedMs;
  const ended = progress.state !== "running";
  const step: Step = {
    name: progress.step,
    state: progress.state,
    // What it was at last says more about a failure than nothing.
    detail: progress.detail ?? (progress.state === "done" ? null : (before?.detail ?? null)),
    fraction: progress.fraction ?? (ended ? null : (before?.fraction ?? null)),
    since,
    tookMs: ended ? progress.elapsedMs : null,
  };
  if (before) return steps.map((other) => (other === before ? step : other));
  const at = steps.findIndex((other) => other.state === "waiting");
  return at < 0 ? [...steps, step] : [...steps.slice(0, at), step, ...steps.slice(at)];
}

/** `0.4 s`, `12 s`, `3 min 05 s`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const rest = String(Math.floor(seconds % 60)).padStart(2, "0");
  return `${Math.floor(seconds / 60)} min ${rest} s`;
}
