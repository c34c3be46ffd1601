//! `gh`: pull requests, workflow runs and review comments through the host.
//!
//! The box has no login of its own. What the host can do goes there, by the host's own grammar;
//! everything else is told at once, with what is possible instead. A file a command names
//! (`--body-file`, `-F body=@notes.md`) is a file of the box: its text is sent, never its path.
//!
//! The surprising thing: a plain `gh pr list` lists the pull requests of the branch that is checked
//! out here. Any other filter lists the repository's.

use crate::git::lexical;
use crate::plan::{Place, Plan, help};
use connectors::clone::Cloning;
use connectors::gh::{CONNECTOR, PrOp, RunOp, split_endpoint};
use protocol::rpc::ApiParams;
use protocol::text::visible;
use std::path::Path;

/// The oldest `gh` the host's side is known to work with; scripts look for a number here.
const VERSION: &str = "2.23.0";

/// Headers that say what `gh` says anyway. Many recipes have them.
const USUAL_HEADERS: &[&str] =
    &["accept: application/vnd.github+json", "x-github-api-version: 2022-11-28"];

/// Plans `gh <args>`.
pub fn plan(args: &[String], place: &Place<'_>) -> Plan {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let planned = match words[..] {
        [] | ["help" | "--help" | "-h", ..] => Ok(Plan::Print(overview())),
        ["--version" | "version", ..] => {
            Ok(Plan::Print(format!("gh version {VERSION} (through AgentBox)\n")))
        }
        ["auth", "status", ..] => Ok(Plan::Print(
            "✓ Logged in through the host of this box; the credential stays there\n".to_owned(),
        )),
        ["auth", ..] => Err("gh auth: the login is the host's, and no token is kept in this box. \
             'gh auth status' works; the person logs in on the host with 'gh auth login'."
            .to_owned()),
        ["pr", name, ..] => pr(name, &args[2..], place),
        ["run", name, ..] => run(name, &args[2..], place),
        ["api", ..] => api(&args[1..], place),
        ["repo", "clone", ..] => clone(&args[2..], place),
        [first, ..] => Err(unavailable(first)),
    };
    planned.unwrap_or_else(Plan::Refuse)
}

fn overview() -> String {
    help("gh", &CONNECTOR, |op| match op {
        "api.post" => "api".to_owned(),
        op => op.replace('.', " "),
    })
}

fn unavailable(what: &str) -> String {
    format!("gh: '{}' is not available in a box. Possible: {}.", visible(what), possible())
}

