//! `gh pr …`: one grammar for each operation, and the values they become.

use super::{BRANCH, Head, JQ, JSON, LOGIN, NAME, PrRef, REFUSED, RepoSlug};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Value};
use crate::names::{BranchName, ObjectId};
use crate::refusal::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrOp {
    View,
    List,
    Diff,
    Checks,
    Create,
    Comment,
    Review,
    Close,
    Reopen,
    Merge,
    Checkout,
}

/// What a box asked for. A reference that is not given means the box's own branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pr {
    View(Option<PrRef>, Parsed),
    List(Parsed),
    Diff(Option<PrRef>, Parsed),
    Checks(Option<PrRef>, Parsed),
    Create(Create),
    Comment(Option<PrRef>, String),
    Review(Option<PrRef>, Verdict, Option<String>),
    /// With its branch, or without.
    Close(Option<PrRef>, bool),
    Reopen(Option<PrRef>),
    Merge(Option<PrRef>, How, bool),
    Checkout(PrRef),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Create {
    pub title: Option<String>,
    pub body: Option<String>,
    pub base: Option<BranchName>,
    /// Another branch than the box's.
    pub head: Option<Head>,
    pub draft: bool,
    /// Take what is not given from the commits.
    pub fill: bool,
    pub labels: Vec<String>,
    pub reviewers: Vec<String>,
    pub assignees: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Approve,
    RequestChanges,
    Comment,
}

/// How a pull request is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Squash,
    Merge,
    Rebase,
}

const A_REF: Positionals = Positionals { least: 0, most: 1, what: "at most one pull request" };
const BODY: Flag = Flag::text("--body", Some("-b"));
const DELETE_BRANCH: Flag = Flag::plain("--delete-branch", Some("-d"));

static VIEW: Grammar = Grammar {
    surface: "gh pr view",
    flags: &[JSON, JQ, Flag::plain("--comments", Some("-c"))],
    refused: REFUSED,
    positionals: A_REF,
};
static LIST: Grammar = Grammar {
    surface: "gh pr list",
    flags: &[
        JSON,
        JQ,
        Flag::with("--state", Some("-s"), Value::OneOf(&["open", "closed", "merged", "all"])),
        Flag::with("--limit", Some("-L"), Value::Number(1, 200)),
        Flag::with("--head", Some("-H"), BRANCH),
        Flag::with("--base", Some("-B"), BRANCH),
        Flag::with("--label", Some("-l"), NAME).repeating(),
        Flag::with("--author", Some("-A"), LOGIN),
    ],
    refused: REFUSED,
    positionals: Positionals::NONE,
};
static DIFF: Grammar = Grammar {
    surface: "gh pr diff",
    flags: &[
        Flag::with("--color", None, Value::OneOf(&["always", "never", "auto"])),
        Flag::plain("--name-only", None),
        Flag::plain("--patch", None),
    ],
    refused: REFUSED,
    positionals: A_REF,
};
static CHECKS: Grammar = Grammar {
    surface: "gh pr checks",
    flags: &[JSON, Flag::plain("--required", None)],
    refused: REFUSED,
    positionals: A_REF,
};
static CREATE: Grammar = Grammar {
    surface: "gh pr create",
    flags: &[
        Flag::text("--title", Some("-t")),
        BODY,
        Flag::with("--base", Some("-B"), BRANCH),
        Flag::plain("--draft", Some("-d")),
        Flag::plain("--fill", None),
        Flag::with("--label", Some("-l"), NAME).repeating(),
        Flag::with("--reviewer", Some("-r"), LOGIN).repeating(),
        Flag::with("--assignee", Some("-a"), LOGIN).repeating(),
        Flag::with("--head", Some("-H"), Value::Checked(is_head, "a branch, or owner:branch")),
    ],
    refused: REFUSED,
    positionals: Positionals::NONE,
};
static COMMENT: Grammar =
    Grammar { surface: "gh pr comment", flags: &[BODY], refused: REFUSED, positionals: A_REF };
static REVIEW: Grammar = Grammar {
    surface: "gh pr review",
    flags: &[
        Flag::plain("--approve", None),
        Flag::plain("--request-changes", None),
        Flag::plain("--comment", None),
        BODY,
    ],
    refused: REFUSED,
    positionals: A_REF,
};
static CLOSE: Grammar = Grammar {
    surface: "gh pr close",
    flags: &[DELETE_BRANCH],
    refused: REFUSED,
    positionals: A_REF,
};
static REOPEN: Grammar =
    Grammar { surface: "gh pr reopen", flags: &[], refused: REFUSED, positionals: A_REF };
static MERGE: Grammar = Grammar {
    surface: "gh pr merge",
    flags: &[
        Flag::plain("--squash", Some("-s")),
        Flag::plain("--merge", Some("-m")),
        Flag::plain("--rebase", Some("-r")),
        DELETE_BRANCH,
    ],
    refused: REFUSED,
    positionals: A_REF,
};
static CHECKOUT: Grammar = Grammar {
    surface: "gh pr checkout",
    flags: &[],
    refused: REFUSED,
    positionals: Positionals { least: 1, most: 1, what: "one pull request" },
};

