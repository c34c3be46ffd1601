//! The ground the other tests stand on: every driver does its work on the real part, without AgentBox.
#![allow(clippy::used_underscore_binding)] // arguments of bus methods that the stand-ins do not need

use agentbox_e2e::atspi::Desktop;
use agentbox_e2e::notify::Notifications;
use agentbox_e2e::session::{Options, Session};
use agentbox_e2e::tray::{Tray, outline};
use agentbox_e2e::wait::{eventually, eventually_or};
use agentbox_e2e::webdriver::Browser;
use agentbox_e2e::{notify, screen};
use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use zbus::blocking::{Connection, MessageIterator};
use zbus::zvariant::{ObjectPath, OwnedValue, Value};

const SOON: Duration = Duration::from_secs(60);
const NOTIFICATIONS: &str = "org.freedesktop.Notifications";
const NOTIFICATIONS_PATH: &str = "/org/freedesktop/Notifications";

// ---- the session

#[test]
fn a_session_leaves_nothing_behind() {
    let session = Session::start(Options::default());
    let dir = session.dir().to_owned();
    let mut forgotten = session.command("sleep").arg("600").spawn().unwrap();
    assert!(!marked(&dir).is_empty());
    drop(session);
    assert!(forgotten.wait().unwrap().code().is_none(), "a forgotten program is ended by a signal");
    assert_eq!(marked(&dir), Vec::<String>::new());
    assert!(!dir.exists());
}

#[test]
fn sessions_run_side_by_side() {
    let (one, two) = (Session::start(Options::default()), Session::start(Options::default()));
    assert_ne!(one.env()["DISPLAY"], two.env()["DISPLAY"]);
    notify(&one.bus(), "only here", &[]);
    Notifications::new(&one).wait_for("only here", SOON);
    assert_eq!(Notifications::new(&two).ever_shown(), vec![]);
}

#[test]
fn a_part_that_is_left_out_is_not_started_on_demand() {
    let session = Session::start(Options { dunst: false, keyring: false, panel: false });
    let bus = session.bus();
    for name in [NOTIFICATIONS, "org.freedesktop.secrets", "org.kde.StatusNotifierWatcher"] {
        let error = bus
            .call_method(Some(name), "/", Some("org.freedesktop.DBus.Peer"), "Ping", &())
            .expect_err("nobody answers");
        assert!(error.to_string().contains("ServiceUnknown"), "{name}: {error}");
    }
}

