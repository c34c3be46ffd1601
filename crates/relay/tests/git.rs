//! Pushes, landings, fetches and clones as a box asks for them, with real git on both sides.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_relay as relay;
use protocol::BoxId;
use protocol::ctl::{RefAt, TagsHead};
use protocol::question::{Question, Surface, Tier, Verdict};
use protocol::rpc::Envelope;
use relay::process::{Tool, base_env};
use relay::transfer::Transfer;
use relay::{Mode, Registration, RemoteUrls, Worktree};
use serde_json::{Value, json, value::RawValue};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{BRANCH, Carrier, Setup, World, commit, git};

/// Allows what is asked and gives back the question.
async fn allowed(world: &World, method: &str, params: Value) -> (Envelope, Question) {
    world.answered(method, params, Verdict::AllowOnce).await
}

fn safe(world: &World) {
    world.policy(|policy| policy.mode = Mode::Safe);
}

fn id() -> BoxId {
    "b00000001".parse().unwrap()
}

/// A ref of a repository, if it is there.
fn at(dir: &Path, name: &str) -> Option<String> {
    let mut git = Command::new("git");
    let output = git.current_dir(dir).args(["rev-parse", "-q", "--verify", name]).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn transfer_dir(world: &World) -> PathBuf {
    world.dir.path().join("repos/workspace.git")
}

fn facts(question: &Question) -> Vec<(&str, &str)> {
    question.evidence.facts.iter().map(|f| (f.label.as_str(), f.value.as_str())).collect()
}

/// A tree with a file called `.git`, which git itself would not make.
fn bad_tree(dir: &Path) -> String {
    std::fs::write(dir.join("x"), "x").unwrap();
    let blob = git(dir, &["hash-object", "-w", "x"]);
    let mut child = Command::new("git")
        .current_dir(dir)
        .args(["-c", "core.protectHFS=false", "-c", "core.protectNTFS=false", "mktree"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "100644 blob {blob}\t.GIT").unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

/// A registration like the world's, with one thing changed.
fn registration(world: &World, change: impl FnOnce(&mut Worktree)) -> Registration {
    let url = world.remote.to_str().unwrap().to_owned();
    let mut worktree = Worktree {
        container_path: "/workspace".into(),
        branch: BRANCH.parse().unwrap(),
        own_branch: true,
        publish: None,
        base: Some(git(&world.host, &["rev-parse", "main"]).parse().unwrap()),
        host_repo: world.host.clone(),
        host_objects: world.host.join(".git/objects"),
        object_format: "sha1".into(),
        remotes: [("origin".parse().unwrap(), RemoteUrls { fetch: url.clone(), push: url })].into(),
        transfer: transfer_dir(world),
    };
    change(&mut worktree);
    Registration {
        id: id(),
        name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: world.host.clone(),
        workspace: world.host.clone(),
        worktrees: vec![worktree],
    }
}

over_both_carriers! {
    async fn relay_19_08_without_a_worktree_there_is_nothing_to_push(carrier) {
        let world = World::with(Setup { with_repo: false, ..Setup::new(carrier) }).await;
        for method in ["git.push", "git.fetch"] {
            let envelope = world.call(method, json!({})).await;
            assert_eq!(envelope.exit_code, 64);
            let text = "no worktree registered for box b00000001 matching /workspace: the project had no git repository when this box was made\n";
            assert_eq!(envelope.stderr, text);
        }
        assert_eq!(world.kinds(), ["refused", "refused"]);
    }

    async fn relay_19_09_a_path_only_selects(carrier) {
        let world = World::new(carrier).await;
        for path in ["/workspace", "/workspace/app/x", "/home/vscode", "//workspace/."] {
            assert_eq!(world.call("git.fetch", json!({ "path": path })).await.exit_code, 0, "{path}");
        }
        for path in ["/workspace/app/../..", "workspace", "", "/a\nb"] {
            assert_eq!(world.call("git.fetch", json!({ "path": path })).await.exit_code, 64, "{path}");
        }
    }

    async fn relay_19_09_of_two_repositories_the_right_one_is_chosen(carrier) {
        let world = World::new(carrier).await;
        let (app, at_app) = (world.dir.path().join("app"), world.dir.path().join("app.git"));
        std::fs::create_dir(&app).unwrap();
        git(&app, &["init", "-q", "-b", "main"]);
        let of_app = commit(&app, "APP", "another history");
        git(world.dir.path(), &["clone", "-q", "--bare", "app", "app.git"]);
        let of_root = git(&world.host, &["rev-parse", "main"]);
        let mut both = registration(&world, |_| {});
        let url = at_app.to_str().unwrap().to_owned();
        both.worktrees.push(Worktree {
            container_path: "/workspace/app".into(),
            base: None,
            host_repo: app.clone(),
            host_objects: app.join(".git/objects"),
            remotes: [("origin".parse().unwrap(), RemoteUrls { fetch: url.clone(), push: url })].into(),
            transfer: world.dir.path().join("repos/app.git"),
            ..both.worktrees[0].clone()
        });
        world.relay.open(both, world.token.hash());
        let _ = std::fs::remove_file(&world.socket);
        world.connect(carrier).await;
        for (path, chosen) in [
            ("/workspace/app/x", &of_app),
            ("/workspace/application", &of_root),
            ("/workspace/app", &of_app),
            ("/home/vscode", &of_root),
            ("/workspace//app/.", &of_app),
            ("/workspace", &of_root),
        ] {
            git(&world.inside, &["update-ref", "-d", "refs/remotes/origin/main"]);
            let envelope = world.call("git.fetch", json!({ "path": path })).await;
            assert_eq!(envelope.exit_code, 0, "{path}: {}", envelope.stderr);
            assert_eq!(at(&world.inside, "refs/remotes/origin/main").as_ref(), Some(chosen), "{path}");
        }
        for path in ["/workspace/app/../..", "/workspace/app/../app"] {
            assert_eq!(world.call("git.fetch", json!({ "path": path })).await.exit_code, 64, "{path}");
        }
        // A question names the repository that was chosen, not the box's word for it.
        commit(&world.inside, "a.txt", "one");
        for (path, remote) in [("/workspace/app/x", &at_app), ("/workspace/application", &world.remote)] {
            let (_, question) = world.answered("git.push", json!({ "path": path }), Verdict::Deny).await;
            assert_eq!(question.target, remote.to_str().unwrap(), "{path}");
        }
    }

    async fn relay_19_10_in_safe_mode_the_own_branch_needs_no_question(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        let oid = commit(&world.inside, "a.txt", "one");
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(oid));
        assert_eq!(world.kinds(), ["allowed-by-policy", "executed"]);
    }

    async fn relay_19_11_and_a03_refspecs_and_value_flags_spawn_nothing(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        commit(&world.inside, "a.txt", "one");
        let lines = [
            json!([":main"]),
            json!(["HEAD:main"]),
            json!(["+x:y"]),
            json!(["--receive-pack=x"]),
            json!(["--receive-pack", "x"]),
            json!(["-o", "x"]),
            json!(["-ox"]),
            json!(["--exec=x"]),
            json!(["-c", "core.sshCommand=x"]),
            json!(["--mirror"]),
            json!(["--all"]),
            json!(["--delete"]),
            json!(["--force"]),
            json!(["--tags", "--tags"]),
            json!(["origin"]),
            json!(["--"]),
        ];
        for args in &lines {
            let envelope = world.call("git.push", json!({ "args": args })).await;
            assert_eq!(envelope.exit_code, 65, "{args}");
            assert_eq!(envelope.stderr.matches('\n').count(), 1);
        }
        assert!(!transfer_dir(&world).exists(), "git was run");
        assert!(world.kinds().iter().all(|kind| kind == "refused"));
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn relay_a01_and_a02_a_fetch_runs_no_program_and_goes_nowhere_else(carrier) {
        let world = World::new(carrier).await;
        let marker = world.host.join("X");
        let program = format!("touch {}; git-upload-pack", marker.display());
        let lines = [
            json!({ "args": [format!("--upload-pack={program}")] }),
            json!({ "args": ["--upload-pack", program] }),
            json!({ "args": ["-o", "x"] }),
            json!({ "args": ["-c", format!("core.sshCommand={program}")] }),
            json!({ "remote": format!("--upload-pack={program}") }),
            json!({ "remote": format!("ext::sh -c '{program}'") }),
            json!({ "remote": world.host.to_str() }),
            json!({ "remote": "https://h/x" }),
            json!({ "remote": "." }),
            json!({ "remote": "" }),
        ];
        for params in lines {
            assert_eq!(world.call("git.fetch", params.clone()).await.exit_code, 65, "{params}");
            assert_eq!(world.call("git.push", params.clone()).await.exit_code, 65, "{params}");
        }
        assert!(!marker.exists() && !transfer_dir(&world).exists());
    }

    async fn relay_a04_nothing_of_the_boxes_settings_reaches_the_transfer_repository(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let marker = world.host.join("marker");
        let script = format!("#!/bin/sh\ntouch {}\n", marker.display());
        let hooks = world.inside.join(".git/hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        for hook in ["pre-push", "reference-transaction", "post-checkout", "pre-auto-gc"] {
            std::fs::write(hooks.join(hook), &script).unwrap();
            Command::new("chmod").arg("+x").arg(hooks.join(hook)).status().unwrap();
        }
        let run = format!("sh -c 'touch {}'", marker.display());
        let mut config = std::fs::OpenOptions::new()
            .append(true)
            .open(world.inside.join(".git/config"))
            .unwrap();
        writeln!(
            config,
            "[core]\n\tsshCommand = {run:?}\n\thooksPath = {}\n[uploadpack]\n\tpackObjectsHook = {run:?}\n[remote \"origin\"]\n\turl = ext::{run}\n[include]\n\tpath = /nowhere",
            hooks.display()
        )
        .unwrap();
        let _ = std::fs::remove_file(&marker);
        let (envelope, question) = allowed(&world, "git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.target, world.remote.to_str().unwrap());
        assert!(!marker.exists(), "something the box planted ran on the host");
        let transfer = transfer_dir(&world);
        assert!(!transfer.join("hooks").exists());
        let keys = git(&transfer, &["config", "--file", "config", "--name-only", "--list"]);
        let mut keys: Vec<&str> = keys.lines().collect();
        keys.dedup();
        assert_eq!(
            keys,
            [
                "core.repositoryformatversion",
                "core.bare",
                "core.hookspath",
                "core.fsmonitor",
                "core.askpass",
                "core.logallrefupdates",
                "core.bigfilethreshold",
                "push.followtags",
                "push.recursesubmodules",
                "gc.auto",
                "maintenance.auto",
                "remote.origin.url",
                "remote.origin.pushurl",
                "remote.origin.fetch",
            ]
        );
    }

    async fn relay_19_15_the_question_names_the_branch_the_person_chose(carrier) {
        let world = World::with(Setup { publish: Some("main".into()), ..Setup::new(carrier) }).await;
        commit(&world.inside, "a.txt", "one");
        let before = world.at_remote("main");
        let (envelope, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!(question.title, "Push 1 commit to origin/main");
        assert!(facts(&question)[0].1.starts_with("main ("), "{:?}", facts(&question));
        assert_eq!((world.at_remote("main"), world.at_remote(BRANCH)), (before, None));
    }

    async fn relay_19_16_in_safe_mode_the_chosen_branch_needs_no_question(carrier) {
        let world = World::with(Setup { publish: Some("main".into()), ..Setup::new(carrier) }).await;
        safe(&world);
        let oid = commit(&world.inside, "a.txt", "one");
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote("main"), Some(oid));
        assert_eq!(world.at_remote(BRANCH), None);
        let pushed = envelope.pushed.unwrap();
        assert_eq!((pushed.branch.as_str(), pushed.local.as_deref()), ("main", Some(BRANCH)));
        let notes = world.notes.0.lock().unwrap();
        assert!(notes[0].1.contains("safe: sanctioned-branch push"), "{notes:?}");
    }

    async fn relay_19_17_tags_are_listed_and_asked_about_every_time(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        let oid = commit(&world.inside, "a.txt", "release");
        git(&world.inside, &["tag", "light"]);
        git(&world.inside, &["tag", "-a", "-m", "the first", "v1.0"]);
        let tag = git(&world.inside, &["rev-parse", "v1.0"]);
        let params = json!({ "args": ["--tags"] });
        let (envelope, question) = allowed(&world, "git.push", params.clone()).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.title, format!("Push 1 commit to origin/{BRANCH} and push 2 tags"));
        assert_eq!((question.tier, question.remember.clone()), (Tier::Sensitive, None));
        let (commit_id, tag_id) = (&oid[..7], &tag[..7]);
        assert_eq!(
            facts(&question)[1..],
            [
                ("tag light", format!("lightweight tag on commit {commit_id} release").as_str()),
                (
                    "tag v1.0",
                    format!("annotated tag {tag_id} on commit {commit_id} release").as_str()
                ),
            ]
        );
        assert_eq!(
            question.argv[question.argv.len() - 3..],
            [
                format!("refs/agentbox/{BRANCH}:refs/heads/{BRANCH}"),
                "refs/agentbox-tags/light:refs/tags/light".into(),
                "refs/agentbox-tags/v1.0:refs/tags/v1.0".into(),
            ]
        );
        assert!(!question.argv.iter().any(|word| word.contains("--tags") || word.starts_with('+')));
        assert_eq!(at(&world.remote, "refs/tags/v1.0"), Some(tag));
        assert_eq!(at(&world.remote, "refs/tags/light"), Some(oid));
        // Nothing left: nobody is asked.
        let again = world.call("git.push", params.clone()).await;
        assert_eq!((again.exit_code, again.stderr.as_str()), (0, "Everything up-to-date\n"));
        // A tag alone, on a commit the remote has.
        git(&world.inside, &["tag", "alone", "HEAD~1"]);
        let (envelope, question) = allowed(&world, "git.push", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.title, "Push 1 tag to origin");
        assert!(at(&world.remote, "refs/tags/alone").is_some());
        assert!(envelope.pushed.is_none());
    }

    async fn relay_19_17_a_tag_of_the_remote_is_never_replaced(carrier) {
        let world = World::new(carrier).await;
        git(&world.remote, &["tag", "v1", "main"]);
        let theirs = at(&world.remote, "refs/tags/v1");
        commit(&world.inside, "a.txt", "one");
        git(&world.inside, &["tag", "v1"]);
        let params = json!({ "args": ["--tags", "--force-with-lease"] });
        let envelope = world.call("git.push", params).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("tag v1 is on origin already"), "{}", envelope.stderr);
        assert_eq!(at(&world.remote, "refs/tags/v1"), theirs);
        assert_eq!(world.at_remote(BRANCH), None);
    }

    async fn relay_19_17_a_lease_names_the_object_last_seen(carrier) {
        let world = World::new(carrier).await;
        let first = commit(&world.inside, "a.txt", "one");
        let (_, question) = allowed(&world, "git.push", json!({ "args": ["--force-with-lease"] })).await;
        let lease = format!("--force-with-lease=refs/heads/{BRANCH}:");
        assert!(question.argv.contains(&lease), "{:?}", question.argv);
        git(&world.inside, &["commit", "-q", "--amend", "-m", "other"]);
        let (envelope, question) =
            allowed(&world, "git.push", json!({ "args": ["--force-with-lease"] })).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(question.argv.contains(&format!("{lease}{first}")), "{:?}", question.argv);
    }

    async fn relay_a41_a_tag_that_moves_while_it_is_asked_about_changes_nothing(carrier) {
        let world = World::new(carrier).await;
        let shown = commit(&world.inside, "a.txt", "shown");
        git(&world.inside, &["tag", "v1"]);
        let swap = async {
            let question = world.question().await;
            commit(&world.inside, "b.txt", "slipped in later");
            git(&world.inside, &["tag", "-f", "v1"]);
            git(&world.inside, &["tag", "v2"]);
            let yes = Verdict::AllowOnce;
            world.broker.answer(&question.id, &question.digest, yes, Surface::Cli).unwrap();
        };
        let push = world.call("git.push", json!({ "args": ["--tags"] }));
        let (envelope, ()) = tokio::join!(push, swap);
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(at(&world.remote, "refs/tags/v1"), Some(shown.clone()));
        assert_eq!(world.at_remote(BRANCH), Some(shown));
        assert_eq!(at(&world.remote, "refs/tags/v2"), None);
    }

    async fn relay_a05_bad_objects_behind_a_tag_are_refused(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let tree = bad_tree(&world.inside);
        let evil = git(&world.inside, &["commit-tree", "-p", "HEAD", "-m", "evil", &tree]);
        git(&world.inside, &["tag", "v1", &evil]);
        let envelope = world.call("git.push", json!({ "args": ["--tags"] })).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("hasDotgit"), "{}", envelope.stderr);
        assert_eq!(world.kinds(), ["failed"], "somebody was asked");
    }

    async fn relay_a05_a_submodule_address_that_is_an_option_is_refused(carrier) {
        let world = World::new(carrier).await;
        let modules = "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch /tmp/x\n";
        std::fs::write(world.inside.join(".gitmodules"), modules).unwrap();
        git(&world.inside, &["add", "."]);
        git(&world.inside, &["commit", "-qm", "modules"]);
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("gitmodulesUrl"), "{}", envelope.stderr);
    }

    async fn relay_19_17_too_many_tags_and_odd_names_are_refused(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let name = "v".repeat(129);
        git(&world.inside, &["tag", &name]);
        let params = json!({ "args": ["--tags"] });
        let odd = world.call("git.push", params.clone()).await;
        assert_eq!(odd.exit_code, 65);
        assert!(odd.stderr.contains("is not a tag name"), "{}", odd.stderr);
        git(&world.inside, &["tag", "-d", &name]);
        for n in 0..101 {
            git(&world.inside, &["tag", &format!("t{n}")]);
        }
        let many = world.call("git.push", params.clone()).await;
        assert_eq!(many.exit_code, 65);
        assert!(many.stderr.contains("more than 100 tags"), "{}", many.stderr);
        git(&world.inside, &["tag", "-d", "t0"]);
        let (envelope, question) = allowed(&world, "git.push", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.evidence.facts.len(), 101);
    }

    async fn relay_19_18_workflow_files_ask_even_in_safe_mode(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        commit(&world.inside, ".github/workflows/ci.yml", "run things");
        let (_, question) = world.answered("git.push", json!({}), Verdict::Deny).await;
        assert_eq!(question.warnings, ["changes CI: .github/workflows/ci.yml"]);
        assert_eq!(question.remember, None);
    }

    async fn relay_a40_a_workflow_behind_a_tag_is_pointed_out(carrier) {
        let world = World::new(carrier).await;
        let one = commit(&world.inside, "a.txt", "one");
        git(&world.inside, &["switch", "-q", "--detach"]);
        commit(&world.inside, ".github/workflows/steal.yml", "run things");
        git(&world.inside, &["tag", "v1"]);
        git(&world.inside, &["switch", "-q", BRANCH]);
        assert_eq!(git(&world.inside, &["rev-parse", "HEAD"]), one);
        let params = json!({ "args": ["--tags"] });
        let (_, question) = world.answered("git.push", params, Verdict::Deny).await;
        assert_eq!(question.warnings, ["changes CI: .github/workflows/steal.yml"]);
        assert_eq!(question.evidence.commits.len(), 2);
    }

    async fn relay_a24_names_the_box_chose_are_made_visible(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        git(&world.inside, &["tag", "v1\u{202e}2v"]);
        let params = json!({ "args": ["--tags"] });
        let (envelope, question) = allowed(&world, "git.push", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(facts(&question)[1].0, "tag v1⟨U+202E⟩2v");
        assert!(!serde_json::to_string(&question).unwrap().contains('\u{202e}'));
        assert!(at(&world.remote, "refs/tags/v1\u{202e}2v").is_some());
        let params = json!({ "hostOnly": true, "as": "niam\u{202e}" });
        let (_, question) = world.answered("git.push", params, Verdict::Deny).await;
        assert!(question.title.contains("niam⟨U+202E⟩"), "{}", question.title);
        assert!(!serde_json::to_string(&question).unwrap().contains('\u{202e}'));
    }

    async fn relay_19_17_tags_are_compared_with_where_the_push_goes(carrier) {
        let world = World::new(carrier).await;
        let fork = world.dir.path().join("fork.git");
        git(world.dir.path(), &["clone", "-q", "--bare", "remote.git", "fork.git"]);
        git(&world.remote, &["tag", "v1", "main"]);
        let push = fork.to_str().unwrap().to_owned();
        let elsewhere = registration(&world, |worktree| {
            worktree.remotes.values_mut().for_each(|urls| urls.push.clone_from(&push));
        });
        world.relay.open(elsewhere, world.token.hash());
        let _ = std::fs::remove_file(&world.socket);
        world.connect(carrier).await;
        git(&world.inside, &["tag", "v1", "HEAD"]);
        let (envelope, question) =
            allowed(&world, "git.push", json!({ "args": ["--tags"] })).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.target, push);
        assert!(at(&fork, "refs/tags/v1").is_some());
    }

    async fn relay_8_2_lfs_files_are_pushed_from_the_host(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";
        std::fs::create_dir(world.inside.join("art")).unwrap();
        std::fs::write(world.inside.join("art/logo.psd"), pointer).unwrap();
        git(&world.inside, &["add", "."]);
        git(&world.inside, &["commit", "-qm", "logo"]);
        // Gone again, but pushed all the same.
        git(&world.inside, &["rm", "-q", "art/logo.psd"]);
        git(&world.inside, &["commit", "-qm", "no logo"]);
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 65);
        let line = format!(
            "git push: art/logo.psd is kept in Git LFS, and a push from a box cannot upload such files. Ask the person to push {BRANCH} from the host.\n"
        );
        assert_eq!(envelope.stderr, line);
        assert_eq!((world.at_remote(BRANCH), world.kinds()), (None, vec!["refused".to_owned()]));
        // A text about LFS is none.
        git(&world.inside, &["reset", "-q", "--hard", "HEAD~2"]);
        commit(&world.inside, "notes.md", &format!("A pointer:\n{pointer}"));
        assert_eq!(world.call("git.push", json!({})).await.exit_code, 0);
    }

    async fn a_shallow_repository_gets_commits_and_pushes_them(carrier) {
        let world = World::new(carrier).await;
        commit(&world.host, "second", "the first stays at the remote");
        git(&world.host, &["push", "-q", world.remote.to_str().unwrap(), "main"]);
        let shallow = world.dir.path().join("shallow");
        let url = format!("file://{}", world.remote.display());
        git(world.dir.path(), &["clone", "-q", "--depth=1", &url, "shallow"]);
        let base = git(&shallow, &["rev-parse", "HEAD"]);
        // The box as it is seeded: the same commits, the same boundary.
        git(&world.inside, &["fetch", "-q", "--depth=1", &url, "main"]);
        git(&world.inside, &["reset", "-q", "--hard", &base]);
        let of_shallow = registration(&world, |worktree| {
            worktree.base = Some(base.parse().unwrap());
            worktree.host_repo.clone_from(&shallow);
            worktree.host_objects = shallow.join(".git/objects");
        });
        world.relay.open(of_shallow, world.token.hash());
        let _ = std::fs::remove_file(&world.socket);
        world.connect(carrier).await;
        // Where both begin is known to the host before there is more.
        assert!(world.relay.land(&id()).await.unwrap());
        let oid = commit(&world.inside, "a.txt", "one");
        assert!(world.relay.land(&id()).await.unwrap());
        assert_eq!(at(&shallow, &format!("refs/heads/{BRANCH}")), Some(oid));
        // The person fetches the rest, and it goes on.
        git(&shallow, &["fetch", "-q", "--unshallow"]);
        let oid = commit(&world.inside, "b.txt", "two");
        assert!(world.relay.land(&id()).await.unwrap());
        assert_eq!(at(&shallow, &format!("refs/heads/{BRANCH}")), Some(oid.clone()));
        safe(&world);
        let envelope = world.call("git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(oid));
    }

    async fn relay_19_19_the_own_branch_lands_without_a_question(carrier) {
        let world = World::new(carrier).await;
        let oid = commit(&world.inside, "a.txt", "one");
        let envelope = world.call("git.push", json!({ "hostOnly": true })).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(envelope.stdout, format!("branch {BRANCH} available in shop\n"));
        assert_eq!(at(&world.host, &format!("refs/heads/{BRANCH}")), Some(oid.clone()));
        assert_eq!(world.at_remote(BRANCH), None);
        assert_eq!(world.kinds(), ["executed"]);
        // The box may rewrite what is its own, here as by itself.
        git(&world.inside, &["commit", "-q", "--amend", "-m", "other"]);
        assert_eq!(world.call("git.push", json!({ "hostOnly": true })).await.exit_code, 0);
        assert_ne!(at(&world.host, &format!("refs/heads/{BRANCH}")), Some(oid));
        assert!(world.kinds().iter().all(|kind| kind == "executed"));
        // A new name in the person's repository is theirs to give.
        let beside = json!({ "hostOnly": true, "as": "agentbox/experiment" });
        let (envelope, _) = world.answered("git.push", beside, Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(
            at(&world.host, "refs/heads/agentbox/experiment"),
            at(&world.host, &format!("refs/heads/{BRANCH}"))
        );
    }

    async fn relay_19_19_the_users_branches_ask(carrier) {
        let world = World::new(carrier).await;
        safe(&world);
        git(&world.host, &["switch", "-q", "-c", "elsewhere"]);
        let oid = commit(&world.inside, "a.txt", "one");
        let params = json!({ "hostOnly": true, "as": "feature" });
        let (envelope, question) = world.answered("git.push", params.clone(), Verdict::Deny).await;
        assert_eq!(envelope.exit_code, 10);
        assert_eq!(at(&world.host, "refs/heads/feature"), None);
        assert_eq!(question.tier, Tier::Sensitive);
        assert_eq!(question.title, "Make local branch feature with 1 commit");
        assert_eq!(question.target, world.host.to_str().unwrap());
        assert_eq!(question.evidence.commits[0].subject, "one");
        let (envelope, _) = allowed(&world, "git.push", params).await;
        assert_eq!(envelope.stdout, "branch feature available in shop\n");
        assert_eq!(at(&world.host, "refs/heads/feature"), Some(oid.clone()));

        // The spec's own case: over main, by force.
        let params = json!({ "hostOnly": true, "as": "main", "force": true });
        let (envelope, question) = allowed(&world, "git.push", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!((question.tier, question.remember), (Tier::Irreversible, None));
        assert_eq!(at(&world.host, "refs/heads/main"), Some(oid));
    }

    async fn relay_a06_what_would_be_lost_is_shown(carrier) {
        let world = World::new(carrier).await;
        git(&world.host, &["switch", "-q", "-c", "elsewhere", "main"]);
        let mine = commit(&world.host, "mine.txt", "my own work");
        git(&world.host, &["branch", "-f", "main", "HEAD"]);
        commit(&world.inside, "a.txt", "one");
        let refused = world.call("git.push", json!({ "hostOnly": true, "as": "main" })).await;
        assert_eq!(refused.exit_code, 1);
        assert!(refused.stderr.contains("1 commit this box does not have"), "{}", refused.stderr);
        let params = json!({ "hostOnly": true, "as": "main", "force": true });
        let (_, question) = world.answered("git.push", params, Verdict::Deny).await;
        assert_eq!(question.tier, Tier::Irreversible);
        assert_eq!(question.warnings, ["loses 1 commit of main"]);
        let lost = facts(&question).into_iter().find(|(label, _)| *label == "loses").unwrap();
        assert!(lost.1.ends_with("my own work") && mine.starts_with(&lost.1[..7]), "{lost:?}");
        assert_eq!(at(&world.host, "refs/heads/main"), Some(mine));
    }

    async fn relay_a06_commits_of_others_below_agentbox_are_not_the_boxes(carrier) {
        let world = World::new(carrier).await;
        let local = format!("refs/heads/{BRANCH}");
        commit(&world.inside, "a.txt", "one");
        assert_eq!(world.call("git.push", json!({ "hostOnly": true })).await.exit_code, 0);
        // The user has gone on from the box's branch.
        let work = git(
            &world.host,
            &["commit-tree", "-p", BRANCH, "-m", "mine", &format!("{BRANCH}^{{tree}}")],
        );
        git(&world.host, &["update-ref", &local, &work]);
        commit(&world.inside, "b.txt", "two");
        let refused = world.call("git.push", json!({ "hostOnly": true })).await;
        assert_eq!(refused.exit_code, 1);
        let params = json!({ "hostOnly": true, "force": true });
        let (_, question) = world.answered("git.push", params, Verdict::Deny).await;
        assert_eq!(question.tier, Tier::Irreversible);
        assert_eq!(at(&world.host, &local), Some(work));
        // A branch of a box that is stopped, or of one that runs.
        git(&world.host, &["branch", "agentbox/stopped", "main"]);
        let mut other = registration(&world, |worktree| {
            worktree.branch = "agentbox/other".parse().unwrap();
            worktree.transfer = world.dir.path().join("repos/other.git");
        });
        other.id = "b00000002".parse().unwrap();
        world.relay.open(other, relay::Token::from_bytes([8; 32]).hash());
        // Not all denied: a box that is denied again and again is not asked about any more.
        for (name, verdict) in [
            ("agentbox/stopped", Verdict::AllowOnce),
            ("agentbox/other", Verdict::AllowOnce),
            ("agentbox/OTHER", Verdict::Deny),
            ("agentbox/other/x", Verdict::Deny),
        ] {
            let params = json!({ "hostOnly": true, "as": name });
            let (envelope, _) = world.answered("git.push", params, verdict).await;
            let code = if verdict == Verdict::Deny { 10 } else { 0 };
            assert_eq!(envelope.exit_code, code, "{name}");
        }
    }

    async fn relay_19_19_a_branch_somebody_is_on_is_refused(carrier) {
        let world = World::new(carrier).await;
        commit(&world.inside, "a.txt", "one");
        let tree = world.dir.path().join("tree");
        git(&world.host, &["worktree", "add", "-q", "-b", "beside", tree.to_str().unwrap()]);
        git(&world.host, &["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        for name in ["main", "MAIN", "beside", "alias"] {
            let params = json!({ "hostOnly": true, "as": name, "force": true });
            let envelope = world.call("git.push", params).await;
            assert_eq!(envelope.exit_code, 65, "{name}: {}", envelope.stderr);
        }
        git(&world.host, &["branch", BRANCH, "main"]);
        git(&world.host, &["switch", "-q", BRANCH]);
        assert_eq!(world.call("git.push", json!({ "hostOnly": true })).await.exit_code, 65);
        assert!(world.broker.pending().is_empty());
        for (params, code) in [
            (json!({ "hostOnly": true, "as": "-x" }), 65),
            (json!({ "hostOnly": true, "as": "a..b" }), 65),
            (json!({ "hostOnly": true, "as": "refs/heads/x" }), 65),
            (json!({ "hostOnly": true, "as": "" }), 65),
            (json!({ "hostOnly": true, "remote": "origin" }), 64),
            (json!({ "hostOnly": true, "args": ["--tags"] }), 65),
            (json!({ "as": "x" }), 64),
            (json!({ "force": true }), 64),
            (json!({ "hostOnly": "yes" }), 64),
        ] {
            assert_eq!(world.call("git.push", params.clone()).await.exit_code, code, "{params}");
        }
    }

    async fn relay_a41_a_local_branch_that_moves_while_it_is_asked_about_stays(carrier) {
        let world = World::new(carrier).await;
        git(&world.host, &["switch", "-q", "-c", "elsewhere", "main"]);
        commit(&world.inside, "a.txt", "one");
        let mine = commit(&world.host, "mine.txt", "meanwhile");
        let moved = async {
            let question = world.question().await;
            git(&world.host, &["branch", "-f", "main", &mine]);
            let yes = Verdict::AllowOnce;
            world.broker.answer(&question.id, &question.digest, yes, Surface::Cli).unwrap();
        };
        let params = json!({ "hostOnly": true, "as": "main", "force": true });
        let (envelope, ()) = tokio::join!(world.call("git.push", params), moved);
        assert_eq!(envelope.exit_code, 10);
        assert!(envelope.stderr.contains("changed since approval"), "{}", envelope.stderr);
        assert_eq!(at(&world.host, "refs/heads/main"), Some(mine));
    }

    async fn relay_a04_a_landing_runs_no_hook_of_the_host(carrier) {
        let world = World::new(carrier).await;
        let marker = world.dir.path().join("marker");
        let hook = world.host.join(".git/hooks/reference-transaction");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
        commit(&world.inside, "a.txt", "one");
        assert_eq!(world.call("git.push", json!({ "hostOnly": true })).await.exit_code, 0);
        assert!(!marker.exists());
    }

    async fn relay_14_what_the_person_types_asks_nobody(carrier) {
        let world = World::new(carrier).await;
        let oid = commit(&world.inside, ".github/workflows/ci.yml", "one");
        git(&world.inside, &["tag", "v1"]);
        let params = RawValue::from_string(json!({ "args": ["--tags"] }).to_string()).unwrap();
        let envelope = world.relay.act(&id(), "git.push", &params).await.unwrap().unwrap();
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(world.at_remote(BRANCH), Some(oid.clone()));
        assert_eq!(at(&world.remote, "refs/tags/v1"), Some(oid.clone()));
        assert_eq!(world.kinds(), ["typed", "executed"]);
        // The box, which did not ask, knows of it.
        assert_eq!(at(&world.inside, &format!("refs/remotes/origin/{BRANCH}")), Some(oid));
        let refused = RawValue::from_string(r#"{"args":[":main"]}"#.into()).unwrap();
        let refused = world.relay.act(&id(), "git.push", &refused).await.unwrap().unwrap();
        assert_eq!(refused.exit_code, 65);
    }

    async fn relay_4_refreshed_remotes_are_where_the_next_push_goes(carrier) {
        let world = World::new(carrier).await;
        let oid = commit(&world.inside, "a.txt", "one");
        allowed(&world, "git.push", json!({})).await;
        let other = world.dir.path().join("other.git");
        git(world.dir.path(), &["init", "-q", "--bare", "-b", "main", "other.git"]);
        let url = other.to_str().unwrap().to_owned();
        let fresh = registration(&world, |worktree| {
            let urls = RemoteUrls { fetch: url.clone(), push: url.clone() };
            worktree.remotes = [("origin".parse().unwrap(), urls)].into();
        });
        world.relay.open(fresh, world.token.hash());
        let _ = std::fs::remove_file(&world.socket);
        world.connect(carrier).await;
        // What the first remote has says nothing about the second.
        let (envelope, question) = allowed(&world, "git.push", json!({})).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.target, url);
        assert_eq!(at(&other, &format!("refs/heads/{BRANCH}")), Some(oid));
    }

    async fn relay_8_2_a_fetch_follows_the_default_branch_and_brings_tags(carrier) {
        let world = World::new(carrier).await;
        let head = "refs/remotes/origin/HEAD";
        git(&world.host, &["symbolic-ref", head, "refs/remotes/origin/main"]);
        let news = commit(&world.host, "news.txt", "news");
        git(&world.host, &["push", "-q", world.remote.to_str().unwrap(), "main"]);
        assert_eq!(world.call("git.fetch", json!({})).await.exit_code, 0);
        assert_eq!(at(&world.inside, head), Some(news.clone()));
        // An annotated tag on a commit the box has is still an object it lacks.
        git(&world.remote, &["tag", "-a", "-m", "first", "v1", "main"]);
        let envelope = world.call("git.fetch", json!({ "args": ["--tags"] })).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(at(&world.inside, "refs/tags/v1^{commit}"), Some(news.clone()));
        let more = commit(&world.host, "more.txt", "more");
        git(&world.host, &["push", "-q", world.remote.to_str().unwrap(), "main"]);
        assert_eq!(world.call("git.fetch", json!({ "args": ["--prune"] })).await.exit_code, 0);
        assert_eq!(at(&world.inside, head), Some(more));
    }
}

over_both_carriers! {
    /// Refs beside the branch, in a bundle of the box's own making, are not taken.
    async fn a_bundle_brings_its_branch_and_nothing_else(carrier) {
        let world = World::new(carrier).await;
        let reg = registration(&world, |_| {});
        let env = base_env(std::env::vars_os());
        let tool = Tool::find("git", &std::env::var_os("PATH").unwrap()).unwrap();
        let transfer = Transfer { tool, env, worktree: &reg.worktrees[0] };
        transfer.ensure().await.unwrap();
        let oid = commit(&world.inside, "a.txt", "one");
        for name in ["refs/heads/main", "refs/remotes/origin/main", "refs/agentbox/x", "refs/tags/v"] {
            git(&world.inside, &["update-ref", name, &oid]);
        }
        let file = world.dir.path().join("evil.bundle");
        git(&world.inside, &["bundle", "create", "-q", file.to_str().unwrap(), "--all"]);
        let branch = BRANCH.parse().unwrap();
        transfer.take_in(&branch, &file, &oid).await.unwrap();
        let refs =
            git(&transfer_dir(&world), &["for-each-ref", "--format=%(refname)", "--contains", &oid]);
        assert_eq!(refs, format!("refs/box/heads/{BRANCH}"));
        // A claim the bundle does not keep changes nothing: what it holds counts.
        let lie = "ab".repeat(20);
        transfer.take_in(&branch, &file, &lie).await.unwrap();
        assert_eq!(transfer.tip(&branch).await.unwrap().unwrap().as_str(), oid);
        // Tags as the box claims them: names are checked, objects must be there.
        let claim = |name: &str, oid: &str| TagsHead {
            tags: vec![RefAt { name: name.into(), oid: oid.into() }],
            more: 0,
        };
        let empty = world.dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        for (name, oid) in [
            ("refs/tags/-d", oid.as_str()),
            ("refs/tags/a..b", &oid),
            ("refs/tags/x\ndelete refs/heads/y", &oid),
            ("refs/heads/../x", &oid),
            ("refs/tags/v9", &lie),
        ] {
            assert!(transfer.take_in_tags(&empty, &claim(name, oid)).await.is_err(), "{name:?}");
        }
        let taken = transfer.take_in_tags(&file, &claim("refs/tags/v", &lie)).await.unwrap();
        assert_eq!(taken[0].oid.as_str(), oid);
    }
}

/// A home of the person with an `ssh` that finds repositories below a folder instead of a network.
struct Network {
    home: tempfile::TempDir,
}

impl Network {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let ssh = home.path().join("ssh");
        let served = home.path().join("served");
        std::fs::create_dir_all(served.join("acme")).unwrap();
        let script = format!(
            "#!/bin/sh\nfor word; do command=$word; done\ncase \"$*\" in *git@git.example.org*) ;; *) echo 'Host key verification failed.' >&2; exit 255;; esac\ncd {} && eval \"exec $command\"\n",
            served.display()
        );
        std::fs::write(&ssh, script).unwrap();
        Command::new("chmod").arg("+x").arg(&ssh).status().unwrap();
        let config = format!(
            "[core]\n\tsshCommand = {}\n[url \"{}/\"]\n\tinsteadOf = https://rewritten.example.org/\n",
            ssh.display(),
            served.display()
        );
        std::fs::write(home.path().join(".gitconfig"), config).unwrap();
        Self { home }
    }

    fn env(&self) -> Vec<(String, String)> {
        let home = self.home.path().to_str().unwrap().to_owned();
        vec![("HOME".into(), home), ("XDG_CONFIG_HOME".into(), "/nonexistent".into())]
    }

    /// A repository with two commits, two branches and a tag, served as `acme/lib.git`.
    fn lib(&self) -> PathBuf {
        let dir = self.home.path().join("served/acme/lib.git");
        std::fs::create_dir_all(&dir).unwrap();
        git(&dir, &["init", "-q", "-b", "trunk"]);
        commit(&dir, "README", "one");
        git(&dir, &["branch", "dev"]);
        git(&dir, &["tag", "-a", "-m", "first", "v1"]);
        commit(&dir, "README", "two");
        dir
    }

    async fn world(&self, carrier: Carrier) -> World {
        World::with(Setup { env: self.env(), ..Setup::new(carrier) }).await
    }
}

const LIB: &str = "git@git.example.org:acme/lib.git";

fn scratch_is_empty(world: &World) -> bool {
    let left = std::fs::read_dir(world.dir.path().join("scratch")).unwrap().flatten();
    left.filter(|e| e.file_name() != "b00000001").count() == 0
}

over_both_carriers! {
    async fn relay_19_20_a_clone_asks_with_the_whole_address_and_reaches_the_box(carrier) {
        let network = Network::new();
        let lib = network.lib();
        let world = network.world(carrier).await;
        safe(&world);
        let params = json!({ "path": "/workspace/vendor", "args": [LIB] });
        let (denied, question) = world.answered("git.clone", params.clone(), Verdict::Deny).await;
        assert_eq!(denied.exit_code, 10);
        assert_eq!(question.tier, Tier::Sensitive);
        assert_eq!((question.target.as_str(), question.remember), (LIB, None));
        assert_eq!(question.title, format!("Clone {LIB} into the box"));
        assert!(question.argv.contains(&LIB.to_owned()));
        assert_eq!(question.warnings, ["the project has no remote on git.example.org"]);
        assert!(scratch_is_empty(&world) && world.clones.lock().unwrap().is_empty());

        let (envelope, _) = allowed(&world, "git.clone", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(envelope.stderr, format!("Cloned {LIB} into /workspace/vendor/lib\n"));
        let (plan, bundle) = world.clones.lock().unwrap().pop().unwrap();
        assert_eq!((plan.dir.as_str(), plan.url.as_str()), ("/workspace/vendor/lib", LIB));
        assert_eq!((plan.branch.as_deref(), plan.at), (Some("trunk"), at(&lib, "trunk")));
        let names: Vec<&str> = plan.refs.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["refs/heads/dev", "refs/heads/trunk", "refs/tags/v1"]);
        let file = world.dir.path().join("b");
        std::fs::write(&file, bundle.unwrap()).unwrap();
        git(world.dir.path(), &["clone", "-q", "-b", "trunk", "b", "out"]);
        assert_eq!(std::fs::read_to_string(world.dir.path().join("out/README")).unwrap(), "two");
        assert!(scratch_is_empty(&world));
        assert!(world.kinds().ends_with(&["asked".into(), "answered".into(), "executed".into()]));
    }

    async fn relay_19_20_a_shallow_clone_of_a_tag(carrier) {
        let network = Network::new();
        let lib = network.lib();
        let world = network.world(carrier).await;
        let params = json!({ "args": ["--depth", "1", "--branch=v1", LIB, "lib-v1"] });
        let (envelope, question) = allowed(&world, "git.clone", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(facts(&question).contains(&("branch or tag", "v1")));
        assert!(facts(&question).contains(&("folder in the box", "/workspace/lib-v1")));
        let (plan, _) = world.clones.lock().unwrap().pop().unwrap();
        assert_eq!((plan.branch, plan.at), (None, at(&lib, "v1^{commit}")));
        assert_eq!(plan.refs.len(), 1);
    }

    async fn relay_19_20_an_empty_repository_is_cloned_too(carrier) {
        let network = Network::new();
        git(network.home.path(), &["init", "-q", "--bare", "-b", "trunk", "served/acme/new.git"]);
        let world = network.world(carrier).await;
        let params = json!({ "args": ["git@git.example.org:acme/new.git"] });
        let (envelope, _) = allowed(&world, "git.clone", params).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        let (plan, bundle) = world.clones.lock().unwrap().pop().unwrap();
        assert!(plan.refs.is_empty() && bundle.is_none() && plan.at.is_none());
    }

    async fn relay_a05_a_clone_with_bad_objects_is_refused(carrier) {
        let network = Network::new();
        let lib = network.lib();
        let tree = bad_tree(&lib);
        let evil = git(&lib, &["commit-tree", "-p", "trunk", "-m", "evil", &tree]);
        git(&lib, &["update-ref", "refs/heads/dev", &evil]);
        let world = network.world(carrier).await;
        let (envelope, _) = allowed(&world, "git.clone", json!({ "args": [LIB] })).await;
        assert_eq!(envelope.exit_code, 128);
        assert!(envelope.stderr.contains("hasDotgit"), "{}", envelope.stderr);
        let place = world.dir.path().to_str().unwrap();
        assert!(!envelope.stderr.contains(place), "{}", envelope.stderr);
        assert!(world.clones.lock().unwrap().is_empty() && scratch_is_empty(&world));
    }

    async fn relay_19_20_a_host_that_is_not_known_and_a_rewritten_address_fail(carrier) {
        let network = Network::new();
        network.lib();
        let world = network.world(carrier).await;
        let unknown = json!({ "args": ["git@evil.example:acme/lib.git"] });
        let (envelope, _) = allowed(&world, "git.clone", unknown).await;
        assert_eq!(envelope.exit_code, 128);
        assert!(envelope.stderr.contains("Host key verification failed"), "{}", envelope.stderr);
        // A setting of the person's that leads to this computer's disk is not followed there.
        let local = json!({ "args": ["https://rewritten.example.org/acme/lib.git"] });
        let (envelope, _) = allowed(&world, "git.clone", local).await;
        assert_eq!(envelope.exit_code, 128);
        assert!(envelope.stderr.contains("'file' not allowed"), "{}", envelope.stderr);
        assert!(world.clones.lock().unwrap().is_empty());
    }

    async fn relay_19_20_what_is_no_address_asks_nobody(carrier) {
        let network = Network::new();
        let world = network.world(carrier).await;
        for args in [
            json!([]),
            json!(["file:///etc"]),
            json!(["/etc"]),
            json!(["../x"]),
            json!(["ext::sh -c id"]),
            json!(["https://me:pw@h.org/a/b"]),
            json!(["https://127.0.0.1/a/b"]),
            json!(["--upload-pack=x", LIB]),
            json!(["--recurse-submodules", LIB]),
            json!(["--depth", "0", LIB]),
            json!(["-c", "core.sshCommand=x", LIB]),
            json!([LIB, "a", "b"]),
        ] {
            let envelope = world.call("git.clone", json!({ "args": args })).await;
            assert_eq!(envelope.exit_code, 65, "{args}: {}", envelope.stderr);
        }
        for params in [
            json!({ "args": [LIB, "../x"] }),
            json!({ "args": [LIB, "/a/../b"] }),
            json!({ "path": "/a/..", "args": [LIB] }),
            json!({ "args": [LIB], "stdin": "x" }),
            json!({ "url": LIB }),
        ] {
            let envelope = world.call("git.clone", params.clone()).await;
            assert_eq!(envelope.exit_code, 64, "{params}: {}", envelope.stderr);
        }
        assert!(world.kinds().iter().all(|kind| kind == "refused"));
        assert!(scratch_is_empty(&world));
    }
}

over_both_carriers! {
    async fn relay_19_20_a_host_the_project_has_a_remote_on_is_not_pointed_out(carrier) {
        let network = Network::new();
        network.lib();
        let remote_url = Some("git@git.example.org:acme/shop.git".to_owned());
        let setup = Setup { env: network.env(), remote_url, ..Setup::new(carrier) };
        let world = World::with(setup).await;
        let (_, question) = world.answered("git.clone", json!({ "args": [LIB] }), Verdict::Deny).await;
        assert!(question.warnings.is_empty(), "{:?}", question.warnings);
    }
}
