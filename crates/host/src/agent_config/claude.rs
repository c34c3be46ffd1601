//! Claude Code's settings.

use super::filter::{is_host_only, servers, without_secrets};
use super::tree::Tree;
use super::{INCOMING, Item};
use protocol::ctl::BOX_USER;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Files and folders of `~/.claude` that go as they are.
const AS_THEY_ARE: [&str; 8] = [
    "CLAUDE.md",
    "agents",
    "commands",
    "skills",
    "plugins",
    "output-styles",
    "workflows",
    "keybindings.json",
];
/// Settings that name a program and are nothing but that.
const PROGRAMS: [&str; 5] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "otelHeadersHelper",
];
/// Of `~/.claude.json`: how it looks. The rest is account, history and other projects.
const LOOKS: [&str; 4] = ["theme", "editorMode", "verbose", "autoCompactEnabled"];

pub fn items(home: &Path, workspace: &Path) -> Vec<Item> {
    let own = home.join(".claude");
    let mut tree = Tree::new(&[own.clone(), home.join(".agents")]);
    for name in AS_THEY_ARE {
        tree.add(&own.join(name), &format!(".claude/{name}"));
    }
    let memory = own.join("projects").join(encoded(workspace)).join("memory");
    tree.add(&memory, ".claude/projects/-workspace/memory");
    let mut items = tree.items();
    let host = home.to_string_lossy();
    for item in &mut items {
        if is_registry(&item.to) {
            let text = String::from_utf8_lossy(&item.bytes);
            let from = format!("{host}/.claude/plugins/");
            let text = text.replace(&from, &format!("/home/{BOX_USER}/.claude/plugins/"));
            item.bytes = text.into_bytes();
        }
    }
    if let Some(settings) = object(&own.join("settings.json")) {
        let settings = filtered(settings, &host);
        items.push(Item::text(".claude/settings.json", Value::Object(settings).to_string()));
    }
    if let Some(mut looks) = object(&home.join(".claude.json")) {
        looks.retain(|key, _| LOOKS.contains(&key.as_str()));
        let text = Value::Object(looks).to_string();
        items.push(Item::text(&format!("{INCOMING}/claude.json"), text));
    }
    items
}

/// How Claude names a project's folder.
pub(crate) fn encoded(workspace: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    workspace.to_string_lossy().chars().map(plain).collect()
}

fn is_registry(to: &str) -> bool {
    let below = to.strip_prefix(".claude/plugins/");
    let is_json = |name: &str| Path::new(name).extension().is_some_and(|e| e == "json");
    below.is_some_and(|name| !name.contains('/') && is_json(name))
}

fn object(path: &Path) -> Option<Map<String, Value>> {
    let text = fs::read_to_string(path).ok()?;
    match serde_json::from_str(&text).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

fn filtered(mut settings: Map<String, Value>, home: &str) -> Map<String, Value> {
    settings.retain(|key, _| !PROGRAMS.contains(&key.as_str()));
    let is_own = |value: &Value| {
        value.get("command").and_then(Value::as_str).is_some_and(|c| is_host_only(c, home))
    };
    if settings.get("statusLine").is_some_and(is_own) {
        settings.remove("statusLine");
    }
    without_secrets(settings.get_mut("env"));
    if let Some(Value::Object(listed)) = settings.get_mut("mcpServers") {
        servers(listed, home);
    }
    if let Some(Value::Object(events)) = settings.get_mut("hooks") {
        for matchers in events.values_mut() {
            let Some(matchers) = matchers.as_array_mut() else { continue };
            for matcher in matchers.iter_mut() {
                if let Some(Value::Array(leaves)) = matcher.get_mut("hooks") {
                    leaves.retain(|leaf| !is_own(leaf));
                }
            }
            matchers.retain(|m| m["hooks"].as_array().is_none_or(|leaves| !leaves.is_empty()));
        }
        events.retain(|_, matchers| matchers.as_array().is_none_or(|m| !m.is_empty()));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn boxes_16_36_hooks_of_this_computer_stay_here() {
        let settings = json!({
            "model": "opus",
            "apiKeyHelper": "/usr/bin/key",
            "env": {"EDITOR": "vi", "ANTHROPIC_API_KEY": "x"},
            "statusLine": {"type": "command", "command": "/home/ada/line.sh"},
            "hooks": {
                "Stop": [{"hooks": [{"type": "command", "command": "/home/ada/bin/done"}]}],
                "PreToolUse": [{"matcher": "Bash", "hooks": [
                    {"type": "command", "command": "node /home/ada/x.js"},
                    {"type": "command", "command": "./check.sh"},
                ]}],
            },
            "mcpServers": {"a": {"command": "/Applications/A"}, "b": {"command": "npx", "env": {"B_TOKEN": "t"}}},
        });
        let Value::Object(settings) = settings else { unreachable!() };
        let kept = Value::Object(filtered(settings, "/home/ada"));
        assert_eq!(
            kept,
            json!({
                "model": "opus",
                "env": {"EDITOR": "vi"},
                "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
                    {"type": "command", "command": "./check.sh"},
                ]}]},
                "mcpServers": {"b": {"command": "npx", "env": {}}},
            })
        );
    }

    #[test]
    fn only_what_is_listed_goes() {
        let dir = home(&[
            (".claude/CLAUDE.md", "be brief"),
            (".claude/commands/fix.md", "fix"),
            (".claude/.credentials.json", "{\"t\":1}"),
            (".claude/history.jsonl", "secret words"),
            (".claude/projects/-p-shop/memory/MEMORY.md", "remember"),
            (".claude/projects/-p-shop/a.jsonl", "talk"),
            (".claude/projects/-p-other/memory/MEMORY.md", "other"),
            (
                ".claude.json",
                "{\"theme\":\"light\",\"oauthAccount\":{\"e\":1},\"primaryApiKey\":\"k\"}",
            ),
        ]);
        let plugins = dir.path().join(".claude/plugins");
        fs::create_dir_all(&plugins).unwrap();
        let registry = format!("{{\"a\":\"{}/.claude/plugins/cache/a\"}}", dir.path().display());
        fs::write(plugins.join("installed_plugins.json"), registry).unwrap();
        let items = items(dir.path(), Path::new("/p/shop"));
        let text = |to: &str| {
            let item = items.iter().find(|item| item.to == to);
            item.map(|item| String::from_utf8(item.bytes.clone()).unwrap())
        };
        let mut names: Vec<&str> = items.iter().map(|item| item.to.as_str()).collect();
        names.sort_unstable();
        let incoming = format!("{INCOMING}/claude.json");
        let mut wanted = vec![
            ".claude/CLAUDE.md",
            ".claude/commands/fix.md",
            ".claude/plugins/installed_plugins.json",
            ".claude/projects/-workspace/memory/MEMORY.md",
            &incoming,
        ];
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        assert_eq!(text(&incoming).unwrap(), "{\"theme\":\"light\"}");
        let registry = text(".claude/plugins/installed_plugins.json").unwrap();
        assert_eq!(registry, "{\"a\":\"/home/vscode/.claude/plugins/cache/a\"}");
    }
}
