// Whether somebody begins: they have no box, and nobody has greeted them yet.
import type { AppState } from "./state.svelte";

const KEY = "welcomed";

export function isWelcomed(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    // Without a place to remember it, a greeting would come every time.
    return true;
  }
}

export function setWelcomed(): void {
  try {
    localStorage.setItem(KEY, "1");
  } catch {
    // It comes again then; that does no harm.
  }
}

/** Whoever was led to a question or a page stays there. */
function begins(app: AppState): boolean {
  const first = app.page === "inbox" || app.page === "boxes";
  return first && app.boxes.length === 0 && app.open.length === 0 && !isWelcomed();
}

/** Greets once the host has told what there is. What it returns ends the waiting. */
export function welcome(app: AppState): () => void {
  return $effect.root(() => {
    let decided = false;
    $effect(() => {
      if (decided || app.status === null) return;
      decided = true;
      if (begins(app)) app.show("welcome");
    });
  });
}
