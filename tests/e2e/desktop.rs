//! The tray app among people's desktops: complete ones and bare ones.

use crate::world::{APP, SOON, World};
use agentbox_e2e::screen;
use agentbox_e2e::session::Options;
use agentbox_e2e::tray::{Item, Tray, outline};
use agentbox_e2e::wait::{eventually, eventually_or, try_eventually};
use std::path::PathBuf;
use zbus::zvariant::Value;

fn notices(world: &World) -> Vec<String> {
    let status = world.json(&["status"]);
    let notices = status["status"]["notices"].as_array().unwrap().clone();
    notices.iter().map(|n| n["part"].as_str().unwrap().to_owned()).collect()
}

/// Processes of this session that run the app's window.
fn window_processes(world: &World) -> usize {
    pages(world).len()
}

/// The pages that the windows of this session were opened at.
pub fn pages(world: &World) -> Vec<String> {
    let marker = format!("HOME={}", world.session().home().display());
    let page = |entry: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let (words, variables) = (read("cmdline"), read("environ"));
        let words = String::from_utf8_lossy(&words).into_owned();
        let mut words = words.split('\0').skip_while(|word| !word.ends_with("/agentbox-window"));
        let is_ours = String::from_utf8_lossy(&variables).contains(&marker);
        words.next().filter(|_| is_ours)?;
        Some(words.skip_while(|word| *word != "--page").nth(1).unwrap_or_default().to_owned())
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(page).collect()
}

/// Waits until the window was opened at this page, and closes it.
#[track_caller]
pub fn opens_at(world: &World, page: &str) {
    eventually_or(SOON, &format!("the window at {page}"), || {
        let pages = pages(world);
        if pages == [page] { Ok(()) } else { Err(format!("{pages:?}{}", world.host_log())) }
    });
    eventually(SOON, "the window", || {
        world.screen().windows(APP).iter().any(|w| w.contains("AgentBox")).then_some(())
    });
    eventually(SOON, "no window process", || {
        let _ = world.session().command("wmctrl").args(["-c", "AgentBox"]).output();
        pages(world).is_empty().then_some(())
    });
}

/// The entry of a box in the tray's menu, as its label is now.
#[track_caller]
fn entry_of(tray: &Item, name: &str, state: &str) -> String {
    eventually_or(SOON, &format!("{name} {state} in the menu"), || {
        let menu = tray.menu();
        let labels = menu.iter().map(|e| e.label.clone());
        let found = labels.into_iter().find(|l| l.contains(name) && l.contains(state));
        found.ok_or_else(|| outline(&menu))
    })
}

/// Waits until the window shows more than an empty page. What it says is read by WebDriver.
#[track_caller]
fn page_is_drawn(world: &World, name: &str) {
    eventually_or(SOON, "a page in the window", || {
        let shot = screen::shoot(world.session(), name);
        let inside = format!("{}[900x600+180+120]", shot.display());
        let colours = world.session().command("identify").args(["-format", "%k", &inside]).output();
        let colours: u32 = String::from_utf8_lossy(&colours.unwrap().stdout).parse().unwrap_or(0);
        if colours > 300 { Ok(()) } else { Err(format!("{colours} colours")) }
    });
}

/// A project at home and a remote that looks like people's, gone with its value.
struct Shop(PathBuf);

impl Shop {
    fn of(world: &World) -> Self {
        const URL: &str = "https://github.com/acme/shop-api.git";
        let shop = Self(world.home().with_file_name("shop-api"));
        let remote = world.remote().display().to_string();
        world.git(world.dir(), &["clone", "-q", &remote, shop.0.to_str().unwrap()]);
        for (key, value) in [("user.name", "Ada Lovelace"), ("user.email", "ada@example.org")] {
            world.git(&shop.0, &["config", key, value]);
        }
        let instead = format!("url.{remote}.insteadOf");
        world.git(world.dir(), &["config", "--global", &instead, URL]);
        world.git(&shop.0, &["remote", "set-url", "origin", URL]);
        shop
    }

