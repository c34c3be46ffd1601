// The rules: what they say, when they end, and their removal.
import { describe, expect, test } from "vitest";
import type { Grant } from "../src/lib/bindings/Grant";
import { ALWAYS } from "../src/lib/remember";
import { error } from "./fake";
import { keepSettings, registry, setting, view } from "./registry";
import { egressRule, rule } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const ID = rule().id;
const OTHER = "0f".repeat(16);

async function open(rules: Grant[] = [rule()]) {
  const window = await openWindow();
  const held = { all: rules };
  window.host.on("grants", () => held.all);
  await window.user.click(at("nav-rules"));
  await pass(0);
  return { ...window, held };
}

test("a card says the rule, whom it covers, until when and since when", async () => {
  await open();
  const text = words(`rule-${ID}`);
  expect(text).toContain("Let fix-login push to fix-login of git.example/acme/shop-api");
  expect(text).toContain("Whom fix-login of shop-api");
  expect(text).toMatch(/Until \d\d:\d\d/);
  expect(text).toContain("Made 10 min ago");
  expect(text).toContain("Covers git.push git.example/acme/shop-api fix-login");
  expect(document.querySelector(`[data-testid="rule-${ID}"] time`)?.getAttribute("title")).toContain("2031");
});

test.each([
  [{ host: "api.example.com", action: "allow" }, "Allows any request to https://api.example.com, every path"],
  [{ scheme: "http", port: 80, host: "*.example.com", methods: ["GET"], exact: "/a", action: "ask" }, "Asks about GET requests to http://*.example.com, exactly /a"],
  [{ scheme: "https", port: 8443, host: "evil\u202e.example", prefix: "/x/", action: "deny" }, "Denies any request to https://evil⟨U+202E⟩.example:8443, below /x/"],
  [{ host: "a.example", port: 443, websocket: true, action: "allow" }, "Allows WebSockets to https://a.example, every path"],
])("a rule about requests covers them in words: %o", async (scope, said) => {
  await open([egressRule({ scope: JSON.stringify(scope) })]);
  expect(words(`rule-${egressRule().id}`)).toContain(`Covers ${said}`);
});

test.each(["7", "null", "not json", "{}"])("one of another version is shown as it is: %s", async (scope) => {
  await open([egressRule({ scope })]);
  expect(words(`rule-${egressRule().id}`)).toContain(`Covers egress.request ${scope}`);
});

test.each([
  ["project", "every box of shop-api /home/ada/shop-api"],
  ["everywhere", "every box, in every project"],
] as const)("a rule for %s says so, and whose question it was", async (reach, said) => {
  await open([rule({ reach })]);
  expect(words(`rule-${ID}`)).toContain(`Whom ${said}`);
  expect(words(`rule-${ID}`)).toContain("at a question of fix-login");
});

test("a rule without an end says so", async () => {
  const created = Date.now() - 1000;
  await open([rule({ createdAt: created, expiresAt: created + ALWAYS * 1000 })]);
  expect(words(`rule-${ID}`)).toContain("Until you remove it");
});

test("a rule that ends while it is shown goes", async () => {
  await open([rule({ expiresAt: Date.now() + 5000 }), rule({ id: OTHER })]);
  expect(document.querySelector("main")?.textContent).toContain("2 rules in force");
  await pass(6000);
  expect(maybe(`rule-${ID}`)).toBeNull();
  expect(maybe(`rule-${OTHER}`)).not.toBeNull();
});

test("a rule made at a question appears", async () => {
  const { say, held } = await open([]);
  expect(document.querySelector("main")?.textContent).toContain("No rules: you are asked every time.");
  held.all = [rule()];
  await say({ type: "resolved", id: "q1", boxName: "fix-login", outcome: { kind: "allowed", by: "dialog" } });
  await pass(0);
  expect(maybe(`rule-${ID}`)).not.toBeNull();
});

