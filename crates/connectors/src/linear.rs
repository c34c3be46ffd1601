//! Linear, by the program `linear` of @schpet/linear-cli, version 2.
//!
//! Issues are listed, shown, written and commented on; whatever else is to be read goes through the
//! gate for GraphQL queries. Nothing here can print the API key, delete, open a window, touch a
//! branch or read a file of the host.
//!
//! The surprising things are that program's. It keeps what stands after `--` from its commands, so
//! positionals come first and are such that none can be a flag. It takes the next word for the
//! value of `--name=`, so no value is ever empty. And versions of the parser it is built on
//! carry the “no” of `--no-…` over to the flags after it, so those come last.

use crate::connector::{
    Action, Ask, Connector, Input, Means, Op, OpInfo, Prepared, Program, Scope, Scopes, SecretUse,
    fact,
};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Refused, Value};
use crate::graphql::{Fault, Query};
use crate::refusal::Refusal;
use protocol::question::{Fact, Tier};
use protocol::text::visible;
use serde_json::{Map, Value as Json};

/// One argument of a program may have 128 KiB on Linux, with its name and its end.
const MAX_WORD: usize = 120 * 1024;

pub static CONNECTOR: Connector = Connector {
    service: "linear",
    title: "Linear",
    about: "Boxes can read your Linear workspace, and ask you to write issues and comments.",
    on_by_default: false,
    means: Means::Cli(Program {
        name: "linear",
        version_args: &["--version"],
        auth_args: &["auth", "whoami"],
        install_hint: "install linear as https://github.com/schpet/linear-cli says",
        login_hint: "run 'linear auth login', or store a key: 'agentbox secrets set linear.token'",
        env_prefixes: &["LINEAR_"],
    }),
    secrets: &[SecretUse {
        id: "linear.token",
        env: "LINEAR_API_KEY",
        about: "A personal API key from linear.app/settings/account/security",
    }],
    ops: &[
        read("whoami", "", "Shows whose Linear account the host uses.", |i| listing(&WHOAMI, i)),
        read(
            "issue.list",
            "[--team <key>] [--state <state>…] [--limit <n>] …",
            "Lists issues of a team.",
            |i| listing(&LIST, i),
        ),
        read(
            "issue.mine",
            "[--team <key>] [--state <state>…] [--limit <n>] …",
            "Lists issues assigned to the account.",
            |i| listing(&MINE, i),
        ),
        read(
            "issue.view",
            "<id> [--no-comments] [--json]",
            "Shows an issue and its comments.",
            |i| listing(&VIEW, i),
        ),
        read(
            "issue.query",
            "[--search <text>] [--all-teams | --team <key>…] [--json] …",
            "Searches issues.",
            |i| listing(&QUERY, i),
        ),
        read("team.list", "", "Lists teams.", |i| listing(&TEAMS, i)),
        read(
            "api",
            "<query> [--variable <name>=<value>…] [--variables-json <json>] [--paginate]",
            "Runs one GraphQL query. Mutations are refused.",
            api,
        ),
        write(
            "issue.create",
            "--title <text> [--team <key>] [--description <markdown>] [--assignee <who>] …",
            "Creates an issue.",
            create,
        ),
        write(
            "issue.update",
            "<id> [--title <text>] [--state <state>] [--description <markdown>] …",
            "Changes an issue.",
            update,
        ),
        write(
            "issue.comment",
            "<id> --body <markdown> [--parent <comment id>]",
            "Comments on an issue.",
            comment,
        ),
    ],
    own_ops: &[],
};

type Parse = fn(&Input<'_>) -> Result<Prepared, Refusal>;

const fn read(name: &'static str, usage: &'static str, summary: &'static str, parse: Parse) -> Op {
    Op { info: OpInfo { name, write: false, usage, summary }, parse }
}

const fn write(name: &'static str, usage: &'static str, summary: &'static str, parse: Parse) -> Op {
    Op { info: OpInfo { name, write: true, usage, summary }, parse }
}

/// A command of `linear`: its words, its grammar and what the host adds to it.
struct Command {
    words: &'static [&'static str],
    grammar: &'static Grammar,
    added: &'static [&'static str],
}

const FILES: Refused = Refused {
    spellings: &["--description-file", "--body-file", "--attach", "--input", "--bulk-file"],
    why: "reads a file of the host",
};
const WINDOW: Refused =
    Refused { spellings: &["--web", "--app"], why: "opens a window on the host" };
const WEB_SHORT: Refused =
    Refused { spellings: &["-w"], why: "means a window or another workspace, by version" };
const WORKSPACE: Refused =
    Refused { spellings: &["--workspace"], why: "reaches into another workspace" };
const START: Refused =
    Refused { spellings: &["--start"], why: "makes a branch in a repository of the host" };
