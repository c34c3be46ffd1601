//! What boxes may reach: what the host is asked for, what asks first, and how each command ends.

use crate::support::{Call, Ended, FakeHost, Home, Terminal, a_box};
use protocol::boxes::{BoxView, Created, Progress, StepState};
use protocol::control::{ControlError, ErrorCode, HostEvent, Request};
use protocol::conversations::Relaunch;
use protocol::egress::{
    CaView, EgressChanged, EgressChecked, EgressExplained, EgressFile, EgressMode, EgressReloaded,
    EgressSuggested, EgressVerdict, EgressView, LayerState, PolicyProblem, PolicyView, Reason,
    RepositoryPolicy, Traffic, TrafficAction, TrafficKind,
};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const EVIL: &str = "x\x1b[2J\u{202e}y";

/// A box of whatever folder the program is in.
fn in_mode(egress: EgressMode) -> BoxView {
    BoxView { egress, ..a_box("/".as_ref()) }
}

fn host(egress: EgressMode, answer: fn(Request, &mut Call)) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::FindBox { .. } => call.result(&in_mode(egress)),
        Request::Boxes => call.result(&vec![in_mode(egress)]),
        other => answer(other, call),
    })
}

fn nothing_else(request: Request, _: &mut Call) {
    panic!("{request:?}");
}

fn at_a_terminal(host: &FakeHost, args: &[&str], keys: &str) -> (String, Ended) {
    let terminal = Terminal::new();
    let mut command = host.home.command(args);
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    let seen = terminal.see("[y/N]");
    terminal.type_in(keys);
    (seen, Ended::of(child))
}

fn traffic() -> Traffic {
    Traffic {
        id: "01JQ3V7M0K0000000000000002".into(),
        at: 0,
        box_id: "b0000000a".parse().unwrap(),
        kind: TrafficKind::Request,
        action: TrafficAction::Blocked,
        reason: Some(Reason::NoRuleMatched),
        detail: Some(EVIL.into()),
        scheme: Some("https".into()),
        host: Some(format!("{EVIL}.example.com")),
        port: Some(443),
        method: Some("POST".into()),
        path: Some(format!("/{EVIL}")),
        query: vec![],
        rule: None,
        injected: vec![],
        status: Some(403),
        bytes_up: 12,
        bytes_down: 0,
        ms: 1,
        proto: None,
        remote: None,
        approval: None,
    }
}

fn view(mode: EgressMode) -> EgressView {
    EgressView {
        mode,
        unavailable: None,
        revision: 1,
        hosts: 1,
        last_blocked: Some(traffic()),
        injected: vec![],
        grants: vec![],
        repository: Some(RepositoryPolicy {
            file: ".agentbox/egress.yaml".into(),
            commit: "9f31c02".into(),
            digest: "5c1f2e3d".repeat(8),
            state: LayerState::Waiting,
            diff: vec!["+domains:".into(), format!("+- {EVIL}")],
        }),
    }
}

fn problem(message: &str) -> PolicyProblem {
    let (layer, file) = ("project".into(), "egress.yaml".into());
    PolicyProblem {
        layer,
        file,
        line: 7,
        column: 3,
        message: message.into(),
        ..PolicyProblem::default()
    }
}

fn reloaded(applied: bool) -> EgressReloaded {
    EgressReloaded {
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        applied,
        problems: if applied { vec![] } else { vec![problem("must start with /")] },
        revision: 3,
        hosts: 2,
        exact_hosts: 1,
        wildcard_hosts: 1,
    }
}

#[track_caller]
fn harmless(output: &crate::support::Output) {
    let text = format!("{}{}", output.stdout, output.stderr);
    assert!(!text.contains(['\x1b', '\u{202e}', '\x07']), "{text:?}");
}

