//! What a person would see: pictures of the whole display, kept where a person finds them.

use crate::session::Session;
use std::path::{Path, PathBuf};

/// Where pictures and logs go: `$AGENTBOX_ARTIFACTS`, or a folder for temporary files.
pub fn artifacts() -> PathBuf {
    let folder = std::env::var_os("AGENTBOX_ARTIFACTS")
        .map_or_else(|| std::env::temp_dir().join("agentbox-artifacts"), PathBuf::from);
    let _ = std::fs::create_dir_all(&folder);
    folder
}

/// Takes a picture of the display and keeps it as `<name>.png` among the artifacts.
#[track_caller]
pub fn shoot(session: &Session, name: &str) -> PathBuf {
    let file = artifacts().join(format!("{name}.png"));
    if let Err(why) = try_shoot(session, &file) {
        panic!("no picture of the display: {why}");
    }
    file
}

/// The colour of one dot of a picture, as `#rrggbb`.
#[track_caller]
pub fn colour(picture: &Path, x: u32, y: u32) -> String {
    let format = format!("%[hex:u.p{{{x},{y}}}]");
    let mut convert = std::process::Command::new("convert");
    let output =
        convert.arg(picture).args(["-format", &format, "info:"]).output().expect("convert");
    let said = String::from_utf8_lossy(&output.stdout).to_lowercase();
    assert!(output.status.success() && said.len() >= 6, "{output:?}");
    format!("#{}", &said[..6])
}

pub(crate) fn try_shoot(session: &Session, file: &Path) -> Result<(), String> {
    let shot = session
        .command("scrot")
        .args(["--overwrite", "--silent"])
        .arg(file)
        .output()
        .map_err(|error| format!("scrot: {error}"))?;
    if shot.status.success() && file.exists() {
        Ok(())
    } else {
        Err(format!("scrot: {} {}", shot.status, String::from_utf8_lossy(&shot.stderr)))
    }
}
