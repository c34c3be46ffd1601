//! The menu around a session, and images that are pasted into it.

use crate::sessions::{pane_shows, stand_in, terminal};
use crate::world::{SOON, World};
use agentbox_e2e::pty::Terminal;
use agentbox_e2e::wait::{eventually, eventually_or};

const MENU: &str = "c code  s screen  u url  t shell  k destroy  d detach";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture\x00\x01\xff";

fn shell(world: &World, name: &str) -> Terminal {
    let shell = terminal(world, &["shell", name]);
    shell.shows("$");
    shell
}

/// How often the terminal was shown something.
fn count(of: &Terminal, text: &str) -> usize {
    of.text().matches(text).count()
}

#[track_caller]
fn shows_again(of: &Terminal, text: &str, before: usize) {
    eventually_or(SOON, &format!("{text} once more"), || {
        if count(of, text) > before { Ok(()) } else { Err(of.text()) }
    });
}

fn is_there(world: &World, name: &str) -> bool {
    world.json(&["list"])["boxes"].as_array().unwrap().iter().any(|b| b["name"] == name)
}

#[test]
fn ctrl_a_opens_a_menu_holds_the_output_and_leaves_the_session() {
    let world = World::headless();
    world.create("mnu");
    let mut shell = shell(&world, "mnu");
    shell.keys("echo be$((10+1))low\r");
    shell.shows("be11low");
    shell.keys("\u{1}");
    shell.shows(MENU);
    // The box goes on; its words wait until the menu is gone.
    let drawn = count(&shell, "be11low");
    world.box_ok("mnu", "tmux send-keys -t =shell: 'echo held-$((40+2))' Enter");
    pane_shows(&world, "mnu", "shell", "held-42");
    assert!(!shell.text().contains("held-42"));
    shell.keys("\u{1b}");
    shell.shows("held-42");
    shows_again(&shell, "be11low", drawn);
    // Twice is once for the program, in each form a terminal has for it; other keys are tmux's.
    shell.keys("cat -v\r");
    pane_shows(&world, "mnu", "shell", "cat -v");
    for (at, form) in ["\u{1}", "\u{1b}[97;5u", "\u{1b}[27;5;97~"].iter().enumerate() {
        let menus = count(&shell, MENU);
        shell.keys(form);
        shows_again(&shell, MENU, menus);
        shell.keys(form);
        shell.keys(&format!("-form{at}\r"));
        pane_shows(&world, "mnu", "shell", &format!("^A-form{at}"));
    }
    shell.keys("\u{1}[");
    let mode = || world.box_ok("mnu", "tmux display -p -t =shell: '#{pane_in_mode}'");
    eventually(SOON, "tmux's own key", || (mode() == "1").then_some(()));
    shell.keys("q");
    eventually(SOON, "its end", || (mode() == "0").then_some(()));
    // What is pasted opens nothing.
    let menus = count(&shell, MENU);
    shell.keys("\u{1b}[200~pa\u{1}sted\u{1b}[201~\r");
    pane_shows(&world, "mnu", "shell", "pa^Asted");
    assert_eq!(count(&shell, MENU), menus);
    shell.keys("\u{1}");
    shows_again(&shell, MENU, menus);
    shell.keys("d");
    let (status, text) = shell.end();
    assert!(status.success(), "{text}");
    assert!(text.contains("Session detached. Reattach with: agentbox shell attach 1"), "{text}");
}

#[test]
fn the_menu_opens_addresses_and_names_other_ways() {
    let (mut world, port) = crate::urls::world("");
    let log = world.dir().join("opened");
    world.host_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" >> {}\n", log.display()));
    let tmux = world.dir().join("tmux-words");
    world.create("mnurl");
    let mut first = shell(&world, "mnurl");
    first.keys("\u{1}u");
    eventually_or(SOON, "the address being opened", || {
        let opened = std::fs::read_to_string(&log).unwrap_or_default();
        let wanted = format!("http://mnurl.localhost:{port}\n");
        if opened == wanted { Ok(()) } else { Err(format!("{opened}{}", first.text())) }
    });
    first.shows("opened http://mnurl.localhost");
    first.keys("\u{1}t");
    first.shows("In another terminal: agentbox shell mnurl --new");
    // The next key is the program's again.
    first.keys("echo on-$((3*3))\r");
    first.shows("on-9");
    first.keys("\u{1}d");
    assert!(first.end().0.success());

    world.host_program("tmux", &format!("#!/bin/sh\necho \"$@\" >> {}\n", tmux.display()));
    world.set("TMUX", "/nowhere/default,1,0");
    let mut second = shell(&world, "mnurl");
    second.keys("\u{1}t");
    second.shows("A shell in a window of its own.");
    let words = std::fs::read_to_string(&tmux).unwrap();
    assert!(words.contains("new-window") && words.contains(" shell "), "{words}");
    second.keys("\u{1}d");
    assert!(second.end().0.success());
}

