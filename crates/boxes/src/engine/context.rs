//! The docker CLI's current context, read from its files.
//!
//! The files belong to another program: whatever cannot be read or understood means “no context”.

use super::Environment;
use crate::project::hex;
use sha2::{Digest, Sha256};

/// The name of the context other programs on this computer use; none when an address is used instead.
pub fn context_name(environment: &Environment) -> Option<String> {
    if environment.docker_host.is_some() {
        return None;
    }
    Some(named(environment).unwrap_or_else(|| "default".to_owned()))
}

fn folder(environment: &Environment) -> std::path::PathBuf {
    environment.docker_config.clone().unwrap_or_else(|| environment.home.join(".docker"))
}

fn named(environment: &Environment) -> Option<String> {
    let name = match &environment.docker_context {
        Some(name) => name.clone(),
        None => string_at(&read(&folder(environment).join("config.json"))?, &["currentContext"])?,
    };
    Some(name).filter(|name| !name.is_empty() && name != "default")
}

/// The address of the current context; none for the default one, which has no file.
pub(super) fn current(environment: &Environment) -> Option<String> {
    let (folder, name) = (folder(environment), named(environment)?);
    let id = hex(&Sha256::digest(name.as_bytes()));
    let meta = read(&folder.join("contexts/meta").join(id).join("meta.json"))?;
    string_at(&meta, &["Endpoints", "docker", "Host"])
}

fn read(path: &std::path::Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn string_at(value: &serde_json::Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(value, |at, key| at.get(key))?;
    found.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn write_context(home: &Path, name: &str, host: &str) {
        let id = hex(&Sha256::digest(name.as_bytes()));
        let folder = home.join(".docker/contexts/meta").join(id);
        std::fs::create_dir_all(&folder).unwrap();
        let meta = serde_json::json!({"Name": name, "Endpoints": {"docker": {"Host": host}}});
        std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
    }

    #[test]
    fn the_current_context_is_found_by_the_hash_of_its_name() {
        let home = tempfile::tempdir().unwrap();
        write_context(home.path(), "colima", "unix:///c.sock");
        write_context(home.path(), "other", "unix:///o.sock");
        let config = home.path().join(".docker/config.json");
        let mut environment = Environment::at(home.path());
        assert_eq!(current(&environment), None);

        assert_eq!(context_name(&environment).as_deref(), Some("default"));

        std::fs::write(&config, r#"{"currentContext":"colima"}"#).unwrap();
        assert_eq!(context_name(&environment).as_deref(), Some("colima"));
        assert_eq!(current(&environment).as_deref(), Some("unix:///c.sock"));

        environment.docker_context = Some("other".to_owned());
        assert_eq!(current(&environment).as_deref(), Some("unix:///o.sock"));
    }

    #[test]
    fn default_missing_and_broken_contexts_are_none() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".docker")).unwrap();
        let environment = Environment::at(home.path());
        for text in [r#"{"currentContext":"default"}"#, r#"{"currentContext":"gone"}"#, "{", "[]"] {
            std::fs::write(home.path().join(".docker/config.json"), text).unwrap();
            assert_eq!(current(&environment), None, "{text}");
        }
    }
}
