//! A job under way: its box is made, then its agent is started with what it should do.

use super::{Job, Login, Queue, Reply, WORKER_DIED, died_hint, job, no_login_any_more};
use crate::api::Api;
use crate::core::Core;
use crate::oplog::OpLog;
use crate::store::now;
use boxes::{Watch, Watcher};
use protocol::boxes::Progress;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::conversations::Begin;
use protocol::queue::JobStatus;
use protocol::sessions::{SessionKind, StartSession};
use protocol::{BoxId, JobId};
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often a task says that it lives, and for how long it may be silent.
const BEAT: Duration = Duration::from_secs(2);
const LEASE: Duration = Duration::from_secs(30);
/// An agent that has ended after this time never began.
const SETTLED: Duration = Duration::from_secs(1);
/// How long a cancelled job may take to end.
const ENDS: Duration = Duration::from_secs(30);

/// How long is waited before a box is tried again whose engine or base image could not be had.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(20)];

/// What this host knows of a job under way.
pub(super) struct Work {
    kill: CancellationToken,
    /// Its box has a name, and so is counted among those being made.
    named: bool,
    beat: Instant,
    over: CancellationToken,
}

impl Work {
    pub fn new(kill: CancellationToken) -> Self {
        Self { kill, named: false, beat: Instant::now(), over: CancellationToken::new() }
    }
}

/// How a job's task ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    Failed(ControlError),
    /// A person did not want it any more.
    Killed,
    /// The host stops; the next one does it.
    PutBack,
    /// It ended without a word.
    Died,
}

impl Outcome {
    fn apply(&self, job: &mut Job) {
        match self {
            Outcome::Done => job.end(JobStatus::Done, now()),
            Outcome::Failed(e) => job.fail(&e.message, e.hints.first().cloned(), now()),
            Outcome::Killed => job.end(JobStatus::Cancelled, now()),
            Outcome::Died => job.fail(WORKER_DIED, Some(died_hint(job)), now()),
            Outcome::PutBack => {
                job.status = JobStatus::Queued;
                job.started_at = None;
            }
        }
    }
}

impl Queue {
    /// Jobs under way whose boxes are not known by a name yet.
    pub(super) fn unnamed(&self) -> usize {
        self.lock().work.values().filter(|work| !work.named).count()
    }

    fn silent_for(&self, id: &JobId) -> Duration {
        self.lock().work.get(id).map_or(Duration::ZERO, |work| work.beat.elapsed())
    }

    fn with_work(&self, id: &JobId, change: impl FnOnce(&mut Work)) {
        if let Some(work) = self.lock().work.get_mut(id) {
            change(work);
        }
    }

    fn forget_work(&self, id: &JobId, keeps_login: bool) {
        let mut inner = self.lock();
        if !keeps_login {
            inner.logins.remove(id);
        }
        if let Some(work) = inner.work.remove(id) {
            work.over.cancel();
        }
    }

    async fn beat(&self, id: &JobId) -> Infallible {
        loop {
            self.with_work(id, |work| work.beat = Instant::now());
            tokio::time::sleep(BEAT).await;
        }
    }
}

/// The first step that is told comes after the box has its name.
struct Named {
    core: Weak<Core>,
    id: JobId,
}

impl Watch for Named {
    fn progress(&self, _: Progress) {
        let Some(core) = self.core.upgrade() else { return };
        let mut news = false;
        core.queue.with_work(&self.id, |work| news = !std::mem::replace(&mut work.named, true));
        if news {
            core.queue.wake.notify_one();
        }
    }
}

pub(super) fn log_of(core: &Core, job: &Job, inner: Watcher) -> Arc<OpLog> {
    let what = format!("job {} for {}", job.id, job.agent.title());
    OpLog::at(job::log_file(&core.home, &job.id), &what, inner)
}

/// How a task ended, or that it does not say any more that it lives.
async fn watched(
    mut worker: JoinHandle<Outcome>,
    lease: Duration,
    silent: impl Fn() -> Duration,
) -> Outcome {
    loop {
        tokio::select! {
            ended = &mut worker => return ended.unwrap_or(Outcome::Died),
            () = tokio::time::sleep(lease) => {
                if silent() > lease {
                    worker.abort();
                    return Outcome::Died;
                }
            }
        }
    }
}

