// What people do with a task or service of a box, and what came of it.
//
// The answer is the box's own word: it is shown as text, and not more of it than one reads.
import type { StreamCall } from "./backend";
import type { BoxId } from "./bindings/BoxId";
import type { ControlError } from "./bindings/ControlError";
import type { Stream } from "./bindings/Stream";
import type { UnitVerb } from "./bindings/UnitVerb";
import type { Unit } from "./graph";
import { visible } from "./visible";
import { asControlError } from "./words";

const MOST_SAID = 4000;

export interface Doing {
  verb: UnitVerb | null;
  said: string;
  problem: ControlError | null;
}

export const VERBS: Record<UnitVerb, { name: (unit: Unit) => string; doing: string; done: string }> = {
  start: { name: () => "Start", doing: "Starting…", done: "Started." },
  stop: { name: () => "Stop", doing: "Stopping…", done: "Stopped." },
  restart: { name: () => "Restart", doing: "Restarting…", done: "Restarted." },
  run: { name: (unit) => (ran(unit) ? "Run again" : "Run"), doing: "Running…", done: "Started; its log says how it goes." },
};

function ran(unit: Unit): boolean {
  return unit.exitCode !== null || unit.state === "done" || unit.state === "failed";
}

/** States in which a service does not run, and nothing is about to run it. */
const AT_REST: Unit["state"][] = ["pending", "stopped", "crashed", "failed", "skipped"];

export class UnitVerbs {
  #doing = $state<Record<string, Doing>>({});
  readonly #stream: (what: Stream, onBytes: (bytes: Uint8Array) => void) => StreamCall;
  #left = false;

  constructor(stream: (what: Stream, onBytes: (bytes: Uint8Array) => void) => StreamCall) {
    this.#stream = stream;
  }

  of(unit: string): Doing | null {
    return Object.hasOwn(this.#doing, unit) ? (this.#doing[unit] ?? null) : null;
  }

  fitting(unit: Unit): UnitVerb[] {
    if (unit.kind === "task") return unit.state === "running" ? [] : ["run"];
    return AT_REST.includes(unit.state) ? ["start"] : ["stop", "restart"];
  }

  /** What was begun goes on in the box; nobody is told any more. */
  leave(): void {
    this.#left = true;
  }

  async act(id: BoxId, unit: string, verb: UnitVerb): Promise<void> {
    if (this.of(unit)?.verb) return;
    this.#doing[unit] = { verb, said: "", problem: null };
    const decoder = new TextDecoder();
    let text = "";
    const call = this.#stream({ kind: "unit", id, unit, verb }, (bytes) => {
      if (text.length < MOST_SAID) text += decoder.decode(bytes, { stream: true });
    });
    let end: Doing;
    try {
      const code = await call.done;
      const said = readable(text);
      const message = said === "" ? `It ended with exit code ${code}.` : said;
      end = code === 0
        ? { verb: null, said: said === "" ? VERBS[verb].done : said, problem: null }
        : { verb: null, said: "", problem: { code: "failed", message, hints: [] } };
    } catch (thrown) {
      end = { verb: null, said: "", problem: asControlError(thrown) };
    }
    if (!this.#left) this.#doing[unit] = end;
  }
}

function readable(text: string): string {
  const lines = text.slice(0, MOST_SAID).trimEnd().split("\n").map((line) => visible(line.replace(/\r$/, "")));
  return lines.join("\n").trim();
}
