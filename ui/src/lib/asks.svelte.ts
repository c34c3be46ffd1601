// The questions the window shows, oldest first, and what it does with each.
//
// There may be a thousand. A key moves from one to the next, so nothing here looks through all of them but
// when one comes, goes or ends: what a question is to the window is kept in signals of its own, the
// question itself is plain data, and the rest is looked up by id.
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import type { Question } from "./bindings/Question";
import type { QuestionId } from "./bindings/QuestionId";
import type { Verdict } from "./bindings/Verdict";
import type { Wish } from "./remember";

export type Answer = Verdict["kind"];

/** A question and what the window does with it. */
export class Ask {
  readonly id: QuestionId;
  question: Question;
  /** How it ended, in words, while that is shown. */
  ending = $state.raw<{ words: string; yes: boolean } | null>(null);
  /** The answer on its way. */
  sending = $state.raw<Answer | null>(null);
  problem = $state.raw<ControlError | null>(null);
  /** The rule in the making, while Remember… is open. */
  wish = $state.raw<Wish | null>(null);
  /** Counts how often its own card changed under the person's hands; each time is a new pause. */
  round = $state(0);

  constructor(question: Question) {
    this.id = question.id;
    this.question = $state.raw(question);
  }
}

export class Asks {
  all = $state.raw<readonly Ask[]>([]);
  readonly open = $derived(this.all.filter((ask) => ask.ending === null));
  readonly #byId = $derived(new Map(this.all.map((ask) => [ask.id, ask])));
  readonly #places = $derived(new Map(this.open.map((ask, at) => [ask.id, at])));
  readonly #perBox = $derived.by(() => {
    const counts = new Map<BoxId, number>();
    for (const { question } of this.open) counts.set(question.boxId, (counts.get(question.boxId) ?? 0) + 1);
    return counts;
  });

  find(id: QuestionId): Ask | undefined {
    return this.#byId.get(id);
  }

  /** Where a question is among the open ones; -1 when it is not one of them. */
  placeOf(id: QuestionId | null): number {
    return id === null ? -1 : (this.#places.get(id) ?? -1);
  }

  /** How many of a box are open. */
  ofBox(id: BoxId): number {
    return this.#perBox.get(id) ?? 0;
  }

  /** All at once: each change of the list draws it anew. */
  add(questions: readonly Question[]): void {
    const asks = questions.map((question) => new Ask(question));
    this.all = [...this.all, ...asks].sort((a, b) => a.question.createdAt - b.question.createdAt);
  }

  remove(id: QuestionId): void {
    this.all = this.all.filter((ask) => ask.id !== id);
  }

  /** The open question after this one, else the last before it. */
  heir(id: QuestionId): Ask | undefined {
    const at = this.all.findIndex((ask) => ask.id === id);
    const isOpen = (ask: Ask) => ask.ending === null;
    return this.all.slice(at + 1).find(isOpen) ?? this.all.slice(0, at).findLast(isOpen);
  }
}
