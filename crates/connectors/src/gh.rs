//! GitHub, by `gh`: pull requests, workflow runs and review comments of one repository.
//!
//! What a box writes becomes a [`Pr`], a [`Run`] or an [`Api`]; the command line the host runs is
//! written from that value, with the repository the box was made for. There is no spelling for
//! another repository, another host, a file of the host, an editor, a browser, or waiting for ever.
//!
//! The surprising thing: `--jq` is a small language that `gh` evaluates with its own environment in
//! reach, and a credential stands there. An expression that could name the environment is refused.

mod api;
mod pr;
mod run;
mod slug;

pub use api::{Api, Method, Place, split_endpoint};
pub use pr::{Create, How, Pr, PrOp, Verdict};
pub use run::{Run, RunOp, RunRef};
pub use slug::{GITHUB_COM, Head, PrRef, RepoSlug};

use crate::connector::{Connector, Means, OpInfo, Program, SecretUse};
use crate::grammar::{Flag, Refused, Value};

pub static CONNECTOR: Connector = Connector {
    service: "github",
    title: "GitHub",
    about: "Read pull requests and workflow runs of the project's repository; open, comment, review and merge after asking.",
    on_by_default: true,
    means: Means::Cli(Program {
        name: "gh",
        version_args: &["--version"],
        // Both credentials may be in the environment: each must meet its own host only.
        auth_args: &["auth", "status", "--hostname", "github.com"],
        install_hint: "https://cli.github.com",
        login_hint: "run `gh auth login`",
        env_prefixes: &["GH_", "GITHUB_"],
    }),
    secrets: &[
        SecretUse {
            id: "github.token",
            env: "GH_TOKEN",
            about: "A key for github.com that may use the project's repository: a “personal access token”",
        },
        SecretUse {
            id: "github.enterprise-token",
            env: "GH_ENTERPRISE_TOKEN",
            about: "A key for the GitHub server named by integrations.github.baseUrl: a “personal access token”",
        },
    ],
    ops: &[],
    own_ops: &[
        read("pr.view", "[<ref>] [--comments] [--json <fields>]", "Show a pull request."),
        read(
            "pr.list",
            "[--state <state>] [--base <branch>] [--label <name>]…",
            "List pull requests.",
        ),
        read("pr.diff", "[<ref>] [--name-only]", "Show what a pull request changes."),
        read("pr.checks", "[<ref>] [--required]", "Show a pull request's checks."),
        write(
            "pr.create",
            "--title <text> --body <text> | --fill [--base <branch>] [--draft]",
            "Open a pull request from this box's branch.",
        ),
        write("pr.comment", "[<ref>] --body <text>", "Comment on a pull request."),
        write(
            "pr.review",
            "[<ref>] --approve | --request-changes | --comment [--body <text>]",
            "Review a pull request.",
        ),
        write("pr.close", "[<ref>] [--delete-branch]", "Close a pull request."),
        write("pr.reopen", "[<ref>]", "Reopen a pull request."),
        write(
            "pr.merge",
            "[<ref>] --squash | --merge | --rebase [--delete-branch]",
            "Merge a pull request.",
        ),
        write(
            "pr.checkout",
            "<ref>",
            "Check a pull request out on the host; off unless switched on.",
        ),
        read("run.list", "[--branch <branch>] [--workflow <name>]", "List workflow runs."),
        read("run.view", "<id> | --job <id> [--log]", "Show a workflow run or its log."),
        write("run.rerun", "<id> | --job <id> [--failed]", "Run a workflow again."),
        read("api", "repos/{owner}/{repo}/pulls/<n>/comments", "Read review comments."),
        write(
            "api.post",
            "repos/{owner}/{repo}/pulls/<n>/comments[/<id>/replies] -f body=<text>",
            "Write a review comment or answer one.",
        ),
    ],
};

const fn read(name: &'static str, usage: &'static str, summary: &'static str) -> OpInfo {
    OpInfo { name, write: false, usage, summary }
}

const fn write(name: &'static str, usage: &'static str, summary: &'static str) -> OpInfo {
    OpInfo { name, write: true, usage, summary }
}

/// What no command of `gh` may be given, in any spelling. A command's own flags come first: `-w`
/// is `--workflow` where there is one.
static REFUSED: &[Refused] = &[
    Refused {
        spellings: &["--repo", "-R", "--hostname"],
        why: "names another repository or host, and this box works on its own",
    },
    Refused {
        spellings: &["--body-file", "-F", "--template", "-T", "--recover", "--input"],
        why: "reads a file of the host",
    },
    Refused {
        spellings: &["--web", "-w", "--editor", "-e"],
        why: "opens something on the host's screen",
    },
    Refused { spellings: &["--watch", "--interval", "-i"], why: "may go on without end" },
    Refused {
        spellings: &["--admin", "--auto", "--disable-auto"],
        why: "goes around what the repository asks of a merge",
    },
    Refused { spellings: &["--cache"], why: "answers from an earlier time" },
];

const JSON: Flag =
    Flag::with("--json", None, Value::Checked(is_fields, "names of fields, with commas"));
const JQ: Flag = Flag::with(
    "--jq",
    Some("-q"),
    Value::Checked(is_filter, "an expression without env, $ENV, import or include"),
);

const BRANCH: Value = Value::Checked(is_branch, "the name of a branch");
const NAME: Value = Value::Checked(is_name, "one line without quotes or backslashes");
const LOGIN: Value = Value::Checked(is_login, "a login");
const DIGITS: Value = Value::Checked(is_digits, "a number");

fn is_fields(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b',' || b == b'_')
}

/// Nothing in it can name the environment or a module. A name is a whole run of letters, digits and
/// underscores, and the language has no way to build one.
fn is_filter(text: &str) -> bool {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let reaches = |w: &str| {
        w.eq_ignore_ascii_case("env")
            || matches!(w, "import" | "include" | "modulemeta" | "input_filename")
    };
    !text.split(word).any(reaches)
}

/// A branch, and no quote: `gh` writes some of these into a search, where a quote ends a word.
fn is_branch(text: &str) -> bool {
    text.parse::<crate::names::BranchName>().is_ok() && is_name(text)
}

fn is_name(text: &str) -> bool {
    let bad = |c: char| c.is_control() || c == '"' || c == '\\';
    (1..=255).contains(&text.len()) && !text.contains(bad) && !text.starts_with('-')
}

fn is_login(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"@/_.-[]".contains(&b);
    (1..=100).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-')
}

fn is_digits(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
