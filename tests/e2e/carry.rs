//! `agentbox.yaml` before a box is made, and the files of this computer it wants in there.

use crate::conversations::down_and_up;
use crate::create_faults::{nothing_is_left, repository};
use crate::sessions::stand_in;
use crate::world::{Running, World, docker, text};
use agentbox_e2e::pty::Terminal;
use agentbox_e2e::wait::eventually;
use bollard::query_parameters::{InspectContainerOptions, InspectNetworkOptions};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SLOW: Duration = Duration::from_secs(120);

pub fn write(path: impl AsRef<Path>, content: &str, mode: u32) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The person's home on the host.
pub fn user_home(world: &World) -> PathBuf {
    world.home().parent().unwrap().to_owned()
}

pub fn configure(world: &World, yaml: &str) {
    write(world.project().join("agentbox.yaml"), yaml, 0o644);
}

pub fn boxes(world: &World) -> usize {
    world.json(&["list"])["boxes"].as_array().unwrap().len()
}

/// Whether anything of a box is on the engine.
fn is_on_engine(name: &str) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let docker = docker().await.unwrap();
        let name = format!("agentbox-{name}");
        let container = docker.inspect_container(&name, None::<InspectContainerOptions>).await;
        let network = docker.inspect_network(&name, None::<InspectNetworkOptions>).await;
        container.is_ok() || network.is_ok()
    })
}

