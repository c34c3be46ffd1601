// The inbox as a list: order, position, keys, and what happens to the focus.
import { expect, test } from "vitest";
import { evidence, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const three = () => [
  question({ id: "new", digest: "n", createdAt: Date.now() - 1000, title: "Third" }),
  question({ id: "old", digest: "o", createdAt: Date.now() - 9000, title: "First" }),
  question({ id: "mid", digest: "m", createdAt: Date.now() - 5000, title: "Second" }),
];

const page = () => document.querySelector("main")?.textContent?.replace(/\s+/g, " ") ?? "";

test("an empty inbox is one friendly sentence", async () => {
  await openWindow();
  expect(page()).toContain("All quiet: when an agent needs something from outside its box, it asks here.");
});

test("the oldest question comes first and has the keys", async () => {
  await openWindow({ questions: three() });
  const order = [...document.querySelectorAll("h2")].map((title) => title.textContent);
  expect(order).toEqual(["First", "Second", "Third"]);
  expect(page()).toContain("1 of 3");
  expect(document.activeElement).toBe(at("deny-old"));
});

test("j and k move, and stop at the ends", async () => {
  const { user } = await openWindow({ questions: three() });
  await user.keyboard("k");
  expect(document.activeElement).toBe(at("deny-old"));
  await user.keyboard("jj");
  expect(document.activeElement).toBe(at("deny-new"));
  expect(page()).toContain("3 of 3");
  await user.keyboard("jk");
  expect(document.activeElement).toBe(at("deny-mid"));
  expect(at("question-mid").getAttribute("aria-current")).toBe("true");
});

test("a and d answer the question that has the keys", async () => {
  const { host, user } = await openWindow({ questions: three() });
  await user.keyboard("j");
  await pass(350);
  await user.keyboard("a");
  await user.keyboard("j");
  await user.keyboard("d");
  expect(host.called("answer").map(({ params }) => [params.id, params.verdict.kind])).toEqual([
    ["mid", "allowOnce"],
    ["new", "deny"],
  ]);
});

test("moving to a question starts its pause: a second a does not allow the next one", async () => {
  const { host, user, say } = await openWindow({ questions: three() });
  await pass(350);
  await user.keyboard("a");
  await say({ type: "resolved", id: "old", boxName: "fix-login", outcome: { kind: "allowed", by: "window" } });
  await user.keyboard("a");
  expect(host.called("answer")).toHaveLength(1);
  expect(document.activeElement).toBe(at("deny-mid"));
});

test("a question answered elsewhere is read first: a key meant for it hits no other", async () => {
  const { host, user, say } = await openWindow({ questions: three() });
  await pass(350);
  await user.keyboard("j");
  await say({ type: "resolved", id: "mid", boxName: "fix-login", outcome: { kind: "denied", by: "tray" } });
  await user.keyboard("d{Enter}{Escape}");
  await pass(350);
  await user.keyboard("a");
  expect(host.called("answer")).toEqual([]);
  expect(page()).toContain("2 open");
  await pass(2000);
  expect(document.activeElement).toBe(at("deny-new"));
  expect(page()).toContain("2 of 2");
});

test("j goes on without waiting", async () => {
  const { user, say } = await openWindow({ questions: three() });
  await say({ type: "resolved", id: "old", boxName: "fix-login", outcome: { kind: "expired" } });
  await user.keyboard("j");
  expect(document.activeElement).toBe(at("deny-mid"));
});

test("Escape denies the focused question, and only that", async () => {
  const { host, user } = await openWindow({ questions: three() });
  at("allow-mid").focus();
  await user.keyboard("{Escape}");
  expect(host.called("answer").map(({ params }) => [params.id, params.verdict.kind])).toEqual([["mid", "deny"]]);
});

test("Escape in the rail denies nothing", async () => {
  const { host, user } = await openWindow({ questions: three() });
  at("nav-boxes").focus();
  await user.keyboard("{Escape}");
  expect(host.called("answer")).toEqual([]);
});

test("keys with a modifier belong to the system", async () => {
  const { host, user } = await openWindow({ questions: three() });
  await pass(350);
  await user.keyboard("{Control>}a{/Control}{Alt>}d{/Alt}{Meta>}a{/Meta}");
  expect(host.called("answer")).toEqual([]);
});

test("a new question does not take the keys from the one being read", async () => {
  const { say } = await openWindow({ questions: [question()] });
  at("allow-q1").focus();
  await say({ type: "asked", question: question({ id: "q2", digest: "d2", createdAt: Date.now() }) });
  expect(document.activeElement).toBe(at("allow-q1"));
  expect(page()).toContain("1 of 2");
});

test("a pressed Allow in another card is heard at the first click", async () => {
  const { host, user } = await openWindow({ questions: three() });
  await pass(350);
  await user.click(at("allow-new"));
  expect(host.called("answer").map(({ params }) => params.id)).toEqual(["new"]);
});

test("the last question ended: nothing has the keys", async () => {
  const { host, user, say } = await openWindow({ questions: [question()] });
  await say({ type: "resolved", id: "q1", boxName: "fix-login", outcome: { kind: "withdrawn" } });
  await pass(2000);
  await user.keyboard("ad{Escape}");
  expect(host.called("answer")).toEqual([]);
  expect(maybe("question-q1")).toBeNull();
});

test("the same question asked again is one card", async () => {
  const { say } = await openWindow({ questions: [question()] });
  await say({ type: "asked", question: question({ evidence: evidence({ summary: "6 files" }) }) });
  expect(document.querySelectorAll("article")).toHaveLength(1);
  expect(words("question-q1")).toContain("6 files");
});
