// What people set up and look up: questions, the activity, credentials, services, rules, the check-up.
import type { AuditRecord } from "../../../src/lib/bindings/AuditRecord";
import type { Check } from "../../../src/lib/bindings/Check";
import type { Grant } from "../../../src/lib/bindings/Grant";
import type { IntegrationView } from "../../../src/lib/bindings/IntegrationView";
import type { Question } from "../../../src/lib/bindings/Question";
import type { SecretView } from "../../../src/lib/bindings/SecretView";
import { ALWAYS } from "../../../src/lib/remember";
import { check } from "../../registry";
import * as sample from "../../samples";
import { AUDIT_LOG, FIX_LOGIN } from "./boxes";
import { DAY, HOUR, MINUTE, NOW } from "./clock";

const REPOSITORY = "github.com/acme/shop-api";

export const questions = (): Question[] => [
  sample.question({
    boxId: FIX_LOGIN,
    target: REPOSITORY,
    evidence: sample.evidence({
      commits: [
        { oid: "9f31c02", subject: "Check token expiry before refresh" },
        { oid: "1a77be4", subject: "Add test for clock skew" },
        { oid: "c40d9e1", subject: "Run the session tests in CI" },
      ],
      moreCommits: 0,
    }),
    argv: ["git", "push", `https://${REPOSITORY}.git`, "refs/agentbox/fix-login:refs/heads/fix-login"],
    tier: "sensitive",
    // What changes CI is asked every time.
    remember: null,
    createdAt: NOW - 40_000,
  }),
  sample.question({
    id: "q2",
    boxId: AUDIT_LOG,
    boxName: "audit-log",
    title: "Comment on Linear issue SHOP-131",
    target: "linear.app/acme",
    method: "linear.comment.add",
    evidence: sample.evidence({
      commits: [],
      moreCommits: 0,
      summary: "",
      body: ["The log now keeps who changed a price, and when. Left to do: how long it is kept."],
    }),
    warnings: [],
    argv: ["linear", "issue", "comment", "add", "SHOP-131", "--body-file", "-"],
    remember: { exact: "comment on Linear issue SHOP-131", kind: "comment on Linear issues of SHOP", only: null },
    digest: "digest-2",
    createdAt: NOW - 15_000,
  }),
];

type Told = [age: number, boxId: string | null, kind: string, summary: string];

const TOLD: Told[] = [
  [15_000, AUDIT_LOG, "asked", "audit-log asks: Comment on Linear issue SHOP-131"],
  [40_000, FIX_LOGIN, "asked", "fix-login asks: Push 3 commits to origin/fix-login"],
  [6 * MINUTE, FIX_LOGIN, "executed", "gh pr view 214 --comments"],
  [11 * MINUTE, AUDIT_LOG, "refused", "git push --force is not offered to boxes"],
  [38 * MINUTE, AUDIT_LOG, "allowed-by-rule", `Allowed by a rule: Let audit-log push to audit-log of ${REPOSITORY}`],
  [39 * MINUTE, AUDIT_LOG, "executed", "Push 1 commit to origin/audit-log: done"],
  [2 * HOUR, AUDIT_LOG, "rule-made", `Rule: Let audit-log push to audit-log of ${REPOSITORY}`],
  [2 * HOUR, AUDIT_LOG, "answered", "Push 2 commits to origin/audit-log: allowed (window)"],
  [2 * HOUR, AUDIT_LOG, "asked", "audit-log asks: Push 2 commits to origin/audit-log"],
  [4 * HOUR, FIX_LOGIN, "answered", "Comment on Linear issue SHOP-118: denied (notification)"],
  [4 * HOUR, FIX_LOGIN, "asked", "fix-login asks: Comment on Linear issue SHOP-118"],
  [5 * HOUR, FIX_LOGIN, "box-created", "Box fix-login made from /home/ada/shop-api"],
  [7 * HOUR, null, "setting-changed", "Linear enabled in /home/ada/.agentbox/config.yaml"],
  [7 * HOUR, null, "credential-set", "linear.token stored in the keychain"],
  [26 * HOUR, AUDIT_LOG, "box-created", "Box audit-log made from /home/ada/shop-api"],
  [3 * DAY, null, "box-created", "Box new-theme made from /home/ada/docs-site"],
];

/** Oldest first, as the host gives them. */
export const activity = (): AuditRecord[] =>
  TOLD.map(([age, boxId, kind, summary], at) => sample.record(TOLD.length - at, { at: NOW - age, boxId, kind, summary })).reverse();

