// Finds the commands in what the host says to do next, so that they can be copied.
//
// A hint is a sentence. Commands in it stand in quotes or in brackets, or begin with `agentbox` and go on
// for as long as no word of the sentence follows.

export interface Piece {
  text: string;
  command: boolean;
}

const QUOTED = /`([a-z][^`]*)`|(?<!\w)'((?:agentbox|[a-z][\w-]* )[^']*)'|(?<=\()(sudo [^)]+)(?=\))/g;
/** A command of ours, up to where the sentence goes on. */
const OWN = /\bagentbox(?:-desktop|(?: [^\s,;:()]+)+)?/g;

/** The credential a command stores, where the window can do that as well. */
export function stores(command: string): string | null {
  return /^agentbox secrets set ([a-z][a-z0-9.-]*)$/.exec(command)?.[1] ?? null;
}

export function pieces(hint: string): Piece[] {
  const found: { at: number; end: number; text: string }[] = [];
  for (const match of hint.matchAll(QUOTED)) {
    const text = match[1] ?? match[2] ?? match[3] ?? "";
    found.push({ at: match.index, end: match.index + match[0].length, text });
  }
  for (const match of hint.matchAll(OWN)) {
    const text = ownCommand(match[0]);
    const at = match.index;
    const inside = found.some((other) => at >= other.at && at < other.end);
    if (text !== null && !inside) found.push({ at, end: at + text.length, text });
  }
  found.sort((a, b) => a.at - b.at);
  const all: Piece[] = [];
  let from = 0;
  for (const { at, end, text } of found) {
    if (at > from) all.push({ text: hint.slice(from, at), command: false });
    all.push({ text, command: true });
    from = end;
  }
  if (from < hint.length) all.push({ text: hint.slice(from), command: false });
  return all;
}

/** Commands whose next word is a command, too. */
const FAMILIES = ["integrations", "secrets", "config", "audit", "checkpoint", "queue", "grants", "services", "git", "agent", "app", "host"];
/** Of those, what looks like a verb of the sentence and is none. */
const NO_VERBS = ["approvals", "ls", "remotes", "status"];

/**
 * `agentbox status fix shows what runs` is `agentbox status fix`: a word is part of the command when it is
 * a flag, or when the sentence ends behind it or goes on with a verb. None when there is nothing to run.
 */
function ownCommand(run: string): string | null {
  const words = run.replace(/\.$/, "").split(" ");
  const [, second = ""] = words;
  if (words.length === 1) return run === "agentbox-desktop" ? run : null;
  const third = words[2];
  // Some do without: `agentbox queue shows what waits`.
  let end = third !== undefined && FAMILIES.includes(second) && (NO_VERBS.includes(third) || !isVerb(third)) ? 3 : 2;
  while (end < words.length && belongs(words[end] ?? "", words[end + 1])) end += 1;
  const command = words.slice(0, end);
  // KEY and the like stand for something else.
  return command.some((word) => /^[A-Z]+$/.test(word)) ? null : command.join(" ");
}

function belongs(word: string, next: string | undefined): boolean {
  return word.startsWith("-") || next === undefined || next.startsWith("-") || isVerb(next);
}

/** `shows`, `ends`: the sentence goes on. */
function isVerb(word: string): boolean {
  return /^[a-z]+s$/.test(word);
}
