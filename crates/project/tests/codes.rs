//! Every mistake the reader knows, with its code and place.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_project::{Parsed, Problem, Project};

fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| problem.line("agentbox.yaml")).collect()
}

/// Code and path of each error.
fn errors(text: &str) -> Vec<(&'static str, String)> {
    Project::parse(text).errors.into_iter().map(|p| (p.code, p.path)).collect()
}

#[track_caller]
fn one(text: &str, code: &str, path: &str) -> String {
    let Parsed { project, errors, .. } = Project::parse(text);
    assert!(project.is_none(), "{text}");
    let found: Vec<_> = errors.iter().map(|p| (p.code, p.path.as_str())).collect();
    assert_eq!(found, [(code, path)], "{text}: {:?}", lines(&errors));
    errors[0].message.clone()
}

fn service(body: &str) -> String {
    format!("services:\n  web: {{command: x, {body}}}\n")
}

fn image(body: &str) -> String {
    format!("services:\n  db: {{image: {{name: postgres, {body}}}}}\n")
}

fn task(body: &str) -> String {
    format!("tasks:\n  t: {{command: x, {body}}}\n")
}

#[test]
fn yaml_13_02_an_empty_file_is_fine() {
    for text in ["", "# nothing\n", "{}", "services:\ntasks: {}\ncarry:\n"] {
        let parsed = Project::parse(text);
        assert_eq!(parsed.project, Some(Project::default()), "{text}");
        assert!(parsed.warnings.is_empty());
    }
}

#[test]
fn y001_y002_what_is_no_mapping() {
    assert_eq!(errors("a: [1")[0].0, "Y001");
    assert_eq!(errors("services: {a: {command: x}, a: {command: y}}")[0].0, "Y001");
    one("- a\n", "Y002", "");
    one("just text", "Y002", "");
}

#[test]
fn y003_sections_are_mappings() {
    for section in ["services", "tasks", "ide", "defaults", "replacements"] {
        one(&format!("{section}: [a]"), "Y003", section);
        one(&format!("{section}: yes"), "Y003", section);
    }
}

#[test]
fn y004_y005_names_and_what_they_stand_for() {
    one("services: {\"a b\": {command: x}}", "Y004", "services.a b");
    for reserved in ["ctl-daemon", "dockerd", "sshd", "vnc-start", "web-proxy", "xvnc"] {
        one(
            &format!("tasks: {{{reserved}: {{command: x}}}}"),
            "Y004",
            &format!("tasks.{reserved}"),
        );
    }
    one("services: {a: x}", "Y005", "services.a");
    one("tasks: {a: }", "Y005", "tasks.a");
}

#[test]
fn yaml_13_03_y010_y011_one_of_command_and_image() {
    one("services: {web: {}}", "Y011", "services.web");
    one("services: {web: {command: x, image: y}}", "Y010", "services.web");
    one("tasks: {a: {}}", "Y011", "tasks.a");
}

#[test]
fn yaml_13_04_y012_y013_commands() {
    for command in ["42", "true", "{a: b}", "[]", "''", "'  '", "\"a\\0b\"", ""] {
        one(&format!("tasks: {{a: {{command: {command}}}}}"), "Y012", "tasks.a.command");
    }
    let path = "services.web.command[1]";
    let said = one("services: {web: {command: [\"node\", 42]}}", "Y013", path);
    assert_eq!(said, "must be a string, not a number");
}

#[test]
fn y014_to_y017_plain_fields() {
    one(&service("cwd: 5"), "Y014", "services.web.cwd");
    one(&task("cwd: [a]"), "Y014", "tasks.t.cwd");
    one(&service("env: [a]"), "Y015", "services.web.env");
    one(&service("env: {A: [b]}"), "Y015", "services.web.env.A");
    one(&service("env: {A: }"), "Y015", "services.web.env.A");
    one(&service("env: {1A: b}"), "Y015", "services.web.env.1A");
    one(&service("env: {A-B: b}"), "Y015", "services.web.env.A-B");
    one(&service("autostart: 'yes'"), "Y016", "services.web.autostart");
    one(&service("restart: sometimes"), "Y017", "services.web.restart");
}

