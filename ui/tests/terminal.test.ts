// The terminal of a box: sessions, bytes and keys, and what a box may not do through it.
import { render } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { Terminal as Xterm } from "@xterm/xterm";
import axe from "axe-core";
import { tick } from "svelte";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { SessionView } from "../src/lib/bindings/SessionView";
import { Keys } from "../src/lib/keys";
import { AppState } from "../src/lib/state.svelte";
import { harmless } from "../src/lib/terminal";
import { inOrder, startable, title } from "../src/lib/terminal-sessions";
import Terminal from "../src/parts/box/Terminal.svelte";
import { FakeBackend, error } from "./fake";
import { box, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const session = (over: Partial<SessionView> = {}): SessionView => ({ name: "shell", agent: null, attached: 0, createdAt: 2000, ...over });
const CLAUDE = session({ name: "claude", agent: "claude", createdAt: 3000 });

/** What asked to be told of its size. */
let watching: (() => void)[] = [];

class Watch {
  constructor(tell: () => void) {
    watching.push(tell);
  }
  observe() {}
  disconnect() {}
}

beforeEach(() => {
  watching = [];
  vi.stubGlobal("ResizeObserver", Watch);
  // xterm draws while nobody says that it is out of sight.
  vi.stubGlobal("IntersectionObserver", class { observe() {} disconnect() {} });
});

async function open(sessions: SessionView[] = [session()], over: Partial<BoxView> = {}) {
  const host = new FakeBackend();
  const held = { all: sessions };
  host.on("sessions", () => held.all);
  const app = new AppState(host);
  const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms), delay: null });
  const view = render(Terminal, { props: { app, box: box(over) } });
  await settle();
  return { host, app, user, held, view, stream: () => host.streams.at(-1)! };
}

/** Dynamic imports take real time. */
async function settle() {
  await pass(0);
  await vi.dynamicImportSettled();
  await pass(50);
}

const drawn = () => (at("terminal").querySelector(".xterm-rows")?.textContent ?? "").replace(/\s+/g, " ").trim();
const input = () => at("terminal").querySelector("textarea")!;

async function give(stream: { give: (text: string) => void }, text: string) {
  stream.give(text);
  await pass(50);
}

