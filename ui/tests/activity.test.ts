// The activity: rows, filters, older and newer records, and whether the trail is whole.
import { beforeEach, describe, expect, test } from "vitest";
import type { AuditQuery } from "../src/lib/bindings/AuditQuery";
import type { AuditRecord } from "../src/lib/bindings/AuditRecord";
import { rangeStart } from "../src/lib/export.svelte";
import { jsonLines, visible } from "../src/lib/visible";
import { error, type FakeBackend } from "./fake";
import { box, record } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

/** Answers like the host does. */
function answer(trail: AuditRecord[], query: AuditQuery): AuditRecord[] {
  const { target, kinds, text, since, until, after, limit } = query;
  const fits = trail.filter(
    (one) =>
      (target === null || one.boxId === target.query) &&
      (kinds.length === 0 || kinds.includes(one.kind)) &&
      (text === null || one.summary.toLowerCase().includes(text.toLowerCase())) &&
      (since === null || one.at >= since) &&
      (until === null || one.at < until) &&
      (after === null || one.seq > after),
  );
  return after === null ? fits.slice(-limit) : fits.slice(0, limit);
}

const upTo = (last: number, of: (seq: number) => AuditRecord = record) =>
  Array.from({ length: last }, (_, at) => of(at + 1));

async function open(trail: AuditRecord[], boxes = [box()]) {
  const window = await openWindow({ boxes });
  const held = { trail };
  window.host.on("audit", ({ params }) => answer(held.trail, params));
  await window.user.click(at("nav-activity"));
  await pass(0);
  return { ...window, held };
}

const shown = () =>
  [...document.querySelectorAll<HTMLElement>("[data-testid^=record-]")].map((row) => Number(row.dataset["testid"]?.slice(7)));
const queries = (host: FakeBackend) => host.called("audit").map((call) => call.params);

describe("rows", () => {
  test("stand newest first and say when, which box, what kind and what", async () => {
    await open([
      record(1, { kind: "box-created", summary: "Box fix-login created" }),
      record(2, { kind: "allowed-by-rule", boxId: "b0000000f" }),
      record(3, { kind: "setting-changed", boxId: null, summary: "Tracker enabled" }),
    ]);
    expect(shown()).toEqual([3, 2, 1]);
    expect(words("record-1")).toMatch(/^16 h ago fix-login Box created Box fix-login created$/);
    expect(words("record-2")).toContain("b0000000f Allowed by rule");
    expect(words("record-3")).toContain("AgentBox Setting changed Tracker enabled");
    expect(at("record-1").querySelector("time")?.getAttribute("title")).toContain("2031");
    expect(document.querySelector("main")?.textContent).toContain("The trail begins here.");
  });

  test("open to all facts", async () => {
    const { user } = await open([record(1)]);
    at("record-1").querySelector("summary")?.focus();
    await user.click(at("record-1").querySelector("summary") as HTMLElement);
    await pass(0);
    for (const part of ["Record1", "b00000001", "ab".repeat(32), '"argv"', '"push"']) {
      expect(words("record-1")).toContain(part);
    }
  });

  test("hide nothing a box wrote", async () => {
    await open([record(1, { summary: "push \u202eniam\nok\u200b" })]);
    expect(words("record-1")).toContain("push ⟨U+202E⟩niam⏎ok⟨U+200B⟩");
  });

  test("are reached with j and k", async () => {
    const { user } = await open(upTo(2));
    await user.keyboard("j");
    expect(document.activeElement).toBe(at("record-2").querySelector("summary"));
    await user.keyboard("j");
    expect(document.activeElement).toBe(at("record-1").querySelector("summary"));
  });

  test("none yet: one sentence", async () => {
    await open([]);
    expect(document.querySelector("main")?.textContent).toContain("Nothing has happened yet");
  });
});

