// Tasks and services of a box, and how they hang together: each in the column after all it needs.
//
// All of it is the box's own word: names may come twice, needs may name what is not there or go round in
// a circle, and a picture comes of it all the same.
import type { BoxStatus } from "./bindings/BoxStatus";
import type { UnitState } from "./bindings/UnitState";
import { UNIT_STATES } from "./words";

export interface Unit {
  name: string;
  kind: "task" | "service";
  state: UnitState;
  needs: string[];
  blockedOn: string[];
  port: number | null;
  restarts: number;
  exitCode: number | null;
  /** It is done, or up. */
  ok: boolean;
}

export interface Node {
  name: string;
  /** None: something needs it, and it is not there. */
  unit: Unit | null;
  column: number;
  row: number;
}

/** A place in the picture. */
export type Place = Pick<Node, "column" | "row">;

export interface Edge {
  from: Node;
  to: Node;
  /** Places it passes on its way, so that it runs behind no other. */
  via: Place[];
  /** What it leads to waits for what it comes from. */
  blocks: boolean;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
  columns: number;
  rows: number;
}

/** Tasks first: services need them more often than the other way round. */
export function unitsOf(status: BoxStatus): Unit[] {
  const tasks = status.tasks.map((task): Unit => ({
    name: task.name,
    kind: "task",
    state: task.state,
    needs: task.needs ?? [],
    blockedOn: task.blockedOn ?? [],
    port: null,
    restarts: 0,
    exitCode: task.lastExitCode ?? null,
    ok: task.state === "done",
  }));
  const services = status.services.map((service): Unit => ({
    name: service.name,
    kind: "service",
    state: service.state,
    needs: service.needs ?? [],
    blockedOn: service.blockedOn ?? [],
    port: service.port ?? null,
    restarts: service.restarts ?? 0,
    exitCode: null,
    // One that nobody probes is up when it runs.
    ok: service.state === "ready" || (service.state === "running" && !service.probed),
  }));
  return [...tasks, ...services];
}

/** `waits for install, seed`, `failed, exit code 7`, `ready, port 3000`. */
export function unitWords(unit: Unit): string {
  const words = UNIT_STATES[unit.state].words;
  return [
    unit.blockedOn.length > 0 ? `${words} for ${unit.blockedOn.join(", ")}` : words,
    unit.exitCode ? `exit code ${unit.exitCode}` : "",
    unit.port !== null && unit.ok ? `port ${unit.port}` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

export function layOut(units: Unit[]): Graph {
  const nodes: Node[] = units.map((unit) => ({ name: unit.name, unit, column: 0, row: 0 }));
  const named = new Map<string, Node>();
  for (const node of nodes) if (!named.has(node.name)) named.set(node.name, node);
  for (const need of units.flatMap((unit) => unit.needs)) {
    if (named.has(need)) continue;
    const absent: Node = { name: need, unit: null, column: 0, row: 0 };
    named.set(need, absent);
    nodes.push(absent);
  }
  const filled = place(nodes, named);
  // All lines of one unit pass a column in the same place.
  const lanes = new Map<Node, Place[]>();
  const passing = (from: Node, column: number): Place => {
    const lane = lanes.get(from) ?? [];
    lanes.set(from, lane);
    const known = lane.find((one) => one.column === column);
    if (known) return known;
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    lane.push({ column, row });
    return { column, row };
  };
  const edges = nodes.flatMap((to) =>
    [...new Set(to.unit?.needs ?? [])].flatMap((need): Edge[] => {
      const from = named.get(need);
      if (!from || from === to) return [];
      const via: Place[] = [];
      for (let column = from.column + 1; column < to.column; column++) via.push(passing(from, column));
      return [{ from, to, via, blocks: to.unit?.blockedOn.includes(need) ?? false }];
    }),
  );
  return { nodes, edges, columns: filled.length, rows: Math.max(0, ...filled) };
}

/** Gives each its column and row; how many stand in each column. */
function place(nodes: Node[], named: Map<string, Node>): number[] {
  const depths = new Map<Node, number>();
  const depth = (node: Node): number => {
    const known = depths.get(node);
    if (known !== undefined) return known;
    // Whoever comes back here while it is being counted stands in a circle.
    depths.set(node, 0);
    const needs = (node.unit?.needs ?? []).map((need) => named.get(need)).filter((need) => need !== undefined && need !== node);
    const own = Math.max(-1, ...needs.map((need) => depth(need as Node))) + 1;
    depths.set(node, own);
    return own;
  };
  const filled: number[] = [];
  for (const node of nodes) {
    node.column = depth(node);
    node.row = filled[node.column] ?? 0;
    filled[node.column] = node.row + 1;
  }
  // A circle may leave a column empty.
  return Array.from(filled, (count) => count ?? 0);
}
