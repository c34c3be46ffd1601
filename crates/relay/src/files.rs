//! `cp.toHost`, `cp.fromHost` and `download.workspace`: files between a box and the host.
//!
//! Either way a copy is staged as one archive first, then shown, then carried out from that same
//! archive. What comes out of a box is written on the host by handle, through no link, and only
//! where things still are as they were at the question.

mod gather;
mod place;

use crate::call::{Call, Stop};
use crate::decide::{Refusal, Request, rule};
use crate::integration::shown as shown_argv;
use approvals::{Draft, Rememberable, Scope};
use connectors::files::{CopyIn, CopyOut, Download, runs_code, shown};
use connectors::worktree::BoxPath;
use files::archive::{self, Entry, Staged, What};
use files::place::Place;
use files::rules::{Refused, Tops};
use gather::{Found, Gathered, Wanted};
use place::{Forbidden, NotWritten, Target};
use protocol::ctl::{Pack, paths};
use protocol::exit;
use protocol::question::{Fact, FileLine, Tier};
use protocol::rpc::{CopyParams, DownloadParams, Envelope};
use protocol::text::{shortened, size};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

const COPY_LIMIT: Duration = Duration::from_secs(300);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);
/// More than this is not even staged, unless the person's own limit is higher.
const MOST: u64 = 1024 * 1024 * 1024;
/// What a box may put into its own folder without a question, all copies together.
const OWN_MOST: u64 = 1024 * 1024 * 1024;
/// Files a question lists, and how much text they may be.
const SHOWN_FILES: usize = 100;
const SHOWN_BYTES: usize = 24 * 1024;
const SHOWN_PATH: usize = 300;
/// Names a warning lists.
const NAMED: usize = 5;

#[derive(Debug)]
pub(crate) enum Plan {
    ToHost(CopyOut),
    FromHost(CopyIn),
    Download(Download),
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    match request.method {
        "cp.toHost" => {
            let params: CopyParams = request.params(CopyOut::SURFACE)?;
            Ok(Plan::ToHost(CopyOut::parse(&params)?))
        }
        "cp.fromHost" => {
            let params: CopyParams = request.params(CopyIn::SURFACE)?;
            Ok(Plan::FromHost(CopyIn::parse(&params)?))
        }
        "download.workspace" => {
            let params: DownloadParams = request.params(Download::SURFACE)?;
            Ok(Plan::Download(Download::parse(&params)?))
        }
        "download.env" | "download.config" | "download.claude" => {
            let name = request.method.replace('.', " ");
            let text =
                format!("{name}: not available; use 'agentbox-ctl cp toHost' for single files.");
            Err(rule(exit::UNADDRESSABLE, text))
        }
        _ => Err(Refusal::Unknown),
    }
}

pub(crate) async fn execute(call: &Call, plan: Plan) -> Result<Envelope, Stop> {
    // What is staged takes room on the host's disk for as long as a question is open.
    let room = call.state.copies.clone().try_acquire_owned().map_err(|_| {
        Stop::denied("two copies of this box are under way already; wait and retry")
    })?;
    let room = Room(Arc::new(room));
    let surface = match plan {
        Plan::ToHost(_) => CopyOut::SURFACE,
        Plan::FromHost(_) => CopyIn::SURFACE,
        Plan::Download(_) => Download::SURFACE,
    };
    let ground = Ground::of(call, surface)?;
    let near = ground.near();
    let done = match plan {
        Plan::ToHost(copy) => to_host(call, copy, ground, room).await,
        Plan::FromHost(copy) => from_host(call, copy, ground, room).await,
        Plan::Download(download) => bring_back(call, download, ground, room).await,
    };
    match done {
        Ok(envelope) => Ok(near.told(envelope)),
        Err(Stop { envelope, on_record }) => {
            if !on_record {
                let why = shortened(envelope.stderr.trim_end(), SHOWN_PATH);
                let data = json!({ "method": call.method, "exitCode": envelope.exit_code });
                call.note("not-copied", format!("Not copied: {why}"), data).await?;
            }
            Err(Stop { envelope: near.told(envelope), on_record: true })
        }
    }
}

