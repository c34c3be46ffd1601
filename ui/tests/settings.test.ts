// The settings: every kind of value, who decided it, for all projects and for one, and what is asked first.
import { beforeEach, describe, expect, test } from "vitest";
import type { SettingsView } from "../src/lib/bindings/SettingsView";
import { lookup, showSetting } from "../src/lib/lookup.svelte";
import { fits, grouped, isValid, lines, list } from "../src/lib/settings";
import { error, type FakeBackend } from "./fake";
import { keepSettings, registry, setting, view } from "./registry";
import { at, maybe, openWindow, pass, words } from "./window";

const PROJECT = "/home/ada/shop-api";

beforeEach(() => (lookup.key = null));

async function open(start: SettingsView = view()) {
  const window = await openWindow({ first: "boxes" });
  const held = keepSettings(window.host, start);
  window.host.on("projects", () => [{ name: "shop-api", root: PROJECT, boxes: 1, lastUsed: 1 }]);
  window.app.show("settings");
  await pass(0);
  return { ...window, held };
}

const sent = (host: FakeBackend) => host.called("setSetting").map((call) => call.params);
const field = (key: string) => at(`value-${key}`) as HTMLInputElement;
const shownKeys = () => [...document.querySelectorAll<HTMLElement>("[data-testid^=setting-]")].map((row) => row.dataset["testid"]?.slice(8));

describe("the list", () => {
  test("is grouped by what it is about, with what each is for, its value and who decided", async () => {
    await open();
    const headings = [...document.querySelectorAll("main h2")].map((h) => h.textContent);
    expect(headings).toEqual(["Questions", "Boxes", "Integrations", "GitHub", "Claude Code", "Shells", "Engine"]);
    expect(words("setting-box.vnc")).toContain("box.vnc Boxes have a screen.");
    expect(words("value-box.vnc")).toBe("On");
    expect(words("from-box.vnc")).toBe("The default.");
    expect(words("from-claude.login")).toBe("Set by you, for all projects.");
    expect(words("setting-claude.login")).toContain("Default: on.");
    expect(field("box.tags").value).toBe("a\nb");
    expect(words("setting-approvals.quiet")).toContain("A change holds when AgentBox starts the next time.");
  });

  test("leaves out what few people need until they want it", async () => {
    const { user } = await open();
    expect(maybe("setting-approvals.timeoutSeconds")).toBeNull();
    expect(words("settings-count")).toBe("13 of 15 settings");
    await user.click(at("show-advanced"));
    expect(maybe("setting-approvals.timeoutSeconds")).not.toBeNull();
    expect((at("settings-advanced") as HTMLInputElement).checked).toBe(true);
    expect(words("settings-count")).toBe("15 settings");
  });

  test("is searched with /, in names, meanings and values, also what few people need", async () => {
    const { user } = await open();
    await user.keyboard("/");
    expect(document.activeElement).toBe(at("settings-search"));
    await user.keyboard("seconds");
    expect(shownKeys()).toEqual(["approvals.timeoutSeconds"]);
    await user.keyboard("{Escape}memory limit");
    expect(shownKeys()).toEqual(["box.memory"]);
    await user.keyboard("{Escape}no such thing");
    expect(words("nothing-fits")).toContain("No setting fits this search.");
    await user.click(at("clear-search"));
    expect(shownKeys()).toHaveLength(13);
  });

  test("says what is in the files without effect", async () => {
    await open(view({ problems: ["config.yaml: cloud.x is no setting, and has no effect"] }));
    expect(words("settings-problems")).toContain("cloud.x is no setting");
  });

  test("is walked with j and k", async () => {
    const { user } = await open();
    await user.keyboard("jj");
    expect(document.activeElement).toBe(at("setting-approvals.quiet"));
    await user.keyboard("k");
    expect(document.activeElement).toBe(at("setting-approvals.mode"));
  });

  test("waits 300 ms before it shows its place, and says why it cannot be read", async () => {
    const { app, host, user } = await openWindow();
    let refuse: (why: unknown) => void = () => {};
    host.on("settings", () => new Promise((_, no) => (refuse = no)));
    app.show("settings");
    await pass(299);
    expect(maybe("skeleton")).toBeNull();
    await pass(1);
    expect(maybe("skeleton")).not.toBeNull();
    refuse(error("usage", "config.yaml is not YAML.", "Repair it."));
    await pass(0);
    expect(words("page-problem")).toContain("config.yaml is not YAML. Repair it.");
    keepSettings(host);
    await user.click(at("try-again"));
    await pass(0);
    expect(maybe("setting-box.vnc")).not.toBeNull();
  });

  test("leads to one setting, whoever needs it", async () => {
    const { app } = await open();
    app.show("rules");
    await pass(0);
    showSetting(app, "integrations.tracker.baseUrl");
    await pass(0);
    expect(document.activeElement).toBe(at("setting-integrations.tracker.baseUrl"));
    expect(at("setting-integrations.tracker.baseUrl").classList.contains("lit")).toBe(true);
    await pass(2500);
    expect(at("setting-integrations.tracker.baseUrl").classList.contains("lit")).toBe(false);
    expect(lookup.key).toBeNull();
  });
});

