// The boxes: what their cards say, and what their verbs do.
import { describe, expect, test, vi } from "vitest";
import type { BoxState } from "../src/lib/bindings/BoxState";
import type { BoxStatus } from "../src/lib/bindings/BoxStatus";
import type { WhyDown } from "../src/lib/bindings/WhyDown";
import { error } from "./fake";
import { box, question, record, usage } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const open = (boxes = [box()], questions = [] as ReturnType<typeof question>[]) =>
  openWindow({ first: "boxes", boxes, questions });
const page = () => document.querySelector("main")?.textContent?.replace(/\s+/g, " ") ?? "";

test("no boxes: one sentence and the command", async () => {
  await open([]);
  expect(page()).toContain("No boxes yet");
  expect(document.querySelector("main code")?.textContent).toBe("agentbox create");
});

test("a card says name, state, branch, age and image", async () => {
  await open();
  const text = words("box-fix-login");
  for (const part of ["fix-login", "● running", "agentbox/fix-login", "2 h ago", "box:1"]) {
    expect(text).toContain(part);
  }
});

test.each<[BoxState, string, string[]]>([
  ["creating", "◌ being created", []],
  ["running", "● running", ["pause", "stop"]],
  ["paused", "‖ paused", ["resume", "stop"]],
  ["stopped", "○ stopped", ["start"]],
  ["missing", "✕ missing", []],
  ["unknown", "? unknown", []],
])("%s is a symbol with words, and offers what can be done", async (state, said, verbs) => {
  await open([box({ state })]);
  expect(words("box-fix-login")).toContain(said);
  expect(["start", "pause", "resume", "stop"].filter((verb) => maybe(`${verb}-fix-login`))).toEqual(verbs);
});

test.each<[WhyDown, string]>([
  [{ kind: "person" }, "○ stopped"],
  [{ kind: "rest" }, "○ stopped"],
  [{ kind: "ended", code: 0 }, "○ stopped: it ended by itself"],
  [{ kind: "ended", code: 3 }, "○ stopped: it ended by itself with code 3"],
  [{ kind: "outOfMemory" }, "○ stopped: it ran out of memory"],
  [{ kind: "killed" }, "○ stopped: it was killed from outside"],
  [{ kind: "stoppedOutside" }, "○ stopped: it was stopped outside AgentBox"],
  [{ kind: "removed" }, "○ stopped: its container was removed outside AgentBox"],
  [{ kind: "engineGone" }, "○ stopped: the container engine went away"],
])("%o is said of a box that is down", async (why, said) => {
  await open([box({ state: "stopped", down: { why, at: Date.now() } })]);
  const state = at("box-fix-login").querySelector(".state")?.textContent?.replace(/\s+/g, " ").trim();
  expect(state).toBe(said);
});

test("what an agent does is on its box's card, and whose login the box holds", async () => {
  const claude = { agent: "claude", state: "working", since: Date.now(), hasLogin: true } as const;
  const { say } = await open([box({ agents: [claude], logins: ["claude"] })]);
  expect(words("agent-fix-login-claude")).toContain("Claude");
  expect(words("agent-fix-login-claude")).toContain("works");
  expect(words("logins-fix-login")).toContain("the login of Claude");
  await say({ type: "boxChanged", view: box({ agents: [{ ...claude, state: "waiting" }] }) });
  expect(words("agent-fix-login-claude")).toContain("waits for you");
  for (const [state, said] of [
    ["end-plan", "has a plan for you"],
    ["question", "asks you something"],
    ["compacting", "compacting"],
    ["error", "stopped with an error"],
  ] as const) {
    await say({ type: "boxChanged", view: box({ agents: [{ ...claude, state }] }) });
    expect(words("agent-fix-login-claude")).toContain(said);
  }
  await say({ type: "boxChanged", view: box() });
  expect(maybe("agent-fix-login-claude")).toBeNull();
  expect(maybe("logins-fix-login")).toBeNull();
});

