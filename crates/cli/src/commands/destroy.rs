//! `agentbox destroy`: a box and everything only it has, gone for good.
//!
//! What would be lost is shown before the question, and what was shown is what is destroyed: the
//! second call names the box by id, whatever the first one resolved.

mod export;

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Kind, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::several::Which;
use crate::ui::Look;
use export::Export;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{Destroyed, Loss, Request, Target};
use protocol::looking::BranchFate;
use protocol::text::visible;
use std::fmt::Write;
use std::path::PathBuf;

/// How many files and commits are listed by name.
const LISTED: usize = 10;

/// Destroy a box
///
/// Removes the box with its files and everything it has on the engine. A branch with commits stays in
/// your repository. Shows what would be lost in each of its repositories (uncommitted files, commits
/// on no remote) and says so when that is not known, as of a box that is stopped; then asks. Every
/// object is told as removed, absent or failed; exit code 1 when one failed.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  agentbox destroy fix-login      show what would be lost, then ask
  agentbox destroy a b -y         several, without asking
  agentbox destroy fix-login --export fix-login.tar
                                  save its files first"
)]
pub struct Args {
    #[command(flatten)]
    which: Which,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Save the workspace as a tar file first, ignored files included, git's own data not
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,

    /// Keep the box's branch in your repository, whatever is on it
    #[arg(long, conflicts_with = "delete_branch")]
    keep_branch: bool,

    /// Delete the box's branch in your repository, and the commits on it [default: only when it has
    /// no commits of its own]
    #[arg(long)]
    delete_branch: bool,

    /// Print what was removed as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if !args.yes && !ctx.ui.interactive {
        return Err(CommandError::usage("destroying needs a yes, and nobody can be asked here")
            .hint("add -y when you are sure"));
    }
    let mut targets = args.which.targets();
    let many = targets.len() > 1;
    let export = match &args.export {
        Some(_) if many => {
            return Err(CommandError::usage("--export saves one box, and several were named")
                .hint("destroy them one after the other"));
        }
        Some(file) => Some(Export::prepare(&ctx.ui, file, args.yes)?),
        None => None,
    };
    let branch = match (args.keep_branch, args.delete_branch) {
        (true, _) => Some(BranchFate::Keep),
        (_, true) => Some(BranchFate::Delete),
        _ => None,
    };
    let client = ctx.client()?;
    if !args.yes {
        let mut shown: Vec<BoxView> = Vec::new();
        for target in targets {
            let loss: Loss = client.call(&Request::WhatIfDestroyed { target })?;
            if shown.iter().all(|view| view.id != loss.view.id) {
                ctx.ui.say(&render_loss(ctx.ui.err, &loss, branch));
                shown.push(loss.view);
            }
        }
        let question = match shown.as_slice() {
            [one] => format!("Destroy {}?", one.name),
            all => format!("Destroy these {} boxes?", all.len()),
        };
        if !ask::yes(&ctx.ui, &question) {
            ctx.ui.say("Nothing was destroyed.");
            return Ok(Exit::OK);
        }
        targets = shown.iter().map(|view| Target::id(&view.id)).collect();
    }
    let interrupt = Interrupt::install()?;
    if let (Some(export), [target]) = (export, targets.as_slice()) {
        export.save(&ctx.ui, &client, &interrupt, target)?;
    }
    let (mut all, mut exit) = (Vec::new(), Exit::OK);
    for target in targets {
        let request = Request::DestroyBox { target, branch };
        match interrupt.call::<Destroyed>(&client, &request, |_| {}) {
            Ok(done) => {
                if !args.json {
                    ctx.ui.out(&render_done(ctx.ui.out, &done))?;
                }
                if !done.failed.is_empty() {
                    exit = Exit::FAILED;
                }
                all.push(done);
            }
            Err(error) if many && error.kind != Kind::Interrupted => {
                ctx.ui.report(&error);
                exit = Exit(error.kind.exit_code().max(exit.0));
            }
            Err(error) => return Err(error),
        }
    }
    if args.json {
        match all.as_slice() {
            [one] if !many => json::print(&ctx.ui, "destroyed", one)?,
            all => json::print(&ctx.ui, "destroyed", &all)?,
        }
    }
    Ok(exit)
}

/// A box whose person has said yes elsewhere.
pub fn confirmed(ctx: &Context, view: &BoxView) -> Outcome {
    let which = Which { which: vec![view.id.to_string()] };
    let (export, keep_branch, delete_branch) = (None, false, false);
    run(ctx, Args { which, yes: true, export, keep_branch, delete_branch, json: false })
}

