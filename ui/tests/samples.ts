// Boxes, questions, services and a status to start a test from.
import type { AuditRecord } from "../src/lib/bindings/AuditRecord";
import type { BoxDetails } from "../src/lib/bindings/BoxDetails";
import type { BoxStatus } from "../src/lib/bindings/BoxStatus";
import type { BoxUsage } from "../src/lib/bindings/BoxUsage";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { EgressView } from "../src/lib/bindings/EgressView";
import type { Evidence } from "../src/lib/bindings/Evidence";
import type { Grant } from "../src/lib/bindings/Grant";
import type { HostStatus } from "../src/lib/bindings/HostStatus";
import type { IntegrationView } from "../src/lib/bindings/IntegrationView";
import type { PushedService } from "../src/lib/bindings/PushedService";
import type { PushedTask } from "../src/lib/bindings/PushedTask";
import type { Question } from "../src/lib/bindings/Question";
import type { SecretView } from "../src/lib/bindings/SecretView";
import type { Traffic } from "../src/lib/bindings/Traffic";

export function status(over: Partial<HostStatus> = {}): HostStatus {
  return {
    version: "0.1.0",
    proto: 1,
    pid: 4711,
    kind: "desktop",
    home: "/home/ada/.agentbox",
    startedAt: Date.now() - 3_600_000,
    engine: { reachable: true, detail: "Docker 27.1, API 1.46, at unix:///var/run/docker.sock", hint: null },
    notices: [],
    boxes: 0,
    questions: 0,
    quietUntil: null,
    jobs: { queued: 0, running: 0 },
    ...over,
  };
}

export function box(over: Partial<BoxView> = {}): BoxView {
  return {
    id: "b00000001",
    name: "fix-login",
    displayName: null,
    index: 1,
    project: "shop-api",
    projectRoot: "/home/ada/shop-api",
    workspace: "/home/ada/shop-api",
    state: "running",
    branch: "agentbox/fix-login",
    publish: null,
    image: "registry.example/agentbox/box:1@sha256:0123",
    createdAt: Date.now() - 7_200_000,
    questions: 0,
    mutedUntil: null,
    channel: "socket",
    agents: [],
    logins: [],
    busy: null,
    web: null,
    screen: null,
    nestedRepos: [],
    egress: "open",
    down: null,
    ...over,
  };
}

export function evidence(over: Partial<Evidence> = {}): Evidence {
  return {
    facts: [],
    commits: [
      { oid: "9f31c02", subject: "Check token expiry before refresh" },
      { oid: "1a77be4", subject: "Add test for clock skew" },
    ],
    moreCommits: 1,
    body: [],
    moreBody: 0,
    files: [],
    moreFiles: 0,
    summary: "5 files, +84 −12",
    ...over,
  };
}

export const REMEMBER = {
  exact: "push to fix-login of git.example/acme/shop-api",
  kind: "push to any branch of git.example/acme/shop-api",
  only: null,
};

export function question(over: Partial<Question> = {}): Question {
  return {
    id: "q1",
    boxId: "b00000001",
    boxName: "fix-login",
    project: "shop-api",
    method: "git.push",
    tier: "routine",
    title: "Push 3 commits to origin/fix-login",
    target: "git.example/acme/shop-api",
    evidence: evidence(),
    warnings: ["changes CI: .github/workflows/ci.yml"],
    argv: ["git", "push", "origin", "refs/agentbox/fix-login:refs/heads/fix-login"],
    remember: REMEMBER,
    answers: { yes: "Allow once", remember: "Allow and remember", without: null, no: "Deny" },
    times: 1,
    createdAt: Date.now() - 12_000,
    expiresAt: Date.now() + 600_000,
    digest: "digest-1",
    ...over,
  };
}

/** What of this computer a new box may have. */
export function files(over: Partial<Question> = {}): Question {
  return question({
    method: "carry",
    tier: "sensitive",
    title: "Copy 2 files and folders into the new box fix-login",
    target: "/home/ada/shop-api/agentbox.yaml",
    evidence: evidence({
      commits: [],
      moreCommits: 0,
      files: [
        { path: "~/.npmrc → /home/vscode/.npmrc, 0600", bytes: 1024, note: "looks like a credential" },
        { path: "~/fixtures → /home/vscode/fixtures, folder", bytes: 34_567, note: null },
      ],
      summary: "36 KB in all",
    }),
    warnings: ["sends files of this computer into the box", "looks like a credential"],
    argv: ["agentbox", "create", "/home/ada/shop-api"],
    remember: { exact: "start with copies of just ~/.npmrc, ~/fixtures", kind: null, only: "project" },
    answers: { yes: "Copy", remember: "Copy and remember", without: "Without these files", no: "Cancel" },
    ...over,
  });
}

export function service(over: Partial<IntegrationView> = {}): IntegrationView {
  return {
    service: "tracker",
    title: "Tracker",
    about: "Read issues; comment on them after asking.",
    enabled: false,
    decidedBy: "default",
    program: { name: "trk", path: "/usr/bin/trk" },
    credentials: ["tracker.token"],
    ops: [
      { name: "issue.list", write: false, summary: "List issues" },
      { name: "issue.view", write: false, summary: "Show one issue" },
      { name: "issue.comment", write: true, summary: "Comment on an issue" },
    ],
    installHint: "install trk from your distribution",
    loginHint: "run `trk login`",
    ...over,
  };
}

