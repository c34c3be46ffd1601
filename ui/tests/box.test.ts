// A box's page: its head, its tabs, what the overview tells, and its activity.
import { describe, expect, test } from "vitest";
import type { AgentAsks } from "../src/lib/bindings/AgentAsks";
import type { BoxDetails } from "../src/lib/bindings/BoxDetails";
import type { BoxView } from "../src/lib/bindings/BoxView";
import { TABS } from "../src/lib/state.svelte";
import { error } from "./fake";
import { box, boxService, details, question, record, units, usage } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

interface Start {
  view?: BoxView;
  tab?: string;
  told?: Partial<BoxDetails>;
  says?: AgentAsks[];
  questions?: ReturnType<typeof question>[];
}

async function open({ view = box(), tab = "overview", told = {}, says = [], questions = [] }: Start = {}) {
  const opened = await openWindow({ first: `box/b00000001/${tab}` });
  opened.host.on("details", () => details(told));
  opened.host.on("agentAsks", () => says);
  opened.host.on("audit", () => []);
  opened.host.on("sessions", () => []);
  await opened.say({ ...opened.snapshot, boxes: [view], questions } as typeof opened.snapshot);
  await pass(0);
  return opened;
}

const claude = { agent: "claude", state: "working", since: Date.now(), hasLogin: false } as const;
const selected = () => [...document.querySelectorAll("[role=tab]")].filter((tab) => tab.getAttribute("aria-selected") === "true");

describe("the head", () => {
  test("says which box, of which project, how it is and what its agents do", async () => {
    await open({ view: box({ displayName: "Fix the login", agents: [{ ...claude, state: "end-plan" }] }) });
    expect(document.querySelector("h1")?.textContent).toBe("Fix the login");
    for (const part of ["shop-api", "fix-login", "● running", "Claude has a plan for you"]) expect(words("box-fix-login")).toContain(part);
    expect(document.activeElement).toBe(document.querySelector("h1"));
  });

  test("a project's name hides nothing", async () => {
    await open({ view: box({ project: "shop\u202eipa", projectRoot: "/home/ada/shop\u202eipa" }) });
    expect(words("box-fix-login")).toContain("shop⟨U+202E⟩ipa");
    expect(at("box-fix-login").querySelector("[title^='/home']")?.getAttribute("title")).toBe("/home/ada/shop⟨U+202E⟩ipa");
  });

  test("has the verbs of the card, with the same questions before them", async () => {
    const { host, user, app } = await open({ view: box({ agents: [claude], web: "http://x.localhost" }) });
    await user.click(at("stop-fix-login"));
    expect(words("confirm-stop-fix-login")).toContain("Claude works. Stopping ends every program");
    await user.keyboard("{Escape}");
    expect(document.activeElement).toBe(at("stop-fix-login"));
    host.on("pauseBox", () => Promise.reject(error("engine", "no engine answers")));
    await user.click(at("pause-fix-login"));
    await pass(0);
    expect(words("box-fix-login")).toContain("no engine answers");
    await user.click(at("open-web-fix-login"));
    await pass(0);
    expect(host.opened).toEqual([["b00000001", "web"]]);

    host.on("whatIfDestroyed", () => ({ view: box(), uncommitted: [], unpushed: [], unpushedCount: 0, stranded: [] }));
    host.on("destroyBox", () => ({ view: box(), removed: [], absent: [], failed: [], keptBranches: ["agentbox/fix-login"] }));
    await user.click(at("destroy-fix-login"));
    await pass(0);
    await user.click(at("destroy-for-good-fix-login"));
    await pass(0);
    expect(app.page).toBe("boxes");
    expect(words("aftermath")).toContain("Commits stay on agentbox/fix-login");
  });

  test("an unknown box has a way back", async () => {
    const { user, app, say } = await open();
    await say({ type: "boxRemoved", id: "b00000001" });
    await pass(0);
    expect(words("no-box")).toContain("This box is not there");
    expect(selected()).toHaveLength(0);
    await user.keyboard("3");
    await user.click(at("back-to-boxes"));
    expect(app.page).toBe("boxes");
  });

  test("another box is another page: it starts at its overview, with the focus at its name", async () => {
    const { app, say, snapshot } = await open({ tab: "services" });
    await say({ ...snapshot, boxes: [box(), box({ id: "b00000002", name: "perf" })] } as typeof snapshot);
    app.logOf = "web";
    app.show("box/b00000002");
    await pass(0);
    expect([app.tab, app.logOf]).toEqual(["overview", null]);
    expect(document.activeElement?.textContent).toBe("perf");
  });
});

