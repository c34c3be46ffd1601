//! Pending questions and who may end them.

use crate::history::{History, PAUSE};
use crate::{Asker, Draft, Journal, JournalError, Rememberable, Rule, Said, Sink, Terms, Wanted};
use protocol::question::{Breadth, Grant, Outcome, Question, Remember, Surface, Tier, Verdict};
use protocol::{BoxId, BoxName, GrantId, Millis, QuestionId};
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
            longest_grant: FOR_EVER,
        }
    }
}

/// What happens to a question when nobody is there to see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenNobody {
    /// It waits for somebody until its time is over.
    #[default]
    Wait,
    /// It is a no at once.
    Deny,
}

/// The most a question may say, in bytes. Whoever builds one keeps far below; this is the last line.
const MAX_QUESTION: usize = 64 * 1024;
const FOR_EVER: Duration = Duration::from_secs(Remember::ALWAYS);

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
    #[error("a yes to this question cannot be remembered like that, only given once")]
    NotRememberable,
    #[error("this question has no such answer")]
    NotOffered,
    #[error("the screen is locked: nothing can be allowed from it")]
    Locked,
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
    /// By box and family; small, and only as many as there are boxes that asked.
    history: HashMap<(BoxId, &'static str), History>,
    muted: HashMap<BoxId, Muted>,
    when_nobody: WhenNobody,
    /// The screen is locked.
    locked: bool,
    closed: bool,
}

/// One moment on two clocks: the one that decides and the one people read.
#[derive(Clone, Copy)]
struct Muted {
    until: Instant,
    shown: Millis,
}

struct Pending {
    question: Question,
    family: &'static str,
    /// What its denial is a denial of.
    denied_as: String,
    remember: Option<Rememberable>,
    asked: Instant,
    /// When the sinks got it; only the first question of a box is on screen.
    shown: Option<Instant>,
    answer: oneshot::Sender<Decided>,
}

/// What ended a question, with the rule a person asked for.
struct Decided {
    outcome: Outcome,
    rule: Option<Rule>,
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

    pub fn set_policy(&self, when_nobody: WhenNobody) {
        self.inner.lock().when_nobody = when_nobody;
    }

    /// While the screen is locked nothing is allowed from it: whoever sits there may be anyone.
    /// When it is unlocked every yes waits anew, for the keys that unlocked it are still coming.
    pub fn set_locked(&self, locked: bool) {
        let mut state = self.inner.lock();
        state.locked = locked;
        let shown = state.pending.iter_mut().filter_map(|p| p.shown.as_mut());
        shown.for_each(|at| *at = Instant::now());
    }

    pub fn is_locked(&self) -> bool {
        self.inner.lock().locked
    }

    /// A surface that shows one question after the other shows this one now: a yes waits anew.
    pub fn shown_again(&self, id: &QuestionId) {
        let mut state = self.inner.lock();
        let found = state.pending.iter_mut().find(|p| p.question.id == *id);
        if let Some(at) = found.and_then(|p| p.shown.as_mut()) {
            *at = Instant::now();
        }
    }

    /// Somebody could answer right now.
    pub fn is_attended(&self) -> bool {
        self.inner.lock().sinks.iter().any(|sink| sink.is_attached())
    }

    /// Open questions, oldest first.
    pub fn pending(&self) -> Vec<Question> {
        self.inner.lock().pending.iter().map(|p| p.question.clone()).collect()
    }

    /// A muted box's questions are a no at once, open ones too. None ends that.
    pub fn mute(&self, box_id: &BoxId, time: Option<Duration>) {
        let mut state = self.inner.lock();
        let Some(time) = time.filter(|t| !t.is_zero()) else {
            state.muted.remove(box_id);
            return;
        };
        let time = time.min(FOR_EVER);
        let muted =
            Muted { until: Instant::now() + time, shown: now().saturating_add(millis(time)) };
        state.muted.insert(box_id.clone(), muted);
        let of_box = |p: &&Pending| p.question.box_id == *box_id;
        let open: Vec<_> =
            state.pending.iter().filter(of_box).map(|p| p.question.id.clone()).collect();
        // The newest first: none of the others comes on screen on the way.
        for id in open.iter().rev() {
            state.end(id, Decided::no(Outcome::Muted));
        }
    }

    /// Until when a box is muted.
    pub fn muted_until(&self, box_id: &BoxId) -> Option<Millis> {
        self.inner.lock().muted(box_id).map(|muted| muted.shown)
    }

    /// Asks and waits. Dropping the future withdraws the question: nobody can allow what nobody
    /// waits for.
    pub async fn ask(&self, draft: Draft) -> Result<Outcome, AskError> {
        Ok(self.ask_on(draft, &Terms::default()).await?.outcome)
    }

