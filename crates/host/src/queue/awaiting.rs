//! Waiting for something to become of jobs, boxes and agents. Events wake it; nothing is asked again
//! and again.

use super::Reply;
use crate::api::Api;
use protocol::boxes::BoxState;
use protocol::control::{ControlError, ErrorCode, HostEvent};
use protocol::queue::{Awaited, JobView, Until};
use protocol::sessions::{Agent, AgentState};
use protocol::{BoxId, JobId};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::broadcast;

/// Nobody waits longer.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is waited for, with names resolved when the waiting began.
enum Sought {
    NewBox(HashSet<BoxId>),
    EmptyQueue,
    Box(BoxId, BoxState),
    Job(JobId),
    /// A job that was not over then.
    AnyJob(HashSet<JobId>),
    Agent(BoxId, Option<Agent>, Vec<AgentState>),
    Asked(BoxId),
}

impl Api {
    pub async fn wait_until(&self, until: Until, timeout_ms: u64) -> Reply<Awaited> {
        let mut events = self.subscribe();
        let sought = self.sought(until)?;
        let end = tokio::time::Instant::now() + Duration::from_millis(timeout_ms).min(LONGEST);
        loop {
            if let Some(met) = self.met(&sought)? {
                return Ok(met);
            }
            if tokio::time::timeout_at(end, news(&mut events)).await.is_err() {
                return Ok(Awaited { met: false, view: None, job: None });
            }
        }
    }

    fn sought(&self, until: Until) -> Reply<Sought> {
        Ok(match until {
            Until::NewBox => Sought::NewBox(self.core.state().boxes.keys().cloned().collect()),
            Until::EmptyQueue => Sought::EmptyQueue,
            Until::BoxPaused { target } => Sought::Box(self.find(&target)?, BoxState::Paused),
            Until::BoxRunning { target } => Sought::Box(self.find(&target)?, BoxState::Running),
            Until::BoxStopped { target } => Sought::Box(self.find(&target)?, BoxState::Stopped),
            Until::JobOver { job: Some(id) } => Sought::Job(self.core.queue.find(&id)?.id),
            Until::JobOver { job: None } => {
                let inner = self.core.queue.lock();
                let over = inner.jobs.iter().filter(|job| job.status.is_over());
                Sought::AnyJob(over.map(|job| job.id.clone()).collect())
            }
            Until::Agent { target, agent, states } => {
                Sought::Agent(self.find(&target)?, agent, states)
            }
            Until::Asked { target } => Sought::Asked(self.find(&target)?),
        })
    }

    fn met(&self, sought: &Sought) -> Reply<Option<Awaited>> {
        let met = Awaited { met: true, view: None, job: None };
        let about_job = |job: JobView| Awaited { job: Some(job), ..met.clone() };
        Ok(match sought {
            Sought::NewBox(before) => {
                let new = self.core.views().into_iter().find(|view| !before.contains(&view.id));
                new.map(|view| Awaited { view: Some(view), ..met })
            }
            Sought::EmptyQueue => {
                let counts = self.core.queue.counts();
                (counts.queued + counts.running == 0).then_some(met)
            }
            Sought::Box(id, state) => {
                let view = self.core.view(id).ok_or_else(|| gone("box"))?;
                (view.state == *state).then_some(Awaited { view: Some(view), ..met })
            }
            Sought::Job(id) => {
                let job = self.core.queue.get(id).ok_or_else(|| gone("job"))?;
                job.status.is_over().then(|| about_job(job.view(&self.core.home)))
            }
            Sought::AnyJob(before) => {
                let inner = self.core.queue.lock();
                let mut new = inner.jobs.iter().filter(|job| job.status.is_over());
                let new = new.find(|job| !before.contains(&job.id));
                new.map(|job| about_job(job.view(&self.core.home)))
            }
            Sought::Agent(id, agent, states) => {
                let view = self.core.view(id).ok_or_else(|| gone("box"))?;
                let mut agents =
                    view.agents.iter().filter(|a| agent.is_none_or(|agent| a.agent == agent));
                let found = agents.any(|a| states.contains(&a.state));
                found.then_some(Awaited { view: Some(view), ..met })
            }
            Sought::Asked(id) => {
                let view = self.core.view(id).ok_or_else(|| gone("box"))?;
                (view.questions > 0).then_some(Awaited { view: Some(view), ..met })
            }
        })
    }
}

fn gone(what: &str) -> ControlError {
    ControlError::new(ErrorCode::Failed, format!("the {what} is gone"))
}

async fn news(events: &mut broadcast::Receiver<HostEvent>) {
    loop {
        match events.recv().await {
            Ok(
                HostEvent::BoxChanged { .. }
                | HostEvent::BoxRemoved { .. }
                | HostEvent::JobChanged { .. }
                | HostEvent::JobsCleared { .. },
            )
            | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}
