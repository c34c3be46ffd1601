use super::*;
use proptest::prelude::*;
use protocol::sessions::Agent;

#[test]
fn egress_12_16_exact_hosts_come_first_then_long_suffixes() {
    let text = "domains: ['*.gh.com', '*.api.gh.com', api.gh.com]";
    assert_eq!(hosts(&policy(text)), ["api.gh.com", "*.api.gh.com", "*.gh.com"]);
    let tie = "domains: ['*.bb.com', '*.aa.com', z.com, a.com]";
    assert_eq!(hosts(&policy(tie)), ["z.com", "a.com", "*.bb.com", "*.aa.com"]);
}

#[test]
fn entries_of_one_host_add_up_unless_one_replaces() {
    let first = "domains: [ex.com, {host: ex.com, rules: [{methods: [GET]}]}, {host: EX.com., rules: [{methods: [get]}]}]";
    assert_eq!(policy(first).records[0].rules.len(), 2);
    let second = "domains: [{host: ex.com, merge_mode: replace, rules: [{methods: [PUT]}]}]";
    let both = rendered(&[(Layer::Global, first), (Layer::Project, second)]).policy;
    assert_eq!(both.records.len(), 1);
    denied(&both, "GET https://ex.com/", Reason::NoRuleMatched);
    allowed(&both, "PUT https://ex.com/");
    // Whatever the order of files.
    let turned = rendered(&[(Layer::Project, second), (Layer::Global, first)]).policy;
    assert_eq!(turned, both);
}

#[test]
fn a_service_is_withdrawn_without_what_others_said() {
    let first = "services: [vscode, copilot]\ndomains: [update.code.visualstudio.com]";
    let second = "services: [{name: vscode, merge_mode: replace, readonly: true}]";
    let both = rendered(&[(Layer::Global, first), (Layer::Project, second)]).policy;
    // The author's rule is the same as the one withdrawn, and stays.
    allowed(&both, "POST https://update.code.visualstudio.com/");
    denied(&both, "POST https://marketplace.visualstudio.com/", Reason::NoRuleMatched);
    allowed(&both, "GET https://marketplace.visualstudio.com/");
    allowed(&both, "POST https://api.githubcopilot.com/");
}

#[test]
fn denies_are_of_all_layers_and_stay() {
    let first = "deny: [{host: paste.ex, reason: no paste sites}]";
    let second = "domains: [{host: paste.ex, merge_mode: replace, rules: [{methods: [GET]}]}]";
    let both = rendered(&[(Layer::Global, first), (Layer::Project, second)]).policy;
    denied(&both, "GET https://paste.ex/", Reason::DeniedByRule);
    denied(
        &policy("domains: [metadata.google.internal]"),
        "GET https://metadata.google.internal/",
        Reason::DeniedByRule,
    );
    denied(
        &policy("deny: ['*.com']\ndomains: [a.com]"),
        "GET https://a.com/",
        Reason::DeniedByRule,
    );
}

#[test]
fn narrowing_that_a_later_layer_undoes_is_said() {
    let narrow = "services: [{name: factory, readonly: true}]";
    let both = rendered(&[(Layer::Global, narrow), (Layer::Project, "services: [factory]")]);
    assert_eq!(codes(&both), ["narrowing_undone", "narrowing_undone"]);
    let warning = &both.warnings[0];
    assert_eq!(warning.layer, "project");
    assert!(warning.message.contains("global:egress.yaml:1"), "{}", warning.message);
    let turned = rendered(&[(Layer::Project, narrow), (Layer::Global, "services: [factory]")]);
    assert_eq!(codes(&turned), [""; 0]);
}