export const credentials = (): SecretView[] => [
  sample.credential({
    id: "github.token",
    usedBy: ["GitHub"],
    about: "A key for github.com that may use the project's repository: a “personal access token”",
    setAt: NOW - 60 * DAY,
    lastUsed: NOW - 6 * MINUTE,
    hosts: ["github.com", "api.github.com"],
  }),
  sample.credential({
    id: "linear.token",
    usedBy: ["Linear"],
    about: "A personal API key from linear.app/settings/account/security",
    setAt: NOW - 7 * HOUR,
    lastUsed: NOW - 4 * HOUR,
  }),
  sample.credential({
    id: "notion.token",
    stored: false,
    usedBy: ["Notion"],
    about: "The key of an internal integration from notion.so/my-integrations: its “integration secret”",
    setAt: null,
    lastUsed: null,
  }),
];

const ops = (reads: string[], writes: string[]) => [
  ...reads.map((name) => ({ name, write: false, summary: name })),
  ...writes.map((name) => ({ name, write: true, summary: name })),
];

export const services = (): IntegrationView[] => [
  sample.service({
    service: "github",
    title: "GitHub",
    about: "Read pull requests and workflow runs of the project's repository; open, comment, review and merge after asking.",
    enabled: true,
    program: { name: "gh", path: "/usr/bin/gh" },
    credentials: ["github.token"],
    ops: ops(["pr.view", "pr.list", "pr.diff", "pr.checks"], ["pr.create", "pr.comment", "pr.merge"]),
  }),
  sample.service({
    service: "linear",
    title: "Linear",
    about: "Boxes can read your Linear workspace, and ask you to write issues and comments.",
    enabled: true,
    decidedBy: "global",
    program: null,
    credentials: ["linear.token"],
    ops: ops(["issue.list", "issue.view"], ["issue.create", "issue.update", "comment.add"]),
  }),
  sample.service({
    service: "notion",
    title: "Notion",
    about: "Boxes can read what your integration sees, and ask you to write pages and comments.",
    program: { name: "ntn", path: null },
    credentials: ["notion.token"],
    ops: ops(["whoami", "api"], ["page.create", "page.update", "comment.add"]),
    installHint: "install ntn as https://developers.notion.com/cli says",
    loginHint: "store your integration's key: 'agentbox secrets set notion.token'",
  }),
];

export const rules = (): Grant[] => [
  sample.rule({
    boxId: AUDIT_LOG,
    boxName: "audit-log",
    scope: `${REPOSITORY} audit-log`,
    sentence: `Let audit-log push to audit-log of ${REPOSITORY}`,
    createdAt: NOW - 2 * HOUR,
    expiresAt: NOW + 6 * HOUR,
  }),
  sample.rule({
    id: "0f".repeat(16),
    reach: "project",
    boxId: FIX_LOGIN,
    method: "linear.comment.add",
    scope: "SHOP",
    sentence: "Let every box of shop-api comment on Linear issues of SHOP",
    createdAt: NOW - 9 * DAY,
    expiresAt: NOW - 9 * DAY + ALWAYS * 1000,
  }),
  sample.egressRule({
    boxId: FIX_LOGIN,
    scope: JSON.stringify({ scheme: "https", host: "sessions.example.com", port: 443, methods: ["GET", "HEAD", "OPTIONS"], prefix: "/.well-known/", action: "allow" }),
    sentence: "Let fix-login read below /.well-known/ at sessions.example.com",
    createdAt: NOW - 20 * MINUTE,
    expiresAt: NOW + 40 * MINUTE,
  }),
];

export const checks = (): Check[] => [
  check("system", "home", { detail: "/home/ada/.agentbox" }),
  check("system", "git", { detail: "/usr/bin/git" }),
  check("system", "settings", { detail: "readable" }),
  check("host", "host", { detail: "desktop 0.1.0, pid 4711" }),
  check("host", "updates", { level: "info", detail: "AgentBox 0.2.0 is there; this is 0.1.0", hint: "get it from `https://example.org/agentbox/0.2.0`" }),
  check("engine", "engine", { detail: "Docker 27.1, API 1.46, at unix:///var/run/docker.sock" }),
  check("engine", "box image", { detail: "agentbox/box:full-3f9c2a17" }),
  check("desktop", "keychain", { detail: "unlocked" }),
  check("relay", "approvals", { detail: "every write asks" }),
  check("programs", "gh", { detail: "/usr/bin/gh" }),
  check("programs", "ntn", { level: "info", detail: "not installed" }),
  check("integrations", "github", { detail: "gh 2.63, logged in as ada" }),
  check("integrations", "linear", { level: "warn", detail: "the credential was refused", hint: "run 'linear auth login', or store a key: 'agentbox secrets set linear.token'" }),
];