fn is_head(text: &str) -> bool {
    Head::parse(text).is_some()
}

impl PrOp {
    pub const ALL: [PrOp; 11] = [
        PrOp::View,
        PrOp::List,
        PrOp::Diff,
        PrOp::Checks,
        PrOp::Create,
        PrOp::Comment,
        PrOp::Review,
        PrOp::Close,
        PrOp::Reopen,
        PrOp::Merge,
        PrOp::Checkout,
    ];

    /// By its exact name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.surface().rsplit(' ').next().unwrap_or_default()
    }

    /// `gh pr view`.
    pub fn surface(self) -> &'static str {
        self.grammar().surface
    }

    /// What it takes, without looking at which pull request is meant.
    pub fn grammar(self) -> &'static Grammar {
        match self {
            PrOp::View => &VIEW,
            PrOp::List => &LIST,
            PrOp::Diff => &DIFF,
            PrOp::Checks => &CHECKS,
            PrOp::Create => &CREATE,
            PrOp::Comment => &COMMENT,
            PrOp::Review => &REVIEW,
            PrOp::Close => &CLOSE,
            PrOp::Reopen => &REOPEN,
            PrOp::Merge => &MERGE,
            PrOp::Checkout => &CHECKOUT,
        }
    }

    pub fn is_write(self) -> bool {
        !matches!(self, PrOp::View | PrOp::List | PrOp::Diff | PrOp::Checks)
    }
}

impl Pr {
    pub fn parse(op: PrOp, args: &[String], repo: &RepoSlug) -> Result<Self, Refusal> {
        let grammar = op.grammar();
        let mut parsed = grammar.parse(args)?;
        let given = std::mem::take(&mut parsed.positionals).pop();
        let given = given.map(|text| PrRef::parse(&text, repo)).transpose();
        let target = given.map_err(|why| grammar.refuse(why))?;
        Ok(match op {
            PrOp::View => Pr::View(target, parsed),
            PrOp::List => Pr::List(parsed),
            PrOp::Diff => Pr::Diff(target, parsed),
            PrOp::Checks => Pr::Checks(target, parsed),
            PrOp::Create => Pr::Create(Create::read(&parsed)?),
            PrOp::Comment => {
                let body = parsed.value("--body").filter(|body| !body.trim().is_empty());
                let body =
                    body.ok_or_else(|| grammar.refuse("'--body' with some text is needed."))?;
                Pr::Comment(target, body.to_owned())
            }
            PrOp::Review => {
                let (verdict, body) = review(&parsed)?;
                Pr::Review(target, verdict, body)
            }
            PrOp::Close => Pr::Close(target, parsed.has("--delete-branch")),
            PrOp::Reopen => Pr::Reopen(target),
            PrOp::Merge => Pr::Merge(target, how(&parsed)?, parsed.has("--delete-branch")),
            PrOp::Checkout => match target {
                Some(target) => Pr::Checkout(target),
                None => return Err(grammar.refuse("one pull request expected.")),
            },
        })
    }

    pub fn op(&self) -> PrOp {
        match self {
            Pr::View(..) => PrOp::View,
            Pr::List(_) => PrOp::List,
            Pr::Diff(..) => PrOp::Diff,
            Pr::Checks(..) => PrOp::Checks,
            Pr::Create(_) => PrOp::Create,
            Pr::Comment(..) => PrOp::Comment,
            Pr::Review(..) => PrOp::Review,
            Pr::Close(..) => PrOp::Close,
            Pr::Reopen(_) => PrOp::Reopen,
            Pr::Merge(..) => PrOp::Merge,
            Pr::Checkout(_) => PrOp::Checkout,
        }
    }

    pub fn target(&self) -> Option<&PrRef> {
        match self {
            Pr::View(target, _)
            | Pr::Diff(target, _)
            | Pr::Checks(target, _)
            | Pr::Comment(target, _)
            | Pr::Review(target, ..)
            | Pr::Close(target, _)
            | Pr::Reopen(target)
            | Pr::Merge(target, ..) => target.as_ref(),
            Pr::Checkout(target) => Some(target),
            Pr::List(_) | Pr::Create(_) => None,
        }
    }

    /// The flags a box may give, written anew; [`Pr::parse`] reads the same value from them.
    pub fn flags(&self) -> Vec<String> {
        match self {
            Pr::View(_, flags) | Pr::List(flags) | Pr::Diff(_, flags) | Pr::Checks(_, flags) => {
                flags.argv()
            }
            Pr::Create(create) => create.flags(),
            Pr::Comment(_, body) => vec![format!("--body={body}")],
            Pr::Review(_, verdict, body) => {
                let body = body.iter().map(|body| format!("--body={body}"));
                std::iter::once(verdict.flag().to_owned()).chain(body).collect()
            }
            Pr::Close(_, delete) => delete_branch(*delete),
            Pr::Merge(_, how, delete) => {
                std::iter::once(how.flag().to_owned()).chain(delete_branch(*delete)).collect()
            }
            Pr::Reopen(_) | Pr::Checkout(_) => Vec::new(),
        }
    }

