use super::*;

/// What is said about a text, one line each.
fn said(text: &str) -> String {
    match Policy::from_yaml(text) {
        Ok(_) => panic!("nothing was said about\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

#[track_caller]
fn says(text: &str, line: &str) {
    assert_eq!(said(text), line, "{text}");
}

#[test]
fn egress_12_17_a_mistake_has_a_layer_a_path_and_a_place() {
    says(
        "domains:\n- host: ex.com\n  rules: [{}]\n",
        "global: domains[0].rules[0]: says nothing; a bare host name allows all of a host (egress.yaml:3:11)",
    );
    says(
        "domains: [{host: ex.com, rules: []}]",
        "global: domains[0].rules: must not be empty (egress.yaml:1:33)",
    );
    says("domains: [{host: ex.com}]", "global: domains[0]: rules is missing (egress.yaml:1:11)");
    says(
        "domains: [{host: ex.com, rules: [{scheme: https}]}]",
        "global: domains[0].rules[0].scheme: is written schemes: [https] (egress.yaml:1:35)",
    );
    assert!(said("domains: [{host: ex.com, rules: [{method: GET}]}]").contains("methods: [GET]"));
    says(
        "domains: [{host: ex.com, merge_mode: append, rules: [{methods: [GET]}]}]",
        "global: domains[0].merge_mode: must be replace, not append (egress.yaml:1:38)",
    );
    let nope = said("services:\n- nope\n");
    assert!(
        nope.starts_with("global: services[0]: nope is not a service; known are claude, "),
        "{nope}"
    );
    assert!(nope.ends_with(" (egress.yaml:2:3)"), "{nope}");
    says("domain: []", "global: domain: unknown key; did you mean domains? (egress.yaml:1:1)");
}

#[test]
fn egress_12_18_made_up_credentials_are_not_authored() {
    assert!(said("credential_shim: {version: 1}").contains("renderer-owned"));
}

#[test]
fn egress_12_19_repositories_need_a_surface_and_an_access() {
    let of = |more: &str| said(&format!("services: [{{name: github, {more}}}]"));
    assert!(of("repos: [a/b]").contains("name git or api"));
    assert!(of("repos: [a/b], git: {access: readwrite}").contains("needs auth"));
    let old = of("repos: [a/b], surfaces: [git]");
    assert!(old.contains("services[0].surfaces") && old.contains("name git and api"), "{old}");
    assert!(
        of("repos: [a/b], git: {access: read}, access: read").contains("belongs under git or api")
    );
    assert!(of("repos: [a/b], git: {access: read}, auth: {}").contains("belongs under git or api"));
    assert!(
        of("repos: [a/b], git: {access: read}, readonly: true").contains("access: read under git")
    );
    assert!(of("git: {access: read}").contains("needs repos"));
    assert!(of("repos: [], git: {access: read}").contains("must not be empty"));
    assert!(of("repos: [a/b], git: {}").contains("access is missing"));
    assert!(of("repos: [a/b], git: {access: write}").contains("read or readwrite"));
    assert!(
        of("repos: [a/b], git: {access: read, push: {}}")
            .contains("means nothing with access: read")
    );
    assert!(of("repos: [a/b], host: x.ex, git: {access: read}").contains("unknown key"));
    for bad in
        ["a", "a/b/c", "a/b c", "a/b?", "a/..", "a/b#c", "'a\\b'", "a/b.git", "a/%62", "/a/b"]
    {
        let why = of(&format!("repos: ['{}'], git: {{access: read}}", bad.trim_matches('\'')));
        assert!(why.contains("repository") || why.contains(".git"), "{bad}: {why}");
    }
}

#[test]
fn egress_12_30_a_credential_goes_only_where_it_is_said() {
    let of = |host: &str, rule: &str, header: &str| {
        format!(
            "domains: [{{host: '{host}', rules: [{rule}], transform: {{request: {{headers: {{{header}: {{secret: ex.key, transform: {{type: bearer}}}}}}}}}}}}]"
        )
    };
    let path = "{path: {prefix: /v1/}}";
    assert!(Policy::from_yaml(&of("ex.com", path, "Authorization")).is_ok());
    let clear =
        said(&of("ex.com", "{schemes: [http, https], path: {prefix: /v1/}}", "Authorization"));
    assert!(
        clear.contains("domains[0].rules[0]: a credential is not sent in clear text"),
        "{clear}"
    );
    assert!(said(&of("*.ex.com", path, "Authorization")).contains("every host of a wildcard"));
    assert!(said(&of("ex.com", "{methods: [GET]}", "Authorization")).contains("name a path"));
    assert!(
        said(&of("ex.com", "{action: deny, path: {prefix: /}}", "Authorization"))
            .contains("denied")
    );
    for header in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        "TE",
        "Trailer",
        "Keep-Alive",
        "Expect",
        "Proxy-Authorization",
        "X-AgentBox-Event",
        "Cookie",
        "'a b'",
    ] {
        let why = said(&of("ex.com", path, header));
        assert!(why.contains("transform.request.headers."), "{header}: {why}");
    }
    let wide = of("*.ex.com", "{methods: [GET]}", "Authorization")
        .replace("transform: {r", "broad_injection: true, transform: {r");
    assert_eq!(codes(&rendered(&[(Layer::Global, &wide)])), ["broad_injection"]);
    let twice = of("ex.com", path, "Authorization").replace(
        "headers: {",
        "headers: {authorization: {secret: ex.other, transform: {type: raw}}, ",
    );
    assert!(said(&twice).contains("twice"));
    let unseen = of("ex.com", "{ports: [443]}", "Authorization")
        .replace("rules:", "tls: passthrough, broad_injection: true, rules:");
    assert!(said(&unseen).contains("passthrough"));
}

#[test]
fn egress_r4_no_token_in_clear_text() {
    let text = "services: [{name: github, repos: [a/b], git: {access: readwrite, auth: {secret: gh.key}}, api: {access: readwrite, auth: {secret: gh.key}}}]";
    let policy = policy(text);
    let rules = || policy.records.iter().flat_map(|record| &record.rules);
    assert!(rules().any(|rule| rule.transform.is_some()));
    for rule in rules() {
        assert_eq!(rule.schemes.iter().copied().collect::<Vec<_>>(), [Scheme::Https]);
        assert_eq!(rule.ports.iter().copied().collect::<Vec<_>>(), [443]);
    }
    denied(
        &policy,
        "GET http://github.com/a/b.git/info/refs?service=git-upload-pack",
        Reason::SchemeNotPermitted,
    );
}

#[test]
fn egress_12_33_ids_of_credentials_are_names() {
    for id in ["../x", ".", "..", "a/b", "a b", "''"] {
        let text = format!(
            "domains: [{{host: ex.com, rules: [{{path: {{prefix: /}}}}], transform: {{request: {{headers: {{X-Key: {{secret: {id}, transform: {{type: raw}}}}}}}}}}}}]"
        );
        assert!(said(&text).contains("headers.X-Key.secret"), "{id}");
        let git = format!(
            "services: [{{name: github, repos: [a/b], git: {{access: read, auth: {{secret: {id}}}}}}}]"
        );
        assert!(said(&git).contains("git.auth.secret"), "{id}");
    }
}

#[test]
fn transforms_are_closed() {
    let of = |transform: &str| {
        said(&format!(
            "domains: [{{host: ex.com, rules: [{{path: {{prefix: /}}}}], transform: {transform}}}]"
        ))
    };
    assert!(of("{}").contains("request is missing"));
    assert!(of("{request: {headers: {}}}").contains("must not be empty"));
    assert!(of("{request: {}}").contains("headers is missing"));
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: raw}}}}, response: {x: 1}}")
            .contains("reserved")
    );
    assert!(
        of("{request: {headers: {X: {value: hunter2, transform: {type: raw}}}}}")
            .contains("agentbox secrets set")
    );
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: basic}}}}}")
            .contains("username is missing")
    );
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: basic, username: 'a:b'}}}}}")
            .contains("no :")
    );
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: format, template: 'x'}}}}}")
            .contains("{secret} once")
    );
    assert!(of("{request: {headers: {X: {secret: a.b, transform: {type: format, template: '{secret}{secret}'}}}}}").contains("once"));
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: raw, username: x}}}}}")
            .contains("means nothing")
    );
    assert!(
        of("{request: {headers: {X: {secret: a.b, transform: {type: hmac}}}}}")
            .contains("bearer, basic, raw or format")
    );
    assert!(of("{request: {headers: {X: {secret: a.b, transform: {type: raw}}}, on_existing_header: merge}}").contains("replace_placeholder"));
    let fine = "domains: [{host: ex.com, rules: [{path: {prefix: /}}], transform: {response: {}, request: {allow_cookie: true, on_existing_header: replace, headers: {Cookie: {secret: a.b, transform: {type: format, template: 'k={secret}; a'}}}}}}]";
    let rule = policy(fine).records[0].rules[0].clone();
    let transform = rule.transform.unwrap();
    assert_eq!(transform.on_existing, OnExisting::Replace);
    let how = How::Format { before: "k=".to_owned(), after: "; a".to_owned() };
    assert_eq!((transform.headers[0].name.as_str(), &transform.headers[0].how), ("cookie", &how));
}