#[test]
fn modes_bring_what_they_promise() {
    let of = |mode, agents: &[Agent], text: &str| {
        let inputs = inputs(mode, &[(Layer::Global, text)]);
        render(&Inputs { agents: agents.to_vec(), ..inputs }).unwrap().policy
    };
    let locked = of(EgressMode::Locked, &[Agent::Claude], "defaults: {unmatched: ask}");
    allowed(&locked, "POST https://api.anthropic.com/v1/messages");
    denied(&locked, "GET https://registry.npmjs.org/left-pad", Reason::HostNotAllowed);
    denied(&locked, "POST https://api.openai.com/v1/responses", Reason::HostNotAllowed);
    let balanced = of(EgressMode::Balanced, &[], "");
    for line in [
        "POST https://api.anthropic.com/v1/messages",
        "POST https://api.openai.com/v1/responses",
        "GET https://registry.npmjs.org/@scope%2fname",
        "GET https://index.crates.io/se/rd/serde",
        "GET http://deb.debian.org/debian/dists/stable/InRelease",
        "GET https://storage.googleapis.com/proxy-golang-org-prod/x",
    ] {
        allowed(&balanced, line);
    }
    for line in [
        "GET https://other.ex/",
        "PUT https://registry.npmjs.org/mine",
        "PUT https://crates.io/api/v1/crates/new",
        "POST https://upload.pypi.org/legacy/",
        "POST https://auth.docker.io/token",
        "GET https://storage.googleapis.com/other/x",
    ] {
        let verdict = decide(&balanced, line);
        assert!(matches!(verdict, Verdict::Ask(_)), "{line}: {verdict:?}");
    }
    denied(&balanced, "GET http://registry.npmjs.org/x", Reason::SchemeNotPermitted);
    let strict = of(EgressMode::Balanced, &[], "defaults: {unmatched: deny}");
    denied(&strict, "GET https://other.ex/", Reason::HostNotAllowed);
    let observed = of(EgressMode::Observe, &[Agent::Codex], "");
    assert!(observed.observe && hosts(&observed).contains(&"api.openai.com".to_owned()));
    assert_eq!(of(EgressMode::Open, &[Agent::Claude], "").records, []);
}

#[test]
fn every_service_renders_by_its_name() {
    for service in catalog::services().filter(|service| !matches!(service.name, "gitea" | "git")) {
        let rendered = rendered(&[(Layer::Global, &format!("services: [{}]", service.name))]);
        let found: Vec<_> = hosts(&rendered.policy);
        for host in service.hosts() {
            assert!(found.contains(&host.to_owned()), "{}: {host}", service.name);
        }
        assert_eq!(found.is_empty(), service.name == "pi", "{}", service.name);
        assert!(service.about.ends_with('.'));
    }
    let whole = policy("services: [claude]");
    for host in [
        "*.anthropic.com",
        "*.claude.ai",
        "*.claude.com",
        "api.anthropic.com",
        "statsig.anthropic.com",
    ] {
        assert!(hosts(&whole).contains(&host.to_owned()), "{host}");
    }
}

#[test]
fn a_key_goes_to_the_api_and_nowhere_else() {
    let text = "
services:
- {name: claude, auth: {secret: anthropic.key, client_shim: {kind: env}}}
- {name: codex, auth: {secret: openai.key}}
- {name: gemini, auth: {secret: gemini.key}}
";
    let policy = policy(text);
    let put = |line: &str| {
        let rule = policy.rule(allowed(&policy, line)).unwrap().1;
        let header = rule.transform.as_ref().map(|transform| transform.headers[0].clone());
        header.map(|header| format!("{} {} {}", header.name, header.how.word(), header.secret))
    };
    assert_eq!(
        put("POST https://api.anthropic.com/v1/messages").unwrap(),
        "x-api-key raw anthropic.key"
    );
    assert_eq!(
        put("POST https://api.openai.com/v1/responses").unwrap(),
        "authorization bearer openai.key"
    );
    assert_eq!(
        put("POST https://generativelanguage.googleapis.com/v1beta/models/x:generateContent")
            .unwrap(),
        "x-goog-api-key raw gemini.key"
    );
    for line in [
        "POST https://api.anthropic.com/api/event_logging/batch",
        "POST https://statsig.anthropic.com/v1/rgstr",
        "POST https://console.anthropic.com/v1/oauth/token",
        "POST https://claude.ai/v1/x",
        "POST https://auth.openai.com/v1/token",
        "POST https://chatgpt.com/backend-api/codex/responses",
        "POST https://oauth2.googleapis.com/v1/token",
    ] {
        assert_eq!(put(line), None, "{line}");
    }
    assert_eq!(policy.shims.len(), 1);
    assert_eq!(policy.shims[0].kind, ShimKind::Env { name: "ANTHROPIC_API_KEY".to_owned() });
    assert_eq!(policy.shims[0].service, "claude-api");
    let login = super::policy(
        "services: [{name: claude-api, auth: {secret: claude.login, type: oauth, client_shim: {kind: env}}}]",
    );
    let rule = login.rule(allowed(&login, "POST https://api.anthropic.com/v1/messages")).unwrap().1;
    let transform = rule.transform.clone().unwrap();
    assert_eq!(
        (transform.headers[0].how.clone(), transform.on_existing),
        (How::Bearer, OnExisting::ReplacePlaceholder)
    );
}

