// The audit trail as it is read: newest first, older records on demand, newer ones as they come.
//
// Records are numbered without gaps, so older ones are found by number: clocks can be set back, and a
// record must not be missed for that. Only the last reading counts.
import type { AuditQuery } from "./bindings/AuditQuery";
import type { AuditRecord } from "./bindings/AuditRecord";
import type { ControlError } from "./bindings/ControlError";
import { asControlError } from "./words";

export type Filter = Pick<AuditQuery, "target" | "kinds" | "text"> & Partial<Pick<AuditQuery, "since" | "until">>;

export const PAGE = 100;
/** How many numbers one search for older records that fit goes down at once, and how often. */
const SPAN = 500;
const SPANS = 40;
/** An answer of this many letters may have been cut short by the host. */
const LONG = 1_000_000;

export class Trail {
  /** None until the first answer. */
  records = $state.raw<AuditRecord[] | null>(null);
  problem = $state.raw<ControlError | null>(null);
  reading = $state<"first" | "older" | null>(null);
  /** All records that fit and are numbered from here on have been read. */
  #reached = $state(1);
  #filter: Filter = { target: null, kinds: [], text: null };
  readonly #ask: (query: AuditQuery) => Promise<AuditRecord[]>;
  #turn = 0;

  constructor(ask: (query: AuditQuery) => Promise<AuditRecord[]>) {
    this.#ask = ask;
  }

  get hasOlder(): boolean {
    return this.#reached > 1;
  }

  /** Reads the newest records that fit. */
  begin(filter: Filter): Promise<void> {
    this.#filter = filter;
    return this.#read("first", async (last) => {
      const newest = await this.#query(null, PAGE);
      if (!last()) return;
      this.records = newest.reverse();
      const all = newest.length < PAGE && JSON.stringify(newest).length < LONG;
      this.#reached = all ? 1 : (newest.at(-1)?.seq ?? 1);
    });
  }

  older(): Promise<void> {
    return this.#read("older", async (last) => {
      const { found, reached } = await this.#below(this.#reached, last);
      if (!last()) return;
      this.records = [...(this.records ?? []), ...found.reverse()];
      this.#reached = reached;
    });
  }

  /** Puts before what is shown what came since. */
  async newer(): Promise<void> {
    if (this.reading !== null || this.records === null) return;
    const turn = this.#turn;
    const came = await this.#query(this.records[0]?.seq ?? 0, SPAN).catch((error: unknown) => {
      if (turn === this.#turn) this.problem = asControlError(error);
      return [];
    });
    if (turn === this.#turn && came.length > 0) this.records = [...came.reverse(), ...this.records];
  }

  /** All records above `after` and below `below`: long ones come in several answers. */
  async #between(after: number, below: number, span: number): Promise<AuditRecord[]> {
    const found: AuditRecord[] = [];
    for (let from = after; from + 1 < below; ) {
      const part = await this.#query(from, span);
      found.push(...part.filter((record) => record.seq < below));
      const end = part.at(-1)?.seq;
      if (end === undefined || end >= below) break;
      from = end;
    }
    return found;
  }

  /** Up to a page of records numbered below `below`, oldest first, and how far down they reach. */
  async #below(below: number, last: () => boolean): Promise<{ found: AuditRecord[]; reached: number }> {
    const { target, kinds, text, since, until } = this.#filter;
    const narrowed = target || kinds.length > 0 || text || since != null || until != null;
    const span = narrowed ? SPAN : PAGE;
    let found: AuditRecord[] = [];
    for (let spans = 0; spans < SPANS && found.length < PAGE && below > 1 && last(); spans++) {
      const after = Math.max(0, below - 1 - span);
      const part = await this.#between(after, below, span);
      found = [...part, ...found];
      below = after + 1;
    }
    const kept = found.slice(-PAGE);
    return { found: kept, reached: kept.length < found.length ? (kept[0]?.seq ?? below) : below };
  }

  async #read(what: "first" | "older", act: (last: () => boolean) => Promise<void>): Promise<void> {
    const turn = ++this.#turn;
    const last = () => turn === this.#turn;
    this.reading = what;
    try {
      await act(last);
      if (last()) this.problem = null;
    } catch (thrown) {
      if (last()) this.problem = asControlError(thrown);
    } finally {
      if (last()) this.reading = null;
    }
  }

  #query(after: number | null, limit: number): Promise<AuditRecord[]> {
    return this.#ask({ since: null, until: null, ...this.#filter, after, limit });
  }
}
