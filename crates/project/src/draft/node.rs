//! `package.json` and the lock files beside it.

use super::{Folder, Found};
use serde_json::Value;

/// Where the usual development servers listen.
const PORTS: &[(&str, u16)] = &[
    ("next", 3000),
    ("nuxt", 3000),
    ("astro", 4321),
    ("@angular/cli", 4200),
    ("gatsby", 8000),
    ("react-scripts", 3000),
    ("@vue/cli-service", 8080),
    ("vite", 5173),
    ("@docusaurus/core", 3000),
    ("vitepress", 5173),
    ("@storybook/cli", 6006),
];

pub(super) fn look(folder: &Folder, found: &mut Found) {
    if !folder.has("package.json") {
        return;
    }
    found.from("package.json");
    // What is no JSON is a project all the same.
    let package: Value = serde_json::from_str(folder.text("package.json")).unwrap_or_default();
    let (manager, install, lock) = manager(folder, &package);
    if let Some(lock) = lock {
        found.from(lock);
    }
    let comment = "Runs again when what is to be installed changes.";
    let input = lock.unwrap_or("package.json");
    found.install(&["install", "install-node"], comment, install, &[input]);
    let script = |name: &str| package["scripts"][name].as_str();
    let Some(name) = ["dev", "start", "serve"].into_iter().find(|name| script(name).is_some())
    else {
        return;
    };
    let line = script(name).unwrap_or_default();
    let command = format!("{manager} run {name}");
    found.serve(&["web"], "", &command, port_of(line).or_else(|| usual_port(&package)));
}

/// The program, what installs everything as it is locked, and the lock.
fn manager(folder: &Folder, package: &Value) -> (&'static str, &'static str, Option<&'static str>) {
    let named = package["packageManager"].as_str().unwrap_or_default();
    let berry = folder.has(".yarnrc.yml")
        || named.strip_prefix("yarn@").is_some_and(|version| !version.starts_with(['0', '1']));
    let yarn = if berry { "yarn install --immutable" } else { "yarn install --frozen-lockfile" };
    let locked = [
        ("pnpm", "pnpm install --frozen-lockfile", "pnpm-lock.yaml"),
        ("yarn", yarn, "yarn.lock"),
        ("bun", "bun install --frozen-lockfile", "bun.lock"),
        ("bun", "bun install --frozen-lockfile", "bun.lockb"),
        ("npm", "npm ci", "package-lock.json"),
        ("npm", "npm ci", "npm-shrinkwrap.json"),
    ];
    let is_named = |program: &str| named.split('@').next() == Some(program);
    let there = locked.iter().filter(|(_, _, lock)| folder.has(lock));
    let mut there: Vec<_> = there.collect();
    there.sort_by_key(|(program, ..)| !is_named(program));
    if let Some((program, install, lock)) = there.first() {
        return (program, install, Some(lock));
    }
    match named.split('@').next() {
        Some("pnpm") => ("pnpm", "pnpm install", None),
        Some("yarn") => ("yarn", "yarn install", None),
        Some("bun") => ("bun", "bun install", None),
        _ => ("npm", "npm install", None),
    }
}

/// `--port 4000`, `-p 4000`, `PORT=4000` in a script.
fn port_of(line: &str) -> Option<u16> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0);
    words.iter().enumerate().find_map(|(at, word)| {
        let next = || words.get(at + 1).and_then(|next| number(next));
        match *word {
            "--port" | "-p" => next(),
            word => {
                let inline = word.strip_prefix("--port=").or_else(|| word.strip_prefix("PORT="));
                inline.and_then(number)
            }
        }
    })
}

fn usual_port(package: &Value) -> Option<u16> {
    let uses = |name: &str| {
        ["dependencies", "devDependencies"].iter().any(|part| package[part][name].is_string())
    };
    PORTS.iter().find(|(name, _)| uses(name)).map(|(_, port)| *port)
}
