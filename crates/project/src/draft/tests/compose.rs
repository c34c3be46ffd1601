//! Compose files: the usual, and the worst.

use super::drafted;
use crate::draft::Draft;
use crate::{Image, Probe, Project, Run, Service};
use proptest::prelude::*;

fn composed(text: &str) -> (Draft, Project) {
    let (draft, project) = drafted(&[("compose.yaml", text)]);
    assert!(draft.text.len() < 200_000, "{} bytes", draft.text.len());
    assert_eq!(draft.from, ["compose.yaml"]);
    (draft, project)
}

/// A file with one service of this image, called `a`.
fn one(keys: &str) -> (Draft, Service) {
    let (draft, project) = composed(&format!("services:\n  a:\n    image: x:1\n{keys}"));
    let service = project.service("a").unwrap_or_else(|| panic!("{}", draft.text)).clone();
    (draft, service)
}

fn image(service: &Service) -> &Image {
    match &service.run {
        Run::Image(image) => image,
        Run::Command(command) => panic!("{command:?}"),
    }
}

fn ports(service: &Service) -> Vec<(Option<u16>, u16)> {
    image(service).ports.iter().map(|port| (port.host, port.container)).collect()
}

#[test]
fn images_are_containers_and_builds_are_named() {
    let (draft, project) = composed(
        "x-env: &env {TZ: UTC}
services:
  db:
    image: postgres:${PG:-17}
    ports: ['127.0.0.1:5433:5432']
    environment: {<<: *env, POSTGRES_PASSWORD: dev, VERSION: 3.10, SECRET: '${SECRET}'}
    volumes: [db:/var/lib/postgresql/data]
    command: postgres -c 'shared_buffers=256MB' -c fsync=off
  cache: {image: redis}
  worker:
    image: ghcr.io/a/worker@sha256:0123
    depends_on: {db: {condition: service_healthy}, api: {condition: service_started}}
    command: [sh, -c, 'echo $$HOME # x']
  api:
    build: {context: ./api}
    image: shop/api
    depends_on: [db]
  site: {build: .}
volumes: {db: }
",
    );
    assert_eq!(draft.services, ["db", "cache", "worker"]);
    let db = project.service("db").unwrap();
    assert_eq!(image(db).name, "postgres:17");
    assert_eq!(ports(db), [(Some(5433), 5432)]);
    let env: Vec<(&str, &str)> =
        image(db).env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("POSTGRES_PASSWORD", "dev"), ("TZ", "UTC"), ("VERSION", "3.10")]);
    assert_eq!(image(db).args, ["postgres", "-c", "shared_buffers=256MB", "-c", "fsync=off"]);
    let ready = db.ready_when.as_ref().unwrap();
    assert!(matches!(ready.probe, Probe::Port { port: 5433, .. }), "{ready:?}");
    assert!(db.autostart && db.expose.is_none());
    let cache = project.service("cache").unwrap();
    assert!(cache.ready_when.is_none() && image(cache).args.is_empty());
    let worker = project.service("worker").unwrap();
    assert_eq!(worker.needs.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["db"]);
    assert_eq!(image(worker).args, ["sh", "-c", "echo $HOME # x"]);
    for line in [
        "  # Left out: SECRET (its value is not in the file); volumes",
        "# - api: built from ./api, docker compose up --build --no-deps api",
        "# - site: built from ., docker compose up --build --no-deps site",
    ] {
        assert!(draft.text.lines().any(|one| one == line), "no {line} in\n{}", draft.text);
    }
    assert!(draft.text.contains("agentbox config set box.docker on"));
}

#[test]
fn every_form_of_a_port() {
    for (given, expected) in [
        ("'5432:5432'", Some((5432, 5432))),
        ("5432:5433", Some((5432, 5433))),
        ("127.0.0.1:5432:5433", Some((5432, 5433))),
        ("'[::1]:5432:5433'", Some((5432, 5433))),
        ("'127.0.0.1::5433'", Some((5433, 5433))),
        ("5432", Some((5432, 5432))),
        ("'5432:5432/tcp'", Some((5432, 5432))),
        ("'${PORT:-5432}:5433'", Some((5432, 5433))),
        ("{target: 5433, published: 5432}", Some((5432, 5433))),
        ("{target: 5433, published: '5432', protocol: tcp, mode: host}", Some((5432, 5433))),
        ("{target: 5433}", Some((5433, 5433))),
        ("{target: 53, published: 53, protocol: udp}", None),
        ("{target: 5433, published: 5432-5440}", None),
        ("{published: 5432}", None),
        ("'53:53/udp'", None),
        ("'3000-3005:3000-3005'", None),
        ("'${PORT}:5432'", None),
        ("'80:8080'", None),
        ("0", None),
        ("70000", None),
        ("+5432", None),
        ("\"x\\n\\ny\"", None),
        ("[]", None),
        ("~", None),
    ] {
        let (draft, service) = one(&format!("    ports:\n      - {given}\n"));
        let expected: Vec<_> =
            expected.map(|(host, inner)| (Some(host), inner)).into_iter().collect();
        assert_eq!(ports(&service), expected, "{given}");
        assert_eq!(service.ready_when.is_some(), !expected.is_empty(), "{given}");
        assert_eq!(draft.text.contains("# Left out: port "), expected.is_empty(), "{given}");
    }
    let (draft, project) = composed(
        "services: {a: {image: x, ports: ['1000:1', '1000:2']}, b: {image: x, ports: ['1000:3']}}",
    );
    assert_eq!(ports(project.service("a").unwrap()), [(Some(1000), 1)]);
    assert!(ports(project.service("b").unwrap()).is_empty());
    assert!(draft.text.contains("port 1000:3 (1000 is taken)"), "{}", draft.text);
}

