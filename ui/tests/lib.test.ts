// The small pure parts.
import { afterEach, describe, expect, test } from "vitest";
import { PALETTE, boxColour } from "../src/lib/colour";
import { commandLine } from "../src/lib/command";
import { HISTORY_MS, path, remembered } from "../src/lib/history";
import { ago } from "../src/lib/time";
import { asControlError, folderWords, shortImage } from "../src/lib/words";
import css from "../src/app.css?raw";
import { usage } from "./samples";

test("ages", () => {
  const now = 10 * 86_400_000;
  const after = (seconds: number) => ago(now - seconds * 1000, now);
  expect([0, 59, 60, 3599, 3600, 86_399, 86_400, 3 * 86_400].map(after)).toEqual([
    "0 s ago",
    "59 s ago",
    "1 min ago",
    "59 min ago",
    "1 h ago",
    "23 h ago",
    "1 day ago",
    "3 days ago",
  ]);
  expect(after(-5)).toBe("0 s ago");
});

test("a command line reads as the host prints it", () => {
  expect(commandLine(["git", "a b", "", "it's", "x=1@{u}"])).toBe("git 'a b' '' 'it'\\''s' 'x=1@{u}'");
});

test("images are known by their last part", () => {
  expect(shortImage("agentbox/box:1")).toBe("box:1");
  expect(shortImage("host.example:5000/agentbox/box@sha256:abc")).toBe("box");
  expect(shortImage(`sha256:${"a1".repeat(32)}`)).toBe("a1a1a1a1a1a1");
});

test("whatever is thrown becomes an error with a message", () => {
  expect(asControlError(new Error("boom")).message).toBe("boom");
  expect(asControlError("boom")).toEqual({ code: "failed", message: "boom", hints: [] });
});

describe("what boxes used", () => {
  test("is kept for some minutes, however long the window is open, and forgotten with its box", () => {
    let history = remembered({}, [usage({ id: "bgone" })], 0);
    for (let at = 0; at < 3 * HISTORY_MS; at += 3000) history = remembered(history, [usage()], at);
    expect(Object.keys(history)).toEqual(["b00000001"]);
    expect(history["b00000001"]?.length).toBe(100);
    for (let at = 0; at < 500; at++) history = remembered(history, [usage()], 3 * HISTORY_MS + at);
    expect(history["b00000001"]?.length).toBe(200);
  });

  test("is a line from the bottom to the top, the newest at the right", () => {
    const points = [
      { at: 0, value: 0 },
      { at: HISTORY_MS / 2, value: 200 },
      { at: HISTORY_MS, value: 50 },
    ];
    expect(path(points, 100)).toBe("0.0,23.0 50.0,1.0 100.0,12.0");
    expect(path([{ at: 1, value: 0 }], 0)).toBe("100.0,23.0");
  });
});

test("folders", () => {
  expect(folderWords("/home/ada/shop-api", "/home/ada/.agentbox")).toBe("~/shop-api");
  expect(folderWords("Box a made from /home/ada/shop-api", "/home/ada/.agentbox")).toBe("Box a made from ~/shop-api");
  expect(folderWords("/mnt/home/ada/shop-api", "/home/ada/.agentbox")).toBe("/mnt/home/ada/shop-api");
  for (const home of [undefined, "/srv/agentbox", "/.agentbox", "/home/ad/.agentbox"]) {
    expect(folderWords("/home/ada/shop-api", home)).toBe("/home/ada/shop-api");
  }
});

describe("less motion", () => {
  const wanted = (less: boolean) => {
    const { device } = (window as unknown as { happyDOM: { settings: { device: { prefersReducedMotion: string } } } }).happyDOM.settings;
    device.prefersReducedMotion = less ? "reduce" : "no-preference";
  };

  function styleOf(element: string, classes: string, own: string): CSSStyleDeclaration {
    document.head.innerHTML = `<style>${own}</style><style>${css}</style>`;
    document.body.innerHTML = `<${element} class="${classes}"></${element}>`;
    return getComputedStyle(document.body.firstElementChild as Element);
  }

  afterEach(() => {
    wanted(false);
    document.head.innerHTML = document.body.innerHTML = "";
  });

  test.each([
    [false, "0.4s", "breathe", "smooth"],
    [true, "none", "none", "auto"],
  ])("wanted: %s", (less, transition, animation, scrolling) => {
    wanted(less);
    const own = ".x { transition: box-shadow 0.4s; animation: breathe 1.4s infinite; scroll-behavior: smooth }";
    const style = styleOf("article", "x", own);
    expect(style.transition).toContain(transition);
    expect(style.animation).toContain(animation);
    expect(style.scrollBehavior).toBe(scrolling);
  });

  test("what comes late still does", () => {
    wanted(true);
    expect(styleOf("p", "late", "").animation).toContain("appear");
  });
});

describe("contrast", () => {
  const luminance = (hex: string) => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    }) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one: string, other: string) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
    return (light + 0.05) / (dark + 0.05);
  };
  const tokens = (block: string) =>
    Object.fromEntries([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6})/g)].map((m) => [m[1], m[2]])) as Record<string, string>;
  const [light, dark] = css.split("prefers-color-scheme: dark") as [string, string];

  test("cards, of which there may be many, have no shadow that is blurred", () => {
    const shadows = [...css.matchAll(/--shadow: ([^;]+);/g)].map((found) => found[1]);
    expect(shadows).toHaveLength(2);
    // The third length is the blur.
    for (const shadow of shadows) expect(shadow).toMatch(/^\S+ \S+( 0)? (rgb\(|#)/);
  });

  test.each([
    ["light", tokens(light)],
    ["dark", tokens(dark)],
  ])("%s: text is AA on every ground it stands on, marks reach 3:1", (_, c) => {
    const pairs = [
      ...["page", "rail", "card", "sunken", "warn-soft", "bad-soft"].map((ground) => ["text", ground]),
      ...["page", "rail", "card", "sunken"].map((ground) => ["quiet", ground]),
      ...["card", "sunken", "warn-soft"].map((ground) => ["warn", ground]),
      ...["card", "sunken", "bad-soft"].map((ground) => ["bad", ground]),
      ["good", "card"],
      ["good", "page"],
      ["bad", "page"],
      ["accent", "card"],
      // A line of a log that was found, and the words in it.
      ...["text", "quiet", "warn", "bad"].map((ink) => [ink, "accent-soft"]),
      ["text", "warn-line"],
      ["on-accent", "accent"],
    ] as [string, string][];
    for (const [ink, ground] of pairs) {
      expect(contrast(c[ink] as string, c[ground] as string), `${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    }
    for (const ground of ["card", "sunken"]) {
      expect(contrast(c["edge"] as string, c[ground] as string), `edge on ${ground}`).toBeGreaterThanOrEqual(3);
    }
    for (const colour of PALETTE) {
      expect(contrast(colour, c["card"] as string), colour).toBeGreaterThanOrEqual(3);
    }
  });

  test("a box keeps its colour", () => {
    expect(boxColour("b0000000d")).toBe(PALETTE[1]);
    expect(boxColour("not an id")).toBe(PALETTE[0]);
  });
});
