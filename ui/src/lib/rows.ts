// Lines as rows of one height, so that only those in view have to be drawn. Without wrapping a line is a
// row; with it, as many as it has parts of so many letters.
import { type Lines, shown } from "./lines";

/** Letters that take the place of two. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u;

/** How many letters of this text fit in a row that has room for so many. */
function lettersPerRow(text: string, columns: number): number {
  return Math.max(1, WIDE.test(text) ? Math.floor(columns / 2) : columns);
}

/** Where a row of a text begins and ends. Letters of two parts stay whole. */
export function partOf(text: string, part: number, columns: number | null): [number, number] {
  if (columns === null) return [0, text.length];
  const letters = lettersPerRow(text, columns);
  const border = (at: number) => {
    const next = text.charCodeAt(at);
    return Math.min(text.length, next >= 0xdc00 && next <= 0xdfff ? at + 1 : at);
  };
  return [part === 0 ? 0 : border(part * letters), border((part + 1) * letters)];
}

export class Rows {
  readonly columns: number | null;
  readonly #lines: Lines;
  /** Rows before each line since `#base`, and at the end before the line to come. */
  #sums: number[] = [0];
  #base: number;

  /** `columns`: none leaves lines as long as they are. */
  constructor(lines: Lines, columns: number | null) {
    this.#lines = lines;
    this.#base = lines.first;
    this.columns = columns;
    this.update();
  }

  /** Takes in what was said since. */
  update(): void {
    if (this.columns === null) return;
    // More came at once than is kept: what is between is not known any more, and takes no place.
    if (this.#base + this.#sums.length - 1 < this.#lines.first) {
      this.#sums = [this.#sums.at(-1) ?? 0];
      this.#base = this.#lines.first;
    }
    for (let next = this.#base + this.#sums.length - 1; next < this.#lines.end; next++) {
      this.#sums.push((this.#sums.at(-1) ?? 0) + this.#rowsOf(next));
    }
    if (this.#lines.first - this.#base > 50_000) {
      this.#sums = this.#sums.slice(this.#lines.first - this.#base);
      this.#base = this.#lines.first;
    }
  }

  #rowsOf(number: number): number {
    const line = this.#lines.at(number);
    if (!line || this.columns === null) return 1;
    const text = shown(line);
    return Math.max(1, Math.ceil(text.length / lettersPerRow(text, this.columns)));
  }

  #before(number: number): number {
    if (this.columns === null) return number;
    return this.#sums[Math.max(0, number - this.#base)] ?? this.#sums.at(-1) ?? 0;
  }

  /** Rows of lines that were there and went. */
  get gone(): number {
    return this.#before(this.#lines.first);
  }

  get total(): number {
    return this.#before(this.#lines.end) - this.gone;
  }

  /** The row a line begins at. */
  rowOf(number: number): number {
    return this.#before(Math.max(number, this.#lines.first)) - this.gone;
  }

  /** Which line, and which part of it, stands in a row. */
  at(row: number): { number: number; part: number } {
    const wanted = row + this.gone;
    if (this.columns === null) return { number: wanted, part: 0 };
    let low = this.#lines.first;
    let high = this.#lines.end - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#before(middle) <= wanted) low = middle;
      else high = middle - 1;
    }
    return { number: low, part: wanted - this.#before(low) };
  }
}
