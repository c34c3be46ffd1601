// A host in memory: records what is called, answers as told, and says what a test wants said.
import type { Backend, Flowing, LongCall, Place, StreamCall } from "../src/lib/backend";
import type { BoxFolder } from "../src/lib/bindings/BoxFolder";
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

  /** Streams under way, the newest last. */
  readonly streams: { what: Flowing; give: (text: string | Uint8Array) => void; finish: (code: number) => void; fail: (error: ControlError) => void; written: string; sizes: [number, number][]; ended: boolean }[] = [];
  readonly folders = new Map<string, BoxFolder>();
  readonly copies: string[] = [];
  drop: { over: (names: string[] | null) => void; dropped: (names: string[]) => void } | null = null;

  stream(what: Flowing, onBytes: (bytes: Uint8Array) => void | Promise<void>): StreamCall {
    let finish = (_: number) => {};
    let fail = (_: ControlError) => {};
    const done = new Promise<number>((resolve, reject) => {
      finish = resolve;
      fail = reject;
    });
    const give = (text: string | Uint8Array) => void onBytes(typeof text === "string" ? new TextEncoder().encode(text) : text);
    const one = { what, give, finish, fail, written: "", sizes: [] as [number, number][], ended: false };
    this.streams.push(one);
    return {
      done,
      write: (bytes) => (one.written += new TextDecoder().decode(bytes)),
      resize: (cols, rows) => one.sizes.push([cols, rows]),
      end: () => {
        one.ended = true;
        fail(error("failed", "It was called off."));
      },
    };
  }

  async screenPassword(): Promise<string> {
    return "secret12";
  }

  async files(_: BoxId, path: string): Promise<BoxFolder> {
    const folder = this.folders.get(path);
    if (!folder) throw error("failed", `cannot read ${path}`);
    return folder;
  }

  async copyIn(id: BoxId, to: string): Promise<number> {
    this.copies.push(`in ${id}:${to}`);
    return 1;
  }

  async copyDropped(id: BoxId, to: string, names: string[]): Promise<number> {
    this.copies.push(`dropped ${id}:${to} ${names.join()}`);
    return names.length;
  }

  async copyOut(id: BoxId, from: string): Promise<string | null> {
    this.copies.push(`out ${id}:${from}`);
    return "/home/ada/Downloads";
  }

  readonly saved: { name: string; text: string }[] = [];

  async save(name: string, text: string): Promise<string | null> {
    this.saved.push({ name, text });
    return `/home/ada/${name}`;
  }

  onDrop(over: (names: string[] | null) => void, dropped: (names: string[]) => void): () => void {
    this.drop = { over, dropped };
    return () => (this.drop = null);
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

  /** The boxes whose page was shown, in their order; none for another page. */
  readonly shown: (BoxId | null)[] = [];

  shows(id: BoxId | null): void {
    this.shown.push(id);
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