const REFUSED: &[Refused] = &[FILES, WINDOW, WEB_SHORT, WORKSPACE, START];

const SOME: Value = Value::Checked(is_some, "a text that is not empty");
const DATE: Value = Value::Checked(is_date, "a date like 2026-01-31");
const ISSUE: Value = Value::Checked(is_issue, "an issue like ENG-123");
const STATES: Value =
    Value::OneOf(&["triage", "backlog", "unstarted", "started", "completed", "canceled"]);

const fn some(long: &'static str, short: Option<&'static str>) -> Flag {
    Flag::with(long, short, SOME)
}

/// What narrows a list of issues down.
macro_rules! filters {
    ($($own:expr),+) => {
        &[
            Flag::with("--state", Some("-s"), STATES).repeating(),
            Flag::plain("--all-states", None),
            some("--assignee", None),
            Flag::plain("--all-assignees", Some("-A")),
            Flag::plain("--unassigned", Some("-U")),
            Flag::with("--sort", None, Value::OneOf(&["manual", "priority"])),
            some("--project", None),
            some("--project-label", None),
            some("--cycle", None),
            some("--milestone", None),
            some("--label", Some("-l")).repeating(),
            Flag::with("--limit", None, Value::Number(1, 250)),
            Flag::with("--created-after", None, DATE),
            Flag::with("--updated-after", None, DATE),
            Flag::plain("--json", Some("-j")),
            $($own),+
        ]
    };
}

/// What an issue can be given.
macro_rules! fields {
    ($($own:expr),*) => {
        &[
            some("--title", Some("-t")),
            some("--description", Some("-d")),
            some("--assignee", Some("-a")),
            Flag::with("--due-date", None, DATE),
            Flag::with("--parent", None, ISSUE),
            Flag::with("--priority", Some("-p"), Value::Number(0, 4)),
            Flag::with("--estimate", None, Value::Number(0, 1000)),
            some("--label", Some("-l")).repeating(),
            some("--team", None),
            some("--project", None),
            some("--state", Some("-s")),
            some("--milestone", None),
            some("--cycle", None),
            $($own),*
        ]
    };
}

const ONE_ISSUE: Positionals = Positionals { least: 1, most: 1, what: "one issue like ENG-123" };

const fn grammar(
    surface: &'static str,
    flags: &'static [Flag],
    positionals: Positionals,
) -> Grammar {
    Grammar { surface, flags, refused: REFUSED, positionals }
}

static WHOAMI: Command = Command {
    words: &["auth", "whoami"],
    grammar: &grammar("linear whoami", &[], Positionals::NONE),
    added: &[],
};
static LIST: Command = Command {
    words: &["issue", "list"],
    grammar: &grammar("linear issue.list", filters!(some("--team", None)), Positionals::NONE),
    added: &["--no-pager"],
};
static MINE: Command = Command {
    words: &["issue", "mine"],
    grammar: &grammar("linear issue.mine", filters!(some("--team", None)), Positionals::NONE),
    added: &["--no-pager"],
};
static QUERY: Command = Command {
    words: &["issue", "query"],
    grammar: &grammar(
        "linear issue.query",
        filters!(
            some("--team", None).repeating(),
            Flag::plain("--all-teams", None),
            some("--search", None),
            Flag::plain("--search-comments", None),
            Flag::plain("--include-archived", None)
        ),
        Positionals::NONE,
    ),
    added: &["--no-pager"],
};
static VIEW: Command = Command {
    words: &["issue", "view"],
    grammar: &grammar(
        "linear issue.view",
        &[Flag::plain("--no-comments", None), Flag::plain("--json", Some("-j"))],
        ONE_ISSUE,
    ),
    added: &["--no-pager", "--no-download"],
};
static TEAMS: Command = Command {
    words: &["team", "list"],
    grammar: &grammar("linear team.list", &[], Positionals::NONE),
    added: &[],
};

static API: Grammar = grammar(
    "linear api",
    &[
        Flag::text("--variable", None).repeating(),
        Flag::text("--variables-json", None),
        Flag::plain("--paginate", None),
        Flag::plain("--silent", None),
    ],
    Positionals { least: 1, most: 1, what: "one GraphQL query" },
);

pub static CREATE: Grammar = grammar(
    "linear issue.create",
    fields!(Flag::plain("--no-use-default-template", None)),
    Positionals::NONE,
);

pub static UPDATE: Grammar = grammar("linear issue.update", fields!(), ONE_ISSUE);

pub static COMMENT: Grammar = grammar(
    "linear issue.comment",
    &[
        some("--body", Some("-b")),
        Flag::with("--parent", Some("-p"), Value::Checked(is_uuid, "a comment's id")),
    ],
    ONE_ISSUE,
);

