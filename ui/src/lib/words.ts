// What things are called. Every sentence the window makes up itself is here or in a component;
// sentences from the host are shown as they are.
import type { Agent } from "./bindings/Agent";
import type { AgentState } from "./bindings/AgentState";
import type { BoxState } from "./bindings/BoxState";
import type { BoxView } from "./bindings/BoxView";
import type { ControlError } from "./bindings/ControlError";
import type { Level } from "./bindings/Level";
import type { Outcome } from "./bindings/Outcome";
import type { SecretScope } from "./bindings/SecretScope";
import type { WhyDown } from "./bindings/WhyDown";
import type { Surface } from "./bindings/Surface";
import type { UnitState } from "./bindings/UnitState";
import { visible } from "./visible";

/** Said when a question went away and nothing told how. */
export const NO_LONGER_OPEN = "This question is no longer open";

const WHERE: Record<Surface, string> = {
  dialog: "in the dialog",
  notification: "from the notification",
  window: "in this window",
  tray: "from the tray",
  cli: "on the command line",
  terminal: "in the terminal",
  promptCommand: "in the menu",
};

export function outcomeWords(outcome: Outcome): string {
  switch (outcome.kind) {
    case "allowed":
      return `Allowed ${WHERE[outcome.by]}`;
    case "without":
      return `Without these files, said ${WHERE[outcome.by]}`;
    case "denied":
      return `Denied ${WHERE[outcome.by]}`;
    case "granted":
      return "Allowed by a rule";
    case "expired":
      return "Nobody answered in time: denied";
    case "withdrawn":
      return "The command in the box ended: withdrawn";
    case "hostStopped":
      return "AgentBox stopped: denied";
    case "tooMany":
      return "Too many questions from this box: denied";
    case "muted":
      return "The box is muted: denied";
    case "nobody":
      return "Nobody was there to ask: denied";
  }
}

/** Something goes on, if not all that was asked for. */
export function goesOn(outcome: Outcome): boolean {
  return outcome.kind === "allowed" || outcome.kind === "granted" || outcome.kind === "without";
}

/** Why a box is down; none when it was meant to be. */
export function downWords(why: WhyDown): string | null {
  switch (why.kind) {
    case "person":
    case "rest":
      return null;
    case "ended":
      return why.code === 0 ? "it ended by itself" : `it ended by itself with code ${why.code}`;
    case "outOfMemory":
      return "it ran out of memory";
    case "killed":
      return "it was killed from outside";
    case "stoppedOutside":
      return "it was stopped outside AgentBox";
    case "removed":
      return "its container was removed outside AgentBox";
    case "engineGone":
      return "the container engine went away";
  }
}

/** A symbol and words: the state never depends on colour alone. */
export const STATES: Record<BoxState, { symbol: string; words: string }> = {
  creating: { symbol: "◌", words: "being created" },
  running: { symbol: "●", words: "running" },
  paused: { symbol: "‖", words: "paused" },
  stopped: { symbol: "○", words: "stopped" },
  missing: { symbol: "✕", words: "missing: the engine no longer has it" },
  unknown: { symbol: "?", words: "unknown: the engine does not answer" },
};

export const AGENTS: Record<Agent, string> = { claude: "Claude", codex: "Codex", opencode: "OpenCode" };

/** By the names their makers gave them. */
export const AGENT_TITLES: Record<Agent, string> = { claude: "Claude Code", codex: "Codex", opencode: "OpenCode" };

/** What an agent is doing, as far as it says. */
export const AGENT_STATES: Record<AgentState, string> = {
  ready: "ready",
  working: "works",
  waiting: "waits for you",
  done: "done",
  "end-plan": "has a plan for you",
  question: "asks you something",
  compacting: "compacting",
  error: "stopped with an error",
};

/** While something waits that may be a question for the person: no page asks it. */
export const ASKED_OUTSIDE = "What lets boxes do more is asked about in a window of its own.";

/** What keeps an agent from going on until somebody says something. */
export const NEEDS_YOU: AgentState[] = ["waiting", "end-plan", "question"];

export type Tone = "good" | "warn" | "bad" | "calm";

/** What a task or a service is doing. */
export const UNIT_STATES: Record<UnitState, { symbol: string; words: string; tone: Tone }> = {
  pending: { symbol: "○", words: "not begun", tone: "calm" },
  waiting: { symbol: "◌", words: "waits", tone: "calm" },
  running: { symbol: "◐", words: "runs", tone: "calm" },
  done: { symbol: "✓", words: "done", tone: "good" },
  failed: { symbol: "✕", words: "failed", tone: "bad" },
  skipped: { symbol: "○", words: "left out", tone: "warn" },
  starting: { symbol: "◐", words: "starts", tone: "calm" },
  ready: { symbol: "●", words: "ready", tone: "good" },
  unhealthy: { symbol: "▲", words: "runs, but is not ready", tone: "warn" },
  backoff: { symbol: "▲", words: "ended, starts again soon", tone: "warn" },
  crashed: { symbol: "✕", words: "crashed", tone: "bad" },
  stopped: { symbol: "○", words: "stopped", tone: "calm" },
  unknown: { symbol: "?", words: "unknown", tone: "calm" },
};

