// The inbox as a list: order, position, keys, and what happens to the focus.
import { cleanup } from "@testing-library/svelte";
import { describe, expect, test, vi } from "vitest";
import { DRAWN, Span } from "../src/lib/span";
import { error } from "./fake";
import { evidence, question, status } from "./samples";
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

test("one question alone has no place among others", async () => {
  await openWindow({ questions: three().slice(0, 1) });
  expect(document.querySelector(".position")).toBeNull();
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

describe("quiet", () => {
  test("for one hour is a click, and ends with one", async () => {
    const { host, user } = await openWindow();
    host.on("quiet", ({ params }) => status({ quietUntil: params.seconds === null ? null : Date.now() + params.seconds * 1000 }));
    await user.click(at("quiet-hour"));
    await pass(0);
    expect(host.called("quiet").map((call) => call.params)).toEqual([{ seconds: 3600 }]);
    expect(words("quiet")).toContain("Quiet until");
    expect(maybe("quiet-hour")).toBeNull();
    await user.click(at("quiet-off"));
    await pass(0);
    expect(host.called("quiet").at(-1)?.params).toEqual({ seconds: null });
    expect(maybe("quiet-hour")).not.toBeNull();
  });

  test("that failed says why", async () => {
    const { host, user } = await openWindow();
    host.on("quiet", () => {
      throw error("failed", "The host is busy.");
    });
    await user.click(at("quiet-hour"));
    await pass(0);
    expect(words("quiet-problem")).toContain("The host is busy.");
  });
});

describe("very many questions", () => {
  const many = (n: number) =>
    Array.from({ length: n }, (_, at) => question({ id: `m${at}`, digest: `d${at}`, title: `Thing ${at}`, createdAt: Date.now() - 1_000_000 + at }));
  const drawn = () => [...document.querySelectorAll<HTMLElement>("article")].map((card) => card.dataset["testid"]?.slice(9));

  test("draw those around the current one alone, and say how many more there are", async () => {
    const { user } = await openWindow({ questions: many(1000) });
    expect(drawn()).toHaveLength(DRAWN);
    expect(page()).toContain("1 of 1000");
    expect(maybe("show-earlier")).toBeNull();
    expect(words("show-later")).toBe("970 later questions");
    await user.click(at("show-later"));
    await pass(0);
    expect(page()).toContain("31 of 1000");
    expect(document.activeElement).toBe(at("deny-m30"));
    expect(words("show-earlier")).toBe("10 earlier questions");
    await user.click(at("show-earlier"));
    await pass(0);
    expect(document.activeElement).toBe(at("deny-m9"));
  }, 30_000);

  test("are walked with j as far as one likes, and each is answered as itself", async () => {
    const { host, user } = await openWindow({ questions: many(100) });
    await user.keyboard("j".repeat(45));
    expect(document.activeElement).toBe(at("deny-m45"));
    expect(drawn()).toHaveLength(DRAWN);
    await pass(350);
    await user.keyboard("a");
    expect(host.called("answer").map(({ params }) => params.id)).toEqual(["m45"]);
  });

  test("do not move while one reaches for another card", async () => {
    const { host, user } = await openWindow({ questions: many(100) });
    await pass(350);
    const before = drawn();
    await user.click(at("allow-m20"));
    expect(drawn()).toEqual(before);
    expect(host.called("answer").map(({ params }) => params.id)).toEqual(["m20"]);
  });

  test("cost a key no more than few: it looks at the drawn ones alone", async () => {
    let looks = 0;
    const watched = (n: number) =>
      many(n).map((one) => new Proxy(one, { get: (of, name) => ((looks += 1), Reflect.get(of, name)) }));
    const looksOfKeys = async (n: number) => {
      const { user } = await openWindow({ questions: watched(n) });
      looks = 0;
      await user.keyboard("jjj");
      expect(page()).toContain(`4 of ${n}`);
      cleanup();
      return looks;
    };
    expect(await looksOfKeys(1000)).toBe(await looksOfKeys(50));
    expect(looks).toBeLessThan(1000);
  }, 30_000);

  test("a step beyond the drawn ones draws a few anew and keeps the others", async () => {
    const { user } = await openWindow({ questions: many(100) });
    await user.keyboard("j".repeat(DRAWN - 1));
    const before = new Set(document.querySelectorAll("article"));
    await user.keyboard("j");
    const after = [...document.querySelectorAll("article")];
    expect(after.filter((card) => before.has(card))).toHaveLength(DRAWN - 10);
    expect(drawn().at(-1)).toBe("m39");
  });

  test("a span stays while the current one is in it, whatever goes before it", () => {
    const ids = many(100).map((one) => one.id);
    const span = new Span();
    expect(span.around(ids, "m0")).toBe(0);
    expect(span.around(ids, "m29")).toBe(0);
    expect(span.around(ids, "m50")).toBe(30);
    expect(span.around(ids.slice(5), "m50")).toBe(25);
    expect(span.around(ids.slice(5), null)).toBe(25);
    expect(span.around(ids.slice(5), "m29")).toBe(15);
    expect(span.around(ids.slice(5, 10), null)).toBe(0);
  });
});

test("whoever is led to a question has it in view, also the second time", async () => {
  const { say } = await openWindow({ questions: three() });
  const seen: string[] = [];
  vi.spyOn(HTMLElement.prototype, "scrollIntoView").mockImplementation(function (this: HTMLElement) {
    seen.push(this.dataset["testid"] ?? "");
  });
  await say({ type: "showWindow", page: "inbox/mid" });
  await pass(0);
  expect(document.activeElement).toBe(at("deny-mid"));
  expect(seen).toContain("question-mid");
  seen.length = 0;
  await say({ type: "showWindow", page: "inbox/mid" });
  await pass(0);
  expect(new Set(seen)).toEqual(new Set(["question-mid"]));
});

test("Enter goes to the question when nothing else has it", async () => {
  const { user, host } = await openWindow({ questions: three() });
  (document.activeElement as HTMLElement).blur();
  await user.keyboard("{Enter}");
  expect(document.activeElement).toBe(at("deny-old"));
  expect(host.called("answer")).toEqual([]);
});
