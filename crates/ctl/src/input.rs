//! What the host says on standard input: a bounded JSON line, sometimes followed by bytes.
//!
//! Also the wait for PID 1, because the host starts its commands as soon as the container runs.

use crate::error::{Doing, Error, Result};
use crate::places;
use nix::fcntl::{FcntlArg, fcntl};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A repository with a hundred thousand tracking refs still fits.
const MAX_LINE: u64 = 64 * 1024 * 1024;
const READY_LIMIT: Duration = Duration::from_secs(20);

/// What is read at once, and what waits to be read.
const CHUNK: usize = 256 * 1024;
const PIPE: i32 = 1 << 20;

/// Standard input for an archive: in larger steps than it takes by itself, from a pipe that holds more.
pub fn archive() -> Result<BufReader<File>> {
    let stdin = io::stdin().as_fd().try_clone_to_owned().doing(|| "read standard input")?;
    // What is no pipe, or a kernel that says no, is read as it is.
    let _ = fcntl(&stdin, FcntlArg::F_SETPIPE_SZ(PIPE));
    Ok(BufReader::with_capacity(CHUNK, File::from(stdin)))
}

/// Reads one line; what follows it stays in the reader.
pub fn json_line<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<T> {
    let mut line = Vec::new();
    let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
    read.doing(|| "read standard input")?;
    serde_json::from_slice(&line)
        .map_err(|e| Error::BadInput(format!("a first line that cannot be read: {e}")))
}

/// Waits until PID 1 has given the box its user and folders.
pub fn wait_until_ready() -> Result<()> {
    let ready = places::ready();
    let end = Instant::now() + READY_LIMIT;
    while !ready.exists() {
        if Instant::now() >= end {
            let seconds = READY_LIMIT.as_secs();
            let hint = "see the container's log";
            return Err(Error::Failed(format!("the box was not ready after {seconds} s; {hint}.")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
