//! `linear`: Linear through the host.
//!
//! The host's `linear` does the work with the host's login. Descriptions and comments may be files
//! of the box (`--description-file`, `--body-file`); `-` is standard input. An issue is always
//! named: the host does not guess it from a branch.

use crate::plan::{Place, Plan, Sent, Words, help, is_help, usage};
use connectors::linear::{COMMENT, CONNECTOR, CREATE, UPDATE};
use protocol::text::visible;

/// What the host adds by itself.
const QUIET: &[&str] = &["--no-pager", "--no-interactive", "--no-download", "--no-color"];
const DESCRIPTION: &[(&str, &str)] = &[("--description-file", "--description")];

const CREATE_WORDS: Words = Words { grammar: &CREATE, files: DESCRIPTION, dropped: QUIET };
const UPDATE_WORDS: Words = Words { grammar: &UPDATE, files: DESCRIPTION, dropped: QUIET };
const COMMENT_WORDS: Words =
    Words { grammar: &COMMENT, files: &[("--body-file", "--body")], dropped: QUIET };

/// Plans `linear <args>`.
pub fn plan(args: &[String], place: &Place<'_>) -> Plan {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let planned = match words[..] {
        [] | ["help" | "--help" | "-h", ..] => Ok(Plan::Print(help("linear", &CONNECTOR, spelled))),
        ["--version" | "-V", ..] => {
            Ok(Plan::Print(format!("linear {} (through AgentBox)\n", env!("CARGO_PKG_VERSION"))))
        }
        ["auth", "token", ..] => Err("linear: 'auth token' leaks the raw API key — refused. \
             Use 'linear whoami' for identity."
            .to_owned()),
        ["auth", "whoami", ..] => read("whoami", &args[2..], place),
        ["whoami", ..] => read("whoami", &args[1..], place),
        ["auth", ..] => {
            Err("linear auth: the login is the host's, and no key is kept in this box. \
             'linear whoami' shows whose it is."
                .to_owned())
        }
        ["api", ..] => read("api", &args[1..], place),
        ["team" | "t", "list", ..] => read("team.list", &args[2..], place),
        ["issue" | "i", "comment", "add", ..] => {
            texts("issue.comment", &COMMENT_WORDS, &args[3..], place)
        }
        ["issue" | "i", verb, ..] => {
            issue(verb, &args[2..], place).unwrap_or_else(|| Err(unavailable(&words)))
        }
        _ => Err(unavailable(&words)),
    };
    planned.unwrap_or_else(Plan::Refuse)
}

fn issue(verb: &str, args: &[String], place: &Place<'_>) -> Option<Result<Plan, String>> {
    Some(match verb {
        "list" | "mine" | "query" | "view" => read(&format!("issue.{verb}"), args, place),
        "v" => read("issue.view", args, place),
        "create" => texts("issue.create", &CREATE_WORDS, args, place),
        "update" => texts("issue.update", &UPDATE_WORDS, args, place),
        "search" => {
            Err("linear issue search: use 'linear issue query --search <text>'.".to_owned())
        }
        _ => return None,
    })
}

/// An operation whose words go as they are, but for what the host adds.
fn read(op: &str, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    if let Some(text) = asked_for_help(op, args) {
        return Ok(text);
    }
    // A search for "--no-pager" is none of the flags to be left out.
    let plain = Sent { args: args.to_vec(), stdin: None }.call(&CONNECTOR, op, place);
    let quiet = |word: &&String| !QUIET.contains(&word.as_str());
    let without = || Sent { args: args.iter().filter(quiet).cloned().collect(), stdin: None };
    plain.or_else(|_| without().call(&CONNECTOR, op, place))
}

fn texts(op: &str, words: &Words, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    if let Some(text) = asked_for_help(op, args) {
        return Ok(text);
    }
    words.read(args, place)?.call(&CONNECTOR, op, place)
}

fn asked_for_help(op: &str, args: &[String]) -> Option<Plan> {
    let asked = args.first().is_some_and(|word| is_help(word));
    asked.then(|| Plan::Print(usage("linear", &CONNECTOR, op, &spelled(op))))
}

/// How an operation is typed.
fn spelled(op: &str) -> String {
    match op {
        "issue.comment" => "issue comment add".to_owned(),
        op => op.replace('.', " "),
    }
}

