// What a box sends out, as it is followed: lines are taken in between two pictures and counted as taken
// only then, so a flood makes the list late and the window never. The oldest go when there are too many.
import type { Backend } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import type { Traffic } from "./bindings/Traffic";
import { asControlError } from "./words";

/** Lines that are kept; a little more are let come before the oldest go, so that it is not done for each. */
export const MOST_TRAFFIC = 5000;
const SLACK = 500;
/** A window out of sight draws no pictures; its traffic goes on all the same. */
const UNSEEN_MS = 200;

interface Chunk {
  bytes: Uint8Array;
  taken: () => void;
}

export class TrafficFeed {
  /** Oldest first. */
  lines = $state.raw<readonly Traffic[]>([]);
  /** Older lines than these were there. */
  gone = $state(false);
  /** It ended by itself. */
  ended = $state(false);
  problem = $state.raw<ControlError | null>(null);
  /** Counts how often the rules were read anew. */
  reloads = $state(0);

  readonly #known = new Set<string>();
  readonly #decoder = new TextDecoder();
  readonly #end: () => void;
  #waiting: Chunk[] = [];
  #rest = "";
  #frame: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #left = false;

  constructor(backend: Backend, id: BoxId) {
    const params = { target: { query: id, cwd: null }, denied: false, since: null, before: null, text: null, limit: MOST_TRAFFIC };
    const call = backend.stream({ method: "followTraffic", params }, (bytes) => this.#give(bytes));
    this.#end = call.end;
    call.done.then(
      () => this.#over(() => (this.ended = true)),
      (thrown: unknown) => this.#over(() => (this.problem = asControlError(thrown))),
    );
  }

  /** Nobody looks any more. */
  leave(): void {
    this.#left = true;
    this.#wake();
    for (const chunk of this.#waiting.splice(0)) chunk.taken();
    if (!this.ended && this.problem === null) this.#end();
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
    this.#take();
    say();
  }

  #soon(): void {
    if (this.#frame !== undefined || this.#left) return;
    const turn = () => {
      this.#wake();
      this.#take();
    };
    this.#frame = requestAnimationFrame(turn);
    this.#timer = setTimeout(turn, UNSEEN_MS);
  }

  #wake(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = undefined;
  }

  #take(): void {
    const chunks = this.#waiting.splice(0);
    if (chunks.length === 0) return;
    const fresh: Traffic[] = [];
    for (const chunk of chunks) {
      const texts = (this.#rest + this.#decoder.decode(chunk.bytes, { stream: true })).split("\n");
      this.#rest = texts.pop() ?? "";
      for (const text of texts) {
        const line = parsed(text);
        if (line && !this.#known.has(line.id)) {
          this.#known.add(line.id);
          fresh.push(line);
        }
      }
    }
    this.#keep(fresh);
    for (const chunk of chunks) chunk.taken();
  }

  #keep(fresh: Traffic[]): void {
    if (fresh.length === 0) return;
    if (fresh.some((line) => line.kind === "reload")) this.reloads += 1;
    let all = [...this.lines, ...fresh];
    if (all.length > MOST_TRAFFIC + SLACK) {
      for (const line of all.slice(0, all.length - MOST_TRAFFIC)) this.#known.delete(line.id);
      all = all.slice(-MOST_TRAFFIC);
      this.gone = true;
    }
    this.lines = all;
  }
}

/** What is no line of traffic is no reason to stop: the next one may be. */
function parsed(text: string): Traffic | null {
  try {
    const line = JSON.parse(text) as Traffic | null;
    return typeof line === "object" && line !== null && typeof line.id === "string" ? line : null;
  } catch {
    return null;
  }
}
