//! Checkpoints: a box as it is, kept as an image.
//!
//! The engine copies the container's own layer while the box is frozen. What is mounted stays out:
//! the host's folders, volumes such as the box's own containers, and the tmpfs that holds the box's
//! token. What else is this box's alone (keys, logins, files of settings) is put aside on that
//! tmpfs for the moment, by `agentbox-ctl hold`, so it is in no layer. Whose a checkpoint is says its
//! label, and only our own are removed.

mod flatten;

use crate::create::json_line;
use crate::engine::{QUICK, SLOW, WriteHalf, limited};
use crate::exec::{Chunk, ExecControl, ExecOutput, ExecSpec};
use crate::progress::{Step, Watcher};
use crate::project::hex;
use crate::{Boxes, Error, Exec, Record, labels};
use bollard::models::ContainerConfig;
use bollard::query_parameters::{CommitContainerOptionsBuilder, RemoveImageOptionsBuilder};
use protocol::ctl::{HELD, Hold, Identity, paths};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncWriteExt;

const REPOSITORY: &str = "agentbox/checkpoint";
/// A large box takes its time, and is frozen for all of it.
const COMMIT: Duration = Duration::from_secs(600);
/// What the container's environment says about this one box, besides who it is.
const OF_THE_BOX: [&str; 3] = [protocol::ctl::ENV_UID, protocol::ctl::ENV_GID, "DISPLAY"];
/// How much a box may say while it holds its own things.
const SAID: usize = 8 * 1024;

/// How a box is to be captured.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// Checked by the caller: letters, digits, `.`, `_` and `-`.
    pub name: &'a str,
    /// What [`checkpoint_image`] gave.
    pub image: &'a str,
    /// As one layer that needs no other image.
    pub flatten: bool,
    /// Files such as `.env` are captured, too.
    pub keeps_env: bool,
}

impl Capture<'_> {
    /// Below the files of a box whose container was made anew lies an image with its logins, which what is
    /// held back for the moment does not reach.
    fn of(self, record: &Record) -> Self {
        Self { flatten: self.flatten || record.files.is_some(), ..self }
    }
}

impl Boxes {
    /// Captures a running box, which freezes meanwhile. What is to be one layer is not yet; see
    /// [`Boxes::finish_capture`].
    pub async fn capture(
        &self,
        record: &Record,
        capture: Capture<'_>,
        watcher: &Watcher,
    ) -> Result<(), Error> {
        let capture = capture.of(record);
        let step = Step::start(watcher, "Capture the box");
        let holding = self.hold(&record.container, capture.keeps_env).await?;
        let part = capture.flatten.then(|| part_of(capture.image));
        let target = part.as_deref().unwrap_or(capture.image);
        let committed = self.commit(record, capture.name, target).await;
        let released = holding.release().await;
        committed?;
        step.done();
        if let Err(error) = released {
            tracing::warn!(%error, "what {} held may be missing in it", record.name);
        }
        Ok(())
    }

    /// Makes an image of what was captured; how many bytes it adds on the engine's disk.
    pub async fn finish_capture(
        &self,
        record: &Record,
        capture: Capture<'_>,
        watcher: &Watcher,
    ) -> Result<u64, Error> {
        let capture = capture.of(record);
        if let Some(part) = capture.flatten.then(|| part_of(capture.image)).as_ref() {
            let step = Step::start(watcher, "Make one layer of it");
            let made = self.flatten(part, capture, &step).await;
            if let Err(error) = self.remove_checkpoint(part).await {
                tracing::warn!(%error, "{part} is left on the engine");
            }
            made?;
            step.done();
        }
        let whole = self.image_size(capture.image).await?.unwrap_or(0);
        let below = if capture.flatten { None } else { self.image_size(&record.image).await? };
        Ok(whole.saturating_sub(below.unwrap_or(0)))
    }

