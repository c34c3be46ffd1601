// Starts the window: the host is reached through Tauri.
import "./app.css";
import { tauriBackend } from "./lib/backend";
import { openWindow } from "./open";

void openWindow(tauriBackend());
