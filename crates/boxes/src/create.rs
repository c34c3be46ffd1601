//! Making a box: a saga that either returns a [`Record`] or leaves nothing behind. One that lacks only files
//! of this computer is kept, see [`Error::NotCarried`].
//!
//! The work runs in a task of its own. When the caller goes away, the task is told and cleans up:
//! a request the engine is busy with is waited for first, because cancelling it would not undo it.
//! Cleaning up goes by labels, so it also finds what was made but never reported.

use crate::certificates::{self, Certificate};
use crate::channel::Channel;
use crate::engine::{Profile, QUICK, SLOW, limited};
use crate::exec::{CtlCall, Nothing};
use crate::files::{MADE_BY_TOOLS, Selection};
use crate::labels::{self, Labels};
use crate::progress::{Step, Watcher};
use crate::project::{canonical_folder, configured_root, folder_name, project_hash};
use crate::record::NestedRepo;
use crate::repo::{self, Carry, Found, ObjectStore, RepoSnapshot, Start, Survey};
use crate::{Boxes, Error, Features, Record, Stage, Wishes, carry, container, env_files, limits};
use bollard::models::{Mount, NetworkCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, StartContainerOptions, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use protocol::ctl::{BOX_USER, Daemons, Egress, Go, Identity, SeedPlan, paths};
use protocol::egress::EgressMode;
use protocol::{BoxId, BoxName, Limits};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// What PID 1 gets to stop everything before it is killed.
pub(crate) const STOP_SECONDS: i32 = 30;
/// How long cleaning up may take.
const CLEAN_UP: Duration = Duration::from_secs(180);

/// What a box is made from. The host has chosen identity and image already.
#[derive(Clone)]
pub struct CreateSpec {
    pub id: BoxId,
    pub name: BoxName,
    pub index: u32,
    /// The project folder, or any folder in it.
    pub workspace: PathBuf,
    /// The project's folder; see [`crate::project::project_root`].
    pub root: PathBuf,
    /// A tag from [`Boxes::ensure_image`], or an image made from such a one.
    pub image: String,
    /// How the box is to reach the host; none leaves it to the engine.
    pub channel: Option<Channel>,
    /// The host's folder of sockets for this box; it must exist where it is mounted.
    pub run_dir: PathBuf,
    /// The box's bearer token; 64 hex digits.
    pub token: String,
    /// What it is to run besides commands, as far as its image can.
    pub daemons: Daemons,
    /// What the box must trust besides the usual authorities.
    pub certificates: Vec<Certificate>,
    /// Branches of other boxes that may not be on the host yet.
    pub taken_branches: Vec<String>,
    /// Where the box starts.
    pub start: Start,
    /// Settings that git ignores are taken along.
    pub with_env: bool,
    pub limits: Limits,
    /// Files from this computer that a person agreed to.
    pub carry: Option<carry::Agreed>,
    /// What was made stays when making the box fails.
    pub keep_on_failure: bool,
    /// What the person said that goes before the settings.
    pub wishes: Wishes,
    /// How it gets out.
    pub egress: EgressMode,
    /// Certificates of the host's own authority in PEM, for a box without a network.
    pub authority: Vec<String>,
}

/// The ids the box user gets: the host user's on Linux, so that sockets and files fit. Root's are
/// never used; whoever runs the host as root must hand the box's sockets to these ids.
pub fn box_ids() -> (u32, u32) {
    let uid = nix::unistd::getuid().as_raw();
    if uid == 0 || !cfg!(target_os = "linux") {
        return (1000, 1000);
    }
    let gid = nix::unistd::getgid().as_raw();
    (uid, if gid == 0 { uid } else { gid })
}

impl CreateSpec {
    fn channel(&self, profile: &Profile) -> Channel {
        self.channel.unwrap_or_else(|| profile.channel())
    }

    fn go(&self, identity: Identity) -> Go {
        let (token, daemons) = (self.token.clone(), self.daemons.clone());
        let certificates = self.authority.clone();
        let egress = self.egress.is_controlled().then_some(Egress { certificates });
        Go { token, daemons, identity: Some(identity), egress }
    }
}

impl Boxes {
    /// Makes a box and starts it. After an error, or when the returned future is dropped, nothing
    /// of it is left, unless the error is [`Error::Unfinished`] or [`Error::NotCleaned`].
    pub async fn create(&self, spec: CreateSpec, watcher: Watcher) -> Result<Record, Error> {
        let cancel = CancellationToken::new();
        let saga = Saga { boxes: self.clone(), spec, watcher, cancel: cancel.clone() };
        let _told_when_dropped = cancel.drop_guard();
        let made = self.sagas.spawn(saga.run()).await;
        made.unwrap_or_else(|error| Err(broken(&error)))
    }
}

/// A task that broke down.
fn broken(error: &JoinError) -> Error {
    Error::Engine { what: "make the box".into(), status: None, why: error.to_string() }
}

struct Saga {
    boxes: Boxes,
    spec: CreateSpec,
    watcher: Watcher,
    cancel: CancellationToken,
}

/// The project as it is on the host.
struct Project {
    survey: Survey,
    /// One for each repository, in the same order.
    branches: Vec<String>,
}

impl Project {
    fn repos(&self) -> impl Iterator<Item = (&Found, &String)> {
        self.survey.repos.iter().zip(&self.branches)
    }

    /// What is mounted for all repositories, each place once.
    fn mounts(&self) -> Vec<&ObjectStore> {
        let all = self.survey.repos.iter().flat_map(Found::mounts);
        let by_place: BTreeMap<&str, &ObjectStore> =
            all.map(|store| (store.inside.as_str(), store)).collect();
        by_place.into_values().collect()
    }
}

/// What goes into the workspace besides the commits.
struct Luggage {
    /// One for each repository.
    carries: Vec<Carry>,
    selection: Selection,
    env: Vec<PathBuf>,
}

impl Saga {
    async fn run(self) -> Result<Record, Error> {
        // The engine takes its time for a network, so that is made while the project is looked at.
        let network = self.boxes.sagas.spawn(self.network());
        let project = match Box::pin(self.or_cancelled(self.look())).await {
            Ok(project) => project,
            Err(error) => {
                // A branch may have been fetched.
                let _ = network.await;
                return Err(self.clean_up(&self.spec.workspace, error).await);
            }
        };
        let mut unfinished = None;
        let made = Box::pin(self.make(&project, network, &mut unfinished)).await;
        let Err(error) = made else { return made };
        let wanted = self.spec.keep_on_failure || matches!(error, Error::NotCarried(_));
        if let (true, Some(record)) = (wanted, unfinished)
            && !self.cancel.is_cancelled()
        {
            return Err(Error::Unfinished { record: Box::new(record), error: Box::new(error) });
        }
        Err(self.clean_up(&project.survey.workspace, error).await)
    }

    /// For steps that may be cut off anywhere.
    async fn or_cancelled<T>(
        &self,
        step: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            done = step => done,
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// For steps that must be finished before they can be undone.
    async fn to_the_end<T>(
        &self,
        step: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let done = step.await?;
        if self.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(done) }
    }

    async fn look(&self) -> Result<Project, Error> {
        let step = Step::start(&self.watcher, "Look at the project");
        let folder = canonical_folder(&self.spec.workspace)?;
        let root = configured_root(&folder).unwrap_or(folder.clone());
        let mut survey = repo::survey(&folder, &root, &MADE_BY_TOOLS).await?;
        refuse_home(&survey.workspace)?;
        let chosen = self.start(&mut survey).await?;
        survey.add_submodules().await?;
        let mut branches = Vec::new();
        for found in &survey.repos {
            let own = chosen.clone().filter(|_| found.is_root());
            let branch = match own {
                Some(branch) => branch,
                None => {
                    let name = found.branch_name(&self.spec.name);
                    let taken = &self.spec.taken_branches;
                    repo::choose_branch(&found.repo.common_dir, &name, taken).await?
                }
            };
            branches.push(branch);
        }
        step.done();
        Ok(Project { survey, branches })
    }

    /// Puts the commit to start from into the survey; the branch to work on, when one was chosen.
    async fn start(&self, survey: &mut Survey) -> Result<Option<String>, Error> {
        let CreateSpec { start, id, taken_branches, .. } = &self.spec;
        match (survey.root_mut(), start) {
            (_, Start::Here) => Ok(None),
            (Some(root), start) => repo::start(&mut root.repo, start, id, taken_branches).await,
            (None, Start::From(name) | Start::On(name)) => {
                let why = "the project is no git repository".to_owned();
                Err(Error::Branch { name: name.clone(), why })
            }
        }
    }

    async fn make(
        &self,
        project: &Project,
        network: JoinHandle<Result<Option<String>, Error>>,
        made: &mut Option<Record>,
    ) -> Result<Record, Error> {
        let step = Step::start(&self.watcher, "Make the box");
        // Neither is cut off while the other fails: what is begun can be undone only when done.
        let (container, luggage) =
            tokio::join!(self.to_the_end(self.container(project, network)), self.pack(project));
        let (network, container, features) = container?;
        let record = self.record(project, network, container.clone(), features);
        *made = Some(record.clone());
        let luggage = luggage?;
        self.to_the_end(self.boxes.start_container(&container)).await?;
        if record.egress.is_controlled() {
            self.or_cancelled(self.boxes.prove_container_closed(&container)).await?;
        }
        step.done();

        let step = Step::start(&self.watcher, "Copy the project");
        self.or_cancelled(self.begin(project, &container, &luggage, &step)).await?;
        step.done();
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let skipped =
            project.survey.repos.iter().zip(luggage.carries).flat_map(|(found, carry)| {
                carry.skipped.into_iter().map(|path| text(Path::new(&found.path).join(path)))
            });
        let with_env = luggage.env.into_iter().map(text).collect();
        let record = Record { skipped: skipped.collect(), with_env, ..record };
        let record = made.insert(record);
        Box::pin(self.or_cancelled(self.carry_and_release(record))).await?;
        Ok(record.clone())
    }

    fn record(
        &self,
        project: &Project,
        network: Option<String>,
        container: String,
        features: Features,
    ) -> Record {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let root = project.repos().find(|(found, _)| found.is_root());
        let nested = project.repos().filter(|(found, _)| !found.is_root());
        let nested = nested.map(|(found, branch)| NestedRepo {
            path: found.path.clone(),
            branch: branch.clone(),
            base: found.repo.base.clone(),
            repo: found.repo.record(),
        });
        let profile = self.boxes.engine.profile();
        Record {
            id: self.spec.id.clone(),
            name: self.spec.name.clone(),
            display_name: None,
            index: self.spec.index,
            project: folder_name(&self.spec.root),
            project_root: self.spec.root.clone(),
            workspace: project.survey.workspace.clone(),
            engine: Some(self.boxes.address()),
            container,
            network,
            egress: self.spec.egress,
            image: self.spec.image.clone(),
            files: None,
            channel: self.spec.channel(profile),
            created_at: u64::try_from(now.as_millis()).unwrap_or(0),
            branch: root.map(|(_, branch)| branch.clone()),
            branch_given: matches!(self.spec.start, Start::On(_)),
            from: match &self.spec.start {
                Start::From(name) => Some(name.clone()),
                Start::Here | Start::On(_) => None,
            },
            publish: None,
            base: root.and_then(|(found, _)| found.repo.base.clone()),
            repo: root.map(|(found, _)| RepoSnapshot::record(&found.repo)),
            features,
            logins: BTreeSet::new(),
            given: BTreeMap::new(),
            nested: nested.collect(),
            skipped: Vec::new(),
            with_env: Vec::new(),
            carry: Vec::new(),
            limits: limits::possible(self.spec.limits, profile).0,
            wishes: self.spec.wishes.clone(),
        }
    }

    /// Everything uncommitted, pinned where it is objects, listed where it is files.
    async fn pack(&self, project: &Project) -> Result<Luggage, Error> {
        let Survey { workspace, repos, .. } = &project.survey;
        let mut carries = Vec::with_capacity(repos.len());
        for found in repos {
            carries.push(repo::carry(found, &self.spec.id).await?);
        }
        let apart: HashSet<PathBuf> = project.survey.nested().map(PathBuf::from).collect();
        let mut names = Vec::new();
        for (found, carry) in repos.iter().zip(&carries) {
            let here = carry.untracked.iter().map(|name| Path::new(&found.path).join(name));
            // Joining keeps the mark of a whole folder, comparing does not look at it.
            names.extend(here.filter(|name| !apart.contains(name)));
        }
        let env =
            if self.spec.with_env { env_files::new_to(&project.survey).await? } else { Vec::new() };
        let known: HashSet<&PathBuf> = names.iter().collect();
        let more: Vec<PathBuf> = env.iter().filter(|name| !known.contains(name)).cloned().collect();
        names.extend(more);
        let whole = project.survey.root().is_none();
        let mut skip = apart;
        if whole {
            skip.extend(repo::ignored_by(workspace).await?);
        }
        let selection = Selection { root: workspace.clone(), whole, skip, names };
        Ok(Luggage { carries, selection, env })
    }

    /// The container in its network, by their ids, and what the box will have.
    async fn container(
        &self,
        project: &Project,
        network: JoinHandle<Result<Option<String>, Error>>,
    ) -> Result<(Option<String>, String, Features), Error> {
        let network = network.await.unwrap_or_else(|error| Err(broken(&error)));
        let engine = &self.boxes.engine;
        let network = network?;
        let Some(image) = engine.image_config_of(&self.spec.image).await? else {
            return Err(Error::NoImage(self.spec.image.clone()));
        };
        let image_labels = image.labels.unwrap_or_default();
        let features = features(&self.spec.daemons, Stage::of_image(&image_labels))?;
        let labels = self.labels();
        if features.docker {
            self.boxes.docker_volume(&self.spec.id, labels.clone()).await?;
        }
        let profile = engine.profile();
        let plan = container::Plan {
            identity: self.spec.identity(&project.survey.workspace),
            image: &self.spec.image,
            image_env: &image.env.unwrap_or_default(),
            mounts: mounts(&self.spec, self.spec.channel(profile), project)?,
            network: network.as_deref(),
            egress: self.spec.egress,
            features,
            limits: self.spec.limits,
            labels,
        };
        let body = plan.body(profile);
        let name = self.engine_name();
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let request = engine.docker().create_container(Some(options), body);
        let created = engine.ask("make the container", SLOW, request).await.map_err(|error| {
            if error.status() == Some(409) { Error::NameTaken(name.clone()) } else { error }
        })?;
        self.trust(&created.id, &image_labels).await?;
        Ok((network, created.id, features))
    }

    /// What the container and the network are called.
    fn engine_name(&self) -> String {
        format!("agentbox-{}", self.spec.name)
    }

    fn labels(&self) -> Labels {
        let CreateSpec { id, name, root, .. } = &self.spec;
        self.boxes.box_labels(id, name, &project_hash(root))
    }

    /// None for a box that is to have none.
    fn network(&self) -> impl Future<Output = Result<Option<String>, Error>> + use<> {
        let (name, labels, boxes) = (self.engine_name(), self.labels(), self.boxes.clone());
        let wanted = !self.spec.egress.is_controlled();
        async move { if wanted { Ok(Some(boxes.network(name, labels).await?)) } else { Ok(None) } }
    }

    /// Puts the certificates into the box when its image was built with others; PID 1 takes them
    /// in when it finds the marker.
    async fn trust(&self, container: &str, image: &HashMap<String, String>) -> Result<(), Error> {
        let wanted = certificates::hash(&self.spec.certificates);
        let built_in = image.get(labels::CERTIFICATES).map(String::as_str);
        if built_in == Some(&wanted) || (built_in.is_none() && self.spec.certificates.is_empty()) {
            return Ok(());
        }
        let folder = Path::new(paths::CERTIFICATES);
        let archive = certificate_archive(folder, &self.spec.certificates)
            .map_err(|error| Error::io("pack", folder, error))?;
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let body = bollard::body_full(archive.into());
        let engine = &self.boxes.engine;
        let request = engine.docker().upload_to_container(container, Some(options), body);
        engine.ask("copy certificates into the box", SLOW, request).await
    }

    /// Lays out the workspace and releases the box, unless files are to come before that.
    async fn begin(
        &self,
        project: &Project,
        container: &str,
        luggage: &Luggage,
        step: &Step,
    ) -> Result<(), Error> {
        let repos = project.repos().zip(&luggage.carries);
        let repos = repos.map(|((found, branch), carry)| found.seed(branch, carry)).collect();
        let go = json_line(&self.spec.go(self.spec.identity(&project.survey.workspace)))?;
        let plan = json_line(&SeedPlan { repos })?;
        let archive = luggage.selection.clone().archive();
        let size = archive.size;
        let mut sent: u64 = 0;
        let files = stream::unfold(archive.chunks, |mut files| async {
            files.recv().await.map(|chunk| (chunk, files))
        });
        let files = files.inspect(|chunk| {
            let before = sent >> 22;
            sent += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
            if sent >> 22 != before {
                let (text, fraction) = part(sent, size.load(Ordering::Relaxed));
                step.detail(text, fraction);
            }
        });
        let feed = stream::iter([Ok(go), Ok(plan)]).chain(files);
        let call = CtlCall {
            args: self.begin_args(),
            user: Some("0".to_owned()),
            env: vec![format!("HOME=/home/{BOX_USER}"), format!("USER={BOX_USER}")],
        };
        self.boxes.ctl(container, call, feed, &mut Nothing).await
    }

    fn begin_args(&self) -> Vec<String> {
        let hold = self.spec.carry.is_some().then(|| "--hold".to_owned());
        std::iter::once("begin".to_owned()).chain(hold).collect()
    }

    /// Nothing of the box's own runs before the files are there. Without one it needs, the box stays held:
    /// a task that finds no settings could do anything.
    async fn carry_and_release(&self, record: &mut Record) -> Result<(), Error> {
        let Some(agreed) = &self.spec.carry else { return Ok(()) };
        let step = Step::start(&self.watcher, "Copy files from this computer");
        let (plan, values) = (&agreed.plan, record.values());
        let carrying = self.boxes.carry(&record.container, plan, values, agreed.yes);
        // On record whatever follows: it has been sent.
        record.carry = Box::pin(carrying).await?;
        let lacking = plan.lacking(&record.carry);
        if !lacking.is_empty() && !agreed.best_effort {
            return Err(Error::NotCarried(lacking));
        }
        self.boxes.go(&record.container, &self.spec.go(record.identity())).await?;
        step.done();
        Ok(())
    }

    /// Takes everything back; the error, and whether that worked.
    async fn clean_up(&self, workspace: &Path, error: Error) -> Error {
        let unpinned = unpin_all(workspace, &self.spec.id).await;
        let swept = limited("clean up", CLEAN_UP, self.boxes.sweep(&self.spec.id)).await;
        let removal = swept.and_then(|done| done);
        match (unpinned, removal) {
            (Ok(()), Ok(removal)) if removal.failed.is_empty() => return error,
            (Ok(()), Ok(removal)) => {
                tracing::warn!(failed = ?removal.failed, "a failed create left this");
            }
            (Err(why), _) | (_, Err(why)) => {
                tracing::warn!(%why, "cleaning up after a failed create failed");
            }
        }
        Error::NotCleaned(Box::new(error))
    }
}

/// Removes a box's pins from every repository of a workspace, submodules it has or had among them.
pub async fn unpin_all(workspace: &Path, id: &BoxId) -> Result<(), Error> {
    let Ok(folder) = canonical_folder(workspace) else { return Ok(()) };
    let root = configured_root(&folder).unwrap_or(folder.clone());
    let survey = repo::survey(&folder, &root, &MADE_BY_TOOLS).await?;
    for found in &survey.repos {
        repo::unpin(&found.repo.common_dir, id).await?;
        for module in repo::modules(&found.repo) {
            repo::unpin(&module, id).await?;
        }
    }
    Ok(())
}

/// “12 MB of 300 MB”, and how much that is of the whole where it is known.
#[allow(clippy::cast_precision_loss)]
fn part(sent: u64, size: u64) -> (String, Option<f32>) {
    let shown = |bytes: u64| bytes / 1_000_000;
    if size == 0 {
        return (format!("{} MB", shown(sent)), None);
    }
    let share = (sent as f64 / size as f64).min(1.0);
    #[allow(clippy::cast_possible_truncation)]
    let share = share as f32;
    (format!("{} MB of {} MB", shown(sent.min(size)), shown(size)), Some(share))
}

impl Boxes {
    /// A bridge of the box's own.
    pub(crate) async fn network(&self, name: String, labels: Labels) -> Result<String, Error> {
        let request = NetworkCreateRequest {
            name,
            driver: Some("bridge".to_owned()),
            labels: Some(labels),
            ..NetworkCreateRequest::default()
        };
        let request = self.engine.docker().create_network(request);
        Ok(self.engine.ask("make the box's network", SLOW, request).await?.id)
    }

    pub(crate) async fn start_container(&self, container: &str) -> Result<(), Error> {
        let request =
            self.engine.docker().start_container(container, None::<StartContainerOptions>);
        self.engine.ask("start the container", SLOW, request).await
    }
}

/// One JSON line as the first chunk of an input.
pub(crate) fn json_line(value: &impl serde::Serialize) -> Result<Bytes, Error> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| Error::BadAnswer { command: "seed".to_owned(), why: error.to_string() })?;
    line.push(b'\n');
    Ok(line.into())
}