fn render_loss(look: Look, loss: &Loss, branch: Option<BranchFate>) -> String {
    let view = &loss.view;
    let mut text = format!("{} of {}\n", look.bold(view.name.as_str()), visible(&view.project));
    let unknown = |text: &mut String, what: &str| {
        let _ = writeln!(text, "  {} {what}", look.warn("⚠"));
    };
    if view.branch.is_none() {
        unknown(&mut text, "files outside a repository are in this box alone and will be lost");
    }
    if view.branch.is_none() && view.nested_repos.is_empty() {
        return text;
    }
    let untold = [
        loss.uncommitted.is_none().then_some("uncommitted changes"),
        loss.stranded.is_none().then_some("commits on other branches"),
    ];
    let untold: Vec<&str> = untold.into_iter().flatten().collect();
    if !untold.is_empty() {
        let why = match view.state {
            BoxState::Running | BoxState::Paused => "did not answer",
            _ => "does not run",
        };
        let what = untold.join(" and ");
        let said = format!("its {what} are not known, it {why}; what there is will be lost");
        unknown(&mut text, &said);
    }
    match loss.uncommitted.as_deref() {
        None => {}
        Some([]) => text.push_str("  no uncommitted changes\n"),
        Some(files) => will_be_lost(&mut text, look, files, 0, "uncommitted change"),
    }
    if let Some(commits) = loss.stranded.as_ref().filter(|commits| !commits.is_empty()) {
        will_be_lost(&mut text, look, commits, 0, "commit on other branches");
    }
    let nested = view.nested_repos.iter().map(|nested| &nested.branch);
    let own: Vec<String> = view.branch.iter().chain(nested).map(|name| visible(name)).collect();
    let own = own.join(", ");
    match (loss.unpushed_count, branch) {
        (None, _) => {
            unknown(&mut text, &format!("whether commits on {own} are on a remote is not known"));
        }
        (Some(0), _) => {
            let _ = writeln!(text, "  no unpushed commits on {own}");
        }
        (Some(count), fate) => {
            let rest = (count as usize).saturating_sub(loss.unpushed.len());
            let what = format!("unpushed commit on {own}");
            if fate == Some(BranchFate::Delete) {
                will_be_lost(&mut text, look, &loss.unpushed, rest, &what);
            } else {
                let stay = if count == 1 { "stays" } else { "stay" };
                let commits = counted(count as usize, &what);
                let _ = writeln!(text, "  {commits} {stay} in your repository:");
                some(&mut text, &loss.unpushed, rest);
            }
        }
    }
    text
}

fn will_be_lost(text: &mut String, look: Look, lines: &[String], more: usize, what: &str) {
    let count = counted(lines.len() + more, what);
    let _ = writeln!(text, "  {} {count} will be lost:", look.bad("⚠"));
    some(text, lines, more);
}

/// “2 commits on other branches”: the noun before “ on ” is what is counted.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    match what.split_once(" on ") {
        Some((noun, place)) => format!("{count} {noun}{plural} on {place}"),
        None => format!("{count} {what}{plural}"),
    }
}

/// The first of them, and how many more there are.
fn some(text: &mut String, lines: &[String], more: usize) {
    for line in lines.iter().take(LISTED) {
        let _ = writeln!(text, "      {}", visible(line));
    }
    let more = more + lines.len().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(text, "      and {more} more");
    }
}

pub fn render_done(look: Look, done: &Destroyed) -> String {
    let mut text = String::new();
    for object in &done.removed {
        let _ = writeln!(text, "removed  {}", visible(object));
    }
    for object in &done.absent {
        let _ = writeln!(text, "absent   {}", visible(object));
    }
    for object in &done.failed {
        let _ = writeln!(text, "{}   {}", look.bad("failed"), visible(object));
    }
    for branch in &done.kept_branches {
        let _ = writeln!(text, "kept     branch {}", visible(branch));
    }
    for branch in &done.rescued {
        let _ = writeln!(text, "kept     its last commits on branch {}", visible(branch));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use protocol::boxes::NestedView;

    #[test]
    fn the_loss_is_spelled_out() {
        let view = samples::boxes().remove(0);
        let many = (0..12).map(|i| format!(" M src/file{i}.rs")).collect();
        let of = |uncommitted, unpushed: &[&str], count, stranded: &[&str]| Loss {
            view: view.clone(),
            uncommitted,
            unpushed: unpushed.iter().map(|c| (*c).to_owned()).collect(),
            unpushed_count: Some(count),
            stranded: Some(stranded.iter().map(|c| (*c).to_owned()).collect()),
        };
        let unknown = Loss {
            uncommitted: None,
            unpushed_count: None,
            stranded: None,
            ..of(None, &[], 0, &[])
        };
        let mut stopped = unknown.clone();
        stopped.view.state = BoxState::Stopped;
        let mut nested = of(Some(vec!["api:  M x".to_owned()]), &["api: 9f31c02 Fix"], 1, &[]);
        nested.view.branch = None;
        let api = NestedView { path: "api".into(), branch: "agentbox/fix-login--api".into() };
        nested.view.nested_repos = vec![api];
        let mut folder = unknown.clone();
        folder.view.branch = None;
        let losses = [
            (unknown, None),
            (stopped, None),
            (nested, None),
            (folder, None),
            (of(Some(vec![]), &["9f31c02 Check expiry"], 1, &["1a77be4 Try it"]), None),
            (of(Some(vec!["?? a\x1b[2K".to_owned()]), &[], 0, &[]), None),
            (of(Some(many), &["9f31c02 Check expiry"], 30, &[]), Some(BranchFate::Delete)),
        ]
        .map(|(loss, fate)| render_loss(Look::PLAIN, &loss, fate));
        insta::assert_snapshot!(losses.join("\n"));
    }

    #[test]
    fn boxes_16_53_every_object_is_told() {
        let done = Destroyed {
            view: samples::boxes().remove(0),
            removed: vec!["container agentbox-fix-login".into()],
            absent: vec!["volume agentbox-docker-b0000000a".into()],
            failed: vec!["network agentbox-fix-login: has active endpoints".into()],
            kept_branches: vec!["agentbox/fix-login".into()],
            rescued: Vec::new(),
        };
        insta::assert_snapshot!(render_done(Look::PLAIN, &done));
    }
}
