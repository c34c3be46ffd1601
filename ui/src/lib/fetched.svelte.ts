// Something the host is asked for: its last answer, or why there is none. Only the last call counts,
// and a failed one leaves the answer before it in place.
import type { ControlError } from "./bindings/ControlError";
import { asControlError } from "./words";

export class Fetched<T> {
  value = $state.raw<T | null>(null);
  problem = $state.raw<ControlError | null>(null);
  running = $state(false);
  readonly #ask: () => Promise<T>;
  #turn = 0;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  async load(): Promise<void> {
    const turn = ++this.#turn;
    this.running = true;
    try {
      const value = await this.#ask();
      if (turn === this.#turn) [this.value, this.problem] = [value, null];
    } catch (thrown) {
      if (turn === this.#turn) this.problem = asControlError(thrown);
    } finally {
      if (turn === this.#turn) this.running = false;
    }
  }

  /** Forgets the answer, and the one on its way. */
  clear(): void {
    this.#turn += 1;
    this.running = false;
    this.value = this.problem = null;
  }
}
