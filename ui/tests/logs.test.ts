// The logs of a box: drawn a screen at a time, followed, searched, copied.
import { tick } from "svelte";
import { describe, expect, test, vi } from "vitest";
import type { Backend } from "../src/lib/backend";
import { Log } from "../src/lib/log.svelte";
import { error } from "./fake";
import { box, boxService, boxTask, units } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

async function open(view = box()) {
  const opened = await openWindow({ first: "box/b00000001/logs" });
  opened.host.on("units", () => units({ services: [boxService("web")], tasks: [boxTask("install")] }));
  await opened.say({ ...opened.snapshot, boxes: [view] } as typeof opened.snapshot);
  await pass(50);
  const stream = () => opened.host.streams.at(-1)!;
  const give = async (text: string | Uint8Array) => {
    stream().give(text);
    await pass(50);
  };
  return { ...opened, stream, give };
}

const rows = () => [...document.querySelectorAll<HTMLElement>("[data-testid=log-row]")];
const texts = () => rows().map((row) => row.querySelector(".text")?.textContent);
const area = () => at("log-lines");
const numbered = (count: number, from = 0) => Array.from({ length: count }, (_, n) => `line ${from + n}\n`).join("");

async function scrollTo(top: number) {
  area().scrollTop = top;
  area().dispatchEvent(new Event("scroll"));
  await tick();
}

test("the box's own log is followed, in lines", async () => {
  const { stream, give } = await open();
  expect(stream().what).toEqual({ kind: "log", id: "b00000001", tail: 100_000 });
  expect(words("log-empty")).toContain("Nothing yet");
  await give("hello\nwor");
  expect(texts()).toEqual(["hello"]);
  await give("ld\n");
  expect(texts()).toEqual(["hello", "world"]);
  expect(words("log-length")).toBe("2 lines");
});

test("a hundred thousand lines are a screenful in the page, and the end is in view", async () => {
  const { give } = await open();
  for (let n = 0; n < 10; n++) await give(numbered(11_000, n * 11_000));
  await pass(500);
  expect(words("log-length")).toBe("100000 lines, older ones are gone");
  expect(rows().length).toBeGreaterThan(20);
  expect(rows().length).toBeLessThan(200);
  expect(texts().at(-1)).toBe("line 109999");
  await scrollTo(20 * 50_000);
  expect(rows().length).toBeLessThan(200);
  expect(texts()).toContain("line 60000");
  // Scrolling far and wide leaves nothing behind.
  for (let step = 0; step < 50; step++) await scrollTo(step * 30_000);
  expect(rows().length).toBeLessThan(200);
}, 30_000);

test("bytes count as taken when they are in, between two pictures, and not before", async () => {
  let onBytes: (bytes: Uint8Array) => void | Promise<void> = () => {};
  const backend = { stream: (_, give) => ((onBytes = give), { done: new Promise(() => {}), end() {}, write() {}, resize() {} }) } as Pick<Backend, "stream"> as Backend;
  const log = new Log(backend, { kind: "log", id: "b00000001", tail: 1 });
  let taken = false;
  void Promise.resolve(onBytes(new TextEncoder().encode("a\n"))).then(() => (taken = true));
  await pass(0);
  expect([taken, log.lines.length]).toEqual([false, 0]);
  await pass(20);
  expect([taken, log.lines.length]).toEqual([true, 1]);
  // Nobody looks any more: what still comes is let through and kept nowhere.
  log.leave();
  await onBytes(new TextEncoder().encode("b\n"));
  expect(log.lines.length).toBe(1);
});

test("a flood in chunks that cut letters in two is whole in the end", async () => {
  const { stream } = await open();
  const all = new TextEncoder().encode(Array.from({ length: 2000 }, (_, n) => `${n} grün 🦀\n`).join(""));
  for (let from = 0; from < all.length; from += 997) stream().give(all.slice(from, from + 997));
  expect(rows()).toHaveLength(0);
  await pass(2000);
  expect(words("log-length")).toBe("2000 lines");
  expect(texts().at(-1)).toBe("1999 grün 🦀");
  expect(texts().join("")).not.toContain("\ufffd");
});

test("what a box sends to confuse is text: escape sequences, markup, letters that hide", async () => {
  const { give } = await open();
  await give("\u001b[31mred\u001b[0m <img src=x onerror=alert(1)> a\u202eb\n");
  expect(texts()).toEqual(["\\x1b[31mred\\x1b[0m <img src=x onerror=alert(1)> a⟨U+202E⟩b"]);
  expect(document.querySelector("main img")).toBeNull();
});

test("levels are coloured by words that stay", async () => {
  const { give } = await open();
  await give("fine\nError: no\nWARN maybe\n");
  expect(rows().map((row) => [row.classList.contains("bad"), row.classList.contains("warn")])).toEqual([
    [false, false],
    [true, false],
    [false, true],
  ]);
});