    async fn image_size(&self, image: &str) -> Result<Option<u64>, Error> {
        let request = self.engine.docker().inspect_image(image);
        match self.engine.ask("inspect an image", QUICK, request).await {
            Ok(found) => Ok(found.size.and_then(|size| u64::try_from(size).ok())),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn commit(&self, record: &Record, name: &str, image: &str) -> Result<(), Error> {
        let tag = image.rsplit(':').next().unwrap_or(image);
        let label = |key: &str, value: &str| format!("LABEL {key}=\"{value}\"");
        let forget = of_the_box().map(|name| format!("ENV {name}=\"\""));
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

    /// Has the box put aside what is its alone, until this is released.
    async fn hold(&self, container: &str, keeps_env: bool) -> Result<Holding, Error> {
        let argv = vec![paths::CTL.to_owned(), "hold".to_owned()];
        let spec = ExecSpec { argv, user: Some("0".to_owned()), ..ExecSpec::default() };
        let Exec { mut input, output, control } = self.exec_in(container, spec).await?;
        let line = json_line(&Hold { keeps_env })?;
        let sent = limited("hold what is the box's own", QUICK, input.write_all(&line)).await?;
        // One that does not read has said why.
        drop(sent);
        let mut holding =
            Holding { input, output, control, said: Vec::new(), complaint: Vec::new() };
        limited("hold what is the box's own", SLOW, holding.until_held()).await??;
        Ok(holding)
    }

    /// Removes a checkpoint of ours; false when there is none of that name.
    pub async fn remove_checkpoint(&self, image: &str) -> Result<bool, Error> {
        if is_part(image) {
            self.remove_helper(image).await?;
        }
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

    /// Whether the image of a checkpoint is still there.
    pub async fn has_image(&self, image: &str) -> Result<bool, Error> {
        Ok(self.engine.image_labels_of(image).await?.is_some())
    }
}

fn of_the_box() -> impl Iterator<Item = &'static str> {
    Identity::NAMES.into_iter().chain(OF_THE_BOX)
}

/// `agentbox-ctl hold`, under way.
struct Holding {
    input: WriteHalf,
    output: ExecOutput,
    control: ExecControl,
    said: Vec<u8>,
    complaint: Vec<u8>,
}

impl Holding {
    async fn until_held(&mut self) -> Result<(), Error> {
        while self.said != HELD.as_bytes() {
            if !self.listen().await? {
                let exit = self.control.exit_code().await?;
                return Err(self.failed(exit));
            }
        }
        Ok(())
    }

    /// The next of what it says; false when it has ended.
    async fn listen(&mut self) -> Result<bool, Error> {
        let (kept, bytes) = match self.output.next().await? {
            None => return Ok(false),
            Some(Chunk::Stdout(bytes)) => (&mut self.said, bytes),
            Some(Chunk::Stderr(bytes)) => (&mut self.complaint, bytes),
        };
        let room = SAID.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
        Ok(true)
    }

    fn failed(&self, exit: i64) -> Error {
        let stderr = protocol::text::visible(String::from_utf8_lossy(&self.complaint).trim());
        Error::InBox { command: "hold".to_owned(), exit, stderr }
    }

    /// Everything back in its place.
    async fn release(mut self) -> Result<(), Error> {
        let ending = async {
            // A box that is gone has nothing to put back.
            let _ = self.input.shutdown().await;
            while self.listen().await? {}
            match self.control.exit_code().await? {
                0 => Ok(()),
                exit => Err(self.failed(exit)),
            }
        };
        limited("put back what is the box's own", SLOW, ending).await?
    }
}

/// What the image of a new checkpoint is called. Known before it is made, so that it can be found
/// again when nobody lived to see it made.
pub fn checkpoint_image(record: &Record, name: &str) -> String {
    format!("{REPOSITORY}:{}", tag(record, name, SystemTime::now()))
}

const PART: &str = "-part";

/// What is captured before it becomes one layer.
pub fn part_of(image: &str) -> String {
    format!("{image}{PART}")
}

fn is_part(image: &str) -> bool {
    image.ends_with(PART)
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
