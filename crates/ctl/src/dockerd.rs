//! The box's own engine: what has to be so before it can run in a container.
//!
//! Three things are in its way: control groups and kernel settings that are mounted read-only, and
//! what its last run left. All of it is done to this box's own view of the system. Then the storage
//! driver: data that is there decides; without any, an overlay is tried where the data will be, by
//! running a program from it. Mounting one is not enough: some kernels mount it and cannot run
//! anything from it.

use crate::error::{Doing, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use protocol::ctl::{BOX_USER, paths};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const PROGRAM: &str = "/usr/sbin/dockerd";
pub const SOCKET: &str = "/var/run/docker.sock";
/// Seconds its containers have to end when the box stops.
pub const STOP: u64 = 10;

const FUSE_OVERLAYFS: &str = "/usr/bin/fuse-overlayfs";
const CGROUPS: &str = "/sys/fs/cgroup";
/// What an attempt at an overlay is made in.
const PROBE: &str = ".agentbox-probe";
/// Left by a run that was killed: another process may have its number by now.
const STALE: [&str; 4] = [
    "/var/run/docker.pid",
    SOCKET,
    "/var/run/docker/containerd/containerd.pid",
    "/run/containerd/containerd.pid",
];

/// Makes everything ready; the engine's command. Its log begins with the driver.
pub fn prepare() -> Result<Command> {
    for stale in STALE {
        let _ = fs::remove_file(stale);
    }
    if Path::new(CGROUPS).join("cgroup.controllers").exists() {
        tolerate(
            "make control groups writable",
            remount_whole(CGROUPS).or_else(|_| remount(CGROUPS)),
        );
        tolerate("divide control groups", divide_cgroups());
    } else {
        // Each controller is a mount of its own.
        for controller in folders(Path::new(CGROUPS)) {
            tolerate("make control groups writable", remount(&controller));
        }
    }
    tolerate("make kernel settings writable", remount("/proc/sys"));
    choose_iptables();
    let driver = driver(Path::new(paths::DOCKER_DATA));
    let doing = || "say which driver it is";
    let mut out = std::io::stdout();
    writeln!(out, "storage-driver={driver}").and_then(|()| out.flush()).doing(doing)?;
    let mut command = Command::new(PROGRAM);
    command.args(["--host", &format!("unix://{SOCKET}"), "--storage-driver", driver]);
    // The box user's own group: sessions that began before the engine was there have it, too.
    command.args(["--group", BOX_USER, "--shutdown-timeout", &STOP.to_string()]);
    Ok(command)
}

fn tolerate(what: &str, done: nix::Result<()>) {
    if let Err(e) = done {
        crate::complain(&format!("agentbox: cannot {what}: {e}"));
    }
}

fn remount_whole(path: &str) -> nix::Result<()> {
    let kept = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(None::<&str>, path, None::<&str>, MsFlags::MS_REMOUNT | kept, None::<&str>)
}

/// As a bind: the mount itself is shared with the outside and cannot be changed from here.
fn remount(path: impl AsRef<Path>) -> nix::Result<()> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
    let kept = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(None::<&str>, path.as_ref(), None::<&str>, flags | kept, None::<&str>)
}

/// A group with processes in it cannot have groups with limits below it, so ours move one down.
fn divide_cgroups() -> nix::Result<()> {
    let root = Path::new(CGROUPS);
    let io = |e: std::io::Error| {
        e.raw_os_error().map_or(nix::errno::Errno::EIO, nix::errno::Errno::from_raw)
    };
    fs::create_dir_all(root.join("init")).map_err(io)?;
    let processes = fs::read_to_string(root.join("cgroup.procs")).map_err(io)?;
    for process in processes.lines() {
        // One that has just ended cannot be moved, nor need it be.
        let _ = fs::write(root.join("init/cgroup.procs"), process);
    }
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).map_err(io)?;
    let all: Vec<String> = controllers.split_whitespace().map(|c| format!("+{c}")).collect();
    fs::write(root.join("cgroup.subtree_control"), all.join(" ")).map_err(io)
}

/// The kernel may know the older tables only.
fn choose_iptables() {
    let works = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-t", "nat", "-nL"]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if works("/usr/sbin/iptables") || !works("/usr/sbin/iptables-legacy") {
        return;
    }
    for name in ["iptables", "ip6tables"] {
        let mut command = Command::new("/usr/bin/update-alternatives");
        command.args(["--set", name, &format!("/usr/sbin/{name}-legacy")]);
        let _ = command.stdout(Stdio::null()).status();
    }
}

/// A store that has something in it cannot change its driver.
fn driver(data: &Path) -> &'static str {
    sweep(data);
    if let Some(kept) = kept_driver(data) {
        kept
    } else if overlay_runs(data).unwrap_or(false) {
        "overlay2"
    } else if Path::new(FUSE_OVERLAYFS).exists() && Path::new("/dev/fuse").exists() {
        "fuse-overlayfs"
    } else {
        "vfs"
    }
}

fn kept_driver(data: &Path) -> Option<&'static str> {
    let used = |name: &&str| {
        let layers = folders(&data.join(name)).into_iter();
        // The engine makes this one before it has any layer.
        layers.into_iter().any(|layer| layer.file_name().is_some_and(|name| name != "l"))
    };
    ["overlay2", "fuse-overlayfs", "vfs"].into_iter().find(used)
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let real = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(real).map(|entry| entry.path()).collect()
}

/// Attempts that were cut short.
fn sweep(data: &Path) {
    for dir in folders(data) {
        if dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PROBE)) {
            let _ = umount2(&dir.join("merged"), MntFlags::MNT_DETACH);
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn overlay_runs(data: &Path) -> std::io::Result<bool> {
    let dir = data.join(format!("{PROBE}-{}", std::process::id()));
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| dir.join(name));
    for made in [&lower, &upper, &work, &merged] {
        fs::create_dir_all(made)?;
    }
    fs::copy("/proc/self/exe", lower.join("probe"))?;
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let mounted =
        mount(Some("overlay"), &merged, Some("overlay"), MsFlags::empty(), Some(options.as_str()));
    let runs = mounted.is_ok() && {
        let mut command = Command::new(merged.join("probe"));
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    sweep(data);
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_is_there_decides_the_driver() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kept_driver(dir.path()), None);
        fs::create_dir_all(dir.path().join("overlay2/l")).unwrap();
        assert_eq!(kept_driver(dir.path()), None, "no layer yet");
        fs::create_dir_all(dir.path().join("fuse-overlayfs/abc")).unwrap();
        assert_eq!(kept_driver(dir.path()), Some("fuse-overlayfs"));
        fs::create_dir_all(dir.path().join("overlay2/abc")).unwrap();
        assert_eq!(kept_driver(dir.path()), Some("overlay2"));
    }

    #[test]
    fn attempts_that_were_cut_short_are_swept_away() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".agentbox-probe-7/merged", "overlay2/abc"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        sweep(dir.path());
        assert!(!dir.path().join(".agentbox-probe-7").exists());
        assert!(dir.path().join("overlay2/abc").exists());
    }
}
