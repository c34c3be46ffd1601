use super::*;

const NO_RULE: Reason = Reason::NoRuleMatched;

/// The policy's part of cases 1 to 5; the proxy's is in its own tests.
#[test]
fn egress_12_01_to_05_what_is_not_said_is_denied() {
    denied(&policy(""), "GET https://any.ex.com/", Reason::HostNotAllowed);
    let p0 = policy(P0);
    assert_eq!(allowed(&p0, "GET https://api.ex.com/v1/a"), RuleRef { record: 0, rule: 0 });
    denied(&p0, "POST https://api.ex.com/v1/a", NO_RULE);
    denied(&p0, "GET http://api.ex.com/v1/a", Reason::SchemeNotPermitted);
    let host = |name: &str| HostName::parse(name).unwrap();
    let at = |port| p0.at_connect(&host("api.ex.com"), port);
    assert_eq!(at(22), ConnectVerdict::Refuse(Reason::PortNotAllowed));
    assert_eq!(at(443), ConnectVerdict::Inspect);
    let none = |port| p0.at_connect(&host("other.ex"), port);
    assert_eq!(none(443), ConnectVerdict::Hopeless(Reason::HostNotAllowed));
    assert_eq!(none(8443), ConnectVerdict::Refuse(Reason::HostNotAllowed));
}

#[test]
fn egress_12_09_a_path_that_can_be_read_in_two_ways_is_refused() {
    for path in ["/v1/../admin", "/v1/%2e%2E/admin", "/v1/..;/x", "//h/v1/a", "/v1\\..\\x", "/v1/."]
    {
        denied(&policy(P0), &format!("GET https://api.ex.com{path}"), Reason::AmbiguousPath);
    }
    for path in ["/v1/a%2Fb", "/v1/%5c..", "/v1/a%00", "/v1/%252e%252e/admin"] {
        denied(&policy(P0), &format!("GET https://api.ex.com{path}"), Reason::AmbiguousPath);
    }
    denied(&policy(P0), "GET https://api.ex.com/v1/%zz", Reason::BadRequestTarget);
    // Where no rule looks at paths, they are the server's own business.
    let whole = policy("domains: [api.ex.com]");
    let at = allowed(&whole, "GET https://api.ex.com/a/../b%2Fc");
    assert_eq!(whole.seen(at).unwrap().origin, "global:egress.yaml:1");
}

#[test]
fn egress_12_10_escapes_are_spelled_in_one_way() {
    let home = policy("domains: [{host: ex.com, rules: [{path: {exact: /~smith}}]}]");
    allowed(&home, "GET https://ex.com/%7esmith");
    let slash = policy("domains: [{host: ex.com, rules: [{path: {exact: /a/%2F}}]}]");
    allowed(&slash, "GET https://ex.com/a/%2f");
    denied(&slash, "GET https://ex.com/a//", NO_RULE);
    // A prefix may spell a veil; what comes after it may not have one.
    let project = policy("domains: [{host: ex.com, rules: [{path: {prefix: /p/a%2fb/}}]}]");
    allowed(&project, "GET https://ex.com/p/a%2Fb/c");
    denied(&project, "GET https://ex.com/p/a%2Fb/%2e%2e%2Fc", Reason::AmbiguousPath);
    denied(&project, "GET https://ex.com/p/a/b/c", NO_RULE);
    let percent = policy("domains: [{host: ex.com, rules: [{path: {prefix: /p%25}}]}]");
    allowed(&percent, "GET https://ex.com/p%25");
    denied(&percent, "GET https://ex.com/p%252e", Reason::AmbiguousPath);
}

#[test]
fn egress_12_11_paths_have_a_case() {
    let models = policy("domains: [{host: ex.com, rules: [{path: {exact: /v1/Models}}]}]");
    denied(&models, "GET https://ex.com/v1/models", NO_RULE);
    let any = "domains: [{host: ex.com, rules: [{path: {exact: /v1/Models, case: insensitive}}]}]";
    allowed(&policy(any), "GET https://ex.com/v1/mODELS");
}

