//! `gh run …`: workflow runs.

use super::{BRANCH, DIGITS, JSON, LOGIN, REFUSED, RepoSlug, is_digits, is_name};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Value};
use crate::refusal::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOp {
    List,
    View,
    Rerun,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    List(Parsed),
    View(RunRef, Parsed),
    /// All of it, or only what failed.
    Rerun(RunRef, bool),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    Run(String),
    Job(String),
}

const JOB: Flag = Flag::with("--job", None, DIGITS);
const AN_ID: Positionals = Positionals { least: 0, most: 1, what: "at most one run id" };
const STATUS: Value = Value::OneOf(&[
    "queued",
    "completed",
    "in_progress",
    "requested",
    "waiting",
    "pending",
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "skipped",
    "stale",
    "startup_failure",
    "success",
    "timed_out",
]);

static LIST: Grammar = Grammar {
    surface: "gh run list",
    flags: &[
        JSON,
        Flag::with("--limit", Some("-L"), Value::Number(1, 200)),
        Flag::with(
            "--workflow",
            Some("-w"),
            Value::Checked(is_workflow, "a workflow's name, file or id"),
        ),
        Flag::with("--branch", Some("-b"), BRANCH),
        Flag::with("--status", None, STATUS),
        Flag::with("--user", None, LOGIN),
    ],
    refused: REFUSED,
    positionals: Positionals::NONE,
};
static VIEW: Grammar = Grammar {
    surface: "gh run view",
    flags: &[JSON, Flag::plain("--log", None), Flag::plain("--log-failed", None), JOB],
    refused: REFUSED,
    positionals: AN_ID,
};
static RERUN: Grammar = Grammar {
    surface: "gh run rerun",
    flags: &[Flag::plain("--failed", None), JOB],
    refused: REFUSED,
    positionals: AN_ID,
};

/// `gh` writes a file's name into an address: it must stay one segment of it.
fn is_workflow(text: &str) -> bool {
    is_name(text) && !text.contains(['/', '?', '#', '%']) && !text.contains("..")
}

impl RunOp {
    pub const ALL: [RunOp; 3] = [RunOp::List, RunOp::View, RunOp::Rerun];

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.surface().rsplit(' ').next().unwrap_or_default()
    }

    pub fn surface(self) -> &'static str {
        self.grammar().surface
    }

    pub fn grammar(self) -> &'static Grammar {
        match self {
            RunOp::List => &LIST,
            RunOp::View => &VIEW,
            RunOp::Rerun => &RERUN,
        }
    }
}

impl Run {
    pub fn parse(op: RunOp, args: &[String]) -> Result<Self, Refusal> {
        let grammar = op.grammar();
        let mut parsed = grammar.parse(args)?;
        if op == RunOp::List {
            return Ok(Run::List(parsed));
        }
        let id = std::mem::take(&mut parsed.positionals).pop();
        let target = match (id, parsed.remove("--job")) {
            (Some(id), None) if is_digits(&id) => RunRef::Run(id),
            (None, Some(job)) => RunRef::Job(job),
            (Some(_), Some(_)) => return Err(grammar.refuse("give a run id or '--job', not both.")),
            _ => {
                return Err(grammar.refuse(
                    "a run id (a number) or '--job' is needed; 'gh run list' shows them.",
                ));
            }
        };
        Ok(match op {
            RunOp::Rerun => Run::Rerun(target, parsed.has("--failed")),
            _ => Run::View(target, parsed),
        })
    }

    pub fn op(&self) -> RunOp {
        match self {
            Run::List(_) => RunOp::List,
            Run::View(..) => RunOp::View,
            Run::Rerun(..) => RunOp::Rerun,
        }
    }

    /// Flags and run, written anew; [`Run::parse`] reads the same value from them.
    pub fn words(&self) -> Vec<String> {
        let (mut words, target) = match self {
            Run::List(flags) => return flags.argv(),
            Run::View(target, flags) => (flags.argv(), target),
            Run::Rerun(target, failed) => {
                (failed.then(|| "--failed".to_owned()).into_iter().collect::<Vec<_>>(), target)
            }
        };
        match target {
            RunRef::Run(id) => words.extend(["--".to_owned(), id.clone()]),
            RunRef::Job(id) => words.push(format!("--job={id}")),
        }
        words
    }

    pub fn argv(&self, repo: &RepoSlug) -> Vec<String> {
        let mut argv =
            vec!["run".to_owned(), self.op().name().to_owned(), format!("--repo={repo}")];
        argv.extend(self.words());
        argv
    }
}