#[test]
fn a_new_box_gets_the_mode_it_is_to_have() {
    let made = || {
        FakeHost::new(|request, call| match request {
            Request::CreateBox(_) => {
                let (view, none) = (in_mode(EgressMode::Locked), Vec::new);
                let (nested, carried) = (vec![], vec![]);
                let (skipped, with_env, warnings) = (none(), none(), none());
                call.result(&Created { view, nested, skipped, with_env, carried, warnings });
            }
            other => panic!("{other:?}"),
        })
    };
    let host = made();
    let printed = host.run(&["create", "--egress", "locked"]).exits(0);
    assert!(printed.stdout.contains("egress  locked\n"), "{printed:?}");
    assert_eq!(host.asked_once("createBox")["egress"], "locked");
    let host = made();
    let _ = host.run(&["create"]).exits(0);
    assert!(host.asked_once("createBox").get("egress").is_none());
    let host = made();
    let _ = host
        .run(&["create", "--egress", "closed"])
        .exits(2)
        .says("open, observe, balanced, locked");
    let _ = host.run(&["claude", "--egress", "ask"]).exits(2).says("possible values");
    host.never_asked("createBox");
}

#[test]
fn a_list_says_what_is_not_open() {
    let listed = |mode| host(mode, nothing_else).run(&["list"]).exits(0).stdout;
    assert!(listed(EgressMode::Balanced).contains("running, balanced"));
    assert!(!listed(EgressMode::Open).contains("open"));
}

#[test]
fn a_stricter_mode_holds_at_once() {
    let host = host(EgressMode::Observe, |request, call| match request {
        Request::SwitchEgress { mode, .. } => call.result(&in_mode(mode)),
        other => panic!("{other:?}"),
    });
    let ended = host.run(&["egress", "mode", "fix-login", "locked"]).exits(0);
    let _ = ended.prints("fix-login  locked: what no rule allows is refused\n");
    assert_eq!(host.asked_once("switchEgress")["mode"], "locked");
    host.never_asked("relaunchAgents");
}

#[test]
fn a_box_that_loses_its_network_is_asked_about() {
    fn answer(request: Request, call: &mut Call) {
        match request {
            Request::SwitchEgress { mode, .. } => {
                let progress = Progress {
                    step: "Make the box anew".into(),
                    state: StepState::Done,
                    detail: None,
                    fraction: None,
                    elapsed_ms: 400,
                };
                call.event(&HostEvent::Progress { progress });
                call.result(&in_mode(mode));
            }
            Request::RelaunchAgents(_) => call.result(&Relaunch::default()),
            other => panic!("{other:?}"),
        }
    }
    let args = ["egress", "mode", "fix-login", "locked"];
    let nobody = host(EgressMode::Open, answer);
    let ended = nobody.run(&args).exits(2).says("loses its network").says("What runs in it ends");
    let _ = ended.says("hint: agentbox egress mode fix-login locked -y");
    nobody.never_asked("switchEgress");

    let no = host(EgressMode::Open, answer);
    let (seen, ended) = at_a_terminal(&no, &args, "\n");
    assert!(seen.contains("started again"), "{seen}");
    let _ = ended.exits(0).prints("");
    no.never_asked("switchEgress");

    let yes = host(EgressMode::Open, answer);
    let ended = yes.run(&[&args[..], &["-y"]].concat()).exits(0).says("✓ Make the box anew");
    assert!(ended.stdout.starts_with("fix-login  locked"), "{ended:?}");
    assert_eq!(yes.asked_once("relaunchAgents")["resync"], false);

    let looser = host(EgressMode::Locked, answer);
    let _ = looser.run(&["egress", "mode", "fix-login", "observe"]).exits(2).says("gets looser");
    looser.never_asked("switchEgress");

    let same = host(EgressMode::Locked, answer);
    let ended = same.run(&[&args[..], &["-j"]].concat()).exits(0).says("is locked already");
    assert_eq!(ended.json()["box"]["egress"], "locked");
    same.never_asked("switchEgress");
}

