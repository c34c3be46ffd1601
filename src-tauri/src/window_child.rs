//! The window's process: at most one, started when someone wants to see it, forgotten when it
//! ends, ended with the app.
//!
//! A living window needs nothing from here but that its input stays open, which is how it learns of an end
//! that nobody could announce; it hears of [`ShowWindow`] through its own subscription.
//!
//! [`ShowWindow`]: protocol::control::HostEvent::ShowWindow

use crate::page::Page;
use crate::programs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;

/// A window that ends so soon after it was wanted was on its way out, and showed nothing to anybody.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Cheap to clone; all clones mean the same window.
#[derive(Clone)]
pub struct WindowChild {
    home: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Owns the process and ends with it.
    living: Option<JoinHandle<()>>,
    /// What a living window was last wanted for, and when.
    wanted: Option<(Page, Instant)>,
}

impl WindowChild {
    pub fn new(home: PathBuf) -> Self {
        Self { home, state: Arc::default() }
    }

    /// Opens the window at a page unless one is open. Needs a runtime.
    pub fn show(&self, page: &str) -> Result<(), String> {
        // The page came over the control socket: only a page of ours goes on the command line.
        let page = page.parse().unwrap_or(Page::Inbox);
        let mut state = self.lock();
        if state.living.as_ref().is_some_and(|task| !task.is_finished()) {
            state.wanted = Some((page, Instant::now()));
            return Ok(());
        }
        let child = self.start(&page).map_err(|e| format!("Its process did not start: {e}."))?;
        state.living = Some(tokio::spawn(self.clone().outlive(child)));
        Ok(())
    }

    /// Ends the window with the app.
    pub async fn end(&self) {
        let task = self.lock().living.take();
        if let Some(task) = task {
            // Dropping the child kills it; the window keeps nothing that could be lost.
            task.abort();
            let _ = task.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, page: &Page) -> Result<Child, String> {
        Command::new(programs::window()?)
            .args(["--page", &page.to_string(), "--of-the-tray"])
            .env("AGENTBOX_HOME", &self.home)
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| e.to_string())
    }

    async fn outlive(self, mut child: Child) {
        loop {
            // Waiting for a child closes what it still has of its input.
            let _open: Option<ChildStdin> = child.stdin.take();
            match child.wait().await {
                Ok(status) if status.success() => {}
                Ok(status) => tracing::warn!("the window ended with {status}"),
                Err(e) => tracing::warn!("the window cannot be waited for: {e}"),
            }
            let Some(page) = self.wanted_meanwhile() else { return };
            match self.start(&page) {
                Ok(next) => child = next,
                Err(e) => return tracing::warn!("the window cannot be opened again: {e}"),
            }
        }
    }

    /// Where the window was wanted while it went. If it was not, the next one who wants it starts another.
    fn wanted_meanwhile(&self) -> Option<Page> {
        let mut state = self.lock();
        let wanted = state.wanted.take().filter(|(_, at)| at.elapsed() < JUST_NOW);
        if wanted.is_none() {
            state.living = None;
        }
        wanted.map(|(page, _)| page)
    }
}
