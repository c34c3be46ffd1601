//! What the page may ask for. Everything goes on to the host over the control socket; nothing is
//! decided here, and what a page has no business with is refused before it gets there.

use crate::page::Page;
use crate::subscription::Subscription;
use host::client::{Client, ClientError};
use protocol::control::{ControlError, ErrorCode, Request};
use protocol::conversations::Begin;
use protocol::integrations::SecretText;
use protocol::question::Surface;
use protocol::sessions::{Agent, SessionKind, StartSession};
use serde_json::Value;
use std::collections::BTreeMap;
use tauri::{AppHandle, Runtime, State};

/// The longest value of a credential; the host's own limit, too.
const MOST_VALUE: usize = 64 * 1024;

/// Sends one request to the host and gives its reply.
#[tauri::command]
pub async fn call(client: State<'_, Client>, request: Value) -> Result<Value, ControlError> {
    let request = permitted(request)?;
    let client = client.inner().clone();
    let reply = tauri::async_runtime::spawn_blocking(move || client.call::<Value>(&request));
    match reply.await {
        Ok(reply) => reply.map_err(to_control),
        Err(e) => Err(ControlError::new(ErrorCode::Failed, format!("The call ended early: {e}."))),
    }
}

/// Lets the host's events flow to the page; called again, they start anew with a snapshot.
#[tauri::command]
pub fn subscribe<R: Runtime>(app: AppHandle<R>, subscription: State<'_, Subscription>) {
    subscription.begin(app);
}

/// Where the window was asked to open.
#[tauri::command]
pub fn initial_page(page: State<'_, Page>) -> String {
    page.to_string()
}

/// The request, when a window may make it. An answer from here is always one given in the window.
///
/// Only what the pages do is here: whoever tricks a page into asking gets no further than a person
/// at it could.
fn permitted(request: Value) -> Result<Request, ControlError> {
    let request = parsed(request)?;
    match request {
        // The agent as it is; what it may use of the person's environment is not for a page to say.
        Request::StartSession(StartSession {
            target,
            what: SessionKind::Agent { agent, .. },
            cols,
            rows,
        }) => {
            let (env, args) = (own_variables(agent), Vec::new());
            let begin = Begin::Nothing;
            let what = SessionKind::Agent {
                agent,
                name: None,
                args,
                env,
                sync: true,
                skip_permissions: None,
                begin,
            };
            Ok(Request::StartSession(StartSession { target, what, cols, rows }))
        }
        Request::Answer { id, digest, verdict, surface: _ } => {
            Ok(Request::Answer { id, digest, verdict, surface: Surface::Window })
        }
        Request::SetSecret { id: _, ref value } if value.0.len() > MOST_VALUE => {
            Err(ControlError::new(ErrorCode::Usage, "A credential can have 64 KiB at most."))
        }
        Request::Status
        | Request::Doctor
        | Request::Boxes
        | Request::Projects
        | Request::LookAtFolder { .. }
        | Request::CarryPlan { .. }
        | Request::StartBox { .. }
        | Request::StopBox { .. }
        | Request::PauseBox { .. }
        | Request::UnpauseBox { .. }
        | Request::Details { .. }
        | Request::Units { .. }
        | Request::WhatIfDestroyed { .. }
        | Request::DestroyBox { .. }
        | Request::Questions
        | Request::Audit(_)
        | Request::AuditVerify
        | Request::Grants
        | Request::RevokeGrant { .. }
        | Request::Mute { .. }
        | Request::Quiet { .. }
        | Request::Secrets
        | Request::SetSecret { .. }
        | Request::RemoveSecret { .. }
        | Request::TestSecret { .. }
        | Request::Integrations { .. }
        | Request::SetIntegration { .. }
        | Request::TestIntegration { .. } => Ok(request),
        // The first two are made by [`crate::long_calls`], where they can be called off.
        Request::CreateBox(_)
        | Request::FollowUsage { .. }
        | Request::Exec(_)
        | Request::Act { .. }
        | Request::Events { .. }
        | Request::FollowEvents { .. }
        | Request::Remotes { .. }
        | Request::SetBranch { .. }
        | Request::Checkpoints { .. }
        | Request::RemoveCheckpoint { .. }
        | Request::FindBox { .. }
        | Request::CreateCheckpoint(_)
        | Request::SetDefaultCheckpoint { .. }
        | Request::Sessions { .. }
        | Request::StartSession(_)
        | Request::EndSession { .. }
        | Request::WillLogIn { .. }
        | Request::Link { .. }
        | Request::EditorLink { .. }
        | Request::SshConfig
        | Request::EditorTasks { .. }
        | Request::SshHost { .. }
        | Request::Recover { .. }
        | Request::WaitFor { .. }
        | Request::Logs { .. }
        | Request::FollowBoxes
        | Request::ExportBox { .. }
        | Request::Prune { .. }
        | Request::Conversations(_)
        | Request::RelaunchAgents(_)
        | Request::Resync { .. }
        | Request::SetDisplayName { .. }
        | Request::SetLimits { .. }
        | Request::SubmitJob(_)
        | Request::Jobs
        | Request::Job { .. }
        | Request::CancelJob { .. }
        | Request::ClearJobs { .. }
        | Request::SetSetting { .. }
        | Request::Await { .. }
        | Request::AgentAsks { .. }
        | Request::Subscribe
        | Request::ShowWindow { .. }
        | Request::HandOver
        | Request::Stop => Err(refused()),
    }
}

pub fn parsed(request: Value) -> Result<Request, ControlError> {
    serde_json::from_value(request).map_err(|e| {
        ControlError::new(ErrorCode::Usage, format!("The window asked for something unknown: {e}."))
    })
}

