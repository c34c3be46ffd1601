//! One call of a box under way: who asks, what the settings say, and the steps every kind of call
//! shares: the gate, host programs, the trail.

use crate::ports::{Entry, Mode, Policy};
use crate::process::{Limit, Output, ProcessError, Tool};
use crate::registration::Registration;
use crate::server::{BoxState, Shared};
use approvals::{Asker, Draft, Times};
use protocol::exit;
use protocol::question::{Answers, Evidence, Outcome, Tier};
use protocol::rpc::Envelope;
use protocol::text::visible;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a call ended before its end.
#[derive(Debug)]
pub(crate) struct Stop {
    /// What the box is told.
    pub envelope: Envelope,
    /// The trail says so already.
    pub on_record: bool,
}

impl Stop {
    /// One line on standard error.
    pub fn fail(exit_code: i32, line: impl Into<String>) -> Self {
        Self { envelope: Envelope::fail(exit_code, line), on_record: false }
    }

    pub fn denied(line: impl Into<String>) -> Self {
        Self::fail(exit::DENIED, line)
    }
}

/// The words of a program that failed on the way.
impl From<Envelope> for Stop {
    fn from(envelope: Envelope) -> Self {
        Self { envelope, on_record: false }
    }
}

impl From<ProcessError> for Stop {
    fn from(e: ProcessError) -> Self {
        let code = match &e {
            ProcessError::Missing(_) => exit::NO_PROGRAM,
            ProcessError::Spawn { .. } => exit::FAILURE,
        };
        Self::fail(code, e.to_string())
    }
}

/// Who wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Box,
    /// The person typed it on the host: there is nobody left to ask.
    Person,
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Call {
    pub shared: Arc<Shared>,
    pub state: Arc<BoxState>,
    pub method: String,
    pub origin: Origin,
    pub policy: Arc<Policy>,
    /// How often the box asked for this very call while it is under way.
    pub times: Times,
}

impl Call {
    pub fn reg(&self) -> &Registration {
        &self.state.registration
    }

    /// A question of this box about this method, to be filled in.
    pub fn draft(&self, tier: Tier, title: impl Into<String>, target: impl Into<String>) -> Draft {
        let reg = self.reg();
        Draft {
            asker: Asker {
                box_id: reg.id.clone(),
                box_name: reg.name.clone(),
                project: protocol::text::visible(&reg.project),
                project_root: reg.project_root.display().to_string(),
            },
            method: self.method.clone(),
            tier,
            title: title.into(),
            target: target.into(),
            evidence: Evidence::default(),
            warnings: Vec::new(),
            argv: Vec::new(),
            plan: String::new(),
            remember: None,
            answers: Answers::default(),
            times: self.times.clone(),
            timeout: None,
        }
    }

    /// Lets a write pass, or says why not. `safe` is why it may pass without a question when the
    /// person has chosen `approvals.mode: safe`: “own-branch push”. Nothing that loses something
    /// for good passes that way.
    pub async fn gate(&self, draft: Draft, safe: Option<&str>) -> Result<(), Stop> {
        if self.origin == Origin::Person {
            let summary = format!("Typed on the host: {}", draft.title);
            return self.note("typed", summary, serde_json::json!({ "argv": draft.argv })).await;
        }
        let by_settings = safe.filter(|_| self.policy.mode == Mode::Safe);
        if let Some(reason) = by_settings.filter(|_| draft.tier != Tier::Irreversible) {
            return self.allowed_by(&draft, &format!("safe: {reason}")).await;
        }
        let outcome = self.shared.deps.broker.ask(draft).await;
        match outcome {
            Ok(outcome) if outcome.is_yes() => Ok(()),
            Ok(outcome) => Err(self.refused_by(&outcome)),
            Err(e) => Err(Stop::denied(format!("{e}; denied."))),
        }
    }

    /// Writes down that a setting of the person's, not an answer, let this pass.
    pub async fn allowed_by(&self, draft: &Draft, reason: &str) -> Result<(), Stop> {
        let summary = format!("Allowed ({reason}): {}", draft.title);
        let data =
            serde_json::json!({ "reason": reason, "argv": draft.argv, "target": draft.target });
        self.note("allowed-by-policy", summary, data).await
    }

    fn refused_by(&self, outcome: &Outcome) -> Stop {
        let text = match outcome {
            Outcome::Expired => {
                format!("no answer within {} — denied", minutes(self.shared.deps.question_timeout))
            }
            Outcome::TooMany => {
                "too many approval requests from this box; wait and retry".to_owned()
            }
            Outcome::Muted => "the person has muted this box; denied".to_owned(),
            Outcome::Nobody => {
                "nobody is there to answer; denied. Ask the person to run 'agentbox approvals --answer'"
                    .to_owned()
            }
            Outcome::HostStopped => {
                "the host is stopping; nothing was done. Run the command again.".to_owned()
            }
            _ => "denied by user".to_owned(),
        };
        // The broker wrote down what came of its question.
        Stop { on_record: true, ..Stop::denied(text) }
    }

    /// A record of the trail before something is done: without it, it is not done.
    pub async fn note(&self, kind: &'static str, summary: String, data: Value) -> Result<(), Stop> {
        let entry = self.entry(kind, summary, data);
        let written = self.shared.deps.trail.record(entry).await;
        written.map_err(|e| Stop::fail(exit::FAILURE, format!("{e}; nothing was done.")))
    }

    /// A record of what has been done. A trail that cannot be written is told, not hidden.
    pub async fn done(&self, summary: String, data: Value, envelope: Envelope) -> Envelope {
        let entry = self.executed(&summary, data, &envelope);
        told(envelope, self.shared.deps.trail.record(entry).await)
    }

