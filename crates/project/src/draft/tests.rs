use super::*;
use crate::{Project, RunOnce};

mod compose;

/// The project that comes out for these files.
fn drafted(files: &[(&str, &str)]) -> (Draft, Project) {
    let mut folder = Folder::default();
    for (name, text) in files {
        assert!(Folder::NAMES.contains(name), "{name} is not looked for");
        assert!(text.is_empty() || Folder::is_read(name), "{name} is not read");
        folder.add(name, (*text).to_owned());
    }
    let draft = draft(&folder);
    let parsed = Project::parse(&draft.text);
    assert!(parsed.errors.is_empty(), "{:?}\n{}", parsed.errors, draft.text);
    assert!(parsed.warnings.is_empty(), "{:?}\n{}", parsed.warnings, draft.text);
    // What is commented out is in order, too.
    let commented: String = draft.text.lines().filter_map(|line| line.strip_prefix("# ")).fold(
        String::new(),
        |mut text, line| {
            let is_yaml = line.starts_with(' ') || (line.ends_with(':') && !line.contains(' '));
            if is_yaml {
                text.push_str(line);
                text.push('\n');
            }
            text
        },
    );
    let others = Project::parse(&commented);
    assert!(others.errors.is_empty(), "{:?}\n{commented}", others.errors);
    (draft, parsed.project.unwrap())
}

fn command(project: &Project, task: &str) -> String {
    match &project.task(task).unwrap_or_else(|| panic!("no task {task}")).command {
        crate::Command::Shell(line) => line.clone(),
        crate::Command::Argv(words) => words.join(" "),
    }
}