    fn create(&self, world: &World, name: &str) {
        let mut create = world.agentbox_command(&["create", "-n", name]);
        let made = create.current_dir(&self.0).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Something calmer than black behind the windows.
fn paint_the_desktop(world: &World) {
    let painted = world.session().command("xsetroot").args(["-solid", "#4a5a73"]).status();
    assert!(painted.unwrap().success());
}

/// The picture in the README: what a person sees when an agent asks.
#[test]
fn a_picture_of_the_app_at_work() {
    const BOXES: [&str; 3] = ["fix-login", "audit-log", "new-theme"];
    let world = World::desktop();
    paint_the_desktop(&world);
    // There, and without a pop-up over the rest.
    let paused = world.session().command("dunstctl").args(["set-paused", "true"]).status();
    assert!(paused.unwrap().success());
    let shop = Shop::of(&world);
    for name in BOXES {
        shop.create(&world, name);
    }
    for subject in
        ["Check token expiry before refresh", "Add test for clock skew", "Log refresh failures"]
    {
        world.commit("fix-login", subject);
    }
    world.box_ok("fix-login", "agentbox-ctl agent-state claude working");
    world.box_ok("audit-log", "agentbox-ctl agent-state codex waiting");
    world.ok(&["stop", "new-theme"]);
    world.tray().click(&["Open AgentBox"], SOON);
    page_is_drawn(&world, "agentbox");
    let push = world.push("fix-login");
    eventually(SOON, "the dialog, ready", || {
        world.screen().exists(APP, "fix-login asks", "Allow once").then_some(())
    });
    // Side by side, so that both can be seen. The new size makes the window draw itself anew.
    let place = |title: &str, place: &str| {
        let moved = world.session().command("wmctrl").args(["-r", title, "-e", place]).status();
        assert!(moved.unwrap().success());
    };
    place("fix-login asks", "0,655,395,-1,-1");
    place("AgentBox", "0,16,48,900,690");
    // One that has settled, if the machine is quick enough for that: ages tick every second, in the
    // dialog and in the window.
    let _ = try_eventually(SOON / 2, || {
        let one = std::fs::read(screen::shoot(world.session(), "agentbox")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let two = std::fs::read(screen::shoot(world.session(), "agentbox")).unwrap();
        if one == two { Ok(()) } else { Err(()) }
    });
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
    for name in BOXES {
        world.ok(&["destroy", name, "-y"]);
    }
}

#[test]
fn the_tray_shows_boxes_and_starts_and_stops_them() {
    let world = World::desktop();
    world.create("fix-login");
    let tray = world.tray();
    let lines = |wanted: &str| {
        eventually_or(SOON, wanted, || {
            let menu = outline(&tray.menu());
            if menu.contains(wanted) { Ok(()) } else { Err(menu) }
        });
    };
    lines("fix-login   running");
    tray.click(&[&entry_of(&tray, "fix-login", "running"), "Stop"], SOON);
    lines("fix-login   stopped");
    tray.click(&[&entry_of(&tray, "fix-login", "stopped"), "Start"], SOON);
    lines("fix-login   running");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "running");
    tray.click(&["Pause all"], SOON);
    lines("fix-login   paused");
    assert_eq!(world.json(&["list"])["boxes"][0]["state"], "paused");
    tray.click(&["Resume all"], SOON);
    lines("fix-login   running");
    assert_eq!(notices(&world), Vec::<String>::new());
    // Nobody is told of what they did themselves.
    let told = world.notifications().ever_shown();
    assert!(told.iter().all(|n| !n.summary.contains("stopped")), "{told:?}");
}

/// Waits until the tray shows another picture, and gives it.
#[track_caller]
fn other_icon(tray: &Item, before: Option<u64>, what: &str) -> Option<u64> {
    eventually(SOON, what, || (tray.icon_hash() != before).then(|| tray.icon_hash()))
}

#[test]
fn the_icon_says_who_works_and_counts_what_needs_somebody() {
    let world = World::desktop();
    for name in ["fix-login", "docs-bot"] {
        world.create(name);
        world.commit(name, "One");
    }
    let tray = world.tray();
    let idle = tray.icon_hash();
    assert_eq!(tray.title(), "AgentBox", "boxes run, but no agent works");
    world.box_ok("fix-login", "agentbox-ctl agent-state claude working");
    let busy = other_icon(&tray, idle, "another icon while an agent works");
    assert_eq!(tray.title(), "AgentBox: 1 agent works");
    screen::shoot(world.session(), "tray-busy");
    world.box_ok("fix-login", "agentbox-ctl agent-state claude waiting");
    let one = other_icon(&tray, busy, "a number for an agent that waits");
    assert_eq!(tray.title(), "AgentBox needs you: 1 waiting agent");
    let push = world.push("docs-bot");
    world.question_of("docs-bot");
    let two = other_icon(&tray, one, "a higher number for a question");
    assert_eq!(tray.title(), "AgentBox needs you: 1 question, 1 waiting agent");
    screen::shoot(world.session(), "tray-needs-you");
    world.ok(&["deny", "docs-bot"]);
    assert_eq!(push.end().code, Some(10));
    let again = other_icon(&tray, two, "the number going down");
    assert_eq!(again, one, "the same number looks the same");
    world.box_ok("fix-login", "agentbox-ctl agent-state claude done");
    eventually(SOON, "the icon from the beginning", || (tray.icon_hash() == idle).then_some(()));
}

#[test]
fn the_tray_leads_to_logs_settings_and_the_check_up() {
    let world = World::desktop();
    let id = world.create("fix-login")["id"].as_str().unwrap().to_owned();
    let tray = world.tray();
    tray.click(&[&entry_of(&tray, "fix-login", "running"), "Logs"], SOON);
    opens_at(&world, &format!("box/{id}/logs"));
    tray.click(&["Settings"], SOON);
    opens_at(&world, "settings");
    tray.click(&["Check-up"], SOON);
    opens_at(&world, "check-up");
}

#[test]
fn the_tray_opens_a_shell_in_the_persons_terminal() {
    let mut world = World::desktop_before(Options::default());
    let said = world.dir().join("terminal-was-told");
    let terminal = |end: &str| {
        let script =
            format!("#!/bin/sh\nfor word; do echo \"$word\"; done > {}\n{end}\n", said.display());
        world.host_program("my-terminal", &script);
    };
    terminal("exit 0");
    world.set("TERMINAL", "my-terminal");
    world.start_desktop();
    let id = world.create("fix-login")["id"].as_str().unwrap().to_owned();
    let tray = world.tray();
    tray.click(&[&entry_of(&tray, "fix-login", "running"), "Shell"], SOON);
    let agentbox = world.program("agentbox").display().to_string();
    let expected = format!("-e\n{agentbox}\nshell\n{id}\n");
    eventually_or(SOON, "the terminal", || {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        if said == expected { Ok(()) } else { Err(said) }
    });
    // What it was told works.
    let words: Vec<_> = expected.lines().skip(2).chain(["--", "echo", "hello"]).collect();
    assert_eq!(world.ok(&words).trim(), "hello");

    let script = "#!/bin/sh\nexit 3\n";
    world.host_program("my-terminal", script);
    tray.click(&[&entry_of(&tray, "fix-login", "running"), "Shell"], SOON);
    let toast = world.notifications().wait_for("A shell in fix-login could not be opened", SOON);
    assert!(toast.body.contains("exit status: 3"), "{}", toast.body);
}

/// Asks the engine itself, beside AgentBox.
fn engine(world: &World, work: impl AsyncFnOnce(bollard::Docker)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { work(world.docker().await.unwrap()).await });
}

#[test]
fn a_box_that_dies_is_told_of_once_and_with_the_reason() {
    let world = World::desktop();
    for name in ["fix-login", "docs-bot"] {
        world.create(name);
    }
    let told = world.notifications();
    engine(&world, async |docker| {
        docker.kill_container("agentbox-fix-login", None).await.unwrap();
    });
    let toast = told.wait_for("fix-login stopped", SOON);
    assert_eq!(toast.summary, "fix-login stopped: it was killed from outside");
    // What a person stops is not told; the end of another box after it is, so nothing is on its way.
    world.ok(&["start", "fix-login"]);
    world.ok(&["stop", "fix-login"]);
    engine(&world, async |docker| {
        docker.stop_container("agentbox-docs-bot", None).await.unwrap();
    });
    let toast = told.wait_for("docs-bot stopped", SOON);
    assert_eq!(toast.summary, "docs-bot stopped: it was stopped outside AgentBox");
    let of_stops = |n: &&agentbox_e2e::notify::Shown| n.summary.contains("stopped");
    assert_eq!(told.ever_shown().iter().filter(of_stops).count(), 2, "{:?}", told.ever_shown());
}

#[test]
fn the_window_is_a_process_of_its_own_and_the_tray_outlives_it() {
    let world = World::desktop();
    world.create("fix-login");
    assert_eq!(window_processes(&world), 0, "a window nobody opened");
    world.tray().click(&["Open AgentBox"], SOON);
    eventually(SOON, "the window", || {
        world.screen().windows(APP).iter().any(|w| w.contains("AgentBox")).then_some(())
    });
    eventually(SOON, "one window process", || (window_processes(&world) == 1).then_some(()));
    page_is_drawn(&world, "window-boxes");
    // A second wish to see it brings no second window.
    world.tray().click(&["Open AgentBox"], SOON);
    assert_eq!(window_processes(&world), 1, "a second window");
    // A wish that is heard only after the window has gone opens it once more.
    eventually(SOON, "no window process", || {
        let _ = world.session().command("wmctrl").args(["-c", "AgentBox"]).output();
        (window_processes(&world) == 0).then_some(())
    });
    assert_eq!(world.json(&["status"])["status"]["kind"], "desktop");
    world.tray();
}

#[test]
fn a_bare_desktop_is_told_what_is_missing_and_everything_else_works() {
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: false });
    eventually_or(SOON, "notices for what is missing", || {
        let mut parts = notices(&world);
        parts.sort();
        if parts == ["keyring", "notifications", "tray"] {
            Ok(())
        } else {
            Err(format!("{parts:?}{}", world.host_log()))
        }
    });
    let status = world.json(&["status"]);
    for notice in status["status"]["notices"].as_array().unwrap() {
        assert!(notice["hint"].is_string(), "no way out: {notice}");
    }
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    assert_eq!(push.end().code, Some(0));
    let doctor = world.agentbox(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("[warn]"));
}

