//! A push in a box becomes a question; whoever answers first, wherever, decides.

use crate::desktop::opens_at;
use crate::world::{APP, AT_ONCE, Running, SOON, World};
use agentbox_e2e::notify::{Manners, Server};
use agentbox_e2e::screen;
use agentbox_e2e::session::Options;
use agentbox_e2e::tray::{Entry, outline};
use agentbox_e2e::wait::{eventually, eventually_or};
use agentbox_e2e::webdriver::Browser;

const BRANCH: &str = "agentbox/fix-login";
const SUBJECT: &str = "Check token expiry before refresh";

/// A box with a commit that is about to be pushed.
fn about_to_push() -> (World, String) {
    let world = World::desktop();
    world.create("fix-login");
    let oid = world.commit("fix-login", SUBJECT);
    (world, oid)
}

/// The window at its inbox; it draws the question like every other surface.
fn window(world: &World) -> Browser {
    Browser::open(
        world.session(),
        &world.program("agentbox-desktop"),
        &["--window", "--page", "inbox"],
    )
}

/// Waits until every surface shows the question.
#[track_caller]
fn shown_everywhere(world: &World, window: &Browser) {
    window.find("[data-testid^='allow-']", SOON);
    shown_natively(world, "Allow once");
}

/// Waits until every native surface shows the question.
#[track_caller]
fn shown_natively(world: &World, yes: &str) {
    eventually_or(SOON, "the dialog", || {
        let windows = world.screen().windows(APP);
        if windows.iter().any(|w| w.contains("fix-login asks")) {
            Ok(())
        } else {
            Err(format!("{windows:?}{}", world.host_log()))
        }
    });
    // The dialog's button comes alive when the grace is over; no hand is quicker than that.
    eventually(SOON, "the end of the grace", || {
        world.screen().exists(APP, "fix-login asks", yes).then_some(())
    });
    world.notifications().wait_for("fix-login asks", SOON);
    let tray = world.tray();
    eventually(SOON, "the question in the tray menu", || {
        tray.menu().iter().any(|e| e.label.starts_with("fix-login asks")).then_some(())
    });
}

/// The answer is in: nothing may still ask, anywhere, a second later.
#[track_caller]
fn gone_everywhere(world: &World, window: &Browser) {
    let (screen, tray, notifications) = (world.screen(), world.tray(), world.notifications());
    std::thread::scope(|all| {
        all.spawn(|| {
            eventually(AT_ONCE, "no button left in the window", || {
                window.find_all("[data-testid^='allow-']").is_empty().then_some(())
            });
        });
        all.spawn(|| screen.gone(APP, "fix-login asks", AT_ONCE));
        all.spawn(|| {
            eventually(AT_ONCE, "the notification going away", || {
                notifications
                    .shown()
                    .iter()
                    .all(|n| !n.summary.contains("fix-login asks"))
                    .then_some(())
            });
        });
        all.spawn(|| {
            eventually(AT_ONCE, "the tray menu without the question", || {
                tray.menu().iter().all(|e| !e.label.contains("asks")).then_some(())
            });
        });
        all.spawn(|| {
            eventually(AT_ONCE, "no open approval", || world.questions().is_empty().then_some(()));
        });
    });
}

fn records(world: &World) -> Vec<String> {
    world.audit_kinds("fix-login")
}

#[test]
fn allow_on_the_native_dialog_pushes() {
    let (world, oid) = about_to_push();
    let window = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &window);
    let texts = world.screen().texts(APP, "fix-login asks").join("\n");
    for wanted in [
        "Push 1 commit to origin/agentbox/fix-login",
        SUBJECT,
        "git push -- origin refs/agentbox/agentbox/fix-login:refs/heads/agentbox/fix-login",
    ] {
        assert!(texts.contains(wanted), "the dialog does not show {wanted:?}:\n{texts}");
    }
    screen::shoot(world.session(), "question");
    // With the mouse, as a person would.
    let (x, y) = world.screen().place(APP, "fix-login asks", "Allow once", SOON);
    let mut mouse = world.session().command("xdotool");
    mouse.args(["mousemove", &x.to_string(), &y.to_string(), "click", "1"]);
    assert!(mouse.status().unwrap().success());
    eventually(SOON, "the click being taken", || world.questions().is_empty().then_some(()));
    gone_everywhere(&world, &window);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), Some(oid));
    assert_eq!(records(&world), ["box-created", "asked", "answered", "executed"]);
}

