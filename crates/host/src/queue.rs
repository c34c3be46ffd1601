//! Background jobs: a box and an agent with something to do, begun when there is room.
//!
//! Jobs are on disk before anybody hears of them, and are begun in the order in which they came. One
//! under way is a task of this host. Its lease is the host's lock on its home: a job that was under way
//! when a host starts belonged to one that is dead, and has failed. Within a host a task that ends
//! without a word, or stays silent for too long, has failed as well. The surprising thing: the login a
//! job was given is in memory alone, so a job that outlives its host needs one that the next host has.

mod awaiting;
mod gate;
pub(crate) mod job;
mod work;

pub use job::Job;

use crate::api::Api;
use crate::core::{Core, Known};
use crate::store::{StoreError, now};
use gate::Seen;
use protocol::boxes::BoxState;
use protocol::carry::{CarryBy, CarryChoice};
use protocol::control::{ControlError, ErrorCode, HostEvent};
use protocol::integrations::SecretText;
use protocol::queue::{
    Gate, JobCounts, JobDetails, JobStatus, JobView, MAX_PROMPT, SubmitJob, Submitted,
};
use protocol::sessions::{Agent, is_login, is_session_name};
use protocol::{BoxName, JobId, Millis};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use work::Work;

/// How long a job that is over is listed, and how many of them at most.
const KEPT_FOR: Millis = 24 * 60 * 60 * 1000;
const KEPT: usize = 200;
/// More would be a mistake of whoever submits them.
const MOST_QUEUED: usize = 1000;
/// How much of a log is looked at for its last lines.
const LOG_END: u64 = 256 * 1024;
/// How soon is tried again after the disk did not take it.
const RETRY: Duration = Duration::from_secs(10);
/// Why a job failed whose task, or host, ended without a word.
const WORKER_DIED: &str = "worker-died";

type Reply<T> = Result<T, ControlError>;
type Login = BTreeMap<String, SecretText>;

#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    /// Jobs came or went.
    pub wake: tokio::sync::Notify,
    /// One change at a time, on disk and here.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// Oldest first.
    jobs: Vec<Job>,
    logins: HashMap<JobId, Login>,
    work: HashMap<JobId, Work>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counts(&self) -> JobCounts {
        let inner = self.lock();
        let count = |status| {
            let count = inner.jobs.iter().filter(|job| job.status == status).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        JobCounts { queued: count(JobStatus::Queued), running: count(JobStatus::Running) }
    }

    fn get(&self, id: &JobId) -> Option<Job> {
        self.lock().jobs.iter().find(|job| job.id == *id).cloned()
    }

    fn first(&self) -> Option<Job> {
        self.lock().jobs.iter().find(|job| job.status == JobStatus::Queued).cloned()
    }

    fn put(&self, job: Job) {
        let mut inner = self.lock();
        match inner.jobs.iter_mut().find(|known| known.id == job.id) {
            Some(known) => *known = job,
            None => inner.jobs.push(job),
        }
    }

    /// A job by its id, or a beginning of it that no other has.
    fn find(&self, text: &str) -> Reply<Job> {
        let inner = self.lock();
        let matching = |job: &&Job| !text.is_empty() && job.id.as_str().starts_with(text);
        let found: Vec<&Job> = inner.jobs.iter().filter(matching).collect();
        match found.as_slice() {
            [job] => Ok((*job).clone()),
            [] => Err(ControlError::new(ErrorCode::Failed, format!("there is no job {text:?}"))
                .hint("agentbox queue list shows them.")),
            several => {
                let text = format!("{} jobs begin with {text}", several.len());
                Err(ControlError::new(ErrorCode::Usage, text).hint("type more of the id."))
            }
        }
    }

    /// Jobs that are over and old, or too many.
    fn old(&self, now: Millis) -> Vec<JobId> {
        let inner = self.lock();
        let over = inner.jobs.iter().filter(|job| job.status.is_over());
        let mut over: Vec<(Millis, JobId)> =
            over.map(|job| (job.finished_at.unwrap_or(0), job.id.clone())).collect();
        over.sort();
        let many = over.len().saturating_sub(KEPT);
        let old = |at: usize, end: Millis| at < many || end.saturating_add(KEPT_FOR) < now;
        let old = over.into_iter().enumerate().filter(|(at, (end, _))| old(*at, *end));
        old.map(|(_, (_, id))| id).collect()
    }
}

