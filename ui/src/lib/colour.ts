// A box's colour, the same everywhere it is shown. It never stands alone: the name is beside it.
import type { BoxId } from "./bindings/BoxId";

/** Each at least 3:1 against the light and the dark card, so one palette serves both. */
export const PALETTE = [
  "#3b7de0",
  "#d9486e",
  "#0d9488",
  "#9a5cf0",
  "#d8620f",
  "#5a8f16",
  "#0e8fae",
  "#d93a34",
  "#a8741a",
  "#6568ee",
  "#c03ac9",
  "#6b7a90",
] as const;

/** The number in the id, modulo the palette. */
export function boxColour(id: BoxId): string {
  const number = Number.parseInt(id.slice(1), 16);
  return PALETTE[Number.isFinite(number) ? number % PALETTE.length : 0] as string;
}