    /// The command line for `gh`. `target` is the pull request as the host knows it, for operations
    /// that have one. A create must have been completed by the host: head, base, title and body.
    pub fn argv(&self, repo: &RepoSlug, target: Option<&PrRef>) -> Vec<String> {
        let mut argv = vec!["pr".to_owned(), self.op().name().to_owned(), format!("--repo={repo}")];
        argv.extend(self.flags());
        if let Some(target) = target {
            argv.extend(["--".to_owned(), target.to_string()]);
        }
        argv
    }

    /// The same for a merge, which takes place only while the pull request ends in `head`.
    pub fn pinned_argv(&self, repo: &RepoSlug, target: &PrRef, head: &ObjectId) -> Vec<String> {
        let mut argv = self.argv(repo, None);
        argv.extend([format!("--match-head-commit={head}"), "--".to_owned(), target.to_string()]);
        argv
    }
}

fn delete_branch(delete: bool) -> Vec<String> {
    delete.then(|| "--delete-branch".to_owned()).into_iter().collect()
}

impl Create {
    fn read(parsed: &Parsed) -> Result<Self, Refusal> {
        let text = |flag: &str| parsed.value(flag).map(str::to_owned);
        let all = |flag: &'static str| parsed.values(flag).map(str::to_owned).collect();
        let create = Self {
            title: text("--title"),
            body: text("--body"),
            base: parsed.value("--base").and_then(|base| base.parse().ok()),
            head: parsed.value("--head").and_then(Head::parse),
            draft: parsed.has("--draft"),
            fill: parsed.has("--fill"),
            labels: all("--label"),
            reviewers: all("--reviewer"),
            assignees: all("--assignee"),
        };
        let complete = create.title.is_some() && create.body.is_some();
        if !complete && !create.fill {
            return Err(CREATE.refuse("give '--title' and '--body', or '--fill'."));
        }
        let bad = |title: &String| title.trim().is_empty() || title.chars().any(char::is_control);
        if create.title.as_ref().is_some_and(bad) {
            return Err(CREATE.refuse("'--title' takes one line of text."));
        }
        Ok(create)
    }

    fn flags(&self) -> Vec<String> {
        let one =
            |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
        let all = |name: &str, values: &[String]| -> Vec<String> {
            values.iter().map(|value| format!("--{name}={value}")).collect()
        };
        let mut flags: Vec<String> = Vec::new();
        flags.extend(one("title", self.title.clone()));
        flags.extend(one("body", self.body.clone()));
        flags.extend(one("base", self.base.as_ref().map(ToString::to_string)));
        flags.extend(one("head", self.head.as_ref().map(ToString::to_string)));
        flags.extend(self.draft.then(|| "--draft".to_owned()));
        flags.extend(self.fill.then(|| "--fill".to_owned()));
        flags.extend(all("label", &self.labels));
        flags.extend(all("reviewer", &self.reviewers));
        flags.extend(all("assignee", &self.assignees));
        flags
    }
}

fn review(parsed: &Parsed) -> Result<(Verdict, Option<String>), Refusal> {
    let all = [Verdict::Approve, Verdict::RequestChanges, Verdict::Comment];
    let given: Vec<Verdict> = all.into_iter().filter(|v| parsed.has(v.flag())).collect();
    let [verdict] = given[..] else {
        return Err(REVIEW.refuse("give one of '--approve', '--request-changes' and '--comment'."));
    };
    let body = parsed.value("--body").filter(|body| !body.trim().is_empty()).map(str::to_owned);
    if body.is_none() && verdict != Verdict::Approve {
        return Err(REVIEW.refuse(format!("'{}' needs '--body' with some text.", verdict.flag())));
    }
    Ok((verdict, body))
}

fn how(parsed: &Parsed) -> Result<How, Refusal> {
    let all = [How::Squash, How::Merge, How::Rebase];
    let given: Vec<How> = all.into_iter().filter(|how| parsed.has(how.flag())).collect();
    let [how] = given[..] else {
        return Err(MERGE.refuse("give one of '--squash', '--merge' and '--rebase'."));
    };
    Ok(how)
}

impl Verdict {
    pub fn flag(self) -> &'static str {
        match self {
            Verdict::Approve => "--approve",
            Verdict::RequestChanges => "--request-changes",
            Verdict::Comment => "--comment",
        }
    }
}

impl How {
    pub fn flag(self) -> &'static str {
        match self {
            How::Squash => "--squash",
            How::Merge => "--merge",
            How::Rebase => "--rebase",
        }
    }
}
