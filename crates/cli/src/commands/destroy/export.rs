//! `--export`: a box's files in a tar file, before the box is destroyed.
//!
//! The box sends the archive and may send anything: it is written down as it comes and not looked
//! into, and it cannot fill the disk. Until it is complete it has no name of its own.

use crate::ask;
use crate::error::CommandError;
use crate::interrupt::Interrupt;
use crate::progress::Steps;
use crate::ui::Ui;
use host::client::{Client, Incoming};
use nix::sys::statvfs::fstatvfs;
use protocol::boxes::{Progress, StepState};
use protocol::control::{Request, Target};
use protocol::looking::Exported;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::NamedTempFile;

/// So much of the disk stays free, whatever a box sends.
const LEFT_FREE: u64 = 512 * 1024 * 1024;
/// How often the disk is looked at and progress is told, in bytes.
const LOOK: u64 = 16 * 1024 * 1024;

/// A file that is going to be written.
pub struct Export {
    file: NamedTempFile,
    path: PathBuf,
    overwrite: bool,
}

impl Export {
    /// Finds out whether it can be written before anything is destroyed. A file that is there is
    /// asked about, and never overwritten when nobody can be asked.
    pub fn prepare(ui: &Ui, path: &Path, yes: bool) -> Result<Self, CommandError> {
        let path = std::path::absolute(path)?;
        let shown = path.display();
        if path.is_dir() {
            return Err(CommandError::usage(format!("{shown} is a folder; name a file in it")));
        }
        let overwrite = path.symlink_metadata().is_ok();
        if overwrite {
            let there = CommandError::usage(format!("{shown} is already there"))
                .hint("name another file, or remove that one");
            if yes || !ui.interactive || !ask::yes(ui, &format!("Overwrite {shown}?")) {
                return Err(there);
            }
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let file = NamedTempFile::with_prefix_in(".agentbox-export-", folder).map_err(|e| {
            CommandError::failed(format!("cannot write in {}: {e}", folder.display()))
        })?;
        Ok(Self { file, path, overwrite })
    }

    /// Has the box send its files. What is half-written is gone when it fails.
    pub fn save(
        mut self,
        ui: &Ui,
        client: &Client,
        interrupt: &Interrupt,
        target: &Target,
    ) -> Result<(), CommandError> {
        let steps = Steps::new(ui);
        let began = Instant::now();
        let tell = |state, bytes: u64| {
            steps.show(Progress {
                step: "Save the workspace".to_owned(),
                state,
                detail: Some(crate::size::bytes(bytes)),
                fraction: None,
                elapsed_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(0),
            });
        };
        tell(StepState::Running, 0);
        let (mut written, mut looked, mut broken) = (0, 0, None);
        let request = Request::ExportBox { target: target.clone() };
        let ended = interrupt.call::<Exported>(client, &request, |incoming| {
            let Incoming::Stdout(bytes) = incoming else { return };
            if broken.is_some() {
                return;
            }
            written += bytes.len() as u64;
            let mut done = self.file.write_all(&bytes);
            if done.is_ok() && written - looked >= LOOK {
                looked = written;
                tell(StepState::Running, written);
                done = room_left(&self.file);
            }
            if let Err(error) = done {
                broken = Some(error);
                interrupt.hang_up();
            }
        });
        let saved = match broken {
            Some(error) => Err(CommandError::from(error)),
            None => ended.and_then(|told| complete(told, written)),
        };
        tell(if saved.is_ok() { StepState::Done } else { StepState::Failed }, written);
        drop(steps);
        let saved = saved.and_then(|()| self.keep());
        saved.map_err(|error| error.hint("nothing was destroyed"))
    }

    fn keep(self) -> Result<(), CommandError> {
        let shown = self.path.display().to_string();
        self.file.as_file().sync_all()?;
        let kept = if self.overwrite {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        let failed = |e: tempfile::PersistError| format!("cannot write {shown}: {}", e.error);
        kept.map_err(|e| CommandError::failed(failed(e)))?;
        Ok(())
    }
}

fn complete(told: Exported, written: u64) -> Result<(), CommandError> {
    if told.bytes == written {
        return Ok(());
    }
    Err(CommandError::failed("the archive did not arrive whole"))
}

fn room_left(file: &NamedTempFile) -> io::Result<()> {
    let disk = fstatvfs(file.as_file())?;
    if disk.blocks_available() * disk.fragment_size() < LEFT_FREE {
        return Err(io::Error::other("the disk is almost full"));
    }
    Ok(())
}