    /// The same on other terms.
    pub async fn ask_on(&self, draft: Draft, terms: &Terms) -> Result<Said, AskError> {
        let journal = &self.inner.journal;
        let remember = draft.rememberable().cloned();
        if !terms.keeps_rules
            && let Some(grant) = self.inner.rule_for(&draft).await?
        {
            return Ok(Said { outcome: Outcome::Granted { grant: grant.id }, rule: None });
        }
        if draft.size() > MAX_QUESTION {
            return Err(AskError::TooLarge);
        }
        let denied_as = terms.denied_as.clone().unwrap_or_else(|| draft.method.clone());
        let limits = &self.inner.limits;
        let refused = self.inner.lock().refuses(&draft.asker.box_id, &denied_as, terms, limits);
        if let Some(outcome) = refused {
            journal.refused(&draft, &outcome).await?;
            return Ok(Said { outcome, rule: None });
        }
        let timeout = draft.timeout.unwrap_or(self.inner.limits.timeout).min(FOR_EVER);
        let (asker, times) = (draft.asker.clone(), draft.times.clone());
        let mut times = (times.watch(), times);
        let (id, now) = (QuestionId::from_bytes(random()?), now());
        let mut question = draft.into_question(id, now, now.saturating_add(millis(timeout)));
        question.times = *times.0.borrow_and_update();
        let asked = Instant::now();
        let mut open =
            Open { inner: self.inner.clone(), id: question.id.clone(), asked, settled: false };
        if let Err(e) = journal.asked(&question).await {
            open.settled = true;
            return Err(e.into());
        }
        let mut answer =
            self.inner.open(question.clone(), remember.clone(), asked, denied_as, terms);
        let end = tokio::time::sleep(timeout);
        tokio::pin!(end);
        let decided = loop {
            tokio::select! {
                decided = &mut answer => {
                    break decided.unwrap_or(Decided::no(Outcome::HostStopped));
                }
                () = &mut end => {
                    self.inner.lock().end(&question.id, Decided::no(Outcome::Expired));
                    // An answer may have been first by a hair: then it is in the channel.
                    break answer.try_recv().unwrap_or(Decided::no(Outcome::Expired));
                }
                Ok(()) = times.0.changed() => {
                    let times = *times.0.borrow_and_update();
                    self.inner.lock().asked_again(&question.id, times);
                }
            }
        };
        open.settled = true;
        let kept_by_caller = decided.rule.filter(|_| terms.keeps_rules);
        let rule = decided.rule.filter(|_| !terms.keeps_rules).zip(remember);
        let grant = rule.map(|(rule, r)| grant(&question.method, &asker, rule, &r)).transpose()?;
        let settled = Settled {
            journal: journal.clone(),
            id: question.id,
            outcome: decided.outcome.clone(),
            open_for: asked.elapsed(),
            grant: grant.flatten(),
        };
        settled.write_whoever_waits().await?;
        Ok(Said { outcome: decided.outcome, rule: kept_by_caller })
    }

    /// Tells people something about a box that needs no answer.
    pub fn tell(&self, box_name: &BoxName, text: &str) {
        for sink in &self.inner.lock().sinks {
            sink.note(box_name, text);
        }
    }

    /// The rule that says yes to this, on record as a use of it. Nobody is asked.
    pub async fn allowed_by_rule(&self, draft: &Draft) -> Result<Option<Grant>, AskError> {
        Ok(self.inner.rule_for(draft).await?)
    }

    /// A rule without an end that a person made where they were shown this, and not as a question. False when
    /// there can be none.
    pub async fn remember(&self, draft: &Draft) -> Result<bool, AskError> {
        let Some(remember) = draft.rememberable() else { return Ok(false) };
        let (reach, time) = (remember.shown().least(), self.inner.limits.longest_grant);
        let rule = Rule { reach, breadth: Breadth::Exact, time };
        let Some(grant) = grant(&draft.method, &draft.asker, rule, remember)? else {
            return Ok(false);
        };
        self.inner.journal.remember(&grant).await?;
        Ok(true)
    }