test("removing asks first, with Cancel as the default, and is said", async () => {
  const { host, user, held } = await open([rule(), rule({ id: OTHER })]);
  host.on("revokeGrant", ({ params }) => {
    held.all = held.all.filter((one) => one.id !== params.id);
    return null;
  });
  await user.click(at(`remove-${ID}`));
  expect(document.activeElement).toBe(at(`confirm-no-${ID}`));
  await user.keyboard("{Enter}");
  await pass(0);
  expect(host.called("revokeGrant")).toEqual([]);
  expect(document.activeElement).toBe(at(`remove-${ID}`));

  await user.click(at(`remove-${ID}`));
  await user.click(at(`confirm-yes-${ID}`));
  await pass(0);
  expect(host.called("revokeGrant").map((call) => call.params)).toEqual([{ id: ID }]);
  expect(maybe(`rule-${ID}`)).toBeNull();
  expect(maybe(`rule-${OTHER}`)).not.toBeNull();
  expect(words("rules-said")).toBe("The rule is removed.");
  expect(document.activeElement).toBe(document.querySelector("h1"));
});

test("a removal that failed says why", async () => {
  const { host, user } = await open();
  host.on("revokeGrant", () => {
    throw error("usage", "There is no such rule.", "Look again.");
  });
  await user.click(at(`remove-${ID}`));
  await user.click(at(`confirm-yes-${ID}`));
  await pass(0);
  expect(words(`confirm-${ID}`)).toContain("There is no such rule. Look again.");
});

test("what a box named stays readable", async () => {
  await open([rule({ sentence: "Let x push to \u202eniam", scope: "a\u200bb" })]);
  expect(words(`rule-${ID}`)).toContain("push to ⟨U+202E⟩niam");
  expect(words(`rule-${ID}`)).toContain("a⟨U+200B⟩b");
});

describe("the policy, above the rules", () => {
  async function policy(over: Record<string, string> = {}) {
    const window = await openWindow();
    const settings = [...registry(), setting("integrations.notes.autoApproveWrites", { takes: { kind: "bool" }, default: "false" })];
    const held = keepSettings(window.host, view({ settings: settings.map((one) => ({ ...one, value: over[one.key] ?? one.value })) }));
    window.host.on("grants", () => []);
    await window.user.click(at("nav-rules"));
    await pass(0);
    return { ...window, held };
  }

  test("says in words that everything asks", async () => {
    await policy();
    expect(words("policy-mode")).toContain("Every write of a box asks you");
    expect(words("policy-writes")).toContain("No service's writes pass without a question.");
    expect(words("policy-quiet")).toContain("No quiet hours");
    expect(maybe("policy-egress")).toBeNull();
  });

  test("says how new boxes get out, and leads to the setting", async () => {
    const window = await openWindow();
    const mode = setting("egress.mode", { takes: { kind: "oneOf", words: ["locked", "balanced", "observe", "open"] }, value: "observe" });
    keepSettings(window.host, view({ settings: [...registry(), mode] }));
    await window.user.click(at("nav-rules"));
    await pass(0);
    expect(words("policy-egress")).toContain("⚠ New boxes' network is observed: every public address can be reached");
    await window.user.click(at("policy-egress-change"));
    await pass(0);
    expect(document.activeElement).toBe(at("setting-egress.mode"));
  });

  test("says what does not ask, and when it is quiet", async () => {
    await policy({ "approvals.mode": "safe", "approvals.quiet": "22:00-07:00", "integrations.tracker.autoApproveWrites": "true" });
    expect(words("policy-mode")).toContain("⚠ What a box writes on its own branch, or copies to .agentbox/out/<box> in your project, does not ask.");
    expect(words("policy-writes-tracker")).toContain("⚠ Writes to tracker pass without a question.");
    expect(maybe("policy-writes-notes")).toBeNull();
    expect(words("policy-quiet")).toContain("Quiet from 22:00 to 07:00");
  });

  test.each([
    ["policy-mode-change", "approvals.mode"],
    ["policy-writes-change", "integrations.tracker.autoApproveWrites"],
    ["policy-quiet-change", "approvals.quiet"],
  ])("%s leads to its setting", async (testid, key) => {
    const { user } = await policy();
    await user.click(at(testid));
    await pass(0);
    expect(document.activeElement).toBe(at(`setting-${key}`));
  });

  test("that cannot be read says why, and the rules are there all the same", async () => {
    const { host, user } = await openWindow();
    host.on("grants", () => [rule()]);
    host.on("settings", () => {
      throw error("usage", "config.yaml is not YAML.");
    });
    await user.click(at("nav-rules"));
    await pass(0);
    expect(words("policy-problem")).toContain("config.yaml is not YAML.");
    expect(maybe(`rule-${ID}`)).not.toBeNull();
    keepSettings(host);
    await user.click(at("policy-again"));
    await pass(0);
    expect(maybe("policy")).not.toBeNull();
  });
});