describe("a change", () => {
  test("of a switch shows what the host says, not before", async () => {
    const { host, user, held } = await open();
    let say: () => void = () => {};
    host.on("setSetting", () => new Promise((yes) => (say = () => yes(null))));
    await user.click(at("value-box.vnc"));
    expect(at("value-box.vnc").getAttribute("aria-checked")).toBe("true");
    await user.click(at("value-box.vnc"));
    expect(sent(host)).toEqual([{ key: "box.vnc", value: "false", layer: "global", cwd: null }]);
    held.view = { ...held.view, settings: held.view.settings.map((one) => (one.key === "box.vnc" ? { ...one, value: "false", from: "global" as const } : one)) };
    say();
    await pass(0);
    expect(at("value-box.vnc").getAttribute("aria-checked")).toBe("false");
    expect(words("said-box.vnc")).toBe("Saved.");
  });

  test("of a word goes out at once", async () => {
    const { host, user } = await open();
    await user.selectOptions(at("value-box.docker"), "off");
    await pass(0);
    expect(sent(host)).toEqual([{ key: "box.docker", value: "off", layer: "global", cwd: null }]);
    expect(field("box.docker").value).toBe("off");
  });

  test.each([
    ["box.memory", "4 apples", "4g", "A size, such as 512m or 4g."],
    ["box.cpus", "many", "1.5", "A number of processors, such as 2 or 1.5."],
    ["approvals.quiet", "at night", "22:00-07:00", "A stretch of the day"],
    ["approvals.timeoutSeconds", "0", "60", "A whole number of at least 1."],
    ["integrations.tracker.baseUrl", "here", "https://trk.example", "An address, such as"],
  ])("%s: what cannot be is said at the field, what can be is saved", async (key, bad, good, said) => {
    const { host, user } = await open();
    await user.click(at("settings-advanced"));
    await user.clear(field(key));
    await user.type(field(key), `${bad}{Enter}`);
    expect(words(`setting-${key}`)).toContain(said);
    expect(field(key).getAttribute("aria-invalid")).toBe("true");
    expect(sent(host)).toEqual([]);
    await user.clear(field(key));
    await user.type(field(key), good);
    await user.click(at(`save-${key}`));
    await pass(0);
    expect(sent(host)).toEqual([{ key, value: good, layer: "global", cwd: null }]);
    expect(words(`from-${key}`)).toBe("Set by you, for all projects.");
    expect(maybe(`save-${key}`)).toBeNull();
  });

  test("of a list takes a line each", async () => {
    const { host, user } = await open();
    await user.type(at("value-box.tags"), "\nc d");
    await user.click(at("save-box.tags"));
    await pass(0);
    expect(sent(host)[0]?.value).toBe('["a","b","c d"]');
  });

  test("that is not saved is dropped with Escape", async () => {
    const { user, host } = await open();
    await user.type(at("value-shell.user"), "root");
    await user.keyboard("{Escape}");
    expect(field("shell.user").value).toBe("");
    await user.keyboard("{Escape}");
    expect(document.activeElement).toBe(at("setting-shell.user"));
    expect(sent(host)).toEqual([]);
  });

  test("that failed is said in place, and what was typed is kept", async () => {
    const { host, user } = await open();
    host.on("setSetting", () => {
      throw error("usage", "box.memory: the file cannot be written", "Look at its permissions.");
    });
    await user.type(at("value-box.memory"), "4g{Enter}");
    await pass(0);
    expect(words("setting-box.memory")).toContain("the file cannot be written Look at its permissions.");
    expect(field("box.memory").value).toBe("4g");
    await user.selectOptions(at("value-box.docker"), "off");
    await pass(0);
    expect(field("box.docker").value).toBe("auto");
  });

  test("that holds after a restart says so", async () => {
    const { user } = await open();
    await user.type(at("value-approvals.quiet"), "22:00-07:00{Enter}");
    await pass(0);
    expect(words("said-approvals.quiet")).toBe("Saved. It holds when AgentBox starts the next time.");
  });

  test("is taken back with Reset, which is there for what this file says alone", async () => {
    const { host, user } = await open();
    expect(maybe("reset-box.vnc")).toBeNull();
    await user.click(at("reset-shell.login"));
    await pass(0);
    expect(sent(host)).toEqual([{ key: "shell.login", value: null, layer: "global", cwd: null }]);
    expect(words("from-shell.login")).toBe("The default.");
    expect(words("said-shell.login")).toBe("Reset.");
    expect(maybe("reset-shell.login")).toBeNull();
  });

  test("keeps the focus at its setting", async () => {
    const { user } = await open();
    await user.type(at("value-box.memory"), "4g");
    await user.click(at("save-box.memory"));
    await pass(0);
    expect(document.activeElement).toBe(at("value-box.memory"));
    await user.click(at("reset-box.memory"));
    await pass(0);
    expect(document.activeElement).toBe(at("value-box.memory"));
  });

  test("rests while the host is away", async () => {
    const { host } = await open();
    host.goDown("gone");
    await pass(0);
    for (const key of ["box.vnc", "box.docker", "box.memory"]) expect(field(key).disabled, key).toBe(true);
  });
});