    /// A person's answer. The first one counts.
    pub fn answer(
        &self,
        id: &QuestionId,
        digest: &str,
        verdict: Verdict,
        by: Surface,
    ) -> Result<(), AnswerError> {
        let mut state = self.inner.lock();
        let pending = state.pending.iter().find(|p| p.question.id == *id);
        let pending = pending.ok_or(AnswerError::NotPending)?;
        if pending.question.digest != digest {
            return Err(AnswerError::DigestMismatch);
        }
        if !verdict.lets_go_on() {
            state.end(id, Decided::no(Outcome::Denied { by }));
            return Ok(());
        }
        if !pending.offers(verdict) {
            return Err(AnswerError::NotOffered);
        }
        if state.locked && on_screen(by) {
            return Err(AnswerError::Locked);
        }
        let seen_for = pending.shown.unwrap_or(pending.asked).elapsed();
        if by.needs_grace() && seen_for < self.inner.limits.grace {
            return Err(AnswerError::TooSoon);
        }
        let rule = pending.rule(verdict, self.inner.limits.longest_grant)?;
        let outcome = match verdict {
            Verdict::Without => Outcome::Without { by },
            _ => Outcome::Allowed { by },
        };
        state.end(id, Decided { outcome, rule });
        Ok(())
    }

    /// The question has no use any more. False when it was over already.
    pub fn withdraw(&self, id: &QuestionId) -> bool {
        self.inner.lock().end(id, Decided::no(Outcome::Withdrawn))
    }

    /// The host stops: every open question is a no, and no new one is taken.
    pub fn close(&self) {
        let mut state = self.inner.lock();
        state.closed = true;
        // The newest first: none of the others comes on screen on the way.
        while let Some(id) = state.pending.last().map(|p| p.question.id.clone()) {
            state.end(&id, Decided::no(Outcome::HostStopped));
        }
    }
}

impl Decided {
    fn no(outcome: Outcome) -> Self {
        Self { outcome, rule: None }
    }
}

impl Pending {
    /// What every question can be answered with, and what only this one can.
    fn offers(&self, verdict: Verdict) -> bool {
        verdict != Verdict::Without || self.question.answers.without.is_some()
    }

    /// The rule a yes makes, if any; an error when the question allows none like it.
    fn rule(&self, verdict: Verdict, longest: Duration) -> Result<Option<Rule>, AnswerError> {
        let Verdict::Remember { reach, breadth, seconds } = verdict else { return Ok(None) };
        let covered = self.remember.as_ref().and_then(|r| r.scope(breadth));
        let reaches = self.remember.as_ref().is_some_and(|r| r.shown().allows(reach));
        if covered.is_none() || !reaches || self.question.tier == Tier::Irreversible || seconds == 0
        {
            return Err(AnswerError::NotRememberable);
        }
        Ok(Some(Rule { reach, breadth, time: Duration::from_secs(seconds).min(longest) }))
    }
}

impl Inner {
    /// A panic elsewhere must not turn the gate into an open one, nor into a dead one.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn rule_for(&self, draft: &Draft) -> Result<Option<Grant>, JournalError> {
        let Some(remember) = draft.rememberable() else { return Ok(None) };
        let keys = remember.keys();
        let wanted = Wanted { asker: &draft.asker, method: &draft.method, keys: &keys };
        self.journal.grant_for(&wanted).await
    }

    /// Puts a question among the open ones; what comes of it arrives in the channel.
    fn open(
        &self,
        question: Question,
        remember: Option<Rememberable>,
        asked: Instant,
        denied_as: String,
        terms: &Terms,
    ) -> oneshot::Receiver<Decided> {
        let (answer, decided) = oneshot::channel();
        let box_id = question.box_id.clone();
        let mut state = self.lock();
        // Several at once may have got past the first look.
        let refused = if state.closed {
            Some(Outcome::HostStopped)
        } else {
            state.refuses(&box_id, &denied_as, terms, &self.limits)
        };
        if let Some(outcome) = refused {
            let _ = answer.send(Decided::no(outcome));
        } else {
            let family = terms.family;
            state.history.entry((box_id.clone(), family)).or_default().note_asked(asked);
            let shown = None;
            state.pending.push(Pending {
                question,
                family,
                denied_as,
                remember,
                asked,
                shown,
                answer,
            });
            state.show_first(&box_id);
        }
        decided
    }
}

impl State {
    /// Why a box's question is a no before anybody is asked.
    fn refuses(
        &mut self,
        box_id: &BoxId,
        denied_as: &str,
        terms: &Terms,
        limits: &Limits,
    ) -> Option<Outcome> {
        if self.muted(box_id).is_some() {
            return Some(Outcome::Muted);
        }
        let history = self.history.entry((box_id.clone(), terms.family)).or_default();
        let too_much = history.is_too_much(denied_as, Instant::now());
        if too_much || self.open_of(box_id, terms.family) >= terms.open.unwrap_or(limits.per_box) {
            return Some(Outcome::TooMany);
        }
        let nobody = terms.when_nobody.unwrap_or(self.when_nobody) == WhenNobody::Deny;
        (nobody && !self.sinks.iter().any(|s| s.is_attached())).then_some(Outcome::Nobody)
    }

