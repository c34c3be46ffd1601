// Three boxes in two projects: one whose agent works, one whose agent waits, one at rest.
import type { BoxDetails } from "../../../src/lib/bindings/BoxDetails";
import type { BoxFile } from "../../../src/lib/bindings/BoxFile";
import type { BoxStatus } from "../../../src/lib/bindings/BoxStatus";
import type { BoxUsage } from "../../../src/lib/bindings/BoxUsage";
import type { BoxView } from "../../../src/lib/bindings/BoxView";
import type { SessionView } from "../../../src/lib/bindings/SessionView";
import * as sample from "../../samples";
import { DAY, HOUR, MINUTE, NOW } from "./clock";

export const FIX_LOGIN = "b4f1c02a7";
export const AUDIT_LOG = "b9d03e51c";
const NEW_THEME = "b2270fa86";
const SHOP = "/home/ada/shop-api";
const DOCS = "/home/ada/docs-site";
const IMAGE = "agentbox/box:full-3f9c2a17@sha256:0123";

export const boxes = (): BoxView[] => [
  sample.box({
    id: FIX_LOGIN,
    image: IMAGE,
    createdAt: NOW - 5 * HOUR,
    questions: 1,
    agents: [{ agent: "claude", state: "working", since: NOW - 4 * MINUTE, hasLogin: true }],
    logins: ["claude"],
    web: "http://fix-login.localhost:8080",
    screen: "http://127.0.0.1:49160",
    egress: "balanced",
  }),
  sample.box({
    id: AUDIT_LOG,
    name: "audit-log",
    index: 2,
    branch: "agentbox/audit-log",
    image: IMAGE,
    createdAt: NOW - 26 * HOUR,
    questions: 1,
    agents: [{ agent: "codex", state: "waiting", since: NOW - 11 * MINUTE, hasLogin: false }],
    egress: "observe",
  }),
  sample.box({
    id: NEW_THEME,
    name: "new-theme",
    project: "docs-site",
    projectRoot: DOCS,
    workspace: DOCS,
    state: "stopped",
    branch: "agentbox/new-theme",
    image: IMAGE,
    createdAt: NOW - 3 * DAY,
  }),
];

export const projects = () => [
  { name: "shop-api", root: SHOP, boxes: 2, lastUsed: NOW - 5 * HOUR },
  { name: "docs-site", root: DOCS, boxes: 1, lastUsed: NOW - 3 * DAY },
];

/** As long as it is shown: five minutes, measured every three seconds. */
export const MEASURED = 100;
export const MEASURED_MS = 3000;

/** What boxes used at the `turn`th of [`MEASURED`] measurements. */
export function usage(turn: number): BoxUsage[] {
  const busy = turn > 35 && turn < 80;
  return [
    sample.usage({
      id: FIX_LOGIN,
      cpuPercent: (busy ? 62 : 18) + 14 * Math.sin(turn / 5) + ((turn * 37) % 11),
      memoryBytes: 1_180_000_000 + turn * 4_600_000 + ((turn * 53) % 17) * 9_000_000,
      pids: 64,
      diskBytes: 412_000_000,
      receivedBytes: 96_400_000,
      sentBytes: 2_310_000,
    }),
    sample.usage({ id: AUDIT_LOG, name: "audit-log", cpuPercent: 1 + (turn % 3), memoryBytes: 486_000_000, pids: 21 }),
  ];
}

export const units = (): BoxStatus =>
  sample.units({
    boxId: FIX_LOGIN,
    tasks: [
      sample.boxTask("install"),
      sample.boxTask("migrate", { needs: ["install", "db"] }),
      sample.boxTask("seed", { state: "failed", lastExitCode: 1, needs: ["migrate"] }),
    ],
    services: [
      sample.boxService("db", { port: 5432 }),
      sample.boxService("cache", { port: 6379 }),
      sample.boxService("api", { port: 3000, needs: ["migrate", "cache"], restarts: 1, expose: { port: 3000, as: 80 } }),
      sample.boxService("worker", { state: "waiting", needs: ["seed", "cache"], blockedOn: ["seed"] }),
    ],
    ports: [{ port: 3000, service: "api" }, { port: 5432, service: "db" }],
  });

export function details(id: string): BoxDetails {
  const view = boxes().find((box) => box.id === id) as BoxView;
  return sample.details({
    view,
    workspace: view.workspace,
    startedAt: NOW - (id === FIX_LOGIN ? 3 : 25) * HOUR,
    usage: usage(MEASURED - 1).find((one) => one.id === id) ?? null,
    mounts: [{ from: "", to: "/run/agentbox", writable: true }],
    carried: [
      {
        src: "/home/ada/.npmrc",
        dest: "/home/vscode/.npmrc",
        bytes: 214,
        hash: "0".repeat(64),
        by: "question",
        approvedAt: NOW - 5 * HOUR,
        kind: "file",
        mode: "0600",
        user: null,
        terms: null,
        warnings: ["looks like a credential"],
      },
    ],
    endpoints: { web: 49158, vnc: 49160, ssh: 49161 },
  });
}

export const sessions = (): SessionView[] => [
  { name: "claude", agent: "claude", attached: 1, createdAt: NOW - 5 * HOUR },
  { name: "shell", agent: null, attached: 0, createdAt: NOW - 2 * HOUR },
];

const entry = (kind: "file" | "folder", name: string, age: number, size = 4096): BoxFile => ({ name, kind, size, modified: NOW - age });

export const files = (): BoxFile[] => [
  entry("folder", ".git", 6 * MINUTE),
  entry("folder", ".github", 9 * DAY),
  entry("folder", "migrations", 2 * DAY),
  entry("folder", "node_modules", 5 * HOUR),
  entry("folder", "src", 6 * MINUTE),
  entry("folder", "test", 14 * MINUTE),
  entry("file", ".gitignore", 40 * DAY, 312),
  entry("file", "agentbox.yaml", 5 * HOUR, 684),
  entry("file", "package.json", 12 * MINUTE, 1870),
  entry("file", "package-lock.json", 12 * MINUTE, 289_415),
  entry("file", "README.md", 8 * DAY, 5230),
  entry("file", "tsconfig.json", 40 * DAY, 590),
];

/** What the folder of a new box looks like. */
export const folder = () => ({
  folder: SHOP,
  project: "shop-api",
  projectRoot: SHOP,
  repository: {
    current: "main",
    branches: ["main", "feature/search"],
    remoteBranches: ["origin/main", "origin/feature/search", "origin/release-4"],
    uncommitted: 2,
  },
  envFiles: [".env", "test/.env"],
  withEnv: false,
  checkpoints: [],
  limits: { memoryBytes: null, nanoCpus: null, pids: null, diskBytes: null },
});

export const carryPlan = () => ({
  files: [
    {
      src: "~/.npmrc",
      dest: "/home/vscode/.npmrc",
      kind: "file",
      bytes: 214,
      mode: "0600",
      user: null,
      notes: [],
      warnings: ["looks like a credential"],
    },
  ],
  digest: "d",
  warnings: [],
  remembered: null,
  changes: null,
});