#[test]
fn y018_backoff() {
    one(&service("backoff: 5"), "Y018", "services.web.backoff");
    one(&service("backoff: {initial_ms: -1}"), "Y018", "services.web.backoff.initial_ms");
    one(&service("backoff: {factor: 0.5}"), "Y018", "services.web.backoff.factor");
    one(&service("backoff: {factor: .inf}"), "Y018", "services.web.backoff.factor");
    one(&service("backoff: {max_attempts: -1}"), "Y018", "services.web.backoff.max_attempts");
    one(&service("backoff: {initial_ms: 10, max_ms: 5}"), "Y018", "services.web.backoff");
    one(&service("stop_grace_ms: -1"), "Y018", "services.web.stop_grace_ms");
    one(&task("timeout_ms: 0"), "Y018", "tasks.t.timeout_ms");
}

#[test]
fn y019_needs() {
    one(&task("needs: web"), "Y019", "tasks.t.needs");
    one(&task("needs: [[a]]"), "Y019", "tasks.t.needs[0]");
    one(&task("needs: ['a b']"), "Y019", "tasks.t.needs[0]");
}

#[test]
fn yaml_13_06_y020_y021_y022_ready_when() {
    let path = "services.web.ready_when";
    one(&service("ready_when: soon"), "Y020", path);
    one(&service("ready_when: {timeout_ms: 5}"), "Y020", path);
    let said = one(&service("ready_when: {port: 3000, http: 'http://x'}"), "Y020", path);
    assert!(said.contains("port, http"), "{said}");
    for (body, key) in [
        ("log_match: x, interval_ms: 5", "interval_ms"),
        ("log_match: x, host: a", "host"),
        ("http: 'http://x', host: a", "host"),
        ("port: 1, expect_status: 200", "expect_status"),
        ("port: 0", "port"),
        ("port: 65536", "port"),
        ("port: http", "port"),
        ("port: 1, interval_ms: 0", "interval_ms"),
        ("port: 1, timeout_ms: 0", "timeout_ms"),
        ("port: 1, on_timeout: wait", "on_timeout"),
        ("port: 1, host: ''", "host"),
        ("http: 'http://x', expect_status: 99", "expect_status"),
        ("http: 'ftp://x'", "http"),
        ("http: '/health'", "http"),
        ("http: 5", "http"),
    ] {
        one(&service(&format!("ready_when: {{{body}}}")), "Y021", &format!("{path}.{key}"));
    }
    let said = one(&service("ready_when: {log_match: '('}"), "Y022", &format!("{path}.log_match"));
    assert!(said.contains("regular expression"), "{said}");
}

#[test]
fn yaml_13_07_y023_y024_expose() {
    one(&service("expose: 3000"), "Y023", "services.web.expose");
    one(&service("expose: {}"), "Y023", "services.web.expose");
    one(&service("expose: {port: 0}"), "Y023", "services.web.expose.port");
    one(&service("expose: {port: 3000, as: 8080}"), "Y023", "services.web.expose.as");
    let two =
        "services:\n  a: {command: x, expose: {port: 1}}\n  b: {command: x, expose: {port: 2}}\n";
    assert!(one(two, "Y024", "services").contains("a, b"));
}

#[test]
fn yaml_13_11_y030_y031_y032_images() {
    one("services: {db: {image: 5}}", "Y030", "services.db.image");
    one("services: {db: {image: ' '}}", "Y030", "services.db.image");
    one("services: {db: {image: --privileged}}", "Y030", "services.db.image");
    one("services: {db: {image: {ports: [\"1:1\"]}}}", "Y030", "services.db.image");
    one("services: {db: {image: {name: 5}}}", "Y030", "services.db.image.name");
    one(&image("ports: 5432"), "Y031", "services.db.image.ports");
    for port in ["'a:b'", "'1:2:3'", "0", "'70000:1'", "-1", "''"] {
        one(&image(&format!("ports: [{port}]")), "Y031", "services.db.image.ports[0]");
    }
    one(&image("args: 5"), "Y031", "services.db.image.args");
    one(&image("args: 'a \"b'"), "Y031", "services.db.image.args");
    one(&image("args: [a, 5]"), "Y031", "services.db.image.args[1]");
    one(&image("env: {A: [b]}"), "Y031", "services.db.image.env.A");
    one(&image("container_name: _x"), "Y031", "services.db.image.container_name");
    one("services: {_db: {image: redis}}", "Y031", "services._db.image");
    one("services: {db: {image: redis, env: {A: b}}}", "Y032", "services.db.env");
}