    fn muted(&mut self, box_id: &BoxId) -> Option<Muted> {
        let muted = *self.muted.get(box_id)?;
        if muted.until <= Instant::now() {
            self.muted.remove(box_id);
            return None;
        }
        Some(muted)
    }

    fn open_of(&self, box_id: &BoxId, family: &str) -> usize {
        let of = |p: &&Pending| p.question.box_id == *box_id && p.family == family;
        self.pending.iter().filter(of).count()
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

    /// The same was asked for once more. What is shown stays what it is, and so does its pause.
    fn asked_again(&mut self, id: &QuestionId, times: u32) {
        let Some(pending) = self.pending.iter_mut().find(|p| p.question.id == *id) else { return };
        pending.question.times = times;
        if pending.shown.is_some() {
            for sink in &self.sinks {
                sink.again(&pending.question);
            }
        }
    }

    /// Ends a question once; false when it had ended already.
    fn end(&mut self, id: &QuestionId, decided: Decided) -> bool {
        let Some(at) = self.pending.iter().position(|p| p.question.id == *id) else {
            return false;
        };
        let Pending { question, family, denied_as, answer, .. } = self.pending.remove(at);
        for sink in &self.sinks {
            sink.withdraw(&question, &decided.outcome);
        }
        if matches!(decided.outcome, Outcome::Denied { .. }) {
            self.note_denied(&question, family, &denied_as);
        }
        let _ = answer.send(decided);
        self.show_first(&question.box_id);
        true
    }

    fn note_denied(&mut self, question: &Question, family: &'static str, what: &str) {
        let history = self.history.entry((question.box_id.clone(), family)).or_default();
        if !history.note_denied(what, Instant::now()) {
            return;
        }
        let minutes = PAUSE.as_secs() / 60;
        let text = format!(
            "{} was denied {what} three times. More of it is denied for {minutes} minutes.",
            question.box_name
        );
        for sink in &self.sinks {
            sink.note(&question.box_name, &text);
        }
    }
}

/// Withdraws the question when the asking future is dropped, from the moment it may be on record.
struct Open {
    inner: Arc<Inner>,
    id: QuestionId,
    asked: Instant,
    settled: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        self.inner.lock().end(&self.id, Decided::no(Outcome::Withdrawn));
        let settled = Settled {
            journal: self.inner.journal.clone(),
            id: self.id.clone(),
            outcome: Outcome::Withdrawn,
            open_for: self.asked.elapsed(),
            grant: None,
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(e) = settled.write().await {
                tracing::error!("{e}");
            }
        });
    }
}

/// An end that has to be on disk.
struct Settled {
    journal: Arc<dyn Journal>,
    id: QuestionId,
    outcome: Outcome,
    open_for: Duration,
    grant: Option<Grant>,
}

impl Settled {
    async fn write(self) -> Result<(), JournalError> {
        self.journal.resolved(&self.id, &self.outcome, self.open_for).await?;
        match &self.grant {
            Some(grant) => self.journal.remember(grant).await,
            None => Ok(()),
        }
    }

    /// A caller that leaves now takes neither the record nor the rule with it.
    async fn write_whoever_waits(self) -> Result<(), JournalError> {
        let written = tokio::spawn(self.write()).await;
        written.unwrap_or_else(|e| Err(JournalError(e.to_string())))
    }
}

/// A place on the person's own screen, where a lock screen would be.
fn on_screen(surface: Surface) -> bool {
    match surface {
        Surface::Dialog
        | Surface::Notification
        | Surface::Window
        | Surface::Tray
        | Surface::PromptCommand => true,
        Surface::Cli | Surface::Terminal => false,
    }
}

/// The rule a person made at a question.
fn grant(
    method: &str,
    asker: &Asker,
    rule: Rule,
    remember: &Rememberable,
) -> Result<Option<Grant>, AskError> {
    let Some(scope) = remember.scope(rule.breadth) else { return Ok(None) };
    let created_at = now();
    let (name, project) = (asker.box_name.as_str(), asker.project.as_str());
    Ok(Some(Grant {
        id: GrantId::from_bytes(random()?),
        reach: rule.reach,
        box_id: asker.box_id.clone(),
        box_name: asker.box_name.clone(),
        project: asker.project.clone(),
        project_root: asker.project_root.clone(),
        method: method.to_owned(),
        scope: scope.key.clone(),
        sentence: remember.shown().sentence(name, project, rule.reach, rule.breadth),
        created_at,
        expires_at: created_at.saturating_add(millis(rule.time)),
    }))
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
