// Every test starts with an empty page and a clock it moves itself.
import { cleanup } from "@testing-library/svelte";
import { afterEach, beforeEach, vi } from "vitest";

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2031-03-05T10:00:00Z") });
  // The DOM's own never tells anybody anything; without one everything counts as in view.
  vi.stubGlobal("IntersectionObserver", undefined);
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.useRealTimers();
});
