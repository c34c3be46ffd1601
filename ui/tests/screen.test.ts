// The screen of a box: the channel's states, a scripted RFB 3.8 server through noVNC, and who controls.
import { render } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import axe from "axe-core";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { StreamCall } from "../src/lib/backend";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { ControlError } from "../src/lib/bindings/ControlError";
import type { Stream } from "../src/lib/bindings/Stream";
import { CLOSED, CLOSING, CONNECTING, OPEN, ScreenChannel } from "../src/lib/rfb";
import { AppState } from "../src/lib/state.svelte";
import Screen from "../src/parts/box/Screen.svelte";
import { FakeBackend, error } from "./fake";
import { box } from "./samples";
import { at, maybe, pass, words } from "./window";

/** A host whose streams carry bytes that are no text. */
class ByteHost extends FakeBackend {
  readonly wires: { what: Stream; give: (...bytes: number[]) => void; sent: number[]; finish: (code: number) => void; fail: (error: ControlError) => void; ended: boolean }[] = [];

  override stream(what: Stream, onBytes: (bytes: Uint8Array) => void | Promise<void>): StreamCall {
    let finish = (_: number) => {};
    let fail = (_: ControlError) => {};
    const done = new Promise<number>((resolve, reject) => ([finish, fail] = [resolve, reject]));
    const wire = { what, give: (...bytes: number[]) => void onBytes(Uint8Array.from(bytes)), sent: [] as number[], finish, fail, ended: false };
    this.wires.push(wire);
    return {
      done,
      // As the real one does: what is sent is read a moment later.
      write: (bytes) => void Promise.resolve().then(() => wire.sent.push(...bytes)),
      resize: () => {},
      end: () => {
        wire.ended = true;
        fail(error("failed", "It was called off."));
      },
    };
  }
}

type Wire = ByteHost["wires"][number];

const text = (words: string) => [...words].map((c) => c.charCodeAt(0));
const u16 = (n: number) => [n >> 8, n & 255];
const u32 = (n: number) => [n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255];
const VERSION = text("RFB 003.008\n");
const NONE = 1;
const VNC = 2;
const FORMAT = [32, 24, 0, 1, ...u16(255), ...u16(255), ...u16(255), 16, 8, 0, 0, 0, 0];
const serverInit = (width = 64, height = 48) => [...u16(width), ...u16(height), ...FORMAT, ...u32(4), ...text("desk")];
const cutText = (words: string) => [3, 0, 0, 0, ...u32(words.length), ...text(words)];

describe("the channel", () => {
  function channel() {
    const host = new ByteHost();
    const seen: string[] = [];
    const one = new ScreenChannel(host, "b00000001");
    one.onopen = () => seen.push(`open ${one.readyState}`);
    one.onmessage = ({ data }) => seen.push(`message ${data instanceof ArrayBuffer} ${[...new Uint8Array(data)]}`);
    one.onerror = () => seen.push(`error ${one.readyState}`);
    one.onclose = ({ code, reason }) => seen.push(`close ${one.readyState} ${code} ${reason}`.trim());
    return { one, seen, wire: host.wires[0]! };
  }

  test("has everything noVNC looks for", () => {
    const { one } = channel();
    const own = [...Object.keys(one), ...Object.getOwnPropertyNames(Object.getPrototypeOf(one))];
    expect(own).toEqual(expect.arrayContaining(["send", "close", "binaryType", "onerror", "onmessage", "onopen", "onclose", "protocol", "readyState"]));
    expect([WebSocket.CONNECTING, WebSocket.OPEN, WebSocket.CLOSING, WebSocket.CLOSED]).toEqual([CONNECTING, OPEN, CLOSING, CLOSED]);
  });

  test("opens with the server's first bytes, which then are a message of their own", () => {
    const { one, seen, wire } = channel();
    expect(wire.what).toEqual({ kind: "screen", id: "b00000001" });
    expect([one.readyState, one.binaryType]).toEqual([CONNECTING, "arraybuffer"]);
    expect(() => one.send(Uint8Array.of(1))).toThrow();
    wire.give(1, 255);
    wire.give(3);
    expect(seen).toEqual(["open 1", "message true 1,255", "message true 3"]);
  });

  test("sends a copy: the buffer may be written over at once", async () => {
    const { one, wire } = channel();
    wire.give(1);
    const buffer = Uint8Array.of(7, 8, 9);
    one.send(buffer.subarray(1));
    buffer.fill(0);
    await pass(0);
    expect(wire.sent).toEqual([8, 9]);
  });

  test("closed here: closing, closed once, and nothing passes any more", async () => {
    const { one, seen, wire } = channel();
    wire.give(1);
    one.close();
    one.close();
    expect(one.readyState).toBe(CLOSING);
    expect(wire.ended).toBe(true);
    wire.give(2);
    one.send(Uint8Array.of(5));
    await pass(0);
    expect([one.readyState, one.why]).toEqual([CLOSED, null]);
    expect(seen).toEqual(["open 1", "message true 1", "close 3 1000"]);
    expect(wire.sent).toEqual([]);
  });

  test("ended by the box: closed; lost: an error, then closed, with the reason", async () => {
    const ended = channel();
    ended.wire.finish(0);
    await pass(0);
    expect(ended.seen).toEqual(["close 3 1000"]);
    const lost = channel();
    lost.wire.fail(error("failed", "the box stopped"));
    await pass(0);
    expect(lost.seen).toEqual(["error 0", "close 3 1006 the box stopped"]);
    expect(lost.one.why?.message).toBe("the box stopped");
  });

  test("words that cannot be read end it, and do not reach the host's stream as a failure", async () => {
    const { one, seen, wire } = channel();
    one.onmessage = () => {
      throw new Error("nonsense");
    };
    wire.give(1);
    await pass(0);
    expect(wire.ended).toBe(true);
    expect(seen).toEqual(["open 1", "error 1", "close 3 1006 nonsense"]);
  });
});

