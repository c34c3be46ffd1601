//! What every command needs: the home, a way to talk, and a host to ask.

use crate::error::CommandError;
use crate::launch;
use crate::ui::Ui;
use host::client::Client;
use protocol::control::Target;
use std::path::{Path, PathBuf};

pub struct Context {
    pub home: PathBuf,
    pub ui: Ui,
}

impl Context {
    pub fn new(home: Option<PathBuf>, ui: Ui) -> Result<Self, CommandError> {
        let home = home.or_else(host::home::default_home).ok_or_else(|| {
            CommandError::usage("there is no home folder to keep AgentBox's state in")
                .hint("name one with --home or AGENTBOX_HOME")
        })?;
        // The host is another process with another working directory.
        Ok(Self { home: std::path::absolute(home)?, ui })
    }

    /// The host as it is; a call fails when none runs.
    pub fn client_if_running(&self) -> Client {
        Client::new(&self.home)
    }

    /// A host that answers, started when none runs.
    pub fn client(&self) -> Result<Client, CommandError> {
        let client = self.client_if_running();
        if !launch::is_running(&self.home) {
            launch::start(&self.home, &client, &self.ui)?;
        }
        Ok(client)
    }
}

/// The box a person named, seen from where they are.
pub fn target(query: Option<String>) -> Target {
    Target { query, cwd: current_dir().map(|d| d.to_string_lossy().into_owned()) }
}

/// Where the person is, with symbolic links resolved as the host resolves a project's folder.
pub fn current_dir() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    Some(here.canonicalize().unwrap_or(here))
}

/// The folder that holds this program, where its companions lie.
pub fn own_folder() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_owned)
}
