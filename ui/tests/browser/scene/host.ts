// A host in which everything is as it is in the pictures, and stays so.
import type { Flowing, LongCall, StreamCall } from "../../../src/lib/backend";
import type { HostEvent } from "../../../src/lib/bindings/HostEvent";
import type { Request } from "../../../src/lib/bindings/Request";
import { FakeBackend } from "../../fake";
import * as sample from "../../samples";
import * as scene from "./boxes";
import { NOW, then } from "./clock";
import * as lists from "./lists";
import * as network from "./network";
import * as said from "./said";
import { SceneScreen } from "./screen";
import { settings } from "./settings";

export class SceneHost extends FakeBackend {
  constructor(page: string) {
    super();
    this.first = page;
    this.folders.set("/workspace", { entries: scene.files(), more: false });
    this.on("details", ({ params }) => scene.details(params.target.query ?? ""));
    this.on("units", ({ params }) => (params.target.query === scene.FIX_LOGIN ? scene.units() : null));
    this.on("agentAsks", () => []);
    this.on("sessions", () => scene.sessions());
    this.on("projects", () => scene.projects());
    this.on("lookAtFolder", () => scene.folder());
    this.on("carryPlan", () => scene.carryPlan());
    this.on("secrets", () => lists.credentials());
    this.on("integrations", () => lists.services());
    this.on("grants", () => lists.rules());
    this.on("doctor", () => lists.checks());
    this.on("settings", () => ({ project: null, settings: settings(), problems: [] }));
    this.on("egress", () => network.view());
    this.on("explainEgress", ({ params }) => network.explained(params.event ?? ""));
    this.on("changeEgress", () => network.changed());
    this.on("suggestEgress", () => network.suggested());
    this.on("apiUse", () => network.apiUse());
    this.on("audit", ({ params }) => {
      const of = params.target?.query;
      const fits = lists.activity().filter((record) => !of || record.boxId === of);
      return fits.filter((record) => record.seq > (params.after ?? 0)).slice(-params.limit);
    });
  }

  snapshot(): HostEvent {
    const boxes = scene.boxes();
    const questions = lists.questions();
    return { type: "snapshot", status: sample.status({ boxes: boxes.length, questions: questions.length }), boxes, questions };
  }

  override begin<T>(request: Request, onEvent: (event: HostEvent) => void): LongCall<T> {
    const call = super.begin<T>(request, onEvent);
    if (request.method === "followUsage") queueMicrotask(() => measured(onEvent));
    return call;
  }

  override stream(what: Flowing, onBytes: (bytes: Uint8Array) => void | Promise<void>): StreamCall {
    const call = super.stream(what, onBytes);
    const one = this.streams.at(-1);
    if ("method" in what) {
      queueMicrotask(() => one?.give(network.said()));
      return call;
    }
    if (what.kind === "screen" && one) return screen(call, one.give);
    const text = { log: said.boxLog, unitLog: said.unitLog, terminal: said.session, screen: null, unit: null }[what.kind];
    if (text) queueMicrotask(() => one?.give(text()));
    return call;
  }
}

function screen(call: StreamCall, give: (bytes: Uint8Array) => void): StreamCall {
  const server = new SceneScreen((bytes) => queueMicrotask(() => give(bytes)));
  server.begin();
  return { ...call, write: (bytes) => server.hear(bytes) };
}

/** What the lines beside the numbers show, at once. */
function measured(onEvent: (event: HostEvent) => void): void {
  const disk = { boxesBytes: 3_200_000_000, imagesBytes: 2_900_000_000, freeBytes: 148_000_000_000 };
  for (let turn = 0; turn < scene.MEASURED; turn++) {
    const at = NOW - (scene.MEASURED - 1 - turn) * scene.MEASURED_MS;
    then(at, () => onEvent({ type: "usage", usage: { boxes: scene.usage(turn), disk } }));
  }
}
