// What a box sends out, in words: modes, verdicts, reasons, and the rules a person can make of a line.
//
// Hosts and paths are a box's own words. They go through `visible` before they are shown, and through
// nothing before they are sent back: a rule is about what was asked for, not about how it looks.
import type { EgressChange } from "./bindings/EgressChange";
import type { EgressMode } from "./bindings/EgressMode";
import type { Grant } from "./bindings/Grant";
import type { InjectionFault } from "./bindings/InjectionFault";
import type { PolicyProblem } from "./bindings/PolicyProblem";
import type { Reason } from "./bindings/Reason";
import type { Traffic } from "./bindings/Traffic";
import { visible } from "./visible";
import type { Tone } from "./words";

/** From the loosest to the strictest. */
export const MODES: readonly EgressMode[] = ["open", "observe", "balanced", "locked"];

export const MODE_NAMES: Record<EgressMode, string> = {
  open: "Open",
  observe: "Observed",
  balanced: "Balanced",
  locked: "Locked",
};

/** What a mode means, as one line. */
export const MODE_WORDS: Record<EgressMode, string> = {
  open: "Every address can be reached, and nothing is recorded.",
  observe: "Every public address can be reached; everything is recorded and nothing is stopped.",
  balanced: "Package registries, agents' services and what you allowed; everything else asks you.",
  locked: "What you allowed and the services of its own agent; everything else is refused.",
};

/** The honest limit of all rules, said wherever they are made. */
export const TRUSTED =
  "A request that is allowed is trusted with its whole payload: rules limit where data goes, not what is sent.";

/** A box may do more then, so a person is asked outside of the page. */
export function isLooser(from: EgressMode, to: EgressMode): boolean {
  return MODES.indexOf(to) < MODES.indexOf(from);
}

/** It gets or loses its network, for which a running box is started again. */
export function restarts(from: EgressMode, to: EgressMode): boolean {
  return (from === "open") !== (to === "open");
}

export interface Verdict {
  symbol: string;
  words: string;
  tone: Tone;
}

const NOT_REACHED: (Reason | null)[] = ["upstream_unreachable", "upstream_tls_failed", "upstream_timeout"];

/** What became of a line: a symbol and a word, never a colour alone. */
export function verdict(line: Traffic): Verdict {
  if (line.kind === "alert" || line.kind === "secret_echo") return { symbol: "⚠", words: "Look at this", tone: "bad" };
  if (line.action === "noted") return { symbol: "ℹ", words: "Noted", tone: "calm" };
  if (line.action === "blocked") {
    const words = NOT_REACHED.includes(line.reason) ? "Not reached" : "Stopped";
    return { symbol: "✕", words, tone: "bad" };
  }
  if (line.reason === "observed") return { symbol: "◉", words: "Observed", tone: "warn" };
  if (line.reason === "approved") return { symbol: "✓", words: "You allowed", tone: "good" };
  return { symbol: "✓", words: "Allowed", tone: "good" };
}

/** As the host says it; for a line it is not asked about, or while it has not answered. */
export const REASONS: Record<Reason, string> = {
  rule_matched: "A rule allows it.",
  observed: "The box is only observed: nothing is held back.",
  approved: "You allowed it at a question.",
  host_not_allowed: "No rule speaks of this host.",
  port_not_allowed: "The host is allowed, but not by this port.",
  https_not_permitted: "The host is allowed in clear text only.",
  scheme_not_permitted: "The host is allowed, but not by this scheme.",
  no_rule_matched: "The host is known, and no rule allows this request.",
  denied_by_rule: "A rule denies it.",
  method_forbidden: "This method would send back what is put into requests.",
  ambiguous_path: "Servers could read this path in several ways.",
  authority_mismatch: "The request names another host than its connection.",
  sni_mismatch: "The handshake names another host than the tunnel.",
  not_http: "It is neither HTTP nor TLS.",
  bad_request: "The request is malformed.",
  bad_request_target: "The address in the request is malformed.",
  websocket_not_permitted: "No rule allows a WebSocket there.",
  private_address: "The name leads to an address of this computer or its network.",
  git_ref_denied: "The push would change a branch that the policy does not allow.",
  body_too_large: "The body is larger than the rule allows.",
  placeholder_misuse: "A placeholder was sent to a host that its credential is not for.",
  secret_exfil: "The request holds the value of a credential of this computer.",
  approval_denied: "You said no.",
  approval_timeout: "Nobody answered in time.",
  approval_queue_full: "The box has asked too much at once.",
  box_auth_failed: "It was sent with another box's mark.",
  too_many_connections: "The box has too many connections open.",
  policy_unavailable: "There is no policy for the box that can be read.",
  upstream_unreachable: "The server cannot be reached.",
  upstream_tls_failed: "The server's certificate is not to be trusted.",
  upstream_timeout: "The server did not answer in time.",
  header_injection_failed: "A credential could not be put in.",
};