impl Api {
    pub async fn submit_job(&self, submit: SubmitJob) -> Reply<Submitted> {
        let (gate, login) = self.core.checked_job(&submit).await?;
        let mut submit = submit;
        // A yes is for the list as it is now, whenever there is room.
        if let Some(CarryChoice::Copy { digest, by, remember, at }) = &mut submit.create.carry {
            if digest.is_none() && !*remember {
                let workspace = crate::create::workspace(&submit.create.workspace)?;
                *digest = Some(self.core.carry_plan(&workspace).await?.digest);
            }
            (*by, *at) = (CarryBy::Queue, Some(now()));
        }
        let job = Job {
            id: JobId::from_bytes(crate::create::random()?),
            status: JobStatus::Queued,
            agent: submit.agent,
            prompt: submit.prompt,
            create: submit.create,
            args: submit.args,
            session_name: submit.session_name,
            sync: submit.sync,
            skip_permissions: submit.skip_permissions,
            gate,
            cols: submit.cols,
            rows: submit.rows,
            created_at: now(),
            started_at: None,
            finished_at: None,
            box_id: None,
            box_name: None,
            reason: None,
            hint: None,
        };
        let (busy, _) = self.core.busy(gate);
        self.core.store.put_job(&job).await?;
        self.core.queue.lock().logins.insert(job.id.clone(), login);
        self.core.queue.put(job.clone());
        self.core.tell_job(&job);
        self.core.queue.wake.notify_one();
        Ok(Submitted { job: job.view(&self.core.home), busy })
    }

    pub async fn jobs(&self) -> Reply<Vec<JobView>> {
        self.core.forget_old_jobs().await?;
        let inner = self.core.queue.lock();
        Ok(inner.jobs.iter().map(|job| job.view(&self.core.home)).collect())
    }

    #[allow(clippy::unused_async, reason = "part of the surface, whose reads may need the disk")]
    pub async fn job(&self, id: &str, tail: u32) -> Reply<JobDetails> {
        let job = self.core.queue.find(id)?;
        let waits = job.status == JobStatus::Queued;
        let busy = waits.then(|| self.core.busy(job.gate).0);
        let lines = last_lines(&job::log_file(&self.core.home, &job.id), tail);
        Ok(JobDetails { job: job.view(&self.core.home), busy, lines })
    }

    pub async fn cancel_job(&self, id: &str, kill: bool) -> Reply<JobView> {
        let id = self.core.queue.find(id)?.id;
        let cancelled = self.core.change_job(&id, |job| {
            let waits = job.status == JobStatus::Queued;
            if waits {
                job.end(JobStatus::Cancelled, now());
            }
            waits
        });
        let job = match cancelled.await? {
            Some(job) => {
                self.core.queue.lock().logins.remove(&id);
                self.core.queue.wake.notify_one();
                job
            }
            None => self.core.kill_job(&id, kill).await?,
        };
        Ok(job.view(&self.core.home))
    }

    pub async fn clear_jobs(&self, kinds: &[JobStatus]) -> Reply<Vec<JobId>> {
        let over = |job: &&Job| job.status.is_over() && kinds.contains(&job.status);
        let ids: Vec<JobId> = {
            let inner = self.core.queue.lock();
            inner.jobs.iter().filter(over).map(|job| job.id.clone()).collect()
        };
        self.core.forget_jobs(&ids).await?;
        Ok(ids)
    }
}

impl Core {
    /// Refuses what could never be done, before anything is written.
    async fn checked_job(&self, submit: &SubmitJob) -> Reply<(Gate, Login)> {
        let usage = |text: String| Err(ControlError::new(ErrorCode::Usage, text));
        let bytes = submit.prompt.len();
        if submit.prompt.trim().is_empty() || submit.prompt.contains('\0') {
            return usage("there is nothing to do in the prompt".into());
        }
        if bytes > MAX_PROMPT || submit.args.iter().any(|arg| arg.len() > MAX_PROMPT) {
            return usage(format!("the prompt has {bytes} bytes; {MAX_PROMPT} are the most"));
        }
        if let Some(name) = submit.session_name.as_deref().filter(|name| !is_session_name(name)) {
            return usage(format!("{name:?} cannot be the name of a session"));
        }
        let workspace = crate::create::checked(&submit.create)?;
        let root =
            boxes::project::project_root(&workspace).await.map_err(crate::engine::control_error)?;
        let settings = self.settings_for(&root)?.agent(submit.agent).clone();
        if !settings.login {
            return Err(self.logins_are_off(submit.agent, ErrorCode::Usage));
        }
        let login = crate::sessions::allowed(submit.agent, submit.env.clone(), &settings);
        if !login.keys().any(|name| is_login(name)) {
            return Err(no_login(submit.agent));
        }
        if let Some(name) = &submit.create.name {
            self.free_name(name)?;
        }
        if self.queue.counts().queued as usize >= MOST_QUEUED {
            return usage(format!("{MOST_QUEUED} jobs wait already"));
        }
        let set = &self.settings.queue;
        let gate = match submit.max_working.unwrap_or(set.max_working) {
            // Somebody who names a number of boxes means boxes.
            working
                if working > 0
                    && (submit.max_running.is_none() || submit.max_working.is_some()) =>
            {
                Gate::Working(working)
            }
            _ => Gate::Running(submit.max_running.unwrap_or(set.max_concurrent).max(1)),
        };
        let login = login.into_iter().map(|(name, value)| (name, SecretText(value))).collect();
        Ok((gate, login))
    }

