//! Changes one key in a settings file and leaves every other line, comment and blank as it was.
//!
//! Whoever writes is alone: among threads by a mutex, among processes by a lock on a file beside the
//! settings, which the kernel lets go of however its holder ends. Nobody waits for it without an end.
//!
//! What is about to be written is read again first: unless it says exactly what the file said before
//! plus this change, and still has every comment, nothing is written. Two keys can share one value
//! in YAML, so this is not only against mistakes of ours.

use crate::{Error, Layer, Source, layers};
use serde_norway::{Mapping, Value};
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yaml_edit::path::YamlPath;
use yaml_edit::{Document, YamlFile, YamlValue};

/// Two changes at once would each start from the file without the other.
static EDITING: Mutex<()> = Mutex::new(());
/// Beside a settings file, and always empty. It stays: one that is removed while somebody waits for it
/// would be two.
const LOCK: &str = ".lock";
/// How long another process may take; a change takes it milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// Nobody else changes the file while this is there.
struct Alone {
    // In this order: another thread must not find the file still locked by this one.
    _among_processes: File,
    _among_threads: MutexGuard<'static, ()>,
}

impl Alone {
    /// Makes the file's folder if need be.
    fn with(file: &Path) -> Result<Self, Error> {
        let among_threads = EDITING.lock().unwrap_or_else(PoisonError::into_inner);
        let unwritable = |source| Error::Write { path: file.to_owned(), source };
        make_folder(file).map_err(unwritable)?;
        let mut options = File::options();
        let open = options.create(true).truncate(false).write(true).mode(0o600);
        let mut beside = file.as_os_str().to_owned();
        beside.push(LOCK);
        let lock = open.open(beside).map_err(unwritable)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                // Where files cannot be locked, this process is alone at least with itself.
                Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => break,
                Err(TryLockError::Error(e)) => return Err(unwritable(e)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(POLL);
                }
                Err(TryLockError::WouldBlock) => return Err(Error::Busy(file.to_owned())),
            }
        }
        Ok(Self { _among_processes: lock, _among_threads: among_threads })
    }
}

/// A value that fits behind a key on its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    Bool(bool),
    Number(u64),
    Text(String),
    /// Words, on the same line or on lines of their own.
    List(Vec<String>),
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(yes) => yes.into(),
            Scalar::Number(number) => number.into(),
            Scalar::Text(text) => text.into(),
            Scalar::List(all) => all.into_iter().map(Value::from).collect::<Vec<_>>().into(),
        }
    }
}

/// Sets a key such as `integrations.notion.enabled`, making the file and its folder if need be.
/// Whether a project's file may hold the key is found out when it is loaded.
pub fn set(file: &Path, key: &str, value: Scalar) -> Result<(), Error> {
    let _alone = Alone::with(file)?;
    let edit = Edit::open(file, key)?;
    let mut wanted = edit.given.clone();
    put(&mut wanted, &edit.words, value.clone().into());
    let (known, _) = layers::without_foreign(wanted.clone());
    layers::typed(known).map_err(|why| edit.invalid(format!("{key}: {why}")))?;
    let text = match edit.parsed() {
        Some((whole, document)) => {
            match &value {
                Scalar::Bool(yes) => document.try_set_path(key, *yes),
                Scalar::Number(number) => document.try_set_path(key, *number),
                Scalar::Text(text) => document.try_set_path(key, text.as_str()),
                Scalar::List(all) => {
                    let all = all.iter().map(|word| YamlValue::scalar(word.as_str()));
                    document.try_set_path(key, YamlValue::from_sequence(all.collect()))
                }
            }
            .map_err(|_| edit.by_hand())?;
            whole.to_string()
        }
        None => edit.appended(&wanted)?,
    };
    if comments(&text) != comments(&edit.text) {
        return Err(edit.by_hand());
    }
    edit.write(&text, &wanted)
}

/// Removes a key with what is below it, and says whether it was there. A comment on the same line
/// goes with it.
pub fn unset(file: &Path, key: &str) -> Result<bool, Error> {
    // Nothing is made to find out that there is nothing.
    if !file.exists() {
        return Ok(false);
    }
    let _alone = Alone::with(file)?;
    let edit = Edit::open(file, key)?;
    let mut wanted = edit.given.clone();
    if !take(&mut wanted, &edit.words) {
        return Ok(false);
    }
    let (whole, document) = edit.parsed().ok_or_else(|| edit.by_hand())?;
    document.try_remove_path(key).map_err(|_| edit.by_hand())?;
    edit.write(&whole.to_string(), &wanted)?;
    Ok(true)
}

/// Makes a file that is not there yet, with this comment at its top. What cannot be a comment is left
/// out: names of folders come from repositories, and YAML knows more ends of a line than one.
pub fn begin(file: &Path, comment: &str) -> Result<(), Error> {
    let _alone = Alone::with(file)?;
    if file.exists() {
        return Ok(());
    }
    replace(file, &as_comment(comment))
        .map_err(|source| Error::Write { path: file.to_owned(), source })
}