#[test]
fn credentials_are_held_against_those_that_are_stored() {
    let text = "services: [{name: claude-api, auth: {secret: anthropic.key}}, {name: codex-api, auth: {secret: openai.key}}]";
    let stored = |id: &str, hosts: &[&str]| lint::StoredSecret {
        id: id.parse().unwrap(),
        hosts: hosts.iter().map(|host| HostName::parse(host).unwrap()).collect(),
    };
    let all = [
        stored("anthropic.key", &["github.com"]),
        stored("github.token", &[]),
        stored("old.key", &["old.ex"]),
    ];
    let found = lint::secrets(&policy(text), &all);
    let codes: Vec<_> = found.iter().map(|problem| (problem.code.as_str(), problem.line)).collect();
    assert_eq!(codes, [("secret_host_binding", 1), ("missing_secret", 1), ("unused_secret", 0)]);
    let good = [stored("anthropic.key", &["api.anthropic.com"]), stored("openai.key", &[])];
    assert_eq!(lint::secrets(&policy(text), &good), []);
}

fn entry() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec!["a.ex", "b.ex", "*.ex.com", "x.ex.com", "github.com"]);
    let rule = prop::sample::select(vec![
        "{methods: [GET]}",
        "{path: {prefix: /a}}",
        "{action: ask, path: {exact: /a}}",
        "{action: deny, path: {prefix: /b}}",
    ]);
    let replace = prop::sample::select(vec!["", ", merge_mode: replace"]);
    (host, rule, replace)
        .prop_map(|(host, rule, replace)| format!("{{host: '{host}', rules: [{rule}]{replace}}}"))
}

fn layer_text() -> impl Strategy<Value = String> {
    let services = prop::sample::subsequence(
        vec![
            "github",
            "copilot",
            "npm",
            "{name: npm, readonly: true}",
            "{name: github, repos: [a/b], git: {access: read}}",
            "{name: github, merge_mode: replace, repos: [a/b], api: {access: read}}",
        ],
        0..3,
    );
    (services, prop::collection::vec(entry(), 0..4)).prop_map(|(services, domains)| {
        format!("services: [{}]\ndomains: [{}]", services.join(", "), domains.join(", "))
    })
}

proptest! {
    #[test]
    fn merging_is_the_same_whatever_order_files_come_in(a in layer_text(), b in layer_text(), c in layer_text()) {
        let forth = [(Layer::Global, a.as_str()), (Layer::Project, b.as_str()), (Layer::Box, c.as_str())];
        let back = [forth[2], forth[0], forth[1]];
        prop_assert_eq!(rendered(&forth), rendered(&back));
    }

    #[test]
    fn a_rendered_policy_is_in_order(a in layer_text(), b in layer_text()) {
        let policy = rendered(&[(Layer::Global, &a), (Layer::Project, &b)]).policy;
        let mut seen = Vec::new();
        for record in &policy.records {
            prop_assert!(!record.rules.is_empty() && !seen.contains(&record.host));
            seen.push(record.host.clone());
            for (at, rule) in record.rules.iter().enumerate() {
                prop_assert!(!record.rules[..at].iter().any(|other| other.says_the_same(rule)));
            }
        }
        let wide = policy.records.iter().map(|record| match &record.host {
            HostPattern::Exact(_) => usize::MAX,
            HostPattern::Under(name) => name.as_str().len(),
        });
        prop_assert!(wide.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b));
    }

    /// Acceptance case 22 for whatever else is said by services.
    #[test]
    fn repositories_hold_against_every_service(a in layer_text()) {
        let scope = "services: [{name: github, repos: [a/b], git: {access: read}}]";
        let policy = rendered(&[(Layer::Global, scope), (Layer::Project, &a)]).policy;
        let authored = a.contains("host: 'github.com'") || a.contains("merge_mode: replace, repos");
        if !authored {
            denied(&policy, "GET https://github.com/x/y", Reason::NoRuleMatched);
        }
    }
}
