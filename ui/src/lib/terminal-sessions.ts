// The sessions of a box as people see them: which come first, what they are called, how one ended.
import type { Agent } from "./bindings/Agent";
import type { SessionKind } from "./bindings/SessionKind";
import type { SessionView } from "./bindings/SessionView";
import type { Ended } from "./terminal";
import { AGENT_TITLES } from "./words";

/** Agents first, then shells, each from the oldest; a name that comes twice counts once. */
export function inOrder(sessions: SessionView[]): SessionView[] {
  const once = [...new Map(sessions.map((one) => [one.name, one])).values()];
  const rank = (one: SessionView) => (one.agent === null ? 1 : 0);
  return once.sort((a, b) => rank(a) - rank(b) || a.createdAt - b.createdAt);
}

/** An agent by its own name, with the session's where that differs; a shell by the session's. */
export function title(session: SessionView): string {
  if (session.agent === null) return session.name;
  const agent = AGENT_TITLES[session.agent];
  return session.name === session.agent ? agent : `${agent} (${session.name})`;
}

/** Agents that have no session yet: a second of the same name is refused. */
export function startable(sessions: SessionView[]): Agent[] {
  const names = new Set(sessions.map((one) => one.name));
  return (Object.keys(AGENT_TITLES) as Agent[]).filter((agent) => !names.has(agent));
}

export function shell(): SessionKind {
  return { kind: "shell", label: null, plain: false };
}

export function agentSession(agent: Agent): SessionKind {
  return { kind: "agent", agent, name: null, args: [], env: {}, sync: true };
}

/** How a session ended, in a sentence; `still` when the box goes on with it. */
export function endedWords(name: string, how: Ended, still: boolean): string {
  if ("problem" in how) return `The connection to ${name} was lost: ${how.problem.message}`;
  if (still) return `${name} goes on in the box, but is no longer shown here.`;
  return how.code === 0 ? `${name} ended.` : `${name} ended with code ${how.code}.`;
}

/**
 * The way out by keyboard of what takes every other key. Escape is how people leave things; some systems
 * keep that combination for themselves, so there is a second.
 */
export function isLeave(event: KeyboardEvent): boolean {
  return event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey && (event.key === "Escape" || event.key.toLowerCase() === "x");
}