#[test]
fn egress_12_12_a_query_is_compared_as_a_whole() {
    let none = policy("domains: [{host: ex.com, rules: [{query: {exact: {}}}]}]");
    allowed(&none, "GET https://ex.com/x");
    denied(&none, "GET https://ex.com/x?a=1", NO_RULE);
    let two = policy("domains: [{host: ex.com, rules: [{query: {exact: {a: '1', b: '2'}}}]}]");
    allowed(&two, "GET https://ex.com/x?b=2&a=1");
    denied(&two, "GET https://ex.com/x?a=1&b=2&c=3", NO_RULE);
    denied(&two, "GET https://ex.com/x?a=1&b=2&b=2", NO_RULE);
    let list = policy("domains: [{host: ex.com, rules: [{query: {exact: {a: ['2', '1']}}}]}]");
    allowed(&list, "GET https://ex.com/x?a=1&a=2");
}

#[test]
fn egress_12_13_a_query_is_decoded_once_and_strictly() {
    let plus = policy("domains: [{host: ex.com, rules: [{query: {exact: {t: '%2B'}}}]}]");
    allowed(&plus, "GET https://ex.com/x?t=%2B");
    denied(&plus, "GET https://ex.com/x?t=+", NO_RULE);
    denied(&plus, "GET https://ex.com/x?t=%252B", NO_RULE);
    let text =
        "domains: [{host: ex.com, rules: [{query: {exact: {a: '%ff'}}}, {path: {exact: /y}}]}]";
    denied(&policy(text), "GET https://ex.com/x?a=%fe", NO_RULE);
    denied(&policy(text), "GET https://ex.com/x?a=%ff", NO_RULE);
    assert_eq!(codes(&rendered(&[(Layer::Global, text)])), ["never_matches"]);
}

#[test]
fn egress_12_15_only_the_best_record_is_asked() {
    let text = "domains: [{host: '*.gh.com', rules: [{path: {prefix: /w}}]}, {host: api.gh.com, rules: [{path: {prefix: /e}}]}]";
    let policy = policy(text);
    denied(&policy, "GET https://api.gh.com/w", NO_RULE);
    let host = HostName::parse("api.gh.com").unwrap();
    assert_eq!(policy.record(&host).unwrap().1.host.to_string(), "api.gh.com");
    allowed(&policy, "GET https://x.gh.com/w");
}

