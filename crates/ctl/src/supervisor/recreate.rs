//! `agentbox-ctl recreate <service> --yes`: makes a service's container anew, without its data.

use super::client::{self, INVALID};
use super::config;
use super::unit::Argv;
use crate::error::{Error, Result};
use crate::places;
use project::FILE_NAME;
use protocol::exit;
use std::ffi::OsString;
use std::process::{Command, Stdio};

pub fn run(args: &[OsString]) -> Result<i32> {
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let service = match words.as_slice() {
        [service, "--yes"] | ["--yes", service] => *service,
        [service] if !service.starts_with('-') => {
            crate::complain("agentbox-ctl: what is in the container is lost; add --yes to say so.");
            return Ok(INVALID);
        }
        _ => {
            crate::complain("agentbox-ctl: use 'agentbox-ctl recreate <service> --yes'.");
            return Ok(INVALID);
        }
    };
    let workspace = places::workspace();
    let loaded = config::load(&workspace.join(FILE_NAME), &workspace).map_err(Error::Failed)?;
    let unit = loaded.units.into_iter().find(|unit| unit.name == service);
    let Some(Argv::Container(container)) = unit.map(|unit| unit.command) else {
        let shown = protocol::text::visible(service);
        crate::complain(&format!(
            "agentbox-ctl: no service '{shown}' with an image in {FILE_NAME}"
        ));
        return Ok(exit::FAILURE);
    };
    let service = [OsString::from(service)];
    let stopped = client::run("stop", &service)?;
    if stopped != exit::OK {
        return Ok(stopped);
    }
    let mut remove = Command::new("docker");
    remove.args(["rm", "-f", &container.called]).stdin(Stdio::null()).stdout(Stdio::null());
    if !remove.status().map_err(|e| Error::Program("docker", e))?.success() {
        return Ok(exit::FAILURE);
    }
    client::run("start", &service)
}