/// A place among a box's copies. Every thread that works on the host's files holds it, too: a caller
/// that has left does not make room for another while its files are still being read.
#[derive(Clone)]
struct Room(#[expect(dead_code, reason = "held, never asked")] Arc<OwnedSemaphorePermit>);

/// What a box is told when something outside its project cannot be copied: neither whether it is
/// there, nor what is beside it, nor how large it is.
fn nothing_to_tell(surface: &str) -> Stop {
    Stop::fail(
        exit::FAILURE,
        format!("{surface}: what is outside the project cannot be copied so."),
    )
}

/// Where the host keeps what, as far as a copy has to know.
struct Ground {
    home: PathBuf,
    /// The real path of the folder the box was made from.
    workspace: PathBuf,
    forbidden: Forbidden,
    /// Bytes above which a copy says so, and above which it is not staged.
    large: u64,
    most: u64,
}

impl Ground {
    fn of(call: &Call, surface: &str) -> Result<Self, Stop> {
        let deps = &call.shared.deps;
        let home = deps.env.iter().rev().find(|(key, _)| key == "HOME");
        let home = home.map_or_else(|| PathBuf::from("/"), |(_, value)| PathBuf::from(value));
        let workspace = call.reg().workspace.canonicalize().map_err(|e| {
            let folder = shown(&call.reg().workspace);
            Stop::fail(
                exit::FAILURE,
                format!("{surface}: the project folder {folder} is gone: {e}"),
            )
        })?;
        let forbidden = Forbidden::new(&deps.home, &home);
        let large = call.policy.copy_max_bytes;
        Ok(Self { home, workspace, forbidden, large, most: large.max(MOST) })
    }

    fn near(&self) -> Near {
        Near { home: shown(&self.home), workspace: shown(&self.workspace) }
    }
}

/// Paths as a box may write them itself. Where the person keeps things is not its business.
struct Near {
    home: String,
    workspace: String,
}

impl Near {
    fn told(&self, mut envelope: Envelope) -> Envelope {
        let tell = |text: &str| {
            let text = text.replace(&format!("{}/", self.workspace), "");
            let text = text.replace(&self.workspace, "the project folder");
            if self.home.len() > 1 { text.replace(&self.home, "~") } else { text }
        };
        envelope.stdout = tell(&envelope.stdout);
        envelope.stderr = tell(&envelope.stderr);
        envelope
    }
}

/// Brings files out of the box.
async fn to_host(call: &Call, copy: CopyOut, ground: Ground, room: Room) -> Result<Envelope, Stop> {
    let surface = CopyOut::SURFACE;
    let dest = copy.dest.under(&ground.home, &ground.workspace);
    if ground.forbidden.holds(&dest) {
        let text = format!("{surface}: {} is where no copy goes.", shown(&dest));
        return Err(Stop::fail(exit::REFUSED, text));
    }
    let what = Pack::Files {
        sources: copy.sources.iter().map(|s| s.as_str().to_owned()).collect(),
        exclude: copy.excludes.patterns().to_vec(),
    };
    let staged = stage(call, surface, what, ground.most, COPY_LIMIT, &room).await?;
    let own = own_folder(call, &ground);
    let tops: Vec<String> = copy.sources.iter().map(|s| last_name(s).to_owned()).collect();
    let is_folder = copy.dest.is_folder();
    let found = blocking(surface, &room, move || {
        let entries = archive::list(&staged, Tops::Only(&tops)).map_err(|e| sent(surface, &e))?;
        let place = placed(&dest, is_folder, &tops, &entries)?;
        let targets = place::look(surface, &place, entries, &ground.forbidden)?;
        let contained = targets.iter().all(|t| t.path.starts_with(&own));
        let roomy = contained && bytes(&targets) + held(&own) <= OWN_MOST;
        Ok((staged, place, targets, ground, roomy))
    });
    let (staged, place, targets, ground, roomy) = found.await?;
    let draft = to_host_draft(call, &copy, &place, &targets, &staged, &ground);
    let marked = targets.iter().any(|t| t.overwrites() || is_special(t));
    let safe = roomy && !marked && bytes(&targets) <= ground.large;
    let title = draft.title.clone();
    call.gate(draft, safe.then_some("copy to the box's own folder")).await?;

    let later = call.clone();
    let work = async move {
        let data = written_down(&place, &staged, &targets);
        let envelope = match write(surface, &room, staged, targets).await {
            Ok(_) => {
                Envelope { stdout: format!("copied to {}\n", place.shown()), ..Envelope::default() }
            }
            Err(stop) => stop.envelope,
        };
        Ok(later.done(title, data, envelope).await)
    };
    call.finish(work).await
}

/// The place, and a word about what is to be put there.
fn placed(dest: &Path, is_folder: bool, tops: &[String], entries: &[Entry]) -> Result<Place, Stop> {
    let surface = CopyOut::SURFACE;
    if entries.is_empty() {
        return Err(Stop::fail(
            exit::FAILURE,
            format!("{surface}: the box has nothing of that to copy."),
        ));
    }
    let is_dir = |top: &str| !entries.iter().any(|e| e.path == top && e.what != What::Folder);
    let tops: Vec<(&str, bool)> = tops.iter().map(|top| (top.as_str(), is_dir(top))).collect();
    place::find(surface, dest, is_folder, &tops)
}

/// Brings the box's workspace over the host's project folder. It takes nothing away.
async fn bring_back(
    call: &Call,
    download: Download,
    ground: Ground,
    room: Room,
) -> Result<Envelope, Stop> {
    let surface = Download::SURFACE;
    let exclude = download.excludes.patterns().to_vec();
    let what = Pack::Workspace { exclude, respects_git: download.respects_git };
    let staged = stage(call, surface, what, ground.most, DOWNLOAD_LIMIT, &room).await?;
    let place = Place { folder: ground.workspace.clone(), renamed: None };
    let found = blocking(surface, &room, move || {
        let entries = archive::list(&staged, Tops::Any).map_err(|e| sent(surface, &e))?;
        let git = |e: &&Entry| e.path.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
        if let Some(entry) = entries.iter().find(git) {
            let text = format!(
                "{surface}: the box sent '{}', which is git's own; nothing was copied.",
                shortened(&entry.path, SHOWN_PATH)
            );
            return Err(Stop::fail(exit::FAILURE, text));
        }
        let targets = place::look(surface, &place, entries, &ground.forbidden)?;
        let differs = |t: &Target| t.entry.what != What::Folder && !place::is_same(&staged, t);
        let targets: Vec<Target> = targets.into_iter().filter(differs).collect();
        Ok((staged, place, targets, ground))
    });
    let (staged, place, targets, ground) = found.await?;
    if targets.is_empty() {
        let stdout = format!("no changes: {} has all of it\n", place.shown());
        return Ok(Envelope { stdout, ..Envelope::default() });
    }
    let draft = download_draft(call, &place, &targets, &staged, &ground);
    let title = draft.title.clone();
    // Uncommitted work of the person's may be overwritten: no setting says yes to that.
    call.gate(draft, None).await?;

    let later = call.clone();
    let work = async move {
        let data = written_down(&place, &staged, &targets);
        let envelope = match write(surface, &room, staged, targets).await {
            Ok(n) => {
                let stdout = format!("updated {} in {}\n", count(n, "file"), place.shown());
                Envelope { stdout, ..Envelope::default() }
            }
            Err(stop) => stop.envelope,
        };
        Ok(later.done(title, data, envelope).await)
    };
    call.finish(work).await
}

/// Brings files of the host into the box.
async fn from_host(
    call: &Call,
    copy: CopyIn,
    ground: Ground,
    room: Room,
) -> Result<Envelope, Stop> {
    let surface = CopyIn::SURFACE;
    let file = Staged::file(&call.shared.deps.scratch).map_err(|e| unstaged(surface, &e))?;
    let sources: Vec<PathBuf> =
        copy.sources.iter().map(|s| s.under(&ground.home, &ground.workspace)).collect();
    let excludes = copy.excludes.clone();
    let found = blocking(surface, &room, move || {
        let outside = outside(&sources, &ground.workspace);
        let wanted = Wanted {
            surface,
            sources,
            excludes: &excludes,
            workspace: &ground.workspace,
            forbidden: &ground.forbidden,
            most: ground.most,
        };
        let gathered = gather::gather(&wanted, file).map_err(|stop| {
            let forbidden = stop.envelope.exit_code == exit::REFUSED;
            if outside && !forbidden { nothing_to_tell(surface) } else { stop }
        })?;
        Ok((gathered, ground))
    });
    let found = tokio::time::timeout(COPY_LIMIT, found).await;
    let (gathered, ground) = found.unwrap_or_else(|_| Err(late(surface, COPY_LIMIT)))?;
    let dest = format!("{}{}", copy.dest.as_str(), if copy.into { "/" } else { "" });
    let draft = from_host_draft(call, &dest, &gathered, &ground);
    let plain = |f: &Found| !f.secret && !f.outside;
    let total: u64 = gathered.files.iter().map(|f| f.bytes).sum();
    let safe = gathered.files.iter().all(plain) && total <= ground.large;
    let contained = gathered.sources.iter().all(|s| s.starts_with(&ground.workspace));
    let title = draft.title.clone();
    call.gate(draft, (safe && contained).then_some("copy of the project's own files")).await?;
    let names = gathered
        .files
        .iter()
        .take(SHOWN_FILES)
        .map(|f| shortened(&name_of(f, &ground), SHOWN_PATH));
    let names: Vec<String> = names.collect();

    let later = call.clone();
    let work = async move {
        let Gathered { staged, left_out, .. } = gathered;
        let data = json!({ "files": names, "to": dest, "sha256": staged.digest, "bytes": total });
        let mut envelope = match send(&later, surface, &room, staged, &dest).await {
            Ok(()) => {
                let stdout = format!("copied to {}:{dest}\n", later.reg().name);
                Envelope { stdout, ..Envelope::default() }
            }
            Err(stop) => stop.envelope,
        };
        if envelope.exit_code == 0 && !left_out.is_empty() {
            let names: Vec<&String> = left_out.iter().collect();
            envelope.stderr.push_str(&format!("{surface}: left out: {}\n", named(&names)));
        }
        Ok(later.done(title, data, envelope).await)
    };
    call.finish(work).await
}

/// A source leads out of the project, by its words or by a link in it.
fn outside(sources: &[PathBuf], workspace: &Path) -> bool {
    let real = |path: &Path| {
        path.ancestors().find_map(|at| at.canonicalize().ok()).unwrap_or_else(|| path.to_owned())
    };
    sources.iter().any(|s| !s.starts_with(workspace) || !real(s).starts_with(workspace))
}

async fn send(
    call: &Call,
    surface: &'static str,
    room: &Room,
    staged: Staged,
    dest: &str,
) -> Result<(), Stop> {
    let checked = blocking(surface, room, move || {
        let same = staged.is_untouched().map_err(|e| unstaged(surface, &e))?;
        let stream = staged.stream().map_err(|e| unstaged(surface, &e))?;
        if same { Ok(stream) } else { Err(changed(surface, "what was staged")) }
    });
    let stream = checked.await?;
    let sent = call.shared.deps.port.unpack(&call.reg().id, stream, dest);
    let sent =
        tokio::time::timeout(COPY_LIMIT, sent).await.map_err(|_| late(surface, COPY_LIMIT))?;
    sent.map_err(|e| Stop::fail(exit::FAILURE, format!("{surface}: {e}")))
}

/// Has the box pack its files into a file of the host's.
async fn stage(
    call: &Call,
    surface: &'static str,
    what: Pack,
    most: u64,
    limit: Duration,
    room: &Room,
) -> Result<Staged, Stop> {
    let file = Staged::file(&call.shared.deps.scratch).map_err(|e| unstaged(surface, &e))?;
    let theirs = file.try_clone().map_err(|e| unstaged(surface, &e))?;
    // The archive's own blocks come on top of what the files hold.
    let most = most.saturating_add(64 * 1024 * 1024);
    let packed = call.shared.deps.port.pack(&call.reg().id, what, theirs, most);
    let packed = tokio::time::timeout(limit, packed).await.map_err(|_| late(surface, limit))?;
    packed.map_err(|e| Stop::fail(exit::FAILURE, format!("{surface}: {e}")))?;
    blocking(surface, room, move || Staged::seal(file).map_err(|e| unstaged(surface, &e))).await
}

/// Writes what was shown, if it still is what was shown.
async fn write(
    surface: &'static str,
    room: &Room,
    staged: Staged,
    targets: Vec<Target>,
) -> Result<usize, Stop> {
    blocking(surface, room, move || {
        if !staged.is_untouched().map_err(|e| unstaged(surface, &e))? {
            return Err(changed(surface, "what was staged"));
        }
        place::write(&staged, &targets).map_err(|e| match e {
            NotWritten::Changed(path) => changed(surface, &shown(&path)),
            NotWritten::Failed { written, path, error } => {
                let text = format!(
                    "{surface}: {} cannot be written ({error}); {} had been written before.",
                    shown(&path),
                    count(written, "file")
                );
                Stop::fail(exit::FAILURE, text)
            }
        })
    })
    .await
}

fn changed(surface: &str, what: &str) -> Stop {
    Stop::denied(format!("{surface}: changed since approval: {what}; nothing was written."))
}

fn sent(surface: &str, what: &Refused) -> Stop {
    Stop::fail(exit::FAILURE, format!("{surface}: the box sent {what}; nothing was copied."))
}

fn late(surface: &str, limit: Duration) -> Stop {
    Stop::fail(exit::TIMED_OUT, format!("{surface}: timed out after {}ms", limit.as_millis()))
}

fn unstaged(surface: &str, error: &std::io::Error) -> Stop {
    Stop::fail(exit::FAILURE, format!("{surface}: cannot stage the copy on the host: {error}"))
}

/// Files are waited for on threads of their own, never by those that serve every box.
async fn blocking<T: Send + 'static>(
    surface: &'static str,
    room: &Room,
    work: impl FnOnce() -> Result<T, Stop> + Send + 'static,
) -> Result<T, Stop> {
    let broke = |e: tokio::task::JoinError| {
        Err(Stop::fail(exit::FAILURE, format!("{surface}: the work broke off: {e}")))
    };
    let room = room.clone();
    let work = move || {
        let done = work();
        drop(room);
        done
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(broke)
}

/// The one folder a box may fill without a question, when the person chose that.
fn own_folder(call: &Call, ground: &Ground) -> PathBuf {
    ground.workspace.join(".agentbox/out").join(call.reg().name.as_str())
}

/// How much is in a folder. One that cannot be counted is full.
fn held(folder: &Path) -> u64 {
    let (mut pending, mut total, mut seen) = (vec![folder.to_owned()], 0u64, 0);
    while let Some(dir) = pending.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return u64::MAX / 2,
        };
        for entry in entries.flatten() {
            seen += 1;
            match entry.metadata() {
                Ok(_) if seen > archive::MAX_ENTRIES => return u64::MAX / 2,
                Ok(m) if m.is_dir() => pending.push(entry.path()),
                Ok(m) => total = total.saturating_add(m.len()).min(u64::MAX / 2),
                Err(_) => return u64::MAX / 2,
            }
        }
    }
    total
}

