//! A person decides once for more than once, and is left alone when they want to be.

use crate::world::{APP, AT_ONCE, SOON, World};
use agentbox_e2e::screen;
use agentbox_e2e::wait::eventually;
use agentbox_e2e::webdriver::Browser;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

const ASKS: &str = "fix-login asks";

fn about_to_push() -> World {
    let world = World::desktop();
    world.create("fix-login");
    world.commit("fix-login", "One");
    world
}

#[track_caller]
fn dialog_appears(world: &World) {
    eventually(SOON, "the dialog, ready", || {
        world.screen().exists(APP, ASKS, "Allow once").then_some(())
    });
}

fn has_dialog(world: &World) -> bool {
    world.screen().windows(APP).iter().any(|title| title.contains(ASKS))
}

#[test]
fn a_rule_made_in_the_dialog_is_the_one_its_sentence_says() {
    let world = about_to_push();
    let push = world.push("fix-login");
    dialog_appears(&world);
    world.screen().press(APP, ASKS, "Remember…", SOON);
    world.screen().press(APP, ASKS, "This project", SOON);
    world.screen().press(APP, ASKS, "30 days", SOON);
    let sentence = eventually(SOON, "the rule as it is chosen", || {
        let texts = world.screen().texts(APP, ASKS);
        texts.into_iter().find(|t| t.starts_with("Let every box of shop push to"))
    });
    screen::shoot(world.session(), "remember");
    world.screen().press(APP, ASKS, "Allow and remember", SOON);
    assert_eq!(push.end().code, Some(0));

    let grants = world.json(&["grants"]);
    let grant = &grants["grants"][0];
    assert_eq!(grant["reach"], "project", "{grant}");
    let stored = grant["sentence"].as_str().unwrap();
    assert!(sentence.starts_with(stored), "shown {sentence:?}, kept {stored:?}");
    let days = grant["expiresAt"].as_u64().unwrap() - grant["createdAt"].as_u64().unwrap();
    assert_eq!(days, 30 * 24 * 3600 * 1000);
    world.commit("fix-login", "Two");
    assert_eq!(world.push("fix-login").end().code, Some(0), "covered by the rule");
}

#[test]
fn a_rule_made_in_the_window_is_kept() {
    let world = about_to_push();
    let program = world.program("agentbox-desktop");
    let window = Browser::open(world.session(), &program, &["--window", "--page", "inbox"]);
    let push = world.push("fix-login");
    let id = world.question_of("fix-login")["id"].as_str().unwrap().to_owned();
    let at = |what: &str| window.find(&format!("[data-testid='{what}-{id}']"), SOON);
    window.click(&at("remember"));
    window.click(&at("reach-project"));
    window.click(&at("until-today"));
    let sentence = window.text(&at("rule"));
    assert!(sentence.starts_with("Let every box of shop push to"), "{sentence}");
    window.shoot("window-remember");
    let ready = format!("[data-testid='allow-{id}'][aria-disabled='false']");
    window.click(&window.find(&ready, SOON));
    assert_eq!(push.end().code, Some(0));
    let grant = world.json(&["grants"])["grants"][0].clone();
    assert!(sentence.starts_with(grant["sentence"].as_str().unwrap()), "{sentence} {grant}");
    assert_eq!(grant["reach"], "project");
}

