//! OpenCode's settings.

use super::Item;
use super::filter::{is_secret, servers};
use super::tree::Tree;
use serde_json::Value;
use std::fs;
use std::path::Path;

const AS_THEY_ARE: [&str; 8] =
    ["AGENTS.md", "agent", "agents", "command", "commands", "mode", "modes", "themes"];
const PLACE: &str = ".config/opencode";

pub fn items(home: &Path) -> Vec<Item> {
    let own = home.join(PLACE);
    let mut tree = Tree::new(&[own.clone(), home.join(".agents")]);
    for name in AS_THEY_ARE {
        tree.add(&own.join(name), &format!("{PLACE}/{name}"));
    }
    let config = fs::read_to_string(own.join("opencode.json")).ok();
    if let Some(config) = config.and_then(|text| serde_json::from_str(&text).ok()) {
        let text = filtered(config, &home.to_string_lossy()).to_string();
        tree.push(Item::text(&format!("{PLACE}/opencode.json"), text));
    }
    tree.items()
}

fn filtered(mut config: Value, home: &str) -> Value {
    if let Some(Value::Object(listed)) = config.get_mut("mcp") {
        servers(listed, home);
    }
    if let Some(Value::Object(providers)) = config.get_mut("provider") {
        for provider in providers.values_mut() {
            strip(provider);
        }
    }
    // Plugins by path are files of this computer; those by name are packages.
    if let Some(Value::Array(plugins)) = config.get_mut("plugin") {
        let is_package = |p: &Value| p.as_str().is_some_and(|p| !p.starts_with(['/', '.', '~']));
        plugins.retain(|plugin| is_package(plugin) && !plugin.to_string().contains("file:"));
    }
    config
}

/// Takes out logins, however deep they stand.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, _| !is_secret(name));
            map.values_mut().for_each(strip);
        }
        Value::Array(all) => all.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_written_into_the_settings_stay_here() {
        let config = json!({
            "theme": "one",
            "provider": {"x": {"options": {"apiKey": "k", "baseURL": "http://l"}, "models": {}}},
            "mcp": {"m": {"command": ["/home/ada/m"]}, "n": {"command": ["npx", "n"], "environment": {"N_KEY": "k"}}},
            "plugin": ["good", "./bad.js", "file:///home/ada/p.js"],
        });
        assert_eq!(
            filtered(config, "/home/ada"),
            json!({
                "theme": "one",
                "provider": {"x": {"options": {"baseURL": "http://l"}, "models": {}}},
                "mcp": {"n": {"command": ["npx", "n"], "environment": {}}},
                "plugin": ["good"],
            })
        );
    }
}