fn last_name(path: &BoxPath) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}

fn is_special(target: &Target) -> bool {
    target.entry.what != What::Folder && runs_code(&target.path.to_string_lossy())
}

/// A plain file right in the place: what a rule may let pass unseen.
fn is_simple(target: &Target, place: &Place) -> bool {
    let hidden = target.entry.path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    let plain = matches!(target.entry.what, What::File { runs: false, .. });
    plain && !hidden && target.path.parent() == Some(&place.folder)
}

/// A folder whose files programs look for by name.
fn is_wide(folder: &Path, ground: &Ground) -> bool {
    let hidden =
        |part: std::path::Component<'_>| part.as_os_str().to_string_lossy().starts_with('.');
    // The box's own folder is made for it.
    if folder.starts_with(ground.workspace.join(".agentbox/out")) {
        return false;
    }
    let below = folder.strip_prefix(&ground.workspace);
    let below = below.or_else(|_| folder.strip_prefix(&ground.home)).unwrap_or(folder);
    ground.home.starts_with(folder)
        || ground.workspace.starts_with(folder)
        || below.components().any(hidden)
}

/// What the trail keeps of a copy to the host.
fn written_down(place: &Place, staged: &Staged, targets: &[Target]) -> serde_json::Value {
    let names = files(targets).take(SHOWN_FILES);
    let names: Vec<String> = names.map(|t| shortened(&name_in(place, t), SHOWN_PATH)).collect();
    json!({ "files": names, "to": place.shown(), "sha256": staged.digest, "bytes": bytes(targets) })
}

