//! Copies as a box asks for them: a real socket or bridge, real folders, archives made by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod support;

use agentbox_relay::Mode;
use protocol::question::{Question, Surface, Tier, Verdict};
use protocol::rpc::Envelope;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use support::{Carrier, Setup, World};

/// A world whose person has a home folder of their own.
struct Place {
    world: World,
    home: tempfile::TempDir,
}

impl Place {
    async fn new(carrier: Carrier) -> Self {
        let home = tempfile::tempdir().unwrap();
        let env = vec![("HOME".to_owned(), home.path().to_str().unwrap().to_owned())];
        let world = World::with(Setup { env, ..Setup::new(carrier) }).await;
        Self { world, home }
    }

    async fn safe(carrier: Carrier) -> Self {
        let place = Self::new(carrier).await;
        place.world.policy(|policy| policy.mode = Mode::Safe);
        place
    }

    fn host(&self, name: &str) -> PathBuf {
        self.world.host.join(name)
    }

    fn inside(&self, name: &str, text: &str) {
        put(&self.world.inside.join(name), text);
    }

    async fn out(&self, sources: &[&str], dest: &str) -> Envelope {
        self.world.call("cp.toHost", json!({ "sources": sources, "dest": dest })).await
    }

    async fn out_asked(
        &self,
        sources: &[&str],
        dest: &str,
        verdict: Verdict,
    ) -> (Envelope, Question) {
        let params = json!({ "sources": sources, "dest": dest });
        self.world.answered("cp.toHost", params, verdict).await
    }

    async fn take_in(&self, sources: &[&str], dest: &str) -> Envelope {
        self.world.call("cp.fromHost", json!({ "sources": sources, "dest": dest })).await
    }

    async fn take_in_asked(
        &self,
        sources: &[&str],
        dest: &str,
        verdict: Verdict,
    ) -> (Envelope, Question) {
        let params = json!({ "sources": sources, "dest": dest });
        self.world.answered("cp.fromHost", params, verdict).await
    }

    /// The names in the last archive the box was given, with their content.
    fn given(&self) -> Vec<(String, String)> {
        use std::io::Read;
        let got = self.world.copies.got.lock().unwrap();
        let (_, bytes) = got.last().expect("the box was given nothing");
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read = |mut entry: tar::Entry<'_, &[u8]>| {
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), text)
        };
        archive.entries().unwrap().map(|entry| read(entry.unwrap())).collect()
    }

    fn asked(&self) -> usize {
        self.world.kinds().iter().filter(|kind| *kind == "asked").count()
    }
}

fn put(at: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
}

fn note<'q>(question: &'q Question, name: &str) -> Option<&'q str> {
    let line = question.evidence.files.iter().find(|line| line.path == name);
    line.unwrap_or_else(|| panic!("{name} is not in {:?}", question.evidence.files)).note.as_deref()
}

fn names(question: &Question) -> Vec<&str> {
    question.evidence.files.iter().map(|line| line.path.as_str()).collect()
}

/// One header and its bytes, whatever they say.
fn block(name: &str, kind: u8, link: &str, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name.as_bytes());
    gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
    gnu.typeflag = [kind];
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn hostile(blocks: &[Vec<u8>]) -> Vec<u8> {
    [blocks.concat(), vec![0; 1024]].concat()
}

/// Every file below a folder, with its text.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => pending.push(entry.path()),
                kind if kind.is_file() => {
                    found.push((entry.path(), fs::read(entry.path()).unwrap()));
                }
                _ => found.push((entry.path(), b"a link".to_vec())),
            }
        }
    }
    found.sort();
    found
}

