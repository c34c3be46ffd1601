//! The packages people install: what is in them, and what an installed one does until it is gone again.
//!
//! `scripts/test` makes them and runs these tests by themselves. Installing takes root, so a pipe takes the
//! wish; and everybody on this computer can see what is installed, so nothing else runs meanwhile.

use crate::world::{APP, SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or, try_eventually};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Another package manager may be at work.
const APT: Duration = Duration::from_secs(600);

/// In one package and not in the other: formats have places of their own for these.
const DEB_ONLY: [&str; 2] =
    ["/usr/share/doc/agentbox/changelog.gz", "/usr/share/zsh/vendor-completions/_agentbox"];
const RPM_ONLY: [&str; 3] = [
    "/usr/share/doc/agentbox/CHANGELOG.md",
    "/usr/share/licenses/agentbox/LICENSE",
    "/usr/share/zsh/site-functions/_agentbox",
];

fn folder() -> PathBuf {
    let folder = std::env::var_os("AGENTBOX_PACKAGES");
    folder.expect("AGENTBOX_PACKAGES says where the packages are; run scripts/test").into()
}

/// The package whose name ends so.
fn package(end: &str) -> PathBuf {
    let mut all = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    all.find(|path| path.to_string_lossy().ends_with(end)).expect("a package")
}

#[track_caller]
fn says(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// Asks whoever has root to `install` the package or to `remove` it.
fn manage(word: &str) -> Result<(), String> {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::fs::write(folder().join("ask"), format!("{word} {number}\n")).unwrap();
    let answer = folder().join(format!("said.{number}"));
    let said = try_eventually(APT, || std::fs::read_to_string(&answer));
    match said {
        Ok(said) if said.ends_with("\n0\n") => Ok(()),
        Ok(said) => Err(format!("{word}: {said}")),
        Err(error) => Err(format!("{word}: no answer within {APT:?}: {error}")),
    }
}

/// The package on this computer; gone when dropped.
struct Installed;

impl Installed {
    #[track_caller]
    fn now() -> Self {
        manage("install").unwrap();
        Self
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // The next test begins without it, whatever became of this one.
        match manage("remove") {
            Err(why) if std::thread::panicking() => eprintln!("{why}"),
            removed => removed.unwrap(),
        }
    }
}

/// Everything of this name where programs are installed.
fn named_agentbox() -> BTreeSet<String> {
    let mut find = Command::new("find");
    find.args(["/usr", "/etc", "/opt", "/var/lib/dpkg/info", "-xdev", "-iname", "*agentbox*"]);
    let found = text(&find.output().unwrap().stdout);
    found.lines().map(str::to_owned).collect()
}

/// What the deb would install, by its place.
fn unpacked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    says(Command::new("dpkg-deb").arg("-x").arg(package(".deb")).arg(dir.path()));
    dir
}

/// Files with the sum of what is in them.
fn in_deb() -> BTreeMap<String, String> {
    let dir = unpacked();
    let script = "find . -type f -print0 | xargs -0 sha256sum";
    let sums = says(Command::new("sh").args(["-c", script]).current_dir(dir.path()));
    let of = |line: &str| {
        let (sum, name) = line.split_once("  .").unwrap();
        (name.to_owned(), sum.to_owned())
    };
    sums.lines().map(of).collect()
}

/// One value a line for each file.
fn rpm(format: &str) -> Vec<String> {
    let db = tempfile::tempdir().unwrap();
    let mut rpm = Command::new("rpm");
    rpm.arg("--dbpath").arg(db.path()).args(["-qp", "--qf", &format!("[{format}\\n]")]);
    says(rpm.arg(package(".rpm"))).lines().map(str::to_owned).collect()
}

