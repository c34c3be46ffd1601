//! Codex's settings.

use super::filter::{is_host_only, is_secret};
use super::tree::Tree;
use super::{INCOMING, Item};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

const AS_THEY_ARE: [&str; 4] = ["AGENTS.md", "prompts", "skills", "rules"];

pub fn items(home: &Path) -> Vec<Item> {
    let own = home.join(".codex");
    let mut tree = Tree::new(&[own.clone(), home.join(".agents")]);
    for name in AS_THEY_ARE {
        tree.add(&own.join(name), &format!(".codex/{name}"));
    }
    // One that cannot be read is left alone, and the box keeps what it has.
    let config = fs::read_to_string(own.join("config.toml")).ok();
    if let Some(config) = config.and_then(|text| text.parse::<Table>().ok()) {
        let text = filtered(config, &home.to_string_lossy()).to_string();
        tree.push(Item::text(&format!("{INCOMING}/codex.toml"), text));
    }
    tree.items()
}

fn filtered(mut config: Table, home: &str) -> Table {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words = |value: &Value| match value {
        Value::Array(words) => words.iter().filter_map(text).collect::<Vec<_>>().join(" "),
        other => text(other).unwrap_or_default(),
    };
    // Other projects are none of this box's business; its own folder has another name there.
    config.remove("projects");
    if config.get("notify").is_some_and(|notify| is_host_only(&words(notify), home)) {
        config.remove("notify");
    }
    if let Some(Value::Table(servers)) = config.get_mut("mcp_servers") {
        servers.retain(|_, server| {
            let command = server.get("command").map(&words).unwrap_or_default();
            !is_host_only(&command, home)
        });
        for server in servers.iter_mut().filter_map(|(_, server)| server.as_table_mut()) {
            for place in ["env", "http_headers"] {
                if let Some(Value::Table(values)) = server.get_mut(place) {
                    values.retain(|name, _| !is_secret(name));
                }
            }
            server.retain(|name, _| name != "bearer_token");
        }
    }
    let mut gone = Vec::new();
    if let Some(Value::Table(markets)) = config.get_mut("marketplaces") {
        markets.retain(|name, market| {
            let source = market.get("source").map(&words).unwrap_or_default();
            let stays = !is_host_only(&source, home);
            if !stays {
                gone.push(format!("@{name}"));
            }
            stays
        });
    }
    if let Some(Value::Table(plugins)) = config.get_mut("plugins") {
        plugins.retain(|name, _| !gone.iter().any(|market| name.ends_with(market.as_str())));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_37_servers_of_this_computer_stay_here() {
        let config: Table = r#"
model = "o"
notify = ["/Users/ada/notify.sh"]
[mcp_servers.mac]
command = "/Applications/X.app/run"
[mcp_servers.web]
command = "npx"
env = { WEB_TOKEN = "t", LANG = "C" }
[projects."/p/other"]
trust_level = "trusted"
[marketplaces.mine]
source = "/home/ada/market"
[plugins."a@mine"]
enabled = true
[plugins."b@theirs"]
enabled = true
"#
        .parse()
        .unwrap();
        let wanted: Table = r#"
model = "o"
[mcp_servers.web]
command = "npx"
env = { LANG = "C" }
[marketplaces]
[plugins."b@theirs"]
enabled = true
"#
        .parse()
        .unwrap();
        assert_eq!(filtered(config, "/home/ada"), wanted);
    }

    #[test]
    fn logins_and_histories_stay_here() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(".codex");
        fs::create_dir_all(own.join("sessions")).unwrap();
        fs::create_dir_all(own.join("prompts")).unwrap();
        for name in ["auth.json", "history.jsonl", "sessions/a.jsonl", "prompts/p.md", "AGENTS.md"]
        {
            fs::write(own.join(name), "x").unwrap();
        }
        let names: Vec<String> = items(dir.path()).into_iter().map(|item| item.to).collect();
        assert_eq!(names, [".codex/AGENTS.md", ".codex/prompts/p.md"]);
        fs::write(own.join("config.toml"), "not toml [").unwrap();
        assert_eq!(items(dir.path()).len(), 2);
    }
}
