// Remember…: a rule is made in place, in small steps, and says what it is.
import { describe, expect, test } from "vitest";
import { ALWAYS, narrowest, seconds, sentence, untilWords, verdict } from "../src/lib/remember";
import { size } from "../src/lib/size";
import { box, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const GRACE = 350;
const rule = () => at("rule-q1").textContent ?? "";
/** Ten in the morning, whatever the zone. */
const TEN = new Date(2031, 2, 5, 10, 0, 0).getTime();

describe("the rule in words", () => {
  test("who, what and until", () => {
    const q = question();
    const of = (over: object) => sentence(q, { ...narrowest(), ...over }, TEN);
    const branch = "push to fix-login of git.example/acme/shop-api";
    expect(of({})).toBe(`Let fix-login ${branch} until 11:00.`);
    expect(of({ reach: "project" })).toBe(`Let every box of shop-api ${branch} until 11:00.`);
    expect(of({ reach: "everywhere", breadth: "kind" })).toBe(
      "Let every box push to any branch of git.example/acme/shop-api until 11:00.",
    );
    expect(of({ until: "today" })).toBe(`Let fix-login ${branch} until tomorrow 00:00.`);
    expect(of({ until: "month" })).toMatch(/until .*2031, 1[01]:00\.$/);
    expect(of({ until: "always" })).toBe(`Let fix-login ${branch} until you remove it.`);
  });

  test("a question that is asked every time has no rule", () => {
    expect(sentence(question({ remember: null }), narrowest(), TEN)).toBe("");
    const narrow = question({ remember: { exact: "x", kind: null, only: null } });
    expect(sentence(narrow, { ...narrowest(), breadth: "kind" }, TEN)).toBe("");
  });

  test("times", () => {
    expect(seconds("hour", TEN)).toBe(3600);
    expect(seconds("today", TEN)).toBe(14 * 3600);
    expect(seconds("month", TEN)).toBe(30 * 24 * 3600);
    expect(seconds("always", TEN)).toBe(ALWAYS);
    expect(verdict(narrowest(), TEN)).toEqual({ kind: "remember", reach: "box", breadth: "exact", seconds: 3600 });
    expect(untilWords(TEN + 60_000, TEN)).toBe("until 10:01");
  });

  test("sizes", () => {
    expect([0, 999, 1000, 1234, 34_567, 1_000_000, 3_400_000_000].map(size)).toEqual([
      "0 bytes",
      "999 bytes",
      "1.0 KB",
      "1.2 KB",
      "34 KB",
      "1.0 MB",
      "3.4 GB",
    ]);
  });
});

describe("the form", () => {
  test("is offered only where there can be a rule", async () => {
    await openWindow({ questions: [question({ remember: null })] });
    expect(maybe("remember-q1")).toBeNull();
  });

  test("offers no choice of boxes where there is one only", async () => {
    const only = question({ remember: { exact: "start with copies of just ~/notes", kind: null, only: "project" } });
    const { user } = await openWindow({ questions: [only] });
    await user.click(at("remember-q1"));
    expect(maybe("reach-box-q1")).toBeNull();
    expect(maybe("reach-project-q1")).toBeNull();
    expect(rule()).toMatch(/^Let every box of shop-api start with copies of just ~\/notes until /);
    expect(verdict(narrowest(only), TEN)).toMatchObject({ kind: "remember", reach: "project", breadth: "exact" });
  });

  test("opens with the least, and wider choices say what they add", async () => {
    const { user } = await openWindow({ questions: [question()] });
    await user.click(at("remember-q1"));
    expect(rule()).toContain("Let fix-login push to fix-login of");
    for (const chosen of ["reach-box-q1", "breadth-exact-q1", "until-hour-q1"]) {
      expect((at(chosen) as HTMLInputElement).checked).toBe(true);
    }
    const text = words("question-q1");
    expect(text).toContain("also every other box of shop-api, new ones too");
    expect(text).toContain("also the boxes of every other project, new ones too");
    expect(text).toContain("also: push to any branch of git.example/acme/shop-api");
    expect(maybe("remember-q1")).toBeNull();
  });

  test("has no kind to choose when there is none", async () => {
    const { user } = await openWindow({ questions: [question({ remember: { exact: "x", kind: null, only: null } })] });
    await user.click(at("remember-q1"));
    expect(maybe("breadth-kind-q1")).toBeNull();
    expect(rule()).toContain("Let fix-login x");
  });

  test("restarts the pause, and choosing answers nothing", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    await user.click(at("remember-q1"));
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);
    await user.click(at("reach-project-q1"));
    await user.click(at("breadth-kind-q1"));
    await user.click(at("until-month-q1"));
    expect(rule()).toContain("Let every box of shop-api push to any branch of");
    await user.keyboard("{Enter}a");
    expect(host.called("answer")).toEqual([]);
    await pass(GRACE);
    await user.click(at("allow-q1"));
    expect(host.called("answer")[0]?.params).toEqual({
      id: "q1",
      digest: "digest-1",
      verdict: { kind: "remember", reach: "project", breadth: "kind", seconds: 30 * 24 * 3600 },
      surface: "window",
    });
  });

  test("a key for Allow once does not allow and remember", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await user.click(at("remember-q1"));
    await pass(GRACE);
    await user.keyboard("a");
    expect(host.called("answer")).toEqual([]);
  });

  test("takes the focus off Allow: Enter meant something else a moment ago", async () => {
    const { user } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    at("allow-q1").focus();
    await user.click(at("remember-q1"));
    expect(document.activeElement).not.toBe(at("allow-q1"));
  });

  test("Escape and Back leave it; a second Escape denies", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await user.click(at("remember-q1"));
    await user.click(at("back-q1"));
    expect(document.activeElement).toBe(at("remember-q1"));
    await user.click(at("remember-q1"));
    await user.keyboard("{Escape}");
    expect(maybe("rule-q1")).toBeNull();
    expect(host.called("answer")).toEqual([]);
    // Allow once is back under the pointer: it waits anew.
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);
    await user.keyboard("{Escape}");
    expect(host.called("answer")[0]?.params.verdict.kind).toBe("deny");
  });

  test("Deny stays Deny", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await user.click(at("remember-q1"));
    await user.click(at("deny-q1"));
    expect(host.called("answer")[0]?.params.verdict).toEqual({ kind: "deny" });
  });

  test("moves the cards below, which then wait anew", async () => {
    const { host, user } = await openWindow({
      questions: [question(), question({ id: "q2", digest: "d2", createdAt: Date.now() })],
    });
    await pass(GRACE);
    await user.click(at("remember-q1"));
    await user.click(at("allow-q2"));
    expect(host.called("answer")).toEqual([]);
  });

  test("is gone when the content changes or the question ends", async () => {
    const { user, say } = await openWindow({ questions: [question()] });
    await user.click(at("remember-q1"));
    await say({ type: "asked", question: question({ digest: "digest-2" }) });
    expect(maybe("rule-q1")).toBeNull();
    await user.click(at("remember-q1"));
    await say({ type: "resolved", id: "q1", boxName: "fix-login", outcome: { kind: "expired" } });
    expect(maybe("rule-q1")).toBeNull();
  });
});

