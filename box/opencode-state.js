// Tells the host what OpenCode is doing.
import { spawn } from "node:child_process";

let last;

function tell(state) {
  if (state === last) return;
  last = state;
  spawn("agentbox-ctl", ["agent-state", "opencode", state], { stdio: "ignore" }).on("error", () => {});
}

export const AgentboxState = async () => ({
  event: async ({ event }) => {
    if (event.type === "session.status" && event.properties.status?.type === "busy") tell("working");
    if (event.type === "session.idle") tell("done");
    if (event.type.startsWith("permission.") && !event.type.endsWith("replied")) tell("waiting");
    if (event.type === "permission.replied") tell("working");
    if (event.type === "question.asked") tell("waiting");
  },
});
