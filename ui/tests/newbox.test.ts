// Making a box in the window: the form's states, the steps, and how it ends.
import { describe, expect, test } from "vitest";
import type { CarryLine } from "../src/lib/bindings/CarryLine";
import type { CarryPlan } from "../src/lib/bindings/CarryPlan";
import type { CreateBox } from "../src/lib/bindings/CreateBox";
import type { FolderView } from "../src/lib/bindings/FolderView";
import type { Progress } from "../src/lib/bindings/Progress";
import type { ProjectView } from "../src/lib/bindings/ProjectView";
import { parseCount, parseCpus, parseSize, sizeText } from "../src/lib/limits";
import { PLAN, duration, told, waiting } from "../src/lib/making";
import { error } from "./fake";
import { keepSettings, setting, view } from "./registry";
import { box, files, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const limits = { memoryBytes: null, nanoCpus: null, pids: null, diskBytes: null };
const folder = (over: Partial<FolderView> = {}): FolderView => ({
  folder: "/home/ada/shop-api",
  project: "shop-api",
  projectRoot: "/home/ada/shop-api",
  repository: { current: "main", branches: ["main", "release"], remoteBranches: ["origin/main", "origin/far"], uncommitted: 2 },
  envFiles: [".env", "api/.env.local"],
  withEnv: false,
  checkpoints: [],
  limits,
  ...over,
});
const created = () => ({ ...box({ name: "fix" }), nested: [], skipped: [] as string[], withEnv: [] as string[], warnings: [] as string[] });
const step = (name: string, state: Progress["state"], over: Partial<Progress> = {}) =>
  ({ type: "progress", progress: { step: name, state, detail: null, fraction: null, elapsedMs: 400, ...over } }) as const;

async function open(found: FolderView | Error | null = folder(), projects: ProjectView[] = []) {
  const window = await openWindow();
  window.host.on("projects", () => projects);
  window.host.on("lookAtFolder", () => {
    if (found instanceof Error) throw error("usage", found.message, "look again");
    return found;
  });
  window.app.show("new");
  await pass(0);
  return window;
}

async function filled(found: FolderView = folder()) {
  const window = await open(found);
  await window.user.type(at("new-folder"), "/home/ada/shop-api");
  await window.user.tab();
  await pass(0);
  const create = async () => {
    await window.user.click(at("new-create"));
    await pass(0);
    return window.host.begun.find((call) => call.request.method === "createBox");
  };
  return { ...window, create };
}

const out = (mode: string) => setting("egress.mode", { takes: { kind: "oneOf", words: ["locked", "balanced", "observe", "open"] }, value: mode, from: "global" });

test("the way out is as the settings say, until another is chosen", async () => {
  const window = await open();
  keepSettings(window.host, view({ settings: [out("balanced")] }));
  await window.app.newBox.setFolder("/home/ada/shop-api");
  await pass(0);
  expect(window.host.called("settings").at(-1)?.params).toEqual({ cwd: "/home/ada/shop-api" });
  await window.user.click(at("new-more"));
  const chosen = () => document.querySelector<HTMLInputElement>("input[name=new-egress]:checked")?.value;
  expect(chosen()).toBe("balanced");
  expect(words("new-box")).toContain("Balanced (as the settings say)");
  expect(words("new-box")).toContain("Every address can be reached, and nothing is recorded.");
  const sent = () => window.app.newBox.form.egress;
  expect(sent()).toBeNull();
  await window.user.click(at("new-egress-locked"));
  expect(sent()).toBe("locked");
  expect(maybe("new-egress-asks")).toBeNull();
  await window.user.click(at("new-egress-open"));
  expect(words("new-egress-asks")).toContain("you are asked once more");
  await window.user.click(at("new-create"));
  await pass(0);
  const call = window.host.begun.find((one) => one.request.method === "createBox");
  expect(asked(call)?.egress).toBe("open");
});

test("what the settings say is not said again; another folder forgets the choice", async () => {
  const { app, user, host, create } = await filled();
  keepSettings(host, view({ settings: [out("open")] }));
  await app.newBox.setFolder("/home/ada/other");
  await pass(0);
  await user.click(at("new-more"));
  await user.click(at("new-egress-locked"));
  await user.click(at("new-egress-open"));
  expect(app.newBox.form.egress).toBeNull();
  await user.click(at("new-egress-locked"));
  await app.newBox.setFolder("/home/ada/shop-api");
  await pass(0);
  expect(app.newBox.form.egress).toBeNull();
  expect(asked(await create())).not.toHaveProperty("egress");
});

const asked = (call: { request: { method: string } } | undefined) =>
  (call?.request as { params: CreateBox } | undefined)?.params;
const states = () =>
  [...document.querySelectorAll<HTMLElement>("[data-testid=making-step]")].map((li) => [li.dataset["step"], li.dataset["state"]]);

describe("the form", () => {
  test("begins with the folder alone, focused, and nothing to create", async () => {
    await open();
    expect(document.activeElement).toBe(at("new-folder"));
    expect(maybe("new-name")).toBeNull();
    expect((at("new-create") as HTMLButtonElement).disabled).toBe(true);
    expect(at("nav-boxes").getAttribute("aria-current")).toBe("page");
  });

  test("says what is in the folder, and offers what fits it", async () => {
    await filled();
    expect(words("folder-found")).toContain("Project shop-api, on main.");
    expect(words("folder-found")).toContain("2 files with uncommitted changes");
    expect(words("env-files")).toBe(".env, api/.env.local");
    expect(maybe("new-checkpoint")).toBeNull();
    expect((at("new-create") as HTMLButtonElement).disabled).toBe(false);
  });

  test("without a repository there are no branches to choose", async () => {
    await filled(folder({ repository: null, envFiles: [] }));
    expect(words("folder-found")).toContain("no git repository");
    expect(maybe("branch-here")).toBeNull();
    expect(maybe("new-env")).toBeNull();
  });

  test("a folder that is not there is said at the field", async () => {
    const { user, host } = await open(new Error("the folder /x is not there"));
    await user.type(at("new-folder"), "/x{Enter}");
    await pass(0);
    expect(words("folder-found")).toContain("the folder /x is not there");
    expect(words("folder-found")).toContain("look again");
    expect(host.begun).toHaveLength(0);
  });

  test("recent projects are a click away, and go once a folder is given", async () => {
    const projects = [{ name: "shop-api", root: "/home/ada/shop-api", boxes: 2, lastUsed: 1 }];
    const { user, host } = await open(folder(), projects);
    expect(words("recent-shop-api")).toBe("shop-api /home/ada/shop-api 2 boxes");
    await user.click(at("recent-shop-api"));
    await pass(0);
    expect(host.called("lookAtFolder")[0]?.params.path).toBe("/home/ada/shop-api");
    expect(maybe("recent-shop-api")).toBeNull();
  });

  test("the desktop's own window fills the field, or leaves it", async () => {
    const { user, host } = await open();
    await user.click(at("choose-folder"));
    await pass(0);
    expect((at("new-folder") as HTMLInputElement).value).toBe("");
    host.folder = "/home/ada/shop-api";
    await user.click(at("choose-folder"));
    await pass(0);
    expect((at("new-folder") as HTMLInputElement).value).toBe("/home/ada/shop-api");
    host.folder = error("failed", "No folder can be chosen.");
    await user.click(at("choose-folder"));
    await pass(0);
    expect(words("folder-found")).toContain("No folder can be chosen.");
    expect(host.chosenFrom).toEqual([null, null, "/home/ada/shop-api"]);
  });

  test("what is wrong is said at its field, and nothing is asked of the host", async () => {
    const { user, create } = await filled();
    await user.type(at("new-name"), "My Box");
    await user.click(at("new-more"));
    await user.type(at("new-memory"), "lots");
    await user.click(at("branch-on"));
    expect(await create()).toBeUndefined();
    expect(words("new-name-about")).toContain("a–z");
    expect(at("new-name").getAttribute("aria-invalid")).toBe("true");
    expect(words("new-memory-about")).toContain("A size");
    expect(document.querySelector("main")?.textContent).toContain("Choose a branch.");
  });

  test("asks the host for exactly what was chosen", async () => {
    const checkpoint = { id: "img:1", name: "warm", project: "shop-api", projectRoot: "/home/ada/shop-api", boxName: "a", createdAt: 1, default: true, kind: "layered", parents: [], bytes: 1, base: null, includesEnv: false } as const;
    const { user, create } = await filled(folder({ checkpoints: [{ ...checkpoint, parents: [] }] }));
    await user.type(at("new-name"), "fix");
    await user.click(at("branch-on"));
    const options = [...at("on-branch").querySelectorAll("option")].map((option) => option.value);
    expect(options).toEqual(["", "release", "far"]);
    await user.selectOptions(at("on-branch"), "release");
    await user.selectOptions(at("new-checkpoint"), "img:1");
    await user.click(at("new-env"));
    await user.click(at("new-more"));
    await user.type(at("new-memory"), "4g");
    await user.type(at("new-cpus"), "1.5");
    await user.selectOptions(at("new-screen"), "no");
    expect(asked(await create())).toEqual({
      workspace: "/home/ada/shop-api",
      name: "fix",
      image: null,
      vnc: false,
      docker: null,
      snapshot: "img:1",
      fromBranch: null,
      useBranch: "release",
      withEnv: true,
      limits: { memoryBytes: 4 * 2 ** 30, nanoCpus: 1_500_000_000, pids: null, diskBytes: null },
      keepOnFailure: false,
      carry: null,
      goesOn: true,
    });
  });

  test("Escape goes back to the boxes, from a field too it is left alone", async () => {
    const { user, app } = await open();
    await user.keyboard("{Escape}");
    expect(app.page).toBe("new");
    at("choose-folder").focus();
    await user.keyboard("{Escape}");
    expect(app.page).toBe("boxes");
  });
});

describe("files from this computer", () => {
  const line = (over: Partial<CarryLine> = {}): CarryLine => ({
    src: "~/.npmrc",
    dest: "/home/vscode/.npmrc",
    kind: "file",
    bytes: 1200,
    mode: "0600",
    user: null,
    notes: [],
    warnings: [],
    ...over,
  });
  const plan = (over: Partial<CarryPlan> = {}): CarryPlan => ({
    files: [line()],
    digest: "d",
    warnings: [],
    remembered: null,
    changes: null,
    ...over,
  });

  async function carrying(found: CarryPlan | (() => CarryPlan)) {
    const window = await open();
    window.host.on("carryPlan", () => (typeof found === "function" ? found() : found));
    await window.user.type(at("new-folder"), "/home/ada/shop-api");
    await window.user.tab();
    await pass(0);
    const create = async () => {
      await window.user.click(at("new-create"));
      await pass(0);
      return asked(window.host.begun.find((call) => call.request.method === "createBox"));
    };
    return { ...window, create };
  }

  test("are listed: from where to where, how large, which mode, and what to look at twice", async () => {
    const { host } = await carrying(
      plan({
        files: [
          line({ warnings: ["looks like a credential"] }),
          line({ src: "~/dots", dest: "/home/vscode/dots", kind: "folder", bytes: 34_000, mode: null, notes: ["optional"], warnings: ["a link leaves your home"] }),
          line({ src: "~/gone", dest: "/x", kind: "missing", bytes: 0, mode: null, user: 0 }),
        ],
        warnings: ["carry: a pattern matches nothing"],
      }),
    );
    expect(host.called("carryPlan").map((call) => call.params)).toEqual([{ workspace: "/home/ada/shop-api" }]);
    const files = [...document.querySelectorAll("[data-testid=carry-file]")].map((li) => li.textContent?.replace(/\s+/g, " ").trim());
    expect(files).toEqual([
      "~/.npmrc → /home/vscode/.npmrc 1.2 KB 0600 ⚠ looks like a credential",
      "~/dots → /home/vscode/dots 34 KB folder, optional ⚠ a link leaves your home",
      "~/gone → /x not there user 0",
    ]);
    expect(words("carry")).toContain("2 entries of this computer in the box, 35 KB together");
    expect(words("carry")).toContain("a pattern matches nothing");
    expect(words("carry-says")).toContain("You are asked before anything is copied: in the dialog, or in the inbox.");
  });

  test("are asked about by the host unless they stay here; nothing on the page says yes", async () => {
    const { create } = await carrying(plan());
    expect((at("carry-ask") as HTMLInputElement).checked).toBe(true);
    expect((await create())?.carry).toBeNull();
  });

  test("stay here when one says so", async () => {
    const { create, user } = await carrying(plan());
    await user.click(at("carry-skip"));
    expect(words("carry-says")).toBe("The box is made without them.");
    expect((await create())?.carry).toEqual({ kind: "skip" });
  });

  test("that a rule covers, or that changed since a yes, say so", async () => {
    await carrying(plan({ remembered: "Let every box of shop-api have 1 file." }));
    expect(words("carry-says")).toContain("A rule says yes to exactly this list");
    expect(words("carry-says")).toContain("Let every box of shop-api have 1 file.");
    expect(words("carry")).toContain("As the rule says (default)");
  });

  test("how the list differs from the last yes is told", async () => {
    await carrying(plan({ changes: "1 new, 2 as they were" }));
    expect(words("carry-says")).toContain("Since your last yes: 1 new, 2 as they were.");
  });

  test("none wanted: nothing is said", async () => {
    const { create } = await carrying(plan({ files: [] }));
    expect(maybe("carry")).toBeNull();
    expect((await create())?.carry).toBeNull();
  });

  test("a list that cannot be read says why, and can be tried again", async () => {
    let bad = true;
    const { user } = await carrying(() => {
      if (bad) throw error("usage", "agentbox.yaml: carry is no list", "repair it");
      return plan();
    });
    expect(words("carry-problem")).toContain("carry is no list repair it");
    bad = false;
    await user.click(at("carry-again"));
    await pass(0);
    expect(maybe("carry-file")).not.toBeNull();
  });

  test("another folder is another list, and the choice begins anew", async () => {
    const { user, host } = await carrying(plan());
    await user.click(at("carry-skip"));
    host.on("carryPlan", () => plan({ files: [line({ src: "~/other" })] }));
    await user.clear(at("new-folder"));
    await user.type(at("new-folder"), "/home/ada/docs");
    await user.tab();
    await pass(0);
    expect(words("carry-file")).toContain("~/other");
    expect((at("carry-ask") as HTMLInputElement).checked).toBe(true);
  });
});

describe("the steps", () => {
  test("tick as they come, with bars and times, and lead to the box's page", async () => {
    const { create, app } = await filled();
    const call = await create();
    expect(states()).toEqual(PLAN.map((name) => [name, "waiting"]));
    call?.tell(step("Build the box image", "running", { detail: "Step 4/9", fraction: 0.4 }));
    await pass(0);
    expect(states()[0]).toEqual(["Build the box image", "running"]);
    expect(words("making")).toContain("Step 4/9");
    expect(document.querySelector("progress")?.getAttribute("value")).toBe("0.4");
    call?.tell(step("Build the box image", "done"));
    call?.tell(step("Look at the project", "done"));
    call?.tell(step("Make the box", "running"));
    await pass(2000);
    expect(states().map(([, state]) => state)).toEqual(["done", "done", "running", "waiting"]);
    expect(words("making")).toContain("Look at the project: done 0.4 s");
    call?.finish(created());
    await pass(0);
    expect(app.page).toBe("box");
    expect(words("made")).toContain("fix is ready. Work in it in a terminal with agentbox shell fix");
    expect(maybe("box-fix")).not.toBeNull();
  });

  test("a failure names the step, the reason and what to do, and the form is kept", async () => {
    const { create, user } = await filled();
    await user.type(at("new-name"), "fix");
    const call = await create();
    call?.tell(step("Look at the project", "done"));
    call?.tell(step("Make the box", "failed"));
    call?.fail(error("engine", "the engine went away", "is it still running?"));
    await pass(0);
    expect(words("making-title")).toBe("fix was not made");
    expect(words("making-problem")).toContain("Make the box: the engine went away is it still running?");
    expect(document.activeElement).toBe(at("making-back"));
    await user.click(at("making-back"));
    await pass(0);
    expect((at("new-name") as HTMLInputElement).value).toBe("fix");
  });

  test("a question about files is said where the box is made, and leads to its answers", async () => {
    const { user, say, create } = await filled();
    await create();
    expect(maybe("making-asks")).toBeNull();
    await say({ type: "asked", question: question({ id: "other", digest: "d" }) });
    expect(maybe("making-asks")).toBeNull();
    await say({ type: "asked", question: files() });
    expect(words("making-asks")).toContain("It waits for your answer: Copy 2 files and folders into the new box fix-login.");
    await user.click(at("making-answer"));
    expect(document.querySelector("h1")?.textContent).toBe("Inbox");
    expect(at("question-q1").getAttribute("aria-current")).toBe("true");
  });

  test("Cancel ends the call and says what becomes of it", async () => {
    const { create, user } = await filled();
    const call = await create();
    call?.tell(step("Copy the project", "running"));
    await pass(0);
    await user.click(at("making-cancel"));
    await pass(0);
    expect(call?.ended).toBe(true);
    expect(words("making-title")).toContain("was called off");
    expect(words("making")).toContain("is taken back");
    expect(states().at(-1)).toEqual(["Copy the project", "off"]);
  });

  test("called off too late, the box is there all the same, without an agent", async () => {
    const { create, user, host, app } = await filled();
    await user.click(at("agent-claude"));
    const call = await create();
    call?.finish(created());
    app.newBox.callOff();
    await pass(0);
    expect(maybe("box-fix")).not.toBeNull();
    expect(words("made")).toContain("agentbox shell fix");
    expect(host.called("startSession")).toEqual([]);
  });

  test("it goes on while somebody looks elsewhere, who then stays there", async () => {
    const { create, app, user } = await filled();
    const call = await create();
    await user.click(at("nav-boxes"));
    expect(words("see-making")).toBe("shop-api is being made");
    await user.click(at("nav-rules"));
    call?.finish(created());
    await pass(0);
    expect(app.page).toBe("rules");
    await user.click(at("nav-boxes"));
    expect(words("made")).toContain("fix is ready");
  });

  test("a chosen agent is started as the last step", async () => {
    const { create, user, host } = await filled();
    await user.click(at("agent-claude"));
    const call = await create();
    expect(states().at(-1)).toEqual(["Start Claude Code", "waiting"]);
    call?.finish(created());
    await pass(0);
    const start = host.called("startSession")[0]?.params;
    expect(start?.target.query).toBe("b00000001");
    expect(start?.what).toMatchObject({ kind: "agent", agent: "claude" });
    expect(words("made")).toContain("Claude Code runs in it; show it in a terminal with agentbox attach fix");
  });

  test("an agent that does not start leaves the box, and says how to start it", async () => {
    const { create, user, host, app } = await filled();
    host.on("startSession", () => Promise.reject(error("failed", "codex is not in the image")));
    await user.click(at("agent-codex"));
    (await create())?.finish(created());
    await pass(0);
    app.show("new");
    await pass(0);
    expect(words("making-title")).toBe("fix is there, without its agent");
    expect(words("making-problem")).toContain("codex is not in the image");
    expect(words("making")).toContain("agentbox codex start fix");
    await user.click(at("making-go"));
    await pass(0);
    expect(maybe("box-fix")).not.toBeNull();
  });

  test("what stayed behind and what came along is told", async () => {
    const { create } = await filled();
    (await create())?.finish({ ...created(), skipped: ["src/a.rs"], withEnv: [".env"], warnings: ["the disk limit is not set"] });
    await pass(0);
    for (const part of ["src/a.rs", "came .env", "the disk limit is not set", "1 uncommitted file did not fit"]) {
      expect(words("made")).toContain(part);
    }
  });
});

test("limits are read as on the command line", () => {
  expect(["0", "512", "1k", "512m", "4G", "2gb"].map(parseSize)).toEqual([0, 512, 1024, 512 * 2 ** 20, 4 * 2 ** 30, 2 * 2 ** 30]);
  for (const bad of ["", "m", "-1", "1.5g", "1 x", "99999999999999999999"]) expect(parseSize(bad)).toBeNull();
  expect(["0", "2", "1.5", "0.25"].map(parseCpus)).toEqual([0, 2e9, 1.5e9, 0.25e9]);
  for (const bad of ["", ".", "1.", "-1", "1e3", "0.0001", "4096"]) expect(parseCpus(bad)).toBeNull();
  expect(parseCount("100")).toBe(100);
  expect(parseCount("1.5")).toBeNull();
  expect([4 * 2 ** 30, 1536 * 2 ** 20, 7].map(sizeText)).toEqual(["4g", "1536m", "7"]);
});

test("steps keep their order, and times are short", () => {
  const first = told(PLAN.map(waiting), step("Get the base image", "running", { elapsedMs: 0 }).progress, 1000);
  expect(first.map((one) => one.name)).toEqual(["Get the base image", ...PLAN]);
  const done = told(first, step("Get the base image", "done", { elapsedMs: 65_000 }).progress, 66_000);
  expect(done[0]).toMatchObject({ state: "done", tookMs: 65_000, since: 1000 });
  expect([350, 12_900, 65_000].map(duration)).toEqual(["0.3 s", "12 s", "1 min 05 s"]);
});
