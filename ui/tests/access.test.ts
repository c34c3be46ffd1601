// What a screen reader would stumble over, page by page.
import { render } from "@testing-library/svelte";
import axe from "axe-core";
import { expect, test, vi } from "vitest";
import KeyHelp from "../src/parts/KeyHelp.svelte";
import { allGood, check, keepSettings, registry, view } from "./registry";
import { box, credential, question, record, rule, service } from "./samples";
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

test("nor in the list of keys", async () => {
  const { user } = await open("boxes");
  render(KeyHelp);
  await user.keyboard("?");
  await pass(0);
  expect(await violations()).toEqual([]);
}, 30_000);
