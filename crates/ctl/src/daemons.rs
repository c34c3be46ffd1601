//! The daemons that come with a box: its way out, its own engine, a screen, an ssh server.
//!
//! What the host wants is told by files `go` leaves on tmpfs; what the image has is looked up. Only
//! what both have runs. A daemon that needs something done first is started by way of
//! `agentbox-ctl daemon <name>`, which does it and then becomes the daemon: PID 1 itself never waits.

use crate::dockerd;
use crate::error::{Doing, Error, Result};
use crate::identity;
use crate::passwd::Account;
use crate::supervise::{Probe, Unit};
use crate::supervisor;
use protocol::ctl::{BOX_USER, Daemons, Identity, paths};
use protocol::egress_env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const XVNC: &str = "/usr/bin/Xvnc";
const VNC_PASSWD: &str = "/usr/bin/vncpasswd";
const WEBSOCKIFY: &str = "/usr/bin/websockify";
const NOVNC: &str = "/usr/share/novnc";
const AUTOCUTSEL: &str = "/usr/bin/autocutsel";
const SSHD: &str = "/usr/sbin/sshd";
const HOSTS: &str = "/etc/hosts";
/// What keeps the project's tasks and services running; its log has this name.
pub const SUPERVISOR: &str = "ctl-daemon";
const DISPLAY: &str = ":1";
const DISPLAYS: &str = "/tmp/.X11-unix";
const DISPLAY_SOCKET: &str = "/tmp/.X11-unix/X1";
const DISPLAY_LOCK: &str = "/tmp/.X1-lock";
/// Of the screen's server; on loopback, because the page's server is in front of it.
const RFB_PORT: &str = "5901";

/// What an ssh session gets to know of the box's environment, as commands do, besides which box it is
/// and how it gets out.
const SSH_ENV: [&str; 7] = [
    "AGENTBOX",
    "BROWSER",
    "COLORTERM",
    "DISABLE_AUTOUPDATER",
    "DISPLAY",
    "LANG",
    "OPENCODE_DISABLE_AUTOUPDATE",
];

/// Brings what the daemons need: called by `go`, before PID 1 hears of it. Doing it again changes
/// the screen's password for whoever connects from then on.
pub fn bring(wanted: &Daemons, egress: bool) -> Result<()> {
    if egress {
        secret(paths::EGRESS, "", 0o644, None)?;
    }
    if let Some(port) = wanted.front {
        secret(paths::FRONT, port.to_string(), 0o644, None)?;
    }
    if wanted.docker {
        secret(paths::DOCKER, "", 0o600, None)?;
    }
    if let Some(password) = wanted.vnc_password.as_deref().filter(|_| has(VNC_PASSWD)) {
        let user = Account::of_system(BOX_USER)?;
        secret(paths::SCREEN_PASSWORD, &scrambled(password)?, 0o400, Some(&user))?;
    }
    if let Some(keys) = wanted.ssh.as_ref().filter(|_| has(SSHD)) {
        secret(paths::SSH_AUTHORIZED, format!("{}\n", keys.authorized_key), 0o644, None)?;
        secret(paths::SSH_HOST_KEY, &keys.host_key, 0o600, None)?;
    }
    Ok(())
}

/// What is to run now, in order.
pub fn units(user: &Account) -> Vec<Unit> {
    let seconds = Duration::from_secs;
    let mut units = Vec::new();
    if has(paths::DOCKER) && has(dockerd::PROGRAM) {
        units.push(Unit {
            ready: Some((Probe::Answers(dockerd::SOCKET.into()), seconds(30))),
            // Its containers are asked to end first.
            stop: seconds(dockerd::STOP + 2),
            ..unit("dockerd", prepared("dockerd"))
        });
    }
    // After the engine, which units may use, and before what they do not need.
    units.push(Unit { stop: seconds(16), ..unit(SUPERVISOR, prepared("supervisor")) });
    if has(paths::SCREEN_PASSWORD) && has(XVNC) && has(WEBSOCKIFY) {
        units.push(Unit {
            ready: Some((Probe::Socket(DISPLAY_SOCKET.into()), seconds(5))),
            ..unit("xvnc", as_user(user, prepared("xvnc")))
        });
        // Asked to end it would take its time, and has nothing to lose.
        let stop = Duration::ZERO;
        units.push(Unit { stop, ..unit("websockify", as_user(user, websockify)) });
        // Nobody owns the selections without a window manager; these two keep them the same.
        units.push(unit("clipboard", as_user(user, || autocutsel("CLIPBOARD"))));
        units.push(unit("primary", as_user(user, || autocutsel("PRIMARY"))));
    }
    if has(paths::SSH_HOST_KEY) && has(SSHD) {
        units.push(unit("sshd", prepared("sshd")));
    }
    if has(paths::EGRESS) {
        let out = || {
            let mut command = Command::new(paths::CTL);
            command.args(["egress", "serve"]);
            command
        };
        // First of all: whatever else starts may want to go out.
        units.insert(0, Unit { stop: Duration::ZERO, ..unit("egress", as_user(user, out)) });
    }
    if has(paths::FRONT)
        && let Ok(name) = std::env::var("AGENTBOX_BOX_NAME")
    {
        if let Err(e) = know_own_addresses(Path::new(HOSTS), &name) {
            crate::init::log(&format!("some programs will not find {name}.localhost: {e}"));
        }
        let front = move || {
            let mut command = Command::new(paths::CTL);
            command.args(["front", &name]);
            command
        };
        let (logged, stop) = (false, Duration::ZERO);
        units.push(Unit { logged, stop, ..unit("front", as_user(user, front)) });
    }
    units
}