describe("filters", () => {
  const trail = [
    record(1, { summary: "Push 1 commit", kind: "asked" }),
    record(2, { summary: "Push 1 commit: allowed", kind: "answered" }),
    record(3, { boxId: "b0000000f", kind: "strange-thing", summary: "Odd" }),
  ];

  test("by box, also one that is gone", async () => {
    const { host, user } = await open(trail);
    await user.selectOptions(at("filter-box"), "b00000001");
    await pass(0);
    expect(shown()).toEqual([2, 1]);
    expect(queries(host).at(-1)?.target).toEqual({ query: "b00000001", cwd: null });
    await user.selectOptions(at("filter-box"), "");
    await pass(0);
    await user.selectOptions(at("filter-box"), "b0000000f (gone)");
    await pass(0);
    expect(shown()).toEqual([3]);
  });

  test("by kind, also one without words", async () => {
    const { user } = await open(trail);
    await user.selectOptions(at("filter-kind"), "Strange thing");
    await pass(0);
    expect(shown()).toEqual([3]);
    await user.selectOptions(at("filter-kind"), "Answered");
    await pass(0);
    expect(shown()).toEqual([2]);
  });

  test("by text, once typing rests", async () => {
    const { host, user } = await open(trail);
    const before = queries(host).length;
    await user.keyboard("/");
    expect(document.activeElement).toBe(at("filter-text"));
    await user.keyboard("allowed ");
    expect(queries(host)).toHaveLength(before);
    await pass(250);
    expect(queries(host)).toHaveLength(before + 1);
    expect(queries(host).at(-1)?.text).toBe("allowed");
    expect(shown()).toEqual([2]);
    await user.keyboard("{Escape}");
    await pass(0);
    expect(shown()).toEqual([3, 2, 1]);
    await user.keyboard("{Escape}");
    expect(document.activeElement).not.toBe(at("filter-text"));
  });

  test("that nothing fits can be left at once", async () => {
    const { user } = await open(trail);
    await user.type(at("filter-text"), "no such thing");
    await pass(250);
    expect(words("nothing-fits")).toContain("Nothing fits these filters.");
    await user.click(at("clear-filters"));
    await pass(250);
    expect(shown()).toEqual([3, 2, 1]);
    expect((at("filter-text") as HTMLInputElement).value).toBe("");
  });

  test("an answer to an earlier choice comes too late", async () => {
    const { host, user } = await open(trail);
    const waiting: (() => void)[] = [];
    host.on("audit", ({ params }) => new Promise((yes) => waiting.push(() => yes(answer(trail, params)))));
    await user.selectOptions(at("filter-kind"), "Asked");
    await pass(0);
    await user.selectOptions(at("filter-kind"), "Answered");
    await pass(0);
    waiting[1]?.();
    await pass(0);
    waiting[0]?.();
    await pass(0);
    expect(shown()).toEqual([2]);
  });
});

describe("older records", () => {
  test("come a page at a time, none twice and none missed, though the clock was set back", async () => {
    const trail = upTo(250, (seq) => record(seq, { at: seq > 200 ? 1_000_000 : 2_000_000 }));
    const { host, user } = await open(trail);
    expect(shown()).toEqual(upTo(100).map((_, at) => 250 - at));
    await user.click(at("older"));
    await pass(0);
    expect(shown()).toHaveLength(200);
    expect(queries(host).at(-1)).toMatchObject({ after: 50, limit: 100 });
    await user.click(at("older"));
    await pass(0);
    expect(shown()).toEqual(upTo(250).map((_, at) => 250 - at));
    expect(maybe("older")).toBeNull();
  });

  test("that fit are searched for as far as it takes", async () => {
    const trail = upTo(3000, (seq) => record(seq, { kind: seq % 20 === 0 ? "asked" : "executed" }));
    const { user } = await open(trail);
    await user.selectOptions(at("filter-kind"), "Asked");
    await pass(0);
    expect(shown()).toEqual(upTo(100).map((_, at) => 3000 - 20 * at));
    await user.click(at("older"));
    await pass(0);
    expect(shown()).toEqual(upTo(150).map((_, at) => 3000 - 20 * at));
    expect(maybe("older")).toBeNull();
  });

  test("that many fit come as one page only", async () => {
    const { user } = await open(upTo(1000));
    await user.type(at("filter-text"), "thing");
    await pass(250);
    await user.click(at("older"));
    await pass(0);
    expect(shown()).toEqual(upTo(200).map((_, at) => 1000 - at));
  });

  test("that cannot be read leave the others and say why", async () => {
    const { host, user } = await open(upTo(150));
    host.on("audit", () => {
      throw error("failed", "The disk is broken.");
    });
    await user.click(at("older"));
    await pass(0);
    expect(shown()).toHaveLength(100);
    expect(words("page-problem")).toContain("The disk is broken.");
  });
});