test("cards stand by project, and folders of one name are two projects", async () => {
  await open([
    box({ id: "b00000002", name: "perf", index: 2 }),
    box(),
    box({ id: "b00000003", name: "elsewhere", projectRoot: "/srv/shop-api" }),
  ]);
  const groups = [...document.querySelectorAll("section.project")].map((group) =>
    [...group.querySelectorAll("h3")].map((name) => name.textContent),
  );
  expect(groups).toEqual([["fix-login", "perf"], ["elsewhere"]]);
});

test("open questions are counted and lead to the inbox", async () => {
  const { user } = await open([box()], [question(), question({ id: "q2", digest: "d2" })]);
  expect(words("questions-fix-login")).toBe("2 questions");
  await user.click(at("questions-fix-login"));
  expect(maybe("question-q1")).not.toBeNull();
});

test("boxes come, change and go with the host's events", async () => {
  const { say } = await open([]);
  await say({ type: "boxChanged", view: box({ state: "creating" }) });
  expect(words("box-fix-login")).toContain("being created");
  await say({ type: "boxChanged", view: box({ state: "running" }) });
  expect(words("box-fix-login")).toContain("● running");
  await say({ type: "boxRemoved", id: "b00000001" });
  expect(maybe("box-fix-login")).toBeNull();
});

test("hostile text stays text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  await open([box({ project: evil, projectRoot: evil, branch: evil, image: evil })]);
  expect(document.querySelectorAll("img")).toHaveLength(0);
  expect(page()).toContain(evil);
});

test("no boxes: a new one is a click away", async () => {
  const { user, app } = await open([]);
  await user.click(at("new-box-button"));
  expect(app.page).toBe("new");
});

test("how long a box runs is asked of the host once for each start", async () => {
  const { host, say } = await open([box({ state: "stopped" })]);
  expect(maybe("uptime-fix-login")).toBeNull();
  host.on("details", () => ({ startedAt: Date.now() - 3 * 3_600_000 }));
  await say({ type: "boxChanged", view: box() });
  await pass(0);
  expect(words("uptime-fix-login")).toBe("Uptime 3 h");
  await say({ type: "boxChanged", view: box({ questions: 1 }) });
  await pass(0);
  expect(host.called("details")).toHaveLength(1);
});

test("what a box uses is measured while its page is shown", async () => {
  const { host, user } = await open();
  const call = host.begun[0];
  expect(call?.request.method).toBe("followUsage");
  const disk = { boxesBytes: null, imagesBytes: null, freeBytes: null };
  call?.tell({ type: "usage", usage: { boxes: [usage()], disk } });
  await pass(0);
  expect([words("cpu-fix-login"), words("memory-fix-login")]).toEqual(["CPU 12 %", "Memory 340 MB of 4.0 GB"]);
  expect(maybe("cpu-line-fix-login")).toBeNull();
  await pass(3000);
  call?.tell({ type: "usage", usage: { boxes: [usage({ cpuPercent: 80 })], disk } });
  await pass(0);
  expect(at("cpu-line-fix-login").getAttribute("aria-label")).toBe("CPU in the last minutes, at most 80 %");
  expect(at("memory-line-fix-login").getAttribute("aria-label")).toBe("Memory in the last minutes, at most 340 MB");
  await user.click(at("nav-inbox"));
  expect(call?.ended).toBe(true);
});

test("web app and screen are opened by the host's word, or say why not", async () => {
  const web = "http://fix-login.localhost:1355";
  const { host, user, say } = await open([box({ web, screen: null })]);
  expect(maybe("open-screen-fix-login")).toBeNull();
  await user.click(at("open-web-fix-login"));
  await pass(0);
  expect(host.opened).toEqual([["b00000001", "web"]]);
  host.openFails = error("failed", "No browser could be started.");
  await user.click(at("open-web-fix-login"));
  await pass(0);
  expect(words("box-fix-login")).toContain("No browser could be started.");
  await say({ type: "boxChanged", view: box({ web, state: "stopped" }) });
  expect(maybe("open-web-fix-login")).toBeNull();
});

