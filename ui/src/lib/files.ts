// A box's files as the page shows them. Names are the box's own word: one that is no name is left out,
// and every other is drawn with nothing hidden in it.
import type { BoxFile } from "./bindings/BoxFile";
import type { FileKind } from "./bindings/FileKind";
import { visible } from "./visible";
import { count } from "./words";

/** Where a project lies in a box. */
export const START = "/workspace";

/** The last moment a date can be. */
const LAST = 8.64e15;

/** A symbol and a word: what an entry is never depends on the symbol alone. */
export const KINDS: Record<FileKind, { symbol: string; word: string }> = {
  folder: { symbol: "▸", word: "folder" },
  file: { symbol: "·", word: "file" },
  link: { symbol: "↪", word: "link" },
  other: { symbol: "?", word: "neither file nor folder" },
};

const byName = new Intl.Collator(undefined, { numeric: true });

/** Folders first, each kind by name; what is no name, or came before, is left out. */
export function inOrder(entries: BoxFile[]): BoxFile[] {
  const rank = (entry: BoxFile) => (entry.kind === "folder" ? 0 : 1);
  const once = [...new Map(entries.filter((entry) => isName(entry.name)).map((entry) => [entry.name, entry])).values()];
  return once.sort((a, b) => rank(a) - rank(b) || byName.compare(a.name, b.name));
}

function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name);
}

/** Those whose name has the words of the filter in it. */
export function fitting(entries: BoxFile[], filter: string): BoxFile[] {
  const words = filter.trim().toLowerCase();
  return words === "" ? entries : entries.filter((entry) => visible(entry.name).toLowerCase().includes(words));
}

export function join(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

/** The folder above; none above the top. */
export function above(folder: string): string | null {
  if (folder === "/") return null;
  return folder.slice(0, folder.lastIndexOf("/")) || "/";
}

export interface Crumb {
  path: string;
  name: string;
}

/** The way from the top of the box to a folder. */
export function crumbs(folder: string): Crumb[] {
  const parts = folder.split("/").filter((part) => part !== "");
  const way = parts.map((name, at) => ({ path: `/${parts.slice(0, at + 1).join("/")}`, name }));
  return [{ path: "/", name: "/" }, ...way];
}

/** When it was changed; none for a time that a calendar does not have. */
export function changedAt(entry: BoxFile): number | null {
  return entry.modified > 0 && entry.modified <= LAST ? entry.modified : null;
}

/** `a.txt`, `a.txt and b.txt`, `a.txt, b.txt and 3 more`. */
export function someNames(names: string[], most = 3): string {
  const shown = names.slice(0, names.length > most ? most - 1 : most).map(visible);
  const rest = names.length - shown.length;
  if (rest > 0) return `${shown.join(", ")} and ${rest} more`;
  return shown.length < 2 ? (shown[0] ?? count(0, "file", "files")) : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
