// What boxes say: lines of a service's log, and a session of an agent.
import { NOW } from "./clock";

const LINES = 320;
const PATHS = ["/api/session", "/api/cart", "/api/products?page=2", "/api/products/1187", "/health", "/api/checkout"];

/** As the box's supervisor writes them: the time, O or E, the line. */
export function unitLog(): string {
  const lines: string[] = [];
  for (let at = 0; at < LINES; at++) {
    const time = new Date(NOW - (LINES - at) * 1370 - ((at * 211) % 700)).toISOString();
    lines.push(`${time} ${line(at)}\n`);
  }
  return lines.join("");
}

function line(at: number): string {
  if (at === 0) return "O listening on http://0.0.0.0:3000";
  if (at % 53 === 49) return "E error: refresh of session 8f02 failed: token expired 312 ms ago";
  if (at % 29 === 23) return "E warning: slow query (412 ms): SELECT * FROM sessions WHERE expires_at < now()";
  const method = at % 7 === 3 ? "POST" : "GET";
  return `O ${method} ${PATHS[at % PATHS.length]} ${at % 11 === 5 ? 304 : 200} ${3 + ((at * 13) % 41)} ms`;
}

export const boxLog = (): string => "agentbox init: vscode is now 1000:1000\nagentbox init: ready\n";

const dim = (text: string) => `\x1b[90m${text}\x1b[0m`;
const bold = (text: string) => `\x1b[1m${text}\x1b[0m`;
const green = (text: string) => `\x1b[32m${text}\x1b[0m`;
const red = (text: string) => `\x1b[31m${text}\x1b[0m`;
const blue = (text: string) => `\x1b[34m${text}\x1b[0m`;

export const session = (): string =>
  [
    `${dim(">")} fix the login test that fails now and then`,
    "",
    `${green("●")} ${bold("Read")}(test/session.test.ts)`,
    `  ${dim("└  142 lines")}`,
    "",
    `${green("●")} The token is compared with the clock after the refresh was sent, so a token that`,
    "  ends in between is used once more. I check its end first.",
    "",
    `${green("●")} ${bold("Update")}(src/session.ts)`,
    `  ${dim("└  1 line added, 1 removed")}`,
    `     ${dim("41")}    const token = await store.token(user);`,
    `     ${red("42 -  if (await refresh(token)) return token;")}`,
    `     ${green("42 +  if (token.expiresAt > now() && (await refresh(token))) return token;")}`,
    `     ${dim("43")}    return login(user);`,
    "",
    `${green("●")} ${bold("Bash")}(npm test -- session)`,
    `  ${dim("└")}  ${green("✓")} 18 passed ${dim("(2.4 s)")}`,
    "",
    `${blue("✳")} Pushing… ${dim("(waits for you: agentbox asks)")}`,
    "",
    `${dim(">")} `,
  ].join("\r\n");
