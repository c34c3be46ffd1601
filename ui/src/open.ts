// Puts the window's pages up, with one state that is fed by the host through a backend.
import { mount } from "svelte";
import App from "./App.svelte";
import type { Backend } from "./lib/backend";
import { AppState } from "./lib/state.svelte";
import { welcome } from "./lib/welcome.svelte";
import KeyHelp from "./parts/KeyHelp.svelte";

export async function openWindow(backend: Backend): Promise<void> {
  const app = new AppState(backend);
  mount(App, { target: document.getElementById("app") as HTMLElement, props: { app } });
  mount(KeyHelp, { target: document.body });
  await app.start();
  welcome(app);
}
