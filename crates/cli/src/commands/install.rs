//! `agentbox install`: completions, manual pages and a skill for the agents of this computer.
//!
//! It shows what it will write before it does. It writes over its own files alone, goes through no link,
//! and remembers each file by what it wrote there, so that `--remove` takes away exactly that.

mod plan;
mod record;

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::{ask, json};
use files::folder::{Folder, fresh_name};
use plan::{Action, Kind, Now, Places, Step, decide, decide_removal, kind_of, look};
use record::{Record, sum};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Put completions, manual pages and skills in place
///
/// For the shells and agents you have: completions for bash, zsh and fish, the manual pages, and a skill
/// that teaches Claude Code, Codex and OpenCode on this computer to use agentbox. You see the list first
/// and are asked. What is there and was not written by this command stays, unless --force. No link is
/// followed and no file of your shell is changed. Needs no host.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox install                show what would be written, and ask
  agentbox install --dry-run      only show it
  agentbox install --skills-only -y
  agentbox install --remove       take it all away again")]
pub struct Args {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,

    /// Replace files that are there and were not written by this command, or were changed since
    #[arg(long)]
    force: bool,

    /// Only the skills for agents
    #[arg(long)]
    skills_only: bool,

    /// Take away what this command wrote
    #[arg(long)]
    remove: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Print JSON; needs --yes or --dry-run
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    /// Whether it was done, or only shown.
    done: bool,
    files: &'a [Step],
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.json && !args.yes && !args.dry_run {
        return Err(CommandError::usage("--json asks nothing: say --yes or --dry-run"));
    }
    let places = Places::of_this_person()?;
    let mut record = Record::load(&ctx.home)?;
    let steps = if args.remove {
        removals(&record, |path| !args.skills_only || kind_of(path) == Kind::Skill, args.force)?
    } else {
        steps(&places, &record, args.skills_only, args.force)?
    };
    let work = steps.iter().filter(|step| is_work(step)).count();
    if !args.json {
        ctx.ui.out(&render(&places, &steps))?;
    }
    if !args.dry_run && work > 0 {
        if !args.yes && !may(ctx, &steps)? {
            ctx.ui.say("Nothing was done.");
            return Ok(Exit::OK);
        }
        carry_out(&ctx.home, &mut record, &steps)?;
    }
    if args.json {
        json::print(&ctx.ui, "install", &Report { done: !args.dry_run, files: &steps })?;
    } else if args.dry_run {
        ctx.ui.say("Nothing was done.");
    } else {
        afterwards(ctx, &places, &steps, work);
    }
    Ok(Exit::OK)
}

fn afterwards(ctx: &Context, places: &Places, steps: &[Step], work: usize) {
    ctx.ui.say(if work == 0 { "Nothing to do." } else { "Done." });
    let zsh = |step: &&Step| step.action == Action::New && step.path.ends_with(".zfunc/_agentbox");
    if steps.iter().any(|step| zsh(&step)) && !places.zsh_knows() {
        ctx.ui.hint("zsh looks there with `fpath=(~/.zfunc $fpath)` before compinit in ~/.zshrc");
    }
}

/// Enter is a yes only where nothing of anybody's is lost.
fn may(ctx: &Context, steps: &[Step]) -> Result<bool, CommandError> {
    if !ctx.ui.interactive {
        return Err(CommandError::usage("nobody can be asked here")
            .hint("--yes does it without a question, --dry-run only shows it"));
    }
    let loses = steps.iter().any(|step| matches!(step.action, Action::Replace | Action::Remove));
    let question = "Do this?";
    Ok(if loses { ask::yes(&ctx.ui, question) } else { ask::not_no(&ctx.ui, question) })
}

fn is_work(step: &Step) -> bool {
    !matches!(step.action, Action::Same | Action::Leave)
}

fn cannot(path: &Path) -> impl Fn(io::Error) -> CommandError + '_ {
    move |e| CommandError::failed(format!("{}: {e}", path.display()))
}

fn steps(
    places: &Places,
    record: &Record,
    skills_only: bool,
    force: bool,
) -> Result<Vec<Step>, CommandError> {
    let wanted = places.wanted(skills_only)?;
    let mut steps = Vec::new();
    for one in &wanted {
        let now = look(&one.path).map_err(cannot(&one.path))?;
        let (action, why) = decide(&now, one, record, force);
        let (path, text) = (one.path.clone(), one.text.clone());
        steps.push(Step { kind: one.kind, path, action, why, text });
    }
    // Pages of commands that are no more. A shell or an agent that is gone may come back.
    let known: BTreeSet<&Path> = wanted.iter().map(|one| one.path.as_path()).collect();
    let old = |path: &Path| !skills_only && kind_of(path) == Kind::Manual && !known.contains(path);
    steps.extend(removals(record, old, false)?);
    Ok(steps)
}