describe("sessions", () => {
  test("agents come first, then shells, each from the oldest, and a name counts once", () => {
    const all = [session({ name: "shell-2", createdAt: 9 }), session({ createdAt: 1 }), CLAUDE, CLAUDE];
    expect(inOrder(all).map((one) => one.name)).toEqual(["claude", "shell", "shell-2"]);
    expect(title(CLAUDE)).toBe("Claude Code");
    expect(title({ ...CLAUDE, name: "review" })).toBe("Claude Code (review)");
    expect(startable(all)).toEqual(["codex", "opencode"]);
  });

  test("the first is shown, with what its agent does, and takes no focus by itself", async () => {
    const since = Date.now();
    const agents = [{ agent: "claude" as const, state: "working" as const, since, hasLogin: true }];
    const { host, stream } = await open([session(), CLAUDE], { agents });
    expect(host.called("sessions")[0]?.params).toEqual({ target: { query: "b00000001", cwd: null } });
    expect(stream().what).toEqual({ kind: "terminal", id: "b00000001", session: "claude", cols: 80, rows: 24 });
    expect(words("session-claude")).toBe("Claude Codeworks");
    expect(at("session-claude").getAttribute("aria-pressed")).toBe("true");
    expect(document.activeElement).toBe(document.body);
    expect(maybe("end-shell")).toBeNull();
  });

  test("another one takes its place, and the keys", async () => {
    const { host, user, stream } = await open([session(), CLAUDE]);
    await user.click(at("session-shell"));
    await settle();
    expect(host.streams[0]?.ended).toBe(true);
    expect(stream().what).toMatchObject({ session: "shell" });
    expect(document.activeElement).toBe(input());
  });

  test("a new shell is started, shown and has the keys", async () => {
    const { host, user, held, stream } = await open([]);
    expect(words("no-sessions")).toContain("No sessions yet");
    host.on("startSession", () => {
      held.all = [session()];
      return session();
    });
    await user.click(at("new-shell"));
    await settle();
    expect(host.called("startSession")[0]?.params).toEqual({
      target: { query: "b00000001", cwd: null },
      what: { kind: "shell", label: null, plain: false },
      cols: 120,
      rows: 40,
    });
    expect(stream().what).toMatchObject({ session: "shell" });
    expect(document.activeElement).toBe(input());
  });

  test("an agent is started by name; those that run are not offered", async () => {
    const { host, user, held, stream } = await open([CLAUDE]);
    host.on("startSession", () => {
      const made = session({ name: "codex", agent: "codex" });
      held.all = [CLAUDE, made];
      return made;
    });
    await user.click(at("start-agent"));
    expect(maybe("start-agent-claude")).toBeNull();
    await user.click(at("start-agent-codex"));
    await settle();
    expect(host.called("startSession")[0]?.params.what).toEqual({ kind: "agent", agent: "codex", name: null, args: [], env: {}, sync: true });
    expect(stream().what).toMatchObject({ session: "codex" });
  });

  test("what cannot be started says why", async () => {
    const { host, user } = await open();
    host.on("startSession", () => {
      throw error("failed", "no room for it", "end another");
    });
    await user.click(at("new-shell"));
    await settle();
    expect(document.querySelector("[role=alert]")?.textContent).toContain("no room for it");
    expect((at("new-shell") as HTMLButtonElement).disabled).toBe(false);
  });

  test("a shell is ended after a question, an agent cannot be", async () => {
    const { host, user, held } = await open([session(), session({ name: "shell-2", createdAt: 5000 })]);
    await user.click(at("end-shell"));
    expect(document.activeElement).toBe(at("confirm-no-end-shell"));
    await user.keyboard("{Enter}");
    await pass(0);
    expect(host.called("endSession")).toEqual([]);
    expect(document.activeElement).toBe(at("end-shell"));
    host.on("endSession", () => {
      held.all = held.all.slice(1);
      return true;
    });
    await user.click(at("end-shell"));
    await user.click(at("confirm-yes-end-shell"));
    await settle();
    expect(host.called("endSession")[0]?.params).toEqual({ target: { query: "b00000001", cwd: null }, name: "shell" });
    expect(maybe("session-shell")).toBeNull();
    expect(host.streams.at(-1)?.what).toMatchObject({ session: "shell-2" });
    expect(words("terminal-told")).toBe("shell is ended.");
  });

  test("sessions that begin elsewhere appear", async () => {
    const { held } = await open([]);
    held.all = [CLAUDE];
    await pass(6000);
    await settle();
    expect(maybe("session-claude")).not.toBeNull();
  });

  test("a list that cannot be read says why and is read again", async () => {
    const { host, user, held } = await open([]);
    host.on("sessions", () => {
      throw error("failed", "the box does not answer");
    });
    await pass(6000);
    expect(words("page-problem")).toContain("the box does not answer");
    host.on("sessions", () => held.all);
    await user.click(at("try-again"));
    await pass(0);
    expect(maybe("page-problem")).toBeNull();
  });
});

