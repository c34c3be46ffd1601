// Brings up the whole window over the fake host, and drives it as a person would.
import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { tick } from "svelte";
import { vi } from "vitest";
import App from "../src/App.svelte";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { HostEvent } from "../src/lib/bindings/HostEvent";
import type { HostStatus } from "../src/lib/bindings/HostStatus";
import type { Question } from "../src/lib/bindings/Question";
import { AppState } from "../src/lib/state.svelte";
import { FakeBackend } from "./fake";
import * as sample from "./samples";

interface Start {
  first?: string;
  status?: Partial<HostStatus>;
  boxes?: BoxView[];
  questions?: Question[];
}

export async function openWindow(start: Start = {}) {
  const host = new FakeBackend();
  host.first = start.first ?? "inbox";
  const app = new AppState(host);
  const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms), delay: null });
  render(App, { props: { app } });
  await app.start();
  const snapshot: HostEvent = {
    type: "snapshot",
    status: sample.status(start.status),
    boxes: start.boxes ?? [],
    questions: start.questions ?? [],
  };
  const say = async (event: HostEvent) => {
    host.say(event);
    await tick();
  };
  await say(snapshot);
  return { host, app, user, say, snapshot };
}

/** Lets time pass, and the page be drawn. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await tick();
}

export const at = (testid: string): HTMLElement => screen.getByTestId(testid);
export const maybe = (testid: string): HTMLElement | null => screen.queryByTestId(testid);
export const words = (testid: string): string => (at(testid).textContent ?? "").replace(/\s+/g, " ").trim();