#[test]
fn the_same_push_again_is_one_question_that_says_how_often_it_was_asked() {
    let (world, oid) = about_to_push();
    let window = window(&world);
    let first = world.push("fix-login");
    shown_everywhere(&world, &window);
    assert!(window.find_all("[data-testid^='times-']").is_empty());
    let second = world.push("fix-login");
    eventually_or(SOON, "one question, asked twice", || {
        let open = world.questions();
        if open.len() == 1 && open[0]["times"] == 2 { Ok(()) } else { Err(format!("{open:?}")) }
    });
    eventually_or(SOON, "the dialog saying so", || {
        let texts = world.screen().texts(APP, "fix-login asks").join("\n");
        if texts.contains("asked 2 times") { Ok(()) } else { Err(texts) }
    });
    screen::shoot(world.session(), "question-asked-again");
    window.find_text("[data-testid^='times-']", "asked 2 times", SOON);
    let listed = world.ok(&["approvals"]);
    assert!(listed.contains("asked 2 times"), "{listed}");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    for push in [first, second] {
        let ended = push.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    assert_eq!(world.at_remote(BRANCH), Some(oid));
    let asked = records(&world).iter().filter(|kind| *kind == "asked").count();
    assert_eq!(asked, 1);
}

#[test]
fn deny_on_the_native_dialog_changes_nothing() {
    let (world, _) = about_to_push();
    let window = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &window);
    world.screen().press(APP, "fix-login asks", "Deny", SOON);
    gone_everywhere(&world, &window);
    let ended = push.end();
    assert_eq!(ended.code, Some(10), "{}", ended.err);
    assert!(ended.err.contains("denied by user"), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), None);
}

/// Brings a window to the front, as a click on it would.
#[track_caller]
fn focus(world: &World, title: &str) {
    eventually_or(SOON, "the dialog having the keyboard", || {
        let _ = world.session().command("wmctrl").args(["-a", title]).status();
        let mut ask = world.session().command("xdotool");
        let active = ask.args(["getactivewindow", "getwindowname"]).output().unwrap();
        let active = String::from_utf8_lossy(&active.stdout).trim().to_owned();
        if active == title { Ok(()) } else { Err(active) }
    });
}

#[test]
fn keys_can_deny_but_never_allow_by_accident() {
    for key in ["Return", "space", "Escape"] {
        let (world, _) = about_to_push();
        let push = world.push("fix-login");
        shown_natively(&world, "Allow once");
        focus(&world, "fix-login asks");
        assert!(world.session().command("xdotool").args(["key", key]).status().unwrap().success());
        let ended = push.end();
        assert_eq!(ended.code, Some(10), "{key}: {}", ended.err);
        assert_eq!(world.at_remote(BRANCH), None, "{key} pushed");
    }
}

/// Presses Tab until this button has the keyboard.
#[track_caller]
fn tab_to(world: &World, title: &str, button: &str) {
    let screen = world.screen();
    let at = || screen.focused(APP, title).unwrap_or_default();
    let mut seen = vec![at()];
    while seen.last().is_none_or(|last| last != button) {
        assert!(seen.len() < 20, "Tab never came to {button}: {seen:?}");
        press(world, "Tab");
        // The next Tab waits for this one, or it would go past.
        let before = seen.last().cloned().unwrap_or_default();
        seen.push(eventually(SOON, "Tab being taken", || Some(at()).filter(|now| *now != before)));
    }
}

fn press(world: &World, key: &str) {
    assert!(world.session().command("xdotool").args(["key", key]).status().unwrap().success());
}

