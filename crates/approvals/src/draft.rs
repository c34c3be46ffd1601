//! What the relay wants to ask, before it has an id and a clock.

use protocol::question::{Commit, Question, Tier};
use protocol::{BoxId, BoxName, Millis, QuestionId};

/// A question in the making. Every string has already been made visible.
#[derive(Debug, Clone)]
pub struct Draft {
    pub box_id: BoxId,
    pub box_name: BoxName,
    pub project: String,
    pub method: String,
    pub tier: Tier,
    pub title: String,
    pub target: String,
    pub commits: Vec<Commit>,
    pub more_commits: u32,
    pub summary: Option<String>,
    pub warnings: Vec<String>,
    pub argv: Vec<String>,
    /// What will run and is not shown whole; bound into the digest.
    pub plan: String,
    /// Absent: this can never be remembered.
    pub remember: Option<Rememberable>,
}

/// What a remembered yes would cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rememberable {
    /// Compared byte for byte with later questions of the same box and method.
    pub scope: String,
    /// “push to agentbox/fix-login of github.com/acme/shop”.
    pub what: String,
}

impl Draft {
    /// A rule may cover this question: it is rememberable and loses nothing for good.
    pub fn rememberable(&self) -> Option<&Rememberable> {
        self.remember.as_ref().filter(|_| self.tier != Tier::Irreversible)
    }

    /// How much there is to read.
    pub(crate) fn size(&self) -> usize {
        let texts = [&self.project, &self.method, &self.title, &self.target];
        let commits = self.commits.iter().flat_map(|c| [&c.oid, &c.subject]);
        let all = texts.into_iter().chain(commits).chain(&self.warnings).chain(&self.argv);
        all.chain(&self.summary).map(String::len).sum()
    }

    pub(crate) fn into_question(self, id: QuestionId, now: Millis, expires_at: Millis) -> Question {
        let mut question = Question {
            id,
            box_id: self.box_id,
            box_name: self.box_name,
            project: self.project,
            method: self.method,
            tier: self.tier,
            title: self.title,
            target: self.target,
            commits: self.commits,
            more_commits: self.more_commits,
            summary: self.summary,
            warnings: self.warnings,
            argv: self.argv,
            created_at: now,
            expires_at,
            digest: String::new(),
        };
        question.digest = question.digest_of(&self.plan);
        question
    }
}
