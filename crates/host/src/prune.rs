//! What is left behind, and its removal.
//!
//! Whose something is says its label on the engine, or our own trail: a name proves nothing. When
//! the engine cannot be asked, nothing is known and nothing is done.

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use boxes::{Boxes, ImageSpec, Leftover, LeftoverKind, Record, Removal, Stage};
use protocol::BoxId;
use protocol::control::ControlError;
use protocol::looking::{Pruned, Remnant};
use relay::Entry;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

type Reply<T> = Result<T, ControlError>;

enum Thing {
    /// A box its engine has no more.
    Record(Box<Record>),
    OnEngine(Leftover),
    Folder(PathBuf),
    /// In a repository, of a box that is gone.
    Pins(PathBuf, BoxId),
}

struct Found {
    kind: &'static str,
    name: String,
    why: &'static str,
    bytes: Option<u64>,
    thing: Thing,
}

impl Found {
    fn key(&self) -> String {
        match &self.thing {
            Thing::Record(record) => format!("record {}", record.id),
            Thing::OnEngine(leftover) => format!("{} {}", self.kind, leftover.key),
            Thing::Folder(_) | Thing::Pins(..) => format!("{} {}", self.kind, self.name),
        }
    }

    fn shown(&self) -> Remnant {
        Remnant {
            key: self.key(),
            kind: self.kind.to_owned(),
            name: self.name.clone(),
            why: self.why.to_owned(),
            bytes: self.bytes,
        }
    }
}

impl Api {
    /// What is left behind; with `only`, what of it has these keys is removed.
    pub async fn prune(&self, all: bool, only: Option<Vec<String>>) -> Reply<Pruned> {
        let boxes = self.core.engine().await?;
        let found = self.core.remnants(&boxes, all).await?;
        let mut pruned =
            Pruned { found: found.iter().map(Found::shown).collect(), ..Pruned::default() };
        let Some(only) = only else { return Ok(pruned) };
        for found in found.iter().filter(|found| only.contains(&found.key())) {
            let removal = self.core.remove_remnant(&boxes, found).await?;
            pruned.removed.extend(removal.removed);
            pruned.failed.extend(removal.failed);
        }
        if !pruned.removed.is_empty() || !pruned.failed.is_empty() {
            let entry = Entry {
                box_id: None,
                kind: "pruned",
                summary: format!("{} leftovers removed", pruned.removed.len()),
                data: serde_json::json!({ "removed": pruned.removed, "failed": pruned.failed }),
            };
            self.core.store.record(entry).await?;
            self.core.send_status();
        }
        Ok(pruned)
    }
}

impl Core {
    async fn remnants(&self, boxes: &Boxes, all: bool) -> Reply<Vec<Found>> {
        // Before the engine is asked: what is made meanwhile is not among them.
        let records: Vec<Record> = self.state().boxes.values().map(|k| k.record.clone()).collect();
        let there = boxes.states().await.map_err(control_error)?;
        // A box of another engine is not here, and is not gone.
        let here = boxes.address();
        let is_here = |record: &&Record| record.engine.as_ref() == Some(&here);
        let missing = records.iter().filter(|record| !there.contains_key(&record.id));
        let missing = missing.filter(is_here);
        let mut found: Vec<Found> = missing
            .map(|record| Found {
                kind: "record",
                name: record.name.to_string(),
                why: "its engine has it no more",
                bytes: None,
                thing: Thing::Record(Box::new(record.clone())),
            })
            .collect();
        if all {
            let mut known: HashSet<BoxId> = records.iter().map(|r| r.id.clone()).collect();
            known.extend(self.store.unfinished().await?.into_iter().map(|(id, _)| id));
            let on_engine = boxes.everything().await.map_err(control_error)?;
            // Again, because a box may have been made while the engine was asked.
            known.extend(self.state().boxes.keys().cloned());
            known.extend(self.state().reserved.values().cloned());
            found.extend(self.on_engine(on_engine, &known, &records).await?);
            found.extend(self.folders(&known));
            found.extend(self.pins(&known, &records).await?);
        }
        Ok(found)
    }

