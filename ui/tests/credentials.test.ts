// The credentials: what is said of them, and that a value goes out once and is nowhere afterwards.
import { expect, test } from "vitest";
import type { SecretView } from "../src/lib/bindings/SecretView";
import { error } from "./fake";
import { box, credential } from "./samples";
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

test("one that no service uses can be replaced and removed", async () => {
  await open([credential({ usedBy: [], about: "" })]);
  expect(words(`credential-${ID}`)).toContain("No service; a policy may name it.");
  expect(words(`set-${ID}`)).toBe("Replace…");
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
  expect(host.called("setSecret").map((call) => call.params)).toEqual([{ id: ID, value: VALUE, scope: { of: "everybody" }, hosts: null }]);
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
  expect(host.called("testSecret")[0]?.params).toEqual({ id: ID, scope: { of: "everybody" } });
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
  expect(host.called("removeSecret").map((call) => call.params)).toEqual([{ id: ID, scope: { of: "everybody" } }]);
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

test("a card says which hosts it is bound to, and whose it is", async () => {
  await open([
    credential({ hosts: ["github.com", "*.evil\u202e.example"] }),
    credential({ id: "acme.key", scope: { of: "project", root: "/home/ada/shop-api" } }),
    credential({ id: "acme.key", scope: { of: "box", id: "b00000001" } }),
  ]);
  expect(words(`bound-${ID}`)).toBe("github.com, *.evil⟨U+202E⟩.example");
  expect(maybe(`scope-${ID}`)).toBeNull();
  expect(words("bound-acme.key@/home/ada/shop-api")).toContain("no hosts");
  expect(words("scope-acme.key@/home/ada/shop-api")).toBe("boxes of /home/ada/shop-api");
  expect(words("scope-acme.key@b00000001")).toBe("the box b00000001");
});

test("one of a box is tested, replaced and removed as that box's", async () => {
  const scope = { of: "box" as const, id: "b00000001" };
  const { host, user } = await open([credential({ id: "acme.key", scope, hosts: ["a.example"] })]);
  const of = "acme.key@b00000001";
  await user.click(at(`test-${of}`));
  await user.click(at(`set-${of}`));
  expect((at(`hosts-${of}`) as HTMLInputElement).value).toBe("a.example");
  at(`value-${of}`).focus();
  await user.keyboard(`${VALUE}{Enter}`);
  await pass(0);
  await user.click(at(`remove-${of}`));
  await user.click(at(`confirm-yes-${of}`));
  await pass(0);
  expect(host.called("testSecret")[0]?.params).toEqual({ id: "acme.key", scope });
  expect(host.called("setSecret")[0]?.params).toEqual({ id: "acme.key", value: VALUE, scope, hosts: null });
  expect(host.called("removeSecret")[0]?.params).toEqual({ id: "acme.key", scope });
});

test("its hosts are changed with its value, and freed by an empty field", async () => {
  const { host, user } = await open([credential({ hosts: ["a.example"] })]);
  const hosts = () => at(`hosts-${ID}`) as HTMLInputElement;
  for (const [typed, sent] of [
    ["B.example;  *.c.example b.example", ["b.example", "*.c.example"]],
    ["", []],
  ] as const) {
    await user.click(at(`set-${ID}`));
    await user.clear(hosts());
    if (typed) await user.type(hosts(), typed);
    at(`value-${ID}`).focus();
    await user.keyboard(`${VALUE}{Enter}`);
    await pass(0);
    expect(host.called("setSecret").at(-1)?.params.hosts).toEqual(sent);
  }
});

test("what is no host is said, and nothing is sent", async () => {
  const { host, user } = await open();
  await user.click(at(`set-${ID}`));
  for (const bad of ["https://a.example", "a..b", "*.", "a_b", "-a.example"]) {
    await user.clear(at(`hosts-${ID}`));
    await user.type(at(`hosts-${ID}`), bad);
    at(`value-${ID}`).focus();
    await user.keyboard(`${VALUE}{Enter}`);
    await pass(0);
    expect(words(`form-${ID}`)).toContain("is no host such as api.example.com");
    expect(field().value).toBe("");
  }
  expect(host.called("setSecret")).toEqual([]);
});

test("one of any name can be added, for a box, bound to hosts", async () => {
  const { host, user, say, snapshot } = await open([credential()]);
  await say({ ...snapshot, boxes: [box()] } as typeof snapshot);
  await user.click(at("add-credential"));
  expect(document.activeElement).toBe(at("new-credential-id"));
  const input = at("value-new") as HTMLInputElement;
  for (const bad of ["acme", "Acme.key", "acme..key", `a.${"b".repeat(70)}`]) {
    await user.clear(at("new-credential-id"));
    await user.type(at("new-credential-id"), bad);
    input.focus();
    await user.keyboard(`${VALUE}{Enter}`);
    await pass(0);
    expect(words("form-new")).toContain("such as acme.api-key");
  }
  await user.clear(at("new-credential-id"));
  await user.type(at("new-credential-id"), ID);
  input.focus();
  await user.keyboard(`${VALUE}{Enter}`);
  await pass(0);
  expect(words("form-new")).toContain("is stored already");
  expect(host.called("setSecret")).toEqual([]);

  await user.clear(at("new-credential-id"));
  await user.type(at("new-credential-id"), "acme.api-key");
  await user.selectOptions(at("new-credential-scope"), "box:b00000001");
  await user.type(at("hosts-new"), "api.acme.example");
  input.focus();
  await user.keyboard(VALUE);
  await user.click(at("store-new"));
  expect(input.value).toBe("");
  await pass(0);
  expect(host.called("setSecret").map((call) => call.params)).toEqual([
    { id: "acme.api-key", value: VALUE, scope: { of: "box", id: "b00000001" }, hosts: ["api.acme.example"] },
  ]);
  expect(words("credentials-said")).toBe("acme.api-key is stored.");
  expect(document.activeElement).toBe(at("add-credential"));
  expect(document.documentElement.outerHTML).not.toContain(VALUE);
});

test("Escape leaves a new credential, whichever field has the focus", async () => {
  const { host, user } = await open();
  await user.click(at("add-credential"));
  await user.keyboard("x{Escape}");
  await pass(0);
  expect(maybe("form-new")).toBeNull();
  expect(document.activeElement).toBe(at("add-credential"));
  expect(host.called("setSecret")).toEqual([]);
});

/** What the host says of each credential, out of its own sources. */
const SOURCES = import.meta.glob<string>("../../crates/connectors/src/*.rs", { query: "?raw", import: "default", eager: true });
const ABOUTS = Object.values(SOURCES).flatMap((text) =>
  [...text.matchAll(/id: "([a-z.-]+)",\s+env: "[A-Z_]*",\s+about: "([^"]+)"/g)].map(([, id = "", about = ""]) => ({ id, about })),
);

test("the page speaks of credentials only; names of the provider's page are in quotes", async () => {
  expect(ABOUTS.map(({ id }) => id).sort()).toEqual([
    "clickup.token",
    "github.enterprise-token",
    "github.token",
    "linear.token",
    "notion.token",
    "trello.key",
    "trello.token",
  ]);
  const { user } = await open([credential(), ...ABOUTS.map((one) => missing(one))]);
  await user.click(at(`set-${ID}`));
  let text = document.querySelector("main")?.textContent ?? "";
  for (const { id, about } of ABOUTS) {
    expect(text).toContain(about);
    text = text.replaceAll(id, "");
  }
  text = text.replaceAll(ID, "").replaceAll(/“[^”]*”/g, "");
  expect(text).not.toMatch(/secret|token|password/i);
  expect(text).toContain("1 credential stored");
});
