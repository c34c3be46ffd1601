// Around the pages: rail, title, banners, navigation, and a host that comes and goes.
import { describe, expect, test } from "vitest";
import { PAGES } from "../src/lib/state.svelte";
import { box, credential, question, status } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const heading = () => document.querySelector("h1")?.textContent;

describe("rail and title", () => {
  test("carry the number of open questions", async () => {
    const { say } = await openWindow({ questions: [question(), question({ id: "q2", digest: "d2" })] });
    expect(words("nav-inbox")).toBe("Inbox 2");
    expect(document.title).toBe("(2) AgentBox");
    for (const id of ["q1", "q2"]) {
      await say({ type: "resolved", id, boxName: "fix-login", outcome: { kind: "expired" } });
    }
    expect(words("nav-inbox")).toBe("Inbox");
    expect(document.title).toBe("AgentBox");
  });

  test("say the version and the engine", async () => {
    await openWindow();
    const footer = document.querySelector("nav footer")?.textContent ?? "";
    expect(footer).toContain("AgentBox 0.1.0");
    expect(footer).toContain("Docker 27.1");
  });
});

describe("navigation", () => {
  test("the box whose page is shown is told, and that it no longer is", async () => {
    const { host, say, user } = await openWindow({ boxes: [box(), box({ id: "b00000002", name: "perf", index: 2 })] });
    await say({ type: "showWindow", page: "box/b00000001/logs" });
    await say({ type: "showWindow", page: "box/b00000002" });
    await user.keyboard("gi");
    expect(host.shown).toEqual([null, "b00000001", "b00000002", null]);
  });

  test("g b and g i switch pages, b alone does not", async () => {
    const { user } = await openWindow();
    await user.keyboard("b");
    expect(heading()).toBe("Inbox");
    await user.keyboard("gb");
    expect(heading()).toBe("Boxes");
    expect(at("nav-boxes").getAttribute("aria-current")).toBe("page");
    await user.keyboard("gi");
    expect(heading()).toBe("Inbox");
  });

  test.each([
    ["gi", "inbox", "Inbox"],
    ["gb", "boxes", "Boxes"],
    ["ga", "activity", "Activity"],
    ["gc", "credentials", "Credentials"],
    ["gs", "integrations", "Integrations"],
    ["gr", "rules", "Rules"],
    ["ge", "settings", "Settings"],
    ["gu", "check-up", "Check-up"],
  ])("%s leads to %s, as the rail and the host do", async (keys, page, title) => {
    const { user, say } = await openWindow({ first: page === "inbox" ? "boxes" : "inbox" });
    await user.keyboard(keys);
    expect(heading()).toBe(title);
    expect(document.activeElement).toBe(document.querySelector("h1"));
    expect(at(`nav-${page}`).getAttribute("aria-current")).toBe("page");
    expect(at(`nav-${page}`).title).toBe(`Keys: g ${keys[1]}`);
    await user.click(at(page === "inbox" ? "nav-boxes" : "nav-inbox"));
    await user.click(at(`nav-${page}`));
    expect(heading()).toBe(title);
    await say({ type: "showWindow", page: page === "inbox" ? "boxes" : "inbox" });
    await say({ type: "showWindow", page });
    expect(heading()).toBe(title);
  });

  test("the rail names every page once", async () => {
    await openWindow();
    const entries = [...document.querySelectorAll("nav [data-testid^=nav-]")];
    expect(entries.map((entry) => (entry as HTMLElement).dataset["testid"])).toEqual(
      // A new box is made among the boxes, and people are welcomed once.
      PAGES.filter((page) => page !== "new" && page !== "welcome").map((page) => `nav-${page}`),
    );
  });

  test("g a allows nothing, however slowly it is typed", async () => {
    const { host, user } = await openWindow({ questions: [question({ warnings: [] })] });
    await pass(1000);
    await user.keyboard("g");
    await pass(1500);
    await user.keyboard("a");
    await pass(0);
    expect(host.called("answer")).toEqual([]);
    await user.keyboard("a");
    await pass(0);
    expect(host.called("answer")).toHaveLength(1);
  });

  test("a field that takes text keeps its keys", async () => {
    const { host, user } = await openWindow({ first: "activity" });
    host.on("audit", () => []);
    await user.click(at("filter-text"));
    await user.keyboard("gb jad/");
    expect(heading()).toBe("Activity");
    expect((at("filter-text") as HTMLInputElement).value).toBe("gb jad/");
  });

  test("the rail's entries switch pages, and the inbox then has Deny focused", async () => {
    const { user } = await openWindow({ first: "boxes", questions: [question()] });
    await user.click(at("nav-inbox"));
    expect(heading()).toBe("Inbox");
    expect(document.activeElement).toBe(at("deny-q1"));
  });

  test("the window opens at the page it was asked for", async () => {
    await openWindow({ first: "boxes" });
    expect(heading()).toBe("Boxes");
  });

  test("showWindow leads to a page, or to a box that then stands out among the others", async () => {
    const { say, user } = await openWindow({ boxes: [box(), box({ id: "b00000002", name: "perf" })] });
    await say({ type: "showWindow", page: "box/b00000002" });
    await pass(0);
    expect(heading()).toBe("perf");
    expect(document.activeElement).toBe(document.querySelector("h1"));
    expect(at("nav-boxes").getAttribute("aria-current")).toBe("page");
    await user.click(at("nav-boxes"));
    await pass(0);
    expect(document.activeElement).toBe(at("box-perf"));
    expect(at("box-perf").classList.contains("lit")).toBe(true);
    await pass(2500);
    expect(at("box-perf").classList.contains("lit")).toBe(false);
    await say({ type: "showWindow", page: "inbox" });
    expect(heading()).toBe("Inbox");
    await say({ type: "showWindow", page: "no-such-page" });
    expect(heading()).toBe("Inbox");
  });

  test("a box that is not known yet is shown once it is", async () => {
    const { say } = await openWindow({ first: "box/b00000001" });
    expect(maybe("no-box")).not.toBeNull();
    await say({ type: "boxChanged", view: box() });
    await pass(0);
    expect(heading()).toBe("fix-login");
  });
});

