#!/usr/bin/env python3
"""Draws the app icon and the tray icons.

Each is a short SVG rendered by `rsvg-convert` (Debian: librsvg2-bin). Run it after a change and
commit the PNGs; nothing else depends on the program being there.

A tray icon has to read at 22 pixels: strokes are thick, gaps are wide, and no state differs from
another by colour alone. `-light` is the dark glyph for light panels, `-dark` the light one. The
number of what needs somebody is put on the disc of `asks` by the app, from `tray-digits.png`: 1 to 9
and 9+, four in a row, drawn with DejaVu Sans Bold.
"""

import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).parent
# What icon themes have folders for; app/512 is icon.png, which is also compiled in.
APP_SIZES = (16, 22, 24, 32, 48, 64, 128, 256)
# An .icns file is a list of PNGs, each under the name of its size.
ICNS = {b"icp4": 16, b"icp5": 32, b"ic07": 128, b"ic08": 256, b"ic09": 512, b"ic10": 1024}
GLYPH = {"light": "#2b2b33", "dark": "#f4f4f7"}
DOT = {"light": "#d4380d", "dark": "#ff8a5c"}

# A box seen from the front: lid above, body below. On a grid of 64.
LID = '<rect x="6" y="10" width="52" height="15" rx="5"/>'
BODY = '<path d="M10 25 H54 V47 A8 8 0 0 1 46 55 H18 A8 8 0 0 1 10 47 Z"/>'
HANDLE = '<path d="M25 37 H39"/>'
# Where the disc is; a digit's cell is the square around it.
DISC_X, DISC_Y, DISC = 43, 21, 20
CELL = 2 * DISC


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
        return with_disc(filled(colour, handle=""), panel)
    if state == "down":
        return struck(colour)
    if state == "down-asks":
        return with_disc(struck(colour), panel)
    raise ValueError(state)


def struck(colour: str) -> str:
    hole = '<path d="M8 60 L60 4" stroke="black" stroke-width="15"/>'
    strike = f'<path d="M8 60 L58 6" stroke="{colour}" stroke-width="6" stroke-linecap="round"/>'
    return without(outline(colour, handle=""), hole) + strike


def with_disc(inner: str, panel: str) -> str:
    hole = f'<circle cx="{DISC_X}" cy="{DISC_Y}" r="{DISC + 4}" fill="black"/>'
    disc = f'<circle cx="{DISC_X}" cy="{DISC_Y}" r="{DISC}" fill="{DOT[panel]}"/>'
    return (
        f'<mask id="disc"><rect width="64" height="64" fill="white"/>{hole}</mask>'
        f'<g mask="url(#disc)">{inner}</g>{disc}'
    )


def digits() -> str:
    """1 to 9 and 9+, four in a row, white on nothing."""
    font = 'font-family="DejaVu Sans" font-weight="bold" text-anchor="middle" fill="white"'

    def cell(at: int, text: str, size: int) -> str:
        x, y = (at % 4 + 0.5) * CELL, (at // 4 + 0.5) * CELL + size * 0.365
        return f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" {font}>{text}</text>'

    return "".join(cell(n - 1, str(n), 34) for n in range(1, 10)) + cell(9, "9+", 24)


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


def svg(grid: int, drawing: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {grid} {grid}">{drawing}</svg>'


def png(size: int, grid: int, drawing: str) -> bytes:
    command = ["rsvg-convert", "--width", str(size), "--height", str(size)]
    return subprocess.run(command, input=svg(grid, drawing).encode(), check=True, stdout=subprocess.PIPE).stdout


def render(name: str, size: int, grid: int, drawing: str) -> None:
    (HERE / name).write_bytes(png(size, grid, drawing))


def icns(drawing: str) -> bytes:
    """For the app on macOS; never looked at there."""
    parts = [(kind, png(size, 512, drawing)) for kind, size in ICNS.items()]
    body = b"".join(kind + struct.pack(">I", len(data) + 8) + data for kind, data in parts)
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def main() -> None:
    render("icon.png", 512, 512, app_icon())
    (HERE / "app").mkdir(exist_ok=True)
    for size in APP_SIZES:
        render(f"app/{size}.png", size, 512, app_icon())
    (HERE / "app/icon.svg").write_text(svg(512, app_icon()))
    (HERE / "app/icon.icns").write_bytes(icns(app_icon()))
    render("tray-digits.png", 4 * CELL, 4 * CELL, digits())
    for state in ("idle", "busy", "asks", "down", "down-asks"):
        for panel in GLYPH:
            render(f"tray-{state}-{panel}.png", 64, 64, tray(state, panel))


if __name__ == "__main__":
    main()