#[test]
fn a_status_shows_what_was_stopped_and_draws_nothing() {
    let host = host(EgressMode::Balanced, |request, call| match request {
        Request::Egress { .. } => call.result(&view(EgressMode::Balanced)),
        other => panic!("{other:?}"),
    });
    let told = host.run(&["egress", "status"]).exits(0).says("hint: agentbox egress explain 01JQ");
    assert!(told.stdout.contains("mode        balanced"), "{told:?}");
    harmless(&told);
    let told = host.run(&["egress", "status", "-j"]).exits(0);
    assert_eq!(told.json()["egress"]["lastBlocked"]["status"], 403);
    harmless(&told);
}

#[test]
fn a_policy_is_shown_for_a_box_or_for_a_new_one() {
    fn answer(request: Request, call: &mut Call) {
        match request {
            Request::EgressPolicy { .. } => call.result(&PolicyView {
                mode: EgressMode::Locked,
                text: format!("domains:\n- host: a.example.com # {EVIL}\n"),
                ..PolicyView::default()
            }),
            other => panic!("{other:?}"),
        }
    }
    let own = host(EgressMode::Locked, answer);
    let shown =
        own.run(&["egress", "policy", "show", "--origin"]).exits(0).says("Policy of fix-login");
    assert!(shown.stdout.starts_with("domains:\n- host: a.example.com"), "{shown:?}");
    harmless(&shown);
    let asked = own.asked_once("egressPolicy");
    assert_eq!((&asked["form"], &asked["of"]["cwd"]), (&json!("origins"), &json!(null)));
    assert_eq!(asked["of"]["target"]["query"], "b0000000a");

    let new = host(EgressMode::Locked, answer);
    let args = ["egress", "policy", "show", "--mode", "locked", "--agent", "codex", "--public"];
    let _ = new.run(&args).exits(0).says("Policy of a new box of this project (locked");
    let asked = new.asked_once("egressPolicy");
    assert_eq!(asked["of"]["cwd"], json!(new.home.project()));
    assert_eq!((&asked["of"]["mode"], &asked["of"]["agent"]), (&json!("locked"), &json!("codex")));
    assert_eq!((&asked["form"], &asked["of"]["target"]), (&json!("public"), &json!(null)));
    let _ = new.run(&["egress", "policy", "show", "fix-login", "--mode", "locked"]).exits(2);
    let _ = new.run(&["egress", "policy", "show", "--public", "--origin"]).exits(2);
}

#[test]
fn a_policy_that_is_none_is_2_and_warnings_are_6() {
    fn with(problems: Vec<PolicyProblem>, warnings: Vec<PolicyProblem>) -> FakeHost {
        FakeHost::new(move |request, call| match request {
            Request::Boxes => call.result(&Vec::<BoxView>::new()),
            Request::EgressPolicy { .. } => call.result(&PolicyView {
                problems: problems.clone(),
                warnings: warnings.clone(),
                ..PolicyView::default()
            }),
            other => panic!("{other:?}"),
        })
    }
    let bad = || vec![problem("must start with /")];
    let odd = || vec![PolicyProblem { code: "scope_defeated".into(), ..problem("allows all") }];
    let show = ["egress", "policy", "show"];
    let lint = ["egress", "policy", "lint"];
    let told =
        with(bad(), vec![]).run(&show).exits(2).prints("").says("hint: agentbox egress edit\n");
    let _ = told.says("error: there is no policy: project: must start with / (egress.yaml:7:3)");
    let _ = with(bad(), vec![]).run(&[&show[..], &["-j"]].concat()).exits(2);
    let _ = with(vec![], odd())
        .run(&show)
        .exits(0)
        .says("warning: scope_defeated: project: allows all");
    let told = with(bad(), odd()).run(&lint).exits(2);
    assert_eq!(told.stdout.lines().count(), 2, "{told:?}");
    let told = with(vec![], odd()).run(&lint).exits(6);
    let _ = told.prints("warning: scope_defeated: project: allows all (egress.yaml:7:3)\n");
    let told = with(vec![], odd()).run(&[&lint[..], &["-j"]].concat()).exits(6);
    assert_eq!(told.json()["policy"]["warnings"][0]["code"], "scope_defeated");
    let _ = with(vec![], vec![]).run(&lint).exits(0).says("Nothing is wrong");
}

