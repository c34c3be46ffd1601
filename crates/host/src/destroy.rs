//! The end of a box: what would be lost, saving it, and removing everything it had.
//!
//! The box is asked before, and may stall or lie: it cannot keep itself from being destroyed, and
//! what it says is bounded.

use crate::api::Api;
use crate::core::Core;
use crate::down::TakingDown;
use crate::engine::control_error;
use crate::home;
use boxes::{Boxes, Chunk, ExecSpec, Record, Removal};
use futures_util::future::join_all;
use protocol::BoxId;
use protocol::boxes::{BoxState, WhyDown};
use protocol::control::{ControlError, Destroyed, ErrorCode, HostEvent, Loss, Target};
use protocol::ctl::{BOX_USER, Pack, paths};
use protocol::looking::{BranchFate, Exported};
use protocol::text::visible;
use relay::Entry;
use std::path::Path;
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
    /// What destroying would lose, in every repository of the box. A paused box is woken for a moment; a
    /// stopped one cannot be asked.
    pub async fn what_if_destroyed(&self, target: Target) -> Reply<Loss> {
        let id = self.find(&target)?;
        let view = self.view(&id)?;
        let record = self.core.record(&id);
        let repos = record.as_ref().map(Repo::all).unwrap_or_default();
        let (mut uncommitted, mut stranded) = (None, None);
        if !repos.is_empty() {
            let _used = self.core.session(&id);
            let paused = view.state == BoxState::Paused;
            if paused {
                self.core.awake(&id).await?;
            }
            if paused || view.state == BoxState::Running {
                let _ = self.core.land_last(&id).await;
                (uncommitted, stranded) = self.core.only_in_the_box(&id, &repos).await;
            }
            if paused && let Ok(_turn) = self.core.turn(&id).await {
                self.core.pause_box(&id, WhyDown::Rest).await?;
            }
        }
        let (unpushed, count) = unpushed(&repos).await;
        let unpushed_count = count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(Loss { view: self.view(&id)?, uncommitted, unpushed, unpushed_count, stranded })
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
        let boxes = self.core.engine().await?;
        let record = self.core.record(&id);
        let record =
            record.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        if view.state == BoxState::Paused {
            // Whatever comes of it: a box that cannot be woken can be removed.
            let _ = self.core.awake(&id).await;
        }
        let _turn = self.core.turn(&id).await?;
        let _down = TakingDown::mark(&self.core, &id, WhyDown::Person);
        let mut rescued = Vec::new();
        if self.core.box_state(&id) == BoxState::Running {
            if !self.core.land_last(&id).await {
                rescued = self.core.rescue(&id).await;
            }
            self.core.relay.close(&id);
            self.core.close_way(&id);
            if let Err(error) = boxes.stop(&record).await {
                tracing::warn!("{} is removed as it runs: {error}", view.name);
            }
        }
        let mut removal = self.core.remove_box(&boxes, &record).await?;
        if let Some(at) = record.engine.as_ref().filter(|_| !boxes.may_have(&record)) {
            removal.absent.push(format!("whatever it has on the engine at {at}"));
        }
        let fate = branch.unwrap_or_default();
        let mut kept_branches = Vec::new();
        for repo in Repo::all(&record) {
            kept_branches.extend(part_with_branch(&repo, fate, &mut removal).await);
        }
        let Removal { removed, absent, failed } = removal;
        let entry = Entry {
            box_id: Some(id),
            kind: "box-destroyed",
            summary: format!("Box {} destroyed", view.name),
            data: serde_json::json!({ "removed": removed, "failed": failed }),
        };
        self.core.store.record(entry).await?;
        self.core.send_status();
        Ok(Destroyed { view, removed, absent, failed, kept_branches, rescued })
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

    /// Changes that are not committed, and commits on other branches than its own. None when that of
    /// one repository is not known: part of a loss is not the loss.
    async fn only_in_the_box(
        &self,
        id: &BoxId,
        repos: &[Repo<'_>],
    ) -> (Option<Vec<String>>, Option<Vec<String>>) {
        let mut asked = Vec::new();
        for repo in repos {
            asked.push(self.only_in(id, repo));
        }
        let Ok(all) = tokio::time::timeout(PATIENCE, join_all(asked)).await else {
            return (None, None);
        };
        let (changes, commits): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        (together(changes), together(commits))
    }

    async fn only_in(
        &self,
        id: &BoxId,
        repo: &Repo<'_>,
    ) -> (Option<Vec<String>>, Option<Vec<String>>) {
        let changes = self.lines_of_box(id, repo.changes());
        let (changes, commits) =
            tokio::join!(changes, self.lines_of_box(id, repo.commits_elsewhere()));
        let named = |lines| repo.named(lines);
        (changes.map(named), commits.map(named))
    }

    /// What a command in the box prints; none when it fails or cannot be run.
    async fn lines_of_box(&self, id: &BoxId, argv: Vec<String>) -> Option<Vec<String>> {
        let (boxes, record) = self.reach(id).await.ok()?;
        let spec = ExecSpec { argv, user: Some(BOX_USER.into()), ..ExecSpec::default() };
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
        if output.len() <= MAX_ANSWER && exec.control.exit_code().await.ok()? != 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&output);
        Some(text.lines().take(MAX_LINES).map(visible).collect())
    }

    /// Removes everything a box has, its branch left aside. It is forgotten only when nothing of it
    /// is left.
    pub(crate) async fn remove_box(&self, boxes: &Boxes, record: &Record) -> Reply<Removal> {
        let id = &record.id;
        self.relay.close(id);
        self.close_way(id);
        let mut removal = boxes.destroy(record).await.map_err(control_error)?;
        for dir in home::box_dirs(&self.home, id) {
            if let Err(e) = std::fs::remove_dir_all(&dir)
                && e.kind() != std::io::ErrorKind::NotFound
            {
                removal.failed.push(format!("{}: {e}", dir.display()));
            }
        }
        if removal.failed.is_empty() {
            self.remove_secrets_of(id).await;
            self.store.remove_box(id).await?;
            self.events_log.forget(id);
            self.state().boxes.remove(id);
            self.nudge.notify_one();
            self.send(HostEvent::BoxRemoved { id: id.clone() });
        }
        Ok(removal)
    }
}

