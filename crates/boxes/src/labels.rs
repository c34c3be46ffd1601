//! The labels that say whose an engine object is.
//!
//! Ownership is decided here and nowhere else: an object is ours when it carries our owner label.

use crate::{Boxes, Stage};
use protocol::{BoxId, BoxName};
use std::collections::HashMap;

pub const OWNER: &str = "agentbox.owner";
pub const BOX: &str = "agentbox.box";
pub const NAME: &str = "agentbox.name";
pub const PROJECT: &str = "agentbox.project";
pub const ROLE: &str = "agentbox.role";
pub const SCHEMA: &str = "agentbox.schema";
/// `true` on what several boxes use and none owns.
pub const SHARED: &str = "agentbox.shared";
/// On an image: which extra certificates it trusts ([`crate::certificates::hash`]).
pub const CERTIFICATES: &str = "agentbox.certificates";
/// On a checkpoint: its name.
pub const CHECKPOINT: &str = "agentbox.checkpoint";

/// On an image: how much is in it ([`crate::Stage`]).
pub const STAGE: &str = "agentbox.stage";

pub const ROLE_BOX: &str = "box";
pub const ROLE_DOCKER_DATA: &str = "docker-data";
pub const ROLE_IMAGE: &str = "image";
/// A container that never runs.
pub const ROLE_HELPER: &str = "helper";
pub const ROLE_CHECKPOINT: &str = "checkpoint";
/// An image that one box's container was made anew from.
pub const ROLE_FILES: &str = "files";

pub type Labels = HashMap<String, String>;

impl Boxes {
    pub(crate) fn box_labels(&self, id: &BoxId, name: &BoxName, project_hash: &str) -> Labels {
        pairs(&[
            (OWNER, &self.owner),
            (BOX, id.as_str()),
            (NAME, name.as_str()),
            (PROJECT, project_hash),
            (ROLE, ROLE_BOX),
            (SCHEMA, "1"),
        ])
    }

    pub(crate) fn image_labels(&self, stage: Stage, certificates: &str) -> Labels {
        pairs(&[
            (OWNER, &self.owner),
            (ROLE, ROLE_IMAGE),
            (SCHEMA, "1"),
            (CERTIFICATES, certificates),
            (STAGE, stage.as_str()),
        ])
    }

    /// An engine filter for all boxes of this installation.
    pub(crate) fn ours(&self) -> HashMap<String, Vec<String>> {
        let labels = vec![format!("{OWNER}={}", self.owner), format!("{ROLE}={ROLE_BOX}")];
        HashMap::from([("label".to_owned(), labels)])
    }

    /// An engine filter for everything of this installation.
    pub(crate) fn owned(&self) -> HashMap<String, Vec<String>> {
        HashMap::from([("label".to_owned(), vec![format!("{OWNER}={}", self.owner)])])
    }

    /// An engine filter for the objects of one box.
    pub(crate) fn ours_of(&self, id: &BoxId) -> HashMap<String, Vec<String>> {
        let labels = vec![format!("{OWNER}={}", self.owner), format!("{BOX}={id}")];
        HashMap::from([("label".to_owned(), labels)])
    }
}

fn pairs(list: &[(&str, &str)]) -> Labels {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