describe("bytes and keys", () => {
  test("bytes are drawn, and counted as taken only then", async () => {
    const host = new FakeBackend();
    host.on("sessions", () => [session()]);
    const original = host.stream.bind(host);
    let taken: Promise<void> | void;
    vi.spyOn(host, "stream").mockImplementation((what, onBytes) => original(what, (bytes) => (taken = onBytes(bytes))));
    render(Terminal, { props: { app: new AppState(host), box: box() } });
    await settle();
    let done = false;
    host.streams[0]!.give("\x1b[1mhello\x1b[0m from the box\r\n");
    void Promise.resolve(taken!).then(() => (done = true));
    await Promise.resolve();
    expect(done).toBe(false);
    await pass(50);
    expect(done).toBe(true);
    expect(drawn()).toContain("hello from the box");
  });

  test("letters that come in pieces are put together", async () => {
    const host = new FakeBackend();
    host.on("sessions", () => [session()]);
    const original = host.stream.bind(host);
    let feed = (_: Uint8Array): void | Promise<void> => {};
    vi.spyOn(host, "stream").mockImplementation((what, onBytes) => ((feed = onBytes), original(what, onBytes)));
    render(Terminal, { props: { app: new AppState(host), box: box() } });
    await settle();
    const bytes = new TextEncoder().encode("grüße");
    void feed(bytes.slice(0, 3));
    void feed(bytes.slice(3));
    await pass(50);
    expect(drawn()).toContain("grüße");
  });

  test("keys go to the box, Tab and Escape too, and not to the app", async () => {
    const { user, stream } = await open();
    const keys = new Keys();
    const read: unknown[] = [];
    const listen = (event: KeyboardEvent) => read.push(keys.read(event));
    window.addEventListener("keydown", listen);
    await user.click(at("session-shell"));
    expect(document.activeElement).toBe(input());
    for (const [key, keyCode] of [["Tab", 9], ["Escape", 27], ["Enter", 13]] as const) {
      input().dispatchEvent(new KeyboardEvent("keydown", { key, keyCode, bubbles: true, cancelable: true } as KeyboardEventInit));
    }
    expect(stream().written).toBe("\t\x1b\r");
    for (const key of ["a", "d", "j", "k", "/", "g", "b"]) {
      input().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    }
    // Rows that a screen reader walks are no text field.
    const row = at("terminal").querySelector<HTMLElement>("[role=listitem]")!;
    row.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true, cancelable: true }));
    window.removeEventListener("keydown", listen);
    expect(read.filter((action) => action !== null)).toEqual([]);
  });

  test("with the whole window around it, no key of the app works in the terminal", async () => {
    const { host, app } = await openWindow({ first: "box/b00000001/terminal", boxes: [box()], questions: [question({ warnings: [] })] });
    host.on("sessions", () => [session()]);
    await pass(6000);
    await settle();
    input().focus();
    for (const key of ["a", "d", "1", "j", "/", "g", "b", "Escape"]) {
      input().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    }
    await pass(0);
    expect([app.page, app.tab]).toEqual(["box", "terminal"]);
    expect(host.called("answer")).toEqual([]);
    expect(document.activeElement).toBe(input());
  });

  test.each(["Escape", "X"])("Ctrl+Shift+%s leaves, and the box hears nothing of it", async (key) => {
    const { user, stream } = await open();
    await user.click(at("session-shell"));
    input().dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }));
    expect(document.activeElement).toBe(at("session-shell"));
    expect(stream().written).toBe("");
    expect(document.querySelector(".hint")?.textContent).toContain("Ctrl+Shift+Esc");
  });

  test("what is pasted cannot end its own paste", async () => {
    const { stream } = await open();
    await give(stream(), "\x1b[?2004h");
    const data = new DataTransfer();
    data.setData("text/plain", "one\ntwo\x1b[201~rm -rf\x07\ttab");
    const event = new Event("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "clipboardData", { value: data });
    input().dispatchEvent(event);
    expect(stream().written).toBe("\x1b[200~one\rtwo[201~rm -rf\ttab\x1b[201~");
    expect(event.defaultPrevented).toBe(true);
    expect(harmless("a\u009b201~\u0000b\r\n")).toBe("a201~b\r\n");
  });

  test("a new size is told once it holds still", async () => {
    const { FitAddon } = await import("@xterm/addon-fit");
    let size = { cols: 80, rows: 24 };
    vi.spyOn(FitAddon.prototype, "proposeDimensions").mockImplementation(() => size);
    const { stream } = await open();
    size = { cols: 132, rows: 50 };
    watching.forEach((tell) => tell());
    watching.forEach((tell) => tell());
    expect(stream().sizes).toEqual([]);
    await pass(100);
    expect(stream().sizes).toEqual([[132, 50]]);
  });

  test("Ctrl+Shift+C copies what is selected and says so; without a selection it is the box's", async () => {
    const { user, stream } = await open();
    const write = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
    await user.click(at("session-shell"));
    const copy = () => input().dispatchEvent(new KeyboardEvent("keydown", { key: "C", ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }));
    copy();
    expect(write).not.toHaveBeenCalled();
    vi.spyOn(Xterm.prototype, "hasSelection").mockReturnValue(true);
    vi.spyOn(Xterm.prototype, "getSelection").mockReturnValue("some words");
    copy();
    await pass(0);
    expect(write.mock.calls).toEqual([["some words"]]);
    expect(words("terminal-told")).toBe("Copied.");
    expect(stream().written).toBe("");
  });

  test("the colours follow the system's while it is shown", async () => {
    const listeners = new Set<() => void>();
    const system = { matches: false, addEventListener: (_: string, listener: () => void) => listeners.add(listener), removeEventListener: (_: string, listener: () => void) => listeners.delete(listener) };
    const real = window.matchMedia.bind(window);
    vi.spyOn(window, "matchMedia").mockImplementation((query) => (query.includes("color-scheme") ? (system as unknown as MediaQueryList) : real(query)));
    const { view } = await open();
    const styles = () => [...at("terminal").querySelectorAll("style")].map((one) => one.textContent).join();
    expect(styles()).toContain("#a8261d");
    system.matches = true;
    listeners.forEach((tell) => tell());
    await pass(50);
    expect(styles()).toContain("#ff9d94");
    expect(styles()).not.toContain("#a8261d");
    view.unmount();
    expect(listeners.size).toBe(0);
  });

  test("a box names no window, fills no clipboard and makes no link", async () => {
    const { stream } = await open();
    const write = vi.spyOn(navigator.clipboard, "writeText");
    const opened = vi.spyOn(window, "open");
    document.title = "AgentBox";
    await give(stream(), "\x1b]0;evil\x07\x1b]2;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b]52;c;?\x07\x1b]8;;https://evil.example\x07click\x1b]8;;\x07 <b>bold</b>");
    expect(document.title).toBe("AgentBox");
    expect(write).not.toHaveBeenCalled();
    expect(stream().written).toBe("");
    expect(drawn()).toContain("click <b>bold</b>");
    expect(at("terminal").querySelector("a, b, .xterm-underline-5")).toBeNull();
    expect(opened).not.toHaveBeenCalled();
  });
});

