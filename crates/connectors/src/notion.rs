//! Notion, by its own program `ntn`: reads, and writes of pages and comments.
//!
//! `ntn` guesses a request's method from what else stands on the line, and reads inline inputs by
//! rules of its own. Nothing is left to that: every request names its method, and every body is put
//! together here and goes by standard input, so no value can be taken for a flag, a header or a
//! file.
//!
//! The surprising thing: writes are API calls, too. `ntn` 0.4.0 has no commands for pages, and this
//! one way serves every version. A body's shape belongs to one version of the API, so that is named
//! as well.

use crate::connector::{
    Action, Ask, Connector, Input, Means, Op, OpInfo, Prepared, Program, Scope, Scopes, SecretUse,
    fact,
};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Refused, Value};
use crate::refusal::Refusal;
use protocol::question::Tier;
use protocol::text::visible;
use serde_json::{Value as Json, json};

mod api;
mod inline;

/// The version of the API our bodies are written for, and the one reads get unless they name
/// another.
const VERSION: &str = "2026-03-11";
/// Notion takes that many characters in one piece of rich text, and that many pieces.
const MAX_PIECE: usize = 2000;
const MAX_PIECES: usize = 100;

pub static CONNECTOR: Connector = Connector {
    service: "notion",
    title: "Notion",
    about: "Boxes can read what your integration sees, and ask you to write pages and comments.",
    on_by_default: false,
    means: Means::Cli(Program {
        name: "ntn",
        version_args: &["--version"],
        auth_args: WHOAMI,
        install_hint: "install ntn as https://developers.notion.com/cli says",
        login_hint: "store your integration's key: 'agentbox secrets set notion.token'",
        env_prefixes: &["NOTION_"],
    }),
    secrets: &[SecretUse {
        id: "notion.token",
        env: "NOTION_API_TOKEN",
        about: "The key of an internal integration from notion.so/my-integrations: its “integration secret”",
    }],
    ops: &[
        Op {
            info: OpInfo {
                name: "whoami",
                write: false,
                usage: "",
                summary: "Shows which Notion integration the host uses.",
            },
            parse: whoami,
        },
        Op {
            info: OpInfo {
                name: "api",
                write: false,
                usage: "<endpoint> [name==value…] [-d <json> | path=value… | path:=json…]",
                summary: "Reads: any GET, and POST to search and query. 'api ls' lists endpoints.",
            },
            parse: api::parse,
        },
        Op {
            info: OpInfo {
                name: "page.create",
                write: true,
                usage: "--parent page|database|data-source:<id> [--title <text>] [--content <text>]",
                summary: "Creates a page. Without a title, the first heading is the title.",
            },
            parse: create,
        },
        Op {
            info: OpInfo {
                name: "page.update",
                write: true,
                usage: "<id> --content <text> | --title <text> | --archive",
                summary: "Replaces a page's content or title, or moves the page to the trash.",
            },
            parse: update,
        },
        Op {
            info: OpInfo {
                name: "comment.add",
                write: true,
                usage: "--page <id>|--discussion <id> --text <text>",
                summary: "Comments on a page, or answers in a discussion.",
            },
            parse: comment,
        },
    ],
    own_ops: &[],
};

const WHOAMI: &[&str] = &["api", "-X", "GET", "--notion-version=2026-03-11", "--", "v1/users/me"];

const READS_FILE: &[Refused] = &[Refused {
    spellings: &["--file", "--input", "--content-file", "--text-file"],
    why: "reads a file of the host",
}];

static WHOAMI_LINE: Grammar = Grammar {
    surface: "notion whoami",
    flags: &[Flag::plain("--json", None)],
    refused: &[],
    positionals: Positionals::NONE,
};

pub static CREATE: Grammar = Grammar {
    surface: "notion page.create",
    flags: &[
        Flag::with(
            "--parent",
            None,
            Value::Checked(is_parent, "page:<id>, database:<id> or data-source:<id>"),
        ),
        Flag::text("--title", None),
        Flag::text("--content", None),
        Flag::plain("--json", None),
    ],
    refused: READS_FILE,
    positionals: Positionals::NONE,
};

pub static UPDATE: Grammar = Grammar {
    surface: "notion page.update",
    flags: &[
        Flag::text("--title", None),
        Flag::text("--content", None),
        Flag::plain("--archive", None),
        Flag::plain("--json", None),
    ],
    refused: READS_FILE,
    positionals: Positionals { least: 1, most: 1, what: "one page id" },
};

pub static COMMENT: Grammar = Grammar {
    surface: "notion comment.add",
    flags: &[
        Flag::with("--page", None, Value::Checked(is_id, "a page id")),
        Flag::with("--discussion", None, Value::Checked(is_id, "a discussion id")),
        Flag::text("--text", None),
        Flag::plain("--json", None),
    ],
    refused: READS_FILE,
    positionals: Positionals::NONE,
};

