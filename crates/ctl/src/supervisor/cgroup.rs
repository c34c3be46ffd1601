//! A control group for each unit, where the box may have them: nobody leaves one by himself, whatever
//! else he sheds, and all in it are killed at once.
//!
//! Only the second version of control groups, and only where it can be written: in most boxes the engine
//! mounts it read-only, and process groups and names in the environment have to do. As root, before it
//! becomes the box user, the supervisor makes `agentbox` and moves to `agentbox/supervisor`; as the box
//! user it makes `agentbox/unit-<name>` beside that.
//!
//! The surprising thing: to start a unit, the supervisor itself goes into the unit's group for a moment.
//! So the first process is born there, and no child of it can be anywhere else.

use crate::passwd::Account;
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const BASE: &str = "agentbox";
const OWN: &str = "supervisor";
const UNIT: &str = "unit-";
const PROCS: &str = "cgroup.procs";
const KILL: &str = "cgroup.kill";
/// More processes than anybody signals one by one.
const MOST: usize = 100_000;

static GROUPS: OnceLock<Option<Groups>> = OnceLock::new();

/// The groups of this supervisor, when it has any.
pub fn groups() -> Option<&'static Groups> {
    GROUPS.get_or_init(Groups::find).as_ref().filter(|groups| !groups.lost.load(Ordering::Relaxed))
}

/// (root) Makes room for units and goes there itself; an error where that cannot be had.
pub fn delegate(user: &Account) -> io::Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let base = mount(&mounts).ok_or(io::ErrorKind::NotFound)?.join(BASE);
    let own = base.join(OWN);
    if !fs::exists(&base)? {
        fs::create_dir(&base)?;
    }
    if !fs::exists(&own)? {
        fs::create_dir(&own)?;
    }
    fs::write(own.join(PROCS), "0")?;
    for path in [&base, &base.join(PROCS), &own, &own.join(PROCS)] {
        chown(path, Some(user.uid), Some(user.gid))?;
    }
    Ok(())
}

/// Where control groups of the second version are, as this process sees them.
fn mount(mounts: &str) -> Option<PathBuf> {
    let of_line = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        let whole = root == "/" && after.starts_with("cgroup2 ") && !point.contains('\\');
        whole.then(|| PathBuf::from(point))
    };
    mounts.lines().find_map(of_line)
}

/// The group of this process below the mount.
fn own_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

#[derive(Debug)]
pub struct Groups {
    base: PathBuf,
    /// It could not go back where it belongs; then nothing is killed this way any more.
    lost: AtomicBool,
}

impl Groups {
    fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = mount(&mounts)?.join(own_group(&own)?);
        // Any other group is somebody else's to divide.
        let base = own.parent().filter(|_| own.ends_with(OWN))?.to_owned();
        let groups = Self { base, lost: AtomicBool::new(false) };
        let probe = groups.base.join(format!("{UNIT}{}", std::process::id()));
        fs::create_dir(&probe).ok()?;
        let can = probe.join(KILL).exists() && groups.born_in(&probe, || Ok(())).is_ok();
        let _ = fs::remove_dir(&probe);
        can.then_some(groups)
    }

    fn of(&self, unit: &str) -> PathBuf {
        self.base.join(format!("{UNIT}{unit}"))
    }

    /// Starts a unit's process in its group. Where that cannot be had, in the supervisor's own.
    pub fn spawn<T>(&self, unit: &str, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let group = self.of(unit);
        let _ = fs::create_dir(&group);
        self.born_in(&group, start)
    }

    fn born_in<T>(&self, group: &Path, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let gone = fs::write(group.join(PROCS), "0");
        let started = start();
        if gone.is_ok() && fs::write(self.base.join(OWN).join(PROCS), "0").is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
        started
    }

    /// Who is in a unit's group.
    pub fn members(&self, unit: &str) -> Vec<Pid> {
        let procs = fs::read_to_string(self.of(unit).join(PROCS)).unwrap_or_default();
        let pids = procs.lines().filter_map(|line| line.parse().ok());
        // Nobody that this namespace cannot see.
        pids.filter(|pid| *pid > 0).take(MOST).map(Pid::from_raw).collect()
    }

    pub fn any_left(&self, unit: &str) -> bool {
        let events = fs::read_to_string(self.of(unit).join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    /// All at once, also those that belong to somebody else.
    pub fn kill(&self, unit: &str) {
        let _ = fs::write(self.of(unit).join(KILL), "1");
    }

    /// Nobody is in it any more, or it stays.
    pub fn remove(&self, unit: &str) {
        let _ = fs::remove_dir(self.of(unit));
    }

    /// Those of an earlier supervisor.
    pub fn kill_all(&self) {
        for entry in fs::read_dir(&self.base).into_iter().flatten().flatten() {
            if let Some(unit) = entry.file_name().to_str().and_then(|name| name.strip_prefix(UNIT))
            {
                self.kill(unit);
                self.remove(unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_and_the_own_group_are_found() {
        let mounts = "22 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            30 22 0:25 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
            31 22 0:26 /.. /elsewhere rw - cgroup2 cgroup2 rw\n\
            32 22 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount("nothing"), None);
        assert_eq!(own_group("5:pids:/x\n0::/agentbox/supervisor\n"), Some("agentbox/supervisor"));
        assert_eq!(own_group("5:pids:/x\n"), None);
    }
}
