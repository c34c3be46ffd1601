// A host in memory: records what is called, answers as told, and says what a test wants said.
import type { Backend, LongCall, Place } from "../src/lib/backend";
import type { BoxId } from "../src/lib/bindings/BoxId";
import type { ControlError } from "../src/lib/bindings/ControlError";
import type { ErrorCode } from "../src/lib/bindings/ErrorCode";
import type { HostEvent } from "../src/lib/bindings/HostEvent";
import type { Request } from "../src/lib/bindings/Request";

type Method = Request["method"];
type Of<M extends Method> = Extract<Request, { method: M }>;

interface Subscription {
  onEvent: (event: HostEvent) => void;
  onDown: (why: string) => void;
}

export class FakeBackend implements Backend {
  readonly calls: Request[] = [];
  subscriptions: Subscription[] = [];
  /** How often someone subscribed, also when it failed. */
  subscribed = 0;
  first = "inbox";
  /** Set: subscribing fails with it. */
  unreachable: string | null = null;
  readonly #replies = new Map<Method, (request: never) => unknown>();

  on<M extends Method>(method: M, reply: (request: Of<M>) => unknown): void {
    this.#replies.set(method, reply as (request: never) => unknown);
  }

  async call<T>(request: Request): Promise<T> {
    this.calls.push(request);
    const reply = this.#replies.get(request.method);
    return (reply ? await reply(request as never) : null) as T;
  }

  async subscribe(onEvent: Subscription["onEvent"], onDown: Subscription["onDown"]): Promise<() => void> {
    this.subscribed += 1;
    if (this.unreachable !== null) throw error("failed", this.unreachable);
    const subscription = { onEvent, onDown };
    this.subscriptions.push(subscription);
    return () => {
      this.subscriptions = this.subscriptions.filter((other) => other !== subscription);
    };
  }

  /** Long calls under way, the newest last. */
  readonly begun: { request: Request; tell: (event: HostEvent) => void; finish: (reply: unknown) => void; fail: (error: ControlError) => void; ended: boolean }[] = [];
  /** What the person chooses; an error fails. */
  folder: string | null | ControlError = null;
  readonly chosenFrom: (string | null)[] = [];
  readonly opened: [BoxId, Place][] = [];
  openFails: ControlError | null = null;

  begin<T>(request: Request, onEvent: (event: HostEvent) => void): LongCall<T> {
    let finish = (_: unknown) => {};
    let fail = (_: ControlError) => {};
    const done = new Promise<T>((resolve, reject) => {
      finish = resolve as (reply: unknown) => void;
      fail = reject;
    });
    const call = { request, tell: onEvent, finish, fail, ended: false };
    this.begun.push(call);
    const end = () => {
      call.ended = true;
      fail(error("failed", "It was called off."));
    };
    return { done, end };
  }

  async chooseFolder(start: string | null): Promise<string | null> {
    this.chosenFrom.push(start);
    if (this.folder !== null && typeof this.folder === "object") throw this.folder;
    return this.folder;
  }

  async openPlace(id: BoxId, place: Place): Promise<void> {
    if (this.openFails) throw this.openFails;
    this.opened.push([id, place]);
  }

  async initialPage(): Promise<string> {
    return this.first;
  }

  say(event: HostEvent): void {
    this.subscriptions.forEach((subscription) => subscription.onEvent(event));
  }

  goDown(why: string): void {
    this.subscriptions.forEach((subscription) => subscription.onDown(why));
  }

  called<M extends Method>(method: M): Of<M>[] {
    return this.calls.filter((request): request is Of<M> => request.method === method);
  }
}

export function error(code: ErrorCode, message: string, ...hints: string[]): ControlError {
  return { code, message, hints };
}