#[test]
fn a_check_ends_as_the_request_would() {
    let checked = |verdict| {
        FakeHost::new(move |request, call| match request {
            Request::FindBox { .. } => call.result(&in_mode(EgressMode::Balanced)),
            Request::CheckEgress { url, method, .. } => call.result(&EgressChecked {
                verdict,
                reason: Some(Reason::HostNotAllowed),
                method,
                url,
                rule: None,
                injects: vec![],
                hint: Some(format!("agentbox egress allow {EVIL}")),
            }),
            other => panic!("{other:?}"),
        })
    };
    let args = ["egress", "check", "https://api.example.com/v1", "-X", "post", "fix-login"];
    for (verdict, word, code) in [
        (EgressVerdict::Allow, "allow", 0),
        (EgressVerdict::Observe, "observe", 0),
        (EgressVerdict::Deny, "deny", 3),
        (EgressVerdict::Ask, "ask", 4),
    ] {
        let host = checked(verdict);
        let told = host.run(&args).exits(code).says("For fix-login (balanced").says("hint: ");
        assert!(told.stdout.starts_with(&format!("{word}  POST https://api")), "{told:?}");
        harmless(&told);
        assert_eq!(host.asked_once("checkEgress")["method"], "POST");
        let told = checked(verdict).run(&[&args[..], &["--json"]].concat()).exits(code);
        assert_eq!(told.json()["check"]["verdict"], word);
    }
}

#[test]
fn one_word_to_explain_is_an_event_or_a_box() {
    fn answer(request: Request, call: &mut Call) {
        match request {
            Request::ExplainEgress { .. } => call.result(&EgressExplained {
                line: traffic(),
                why: "no rule for the host fits".into(),
                hint: Some("agentbox egress allow".into()),
            }),
            other => panic!("{other:?}"),
        }
    }
    let explain = |args: &[&str]| {
        let host = host(EgressMode::Balanced, answer);
        let told = host.run(&[&["egress", "explain"], args].concat()).exits(0);
        harmless(&told);
        let told = told.says("hint: agentbox egress allow");
        assert!(told.stdout.contains("why     no rule for the host fits"), "{told:?}");
        let asked = host.asked_once("explainEgress");
        (asked["event"].clone(), asked["target"]["query"].clone())
    };
    assert_eq!(explain(&[]), (json!(null), json!(null)));
    assert_eq!(explain(&["fix-login"]), (json!(null), json!("fix-login")));
    assert_eq!(explain(&["01JQ3V"]), (json!("01JQ3V"), json!(null)));
    assert_eq!(explain(&["01JQ3V", "fix-login"]), (json!("01JQ3V"), json!("fix-login")));
}

/// One that says what a rule lets through.
fn changing(widens: &'static [&'static str], applied: bool) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::ChangeEgress(change) => call.result(&EgressChanged {
            file: Some("/home/ada/.agentbox/egress.yaml".into()),
            added: "domains:\n- host: api.example.com\n".into(),
            widens: widens.iter().map(|one| (*one).to_owned()).collect(),
            grant: None,
            reloaded: if change.dry_run { vec![] } else { vec![reloaded(applied)] },
        }),
        other => panic!("{other:?}"),
    })
}

fn changes(host: &FakeHost) -> Vec<bool> {
    host.asked().iter().map(|r| r["params"]["dryRun"].as_bool().unwrap()).collect()
}

