// Settings for people: what their groups are called, who decided them and what may be typed.
import type { SettingFrom } from "./bindings/SettingFrom";
import type { SettingKind } from "./bindings/SettingKind";
import type { SettingView } from "./bindings/SettingView";
import { parseCount, parseCpus, parseSize } from "./limits";

/** By the first word of the key, in the order people look for them. */
const HEADINGS: Record<string, string> = {
  approvals: "Questions",
  box: "Boxes",
  integrations: "Integrations",
  gh: "GitHub",
  secrets: "Credentials",
  claude: "Claude Code",
  codex: "Codex",
  opencode: "OpenCode",
  autopause: "Pausing boxes nobody uses",
  queue: "Background jobs",
  checkpoint: "Checkpoints",
  code: "Editor",
  shell: "Shells",
  attach: "Showing sessions",
  proxy: "Addresses of boxes",
  engine: "Engine",
  relay: "How often boxes may ask",
  workspace: "Trust in agentbox.yaml",
  update: "Updates",
  desktop: "Desktop",
};

export interface Group {
  name: string;
  heading: string;
  settings: SettingView[];
}

export function grouped(settings: readonly SettingView[]): Group[] {
  const order = Object.keys(HEADINGS);
  const groups = new Map<string, SettingView[]>();
  for (const setting of settings) {
    const name = setting.key.split(".")[0] ?? setting.key;
    groups.set(name, [...(groups.get(name) ?? []), setting]);
  }
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...groups]
    .map(([name, all]) => ({ name, heading: HEADINGS[name] ?? name.charAt(0).toUpperCase() + name.slice(1), settings: all }))
    .sort((a, b) => place(a.name) - place(b.name));
}

/** Whether somebody who typed this looks for the setting. */
export function fits(setting: SettingView, text: string): boolean {
  const all = `${setting.key} ${setting.about} ${setting.value ?? ""}`.toLowerCase();
  return text.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

/** Who decided it. */
export const FROM: Record<SettingFrom, string> = {
  default: "The default.",
  global: "Set by you, for all projects.",
  project: "Set by you, for this project.",
  workspace: "Set by this project's agentbox.yaml.",
};

/** What may be typed; empty for what is chosen. */
export function expects(kind: SettingKind): string {
  switch (kind.kind) {
    case "whole":
      if (kind.most !== null) return `A whole number from ${kind.least} to ${kind.most}.`;
      return kind.least > 0 ? `A whole number of at least ${kind.least}.` : "A whole number.";
    case "size":
      return "A size, such as 512m or 4g.";
    case "cpus":
      return "A number of processors, such as 2 or 1.5.";
    case "hours":
      return "A stretch of the day, such as 22:00-07:00.";
    case "address":
      return "An address, such as https://api.example.com.";
    case "words":
      return "One entry a line.";
    default:
      return "";
  }
}

/** Whether the host can take what was typed; only it knows whether it does. */
export function isValid(kind: SettingKind, text: string): boolean {
  switch (kind.kind) {
    case "whole": {
      const number = parseCount(text);
      return number !== null && number >= kind.least && (kind.most === null || number <= kind.most);
    }
    case "size":
      return parseSize(text) !== null;
    case "cpus":
      return parseCpus(text) !== null;
    case "hours":
      return /^\s*\d{1,2}:\d{2}\s*-\s*\d{1,2}:\d{2}\s*$/.test(text);
    case "address":
      return /^https?:\/\/\S+$/.test(text.trim());
    case "words":
      return true;
    default:
      return text.trim() !== "";
  }
}

/** `[a, b c]` as lines. */
export function lines(value: string | null): string {
  const inside = /^\[(.*)\]$/s.exec(value?.trim() ?? "")?.[1];
  return inside === undefined ? (value ?? "") : inside.split(", ").join("\n");
}

/** Lines, or what commas part, as a list the host reads. */
export function list(text: string): string {
  const all = text.includes("\n") ? text.split("\n") : text.split(",");
  return JSON.stringify(all.map((word) => word.trim()).filter((word) => word !== ""));
}

/** As people read it. */
export function shown(setting: SettingView, value: string | null): string {
  if (value === null || value === "") return "not set";
  if (setting.takes.kind === "bool") return value === "true" ? "on" : "off";
  return value;
}

/** One text of a project's agentbox.yaml: there is nothing to set for all of them. */
const TRUSTED = "workspace.trusted";

/** Whether it can be set for all projects, or for one. */
export function belongs(setting: SettingView, project: boolean): boolean {
  return project ? !setting.onlyGlobal : setting.key !== TRUSTED;
}

/** Why it is set at a terminal, before how. */
export function terminalWords(key: string, project: string | null): string {
  if (key === TRUSTED) return "Shows what the file asks for and asks you, at a terminal in the project's folder:";
  return `Names something of this computer, so it is set at a terminal${project === null ? "" : ", in the project's folder"}:`;
}

/** How it is set at a terminal. */
export function command(key: string, project: string | null): string {
  if (key === TRUSTED) return "agentbox config trust-workspace";
  return `agentbox config set ${key} VALUE${project === null ? " --global" : ""}`;
}
