//! Asking a person about a request, on the broker that all questions go through.
//!
//! Requests that are the same to a person share one question: fifty files below one folder are one. What
//! was allowed once passes again for a while, because programs give up and try again before anybody has
//! answered; a program that has gone keeps its question for a moment for the same reason.
//!
//! The surprising thing: only what a question names is let through by it. Requests that read are the same
//! when they are below the same two folders, and the question says so; of those that send something only
//! the very same one is.

mod words;

use crate::host_name::HostName;
use crate::new_rule::{Asked, NewRule};
use crate::policy::{Action, HostPattern, PathKind, PathRule};
use crate::ports::{Answer, Ask, Gate, Told};
use crate::request::{READS, Scheme};
use approvals::{Asker, BoxFuture, Broker, Said, Terms, WhenNobody};
use protocol::question::{Breadth, Outcome, Reach};
use protocol::{BoxId, SecretId};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// What questions about requests are called.
pub const METHOD: &str = "egress.request";
/// Counted apart from what else a box asks.
const FAMILY: &str = "egress";

/// Numbers a test may change.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Different questions of one box that may be open.
    pub open: usize,
    /// And how many may be raised in [`Limits::window`].
    pub asked: usize,
    pub window: Duration,
    /// For an answer.
    pub timeout: Duration,
    /// How long a question outlives whoever raised it.
    pub left: Duration,
    /// How long the very same passes after a yes.
    pub again: Duration,
    /// How long it is a no after a no.
    pub denied: Duration,
    /// Nobody is there, or the box is muted: not looked at again for so long.
    pub deaf: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open: 8,
            asked: 20,
            window: Duration::from_secs(10 * 60),
            timeout: Duration::from_secs(120),
            left: Duration::from_secs(30),
            again: Duration::from_secs(5 * 60),
            denied: Duration::from_secs(30),
            deaf: Duration::from_secs(2),
        }
    }
}

/// Requests and answers that are remembered, of one box.
const MOST_REMEMBERED: usize = 1024;

/// What the gate needs from the host.
pub trait Keep: Send + Sync + 'static {
    /// None for a box nobody knows.
    fn asker(&self, id: &BoxId) -> Option<Asker>;

    /// What becomes of a question of this box when nobody is there.
    fn when_nobody(&self, id: &BoxId) -> WhenNobody;

    /// Whether a credential may be sent to this host and to few others.
    fn is_bound<'a>(
        &'a self,
        secret: &'a SecretId,
        of: &'a BoxId,
        host: &'a HostName,
    ) -> BoxFuture<'a, bool>;

    /// What a rule would let through besides what is asked for, in words: “sends data, too”.
    fn widens(&self, id: &BoxId, ask: &Ask, rule: &NewRule) -> Vec<String>;

    /// What a rule looks like in a policy, on one line.
    fn in_yaml(&self, rule: &NewRule) -> String;

    /// Keeps a rule, and has it in force when this returns.
    fn keep<'a>(
        &'a self,
        of: &'a BoxId,
        rule: &'a NewRule,
        reach: Reach,
        time: Duration,
        sentence: String,
    ) -> BoxFuture<'a, Result<(), String>>;
}

impl NewRule {
    /// What was asked and what is near it: the same kind of request, below the same two folders.
    fn near(ask: &Ask) -> Self {
        let (kind, text) = match folder_of(ask) {
            Some(folder) => (PathKind::Prefix, folder),
            None => (PathKind::Exact, path_of(ask).to_owned()),
        };
        let path = Some(PathRule { kind, text, ignore_case: false });
        Self { path, ..Self::of_host(ask) }
    }

    /// The whole host: by the same kind of request when that only reads, else by any.
    fn of_host(ask: &Ask) -> Self {
        let reads = || READS.iter().map(|m| (*m).to_owned()).collect();
        let methods =
            if is_read(ask) { Some(reads()) } else { Some(BTreeSet::from([ask.method.clone()])) };
        Self {
            scheme: ask.scheme,
            host: HostPattern::Exact(ask.host.clone()),
            port: ask.port,
            methods,
            path: None,
            websocket: ask.websocket,
            action: Action::Allow,
            asked: Some(Asked {
                method: ask.method.clone(),
                // It is written down, and a value of a query may be a password.
                target: path_of(ask).to_owned(),
                secrets: ask.secrets.clone(),
            }),
        }
    }

