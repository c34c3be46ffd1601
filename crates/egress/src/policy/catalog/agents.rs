//! Agents, and the editors that are attached to boxes.

use super::{Credential, Gives, Put, Service, Share};
use Share::Whole;

const fn hosts(
    name: &'static str,
    about: &'static str,
    hosts: &'static [(&'static str, Share)],
) -> Service {
    Service { name, about, gives: Gives::Hosts { hosts, credentials: &[] } }
}

const fn parts(name: &'static str, about: &'static str, parts: &'static [&'static str]) -> Service {
    Service { name, about, gives: Gives::Parts(parts) }
}

pub(super) const SERVICES: &[Service] = &[
    parts(
        "claude",
        "Claude Code: API, login and telemetry.",
        &["claude-api", "claude-login", "claude-telemetry"],
    ),
    Service {
        name: "claude-api",
        about: "The API of Anthropic. Takes a credential.",
        gives: Gives::Hosts {
            hosts: &[("api.anthropic.com", Whole)],
            credentials: &[
                Credential {
                    word: "api_key",
                    host: "api.anthropic.com",
                    below: &["/v1/"],
                    header: "x-api-key",
                    how: Put::Raw,
                    env: Some("ANTHROPIC_API_KEY"),
                },
                Credential {
                    word: "oauth",
                    host: "api.anthropic.com",
                    below: &["/v1/", "/api/oauth/"],
                    header: "authorization",
                    how: Put::Bearer,
                    env: Some("CLAUDE_CODE_OAUTH_TOKEN"),
                },
            ],
        },
    },
    hosts(
        "claude-login",
        "Where Claude Code logs in and updates itself.",
        &[("*.anthropic.com", Whole), ("*.claude.ai", Whole), ("*.claude.com", Whole)],
    ),
    hosts(
        "claude-telemetry",
        "Where Claude Code reports its usage.",
        &[("statsig.anthropic.com", Whole)],
    ),
    parts(
        "codex",
        "Codex: API, login and telemetry.",
        &["codex-api", "codex-login", "codex-telemetry"],
    ),
    Service {
        name: "codex-api",
        about: "The API of OpenAI, and the one of ChatGPT that Codex uses with a login. Takes a credential.",
        gives: Gives::Hosts {
            hosts: &[("api.openai.com", Whole), ("chatgpt.com", Whole)],
            credentials: &[
                Credential {
                    word: "api_key",
                    host: "api.openai.com",
                    below: &["/v1/"],
                    header: "authorization",
                    how: Put::Bearer,
                    env: Some("OPENAI_API_KEY"),
                },
                // The program takes a login from its own file only.
                Credential {
                    word: "oauth",
                    host: "chatgpt.com",
                    below: &["/backend-api/codex/"],
                    header: "authorization",
                    how: Put::Bearer,
                    env: None,
                },
            ],
        },
    },
    hosts(
        "codex-login",
        "Where Codex logs in.",
        &[("*.openai.com", Whole), ("*.chatgpt.com", Whole)],
    ),
    hosts("codex-telemetry", "Where Codex reports its usage.", &[("ab.chatgpt.com", Whole)]),
    parts(
        "gemini",
        "Gemini CLI: API, login and telemetry.",
        &["gemini-api", "gemini-login", "gemini-telemetry"],
    ),
    Service {
        name: "gemini-api",
        about: "The API of Gemini, and the one its program uses with a login. Takes a credential.",
        gives: Gives::Hosts {
            hosts: &[
                ("generativelanguage.googleapis.com", Whole),
                ("cloudcode-pa.googleapis.com", Whole),
            ],
            credentials: &[Credential {
                word: "api_key",
                host: "generativelanguage.googleapis.com",
                below: &["/v1/", "/v1beta/"],
                header: "x-goog-api-key",
                how: Put::Raw,
                env: Some("GEMINI_API_KEY"),
            }],
        },
    },
    hosts("gemini-login", "Where Gemini CLI logs in.", &[("oauth2.googleapis.com", Whole)]),
    hosts(
        "gemini-telemetry",
        "Where Gemini CLI reports its usage.",
        &[("play.googleapis.com", Whole)],
    ),
    hosts(
        "opencode",
        "OpenCode and its list of models; add the provider's API.",
        &[("opencode.ai", Whole), ("*.opencode.ai", Whole), ("models.dev", Whole)],
    ),
    hosts("factory", "Factory's droid.", &[("api.factory.ai", Whole), ("api.workos.com", Whole)]),
    hosts(
        "copilot",
        "GitHub Copilot. Brings all of github.com unless repositories are named.",
        &[
            ("github.com", Whole),
            ("api.github.com", Whole),
            ("collector.github.com", Whole),
            ("default.exp-tas.com", Whole),
            ("copilot-proxy.githubusercontent.com", Whole),
            ("copilot-telemetry.githubusercontent.com", Whole),
            ("origin-tracker.githubusercontent.com", Whole),
            ("*.githubcopilot.com", Whole),
            ("*.individual.githubcopilot.com", Whole),
            ("*.business.githubcopilot.com", Whole),
            ("*.enterprise.githubcopilot.com", Whole),
            ("*.githubassets.com", Whole),
        ],
    ),
    hosts("hermes", "Hermes.", &[("hermes-agent.nousresearch.com", Whole)]),
    hosts("pi", "Pi. Brings no host; add the provider's API.", &[]),
    hosts(
        "vscode",
        "Visual Studio Code: updates and extensions.",
        &[
            ("update.code.visualstudio.com", Whole),
            ("marketplace.visualstudio.com", Whole),
            ("mobile.events.data.microsoft.com", Whole),
            ("main.vscode-cdn.net", Whole),
            ("*.vsassets.io", Whole),
        ],
    ),
    hosts(
        "jetbrains",
        "JetBrains' plugins.",
        &[("plugins.jetbrains.com", Whole), ("downloads.marketplace.jetbrains.com", Whole)],
    ),
    hosts(
        "jetbrains-ai",
        "JetBrains' assistant.",
        &[
            ("api.jetbrains.ai", Whole),
            ("api.app.prod.grazie.aws.intellij.net", Whole),
            ("www.jetbrains.com", Whole),
            ("account.jetbrains.com", Whole),
            ("oauth.account.jetbrains.com", Whole),
            ("frameworks.jetbrains.com", Whole),
            ("cloudconfig.jetbrains.com", Whole),
            ("download.jetbrains.com", Whole),
            ("download-cf.jetbrains.com", Whole),
            ("download-cdn.jetbrains.com", Whole),
            ("resources.jetbrains.com", Whole),
            ("cdn.agentclientprotocol.com", Whole),
        ],
    ),
];