fn bytes(targets: &[Target]) -> u64 {
    targets.iter().map(|t| t.entry.size()).sum()
}

fn files(targets: &[Target]) -> impl Iterator<Item = &Target> {
    targets.iter().filter(|t| t.entry.what != What::Folder)
}

fn to_host_draft(
    call: &Call,
    copy: &CopyOut,
    place: &Place,
    targets: &[Target],
    staged: &Staged,
    ground: &Ground,
) -> Draft {
    let (n, total) = (files(targets).count(), bytes(targets));
    let dest = shortened(&place.shown(), SHOWN_PATH);
    let names: Vec<String> = files(targets).map(|t| name_in(place, t)).collect();
    let what = titled(&names);
    let mut draft = call.draft(Tier::Sensitive, format!("Copy {what} to {dest}"), dest.clone());
    let sources: Vec<String> =
        copy.sources.iter().map(|s| format!("{}:{}", call.reg().name, s.as_str())).collect();
    draft.evidence.facts = vec![
        Fact { label: "From".into(), value: shortened(&sources.join(", "), 1000) },
        Fact { label: "To".into(), value: shortened(&place.shown(), 1000) },
    ];
    draft.evidence.summary = Some(format!("{}, {}", count(n, "file"), size(total)));
    list_targets(&mut draft, targets, place);
    let mut warnings = vec!["writes to this computer".to_owned()];
    if !place.folder.starts_with(&ground.workspace) {
        warnings.push("outside the project folder".to_owned());
    }
    warnings.extend(target_warnings(targets, place));
    warnings.extend(too_large(total, ground));
    draft.warnings = warnings;
    draft.argv = shown_argv(
        &std::iter::once("cp".to_owned()).chain(sources).chain([place.shown()]).collect::<Vec<_>>(),
    );
    // A rule covers new and harmless files of one place only: what it lets pass nobody looks at.
    let marked = files(targets).any(|t| t.overwrites() || is_special(t) || !is_simple(t, place));
    let wide = is_wide(&place.folder, ground);
    draft.remember = (!marked && !wide && total <= ground.large).then(|| Rememberable {
        only: None,
        exact: Scope {
            key: place.folder.to_string_lossy().into_owned(),
            what: format!("copy new files to {}", shortened(&shown(&place.folder), SHOWN_PATH)),
        },
        kind: None,
    });
    draft.plan = plan_of(staged, targets);
    draft
}

