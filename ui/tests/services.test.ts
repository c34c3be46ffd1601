// Tasks and services of a box: the picture, the table, and the verbs.
import { describe, expect, test, vi } from "vitest";
import type { BoxStatus } from "../src/lib/bindings/BoxStatus";
import { MOST_EDGES, MOST_NODES, layOut, unitsOf } from "../src/lib/graph";
import { error } from "./fake";
import { box, boxService, boxTask, units } from "./samples";
import { at, maybe, openWindow, pass, words } from "./window";

const shop = units({
  tasks: [boxTask("install"), boxTask("seed", { state: "waiting", lastExitCode: null, needs: ["db", "install"], blockedOn: ["db"] })],
  services: [
    boxService("db", { state: "starting" }),
    boxService("web", { state: "waiting", needs: ["seed", "install"], blockedOn: ["seed"], port: 3000 }),
    boxService("docs", { state: "crashed", restarts: 4 }),
  ],
});

const places = (status: BoxStatus) => Object.fromEntries(layOut(unitsOf(status)).nodes.map((node) => [node.name, node.column]));

describe("the order", () => {
  test("each stands in the column after all it needs", () => {
    expect(places(shop)).toEqual({ install: 0, db: 0, docs: 0, seed: 1, web: 2 });
    const graph = layOut(unitsOf(shop));
    expect([graph.columns, graph.rows]).toEqual([3, 3]);
    expect(graph.edges.map((edge) => `${edge.from.name}>${edge.to.name}${edge.blocks ? "!" : ""}`)).toEqual([
      "db>seed!",
      "install>seed",
      "seed>web!",
      "install>web",
    ]);
    // No two share a place, and a long way leads past those in between.
    const taken = [...graph.nodes, ...graph.edges.flatMap((edge) => edge.via)].map((one) => `${one.column} ${one.row}`);
    expect(new Set(taken).size).toBe(6);
    expect(graph.edges[3]?.via).toEqual([{ column: 1, row: 1 }]);
  });

  test("what is needed and not there has a place of its own", () => {
    const graph = layOut(unitsOf(units({ services: [boxService("web", { needs: ["ghost"] })] })));
    expect(graph.nodes.map((node) => [node.name, node.unit === null, node.column])).toEqual([
      ["web", false, 1],
      ["ghost", true, 0],
    ]);
  });

  test("circles, names that come twice and needs of oneself end in a picture", () => {
    const status = units({
      services: [
        boxService("a", { needs: ["b"] }),
        boxService("b", { needs: ["a"] }),
        boxService("c", { needs: ["c", "a", "a"] }),
        boxService("c"),
      ],
    });
    const graph = layOut(unitsOf(status));
    expect(graph.nodes).toHaveLength(4);
    expect(graph.edges).toHaveLength(3);
    expect(layOut([])).toEqual({ nodes: [], edges: [], left: { nodes: 0, edges: 0 }, columns: 0, rows: 0 });
  });

  const many = (n: number, of: string) => Array.from({ length: n }, (_, at) => `${of}${at}`);

  test.each<[string, BoxStatus, { nodes: number; edges: number }]>([
    ["one with 10 000 needs", units({ services: [boxService("web", { needs: many(10_000, "n"), blockedOn: many(10_000, "n") })] }), { nodes: 9801, edges: 9801 }],
    ["a chain of 10 000", units({ services: many(10_000, "s").map((name, at) => boxService(name, { needs: [`s${at + 1}`] })) }), { nodes: 9800, edges: 9801 }],
    ["200 that all need each other", units({ services: many(200, "s").map((name) => boxService(name, { needs: many(200, "s") })) }), { nodes: 0, edges: 200 * 199 - 400 }],
  ])("%s: no more than one reads is laid out, in no time, and the rest is counted", (_, status, left) => {
    vi.useRealTimers();
    const all = unitsOf(status);
    const graph = layOut(all);
    // The best of some: other tests run at the same time.
    const times = Array.from({ length: 5 }, () => {
      const began = performance.now();
      layOut(all);
      return performance.now() - began;
    });
    expect(Math.min(...times)).toBeLessThan(25);
    expect(graph.nodes.length).toBeLessThanOrEqual(MOST_NODES);
    expect(graph.edges.length).toBeLessThanOrEqual(MOST_EDGES);
    expect(graph.left).toEqual(left);
  });

  test("a host that leaves out what there is not breaks nothing", () => {
    const bare = { tasks: [{ name: "t", state: "done" }], services: [{ name: "s", state: "ready" }] } as unknown as BoxStatus;
    expect(layOut(unitsOf(bare)).nodes).toHaveLength(2);
  });
});