export function credential(over: Partial<SecretView> = {}): SecretView {
  return {
    id: "tracker.token",
    stored: true,
    usedBy: ["Tracker"],
    about: "An API key from the tracker's settings",
    keptIn: "keychain",
    setAt: Date.now() - 86_400_000,
    lastUsed: Date.now() - 300_000,
    scope: { of: "everybody" },
    hosts: [],
    ...over,
  };
}

export function rule(over: Partial<Grant> = {}): Grant {
  return {
    id: "f0".repeat(16),
    reach: "box",
    boxId: "b00000001",
    boxName: "fix-login",
    project: "shop-api",
    projectRoot: "/home/ada/shop-api",
    method: "git.push",
    scope: "git.example/acme/shop-api fix-login",
    sentence: "Let fix-login push to fix-login of git.example/acme/shop-api",
    createdAt: Date.now() - 600_000,
    expiresAt: Date.now() + 3_000_000,
    ...over,
  };
}

/** A rule about requests, as the host keeps it. */
export function egressRule(over: Partial<Grant> = {}): Grant {
  const scope = { scheme: "https", host: "api.example.com", port: 443, methods: ["GET", "HEAD"], prefix: "/v1/", action: "allow" };
  return rule({
    id: "e0".repeat(16),
    method: "egress.request",
    scope: JSON.stringify(scope),
    sentence: "Let fix-login read below /v1/ at api.example.com",
    ...over,
  });
}

export function traffic(id: string, over: Partial<Traffic> = {}): Traffic {
  return {
    id,
    at: Date.now() - 60_000,
    boxId: "b00000001",
    kind: "request",
    action: "allowed",
    reason: "rule_matched",
    scheme: "https",
    host: "registry.example.com",
    port: 443,
    method: "GET",
    path: "/left-pad",
    rule: { host: "registry.example.com", index: 0, origin: "project:egress.yaml:7" },
    status: 200,
    bytesUp: 0,
    bytesDown: 4211,
    ms: 84,
    proto: "h2/h1",
    remote: "192.0.2.7:443",
    ...over,
  };
}

/** One that was stopped, and that a rule could have let through. */
export function blocked(id: string, over: Partial<Traffic> = {}): Traffic {
  const stopped = { action: "blocked", reason: "host_not_allowed", rule: null, status: null, bytesDown: 0, ms: 1, proto: null, remote: null } as const;
  return traffic(id, { ...stopped, host: "api.example.com", path: "/v1/users/42", ...over });
}

export function egress(over: Partial<EgressView> = {}): EgressView {
  return { mode: "balanced", unavailable: null, revision: 3, hosts: 12, lastBlocked: null, injected: [], grants: [], repository: null, ...over };
}

export function record(seq: number, over: Partial<AuditRecord> = {}): AuditRecord {
  return {
    seq,
    at: Date.now() - (1000 - seq) * 60_000,
    boxId: "b00000001",
    kind: "executed",
    summary: `Did thing ${seq}`,
    data: { argv: ["git", "push"] },
    hash: "ab".repeat(32),
    ...over,
  };
}

export function usage(over: Partial<BoxUsage> = {}): BoxUsage {
  return {
    id: "b00000001",
    name: "fix-login",
    project: "shop-api",
    projectRoot: "/home/ada/shop-api",
    state: "running",
    cpuPercent: 12.4,
    memoryBytes: 340_000_000,
    memoryLimit: 4_000_000_000,
    pids: 3,
    pidsLimit: 8192,
    atLimit: [],
    diskBytes: 1_200_000,
    receivedBytes: 5000,
    sentBytes: 700,
    ...over,
  };
}

export function details(over: Partial<BoxDetails> = {}): BoxDetails {
  return {
    view: box(),
    ready: true,
    workspace: "/home/ada/shop-api",
    base: "9f31c02aa11bb22cc33dd44ee55ff66aa77bb88c",
    container: "c0ffee".repeat(10),
    startedAt: Date.now() - 3 * 3_600_000,
    endedAt: null,
    exitCode: null,
    outOfMemory: false,
    limits: { memoryBytes: 4_000_000_000, cpus: 2, pids: null },
    usage: null,
    processes: null,
    mounts: [],
    carried: [],
    units: null,
    endpoints: { web: null, vnc: null, ssh: null },
    sessions: null,
    ...over,
  };
}

export function boxService(name: string, over: Partial<PushedService> = {}): PushedService {
  return { name, state: "ready", port: null, probed: true, expose: null, blockedOn: [], needs: [], restarts: 0, ...over };
}

export function boxTask(name: string, over: Partial<PushedTask> = {}): PushedTask {
  return { name, state: "done", blockedOn: [], needs: [], lastExitCode: 0, ...over };
}

export function units(over: Partial<BoxStatus> = {}): BoxStatus {
  return { schema: 1, boxId: "b00000001", timestamp: "2026-01-01T00:00:00.000Z", services: [], tasks: [], ports: [], configError: null, ...over };
}
