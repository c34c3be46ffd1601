// Everything that fits, as a file: a record a line, as JSON, oldest first.
//
// The trail is walked by number, page by page, so that nothing is missed however long it is; only the text
// is kept.
import type { AuditQuery } from "./bindings/AuditQuery";
import type { AuditRecord } from "./bindings/AuditRecord";
import type { ControlError } from "./bindings/ControlError";
import type { Filter } from "./trail.svelte";
import { asControlError } from "./words";

/** As many as the host gives at once. */
const PAGE = 1000;

/** Where it was written; none when the person would rather not. */
export type Save = (name: string, text: string) => Promise<string | null>;

export class Export {
  running = $state(false);
  /** Records so far. */
  read = $state(0);
  /** The file that was made last; none was when nothing fits. */
  done = $state.raw<{ place: string | null; records: number } | null>(null);
  problem = $state.raw<ControlError | null>(null);
  readonly #ask: (query: AuditQuery) => Promise<AuditRecord[]>;
  readonly #save: Save;
  #turn = 0;

  constructor(ask: (query: AuditQuery) => Promise<AuditRecord[]>, save: Save) {
    this.#ask = ask;
    this.#save = save;
  }

  async run(filter: Filter): Promise<void> {
    if (this.running) return;
    const turn = ++this.#turn;
    this.running = true;
    this.read = 0;
    this.done = this.problem = null;
    try {
      const parts = await this.#walk(filter, () => turn === this.#turn);
      if (turn === this.#turn) await this.#finish(parts);
    } catch (thrown) {
      if (turn === this.#turn) this.problem = asControlError(thrown);
    }
    if (turn === this.#turn) this.running = false;
  }

  cancel(): void {
    this.#turn += 1;
    this.running = false;
  }

  async #walk(filter: Filter, wanted: () => boolean): Promise<string[]> {
    const parts: string[] = [];
    for (let after = 0; wanted(); ) {
      const page = await this.#ask({ since: null, until: null, ...filter, after, limit: PAGE });
      const last = page.at(-1);
      // Long records come fewer at a time: only an empty answer is the end.
      if (last === undefined || !wanted()) break;
      parts.push(page.map((record) => `${JSON.stringify(record)}\n`).join(""));
      this.read += page.length;
      after = last.seq;
    }
    return parts;
  }

  async #finish(parts: string[]): Promise<void> {
    const name = `agentbox-activity-${day(new Date())}.jsonl`;
    if (parts.length === 0) {
      this.done = { place: null, records: 0 };
      return;
    }
    const place = await this.#save(name, parts.join(""));
    if (place !== null) this.done = { place, records: this.read };
  }
}

function day(at: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export const RANGES = [
  ["all", "All time"],
  ["today", "Today"],
  ["week", "7 days"],
  ["month", "30 days"],
] as const;
export type Range = (typeof RANGES)[number][0];

const DAY_MS = 86_400_000;

/** When a stretch that ends now began; none has no beginning. */
export function rangeStart(range: Range, now: number): number | null {
  if (range === "all") return null;
  if (range === "today") return new Date(now).setHours(0, 0, 0, 0);
  return now - (range === "week" ? 7 : 30) * DAY_MS;
}