/** Why a credential could not be put in. */
const FAULTS: Record<InjectionFault, string> = {
  existing_header_present: "The request has such a header already.",
  secret_resolver_unavailable: "The place where credentials are kept does not answer.",
  secret_resolution_failed: "The credential is not there.",
  transform_failed: "The credential does not fit its form.",
  insecure_scheme: "The request is not encrypted.",
  secret_host_binding: "The credential is bound to other hosts.",
  suspended: "Its server sent credentials back, so none is put in until you say so.",
};

const KINDS: Partial<Record<Traffic["kind"], string>> = {
  passthrough: "Carried without being looked at.",
  reload: "The rules were read again.",
  secret_warning: "A credential needs your eye.",
  secret_echo: "The server sent a credential back; it was made unreadable on the way.",
  selftest: "The box tried whether it is walled in.",
  alert: "Something tried what it must not.",
};

/** Why, as a sentence. */
export function whyWords(line: Traffic): string {
  if (line.reason) return REASONS[line.reason] ?? visible(line.reason);
  return KINDS[line.kind] ?? "";
}

/** More about the reason: a fault in words, or what the host says, made visible. */
export function detailWords(line: Traffic): string | null {
  if (!line.detail) return null;
  return FAULTS[line.detail as InjectionFault] ?? visible(line.detail);
}

/** Credentials are held back from this line's host until a person says otherwise. */
export function isHeldBack(line: Traffic): boolean {
  return line.host !== null && (line.kind === "secret_echo" || line.detail === "suspended");
}

/** `api.example.com:8443`, with the port where it is not the usual; what else a line is about. */
export function authority(line: Traffic): string {
  if (line.host === null) return line.detail ? visible(line.detail) : (KINDS[line.kind] ?? "");
  return visible(`${line.host}${portOf(line)}`);
}

/** `api.example.com/v1/x` */
export function address(line: Traffic): string {
  return `${authority(line)}${visible(line.path ?? "")}`;
}

export function portOf(line: Traffic): string {
  const usual = line.scheme === "http" ? 80 : 443;
  return line.port === null || line.port === usual ? "" : `:${line.port}`;
}

/** What can be looked for in a line. */
export function matches(line: Traffic, words: string): boolean {
  const sought = words.toLowerCase();
  return [line.host, line.path, line.method, line.reason, line.rule?.origin].some((text) => text?.toLowerCase().includes(sought));
}

export function isStopped(line: Traffic): boolean {
  return line.action === "blocked";
}

// Rules of a line

/** What no rule of a person lets through, or is no matter of rules. */
const BY_RULE: (Reason | null)[] = [
  "host_not_allowed",
  "port_not_allowed",
  "https_not_permitted",
  "no_rule_matched",
  "approval_denied",
  "approval_timeout",
  "approval_queue_full",
];

/** A rule could have let it through. */
export function canAllow(line: Traffic): boolean {
  return line.action === "blocked" && line.host !== null && BY_RULE.includes(line.reason);
}

/** It passed only because the box is observed: a rule can keep it passing. */
export function canKeep(line: Traffic): boolean {
  return line.action === "allowed" && line.host !== null && line.reason === "observed";
}

export type Breadth = "exact" | "below" | "host";
const READS = ["GET", "HEAD", "OPTIONS"];
/** Of a path as it was asked for: what was hidden, masked or cut on the way here has other signs in it. */
const isAsAsked = (part: string) => /^[\x21-\x7e]*$/.test(part) && !part.includes("**");

