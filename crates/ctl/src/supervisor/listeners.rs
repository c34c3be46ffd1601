//! Who listens on which port, by the kernel's own tables.

use super::process;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

const LISTENING: &str = "0A";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    pub port: u16,
    pub inode: u64,
}

/// A process that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub pid: Pid,
    pub group: Option<Pid>,
    /// The unit it comes from.
    pub unit: Option<String>,
}

pub fn all() -> Vec<Listener> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|table| parse(&fs::read_to_string(table).unwrap_or_default()))
        .collect()
}

fn parse(table: &str) -> Vec<Listener> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
        let port = local.rsplit_once(':')?.1;
        let port = u16::from_str_radix(port, 16).ok()?;
        (*state == LISTENING).then_some(Listener { port, inode: inode.parse().ok()? })
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// The processes behind sockets, as far as they may be looked at.
pub fn owners(inodes: &[u64]) -> HashMap<u64, Owner> {
    let mut found = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return found };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let (Some(pid), Ok(fds)) = (pid, fs::read_dir(entry.path().join("fd"))) else { continue };
        for fd in fds.flatten() {
            let inode = fs::read_link(fd.path()).ok().and_then(|to| socket(&to));
            if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                found.entry(inode).or_insert_with(|| Owner {
                    pid: Pid::from_raw(pid),
                    group: process::group_of(&entry.path()),
                    unit: process::unit_of(&entry.path()),
                });
            }
        }
    }
    found
}

fn socket(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whose a port is, seen from a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The unit's, or nobody can tell and it was not there before.
    Ours,
    Other(Pid),
    /// It was there before the unit, and nobody can tell whose it is.
    Before,
}

/// `before`: sockets that listened on the port when the unit was started.
pub fn whose(port: u16, unit: &str, group: Pid, before: &[u64]) -> Whose {
    let inodes = on(port);
    let owners = owners(&inodes);
    let ours = |owner: &Owner| owner.group == Some(group) || owner.unit.as_deref() == Some(unit);
    if owners.values().any(ours) {
        return Whose::Ours;
    }
    let unseen: Vec<&u64> = inodes.iter().filter(|inode| !owners.contains_key(inode)).collect();
    if unseen.iter().any(|inode| !before.contains(inode)) {
        return Whose::Ours;
    }
    match owners.values().next() {
        Some(owner) => Whose::Other(owner.pid),
        None if unseen.is_empty() => Whose::Ours,
        None => Whose::Before,
    }
}

/// Sockets that listen on a port.
pub fn on(port: u16) -> Vec<u64> {
    all().into_iter().filter(|l| l.port == port).map(|l| l.inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
            0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1\n\
            1: 0100007F:0BB9 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1\n\
            nonsense\n";
        assert_eq!(parse(table), [Listener { port: 3000, inode: 4242 }]);
    }

    #[test]
    fn a_port_has_an_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inodes = on(port);
        assert_eq!(inodes.len(), 1);
        let own = nix::unistd::getpid();
        assert_eq!(owners(&inodes)[&inodes[0]].pid, own);
        assert_eq!(whose(port, "x", nix::unistd::getpgrp(), &[]), Whose::Ours);
        assert_eq!(whose(port, "x", Pid::from_raw(1), &[]), Whose::Other(own));
    }
}
