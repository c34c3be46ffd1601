// Words a box chose, made harmless to read: nothing in them hides, moves or ends a line. The same as
// `visible` in the protocol crate does, for what the host keeps as it came.

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;
const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const MARKS = /([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)/g;

const hex = (c: string, digits: number) => (c.codePointAt(0) ?? 0).toString(16).padStart(digits, "0");
const spelled = (c: string) => `⟨U+${hex(c, 4).toUpperCase()}⟩`;

export function visible(text: string): string {
  return text
    .replace(MARKS, (_, kept: string, more: string) => kept + Array.from(more, spelled).join(""))
    .replace(/\n/g, "⏎")
    .replace(/\t/g, " ")
    .replace(CONTROL, (c) => `\\x${hex(c, 2)}`)
    .replace(INVISIBLE, spelled);
}

/** A value as JSON, a line each, every line visible. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value ?? null, null, 2).split("\n").map(visible);
}
