// The files of a box: what is listed, the ways through it, copies, and names that mean harm.
import { render } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import axe from "axe-core";
import { describe, expect, test, vi } from "vitest";
import type { BoxFile } from "../src/lib/bindings/BoxFile";
import type { BoxView } from "../src/lib/bindings/BoxView";
import { above, changedAt, crumbs, inOrder, join, someNames } from "../src/lib/files";
import { Keys } from "../src/lib/keys";
import { AppState } from "../src/lib/state.svelte";
import Files from "../src/parts/box/Files.svelte";
import { FakeBackend, error } from "./fake";
import { box } from "./samples";
import { at, maybe, pass, words } from "./window";

const file = (name: string, over: Partial<BoxFile> = {}): BoxFile => ({ name, kind: "file", size: 1234, modified: Date.now() - 120_000, ...over });
const folder = (name: string) => file(name, { kind: "folder", size: 4096 });

async function open(entries: BoxFile[] = [file("b.txt"), folder("src"), file("a.txt")], over: Partial<BoxView> = {}) {
  const host = new FakeBackend();
  host.folders.set("/workspace", { entries, more: false });
  host.folders.set("/workspace/src", { entries: [file("main.rs"), folder("deep")], more: false });
  host.folders.set("/", { entries: [folder("home"), folder("workspace")], more: false });
  const app = new AppState(host);
  const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms), delay: null });
  const view = render(Files, { props: { app, box: box(over) } });
  await pass(0);
  return { host, app, user, view };
}

const names = () => [...document.querySelectorAll("tbody .name")].map((cell) => cell.querySelector(".exact")?.textContent);
const path = () => [...document.querySelectorAll("nav li button")].map((crumb) => crumb.textContent).join(" ");
const row = (n: number) => at(`file-${n}`);

describe("paths and names", () => {
  test("a path is taken apart and put together", () => {
    expect(crumbs("/workspace/src").map((crumb) => crumb.path)).toEqual(["/", "/workspace", "/workspace/src"]);
    expect(crumbs("/").map((crumb) => crumb.path)).toEqual(["/"]);
    expect([above("/workspace/src"), above("/workspace"), above("/")]).toEqual(["/workspace", "/", null]);
    expect([join("/", "etc"), join("/workspace", "a b")]).toEqual(["/etc", "/workspace/a b"]);
  });

  test("what is no name is left out, what comes twice counts once", () => {
    const bad = ["", ".", "..", "a/b", "a\0b"].map((name) => file(name));
    const all = inOrder([...bad, file("x10"), file("x9"), folder("z"), file("x9")]);
    expect(all.map((entry) => entry.name)).toEqual(["z", "x9", "x10"]);
  });

  test("some names stand for many", () => {
    expect(someNames(["a"])).toBe("a");
    expect(someNames(["a", "b"])).toBe("a and b");
    expect(someNames(["a", "b", "c", "d"])).toBe("a, b and 2 more");
    expect(someNames(["\u202etxt.exe"])).toBe("⟨U+202E⟩txt.exe");
  });

  test("a time that no calendar has is none", () => {
    expect(changedAt(file("a", { modified: 1e18 }))).toBeNull();
    expect(changedAt(file("a", { modified: 5 }))).toBe(5);
  });
});