/// Browsers and curl know by themselves that names below localhost are here; others look them up.
fn know_own_addresses(hosts: &Path, name: &str) -> Result<()> {
    let doing = || format!("write {}", hosts.display());
    let line = format!("127.0.0.1\t{name}.localhost {name}.vnc.localhost\n");
    if fs::read_to_string(hosts).doing(doing)?.contains(&line) {
        return Ok(());
    }
    let mut file = OpenOptions::new().append(true).open(hosts).doing(doing)?;
    file.write_all(line.as_bytes()).doing(doing)
}

fn has(path: &str) -> bool {
    Path::new(path).exists()
}

fn unit(name: &'static str, command: impl Fn() -> Command + 'static) -> Unit {
    let command = Box::new(command);
    Unit { name, command, logged: true, ready: None, stop: Duration::from_secs(2) }
}

fn prepared(name: &'static str) -> impl Fn() -> Command {
    move || {
        let mut command = Command::new(paths::CTL);
        command.args(["daemon", name]);
        command
    }
}

fn as_user<F: Fn() -> Command>(user: &Account, command: F) -> impl Fn() -> Command + use<F> {
    let user = user.clone();
    move || {
        let mut command = command();
        command.uid(user.uid).gid(user.gid);
        command.env("HOME", &user.home).env("USER", BOX_USER).env("DISPLAY", DISPLAY);
        command
    }
}

fn websockify() -> Command {
    let mut command = Command::new(WEBSOCKIFY);
    let screen = format!("0.0.0.0:{}", protocol::ctl::ports::SCREEN);
    command.args(["--web", NOVNC, &screen, &format!("127.0.0.1:{RFB_PORT}")]);
    command
}

fn autocutsel(selection: &str) -> Command {
    let mut command = Command::new(AUTOCUTSEL);
    command.args(["-selection", selection]);
    command
}

/// `agentbox-ctl daemon <name>`: does what the daemon needs, then becomes it.
pub fn run(args: &[OsString]) -> Result<i32> {
    let mut command = match args.first().and_then(|name| name.to_str()) {
        Some("dockerd") => dockerd::prepare()?,
        Some("xvnc") => xvnc(),
        Some("sshd") => sshd()?,
        Some("supervisor") => {
            let mut command = supervisor::daemon::prepare()?;
            if has(paths::SCREEN_PASSWORD) && has(XVNC) {
                command.env("DISPLAY", DISPLAY);
            }
            command
        }
        _ => {
            let known = "dockerd, xvnc, sshd or supervisor";
            return Err(Error::Usage(format!("daemon is for PID 1: {known}.")));
        }
    };
    let program = command.get_program().to_owned();
    Err(Error::Io(format!("run {}", program.display()), command.exec()))
}

/// What a server that was killed has left would keep the next one from starting.
fn xvnc() -> Command {
    for left in [DISPLAY_LOCK, DISPLAY_SOCKET] {
        let _ = fs::remove_file(left);
    }
    let mut command = Command::new(XVNC);
    command.args([DISPLAY, "-desktop", "agentbox", "-geometry", "1280x800", "-depth", "24"]);
    command.args(["-localhost=1", "-rfbport", RFB_PORT, "-SecurityTypes", "VncAuth"]);
    command.args(["-PasswordFile", paths::SCREEN_PASSWORD]);
    // Everybody comes from the same address, so one who guesses would lock all others out.
    command.args(["-AlwaysShared=1", "-AcceptCutText=1", "-SendCutText=1", "-UseBlacklist=0"]);
    command
}