fn whoami(input: &Input<'_>) -> Result<Prepared, Refusal> {
    WHOAMI_LINE.parse(input.args)?;
    no_text(WHOAMI_LINE.surface, input)?;
    let args = WHOAMI.iter().map(ToString::to_string).collect();
    Ok(Prepared::read(Action::Run { args, stdin: None }))
}

fn create(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = CREATE.parse(input.args)?;
    let content = text(&CREATE, &line, "--content", input)?;
    let title = line.value("--title");
    let parent = line.value("--parent").and_then(parent);
    let parent = parent.ok_or_else(|| {
        CREATE.refuse("'--parent' is needed: page:<id>, database:<id> or data-source:<id>.")
    })?;
    if title.is_none() && content.is_none() {
        return Err(CREATE.refuse("there is nothing to write. Give --content, --title or both."));
    }
    let mut body = json!({ "parent": { "type": parent.key, parent.key: parent.id } });
    if let Some(title) = title {
        body["properties"] = title_property(&CREATE, title)?;
    }
    if let Some(content) = content {
        body["markdown"] = json!(content);
    }
    let title = title.or_else(|| content.and_then(first_heading)).unwrap_or("none");
    let place = format!("{} {}", parent.kind, parent.id);
    let ask = Ask {
        tier: Tier::Routine,
        title: "Create a Notion page".to_owned(),
        target: format!("{place} in Notion"),
        facts: vec![fact("Title", title), fact("Parent", &place)],
        body: content.map(str::to_owned),
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(&place, format!("create pages in {place} of Notion")),
            kind: Some(scope("anywhere", "create pages in Notion")),
        }),
    };
    Ok(write("POST", "v1/pages", &body, ask))
}

fn update(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = UPDATE.parse(input.args)?;
    let content = text(&UPDATE, &line, "--content", input)?;
    let title = line.value("--title");
    let archive = line.has("--archive");
    let page = line.positionals.first().and_then(|p| id(p)).ok_or_else(|| {
        UPDATE.refuse("a page id is needed: 32 hexadecimal digits, with or without dashes.")
    })?;
    let (what, warning, endpoint, body) = match (content, title, archive) {
        (Some(content), None, false) => (
            "Replace the content of a Notion page",
            Some("replaces everything that is on the page now"),
            format!("v1/pages/{page}/markdown"),
            json!({ "type": "replace_content", "replace_content": { "new_str": content } }),
        ),
        (None, Some(title), false) => (
            "Rename a Notion page",
            None,
            format!("v1/pages/{page}"),
            json!({ "properties": title_property(&UPDATE, title)? }),
        ),
        (None, None, true) => (
            "Move a Notion page to the trash",
            Some("the page and what is below it go to the trash"),
            format!("v1/pages/{page}"),
            json!({ "in_trash": true }),
        ),
        _ => {
            return Err(UPDATE.refuse("exactly one of --content, --title and --archive is needed."));
        }
    };
    let place = format!("page {page}");
    let changes = Scopes {
        exact: scope(&place, format!("change the content and title of {place} of Notion")),
        kind: Some(scope("anywhere", "change the content and title of pages in Notion")),
    };
    let ask = Ask {
        tier: if archive { Tier::Sensitive } else { Tier::Routine },
        title: what.to_owned(),
        target: format!("{place} in Notion"),
        facts: title.map(|title| fact("New title", title)).into_iter().collect(),
        body: content.map(str::to_owned),
        warnings: warning.map(str::to_owned).into_iter().collect(),
        remember: (!archive).then_some(changes),
    };
    Ok(write("PATCH", &endpoint, &body, ask))
}

fn comment(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = COMMENT.parse(input.args)?;
    let content = text(&COMMENT, &line, "--text", input)?.filter(|t| !t.trim().is_empty());
    let content =
        content.ok_or_else(|| COMMENT.refuse("'--text' is needed, and may not be empty."))?;
    let pieces = rich_text(&COMMENT, content)?;
    let named = |flag| line.value(flag).and_then(id);
    let (body, place) = match (named("--page"), named("--discussion")) {
        (Some(page), None) => (
            json!({ "parent": { "type": "page_id", "page_id": page }, "rich_text": pieces }),
            format!("page {page}"),
        ),
        (None, Some(discussion)) => (
            json!({ "discussion_id": discussion, "rich_text": pieces }),
            format!("discussion {discussion}"),
        ),
        _ => return Err(COMMENT.refuse("exactly one of --page and --discussion is needed.")),
    };
    let ask = Ask {
        tier: Tier::Routine,
        title: "Comment in Notion".to_owned(),
        target: format!("{place} in Notion"),
        facts: vec![fact("On", &place)],
        body: Some(content.to_owned()),
        warnings: Vec::new(),
        remember: Some(Scopes {
            exact: scope(&place, format!("comment on {place} of Notion")),
            kind: Some(scope("anywhere", "comment in Notion")),
        }),
    };
    Ok(write("POST", "v1/comments", &body, ask))
}