/// A line that holds nothing else, or none.
pub fn as_comment(text: &str) -> String {
    if protocol::text::visible(text) == text { format!("# {text}\n") } else { String::new() }
}

/// A key that is another one than before; no value is none any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    /// As it could be typed.
    pub value: Option<String>,
}

/// Writes a whole file anew, if what is in it is in order and what is there now is still what the
/// writer began with: `unchanged` looks at it, none is no file. What the new text changes.
pub fn write(
    file: &Path,
    text: &str,
    unchanged: impl FnOnce(Option<&str>) -> bool,
) -> Result<Vec<Change>, Error> {
    let invalid = |reason| Error::Invalid { path: file.to_owned(), reason };
    layers::parse(text).map_err(invalid)?;
    let now = layers::keys_of(text).map_err(invalid)?;
    let _alone = Alone::with(file)?;
    // A link stays one: what it points to is written.
    let path = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let there = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(source) => return Err(Error::Read { path, source }),
    };
    if !unchanged(there.as_deref()) {
        return Err(Error::Changed(file.to_owned()));
    }
    replace(&path, text).map_err(|source| Error::Write { path: path.clone(), source })?;
    // What could not be read said nothing.
    let before = layers::keys_of(&there.unwrap_or_default()).unwrap_or_default();
    Ok(changes(before, now))
}

fn changes(before: Mapping, now: Mapping) -> Vec<Change> {
    let layer = |given| Layer::new(Source::Global, PathBuf::new(), given);
    let (before, now) = (layer(before), layer(now));
    let gone = before.keys().into_iter().filter(|key| now.value(key).is_none());
    let new = now.keys().into_iter().filter(|key| now.value(key) != before.value(key));
    new.chain(gone).map(|key| Change { value: now.value(&key), key }).collect()
}

/// One file about to be changed.
struct Edit {
    path: PathBuf,
    key: String,
    words: Vec<String>,
    text: String,
    given: Mapping,
}

impl Edit {
    fn open(file: &Path, key: &str) -> Result<Self, Error> {
        // A link stays one: what it points to is written.
        let path = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let invalid = |reason| Error::Invalid { path: path.clone(), reason };
        let words: Vec<String> = key.split('.').map(str::to_owned).collect();
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if words.iter().any(|word| word.is_empty() || !word.bytes().all(plain)) {
            return Err(invalid(format!("{key:?} is not the name of a setting")));
        }
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::Read { path, source }),
        };
        layers::parse(&text).map_err(invalid)?;
        let given = layers::keys_of(&text).map_err(invalid)?;
        Ok(Self { path, key: key.to_owned(), words, text, given })
    }

    /// The file as a tree that remembers every character; none when it holds no keys yet.
    fn parsed(&self) -> Option<(YamlFile, Document)> {
        let whole = YamlFile::from_str(&self.text).ok()?;
        let document = whole.document()?;
        document.as_mapping()?;
        Some((whole, document))
    }

    /// A file of nothing but comments, with the first key after them.
    fn appended(&self, wanted: &Mapping) -> Result<String, Error> {
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&serde_norway::to_string(wanted).map_err(|e| self.invalid(e.to_string()))?);
        Ok(text)
    }

    fn write(&self, text: &str, wanted: &Mapping) -> Result<(), Error> {
        let says = layers::parse(text).and_then(|_| layers::keys_of(text));
        if says.as_ref() != Ok(wanted) {
            return Err(self.by_hand());
        }
        replace(&self.path, text).map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    fn by_hand(&self) -> Error {
        Error::ByHand { path: self.path.clone(), key: self.key.clone() }
    }

    fn invalid(&self, reason: String) -> Error {
        Error::Invalid { path: self.path.clone(), reason }
    }
}

fn make_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    make_folder(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    // Made for its owner alone, and so is the file it becomes.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|e| e.error)?;
    std::fs::File::open(folder)?.sync_all()
}

pub(crate) fn put(into: &mut Mapping, words: &[String], value: Value) {
    match words {
        [] => {}
        [last] => {
            into.insert(last.as_str().into(), value);
        }
        [first, rest @ ..] => {
            let inner = into.entry(first.as_str().into()).or_insert(Value::Null);
            if !inner.is_mapping() {
                *inner = Value::Mapping(Mapping::new());
            }
            if let Value::Mapping(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Takes a key out, with the sections that are empty without it.
fn take(from: &mut Mapping, words: &[String]) -> bool {
    let [first, rest @ ..] = words else { return false };
    if rest.is_empty() {
        return from.remove(first.as_str()).is_some();
    }
    let Some(Value::Mapping(inner)) = from.get_mut(first.as_str()) else { return false };
    let taken = take(inner, rest);
    if taken && inner.is_empty() {
        from.remove(first.as_str());
    }
    taken
}

fn comments(text: &str) -> Vec<String> {
    let Ok(whole) = YamlFile::from_str(text) else { return Vec::new() };
    whole.comments().map(|comment| comment.text().to_owned()).collect()
}

#[cfg(test)]
mod tests;
