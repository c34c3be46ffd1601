//! Whether the desktop app starts when the person logs in: a file where desktops look for such.
//!
//! The file is ours by its name and its first lines; one that somebody changed is left alone.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const MARK: &str = "X-AgentBox=true";

/// Makes it so, and says whether anything changed. `app` is the desktop app's program.
pub fn set(wanted: bool, app: &Path) -> io::Result<bool> {
    let Some(file) = place() else {
        return Err(io::Error::other("this system has no folder for programs that start at login"));
    };
    set_in(&file, wanted, app)
}

fn set_in(file: &Path, wanted: bool, app: &Path) -> io::Result<bool> {
    let now = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    if now.as_ref().is_some_and(|text| !text.contains(MARK)) {
        return Err(io::Error::other(format!("{} is not AgentBox's own", file.display())));
    }
    // Where an AppImage is unpacked while it runs: somebody else could have that name by the next login.
    if wanted && app.to_string_lossy().starts_with("/tmp/.mount_") {
        return Err(io::Error::other(format!("{} does not stay where it is", app.display())));
    }
    let text = wanted.then(|| entry(app)).transpose()?;
    if now == text {
        return Ok(false);
    }
    match text {
        Some(text) => {
            // By another name first: a link there is replaced, not followed.
            let folder = file.parent().unwrap_or(Path::new("/"));
            std::fs::create_dir_all(folder)?;
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.persist(file).map_err(|e| e.error)?;
        }
        None => std::fs::remove_file(file)?,
    }
    Ok(true)
}

#[cfg(target_os = "linux")]
fn place() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let config = given.or_else(|| Some(std::env::home_dir()?.join(".config")))?;
    Some(config.join("autostart/agentbox.desktop"))
}

#[cfg(target_os = "macos")]
fn place() -> Option<PathBuf> {
    Some(std::env::home_dir()?.join("Library/LaunchAgents/dev.agentbox.desktop.plist"))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn place() -> Option<PathBuf> {
    None
}

/// A desktop entry. Its rules for quoting have no way to say a line break.
#[cfg(not(target_os = "macos"))]
fn entry(app: &Path) -> io::Result<String> {
    let path = app.to_str().filter(|path| !path.contains(['\n', '\r', '\0']));
    let path = path.ok_or_else(|| io::Error::other("the program's path cannot be written down"))?;
    let mut quoted = String::new();
    for c in path.chars() {
        match c {
            // Once for the argument, once for the text of the file.
            '"' | '`' | '$' => quoted.push_str(&format!("\\\\{c}")),
            '\\' => quoted.push_str("\\\\\\\\"),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    Ok(format!(
        "[Desktop Entry]\nType=Application\nName=AgentBox\nComment=Coding agents in boxes\n\
         Exec=\"{quoted}\"\nTerminal=false\nX-GNOME-Autostart-enabled=true\n{MARK}\n"
    ))
}

#[cfg(target_os = "macos")]
fn entry(app: &Path) -> io::Result<String> {
    let path = app.to_str().ok_or_else(|| io::Error::other("the program's path is not UTF-8"))?;
    let path = path.replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- {MARK} -->\n<plist version=\"1.0\"><dict>\
         <key>Label</key><string>dev.agentbox.desktop</string>\
         <key>ProgramArguments</key><array><string>{path}</string></array>\
         <key>RunAtLoad</key><true/></dict></plist>\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_when_wanted_and_gone_when_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("autostart/agentbox.desktop");
        let app = Path::new("/opt/My \"Apps\" 100%/agentbox-desktop");
        assert!(!set_in(&file, false, app).unwrap());
        assert!(set_in(&file, true, app).unwrap());
        assert!(!set_in(&file, true, app).unwrap(), "nothing changes");
        let text = std::fs::read_to_string(&file).unwrap();
        let exec = text.lines().find(|line| line.starts_with("Exec=")).unwrap();
        assert_eq!(exec, r#"Exec="/opt/My \\"Apps\\" 100%%/agentbox-desktop""#);
        assert!(set_in(&file, false, app).unwrap() && !file.exists());
        assert!(entry(Path::new("/a\nExec=evil")).is_err());
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agentbox.desktop");
        std::fs::write(&file, "[Desktop Entry]\nExec=mine\n").unwrap();
        assert!(set_in(&file, true, Path::new("/x")).is_err());
        assert!(set_in(&file, false, Path::new("/x")).is_err());
        assert!(file.exists());
    }
}
