//! One layer out of many.
//!
//! A container is made of the captured image, never started, and its files flow from the engine
//! back into the engine as a new image: no tar on disk, no more than a few chunks in memory. What an
//! import forgets (environment, user, …) is said again.

use super::{Capture, REPOSITORY, of_the_box};
use crate::engine::{QUICK, SLOW, limited};
use crate::progress::Step;
use crate::{Boxes, Error, labels};
use bollard::models::{ContainerCreateBody, HostConfig, ImageConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, CreateImageOptionsBuilder, InspectContainerOptions,
    RemoveContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// The whole of it. A box may be many gigabytes.
const FLATTEN: Duration = Duration::from_secs(1800);

impl Boxes {
    pub(super) async fn flatten(
        &self,
        part: &str,
        capture: Capture<'_>,
        step: &Step,
    ) -> Result<(), Error> {
        let request = self.engine.docker().inspect_image(part);
        let found = self.engine.ask("inspect an image", QUICK, request).await?;
        let changes = replayed(&found.config.unwrap_or_default());
        let helper = self.helper(part).await?;
        let moved =
            limited("make one layer", FLATTEN, self.refill(&helper, capture, changes, step));
        let moved = moved.await.and_then(|done| done);
        let removed = self.remove_helper(part).await;
        moved.and(removed)
    }

    /// A container of the image that never runs.
    async fn helper(&self, part: &str) -> Result<String, Error> {
        let labels = [(labels::OWNER, &*self.owner), (labels::ROLE, labels::ROLE_HELPER)];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let body = ContainerCreateBody {
            image: Some(part.to_owned()),
            entrypoint: Some(vec!["/bin/false".to_owned()]),
            labels: Some(HashMap::from(labels)),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let options = CreateContainerOptionsBuilder::default().name(&helper_name(part)).build();
        let request = self.engine.docker().create_container(Some(options), body);
        Ok(self.engine.ask("read the captured box", SLOW, request).await?.id)
    }

    async fn refill(
        &self,
        helper: &str,
        capture: Capture<'_>,
        changes: Vec<String>,
        step: &Step,
    ) -> Result<(), Error> {
        let what = "make one layer";
        let docker = self.engine.patient(FLATTEN);
        let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(8);
        let export = async {
            let mut files = std::pin::pin!(docker.export_container(helper));
            let mut sent: u64 = 0;
            while let Some(chunk) = files.next().await {
                let before = sent >> 26;
                sent += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
                if sent >> 26 != before {
                    step.detail(format!("{} MB", sent / 1_000_000), None);
                }
                let chunk = chunk.map_err(io::Error::other);
                let ends = chunk.is_err();
                if sender.send(chunk).await.is_err() || ends {
                    break;
                }
            }
            drop(sender);
        };
        let files = stream::unfold(receiver, |mut files| async {
            files.recv().await.map(|chunk| (chunk, files))
        });
        let tag = capture.image.rsplit(':').next().unwrap_or(capture.image);
        let own = [
            label(labels::OWNER, &self.owner),
            label(labels::ROLE, labels::ROLE_CHECKPOINT),
            label(labels::CHECKPOINT, capture.name),
        ];
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            .repo(REPOSITORY)
            .tag(tag)
            .changes(changes.into_iter().chain(own).collect())
            .build();
        let body = bollard::body_try_stream(files);
        let import = async {
            let mut told = std::pin::pin!(docker.create_image(Some(options), Some(body), None));
            while let Some(line) = told.next().await {
                line.map_err(|error| Error::engine(what, error))?;
            }
            Ok(())
        };
        let ((), made) = tokio::join!(export, import);
        made
    }

    /// Removes the container of a part, also one that was left when a host was killed.
    pub(super) async fn remove_helper(&self, part: &str) -> Result<(), Error> {
        let (name, docker) = (helper_name(part), self.engine.docker());
        let request = docker.inspect_container(&name, None::<InspectContainerOptions>);
        let found = match self.engine.ask("look for a container", QUICK, request).await {
            Err(error) if error.status() == Some(404) => return Ok(()),
            found => found?,
        };
        let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
        if labels.get(labels::OWNER).map(String::as_str) != Some(&*self.owner) {
            return Err(Error::NotOurs(name));
        }
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let request = docker.remove_container(&name, Some(options));
        match self.engine.ask("remove a container", SLOW, request).await {
            Err(error) if error.status() == Some(404) => Ok(()),
            done => done,
        }
    }
}

fn helper_name(part: &str) -> String {
    format!("agentbox-flatten-{}", part.rsplit(':').next().unwrap_or(part))
}

fn label(key: &str, value: &str) -> String {
    format!("LABEL {}={}", quoted(key), quoted(value))
}

/// What an image says of itself, as lines an import takes. What is one box's alone is left out.
fn replayed(config: &ImageConfig) -> Vec<String> {
    let mut lines = Vec::new();
    for pair in config.env.iter().flatten() {
        let Some((name, value)) = pair.split_once('=') else { continue };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.chars().all(plain) && of_the_box().all(|own| own != name) {
            lines.push(format!("ENV {name}={}", quoted(value)));
        }
    }
    lines.extend(
        config.working_dir.iter().filter(|d| !d.is_empty()).map(|d| format!("WORKDIR {d}")),
    );
    lines.extend(config.user.iter().filter(|u| !u.is_empty()).map(|u| format!("USER {u}")));
    lines.extend(config.exposed_ports.iter().flatten().map(|port| format!("EXPOSE {port}")));
    let words = |name: &str, words: &Option<Vec<String>>| {
        let words = words.as_ref().filter(|words| !words.is_empty())?;
        Some(format!("{name} {}", serde_json::to_string(words).ok()?))
    };
    lines.extend(words("ENTRYPOINT", &config.entrypoint));
    lines.extend(words("CMD", &config.cmd));
    let of_the_box = [labels::BOX, labels::NAME, labels::ROLE, labels::OWNER, labels::CHECKPOINT];
    let labels = config.labels.iter().flatten();
    let kept = labels.filter(|(key, _)| !of_the_box.contains(&key.as_str()));
    lines.extend(kept.map(|(key, value)| label(key, value)));
    // A line that would become two could say anything.
    lines.retain(|line| !line.chars().any(char::is_control));
    lines
}

/// In quotes; nothing in it is taken for a variable or the end.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_import_forgets_is_said_again() {
        let config = ImageConfig {
            env: Some(vec![
                "PATH=/usr/bin:/bin".into(),
                "AGENTBOX=1".into(),
                "AGENTBOX_BOX_ID=b00000001".into(),
                "AGENTBOX_BOX_NAME=".into(),
                "AGENTBOX_HOST_WORKSPACE=/home/me/shop".into(),
                "ODD=a \"b\" $HOME \\".into(),
                "EVIL=1\nUSER root".into(),
            ]),
            working_dir: Some("/workspace".into()),
            user: Some("vscode".into()),
            entrypoint: Some(vec!["/usr/local/bin/agentbox-ctl".into(), "init".into()]),
            cmd: Some(vec![]),
            labels: Some(HashMap::from([
                (labels::BOX.to_owned(), "b00000001".to_owned()),
                ("a.b".to_owned(), "c".to_owned()),
            ])),
            ..ImageConfig::default()
        };
        assert_eq!(
            replayed(&config),
            [
                "ENV PATH=\"/usr/bin:/bin\"",
                "ENV AGENTBOX=\"1\"",
                "ENV ODD=\"a \\\"b\\\" \\$HOME \\\\\"",
                "WORKDIR /workspace",
                "USER vscode",
                "ENTRYPOINT [\"/usr/local/bin/agentbox-ctl\",\"init\"]",
                "LABEL \"a.b\"=\"c\"",
            ]
        );
    }
}
