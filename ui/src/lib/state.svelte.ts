// Everything the window knows, in one place: what the host last said, and where the person is.
//
// It applies the host's events and sends the person's answers; it decides nothing. A question that
// ended stays for two seconds so that its card can say how, and `Ask.ending` then is set.
import type { Backend, Place } from "./backend";
import type { AgentAsks } from "./bindings/AgentAsks";
import type { ApiUse } from "./bindings/ApiUse";
import type { AuditQuery } from "./bindings/AuditQuery";
import type { AuditRecord } from "./bindings/AuditRecord";
import type { AuditVerdict } from "./bindings/AuditVerdict";
import type { BoxDetails } from "./bindings/BoxDetails";
import type { BoxId } from "./bindings/BoxId";
import type { BoxStatus } from "./bindings/BoxStatus";
import type { BoxUsage } from "./bindings/BoxUsage";
import type { BoxView } from "./bindings/BoxView";
import type { ControlError } from "./bindings/ControlError";
import type { Destroyed } from "./bindings/Destroyed";
import type { EgressChange } from "./bindings/EgressChange";
import type { EgressChanged } from "./bindings/EgressChanged";
import type { EgressExplained } from "./bindings/EgressExplained";
import type { EgressMode } from "./bindings/EgressMode";
import type { EgressSuggested } from "./bindings/EgressSuggested";
import type { EgressView } from "./bindings/EgressView";
import type { Grant } from "./bindings/Grant";
import type { GrantId } from "./bindings/GrantId";
import type { HostEvent } from "./bindings/HostEvent";
import type { HostStatus } from "./bindings/HostStatus";
import type { IntegrationView } from "./bindings/IntegrationView";
import type { Loss } from "./bindings/Loss";
import type { Outcome } from "./bindings/Outcome";
import type { Question } from "./bindings/Question";
import type { QuestionId } from "./bindings/QuestionId";
import type { Request } from "./bindings/Request";
import type { SecretId } from "./bindings/SecretId";
import type { SecretScope } from "./bindings/SecretScope";
import type { SecretView } from "./bindings/SecretView";
import type { Tried } from "./bindings/Tried";
import type { Verdict } from "./bindings/Verdict";
import { type Ask, Asks } from "./asks.svelte";
import { type History, remembered } from "./history";
import { NewBox } from "./newbox.svelte";
import type { Wish } from "./remember";
import { NO_LONGER_OPEN, answerProblem, asControlError, goesOn, outcomeWords } from "./words";

export const ENDING_MS = 2000;
/** How often what boxes use is measured, while somebody looks. */
const USAGE_MS = 3000;
/** How often tasks and services of one box are read at most. */
const UNITS_MS = 500;
/** The host is on this computer: asking every second costs nothing. */
const RETRY_MS = 1000;

export const PAGES = ["inbox", "boxes", "new", "activity", "credentials", "integrations", "rules", "settings", "check-up", "welcome"] as const;
export type Page = (typeof PAGES)[number] | "box";
/** What of a box its page shows. */
export const TABS = ["overview", "logs", "services", "terminal", "screen", "files", "network", "activity"] as const;
export type Tab = (typeof TABS)[number];
export type Verb = "start" | "stop" | "pause" | "resume" | "destroy" | "mute" | "switch";

/** What is going on with a box because of a verb. */
export interface Doing {
  verb: Verb | null;
  problem: ControlError | null;
}

export class AppState {
  status = $state<HostStatus | null>(null);
  boxes = $state<BoxView[]>([]);
  readonly asks = new Asks();
  /** Why the host cannot be reached; none while it can. */
  down = $state<string | null>(null);
  page = $state<Page>("inbox");
  /** The box whose page is shown, and what of it. */
  boxId = $state<BoxId | null>(null);
  tab = $state<Tab>("overview");
  /** The task or service whose log is shown; none: the box's own. */
  logOf = $state<string | null>(null);
  /** Counts how often the page came up or moved under the person's hands: a new pause for every question. */
  shows = $state(0);
  /** The question the keys answer. */
  current = $state<QuestionId | null>(null);
  /** The box to bring into view. */
  highlighted = $state<BoxId | null>(null);
  /** The credential to bring into view. */
  wanted = $state<SecretId | null>(null);
  /** Counts what may have changed more than this state holds; pages then read their part again. */
  news = $state(0);
  doing = $state<Record<BoxId, Doing>>({});
  /** What the last destroyed box left behind. */
  aftermath = $state<Destroyed | null>(null);

