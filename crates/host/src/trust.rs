//! A person may trust one text of a project's `agentbox.yaml`: then it counts like their own file for the
//! project, and is not held to tightening.
//!
//! A box can write that file, so a yes is bound to every byte of it and to this one project. What is
//! trusted is kept as a setting in the person's own file for the project, so it is shown, undone and on
//! record like any other.

use crate::config::{leaves, own_layers, read_project_file, setting_default};
use crate::project_dirs::project_dir;
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
    /// It asks for something that needs trust.
    pub needed: bool,
    /// All that it sets when it is trusted. Its values may have anything in them.
    pub sets: Vec<Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asked {
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
    // What is shown is what counts later, not what the file seems to say.
    let mut with = own.clone();
    for left in with.trust(file.clone(), leaves(&project)) {
        if let Why::Invalid(why) = left.why {
            return Err(format!("defaults.{}: {why}", left.key));
        }
    }
    let without = own.clone().tighten(file.clone(), leaves(&project));
    let all = with.of_workspace();
    let name = |key: &str| key.split('[').next().unwrap_or_default().to_owned();
    let needed = without.iter().any(|left| {
        matches!(left.why, Why::NotFromHere | Why::Looser { .. })
            && all.iter().any(|(key, _)| *key == name(&left.key))
    });
    let sets = all.into_iter().map(|(key, value)| {
        let own = own.decided(&key).map(|(_, value)| value).or_else(|| setting_default(&key));
        Asked { key, value, own }
    });
    let trusted = is_trusted(&own, home, root, &text);
    let ended = said(&own, home, root).is_some() && !trusted;
    let sets = sets.collect();
    Ok(Some(Trust { file, digest: digest(&text), trusted, ended, needed, sets }))
}

/// Only the file for the very project counts: one for a folder around it is about another file.
fn said(own: &Layers, home: &Path, root: &Path) -> Option<String> {
    own.said_in(&project_dir(home, root).join("config.yaml"), TRUSTED)
}

pub(crate) fn is_trusted(own: &Layers, home: &Path, root: &Path, text: &str) -> bool {
    said(own, home, root).is_some_and(|said| said == digest(text))
}

/// What tells one text from another.
pub fn digest(text: &str) -> String {
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
        let keys: Vec<_> = trust.sets.iter().map(|l| (l.key.as_str(), l.own.as_deref())).collect();
        let wanted = [("box.withEnv", "false"), ("box.pidsLimit", "8192"), ("box.vnc", "true")];
        assert_eq!(keys, wanted.map(|(key, own)| (key, Some(own))));
        assert!(trust.needed);

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
        // What the person says of the project themselves wins.
        let yes = std::fs::read_to_string(own.join("config.yaml")).unwrap();
        std::fs::write(own.join("config.yaml"), format!("{yes}box: {{pidsLimit: 50}}\n")).unwrap();
        assert_eq!(project_settings(home, &root).unwrap().boxes.pids_limit, Some(50));
        std::fs::write(own.join("config.yaml"), yes).unwrap();
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

    #[test]
    fn nothing_is_set_that_was_not_shown() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (home, root) = (home.path(), root.path());
        let look = |yaml: &str| {
            std::fs::write(root.join(FILE_NAME), yaml).unwrap();
            trust_of(home, root)
        };
        // One key in two spellings: the bad one hid the good one.
        for twin in ["approvals.mode: x", "approvals.mode: ask"] {
            let yaml = format!(
                "defaults:\n  box: {{pidsLimit: 9000}}\n  approvals: {{mode: safe}}\n  {twin}\n"
            );
            assert!(look(&yaml).is_err(), "{yaml}");
        }
        let long = "[".repeat(5000);
        assert!(look(&format!("defaults: {{box: {{extraCas: '{long}'}}}}\n")).is_err());
        // What is as it is already is listed, too: the yes holds for it when that changes.
        let same = look("defaults: {claude: {login: true}, box: {withEnv: true}}\n").unwrap();
        let keys: Vec<_> = same.unwrap().sets.into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["claude.login", "box.withEnv"]);
        assert!(!look("defaults: {box: {vnc: false}}\n").unwrap().unwrap().needed);
    }
}