    fn free_name(&self, name: &str) -> Reply<()> {
        let queued = {
            let inner = self.queue.lock();
            let same =
                |job: &Job| !job.status.is_over() && job.create.name.as_deref() == Some(name);
            inner.jobs.iter().any(same)
        };
        let state = self.state();
        let reserved = |given: &BoxName| given.as_str() == name;
        let known = |known: &Known| known.record.name.as_str() == name;
        if queued || state.boxes.values().any(known) || state.reserved.keys().any(reserved) {
            let text = format!("there is already a box, or a job for one, named {name}");
            return Err(
                ControlError::new(ErrorCode::Usage, text).hint("choose another name with --name.")
            );
        }
        Ok(())
    }

    /// How many count against a gate now, and when that changes by itself.
    fn busy(&self, gate: Gate) -> (u32, Option<Millis>) {
        let now = now();
        let unnamed = self.queue.unnamed();
        let grace = Millis::from(self.settings.queue.idle_grace_seconds) * 1000;
        let state = self.state();
        let making = state.reserved.values().filter(|id| !state.boxes.contains_key(id)).count();
        // One the engine has not told about yet may run.
        let runs = |known: &&Known| match known.state {
            BoxState::Running => true,
            BoxState::Unknown => state.engine.as_ref().is_none_or(|e| e.may_have(&known.record)),
            _ => false,
        };
        let running = state.boxes.values().filter(runs).map(|known| Seen {
            created_at: known.record.created_at,
            used_at: if known.sessions > 0 { now } else { known.used_at },
            agents: known.agents_started_here(),
        });
        let running: Vec<Seen> = running.collect();
        drop(state);
        gate::busy(gate, making + unnamed, &running, grace, now)
    }

    fn tell_job(&self, job: &Job) {
        let counts = self.queue.counts();
        self.send(HostEvent::JobChanged { job: job.view(&self.home), counts });
        self.send_status();
    }

    /// Changes a job on disk, then here; none when there was nothing to change.
    async fn change_job(
        &self,
        id: &JobId,
        change: impl FnOnce(&mut Job) -> bool,
    ) -> Result<Option<Job>, StoreError> {
        let _one = self.queue.changing.lock().await;
        let Some(mut job) = self.queue.get(id) else { return Ok(None) };
        if !change(&mut job) {
            return Ok(None);
        }
        self.store.put_job(&job).await?;
        self.queue.put(job.clone());
        self.tell_job(&job);
        Ok(Some(job))
    }

    async fn forget_old_jobs(&self) -> Result<(), StoreError> {
        let old = self.queue.old(now());
        self.forget_jobs(&old).await
    }

    async fn forget_jobs(&self, ids: &[JobId]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let _one = self.queue.changing.lock().await;
        self.store.remove_jobs(ids).await?;
        self.queue.lock().jobs.retain(|job| !ids.contains(&job.id));
        for id in ids {
            let _ = std::fs::remove_file(job::log_file(&self.home, id));
        }
        self.send(HostEvent::JobsCleared { ids: ids.to_vec() });
        Ok(())
    }

    /// What an earlier host left.
    pub async fn bring_back_jobs(&self) -> Result<(), StoreError> {
        crate::home::private_dir(&job::log_dir(&self.home))
            .unwrap_or_else(|e| tracing::warn!("{}: {e}", job::log_dir(&self.home).display()));
        for mut job in self.store.jobs().await? {
            match job.status {
                JobStatus::Running => {
                    job.fail(WORKER_DIED, Some(died_hint(&job)), now());
                    self.put_ended(&job).await?;
                }
                JobStatus::Queued => match environment(job.agent) {
                    Some(login) => {
                        self.queue.lock().logins.insert(job.id.clone(), login);
                    }
                    None => {
                        let error = no_login_any_more(&job);
                        job.fail(&error.message, error.hints.into_iter().next(), now());
                        self.put_ended(&job).await?;
                    }
                },
                _ => {}
            }
            self.queue.put(job);
        }
        self.forget_old_jobs().await
    }