/// Folders that are about nothing else.
const KEYS_ONLY: [&str; 7] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"];

/// A home folder is full of keys and logins; it is never what somebody means to give to a box.
pub(crate) fn refuse_home(workspace: &Path) -> Result<(), Error> {
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    if home.is_some_and(|home| home.starts_with(workspace)) {
        let why = "it contains your home folder; use a project folder".to_owned();
        return Err(Error::Repository { path: workspace.to_owned(), why });
    }
    if workspace.iter().any(|part| KEYS_ONLY.iter().any(|name| part == *name)) {
        let why = "it holds keys and logins; use a project folder".to_owned();
        return Err(Error::Repository { path: workspace.to_owned(), why });
    }
    Ok(())
}

/// What is asked for and can be had. A screen or an ssh server an image lacks is left out; whoever
/// asks for an engine is told.
fn features(wanted: &Daemons, stage: Option<Stage>) -> Result<Features, Error> {
    // An image that says nothing may have everything.
    let stage = stage.unwrap_or(Stage::Full);
    if wanted.docker && stage != Stage::Full {
        return Err(Error::NoInnerEngineIn(stage));
    }
    Ok(Features {
        vnc: wanted.vnc_password.is_some() && stage != Stage::Core,
        ssh: wanted.ssh.is_some() && stage == Stage::Full,
        docker: wanted.docker,
    })
}