#[test]
fn a_desktop_takes_over_from_a_headless_host_without_touching_boxes() {
    let mut world = World::desktop();
    nix::sys::signal::kill(world.host_pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    world.await_host_end();
    world.start_serve();
    assert_eq!(world.json(&["status"])["status"]["kind"], "headless");
    world.create("fix-login");
    world.commit("fix-login", "One");
    let started = world.box_ok("fix-login", "stat -c %Y /proc/1");
    let mut headless = world.take_host();
    world.start_desktop();
    eventually(SOON, "the headless host making room", || headless.try_wait().unwrap());
    assert_eq!(world.json(&["status"])["status"]["kind"], "desktop");
    assert_eq!(world.box_ok("fix-login", "stat -c %Y /proc/1"), started, "the box was restarted");
    let push = world.push("fix-login");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    assert_eq!(push.end().code, Some(0));
    // A second desktop finds the first, and leaves.
    let second = world.command(world.program("agentbox-desktop")).status().unwrap();
    assert_eq!(second.code(), Some(0));
}

#[test]
fn quit_in_the_tray_ends_the_host_and_leaves_the_boxes() {
    let mut world = World::desktop();
    world.create("fix-login");
    world.tray().click(&["Quit AgentBox"], SOON);
    world.await_host_end();
    world.start_desktop();
    eventually(SOON, "the box still running", || {
        (world.json(&["list"])["boxes"][0]["state"] == "running").then_some(())
    });
}

fn state_of_the_box(world: &World) -> String {
    world.json(&["list"])["boxes"][0]["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn asks_natively(world: &World, title: &str, button: &str) -> String {
    eventually_or(SOON, title, || {
        if world.screen().exists(APP, title, button) {
            Ok(())
        } else {
            Err(format!("{:?}{}", world.screen().windows(APP), world.host_log()))
        }
    });
    world.screen().texts(APP, title).join("\n")
}

#[test]
fn stop_in_the_tray_asks_first_while_an_agent_works() {
    let world = World::desktop();
    world.create("fix-login");
    world.box_ok("fix-login", "agentbox-ctl agent-state claude working");
    let tray = world.tray();
    let stop = || tray.click(&[&entry_of(&tray, "fix-login", "Claude works"), "Stop"], SOON);
    stop();
    let said = asks_natively(&world, "Stop fix-login?", "Stop");
    assert!(said.contains("Claude works in fix-login."), "{said}");
    screen::shoot(world.session(), "confirm-stop");
    // Enter is the careful answer.
    let key = |key: &str| {
        let _ = world.session().command("wmctrl").args(["-a", "Stop fix-login?"]).status();
        assert!(world.session().command("xdotool").args(["key", key]).status().unwrap().success());
    };
    eventually(SOON, "Enter being taken", || {
        key("Return");
        let windows = world.screen().windows(APP);
        windows.iter().all(|title| !title.contains("Stop fix-login?")).then_some(())
    });
    assert_eq!(state_of_the_box(&world), "running");
    stop();
    world.screen().press(APP, "Stop fix-login?", "Cancel", SOON);
    world.screen().gone(APP, "Stop fix-login?", SOON);
    assert_eq!(state_of_the_box(&world), "running");
    stop();
    world.screen().press(APP, "Stop fix-login?", "Stop", SOON);
    eventually(SOON, "the box stopped", || (state_of_the_box(&world) == "stopped").then_some(()));
}

#[test]
fn quit_in_the_tray_asks_first_while_a_question_is_open_and_then_denies_it() {
    let mut world = World::desktop();
    world.create("fix-login");
    world.commit("fix-login", "One");
    let push = world.push("fix-login");
    world.question_of("fix-login");
    let tray = world.tray();
    tray.click(&["Quit AgentBox"], SOON);
    let said = asks_natively(&world, "Quit AgentBox?", "Quit");
    assert!(said.contains("1 open question would be denied:"), "{said}");
    assert!(said.contains("fix-login asks: Push 1 commit to origin/agentbox/fix-login"), "{said}");
    screen::shoot(world.session(), "confirm-quit");
    world.screen().press(APP, "Quit AgentBox?", "Cancel", SOON);
    world.screen().gone(APP, "Quit AgentBox?", SOON);
    assert_eq!(world.questions().len(), 1, "nothing was answered");
    tray.click(&["Quit AgentBox"], SOON);
    world.screen().press(APP, "Quit AgentBox?", "Quit", SOON);
    world.await_host_end();
    // Its shell went with the host; what it asked for is a no.
    assert_ne!(push.end().code, Some(0));
    assert_eq!(world.at_remote("agentbox/fix-login"), None);
    world.start_desktop();
    let trail = world.json(&["audit", "fix-login"])["records"].to_string();
    assert!(trail.contains("the host stopped, denied"), "{trail}");
}

/// The screen's server dies in the middle of a question: nothing is allowed, and the next command has a
/// host again.
#[test]
fn a_display_that_goes_away_allows_nothing() {
    let mut world = World::desktop();
    world.create("gone");
    world.commit("gone", "Never seen");
    let push = world.push("gone");
    world.question_of("gone");
    let session = format!("SESSION_DIR={}", world.session().dir().display());
    let server = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let is_server = read("comm").starts_with(b"Xvfb");
        let is_ours = String::from_utf8_lossy(&read("environ")).contains(&session);
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (is_server && is_ours).then(|| nix::unistd::Pid::from_raw(pid))
    });
    let server = server.expect("the display's server");
    nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).unwrap();
    world.await_host_end();
    assert_ne!(push.end().code, Some(0));
    assert_eq!(world.at_remote("agentbox/gone"), None, "nothing was pushed");
    // The box goes on, and somebody looks after it again, without a desktop.
    let boxes = world.json(&["list"]);
    assert_eq!(boxes["boxes"][0]["state"], "running", "{boxes}");
    let app = world.agentbox(&["app", "status", "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&app.stdout).unwrap();
    assert_eq!((app.status.code(), &said["app"]["headless"]), (Some(1), &true.into()), "{said}");
    world.ok(&["quit"]);
}

/// A process with a webview's library in it is twice as large, even if it never makes a webview. How large:
/// `make bench`.
#[test]
fn no_library_of_a_webview_is_in_the_tray_app() {
    let world = World::desktop();
    world.tray();
    let libraries = |pid: nix::unistd::Pid| {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let is_webview = |line: &&str| line.contains("webkit") || line.contains("javascriptcore");
        (maps.contains("/libgtk-3"), maps.lines().filter(is_webview).count())
    };
    assert_eq!(libraries(world.host_pid()), (true, 0));
    world.tray().activate();
    let window = eventually(SOON, "the window", || crate::window::window_of(world.host_pid()));
    eventually(SOON, "the window's webview", || (libraries(window).1 > 0).then_some(()));
    assert_eq!(libraries(world.host_pid()), (true, 0));
}

/// What the desktop's portal says about colours, as desktops with a switch for dark colours have one.
struct Portal {
    scheme: u32,
}

#[zbus::interface(name = "org.freedesktop.portal.Settings")]
impl Portal {
    fn read(&self, namespace: &str, key: &str) -> zbus::fdo::Result<Value<'static>> {
        if (namespace, key) == ("org.freedesktop.appearance", "color-scheme") {
            return Ok(Value::Value(Box::new(Value::U32(self.scheme))));
        }
        Err(zbus::fdo::Error::Failed("no such setting".into()))
    }
}

