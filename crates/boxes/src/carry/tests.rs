//! The resolver on real files.

use super::*;
use ::project::Project;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

pub(super) struct Host {
    _temp: tempfile::TempDir,
    root: PathBuf,
    pub(super) home: PathBuf,
}

impl Host {
    pub(super) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let host = Self { root: top.join("ada/shop"), home: top.join("ada"), _temp: temp };
        fs::create_dir_all(host.root.join("conf")).unwrap();
        fs::create_dir_all(host.home.join(".ssh")).unwrap();
        fs::create_dir_all(top.join("elsewhere")).unwrap();
        fs::write(host.home.join(".ssh/id_ed25519"), "KEY").unwrap();
        fs::write(host.home.join("notes"), "notes").unwrap();
        fs::write(top.join("elsewhere/x"), "x").unwrap();
        host
    }

    pub(super) fn resolve(&self, carry: &str, limit: u64) -> Result<Plan, Vec<String>> {
        let parsed = Project::parse(&format!("carry: {carry}\n"));
        let project = parsed.project.unwrap_or_else(|| panic!("{:?}", parsed.errors));
        resolve(&project, &self.root, &self.home, limit)
    }
}

#[test]
fn what_is_shown_is_what_is_there() {
    let host = Host::new();
    fs::set_permissions(host.home.join("notes"), fs::Permissions::from_mode(0o640)).unwrap();
    let plan = host.resolve(
        "[~/notes, {src: ~/notes, dest: ~/x/, mode: 0600, user: 0}, {src: ~/no, optional: true}]",
        100,
    );
    let lines = plan.unwrap().lines();
    let shown: Vec<_> = lines
        .iter()
        .map(|l| (l.src.as_str(), l.dest.as_str(), l.kind, l.bytes, l.mode.as_deref(), l.user))
        .collect();
    assert_eq!(
        shown,
        [
            ("~/notes", "/home/vscode/notes", CarryKind::File, 5, Some("0640"), None),
            ("~/notes", "/home/vscode/x/notes", CarryKind::File, 5, Some("0600"), Some(0)),
            ("~/no", "/home/vscode/no", CarryKind::Missing, 0, None, None),
        ]
    );
    assert!(lines.iter().all(|l| l.warnings.is_empty()), "{lines:?}");
}

#[test]
fn a_link_planted_in_the_project_is_shown_with_its_end() {
    let host = Host::new();
    symlink(host.home.join(".ssh/id_ed25519"), host.root.join("conf/app.json")).unwrap();
    symlink(host.home.join(".ssh"), host.root.join("assets")).unwrap();
    let lines =
        host.resolve("['./conf/app.json=/x', './assets/id_ed25519=/y']", 100).unwrap().lines();
    for line in &lines {
        assert_eq!(
            line.warnings,
            [
                "a link that leads out of the project, to ~/.ssh/id_ed25519",
                "looks like a credential"
            ]
        );
    }
    symlink(host.home.join("../elsewhere/x"), host.home.join("far")).unwrap();
    let line = &host.resolve("[~/far]", 100).unwrap().lines()[0];
    assert!(line.warnings[0].contains("leads out of your home"), "{line:?}");
    symlink("notes", host.home.join("near")).unwrap();
    assert_eq!(host.resolve("[~/near]", 100).unwrap().lines()[0].warnings, ["a link, to ~/notes"]);
    // However it is written.
    symlink(host.home.join("notes"), host.root.join("plan.txt")).unwrap();
    let line = &host.resolve("['~/shop/plan.txt=/x']", 100).unwrap().lines()[0];
    assert_eq!(line.warnings, ["a link that leads out of the project, to ~/notes"]);
}

#[test]
fn everything_wrong_is_said_at_once() {
    let host = Host::new();
    nix::unistd::mkfifo(&host.home.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = host.resolve("[~/no, ~/pipe, ~/.ssh/none]", 100).unwrap_err();
    assert_eq!(refused.len(), 3);
    assert!(refused[0].contains("optional: true"), "{refused:?}");
    assert!(refused[1].contains("neither a file nor a folder"), "{refused:?}");
    let twice = host.resolve("[~/notes, {src: ~/notes, dest: ~/}]", 100).unwrap_err();
    assert_eq!(twice, ["/home/vscode/notes: two entries go there"]);
    assert!(host.resolve("[~/notes, {src: ~/no, dest: ~/notes, optional: true}]", 100).is_ok());
    assert!(host.resolve("[~/notes]", 4).unwrap_err()[0].contains("box.cpMaxBytes"));
    let folder = host.resolve("[{src: ~/.ssh, replaceEnvs: true}]", 100).unwrap_err();
    assert!(folder[0].contains("this is a folder"), "{folder:?}");
}

#[test]
fn yaml_13_51_a_folder_counts_without_what_is_left_out() {
    let host = Host::new();
    let data = host.home.join("data");
    fs::create_dir_all(data.join("node_modules/big")).unwrap();
    fs::create_dir_all(data.join("sub")).unwrap();
    fs::File::create(data.join("node_modules/big/file")).unwrap().set_len(2 << 30).unwrap();
    fs::File::create(data.join("huge.log")).unwrap().set_len(2 << 30).unwrap();
    fs::write(data.join("sub/a"), "12345").unwrap();
    fs::write(data.join(".env"), "12345").unwrap();
    symlink("sub/a", data.join("inside")).unwrap();
    symlink("/etc/passwd", data.join("outside")).unwrap();
    assert!(host.resolve("[~/data]", 1000).is_err());
    let plan = host.resolve("[{src: ~/data, exclude: ['*.log']}]", 1000).unwrap();
    let line = &plan.lines()[0];
    assert_eq!((line.kind, line.bytes, line.mode.as_deref()), (CarryKind::Folder, 10, None));
    assert_eq!(line.notes, ["2 files"]);
    assert_eq!(
        line.warnings,
        ["1 links that lead out of it are left out", "1 files in it look like credentials"]
    );
}

#[test]
fn a_changed_list_has_another_digest() {
    let host = Host::new();
    let digest = |carry: &str| host.resolve(carry, 1000).unwrap().digest();
    let first = digest("[~/notes]");
    assert_eq!(first, digest("[~/notes]"));
    for other in
        ["[~/notes=/x]", "[{src: ~/notes, mode: 0600}]", "[{src: ~/notes, replaceEnvs: true}]"]
    {
        assert_ne!(first, digest(other), "{other}");
    }
    fs::write(host.home.join("notes"), "longer than before").unwrap();
    assert_ne!(first, digest("[~/notes]"));
}
