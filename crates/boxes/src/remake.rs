//! A box's container made anew, with all its files: the one way to give it other settings of a container.
//!
//! Whether a box has a network, and what its environment says, is settled when a container is made. So a
//! box that changes sides gets a second container, from an image of the first one's files. The first one
//! stays as it is until the host has written down the second: whatever fails before that leaves the box
//! as it was, and [`Boxes::tidy`] takes away whatever the record does not name, also after a crash.
//!
//! The surprising thing: the image holds the box's own logins, because nothing may be lost. It is as
//! private as the box, goes when the box goes, and a checkpoint of such a box is always made as one layer
//! that holds only what is visible then (see [`crate::Capture::flatten`]).

use crate::container::{self, Plan};
use crate::engine::{QUICK, SLOW};
use crate::lifecycle::{Removal, gone};
use crate::progress::{Step, Watcher};
use crate::project::{hex, project_hash};
use crate::{Boxes, Error, Record, labels};
use bollard::models::{ContainerConfig, ContainerInspectResponse, Mount, MountPoint, MountType};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateContainerOptionsBuilder, InspectContainerOptions,
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder, RenameContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use protocol::BoxId;
use protocol::boxes::BoxState;
use protocol::ctl::paths;
use protocol::egress::EgressMode;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, SystemTime};

const REPOSITORY: &str = "agentbox/files";
/// A large box takes its time.
const COMMIT: Duration = Duration::from_secs(900);

/// A container made anew beside the one the box has.
#[derive(Debug, Clone)]
pub struct Remade {
    /// The box as it is from now on, once the host has written that down.
    pub record: Record,
}

impl Boxes {
    /// Makes the container of a stopped box anew, for another way out. `ctl` is today's in-box program; the
    /// box may have one from before there was a choice. To be followed by [`Boxes::tidy`] with whichever
    /// record counts from then on.
    pub async fn remake(
        &self,
        record: &Record,
        egress: EgressMode,
        ctl: Option<&Path>,
        watcher: &Watcher,
    ) -> Result<Remade, Error> {
        if self.state_of(record).await? != BoxState::Stopped {
            return Err(Error::NotStopped);
        }
        self.tidy(record).await?;
        let made = Box::pin(self.remake_beside(record, egress, ctl, watcher)).await;
        if made.is_err()
            && let Err(error) = self.tidy(record).await
        {
            tracing::warn!(%error, "what was made for {} is left on the engine", record.name);
        }
        made
    }

    async fn remake_beside(
        &self,
        record: &Record,
        egress: EgressMode,
        ctl: Option<&Path>,
        watcher: &Watcher,
    ) -> Result<Remade, Error> {
        let step = Step::start(watcher, "Keep the box's files");
        let seen = self.inspect(&record.container).await?;
        let files = self.keep_files(record).await?;
        step.done();
        let step = Step::start(watcher, "Make the container anew");
        let labels = self.box_labels(&record.id, &record.name, &project_hash(&record.project_root));
        let network = match (egress.is_controlled(), &record.network) {
            (true, _) => None,
            (false, Some(network)) => Some(network.clone()),
            (false, None) => Some(self.network(engine_name(record), labels.clone()).await?),
        };
        let plan = Plan {
            identity: record.identity(),
            image: &files,
            image_env: &seen.config.and_then(|config| config.env).unwrap_or_default(),
            mounts: mounts(seen.mounts.unwrap_or_default(), record)?,
            network: network.as_deref(),
            egress,
            features: record.features,
            limits: record.limits,
            labels,
        };
        let body = plan.body(self.engine.profile());
        let name = format!("{}-next", engine_name(record));
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let request = self.engine.docker().create_container(Some(options), body);
        let container = self.engine.ask("make the container", SLOW, request).await?.id;
        if let Some(ctl) = ctl {
            self.replace_ctl(&container, ctl).await?;
        }
        step.done();
        let files = Some(files);
        Ok(Remade { record: Record { container, network, egress, files, ..record.clone() } })
    }

    async fn inspect(&self, container: &str) -> Result<ContainerInspectResponse, Error> {
        let docker = self.engine.docker();
        let request = docker.inspect_container(container, None::<InspectContainerOptions>);
        self.engine.ask("look at the box", QUICK, request).await.map_err(gone)
    }

    /// An image of everything in the container.
    async fn keep_files(&self, record: &Record) -> Result<String, Error> {
        let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unique = hex(&Sha256::digest(moment.as_nanos().to_be_bytes()));
        let tag = format!("{}-{}", record.id, &unique[..8]);
        let role = format!("LABEL {}=\"{}\"", labels::ROLE, labels::ROLE_FILES);
        let options = CommitContainerOptionsBuilder::default()
            .container(&record.container)
            .repo(REPOSITORY)
            .tag(&tag)
            .pause(false)
            .changes(&role)
            .build();
        let docker = self.engine.patient(COMMIT);
        let request = docker.commit_container(options, ContainerConfig::default());
        self.engine.ask("keep the box's files", COMMIT, request).await.map_err(gone)?;
        Ok(format!("{REPOSITORY}:{tag}"))
    }

