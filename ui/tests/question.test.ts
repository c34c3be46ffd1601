// What a question shows, and when an answer to it counts.
import { describe, expect, test, vi } from "vitest";
import type { Outcome } from "../src/lib/bindings/Outcome";
import { error } from "./fake";
import { evidence, files, question } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const GRACE = 350;

/** Makes every scrolling area overflow, as a long command would on a screen. */
function overflow() {
  vi.spyOn(HTMLElement.prototype, "scrollHeight", "get").mockReturnValue(500);
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(100);
}

const area = (label: string) => document.querySelector<HTMLElement>(`[aria-label="${label}"]`) as HTMLElement;

async function scrollToEnd(label: string) {
  area(label).scrollTop = 400;
  area(label).dispatchEvent(new Event("scroll"));
  await pass(0);
}

describe("what it shows", () => {
  test("who, what, where, the evidence and the exact command", async () => {
    await openWindow({ questions: [question()] });
    const text = words("question-q1");
    for (const part of [
      "fix-login",
      "shop-api",
      "12 s ago",
      "Push 3 commits to origin/fix-login",
      "git.example/acme/shop-api",
      "9f31c02",
      "Check token expiry before refresh",
      "and 1 more",
      "5 files, +84 −12",
      "changes CI: .github/workflows/ci.yml",
      "git push origin refs/agentbox/fix-login:refs/heads/fix-login",
    ]) {
      expect(text).toContain(part);
    }
  });

  test("facts, the text to be published, and files with sizes and notes", async () => {
    const page = evidence({
      facts: [
        { label: "Title", value: "What we measured" },
        { label: "Parent", value: "Roadmap" },
      ],
      commits: [],
      moreCommits: 0,
      body: ["# What we measured", "", "Startup: 120 ms"],
      moreBody: 40,
      files: [
        { path: "notes/graph.png", bytes: 34_567, note: null },
        { path: ".envrc", bytes: 120, note: "looks like a credential" },
      ],
      moreFiles: 2,
      summary: null,
    });
    await openWindow({ questions: [question({ evidence: page })] });
    expect(area("Details").textContent).toContain("TitleWhat we measured");
    expect(area("Details").textContent).toContain("ParentRoadmap");
    const lines = [...area("Text").querySelectorAll("code")].map((line) => line.textContent);
    expect(lines).toEqual(["# What we measured", "", "Startup: 120 ms"]);
    expect(area("Text").textContent).toContain("and 40 more lines");
    const files = area("Files").textContent?.replace(/\s+/g, " ");
    for (const part of ["notes/graph.png 34 KB", ".envrc 120 bytes", "looks like a credential", "and 2 more files"]) {
      expect(files).toContain(part);
    }
    expect(area("Commits")).toBeNull();
  });

  test("words of the command can be told apart", async () => {
    await openWindow({ questions: [question({ argv: ["git", "push now", "", "it's"] })] });
    expect(area("Exact command").textContent).toContain("git 'push now' '' 'it'\\''s'");
  });

  test("the age ticks, with the exact time on hover", async () => {
    await openWindow({ questions: [question()] });
    const time = at("question-q1").querySelector("time") as HTMLElement;
    expect(time.title).toContain("2031");
    await pass(3000);
    expect(time.textContent).toBe("15 s ago");
  });

  test("the same asked again is one question with a count", async () => {
    const { host, user, say } = await openWindow({ questions: [question(), question({ id: "q2", digest: "d2", createdAt: Date.now() })] });
    expect(maybe("times-q1")).toBeNull();
    await pass(GRACE);
    await say({ type: "askedAgain", id: "q1", times: 3 });
    expect(words("times-q1")).toBe("asked 3 times");
    expect(maybe("times-q2")).toBeNull();
    // The line it stands in may be new: what is below may have moved, once.
    await user.click(at("allow-q1"));
    await user.click(at("allow-q2"));
    expect(host.called("answer")).toEqual([]);
    await pass(GRACE);
    await say({ type: "askedAgain", id: "q1", times: 4 });
    await user.click(at("allow-q1"));
    expect(host.called("answer").map((call) => call.params.digest)).toEqual(["digest-1"]);
  });

  test("a question that cannot be undone says so", async () => {
    await openWindow({ questions: [question({ tier: "irreversible", warnings: [] })] });
    expect(area("Warnings").textContent).toContain("cannot be undone");
  });

  test("the last minute is counted down", async () => {
    await openWindow({ questions: [question({ expiresAt: Date.now() + 61_500 })] });
    expect(words("question-q1")).not.toContain("Denied by itself");
    await pass(2000);
    expect(words("question-q1")).toContain("Denied by itself in 60 s.");
  });

  test("hostile text stays text", async () => {
    const evil = `<img src=x onerror="document.title=1"><script>1</script>`;
    await openWindow({
      questions: [
        question({
          title: evil,
          target: evil,
          project: evil,
          warnings: [evil],
          argv: ["git", evil],
          evidence: evidence({
            facts: [{ label: evil, value: evil }],
            commits: [{ oid: evil, subject: evil }],
            body: [evil],
            files: [{ path: evil, bytes: 1, note: evil }],
            summary: evil,
          }),
          remember: { exact: evil, kind: evil, only: null },
        }),
      ],
    });
    const card = at("question-q1");
    expect(card.querySelectorAll("img, script")).toHaveLength(0);
    expect(card.querySelector("h2")?.textContent).toBe(evil);
    expect(area("Exact command").textContent).toContain(evil);
  });
});