#[test]
fn a_rule_that_lets_more_through_is_asked_about() {
    const WIDENS: &[&str] = &["GET https://api.example.com/v1/ and below"];
    let args = [
        "egress",
        "allow",
        "api.example.com",
        "-X",
        "get",
        "--path",
        "/v1/",
        "--port",
        "8443",
        "--global",
    ];
    let nobody = changing(WIDENS, true);
    let ended = nobody.run(&args).exits(2).prints("").says("- host: api.example.com");
    let _ = ended.says("GET https://api.example.com/v1/ and below").says("hint: add --yes");
    assert_eq!(changes(&nobody), [true]);
    let asked = nobody.asked_once("changeEgress");
    assert_eq!(asked["methods"], json!(["GET"]));
    assert_eq!((&asked["place"], &asked["action"]), (&json!("global"), &json!("allow")));
    assert_eq!((&asked["path"], &asked["ports"]), (&json!("/v1/"), &json!([8443])));

    let no = changing(WIDENS, true);
    let (seen, ended) = at_a_terminal(&no, &args, "n\n");
    assert!(seen.contains("api.example.com") && seen.contains("Add this rule?"), "{seen}");
    let _ = ended.exits(0).prints("");
    assert_eq!(changes(&no), [true]);

    let at_the_terminal = changing(WIDENS, true);
    let (_, agreed) = at_a_terminal(&at_the_terminal, &args, "y\n");
    let by_flag = changing(WIDENS, true);
    let unasked = by_flag.run(&[&args[..], &["--yes"]].concat());
    for (yes, ended) in [(at_the_terminal, agreed), (by_flag, unasked)] {
        let told = "allow  api.example.com (/home/ada/.agentbox/egress.yaml)\n";
        let _ = ended.exits(0).prints(told);
        assert_eq!(changes(&yes), [true, false]);
    }

    let dry = changing(WIDENS, true);
    let ended = dry.run(&[&args[..], &["--dry-run"]].concat()).exits(0).says("was not let through");
    let _ = ended.prints("domains:\n- host: api.example.com\n");
    assert_eq!(changes(&dry), [true]);
}

#[test]
fn to_allow_always_needs_a_yes() {
    for place in [&["--global"][..], &["--project"], &["--box", "fix-login"]] {
        let host = changing(&[], true);
        let args = [&["egress", "allow", "api.example.com"], place].concat();
        let _ = host.run(&args).exits(2).says("- host: api.example.com").says("hint: add --yes");
        assert_eq!(changes(&host), [true]);
    }
}

#[test]
fn denying_and_what_opens_nothing_do_not_ask() {
    let deny = changing(&["nothing"], true);
    let told = deny.run(&["egress", "deny", "paste.example", "--project", "-j"]).exits(0);
    assert_eq!(told.json()["change"]["reloaded"][0]["applied"], true);
    assert_eq!(changes(&deny), [true, false]);
    assert!(deny.asked().iter().all(|r| r["params"]["action"] == "deny"));
    let same = changing(&[], true);
    let _ = same
        .run(&["egress", "ask", "api.example.com", "--box", "fix-login", "--ttl", "1h"])
        .exits(0);
    let asked = same.asked().remove(1)["params"].take();
    assert_eq!((&asked["place"], &asked["seconds"]), (&json!("box"), &json!(3600)));
    assert_eq!(asked["target"]["query"], "fix-login");
    let refused = changing(&[], false);
    let told = refused.run(&["egress", "ask", "api.example.com", "--global"]).exits(2);
    let _ = told.says("fix-login goes on as before").says("must start with / (egress.yaml:7:3)");
    let none = changing(&[], true);
    let _ = none.run(&["egress", "allow", "a.example", "--ttl", "1h", "--global"]).exits(2);
    let _ = none.run(&["egress", "allow", "a.example", "--project", "--global"]).exits(2);
    let _ = none.run(&["egress", "allow", "a.example", "--port", "0"]).exits(2);
    assert!(none.asked().is_empty());
}

/// A person whose editor is a script; `$1` is the file.
fn editor(home: &Home, script: &str) -> String {
    let editor = home.tmp().join("editor");
    std::fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    editor.display().to_string()
}

