//! A question to the person, and its answer.

use crate::{BoxId, BoxName, GrantId, Millis, QuestionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What one person is asked. Built by the host from the resolved plan only; every string has been
/// made visible (see [`crate::text`]) before it gets here, so a surface may show it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Question {
    pub id: QuestionId,
    pub box_id: BoxId,
    pub box_name: BoxName,
    /// The project's folder name.
    pub project: String,
    /// The relay method, for example `git.push`.
    pub method: String,
    pub tier: Tier,
    /// One sentence that starts with a verb: “Push 3 commits to origin/fix-login”.
    pub title: String,
    /// Where it goes: a remote's host and path.
    pub target: String,
    /// What a person needs to see in order to decide.
    pub evidence: Evidence,
    /// Risks in words: “rewrites history”, “changes CI: .github/workflows/ci.yml”.
    pub warnings: Vec<String>,
    /// The exact command the host will run, complete. For a call to an API, its method and address.
    pub argv: Vec<String>,
    /// What a remembered yes would cover; none when this is asked every time.
    pub remember: Option<Remember>,
    /// What can be answered. An answer that is not among these is refused.
    #[serde(default)]
    pub answers: Answers,
    /// How often the box asked for the very same while this was open.
    #[serde(default = "once")]
    pub times: u32,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub expires_at: Millis,
    /// Binds an answer to what was shown.
    pub digest: String,
}

impl Question {
    /// Its title says all a person must know, and yes or no is all they can say: a surface that shows
    /// no more may offer a yes.
    pub fn is_plain(&self) -> bool {
        self.tier == Tier::Routine && self.warnings.is_empty() && self.answers.without.is_none()
    }

    /// “asked 3 times”; none for what was asked once.
    pub fn repeated(&self) -> Option<String> {
        (self.times > 1).then(|| format!("asked {} times", self.times))
    }

    /// The digest of everything a person decides on. `plan` is what will run and cannot be shown
    /// whole, such as full object ids.
    pub fn digest_of(&self, plan: &str) -> String {
        let shown = serde_json::json!([
            self.id,
            self.box_id,
            self.method,
            self.tier,
            self.title,
            self.target,
            self.evidence,
            self.warnings,
            self.argv,
            self.answers,
            plan
        ]);
        Sha256::digest(shown.to_string().as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }
}

fn once() -> u32 {
    1
}

/// What a question can be answered with, each as it is called on a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Answers {
    /// [`Verdict::AllowOnce`]: “Allow once”, “Copy”.
    pub yes: String,
    /// [`Verdict::Remember`]: “Allow and remember”.
    pub remember: String,
    /// [`Verdict::Without`]: “Without these files”. None where there is nothing to leave out.
    pub without: Option<String>,
    /// [`Verdict::Deny`]: “Deny”, “Cancel”.
    pub no: String,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            yes: "Allow once".into(),
            remember: "Allow and remember".into(),
            without: None,
            no: "Deny".into(),
        }
    }
}

/// What backs a question up. All of it was computed by the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Evidence {
    /// Short facts in the order they are read: title, base branch, assignee.
    pub facts: Vec<Fact>,
    /// The newest commits, first lines only.
    pub commits: Vec<Commit>,
    /// How many more commits there are than `commits` lists.
    pub more_commits: u32,
    /// The text that would be published, line by line.
    pub body: Vec<String>,
    /// How many more lines there are than `body` holds.
    pub more_body: u32,
    /// Files that would be copied.
    pub files: Vec<FileLine>,
    pub more_files: u32,
    /// “5 files, +84 −12”, when there is something to count.
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Fact {
    pub label: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct FileLine {
    /// Where it would be written.
    pub path: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// “overwrites”, “runs code on this computer”, “looks like a credential”.
    pub note: Option<String>,
}

/// How much harm a yes can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Tier {
    /// Can be undone with some work.
    Routine,
    /// Others see it or rely on it: a review, a closed pull request, a file of this computer.
    Sensitive,
    /// Loses something for good. Never remembered.
    Irreversible,
}

/// What a rule made at this question could cover, as the second half of a sentence: “push to
/// agentbox/fix-login of github.com/acme/shop”.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Remember {
    pub exact: String,
    /// The same kind of thing elsewhere, when there is such a thing.
    pub kind: Option<String>,
    /// Whom a rule covers, when that is no choice: a box that is only being made has no other use of one.
    #[serde(default)]
    pub only: Option<Reach>,
}

