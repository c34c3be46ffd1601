// Boxes, questions and a status to start a test from.
import type { BoxView } from "../src/lib/bindings/BoxView";
import type { HostStatus } from "../src/lib/bindings/HostStatus";
import type { Question } from "../src/lib/bindings/Question";

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
    ...over,
  };
}

export function box(over: Partial<BoxView> = {}): BoxView {
  return {
    id: "b00000001",
    name: "fix-login",
    index: 1,
    project: "shop-api",
    projectRoot: "/home/ada/shop-api",
    state: "running",
    branch: "agentbox/fix-login",
    image: "registry.example/agentbox/box:1@sha256:0123",
    createdAt: Date.now() - 7_200_000,
    questions: 0,
    ...over,
  };
}

export function question(over: Partial<Question> = {}): Question {
  return {
    id: "q1",
    boxId: "b00000001",
    boxName: "fix-login",
    project: "shop-api",
    method: "git.push",
    tier: "normal",
    title: "Push 3 commits to origin/fix-login",
    target: "git.example/acme/shop-api",
    commits: [
      { oid: "9f31c02", subject: "Check token expiry before refresh" },
      { oid: "1a77be4", subject: "Add test for clock skew" },
    ],
    moreCommits: 1,
    summary: "5 files, +84 −12",
    warnings: ["changes CI: .github/workflows/ci.yml"],
    argv: ["git", "push", "origin", "refs/agentbox/fix-login:refs/heads/fix-login"],
    createdAt: Date.now() - 12_000,
    expiresAt: Date.now() + 600_000,
    digest: "digest-1",
    ...over,
  };
}