describe("the end", () => {
  test("says how it ended, and connects again", async () => {
    const { host, user, held, stream } = await open();
    await give(stream(), "bye\r\n");
    held.all = [];
    stream().finish(3);
    await settle();
    expect(words("terminal-ended")).toBe("shell ended with code 3.");
    expect(drawn()).toContain("bye");
    held.all = [session()];
    await user.click(at("reconnect"));
    await settle();
    expect(host.streams).toHaveLength(2);
    expect(maybe("terminal-ended")).toBeNull();
    await give(stream(), "again");
    expect(drawn()).toContain("again");
    expect(drawn()).not.toContain("bye");
  });

  test("a session that goes on says so; a lost connection says why", async () => {
    const { stream, user } = await open();
    stream().finish(0);
    await settle();
    expect(words("terminal-ended")).toContain("goes on in the box");
    await user.click(at("reconnect"));
    await settle();
    stream().fail(error("failed", "the host went away"));
    await settle();
    expect(words("terminal-ended")).toContain("the host went away");
  });

  test("leaving the page ends the stream and takes everything off", async () => {
    const { view, host } = await open();
    view.unmount();
    await tick();
    expect(host.streams[0]?.ended).toBe(true);
    expect(document.querySelector(".xterm")).toBeNull();
  });

  test("a box that is stopped offers its start, and the terminal goes", async () => {
    const { view, app, host, user } = await open();
    await view.rerender({ app, box: box({ state: "stopped" }) });
    await settle();
    expect(host.streams[0]?.ended).toBe(true);
    expect(words("asleep-fix-login")).toContain("fix-login is stopped.");
    await user.click(at("wake-fix-login"));
    expect(host.called("startBox")).toHaveLength(1);
  });

  test("a paused box offers to resume", async () => {
    const { host, user } = await open([], { state: "paused" });
    expect(host.called("sessions")).toEqual([]);
    await user.click(at("wake-fix-login"));
    expect(host.called("unpauseBox")).toHaveLength(1);
  });
});

test("axe finds nothing", async () => {
  const { stream } = await open([CLAUDE, session()]);
  await give(stream(), "hello");
  vi.useRealTimers();
  const found = await axe.run(document.body, { rules: { region: { enabled: false }, "color-contrast": { enabled: false } } });
  expect(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join()}`)).toEqual([]);
});
