//! From a folder to a running, registered box.

use crate::carry::Checked;
use crate::core::{Core, fresh_token};
use crate::egress::Who;
use crate::engine::control_error;
use crate::oplog::OpLog;
use crate::{daemons, home};
use boxes::{
    Boxes, Channel, CreateSpec, Features, ImageSpec, Record, RepoRecord, Start, Watcher, Wishes,
};
use connectors::git::RemoteName;
use protocol::boxes::{BoxState, Created};
use protocol::control::{ControlError, CreateBox, ErrorCode};
use protocol::ctl::Daemons;
use protocol::egress::EgressMode;
use protocol::web::share_an_address;
use protocol::{BoxId, BoxName};
use relay::{Entry, Registration, RemoteUrls, Token, Worktree};
use settings::Settings;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Core {
    /// Makes a box. Dropping the future takes everything back.
    pub async fn create(
        self: &Arc<Self>,
        request: CreateBox,
        watcher: Watcher,
    ) -> Result<Created, ControlError> {
        self.refuse_own(Path::new(&request.workspace))?;
        let workspace = workspace(&request.workspace)?;
        let given: Option<BoxName> = request.name.as_deref().map(parse_name).transpose()?;
        let start = start(&request)?;
        let project_root = boxes::project::project_root(&workspace).await.map_err(control_error)?;
        let id = BoxId::from_bytes(random()?);
        let folder = project_root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = given.unwrap_or_else(|| BoxName::from_folder(&folder, &id));
        let reserved = Reserved::take(self, &name, &id)?;
        // Before anything is asked of an engine.
        let checking = self.check_project(&request, &project_root, &id, &name);
        let checked = Box::pin(checking).await?;
        let what = format!("for {}", workspace.display());
        let log = OpLog::begin(&self.home, "create", &what, watcher);
        let wanted = Wanted { workspace, project_root, id, reserved, start, request, checked };
        let made = Box::pin(self.create_logged(wanted, &log)).await;
        log.end(made.as_ref().err().map(|e| e.message.as_str()));
        made.map_err(|e| match e.code {
            // Nothing was begun that a log could tell about.
            ErrorCode::Usage => e,
            _ => e.hint(format!("what was done is in {}", log.path().display())),
        })
    }

    async fn create_logged(
        self: &Arc<Self>,
        wanted: Wanted,
        log: &Arc<OpLog>,
    ) -> Result<Created, ControlError> {
        let Wanted { workspace, project_root, id, reserved, start, request, checked } = wanted;
        let name = reserved.name.clone();
        let watcher: Watcher = log.clone();
        let boxes = self.engine().await?;
        let settings = self.settings_for(&project_root)?;
        let idle = checked.idle_images();
        let limits = request.limits.or(settings.boxes.limits());
        let (_, warning) = boxes::possible_limits(limits, boxes.engine().profile());
        log.note(&format!("box {name}, id {id}"));
        let image = self.image_for(&boxes, &project_root, &request, &settings, &watcher).await?;
        let index = self.store.next_index(&project_root).await?;
        let token = fresh_token()?;
        let wanted = daemons::wanted(&settings, request.vnc, request.docker);
        let (mut folders, daemons) = self.begin(&id, &workspace, wanted).await?;
        let egress = request.egress.unwrap_or(settings.egress.mode);
        // Before its first task runs: that may need the network.
        let mut way = self.prepare_way(&id, &name, &project_root, egress, &token).await?;
        let spec = CreateSpec {
            id: id.clone(),
            name,
            index,
            workspace: workspace.clone(),
            root: project_root,
            image,
            channel: crate::bridge::wanted_channel(self.settings.engine.channel),
            run_dir: folders.run.clone(),
            token: token.as_str().to_owned(),
            daemons: daemons.clone(),
            certificates: boxes::host_certificates(settings.boxes.extra_cas.as_deref()),
            taken_branches: self.branches(),
            start,
            with_env: request.with_env.unwrap_or(settings.boxes.with_env),
            limits,
            carry: checked.carry,
            keep_on_failure: request.keep_on_failure,
            wishes: Wishes {
                portless: request.portless,
                isolated: request.isolate.iter().copied().collect(),
                ..Wishes::default()
            },
            egress,
            authority: self.authority(egress)?,
        };
        let record = match boxes.create(spec, watcher).await {
            Ok(record) => record,
            Err(boxes::Error::Unfinished { record, error }) => {
                way.kept = true;
                let kept =
                    self.keep_unfinished(&boxes, *record, &token, daemons, &mut folders).await;
                return Err(kept.err().unwrap_or_else(|| unfinished(*error, &id)));
            }
            Err(e) if matches!(e, boxes::Error::NotCleaned(_)) || e.is_unreachable() => {
                // The engine may still do what it was asked for; it is looked after until it is gone.
                drop((folders, reserved));
                self.take_back(&boxes, id, workspace);
                return Err(control_error(e)
                    .hint("what was made so far is removed as soon as the engine answers again."));
            }
            Err(e) => {
                self.note_taken_back(&id).await;
                return Err(control_error(e));
            }
        };
        self.keep_made(&boxes, &record, &token, daemons, &mut folders).await?;
        way.kept = true;
        let view = self.view(&id).ok_or_else(|| {
            ControlError::new(ErrorCode::Failed, "the box was destroyed meanwhile")
        })?;
        let idle = idle.filter(|_| !record.features.docker);
        let told = crate::carry::warnings(&record.carry).collect::<Vec<_>>();
        let nested = record.nested.into_iter().map(|nested| (nested.path, nested.branch));
        Ok(Created {
            view,
            nested: nested.collect(),
            skipped: record.skipped,
            with_env: record.with_env,
            carried: record.carry,
            warnings: warning.into_iter().chain(checked.warnings).chain(told).chain(idle).collect(),
        })
    }

    /// What the box is made from: the image or checkpoint the person named, the project's checkpoint, the
    /// settings' image, or the built-in one.
    async fn image_for(
        &self,
        boxes: &Boxes,
        project_root: &Path,
        request: &CreateBox,
        settings: &Settings,
        watcher: &Watcher,
    ) -> Result<String, ControlError> {
        if let Some(image) = &request.image {
            return Ok(image.clone());
        }
        let named = request.snapshot.as_deref();
        // Asked only where a checkpoint is found: it is worked out from the whole in-box program.
        let current = || image_tag(settings);
        let saved = self.starting_point(boxes, project_root, named, current, watcher).await?;
        match saved.or_else(|| settings.boxes.image.clone()) {
            Some(image) => Ok(image),
            None => self.box_image(boxes, settings, watcher.clone()).await,
        }
    }

    /// The way out of a box that is being made; closed again unless it is kept.
    async fn prepare_way(
        self: &Arc<Self>,
        id: &BoxId,
        name: &BoxName,
        root: &Path,
        mode: EgressMode,
        token: &Token,
    ) -> Result<PreparedWay, ControlError> {
        let way = PreparedWay { core: self.clone(), id: id.clone(), kept: false };
        let who = Who {
            id: id.clone(),
            name: name.clone(),
            root: root.to_owned(),
            mode,
            agents: BTreeSet::new(),
            branch: None,
        };
        if mode.is_controlled() {
            self.open_way(&who, *token.hash().as_bytes())?;
            self.listen_for_way(id)?;
            self.reload_way(&who).await;
        }
        Ok(way)
    }

    /// Writes down that a box is about to be made, and makes what it needs on this computer.
    async fn begin(
        &self,
        id: &BoxId,
        workspace: &Path,
        wanted: Features,
    ) -> Result<(Folders, Daemons), ControlError> {
        // Before anything else of it is on disk: whoever is killed from here on finds it again.
        self.store.begin_box(id, workspace).await?;
        let made =
            Folders::make(self, id).and_then(|folders| Ok((folders, self.daemons(id, wanted)?)));
        if made.is_err() {
            self.note_taken_back(id).await;
        }
        made
    }

    /// What is below AgentBox's own folder is no project: a box may be behind it (`agentbox open`), and
    /// neither git nor anything else looks at what a box serves.
    pub(crate) fn refuse_own(&self, folder: &Path) -> Result<(), ControlError> {
        if !folder.starts_with(&self.home) {
            return Ok(());
        }
        let text = format!(
            "{} belongs to AgentBox itself",
            protocol::text::visible(&folder.to_string_lossy())
        );
        Err(ControlError::new(ErrorCode::Usage, text).hint("use a project folder."))
    }

    /// Puts a box that was made on record and lets it in.
    async fn keep_made(
        self: &Arc<Self>,
        boxes: &Boxes,
        record: &Record,
        token: &Token,
        daemons: Daemons,
        folders: &mut Folders,
    ) -> Result<(), ControlError> {
        let mut made =
            Made { core: self.clone(), boxes: boxes.clone(), record: Some(record.clone()) };
        self.register(record, token)?;
        let entry = Entry {
            box_id: Some(record.id.clone()),
            kind: "box-created",
            summary: format!("Box {} made from {}", record.name, record.workspace.display()),
            data: serde_json::json!({ "name": record.name, "image": record.image, "branch": record.branch }),
        };
        self.keep(record.clone(), token, BoxState::Running, entry).await?;
        self.note_carried(record, &record.carry).await?;
        self.went(boxes, record, daemons).await;
        self.keep_bridge(&record.id);
        made.record = None;
        folders.kept = true;
        self.send_view(&record.id);
        self.send_status();
        Ok(())
    }

    /// Nothing is left of a box that was begun. Where that cannot be written down, the next look at the
    /// engine finds nothing, too.
    async fn note_taken_back(&self, id: &BoxId) {
        if let Err(e) = self.store.taken_back(id).await {
            tracing::warn!("box {id} is gone, and that is not written down yet: {e}");
        }
    }

    /// Keeps what there is of a box, so that somebody can look at it and destroy it by its name.
    async fn keep_unfinished(
        self: &Arc<Self>,
        boxes: &Boxes,
        record: Record,
        token: &Token,
        daemons: Daemons,
        folders: &mut Folders,
    ) -> Result<(), ControlError> {
        let id = record.id.clone();
        self.keep_made(boxes, &record, token, daemons, folders).await?;
        let state = boxes.states().await.ok().and_then(|mut all| all.remove(&id));
        self.set_box_state(&id, state.unwrap_or(BoxState::Unknown));
        Ok(())
    }

    fn branches(&self) -> Vec<String> {
        self.state().boxes.values().flat_map(|k| k.record.branches().cloned()).collect()
    }

    async fn box_image(
        &self,
        boxes: &Boxes,
        settings: &Settings,
        watcher: Watcher,
    ) -> Result<String, ControlError> {
        let ctl = crate::ctl_binary().ok_or_else(|| {
            ControlError::new(
                ErrorCode::Failed,
                "the in-box program agentbox-ctl is not installed beside agentbox",
            )
            .hint("build it with make build, or set AGENTBOX_CTL to its path.")
        })?;
        let certificates = boxes::host_certificates(settings.boxes.extra_cas.as_deref());
        let spec = ImageSpec::new(daemons::stage(settings), ctl, certificates);
        boxes.ensure_image(&spec, watcher).await.map_err(control_error)
    }

    /// Opens the box's socket.
    pub fn register(self: &Arc<Self>, record: &Record, token: &Token) -> Result<(), ControlError> {
        self.register_hash(record, token.hash())
    }

    pub fn register_hash(
        self: &Arc<Self>,
        record: &Record,
        hash: relay::TokenHash,
    ) -> Result<(), ControlError> {
        let registration = registration(record, &home::box_repo_dir(&self.home, &record.id))?;
        self.open_recorded_way(record, *hash.as_bytes())?;
        self.relay.open(registration, hash);
        match record.channel {
            Channel::Socket => self.listen(record),
            // Its door is opened once it runs; see [`crate::bridge`].
            Channel::Exec => Ok(()),
        }
    }

    fn listen(&self, record: &Record) -> Result<(), ControlError> {
        let dir = home::box_run_dir(&self.home, &record.id);
        let failed = |what: &str, e: std::io::Error| {
            ControlError::new(ErrorCode::Failed, format!("cannot {what} {}: {e}", dir.display()))
        };
        home::private_dir(&dir).map_err(|e| failed("make", e))?;
        let socket = dir.join("relay.sock");
        if socket.as_os_str().len() >= 108 {
            let text = format!("the socket path {} is too long", socket.display());
            return Err(ControlError::new(ErrorCode::Failed, text)
                .hint("set AGENTBOX_HOME to a shorter path."));
        }
        self.relay.listen(&record.id, &dir).map_err(|e| failed("listen in", e))?;
        give_to_box_user(&[&dir, &socket]).map_err(|e| failed("hand over", e))
    }
}

