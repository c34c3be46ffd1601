//! What the host remembers about a box.
//!
//! Written by [`crate::Boxes::create`], stored by the host, handed back with every later call.
//! A remote's address may contain a password the person put there: a record is never shown to a
//! box, and is written down only by way of [`Record::without_passwords`].

use crate::Channel;
use crate::repo::OWN;
use protocol::carry::Carried;
use protocol::egress::EgressMode;
use protocol::sessions::Agent;
use protocol::{BoxId, BoxName, Limits, Millis};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub id: BoxId,
    pub name: BoxName,
    /// What a person calls it, and nothing more.
    #[serde(default)]
    pub display_name: Option<String>,
    /// Counted per project from 1.
    pub index: u32,
    pub project_root: PathBuf,
    /// The folder name of the project root.
    pub project: String,
    /// What `/workspace` in the box was made from: the work tree's top, or the folder.
    pub workspace: PathBuf,
    /// The address of the engine it is on; none where nobody wrote it down.
    #[serde(default)]
    pub engine: Option<String>,
    /// The engine's id of the container.
    pub container: String,
    /// The engine's id of the box's own network; none for a box that has no network.
    #[serde(default)]
    pub network: Option<String>,
    /// How it gets out. Boxes from before there was a choice have a network.
    #[serde(default)]
    pub egress: EgressMode,
    /// What it was made from.
    pub image: String,
    /// The image that holds its files since its container was last made anew; see [`crate::Boxes::remake`].
    #[serde(default)]
    pub files: Option<String>,
    /// How the box reaches the host.
    #[serde(default)]
    pub channel: Channel,
    pub created_at: Millis,
    /// The branch the box commits to; none without a repository.
    pub branch: Option<String>,
    /// The person gave it one of theirs to work on: it is never rewritten and never deleted.
    #[serde(default)]
    pub branch_given: bool,
    /// The branch, tag or commit the person had it start from; none is what the host was at.
    #[serde(default)]
    pub from: Option<String>,
    /// Where its pushes go at a remote, when a person chose another branch.
    #[serde(default)]
    pub publish: Option<String>,
    /// The commit the box started from; none in a repository without commits.
    pub base: Option<String>,
    pub repo: Option<RepoRecord>,
    #[serde(default)]
    pub features: Features,
    /// Agents that were given a login of their own.
    #[serde(default)]
    pub logins: BTreeSet<Agent>,
    /// The variables with a login or an address that a person's terminal gave each of them, by name.
    #[serde(default)]
    pub given: BTreeMap<Agent, BTreeSet<String>>,
    /// Repositories below the workspace: folders with their own, and submodules.
    #[serde(default)]
    pub nested: Vec<NestedRepo>,
    /// Uncommitted files that did not fit on the commit the box started from, from the workspace.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Files with settings that git ignores and that were taken along, from the workspace.
    #[serde(default)]
    pub with_env: Vec<String>,
    /// Files from this computer that a person let `agentbox.yaml` copy.
    #[serde(default)]
    pub carry: Vec<Carried>,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub wishes: Wishes,
}

/// What a person said about this box that goes before the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Wishes {
    /// Names at Portless, or none.
    pub portless: Option<bool>,
    /// Agents that get nothing of the person's settings of them.
    pub isolated: BTreeSet<Agent>,
    /// Agents that need not ask before each step, or must.
    pub skip_permissions: BTreeMap<Agent, bool>,
    /// Agents that were started in it by a person: what its policy brings along for them.
    pub agents: BTreeSet<Agent>,
}

/// What a box has besides its shell. Decided when it is made: ports and powers of a container
/// cannot be changed later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Features {
    /// A screen in the browser.
    pub vnc: bool,
    pub ssh: bool,
    /// A container engine of its own, with the powers that needs.
    pub docker: bool,
}

