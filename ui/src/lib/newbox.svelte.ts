// A box in the making: what the person chose, what the host found in the folder, and how it goes.
//
// It outlives the page that shows it: who looks at a question meanwhile finds the steps where they
// left them.
import type { Backend, LongCall } from "./backend";
import type { Agent } from "./bindings/Agent";
import type { CarryPlan } from "./bindings/CarryPlan";
import type { ControlError } from "./bindings/ControlError";
import type { CreateBox } from "./bindings/CreateBox";
import type { Created } from "./bindings/Created";
import type { EgressMode } from "./bindings/EgressMode";
import type { FolderView } from "./bindings/FolderView";
import type { ProjectView } from "./bindings/ProjectView";
import type { SettingsView } from "./bindings/SettingsView";
import { MODES } from "./egress";
import { Fetched } from "./fetched.svelte";
import { parseCount, parseCpus, parseSize } from "./limits";
import { PLAN, type Step, told, waiting } from "./making";
import { AGENT_TITLES, asControlError } from "./words";

/** The size of a terminal until somebody looks at it. */
const COLS = 120;
const ROWS = 40;

/** Where the box's branch comes from. */
export type Branch = "here" | "from" | "on";
/** As the settings say, or otherwise. */
export type Wanted = "default" | "yes" | "no";

export interface Form {
  folder: string;
  name: string;
  agent: Agent | "none";
  branch: Branch;
  from: string;
  on: string;
  /** Empty is the project's default. */
  checkpoint: string;
  withEnv: boolean;
  memory: string;
  cpus: string;
  pids: string;
  disk: string;
  screen: Wanted;
  /** None is what the settings say. */
  egress: EgressMode | null;
  /** The files of this computer that `agentbox.yaml` names: the host asks, or they stay here. */
  carry: "ask" | "skip";
}

export interface Making {
  steps: Step[];
  /** What it will be called, as far as it is known. */
  name: string;
  agent: Agent | null;
  problem: ControlError | null;
  /** The box is there; only its agent did not start. */
  made: Created | null;
  calledOff: boolean;
}

const empty = (): Form => ({
  folder: "",
  name: "",
  agent: "none",
  branch: "here",
  from: "",
  on: "",
  checkpoint: "",
  withEnv: false,
  memory: "",
  cpus: "",
  pids: "",
  disk: "",
  screen: "default",
  egress: null,
  carry: "ask",
});

export class NewBox {
  form = $state<Form>(empty());
  making = $state<Making | null>(null);
  /** The box that was made last, until its notice is dismissed. */
  made = $state.raw<{ box: Created; agent: Agent | null } | null>(null);
  choosing = $state(false);
  chooserProblem = $state.raw<ControlError | null>(null);
  readonly projects: Fetched<ProjectView[]>;
  readonly look: Fetched<FolderView>;
  /** What of this computer would be copied. */
  readonly carry: Fetched<CarryPlan | null>;
  /** How the project's boxes get out as the settings have it; none when nobody says. */
  readonly usualEgress: Fetched<EgressMode | null>;
  /** The text [`look`] is about. */
  #looked = "";

  readonly #backend: Backend;
  readonly #onMade: (made: Created) => void;
  #call: LongCall<Created> | null = null;