fn editing(there: Option<&'static str>) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::EgressFile { .. } => call.result(&EgressFile {
            path: "/home/ada/.agentbox/egress.yaml".into(),
            text: there.unwrap_or_default().into(),
            digest: there.map(|_| "the-digest".into()),
        }),
        Request::WriteEgressFile { text, .. } if text.contains("bad") => {
            let error = ControlError::new(
                ErrorCode::Usage,
                "project: domains: must be a list (egress.yaml:1:10)",
            );
            call.error(&error);
        }
        Request::WriteEgressFile { text, .. } => {
            call.result(&vec![reloaded(!text.contains("odd"))]);
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_policy_is_edited_on_a_copy_nobody_else_can_read() {
    let run = |host: &FakeHost, args: &[&str], script: &str| {
        let mut command = host.home.command(&[&["egress", "edit"], args].concat());
        command.env("EDITOR", editor(&host.home, script));
        Ended::of(command.spawn().unwrap())
    };
    let host = editing(Some("domains: []\n"));
    let script = "[ \"$(stat -c %a \"$(dirname \"$1\")\")\" = 700 ] && echo '# more' >> \"$1\"";
    let _ = run(&host, &["--global", "--agent", "claude"], script).exits(0).says("is changed");
    let asked = host.asked_once("writeEgressFile");
    assert_eq!(
        (&asked["text"], &asked["opened"]),
        (&json!("domains: []\n# more\n"), &json!("the-digest"))
    );
    assert_eq!((&asked["place"], &asked["agent"]), (&json!("global"), &json!("claude")));

    // Not a byte is not a change, of a file that begins here neither.
    for there in [Some("domains: []\n"), None] {
        let host = editing(there);
        let _ = run(&host, &[], "touch \"$1\"").exits(0).says("nothing was changed");
        host.never_asked("writeEgressFile");
    }
    let host = editing(None);
    let told = run(&host, &["-j"], "echo 'domains: [a.example]' > \"$1\"").exits(0);
    assert_eq!(told.json()["reloaded"][0]["revision"], 3);
    let asked = host.asked_once("writeEgressFile");
    assert_eq!((&asked["opened"], &asked["place"]), (&json!(null), &json!("project")));
    assert_eq!(asked["cwd"], json!(host.home.project()));

    let host = editing(None);
    let told = run(&host, &[], "echo bad > \"$1\"").exits(2).says("must be a list");
    let kept = told.stderr.lines().find_map(|line| line.split_once("what you wrote is in "));
    assert_eq!(std::fs::read_to_string(kept.unwrap().1).unwrap(), "bad\n");
    let _ = run(&editing(None), &[], "echo odd > \"$1\"").exits(2).says("goes on as before");
}

#[test]
fn a_mistake_can_be_mended_at_once() {
    let host = editing(Some("domains: []\n"));
    let terminal = Terminal::new();
    let mut command = host.home.command(&["egress", "edit"]);
    let script = "if grep -q bad \"$1\"; then echo good > \"$1\"; else echo bad > \"$1\"; fi";
    command.env("EDITOR", editor(&host.home, script));
    let child = command.stdin(terminal.end()).stderr(terminal.end()).spawn().unwrap();
    let seen = terminal.see("[Y/n]");
    assert!(seen.contains("must be a list"), "{seen}");
    terminal.type_in("\n");
    let _ = Ended::of(child).exits(0);
    let texts: Vec<_> = host.asked().iter().map(|r| r["params"]["text"].clone()).collect();
    assert_eq!(texts, [json!(null), json!("bad\n"), json!("good\n")]);
}

#[test]
fn a_reload_says_what_came_of_it_and_starts_no_host() {
    let home = Home::new();
    let _ = home.run(&["egress", "reload"]).exits(5).prints("").says("no AgentBox host is running");
    assert!(!home.path().join("logs").exists());
    let told = FakeHost::always(vec![reloaded(true)]).run(&["egress", "reload"]).exits(0);
    let _ = told.prints("fix-login  revision 3, 1 host, 1 wildcard\n");
    let host = FakeHost::always(vec![reloaded(true), reloaded(false)]);
    let told = host.run(&["egress", "reload", "fix-login"]).exits(2);
    let _ =
        told.says("its new policy is refused").says("project: must start with / (egress.yaml:7:3)");
    assert_eq!(host.asked_once("reloadEgress")["target"]["query"], "fix-login");
    let told = FakeHost::always(vec![reloaded(false)]).run(&["egress", "reload", "-j"]).exits(2);
    assert_eq!(told.json()["reloaded"][0]["applied"], false);
    let none: Vec<EgressReloaded> = vec![];
    let _ = FakeHost::always(none).run(&["egress", "reload"]).exits(0).says("No box has a policy.");
}

#[test]
fn a_log_is_shown_and_followed() {
    fn answer(request: Request, call: &mut Call) {
        match request {
            Request::Traffic(_) => call.result(&vec![traffic()]),
            Request::FollowTraffic(_) => {
                call.event(&HostEvent::Traffic { line: traffic() });
                call.event(&HostEvent::Traffic { line: traffic() });
                call.result(&());
            }
            other => panic!("{other:?}"),
        }
    }
    let log = host(EgressMode::Balanced, answer);
    let args =
        ["egress", "log", "fix-login", "--denied", "--since", "1h", "--grep", "v1", "-n", "7"];
    let told = log.run(&args).exits(0);
    assert!(
        told.stdout.contains("fix-login  stopped  POST") && told.stdout.contains("no_rule_matched"),
        "{told:?}"
    );
    harmless(&told);
    let asked = log.asked_once("traffic");
    assert_eq!(
        (&asked["denied"], &asked["text"], &asked["limit"]),
        (&json!(true), &json!("v1"), &json!(7))
    );
    assert!(asked["since"].as_u64().unwrap() > 0);
    let told = log.run(&["egress", "log", "-j"]).exits(0);
    assert_eq!(told.json()["traffic"][0]["status"], 403);

    let log = host(EgressMode::Balanced, answer);
    let told = log.run(&["egress", "log", "-f"]).exits(0);
    assert_eq!(told.stdout.lines().count(), 2, "{told:?}");
    harmless(&told);
    assert_eq!(log.asked_once("followTraffic")["target"], json!(null));
    let told = log.run(&["egress", "log", "-fj"]).exits(0);
    harmless(&told);
    for line in told.stdout.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["schema"], &line["traffic"]["status"]), (&json!(1), &json!(403)));
    }
    let none: Vec<Traffic> = vec![];
    let _ = FakeHost::always(none)
        .run(&["egress", "log"])
        .exits(0)
        .prints("")
        .says("open are not recorded");
}