describe("newer records", () => {
  let scrolled = 0;
  beforeEach(() => {
    scrolled = 0;
  });
  const scroll = (to: number) => {
    scrolled = to;
    Object.defineProperty(document.querySelector("main"), "scrollTop", { get: () => scrolled, configurable: true });
  };

  test("come by themselves while the top is in view, and fit the filters", async () => {
    const { host, user, held } = await open(upTo(2));
    held.trail = upTo(4);
    await pass(2000);
    expect(shown()).toEqual([4, 3, 2, 1]);
    expect(queries(host).at(-1)?.after).toBe(2);
    await user.selectOptions(at("filter-kind"), "Asked");
    await pass(0);
    held.trail = [...upTo(5), record(6, { kind: "asked" })];
    await pass(2000);
    expect(shown()).toEqual([6]);
  });

  test("wait while someone reads further down", async () => {
    const { held } = await open(upTo(2));
    scroll(300);
    held.trail = upTo(3);
    await pass(4000);
    expect(shown()).toEqual([2, 1]);
    scroll(0);
    await pass(2000);
    expect(shown()).toEqual([3, 2, 1]);
  });

  test("an opened row stays open", async () => {
    const { user, held } = await open(upTo(1));
    await user.click(at("record-1").querySelector("summary") as HTMLElement);
    await pass(0);
    held.trail = upTo(2);
    await pass(2000);
    expect(shown()).toEqual([2, 1]);
    expect(words("record-1")).toContain("Hash");
  });

  test("are not asked for once the page is left", async () => {
    const { host, user } = await open(upTo(1));
    await user.click(at("nav-inbox"));
    const before = queries(host).length;
    await pass(10_000);
    expect(queries(host)).toHaveLength(before);
  });
});

describe("the trail", () => {
  test("is whole", async () => {
    const { host, user } = await open(upTo(1));
    let say: (value: unknown) => void = () => {};
    host.on("auditVerify", () => new Promise((yes) => (say = yes)));
    await user.click(at("verify"));
    expect(words("verify")).toBe("Verifying…");
    say({ records: 1204, broken: null });
    await pass(0);
    expect(words("verdict")).toBe("✓ 1204 records, the trail is whole.");
  });

  test("is broken, and where", async () => {
    const { host, user } = await open(upTo(1));
    host.on("auditVerify", () => ({ records: 7, broken: "record 3 was changed" }));
    await user.click(at("verify"));
    await pass(0);
    expect(words("verdict")).toBe("✕ The trail is broken: record 3 was changed (of 7 records)");
  });

  test("could not be walked", async () => {
    const { host, user } = await open(upTo(1));
    host.on("auditVerify", () => {
      throw error("failed", "The database is busy.");
    });
    await user.click(at("verify"));
    await pass(0);
    expect(words("verdict")).toContain("The database is busy.");
  });
});

test("hostile text is made visible as on the command line", () => {
  expect(visible("\x1b[2J\u202eevil\n\t\u{e0001}")).toBe("\\x1b[2J⟨U+202E⟩evil⏎ ⟨U+E0001⟩");
  const marks = `e${"\u0301".repeat(4)}${"⟨U+0301⟩".repeat(5)}x`;
  expect(visible(`e${"\u0301".repeat(9)}x`)).toBe(marks);
  expect(jsonLines({ a: "x\u202ey\n" })).toEqual(["{", '  "a": "x⟨U+202E⟩y\\n"', "}"]);
});

