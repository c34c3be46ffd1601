// Tasks and services of a box, and how they hang together: each in the column after all it needs.
//
// All of it is the box's own word: names may come twice, needs may name what is not there or go round in
// a circle, and a picture comes of it all the same. There may be any number of them; nobody reads a picture
// of more than some hundred, so the rest is counted.
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
  /** How many of each are not in it. */
  left: { nodes: number; edges: number };
  columns: number;
  rows: number;
}

export const MOST_NODES = 200;
export const MOST_EDGES = 400;

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

/** How many names are said one after the other. */
const MOST_SAID = 30;

/** `install, seed`, and how many more when nobody would read them all. */
export function someOf(names: readonly string[]): string {
  const more = names.length - MOST_SAID;
  return more > 0 ? `${names.slice(0, MOST_SAID).join(", ")} and ${more} more` : names.join(", ");
}

/** `waits for install, seed`, `failed, exit code 7`, `ready, port 3000`. */
export function unitWords(unit: Unit): string {
  const words = UNIT_STATES[unit.state].words;
  return [
    unit.blockedOn.length > 0 ? `${words} for ${someOf(unit.blockedOn)}` : words,
    unit.exitCode ? `exit code ${unit.exitCode}` : "",
    unit.port !== null && unit.ok ? `port ${unit.port}` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}

export function layOut(units: Unit[]): Graph {
  const nodes: Node[] = units.slice(0, MOST_NODES).map((unit) => ({ name: unit.name, unit, column: 0, row: 0 }));
  const named = new Map<string, Node>();
  for (const node of nodes) if (!named.has(node.name)) named.set(node.name, node);
  // What is left out is not absent.
  const leftOut = new Set(units.slice(MOST_NODES).map((unit) => unit.name));
  const left = { nodes: units.length - nodes.length, edges: 0 };
  for (let at = MOST_NODES; at < units.length; at++) left.edges += units[at]?.needs.length ?? 0;
  const pairs: Pair[] = [];
  for (const to of [...nodes]) {
    const blocking = new Set(to.unit?.blockedOn);
    for (const need of new Set(to.unit?.needs)) {
      let from = named.get(need);
      if (!from && !leftOut.has(need)) {
        if (nodes.length < MOST_NODES) {
          from = { name: need, unit: null, column: 0, row: 0 };
          named.set(need, from);
          nodes.push(from);
        } else {
          left.nodes += 1;
          leftOut.add(need);
        }
      }
      if (from === to) continue;
      if (from && pairs.length < MOST_EDGES) pairs.push({ from, to, blocks: blocking.has(need) });
      else left.edges += 1;
    }
  }
  const filled = place(nodes, pairs);
  // All lines of one unit pass a column in the same place.
  const lanes = new Map<Node, Map<number, Place>>();
  const passing = (from: Node, column: number): Place => {
    const lane = lanes.get(from) ?? new Map<number, Place>();
    lanes.set(from, lane);
    const known = lane.get(column);
    if (known) return known;
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    const passed = { column, row };
    lane.set(column, passed);
    return passed;
  };
  const edges = pairs.map(({ from, to, blocks }): Edge => {
    const via: Place[] = [];
    for (let column = from.column + 1; column < to.column; column++) via.push(passing(from, column));
    return { from, to, via, blocks };
  });
  return { nodes, edges, left, columns: filled.length, rows: Math.max(0, ...filled) };
}

type Pair = Omit<Edge, "via">;

/** Gives each its column and row; how many stand in each column. */
function place(nodes: Node[], pairs: Pair[]): number[] {
  const needs = new Map<Node, Node[]>();
  for (const { from, to } of pairs) {
    const known = needs.get(to);
    if (known) known.push(from);
    else needs.set(to, [from]);
  }
  const depths = new Map<Node, number>();
  const depth = (node: Node): number => {
    const known = depths.get(node);
    if (known !== undefined) return known;
    // Whoever comes back here while it is being counted stands in a circle.
    depths.set(node, 0);
    const own = Math.max(-1, ...(needs.get(node) ?? []).map(depth)) + 1;
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