#[test]
fn a_policy_is_suggested_as_yaml_alone() {
    let made = EgressSuggested {
        text: format!("domains:\n- a.example.com # {EVIL}\n"),
        lines: 1,
        notes: vec![format!("left out: {EVIL}")],
    };
    let host = FakeHost::always(made);
    let told = host.run(&["egress", "suggest", "fix-login", "--since", "2h"]).exits(0);
    harmless(&told);
    let told = told.says("From 1 line of traffic").says("warning: left out");
    assert!(told.stdout.starts_with("domains:\n- a.example.com"), "{told:?}");
    assert!(host.asked_once("suggestEgress")["since"].is_u64());
    let told =
        FakeHost::always(EgressSuggested::default()).run(&["egress", "suggest", "fix-login"]);
    let _ = told.exits(0).prints("").says("nothing that was recorded");
}

#[test]
fn use_is_an_estimate_and_says_so() {
    let used = json!([{
        "boxId": "b0000000a", "boxName": EVIL, "api": "Anthropic", "host": "api.anthropic.com",
        "calls": 12, "failed": 1, "bytesUp": 1234, "bytesDown": 99, "last": 0
    }]);
    let host = FakeHost::always(used);
    let told = host.run(&["egress", "use"]).exits(0).says("An estimate of work, not of cost");
    assert!(told.stdout.contains("1.2k/99"), "{told:?}");
    harmless(&told);
    let told = host.run(&["egress", "use", "fix-login", "--since", "1d", "-j"]).exits(0);
    assert_eq!(told.json()["use"][0]["calls"], 12);
}

