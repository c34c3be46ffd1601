//! Files from this computer, on the list of a project's `agentbox.yaml`.
//!
//! The list is one a box may have written, through a merge: everything on it is looked at before a
//! person is asked, and what they were shown is what is opened. A path is followed to its end once; from
//! then on that end is opened by handle, through no link, so nothing can be put in its place.

mod again;
mod pack;
mod said;

pub use again::Again;
pub use said::{Since, Then};

use ::project::carry::{Excludes, Planned, looks_secret, plan};
use files::archive::MAX_ENTRIES;
use files::folder::{Folder, Kind, Seen, is_detour};
use files::rules::{MAX_DEPTH, Tops, check_link};
use protocol::Millis;
use protocol::carry::{CarryBy, CarryKind, CarryLine};
use protocol::text::{shortened, size, visible};
use sha2::{Digest, Sha256};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where `~/` is in a box.
const BOX_HOME: &str = "/home/vscode";

/// A list a person agreed to.
#[derive(Debug, Clone)]
pub struct Agreed {
    pub plan: Plan,
    pub yes: Yes,
    /// What cannot be copied is only told.
    pub best_effort: bool,
}

/// How and when a person agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yes {
    pub by: CarryBy,
    /// None where nobody wrote it down.
    pub at: Option<Millis>,
}

/// A list that can be copied, as it is on disk now.
#[derive(Debug, Clone)]
pub struct Plan {
    entries: Vec<Entry>,
    limit: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    planned: Planned,
    /// The source with every link followed.
    real: PathBuf,
    what: What,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Missing,
    File { size: u64, mode: u32 },
    Folder { size: u64, files: usize },
}

/// Looks at everything on the list; whatever cannot be copied is said at once.
pub fn resolve(
    project: &::project::Project,
    root: &Path,
    home: &Path,
    limit: u64,
) -> Result<Plan, Vec<String>> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, home) = (canonical(root), canonical(home));
    let planned = plan(project, &root, &home, BOX_HOME)?;
    let mut entries = Vec::with_capacity(planned.len());
    let mut refused = Vec::new();
    for planned in planned {
        let shown = ::project::carry::shown(&planned.item);
        match look(planned, &root, &home, limit) {
            Ok(entry) => entries.push(entry),
            Err(why) => refused.push(format!("{shown}: {why}")),
        }
    }
    let plan = Plan { entries, limit };
    refused.extend(plan.twice());
    if refused.is_empty() { Ok(plan) } else { Err(refused) }
}

fn look(planned: Planned, root: &Path, home: &Path, limit: u64) -> Result<Entry, String> {
    let real = match planned.source.canonicalize() {
        Ok(real) => real,
        Err(e) if e.kind() == io::ErrorKind::NotFound && planned.item.optional => {
            let real = planned.source.clone();
            return Ok(Entry { planned, real, what: What::Missing, warnings: Vec::new() });
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err("it is not there; `optional: true` lets it be missing".to_owned());
        }
        Err(e) => return Err(format!("it cannot be looked at: {e}")),
    };
    let seen = seen(&real).map_err(|e| format!("it cannot be looked at: {e}"))?;
    let mut warnings = Vec::new();
    if let Some(warning) = leaves(&planned, &real, root, home) {
        warnings.push(warning);
    }
    if looks_secret(&real) || looks_secret(Path::new(&planned.item.src)) {
        warnings.push("looks like a credential".to_owned());
    }
    let too_large = |bytes: u64| {
        let (bytes, limit) = (size(bytes), size(limit));
        format!(
            "it has {bytes}, more than the {limit} of box.cpMaxBytes; leave something out with exclude, or raise it"
        )
    };
    let what = match seen.kind {
        Kind::File if seen.size > limit => return Err(too_large(seen.size)),
        Kind::File => What::File { size: seen.size, mode: seen.mode & 0o777 },
        Kind::Folder if planned.is_rendered() => {
            return Err(
                "replaceEnvs, replace and rules are for a file, and this is a folder".to_owned()
            );
        }
        Kind::Folder => {
            let mut sum = Sum { limit, ..Sum::default() };
            let walked = walk(&real, planned.excludes(), &mut |found: &Found<'_>| sum.take(found));
            match walked {
                Ok(()) => {}
                Err(_) if sum.size > limit => return Err(too_large(sum.size)),
                Err(e) => return Err(format!("it cannot be looked through: {e}")),
            }
            if sum.leaving > 0 {
                warnings.push(format!("{} links that lead out of it are left out", sum.leaving));
            }
            if sum.secrets > 0 {
                warnings.push(format!("{} files in it look like credentials", sum.secrets));
            }
            What::Folder { size: sum.size, files: sum.files }
        }
        Kind::Link | Kind::Other => return Err("it is neither a file nor a folder".to_owned()),
    };
    Ok(Entry { planned, real, what, warnings })
}

/// Through no link: the path was canonical a moment ago.
fn seen(real: &Path) -> io::Result<Seen> {
    let (folder, name) = opened(real)?;
    folder.look(&name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn opened(real: &Path) -> io::Result<(Folder, PathBuf)> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the whole disk"));
    };
    let folder = Folder::at(parent)
        .map_err(|e| if is_detour(&e) { io::Error::other("it has moved meanwhile") } else { e })?;
    Ok((folder, PathBuf::from(name)))
}

/// Where a source leads that is not the file it looks like, however it is written.
fn leaves(planned: &Planned, real: &Path, root: &Path, home: &Path) -> Option<String> {
    if planned.source == real {
        return None;
    }
    let of_project = planned.of_project || planned.source.starts_with(root);
    let how = match (of_project, real.starts_with(root), real.starts_with(home)) {
        (true, false, _) => "a link that leads out of the project",
        (false, false, false) => "a link that leads out of your home",
        _ => "a link",
    };
    let end = match real.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => real.display().to_string(),
    };
    Some(format!("{how}, to {}", visible(&end)))
}

