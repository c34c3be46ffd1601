//! Git as an agent in a real box types it: the host does what needs a login, and the box looks as if
//! it had done it itself.

use crate::channels::over_both_channels;
use crate::github::Site;
use crate::world::{World, settings};
use std::path::PathBuf;

/// Another person's clone of the project's remote.
fn colleague(world: &World) -> PathBuf {
    let dir = world.dir().join("colleague");
    if !dir.exists() {
        let remote = world.remote().display().to_string();
        world.git(world.dir(), &["clone", "-q", &remote, "colleague"]);
        world.git(&dir, &["config", "user.name", "Grace Hopper"]);
        world.git(&dir, &["config", "user.email", "grace@example.org"]);
    }
    dir
}

/// Their commit on a branch of the remote.
fn commit_at_remote(world: &World, branch: &str, file: &str) -> String {
    let dir = colleague(world);
    world.git(&dir, &["fetch", "-q"]);
    world.git(&dir, &["checkout", "-q", "-B", branch, &format!("origin/{branch}")]);
    std::fs::write(dir.join(file), "theirs\n").unwrap();
    world.git(&dir, &["add", "."]);
    world.git(&dir, &["commit", "-qm", file]);
    world.git(&dir, &["push", "-q", "origin", branch]);
    world.git(&dir, &["rev-parse", "HEAD"])
}

