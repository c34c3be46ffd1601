//! Host files as a tar stream, in constant memory.
//!
//! A blocking task writes the archive into a bounded channel; when nobody receives any more, it
//! stops at its next write. Names are bytes. What cannot be read, or is neither file, folder nor
//! link, is left out and logged: one odd file must not keep a project out of its box.

use bytes::Bytes;
use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Folders that are made by tools and can be made again. Natives in them are built for the host.
pub(crate) const MADE_BY_TOOLS: [&str; 13] = [
    "node_modules",
    ".next",
    ".nuxt",
    ".turbo",
    ".svelte-kit",
    "dist",
    "build",
    "out",
    "target",
    ".venv",
    "__pycache__",
    ".cache",
    ".parcel-cache",
];

const CHUNK: usize = 64 * 1024;

/// What goes into the archive, named relative to `root`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub root: PathBuf,
    /// Everything below the root, without `skip`.
    pub whole: bool,
    pub skip: HashSet<PathBuf>,
    /// These as well; one that ends with `/` is a whole folder.
    pub names: Vec<PathBuf>,
}

/// An archive being made.
pub(crate) struct Archive {
    pub chunks: mpsc::Receiver<io::Result<Bytes>>,
    /// How many bytes it will have, about; 0 until that is known.
    pub size: Arc<AtomicU64>,
}

impl Selection {
    /// Starts archiving.
    pub fn archive(self) -> Archive {
        let (sender, chunks) = mpsc::channel(8);
        let size = Arc::new(AtomicU64::new(0));
        let measured = size.clone();
        tokio::task::spawn_blocking(move || {
            let mut size = Measure(0);
            if self.each(&mut size).is_ok() {
                measured.store(size.0, Ordering::Relaxed);
            }
            let mut tar = tar::Builder::new(Sender::new(sender.clone()));
            let written = self.each(&mut Packer(&mut tar));
            let written = written.and_then(|()| tar.into_inner()?.flush());
            if let Err(error) = written {
                let _ = sender.blocking_send(Err(error));
            }
        });
        Archive { chunks, size }
    }

    fn each(&self, to: &mut impl Take) -> io::Result<()> {
        if self.whole {
            self.folder(to, Path::new(""))?;
        }
        for name in &self.names {
            if name.as_os_str().as_encoded_bytes().ends_with(b"/") {
                self.folder(to, name)?;
            } else {
                to.take(&self.root, name)?;
            }
        }
        Ok(())
    }

    /// A whole folder, without what tools made and without git's own data: the configuration in
    /// there may hold credentials.
    fn folder(&self, to: &mut impl Take, folder: &Path) -> io::Result<()> {
        let mut pending = vec![folder.to_owned()];
        while let Some(folder) = pending.pop() {
            let Ok(entries) = std::fs::read_dir(self.root.join(&folder)) else {
                to.missed(&folder);
                continue;
            };
            let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let name = entry.file_name();
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let made = MADE_BY_TOOLS.iter().any(|made| name == *made);
                let path = folder.join(&name);
                if name == ".git" || (is_folder && made) || self.skip.contains(&path) {
                    continue;
                }
                to.take(&self.root, &path)?;
                if is_folder {
                    pending.push(path);
                }
            }
        }
        Ok(())
    }
}

/// Whoever is shown each entry.
trait Take {
    fn take(&mut self, root: &Path, name: &Path) -> io::Result<()>;
    /// A folder that cannot be looked into.
    fn missed(&mut self, _: &Path) {}
}

/// Adds up what an archive will need.
struct Measure(u64);

impl Take for Measure {
    fn take(&mut self, root: &Path, name: &Path) -> io::Result<()> {
        const BLOCK: u64 = 512;
        if let Ok(data) = root.join(name).symlink_metadata() {
            let content = if data.is_file() { data.len().div_ceil(BLOCK) * BLOCK } else { 0 };
            self.0 = self.0.saturating_add(BLOCK + content);
        }
        Ok(())
    }
}

struct Packer<'a, W: Write>(&'a mut tar::Builder<W>);

impl<W: Write> Take for Packer<'_, W> {
    fn missed(&mut self, folder: &Path) {
        left_out(folder, "cannot be read");
    }

    fn take(&mut self, root: &Path, name: &Path) -> io::Result<()> {
        let tar = &mut *self.0;
        let path = root.join(name);
        let Ok(data) = path.symlink_metadata() else {
            left_out(name, "is gone");
            return Ok(());
        };
        let mut header = header(&data);
        if data.is_symlink() {
            header.set_entry_type(tar::EntryType::Symlink);
            return match std::fs::read_link(&path) {
                Ok(target) => tar.append_link(&mut header, name, target),
                Err(_) => Ok(()),
            };
        }
        if data.is_dir() {
            header.set_entry_type(tar::EntryType::Directory);
            return tar.append_data(&mut header, name, io::empty());
        }
        if !data.is_file() {
            left_out(name, "is no file");
            return Ok(());
        }
        let Ok(file) = File::open(&path) else {
            left_out(name, "cannot be read");
            return Ok(());
        };
        header.set_size(data.len());
        // The file may grow or shrink meanwhile; the archive needs exactly what its header says.
        let exact = file.take(data.len()).chain(io::repeat(0)).take(data.len());
        tar.append_data(&mut header, name, exact)
    }
}

