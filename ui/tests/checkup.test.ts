// The check-up: groups, the line that sums it up, what to do, and that it may take a while.
import { expect, test } from "vitest";
import type { Check } from "../src/lib/bindings/Check";
import { complete, groups, summary } from "../src/lib/checkup.svelte";
import { pieces } from "../src/lib/hint";
import { error } from "./fake";
import { allGood, check } from "./registry";
import { credential, status } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

async function open(checks: Check[] = allGood()) {
  const window = await openWindow({ first: "boxes" });
  const held = { checks };
  window.host.on("doctor", () => held.checks);
  window.app.show("check-up");
  await pass(0);
  return { ...window, held };
}

const titles = () => [...document.querySelectorAll("main h2")].map((h) => h.textContent);

test("all is good, group by group", async () => {
  await open();
  expect(words("summary")).toBe("✓ All good checked 0 s ago");
  expect(titles()).toEqual(["This computer", "Engine", "Keychain", "Desktop", "Questions and settings", "Programs", "Services"]);
  expect(words("check-engine-engine")).toBe("✓ good engine Docker 27.1");
  expect(words("check-programs-gh")).toBe("ℹ to know gh not installed");
  expect(words("check-desktop-tray")).toContain("✓ good tray");
});

test("what needs somebody says so, with what to do and a command to copy", async () => {
  const { user } = await open([
    check("engine", "engine", { level: "fail", detail: "no engine answered", hint: "add yourself to its group (sudo usermod -aG docker $USER) and log in again" }),
    check("desktop", "keychain", { level: "warn", detail: "locked", hint: "unlock it in your desktop's password program" }),
    check("desktop", "keyring", { level: "warn", detail: "no keyring answers" }),
  ]);
  expect(words("summary")).toContain("⚠ 2 things need you");
  expect(words("check-engine-engine")).toContain("✕ does not work engine no engine answered");
  expect(words("check-desktop-keychain")).toContain("⚠ needs you");
  expect(maybe("check-desktop-keyring")).toBeNull();
  await user.click(at("copy-sudo usermod -aG docker $USER"));
  await pass(0);
  expect(await navigator.clipboard.readText()).toBe("sudo usermod -aG docker $USER");
});

test("what needs somebody comes first, and of that what does not work", async () => {
  await open([
    ...allGood(),
    check("relay", "approvals", { level: "warn", detail: "writes to tracker pass without a question" }),
    check("integrations", "tracker", { level: "fail", detail: "gone" }),
    check("engine", "engine", { level: "fail", detail: "no engine answered" }),
  ]);
  expect(titles().slice(0, 3)).toEqual(["Needs you", "This computer", "Engine"]);
  const first = [...document.querySelectorAll("[aria-label='Needs you'] li")].map((row) => row.textContent?.replace(/\s+/g, " ").trim());
  expect(first).toEqual([
    "✕ does not work Services · tracker gone",
    "✕ does not work engine no engine answered",
    "⚠ needs you Questions and settings · approvals writes to tracker pass without a question",
  ]);
});

test("a missing credential leads to its card, and needs no terminal", async () => {
  const { host, user } = await open([
    check("integrations", "tracker", { level: "warn", detail: "not logged in", hint: "run 'trk login', or store a key: 'agentbox secrets set tracker.token'" }),
  ]);
  host.on("secrets", () => [credential({ id: "other.key" }), credential({ stored: false })]);
  expect(words("check-integrations-tracker")).toMatch(/What to do: run trk login Copy ?, or store a key: Set tracker.token…$/);
  expect(maybe("copy-agentbox secrets set tracker.token")).toBeNull();
  await user.click(at("set-credential-tracker.token"));
  await pass(0);
  expect(document.activeElement).toBe(at("credential-tracker.token"));
});

test("a newer AgentBox is said, with where it is, and needs nobody", async () => {
  const { user } = await open([
    check("host", "updates", { level: "info", detail: "AgentBox 9.0.0 is there; this is 0.1.0", hint: "get it from `https://example.org/9`" }),
  ]);
  expect(words("summary")).toContain("All good");
  expect(words("check-host-updates")).toContain("ℹ to know updates AgentBox 9.0.0 is there; this is 0.1.0 What to do: get it from https://example.org/9");
  await user.click(at("copy-https://example.org/9"));
  await pass(0);
  expect(await navigator.clipboard.readText()).toBe("https://example.org/9");
});

test("one thing, and none, in words", () => {
  expect(summary([check("a", "b", { level: "warn" })])).toBe("1 thing needs you");
  expect(summary([check("a", "b", { level: "info" })])).toBe("All good");
  expect(groups([check("moon", "x")])[0]?.title).toBe("Moon");
});

