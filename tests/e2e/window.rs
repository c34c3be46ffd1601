//! The window's pages: each in the real webview, all of them in another browser against a real host, for
//! everybody, and with more to show than anybody has.

use crate::sessions::{pane_shows, stand_in};
use crate::world::{SOON, World};
use agentbox_e2e::crowd::{Crowd, Size};
use agentbox_e2e::page::Page;
use agentbox_e2e::session::{Options, Session};
use agentbox_e2e::wait::{eventually, eventually_or};
use agentbox_e2e::webdriver::Browser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENTER: &str = "\u{E007}";
const YAML: &str = "\
tasks:
  install: {command: echo installed}
services:
  db: {command: 'echo db up; sleep 1000'}
  web: {command: 'echo web up; sleep 1000', needs: [install, db]}
";
/// Every page, and what its heading or first words say.
const PAGES: [(&str, &str); 10] = [
    ("inbox", "Inbox"),
    ("boxes", "Boxes"),
    ("new", "New box"),
    ("activity", "Activity"),
    ("credentials", "Credentials"),
    ("integrations", "Integrations"),
    ("rules", "Rules"),
    ("settings", "Settings"),
    ("check-up", "Check-up"),
    ("welcome", "AgentBox"),
];
const TABS: [&str; 6] = ["overview", "logs", "services", "terminal", "files", "activity"];

fn id(testid: &str) -> String {
    format!("[data-testid='{testid}']")
}

fn files(world: &World) -> PathBuf {
    world.program("page")
}

/// A host with a box that has tasks, a shell and an open question.
fn busy(name: &str) -> (World, String) {
    let world = World::headless();
    std::fs::write(world.project().join("agentbox.yaml"), YAML).unwrap();
    let made = world.create(name);
    world.ok(&["wait", name]);
    stand_in(&world, name, "claude");
    world.ok(&["claude", "start", name, "-d"]);
    pane_shows(&world, name, "claude", "up");
    let id = made["id"].as_str().unwrap().to_owned();
    (world, id)
}

#[track_caller]
fn open(browser: &Browser, page: &Page, at: &str) {
    // Another fragment alone loads nothing.
    browser.go_to("about:blank");
    browser.go_to(&page.at(at));
    browser.find("#page-heading, h1", SOON);
}

/// What the person's settings say, before anything is drawn.
fn greeted(browser: &Browser, page: &Page) {
    open(browser, page, "inbox");
    browser.execute("localStorage.setItem('welcomed', '1')", &[]);
}

/// Everything that keeps somebody from using the page, by the rules of axe.
#[track_caller]
fn barriers(browser: &Browser, files: &Path) -> Vec<String> {
    let axe = std::fs::read_to_string(files.join("axe.min.js")).expect("axe-core");
    browser.execute(&axe, &[]);
    let found = browser.execute_async(
        "const done = arguments[0];
         axe.run(document, { resultTypes: ['violations'] }).then(
           (r) => done(r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
             .map((v) => v.id + ': ' + v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', '))),
           (e) => done(['axe failed: ' + e]))",
    );
    serde_json::from_value(found).expect("a list")
}

