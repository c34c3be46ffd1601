//! Which requests a page may make, and in which form. What lets boxes do more is asked about besides
//! ([`crate::loosening`]).

use crate::usage;
use protocol::control::{ControlError, Request};
use protocol::conversations::Begin;
use protocol::egress::{EgressChange, EgressPlace, TrafficQuery};
use protocol::integrations::SecretText;
use protocol::question::Surface;
use protocol::sessions::{Agent, SessionKind, StartSession, is_shell};
use serde_json::Value;
use settings::registry;
use std::collections::BTreeMap;

/// The longest value of a credential; the host's own limit, too.
const MOST_VALUE: usize = 64 * 1024;
const MOST_HOSTS: usize = 64;
/// More lines of traffic than a page keeps.
const MOST_TRAFFIC: u32 = 5_000;
/// Of the words that are looked for in it.
const MOST_SOUGHT: usize = 200;

/// The request, when a window may make it. An answer from here is always one given in the window.
pub fn now(request: Value) -> Result<Request, ControlError> {
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
        Request::EndSession { target: _, ref name } if !is_shell(name) => Err(refused()),
        // What names programs, files or addresses of this computer is said at a terminal.
        Request::SetSetting { ref key, .. }
            if registry::find(key).is_some_and(|known| known.at_terminal) =>
        {
            Err(usage("This setting is changed at a terminal: agentbox config set"))
        }
        Request::Answer { id, digest, verdict, surface: _ } => {
            Ok(Request::Answer { id, digest, verdict, surface: Surface::Window })
        }
        Request::SetSecret { ref value, .. } if value.0.len() > MOST_VALUE => {
            Err(usage("A credential can have 64 KiB at most."))
        }
        Request::SetSecret { hosts: Some(ref hosts), .. } if hosts.len() > MOST_HOSTS => {
            Err(usage("A credential can be bound to 64 hosts at most."))
        }
        // What is for every project is said at a terminal; a page shows one box of one project.
        Request::ChangeEgress(EgressChange { place: EgressPlace::Global, .. }) => {
            Err(usage("A rule for every project is made at a terminal: agentbox egress allow"))
        }
        Request::Traffic(query) => Ok(Request::Traffic(bounded(query))),
        // A shell like any other; what a person types there is theirs.
        Request::StartSession(StartSession {
            what: SessionKind::Shell { plain: false, .. },
            ..
        })
        | Request::Status
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
        | Request::Sessions { .. }
        | Request::EndSession { .. }
        | Request::AgentAsks { .. }
        | Request::Settings { .. }
        | Request::SetSetting { .. }
        | Request::SetDisplayName { .. }
        | Request::SetLimits { .. }
        | Request::Checkpoints { .. }
        | Request::Recover { .. }
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
        | Request::TestIntegration { .. }
        | Request::Egress { .. }
        | Request::EgressPolicy { .. }
        | Request::CheckEgress { .. }
        | Request::ExplainEgress { .. }
        | Request::ReloadEgress { .. }
        | Request::SuggestEgress { .. }
        | Request::ApiUse { .. }
        | Request::EgressCa
        // What of these lets boxes do more is asked about by [`crate::way_out`].
        | Request::SwitchEgress { .. }
        | Request::ChangeEgress(_)
        | Request::AnswerRepository { .. }
        | Request::AcknowledgeEcho { .. } => Ok(request),
        // The first two are made by [`crate::long`], where they can be called off.
        Request::CreateBox(_)
        | Request::FollowUsage { .. }
        | Request::Exec(_)
        | Request::Act { .. }
        | Request::Events { .. }
        | Request::FollowEvents { .. }
        | Request::Remotes { .. }
        | Request::SetBranch { .. }
        | Request::RemoveCheckpoint { .. }
        | Request::FindBox { .. }
        | Request::CreateCheckpoint(_)
        | Request::SetDefaultCheckpoint { .. }
        | Request::StartSession(_)
        | Request::WillLogIn { .. }
        | Request::Link { .. }
        | Request::EditorLink { .. }
        | Request::SshConfig
        | Request::EditorTasks { .. }
        | Request::SshHost { .. }
        | Request::WaitFor { .. }
        | Request::Logs { .. }
        | Request::FollowBoxes
        | Request::ExportBox { .. }
        | Request::Prune { .. }
        | Request::Conversations(_)
        | Request::RelaunchAgents(_)
        | Request::Resync { .. }
        | Request::SubmitJob(_)
        | Request::Jobs
        | Request::Job { .. }
        | Request::CancelJob { .. }
        | Request::ClearJobs { .. }
        // A whole file may say what no page may.
        | Request::WriteSettings { .. }
        | Request::EgressFile { .. }
        | Request::WriteEgressFile { .. }
        // It never ends: a stream, made by [`crate::stream`].
        | Request::FollowTraffic(_)
        | Request::Await { .. }
        | Request::Subscribe
        // Said by [`crate::front`], which also knows whether it is so.
        | Request::InFront { .. }
        | Request::ShowWindow { .. }
        | Request::HandOver
        | Request::Stop => Err(refused()),
    }
}

/// As much of the traffic as a page can show.
pub fn bounded(query: TrafficQuery) -> TrafficQuery {
    let short = |text: String| text.chars().take(MOST_SOUGHT).collect();
    let limit = query.limit.min(MOST_TRAFFIC);
    TrafficQuery { limit, text: query.text.map(short), ..query }
}

pub fn parsed(request: Value) -> Result<Request, ControlError> {
    serde_json::from_value(request)
        .map_err(|e| usage(format!("The window asked for something unknown: {e}.")))
}