describe("mute and quiet", () => {
  test("a box is muted from its question", async () => {
    const { host, user } = await openWindow({ questions: [question()], boxes: [box()] });
    host.on("mute", () => box({ mutedUntil: Date.now() + 3_600_000 }));
    await user.click(at("mute-q1"));
    expect(host.called("mute")[0]?.params).toEqual({ target: { query: "b00000001", cwd: null }, seconds: 3600 });
  });

  test("a muted box says so and can be heard again", async () => {
    const { host, user } = await openWindow({ first: "boxes", boxes: [box({ mutedUntil: Date.now() + 3_600_000 })] });
    host.on("mute", () => box());
    expect(words("muted-fix-login")).toContain("what it asks is denied");
    await user.click(at("hear-fix-login"));
    expect(host.called("mute")[0]?.params.seconds).toBeNull();
    await pass(0);
    expect(maybe("muted-fix-login")).toBeNull();
  });

  test("the inbox says that it is quiet, and ends it", async () => {
    const { host, user } = await openWindow({ status: { quietUntil: Date.now() + 3_600_000 } });
    expect(words("quiet")).toMatch(/^Quiet until \d\d:\d\d/);
    await user.click(at("quiet-off"));
    expect(host.called("quiet")[0]?.params).toEqual({ seconds: null });
  });
});
