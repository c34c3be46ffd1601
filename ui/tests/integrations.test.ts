// The services: what their cards say, the switch, and the test.
import { describe, expect, test } from "vitest";
import type { IntegrationView } from "../src/lib/bindings/IntegrationView";
import { error } from "./fake";
import { allGood, check, keepSettings } from "./registry";
import { credential, service } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

async function open(services: IntegrationView[] = [service()]) {
  const window = await openWindow();
  window.host.on("integrations", () => services);
  await window.user.click(at("nav-integrations"));
  await pass(0);
  return window;
}

const isOn = (name = "tracker") => at(`switch-${name}`).getAttribute("aria-checked");

test("a card says what a service is, needs and can do", async () => {
  const { host } = await open();
  expect(host.called("integrations")[0]?.params).toEqual({ cwd: null });
  const text = words("service-tracker");
  for (const part of ["Tracker", "Read issues", "/usr/bin/trk", "tracker.token", "2 reads pass, 1 write asks", "Off"]) {
    expect(text).toContain(part);
  }
  const operations = words("operations-tracker");
  expect(operations).toMatch(/pass without a question issue.list List issues.*ask you first issue.comment/);
  expect(operations).toContain("integrations.tracker.autoApproveWrites");
});

test("one card per service, in the host's order", async () => {
  await open([service({ service: "b", title: "Beta" }), service({ service: "a", title: "Alpha" })]);
  expect([...document.querySelectorAll("main h2")].map((h) => h.textContent)).toEqual(["Beta", "Alpha"]);
});

test("a service without a program is called directly", async () => {
  await open([service({ program: null, credentials: [], ops: [] })]);
  expect(words("service-tracker")).toContain("Called directly");
  expect(maybe("operations-tracker")).toBeNull();
  expect(words("service-tracker")).not.toContain("Credentials");
});

test("a program that is not there is said, with how to get it", async () => {
  await open([service({ program: { name: "trk", path: null } })]);
  expect(words("service-tracker")).toContain("trk was not found on this computer");
  expect(words("service-tracker")).toContain("What to do: install trk from your distribution");
});

test("the switch is for all projects and shows what the host says", async () => {
  const { host, user } = await open();
  host.on("setIntegration", ({ params }) => service({ enabled: params.enabled, decidedBy: "global" }));
  expect(isOn()).toBe("false");
  expect(at("switch-tracker").getAttribute("aria-label")).toBe("Boxes may use Tracker, in all projects");
  await user.click(at("switch-tracker"));
  await pass(0);
  expect(host.called("setIntegration").map((call) => call.params)).toEqual([
    { service: "tracker", enabled: true, layer: "global", cwd: null },
  ]);
  expect(isOn()).toBe("true");
  expect(words("switch-tracker")).toBe("On");
  at("switch-tracker").focus();
  await user.keyboard(" ");
  await pass(0);
  expect(isOn()).toBe("false");
});

test("a switch that did not work stays and says why", async () => {
  const { host, user } = await open();
  host.on("setIntegration", () => {
    throw error("failed", "config.yaml cannot be written.", "Look at its permissions.");
  });
  await user.click(at("switch-tracker"));
  await pass(0);
  expect(isOn()).toBe("false");
  expect(words("service-tracker")).toContain("config.yaml cannot be written. Look at its permissions.");
});

test("a switch on its way is not pressed twice", async () => {
  const { host, user } = await open();
  host.on("setIntegration", () => new Promise(() => {}));
  await user.click(at("switch-tracker"));
  await user.click(at("switch-tracker"));
  expect(host.called("setIntegration")).toHaveLength(1);
});

test("a test that works", async () => {
  const { host, user } = await open();
  let answer: (value: unknown) => void = () => {};
  host.on("testIntegration", () => new Promise((yes) => (answer = yes)));
  await user.click(at("test-tracker"));
  expect(words("test-tracker")).toBe("Testing…");
  expect((at("test-tracker") as HTMLButtonElement).disabled).toBe(true);
  answer({ level: "ok", detail: "trk 1.2 · authed", hint: null });
  await pass(0);
  expect(host.called("testIntegration")[0]?.params).toEqual({ service: "tracker", cwd: null });
  expect(words("tested-tracker")).toBe("✓ Works: trk 1.2 · authed");
  expect(words("test-tracker")).toBe("Test");
});

test.each([
  ["the host's own hint", service(), "log in first", "What to do: log in first"],
  ["the way to log in", service(), null, "What to do: run trk login Copy"],
  ["the way to install", service({ program: { name: "trk", path: null } }), null, "What to do: install trk from your distribution"],
])("a test that does not work comes with %s", async (_, shown, hint, said) => {
  const { host, user } = await open([shown]);
  host.on("testIntegration", () => ({ level: "warn", detail: "not logged in", hint }));
  await user.click(at("test-tracker"));
  await pass(0);
  expect(words("tested-tracker")).toBe(`⚠ Not ready: not logged in ${said}`);
});

test("a test that could not be made says why", async () => {
  const { host, user } = await open();
  host.on("testIntegration", () => {
    throw error("failed", "The host is busy.");
  });
  await user.click(at("test-tracker"));
  await pass(0);
  expect(words("tested-tracker")).toContain("The host is busy.");
});