impl Remember {
    /// Until somebody removes it, as seconds: nobody who made such a rule sees its end.
    pub const ALWAYS: u64 = 100 * 365 * 24 * 3600;

    /// Whom a rule can cover.
    pub fn allows(&self, reach: Reach) -> bool {
        self.only.is_none_or(|only| only == reach)
    }

    /// The least a rule can cover.
    pub fn least(&self) -> Reach {
        self.only.unwrap_or_default()
    }

    /// The rule in one sentence, without its end in time.
    pub fn sentence(
        &self,
        box_name: &str,
        project: &str,
        reach: Reach,
        breadth: Breadth,
    ) -> String {
        let who = match reach {
            Reach::Box => box_name.to_owned(),
            Reach::Project => format!("every box of {project}"),
            Reach::Everywhere => "every box".to_owned(),
        };
        let what = match (breadth, &self.kind) {
            (Breadth::Kind, Some(kind)) => kind,
            _ => &self.exact,
        };
        format!("Let {who} {what}")
    }
}

/// Whom a rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Reach {
    #[default]
    Box,
    Project,
    Everywhere,
}

/// How much of the same a rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Breadth {
    #[default]
    Exact,
    Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Commit {
    /// Abbreviated object id.
    pub oid: String,
    pub subject: String,
}

/// What a person can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Verdict {
    AllowOnce,
    /// Yes, and the same again for so many seconds.
    #[serde(rename_all = "camelCase")]
    Remember {
        reach: Reach,
        breadth: Breadth,
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        seconds: u64,
    },
    /// It may go on, without the files that the question lists. Only where a question offers that.
    Without,
    Deny,
}

impl Verdict {
    /// Something goes on after it, so it must have been meant: a yes, whole or in part.
    pub fn lets_go_on(self) -> bool {
        self != Verdict::Deny
    }
}

/// Where an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Surface {
    Dialog,
    Notification,
    Window,
    Tray,
    Cli,
    /// A terminal in which questions are shown and answered as they come.
    Terminal,
    /// A program the person chose for it, such as a menu.
    PromptCommand,
}

impl Surface {
    /// A pointer or a key may already be on its way when the question appears there. A command
    /// that names the question cannot be.
    pub fn needs_grace(self) -> bool {
        self != Surface::Cli
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Surface::Dialog => "dialog",
            Surface::Notification => "notification",
            Surface::Window => "window",
            Surface::Tray => "tray",
            Surface::Cli => "cli",
            Surface::Terminal => "terminal",
            Surface::PromptCommand => "prompt-command",
        }
    }
}

/// How a question ended. Everything but `Allowed` and `Granted` is a no to what the question lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Outcome {
    #[serde(rename_all = "camelCase")]
    Allowed { by: Surface },
    #[serde(rename_all = "camelCase")]
    Granted { grant: GrantId },
    /// It goes on without the files that the question lists.
    #[serde(rename_all = "camelCase")]
    Without { by: Surface },
    #[serde(rename_all = "camelCase")]
    Denied { by: Surface },
    /// Nobody answered in time.
    Expired,
    /// The command in the box ended before an answer came.
    Withdrawn,
    /// The host stopped while the question was open.
    HostStopped,
    /// The box has too many open questions, or asked too often.
    TooMany,
    /// A person has muted the box.
    Muted,
    /// The settings say no when nobody watches, and nobody does.
    Nobody,
}

impl Outcome {
    pub fn is_yes(&self) -> bool {
        matches!(self, Outcome::Allowed { .. } | Outcome::Granted { .. })
    }

    /// Something goes on, if not all that was asked for.
    pub fn goes_on(&self) -> bool {
        self.is_yes() || matches!(self, Outcome::Without { .. })
    }
}

/// A remembered answer: these boxes may do exactly this until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Grant {
    pub id: GrantId,
    pub reach: Reach,
    /// The box at whose question it was made.
    pub box_id: BoxId,
    pub box_name: BoxName,
    /// The project of that box.
    pub project: String,
    pub project_root: String,
    pub method: String,
    /// What it covers, as the plan names it: for a push, the remote's address and the branch.
    pub scope: String,
    /// The rule in one sentence.
    pub sentence: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub expires_at: Millis,
}

impl Grant {
    /// It holds until somebody removes it.
    pub fn is_endless(&self) -> bool {
        self.expires_at.saturating_sub(self.created_at) >= Remember::ALWAYS * 1000
    }
}