/// A repository below the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NestedRepo {
    /// From the workspace.
    pub path: String,
    pub branch: String,
    pub base: Option<String>,
    pub repo: RepoRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RepoRecord {
    pub toplevel: PathBuf,
    /// The repository shared by all work trees; pins and the box's branch live here.
    pub common_dir: PathBuf,
    pub remotes: BTreeMap<String, Remote>,
    pub default_branch: Option<String>,
    /// `sha1` or `sha256`.
    pub object_format: String,
    /// The host's branch the box was made from, in full; none when that was only a commit.
    #[serde(default)]
    pub on: Option<String>,
}

impl Record {
    /// Every repository of the box.
    pub fn repos(&self) -> impl Iterator<Item = &RepoRecord> {
        self.repo.iter().chain(self.nested.iter().map(|nested| &nested.repo))
    }

    /// Agents that work or worked in it.
    pub fn agents(&self) -> impl Iterator<Item = Agent> {
        let known: BTreeSet<Agent> = self
            .wishes
            .agents
            .iter()
            .chain(&self.logins)
            .chain(self.given.keys())
            .copied()
            .collect();
        known.into_iter()
    }

    /// Every branch the box commits to.
    pub fn branches(&self) -> impl Iterator<Item = &String> {
        self.branch.iter().chain(self.nested.iter().map(|nested| &nested.branch))
    }

    /// The box's branch was made for it; else it is the person's, who chose it.
    pub fn owns_branch(&self) -> bool {
        !self.branch_given && self.branch.as_ref().is_some_and(|branch| branch.starts_with(OWN))
    }

    /// The record as it may be written down: passwords and tokens that stood in a remote's address
    /// are gone. They stay in the git configurations where git needs them.
    #[must_use]
    pub fn without_passwords(mut self) -> Self {
        let nested = self.nested.iter_mut().map(|nested| &mut nested.repo);
        let repos = self.repo.iter_mut().chain(nested);
        for remote in repos.flat_map(|repo| repo.remotes.values_mut()) {
            remote.fetch_url = without_password(&remote.fetch_url);
            remote.push_url = without_password(&remote.push_url);
        }
        self
    }
}

/// A web address loses all user information, because tokens are given as either half of it; other
/// addresses keep the user, who is part of where they lead.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let Some((user, host)) = authority.rsplit_once('@') else { return url.to_owned() };
    let user = user.split(':').next().unwrap_or_default();
    if scheme.starts_with("http") || user.is_empty() {
        format!("{scheme}://{host}{path}")
    } else {
        format!("{scheme}://{user}@{host}{path}")
    }
}

/// A remote as the person configured it, user information included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remote {
    pub fetch_url: String,
    pub push_url: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_before_have_a_network_and_are_not_held_back() {
        let record: Record = serde_json::from_value(serde_json::json!({
            "id": "b00000001", "name": "fix", "index": 1, "projectRoot": "/p", "project": "p",
            "workspace": "/p", "container": "c", "network": "n", "image": "i", "createdAt": 0,
            "branch": null, "base": null, "repo": null,
        }))
        .unwrap();
        assert_eq!((record.egress, record.network.as_deref()), (EgressMode::Open, Some("n")));
        assert_eq!(record.files, None);
        let locked = Record { egress: EgressMode::Locked, network: None, ..record };
        let written = serde_json::to_value(&locked).unwrap();
        assert_eq!(serde_json::from_value::<Record>(written).unwrap(), locked);
    }

    #[test]
    fn passwords_are_not_written_down() {
        for (url, kept) in [
            ("https://x-access-token:ghp_1@h/o/r.git", "https://h/o/r.git"),
            ("https://ghp_1@h/o/r.git", "https://h/o/r.git"),
            ("ssh://me:pw@h:22/r", "ssh://me@h:22/r"),
            ("git@h:o/r.git", "git@h:o/r.git"),
            ("/srv/r.git", "/srv/r.git"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(without_password(url), kept, "{url}");
        }
    }
}
