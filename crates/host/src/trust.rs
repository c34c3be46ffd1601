//! A person may trust one text of a project's `agentbox.yaml`: then it counts like their own file for the
//! project, and is not held to tightening.
//!
//! A box can write that file, so a yes is bound to every byte of it and to this one project. What is
//! trusted is kept as a setting in the person's own file for the project, so it is shown, undone and on
//! record like any other.

use crate::config::{leaves, own_layers, read_project_file, setting_default};
use crate::policies::project_dir;
use project::{FILE_NAME, Project};
use serde::Serialize;
use settings::Layers;
use settings::workspace::{TRUSTED, Why};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// What a project's file asks for, and whether it gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trust {
    pub file: PathBuf,
    /// Of the file as it is now.
    pub digest: String,
    /// The person trusts it as it is.
    pub trusted: bool,
    /// They trusted it as it was once, and it is another one by now.
    pub ended: bool,
    /// What it loosens when it is trusted. Its values may have anything in them.
    pub loosens: Vec<Loosened>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loosened {
    pub key: String,
    pub value: String,
    /// What it is without it; none when nothing is set.
    pub own: Option<String>,
}

/// None when the project has no file; what is wrong when it cannot be read.
pub fn trust_of(home: &Path, root: &Path) -> Result<Option<Trust>, String> {
    let Some(text) = read_project_file(root)? else { return Ok(None) };
    let parsed = Project::parse(&text);
    let Some(project) = parsed.project else {
        let all: Vec<String> = parsed.errors.iter().map(|one| one.line(FILE_NAME)).collect();
        return Err(all.join("\n"));
    };
    let own = own_layers(home, root).map_err(|e| e.to_string())?;
    let file = root.join(FILE_NAME);
    let kept_out = own.clone().trust(file.clone(), leaves(&project));
    let left = own.clone().tighten(file.clone(), leaves(&project)).into_iter();
    let loosened = left.filter(|left| {
        matches!(left.why, Why::NotFromHere | Why::Looser { .. })
            && !kept_out.iter().any(|kept| kept.key == left.key)
    });
    let loosens = loosened.map(|left| {
        let name = left.key.split('[').next().unwrap_or_default();
        let own = own.decided(name).map(|(_, value)| value).or_else(|| setting_default(name));
        Loosened { own, key: left.key, value: left.value }
    });
    let trusted = is_trusted(&own, home, root, &text);
    let ended = said(&own, home, root).is_some() && !trusted;
    Ok(Some(Trust { file, digest: digest(&text), trusted, ended, loosens: loosens.collect() }))
}

/// Only the file for the very project counts: one for a folder around it is about another file.
fn said(own: &Layers, home: &Path, root: &Path) -> Option<String> {
    own.said_in(&project_dir(home, root).join("config.yaml"), TRUSTED)
}

pub(crate) fn is_trusted(own: &Layers, home: &Path, root: &Path, text: &str) -> bool {
    said(own, home, root).is_some_and(|said| said == digest(text))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::project_settings;

    #[test]
    fn a_trusted_file_loosens_until_it_changes() {
        let (home, top) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (home, root) = (home.path(), top.path().join("shop"));
        let inner = root.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        let yaml = "defaults: {box: {withEnv: true, pidsLimit: 9000, vnc: false}, approvals: {quiet: 22:00-07:00}}\n";
        let write = |root: &Path, text: &str| std::fs::write(root.join(FILE_NAME), text).unwrap();
        assert_eq!(trust_of(home, &root).unwrap(), None);
        write(&root, yaml);
        write(&inner, yaml);
        let with_env = |root: &Path| project_settings(home, root).unwrap().boxes.with_env;
        let trust = trust_of(home, &root).unwrap().unwrap();
        assert!(!trust.trusted && !trust.ended && !with_env(&root));
        let keys: Vec<_> =
            trust.loosens.iter().map(|l| (l.key.as_str(), l.own.as_deref())).collect();
        assert_eq!(keys, [("box.withEnv", Some("false")), ("box.pidsLimit", Some("8192"))]);

        let own = project_dir(home, &root);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(
            own.join("config.yaml"),
            format!("workspace: {{trusted: {}}}\n", trust.digest),
        )
        .unwrap();
        assert!(trust_of(home, &root).unwrap().unwrap().trusted && with_env(&root));
        let settings = project_settings(home, &root).unwrap();
        assert_eq!((settings.boxes.pids_limit, settings.boxes.vnc), (Some(9000), false));
        assert_eq!(settings.approvals.quiet, None);
        // The same text in a project inside is another file.
        assert!(!with_env(&inner));
        for changed in [format!("{yaml} "), yaml.replace("9000", "9001"), format!("# x\n{yaml}")] {
            write(&root, &changed);
            let trust = trust_of(home, &root).unwrap().unwrap();
            assert!(!trust.trusted && trust.ended && !with_env(&root), "{changed}");
        }
        write(&root, yaml);
        assert!(with_env(&root), "the very same text again");
        write(&root, "defaults: [");
        assert!(trust_of(home, &root).is_err() && !with_env(&root));
    }
}