impl Core {
    pub(super) async fn supervise(self: Arc<Self>, job: Job, kill: CancellationToken) {
        let id = job.id.clone();
        let named = Named { core: Arc::downgrade(&self), id: id.clone() };
        let log = log_of(&self, &job, Arc::new(named));
        let worker = self.tasks.spawn(self.clone().work(job, kill, log.clone()));
        let outcome = watched(worker, LEASE, || self.queue.silent_for(&id)).await;
        self.job_over(&id, outcome, &log).await;
    }

    async fn work(self: Arc<Self>, job: Job, kill: CancellationToken, log: Arc<OpLog>) -> Outcome {
        let outcome = tokio::select! {
            biased;
            () = kill.cancelled() => Outcome::Killed,
            () = self.stop.cancelled() => Outcome::PutBack,
            // Dropping it takes back what it has made so far.
            done = Box::pin(self.do_job(&job, &log)) => match done {
                Ok(()) => Outcome::Done,
                Err(_) if self.stop.is_cancelled() => Outcome::PutBack,
                Err(error) => Outcome::Failed(error),
            },
            never = self.queue.beat(&job.id) => match never {},
        };
        if let Outcome::Killed = outcome {
            self.take_back_box(&job.id, &log).await;
        }
        outcome
    }

    async fn do_job(self: &Arc<Self>, job: &Job, log: &Arc<OpLog>) -> Reply<()> {
        let login = self.queue.lock().logins.get(&job.id).cloned();
        let login = login.ok_or_else(|| no_login_any_more(job))?;
        let id = match job.box_id.clone().filter(|id| self.record(id).is_some()) {
            Some(made_before) => made_before,
            None => self.make_box(job, log).await?,
        };
        self.queue.with_work(&job.id, |work| work.named = true);
        self.start_agent(job, login, &id, log).await.map_err(|error| {
            error.hint(format!("its box is there: agentbox shell {id}, or agentbox destroy {id}"))
        })
    }

    async fn make_box(self: &Arc<Self>, job: &Job, log: &Arc<OpLog>) -> Reply<BoxId> {
        let mut pauses = PAUSES.into_iter();
        let made = loop {
            let error = match self.create(job.create.clone(), log.clone()).await {
                Ok(made) => break made,
                Err(error) => error,
            };
            let later = matches!(error.code, ErrorCode::Engine | ErrorCode::BaseImage);
            let Some(pause) = pauses.next().filter(|_| later) else { return Err(error) };
            log.note(&format!("{error}; tried again in {} s", pause.as_secs()));
            self.queue.with_work(&job.id, |work| work.named = false);
            tokio::time::sleep(pause).await;
        };
        let (id, name) = (made.view.id.clone(), made.view.name.to_string());
        log.note(&format!("box {name}, id {id}"));
        for warning in &made.warnings {
            log.note(&format!("warning: {warning}"));
        }
        for path in &made.skipped {
            log.note(&format!("did not fit and stayed behind: {path}"));
        }
        let known = self.change_job(&job.id, |job| {
            job.box_id = Some(id.clone());
            job.box_name = Some(name);
            true
        });
        known.await?;
        Ok(id)
    }

    async fn start_agent(
        self: &Arc<Self>,
        job: &Job,
        login: Login,
        id: &BoxId,
        log: &OpLog,
    ) -> Reply<()> {
        let what = SessionKind::Agent {
            agent: job.agent,
            name: job.session_name.clone(),
            args: job.words(),
            env: login,
            sync: job.sync,
            skip_permissions: job.skip_permissions,
            begin: Begin::default(),
        };
        let (cols, rows) = (job.cols, job.rows);
        let api = Api::new(self.clone());
        let start = StartSession { target: Target::id(id), what, cols, rows };
        let session = match api.start_session(start).await {
            // An earlier host got as far as this.
            Err(error) if error.code == ErrorCode::Exists => return Ok(()),
            started => started?,
        };
        log.note(&format!("session {} started", session.name));
        tokio::time::sleep(SETTLED).await;
        let sessions = api.sessions(Target::id(id)).await?;
        if sessions.iter().any(|known| known.name == session.name) {
            return Ok(());
        }
        let text = format!("{} ended as soon as it was started", job.agent.title());
        Err(ControlError::new(ErrorCode::Failed, text))
    }

