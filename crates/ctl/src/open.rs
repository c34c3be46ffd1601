//! `agentbox-ctl open <url>`, also as `xdg-open` and `$BROWSER`: a web page for people.
//!
//! A browser in the box, where there is one with a screen, shows the page at once. The host is told
//! in any case and may offer it to the person. Its answer changes nothing here: a command that only
//! wanted to show something must not fail because nobody looks.

use crate::client::Relay;
use crate::error::{Error, Result};
use protocol::exit;
use protocol::rpc::OpenParams;
use shims::open::{Plan, plan};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const BROWSERS: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "firefox", "firefox-esr"];

pub fn run(args: &[OsString]) -> Result<i32> {
    match plan(args) {
        Plan::Open(url) => open(&url),
        Plan::Print(text) => {
            crate::say(text);
            Ok(exit::OK)
        }
        Plan::Refuse(line) => {
            crate::complain(&line);
            Ok(exit::UNADDRESSABLE)
        }
    }
}

fn open(url: &str) -> Result<i32> {
    if let Some(browser) = browser() {
        show(browser, url)?;
    }
    if let Err(line) = tell_host(url) {
        crate::complain(&format!("open: the host was not told: {line}"));
    }
    Ok(exit::OK)
}

/// A browser of the box's own, if there is a screen for it.
fn browser() -> Option<PathBuf> {
    let screen = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !screen("DISPLAY") && !screen("WAYLAND_DISPLAY") {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    BROWSERS.iter().find_map(|name| dirs.iter().map(|dir| dir.join(name)).find(runs))
}

/// The browser outlives this command.
fn show(browser: PathBuf, url: &str) -> Result<()> {
    let mut command = Command::new(&browser);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.process_group(0).spawn();
    started.map(drop).map_err(|e| Error::Program("the browser in this box", e))
}

fn tell_host(url: &str) -> std::result::Result<(), String> {
    let params = serde_json::to_value(OpenParams { url: url.to_owned() });
    let params = params.map_err(|e| e.to_string())?;
    let envelope = Relay::open().and_then(|relay| relay.call("browser.open", params));
    match envelope {
        Ok(envelope) if envelope.exit_code == exit::OK => Ok(()),
        Ok(envelope) => Err(protocol::text::visible(envelope.stderr.trim_end())),
        Err(e) => Err(e.to_string()),
    }
}