/// The command lines of the processes of a session.
fn marked(dir: &std::path::Path) -> Vec<String> {
    let mark = format!("DESKTOP_SESSION_MARK={}", dir.display());
    let has_mark = |folder: &PathBuf| {
        let env = std::fs::read(folder.join("environ")).unwrap_or_default();
        env.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(has_mark)
        .filter_map(|p| std::fs::read_to_string(p.join("cmdline")).ok())
        .collect()
}

// ---- the keyring

#[test]
fn the_keyring_keeps_a_secret_and_no_file_shows_it() {
    let session = Session::start(Options { dunst: false, keyring: true, panel: false });
    let mut store = session
        .command("secret-tool")
        .args(["store", "--label=a test", "service", "agentbox-test"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    store.stdin.take().unwrap().write_all(b"needle-4711").unwrap();
    assert!(store.wait().unwrap().success());

    let lookup = session
        .command("secret-tool")
        .args(["lookup", "service", "agentbox-test"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&lookup.stdout), "needle-4711");
    let grep =
        Command::new("grep").args(["-ra", "needle-4711"]).arg(session.home()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
}

// ---- notifications

#[test]
fn a_notification_is_seen_and_its_buttons_are_pressed() {
    let session = Session::start(Options::default());
    let bus = session.bus();
    let mut answers = signals(&bus);
    let first = notify(&bus, "fix-login asks", &["allow", "Allow once", "deny", "Deny"]);
    let second = notify(&bus, "docs-bot asks", &["allow", "Allow once", "deny", "Deny"]);

    let dunst = Notifications::new(&session);
    let seen = dunst.wait_for("docs-bot asks", SOON);
    let shown = notify::Shown {
        id: second,
        app: "test".into(),
        summary: "docs-bot asks".into(),
        body: "push 3 commits".into(),
        urgency: "CRITICAL".into(),
    };
    assert_eq!(seen, shown);
    dunst.wait_for("fix-login asks", SOON);
    eventually_or(SOON, "the buttons", || {
        let labels = dunst.actions(first);
        if labels == ["Allow once", "Deny"] { Ok(()) } else { Err(format!("{labels:?}")) }
    });
    screen::shoot(&session, "parts-notification");

    dunst.press(second, "Deny", SOON);
    assert_eq!(next(&mut answers, "ActionInvoked"), (second, "deny".to_owned()));
    dunst.press(first, "Allow once", SOON);
    assert_eq!(next(&mut answers, "ActionInvoked"), (first, "allow".to_owned()));

    bus.call_method(
        Some(NOTIFICATIONS),
        NOTIFICATIONS_PATH,
        Some(NOTIFICATIONS),
        "CloseNotification",
        &first,
    )
    .unwrap();
    dunst.gone(first, SOON);
    eventually(SOON, "only the second notification", || {
        (dunst.shown().iter().map(|one| one.id).eq([second])).then_some(())
    });
}

fn notify(bus: &Connection, summary: &str, actions: &[&str]) -> u32 {
    let hints = HashMap::from([("urgency", Value::from(2u8))]);
    let args = ("test", 0u32, "", summary, "push 3 commits", actions, hints, 0i32);
    let reply = bus
        .call_method(Some(NOTIFICATIONS), NOTIFICATIONS_PATH, Some(NOTIFICATIONS), "Notify", &args)
        .unwrap();
    reply.body().deserialize().unwrap()
}

fn signals(bus: &Connection) -> MessageIterator {
    let rule = zbus::MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .interface(NOTIFICATIONS)
        .unwrap()
        .build();
    MessageIterator::for_match_rule(rule, bus, Some(64)).unwrap()
}

fn next(signals: &mut MessageIterator, member: &str) -> (u32, String) {
    let is_wanted =
        |m: &zbus::Message| m.header().member().is_some_and(|name| name.as_str() == member);
    let message = signals.flatten().find(is_wanted).unwrap();
    message.body().deserialize().unwrap()
}

// ---- dialogs

/// The panel has a dialog of its own, which saves us a program made for tests.
#[test]
fn a_native_dialog_is_read_and_pressed() {
    let session = Session::start(Options { dunst: false, ..Options::default() });
    assert!(session.command("xfce4-panel").arg("--preferences").status().unwrap().success());
    let desktop = Desktop::new(&session);
    eventually_or(SOON, "the dialog", || {
        let found = desktop.exists("xfce4-panel", "Panel Preferences", "Close");
        if found { Ok(()) } else { Err(format!("{:?}", desktop.windows("xfce4-panel"))) }
    });
    screen::shoot(&session, "parts-dialog");
    let texts = desktop.texts("xfce4-panel", "Panel Preferences");
    assert!(texts.iter().any(|text| text.contains("Lock panel")), "{texts:?}");
    assert!(!desktop.exists("xfce4-panel", "Panel Preferences", "No such button"));

    desktop.press("xfce4-panel", "Panel Preferences", "Close", SOON);
    desktop.gone("xfce4-panel", "Panel Preferences", SOON);
}

// ---- the tray

#[test]
fn a_tray_icon_is_seen_and_its_menu_clicked() {
    let session = Session::start(Options { dunst: false, ..Options::default() });
    let (icon, clicks) = Icon::register(&session.bus());
    let item = Tray::new(&session).wait_for("Test icon", SOON);
    assert_eq!(item.status(), "NeedsAttention");
    assert_eq!(item.tooltip(), "Two questions\nfix-login, docs-bot");

    let before = item.icon_hash().unwrap();
    assert_eq!(item.icon_hash(), Some(before));
    icon.paint(9);
    assert_ne!(item.icon_hash(), Some(before));

    assert_eq!(outline(&item.menu()), "\nfix-login\n  Allow once\n  Deny (off)\nQuit_now\n");
    item.click(&["fix-login", "Allow once"], SOON);
    assert_eq!(clicks.recv_timeout(SOON).unwrap(), 2);
    item.click_where("quitting", |entry| entry.label.starts_with("Quit"), SOON);
    assert_eq!(clicks.recv_timeout(SOON).unwrap(), 4);
    screen::shoot(&session, "parts-tray");
}

type Pixmap = (i32, i32, Vec<u8>);

/// An icon as small as one can be; it lives as long as its connection.
struct Icon {
    bus: Connection,
}

struct ItemSide {
    shade: u8,
}

struct MenuSide {
    clicks: Sender<i32>,
}

impl Icon {
    fn register(bus: &Connection) -> (Self, Receiver<i32>) {
        let (clicks, clicked) = channel();
        bus.object_server().at("/StatusNotifierItem", ItemSide { shade: 128 }).unwrap();
        bus.object_server().at("/Menu", MenuSide { clicks }).unwrap();
        let watcher = "org.kde.StatusNotifierWatcher";
        let own = bus.unique_name().unwrap().as_str();
        bus.call_method(
            Some(watcher),
            "/StatusNotifierWatcher",
            Some(watcher),
            "RegisterStatusNotifierItem",
            &own,
        )
        .unwrap();
        (Self { bus: bus.clone() }, clicked)
    }

    fn paint(&self, shade: u8) {
        let side =
            self.bus.object_server().interface::<_, ItemSide>("/StatusNotifierItem").unwrap();
        side.get_mut().shade = shade;
    }
}

#[allow(clippy::unused_self)] // the bus calls all of these on an object
#[zbus::interface(name = "org.kde.StatusNotifierItem")]
impl ItemSide {
    #[zbus(property)]
    fn id(&self) -> &'static str {
        "test-icon"
    }

    #[zbus(property)]
    fn title(&self) -> &'static str {
        "Test icon"
    }

    #[zbus(property)]
    fn status(&self) -> &'static str {
        "NeedsAttention"
    }

    #[zbus(property)]
    fn category(&self) -> &'static str {
        "ApplicationStatus"
    }

    #[zbus(property)]
    fn tool_tip(&self) -> (&'static str, Vec<Pixmap>, &'static str, &'static str) {
        ("", vec![], "Two questions", "fix-login, docs-bot")
    }

    #[zbus(property)]
    fn icon_pixmap(&self) -> Vec<Pixmap> {
        vec![(22, 22, [255, 255, self.shade, 0].repeat(22 * 22))]
    }

    #[zbus(property)]
    fn menu(&self) -> ObjectPath<'static> {
        ObjectPath::from_static_str_unchecked("/Menu")
    }
}

