//! `clickup`: lists and tasks through the host.

use crate::plan::{Place, Plan};
use connectors::clickup::CONNECTOR;

const FILES: &[(&str, &str)] = &[
    ("--description-file", "--description"),
    ("--markdown-file", "--markdown"),
    ("--text-file", "--text"),
];

/// Plans `clickup <args>`.
pub fn plan(args: &[String], place: &Place<'_>) -> Plan {
    crate::rest::plan(&CONNECTOR, FILES, args, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn planned(words: &[&str]) -> Plan {
        let read = |_: &Path| Ok("# Why".to_owned());
        let place = Place { cwd: Path::new("/workspace"), read: &read };
        plan(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &place)
    }

    #[test]
    fn words_become_operations_and_files_texts() {
        let args = ["task", "create", "--list", "12", "--name", "x", "--markdown-file", "why.md"];
        let params = serde_json::json!({
            "path": "/workspace", "args": ["--list", "12", "--name", "x", "--markdown=# Why"],
        });
        let method = "integration.clickup.task.create".to_owned();
        assert_eq!(planned(&args), Plan::Call { method, params });
    }

    #[test]
    fn mistakes_are_told_at_once() {
        for words in
            [&["task", "delete", "86abc"][..], &["task", "view"], &["task", "update", "86abc"]]
        {
            assert!(matches!(planned(words), Plan::Refuse(_)), "{words:?}");
        }
    }
}