#[test]
fn keys_alone_allow_on_the_dialog_when_they_are_led_there() {
    let (world, _) = about_to_push();
    for key in ["space", "Return"] {
        let oid = world.commit("fix-login", &format!("By {key}"));
        let push = world.push("fix-login");
        shown_natively(&world, "Allow once");
        focus(&world, "fix-login asks");
        assert_eq!(world.screen().focused(APP, "fix-login asks").as_deref(), Some("Deny"));
        tab_to(&world, "fix-login asks", "Allow once");
        press(&world, key);
        let ended = push.end();
        assert_eq!(ended.code, Some(0), "{key}: {}", ended.err);
        assert_eq!(world.at_remote(BRANCH), Some(oid), "{key}");
        world.screen().gone(APP, "fix-login asks", SOON);
    }
}

/// Somebody types into another program when the question comes: it goes on there.
#[test]
fn the_dialog_never_takes_the_keyboard() {
    const OTHER: &str = "Panel Preferences";
    let (world, _) = about_to_push();
    let opened = world.session().command("xfce4-panel").arg("--preferences").status();
    assert!(opened.unwrap().success());
    focus(&world, OTHER);
    let active = || {
        let ask = world.session().command("xdotool").arg("getactivewindow").output().unwrap();
        String::from_utf8_lossy(&ask.stdout).trim().to_owned()
    };
    let before = active();
    let push = world.push("fix-login");
    shown_natively(&world, "Allow once");
    assert_eq!(active(), before, "the dialog has the keyboard");
    // What is typed now is for the other program: Escape closes that, and is no answer here.
    press(&world, "Escape");
    world.screen().gone("xfce4-panel", OTHER, SOON);
    assert_eq!(world.questions().len(), 1, "nothing was answered");
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn allow_on_the_notification_pushes() {
    let (world, oid) = about_to_push();
    let window = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &window);
    let toast = world.notifications().wait_for("fix-login asks", SOON);
    assert!(toast.body.contains("Push 1 commit to origin/agentbox/fix-login"), "{}", toast.body);
    world.notifications().press(toast.id, "Allow once", SOON);
    gone_everywhere(&world, &window);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), Some(oid));
}

#[test]
fn allow_in_the_window_pushes() {
    let (world, oid) = about_to_push();
    let browser = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &browser);
    let id = world.question_of("fix-login")["id"].as_str().unwrap().to_owned();
    let allow = format!("[data-testid='allow-{id}'][aria-disabled='false']");
    let button = browser.find(&allow, SOON);
    let card = browser.find(&format!("[data-testid='question-{id}']"), SOON);
    assert!(browser.text(&card).contains(SUBJECT));
    browser.shoot("window-inbox");
    browser.click(&button);
    gone_everywhere(&world, &browser);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), Some(oid));
}

#[test]
fn an_answer_elsewhere_leaves_the_window_at_once() {
    let (world, _) = about_to_push();
    let browser = window(&world);
    let push = world.push("fix-login");
    let id = world.question_of("fix-login")["id"].as_str().unwrap().to_owned();
    let allow = format!("[data-testid='allow-{id}']");
    browser.find(&allow, SOON);
    world.ok(&["deny", &id[..8]]);
    eventually(AT_ONCE, "the buttons leaving the window", || {
        browser.find_all(&allow).is_empty().then_some(())
    });
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn allow_in_the_tray_menu_pushes() {
    let (world, oid) = about_to_push();
    let window = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &window);
    let tray = world.tray();
    let menu = tray.menu();
    let question =
        menu.iter().find(|e| e.label.starts_with("fix-login asks")).expect("the question");
    // A yes counts where it has stood for a moment.
    std::thread::sleep(std::time::Duration::from_millis(400));
    tray.click(&[&question.label, "Allow once"], SOON);
    gone_everywhere(&world, &window);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), Some(oid));
    let answered = world.json(&["audit", "fix-login"]);
    assert!(answered.to_string().contains("allowed (tray)"), "{answered}");
}

