// Lines out of bytes, rows out of lines, and words found in them.
import { describe, expect, test } from "vitest";
import { Finder, LONGEST, Lines, MOST_LINES, PLAIN, level, marked, shown, whole } from "../src/lib/lines";
import { Rows, partOf } from "../src/lib/rows";
import { visible } from "../src/lib/visible";

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (lines: Lines) => Array.from({ length: lines.length }, (_, at) => lines.at(lines.first + at)?.text);

describe("lines", () => {
  test("are put together however the bytes are cut, in the middle of a letter too", () => {
    const all = bytes("grün ✓ 🦀\r\nzweite\n\nletzte");
    for (const size of [1, 2, 3, 5, 7, 100]) {
      const lines = new Lines(false);
      for (let at = 0; at < all.length; at += size) lines.take(all.slice(at, at + size));
      expect(texts(lines)).toEqual(["grün ✓ 🦀", "zweite", ""]);
      lines.close();
      expect(texts(lines)).toEqual(["grün ✓ 🦀", "zweite", "", "letzte"]);
    }
  });

  test("the newest are kept, under the numbers they came with", () => {
    const lines = new Lines(false, 3);
    lines.take(bytes("a\nb\nc\nd\ne\n"));
    expect(texts(lines)).toEqual(["c", "d", "e"]);
    expect([lines.first, lines.end, lines.length]).toEqual([2, 5, 3]);
    expect(lines.at(1)).toBeUndefined();
    expect(lines.at(5)).toBeUndefined();
  });

  test("a line without end is cut, also when it comes in pieces, and says so", () => {
    const lines = new Lines(false);
    for (let n = 0; n < 20; n++) lines.take(bytes("x".repeat(10_000)));
    lines.take(bytes("\nnext\n"));
    expect(lines.length).toBe(2);
    const first = lines.at(0);
    expect(first?.text).toHaveLength(LONGEST);
    expect(shown(first!)).toContain(`… (${200_000 - LONGEST} more characters were not kept)`);
    expect(lines.at(1)?.text).toBe("next");
  });

  test("long lines do not fill the memory: their weight is bounded as well", () => {
    const lines = new Lines(false);
    const long = bytes(`${"x".repeat(LONGEST)}\n`);
    for (let n = 0; n < 1100; n++) lines.take(long);
    expect(lines.end).toBe(1100);
    expect(lines.length).toBeLessThanOrEqual(1024);
  });

  test("a unit's lines come apart: when, where, what; others are left as they are", () => {
    const lines = new Lines(true);
    lines.take(bytes("2026-01-01T10:00:00.000Z O hello\n2026-01-01T10:00:01.000Z E  oh no\nno time here\n"));
    expect(lines.at(0)).toEqual({ text: "hello", time: "2026-01-01T10:00:00.000Z", stderr: false, cut: 0 });
    expect(lines.at(1)).toMatchObject({ text: " oh no", stderr: true });
    expect(lines.at(2)).toMatchObject({ text: "no time here", time: null, stderr: null });
    expect(whole(lines.at(1)!)).toBe("2026-01-01T10:00:01.000Z stderr  oh no");
  });

  test("what hides or moves is made visible", () => {
    const line = (text: string) => ({ text, time: null, stderr: null, cut: 0 });
    expect(shown(line("\u001b[31mred\u001b[0m\u202e"))).toBe("\\x1b[31mred\\x1b[0m⟨U+202E⟩");
    expect(shown(line("plain"))).toBe("plain");
  });

  test("what is taken for plain is what nothing has to be done to", () => {
    for (let code = 0; code <= 0xffff; code++) {
      const letter = String.fromCharCode(code);
      if (PLAIN.test(letter) && visible(letter) !== letter) throw new Error(`U+${code.toString(16)} is not plain`);
    }
  });

  test("levels go by words, not by parts of words", () => {
    expect(["ERROR: x", "it failed", "a warning", "WARN y", "mirror terror", "0 errors", "forwarding"].map(level)).toEqual([
      "bad",
      "bad",
      "warn",
      "warn",
      null,
      null,
      null,
    ]);
  });

  test("a hundred thousand lines take less than a moment", () => {
    const lines = new Lines(true);
    const chunk = bytes(Array.from({ length: 1000 }, (_, n) => `2026-01-01T10:00:00.000Z O line number ${n} of a service\n`).join(""));
    const begun = performance.now();
    for (let n = 0; n < 200; n++) lines.take(chunk);
    expect(lines.length).toBe(MOST_LINES);
    expect(lines.first).toBe(100_000);
    expect(performance.now() - begun).toBeLessThan(3000);
  });
});