#[test]
fn egress_12_24_the_rule_with_the_credential_is_the_one() {
    let text = "
domains:
- host: ex.com
  rules: [{methods: [GET], path: {prefix: /v1/}}]
- host: ex.com
  rules: [{methods: [GET], path: {prefix: /v1/}}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
- host: ex.com
  rules: [{path: {prefix: /}}]
";
    let policy = policy(text);
    assert_eq!(policy.records[0].rules.len(), 3);
    assert!(policy.records[0].rules[0].transform.is_none());
    assert_eq!(allowed(&policy, "GET https://ex.com/v1/a").rule, 1);
    assert!(policy.records[0].rules[1].transform.is_some());
    assert_eq!(allowed(&policy, "POST https://ex.com/v1/a").rule, 2);
}

#[test]
fn egress_12_31_a_request_is_never_echoed() {
    let text = "
domains:
- host: ex.com
  broad_injection: true
  rules: [{ports: [443]}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
";
    for method in ["TRACE", "trace", "TRACK", "CONNECT"] {
        denied(&policy(text), &format!("{method} https://ex.com/"), Reason::MethodForbidden);
    }
    // Not even where nobody checked the method before.
    let mut sneaky = request("GET https://ex.com/").unwrap();
    sneaky.method = "TRACE".to_owned();
    assert_eq!(policy(text).decide(&sneaky), Verdict::Deny(Reason::MethodForbidden, None));
    let observed = Policy { observe: true, ..policy(text) };
    assert_eq!(observed.decide(&sneaky), Verdict::Deny(Reason::MethodForbidden, None));
}

#[test]
fn egress_12_42_a_websocket_needs_a_word() {
    let upgrade = |policy: &Policy| {
        let mut request = request("GET https://api.ex.com/v1/a").unwrap();
        request.websocket = true;
        policy.decide(&request)
    };
    let no = Verdict::Deny(Reason::WebsocketNotPermitted, None);
    assert_eq!(upgrade(&policy(P0)), no);
    let yes = "domains: [{host: api.ex.com, rules: [{methods: [GET], websocket: true}]}]";
    assert!(matches!(upgrade(&policy(yes)), Verdict::Allow(_)));
    assert!(matches!(upgrade(&policy("domains: [api.ex.com]")), Verdict::Allow(_)));
    let limited = "domains: [{host: api.ex.com, rules: [{max_body: 1MiB}]}]";
    assert!(matches!(upgrade(&policy(limited)), Verdict::Allow(_)));
}

#[test]
fn egress_r1_ports_are_part_of_a_rule() {
    let text =
        "domains: [{host: ex.com, rules: [{ports: [8443], methods: [GET]}, {path: {exact: /a}}]}]";
    let policy = policy(text);
    let at = |port| policy.at_connect(&HostName::parse("ex.com").unwrap(), port);
    assert_eq!(at(8443), ConnectVerdict::Inspect);
    assert_eq!(at(443), ConnectVerdict::Inspect);
    for port in [22, 80, 8080] {
        assert_eq!(at(port), ConnectVerdict::Refuse(Reason::PortNotAllowed));
    }
    allowed(&policy, "GET https://ex.com:8443/x");
    denied(&policy, "POST https://ex.com:8443/a", NO_RULE);
    denied(&policy, "GET https://ex.com/x", NO_RULE);
    denied(&policy, "GET https://ex.com:9443/x", Reason::PortNotAllowed);
}

#[test]
fn egress_r5_a_prefix_holds_whatever_a_path_looks_like() {
    let text = "domains: [{host: api.ex.com, rules: [{path: {prefix: /repos/o/r/}}]}]";
    for path in [
        "/repos/o/r/../../x/y",
        "/repos/o/r/%2e%2e/%2e%2e/x/y",
        "/repos/o/r/.%2E/x",
        "//x/repos/o/r/a",
        "/repos/o/r/..;a=b/x",
        "/repos/o/r/..%2f..%2fx",
        "/repos/o/r/%2e%2e%5cx",
        "/repos/o/r/%c0%ae%c0%ae/x",
    ] {
        denied(&policy(text), &format!("GET https://api.ex.com{path}"), Reason::AmbiguousPath);
    }
    allowed(&policy(text), "GET https://api.ex.com/repos/o/r/a..b/.git");
}

#[test]
fn egress_r6_a_catch_all_hides_no_rule() {
    let text = "
domains:
- ex.com
- host: ex.com
  rules: [{path: {prefix: /v1/}}, {action: ask, path: {exact: /v1/jobs}}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
";
    let policy = policy(text);
    let at = allowed(&policy, "POST https://ex.com/v1/a");
    assert!(policy.rule(at).unwrap().1.transform.is_some());
    assert!(policy.rule(allowed(&policy, "POST https://ex.com/v2")).unwrap().1.transform.is_none());
    assert!(matches!(decide(&policy, "POST https://ex.com/v1/jobs"), Verdict::Ask(Some(_))));
}

#[test]
fn egress_r8_reading_is_no_channel() {
    let text = "services: [{name: claude-api, readonly: true}, npm]";
    for host in ["api.anthropic.com", "registry.npmjs.org"] {
        let mut request = request(&format!("GET https://{host}/a")).unwrap();
        assert!(matches!(policy(text).decide(&request), Verdict::Allow(_)));
        request.websocket = true;
        assert_eq!(
            policy(text).decide(&request),
            Verdict::Deny(Reason::WebsocketNotPermitted, None)
        );
    }
}

#[test]
fn a_question_is_not_got_around_by_asking_for_a_websocket() {
    let rules = "{host: api.ex.com, rules: [{action: ask, path: {prefix: /admin/}}, {path: {exact: /admin/x}}]}";
    let policy = policy(&format!("domains: [api.ex.com, {rules}]"));
    for path in ["/admin/x", "/admin/y"] {
        let mut request = request(&format!("GET https://api.ex.com{path}")).unwrap();
        request.websocket = true;
        let verdict = policy.decide(&request);
        assert_eq!(verdict, Verdict::Deny(Reason::WebsocketNotPermitted, None), "{path}");
    }
    let mut elsewhere = request("GET https://api.ex.com/chat").unwrap();
    elsewhere.websocket = true;
    assert!(matches!(policy.decide(&elsewhere), Verdict::Allow(_)));
}

#[test]
fn the_rule_that_says_most_decides() {
    let text = "
domains:
- host: ex.com
  rules:
  - {path: {prefix: /}}
  - {path: {prefix: /a/}}
  - {path: {exact: /a/b}}
  - {path: {exact: /a/b}, methods: [PUT]}
  - {path: {exact: /a/b}, methods: [PUT], query: {exact: {x: '1'}}}
";
    let policy = policy(text);
    let rule = |line: &str| allowed(&policy, line).rule;
    assert_eq!(rule("GET https://ex.com/x"), 0);
    assert_eq!(rule("GET https://ex.com/a/x"), 1);
    assert_eq!(rule("GET https://ex.com/a/b"), 2);
    assert_eq!(rule("PUT https://ex.com/a/b"), 3);
    assert_eq!(rule("PUT https://ex.com/a/b?x=1"), 4);
    // Of two that say the same, the later layer's.
    let rule = "domains: [{host: ex.com, rules: [{path: {exact: /a}, max_body: 1}]}]";
    let later = rule.replace("max_body: 1", "max_body: 2");
    let merged = rendered(&[(Layer::Project, &later), (Layer::Global, rule)]).policy;
    let at = allowed(&merged, "GET https://ex.com/a");
    assert_eq!(merged.rule(at).unwrap().1.origin.layer, Layer::Project);
}

#[test]
fn no_reading_of_a_path_gets_around_a_deny() {
    let text = "
domains:
- host: ex.com
  rules: [{path: {prefix: /}}, {action: deny, path: {prefix: /admin/}}, {action: ask, path: {exact: /pay:now}}]
deny: [{host: '*.ex.com', rules: [{path: {exact: /secret}}], reason: never}]
";
    let policy = policy(text);
    for path in [
        "/admin/x",
        "/admin",
        "/Admin/x",
        "/a%64min/x",
        "/admin;x/y",
        "/admin//x",
        "/secret/",
        "/SECRET",
        "/secret;a",
    ] {
        denied(&policy, &format!("GET https://ex.com{path}"), Reason::DeniedByRule);
    }
    for path in ["/x/../admin/x", "/x%2f..%2fadmin", "/./secret", "/%2e/secret"] {
        denied(&policy, &format!("GET https://ex.com{path}"), Reason::AmbiguousPath);
    }
    for path in ["/pay:now", "/pay%3Anow", "/PAY:now", "/pay:now/"] {
        let verdict = decide(&policy, &format!("GET https://ex.com{path}"));
        assert!(matches!(verdict, Verdict::Ask(Some(_))), "{path} {verdict:?}");
    }
    allowed(&policy, "GET https://ex.com/administration");
    let why = policy.denial(&request("GET https://ex.com/secret").unwrap()).unwrap();
    assert_eq!(why.reason.as_deref(), Some("never"));
    // A deny of a port or a scheme that is not named is of all of them.
    denied(&policy, "GET http://ex.com/secret", Reason::DeniedByRule);
    denied(&policy, "GET https://ex.com:8443/admin/", Reason::DeniedByRule);
}

#[test]
fn what_is_not_said_can_be_asked_about() {
    let text = "defaults: {unmatched: ask}\ndomains: [{host: ex.com, rules: [{methods: [GET]}]}]";
    let policy = policy(text);
    assert_eq!(decide(&policy, "GET https://other.com/"), Verdict::Ask(None));
    assert_eq!(decide(&policy, "GET http://other.com/"), Verdict::Ask(None));
    assert_eq!(decide(&policy, "POST https://ex.com/"), Verdict::Ask(None));
    denied(&policy, "GET https://other.com:8443/", Reason::HostNotAllowed);
    denied(&policy, "GET http://ex.com/", Reason::SchemeNotPermitted);
    let host = |name: &str| HostName::parse(name).unwrap();
    assert_eq!(policy.at_connect(&host("other.com"), 443), ConnectVerdict::Unlisted);
    assert_eq!(
        policy.at_connect(&host("other.com"), 22),
        ConnectVerdict::Refuse(Reason::HostNotAllowed)
    );
    // Nobody is asked about names that are ours, or about the keys of a machine.
    for name in ["x.agentbox.internal", "host.agentbox.internal"] {
        denied(&policy, &format!("GET https://{name}/"), Reason::HostNotAllowed);
        assert_eq!(
            policy.at_connect(&host(name), 443),
            ConnectVerdict::Refuse(Reason::HostNotAllowed)
        );
    }
    for name in ["metadata.google.internal", "169.254.169.254", "localhost", "a.localhost"] {
        denied(&policy, &format!("GET http://{name}/"), Reason::DeniedByRule);
        let hopeless = ConnectVerdict::Hopeless(Reason::DeniedByRule);
        assert_eq!(policy.at_connect(&host(name), 443), hopeless);
    }
}

#[test]
fn an_answer_is_for_what_was_asked() {
    let asks = "
domains:
- host: ex.com
  rules: [{action: ask, methods: [POST], path: {prefix: /v1/}}]
- host: keyed.com
  rules: [{action: ask, methods: [POST], path: {prefix: /v1/}}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
- host: open.com
  rules: [{path: {prefix: /v1/}}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
";
    let grants = "
domains:
- {host: ex.com, rules: [{methods: [POST], path: {prefix: /v1/a}}]}
- {host: keyed.com, rules: [{methods: [POST], path: {prefix: /v1/a}}]}
- {host: open.com, rules: [{path: {exact: /v1/a}}]}
- {host: new.com, rules: [{methods: [GET]}]}
";
    let both = rendered(&[(Layer::Global, asks), (Layer::Grants, grants)]).policy;
    let at = allowed(&both, "POST https://ex.com/v1/a/b");
    assert!(both.rule(at).unwrap().1.grant);
    assert!(matches!(decide(&both, "POST https://ex.com/v1/b"), Verdict::Ask(Some(_))));
    allowed(&both, "GET https://new.com/");
    // A yes to a request without a credential is none to one with it.
    assert!(matches!(decide(&both, "POST https://keyed.com/v1/a"), Verdict::Ask(Some(_))));
    // And it takes no credential away from what was allowed anyway.
    let at = allowed(&both, "GET https://open.com/v1/a");
    assert!(both.rule(at).unwrap().1.transform.is_some());
    let keyed = "
domains:
- host: keyed.com
  rules: [{methods: [POST], path: {prefix: /v1/a}}]
  transform: {request: {headers: {X-Key: {secret: ex.key, transform: {type: raw}}}}}
";
    let both = rendered(&[(Layer::Global, asks), (Layer::Grants, keyed)]).policy;
    let at = allowed(&both, "POST https://keyed.com/v1/a");
    assert!(both.rule(at).unwrap().1.transform.is_some());
    let never = "domains: [{host: ex.com, rules: [{action: deny, path: {prefix: /v1/}}]}]";
    let both =
        rendered(&[(Layer::Global, asks), (Layer::Grants, grants), (Layer::Grants, never)]).policy;
    denied(&both, "POST https://ex.com/v1/a", Reason::DeniedByRule);
}

#[test]
fn an_observed_box_passes_and_it_is_said_what_would_have_been() {
    let text = "
domains: [{host: ex.com, rules: [{methods: [GET]}, {action: ask, methods: [PUT]}]}]
deny: [paste.ex]
";
    let inputs = inputs(EgressMode::Observe, &[(Layer::Global, text)]);
    let policy = render(&inputs).unwrap().policy;
    let seen = |line: &str| decide(&policy, line);
    assert!(matches!(seen("GET https://ex.com/"), Verdict::Allow(_)));
    assert_eq!(seen("PUT https://ex.com/"), Verdict::Observe(Reason::Observed));
    assert_eq!(seen("POST https://ex.com/"), Verdict::Observe(NO_RULE));
    assert_eq!(seen("GET https://ex.com:8080/"), Verdict::Observe(Reason::PortNotAllowed));
    assert_eq!(seen("GET https://other.com/"), Verdict::Observe(Reason::HostNotAllowed));
    assert_eq!(seen("GET https://paste.ex/"), Verdict::Observe(Reason::DeniedByRule));
    denied(&policy, "GET http://metadata.google.internal/", Reason::DeniedByRule);
    denied(&policy, "GET http://other.com:25/", Reason::HostNotAllowed);
    denied(&policy, "GET https://egress.agentbox.internal/", Reason::HostNotAllowed);
    let at = |name: &str, port| policy.at_connect(&HostName::parse(name).unwrap(), port);
    assert_eq!(at("other.com", 8080), ConnectVerdict::Unlisted);
    assert_eq!(at("paste.ex", 443), ConnectVerdict::Unlisted);
    assert_eq!(at("other.com", 22), ConnectVerdict::Refuse(Reason::HostNotAllowed));
    assert_eq!(at("ex.com", 8080), ConnectVerdict::Unlisted);
}

/// The rendering of case 44; certificates are the proxy's.
#[test]
fn egress_12_44_what_is_carried_unseen_is_held_to_nothing_else() {
    let text = "domains: [{host: pin.ex, tls: passthrough, rules: [{ports: [443, 8443]}]}]";
    let pinned = policy(text);
    let at = |policy: &Policy, port| policy.at_connect(&HostName::parse("pin.ex").unwrap(), port);
    assert_eq!(at(&pinned, 8443), ConnectVerdict::Passthrough(RuleRef { record: 0, rule: 0 }));
    assert_eq!(at(&pinned, 80), ConnectVerdict::Refuse(Reason::PortNotAllowed));
    let partly = format!("{text}\ndeny: [{{host: pin.ex, rules: [{{path: {{prefix: /x}}}}]}}]");
    assert_eq!(at(&policy(&partly), 443), ConnectVerdict::Refuse(Reason::DeniedByRule));
    let whole = format!("{text}\ndeny: [pin.ex]");
    assert_eq!(at(&policy(&whole), 443), ConnectVerdict::Hopeless(Reason::DeniedByRule));
    for rule in [
        "{methods: [GET]}",
        "{path: {prefix: /}}",
        "{action: ask}",
        "{schemes: [http]}",
        "{max_body: 1}",
    ] {
        let text = format!("domains: [{{host: pin.ex, tls: passthrough, rules: [{rule}]}}]");
        assert!(
            Policy::from_yaml(&text).unwrap_err().to_string().contains("passthrough"),
            "{rule}"
        );
    }
    // Said for one entry and not for another, it is looked into.
    let both = rendered(&[(Layer::Global, text), (Layer::Project, "domains: [pin.ex]")]);
    assert_eq!(at(&both.policy, 443), ConnectVerdict::Inspect);
    assert_eq!(codes(&both), ["passthrough_undone"]);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn path() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "/", "a", "b", ".", "..", "%2e", "%2E", "%2f", "%5c", "%25", "%00", ";", "%3b", "v1",
            "admin", "~", "%20",
        ]);
        prop::collection::vec(part, 0..12).prop_map(|parts| format!("/{}", parts.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever is let through by a prefix is below it for every server that resolves dots or decodes.
        #[test]
        fn what_passes_a_prefix_is_below_it(path in path()) {
            let policy = policy("domains: [{host: ex.com, rules: [{path: {prefix: /v1/a/}}]}]");
            if let Verdict::Allow(_) = decide(&policy, &format!("GET https://ex.com{path}")) {
                let sent = Target::parse(&path).unwrap().to_text();
                prop_assert!(sent.starts_with("/v1/a/"), "{sent}");
                let twice = crate::request::decoded(&sent.replace('+', "%2B")).unwrap();
                for reading in [sent.clone(), twice] {
                    let parts = reading.split(['/', '\\']).map(|part| part.split(';').next().unwrap().trim());
                    for part in parts {
                        prop_assert!(part != "." && part != "..", "{reading}");
                    }
                }
            }
        }

        #[test]
        fn a_deny_is_not_got_around(path in path()) {
            let policy = policy("domains: [{host: ex.com, rules: [{path: {prefix: /}}, {action: deny, path: {prefix: /v1/admin}}]}]");
            if let Verdict::Allow(_) = decide(&policy, &format!("GET https://ex.com{path}")) {
                let reading = crate::request::decoded(&path.replace('+', "%2B")).unwrap_or_default();
                let parts: Vec<_> = reading.split('/').map(|part| part.split(';').next().unwrap()).filter(|part| !part.is_empty()).collect();
                prop_assert!(!parts.join("/").starts_with("v1/admin"), "{path}");
            }
        }
    }
}