describe("tabs", () => {
  test("keys 1 to 7 lead to them, and each has its panel", async () => {
    const { user, app } = await open();
    for (const [at_, tab] of TABS.entries()) {
      document.querySelector("h1")?.focus();
      await user.keyboard(String(at_ + 1));
      await pass(0);
      expect(app.tab).toBe(tab);
      expect(selected().map((one) => one.id)).toEqual([`tab-${tab}`]);
      expect(at(`panel-${tab}`).getAttribute("aria-labelledby")).toBe(`tab-${tab}`);
    }
  });

  test("one of them is in the order of Tab; arrows, Home and End move, Enter opens", async () => {
    const { user, app } = await open();
    expect([...document.querySelectorAll("[role=tab]")].map((tab) => tab.getAttribute("tabindex"))).toEqual(["0", ...Array(7).fill("-1")]);
    at("tab-overview").focus();
    await user.keyboard("{ArrowRight}{ArrowRight}");
    expect(document.activeElement).toBe(at("tab-services"));
    expect(app.tab).toBe("overview");
    await user.keyboard("{Enter}");
    expect(app.tab).toBe("services");
    await user.keyboard("{End}");
    expect(document.activeElement).toBe(at("tab-activity"));
    await user.keyboard("{ArrowRight}");
    expect(document.activeElement).toBe(at("tab-overview"));
    await user.keyboard("{ArrowLeft}{Home}");
    expect(document.activeElement).toBe(at("tab-overview"));
  });

  test("a tab can be asked for by name, and is kept while the box is the same", async () => {
    const { app } = await open({ tab: "files" });
    expect(app.tab).toBe("files");
    app.show("box/b00000001");
    expect(app.tab).toBe("files");
    app.show("box/b00000001/nonsense");
    expect(app.tab).toBe("files");
  });
});