#[test]
fn the_authority_is_shown_or_printed() {
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let host = FakeHost::always(CaView {
        name: "AgentBox Egress CA 1f2e3d4c".into(),
        fingerprint: "ab".repeat(32),
        not_after: 0,
        file: "/home/ada/.agentbox/egress/ca.crt".into(),
        pem: pem.into(),
    });
    let told = host.run(&["egress", "ca"]).exits(0);
    assert!(told.stdout.contains("name         AgentBox Egress CA 1f2e3d4c\n"), "{told:?}");
    let _ = host.run(&["egress", "ca", "--pem"]).exits(0).prints(pem);
    assert_eq!(host.run(&["egress", "ca", "-j"]).exits(0).json()["ca"]["pem"], pem);
}

#[test]
fn a_repositorys_wish_counts_at_the_text_that_was_seen() {
    fn answer(request: Request, call: &mut Call) {
        match request {
            Request::Egress { .. } => call.result(&view(EgressMode::Balanced)),
            Request::AnswerRepository { accept, .. } => {
                let mut now = view(EgressMode::Balanced);
                let state = if accept { LayerState::InForce } else { LayerState::Refused };
                now.repository.as_mut().unwrap().state = state;
                call.result(&now);
            }
            other => panic!("{other:?}"),
        }
    }
    let new = || host(EgressMode::Balanced, answer);
    let show = ["egress", "repository", "fix-login"];
    let told = new().run(&show).exits(0).says("--accept 5c1f2e3d");
    assert!(told.stdout.contains("  +domains:\n"), "{told:?}");
    harmless(&told);
    let told = new().run(&[&show[..], &["-j"]].concat()).exits(0);
    assert_eq!(told.json()["repository"]["state"], "waiting");

    let accept = [&show[..], &["--accept", "5c1f2e3d"]].concat();
    let nobody = new();
    let _ = nobody.run(&accept).exits(2).says("+domains:").says("hint: add --yes");
    for other in ["5c1f", "ffffffff"] {
        let told = nobody.run(&[&show[..], &["--accept", other, "-y"]].concat()).exits(2);
        let _ = told.says("is not the file of this digest");
    }
    nobody.never_asked("answerRepository");

    let yes = new();
    let (seen, ended) = at_a_terminal(&yes, &accept, "y\n");
    assert!(seen.contains("+domains:"), "{seen}");
    let _ = ended.exits(0).prints(".agentbox/egress.yaml is in force, as you accepted it\n");
    let asked = yes.asked_once("answerRepository");
    assert_eq!((&asked["digest"], &asked["accept"]), (&json!("5c1f2e3d".repeat(8)), &json!(true)));

    let refuse = new();
    let told = refuse.run(&[&show[..], &["--refuse", "5c1f2e3d"]].concat()).exits(0);
    let _ = told.prints(".agentbox/egress.yaml was refused, and has no effect\n");
    assert_eq!(refuse.asked_once("answerRepository")["accept"], false);

    let none = host(EgressMode::Balanced, |request, call| match request {
        Request::Egress { .. } => {
            call.result(&EgressView { repository: None, ..view(EgressMode::Balanced) });
        }
        other => panic!("{other:?}"),
    });
    let _ = none.run(&show).exits(0).prints("").says("has no policy of its own");
    let _ = none.run(&accept).exits(2).says("has no policy of its own");
}

#[test]
fn a_host_that_sent_credentials_back_is_acknowledged() {
    let host = FakeHost::always(true);
    let told = host.run(&["egress", "acknowledge", "api.example.com"]).exits(0);
    let _ = told.prints("api.example.com  gets credentials again\n");
    assert_eq!(host.asked_once("acknowledgeEcho")["host"], "api.example.com");
    let told = FakeHost::always(false).run(&["egress", "acknowledge", EVIL]).exits(0).prints("");
    harmless(&told);
    let _ = told.says("Nothing was held back from");
}