#[test]
fn both_packages_bring_the_same_files_and_run_nothing_as_root() {
    let (mut deb, mut of_rpm) = (in_deb(), BTreeMap::new());
    for line in
        rpm("%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES} %{FILEDIGESTS}")
    {
        let [mode, owner, name, sum] = *line.splitn(4, ' ').collect::<Vec<_>>() else { panic!() };
        assert_eq!(owner, "root:root", "{line}");
        match mode {
            "drwxr-xr-x" => assert!(name.ends_with("/agentbox"), "{line}"),
            "-rwxr-xr-x" | "-rw-r--r--" => {
                assert_eq!(mode == "-rwxr-xr-x", !name.starts_with("/usr/share/"), "{line}");
                of_rpm.insert(name.to_owned(), sum.to_owned());
            }
            _ => panic!("{line}"),
        }
    }
    for name in DEB_ONLY {
        assert!(deb.remove(name).is_some(), "{name}");
    }
    for name in RPM_ONLY {
        assert!(of_rpm.remove(name).is_some(), "{name}");
    }
    assert_eq!(deb, of_rpm);
    for name in [
        "bin/agentbox",
        "bin/agentbox-desktop",
        "lib/agentbox/agentbox-window",
        "lib/agentbox/agentbox-ctl",
    ] {
        assert!(deb.contains_key(&format!("/usr/{name}")), "{name}");
    }
    assert!(
        deb.keys().filter(|name| name.starts_with("/usr/share/man/man1/agentbox")).count() > 60
    );

    let tar = says(Command::new("sh").arg("-c").arg(format!(
        "dpkg-deb --ctrl-tarfile '{0}' | tar -t; dpkg-deb --fsys-tarfile '{0}' | tar -tv --numeric-owner",
        package(".deb").display()
    )));
    let (control, files): (Vec<_>, Vec<_>) = tar.lines().partition(|line| line.starts_with('.'));
    assert_eq!(control, ["./", "./control", "./md5sums"], "a script would run as root");
    assert!(files.iter().all(|line| line.contains(" 0/0 ")), "{files:?}");
    let scripts = ["PREIN", "POSTIN", "PREUN", "POSTUN", "TRIGGERSCRIPTS", "FILETRIGGERSCRIPTS"];
    for script in scripts {
        let said = rpm(&format!("%{{{script}}}")).concat();
        assert!(said.is_empty() || said == "(none)", "{script}: {said}");
    }
}

#[test]
fn packages_name_what_they_need() {
    let fields = says(Command::new("dpkg-deb").arg("-f").arg(package(".deb")));
    let field = |name: &str| {
        let start = format!("{name}: ");
        fields.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
    };
    for needed in
        ["libc6 (>= ", "libwebkit2gtk-4.1-0", "libgtk-3-0", "libdbus-1-3", "libsoup-3.0-0"]
    {
        assert!(field("Depends").contains(needed), "{needed}: {fields}");
    }
    for wanted in ["docker.io | ", "podman", "git", "gnome-keyring", "sshfs"] {
        assert!(field("Recommends").contains(wanted), "{wanted}: {fields}");
    }
    assert_eq!(field("Version"), env!("CARGO_PKG_VERSION"));
    let needs = rpm("%{REQUIRENAME}").join("\n");
    for library in ["libwebkit2gtk-4.1.so.0", "libgtk-3.so.0", "libc.so.6(GLIBC_"] {
        assert!(needs.contains(library), "{needs}");
    }
    assert!(rpm("%{RECOMMENDNAME}").contains(&"gnome-keyring".to_owned()));
}

#[test]
fn what_describes_the_app_is_as_desktops_expect_it() {
    let dir = unpacked();
    let share = dir.path().join("usr/share");
    let entry = share.join("applications/agentbox-desktop.desktop");
    let said = says(Command::new("desktop-file-validate").arg(&entry));
    assert_eq!(said, "", "a warning");
    let told = share.join("metainfo/dev.agentbox.desktop.metainfo.xml");
    says(Command::new("appstreamcli").args(["validate", "--no-net", "--no-color"]).arg(told));
    // It knows of the entry, its icon and the programs.
    let tree = ["validate-tree", "--no-net", "--no-color"];
    says(Command::new("appstreamcli").args(tree).arg(dir.path()));
    for size in [16, 22, 24, 32, 48, 64, 128, 256, 512] {
        let icon = share.join(format!("icons/hicolor/{size}x{size}/apps/agentbox.png"));
        let is = says(Command::new("identify").args(["-format", "%m %wx%h"]).arg(&icon));
        assert_eq!(is, format!("PNG {size}x{size}"));
    }
    assert!(share.join("icons/hicolor/scalable/apps/agentbox.svg").is_file());
    let entry = std::fs::read_to_string(entry).unwrap();
    for line in entry.lines().filter_map(|line| line.strip_prefix("Exec=")) {
        let program = line.split(' ').next().unwrap();
        assert!(dir.path().join("usr/bin").join(program).is_file(), "{line}");
    }
    let page = share.join("man/man1/agentbox-desktop.1.gz");
    let script = format!("zcat '{}' | groff -man -ww -Tascii 2>&1 >/dev/null", page.display());
    assert_eq!(says(Command::new("sh").args(["-c", &script])), "");
}

