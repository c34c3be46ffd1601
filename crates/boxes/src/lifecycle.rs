//! The life of a box after it was made: start, stop, pause, states, destroy.
//!
//! Everything may be done twice: a box that already is as wanted is a success. What is removed is
//! found by labels, so a stranger's container is never touched, whatever its name.

use crate::create::{GO, STOP_SECONDS, json_line};
use crate::engine::{QUICK, SLOW, limited};
use crate::exec::{CtlCall, Nothing};
use crate::{Boxes, Error, Record, labels, ports, repo};
use bollard::models::{ContainerStateStatusEnum, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveVolumeOptionsBuilder,
    StopContainerOptionsBuilder,
};
use futures_util::stream;
use protocol::BoxId;
use protocol::boxes::{BoxState, Endpoints};
use protocol::ctl::Go;
use std::collections::HashMap;
use std::time::Duration;

/// What a destroy did, object by object, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    pub removed: Vec<String>,
    /// What was gone already.
    pub absent: Vec<String>,
    /// What could not be removed, and why.
    pub failed: Vec<String>,
}

impl Removal {
    pub(crate) fn note(&mut self, what: &str, done: Result<(), Error>) {
        match done {
            Ok(()) => self.removed.push(what.to_owned()),
            Err(error) if error.status() == Some(404) => self.absent.push(what.to_owned()),
            Err(error) => self.failed.push(format!("{what}: {error}")),
        }
    }
}

/// How a box was put to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Paused,
    /// The engine cannot freeze a box.
    Stopped,
}

impl Boxes {
    /// Starts a stopped or paused box and gives it its token and what its daemons need.
    pub async fn start(&self, record: &Record, go: impl Into<Go>) -> Result<(), Error> {
        // The engine's own complaint about a missing mount says little.
        if let Some(repo) = record.repos().find(|repo| !repo.common_dir.is_dir()) {
            return Err(Error::RepositoryGone(repo.common_dir.clone()));
        }
        if record.egress.is_controlled() {
            // Before it has a moment to use one.
            self.refuse_networks(&record.container).await?;
        }
        match self.state_of(record).await? {
            BoxState::Paused => self.thaw(record).await?,
            _ => self.start_container(&record.container).await?,
        }
        self.release(record, go).await
    }

    /// Freezes a running box: its programs stand still and use no processor time. Where the engine
    /// cannot do that, the box is stopped.
    pub async fn pause(&self, record: &Record) -> Result<Rest, Error> {
        match self.state_of(record).await? {
            BoxState::Paused => return Ok(Rest::Paused),
            BoxState::Running => {}
            _ => return Err(Error::NotRunning),
        }
        if !self.engine.profile().can_pause {
            self.stop(record).await?;
            return Ok(Rest::Stopped);
        }
        let frozen = {
            let gate = self.gates.of(&record.container);
            let _still = gate.freeze(&self.engine).await?;
            let request = self.engine.docker().pause_container(&record.container);
            self.engine.ask("pause the box", SLOW, request).await
        };
        match frozen {
            Err(Error::Engine { why, .. }) if cannot_freeze(&why) => {
                self.stop(record).await?;
                Ok(Rest::Stopped)
            }
            // Somebody else was quicker.
            Err(error) if self.state_of(record).await? != BoxState::Paused => Err(error),
            _ => Ok(Rest::Paused),
        }
    }

    /// Lets a paused box go on. One that runs is as wanted.
    pub async fn wake(&self, record: &Record) -> Result<(), Error> {
        match self.state_of(record).await? {
            BoxState::Running => Ok(()),
            BoxState::Paused => self.thaw(record).await,
            _ => Err(Error::NotRunning),
        }
    }

    async fn thaw(&self, record: &Record) -> Result<(), Error> {
        let request = self.engine.docker().unpause_container(&record.container);
        let thawed = self.engine.ask("wake the box", SLOW, request).await;
        match thawed {
            Err(error) if self.state_of(record).await? != BoxState::Running => Err(error),
            _ => Ok(()),
        }
    }

    /// The state of one box, from the engine.
    pub async fn state_of(&self, record: &Record) -> Result<BoxState, Error> {
        let docker = self.engine.docker();
        let inspect = docker.inspect_container(&record.container, None::<InspectContainerOptions>);
        let seen = self.engine.ask("look at the box", QUICK, inspect).await.map_err(gone)?;
        Ok(match seen.state.and_then(|state| state.status) {
            Some(ContainerStateStatusEnum::RUNNING) => BoxState::Running,
            Some(ContainerStateStatusEnum::PAUSED) => BoxState::Paused,
            _ => BoxState::Stopped,
        })
    }

    /// Gives a running box its token and releases PID 1, for a container that was started by other
    /// means. Harmless when it is already released.
    pub async fn release(&self, record: &Record, go: impl Into<Go>) -> Result<(), Error> {
        self.prove_closed(record).await?;
        self.go(&record.container, &go.into()).await
    }

    pub(crate) async fn go(&self, container: &str, go: &Go) -> Result<(), Error> {
        let line = json_line(go)?;
        let call = CtlCall {
            args: vec!["go".to_owned()],
            user: Some("0".to_owned()),
            ..CtlCall::default()
        };
        let feed = stream::iter([Ok(line)]);
        limited("release the box", GO, self.ctl(container, call, feed, &mut Nothing)).await?
    }

