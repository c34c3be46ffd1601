//! Sessions in a box: agents and shells that go on when nobody looks.
//!
//! A session is one of tmux inside the box, known by its name; tmux is the only list of them. What
//! an agent is doing comes from the agent's own hooks, so it is the box's word: shown, never trusted.

use crate::Millis;
use crate::asks::Asks;
use crate::control::Target;
use crate::conversations::Begin;
use crate::integrations::SecretText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The agents AgentBox knows how to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Agent {
    Claude,
    Codex,
    Opencode,
}

impl Agent {
    /// In the order in which they are offered.
    pub const ALL: [Agent; 3] = [Agent::Claude, Agent::Codex, Agent::Opencode];

    /// The program, and the name of its session.
    pub fn as_str(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Opencode => "opencode",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Agent::Claude => "Claude",
            Agent::Codex => "Codex",
            Agent::Opencode => "OpenCode",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.as_str() == name)
    }

    /// Variables of the person's environment that the agent may be given: its own login and model.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Agent::Claude => &[
                "ANTHROPIC_API_KEY",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_MODEL",
                "CLAUDE_EFFORT",
            ],
            Agent::Codex => &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
            Agent::Opencode => &[
                "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY",
                "OPENROUTER_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_GENERATIVE_AI_API_KEY",
                "GOOGLE_API_KEY",
                "GROQ_API_KEY",
            ],
        }
    }
}

/// Whether a variable holds a login rather than a choice.
pub fn is_login(variable: &str) -> bool {
    variable.ends_with("_KEY") || variable.ends_with("_TOKEN")
}

/// What an agent is doing, as far as its box says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum AgentState {
    /// Started; it has not said more yet.
    Ready,
    Working,
    /// It waits for an answer or a permission.
    Waiting,
    /// It has finished what it was told to do.
    Done,
    /// It has made a plan and wants it agreed to.
    EndPlan,
    /// It asks the person something and offers options.
    Question,
    /// It makes its conversation shorter.
    Compacting,
    /// It gave up what it was told to do.
    Error,
}

impl AgentState {
    pub const ALL: [AgentState; 8] = [
        Self::Ready,
        Self::Working,
        Self::Waiting,
        Self::Done,
        Self::EndPlan,
        Self::Question,
        Self::Compacting,
        Self::Error,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            AgentState::Ready => "ready",
            AgentState::Working => "working",
            AgentState::Waiting => "waiting",
            AgentState::Done => "done",
            AgentState::EndPlan => "end-plan",
            AgentState::Question => "question",
            AgentState::Compacting => "compacting",
            AgentState::Error => "error",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// It asks something in particular: a plan or a question is open.
    pub fn asks(self) -> bool {
        matches!(self, AgentState::EndPlan | AgentState::Question)
    }

    /// It goes on only when somebody says something.
    pub fn needs_input(self) -> bool {
        self == AgentState::Waiting || self.asks()
    }

    /// It has something to do, so long as nobody lets it wait.
    pub fn is_at_work(self) -> bool {
        matches!(self, AgentState::Working | AgentState::Compacting)
    }

    /// What an agent is that was `before` and is now said to be this. Several hooks of one agent run at
    /// once, and parts of an agent go on while another asks: what they say in general does not cover
    /// what is open. `clears` says that it is open no longer.
    #[must_use]
    pub fn after(self, before: Option<AgentState>, clears: bool) -> Self {
        let general = self.is_at_work() || self == AgentState::Waiting;
        match before {
            Some(open) if open.asks() && general && !clears => open,
            // A while later every agent says that it waits.
            Some(AgentState::Error) if self == AgentState::Waiting => AgentState::Error,
            _ => self,
        }
    }

    /// After the agent's name: “Claude waits for you”.
    pub fn in_words(self) -> &'static str {
        match self {
            AgentState::Ready => "is ready",
            AgentState::Working => "works",
            AgentState::Waiting => "waits for you",
            AgentState::Done => "is done",
            AgentState::EndPlan => "has a plan for you",
            AgentState::Question => "asks you something",
            AgentState::Compacting => "is compacting",
            AgentState::Error => "stopped with an error",
        }
    }
}

/// An agent that runs in a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AgentView {
    pub agent: Agent,
    pub state: AgentState,
    /// Since when, by the host's clock.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub since: Millis,
    /// It was given a login of its own: the one credential a box may hold.
    pub has_login: bool,
}