describe("following", () => {
  test("ends when the person scrolls up, and Follow takes it up again", async () => {
    const { give, user } = await open();
    await give(numbered(1000));
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("true");
    await scrollTo(2000);
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("false");
    await give(numbered(1000, 1000));
    expect(area().scrollTop).toBe(2000);
    expect(texts()).toContain("line 100");
    await user.click(at("log-follow"));
    await pass(50);
    expect(texts().at(-1)).toBe("line 1999");
    await give("newest\n");
    expect(texts().at(-1)).toBe("newest");
  });

  test("goes on in a window that is made larger", async () => {
    const { give } = await open();
    await give(numbered(1000));
    // The browser moves it as far down as it then goes, and tells of that first.
    Object.defineProperty(area(), "clientHeight", { value: 900 });
    await scrollTo(20 * 1000 - 900);
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("true");
  });

  test("scrolling back to the end follows as well", async () => {
    const { give } = await open();
    await give(numbered(1000));
    await scrollTo(2000);
    await scrollTo(1000 * 20 - 600);
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("true");
  });

  test("going to something found near the end does not follow", async () => {
    const { give, user } = await open();
    await give(`${numbered(1000)}treasure\n`);
    await user.type(at("log-search"), "treasure{Enter}");
    await pass(50);
    await user.keyboard("{Enter}");
    area().dispatchEvent(new Event("scroll"));
    await give(numbered(500));
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("false");
    expect(texts()).toContain("treasure");
  });

  test("lines that go above do not move those that are read", async () => {
    const { give } = await open();
    for (let n = 0; n < 10; n++) await give(numbered(10_000, n * 10_000));
    await pass(500);
    await scrollTo(20 * 50_000);
    const before = texts();
    await give(numbered(500, 100_000));
    expect(area().scrollTop).toBe(20 * (50_000 - 500));
    expect(texts()).toEqual(before);
  });
});

describe("search", () => {
  test("counts, marks, and goes from one to the next and back", async () => {
    const { give, user } = await open();
    await give(numbered(5000));
    await user.keyboard("/");
    expect(document.activeElement).toBe(at("log-search"));
    await user.type(at("log-search"), "LINE 49");
    await pass(500);
    // 49, 490–499, 4900–4999
    expect(words("log-count")).toBe("111 found");
    expect(document.querySelectorAll("mark").length).toBeGreaterThan(0);
    await scrollTo(0);
    await user.keyboard("{Enter}");
    await pass(50);
    expect(words("log-count")).toBe("1 of 111");
    expect(document.querySelector(".row.current .text")?.textContent).toBe("line 49");
    expect(document.querySelector(".row.current mark")?.textContent).toBe("line 49");
    await user.keyboard("{Enter}");
    expect(words("log-count")).toBe("2 of 111");
    await user.keyboard("{Shift>}{Enter}{Enter}{/Shift}");
    expect(words("log-count")).toBe("111 of 111");
    await user.click(at("log-next"));
    expect(words("log-count")).toBe("1 of 111");
    await give("line 49 again\n");
    expect(words("log-count")).toBe("1 of 112");
    await user.click(at("log-search"));
    await user.keyboard("{Escape}");
    await pass(50);
    expect(words("log-count")).toBe("");
    expect(document.querySelectorAll("mark")).toHaveLength(0);
  });

  test("says when there is nothing", async () => {
    const { give, user } = await open();
    await give("a\n");
    await user.type(at("log-search"), "(");
    await pass(50);
    expect(words("log-count")).toBe("Nothing found");
    expect((at("log-next") as HTMLButtonElement).disabled).toBe(true);
  });
});

describe("units", () => {
  test("are chosen from a list; their lines have a time and a mark for stderr", async () => {
    const { host, user, stream, give } = await open();
    const first = stream();
    await user.selectOptions(at("log-source"), "web");
    await pass(50);
    expect(first.ended).toBe(true);
    expect(host.streams).toHaveLength(2);
    expect(stream().what).toEqual({ kind: "unitLog", id: "b00000001", unit: "web", tail: 100_000 });
    await give("2026-01-01T10:00:00.123Z O up\n2026-01-01T10:00:01.000Z E oh\n");
    expect(texts()).toEqual(["up", "oh"]);
    expect(rows().map((row) => row.querySelector(".time")?.textContent)).toEqual([
      expect.stringMatching(/^\d\d:\d\d:00\.123$/),
      expect.stringMatching(/^\d\d:\d\d:01\.000$/),
    ]);
    expect(rows().map((row) => row.querySelector(".err")?.textContent)).toEqual(["", "err"]);
  });
});