fn runs(project: &Project, service: &str) -> (String, Option<u16>) {
    let service = project.service(service).unwrap_or_else(|| panic!("no service {service}"));
    match &service.run {
        crate::Run::Command(crate::Command::Shell(line)) => {
            (line.clone(), service.expose.map(|expose| expose.port))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_folder_has_an_empty_project_with_examples() {
    let (draft, project) = drafted(&[]);
    assert_eq!(project, Project::default());
    assert!(draft.text.contains("# services:") && draft.from.is_empty());
}

#[test]
fn editors_are_told_of_a_schema_that_is_there() {
    let mode = "# yaml-language-server: $schema=agentbox.schema.json\n";
    let (draft, _) = drafted(&[("agentbox.schema.json", "")]);
    assert!(draft.text.starts_with(mode) && draft.from.is_empty(), "{}", draft.text);
    let (draft, _) = drafted(&[]);
    assert!(draft.text.contains("agentbox validate --schema > agentbox.schema.json"));
    assert!(!draft.text.lines().any(|line| format!("{line}\n") == mode), "{}", draft.text);
}

#[test]
fn each_lock_has_its_manager() {
    let package = (
        "package.json",
        "{\"scripts\": {\"dev\": \"next dev\"}, \"dependencies\": {\"next\": \"15\"}}",
    );
    for (lock, install, run) in [
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile", "pnpm run dev"),
        ("yarn.lock", "yarn install --frozen-lockfile", "yarn run dev"),
        ("package-lock.json", "npm ci", "npm run dev"),
        ("bun.lock", "bun install --frozen-lockfile", "bun run dev"),
    ] {
        let (draft, project) = drafted(&[package, (lock, "")]);
        assert_eq!(command(&project, "install"), install);
        assert_eq!(
            project.task("install").unwrap().run_once,
            Some(RunOnce::Inputs(vec![lock.to_owned()]))
        );
        assert_eq!(runs(&project, "web"), (run.to_owned(), Some(3000)));
        assert_eq!(project.service("web").unwrap().needs.len(), 1);
        assert_eq!(draft.from, ["package.json", lock]);
    }
    let (_, project) = drafted(&[package, ("yarn.lock", ""), (".yarnrc.yml", "")]);
    assert_eq!(command(&project, "install"), "yarn install --immutable");
    let named =
        "{\"packageManager\": \"pnpm@9.1.0\", \"scripts\": {\"start\": \"node . --port 4000\"}}";
    let (_, project) = drafted(&[("package.json", named)]);
    assert_eq!(command(&project, "install"), "pnpm install");
    assert_eq!(runs(&project, "web"), ("pnpm run start".to_owned(), Some(4000)));
    let (_, project) =
        drafted(&[("package.json", named), ("package-lock.json", ""), ("pnpm-lock.yaml", "")]);
    assert_eq!(command(&project, "install"), "pnpm install --frozen-lockfile");
}

#[test]
fn a_server_of_no_known_port_is_not_exposed() {
    let (draft, project) = drafted(&[("package.json", "{\"scripts\": {\"dev\": \"node x\"}}")]);
    assert_eq!(runs(&project, "web").1, None);
    assert!(draft.text.contains("    # expose: {port: 3000}"));
}

#[test]
fn other_languages_fetch_what_they_need() {
    let install = |files: &[(&str, &str)]| command(&drafted(files).1, "install");
    assert_eq!(install(&[("Cargo.toml", ""), ("Cargo.lock", "")]), "cargo fetch --locked");
    assert_eq!(install(&[("Cargo.toml", "")]), "cargo fetch");
    assert_eq!(install(&[("go.mod", ""), ("go.sum", "")]), "go mod download");
    assert_eq!(install(&[("pyproject.toml", ""), ("uv.lock", "")]), "uv sync --frozen");
    assert_eq!(
        install(&[("pyproject.toml", "[tool.poetry]\n")]),
        "poetry install --no-interaction"
    );
    assert!(install(&[("requirements.txt", "")]).ends_with("pip install -r requirements.txt"));
    assert_eq!(install(&[("Gemfile", ""), ("Gemfile.lock", "")]), "bundle install");
    let (_, project) = drafted(&[("requirements.txt", ""), ("manage.py", "")]);
    let expected = ".venv/bin/python manage.py runserver 127.0.0.1:8000";
    assert_eq!(runs(&project, "web"), (expected.to_owned(), Some(8000)));
}

#[test]
fn several_things_in_one_folder_have_names_of_their_own() {
    let (draft, project) = drafted(&[
        (
            "package.json",
            "{\"scripts\": {\"dev\": \"vite\"}, \"devDependencies\": {\"vite\": \"6\"}}",
        ),
        ("package-lock.json", ""),
        ("Cargo.toml", ""),
        ("pyproject.toml", ""),
        ("manage.py", ""),
        (".env.example", ""),
        (".env", ""),
        ("compose.yaml", "services: {db: {image: 'postgres:17'}}\n"),
        ("Makefile", "setup:\n\tx\ndev: setup\n\ty\n"),
    ]);
    assert_eq!(draft.tasks, ["env", "install", "install-python", "install-rust"]);
    assert_eq!(draft.services, ["web", "web-python", "db"]);
    assert_eq!(command(&project, "env"), "test -e .env || cp .env.example .env");
    assert_eq!(project.exposed().unwrap().0.name.as_str(), "web");
    assert!(draft.text.contains("# carry:\n#   - {src: ./.env, dest: /workspace/.env"));
}

#[test]
fn make_and_process_lists_fill_in() {
    let makefile = "CC := cc\n.PHONY: dev\ndeps: a b\n\tx\ndev serve: deps\n\ty\n# run:\n";
    let (_, project) = drafted(&[("Makefile", makefile)]);
    assert_eq!(command(&project, "setup"), "make deps");
    assert_eq!(runs(&project, "web").0, "make dev");
    let (draft, project) = drafted(&[
        (
            "Procfile",
            "web: bundle exec puma -C config/puma.rb\n# no: x\nworker: \"a: b\" {{x}}\nbad name: y\nsshd: z\n",
        ),
        ("Gemfile", ""),
    ]);
    assert_eq!(draft.services, ["web", "worker"]);
    assert_eq!(runs(&project, "worker").0, "\"a: b\" {{x}}");
}

#[test]
fn whatever_the_files_say_the_draft_is_in_order() {
    for text in [
        "{",
        "[]",
        "null",
        "{\"scripts\": {\"dev\": 5}}",
        "{\"scripts\": {\"dev\": \"x --port 99999\"}, \"packageManager\": \"a\\nb\"}",
    ] {
        drafted(&[("package.json", text)]);
    }
    for line in [
        "web: a\u{1b}[2J\u{202e}",
        "web: true",
        "web: .inf",
        "web: .5",
        "web: ...",
        "web: 5",
        "web: - x",
        "web: 'x",
        "web: a #b",
        "web: \t|",
    ] {
        let (_, project) = drafted(&[("Procfile", line)]);
        assert_eq!(runs(&project, "web").0, line[4..].trim(), "{line}");
    }
}