#[test]
fn y040_run_once() {
    for bad in ["5", "sometimes", "[a]", "{}", "{check: a, inputs: [b]}", "{never: a}"] {
        one(&task(&format!("run_once: {bad}")), "Y040", "tasks.t.run_once");
    }
    one(&task("run_once: {check: ' '}"), "Y040", "tasks.t.run_once.check");
    one(&task("run_once: {inputs: []}"), "Y040", "tasks.t.run_once.inputs");
    one(&task("run_once: {inputs: a}"), "Y040", "tasks.t.run_once.inputs");
    one(&task("run_once: {inputs: [5]}"), "Y040", "tasks.t.run_once.inputs[0]");
}

#[test]
fn yaml_13_05_y050_to_y053_the_graph() {
    let both = "services: {api: {command: x}}\ntasks: {api: {command: x}}\n";
    one(both, "Y050", "tasks.api");
    let said =
        one("tasks: {install: {command: x}, t: {command: x, needs: [instal]}}", "Y051", "tasks.t");
    assert_eq!(said, "needs instal, which is no service and no task");
    one("tasks: {t: {command: x, needs: [t]}}", "Y052", "tasks.t");
    let round = "tasks: {a: {command: x, needs: [b]}, b: {command: y, needs: [a]}}";
    assert!(one(round, "Y053", "tasks.a").contains("a → b → a"));
    let chain: String =
        (0..5000).map(|n| format!("  t{n}: {{command: x, needs: [t{}]}}\n", n + 1)).collect();
    assert!(errors(&format!("tasks:\n{chain}  t5000: {{command: x}}\n")).is_empty());
    let closed = format!("tasks:\n{chain}  t5000: {{command: x, needs: [t0]}}\n");
    assert_eq!(errors(&closed), [("Y053", "tasks.t0".to_owned())]);
}

#[test]
fn y054_a_unit_that_waits_for_somebody_is_a_warning() {
    let text =
        "services: {db: {command: x, autostart: false}}\ntasks: {t: {command: x, needs: [db]}}\n";
    let parsed = Project::parse(text);
    assert!(parsed.project.is_some());
    assert_eq!(parsed.warnings.len(), 1);
    assert_eq!((parsed.warnings[0].code, &*parsed.warnings[0].path), ("Y054", "tasks.t"));
}

#[test]
fn y060_replacements() {
    one("replacements: {'a b': []}", "Y060", "replacements.a b");
    one("replacements: {a: x}", "Y060", "replacements.a");
    let rule = |body: &str| format!("replacements: {{a: [{body}]}}");
    one(&rule("x"), "Y060", "replacements.a[0]");
    one(&rule("{to: x}"), "Y060", "replacements.a[0]");
    one(&rule("{from: x}"), "Y060", "replacements.a[0]");
    one(&rule("{from: '', to: x}"), "Y060", "replacements.a[0].from");
    one(&rule("{from: 5, to: x}"), "Y060", "replacements.a[0].from");
    one(&rule("{from: x, to: 5}"), "Y060", "replacements.a[0].to");
    one(&rule("{from: x, to: y, regex: 1}"), "Y060", "replacements.a[0].regex");
    one(&rule("{from: x, to: y, flags: 1}"), "Y060", "replacements.a[0].flags");
    one(&rule("{from: '(', to: y, regex: true}"), "Y060", "replacements.a[0].from");
    one(&rule("{from: x, to: y, regex: true, flags: gy}"), "Y060", "replacements.a[0].from");
    one(&rule("{from: x, to: y, form: z}"), "Y060", "replacements.a[0].form");
}

#[test]
fn rules_a_box_does_not_know_spoil_their_set_alone() {
    let text = "replacements: {a: [{from: x, to: y, when: z}], b: [{from: x, to: y}]}\ncarry: 5\n";
    let parsed = Project::parse_in_box(text);
    let project = parsed.project.unwrap();
    assert_eq!(project.rule_set("a").unwrap().unknown, ["when"]);
    assert!(project.rule_set("b").unwrap().unknown.is_empty());
    assert_eq!(parsed.warnings.len(), 1);
    assert!(Project::parse(text).project.is_none());
}