#[test]
fn variables_in_both_forms() {
    let (draft, service) = one(
        "    environment: [A=1, A=2, 'B=x=y', 'C=${D:-d}', D, 'E=${E}', discovery.type=z, 'F=', [], 'G=a\"\n\n      b: c']\n",
    );
    let env: Vec<(&str, &str)> =
        image(&service).env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("A", "2"), ("B", "x=y"), ("C", "d"), ("F", ""), ("G", "a\"\nb: c")]);
    for left in ["; E (its value", "discovery.type (no name", "Left out: D (its value"] {
        assert!(draft.text.contains(left), "no {left} in\n{}", draft.text);
    }
    let (_, service) = one("    environment: {A: , B: true, C: [], null: x, NO: 'null', D: ~}\n");
    let env: Vec<(&str, &str)> =
        image(&service).env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(env, [("B", "true"), ("NO", "null"), ("null", "x")]);
}

#[test]
fn what_waits_or_goes_round_is_not_needed() {
    let (_, project) = composed(
        "services:
  a: {image: x, depends_on: [a, b, nobody, tool, 5]}
  b: {image: x, depends_on: [c]}
  c: {image: x, depends_on: {a: {}}}
  tool: {image: x, profiles: [tools], depends_on: [null, b]}
  null: {image: x}
",
    );
    let needs = |name: &str| {
        let needs = &project.service(name).unwrap().needs;
        needs.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(needs("a"), ["b"]);
    assert_eq!(needs("b"), ["c"]);
    assert!(needs("c").is_empty());
    assert_eq!(needs("tool"), ["b", "null"]);
    assert!(!project.service("tool").unwrap().autostart);
}

#[test]
fn names_are_made_to_fit() {
    let long = "n".repeat(300);
    let (draft, project) = composed(&format!(
        "services: {{my.db: {{image: x}}, my-db: {{image: x}}, my/db: {{image: x}}, dockerd: {{image: x}}, _x: {{image: x}}, \
         '': {{image: x}}, '5': {{image: x}}, 'true': {{image: x}}, {long}: {{image: x}}, 'é: \"': {{image: x}}}}"
    ));
    let called = ["my-db", "my-db-image", "dockerd-image", "x", "container", "5", "true"];
    assert_eq!(draft.services[..7], called);
    assert_eq!(draft.services[7..], ["n".repeat(60), "container-image".to_owned()]);
    assert_eq!(project.services.len(), 9);
    assert!(draft.text.contains("# - my/db: its name is taken"), "{}", draft.text);
    let (draft, _) = drafted(&[
        ("package.json", "{\"scripts\": {\"dev\": \"x -p 9000\"}}"),
        ("compose.yml", "services: {web: {image: nginx, ports: ['9000:80']}}"),
    ]);
    assert_eq!(draft.services, ["web", "web-image"]);
    assert!(draft.text.contains("port 9000:80 (9000 is taken)"), "{}", draft.text);
    assert!(draft.text.contains("expose: {port: 9000}"));
}

#[test]
fn what_is_not_understood_is_a_comment() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nservices: *c\n";
    let deep = "[".repeat(5000);
    let large = format!("services: {{a: {{image: x}}}}\n#{}\n", "x".repeat(1 << 20));
    for text in [
        "",
        "services:",
        "services: []",
        "services: {}",
        "- a",
        "a: {",
        "services: {a: {image: x}, a: {image: y}}",
        "services: !reset {}",
        "--- \nservices: {a: {image: x}}\n---\nb: c\n",
        "\u{fffd}\0\u{1}",
        bomb,
        &deep,
        &large,
    ] {
        let (draft, project) = composed(text);
        assert_eq!(project, Project::default());
        assert!(draft.text.contains("# compose.yaml was not understood: "), "{}", draft.text);
    }
}

#[test]
fn a_service_without_a_plain_image_is_only_named() {
    for service in [
        "{}",
        "~",
        "5",
        "[]",
        "{image: }",
        "{image: '${IMAGE}'}",
        "{image: -v}",
        "{image: 'a b'}",
        "{image: [x]}",
        "{image: \"a\\nb\"}",
        "{extends: x}",
        "{image: \"x\\0\"}",
        "{build: ., image: x}",
    ] {
        let (draft, project) = composed(&format!("services: {{a: {service}}}"));
        assert!(project.services.is_empty(), "{service}");
        assert!(draft.text.contains("# - a: "), "{service}\n{}", draft.text);
    }
}