#[test]
fn a_dialog_whose_question_ended_elsewhere_says_so_and_goes() {
    let world = about_to_push();
    let push = world.push("fix-login");
    dialog_appears(&world);
    // It is said for two seconds only: somebody looks already when the answer comes.
    let screen = world.screen();
    std::thread::scope(|all| {
        all.spawn(|| {
            eventually(SOON, "the end in the dialog", || {
                let texts = screen.texts(APP, "fix-login asked").join("\n");
                let said = texts.contains("Denied on the command line");
                (said && !screen.exists(APP, "fix-login asked", "Allow once")).then_some(())
            });
        });
        world.ok(&["deny", "fix-login"]);
        world.screen().gone(APP, ASKS, AT_ONCE);
    });
    world.screen().gone(APP, "fix-login asked", SOON);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn nothing_steps_forward_in_the_quiet_and_what_is_open_is_shown_after() {
    let world = about_to_push();
    world.ok(&["quiet", "5m"]);
    let push = world.push("fix-login");
    world.question_of("fix-login");
    let tray = world.tray();
    eventually(SOON, "the question in the tray menu", || {
        tray.menu().iter().any(|e| e.label.starts_with(ASKS)).then_some(())
    });
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!has_dialog(&world));
    assert!(world.notifications().ever_shown().iter().all(|n| !n.summary.contains(ASKS)));
    tray.click(&["End quiet"], SOON);
    dialog_appears(&world);
    world.notifications().wait_for(ASKS, SOON);
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn a_question_that_would_time_out_in_the_quiet_is_notified() {
    let world = World::desktop_before(agentbox_e2e::session::Options::default());
    world.configure("approvals: {timeoutSeconds: 60, whenNobodyWatches: wait}\n");
    let mut world = world;
    world.start_desktop();
    world.create("fix-login");
    world.commit("fix-login", "One");
    world.ok(&["quiet", "1h"]);
    let push = world.push("fix-login");
    world.notifications().wait_for(ASKS, SOON);
    assert!(!has_dialog(&world));
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn nothing_is_allowed_from_a_locked_screen() {
    let world = about_to_push();
    let push = world.push("fix-login");
    dialog_appears(&world);
    let screen_saver = world.session().bus();
    let says = |locked: bool| {
        let name = "org.freedesktop.ScreenSaver";
        screen_saver
            .emit_signal(None::<&str>, "/ScreenSaver", name, "ActiveChanged", &locked)
            .unwrap();
    };
    says(true);
    eventually(SOON, "the lock being noticed", || {
        world.host_log().contains("the screen is locked").then_some(())
    });
    let toast = world.notifications().wait_for(ASKS, SOON);
    world.notifications().press(toast.id, "Allow once", SOON);
    world.screen().press(APP, ASKS, "Allow once", SOON);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.questions().len(), 1, "it is still open");
    says(false);
    eventually(SOON, "the unlocking being noticed", || {
        world.host_log().contains("the screen is unlocked").then_some(())
    });
    // A yes that comes right after that is not taken; one a moment later is.
    eventually(SOON, "the yes being taken", || {
        world.screen().try_press(APP, ASKS, "Allow once");
        world.questions().is_empty().then_some(())
    });
    assert_eq!(push.end().code, Some(0));
}

#[test]
fn relay_a22_a_box_is_muted_from_its_question() {
    let world = about_to_push();
    let push = world.push("fix-login");
    dialog_appears(&world);
    world.screen().press(APP, ASKS, "Mute box", SOON);
    assert_eq!(push.end().code, Some(10));
    let again = world.push("fix-login").end();
    assert_eq!(again.code, Some(10), "{}", again.err);
    assert!(!has_dialog(&world));
    let kinds = world.audit_kinds("fix-login");
    assert!(kinds.iter().any(|k| k == "box-muted"), "{kinds:?}");
    world.ok(&["mute", "fix-login", "--off"]);
    let push = world.push("fix-login");
    dialog_appears(&world);
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}

#[test]
fn relay_a22_a_box_that_keeps_asking_can_be_silenced_from_the_note_about_it() {
    let world = about_to_push();
    for _ in 0..3 {
        let push = world.push("fix-login");
        world.question_of("fix-login");
        world.ok(&["deny", "fix-login"]);
        assert_eq!(push.end().code, Some(10));
    }
    let note = world.notifications().wait_for("fix-login keeps asking", SOON);
    assert!(note.body.contains("three times"), "{}", note.body);
    world.notifications().press(note.id, "Mute for an hour", SOON);
    eventually(SOON, "the box being muted", || {
        let boxes = world.json(&["list"]);
        boxes["boxes"][0]["mutedUntil"].as_u64()
    });
}

#[test]
fn a_menu_of_the_persons_own_answers_without_a_desktop() {
    let mut world = World::bare();
    let menu = world.dir().join("menu");
    let seen = world.dir().join("seen");
    world.host_program(
        "menu",
        &format!("#!/bin/sh\ncat > {0}\nsleep 0.5\ntail -n 1 {0}\n", seen.display()),
    );
    std::fs::rename(world.dir().join("bin/menu"), &menu).unwrap();
    world.configure(&format!(
        "approvals: {{promptCommand: ['{}'], whenNobodyWatches: deny}}\n",
        menu.display()
    ));
    world.start_serve();
    world.create("fix-login");
    world.commit("fix-login", "One");
    let ended = world.push("fix-login").end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let seen = std::fs::read_to_string(&seen).unwrap();
    assert!(seen.starts_with("1. Deny\n"), "{seen}");
    assert!(seen.contains("Push 1 commit to origin/agentbox/fix-login"), "{seen}");
}

#[test]
fn where_nobody_watches_nobody_waits() {
    // As it is without any setting, on a computer without a desktop.
    let mut world = World::bare();
    world.start_serve();
    world.create("fix-login");
    world.commit("fix-login", "One");
    // Whoever only listens to what boxes tell answers nothing.
    let mut listener = world.agentbox_command(&["events", "--follow"]);
    let mut listener = listener.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    world.box_ok("fix-login", "agentbox-ctl event tick");
    assert!(lines.next().unwrap().unwrap().contains("tick"));
    let ended = world.push("fix-login").end();
    assert_eq!(ended.code, Some(10), "{}", ended.err);
    assert!(ended.err.contains("agentbox approvals --answer"), "{}", ended.err);
    assert!(world.audit_kinds("fix-login").iter().all(|k| k != "asked"));
    listener.kill().unwrap();
    listener.wait().unwrap();
}

#[test]
fn a_muted_box_stays_muted_when_the_host_comes_back() {
    let mut world = World::headless();
    world.create("fix-login");
    world.commit("fix-login", "One");
    world.ok(&["mute", "fix-login"]);
    world.kill_host();
    world.start_serve();
    let ended = world.push("fix-login").end();
    assert_eq!(ended.code, Some(10), "{}", ended.err);
    assert!(ended.err.contains("muted this box"), "{}", ended.err);
    world.ok(&["mute", "fix-login", "--off"]);
    world.kill_host();
    world.start_serve();
    let push = world.push("fix-login");
    world.question_of("fix-login");
    world.ok(&["deny", "fix-login"]);
    assert_eq!(push.end().code, Some(10));
}