describe("what lets boxes do more", () => {
  test("goes out at once and is asked about outside of the page; the old value stands until it was said", async () => {
    const { host, user, held } = await open();
    let agree = () => {};
    host.on("setSetting", () => new Promise((resolve) => (agree = () => resolve(null))));
    await user.selectOptions(at("value-approvals.mode"), "safe");
    await pass(300);
    expect(sent(host)).toEqual([{ key: "approvals.mode", value: "safe", layer: "global", cwd: null }]);
    expect(words("said-approvals.mode")).toBe("Saving… What lets boxes do more is asked about in a window of its own.");
    expect([field("approvals.mode").value, field("approvals.mode").disabled]).toEqual(["ask", true]);
    held.view = { ...held.view, settings: held.view.settings.map((one) => (one.key === "approvals.mode" ? { ...one, value: "safe", from: "global" as const } : one)) };
    agree();
    await pass(0);
    expect(words("said-approvals.mode")).toBe("Saved.");
    expect(field("approvals.mode").value).toBe("safe");
  });

  test("and was not agreed to: nothing is changed, and the page says so", async () => {
    const { host, user } = await open();
    host.on("setSetting", () => Promise.reject(error("failed", "Nothing was changed: you did not say yes.")));
    await user.click(at("value-gh.checkout"));
    await pass(0);
    expect(words("setting-gh.checkout")).toContain("Nothing was changed");
    expect(at("value-gh.checkout").getAttribute("aria-checked")).toBe("false");
    expect(document.activeElement).toBe(at("value-gh.checkout"));
  });
});

