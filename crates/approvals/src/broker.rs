//! Pending questions and who may end them.

use crate::history::History;
use crate::{Draft, Journal, JournalError, Sink};
use protocol::question::{Grant, Outcome, Question, Surface, Verdict};
use protocol::{BoxId, GrantId, Millis, QuestionId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Numbers a person can change in the settings.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a question waits for its answer.
    pub timeout: Duration,
    /// A yes that comes sooner after the question appeared was not meant for it.
    pub grace: Duration,
    /// Open questions one box may have.
    pub per_box: usize,
    /// The longest time a yes can be remembered.
    pub longest_grant: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15 * 60),
            grace: Duration::from_millis(350),
            per_box: 5,
            longest_grant: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

/// The most a question may say, in bytes. Whoever builds one keeps far below; this is the last line.
const MAX_QUESTION: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the question is too long to be read by a person")]
    TooLarge,
    #[error("no randomness for a question id: {0}")]
    Random(String),
}

/// Why an answer was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("no such question is open: it was answered, withdrawn or expired")]
    NotPending,
    #[error("the answer was given to another version of the question")]
    DigestMismatch,
    #[error("the answer came too soon after the question appeared")]
    TooSoon,
    #[error("this question can only be answered once, not remembered")]
    NotRememberable,
}

/// Cheap to clone; all clones are one broker.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    journal: Arc<dyn Journal>,
    limits: Limits,
}

#[derive(Default)]
struct State {
    /// In the order they were asked.
    pending: Vec<Pending>,
    sinks: Vec<Arc<dyn Sink>>,
    /// By box; small, and only as many as there are boxes that asked.
    history: HashMap<BoxId, History>,
    closed: bool,
}

struct Pending {
    question: Question,
    rememberable: bool,
    asked: Instant,
    /// When the sinks got it; only the first question of a box is on screen.
    shown: Option<Instant>,
    answer: oneshot::Sender<Decided>,
}

/// What ended a question, with the rule a person asked for.
struct Decided {
    outcome: Outcome,
    remember: Option<Duration>,
}

impl Broker {
    pub fn new(journal: Arc<dyn Journal>, limits: Limits) -> Self {
        Self { inner: Arc::new(Inner { state: Mutex::default(), journal, limits }) }
    }

    /// Adds a place to show questions; it gets what is on screen elsewhere at once.
    pub fn add_sink(&self, sink: Arc<dyn Sink>) {
        let mut state = self.inner.lock();
        for pending in state.pending.iter().filter(|p| p.shown.is_some()) {
            sink.show(&pending.question);
        }
        state.sinks.push(sink);
    }

    /// Open questions, oldest first.
    pub fn pending(&self) -> Vec<Question> {
        self.inner.lock().pending.iter().map(|p| p.question.clone()).collect()
    }

    /// Asks and waits. Dropping the future withdraws the question: nobody can allow what nobody
    /// waits for.
    pub async fn ask(&self, draft: Draft) -> Result<Outcome, AskError> {
        let journal = &self.inner.journal;
        let rememberable = draft.rememberable().cloned();
        if let Some(r) = &rememberable
            && let Some(grant) = journal.grant_for(&draft.box_id, &draft.method, &r.scope).await?
        {
            return Ok(Outcome::Granted { grant: grant.id });
        }
        if draft.size() > MAX_QUESTION {
            return Err(AskError::TooLarge);
        }
        if self.inner.crowded(&draft.box_id, &draft.method) {
            return Ok(Outcome::TooMany);
        }
        let now = now();
        let id = QuestionId::from_bytes(random()?);
        let expires = now + millis(self.inner.limits.timeout);
        let question = draft.into_question(id, now, expires);
        journal.asked(&question).await?;

        let asked = Instant::now();
        let mut open = self.inner.clone().open(question.clone(), rememberable.is_some(), asked);
        let decided = tokio::select! {
            decided = &mut open.answer => decided.unwrap_or(Decided::no(Outcome::HostStopped)),
            () = tokio::time::sleep(self.inner.limits.timeout) => {
                self.inner.end(&question.id, Decided::no(Outcome::Expired));
                // An answer may have been first by a hair: then it is in the channel.
                open.answer.try_recv().unwrap_or(Decided::no(Outcome::Expired))
            }
        };
        open.settled = true;
        journal.resolved(&question.id, &decided.outcome, asked.elapsed()).await?;
        if let (Some(time), Some(r)) = (decided.remember, rememberable) {
            let grant = grant(&question, r.scope, &r.what, time)?;
            journal.remember(&grant).await?;
        }
        Ok(decided.outcome)
    }

