// Boxes, questions, services and a status to start a test from.
import type { AuditRecord } from "../src/lib/bindings/AuditRecord";
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { Evidence } from "../src/lib/bindings/Evidence";
import type { Grant } from "../src/lib/bindings/Grant";
import type { HostStatus } from "../src/lib/bindings/HostStatus";
import type { IntegrationView } from "../src/lib/bindings/IntegrationView";
import type { Question } from "../src/lib/bindings/Question";
import type { SecretView } from "../src/lib/bindings/SecretView";

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
    createdAt: Date.now() - 12_000,
    expiresAt: Date.now() + 600_000,
    digest: "digest-1",
    ...over,
  };
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