describe("one project", () => {
  async function ofProject(start?: SettingsView) {
    const window = await open(start);
    await window.user.selectOptions(at("settings-scope"), PROJECT);
    await pass(0);
    return window;
  }

  test("has its own file, without what is for all projects only", async () => {
    const { host, user } = await ofProject();
    expect(host.called("settings").at(-1)?.params).toEqual({ cwd: PROJECT });
    expect(maybe("setting-approvals.quiet")).toBeNull();
    expect(document.querySelector("main")?.textContent).toMatch(/3 settings are\s+for all projects only/);
    await user.click(at("value-box.vnc"));
    await pass(0);
    expect(sent(host)).toEqual([{ key: "box.vnc", value: "false", layer: "project", cwd: PROJECT }]);
    expect(words("from-box.vnc")).toBe("Set by you, for this project.");
    expect(maybe("reset-box.vnc")).not.toBeNull();
    expect(maybe("reset-shell.login")).toBeNull();
    await user.click(at("show-everywhere"));
    await pass(0);
    expect(host.called("settings").at(-1)?.params).toEqual({ cwd: null });
    expect((at("settings-scope") as HTMLSelectElement).value).toBe("");
  });

  test("whose agentbox.yaml allows less says so", async () => {
    const { host, user, held } = await ofProject();
    host.on("setSetting", () => {
      held.view = { ...held.view, settings: held.view.settings.map((one) => (one.key === "box.memory" ? { ...one, value: "2g", from: "workspace" as const } : one)) };
      return null;
    });
    await user.type(at("value-box.memory"), "8g{Enter}");
    await pass(0);
    expect(words("said-box.memory")).toContain("agentbox.yaml allows less");
    expect(words("from-box.memory")).toBe("Set by this project's agentbox.yaml.");
    expect(field("box.memory").value).toBe("2g");
  });
});

test("projects that cannot be listed are said, the settings for all of them are there", async () => {
  const { host, app, user } = await openWindow({ first: "boxes" });
  keepSettings(host);
  host.on("projects", () => {
    throw error("failed", "The disk is broken.");
  });
  app.show("settings");
  await pass(0);
  expect(words("projects-problem")).toContain("The disk is broken.");
  expect(maybe("setting-box.vnc")).not.toBeNull();
  host.on("projects", () => []);
  await user.click(at("projects-again"));
  await pass(0);
  expect(maybe("projects-problem")).toBeNull();
});

test("what names things of this computer is set at a terminal, with the command to copy", async () => {
  const { user } = await open();
  expect(at("value-engine.host").tagName).toBe("P");
  const command = "agentbox config set engine.host VALUE --global";
  expect(words("setting-engine.host")).toContain(command);
  expect(maybe("reset-engine.host")).toBeNull();
  await user.click(at(`copy-${command}`));
  await pass(0);
  expect(await navigator.clipboard.readText()).toBe(command);
  expect(words(`copy-${command}`)).toBe("Copied");
  await pass(2000);
  expect(words(`copy-${command}`)).toBe("Copy");
});

test("trust in agentbox.yaml is a project's own, with the command that asks for it", async () => {
  const trusted = setting("workspace.trusted", { atTerminal: true, about: "The text that may loosen." });
  const { user } = await open(view({ settings: [...registry(), trusted] }));
  expect(maybe("setting-workspace.trusted")).toBeNull();
  expect(words("settings-count")).toBe("13 of 15 settings");
  expect(maybe("show-everywhere")).toBeNull();
  await user.selectOptions(at("settings-scope"), PROJECT);
  await pass(0);
  expect(words("setting-workspace.trusted")).toContain("at a terminal in the project's folder: agentbox config trust-workspace");
  expect(words("setting-workspace.trusted")).not.toContain("config set");
});

test("a project's name hides nothing in the list of projects", async () => {
  const { app, host } = await openWindow({ first: "boxes" });
  keepSettings(host);
  host.on("projects", () => [{ name: "shop\u202eipa", root: "/home/ada/shop\u202eipa", boxes: 1, lastUsed: 1 }]);
  app.show("settings");
  await pass(0);
  const options = [...(at("settings-scope") as HTMLSelectElement).options];
  expect(options.map((one) => one.text)).toEqual(["All projects", "shop⟨U+202E⟩ipa (/home/ada/shop⟨U+202E⟩ipa)"]);
  expect(options[1]?.value).toBe("/home/ada/shop\u202eipa");
});

test("the pure parts", () => {
  expect(grouped([setting("zoo.x"), setting("desktop.a"), setting("update.b"), setting("box.y")]).map((group) => group.heading)).toEqual(["Boxes", "Updates", "Desktop", "Zoo"]);
  expect(fits(setting("box.memory", { value: "4g" }), "MEM 4g")).toBe(true);
  expect(lines("[a, b c]")).toBe("a\nb c");
  expect([list("a, b"), list("a b\n\n c,d ")]).toEqual(['["a","b"]', '["a b","c,d"]']);
  expect(isValid({ kind: "whole", least: 0, most: 10 }, "11")).toBe(false);
  expect(isValid({ kind: "text" }, " ")).toBe(false);
});