    /// A person's answer. The first one counts.
    pub fn answer(
        &self,
        id: &QuestionId,
        digest: &str,
        verdict: Verdict,
        by: Surface,
    ) -> Result<(), AnswerError> {
        {
            let state = self.inner.lock();
            let pending = state.pending.iter().find(|p| p.question.id == *id);
            let pending = pending.ok_or(AnswerError::NotPending)?;
            if pending.question.digest != digest {
                return Err(AnswerError::DigestMismatch);
            }
            let seen_for = pending.shown.unwrap_or(pending.asked).elapsed();
            if verdict != Verdict::Deny && by.needs_grace() && seen_for < self.inner.limits.grace {
                return Err(AnswerError::TooSoon);
            }
            if matches!(verdict, Verdict::AllowFor { .. }) && !pending.rememberable {
                return Err(AnswerError::NotRememberable);
            }
        }
        let longest = self.inner.limits.longest_grant;
        let decided = match verdict {
            Verdict::Deny => Decided::no(Outcome::Denied { by }),
            Verdict::AllowOnce => Decided { outcome: Outcome::Allowed { by }, remember: None },
            Verdict::AllowFor { seconds } => Decided {
                outcome: Outcome::Allowed { by },
                remember: Some(Duration::from_secs(seconds).min(longest)),
            },
        };
        if self.inner.end(id, decided) { Ok(()) } else { Err(AnswerError::NotPending) }
    }

    /// The host stops: every open question is a no, and no new one is taken.
    pub fn close(&self) {
        let ids: Vec<QuestionId> = {
            let mut state = self.inner.lock();
            state.closed = true;
            state.pending.iter().map(|p| p.question.id.clone()).collect()
        };
        for id in ids {
            self.inner.end(&id, Decided::no(Outcome::HostStopped));
        }
    }
}

impl Decided {
    fn no(outcome: Outcome) -> Self {
        Self { outcome, remember: None }
    }
}

impl Inner {
    /// A panic elsewhere must not turn the gate into an open one, nor into a dead one.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crowded(&self, box_id: &BoxId, method: &str) -> bool {
        let mut state = self.lock();
        let history = state.history.entry(box_id.clone()).or_default();
        history.is_too_much(method, Instant::now()) || state.open_of(box_id) >= self.limits.per_box
    }

    fn open(self: Arc<Self>, question: Question, rememberable: bool, asked: Instant) -> Open {
        let (tx, rx) = oneshot::channel();
        let id = question.id.clone();
        {
            let mut state = self.lock();
            if state.closed {
                let _ = tx.send(Decided::no(Outcome::HostStopped));
            } else if state.open_of(&question.box_id) >= self.limits.per_box {
                // Several at once got past the first look.
                let _ = tx.send(Decided::no(Outcome::TooMany));
            } else {
                let box_id = question.box_id.clone();
                state.history.entry(box_id.clone()).or_default().note_asked(asked);
                let pending = Pending { question, rememberable, asked, shown: None, answer: tx };
                state.pending.push(pending);
                state.show_first(&box_id);
            }
        }
        Open { inner: self, id, asked, answer: rx, settled: false }
    }

    /// Ends a question once; false when it had ended already.
    fn end(&self, id: &QuestionId, decided: Decided) -> bool {
        let mut state = self.lock();
        let Some(at) = state.pending.iter().position(|p| p.question.id == *id) else {
            return false;
        };
        let pending = state.pending.remove(at);
        if matches!(decided.outcome, Outcome::Denied { .. }) {
            let question = &pending.question;
            let history = state.history.entry(question.box_id.clone()).or_default();
            history.note_denied(&question.method, Instant::now());
        }
        for sink in &state.sinks {
            sink.withdraw(&pending.question, &decided.outcome);
        }
        let _ = pending.answer.send(decided);
        state.show_first(&pending.question.box_id);
        true
    }
}

impl State {
    fn open_of(&self, box_id: &BoxId) -> usize {
        self.pending.iter().filter(|p| p.question.box_id == *box_id).count()
    }

    /// One question of a box is on screen at a time, the oldest: a newer one never takes the
    /// place of the one a person is about to answer.
    fn show_first(&mut self, box_id: &BoxId) {
        let Some(first) = self.pending.iter_mut().find(|p| p.question.box_id == *box_id) else {
            return;
        };
        if first.shown.is_none() {
            first.shown = Some(Instant::now());
            for sink in &self.sinks {
                sink.show(&first.question);
            }
        }
    }
}

/// Withdraws the question when the asking future is dropped.
struct Open {
    inner: Arc<Inner>,
    id: QuestionId,
    asked: Instant,
    answer: oneshot::Receiver<Decided>,
    settled: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.inner.end(&self.id, Decided::no(Outcome::Withdrawn));
        let (inner, id, open_for) = (self.inner.clone(), self.id.clone(), self.asked.elapsed());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(e) = inner.journal.resolved(&id, &Outcome::Withdrawn, open_for).await {
                tracing::error!("{e}");
            }
        });
    }
}

/// The rule a person made at a question.
fn grant(
    question: &Question,
    scope: String,
    what: &str,
    time: Duration,
) -> Result<Grant, AskError> {
    let created_at = now();
    Ok(Grant {
        id: GrantId::from_bytes(random()?),
        box_id: question.box_id.clone(),
        box_name: question.box_name.clone(),
        method: question.method.clone(),
        scope,
        sentence: format!("Let {} {what}", question.box_name),
        created_at,
        expires_at: created_at + millis(time),
    })
}

fn random() -> Result<[u8; 16], AskError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| AskError::Random(e.to_string()))?;
    Ok(bytes)
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

#[cfg(test)]
mod tests;
