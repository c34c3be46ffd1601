// The settings people look for, with the words the host has for them.
import type { SettingView } from "../../../src/lib/bindings/SettingView";
import { setting } from "../../registry";

export const settings = (): SettingView[] => [
  setting("approvals.mode", {
    takes: { kind: "oneOf", words: ["ask", "safe"] },
    default: "ask",
    about: "Safe: writes on the box's own branch or in its folder do not ask.",
  }),
  setting("approvals.quiet", {
    takes: { kind: "hours" },
    value: "22:00-07:00",
    from: "global",
    onlyGlobal: true,
    afterRestart: true,
    about: "No dialogs and notifications then; local time.",
  }),
  setting("approvals.promptCommand", {
    takes: { kind: "words" },
    onlyGlobal: true,
    afterRestart: true,
    atTerminal: true,
    about: "A program that is asked, too, with its arguments.",
  }),
  setting("approvals.timeoutSeconds", {
    takes: { kind: "whole", least: 1, most: null },
    default: "900",
    advanced: true,
    about: "After so many seconds a question is a no.",
  }),
  setting("box.vnc", { takes: { kind: "bool" }, default: "true", about: "Boxes have a screen." }),
  setting("box.memory", { takes: { kind: "size" }, value: "8g", from: "global", about: "The memory of a new box; 0 is no limit." }),
  setting("box.cpus", { takes: { kind: "cpus" }, about: "The processors of a new box; 0 is no limit." }),
  setting("box.withEnv", { takes: { kind: "bool" }, default: "false", about: "New boxes get .env files and the like, which git ignores." }),
  setting("integrations.github.autoApproveWrites", { takes: { kind: "bool" }, default: "false", about: "The service's writes do not ask." }),
  setting("integrations.linear.autoApproveWrites", { takes: { kind: "bool" }, default: "false", about: "The service's writes do not ask." }),
  setting("integrations.notion.autoApproveWrites", { takes: { kind: "bool" }, default: "false", about: "The service's writes do not ask." }),
  setting("egress.mode", {
    takes: { kind: "oneOf", words: ["locked", "balanced", "observe", "open"] },
    default: "open",
    value: "balanced",
    from: "global",
    about: "How new boxes get out to the network.",
  }),
  setting("claude.login", { takes: { kind: "bool" }, default: "true", about: "Boxes get your login of Claude Code." }),
];