fn possible() -> String {
    let names = |all: &[&'static str]| all.join("|");
    let pr: Vec<&str> = PrOp::ALL.iter().map(|op| op.name()).collect();
    let run: Vec<&str> = RunOp::ALL.iter().map(|op| op.name()).collect();
    format!("gh pr {}, gh run {}, gh api, gh repo clone", names(&pr), names(&run))
}

fn pr(name: &str, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    let name = match name {
        "ls" => "list",
        "new" => "create",
        "co" => "checkout",
        name => name,
    };
    let Some(op) = PrOp::find(name) else {
        return if is_help(name) {
            Ok(Plan::Print(overview()))
        } else {
            Err(unavailable(&format!("pr {name}")))
        };
    };
    if args.iter().any(|word| is_help(word)) {
        return Ok(Plan::Print(usage(&format!("pr.{}", op.name()))));
    }
    let mut args = with_files(op, args, place)?;
    if op == PrOp::List {
        args.extend(own_branch(&args, place));
    }
    op.grammar().parse(&args).map_err(|refusal| refusal.text)?;
    Ok(Plan::call(&format!("gh.pr.{}", op.name()), place, args, None))
}

fn run(name: &str, args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    let name = if name == "ls" { "list" } else { name };
    let Some(op) = RunOp::find(name) else {
        return match name {
            "watch" => {
                Err("gh run watch: it may go on without end. Use 'gh run view <id>'.".to_owned())
            }
            name if is_help(name) => Ok(Plan::Print(overview())),
            name => Err(unavailable(&format!("run {name}"))),
        };
    };
    if args.iter().any(|word| is_help(word)) {
        return Ok(Plan::Print(usage(&format!("run.{}", op.name()))));
    }
    connectors::gh::Run::parse(op, args).map_err(|refusal| refusal.text)?;
    Ok(Plan::call(&format!("gh.run.{}", op.name()), place, args.to_vec(), None))
}

fn api(args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    if args.iter().any(|word| is_help(word)) {
        return Ok(Plan::Print(usage("api") + &usage("api.post")));
    }
    let args = without_usual_headers(args);
    let (endpoint, args) = split_endpoint(&args).map_err(|refusal| refusal.text)?;
    let args = with_field_files(args, place)?;
    let path = place.cwd.to_str().map(str::to_owned);
    let params = serde_json::to_value(ApiParams { path, endpoint, args })
        .map_err(|e| format!("gh api: the arguments cannot be sent: {e}"))?;
    Ok(Plan::Call { method: "gh.api".to_owned(), params })
}

/// `gh repo clone <repo> [<folder>] [-- <flags of git clone>]`.
fn clone(args: &[String], place: &Place<'_>) -> Result<Plan, String> {
    let (own, flags) = match args.iter().position(|word| word == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    match own {
        [word] if is_help(word) => Ok(Plan::Print(
            "gh repo clone <repository> [<folder>] [-- --branch <name> --depth <n>]\n".to_owned(),
        )),
        [repo] | [repo, _] if !repo.starts_with('-') => {
            let args = [flags, own].concat();
            let mut cloning = Cloning::parse(&args).map_err(|refusal| refusal.text)?;
            let absolute = |dir: String| lexical(&place.cwd.join(dir)).to_str().map(str::to_owned);
            cloning.dir = cloning.dir.and_then(absolute);
            Ok(Plan::call("git.clone", place, cloning.argv(), None))
        }
        _ => Err(
            "gh repo clone: one repository and at most one folder are taken; flags of git stand \
             after '--'."
                .to_owned(),
        ),
    }
}

fn is_help(word: &str) -> bool {
    word == "--help" || word == "-h"
}

fn usage(op: &str) -> String {
    let found = CONNECTOR.infos().find(|info| info.name == op);
    found.map_or_else(overview, |info| {
        let asked = if info.write { " The person at the host is asked first." } else { "" };
        let spelled = if op == "api.post" { "api".to_owned() } else { op.replace('.', " ") };
        format!("gh {spelled} {}\n    {}{asked}\n", info.usage, info.summary)
    })
}

/// `--body-file <file>` and `-F <file>` as `--body`, read in the box. `-` is standard input.
fn with_files(op: PrOp, args: &[String], place: &Place<'_>) -> Result<Vec<String>, String> {
    let grammar = op.grammar();
    let takes_body = grammar.flags.iter().any(|flag| flag.long == "--body");
    let mut out = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let file = match word.as_str() {
            "--body-file" | "-F" if takes_body => Some(
                words
                    .next()
                    .ok_or_else(|| format!("{}: '{word}' needs a file.", op.surface()))?
                    .as_str(),
            ),
            word if takes_body => {
                word.strip_prefix("--body-file=").or_else(|| word.strip_prefix("-F"))
            }
            _ => None,
        };
        match file {
            Some(file) => out.push(format!("--body={}", place.text(op.surface(), file)?)),
            None => {
                out.push(word.clone());
                // The value of a flag is not one of our words.
                if takes_value(op, word) {
                    out.extend(words.next().cloned());
                }
            }
        }
    }
    Ok(out)
}

fn takes_value(op: PrOp, word: &str) -> bool {
    op.grammar().flags.iter().any(|flag| {
        (word == flag.long || Some(word) == flag.short)
            && !matches!(flag.value, connectors::grammar::Value::None)
    })
}

/// Without a filter of its own, the list is about the branch that is checked out.
fn own_branch(args: &[String], place: &Place<'_>) -> Option<String> {
    let filters = ["--head", "-H", "--base", "-B", "--label", "-l", "--author", "-A"];
    let is_filter = |word: &String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        filters.contains(&name)
    };
    if args.iter().any(is_filter) {
        return None;
    }
    let head = place.cwd.ancestors().find_map(|dir| (place.read)(&head_of(dir)).ok())?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?.to_owned();
    Some(format!("--head={branch}"))
}