#[test]
fn rules_are_closed() {
    let of = |rule: &str| said(&format!("domains: [{{host: ex.com, rules: [{rule}]}}]"));
    for (rule, part) in [
        ("{schemes: []}", "must not be empty"),
        ("{schemes: [ftp]}", "http or https"),
        ("{schemes: https}", "must be a list"),
        ("{methods: []}", "must not be empty"),
        ("{methods: ['G T']}", "no blanks"),
        ("{methods: [TRACE]}", "never let through"),
        ("{path: {}}", "one of exact and prefix"),
        ("{path: {exact: /a, prefix: /a}}", "one of exact and prefix"),
        ("{path: /a}", "must be a mapping"),
        ("{path: {prefix: a}}", "must start with /"),
        ("{path: {prefix: '/a?b'}}", "said with query"),
        ("{path: {prefix: /a/../b}}", "never let through"),
        ("{path: {prefix: //a}}", "starts with //"),
        ("{path: {prefix: '/%zz'}}", "no escape"),
        ("{path: {prefix: /é}}", "%C3%A9"),
        ("{query: {}}", "exact is missing"),
        ("{query: {exact: {a: 1}}}", "put it in quotes: \"1\""),
        ("{query: {exact: {a: []}}}", "must not be empty"),
        ("{query: {exact: [a]}}", "must be a mapping"),
        ("{ports: [0]}", "from 1 to 65535"),
        ("{ports: [65536]}", "from 1 to 65535"),
        ("{ports: ['443']}", "from 1 to 65535"),
        ("{ports: [22]}", "allow_risky_port: true"),
        ("{websocket: maybe}", "true or false"),
        ("{action: permit}", "allow or ask or deny"),
        ("{max_body: ten}", "10MiB"),
        ("{max_body: 1.5MiB}", "10MiB"),
        ("{content: x}", "reserved"),
        ("{path_case_insensitive: true}", "case: insensitive"),
    ] {
        assert!(of(rule).contains(part), "{rule}: {}", of(rule));
    }
    let ok = "{ports: [587, 8443], allow_risky_port: true, methods: [post, POST, get], max_body: 10MiB, schemes: [HTTPS, http]}";
    let rule =
        policy(&format!("domains: [{{host: ex.com, rules: [{ok}]}}]")).records[0].rules[0].clone();
    assert_eq!(rule.methods.unwrap().into_iter().collect::<Vec<_>>(), ["GET", "POST"]);
    assert_eq!((rule.max_body, rule.ports.len(), rule.schemes.len()), (Some(10 << 20), 2, 2));
    assert!(!rule.websocket);
}

