//! Which box images there are, for a person who wonders where the disk went.

use crate::engine::{QUICK, SLOW};
use crate::image::REPOSITORY;
use crate::{Boxes, Error, ImageSpec, Stage};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, DownloadFromContainerOptionsBuilder, ListImagesOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use protocol::Millis;
use protocol::ctl::paths;
use std::collections::HashMap;
use std::io::Read;

/// The list of versions is a few lines; whoever sends more is cut off.
const VERSIONS: usize = 64 * 1024;

/// One image, made or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// None for one that says nothing about it.
    pub stage: Option<Stage>,
    pub tag: String,
    /// What a new box would use; others are left from earlier versions.
    pub current: bool,
    pub image: Option<Details>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    pub size: u64,
    pub made_at: Millis,
    /// The agents in it, name and version.
    pub versions: Vec<(String, String)>,
}

impl Boxes {
    /// The image of every stage, made or not, and then the old ones, newest first.
    pub async fn inventory(&self, of: impl Fn(Stage) -> ImageSpec) -> Result<Vec<Made>, Error> {
        let filters = HashMap::from([("reference".to_owned(), vec![REPOSITORY.to_owned()])]);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let request = self.engine.docker().list_images(Some(options));
        let mut images = self.engine.ask("list the images", QUICK, request).await?;
        images.sort_by_key(|image| std::cmp::Reverse(image.created));
        let mut rows = Vec::new();
        for stage in Stage::ALL {
            let tag = of(stage).tag()?;
            rows.push(Made { stage: Some(stage), tag, current: true, image: None });
        }
        for image in images {
            let details = Details {
                size: u64::try_from(image.size).unwrap_or(0),
                made_at: u64::try_from(image.created).unwrap_or(0) * 1000,
                versions: Vec::new(),
            };
            let stage = Stage::of_image(&image.labels);
            for tag in image.repo_tags {
                match rows.iter_mut().find(|row| row.tag == tag) {
                    Some(row) => row.image = Some(details.clone()),
                    None => {
                        let image = Some(details.clone());
                        rows.push(Made { stage, tag, current: false, image });
                    }
                }
            }
        }
        for row in &mut rows {
            if let (Some(Stage::Full), true, Some(image)) = (row.stage, row.current, &mut row.image)
            {
                image.versions = self.versions(&row.tag).await?;
            }
        }
        Ok(rows)
    }

    /// Read out of the image by way of a container that never runs.
    async fn versions(&self, tag: &str) -> Result<Vec<(String, String)>, Error> {
        let docker = self.engine.docker();
        let body = ContainerCreateBody {
            image: Some(tag.to_owned()),
            labels: Some(HashMap::from([(
                crate::labels::OWNER.to_owned(),
                self.owner.to_string(),
            )])),
            ..ContainerCreateBody::default()
        };
        let request = docker.create_container(None::<CreateContainerOptions>, body);
        let container = self.engine.ask("look into an image", SLOW, request).await?.id;
        let read = self.read_file(&container, paths::VERSIONS).await;
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let request = docker.remove_container(&container, Some(options));
        self.engine.ask("remove a container", SLOW, request).await?;
        let text = read?;
        let pair = |line: &str| {
            let (name, version) = line.split_once(' ')?;
            Some((protocol::text::visible(name), protocol::text::visible(version)))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    async fn read_file(&self, container: &str, path: &str) -> Result<String, Error> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut answer = self.engine.docker().download_from_container(container, Some(options));
        let mut archive = Vec::new();
        let what = "read a file of an image";
        let wait = async {
            while let Some(chunk) = answer.next().await {
                archive.extend_from_slice(&chunk.map_err(|error| Error::engine(what, error))?);
                if archive.len() > VERSIONS {
                    return Err(Error::TooLarge { limit: VERSIONS as u64 });
                }
            }
            Ok(())
        };
        crate::engine::limited(what, QUICK, wait).await??;
        let mut text = String::new();
        let mut entries = tar::Archive::new(archive.as_slice());
        let first = entries.entries().ok().and_then(|mut entries| entries.next()?.ok());
        if let Some(mut file) = first {
            let _ = file.read_to_string(&mut text);
        }
        Ok(text)
    }
}
