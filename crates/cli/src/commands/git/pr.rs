//! `agentbox git pr`: pull requests of a box's branch, with the person's own login.
//!
//! The host does it as it would for the box, by the same grammar, but asks nobody: it was typed here.
//! A file that is named is one of this computer; its text is sent.

use super::{ask, check_repo, in_workspace, tell};
use crate::context::{Context, target};
use crate::error::{CommandError, Outcome};
use clap::ValueEnum;
use connectors::gh::PrOp;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::rpc::ArgsParams;
use std::io::Read;

/// GitHub takes no longer body.
const LONGEST_BODY: u64 = 64 * 1024;

/// Make, see and steer pull requests of a box's branch
///
/// Without a number it is the pull request of the branch the box pushes to. What follows -- is as `gh pr`
/// takes it. GitHub must be switched on: `agentbox integrations enable github`. Exit codes are those of
/// `gh` in a box.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git pr create fix-login -- --fill
  agentbox git pr create fix-login -- --title 'Fix the login' --body-file notes.md
  agentbox git pr view fix-login
  agentbox git pr merge fix-login -- 7 --squash")]
pub struct Args {
    /// What to do
    #[arg(value_name = "WHAT")]
    what: What,

    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// A repository below the workspace, by its folder [default: the workspace's own]
    #[arg(long, value_name = "FOLDER")]
    repo: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,

    /// Arguments as gh pr takes them
    #[arg(last = true, value_name = "ARG")]
    words: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Open one for the box's branch, which must be pushed
    Create,
    /// Show one
    View,
    /// List those of the box's branch; with arguments, the repository's
    List,
    /// Show its changes
    Diff,
    /// Show how its checks went
    Checks,
    /// Comment on one
    Comment,
    /// Review one
    Review,
    /// Merge one
    Merge,
    /// Check one out in the work tree of this computer, where that is switched on
    Checkout,
    /// Close one
    Close,
    /// Open one again
    Reopen,
}

impl What {
    fn op(self) -> PrOp {
        match self {
            What::Create => PrOp::Create,
            What::View => PrOp::View,
            What::List => PrOp::List,
            What::Diff => PrOp::Diff,
            What::Checks => PrOp::Checks,
            What::Comment => PrOp::Comment,
            What::Review => PrOp::Review,
            What::Merge => PrOp::Merge,
            What::Checkout => PrOp::Checkout,
            What::Close => PrOp::Close,
            What::Reopen => PrOp::Reopen,
        }
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let op = args.what.op();
    let mut words = with_bodies(op, &args.words, text_of)?;
    op.grammar().parse(&words).map_err(|refusal| {
        CommandError::usage(refusal.text).hint("agentbox git pr --help shows examples")
    })?;
    let (client, target) = (ctx.client()?, target(args.which));
    check_repo(&client, &target, args.repo.as_deref())?;
    let view: BoxView = client.call(&Request::FindBox { target })?;
    if op == PrOp::List && words.is_empty() && args.repo.is_none() {
        words.extend(view.branch.as_ref().map(|branch| format!("--head={branch}")));
    }
    let path = args.repo.as_deref().map(in_workspace);
    let params = ArgsParams { path, args: words, stdin: None };
    let call = format!("gh.pr.{}", op.name());
    let envelope = ask(&client, Target::id(&view.id), &call, &params)?;
    tell(ctx, &envelope, args.json)
}

/// `--body-file FILE` as `--body=TEXT`, where the command takes a body.
fn with_bodies(
    op: PrOp,
    args: &[String],
    read: impl Fn(&str) -> Result<String, CommandError>,
) -> Result<Vec<String>, CommandError> {
    if !op.grammar().flags.iter().any(|flag| flag.long == "--body") {
        return Ok(args.to_vec());
    }
    let mut out = Vec::with_capacity(args.len());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let file = match word.as_str() {
            "--body-file" | "-F" => Some(words.next().map(String::as_str).ok_or_else(|| {
                CommandError::usage(format!("{word} needs a file"))
                    .hint("- reads the text from standard input")
            })?),
            word => word.strip_prefix("--body-file="),
        };
        match file {
            Some(file) => out.push(format!("--body={}", read(file)?)),
            None => out.push(word.clone()),
        }
    }
    Ok(out)
}

fn text_of(file: &str) -> Result<String, CommandError> {
    let cannot = |why: String| {
        CommandError::usage(format!("{file} {why}"))
            .hint("name a text file of this computer, or - for standard input")
    };
    let bad = |e: std::io::Error| cannot(format!("cannot be read: {e}"));
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(LONGEST_BODY + 1).read_to_string(&mut text),
        file => {
            let opened = std::fs::File::open(file).map_err(bad)?;
            opened.take(LONGEST_BODY + 1).read_to_string(&mut text)
        }
    };
    read.map_err(bad)?;
    if text.len() as u64 > LONGEST_BODY {
        return Err(cannot("is too long for a pull request: at most 64 KB".to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn every_word_is_an_operation_of_the_host() {
        let ours: Vec<PrOp> = What::value_variants().iter().map(|what| what.op()).collect();
        assert!(PrOp::ALL.iter().all(|op| ours.contains(op)));
        for what in What::value_variants() {
            assert_eq!(what.to_possible_value().unwrap().get_name(), what.op().name());
        }
    }

    #[test]
    fn a_body_comes_from_a_file_of_this_computer() {
        let read = |file: &str| Ok(format!("text of {file}"));
        let given = |op, args: &[&str]| with_bodies(op, &words(args), read);
        assert_eq!(
            given(PrOp::Create, &["--title", "t", "--body-file", "a b.md"]).unwrap(),
            ["--title", "t", "--body=text of a b.md"]
        );
        assert_eq!(given(PrOp::Comment, &["-F", "-"]).unwrap(), ["--body=text of -"]);
        assert_eq!(given(PrOp::Comment, &["--body-file=x"]).unwrap(), ["--body=text of x"]);
        assert_eq!(given(PrOp::View, &["-F"]).unwrap(), ["-F"]);
        assert!(given(PrOp::Create, &["-F"]).is_err());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("long");
        std::fs::write(&file, "x".repeat(70_000)).unwrap();
        for bad in [file.to_str().unwrap(), "/nowhere/at/all"] {
            assert_eq!(text_of(bad).unwrap_err().hints.len(), 1);
        }
    }
}