/// A command that reads, as its grammar has it.
fn listing(command: &'static Command, input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = command.grammar.parse(input.args)?;
    no_text(command.grammar, input)?;
    Ok(Prepared::read(run(command.grammar, command.words, line, command.added)?))
}

fn api(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let mut line = API.parse(input.args)?;
    no_text(&API, input)?;
    let source = line.positionals.pop().unwrap_or_default();
    if source == "-" {
        return Err(API.refuse("'-' is refused: give the query as an argument."));
    }
    let query = Query::parse(&source).map_err(|fault| match fault {
        Fault::Operation(op) => API.refuse(format!(
            "only GraphQL queries are proxied (use issue.create / issue.update / issue.comment for \
             writes); detected operation '{op}'"
        )),
        fault => API.refuse(format!("{fault}. Give one query.")),
    })?;
    let variables = variables(&line)?;
    while line.remove("--variable").is_some() {}
    line.remove("--variables-json");
    if !variables.is_empty() {
        line.set("--variables-json", Some(Json::Object(variables).to_string()));
    }
    let mut args = vec!["api".to_owned(), query.to_string()];
    args.extend(line.argv());
    fitting(&API, args).map(Prepared::read)
}

/// All variables as one object. The program reads a file for `--variable name=@file`, so that flag
/// never reaches it.
fn variables(line: &Parsed) -> Result<Map<String, Json>, Refusal> {
    let mut all = match line.value("--variables-json").map(serde_json::from_str) {
        None => Map::new(),
        Some(Ok(Json::Object(all))) => all,
        Some(_) => return Err(API.refuse("'--variables-json' takes a JSON object.")),
    };
    let mut given: Vec<&str> = Vec::new();
    for entry in line.values("--variable") {
        let shown = visible(entry);
        if entry.starts_with('@') || entry.contains("=@") {
            return Err(API
                .refuse(format!("--variable '{shown}' is refused: it names a file of the host.")));
        }
        let Some((name, value)) = entry.split_once('=') else {
            return Err(API.refuse(format!("--variable takes name=value, not '{shown}'.")));
        };
        if given.contains(&name) {
            return Err(API.refuse(format!("the variable '{}' was given twice.", visible(name))));
        }
        given.push(name);
        all.insert(name.to_owned(), typed(value));
    }
    match all.keys().find(|name| !is_name(name)) {
        Some(name) => Err(API.refuse(format!("'{}' is no name of a variable.", visible(name)))),
        None => Ok(all),
    }
}

/// A value as the program itself would take it: true, false, null and numbers in the one way they
/// are usually written; everything else is text.
fn typed(value: &str) -> Json {
    let usual = |n: f64| n == 0.0 || (1e-6..1e21).contains(&n.abs());
    match value {
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        "null" => Json::Null,
        _ => match value.parse::<f64>() {
            Ok(n) if usual(n) && n.to_string() == value && value != "-0" => {
                value.parse::<i64>().map_or_else(|_| Json::from(n), Json::from)
            }
            _ => Json::from(value),
        },
    }
}

fn create(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let mut line = CREATE.parse(input.args)?;
    take_text(&CREATE, &mut line, "--description", input)?;
    if !line.has("--title") {
        return Err(CREATE.refuse("'--title' is needed."));
    }
    let (place, key) = match line.value("--team").map(str::to_ascii_uppercase) {
        Some(team) => (format!("team {team}"), team),
        None => ("the default team".to_owned(), String::new()),
    };
    let ask = Ask {
        tier: Tier::Routine,
        title: "Create a Linear issue".to_owned(),
        target: format!("{place} in Linear"),
        facts: facts(&line),
        body: line.value("--description").map(str::to_owned),
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(format!("team:{key}"), format!("create issues in {place} of Linear")),
            kind: Some(scope("anywhere", "create issues in Linear")),
        }),
    };
    let action = run(&CREATE, &["issue", "create"], line, &["--no-interactive"])?;
    Ok(Prepared::write(action, ask))
}

fn update(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let mut line = UPDATE.parse(input.args)?;
    take_text(&UPDATE, &mut line, "--description", input)?;
    let issue = issue(&UPDATE, &line)?;
    let facts = facts(&line);
    let body = line.value("--description").map(str::to_owned);
    if facts.is_empty() && body.is_none() {
        return Err(
            UPDATE.refuse("there is nothing to change. Give at least one flag, such as --state.")
        );
    }
    let ask = Ask {
        tier: Tier::Routine,
        title: format!("Update Linear issue {issue}"),
        target: format!("issue {issue} in Linear"),
        facts,
        warnings: body.iter().map(|_| "replaces the issue's description".to_owned()).collect(),
        body,
        remember: Some(Scopes {
            exact: scope(format!("issue:{issue}"), format!("update issue {issue} in Linear")),
            kind: Some(scope("anywhere", "update issues in Linear")),
        }),
    };
    Ok(Prepared::write(run(&UPDATE, &["issue", "update"], line, &[])?, ask))
}