  /** What boxes use, while their page is open. */
  usage = $state.raw<Record<BoxId, BoxUsage>>({});
  /** What they used in the last minutes. */
  history = $state.raw<History>({});
  /** Tasks and services of the boxes somebody looks at. */
  units = $state.raw<Record<BoxId, BoxStatus | null>>({});
  /** The box in the making. It goes on whichever page is shown. */
  readonly newBox: NewBox;

  readonly #backend: Backend;
  /** The question that was asked for and is not here yet. */
  #sought: QuestionId | null = null;
  #leave: (() => void) | null = null;
  /** Boxes whose units are being read; whether they changed meanwhile. */
  readonly #reading = new Map<BoxId, boolean>();
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** The measuring under way; only its numbers count. */
  #measuring: unknown = null;

  constructor(backend: Backend) {
    this.#backend = backend;
    this.newBox = new NewBox(backend, (made) => {
      this.#putBox(made);
      if (this.page === "new") this.show(`box/${made.id}`);
    });
  }

  async start(): Promise<void> {
    try {
      this.show(await this.#backend.initialPage());
    } catch {
      // Which page comes first is a wish; without it the inbox does.
    }
    await this.#connect();
  }

  stop(): void {
    clearTimeout(this.#retry);
    this.#leave?.();
    this.#leave = null;
  }

  async #connect(): Promise<void> {
    // A subscription that went down before it was handed out must not stay registered.
    let alive = true;
    const lost = (why: string) => {
      if (!alive) return;
      alive = false;
      this.#lost(why);
    };
    try {
      const leave = await this.#backend.subscribe((event) => alive && this.apply(event), lost);
      if (alive) this.#leave = leave;
      else leave();
    } catch (thrown) {
      lost(asControlError(thrown).message);
    }
  }

  #lost(why: string): void {
    this.stop();
    this.down = why;
    this.#retry = setTimeout(() => void this.#connect(), RETRY_MS);
  }

  apply(event: HostEvent): void {
    this.down = null;
    switch (event.type) {
      case "snapshot":
        this.status = event.status;
        this.boxes = event.boxes;
        this.#setQuestions(event.questions);
        this.news += 1;
        break;
      case "boxChanged":
        this.#putBox(event.view);
        break;
      case "boxRemoved":
        this.#dropBox(event.id);
        this.news += 1;
        break;
      case "asked":
        this.#putQuestion(event.question);
        this.#handOutKeys();
        break;
      case "askedAgain": {
        const ask = this.asks.find(event.id);
        if (ask) ask.question = { ...ask.question, times: event.times };
        break;
      }
      case "resolved":
        this.#resolved(event.id, event.outcome);
        this.news += 1;
        break;
      case "unitsChanged":
        if (event.id in this.units) void this.#readUnits(event.id);
        break;
      case "status":
        this.status = event.status;
        break;
      case "showWindow":
        this.show(event.page);
        break;
    }
  }

  // Where the person is

  /**
   * Goes to one of the pages, to `box/<id>` or `box/<id>/<tab>`, or to the question `inbox/<id>`; anything
   * else leaves the page as it is.
   */
  show(page: string): void {
    const known = PAGES.find((other) => other === page);
    const [place, id, part] = page.split("/");
    if (known) {
      this.page = known;
      // Whoever goes back to the boxes finds the one they came from; elsewhere it is forgotten.
      if (known !== "boxes") this.highlighted = null;
    } else if (place === "box" && id) this.#showBox(id, TABS.find((tab) => tab === part));
    else if (place === "inbox" && id) {
      this.page = "inbox";
      this.choose(id);
    }
    this.shownAgain();
  }

