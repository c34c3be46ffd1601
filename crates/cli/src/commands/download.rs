//! `agentbox download`: what a box has made, over the project's own files.
//!
//! Compared by content, shown first, never deleting. Commits travel by git; this is for the rest.

mod tame;

use crate::ask;
use crate::context::{Context, target};
use crate::copying::changes::{Ask, Change, Changes, Tame, Wanted};
use crate::copying::{shown, up};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use clap::Subcommand;
use files::rules::Tops;
use protocol::boxes::BoxView;
use protocol::control::Target;
use protocol::ctl::ENV_FILES;
use protocol::ctl::Pack;
use protocol::text::visible;
use serde::Serialize;
use std::path::{Path, PathBuf};

const CONFIG: &str = "agentbox.yaml";
const CLAUDE: &str = "Claude";

/// Bring a box's files home
///
/// Copies what differs in the box's workspace over the project's folder, without what git ignores.
/// Files are compared by their content and listed first; nothing is deleted. For commits, merging
/// the box's branch is the better way.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox download                 the workspace of the project's only box
  agentbox download --dry-run       only what would change
  agentbox download env fix-login   .env files and the like
  agentbox download claude          skills, agents and commands made in the box"
)]
pub struct Args {
    #[command(subcommand)]
    part: Option<Part>,

    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    #[command(flatten)]
    how: How,

    /// Also .env files and the like, which git ignores
    #[arg(long)]
    with_env: bool,

    /// Also files of this name, which git ignores; * and ? stand for anything
    #[arg(long, value_name = "GLOB")]
    pattern: Vec<String>,

    /// Also everything else git ignores, but .git and node_modules
    #[arg(long)]
    no_respect_gitignore: bool,

    /// Also node_modules
    #[arg(long)]
    include_node_modules: bool,
}

#[derive(Debug, Clone, clap::Args)]
struct How {
    /// Don't ask, however large it is
    #[arg(short, long)]
    yes: bool,

    /// Only list what would change
    #[arg(long)]
    dry_run: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct PartArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    #[command(flatten)]
    how: How,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Only .env files and the like
    Env {
        #[command(flatten)]
        part: PartArgs,
        /// Also files of this name; * and ? stand for anything
        #[arg(long, value_name = "GLOB")]
        pattern: Vec<String>,
    },
    /// Only agentbox.yaml
    Config(PartArgs),
    /// Claude's skills, agents and commands of the box, to ~/.claude; what is there stays
    Claude(PartArgs),
    /// Codex's login, prompts and harmless settings of the box, to ~/.codex; what is there stays
    Codex(PartArgs),
    /// OpenCode's logins, harmless settings, agents, commands and themes; what is there stays
    Opencode(PartArgs),
}

/// What one command is about.
struct Job {
    which: Option<String>,
    how: How,
    kind: Kind,
}

enum Kind {
    Workspace(Pack),
    /// Some files of the workspace, each marked as new or not.
    Some(Pack),
    Agent(&'static str, Vec<Group>),
}

/// Things of one folder in the box, and where they go below the person's home.
struct Group {
    from: &'static str,
    names: &'static [&'static str],
    to: &'static str,
    /// A box may have written anything into settings, and what they name would run here.
    tame: Tame,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let Job { which, how, kind } = job(args);
    let client = ctx.client()?;
    let view = up::running(ctx, &client, target(which))?;
    let at = Target::id(&view.id);
    let workspace = |what: Pack| Ask {
        what,
        tops: Tops::Any,
        into: PathBuf::from(&view.workspace),
        wanted: Wanted::Different,
        skip: |_| false,
        tame: |_| None,
        all: how.yes,
    };
    match kind {
        Kind::Workspace(what) => {
            let changes = Changes::find(ctx, &client, &at, workspace(what))?;
            if let Some(branch) = view.branch.as_ref().filter(|_| !how.json) {
                ctx.ui.hint(&format!("git merge {} brings its commits", visible(branch)));
            }
            finish(ctx, &how, &view, &view.workspace, "updated", false, vec![changes])
        }
        Kind::Some(what) => {
            let changes = Changes::find(ctx, &client, &at, workspace(what))?;
            finish(ctx, &how, &view, &view.workspace, "updated", true, vec![changes])
        }
        Kind::Agent(name, groups) => {
            let home = std::env::home_dir()
                .ok_or_else(|| CommandError::failed("there is no home folder to copy to"))?;
            let mut all = Vec::new();
            for group in groups {
                let tops: Vec<String> = group.names.iter().map(ToString::to_string).collect();
                let sources = tops.iter().map(|name| format!("{}/{name}", group.from)).collect();
                let what = Pack::Copy {
                    sources,
                    exclude: vec![".git".into()],
                    default_excludes: false,
                    optional: true,
                };
                let ask = Ask {
                    what,
                    tops: Tops::Only(&tops),
                    into: home.join(group.to),
                    wanted: Wanted::Missing,
                    skip: is_ours,
                    tame: group.tame,
                    all: how.yes,
                };
                all.push(Changes::find(ctx, &client, &at, ask)?);
            }
            if name != CLAUDE && !how.json {
                ctx.ui.hint("of settings only how it looks and which model it uses is taken");
            }
            let place = format!("~ for {name}");
            finish(ctx, &how, &view, &place, "downloaded", true, all)
        }
    }
}