fn download_draft(
    call: &Call,
    place: &Place,
    targets: &[Target],
    staged: &Staged,
    ground: &Ground,
) -> Draft {
    let (n, total) = (files(targets).count(), bytes(targets));
    let over = files(targets).filter(|t| t.overwrites()).count();
    let title = format!("Update {} of {} from the box", count(n, "file"), call.reg().project);
    let mut draft = call.draft(Tier::Sensitive, title, shortened(&place.shown(), SHOWN_PATH));
    let source = format!("{}:{}", call.reg().name, paths::WORKSPACE);
    draft.evidence.facts = vec![
        Fact { label: "From".into(), value: source.clone() },
        Fact { label: "To".into(), value: place.shown() },
    ];
    let summary = format!("{} added, {over} overwritten, {}", n - over, size(total));
    draft.evidence.summary = Some(summary);
    list_targets(&mut draft, targets, place);
    draft.warnings = std::iter::once("writes to this computer".to_owned())
        .chain(target_warnings(targets, place))
        .chain(too_large(total, ground))
        .collect();
    draft.argv = shown_argv(&["cp".to_owned(), source, place.shown()]);
    draft.plan = plan_of(staged, targets);
    draft
}

fn from_host_draft(call: &Call, dest: &str, gathered: &Gathered, ground: &Ground) -> Draft {
    let files = &gathered.files;
    let total: u64 = files.iter().map(|f| f.bytes).sum();
    let into = format!("{}:{dest}", call.reg().name);
    let names: Vec<String> = files.iter().map(|f| name_of(f, ground)).collect();
    let title = format!("Copy {} of this computer into the box", titled(&names));
    let mut draft = call.draft(Tier::Sensitive, title, shortened(&into, SHOWN_PATH));
    let sources: Vec<String> = gathered.sources.iter().map(|s| shown(s)).collect();
    draft.evidence.facts = vec![
        Fact { label: "From".into(), value: shortened(&sources.join(", "), 1000) },
        Fact { label: "To".into(), value: shortened(&into, 1000) },
    ];
    draft.evidence.summary = Some(format!("{}, {}", count(files.len(), "file"), size(total)));
    let line = |f: &Found| {
        let to = f.link.as_ref().map(|to| format!(" → {}", shown(to))).unwrap_or_default();
        let note = match (f.secret, f.outside, f.link.is_some()) {
            (true, ..) => Some("looks like a credential"),
            (_, true, true) => Some("leads out of the project"),
            (_, true, false) => Some("outside the project"),
            _ => None,
        };
        let path = shortened(&format!("{}{to}", name_of(f, ground)), SHOWN_PATH);
        (f.secret || f.outside, FileLine { path, bytes: f.bytes, note: note.map(str::to_owned) })
    };
    list_files(&mut draft, files.iter().map(line).collect());
    let names = |keep: &dyn Fn(&Found) -> bool| -> Vec<String> {
        files.iter().filter(|f| keep(f)).map(|f| shown(&f.path)).collect()
    };
    let warn = |what: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| format!("{what}: {}", named(&names)))
    };
    draft.warnings = [
        warn("looks like a credential", names(&|f| f.secret)),
        warn("outside the project", names(&|f| f.outside && f.link.is_none())),
        warn("leads out of the project", names(&|f| f.outside && f.link.is_some())),
        too_large(total, ground),
    ]
    .into_iter()
    .flatten()
    .collect();
    let argv = std::iter::once("cp".to_owned()).chain(sources).chain([into]);
    draft.argv = shown_argv(&argv.collect::<Vec<_>>());
    draft.remember = remember_from_host(gathered, ground, total);
    draft.plan = format!("{} {dest}", gathered.staged.digest);
    draft
}