#[test]
fn hosts_are_checked_where_they_stand() {
    for (entry, part) in [
        ("'https://a.b'", "domains[0]: https://a.b is not the name"),
        ("'*'", "a bare *"),
        ("'*.com'", "public suffix"),
        ("10.0.0.1", "domains[0]"),
        ("{host: 10.0.0.1, rules: [{methods: [GET]}]}", "ip_literal: true"),
        ("egress.agentbox.internal", "kept for AgentBox"),
        ("host.agentbox.internal", "needs rules with ports"),
        ("{host: host.agentbox.internal, rules: [{methods: [GET]}]}", "needs ports"),
        ("{host: 10.0.0.1, allow_private: true, rules: [{methods: [GET]}]}", "needs ports"),
        ("{host: '*.ex.com', allow_private: true, rules: [{ports: [80]}]}", "not for a wildcard"),
        ("{rules: [{methods: [GET]}]}", "host is missing"),
        ("{host: ex.com, rules: [{methods: [GET]}], color: red}", "unknown key"),
        ("[ex.com]", "must be a mapping"),
        ("12", "must be a string"),
    ] {
        let why = said(&format!("domains: [{entry}]"));
        assert!(why.contains(part), "{entry}: {why}");
    }
    let private = policy(
        "domains: [{host: 10.0.0.1, allow_private: true, rules: [{ports: [8080], schemes: [http]}]}, {host: host.agentbox.internal, rules: [{ports: [3000], schemes: [http]}]}]",
    );
    assert!(private.records[0].allow_private && !private.records[1].allow_private);
    allowed(&private, "GET http://host.agentbox.internal:3000/");
    assert_eq!(
        codes(&rendered(&[(Layer::Global, "domains: ['*.github.io']")])),
        ["shared_hosting"]
    );
}