fn job(args: Args) -> Job {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let only = |also: Vec<String>| Pack::Download {
        respects_git: true,
        node_modules: false,
        also,
        only: true,
    };
    let Some(part) = args.part else {
        let env = if args.with_env { words(&ENV_FILES) } else { Vec::new() };
        let what = Pack::Download {
            respects_git: !args.no_respect_gitignore,
            node_modules: args.include_node_modules,
            also: env.into_iter().chain(args.pattern).collect(),
            only: false,
        };
        return Job { which: args.which, how: args.how, kind: Kind::Workspace(what) };
    };
    let (part, kind) = match part {
        Part::Env { part, pattern } => {
            (part, Kind::Some(only(words(&ENV_FILES).into_iter().chain(pattern).collect())))
        }
        Part::Config(part) => (part, Kind::Some(only(words(&[CONFIG])))),
        Part::Claude(part) => (part, Kind::Agent(CLAUDE, claude())),
        Part::Codex(part) => (part, Kind::Agent("Codex", codex())),
        Part::Opencode(part) => (part, Kind::Agent("OpenCode", opencode())),
    };
    Job { which: part.which, how: part.how, kind }
}

fn claude() -> Vec<Group> {
    let names = &["skills", "agents", "commands"];
    vec![Group { from: "/home/vscode/.claude", names, to: ".claude", tame: tame::claude }]
}

fn codex() -> Vec<Group> {
    let names = &["config.toml", "auth.json", "prompts"];
    vec![Group { from: "/home/vscode/.codex", names, to: ".codex", tame: tame::codex }]
}

fn opencode() -> Vec<Group> {
    let settings = &["opencode.json", "agents", "commands", "themes"];
    vec![
        Group {
            from: "/home/vscode/.local/share/opencode",
            names: &["auth.json"],
            to: ".local/share/opencode",
            tame: tame::opencode,
        },
        Group {
            from: "/home/vscode/.config/opencode",
            names: settings,
            to: ".config/opencode",
            tame: tame::opencode,
        },
    ]
}

/// A skill AgentBox itself put into the box.
fn is_ours(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy());
    parts.next().as_deref() == Some("skills")
        && parts.next().is_some_and(|name| name.starts_with("agentbox-"))
}

/// What was found, and what became of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Downloaded {
    #[serde(rename = "box")]
    of: String,
    to: String,
    files: Vec<Listed>,
    refused: Vec<String>,
    /// How many were written.
    updated: usize,
    dry_run: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    path: String,
    bytes: u64,
    new: bool,
}

/// Shows, asks, writes.
fn finish(
    ctx: &Context,
    how: &How,
    view: &BoxView,
    to: &str,
    verb: &str,
    marked: bool,
    all: Vec<Changes>,
) -> Outcome {
    let changes = || all.iter().flat_map(|changes| &changes.list);
    let total = changes().count();
    let refused: Vec<String> = all.iter().flat_map(|c| c.taken.refused.clone()).collect();
    for line in &refused {
        ctx.ui.warn(&format!("{} sent {line}: refused", view.name));
    }
    let mut files: Vec<Listed> = changes().map(listed).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let code = if refused.is_empty() { Exit::OK } else { Exit::FAILED };
    let mut done = Downloaded {
        of: view.name.to_string(),
        to: to.to_owned(),
        files,
        refused,
        updated: 0,
        dry_run: how.dry_run,
    };
    if !how.json {
        if total == 0 {
            ctx.ui.out(&format!("no changes: {} has all of it\n", visible(to)))?;
            return Ok(code);
        }
        let lines: String = done.files.iter().map(|file| line(file, marked)).collect();
        if how.dry_run {
            let end = format!("[dry-run] {total} file(s) would change\n");
            ctx.ui.out(&format!("{lines}{end}"))?;
            return Ok(code);
        }
        ctx.ui.say(lines.trim_end());
    }
    if !how.dry_run && total > 0 {
        if !how.yes {
            if !ctx.ui.interactive {
                return Err(CommandError::usage(
                    "nobody is there to be asked; nothing was written",
                )
                .hint("--yes writes without a question, --dry-run only lists"));
            }
            let question = format!("Write {total} file(s) to {}?", visible(to));
            if !ask::yes(&ctx.ui, &question) {
                ctx.ui.say("Nothing was written.");
                return Ok(Exit::OK);
            }
        }
        for changes in &all {
            done.updated += changes.write()?;
        }
    }
    if how.json {
        json::print(&ctx.ui, "download", &done)?;
    } else {
        ctx.ui.out(&format!("{verb} {} file(s) in {}\n", done.updated, visible(to)))?;
    }
    Ok(code)
}

fn listed(change: &Change) -> Listed {
    let path = shown(&change.arrived.path);
    Listed { path, bytes: change.bytes(), new: change.is_new() }
}

fn line(file: &Listed, marked: bool) -> String {
    let mark = match (marked, file.new) {
        (false, _) => "",
        (true, true) => " (new)",
        (true, false) => " (overwrites host)",
    };
    format!("{}{mark}\n", file.path)
}
