use super::*;
use crate::Person;
use protocol::control::ErrorCode;
use protocol::frame::{self, Kind};
use serde_json::json;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

const ID: &str = "b00000001";
const DENIES: &str = "0000000000000000000000000000000d";
const ASKED: &str = "00000000000000000000000000000001";
const PUSH: &str = "00000000000000000000000000000002";
const ALLOWS: &str = "0000000000000000000000000000000a";

/// Says the same to everything, and keeps what was asked.
struct Says(bool, Mutex<Vec<Loosening>>);

impl Person for Says {
    fn agrees(&self, to: &Loosening) -> bool {
        self.1.lock().unwrap().push(to.clone());
        self.0
    }
}

impl Says {
    fn asked(&self) -> Vec<Loosening> {
        self.1.lock().unwrap().clone()
    }
}

fn a_box(mode: &str) -> Value {
    json!({"id": ID, "name": "fix-login", "index": 1, "project": "shop", "projectRoot": "/p/shop",
        "workspace": "/p/shop", "state": "running", "branch": null, "publish": null, "image": "i",
        "createdAt": 1, "questions": 0, "mutedUntil": null, "channel": "socket", "busy": null,
        "agents": [], "logins": [], "egress": mode})
}

fn a_rule(id: &str, scope: &str) -> Value {
    json!({"id": id, "reach": "box", "boxId": ID, "boxName": "fix-login", "project": "shop",
        "projectRoot": "/p/shop", "method": "egress.request", "scope": scope,
        "sentence": "Keep fix-login from evil.example", "createdAt": 1, "expiresAt": 2})
}

fn a_question(id: &str, method: &str) -> Question {
    Question {
        id: id.parse().unwrap(),
        box_id: ID.parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        project: "shop".into(),
        method: method.into(),
        tier: protocol::question::Tier::Sensitive,
        title: "Read evil.example/v1".into(),
        target: "evil.example".into(),
        evidence: protocol::question::Evidence::default(),
        warnings: Vec::new(),
        argv: Vec::new(),
        remember: Some(Remember {
            exact: "read below evil.example/v1/".into(),
            kind: Some("read anything from evil.example".into()),
            only: None,
        }),
        answers: protocol::question::Answers::default(),
        times: 1,
        created_at: 1,
        expires_at: 2,
        digest: "d".into(),
    }
}

fn remember(id: &str, reach: &str) -> Value {
    let verdict = json!({"kind": "remember", "reach": reach, "breadth": "kind", "seconds": 60});
    json!({"method": "answer", "params": {"id": id, "digest": "d", "verdict": verdict, "surface": "window"}})
}

fn answer(request: &Value, mode: &str) -> Result<Value, Value> {
    Ok(match request["method"].as_str().unwrap() {
        "boxes" => json!([a_box(mode)]),
        "grants" => json!([
            a_rule(DENIES, r#"{"action":"deny","host":"evil.example"}"#),
            a_rule(ALLOWS, r#"{"action":"allow","host":"a.example"}"#),
        ]),
        "settings" => json!({"project": "/p/shop", "problems": [], "settings": [{
            "key": "egress.mode", "about": "", "takes": {"kind": "text"}, "default": "open",
            "value": mode, "from": "global", "onlyGlobal": false, "afterRestart": false,
            "advanced": false, "atTerminal": false}]}),
        "egress" => json!({"mode": mode, "unavailable": null, "revision": 1, "hosts": 1,
            "lastBlocked": null, "injected": [], "grants": [], "repository": {
                "file": ".agentbox/egress.yaml", "commit": "c", "digest": "d1", "state": "waiting",
                "diff": [" domains:", "+  - host: *.evil.example\u{202e}", "-  - host: b.example"]}}),
        "questions" => json!([a_question(ASKED, "egress.request"), a_question(PUSH, "git.push")]),
        "changeEgress" if request["params"]["host"] == "bad host" => {
            return Err(json!({"code": "usage", "message": "That is no host.", "hints": []}));
        }
        "changeEgress" => {
            assert_eq!(request["params"]["dryRun"], true, "nothing is changed while it is asked");
            json!({"file": null, "added": "- host: a.example\n  rules:\n  - methods: [GET]\n",
                "widens": ["GET requests to a.example, every path"], "grant": null, "reloaded": []})
        }
        other => panic!("{other} was called before anybody said yes"),
    })
}

/// A host whose box has this mode. It ends with the test.
fn host(home: &Path, mode: &'static str) {
    let socket = host::home::control_socket(home);
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Ok(Some((_, body))) = frame::read(&mut stream) else { continue };
            let said = answer(&serde_json::from_slice(&body).unwrap(), mode);
            let kind = if said.is_ok() { Kind::Result } else { Kind::Error };
            let said = said.unwrap_or_else(|no| no);
            let _ = frame::write(&mut stream, kind, &serde_json::to_vec(&said).unwrap());
        }
    });
}

