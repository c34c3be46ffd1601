//! A box's workspace as a folder of this computer, by `sshfs`.
//!
//! The box answers every look into that folder, so it must not be able to do harm by what it answers.
//! Links are followed in the box, and one that leads out of the folder all the same is refused here
//! (`contain_symlinks`; an `sshfs` without it is not used). Files look as if they were somebody else's
//! and cannot be run: git runs nothing a repository names when it belongs to another user.
//!
//! The surprising thing: there is no state. The folder is mounted while `sshfs` runs, and that ends with
//! its connection, so a box that is stopped or destroyed leaves an empty folder.

use crate::error::CommandError;
use host::opener;
use protocol::ctl::paths::WORKSPACE;
use protocol::links::SshHost;
use protocol::text::visible;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A box that was just started may need a moment for its server.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(300);
/// Nobody, on every system.
const OPTIONS: &str = "contain_symlinks,follow_symlinks,uid=65534,gid=65534,nosuid,nodev,noexec,\
                       ConnectTimeout=10,ServerAliveInterval=15,ServerAliveCountMax=3";

/// Where a box's folder is when it is mounted.
pub fn place(home: &Path, name: &str) -> PathBuf {
    home.join("mounts").join(name)
}

/// The program, if there is one that can be trusted with a box.
pub fn sshfs() -> Result<PathBuf, CommandError> {
    let install = if cfg!(target_os = "macos") {
        "install macFUSE and sshfs"
    } else {
        "install sshfs: sudo apt install sshfs"
    };
    let program = opener::find("sshfs")
        .ok_or_else(|| CommandError::failed("sshfs is not installed").hint(install))?;
    let help = quiet(&program).arg("--help").output();
    let says = |output: &Output| {
        let all = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&all).contains("contain_symlinks")
    };
    if help.is_ok_and(|output| says(&output)) {
        return Ok(program);
    }
    let why = "this sshfs would let links of a box lead to other folders of this computer";
    Err(CommandError::failed(why).hint("install one that knows the option contain_symlinks"))
}

/// Mounts a box's workspace, unless it is mounted and answers.
pub fn mount(sshfs: &Path, at: &SshHost, folder: &Path) -> Result<(), CommandError> {
    if is_mounted(folder) {
        if folder.read_dir().is_ok() {
            return Ok(());
        }
        // Its program was killed, and nobody is behind it.
        unmount(folder)?;
    }
    let failed = |why: String| {
        CommandError::failed(format!("{} cannot be mounted: {why}", folder.display()))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|e| failed(e.to_string()))?;
    let end = Instant::now() + PATIENCE;
    loop {
        let mut command = quiet(sshfs);
        command.arg("-F").arg(&at.config).arg(format!("{}:{WORKSPACE}", at.host)).arg(folder);
        command.args(["-o", OPTIONS, "-o", &format!("fsname={}", at.host)]);
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        if Instant::now() >= end {
            let _ = std::fs::remove_dir(folder);
            return Err(failed(visible(String::from_utf8_lossy(&output.stderr).trim())));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Takes a mounted folder away again; files in it stay in the box.
pub fn unmount(folder: &Path) -> Result<(), CommandError> {
    let failed = |why: &str| {
        CommandError::failed(format!("{} cannot be unmounted: {why}", folder.display()))
            .hint("close the programs that use it, then repeat")
    };
    let tools: [(&str, &[&str]); 3] =
        [("fusermount3", &["-u"]), ("fusermount", &["-u"]), ("umount", &[])];
    let tools = if cfg!(target_os = "macos") { &tools[2..] } else { &tools[..] };
    let tool = tools.iter().find_map(|(name, args)| Some((opener::find(name)?, args)));
    let (program, args) = tool.ok_or_else(|| failed("there is no fusermount3"))?;
    let output = quiet(&program).args(*args).arg(folder).output();
    let output = output.map_err(|e| failed(&e.to_string()))?;
    if !output.status.success() {
        return Err(failed(&visible(String::from_utf8_lossy(&output.stderr).trim())));
    }
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Asked of the system: the folder itself may take its time to answer.
pub fn is_mounted(folder: &Path) -> bool {
    let real = match (folder.parent().and_then(|p| p.canonicalize().ok()), folder.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => return false,
    };
    mount_points().contains(&real)
}

#[cfg(target_os = "linux")]
fn mount_points() -> Vec<PathBuf> {
    points(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// The fifth word of each line of `mountinfo`.
#[cfg(target_os = "linux")]
fn points(mountinfo: &str) -> Vec<PathBuf> {
    let unescaped = |word: &str| {
        let pairs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
        PathBuf::from(pairs.iter().fold(word.to_owned(), |text, (from, to)| text.replace(from, to)))
    };
    mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped).collect()
}

#[cfg(not(target_os = "linux"))]
fn mount_points() -> Vec<PathBuf> {
    let output = Command::new("/sbin/mount").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let point = |line: &str| Some(PathBuf::from(line.split_once(" on ")?.1.rsplit_once(" (")?.0));
    text.lines().filter_map(point).collect()
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn mounted_folders_are_found_whatever_their_names() {
        let text = "36 35 98:0 / / rw - ext4 /dev/sda rw\n\
                    40 36 0:50 / /home/a\\040da/.agentbox/mounts/fix rw,nosuid - fuse.sshfs x rw\n";
        assert_eq!(points(text)[1], Path::new("/home/a da/.agentbox/mounts/fix"));
        assert!(is_mounted(Path::new("/proc")));
        assert!(!is_mounted(Path::new("/proc/self")) && !is_mounted(Path::new("/nowhere/at/all")));
    }
}
