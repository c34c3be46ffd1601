//! Progress of something long, told step by step in words a person reads.
//!
//! A [`Step`] that is dropped without [`Step::done`] tells that it failed, so no early return
//! leaves a spinner turning.

use protocol::boxes::{Progress, StepState};
use std::sync::Arc;
use std::time::Instant;

/// Hears about progress. Called from async code: it must not block.
pub trait Watch: Send + Sync {
    fn progress(&self, progress: Progress);
}

impl<F: Fn(Progress) + Send + Sync> Watch for F {
    fn progress(&self, progress: Progress) {
        self(progress);
    }
}

pub type Watcher = Arc<dyn Watch>;

/// For callers that do not show progress.
pub fn silent() -> Watcher {
    Arc::new(|_: Progress| {})
}

pub(crate) struct Step {
    name: &'static str,
    watcher: Watcher,
    started: Instant,
    ended: bool,
}

impl Step {
    pub fn start(watcher: &Watcher, name: &'static str) -> Self {
        let step = Self { name, watcher: watcher.clone(), started: Instant::now(), ended: false };
        step.tell(StepState::Running, None, None);
        step
    }

    pub fn detail(&self, detail: impl Into<String>, fraction: Option<f32>) {
        self.tell(StepState::Running, Some(detail.into()), fraction);
    }

    pub fn done(mut self) {
        self.ended = true;
        self.tell(StepState::Done, None, Some(1.0));
    }

    fn tell(&self, state: StepState, detail: Option<String>, fraction: Option<f32>) {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.watcher.progress(Progress {
            step: self.name.to_owned(),
            state,
            detail,
            fraction,
            elapsed_ms,
        });
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(StepState::Failed, None, None);
        }
    }
}
