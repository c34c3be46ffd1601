//! The person's editor, on a private copy of a text.
//!
//! Whoever uses it puts the text in its place when it is in order. What was written is kept when it is not
//! taken, and goes with the copy when it is.

use crate::error::CommandError;
use protocol::text::visible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A text that only the person can read, as long as it is being edited.
pub struct Draft {
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl Draft {
    /// Named so that editors know what it is.
    pub fn of(name: &str, text: &str) -> Result<Self, CommandError> {
        let private = std::fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("agentbox-").permissions(private).tempdir()?;
        let file = dir.path().join(name);
        std::fs::write(&file, text)?;
        Ok(Self { dir, file })
    }

    /// Until the editor ends.
    pub fn open(&self) -> Result<(), CommandError> {
        open(&self.file)
    }

    pub fn text(&self) -> std::io::Result<String> {
        std::fs::read_to_string(&self.file)
    }

    /// The same failure, with what was written kept and named.
    pub fn kept(self, why: CommandError) -> CommandError {
        let name = self.file.file_name().map(PathBuf::from).unwrap_or_default();
        let kept = self.dir.keep().join(name);
        let error = format!("nothing was changed: {}", why.error);
        CommandError { error, ..why }.hint(format!("what you wrote is in {}", kept.display()))
    }
}

/// A file in the person's editor, in place.
pub fn open(file: &Path) -> Result<(), CommandError> {
    let named = ["EDITOR", "VISUAL"].into_iter().filter_map(|name| std::env::var(name).ok());
    let named = named.map(|line| line.trim().to_owned()).find(|line| !line.is_empty());
    let line = named.unwrap_or_else(|| "vi".to_owned());
    let words = shlex::split(&line).unwrap_or_default();
    let Some((program, args)) = words.split_first() else {
        return Err(CommandError::usage(format!("{} names no editor", visible(&line))));
    };
    let ended = Command::new(program).args(args).arg(file).status().map_err(|e| {
        CommandError::failed(format!("{} cannot be started: {e}", visible(program)))
            .hint("set EDITOR to your editor")
    })?;
    if ended.success() {
        return Ok(());
    }
    Err(CommandError::failed(format!("{} ended badly", visible(program))))
}
