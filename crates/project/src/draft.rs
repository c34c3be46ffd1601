//! A first `agentbox.yaml` for a project, from the files that lie in its folder.
//!
//! Pure: the files' names and texts come in. They may be anybody's, so what of them gets into the draft
//! is a known word, a checked name or a quoted string; nothing of them is run.

mod compose;
mod languages;
mod node;
mod others;
mod variables;

use crate::UnitName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What people call the schema beside the file. There is no address of it on the net.
const SCHEMA: &str = "agentbox.schema.json";

/// The files at the top of a project that say something: names, and the texts of those worth reading.
#[derive(Debug, Clone, Default)]
pub struct Folder(BTreeMap<String, String>);

impl Folder {
    /// Names of files somebody should look for.
    pub const NAMES: &'static [&'static str] = &[
        "package.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        ".yarnrc.yml",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "bun.lock",
        "bun.lockb",
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
        "uv.lock",
        "poetry.lock",
        "pdm.lock",
        "Pipfile.lock",
        "requirements.txt",
        "manage.py",
        "go.mod",
        "go.sum",
        "Gemfile",
        "Gemfile.lock",
        "config.ru",
        "composer.json",
        "composer.lock",
        "mix.exs",
        "mix.lock",
        "compose.yaml",
        "compose.yml",
        "docker-compose.yaml",
        "docker-compose.yml",
        "Makefile",
        "Procfile",
        "Procfile.dev",
        ".env.example",
        ".env.sample",
        ".env.template",
        ".env",
        SCHEMA,
    ];

    /// Whether a file's text is worth reading; of the others only the name counts.
    pub fn is_read(name: &str) -> bool {
        let read = ["package.json", "Makefile", "Procfile", "Procfile.dev", "pyproject.toml"];
        read.contains(&name) || compose::FILES.contains(&name)
    }

    pub fn add(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), text);
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn first<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.has(name))
    }
}

/// A file to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    /// What it was made from.
    pub from: Vec<String>,
    pub services: Vec<String>,
    pub tasks: Vec<String>,
}

/// One task or service of a draft.
#[derive(Debug, Clone, Default)]
struct Unit {
    name: String,
    /// For people; its lines show whatever stands in them.
    comment: String,
    command: String,
    /// Instead of a command.
    container: Option<Container>,
    needs: Vec<String>,
    /// A task that need not run again while these are the same.
    inputs: Vec<String>,
    port: Option<u16>,
    /// A service that waits for somebody to start it.
    waits: bool,
}

/// A container of the box's own engine.
#[derive(Debug, Clone, Default)]
struct Container {
    image: String,
    /// Of the box and of the container.
    ports: Vec<(u16, u16)>,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

/// What is found on the way.
#[derive(Debug, Default)]
struct Found {
    from: Vec<String>,
    tasks: Vec<Unit>,
    services: Vec<Unit>,
    /// Commented lines at the end.
    notes: Vec<String>,
}

impl Found {
    fn from(&mut self, name: &str) {
        if !self.from.iter().any(|one| one == name) {
            self.from.push(name.to_owned());
        }
    }

    /// A name nobody has yet: the first that is free.
    fn free(&self, wanted: &[&str]) -> Option<String> {
        let taken: BTreeSet<&str> =
            self.tasks.iter().chain(&self.services).map(|unit| unit.name.as_str()).collect();
        let fits = |name: &&str| !taken.contains(*name) && name.parse::<UnitName>().is_ok();
        wanted.iter().copied().find(fits).map(str::to_owned)
    }

    /// Whether a service has this port of the box already.
    fn listens(&self, port: u16) -> bool {
        let published = |unit: &Unit| {
            unit.container.iter().flat_map(|one| &one.ports).any(|(host, _)| *host == port)
        };
        self.services.iter().any(|unit| unit.port == Some(port) || published(unit))
    }

    /// What installs things, once per change of these files.
    fn install(&mut self, names: &[&str], comment: &str, command: &str, inputs: &[&str]) {
        let Some(name) = self.free(names) else { return };
        self.tasks.push(Unit {
            name,
            comment: comment.to_owned(),
            command: command.to_owned(),
            inputs: inputs.iter().map(|one| (*one).to_owned()).collect(),
            ..Unit::default()
        });
    }

