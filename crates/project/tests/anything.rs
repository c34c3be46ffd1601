//! What holds for every text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_project::carry::{denied, plan};
use agentbox_project::render::{Values, render};
use agentbox_project::{Project, Replaced, Rule};
use proptest::prelude::*;
use std::path::Path;

/// Texts that look like the file, more or less.
fn yamlish() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "services",
        "tasks",
        "carry",
        "replacements",
        "command",
        "image",
        "needs",
        "env",
        "a",
        "b",
        "ready_when",
        "port",
        "http",
        "log_match",
        "expose",
        "run_once",
        "src",
        "dest",
        "mode",
        "~/x",
        "./y",
        "/z",
        "&a",
        "*a",
        "<<",
        "0600",
        "3.10",
        "true",
        "null",
        "(",
        "'",
        "\"",
        "|",
        "http://x",
        "from",
        "to",
        "regex",
        "name",
        "backoff",
        "factor",
        "\u{202e}",
        "é",
        "\0",
        "- ",
        "? ",
    ]);
    let mark = prop::sample::select(vec![
        ": ", ":\n  ", "\n", "\n  ", "\n    ", ", ", " {", "}", " [", "]", " ", "\n- ",
    ]);
    prop::collection::vec((word, mark), 0..40)
        .prop_map(|parts| parts.into_iter().flat_map(|(word, mark)| [word, mark]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_project_or_mistakes(text in prop_oneof![yamlish(), any::<String>()]) {
        let parsed = Project::parse(&text);
        prop_assert_eq!(parsed.project.is_some(), parsed.errors.is_empty());
        for problem in parsed.errors.iter().chain(&parsed.warnings) {
            prop_assert!(problem.place.line >= 1 && problem.place.column >= 1);
            prop_assert!(!problem.line("f").chars().any(char::is_control));
        }
        if let Some(project) = parsed.project {
            let planned = plan(&project, Path::new("/r"), Path::new("/h"), "/home/vscode");
            for one in planned.into_iter().flatten() {
                prop_assert!(denied(&one.dest).is_none());
            }
        }
    }

    #[test]
    fn env_values_keep_their_letters(value in "[0-9]{1,3}(\\.[0-9]{1,3})?|0x[0-9a-f]{1,4}|true|False|[a-z]{1,8}") {
        prop_assume!(!["null", "nan"].contains(&value.as_str()));
        let parsed = Project::parse(&format!("tasks: {{t: {{command: x, env: {{V: {value}}}}}}}"));
        let project = parsed.project.unwrap();
        prop_assert_eq!(&project.tasks[0].env.as_ref().unwrap()["V"], &value);
    }

    #[test]
    fn plain_text_is_replaced_as_the_library_does(text in "[ab$.{}]{0,40}", from in "[ab$.]{1,3}", to in "[ab$&1.]{0,5}") {
        let rule = Rule { from: Replaced::Text(from.clone()), to: to.clone() };
        let done = render(&text, false, [&rule], &Values::default()).unwrap();
        prop_assert_eq!(done.text, text.replace(&from, &to));
    }
}
