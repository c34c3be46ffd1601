//! The end of a box: what would be lost, saving it, and removing everything it had.
//!
//! The box is asked before, and may stall or lie: it cannot keep itself from being destroyed, and
//! what it says is bounded.

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use crate::home;
use boxes::{Boxes, Chunk, ExecSpec, Record, Removal};
use protocol::BoxId;
use protocol::boxes::BoxState;
use protocol::control::{ControlError, Destroyed, HostEvent, Loss, Target};
use protocol::ctl::{BOX_USER, Pack, paths};
use protocol::looking::{BranchFate, Exported};
use protocol::text::visible;
use relay::Entry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Lines of a box's answer that are shown.
const MAX_LINES: usize = 200;
/// How long a box is asked before it is destroyed.
const PATIENCE: Duration = Duration::from_secs(5);
/// A hostile box may have a lot to say about its files.
const MAX_ANSWER: usize = 256 * 1024;

type Reply<T> = Result<T, ControlError>;

impl Api {
    /// What destroying would lose. A paused box is woken for a moment; a stopped one cannot be asked.
    pub async fn what_if_destroyed(&self, target: Target) -> Reply<Loss> {
        let id = self.find(&target)?;
        let view = self.view(&id)?;
        let (mut uncommitted, mut stranded) = (None, None);
        if let Some(branch) = &view.branch {
            let _used = self.core.session(&id);
            let paused = view.state == BoxState::Paused;
            if paused {
                self.core.awake(&id).await?;
            }
            if paused || view.state == BoxState::Running {
                let _ = self.core.land_last(&id).await;
                (uncommitted, stranded) = self.core.only_in_the_box(&id, branch).await;
            }
            if paused && let Ok(_turn) = self.core.turn(&id).await {
                self.core.pause_box(&id).await?;
            }
        }
        let record = self.core.record(&id);
        let unpushed = match &record {
            Some(record) => unpushed(record).await,
            None => None,
        };
        let unpushed = unpushed.unwrap_or_default();
        let line = |(id, subject): &(String, String)| visible(&format!("{id} {subject}"));
        Ok(Loss {
            view: self.view(&id)?,
            uncommitted,
            unpushed: unpushed.newest.iter().map(line).collect(),
            unpushed_count: u32::try_from(unpushed.count).unwrap_or(u32::MAX),
            stranded,
        })
    }

    /// The workspace of a box as a tar stream, into `to`. Ignored files are in it, git's own data is
    /// not.
    pub async fn export_box(&self, target: Target, to: mpsc::Sender<Chunk>) -> Reply<Exported> {
        let id = self.find(&target)?;
        let _used = self.core.session(&id);
        self.core.awake(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        let what = Pack::Workspace { exclude: Vec::new(), respects_git: false };
        let bytes = boxes.export(&record, &what, to).await.map_err(control_error)?;
        Ok(Exported { bytes })
    }

    pub async fn destroy_box(
        &self,
        target: Target,
        branch: Option<BranchFate>,
    ) -> Reply<Destroyed> {
        let id = self.find(&target)?;
        let view = self.view(&id)?;
        let (boxes, record) = self.core.reach(&id).await?;
        if view.state == BoxState::Paused {
            // Whatever comes of it: a box that cannot be woken can be removed.
            let _ = self.core.awake(&id).await;
        }
        let _turn = self.core.turn(&id).await?;
        let mut rescued = Vec::new();
        if self.core.box_state(&id) == BoxState::Running {
            if !self.core.land_last(&id).await {
                rescued = self.core.rescue(&id).await;
            }
            self.core.relay.close(&id);
            if let Err(error) = boxes.stop(&record).await {
                tracing::warn!("{} is removed as it runs: {error}", view.name);
            }
        }
        let mut removal = self.core.remove_box(&boxes, &record).await?;
        let fate = branch.unwrap_or_default();
        let kept_branch = part_with_branch(&record, fate, &mut removal).await;
        let Removal { removed, absent, failed } = removal;
        let entry = Entry {
            box_id: Some(id),
            kind: "box-destroyed",
            summary: format!("Box {} destroyed", view.name),
            data: serde_json::json!({ "removed": removed, "failed": failed }),
        };
        self.core.store.record(entry).await?;
        self.core.send_status();
        Ok(Destroyed { view, removed, absent, failed, kept_branch, rescued })
    }
}

impl Core {
    /// Brings the last commits here, if the box lets us. Whether the host's branches have all of them:
    /// not where the person has one checked out or has put work of their own on it.
    async fn land_last(&self, id: &BoxId) -> bool {
        match tokio::time::timeout(PATIENCE, self.relay.land(id)).await {
            Ok(Ok(all)) => return all,
            Ok(Err(why)) => tracing::warn!("last commits of box {id} may be missing here: {why}"),
            Err(_) => tracing::warn!("box {id} did not hand over its last commits in time"),
        }
        false
    }

