// Which parts of a question were seen to their end.
import type { Evidence } from "./bindings/Evidence";
import type { Question } from "./bindings/Question";

export type Part = "head" | "facts" | "commits" | "body" | "files" | "warnings" | "command";

/** By part, the digest of what was read to its end. */
export type Reads = Record<Part, string | null>;

export function nothingRead(): Reads {
  return { head: null, facts: null, commits: null, body: null, files: null, warnings: null, command: null };
}

/** What the hint calls each part. */
const NAMES: Record<Part, string> = {
  head: "title",
  facts: "details",
  commits: "commits",
  body: "text",
  files: "files",
  warnings: "warnings",
  command: "command",
};

/** The first part, in reading order, whose end was not in view yet. */
export function firstUnread(question: Question, warnings: number, read: Reads): { part: Part; name: string } | null {
  const { facts, commits, body, files }: Evidence = question.evidence;
  const there: [Part, number][] = [
    ["head", 1],
    ["facts", facts.length],
    ["commits", commits.length],
    ["body", body.length],
    ["files", files.length],
    ["warnings", warnings],
    ["command", 1],
  ];
  const [part] = there.find(([part, length]) => length > 0 && read[part] !== question.digest) ?? [null];
  return part === null ? null : { part, name: NAMES[part] };
}
