//! Making a box in the window: the form, the steps as they tick, what breaks and what is called off.

use crate::carry::{configure, user_home, write};
use crate::checkpoints::Images;
use crate::create_faults::{Between, Fault, nothing_is_left};
use crate::world::{APP, Running, SOON, World};
use agentbox_e2e::screen;
use agentbox_e2e::session::Options;
use agentbox_e2e::tray::outline;
use agentbox_e2e::wait::eventually_or;
use agentbox_e2e::webdriver::Browser;
use serde_json::json;
use std::net::TcpListener;

const ENTER: &str = "\u{E007}";
const MAKE: &[&str] = &["POST", "/containers/create"];
const COPY: &[&str] = &["POST", "/exec/", "/start"];

/// A desktop whose host reaches its engine through the go-between.
fn world() -> (World, Between) {
    let mut world = World::desktop_before(Options::default());
    let between = Between::new(&world);
    world.set("DOCKER_HOST", &between.path);
    world.start_desktop();
    (world, between)
}

fn window(world: &World, page: &str) -> Browser {
    let program = world.program("agentbox-desktop");
    Browser::open(world.session(), &program, &["--window", "--page", page])
}

fn id(testid: &str) -> String {
    format!("[data-testid='{testid}']")
}

#[track_caller]
fn click(window: &Browser, testid: &str) {
    window.click(&window.find(&id(testid), SOON));
}

#[track_caller]
fn type_in(window: &Browser, testid: &str, text: &str) {
    window.type_text(&window.find(&id(testid), SOON), text);
}

/// Types the project's folder and waits until the host has looked at it.
#[track_caller]
fn give_folder(window: &Browser, world: &World) {
    type_in(window, "new-folder", &format!("{}{ENTER}", world.project().display()));
    window.find_text(&id("folder-found"), "Project shop", SOON);
}

/// Light and dark, for people to look at.
fn shoot(window: &Browser, name: &str) {
    window.shoot(name);
    // The driver cannot change the system's theme: the dark colours are put where the light ones are.
    window.execute(
        "const dark = [...document.styleSheets].flatMap((s) => [...s.cssRules])
           .filter((r) => r.media?.mediaText.includes('dark')).flatMap((r) => [...r.cssRules]);
         const style = document.createElement('style'); style.id = 'dark-now';
         style.textContent = dark.map((r) => r.cssText).join('\\n') + ':root{color-scheme:dark}';
         document.head.append(style)",
        &[],
    );
    window.shoot(&format!("{name}-dark"));
    window.execute("document.getElementById('dark-now').remove()", &[]);
}

/// The steps with their states, in order.
fn steps(window: &Browser) -> Vec<(String, String)> {
    let read = window.execute(
        "return [...document.querySelectorAll('[data-testid=making-step]')]
           .map((li) => [li.dataset.step, li.dataset.state])",
        &[],
    );
    serde_json::from_value(read).unwrap()
}

#[track_caller]
fn steps_become(window: &Browser, wanted: &[(&str, &str)]) {
    eventually_or(SOON, &format!("{wanted:?}"), || {
        let now = steps(window);
        let same = now.len() == wanted.len()
            && now.iter().zip(wanted).all(|(a, b)| (a.0.as_str(), a.1.as_str()) == *b);
        if same { Ok(()) } else { Err(format!("{now:?}")) }
    });
}