/** Whatever a call was rejected with, as an error with a code. */
export function asControlError(thrown: unknown): ControlError {
  if (typeof thrown === "object" && thrown !== null && "code" in thrown && "message" in thrown) {
    const error = thrown as ControlError;
    return { ...error, hints: error.hints ?? [] };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: "failed", message, hints: [] };
}

/** Why an answer did not count, and what to do. */
export function answerProblem(error: ControlError): ControlError {
  switch (error.code) {
    case "digestMismatch":
      return {
        ...error,
        message: "The question changed while it was answered, so the answer does not count.",
        hints: ["Read it again, then answer."],
      };
    case "tooSoon":
      return {
        ...error,
        message: "The answer came too quickly to have been read, so it does not count.",
        hints: ["Read the question, then answer again."],
      };
    case "locked":
      return {
        ...error,
        message: "The screen is locked, so nothing can be allowed from it.",
        hints: ["Unlock it, then answer again."],
      };
    case "notRememberable":
      return {
        ...error,
        message: "A yes to this cannot be remembered like that.",
        hints: ["Go back and allow it once."],
      };
    default:
      return error;
  }
}

/** What a test of a service or a credential showed. */
export const TRIED: Record<Level, { symbol: string; words: string }> = {
  ok: { symbol: "✓", words: "Works:" },
  info: { symbol: "ℹ", words: "Note:" },
  warn: { symbol: "⚠", words: "Not ready:" },
  fail: { symbol: "✕", words: "Does not work:" },
};

/** Where a credential is kept, as the middle of a sentence. */
export function keptIn(place: string): string {
  if (place === "keychain") return "the keychain";
  return place === "file" ? "a file only you can read" : place;
}

/** Whose a credential is, as the middle of a sentence. */
export function scopeWords(scope: SecretScope, boxes: readonly BoxView[]): string {
  switch (scope.of) {
    case "everybody":
      return "every box";
    case "project":
      return `boxes of ${visible(scope.root)}`;
    case "box":
      return `the box ${boxes.find((box) => box.id === scope.id)?.name ?? scope.id}`;
  }
}

/** Tells a credential from one of the same name that is somebody else's. */
export function credentialKey(id: string, scope: SecretScope): string {
  if (scope.of === "everybody") return id;
  return `${id}@${scope.of === "box" ? scope.id : scope.root}`;
}

/** The hosts in a field, whatever is between them; the first that is none is an error. */
export function parseHosts(text: string): string[] | { bad: string } {
  const hosts = text.toLowerCase().split(/[\s,;]+/).filter((host) => host !== "");
  const bad = hosts.find((host) => !/^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(host));
  return bad === undefined ? [...new Set(hosts)] : { bad };
}

/** The kinds of records the host writes, in the order a person looks for them. */
export const KINDS = [
  "asked",
  "answered",
  "executed",
  "refused",
  "allowed-by-rule",
  "allowed-by-policy",
  "not-asked",
  "typed",
  "rule-made",
  "rule-removed",
  "box-created",
  "box-destroyed",
  "box-muted",
  "credential-set",
  "credential-removed",
  "setting-changed",
  "egress-mode",
  "egress-policy",
  "egress-repository",
  "egress-echo",
  "egress-unsafe",
];

/** `rule-made` as “Rule made”, `egress-mode` as “Network mode”. */
export function kindWords(kind: string): string {
  const words = kind.replace(/^egress-/, "network ").replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `3 boxes`, `1 box`. */
export function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** The part of an image's name that tells it from others. */
export function shortImage(image: string): string {
  if (/^sha256:[0-9a-f]{64}$/.test(image)) return image.slice(7, 19);
  const named = image.split("@")[0] ?? image;
  return named.slice(named.lastIndexOf("/") + 1);
}

/** Folders in a text as their owner says them: `~/shop-api`. `home` is AgentBox's own, as the host tells it. */
export function folderWords(text: string, home: string | undefined): string {
  const own = home?.endsWith("/.agentbox") ? home.slice(0, -"/.agentbox".length) : "";
  if (own === "") return text;
  const said = text.replaceAll(` ${own}/`, " ~/");
  return said.startsWith(`${own}/`) ? `~${said.slice(own.length)}` : said;
}
