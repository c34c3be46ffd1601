//! `agentbox-ctl agent-config <agent>` (box user): merges what the host has just brought of the person's
//! settings with what the box has.
//!
//! The person's settings win; what only the box has stays. Claude's own state file is touched once: an
//! account lives in it that must not be written over later. Whatever image the box is from, its own
//! workspace is trusted: the box is the sandbox.

use crate::error::{Doing, Error, Result};
use protocol::ctl::{INCOMING, paths};
use protocol::sessions::Agent;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Tables of Codex's settings whose entries are kept one by one.
const BY_ENTRY: [&str; 4] = ["marketplaces", "plugins", "mcp_servers", "projects"];
/// Says that Claude's state file has had its turn.
const SETTLED: &str = ".local/state/agentbox/claude-settled";

pub fn run(args: &[OsString]) -> Result<i32> {
    let agent = match args {
        [agent] => agent.to_str().and_then(Agent::named),
        _ => None,
    };
    let usage = || Error::Usage("use 'agentbox-ctl agent-config claude|codex|opencode'.".into());
    let agent = agent.ok_or_else(usage)?;
    let home = std::env::home_dir().ok_or_else(|| Error::Failed("there is no home.".into()))?;
    let done = merge(agent, &home);
    let _ = fs::remove_dir_all(home.join(INCOMING));
    done?;
    Ok(protocol::exit::OK)
}

fn merge(agent: Agent, home: &Path) -> Result<()> {
    match agent {
        Agent::Claude => claude(home),
        Agent::Codex => codex(home),
        Agent::Opencode => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let doing = || format!("write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let fresh = path.with_extension("agentbox-new");
    fs::write(&fresh, text).doing(doing)?;
    fs::rename(&fresh, path).doing(doing)
}

fn claude(home: &Path) -> Result<()> {
    let settled = home.join(SETTLED);
    let Ok(incoming) = fs::read_to_string(home.join(INCOMING).join("claude.json")) else {
        return Ok(());
    };
    if settled.exists() {
        return Ok(());
    }
    let state = home.join(".claude.json");
    let object = |text: &str| match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(map)) => Some(map),
        _ => None,
    };
    let own = fs::read_to_string(&state).unwrap_or_else(|_| "{}".to_owned());
    if let (Some(mut own), Some(incoming)) = (object(&own), object(&incoming)) {
        for (key, value) in incoming {
            own.entry(key).or_insert(value);
        }
        trusted_by_claude(&mut own);
        write(&state, &serde_json::Value::Object(own).to_string())?;
    }
    write(&settled, "")
}

/// Nobody is shown around or asked about trust, unless the box says otherwise.
fn trusted_by_claude(state: &mut serde_json::Map<String, serde_json::Value>) {
    use serde_json::json;
    state.entry("hasCompletedOnboarding").or_insert(json!(true));
    let projects = state.entry("projects").or_insert_with(|| json!({}));
    let Some(projects) = projects.as_object_mut() else { return };
    let own = projects.entry(paths::WORKSPACE).or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.entry("hasTrustDialogAccepted").or_insert(json!(true));
    }
}

fn trusted_by_codex(config: &mut toml::Table) {
    use toml::{Table, Value};
    let table = || Value::Table(Table::new());
    let projects = config.entry("projects").or_insert_with(table);
    let Some(projects) = projects.as_table_mut() else { return };
    let own = projects.entry(paths::WORKSPACE).or_insert_with(table);
    if let Some(own) = own.as_table_mut() {
        own.entry("trust_level").or_insert_with(|| Value::String("trusted".into()));
    }
}

fn codex(home: &Path) -> Result<()> {
    let Ok(incoming) = fs::read_to_string(home.join(INCOMING).join("codex.toml")) else {
        return Ok(());
    };
    let path = home.join(".codex/config.toml");
    let own = fs::read_to_string(&path).unwrap_or_default();
    let bad =
        |e: toml::de::Error| Error::BadInput(format!("settings of Codex that are no TOML: {e}"));
    let mut merged = merged(incoming.parse().map_err(bad)?, own.parse().unwrap_or_default());
    trusted_by_codex(&mut merged);
    write(&path, &merged.to_string())
}

