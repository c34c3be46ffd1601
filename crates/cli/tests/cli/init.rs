//! A first agentbox.yaml: written once, in order, and only where none is. And what is wrong with one.

use crate::support::Home;

fn project(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    for (name, text) in files {
        std::fs::write(home.project().join(name), text).unwrap();
    }
    home
}

#[test]
fn a_file_is_written_once() {
    let home = project(&[
        (
            "package.json",
            "{\"scripts\": {\"dev\": \"next dev\"}, \"dependencies\": {\"next\": \"15\"}}",
        ),
        ("pnpm-lock.yaml", ""),
    ]);
    let file = home.project().join("agentbox.yaml");
    let shown = home.run(&["init", "--print"]).exits(0).stdout;
    assert!(!file.exists() && shown.contains("command: pnpm run dev"), "{shown}");
    let told = home.run(&["init"]).exits(0).prints(&format!("{}\n", file.display()));
    let _ = told.says("made from package.json, pnpm-lock.yaml: tasks install; services web");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), shown);
    home.run(&["validate", "--strict"]).exits(0).prints("OK: 1 service(s), 1 task(s)\n");

    std::fs::write(&file, "# mine\n").unwrap();
    let _ = home.run(&["init"]).exits(1).says("is there already").says("--force");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    let report = home.run(&["init", "--force", "--json"]).exits(0).json();
    assert_eq!(report["init"]["written"], true);
    assert_eq!(report["init"]["services"], serde_json::json!(["web"]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), shown);
}

#[test]
fn every_kind_of_project_gets_a_file_in_order() {
    let projects: [&[(&str, &str)]; 10] = [
        &[],
        &[("Cargo.toml", ""), ("Cargo.lock", "")],
        &[("go.mod", ""), ("Makefile", "dev:\n\tgo run .\n")],
        &[("pyproject.toml", "[tool.poetry]\n"), ("manage.py", "")],
        &[("package.json", "{"), ("compose.yaml", "services: {}\n")],
        &[("compose.yaml", "services: {a: {image: x, ports: [5432]}, b: {build: .}}\n")],
        &[("docker-compose.yml", "services: [\n"), ("agentbox.schema.json", "{}")],
        &[("Procfile", "web: x --y='a: b'\nworker: \"z\" #\n"), ("Gemfile", "")],
        &[(".env.example", "A=b\n"), (".env", "A=c\n"), ("Makefile", "setup:\n")],
        &[("package.json", "{}"), ("Cargo.toml", ""), ("go.mod", ""), ("requirements.txt", "")],
    ];
    for files in projects {
        let home = project(files);
        let _ = home.run(&["init"]).exits(0);
        let _ = home.run(&["validate", "--strict"]).exits(0);
    }
    let home = Home::new();
    let _ = home.run(&["init", "/no/such/folder"]).exits(2).says("/no/such/folder");
}

#[test]
fn images_of_a_compose_file_are_services() {
    let compose =
        "services:\n  db:\n    image: postgres:17\n    ports: ['5432:5432']\n  api: {build: .}\n";
    let home = project(&[("compose.yaml", compose)]);
    let shown = home.run(&["init", "--print"]).exits(0).stdout;
    let service = "  db:\n    image:\n      name: \"postgres:17\"\n      ports: [\"5432:5432\"]\n    ready_when: {port: 5432}\n";
    assert!(shown.contains(service), "{shown}");
    assert!(shown.contains("docker compose up --build --no-deps api"), "{shown}");
    let long = format!("{compose}#{}\nx: [\n", " ".repeat(1 << 20));
    std::fs::write(home.project().join("compose.yaml"), long).unwrap();
    let shown = home.run(&["init", "--print"]).exits(0).stdout;
    assert!(shown.contains("compose.yaml was not understood"), "{shown}");
}

#[test]
fn what_is_refused_of_carry_is_among_the_errors() {
    let home =
        project(&[("agentbox.yaml", "tasks: {t: {command: x}}\ncarry: [~/a, '~/b=/proc/1']\n")]);
    let report = home.run(&["validate", "--json"]).exits(2).json()["validation"].clone();
    assert_eq!((&report["valid"], &report["tasks"]), (&false.into(), &1.into()));
    let expected = serde_json::json!([{
        "line": 2, "column": 14, "path": "carry[1]", "code": "Y062",
        "message": "~/b → /proc/1: nothing can be copied to /proc",
    }]);
    assert_eq!(report["errors"], expected);
    let line = "agentbox.yaml:2:14: carry[1]: ~/b → /proc/1: nothing can be copied to /proc (Y062)";
    let _ = home.run(&["validate"]).exits(2).prints("").says(line);
}

#[test]
fn links_are_not_followed_and_nothing_hides() {
    let home = Home::new();
    let folder = home.project();
    let secret = home.path().join("hosts.yml");
    std::fs::write(&secret, "oauth_token: gho_secret\n").unwrap();
    std::os::unix::fs::symlink(&secret, folder.join("Procfile.dev")).unwrap();
    let shown = home.run(&["init", "--print"]).exits(0).stdout;
    assert!(!shown.contains("gho_secret"), "{shown}");
    std::fs::remove_file(folder.join("Procfile.dev")).unwrap();
    std::fs::write(folder.join("Procfile.dev"), "web: run \u{202e}\u{9b}2J\n").unwrap();
    let shown = home.run(&["init", "--print"]).exits(0).stdout;
    assert!(shown.contains("\\U0000202e\\U0000009b2J"), "{shown}");
}
