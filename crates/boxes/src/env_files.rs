//! Files with settings and credentials that git ignores, taken along when a person says so.
//!
//! Found by name anywhere in the workspace, except where tools keep their own. A link is none of
//! them: it may lead to what nobody meant to give.

use crate::Error;
use crate::repo::{self, Survey};
use protocol::ctl::{ENV_FILES, NO_ENV_FILES};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Not a secret, but as a person's own it may be ignored, too.
const ALSO: &str = "agentbox.yaml";
/// More are no settings any more.
const MOST: usize = 1000;

/// Those of a workspace that no repository has anyway: what is in a commit comes from there.
pub(crate) async fn new_to(survey: &Survey) -> Result<Vec<PathBuf>, Error> {
    let folder = survey.workspace.clone();
    let found = tokio::task::spawn_blocking(move || find(&folder)).await;
    let mut wanted = found.unwrap_or_default();
    let mut kept = Vec::new();
    // Inner ones first: a file belongs to the nearest repository.
    for found in survey.repos.iter().rev() {
        let below = |path: &PathBuf| path.starts_with(&found.path);
        let own: Vec<PathBuf> = wanted.extract_if(.., |path| below(path)).collect();
        let name = |path: &PathBuf| path.strip_prefix(&found.path).map(Path::to_owned).ok();
        let names: Vec<PathBuf> = own.iter().filter_map(name).collect();
        let there = match &found.repo.base {
            Some(base) => repo::in_the_way(&found.repo, base, &names).await?,
            None => BTreeSet::new(),
        };
        let new = |path: &PathBuf| name(path).is_some_and(|name| !there.contains(&name));
        kept.extend(own.into_iter().filter(new));
    }
    kept.append(&mut wanted);
    kept.sort();
    Ok(kept)
}

/// Relative to the workspace, in order.
pub(crate) fn find(workspace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(folder) = pending.pop() {
        let entries = std::fs::read_dir(workspace.join(&folder)).into_iter().flatten().flatten();
        for entry in entries {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let path = folder.join(&name);
            if kind.is_dir() && !NO_ENV_FILES.iter().any(|not| name == *not) {
                pending.push(path);
            } else if kind.is_file() && name.to_str().is_some_and(is_taken) {
                found.push(path);
            }
        }
        if found.len() >= MOST {
            tracing::warn!("more than {MOST} settings files in {}", workspace.display());
            break;
        }
    }
    found.sort();
    found.truncate(MOST);
    found
}

fn is_taken(name: &str) -> bool {
    let matches = |pattern: &&str| match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => name == *pattern,
    };
    ENV_FILES.iter().chain([&ALSO]).any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_04_settings_are_found_by_name() {
        for name in [".env", ".env.local", ".envrc", "appsettings.Dev.json", "secrets.toml"] {
            assert!(is_taken(name), "{name}");
        }
        for name in ["env", ".environment", "appsettings.json", "x.env", "secrets.toml.bak"] {
            assert!(!is_taken(name), "{name}");
        }
        let temp = tempfile::tempdir().unwrap();
        for name in [".env", "api/.env.test", "node_modules/.env", "api/dist/.env", "src/main.rs"] {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join(".envrc")).unwrap();
        assert_eq!(find(temp.path()), [".env", "api/.env.test"].map(PathBuf::from));
    }
}