type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

#[allow(clippy::unused_self)] // the menu is the same for every question
#[zbus::interface(name = "com.canonical.dbusmenu")]
impl MenuSide {
    fn about_to_show(&self, _id: i32) -> bool {
        false
    }

    fn get_layout(&self, _parent: i32, _depth: i32, _names: Vec<String>) -> (u32, Layout) {
        let answers = vec![entry(2, "_Allow once", true, vec![]), entry(3, "Deny", false, vec![])];
        let separator = value((5, properties([("type", Value::from("separator"))]), vec![]));
        let menu = vec![
            entry(1, "fix-login", true, answers),
            separator,
            entry(4, "Quit__now", true, vec![]),
        ];
        (1, (0, HashMap::new(), menu))
    }

    fn event(&self, id: i32, kind: &str, _data: Value<'_>, _time: u32) {
        if kind == "clicked" {
            self.clicks.send(id).unwrap();
        }
    }
}

fn entry(id: i32, label: &str, enabled: bool, children: Vec<OwnedValue>) -> OwnedValue {
    value((
        id,
        properties([("label", Value::from(label)), ("enabled", Value::from(enabled))]),
        children,
    ))
}

fn properties<const N: usize>(pairs: [(&str, Value<'_>); N]) -> HashMap<String, OwnedValue> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.try_into().unwrap())).collect()
}

fn value((id, properties, children): Layout) -> OwnedValue {
    Value::from((id, properties, children)).try_into().unwrap()
}

// ---- the webview

#[test]
fn a_page_is_read_clicked_and_photographed() {
    let session = Session::start(Options { dunst: false, keyring: false, panel: false });
    let page = session.dir().join("page.html");
    let html = "<title>Inbox</title><button onclick=\"this.textContent = 'Allowed'\">Allow once</button>\
                <button>Deny</button><input>";
    std::fs::write(&page, html).unwrap();
    let browser = Browser::open(&session, &mini_browser(), &["--automation"]);
    browser.go_to(&format!("file://{}", page.display()));
    assert_eq!(browser.title(), "Inbox");

    let button = browser.find_text("button", "Allow", SOON);
    browser.click(&button);
    assert_eq!(browser.text(&browser.find("button", SOON)), "Allowed");
    assert_eq!(browser.find_all("button").len(), 2);
    browser.type_text(&browser.find("input", SOON), "hello");
    assert_eq!(browser.execute("return document.querySelector('input').value", &[]), "hello");

    let picture = std::fs::read(browser.shoot("parts-webview")).unwrap();
    assert!(picture.starts_with(b"\x89PNG"));
}

/// Comes with WebKit itself, in a folder named after the machine's architecture.
fn mini_browser() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    folders
        .map(|folder| folder.join("webkit2gtk-4.1/MiniBrowser"))
        .find(|path| path.exists())
        .unwrap()
}