    async fn on_engine(
        &self,
        all: Vec<Leftover>,
        known: &HashSet<BoxId>,
        records: &[Record],
    ) -> Reply<Vec<Found>> {
        let mut kept: HashSet<String> = records.iter().map(|r| r.image.clone()).collect();
        kept.extend(self.store.checkpoints().await?.into_iter().map(|view| view.id));
        kept.extend(self.store.unfinished_captures().await?);
        kept.extend(self.settings.boxes.image.clone());
        let current = self.current_images();
        let why = |leftover: &Leftover| match leftover.kind {
            LeftoverKind::Container
            | LeftoverKind::Network
            | LeftoverKind::Volume
            | LeftoverKind::Files => {
                let gone = leftover.of.as_ref().is_some_and(|of| !known.contains(of));
                gone.then_some("its box is gone")
            }
            LeftoverKind::Checkpoint => {
                (!kept.contains(&leftover.key)).then_some("no checkpoint of this name is known")
            }
            LeftoverKind::Image => {
                let old = !current.is_empty() && !current.contains(&leftover.key);
                (old && !kept.contains(&leftover.key)).then_some("a newer one is used now")
            }
        };
        let found = all.into_iter().filter_map(|leftover| {
            let why = why(&leftover)?;
            let (kind, bytes) = (leftover.kind.as_str(), leftover.bytes);
            let name = leftover.name.clone();
            Some(Found { kind, name, why, bytes, thing: Thing::OnEngine(leftover) })
        });
        Ok(found.collect())
    }

    /// What new boxes are made from, in every size there is; none when that is not known.
    fn current_images(&self) -> HashSet<String> {
        let Some(ctl) = crate::ctl_binary() else { return HashSet::new() };
        let certificates = boxes::host_certificates(self.settings.boxes.extra_cas.as_deref());
        let spec = |stage| ImageSpec::new(stage, &ctl, certificates.clone());
        Stage::ALL.into_iter().filter_map(|stage| spec(stage).tag().ok()).collect()
    }

    fn folders(&self, known: &HashSet<BoxId>) -> Vec<Found> {
        let parents = ["run/boxes", "repos", "boxes"].map(|dir| self.home.join(dir));
        let entries = parents.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
        let gone = entries.flatten().filter(|entry| {
            let id: Option<BoxId> = entry.file_name().to_str().and_then(|name| name.parse().ok());
            id.is_some_and(|id| !known.contains(&id))
        });
        gone.map(|entry| Found {
            kind: "folder",
            name: entry.path().display().to_string(),
            why: "its box is gone",
            bytes: None,
            thing: Thing::Folder(entry.path()),
        })
        .collect()
    }

    /// Pins of boxes this installation once made; another one's boxes may have theirs beside them.
    async fn pins(&self, known: &HashSet<BoxId>, records: &[Record]) -> Reply<Vec<Found>> {
        let ours = self.store.ever_made().await?;
        let mut repos: BTreeSet<PathBuf> =
            records.iter().filter_map(|r| Some(r.repo.as_ref()?.common_dir.clone())).collect();
        repos.extend(self.store.projects().await?);
        let mut found: Vec<Found> = Vec::new();
        for repo in repos.into_iter().filter(|repo| repo.is_dir()) {
            let Ok(pinned) = boxes::repo::pinned(&repo).await else { continue };
            for id in pinned.into_iter().filter(|id| ours.contains(id) && !known.contains(id)) {
                let same = |f: &Found| matches!(&f.thing, Thing::Pins(_, of) if *of == id);
                if found.iter().any(same) {
                    continue;
                }
                let name = format!("refs/agentbox/{id} in {}", repo.display());
                let thing = Thing::Pins(repo.clone(), id);
                let why = "its box is gone";
                found.push(Found { kind: "pins", name, why, bytes: None, thing });
            }
        }
        Ok(found)
    }

    async fn remove_remnant(&self, boxes: &Boxes, found: &Found) -> Reply<Removal> {
        let what = format!("{} {}", found.kind, found.name);
        let mut removal = Removal::default();
        let done = match &found.thing {
            Thing::Record(record) => {
                let _turn = self.turn(&record.id).await?;
                let mut removal = self.remove_box(boxes, record).await?;
                if removal.failed.is_empty() {
                    removal.removed.insert(0, what);
                }
                return Ok(removal);
            }
            Thing::OnEngine(leftover) => return Ok(boxes.remove_leftover(leftover).await),
            Thing::Folder(path) => std::fs::remove_dir_all(path).map_err(|e| e.to_string()),
            Thing::Pins(repo, id) => {
                boxes::repo::unpin(repo, id).await.map_err(|error| error.to_string())
            }
        };
        match done {
            Ok(()) => removal.removed.push(what),
            Err(why) => removal.failed.push(format!("{what}: {why}")),
        }
        Ok(removal)
    }
}