  constructor(backend: Backend, onMade: (made: Created) => void) {
    this.#backend = backend;
    this.#onMade = onMade;
    this.projects = new Fetched(() => backend.call({ method: "projects" }));
    this.look = new Fetched(() => backend.call({ method: "lookAtFolder", params: { path: this.#looked } }));
    this.carry = new Fetched(() => {
      const workspace = this.look.value?.folder ?? this.#looked;
      return backend.call({ method: "carryPlan", params: { workspace } });
    });
    this.usualEgress = new Fetched(async () => {
      const cwd = this.look.value?.folder ?? null;
      const settings = await backend.call<SettingsView | null>({ method: "settings", params: { cwd } });
      const value = settings?.settings.find((one) => one.key === "egress.mode")?.value;
      return MODES.find((mode) => mode === value) ?? null;
    });
  }

  get busy(): boolean {
    return this.making !== null && this.making.problem === null && !this.making.calledOff;
  }

  // The folder

  async setFolder(folder: string): Promise<void> {
    this.form.folder = folder;
    await this.lookAt();
  }

  /** Looks at what is in the field, once. */
  async lookAt(again = false): Promise<void> {
    const path = this.form.folder.trim();
    if (path === this.#looked && !again) return;
    this.#looked = path;
    this.look.clear();
    this.carry.clear();
    this.usualEgress.clear();
    Object.assign(this.form, { branch: "here", from: "", on: "", checkpoint: "" });
    if (!again) Object.assign(this.form, { carry: "ask", egress: null });
    if (path === "") return;
    await this.look.load();
    if (path !== this.#looked || !this.look.value) return;
    this.form.withEnv = this.look.value.withEnv;
    void this.carry.load();
    void this.usualEgress.load();
  }

  async choose(): Promise<void> {
    if (this.choosing) return;
    this.choosing = true;
    this.chooserProblem = null;
    try {
      const chosen = await this.#backend.chooseFolder(this.form.folder.trim() || null);
      if (chosen !== null) await this.setFolder(chosen);
    } catch (thrown) {
      this.chooserProblem = asControlError(thrown);
    }
    this.choosing = false;
  }

  // Making it

  /** Why it cannot be made as it stands, by field. */
  get wrong(): Partial<Record<keyof Form, string>> {
    return mistakes(this.form, this.look.value);
  }

  async make(): Promise<void> {
    const folder = this.look.value;
    if (this.busy || folder === null || Object.keys(this.wrong).length > 0) return;
    const agent = this.form.agent === "none" ? null : this.form.agent;
    const names = agent ? [...PLAN, startStep(agent)] : PLAN;
    this.made = null;
    this.making = {
      steps: names.map(waiting),
      name: this.form.name.trim() || folder.project,
      agent,
      problem: null,
      made: null,
      calledOff: false,
    };
    const making = this.making;
    const create = { method: "createBox" as const, params: request(this.form, folder) };
    const call = this.#backend.begin<Created>(create, (event) => {
      if (event.type === "progress") making.steps = told(making.steps, event.progress, Date.now());
    });
    this.#call = call;
    try {
      const made = await call.done;
      making.name = made.name;
      making.made = made;
      // Called off too late, it is there all the same; nobody wants an agent to begin then.
      if (agent && !making.calledOff) await this.#start(making, made, agent);
      if (making.problem) this.#onMade(made);
      else this.#finish(made, making.calledOff ? null : agent);
    } catch (thrown) {
      if (!making.calledOff) making.problem = asControlError(thrown);
      making.steps = making.steps.map((step) => stopped(step, making.calledOff));
    }
    if (this.#call === call) this.#call = null;
  }

  async #start(making: Making, made: Created, agent: Agent): Promise<void> {
    const began = Date.now();
    const step = startStep(agent);
    const tell = (state: "running" | "done" | "failed") => {
      const progress = { step, state, detail: null, fraction: null, elapsedMs: Date.now() - began };
      making.steps = told(making.steps, progress, Date.now());
    };
    tell("running");
    try {
      await this.#backend.call({
        method: "startSession",
        params: {
          target: { query: made.id, cwd: null },
          what: { kind: "agent", agent, name: null, args: [], env: {}, sync: true },
          cols: COLS,
          rows: ROWS,
        },
      });
      tell("done");
    } catch (thrown) {
      tell("failed");
      making.problem = asControlError(thrown);
    }
  }

  #finish(box: Created, agent: Agent | null): void {
    this.made = { box, agent };
    this.reset();
    this.#onMade(box);
  }

  /** Takes back what was made so far. A box that is there stays. */
  callOff(): void {
    if (!this.making || !this.busy || this.making.made) return;
    this.making.calledOff = true;
    this.#call?.end();
  }

  /** Back to the form, with everything as it was chosen. */
  back(): void {
    if (this.busy) return;
    this.making = null;
    void this.lookAt(true);
  }

  /** An empty form for the next one. */
  reset(): void {
    this.making = null;
    this.form = empty();
    this.#looked = "";
    this.look.clear();
    this.carry.clear();
  }
}

function startStep(agent: Agent): string {
  return `Start ${AGENT_TITLES[agent]}`;
}

/** What was under way when everything ended did not end well. */
function stopped(step: Step, calledOff: boolean): Step {
  if (step.state !== "running") return step;
  return { ...step, state: calledOff ? "off" : "failed", fraction: null, tookMs: Date.now() - (step.since ?? Date.now()) };
}

export function mistakes(form: Form, folder: FolderView | null): Partial<Record<keyof Form, string>> {
  const wrong: Partial<Record<keyof Form, string>> = {};
  const name = form.name.trim();
  const fits = /^(?!.*-dash$)(?!\d+$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
  if (name && !fits.test(name)) {
    wrong.name = "Use up to 63 of a–z, 0–9 and -, with a letter, starting and ending with a letter or digit.";
  }
  if (folder?.repository && form.branch === "from" && !form.from) wrong.from = "Choose a branch.";
  if (folder?.repository && form.branch === "on" && !form.on) wrong.on = "Choose a branch.";
  const given = (text: string) => text.trim() !== "";
  if (given(form.memory) && parseSize(form.memory) === null) wrong.memory = "A size, such as 512m or 4g.";
  if (given(form.disk) && parseSize(form.disk) === null) wrong.disk = "A size, such as 20g.";
  if (given(form.cpus) && parseCpus(form.cpus) === null) wrong.cpus = "A number, such as 2 or 1.5.";
  if (given(form.pids) && parseCount(form.pids) === null) wrong.pids = "A whole number.";
  return wrong;
}

/** What the host is asked for. */
export function request(form: Form, folder: FolderView): CreateBox {
  const repository = folder.repository !== null;
  const wanted = (choice: Wanted) => (choice === "default" ? null : choice === "yes");
  const limit = (text: string, parse: (text: string) => number | null) => (text.trim() ? parse(text) : null);
  const asked = folder.envFiles === null || folder.envFiles.length > 0;
  return {
    workspace: folder.folder,
    name: form.name.trim() || null,
    image: null,
    vnc: wanted(form.screen),
    docker: null,
    snapshot: form.checkpoint || null,
    fromBranch: repository && form.branch === "from" ? form.from : null,
    useBranch: repository && form.branch === "on" ? form.on : null,
    withEnv: asked ? form.withEnv : null,
    limits: {
      memoryBytes: limit(form.memory, parseSize),
      nanoCpus: limit(form.cpus, parseCpus),
      pids: limit(form.pids, parseCount),
      diskBytes: limit(form.disk, parseSize),
    },
    keepOnFailure: false,
    // A yes is never said here: the host asks for it on its own.
    carry: form.carry === "skip" ? { kind: "skip" } : null,
    goesOn: true,
    ...(form.egress === null ? {} : { egress: form.egress }),
  };
}