test("without a desktop there is no tray to miss", () => {
  const rows = complete([], status({ kind: "headless" }));
  expect(rows.map((row) => [row.label, row.level])).toEqual([
    ["tray", "info"],
    ["notifications", "info"],
  ]);
});

test("a notice about the tray takes the place of its good row", () => {
  const rows = complete([check("desktop", "tray", { level: "warn" })], status());
  expect(rows.filter((row) => row.label === "tray").map((row) => row.level)).toEqual(["warn"]);
});

test("it may take a while: nothing, a place, then how long", async () => {
  const { app, host, user } = await openWindow({ first: "boxes" });
  let answer: (value: unknown) => void = () => {};
  host.on("doctor", () => new Promise((yes) => (answer = yes)));
  app.show("check-up");
  await pass(299);
  expect(maybe("skeleton")).toBeNull();
  await pass(1);
  expect(maybe("skeleton")).not.toBeNull();
  expect(maybe("looking")).toBeNull();
  expect(at("found").getAttribute("aria-busy")).toBe("true");
  await pass(3000);
  expect(at("looking").closest("[aria-busy]")).toBeNull();
  expect(words("looking")).toMatch(/3 s$/);
  expect(words("run-again")).toBe("Checking…");
  await user.click(at("run-again"));
  expect(host.called("doctor")).toHaveLength(1);
  answer(allGood());
  await pass(0);
  expect(maybe("looking")).toBeNull();
  expect(maybe("skeleton")).toBeNull();
  expect(words("run-again")).toBe("Run again");
  expect(at("found").getAttribute("aria-busy")).toBe("false");
});

test("running again keeps what is known until there is more", async () => {
  const { host, user, held } = await open([check("engine", "engine", { level: "fail" })]);
  let go: () => void = () => {};
  host.on("doctor", () => new Promise((yes) => (go = () => yes(held.checks))));
  held.checks = allGood();
  await user.click(at("run-again"));
  await pass(1500);
  expect(at("found").getAttribute("aria-busy")).toBe("true");
  expect(words("summary")).toContain("1 thing needs you");
  go();
  await pass(0);
  expect(words("summary")).toContain("All good");
});

test("one that cannot be made says why, and is tried again", async () => {
  const { app, host, user } = await openWindow({ first: "boxes" });
  host.on("doctor", () => {
    throw error("failed", "The host is busy.");
  });
  app.show("check-up");
  await pass(0);
  expect(words("page-problem")).toContain("The host is busy.");
  host.on("doctor", allGood);
  await user.click(at("try-again"));
  await pass(0);
  expect(maybe("page-problem")).toBeNull();
  expect(words("summary")).toContain("All good");
});

test("j and k move over the rows", async () => {
  const { user } = await open();
  await user.keyboard("jj");
  expect(document.activeElement).toBe(at("check-system-git"));
});

test.each([
  ["agentbox prepare --build builds it now", ["agentbox prepare --build"]],
  ["agentbox integrations enable tracker", ["agentbox integrations enable tracker"]],
  ["make room: agentbox prune --all shows what nobody needs any more", ["agentbox prune --all"]],
  ["agentbox status docs shows what runs in it, agentbox limits docs allows it more, agentbox stop docs ends it", ["agentbox status docs", "agentbox limits docs", "agentbox stop docs"]],
  ["agentbox prune forgets it; its commits stay", ["agentbox prune"]],
  ["agentbox serve, or agentbox-desktop", ["agentbox serve", "agentbox-desktop"]],
  ["run 'linear auth login', or 'agentbox secrets set linear.token'", ["linear auth login", "agentbox secrets set linear.token"]],
  ["run `gh auth login`", ["gh auth login"]],
  ["agentbox services list shows the tasks and services there are", ["agentbox services list"]],
  ["agentbox queue shows what waits and why; --timeout waits longer", ["agentbox queue"]],
  ["agentbox grants lists the rules.", ["agentbox grants"]],
  ["agentbox secrets lists what is", ["agentbox secrets"]],
  ["agentbox git status fix shows it, agentbox app start starts it", ["agentbox git status fix", "agentbox app start"]],
  ["agentbox agent approvals fix shows them, agentbox host stop ends that", ["agentbox agent approvals fix", "agentbox host stop"]],
  ["a box could write it; agentbox config explain KEY says what it is", []],
  ["unlock it in your desktop's password program, it's there", []],
  ["install and start Docker or Podman, or set engine.host", []],
])("commands in “%s”", (hint, commands) => {
  const found = pieces(hint);
  expect(found.filter((piece) => piece.command).map((piece) => piece.text)).toEqual(commands);
});

test("a hint without commands stays as it is", () => {
  expect(pieces("install git")).toEqual([{ text: "install git", command: false }]);
});
