//! The desktop app: how soon it is there, and what it takes while nobody looks.

use crate::measure::{figure, measured, memory};
use crate::world::{SOON, World};
use agentbox_e2e::crowd::{Crowd, Size};
use agentbox_e2e::session::{Options, Session};
use agentbox_e2e::tray::Tray;
use agentbox_e2e::wait::eventually;
use agentbox_e2e::webdriver::Browser;
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// Long enough for wake-ups to show.
const IDLE: Duration = Duration::from_secs(20);

pub fn run() {
    let mut desktop = World::desktop_before(Options::default());
    let begun = Instant::now();
    desktop.start_desktop();
    let tray = Tray::new(desktop.session());
    eventually(SOON, "an icon in the tray", || tray.items().into_iter().next());
    figure("start to tray icon", &ms(begun.elapsed()), "-");
    let host = desktop.host_pid();
    memory("agentbox-desktop, window closed", &measured(host.as_raw()), "70 MB");
    figure("CPU in 20 s, idle, window closed", &idle(host), "0");

    let begun = Instant::now();
    let program = desktop.program("agentbox-desktop");
    let window = Browser::open(desktop.session(), &program, &["--window", "--page", "boxes"]);
    window.find("#page-heading", SOON);
    figure("window open, with its driver", &ms(begun.elapsed()), "-");
    let pids = webview_processes();
    let all: u64 = pids.iter().map(|pid| rss_kb(*pid)).sum();
    figure("window open: its processes", &format!("{} MB RSS", all / 1024), "-");
    drop(window);
    crowd();
}

/// A window with more to show than anybody has.
fn crowd() {
    let session = Session::start(Options { dunst: false, keyring: false, panel: false });
    let home = session.dir().join("crowd");
    let _crowd = Crowd::gather(&home, Size { boxes: 200, questions: 5, lines: 100_000 });
    let program = World::programs().join("agentbox-desktop");
    let home = home.to_str().unwrap();
    let begun = Instant::now();
    let at = ["--window", "--page", "inbox"];
    let window = Browser::open_with(&session, &program, &at, &[("AGENTBOX_HOME", home)]);
    let id = |testid: &str| format!("[data-testid='{testid}']");
    window.find_text(&id("nav-inbox"), "1000", SOON);
    figure("window with 1 000 questions: open", &ms(begun.elapsed()), "-");
    let key = |what: &str| {
        figure(&format!("  a key, {what}"), &format!("{:.0} ms", window.latency("j")), "100 ms");
    };
    key("1 000 questions");
    window.click(&window.find(&id("nav-boxes"), SOON));
    window.find_text("main", "box-0", SOON);
    key("200 boxes");
    window.click(&window.find(&id("show-box-0"), SOON));
    let begun = Instant::now();
    window.click(&window.find(&id("tab-logs"), SOON));
    window.find_text(&id("log-length"), "100000 lines", Duration::from_secs(120));
    figure("  100 000 lines of log: read", &ms(begun.elapsed()), "-");
    key("100 000 lines");
}

fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// Time on a processor, in ticks of 10 ms.
fn ticks(pid: Pid) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let words: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    number(11) + number(12)
}

fn idle(pid: Pid) -> String {
    let before = ticks(pid);
    std::thread::sleep(IDLE);
    let used = (ticks(pid) - before) * 10;
    format!("{used} ms of {} s", IDLE.as_secs())
}

/// The window and the webview's own helpers.
fn webview_processes() -> Vec<i32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains("agentbox-window")
            || line.contains("WebKitWebProcess")
            || line.contains("WebKitNetworkProcess")
    };
    pids.filter(is_ours).collect()
}

fn rss_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