#[test]
fn y061_carry_items() {
    one("carry: {a: b}", "Y061", "carry");
    let item = |body: &str| format!("carry: [{body}]");
    for bad in
        ["5", "[a]", "a", "'../x'", "'./x'", "'~/x=y'", "{dest: /x}", "{src: '~x', dest: /x}"]
    {
        one(&item(bad), "Y061", "carry[0]");
    }
    one(&item("{src: ~/a, permissions: 5}"), "Y061", "carry[0].permissions");
    for bad in ["384", "8", "u+x", "'0o8'", "'17777'", "''", "[6]"] {
        one(&item(&format!("{{src: ~/a, mode: {bad}}}")), "Y061", "carry[0].mode");
    }
    for bad in ["root", "65536", "-1", "1.5", "''"] {
        one(&item(&format!("{{src: ~/a, user: {bad}}}")), "Y061", "carry[0].user");
    }
    one(&item("{src: ~/a, exclude: x}"), "Y061", "carry[0].exclude");
    one(&item("{src: ~/a, exclude: ['']}"), "Y061", "carry[0].exclude");
    one(&item("{src: ~/a, optional: 1}"), "Y061", "carry[0].optional");
    one(&item("{src: ~/a, replaceEnvs: 1}"), "Y061", "carry[0].replaceEnvs");
    one(&item("{src: ~/a, replace: [{from: x}]}"), "Y061", "carry[0].replace[0]");
    one(&item("{src: ~/a, rules: ['a b']}"), "Y061", "carry[0].rules");
}

#[test]
fn yaml_13_50_modes_are_octal_however_written() {
    for mode in ["\"0600\"", "\"600\"", "\"0o600\"", "0o600", "0600", "600"] {
        let text = format!("carry: [{{src: ~/a, mode: {mode}}}]");
        assert_eq!(Project::parse(&text).project.unwrap().carry[0].mode, Some(0o600), "{mode}");
    }
}

#[test]
fn yaml_13_08_unknown_keys_are_warnings_with_a_hint() {
    let parsed = Project::parse(&service("restartt: always"));
    assert!(parsed.project.is_some());
    assert_eq!(
        lines(&parsed.warnings),
        ["agentbox.yaml:2:21: services.web.restartt: unknown key (W001); did you mean restart?"]
    );
    for text in [
        "servces: {}",
        &task("comand: x"),
        &image("port: 5"),
        &service("backoff: {inital_ms: 5}"),
        &service("ready_when: {port: 5, hosts: x}"),
        &service("expose: {port: 5, az: 80}"),
    ] {
        let parsed = Project::parse(text);
        assert!(parsed.project.is_some(), "{text}");
        assert_eq!(parsed.warnings.len(), 1, "{text}");
        assert!(parsed.warnings[0].hint.is_some(), "{text}");
    }
    for key in ["restart", "autostart", "backoff", "ready_when", "expose"] {
        let parsed = Project::parse(&task(&format!("{key}: [1]")));
        assert_eq!(parsed.warnings[0].code, "W002", "{key}");
    }
    let placeholder = Project::parse(&task("run_once: {check: 'a {{AGENTBOX_BOX_NAME}}'}"));
    assert_eq!(placeholder.warnings[0].code, "W003");
}

#[test]
fn yaml_13_09_all_mistakes_are_shown_with_their_lines() {
    let text = "services:\n  web: {}\n  api:\n    command: x\n    restart: 5\ntasks:\n  t:\n    command: x\n    needs: [nobody]\n";
    assert_eq!(
        lines(&Project::parse(text).errors),
        [
            "agentbox.yaml:2:8: services.web: needs command or image (Y011)",
            "agentbox.yaml:5:14: services.api.restart: must be one of always, on-failure, never (Y017)",
            "agentbox.yaml:9:13: tasks.t: needs nobody, which is no service and no task (Y051)",
        ]
    );
}

#[test]
fn what_is_shown_of_a_hostile_file_is_bounded_and_visible() {
    let text = "services: {\"a\\e[2J\\u202e\": 5}";
    assert_eq!(Project::parse(text).errors[0].path, "services.a\\x1b[2J⟨U+202E⟩");
    let many: String = (0..5000).map(|n| format!("  s{n}: 5\n")).collect();
    assert_eq!(Project::parse(&format!("services:\n{many}")).errors.len(), 100);
    let long = format!("services: {{{}: 5}}", "a".repeat(90_000));
    assert!(Project::parse(&long).errors[0].line("f").len() < 500);
}

#[test]
fn y071_settings_without_end_are_not_taken() {
    let many = format!("defaults: {{a: [{}]}}\n", "0,".repeat(50_000));
    assert!(one(&many, "Y071", "defaults").contains("more than 200"));
    let long = format!("defaults: {{{}: [{}]}}\n", "a".repeat(900_000), "0,".repeat(50_000));
    assert!(one(&long, "Y071", "defaults").contains("too long"));
    let deep = format!("defaults: {{{}: {{b: 1}}}}\n", "a".repeat(500));
    let _ = one(&deep, "Y071", "defaults");
}
