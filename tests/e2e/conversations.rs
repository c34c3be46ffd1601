//! Conversations that move: from the person's computer into a box, and over a box's stop.
//!
//! The real agents are asked for what they show. Where it matters only what an agent is told, a program
//! of its name stands in its place.

use crate::agents::{ANTHROPIC, AT_LAST, OPENAI, serve};
use crate::image::full;
use crate::sessions::{pane_shows, stand_in, terminal};
use crate::world::{World, text};
use agentbox_e2e::wait::eventually_or;
use std::path::PathBuf;

const ID: &str = "0f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a11";
const OTHER: &str = "1f3c1a52-7b1e-4c55-9d0e-2f6f1f0e8a22";

fn write(world: &World, name: &str, text: &str) {
    let path = world.dir().join("home").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Where Claude keeps the conversations of the project.
pub fn claudes(world: &World, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let folder: String = world.project().to_str().unwrap().chars().map(plain).collect();
    format!(".claude/projects/{folder}/{id}.jsonl")
}

pub fn line(world: &World, words: &str) -> String {
    let cwd = world.project().display().to_string();
    format!("{{\"type\":\"user\",\"cwd\":\"{cwd}\",\"message\":{{\"content\":\"{words}\"}}}}\n")
}

#[track_caller]
fn refused(world: &World, args: &[&str], says: &[&str]) {
    let output = world.agentbox(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    for word in says {
        assert!(said.contains(word), "{args:?}: {said}");
    }
}

#[test]
fn a_conversation_that_is_not_there_costs_nothing() {
    let mut world = World::headless();
    refused(&world, &["claude", "-c", "-n", "cnone", "-d"], &["no conversation", "hint:"]);
    refused(&world, &["codex", "--resume", ID, "-n", "cnone"], &["no conversation", ID]);
    refused(&world, &["opencode", "-c", "-n", "cnone"], &["OpenCode", "cannot be moved"]);
    refused(&world, &["claude", "--plan", "/no/such", "-n", "cnone"], &["/no/such"]);
    for args in [["-c", "--resume", "x"], ["-c", "--plan", "x"]] {
        refused(&world, &[&["claude"], &args[..]].concat(), &["cannot be used with"]);
    }
    write(&world, &claudes(&world, ID), &line(&world, "one"));
    write(&world, &claudes(&world, OTHER), &line(&world, "two"));
    refused(&world, &["fork"], &["several", ID, OTHER, "two"]);
    refused(&world, &["claude", "--resume", "2f", "-n", "cnone"], &["no conversation"]);
    refused(&world, &["fork", "--plan", "/no/such", "--session", ID], &["/no/such"]);
    let elsewhere = line(&world, "x").replace("/shop", "/other");
    write(&world, &claudes(&world, OTHER), &elsewhere);
    refused(&world, &["claude", "--resume", OTHER, "-n", "cnone"], &["/other", "held in"]);
    world.set("AGENTBOX", "1");
    refused(&world, &["fork"], &["this is a box"]);
    assert!(world.json(&["list"])["boxes"].as_array().unwrap().is_empty());
}

#[test]
fn a_conversation_is_rewritten_for_the_box_and_kept_when_it_went_on_there() {
    let world = World::headless();
    let cwd = world.project().display().to_string();
    let words = format!("see {cwd}/x");
    write(&world, &claudes(&world, ID), &format!("{}broken {cwd}\n", line(&world, &words)));
    world.create("cmove");
    stand_in(&world, "cmove", "claude");
    world.ok(&["claude", "start", "cmove", "-d", "-c", "--", "--model", "opus"]);
    let told = format!("--dangerously-skip-permissions|--resume|{ID}|--model|opus|");
    pane_shows(&world, "cmove", "claude", &told);
    let file = format!("~/.claude/projects/-workspace/{ID}.jsonl");
    let moved = world.box_ok("cmove", &format!("cat {file}; stat -c '%U %a' {file}"));
    let wanted =
        line(&world, &words).replacen(&format!("\"cwd\":\"{cwd}\""), "\"cwd\":\"/workspace\"", 1);
    assert_eq!(moved, format!("{wanted}broken {cwd}\nvscode 600"));

    // Under a session that goes on nothing is moved.
    let live = world.agentbox(&["claude", "start", "cmove", "-d", "-c"]);
    assert_eq!(live.status.code(), Some(1), "{}", text(&live.stderr));
    world.ok(&["claude", "stop", "cmove"]);

    world.box_ok("cmove", &format!("echo went-on >> {file}"));
    world.ok(&["claude", "start", "cmove", "-d", "--resume", "0f3c"]);
    assert!(world.box_ok("cmove", &format!("tail -1 {file}")).contains("went-on"));
    world.ok(&["claude", "stop", "cmove"]);
    write(&world, &claudes(&world, ID), &format!("{}{{}}\n", line(&world, "new")));
    world.ok(&["claude", "start", "cmove", "-d", "-c"]);
    assert!(!world.box_ok("cmove", &format!("cat {file}")).contains("went-on"));
    assert!(world.box_ok("cmove", &format!("cat {file}.before-1")).contains("went-on"));
    world.ok(&["claude", "stop", "cmove"]);

    std::fs::write(world.project().join("plan.md"), "1. Mend it.\n").unwrap();
    world.ok(&["claude", "start", "cmove", "-d", "--plan", "plan.md"]);
    pane_shows(
        &world,
        "cmove",
        "claude",
        "claude|--permission-mode|plan|The plan for this work is in",
    );
    assert_eq!(world.box_ok("cmove", "cat ~/.claude/plans/agentbox.md"), "1. Mend it.");
    let left = world.box_ok("cmove", "ls ~/.local/state/agentbox | grep incoming; true");
    assert_eq!(left, "");
}

#[test]
fn agents_that_ran_go_on_after_a_stop() {
    let world = World::headless();
    world.create("cback");
    for agent in ["claude", "codex"] {
        stand_in(&world, "cback", agent);
        world.ok(&[agent, "start", "cback", "-d"]);
        pane_shows(&world, "cback", agent, "up");
    }
    world.ok(&["claude", "start", "cback", "-d", "--session-name", "second"]);
    pane_shows(&world, "cback", "second", "up");
    // What their hooks say, and what makes it a conversation.
    let hook = |agent: &str, session: &str, id: &str| {
        world.box_ok(
            "cback",
            &format!(
                "echo '{{\"session_id\": \"{id}\", \"cwd\": \"/workspace\"}}' | \
                 AGENTBOX_SESSION={session} agentbox-ctl agent-state {agent} working --hook"
            ),
        );
    };
    hook("claude", "claude", ID);
    hook("codex", "codex", OTHER);
    hook("claude", "second", "--yolo");
    world.box_ok(
        "cback",
        &format!(
            "d=~/.claude/projects/-workspace; mkdir -p $d; touch $d/{ID}.jsonl; \
             d=~/.codex/sessions/2026/01/02; mkdir -p $d; touch $d/rollout-x-{OTHER}.jsonl"
        ),
    );
    assert_eq!(world.box_ok("cback", "cat ~/.local/state/agentbox/claude-session"), ID);

    world.ok(&["stop", "cback"]);
    world.ok(&["start", "cback", "--no-agents"]);
    let sessions =
        || world.box_ok("cback", "tmux ls -F '#{session_name}' 2>/dev/null | sort | xargs");
    assert_eq!(sessions(), "");
    world.ok(&["stop", "cback"]);
    let started = world.agentbox(&["start", "cback"]);
    let said = text(&started.stderr);
    assert!(said.contains("Claude goes on in the session claude"), "{said}");
    assert_eq!(sessions(), "claude codex second");
    let go_on = || {
        pane_shows(&world, "cback", "claude", &format!("--resume|{ID}|"));
        pane_shows(&world, "cback", "codex", &format!("|resume|{OTHER}|"));
    };
    go_on();
    // Again, though no hook of theirs has said a word since.
    world.ok(&["stop", "cback"]);
    world.ok(&["start", "cback"]);
    go_on();
    pane_shows(&world, "cback", "second", "claude|--dangerously-skip-permissions|up");

    // One that was ended, or has ended, stays so.
    world.ok(&["claude", "stop", "cback"]);
    world.box_ok("cback", "tmux send-keys -t =second: 'end0' Enter");
    eventually_or(AT_LAST, "the second ending", || match sessions() {
        left if left == "codex" => Ok(()),
        other => Err(other),
    });
    // A box that is killed leaves its notes as well.
    let output = world.command("docker").args(["kill", "agentbox-cback"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    eventually_or(AT_LAST, "the box being down", || {
        let state = world.json(&["list"])["boxes"][0]["state"].clone();
        if state == "stopped" { Ok(()) } else { Err(state) }
    });
    world.ok(&["start", "cback"]);
    assert_eq!(sessions(), "codex");
}

#[test]
fn a_box_comes_by_no_login_by_saying_that_an_agent_ran() {
    let mut world = World::headless();
    world.create("clie");
    stand_in(&world, "clie", "codex");
    world.box_ok("clie", "d=~/.local/state/agentbox/running; mkdir -p $d; echo codex > $d/codex");
    world.set("OPENAI_API_KEY", "sk-secret");
    world.ok(&["stop", "clie"]);
    world.ok(&["start", "clie"]);
    pane_shows(&world, "clie", "codex", "up");
    let shown = world.box_ok("clie", "tmux capture-pane -pJ -t =codex:");
    assert!(!shown.contains("sk-secret"), "{shown}");
    // Once a person has given it, it comes again.
    world.ok(&["codex", "stop", "clie"]);
    world.ok(&["codex", "start", "clie", "-d"]);
    pane_shows(&world, "clie", "codex", "sk-secret");
    world.ok(&["stop", "clie"]);
    world.ok(&["start", "clie"]);
    pane_shows(&world, "clie", "codex", "sk-secret");
}

/// What an agent's session shows, at last.
#[track_caller]
fn shows(world: &World, name: &str, agent: &str, words: &[&str]) {
    eventually_or(AT_LAST, &format!("{agent} showing {words:?}"), || {
        let shown = world.box_ok(name, &format!("tmux capture-pane -pJ -t ={agent}:"));
        if words.iter().all(|word| shown.contains(word)) { Ok(()) } else { Err(shown) }
    });
}

/// Puts a conversation of a box where the agent would have it, had it been held on this computer.
/// Agents write down what they show a little later.
fn take_home(
    world: &World,
    name: &str,
    (found, words): (&str, &[&str]),
    to: impl Fn(&str) -> String,
) -> String {
    let (path, written) = eventually_or(AT_LAST, "the conversation written down", || {
        let output = world.in_box(name, &format!("file=$({found}) && echo $file && cat $file"));
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        match out.split_once('\n') {
            Some((path, kept)) if words.iter().all(|word| kept.contains(word)) => {
                Ok((path.to_owned(), kept.to_owned()))
            }
            _ => Err(format!("{out}{err}")),
        }
    });
    let file = PathBuf::from(&path);
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let id = stem[stem.len() - ID.len()..].to_owned();
    let own = format!("\"{}\"", world.project().display());
    write(world, &to(&path), &(written.replace("\"/workspace\"", &own) + "\n"));
    id
}

/// Which conversation an agent is at, as its hook tells when it comes to that.
#[track_caller]
fn is_at(world: &World, name: &str, pointer: &str, id: &str) {
    eventually_or(AT_LAST, &format!("{pointer} being {id}"), || {
        let output = world.in_box(name, &format!("cat ~/.local/state/agentbox/{pointer}"));
        let noted = text(&output.stdout);
        if noted.trim_end() == id { Ok(()) } else { Err(noted) }
    });
}

#[test]
fn claude_goes_on_in_a_box_with_what_was_said_here() {
    let mut world = full("");
    world.create("cla");
    serve(&world, "cla", ANTHROPIC);
    world.set("ANTHROPIC_API_KEY", "sk-ant-a-key-that-is-longer-than-twenty");
    world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9999");
    world.ok(&["claude", "start", "cla", "-d", "--", "Remember the word zebra"]);
    let talk = ["Remember the word zebra", "All done here."];
    shows(&world, "cla", "claude", &talk);
    let find = "ls ~/.claude/projects/-workspace/*.jsonl";
    let id = take_home(&world, "cla", (find, &talk), |path| {
        let name = PathBuf::from(path);
        claudes(&world, name.file_stem().unwrap().to_str().unwrap())
    });

    // Over a stop, by its own hooks.
    is_at(&world, "cla", "claude-session", &id);
    world.ok(&["stop", "cla"]);
    world.ok(&["start", "cla"]);
    shows(&world, "cla", "claude", &talk);
    world.ok(&["stop", "cla"]);
    world.ok(&["start", "cla", "--no-agents"]);
    let mut attached = terminal(&world, &["claude", "attach", "cla"]);
    attached.shows("zebra");
    attached.keys("\u{1}d");
    let (status, text) = attached.end();
    assert!(status.success(), "{text}");

    // Into a box of its own.
    world.ok(&["claude", "-n", "clb", "-d", "-c"]);
    shows(&world, "clb", "claude", &talk);
    let forked = world.json(&["fork", "-d"]);
    let name = forked["box"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("fork-") && name.len() == 11, "{name}");
    shows(&world, &name, "claude", &talk);
}

#[test]
fn codex_goes_on_in_a_box_with_what_was_said_here() {
    let mut world = full("");
    write(
        &world,
        ".codex/config.toml",
        "model_provider = \"t\"\n[model_providers.t]\nname = \"t\"\n\
         base_url = \"http://127.0.0.1:9999/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n",
    );
    world.set("OPENAI_API_KEY", "sk-x");
    world.create("cxa");
    serve(&world, "cxa", OPENAI);
    world.ok(&["codex", "start", "cxa", "-d", "--", "Remember the word zebra"]);
    let talk = ["Remember the word zebra", "All done here."];
    shows(&world, "cxa", "codex", &talk);
    let find = "ls ~/.codex/sessions/*/*/*/*.jsonl";
    let id = take_home(&world, "cxa", (find, &talk), |path| {
        path.strip_prefix("/home/vscode/").unwrap().to_owned()
    });

    is_at(&world, "cxa", "codex-active", &id);
    world.ok(&["stop", "cxa"]);
    world.ok(&["start", "cxa"]);
    shows(&world, "cxa", "codex", &talk);

    world.ok(&["codex", "-n", "cxb", "-d", "--resume", &id[..8]]);
    shows(&world, "cxb", "codex", &talk);
    // Into a box where Codex has been.
    world.ok(&["codex", "stop", "cxa"]);
    world.box_ok("cxa", "rm -r ~/.codex/sessions");
    world.ok(&["codex", "start", "cxa", "-d", "-c"]);
    shows(&world, "cxa", "codex", &talk);
}

/// Starts the stand-in for Claude after the box was down; what was said meanwhile.
#[track_caller]
pub fn down_and_up(world: &World, name: &str, meanwhile: impl FnOnce(), args: &[&str]) -> String {
    world.ok(&["stop", name]);
    meanwhile();
    let output = world.agentbox(&[&["claude", "start", name, "-d"], args].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}{}", world.host_log());
    said
}

fn put(world: &World, name: &str, words: &str) {
    std::fs::write(world.project().join(name), words).unwrap();
}

#[test]
fn a_box_that_was_down_takes_over_what_is_new_and_wins() {
    let world = World::headless();
    let git = |args: &[&str]| world.git(&world.project(), args);
    put(&world, "both", "1\n2\n3\n4\n5\n");
    put(&world, "clash", "old\n");
    git(&["add", "."]);
    git(&["commit", "-qm", "Second"]);
    put(&world, "loose", "known\n");
    world.create("crs");
    stand_in(&world, "crs", "claude");
    world.box_ok(
        "crs",
        "sed -i s/5/box/ both; echo box > clash; git commit -qam Box; echo staged > staged; \
         git add staged; sed -i s/box/work/ both; echo mine > theirs; echo mine > note",
    );
    let said = down_and_up(
        &world,
        "crs",
        || {
            put(&world, "both", "host\n2\n3\n4\n5\n");
            put(&world, "clash", "host\n");
            put(&world, "theirs", "host\n");
            put(&world, "fresh", "host\n");
            git(&["add", "both", "clash", "theirs", "fresh"]);
            git(&["commit", "-qm", "Host"]);
            put(&world, "fresh", "not committed\n");
            put(&world, "note", "host\n");
        },
        &[],
    );
    for words in ["1 commit", "clash", "theirs", "note", "stay as the box has them"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The agent hears of it.
    pane_shows(&world, "crs", "claude", "These files were changed on both sides");
    let show = |script: &str| world.box_ok("crs", script);
    assert_eq!(
        show("cat both | xargs; cat clash theirs note fresh"),
        "host 2 3 4 work\nbox\nmine\nmine\nnot committed"
    );
    assert_eq!(show("git show HEAD:both | xargs; git show HEAD:clash"), "host 2 3 4 box\nbox");
    assert_eq!(show("git log -1 --format='%an %s'"), "agentbox Merge what is new on the host");
    let host = git(&["rev-parse", "main"]);
    assert_eq!(show("git rev-parse HEAD^2"), host);
    assert_eq!(
        show("git status --porcelain"),
        " M both\n M fresh\nA  staged\n M theirs\n?? loose\n?? note"
    );
    assert_eq!(show("git fsck --connectivity-only 2>&1 | grep -v dangling; true"), "");

    // Under a session nothing is done, and twice the same is no news.
    put(&world, "fresh", "changed again\n");
    let live = world.agentbox(&["claude", "start", "crs", "-d"]);
    assert!(live.status.success());
    assert_eq!(show("cat fresh"), "not committed");
    let said = down_and_up(&world, "crs", || (), &[]);
    assert!(said.contains("1 uncommitted file"), "{said}");
    assert_eq!(show("cat fresh"), "changed again");
    let said = down_and_up(&world, "crs", || put(&world, "fresh", "and again\n"), &["--no-resync"]);
    assert!(!said.contains("took over"), "{said}");
    assert_eq!(show("cat fresh"), "changed again");

    // What the host's clean-up would take, the box still has.
    git(&["reflog", "expire", "--expire=now", "--all"]);
    git(&["gc", "-q", "--prune=now"]);
    assert_eq!(show("git fsck --connectivity-only 2>&1 | grep -v dangling; true"), "");
}

#[test]
fn a_box_with_nothing_of_its_own_follows_the_host() {
    let world = World::headless();
    world.create("cff");
    stand_in(&world, "cff", "claude");
    let git = |args: &[&str]| world.git(&world.project(), args);
    world.ok(&["claude", "start", "cff", "-d"]);
    pane_shows(&world, "cff", "claude", "up");
    world.ok(&["stop", "cff"]);
    put(&world, "README.md", "# Shop, mended\n");
    git(&["commit", "-qam", "Mended"]);
    let started = world.agentbox(&["start", "cff"]);
    let said = text(&started.stderr);
    assert!(said.contains("took over 1 commit") && said.contains("Claude goes on"), "{said}");
    assert_eq!(world.box_ok("cff", "git rev-parse HEAD"), git(&["rev-parse", "main"]));
    assert_eq!(world.box_ok("cff", "git status --porcelain; cat README.md"), "# Shop, mended");
    // What the person does on another branch is nothing to it.
    let end = |world: &World| world.ok(&["claude", "stop", "cff"]);
    end(&world);
    let at = git(&["rev-parse", "main"]);
    let meanwhile = || {
        git(&["checkout", "-qb", "aside"]);
        put(&world, "README.md", "# Aside\n");
        git(&["commit", "-qam", "Aside"]);
        put(&world, "README.md", "# Further aside\n");
    };
    let said = down_and_up(&world, "cff", meanwhile, &[]);
    assert!(!said.contains("took over"), "{said}");
    assert_eq!(world.box_ok("cff", "git rev-parse HEAD; git status --porcelain"), at);
    git(&["checkout", "-qf", "main"]);
    // Its branch has nothing that could be lost.
    world.ok(&["destroy", "cff", "-y"]);
    assert_eq!(git(&["branch", "--list", "agentbox/*"]), "");

    // In the middle of something it is left alone, and so is another branch.
    world.create("cmid");
    stand_in(&world, "cmid", "claude");
    world.box_ok("cmid", "git checkout -qb elsewhere");
    let said = down_and_up(&world, "cmid", || put(&world, "README.md", "# Other\n"), &[]);
    assert!(said.contains("not on its branch"), "{said}");
    assert_eq!(world.box_ok("cmid", "cat README.md"), "# Shop, mended");
}