over_both_carriers! {
    async fn relay_19_44_files_of_the_project_come_into_the_box(carrier) {
        let at = Place::safe(carrier).await;
        put(&at.host("README.md"), "hello");
        let done = at.take_in(&["README.md"], "/workspace/").await;
        assert_eq!((done.exit_code, done.stdout.as_str()), (0, "copied to smoke:/workspace/\n"));
        assert_eq!(at.given(), [("README.md".to_owned(), "hello".to_owned())]);
        assert_eq!(at.world.copies.got.lock().unwrap()[0].0, "/workspace/");
        assert_eq!(at.world.kinds(), ["allowed-by-policy", "executed"]);
    }

    async fn relay_19_44_a_credential_in_a_folder_is_pointed_out(carrier) {
        let at = Place::safe(carrier).await;
        put(&at.host("src/main.rs"), "fn main() {}");
        put(&at.host(".env"), "KEY=1");
        put(&at.host("node_modules/x/index.js"), "x");
        let (done, question) = at.take_in_asked(&["."], "/workspace/copy", Verdict::Deny).await;
        assert_eq!(done.exit_code, 10);
        assert_eq!(question.tier, Tier::Sensitive);
        assert_eq!(names(&question)[0], ".env");
        assert_eq!(note(&question, ".env"), Some("looks like a credential"));
        assert_eq!(note(&question, "src/main.rs"), None);
        assert!(question.warnings[0].starts_with("looks like a credential: "), "{:?}", question.warnings);
        assert!(question.remember.is_none());
        assert!(!names(&question).iter().any(|name| name.contains("node_modules")));
        assert!(at.world.copies.got.lock().unwrap().is_empty());
    }

    async fn relay_19_45_the_boxs_own_folder_may_be_filled(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("a.txt", "text");
        let dest = ".agentbox/out/smoke/a.txt";
        let done = at.out(&["/workspace/a.txt"], dest).await;
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        assert_eq!(fs::read_to_string(at.host(dest)).unwrap(), "text");
        assert_eq!(at.world.kinds(), ["allowed-by-policy", "executed"]);
        // Not twice: it is there now.
        at.inside("a.txt", "other");
        let (done, question) = at.out_asked(&["/workspace/a.txt"], dest, Verdict::Deny).await;
        assert_eq!(done.exit_code, 10);
        assert_eq!(note(&question, "a.txt"), Some("overwrites"));
        assert_eq!(fs::read_to_string(at.host(dest)).unwrap(), "text");
    }

    async fn relay_19_45_what_runs_on_the_host_is_asked_in_red(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("agentbox.yaml", "tasks: []");
        let (done, question) = at.out_asked(&["/workspace/agentbox.yaml"], "agentbox.yaml", Verdict::AllowOnce).await;
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        assert_eq!(question.warnings, ["writes to this computer", "runs code on this computer: agentbox.yaml"]);
        assert_eq!(question.tier, Tier::Sensitive);
        assert!(question.remember.is_none());
        assert_eq!(fs::read_to_string(at.host("agentbox.yaml")).unwrap(), "tasks: []");
    }

    async fn relay_19_45_an_archive_that_leads_out_writes_nothing(carrier) {
        let at = Place::safe(carrier).await;
        let outside = at.home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let before = tree(at.world.dir.path());
        let target = outside.to_str().unwrap();
        for blocks in [
            vec![block("../x", b'0', "", b"x")],
            vec![block("top/../../x", b'0', "", b"x")],
            vec![block("/etc/agentbox-x", b'0', "", b"x")],
            vec![block("top/l", b'2', target, b""), block("top/l/x", b'0', "", b"x")],
            vec![block("top/l", b'2', "../..", b""), block("top/l/x", b'0', "", b"x")],
            vec![block("top/hard", b'1', "/etc/passwd", b"")],
            vec![block("top/dev", b'3', "", b"")],
            vec![block("top/pipe", b'6', "", b"")],
            vec![block("top/sparse", b'S', "", b"")],
            vec![block("top/a", b'0', "", b"shown"), block("top/a", b'0', "", b"written")],
            vec![block("top/a", b'0', "", b"x"), block(".git/hooks/pre-commit", b'0', "", b"x")],
        ] {
            *at.world.copies.sends.lock().unwrap() = Some(hostile(&blocks));
            let done = at.out(&["/workspace/top"], ".agentbox/out/smoke/").await;
            assert_eq!(done.exit_code, 1, "{}", done.stderr);
            assert!(done.stderr.starts_with("cp toHost: the box sent "), "{}", done.stderr);
        }
        assert_eq!(tree(at.world.dir.path()), before);
        assert_eq!(tree(&outside), []);
        assert_eq!(at.asked(), 0);
    }
}