describe("the list", () => {
  test("folders come first, with size and age and the exact time on hover", async () => {
    await open();
    expect(path()).toBe("/ workspace");
    expect(names()).toEqual(["src", "a.txt", "b.txt"]);
    expect(words("file-0")).not.toContain("KB");
    expect(words("file-1")).toContain("1.2 KB");
    expect(words("file-1")).toContain("2 min ago");
    expect(row(1).querySelector("time")?.title).toContain("2031");
  });

  test("an empty folder says so", async () => {
    await open([]);
    expect(words("no-files")).toBe("Nothing is in this folder.");
  });

  test("a folder with more than is listed says so", async () => {
    const { host, user } = await open();
    host.folders.set("/workspace", { entries: [file("a")], more: true });
    await user.click(at("files-refresh"));
    await pass(0);
    expect(words("too-many")).toContain("more in this folder than is listed");
  });

  test("thousands are drawn in parts", async () => {
    const { user } = await open(Array.from({ length: 700 }, (_, n) => file(`f${n}`)));
    expect(names()).toHaveLength(300);
    expect(words("files-more")).toContain("400 not shown");
    await user.click(at("files-more"));
    expect(names()).toHaveLength(600);
    row(599).focus();
    await user.keyboard("j");
    await pass(0);
    expect(document.activeElement).toBe(row(600));
  });

  test("a hostile name and time are drawn as text with nothing hidden", async () => {
    await open([file("<img src=x onerror=alert(1)>"), file("photo\u202egpj.exe"), file("a\nb\u001b[31m\u200b", { modified: 1e300 })]);
    expect(names().sort()).toEqual(["<img src=x onerror=alert(1)>", "a⏎b\\x1b[31m⟨U+200B⟩", "photo⟨U+202E⟩gpj.exe"]);
    expect(document.querySelector("img")).toBeNull();
  });

  test("the filter narrows, and says when nothing fits", async () => {
    const { user } = await open();
    await user.type(at("files-filter"), "TXT");
    expect(names()).toEqual(["a.txt", "b.txt"]);
    await user.type(at("files-filter"), "zzz");
    expect(words("no-files")).toContain("No name here has that in it.");
    await user.click(at("clear-filter"));
    expect(names()).toHaveLength(3);
    await user.keyboard("a.{Enter}");
    await pass(0);
    expect(document.activeElement).toBe(row(0));
  });

  test("a folder that cannot be read says why, and the one before stays", async () => {
    const { host, user } = await open([folder("secret"), folder("src")]);
    await user.dblClick(row(0));
    await pass(0);
    expect(words("page-problem")).toContain("cannot read /workspace/secret");
    expect(path()).toBe("/ workspace");
    expect(names()).toEqual(["secret", "src"]);
    await user.click(at("files-refresh"));
    await pass(0);
    expect(maybe("page-problem")).toBeNull();
    await user.dblClick(row(0));
    await pass(0);
    host.folders.set("/workspace/secret", { entries: [], more: false });
    await user.click(at("try-again"));
    await pass(0);
    expect(path()).toBe("/ workspace secret");
    expect(maybe("page-problem")).toBeNull();
  });
});

describe("ways through", () => {
  test("Enter opens, Backspace goes up to where one was, and the app hears none of it", async () => {
    const { user } = await open();
    const keys = new Keys();
    const read: unknown[] = [];
    const listen = (event: KeyboardEvent) => read.push(keys.read(event));
    window.addEventListener("keydown", listen);
    row(0).focus();
    await user.keyboard("{Enter}");
    await pass(0);
    expect(path()).toBe("/ workspace src");
    expect(names()).toEqual(["deep", "main.rs"]);
    expect(document.activeElement).toBe(row(0));
    await user.keyboard("jjk{ArrowDown}");
    await pass(0);
    expect(document.activeElement).toBe(row(1));
    // A file opens nothing.
    await user.keyboard("{Enter}");
    await pass(0);
    expect(path()).toBe("/ workspace src");
    await user.keyboard("{Backspace}");
    await pass(0);
    expect(path()).toBe("/ workspace");
    expect(document.activeElement).toBe(row(0));
    await user.keyboard("{End}");
    await pass(0);
    expect(document.activeElement).toBe(row(2));
    await user.keyboard("{Home}{Backspace}");
    await pass(0);
    expect(path()).toBe("/");
    expect(document.activeElement?.textContent).toContain("workspace");
    await user.keyboard("{Backspace}");
    await pass(0);
    expect(path()).toBe("/");
    window.removeEventListener("keydown", listen);
    expect(read.filter((action) => action !== null)).toEqual([]);
  });

  test("a double click opens, a crumb leads back", async () => {
    const { user } = await open();
    await user.dblClick(row(0));
    await pass(0);
    expect(path()).toBe("/ workspace src");
    await user.click(at("crumb-1"));
    await pass(0);
    expect(path()).toBe("/ workspace");
    await user.click(at("files-up"));
    await pass(0);
    expect(path()).toBe("/");
    expect((at("files-up") as HTMLButtonElement).disabled).toBe(true);
  });
});