    fn serve(&mut self, names: &[&str], comment: &str, command: &str, port: Option<u16>) {
        let Some(name) = self.free(names) else { return };
        let needs = self.tasks.iter().map(|task| task.name.clone()).collect();
        self.services.push(Unit {
            name,
            comment: comment.to_owned(),
            command: command.to_owned(),
            needs,
            port,
            ..Unit::default()
        });
    }
}

/// Looks at a folder and writes what fits it. What comes out is in order.
pub fn draft(folder: &Folder) -> Draft {
    let mut found = Found::default();
    others::env_file(folder, &mut found);
    node::look(folder, &mut found);
    languages::look(folder, &mut found);
    others::look(folder, &mut found);
    compose::look(folder, &mut found);
    Draft {
        text: write(&found, folder.has(SCHEMA)),
        services: found.services.iter().map(|unit| unit.name.clone()).collect(),
        tasks: found.tasks.iter().map(|unit| unit.name.clone()).collect(),
        from: found.from,
    }
}

fn write(found: &Found, has_schema: bool) -> String {
    let mut text = header(has_schema);
    if !found.from.is_empty() {
        let _ = writeln!(text, "# Made from {}.", found.from.join(", "));
    }
    text.push_str("\n# Run to their end, in the order of needs, when a box starts.\n");
    match found.tasks.as_slice() {
        [] => text.push_str(
            "# tasks:\n#   install:\n#     command: make deps\n#     run_once: {inputs: [Makefile]}\n",
        ),
        tasks => {
            text.push_str("tasks:\n");
            for unit in tasks {
                write_unit(&mut text, unit);
            }
        }
    }
    text.push_str("\n# Run as long as the box does; the one with expose is the box's web app.\n");
    match found.services.as_slice() {
        [] => text.push_str(
            "# services:\n#   web:\n#     command: ./serve --port 3000\n#     ready_when: {port: 3000}\n#     expose: {port: 3000}\n",
        ),
        services => {
            text.push_str("services:\n");
            let is_app = |unit: &Unit| unit.port.is_some() && unit.container.is_none();
            let exposed = services.iter().position(is_app);
            for (at, unit) in services.iter().enumerate() {
                write_unit(&mut text, unit);
                write_service(&mut text, unit, exposed == Some(at));
            }
        }
    }
    for note in &found.notes {
        text.push('\n');
        for line in note.lines() {
            let _ = writeln!(text, "# {line}");
        }
    }
    text.push_str(
        "\n# Limits for boxes of this project. They can only be tighter than your own settings.\n# defaults:\n#   box: {memory: 4g, cpus: 2}\n",
    );
    text
}

/// Editors look for the schema where the first line says. A line that leads nowhere is an error to them,
/// so without the schema it only says how to have both.
fn header(has_schema: bool) -> String {
    let mode = format!("# yaml-language-server: $schema={SCHEMA}\n");
    let about = "# What boxes of this project run; agentbox validate checks it. Everything here is a guess: keep what\n# is right. The box image has Node and npm; whatever else a command needs, a task must install first.\n";
    if has_schema {
        return format!("{mode}{about}");
    }
    format!(
        "{about}# For your editor: agentbox validate --schema > {SCHEMA}, and this as the first line:\n#   {mode}"
    )
}

fn write_unit(text: &mut String, unit: &Unit) {
    for line in unit.comment.lines() {
        let _ = writeln!(text, "  # {line}");
    }
    let _ = writeln!(text, "  {}:", quoted(&unit.name));
    match &unit.container {
        Some(container) => write_container(text, container),
        None => {
            let _ = writeln!(text, "    command: {}", quoted(&unit.command));
        }
    }
    if !unit.needs.is_empty() {
        let _ = writeln!(text, "    needs: {}", quoted_list(&unit.needs));
    }
    if !unit.inputs.is_empty() {
        let _ = writeln!(text, "    run_once: {{inputs: {}}}", quoted_list(&unit.inputs));
    }
}

fn write_container(text: &mut String, container: &Container) {
    let Container { image, ports, env, args } = container;
    if ports.is_empty() && env.is_empty() && args.is_empty() {
        let _ = writeln!(text, "    image: {}", quoted(image));
        return;
    }
    let _ = writeln!(text, "    image:\n      name: {}", quoted(image));
    if !ports.is_empty() {
        let ports: Vec<String> =
            ports.iter().map(|(host, container)| format!("{host}:{container}")).collect();
        let _ = writeln!(text, "      ports: {}", quoted_list(&ports));
    }
    if !env.is_empty() {
        text.push_str("      env:\n");
        for (name, value) in env {
            let _ = writeln!(text, "        {}: {}", quoted(name), quoted(value));
        }
    }
    if !args.is_empty() {
        let _ = writeln!(text, "      args: {}", quoted_list(args));
    }
}

fn quoted_list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    format!("[{}]", all.join(", "))
}

fn write_service(text: &mut String, unit: &Unit, exposed: bool) {
    if unit.waits {
        text.push_str("    autostart: false\n");
    }
    match unit.port {
        Some(port) => {
            let _ = writeln!(text, "    ready_when: {{port: {port}}}");
            if exposed {
                let _ = writeln!(text, "    expose: {{port: {port}}}");
            }
        }
        None if unit.container.is_some() => {}
        None => text.push_str("    # ready_when: {port: 3000}\n    # expose: {port: 3000}\n"),
    }
}

/// A string that is one however YAML is read.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ./_-=".contains(c);
    // A dot alone may begin a number, such as .inf.
    let word =
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') || text.starts_with("./");
    let other = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let lower = text.to_ascii_lowercase();
    if word
        && text.chars().all(plain)
        && !text.ends_with(' ')
        && !other.contains(&lower.as_str())
        && text.parse::<f64>().is_err()
    {
        return text.to_owned();
    }
    // What JSON writes in quotes, YAML reads in quotes. Nothing in it hides.
    let mut quoted = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        if protocol::text::visible(c.encode_utf8(&mut [0; 4])).chars().eq([c]) {
            quoted.push(c);
        } else {
            let _ = write!(quoted, "\\U{:08x}", u32::from(c));
        }
    }
    quoted
}

#[cfg(test)]
mod tests;