/// What a person was asked, and how it ended, when a page wants this of a box in that mode.
fn wants(
    wish: &Value,
    mode: &'static str,
    says: bool,
) -> (Vec<Loosening>, Result<(), ControlError>) {
    let home = tempfile::tempdir().unwrap();
    host(home.path(), mode);
    let person = Arc::new(Says(says, Mutex::default()));
    let window = Window::in_front_of(home.path(), person.clone());
    let request = serde_json::from_value(wish.clone()).unwrap();
    let ended = window.asked_outside(&request);
    (person.asked(), ended)
}

fn target() -> Value {
    json!({"query": ID, "cwd": null})
}

fn switch(mode: &str) -> Value {
    json!({"method": "switchEgress", "params": {"target": target(), "mode": mode}})
}

fn rule(more: Value) -> Value {
    let mut change = json!({"target": target(), "host": "a.example"});
    change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"method": "changeEgress", "params": change})
}

fn accept(accept: bool, digest: &str) -> Value {
    json!({"method": "answerRepository", "params":
        {"target": target(), "digest": digest, "accept": accept}})
}

fn create(egress: Option<&str>) -> Value {
    json!({"method": "createBox", "params": {"workspace": "/p/shop", "name": null, "image": null,
        "snapshot": null, "egress": egress}})
}

fn revoke(id: &str) -> Value {
    json!({"method": "revokeGrant", "params": {"id": id}})
}

fn echo() -> Value {
    json!({"method": "acknowledgeEcho", "params": {"host": "a.example"}})
}

fn attacks() -> Vec<Value> {
    vec![
        switch("open"),
        switch("observe"),
        switch("balanced"),
        rule(json!({})),
        rule(json!({"place": "project", "path": "/v1/"})),
        rule(json!({"action": "ask"})),
        rule(json!({"seconds": 60})),
        accept(true, "d1"),
        echo(),
        revoke(DENIES),
        remember(ASKED, "project"),
        remember(ASKED, "everywhere"),
        create(Some("open")),
        create(Some("balanced")),
    ]
}

#[test]
fn what_widens_is_asked_once_and_a_no_counts() {
    for attack in attacks() {
        let (asked, ended) = wants(&attack, "locked", false);
        assert_eq!(asked.len(), 1, "{attack}");
        assert_eq!(ended.unwrap_err().code, ErrorCode::Failed, "{attack}");
        let (asked, ended) = wants(&attack, "locked", true);
        assert_eq!((asked.len(), ended), (1, Ok(())), "{attack}");
    }
}

#[test]
fn a_repository_is_not_accepted_unread() {
    let view = |diff: Vec<String>| {
        let mut view = answer(&json!({"method": "egress"}), "locked").unwrap();
        view["repository"]["diff"] = json!(diff);
        Some(serde_json::from_value::<EgressView>(view).unwrap())
    };
    assert!(asked_for(view(vec!["+a".to_owned(); MOST_LINES]), "d1").is_ok());
    assert!(asked_for(view(vec!["+a".to_owned(); MOST_LINES + 1]), "d1").is_err());
    assert!(asked_for(view(vec!["+".repeat(MOST_OF_LINE + 1)]), "d1").is_err());
}

#[test]
fn what_would_be_remembered_is_shown_whole() {
    let (asked, _) = wants(&remember(ASKED, "everywhere"), "locked", false);
    let shown = &asked[0].allows;
    assert!(shown.contains("read anything from evil.example"), "{shown}");
    assert!(shown.contains("for 1 minutes"), "{shown}");
}

#[test]
fn what_widens_is_refused_where_nobody_can_be_asked() {
    let home = tempfile::tempdir().unwrap();
    host(home.path(), "locked");
    let page = Window::new(home.path());
    for attack in attacks() {
        let made = attack["method"] == "createBox";
        let refused =
            if made { page.begin(1, attack.clone(), |_| ()) } else { page.call(attack.clone()) };
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Usage, "{attack}");
        assert!(refused.message.contains("no page changes it"), "{attack}: {refused:?}");
        assert!(refused.hints[0].contains("agentbox "), "{attack}");
    }
}

#[test]
fn a_host_that_says_nothing_saves_no_question() {
    let home = tempfile::tempdir().unwrap();
    let person = Arc::new(Says(true, Mutex::default()));
    let window = Window::in_front_of(home.path(), person.clone());
    for (n, attack) in attacks().into_iter().enumerate() {
        let before = person.asked().len();
        let ended = window.asked_outside(&serde_json::from_value(attack.clone()).unwrap());
        if attack["method"] == "revokeGrant" {
            assert!(ended.is_err(), "which rule it is nobody knows");
            continue;
        }
        ended.unwrap();
        assert_eq!(person.asked().len(), before + 1, "{n}: {attack}");
    }
}

