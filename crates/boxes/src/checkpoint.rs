//! Checkpoints: a box as it is, kept as an image.
//!
//! The engine copies the container's own layer while the box is frozen. What is mounted stays out:
//! the host's folders, and the tmpfs that holds the box's token, so no token is ever in an image.
//! Whose a checkpoint is says its label, and only our own are removed.

use crate::engine::SLOW;
use crate::project::hex;
use crate::{Boxes, Error, Record, labels};
use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptionsBuilder, RemoveImageOptionsBuilder};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};

const REPOSITORY: &str = "agentbox/checkpoint";
/// A large box takes its time, and is frozen for all of it.
const COMMIT: Duration = Duration::from_secs(600);
/// What the container's environment says about this one box.
const OF_THE_BOX: [&str; 4] =
    ["AGENTBOX_BOX_ID", "AGENTBOX_BOX_NAME", protocol::ctl::ENV_UID, protocol::ctl::ENV_GID];

impl Boxes {
    /// Captures the box as an image with the name [`checkpoint_image`] gave. The caller has checked
    /// the checkpoint's name: letters, digits, `.`, `_` and `-`.
    pub async fn commit(&self, record: &Record, name: &str, image: &str) -> Result<(), Error> {
        let tag = image.rsplit(':').next().unwrap_or(image);
        let label = |key: &str, value: &str| format!("LABEL {key}=\"{value}\"");
        let forget = OF_THE_BOX.iter().map(|name| format!("ENV {name}=\"\""));
        let changes: Vec<String> = [
            label(labels::OWNER, &self.owner),
            label(labels::ROLE, labels::ROLE_CHECKPOINT),
            label(labels::CHECKPOINT, name),
        ]
        .into_iter()
        .chain(forget)
        .collect();
        let options = CommitContainerOptionsBuilder::default()
            .container(&record.container)
            .repo(REPOSITORY)
            .tag(tag)
            .pause(true)
            .changes(&changes.join("\n"))
            .build();
        let gate = self.gates.of(&record.container);
        let _frozen = gate.freeze(&self.engine).await?;
        let docker = self.engine.patient(COMMIT);
        let request = docker.commit_container(options, ContainerConfig::default());
        let done = self.engine.ask("capture the box", COMMIT, request).await;
        done.map(drop).map_err(|e| if e.status() == Some(404) { Error::NoContainer } else { e })
    }

    /// Removes a checkpoint of ours; false when there is none of that name.
    pub async fn remove_checkpoint(&self, image: &str) -> Result<bool, Error> {
        let Some(found) = self.engine.image_labels_of(image).await? else { return Ok(false) };
        let is = |key: &str, value: &str| found.get(key).is_some_and(|v| v == value);
        if !is(labels::OWNER, &self.owner) || !is(labels::ROLE, labels::ROLE_CHECKPOINT) {
            return Err(Error::NotOurs(image.to_owned()));
        }
        let options = RemoveImageOptionsBuilder::default().build();
        let request = self.engine.docker().remove_image(image, Some(options), None);
        match self.engine.ask("remove the checkpoint", SLOW, request).await {
            Err(error) if error.status() == Some(404) => Ok(false),
            done => done.map(|_| true),
        }
    }
}

/// What the image of a new checkpoint is called. Known before it is made, so that it can be found
/// again when nobody lived to see it made.
pub fn checkpoint_image(record: &Record, name: &str) -> String {
    format!("{REPOSITORY}:{}", tag(record, name, SystemTime::now()))
}

/// `<project>-<name>-<8 hex digits>`: readable, and never the tag of another checkpoint, so a new
/// one of the same name does not pull the old one's image away.
fn tag(record: &Record, name: &str, now: SystemTime) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let project: String = record.project.chars().take(30).map(word).collect();
    let project = project.trim_matches(['-', '.']);
    let project = if project.is_empty() { "project" } else { project };
    let moment = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let unique = hex(&Sha256::digest(format!("{} {moment}", record.id).as_bytes()));
    format!("{project}-{name}-{}", &unique[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(project: &str) -> Record {
        serde_json::from_value(serde_json::json!({
            "id": "b00000001", "name": "fix", "index": 1, "projectRoot": "/p", "project": project,
            "workspace": "/p", "container": "c", "network": "n", "image": "i", "createdAt": 0,
            "branch": null, "base": null, "repo": null, "channel": "socket", "publish": null,
        }))
        .unwrap()
    }

    #[test]
    fn every_folder_gives_a_valid_tag() {
        let name = "n".repeat(64);
        for project in ["shop", "My Shop!", "…", "-x", ".hidden", "a/b", &"x".repeat(300)] {
            let tag = tag(&record(project), &name, SystemTime::UNIX_EPOCH);
            assert!(tag.len() <= 128, "{tag}");
            assert!(tag.starts_with(|c: char| c.is_ascii_alphanumeric()), "{tag}");
            assert!(tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{tag}");
        }
        let at = |n| tag(&record("shop"), "a", SystemTime::UNIX_EPOCH + Duration::from_nanos(n));
        assert!(at(1).starts_with("shop-a-"));
        assert_ne!(at(1), at(2));
    }
}
