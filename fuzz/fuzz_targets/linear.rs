//! A command line for Linear: a write asks, and the host's `linear` gets only words that stand in
//! this table, which is written down a second time on purpose.
//!
//! The first word is the operation; what follows `\u{2}` is the text beside the arguments.
#![no_main]

use connectors::connector::{Action, Input, Op, Prepared};
use connectors::graphql::Query;
use connectors::linear::CONNECTOR;
use libfuzzer_sys::fuzz_target;

struct Row {
    words: &'static [&'static str],
    issue: bool,
    /// Flags with a value, flags without one, and what the host adds.
    valued: &'static [&'static str],
    plain: &'static [&'static str],
    added: &'static [&'static str],
}

const FILTERS: &[&str] = &[
    "--state", "--assignee", "--sort", "--project", "--project-label", "--cycle", "--milestone", "--label", "--limit",
    "--created-after", "--updated-after", "--team",
];
const FIELDS: &[&str] = &[
    "--title", "--description", "--assignee", "--due-date", "--parent", "--priority", "--estimate", "--label", "--team",
    "--project", "--state", "--milestone", "--cycle",
];
const LISTED: &[&str] = &["--all-states", "--all-assignees", "--unassigned", "--json"];

fn row(op: &str) -> Row {
    let row = |words, valued, plain, added| Row { words, issue: false, valued, plain, added };
    let of = |row: Row| Row { issue: true, ..row };
    match op {
        "whoami" => row(&["auth", "whoami"], &[], &[], &[]),
        "team.list" => row(&["team", "list"], &[], &[], &[]),
        "issue.list" => row(&["issue", "list"], FILTERS, LISTED, &["--no-pager"]),
        "issue.mine" => row(&["issue", "mine"], FILTERS, LISTED, &["--no-pager"]),
        "issue.query" => row(
            &["issue", "query"],
            const {
                &[
                    "--state", "--assignee", "--sort", "--project", "--project-label", "--cycle", "--milestone", "--label",
                    "--limit", "--created-after", "--updated-after", "--team", "--search",
                ]
            },
            &["--all-states", "--all-assignees", "--unassigned", "--json", "--all-teams", "--search-comments", "--include-archived"],
            &["--no-pager"],
        ),
        "issue.view" => of(row(&["issue", "view"], &[], &["--json", "--no-comments"], &["--no-pager", "--no-download"])),
        "issue.create" => row(&["issue", "create"], FIELDS, &["--no-use-default-template"], &["--no-interactive"]),
        "issue.update" => of(row(&["issue", "update"], FIELDS, &[], &[])),
        "issue.comment" => of(row(&["issue", "comment", "add"], &["--body", "--parent"], &[], &[])),
        "api" => row(&["api"], &["--variables-json"], &["--paginate", "--silent"], &[]),
        other => panic!("{other} has no row"),
    }
}

fn is_issue(text: &str) -> bool {
    let Some((team, number)) = text.split_once('-') else { return false };
    team.starts_with(|c: char| c.is_ascii_uppercase())
        && team.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// The words of the table and no others; what the box could have written for it.
fn check(op: &Op, args: &[String]) -> Vec<String> {
    let row = row(op.info.name);
    let (start, mut rest) = args.split_at(row.words.len());
    assert_eq!(start, row.words);
    let mut again = Vec::new();
    if row.issue || op.info.name == "api" {
        let (first, flags) = rest.split_first().expect("a positional");
        let printed = || Query::parse(first).map(|query| query.to_string());
        assert!(if row.issue { is_issue(first) } else { printed().as_ref() == Ok(first) }, "{args:?}");
        assert!(!first.starts_with('-'), "{args:?}");
        again.push(first.clone());
        rest = flags;
    }
    let mut no = false;
    for word in rest {
        match word.split_once('=') {
            Some((name, value)) => assert!(row.valued.contains(&name) && !value.trim().is_empty(), "{args:?}"),
            None => assert!(row.plain.contains(&word.as_str()) || row.added.contains(&word.as_str()), "{args:?}"),
        }
        assert!(!no || word.starts_with("--no-"), "{args:?}");
        no |= word.starts_with("--no-");
    }
    let added = |word: &&String| row.added.contains(&word.as_str());
    assert_eq!(rest.iter().filter(added).count(), row.added.len(), "{args:?}");
    again.extend(rest.iter().filter(|word| !added(word)).cloned());
    again
}

fn parse(op: &Op, args: &[String], stdin: Option<&str>) -> Option<Prepared> {
    (op.parse)(&Input { args, stdin }).ok()
}

fuzz_target!(|text: &str| {
    let (line, stdin) = text.split_once('\u{2}').map_or((text, None), |(line, stdin)| (line, Some(stdin)));
    let words: Vec<String> = line.split('\u{1}').map(str::to_owned).collect();
    let Some(op) = CONNECTOR.op(&words[0]) else { return };
    let Some(prepared) = parse(op, &words[1..], stdin) else { return };
    assert_eq!(prepared.ask.is_some(), op.info.write);
    let Action::Run { args, stdin: None } = &prepared.action else { panic!("{:?}", prepared.action) };
    assert!(args.iter().all(|word| !word.contains('\0')), "{args:?}");
    let again = check(op, args);
    assert_eq!(parse(op, &again, None).as_ref(), Some(&prepared), "{again:?}");
});
