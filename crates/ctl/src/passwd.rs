//! The box user's ids: `/etc/passwd` and `/etc/group` as text.
//!
//! Read and written by hand because the C library's lookups do not work in a static binary. The
//! surprising thing: when another account of the image already has the wanted user id, the two
//! swap ids, so that no id has two names.

use crate::error::{Doing, Error, Result};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

pub const PASSWD: &str = "/etc/passwd";
pub const GROUP: &str = "/etc/group";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
}

/// Both files with new ids in them.
#[derive(Debug, PartialEq, Eq)]
pub struct Renumbered {
    pub passwd: String,
    pub group: String,
}

impl Account {
    pub fn of_system(name: &str) -> Result<Self> {
        let text = fs::read_to_string(PASSWD).doing(|| format!("read {PASSWD}"))?;
        Self::find(&text, name).ok_or_else(|| {
            Error::Failed(format!("the image has no user {name}; add it to {PASSWD}"))
        })
    }

    pub fn find(passwd: &str, name: &str) -> Option<Self> {
        let fields = passwd.lines().map(fields).find(|f| f[0] == name)?;
        let [_, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
        Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: PathBuf::from(home) })
    }
}

/// The groups a user was added to.
pub fn groups_of(group: &str, name: &str) -> Vec<u32> {
    let of = |line: &str| {
        let fields = fields(line);
        let [_, _, id, members, ..] = fields.as_slice() else { return None };
        members.split(',').any(|member| member == name).then(|| id.parse().ok())?
    };
    group.lines().filter_map(of).collect()
}

/// Gives `name` the ids `uid` and `gid`; the group of the same name follows.
pub fn renumber(passwd: &str, group: &str, name: &str, uid: u32, gid: u32) -> Option<Renumbered> {
    let old = Account::find(passwd, name)?;
    let new_line = |line: &str| {
        let mut fields = fields(line);
        if fields[0] == name {
            set(&mut fields, 2, uid);
            set(&mut fields, 3, gid);
        } else if uid != old.uid && number(&fields, 2) == Some(uid) {
            set(&mut fields, 2, old.uid);
        }
        fields.join(":")
    };
    let new_group = |line: &str| {
        let mut fields = fields(line);
        if fields[0] == name && number(&fields, 2) == Some(old.gid) {
            set(&mut fields, 2, gid);
        }
        fields.join(":")
    };
    Some(Renumbered { passwd: each_line(passwd, new_line), group: each_line(group, new_group) })
}

fn fields(line: &str) -> Vec<String> {
    line.split(':').map(str::to_owned).collect()
}

fn number(fields: &[String], at: usize) -> Option<u32> {
    fields.get(at)?.parse().ok()
}

fn set(fields: &mut [String], at: usize, value: u32) {
    if let Some(field) = fields.get_mut(at) {
        *field = value.to_string();
    }
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

/// Replaces a file as a whole, keeping its mode and owner.
pub fn replace(path: &str, text: &str) -> Result<()> {
    let doing = || format!("replace {path}");
    let fresh = format!("{path}.agentbox");
    let old = fs::metadata(path).doing(doing)?;
    fs::write(&fresh, text).doing(doing)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(old.mode() & 0o7777)).doing(doing)?;
    chown(&fresh, Some(old.uid()), Some(old.gid())).doing(doing)?;
    fs::rename(&fresh, path).doing(doing)
}

/// Hands everything below `root` that belongs to `from` over to `to`. Follows no links and stays
/// on one file system: a mounted folder has an owner of its own.
pub fn hand_over(root: &Path, from: &Account, to: (u32, u32)) -> Result<()> {
    let doing = || format!("change the owner of {}", root.display());
    let device = fs::symlink_metadata(root).doing(doing)?.dev();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.dev() != device {
            continue;
        }
        let uid = (meta.uid() == from.uid).then_some(to.0);
        let gid = (meta.gid() == from.gid).then_some(to.1);
        if uid.is_some() || gid.is_some() {
            std::os::unix::fs::lchown(&path, uid, gid).doing(doing)?;
        }
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).doing(doing)?.flatten().map(|e| e.path()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME_PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        www-data:x:33:33::/var/www:/sbin/nologin\n\
        vscode:x:1000:1000:Box,,,:/home/vscode:/bin/bash\n";
    const SOME_GROUP: &str = "root:x:0:\nusers:x:100:\nvscode:x:1000:\ndocker:x:998:vscode\n";

    #[test]
    fn the_box_user_gets_the_hosts_ids() {
        let new = renumber(SOME_PASSWD, SOME_GROUP, "vscode", 4242, 4343).unwrap();
        assert_eq!(new.passwd, SOME_PASSWD.replace("1000:1000", "4242:4343"));
        assert_eq!(new.group, SOME_GROUP.replace("1000", "4343"));
        let account = Account::find(&new.passwd, "vscode").unwrap();
        assert_eq!(account, Account { uid: 4242, gid: 4343, home: "/home/vscode".into() });
    }

    #[test]
    fn a_taken_user_id_is_swapped() {
        let new = renumber(SOME_PASSWD, SOME_GROUP, "vscode", 33, 100).unwrap();
        assert_eq!(Account::find(&new.passwd, "vscode").unwrap().uid, 33);
        assert_eq!(Account::find(&new.passwd, "www-data").unwrap().uid, 1000);
        assert_eq!(Account::find(&new.passwd, "root").unwrap().uid, 0);
        // Two names for one group id do no harm.
        assert!(new.group.contains("users:x:100:\nvscode:x:100:\n"));
    }

    #[test]
    fn doing_it_again_changes_nothing() {
        let once = renumber(SOME_PASSWD, SOME_GROUP, "vscode", 33, 100).unwrap();
        let twice = renumber(&once.passwd, &once.group, "vscode", 33, 100).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn odd_lines_survive_and_a_missing_user_is_seen() {
        let odd = format!("{SOME_PASSWD}+::::::\nbroken\n\n");
        let new = renumber(&odd, SOME_GROUP, "vscode", 7, 7).unwrap();
        assert!(new.passwd.ends_with("+::::::\nbroken\n\n"));
        assert!(renumber("root:x:0:0::/:\n", "", "vscode", 7, 7).is_none());
        assert!(Account::find("vscode:x:a:b::/:/", "vscode").is_none());
    }

    #[test]
    fn only_the_old_owners_files_are_handed_over() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b");
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(&file, "x").unwrap();
        symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let meta = fs::metadata(&file).unwrap();
        let other = Account { uid: meta.uid() + 1, gid: meta.gid() + 1, home: "/".into() };
        // Nothing belongs to the other account, so nothing is touched: this works without root.
        hand_over(dir.path(), &other, (meta.uid() + 2, meta.gid() + 2)).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().uid(), meta.uid());
        let own = Account { uid: meta.uid(), gid: meta.gid(), home: "/".into() };
        hand_over(dir.path(), &own, (meta.uid(), meta.gid())).unwrap();
    }
}