describe("the overview", () => {
  test("tells branch, folder, image, uptime, limits, what came along and what is mounted", async () => {
    await open({
      told: {
        mounts: [
          { from: "/home/ada/.agentbox/run", to: "/run/agentbox", writable: false },
          { from: "", to: "/tmp", writable: true },
        ],
        carried: [
          { src: "/home/ada/.npmrc", dest: "/home/vscode/.npmrc", bytes: 1024, hash: "", by: "prompt", approvedAt: 1, kind: "file", mode: "0600", user: null, terms: null, warnings: ["looks like a credential"], failed: "no room" },
        ],
      },
    });
    expect(words("branch-fix-login")).toBe("Branch agentbox/fix-login");
    expect(words("workspace-fix-login")).toBe("Folder /home/ada/shop-api");
    expect(words("overview")).toContain("registry.example/agentbox/box:1@sha256:0123");
    expect(words("overview")).toContain("Engine's id");
    expect(words("overview")).not.toContain("Ssh");
    expect(words("uptime-fix-login")).toBe("Uptime 3 h");
    expect(words("limits-fix-login")).toBe("Memory 4.0 GB Processors 2 Processes no limit");
    const mounts = [...at("mounts-fix-login").querySelectorAll("li")].map((one) => one.textContent?.replace(/\s+/g, " ").trim());
    expect(mounts).toEqual(["/run/agentbox from /home/ada/.agentbox/run, it can only read", "/tmp in memory, it can write"]);
    expect(words("carried-fix-login")).toBe("/home/ada/.npmrc → /home/vscode/.npmrc 1.0 KB, 0600 ⚠ looks like a credential ✕ not in its place: no room");
  });

  test("a box that ended says when, how, and that it ran out of memory", async () => {
    await open({ view: box({ state: "stopped" }), told: { startedAt: null, endedAt: Date.now() - 60_000, exitCode: 137, outOfMemory: true } });
    expect(words("ended-fix-login")).toBe("Last Ended 1 min ago, exit code 137");
    expect(words("overview")).toContain("It had used up its memory");
  });

  test("addresses are buttons that open", async () => {
    const { host, user } = await open({ view: box({ web: "http://fix-login.localhost:1355" }) });
    expect(words("address-web-fix-login")).toContain("http://fix-login.localhost:1355");
    await user.click(at("address-web-fix-login"));
    await pass(0);
    expect(host.opened).toEqual([["b00000001", "web"]]);
  });

  test("an agent's plan is plain text, a line each; its question has its answers", async () => {
    const since = Date.now();
    const { user, app } = await open({
      view: box({ agents: [{ ...claude, state: "end-plan" }, { ...claude, agent: "codex", state: "question" }], logins: ["claude"] }),
      says: [
        { agent: "claude", state: "end-plan", since, plan: "# Plan\n\n1. <script>x</script>\u202e", questions: [], cut: true },
        {
          agent: "codex",
          state: "question",
          since,
          plan: null,
          cut: false,
          questions: [{ question: "Which one?", header: "Store", multiSelect: false, options: [{ label: "SQL", description: "one file" }] }],
        },
      ],
    });
    const plan = [...at("says-fix-login-claude").querySelectorAll(".said p")].map((line) => line.textContent);
    expect(plan).toEqual(["# Plan", "", "1. <script>x</script>⟨U+202E⟩"]);
    expect(words("says-fix-login-claude")).toContain("Only its beginning is shown.");
    expect(document.querySelector("main script")).toBeNull();
    expect(words("says-fix-login-codex")).toContain("Which one? SQL one file");
    expect(words("logins-fix-login")).toContain("It holds the login of Claude");
    await user.click(at("answer-codex"));
    expect(app.tab).toBe("terminal");
  });

  test("one that asks without words, and boxes without agents and logins, say so", async () => {
    const { say } = await open({
      view: box({ agents: [{ ...claude, state: "question" }] }),
      says: [{ agent: "claude", state: "question", since: 1, plan: null, questions: [], cut: false }],
    });
    expect(words("says-fix-login-claude")).toContain("What it asks is not known here.");
    await say({ type: "boxChanged", view: box() });
    await pass(0);
    expect(words("overview")).toContain("No agent runs in it. Start one in the terminal");
    expect(words("logins-fix-login")).toBe("It holds no login of yours.");
  });

  test("what agents ask is read again when one of them asks anew", async () => {
    const { host, say } = await open({ view: box({ agents: [claude] }) });
    const before = host.called("agentAsks").length;
    await say({ type: "boxChanged", view: box({ agents: [claude], questions: 1 }) });
    await pass(0);
    expect(host.called("agentAsks")).toHaveLength(before);
    await say({ type: "boxChanged", view: box({ agents: [{ ...claude, state: "question" }] }) });
    await pass(0);
    expect(host.called("agentAsks")).toHaveLength(before + 1);
  });

  test("CPU and memory come with a line of the last minutes, and this box alone is measured", async () => {
    const { host, user } = await open();
    const call = host.begun[0];
    expect(call?.request).toMatchObject({ method: "followUsage", params: { target: { query: "b00000001" } } });
    const disk = { boxesBytes: null, imagesBytes: null, freeBytes: null };
    for (const cpuPercent of [10, 50, 20]) {
      call?.tell({ type: "usage", usage: { boxes: [usage({ cpuPercent, atLimit: ["memory"] })], disk } });
      await pass(3000);
    }
    expect(words("cpu-fix-login")).toContain("20 %");
    expect(words("memory-fix-login")).toContain("340 MB of 4.0 GB");
    expect(words("disk-fix-login")).toBe("Disk 1.2 MB");
    expect(words("at-limit-fix-login")).toContain("its memory");
    expect(at("cpu-line-fix-login").querySelector("polyline")?.getAttribute("points")?.split(" ")).toHaveLength(3);
    // The numbers of the page that was left do not outlive it, and do not wipe the next page's.
    await user.click(at("nav-boxes"));
    expect(call?.ended).toBe(true);
    host.begun[1]?.tell({ type: "usage", usage: { boxes: [usage()], disk } });
    call?.tell({ type: "usage", usage: { boxes: [usage({ cpuPercent: 99 })], disk } });
    await pass(0);
    expect(words("cpu-fix-login")).toContain("12 %");
  });

  test("open questions of this box lead to the inbox, those of others are not here", async () => {
    const { user, app } = await open({
      questions: [question(), question({ id: "q2", digest: "d2", boxId: "b00000002", boxName: "perf", title: "Other" })],
    });
    expect(maybe("to-question-q2")).toBeNull();
    await user.click(at("to-question-q1"));
    expect([app.page, app.current]).toEqual(["inbox", "q1"]);
  });

  test("units are summed up, and lead to their tab", async () => {
    const { host, say, user, app } = await open();
    expect(words("overview")).toContain("None: its project has no agentbox.yaml with some.");
    host.on("units", () => units({ services: [boxService("web"), boxService("db", { state: "starting" })] }));
    await say({ type: "unitsChanged", id: "b00000001" });
    await pass(1000);
    expect(words("units-fix-login")).toContain("1 of 2 services up");
    await user.click(at("to-services"));
    expect(app.tab).toBe("services");
  });

  test("nothing for 300 ms, then its place, then why not, and again", async () => {
    const opened = await openWindow({ first: "box/b00000001" });
    let refuse: (why: unknown) => void = () => {};
    opened.host.on("details", () => new Promise((_, no) => (refuse = no)));
    await opened.say({ ...opened.snapshot, boxes: [box()] } as typeof opened.snapshot);
    await pass(299);
    expect(maybe("skeleton")).toBeNull();
    await pass(10);
    expect(maybe("skeleton")).not.toBeNull();
    refuse(error("engine", "no engine answers", "start Docker"));
    await pass(0);
    expect(words("page-problem")).toContain("no engine answers start Docker");
    opened.host.on("details", () => details());
    await opened.user.click(at("try-again"));
    await pass(0);
    expect(maybe("page-problem")).toBeNull();
    expect(words("uptime-fix-login")).toBe("Uptime 3 h");
  });
});

