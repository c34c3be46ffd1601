// Starts the window: one state, fed by the host through the Tauri backend.
import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { tauriBackend } from "./lib/backend";
import { AppState } from "./lib/state.svelte";

const app = new AppState(tauriBackend());
mount(App, { target: document.getElementById("app") as HTMLElement, props: { app } });
void app.start();