#[test]
fn a_box_is_destroyed_from_the_menu_after_a_plain_yes_only() {
    let world = World::headless();
    world.create("mnkill");
    world.box_ok("mnkill", "echo new > new-file");
    stand_in(&world, "mnkill", "claude");
    let mut agent = terminal(&world, &["claude", "start", "mnkill"]);
    agent.shows("up");
    // All in one, as a paste that a box has prepared: nobody has read the question.
    agent.keys("\u{1}ky\r");
    agent.shows("Destroy mnkill? y or its name and Enter, Enter alone is no:");
    agent.shows("Lost: 1 uncommitted change");
    assert!(is_there(&world, "mnkill"));
    agent.keys("\r");
    agent.keys("hello\r");
    agent.shows("said hello");
    assert!(is_there(&world, "mnkill"));
    let asked = count(&agent, "Destroy mnkill?");
    agent.keys("\u{1}k");
    shows_again(&agent, "Lost: 1", count(&agent, "Lost: 1"));
    assert!(count(&agent, "Destroy mnkill?") > asked);
    agent.keys("y\r");
    let (status, text) = agent.end();
    assert!(status.success(), "{text}");
    assert!(!is_there(&world, "mnkill"), "{text}");
}

#[test]
fn what_a_box_prints_neither_opens_the_menu_nor_answers_it() {
    let world = World::headless();
    world.create("mnbad");
    let mut shell = shell(&world, "mnbad");
    // Past tmux, to the terminal itself: keys, words of the menu, questions and an unfinished sequence.
    let raw = |bytes: &str| {
        let script = "tmux list-clients -t =shell: -F '#{client_tty}'";
        world.box_ok("mnbad", &format!("printf '{bytes}' > $({script})"));
    };
    raw(r"\001k\ry\r\033[97;5uk\033[c\033[6n\033]11;?\007marker-one\033(0\033[?6h\033P");
    shell.shows("marker-one");
    shell.keys("\u{1}");
    shell.shows(MENU);
    // Whatever the box began is ended before a word of ours.
    let text = shell.text();
    let before = &text[..text.find(MENU).unwrap()];
    assert!(before.contains("\u{18}\u{1b}\\"), "{before:?}");
    assert!(!text.contains("Destroy mnbad?"), "{text:?}");
    shell.keys("k");
    shell.shows("Destroy mnbad?");
    shell.shows("Nothing uncommitted");
    // Answers of a terminal the box has asked, one of them with the box's own words in it.
    shell.keys("\u{1b}[?62;22c\u{1b}[1;1R\u{1b}]lmnbad\ry\r\u{1b}\\\u{1b}[121u\u{1b}[13u");
    shell.keys("\u{1b}P1+r\ry\r\u{1b}\\\u{1b}[200~y\r\u{1b}[201~");
    shell.keys("\r");
    shell.keys("\u{15}echo still-$((6*7))\r");
    shell.shows("still-42");
    assert!(is_there(&world, "mnbad"));
    shell.keys("\u{1}d");
    let (status, text) = shell.end();
    assert!(status.success(), "{text}");
}

#[test]
fn a_pasted_image_arrives_as_a_file_in_the_box() {
    let mut world = World::headless();
    let shot = world.dir().join("My Shot.png");
    std::fs::write(&shot, PNG).unwrap();
    let secret = world.dir().join("key.png");
    std::fs::write(&secret, "-----BEGIN OPENSSH PRIVATE KEY-----").unwrap();
    let clip = world.dir().join("clip.png");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *list-types*) [ -f {0} ] && echo image/png; echo text/plain;; \
         *) cat {0};; esac\n",
        clip.display()
    );
    world.host_program("wl-paste", &script);
    world.set("WAYLAND_DISPLAY", "wayland-1");
    world.create("mnimg");
    let mut shell = shell(&world, "mnimg");
    shell.keys("cat -v\r");
    pane_shows(&world, "mnimg", "shell", "cat -v");
    let kept = || world.box_ok("mnimg", "ls ~/.local/state/agentbox/pastes 2>/dev/null; true");
    // Neither text nor a file that only bears such a name is one.
    let pasted = format!("\u{1b}[200~{}\u{1b}[201~\r", secret.display());
    shell.keys(&pasted);
    pane_shows(&world, "mnimg", "shell", "key.png");
    assert_eq!(kept(), "");
    shell.keys(&format!("\u{1b}[200~'{}'\u{1b}[201~\r", shot.display()));
    pane_shows(&world, "mnimg", "shell", "/home/vscode/.local/state/agentbox/pastes/");
    let name = kept();
    assert!(name.contains(".png") && name.lines().count() == 1, "{name}");
    pane_shows(&world, "mnimg", "shell", &name);
    let path = format!("/home/vscode/.local/state/agentbox/pastes/{name}");
    let sum = world.box_ok("mnimg", &format!("cksum < {path}; stat -c %U {path}"));
    let here = world.command("sh").args(["-c", "cksum < \"$0\""]).arg(&shot).output().unwrap();
    let here = String::from_utf8(here.stdout).unwrap();
    assert_eq!(sum, format!("{}\nvscode", here.trim_end()));
    // Ctrl-v: as it is without an image, and the image when there is one.
    shell.keys("\u{16}\u{16}plain\r");
    pane_shows(&world, "mnimg", "shell", "plain");
    assert_eq!(kept(), name);
    std::fs::write(&clip, PNG).unwrap();
    shell.keys("\u{16}");
    eventually_or(SOON, "a second image", || match kept() {
        all if all.lines().count() == 2 => Ok(()),
        all => Err(all),
    });
    pane_shows(&world, "mnimg", "shell", kept().lines().last().unwrap());
    // One that is too large is told of, and the text goes as it is.
    world.configure("box: {stage: core, cpMaxBytes: 10}\n");
    shell.keys(&format!("\u{1b}[200~{}\u{1b}[201~", shot.display()));
    shell.shows("Image not copied");
    shell.shows("box.cpMaxBytes");
    shell.keys("\u{1}d");
    assert!(shell.end().0.success());
    assert_eq!(kept().lines().count(), 2);
}