/// The event by which a box tells what its agent does; its payload is an [`AgentReport`].
pub const AGENT_EVENT: &str = "agent-state";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    pub agent: Agent,
    /// None: its session has ended.
    pub state: Option<AgentState>,
    /// What it asked before is answered, or nobody will.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_pending: bool,
    /// The host keeps it in memory only, and no longer than the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct SessionView {
    pub name: String,
    /// The agent in it; none means a shell.
    pub agent: Option<Agent>,
    /// How many terminals show it.
    pub attached: u32,
    /// By the box's clock.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
}

/// Starts a session; one of that name must not be there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct StartSession {
    pub target: Target,
    pub what: SessionKind,
    /// The first size of its terminal.
    pub cols: u16,
    pub rows: u16,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum SessionKind {
    Agent {
        agent: Agent,
        /// Another name than the agent's own.
        name: Option<String>,
        args: Vec<String>,
        /// Variables of the person's environment; only those of [`Agent::variables`] are taken.
        env: BTreeMap<String, SecretText>,
        /// The person's own settings of the agent are brought to the box first.
        sync: bool,
        /// Whether it asks before each step, in this box from now on; none leaves that as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", ts(optional))]
        skip_permissions: Option<bool>,
        #[serde(default)]
        #[cfg_attr(feature = "bindings", ts(as = "Option<Begin>", optional))]
        begin: Begin,
    },
    Shell {
        /// `shell`, or what follows `shell-`; none takes the lowest free number.
        label: Option<String>,
        /// Without what a login shell reads first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[cfg_attr(feature = "bindings", ts(as = "Option<bool>", optional))]
        plain: bool,
    },
}

/// The name of a shell's session.
pub fn shell_session(label: &str) -> String {
    match label {
        "" | "shell" => "shell".to_owned(),
        label => format!("shell-{label}"),
    }
}

/// Whether a session of that name is a shell people made.
pub fn is_shell(name: &str) -> bool {
    (name == "shell" || name.starts_with("shell-")) && !name.ends_with("-dash")
}

/// tmux reads `.` and `:` as parts of an address and shows the rest on a line.
pub fn is_session_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=48).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_34_which_sessions_are_shells() {
        for (name, shell) in [
            ("shell", true),
            ("shell-3", true),
            ("shell-x-dash", false),
            ("claude-dash", false),
            ("claude", false),
            ("shellx", false),
        ] {
            assert_eq!(is_shell(name), shell, "{name}");
        }
        assert_eq!(shell_session("logs"), "shell-logs");
        assert_eq!(shell_session("shell"), "shell");
    }

    #[test]
    fn names_that_tmux_would_misread_are_none() {
        for bad in ["", "a:b", "a.b", "=a", "-t", "a b", "é", &"x".repeat(49)] {
            assert!(!is_session_name(bad), "{bad}");
        }
        assert!(is_session_name("claude") && is_session_name("shell-2"));
    }

    #[test]
    fn what_is_open_stays_until_it_is_cleared() {
        use AgentState::{Compacting, Done, EndPlan, Error, Question, Ready, Waiting, Working};
        for open in [EndPlan, Question] {
            for general in [Working, Waiting, Compacting] {
                assert_eq!(general.after(Some(open), false), open);
                assert_eq!(general.after(Some(open), true), general);
            }
            for ends in [Ready, Done, Error] {
                assert_eq!(ends.after(Some(open), false), ends);
            }
        }
        assert_eq!(Question.after(Some(EndPlan), false), Question);
        assert_eq!(Waiting.after(Some(Error), true), Error);
        assert_eq!(Working.after(Some(Error), false), Working);
        for before in
            [None, Some(Ready), Some(Working), Some(Waiting), Some(Done), Some(Compacting)]
        {
            for said in AgentState::ALL {
                assert_eq!(said.after(before, false), said);
            }
        }
    }

    #[test]
    fn states_are_written_as_they_are_named() {
        for state in AgentState::ALL {
            assert_eq!(serde_json::json!(state), state.as_str());
            assert_eq!(AgentState::named(state.as_str()), Some(state));
        }
    }

    #[test]
    fn logins_are_told_from_choices() {
        assert!(is_login("ANTHROPIC_API_KEY") && is_login("CLAUDE_CODE_OAUTH_TOKEN"));
        assert!(!is_login("ANTHROPIC_MODEL") && !is_login("ANTHROPIC_BASE_URL"));
    }
}