fn removals(
    record: &Record,
    wanted: impl Fn(&Path) -> bool,
    force: bool,
) -> Result<Vec<Step>, CommandError> {
    let mut steps = Vec::new();
    for path in record.files.keys().filter(|path| wanted(path)) {
        let now = look(path).map_err(cannot(path))?;
        if let Some((action, why)) = decide_removal(&now, path, record, force) {
            let (kind, path) = (kind_of(path), path.clone());
            steps.push(Step { kind, path, action, why, text: String::new() });
        }
    }
    Ok(steps)
}

/// Pages go together: nobody reads a hundred lines.
fn render(places: &Places, steps: &[Step]) -> String {
    let mut text = String::new();
    let word = |action| match action {
        Action::New => "new",
        Action::Same => "as it is",
        Action::Update => "newer",
        Action::Replace => "replaced",
        Action::Remove => "removed",
        Action::Leave => "left",
    };
    let is_page = |step: &Step| step.kind == Kind::Manual && step.why.is_none();
    for step in steps.iter().filter(|step| !is_page(step)) {
        let why = step.why.map(|why| format!(": {why}")).unwrap_or_default();
        let _ = writeln!(text, "{:<9} {}{why}", word(step.action), places.shown(&step.path));
    }
    let all = [Action::New, Action::Same, Action::Update, Action::Replace, Action::Remove];
    for action in all {
        let mut pages = steps.iter().filter(|step| is_page(step) && step.action == action);
        let Some(first) = pages.next() else { continue };
        let folder = places.shown(first.path.parent().unwrap_or(&first.path));
        let count = pages.count() + 1;
        let _ = writeln!(text, "{:<9} {folder}/agentbox*.1 ({count} pages)", word(action));
    }
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

/// What is written is known before it is, so that a file is ours from its first moment on.
fn carry_out(home: &Path, record: &mut Record, steps: &[Step]) -> Result<(), CommandError> {
    let writes =
        |step: &&Step| matches!(step.action, Action::New | Action::Update | Action::Replace);
    for step in steps.iter().filter(writes) {
        let sums = record.files.entry(step.path.clone()).or_default();
        sums.insert(sum(step.text.as_bytes()));
    }
    record.save(home)?;
    let done = steps.iter().filter(|step| is_work(step)).try_for_each(|step| one(record, step));
    // What somebody removed by hand is nobody's any more.
    record.files.retain(|path, _| !matches!(look(path), Ok(Now::Nothing)));
    forget_folders(record);
    record.save(home)?;
    done
}

fn one(record: &mut Record, step: &Step) -> Result<(), CommandError> {
    if step.action == Action::Remove {
        let (parent, name) = parts(&step.path).map_err(cannot(&step.path))?;
        let folder = Folder::at(parent).map_err(cannot(parent))?;
        folder.remove(name).map_err(cannot(&step.path))?;
        record.files.remove(&step.path);
        return Ok(());
    }
    write(record, step).map_err(cannot(&step.path))?;
    let sums = BTreeSet::from([sum(step.text.as_bytes())]);
    record.files.insert(step.path.clone(), sums);
    Ok(())
}

fn parts(path: &Path) -> io::Result<(&Path, &Path)> {
    let whole = path.parent().zip(path.file_name().map(Path::new));
    whole.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Every step on the way is a folder and no link; the file is whole or not there.
fn write(record: &mut Record, step: &Step) -> io::Result<()> {
    let (parent, name) = parts(&step.path)?;
    let (mut folder, mut at) = (Folder::root()?, PathBuf::from("/"));
    for part in parent.components().skip(1) {
        let part = Path::new(part.as_os_str());
        at.push(part);
        let missing = folder.look(part)?.is_none();
        folder = folder.enter_or_make(part)?;
        if missing {
            record.folders.push(at.clone());
        }
    }
    let fill = |file: &mut std::fs::File| file.write_all(step.text.as_bytes());
    if step.action == Action::New {
        return folder.make_file(name, false, fill);
    }
    let fresh = fresh_name()?;
    folder.make_file(&fresh, false, fill)?;
    folder.rename(&fresh, name).inspect_err(|_| drop(folder.remove(&fresh)))
}

/// Folders this command made go when nothing is in them any more.
fn forget_folders(record: &mut Record) {
    let used = |folder: &Path| record.files.keys().any(|file| file.starts_with(folder));
    let (keep, free): (Vec<_>, Vec<_>) =
        std::mem::take(&mut record.folders).into_iter().partition(|folder| used(folder));
    record.folders = keep;
    for folder in free.iter().rev() {
        if Folder::at(folder).is_ok() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Skills that are there and unchanged become those of this version; how many.
pub fn refresh_skills(home: &Path) -> Result<usize, CommandError> {
    let mut record = Record::load(home)?;
    if !record.files.keys().any(|path| kind_of(path) == Kind::Skill) {
        return Ok(0);
    }
    let all = steps(&Places::of_this_person()?, &record, true, false)?;
    let newer: Vec<Step> = all.into_iter().filter(|step| step.action == Action::Update).collect();
    if !newer.is_empty() {
        carry_out(home, &mut record, &newer)?;
    }
    Ok(newer.len())
}
