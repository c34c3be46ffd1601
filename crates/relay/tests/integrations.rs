//! `integration.*` from a box's request to the host program's argv, over both carriers. The programs
//! here only write down how they were called; the real ones are tested beside their connectors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use protocol::question::{Tier, Verdict};
use serde_json::{Value, json};
use std::time::Duration;
use support::{Setup, World};

/// Writes down each call: its words, its folder and the part of its environment that matters.
fn recorder(world: &World, name: &str, then: &str) {
    let log = world.dir.path().join(format!("{name}.log"));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo probe >> {log}; echo '{name} 9.9'; exit 0; fi\n\
         {{ printf 'call'; for a in \"$@\"; do printf '\\037%s' \"$a\"; done; printf '\\n'; echo \"cwd $(pwd)\"; \
         env | grep -E '^(NOTION|LINEAR|GH|GITHUB|LD|NODE|GIT_DIR|SECRET)' | sed 's/^/env /'; }} >> {log}\n{then}\n",
        log = log.display()
    );
    world.program(name, &script);
}

fn log(world: &World, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(world.dir.path().join(format!("{name}.log")));
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn calls(world: &World, name: &str) -> Vec<Vec<String>> {
    let calls = log(world, name).into_iter().filter(|line| line.starts_with("call"));
    calls.map(|line| line.split('\x1f').skip(1).map(str::to_owned).collect()).collect()
}

fn args(words: &[&str]) -> Value {
    json!({ "args": words })
}

over_both_carriers! {
    async fn relay_19_32_what_is_not_an_integration_is_said(carrier) {
        let world = World::new(carrier).await;
        for (method, code, text) in [
            ("integration.notion.", 64, "unknown integration method shape"),
            ("integration.NOTION.api", 64, "unknown integration method shape"),
            ("integration.jira.api", 64, "unknown integration service: jira"),
            ("integration.notion.bogus", 65, "Available: whoami, api, page.create, page.update"),
            ("integration.linear.auth.token", 65, "not on allowlist"),
            ("integration.linear.issue.delete", 65, "not on allowlist"),
            ("integration.linear.team.create", 65, "not on allowlist"),
        ] {
            let envelope = world.call(method, json!({})).await;
            assert_eq!(envelope.exit_code, code, "{method}");
            assert!(envelope.stderr.contains(text), "{method}: {}", envelope.stderr);
            assert_eq!(envelope.stderr.matches('\n').count(), 1);
        }
        assert!(world.kinds().iter().all(|kind| kind == "refused"), "{:?}", world.kinds());
    }

    async fn relay_19_33_a_disabled_service_spawns_nothing_until_the_flag_is_set(carrier) {
        let world = World::new(carrier).await;
        recorder(&world, "ntn", "echo '{}'");
        let read = args(&["v1/users/me"]);
        let envelope = world.call("integration.notion.api", read.clone()).await;
        assert_eq!(envelope.exit_code, 65);
        assert!(envelope.stderr.contains("agentbox integrations enable notion"), "{}", envelope.stderr);
        assert!(log(&world, "ntn").is_empty());
        world.enable("notion");
        assert_eq!(world.call("integration.notion.api", read.clone()).await.exit_code, 0);
        assert_eq!(calls(&world, "ntn").len(), 1);
        world.policy(|policy| policy.integrations.clear());
        assert_eq!(world.call("integration.notion.api", read).await.exit_code, 65);
    }

    async fn relay_19_35_reads_pass_with_an_explicit_method_away_from_the_project(carrier) {
        let world = World::new(carrier).await;
        world.enable("notion");
        world.store("notion.token", "ntn_0123456789abcdef0123");
        recorder(&world, "ntn", "echo \"you are $NOTION_API_TOKEN\"");
        let envelope = world.call("integration.notion.api", args(&["v1/users/me"])).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(!envelope.stdout.contains("0123456789"), "the token came back: {}", envelope.stdout);
        let lines = log(&world, "ntn");
        let call = &calls(&world, "ntn")[0];
        assert!(call.windows(2).any(|w| w == ["-X", "GET"]) || call.contains(&"-XGET".into())
            || call.contains(&"--method=GET".into()), "{call:?}");
        assert!(lines.contains(&"env NOTION_API_TOKEN=ntn_0123456789abcdef0123".to_owned()), "{lines:?}");
        let cwd = lines.iter().find_map(|line| line.strip_prefix("cwd ")).unwrap().to_owned();
        assert!(!cwd.starts_with(world.host.to_str().unwrap()), "{cwd}");
        assert!(world.broker.pending().is_empty());
        assert!(!world.kinds().contains(&"asked".to_owned()));
    }

    async fn relay_19_37_a_write_asks_and_a_denial_spawns_nothing(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "echo made");
        let write = args(&["--title", "Fix login", "--team", "ENG", "--description", "one\ntwo\u{202e}"]);
        let (envelope, question) =
            world.answered("integration.linear.issue.create", write, Verdict::Deny).await;
        assert_eq!((envelope.exit_code, envelope.stderr.as_str()), (10, "denied by user\n"));
        assert!(calls(&world, "linear").is_empty());
        assert_eq!(question.tier, Tier::Routine);
        let shown = serde_json::to_string(&question).unwrap();
        assert!(shown.contains("Fix login") && shown.contains("two⟨U+202E⟩"), "{shown}");
        assert!(question.remember.is_some());

        let write = args(&["--title", "Fix login", "--team", "ENG"]);
        let (envelope, _) =
            world.answered("integration.linear.issue.create", write, Verdict::AllowOnce).await;
        assert_eq!((envelope.exit_code, envelope.stdout.as_str()), (0, "made\n"));
        let call = &calls(&world, "linear")[0];
        assert_eq!(call[..2], ["issue", "create"]);
        assert!(call.contains(&"--no-interactive".to_owned()), "{call:?}");
        assert_eq!(world.kinds().last().unwrap(), "executed");
    }

    async fn a_yes_is_not_asked_for_while_the_credential_cannot_be_read(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "echo made");
        world.stored.0.lock().unwrap().insert("linear.token".into(), Err("the keychain is locked".into()));
        let write = args(&["--title", "Fix login", "--team", "ENG"]);
        let done = world.call("integration.linear.issue.create", write).await;
        assert_eq!(done.exit_code, 1);
        assert!(done.stderr.contains("the keychain is locked"), "{}", done.stderr);
        assert_eq!(world.kinds(), ["failed"]);
        assert!(calls(&world, "linear").is_empty());
    }

    async fn reads_end_with_their_caller_and_leave_no_queue_behind(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        let (go, ran) = (world.dir.path().join("go"), world.dir.path().join("ran"));
        std::fs::create_dir(&ran).unwrap();
        // A file each: lines of several at once would run into each other.
        let then = format!(": > '{}'/$$; while [ ! -e '{}' ]; do sleep 0.02; done", ran.display(), go.display());
        recorder(&world, "linear", &then);
        let ran = || std::fs::read_dir(&ran).unwrap().count();
        let read = |n: u32| {
            let limit = n.to_string();
            let world = &world;
            async move { world.call("integration.linear.issue.list", args(&["--limit", &limit])).await }
        };
        // While others come and go, what was sent or given up before has been noticed.
        let a_while = || async {
            for _ in 0..30 {
                assert_eq!(world.raw("GET /healthz", &world.headers(), b"").await.0, 200);
            }
        };
        let mut running = Box::pin(futures_util::future::join_all((1..=4).map(read)));
        let started = async {
            while ran() < 4 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = &mut running => panic!("nothing let them go"),
            () = started => {}
        }
        tokio::select! {
            _ = &mut running => panic!("nothing let them go"),
            _ = futures_util::future::join_all((5..=20).map(read)) => panic!("there was room"),
            () = a_while() => {}
        }
        tokio::select! {
            _ = &mut running => panic!("nothing let them go"),
            () = a_while() => {}
        }
        std::fs::write(&go, "").unwrap();
        assert!(running.await.iter().all(|done| done.exit_code == 0));
        assert_eq!(read(50).await.exit_code, 0);
        assert_eq!(ran(), 5, "calls of those who left were made");
    }

    async fn relay_19_37_a_notion_page_is_made_after_a_yes_and_not_before(carrier) {
        let world = World::new(carrier).await;
        world.enable("notion");
        world.store("notion.token", "ntn_0123456789abcdef0123");
        recorder(&world, "ntn", "cat > \"$(dirname \"$0\")/../body\"; echo '{\"id\":1}'");
        let parent = "page:0123456789abcdef0123456789abcdef";
        let page = || args(&["--parent", parent, "--title", "Plan", "--content", "one\ntwo"]);
        let (denied, question) =
            world.answered("integration.notion.page.create", page(), Verdict::Deny).await;
        assert_eq!((denied.exit_code, denied.stderr.as_str()), (10, "denied by user\n"));
        assert!(calls(&world, "ntn").is_empty() && !world.dir.path().join("body").exists());
        let shown = serde_json::to_string(&question).unwrap();
        assert!(shown.contains("Plan") && shown.contains("page 01234567-89ab-cdef-0123-456789abcdef"), "{shown}");
        assert!(!shown.contains("ntn_0123456789"), "{shown}");
        assert_eq!(world.kinds(), ["asked", "answered"]);

        let (envelope, again) =
            world.answered("integration.notion.page.create", page(), Verdict::AllowOnce).await;
        assert_eq!((envelope.exit_code, envelope.stdout.as_str()), (0, "{\"id\":1}\n"), "{}", envelope.stderr);
        let made = calls(&world, "ntn");
        assert_eq!(made.len(), 1);
        // What was shown is what ran.
        assert_eq!(again.argv[1..], made[0]);
        assert_eq!(made[0][0], "api");
        assert!(made[0].windows(2).any(|w| w == ["-X", "POST"]) && made[0].contains(&"v1/pages".into()), "{made:?}");
        let body = std::fs::read_to_string(world.dir.path().join("body")).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["parent"]["type"], "page_id");
        assert_eq!(world.kinds().last().unwrap(), "executed");
    }

    async fn integrations_can_be_told_not_to_ask_and_that_is_written_down(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        world.policy(|p| p.integrations.get_mut("linear").unwrap().auto_approve_writes = true);
        recorder(&world, "linear", "");
        let write = args(&["ENG-1", "--body", "hi"]);
        assert_eq!(world.call("integration.linear.issue.comment", write).await.exit_code, 0);
        assert_eq!(calls(&world, "linear")[0][..3], ["issue", "comment", "add"]);
        assert_eq!(world.kinds(), ["allowed-by-policy", "executed"]);
    }

    async fn relay_19_38_missing_and_broken_programs_have_their_codes(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        let read = args(&[]);
        let envelope = world.call("integration.linear.team.list", read.clone()).await;
        assert_eq!(envelope.exit_code, 127);
        assert!(envelope.stderr.contains("linear not installed on host"), "{}", envelope.stderr);
        world.program("linear", "#!/bin/sh\necho 'no license' >&2; exit 3\n");
        let envelope = world.call("integration.linear.team.list", read.clone()).await;
        assert_eq!(envelope.exit_code, 3);
        assert!(envelope.stderr.contains("no license"), "{}", envelope.stderr);
        // A new file is asked anew, an old answer is believed for a while.
        std::fs::remove_file(world.dir.path().join("bin/linear")).unwrap();
        recorder(&world, "linear", "");
        for _ in 0..3 {
            assert_eq!(world.call("integration.linear.team.list", read.clone()).await.exit_code, 0);
        }
        let probes = log(&world, "linear").iter().filter(|line| *line == "probe").count();
        assert_eq!((probes, calls(&world, "linear").len()), (1, 3));
    }

    async fn relay_19_59_what_a_program_leaves_behind_is_ended(carrier) {
        let pids = tempfile::NamedTempFile::new().unwrap();
        let env = vec![("LINEAR_PIDS".to_owned(), pids.path().display().to_string())];
        let world = World::with(Setup { env, ..Setup::new(carrier) }).await;
        world.enable("linear");
        recorder(&world, "linear", "(sleep 300 & echo $! > \"$LINEAR_PIDS\") >/dev/null 2>&1; exit 0");
        assert_eq!(world.call("integration.linear.team.list", args(&[])).await.exit_code, 0);
        let pid: i32 = std::fs::read_to_string(pids.path()).unwrap().trim().parse().unwrap();
        for _ in 0..100 {
            if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("a child of the program lives on");
    }

    async fn relay_19_60_floods_are_cut_and_tokens_masked(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        recorder(&world, "linear", &format!("echo {token}; head -c 1073741824 /dev/zero | tr '\\0' x"));
        let envelope = world.call("integration.linear.team.list", args(&[])).await;
        assert!(envelope.stdout.len() <= 8 * 1024 * 1024 + 64);
        assert!(envelope.stdout.starts_with("[redacted]"), "{}", &envelope.stdout[..40]);
        assert!(envelope.stdout.ends_with("output cut after 8388608 bytes\n"));
    }

    async fn relay_a34_nothing_a_box_sends_reaches_the_environment(carrier) {
        let inherited = [("LD_PRELOAD", "/tmp/x.so"), ("NODE_OPTIONS", "--x"), ("GIT_DIR", "/x"),
            ("GH_TOKEN", "of-another-tool"), ("NOTION_WORKSPACE", "mine"), ("SECRET_THING", "x")];
        let env = inherited.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec();
        let world = World::with(Setup { env, ..Setup::new(carrier) }).await;
        world.enable("notion");
        recorder(&world, "ntn", "");
        let with_env = json!({ "args": ["v1/users/me"], "env": { "NOTION_X": "y" } });
        assert_eq!(world.call("integration.notion.api", with_env).await.exit_code, 64);
        assert_eq!(world.call("integration.notion.api", args(&["v1/users/me"])).await.exit_code, 0);
        let seen: Vec<_> = log(&world, "ntn").into_iter().filter(|l| l.starts_with("env ")).collect();
        assert_eq!(seen, ["env NOTION_WORKSPACE=mine"]);
    }

    async fn relay_a35_a_program_in_a_project_is_never_the_hosts(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        let planted = world.host.join("linear");
        std::fs::write(&planted, "#!/bin/sh\ntouch \"$0.ran\"\n").unwrap();
        std::fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        // A link in a good folder leads into the project.
        std::os::unix::fs::symlink(&planted, world.dir.path().join("bin/linear")).unwrap();
        assert_eq!(world.call("integration.linear.team.list", args(&[])).await.exit_code, 127);
        assert!(!world.host.join("linear.ran").exists());
    }

    async fn relay_a35_the_projects_own_folder_on_the_path_is_passed_over(carrier) {
        let setup = Setup {
            project_on_path: true,
            // Git looks for an ssh by itself.
            remote_url: Some("ssh://git@git.example.org/shop.git".into()),
            ..Setup::new(carrier)
        };
        let world = World::with(setup).await;
        world.enable("linear");
        world.enable("notion");
        let bin = world.host.join("bin");
        std::fs::create_dir(&bin).unwrap();
        for name in ["linear", "ntn", "git", "gh", "ssh"] {
            let fake = bin.join(name);
            std::fs::write(&fake, "#!/bin/sh\ntouch \"$0.ran\"\n").unwrap();
            std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        // There is no other `linear`, and another `ntn`.
        assert_eq!(world.call("integration.linear.team.list", args(&[])).await.exit_code, 127);
        recorder(&world, "ntn", "echo \"$PATH\"");
        let envelope = world.call("integration.notion.api", args(&["v1/users/me"])).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        assert!(envelope.stdout.contains("/bin"), "{}", envelope.stdout);
        assert!(!envelope.stdout.contains(bin.to_str().unwrap()), "{}", envelope.stdout);
        world.program("ssh", "#!/bin/sh\necho the real ssh >&2; exit 1\n");
        let envelope = world.call("git.fetch", json!({})).await;
        assert_ne!(envelope.exit_code, 0);
        assert!(envelope.stderr.contains("the real ssh"), "{}", envelope.stderr);
        assert_ne!(world.relay.program("gh"), Some(bin.join("gh")));
        let left: Vec<_> = std::fs::read_dir(&bin).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 5, "{left:?}");
    }

    async fn a_keychain_that_cannot_be_read_is_said_and_nothing_runs(carrier) {
        let world = World::new(carrier).await;
        world.enable("notion");
        recorder(&world, "ntn", "");
        let locked = Err("the keychain is locked; unlock it".to_owned());
        world.stored.0.lock().unwrap().insert("notion.token".into(), locked);
        let envelope = world.call("integration.notion.api", args(&["v1/users/me"])).await;
        assert_eq!(envelope.exit_code, 1);
        assert!(envelope.stderr.contains("the keychain is locked"), "{}", envelope.stderr);
        assert!(calls(&world, "ntn").is_empty());
    }

    async fn a_box_without_a_repository_can_use_integrations(carrier) {
        let world = World::with(Setup { with_repo: false, ..Setup::new(carrier) }).await;
        world.enable("linear");
        recorder(&world, "linear", "");
        assert_eq!(world.call("integration.linear.team.list", args(&[])).await.exit_code, 0);
        assert_eq!(world.call("git.push", json!({})).await.exit_code, 64);
    }
}

