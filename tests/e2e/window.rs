//! The window's pages: each in the real webview, all of them in another browser against a real host, for
//! everybody, and with more to show than anybody has.

use crate::sessions::{pane_shows, stand_in};
use crate::world::{APP, SOON, World};
use agentbox_e2e::crowd::{Crowd, Size};
use agentbox_e2e::drag::Files;
use agentbox_e2e::page::Page;
use agentbox_e2e::screen;
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
const TABS: [&str; 8] =
    ["overview", "logs", "services", "terminal", "screen", "files", "network", "activity"];

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
    let get = |key: &str| world.json(&["config", "get", key])["setting"]["value"].clone();
    assert_eq!(get("box.vnc"), "true");
    browser.click(&browser.find(&id("value-box.vnc"), SOON));
    browser.find_text(&id("said-box.vnc"), "Saved.", SOON);
    assert_eq!(get("box.vnc"), "false");
    // Nobody could be asked outside of this page, so what lets boxes do more is refused.
    browser.click(&browser.find(&id("value-box.withEnv"), SOON));
    browser.find_text(&id("setting-box.withEnv"), "no page changes it by itself", SOON);
    assert_eq!(get("box.withEnv"), "false");
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

/// What a page that was tricked asks for, without any button of it.
fn trick(window: &Browser, request: Value) {
    let script = "window.tricked = '';
        window.__TAURI_INTERNALS__.invoke('call', { request: arguments[0] })
          .then(() => (window.tricked = 'done'), (e) => (window.tricked = e.message));";
    window.execute(script, &[request]);
}

/// What came of it.
#[track_caller]
fn came_of_it(window: &Browser) -> String {
    eventually(SOON, "an end of what was asked for", || {
        let said = window.execute("return window.tricked", &[]);
        said.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    })
}

fn setting(key: &str, value: &str) -> Value {
    json!({ "method": "setSetting", "params":
        { "key": key, "value": value, "layer": "global", "cwd": null } })
}

/// What lets boxes do more is asked about in a window that the page can neither draw nor press.
#[test]
fn a_tricked_page_loosens_nothing_without_a_yes_outside_of_it() {
    const ASKS: &str = "AgentBox asks";
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    let mode = || world.json(&["config", "get", "approvals.mode"])["setting"]["value"].clone();
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", "settings"]);
    window.find_text("main", "approvals.mode", SOON);
    let screen = world.screen();
    let asked = || {
        eventually_or(SOON, "a question outside of the page", || {
            let texts = screen.texts(APP, ASKS);
            let whole =
                texts.iter().any(|text| text.contains("config set approvals.mode safe --global"));
            if whole { Ok(()) } else { Err(format!("{texts:?}")) }
        });
    };
    let refused = |why: &str| {
        assert!(came_of_it(&window).contains("Nothing was changed"), "{why}");
        screen.gone(APP, ASKS, SOON);
        assert_eq!(mode(), "ask", "{why}");
    };

    trick(&window, setting("approvals.mode", "safe"));
    asked();
    screen::shoot(world.session(), "window-asks");
    assert_eq!(mode(), "ask", "nothing is done before the answer");
    // A second wish is not even asked about while the first is.
    trick(&window, setting("box.withEnv", "true"));
    assert!(came_of_it(&window).contains("another question"), "one at a time");
    assert_eq!(screen.windows(APP).iter().filter(|title| title.contains(ASKS)).count(), 1);
    screen.press(APP, ASKS, "Deny", SOON);
    eventually(SOON, "the no", || came_of_it(&window).contains("did not say yes").then_some(()));
    refused("Deny");

    // A key that was on its way to the page is a no, and so is closing it.
    for keys in [["key", "Return"], ["key", "Escape"]] {
        trick(&window, setting("approvals.mode", "safe"));
        asked();
        let focus = world.session().command("wmctrl").args(["-a", ASKS]).status().unwrap();
        assert!(focus.success());
        eventually(SOON, "an answer by a key", || {
            let _ = world.session().command("xdotool").args(keys).status();
            screen.windows(APP).iter().all(|title| !title.contains(ASKS)).then_some(())
        });
        refused(keys[1]);
    }
    // Three noes are enough for this window.
    trick(&window, setting("approvals.mode", "safe"));
    refused("asked too often");
    drop(window);

    let window = Browser::open(world.session(), &program, &["--window", "--page", "settings"]);
    window.find_text("main", "approvals.mode", SOON);
    let choose = "const field = document.querySelector(\"[data-testid='value-approvals.mode']\");
        field.value = arguments[0];
        field.dispatchEvent(new Event('change', { bubbles: true }));";
    window.execute(choose, &[json!("safe")]);
    screen.press(APP, ASKS, "Change it", SOON);
    window.find_text(&id("said-approvals.mode"), "Saved.", SOON);
    assert_eq!(mode(), "safe");
    // What tightens asks nobody.
    window.execute(choose, &[json!("ask")]);
    eventually(SOON, "the tighter setting", || (mode() == "ask").then_some(()));
    window.find_text(&id("said-approvals.mode"), "Saved.", SOON);
}

