// How much of the computer a box may use, as people write it: the same forms the command line takes.

const UNITS: Record<string, number> = { "": 1, b: 1, k: 2 ** 10, kb: 2 ** 10, m: 2 ** 20, mb: 2 ** 20, g: 2 ** 30, gb: 2 ** 30, t: 2 ** 40, tb: 2 ** 40 };

/** `512m`, `4g`, `4 GB` in bytes; none when it is no size. */
export function parseSize(text: string): number | null {
  const parts = /^(\d+)\s*([a-z]*)$/.exec(text.trim().toLowerCase());
  const unit = UNITS[parts?.[2] ?? "?"];
  if (!parts || unit === undefined) return null;
  const bytes = Number(parts[1]) * unit;
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** `2`, `1.5` in thousand millionths of a processor; none when it is no such number. */
export function parseCpus(text: string): number | null {
  if (!/^\d+(\.\d{1,9})?$/.test(text.trim())) return null;
  const nano = Math.round(Number(text) * 1e9);
  return nano === 0 || (nano >= 1e7 && nano <= 1024e9) ? nano : null;
}

/** A number of processes; none when it is no such number. */
export function parseCount(text: string): number | null {
  const count = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(count) ? count : null;
}

/** Bytes as [`parseSize`] reads them: `4g`, `1536m`. */
export function sizeText(bytes: number): string {
  for (const [unit, size] of [["t", 2 ** 40], ["g", 2 ** 30], ["m", 2 ** 20], ["k", 2 ** 10]] as const) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}