fn header(data: &Metadata) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(data.mode() & 0o777);
    header.set_mtime(u64::try_from(data.mtime()).unwrap_or(0));
    header.set_size(0);
    header
}

fn left_out(name: &Path, why: &str) {
    tracing::warn!(name = %name.display(), why, "left out of the box");
}

/// An archive's bytes on their way to whoever receives them, in chunks.
pub(crate) struct Sender {
    sender: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Sender {
    pub fn new(sender: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self { sender, buffer: Vec::new() }
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.buffer);
        self.sender.blocking_send(Ok(chunk.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    fn of(root: &Path) -> Selection {
        Selection { root: root.to_owned(), ..Selection::default() }
    }

    async fn unpack(selection: Selection) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut receiver = selection.archive().chunks;
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.recv().await {
            bytes.extend_from_slice(&chunk.unwrap());
        }
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read = |mut entry: tar::Entry<'_, &[u8]>| {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if let Some(target) = entry.link_name_bytes() {
                content = target.to_vec();
            }
            (entry.path_bytes().to_vec(), content)
        };
        archive.entries().unwrap().map(|entry| read(entry.unwrap())).collect()
    }

    #[tokio::test]
    async fn named_files_arrive_byte_for_byte() {
        let temp = tempfile::tempdir().unwrap();
        let odd = PathBuf::from(OsString::from_vec(b"odd\xff".to_vec()));
        let long: PathBuf = ["d".repeat(90), "e".repeat(90)].iter().collect();
        std::fs::create_dir_all(temp.path().join(long.parent().unwrap())).unwrap();
        std::fs::write(temp.path().join(&odd), "o").unwrap();
        std::fs::write(temp.path().join(&long), vec![7; 300_000]).unwrap();
        std::os::unix::fs::symlink("/etc/target", temp.path().join("link")).unwrap();
        nix::unistd::mkfifo(&temp.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let names = vec![odd, long.clone(), "link".into(), "pipe".into(), "vanished".into()];
        let files = unpack(Selection { names, ..of(temp.path()) }).await;
        assert_eq!(files.len(), 3);
        assert_eq!(files[b"odd\xff".as_slice()], b"o");
        assert_eq!(files[long.as_os_str().as_encoded_bytes()], vec![7; 300_000]);
        assert_eq!(files[b"link".as_slice()], b"/etc/target");
    }

    #[tokio::test]
    async fn a_plain_folder_goes_without_what_tools_made() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["src/a", "src/target/x", "node_modules/y", "api/.git/config", "empty/dir/f"] {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        std::fs::remove_file(temp.path().join("empty/dir/f")).unwrap();
        std::fs::write(temp.path().join("build"), "a file of that name stays").unwrap();
        std::fs::write(temp.path().join("src/secret"), "x").unwrap();
        let skip = HashSet::from(["src/secret".into()]);
        let files = unpack(Selection { whole: true, skip, ..of(temp.path()) }).await;
        let names: Vec<_> =
            files.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, ["api", "build", "empty", "empty/dir", "src", "src/a"]);
    }

    #[tokio::test]
    async fn a_nested_repository_goes_as_files() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("inner/.git")).unwrap();
        std::fs::write(temp.path().join("inner/f"), "x").unwrap();
        let names = vec!["inner/".into()];
        let files = unpack(Selection { names, ..of(temp.path()) }).await;
        assert_eq!(files.keys().collect::<Vec<_>>(), [b"inner/f"]);
    }

    #[tokio::test]
    async fn the_size_is_known_beforehand() {
        let temp = tempfile::tempdir().unwrap();
        for n in 0..50_usize {
            std::fs::write(temp.path().join(n.to_string()), vec![1; n * 700]).unwrap();
        }
        let mut archive = Selection { whole: true, ..of(temp.path()) }.archive();
        let mut bytes = archive.chunks.recv().await.unwrap().unwrap().len() as u64;
        let size = archive.size.load(Ordering::Relaxed);
        while let Some(chunk) = archive.chunks.recv().await {
            bytes += chunk.unwrap().len() as u64;
        }
        // The archive ends with two empty blocks.
        assert_eq!(size + 1024, bytes);
    }

    #[tokio::test]
    async fn archiving_stops_when_nobody_listens() {
        let temp = tempfile::tempdir().unwrap();
        let file = File::create(temp.path().join("huge")).unwrap();
        file.set_len(1 << 40).unwrap();
        let mut receiver = Selection { whole: true, ..of(temp.path()) }.archive().chunks;
        receiver.recv().await.unwrap().unwrap();
        receiver.close();
        let drained = async { while receiver.recv().await.is_some() {} };
        tokio::time::timeout(std::time::Duration::from_secs(10), drained).await.unwrap();
    }
}