fn head_of(dir: &Path) -> std::path::PathBuf {
    dir.join(".git/HEAD")
}

/// `-F key=@file` as `-f key=<text>`, read in the box.
fn with_field_files(args: Vec<String>, place: &Place<'_>) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let mut words = args.into_iter();
    while let Some(word) = words.next() {
        let glued = word.strip_prefix("--field=").map(str::to_owned);
        let is_field = word == "-F" || word == "--field";
        let field = if is_field { words.next() } else { glued };
        match field.as_deref().and_then(|field| field.split_once("=@")) {
            Some((key, file)) if !key.contains('=') => {
                out.extend(["-f".to_owned(), format!("{key}={}", place.text("gh api", file)?)]);
            }
            _ => {
                out.push(word);
                out.extend(field.filter(|_| is_field));
            }
        }
    }
    Ok(out)
}

fn without_usual_headers(args: &[String]) -> Vec<String> {
    let usual = |header: &str| USUAL_HEADERS.contains(&header.to_ascii_lowercase().as_str());
    let mut out = Vec::new();
    let mut words = args.iter().peekable();
    while let Some(word) = words.next() {
        let next = words.peek().is_some_and(|next| usual(next));
        if matches!(word.as_str(), "-H" | "--header") && next {
            words.next();
        } else if !word.strip_prefix("--header=").is_some_and(usual) {
            out.push(word.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io;

    fn planned(words: &[&str]) -> Plan {
        let read = |path: &Path| match path.to_str() {
            Some("/workspace/app/notes.md") => Ok("One\n--two".to_owned()),
            Some("/workspace/app/-") => Ok("from a pipe".to_owned()),
            Some("/workspace/.git/HEAD") => Ok("ref: refs/heads/agentbox/smoke\n".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let place = Place { cwd: Path::new("/workspace/app"), read: &read };
        plan(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), &place)
    }

    fn calls(words: &[&str], method: &str, args: &[&str]) {
        let params = match args {
            [] => json!({"path": "/workspace/app"}),
            args => json!({"path": "/workspace/app", "args": args}),
        };
        assert_eq!(planned(words), Plan::Call { method: method.into(), params }, "{words:?}");
    }

    fn refusal(words: &[&str]) -> String {
        match planned(words) {
            Plan::Refuse(line) => line,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    fn printed(words: &[&str]) -> String {
        match planned(words) {
            Plan::Print(text) => text,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    #[test]
    fn what_agents_look_for_is_there() {
        assert!(printed(&["--version"]).starts_with("gh version 2."));
        assert!(printed(&["auth", "status"]).contains("Logged in"));
        assert!(refusal(&["auth", "token"]).contains("no token"));
        assert!(printed(&[]).contains("gh pr create --title <text>"));
        assert!(printed(&["pr", "merge", "--help"]).contains("asked first"));
        assert!(printed(&["api", "--help"]).contains("gh api repos/{owner}"));
    }

    #[test]
    fn commands_become_calls() {
        calls(&["pr", "view", "7", "--json", "title"], "gh.pr.view", &["7", "--json", "title"]);
        calls(&["pr", "create", "--fill"], "gh.pr.create", &["--fill"]);
        calls(&["pr", "new", "--fill"], "gh.pr.create", &["--fill"]);
        calls(&["pr", "merge", "-s", "7"], "gh.pr.merge", &["-s", "7"]);
        calls(&["run", "view", "123", "--log"], "gh.run.view", &["123", "--log"]);
        calls(
            &["repo", "clone", "o/r", "x", "--", "--depth", "1"],
            "git.clone",
            &["--depth=1", "--", "https://github.com/o/r.git", "/workspace/app/x"],
        );
    }

    #[test]
    fn a_list_is_about_this_branch_unless_it_says_otherwise() {
        calls(&["pr", "list"], "gh.pr.list", &["--head=agentbox/smoke"]);
        calls(&["pr", "ls", "-s", "all"], "gh.pr.list", &["-s", "all", "--head=agentbox/smoke"]);
        for filter in ["--head=x", "--base=main", "--label=bug", "--author=me"] {
            calls(&["pr", "list", filter], "gh.pr.list", &[filter]);
        }
    }

    #[test]
    fn relay_a08_files_are_files_of_the_box() {
        for form in [
            &["--body-file", "notes.md"][..],
            &["--body-file=notes.md"],
            &["-F", "/workspace/app/notes.md"],
            &["-Fnotes.md"],
        ] {
            calls(
                &[&["pr", "comment", "7"], form].concat(),
                "gh.pr.comment",
                &["7", "--body=One\n--two"],
            );
        }
        calls(&["pr", "comment", "-F", "-"], "gh.pr.comment", &["--body=from a pipe"]);
        // The value of another flag is left alone.
        calls(&["pr", "comment", "-b", "-Fnotes.md"], "gh.pr.comment", &["-b", "-Fnotes.md"]);
        assert!(
            refusal(&["pr", "comment", "-F", "none"]).contains("cannot read 'none' in this box")
        );
        assert!(refusal(&["pr", "comment", "-F"]).contains("needs a file"));
        assert!(refusal(&["pr", "view", "-Fnotes.md"]).contains("reads a file of the host"));
    }

    #[test]
    fn the_api_has_its_endpoint_apart() {
        let call = |words: &[&str]| match planned(words) {
            Plan::Call { method, params } => {
                assert_eq!(method, "gh.api");
                params
            }
            other => panic!("{words:?} gave {other:?}"),
        };
        let at = "repos/o/r/pulls/5/comments";
        assert_eq!(call(&["api", at]), json!({"path": "/workspace/app", "endpoint": at}));
        assert_eq!(
            call(&[
                "api",
                "-H",
                "Accept: application/vnd.github+json",
                "-X",
                "POST",
                at,
                "-fbody=x",
                "-F",
                "line=3"
            ]),
            json!({"path": "/workspace/app", "endpoint": at, "args": ["-X", "POST", "-f", "body=x", "-F", "line=3"]})
        );
        assert_eq!(
            call(&["api", at, "-F", "body=@notes.md"])["args"],
            json!(["-f", "body=One\n--two"])
        );
        assert!(refusal(&["api", at, "-F", "body=@none"]).contains("in this box"));
        assert!(refusal(&["api"]).contains("endpoint"));
        // Any other header is for the host to refuse.
        assert_eq!(call(&["api", at, "--header=X: y"])["args"], json!(["--header=X: y"]));
    }

    #[test]
    fn everything_else_is_told_what_is_possible() {
        for words in [
            &["issue", "list"][..],
            &["pr", "edit"],
            &["run", "cancel"],
            &["repo", "view"],
            &["secret", "list"],
        ] {
            let line = refusal(words);
            assert!(line.contains("gh pr view|list") && !line.contains('\n'), "{line}");
        }
        assert!(refusal(&["run", "watch", "1"]).contains("gh run view"));
        assert!(refusal(&["run", "view"]).contains("run id"));
        assert!(refusal(&["pr", "merge", "--squash", "--admin"]).contains("--admin"));
        assert!(refusal(&["pr", "view", "-R", "o/other"]).contains("another repository"));
        assert!(refusal(&["i\u{202e}ssue"]).contains("⟨U+202E⟩"));
        assert!(refusal(&["repo", "clone"]).contains("one repository"));
    }
}