describe("finding", () => {
  const some = (...all: string[]) => {
    const lines = new Lines(false, 5);
    lines.take(bytes(all.map((line) => `${line}\n`).join("")));
    return lines;
  };

  test("goes by letters, not by patterns, whatever their case; and goes on with what comes", () => {
    const lines = some("a.b", "axb", "A.B");
    const finder = new Finder(lines, "a.b");
    expect(finder.step(Infinity)).toBe(false);
    expect(finder.found).toEqual([0, 2]);
    lines.take(bytes("x a.b\n1\n2\n"));
    finder.step(Infinity);
    expect(finder.found).toEqual([2, 3]);
  });

  test("stops when the time is up, and goes on where it was", () => {
    const lines = new Lines(false);
    lines.take(bytes("hit\n".repeat(1000)));
    const finder = new Finder(lines, "hit");
    expect(finder.step(0)).toBe(true);
    expect(finder.found.length).toBeLessThan(1000);
    while (finder.step(0));
    expect(finder.found).toHaveLength(1000);
  });

  test("finds what is seen: escape sequences as they are spelled", () => {
    const finder = new Finder(some("\u001b[31mred"), "\\x1b[31m");
    finder.step(Infinity);
    expect(finder.found).toEqual([0]);
  });

  test("marks every place in a line", () => {
    expect(marked("xAbxab", /ab/gi)).toEqual([
      { text: "x", hit: false },
      { text: "Ab", hit: true },
      { text: "x", hit: false },
      { text: "ab", hit: true },
    ]);
    expect(marked("", /a/g)).toEqual([{ text: "", hit: false }]);
  });
});

describe("rows", () => {
  const lines = (most: number, ...all: string[]) => {
    const made = new Lines(false, most);
    made.take(bytes(all.map((line) => `${line}\n`).join("")));
    return made;
  };

  test("without wrapping a line is a row", () => {
    const rows = new Rows(lines(3, "a", "b", "c", "d"), null);
    expect([rows.total, rows.gone, rows.rowOf(2)]).toEqual([3, 1, 1]);
    expect(rows.at(0)).toEqual({ number: 1, part: 0 });
  });

  test("with it a line has as many as it needs, also after older ones went", () => {
    const of = lines(3, "x".repeat(25), "", "y".repeat(10));
    const rows = new Rows(of, 10);
    expect(rows.total).toBe(3 + 1 + 1);
    expect([0, 2, 3, 4].map((row) => rows.at(row))).toEqual([
      { number: 0, part: 0 },
      { number: 0, part: 2 },
      { number: 1, part: 0 },
      { number: 2, part: 0 },
    ]);
    of.take(bytes(`${"z".repeat(11)}\n`));
    rows.update();
    expect([rows.total, rows.gone, rows.rowOf(3)]).toEqual([4, 3, 2]);
    expect(rows.at(3)).toEqual({ number: 3, part: 1 });
    of.take(bytes("1\n2\n3\n4\n5\n6\n7\n8\n"));
    rows.update();
    expect([rows.total, rows.at(2)]).toEqual([3, { number: 11, part: 0 }]);
  });

  test("letters of two parts stay whole, wide ones have room, and nothing is lost", () => {
    for (const text of ["🦀".repeat(30), "日本語".repeat(20), `ab${"🦀".repeat(9)}c`]) {
      const rows = new Rows(lines(3, text), 10);
      const parts = Array.from({ length: rows.total }, (_, part) => text.slice(...partOf(text, part, 10)));
      expect(parts.join("")).toBe(text);
      for (const part of parts) expect(new TextDecoder().decode(new TextEncoder().encode(part))).toBe(part);
    }
  });
});