#[test]
fn what_tightens_or_looks_asks_nobody() {
    for free in [
        switch("locked"),
        remember(PUSH, "project"),
        remember(ASKED, "box"),
        switch("balanced"),
        switch("observe"),
        rule(json!({"action": "deny"})),
        rule(json!({"action": "deny", "place": "project"})),
        rule(json!({"dryRun": true})),
        accept(false, "d1"),
        revoke(ALLOWS),
        create(Some("locked")),
        create(Some("observe")),
        create(None),
    ] {
        let (asked, ended) = wants(&free, "observe", false);
        assert_eq!((asked.as_slice(), ended), (&[][..], Ok(())), "{free}");
    }
    let (asked, ended) = wants(&switch("open"), "open", false);
    assert_eq!((asked.as_slice(), ended), (&[][..], Ok(())), "it is open already");
}

#[test]
fn each_step_towards_open_is_a_step() {
    let modes = EgressMode::ALL;
    for (at, from) in modes.into_iter().enumerate() {
        for (to_at, to) in modes.into_iter().enumerate() {
            assert_eq!(loosens(Some(from), to), to_at < at, "{from:?} {to:?}");
        }
    }
    assert!(loosens(None, EgressMode::Balanced) && !loosens(None, EgressMode::Locked));
}

#[test]
fn a_page_names_boxes_by_their_ids() {
    for query in [json!("fix-login"), json!("1"), json!(""), json!(null)] {
        let wish = json!({"method": "switchEgress", "params":
            {"target": {"query": query, "cwd": "/p/shop"}, "mode": "open"}});
        let (asked, ended) = wants(&wish, "locked", true);
        assert_eq!(asked, []);
        assert_eq!(ended.unwrap_err().code, ErrorCode::Usage, "{query}");
    }
}

#[test]
fn a_repository_is_accepted_at_the_text_that_was_shown() {
    let (asked, ended) = wants(&accept(true, "d2"), "locked", true);
    assert_eq!(asked, []);
    assert!(ended.unwrap_err().message.contains("has changed"));
    let (asked, _) = wants(&accept(true, "d1"), "locked", true);
    let shows = &asked[0].shows;
    assert_eq!(shows.len(), 2, "what stays is no news: {shows:?}");
    assert!(shows[0].starts_with("+  - host: *.evil.example"), "{shows:?}");
    assert!(!shows[0].contains('\u{202e}'), "nothing hides: {shows:?}");
}

#[test]
fn what_the_host_refuses_is_not_asked_about() {
    let (asked, ended) = wants(&rule(json!({"host": "bad host"})), "locked", true);
    assert_eq!(asked, []);
    assert_eq!(ended.unwrap_err().message, "That is no host.");
}

#[test]
fn a_person_reads_what_would_hold_for_whom_and_how_long() {
    let told = |wish: Value| wants(&wish, "locked", true).0.remove(0);
    let one = told(rule(json!({"methods": ["GET"], "path": "/v1/", "seconds": 3600})));
    assert_eq!(one.title, "Let fix-login reach a.example?");
    assert_eq!(one.of, "For the box fix-login of /p/shop, for one hour");
    assert!(one.allows.contains("GET requests to a.example, every path"), "{}", one.allows);
    assert!(one.allows.contains("whole payload"), "{}", one.allows);
    assert_eq!(one.shows[0], "- host: a.example");
    let typed =
        "agentbox egress allow a.example --method GET --path /v1/ --ttl 3600s --box fix-login";
    assert_eq!(one.typed(), typed);
    assert_eq!(told(switch("open")).typed(), "agentbox egress mode fix-login open");
    let asks = told(rule(json!({"action": "ask", "place": "project"}))).typed();
    assert_eq!(asks, "agentbox egress ask a.example --project");
    let accepted = told(accept(true, "d1")).typed();
    assert_eq!(accepted, "agentbox egress repository fix-login --accept d1");
    let all = told(rule(json!({"place": "project", "ports": [8443]})));
    assert_eq!(all.title, "Let every box of its project reach a.example?");
    assert_eq!(all.of, "For every box of /p/shop, until you take it out");
    let open = told(switch("open"));
    assert_eq!(open.title, "Change the way out of fix-login to open?");
    assert!(open.allows.contains("nothing of it is recorded"), "{}", open.allows);
    assert_eq!(told(revoke(DENIES)).of, "Keep fix-login from evil.example");
    assert_eq!(told(create(Some("open"))).of, "The new box is of /p/shop");
    // A page's own words can say and hide nothing.
    let hidden = told(json!({"method": "acknowledgeEcho", "params":
        {"host": format!("a\u{202e}\n{}", "x".repeat(900))}}));
    assert!(!hidden.title.contains(['\u{202e}', '\n']), "{}", hidden.title);
    assert!(hidden.title.chars().count() < 420, "{}", hidden.title);
}

#[test]
fn two_things_of_one_box_are_two_questions() {
    let mut wish = create(Some("open"));
    wish["params"]["withEnv"] = json!(true);
    let (asked, ended) = wants(&wish, "locked", true);
    assert_eq!((asked.len(), ended), (2, Ok(())));
}