describe("the tab", () => {
  async function open(status: BoxStatus | null, view = box()) {
    const opened = await openWindow({ first: "box/b00000001/services" });
    opened.host.on("units", () => status);
    await opened.say({ ...opened.snapshot, boxes: [view] } as typeof opened.snapshot);
    await pass(0);
    return { ...opened, stream: () => opened.host.streams.at(-1)! };
  }

  test("draws them with their states in words, what blocks, and says the same in a table", async () => {
    await open(shop);
    expect(words("node-install")).toBe("install ✓ done");
    expect(words("node-web")).toBe("web ◌ waits for seed");
    expect(at("node-web").dataset["column"]).toBe("2");
    expect(at("edge-seed-web").classList.contains("blocks")).toBe(true);
    expect(at("edge-install-seed").classList.contains("blocks")).toBe(false);
    const cells = [...at("row-web").querySelectorAll("th, td")].map((cell) => cell.textContent?.trim());
    expect(cells.slice(0, 5)).toEqual(["web", "service", "◌ waits for seed", "seed, install", "0"]);
    expect(words("row-docs")).toContain("✕ crashed");
    expect(words("row-docs")).toContain("4");
    expect(at("unit-table").querySelectorAll("tbody tr")).toHaveLength(5);
  });

  test("what is needed and not there is said, in both", async () => {
    await open(units({ services: [boxService("web", { state: "waiting", needs: ["gho\u202est"], blockedOn: ["gho\u202est"] })] }));
    expect(words("node-gho\u202est")).toBe("gho⟨U+202E⟩st ? is not there");
    expect(words("row-web")).toContain("gho⟨U+202E⟩st (is not there)");
    expect((at("node-gho\u202est") as HTMLButtonElement).disabled).toBe(true);
    expect(at("node-gho\u202est").title).toBe("gho⟨U+202E⟩st is not in agentbox.yaml");
    expect(at("node-web").title).toBe("web: waits for gho⟨U+202E⟩st");
    expect(maybe("not-drawn")).toBeNull();
  });

  test("says how much of a crowd is not drawn, and lists no more needs than one reads", async () => {
    const needs = Array.from({ length: 10_000 }, (_, at) => `n${at}`);
    await open(units({ services: [boxService("web", { state: "waiting", needs, blockedOn: needs })] }));
    expect(words("not-drawn")).toBe("Not drawn: 9801 more names and 9801 lines. The table below has every task and service.");
    expect(words("row-web")).toContain("n49 (is not there) and 9950 more");
    expect(at("node-web").title).toMatch(/n29 and 9970 more$/);
    expect(at("graph").querySelectorAll("button")).toHaveLength(200);
  });

  test("a click leads to its log", async () => {
    const { user, app, stream } = await open(shop);
    await user.click(at("log-of-web"));
    expect([app.tab, app.logOf]).toEqual(["logs", "web"]);
    await pass(50);
    expect(stream().what).toMatchObject({ kind: "unitLog", unit: "web" });
    app.show("box/b00000001/services");
    await pass(0);
    await user.click(at("node-install"));
    expect([app.tab, app.logOf]).toEqual(["logs", "install"]);
  });

  test("offers what fits, and says what came of it", async () => {
    const { user, stream, host } = await open(shop);
    const verbs = (name: string) => ["start", "stop", "restart", "run"].filter((verb) => maybe(`${verb}-unit-${name}`));
    expect([verbs("db"), verbs("docs"), verbs("install")]).toEqual([["stop", "restart"], ["start"], ["run"]]);
    expect([words("run-unit-install"), words("run-unit-seed")]).toEqual(["Run again", "Run"]);
    expect(at("run-unit-install").getAttribute("aria-label")).toBe("Run again install");

    await user.click(at("restart-unit-db"));
    expect(words("restart-unit-db")).toBe("Restarting…");
    expect((at("stop-unit-db") as HTMLButtonElement).disabled).toBe(true);
    expect(stream().what).toEqual({ kind: "unit", id: "b00000001", unit: "db", verb: "restart" });
    stream().give("db: \u001b[1mstarting\n");
    stream().finish(0);
    await pass(0);
    expect(words("said-db")).toBe("db: \\x1b[1mstarting");

    await user.click(at("run-unit-install"));
    stream().give("no such file\nsecond line\n");
    stream().finish(3);
    await pass(0);
    expect(words("said-install")).toContain("no such file second line");
    expect(at("said-install").querySelector("[role=alert]")).not.toBeNull();

    await user.click(at("start-unit-docs"));
    stream().fail(error("failed", "the box does not answer", "look at its log"));
    await pass(0);
    expect(words("said-docs")).toContain("the box does not answer look at its log");
    await user.click(at("start-unit-docs"));
    stream().finish(0);
    await pass(0);
    expect(words("said-docs")).toBe("Started.");
    await user.click(at("run-unit-install"));
    stream().finish(0);
    await pass(0);
    expect(words("said-install")).toBe("Started; its log says how it goes.");
    expect(host.streams).toHaveLength(5);
  });

  test("verbs rest while the box does not run", async () => {
    await open(shop, box({ state: "stopped" }));
    expect((at("restart-unit-db") as HTMLButtonElement).disabled).toBe(true);
  });

  test("none, mistakes, and a box that tells nothing have their words", async () => {
    const { host, say } = await open(null);
    expect(words("no-units")).toContain("has not told");
    const tell = async (status: BoxStatus) => {
      host.on("units", () => status);
      await say({ type: "unitsChanged", id: "b00000001" });
      await pass(600);
    };
    await tell(units());
    expect(words("no-units")).toContain("No tasks and no services.");
    await tell(units({ configError: "agentbox.yaml:2: bad\nagentbox.yaml:9: worse" }));
    expect(words("mistakes")).toContain("agentbox.yaml:2: bad");
    expect(maybe("graph")).toBeNull();
  });
});