#[test]
fn every_page_is_usable_by_everybody_in_light_and_dark() {
    let (world, box_id) = busy("win-all");
    world.commit("win-all", "Check the token");
    let push = world.push("win-all");
    world.question_of("win-all");
    let page = Page::serve(&files(&world), &world.home());
    let browser = Browser::chromium(1100, 760);
    greeted(&browser, &page);
    let tabs = TABS.map(|tab| format!("box/{box_id}/{tab}"));
    let all = PAGES.iter().map(|(page, _)| (*page).to_owned()).chain(tabs);
    let mut problems = Vec::new();
    for at in all {
        let name = at.replace(&box_id, "").replace("//", "-").replace('/', "-");
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            open(&browser, &page, &at);
            settled(&browser);
            let found = barriers(&browser, &files(&world));
            problems.extend(found.iter().map(|why| format!("{name} ({scheme}): {why}")));
            let dark = if scheme == "dark" { "-dark" } else { "" };
            browser.shoot(&format!("page-{name}{dark}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    deny_all(&world);
    push.end();
}

fn deny_all(world: &World) {
    for question in world.questions() {
        world.ok(&["deny", question["id"].as_str().unwrap()]);
    }
}

/// Nothing is being read any more.
#[track_caller]
fn settled(browser: &Browser) {
    eventually(SOON, "a page that has read everything", || {
        let script = "return document.querySelector('[aria-busy=true]') === null";
        (browser.execute(script, &[]) == json!(true)).then_some(())
    });
}

#[test]
fn questions_are_answered_by_keys_alone() {
    let (world, _) = busy("win-keys");
    let page = Page::serve(&files(&world), &world.home());
    let browser = Browser::chromium(1100, 760);
    greeted(&browser, &page);
    for (key, outcome) in [("d", "denied"), ("a", "allowed")] {
        world.commit("win-keys", &format!("By {key}"));
        let push = world.push("win-keys");
        let question = world.question_of("win-keys");
        open(&browser, &page, "inbox");
        browser.find_text("main", question["title"].as_str().unwrap(), SOON);
        // At once is too soon for a yes; a no counts.
        eventually(SOON, outcome, || {
            browser.press(key);
            world.questions().is_empty().then_some(())
        });
        let ended = push.end();
        assert_eq!(ended.code == Some(0), key == "a", "{}", ended.err);
    }
}

#[test]
fn a_boxs_page_shows_what_the_box_does() {
    let (world, box_id) = busy("win-box");
    let page = Page::serve(&files(&world), &world.home());
    let browser = Browser::chromium(1100, 760);
    greeted(&browser, &page);

    open(&browser, &page, &format!("box/{box_id}/services"));
    for unit in ["install", "db", "web"] {
        browser.find_text("main", unit, SOON);
    }

    open(&browser, &page, &format!("box/{box_id}/files"));
    world.box_ok("win-box", "mkdir -p made && echo x > made/new.txt");
    browser.click(&browser.find(&id("files-refresh"), SOON));
    browser.find_text("main", "made", SOON);

    open(&browser, &page, &format!("box/{box_id}/terminal"));
    browser.click(&browser.find(&id("new-shell"), SOON));
    types_into_shell(&browser, &world, "win-box");

    open(&browser, &page, &format!("box/{box_id}/logs"));
    browser.find(&id("log-lines"), SOON);
}

#[test]
fn settings_are_changed_and_kept() {
    let world = World::headless();
    let page = Page::serve(&files(&world), &world.home());
    let browser = Browser::chromium(1100, 760);
    greeted(&browser, &page);
    open(&browser, &page, "settings");
    browser.find_text("main", "autopause.idleMinutes", SOON);
    let answer = browser.execute_async(
        "const done = arguments[0]; done([...document.querySelectorAll('[data-testid]')].length)",
    );
    assert!(answer.as_u64().unwrap() > 20, "{answer}");
}

/// In the real webview, at every page.
#[test]
fn every_page_opens_in_the_window() {
    let mut world = World::desktop_before(Options::default());
    world.configure("");
    world.start_desktop();
    std::fs::write(world.project().join("agentbox.yaml"), YAML).unwrap();
    let made = world.create("win-kit");
    world.ok(&["wait", "win-kit"]);
    let box_id = made["id"].as_str().unwrap().to_owned();
    let tabs = TABS.map(|tab| (format!("box/{box_id}/{tab}"), "win-kit"));
    let all = PAGES.iter().map(|(page, words)| ((*page).to_owned(), *words)).chain(tabs);
    for (at, words) in all {
        let program = world.program("agentbox-desktop");
        let window = Browser::open(world.session(), &program, &["--window", "--page", &at]);
        window.find_text("main", words, SOON);
        settled(&window);
        let name = at.replace(&box_id, "").replace("//", "-").replace('/', "-");
        window.shoot(&format!("window-{name}"));
        assert_eq!(window.find_all(&id("page-problem")).len(), 0, "{at}");
        if at.ends_with("/terminal") {
            window.click(&window.find(&id("new-shell"), SOON));
            types_into_shell(&window, &world, "win-kit");
        }
    }
}

/// Types into the shell that the page shows.
#[track_caller]
fn types_into_shell(window: &Browser, world: &World, name: &str) {
    let rows = "return document.querySelector('.xterm-rows')?.textContent ?? ''";
    eventually_or(SOON, "a prompt in the page", || {
        let shown = window.execute(rows, &[]).to_string();
        if shown.contains('$') { Ok(()) } else { Err(shown) }
    });
    let keys = window.find(".xterm-helper-textarea", SOON);
    window.type_text(&keys, &format!("echo typed-$((40+2)) | tee /tmp/typed{ENTER}"));
    eventually_or(SOON, "what was typed", || {
        let found = world.in_box(name, "cat /tmp/typed");
        if found.status.success() { Ok(()) } else { Err(crate::world::text(&found.stderr)) }
    });
    eventually_or(SOON, "its output in the page", || {
        let shown = window.execute(rows, &[]).to_string();
        if shown.contains("typed-42") { Ok(()) } else { Err(shown) }
    });
}

/// A window that is killed takes nothing along, and comes again.
#[test]
fn a_killed_window_never_touches_the_host() {
    let world = World::desktop();
    world.create("win-kill");
    world.commit("win-kill", "Ask");
    let push = world.push("win-kill");
    world.question_of("win-kill");
    let host = world.host_pid();
    world.ok(&["app", "start"]);
    let window = eventually(SOON, "the window's process", || window_of(host));
    nix::sys::signal::kill(window, nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually(SOON, "the window's end", || window_of(host).is_none().then_some(()));
    let status = world.json(&["app", "status"]);
    assert_eq!(status["app"]["running"], true, "{status}");
    assert_eq!(world.questions().len(), 1, "nothing was answered");
    world.ok(&["app", "start"]);
    eventually(SOON, "another window", || window_of(host));
    deny_all(&world);
    assert_ne!(push.end().code, Some(0));
}

/// Closed and wanted at once, as by somebody who clicks the wrong thing first.
#[test]
fn a_window_that_is_wanted_while_it_goes_comes_again() {
    let world = World::desktop();
    let host = world.host_pid();
    world.ok(&["app", "start"]);
    let first = eventually(SOON, "a window", || window_of(host));
    world.ok(&["app", "start"]);
    nix::sys::signal::kill(first, nix::sys::signal::Signal::SIGKILL).unwrap();
    eventually(SOON, "another window", || window_of(host).filter(|window| *window != first));
}

/// The window's process among the host's children.
pub fn window_of(host: nix::unistd::Pid) -> Option<nix::unistd::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{host}/task")).ok()?.flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids = children.flat_map(|text| {
        text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()).collect::<Vec<_>>()
    });
    let is_window = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("/agentbox-window")
    };
    pids.collect::<Vec<_>>().into_iter().find(is_window).map(nix::unistd::Pid::from_raw)
}

