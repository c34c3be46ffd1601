//! GitHub as a box meets it: the real `gh` and the real git on the host, against a GitHub server
//! that runs here and keeps state.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../tests/standins/github/mod.rs"]
mod github;
mod support;

use agentbox_relay::{IntegrationPolicy, Mode};
use github::{GitHub, Pull, TOKEN};
use protocol::question::{Breadth, Question, Reach, Tier, Verdict};
use protocol::rpc::Envelope;
use serde_json::json;
use std::time::Duration;
use support::{BRANCH, Carrier, Setup, World, commit, git};

/// A world whose `origin` is at the stand-in, with a stored credential for it.
struct Place {
    world: World,
    github: GitHub,
    home: tempfile::TempDir,
}

impl Place {
    async fn new(carrier: Carrier) -> Self {
        let place = Self::without_login(carrier, None).await;
        place.world.store("github.enterprise-token", TOKEN);
        place
    }

    async fn without_login(carrier: Carrier, publish: Option<&str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let github = GitHub::start(home.path()).await;
        let certificate = github.certificate.display().to_string();
        std::fs::write(
            home.path().join(".gitconfig"),
            format!("[http]\n\tsslCAInfo = {certificate}\n"),
        )
        .unwrap();
        let setup = Setup {
            remote_url: Some(github.url()),
            publish: publish.map(str::to_owned),
            env: vec![
                ("HOME".into(), home.path().display().to_string()),
                ("XDG_CONFIG_HOME".into(), home.path().join("config").display().to_string()),
                ("SSL_CERT_FILE".into(), certificate),
                ("no_proxy".into(), "127.0.0.1".into()),
                ("NO_PROXY".into(), "127.0.0.1".into()),
                // None of these may get through.
                ("GH_REPO".into(), "evil/evil".into()),
                ("GH_DEBUG".into(), "api".into()),
                ("GH_TOKEN".into(), "ghp_thisIsForGithubComAlone0000000000".into()),
            ],
            ..Setup::new(carrier)
        };
        let world = World::with(setup).await;
        github.serve(&world.remote);
        let on = IntegrationPolicy {
            enabled: true,
            base_url: Some(format!("https://{}/api/v3", github.host())),
            ..IntegrationPolicy::default()
        };
        world.policy(|policy| drop(policy.integrations.insert("github".into(), on)));
        Self { world, github, home }
    }

    /// A commit of the box's, pushed, with a pull request for it.
    async fn with_pull(carrier: Carrier) -> (Self, String) {
        let place = Self::new(carrier).await;
        let oid = place.push("a.txt", "Fix the login").await;
        place.github.add(Pull::open(7, "Fix the login", BRANCH));
        (place, oid)
    }

    async fn push(&self, file: &str, subject: &str) -> String {
        let oid = commit(&self.world.inside, file, subject);
        let (envelope, _) = self.world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        oid
    }

    async fn call(&self, method: &str, args: &[&str]) -> Envelope {
        self.world.call(method, json!({ "args": args })).await
    }

    async fn allowed(&self, method: &str, args: &[&str]) -> (Envelope, Question) {
        self.world.answered(method, json!({ "args": args }), Verdict::AllowOnce).await
    }

    fn mode(&self, mode: Mode) {
        self.world.policy(|policy| policy.mode = mode);
    }

    fn slug(&self) -> String {
        format!("{}/o/r", self.github.host())
    }

    /// The shown command without what differs from run to run.
    fn argv(&self, question: &Question) -> String {
        question.argv.join(" ").replace(&self.slug(), "SLUG")
    }

    fn reasons(&self) -> Vec<String> {
        let notes = self.world.notes.0.lock().unwrap();
        let kinds = notes.iter().filter(|(kind, _)| kind == "allowed-by-policy");
        kinds.map(|(_, summary)| summary.clone()).collect()
    }
}

fn fact<'a>(question: &'a Question, label: &str) -> &'a str {
    let found = question.evidence.facts.iter().find(|fact| fact.label == label);
    found.map_or("", |fact| fact.value.as_str())
}

/// A `gh` that only tells how it was called.
fn telltale(world: &World) -> std::path::PathBuf {
    let log = world.dir.path().join("gh.log");
    let script = format!(
        "#!/bin/sh\n{{ echo \"cwd=$(pwd)\"; echo \"args=$*\"; env | sort; }} >> {}\n\
         case \"$1\" in --version) echo 'gh version 2.23.0';; esac\n",
        log.display()
    );
    world.program("gh", &script);
    log
}