/// What looks like a credential is looked at every time, and so is more than the usual size.
fn remember_from_host(gathered: &Gathered, ground: &Ground, total: u64) -> Option<Rememberable> {
    if gathered.files.iter().any(|f| f.secret) || total > ground.large {
        return None;
    }
    let sources = &gathered.sources;
    let names: Vec<String> = sources.iter().map(|s| shown(s)).collect();
    let exact = Scope {
        key: format!("{sources:?}"),
        what: format!("copy {} of this computer", named(&names)),
    };
    let inside = sources.iter().all(|s| s.starts_with(&ground.workspace))
        && gathered.files.iter().all(|f| !f.outside);
    let kind = inside.then(|| Scope {
        key: format!("within {}", ground.workspace.display()),
        what: format!("copy files of {} that look harmless", shown(&ground.workspace)),
    });
    Some(Rememberable { exact, kind, only: None })
}

/// What is bound to the answer beside what is shown: the very bytes, and what each file meets.
fn plan_of(staged: &Staged, targets: &[Target]) -> String {
    format!("{} {targets:?}", staged.digest)
}

fn list_targets(draft: &mut Draft, targets: &[Target], place: &Place) {
    let line = |t: &Target| {
        let special = is_special(t);
        let link = match &t.entry.what {
            What::Link { target } => format!(" → {target}"),
            _ => String::new(),
        };
        let note = match (special, t.overwrites(), &t.entry.what) {
            (true, true, _) => Some("overwrites; runs code on this computer"),
            (true, false, _) => Some("runs code on this computer"),
            (false, true, _) => Some("overwrites"),
            (false, false, What::File { runs: true, .. }) => Some("can be run"),
            (false, false, What::Link { .. }) => Some("a link"),
            _ => None,
        };
        let path = shortened(&format!("{}{link}", name_in(place, t)), SHOWN_PATH);
        let marked = special || t.overwrites();
        (marked, FileLine { path, bytes: t.entry.size(), note: note.map(str::to_owned) })
    };
    list_files(draft, files(targets).map(line).collect());
}

