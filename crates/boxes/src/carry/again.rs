//! What a person agreed to once, brought to the box again after it changed on this computer.
//!
//! The list may be another one by now, and a box may have written it. So only the very same entry counts:
//! the same end of every link, to the same place, on the same terms, with nothing new to look at twice.
//! Everything else needs a question, and that is asked when a box is made.

use super::{Entry, Plan, What, Yes, pack};
use crate::{Boxes, Error, Record};
use ::project::render::Values;
use protocol::carry::Carried;
use protocol::text::{shortened, visible};
use sha2::{Digest, Sha256};
use std::io;

/// Entries that are named one by one.
const NAMED: usize = 5;

/// What is to be brought again.
#[derive(Debug)]
pub struct Again {
    only: Plan,
    /// As it is here now.
    pub changed: Vec<Carried>,
    /// Why something is not brought.
    pub left: Vec<String>,
}

impl Plan {
    /// What of it changed since it was copied to a box.
    pub async fn again(self, record: &Record) -> Result<Again, Error> {
        let (before, values) = (record.carry.clone(), record.values());
        let looked = tokio::task::spawn_blocking(move || {
            let Found { changed, left } = self.changed(&before, &values);
            let only = self.only(|at| changed.iter().any(|(changed, _)| *changed == at));
            Again { only, changed: changed.into_iter().map(|(_, now)| now).collect(), left }
        });
        looked.await.map_err(|e| Error::Carry(e.to_string()))
    }
}

impl Boxes {
    /// Brings it to the running box; what the box has then, and what it should have but for a failure.
    pub async fn carry_again(&self, record: &Record, again: &Again) -> Result<Vec<Carried>, Error> {
        let Some(first) = again.changed.first() else { return Ok(Vec::new()) };
        let values = record.values();
        let mut copied = self.carry(&record.container, &again.only, values, yes(first)).await?;
        for (copied, agreed) in copied.iter_mut().zip(&again.changed) {
            copied.by = agreed.by;
            copied.approved_at = agreed.approved_at;
            copied.warnings.clone_from(&agreed.warnings);
        }
        Ok(copied)
    }
}

/// What of a list is to be copied again: numbers, with what is there now, as it was agreed to.
#[derive(Debug, Default)]
struct Found {
    changed: Vec<(usize, Carried)>,
    left: Vec<String>,
}

impl Plan {
    fn changed(&self, before: &[Carried], values: &Values) -> Found {
        let mut found = Found::default();
        let mut strange = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.what == What::Missing {
                continue;
            }
            let shown = || visible(&::project::carry::shown(&entry.planned.item));
            let Some(agreed) = before.iter().find(|carried| entry.is_as_agreed(carried)) else {
                strange.push(shown());
                continue;
            };
            let mut nowhere = tar::Builder::new(pack::Out::new(io::sink()));
            match self.pack_one(at, entry, values, yes(agreed), &mut nowhere) {
                Ok(Some(Carried { failed: Some(why), .. })) => {
                    found.left.push(format!("{}: {why}", shown()));
                }
                // What did not get there is tried again.
                Ok(Some(now)) if now.hash != agreed.hash || agreed.failed.is_some() => {
                    let warnings = agreed.warnings.clone();
                    found.changed.push((at, Carried { warnings, ..now }));
                }
                Ok(_) => {}
                Err(e) => found.left.push(format!("{}: {e}", shown())),
            }
        }
        if let Some(line) = not_agreed(&strange) {
            found.left.push(line);
        }
        found
    }
}

/// The yes something was copied by.
fn yes(agreed: &Carried) -> Yes {
    Yes { by: agreed.by, at: agreed.approved_at }
}

fn not_agreed(strange: &[String]) -> Option<String> {
    let entries = match strange.len() {
        0 => return None,
        1 => "1 entry that was".to_owned(),
        many => format!("{many} entries that were"),
    };
    let names: Vec<String> = strange.iter().take(NAMED).map(|one| shortened(one, 120)).collect();
    let more = if strange.len() > NAMED { ", …" } else { "" };
    let names = names.join(", ");
    Some(format!(
        "carry has {entries} not agreed to for this box: {names}{more}; making a box asks"
    ))
}

impl Entry {
    /// Everything but where it is from and goes to that a person agreed to.
    pub(super) fn terms(&self) -> String {
        let item = &self.planned.item;
        let folder = matches!(self.what, What::Folder { .. });
        let terms = serde_json::json!([
            folder,
            item.mode,
            item.user,
            item.replace_envs,
            item.exclude,
            item.default_excludes,
            format!("{:?}", self.planned.rules),
        ]);
        pack::hex(Sha256::new_with_prefix(terms.to_string()))
    }

