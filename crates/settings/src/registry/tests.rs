use super::*;
use crate::Settings;
use std::collections::BTreeSet;

/// The keys the typed model takes below this one, by what it says of a key it does not know.
fn below(section: &str) -> Vec<String> {
    let text = match section {
        "" => "nobody-knows: 1".to_owned(),
        section => {
            let words: Vec<&str> = section.split('.').collect();
            format!("{}: {{nobody-knows: 1{}}}", words.join(": {"), "}".repeat(words.len() - 1))
        }
    };
    let why = serde_norway::from_str::<Settings>(&text).unwrap_err().to_string();
    let listed = why.split("expected ").nth(1).unwrap_or_default();
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_table_has_every_key_of_the_model_and_no_other() {
    let mut model = BTreeSet::new();
    for section in below("") {
        let place = if section == "integrations" { "integrations.*" } else { &section };
        let asked = place.replace('*', "notion");
        for key in below(&asked) {
            model.insert(format!("{place}.{key}"));
        }
    }
    let table: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    assert_eq!(table.len(), KEYS.len());
    assert_eq!(table, model);
}

fn one_line(key: &str, value: &str) -> String {
    let words: Vec<&str> = key.split('.').collect();
    format!("{}: {value}{}", words.join(": {"), "}".repeat(words.len() - 1))
}

#[test]
fn defaults_are_those_of_the_model() {
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        key.kind.parse(key.default).unwrap();
        let name = key.name.replace('*', "notion");
        let (given, ..) = crate::layers::parse(&one_line(&name, key.default)).unwrap();
        let mut plain = Settings::default();
        // These are nothing in the model, and mean what the table says.
        match key.name {
            "box.pidsLimit" => plain.boxes.pids_limit = Some(PROCESSES),
            "claude.dangerouslySkipPermissions" => {
                plain.claude.dangerously_skip_permissions = Some(plain.claude.skips_permissions());
            }
            "codex.dangerouslySkipPermissions" => {
                plain.codex.dangerously_skip_permissions = Some(true);
            }
            "opencode.dangerouslySkipPermissions" => {
                plain.opencode.dangerously_skip_permissions = Some(true);
            }
            name if name.starts_with("integrations.") => {
                plain.integrations.insert("notion".into(), crate::Integration::default());
            }
            _ => {}
        }
        assert_eq!(given, plain, "{}", key.name);
    }
}

#[test]
fn every_key_says_what_it_is_for() {
    for key in KEYS {
        assert!(key.about.ends_with('.') && !key.about.contains('|'), "{}", key.name);
        assert!(key.scope == Scope::Project || key.workspace == Workspace::Never, "{}", key.name);
    }
}

/// What decides about a box's requests, or names things of this computer, is no repository's.
#[test]
fn a_repository_decides_no_policy() {
    for key in KEYS {
        let section = key.name.split('.').next().unwrap();
        let policy =
            ["integrations", "approvals", "relay", "secrets", "engine", "gh", "proxy", "update"];
        if policy.contains(&section)
            || ["box.image", "box.extraCas", "box.withEnv"].contains(&key.name)
        {
            assert_eq!(key.workspace, Workspace::Never, "{}", key.name);
        }
    }
}

#[test]
fn keys_are_found_by_name_and_nearly() {
    assert_eq!(find("integrations.notion.enabled").unwrap().name, "integrations.*.enabled");
    assert!(find("integrations.notion").is_none() && find("box").is_none());
    assert!(find("integrations..enabled").is_none() && find("integrations.a b.enabled").is_none());
    assert!(find("box.memory.more").is_none());
    assert_eq!(meant("box.memroy"), Some("box.memory"));
    assert_eq!(meant("memory"), Some("box.memory"));
    assert_eq!(meant("boxes.cpu"), Some("box.cpus"));
    assert_eq!(meant("cloud.region"), None);
}

#[test]
fn what_may_be_misspelt_is_not_passed_over() {
    for foreign in ["cloud.region", "box.hetznerLocation", "schema"] {
        assert!(may_be_foreign(foreign), "{foreign}");
    }
    for mistake in [
        "box.memroy",
        "claude.logn",
        "aprovals.mode",
        "integrations.notion.nwe",
        "claude.share",
        "<<",
    ] {
        assert!(!may_be_foreign(mistake), "{mistake}");
    }
}

/// What a command reads by itself decides nothing about a box.
#[test]
fn a_command_line_sets_no_policy() {
    for key in KEYS.iter().filter(|key| key.by_command) {
        let section = key.name.split('.').next().unwrap();
        assert!(["engine", "attach", "code", "shell"].contains(&section), "{}", key.name);
        assert!(key.scope == Scope::Project && key.holds == Holds::Now, "{}", key.name);
    }
}

/// What lets boxes do more is known as such in every way it can be typed; less is never more.
#[test]
fn more_is_told_from_less() {
    let loosens =
        |name: &str, from: Option<&str>, to: Option<&str>| find(name).unwrap().loosens(from, to);
    assert!(loosens("approvals.mode", Some("ask"), Some("safe")));
    assert!(loosens("approvals.mode", None, Some(" safe ")), "nothing known is the tightest");
    assert!(!loosens("approvals.mode", Some("safe"), Some("ask")));
    assert!(!loosens("approvals.mode", Some("safe"), Some("safe")));
    for yes in ["true", "YES", "1", "On"] {
        assert!(
            loosens("integrations.notion.autoApproveWrites", Some("false"), Some(yes)),
            "{yes}"
        );
    }
    assert!(!loosens("box.withEnv", Some("true"), Some("off")));
    // Taken out, and nobody knows what holds then.
    assert!(loosens("box.withEnv", Some("false"), None));
    assert!(!loosens("box.withEnv", Some("true"), None), "there is nothing looser");
    assert!(!loosens("box.memory", Some("1g"), Some("8g")), "no right of a person's");
}

/// Else every change would count as one that lets boxes do more.
#[test]
fn what_allows_more_can_be_told_from_less() {
    let told: Vec<&Key> = KEYS.iter().filter(|key| !key.allows.is_empty()).collect();
    assert!(told.len() >= 9);
    for key in told {
        assert!(matches!(key.kind, Kind::Bool | Kind::OneOf(_)), "{}", key.name);
        assert!(key.allows.ends_with('.'), "{}", key.name);
    }
    for key in KEYS.iter().filter(|key| key.name.starts_with("approvals.")) {
        let free = ["timeoutSeconds", "quiet", "whenNobodyWatches"];
        let is_free = free.iter().any(|word| key.name.ends_with(word));
        assert!(is_free || key.at_terminal || !key.allows.is_empty(), "{}", key.name);
    }
}