#[test]
fn an_installed_package_works_and_leaves_nothing_behind() {
    let before = named_agentbox();
    let installed = Installed::now();
    let files = says(Command::new("dpkg").args(["-L", "agentbox"]));
    let files: Vec<&Path> = files.lines().map(Path::new).filter(|path| path.is_file()).collect();
    assert!(files.len() > 20, "{files:?}");
    for file in &files {
        let is = file.symlink_metadata().unwrap();
        assert!(is.uid() == 0 && is.gid() == 0 && is.mode() & 0o6022 == 0, "{}", file.display());
    }
    assert!(named_agentbox().len() > before.len());
    // As the package manager sees it, nothing has changed since.
    assert_eq!(says(Command::new("dpkg").args(["-V", "agentbox"])), "");

    let mut world = World::desktop();
    let program = std::fs::read_link(format!("/proc/{}/exe", world.host_pid())).unwrap();
    assert_eq!(program, Path::new("/usr/bin/agentbox-desktop"));
    assert_eq!(world.json(&["status"])["status"]["kind"], "desktop");
    world.tray();
    // The program for boxes is found where the package has it.
    let images = world.json(&["prepare"]);
    assert_eq!(images["images"][0]["present"], true, "{images}");
    world.create("packaged");
    let sum = says(Command::new("sha256sum").arg("/usr/lib/agentbox/agentbox-ctl"));
    let inside = world.box_ok("packaged", "sha256sum /usr/local/bin/agentbox-ctl");
    assert_eq!(sum.split(' ').next(), inside.split(' ').next());
    // What a package manager installed is not AgentBox's to replace.
    let update = world.json(&["self-update", "--check"])["update"].clone();
    assert_eq!(update["packagedBy"], "dpkg", "{update}");
    assert!(world.ok(&["self-update", "--check"]).contains("update with your package manager"));

    world.ok(&["destroy", "packaged", "-y"]);
    world.ok(&["quit"]);
    world.await_host_end();
    drop(installed);
    for file in files {
        assert!(!file.exists(), "{} is still there", file.display());
    }
    assert_eq!(named_agentbox(), before);
    assert!(!Command::new("dpkg").args(["-s", "agentbox"]).output().unwrap().status.success());
    assert!(world.home().join("config.yaml").is_file(), "what is the person's stays");
}

#[test]
fn a_link_and_an_entry_of_the_menu_open_the_window_there() {
    let _installed = Installed::now();
    let world = World::desktop();
    let opened = |page: &str| {
        eventually_or(SOON, page, || {
            let windows = windows_of(&world);
            let wanted = format!(" --page {page} ");
            let found = windows.iter().any(|line| format!("{line} ").contains(&wanted));
            if found { Ok(()) } else { Err(format!("{windows:?}{}", world.host_log())) }
        });
        eventually(SOON, "the window", || {
            world.screen().windows(APP).iter().any(|w| w.contains("AgentBox")).then_some(())
        });
    };
    // As a browser does it: whoever the desktop knows for such links.
    says(world.session().command("gio").args(["open", "agentbox://new"]));
    opened("new");
    eventually(SOON, "no window", || {
        let _ = world.session().command("wmctrl").args(["-c", "AgentBox"]).output();
        windows_of(&world).is_empty().then_some(())
    });
    let entry = "/usr/share/applications/agentbox-desktop.desktop";
    let entry = std::fs::read_to_string(entry).unwrap();
    let action = entry.split("[Desktop Action inbox]").nth(1).unwrap();
    let line = action.lines().find_map(|line| line.strip_prefix("Exec=")).unwrap();
    says(world.session().command("sh").args(["-c", line]));
    opened("inbox");
}

/// The command lines of this session's windows.
fn windows_of(world: &World) -> Vec<String> {
    let marker = format!("HOME={}", world.session().home().display());
    let line = |entry: std::fs::DirEntry| {
        let read = |name: &str| text(&std::fs::read(entry.path().join(name)).unwrap_or_default());
        let line = read("cmdline").trim_end_matches('\0').replace('\0', " ");
        (line.starts_with("/usr/lib/agentbox/agentbox-window ")
            && read("environ").contains(&marker))
        .then_some(line)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(line).collect()
}
