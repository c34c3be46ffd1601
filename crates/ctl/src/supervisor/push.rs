//! Tells the host how the units are: each change once, and the whole a moment after the last one.
//!
//! What the host does not take is offered again, ever more slowly. Once it has the newest, nothing is
//! sent and no timer runs.

use super::engine::Change;
use super::status::{self, Known};
use crate::client::Relay;
use protocol::rpc::EventPost;
use protocol::supervisor::{BoxStatus, UnitState as State};
use serde::Serialize;
use serde_json::json;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Changes come in bursts.
const QUIET: Duration = Duration::from_millis(300);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

enum News {
    Status(Box<(BoxStatus, Vec<Known>)>),
    Change {
        kind: &'static str,
        payload: serde_json::Value,
    },
    /// The last one is sent without a pause.
    End(Sender<()>),
}

/// What was told last. Telling nobody outside a box.
#[derive(Default)]
pub struct Push {
    to: Option<Sender<News>>,
}

impl Push {
    pub fn start() -> Self {
        if std::env::var_os("AGENTBOX_BOX_ID").is_none() {
            return Self::default();
        }
        let (to, news) = channel();
        let started = super::thread("push", move || post(&news));
        Self { to: started.ok().map(|()| to) }
    }

    pub fn status(&self, status: (BoxStatus, Vec<Known>)) {
        if let Some(to) = &self.to {
            let _ = to.send(News::Status(Box::new(status)));
        }
    }

    pub fn change(&self, change: &Change) {
        let Some(to) = &self.to else { return };
        let told = match change.kind {
            "task" => matches!(change.state, State::Done | State::Failed | State::Skipped),
            _ => !matches!(change.state, State::Pending | State::Waiting | State::Starting),
        };
        if told {
            let kind = if change.kind == "task" { "task-state" } else { "service-state" };
            let payload = json!({ change.kind: change.unit, "state": change.state });
            let _ = to.send(News::Change { kind, payload });
        }
    }

    /// The last status reaches the host, if it listens.
    pub fn end(&self, limit: Duration) {
        let (done, wait) = channel();
        if let Some(to) = &self.to
            && to.send(News::End(done)).is_ok()
        {
            let _ = wait.recv_timeout(limit);
        }
    }
}

fn post(news: &Receiver<News>) {
    let mut latest: Option<(BoxStatus, Vec<Known>)> = None;
    let (mut due, mut retry): (Option<Instant>, Duration) = (None, FIRST_RETRY);
    loop {
        let heard = match due {
            None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => news.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let ending = match heard {
            Ok(News::Status(status)) => {
                latest = Some(*status);
                due = Some(Instant::now() + QUIET);
                None
            }
            Ok(News::Change { kind, payload }) => {
                let _ = send(kind, &payload);
                None
            }
            Ok(News::End(done)) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if ending.is_some() || due.is_some_and(|due| due <= Instant::now()) {
            due = None;
            if let Some((status, known)) = &mut latest {
                status.ports = status::ports(known);
                if send(EventPost::BOX_STATUS, status).is_ok() {
                    latest = None;
                    retry = FIRST_RETRY;
                } else {
                    due = Some(Instant::now() + retry);
                    retry = (retry * 2).min(LAST_RETRY);
                }
            }
        }
        if let Some(done) = ending {
            let _ = done.send(());
            return;
        }
    }
}

fn send(kind: &str, payload: &impl Serialize) -> crate::error::Result<()> {
    let payload = serde_json::value::to_raw_value(payload)
        .map_err(|e| crate::error::Error::Failed(e.to_string()))?;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ts = since.ok().and_then(|since| u64::try_from(since.as_millis()).ok());
    Relay::open()?.event(&EventPost { kind: kind.to_owned(), ts, payload: Some(payload) })
}
