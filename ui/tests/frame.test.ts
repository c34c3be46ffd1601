// Around the pages: rail, title, banners, navigation, and a host that comes and goes.
import { describe, expect, test } from "vitest";
import { box, question, status } from "./samples";
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

  test("showWindow leads to a page, or to a box that then stands out", async () => {
    const { say } = await openWindow({ boxes: [box(), box({ id: "b00000002", name: "perf" })] });
    await say({ type: "showWindow", page: "box/b00000002" });
    await pass(0);
    expect(heading()).toBe("Boxes");
    expect(document.activeElement).toBe(at("box-perf"));
    expect(at("box-perf").classList.contains("lit")).toBe(true);
    await pass(2500);
    expect(at("box-perf").classList.contains("lit")).toBe(false);
    await say({ type: "showWindow", page: "inbox" });
    expect(heading()).toBe("Inbox");
    await say({ type: "showWindow", page: "no-such-page" });
    expect(heading()).toBe("Inbox");
  });

  test("a box that is not known yet stands out once it is", async () => {
    const { say } = await openWindow({ first: "box/b00000001" });
    await say({ type: "boxChanged", view: box() });
    await pass(0);
    expect(at("box-fix-login").classList.contains("lit")).toBe(true);
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