    /// The same of something that changed nothing.
    pub async fn read(&self, summary: String, data: Value, envelope: Envelope) -> Envelope {
        let entry = self.executed(&summary, data, &envelope);
        told(envelope, self.shared.deps.trail.jot(entry).await)
    }

    /// What the box is told in the end. That a call came to nothing is written down, too.
    pub async fn settle(&self, done: Result<Envelope, Stop>) -> Envelope {
        match done {
            Ok(envelope) | Err(Stop { envelope, on_record: true }) => envelope,
            Err(Stop { envelope, on_record: false }) => {
                let why = refusal_text(&envelope);
                let kind = if is_refusal(envelope.exit_code) { "refused" } else { "failed" };
                note_refusal(&self.shared, &self.state, kind, &self.method, &why).await;
                envelope
            }
        }
    }

    fn executed(&self, summary: &str, mut data: Value, envelope: &Envelope) -> Entry {
        let outcome = if envelope.exit_code == 0 { "done" } else { "failed" };
        data["method"] = self.method.clone().into();
        data["exitCode"] = envelope.exit_code.into();
        self.entry("executed", format!("{summary}: {outcome}"), data)
    }

    fn entry(&self, kind: &'static str, summary: String, data: Value) -> Entry {
        Entry { box_id: Some(self.reg().id.clone()), kind, summary, data }
    }

    /// From here on the person has said yes: the box leaving must not leave the work half done.
    pub async fn finish<F>(&self, work: F) -> Result<Envelope, Stop>
    where
        F: Future<Output = Result<Envelope, Stop>> + Send + 'static,
    {
        let broke = |e: tokio::task::JoinError| {
            Err(Stop::fail(exit::FAILURE, format!("the work broke off: {e}")))
        };
        self.shared.tasks.spawn(work).await.unwrap_or_else(broke)
    }

    /// A host program by its name. Looked up each time: what lies in a box's project is never it.
    pub fn tool(&self, name: &str) -> Result<Tool, ProcessError> {
        self.shared.tool(name)
    }

    /// The environment of one host program: the common part, and what the host has in the
    /// program's own namespace.
    pub fn env(&self, prefixes: &[&str]) -> Vec<(OsString, OsString)> {
        self.shared.env(prefixes)
    }

    /// Runs a host program for this box, away from every project. At most a few at a time.
    pub async fn run(
        &self,
        tool: &Tool,
        args: &[String],
        stdin: Option<&[u8]>,
        env: &[(OsString, OsString)],
        limit: Limit,
    ) -> Result<Output, Stop> {
        let cwd = self.empty_dir()?;
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let limit = limit.within(self.shared.deps.waits.program);
        let _place = self.state.processes.acquire().await;
        let _place_in_all = self.shared.processes.acquire().await;
        Ok(tool.feed(&cwd, &args, stdin, env, limit).await?)
    }

    /// A folder of this box's that is empty and stays so: host programs read settings from where
    /// they run.
    fn empty_dir(&self) -> Result<PathBuf, Stop> {
        let dir = self.shared.deps.scratch.join(self.reg().id.as_str());
        let made = std::fs::create_dir_all(&dir);
        made.map_err(|e| Stop::fail(exit::FAILURE, format!("cannot make {}: {e}", dir.display())))?;
        Ok(dir)
    }
}

/// A rule's no, not something that went wrong.
fn is_refusal(exit_code: i32) -> bool {
    use exit::{BAD_ENVIRONMENT, CHECKOUT_OFF, CHECKOUT_UNSAFE, DENIED, REFUSED, UNADDRESSABLE};
    [BAD_ENVIRONMENT, CHECKOUT_OFF, CHECKOUT_UNSAFE, DENIED, REFUSED, UNADDRESSABLE]
        .contains(&exit_code)
}

/// What a box was told, for the trail.
pub(crate) fn refusal_text(envelope: &Envelope) -> String {
    format!("{} (exit {})", envelope.stderr.trim_end(), envelope.exit_code)
}

/// Writes down that something was not done. A box must not be able to fill the trail: beyond so many
/// a minute they are counted, and the count goes with the next one.
pub(crate) async fn note_refusal(
    shared: &Shared,
    state: &BoxState,
    kind: &'static str,
    method: &str,
    why: &str,
) {
    if !state.refusals.take() {
        state.unwritten.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let unwritten = state.unwritten.swap(0, Ordering::Relaxed);
    let short = |text: &str| visible(text).chars().take(400).collect::<String>();
    let word = if kind == "failed" { "Failed" } else { "Refused" };
    let entry = Entry {
        box_id: Some(state.registration.id.clone()),
        kind,
        summary: format!("{word}: {}", short(why)),
        data: json!({ "method": short(method), "unwrittenBefore": unwritten }),
    };
    if let Err(e) = shared.deps.trail.jot(entry).await {
        tracing::error!("{e}");
    }
}

fn told(mut envelope: Envelope, written: Result<(), crate::TrailError>) -> Envelope {
    if let Err(e) = written {
        envelope.stderr.push_str(&format!("relay: {e}\n"));
    }
    envelope
}

/// What a host program said, without anything that looks like a credential.
pub(crate) fn envelope(output: &Output) -> Envelope {
    Envelope {
        exit_code: output.code,
        stdout: secrets::redact(&output.out()),
        stderr: secrets::redact(&output.err()),
        pushed: None,
    }
}

/// “15m”, or “90s”.
fn minutes(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_whole_minutes_or_seconds() {
        for (seconds, told) in [(15 * 60, "15m"), (60, "1m"), (90, "90s"), (1, "1s")] {
            assert_eq!(minutes(std::time::Duration::from_secs(seconds)), told);
        }
    }
}