pub fn refused() -> ControlError {
    ControlError::new(ErrorCode::Usage, "The window may not ask for this.")
}

/// What of the person's environment is for an agent, as on the command line.
fn own_variables(agent: Agent) -> BTreeMap<String, SecretText> {
    let value = |name: &&str| {
        let value = std::env::var(name).ok().filter(|v| !v.is_empty())?;
        Some(((*name).to_owned(), SecretText(value)))
    };
    agent.variables().iter().filter_map(value).collect()
}

pub fn to_control(error: ClientError) -> ControlError {
    match error {
        ClientError::Host(e) => e,
        ClientError::NotRunning(_) => ControlError::new(ErrorCode::Failed, error.to_string())
            .hint("Start it with: agentbox-desktop"),
        ClientError::Broken(_) => ControlError::new(ErrorCode::Failed, format!("{error}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_window_looks_and_acts() {
        for request in [
            json!({"method": "status"}),
            json!({"method": "boxes"}),
            json!({"method": "projects"}),
            json!({"method": "lookAtFolder", "params": {"path": "/home/me/shop"}}),
            json!({"method": "stopBox", "params": {"target": {"query": "a", "cwd": null}}}),
            json!({"method": "audit", "params": {"target": null, "limit": 10}}),
            json!({"method": "audit", "params": {"kinds": ["asked"], "text": "push", "after": 7, "limit": 10}}),
            json!({"method": "auditVerify"}),
            json!({"method": "grants"}),
            json!({"method": "revokeGrant", "params": {"id": "0".repeat(32)}}),
            json!({"method": "quiet", "params": {"seconds": null}}),
            json!({"method": "mute", "params": {"target": {"query": "a", "cwd": null}, "seconds": 60}}),
        ] {
            assert!(permitted(request.clone()).is_ok(), "{request} was refused");
        }
    }

    #[test]
    fn a_window_sets_up_services_and_credentials() {
        for request in [
            json!({"method": "integrations", "params": {"cwd": null}}),
            json!({"method": "setIntegration", "params":
                {"service": "notion", "enabled": true, "layer": "global", "cwd": null}}),
            json!({"method": "testIntegration", "params": {"service": "notion", "cwd": null}}),
            json!({"method": "secrets"}),
            json!({"method": "removeSecret", "params": {"id": "notion.token"}}),
            json!({"method": "testSecret", "params": {"id": "notion.token"}}),
        ] {
            assert!(permitted(request.clone()).is_ok(), "{request} was refused");
        }
    }

    #[test]
    fn a_credential_is_taken_up_to_its_limit_and_never_repeated() {
        let set = |id: &str, value: String| {
            permitted(json!({"method": "setSecret", "params": {"id": id, "value": value}}))
        };
        assert!(matches!(
            set("notion.token", "v".repeat(MOST_VALUE)),
            Ok(Request::SetSecret { value, .. }) if value.0.len() == MOST_VALUE
        ));
        // Bytes are counted, not characters.
        for value in ["v".repeat(MOST_VALUE + 1), "ü".repeat(MOST_VALUE / 2 + 1)] {
            let refused = set("notion.token", value.clone()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Usage);
            assert!(!format!("{refused:?}").contains(&value[..8]));
        }
        let refused = set("not an id", "hunter2-hunter2".into()).unwrap_err();
        assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
    }

    #[test]
    fn a_window_runs_nothing_and_ends_nothing() {
        for request in [
            json!({"method": "exec", "params": {"target": {"query": "a", "cwd": null},
                "argv": ["sh"], "tty": false, "cols": 80, "rows": 24}}),
            json!({"method": "act", "params": {"target": {"query": "a", "cwd": null},
                "call": "git.push", "with": {}}}),
            json!({"method": "remotes", "params": {"target": {"query": "a", "cwd": null}, "apply": true}}),
            json!({"method": "setBranch", "params": {"target": {"query": "a", "cwd": null}, "branch": "main"}}),
            json!({"method": "removeCheckpoint", "params": {"id": "agentbox/x:1"}}),
            json!({"method": "subscribe"}),
            json!({"method": "showWindow", "params": {"page": "inbox"}}),
            json!({"method": "handOver"}),
            json!({"method": "stop"}),
            json!({"method": "rm -rf"}),
            json!(null),
        ] {
            let refused = permitted(request.clone()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Usage, "{request} was taken");
        }
    }

    #[test]
    fn a_window_starts_agents_as_they_are_and_nothing_else() {
        let start = |what: Value| {
            permitted(json!({"method": "startSession", "params":
                {"target": {"query": "a", "cwd": null}, "what": what, "cols": 80, "rows": 24}}))
        };
        let agent = json!({"kind": "agent", "agent": "claude", "name": "other",
            "args": ["--mcp-config", "x"], "env": {"LD_PRELOAD": "x"}, "sync": false});
        let Ok(Request::StartSession(taken)) = start(agent) else { panic!("refused") };
        let SessionKind::Agent { name, args, env, sync, .. } = taken.what else {
            panic!("a shell")
        };
        assert!(name.is_none() && args.is_empty() && sync);
        assert!(!env.contains_key("LD_PRELOAD"));
        assert!(start(json!({"kind": "shell", "label": null})).is_err());
    }

    #[test]
    fn an_answer_cannot_claim_another_surface() {
        let request = json!({"method": "answer", "params": {
            "id": "0".repeat(32), "digest": "d", "verdict": {"kind": "allowOnce"}, "surface": "cli"}});
        let taken = permitted(request).unwrap();
        assert!(matches!(taken, Request::Answer { surface: Surface::Window, .. }));
    }
}
