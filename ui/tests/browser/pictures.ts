// The same pages over samples, for the pictures in `docs/screens`: the clock stands still, and each page
// looks the same every time. The page to open is the address's fragment.
//
// What a person would do before there is something to see, the page does itself; `data-pictured` on the
// root says that it is done.
import "./scene/clock";
import "../../src/app.css";
import { FIX_LOGIN } from "./scene/boxes";
import { SceneHost } from "./scene/host";

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

const STEPS: Record<string, () => Promise<void>> = {
  new: chooseFolder,
  [`box/${FIX_LOGIN}/logs`]: chooseLog,
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