#[test]
fn a_file_says_one_thing_in_one_place() {
    assert!(said("a: &x 1").contains("anchors and aliases"));
    assert!(said("domains: *x").contains("egress.yaml:1:10"));
    assert!(
        said("domains: []\ndomains: []")
            .contains("the key domains is there twice (egress.yaml:2:1)")
    );
    assert!(said("domains: [{host: a.b, host: c.d, rules: [{methods: [GET]}]}]").contains("twice"));
    assert!(said("- a").contains("must be a mapping, not a list"));
    assert!(said("version: 2").contains("must be 1"));
    assert!(said("version: '1'").contains("must be 1"));
    assert!(said("defaults: {unmatched: allow}").contains("deny or ask"));
    assert!(said("defaults: {x: 1}").contains("known are unmatched"));
    assert!(said("domains: ex.com").contains("must be a list, not a string"));
    assert!(said(&format!("#{}", "x".repeat(1 << 20))).contains("larger than 1 MiB"));
    assert!(
        said("deny: [{host: ex.com, rules: [{action: allow}]}]")
            .contains("everything under deny is denied")
    );
    assert!(
        said("deny: [{host: ex.com, rules: [{query: {exact: {a: '%ff'}}}]}]")
            .contains("never deny")
    );
    for empty in ["", "# nothing", "services: null\ndomains:\n", "version: 1\ndomains: []"] {
        assert_eq!(policy(empty).records, [], "{empty}");
    }
}

#[test]
fn there_are_only_so_many_rules() {
    let many = |n: usize| {
        let hosts: String = (0..n).map(|at| format!("- h{at}.ex.com\n")).collect();
        format!("domains:\n{hosts}")
    };
    assert!(Policy::from_yaml(&many(2000)).is_ok());
    let why = said(&many(2001));
    assert!(why.contains("domains[2000]: makes more than 2000 rules"), "{why}");
    let layers = [(Layer::Global, many(1500)), (Layer::Project, many(501))];
    let layers: Vec<_> = layers.iter().map(|(layer, text)| (*layer, text.as_str())).collect();
    let why = render(&inputs(EgressMode::Open, &layers)).unwrap_err().to_string();
    assert!(why.starts_with("project: domains[500]: makes more than 2000"), "{why}");
}

#[test]
fn services_are_told_what_they_know() {
    let of = |entry: &str| said(&format!("services: [{entry}]"));
    assert!(of("{name: claude, repos: [a/b]}").contains("unknown key"));
    assert!(of("{name: npm, auth: {secret: a.b}}").contains("unknown key"));
    assert!(of("{readonly: true}").contains("name is missing"));
    assert!(of("{name: claude, readonly: 'yes'}").contains("true or false"));
    assert!(of("{name: claude, auth: {secret: a.b, type: password}}").contains("api_key or oauth"));
    assert!(
        of("{name: claude, auth: {secret: a.b, client_shim: {kind: git-askpass}}}")
            .contains("must be env")
    );
    assert!(of("{name: claude, auth: {secret: a.b, client_shim: {}}}").contains("kind is missing"));
    assert!(
        of("{name: codex, auth: {secret: a.b, type: oauth, client_shim: {kind: env}}}")
            .contains("from no variable")
    );
    assert!(of("gitea").contains("needs a host"));
    assert!(of("{name: git, repos: [a], git: {access: read}}").contains("needs a host"));
    assert!(
        of("{name: git, host: g.ex, repos: [a], git: {access: read, auth: {secret: a.b}}}")
            .contains("username is missing")
    );
    assert!(of("{name: git, host: g.ex, repos: [a], api: {access: read}}").contains("unknown key"));
    assert!(of("[claude]").contains("a name or a mapping"));
    assert!(
        of("{name: github, repos: [a/b], api: {access: read, allow_admin: [everything]}}")
            .contains("must be one of hooks, keys")
    );
    assert!(of("{name: github, repos: [a/b], git: {access: readwrite, auth: {secret: a.b}, push: {refs: ['a b']}}}").contains("must be a branch"));
}