    async fn put_ended(&self, job: &Job) -> Result<(), StoreError> {
        work::log_of(self, job, boxes::progress::silent()).end(job.reason.as_deref());
        self.store.put_job(job).await
    }

    /// Begins jobs as there is room, until the host stops. Nothing is looked at while none waits.
    pub async fn keep_queue(self: Arc<Self>) {
        loop {
            // Listening comes first: what changes while is looked is not missed.
            let mut events = self.queue.first().map(|_| self.subscribe());
            let again = self.begin_jobs().await;
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.queue.wake.notified() => {}
                () = news(events.as_mut()) => {}
                () = tokio::time::sleep(again.unwrap_or_default()), if again.is_some() => {}
            }
        }
    }

    /// Begins as many as there is room for; when to look again, whatever happens.
    async fn begin_jobs(self: &Arc<Self>) -> Option<Duration> {
        while let Some(job) = self.queue.first() {
            if self.stop.is_cancelled() || !self.state().engine_status.reachable {
                return None;
            }
            let (busy, until) = self.busy(job.gate);
            if busy >= job.gate.max() {
                return until.map(|at| Duration::from_millis(at.saturating_sub(now()) + 1));
            }
            if let Err(error) = self.begin_job(&job.id).await {
                tracing::warn!("job {}: {error}", job.id);
                return Some(RETRY);
            }
        }
        None
    }

    async fn begin_job(self: &Arc<Self>, id: &JobId) -> Result<(), StoreError> {
        let begun = self.change_job(id, |job| {
            let waits = job.status == JobStatus::Queued;
            if waits {
                job.status = JobStatus::Running;
                job.started_at = Some(now());
            }
            waits
        });
        // Known before it begins, so that it can be ended from then on.
        let kill = CancellationToken::new();
        self.queue.lock().work.insert(id.clone(), Work::new(kill.clone()));
        match begun.await {
            Ok(Some(job)) => {
                self.tasks.spawn(self.clone().supervise(job, kill));
                Ok(())
            }
            other => {
                self.queue.lock().work.remove(id);
                other.map(drop)
            }
        }
    }
}

/// Something that may make room.
async fn news(events: Option<&mut broadcast::Receiver<HostEvent>>) {
    let Some(events) = events else { return std::future::pending().await };
    loop {
        match events.recv().await {
            Ok(
                HostEvent::BoxChanged { .. }
                | HostEvent::BoxRemoved { .. }
                | HostEvent::Status { .. },
            )
            | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// The agent's variables of the host itself, when a login is among them.
fn environment(agent: Agent) -> Option<Login> {
    let value = |name: &&str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), SecretText(value)))
    };
    let found: Login = agent.variables().iter().filter_map(value).collect();
    found.keys().any(|name| is_login(name)).then_some(found)
}

fn logins_of(agent: Agent) -> String {
    let names = agent.variables().iter().filter(|name| is_login(name));
    names.copied().collect::<Vec<_>>().join(" or ")
}

fn no_login(agent: Agent) -> ControlError {
    let (title, word) = (agent.title(), agent.as_str());
    ControlError::new(ErrorCode::Usage, format!("there is no login for {title} to give to the job"))
        .hint(format!("set {} in this terminal.", logins_of(agent)))
        .hint(format!(
            "or log in inside a box: agentbox {word} -d -n NAME, then agentbox {word} login NAME."
        ))
}

fn no_login_any_more(job: &Job) -> ControlError {
    let text = format!(
        "login-gone: the host was started again, and the login for {} was only in its memory",
        job.agent.title()
    );
    ControlError::new(ErrorCode::Failed, text).hint(format!(
        "submit it again: agentbox {} -i …, with {} set.",
        job.agent.as_str(),
        logins_of(job.agent)
    ))
}

fn died_hint(job: &Job) -> String {
    match &job.box_name {
        Some(name) => {
            format!("its box {name} is there: agentbox {} start {name}", job.agent.as_str())
        }
        None => "what it had made is taken back; submit it again.".to_owned(),
    }
}

fn last_lines(path: &Path, count: u32) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(end.saturating_sub(LOG_END)))?;
        let mut bytes = Vec::new();
        file.take(LOG_END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(count as usize);
    lines[first..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests;
