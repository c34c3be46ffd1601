//! `trello`: boards, lists and cards through the host.

use crate::plan::{Place, Plan};
use connectors::trello::CONNECTOR;

const FILES: &[(&str, &str)] = &[("--desc-file", "--desc"), ("--text-file", "--text")];

/// Plans `trello <args>`.
pub fn plan(args: &[String], place: &Place<'_>) -> Plan {
    crate::rest::plan(&CONNECTOR, FILES, args, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::Path;

    const LIST: &str = "5abbe4b7ddc1b351ef961414";

    fn planned(words: &[&str]) -> Plan {
        let read = |path: &Path| match path.to_str() {
            Some("/workspace/app/notes.md") => Ok("One\n--two".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let place = Place { cwd: Path::new("/workspace/app"), read: &read };
        plan(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &place)
    }

    fn refusal(words: &[&str]) -> String {
        match planned(words) {
            Plan::Refuse(line) => line,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    fn calls(words: &[&str], method: &str, args: &[&str]) {
        let params = match args {
            [] => serde_json::json!({"path": "/workspace/app"}),
            args => serde_json::json!({"path": "/workspace/app", "args": args}),
        };
        assert_eq!(planned(words), Plan::Call { method: method.into(), params }, "{words:?}");
    }

    #[test]
    fn words_become_operations() {
        calls(&["whoami"], "integration.trello.whoami", &[]);
        calls(&["board", "list", "--closed"], "integration.trello.board.list", &["--closed"]);
        calls(&["card.view", "aB3dE6gH"], "integration.trello.card.view", &["aB3dE6gH"]);
        calls(
            &["card", "comment", "aB3dE6gH", "--text", "--text-file"],
            "integration.trello.card.comment",
            &["aB3dE6gH", "--text", "--text-file"],
        );
    }

    #[test]
    fn files_are_files_of_the_box() {
        for form in [&["--desc-file", "notes.md"][..], &["--desc-file=/workspace/app/notes.md"]] {
            calls(
                &[&["card", "create", "--list", LIST, "--name", "x"], form].concat(),
                "integration.trello.card.create",
                &["--list", LIST, "--name", "x", "--desc=One\n--two"],
            );
        }
        let line =
            refusal(&["card", "create", "--list", LIST, "--name", "x", "--desc-file", "none"]);
        assert!(line.contains("cannot read 'none' in this box"), "{line}");
        assert!(refusal(&["card", "comment", "aB3dE6gH", "--text-file"]).contains("needs a file"));
    }

    #[test]
    fn mistakes_are_told_at_once() {
        assert!(refusal(&["card", "delete", "aB3dE6gH"]).contains("no 'card delete' here"));
        assert!(refusal(&["bo\u{202e}ard"]).contains("⟨U+202E⟩"));
        assert!(refusal(&["card", "view", "../x"]).starts_with("trello card.view: '../x'"));
        assert!(refusal(&["card", "view", "aB3dE6gH", "--json"]).contains("unsupported flag"));
    }

    #[test]
    fn help_is_made_from_the_table() {
        for words in [&[][..], &["--help"], &["help"]] {
            let Plan::Print(text) = planned(words) else { panic!("{words:?}") };
            assert!(text.contains("trello card create --list <id>"), "{text}");
        }
        let Plan::Print(text) = planned(&["card", "move", "--help"]) else { panic!() };
        assert!(text.starts_with("trello card move <card> --list <id>") && text.contains("asked"));
        assert!(
            matches!(planned(&["--version"]), Plan::Print(text) if text.starts_with("trello version"))
        );
    }
}