/// What the built image would be called; none without the in-box program.
fn image_tag(settings: &Settings) -> Option<String> {
    let certificates = boxes::host_certificates(settings.boxes.extra_cas.as_deref());
    let built = ImageSpec::new(daemons::stage(settings), crate::ctl_binary()?, certificates);
    settings.boxes.image.clone().or_else(|| built.tag().ok())
}

/// A host that runs as root has boxes whose user is not root: their sockets must be theirs.
pub(crate) fn give_to_box_user(paths: &[&Path]) -> std::io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = boxes::box_ids();
    paths.iter().try_for_each(|path| std::os::unix::fs::chown(path, Some(uid), Some(gid)))
}

/// Closes a way out that was opened for a box that did not come to be.
struct PreparedWay {
    core: Arc<Core>,
    id: BoxId,
    kept: bool,
}

impl Drop for PreparedWay {
    fn drop(&mut self) {
        if !self.kept {
            self.core.close_way(&self.id);
        }
    }
}

/// What a person asked for, checked as far as it can be without an engine.
struct Wanted {
    workspace: PathBuf,
    project_root: PathBuf,
    id: BoxId,
    /// Its name.
    reserved: Reserved,
    start: Start,
    request: CreateBox,
    checked: Checked,
}

fn start(request: &CreateBox) -> Result<Start, ControlError> {
    match (&request.from_branch, &request.use_branch) {
        (None, None) => Ok(Start::Here),
        (Some(from), None) => Ok(Start::From(from.clone())),
        (None, Some(on)) => Ok(Start::On(on.clone())),
        (Some(_), Some(_)) => {
            let text = "a box either starts from a branch or works on one, not both";
            Err(ControlError::new(ErrorCode::Usage, text))
        }
    }
}