/// Panels name an entry by a number that counts places: when a question ends, those below move up and the next one
/// of its box comes in last, the number that was read for one must not mean another.
#[test]
fn a_click_aimed_at_one_question_never_allows_another() {
    const BOXES: [&str; 3] = ["ask-one", "ask-two", "ask-three"];
    let world = World::desktop_with(Options { dunst: false, keyring: false, panel: true });
    let mut asking = Vec::new();
    for name in BOXES {
        world.create(name);
        for n in 1..=4 {
            let script = format!("agentbox-ctl checkpoint create --name {name}-{n}");
            asking.push(world.begin(name, &script));
        }
    }
    let open = |many: usize| {
        eventually_or(SOON, &format!("{many} questions"), || {
            let open = world.questions();
            if open.len() == many { Ok(()) } else { Err(format!("{open:?}")) }
        });
    };
    open(12);
    let tray = world.tray();
    // Each box has one of its questions there.
    let asked = |what: &str, fits: &dyn Fn(&[Entry]) -> bool| {
        eventually_or(SOON, what, || {
            let menu = tray.menu();
            let is_question = |entry: &&Entry| entry.label.contains(" asks: ");
            let asked: Vec<Entry> = menu.iter().filter(is_question).cloned().collect();
            if asked.len() == BOXES.len() && fits(&asked) { Ok(asked) } else { Err(outline(&menu)) }
        })
    };
    for round in 1..=6 {
        let before = asked("a question of each box", &|_| true);
        let child = |of: &Entry, label: &str| {
            of.children.iter().find(|entry| entry.label == label).cloned().expect(label)
        };
        let (no, yes) = (child(&before[0], "Deny"), child(&before[1], "Allow once"));
        // Read and aimed at for longer than any pause that a yes has to wait.
        std::thread::sleep(std::time::Duration::from_millis(500));
        tray.click_entry(&no).expect("a no is taken");
        let after = asked("the others moving up", &|now| now[0].label == before[1].label);
        assert_ne!(after[1].label, before[1].label, "another one stands there");
        let clicked = tray.click_entry(&yes);
        assert!(clicked.is_err(), "round {round}: the old number still means something");
        open(12 - round);
    }
    let trail = world.json(&["audit"])["records"].to_string();
    assert!(trail.contains("denied (tray)") && !trail.contains("allowed"), "{trail}");
    world.ok(&["app", "stop", "--yes"]);
    for asked in asking {
        assert_ne!(asked.end().code, Some(0));
    }
}

#[test]
fn allow_on_the_command_line_pushes() {
    let (world, oid) = about_to_push();
    let window = window(&world);
    let push = world.push("fix-login");
    shown_everywhere(&world, &window);
    let listed = world.ok(&["approvals"]);
    assert!(listed.contains(SUBJECT), "{listed}");
    world.approve("fix-login", &[]);
    gone_everywhere(&world, &window);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote(BRANCH), Some(oid));
}

#[test]
fn a_command_that_is_interrupted_takes_its_question_with_it() {
    let (world, _) = about_to_push();
    // The box's own process is ended, as an agent's would be.
    let push = world.push("fix-login");
    shown_natively(&world, "Allow once");
    let id = world.question_of("fix-login")["id"].as_str().unwrap().to_owned();
    world.box_ok("fix-login", "pkill -INT -x git");
    eventually(SOON, "the question being withdrawn", || world.questions().is_empty().then_some(()));
    assert!(!world.agentbox(&["approve", &id]).status.success());
    assert_ne!(push.end().code, Some(0));
    assert_eq!(world.at_remote(BRANCH), None);
}

