//! Where things are in this box.
//!
//! The variables exist so that tests can run the real binary outside a box. They give a process in
//! the box no power it does not have: the host checks socket and token, whoever connects.

use protocol::bridge::Service;
use protocol::ctl::{paths, ports};
use std::path::PathBuf;

fn place(variable: &str, usual: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| usual.into(), PathBuf::from)
}

pub fn workspace() -> PathBuf {
    place("AGENTBOX_WORKSPACE", paths::WORKSPACE)
}

pub fn relay_socket() -> PathBuf {
    place("AGENTBOX_RELAY_SOCKET", paths::RELAY_SOCKET)
}

/// Beside the relay's, wherever that is.
pub fn socket(service: Service) -> PathBuf {
    relay_socket().with_file_name(service.socket())
}

pub fn token() -> PathBuf {
    place("AGENTBOX_TOKEN_FILE", paths::TOKEN)
}

/// Where the host says on which port it has addresses for boxes.
pub fn front() -> PathBuf {
    place("AGENTBOX_FRONT_FILE", paths::FRONT)
}

/// Who this box is.
pub fn identity() -> PathBuf {
    place("AGENTBOX_IDENTITY_FILE", paths::IDENTITY)
}

/// Where the proxy is that leads out of a box without a network.
pub fn proxy_port() -> u16 {
    let told = std::env::var("AGENTBOX_PROXY_PORT").ok();
    told.and_then(|port| port.parse().ok()).unwrap_or(ports::PROXY)
}

pub fn ready() -> PathBuf {
    place("AGENTBOX_READY_FILE", paths::READY)
}

/// Where images that were pasted lie.
pub fn pastes() -> PathBuf {
    place("AGENTBOX_PASTES", paths::PASTES)
}

/// Where the list of the workspace's repositories is.
pub fn repositories() -> PathBuf {
    place("AGENTBOX_REPOSITORIES_FILE", paths::REPOSITORIES)
}
