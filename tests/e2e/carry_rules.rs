//! A yes to a list of files that is remembered: for that list, in that project, until it is removed.

use crate::carry::{boxes, configure, run, user_home, write};
use crate::conversations::{claudes, line};
use crate::queue::{becomes, submit};
use crate::world::{Running, World, text};
use agentbox_e2e::pty::Terminal;
use agentbox_e2e::wait::eventually;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

const SLOW: Duration = Duration::from_secs(120);
const NOBODY: &str = "nobody is here to ask";

fn rules(world: &World) -> Vec<Value> {
    world.json(&["grants"])["grants"].as_array().unwrap().clone()
}

/// Nobody watches and there is no terminal: what has to be asked makes no box.
#[track_caller]
fn asks(world: &World, flags: &[&str], why: &str) {
    let before = boxes(world);
    let (code, _, said) = run(world, &[&["create", "-n", "cr-asks"], flags].concat(), &[]);
    assert_eq!(code, Some(1), "{why}: {said}");
    assert!(said.contains(NOBODY), "{why}: {said}");
    assert_eq!(boxes(world), before, "{why}");
}

fn at_terminal(world: &World, args: &[&str]) -> Terminal {
    let mut command = world.agentbox_command(args);
    command.env("TERM", "xterm");
    Terminal::start(command)
}

#[test]
fn carry_a_remembered_list_is_asked_about_again_when_it_says_something_else() {
    let world = World::headless();
    let home = user_home(&world);
    write(home.join("notes"), "mine\n", 0o640);
    write(home.join("plain"), "plain\n", 0o644);
    write(home.join(".ssh/id_ed25519"), "PRIVATE\n", 0o600);
    symlink("plain", home.join("link")).unwrap();
    let list = "carry: [~/notes, '~/link=/opt/link']\n";
    configure(&world, list);
    asks(&world, &[], "no rule yet");

    let mut terminal = at_terminal(&world, &["create", "-n", "cr-first"]);
    terminal.shows("Copy them?");
    assert!(!terminal.text().contains("Since the list"), "{}", terminal.text());
    terminal.keys("a\r");
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(world.box_ok("cr-first", "cat ~/notes /opt/link"), "mine\nplain");
    assert!(world.audit_kinds("cr-first").contains(&"rule-made".to_owned()));
    let made = rules(&world);
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!((&made[0]["reach"], &made[0]["method"]), (&"project".into(), &"carry".into()));
    assert_eq!(
        made[0]["sentence"],
        "Let every box of shop start with copies of just ~/notes, ~/link"
    );
    assert!(world.ok(&["grants"]).contains("until you remove it"));

    // What the files hold is not what the list says.
    write(home.join("notes"), "mine, and more of it\n", 0o640);
    let (code, out, said) = run(&world, &["create", "-n", "cr-next", "--json"], &[]);
    assert_eq!(code, Some(0), "{said}");
    let next: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(next["box"]["carried"][0]["by"], "rule", "{next}");
    assert_eq!(world.box_ok("cr-next", "cat ~/notes"), "mine, and more of it");
    assert!(world.audit_kinds("cr-next").contains(&"allowed-by-rule".to_owned()));
    world.ok(&["destroy", "-y", "cr-next"]);
    let terminal = at_terminal(&world, &["create", "-n", "cr-next"]);
    let (status, said) = terminal.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("by a rule") && said.contains("agentbox grants"), "{said}");
    assert!(!said.contains("Copy them?"), "{said}");
    assert_eq!(world.box_ok("cr-next", "cat /opt/link"), "plain");

    asks(&world, &["--carry", "ask"], "a person wants to be asked");
    let mut terminal = at_terminal(&world, &["create", "-n", "cr-asks", "--carry", "ask"]);
    terminal.shows("Copy them?");
    terminal.keys("q\r");
    terminal.end();
    for (other, why) in [
        ("carry: [~/notes, '~/link=/opt/other']\n", "another place"),
        ("carry: [{src: ~/notes, mode: 0666}, '~/link=/opt/link']\n", "another mode"),
        ("carry: [~/notes, '~/link=/opt/link', ~/.ssh/id_ed25519]\n", "one more"),
        ("carry: [~/notes]\n", "one less"),
    ] {
        configure(&world, other);
        asks(&world, &[], why);
    }
    configure(&world, "carry: [~/notes, '~/plain=/opt/link', ~/.ssh]\n");
    let mut terminal = at_terminal(&world, &["create", "-n", "cr-asks"]);
    terminal.shows("Copy them?");
    let shown = terminal.text();
    assert!(shown.contains("1 new, 1 changed, 1 as it was"), "{shown}");
    let row = |src: &str| shown.lines().find(|row| row.contains(src)).unwrap().to_owned();
    assert!(row("~/plain").contains("changed"), "{shown}");
    assert!(row("~/.ssh").contains("new"), "{shown}");
    assert!(!row("~/notes").contains("new"), "{shown}");
    terminal.keys("q\r");
    terminal.end();

    configure(&world, list);
    fs::remove_file(home.join("link")).unwrap();
    symlink(".ssh/id_ed25519", home.join("link")).unwrap();
    asks(&world, &[], "a link that leads elsewhere");
    fs::remove_file(home.join("link")).unwrap();
    symlink("plain", home.join("link")).unwrap();

    let other = world.dir().join("other");
    let (from, to) = (world.project(), other.clone());
    world.git(world.dir(), &["clone", "-q", from.to_str().unwrap(), to.to_str().unwrap()]);
    write(other.join("agentbox.yaml"), list, 0o644);
    asks(&world, &[other.to_str().unwrap()], "another project with the same list");

    world.ok(&["grants", "rm", &made[0]["id"].as_str().unwrap()[..8]]);
    asks(&world, &[], "the rule is gone");
}