#[test]
fn a_remembered_answer_holds_until_it_is_taken_back() {
    let (world, _) = about_to_push();
    let push = world.push("fix-login");
    world.question_of("fix-login");
    world.approve("fix-login", &["--for", "1h"]);
    assert_eq!(push.end().code, Some(0));
    let second = world.commit("fix-login", "Second");
    assert_eq!(world.push("fix-login").end().code, Some(0));
    assert_eq!(world.at_remote(BRANCH), Some(second));
    let rules = world.json(&["grants"]);
    let rule = rules["grants"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["grants", "rm", &rule]);
    world.commit("fix-login", "Third");
    let push = world.push("fix-login");
    world.question_of("fix-login");
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn files_that_a_new_box_wants_are_asked_about_on_every_surface() {
    let world = World::desktop();
    let home = world.home().parent().unwrap().to_owned();
    std::fs::create_dir(home.join("fixtures")).unwrap();
    std::fs::write(home.join("fixtures/users.json"), "[]").unwrap();
    std::fs::write(home.join(".npmrc"), "//registry.example.org/:_authToken=hidden").unwrap();
    let yaml = "carry:\n  - ~/.npmrc\n  - {src: ~/fixtures, dest: /workspace/fixtures}\n";
    std::fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
    let create = || {
        let mut command = world.agentbox_command(&["create", "-n", "fix-login"]);
        command.stdin(std::process::Stdio::null());
        Running::start(command)
    };
    let window = window(&world);
    let shown = || {
        window.find("[data-testid^='allow-']", SOON);
        shown_natively(&world, "Copy");
    };

    let refused = create();
    shown();
    let texts = world.screen().texts(APP, "fix-login asks").join("\n");
    for wanted in [
        "Copy 2 files and folders into the new box fix-login",
        "~/.npmrc → /home/vscode/.npmrc",
        "~/fixtures → /workspace/fixtures",
        "looks like a credential",
    ] {
        assert!(texts.contains(wanted), "the dialog does not show {wanted:?}:\n{texts}");
    }
    assert!(!texts.contains("hidden"), "{texts}");
    let menu = world.tray().menu();
    let entry = menu.iter().find(|e| e.label.starts_with("fix-login asks")).expect("the question");
    let offered: Vec<_> = entry.children.iter().map(|e| e.label.as_str()).collect();
    assert_eq!(offered, ["Show", "Cancel"], "the tray has the question's own words");
    let toast = world.notifications().wait_for("fix-login asks", SOON);
    eventually_or(SOON, "the same words on the notification", || {
        let labels = world.notifications().actions(toast.id);
        let same = labels.contains(&"Cancel".to_owned()) && !labels.contains(&"Deny".to_owned());
        if same { Ok(()) } else { Err(format!("{labels:?}")) }
    });
    screen::shoot(world.session(), "question-carry");
    window.shoot("inbox-carry");
    world.screen().press(APP, "fix-login asks", "Cancel", SOON);
    gone_everywhere(&world, &window);
    let ended = refused.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("no box was made"), "{}", ended.err);
    assert!(world.json(&["list"])["boxes"].as_array().unwrap().is_empty());

    let allowed = create();
    shown();
    window.click(&window.find("[data-testid^='allow-']", SOON));
    gone_everywhere(&world, &window);
    let ended = allowed.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let there = "cat fixtures/users.json; stat -c %a ~/.npmrc";
    assert_eq!(world.box_ok("fix-login", there), "[]644");
}

/// Two boxes that both have something to push.
fn two_about_to_push(mut world: World, theme: Option<&str>) -> World {
    if let Some(theme) = theme {
        world.set("GTK_THEME", theme);
    }
    world.start_desktop();
    for name in ["fix-login", "docs-bot"] {
        world.create(name);
        world.commit(name, SUBJECT);
    }
    world
}

/// The titles of the dialogs on screen, which are one at most.
#[track_caller]
fn dialog(world: &World) -> Option<String> {
    let mut titles = world.screen().windows(APP);
    titles.retain(|title| title.ends_with(" asks") || title.ends_with(" asked"));
    assert!(titles.len() <= 1, "{titles:?}");
    titles.pop()
}