over_both_carriers! {
    async fn relay_19_44_and_a17_the_real_path_decides_whatever_it_is_called(carrier) {
        let at = Place::safe(carrier).await;
        let home = at.home.path();
        put(&home.join(".ssh/id_ed25519"), "key");
        put(&home.join("notes/plain.txt"), "notes");
        put(&at.host(".ENV"), "KEY=1");
        symlink(home.join(".ssh/id_ed25519"), at.host("notes")).unwrap();
        symlink(home.join("notes"), at.host("folder")).unwrap();
        for (source, expected) in [
            ("~/.ssh/id_ed25519", "looks like a credential"),
            ("~/.ssh", "looks like a credential"),
            (".ENV", "looks like a credential"),
            ("notes", "looks like a credential"),
            ("folder", "outside the project"),
            ("~/notes/plain.txt", "outside the project"),
        ] {
            // Not denied: the third no in a row would end the questions for a while.
            let (done, question) = at.take_in_asked(&[source], "/workspace/", Verdict::AllowOnce).await;
            assert_eq!(done.exit_code, 0, "{source}: {}", done.stderr);
            assert_eq!(question.evidence.files[0].note.as_deref(), Some(expected), "{source}");
            assert!(question.warnings.iter().any(|w| w.starts_with(expected)), "{source}");
            let secret = expected == "looks like a credential";
            assert_eq!(question.remember.is_none(), secret, "{source}");
        }
        // The link's own name is kept, its content is what it leads to.
        let (done, _) = at.take_in_asked(&["notes"], "/workspace/", Verdict::AllowOnce).await;
        assert_eq!(done.exit_code, 0);
        assert_eq!(at.given(), [("notes".to_owned(), "key".to_owned())]);
    }

    async fn relay_a17_some_places_are_never_copied(carrier) {
        let at = Place::safe(carrier).await;
        let home = at.home.path();
        put(&home.join(".local/share/keyrings/login.keyring"), "keys");
        let own = at.world.dir.path().join("home");
        put(&own.join("agentbox.db"), "state");
        symlink(&own, at.host("state")).unwrap();
        symlink("/proc/self", at.host("process")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at.host("sock")).unwrap();
        let db = own.join("agentbox.db").display().to_string();
        for source in [
            "/proc/self/environ",
            "/proc",
            "/sys/kernel",
            "/dev/null",
            "/",
            "~/.local/share/keyrings/login.keyring",
            "~/.local/share/keyrings",
            "~",
            &db,
            "state/agentbox.db",
            "state",
            "process",
            "sock",
        ] {
            let done = at.take_in(&[source], "/workspace/").await;
            assert_eq!(done.exit_code, 65, "{source}: {}", done.stderr);
            assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        }
        let gone = at.take_in(&["no/such/file"], "/workspace/").await;
        assert_eq!(gone.exit_code, 1);
        assert!(gone.stderr.contains("is not there"), "{}", gone.stderr);
        assert_eq!(at.asked(), 0);
        assert!(at.world.copies.got.lock().unwrap().is_empty());
    }

    async fn links_in_a_folder_stay_links_and_say_where_they_lead(carrier) {
        let at = Place::safe(carrier).await;
        put(&at.host("docs/a.md"), "a");
        put(&at.home.path().join("diary.txt"), "not for boxes");
        symlink("a.md", at.host("docs/alias")).unwrap();
        symlink(at.home.path().join("diary.txt"), at.host("docs/out")).unwrap();
        let (done, question) = at.take_in_asked(&["docs"], "/workspace/", Verdict::AllowOnce).await;
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        let out = question.evidence.files.iter().find(|f| f.path.starts_with("docs/out → ")).unwrap();
        assert_eq!(out.note.as_deref(), Some("leads out of the project"));
        let given = at.given();
        assert!(!given.iter().any(|(_, text)| text.contains("not for boxes")), "{given:?}");
        assert!(given.iter().any(|(name, _)| name == "docs/alias"));
    }

    async fn what_is_shown_is_what_is_sent(carrier) {
        let at = Place::new(carrier).await;
        put(&at.host("a.txt"), "shown");
        let swap = async {
            let question = at.world.question().await;
            fs::write(at.host("a.txt"), "slipped in later").unwrap();
            let yes = Verdict::AllowOnce;
            at.world.broker.answer(&question.id, &question.digest, yes, Surface::Cli).unwrap();
        };
        let (done, ()) = tokio::join!(at.take_in(&["a.txt"], "/workspace/"), swap);
        assert_eq!(done.exit_code, 0);
        assert_eq!(at.given(), [("a.txt".to_owned(), "shown".to_owned())]);
    }

    async fn relay_a25_the_question_shows_where_it_really_goes(carrier) {
        let at = Place::new(carrier).await;
        at.inside("dir/one", "1");
        at.inside("dir/run.sh", "#!/bin/sh");
        let script = at.world.inside.join("dir/run.sh");
        fs::set_permissions(script, fs::Permissions::from_mode(0o4755)).unwrap();
        fs::create_dir(at.host("real")).unwrap();
        symlink("real", at.host("link")).unwrap();
        let (done, question) = at.out_asked(&["/workspace/dir"], "link", Verdict::AllowOnce).await;
        let real = at.host("real").canonicalize().unwrap().display().to_string();
        assert_eq!(question.target, real);
        assert_eq!(question.argv, ["cp", "smoke:/workspace/dir", &real]);
        assert_eq!(question.evidence.summary.as_deref(), Some("2 files, 10 B"));
        assert_eq!(names(&question), ["dir/one", "dir/run.sh"]);
        assert_eq!(note(&question, "dir/run.sh"), Some("can be run"));
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        assert_eq!(done.stdout, "copied to real\n", "where the project lies is not told");
        let mode = fs::metadata(at.host("real/dir/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "it may not run as somebody else");
        assert_ne!(mode & 0o111, 0);
        // The home folder is the person's, a relative path is the project's.
        at.inside("x", "x");
        let (done, question) = at.out_asked(&["/workspace/x"], "~/new name", Verdict::AllowOnce).await;
        assert_eq!(done.stdout, "copied to ~/new name\n");
        assert!(question.warnings.contains(&"outside the project folder".to_owned()));
        assert_eq!(fs::read_to_string(at.home.path().join("new name")).unwrap(), "x");
    }

    async fn relay_a18_hooks_and_the_like_are_asked_with_a_warning(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("pre-commit", "#!/bin/sh");
        for (dest, shown) in [
            (".git/hooks/", "pre-commit"),
            (".GIT/hooks/x", "x"),
            ("~/.bashrc", ".bashrc"),
            ("~/.config/autostart/x.desktop", "x.desktop"),
            ("sub/Makefile", "Makefile"),
        ] {
            let (done, question) =
                at.out_asked(&["/workspace/pre-commit"], dest, Verdict::AllowOnce).await;
            assert_eq!(done.exit_code, 0, "{dest}: {}", done.stderr);
            assert_eq!(note(&question, shown), Some("runs code on this computer"), "{dest}");
            assert!(question.remember.is_none(), "{dest}");
        }
    }

    async fn relay_a18_nothing_is_written_through_a_link_of_the_hosts(carrier) {
        let at = Place::new(carrier).await;
        let outside = at.home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        at.inside("top/sub/x", "x");
        fs::create_dir(at.host("top")).unwrap();
        symlink(&outside, at.host("top/sub")).unwrap();
        let done = at.out(&["/workspace/top"], ".").await;
        assert_eq!(done.exit_code, 1);
        assert!(done.stderr.contains("links are not followed"), "{}", done.stderr);
        assert_eq!(tree(&outside), []);
        assert_eq!(at.asked(), 0);
    }

    async fn relay_a18_a_link_put_in_the_way_after_the_question_leads_nowhere(carrier) {
        let at = Place::new(carrier).await;
        let outside = at.home.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        for (source, dest) in [("top", "out/"), ("top/x", "out/x"), ("top", "out/new/deep/")] {
            at.inside("top/x", "x");
            let _ = fs::remove_file(at.host("out"));
            let _ = fs::remove_dir_all(at.host("out"));
            fs::create_dir(at.host("out")).unwrap();
            let swap = async {
                let question = at.world.question().await;
                fs::remove_dir(at.host("out")).unwrap();
                symlink(&outside, at.host("out")).unwrap();
                let yes = Verdict::AllowOnce;
                at.world.broker.answer(&question.id, &question.digest, yes, Surface::Cli).unwrap();
            };
            let source = format!("/workspace/{source}");
            let sources = [source.as_str()];
            let (done, ()) = tokio::join!(at.out(&sources, dest), swap);
            assert_eq!(done.exit_code, 10, "{}", done.stderr);
            assert!(done.stderr.contains("changed since approval"), "{}", done.stderr);
            assert_eq!(tree(&outside), []);
        }
    }

    async fn relay_a41_a_file_that_came_or_changed_meanwhile_is_not_overwritten(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a", "from the box");
        at.inside("b", "from the box");
        fs::write(at.host("b"), "old").unwrap();
        for change in ["came", "changed", "replaced", "gone"] {
            let _ = fs::remove_file(at.host("a"));
            fs::write(at.host("b"), "old").unwrap();
            let swap = async {
                let question = at.world.question().await;
                assert_eq!(note(&question, "b"), Some("overwrites"));
                match change {
                    "came" => fs::write(at.host("a"), "the person's").unwrap(),
                    "changed" => fs::write(at.host("b"), "the person's").unwrap(),
                    "replaced" => {
                        fs::remove_file(at.host("b")).unwrap();
                        symlink(at.home.path().join("elsewhere"), at.host("b")).unwrap();
                    }
                    _ => fs::remove_file(at.host("b")).unwrap(),
                }
                let yes = Verdict::AllowOnce;
                at.world.broker.answer(&question.id, &question.digest, yes, Surface::Cli).unwrap();
            };
            let copy = at.out(&["/workspace/a", "/workspace/b"], "./");
            let (done, ()) = tokio::join!(copy, swap);
            assert_eq!(done.exit_code, 10, "{change}: {}", done.stderr);
            assert!(done.stderr.contains("changed since approval"), "{change}: {}", done.stderr);
            let mine = |name: &str| fs::read_to_string(at.host(name)).unwrap_or_default();
            assert!(mine("a") != "from the box" && mine("b") != "from the box", "{change}");
            let _ = fs::remove_file(at.host("b"));
        }
        assert!(!at.home.path().join("elsewhere").exists());
    }

    async fn an_allowed_overwrite_replaces_the_file_whole(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a", "new");
        fs::write(at.host("a"), "older and longer").unwrap();
        let (done, question) = at.out_asked(&["/workspace/a"], "a", Verdict::AllowOnce).await;
        assert_eq!(done.exit_code, 0, "{}", done.stderr);
        assert_eq!(question.warnings, ["writes to this computer", "overwrites 1 file: a"]);
        assert_eq!(fs::read_to_string(at.host("a")).unwrap(), "new");
        let left: Vec<_> =
            fs::read_dir(&at.world.host).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|n| n.to_string_lossy().starts_with(".agentbox")), "{left:?}");
    }

    async fn agentboxs_own_folder_cannot_be_written(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("config.yaml", "approvals: {mode: safe}");
        at.inside("home/config.yaml", "approvals: {mode: safe}");
        let own = at.world.dir.path().join("home");
        fs::create_dir_all(&own).unwrap();
        symlink(&own, at.host("state")).unwrap();
        let parent = at.world.dir.path().display().to_string();
        for (source, dest) in [
            ("config.yaml", own.display().to_string()),
            ("config.yaml", own.join("config.yaml").display().to_string()),
            ("config.yaml", "state/".to_owned()),
            ("home", format!("{parent}/")),
            ("config.yaml", "/proc/self/x".to_owned()),
            ("config.yaml", "~/.local/share/keyrings/".to_owned()),
        ] {
            let done = at.out(&[&format!("/workspace/{source}")], &dest).await;
            assert_eq!(done.exit_code, 65, "{dest}: {}", done.stderr);
        }
        assert_eq!(tree(&own), []);
        assert_eq!(at.asked(), 0);
    }

    async fn safe_mode_lets_pass_only_what_is_new_harmless_and_small(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("ok/a.txt", "x");
        at.inside("odd/package.json", "{}");
        at.inside("big", &"x".repeat(5000));
        let own = ".agentbox/out/smoke/";
        assert_eq!(at.out(&["/workspace/ok"], own).await.exit_code, 0);
        assert_eq!(at.asked(), 0);
        let deny = Verdict::Deny;
        let (_, question) = at.out_asked(&["/workspace/odd"], own, deny).await;
        assert_eq!(note(&question, "odd/package.json"), Some("runs code on this computer"));
        at.world.policy(|policy| policy.copy_max_bytes = 1000);
        let (_, question) = at.out_asked(&["/workspace/big"], own, deny).await;
        assert!(
            question.warnings.contains(&"larger than 1.0 kB (box.cpMaxBytes)".to_owned()),
            "{:?}",
            question.warnings
        );
        assert!(question.remember.is_none());
        for elsewhere in ["out.txt", ".agentbox/out/other/", ".agentbox/out/", "~/x"] {
            // The third no in a row would end the questions of this kind for a while.
            let other = Place::safe(carrier).await;
            other.inside("ok/a.txt", "x");
            other.out_asked(&["/workspace/ok/a.txt"], elsewhere, deny).await;
        }
        // A repository may bring a link along where the box's own folder would be.
        let other = Place::safe(carrier).await;
        other.inside("ok/a.txt", "x");
        symlink(other.home.path(), other.host(".agentbox")).unwrap();
        other.out_asked(&["/workspace/ok"], own, deny).await;
        assert_eq!(tree(other.home.path()), []);
    }

    async fn without_safe_mode_everything_is_asked(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a.txt", "x");
        put(&at.host("README.md"), "hello");
        let (done, question) =
            at.out_asked(&["/workspace/a.txt"], ".agentbox/out/smoke/", Verdict::Deny).await;
        assert_eq!((done.exit_code, done.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!(question.remember.unwrap().kind, None);
        let (done, question) = at.take_in_asked(&["README.md"], "/workspace/", Verdict::Deny).await;
        assert_eq!(done.exit_code, 10);
        let rule = question.remember.unwrap();
        assert!(rule.exact.contains("README.md") && rule.kind.unwrap().contains("that look harmless"));
    }

    async fn cp_keeps_its_habits(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a", "1");
        at.inside("b", "2");
        let several = at.out(&["/workspace/a", "/workspace/b"], "new").await;
        assert_eq!(several.exit_code, 64);
        assert!(several.stderr.contains("end it with '/'"), "{}", several.stderr);
        let (done, _) =
            at.out_asked(&["/workspace/a", "/workspace/b"], "new/", Verdict::AllowOnce).await;
        assert_eq!(done.exit_code, 0);
        assert_eq!(fs::read_to_string(at.host("new/b")).unwrap(), "2");
        let missing = at.out(&["/workspace/none"], "x").await;
        assert_eq!(missing.exit_code, 1);
        let params = json!({ "sources": ["."], "dest": "/workspace/", "exclude": ["*.md"] });
        put(&at.host("keep.txt"), "k");
        put(&at.host("docs/x.md"), "m");
        put(&at.host("target/debug"), "t");
        let (done, question) = at.world.answered("cp.fromHost", params, Verdict::AllowOnce).await;
        assert_eq!(names(&question), ["README", "keep.txt", "new/a", "new/b"]);
        assert_eq!(done.stderr, "cp fromHost: left out: .git, target, x.md\n");
    }

    async fn relay_a16_parameters_are_strict(carrier) {
        let at = Place::new(carrier).await;
        let long = "x".repeat(5000);
        for (method, params) in [
            ("cp.toHost", json!({ "sources": ["/workspace/../x"], "dest": "x" })),
            ("cp.toHost", json!({ "sources": ["/workspace/a\0"], "dest": "x" })),
            ("cp.toHost", json!({ "sources": ["/workspace/a"], "dest": "x\n" })),
            ("cp.toHost", json!({ "sources": ["/workspace/a"], "dest": long })),
            ("cp.toHost", json!({ "sources": ["/workspace/a"], "dest": "../x" })),
            ("cp.toHost", json!({ "sources": ["/workspace/a"] })),
            ("cp.toHost", json!({ "sources": [], "dest": "x" })),
            ("cp.toHost", json!({ "sources": ["/workspace/a"], "dest": "x", "yes": true })),
            ("cp.toHost", json!({ "sources": "/workspace/a", "dest": "x" })),
            ("cp.toHost", json!({ "boxPath": "/workspace/a", "hostPath": "x" })),
            ("cp.fromHost", json!({ "sources": ["x"], "dest": "/workspace/../etc" })),
            ("cp.fromHost", json!({ "sources": ["~root/x"], "dest": "/workspace/" })),
            (
                "cp.fromHost",
                json!({ "sources": ["x"], "dest": "/workspace/", "path": "/workspace/.." }),
            ),
            ("download.workspace", json!({ "to": "/etc" })),
            ("download.env", json!({})),
            ("download.config", json!({})),
            ("download.claude", json!({})),
        ] {
            let done = at.world.call(method, params.clone()).await;
            assert_eq!(done.exit_code, 64, "{method} {params}: {}", done.stderr);
            assert_eq!(done.stderr.lines().count(), 1);
        }
        assert_eq!(at.world.post(r#"{"method":"cp.sideways"}"#).await.0, 501);
        assert!(at.world.copies.asked.lock().unwrap().is_empty(), "the box was not even asked");
        assert_eq!(at.asked(), 0);
    }

    async fn too_many_files_are_refused_either_way(carrier) {
        let at = Place::new(carrier).await;
        let blocks: Vec<Vec<u8>> =
            (0..20_002).map(|n| block(&format!("top/{n}"), b'0', "", b"")).collect();
        *at.world.copies.sends.lock().unwrap() = Some(hostile(&blocks));
        let done = at.out(&["/workspace/top"], "x").await;
        assert_eq!(done.exit_code, 1);
        assert!(done.stderr.contains("more than 20000 files"), "{}", done.stderr);
        fs::create_dir(at.host("many")).unwrap();
        for n in 0..20_001 {
            fs::write(at.host(&format!("many/{n}")), "").unwrap();
        }
        let done = at.take_in(&["many"], "/workspace/").await;
        assert_eq!(done.exit_code, 65);
        assert!(done.stderr.contains("more than 20000 files"), "{}", done.stderr);
    }

    async fn many_files_are_counted_and_the_dangerous_ones_come_first(carrier) {
        let at = Place::new(carrier).await;
        for n in 0..300 {
            at.inside(&format!("top/a-{n}"), "x");
        }
        at.inside("top/z/.envrc", "evil");
        let (_, question) = at.out_asked(&["/workspace/top"], "out/", Verdict::Deny).await;
        assert_eq!(question.evidence.files.len(), 100);
        assert_eq!(question.evidence.more_files, 201);
        assert_eq!(names(&question)[0], "top/z/.envrc");
        assert!(question.warnings.contains(&"runs code on this computer: top/z/.envrc".to_owned()));
    }

    async fn relay_a24_names_are_made_visible(carrier) {
        let at = Place::new(carrier).await;
        at.inside("\u{202e}txt.exe", "x");
        let (_, question) = at.out_asked(&["/workspace/\u{202e}txt.exe"], "out/", Verdict::Deny).await;
        let shown = serde_json::to_string(&question).unwrap();
        assert!(shown.contains("⟨U+202E⟩txt.exe") && !shown.contains('\u{202e}'), "{shown}");
    }

    async fn two_copies_at_a_time_may_wait_for_an_answer(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a", "x");
        let ask = |dest: &'static str| at.out(&["/workspace/a"], dest);
        let third = async {
            while at.world.broker.pending().len() < 2 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            let done = ask("three").await;
            assert_eq!(done.exit_code, 10);
            assert!(done.stderr.contains("two copies"), "{}", done.stderr);
        };
        tokio::select! {
            _ = ask("one") => panic!("nobody answered"),
            _ = ask("two") => panic!("nobody answered"),
            () = third => {}
        }
    }

    async fn a_caller_that_leaves_does_not_make_room_while_its_files_are_read(carrier) {
        let at = Place::new(carrier).await;
        let large = fs::File::create(at.host("large")).unwrap();
        large.set_len(1 << 27).unwrap();
        let staging = || {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let scratch = at.world.dir.path().join("scratch/copies");
            let here = |to: PathBuf| to.starts_with(&scratch);
            open.filter(|fd| fs::read_link(fd.path()).is_ok_and(here)).count()
        };
        let begun = |n: usize| async move {
            while staging() < n {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let take = |to: &'static str| async { at.take_in(&["large"], to).await };
        let first = async { tokio::join!(take("/tmp/one/"), take("/tmp/two/")) };
        tokio::select! {
            _ = first => panic!("nobody answered"),
            () = begun(2) => {}
        }
        // Both have left, and both files are still being read.
        let third = at.take_in(&["README"], "/tmp/three/").await;
        assert_eq!(third.exit_code, 10, "{}", third.stderr);
        assert!(third.stderr.contains("two copies"), "{}", third.stderr);
        assert!(staging() <= 2);
        while staging() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let (after, _) = at.take_in_asked(&["README"], "/tmp/four/", Verdict::AllowOnce).await;
        assert_eq!(after.exit_code, 0, "{}", after.stderr);
    }

    async fn a_path_of_many_parts_is_refused_before_any_is_looked_up(carrier) {
        let at = Place::new(carrier).await;
        let winding = format!("{}x{}", "docs/../".repeat(300), "/x".repeat(700));
        let done = at.take_in(&[&winding], "/tmp/").await;
        assert_eq!(done.exit_code, 64, "{}", done.stderr);
        assert!(done.stderr.contains("too many parts"), "{}", done.stderr);
        let deep = format!("top{}", "/d".repeat(100));
        let long = block("././@LongLink", b'L', "", deep.as_bytes());
        *at.world.copies.sends.lock().unwrap() = Some(hostile(&[long, block("x", b'0', "", b"")]));
        let done = at.out(&["/workspace/top"], "out/").await;
        assert_eq!(done.exit_code, 1, "{}", done.stderr);
        assert!(done.stderr.contains("lies too deep"), "{}", done.stderr);
    }

    async fn download_shows_what_changes_and_always_asks(carrier) {
        let at = Place::safe(carrier).await;
        at.inside("README", "changed in the box");
        at.inside("new/file", "new");
        put(&at.host("only-here"), "stays");
        let params: Value = json!({});
        let (done, question) =
            at.world.answered("download.workspace", params.clone(), Verdict::AllowOnce).await;
        assert_eq!(question.tier, Tier::Sensitive);
        assert_eq!(question.evidence.summary.as_deref(), Some("1 added, 1 overwritten, 21 B"));
        assert_eq!(names(&question), ["README", "new/file"]);
        assert!(question.remember.is_none());
        assert_eq!(done.stdout, "updated 2 files in the project folder\n", "{}", done.stderr);
        assert_eq!(fs::read_to_string(at.host("README")).unwrap(), "changed in the box");
        assert_eq!(fs::read_to_string(at.host("new/file")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at.host("only-here")).unwrap(), "stays");
        // Nothing left to do, nobody to ask.
        let again = at.world.call("download.workspace", params.clone()).await;
        assert_eq!(again.exit_code, 0);
        assert!(again.stdout.starts_with("no changes"), "{}", again.stdout);
        assert_eq!(at.asked(), 1);
        for name in [".git/hooks/pre-commit", "sub/.GIT/config"] {
            *at.world.copies.sends.lock().unwrap() = Some(hostile(&[block(name, b'0', "", b"evil")]));
            let done = at.world.call("download.workspace", params.clone()).await;
            assert_eq!(done.exit_code, 1, "{}", done.stderr);
            assert!(done.stderr.contains("git's own"), "{}", done.stderr);
        }
    }

    async fn a_box_that_leaves_copies_nothing(carrier) {
        let at = Place::new(carrier).await;
        at.inside("a", "x");
        tokio::select! {
            _ = at.out(&["/workspace/a"], "out") => panic!("nobody answered"),
            _ = at.world.question() => {}
        }
        for _ in 0..500 {
            if at.world.broker.pending().is_empty() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(at.world.broker.pending().is_empty());
        assert!(!at.host("out").exists());
        // What was staged had no name, so nothing is left of it.
        let staged = at.world.dir.path().join("scratch/copies");
        assert_eq!(fs::read_dir(staged).unwrap().count(), 0);
    }

    async fn relay_a17_what_is_outside_the_project_cannot_be_probed_in_silence(carrier) {
        let at = Place::new(carrier).await;
        std::fs::write(at.home.path().join("there"), "x").unwrap();
        let home = at.home.path().display().to_string();
        let mut said = Vec::new();
        for sources in [
            vec![format!("{home}/missing")],
            vec![format!("{home}/there"), format!("{home}/missing")],
            vec![format!("{home}/there/below")],
        ] {
            let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
            let envelope = at.take_in(&sources, "/workspace/").await;
            assert_eq!(envelope.exit_code, 1);
            said.push(envelope.stderr);
        }
        said.dedup();
        assert_eq!(said, ["cp fromHost: what is outside the project cannot be copied so.\n"]);
        assert_eq!(at.world.kinds(), ["not-copied"; 3]);
    }

    async fn a_rule_covers_plain_files_right_in_one_folder_only(carrier) {
        let deny = Verdict::Deny;
        for (sources, dest, rule) in [
            (&["/workspace/a.txt"][..], "~/", false),
            (&["/workspace/a.txt"], "./", false),
            (&["/workspace/d"], "docs/", false),
            (&["/workspace/.hidden"], "docs/", false),
            (&["/workspace/a.txt"], "docs/", true),
        ] {
            let at = Place::new(carrier).await;
            for file in ["a.txt", "d/b.txt", ".hidden"] {
                at.inside(file, "x");
            }
            let (_, question) = at.out_asked(sources, dest, deny).await;
            assert_eq!(question.remember.is_some(), rule, "{sources:?} to {dest}");
        }
    }
}
