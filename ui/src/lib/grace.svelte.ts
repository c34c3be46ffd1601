// A pause before a yes counts: a click or key that was on its way when the content appeared or
// moved must not allow it.
//
// The pause belongs to a key that names what is shown. A new key is never ready, from the very
// moment it is set, without waiting for any effect to run.

export const GRACE_MS = 350;

export class Grace {
  #passedFor = $state<string | null>(null);

  /** Whether the pause for exactly this content is over. */
  isOver(key: string): boolean {
    return this.#passedFor === key;
  }

  /** Begins the pause for this content; returns what cancels it. */
  begin(key: string): () => void {
    this.#passedFor = null;
    const timer = setTimeout(() => (this.#passedFor = key), GRACE_MS);
    return () => clearTimeout(timer);
  }
}