/// The folder of a request that could be carried out, as far as can be told without an engine.
pub(crate) fn checked(request: &CreateBox) -> Result<PathBuf, ControlError> {
    request.name.as_deref().map(parse_name).transpose()?;
    start(request)?;
    workspace(&request.workspace)
}

fn unfinished(error: boxes::Error, id: &BoxId) -> ControlError {
    let not_carried = matches!(error, boxes::Error::NotCarried(_));
    let mut error = control_error(error);
    error.code = ErrorCode::Unfinished;
    let error = error
        .hint(format!("what there is of the box is kept: look at it, then agentbox destroy {id}"));
    if !not_carried {
        return error;
    }
    error
        .hint(format!(
            "nothing was started in it. When nothing is in the way any more, agentbox stop {id} and \
             agentbox start {id} start it; an agent's start copies again."
        ))
        .hint("--carry-best-effort makes a box without what cannot be copied.")
}

/// One repository of a box, the workspace's own or one below.
struct OneRepo<'a> {
    path: &'a str,
    repo: &'a RepoRecord,
    branch: &'a str,
    publish: Option<&'a str>,
    base: Option<&'a str>,
}

/// What the relay needs of a record.
fn registration(record: &Record, repos: &Path) -> Result<Registration, ControlError> {
    let bad = |what: &str| {
        ControlError::new(
            ErrorCode::Failed,
            format!("box {}: bad {what} in its record", record.name),
        )
    };
    let mut worktrees = Vec::new();
    let root = record.repo.iter().zip(&record.branch).map(|(repo, branch)| OneRepo {
        path: "",
        repo,
        branch,
        publish: record.publish.as_deref(),
        base: record.base.as_deref(),
    });
    let nested = record.nested.iter().map(|nested| OneRepo {
        path: &nested.path,
        repo: &nested.repo,
        branch: &nested.branch,
        publish: None,
        base: nested.base.as_deref(),
    });
    for (at, one) in root.chain(nested).enumerate() {
        let OneRepo { path, repo, branch, publish, base } = one;
        home::private_dir(repos)
            .map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?;
        // A remote whose name the relay's grammar has no word for cannot be pushed to.
        let remotes = repo.remotes.iter().filter_map(|(name, urls)| {
            let (fetch, push) = (&urls.fetch_url, &urls.push_url);
            let place = |url: &str| absolute(url, &repo.toplevel);
            let urls = RemoteUrls { fetch: place(fetch), push: place(push) };
            Some((name.parse::<RemoteName>().ok()?, urls))
        });
        let top = protocol::ctl::paths::WORKSPACE;
        let (inside, transfer) = match path {
            "" => (top.to_owned(), "workspace.git".to_owned()),
            path => (format!("{top}/{path}"), format!("nested-{at}.git")),
        };
        worktrees.push(Worktree {
            container_path: inside,
            branch: branch.parse().map_err(|_| bad("branch"))?,
            own_branch: !path.is_empty() || record.owns_branch(),
            publish: publish.map(str::parse).transpose().map_err(|_| bad("branch"))?,
            base: base.map(str::parse).transpose().map_err(|_| bad("base"))?,
            host_repo: repo.toplevel.clone(),
            host_objects: repo.common_dir.join("objects"),
            object_format: repo.object_format.clone(),
            remotes: remotes.collect(),
            transfer: repos.join(transfer),
        });
    }
    Ok(Registration {
        id: record.id.clone(),
        name: record.name.clone(),
        project: record.project.clone(),
        project_root: record.project_root.clone(),
        workspace: record.workspace.clone(),
        worktrees,
    })
}

