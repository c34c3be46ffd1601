// A log as it is followed: bytes are taken in between two pictures, never more than fits between them,
// and more is asked for only when those are in. A flood so makes the log late, and the window never.
import type { Backend } from "./backend";
import type { ControlError } from "./bindings/ControlError";
import type { Stream } from "./bindings/Stream";
import { Finder, Lines } from "./lines";
import { asControlError } from "./words";

/** What one picture may spend on lines. */
const BUDGET_MS = 8;
/** A window out of sight draws no pictures; its log goes on all the same. */
const UNSEEN_MS = 200;

interface Chunk {
  bytes: Uint8Array;
  taken: () => void;
}

export class Log {
  /** Counts pictures in which something changed. */
  version = $state(0);
  /** How its program ended: none while it goes on. */
  ended = $state<number | null>(null);
  problem = $state.raw<ControlError | null>(null);
  /** The lines with the words that are searched for. */
  found = $state.raw<readonly number[]>([]);
  searching = $state(false);

  readonly lines: Lines;
  #waiting: Chunk[] = [];
  #finder: Finder | null = null;
  #frame: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #end: () => void;
  #left = false;

  constructor(backend: Backend, what: Stream) {
    this.lines = new Lines(what.kind === "unitLog");
    const call = backend.stream(what, (bytes) => this.#give(bytes));
    this.#end = call.end;
    call.done.then(
      (code) => this.#over(() => (this.ended = code)),
      (thrown: unknown) => this.#over(() => (this.problem = asControlError(thrown))),
    );
  }

  /** Nobody looks any more. */
  leave(): void {
    this.#left = true;
    this.#rest();
    for (const chunk of this.#waiting) chunk.taken();
    this.#waiting = [];
    if (this.ended === null && this.problem === null) this.#end();
  }

  get pattern(): RegExp | null {
    return this.#finder?.pattern ?? null;
  }

  /** Looks for words; none ends that. */
  search(words: string): void {
    this.#finder = words === "" ? null : new Finder(this.lines, words);
    this.found = [];
    this.searching = this.#finder !== null;
    this.version += 1;
    this.#soon();
  }

  #give(bytes: Uint8Array): Promise<void> {
    if (this.#left) return Promise.resolve();
    return new Promise((taken) => {
      this.#waiting.push({ bytes, taken });
      this.#soon();
    });
  }

  #over(say: () => void): void {
    if (this.#left) return;
    // What came before the end is shown before it.
    for (const chunk of this.#waiting.splice(0)) {
      this.lines.take(chunk.bytes);
      chunk.taken();
    }
    this.lines.close();
    say();
    this.#soon();
  }

  #soon(): void {
    if (this.#frame !== undefined || this.#left) return;
    const turn = () => {
      this.#rest();
      this.#turn(performance.now() + BUDGET_MS);
    };
    this.#frame = requestAnimationFrame(turn);
    this.#timer = setTimeout(turn, UNSEEN_MS);
  }

  #rest(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = undefined;
  }

  #turn(until: number): void {
    do {
      const chunk = this.#waiting.shift();
      if (!chunk) break;
      this.lines.take(chunk.bytes);
      chunk.taken();
    } while (performance.now() < until);
    this.#look(until);
    this.version += 1;
    if (this.#waiting.length > 0 || this.searching) this.#soon();
  }

  #look(until: number): void {
    if (!this.#finder) return;
    const before = this.#finder.found.length;
    const first = this.#finder.found[0];
    this.searching = this.#finder.step(until);
    const same = this.#finder.found.length === before && this.#finder.found[0] === first;
    if (!same || this.found.length !== before) this.found = this.#finder.found.slice();
  }
}