over_both_carriers! {
    /// The grammar itself is tested beside the connector; this is the way from a box's bytes to it.
    async fn relay_a08_a09_and_a10_what_the_grammar_refuses_never_reaches_gh(carrier) {
        let place = Place::new(carrier).await;
        let log = telltale(&place.world);
        for (method, words) in [
            ("gh.pr.comment", &["7", "--body-file", "/home/u/.ssh/id_rsa"][..]),
            ("gh.pr.comment", &["7", "-F/etc/passwd"]),
            ("gh.pr.create", &["--template", "x"]),
            ("gh.pr.create", &["--recover", "x"]),
            ("gh.pr.view", &["7", "-R", "o/other"]),
            ("gh.pr.view", &["7", "--repo=o/other"]),
            ("gh.pr.view", &["7", "--hostname", "evil.example"]),
            ("gh.pr.view", &["https://github.com/o/other/pull/7"]),
            ("gh.pr.view", &["7", "--json", "title", "--json", "body"]),
            ("gh.pr.view", &["7", "--js", "title"]),
            ("gh.pr.comment", &["7", "-abx"]),
            ("gh.pr.view", &["--", "--web"]),
        ] {
            let envelope = place.call(method, words).await;
            assert_eq!(envelope.exit_code, 65, "{method} {words:?}: {}", envelope.stderr);
        }
        let own = "repos/o/r/pulls/5/comments";
        for (endpoint, words) in [
            (own, &["-F", "body=@/etc/passwd"][..]),
            (own, &["--input", "-"]),
            ("repos/o/other/pulls/5/comments", &[]),
            ("https://evil.example/repos/o/r/pulls/5/comments", &[]),
        ] {
            let params = json!({ "endpoint": endpoint, "args": words });
            let envelope = place.world.call("gh.api", params).await;
            assert_eq!(envelope.exit_code, 65, "{endpoint} {words:?}: {}", envelope.stderr);
        }
        assert!(!log.exists(), "gh was started: {:?}", std::fs::read_to_string(&log));
        let kinds = place.world.kinds();
        assert!(kinds.iter().all(|kind| kind == "refused"), "{kinds:?}");
    }

    async fn relay_19_23_reads_run_outside_the_repository(carrier) {
        let place = Place::new(carrier).await;
        let log = telltale(&place.world);
        let envelope = place.call("gh.pr.view", &["7"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        let log = std::fs::read_to_string(log).unwrap();
        let slug = place.slug();
        assert!(log.contains(&format!("\nGH_REPO={slug}\n")), "{log}");
        assert!(log.contains(&format!("args=pr view --repo={slug} -- 7\n")), "{log}");
        assert!(!log.contains(&format!("cwd={}", place.world.host.display())), "{log}");
        assert!(log.contains(&format!("cwd={}", place.world.dir.path().join("scratch").display())), "{log}");
        for gone in ["GH_DEBUG", "GH_TOKEN=", "evil", "GIT_DIR="] {
            assert!(!log.contains(gone), "{gone} in {log}");
        }
        for wanted in ["GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "GH_PAGER=cat", "PAGER=cat", "EDITOR=false"] {
            assert!(log.contains(wanted), "{wanted} in {log}");
        }
        assert!(!place.world.kinds().contains(&"asked".to_owned()));
    }

    async fn relay_19_23_the_real_gh_reads(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        let view = place.call("gh.pr.view", &["7", "--json", "title,headRefName", "-q", ".title"]).await;
        assert_eq!((view.exit_code, view.stdout.as_str()), (0, "Fix the login\n"), "{}", view.stderr);
        // The box's branch is meant when nothing is said.
        let own = place.call("gh.pr.view", &[]).await;
        assert!(own.stdout.contains("title:\tFix the login"), "{own:?}");
        let list = place.call("gh.pr.list", &["--json", "number"]).await;
        assert_eq!(list.stdout, "[{\"number\":7}]\n");
        let diff = place.call("gh.pr.diff", &[]).await;
        assert!(diff.stdout.contains("+Fix the login"), "{diff:?}");
        place.github.state.lock().unwrap().pulls[0].checks = vec![("build", "SUCCESS")];
        let checks = place.call("gh.pr.checks", &["--required"]).await;
        assert!(checks.stdout.contains("build\tpass"), "{checks:?}");
        let runs = place.call("gh.run.list", &["--json", "databaseId,name"]).await;
        assert!(runs.stdout.contains("\"databaseId\":123"), "{runs:?}");
        let run = place.call("gh.run.view", &["123", "--json", "conclusion"]).await;
        assert_eq!(run.stdout, "{\"conclusion\":\"failure\"}\n", "{run:?}");
        let none = place.call("gh.pr.view", &["99"]).await;
        assert_eq!(none.exit_code, 1);
        assert!(none.stderr.contains("99"), "{none:?}");
        assert!(!place.world.kinds().iter().skip(3).any(|kind| kind == "asked"), "{:?}", place.world.kinds());
    }

    async fn relay_19_24_a_pull_request_is_opened_from_the_boxs_branch(carrier) {
        let place = Place::new(carrier).await;
        let oid = place.push("a.txt", "Fix the login").await;
        let args = ["--title", "T", "--body", "B\nmore", "--label", "bug", "--reviewer", "bob"];
        let (envelope, question) = place.allowed("gh.pr.create", &args).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(envelope.stdout.ends_with("/o/r/pull/1\n"), "{envelope:?}");
        assert_eq!(
            place.argv(&question),
            "gh pr create --repo=SLUG --title=T --body=B⏎more --base=main --head=agentbox/smoke --label=bug --reviewer=bob"
        );
        assert_eq!(question.title, "Open a pull request from agentbox/smoke into main");
        assert_eq!(question.tier, Tier::Routine);
        assert_eq!(question.target, place.slug());
        assert_eq!(fact(&question, "Title"), "T");
        assert_eq!(fact(&question, "Branches"), "main ← agentbox/smoke");
        assert_eq!(fact(&question, "Head commit"), oid);
        assert_eq!((fact(&question, "Labels"), fact(&question, "Reviewers")), ("bug", "bob"));
        assert_eq!(question.evidence.body, ["B", "more"]);
        let pull = place.github.pull(1);
        assert_eq!((pull.title.as_str(), pull.body.as_str(), pull.head.as_str()), ("T", "B\nmore", BRANCH));
        assert_eq!(pull.labels, ["bug"]);
    }

    async fn relay_19_24_safe_mode_covers_the_boxs_branch_and_no_other(carrier) {
        let place = Place::new(carrier).await;
        place.push("a.txt", "one").await;
        place.mode(Mode::Safe);
        let args = ["--title", "T", "--body", "B"];
        let envelope = place.call("gh.pr.create", &args).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(place.reasons().len(), 1);
        assert!(place.reasons()[0].starts_with("Allowed (safe: PR on the box's branch): Open a pull request"));
        let other = [&args[..], &["--head", "main"]].concat();
        let (_, question) = place.world.answered("gh.pr.create", json!({ "args": other }), Verdict::Deny).await;
        assert!(question.argv.contains(&"--head=main".to_owned()));
        assert_eq!(question.remember.unwrap().kind, None);
        let cluster = place.call("gh.pr.create", &["-dHmain", "--title", "T", "--body", "B"]).await;
        assert_eq!(cluster.exit_code, 65);
    }

    async fn relay_19_24_without_a_push_there_is_nothing_to_open(carrier) {
        let place = Place::new(carrier).await;
        let envelope = place.call("gh.pr.create", &["--title", "T", "--body", "B"]).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("run 'git push' first"), "{}", envelope.stderr);
        assert!(place.world.broker.pending().is_empty());
        // A project that is not on GitHub: gh is not run at all.
        let elsewhere = World::new(carrier).await;
        let log = telltale(&elsewhere);
        elsewhere.enable("github");
        let refused = elsewhere.call("gh.pr.create", json!({ "args": ["--title", "T", "--body", "B"] })).await;
        assert_eq!(refused.exit_code, 65);
        assert!(!log.exists());
    }

    async fn fill_takes_title_and_body_from_the_commits(carrier) {
        let place = Place::new(carrier).await;
        git(&place.world.inside, &["commit", "-q", "--allow-empty", "-m", "Fix it", "-m", "It was broken.\n\nNow it is not."]);
        place.push("a.txt", "x").await;
        git(&place.world.inside, &["reset", "-q", "--soft", "HEAD~1"]);
        let (_, question) = place.world.answered("gh.pr.create", json!({ "args": ["--fill"] }), Verdict::Deny).await;
        assert_eq!(fact(&question, "Title"), "smoke");
        assert_eq!(question.evidence.body, ["- Fix it", "- x"]);
        let (envelope, question) = place.allowed("gh.pr.create", &["--fill", "--title", "Mine"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(fact(&question, "Title"), "Mine");
        assert!(!question.argv.contains(&"--fill".to_owned()));
        assert_eq!(place.github.pull(1).body, "- Fix it\n- x\n");
    }

    async fn fill_lets_one_commit_speak_for_itself(carrier) {
        let place = Place::new(carrier).await;
        let file = place.world.inside.join("a.txt");
        std::fs::write(&file, "x").unwrap();
        git(&place.world.inside, &["add", "."]);
        git(&place.world.inside, &["commit", "-q", "-m", "Fix it", "-m", "It was broken."]);
        let (pushed, _) = place.world.answered("git.push", json!({}), Verdict::AllowOnce).await;
        assert_eq!(pushed.exit_code, 0);
        let (_, question) = place.world.answered("gh.pr.create", json!({ "args": ["--fill"] }), Verdict::Deny).await;
        assert_eq!(fact(&question, "Title"), "Fix it");
        assert_eq!(question.evidence.body, ["It was broken."]);
    }

    async fn comments_ask_and_can_be_remembered(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        let (envelope, question) = place.allowed("gh.pr.comment", &["--body", "hi\n\u{202e}there"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(place.argv(&question), "gh pr comment --repo=SLUG --body=hi⏎⟨U+202E⟩there -- 7");
        assert_eq!(question.evidence.body, ["hi", "⟨U+202E⟩there"]);
        assert_eq!(fact(&question, "Pull request"), "Fix the login");
        let remember = question.remember.clone().unwrap();
        assert_eq!(remember.exact, format!("comment on pull request #7 of {}", place.slug()));
        assert_eq!(remember.kind.unwrap(), format!("comment on any pull request of {}", place.slug()));
        assert_eq!(place.github.state.lock().unwrap().comments, [(7, "hi\n\u{202e}there".to_owned())]);
        assert!(place.world.kinds().ends_with(&["asked".into(), "answered".into(), "executed".into()]));
    }

    async fn relay_19_25_safe_mode_comments_on_the_boxs_own_pull_request_only(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        place.github.add(Pull::open(8, "Somebody's", "main"));
        // A fork may have a branch of the same name.
        place.github.add(Pull { fork: Some("eve".into()), ..Pull::open(9, "Evil", BRANCH) });
        place.mode(Mode::Safe);
        assert_eq!(place.call("gh.pr.comment", &["7", "--body", "hi"]).await.exit_code, 0);
        for other in ["8", "9"] {
            let params = json!({ "args": [other, "--body", "hi"] });
            let (envelope, _) = place.world.answered("gh.pr.comment", params, Verdict::Deny).await;
            assert_eq!(envelope.exit_code, 10);
        }
        assert_eq!(place.github.state.lock().unwrap().comments.len(), 1);
        for args in [&["--body-file", "/home/u/.ssh/id_rsa"][..], &["-F/etc/passwd"], &["--body=x", "-R", "o/other"]] {
            assert_eq!(place.call("gh.pr.comment", args).await.exit_code, 65, "{args:?}");
        }
    }

    async fn reviews_and_closing_ask_even_in_safe_mode(carrier) {
        let (place, oid) = Place::with_pull(carrier).await;
        place.mode(Mode::Safe);
        let (envelope, question) = place.allowed("gh.pr.review", &["--approve", "-b", "fine"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!((question.title.as_str(), question.tier), ("Approve pull request #7", Tier::Sensitive));
        assert_eq!(fact(&question, "Head commit"), oid);
        let remember = question.remember.unwrap();
        assert_eq!(remember.kind, None);
        assert!(remember.exact.ends_with("at the commit it is at now"), "{}", remember.exact);
        assert_eq!(place.github.state.lock().unwrap().reviews, [(7, "APPROVE".into(), "fine".into())]);
        let (envelope, question) = place.allowed("gh.pr.close", &[]).await;
        assert_eq!((envelope.exit_code, question.tier), (0, Tier::Sensitive), "{}", envelope.stderr);
        assert_eq!(place.github.pull(7).state, "CLOSED");
        let (envelope, question) = place.allowed("gh.pr.reopen", &["7"]).await;
        assert_eq!((envelope.exit_code, fact(&question, "State")), (0, "closed"), "{}", envelope.stderr);
        let (envelope, question) = place.allowed("gh.pr.close", &["-d"]).await;
        assert_eq!((envelope.exit_code, question.tier), (0, Tier::Irreversible), "{}", envelope.stderr);
        assert!(question.warnings[0].starts_with("deletes the branch agentbox/smoke"), "{question:?}");
        assert_eq!(question.remember, None);
        assert_eq!(place.world.at_remote(BRANCH), None);
    }

    async fn relay_a41_an_approval_is_of_what_was_shown(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        let answer = async {
            let question = place.world.question().await;
            let sneaky = git(&place.world.host, &["commit-tree", "-p", "main", "-m", "sneaky", "main^{tree}"]);
            git(&place.world.host, &["push", "-qf", place.world.remote.to_str().unwrap(), &format!("{sneaky}:refs/heads/{BRANCH}")]);
            place.world.broker.answer(&question.id, &question.digest, Verdict::AllowOnce, protocol::question::Surface::Cli).unwrap();
        };
        let (envelope, ()) = tokio::join!(place.call("gh.pr.review", &["--approve"]), answer);
        assert_eq!(envelope.exit_code, 10);
        assert!(envelope.stderr.contains("changed since approval"), "{}", envelope.stderr);
        assert!(place.github.state.lock().unwrap().reviews.is_empty());
    }

    async fn relay_19_27_a_merge_always_asks_and_shows_what_it_merges(carrier) {
        let (place, oid) = Place::with_pull(carrier).await;
        place.mode(Mode::Safe);
        place.world.policy(|policy| {
            policy.integrations.get_mut("github").unwrap().auto_approve_writes = true;
        });
        place.github.state.lock().unwrap().pulls[0].checks =
            vec![("build", "SUCCESS"), ("lint", "FAILURE"), ("slow", "")];
        let main = place.world.at_remote("main");
        let answer = async {
            let question = place.world.question().await;
            let always = Verdict::Remember { reach: Reach::Box, breadth: Breadth::Exact, seconds: 60 };
            let cli = protocol::question::Surface::Cli;
            let refused = place.world.broker.answer(&question.id, &question.digest, always, cli);
            assert_eq!(refused, Err(approvals::AnswerError::NotRememberable));
            place.world.broker.answer(&question.id, &question.digest, Verdict::Deny, cli).unwrap();
            question
        };
        let (denied, question) = tokio::join!(place.call("gh.pr.merge", &["--squash"]), answer);
        assert_eq!((denied.exit_code, denied.stderr.as_str()), (10, "denied by user\n"));
        assert_eq!((question.tier, question.title.as_str()), (Tier::Irreversible, "Merge pull request #7 into main"));
        assert_eq!(fact(&question, "Pull request"), "Fix the login");
        assert_eq!(fact(&question, "Head commit"), oid);
        assert_eq!(fact(&question, "Checks"), "1 passed, 1 failed, 1 running");
        assert_eq!(question.warnings, ["checks failed: lint", "checks are still running"]);
        assert_eq!(
            place.argv(&question),
            format!("gh pr merge --repo=SLUG --squash --match-head-commit={oid} -- 7")
        );
        assert_eq!(place.world.at_remote("main"), main);
        let (merged, question) = place.allowed("gh.pr.merge", &["--squash", "--delete-branch"]).await;
        assert_eq!(merged.exit_code, 0, "{}", merged.stderr);
        assert_eq!(question.title, "Merge pull request #7 into main and delete agentbox/smoke");
        assert_eq!(place.world.at_remote("main"), Some(oid));
        assert_eq!(place.world.at_remote(BRANCH), None);
        // What is merged is not asked about again.
        let again = place.call("gh.pr.merge", &["7", "--squash"]).await;
        assert!(again.stderr.contains("is merged"), "{again:?}");
    }

    async fn relay_19_28_a_head_that_moved_is_not_merged(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        let main = place.world.at_remote("main");
        let answer = async {
            let question = place.world.question().await;
            let sneaky = git(&place.world.host, &["commit-tree", "-p", "main", "-m", "sneaky", "main^{tree}"]);
            git(&place.world.host, &["push", "-qf", place.world.remote.to_str().unwrap(), &format!("{sneaky}:refs/heads/{BRANCH}")]);
            place.world.broker.answer(&question.id, &question.digest, Verdict::AllowOnce, protocol::question::Surface::Cli).unwrap();
        };
        let (envelope, ()) = tokio::join!(place.call("gh.pr.merge", &["--merge"]), answer);
        assert_eq!(envelope.exit_code, 10);
        assert!(envelope.stderr.contains("changed since approval"), "{}", envelope.stderr);
        assert!(place.github.was_asked("PullRequestMerge"), "the refusal was not GitHub's");
        assert_eq!(place.world.at_remote("main"), main);
        assert_eq!(place.github.pull(7).state, "OPEN");
    }

    async fn relay_a41_a_merge_queue_is_not_fed(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        place.github.state.lock().unwrap().merge_queue = true;
        let envelope = place.call("gh.pr.merge", &["--merge"]).await;
        assert_eq!(envelope.exit_code, 65);
        assert!(envelope.stderr.contains("queue"), "{}", envelope.stderr);
        assert!(!place.github.was_asked("PullRequestMerge"));
    }

    async fn relay_19_26_checkout_minds_the_users_work(carrier) {
        let (place, oid) = Place::with_pull(carrier).await;
        let host = &place.world.host;
        assert_eq!(place.call("gh.pr.checkout", &["7"]).await.exit_code, 13);
        place.world.policy(|policy| policy.checkout = true);
        std::fs::write(host.join("mine.txt"), "unsaved").unwrap();
        let dirty = place.call("gh.pr.checkout", &["7"]).await;
        assert_eq!(dirty.exit_code, 12, "{dirty:?}");
        std::fs::remove_file(host.join("mine.txt")).unwrap();
        git(host, &["switch", "-q", "-c", BRANCH]);
        let on_box = place.call("gh.pr.checkout", &["7"]).await;
        assert_eq!(on_box.exit_code, 12, "{on_box:?}");
        git(host, &["switch", "-q", "main"]);
        // Neither hooks nor a monitor of the repository run.
        let marker = place.world.dir.path().join("marker");
        let script = format!("#!/bin/sh\ntouch {}\n", marker.display());
        let hook = host.join(".git/hooks/post-checkout");
        std::fs::write(&hook, script).unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        git(host, &["config", "core.fsmonitor", hook.to_str().unwrap()]);
        let (envelope, question) = place.allowed("gh.pr.checkout", &["7"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.title, "Check out pull request #7 as pr-7");
        assert_eq!((question.tier, question.remember.is_none()), (Tier::Sensitive, true));
        assert!(!marker.exists(), "a hook ran");
        git(host, &["config", "--unset", "core.fsmonitor"]);
        std::fs::remove_file(&hook).unwrap();
        assert_eq!(git(host, &["symbolic-ref", "--short", "HEAD"]), "pr-7");
        assert_eq!(git(host, &["rev-parse", "HEAD"]), oid);
    }

    async fn relay_a41_checkout_takes_only_what_was_shown(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        place.world.policy(|policy| policy.checkout = true);
        let answer = async {
            let question = place.world.question().await;
            let sneaky = git(&place.world.host, &["commit-tree", "-p", "main", "-m", "sneaky", "main^{tree}"]);
            git(&place.world.host, &["push", "-qf", place.world.remote.to_str().unwrap(), &format!("{sneaky}:refs/heads/{BRANCH}")]);
            place.world.broker.answer(&question.id, &question.digest, Verdict::AllowOnce, protocol::question::Surface::Cli).unwrap();
        };
        let (envelope, ()) = tokio::join!(place.call("gh.pr.checkout", &["7"]), answer);
        assert_eq!(envelope.exit_code, 10, "{envelope:?}");
        assert_eq!(git(&place.world.host, &["symbolic-ref", "--short", "HEAD"]), "main");
    }

    async fn relay_19_30_review_comments_are_read_and_written(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        let api = |endpoint: &str, args: &[&str]| json!({ "endpoint": endpoint, "args": args });
        let at = "repos/o/r/pulls/5/comments";
        let get = place.world.call("gh.api", api(at, &[])).await;
        assert_eq!((get.exit_code, get.stdout.as_str()), (0, "[]"), "{}", get.stderr);
        let params = api(at, &["-f", "body=@me hi", "-F", "line=3", "-F", "path=a.txt"]);
        let (post, question) = place.world.answered("gh.api", params, Verdict::AllowOnce).await;
        assert_eq!(post.exit_code, 0, "{}", post.stderr);
        assert_eq!(place.argv(&question), "gh api --method=POST --input=- -- repos/o/r/pulls/5/comments");
        assert_eq!(question.evidence.body, ["@me hi"]);
        assert_eq!((fact(&question, "line"), fact(&question, "path")), ("3", "a.txt"));
        place.mode(Mode::Safe);
        let reply = "repos/o/r/pulls/5/comments/100/replies";
        // Also then: it may be anybody's pull request.
        let reply = place.world.answered("gh.api", api(reply, &["-f", "body=ok"]), Verdict::AllowOnce).await.0;
        assert_eq!(reply.exit_code, 0, "{}", reply.stderr);
        assert!(place.reasons().is_empty());
        let posted = place.github.state.lock().unwrap().review_comments.clone();
        assert_eq!(posted[0], json!({ "body": "@me hi", "line": 3, "path": "a.txt", "pull": "5", "id": 100 }));
        assert_eq!(posted[1]["body"], "ok");
        for (endpoint, args) in [
            (at, &["-F", "body=@/etc/passwd"][..]),
            (at, &["-X", "DELETE"]),
            (at, &["-iXDELETE"]),
            (at, &["--input", "-"]),
            ("repos/o/other/pulls/5/comments", &[]),
            ("repos/o/r/issues/5/comments", &[]),
            ("user", &[]),
        ] {
            assert_eq!(place.world.call("gh.api", api(endpoint, args)).await.exit_code, 65, "{endpoint} {args:?}");
        }
    }

    async fn relay_19_31_a_run_is_started_again(carrier) {
        let place = Place::new(carrier).await;
        let (status, _) = place.world.post(r#"{"method":"gh.run.watch"}"#).await;
        assert_eq!(status, 400);
        assert_eq!(place.call("gh.run.view", &[]).await.exit_code, 65);
        let (envelope, question) = place.allowed("gh.run.rerun", &["123", "--failed"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(question.title, "Run workflow run 123 again (failed jobs)");
        assert_eq!((fact(&question, "Name"), fact(&question, "Of")), ("CI", "Fix the login"));
        place.mode(Mode::Safe);
        assert_eq!(place.call("gh.run.rerun", &["124"]).await.exit_code, 0);
        assert_eq!(place.reasons().len(), 1);
        // A run of another branch may be a deployment.
        assert_eq!(place.allowed("gh.run.rerun", &["123"]).await.0.exit_code, 0);
        assert_eq!(place.allowed("gh.run.rerun", &["--job", "9"]).await.0.exit_code, 0);
        assert_eq!(place.reasons().len(), 1);
        let reruns = place.github.state.lock().unwrap().reruns.clone();
        assert_eq!(reruns, ["123 rerun-failed-jobs", "124 rerun", "123 rerun", "9 rerun"]);
        let missing = place.call("gh.run.rerun", &["456"]).await;
        assert_eq!(missing.exit_code, 1, "{missing:?}");
    }

    async fn relay_19_22_an_unknown_operation_is_400(carrier) {
        let place = Place::new(carrier).await;
        let (status, body) = place.world.post(r#"{"method":"gh.pr.bogus"}"#).await;
        assert_eq!((status, body.as_str()), (400, r#"{"error":"unknown gh.pr.* op: bogus"}"#));
    }

    async fn relay_a14_the_credential_does_not_come_back(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        for filter in ["env", "env.GH_ENTERPRISE_TOKEN|@base64", "$ENV"] {
            let refused = place.call("gh.pr.view", &["--json", "title", "--jq", filter]).await;
            assert_eq!(refused.exit_code, 65, "{filter}");
        }
        // A page that quotes it, in a form no pattern knows.
        place.world.store("github.enterprise-token", "correct horse battery staple");
        let state = &place.github.state;
        state.lock().unwrap().tokens.push("correct horse battery staple".into());
        state.lock().unwrap().pulls[0].title = "a correct horse battery staple b".into();
        let view = place.call("gh.pr.view", &["--json", "title", "-q", ".title"]).await;
        assert_eq!(view.stdout, "a [redacted] b\n", "{}", view.stderr);
    }

    async fn a_credential_meets_its_own_host_only(carrier) {
        let (place, _) = Place::with_pull(carrier).await;
        // The server is not the one the person named.
        place.world.policy(|policy| {
            policy.integrations.get_mut("github").unwrap().base_url = Some("https://ghe.corp".into());
        });
        let before = place.github.state.lock().unwrap().credentials.len();
        let envelope = place.call("gh.pr.view", &["7"]).await;
        assert_eq!(envelope.exit_code, 4, "{envelope:?}");
        let host = place.github.host();
        assert_eq!(
            envelope.stderr,
            format!("gh not authenticated on host for {host} (run `gh auth login --hostname {host}`)\n")
        );
        assert_eq!(place.github.state.lock().unwrap().credentials.len(), before);
    }
}

/// What `gh auth login` leaves behind.
fn log_in(place: &Place, token: &str) {
    let dir = place.home.path().join("config/gh");
    std::fs::create_dir_all(&dir).unwrap();
    // Some versions look for the host without its port.
    let hosts = [place.github.host(), "127.0.0.1".to_owned()];
    let entry = |host| {
        format!("{host}:\n    oauth_token: {token}\n    user: ada\n    git_protocol: https\n")
    };
    let text: String = hosts.map(entry).concat();
    std::fs::write(dir.join("hosts.yml"), text).unwrap();
}

over_both_carriers! {
    async fn relay_19_29_a_login_is_noticed_within_seconds(carrier) {
        let place = Place::without_login(carrier, None).await;
        place.github.add(Pull::open(7, "Fix the login", BRANCH));
        let probes = || {
            let state = place.github.state.lock().unwrap();
            state.asked.iter().filter(|line| *line == "GET /api/v3/").count()
        };
        let view = || place.call("gh.pr.view", &["7", "--json", "title"]);
        let out = view().await;
        assert_eq!(out.exit_code, 4, "{out:?}");
        assert!(out.stderr.starts_with("gh not authenticated on host"), "{}", out.stderr);
        log_in(&place, TOKEN);
        // Still known from before.
        assert_eq!(view().await.exit_code, 4);
        assert_eq!(probes(), 0);
        let noticed = async {
            while view().await.exit_code != 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), noticed).await.expect("the login is noticed");
        assert_eq!(probes(), 1);
        // The second call within the minute asks nothing.
        assert_eq!(view().await.exit_code, 0);
        assert_eq!(probes(), 1);
    }

    async fn relay_19_29_a_missing_gh_is_127(carrier) {
        let world = World::with(Setup {
            remote_url: Some("git@github.com:o/r.git".into()),
            env: vec![("PATH".into(), "/nowhere".into())],
            ..Setup::new(carrier)
        })
        .await;
        world.enable("github");
        let envelope = world.call("gh.pr.view", json!({})).await;
        assert_eq!(
            (envelope.exit_code, envelope.stderr.as_str()),
            (127, "gh not installed on host (https://cli.github.com)\n")
        );
    }

    async fn relay_19_29_a_broken_gh_tells_its_code_and_is_asked_once(carrier) {
        let place = Place::new(carrier).await;
        let log = place.world.dir.path().join("count");
        let script = format!("#!/bin/sh\necho x >> {}\necho broken >&2\nexit 3\n", log.display());
        place.world.program("gh", &script);
        for _ in 0..2 {
            let envelope = place.call("gh.pr.view", &["7"]).await;
            assert_eq!(envelope.exit_code, 3, "{envelope:?}");
            assert!(envelope.stderr.contains("broken"));
        }
        assert_eq!(std::fs::read_to_string(log).unwrap(), "x\n");
    }

    async fn relay_19_23_on_github_com_the_slug_has_no_host(carrier) {
        let world = World::with(Setup {
            remote_url: Some("git@github.com:o/r.git".into()),
            env: vec![
                ("GH_ENTERPRISE_TOKEN".into(), "for-another-server".into()),
                ("GH_HOST".into(), "ghe.corp".into()),
            ],
            ..Setup::new(carrier)
        })
        .await;
        world.enable("github");
        world.store("github.token", TOKEN);
        world.store("github.enterprise-token", "for-another-server");
        let log = telltale(&world);
        let envelope = world.call("gh.pr.view", json!({ "args": ["7"] })).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("\nGH_REPO=o/r\n") && log.contains("\nGH_HOST=github.com\n"), "{log}");
        assert!(log.contains("args=pr view --repo=o/r -- 7\n"), "{log}");
        assert!(log.contains(&format!("\nGH_TOKEN={TOKEN}\n")), "{log}");
        assert!(!log.contains("for-another-server"), "{log}");
    }

    async fn ahome_under_git_is_not_looked_at(carrier) {
        let place = Place::new(carrier).await;
        git(place.world.dir.path(), &["init", "-q"]);
        let script = "#!/bin/sh\ncase \"$1\" in --version) exit 0;; esac\ngit rev-parse --git-dir\n";
        place.world.program("gh", script);
        let envelope = place.call("gh.pr.view", &["7"]).await;
        assert_ne!(envelope.exit_code, 0, "{envelope:?}");
    }

    async fn a_branch_with_another_name_at_the_remote_is_found(carrier) {
        let place = Place::without_login(carrier, Some("fix-login")).await;
        place.world.store("github.enterprise-token", TOKEN);
        place.push("a.txt", "one").await;
        let (envelope, question) = place.allowed("gh.pr.create", &["--fill"]).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert_eq!(fact(&question, "Branches"), "main ← fix-login");
        let view = place.call("gh.pr.view", &[BRANCH, "--json", "headRefName"]).await;
        assert_eq!(view.stdout, "{\"headRefName\":\"fix-login\"}\n", "{}", view.stderr);
    }
}