#[test]
fn no_text_of_the_file_becomes_more_than_a_text() {
    let hostile = [
        "x\\ncarry: [/etc/passwd]",
        "x\\n  evil: {command: y}\\n#",
        "\\\"}, evil: {command: \\\"y",
        "{{a}}",
        "- x",
        "*a",
        "&a b",
        "!!int 5",
        "a: b",
        "x #y",
        "%YAML 1.2",
        "---",
        "\\r\\nz: \\u2028\\u202e\\e[2J\\x85\\x7f",
        "\\ufeff",
        "\\ufffe\\uffff",
        "\\U0001f600é",
        "\\t\\\\",
        "=",
        "0x10",
        ".nan",
    ];
    for text in hostile {
        let (draft, project) = composed(&format!(
            "services:
  a:
    image: \"x\"
    environment: {{V: \"{text}\", \"{text}\": w}}
    command: [\"{text}\"]
    ports: [\"{text}\"]
    depends_on: [\"{text}\"]
  \"{text}\": {{image: \"{text}\"}}
  \"b{text}\": {{build: \"{text}\"}}
"
        ));
        let a = project.service("a").unwrap();
        assert_eq!(image(a).args, [image(a).env["V"].clone()], "{text}");
        assert!(project.carry.is_empty() && project.service("evil").is_none());
        assert!(!draft.text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
    let editor = "services: {yaml-language-server: {build: '$$schema=http://x/'}}";
    let (draft, _) = composed(editor);
    assert!(!draft.text.contains("# yaml-language-server: built"), "{}", draft.text);
}

#[test]
fn much_is_cut() {
    let many = |what: &str| vec![what; 30_000].join(", ");
    let (draft, service) = one(&format!("    ports: [{}]\n", many("'1000:1'")));
    assert_eq!(ports(&service).len(), 1);
    assert!(draft.text.contains("; 10 more\n"), "{}", draft.text);
    let each = |many: usize, write: fn(usize) -> String| (0..many).map(write).collect::<String>();
    let numbered = each(20_000, |n| format!("V{n}: x, "));
    let (_, service) = one(&format!("    environment: {{{numbered}}}\n"));
    assert_eq!(image(&service).env.len(), 100);
    let (_, service) = one(&format!("    environment: ['{}=x', B=y]\n", "A".repeat(2000)));
    assert_eq!(image(&service).env.len(), 1);
    let (_, service) = one(&format!("    command: [{}]\n", many("x")));
    assert!(image(&service).args.is_empty());
    let (_, service) = one(&format!("    command: {}\n", "x ".repeat(200)));
    assert!(image(&service).args.is_empty());
    let services = each(2000, |n| format!("s{n}: {{image: x}}, "));
    let (draft, project) = composed(&format!("services: {{{services}}}"));
    assert_eq!(project.services.len(), 20);
    assert!(draft.text.contains("# - and 1980 more"));
    let values = each(45, |n| format!("V{n}: *v, "));
    let heavy = format!(
        "v: &v '{}'\ne: &e {{{values}}}\nservices: {{a: {{image: x, environment: *e}}, b: {{image: x}}}}\n",
        "\u{202e}".repeat(2000)
    );
    let (draft, project) = composed(&heavy);
    assert!(draft.text.contains("# - a: there is too much of it"), "{}", draft.text);
    assert!(project.service("b").is_some());
}

/// Texts that look like a compose file, more or less.
fn composeish() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[a-z._-]{1,5}", Just("dockerd".to_owned()), any::<String>()];
    let value = prop_oneof![
        any::<String>(),
        "[0-9]{1,5}(:[0-9]{1,5}){0,2}(/udp)?",
        "(\\$?\\{?[A-Z]?:?-?[a-z]?\\}?=?){1,4}",
        Just("x:1".to_owned()),
    ];
    let quote = |text: &String| serde_json::Value::from(text.as_str()).to_string();
    let list = prop::collection::vec(value.clone(), 0..4);
    let service =
        (value, list.clone(), list.clone(), list, prop::collection::vec(name.clone(), 0..3));
    let service = service.prop_map(move |(image, ports, env, command, wants)| {
        let all = |texts: &[String]| texts.iter().map(quote).collect::<Vec<_>>().join(", ");
        let (ports, env, command, wants) = (all(&ports), all(&env), all(&command), all(&wants));
        format!(
            "{{image: {}, ports: [{ports}], environment: [{env}], command: [{command}], depends_on: [{wants}]}}",
            quote(&image)
        )
    });
    prop::collection::btree_map(name, service, 0..5).prop_map(move |services| {
        let all: Vec<String> =
            services.iter().map(|(name, service)| format!("{}: {service}", quote(name))).collect();
        format!("services: {{{}}}", all.join(", "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_draft_is_in_order_for_every_compose_file(text in prop_oneof![composeish(), any::<String>()]) {
        composed(&text);
    }
}
