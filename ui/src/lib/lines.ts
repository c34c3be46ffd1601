// What a box said, line by line: the newest lines in a ring, put together from bytes as they come.
//
// Nothing here draws, and nothing is made readable before it is drawn: a flood costs a split and no more.
// Lines keep the number they came with, so that whoever looks at one finds it again after older ones went.
import { visible } from "./visible";

export const MOST_LINES = 100_000;
/** The most of one line that is kept. */
export const LONGEST = 64 * 1024;
/** What all lines may weigh together: a box that says only long ones must not fill the window's memory. */
const MOST_LETTERS = 64 * 1024 * 1024;

export interface Line {
  text: string;
  /** As the box told it; none where lines carry no time. */
  time: string | null;
  /** It was said on stderr; none where that is not known. */
  stderr: boolean | null;
  /** How many letters of it were not kept. */
  cut: number;
}

export type Level = "bad" | "warn" | null;

const BAD = /\b(error|err|fatal|panic|panicked|critical|exception|traceback|failed|failure)\b/i;
const WARN = /\b(warn|warning|deprecated)\b/i;
/** Letters that `visible` leaves as they are, in the most common alphabets. */
export const PLAIN = /^[\x20-\x7e\xa0-\xac\xae-\u02ff\u2010-\u2027\u2030-\u205f\u20a0-\u20cf\u2100-\u2fff\u3000-\u3163\u3165-\ud7ff]*$/;
/** `<time> O|E <line>`, as the box's supervisor writes them. */
const TOLD = /^(\d{4}-\d\d-\d\dT\S{1,40}) ([OE]) ?([^]*)$/;

/** How bad a line sounds. The words stay the signal; this only colours them. */
export function level(text: string): Level {
  return BAD.test(text) ? "bad" : WARN.test(text) ? "warn" : null;
}

/** A line as it is shown: nothing in it hides or moves. Most lines need nothing done. */
export function shown(line: Line): string {
  const text = PLAIN.test(line.text) ? line.text : visible(line.text);
  return line.cut > 0 ? `${text}… (${line.cut} more characters were not kept)` : text;
}

/** A line as it is copied and saved. */
export function whole(line: Line): string {
  const time = line.time === null ? "" : `${line.time} `;
  return `${time}${line.stderr ? "stderr " : ""}${shown(line)}`;
}

export class Lines {
  /** The number of the oldest line that is kept, and of the one to come. */
  first = 0;
  end = 0;
  readonly #most: number;
  readonly #told: boolean;
  readonly #ring: (Line | undefined)[] = [];
  #letters = 0;
  // A mark at the beginning is a letter that hides like any other.
  #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #rest = "";
  #cut = 0;

  /** `told`: lines begin with a time and where they were said. */
  constructor(told: boolean, most = MOST_LINES) {
    this.#told = told;
    this.#most = most;
  }

  get length(): number {
    return this.end - this.first;
  }

  at(number: number): Line | undefined {
    return number < this.first || number >= this.end ? undefined : this.#ring[number % this.#most];
  }

  /** Bytes as they come: a letter or a line may be cut in two by their borders. */
  take(bytes: Uint8Array): void {
    this.#split(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Nothing more comes: what has no end of its own is a line as well. */
  close(): void {
    this.#split(this.#decoder.decode());
    if (this.#rest !== "" || this.#cut > 0) this.#endLine();
  }

  #split(text: string): void {
    let from = 0;
    for (let to = text.indexOf("\n"); to >= 0; to = text.indexOf("\n", from)) {
      this.#add(text.slice(from, to));
      this.#endLine();
      from = to + 1;
    }
    this.#add(text.slice(from));
  }

  #add(part: string): void {
    const room = LONGEST - this.#rest.length;
    this.#rest += room > 0 ? part.slice(0, room) : "";
    this.#cut += Math.max(0, part.length - Math.max(0, room));
  }

  #endLine(): void {
    const text = this.#rest.endsWith("\r") ? this.#rest.slice(0, -1) : this.#rest;
    const told = this.#told ? TOLD.exec(text) : null;
    this.#put(
      told
        ? { text: told[3] as string, time: told[1] as string, stderr: told[2] === "E", cut: this.#cut }
        : { text, time: null, stderr: null, cut: this.#cut },
    );
    this.#rest = "";
    this.#cut = 0;
  }

  #put(line: Line): void {
    if (this.length === this.#most) this.#drop();
    this.#ring[this.end % this.#most] = line;
    this.end += 1;
    this.#letters += line.text.length;
    while (this.#letters > MOST_LETTERS && this.length > 1) this.#drop();
  }

  #drop(): void {
    const at = this.first % this.#most;
    this.#letters -= this.#ring[at]?.text.length ?? 0;
    this.#ring[at] = undefined;
    this.first += 1;
  }
}

/** The lines that hold some words, found a few at a time so that nothing waits for the rest. */
export class Finder {
  /** Numbers of lines, oldest first; lines that went are taken out by `step`. */
  found: number[] = [];
  /** For every place in a text. */
  readonly pattern: RegExp;
  readonly #once: RegExp;
  readonly #lines: Lines;
  #next: number;

  constructor(lines: Lines, words: string) {
    this.#lines = lines;
    this.#next = lines.first;
    const letters = words.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    this.pattern = new RegExp(letters, "gi");
    this.#once = new RegExp(letters, "i");
  }

  get done(): boolean {
    return this.#next >= this.#lines.end;
  }

  /** Looks on until the time is up; whether there is more to look at. */
  step(until: number): boolean {
    const gone = this.found.findIndex((number) => number >= this.#lines.first);
    if (gone !== 0) this.found = gone < 0 ? [] : this.found.slice(gone);
    this.#next = Math.max(this.#next, this.#lines.first);
    for (let looked = 1; !this.done; looked++) {
      const number = this.#next++;
      const line = this.#lines.at(number);
      if (line && this.#once.test(shown(line))) this.found.push(number);
      if (looked % 256 === 0 && performance.now() >= until) return true;
    }
    return false;
  }
}

/** A text in parts, those that fit the pattern marked. */
export function marked(text: string, pattern: RegExp | null): { text: string; hit: boolean }[] {
  if (pattern === null) return [{ text, hit: false }];
  const parts: { text: string; hit: boolean }[] = [];
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index), hit: false });
    parts.push({ text: match[0], hit: true });
    from = match.index + match[0].length;
  }
  if (from < text.length || parts.length === 0) parts.push({ text: text.slice(from), hit: false });
  return parts;
}