#[test]
fn the_app_is_dark_when_the_desktop_is() {
    const PATH: &str = "/org/freedesktop/portal/desktop";
    const SETTINGS: &str = "org.freedesktop.portal.Settings";
    const DARK: u32 = 1;
    const LIGHT: u32 = 2;
    let mut world = World::desktop_before(Options::default());
    let bus = world.session().bus();
    bus.object_server().at(PATH, Portal { scheme: LIGHT }).unwrap();
    bus.request_name("org.freedesktop.portal.Desktop").unwrap();
    world.start_desktop();
    let icon = world.tray();
    let shown = || icon.icon_hash().expect("a picture");
    let light = shown();
    // Nobody says when the app listens, so it is said until it is heard.
    let turned = |scheme: u32, is: &dyn Fn(u64) -> bool| {
        eventually(SOON, "another picture", || {
            let body = ("org.freedesktop.appearance", "color-scheme", Value::U32(scheme));
            bus.emit_signal(None::<&str>, PATH, SETTINGS, "SettingChanged", &body).unwrap();
            Some(shown()).filter(|hash| is(*hash))
        })
    };
    let dark = turned(DARK, &|hash| hash != light);
    turned(LIGHT, &|hash| hash == light);

    // One that starts in the dark asks.
    world.ok(&["quit"]);
    world.await_host_end();
    let portal = bus.object_server().interface::<_, Portal>(PATH).unwrap();
    portal.get_mut().scheme = DARK;
    world.start_desktop();
    let icon = world.tray();
    eventually(SOON, "the dark picture", || (icon.icon_hash() == Some(dark)).then_some(()));
}