    /// A job that is not wanted any more leaves no box.
    async fn take_back_box(self: &Arc<Self>, id: &JobId, log: &OpLog) {
        let made = self.queue.get(id).and_then(|job| job.box_id);
        let Some(made) = made.filter(|made| self.record(made).is_some()) else { return };
        let gone = Api::new(self.clone()).destroy_box(Target::id(&made), None).await;
        match gone {
            Ok(_) => log.note(&format!("box {made} destroyed")),
            Err(error) => log.note(&format!("box {made} could not be destroyed: {error}")),
        }
    }

    async fn job_over(&self, id: &JobId, outcome: Outcome, log: &OpLog) {
        let end = |job: &mut Job| {
            outcome.apply(job);
            true
        };
        if let Err(error) = self.change_job(id, end).await {
            // Others go on all the same; the next host finds this one under way, and so failed.
            tracing::error!("how job {id} ended is not on disk: {error}");
            if let Some(mut job) = self.queue.get(id) {
                outcome.apply(&mut job);
                self.queue.put(job.clone());
                self.tell_job(&job);
            }
        }
        match &outcome {
            Outcome::Done => log.end(None),
            Outcome::Killed => log.end(Some("cancelled")),
            Outcome::PutBack => log.note("the host stops; the job waits for the next one"),
            Outcome::Died => log.end(Some(WORKER_DIED)),
            Outcome::Failed(error) => {
                log.end(Some(&error.message));
                for hint in &error.hints {
                    log.note(&format!("hint: {hint}"));
                }
            }
        }
        self.queue.forget_work(id, matches!(outcome, Outcome::PutBack));
        self.queue.wake.notify_one();
        if let Err(error) = self.forget_old_jobs().await {
            tracing::warn!("{error}");
        }
    }

    /// Ends a job under way and waits until it is over.
    pub(super) async fn kill_job(&self, id: &JobId, kill: bool) -> Reply<Job> {
        let gone = || ControlError::new(ErrorCode::Failed, "the job is gone");
        let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
        let job = self.queue.get(id).ok_or_else(gone)?;
        if job.status.is_over() {
            let status = job.status.as_str();
            let error = failed(format!("job {id} is {status} already"));
            return Err(match &job.box_name {
                Some(name) => error.hint(format!("its box is ended with agentbox destroy {name}")),
                None => error,
            });
        }
        if !kill {
            return Err(failed(format!("job {id} is under way"))
                .hint("--kill ends it and takes its box back."));
        }
        let over = {
            let inner = self.queue.lock();
            inner.work.get(id).map(|work| {
                work.kill.cancel();
                work.over.clone()
            })
        };
        if let Some(over) = over
            && tokio::time::timeout(ENDS, over.cancelled()).await.is_err()
        {
            return Err(failed(format!("job {id} is being ended, which takes its time")));
        }
        let job = self.queue.get(id).ok_or_else(gone)?;
        if job.status == JobStatus::Cancelled {
            return Ok(job);
        }
        Err(failed(format!("job {id} was {} before it could be ended", job.status.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn boxes_16_51_a_task_that_panics_or_is_ended_has_died() {
        let panics = tokio::spawn(async { panic!("a bug") });
        assert!(matches!(watched(panics, LEASE, || Duration::ZERO).await, Outcome::Died));
        let ended = tokio::spawn(std::future::pending());
        ended.abort();
        assert!(matches!(watched(ended, LEASE, || Duration::ZERO).await, Outcome::Died));
    }

    #[tokio::test]
    async fn a_task_that_is_silent_for_too_long_has_died() {
        let lease = Duration::from_millis(5);
        let stuck = tokio::spawn(std::future::pending());
        let handle = stuck.abort_handle();
        assert!(matches!(watched(stuck, lease, || lease * 2).await, Outcome::Died));
        while !handle.is_finished() {
            tokio::task::yield_now().await;
        }
        let lives = tokio::spawn(async move {
            tokio::time::sleep(lease * 5).await;
            Outcome::Done
        });
        assert!(matches!(watched(lives, lease, || Duration::ZERO).await, Outcome::Done));
    }
}