describe("copies", () => {
  test("in: into the folder that is shown, and the list is read again", async () => {
    const { host, user } = await open();
    await user.dblClick(row(0));
    await pass(0);
    host.folders.set("/workspace/src", { entries: [file("new.txt")], more: false });
    await user.click(at("copy-in"));
    await pass(0);
    expect(host.copies).toEqual(["in b00000001:/workspace/src"]);
    expect(words("files-said")).toBe("1 file or folder copied into /workspace/src.");
    expect(names()).toEqual(["new.txt"]);
  });

  test("out: says where it is, and not to trust it", async () => {
    const { host, user } = await open();
    expect(words("trust")).toContain("not to be trusted");
    expect(at("copy-out-1").getAttribute("aria-label")).toBe("Copy to this computer… a.txt");
    await user.click(at("copy-out-1"));
    await pass(0);
    expect(host.copies).toEqual(["out b00000001:/workspace/a.txt"]);
    expect(words("files-said")).toContain("a.txt is in /home/ada/Downloads. It came from a box");
  });

  test("out: who leaves the chooser has copied nothing", async () => {
    const { host, user } = await open();
    vi.spyOn(host, "copyOut").mockResolvedValue(null);
    await user.click(at("copy-out-1"));
    await pass(0);
    expect(words("files-said")).toBe("");
  });

  test("what went wrong is said", async () => {
    const { host, user } = await open();
    vi.spyOn(host, "copyOut").mockRejectedValue(error("failed", "the disk is full", "make room"));
    await user.click(at("copy-out-0"));
    await pass(0);
    const alert = document.querySelector("[role=alert]")?.textContent ?? "";
    expect(alert).toContain("the disk is full");
    expect(alert).toContain("make room");
    expect((at("copy-in") as HTMLButtonElement).disabled).toBe(false);
  });

  test("dropped: named with where to, asked about, and copied to where it was asked", async () => {
    const { host, user } = await open();
    host.drop!.over(["plan.pdf", "a\u202eb"]);
    await pass(0);
    expect(words("drop-overlay")).toContain("Drop to copy plan.pdf and a⟨U+202E⟩b into /workspace of fix-login.");
    host.drop!.over(null);
    await pass(0);
    expect(maybe("drop-overlay")).toBeNull();

    host.drop!.over(["plan.pdf"]);
    host.drop!.dropped(["plan.pdf"]);
    await pass(0);
    expect(maybe("drop-overlay")).toBeNull();
    expect(words("confirm-drop")).toContain("Copy plan.pdf into /workspace?");
    expect(host.copies).toEqual([]);
    expect(document.activeElement).toBe(at("confirm-no-drop"));
    await user.dblClick(row(0));
    await pass(0);
    expect(path()).toBe("/ workspace src");
    await user.click(at("confirm-yes-drop"));
    await pass(0);
    expect(host.copies).toEqual(["dropped b00000001:/workspace plan.pdf"]);
    expect(maybe("confirm-drop")).toBeNull();
    expect(words("files-said")).toContain("copied into /workspace.");
  });

  test("dropped: Cancel and Escape copy nothing; a failure stays with its reason", async () => {
    const { host, user } = await open();
    for (const key of ["{Enter}", "{Escape}"]) {
      host.drop!.dropped(["a"]);
      await pass(0);
      await user.keyboard(key);
      await pass(0);
      expect(maybe("confirm-drop")).toBeNull();
    }
    expect(host.copies).toEqual([]);
    vi.spyOn(host, "copyDropped").mockRejectedValue(error("failed", "it is too large"));
    host.drop!.dropped(["a"]);
    await pass(0);
    await user.click(at("confirm-yes-drop"));
    await pass(0);
    expect(words("confirm-drop")).toContain("it is too large");
  });

  test("dropped: the names that were shown go along, and that others were dropped meanwhile is said in place", async () => {
    const { host, user } = await open();
    const refused = vi.spyOn(host, "copyDropped").mockRejectedValue(error("failed", "Other files were dropped meanwhile.", "Drop them again."));
    host.drop!.dropped(["plan.pdf", "a\u202eb"]);
    await pass(0);
    await user.click(at("confirm-yes-drop"));
    await pass(0);
    // As they are, not as they are drawn.
    expect(refused.mock.calls).toEqual([["b00000001", "/workspace", ["plan.pdf", "a\u202eb"]]]);
    expect(words("confirm-drop")).toContain("Other files were dropped meanwhile. Drop them again.");
    expect(words("files-said")).toBe("");
    // Another drop is another question, without the old answer.
    host.drop!.dropped(["b.txt"]);
    await pass(0);
    expect(words("confirm-drop")).toContain("Copy b.txt into /workspace?");
    expect(words("confirm-drop")).not.toContain("meanwhile");
  });

  test("nothing listens for drops once the page is left or the box stops", async () => {
    const { host, view, app } = await open();
    expect(host.drop).not.toBeNull();
    await view.rerender({ app, box: box({ state: "stopped" }) });
    expect(host.drop).toBeNull();
    expect(words("asleep-fix-login")).toContain("Its files can be seen while it runs.");
  });
});

test("axe finds nothing", async () => {
  const { host } = await open();
  host.drop!.dropped(["plan.pdf"]);
  await pass(0);
  vi.useRealTimers();
  const found = await axe.run(document.body, { rules: { region: { enabled: false }, "color-contrast": { enabled: false } } });
  expect(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join()}`)).toEqual([]);
});
