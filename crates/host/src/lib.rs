//! The composition root: one process that owns a home and everything in it.
//!
//! [`Host::start`] takes the lock, opens the store, binds the control socket and every box's relay
//! socket, and follows the container engine. [`Api`] is the one surface: the tray process calls
//! its methods, the control socket forwards to them, tests use both.
//!
//! The surprising thing: an engine that is not there is a state people can see, not a reason not
//! to start. Boxes are listed as unknown until it comes back.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod adjust;
mod agent_config;
mod api;
mod asks;
mod autopause;
pub mod autostart;
mod box_user;
mod bridge;
mod carry;
mod checkpoints;
pub mod client;
mod code;
mod config;
mod control;
mod conversations;
mod core;
mod create;
mod credentials;
pub mod daemons;
mod destroy;
mod doctor;
mod down;
mod egress;
mod engine;
mod events;
mod front;
pub mod home;
mod integrations;
mod journal;
mod lock;
mod looking;
pub mod opener;
pub mod oplog;
mod policies;
mod port;
mod portless;
mod project_dirs;
mod projects;
mod prompt_command;
mod prune;
mod queue;
pub mod quiet;
mod remotes;
mod resolve;
mod rest;
mod resync;
mod runtime;
#[cfg(test)]
mod samples;
mod sessions;
mod settings_view;
mod sink;
mod ssh_config;
pub mod ssh_keys;
mod start;
mod store;
mod strain;
mod trust;
mod units;
pub mod updates;
mod urls;
mod wall;
mod ways;

pub use api::Api;
pub use config::{
    CHANGED_HINT, ConfiguredProject, DefaultsProblems, configured_projects, defaults_problems,
    find_setting, project_layers, project_settings, read_project_file, setting_default,
    setting_names,
};
pub use doctor::offline as offline_doctor;
pub use project_dirs::project_dir;
pub use runtime::runtime;
pub use start::{Host, Options, StartError};
pub use trust::{Asked, Trust, digest, trust_of};

use std::path::{Path, PathBuf};

/// How this host meets people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Desktop,
    Headless,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Desktop => "desktop",
            Kind::Headless => "headless",
        }
    }
}

/// The static in-box binary: `$AGENTBOX_CTL`, beside the executable, or where a package puts it.
pub fn ctl_binary() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("AGENTBOX_CTL").filter(|v| !v.is_empty()) {
        return Some(PathBuf::from(given));
    }
    // Through links: on macOS a program does not learn where a link to it leads.
    let exe = std::env::current_exe().and_then(std::fs::canonicalize).ok()?;
    ctl_near(exe.parent()?)
}

/// In a clone, in a Linux package, in an app of macOS, seen from the folder of the programs.
fn ctl_near(programs: &Path) -> Option<PathBuf> {
    let places = ["box", "../lib/agentbox", "../Resources/box"];
    let at = |place| programs.join(place).join("agentbox-ctl").canonicalize().ok();
    places.into_iter().filter_map(at).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_for_boxes_is_found_wherever_the_programs_are() {
        let dir = tempfile::tempdir().unwrap();
        for (programs, place) in [
            ("clone/target/release", "clone/target/release/box"),
            ("usr/bin", "usr/lib/agentbox"),
            ("App.app/Contents/MacOS", "App.app/Contents/Resources/box"),
        ] {
            let (programs, place) = (dir.path().join(programs), dir.path().join(place));
            std::fs::create_dir_all(&programs).unwrap();
            assert_eq!(ctl_near(&programs), None);
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("agentbox-ctl"), "").unwrap();
            let found = ctl_near(&programs).unwrap().canonicalize().unwrap();
            assert_eq!(found, place.join("agentbox-ctl").canonicalize().unwrap());
        }
    }
}
