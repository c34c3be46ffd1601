//! cmux and Herdr: a program of the terminal opens a pane with a shell in it, and types the line there.

use super::{Spot, output};
use host::opener::find;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Never one of the folder this is typed in.
fn found(name: &str) -> Result<PathBuf, String> {
    find(name).ok_or_else(|| format!("{name} is not in PATH"))
}

#[derive(Debug, PartialEq, Eq)]
pub struct Cmux {
    spot: Spot,
}

impl Cmux {
    pub fn found(spot: Spot, env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        (env("CMUX_SURFACE_ID").is_some() && env("CMUX_WORKSPACE_ID").is_some())
            .then_some(Self { spot })
    }

    /// It takes its workspace and surface from the environment.
    pub fn show(&self, line: &str) -> Result<(), String> {
        let program = found("cmux")?;
        let words: &[&str] = match self.spot {
            Spot::Split => &["new-split", "right", "--focus", "true"],
            Spot::Tab => &["new-surface", "--type", "terminal", "--focus", "true"],
            Spot::Window => {
                let mut cmux = Command::new(&program);
                return output(cmux.args(["new-workspace", "--focus", "true", "--command", line]))
                    .map(drop);
            }
        };
        let made = output(Command::new(&program).args(words))?;
        let surface = surface(&made).ok_or("it named no surface")?;
        // It reads `\n` as Enter; the line itself has no backslash.
        let typed = format!("{line}\\n");
        output(Command::new(&program).args(["send", "--surface", surface, &typed])).map(drop)
    }
}

/// `OK surface:18 pane:5 workspace:5`.
fn surface(said: &str) -> Option<&str> {
    let is = |word: &&str| word.strip_prefix("surface:").is_some_and(|n| n.parse::<u32>().is_ok());
    said.split_whitespace().find(is)
}

#[derive(Debug, PartialEq, Eq)]
pub struct Herdr {
    spot: Spot,
    workspace: Option<OsString>,
}

impl Herdr {
    pub fn found(spot: Spot, env: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let inside = env("HERDR_ENV").is_some_and(|v| v == "1") && env("HERDR_PANE_ID").is_some();
        inside.then(|| Self { spot, workspace: env("HERDR_WORKSPACE_ID") })
    }

    pub fn show(&self, line: &str) -> Result<(), String> {
        let program = found("herdr")?;
        let mut herdr = Command::new(&program);
        match self.spot {
            Spot::Split => herdr.args(["pane", "split", "--current", "--direction", "right"]),
            Spot::Tab => {
                herdr.args(["tab", "create"]);
                if let Some(workspace) = &self.workspace {
                    herdr.arg("--workspace").arg(workspace);
                }
                &mut herdr
            }
            Spot::Window => herdr.args(["workspace", "create"]),
        };
        let made = output(herdr.arg("--focus"))?;
        let pane = pane(&made).ok_or("it named no pane")?;
        output(Command::new(&program).args(["pane", "run", &pane, line])).map(drop)
    }
}

/// `{"result":{"pane":{"pane_id":"w1:p2"}}}`, or `root_pane` of what was made around it.
fn pane(said: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(said).ok()?;
    let result = &answer["result"];
    let id = ["pane", "root_pane"].iter().find_map(|of| result[of]["pane_id"].as_str())?;
    let fits = id.len() < 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || ":-_".contains(c));
    (fits && !id.starts_with('-')).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_named() {
        assert_eq!(surface("OK surface:18 pane:5 workspace:5\n"), Some("surface:18"));
        assert_eq!(surface("OK surface:x workspace:5"), None);
        assert_eq!(pane(r#"{"result":{"pane":{"pane_id":"w1:p2"}}}"#).as_deref(), Some("w1:p2"));
        let tab =
            r#"{"id":"1","result":{"tab":{"tab_id":"w1:t2"},"root_pane":{"pane_id":"w1:p3"}}}"#;
        assert_eq!(pane(tab).as_deref(), Some("w1:p3"));
        for bad in ["", "{}", r#"{"result":{"pane":{"pane_id":"--all"}}}"#] {
            assert_eq!(pane(bad), None, "{bad}");
        }
    }
}
