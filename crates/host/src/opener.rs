//! Other programs of the person's: the one that opens addresses, and editors.
//!
//! They are started as the person's shell would start them, without a shell in between, and outlive
//! the one that starts them: an opener may become the browser itself.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// One that has not ended by then has become what it was to open.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// Opens an address in the person's browser.
pub fn open(url: &str) -> Result<(), String> {
    let path = find(OPENER).ok_or_else(|| format!("{OPENER} is not installed"))?;
    launch(&path, &[url])
}

/// A program in `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use nix::unistd::{AccessFlags, access};
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

/// Starts a program and waits until it has ended well or has been there for a while.
pub fn launch(program: &Path, args: &[&str]) -> Result<(), String> {
    let failed = |why: String| format!("{} failed: {why}", program.display());
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.process_group(0).spawn().map_err(|e| failed(e.to_string()))?;
    match ended(child) {
        Ok(Some(status)) if !status.success() => Err(failed(status.to_string())),
        Ok(_) => Ok(()),
        Err(e) => Err(failed(e.to_string())),
    }
}

fn ended(mut child: Child) -> io::Result<Option<std::process::ExitStatus>> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_says_so() {
        let sh = find("sh").unwrap();
        assert_eq!(launch(&sh, &["-c", "exit 0"]), Ok(()));
        assert!(launch(&sh, &["-c", "exit 3"]).unwrap_err().contains("exit status: 3"));
        assert!(launch(Path::new("/nowhere/x"), &[]).is_err());
        assert_eq!(find("no-such-program-here"), None);
    }
}
