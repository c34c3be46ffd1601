//! What `agentbox install` wrote, so that it knows its own files and can take them away again.

use crate::error::CommandError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FILE: &str = "installed.json";
/// More than everything there is; a longer file is not ours.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: u32,
    /// For each file what it held when it was written. Two while one takes the other's place.
    pub files: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Folders that were not there before, in the order they were made.
    pub folders: Vec<PathBuf>,
}

impl Record {
    /// None yet is an empty one.
    pub fn load(home: &Path) -> Result<Self, CommandError> {
        let path = home.join(FILE);
        let bad = |why: String| {
            CommandError::failed(format!("cannot read {}: {why}", path.display()))
                .hint("it says which files `agentbox install` wrote; without it none is known")
        };
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Ok(meta) if meta.len() > LONGEST => return Err(bad("it is too long".into())),
            _ => {}
        }
        let text = std::fs::read(&path).map_err(|e| bad(e.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))
    }

    pub fn save(&mut self, home: &Path) -> Result<(), CommandError> {
        self.schema = 1;
        let path = home.join(FILE);
        let failed = |e: std::io::Error| {
            CommandError::failed(format!("cannot write {}: {e}", path.display()))
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed)?;
        if self.files.is_empty() && self.folders.is_empty() {
            let _ = std::fs::remove_file(&path);
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from).map_err(failed)?;
        let mut file = tempfile::NamedTempFile::new_in(home).map_err(failed)?;
        std::io::Write::write_all(&mut file, &text).map_err(failed)?;
        file.persist(&path).map_err(|e| failed(e.error))?;
        Ok(())
    }

    /// Whether this text is what was written there.
    pub fn wrote(&self, path: &Path, text: &[u8]) -> bool {
        self.files.get(path).is_some_and(|sums| sums.contains(&sum(text)))
    }
}

pub fn sum(text: &[u8]) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