fn unavailable(words: &[&str]) -> String {
    let said: Vec<String> = words.iter().take(2).map(|word| visible(word)).collect();
    let possible: Vec<String> = CONNECTOR.ops.iter().map(|op| spelled(op.info.name)).collect();
    format!(
        "linear: '{}' is not available in a box. Possible: {}.",
        said.join(" "),
        possible.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io;
    use std::path::Path;

    fn planned(words: &[&str]) -> Plan {
        let read = |path: &Path| match path.to_str() {
            Some("/workspace/notes.md") => Ok("--start\nnotes".to_owned()),
            Some("/workspace/long.md") => Ok("x".repeat(100_000)),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let place = Place { cwd: Path::new("/workspace"), read: &read };
        plan(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &place)
    }

    fn refusal(words: &[&str]) -> String {
        match planned(words) {
            Plan::Refuse(line) => line,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    fn calls(words: &[&str], op: &str, args: &[&str]) {
        let mut params = json!({ "path": "/workspace" });
        if !args.is_empty() {
            params["args"] = json!(args);
        }
        let wanted = Plan::Call { method: format!("integration.linear.{op}"), params };
        assert_eq!(planned(words), wanted, "{words:?}");
    }

    #[test]
    fn familiar_lines_become_operations() {
        calls(&["whoami"], "whoami", &[]);
        calls(&["auth", "whoami"], "whoami", &[]);
        calls(&["team", "list"], "team.list", &[]);
        calls(&["i", "v", "ENG-1", "--no-pager"], "issue.view", &["ENG-1"]);
        calls(&["issue", "mine", "-s", "started"], "issue.mine", &["-s", "started"]);
        calls(
            &["issue", "query", "--search", "--no-pager"],
            "issue.query",
            &["--search", "--no-pager"],
        );
        calls(
            &["issue", "create", "-t", "--description-file", "--no-interactive", "--team=ENG"],
            "issue.create",
            &["--title", "--description-file", "--team", "ENG"],
        );
        calls(&["api", "{ viewer { id } }"], "api", &["{ viewer { id } }"]);
    }

    #[test]
    fn relay_19_42_the_key_is_not_printed() {
        let line = "linear: 'auth token' leaks the raw API key — refused. Use 'linear whoami' for identity.";
        assert_eq!(refusal(&["auth", "token"]), line);
        assert!(refusal(&["auth", "login"]).contains("the login is the host's"));
        assert!(refusal(&["issue", "delete", "ENG-1"]).contains("'issue delete' is not available"));
        assert!(refusal(&["issue", "start"]).contains("Possible: whoami, issue list"));
        assert!(refusal(&["--workspace", "o"]).contains("not available"));
    }

    #[test]
    fn relay_19_43_files_are_files_of_the_box() {
        calls(
            &["issue", "comment", "add", "ENG-1", "--body-file", "notes.md"],
            "issue.comment",
            &["ENG-1", "--body", "--start\nnotes"],
        );
        calls(
            &["issue", "update", "ENG-1", "--description-file=/workspace/notes.md"],
            "issue.update",
            &["ENG-1", "--description", "--start\nnotes"],
        );
        let Plan::Call { params, .. } =
            planned(&["issue", "comment", "add", "ENG-1", "--body-file", "long.md"])
        else {
            panic!("no call")
        };
        assert_eq!(
            (&params["args"], params["stdin"].as_str().unwrap().len()),
            (&json!(["ENG-1"]), 100_000)
        );
        assert!(
            refusal(&["issue", "comment", "add", "ENG-1", "--body-file", "/etc/shadow"])
                .contains("in this box")
        );
        assert!(
            refusal(&["issue", "comment", "add", "ENG-1", "--attach", "x"])
                .contains("reads a file of the host")
        );
        assert!(refusal(&["issue", "view"]).contains("one issue like ENG-123"));
        assert!(refusal(&["api", "mutation { x }"]).contains("only GraphQL queries"));
    }

    #[test]
    fn help_is_made_from_the_table() {
        let Plan::Print(text) = planned(&["help"]) else { panic!("no help") };
        assert!(text.contains("linear issue comment add <id> --body"), "{text}");
        let Plan::Print(text) = planned(&["issue", "create", "-h"]) else { panic!("no help") };
        assert!(text.starts_with("linear issue create --title"), "{text}");
        assert!(
            matches!(planned(&["--version"]), Plan::Print(text) if text.starts_with("linear "))
        );
    }
}
