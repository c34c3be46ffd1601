// Tells the host what OpenCode is doing.
import { spawn } from "node:child_process";

let last;
let failed = false;

function tell(state, asked, ...options) {
  if (state === last && !asked && options.length === 0) return;
  last = state;
  const words = ["agent-state", "opencode", state, ...options];
  const ctl = spawn("agentbox-ctl", words, { stdio: [asked ? "pipe" : "ignore", "ignore", "ignore"] });
  ctl.on("error", () => {});
  if (asked) ctl.stdin.on("error", () => {}).end(JSON.stringify({ tool_input: asked }));
}

function questions(all = []) {
  return all.map(({ question, header, options, multiple }) => ({ question, header, options, multiSelect: multiple === true }));
}

export const AgentboxState = async () => ({
  event: async ({ event }) => {
    const { type, properties } = event;
    if (type === "session.status" && properties.status?.type === "busy") {
      failed = false;
      tell("working");
    }
    // It is idle after an error too.
    if (type === "session.idle" && !failed) tell("done");
    if (type === "session.error" && properties.error?.name !== "MessageAbortedError") {
      failed = true;
      tell("error");
    }
    if (type.startsWith("permission.") && !type.endsWith("replied")) tell("waiting");
    if (type === "permission.replied") tell("working");
    if (type === "question.asked") tell("question", { questions: questions(properties.questions) }, "--hook");
    if (type === "question.replied" || type === "question.rejected") tell("working", undefined, "--clear-pending");
    if (type === "session.compacted") tell("working");
  },
  "experimental.session.compacting": async () => tell("compacting"),
});