test("a credential's name leads to it", async () => {
  const { host, user } = await open();
  host.on("secrets", () => [credential({ id: "other.key" }), credential()]);
  await user.click(at("credential-link-tracker.token"));
  await pass(0);
  expect(document.querySelector("h1")?.textContent).toBe("Credentials");
  expect(document.activeElement).toBe(at("credential-tracker.token"));
  expect(at("credential-tracker.token").classList.contains("lit")).toBe(true);
  await pass(2500);
  expect(at("credential-tracker.token").classList.contains("lit")).toBe(false);
});

test("where a credential is missing, the way to it is a button", async () => {
  const { host, user } = await open();
  host.on("testIntegration", () => ({ level: "warn", detail: "not logged in", hint: "make them, then store them: 'agentbox secrets set tracker.key' and 'agentbox secrets set tracker.token'" }));
  host.on("secrets", () => [credential({ id: "tracker.key" }), credential({ stored: false })]);
  await user.click(at("test-tracker"));
  await pass(0);
  expect(words("tested-tracker")).toBe("⚠ Not ready: not logged in What to do: make them, then store them: Set tracker.key… and Set tracker.token…");
  await user.click(at("set-credential-tracker.token"));
  await pass(0);
  expect(document.querySelector("h1")?.textContent).toBe("Credentials");
  expect(document.activeElement).toBe(at("credential-tracker.token"));
});

test("j and k move over the cards", async () => {
  const { user } = await open([service(), service({ service: "b", title: "Beta" })]);
  await user.keyboard("j");
  expect(document.activeElement).toBe(at("service-tracker"));
  await user.keyboard("jj");
  expect(document.activeElement).toBe(at("service-b"));
  await user.keyboard("k");
  expect(document.activeElement).toBe(at("service-tracker"));
});

test("no services: one sentence", async () => {
  await open([]);
  expect(document.querySelector("main")?.textContent).toContain("This AgentBox knows no services.");
});

describe("without a test", () => {
  async function checked(shown: IntegrationView, row = check("integrations", "tracker", { detail: "trk 1.2, logged in" })) {
    const window = await openWindow();
    window.host.on("integrations", () => [shown]);
    window.host.on("doctor", () => [...allGood().filter((one) => one.group !== "integrations"), row]);
    await window.user.click(at("nav-integrations"));
    await pass(0);
    return window;
  }

  test("a card says what the check-up found", async () => {
    await checked(service({ enabled: true }));
    expect(words("tested-tracker")).toBe("✓ Works: trk 1.2, logged in");
  });

  test("and what to do, with the command to copy", async () => {
    const { user } = await checked(service({ enabled: true }), check("integrations", "tracker", { level: "warn", detail: "not logged in", hint: "run `trk login`" }));
    expect(words("tested-tracker")).toContain("⚠ Not ready: not logged in What to do: run trk login");
    await user.click(at("copy-trk login"));
    await pass(0);
    expect(await navigator.clipboard.readText()).toBe("trk login");
  });

  test("a test counts more than the check-up", async () => {
    const { host, user } = await checked(service({ enabled: true }));
    host.on("testIntegration", () => ({ level: "fail", detail: "gone", hint: null }));
    await user.click(at("test-tracker"));
    await pass(0);
    expect(words("tested-tracker")).toContain("✕ Does not work: gone");
  });

  test("switched on, it is tried at once; what the check-up said before is old", async () => {
    const { host, user } = await checked(service(), check("integrations", "tracker", { level: "info", detail: "disabled", hint: "agentbox integrations enable tracker" }));
    expect(words("tested-tracker")).toBe("ℹ Note: disabled");
    host.on("setIntegration", ({ params }) => service({ enabled: params.enabled }));
    host.on("testIntegration", () => ({ level: "ok", detail: "trk 1.2", hint: null }));
    await user.click(at("switch-tracker"));
    await pass(0);
    expect(words("tested-tracker")).toBe("✓ Works: trk 1.2");
    await user.click(at("switch-tracker"));
    await pass(0);
    expect(words("tested-tracker")).toBe("");
    expect(host.called("testIntegration")).toHaveLength(1);
  });

  test("a check-up of a moment ago is not made again", async () => {
    const { host, user } = await checked(service());
    await user.click(at("nav-inbox"));
    await user.click(at("nav-integrations"));
    await pass(0);
    expect(host.called("doctor")).toHaveLength(1);
    await pass(61_000);
    await user.click(at("nav-inbox"));
    await user.click(at("nav-integrations"));
    await pass(0);
    expect(host.called("doctor")).toHaveLength(2);
  });
});

test("a card says whether writes ask, and leads to the setting", async () => {
  const window = await openWindow();
  window.host.on("integrations", () => [service()]);
  const held = keepSettings(window.host);
  await window.user.click(at("nav-integrations"));
  await pass(0);
  expect(words("writes-tracker")).toContain("ask you first");
  held.view = { ...held.view, settings: held.view.settings.map((one) => (one.key.endsWith("autoApproveWrites") ? { ...one, value: "true" } : one)) };
  window.app.news += 1;
  await pass(0);
  expect(words("writes-tracker")).toContain("⚠ pass without a question");
  expect(words("operations-tracker")).toContain("1 write passes, too");
  await window.user.click(at("writes-setting-tracker"));
  await pass(0);
  expect(document.activeElement).toBe(at("setting-integrations.tracker.autoApproveWrites"));
});
