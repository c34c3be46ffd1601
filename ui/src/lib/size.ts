// How large a file is, as people say it: the same form the host prints in a terminal.

const UNITS = ["KB", "MB", "GB", "TB", "PB"];

/** `512 bytes`, `1.2 KB`, `34 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 1000 && unit + 1 < UNITS.length) {
    value /= 1000;
    unit += 1;
  }
  const shown = value < 10 ? (Math.floor(value * 10) / 10).toFixed(1) : String(Math.floor(value));
  return `${shown} ${UNITS[unit]}`;
}