    /// Branches made for commits that would be lost otherwise.
    async fn rescue(&self, id: &BoxId) -> Vec<String> {
        // What the box stalls may hold this up, too.
        match tokio::time::timeout(PATIENCE, self.relay.rescue(id)).await {
            Ok(Ok(names)) => names,
            Ok(Err(error)) => {
                tracing::warn!("commits of box {id} could not be kept: {error}");
                Vec::new()
            }
            Err(_) => {
                tracing::warn!("commits of box {id} could not be looked for in time");
                Vec::new()
            }
        }
    }

    /// Changes that are not committed, and commits on other branches than its own.
    async fn only_in_the_box(
        self: &Arc<Self>,
        id: &BoxId,
        branch: &str,
    ) -> (Option<Vec<String>>, Option<Vec<String>>) {
        let own = format!("refs/heads/{branch}");
        let git = |args: &[&str]| -> Vec<String> {
            let head = [paths::GIT, "-C", paths::WORKSPACE];
            head.iter().chain(args).map(|word| (*word).to_owned()).collect()
        };
        let status = git(&["status", "--porcelain"]);
        let list = ["log", "--no-color", "--no-decorate", "--format=%h %s", "-n", "200"];
        let of = ["--branches", "--glob=refs/stash*", "HEAD", "--not", "--remotes", &own];
        let log = git(&[&list[..], &of[..]].concat());
        tokio::join!(self.lines_of_box(id, status), self.lines_of_box(id, log))
    }

    /// What a command in the box prints; none when it takes too long or cannot be run.
    async fn lines_of_box(&self, id: &BoxId, argv: Vec<String>) -> Option<Vec<String>> {
        let (boxes, record) = self.reach(id).await.ok()?;
        let spec = ExecSpec { argv, user: Some(BOX_USER.into()), ..ExecSpec::default() };
        let answer = async {
            let mut exec = boxes.exec(&record, spec).await.ok()?;
            let mut output = Vec::new();
            while let Some(chunk) = exec.output.next().await.ok()? {
                if let Chunk::Stdout(bytes) = chunk {
                    output.extend_from_slice(&bytes);
                }
                if output.len() > MAX_ANSWER {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&output);
            Some(text.lines().take(MAX_LINES).map(visible).collect())
        };
        tokio::time::timeout(PATIENCE, answer).await.ok().flatten()
    }

    /// Removes everything a box has, its branch left aside. It is forgotten only when nothing of it
    /// is left.
    pub(crate) async fn remove_box(&self, boxes: &Boxes, record: &Record) -> Reply<Removal> {
        let id = &record.id;
        self.relay.close(id);
        let mut removal = boxes.destroy(record).await.map_err(control_error)?;
        for dir in home::box_dirs(&self.home, id) {
            if let Err(e) = std::fs::remove_dir_all(&dir)
                && e.kind() != std::io::ErrorKind::NotFound
            {
                removal.failed.push(format!("{}: {e}", dir.display()));
            }
        }
        if removal.failed.is_empty() {
            self.store.remove_box(id).await?;
            self.events_log.forget(id);
            self.state().boxes.remove(id);
            self.nudge.notify_one();
            self.send(HostEvent::BoxRemoved { id: id.clone() });
        }
        Ok(removal)
    }
}

async fn unpushed(record: &Record) -> Option<boxes::repo::Unpushed> {
    let (repo, branch) = (record.repo.as_ref()?, record.branch.as_ref()?);
    let found = boxes::repo::unpushed(&repo.toplevel, branch, record.base.as_deref()).await;
    found.ok().flatten()
}

/// The branch that stays in the person's repository, if it does.
async fn part_with_branch(
    record: &Record,
    fate: BranchFate,
    removal: &mut Removal,
) -> Option<String> {
    let (repo, branch) = (record.repo.as_ref()?, record.branch.as_ref()?);
    let beyond = boxes::repo::goes_beyond(&repo.toplevel, branch, record.base.as_deref()).await;
    let beyond = beyond.ok().flatten()?;
    // A branch the person gave the box to work on is the person's, whatever is on it.
    let keep = fate == BranchFate::Keep || !record.owns_branch();
    if keep || (fate == BranchFate::Auto && beyond) {
        return Some(branch.clone());
    }
    match boxes::repo::delete_branch(&repo.toplevel, branch).await {
        Ok(()) => {
            removal.removed.push(format!("branch {branch}"));
            return None;
        }
        // A person works on it: it was theirs to delete, not ours.
        Err(_) if fate == BranchFate::Auto => {}
        Err(error) => removal.failed.push(format!("branch {branch}: {error}")),
    }
    Some(branch.clone())
}
