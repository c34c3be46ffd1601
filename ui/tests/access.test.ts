// What a screen reader would stumble over, page by page.
import { render } from "@testing-library/svelte";
import axe from "axe-core";
import { expect, test, vi } from "vitest";
import KeyHelp from "../src/parts/KeyHelp.svelte";
import { allGood, check, keepSettings, registry, view } from "./registry";
import { blocked, box, credential, egress, egressRule, question, record, rule, service, traffic } from "./samples";
import { at, openWindow, pass } from "./window";

async function open(first: string) {
  const window = await openWindow({ first: "boxes", boxes: [box()], questions: [question()] });
  keepSettings(window.host, view({ settings: registry(), problems: ["config.yaml: x is no setting"] }));
  const { host } = window;
  host.on("doctor", () => [...allGood(), check("engine", "disk", { level: "warn", hint: "agentbox prune --all shows what can go" })]);
  host.on("integrations", () => [service({ enabled: true }), service({ service: "b", title: "Beta", program: { name: "b", path: null } })]);
  host.on("grants", () => [rule()]);
  host.on("secrets", () => [credential()]);
  host.on("audit", () => [record(1)]);
  host.on("projects", () => []);
  host.on("lookAtFolder", () => ({
    folder: "/p",
    project: "p",
    projectRoot: "/p",
    repository: null,
    envFiles: [".env"],
    withEnv: true,
    checkpoints: [],
    limits: { memoryBytes: null, nanoCpus: null, pids: null, diskBytes: null },
  }));
  const file = { src: "~/a", dest: "/a", kind: "file", bytes: 1, mode: "0600", user: null, notes: [], warnings: ["looks like a credential"] };
  host.on("carryPlan", () => ({ files: Array.from({ length: 8 }, () => file), digest: "d", warnings: [], remembered: null, changes: null }));
  window.app.show(first);
  await pass(0);
  return window;
}

async function violations() {
  vi.useRealTimers();
  // Colours are looked at in another test; there is no layout here.
  const found = await axe.run(document.body, { rules: { region: { enabled: false }, "color-contrast": { enabled: false } } });
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join()}`);
}

test.each(["inbox", "settings", "check-up", "welcome", "new", "integrations", "rules", "activity", "credentials"])(
  "axe finds nothing on the page %s",
  async (page) => {
    const { app } = await open(page);
    if (page === "new") await app.newBox.setFolder("/p");
    await pass(0);
    expect(await violations()).toEqual([]);
  },
  30_000,
);

test("nor at a question about a setting", async () => {
  const { user } = await open("settings");
  await user.selectOptions(at("value-approvals.mode"), "safe");
  await user.type(at("value-box.memory"), "x{Enter}");
  await pass(0);
  expect(await violations()).toEqual([]);
}, 30_000);

test.each(["open", "observe"] as const)("nor at the network of a box that is %s", async (mode) => {
  const { host, app, say, snapshot, user } = await open("boxes");
  const repository = { file: "x", commit: "c", digest: "d", state: "waiting" as const, diff: ["+a", "-b"] };
  host.on("egress", () => egress({ mode, unavailable: "why", grants: [egressRule()], repository }));
  host.on("apiUse", () => [{ boxId: "b00000001", boxName: "x", api: "A", host: "a", calls: 1, failed: 0, bytesUp: 1, bytesDown: 1, last: 1 }]);
  host.on("suggestEgress", () => ({ text: "domains: []\n", lines: 1, notes: ["x"] }));
  host.on("changeEgress", () => ({ file: "/f", added: "- host: a\n", widens: ["x"], grant: null, reloaded: [] }));
  await say({ ...snapshot, boxes: [box({ egress: mode })] } as typeof snapshot);
  app.show("box/b00000001/network");
  await pass(20);
  await user.click(at("change-mode"));
  if (mode !== "open") {
    host.streams.at(-1)?.give(`${JSON.stringify(blocked("1"))}\n${JSON.stringify(traffic("2"))}\n`);
    await pass(20);
    await user.click(at("suggest"));
    at("traffic").focus();
    await user.keyboard("{Home}{Enter}");
    await pass(0);
    expect(await violations()).toEqual([]);
    vi.useFakeTimers();
    await user.click(at("allow"));
    await pass(0);
  }
  expect(await violations()).toEqual([]);
}, 30_000);

test("nor at a new credential", async () => {
  const { user } = await open("credentials");
  await user.click(at("add-credential"));
  expect(await violations()).toEqual([]);
}, 30_000);

test("nor in the list of keys", async () => {
  const { user } = await open("boxes");
  render(KeyHelp);
  await user.keyboard("?");
  await pass(0);
  expect(await violations()).toEqual([]);
}, 30_000);
