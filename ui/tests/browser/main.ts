// The same pages in a browser, against a real host: what is Tauri's in the window is a WebSocket here.
// The page to open is the address's fragment.
import "../../src/app.css";
import type { Backend } from "../../src/lib/backend";
import { openWindow } from "../../src/open";
import { socketBackend } from "./backend";

// A browser that has just started may give up its first connection.
const connect = (tries: number): Promise<Backend> =>
  socketBackend(`ws://${location.host}/socket`).catch((why) => (tries > 0 ? connect(tries - 1) : Promise.reject(why)));

void connect(3).then((backend) => openWindow(backend));
