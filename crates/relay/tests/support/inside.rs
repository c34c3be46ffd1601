//! The box's side of copies and checkpoints: a plain folder, or whatever a hostile box would send.

use agentbox_relay::{Checkpoints, NewCheckpoint, PortError};
use protocol::control::CheckpointView;
use protocol::ctl::Pack;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;

#[derive(Default)]
pub struct Inside {
    /// Sent instead of what was asked for.
    pub sends: Mutex<Option<Vec<u8>>>,
    /// Every request to pack.
    pub asked: Mutex<Vec<Pack>>,
    /// What the host brought: where to, and the tar stream.
    pub got: Mutex<Vec<(String, Vec<u8>)>>,
    pub checkpoints: Mutex<Vec<CheckpointView>>,
}

impl Inside {
    pub fn pack(
        &self,
        dir: &Path,
        what: Pack,
        mut dest: File,
        limit: u64,
    ) -> Result<(), PortError> {
        let sent = self.sends.lock().unwrap().clone();
        let bytes = sent.map_or_else(|| archive(dir, &what), Ok)?;
        self.asked.lock().unwrap().push(what);
        if bytes.len() as u64 > limit {
            return Err(PortError(format!("the box sent more than {limit} bytes")));
        }
        dest.write_all(&bytes).unwrap();
        Ok(())
    }

    pub fn unpack(&self, mut tar: File, dest: &str) {
        let mut bytes = Vec::new();
        tar.read_to_end(&mut bytes).unwrap();
        self.got.lock().unwrap().push((dest.to_owned(), bytes));
    }

    pub fn known(&self) -> Checkpoints {
        let all = self.checkpoints.lock().unwrap().clone();
        let next = u32::try_from(all.len()).unwrap() + 1;
        Checkpoints { all, next }
    }

    pub fn capture(&self, wanted: NewCheckpoint) -> CheckpointView {
        let mut all = self.checkpoints.lock().unwrap();
        if !wanted.replaces.is_empty() {
            all.retain(|view| view.name != wanted.name);
        }
        let view = CheckpointView {
            id: format!("agentbox/checkpoint:shop-{}-{}", wanted.name, all.len()),
            name: wanted.name,
            project: "shop".into(),
            project_root: "/shop".into(),
            box_name: "smoke".into(),
            created_at: 1,
            default: wanted.set_default,
            ..CheckpointView::default()
        };
        all.push(view.clone());
        view
    }
}

/// What `agentbox-ctl pack` would send, with the folder as `/workspace`.
fn archive(dir: &Path, what: &Pack) -> Result<Vec<u8>, PortError> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.follow_symlinks(false);
    match what {
        Pack::Files { sources, .. } => {
            for source in sources {
                let below = source.strip_prefix("/workspace/").unwrap_or("none");
                let path = dir.join(below);
                let gone = |e| PortError(format!("agentbox: copy {source}: {e}"));
                let path = path.canonicalize().map_err(gone)?;
                let name = Path::new(source).file_name().unwrap();
                if path.is_dir() {
                    tar.append_dir_all(name, path).unwrap();
                } else {
                    tar.append_path_with_name(path, name).unwrap();
                }
            }
        }
        Pack::Copy { .. } | Pack::Download { .. } => panic!("no box asks for this"),
        Pack::Workspace { .. } => {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                if name == ".git" {
                } else if path.is_dir() && !path.is_symlink() {
                    tar.append_dir_all(name, path).unwrap();
                } else {
                    tar.append_path_with_name(path, name).unwrap();
                }
            }
        }
    }
    Ok(tar.into_inner().unwrap())
}