/// Each is refused with 65, over the wire, before a program is looked for or anybody is asked.
async fn never_reaches(world: &World, program: &str, method: &str, lines: &[&[&str]]) {
    for words in lines {
        let envelope = world.call(method, args(words)).await;
        assert_eq!(envelope.exit_code, 65, "{method} {words:?}: {}", envelope.stderr);
    }
    assert!(log(world, program).is_empty(), "{:?}", log(world, program));
    assert!(world.kinds().iter().all(|kind| kind == "refused"), "{:?}", world.kinds());
}

over_both_carriers! {
    async fn relay_19_36_and_a13_no_line_makes_a_notion_write_of_a_read(carrier) {
        let world = World::new(carrier).await;
        world.enable("notion");
        recorder(&world, "ntn", "");
        never_reaches(&world, "ntn", "integration.notion.api", &[
            &["v1/pages", "-d", "{}"],
            &["v1/pages", "title=x"],
            &["v1/pages", "title=a==b"],
            &["v1/pages/abc", "-X", "PATCH", "-d", "{}"],
            &["-XDELETE", "v1/blocks/a"],
            &["v1/search/../pages", "-d", "{}"],
            &["-X", "POST"],
            &["--workers-config-file", "v1/search", "v1/pages", "-d", "{}"],
            &["--env", "prod", "v1/pages", "title=x"],
            &["v1/search", "--input", "-"],
            &["v1/search", "--file", "/etc/passwd"],
            &["v1/search", "-d", "@/etc/passwd"],
            &["https://h/v1/x"],
            &["v1/users/me", "X-HTTP-Method-Override:DELETE"],
        ]).await;
    }

    async fn relay_19_39_queries_reach_linear_as_they_were_read(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "");
        for (query, sent) in [
            ("{ viewer { id } }", "{viewer{id}}"),
            ("# c\nquery Q { teams { id } }", "query Q{teams{id}}"),
            ("\u{feff}{ viewer { id } }", "{viewer{id}}"),
            ("{ issue(id:\"mutation\") { id } }", "{issue(id:\"mutation\"){id}}"),
            ("{ mutation: viewer { id } }", "{mutation:viewer{id}}"),
        ] {
            let before = calls(&world, "linear").len();
            let envelope = world.call("integration.linear.api", args(&[query])).await;
            assert_eq!(envelope.exit_code, 0, "{query}: {}", envelope.stderr);
            let call = &calls(&world, "linear")[before];
            assert_eq!(call[..2], ["api", sent], "{query}");
        }
        assert!(!world.kinds().contains(&"asked".to_owned()));
    }

    async fn relay_19_40_and_a11_what_is_no_single_query_never_reaches_linear(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "");
        never_reaches(&world, "linear", "integration.linear.api", &[
            &["mutation { x }"],
            &["MUTATION { x }"],
            &["# c\n mutation { x }"],
            &["# c\rmutation { x }"],
            &["fragment F on Issue {id} mutation M { x }"],
            &["query A { x } mutation B { y }"],
            &["query A { x } query B { y }"],
            &["subscription { x }"],
            &["\u{a0}mutation { x }"],
            &["-mutation { x }"],
            &["\"d\" query { x }"],
            &["/* c */ { x }"],
            &["-"],
            &["--workspace", "o", "{ x }"],
            &["--input", "x"],
            &["--variable", "--input=/x"],
        ]).await;
    }

    async fn relay_19_41_and_a12_a_variable_names_no_file_of_the_host(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "");
        never_reaches(&world, "linear", "integration.linear.api", &[
            &["--variable", "k=@/etc/passwd", "{ x }"],
            &["--variable=k=@/etc/passwd", "{ x }"],
            &["--variable", "@/etc/passwd", "{ x }"],
            &["--variable", "@-", "{ x }"],
            &["--variable", "k=n=@p", "{ x }"],
            &["--input", "/etc/passwd", "{ x }"],
        ]).await;
        let line = ["--variable", "k=5", "query($k: Int) { x(n: $k) }"];
        assert_eq!(world.call("integration.linear.api", args(&line)).await.exit_code, 0);
        let call = &calls(&world, "linear")[0];
        assert!(call.contains(&"--variables-json={\"k\":5}".to_owned()), "{call:?}");
        assert!(!call.iter().any(|word| word == "--variable" || word.starts_with("--variable=")));
    }

    async fn relay_19_42_19_43_and_a15_no_operation_of_linear_leaks_or_reads_a_file(carrier) {
        let world = World::new(carrier).await;
        world.enable("linear");
        recorder(&world, "linear", "");
        for op in ["auth.token", "issue.delete", "team.create"] {
            never_reaches(&world, "linear", &format!("integration.linear.{op}"), &[&[]]).await;
        }
        never_reaches(&world, "linear", "integration.linear.issue.comment", &[
            &["ABC-1", "--body-file", "notes.md"],
            &["ABC-1", "--body", "hi", "--attach", "/etc/passwd"],
            &["ABC-1", "--start"],
            &["ABC-1", "-w", "o"],
        ]).await;
        never_reaches(&world, "linear", "integration.linear.issue.create", &[
            &["--title", "x", "--description-file", "/etc/passwd"],
        ]).await;
    }
}
