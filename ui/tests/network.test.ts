// What a box sends out: seen, limited, and never more than a person said yes to elsewhere.
import { tick } from "svelte";
import { describe, expect, test } from "vitest";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { EgressChange } from "../src/lib/bindings/EgressChange";
import type { EgressView } from "../src/lib/bindings/EgressView";
import type { RepositoryPolicy } from "../src/lib/bindings/RepositoryPolicy";
import type { Traffic } from "../src/lib/bindings/Traffic";
import { error } from "./fake";
import { blocked, box, egress, egressRule, traffic } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const ID = "b00000001";
const TARGET = { query: ID, cwd: null };

async function open(over: { view?: Partial<EgressView>; box?: Partial<BoxView>; lines?: Traffic[] } = {}) {
  const opened = await openWindow({ first: `box/${ID}/network` });
  const held = { view: egress(over.view) };
  opened.host.on("egress", () => held.view);
  opened.host.on("apiUse", () => []);
  await opened.say({ ...opened.snapshot, boxes: [box({ egress: "balanced", ...over.box })] } as typeof opened.snapshot);
  await pass(20);
  const stream = () => opened.host.streams.at(-1)!;
  const give = async (...lines: Traffic[]) => {
    stream().give(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    await pass(20);
  };
  if (over.lines) await give(...over.lines);
  return { ...opened, held, stream, give };
}

const rows = () => [...document.querySelectorAll<HTMLElement>("[data-testid=traffic-row]")];
const texts = () => rows().map((row) => (row.textContent ?? "").replace(/\s+/g, " ").trim());
const active = () => document.getElementById(at("traffic").getAttribute("aria-activedescendant") ?? "");
const shut = (over: Partial<RepositoryPolicy> = {}): RepositoryPolicy => ({
  file: ".agentbox/egress.yaml",
  commit: "9f31c02aa11bb22cc33dd",
  digest: "d1",
  state: "waiting",
  diff: [" domains:", "+  - host: evil\u202e.example", "-  - host: b.example"],
  ...over,
});

describe("a box whose way out is open", () => {
  test("says in a sentence that nothing is recorded, and reads nothing", async () => {
    const { host } = await open({ box: { egress: "open" } });
    expect(words("mode")).toContain("Open: nothing is recorded.");
    expect(words("mode")).toContain("fix-login reaches every address");
    expect(maybe("traffic-search")).toBeNull();
    expect(maybe("egress-fix-login")).toBeNull();
    expect(host.streams).toEqual([]);
    expect(host.called("egress")).toEqual([]);
  });

  test("is restarted for a change: that is said, and no bare click does it", async () => {
    const { host, user } = await open({ box: { egress: "open" } });
    host.on("switchEgress", ({ params }) => box({ egress: params.mode }));
    await user.click(at("change-mode"));
    expect(document.activeElement).toBe(at("mode-open"));
    expect(words("mode-effects")).toBe("It is so now.");
    expect((at("mode-apply") as HTMLButtonElement).disabled).toBe(true);
    await user.click(at("mode-balanced"));
    expect(words("mode-effects")).toContain("fix-login is stopped and started again for this: what runs in it ends.");
    expect(words("mode-effects")).not.toContain("window of its own");
    expect(words("mode-apply")).toBe("Restart and change");
    expect(host.called("switchEgress")).toEqual([]);
    await user.click(at("mode-apply"));
    await pass(20);
    expect(host.called("switchEgress").map((call) => call.params)).toEqual([{ target: TARGET, mode: "balanced" }]);
    expect(words("mode")).toContain("Balanced.");
    expect(words("mode-said")).toBe("Changed: Balanced.");
    expect(host.streams).toHaveLength(1);
  });

  test("that is down is not restarted", async () => {
    const { user } = await open({ box: { egress: "open", state: "stopped" } });
    await user.click(at("change-mode"));
    await user.click(at("mode-locked"));
    expect(words("mode-effects")).toContain("It holds from the next start.");
    expect(words("mode-apply")).toBe("Change");
  });
});

describe("the mode", () => {
  test("is said in words, with the honest limit of rules", async () => {
    await open({ view: { hosts: 3, injected: [{ secret: "github.token", count: 14 }] } });
    expect(words("mode")).toBe("Balanced. Package registries, agents' services and what you allowed; everything else asks you.");
    expect(words("way-facts")).toContain("Its rules name 3 hosts.");
    expect(words("way-facts")).toContain("github.token was put into 14 requests");
    expect(words("trusted")).toContain("trusted with its whole payload");
  });

  test("a looser one is asked about elsewhere, and a no is said here", async () => {
    const { host, user } = await open({ box: { egress: "locked" } });
    host.on("switchEgress", () => {
      throw error("failed", "Nothing was changed: you did not say yes to AgentBox's question.");
    });
    await user.click(at("change-mode"));
    await user.click(at("mode-observe"));
    expect(words("mode-effects")).toContain("asked about in a window of its own");
    expect(words("mode-effects")).toContain("It holds at once");
    await user.click(at("mode-apply"));
    await pass(0);
    expect(words("mode-form")).toContain("you did not say yes");
    expect(words("mode")).toContain("Locked.");
  });

  test("Escape leaves it as it is, and the focus goes back", async () => {
    const { host, user } = await open();
    await user.click(at("change-mode"));
    await user.click(at("mode-open"));
    await user.keyboard("{Escape}");
    await pass(0);
    expect(maybe("mode-form")).toBeNull();
    expect(document.activeElement).toBe(at("change-mode"));
    expect(host.called("switchEgress")).toEqual([]);
  });

  test("is a chip at the box's name, observed as a warning, and leads here", async () => {
    const { app, user } = await open({ box: { egress: "observe" } });
    expect(words("egress-fix-login")).toBe("⚠ Network: observed");
    expect(at("egress-fix-login").getAttribute("aria-label")).toContain("nothing is stopped");
    app.show("boxes");
    await pass(20);
    await user.click(at("egress-fix-login"));
    expect([app.page, app.tab]).toEqual(["box", "network"]);
  });

  test("why nothing passes is said", async () => {
    await open({ view: { unavailable: "project: must start with / (egress.yaml:7:15)" } });
    expect(words("unavailable")).toContain("Nothing passes: the policy of fix-login cannot be read.");
    expect(words("unavailable")).toContain("egress.yaml:7:15");
    expect(at("unavailable").getAttribute("role")).toBe("alert");
  });

  test("what cannot be read is said, and tried again", async () => {
    const { host, user, held } = await open();
    host.on("egress", () => Promise.reject(error("failed", "The disk is full.")));
    held.view = egress();
    host.say({ type: "boxRemoved", id: "b00000009" });
    await pass(20);
    expect(words("egress-problem")).toContain("The disk is full.");
    host.on("egress", () => egress({ hosts: 99 }));
    await user.click(at("egress-again"));
    await pass(0);
    expect(maybe("egress-problem")).toBeNull();
    expect(words("way-facts")).toContain("99 hosts");
  });
});

describe("the traffic", () => {
  test("is followed, and says that nothing came yet", async () => {
    const { stream, give } = await open();
    expect(stream().what).toMatchObject({ method: "followTraffic", params: { target: TARGET, denied: false, limit: 5000 } });
    expect(words("traffic-empty")).toBe("Nothing yet: what fix-login sends out comes here.");
    await give(traffic("1"), blocked("2", { bytesUp: 12_000 }));
    expect(texts()[0]).toMatch(/✓ Allowed ?GET ?registry\.example\.com\/left-pad ?project:egress\.yaml:7 ?0 ?4\.2 KB ?84/);
    expect(texts()[1]).toContain("✕ Stopped");
    expect(texts()[1]).toContain("12 KB");
    expect(words("traffic-count")).toBe("2 lines, 1 stopped");
    await give(traffic("1"));
    expect(words("traffic-count")).toBe("2 lines, 1 stopped");
  });

  test("every verdict is a word and a sign", async () => {
    await open({
      lines: [
        traffic("1", { reason: "observed" }),
        traffic("2", { reason: "approved" }),
        blocked("3", { reason: "upstream_timeout" }),
        traffic("4", { kind: "reload", action: "noted", reason: null, host: null, path: null, method: null, rule: null }),
        traffic("5", { kind: "alert", action: "blocked", reason: "placeholder_misuse" }),
      ],
    });
    const verdicts = rows().map((row) => row.querySelector(".verdict")?.textContent?.trim());
    expect(verdicts).toEqual(["◉ Observed", "✓ You allowed", "✕ Not reached", "ℹ Noted", "⚠ Look at this"]);
    expect(texts()[3]).toContain("The rules were read again.");
  });

  test("a hostile host and path are text that hides nothing", async () => {
    const { user } = await open({
      lines: [blocked("1", { host: "<img src=x onerror=alert(1)>.evil\u202egro.example", path: "/a\u200b\n<script>", method: "G\u0007T", detail: "\u202ex" })],
    });
    const text = rows()[0]?.textContent ?? "";
    expect(text).toContain("<img src=x onerror=alert(1)>.evil⟨U+202E⟩gro.example");
    expect(text).toContain("/a⟨U+200B⟩⏎<script>");
    expect(text).toContain("G\\x07T");
    expect(document.querySelector("img, main script")).toBeNull();
    await user.click(rows()[0]!);
    await pass(0);
    expect(document.querySelector("main")!.innerHTML).not.toMatch(/[\u202e\u200b]/);
    expect(words("traffic-details")).toContain("⟨U+202E⟩x");
    for (const labelled of document.querySelectorAll("[aria-label], [title]")) {
      expect(`${labelled.getAttribute("aria-label")}${labelled.getAttribute("title")}`).not.toMatch(/[\u202e\u200b]/);
    }
  });

  test("only what was stopped, and what is searched for", async () => {
    const { user } = await open({ lines: [traffic("1"), blocked("2"), blocked("3", { host: "other.example" })] });
    await user.click(at("only-stopped"));
    expect(rows()).toHaveLength(2);
    expect(words("traffic-count")).toBe("2 of 3 lines");
    await user.keyboard("/");
    expect(document.activeElement).toBe(at("traffic-search"));
    await user.keyboard("OTHER.ex");
    expect(texts()).toHaveLength(1);
    await user.keyboard("zzz");
    expect(words("traffic-empty")).toBe("No line is like that.");
    await user.keyboard("{Escape}");
    expect(rows()).toHaveLength(2);
    await user.keyboard("{Escape}");
    expect(document.activeElement).not.toBe(at("traffic-search"));
  });

  test("is walked by keyboard, opened with Enter and left with Escape", async () => {
    const { user } = await open({ lines: [traffic("1"), traffic("2", { path: "/two" }), traffic("3", { path: "/three" })] });
    at("traffic").focus();
    await user.keyboard("{ArrowUp}");
    expect(active()?.textContent).toContain("/three");
    await user.keyboard("k");
    expect(active()?.textContent).toContain("/two");
    expect(active()?.getAttribute("aria-selected")).toBe("true");
    await user.keyboard("{Home}{ArrowUp}");
    expect(active()?.textContent).toContain("/left-pad");
    await user.keyboard("{End}{ArrowDown}jk");
    expect(active()?.textContent).toContain("/two");
    await user.keyboard("{Enter}");
    await pass(0);
    expect(document.activeElement).toBe(at("traffic-details"));
    expect(words("traffic-details")).toContain("GET registry.example.com/two");
    await user.keyboard("{Escape}");
    await pass(0);
    expect(maybe("traffic-details")).toBeNull();
    expect(document.activeElement).toBe(at("traffic"));
  });

  test("thousands of lines are a screenful in the page, and only so many are kept", async () => {
    const { give } = await open();
    for (let n = 0; n < 12; n++) await give(...Array.from({ length: 500 }, (_, m) => traffic(`${n}-${m}`, { path: `/${n * 500 + m}` })));
    expect(words("traffic-count")).toContain("older ones are gone");
    expect(Number.parseInt(words("traffic-count"))).toBeLessThanOrEqual(5500);
    expect(rows().length).toBeLessThan(130);
    expect(texts().at(-1)).toContain("/5999");
    expect(at("traffic").getAttribute("aria-rowcount")).toBe(String(Number.parseInt(words("traffic-count")) + 1));
    // Whoever scrolls up reads: nothing moves under their eyes.
    at("traffic").scrollTop = 28 * 2000;
    at("traffic").dispatchEvent(new Event("scroll"));
    await tick();
    expect(at("traffic-follow").getAttribute("aria-pressed")).toBe("false");
    const seen = texts()[10];
    await give(traffic("last", { path: "/last" }));
    expect(texts()[10]).toBe(seen);
    at("traffic-follow").click();
    await tick();
    expect(texts().at(-1)).toContain("/last");
  }, 30_000);

  test("a window that is made larger moves the lines, and who follows goes on following", async () => {
    const { give } = await open();
    await give(...Array.from({ length: 100 }, (_, n) => traffic(`${n}`)));
    // The browser moves it as far down as it then goes, and tells of that first.
    Object.defineProperty(at("traffic"), "clientHeight", { value: 800 });
    at("traffic").scrollTop = 28 * 101 - 800;
    at("traffic").dispatchEvent(new Event("scroll"));
    await pass(0);
    expect(at("traffic-follow").getAttribute("aria-pressed")).toBe("true");
  });

  test("of what no rule let out nothing is measured", async () => {
    await open({ lines: [blocked("1", { bytesUp: 0, bytesDown: 0, ms: 1 }), traffic("2", { bytesUp: 0, bytesDown: 512, ms: 7 })] });
    const numbers = rows().map((row) => [...row.querySelectorAll(".number")].map((one) => one.textContent));
    expect(numbers).toEqual([["", "", ""], ["0", "512 B", "7"]]);
  });

  test("lines that are cut in two are whole, and what is none is passed over", async () => {
    const { stream } = await open();
    const text = new TextEncoder().encode(`${JSON.stringify(traffic("1", { path: "/grün" }))}\nnot json\n7\n${JSON.stringify(traffic("2"))}\n`);
    for (let from = 0; from < text.length; from += 31) stream().give(text.slice(from, from + 31));
    await pass(50);
    expect(rows()).toHaveLength(2);
    expect(texts()[0]).toContain("/grün");
  });

  test("a list that fails says why and is followed again; one that is left is ended", async () => {
    const { host, user, stream, app } = await open({ lines: [traffic("1")] });
    stream().fail(error("failed", "The host went away."));
    await pass(0);
    expect(words("traffic-problem")).toContain("The host went away.");
    await user.click(at("traffic-again"));
    await pass(0);
    expect(host.streams).toHaveLength(2);
    expect(maybe("traffic-problem")).toBeNull();
    app.show("boxes");
    await pass(0);
    expect(stream().ended).toBe(true);
  });

  test("the host's absence ends it, its return begins it", async () => {
    const { host, say, snapshot, stream } = await open({ lines: [traffic("1")] });
    host.goDown("gone");
    await pass(0);
    expect(stream().ended).toBe(true);
    expect(maybe("traffic-problem")).toBeNull();
    await pass(1100);
    await say({ ...snapshot, boxes: [box({ egress: "balanced" })] } as typeof snapshot);
    await pass(20);
    expect(host.streams).toHaveLength(2);
  });
});

describe("a line's details", () => {
  test("say why in the host's words, what to do, and which credentials by their names", async () => {
    const { host, user } = await open({
      lines: [
        blocked("1", { detail: "suspended", reason: "header_injection_failed" }),
        traffic("2", { injected: [{ header: "Authorization", secret: "github.token", transform: "basic" }], query: ["service=git-upload-pack", "key"] }),
      ],
    });
    host.on("explainEgress", ({ params }) => ({ line: blocked(params.event ?? ""), why: "A credential could not be put in.", hint: "agentbox egress acknowledge api.example.com" }));
    await user.click(rows()[0]!);
    await pass(0);
    expect(host.called("explainEgress").map((call) => call.params)).toEqual([{ target: TARGET, event: "1" }]);
    expect(words("why")).toBe("A credential could not be put in. Its server sent credentials back, so none is put in until you say so.");
    // The button says it, for those without a terminal.
    expect(maybe("hint")).toBeNull();
    expect(maybe("acknowledge")).not.toBeNull();
    expect(words("injected")).toBe("none put in");
    await user.click(rows()[1]!);
    await pass(0);
    expect(words("why")).toBe("A rule allows it.");
    expect(words("injected")).toBe("github.token in Authorization");
    expect(words("traffic-details")).toContain("service=git-upload-pack, key names, without values");
    expect(words("traffic-details")).toContain("at 192.0.2.7:443");
    expect(maybe("hint")).toBeNull();
    expect(host.called("explainEgress")).toHaveLength(1);
  });

  test("an explanation that fails leaves the words that are known", async () => {
    const { host, user } = await open({ lines: [blocked("1")] });
    host.on("explainEgress", () => Promise.reject(error("failed", "no such line")));
    await user.click(rows()[0]!);
    await pass(0);
    expect(words("why")).toBe("No rule speaks of this host.");
  });

  test.each([
    ["websocket_not_permitted", "agentbox egress allow a.example", "What to do: agentbox egress allow a.example Copy"],
    ["no_rule_matched", "agentbox egress allow a.example", null],
    ["denied_by_rule", "a rule denies this; do not look for another way", null],
  ] as const)("a command is for what no button does: %s", async (reason, hint, said) => {
    const { host, user } = await open({ lines: [blocked("1", { reason, bytesUp: 0 })] });
    host.on("explainEgress", ({ params }) => ({ line: blocked(params.event ?? ""), why: "Because.", hint }));
    await user.click(rows()[0]!);
    await pass(0);
    expect(maybe("hint") && words("hint")).toBe(said);
    expect(words("traffic-details").includes("nothing was sent")).toBe(reason === "no_rule_matched");
  });

  test("credentials that were held back are put in again after a question elsewhere", async () => {
    const { host, user } = await open({ lines: [traffic("1", { kind: "secret_echo", action: "noted", reason: null })] });
    let answer = (_: boolean) => {};
    host.on("acknowledgeEcho", () => new Promise<boolean>((resolve) => (answer = resolve)));
    await user.click(rows()[0]!);
    await user.click(at("acknowledge"));
    expect(words("details-said")).toContain("window of its own");
    answer(true);
    await pass(0);
    expect(host.called("acknowledgeEcho")[0]?.params).toEqual({ host: "registry.example.com" });
    expect(words("details-said")).toBe("Credentials are put in again.");
  });

  test("what no rule can let through offers none", async () => {
    await open({
      lines: (["denied_by_rule", "private_address", "secret_exfil", "not_http"] as const).map((reason, n) => blocked(String(n), { reason })),
    });
    expect(document.querySelectorAll("[data-testid^=allow-]")).toHaveLength(0);
  });
});

describe("Allow…", () => {
  const CHANGED = { file: null, added: "- host: api.example.com\n  rules: [GET]\n", widens: ["GET requests to api.example.com\u202e"], grant: null, reloaded: [] };

  async function allow(over: Partial<Traffic> = {}) {
    const opened = await open({ lines: [blocked("1", over)] });
    opened.host.on("changeEgress", () => CHANGED);
    await opened.user.click(at("allow-1"));
    await pass(0);
    const changes = () => opened.host.called("changeEgress").map((call) => call.params);
    return { ...opened, changes, last: () => changes().at(-1) as EgressChange };
  }

  test("starts with the least, and shows what it widens and the YAML before anything is kept", async () => {
    const { changes, user, host } = await allow();
    expect(changes()).toEqual([
      { target: TARGET, place: "box", host: "api.example.com", methods: ["GET"], path: "/v1/users/42", ports: [], action: "allow", seconds: 3600, dryRun: true },
    ]);
    expect(words("allow-preview")).toContain("GET requests to api.example.com⟨U+202E⟩");
    expect(words("allow-form")).toContain("- host: api.example.com");
    expect(words("allow-form")).toContain("trusted with its whole payload");
    expect(document.activeElement).toBe(at("breadth-exact"));
    let answer = (_: unknown) => {};
    host.on("changeEgress", ({ params }) => (params.dryRun ? CHANGED : new Promise((resolve) => (answer = resolve))));
    await user.click(at("allow-keep"));
    expect(words("allow-said")).toContain("window of its own");
    expect(changes().filter((one) => !one.dryRun)).toHaveLength(1);
    await user.click(at("allow-keep"));
    expect(changes().filter((one) => !one.dryRun)).toHaveLength(1);
    answer({ ...CHANGED, grant: "a".repeat(32) });
    await pass(0);
    expect(maybe("allow-form")).toBeNull();
    expect(words("network-said")).toBe("The rule is kept and holds.");
    expect(document.activeElement).toBe(at("traffic"));
    expect(host.called("egress").length).toBeGreaterThan(1);
  });

  test("wider, for the project, on another port, until the box stops", async () => {
    const { last, user } = await allow({ port: 8443, method: "POST" });
    await user.click(at("breadth-below"));
    await user.click(at("lasting-stop"));
    await pass(0);
    expect(last()).toMatchObject({ path: "/v1/users/", methods: ["POST"], ports: [8443], seconds: null, place: "box" });
    await user.click(at("breadth-host"));
    await user.click(at("place-project"));
    await pass(0);
    expect(last()).toMatchObject({ path: null, methods: ["POST"], seconds: null, place: "project", dryRun: true });
    expect(maybe("lasting-hour")).toBeNull();
  });

  test("reading is one kind of request; what was hidden or cut is in no rule", async () => {
    const { last, user } = await allow({ path: "/v1/‹redacted›/files/x" });
    expect(maybe("breadth-exact")).toBeNull();
    expect(last()).toMatchObject({ path: "/v1/", methods: ["GET", "HEAD", "OPTIONS"] });
    await user.click(at("breadth-host"));
    await pass(0);
    expect(last()).toMatchObject({ path: null, methods: ["GET", "HEAD", "OPTIONS"] });
  });

  test("a path that would be everything below it is not called exact", async () => {
    const { last } = await allow({ path: "/" });
    expect(maybe("breadth-exact")).toBeNull();
    expect(maybe("breadth-below")).toBeNull();
    expect(last()).toMatchObject({ path: null });
  });

  test("a no, and what the host refuses, are said; nothing is kept without a look at it", async () => {
    const { host, user } = await allow();
    host.on("changeEgress", ({ params }) => {
      if (params.dryRun) return CHANGED;
      throw error("failed", "Nothing was changed: you did not say yes to AgentBox's question.");
    });
    await user.click(at("allow-keep"));
    await pass(0);
    expect(words("allow-form")).toContain("you did not say yes");
    host.on("changeEgress", () => Promise.reject(error("usage", "That is no host.")));
    await user.click(at("breadth-host"));
    await pass(0);
    expect(words("allow-form")).toContain("That is no host.");
    expect((at("allow-keep") as HTMLButtonElement).disabled).toBe(true);
    await user.keyboard("{Escape}");
    await pass(0);
    expect(maybe("allow-form")).toBeNull();
    expect(document.activeElement).toBe(at("traffic"));
  });

  test("a rule that is kept and does not hold says so", async () => {
    const { host, user } = await allow();
    const problem = { code: "", layer: "project", file: "egress.yaml", path: "domains[2]", line: 7, column: 3, message: "is no host" };
    host.on("changeEgress", ({ params }) => ({
      ...CHANGED,
      reloaded: params.dryRun ? [] : [{ boxId: ID, boxName: "fix-login", applied: false, problems: [problem], revision: 3, hosts: 1, exactHosts: 1, wildcardHosts: 0 }],
    }));
    await user.click(at("allow-keep"));
    await pass(0);
    expect(words("network-said")).toBe("The rule is kept, but fix-login goes on with the policy of before: project: domains[2]: is no host (egress.yaml:7:3)");
  });

  test("is offered for what an observed box sent, in the details", async () => {
    const { user, host } = await open({ lines: [traffic("1", { reason: "observed" })] });
    host.on("changeEgress", () => CHANGED);
    expect(maybe("allow-1")).toBeNull();
    await user.click(rows()[0]!);
    expect(words("allow")).toBe("Make a rule…");
    await user.click(at("allow"));
    await pass(0);
    expect(maybe("allow-form")).not.toBeNull();
  });
});

describe("the repository's wishes", () => {
  test("are shown line by line; a no is a click, a yes is asked about elsewhere", async () => {
    const { host, user } = await open({ view: { repository: shut() } });
    expect(words("repository")).toContain("The repository asks for rules of its own");
    expect(words("repository")).toContain("9f31c02aa1");
    expect(words("repository")).toContain("added: + - host: evil⟨U+202E⟩.example");
    expect(words("repository")).toContain("removed: - - host: b.example");
    let no = (_: unknown) => {};
    host.on("answerRepository", () => new Promise((_, reject) => (no = reject)));
    await user.click(at("repository-accept"));
    expect(words("repository-said")).toContain("window of its own");
    no(error("failed", "Nothing was changed: you did not say yes to AgentBox's question."));
    await pass(0);
    expect(words("repository")).toContain("you did not say yes");
    host.on("answerRepository", ({ params }) => egress({ repository: shut({ state: params.accept ? "inForce" : "refused" }) }));
    await user.click(at("repository-refuse"));
    await pass(0);
    expect(host.called("answerRepository").map((call) => call.params)).toEqual([
      { target: TARGET, digest: "d1", accept: true },
      { target: TARGET, digest: "d1", accept: false },
    ]);
    expect(words("repository")).toContain("You refused the repository's rules");
    expect(maybe("repository-refuse")).toBeNull();
    expect(maybe("repository-accept")).not.toBeNull();
  });

  test.each([
    ["inForce", "The repository's rules hold", true],
    ["invalid", "The repository's rules cannot be read", false],
  ] as const)("%s", async (state, title, refusable) => {
    await open({ view: { repository: shut({ state }) } });
    expect(words("repository")).toContain(title);
    expect(maybe("repository-accept")).toBeNull();
    expect(maybe("repository-refuse") !== null).toBe(refusable);
  });

  test("none is nothing to show", async () => {
    await open({ view: { repository: shut({ state: "absent", diff: [] }) } });
    expect(maybe("repository")).toBeNull();
  });
});

describe("rules people made", () => {
  test("are in words, and can be removed", async () => {
    const { host, user, held } = await open({ view: { grants: [egressRule()] } });
    const id = egressRule().id;
    expect(words(`rule-${id}`)).toContain("Let fix-login read below /v1/ at api.example.com");
    expect(words(`rule-${id}`)).toContain("Allows GET, HEAD requests to https://api.example.com, below /v1/");
    await user.click(at(`remove-${id}`));
    expect(words(`confirm-${id}`)).toContain("The other rules decide from then on");
    held.view = egress();
    await user.click(at(`confirm-yes-${id}`));
    await pass(0);
    expect(host.called("revokeGrant").map((call) => call.params)).toEqual([{ id }]);
    expect(maybe(`rule-${id}`)).toBeNull();
    expect(words("network-said")).toBe("The rule is removed.");
    expect(words("no-grants")).toContain("Allow…");
  });

  test("one that is read again when the rules were", async () => {
    const { host, give } = await open();
    const before = host.called("egress").length;
    await give(traffic("r", { kind: "reload", action: "noted", reason: null, host: null }));
    expect(host.called("egress").length).toBe(before + 1);
  });
});

describe("what can be learned of it", () => {
  test("calls of agents' APIs are an estimate", async () => {
    const { host, say } = await open();
    expect(words("api-use")).toContain("estimate");
    expect(words("no-api-use")).toBe("None yet.");
    host.on("apiUse", () => [{ boxId: ID, boxName: "fix-login", api: "Anthropic", host: "api.anthropic.com", calls: 214, failed: 2, bytesUp: 9_840_000, bytesDown: 1_920_000, last: Date.now() - 60_000 }]);
    await say({ type: "boxRemoved", id: "b00000009" });
    await pass(0);
    const text = words("api-use");
    for (const part of ["Anthropic", "api.anthropic.com", "214", "9.8 MB", "1 min ago", "not what a call was worth"]) expect(text).toContain(part);
    host.on("apiUse", () => Promise.reject(error("failed", "The disk is full.")));
    await say({ type: "boxRemoved", id: "b00000009" });
    await pass(0);
    expect(words("api-use")).toContain("The disk is full.");
  });

  test("a suggested policy is read and copied, never kept", async () => {
    const { host, user, app } = await open();
    host.on("suggestEgress", () => ({ text: "domains:\n  - host: a.example\n", lines: 60, notes: ["b.example: it was stopped"] }));
    await user.click(at("suggest"));
    await pass(0);
    expect(host.called("suggestEgress")[0]?.params).toEqual({ target: TARGET, since: null });
    expect(words("suggested")).toContain("Made from 60 lines of traffic.");
    expect(words("suggested")).toContain("- host: a.example");
    expect(words("suggested")).toContain("b.example: it was stopped");
    let copied = "";
    Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: async (text: string) => void (copied = text) } });
    await user.click(at("copy-The suggested policy"));
    expect(copied).toBe("domains:\n  - host: a.example\n");
    expect(host.called("changeEgress")).toEqual([]);
    host.on("suggestEgress", () => ({ text: "", lines: 0, notes: [] }));
    await user.click(at("suggest"));
    await pass(0);
    expect(words("nothing-suggested")).toBe("Nothing was recorded yet.");
    host.on("suggestEgress", () => Promise.reject(error("failed", "The disk is full.")));
    await user.click(at("suggest"));
    await pass(0);
    expect(words("suggested")).toContain("The disk is full.");
    expect(app.tab).toBe("network");
  });
});
