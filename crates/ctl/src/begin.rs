//! `agentbox-ctl begin [--hold]` (root, once): seeds the workspace as the box user, then releases PID 1,
//! unless files are to come before that.
//!
//! The two could be two commands. Starting one in a box is what making a box waits for most, so
//! they are one.

use crate::error::{Doing, Error, Result};
use crate::passwd::Account;
use crate::{go, input};
use protocol::ctl::{BOX_USER, Go};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub fn run(args: &[OsString]) -> Result<i32> {
    let hold = args.first().is_some_and(|word| word == "--hold");
    // Byte by byte: what follows the first line is for the one who seeds.
    let stdin = io::stdin().as_fd().try_clone_to_owned().doing(|| "read standard input")?;
    let go: Go = input::json_line(&mut BufReader::with_capacity(1, File::from(stdin)))?;
    go::check(&go)?;
    input::wait_until_ready()?;
    let user = Account::of_system(BOX_USER)?;
    let mut seed = Command::new("/proc/self/exe");
    seed.arg0("agentbox-ctl").arg("seed").uid(user.uid).gid(user.gid);
    let seeded = seed.status().doing(|| "seed the workspace")?;
    match seeded.code() {
        Some(protocol::exit::OK) if hold => Ok(protocol::exit::OK),
        Some(protocol::exit::OK) => go::release(&go),
        Some(code) => Ok(code),
        None => Err(Error::Failed("seeding the workspace was cut off.".into())),
    }
}
