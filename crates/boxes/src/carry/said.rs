//! What a list says, for a yes that is remembered.
//!
//! Files change while the list stays: how large they are and how many a folder has does not count. All
//! else does: where every link ends, where things go and on which terms, what to look at twice, and what
//! is not there yet.

use super::{Entry, Plan, What, pack};
use sha2::{Digest, Sha256};

/// How much of a digest names a place, and an entry.
const PLACE: usize = 12;
const ENTRY: usize = 20;

/// How an entry stands to a list from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Same,
    /// Something else went there, or on other terms.
    Changed,
    New,
}

/// How a list stands to one from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// In the order of the list.
    pub entries: Vec<Then>,
    pub gone: usize,
}

impl Plan {
    /// The same only for a list that says the very same. Short words, the first for all of it.
    pub fn said(&self) -> String {
        let entries = self.entries.iter().map(Entry::said).collect::<Vec<_>>();
        let whole = digest(&serde_json::json!(entries));
        format!("{whole} {}", self.parts().join(","))
    }

    /// What is another than in the list that said this.
    pub fn since(&self, said: &str) -> Since {
        let (_, before) = said.split_once(' ').unwrap_or_default();
        let before: Vec<&str> = before.split(',').filter(|part| !part.is_empty()).collect();
        let place = |part: &str| part.get(..PLACE).map(str::to_owned);
        let then = |part: &String| match part {
            part if before.contains(&part.as_str()) => Then::Same,
            part if before.iter().any(|old| place(old) == place(part)) => Then::Changed,
            _ => Then::New,
        };
        let now = self.parts();
        let is_gone = |old: &&&str| !now.iter().any(|part| place(part) == place(old));
        Since {
            entries: now.iter().map(then).collect(),
            gone: before.iter().filter(is_gone).count(),
        }
    }

    fn parts(&self) -> Vec<String> {
        let part = |entry: &Entry| {
            let place = digest(&serde_json::json!(entry.place()));
            let said = digest(&serde_json::json!(entry.said()));
            format!("{place:.PLACE$}{said:.ENTRY$}")
        };
        self.entries.iter().map(part).collect()
    }
}

impl Entry {
    fn said(&self) -> serde_json::Value {
        let item = &self.planned.item;
        let kind = match self.what {
            What::Missing => "missing".to_owned(),
            What::File { mode, .. } => format!("file {mode:04o}"),
            What::Folder { .. } => "folder".to_owned(),
        };
        serde_json::json!([
            item.src,
            format!("{:?}", self.planned.source),
            format!("{:?}", self.real),
            self.place(),
            kind,
            item.optional,
            self.terms(),
            self.warnings,
        ])
    }
}

impl Since {
    /// “1 new, 1 gone, 2 as they were”.
    pub fn in_words(&self) -> String {
        let count = |then: Then| self.entries.iter().filter(|one| **one == then).count();
        let (same, one) = (count(Then::Same), count(Then::Same) == 1);
        let as_before = if one { "as it was" } else { "as they were" };
        let all = [
            (count(Then::New), "new"),
            (count(Then::Changed), "changed"),
            (self.gone, "gone"),
            (same, as_before),
        ];
        let all = all.iter().filter(|(many, _)| *many > 0);
        all.map(|(many, how)| format!("{many} {how}")).collect::<Vec<_>>().join(", ")
    }
}

fn digest(of: &serde_json::Value) -> String {
    pack::hex(Sha256::new_with_prefix(of.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Host;
    use super::Then::{Changed, New, Same};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn said(host: &Host, carry: &str) -> String {
        host.resolve(carry, 1000).unwrap().said()
    }

    #[test]
    fn what_a_file_holds_is_not_what_a_list_says() {
        let host = Host::new();
        fs::create_dir(host.home.join("data")).unwrap();
        let list = "[~/notes, ~/data]";
        let before = said(&host, list);
        fs::write(host.home.join("notes"), "more notes").unwrap();
        fs::write(host.home.join("data/a"), "a").unwrap();
        assert_eq!(said(&host, list), before);
        // A name that looks like a credential's is something to look at twice.
        fs::write(host.home.join("data/.env"), "a").unwrap();
        assert_ne!(said(&host, list), before);
    }

    #[test]
    fn whatever_else_changes_is_another_list() {
        let host = Host::new();
        fs::write(host.home.join("other"), "other").unwrap();
        symlink("notes", host.home.join("link")).unwrap();
        let before = said(&host, "[{src: ~/notes, dest: ~/n}]");
        for other in [
            "[{src: ~/other, dest: ~/n}]",
            "[{src: ~/notes, dest: ~/m}]",
            "[{src: ~/link, dest: ~/n}]",
            "[{src: ~/notes, dest: ~/n, mode: 0600}]",
            "[{src: ~/notes, dest: ~/n, user: 0}]",
            "[{src: ~/notes, dest: ~/n, optional: true}]",
            "[{src: ~/notes, dest: ~/n, replaceEnvs: true}]",
            "[{src: ~/notes, dest: ~/n, replace: [{from: a, to: b}]}]",
            "[{src: ~/notes, dest: ~/n, exclude: [a]}]",
            "[{src: ~/notes, dest: ~/n}, ~/other]",
            "[]",
        ] {
            assert_ne!(said(&host, other), before, "{other}");
        }
        fs::set_permissions(host.home.join("notes"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(said(&host, "[{src: ~/notes, dest: ~/n}]"), before);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_another_list() {
        let host = Host::new();
        symlink("notes", host.home.join("link")).unwrap();
        let before = said(&host, "['~/link=/x']");
        fs::remove_file(host.home.join("link")).unwrap();
        symlink(".ssh/id_ed25519", host.home.join("link")).unwrap();
        assert_ne!(said(&host, "['~/link=/x']"), before);
        fs::remove_file(host.home.join("link")).unwrap();
        fs::create_dir(host.home.join("link")).unwrap();
        assert_ne!(said(&host, "['~/link=/x']"), before);
    }

    #[test]
    fn what_was_missing_is_another_list_once_it_is_there() {
        let host = Host::new();
        let list = "[~/notes, {src: ~/later, optional: true}]";
        let before = said(&host, list);
        assert_eq!(said(&host, list), before);
        fs::write(host.home.join("later"), "x").unwrap();
        assert_ne!(said(&host, list), before);
    }

    #[test]
    fn two_lists_are_told_apart_entry_by_entry() {
        let host = Host::new();
        fs::write(host.home.join("other"), "other").unwrap();
        let before = said(&host, "[~/notes, '~/other=/o', '~/other=/p']");
        let plan = host.resolve("[~/notes, '~/notes=/o', '~/other=/new']", 1000).unwrap();
        let since = plan.since(&before);
        assert_eq!((since.entries.as_slice(), since.gone), (&[Same, Changed, New][..], 1));
        assert_eq!(since.in_words(), "1 new, 1 changed, 1 gone, 1 as it was");
        // Whatever stands there.
        for odd in ["", "x", " ", "x é,ééééééééééé"] {
            assert!(plan.since(odd).entries.iter().all(|one| *one == New), "{odd}");
        }
    }
}