/// Links and arguments reach the app that runs; they show a page and do nothing else.
#[test]
fn links_lead_to_pages_of_the_app_that_runs() {
    let world = World::desktop();
    let made = world.create("linked");
    let program = world.program("agentbox-desktop");
    let open = |link: &str| world.command(&program).arg(link).output().unwrap();
    let bad = open("agentbox://answer/1?verdict=allow");
    assert_eq!(bad.status.code(), Some(2), "{}", String::from_utf8_lossy(&bad.stderr));
    assert!(pages(&world).is_empty());
    assert!(open("agentbox://box/linked/logs").status.success());
    let wanted = format!("box/{}/logs", made["id"].as_str().unwrap());
    eventually_or(SOON, "the window at the box's log", || {
        let at = pages(&world);
        if at == [wanted.clone()] { Ok(()) } else { Err(format!("{at:?}")) }
    });
    // The next one is told to the window that is there.
    assert!(open("agentbox://settings").status.success());
    assert_eq!(window_processes(&world), 1);
}

/// The app comes and goes; boxes do not notice.
#[test]
fn the_app_is_restarted_and_stopped_from_the_command_line() {
    let mut world = World::desktop();
    world.create("fix-login");
    let began = world.box_ok("fix-login", "stat -c %Y /proc/1");
    let first = world.host_pid().as_raw();
    let again = world.json(&["app", "restart"])["app"].clone();
    world.await_host_end();
    assert_eq!(again["running"], true, "{again}");
    assert_ne!(again["pid"], first, "{again}");
    world.tray();
    assert_eq!(world.box_ok("fix-login", "stat -c %Y /proc/1"), began, "the box was restarted");

    let stopped = world.json(&["app", "stop"])["app"].clone();
    assert_eq!(
        (&stopped["running"], &stopped["pid"]),
        (&false.into(), &serde_json::Value::Null),
        "{stopped}"
    );
    assert_eq!(world.agentbox(&["app", "status"]).status.code(), Some(1));
    let tray = Tray::new(world.session());
    eventually(SOON, "no icon", || {
        tray.items().iter().all(|icon| !icon.title().contains("AgentBox")).then_some(())
    });
    engine(&world, async |docker| {
        let found = docker.inspect_container("agentbox-fix-login", None).await.unwrap();
        assert_eq!(found.state.unwrap().running, Some(true), "the box goes on");
    });
    // What does not run is stopped already.
    world.ok(&["app", "stop"]);
}

/// Starting at login is a file that comes and goes with the setting.
#[test]
fn the_app_starts_at_login_when_it_is_wanted() {
    let world = World::desktop();
    let file = world.session().home().join(".config/autostart/agentbox.desktop");
    assert!(!file.exists(), "nobody asked for it");
    assert_eq!(
        world.json(&["config", "get", "desktop.launchAtLogin"])["setting"]["value"],
        "false"
    );
    world.ok(&["config", "set", "desktop.launchAtLogin", "true", "--global"]);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert!(text.contains("/agentbox-desktop\""), "{text}");
    world.ok(&["config", "set", "desktop.launchAtLogin", "false", "--global"]);
    assert!(!file.exists());
}