/// A path in a remote's address is meant from the work tree, where the transfer repository is not.
fn absolute(url: &str, toplevel: &Path) -> String {
    let scp = url.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
    if url.contains("://") || scp || url.starts_with('/') {
        return url.to_owned();
    }
    toplevel.join(url).display().to_string()
}

pub(crate) fn workspace(path: &str) -> Result<PathBuf, ControlError> {
    let usage = |text: String| ControlError::new(ErrorCode::Usage, text);
    if !Path::new(path).is_absolute() {
        return Err(usage(format!("{path} is not an absolute path")));
    }
    let real = std::fs::canonicalize(path)
        .map_err(|_| usage(format!("workspace does not exist: {path}")))?;
    if real.is_dir() { Ok(real) } else { Err(usage(format!("{path} is not a folder"))) }
}

fn parse_name(name: &str) -> Result<BoxName, ControlError> {
    name.parse()
        .map_err(|e: protocol::ids::BadId| ControlError::new(ErrorCode::Usage, e.to_string()))
}

pub fn random<const N: usize>() -> Result<[u8; N], ControlError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| ControlError::new(ErrorCode::Failed, format!("no randomness: {e}")))?;
    Ok(bytes)
}

/// A name nobody else may take while its box is being made.
struct Reserved {
    core: Arc<Core>,
    name: BoxName,
}

