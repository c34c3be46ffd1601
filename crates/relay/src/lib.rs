//! The box-facing server: authenticate, decide, gate, execute, answer.
//!
//! Each box has one door: its Unix socket, or its bridge. What arrives there is hostile: it is
//! bounded, parsed into types and refused before anything is spawned or anyone is asked. [`decide`]
//! is pure; [`call`] and the modules named after the families of methods do.
//!
//! The surprising thing: host programs never run in a folder a box can write. A push goes through
//! a clean transfer repository ([`transfer`]) that holds no hook and no setting of the box's.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bridge;
mod call;
mod checkpoint;
mod decide;
mod files;
mod gh;
mod git;
mod http;
mod integration;
mod limits;
mod link;
mod patient;
mod ports;
mod probe;
pub mod process;
mod programs;
mod registration;
mod server;
#[cfg(test)]
mod testing;
mod token;
pub mod transfer;

pub use bridge::{BridgeStream, watched};
pub use http::fetch_json;
pub use limits::Bucket;
pub use ports::{
    BoxPort, Checkpoints, Credentials, Entry, EventLog, IntegrationPolicy, Mode, NewCheckpoint,
    Policies, Policy, PortError, Trail, TrailError,
};
pub use probe::Probe;
pub use registration::{Registration, RemoteUrls, Worktree};
pub use server::{Activity, Deps, Rates, Relay, Waits};
pub use token::{Token, TokenHash};

/// For throwing noise at decisions, with a box that has a repository on GitHub and everything
/// switched on.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    use crate::decide::{Plan, Refusal, Request, decide as decided};
    use crate::{IntegrationPolicy, Policy, Registration, RemoteUrls, Worktree, files};
    use connectors::checkpoint::Create;
    use connectors::files::{CopyIn, CopyOut, Download};
    use connectors::link::Link;
    use serde_json::value::RawValue;

    /// What would be done. Plans that are no more than a command line have targets of their own.
    #[derive(Debug)]
    pub enum Passed {
        ToHost(CopyOut),
        FromHost(CopyIn),
        Download(Download),
        Link(Link),
        Checkpoint(Create),
        CommandLine,
    }

    /// What would be done, or the exit code or HTTP status of a refusal and its text. None when the
    /// parameters are no JSON at all.
    pub fn decide(method: &str, params: &str) -> Option<Result<Passed, (i32, String)>> {
        let params = RawValue::from_string(params.to_owned()).ok()?;
        let reg = registration()?;
        let on = IntegrationPolicy { enabled: true, ..IntegrationPolicy::default() };
        let all = connectors::registry::CONNECTORS.iter();
        let integrations = all.map(|c| (c.service.to_owned(), on.clone())).collect();
        let policy = Policy { integrations, checkout: true, ..Policy::default() };
        let request = Request { reg: &reg, policy: &policy, method, params: Some(&params) };
        Some(match decided(&request) {
            Ok(plan) => Ok(passed(plan)),
            Err(Refusal::Unknown) => Err((501, String::new())),
            Err(Refusal::Bad(text)) => Err((400, text)),
            Err(Refusal::Rule(envelope)) => Err((envelope.exit_code, envelope.stderr)),
        })
    }

    fn passed(plan: Plan) -> Passed {
        match plan {
            Plan::Files(files::Plan::ToHost(copy)) => Passed::ToHost(copy),
            Plan::Files(files::Plan::FromHost(copy)) => Passed::FromHost(copy),
            Plan::Files(files::Plan::Download(download)) => Passed::Download(download),
            Plan::Link(plan) => Passed::Link(plan.0),
            Plan::Checkpoint(plan) => Passed::Checkpoint(plan.0),
            Plan::Git(_) | Plan::Gh(_) | Plan::Integration(_) => Passed::CommandLine,
        }
    }

    fn registration() -> Option<Registration> {
        let url = "https://github.com/o/r.git".to_owned();
        let worktree = Worktree {
            container_path: "/workspace".into(),
            branch: "agentbox/smoke".parse().ok()?,
            own_branch: true,
            publish: None,
            base: None,
            host_repo: "/r".into(),
            host_objects: "/r/.git/objects".into(),
            object_format: "sha1".into(),
            remotes: [("origin".parse().ok()?, RemoteUrls { fetch: url.clone(), push: url })]
                .into(),
            transfer: "/t".into(),
        };
        Some(Registration {
            id: "b00000001".parse().ok()?,
            name: "smoke".parse().ok()?,
            project: "shop".into(),
            project_root: "/r".into(),
            workspace: "/r".into(),
            worktrees: vec![worktree],
        })
    }
}
