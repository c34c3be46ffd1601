// The greeting: who gets it, once, and where it leads. And the overlay with all keys.
import { render } from "@testing-library/svelte";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AFTER_G } from "../src/lib/keys";
import { isWelcomed, welcome } from "../src/lib/welcome.svelte";
import KeyHelp from "../src/parts/KeyHelp.svelte";
import { allGood, check } from "./registry";
import { box, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

let end: (() => void) | undefined;
beforeEach(() => localStorage.clear());
afterEach(() => end?.());

async function begin(start: Parameters<typeof openWindow>[0] = {}, checks = allGood()) {
  const window = await openWindow(start);
  window.host.on("doctor", () => checks);
  end = welcome(window.app);
  await pass(0);
  return window;
}

const heading = () => document.querySelector("h1")?.textContent;

describe("the greeting", () => {
  test.each(["inbox", "boxes"])("comes instead of an empty %s", async (first) => {
    await begin({ first });
    expect(heading()).toBe("Welcome to AgentBox");
    expect(isWelcomed()).toBe(false);
  });

  test("is busy while it looks whether this computer is ready", async () => {
    const { app, host } = await openWindow({ first: "settings" });
    let answer: (value: unknown) => void = () => {};
    host.on("doctor", () => new Promise((yes) => (answer = yes)));
    app.show("welcome");
    await pass(0);
    expect(at("found").getAttribute("aria-busy")).toBe("true");
    answer(allGood());
    await pass(0);
    expect(at("found").getAttribute("aria-busy")).toBe("false");
  });

  test.each([
    ["there is a box", { boxes: [box()] }],
    ["a question waits", { questions: [question()] }],
    ["another page was asked for", { first: "settings" }],
  ])("does not come when %s", async (_, start) => {
    const { app } = await begin(start);
    expect(app.page).not.toBe("welcome");
  });

  test("comes once", async () => {
    const { user } = await begin();
    await user.click(at("welcome-inbox"));
    expect(heading()).toBe("Inbox");
    expect(isWelcomed()).toBe(true);
    end?.();
    document.body.innerHTML = "";
    const { app } = await begin();
    expect(app.page).toBe("inbox");
  });

  test("waits until the host has told what there is", async () => {
    const { app } = await openWindow();
    app.status = null;
    end = welcome(app);
    await pass(0);
    expect(app.page).toBe("inbox");
  });

  test("says whether this computer is ready, with what to do", async () => {
    const checks = allGood().map((one) =>
      one.label === "box image" ? { ...one, level: "info" as const, detail: "not built yet", hint: "agentbox prepare --build builds it now" } : one,
    );
    await begin({}, [...checks, check("desktop", "notifications", { level: "warn", detail: "No daemon." })]);
    expect(words("welcome-summary")).toBe("1 thing needs you.");
    expect(words("check-engine-engine")).toContain("good");
    expect(maybe("copy-agentbox prepare --build")).not.toBeNull();
    expect(words("check-desktop-keychain")).toContain("good");
    expect(words("check-desktop-tray")).toContain("good");
    expect(words("check-desktop-notifications")).toContain("needs you");
    expect(maybe("check-system-home")).toBeNull();
  });

  test.each([
    ["welcome-new", "New box"],
    ["welcome-checkup", "Check-up"],
    ["nav-boxes", "Boxes"],
  ])("%s leads on, and it is remembered", async (testid, title) => {
    const { user } = await begin();
    await user.click(at(testid));
    await pass(0);
    expect(heading()).toBe(title);
    expect(isWelcomed()).toBe(true);
  });

  test("Escape leaves it", async () => {
    const { user, app } = await begin();
    await user.keyboard("{Escape}");
    expect(app.page).toBe("inbox");
    expect(isWelcomed()).toBe(true);
  });
});

describe("all keys", () => {
  async function open(start: Parameters<typeof openWindow>[0] = {}) {
    const window = await openWindow(start);
    render(KeyHelp);
    await pass(0);
    return window;
  }

  test("come on ?, name every page, and go with Escape to where one was", async () => {
    const { user } = await open({ questions: [question()] });
    expect(document.activeElement).toBe(at("deny-q1"));
    await user.keyboard("?");
    await pass(0);
    expect(document.activeElement).toBe(at("key-help-close"));
    expect(words("key-help")).toContain("Enter Go to the question; there it presses Deny");
    for (const key of Object.keys(AFTER_G)) expect(words("key-help")).toContain(`g ${key} `);
    await user.keyboard("{Escape}");
    await pass(0);
    expect(maybe("key-help")).toBeNull();
    expect(document.activeElement).toBe(at("deny-q1"));
  });

  test("keep every key from the page behind", async () => {
    const { user, host } = await open({ questions: [question({ warnings: [] })] });
    await pass(1000);
    await user.keyboard("?");
    await pass(0);
    await user.keyboard("adgb{Tab}");
    await pass(0);
    expect(host.called("answer")).toEqual([]);
    expect(heading()).toBe("Inbox");
    expect(document.activeElement).toBe(at("key-help-close"));
    await user.keyboard("?");
    expect(maybe("key-help")).toBeNull();
    expect(host.called("answer")).toEqual([]);
  });

  test("go with a click beside them", async () => {
    const { user } = await open();
    await user.keyboard("?");
    await pass(0);
    await user.click(at("key-help"));
    expect(maybe("key-help")).not.toBeNull();
    await user.click(at("key-help-veil"));
    expect(maybe("key-help")).toBeNull();
  });

  test("a field keeps its ?", async () => {
    const { user, host } = await open({ first: "activity" });
    host.on("audit", () => []);
    await user.click(at("filter-text"));
    await user.keyboard("?");
    expect(maybe("key-help")).toBeNull();
    expect((at("filter-text") as HTMLInputElement).value).toBe("?");
  });
});
