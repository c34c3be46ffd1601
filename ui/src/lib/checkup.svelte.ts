// The check-up: what the host found, in groups people know, and how it stands in one line.
//
// Looking takes seconds, so the last result is kept for every page that shows a part of it.
import type { Check } from "./bindings/Check";
import type { HostStatus } from "./bindings/HostStatus";
import type { Level } from "./bindings/Level";
import { Fetched } from "./fetched.svelte";
import type { AppState } from "./state.svelte";
import { count } from "./words";

/** A symbol and words: the state never depends on colour alone. */
export const LEVELS: Record<Level, { symbol: string; words: string }> = {
  ok: { symbol: "✓", words: "good" },
  info: { symbol: "ℹ", words: "to know" },
  warn: { symbol: "⚠", words: "needs you" },
  fail: { symbol: "✕", words: "does not work" },
};

const NEEDS_YOU = "Needs you";
/** In the order they are read. */
const GROUPS = [NEEDS_YOU, "This computer", "Engine", "Boxes", "Keychain", "Desktop", "Questions and settings", "Programs", "Services"];
const GROUP_OF: Record<string, string> = {
  system: "This computer",
  host: "This computer",
  engine: "Engine",
  boxes: "Boxes",
  desktop: "Desktop",
  relay: "Questions and settings",
  programs: "Programs",
  integrations: "Services",
};

export interface CheckGroup {
  title: string;
  checks: Check[];
}

const needsYou = (check: Check) => check.level === "warn" || check.level === "fail";

/** What needs somebody comes first, and of that what does not work; the rest by what it is about. */
export function groups(checks: readonly Check[]): CheckGroup[] {
  const byTitle = new Map<string, Check[]>();
  const worst = [...checks].sort((a, b) => Number(b.level === "fail") - Number(a.level === "fail"));
  for (const check of worst) {
    const title = needsYou(check) ? NEEDS_YOU : titleOf(check);
    byTitle.set(title, [...(byTitle.get(title) ?? []), check]);
  }
  const place = (title: string) => (GROUPS.includes(title) ? GROUPS.indexOf(title) : GROUPS.length);
  return [...byTitle].map(([title, all]) => ({ title, checks: all })).sort((a, b) => place(a.title) - place(b.title));
}

/** `Services`, for a row that stands among others; none when its label says it already. */
export function placeOf(check: Check): string | null {
  const title = titleOf(check);
  return needsYou(check) && title.toLowerCase() !== check.label.toLowerCase() ? title : null;
}

function titleOf({ group, label }: Check): string {
  if (label === "keychain" || label === "keyring") return "Keychain";
  return GROUP_OF[group] ?? group.charAt(0).toUpperCase() + group.slice(1);
}

/** `All good`, `2 things need you`. */
export function summary(checks: readonly Check[]): string {
  const many = checks.filter(needsYou).length;
  return many === 0 ? "All good" : count(many, "thing needs you", "things need you");
}

/**
 * With what the host only mentions when it is missing: the tray and notifications. And the keyring's notice
 * says the same as the keychain's row.
 */
export function complete(checks: readonly Check[], status: HostStatus | null): Check[] {
  const row = (label: string) => checks.find((check) => check.group === "desktop" && check.label === label);
  const said = row("keychain");
  const found = checks.filter((check) => !(check.label === "keyring" && said && needsYou(said)));
  const desktop = status?.kind === "desktop";
  const detail = desktop ? "shown" : "AgentBox runs without a desktop; questions are answered in a terminal";
  const quiet = ["tray", "notifications"].filter((label) => !row(label));
  return [
    ...found,
    ...quiet.map((label): Check => ({ group: "desktop", label, level: desktop ? "ok" : "info", detail, hint: null })),
  ];
}

/** What somebody who begins needs to be there. */
export function essentials(checks: readonly Check[]): Check[] {
  const wanted: [string, string][] = [
    ["engine", "engine"],
    ["engine", "box image"],
    ["desktop", "keychain"],
    ["desktop", "tray"],
    ["desktop", "notifications"],
  ];
  return wanted.flatMap(([group, label]) => checks.filter((check) => check.group === group && check.label === label));
}

/** How long a result counts as of now. */
const FRESH_MS = 60_000;

export class CheckUp {
  readonly found: Fetched<Check[]>;
  /** When the last one was finished. */
  at = $state<number | null>(null);
  /** When the one under way began. */
  since = $state<number | null>(null);
  readonly #app: AppState;
  readonly rows = $derived.by(() => (this.found.value === null ? null : complete(this.found.value, this.#app.status)));

  constructor(app: AppState) {
    this.#app = app;
    this.found = new Fetched(async () => (await app.backend.call<Check[] | null>({ method: "doctor" })) ?? []);
  }

  async run(): Promise<void> {
    if (this.found.running) return;
    this.since = Date.now();
    await this.found.load();
    if (this.found.problem === null) this.at = Date.now();
    this.since = null;
  }

  /** Runs unless the last one was a moment ago. */
  async refresh(): Promise<void> {
    if (this.at === null || Date.now() - this.at > FRESH_MS) await this.run();
  }

  /** What was found of a service. */
  service(name: string): Check | null {
    return this.rows?.find((check) => check.group === "integrations" && check.label === name) ?? null;
  }
}

const kept = new WeakMap<AppState, CheckUp>();

export function checkUpOf(app: AppState): CheckUp {
  const known = kept.get(app) ?? new CheckUp(app);
  kept.set(app, known);
  return known;
}
