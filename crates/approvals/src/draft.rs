//! What the relay wants to ask, before it has an id and a clock.

use crate::Times;
use protocol::question::{Answers, Breadth, Evidence, Question, Reach, Remember, Tier};
use protocol::{BoxId, BoxName, Millis, QuestionId};
use std::time::Duration;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Asker {
    pub box_id: BoxId,
    pub box_name: BoxName,
    /// The project's folder name, and where it is.
    pub project: String,
    pub project_root: String,
}

/// A question in the making. Every string has already been made visible.
#[derive(Debug, Clone)]
pub struct Draft {
    pub asker: Asker,
    pub method: String,
    pub tier: Tier,
    pub title: String,
    pub target: String,
    pub evidence: Evidence,
    pub warnings: Vec<String>,
    pub argv: Vec<String>,
    /// What will run and is not shown whole; bound into the digest.
    pub plan: String,
    /// Absent: this can never be remembered.
    pub remember: Option<Rememberable>,
    pub answers: Answers,
    /// How often the same was asked for; it may grow while the question is open.
    pub times: Times,
    /// How long it waits for its answer, when that is not the usual time.
    pub timeout: Option<Duration>,
}

/// What a remembered yes would cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rememberable {
    pub exact: Scope,
    /// Everything of the kind, when there is such a thing.
    pub kind: Option<Scope>,
    /// Whom a rule covers, when that is no choice.
    pub only: Option<Reach>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Compared byte for byte with later questions of the same method.
    pub key: String,
    /// “push to agentbox/fix-login of github.com/acme/shop”.
    pub what: String,
}

impl Rememberable {
    pub fn scope(&self, breadth: Breadth) -> Option<&Scope> {
        match breadth {
            Breadth::Exact => Some(&self.exact),
            Breadth::Kind => self.kind.as_ref(),
        }
    }

    /// The keys of rules that would cover this.
    pub fn keys(&self) -> Vec<String> {
        std::iter::once(&self.exact).chain(&self.kind).map(|s| s.key.clone()).collect()
    }

    /// The rule in one sentence, without its end in time.
    pub fn sentence(
        &self,
        box_name: &str,
        project: &str,
        reach: Reach,
        breadth: Breadth,
    ) -> String {
        self.shown().sentence(box_name, project, reach, breadth)
    }

    pub(crate) fn shown(&self) -> Remember {
        Remember {
            exact: self.exact.what.clone(),
            kind: self.kind.as_ref().map(|s| s.what.clone()),
            only: self.only,
        }
    }
}

impl Draft {
    /// A rule may cover this question: it is rememberable and loses nothing for good.
    pub fn rememberable(&self) -> Option<&Rememberable> {
        self.remember.as_ref().filter(|_| self.tier != Tier::Irreversible)
    }

    /// The same for two drafts of one box that ask for the very same, what is not shown included.
    pub fn fingerprint(&self) -> String {
        self.clone().into_question(QuestionId::from_bytes([0; 16]), 0, 0).digest
    }

    /// How much there is to read.
    pub(crate) fn size(&self) -> usize {
        let e = &self.evidence;
        let texts = [&self.asker.project, &self.method, &self.title, &self.target];
        let facts = e.facts.iter().flat_map(|f| [&f.label, &f.value]);
        let commits = e.commits.iter().flat_map(|c| [&c.oid, &c.subject]);
        let files = e.files.iter().flat_map(|f| std::iter::once(&f.path).chain(&f.note));
        let all = texts.into_iter().chain(facts).chain(commits).chain(files);
        let all = all.chain(&e.body).chain(&e.summary).chain(&self.warnings).chain(&self.argv);
        all.map(String::len).sum()
    }

    pub(crate) fn into_question(self, id: QuestionId, now: Millis, expires_at: Millis) -> Question {
        let remember = self.rememberable().map(Rememberable::shown);
        let mut question = Question {
            id,
            box_id: self.asker.box_id,
            box_name: self.asker.box_name,
            project: self.asker.project,
            method: self.method,
            tier: self.tier,
            title: self.title,
            target: self.target,
            evidence: self.evidence,
            warnings: self.warnings,
            argv: self.argv,
            remember,
            answers: self.answers,
            times: *self.times.watch().borrow(),
            created_at: now,
            expires_at,
            digest: String::new(),
        };
        question.digest = question.digest_of(&self.plan);
        question
    }
}
