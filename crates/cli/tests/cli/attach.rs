//! A session on a terminal whose box does what it likes.

use crate::support::{Call, Ended, FakeHost, Terminal, a_box, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::control::Request;
use protocol::frame::{self, Kind};
use protocol::sessions::{Agent, SessionView};
use std::io::Read;
use std::process::Child;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn host(session: impl Fn(&mut Call) + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::Exec(_) => session(call),
        Request::Sessions { .. } => call.result(&vec![SessionView {
            name: "claude".into(),
            agent: Some(Agent::Claude),
            attached: 0,
            created_at: 1,
        }]),
        _ => call.result(&a_box("/p".as_ref())),
    })
}

fn attach(host: &FakeHost, terminal: &Terminal) -> Child {
    let mut command = host.home.command(&["attach", "fix-login"]);
    command.stdin(terminal.end()).stdout(terminal.end()).spawn().unwrap()
}

#[test]
fn a_box_that_floods_is_held_back_by_the_menu_and_a_signal_still_ends_it() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let host = host(move |call| {
        while frame::write(&mut call.0, Kind::Stdout, &[b'#'; 8192]).is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let terminal = Terminal::new();
    let child = attach(&host, &terminal);
    let mut master = std::fs::File::from(terminal.pair.master.try_clone().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = master.read(&mut chunk) {
            into.lock().unwrap().extend_from_slice(&chunk[..n]);
        }
    });
    eventually("the flood", || seen.lock().unwrap().len() > 100_000);
    terminal.type_in("\x01");
    let text = || String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
    eventually("the menu", || text().contains("Esc back  fix-login"));
    // The box can send no more, and nothing of it is on the menu's screen.
    let stands = || {
        let before = sent.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        sent.load(Ordering::SeqCst) == before
    };
    eventually("the flood standing still", stands);
    let shown = text();
    assert!(!shown[shown.find("Esc back").unwrap()..].contains('#'));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    Ended::of(child).exits(130).says("interrupted");
}

#[test]
fn a_box_that_does_not_let_go_is_left_all_the_same() {
    let host = host(|call| {
        call.send(Kind::Stdout, b"\x1b[?1049hready");
        while call.next().is_some() {}
    });
    let terminal = Terminal::new();
    let child = attach(&host, &terminal);
    terminal.see("ready");
    terminal.type_in("\x01d");
    // The terminal is put back as tmux would have done.
    terminal.see("\x1b[?1049l");
    let ended = Ended::of(child).exits(0);
    ended.says("Session detached. Reattach with: agentbox claude attach fix-login");
}