    fn wide(ask: &Ask) -> Self {
        let own = Self::of_host(ask);
        Self { methods: own.methods.filter(|_| is_read(ask)), ..own }
    }
}

/// It takes and brings nothing, but for what is in its address.
fn is_read(ask: &Ask) -> bool {
    READS.contains(&ask.method.as_str()) && !ask.websocket && ask.length == Some(0)
}

fn path_of(ask: &Ask) -> &str {
    ask.path.split('?').next().unwrap_or_default()
}

/// The first two folders of a path that has more than them.
fn folder_of(ask: &Ask) -> Option<String> {
    let path = path_of(ask);
    let ends = path.match_indices('/').map(|(at, _)| at).nth(2)?;
    (ends + 1 < path.len()).then(|| path[..=ends].to_owned())
}

/// Requests with the same of these are one question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    box_id: BoxId,
    scheme: Scheme,
    host: HostName,
    port: u16,
    method: String,
    /// Folders for what reads, the whole address for what sends.
    below: String,
    websocket: bool,
    /// Of a body: what was shown as twelve bytes is no yes to more.
    length: Option<u64>,
    secrets: Vec<SecretId>,
}

impl Key {
    fn of(ask: &Ask) -> Self {
        let (method, below) = if is_read(ask) {
            ("read".to_owned(), folder_of(ask).unwrap_or_else(|| ask.path.clone()))
        } else {
            (ask.method.clone(), ask.path.clone())
        };
        Self { method, below, ..Self::exact(ask) }
    }

    /// The very same request.
    fn exact(ask: &Ask) -> Self {
        Self {
            box_id: ask.box_id.clone(),
            scheme: ask.scheme,
            host: ask.host.clone(),
            port: ask.port,
            method: ask.method.clone(),
            below: ask.path.clone(),
            websocket: ask.websocket,
            length: ask.length,
            secrets: ask.secrets.clone(),
        }
    }
}

/// The gate, on a broker. Cheap to clone.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    broker: Broker,
    keep: Arc<dyn Keep>,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<Key, Arc<Open>>,
    boxes: HashMap<BoxId, Past>,
}

/// A question under way.
struct Open {
    waiting: Mutex<Waiting>,
    left: Notify,
    said: watch::Receiver<Option<Answer>>,
}

#[derive(Default)]
struct Waiting {
    count: usize,
    /// What a yes is a yes to.
    requests: Vec<Key>,
}

/// What a box has asked of late.
#[derive(Default)]
struct Past {
    asked: VecDeque<Instant>,
    passed: HashMap<Key, Instant>,
    denied: HashMap<Key, Instant>,
    deaf: Option<(Instant, Answer)>,
    /// People were told that it asks too often.
    told: Option<Instant>,
}

impl Past {
    fn forget(&mut self, now: Instant, window: Duration) {
        while self.asked.front().is_some_and(|at| now.duration_since(*at) >= window) {
            self.asked.pop_front();
        }
        self.passed.retain(|_, until| *until > now);
        self.denied.retain(|_, until| *until > now);
        self.deaf = self.deaf.filter(|(until, _)| *until > now);
    }
}

/// Whether a request is answered at once, joins a question or raises one.
enum Turn {
    Answered(Answer),
    Joins(Arc<Open>),
    Asks(Arc<Open>, watch::Sender<Option<Answer>>),
    /// One time too often; people are told of it once.
    TooOften,
}

impl Desk {
    pub fn new(broker: Broker, keep: Arc<dyn Keep>, limits: Limits) -> Self {
        Self(Arc::new(Inner { broker, keep, limits, state: Mutex::default() }))
    }

    /// A box stopped: nothing of it is remembered.
    pub fn forget(&self, id: &BoxId) {
        self.0.lock().boxes.remove(id);
    }
}