    fn is_as_agreed(&self, carried: &Carried) -> bool {
        self.real.to_str() == Some(carried.src.as_str())
            && self.place() == carried.dest
            && carried.terms.as_ref() == Some(&self.terms())
            && self.warnings.iter().all(|warning| carried.warnings.contains(warning))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Host;
    use super::*;
    use protocol::carry::CarryBy;
    use std::fs;

    fn copied(host: &Host, carry: &str) -> Vec<Carried> {
        let plan = host.resolve(carry, 1000).unwrap();
        let yes = Yes { by: CarryBy::Prompt, at: Some(7) };
        plan.pack(&Values::default(), yes, io::sink()).unwrap()
    }

    /// Numbers of what is copied again, and what is said.
    fn again(host: &Host, before: &[Carried], carry: &str) -> (Vec<usize>, String) {
        let plan = host.resolve(carry, 1000).unwrap();
        let found = plan.changed(before, &Values::default());
        (found.changed.iter().map(|(at, _)| *at).collect(), found.left.join("\n"))
    }

    #[test]
    fn yaml_13_53_only_what_changed_and_was_agreed_to_is_copied_again() {
        let host = Host::new();
        let list = "[{src: ~/notes, dest: /x, replaceEnvs: true}, {src: ~/other, optional: true}]";
        let before = copied(&host, list);
        assert_eq!(before.len(), 1);
        assert_eq!(before[0].src, host.home.join("notes").display().to_string());
        assert_eq!(again(&host, &before, list), (vec![], String::new()));
        fs::write(host.home.join("notes"), "{{AGENTBOX_BOX_NAME}}").unwrap();
        assert_eq!(again(&host, &before, list), (vec![0], String::new()));
        let now = host.resolve(list, 1000).unwrap().changed(&before, &Values::default());
        assert_eq!(now.changed[0].1.approved_at, Some(7), "the yes is the one it had");
        // One that was not there when a person agreed is another one.
        fs::write(host.home.join("other"), "x").unwrap();
        let (changed, left) = again(&host, &before, list);
        assert_eq!(changed, [0]);
        assert!(left.contains("1 entry that was not agreed to") && left.contains("~/other"));
    }

    #[test]
    fn what_did_not_get_there_is_tried_again() {
        let host = Host::new();
        let list = "['~/notes=/x']";
        let mut before = copied(&host, list);
        assert!(again(&host, &before, list).0.is_empty());
        before[0].failed = Some("it is a folder".into());
        assert_eq!(again(&host, &before, list), (vec![0], String::new()));
    }

    #[test]
    fn a_list_that_says_something_else_copies_nothing() {
        let host = Host::new();
        let before = copied(&host, "['~/notes=/x']");
        fs::write(host.home.join("notes"), "changed").unwrap();
        assert_eq!(again(&host, &before, "['~/notes=/x']").0, [0]);
        for other in [
            "['~/.ssh/id_ed25519=/x']",
            "['~/notes=/y']",
            "[{src: ~/notes, dest: /x, mode: 0644}]",
            "[{src: ~/notes, dest: /x, user: 0}]",
            "[{src: ~/notes, dest: /x, replaceEnvs: true}]",
            "[{src: ~/notes, dest: /x, replace: [{from: a, to: b}]}]",
        ] {
            let (changed, left) = again(&host, &before, other);
            assert!(changed.is_empty() && left.contains("not agreed to"), "{other}: {left}");
        }
        // A link to something else in its place is not what it was.
        fs::remove_file(host.home.join("notes")).unwrap();
        std::os::unix::fs::symlink(host.home.join(".ssh/id_ed25519"), host.home.join("notes"))
            .unwrap();
        assert!(again(&host, &before, "['~/notes=/x']").0.is_empty());
        // A record from before there were terms.
        let old = before.into_iter().map(|one| Carried { terms: None, ..one }).collect::<Vec<_>>();
        assert!(again(&host, &old, "['~/notes=/x']").0.is_empty());
    }

    #[test]
    fn what_a_folder_has_that_nobody_was_told_of_waits_for_a_person() {
        let host = Host::new();
        let data = host.home.join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("a"), "a").unwrap();
        let before = copied(&host, "[~/data]");
        fs::write(data.join("b"), "b").unwrap();
        assert_eq!(again(&host, &before, "[~/data]"), (vec![0], String::new()));
        fs::write(data.join(".env"), "KEY").unwrap();
        assert!(again(&host, &before, "[~/data]").0.is_empty());
        let less = again(&host, &before, "[{src: ~/data, default_excludes: false}]");
        assert!(less.0.is_empty() && less.1.contains("not agreed to"));
    }
}