over_both_channels! {
    fn tags_of_a_box_are_pushed_with_its_branch_after_a_yes(channel) {
        let world = World::over(channel, "");
        assert_eq!(world.create("fix-login")["channel"], channel);
        let oid = world.commit("fix-login", "One");
        world.box_ok("fix-login", "git tag v1 && git tag -a v2 -m 'Second release'");
        let at = |name: &str| world.git(&world.remote(), &["for-each-ref", "--format=%(objecttype)", name]);

        let (question, denied) = world.answered("fix-login", "git push --tags", "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        assert_eq!(question["title"], "Push 1 commit to origin/agentbox/fix-login and push 2 tags");
        // Releases are made of tags: they are asked about every time, one by one.
        assert!(question["remember"].is_null(), "{question}");
        for tag in ["tag v1", "tag v2"] {
            assert!(question["evidence"].to_string().contains(tag), "{question}");
        }
        assert_eq!((at("refs/tags/v1"), at("refs/tags/v2")), (String::new(), String::new()));

        let (_, pushed) = world.answered("fix-login", "git push --tags", "approve");
        assert_eq!(pushed.code, Some(0), "{}{}", pushed.err, world.host_log());
        assert_eq!(world.at_remote("agentbox/fix-login"), Some(oid.clone()));
        assert_eq!((at("refs/tags/v1").as_str(), at("refs/tags/v2").as_str()), ("commit", "tag"));
        for tag in ["v1", "v2"] {
            let there = world.git(&world.remote(), &["rev-parse", &format!("{tag}^{{commit}}")]);
            assert_eq!(there, oid, "{tag}");
        }
        // With nothing new nobody is asked.
        let again = world.in_box("fix-login", "git push --tags");
        assert_eq!(again.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&again.stderr).contains("up-to-date"), "{again:?}");
    }

    fn host_only_brings_commits_to_the_person_and_publishes_nothing(channel) {
        let world = World::over(channel, "");
        world.create("fix-login");
        let one = world.commit("fix-login", "One");
        let on_host = |branch: &str| {
            let name = format!("refs/heads/{branch}");
            world.git(&world.project(), &["for-each-ref", "--format=%(objectname)", &name])
        };
        // The box's own branch is its own.
        let said = world.box_ok("fix-login", "git push --host-only");
        assert!(said.contains("branch agentbox/fix-login available in shop"), "{said}");
        assert_eq!(on_host("agentbox/fix-login"), one);

        // Any other name is the person's to give.
        let review = "git push --host-only --as review";
        let (question, landed) = world.answered("fix-login", review, "approve");
        assert_eq!(landed.code, Some(0), "{}{}", landed.err, world.host_log());
        assert_eq!(question["title"], "Make local branch review with 1 commit");
        assert_eq!(on_host("review"), one);
        world.commit("fix-login", "Two");
        let (question, denied) = world.answered("fix-login", review, "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        assert_eq!(question["title"], "Add 1 commit to local branch review");
        assert_eq!(on_host("review"), one);

        // What the person has checked out does not move under them, and nobody is asked.
        let main = on_host("main");
        let refused = world.in_box("fix-login", "git push --host-only --as main");
        assert_eq!(refused.status.code(), Some(65), "{refused:?}");
        assert_eq!(on_host("main"), main);
        let published = world.git(&world.remote(), &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(published, "refs/heads/main");
    }

    fn a_pull_brings_what_others_pushed_into_the_box_without_a_question(channel) {
        let world = World::over(channel, "");
        world.create("fix-login");
        let head = || world.box_ok("fix-login", "git rev-parse HEAD");
        // A branch that was never pushed follows the remote's default branch.
        let theirs = commit_at_remote(&world, "main", "theirs.txt");
        world.box_ok("fix-login", "git pull");
        assert_eq!(head(), theirs);
        assert_eq!(world.box_ok("fix-login", "cat theirs.txt"), "theirs");

        // One that was pushed follows itself, and both sides' commits are kept.
        world.commit("fix-login", "One");
        let (_, pushed) = world.answered("fix-login", "git push", "approve");
        assert_eq!(pushed.code, Some(0), "{}", pushed.err);
        let theirs = commit_at_remote(&world, "agentbox/fix-login", "review.txt");
        let mine = world.commit("fix-login", "Two");
        let refused = world.in_box("fix-login", "git pull --ff-only");
        assert!(!refused.status.success(), "{refused:?}");
        assert_eq!(head(), mine);
        world.box_ok("fix-login", "git pull");
        let parents = world.box_ok("fix-login", "git log -1 --format=%P");
        assert_eq!(parents, format!("{mine} {theirs}"));
        assert_eq!(world.box_ok("fix-login", "cat review.txt two"), "theirs\nTwo");
        assert_eq!(world.box_ok("fix-login", "git status --porcelain"), "");
        let asked = world.audit_kinds("fix-login").iter().filter(|kind| *kind == "asked").count();
        assert_eq!(asked, 1, "only the push was asked about");
    }

    fn relay_19_20_a_clone_reaches_the_box_over_https_after_a_yes(channel) {
        let mut world = World::bare();
        let site = Site::start(&world, "lib.git");
        // The one thing that is not real: where the name leads.
        let rewrite = format!("url.https://{}/.insteadOf", site.github.host());
        world.git(world.dir(), &["config", "--global", &rewrite, "https://git.example.org/"]);
        site.trusted_by(&mut world);
        world.configure(&settings(channel, ""));
        world.start_serve();
        world.create("fix-login");

        let clone = "mkdir -p vendor && cd vendor && git clone https://git.example.org/o/r.git lib";
        let (question, denied) = world.answered("fix-login", clone, "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        assert_eq!(question["title"], "Clone https://git.example.org/o/r.git into the box");
        assert!(question.to_string().contains("the project has no remote on git.example.org"));
        assert_eq!(world.box_ok("fix-login", "ls vendor"), "");

        let (_, cloned) = world.answered("fix-login", clone, "approve");
        assert_eq!(cloned.code, Some(0), "{}{}", cloned.err, world.host_log());
        let tip = world.git(&site.repo, &["rev-parse", "main"]);
        let there = world.box_ok(
            "fix-login",
            "cd vendor/lib && git rev-parse HEAD && git remote get-url origin && git status --porcelain && cat README.md",
        );
        assert_eq!(there, format!("{tip}\nhttps://git.example.org/o/r.git\n# Library"));
        // A path of the host's is no address, whatever is there.
        let local = format!("git clone {}", site.repo.display());
        let refused = world.in_box("fix-login", &local);
        assert!([Some(2), Some(65), Some(128)].contains(&refused.status.code()), "{refused:?}");
        assert!(world.questions().is_empty());
    }
}