impl Gate for Desk {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some(asker) = self.0.keep.asker(&ask.box_id) else { return Answer::Unanswered };
            let open = match self.0.turn(&ask) {
                Turn::Answered(answer) => return answer,
                Turn::TooOften => {
                    let text = format!(
                        "{} asks about the network too often. More of it is denied for some minutes.",
                        asker.box_name
                    );
                    self.0.broker.tell(&asker.box_name, &text);
                    return Answer::TooMany;
                }
                Turn::Joins(open) => open,
                Turn::Asks(open, said) => {
                    let task = self.0.clone().raise(ask.clone(), asker, open.clone(), said);
                    tokio::spawn(task);
                    open
                }
            };
            let _here = Here(open.clone());
            let mut said = open.said.clone();
            let answer = said.wait_for(Option::is_some).await;
            answer.ok().and_then(|said| *said).unwrap_or(Answer::Unanswered)
        })
    }
}

/// Somebody waits for the answer, for as long as this lives.
struct Here(Arc<Open>);

impl Drop for Here {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.count -= 1;
        if waiting.count == 0 {
            self.0.left.notify_one();
        }
    }
}

impl Open {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody has waited for so long.
    async fn is_left(&self, time: Duration) {
        loop {
            self.left.notified().await;
            tokio::time::sleep(time).await;
            if self.waiting().count == 0 {
                return;
            }
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, ask: &Ask) -> Turn {
        let (key, exact, now) = (Key::of(ask), Key::exact(ask), Instant::now());
        let mut state = self.lock();
        let open_of_box = state.open.keys().filter(|k| k.box_id == ask.box_id).count();
        let joined = state.open.get(&key).cloned();
        let past = state.boxes.entry(ask.box_id.clone()).or_default();
        past.forget(now, self.limits.window);
        if past.passed.contains_key(&exact) {
            return Turn::Answered(Answer::Allowed(Told::Once));
        }
        if past.denied.contains_key(&key) {
            return Turn::Answered(Answer::Denied(Told::Once));
        }
        if let Some(open) = joined {
            let mut waiting = open.waiting();
            waiting.count += 1;
            if waiting.requests.len() < MOST_REMEMBERED && !waiting.requests.contains(&exact) {
                waiting.requests.push(exact);
            }
            drop(waiting);
            return Turn::Joins(open);
        }
        if let Some((_, answer)) = past.deaf {
            return Turn::Answered(answer);
        }
        if open_of_box >= self.limits.open {
            return Turn::Answered(Answer::TooMany);
        }
        if past.asked.len() >= self.limits.asked {
            let known = past.told.is_some_and(|at| now.duration_since(at) < self.limits.window);
            if known {
                return Turn::Answered(Answer::TooMany);
            }
            past.told = Some(now);
            return Turn::TooOften;
        }
        past.asked.push_back(now);
        let (tell, said) = watch::channel(None);
        let waiting = Mutex::new(Waiting { count: 1, requests: vec![exact] });
        let open = Arc::new(Open { waiting, left: Notify::new(), said });
        state.open.insert(key, open.clone());
        Turn::Asks(open, tell)
    }

    /// Asks, and tells everyone who waits.
    async fn raise(
        self: Arc<Self>,
        ask: Ask,
        asker: Asker,
        open: Arc<Open>,
        tell: watch::Sender<Option<Answer>>,
    ) {
        let key = Key::of(&ask);
        let _closed = Closed { inner: self.clone(), key: key.clone() };
        let answer = tokio::select! {
            answer = self.answer(&ask, asker) => answer,
            () = open.is_left(self.limits.left) => Answer::Unanswered,
        };
        // Under the lock in which requests join: none of them can be left out.
        let mut state = self.lock();
        state.open.remove(&key);
        self.note(state.boxes.entry(ask.box_id.clone()).or_default(), &open, &key, answer);
        drop(state);
        let _ = tell.send(Some(answer));
    }

    fn note(&self, past: &mut Past, open: &Open, key: &Key, answer: Answer) {
        let now = Instant::now();
        match answer {
            Answer::Allowed(Told::Once) => {
                let until = now + self.limits.again;
                for request in std::mem::take(&mut open.waiting().requests) {
                    if past.passed.len() < MOST_REMEMBERED {
                        past.passed.insert(request, until);
                    }
                }
            }
            Answer::Denied(_) if past.denied.len() < MOST_REMEMBERED => {
                past.denied.insert(key.clone(), now + self.limits.denied);
            }
            // A rule lets the same through from now on, and stops doing so when it is removed.
            Answer::Allowed(_) | Answer::Denied(_) | Answer::Unanswered | Answer::TooMany => {}
        }
    }

    async fn answer(&self, ask: &Ask, asker: Asker) -> Answer {
        let mut bound = true;
        for secret in &ask.secrets {
            bound &= self.keep.is_bound(secret, &ask.box_id, &ask.host).await;
        }
        let (near, wide) = (NewRule::near(ask), NewRule::wide(ask));
        let offer = words::Offer {
            near: &near,
            wide: &wide,
            wider: self.keep.widens(&ask.box_id, ask, &wide),
            nearer: self.keep.widens(&ask.box_id, ask, &near),
            yaml: self.keep.in_yaml(&near),
            only: (!bound).then_some(Reach::Box),
        };
        let draft = words::draft(ask, asker, &offer, self.limits.timeout);
        let terms = Terms {
            family: FAMILY,
            open: Some(self.limits.open),
            denied_as: Some(format!("requests to {}", ask.host)),
            when_nobody: Some(self.keep.when_nobody(&ask.box_id)),
            keeps_rules: true,
        };
        let (name, project) = (draft.asker.box_name.to_string(), draft.asker.project.clone());
        let remember = draft.rememberable().cloned();
        let said = match self.broker.ask_on(draft, &terms).await {
            Ok(said) => said,
            Err(e) => {
                tracing::error!("a request of {} cannot be asked about: {e}", ask.box_id);
                return Answer::Unanswered;
            }
        };
        let Said { outcome, rule } = said;
        if let Some(unheard) = unheard(&outcome) {
            let until = Instant::now() + self.limits.deaf;
            let past = &mut *self.lock();
            past.boxes.entry(ask.box_id.clone()).or_default().deaf = Some((until, unheard));
            return unheard;
        }
        let (Some(rule), Some(remember)) = (rule, remember) else { return plain(&outcome) };
        let new = match rule.breadth {
            Breadth::Exact => &near,
            Breadth::Kind => &wide,
        };
        let sentence = remember.sentence(&name, &project, rule.reach, rule.breadth);
        let kept = self.keep.keep(&ask.box_id, new, rule.reach, rule.time, sentence).await;
        if let Err(why) = kept {
            tracing::error!("the answer for {} is not remembered: {why}", ask.box_id);
            return plain(&outcome);
        }
        Answer::Allowed(match rule.reach {
            Reach::Box => Told::ForBox,
            Reach::Project => Told::ForProject,
            Reach::Everywhere => Told::Always,
        })
    }
}

/// What nobody was asked about.
fn unheard(outcome: &Outcome) -> Option<Answer> {
    match outcome {
        Outcome::Nobody => Some(Answer::Unanswered),
        Outcome::Muted => Some(Answer::Denied(Told::ForBox)),
        Outcome::TooMany => Some(Answer::TooMany),
        _ => None,
    }
}

fn plain(outcome: &Outcome) -> Answer {
    match outcome {
        Outcome::Allowed { .. } => Answer::Allowed(Told::Once),
        Outcome::Granted { .. } => Answer::Allowed(Told::Rule),
        Outcome::Denied { .. } => Answer::Denied(Told::Once),
        _ => Answer::Unanswered,
    }
}

/// A question that is over, however its task ended, can be raised anew.
struct Closed {
    inner: Arc<Inner>,
    key: Key,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.inner.lock().open.remove(&self.key);
    }
}

#[cfg(test)]
mod tests;
