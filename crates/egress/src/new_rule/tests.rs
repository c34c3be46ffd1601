use super::*;
use crate::policy::{HeaderRule, How, OnExisting, Transform, Unmatched};
use protocol::egress::Reason;
use std::sync::Arc;

fn name(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

fn exact(text: &str) -> HostPattern {
    HostPattern::Exact(name(text))
}

fn under(text: &str) -> HostPattern {
    HostPattern::Under(name(text))
}

fn prefix(text: &str) -> Option<PathRule> {
    Some(PathRule { kind: PathKind::Prefix, text: text.into(), ignore_case: false })
}

fn authored() -> Rule {
    Rule::whole_host(Origin { layer: Layer::Project, file: "egress.yaml".into(), line: 3 })
}

fn record(host: HostPattern, rules: Vec<Rule>) -> Record {
    Record { host, rules, tls: Tls::Intercept, allow_private: false }
}

fn reads() -> Option<BTreeSet<String>> {
    Some(BTreeSet::from(["GET".to_owned(), "HEAD".to_owned()]))
}

fn new(host: HostPattern) -> NewRule {
    NewRule {
        scheme: Scheme::Https,
        host,
        port: 443,
        methods: None,
        path: None,
        websocket: false,
        action: Action::Allow,
        asked: None,
    }
}

fn answered(host: &str, method: &str, target: &str) -> NewRule {
    NewRule {
        methods: Some(BTreeSet::from([method.to_owned()])),
        asked: Some(Asked { method: method.into(), target: target.into(), secrets: Vec::new() }),
        ..new(exact(host))
    }
}

fn request(method: &str, host: &str, target: &str) -> CanonicalRequest {
    CanonicalRequest {
        scheme: Scheme::Https,
        host: name(host),
        port: 443,
        method: method.into(),
        target: Target::parse(target).unwrap(),
        websocket: false,
    }
}

#[test]
fn a_rule_reads_back_as_it_is_written() {
    for rule in [
        new(under("example.com")),
        NewRule { path: prefix("/v1/"), methods: reads(), ..new(exact("api.example.com")) },
        NewRule {
            action: Action::Deny,
            websocket: true,
            port: 8443,
            ..new(exact("a.example.com"))
        },
        answered("api.example.com", "POST", "/v1/jobs?x=1"),
    ] {
        assert_eq!(NewRule::parse(&rule.to_text()).as_ref(), Some(&rule), "{}", rule.to_text());
    }
    for bad in [
        "",
        "{}",
        r#"{"scheme":"https","host":"a b","port":443,"action":"allow"}"#,
        r#"{"scheme":"https","host":"a.b","port":443,"action":"allow","more":1}"#,
        r#"{"scheme":"https","host":"a.b","port":443,"action":"allow","exact":"/","prefix":"/"}"#,
    ] {
        assert_eq!(NewRule::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_rule_for_one_host_keeps_what_a_wildcard_said_of_it() {
    let base = Policy {
        records: vec![record(under("example.com"), vec![Rule { methods: reads(), ..authored() }])],
        ..Policy::default()
    };
    let policy = base.with_rules([&NewRule {
        methods: Some(BTreeSet::from(["POST".to_owned()])),
        path: prefix("/v1/"),
        ..new(exact("api.example.com"))
    }]);
    let says = |method, host, target| policy.decide(&request(method, host, target));
    assert!(matches!(says("POST", "api.example.com", "/v1/a"), Verdict::Allow(_)));
    assert!(matches!(says("GET", "api.example.com", "/v1/a"), Verdict::Allow(_)));
    assert!(matches!(says("POST", "api.example.com", "/v2/a"), Verdict::Deny(..)));
    assert!(matches!(says("GET", "www.example.com", "/"), Verdict::Allow(_)));
    assert!(matches!(says("POST", "www.example.com", "/v1/a"), Verdict::Deny(..)));
    assert_eq!(policy.records[0].host, exact("api.example.com"), "exact hosts come first");
}

#[test]
fn wildcards_stay_in_the_order_in_which_they_are_looked_for() {
    let base = Policy {
        records: vec![
            record(exact("a.example.com"), vec![authored()]),
            record(under("deep.api.example.com"), vec![authored()]),
            record(under("example.com"), vec![authored()]),
        ],
        ..Policy::default()
    };
    let policy = base.with_rules([&new(under("api.example.com")), &new(exact("other.org"))]);
    let hosts: Vec<String> = policy.records.iter().map(|r| r.host.to_string()).collect();
    let wanted = [
        "a.example.com",
        "other.org",
        "*.deep.api.example.com",
        "*.api.example.com",
        "*.example.com",
    ];
    assert_eq!(hosts, wanted);
    assert_eq!(policy.records[3].rules.len(), 2, "what *.example.com said, and the new rule");
}

#[test]
fn an_answer_takes_the_credential_of_the_question_along_and_no_other() {
    let with = |secret: &str| {
        Some(Arc::new(Transform {
            headers: vec![HeaderRule {
                name: "authorization".into(),
                secret: secret.parse().unwrap(),
                how: How::Bearer,
            }],
            on_existing: OnExisting::Fail,
        }))
    };
    let asks = Rule {
        action: Action::Ask,
        path: prefix("/v1/"),
        transform: with("example.api"),
        ..authored()
    };
    let base = Policy {
        records: vec![record(exact("api.example.com"), vec![asks])],
        unmatched: Unmatched::Ask,
        ..Policy::default()
    };
    let answered_with = |secrets: &[&str]| {
        let mut rule = NewRule {
            path: prefix("/v1/jobs/"),
            ..answered("api.example.com", "GET", "/v1/jobs/1")
        };
        let shown = secrets.iter().map(|secret| secret.parse().unwrap()).collect();
        rule.asked.as_mut().unwrap().secrets = shown;
        rule
    };
    let rule = answered_with(&["example.api"]);
    let policy = base.with_rules([&rule]);
    let Verdict::Allow(at) = policy.decide(&request("GET", "api.example.com", "/v1/jobs/2")) else {
        panic!("not allowed");
    };
    let (_, chosen) = policy.rule(at).unwrap();
    assert_eq!(chosen.transform, with("example.api"));
    assert_eq!(chosen.origin.to_string(), "grants");
    let other = policy.decide(&request("GET", "api.example.com", "/v1/other"));
    assert!(matches!(other, Verdict::Ask(Some(_))), "{other:?}");
    // One that was not named in the question, or another one by now: that was not answered.
    let jobs = request("GET", "api.example.com", "/v1/jobs/2");
    let silent = base.with_rules([&answered_with(&[])]).decide(&jobs);
    assert!(matches!(silent, Verdict::Ask(Some(_))), "{silent:?}");
    let mut changed = base.clone();
    changed.records[0].rules[0].transform = with("other.api");
    let verdict = changed.with_rules([&rule]).decide(&jobs);
    assert!(matches!(verdict, Verdict::Ask(Some(_))), "{verdict:?}");
    // A yes to the whole host is none to a credential where no rule puts one in.
    let wide = NewRule { path: None, methods: None, ..rule };
    let policy = base.with_rules([&wide]);
    for (target, secret) in [("/v1/jobs/2", with("example.api")), ("/elsewhere", None)] {
        let Verdict::Allow(at) = policy.decide(&request("GET", "api.example.com", target)) else {
            panic!("{target} is not allowed");
        };
        assert_eq!(policy.rule(at).unwrap().1.transform, secret, "{target}");
    }
}

#[test]
fn an_answer_never_lifts_a_deny_and_a_deny_for_the_box_wins() {
    let deny = Denial {
        host: under("paste.example"),
        rules: None,
        reason: None,
        origin: Origin { layer: Layer::Global, file: "egress.yaml".into(), line: 1 },
    };
    let base = Policy { deny: vec![deny], ..Policy::default() };
    let policy = base.with_rules([&answered("a.paste.example", "GET", "/")]);
    let verdict = policy.decide(&request("GET", "a.paste.example", "/"));
    assert_eq!(verdict, Verdict::Deny(Reason::DeniedByRule, None));

    let open = Policy {
        records: vec![record(exact("api.example.com"), vec![authored()])],
        ..Policy::default()
    };
    let no =
        NewRule { action: Action::Deny, path: prefix("/v1/"), ..new(exact("api.example.com")) };
    let policy = open.with_rules([&no]);
    let verdict = policy.decide(&request("GET", "api.example.com", "/v1/a"));
    assert!(matches!(verdict, Verdict::Deny(Reason::DeniedByRule, _)), "{verdict:?}");
    assert!(matches!(policy.decide(&request("GET", "api.example.com", "/v2")), Verdict::Allow(_)));
}

#[test]
fn a_wildcard_is_found_that_an_entry_of_a_file_would_replace() {
    let base = Policy {
        records: vec![record(under("example.com"), vec![authored()])],
        ..Policy::default()
    };
    let rule = new(exact("api.example.com"));
    assert_eq!(base.wildcard_for(&rule), Some(&under("example.com")));
    assert_eq!(base.wildcard_for(&new(under("example.com"))), None);
    assert_eq!(base.wildcard_for(&new(exact("other.org"))), None);
    // With rules of answers it looks as if the host had been named: only the files tell.
    assert_eq!(base.with_rules([&rule]).wildcard_for(&rule), None);
}

#[test]
fn what_is_carried_unseen_gets_no_rule() {
    let mut opaque = record(exact("pinned.example.com"), vec![authored()]);
    opaque.tls = Tls::Passthrough;
    let base = Policy { records: vec![opaque], ..Policy::default() };
    assert_eq!(base.with_rules([&new(exact("pinned.example.com"))]), base);
}
