//! What units find in their environment: what the box has, without its keys, and the PATH people
//! have in a shell.

use super::process::Environment;
use crate::identity;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Keys of the box and the supervisor's own settings.
const DROPPED: [&str; 9] = [
    "AGENTBOX_BRIDGE_TOKEN",
    "AGENTBOX_RELAY_TOKEN",
    "AGENTBOX_VNC_PASSWORD",
    "AGENTBOX_CLONE_URL",
    "AGENTBOX_UID",
    "AGENTBOX_GID",
    "MALLOC_ARENA_MAX",
    "AGENTBOX_UNIT",
    "AGENTBOX_SUPERVISOR",
];
const PATH_LIMIT: Duration = Duration::from_secs(5);
/// What stands before the answer: a profile may print things, too.
const MARK: &str = "agentbox-path:";

/// As a unit gets it. Called once, before anybody else waits for children.
pub fn of_units() -> Environment {
    let mut all: Environment = std::env::vars_os().collect();
    // The container's may be of a box from before there was more to tell.
    all.extend(identity::read().into_iter().map(|(name, value)| (name.into(), value.into())));
    without_keys(&mut all);
    if let Some(path) = login_path() {
        all.insert("PATH".into(), path);
    }
    all
}

fn without_keys(all: &mut Environment) {
    all.retain(|name, _| !DROPPED.iter().any(|dropped| name == OsStr::new(dropped)));
}

/// The PATH of a login shell; none when there is no answer in time.
fn login_path() -> Option<OsString> {
    let mut command = Command::new("bash");
    command.args(["-lc", &format!("printf '\\n{MARK}%s' \"$PATH\"")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().ok()?;
    let mut output = child.stdout.take()?;
    let (to, answer) = channel();
    let read = super::thread("path", move || {
        let mut bytes = Vec::new();
        let _ = output.by_ref().take(1024 * 1024).read_to_end(&mut bytes);
        let _ = to.send(bytes);
    });
    let bytes = read.ok().and_then(|()| answer.recv_timeout(PATH_LIMIT).ok());
    if bytes.is_none()
        && let Ok(pid) = i32::try_from(child.id())
    {
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
    let _ = child.wait();
    after_mark(&bytes?)
}

fn after_mark(bytes: &[u8]) -> Option<OsString> {
    let mark = MARK.as_bytes();
    let at = bytes.windows(mark.len()).rposition(|window| window == mark)?;
    let path = bytes.get(at + mark.len()..)?;
    (!path.is_empty()).then(|| OsString::from_vec(path.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_13_23_units_get_no_keys() {
        let pairs = [
            ("AGENTBOX_BRIDGE_TOKEN", "x"),
            ("AGENTBOX_RELAY_TOKEN", "x"),
            ("AGENTBOX_VNC_PASSWORD", "x"),
            ("AGENTBOX_CLONE_URL", "x"),
            ("AGENTBOX_BOX_NAME", "fix"),
        ];
        let mut all: Environment = pairs.iter().map(|(k, v)| (k.into(), v.into())).collect();
        without_keys(&mut all);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["AGENTBOX_BOX_NAME"]);
    }

    #[test]
    fn what_a_profile_prints_is_no_path() {
        assert_eq!(after_mark(b"hello\nagentbox-path:/a:/b").unwrap(), "/a:/b");
        assert_eq!(after_mark(b"hello"), None);
        assert_eq!(after_mark(b"agentbox-path:"), None);
    }

    #[test]
    fn a_shell_has_a_path() {
        assert!(login_path().is_some_and(|path| path.len() > 3));
    }
}
