// The credentials: what is said of them, and that a value goes out once and is nowhere afterwards.
import { expect, test } from "vitest";
import type { SecretView } from "../src/lib/bindings/SecretView";
import { error } from "./fake";
import { credential } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const ID = "tracker.token";
const VALUE = "hunter2-hunter2";

async function open(credentials: SecretView[] = [credential()]) {
  const window = await openWindow();
  const held = { all: credentials };
  window.host.on("secrets", () => held.all);
  await window.user.click(at("nav-credentials"));
  await pass(0);
  return { ...window, held };
}

const field = () => at(`value-${ID}`) as HTMLInputElement;
const missing = (over: Partial<SecretView> = {}) => credential({ stored: false, setAt: null, lastUsed: null, ...over });

test("a card says what it is for, where it is kept and when it was used", async () => {
  await open();
  const text = words(`credential-${ID}`);
  for (const part of ["● stored", "An API key", "Used by Tracker", "the keychain, stored 1 day ago", "Last used 5 min ago"]) {
    expect(text).toContain(part);
  }
  expect(document.querySelector(`[data-testid="credential-${ID}"] time`)?.getAttribute("title")).toContain("2031");
});

test("one in a file, never used", async () => {
  await open([credential({ keptIn: "file", lastUsed: null })]);
  expect(words(`credential-${ID}`)).toContain("a file only you can read");
  expect(words(`credential-${ID}`)).toContain("Last used never");
});

test("one that is not stored can be added, not tested or removed", async () => {
  await open([missing()]);
  expect(words(`credential-${ID}`)).toContain("○ not stored");
  expect(words(`set-${ID}`)).toBe("Add…");
  expect(maybe(`test-${ID}`)).toBeNull();
  expect(maybe(`remove-${ID}`)).toBeNull();
});

test("one that nothing uses can be removed, not replaced", async () => {
  await open([credential({ usedBy: [], about: "" })]);
  expect(words(`credential-${ID}`)).toContain("Nothing here uses it.");
  expect(maybe(`set-${ID}`)).toBeNull();
  expect(maybe(`remove-${ID}`)).not.toBeNull();
});

test("the value is asked for in a password field, sent once, and gone", async () => {
  const { host, user, held, app } = await open([missing()]);
  host.on("setSecret", () => {
    held.all = [credential()];
    return null;
  });
  await user.click(at(`set-${ID}`));
  expect(field().type).toBe("password");
  expect(field().autocomplete).toBe("new-password");
  expect(document.activeElement).toBe(field());
  const input = field();
  await user.keyboard(VALUE);
  await user.click(at(`store-${ID}`));
  expect(input.value).toBe("");
  await pass(0);
  expect(host.called("setSecret").map((call) => call.params)).toEqual([{ id: ID, value: VALUE }]);
  expect(maybe(`value-${ID}`)).toBeNull();
  expect(words(`said-${ID}`)).toBe("Stored.");
  expect(words(`credential-${ID}`)).toContain("● stored");
  expect(document.activeElement).toBe(at(`set-${ID}`));
  expect(document.documentElement.outerHTML).not.toContain(VALUE);
  expect(JSON.stringify(app)).not.toContain(VALUE);
});

test("Enter sends it, too", async () => {
  const { host, user } = await open();
  await user.click(at(`set-${ID}`));
  await user.keyboard(`${VALUE}{Enter}`);
  await pass(0);
  expect(host.called("setSecret")).toHaveLength(1);
});

test("a click on Store takes no focus, else the field would be empty by then", async () => {
  const { user } = await open();
  await user.click(at(`set-${ID}`));
  await user.keyboard(VALUE);
  await user.pointer({ keys: "[MouseLeft>]", target: at(`store-${ID}`) });
  expect(document.activeElement).toBe(field());
  expect(field().value).toBe(VALUE);
});

test("the field is empty after the focus leaves the form, and not before", async () => {
  const { user } = await open([credential(), credential({ id: "other.key" })]);
  await user.click(at(`set-${ID}`));
  await user.keyboard(VALUE);
  at(`store-${ID}`).focus();
  expect(field().value).toBe(VALUE);
  at("test-other.key").focus();
  expect(field().value).toBe("");
});

