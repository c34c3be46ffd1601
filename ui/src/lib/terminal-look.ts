// How the terminal looks: the window's own ground and text, and sixteen colours for each of light and dark.
//
// The box chooses which of them it uses; the terminal itself keeps text readable on whatever ground it
// gets, so these need not pass on every one.
import type { ITheme } from "@xterm/xterm";

const LIGHT: ITheme = {
  black: "#1c1c21",
  red: "#a8261d",
  green: "#1c6b38",
  yellow: "#7a4b00",
  blue: "#2a5bd0",
  magenta: "#8a2f9c",
  cyan: "#0f6674",
  white: "#5a5a66",
  brightBlack: "#62626e",
  brightRed: "#b83a30",
  brightGreen: "#2a7445",
  brightYellow: "#85570c",
  brightBlue: "#3a68d6",
  brightMagenta: "#9743a8",
  brightCyan: "#1c7080",
  brightWhite: "#1c1c21",
};

const DARK: ITheme = {
  black: "#8a8a98",
  red: "#ff9d94",
  green: "#7fd69a",
  yellow: "#f2c766",
  blue: "#8fb2ff",
  magenta: "#e0a3ee",
  cyan: "#7fd3e0",
  white: "#dcdce2",
  brightBlack: "#9a9aa8",
  brightRed: "#ffb3ac",
  brightGreen: "#9be3b1",
  brightYellow: "#f7d88f",
  brightBlue: "#abc5ff",
  brightMagenta: "#eabdf4",
  brightCyan: "#9fe0ea",
  brightWhite: "#ededf1",
};

/** The colours of the page as it is drawn now. */
export function theme(dark: boolean): ITheme {
  const background = token("--card", dark ? "#28282e" : "#ffffff");
  const foreground = token("--text", dark ? "#ededf1" : "#1c1c21");
  const accent = token("--accent", dark ? "#8fb2ff" : "#2a5bd0");
  return {
    ...(dark ? DARK : LIGHT),
    background,
    foreground,
    cursor: accent,
    cursorAccent: background,
    selectionBackground: token("--accent-soft", dark ? "#2c3650" : "#e4ebfb"),
    selectionForeground: foreground,
    scrollbarSliderBackground: token("--edge", "#83838f"),
  };
}

/** The system's own monospace font. */
export function font(): string {
  return token("--mono", "monospace");
}

function token(name: string, otherwise: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || otherwise;
}
