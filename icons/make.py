#!/usr/bin/env python3
"""Draws the app icon and the tray icons.

Each is a short SVG rendered by `rsvg-convert` (Debian: librsvg2-bin). Run it after a change and
commit the PNGs; nothing else depends on the program being there.

A tray icon has to read at 22 pixels: strokes are thick, gaps are wide, and no state differs from
another by colour alone. `-light` is the dark glyph for light panels, `-dark` the light one.
"""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
GLYPH = {"light": "#2b2b33", "dark": "#f4f4f7"}
DOT = {"light": "#d4380d", "dark": "#ff8a5c"}

# A box seen from the front: lid above, body below. On a grid of 64.
LID = '<rect x="6" y="10" width="52" height="15" rx="5"/>'
BODY = '<path d="M10 25 H54 V47 A8 8 0 0 1 46 55 H18 A8 8 0 0 1 10 47 Z"/>'
HANDLE = '<path d="M25 37 H39"/>'


def outline(colour: str, handle: str = HANDLE) -> str:
    return (
        f'<g fill="none" stroke="{colour}" stroke-width="5" stroke-linejoin="round" stroke-linecap="round">'
        f"{LID}{BODY}{handle}</g>"
    )


def filled(colour: str, handle: str = HANDLE) -> str:
    """The same box, solid; a gap under the lid and the handle are cut out of it."""
    return (
        '<mask id="cut"><rect width="64" height="64" fill="white"/>'
        '<g stroke="black" stroke-width="5" stroke-linecap="round">'
        f'<path d="M4 27 H60"/>{handle}</g></mask>'
        f'<g mask="url(#cut)" fill="{colour}" stroke="{colour}" stroke-width="5" stroke-linejoin="round">{LID}{BODY}</g>'
    )


def without(inner: str, hole: str) -> str:
    return f'<mask id="hole"><rect width="64" height="64" fill="white"/>{hole}</mask><g mask="url(#hole)">{inner}</g>'


def tray(state: str, panel: str) -> str:
    colour = GLYPH[panel]
    if state == "idle":
        return outline(colour)
    if state == "busy":
        return filled(colour)
    if state == "asks":
        hole = '<circle cx="47" cy="17" r="20" fill="black"/>'
        return without(filled(colour, handle=""), hole) + f'<circle cx="47" cy="17" r="14.5" fill="{DOT[panel]}"/>'
    if state == "down":
        hole = '<path d="M8 60 L60 4" stroke="black" stroke-width="15"/>'
        strike = f'<path d="M8 60 L58 6" stroke="{colour}" stroke-width="6" stroke-linecap="round"/>'
        return without(outline(colour, handle=""), hole) + strike
    raise ValueError(state)


def app_icon() -> str:
    return """
<defs>
  <linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">
    <stop offset="0" stop-color="#5b8cff"/><stop offset="1" stop-color="#2f56c8"/>
  </linearGradient>
  <linearGradient id="card" x1="0" y1="0" x2="0" y2="1">
    <stop offset="0" stop-color="#ffe3b0"/><stop offset="1" stop-color="#f5c477"/>
  </linearGradient>
</defs>
<rect x="24" y="24" width="464" height="464" rx="108" fill="url(#sky)"/>
<ellipse cx="256" cy="410" rx="150" ry="16" fill="#1d3a94" opacity="0.45"/>
<path d="M122 226 H390 V356 A48 48 0 0 1 342 404 H170 A48 48 0 0 1 122 356 Z" fill="url(#card)"/>
<path d="M122 226 H390 V248 H122 Z" fill="#d79c45" opacity="0.55"/>
<rect x="98" y="138" width="316" height="92" rx="32" fill="#fff0d2"/>
<path d="M232 138 H280 V276 A10 10 0 0 1 270 286 H242 A10 10 0 0 1 232 276 Z" fill="#8fb2ff"/>
<g fill="#3d2b12">
  <rect x="176" y="290" width="26" height="40" rx="13"/>
  <rect x="310" y="290" width="26" height="40" rx="13"/>
</g>
<path d="M226 336 Q256 362 286 336" fill="none" stroke="#3d2b12" stroke-width="13" stroke-linecap="round"/>
"""


def render(name: str, size: int, grid: int, drawing: str) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {grid} {grid}">{drawing}</svg>'
    command = ["rsvg-convert", "--width", str(size), "--height", str(size), "--output", str(HERE / name)]
    subprocess.run(command, input=svg.encode(), check=True)


def main() -> None:
    render("icon.png", 512, 512, app_icon())
    for state in ("idle", "busy", "asks", "down"):
        for panel in GLYPH:
            render(f"tray-{state}-{panel}.png", 64, 64, tray(state, panel))


if __name__ == "__main__":
    main()
