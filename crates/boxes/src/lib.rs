//! Boxes: everything that turns a host folder into a running box on a container engine.
//!
//! The crate talks to an engine with a Docker API and to git; it stores nothing and asks nobody.
//! The host keeps the [`Record`] that [`Boxes::create`] returns and hands it back for every later
//! call. What belongs to us on an engine is decided by labels only, never by a name: a container
//! called `agentbox-x` without our owner label is a stranger's and is left alone.
//!
//! ```no_run
//! # use agentbox_boxes as boxes;
//! # async fn example(spec: boxes::CreateSpec, image: boxes::ImageSpec) -> Result<(), boxes::Error> {
//! let engine = boxes::Engine::connect(None).await?;
//! let boxes = boxes::Boxes::new(engine, "install-id");
//! let watch = boxes::progress::silent();
//! let tag = boxes.ensure_image(&image, watch.clone()).await?;
//! let record = boxes.create(boxes::CreateSpec { image: tag, ..spec }, watch).await?;
//! boxes.stop(&record).await?;
//! # Ok(()) }
//! ```
//!
//! The surprising thing: a box's commits never travel through a shared `.git`. The host's object
//! stores are mounted read-only, the objects a box needs are pinned by refs below
//! `refs/agentbox/<id>/`, and what the box makes comes back as a bundle ([`Boxes::export_bundle`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod answer;
pub mod bundle;
pub mod carry;
pub mod certificates;
mod channel;
mod checkpoint;
mod container;
mod copy;
pub mod create;
mod docker;
mod editor;
pub mod engine;
mod env_files;
mod environment;
mod error;
pub mod events;
pub mod exec;
mod export;
mod files;
mod freeze;
mod identity;
pub mod image;
pub mod inventory;
mod labels;
mod leftovers;
mod lifecycle;
mod limits;
mod look;
mod ports;
mod preview;
pub mod progress;
pub mod project;
mod record;
mod remake;
pub mod repo;
mod resync;
pub mod room;
mod sessions;
mod subnets;
mod wall;

pub use certificates::{Certificate, host_certificates};
pub use channel::{Bridge, Channel};
pub use checkpoint::{Capture, checkpoint_image, part_of};
pub use create::{CreateSpec, box_ids, unpin_all};
pub use engine::{Engine, Environment, Kind, Profile};
pub use error::Error;
pub use events::{Change, EngineEvent};
pub use exec::{Chunk, Exec, ExecSpec, Size};
pub use image::{DOCKERFILE, ImageSpec, Stage};
pub use leftovers::{Leftover, LeftoverKind};
pub use lifecycle::{Removal, Rest, Seen};
pub use limits::possible as possible_limits;
pub use look::{Details, Disk, Process, Sample};
pub use preview::{Preview, preview};
pub use progress::{Watch, Watcher};
pub use record::{Features, NestedRepo, Record, Remote, RepoRecord, Wishes};
pub use remake::Remade;
pub use repo::{CommittedFile, Start, committed_file};

use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// The boxes of one installation on one engine. Cheap to clone.
#[derive(Clone)]
pub struct Boxes {
    engine: Engine,
    /// The installation's id; the value of the owner label on everything made here.
    owner: Arc<str>,
    /// One image build at a time: a second create waits for the first one's image.
    building: Arc<tokio::sync::Mutex<()>>,
    /// No box is frozen while a command is started in it.
    gates: Arc<freeze::Gates>,
    /// Creates under way, those being taken back among them.
    sagas: TaskTracker,
}

impl Boxes {
    pub fn new(engine: Engine, owner: &str) -> Self {
        Self {
            engine,
            owner: owner.into(),
            building: Arc::default(),
            gates: Arc::default(),
            sagas: TaskTracker::new(),
        }
    }

    /// Waits until no create is under way: what was called off has then been taken back.
    pub async fn settled(&self) {
        self.sagas.close();
        self.sagas.wait().await;
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What [`Record::engine`] of a box on this engine says.
    pub fn address(&self) -> String {
        self.engine.profile().address.to_string()
    }

    /// Whether a box can be on this engine; not when it is written down on another.
    pub fn may_have(&self, record: &Record) -> bool {
        record.engine.as_ref().is_none_or(|at| *at == self.address())
    }
}