impl Reserved {
    fn take(core: &Arc<Core>, name: &BoxName, id: &BoxId) -> Result<Self, ControlError> {
        let mut state = core.state();
        let known = state.boxes.values().any(|k| k.record.name == *name);
        if known || state.reserved.contains_key(name) {
            let text = format!("there is already a box named {name}");
            return Err(ControlError::new(ErrorCode::Usage, text)
                .hint("choose another name with --name, or agentbox destroy the old one."));
        }
        // Pages of one would be shown at an address where a browser keeps things of the other.
        let others = state.boxes.values().map(|k| &k.record.name).chain(state.reserved.keys());
        if let Some(other) = others.into_iter().find(|other| share_an_address(name, other)) {
            let text = format!("{name} and the box {other} would share an address in the browser");
            return Err(
                ControlError::new(ErrorCode::Usage, text).hint("choose another name with --name.")
            );
        }
        state.reserved.insert(name.clone(), id.clone());
        drop(state);
        Ok(Self { core: core.clone(), name: name.clone() })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.core.state().reserved.remove(&self.name);
        // There may be room for a job.
        self.core.queue.wake.notify_one();
    }
}

/// The folders of a box that may not come to be.
struct Folders {
    run: PathBuf,
    all: [PathBuf; 3],
    kept: bool,
}

impl Folders {
    fn make(core: &Core, id: &BoxId) -> Result<Self, ControlError> {
        let run = home::box_run_dir(&core.home, id);
        home::private_dir(&run)
            .and_then(|()| give_to_box_user(&[&run]))
            .map_err(|e| ControlError::new(ErrorCode::Failed, format!("{}: {e}", run.display())))?;
        Ok(Self { run, all: home::box_dirs(&core.home, id), kept: false })
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !self.kept {
            for dir in &self.all {
                let _ = std::fs::remove_dir_all(dir);
            }
        }
    }
}

/// A box on the engine that is not yet on disk here.
struct Made {
    core: Arc<Core>,
    boxes: Boxes,
    record: Option<Record>,
}

impl Drop for Made {
    fn drop(&mut self) {
        let Some(record) = self.record.take() else { return };
        self.core.relay.close(&record.id);
        self.core.close_way(&record.id);
        let (core, boxes) = (self.core.clone(), self.boxes.clone());
        self.core.tasks.spawn_on(
            async move {
                let removed = boxes.destroy(&record).await;
                let unpinned = boxes::unpin_all(&record.workspace, &record.id).await;
                match removed.and(unpinned) {
                    Ok(()) => core.note_taken_back(&record.id).await,
                    Err(e) => tracing::warn!("box {} could not be removed: {e}", record.name),
                }
            },
            &self.core.runtime,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_remotes_are_meant_from_the_work_tree() {
        let top = Path::new("/home/ada/shop");
        assert_eq!(absolute("../remote.git", top), "/home/ada/shop/../remote.git");
        assert_eq!(absolute("remote.git", top), "/home/ada/shop/remote.git");
        for url in ["/srv/r.git", "https://h/r", "git@h:o/r.git", "file:///srv/r.git"] {
            assert_eq!(absolute(url, top), url);
        }
    }
}
