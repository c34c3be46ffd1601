//! Which files are used, and which are not.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

const ALL: Scope = Scope::Everybody;

fn id() -> SecretId {
    "github.token".parse().unwrap()
}

fn value(text: &str) -> Value {
    Value::new(text.into())
}

/// A folder that holds one credential, and the path of its file.
fn filled() -> (tempfile::TempDir, Folder, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = Folder::new(home.path().join("secrets"));
    folder.write(&ALL, &id(), &value("first")).unwrap();
    let file = folder.path.join("github.token");
    (home, folder, file)
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn assert_refused(folder: &Folder, why: &str) {
    let Err(Error::Failed(said)) = folder.read(&ALL, &id()) else { panic!("it was read") };
    assert!(said.contains(why), "{said}");
}

#[test]
fn only_the_owner_can_read_it() {
    let (_home, folder, file) = filled();
    assert_eq!((mode(&folder.path), mode(&file)), (0o700, 0o600));
}

#[test]
fn a_file_open_to_others_is_refused_until_set_again() {
    let (_home, folder, file) = filled();
    chmod(&file, 0o640);
    assert_refused(&folder, "open to others; chmod 600 ");
    folder.write(&ALL, &id(), &value("second")).unwrap();
    assert_eq!(folder.read(&ALL, &id()).unwrap().unwrap().expose(), "second");
}

#[test]
fn a_folder_open_to_others_is_refused() {
    let (_home, folder, _) = filled();
    chmod(&folder.path, 0o750);
    assert_refused(&folder, "open to others; chmod 700 ");
    assert!(folder.write(&ALL, &id(), &value("second")).is_err());
    assert!(folder.names(&ALL).is_err());
}

#[test]
fn links_are_neither_followed_nor_written_through() {
    let (home, folder, file) = filled();
    let elsewhere = home.path().join("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_refused(&folder, "symbolic link");
    folder.write(&ALL, &id(), &value("second")).unwrap();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "first");
    assert_eq!(folder.read(&ALL, &id()).unwrap().unwrap().expose(), "second");

    std::fs::hard_link(&file, home.path().join("also")).unwrap();
    assert_refused(&folder, "second name");

    let other = Folder::new(home.path().join("link"));
    symlink(&folder.path, &other.path).unwrap();
    assert!(matches!(other.read(&ALL, &id()), Err(Error::Failed(_))));
}

#[test]
fn a_pipe_in_its_place_does_not_wait() {
    let (_home, folder, file) = filled();
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    assert_refused(&folder, "not a regular file");
}

#[test]
fn what_a_killed_host_left_is_replaced_and_removed() {
    let (_home, folder, file) = filled();
    let left = folder.path.join(".github.token.new");
    std::fs::write(&left, "half").unwrap();
    assert_eq!(folder.names(&ALL).unwrap(), [id()]);
    folder.write(&ALL, &id(), &value("second")).unwrap();
    assert!(!left.exists());

    std::fs::write(&left, "half").unwrap();
    assert!(folder.unlink(&ALL, &id()).unwrap());
    assert!(!left.exists() && !file.exists());
}

#[test]
fn a_hand_made_file_is_read_without_its_line_end() {
    let (_home, folder, file) = filled();
    std::fs::write(&file, "by hand\n").unwrap();
    assert_eq!(folder.read(&ALL, &id()).unwrap().unwrap().expose(), "by hand");
    std::fs::write(&file, "x".repeat(MOST + 10)).unwrap();
    assert!(matches!(folder.read(&ALL, &id()), Err(Error::TooLarge)));
}

fn project(text: &str) -> Scope {
    Scope::Project(text.parse().unwrap())
}

fn of_box(text: &str) -> Scope {
    Scope::Box(text.parse().unwrap())
}

fn text(folder: &Folder, scope: &Scope) -> Option<String> {
    folder.read(scope, &id()).unwrap().map(|value| value.expose().to_owned())
}

#[test]
fn each_scope_has_its_own_file() {
    let (_home, folder, _) = filled();
    let (one, two, boxed) = (project("aa"), project("bb"), of_box("b01020304"));
    assert_eq!(text(&folder, &one), None);
    folder.write(&one, &id(), &value("of one")).unwrap();
    folder.write(&boxed, &id(), &value("of a box")).unwrap();
    for (scope, kept) in
        [(&ALL, Some("first")), (&one, Some("of one")), (&two, None), (&boxed, Some("of a box"))]
    {
        assert_eq!(text(&folder, scope).as_deref(), kept, "{scope}");
        assert_eq!(folder.names(scope).unwrap().len(), usize::from(kept.is_some()), "{scope}");
    }
    let file = folder.path.join("@project/aa/github.token");
    for path in [&file, &folder.path.join("@box/b01020304/github.token")] {
        assert_eq!(mode(path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
    }

    assert!(folder.unlink(&one, &id()).unwrap());
    assert!(!file.parent().unwrap().exists(), "an empty folder stayed");
    assert_eq!(text(&folder, &ALL).as_deref(), Some("first"));
    assert_eq!(text(&folder, &boxed).as_deref(), Some("of a box"));
}

#[test]
fn egress_12_34_every_folder_on_the_way_is_checked() {
    let (home, folder, _) = filled();
    let scope = project("aa");
    folder.write(&scope, &id(), &value("of one")).unwrap();
    for part in ["@project", "@project/aa"] {
        let dir = folder.path.join(part);
        chmod(&dir, 0o750);
        let said = folder.read(&scope, &id()).unwrap_err().to_string();
        assert!(said.contains("open to others; chmod 700 "), "{said}");
        assert!(folder.write(&scope, &id(), &value("second")).is_err());
        chmod(&dir, 0o700);

        let elsewhere = home.path().join("elsewhere");
        std::fs::rename(&dir, &elsewhere).unwrap();
        symlink(&elsewhere, &dir).unwrap();
        let said = folder.read(&scope, &id()).unwrap_err().to_string();
        assert!(said.contains("not a folder, or a link"), "{said}");
        assert!(folder.write(&scope, &id(), &value("second")).is_err());
        std::fs::remove_file(&dir).unwrap();
        std::fs::rename(&elsewhere, &dir).unwrap();
    }
    assert_eq!(text(&folder, &scope).as_deref(), Some("of one"));
}

#[test]
fn egress_12_32_one_line_end_is_taken_off_and_nothing_else_is_let_through() {
    let (_home, folder, file) = filled();
    for bytes in [&b"tok"[..], b"tok\n", b"tok\r\n"] {
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(text(&folder, &ALL).as_deref(), Some("tok"), "{bytes:?}");
    }
    let bad = [
        &b"tok-sesame\n\n"[..],
        b"tok-sesame\r",
        b"tok-sesame\nb",
        b"tok-sesame\rb",
        b"tok-sesame\0b",
        b"tok-sesame\xff",
        b"",
        b"\n",
        b"\r\n",
    ];
    for bytes in bad {
        std::fs::write(&file, bytes).unwrap();
        let error = folder.read(&ALL, &id()).unwrap_err();
        assert!(matches!(error, Error::Malformed(_) | Error::Empty), "{bytes:?}: {error:?}");
        let said = format!("{error} {error:?} {:?}", error.hint());
        assert!(!said.contains("tok-") && !said.contains("sesame"), "{said}");
    }
    std::fs::write(&file, "x".repeat(MOST)).unwrap();
    assert_eq!(text(&folder, &ALL).unwrap().len(), MOST);
    for more in [1, 2, 3, 4, 1 << 20] {
        std::fs::write(&file, "x".repeat(MOST + more)).unwrap();
        assert_eq!(folder.read(&ALL, &id()).unwrap_err(), Error::TooLarge, "{more} more");
    }
}

#[test]
fn egress_12_33_no_id_leads_out_of_the_folder() {
    for bad in ["../x", ".", "..", "a/b", "a b", "", "@box", "-a.b", ".a.b", "a.b\0", "A.b", "a..b"]
    {
        assert!(bad.parse::<SecretId>().is_err(), "{bad:?}");
    }
}

#[test]
fn egress_12_34_what_is_no_private_file_of_ours_is_refused_at_once() {
    type Make = fn(&Path, &Path);
    let cases: [(&str, &str, Make); 6] = [
        ("symbolic link", "symbolic link", |file, other| symlink(other, file).unwrap()),
        ("folder", "not a regular file", |file, _| std::fs::create_dir(file).unwrap()),
        ("pipe", "not a regular file", |file, _| {
            nix::unistd::mkfifo(file, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        }),
        ("second name", "second name", |file, other| std::fs::hard_link(other, file).unwrap()),
        ("0644", "open to others; chmod 600", |file, other| {
            std::fs::copy(other, file).unwrap();
            chmod(file, 0o644);
        }),
        ("0620", "open to others; chmod 600", |file, other| {
            std::fs::copy(other, file).unwrap();
            chmod(file, 0o620);
        }),
    ];
    for (what, why, make) in cases {
        let (home, folder, file) = filled();
        let other = home.path().join("other");
        std::fs::rename(&file, &other).unwrap();
        make(&file, &other);
        let begun = Instant::now();
        assert_refused(&folder, why);
        assert!(begun.elapsed() < Duration::from_millis(100), "{what}: {:?}", begun.elapsed());
        let said = folder.read(&ALL, &id()).unwrap_err().to_string();
        assert!(!said.contains("first"), "{said}");
    }
}

/// Only root can give a file away, so the rule itself is asked.
#[test]
fn egress_12_34_a_file_of_somebody_else_is_refused() {
    let (_home, _folder, file) = filled();
    let mut stat = nix::sys::stat::stat(&file).unwrap();
    assert!(check_file(&file, &id(), &stat).is_ok());
    stat.st_uid = geteuid().as_raw() + 1;
    let said = check_file(&file, &id(), &stat).unwrap_err().to_string();
    assert!(said.contains("belongs to somebody else"), "{said}");
}

/// On a volume that does not tell upper case from lower the file would open all the same.
#[test]
fn egress_12_34_a_file_is_known_by_its_exact_name() {
    let (_home, folder, file) = filled();
    std::fs::rename(&file, folder.path.join("GitHub.Token")).unwrap();
    let dir = folder.open(&ALL).unwrap().unwrap();
    let names = entries(&dir).unwrap();
    assert!(names.contains(&"GitHub.Token".to_owned()) && !names.contains(&id().to_string()));
    assert_eq!(folder.names(&ALL).unwrap(), []);
    assert_eq!(text(&folder, &ALL), None);
}

/// A reader that opened the old file finds it without a name.
#[test]
fn egress_12_35_a_value_that_is_replaced_is_read_all_the_same() {
    let (_home, folder, _) = filled();
    let writer = std::thread::spawn({
        let folder = folder.clone();
        move || (0..300).for_each(|n| folder.write(&ALL, &id(), &value(&n.to_string())).unwrap())
    });
    while !writer.is_finished() {
        assert!(text(&folder, &ALL).is_some());
    }
    writer.join().unwrap();
    assert_eq!(text(&folder, &ALL).as_deref(), Some("299"));
}