/// Exit code, standard output, standard error.
pub fn run(world: &World, args: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let output = world.agentbox_command(args).envs(env.iter().copied()).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn boxes_16_05_a_mistake_in_agentbox_yaml_costs_nothing() {
    let world = World::headless();
    let bad = "services:\n  web: {}\ntasks:\n  t: {command: x, needs: [nobody]}\n  u: {command: [a, 5]}\n";
    configure(&world, bad);
    let before = repository(&world);
    let (code, _, said) = run(&world, &["create", "-n", "broken"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("agentbox.yaml validation failed:"), "{said}");
    for line in [
        "agentbox.yaml:2:8: services.web: needs command or image (Y011)",
        "agentbox.yaml:4:27: tasks.t: needs nobody, which is no service and no task (Y051)",
        "agentbox.yaml:5:20: tasks.u.command[1]: must be a string, not a number (Y013)",
    ] {
        assert!(said.contains(line), "no {line} in {said}");
    }
    assert_eq!(boxes(&world), 0);
    nothing_is_left(&world, "after a mistake in agentbox.yaml");
    assert_eq!(repository(&world), before);

    let (code, out, said) = run(&world, &["validate"], &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("(Y011)") && said.contains("(Y051)") && said.contains("(Y013)"));
    configure(&world, "services: {web: {command: x, restartt: always}}\n");
    let (code, out, said) = run(&world, &["validate"], &[]);
    assert_eq!((code, out.as_str()), (Some(0), "OK: 1 service(s), 0 task(s)\n"), "{said}");
    assert!(said.contains("did you mean restart?"), "{said}");
    assert_eq!(run(&world, &["validate", "--strict"], &[]).0, Some(2));
    let report = world.json(&["validate"])["validation"].clone();
    assert_eq!((&report["valid"], &report["services"]), (&true.into(), &1.into()));
    assert_eq!(report["warnings"][0]["path"], "services.web.restartt");
    fs::remove_file(world.project().join("agentbox.yaml")).unwrap();
    let (code, _, said) = run(&world, &["validate"], &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no agentbox.yaml was found"), "{said}");
}

#[test]
fn boxes_16_15_files_of_this_computer_need_a_yes_of_their_own() {
    let world = World::headless();
    write(user_home(&world).join("notes"), "mine\n", 0o640);
    configure(&world, "carry: [~/notes]\n");
    let (code, _, said) = run(&world, &["create", "-n", "quiet", "-y"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("AGENTBOX_CARRY_YES=1") && said.contains("AGENTBOX_CARRY=skip"),
        "{said}"
    );
    assert_eq!(boxes(&world), 0);
    nothing_is_left(&world, "without a yes");

    // By the variable alone, by the flag alone, and against a yes.
    let skip = ("AGENTBOX_CARRY", "skip");
    for (name, flags, env) in [
        ("by-variable", &["-y"][..], &[skip][..]),
        ("by-flag", &["--carry", "skip"], &[]),
        ("in-doubt", &["--carry", "skip"], &[("AGENTBOX_CARRY_YES", "1")]),
        ("both-said", &[], &[skip, ("AGENTBOX_CARRY_YES", "1")]),
    ] {
        let (code, _, said) = run(&world, &[&["create", "-n", name], flags].concat(), env);
        assert_eq!(code, Some(0), "{name}: {said}");
        let told = "1 entry of carry was not copied";
        assert!(said.contains(told), "{name}: {said}");
        assert!(!world.in_box(name, "test -e ~/notes").status.success(), "{name}");
        assert!(!world.audit_kinds(name).contains(&"carried".to_owned()), "{name}");
        world.ok(&["destroy", "-y", name]);
    }
    let (code, _, said) = run(&world, &["create", "-n", "odd"], &[("AGENTBOX_CARRY", "maybe")]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn boxes_16_16_carried_files_are_there_before_anything_runs() {
    let world = World::headless();
    let home = user_home(&world);
    write(home.join("notes"), "mine\n", 0o640);
    write(home.join("tool"), "#!/bin/sh\n", 0o755);
    write(home.join("app.env"), "HOST={{AGENTBOX_BOX_HOST}} {{HOME}}\nURL=app.localhost\n", 0o600);
    write(home.join("data/a"), "a", 0o600);
    write(home.join("data/sub/b"), "b", 0o644);
    write(home.join("data/node_modules/c"), "c", 0o644);
    symlink("sub/b", home.join("data/near")).unwrap();
    symlink("/etc/hostname", home.join("data/far")).unwrap();
    let yaml = "
replacements:
  host: [{from: 'app\\.localhost', to: '{{AGENTBOX_BOX_HOST}}:80', regex: true}]
carry:
  - ~/notes
  - {src: ~/tool, dest: /opt/tools/, user: 0, mode: 0750}
  - {src: ~/app.env, dest: /workspace/.env.local, replaceEnvs: true, rules: [host]}
  - {src: ~/data, dest: ~/deep/er/data}
  - {src: ~/not-there, optional: true}
  - {src: ./README.md, dest: ~/about.md}
";
    configure(&world, yaml);
    let args = ["create", "-n", "luggage", "--json"];
    let (code, out, said) = run(&world, &args, &[("AGENTBOX_CARRY_YES", "1")]);
    assert_eq!(code, Some(0), "{said}");
    let made: serde_json::Value = serde_json::from_str(&out).unwrap();
    let carried = made["box"]["carried"].as_array().unwrap();
    assert_eq!(carried.len(), 5, "{carried:?}");
    assert_eq!(carried[0]["src"], home.join("notes").display().to_string());
    assert_eq!((&carried[0]["bytes"], &carried[0]["by"]), (&5.into(), &"env".into()));
    let stat = |path: &str| world.box_ok("luggage", &format!("stat -c '%a %U %G' {path}"));
    assert_eq!(stat("~/notes"), "640 vscode vscode");
    assert_eq!(stat("/opt/tools/tool"), "750 root root");
    assert_eq!(stat("/opt/tools"), "755 root root");
    assert_eq!(stat(".env.local"), "600 vscode vscode");
    assert_eq!(stat("~/deep ~/deep/er/data ~/deep/er/data/sub | sort -u"), "755 vscode vscode");
    assert_eq!(
        world.box_ok("luggage", "cat .env.local"),
        "HOST=luggage.localhost {{HOME}}\nURL=luggage.localhost:80"
    );
    assert_eq!(
        world.box_ok("luggage", "cd ~/deep/er/data; find . | sort | tr '\\n' ' '; cat near"),
        ". ./a ./near ./sub ./sub/b b"
    );
    assert_eq!(world.box_ok("luggage", "cat ~/about.md"), "# Shop");
    // PID 1 lets nothing run before it has its token; that came last.
    let order = "test ! ~/notes -nt /run/agentbox/token && echo first";
    assert_eq!(world.box_ok("luggage", order), "first");
    assert!(world.audit_kinds("luggage").contains(&"carried".to_owned()));
    let details = world.ok(&["inspect", "luggage"]);
    assert!(details.contains("/workspace/.env.local"), "{details}");
    assert!(!details.contains("luggage.localhost:80"), "contents are not kept");
}

#[test]
fn carry_what_may_not_be_copied_is_refused_all_at_once() {
    let world = World::over("auto", "box: {cpMaxBytes: 1000}\n");
    let home = user_home(&world);
    write(home.join("large"), &"x".repeat(1001), 0o644);
    write(home.join("notes"), "x", 0o644);
    configure(
        &world,
        "carry: ['./../../etc/x=/x', '~/notes=//proc/1', '~/notes=/etc//shadow', {src: ~/large, dest: ~/../x}]\n",
    );
    let (code, _, said) = run(&world, &["create", "-n", "no", "--carry-yes"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("carry: refused"), "{said}");
    for one in ["./../../etc/x → /x", "//proc/1", "/etc//shadow", "~/../x"] {
        assert!(said.contains(one), "no {one} in {said}");
    }
    assert!(!is_on_engine("no"));
    configure(&world, "carry: [~/large, ~/missing, {src: ~/notes, rules: [ghost]}]\n");
    let (code, _, said) = run(&world, &["create", "-n", "no", "--carry-yes"], &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no replacement set ghost"), "{said}");
    configure(&world, "carry: [~/large, ~/missing]\n");
    let (_, _, said) = run(&world, &["create", "-n", "no", "--carry-yes"], &[]);
    assert!(said.contains("box.cpMaxBytes") && said.contains("optional: true"), "{said}");
}

#[test]
fn carry_a_link_planted_in_the_project_is_shown_with_its_end() {
    let world = World::headless();
    let home = user_home(&world);
    write(home.join(".ssh/id_ed25519"), "PRIVATE\n", 0o600);
    write(home.join("notes"), "mine\n", 0o644);
    symlink(home.join(".ssh/id_ed25519"), world.project().join("logo.svg")).unwrap();
    configure(&world, "carry: [./logo.svg=/workspace/logo, ~/notes]\n");
    let start = || {
        let mut command = world.agentbox_command(&["create", "-n", "planted", "-y"]);
        command.env("TERM", "xterm");
        Terminal::start(command)
    };
    // Enter alone takes no file.
    let mut terminal = start();
    terminal.shows("Copy them?");
    let shown = terminal.text();
    assert!(
        shown.contains("a link that leads out of the project, to ~/.ssh/id_ed25519"),
        "{shown}"
    );
    assert!(shown.contains("looks like a credential"), "{shown}");
    terminal.keys("q\r");
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("no box was made"), "{said}");
    assert_eq!(boxes(&world), 0);

    // A list that changes after it was shown is not the one that was agreed to.
    let mut terminal = start();
    terminal.shows("Copy them?");
    configure(&world, "carry: [./logo.svg=/workspace/logo, ~/.ssh]\n");
    terminal.keys("c\r");
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("changed after they were shown"), "{said}");
    assert_eq!(boxes(&world), 0);

    let mut terminal = start();
    terminal.shows("Copy them?");
    terminal.keys("\r");
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!world.in_box("planted", "test -e logo -o -e ~/.ssh/id_ed25519").status.success());
    world.ok(&["destroy", "planted", "--yes"]);

    configure(&world, "carry: [~/notes]\n");
    let mut terminal = start();
    terminal.shows("Copy them?");
    terminal.keys("c\r");
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(world.box_ok("planted", "cat ~/notes"), "mine");
}

#[test]
fn carry_without_a_terminal_whoever_watches_is_asked() {
    let world = World::headless();
    write(user_home(&world).join("notes"), "mine\n", 0o640);
    configure(&world, "carry: [~/notes]\n");
    let watching = Running::start(world.agentbox_command(&["approvals", "--watch"]));
    let create = || Running::start(world.agentbox_command(&["create", "-n", "asked"]));
    // The one who watches may come a moment later than the first question.
    let mut making = create();
    let question = eventually(SLOW, "the question", || {
        let found = world.questions().into_iter().find(|q| q["boxName"] == "asked");
        if found.is_none() && making.has_ended() {
            making = create();
        }
        found
    });
    assert_eq!(question["title"], "Copy ~/notes into the new box asked");
    let line = &question["evidence"]["files"][0];
    assert_eq!(line["path"], "~/notes → /home/vscode/notes, 0640");
    assert_eq!(boxes(&world), 0);
    let answer = |with: &str, question: &serde_json::Value| {
        let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
        world.ok(&[with, id, "--digest", digest]);
    };
    answer("deny", &question);
    let denied = making.end();
    assert_eq!(denied.code, Some(1), "{}", denied.err);
    assert!(denied.err.contains("no box was made"), "{}", denied.err);
    assert_eq!(boxes(&world), 0);

    let making = create();
    let question = world.question_of("asked");
    let answers = &question["answers"];
    assert_eq!(
        (&answers["yes"], &answers["without"], &answers["no"]),
        (&"Copy".into(), &"Without these files".into(), &"Cancel".into())
    );
    let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
    // It lets the box be made, so somebody must have read what they leave out.
    let (code, _, said) = run(&world, &["approve", id, "--without"], &[]);
    assert_eq!((code, said.contains("--digest")), (Some(2), true), "{said}");
    let (code, ..) = run(&world, &["approve", id, "--digest", "0", "--without"], &[]);
    assert_eq!(code, Some(1));
    assert_eq!(boxes(&world), 0);
    world.ok(&["approve", id, "--digest", digest, "--without"]);
    let made = making.end_within(SLOW);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(made.err.contains("1 entry of carry was not copied"), "{}", made.err);
    assert_eq!(world.box_ok("asked", "ls ~/notes 2>/dev/null || echo none"), "none");
    let trail = world.json(&["audit", "asked"])["records"].to_string();
    assert!(trail.contains("goes on without these files (cli)"), "{trail}");
    assert_eq!(world.json(&["grants"])["grants"].as_array().unwrap().len(), 0);
    world.ok(&["destroy", "-y", "asked"]);

    let making = create();
    answer("approve", &world.question_of("asked"));
    let made = making.end_within(SLOW);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert_eq!(world.box_ok("asked", "cat ~/notes"), "mine");
    watching.kill();
}

#[test]
fn yaml_13_53_what_changed_is_rendered_and_copied_again_and_nothing_else_is() {
    let world = World::headless();
    let home = user_home(&world);
    let template = |word: &str| {
        write(home.join("app.env"), &format!("{word}={{{{AGENTBOX_BOX_NAME}}}}\n"), 0o600);
    };
    template("first");
    write(home.join("notes"), "mine\n", 0o644);
    write(home.join(".ssh/id_ed25519"), "PRIVATE\n", 0o600);
    let yaml =
        "carry: [{src: ~/app.env, dest: ~/app.env, replaceEnvs: true}, '~/notes=/opt/notes']\n";
    configure(&world, yaml);
    let made = run(&world, &["create", "-n", "crb"], &[("AGENTBOX_CARRY_YES", "1")]);
    assert_eq!(made.0, Some(0), "{}", made.2);
    stand_in(&world, "crb", "claude");
    let show = |script: &str| world.box_ok("crb", script);
    assert_eq!(show("cat ~/app.env"), "first=crb");
    let carried = || {
        let records = world.json(&["audit", "crb"])["records"].as_array().unwrap().clone();
        records.into_iter().filter(|r| r["kind"] == "carried").collect::<Vec<_>>()
    };
    // As the box has it, so long as nothing changed here.
    show("echo own > ~/app.env; sudo sh -c 'echo own > /opt/notes'");
    let said = down_and_up(&world, "crb", || (), &[]);
    assert!(!said.contains("carried"), "{said}");
    assert_eq!(show("cat ~/app.env /opt/notes"), "own\nown");
    assert_eq!(carried().len(), 1);

    let said = down_and_up(&world, "crb", || template("second"), &[]);
    assert!(said.contains("1 carried entry"), "{said}");
    assert_eq!(show("cat ~/app.env /opt/notes; stat -c %a ~/app.env"), "second=crb\nown\n600");
    let records = carried();
    assert_eq!(records.len(), 2);
    let files = records.last().unwrap()["data"]["files"].as_array().unwrap().clone();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0]["src"], home.join("app.env").display().to_string());
    let said = down_and_up(&world, "crb", || (), &[]);
    assert!(!said.contains("carried"), "{said}");

    // Whatever the list says by now: a key of the person's goes nowhere without a question.
    let meanwhile = || {
        let yaml = "carry: ['~/.ssh/id_ed25519=~/app.env', '~/.ssh=~/new', '~/notes=/opt/notes']\n";
        configure(&world, yaml);
        write(home.join("notes"), "newer\n", 0o644);
    };
    let said = down_and_up(&world, "crb", meanwhile, &[]);
    assert!(said.contains("carry has 2 entries that were not agreed to"), "{said}");
    assert!(said.contains("1 carried entry"), "{said}");
    assert_eq!(show("cat ~/app.env /opt/notes; ls ~/new 2>&1 | wc -l"), "second=crb\nnewer\n1");
    let planted = || {
        fs::remove_file(home.join("notes")).unwrap();
        symlink(home.join(".ssh/id_ed25519"), home.join("notes")).unwrap();
        configure(&world, yaml);
    };
    let said = down_and_up(&world, "crb", planted, &[]);
    assert!(said.contains("not agreed to") && !said.contains("carried entry"), "{said}");
    // A list that cannot be read holds nobody up.
    let said = down_and_up(&world, "crb", || configure(&world, "carry: ['/a=/proc/1']\n"), &[]);
    assert!(said.contains("nothing can be copied to /proc"), "{said}");
    assert_eq!(show("grep -rl PRIVATE ~ /opt 2>/dev/null | wc -l"), "0");
}
