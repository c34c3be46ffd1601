// What the Tauri backend puts on the wire.
import { emit } from "@tauri-apps/api/event";
import { clearMocks, mockIPC } from "@tauri-apps/api/mocks";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tauriBackend } from "../src/lib/backend";
import { error } from "./fake";

// The library warns when an event finds its listener gone, which is what two tests are about.
beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue());
afterEach(() => clearMocks());

test("calls carry the request and reject with the host's error", async () => {
  const seen: unknown[] = [];
  mockIPC((command, args) => {
    seen.push([command, args]);
    if (command === "call") throw error("engine", "no engine answers");
    return "box/b00000001";
  });
  const backend = tauriBackend();
  await expect(backend.call({ method: "boxes" })).rejects.toEqual(error("engine", "no engine answers"));
  expect(await backend.initialPage()).toBe("box/b00000001");
  expect(seen).toEqual([
    ["call", { request: { method: "boxes" } }],
    ["initial_page", {}],
  ]);
});

test("listens before it subscribes, and no longer after it left", async () => {
  const order: string[] = [];
  mockIPC((command) => void order.push(command), { shouldMockEvents: true });
  const onEvent = vi.fn();
  const onDown = vi.fn();
  const leave = await tauriBackend().subscribe(onEvent, onDown);
  expect(order).toEqual(["subscribe"]);
  await emit("host-event", { type: "boxRemoved", id: "b00000001" });
  await emit("host-down", { why: "gone" });
  expect(onEvent).toHaveBeenCalledWith({ type: "boxRemoved", id: "b00000001" });
  expect(onDown).toHaveBeenCalledWith("gone");
  leave();
  await emit("host-down", { why: "again" });
  expect(onDown).toHaveBeenCalledTimes(1);
});

test("a failed subscription leaves no listener behind", async () => {
  mockIPC(
    (command) => {
      if (command === "subscribe") throw error("failed", "no host");
    },
    { shouldMockEvents: true },
  );
  const onDown = vi.fn();
  await expect(tauriBackend().subscribe(vi.fn(), onDown)).rejects.toEqual(error("failed", "no host"));
  await emit("host-down", { why: "late" });
  expect(onDown).not.toHaveBeenCalled();
});

test("a long call hears what happens on its way, and can be ended", async () => {
  const seen: [string, unknown][] = [];
  let finish = (_: unknown) => {};
  let tell = (_: unknown) => {};
  mockIPC((command, args) => {
    seen.push([command, args]);
    if (command !== "begin") return undefined;
    const channel = (args as { onEvent: { onmessage: (event: unknown) => void } }).onEvent;
    tell = (event) => channel.onmessage(event);
    return new Promise((resolve) => (finish = resolve));
  });
  const heard = vi.fn();
  const request = { method: "followUsage", params: { target: null, everyMs: 1000 } } as const;
  const backend = tauriBackend();
  const call = backend.begin<string>(request, heard);
  tell({ type: "boxRemoved", id: "b00000001" });
  expect(heard).toHaveBeenCalledWith({ type: "boxRemoved", id: "b00000001" });
  call.end();
  const number = (seen[0]?.[1] as { number: number }).number;
  expect(seen[1]).toEqual(["hang_up", { number }]);
  finish("reply");
  expect(await call.done).toBe("reply");
  await backend.chooseFolder("/home/ada");
  await backend.openPlace("b00000001", "screen");
  await backend.copyDropped("b00000001", "/workspace", ["plan.pdf"]);
  expect(seen.slice(2)).toEqual([
    ["choose_folder", { start: "/home/ada" }],
    ["open_place", { id: "b00000001", place: "screen" }],
    ["copy_dropped", { id: "b00000001", to: "/workspace", names: ["plan.pdf"] }],
  ]);
});