describe("its activity", () => {
  test("is this box's alone, and grows by itself", async () => {
    const opened = await openWindow({ first: "box/b00000001/activity" });
    const all = [record(1), record(2, { kind: "asked", summary: "fix-login asks: Push 1 commit" })];
    opened.host.on("audit", ({ params }) => all.filter((one) => one.seq > (params.after ?? 0)));
    await opened.say({ ...opened.snapshot, boxes: [box()] } as typeof opened.snapshot);
    await pass(0);
    for (const row of ["record-1", "record-2"]) expect(words(row)).not.toContain("fix-login");
    expect(words("record-2")).toContain("Push 1 commit");
    expect(opened.host.called("audit").every(({ params }) => params.target?.query === "b00000001")).toBe(true);
    expect([...document.querySelectorAll("[data-testid^=record-]")].map((row) => (row as HTMLElement).dataset["testid"])).toEqual(["record-2", "record-1"]);
    all.push(record(3));
    await pass(2100);
    expect(maybe("record-3")).not.toBeNull();
    document.querySelector("h1")?.focus();
    await opened.user.keyboard("j");
    expect(document.activeElement?.textContent).toContain("Did thing 3");
  });

  test("says when there is none, and why it cannot be read", async () => {
    const { host, user } = await open({ tab: "activity" });
    expect(words("no-activity")).toContain("Nothing yet");
    await user.keyboard("1");
    host.on("audit", () => Promise.reject(error("failed", "The disk is full.")));
    await user.keyboard("8");
    await pass(0);
    expect(words("page-problem")).toContain("The disk is full.");
  });
});
