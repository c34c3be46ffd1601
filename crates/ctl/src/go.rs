//! `agentbox-ctl go` (root, at every start): brings the box its token and what its daemons need, and
//! releases PID 1.
//!
//! All of it comes on standard input. What is secret lands on tmpfs, so it is in no image, no
//! environment and no process list. Who the box is, which is no secret, is a file everybody may read.

use crate::client::is_token;
use crate::error::{Doing, Error, Result};
use crate::passwd::Account;
use crate::{daemons, egress, identity, input, places};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use protocol::ctl::{BOX_USER, Go};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};

pub fn run() -> Result<i32> {
    let go: Go = input::json_line(&mut io::stdin().lock())?;
    check(&go)?;
    input::wait_until_ready()?;
    release(&go)
}

pub fn check(go: &Go) -> Result<()> {
    if is_token(&go.token) {
        return Ok(());
    }
    Err(Error::BadInput("a token that is not 64 hex digits".into()))
}

pub fn release(go: &Go) -> Result<i32> {
    write_token(&go.token)?;
    // Before PID 1 hears of it: what it starts may ask. A box that does not know its name still works.
    if let Some(Err(e)) = go.identity.as_ref().map(|who| identity::write(&places::identity(), who))
    {
        note(&format!("programs may not know which box they are in: {e}"));
    }
    egress::trust::apply(go.egress.as_ref());
    daemons::bring(&go.daemons, go.egress.is_some())?;
    kill(Pid::from_raw(1), Signal::SIGUSR1).doing(|| "release PID 1")?;
    Ok(protocol::exit::OK)
}

/// For PID 1's log: nobody reads what this command says when it does its work.
pub fn note(line: &str) {
    if let Ok(mut log) = OpenOptions::new().append(true).open("/proc/1/fd/2") {
        let _ = writeln!(log, "agentbox init: {line}");
    }
}

/// By rename: a reader sees the old token or the new one, never half of one.
fn write_token(token: &str) -> Result<()> {
    let path = places::token();
    let doing = || format!("write {}", path.display());
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o400).open(&fresh).doing(doing)?;
    file.write_all(token.as_bytes()).doing(doing)?;
    let user = Account::of_system(BOX_USER)?;
    chown(&fresh, Some(user.uid), Some(user.gid)).doing(doing)?;
    fs::rename(&fresh, &path).doing(doing)
}