fn mounts(spec: &CreateSpec, channel: Channel, project: &Project) -> Result<Vec<Mount>, Error> {
    let mut mounts = vec![container::run_folder()];
    if channel == Channel::Socket {
        let run_dir = spec.run_dir.canonicalize();
        let run_dir = run_dir.map_err(|error| Error::io("mount", &spec.run_dir, error))?;
        mounts.push(container::read_only(&run_dir, paths::HOST)?);
    }
    for store in project.mounts() {
        mounts.push(container::read_only(&store.host, &store.inside)?);
    }
    Ok(mounts)
}

fn certificate_archive(folder: &Path, certificates: &[Certificate]) -> std::io::Result<Vec<u8>> {
    let folder = folder.strip_prefix("/").unwrap_or(folder);
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: PathBuf, kind: tar::EntryType, mode: u32, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, bytes)
    };
    add(folder.to_owned(), tar::EntryType::Directory, 0o755, b"")?;
    for (name, pem) in certificates {
        add(folder.join(name), tar::EntryType::Regular, 0o644, pem)?;
    }
    add(folder.join(".new"), tar::EntryType::Regular, 0o644, b"")?;
    tar.into_inner()
}

/// Time for one whole [`Boxes::go`].
pub(crate) const GO: Duration = QUICK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_said_where_it_is_known() {
        assert_eq!(part(5_000_000, 0), ("5 MB".into(), None));
        assert_eq!(part(5_000_000, 10_000_000), ("5 MB of 10 MB".into(), Some(0.5)));
        assert_eq!(part(11_000_000, 10_000_000), ("10 MB of 10 MB".into(), Some(1.0)));
    }
}