fn merged(mut host: toml::Table, own: toml::Table) -> toml::Table {
    use toml::Value::Table;
    for (key, value) in own {
        match (host.get_mut(&key), value) {
            (None, value) => {
                host.insert(key, value);
            }
            (Some(Table(theirs)), Table(ours)) if BY_ENTRY.contains(&key.as_str()) => {
                for (name, entry) in ours {
                    theirs.entry(name).or_insert(entry);
                }
            }
            _ => {}
        }
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(&dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn incoming(name: &str) -> String {
        format!("{INCOMING}/{name}")
    }

    #[test]
    fn boxes_16_36_claudes_state_is_touched_once() {
        let dir = home(&[
            (".claude.json", r#"{"projects":{"/workspace":{"hasTrustDialogAccepted":true}}}"#),
            (&incoming("claude.json"), r#"{"theme":"light","projects":{}}"#),
        ]);
        let state = || fs::read_to_string(dir.path().join(".claude.json")).unwrap();
        claude(dir.path()).unwrap();
        let first: serde_json::Value = serde_json::from_str(&state()).unwrap();
        assert_eq!(first["theme"], "light");
        assert_eq!(first["projects"]["/workspace"]["hasTrustDialogAccepted"], true);
        write(&dir.path().join(".claude.json"), "{\"theme\":\"changed\"}").unwrap();
        claude(dir.path()).unwrap();
        assert_eq!(state(), "{\"theme\":\"changed\"}");
    }

    #[test]
    fn boxes_16_37_what_only_the_box_has_stays() {
        let host: toml::Table =
            "model = 'a'\n[mcp_servers.web]\ncommand = 'npx'\n".parse().unwrap();
        let own: toml::Table = "model = 'b'\nown = 1\n[mcp_servers.x]\ncommand = 'x'\n\
            [mcp_servers.web]\ncommand = 'old'\n[projects.'/workspace']\ntrust_level = 'trusted'\n"
            .parse()
            .unwrap();
        let wanted: toml::Table = "model = 'a'\nown = 1\n[mcp_servers.web]\ncommand = 'npx'\n\
            [mcp_servers.x]\ncommand = 'x'\n[projects.'/workspace']\ntrust_level = 'trusted'\n"
            .parse()
            .unwrap();
        assert_eq!(merged(host, own), wanted);
    }

    #[test]
    fn settings_of_the_box_that_cannot_be_read_are_replaced() {
        let dir =
            home(&[(".codex/config.toml", "no [ toml"), (&incoming("codex.toml"), "a = 1\n")]);
        codex(dir.path()).unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join(".codex/config.toml")).unwrap(),
            "a = 1\n\n[projects.\"/workspace\"]\ntrust_level = \"trusted\"\n"
        );
    }

    #[test]
    fn the_workspace_is_trusted_unless_the_box_says_otherwise() {
        let dir = home(&[
            (&incoming("claude.json"), "{}"),
            (&incoming("codex.toml"), "a = 1\n"),
            (".codex/config.toml", "[projects.'/workspace']\ntrust_level = 'untrusted'\n"),
        ]);
        claude(dir.path()).unwrap();
        let state = fs::read_to_string(dir.path().join(".claude.json")).unwrap();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        assert_eq!(state["hasCompletedOnboarding"], true);
        assert_eq!(state["projects"]["/workspace"]["hasTrustDialogAccepted"], true);
        codex(dir.path()).unwrap();
        let config = fs::read_to_string(dir.path().join(".codex/config.toml")).unwrap();
        assert!(config.contains("untrusted"), "{config}");
        let mut own = serde_json::Map::new();
        own.insert(
            "projects".into(),
            serde_json::json!({"/workspace": {"hasTrustDialogAccepted": false}}),
        );
        trusted_by_claude(&mut own);
        assert_eq!(own["projects"]["/workspace"]["hasTrustDialogAccepted"], false);
    }
}
