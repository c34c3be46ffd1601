//! The window's process: at most one, started when someone wants to see it, forgotten when it
//! ends, ended with the app.
//!
//! A living window needs nothing from here: it hears of [`ShowWindow`] through its own
//! subscription.
//!
//! [`ShowWindow`]: protocol::control::HostEvent::ShowWindow

use crate::page::Page;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// Cheap to clone; all clones mean the same window.
#[derive(Clone)]
pub struct WindowChild {
    home: PathBuf,
    /// Owns the process and ends with it.
    living: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl WindowChild {
    pub fn new(home: PathBuf) -> Self {
        Self { home, living: Arc::default() }
    }

    /// Opens the window at a page unless one is open. Needs a runtime.
    pub fn show(&self, page: &str) -> Result<(), String> {
        let mut living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        if living.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        // The page came over the control socket: only a page of ours goes on the command line.
        let page = page.parse().unwrap_or(Page::Inbox);
        let child = self.start(&page).map_err(|e| format!("Its process did not start: {e}."))?;
        *living = Some(tokio::spawn(outlive(child)));
        Ok(())
    }

    /// Ends the window with the app.
    pub async fn end(&self) {
        let task = self.living.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // Dropping the child kills it; the window keeps nothing that could be lost.
            task.abort();
            let _ = task.await;
        }
    }

    fn start(&self, page: &Page) -> std::io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args(["--window", "--page", &page.to_string()])
            .env("AGENTBOX_HOME", &self.home)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }
}

async fn outlive(mut child: Child) {
    match child.wait().await {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!("the window ended with {status}"),
        Err(e) => tracing::warn!("the window cannot be waited for: {e}"),
    }
}