/// With more than anybody has, keys are answered, and nothing is allowed by them. How soon: `make bench`.
#[test]
fn a_crowd_does_not_hold_the_window_up() {
    let session = Session::start(Options { dunst: false, keyring: false, panel: false });
    let home = session.dir().join("crowd");
    let crowd = Crowd::gather(&home, Size { boxes: 200, questions: 5, lines: 100_000 });
    let program = World::programs().join("agentbox-desktop");
    let window = Browser::open_with(
        &session,
        &program,
        &["--window", "--page", "inbox"],
        &[("AGENTBOX_HOME", home.to_str().unwrap())],
    );
    window.find_text(&id("nav-inbox"), "1000", SOON);
    println!("a key with 1 000 questions: {:.0} ms", window.latency("j"));
    window.click(&window.find(&id("nav-boxes"), SOON));
    window.find_text("main", "box-0", SOON);
    println!("a key with 200 boxes: {:.0} ms", window.latency("j"));
    window.click(&window.find(&id("show-box-0"), SOON));
    window.click(&window.find(&id("tab-logs"), SOON));
    window.find_text(&id("log-length"), "100000 lines", Duration::from_secs(120));
    let rows =
        window.execute("return document.querySelectorAll('[data-testid=log-row]').length", &[]);
    assert!(rows.as_u64().unwrap() < 500, "{rows} rows");
    println!("a key with 100 000 lines: {:.0} ms", window.latency("j"));
    assert_eq!(crowd.answers(), Vec::<Value>::new(), "nothing was answered");
}
