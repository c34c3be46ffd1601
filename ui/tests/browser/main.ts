// The same pages in a browser, against a real host: what is Tauri's in the window is a WebSocket here.
// The page to open is the address's fragment.
import "../../src/app.css";
import { openWindow } from "../../src/open";
import { socketBackend } from "./backend";

void socketBackend(`ws://${location.host}/socket`).then((backend) => openWindow(backend));
