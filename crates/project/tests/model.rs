//! What a whole file means.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_project::{
    Backoff, Command, Expose, OnTimeout, PortMapping, Probe, Project, Replaced, Restart, Run,
    RunOnce,
};
use std::time::Duration;

const WHOLE: &str = include_str!("fixtures/good/whole.yaml");

#[test]
fn a_whole_file() {
    let parsed = Project::parse(WHOLE);
    assert!(parsed.errors.is_empty() && parsed.warnings.is_empty(), "{parsed:?}");
    let project = parsed.project.unwrap();
    let names: Vec<&str> = project.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["install", "env", "seed", "check"]);
    assert_eq!(project.tasks[0].run_once, Some(RunOnce::Marker));
    assert_eq!(project.tasks[2].run_once, Some(RunOnce::Check("pnpm -s db:has-rows".into())));
    assert_eq!(project.tasks[3].run_once, Some(RunOnce::Inputs(vec!["pnpm-lock.yaml".into()])));
    assert_eq!(project.tasks[3].timeout, Some(Duration::from_secs(90)));

    let Run::Image(db) = &project.services[0].run else { panic!() };
    assert_eq!((db.name.as_str(), db.container_name.as_str()), ("postgres:17", "db"));
    let ports = [
        PortMapping { host: Some(5437), container: 5432 },
        PortMapping { host: None, container: 9 },
    ];
    assert_eq!(db.ports, ports);
    assert_eq!(db.env["POSTGRES_PASSWORD"], "dev");
    assert_eq!(db.args, ["-c", "shared_buffers=256 MB"]);
    assert_eq!(project.services[0].restart, Restart::Always);

    let web = project.service("web").unwrap();
    assert_eq!(web.run, Run::Command(Command::Argv(vec!["pnpm".into(), "dev".into()])));
    assert_eq!(web.env.as_ref().unwrap()["V"], "3.10");
    assert_eq!(web.env.as_ref().unwrap()["HEX"], "0x10");
    assert_eq!(web.env.as_ref().unwrap()["ON"], "true");
    let needs: Vec<&str> = web.needs.iter().map(AsRef::as_ref).collect();
    assert_eq!(needs, ["env", "seed"], "each once");
    assert_eq!(web.expose, Some(Expose { port: 3000 }));
    assert_eq!(web.stop_grace, Duration::from_secs(2));
    assert_eq!(web.tail, Some(true));
    let expected = Backoff {
        initial: Duration::from_millis(100),
        max: Duration::from_secs(1),
        factor: 1.5,
        max_attempts: Some(3),
        ..Backoff::default()
    };
    assert_eq!(web.backoff, expected);
    let ready = web.ready_when.as_ref().unwrap();
    let Probe::Http { url, expect_status, interval, .. } = &ready.probe else { panic!() };
    assert_eq!((url.as_str(), *expect_status), ("http://127.0.0.1:3000/health", Some(204)));
    assert_eq!((*interval, ready.timeout), (Duration::from_millis(500), Duration::from_secs(60)));
    assert_eq!(ready.on_timeout, OnTimeout::MarkUnhealthy);

    let worker = project.service("worker").unwrap();
    assert!(!worker.autostart && worker.env.is_none() && worker.needs.is_empty());
    assert_eq!(worker.restart, Restart::OnFailure);
    let Probe::LogMatch(pattern) = &worker.ready_when.as_ref().unwrap().probe else { panic!() };
    assert!(pattern.is_match("worker 7 ready") && !pattern.is_match("already"));

    let set = project.rule_set("box-host").unwrap();
    assert!(matches!(&set.rules[0].from, Replaced::Matches { global: true, .. }));
    assert_eq!(set.rules[1].from, Replaced::Text("price".into()));
    let secret = &project.carry[0];
    assert_eq!(
        (secret.src.as_str(), secret.dest.as_str()),
        ("~/secrets/app.env", "/workspace/.env.local")
    );
    assert_eq!((secret.mode, secret.optional, secret.rules.len()), (Some(0o600), true, 1));
    assert_eq!(
        (project.carry[1].src.as_str(), project.carry[1].dest.as_str()),
        ("~/.npmrc", "~/.npmrc")
    );
    assert_eq!(
        (project.carry[2].src.as_str(), project.carry[2].dest.as_str()),
        ("./fixtures", "~/fixtures")
    );
    assert_eq!(project.auto_open_terminals, Some(false));
    let settings: Vec<(&str, &str)> =
        project.defaults.iter().map(|s| (s.key.as_str(), s.value.as_str())).collect();
    assert_eq!(settings, [("box.vnc", "false"), ("code.ide", "vscode")]);
    assert_eq!(project.exposed().unwrap().0.name.as_str(), "web");
}

#[test]
fn anchors_and_merge_keys_save_writing() {
    let text = "
services:
  a: &base {command: run a, restart: always, env: {X: 1}}
  b: {<<: *base, command: run b}
";
    let project = Project::parse(text).project.unwrap();
    assert_eq!(project.services[1].run, Run::Command(Command::Shell("run b".into())));
    assert_eq!(project.services[1].restart, Restart::Always);
    assert_eq!(project.services[1].env, project.services[0].env);
}