#[test]
fn carry_a_rule_made_at_a_question_is_the_projects_and_holds_for_jobs_and_forks() {
    let world = World::headless();
    let home = user_home(&world);
    write(home.join("notes"), "mine\n", 0o640);
    configure(&world, "carry: [~/notes]\n");
    let watching = Running::start(world.agentbox_command(&["approvals", "--watch"]));
    let create = || Running::start(world.agentbox_command(&["create", "-n", "cr-asked"]));
    // The one who watches may come a moment later than the first question.
    let mut making = create();
    let question = eventually(SLOW, "the question", || {
        let found = world.questions().into_iter().find(|q| q["boxName"] == "cr-asked");
        if found.is_none() && making.has_ended() {
            making = create();
        }
        found
    });
    assert_eq!(question["remember"]["only"], "project");
    let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
    for reach in ["box", "everywhere"] {
        let args = ["approve", id, "--digest", digest, "--for", "1h", "--reach", reach];
        let (code, _, said) = run(&world, &args, &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("Let every box of shop start with copies of just ~/notes"), "{said}");
    }
    world.ok(&["approve", id, "--digest", digest, "--for", "1h"]);
    let made = making.end_within(SLOW);
    assert_eq!(made.code, Some(0), "{}", made.err);
    watching.kill();
    assert_eq!(rules(&world)[0]["reach"], "project");
    let allowed = |name: &str| {
        assert!(world.audit_kinds(name).contains(&"allowed-by-rule".to_owned()), "{name}");
        assert_eq!(world.box_ok(name, "cat ~/notes"), "mine");
    };

    // The smallest boxes have no Claude: they are made, with their files, and that is all.
    let job = submit(&world, &["-i", "fix the test", "-n", "cr-job"]);
    becomes(&world, &job, "failed", SLOW);
    allowed("cr-job");
    write(
        home.join(claudes(&world, "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11")),
        &line(&world, "one"),
        0o600,
    );
    world.agentbox(&["fork", "-d", "-n", "cr-fork"]);
    allowed("cr-fork");

    write(home.join(".netrc"), "secret\n", 0o600);
    configure(&world, "carry: [~/notes, ~/.netrc]\n");
    let before = boxes(&world);
    let job = submit(&world, &["-i", "fix the test", "-n", "cr-late"]);
    let ended = becomes(&world, &job, "failed", SLOW);
    assert!(ended["reason"].as_str().unwrap().contains(NOBODY), "{ended}");
    let forked = world.agentbox(&["fork", "-d", "-n", "cr-late"]);
    assert!(text(&forked.stderr).contains(NOBODY), "{}", text(&forked.stderr));
    assert_eq!(boxes(&world), before);
}
