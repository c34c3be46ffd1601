//! Where the host keeps what it knows about a project: below the home, never in the project.
//!
//! A folder is known by its name alone, so one of an older AgentBox would be passed over without a word,
//! and what somebody tightened there with it. [`bring_over`] gives such folders the name they have now.

use crate::config::OF;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "projects";
const LONGEST: usize = 32;
/// Of a file's beginning: the project it is of is in its first lines.
const BEGINNING: u64 = 64 * 1024;

pub fn project_dir(home: &Path, root: &Path) -> PathBuf {
    let name = format!("{}-{}", boxes::project::project_hash(root), mnemonic(root));
    home.join(FOLDER).join(name)
}

/// What a person knows the project by; the hash before it tells it from others.
fn mnemonic(root: &Path) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let words = name.split(|c: char| !matches!(c, 'a'..='z' | '0'..='9'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name = words.join("_");
    name.truncate(LONGEST);
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The names a project's folder had in older versions, the newest first.
fn old_names(root: &Path) -> [String; 2] {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().take(40).map(safe).collect();
    let digest = Sha256::digest(root.as_os_str().as_bytes());
    let oldest: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    [boxes::project::project_hash(root), oldest].map(|hash| format!("{hash}-{name}"))
}

/// Renames folders that have an old name, of these projects, those around them, and those that say
/// themselves whose they are. One whose new name is taken stays, and is told about.
pub fn bring_over(home: &Path, projects: &[PathBuf]) {
    let all = home.join(FOLDER);
    if !is_folder(&all) {
        return;
    }
    let known = projects.iter().flat_map(|root| root.ancestors().map(Path::to_owned));
    let roots: BTreeSet<PathBuf> = known.chain(said(&all)).collect();
    for root in roots {
        let new = project_dir(home, &root);
        for old in old_names(&root).map(|name| all.join(name)) {
            if old != new && is_folder(&old) {
                rename(&root, &old, &new);
            }
        }
    }
}

fn rename(root: &Path, old: &Path, new: &Path) {
    let (root, from) = (root.display(), old.display());
    // Under the lock of the host: nobody else makes it meanwhile.
    if new.symlink_metadata().is_ok() && !is_same(old, new) {
        tracing::warn!("{from} has no effect: settings for {root} are in {}", new.display());
        return;
    }
    match std::fs::rename(old, new) {
        Ok(()) => tracing::info!("settings for {root} are in {} now, not in {from}", new.display()),
        Err(e) => tracing::error!("{from} has no effect and cannot be renamed: {e}"),
    }
}

/// On a volume that does not tell `Shop` from `shop`.
fn is_same(old: &Path, new: &Path) -> bool {
    let id = |path: &Path| path.symlink_metadata().ok().map(|data| (data.dev(), data.ino()));
    id(old) == id(new)
}

/// Never through a link: it may lead anywhere.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// What settings files say whose they are. Only a name that fits is believed, see [`old_names`].
fn said(all: &Path) -> impl Iterator<Item = PathBuf> {
    let dirs = std::fs::read_dir(all).into_iter().flatten().flatten();
    dirs.filter(|dir| is_folder(&dir.path())).filter_map(|dir| {
        let mut options = std::fs::OpenOptions::new();
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let open = options.read(true).custom_flags(flags).open(dir.path().join("config.yaml"));
        let file = open.ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
        let mut text = Vec::new();
        file.take(BEGINNING).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let said = text.lines().find_map(|line| line.strip_prefix(OF));
        said.map(PathBuf::from).filter(|root| root.is_absolute())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn name(root: &str) -> String {
        let dir = project_dir(Path::new("/h"), Path::new(root));
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(dir, Path::new("/h/projects").join(&name));
        name.split_once('-').unwrap().1.to_owned()
    }

    #[test]
    fn yaml_12_1_a_folder_has_a_name_people_know() {
        assert_eq!(name("/home/ada/shop"), "shop");
        assert_eq!(name("/home/ada/My  Shop (2).git"), "my_shop_2_git");
        assert_eq!(name("/home/ada/--x--"), "x");
        assert_eq!(name("/home/ada/Füße"), "f_e");
        assert_eq!(name("/home/ada/ÄÖ"), "unnamed");
        assert_eq!(name("/"), "unnamed");
        assert_eq!(name(&format!("/{}", "a".repeat(50))), "a".repeat(32));
        let dir = project_dir(Path::new("/h"), Path::new("/foo/bar"));
        assert_eq!(dir, Path::new("/h/projects/a82cce35fd860de6-bar"));
    }

    /// A project's folder as an older version made it.
    fn old(home: &Path, root: &Path, which: usize, text: &str) -> PathBuf {
        let dir = home.join(FOLDER).join(&old_names(root)[which]);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.yaml"), text).unwrap();
        dir
    }

    fn config(home: &Path, root: &Path) -> Option<String> {
        fs::read_to_string(project_dir(home, root).join("config.yaml")).ok()
    }

    #[test]
    fn an_old_name_is_changed_and_nothing_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        bring_over(home, &[]);
        let (shop, api, silent) =
            (Path::new("/srv/My Shop"), Path::new("/srv/Api.v2"), Path::new("/srv/Silent"));
        assert_eq!(old_names(Path::new("/foo/bar"))[0], "a82cce35fd860de6-bar");
        // `printf /foo/bar | sha256sum`
        assert_eq!(old_names(Path::new("/foo/bar"))[1], "a05d96ad6bf8f3ea-bar");
        let text = "# project: /srv/My Shop\ngh: {checkout: true}\n";
        old(home, shop, 1, text);
        old(home, api, 0, "# mine\n# project: /srv/Api.v2\n");
        // Written by a switch of the window, which names no project: one with a box is known.
        old(home, silent, 1, "gh: {checkout: false}\n");
        let foreign = home.join("projects/0123456789abcdef-Else");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("config.yaml"), text).unwrap();
        bring_over(home, &[silent.join("packages/web")]);
        assert_eq!(config(home, shop).as_deref(), Some(text));
        assert!(config(home, api).is_some() && config(home, silent).is_some());
        assert!(foreign.is_dir(), "another name than the project's");
        assert_eq!(fs::read_dir(home.join(FOLDER)).unwrap().count(), 4);
        bring_over(home, &[]);
        assert_eq!(fs::read_dir(home.join(FOLDER)).unwrap().count(), 4);
    }

    #[test]
    fn what_is_there_is_not_replaced_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let (taken, linked, file) =
            (Path::new("/srv/Taken"), Path::new("/srv/Linked"), Path::new("/srv/File"));
        let own = project_dir(home, taken);
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("config.yaml"), "# new\n").unwrap();
        let left = old(home, taken, 1, "# project: /srv/Taken\n");
        let elsewhere = home.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("config.yaml"), "# project: /srv/Linked\n").unwrap();
        let link = home.join(FOLDER).join(&old_names(linked)[1]);
        symlink(&elsewhere, &link).unwrap();
        let dir = old(home, file, 1, "");
        fs::remove_file(dir.join("config.yaml")).unwrap();
        fs::write(home.join("text"), "# project: /srv/File\n").unwrap();
        symlink(home.join("text"), dir.join("config.yaml")).unwrap();
        bring_over(home, &[linked.to_owned()]);
        assert_eq!(config(home, taken).as_deref(), Some("# new\n"));
        assert!(left.is_dir() && link.is_symlink() && dir.is_dir());
        assert!(!project_dir(home, linked).exists() && !project_dir(home, file).exists());
    }
}