#[track_caller]
fn dialog_is(world: &World, title: &str) {
    eventually_or(SOON, title, || {
        let seen = dialog(world);
        if seen.as_deref() == Some(title) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

#[track_caller]
fn dialog_says(world: &World, title: &str, text: &str) {
    eventually_or(SOON, &format!("“{text}” in the dialog"), || {
        let texts = world.screen().texts(APP, title);
        if texts.iter().any(|t| t == text) { Ok(()) } else { Err(format!("{texts:?}")) }
    });
}

#[test]
fn questions_come_one_after_the_other() {
    let world = two_about_to_push(World::desktop_before(Options::default()), None);
    let first = world.push("fix-login");
    dialog_is(&world, "fix-login asks");
    let second = world.push("docs-bot");
    world.question_of("docs-bot");
    dialog_says(&world, "fix-login asks", "1 of 2");
    assert_eq!(dialog(&world).as_deref(), Some("fix-login asks"), "nothing takes its place");
    screen::shoot(world.session(), "question-1-of-2");
    world.screen().press(APP, "fix-login asks", "Allow once", SOON);
    dialog_is(&world, "docs-bot asks");
    assert_eq!(first.end().code, Some(0));
    let texts = world.screen().texts(APP, "docs-bot asks");
    assert!(texts.iter().all(|t| !t.starts_with("1 of")), "{texts:?}");
    assert_eq!(world.questions().len(), 1, "the second one is still open");
    // What comes right after the first dialog is not for the second: see below.
    eventually(SOON, "the end of the grace", || {
        world.screen().exists(APP, "docs-bot asks", "Allow once").then_some(())
    });
    world.screen().press(APP, "docs-bot asks", "Deny", SOON);
    assert_eq!(second.end().code, Some(10));
    eventually(AT_ONCE, "no dialog", || dialog(&world).is_none().then_some(()));
}

#[test]
fn what_is_over_before_its_turn_is_not_shown() {
    let world = two_about_to_push(World::desktop_before(Options::default()), Some("Adwaita:dark"));
    let first = world.push("fix-login");
    dialog_is(&world, "fix-login asks");
    let second = world.push("docs-bot");
    world.question_of("docs-bot");
    dialog_says(&world, "fix-login asks", "1 of 2");
    world.screen().press(APP, "fix-login asks", "Remember…", SOON);
    screen::shoot(world.session(), "question-1-of-2-dark");
    world.ok(&["deny", "docs-bot"]);
    assert_eq!(second.end().code, Some(10));
    eventually_or(SOON, "no place in a row of one", || {
        let texts = world.screen().texts(APP, "fix-login asks");
        if texts.iter().all(|t| t != "1 of 2") { Ok(()) } else { Err(format!("{texts:?}")) }
    });
    world.ok(&["deny", "fix-login"]);
    assert_eq!(first.end().code, Some(10));
    eventually_or(SOON, "no dialog", || {
        let seen = dialog(&world);
        assert_ne!(seen.as_deref(), Some("docs-bot asks"));
        if seen.is_none() { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

/// A second click where the first one was a moment ago means nothing for the question that came there.
#[test]
fn a_double_click_answers_one_question() {
    let world = two_about_to_push(World::desktop_before(Options::default()), None);
    let first = world.push("fix-login");
    dialog_is(&world, "fix-login asks");
    let second = world.push("docs-bot");
    dialog_says(&world, "fix-login asks", "1 of 2");
    eventually(SOON, "the end of the grace", || {
        world.screen().exists(APP, "fix-login asks", "Allow once").then_some(())
    });
    let (x, y) = world.screen().place(APP, "fix-login asks", "Allow once", SOON);
    let mut mouse = world.session().command("xdotool");
    mouse.args(["mousemove", &x.to_string(), &y.to_string()]);
    mouse.args(["click", "--repeat", "4", "--delay", "80", "1"]);
    assert!(mouse.status().unwrap().success());
    assert_eq!(first.end().code, Some(0));
    dialog_is(&world, "docs-bot asks");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(world.questions().len(), 1, "the second one is still open");
    assert_eq!(world.at_remote("agentbox/docs-bot"), None);
    world.ok(&["deny", "docs-bot"]);
    assert_eq!(second.end().code, Some(10));
}

#[test]
fn a_dialog_can_be_heard() {
    let (world, _) = about_to_push();
    let push = world.push("fix-login");
    shown_natively(&world, "Allow once");
    world.screen().press(APP, "fix-login asks", "Remember…", SOON);
    world.screen().exists(APP, "fix-login asks", "This project");
    let spoken = world.screen().spoken(APP, "fix-login asks");
    for (name, about) in [
        ("fix-login asks", "fix-login needs you: Push 1 commit to origin/agentbox/fix-login"),
        ("The colour of fix-login", ""),
        ("What it would do", "Where, on what, and the exact command"),
        ("The rule", "Choosing allows nothing; the last line is the rule"),
        ("Who", ""),
        ("Until", ""),
        ("This project", "also every other box of shop, new ones too"),
        ("Allow and remember", "Lets the box do this, and makes the rule that is shown"),
        ("Deny", "Says no: nothing is done"),
        ("Mute box", "Denies what this box asks for an hour"),
    ] {
        let is = |part: &&(String, String)| part.0 == name && part.1 == about;
        assert!(spoken.iter().any(|part| is(&part)), "{name:?} {about:?} is not in {spoken:#?}");
    }
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn a_notification_daemon_without_buttons_still_tells() {
    let mut world = World::desktop_before(Options { dunst: false, ..Options::default() });
    let daemon = Server::start(world.session(), Manners::default());
    world.start_desktop();
    world.create("fix-login");
    world.commit("fix-login", SUBJECT);
    let push = world.push("fix-login");
    let toast = daemon.wait_for("fix-login asks", SOON);
    assert_eq!(toast.actions, Vec::<String>::new(), "there is nothing to press");
    // A press that nobody offered is a click on the notification at most.
    daemon.press(toast.id, "yes");
    world.screen().press(APP, "fix-login asks", "Deny", SOON);
    assert_eq!(push.end().code, Some(10));
    eventually(AT_ONCE, "no notification", || daemon.up().is_empty().then_some(()));
}

#[test]
fn a_notification_daemon_that_dies_in_the_middle_answers_nothing() {
    let mut world = World::desktop_before(Options { dunst: false, ..Options::default() });
    let buttons = Manners { actions: true, inhibited: false };
    let daemon = Server::start(world.session(), buttons);
    world.start_desktop();
    let id = world.create("fix-login")["id"].as_str().unwrap().to_owned();
    let oid = world.commit("fix-login", SUBJECT);
    let push = world.push("fix-login");
    let toast = daemon.wait_for("fix-login asks", SOON);
    daemon.kill();
    eventually(SOON, "a notice that notifications are missing", || {
        let status = world.json(&["status"]);
        let notices = status["status"]["notices"].as_array()?;
        notices.iter().any(|n| n["part"] == "notifications").then_some(())
    });
    assert_eq!(world.questions().len(), 1, "it is still open");
    dialog_is(&world, "fix-login asks");
    // Its successor shows the question, and its buttons count.
    let daemon = Server::start(world.session(), buttons);
    let again = daemon.wait_for("fix-login asks", SOON);
    assert_eq!(again.body, toast.body);
    let question = world.question_of("fix-login")["id"].as_str().unwrap().to_owned();
    daemon.press(again.id, "default");
    opens_at(&world, &format!("inbox/{question}"));
    daemon.press(again.id, "allow");
    assert_eq!(push.end().code, Some(0));
    assert_eq!(world.at_remote(BRANCH), Some(oid));

    // Who does not want to be disturbed is told of questions only.
    daemon.set(Manners { inhibited: true, ..buttons });
    world.box_ok("fix-login", "agentbox-ctl agent-state claude waiting");
    let tray = world.tray();
    eventually(SOON, "the agent in the tray", || {
        (tray.title() == "AgentBox needs you: 1 waiting agent").then_some(())
    });
    world.commit("fix-login", "Two");
    let push = world.push("fix-login");
    let toast = daemon.wait_for("fix-login asks", SOON);
    assert_eq!(daemon.up(), vec![toast.clone()], "no news");
    daemon.press(toast.id, "deny");
    assert_eq!(push.end().code, Some(10));
    daemon.set(buttons);
    world.box_ok("fix-login", "agentbox-ctl agent-state codex waiting");
    let news = daemon.wait_for("fix-login waits for you", SOON);
    daemon.press(news.id, "default");
    opens_at(&world, &format!("box/{id}"));
}
