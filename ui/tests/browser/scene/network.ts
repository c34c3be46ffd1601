// What a box sends out: package registries and an agent's service pass, the rest asks or is stopped.
import type { ApiUse } from "../../../src/lib/bindings/ApiUse";
import type { EgressChanged } from "../../../src/lib/bindings/EgressChanged";
import type { EgressExplained } from "../../../src/lib/bindings/EgressExplained";
import type { EgressSuggested } from "../../../src/lib/bindings/EgressSuggested";
import type { EgressView } from "../../../src/lib/bindings/EgressView";
import type { Traffic } from "../../../src/lib/bindings/Traffic";
import * as sample from "../../samples";
import { FIX_LOGIN } from "./boxes";
import { HOUR, MINUTE, NOW } from "./clock";

const rule = (host: string, origin: string) => ({ host, index: 0, origin });
const NPM: Partial<Traffic> = { host: "registry.npmjs.org", rule: rule("registry.npmjs.org", "balanced") };
const AGENT: Partial<Traffic> = {
  host: "api.anthropic.com",
  method: "POST",
  path: "/v1/messages",
  bytesUp: 48_211,
  bytesDown: 9_204,
  ms: 4312,
  rule: rule("api.anthropic.com", "agent:claude"),
};
const GIT: Partial<Traffic> = {
  host: "github.com",
  path: "/acme/shop-api.git/info/refs",
  query: ["service=git-upload-pack"],
  rule: rule("github.com", "project:egress.yaml:7"),
  injected: [{ header: "Authorization", secret: "github.token", transform: "basic" }],
};

/** Oldest first, as the host gives them. */
const SENT: ((n: number) => Partial<Traffic> & { stopped?: true })[] = [
  () => AGENT,
  (n) => ({ ...NPM, path: ["/express", "/jose", "/zod", "/vitest"][n % 4] ?? "/", bytesDown: 61_400 + n * 977, ms: 41 + (n % 9) * 7 }),
  (n) => ({ ...NPM, path: `/jose/-/jose-5.${n % 9}.0.tgz`, bytesDown: 318_200, ms: 120 }),
  () => GIT,
  () => AGENT,
  () => ({ stopped: true, host: "telemetry.example.net", method: "POST", path: "/v2/batch", bytesUp: 0 }),
  () => ({ ...NPM, path: "/-/npm/v1/security/advisories/bulk", method: "POST", bytesUp: 2210, ms: 230 }),
];

const line = (n: number): Traffic => {
  const { stopped, ...over } = SENT[n % SENT.length]?.(n) ?? {};
  const at = NOW - (60 - n) * 7_310;
  const id = `t${n}`;
  return stopped ? sample.blocked(id, { boxId: FIX_LOGIN, at, ...over }) : sample.traffic(id, { boxId: FIX_LOGIN, at, ...over });
};

export const traffic = (): Traffic[] => [
  ...Array.from({ length: 56 }, (_, n) => line(n)),
  sample.traffic("t56", { ...AGENT, boxId: FIX_LOGIN, at: NOW - 29_000 }),
  sample.traffic("t57", { boxId: FIX_LOGIN, at: NOW - 21_000, host: "sessions.example.com", path: "/.well-known/jwks.json", reason: "approved", rule: null, approval: "allowed (window)" }),
  sample.blocked("t58", { boxId: FIX_LOGIN, at: NOW - 12_000, host: "api.sessions.example.com", method: "GET", path: "/v1/tenants/shop/keys/current", reason: "no_rule_matched" }),
  sample.traffic("t59", { ...NPM, boxId: FIX_LOGIN, at: NOW - 4_000, path: "/jose", bytesDown: 64_120, ms: 47 }),
];

export const said = (): string => traffic().map((one) => `${JSON.stringify(one)}\n`).join("");

export const view = (): EgressView =>
  sample.egress({
    hosts: 31,
    injected: [{ secret: "github.token", count: 14 }],
    grants: [
      sample.egressRule({
        boxId: FIX_LOGIN,
        scope: JSON.stringify({ scheme: "https", host: "sessions.example.com", port: 443, methods: ["GET", "HEAD", "OPTIONS"], prefix: "/.well-known/", action: "allow" }),
        sentence: "Let fix-login read below /.well-known/ at sessions.example.com",
        createdAt: NOW - 20 * MINUTE,
        expiresAt: NOW + 40 * MINUTE,
      }),
    ],
  });

export const explained = (id: string): EgressExplained => ({
  line: traffic().find((one) => one.id === id) ?? line(0),
  why: "The host is known, and no rule allows this request.",
  hint: "agentbox egress allow api.sessions.example.com --method GET --path /v1/tenants/shop/keys/current",
});

export const changed = (): EgressChanged => ({
  file: null,
  added: "- host: api.sessions.example.com\n  rules:\n    - methods: [GET]\n      path: { exact: /v1/tenants/shop/keys/current }\n",
  widens: ["GET requests to api.sessions.example.com, exactly /v1/tenants/shop/keys/current"],
  grant: null,
  reloaded: [],
});

export const suggested = (): EgressSuggested => ({
  text: "version: 1\ndomains:\n  - host: registry.npmjs.org\n    rules:\n      - methods: [GET]\n  - host: github.com\n    rules:\n      - methods: [GET]\n        path: { prefix: /acme/shop-api.git/ }\n",
  lines: 60,
  notes: ["telemetry.example.net: it was stopped every time"],
});

export const apiUse = (): ApiUse[] => [
  { boxId: FIX_LOGIN, boxName: "fix-login", api: "Anthropic", host: "api.anthropic.com", calls: 214, failed: 2, bytesUp: 9_840_000, bytesDown: 1_920_000, last: NOW - 29_000 },
  { boxId: FIX_LOGIN, boxName: "fix-login", api: "OpenAI", host: "api.openai.com", calls: 3, failed: 0, bytesUp: 41_000, bytesDown: 12_400, last: NOW - 4 * HOUR },
];
