//! iTerm2, asked by AppleScript. The script is always the same text: what differs reaches it as
//! arguments, which are never read as a script.

use super::{Spot, output};
use host::opener;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Beside or in the window of the session this runs in; in the window in front when that is not found.
const SCRIPT: &str = r#"on run argv
  set {place, wanted, work} to {item 1 of argv, item 2 of argv, item 3 of argv}
  tell application "iTerm2"
    if place is "window" then
      create window with default profile command work
      return
    end if
    repeat with w in windows
      repeat with t in tabs of w
        repeat with s in sessions of t
          if unique ID of s is wanted then
            if place is "split" then
              tell s to split vertically with default profile command work
            else
              tell w to create tab with default profile command work
            end if
            return
          end if
        end repeat
      end repeat
    end repeat
    if place is "split" then
      tell current session of current window to split vertically with default profile command work
    else
      tell current window to create tab with default profile command work
    end if
  end tell
end run"#;

#[derive(Debug, PartialEq, Eq)]
pub struct Iterm {
    osascript: PathBuf,
    spot: Spot,
    session: String,
}

impl Iterm {
    /// Not through ssh: its variables come along, its screen does not.
    pub fn found(spot: Spot, env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let is = |name: &str, value: &str| env(name).is_some_and(|v| v == value);
        let here = is("TERM_PROGRAM", "iTerm.app") || is("LC_TERMINAL", "iTerm2");
        if !here || env("SSH_CONNECTION").is_some() || env("SSH_TTY").is_some() {
            return None;
        }
        let osascript = opener::find("osascript")?;
        Some(Self { osascript, spot, session: session(env("ITERM_SESSION_ID")) })
    }

    pub fn show(&self, line: &str) -> Result<(), String> {
        let place = match self.spot {
            Spot::Split => "split",
            Spot::Window => "window",
            Spot::Tab => "tab",
        };
        let mut script = Command::new(&self.osascript);
        output(script.args(["-e", SCRIPT, place, &self.session, line])).map(drop)
    }
}

/// `w0t1p0:` and the id that iTerm2 knows the session by; a word nothing is called without it.
fn session(variable: Option<OsString>) -> String {
    let text = variable.and_then(|v| v.into_string().ok()).unwrap_or_default();
    let id = text.rsplit(':').next().unwrap_or_default();
    let fits = !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if fits && !id.starts_with('-') { id.to_owned() } else { "none".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_an_id_or_none() {
        let of = |text: &str| session(Some(text.into()));
        assert_eq!(
            of("w0t1p0:6F3A9C2E-0B1D-4C55-9D0E-2F6F1F0E8A11"),
            "6F3A9C2E-0B1D-4C55-9D0E-2F6F1F0E8A11"
        );
        for bad in ["", "w0t0p0:", "w0:\" & (do shell script \"id\") & \"", "w0:-e"] {
            assert_eq!(of(bad), "none", "{bad}");
        }
        assert_eq!(session(None), "none");
    }

    #[test]
    fn the_script_is_one_text() {
        assert!(!SCRIPT.contains("do shell script") && !SCRIPT.contains("write text"));
        assert_eq!(SCRIPT.matches("command work").count(), 5);
    }
}
