// Settings and rows of the check-up to start a test from, and a host that keeps settings.
import type { Check } from "../src/lib/bindings/Check";
import type { SettingsView } from "../src/lib/bindings/SettingsView";
import type { SettingView } from "../src/lib/bindings/SettingView";
import type { FakeBackend } from "./fake";

export function setting(key: string, over: Partial<SettingView> = {}): SettingView {
  return {
    key,
    about: `What ${key} is for.`,
    takes: { kind: "text" },
    default: null,
    value: over.default ?? null,
    from: "default",
    onlyGlobal: false,
    afterRestart: false,
    advanced: false,
    atTerminal: false,
    ...over,
  };
}

/** One of each kind, and those that matter. */
export const registry = (): SettingView[] => [
  setting("engine.host", { atTerminal: true, onlyGlobal: true, afterRestart: true, about: "The engine's address." }),
  setting("box.vnc", { takes: { kind: "bool" }, default: "true", about: "Boxes have a screen." }),
  setting("box.docker", { takes: { kind: "oneOf", words: ["off", "auto", "on"] }, default: "auto" }),
  setting("box.memory", { takes: { kind: "size" }, about: "The memory of a new box; 0 is no limit." }),
  setting("box.cpus", { takes: { kind: "cpus" } }),
  setting("box.tags", { takes: { kind: "words" }, value: "[a, b]", from: "global" }),
  setting("approvals.mode", { takes: { kind: "oneOf", words: ["ask", "safe"] }, default: "ask" }),
  setting("approvals.quiet", { takes: { kind: "hours" }, onlyGlobal: true, afterRestart: true }),
  setting("approvals.timeoutSeconds", {
    takes: { kind: "whole", least: 1, most: null },
    default: "900",
    onlyGlobal: true,
    afterRestart: true,
    advanced: true,
  }),
  setting("integrations.tracker.autoApproveWrites", { takes: { kind: "bool" }, default: "false", about: "The service's writes do not ask." }),
  setting("integrations.tracker.baseUrl", { takes: { kind: "address" }, advanced: true }),
  setting("gh.checkout", { takes: { kind: "bool" }, default: "false" }),
  setting("claude.login", { takes: { kind: "bool" }, default: "true", value: "false", from: "global" }),
  setting("shell.login", { takes: { kind: "bool" }, default: "true", value: "false", from: "global" }),
  setting("shell.user", { takes: { kind: "text" } }),
];

export const view = (over: Partial<SettingsView> = {}): SettingsView => ({
  project: null,
  settings: registry(),
  problems: [],
  ...over,
});

/** Keeps one file, and answers like the host does. */
export function keepSettings(host: FakeBackend, start: SettingsView = view()) {
  const held = { view: start };
  host.on("settings", ({ params }) => ({ ...held.view, project: params.cwd }));
  host.on("setSetting", ({ params }) => {
    const change = (one: SettingView): SettingView =>
      one.key !== params.key
        ? one
        : { ...one, value: params.value ?? one.default, from: params.value === null ? "default" : params.layer };
    held.view = { ...held.view, settings: held.view.settings.map(change) };
    return null;
  });
  return held;
}

export function check(group: string, label: string, over: Partial<Check> = {}): Check {
  return { group, label, level: "ok", detail: `${label} is fine`, hint: null, ...over };
}

/** A computer on which all is well. */
export const allGood = (): Check[] => [
  check("system", "home", { detail: "/home/ada/.agentbox" }),
  check("system", "git"),
  check("host", "host"),
  check("engine", "engine", { detail: "Docker 27.1" }),
  check("engine", "box image", { detail: "agentbox/box:1" }),
  check("desktop", "keychain", { detail: "unlocked" }),
  check("relay", "approvals", { detail: "every write asks" }),
  check("programs", "gh", { level: "info", detail: "not installed" }),
  check("integrations", "tracker", { detail: "trk 1.2, logged in" }),
];
