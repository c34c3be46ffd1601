// The same pages over samples, for the pictures in `docs/screens`: the clock stands still, and each page
// looks the same every time. The page to open is the address's fragment.
//
// What a person would do before there is something to see, the page does itself; `data-pictured` on the
// root says that it is done.
import "./scene/clock";
import "../../src/app.css";
import { FIX_LOGIN } from "./scene/boxes";
import { SceneHost } from "./scene/host";
import { WIDTH } from "./scene/screen";

const page = location.hash.slice(1) || "inbox";

/** An element, as soon as it is there. */
async function at<E extends HTMLElement>(testid: string): Promise<E> {
  for (;;) {
    const found = document.querySelector<E>(`[data-testid="${testid}"]`);
    if (found) return found;
    await new Promise(requestAnimationFrame);
  }
}

async function chooseFolder(): Promise<void> {
  (await at("recent-shop-api")).click();
  const name = await at<HTMLInputElement>("new-name");
  name.value = "rate-limits";
  name.dispatchEvent(new Event("input", { bubbles: true }));
  (await at("agent-claude")).click();
  await at("carry");
}

async function chooseLog(): Promise<void> {
  await at("log-row");
  const source = await at<HTMLSelectElement>("log-source");
  source.value = "api";
  source.dispatchEvent(new Event("change", { bubbles: true }));
}

/** Until the screen's picture is on the page: nothing but its canvas tells. */
async function seeScreen(): Promise<void> {
  const screen = await at("screen");
  const drawn = () => {
    const canvas = screen.querySelector("canvas");
    return canvas?.width === WIDTH && canvas.getContext("2d")?.getImageData(0, 0, 1, 1).data[3] === 255;
  };
  while (!drawn()) await new Promise(requestAnimationFrame);
}

const STEPS: Record<string, () => Promise<void>> = {
  new: chooseFolder,
  [`box/${FIX_LOGIN}/logs`]: chooseLog,
  [`box/${FIX_LOGIN}/screen`]: seeScreen,
  [`box/${FIX_LOGIN}/network`]: async () => void (await at("traffic-row")),
};

async function open(): Promise<void> {
  // After the clock was stopped, whatever order the build has the rest in.
  const { openWindow } = await import("../../src/open");
  const host = new SceneHost(page);
  await openWindow(host);
  host.say(host.snapshot());
  await STEPS[page]?.();
  document.documentElement.dataset["pictured"] = "";
}

void open();