pub fn refused() -> ControlError {
    usage("The window may not ask for this.")
}

/// What of the person's environment is for an agent, as on the command line.
fn own_variables(agent: Agent) -> BTreeMap<String, SecretText> {
    let value = |name: &&str| {
        let value = std::env::var(name).ok().filter(|v| !v.is_empty())?;
        Some(((*name).to_owned(), SecretText(value)))
    };
    agent.variables().iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::control::ErrorCode;
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
            assert!(now(request.clone()).is_ok(), "{request} was refused");
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
            assert!(now(request.clone()).is_ok(), "{request} was refused");
        }
    }

    #[test]
    fn a_credential_is_taken_up_to_its_limit_and_never_repeated() {
        let set = |id: &str, value: String| {
            now(json!({"method": "setSecret", "params": {"id": id, "value": value}}))
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
    fn a_window_sees_what_boxes_send_out() {
        let of = json!({"target": {"query": "b00000001", "cwd": null}});
        let target = json!({"query": "b00000001", "cwd": null});
        for request in [
            json!({"method": "egress", "params": of}),
            json!({"method": "egressPolicy", "params": {"of": of, "form": "origins"}}),
            json!({"method": "checkEgress", "params": {"of": of, "url": "https://a.example/", "method": "GET"}}),
            json!({"method": "explainEgress", "params": {"target": target, "event": null}}),
            json!({"method": "reloadEgress", "params": {"target": null}}),
            json!({"method": "suggestEgress", "params": {"target": target, "since": null}}),
            json!({"method": "apiUse", "params": {"target": null, "since": null}}),
            json!({"method": "egressCa"}),
            json!({"method": "traffic", "params": {"limit": 10}}),
        ] {
            assert!(now(request.clone()).is_ok(), "{request} was refused");
        }
    }

    #[test]
    fn a_window_reads_and_writes_no_policy_files_and_makes_no_rule_for_everything() {
        for request in [
            json!({"method": "egressFile", "params": {"place": "project", "agent": null, "cwd": "/p"}}),
            json!({"method": "writeEgressFile", "params": {"place": "global", "agent": null,
                "cwd": null, "text": "domains: [{host: evil.example}]", "opened": null}}),
            json!({"method": "followTraffic", "params": {"limit": 1}}),
            json!({"method": "changeEgress", "params": {"place": "global", "host": "evil.example"}}),
            json!({"method": "changeEgress", "params":
                {"place": "global", "host": "evil.example", "dryRun": true}}),
        ] {
            let refused = now(request.clone()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Usage, "{request} was taken");
        }
    }

    #[test]
    fn a_window_gets_as_much_traffic_as_it_can_show() {
        let asked = json!({"method": "traffic", "params":
            {"limit": 4_000_000_000_u32, "text": "ü".repeat(5000)}});
        let Ok(Request::Traffic(query)) = now(asked) else { panic!("refused") };
        assert_eq!(query.limit, 5000);
        assert_eq!(query.text.unwrap().chars().count(), 200);
    }

    #[test]
    fn a_credential_is_bound_to_a_few_hosts() {
        let bind = |hosts: usize| {
            let hosts = vec!["a.example"; hosts];
            now(json!({"method": "setSecret", "params": {"id": "acme.key", "value": "v",
                "scope": {"of": "box", "id": "b00000001"}, "hosts": hosts}}))
        };
        assert!(bind(64).is_ok() && bind(65).is_err());
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
            json!({"method": "inFront", "params": {"id": "b00000001"}}),
            json!({"method": "showWindow", "params": {"page": "inbox"}}),
            json!({"method": "handOver"}),
            json!({"method": "stop"}),
            json!({"method": "rm -rf"}),
            json!(null),
        ] {
            let refused = now(request.clone()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::Usage, "{request} was taken");
        }
    }

    #[test]
    fn a_window_starts_agents_as_they_are_and_nothing_else() {
        let start = |what: Value| {
            now(json!({"method": "startSession", "params":
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
        assert!(start(json!({"kind": "shell", "label": null})).is_ok());
        assert!(start(json!({"kind": "shell", "label": null, "plain": true})).is_err());
        let end = |name: &str| {
            now(json!({"method": "endSession", "params":
                {"target": {"query": "a", "cwd": null}, "name": name}}))
        };
        assert!(end("shell-2").is_ok() && end("claude").is_err());
    }

    #[test]
    fn a_window_names_no_program_file_or_address_of_the_host() {
        let set = |key: &str, value: &str| {
            now(json!({"method": "setSetting", "params":
                {"key": key, "value": value, "layer": "global", "cwd": null}}))
        };
        assert!(set("box.memory", "4g").is_ok() && set("approvals.mode", "ask").is_ok());
        for key in [
            "approvals.promptCommand",
            "engine.host",
            "box.image",
            "box.extraCas",
            "integrations.notion.baseUrl",
            "update.feed",
            "workspace.trusted",
            "box.docker",
        ] {
            assert!(set(key, "x").is_err(), "{key}");
        }
        let whole = json!({"method": "writeSettings", "params":
            {"text": "engine: {host: x}\n", "opened": null, "layer": "global", "cwd": null}});
        assert!(now(whole).is_err());
    }

    #[test]
    fn an_answer_cannot_claim_another_surface() {
        let request = json!({"method": "answer", "params": {
            "id": "0".repeat(32), "digest": "d", "verdict": {"kind": "allowOnce"}, "surface": "cli"}});
        let taken = now(request).unwrap();
        assert!(matches!(taken, Request::Answer { surface: Surface::Window, .. }));
    }
}
