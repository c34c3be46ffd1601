//! An image on this computer's clipboard, by the programs people have for it.

use host::opener;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// A clipboard whose owner does not answer has nothing.
const PATIENCE: Duration = Duration::from_secs(3);
/// What it may be, in a few words each.
const KINDS: u64 = 16 * 1024;

/// Its bytes, at most one more than the limit.
#[cfg(not(target_os = "macos"))]
pub fn png(limit: u64) -> Option<Vec<u8>> {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let wayland = is_set("WAYLAND_DISPLAY").then(|| opener::find("wl-paste")).flatten();
    let x11 = || is_set("DISPLAY").then(|| opener::find("xclip")).flatten();
    let (program, kinds, image): (_, &[&str], &[&str]) = match wayland {
        Some(program) => (program, &["--list-types"], &["--no-newline", "--type", "image/png"]),
        None => (
            x11()?,
            &["-selection", "clipboard", "-target", "TARGETS", "-out"],
            &["-selection", "clipboard", "-target", "image/png", "-out"],
        ),
    };
    let kinds = output(&program, kinds, KINDS)?;
    let is_image = String::from_utf8_lossy(&kinds).lines().any(|kind| kind.trim() == "image/png");
    is_image.then(|| output(&program, image, limit)).flatten()
}

/// Its bytes, at most one more than the limit. The system tells them in hexadecimal.
#[cfg(target_os = "macos")]
pub fn png(limit: u64) -> Option<Vec<u8>> {
    let program = opener::find("osascript")?;
    let kinds = output(&program, &["-e", "clipboard info"], KINDS)?;
    if !String::from_utf8_lossy(&kinds).contains("PNGf") {
        return None;
    }
    let script = ["-e", "get the clipboard as «class PNGf»"];
    let said = output(&program, &script, limit.saturating_mul(2).saturating_add(64))?;
    let said = String::from_utf8_lossy(&said);
    let digits = said.split_once("PNGf")?.1.split('»').next()?.as_bytes();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

/// What a program prints, cut one byte after the limit; none when it fails or takes too long.
fn output(program: &Path, args: &[&str], limit: u64) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let out = child.stdout.take()?;
    let (tell, told) = sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        let _ = tell.send(read.ok().map(|_| bytes));
    });
    let bytes = told.recv_timeout(PATIENCE).ok().flatten();
    let cut = bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 > limit);
    if cut {
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    bytes.filter(|_| cut || status.success())
}
