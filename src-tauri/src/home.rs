//! Where AgentBox keeps its state, and what a program that works on it begins with.

use crate::Failure;
use std::path::PathBuf;
use tokio::runtime::Runtime;

/// `$AGENTBOX_HOME`, with its folders made.
pub fn prepared() -> Result<PathBuf, Failure> {
    let home = host::home::default_home().ok_or_else(|| {
        Failure::new("there is no home folder to keep anything in.")
            .hint("Set AGENTBOX_HOME to a folder of yours.")
    })?;
    host::home::prepare(&home)
        .map_err(|e| Failure::new(format!("{} cannot be used: {e}.", home.display())))?;
    Ok(home)
}

pub fn runtime() -> Result<Runtime, Failure> {
    host::runtime().map_err(|e| Failure::new(format!("no threads to work with: {e}.")))
}