/// The marked ones first: they must not hide behind the number of the others.
fn list_files(draft: &mut Draft, mut lines: Vec<(bool, FileLine)>) {
    lines.sort_by_key(|(marked, _)| !marked);
    let all = lines.len();
    let mut room = SHOWN_BYTES;
    let fits = |(_, line): &(bool, FileLine)| {
        let length = line.path.len() + line.note.as_ref().map_or(0, String::len);
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    };
    let shown = lines.into_iter().take(SHOWN_FILES).take_while(fits).map(|(_, line)| line);
    draft.evidence.files = shown.collect();
    let more = all - draft.evidence.files.len();
    draft.evidence.more_files = u32::try_from(more).unwrap_or(u32::MAX);
}

fn target_warnings(targets: &[Target], place: &Place) -> Vec<String> {
    let names = |keep: &dyn Fn(&Target) -> bool| -> Vec<String> {
        files(targets).filter(|t| keep(t)).map(|t| name_in(place, t)).collect()
    };
    let over = names(&Target::overwrites);
    let special = names(&is_special);
    let mut warnings = Vec::new();
    if !special.is_empty() {
        warnings.push(format!("runs code on this computer: {}", named(&special)));
    }
    if !over.is_empty() {
        warnings.push(format!("overwrites {}: {}", count(over.len(), "file"), named(&over)));
    }
    warnings
}

fn too_large(total: u64, ground: &Ground) -> Option<String> {
    (total > ground.large).then(|| format!("larger than {} (box.cpMaxBytes)", size(ground.large)))
}

/// A target as one would say it while looking at the destination.
fn name_in(place: &Place, target: &Target) -> String {
    target.path.strip_prefix(&place.folder).unwrap_or(&target.path).to_string_lossy().into_owned()
}

/// A file of the host as one would say it while looking at the project.
fn name_of(found: &Found, ground: &Ground) -> String {
    let name = found.path.strip_prefix(&ground.workspace).unwrap_or(&found.path);
    name.to_string_lossy().into_owned()
}

/// One file by its name, more by their number.
fn titled(names: &[String]) -> String {
    match names {
        [one] => shortened(one, 80),
        all => count(all.len(), "file"),
    }
}

/// A few names, and how many more there are.
fn named<S: AsRef<str>>(names: &[S]) -> String {
    let first: Vec<String> =
        names.iter().take(NAMED).map(|name| shortened(name.as_ref(), SHOWN_PATH)).collect();
    let more = names.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}

fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
