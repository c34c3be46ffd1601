//! What of ours is on the engine, whoever remembers it.
//!
//! Ours is what carries our owner label. A container called `agentbox-x` without it is a stranger's
//! and is never listed here.

use crate::engine::{QUICK, SLOW};
use crate::lifecycle::Removal;
use crate::{Boxes, Error, labels};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder, RemoveImageOptionsBuilder,
};
use protocol::BoxId;
use std::collections::HashMap;

/// One object of this installation on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub kind: LeftoverKind,
    /// The engine's id; for an image or a volume its name.
    pub key: String,
    pub name: String,
    /// The box it belongs to; none for images that are nobody's alone.
    pub of: Option<BoxId>,
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    Container,
    Network,
    Volume,
    /// A captured state of a box.
    Checkpoint,
    /// An image boxes are made from.
    Image,
    /// The files of one box; see [`crate::Boxes::remake`].
    Files,
}

impl LeftoverKind {
    pub fn as_str(self) -> &'static str {
        match self {
            LeftoverKind::Container => "container",
            LeftoverKind::Network => "network",
            LeftoverKind::Volume => "volume",
            LeftoverKind::Checkpoint => "checkpoint",
            LeftoverKind::Image | LeftoverKind::Files => "image",
        }
    }
}

type Found = HashMap<String, String>;

fn of_box(labels: &Found) -> Option<BoxId> {
    labels.get(labels::BOX)?.parse().ok()
}

/// Several boxes share it, so it is nobody's to leave behind.
fn is_shared(labels: &Found) -> bool {
    labels.get(labels::SHARED).is_some_and(|shared| shared == "true")
}

impl Boxes {
    /// Everything of this installation, containers first: nothing else can go while they are there.
    pub async fn everything(&self) -> Result<Vec<Leftover>, Error> {
        let mut all = self.our_containers().await?;
        all.extend(self.our_networks().await?);
        all.extend(self.our_volumes().await?);
        all.extend(self.our_images().await?);
        Ok(all)
    }

    async fn our_containers(&self) -> Result<Vec<Leftover>, Error> {
        let options =
            ListContainersOptionsBuilder::default().all(true).filters(&self.owned()).build();
        let request = self.engine.docker().list_containers(Some(options));
        let found = self.engine.ask("list the containers", QUICK, request).await?;
        let leftover = |container: bollard::models::ContainerSummary| {
            let key = container.id?;
            let name = container.names.unwrap_or_default().into_iter().next();
            let name = name.map_or_else(|| key.clone(), |n| n.trim_start_matches('/').to_owned());
            let of = of_box(&container.labels.unwrap_or_default());
            Some(Leftover { kind: LeftoverKind::Container, key, name, of, bytes: None })
        };
        Ok(found.into_iter().filter_map(leftover).collect())
    }

    async fn our_networks(&self) -> Result<Vec<Leftover>, Error> {
        let options = ListNetworksOptionsBuilder::default().filters(&self.owned()).build();
        let request = self.engine.docker().list_networks(Some(options));
        let found = self.engine.ask("list the networks", QUICK, request).await?;
        let leftover = |network: bollard::models::Network| {
            let key = network.id?;
            let name = network.name.unwrap_or_else(|| key.clone());
            let of = of_box(&network.labels.unwrap_or_default());
            Some(Leftover { kind: LeftoverKind::Network, key, name, of, bytes: None })
        };
        Ok(found.into_iter().filter_map(leftover).collect())
    }

    async fn our_volumes(&self) -> Result<Vec<Leftover>, Error> {
        let options = ListVolumesOptionsBuilder::default().filters(&self.owned()).build();
        let request = self.engine.docker().list_volumes(Some(options));
        let found = self.engine.ask("list the volumes", QUICK, request).await?;
        let found = found.volumes.unwrap_or_default().into_iter();
        let kept = found.filter(|volume| !is_shared(&volume.labels));
        Ok(kept
            .map(|volume| Leftover {
                kind: LeftoverKind::Volume,
                key: volume.name.clone(),
                of: of_box(&volume.labels),
                name: volume.name,
                bytes: None,
            })
            .collect())
    }

    async fn our_images(&self) -> Result<Vec<Leftover>, Error> {
        let options = ListImagesOptionsBuilder::default().filters(&self.owned()).build();
        let request = self.engine.docker().list_images(Some(options));
        let found = self.engine.ask("list the images", QUICK, request).await?;
        let tags = |image: bollard::models::ImageSummary| {
            let role = image.labels.get(labels::ROLE).map(String::as_str);
            let kind = match role {
                Some(labels::ROLE_CHECKPOINT) => Some(LeftoverKind::Checkpoint),
                Some(labels::ROLE_IMAGE) => Some(LeftoverKind::Image),
                Some(labels::ROLE_FILES) => Some(LeftoverKind::Files),
                _ => None,
            };
            let of = of_box(&image.labels).filter(|_| kind == Some(LeftoverKind::Files));
            let bytes = u64::try_from(image.size).ok();
            // Whatever is built on ours inherits our labels and is still its maker's.
            let ours = |tag: &String| tag.starts_with("agentbox/") || tag.starts_with("agentbox-");
            let tags = image.repo_tags.into_iter().filter(ours);
            tags.filter_map(move |tag| {
                let of = of.clone();
                Some(Leftover { kind: kind?, key: tag.clone(), name: tag, of, bytes })
            })
            .collect::<Vec<_>>()
        };
        Ok(found.into_iter().flat_map(tags).collect())
    }

    /// Removes one object that [`Boxes::everything`] listed.
    pub async fn remove_leftover(&self, leftover: &Leftover) -> Removal {
        let mut removal = Removal::default();
        let docker = self.engine.docker();
        let what = format!("{} {}", leftover.kind.as_str(), leftover.name);
        let done = match leftover.kind {
            LeftoverKind::Container => {
                let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
                let request = docker.remove_container(&leftover.key, Some(options));
                self.engine.ask("remove the container", SLOW, request).await
            }
            LeftoverKind::Network => {
                let request = docker.remove_network(&leftover.key);
                self.engine.ask("remove the network", SLOW, request).await
            }
            LeftoverKind::Volume => {
                self.remove_volume(&leftover.key, &mut removal).await;
                return removal;
            }
            LeftoverKind::Checkpoint | LeftoverKind::Image | LeftoverKind::Files => {
                let options = RemoveImageOptionsBuilder::default().build();
                let request = docker.remove_image(&leftover.key, Some(options), None);
                self.engine.ask("remove the image", SLOW, request).await.map(drop)
            }
        };
        removal.note(&what, done);
        removal
    }
}