/** What a rule can be about, from the narrowest. `path` is none for every path. */
export interface Width {
  breadth: Breadth;
  methods: string[];
  path: string | null;
  words: string;
}

/** The narrowest first. A segment that was hidden cannot be part of a rule. */
export function widths(line: Traffic): Width[] {
  const { method, path } = line;
  const host = visible(line.host ?? "");
  const all: Width[] = [];
  const own = method === null || method === "CONNECT" ? null : method;
  const kind = own === null ? [] : READS.includes(own) ? READS : [own];
  const named = own === null ? "any request" : kind === READS ? "reading" : `${visible(own)} requests`;
  // One that ends with / would be everything below it.
  if (own !== null && path && isAsAsked(path) && !/[/*]$/.test(path)) {
    all.push({ breadth: "exact", methods: [own], path, words: `Exactly this: ${visible(own)} ${visible(path)}` });
  }
  const folder = path ? below(path) : null;
  if (folder !== null) all.push({ breadth: "below", methods: kind, path: folder, words: `${capital(named)} below ${visible(folder)}` });
  all.push({ breadth: "host", methods: kind, path: null, words: `${capital(named)} anywhere at ${host}` });
  return all;
}

/** The first two folders of a path that has more than them; fewer when a segment of them was hidden. */
function below(path: string): string | null {
  const folders = path.split("/").slice(1, -1).slice(0, 2);
  const hidden = folders.findIndex((folder) => !isAsAsked(folder));
  const kept = hidden < 0 ? folders : folders.slice(0, hidden);
  return kept.length > 0 ? `/${kept.join("/")}/` : null;
}

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

export type Lasting = "hour" | "stop";
const HOUR = 3600;

/** The rule the host is asked for. */
export function change(line: Traffic, width: Width, place: "box" | "project", lasting: Lasting, dryRun: boolean): EgressChange {
  return {
    target: { query: line.boxId, cwd: null },
    place,
    host: line.host ?? "",
    methods: width.methods,
    path: width.path,
    ports: line.port === null || line.port === 443 ? [] : [line.port],
    action: "allow",
    seconds: place === "box" && lasting === "hour" ? HOUR : null,
    dryRun,
  };
}

// Rules that people made

interface Kept {
  scheme?: string;
  host?: string;
  port?: number;
  methods?: string[];
  exact?: string;
  prefix?: string;
  websocket?: boolean;
  action?: string;
}

/** The rule is about requests to the network. */
export function isEgress(rule: Grant): boolean {
  return rule.method.startsWith("egress.");
}

/** What a rule about requests covers, in words; none for a text of another version. */
export function coversWords(rule: Grant): string | null {
  if (!isEgress(rule)) return null;
  let kept: Kept;
  try {
    kept = JSON.parse(rule.scope) as Kept;
  } catch {
    return null;
  }
  if (typeof kept !== "object" || kept === null || typeof kept.host !== "string") return null;
  const does = { allow: "Allows", ask: "Asks about", deny: "Denies" }[kept.action ?? ""] ?? "Covers";
  const what = kept.websocket ? "WebSockets" : Array.isArray(kept.methods) ? `${kept.methods.join(", ")} requests` : "any request";
  const usual = kept.scheme === "http" ? 80 : 443;
  const port = kept.port === undefined || kept.port === usual ? "" : `:${kept.port}`;
  const where = kept.exact !== undefined ? `, exactly ${kept.exact}` : kept.prefix !== undefined ? `, below ${kept.prefix}` : ", every path";
  return visible(`${does} ${what} to ${kept.scheme ?? "https"}://${kept.host}${port}${where}`);
}

/** `project: domains[2].rules[0].path: must start with / (egress.yaml:7:15)`, as the host prints it. */
export function problemWords(problem: PolicyProblem): string {
  const path = problem.path === "" ? "" : `${problem.path}: `;
  const at = problem.line === 0 ? problem.file : `${problem.file || "line "}${problem.file ? ":" : ""}${problem.line}:${problem.column}`;
  return visible(`${problem.layer}: ${path}${problem.message}${at === "" ? "" : ` (${at})`}`);
}