    /// Stops a box in order. A box that is stopped or gone already is stopped.
    pub async fn stop(&self, record: &Record) -> Result<(), Error> {
        let limit = Duration::from_secs(15 + u64::from(STOP_SECONDS.unsigned_abs()));
        let options = StopContainerOptionsBuilder::default().t(STOP_SECONDS).build();
        let docker = self.engine.patient(limit);
        let request = docker.stop_container(&record.container, Some(options));
        match self.engine.ask("stop the box", limit, request).await {
            Err(error) if matches!(error.status(), Some(304 | 404)) => Ok(()),
            done => done,
        }
    }

    /// Removes the box's container, network and volumes and its pins in the host's repository. The
    /// branch with its commits stays; it is the host's.
    pub async fn destroy(&self, record: &Record) -> Result<Removal, Error> {
        let mut removal = self.sweep(&record.id).await?;
        let expected: &[&str] =
            if record.network.is_some() { &["container", "network"] } else { &["container"] };
        for kind in expected {
            let of_kind = |text: &String| text.starts_with(kind);
            let seen = removal.removed.iter().chain(&removal.absent).chain(&removal.failed);
            if !seen.into_iter().any(of_kind) {
                removal.absent.push(format!("{kind} agentbox-{}", record.name));
            }
        }
        for repo in record.repos() {
            let name = format!("refs/agentbox/{}", record.id);
            removal.note(&name, repo::unpin(&repo.common_dir, &record.id).await);
        }
        Ok(removal)
    }

    /// Removes every engine object of ours that belongs to this box id, recorded or not.
    pub async fn sweep(&self, id: &BoxId) -> Result<Removal, Error> {
        let mut removal = Removal::default();
        let docker = self.engine.docker();
        let filters = self.ours_of(id);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let request = docker.list_containers(Some(options));
        for container in self.engine.ask("list the box's containers", QUICK, request).await? {
            let name = container
                .names
                .unwrap_or_default()
                .first()
                .map(|n| n.trim_start_matches('/').to_owned());
            let id = container.id.unwrap_or_default();
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            let request = docker.remove_container(&id, Some(options));
            let done = self.engine.ask("remove the container", SLOW, request).await;
            removal.note(&format!("container {}", name.unwrap_or(id)), done);
        }
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let request = docker.list_networks(Some(options));
        for network in self.engine.ask("list the box's networks", QUICK, request).await? {
            let id = network.id.unwrap_or_default();
            let request = docker.remove_network(&id);
            let done = self.engine.ask("remove the network", SLOW, request).await;
            removal.note(&format!("network {}", network.name.unwrap_or(id)), done);
        }
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let request = docker.list_volumes(Some(options));
        let volumes = self.engine.ask("list the box's volumes", QUICK, request).await?;
        for volume in volumes.volumes.unwrap_or_default() {
            self.remove_volume(&volume.name, &mut removal).await;
        }
        for image in self.files_of(id).await? {
            self.remove_files(&image, &mut removal).await;
        }
        Ok(removal)
    }

    /// One that somebody else's container uses stays, and is told as failed.
    pub(crate) async fn remove_volume(&self, name: &str, removal: &mut Removal) {
        let options = RemoveVolumeOptionsBuilder::default().build();
        let request = self.engine.docker().remove_volume(name, Some(options));
        let done = self.engine.ask("remove the volume", SLOW, request).await;
        removal.note(&format!("volume {name}"), done);
    }

    /// Every container of this installation's boxes by the engine's id of it, in one question.
    pub async fn seen(&self) -> Result<HashMap<String, Seen>, Error> {
        let options =
            ListContainersOptionsBuilder::default().all(true).filters(&self.ours()).build();
        let request = self.engine.docker().list_containers(Some(options));
        let containers = self.engine.ask("list the boxes", QUICK, request).await?;
        let state_of = |container: bollard::models::ContainerSummary| {
            let of = container.labels?.remove(labels::BOX)?.parse().ok()?;
            let endpoints = ports::from_list(&container.ports.unwrap_or_default());
            Some((container.id?, Seen { of, state: state(container.state), endpoints }))
        };
        Ok(containers.into_iter().filter_map(state_of).collect())
    }

    /// [`Boxes::seen`], states alone. Of a box that has two containers for a while, any.
    pub async fn states(&self) -> Result<HashMap<BoxId, BoxState>, Error> {
        Ok(self.seen().await?.into_values().map(|seen| (seen.of, seen.state)).collect())
    }
}

/// A box's container as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub of: BoxId,
    pub state: BoxState,
    pub endpoints: Endpoints,
}

/// What engines say when the kernel's freezer is not theirs to use.
fn cannot_freeze(why: &str) -> bool {
    ["freezer", "cgroup", "not supported"].iter().any(|word| why.contains(word))
}

pub(crate) fn gone(error: Error) -> Error {
    if error.status() == Some(404) { Error::NoContainer } else { error }
}

/// Whatever else an engine may call it, a container that neither runs nor sleeps is stopped.
fn state(state: Option<ContainerSummaryStateEnum>) -> BoxState {
    match state {
        Some(ContainerSummaryStateEnum::RUNNING) => BoxState::Running,
        Some(ContainerSummaryStateEnum::PAUSED) => BoxState::Paused,
        _ => BoxState::Stopped,
    }
}