fn write(method: &str, endpoint: &str, body: &Json, ask: Ask) -> Prepared {
    Prepared::write(request(method, VERSION, &[], endpoint, &[], Some(body)), ask)
}

/// The one shape of an API call. `--` ends the flags, and standard input is the only body.
fn request(
    method: &str,
    version: &str,
    switches: &[&str],
    endpoint: &str,
    query: &[String],
    body: Option<&Json>,
) -> Action {
    let mut args = vec!["api".to_owned(), "-X".to_owned(), method.to_owned()];
    args.extend(switches.iter().map(ToString::to_string));
    args.push(format!("--notion-version={version}"));
    args.push("--".to_owned());
    args.push(endpoint.to_owned());
    args.extend_from_slice(query);
    Action::Run { args, stdin: body.map(Json::to_string) }
}

fn scope(key: &str, what: impl Into<String>) -> Scope {
    Scope { key: key.to_owned(), what: what.into() }
}

/// A text given as a flag or, when it is too long for that, beside the arguments.
fn text<'a>(
    grammar: &Grammar,
    line: &'a Parsed,
    flag: &str,
    input: &Input<'a>,
) -> Result<Option<&'a str>, Refusal> {
    match (line.value(flag), input.stdin) {
        (Some(_), Some(_)) => {
            Err(grammar.refuse(format!("the text came twice: as '{flag}' and on standard input.")))
        }
        // As an argument it could not be there either.
        (None, Some(beside)) if beside.contains('\0') => {
            Err(grammar.refuse(format!("'{flag}' takes text, and this holds a zero byte.")))
        }
        (given, beside) => Ok(given.or(beside)),
    }
}

fn no_text(surface: &str, input: &Input<'_>) -> Result<(), Refusal> {
    match input.stdin {
        Some(_) => Err(Refusal::rule(surface, "it takes no text on standard input.")),
        None => Ok(()),
    }
}

struct Parent {
    /// What people call it.
    kind: &'static str,
    /// What the API calls it.
    key: &'static str,
    id: String,
}

fn parent(text: &str) -> Option<Parent> {
    let (kind, at) = text.split_once(':')?;
    let (kind, key) = match kind {
        "page" => ("page", "page_id"),
        "database" => ("database", "database_id"),
        "data-source" => ("data source", "data_source_id"),
        _ => return None,
    };
    Some(Parent { kind, key, id: id(at)? })
}

fn is_parent(text: &str) -> bool {
    parent(text).is_some()
}

/// An id in its one form: lower case, with dashes.
fn id(text: &str) -> Option<String> {
    let dashes: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
    let digits: String =
        text.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
    let shaped = dashes.is_empty() || dashes == [8, 13, 18, 23];
    if !shaped || digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let part = |from, to| digits.get(from..to);
    Some([part(0, 8)?, part(8, 12)?, part(12, 16)?, part(16, 20)?, part(20, 32)?].join("-"))
}

fn is_id(text: &str) -> bool {
    id(text).is_some()
}

/// The title Notion takes from a text that has no other.
fn first_heading(markdown: &str) -> Option<&str> {
    markdown.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim)
}

/// Every page's title property has the id `title`, whatever a database calls it.
fn title_property(grammar: &Grammar, title: &str) -> Result<Json, Refusal> {
    let many = title.chars().count();
    if many == 0 || many > MAX_PIECE {
        let text = format!("'--title' takes 1 to {MAX_PIECE} characters, not {many}.");
        return Err(grammar.refuse(text));
    }
    Ok(json!({ "title": { "title": [{ "text": { "content": title } }] } }))
}

fn rich_text(grammar: &Grammar, text: &str) -> Result<Vec<Json>, Refusal> {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() > MAX_PIECE * MAX_PIECES {
        let most = MAX_PIECE * MAX_PIECES;
        return Err(grammar.refuse(format!(
            "the text has {} characters; Notion takes at most {most} in a comment.",
            letters.len()
        )));
    }
    let piece = |part: &[char]| json!({ "text": { "content": part.iter().collect::<String>() } });
    Ok(letters.chunks(MAX_PIECE).map(piece).collect())
}

/// A word of the box in a refusal.
fn quoted(word: &str) -> String {
    format!("'{}'", visible(word))
}

#[cfg(test)]
mod tests;
