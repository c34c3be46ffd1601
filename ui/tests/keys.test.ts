// Which key means what, and where it means nothing.
import { expect, test } from "vitest";
import { Keys } from "../src/lib/keys";

function press(keys: Keys, key: string, on: Element = document.body, more: KeyboardEventInit = {}) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  Object.defineProperty(event, "target", { value: on });
  return keys.read(event);
}

function element(html: string): Element {
  document.body.innerHTML = html;
  return document.body.firstElementChild as Element;
}

test("plain keys", () => {
  const keys = new Keys();
  expect(["j", "k", "a", "d", "w", "/", "Escape", "1", "8"].map((key) => press(keys, key))).toEqual([
    "down",
    "up",
    "allow",
    "deny",
    "without",
    "search",
    "escape",
    "1",
    "8",
  ]);
  for (const key of ["9", "0", "x", "Enter"]) expect(press(keys, key), key).toBeNull();
});

test("Enter opens a card, and nothing else that has its own use for it", () => {
  const keys = new Keys();
  expect(press(keys, "Enter", element(`<article data-card tabindex="-1"></article>`))).toBe("open");
  for (const html of ["<button>x</button>", "<summary data-card>x</summary>", "<input>", "<a href='#x'>x</a>"]) {
    expect(press(keys, "Enter", element(html)), html).toBeNull();
  }
});

test("fields keep digits, modifiers leave them to the system, and a held one counts once", () => {
  const keys = new Keys();
  for (const html of ["<input>", "<textarea></textarea>", "<select></select>"]) expect(press(keys, "3", element(html)), html).toBeNull();
  expect(press(keys, "3", document.body, { ctrlKey: true })).toBeNull();
  expect(press(keys, "3", document.body, { repeat: true })).toBeNull();
});

test("g and a digit is no page", () => {
  const keys = new Keys();
  press(keys, "g");
  expect(press(keys, "3")).toBeNull();
});
