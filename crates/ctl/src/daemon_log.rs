//! What a daemon prints, kept in a file that does not grow for ever.
//!
//! The daemon writes into a pipe; a thread of PID 1 writes it down. A file that is full becomes
//! `<name>.1`, and so does that of the daemon's run before. Its first line stands at the top of
//! whatever is written down: it says what matters about the whole run.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The most one file holds; there are two.
pub const MAX: u64 = 1024 * 1024;
/// The most of a first line that is kept.
const FIRST_LINE: usize = 200;

/// A pipe to hand to a daemon, whose words end up in `<dir>/<name>.log`.
pub fn start(dir: &Path, name: &str) -> io::Result<PipeWriter> {
    fs::create_dir_all(dir)?;
    let log = Log::open(dir.join(format!("{name}.log")), MAX)?;
    let (reader, writer) = io::pipe()?;
    std::thread::Builder::new()
        .name("log".into())
        .stack_size(64 * 1024)
        .spawn(move || follow(reader, log))?;
    Ok(writer)
}

/// Until nobody writes any more. A disk that is full loses words, not the daemon.
fn follow(mut reader: PipeReader, mut log: Log) {
    let mut buffer = [0; 8 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => {
                let _ = log.write(&buffer[..read]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    max: u64,
    first_line: Vec<u8>,
    /// The first line has ended.
    begun: bool,
}

impl Log {
    fn open(path: PathBuf, max: u64) -> io::Result<Self> {
        let file = fresh(&path)?;
        Ok(Self { path, file, size: 0, max, first_line: Vec::new(), begun: false })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.learn(bytes);
        while !bytes.is_empty() {
            if self.size >= self.max {
                self.file = fresh(&self.path)?;
                self.file.write_all(&self.first_line)?;
                self.size = self.first_line.len() as u64;
            }
            let room = usize::try_from(self.max - self.size).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.file.write_all(now)?;
            self.size += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    fn learn(&mut self, bytes: &[u8]) {
        if self.begun {
            return;
        }
        let end = bytes.iter().position(|b| *b == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let room = FIRST_LINE.saturating_sub(self.first_line.len());
        self.first_line.extend_from_slice(&part[..room.min(part.len())]);
        if end.is_some() {
            self.first_line.push(b'\n');
            self.begun = true;
        }
    }
}

/// An empty file; the one that was there is kept as the one before it.
fn fresh(path: &Path) -> io::Result<File> {
    match fs::rename(path, path.with_extension("log.1")) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    File::options().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_bounded_and_its_first_line_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut log = Log::open(path.clone(), 1000).unwrap();
        log.write(b"storage-dri").unwrap();
        log.write(b"ver=overlay2\n").unwrap();
        for n in 0..10_000 {
            log.write(format!("line {n}\n").as_bytes()).unwrap();
        }
        let (now, before) =
            (fs::read(&path).unwrap(), fs::read(dir.path().join("x.log.1")).unwrap());
        assert!(now.len() <= 1000 && before.len() == 1000, "{} {}", now.len(), before.len());
        assert!(now.starts_with(b"storage-driver=overlay2\n"));
        assert!(now.ends_with(b"line 9999\n"));
        assert_eq!(dir.path().read_dir().unwrap().count(), 2);
        // The next run begins with an empty one.
        Log::open(path.clone(), 1000).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(fs::read(dir.path().join("x.log.1")).unwrap(), now);
    }

    #[test]
    fn what_a_program_prints_is_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let writer = start(&dir.path().join("logs"), "sh").unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo out; echo err >&2"]);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        assert!(command.status().unwrap().success());
        drop(command);
        let log = dir.path().join("logs/sh.log");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while fs::read(&log).unwrap() != b"out\nerr\n" {
            assert!(std::time::Instant::now() < end, "{:?}", fs::read(&log));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