describe("answers", () => {
  test("Deny has the focus and Enter presses it", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    expect(document.activeElement).toBe(at("deny-q1"));
    await user.keyboard("{Enter}");
    expect(host.called("answer").map((call) => call.params.verdict.kind)).toEqual(["deny"]);
  });

  test("Enter on a fresh question never allows, even with Allow focused", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    at("allow-q1").focus();
    await user.keyboard("{Enter}");
    expect(host.called("answer")).toEqual([]);
  });

  test("Allow names the shown digest, once the pause is over", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([
      {
        method: "answer",
        params: { id: "q1", digest: "digest-1", verdict: { kind: "allowOnce" }, surface: "window" },
      },
    ]);
  });

  test("Allow ignores clicks and keys in the first 350 ms", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await pass(GRACE - 1);
    await user.click(at("allow-q1"));
    await user.keyboard("a");
    expect(host.called("answer")).toEqual([]);
    expect(at("allow-q1").getAttribute("aria-disabled")).toBe("true");
    await pass(1);
    expect(at("allow-q1").getAttribute("aria-disabled")).toBe("false");
    await user.keyboard("a");
    expect(host.called("answer")).toHaveLength(1);
  });

  test("new content restarts the pause and takes the focus off Allow", async () => {
    const { host, user, say } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    at("allow-q1").focus();
    await say({ type: "asked", question: question({ digest: "digest-2", title: "Push 4 commits" }) });
    expect(document.activeElement).toBe(at("deny-q1"));
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);
    await pass(GRACE);
    await user.click(at("allow-q1"));
    expect(host.called("answer")[0]?.params.digest).toBe("digest-2");
  });

  test("a card that moves up under the pointer waits anew", async () => {
    const { host, user, say } = await openWindow({
      questions: [question(), question({ id: "q2", digest: "digest-q2", createdAt: Date.now() })],
    });
    await user.keyboard("j");
    await say({ type: "resolved", id: "q1", boxName: "fix-login", outcome: { kind: "expired" } });
    await pass(1999);
    expect(at("allow-q2").getAttribute("aria-disabled")).toBe("false");
    await pass(1);
    expect(maybe("question-q1")).toBeNull();
    await user.click(at("allow-q2"));
    expect(host.called("answer")).toEqual([]);
    await pass(GRACE);
    await user.click(at("allow-q2"));
    expect(host.called("answer")).toHaveLength(1);
  });

  test("a window brought to the front waits anew", async () => {
    const { host, user, say } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    await say({ type: "showWindow", page: "inbox" });
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);
  });

  test("a held key answers nothing", async () => {
    const { host } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    for (const key of ["a", "d", "w", "Escape"]) {
      window.dispatchEvent(new KeyboardEvent("keydown", { key, repeat: true }));
    }
    const enter = new KeyboardEvent("keydown", { key: "Enter", repeat: true, bubbles: true, cancelable: true });
    at("deny-q1").dispatchEvent(enter);
    expect(enter.defaultPrevented).toBe(true);
    expect(host.called("answer")).toEqual([]);
  });

  test("an answer is sent once", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    host.on("answer", () => new Promise(() => {}));
    await pass(GRACE);
    await user.keyboard("a");
    expect(at("allow-q1").textContent).toContain("Allowing…");
    await user.keyboard("ad{Escape}");
    expect(host.called("answer")).toHaveLength(1);
  });
});