fn comment(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let mut line = COMMENT.parse(input.args)?;
    take_text(&COMMENT, &mut line, "--body", input)?;
    let issue = issue(&COMMENT, &line)?;
    let Some(body) = line.value("--body").map(str::to_owned) else {
        return Err(COMMENT.refuse("'--body' is needed."));
    };
    let ask = Ask {
        tier: Tier::Routine,
        title: format!("Comment on Linear issue {issue}"),
        target: format!("issue {issue} in Linear"),
        facts: line.value("--parent").map(|id| fact("In answer to", id)).into_iter().collect(),
        body: Some(body),
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(format!("issue:{issue}"), format!("comment on issue {issue} in Linear")),
            kind: Some(scope("anywhere", "comment on issues in Linear")),
        }),
    };
    Ok(Prepared::write(run(&COMMENT, &["issue", "comment", "add"], line, &[])?, ask))
}

/// The program's words, the issue, the flags with a value, those without, and the `--no-…` last.
fn run(
    grammar: &Grammar,
    words: &[&str],
    mut line: Parsed,
    added: &[&str],
) -> Result<Action, Refusal> {
    let mut args: Vec<String> = words.iter().map(ToString::to_string).collect();
    if !line.positionals.is_empty() {
        args.push(issue(grammar, &line)?);
        line.positionals.clear();
    }
    let mut flags = line.argv();
    flags.extend(added.iter().map(ToString::to_string));
    flags.sort_by_key(|flag| flag.starts_with("--no-"));
    args.extend(flags);
    fitting(grammar, args)
}

fn fitting(grammar: &Grammar, args: Vec<String>) -> Result<Action, Refusal> {
    match args.iter().find(|word| word.len() > MAX_WORD) {
        Some(long) => Err(grammar.refuse(format!(
            "{} bytes are too many for one argument; at most {MAX_WORD} are taken. Write less.",
            long.len()
        ))),
        None => Ok(Action::Run { args, stdin: None }),
    }
}

/// The issue, in the one form Linear writes it.
fn issue(grammar: &Grammar, line: &Parsed) -> Result<String, Refusal> {
    match line.positionals.first() {
        Some(issue) if is_issue(issue) => Ok(issue.to_ascii_uppercase()),
        given => {
            let given = given.map_or_else(String::new, |g| visible(g));
            Err(grammar.refuse(format!("'{given}' is no issue. Give one like ENG-123.")))
        }
    }
}

/// A text that came beside the arguments, put where it belongs.
fn take_text(
    grammar: &Grammar,
    line: &mut Parsed,
    flag: &'static str,
    input: &Input<'_>,
) -> Result<(), Refusal> {
    match input.stdin {
        None => Ok(()),
        Some(_) if line.has(flag) => {
            Err(grammar.refuse(format!("the text came twice: as '{flag}' and on standard input.")))
        }
        Some(text) if !is_some(text) || text.contains('\0') => {
            Err(grammar.refuse(format!("'{flag}' takes a text that is not empty.")))
        }
        Some(text) => {
            line.set(flag, Some(text.to_owned()));
            Ok(())
        }
    }
}

fn no_text(grammar: &Grammar, input: &Input<'_>) -> Result<(), Refusal> {
    match input.stdin {
        Some(_) => Err(grammar.refuse("it takes no text on standard input.")),
        None => Ok(()),
    }
}

fn facts(line: &Parsed) -> Vec<Fact> {
    const LABELS: &[(&str, &str)] = &[
        ("--title", "Title"),
        ("--team", "Team"),
        ("--state", "State"),
        ("--assignee", "Assignee"),
        ("--priority", "Priority"),
        ("--label", "Label"),
        ("--project", "Project"),
        ("--milestone", "Milestone"),
        ("--cycle", "Cycle"),
        ("--parent", "Parent"),
        ("--due-date", "Due"),
        ("--estimate", "Estimate"),
    ];
    let all = LABELS.iter().flat_map(|(flag, label)| line.values(flag).map(|v| fact(label, v)));
    all.collect()
}

fn scope(key: impl Into<String>, what: impl Into<String>) -> Scope {
    Scope { key: key.into(), what: what.into() }
}

fn is_some(text: &str) -> bool {
    !text.trim().is_empty()
}

/// `ENG-123`.
fn is_issue(text: &str) -> bool {
    let Some((team, number)) = text.split_once('-') else { return false };
    team.starts_with(|c: char| c.is_ascii_alphabetic())
        && team.len() <= 10
        && team.bytes().all(|b| b.is_ascii_alphanumeric())
        && (1..=7).contains(&number.len())
        && number.bytes().all(|b| b.is_ascii_digit())
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| match at {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// A name as GraphQL has it.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests;