fn sshd() -> Result<Command> {
    // Where it locks its unprivileged half up; the folder must be root's.
    fs::create_dir_all("/run/sshd").doing(|| "make /run/sshd")?;
    fs::set_permissions("/run/sshd", Permissions::from_mode(0o755)).doing(|| "make /run/sshd")?;
    let told = identity::read();
    let out = egress_env::variables(false).into_iter().map(|variable| variable.name);
    let names = SSH_ENV.into_iter().chain(Identity::NAMES).chain(out);
    let variables = names.filter_map(|name| Some((name, identity::variable(&told, name)?)));
    let mut command = Command::new(SSHD);
    command.args(["-D", "-e", "-f", "/etc/ssh/sshd_config"]);
    command.arg("-o").arg(format!("SetEnv={}", settings(variables)));
    Ok(command)
}

/// As sshd splits it: within double quotes it knows a backslash before a quote and before another one.
/// What is more than a line is left out.
fn settings(variables: impl Iterator<Item = (&'static str, String)>) -> String {
    let line = |value: &str| !value.is_empty() && !value.chars().any(char::is_control);
    let quoted = |value: &str| value.replace('\\', r"\\").replace('"', "\\\"");
    let kept = variables.filter(|(_, value)| line(value));
    kept.map(|(name, value)| format!("\"{name}={}\"", quoted(&value))).collect::<Vec<_>>().join(" ")
}

/// The folder for display sockets must be root's and open to all.
pub fn make_room_for_displays() -> Result<()> {
    fs::create_dir_all(DISPLAYS).doing(|| format!("make {DISPLAYS}"))?;
    let open = Permissions::from_mode(0o1777);
    fs::set_permissions(DISPLAYS, open).doing(|| format!("open {DISPLAYS}"))
}

/// The password in the form its server reads from a file.
fn scrambled(password: &str) -> Result<Vec<u8>> {
    let doing = || "scramble the screen's password";
    let mut command = Command::new(VNC_PASSWD);
    command.arg("-f").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().doing(doing)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(format!("{password}\n").as_bytes()).doing(doing)?;
    }
    let output = child.wait_with_output().doing(doing)?;
    if output.stdout.len() != 8 {
        return Err(Error::Failed(format!("{VNC_PASSWD} gave no password.")));
    }
    Ok(output.stdout)
}

/// A file on tmpfs that is there whole or not at all.
fn secret(path: &str, content: impl AsRef<[u8]>, mode: u32, owner: Option<&Account>) -> Result<()> {
    let doing = || format!("write {path}");
    let path = Path::new(path);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).doing(doing)?;
    }
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&fresh).doing(doing)?;
    file.write_all(content.as_ref()).doing(doing)?;
    if let Some(owner) = owner {
        chown(&fresh, Some(owner.uid), Some(owner.gid)).doing(doing)?;
    }
    fs::rename(&fresh, path).doing(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_gets_every_value_that_is_a_line() {
        let given = [
            ("LANG", "C.UTF-8"),
            ("BROWSER", "a # b"),
            ("DISPLAY", ""),
            ("AGENTBOX_PROJECT_ROOT", "two\nlines"),
            ("AGENTBOX_HOST_WORKSPACE", "it's \"x\\"),
            ("AGENTBOX", "1"),
        ];
        let given = given.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(
            settings(given.into_iter()),
            r#""LANG=C.UTF-8" "BROWSER=a # b" "AGENTBOX_HOST_WORKSPACE=it's \"x\\" "AGENTBOX=1""#
        );
    }

    #[test]
    fn a_secret_is_replaced_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/secret").display().to_string();
        for content in ["one", "two"] {
            secret(&path, content, 0o400, None).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o400);
        }
    }

    #[test]
    fn a_boxs_own_addresses_are_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = dir.path().join("hosts");
        fs::write(&hosts, "127.0.0.1\tlocalhost\n").unwrap();
        for _ in 0..2 {
            know_own_addresses(&hosts, "fix").unwrap();
            let text = fs::read_to_string(&hosts).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[1..], ["127.0.0.1\tfix.localhost fix.vnc.localhost"]);
        }
    }

    #[test]
    fn only_what_is_known_is_run() {
        assert_eq!(run(&["nosuch".into()]).unwrap_err().exit_code(), 64);
        assert_eq!(run(&[]).unwrap_err().exit_code(), 64);
    }
}
