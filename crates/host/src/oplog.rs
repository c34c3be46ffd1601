//! What one run of a long command did, step by step, for whoever wonders later.
//!
//! `logs/<command>.log` is the last run, `.log.prev` the one before, `latest.log` leads to whichever
//! command ran last. What is written has no credential in it: steps are named by us, and the text of an
//! error is redacted. A log that cannot be written keeps nothing from being done.

use crate::api::Api;
use boxes::{Watch, Watcher};
use protocol::boxes::{Progress, StepState};
use protocol::control::{ControlError, Target};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub struct OpLog {
    path: PathBuf,
    started: Instant,
    inner: Watcher,
    written: Mutex<Written>,
}

struct Written {
    file: Option<File>,
    /// Steps that have begun and not ended.
    open: HashSet<String>,
}

impl OpLog {
    /// Begins a log; progress goes on to `inner`.
    pub fn begin(home: &Path, command: &'static str, what: &str, inner: Watcher) -> Arc<Self> {
        let dir = home.join("logs");
        let path = dir.join(format!("{command}.log"));
        let file = open(&dir, &path).inspect_err(|e| tracing::debug!("{}: {e}", path.display()));
        let written = Mutex::new(Written { file: file.ok(), open: HashSet::new() });
        let log = Self { path, started: Instant::now(), inner, written };
        log.line(&format!("BEGIN {command} {what}"));
        Arc::new(log)
    }

    /// A log of its own, which a second run goes on with.
    pub fn at(path: PathBuf, what: &str, inner: Watcher) -> Arc<Self> {
        let file = File::options().append(true).create(true).mode(0o600).open(&path);
        let file = file.inspect_err(|e| tracing::debug!("{}: {e}", path.display()));
        let written = Mutex::new(Written { file: file.ok(), open: HashSet::new() });
        let log = Self { path, started: Instant::now(), inner, written };
        log.line(&format!("BEGIN {what}"));
        Arc::new(log)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Something worth knowing between two steps.
    pub fn note(&self, text: &str) {
        self.line(&format!("      {text}"));
    }

    /// The run is over.
    pub fn end(&self, error: Option<&str>) {
        let ms = self.started.elapsed().as_millis();
        match error {
            None => self.line(&format!("END   {ms} ms")),
            Some(error) => self.line(&format!("FAIL  {ms} ms: {error}")),
        }
    }

    fn line(&self, text: &str) {
        let text = protocol::text::visible(&secrets::redact(text));
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &mut written.file {
            // In one piece: two runs never mix within a line.
            let _ = file.write_all(format!("{} {text}\n", jiff::Timestamp::now()).as_bytes());
        }
    }

    fn begins(&self, step: &str) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.open.insert(step.to_owned())
    }

    fn ends(&self, step: &str) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).open.remove(step);
    }
}

impl Watch for OpLog {
    fn progress(&self, progress: Progress) {
        let Progress { step, state, elapsed_ms, .. } = &progress;
        match state {
            StepState::Running if self.begins(step) => self.line(&format!("BEGIN {step}")),
            StepState::Running => {}
            StepState::Done => {
                self.ends(step);
                self.line(&format!("END   {step} {elapsed_ms} ms"));
            }
            StepState::Failed => {
                self.ends(step);
                self.line(&format!("FAIL  {step} {elapsed_ms} ms"));
            }
        }
        self.inner.progress(progress);
    }
}

impl Api {
    /// Does something long to a box for a person who typed it, and writes down what became of it.
    pub(crate) async fn logged<T>(
        &self,
        command: &'static str,
        target: &Target,
        work: impl Future<Output = Result<T, ControlError>>,
    ) -> Result<T, ControlError> {
        let Ok(view) = self.find_box(target) else { return work.await };
        let what = format!("{} of {}", view.name, view.project_root);
        let log = OpLog::begin(&self.core().home, command, &what, boxes::progress::silent());
        let done = work.await;
        log.end(done.as_ref().err().map(|e| e.message.as_str()));
        done
    }
}

fn open(dir: &Path, path: &Path) -> std::io::Result<File> {
    // Some commands come before any host has made the folders.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let before = path.with_extension("log.prev");
    if path.exists() {
        std::fs::rename(path, before)?;
    }
    let file = File::options().append(true).create(true).mode(0o600).open(path)?;
    let fresh = dir.join(format!(".latest-{}", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    std::os::unix::fs::symlink(path.file_name().unwrap_or_default(), &fresh)?;
    std::fs::rename(&fresh, dir.join("latest.log"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(home: &Path, command: &'static str, error: Option<&str>) -> Arc<OpLog> {
        let log = OpLog::begin(home, command, "for /p", boxes::progress::silent());
        for (state, ms) in [(StepState::Running, 0), (StepState::Running, 5), (StepState::Done, 9)]
        {
            let step = "Make the box".to_owned();
            log.progress(Progress { step, state, detail: None, fraction: None, elapsed_ms: ms });
        }
        log.end(error);
        log
    }

    #[test]
    fn a_run_is_written_step_by_step_and_the_one_before_is_kept() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("logs")).unwrap();
        run(home.path(), "create", None);
        run(home.path(), "create", Some("no: https://me:ghp_0123456789abcdef0123@h/r\nnext"));
        run(home.path(), "prepare", None);
        let read =
            |name: &str| std::fs::read_to_string(home.path().join("logs").join(name)).unwrap();
        let words = |text: &str| {
            let line = |l: &str| l.split(' ').nth(1).unwrap().to_owned();
            text.lines().map(line).collect::<Vec<_>>()
        };
        assert_eq!(words(&read("create.log.prev")), ["BEGIN", "BEGIN", "END", "END"]);
        assert_eq!(words(&read("create.log")), ["BEGIN", "BEGIN", "END", "FAIL"]);
        assert!(!read("create.log").contains("ghp_"), "{}", read("create.log"));
        assert_eq!(read("latest.log"), read("prepare.log"));
        assert!(read("create.log").contains("END   Make the box 9 ms"));
        let first = read("create.log").split(' ').next().unwrap().to_owned();
        assert!(first.parse::<jiff::Timestamp>().is_ok(), "{first}");
    }

    #[test]
    fn without_a_place_to_write_everything_goes_on() {
        let log = run(Path::new("/dev/null/home"), "create", None);
        log.note("nothing happens");
    }
}