  #showBox(id: BoxId, tab: Tab | undefined): void {
    this.tab = tab ?? (this.page === "box" && this.boxId === id ? this.tab : "overview");
    if (this.boxId !== id) this.logOf = null;
    this.page = "box";
    this.boxId = id;
    this.highlighted = id;
  }

  /** The log of a task or service of the box that is shown. */
  showLog(unit: string): void {
    this.logOf = unit;
    this.tab = "logs";
  }

  showCredential(id: SecretId): void {
    this.show("credentials");
    this.wanted = id;
  }

  /** Tells which box's page is shown, if one is. */
  tellWhatIsShown(): void {
    this.#backend.shows(this.page === "box" ? this.boxId : null);
  }

  /** The window was out of sight: what it shows may be old. */
  backInSight(): void {
    this.shownAgain();
    this.news += 1;
  }

  /** The page came up or moved under the person's hands: every yes waits anew. */
  shownAgain(): void {
    this.shows += 1;
  }

  /** Moves the keys to the next or previous open question. */
  move(by: 1 | -1): void {
    const { open } = this.asks;
    const at = this.asks.placeOf(this.current);
    const next = open[Math.min(Math.max(at + by, 0), open.length - 1)];
    if (next && next.id !== this.current) this.#makeCurrent(next);
  }

  /** The person reached for this question themselves. */
  choose(id: QuestionId): void {
    const there = this.asks.placeOf(id) >= 0;
    if (there) this.current = id;
    // The way to it may be quicker than the question itself.
    this.#sought = there ? null : id;
  }

  /** Gives the keys to a question. The page may scroll to it, so every yes waits anew. */
  #makeCurrent(ask: Ask | undefined): void {
    this.current = ask?.id ?? null;
    this.shownAgain();
  }

  // Questions

  /** Those nobody has answered yet. */
  get open(): readonly Ask[] {
    return this.asks.open;
  }

  #setQuestions(questions: Question[]): void {
    const still = new Set(questions.map((question) => question.id));
    for (const ask of this.open) {
      if (!still.has(ask.id)) this.#end(ask, NO_LONGER_OPEN, false);
    }
    this.#add(questions.filter((question) => !this.#renew(question)));
    this.#handOutKeys();
  }

  #putQuestion(question: Question): void {
    if (!this.#renew(question)) this.#add([question]);
  }

  /** Whether it was known. One that has ended stays as it ended. */
  #renew(question: Question): boolean {
    const known = this.asks.find(question.id);
    if (known && known.ending === null) {
      if (known.question.digest !== question.digest) known.problem = known.wish = null;
      known.question = question;
    }
    return known !== undefined;
  }

  #add(questions: Question[]): void {
    if (questions.length === 0) return;
    this.asks.add(questions);
    if (this.#sought !== null) this.choose(this.#sought);
  }

  /** Nobody has the keys, and nothing is being read: the oldest open question gets them. */
  #handOutKeys(): void {
    const reading = this.open.length < this.asks.all.length;
    if (this.current === null && !reading) this.#makeCurrent(this.open[0]);
  }

  #resolved(id: QuestionId, outcome: Outcome): void {
    const ask = this.asks.find(id);
    if (ask) this.#end(ask, outcomeWords(outcome), goesOn(outcome));
  }

  /**
   * Says how a question ended. One answered here hands the keys on at once; one that ended by
   * itself keeps its place until it was read, so that a key meant for it hits no other.
   */
  #end(ask: Ask, words: string, yes: boolean): void {
    const first = ask.ending === null;
    if (!first && words === NO_LONGER_OPEN) return;
    const answeredHere = ask.sending !== null;
    ask.ending = { words, yes };
    ask.sending = null;
    ask.problem = null;
    if (this.current === ask.id) this.#makeCurrent(answeredHere ? this.asks.heir(ask.id) : undefined);
    if (first) setTimeout(() => this.#forget(ask.id), ENDING_MS);
  }

  #forget(id: QuestionId): void {
    const heir = this.asks.heir(id);
    this.asks.remove(id);
    if (this.current === null) this.#makeCurrent(heir);
  }

  /** Answers a question as it was shown: the digest is that of the drawn content. */
  async answer(question: Question, verdict: Verdict): Promise<void> {
    const ask = this.asks.find(question.id);
    if (!ask || ask.ending || ask.sending || this.down !== null) return;
    ask.sending = verdict.kind;
    ask.problem = null;
    const { id, digest } = question;
    try {
      await this.#call({ method: "answer", params: { id, digest, verdict, surface: "window" } });
    } catch (thrown) {
      await this.#answerFailed(id, asControlError(thrown));
    }
  }

  async #answerFailed(id: QuestionId, error: ControlError): Promise<void> {
    const ask = this.asks.find(id);
    if (!ask || ask.ending) return;
    ask.sending = null;
    if (error.code === "notPending") {
      this.#end(ask, NO_LONGER_OPEN, false);
      return;
    }
    if (error.code === "digestMismatch") await this.#readQuestions();
    ask.problem = answerProblem(error);
    ask.round += 1;
  }

  /** The rule in the making at a question; none closes the form. */
  setWish(id: QuestionId, wish: Wish | null): void {
    const ask = this.asks.find(id);
    if (ask && ask.ending === null) ask.wish = wish;
  }

  /** Denies a box's questions for so many seconds; none hears it again. */
  mute(id: BoxId, seconds: number | null): Promise<void> {
    return this.#verb(id, "mute", async () => {
      this.#putBox(await this.#call({ method: "mute", params: { ...toBox(id), seconds } }));
    });
  }

  /** Holds dialogs and notifications back for so many seconds; none ends that. */
  async quiet(seconds: number | null): Promise<void> {
    this.status = await this.#call<HostStatus>({ method: "quiet", params: { seconds } });
  }

  async #readQuestions(): Promise<void> {
    try {
      this.#setQuestions(await this.#call<Question[]>({ method: "questions" }));
    } catch {
      // The card already says that the answer did not count; the next snapshot brings the content.
    }
  }

  // Boxes

  #putBox(view: BoxView): void {
    const at = this.boxes.findIndex((box) => box.id === view.id);
    if (at >= 0) this.boxes[at] = view;
    else this.boxes.push(view);
  }

  #dropBox(id: BoxId): void {
    this.boxes = this.boxes.filter((box) => box.id !== id);
    if (this.highlighted === id) this.highlighted = null;
    delete this.doing[id];
  }

  questionsOf(id: BoxId): number {
    return this.asks.ofBox(id);
  }

  startBox(id: BoxId): Promise<void> {
    return this.#verb(id, "start", async () => this.#putBox(await this.#call({ method: "startBox", params: toBox(id) })));
  }

  stopBox(id: BoxId): Promise<void> {
    return this.#verb(id, "stop", async () => this.#putBox(await this.#call({ method: "stopBox", params: toBox(id) })));
  }

  pauseBox(id: BoxId): Promise<void> {
    return this.#verb(id, "pause", async () => this.#putBox(await this.#call({ method: "pauseBox", params: toBox(id) })));
  }

  resumeBox(id: BoxId): Promise<void> {
    return this.#verb(id, "resume", async () => this.#putBox(await this.#call({ method: "unpauseBox", params: toBox(id) })));
  }

  destroyBox(id: BoxId): Promise<void> {
    return this.#verb(id, "destroy", async () => {
      this.aftermath = await this.#call<Destroyed>({ method: "destroyBox", params: toBox(id) });
      this.#dropBox(id);
      // Its page has nothing more to show; what it left behind is said among the others.
      if (this.page === "box" && this.boxId === id) this.show("boxes");
    });
  }

  /** Gives a box another way out. Rejects, unlike the other verbs: its own form says why it did not happen. */
  async switchEgress(id: BoxId, mode: EgressMode): Promise<void> {
    if (this.doing[id]?.verb) throw new Error("Something else is being done with this box.");
    this.doing[id] = { verb: "switch", problem: null };
    try {
      this.#putBox(await this.#call({ method: "switchEgress", params: { ...toBox(id), mode } }));
    } finally {
      delete this.doing[id];
    }
  }

  /** How a box stands with the network. */
  egress(id: BoxId): Promise<EgressView> {
    return this.#call({ method: "egress", params: toBox(id) });
  }

  /** Why a line of traffic was stopped. */
  explainEgress(id: BoxId, event: string): Promise<EgressExplained> {
    return this.#call({ method: "explainEgress", params: { ...toBox(id), event } });
  }

  /** Adds a rule, or says what it would change. */
  changeEgress(change: EgressChange): Promise<EgressChanged> {
    return this.#call({ method: "changeEgress", params: change });
  }

  /** The least policy under which a box's recorded traffic would have passed. */
  suggestEgress(id: BoxId): Promise<EgressSuggested> {
    return this.#call({ method: "suggestEgress", params: { ...toBox(id), since: null } });
  }

  /** How often a box called agents' APIs. */
  apiUse(id: BoxId): Promise<ApiUse[]> {
    return this.#call({ method: "apiUse", params: { ...toBox(id), since: null } });
  }

  /** A person's word on what a repository asks for, at the text that was shown. */
  answerRepository(id: BoxId, digest: string, accept: boolean): Promise<EgressView> {
    return this.#call({ method: "answerRepository", params: { ...toBox(id), digest, accept } });
  }

  /** Credentials may be put into requests to this host again. */
  acknowledgeEcho(host: string): Promise<boolean> {
    return this.#call({ method: "acknowledgeEcho", params: { host } });
  }

  whatIfDestroyed(id: BoxId): Promise<Loss> {
    return this.#call({ method: "whatIfDestroyed", params: toBox(id) });
  }

  details(id: BoxId): Promise<BoxDetails> {
    return this.#call({ method: "details", params: toBox(id) });
  }

  /** What its agents want to hear from a person: a plan, or questions of their own. */
  agentAsks(id: BoxId): Promise<AgentAsks[]> {
    return this.#call({ method: "agentAsks", params: toBox(id) });
  }

  /** The newest record of a box; none when there is none. */
  async lastActivity(id: BoxId): Promise<AuditRecord | null> {
    const query: AuditQuery = { ...toBox(id), kinds: [], text: null, since: null, until: null, after: null, limit: 1 };
    return (await this.activity(query))?.at(-1) ?? null;
  }

  /** Keeps a box's tasks and services up to date until what it returns is called. */
  followUnits(id: BoxId): () => void {
    this.units = { ...this.units, [id]: null };
    void this.#readUnits(id);
    return () => {
      const { [id]: _, ...others } = this.units;
      this.units = others;
    };
  }

  /** A box may tell its state as often as it likes; it is read one at a time and not too often. */
  async #readUnits(id: BoxId): Promise<void> {
    if (this.#reading.has(id)) {
      this.#reading.set(id, true);
      return;
    }
    this.#reading.set(id, false);
    await this.#askUnits(id);
    setTimeout(() => {
      const again = this.#reading.get(id) && id in this.units;
      this.#reading.delete(id);
      if (again) void this.#readUnits(id);
    }, UNITS_MS);
  }

  async #askUnits(id: BoxId): Promise<void> {
    try {
      const units = await this.#call<BoxStatus | null>({ method: "units", params: toBox(id) });
      if (id in this.units) this.units = { ...this.units, [id]: units };
    } catch {
      // The card shows what it knew; the next change, or the host's return, asks again.
    }
  }

  /** For pages that read bytes or files of a box. */
  get backend(): Backend {
    return this.#backend;
  }

  openPlace(id: BoxId, place: Place): Promise<void> {
    return this.#backend.openPlace(id, place);
  }

  /** Measures one box, or all of them, until what it returns is called. */
  followUsage(id: BoxId | null = null): () => void {
    const target = id === null ? null : toBox(id).target;
    const request: Request = { method: "followUsage", params: { target, everyMs: USAGE_MS } };
    const call = this.#backend.begin<void>(request, (event) => {
      if (event.type !== "usage" || this.#measuring !== call) return;
      this.usage = Object.fromEntries(event.usage.boxes.map((one) => [one.id, one]));
      this.history = remembered(this.history, event.usage.boxes, Date.now());
    });
    this.#measuring = call;
    // It never ends well: the host went, or the page was left. The next page may measure already.
    const over = () => {
      if (this.#measuring === call) this.usage = {};
    };
    call.done.catch(() => {}).finally(over);
    return call.end;
  }

  async #verb(id: BoxId, verb: Verb, act: () => Promise<void>): Promise<void> {
    if (this.doing[id]?.verb) return;
    this.doing[id] = { verb, problem: null };
    try {
      await act();
      delete this.doing[id];
    } catch (thrown) {
      this.doing[id] = { verb: null, problem: asControlError(thrown) };
    }
  }

  // What people set up and look up. Pages keep what they read for as long as they are open.

  integrations(): Promise<IntegrationView[]> {
    return this.#call({ method: "integrations", params: { cwd: null } });
  }

  /** For all projects. */
  setIntegration(service: string, enabled: boolean): Promise<IntegrationView> {
    return this.#call({ method: "setIntegration", params: { service, enabled, layer: "global", cwd: null } });
  }

  testIntegration(service: string): Promise<Tried> {
    return this.#call({ method: "testIntegration", params: { service, cwd: null } });
  }

  credentials(): Promise<SecretView[]> {
    return this.#call({ method: "secrets" });
  }

  /** Sends a value on its way; no trace of it stays here. */
  async setCredential(id: SecretId, value: string, scope: SecretScope, hosts: string[] | null): Promise<void> {
    await this.#call({ method: "setSecret", params: { id, value, scope, hosts } });
  }

  async removeCredential(id: SecretId, scope: SecretScope): Promise<void> {
    await this.#call({ method: "removeSecret", params: { id, scope } });
  }

  testCredential(id: SecretId, scope: SecretScope): Promise<Tried> {
    return this.#call({ method: "testSecret", params: { id, scope } });
  }

  rules(): Promise<Grant[]> {
    return this.#call({ method: "grants" });
  }

  async removeRule(id: GrantId): Promise<void> {
    await this.#call({ method: "revokeGrant", params: { id } });
  }

  activity(query: AuditQuery): Promise<AuditRecord[]> {
    return this.#call({ method: "audit", params: query });
  }

  verifyActivity(): Promise<AuditVerdict> {
    return this.#call({ method: "auditVerify" });
  }

  #call<T>(request: Request): Promise<T> {
    return this.#backend.call<T>(request);
  }
}

function toBox(id: BoxId) {
  return { target: { query: id, cwd: null } };
}