describe("through noVNC", () => {
  // There is no canvas here: everything drawn goes nowhere.
  beforeEach(() => {
    const nowhere: unknown = new Proxy(() => nowhere, {
      get: (_, name) => (name === "data" ? new Uint8ClampedArray(4 * 64 * 48) : name === Symbol.toPrimitive ? () => 0 : nowhere),
      set: () => true,
    });
    vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockImplementation(() => nowhere as never);
    vi.spyOn(HTMLCanvasElement.prototype, "toDataURL").mockReturnValue("data:,");
    vi.spyOn(console, "error").mockImplementation(() => {});
    vi.spyOn(console, "warn").mockImplementation(() => {});
  });

  async function open(over: Partial<BoxView> = {}, host = new ByteHost()) {
    const app = new AppState(host);
    const user = userEvent.setup({ advanceTimers: (ms) => vi.advanceTimersByTime(ms), delay: null });
    const view = render(Screen, { props: { app, box: box({ screen: "http://b1.localhost/screen", ...over }) } });
    await settle();
    return { host, app, user, view, wire: () => host.wires.at(-1)! };
  }

  async function settle() {
    await pass(0);
    await vi.dynamicImportSettled();
    await pass(20);
  }

  /** Says something; what came back. */
  async function say(wire: Wire, ...bytes: number[]): Promise<number[]> {
    wire.sent.length = 0;
    wire.give(...bytes);
    await pass(0);
    return [...wire.sent];
  }

  async function connect(wire: Wire, width?: number, height?: number) {
    await say(wire, ...VERSION);
    await say(wire, 1, NONE);
    await say(wire, ...u32(0));
    return say(wire, ...serverInit(width, height));
  }

  const canvas = () => at("screen").querySelector("canvas")!;
  const press = (key: string, over: KeyboardEventInit = {}) =>
    canvas().dispatchEvent(new KeyboardEvent("keydown", { key, code: `Key${key.toUpperCase()}`, bubbles: true, cancelable: true, ...over }));

  test("a server without security is shown: version, choice, sharing, then what is wanted", async () => {
    const { wire } = await open();
    expect(words("screen-told")).toBe("Connecting…");
    expect((at("take-control") as HTMLButtonElement).disabled).toBe(true);
    expect(await say(wire(), ...VERSION)).toEqual(VERSION);
    expect(await say(wire(), 1, NONE)).toEqual([NONE]);
    expect(await say(wire(), ...u32(0))).toEqual([1]);
    const wants = await say(wire(), ...serverInit());
    // SetPixelFormat, then SetEncodings.
    expect(wants[0]).toBe(0);
    expect(wants[20]).toBe(2);
    expect(words("screen-told")).toContain("You only look");
    expect([canvas().width, canvas().height]).toEqual([64, 48]);
  });

  test("a server that wants the password gets an answer to its challenge", async () => {
    const { wire } = await open();
    await say(wire(), ...VERSION);
    expect(await say(wire(), 1, VNC)).toEqual([VNC]);
    const challenge = Array.from({ length: 16 }, (_, n) => n * 7);
    const answer = await say(wire(), ...challenge);
    expect(answer).toHaveLength(16);
    expect(answer).not.toEqual(challenge);
    expect(await say(wire(), ...u32(0))).toEqual([1]);
    await say(wire(), ...serverInit());
    expect(words("screen-told")).toContain("You only look");
  });

  test("a password that is not accepted says so, with the server's reason as text", async () => {
    const { wire } = await open();
    await say(wire(), ...VERSION);
    await say(wire(), 1, VNC);
    await say(wire(), ...Array<number>(16).fill(1));
    await say(wire(), ...u32(1), ...u32(6), ...text("<b>\x1bno"));
    await settle();
    expect(words("screen-lost")).toContain("did not accept its password");
    expect(words("screen-lost")).toContain("<b>\\x1bno");
    expect(wire().ended).toBe(true);
  });

  test("looking sends nothing; control sends keys; giving it back lets go of what is held", async () => {
    const { wire, user } = await open();
    await connect(wire());
    wire().sent.length = 0;
    canvas().dispatchEvent(new MouseEvent("mousedown", { bubbles: true, button: 0 }));
    press("a");
    await pass(50);
    expect(wire().sent).toEqual([]);

    await user.click(at("take-control"));
    expect(words("take-control")).toBe("Give control back");
    expect(document.activeElement).toBe(canvas());
    const heard = vi.fn();
    window.addEventListener("keydown", heard);
    wire().sent.length = 0;
    press("a");
    await pass(0);
    // KeyEvent, down, keysym of “a”.
    expect(wire().sent.slice(0, 8)).toEqual([4, 1, 0, 0, 0, 0, 0, 97]);
    wire().sent.length = 0;
    press("Escape", { code: "Escape", ctrlKey: true, shiftKey: true });
    await pass(0);
    window.removeEventListener("keydown", heard);
    expect(heard).not.toHaveBeenCalled();
    expect(words("take-control")).toBe("Take control");
    expect(document.activeElement).toBe(at("take-control"));
    const up = (keysym: number) => [4, 0, 0, 0, ...u32(keysym)].join();
    expect(wire().sent.join()).toContain(up(0xffe3));
    expect(wire().sent.join()).toContain(up(0xffe1));
    // Escape itself stayed here.
    expect(wire().sent.join()).not.toContain(u32(0xff1b).join());
    wire().sent.length = 0;
    press("b");
    await pass(0);
    expect(wire().sent).toEqual([]);
  });

  test("the box's clipboard becomes the person's only by the button, and only in control", async () => {
    const { wire, user } = await open();
    const write = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
    await connect(wire());
    await say(wire(), ...cutText("while looking"));
    expect(maybe("copy-from-box")).toBeNull();
    await user.click(at("take-control"));
    expect((at("copy-from-box") as HTMLButtonElement).disabled).toBe(true);
    await say(wire(), ...cutText("curl evil"));
    expect(write).not.toHaveBeenCalled();
    await user.click(at("copy-from-box"));
    await pass(0);
    expect(write.mock.calls).toEqual([["curl evil"]]);
    expect(words("screen-told")).toContain("9 characters from the box copied.");
  });

  test("the person's clipboard goes to the box only by the button", async () => {
    const { wire, user } = await open();
    const read = vi.spyOn(navigator.clipboard, "readText").mockResolvedValue("hi");
    await connect(wire());
    await user.click(at("take-control"));
    await pass(50);
    expect(read).not.toHaveBeenCalled();
    wire().sent.length = 0;
    await user.click(at("paste-to-box"));
    await pass(0);
    expect(wire().sent.slice(-10)).toEqual([6, 0, 0, 0, ...u32(2), 104, 105]);
    expect(words("screen-told")).toBe("The box has the text of your clipboard now; paste it there.");
    read.mockResolvedValue("é€😀");
    await user.click(at("paste-to-box"));
    await pass(0);
    expect(wire().sent.slice(-11)).toEqual([6, 0, 0, 0, ...u32(3), 0xe9, 0x3f, 0x3f]);
    expect(words("screen-told")).toContain("2 characters are “?” there.");
    read.mockRejectedValue(new Error("no"));
    await user.click(at("paste-to-box"));
    await pass(0);
    expect(document.querySelector("[role=alert]")?.textContent).toContain("The clipboard could not be read.");
  });

  test("a lost connection says why and connects again, looking only", async () => {
    const { host, wire, user } = await open();
    await connect(wire());
    await user.click(at("take-control"));
    wire().fail(error("failed", "the box went away"));
    await settle();
    expect(words("screen-lost")).toContain("the box went away");
    await user.click(at("reconnect-screen"));
    await settle();
    expect(host.wires).toHaveLength(2);
    expect(maybe("screen-lost")).toBeNull();
    await connect(wire());
    expect(words("take-control")).toBe("Take control");
    expect(at("screen").querySelectorAll("canvas")).toHaveLength(1);
  });

  test("a screen larger than any is refused before it takes memory", async () => {
    const { wire } = await open();
    await connect(wire(), 65_535, 65_535);
    await settle();
    expect(words("screen-lost")).toContain("larger than any");
    expect(wire().ended).toBe(true);
  });

  /** What SetEncodings says, as numbers with their sign. */
  function encodings(sent: number[]): number[] {
    const at = 20; // Behind SetPixelFormat.
    expect([sent[0], sent[at]]).toEqual([0, 2]);
    const bytes = new DataView(Uint8Array.from(sent).buffer);
    return Array.from({ length: bytes.getUint16(at + 2) }, (_, n) => bytes.getInt32(at + 4 + 4 * n));
  }

  const TIGHT = 7;
  const TIGHT_PNG = -260;
  const JPEG = 21;
  const H264 = 50;
  const EXTENDED_CLIPBOARD = 0xc0a1e5ce | 0;
  const rectangle = (encoding: number, width: number, height: number, ...data: number[]) => [0, 0, ...u16(1), ...u16(0), ...u16(0), ...u16(width), ...u16(height), ...u32(encoding), ...data];

  test.each(["desk", "Intel(r) AMT KVM"])("asks %s for pixels alone: no images, no films, no compressed clipboard", async (name) => {
    const { wire } = await open();
    await say(wire(), ...VERSION);
    await say(wire(), 1, NONE);
    await say(wire(), ...u32(0));
    const wants = encodings(await say(wire(), ...u16(64), ...u16(48), ...FORMAT, ...u32(name.length), ...text(name)));
    for (const never of [TIGHT, TIGHT_PNG, JPEG, H264, EXTENDED_CLIPBOARD]) expect(wants).not.toContain(never);
    // Quality is of images.
    expect(wants.filter((one) => one >= -32 && one <= -23)).toEqual([]);
    expect(wants).toEqual(expect.arrayContaining(name === "desk" ? [0, 1, 2, 5, 6, 16, -223, -308, -239] : [0, 1, -223, -308]));
  });

  test("pixels are drawn, and more is asked for", async () => {
    const { wire } = await open();
    await connect(wire());
    // FramebufferUpdateRequest.
    expect((await say(wire(), ...rectangle(0, 1, 1, 9, 9, 9, 0)))[0]).toBe(3);
    expect(maybe("screen-lost")).toBeNull();
  });

  test.each([
    ["Tight", TIGHT, [0x90, 3, 1, 2, 3]],
    ["TightPNG", TIGHT_PNG, [0xa0, 3, 1, 2, 3]],
    ["JPEG", JPEG, [0xff, 0xd8, 0xff, 0xd9]],
    ["H.264", H264, [...u32(1), ...u32(0), 0]],
    ["a number nobody knows", 0x7777, [0]],
  ])("%s, which nobody asked for, ends it", async (_, encoding, data) => {
    const { wire } = await open();
    await connect(wire());
    await say(wire(), ...rectangle(encoding, 1, 1, ...data));
    await settle();
    expect(words("screen-lost")).toContain("in a way AgentBox does not read");
    expect(wire().ended).toBe(true);
  });

  test("an extended clipboard is passed over unread, in whatever pieces it comes", async () => {
    const { wire, user } = await open();
    await connect(wire());
    await user.click(at("take-control"));
    // Provide of a text, with bytes that no inflater takes; and Caps, which would be answered.
    const provide = [3, 0, 0, 0, ...u32(-9), ...u32(0x10000001), 1, 2, 3, 4, 5];
    const caps = [3, 0, 0, 0, ...u32(-8), ...u32(0x1f000001), ...u32(1000)];
    expect(await say(wire(), ...caps, ...provide)).toEqual([]);
    for (const byte of provide) await say(wire(), byte);
    expect(maybe("screen-lost")).toBeNull();
    expect((at("copy-from-box") as HTMLButtonElement).disabled).toBe(true);
    // What comes behind is read as ever, and a text goes to the box in the plain way.
    await say(wire(), ...cutText("plain"));
    expect((at("copy-from-box") as HTMLButtonElement).disabled).toBe(false);
    vi.spyOn(navigator.clipboard, "readText").mockResolvedValue("hi");
    wire().sent.length = 0;
    await user.click(at("paste-to-box"));
    await pass(0);
    expect(wire().sent.slice(-10)).toEqual([6, 0, 0, 0, ...u32(2), 104, 105]);
  });

  test("words that are no RFB end it", async () => {
    const { wire } = await open();
    await say(wire(), ...text("HTTP/1.1 200 OK\r\n"));
    await settle();
    expect(maybe("screen-lost")).not.toBeNull();
  });

  test("a server that says nothing more is given up", async () => {
    const { wire } = await open();
    await say(wire(), ...VERSION);
    await pass(21_000);
    await settle();
    expect(words("screen-lost")).toContain("did not answer in time");
    expect(wire().ended).toBe(true);
  });

  test("a host that never says the password is given up, and a late word changes nothing", async () => {
    const host = new ByteHost();
    let tell = (_: string) => {};
    vi.spyOn(host, "screenPassword").mockReturnValue(new Promise((resolve) => (tell = resolve)));
    await open({}, host);
    await pass(21_000);
    expect(words("screen-lost")).toContain("did not answer in time");
    tell("late");
    await settle();
    expect(host.wires).toEqual([]);
  });

  test("without a password there is no connection", async () => {
    const host = new ByteHost();
    vi.spyOn(host, "screenPassword").mockRejectedValue(error("failed", "The screen has no password."));
    await open({}, host);
    expect(words("screen-lost")).toContain("The screen has no password.");
    expect(host.wires).toEqual([]);
  });

  test("leaving the page ends it", async () => {
    const { view, wire } = await open();
    await connect(wire());
    view.unmount();
    await pass(0);
    expect(wire().ended).toBe(true);
    expect(document.querySelector("canvas")).toBeNull();
  });

  test("a box without a screen says so, and one that does not run offers its start", async () => {
    const { host, view, app } = await open({ screen: null });
    expect(words("no-screen")).toContain("fix-login has no screen.");
    await view.rerender({ app, box: box({ screen: "http://b1.localhost/screen", state: "stopped" }) });
    expect(maybe("wake-fix-login")).not.toBeNull();
    expect(host.wires).toEqual([]);
  });

  test("it opens in the browser, and fills the window where there is no full screen", async () => {
    const { host, wire, user } = await open();
    await connect(wire());
    await user.click(at("screen-outside"));
    await pass(0);
    expect(host.opened).toEqual([["b00000001", "screen"]]);
    await user.click(at("full-window"));
    await pass(0);
    expect(words("full-window")).toBe("Leave full window");
    expect(document.querySelector(".whole")).not.toBeNull();
    await user.click(at("full-window"));
    await pass(0);
    expect(document.querySelector(".whole")).toBeNull();
  });

  test("axe finds nothing", async () => {
    const { wire, user } = await open();
    await connect(wire());
    await user.click(at("take-control"));
    vi.useRealTimers();
    const found = await axe.run(document.body, { rules: { region: { enabled: false }, "color-contrast": { enabled: false } } });
    expect(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join()}`)).toEqual([]);
  });
});