/// In the real webview, and by keys alone: at once is too soon for a yes.
#[test]
fn questions_in_the_window_are_answered_by_keys_alone() {
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    world.create("win-kit-keys");
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", "inbox"]);
    window.find_text("main", "Inbox", SOON);
    for (key, pushes) in [("d", false), ("a", true)] {
        world.commit("win-kit-keys", &format!("By {key}"));
        let push = world.push("win-kit-keys");
        let question = world.question_of("win-kit-keys");
        window.find_text("main", question["title"].as_str().unwrap(), SOON);
        eventually(SOON, "the key being taken", || {
            window.press(key);
            world.questions().is_empty().then_some(())
        });
        let ended = push.end();
        assert_eq!(ended.code == Some(0), pushes, "{key}: {}", ended.err);
    }
}

/// Tries every way a page has to fetch something, and says which of them it got.
const FETCHES: &str = "
    const done = arguments[0], at = window.elsewhere;
    const loads = (tag, name, value) => new Promise((end) => {
      const part = document.createElement(tag);
      part.onload = () => end(tag);
      part.onerror = () => end('');
      part[name] = value;
      if (tag === 'link') part.rel = 'stylesheet';
      document.body.append(part);
      setTimeout(() => end(''), 3000);
    });
    const opens = (made) => new Promise((end) => {
      try {
        const socket = made();
        socket.onopen = () => end('a socket');
        socket.onerror = () => end('');
      } catch { end(''); }
      setTimeout(() => end(''), 3000);
    });
    Promise.all([
      fetch(at).then(() => 'fetch', () => ''),
      loads('img', 'src', at), loads('script', 'src', at), loads('link', 'href', at),
      loads('object', 'data', at), loads('audio', 'src', at),
      opens(() => new WebSocket(at.replace('http', 'ws'))), opens(() => new EventSource(at)),
      Promise.resolve(navigator.sendBeacon?.(at, 'x') && ''),
    ]).then((all) => done(all.filter(Boolean)), (e) => done(['failed: ' + e]));";

/// Whatever is in the page, nothing of it comes from elsewhere or goes there.
#[test]
fn a_page_reaches_no_address_and_leads_to_none() {
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", elsewhere.local_addr().unwrap());
    let nobody_came = |what: &str| {
        let Ok((mut came, _)) = elsewhere.accept() else { return };
        came.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut said = [0; 500];
        let said = std::io::Read::read(&mut came, &mut said).map(|n| said[..n].to_vec());
        let said = said.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        panic!("{what} reached {url} and said {said:?}");
    };
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", "settings"]);
    window.find_text("main", "approvals.mode", SOON);
    let home = window.execute("return document.URL", &[]);
    assert!(home.as_str().unwrap().starts_with("tauri://"), "{home}");

    window.execute("window.elsewhere = arguments[0]", &[json!(url)]);
    assert_eq!(window.execute_async(FETCHES), json!([]), "what was loaded");
    nobody_came("a part of the page");

    for leads in [
        "location.href = window.elsewhere",
        "location.assign(window.elsewhere)",
        "window.open(window.elsewhere)",
        "window.open(window.elsewhere, '_self')",
        "const a = document.createElement('a'); a.href = window.elsewhere; a.target = '_blank';
         document.body.append(a); a.click()",
        "const a = document.createElement('a'); a.href = window.elsewhere;
         document.body.append(a); a.click()",
        "const l = document.createElement('link'); l.rel = 'preconnect'; l.href = window.elsewhere;
         document.head.append(l)",
        "const f = document.createElement('form'); f.action = window.elsewhere;
         document.body.append(f); f.submit()",
        "const i = document.createElement('iframe'); i.src = window.elsewhere;
         document.body.append(i)",
    ] {
        window.execute(leads, &[]);
        // Long enough for a connection to this computer itself.
        std::thread::sleep(Duration::from_millis(700));
        nobody_came(leads);
        assert_eq!(window.execute("return document.URL", &[]), home, "{leads}");
    }
    let titles = world.screen().windows(APP);
    assert_eq!(titles, ["AgentBox"], "no other window");
    window.find_text("main", "approvals.mode", SOON);
}

/// Left, top, width and height of the window's content.
#[track_caller]
fn geometry(session: &Session) -> [i32; 4] {
    let ask = || session.command("wmctrl").arg("-lG").output().unwrap();
    eventually(SOON, "the window", || {
        let list = String::from_utf8_lossy(&ask().stdout).into_owned();
        let line = list.lines().find(|line| line.ends_with(" AgentBox"))?;
        let mut numbers = line.split_whitespace().skip(2).map_while(|word| word.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?])
    })
}