describe("verbs", () => {
  test("Stop asks first where an agent is at work", async () => {
    const working = { agent: "claude", state: "working", since: Date.now(), hasLogin: false } as const;
    const { host, user } = await open([box({ agents: [working] })]);
    host.on("stopBox", () => box({ state: "stopped" }));
    await user.click(at("stop-fix-login"));
    expect(words("confirm-stop-fix-login")).toContain("Claude works. Stopping ends every program");
    expect(host.called("stopBox")).toHaveLength(0);
    await user.click(at("confirm-no-stop-fix-login"));
    expect(document.activeElement).toBe(at("stop-fix-login"));
    await user.click(at("stop-fix-login"));
    await user.click(at("confirm-yes-stop-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("○ stopped");
    expect(maybe("confirm-stop-fix-login")).toBeNull();
  });

  test("pause and resume ask the host and show what came of it", async () => {
    const { host, user } = await open();
    host.on("pauseBox", () => box({ state: "paused" }));
    await user.click(at("pause-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("‖ paused");
    host.on("unpauseBox", () => box({ state: "running" }));
    await user.click(at("resume-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("● running");
    expect(host.called("unpauseBox")[0]?.params.target.query).toBe("b00000001");
  });

  test("Stop stops that box, and says so while it does", async () => {
    const { host, user } = await open();
    let done = (_: unknown) => {};
    host.on("stopBox", () => new Promise((resolve) => (done = resolve)));
    await user.click(at("stop-fix-login"));
    expect(words("stop-fix-login")).toBe("Stopping…");
    expect(host.called("stopBox")[0]?.params.target).toEqual({ query: "b00000001", cwd: null });
    done(box({ state: "stopped" }));
    await pass(0);
    expect(words("box-fix-login")).toContain("○ stopped");
  });

  test("Start starts it", async () => {
    const { host, user } = await open([box({ state: "stopped" })]);
    host.on("startBox", () => box());
    await user.click(at("start-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("● running");
  });

  test("a failure stands on the card with its hints until the next try", async () => {
    const { host, user } = await open();
    host.on("stopBox", () => Promise.reject(error("engine", "no engine answers", "start Docker")));
    await user.click(at("stop-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("no engine answers");
    expect(words("box-fix-login")).toContain("start Docker");
    host.on("stopBox", () => box({ state: "stopped" }));
    await user.click(at("stop-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).not.toContain("no engine answers");
  });
});

describe("Destroy…", () => {
  const destroyed = { view: box(), removed: [], absent: [], failed: [] as string[], keptBranches: [] as string[] };

  const nothing = { view: box(), uncommitted: [] as string[] | null, unpushed: [], unpushedCount: 0 as number | null, stranded: [] as string[] | null };

  async function confirm(uncommitted: string[] | null) {
    const opened = await open();
    opened.host.on("whatIfDestroyed", () => ({ ...nothing, uncommitted }));
    opened.host.on("destroyBox", () => destroyed);
    await opened.user.click(at("destroy-fix-login"));
    await pass(0);
    return opened;
  }

  test("asks first, lists what would be lost, and Cancel is the default", async () => {
    const { host, user } = await confirm([" M src/login.rs", "?? notes.txt"]);
    expect(words("confirm-destroy-fix-login")).toContain("2 uncommitted files would be lost");
    expect(words("confirm-destroy-fix-login")).toContain("?? notes.txt");
    expect(document.activeElement).toBe(at("keep-fix-login"));
    await user.keyboard("{Enter}");
    expect(maybe("confirm-destroy-fix-login")).toBeNull();
    expect(document.activeElement).toBe(at("destroy-fix-login"));
    expect(host.called("destroyBox")).toEqual([]);
  });

  test("Escape cancels", async () => {
    const { host, user } = await confirm([]);
    await user.keyboard("{Escape}");
    expect(maybe("confirm-destroy-fix-login")).toBeNull();
    expect(host.called("destroyBox")).toEqual([]);
  });

  test("says when there is nothing to lose, and when that is not known", async () => {
    await confirm([]);
    expect(words("confirm-destroy-fix-login")).toContain("It holds no uncommitted files.");
  });

  test("tells commits that are on no remote, and those that would be lost", async () => {
    const { host, user } = await open();
    host.on("whatIfDestroyed", () => ({
      ...nothing,
      unpushed: ["9f31c02 Check expiry"],
      unpushedCount: 1,
      stranded: ["1a77be4 Try it", "c0ffee1 <b>Bold</b>"],
    }));
    await user.click(at("destroy-fix-login"));
    await pass(0);
    expect(words("confirm-destroy-fix-login")).toContain("1 commit on its branch is on no remote");
    expect(words("confirm-destroy-fix-login")).toContain("2 commits on other branches in the box would be lost");
    expect(words("confirm-destroy-fix-login")).toContain("c0ffee1 <b>Bold</b>");
  });

  test("says when the box cannot be asked", async () => {
    await confirm(null);
    expect(words("confirm-destroy-fix-login")).toContain("it may hold uncommitted files");
  });

  test("an unknown loss is not shown as none", async () => {
    const { host, user } = await open();
    host.on("whatIfDestroyed", () => ({ ...nothing, unpushedCount: null, stranded: null }));
    await user.click(at("destroy-fix-login"));
    await pass(0);
    expect(words("confirm-destroy-fix-login")).toContain("it may hold uncommitted files and commits on other branches");
    expect(words("confirm-destroy-fix-login")).toContain("on a remote is not known");
    expect(words("confirm-destroy-fix-login")).not.toContain("It holds no uncommitted files");
  });

  test("destroys on a yes, and says what stayed", async () => {
    const { host, user } = await confirm([]);
    host.on("destroyBox", () => ({
      ...destroyed,
      failed: ["network agentbox-fix-login: in use"],
      keptBranches: ["agentbox/fix-login"],
    }));
    await user.click(at("destroy-for-good-fix-login"));
    await pass(0);
    expect(host.called("destroyBox")[0]?.params.target.query).toBe("b00000001");
    expect(maybe("box-fix-login")).toBeNull();
    expect(words("aftermath")).toContain("Commits stay on agentbox/fix-login");
    expect(words("aftermath")).toContain("network agentbox-fix-login: in use");
    await user.click(at("aftermath").querySelector("button") as HTMLElement);
    expect(maybe("aftermath")).toBeNull();
  });

  test("cannot be agreed to before the loss is known", async () => {
    const { host, user } = await open();
    host.on("whatIfDestroyed", () => Promise.reject(error("engine", "no engine answers", "start Docker")));
    await user.click(at("destroy-fix-login"));
    await pass(0);
    expect((at("destroy-for-good-fix-login") as HTMLButtonElement).disabled).toBe(true);
    expect(words("confirm-destroy-fix-login")).toContain("no engine answers");
    host.on("whatIfDestroyed", () => nothing);
    await user.click([...document.querySelectorAll("button")].find((b) => b.textContent === "Try again") as HTMLElement);
    await pass(0);
    expect((at("destroy-for-good-fix-login") as HTMLButtonElement).disabled).toBe(false);
  });

  test("a failure is shown where it was agreed to", async () => {
    const { host, user } = await confirm([]);
    host.on("destroyBox", () => Promise.reject(error("failed", "the volume is busy")));
    await user.click(at("destroy-for-good-fix-login"));
    await pass(0);
    expect(words("confirm-destroy-fix-login")).toContain("the volume is busy");
    expect(maybe("box-fix-login")).not.toBeNull();
  });
});

test("j and k move between the cards", async () => {
  const { user } = await open([box(), box({ id: "b00000002", name: "perf", index: 2 })]);
  await user.keyboard("j");
  expect(document.activeElement).toBe(at("box-fix-login"));
  await user.keyboard("j");
  expect(document.activeElement).toBe(at("box-perf"));
  await user.keyboard("k");
  expect(document.activeElement).toBe(at("box-fix-login"));
});

test("Enter opens the box that has the focus, and so does its name; on a button it presses the button", async () => {
  const { user, app, host } = await open([box(), box({ id: "b00000002", name: "perf", index: 2 })]);
  host.on("stopBox", () => box({ state: "stopped" }));
  at("stop-fix-login").focus();
  await user.keyboard("{Enter}");
  await pass(0);
  expect([app.page, host.called("stopBox").length]).toEqual(["boxes", 1]);
  document.querySelector("h1")?.focus();
  await user.keyboard("jj{Enter}");
  expect([app.page, app.boxId]).toEqual(["box", "b00000002"]);
  await user.keyboard("gb");
  await pass(0);
  expect(document.activeElement).toBe(at("box-perf"));
  await user.click(at("show-fix-login"));
  expect([app.page, app.boxId, app.tab]).toEqual(["box", "b00000001", "overview"]);
});

test("what people call a box stands on its card, with its name", async () => {
  await open([box({ displayName: "Login <b>again</b>" })]);
  expect(words("show-fix-login")).toBe("Login <b>again</b>");
  expect(words("name-fix-login")).toBe("Name fix-login");
});

test("what it last did is read from the activity, and again when something happened", async () => {
  const { host, say } = await open([]);
  host.on("audit", () => [record(7, { summary: "Pushed\u202e 3 commits" })]);
  await say({ type: "boxChanged", view: box() });
  await pass(0);
  expect(words("last-fix-login")).toContain("Pushed⟨U+202E⟩ 3 commits");
  expect(host.called("audit")[0]?.params).toMatchObject({ target: { query: "b00000001" }, limit: 1 });
  for (let n = 0; n < 50; n++) await say({ type: "resolved", id: "q9", boxName: "fix-login", outcome: { kind: "expired" } });
  await pass(400);
  expect(host.called("audit").length).toBeLessThanOrEqual(2);
});

describe("two hundred boxes", () => {
  const many = Array.from({ length: 200 }, (_, n) =>
    box({ id: `b${String(n).padStart(8, "0")}`, name: `box-${n}`, index: n, project: `p${n % 7}`, projectRoot: `/p${n % 7}` }),
  );

  /** One that says what a test wants in view. */
  class Sight {
    static last: Sight;
    readonly watched = new Set<Element>();
    constructor(readonly tell: (entries: { target: Element; isIntersecting: boolean }[]) => void) {
      Sight.last = this;
    }
    observe = (one: Element) => void this.watched.add(one);
    unobserve = (one: Element) => void this.watched.delete(one);
    disconnect = () => this.watched.clear();
  }

  test("are drawn at once, ask nothing before they are seen, and leave the keys quick", async () => {
    vi.stubGlobal("IntersectionObserver", Sight);
    const clock = () => vi.getRealSystemTime();
    const begun = clock();
    const { host, user, app } = await open(many);
    await pass(0);
    const drawn = clock() - begun;
    expect(document.querySelectorAll("article[data-card]")).toHaveLength(200);
    expect(host.calls).toEqual([]);
    expect(Sight.last.watched.size).toBe(200);

    const some = [...Sight.last.watched].slice(0, 10);
    Sight.last.tell([...Sight.last.watched].map((target) => ({ target, isIntersecting: some.includes(target) })));
    await pass(0);
    for (const method of ["details", "units", "audit"] as const) expect(host.called(method), method).toHaveLength(10);
    expect(Sight.last.watched.size).toBe(190);

    const pressed = clock();
    await user.keyboard("j");
    expect(document.activeElement?.getAttribute("data-card")).not.toBeNull();
    await user.keyboard("{Enter}");
    const handled = clock() - pressed;
    expect(app.page).toBe("box");
    // Generous: a machine that builds something else meanwhile, and a DOM made of objects.
    expect(drawn).toBeLessThan(8000);
    expect(handled).toBeLessThan(2000);
  });
});

describe("tasks and services", () => {
  const service = { state: "ready", port: 3000, probed: true, expose: null, blockedOn: [] as string[], needs: [] as string[], restarts: 0 } as const;
  const task = { state: "done", blockedOn: [] as string[], needs: [] as string[], lastExitCode: 0 } as const;
  const told = (more: Partial<BoxStatus> = {}) => ({
    schema: 1,
    boxId: "b00000001",
    timestamp: "2026-01-01T00:00:00.000Z",
    services: [{ ...service, name: "web" }],
    tasks: [{ ...task, name: "install" }],
    ports: [],
    ...more,
  }) as BoxStatus;

  async function openWith(first: BoxStatus | null) {
    let now = first;
    const opened = await open([]);
    opened.host.on("units", () => now);
    await opened.say({ ...opened.snapshot, boxes: [box()] } as typeof opened.snapshot);
    await pass(0);
    const tell = async (next: BoxStatus) => {
      now = next;
      await opened.say({ type: "unitsChanged", id: box().id });
      await pass(600);
    };
    return { ...opened, tell };
  }

  test("are told in one line, and each by itself", async () => {
    await openWith(told());
    expect(words("units-fix-login")).toContain("1 of 1 service up, 1 of 1 task done");
    expect(words("unit-fix-login-web")).toBe("● web ready, port 3000");
    expect((at("units-fix-login") as HTMLDetailsElement).open).toBe(false);
  });

  test("follow what the box tells: what waits says for what, and a crash opens the list", async () => {
    const waits = { ...service, name: "web", state: "waiting" as const, blockedOn: ["install"] };
    const { tell } = await openWith(told({ services: [waits], tasks: [{ ...task, name: "install", state: "running" }] }));
    expect(words("unit-fix-login-web")).toBe("◌ web waits for install");
    expect(words("units-fix-login")).toContain("0 of 1 service up, 0 of 1 task done");
    await tell(told({ tasks: [{ ...task, name: "install", state: "failed", lastExitCode: 7 }] }));
    expect(words("unit-fix-login-install")).toBe("✕ install failed, exit code 7");
    expect((at("units-fix-login") as HTMLDetailsElement).open).toBe(true);
  });

  test("a box without any has no line for them; names that come twice break nothing", async () => {
    const { tell } = await openWith(null);
    expect(maybe("units-fix-login")).toBeNull();
    await tell(told({ services: [], tasks: [] }));
    expect(maybe("units-fix-login")).toBeNull();
    await tell(told({ services: [{ ...service, name: "web" }, { ...service, name: "web" }] }));
    expect(words("units-fix-login")).toContain("2 of 2 services up");
  });

  test("a box that tells them all the time is read twice a second", async () => {
    const { host, say } = await openWith(told());
    const reads = () => host.calls.filter((call) => call.method === "units").length;
    const before = reads();
    for (let n = 0; n < 100; n++) await say({ type: "unitsChanged", id: box().id });
    await pass(1100);
    expect(reads() - before).toBeLessThanOrEqual(2);
    expect(reads() - before).toBeGreaterThan(0);
  });

  test("a file with mistakes is shown with them", async () => {
    await openWith(told({ services: [], tasks: [], configError: "agentbox.yaml:2:3: services.web: needs command" }));
    expect(words("units-fix-login")).toContain("agentbox.yaml has mistakes");
    expect(words("mistakes-fix-login")).toContain("services.web");
  });
});