/// A repository of a box, and what the host knows of it.
struct Repo<'a> {
    /// From the workspace; empty for the workspace itself.
    path: &'a str,
    branch: &'a str,
    /// A branch the person gave the box to work on is the person's, whatever is on it.
    owns_branch: bool,
    base: Option<&'a str>,
    toplevel: &'a Path,
}

impl<'a> Repo<'a> {
    fn all(record: &'a Record) -> Vec<Self> {
        let root = record.repo.as_ref().zip(record.branch.as_ref());
        let root = root.map(|(repo, branch)| Self {
            path: "",
            branch,
            owns_branch: record.owns_branch(),
            base: record.base.as_deref(),
            toplevel: &repo.toplevel,
        });
        let nested = record.nested.iter().map(|nested| Self {
            path: &nested.path,
            branch: &nested.branch,
            owns_branch: true,
            base: nested.base.as_deref(),
            toplevel: &nested.repo.toplevel,
        });
        root.into_iter().chain(nested).collect()
    }

    /// A repository in another one is asked itself.
    fn changes(&self) -> Vec<String> {
        self.git(&["status", "--porcelain", "--ignore-submodules=dirty"])
    }

    /// A repository may have no commits at all yet.
    fn commits_elsewhere(&self) -> Vec<String> {
        let own = format!("refs/heads/{}", self.branch);
        let list = ["log", "--no-color", "--no-decorate", "--format=%h %s", "-n", "200"];
        let of = ["--ignore-missing", "--branches", "--glob=refs/stash*", "HEAD"];
        self.git(&[&list[..], &of[..], &["--not", "--remotes", &own]].concat())
    }

    fn git(&self, args: &[&str]) -> Vec<String> {
        let at = format!("{}/{}", paths::WORKSPACE, self.path);
        let head = [paths::GIT, "-C", &at];
        head.iter().chain(args).map(|word| (*word).to_owned()).collect()
    }

    /// Lines about it, with where it is.
    fn named(&self, lines: Vec<String>) -> Vec<String> {
        if self.path.is_empty() {
            return lines;
        }
        lines.into_iter().map(|line| visible(&format!("{}: {line}", self.path))).collect()
    }
}

/// Lines of all repositories, none when those of one are missing.
fn together(all: Vec<Option<Vec<String>>>) -> Option<Vec<String>> {
    let all: Option<Vec<Vec<String>>> = all.into_iter().collect();
    Some(all?.into_iter().flatten().take(MAX_LINES).collect())
}

/// Commits on the boxes' branches that are on no remote, and how many there are; none when that of one
/// repository is not known.
async fn unpushed(repos: &[Repo<'_>]) -> (Vec<String>, Option<usize>) {
    let (mut lines, mut count) = (Vec::new(), Some(0));
    for repo in repos {
        match boxes::repo::unpushed(repo.toplevel, repo.branch, repo.base).await {
            Ok(found) => {
                let found = found.unwrap_or_default();
                let line = |(id, subject): &(String, String)| visible(&format!("{id} {subject}"));
                lines.extend(repo.named(found.newest.iter().map(line).collect()));
                count = count.map(|count| count + found.count);
            }
            Err(error) => {
                tracing::warn!("commits of {} are not known: {error}", repo.branch);
                count = None;
            }
        }
    }
    (lines, count)
}

/// Deletes a box's branch in the person's repository, or not; its name when it stays.
async fn part_with_branch(
    repo: &Repo<'_>,
    fate: BranchFate,
    removal: &mut Removal,
) -> Option<String> {
    let beyond = boxes::repo::goes_beyond(repo.toplevel, repo.branch, repo.base).await;
    let beyond = beyond.ok().flatten()?;
    let branch = repo.branch.to_owned();
    if fate == BranchFate::Keep || !repo.owns_branch || (fate == BranchFate::Auto && beyond) {
        return Some(branch);
    }
    match boxes::repo::delete_branch(repo.toplevel, &branch).await {
        Ok(()) => {
            removal.removed.push(format!("branch {branch}"));
            return None;
        }
        // A person works on it: it was theirs to delete, not ours.
        Err(_) if fate == BranchFate::Auto => {}
        Err(error) => removal.failed.push(format!("branch {branch}: {error}")),
    }
    Some(branch)
}
