// A rule in the making: whom it covers, what, and until when, as one sentence.
//
// The sentence is made as the host makes it (`Remember::sentence` in the protocol crate); the host
// stores its own. A rule with no end is one of a hundred years.
import type { Breadth } from "./bindings/Breadth";
import type { Grant } from "./bindings/Grant";
import type { Question } from "./bindings/Question";
import type { Reach } from "./bindings/Reach";
import type { Verdict } from "./bindings/Verdict";

const HOUR = 3600;
const DAY = 24 * HOUR;
export const ALWAYS = 100 * 365 * DAY;

export type Until = "hour" | "today" | "month" | "always";

export interface Wish {
  reach: Reach;
  breadth: Breadth;
  until: Until;
}

/** What is least: this box, exactly this, an hour. Some rules can only be for a project. */
export function narrowest(question?: Question): Wish {
  return { reach: question?.remember?.only ?? "box", breadth: "exact", until: "hour" };
}

export function seconds(until: Until, now: number): number {
  switch (until) {
    case "hour":
      return HOUR;
    case "today": {
      const midnight = new Date(now);
      midnight.setHours(24, 0, 0, 0);
      return Math.max(1, Math.ceil((midnight.getTime() - now) / 1000));
    }
    case "month":
      return 30 * DAY;
    case "always":
      return ALWAYS;
  }
}

export function verdict(wish: Wish, now: number): Verdict {
  return { kind: "remember", reach: wish.reach, breadth: wish.breadth, seconds: seconds(wish.until, now) };
}

/** It holds until somebody removes it. */
export function isEndless(rule: Grant): boolean {
  return rule.expiresAt - rule.createdAt >= ALWAYS * 1000;
}

/** “until 15:20”, “until tomorrow 09:00”, “until 5 April 2031, 09:00”. */
export function untilWords(at: number, now: number): string {
  const then = new Date(at);
  const time = then.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = (ms: number) => new Date(ms).toDateString();
  const tomorrow = new Date(now);
  tomorrow.setDate(tomorrow.getDate() + 1);
  if (day(at) === day(now)) return `until ${time}`;
  if (day(at) === tomorrow.toDateString()) return `until tomorrow ${time}`;
  return `until ${then.toLocaleDateString(undefined, { dateStyle: "long" })}, ${time}`;
}

/** The rule, with its end. Nothing when the question allows no such rule. */
export function sentence(question: Question, wish: Wish, now: number): string {
  const remember = question.remember;
  const what = wish.breadth === "kind" ? remember?.kind : remember?.exact;
  if (!what) return "";
  const who = {
    box: question.boxName,
    project: `every box of ${question.project}`,
    everywhere: "every box",
  }[wish.reach];
  const end = wish.until === "always" ? "until you remove it" : untilWords(now + seconds(wish.until, now) * 1000, now);
  return `Let ${who} ${what} ${end}.`;
}
