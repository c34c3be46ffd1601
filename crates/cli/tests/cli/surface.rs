//! Flags that many commands share: what the host is asked for, and what is refused before.

use crate::support::{FakeHost, a_box, a_question, eventually};
use protocol::boxes::{BoxView, Created};
use protocol::control::{Exited, Request};
use protocol::conversations::ConversationView;
use protocol::frame::Kind;
use protocol::links::{SshConfig, SshHost};
use protocol::looking::Waited;
use protocol::queue::Awaited;
use protocol::rpc::Envelope;
use protocol::sessions::{Agent, SessionView};
use serde_json::{Value, json};
use std::process::Command;

fn session(name: &str, agent: Option<Agent>) -> SessionView {
    SessionView { name: name.into(), agent, attached: 0, created_at: 0 }
}

fn made() -> Created {
    let view = BoxView { project_root: "/p".into(), ..a_box("/p".as_ref()) };
    let (nested, skipped, with_env) = (vec![], vec![], vec![]);
    Created { view, nested, skipped, with_env, carried: vec![], warnings: vec![] }
}

/// One that makes boxes and starts what it is asked to.
fn willing() -> FakeHost {
    FakeHost::new(|request, call| match request {
        Request::CreateBox(_) => call.result(&made()),
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        Request::StartSession(_) => call.result(&session("claude", Some(Agent::Claude))),
        Request::SubmitJob(_) => call.result(&()),
        Request::Boxes => call.result(&vec![a_box("/p".as_ref())]),
        Request::Sessions { .. } => call.result(&vec![session("claude", Some(Agent::Claude))]),
        Request::Conversations(_) => call.result(&vec![ConversationView {
            agent: Agent::Claude,
            id: "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11".parse().unwrap(),
            folder: "/p".into(),
            changed_at: u64::MAX / 2,
            bytes: 1,
            title: None,
        }]),
        Request::Exec(_) => {
            call.send(Kind::Stdout, b"hello from the box\r\n");
            // As long as somebody looks.
            while call.next().is_some() {}
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_box_is_made_for_the_folder_named_by_either_way() {
    let host = willing();
    let other = host.home.tmp().canonicalize().unwrap();
    let path = other.to_str().unwrap();
    for args in [&["create", path][..], &["create", "-C", path], &["create", "--workspace", path]] {
        host.run(args).exits(0);
    }
    let asked = host.asked();
    let folders = asked.iter().map(|r| r["params"]["workspace"].as_str().unwrap());
    assert!(folders.clone().all(|folder| folder == path), "{asked:?}");
    assert_eq!(folders.count(), 3);
    host.run(&["create", path, "-C", path]).exits(2).says("cannot be used with");
    host.run(&["claude", "-d", "-C", "/no/such/folder"]).exits(2).says("cannot be used");
}

#[test]
fn what_a_box_is_to_have_goes_with_the_request() {
    let host = willing();
    host.run(&["create", "--no-portless", "--isolate-claude-config", "-v"]).exits(0);
    let asked = host.asked_once("createBox");
    assert_eq!((&asked["portless"], &asked["isolate"]), (&json!(false), &json!(["claude"])));

    let host = willing();
    host.run(&["claude", "-d", "--no-portless", "--portless", "--isolate-codex-config"]).exits(0);
    let asked = host.asked_once("createBox");
    assert_eq!((&asked["portless"], &asked["isolate"]), (&json!(true), &json!(["codex"])));

    let host = willing();
    host.run(&["create"]).exits(0);
    let asked = host.asked_once("createBox");
    assert!(asked.get("portless").is_none() && asked.get("isolate").is_none(), "{asked}");
}

#[test]
fn a_shell_is_opened_in_a_new_box_on_a_terminal_only() {
    let host = willing();
    host.run(&["create", "--attach"]).exits(2).says("needs a terminal").says("hint:");
    host.run(&["create", "--attach", "--json"]).exits(2).says("cannot be used with");
    host.never_asked("createBox");
}

#[test]
fn whether_an_agent_asks_is_said_for_a_box() {
    let start = |more: &[&str]| {
        let host = willing();
        let line = [&["claude", "start", "fix-login", "--no-resync", "-d"][..], more].concat();
        host.run(&line).exits(0);
        host.asked_once("startSession")["what"]["skipPermissions"].clone()
    };
    let (yes, no) = ("--dangerously-skip-permissions", "--no-dangerously-skip-permissions");
    assert_eq!(start(&[no]), json!(false));
    assert_eq!(start(&[yes]), json!(true));
    assert_eq!(start(&[no, yes]), json!(true));
    assert_eq!(start(&[]), Value::Null);
    let host = willing();
    host.run(&["opencode", "-d", no]).exits(2).says("no such choice").says("hint:");
    host.run(&["opencode", "-i", "go", no]).exits(2).says("no such choice");
    host.never_asked("createBox");
    host.never_asked("submitJob");
}

#[test]
fn a_fork_takes_files_along_or_not() {
    for (how, choice) in [("skip", "skip"), ("send", "copy")] {
        let host = willing();
        host.run(&["fork", "-C", "/", "-d", "--session", "0f3c", "--carry", how]).somehow();
        // The conversation is another folder's: nothing is made.
        host.never_asked("createBox");
        let host = FakeHost::new(|request, call| match request {
            Request::Conversations(query) => call.result(&vec![ConversationView {
                agent: Agent::Claude,
                id: "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11".parse().unwrap(),
                folder: query.folder,
                changed_at: 0,
                bytes: 1,
                title: None,
            }]),
            Request::CreateBox(_) => call.result(&made()),
            _ => call.result(&session("claude", Some(Agent::Claude))),
        });
        host.run(&["fork", "-d", "--session", "0f3c", "--carry", how]).exits(0);
        let carry = host.asked_once("createBox")["carry"].clone();
        assert!(carry.to_string().contains(choice), "{how}: {carry}");
    }
    willing().run(&["fork", "--carry", "ask"]).exits(2).says("send, skip");
}

#[test]
fn places_are_named_by_four_words() {
    let host = willing();
    for line in [
        &["claude", "-d", "--attach-in", "split"][..],
        &["claude", "--json", "--attach-in", "split"],
        &["attach", "--inline", "--attach-in", "split"],
        &["claude", "-i", "go", "--inline"],
    ] {
        host.run(line).exits(2).says("cannot be used with");
    }
    host.run(&["attach", "--attach-in", "moon"]).exits(2).says("split, window, tab, same");
    assert_eq!(host.asked(), Vec::<Value>::new());
}

/// A tmux of its own, with a person's shell in it.
struct Tmux<'h> {
    host: &'h FakeHost,
}

impl Tmux<'_> {
    fn tried(&self, words: &[&str]) -> Result<String, String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(self.host.home.tmp().join("tmux"));
        tmux.env("OWNED", self.host.home.tmp().join("owned"));
        let output = tmux.args(words).env_remove("TMUX").output().expect("tmux");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    #[track_caller]
    fn run(&self, words: &[&str]) -> String {
        self.tried(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }

    fn shows(&self, pane: &str, text: &str) {
        let shown = || self.tried(&["capture-pane", "-pJ", "-t", pane]);
        eventually(text, || shown().is_ok_and(|shown| shown.contains(text)));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let socket = self.host.home.tmp().join("tmux");
        let _ = Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output();
    }
}

#[test]
fn in_tmux_a_session_is_shown_in_a_pane_or_a_window_of_its_own() {
    let host = willing();
    let tmux = Tmux { host: &host };
    tmux.run(&["new-session", "-d", "-s", "me", "-x", "200", "-y", "50", "sh"]);
    let program = env!("CARGO_BIN_EXE_agentbox");
    let home = host.home.path().display().to_string();
    let type_in = |words: &str| {
        let line = format!("{program} --home {home} {words}; echo ended $?");
        tmux.run(&["send-keys", "-t", "me:0.0", &line, "Enter"]);
    };
    // A folder of a repository may be called anything.
    let folder = host.home.tmp().join("#(touch $OWNED)");
    std::fs::create_dir(&folder).unwrap();
    tmux.run(&["send-keys", "-t", "me:0.0", &format!("cd '{}'", folder.display()), "Enter"]);
    type_in("attach fix-login --attach-in split");
    tmux.shows("me:0.0", "ended 0");
    tmux.shows("me:0.0", "Shown beside this pane.");
    tmux.shows("me:0.1", "hello from the box");

    type_in("claude start fix-login --no-resync --attach-in window");
    tmux.shows("me:1.0", "hello from the box");
    assert_eq!(tmux.run(&["list-windows", "-t", "me"]).lines().count(), 2);
    assert!(!host.home.tmp().join("owned").exists(), "the folder's name was run");
    // Both show the agent's session of exactly that box.
    let shown: Vec<Value> = host.asked().into_iter().filter(|r| r["method"] == "exec").collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    for request in shown {
        let (argv, target) = (&request["params"]["argv"], &request["params"]["target"]);
        assert_eq!(argv[3], "claude", "{request}");
        assert_eq!(target["query"], "b0000000a", "{request}");
    }
}

#[test]
fn a_command_runs_as_the_user_that_is_named() {
    let host = FakeHost::new(|_, call| call.result(&Exited { exit_code: 0 }));
    host.run(&["shell", "fix-login", "--user", "root", "--", "id"]).exits(0);
    assert_eq!(host.asked_once("exec")["user"], "root");
    let host = FakeHost::new(|request, call| match request {
        Request::Boxes => call.result(&vec![a_box("/p".as_ref())]),
        _ => call.result(&Exited { exit_code: 0 }),
    });
    host.run(&["shell", "fix-login", "--no-login"]).exits(0);
    let asked = host.asked_once("exec");
    assert_eq!((&asked["argv"], asked.get("user")), (&json!(["bash"]), None));
    for line in [
        &["shell", "--user", "root", "--new"][..],
        &["shell", "--no-login", "--", "ls"],
        &["shell", "--ssh-config", "--user", "root"],
    ] {
        host.run(line).exits(2).says("cannot be used with");
    }
    host.run(&["shell", "fix-login", "--json"]).exits(2).says("--ssh-config");
}

#[test]
fn ssh_reaches_one_box_by_what_shell_prints() {
    let answering = || {
        FakeHost::new(|request, call| match request {
            Request::SshHost { .. } => call.result(&SshHost {
                config: "/c".into(),
                host: "agentbox-fix-login".into(),
                name: "fix-login".parse().unwrap(),
            }),
            Request::SshConfig => call.result(&SshConfig {
                path: "/c".into(),
                text: "# Written\n\nHost agentbox-other other\n  Port 1\n\n\
                       Host agentbox-fix-login fix-login\n  Port 2\n"
                    .into(),
            }),
            other => panic!("{other:?}"),
        })
    };
    let line = ["shell", "fix-login", "--ssh-config"];
    answering().run(&line).exits(0).prints("Host agentbox-fix-login fix-login\n  Port 2\n");
    let json = answering().run(&[&line[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(
        (&json["schema"], &json["sshHost"]["host"]),
        (&1.into(), &"agentbox-fix-login".into())
    );
}

#[test]
fn with_daemon_a_lone_word_is_the_box() {
    let host = FakeHost::new(|request, call| match request {
        Request::Logs { .. } => {
            call.send(Kind::Stdout, b"ready\n");
            call.result(&());
        }
        other => panic!("{other:?}"),
    });
    host.run(&["logs", "web", "--daemon"]).exits(0).prints("ready\n");
    assert_eq!(host.asked_once("logs")["target"]["query"], "web");
    host.run(&["logs", "fix-login", "web", "--daemon"]).exits(2).says("cannot be used with");
}

#[test]
fn a_boxs_git_says_what_is_changed() {
    let host = FakeHost::new(|request, call| match request {
        Request::Exec(_) => {
            call.send(Kind::Stdout, b"## agentbox/fix-login\n M \x1b[31ma.txt\n");
            call.result(&Exited { exit_code: 0 });
        }
        other => panic!("{other:?}"),
    });
    host.run(&["git", "status", "fix-login", "--short"])
        .exits(0)
        .prints("## agentbox/fix-login\n M \\x1b[31ma.txt\n");
    let argv = &host.asked_once("exec")["argv"];
    assert!(argv.to_string().contains(r#""/workspace","-c","color.ui=never","status""#), "{argv}");
    let json = host.run(&["git", "status", "--json"]).exits(0).json();
    assert_eq!(json["result"]["exitCode"], 0);
}

#[test]
fn pull_requests_are_the_boxs_and_asked_for_as_typed() {
    let github = || {
        FakeHost::new(|request, call| match request {
            Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
            Request::Act { .. } => {
                let stdout = "https://github.com/acme/shop/pull/7\n".into();
                call.result(&Envelope { stdout, ..Envelope::default() });
            }
            other => panic!("{other:?}"),
        })
    };
    let host = github();
    std::fs::write(host.home.project().join("notes.md"), "It expired.\n").unwrap();
    let line = ["git", "pr", "create", "fix-login", "--", "--title", "Fix", "-F", "notes.md"];
    host.run(&line).exits(0).prints("https://github.com/acme/shop/pull/7\n");
    let asked = host.asked_once("act");
    assert_eq!(asked["call"], "gh.pr.create");
    assert_eq!(asked["with"], json!({ "args": ["--title", "Fix", "--body=It expired.\n"] }));
    assert_eq!(asked["target"]["query"], "b0000000a");

    let host = github();
    host.run(&["git", "pr", "list"]).exits(0);
    assert_eq!(host.asked_once("act")["with"], json!({ "args": ["--head=agentbox/fix-login"] }));

    let host = github();
    host.run(&["git", "pr", "create", "--", "--web"]).exits(2).says("hint:");
    host.run(&["git", "pr", "create", "--", "-F", "/no/such"]).exits(2).says("/no/such");
    host.run(&["git", "pr", "burn"]).exits(2).says("[possible values: create, view, list");
    host.never_asked("act");
}

#[test]
fn one_boxs_questions_are_shown_and_answered() {
    let asking = || {
        FakeHost::new(|request, call| match request {
            Request::FindBox { target } => {
                let mut view = a_box("/p".as_ref());
                if target.query.as_deref() == Some("other") {
                    view.id = "b0000000b".parse().unwrap();
                }
                call.result(&view);
            }
            Request::Questions => call.result(&vec![a_question()]),
            Request::Answer { .. } => call.result(&()),
            other => panic!("{other:?}"),
        })
    };
    let json = asking().run(&["agent", "approvals", "fix-login", "-j"]).exits(0).json();
    assert_eq!(json["questions"].as_array().unwrap().len(), 1);
    let json = asking().run(&["agent", "approvals", "other", "-j"]).exits(0).json();
    assert_eq!(json["questions"].as_array().unwrap().len(), 0);
    asking().run(&["agent", "approvals", "other"]).exits(0).says("No questions.");

    let host = asking();
    host.run(&["agent", "approve", "3fa9c1d2", "--deny"]).exits(0);
    assert_eq!(host.asked_once("answer")["verdict"]["kind"], "deny");
    let host = asking();
    host.run(&["agent", "approve", "3fa9c1d2", "--digest", "the-digest"]).exits(0);
    assert_eq!(host.asked_once("answer")["verdict"]["kind"], "allowOnce");
    let host = asking();
    host.run(&["agent", "approve", "3fa9c1d2", "--deny", "--for", "1h"]).exits(2).prints("");
    // A program has read nothing without the digest.
    host.run(&["agent", "approve", "3fa9c1d2"]).exits(2).prints("");
    host.never_asked("answer");
}

#[test]
fn a_question_is_answered_by_one_of_its_options() {
    let asking = || {
        FakeHost::new(|request, call| match request {
            Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
            Request::Questions => call.result(&vec![a_question()]),
            Request::Answer { .. } => call.result(&()),
            Request::Await { .. } => {
                call.result(&Awaited { met: false, view: None, job: None });
            }
            other => panic!("{other:?}"),
        })
    };
    let approve = ["agent", "approve", "3fa9c1d2"];
    let verdict = |more: &[&str]| {
        let host = asking();
        host.run(&[&approve[..], more, &["--digest", "the-digest"]].concat()).exits(0);
        host.asked_once("answer")["verdict"].clone()
    };
    assert_eq!(verdict(&["--option", "once"])["kind"], "allowOnce");
    assert_eq!(verdict(&["--option", "1"])["kind"], "deny");
    assert_eq!(verdict(&["--cancel"])["kind"], "deny");
    let hour = json!({"kind": "remember", "reach": "project", "breadth": "exact", "seconds": 3600});
    assert_eq!(verdict(&["--option", "4"]), hour);
    assert_eq!(verdict(&["--option", "box", "--for", "1m"])["seconds"], 60);
    let host = asking();
    for bad in [
        &["--option", "yes"][..],
        &["--option", "once", "--for", "1h"],
        &["--option", "once", "--deny"],
        &["--option", "box", "--for", "1h", "--reach", "project"],
        &["--cancel", "--deny"],
        &["--option", "once"],
    ] {
        let digest: &[&str] = if bad.len() > 2 { &["--digest", "the-digest"] } else { &[] };
        host.run(&[&approve[..], bad, digest].concat()).exits(2).prints("");
    }
    host.never_asked("answer");
    // Nothing was asked in time, as far as the host says.
    let host = asking();
    host.run(&["agent", "approvals", "fix-login", "--wait", "--timeout", "10", "-j"]).exits(1);
    assert_eq!(host.asked_once("await")["until"]["until"], "asked");
    host.run(&["agent", "approvals", "fix-login", "--timeout", "10"]).exits(2);
    host.run(&["agent", "wait-for", "prompt", "fix-login", "--agent", "claude"]).exits(2);
}

#[test]
fn what_an_agent_asks_is_shown_as_its_own_words() {
    let host = FakeHost::new(|request, call| match request {
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        Request::AgentAsks { .. } => call.result(&json!([{
            "agent": "claude", "state": "end-plan", "since": 0, "questions": [], "cut": false,
            "plan": "one\u{1b}[2J\ntwo",
        }])),
        other => panic!("{other:?}"),
    });
    let shown = host.run(&["agent", "get-plan-question", "fix-login"]).exits(0);
    shown.says("hint: agentbox attach fix-login");
    let json = host.run(&["agent", "get-plan-question", "fix-login", "--json"]).exits(0).json();
    assert_eq!((&json["schema"], &json["asks"][0]["state"]), (&json!(1), &json!("end-plan")));
    let quiet = FakeHost::new(|request, call| match request {
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        _ => call.result(&json!([])),
    });
    quiet.run(&["agent", "get-plan-question"]).exits(1).prints("");
}

#[test]
fn every_wait_is_written_the_same_way() {
    let wait = |time: &str| {
        let host = FakeHost::new(|_, call| {
            let view = a_box("/p".as_ref());
            call.result(&Waited { view, ready: false, why: None });
        });
        host.run(&["wait", "fix-login", "--timeout", time]).exits(1).prints("not ready\n");
        host.asked_once("waitFor")["seconds"].clone()
    };
    assert_eq!([wait("1500"), wait("30s"), wait("2m")], [json!(2), json!(30), json!(120)]);
    let host = willing();
    for line in [
        &["wait", "x"][..],
        &["code", "x"],
        &["agent", "wait-for", "done"],
        &["queue", "wait-for", "new-box"],
        &["drive", "wait", "x", "--text", "y"],
    ] {
        let bad = [line, &["--timeout", "soon"]].concat();
        host.run(&bad).exits(2).says("no time such as 30s or 2m, nor a number of milliseconds");
    }
    host.run(&["queue", "wait-for", "new-box", "--job", "3f"]).exits(2).says("hint:");
    host.run(&["queue", "wait-for", "new-box", "--box", "a"]).exits(2).says("hint:");
    assert_eq!(host.asked(), Vec::<Value>::new());
}

#[test]
fn where_no_host_runs_that_is_said() {
    let home = crate::support::Home::new();
    let none = home.run(&["host"]).exits(1).says("agentbox host start");
    assert!(none.stdout.starts_with("host       none runs\n"), "{none:?}");
    let json = home.run(&["host", "status", "--json"]).exits(1).json();
    assert_eq!((&json["host"]["running"], &json["host"]["status"]), (&false.into(), &Value::Null));
    home.run(&["host", "stop"]).exits(0);
}

/// One with a box whose supervisor says this.
fn supervised(out: &'static str, err: &'static str, exit_code: i32) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        Request::Exec(_) => {
            call.send(Kind::Stdout, out.as_bytes());
            call.send(Kind::Stderr, err.as_bytes());
            call.result(&Exited { exit_code });
        }
        other => panic!("{other:?}"),
    })
}

fn told(host: &FakeHost) -> (Value, Vec<String>) {
    let asked = host.asked_once("exec");
    let words = asked["argv"].as_array().unwrap().iter().skip(1);
    let words = words.map(|word| word.as_str().unwrap().to_owned()).collect();
    (asked["target"]["query"].clone(), words)
}

#[test]
fn a_task_is_run_and_its_exit_code_is_told() {
    let task = r#"{"name":"test","state":"pending","pid":null,"lastExitCode":null,"startedAt":null,"finishedAt":null,"command":"x"}"#;
    let host = supervised(task, "", 0);
    host.run(&["services", "run", "fix-login", "test"]).exits(0).prints("test: pending\n");
    assert_eq!(
        told(&host),
        (json!("fix-login"), ["run-task", "--json", "test"].map(Into::into).into())
    );
    let host = supervised(task, "", 0);
    let printed = host.run(&["services", "run", "test", "--force", "-j"]).exits(0).json();
    assert_eq!(printed["task"]["name"], "test");
    let words = ["run-task", "--force", "--json", "test"].map(Into::into).into();
    assert_eq!(told(&host), (json!(null), words), "one word is the task of the only box");

    let host = supervised("3 tests\n", "2 failed\ntest: failed\n", 7);
    let ended = host.run(&["services", "run", "fix-login", "test", "--wait"]).exits(7);
    let _ = ended.prints("3 tests\n").says("2 failed\ntest: failed\n");
    let words = ["run-task", "--wait", "test"].map(Into::into).into();
    assert_eq!(told(&host), (json!("fix-login"), words));

    let host = supervised("", "agentbox-ctl: there is no unit tset\n", 1);
    let ended = host.run(&["services", "run", "fix-login", "tset"]).exits(1);
    let _ = ended.says("error: there is no unit tset\n").says("hint: agentbox services list");
    host.run(&["services", "run"]).exits(2).says("TASK");
}

#[test]
fn services_are_started_stopped_and_listed() {
    let web = r#"{"name":"web","state":"waiting","pid":null,"restarts":0,"lastExitCode":null,"startedAt":null,"readyAt":null,"nextRetryAt":null,"blockedOn":["db"],"command":"x"}"#;
    let host = supervised(web, "", 0);
    host.run(&["services", "start", "fix-login", "web"]).exits(0).prints("web: waiting for db\n");
    assert_eq!(told(&host).1, ["start", "--json", "web"]);
    let host = supervised(web, "", 0);
    host.run(&["services", "start", "fix-login", "web", "--now"]).exits(0);
    assert_eq!(told(&host).1, ["start", "--now", "--json", "web"]);
    let host = supervised(web, "", 0);
    let printed = host.run(&["services", "stop", "web", "-j"]).exits(0).json();
    assert_eq!(printed["service"]["state"], "waiting");
    assert_eq!(told(&host), (json!(null), ["stop", "--json", "web"].map(Into::into).into()));
    let host = supervised("", "agentbox-ctl: seed is a task; use 'run-task'\n", 1);
    host.run(&["services", "start", "fix-login", "seed"]).exits(1).says("seed is a task");

    for words in [&["services"][..], &["services", "list"]] {
        let host = supervised(r#"{"services":[],"tasks":[]}"#, "", 0);
        let printed = host.run(&[words, &["fix-login", "-j"]].concat()).exits(0).json();
        assert!(printed["status"]["services"].is_array(), "{printed}");
        assert_eq!(told(&host), (json!("fix-login"), ["status", "--json"].map(Into::into).into()));
    }
}

#[test]
fn an_editor_opens_although_a_box_is_not_ready() {
    let answers = |said: &'static str, err: &'static str, exit_code: i32| {
        FakeHost::new(move |request, call| match request {
            Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
            Request::EditorLink { .. } => {
                call.result(&json!({"container": "c", "uri": "vscode-remote://x"}));
            }
            Request::EditorTasks { .. } => call.result(&json!("noServices")),
            Request::WaitFor { .. } => {
                let view = a_box("/p".as_ref());
                call.result(&Waited { view, ready: true, why: None });
            }
            Request::Exec(_) => {
                call.send(Kind::Stdout, said.as_bytes());
                call.send(Kind::Stderr, err.as_bytes());
                call.result(&Exited { exit_code });
            }
            other => panic!("{other:?}"),
        })
    };
    let waits = |host: &FakeHost| host.asked().iter().filter(|r| r["method"] == "exec").count();
    let code = ["code", "fix-login", "--print"];
    let host = answers(r#"{"ready":true}"#, "", 0);
    let ended = host.run(&code).exits(0).prints("vscode-remote://x\n");
    assert_eq!((ended.stderr.as_str(), waits(&host)), ("", 1));
    let host = answers(r#"{"ready":false,"failed":["seed"],"timedOut":["web"]}"#, "", 1);
    let ended = host.run(&[&code[..], &["--timeout", "9s"]].concat()).exits(0);
    let ended = ended.prints("vscode-remote://x\n").says("at most 9 s");
    let _ = ended.says("the box is not ready: failed: seed; not up in time: web");
    assert_eq!(waits(&host), 2);
    // Nobody who can say, or a file with mistakes, is no reason to stay away.
    for (err, exit_code) in [("agentbox-ctl: no supervisor\n", 126), ("agentbox-ctl: (Y011)\n", 2)]
    {
        let ended = answers("", err, exit_code).run(&code).exits(0).prints("vscode-remote://x\n");
        let _ = ended.says("the box is not ready: ");
    }
    let host = answers("", "", 1);
    host.run(&[&code[..], &["--no-wait"]].concat()).exits(0).prints("vscode-remote://x\n");
    assert_eq!(waits(&host), 0);
}