describe("a stretch of time", () => {
  const HOUR = 3_600_000;
  const ages = [40 * 24, 20 * 24, 3 * 24, 1].map((hours, at) => record(at + 1, { at: new Date("2031-03-05T10:00:00Z").getTime() - hours * HOUR }));

  test("is all of it at first, and can be less", async () => {
    const { user, host } = await open(ages);
    expect(shown()).toEqual([4, 3, 2, 1]);
    expect(queries(host)[0]?.since).toBeNull();
    for (const [range, seqs] of [["Today", [4]], ["7 days", [4, 3]], ["30 days", [4, 3, 2]], ["All time", [4, 3, 2, 1]]] as const) {
      await user.selectOptions(at("filter-range"), range);
      await pass(0);
      expect(shown(), range).toEqual(seqs);
    }
  });

  test("that nothing fits is left with the other filters", async () => {
    const { user } = await open(ages.slice(0, 1));
    await user.selectOptions(at("filter-range"), "Today");
    await pass(0);
    await user.click(at("clear-filters"));
    await pass(0);
    expect(shown()).toEqual([1]);
  });

  test("today begins at midnight", () => {
    const now = new Date(2031, 2, 5, 10).getTime();
    expect(rangeStart("today", now)).toBe(new Date(2031, 2, 5).getTime());
    expect(rangeStart("all", now)).toBeNull();
  });
});

describe("an export", () => {
  test("is everything that fits, a record a line, oldest first", async () => {
    const { user, host } = await open(upTo(2500, (seq) => record(seq, { kind: seq % 2 === 0 ? "asked" : "executed" })));
    await user.selectOptions(at("filter-kind"), "Asked");
    await pass(0);
    const before = queries(host).length;
    await user.click(at("export"));
    await pass(0);
    expect(host.saved.map((file) => file.name)).toEqual(["agentbox-activity-2031-03-05.jsonl"]);
    const lines = host.saved[0]?.text.trimEnd().split("\n").map((line) => JSON.parse(line) as AuditRecord) ?? [];
    expect(lines).toHaveLength(1250);
    expect([lines[0]?.seq, lines.at(-1)?.seq]).toEqual([2, 2500]);
    expect(queries(host).slice(before).map((query) => [query.after, query.limit, query.kinds])).toEqual([
      [0, 1000, ["asked"]],
      [2000, 1000, ["asked"]],
      [2500, 1000, ["asked"]],
    ]);
    expect(words("exported")).toContain("1250 records saved as /home/ada/agentbox-activity-2031-03-05.jsonl");
  });

  test("says how far it is, and can be left", async () => {
    const { user, host } = await open(upTo(3));
    const waiting: ((page: AuditRecord[]) => void)[] = [];
    host.on("audit", () => new Promise((yes) => waiting.push(yes)));
    await user.click(at("export"));
    await pass(0);
    waiting[0]?.(upTo(3));
    await pass(0);
    expect(words("export-progress")).toBe("3 records");
    expect(words("export")).toBe("Exporting…");
    await user.click(at("export-cancel"));
    waiting[1]?.([]);
    await pass(0);
    expect(host.saved).toEqual([]);
    expect(words("export")).toBe("Export");
  });

  test("of nothing makes no file", async () => {
    const { user, host } = await open([]);
    await user.click(at("export"));
    await pass(0);
    expect(host.saved).toEqual([]);
    expect(words("exported")).toContain("no file was made");
  });

  test("that failed says why", async () => {
    const { user, host } = await open(upTo(1));
    host.on("audit", () => {
      throw error("failed", "The disk is broken.");
    });
    await user.click(at("export"));
    await pass(0);
    expect(words("exported")).toContain("The disk is broken.");
  });
});