test("the field is empty after the window lost the focus", async () => {
  const { user } = await open();
  await user.click(at(`set-${ID}`));
  await user.keyboard(VALUE);
  field().dispatchEvent(new FocusEvent("focusout", { bubbles: true, relatedTarget: null }));
  expect(field().value).toBe("");
});

test("Escape and Cancel close the form, and the value does not come back", async () => {
  const { host, user } = await open();
  for (const leave of [() => user.keyboard("{Escape}"), () => user.click(at(`form-cancel-${ID}`))]) {
    await user.click(at(`set-${ID}`));
    const input = field();
    await user.keyboard(VALUE);
    await leave();
    await pass(0);
    expect(maybe(`form-${ID}`)).toBeNull();
    expect(input.value).toBe("");
    expect(document.activeElement).toBe(at(`set-${ID}`));
  }
  await user.click(at(`set-${ID}`));
  expect(field().value).toBe("");
  expect(host.called("setSecret")).toEqual([]);
});

test("nothing and too much are not sent", async () => {
  const { host, user } = await open();
  await user.click(at(`set-${ID}`));
  await user.click(at(`store-${ID}`));
  await pass(0);
  expect(words(`form-${ID}`)).toContain("No value was given");
  field().value = "ü".repeat(32 * 1024 + 1);
  await user.click(at(`store-${ID}`));
  await pass(0);
  expect(words(`form-${ID}`)).toContain("longer than 64 KiB");
  expect(field().value).toBe("");
  expect(host.called("setSecret")).toEqual([]);
});

test("a value that could not be stored has to be typed again", async () => {
  const { host, user } = await open();
  host.on("setSecret", () => {
    throw error("failed", "The keychain is locked.", "Unlock it.");
  });
  await user.click(at(`set-${ID}`));
  await user.keyboard(`${VALUE}{Enter}`);
  await pass(0);
  expect(words(`form-${ID}`)).toContain("The keychain is locked. Unlock it.");
  expect(field().value).toBe("");
});

test("a test says whether it works", async () => {
  const { host, user } = await open();
  host.on("testSecret", () => ({ level: "fail", detail: "not stored", hint: "store it" }));
  await user.click(at(`test-${ID}`));
  await pass(0);
  expect(host.called("testSecret")[0]?.params).toEqual({ id: ID });
  expect(words(`tested-${ID}`)).toBe("✕ Does not work: not stored What to do: store it");
});

test("removing asks first, with Cancel as the default", async () => {
  const { host, user, held } = await open();
  host.on("removeSecret", () => {
    held.all = [missing()];
    return true;
  });
  await user.click(at(`remove-${ID}`));
  expect(words(`confirm-${ID}`)).toContain("Remove tracker.token?");
  expect(words(`confirm-${ID}`)).toContain("Tracker may stop working");
  expect(document.activeElement).toBe(at(`confirm-no-${ID}`));
  await user.keyboard("{Escape}");
  await pass(0);
  expect(document.activeElement).toBe(at(`remove-${ID}`));
  expect(host.called("removeSecret")).toEqual([]);

  await user.click(at(`remove-${ID}`));
  await user.click(at(`confirm-yes-${ID}`));
  await pass(0);
  expect(host.called("removeSecret").map((call) => call.params)).toEqual([{ id: ID }]);
  expect(words(`credential-${ID}`)).toContain("○ not stored");
  expect(words(`said-${ID}`)).toBe("Removed.");
});

test("a removal that failed says why and can be left", async () => {
  const { host, user } = await open();
  host.on("removeSecret", () => {
    throw error("failed", "The keychain is locked.");
  });
  await user.click(at(`remove-${ID}`));
  await user.click(at(`confirm-yes-${ID}`));
  await pass(0);
  expect(words(`confirm-${ID}`)).toContain("The keychain is locked.");
  await user.click(at(`confirm-no-${ID}`));
  expect(maybe(`confirm-${ID}`)).toBeNull();
});

test("the page speaks of credentials only", async () => {
  const { user } = await open([credential({ about: "" }), missing({ id: "other.key", about: "" })]);
  await user.click(at(`set-${ID}`));
  const text = (document.querySelector("main")?.textContent ?? "").replaceAll(ID, "");
  expect(text).not.toMatch(/secret|token|password/i);
  expect(text).toContain("1 credential stored");
});