    async fn replace_ctl(&self, container: &str, ctl: &Path) -> Result<(), Error> {
        let program = std::fs::read(ctl).map_err(|error| Error::io("read", ctl, error))?;
        let name = paths::CTL.trim_start_matches('/');
        let pack = || {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o755);
            header.set_size(program.len() as u64);
            tar.append_data(&mut header, name, program.as_slice())?;
            tar.into_inner()
        };
        let archive = pack().map_err(|error| Error::io("pack", ctl, error))?;
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_full(archive.into());
        let request = self.engine.docker().upload_to_container(container, Some(options), body);
        self.engine.ask("copy agentbox-ctl into the box", SLOW, request).await
    }

    /// Removes what is on the engine of a box and not in its record, and gives its container its name.
    pub async fn tidy(&self, record: &Record) -> Result<(), Error> {
        let (docker, filters) = (self.engine.docker(), self.ours_of(&record.id));
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let request = docker.list_containers(Some(options));
        let containers = self.engine.ask("list the box's containers", QUICK, request).await?;
        // Nothing is removed when what the box lives in is not there: somebody else is at work.
        let current = |id: &Option<String>| id.as_deref() == Some(&record.container);
        if !containers.iter().any(|container| current(&container.id)) {
            return Err(Error::NoContainer);
        }
        for other in containers.iter().filter(|container| !current(&container.id)) {
            let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
            let id = other.id.as_deref().unwrap_or_default();
            let request = docker.remove_container(id, Some(options));
            self.engine.ask("remove the box's other container", SLOW, request).await?;
        }
        self.name_container(record).await?;
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let request = docker.list_networks(Some(options));
        for network in self.engine.ask("list the box's networks", QUICK, request).await? {
            let id = network.id.unwrap_or_default();
            if record.network.as_ref() != Some(&id) {
                let request = docker.remove_network(&id);
                self.engine.ask("remove the box's network", SLOW, request).await?;
            }
        }
        let mut removal = Removal::default();
        for image in self.files_of(&record.id).await? {
            if record.files.as_ref() != Some(&image) {
                self.remove_files(&image, &mut removal).await;
            }
        }
        for failed in removal.failed {
            tracing::warn!("{failed}");
        }
        Ok(())
    }

    async fn name_container(&self, record: &Record) -> Result<(), Error> {
        let name = engine_name(record);
        let seen = self.inspect(&record.container).await?;
        if seen.name.is_some_and(|is| is.trim_start_matches('/') == name) {
            return Ok(());
        }
        let options = RenameContainerOptionsBuilder::default().name(&name).build();
        let request = self.engine.docker().rename_container(&record.container, options);
        self.engine.ask("name the box's container", QUICK, request).await
    }

    /// Images with the files of a box whose container was made anew.
    pub(crate) async fn files_of(&self, id: &BoxId) -> Result<Vec<String>, Error> {
        let mut filters = self.ours_of(id);
        let role = format!("{}={}", labels::ROLE, labels::ROLE_FILES);
        filters.entry("label".to_owned()).or_default().push(role);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let request = self.engine.docker().list_images(Some(options));
        let images = self.engine.ask("list the images", QUICK, request).await?;
        let ours = |tag: &String| tag.starts_with(&format!("{REPOSITORY}:"));
        Ok(images.into_iter().flat_map(|image| image.repo_tags).filter(ours).collect())
    }

    pub(crate) async fn remove_files(&self, image: &str, removal: &mut Removal) {
        let options = RemoveImageOptionsBuilder::default().build();
        let request = self.engine.docker().remove_image(image, Some(options), None);
        let done = self.engine.ask("remove the image", SLOW, request).await.map(drop);
        removal.note(&format!("image {image}"), done);
    }
}

/// What the container and the network are called.
fn engine_name(record: &Record) -> String {
    format!("agentbox-{}", record.name)
}

/// The same mounts again. Whatever was mounted from the host could only be read.
fn mounts(seen: Vec<MountPoint>, record: &Record) -> Result<Vec<Mount>, Error> {
    let mut all = vec![container::run_folder()];
    for mount in seen {
        let inside = mount.destination.unwrap_or_default();
        if mount.typ.as_deref() == Some("bind") {
            let host = mount.source.unwrap_or_default();
            if mount.rw != Some(false) {
                let why = format!("{inside} in {} can be written, and should not be", record.name);
                return Err(Error::Repository { path: host.into(), why });
            }
            all.push(container::read_only(Path::new(&host), &inside)?);
        } else if let (Some("volume"), Some(name)) = (mount.typ.as_deref(), mount.name) {
            // That of the box's own engine comes with the engine.
            if inside != paths::DOCKER_DATA {
                all.push(Mount {
                    target: Some(inside),
                    source: Some(name),
                    typ: Some(MountType::VOLUME),
                    ..Mount::default()
                });
            }
        }
    }
    Ok(all)
}
