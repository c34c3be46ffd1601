//! `ntn` and `notion`: Notion through the host.
//!
//! The host's `ntn` does the work with the host's credential. Page and comment texts may be files
//! of the box (`--content-file`, `--text-file`); `-` is standard input.

use crate::plan::{Place, Plan, Sent, Words, help, is_help, usage};
use connectors::notion::{COMMENT, CONNECTOR, CREATE, UPDATE};
use protocol::text::visible;

const CREATE_WORDS: Words =
    Words { grammar: &CREATE, files: &[("--content-file", "--content")], dropped: &[] };
const UPDATE_WORDS: Words =
    Words { grammar: &UPDATE, files: &[("--content-file", "--content")], dropped: &[] };
const COMMENT_WORDS: Words =
    Words { grammar: &COMMENT, files: &[("--text-file", "--text")], dropped: &[] };

/// Plans `ntn <args>`.
pub fn plan(args: &[String], place: &Place<'_>) -> Plan {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let planned = match words[..] {
        [] | ["help" | "--help" | "-h", ..] => Ok(Plan::Print(help("ntn", &CONNECTOR, spelled))),
        ["--version" | "-V", ..] => {
            Ok(Plan::Print(format!("ntn {} (through AgentBox)\n", env!("CARGO_PKG_VERSION"))))
        }
        ["whoami", ..] => direct("whoami", &args[1..], place),
        ["api", ..] => direct("api", &args[1..], place),
        ["pages" | "page", "create", ..] => texts("page.create", &CREATE_WORDS, &args[2..], place),
        ["pages" | "page", "update", ..] => texts("page.update", &UPDATE_WORDS, &args[2..], place),
        ["pages" | "page", "get", ..] => {
            Err("ntn pages get: not available in a box. Use 'ntn api v1/pages/<id>/markdown'."
                .to_owned())
        }
        ["comments" | "comment", "add" | "create", ..] => {
            texts("comment.add", &COMMENT_WORDS, &args[2..], place)
        }
        ["login" | "logout" | "tokens", ..] => Err(format!(
            "ntn {}: the credential is the host's, and none is kept in this box. 'ntn whoami' shows \
             whose it is.",
            words[0]
        )),
        _ => Err(unavailable(&words)),
    };
    planned.unwrap_or_else(Plan::Refuse)
}

fn direct(op: &str, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    Sent { args: args.to_vec(), stdin: None }.call(&CONNECTOR, op, place)
}

fn texts(op: &str, words: &Words, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    if args.first().is_some_and(|word| is_help(word)) {
        return Ok(Plan::Print(usage("ntn", &CONNECTOR, op, &spelled(op))));
    }
    words.read(args, place)?.call(&CONNECTOR, op, place)
}

/// How an operation is typed.
fn spelled(op: &str) -> String {
    match op {
        "comment.add" => "comments add".to_owned(),
        op => op.replace("page.", "pages "),
    }
}

fn unavailable(words: &[&str]) -> String {
    let said: Vec<String> = words.iter().take(2).map(|word| visible(word)).collect();
    let possible: Vec<String> = CONNECTOR.ops.iter().map(|op| spelled(op.info.name)).collect();
    format!(
        "ntn: '{}' is not available in a box. Possible: {}.",
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

    const PAGE: &str = "1a2b3c4d-0000-4000-8000-00000000abcd";

    fn planned(words: &[&str]) -> Plan {
        let read = |path: &Path| match path.to_str() {
            Some("/workspace/app/plan.md") => Ok("# Plan".to_owned()),
            Some("/workspace/app/long.md") => Ok("x".repeat(100_000)),
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

    fn calls(words: &[&str], op: &str, args: &[&str]) {
        let mut params = json!({ "path": "/workspace/app" });
        if !args.is_empty() {
            params["args"] = json!(args);
        }
        let wanted = Plan::Call { method: format!("integration.notion.{op}"), params };
        assert_eq!(planned(words), wanted, "{words:?}");
    }

    #[test]
    fn familiar_lines_become_operations() {
        calls(&["whoami"], "whoami", &[]);
        calls(&["api", "v1/search", "-d", "{}"], "api", &["v1/search", "-d", "{}"]);
        calls(&["api", "v1/users", "--help"], "api", &["v1/users", "--help"]);
        let parent = format!("page:{PAGE}");
        calls(
            &["pages", "create", "--parent", &parent, "--content=-x", "--json"],
            "page.create",
            &["--parent", &parent, "--content", "-x", "--json"],
        );
        calls(&["page", "update", PAGE, "--archive"], "page.update", &[PAGE, "--archive"]);
        calls(
            &["comments", "add", "--page", PAGE, "--text", "--text-file"],
            "comment.add",
            &["--page", PAGE, "--text", "--text-file"],
        );
    }

    #[test]
    fn files_are_files_of_the_box() {
        let parent = format!("page:{PAGE}");
        for form in [&["--content-file", "plan.md"][..], &["--content-file=/workspace/app/plan.md"]]
        {
            let line = [&["pages", "create", "--parent", &parent], form].concat();
            calls(&line, "page.create", &["--parent", &parent, "--content", "# Plan"]);
        }
        let Plan::Call { params, .. } =
            planned(&["pages", "update", PAGE, "--content-file", "long.md"])
        else {
            panic!("no call")
        };
        assert_eq!(params["args"], json!([PAGE]));
        assert_eq!(params["stdin"].as_str().unwrap().len(), 100_000);
        assert!(
            refusal(&["pages", "update", PAGE, "--content-file", "none"])
                .contains("cannot read 'none'")
        );
        assert!(refusal(&["pages", "update", PAGE, "--content-file"]).contains("needs a file"));
        // Only the text itself may come beside the words.
        let long = "x".repeat(100_000);
        assert!(refusal(&["pages", "update", PAGE, "--title", &long]).contains("too many"));
    }

    #[test]
    fn relay_19_36_mistakes_are_told_at_once() {
        assert!(
            refusal(&["api", "v1/pages", "-d", "{}"]).starts_with("notion api: POST to 'v1/pages'")
        );
        assert!(refusal(&["login"]).contains("the credential is the host's"));
        assert!(refusal(&["pages", "get", PAGE]).contains("v1/pages/<id>/markdown"));
        assert!(
            refusal(&["files", "create"])
                .contains("Possible: whoami, api, pages create, pages update, comments add.")
        );
        assert!(refusal(&["--env", "prod"]).contains("'--env prod'"));
    }

    #[test]
    fn help_is_made_from_the_table() {
        let Plan::Print(text) = planned(&["--help"]) else { panic!("no help") };
        assert!(
            text.contains("ntn pages create --parent") && text.contains("ntn comments add"),
            "{text}"
        );
        let Plan::Print(text) = planned(&["pages", "update", "--help"]) else { panic!("no help") };
        assert!(text.starts_with("ntn pages update <id>") && text.contains("asked"), "{text}");
        assert!(matches!(planned(&["--version"]), Plan::Print(text) if text.starts_with("ntn ")));
    }
}