describe("files for a new box", () => {
  test("are copied, left out or call the box off", async () => {
    const { host, user } = await openWindow({ questions: [files()] });
    expect(at("allow-q1").textContent?.trim()).toBe("Copy");
    expect(at("deny-q1").textContent?.trim()).toBe("Cancel");
    expect(at("without-q1").textContent?.trim()).toBe("Without these files");
    expect(document.activeElement).toBe(at("deny-q1"));
    await pass(GRACE);
    host.on("answer", () => new Promise(() => {}));
    await user.click(at("without-q1"));
    const { id, digest } = files();
    expect(host.called("answer")).toEqual([
      { method: "answer", params: { id, digest, verdict: { kind: "without" }, surface: "window" } },
    ]);
    expect(at("allow-q1").textContent).not.toContain("Allowing");
    await user.keyboard("wad");
    expect(host.called("answer")).toHaveLength(1);
  });

  test("going on without them waits for the pause as a yes does, but not for the end of the list", async () => {
    overflow();
    const { host, user } = await openWindow({ questions: [files()] });
    await pass(GRACE - 1);
    await user.click(at("without-q1"));
    await user.keyboard("w");
    expect(host.called("answer")).toEqual([]);
    expect(at("without-q1").getAttribute("aria-disabled")).toBe("true");
    await pass(1);
    expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(true);
    await user.keyboard("w");
    expect(host.called("answer").map((call) => call.params.verdict.kind)).toEqual(["without"]);
  });

  test("no rule is made of going on without them", async () => {
    const { host, user } = await openWindow({ questions: [files()] });
    await pass(GRACE);
    await user.click(at("remember-q1"));
    expect(maybe("without-q1")).toBeNull();
    expect(at("allow-q1").textContent?.trim()).toBe("Copy and remember");
    await pass(GRACE);
    await user.keyboard("w");
    expect(host.called("answer")).toEqual([]);
  });

  test("another question has no such answer", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    await pass(GRACE);
    expect(maybe("without-q1")).toBeNull();
    await user.keyboard("w");
    expect(host.called("answer")).toEqual([]);
  });

  test("new content takes the focus off the button", async () => {
    const { say } = await openWindow({ questions: [files()] });
    await pass(GRACE);
    at("without-q1").focus();
    await say({ type: "asked", question: files({ digest: "digest-2" }) });
    expect(document.activeElement).toBe(at("deny-q1"));
  });
});

const bare = evidence({ commits: [], summary: null });

describe("a long command", () => {
  test("keeps Allow off until its end was in view", async () => {
    overflow();
    const { host, user } = await openWindow({ questions: [question({ warnings: [], evidence: bare })] });
    await pass(GRACE);
    await scrollToEnd("What it asks for");
    expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(true);
    expect(words("question-q1")).toContain("Scroll to the end of the command to allow.");
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toEqual([]);

    await user.keyboard("a");
    expect(document.activeElement).toBe(area("Exact command"));
    expect(host.called("answer")).toEqual([]);

    await scrollToEnd("Exact command");
    expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(false);
    await user.click(at("allow-q1"));
    expect(host.called("answer")).toHaveLength(1);
  });

  test("is unread again, from its top, when the content changes", async () => {
    overflow();
    const { say } = await openWindow({ questions: [question({ warnings: [] })] });
    await scrollToEnd("What it asks for");
    await scrollToEnd("Exact command");
    await say({ type: "asked", question: question({ warnings: [], digest: "digest-2" }) });
    await pass(GRACE);
    expect(area("Exact command").scrollTop).toBe(0);
    expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(true);
  });

  test("is one of many: no part may hide its end", async () => {
    overflow();
    const full = evidence({
      facts: [{ label: "Title", value: "x" }],
      body: ["text"],
      files: [{ path: "a.txt", bytes: 3, note: null }],
    });
    await openWindow({ questions: [question({ evidence: full })] });
    const all = [
      ["title", "What it asks for"],
      ["details", "Details"],
      ["commits", "Commits"],
      ["text", "Text"],
      ["files", "Files"],
      ["warnings", "Warnings"],
      ["command", "Exact command"],
    ] as const;
    for (const [name, label] of all) {
      expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(true);
      expect(words("question-q1")).toContain(`Scroll to the end of the ${name} to allow.`);
      await scrollToEnd(label);
    }
    expect((at("allow-q1") as HTMLButtonElement).disabled).toBe(false);
  });

  test("can be denied unread", async () => {
    overflow();
    const { host, user } = await openWindow({ questions: [question()] });
    await user.keyboard("{Escape}");
    expect(host.called("answer")[0]?.params.verdict.kind).toBe("deny");
  });
});