#[track_caller]
fn boxes(world: &World) -> Vec<String> {
    let listed = world.json(&["list", "--all"]);
    let names = listed["boxes"].as_array().unwrap().iter();
    names.map(|b| b["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_box_is_made_in_the_window_step_by_step() {
    let (world, between) = world();
    std::fs::write(world.project().join(".gitignore"), ".env\n").unwrap();
    std::fs::write(world.project().join(".env"), "A=1\n").unwrap();
    world.git(&world.project(), &["branch", "release"]);
    let window = window(&world, "boxes");
    // Whoever has no box yet is greeted, once.
    window.find_text("main h1", "Welcome", SOON);
    click(&window, "nav-boxes");
    window.find_text("main p", "No boxes yet", SOON);
    shoot(&window, "boxes-empty");
    click(&window, "new-box-button");
    assert!(window.find_all(&id("recent-shop")).is_empty(), "a project nobody had a box for");
    give_folder(&window, &world);
    window.find_text(&id("folder-found"), "on main", SOON);
    window.find_text(&id("env-files"), ".env", SOON);
    type_in(&window, "new-name", "win-made");
    click(&window, "branch-from");
    type_in(&window, "from-branch", "release");
    click(&window, "new-env");
    click(&window, "new-more");
    type_in(&window, "new-memory", "512m");
    shoot(&window, "new-box-form");
    window.resize(640, 520);
    window.shoot("new-box-form-narrow");
    window.resize(980, 680);

    between.arm(MAKE, Fault::Hold);
    click(&window, "new-create");
    // No page takes credentials along by itself.
    world.screen().press(APP, "AgentBox asks", "Take them along", SOON);
    let (look, make, copy) = ("Look at the project", "Make the box", "Copy the project");
    steps_become(&window, &[(look, "done"), (make, "running"), (copy, "waiting")]);
    window.find("[data-step='Make the box'] progress", SOON);
    shoot(&window, "new-box-making");
    // It goes on while somebody looks at something else.
    click(&window, "nav-inbox");
    click(&window, "nav-boxes");
    click(&window, "see-making");
    between.restore();

    window.find(&id("box-win-made"), SOON);
    window.find_text(&id("made"), "win-made is ready", SOON);
    shoot(&window, "box-made");
    click(&window, "nav-boxes");
    window.find(&id("uptime-win-made"), SOON);
    window.find(&id("memory-win-made"), SOON);
    shoot(&window, "boxes-made");
    let listed = world.json(&["list"])["boxes"][0].clone();
    assert_eq!((&listed["name"], &listed["state"]), (&json!("win-made"), &json!("running")));
    assert_eq!(world.box_ok("win-made", "cat .env; git log -1 --format=%s"), "A=1\nFirst");
    let details: serde_json::Value =
        serde_json::from_str(&world.ok(&["inspect", "win-made"])).unwrap();
    assert_eq!(details["details"]["limits"]["memoryBytes"], 512 << 20, "{details}");

    // The next one is offered the project.
    click(&window, "new-box-button");
    window.find(&id("recent-shop"), SOON);
    shoot(&window, "new-box-recent");
    click(&window, "recent-shop");
    window.find_text(&id("folder-found"), "Project shop", SOON);
}

/// The three answers to what a project wants of this computer, in the dialog and in the window.
#[test]
fn files_for_a_new_box_are_copied_left_out_or_call_it_off() {
    let world = World::desktop();
    write(user_home(&world).join("notes"), "mine\n", 0o640);
    configure(&world, "carry: [~/notes]\n");
    let create = |name: &str| Running::start(world.agentbox_command(&["create", "-n", name]));
    let asks = |name: &str| {
        let title = format!("{name} asks");
        eventually_or(SOON, &title, || {
            let there = world.screen().exists(APP, &title, "Copy");
            if there { Ok(()) } else { Err(format!("{:?}", world.screen().windows(APP))) }
        });
        title
    };
    let left_out = |name: &str, making: Running| {
        let made = making.end_within(SOON * 2);
        assert_eq!(made.code, Some(0), "{}", made.err);
        assert!(made.err.contains("1 entry of carry was not copied"), "{}", made.err);
        assert_eq!(world.box_ok(name, "ls ~/notes 2>/dev/null || echo none"), "none");
    };

    let making = create("off");
    let title = asks("off");
    let wanted = ["Remember…", "Mute box", "Without these files", "Copy", "Cancel"];
    let buttons = world.screen().buttons(APP, &title);
    assert!(wanted.iter().all(|one| buttons.contains(&(*one).to_owned())), "{buttons:?}");
    screen::shoot(world.session(), "question-carry");
    world.screen().press(APP, &title, "Cancel", SOON);
    assert_eq!(making.end().code, Some(1));
    assert_eq!(boxes(&world), Vec::<String>::new());

    let making = create("bare");
    let title = asks("bare");
    world.screen().press(APP, &title, "Without these files", SOON);
    left_out("bare", making);

    let window = window(&world, "inbox");
    let making = create("bare-too");
    asks("bare-too");
    let button = window.find("[data-testid^='without-']:not([aria-disabled='true'])", SOON);
    shoot(&window, "inbox-carry");
    window.click(&button);
    left_out("bare-too", making);

    let making = create("full");
    let title = asks("full");
    world.screen().press(APP, &title, "Copy", SOON);
    assert_eq!(making.end_within(SOON * 2).code, Some(0));
    assert_eq!(world.box_ok("full", "cat ~/notes"), "mine");
}

#[test]
fn a_box_that_cannot_be_made_in_the_window_says_at_which_step_and_leaves_nothing() {
    let (world, between) = world();
    let window = window(&world, "new");
    give_folder(&window, &world);
    type_in(&window, "new-name", "win-broken");
    between.arm(MAKE, Fault::Before);
    click(&window, "new-create");
    steps_become(
        &window,
        &[
            ("Look at the project", "done"),
            ("Make the box", "failed"),
            ("Copy the project", "waiting"),
        ],
    );
    let told = window.find_text(&id("making-problem"), "Make the box", SOON);
    let told = window.text(&told);
    assert!(told.contains("engine"), "{told}");
    shoot(&window, "new-box-failed");
    between.restore();
    nothing_is_left(&world, "in the window");
    assert_eq!(boxes(&world), Vec::<String>::new());

    // What was chosen is still there; the folder is not.
    click(&window, "making-back");
    let name = window.find(&id("new-name"), SOON);
    let value = || window.execute("return document.getElementById('new-name').value", &[]);
    assert_eq!(value(), "win-broken");
    drop(name);
    window.find_text(&id("folder-found"), "Project shop", SOON);
    let away = world.dir().join("away");
    std::fs::rename(world.project(), &away).unwrap();
    click(&window, "new-create");
    window.find_text(&id("making-problem"), "does not exist", SOON);
    shoot(&window, "new-box-folder-gone");
    std::fs::rename(&away, world.project()).unwrap();
    assert_eq!(boxes(&world), Vec::<String>::new());
    nothing_is_left(&world, "without a folder");
}

#[test]
fn cancel_in_the_window_takes_back_what_was_made() {
    let (world, between) = world();
    let window = window(&world, "new");
    give_folder(&window, &world);
    type_in(&window, "new-name", "win-off");
    between.arm(COPY, Fault::Hold);
    click(&window, "new-create");
    steps_become(
        &window,
        &[
            ("Look at the project", "done"),
            ("Make the box", "done"),
            ("Copy the project", "running"),
        ],
    );
    click(&window, "making-cancel");
    window.find_text(&id("making-title"), "win-off was called off", SOON);
    shoot(&window, "new-box-called-off");
    between.restore();
    nothing_is_left(&world, "called off");
    assert_eq!(boxes(&world), Vec::<String>::new());
    // Once more, and now to the end.
    click(&window, "making-back");
    window.find_text(&id("folder-found"), "Project shop", SOON);
    click(&window, "new-create");
    window.find(&id("box-win-off"), SOON);
}

#[test]
fn a_chosen_agent_is_started_in_a_box_from_a_checkpoint() {
    let world = World::desktop();
    let _images = Images(&world);
    world.create("win-base");
    world.box_ok(
        "win-base",
        "sudo tee /usr/local/bin/codex >/dev/null <<'X'\n#!/bin/sh\necho agent up; exec sleep 600\nX\n\
         sudo chmod 755 /usr/local/bin/codex",
    );
    world.ok(&["checkpoint", "create", "win-base", "--name", "with-agent"]);
    world.ok(&["destroy", "-y", "win-base"]);
    let window = window(&world, "new");
    click(&window, "recent-shop");
    window.find_text(&id("folder-found"), "Project shop", SOON);
    type_in(&window, "new-name", "win-agent");
    click(&window, "agent-codex");
    type_in(&window, "new-checkpoint", "with-agent");
    click(&window, "new-create");
    window.find(&id("box-win-agent"), SOON);
    let told = window.text(&window.find_text(&id("made"), "Codex runs in it", SOON));
    assert!(told.contains("agentbox attach win-agent"), "{told}");
    eventually_or(SOON, "the agent in its session", || {
        let shown = world.box_ok("win-agent", "tmux capture-pane -pJ -t =codex:");
        if shown.contains("agent up") { Ok(()) } else { Err(shown) }
    });

    // Its card says what it does, and nobody ends it in the middle by mistake.
    world.box_ok("win-agent", "agentbox-ctl agent-state codex working");
    window.find_text(&id("agent-win-agent-codex"), "works", SOON);
    click(&window, "stop-win-agent");
    window.find_text(&id("confirm-stop-win-agent"), "Codex works", SOON);
    shoot(&window, "boxes-stop");
    click(&window, "confirm-no-stop-win-agent");
    world.box_ok("win-agent", "agentbox-ctl agent-state codex waiting");
    window.find_text(&id("agent-win-agent-codex"), "waits for you", SOON);
    shoot(&window, "boxes-agent");
}

#[test]
fn a_folder_is_chosen_in_the_desktops_own_window() {
    let world = World::desktop();
    let window = window(&world, "new");
    let deep = world.project().join("api");
    std::fs::create_dir(&deep).unwrap();
    type_in(&window, "new-folder", &deep.display().to_string());
    click(&window, "choose-folder");
    eventually_or(SOON, "the chooser", || {
        let windows = world.screen().windows(APP);
        let there = windows.iter().any(|w| w.contains("Choose a project folder"));
        if there { Ok(()) } else { Err(format!("{windows:?}")) }
    });
    screen::shoot(world.session(), "new-box-chooser");
    world.screen().press(APP, "Choose a project folder", "Choose", SOON);
    window.find_text(&id("folder-found"), "Project shop", SOON);
    let value = window.execute("return document.getElementById('new-folder').value", &[]);
    assert_eq!(value, deep.display().to_string());
    // Leaving it changes nothing.
    click(&window, "choose-folder");
    world.screen().press(APP, "Choose a project folder", "Cancel", SOON);
    world.screen().gone(APP, "Choose a project folder", SOON);
    window.find_text(&id("folder-found"), "Project shop", SOON);
}

#[test]
fn the_tray_opens_the_page_for_a_new_box_and_a_boxs_web_app() {
    let mut world = World::desktop_before(Options::default());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.configure(&format!("proxy: {{port: {port}}}\n"));
    let opened = world.dir().join("opened");
    world.host_program("xdg-open", &format!("#!/bin/sh\necho \"$1\" >> {}\n", opened.display()));
    world.start_desktop();
    world.create("win-tray");
    let tray = world.tray();
    let label = eventually_or(SOON, "the box in the tray", || {
        let menu = tray.menu();
        let found = menu.iter().map(|e| e.label.clone()).find(|l| l.contains("win-tray"));
        found.ok_or_else(|| outline(&menu))
    });
    tray.click(&[&label, "Web app"], SOON);
    let lines = || std::fs::read_to_string(&opened).unwrap_or_default();
    let address = format!("http://win-tray.localhost:{port}\n");
    eventually_or(SOON, "the browser", || if lines() == address { Ok(()) } else { Err(lines()) });

    // Driven as every window here, but with the stand-in among its programs.
    let bin = world.dir().join("bin");
    let (desktop, path) = (world.program("agentbox-desktop"), bin.display());
    let script = format!("#!/bin/sh\nPATH={path}:$PATH exec {} \"$@\"\n", desktop.display());
    world.host_program("window", &script);
    let window = Browser::open(world.session(), &bin.join("window"), &["--window"]);
    // It hears the host from then on.
    window.find_text("nav footer", "AgentBox", SOON);
    tray.click(&["New box…"], SOON);
    window.find(&id("new-folder"), SOON);
    tray.click(&[&label, "Open"], SOON);
    click(&window, "open-web-win-tray");
    eventually_or(SOON, "the browser again", || {
        if lines() == address.repeat(2) { Ok(()) } else { Err(lines()) }
    });
}

#[test]
fn a_card_follows_the_tasks_and_services_of_its_box() {
    let world = World::desktop();
    let yaml = "tasks:
  install: {command: 'until [ -e go ]; do sleep 0.1; done'}
services:
  web: {command: 'until [ -e fall ]; do sleep 0.1; done; exit 3', needs: [install], restart: never}
";
    std::fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
    world.create("carded");
    let window = window(&world, "boxes");
    let unit = |name: &str| id(&format!("unit-carded-{name}"));
    click(&window, "units-carded");
    window.find_text(&unit("web"), "waits for install", SOON);
    window.find_text(&id("units-carded"), "0 of 1 service up, 0 of 1 task done", SOON);
    world.box_ok("carded", "touch go");
    window.find_text(&unit("install"), "done", SOON);
    window.find_text(&id("units-carded"), "1 of 1 service up, 1 of 1 task done", SOON);
    shoot(&window, "card-services");
    world.box_ok("carded", "touch fall");
    window.find_text(&unit("web"), "crashed", SOON);
    shoot(&window, "card-services-crashed");
}