#[test]
fn the_window_comes_back_where_it_was_and_as_large() {
    /// A window manager may round, and count its frame or not.
    const NEAR: i32 = 8;
    let world = World::desktop();
    let session = world.session();
    let open = || {
        world.tray().click(&["Open AgentBox"], SOON);
        eventually(SOON, "the window's page", || {
            world.screen().windows(APP).iter().any(|title| title == "AgentBox").then_some(())
        });
    };
    open();
    let first = geometry(session);
    let moved = eventually(SOON, "the window elsewhere, and of another size", || {
        let mut place = session.command("wmctrl");
        assert!(
            place.args(["-r", "AgentBox", "-e", "0,150,110,860,560"]).status().unwrap().success()
        );
        let now = geometry(session);
        ((now[2], now[3]) == (860, 560) && now[..2] != first[..2]).then_some(now)
    });
    // Twice, for what is a little off would be more so each time.
    for _ in 0..2 {
        eventually(SOON, "no window", || {
            let _ = session.command("wmctrl").args(["-c", "AgentBox"]).output();
            crate::desktop::pages(&world).is_empty().then_some(())
        });
        open();
        eventually_or(SOON, "the window as it was", || {
            let now = geometry(session);
            let near =
                now.iter().zip(moved).all(|(is, was)| is.abs_diff(was) <= NEAR.unsigned_abs());
            if near { Ok(()) } else { Err(format!("{now:?}, but it was {moved:?}")) }
        });
    }
}

/// Puts the window where the mouse will find it, and gives a place in its middle.
#[track_caller]
fn put_in_place(session: &Session) -> (i32, i32) {
    let mut place = session.command("wmctrl");
    place.args(["-r", "AgentBox", "-e", "0,220,60,980,640"]);
    eventually(SOON, "the window at its place", || place.status().unwrap().success().then_some(()));
    (220 + 980 / 2, 60 + 640 / 2)
}

/// Brings files over the page and lets go of them when the page says that it has seen them.
#[track_caller]
fn drop_on(window: &Browser, files: &Files<'_>, (x, y): (i32, i32), words: &str) {
    files.carry_to(x, y);
    // The page may be busy when they come; a hand is never quite still.
    let mut sway = [0, 3].iter().cycle();
    eventually_or(SOON, "the page seeing what is over it", || {
        files.move_to(x + sway.next().unwrap(), y);
        let script =
            "return document.querySelector('[data-testid=drop-overlay]')?.textContent ?? ''";
        let said = window.execute(script, &[]).to_string();
        if said.contains(words) { Ok(()) } else { Err(said) }
    });
    assert_eq!(files.let_go(), "dropped");
}

/// Out of another program, by the mouse, onto the real webview.
#[test]
fn files_dropped_on_a_boxs_page_are_in_the_box_after_a_yes() {
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    let made = world.create("win-drop");
    let folder = world.dir().join("to drop");
    std::fs::create_dir_all(folder.join("drafts")).unwrap();
    std::fs::write(folder.join("über uns.txt"), "two words\n").unwrap();
    std::fs::write(folder.join("drafts/inside.txt"), "inside\n").unwrap();
    let at = format!("box/{}/files", made["id"].as_str().unwrap());
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", &at]);
    window.find_text("main", "README.md", SOON);
    let middle = put_in_place(world.session());
    let files = Files::show(world.session(), &[folder.join("über uns.txt"), folder.join("drafts")]);

    // They are named; nothing is copied by letting go of them, nor by saying no.
    drop_on(&window, &files, middle, "über uns.txt and drafts");
    let asked = window.find(&id("confirm-drop"), SOON);
    assert!(window.text(&asked).contains("Copy über uns.txt and drafts into /workspace?"));
    window.shoot("window-drop");
    window.click(&window.find(&id("confirm-no-drop"), SOON));
    assert_eq!(world.box_ok("win-drop", "ls /workspace"), "README.md");

    drop_on(&window, &files, middle, "über uns.txt");
    window.click(&window.find(&id("confirm-yes-drop"), SOON));
    window.find_text(&id("files-said"), "2 files or folders", SOON);
    window.find_text("main", "über uns.txt", SOON);
    let found =
        world.box_ok("win-drop", "cat '/workspace/über uns.txt' /workspace/drafts/inside.txt");
    assert_eq!(found, "two words\ninside");
    let owner = world.box_ok("win-drop", "stat -c %U '/workspace/über uns.txt' && whoami");
    let (owner, user) = owner.split_once('\n').unwrap();
    assert_eq!(owner, user, "the agents' own");

    // Where there is no folder to drop them on, the page stays what it is and takes nothing.
    window.click(&window.find(&id("nav-boxes"), SOON));
    window.find_text("main", "win-drop", SOON);
    files.carry_to(middle.0, middle.1);
    files.let_go();
    window.find_text("main", "win-drop", SOON);
    assert!(window.find_all(&id("confirm-drop")).is_empty());
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