/// Something in a folder, by its path from there.
struct Found<'a> {
    path: &'a str,
    folder: &'a Folder,
    name: &'a Path,
    seen: Seen,
}

#[derive(Default)]
struct Sum {
    limit: u64,
    size: u64,
    files: usize,
    leaving: usize,
    secrets: usize,
}

impl Sum {
    fn take(&mut self, found: &Found<'_>) -> io::Result<()> {
        match found.seen.kind {
            Kind::File => {
                self.files += 1;
                self.size = self.size.saturating_add(found.seen.size);
                self.secrets += usize::from(looks_secret(Path::new(found.path)));
            }
            Kind::Link if link_target(found)?.is_none() => self.leaving += 1,
            _ => {}
        }
        if self.size > self.limit { Err(io::Error::other("it is too large")) } else { Ok(()) }
    }
}

/// Where a link in a folder leads, when that is in the folder.
fn link_target(found: &Found<'_>) -> io::Result<Option<std::ffi::OsString>> {
    let target = found.folder.target(found.name)?;
    let parts: Vec<&[u8]> = found.path.as_bytes().split(|b| *b == b'/').collect();
    let inside = check_link(&parts, target.as_bytes(), Tops::Any).is_ok();
    Ok(inside.then_some(target))
}

/// Everything in a folder that is not left out, a folder before what is in it, by names.
fn walk(
    top: &Path,
    excludes: Excludes<'_>,
    each: &mut impl FnMut(&Found<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (parent, name) = opened(top)?;
    let mut left = MAX_ENTRIES;
    into(&parent.enter(&name)?, "", excludes, 0, &mut left, each)
}

fn into(
    folder: &Folder,
    at: &str,
    excludes: Excludes<'_>,
    depth: usize,
    left: &mut usize,
    each: &mut impl FnMut(&Found<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("it is nested too deep"));
    }
    for name in folder.names(*left)? {
        let Some(text) = name.to_str() else {
            return Err(io::Error::other("a name in it is not UTF-8"));
        };
        let path = if at.is_empty() { text.to_owned() } else { format!("{at}/{text}") };
        if excludes.leaves_out(&path) {
            continue;
        }
        *left = left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(format!("it has more than {MAX_ENTRIES} files")))?;
        let name = Path::new(text);
        let Some(seen) = folder.look(name)? else { continue };
        let is_folder = seen.kind == Kind::Folder;
        each(&Found { path: &path, folder, name, seen })?;
        if is_folder {
            into(&folder.enter(name)?, &path, excludes, depth + 1, left, each)?;
        }
    }
    Ok(())
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are that would be copied.
    pub fn copies(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_there()).count()
    }

    pub fn lines(&self) -> Vec<CarryLine> {
        self.entries.iter().map(Entry::line).collect()
    }

    /// The same only for the very same list on the very same files.
    pub fn digest(&self) -> String {
        let entries = self.entries.iter().map(|entry| {
            let item = &entry.planned.item;
            serde_json::json!([
                entry.line(),
                format!("{:?}", entry.real),
                format!("{:?}", entry.what),
                item.exclude,
                item.default_excludes,
                format!("{:?}", entry.planned.rules),
            ])
        });
        let all = serde_json::Value::Array(entries.collect()).to_string();
        Sha256::digest(all.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// What is copied of it when only some is, each under its own number.
    fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut plan = self.clone();
        for (_, entry) in plan.entries.iter_mut().enumerate().filter(|(at, _)| !keep(*at)) {
            entry.what = What::Missing;
        }
        plan
    }

    /// Two that would end in one place.
    fn twice(&self) -> Vec<String> {
        let there = self.entries.iter().filter(|entry| entry.is_there());
        let places: Vec<String> = there.map(Entry::place).collect();
        let again = |(at, place): (usize, &String)| {
            places[..at]
                .contains(place)
                .then(|| format!("{}: two entries go there", shortened(place, 200)))
        };
        places.iter().enumerate().filter_map(again).collect()
    }
}

impl Entry {
    fn is_there(&self) -> bool {
        self.what != What::Missing
    }

    fn name(&self) -> String {
        let name = self.planned.source.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where it ends up in the box.
    fn place(&self) -> String {
        match (&self.what, self.planned.dest.strip_suffix('/')) {
            (What::File { .. }, Some(folder)) => format!("{folder}/{}", self.name()),
            (_, Some(folder)) => folder.to_owned(),
            (_, None) => self.planned.dest.clone(),
        }
    }

    fn line(&self) -> CarryLine {
        let item = &self.planned.item;
        let (kind, bytes, own_mode) = match self.what {
            What::Missing => (CarryKind::Missing, 0, None),
            What::File { size, mode } => (CarryKind::File, size, Some(mode)),
            What::Folder { size, .. } => (CarryKind::Folder, size, None),
        };
        let mut notes = Vec::new();
        if let What::Folder { files, .. } = self.what {
            notes.push(if files == 1 { "1 file".to_owned() } else { format!("{files} files") });
        }
        if item.optional {
            notes.push("optional".to_owned());
        }
        if item.replace_envs {
            notes.push("placeholders filled in".to_owned());
        }
        match self.planned.rules.len() {
            0 => {}
            1 => notes.push("1 rule".to_owned()),
            many => notes.push(format!("{many} rules")),
        }
        CarryLine {
            src: visible(&item.src),
            dest: visible(&self.place()),
            kind,
            bytes,
            mode: item.mode.or(own_mode).map(|mode| format!("{mode:04o}")),
            user: item.user,
            notes,
            warnings: self.warnings.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
