//! Files from this computer that a project's `agentbox.yaml` wants in its boxes.

use crate::Millis;
use crate::text::{shortened, visible};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What would be copied, for a person to look at. Every string has been made visible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CarryPlan {
    pub files: Vec<CarryLine>,
    /// Binds a yes to this list, as it is on disk now.
    pub digest: String,
    /// What a person should know of the file.
    pub warnings: Vec<String>,
    /// The rule that says yes to this list, as its sentence.
    #[serde(default)]
    pub remembered: Option<String>,
    /// How the list differs from one a rule says yes to: “1 new, 2 as they were”.
    #[serde(default)]
    pub changes: Option<String>,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CarryLine {
    /// As it is written.
    pub src: String,
    /// Where it goes in the box.
    pub dest: String,
    pub kind: CarryKind,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Octal; none for a folder whose files keep their own.
    pub mode: Option<String>,
    /// Whose it is in the box, when not the box user's.
    pub user: Option<u32>,
    /// What else holds: `optional`, `rendered`.
    pub notes: Vec<String>,
    /// What a person should look at twice.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryKind {
    #[default]
    File,
    Folder,
    /// It need not be there, and is not.
    Missing,
}

/// What a person decided beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryChoice {
    /// Copy. With a digest only the list that was shown.
    #[serde(rename_all = "camelCase")]
    Copy {
        digest: Option<String>,
        by: CarryBy,
        /// And the same list again in every new box of the project. Only with a digest.
        #[serde(default)]
        remember: bool,
        /// When that was said; none is now. The host notes it for a job, which may begin much later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", ts(optional, type = "number"))]
        at: Option<Millis>,
    },
    /// A box without these files.
    Skip,
    /// Ask, also when a rule would say yes.
    Ask,
}

/// How a yes was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CarryBy {
    /// At a terminal, after the list.
    Prompt,
    Flag,
    Env,
    /// As a question of the host's.
    Question,
    /// Once for this list, at one of those.
    Rule,
    /// With a job, when it was submitted.
    Queue,
    /// With a conversation that goes on in a box.
    Fork,
}

/// What was copied, or was to be. Contents are never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Carried {
    /// Where it was on this computer, links followed.
    pub src: String,
    pub dest: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// Of what was read here, before anything was replaced in it.
    pub hash: String,
    pub by: CarryBy,
    /// When a person agreed. None in a record from before that was noted.
    #[serde(default)]
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub approved_at: Option<Millis>,
    #[serde(default)]
    pub kind: CarryKind,
    /// Octal, when the list says one.
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default)]
    pub user: Option<u32>,
    /// Of everything else that was agreed to: rules, what is left out. None in a record from before
    /// there was one, which nothing is copied again by.
    #[serde(default)]
    pub terms: Option<String>,
    /// What the person was told to look at twice, and agreed to.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Why it is not in its place. Its content may have reached the box all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(optional))]
    pub failed: Option<String>,
    /// Placeholders in it that had no value and were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "bindings", ts(as = "Option<Vec<String>>", optional))]
    pub unfilled: Vec<String>,
}

impl Carried {
    /// Why it is not there, with where it is from and was to go.
    pub fn failure(&self) -> Option<String> {
        let why = self.failed.as_ref()?;
        Some(format!("{} → {}: {why}", visible(&self.src), visible(&self.dest)))
    }
}

/// First line of `agentbox-ctl carry`'s standard input. A tar stream follows, whose names begin with
/// the number of an entry: `0` is a file, `1/…` what is in a folder. `!1` says that what came last of that
/// entry is not whole, and that no more of it follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarryIn {
    pub entries: Vec<CarryInto>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CarryInto {
    /// Absolute; a folder for a file to go into when it ends with `/`.
    pub dest: String,
    /// What a file is called there.
    pub name: String,
    pub folder: bool,
    /// The box user's when absent.
    pub user: Option<u32>,
}

/// What `agentbox-ctl carry` answers: the entries it could not lay out. All others are in their places.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CarryOut {
    pub failed: Vec<CarryFailed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CarryFailed {
    /// Its number.
    pub entry: usize,
    pub why: String,
}

/// A longer reason is cut.
pub const LONGEST_WHY: usize = 300;

impl CarryOut {
    /// Why entries failed, by their numbers. A box can say that of each it was `asked` for, once, and of
    /// nothing else; its words are made harmless.
    pub fn checked(
        self,
        asked: impl Fn(usize) -> bool,
    ) -> Result<BTreeMap<usize, String>, &'static str> {
        let mut failed = BTreeMap::new();
        for CarryFailed { entry, why } in self.failed {
            if !asked(entry) {
                return Err("it names an entry it was not asked for");
            }
            if failed.insert(entry, shortened(&why, LONGEST_WHY)).is_some() {
                return Err("it names an entry twice");
            }
        }
        Ok(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<BTreeMap<usize, String>, String> {
        let out: CarryOut = serde_json::from_str(text).map_err(|e| e.to_string())?;
        out.checked(|entry| entry < 2).map_err(str::to_owned)
    }

    #[test]
    fn a_box_can_only_say_which_of_the_asked_entries_failed() {
        assert_eq!(answer(r#"{"failed":[]}"#).unwrap(), BTreeMap::new());
        let one = answer(r#"{"failed":[{"entry":1,"why":"it is a folder"}]}"#).unwrap();
        assert_eq!(one, BTreeMap::from([(1, "it is a folder".to_owned())]));
        for odd in [
            r#"{"failed":[{"entry":2,"why":"x"}]}"#,
            r#"{"failed":[{"entry":-1,"why":"x"}]}"#,
            r#"{"failed":[{"entry":18446744073709551616,"why":"x"}]}"#,
            r#"{"failed":[{"entry":0,"why":"x"},{"entry":0,"why":"y"}]}"#,
            r#"{"failed":[{"entry":0,"why":"x","src":"/etc/shadow"}]}"#,
            r#"{"failed":[],"copied":[0]}"#,
            r#"{"failed":[{"entry":0}]}"#,
            "{}",
            "[]",
        ] {
            assert!(answer(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_boxs_reason_draws_on_nobodys_terminal() {
        let why = format!(r"\u001b[2J\u202e{}", "x".repeat(5000));
        let said = answer(&format!(r#"{{"failed":[{{"entry":0,"why":"{why}"}}]}}"#)).unwrap();
        assert!(!said[&0].contains(['\u{1b}', '\u{202e}']), "{said:?}");
        assert!(said[&0].chars().count() < 2 * LONGEST_WHY, "{said:?}");
    }

    #[test]
    fn a_record_from_before_is_read() {
        let old = r#"{"src":"/a\u001b","dest":"/b","bytes":1,"hash":"00","by":"rule"}"#;
        let mut carried: Carried = serde_json::from_str(old).unwrap();
        assert_eq!((carried.approved_at, carried.failure()), (None, None));
        carried.failed = Some("it is a folder".into());
        assert_eq!(carried.failure().unwrap(), "/a\\x1b → /b: it is a folder");
        let copy = r#"{"kind":"copy","digest":null,"by":"fork"}"#;
        let copy: CarryChoice = serde_json::from_str(copy).unwrap();
        let (by, digest) = (CarryBy::Fork, None);
        assert_eq!(copy, CarryChoice::Copy { digest, by, remember: false, at: None });
    }
}