describe("an end", () => {
  const ends: [Outcome, string][] = [
    [{ kind: "allowed", by: "tray" }, "Allowed from the tray"],
    [{ kind: "allowed", by: "notification" }, "Allowed from the notification"],
    [{ kind: "allowed", by: "window" }, "Allowed in this window"],
    [{ kind: "denied", by: "cli" }, "Denied on the command line"],
    [{ kind: "denied", by: "terminal" }, "Denied in the terminal"],
    [{ kind: "allowed", by: "promptCommand" }, "Allowed in the menu"],
    [{ kind: "denied", by: "dialog" }, "Denied in the dialog"],
    [{ kind: "without", by: "dialog" }, "Without these files, said in the dialog"],
    [{ kind: "granted", grant: "g" }, "Allowed by a rule"],
    [{ kind: "expired" }, "Nobody answered in time: denied"],
    [{ kind: "withdrawn" }, "The command in the box ended: withdrawn"],
    [{ kind: "hostStopped" }, "AgentBox stopped: denied"],
    [{ kind: "tooMany" }, "Too many questions from this box: denied"],
    [{ kind: "muted" }, "The box is muted: denied"],
    [{ kind: "nobody" }, "Nobody was there to ask: denied"],
  ];

  test.each(ends)("%o is said for two seconds", async (outcome, said) => {
    const { say } = await openWindow({ questions: [question()] });
    await say({ type: "resolved", id: "q1", boxName: "fix-login", outcome });
    expect(words("question-q1")).toContain(said);
    expect(maybe("allow-q1")).toBeNull();
    await pass(1999);
    expect(maybe("question-q1")).not.toBeNull();
    await pass(1);
    expect(maybe("question-q1")).toBeNull();
  });

  test("that came while nobody listened is noticed with the next snapshot", async () => {
    const { say, snapshot } = await openWindow({ questions: [question()] });
    await say({ ...snapshot, questions: [] } as typeof snapshot);
    expect(words("question-q1")).toContain("This question is no longer open");
    await pass(2000);
    expect(maybe("question-q1")).toBeNull();
  });
});

describe("an answer that fails", () => {
  async function denyWith(thrown: unknown) {
    const opened = await openWindow({ questions: [question()] });
    opened.host.on("answer", () => Promise.reject(thrown));
    await opened.user.keyboard("d");
    await pass(0);
    return opened;
  }

  test("notPending: the card says so and goes", async () => {
    await denyWith(error("notPending", "no question q1 is open"));
    expect(words("question-q1")).toContain("This question is no longer open");
    await pass(2000);
    expect(maybe("question-q1")).toBeNull();
  });

  test("digestMismatch: the new content is read and has to be answered anew", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    host.on("answer", () => Promise.reject(error("digestMismatch", "another content")));
    host.on("questions", () => [question({ digest: "digest-2", title: "Push 9 commits" })]);
    await pass(GRACE);
    await user.keyboard("a");
    await pass(0);
    expect(words("question-q1")).toContain("Push 9 commits");
    expect(words("question-q1")).toContain("The question changed while it was answered");
    expect(at("allow-q1").getAttribute("aria-disabled")).toBe("true");
  });

  test("tooSoon: asks to read and answer again, after a new pause", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    host.on("answer", () => Promise.reject(error("tooSoon", "too soon")));
    await pass(GRACE);
    await user.keyboard("a");
    await pass(0);
    expect(words("question-q1")).toContain("too quickly");
    expect(at("allow-q1").getAttribute("aria-disabled")).toBe("true");
    await pass(GRACE);
    expect(at("allow-q1").getAttribute("aria-disabled")).toBe("false");
  });

  test("locked: says what to do", async () => {
    const { host, user } = await openWindow({ questions: [question()] });
    host.on("answer", () => Promise.reject(error("locked", "locked")));
    await pass(GRACE);
    await user.keyboard("a");
    await pass(0);
    expect(words("question-q1")).toContain("The screen is locked");
  });

  test("any other failure is shown with its hints, and the question stays open", async () => {
    await denyWith(error("failed", "the database is full", "free some space"));
    expect(words("question-q1")).toContain("the database is full");
    expect(words("question-q1")).toContain("free some space");
    expect(at("deny-q1").getAttribute("aria-disabled")).toBe("false");
  });

  test("a failure without a code is shown as well", async () => {
    await denyWith("the pipe broke");
    expect(words("question-q1")).toContain("the pipe broke");
  });
});
