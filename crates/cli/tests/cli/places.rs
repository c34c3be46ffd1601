//! Sessions beside this terminal. The programs that a terminal is asked by are stand-ins that write down
//! what they were given and answer as the real ones do.

use crate::support::{Ended, FakeHost, a_box};
use protocol::control::{Exited, Request};
use protocol::sessions::{Agent, SessionView};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

fn host() -> FakeHost {
    FakeHost::new(|request, call| match request {
        Request::FindBox { .. } => call.result(&a_box("/p".as_ref())),
        Request::Sessions { .. } => call.result(&vec![SessionView {
            name: "claude".into(),
            agent: Some(Agent::Claude),
            attached: 0,
            created_at: 0,
        }]),
        Request::Exec(_) => call.result(&Exited { exit_code: 0 }),
        other => panic!("{other:?}"),
    })
}

/// A program that notes each argument on a line of its own, and says this.
fn program(host: &FakeHost, name: &str, says: &str) -> PathBuf {
    let bin = host.home.tmp().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nfor a in \"$@\"; do printf '%s\\0' \"$a\" >> '{}'; done\n{says}\n",
        host.home.tmp().join("given").display()
    );
    std::fs::write(bin.join(name), script).unwrap();
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

fn given(host: &FakeHost) -> Vec<String> {
    let text = std::fs::read_to_string(host.home.tmp().join("given")).unwrap_or_default();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn command(host: &FakeHost, place: &str) -> Command {
    let mut command = host.home.command(&["attach", "fix-login", "--attach-in", place]);
    let bin = host.home.tmp().join("bin");
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    command
}

fn iterm(host: &FakeHost, place: &str) -> Command {
    let mut command = command(host, place);
    command.env("TERM_PROGRAM", "iTerm.app");
    command.env("ITERM_SESSION_ID", "w0t1p0:6F3A9C2E-0B1D-4C55-9D0E-2F6F1F0E8A11");
    command
}

fn run(mut command: Command) -> Ended {
    Ended::of(command.spawn().unwrap())
}

fn line(host: &FakeHost) -> String {
    let program = env!("CARGO_BIN_EXE_agentbox");
    let home = host.home.path();
    format!("{program} --home {} attach b0000000a --session-name=claude --inline", home.display())
}

#[test]
fn iterm_is_asked_by_one_script_that_never_changes() {
    let mut scripts = Vec::new();
    for (place, said) in [
        ("split", "Shown beside this pane."),
        ("tab", "Shown in a tab of its own."),
        ("window", "Shown in a window of its own."),
    ] {
        let host = host();
        program(&host, "osascript", "");
        run(iterm(&host, place)).exits(0).says(said);
        let words = given(&host);
        assert_eq!(words[0], "-e");
        assert_eq!(words[2..], [place, "6F3A9C2E-0B1D-4C55-9D0E-2F6F1F0E8A11", &line(&host)]);
        host.never_asked("exec");
        scripts.push(words[1].clone());
    }
    assert!(scripts.iter().all(|script| *script == scripts[0] && script.contains("iTerm2")));
}

#[test]
fn a_folder_with_a_command_in_its_name_runs_nothing() {
    for name in ["a\" & (do shell script \"touch owned\") & \"", "$(touch owned)", "\\(1)", "a'b"] {
        let host = host();
        program(&host, "osascript", "");
        let odd = host.home.tmp().join(name);
        std::os::unix::fs::symlink(host.home.path(), &odd).unwrap();
        let mut command = iterm(&host, "split");
        command.env("AGENTBOX_HOME", &odd);
        run(command).exits(0).says("could misread: it is shown here");
        assert_eq!(given(&host), Vec::<String>::new(), "{name}");
        host.asked_once("exec");
    }
}

#[test]
fn a_refusal_of_the_terminal_is_told() {
    let host = host();
    program(&host, "osascript", "echo 'Not authorized to send Apple events to iTerm.' >&2; exit 1");
    let said = run(iterm(&host, "tab")).exits(1);
    said.says("iTerm2 did not open a place for it: Not authorized").says("hint: it runs");
}

#[test]
fn herdr_splits_and_runs_it_in_the_new_pane() {
    let inside = |host: &FakeHost, place: &str| {
        let mut command = command(host, place);
        command.env("HERDR_ENV", "1").env("HERDR_PANE_ID", "w1:p1").env("HERDR_WORKSPACE_ID", "w1");
        command
    };
    let split =
        r#"[ "$1 $2" = "pane run" ] || echo '{"id":"x","result":{"pane":{"pane_id":"w1:p2"}}}'"#;
    let host = host();
    program(&host, "herdr", split);
    run(inside(&host, "split")).exits(0).says("Shown beside this pane.");
    let words = ["pane", "split", "--current", "--direction", "right", "--focus"];
    assert_eq!(given(&host), [&words[..], &["pane", "run", "w1:p2", &line(&host)]].concat());

    for (place, made) in [
        ("tab", &["tab", "create", "--workspace", "w1", "--focus"][..]),
        ("window", &["workspace", "create", "--focus"]),
    ] {
        let host = crate::places::host();
        let says =
            r#"[ "$1 $2" = "pane run" ] || echo '{"result":{"root_pane":{"pane_id":"w1:p5"}}}'"#;
        program(&host, "herdr", says);
        run(inside(&host, place)).exits(0).says("Shown in a");
        assert_eq!(given(&host), [made, &["pane", "run", "w1:p5", &line(&host)]].concat());
    }
    let host = crate::places::host();
    program(&host, "herdr", "echo '{}'");
    run(inside(&host, "split")).exits(1).says("it named no pane");
}

#[test]
fn cmux_splits_and_types_it_there() {
    let inside = |host: &FakeHost, place: &str| {
        let mut command = command(host, place);
        command.env("CMUX_WORKSPACE_ID", "a1").env("CMUX_SURFACE_ID", "b2");
        command
    };
    for (place, made) in [
        ("split", &["new-split", "right", "--focus", "true"][..]),
        ("tab", &["new-surface", "--type", "terminal", "--focus", "true"]),
    ] {
        let host = host();
        program(&host, "cmux", "[ $1 = send ] || echo OK surface:18 pane:5 workspace:5");
        run(inside(&host, place)).exits(0).says("Shown");
        let typed = format!("{}\\n", line(&host));
        assert_eq!(given(&host), [made, &["send", "--surface", "surface:18", &typed]].concat());
    }
    let host = host();
    program(&host, "cmux", "echo OK workspace:6");
    run(inside(&host, "window")).exits(0).says("Shown in a workspace of its own.");
    assert_eq!(given(&host), ["new-workspace", "--focus", "true", "--command", &line(&host)]);
}

#[test]
fn elsewhere_it_is_shown_here_and_said() {
    let host = host();
    program(&host, "osascript", "");
    let said = "No tmux, Herdr, cmux or iTerm2 is around this terminal: it is shown here.";
    run(command(&host, "split")).exits(0).says(said);
    host.asked_once("exec");
    // Through ssh its variables come along.
    let host = crate::places::host();
    program(&host, "osascript", "");
    let mut far = command(&host, "tab");
    far.env("LC_TERMINAL", "iTerm2").env("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22");
    run(far).exits(0).says(said);
    assert_eq!(given(&host), Vec::<String>::new());
}
