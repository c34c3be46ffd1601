//! Commands in a box: words, input, output, exit code and terminal arrive as they are.

use crate::support::{Call, Ended, FakeHost, Terminal, a_box};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use protocol::control::{ControlError, ErrorCode, Exec, Exited, Request};
use protocol::frame::Kind;

fn exits_with(call: &mut Call, exit_code: i32) {
    call.result(&Exited { exit_code });
}

/// A host with one box, in which every command does this.
fn running(work: impl Fn(&mut Call) + Send + Sync + 'static) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        _ => work(call),
    })
}

#[test]
fn boxes_16_33_the_exit_code_is_the_commands() {
    let host = running(|call| exits_with(call, 7));
    host.run(&["shell", "--", "sh", "-c", "exit 7"]).exits(7).prints("");
    let asked = host.asked_once("exec");
    assert_eq!(asked["argv"], serde_json::json!(["sh", "-c", "exit 7"]));
    assert_eq!(asked["tty"], false);
    assert_eq!(asked["target"]["query"], serde_json::Value::Null);
}

#[test]
fn boxes_16_33_words_arrive_as_words() {
    let host = running(|call| exits_with(call, 0));
    host.run(&["shell", "fix-login", "--", "printf", "%s|", "a b", "c"]).exits(0);
    let asked = host.asked_once("exec");
    assert_eq!(asked["argv"], serde_json::json!(["printf", "%s|", "a b", "c"]));
    assert_eq!(asked["target"]["query"], "fix-login");
}

#[test]
fn input_and_both_outputs_flow() {
    let host = running(|call| {
        let mut input = Vec::new();
        while let Some((Kind::Stdin, bytes)) = call.next() {
            if bytes.is_empty() {
                break;
            }
            input.extend(bytes);
        }
        call.send(Kind::Stderr, b"to stderr\n");
        call.send(Kind::Stdout, &input);
        exits_with(call, 0);
    });
    let big = "0123456789".repeat(20_000);
    let output = host.home.run_with_input(&["shell", "--", "cat"], big.as_bytes()).exits(0);
    assert!(output.stdout == big, "{} bytes came back", output.stdout.len());
    assert_eq!(output.stderr, "to stderr\n");
}

fn with_one_box(unknown_is_a_box: bool) -> FakeHost {
    FakeHost::new(move |request, call| match request {
        Request::Boxes => call.result(&vec![a_box("/p".as_ref())]),
        Request::Exec(Exec { target, .. }) if target.query.as_deref() == Some("nonsense") => {
            call.error(&ControlError::new(ErrorCode::Usage, "no box matches \"nonsense\""));
        }
        Request::Exec(Exec { target, .. }) if target.query.is_none() && !unknown_is_a_box => {
            call.error(&ControlError::new(ErrorCode::Usage, "this folder's project has no box"));
        }
        _ => exits_with(call, 127),
    })
}

#[test]
fn a_word_that_names_no_box_is_a_command() {
    let host = with_one_box(true);
    host.run(&["shell", "nonsense"]).exits(127).says("neither a box nor a program");
    let asked = host.asked_once("exec");
    assert_eq!(asked["argv"], serde_json::json!(["nonsense"]));
    let host = with_one_box(true);
    host.run(&["shell", "fix-login"]).exits(127).prints("");
    assert_eq!(host.asked_once("exec")["argv"], serde_json::json!(["bash", "-l"]));
}

#[test]
fn a_word_that_can_be_neither_is_an_unknown_box() {
    with_one_box(false).run(&["shell", "nonsense"]).exits(2).says("no box matches \"nonsense\"");
}

#[test]
fn with_a_command_the_word_is_a_box_and_nothing_else() {
    let host = with_one_box(true);
    host.run(&["shell", "nonsense", "--", "ls"]).exits(2).says("no box matches");
}

#[test]
fn a_terminal_is_raw_and_resized_and_put_back() {
    let host = running(|call| {
        call.send(Kind::Stdout, b"ready");
        loop {
            match call.next() {
                Some((Kind::Resize, size)) => {
                    call.send(Kind::Stdout, format!("resized {size:?}").as_bytes());
                }
                // Ctrl-C is a key here, not a signal.
                Some((Kind::Stdin, bytes)) if bytes == b"\x03" => return exits_with(call, 42),
                Some(_) => {}
                None => return,
            }
        }
    });
    let terminal = Terminal::new();
    let mut command = host.home.command(&["shell", "--no-tmux"]);
    let child = command.stdin(terminal.end()).stdout(terminal.end()).spawn().unwrap();
    terminal.see("ready");
    let modes = || tcgetattr(&terminal.pair.slave).unwrap().local_flags;
    assert!(!modes().intersects(LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::ECHO));
    let asked = host.asked_once("exec");
    assert_eq!(
        (&asked["tty"], &asked["cols"], &asked["rows"]),
        (&true.into(), &100.into(), &30.into())
    );

    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGWINCH).unwrap();
    terminal.see("resized [0, 100, 0, 30]");
    terminal.type_in("\x03");
    Ended::of(child).exits(42);
    assert!(modes().contains(LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::ECHO));
}

#[test]
fn a_signal_ends_it_with_130() {
    let host = running(|call| {
        call.send(Kind::Stdout, b"ready");
        while call.next().is_some() {}
    });
    let mut child = host.home.command(&["shell", "--", "sleep", "60"]).spawn().unwrap();
    let mut ready = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    Ended::of(child).exits(130).says("interrupted");
}