describe("ends and errors", () => {
  test("a log that cannot be read says why, and is tried again", async () => {
    const { host, user, stream, give } = await open();
    await give("before\n");
    stream().fail(error("failed", "the box does not run", "start it"));
    await pass(50);
    expect(words("log-problem")).toContain("the box does not run start it");
    expect(texts()).toEqual(["before"]);
    await user.click(at("try-again"));
    await pass(50);
    expect(host.streams).toHaveLength(2);
    expect(maybe("log-problem")).toBeNull();
  });

  test("one that ends says so with its last words, and is read anew when the box comes up", async () => {
    const { host, say, stream } = await open();
    stream().give("last words");
    stream().finish(0);
    await pass(50);
    expect(texts()).toEqual(["last words"]);
    expect(words("log-ended")).toContain("The log ended.");
    await say({ type: "boxChanged", view: box({ state: "stopped" }) });
    await pass(50);
    expect(texts()).toEqual(["last words"]);
    expect(host.streams).toHaveLength(1);
    await say({ type: "boxChanged", view: box() });
    await pass(50);
    expect(host.streams).toHaveLength(2);
  });

  test("leaving the tab ends the stream; a host that comes back is asked again", async () => {
    const { host, user, say, snapshot, stream } = await open();
    host.goDown("gone");
    await pass(1100);
    await say({ ...snapshot, boxes: [box()] } as typeof snapshot);
    await pass(50);
    expect(host.streams).toHaveLength(2);
    await user.click(at("tab-overview"));
    expect(stream().ended).toBe(true);
    expect(host.streams.every((one) => one.ended)).toBe(true);
  });
});

describe("wrapping", () => {
  test("long lines become rows of one height, and back", async () => {
    const { give, user } = await open();
    await give(`${"abcdefghij".repeat(50)}\nshort\n`);
    expect(rows()).toHaveLength(2);
    await user.click(at("log-wrap"));
    await pass(50);
    expect(rows().length).toBe(6);
    expect(texts().slice(0, -1).join("")).toBe("abcdefghij".repeat(50));
    expect(texts().at(-1)).toBe("short");
    await user.click(at("log-wrap"));
    await pass(50);
    expect(rows()).toHaveLength(2);
  });

  test("a very long line is drawn in part, and says how much more there is", async () => {
    const { give } = await open();
    await give(`${"x".repeat(10_000)}\n`);
    expect(texts()[0]).toHaveLength(4096);
    expect(rows()[0]?.textContent).toContain("5904 more characters");
  });
});

describe("copying and saving", () => {
  function select(from: HTMLElement, start: number, to: HTMLElement, end: number) {
    const node = (row: HTMLElement) => [...row.querySelector(".text")!.childNodes].find((one) => one.textContent !== "")!;
    document.getSelection()?.setBaseAndExtent(node(from), start, node(to), end);
    document.dispatchEvent(new Event("selectionchange"));
  }

  function clipboard() {
    const copied: string[] = [];
    vi.spyOn(navigator.clipboard, "writeText").mockImplementation(async (text) => void copied.push(text));
    return copied;
  }

  test("what is selected is copied, following rests, and the anchor stays while one scrolls", async () => {
    const { give, user } = await open();
    const copied = clipboard();
    await give(numbered(1000));
    await scrollTo(0);
    select(rows()[1]!, 2, rows()[3]!, 4);
    await tick();
    expect(at("log-follow").getAttribute("aria-pressed")).toBe("false");
    await user.click(at("log-copy"));
    await pass(0);
    expect(copied).toEqual(["ne 1\nline 2\nline"]);
    expect(words("log-said")).toBe("Copied the selection.");
    await scrollTo(10_000);
    expect(texts()[0]).toBe("line 1");
    expect(rows().length).toBeLessThan(200);
  });

  test("all of it is copied with times, as it is seen", async () => {
    const { give, user } = await open();
    const copied = clipboard();
    await give("a\n\u001b[1mb\n");
    await user.click(at("log-copy-all"));
    await pass(0);
    expect(copied).toEqual(["a\n\\x1b[1mb\n"]);
    expect(words("log-said")).toBe("Copied 2 lines.");
  });

  test("a clipboard that refuses is told", async () => {
    const { give, user } = await open();
    vi.spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("not allowed"));
    await give("a\n");
    await user.click(at("log-copy-all"));
    await pass(0);
    expect(words("log-said")).toBe("Not copied: not allowed");
  });

  test("a download is a file of the same, where the person wants it", async () => {
    const { give, user, host } = await open();
    await give("a\nb\n");
    await user.click(at("log-download"));
    await pass(0);
    expect(host.saved).toEqual([{ name: "fix-login-box-20310305-1000.log", text: "a\nb\n" }]);
    expect(words("log-said")).toBe("Saved as /home/ada/fix-login-box-20310305-1000.log.");
  });
});
