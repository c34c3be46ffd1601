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
    /// The newest commits, first lines only.
    pub commits: Vec<Commit>,
    /// How many more commits there are than `commits` lists.
    pub more_commits: u32,
    /// “5 files, +84 −12”, when there is something to count.
    pub summary: Option<String>,
    /// Risks in words: “rewrites history”, “changes CI: .github/workflows/ci.yml”.
    pub warnings: Vec<String>,
    /// The exact command the host will run, complete.
    pub argv: Vec<String>,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub expires_at: Millis,
    /// Binds an answer to what was shown.
    pub digest: String,
}

impl Question {
    /// Its title says all a person must know: a surface that shows no more may offer a yes.
    pub fn is_plain(&self) -> bool {
        self.tier == Tier::Normal && self.warnings.is_empty()
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
            self.commits,
            self.more_commits,
            self.summary,
            self.warnings,
            self.argv,
            plan
        ]);
        Sha256::digest(shown.to_string().as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// How much harm a yes can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Tier {
    /// Can be undone with some work.
    Normal,
    /// Loses something for good. Never remembered.
    Irreversible,
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
    /// Yes, and the same again from this box for so many seconds.
    #[serde(rename_all = "camelCase")]
    AllowFor {
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        seconds: u64,
    },
    Deny,
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
        }
    }
}

/// How a question ended. Everything but `Allowed` and `Granted` is a no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Outcome {
    #[serde(rename_all = "camelCase")]
    Allowed { by: Surface },
    #[serde(rename_all = "camelCase")]
    Granted { grant: GrantId },
    #[serde(rename_all = "camelCase")]
    Denied { by: Surface },
    /// Nobody answered in time.
    Expired,
    /// The command in the box ended before an answer came.
    Withdrawn,
    /// The host stopped while the question was open.
    HostStopped,
    /// The box has too many open questions.
    TooMany,
}

impl Outcome {
    pub fn is_yes(&self) -> bool {
        matches!(self, Outcome::Allowed { .. } | Outcome::Granted { .. })
    }
}

/// A remembered answer: this box may do exactly this until then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Grant {
    pub id: GrantId,
    pub box_id: BoxId,
    pub box_name: BoxName,
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
