//! One host at a time owns a home.
//!
//! An advisory lock on `run/host.lock`: released by the kernel when the process ends, however it
//! ends, so there is nothing stale to judge.

use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Held for the life of the host.
pub struct HostLock {
    _file: Flock<File>,
}

impl HostLock {
    /// Takes the lock; none when another host has it.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(mut file) => {
                file.set_len(0)?;
                writeln!(file, "{}", std::process::id())?;
                Ok(Some(Self { _file: file }))
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, e)) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_waits_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.lock");
        let first = HostLock::take(&path).unwrap();
        assert!(first.is_some());
        assert!(HostLock::take(&path).unwrap().is_none());
        drop(first);
        assert!(HostLock::take(&path).unwrap().is_some());
    }
}
