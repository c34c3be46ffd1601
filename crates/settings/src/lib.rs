//! What a person can set, typed: built-in defaults below `$AGENTBOX_HOME/config.yaml`.
//!
//! Only the host's own file is read here. Files in a work tree are never asked: a box can write
//! them. An unknown key is an error that names it, so that a misspelt safety setting is noticed.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    pub engine: Engine,
    #[serde(rename = "box")]
    pub boxes: Boxes,
    pub approvals: Approvals,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Engine {
    /// `unix:///path/to.sock`; none means the usual places.
    pub host: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Boxes {
    /// An image to use instead of the built one.
    pub image: Option<String>,
    /// Certificate files boxes trust besides the public ones. None means those the host has added
    /// locally; an empty list means none.
    pub extra_cas: Option<Vec<PathBuf>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Approvals {
    /// Seconds a question waits before it is a no.
    pub timeout_seconds: u64,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { timeout_seconds: 15 * 60 }
    }
}

impl Approvals {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

impl Settings {
    /// Reads `config.yaml` below the home; a missing or empty file means the defaults.
    pub fn load(home: &Path) -> Result<Self, Error> {
        let path = home.join("config.yaml");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(Error::Read { path, source }),
        };
        let settings = Self::parse(&text);
        settings.and_then(Self::with_certificates).map_err(|reason| Error::Invalid { path, reason })
    }

    /// A certificate that is not there would only be missed by whoever needs it in a box.
    fn with_certificates(self) -> Result<Self, String> {
        let given = self.boxes.extra_cas.iter().flatten();
        match given.into_iter().find(|file| !file.is_file()) {
            Some(file) => Err(format!("box.extraCas: there is no file {}", file.display())),
            None => Ok(self),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let given: Option<Self> = serde_norway::from_str(text).map_err(|e| e.to_string())?;
        let settings = given.unwrap_or_default();
        if settings.approvals.timeout_seconds == 0 {
            return Err("approvals.timeoutSeconds must be at least 1".into());
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_defaults() {
        assert_eq!(Settings::parse("").unwrap(), Settings::default());
        assert_eq!(Settings::parse("# nothing\n").unwrap(), Settings::default());
    }

    #[test]
    fn keys_reach_their_fields() {
        let text = "engine: {host: 'unix:///x.sock'}\nbox: {extraCas: [/a.crt]}\napprovals: {timeoutSeconds: 60}";
        let s = Settings::parse(text).unwrap();
        assert_eq!(s.engine.host.as_deref(), Some("unix:///x.sock"));
        assert_eq!(s.boxes.extra_cas, Some(vec!["/a.crt".into()]));
        assert_eq!(s.approvals.timeout(), Duration::from_secs(60));
    }

    #[test]
    fn a_certificate_that_is_not_there_is_named() {
        let settings = Settings::parse("box: {extraCas: [/nope.crt]}").unwrap();
        assert_eq!(
            settings.with_certificates().unwrap_err(),
            "box.extraCas: there is no file /nope.crt"
        );
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let e = Settings::parse("approvals: {timeout: 5}").unwrap_err();
        assert!(e.contains("timeout") && e.contains("timeoutSeconds"), "{e}");
        assert!(Settings::parse("approvals: {timeoutSeconds: 0}").is_err());
    }
}