describe("pages that read from the host", () => {
  test.each([
    ["integrations", "integrations"],
    ["credentials", "secrets"],
    ["rules", "grants"],
    ["activity", "audit"],
  ] as const)("%s: nothing for 300 ms, then its place, then what was read or why not", async (page, method) => {
    const { host, user } = await openWindow({ first: "inbox" });
    let answer: (value: unknown) => void = () => {};
    let refuse: (why: unknown) => void = () => {};
    host.on(method, () => new Promise((yes, no) => ([answer, refuse] = [yes, no])));
    await user.click(at(`nav-${page}`));
    expect(maybe("skeleton")).toBeNull();
    await pass(299);
    expect(maybe("skeleton")).toBeNull();
    await pass(1);
    expect(maybe("skeleton")).not.toBeNull();
    refuse({ code: "failed", message: "The disk is full.", hints: ["Make room."] });
    await pass(0);
    expect(maybe("skeleton")).toBeNull();
    expect(words("page-problem")).toContain("The disk is full. Make room.");
    await user.click(at("try-again"));
    answer([]);
    await pass(0);
    expect(maybe("page-problem")).toBeNull();
    expect(document.querySelector("main .empty")).not.toBeNull();
  });

  test("they read again when the host is back and when the window was out of sight", async () => {
    const { host, say, snapshot } = await openWindow({ first: "credentials" });
    host.on("secrets", () => [credential()]);
    const before = host.called("secrets").length;
    host.goDown("gone");
    await pass(0);
    expect(maybe("page-problem")).toBeNull();
    await pass(1000);
    await say(snapshot);
    expect(host.called("secrets")).toHaveLength(before + 1);
    document.dispatchEvent(new Event("visibilitychange"));
    await pass(0);
    expect(host.called("secrets")).toHaveLength(before + 2);
    host.goDown("gone again");
    await pass(0);
    for (const verb of ["test", "set", "remove"]) {
      expect((at(`${verb}-tracker.token`) as HTMLButtonElement).disabled, verb).toBe(true);
    }
  });
});

describe("banners", () => {
  test("one per notice, with its hint", async () => {
    const { say } = await openWindow({
      status: { notices: [{ part: "tray", message: "No tray was found.", hint: "Install an indicator extension." }] },
    });
    expect(words("notice-tray")).toContain("No tray was found. Install an indicator extension.");
    await say({ type: "status", status: status() });
    expect(maybe("notice-tray")).toBeNull();
  });

  test("an engine that cannot be reached", async () => {
    await openWindow({
      status: { engine: { reachable: false, detail: "connection refused", hint: "Start Docker." } },
    });
    expect(words("notice-engine")).toContain("connection refused");
    expect(words("notice-engine")).toContain("Start Docker.");
    expect(document.querySelector("nav footer")?.textContent).toContain("Engine not reachable");
  });
});

describe("a host that goes away", () => {
  test("is said, nothing can be answered, and the window comes back by itself", async () => {
    const { host, user, say, snapshot } = await openWindow({ questions: [question()], boxes: [box()] });
    await pass(350);
    host.goDown("the socket closed");
    await pass(0);
    expect(words("notice-host")).toContain("AgentBox is not running");
    expect(words("notice-host")).toContain("the socket closed");
    await user.keyboard("ad");
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);

    host.unreachable = "no such file";
    await pass(1000);
    expect(words("notice-host")).toContain("no such file");
    host.unreachable = null;
    await pass(1000);
    await say(snapshot);
    expect(maybe("notice-host")).toBeNull();
    expect(host.subscriptions).toHaveLength(1);
    expect(host.subscribed).toBe(3);
  });

  test("verbs rest until it is back", async () => {
    const { host } = await openWindow({ first: "boxes", boxes: [box()] });
    host.goDown("gone");
    await pass(0);
    expect((at("stop-fix-login") as HTMLButtonElement).disabled).toBe(true);
    expect((at("destroy-fix-login") as HTMLButtonElement).disabled).toBe(true);
  });

  test("is asked every second until it answers", async () => {
    const { host } = await openWindow();
    host.unreachable = "no such file";
    host.goDown("gone");
    await pass(3000);
    expect(host.subscribed).toBe(4);
    expect(host.subscriptions).toHaveLength(0);
  });
});
