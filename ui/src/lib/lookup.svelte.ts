// The setting somebody was led to, until its page has shown it.
import type { AppState } from "./state.svelte";

export const lookup = $state<{ key: string | null }>({ key: null });

export function showSetting(app: AppState, key: string): void {
  lookup.key = key;
  app.show("settings");
}
