//! `agentbox destroy`: a box and everything only it has, gone for good.
//!
//! What would be lost is shown before the question, and what was shown is what is destroyed: the
//! second call names the box by id, whatever the first one resolved.

use crate::ask;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::ui::Look;
use protocol::control::{Destroyed, Loss, Request, Target};
use protocol::text::visible;
use std::fmt::Write;

/// How many uncommitted files are listed by name.
const LISTED: usize = 10;

/// Destroy a box
///
/// Removes the container, its network and its files. A branch with commits stays in your
/// repository. Shows what would be lost and asks first.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  agentbox destroy fix-login      show what would be lost, then ask
  agentbox destroy fix-login -y   do not ask"
)]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// Print what was removed as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if !args.yes && !ctx.ui.interactive {
        return Err(CommandError::usage("destroying needs a yes, and nobody can be asked here")
            .hint("add -y when you are sure"));
    }
    let client = ctx.client()?;
    let mut target = target(args.which);
    if !args.yes {
        let loss: Loss = client.call(&Request::WhatIfDestroyed { target })?;
        ctx.ui.say(&render_loss(ctx.ui.err, &loss));
        if !ask::yes(&ctx.ui, &format!("Destroy {}?", loss.view.name)) {
            ctx.ui.say("Nothing was destroyed.");
            return Ok(Exit::OK);
        }
        target = Target::id(&loss.view.id);
    }
    let interrupt = Interrupt::install()?;
    let done: Destroyed = interrupt.call(&client, &Request::DestroyBox { target }, |_| {})?;
    if args.json {
        json::print(&ctx.ui, "destroyed", &done)?;
    } else {
        ctx.ui.out(&render_done(ctx.ui.out, &done))?;
    }
    Ok(if done.failed.is_empty() { Exit::OK } else { Exit::FAILED })
}

fn render_loss(look: Look, loss: &Loss) -> String {
    let view = &loss.view;
    let mut text = format!("{} of {}\n", look.bold(view.name.as_str()), visible(&view.project));
    match &loss.uncommitted {
        None => {
            let _ = writeln!(
                text,
                "  {} it is {} and cannot be asked for uncommitted changes",
                look.warn("⚠"),
                view.state.as_str()
            );
        }
        Some(files) if files.is_empty() => text.push_str("  no uncommitted changes\n"),
        Some(files) => uncommitted(&mut text, look, files),
    }
    if let Some(branch) = &view.branch {
        let _ = writeln!(text, "  commits on {} stay in your repository", visible(branch));
    }
    text
}

fn uncommitted(text: &mut String, look: Look, files: &[String]) {
    let changes = if files.len() == 1 { "change" } else { "changes" };
    let _ =
        writeln!(text, "  {} {} uncommitted {changes} will be lost:", look.bad("⚠"), files.len());
    for file in files.iter().take(LISTED) {
        let _ = writeln!(text, "      {}", visible(file));
    }
    if files.len() > LISTED {
        let _ = writeln!(text, "      and {} more", files.len() - LISTED);
    }
}

pub fn render_done(look: Look, done: &Destroyed) -> String {
    let mut text = String::new();
    for object in &done.removed {
        let _ = writeln!(text, "removed  {}", visible(object));
    }
    for object in &done.failed {
        let _ = writeln!(text, "{}   {}", look.bad("failed"), visible(object));
    }
    if let Some(branch) = &done.kept_branch {
        let _ = writeln!(text, "kept     branch {}, it has commits", visible(branch));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_loss_is_spelled_out() {
        let view = samples::boxes().remove(0);
        let many = (0..12).map(|i| format!(" M src/file{i}.rs")).collect();
        let losses = [None, Some(vec![]), Some(vec!["?? a\x1b[2K".to_owned()]), Some(many)]
            .map(|uncommitted| render_loss(Look::PLAIN, &Loss { view: view.clone(), uncommitted }));
        insta::assert_snapshot!(losses.join("\n"));
    }

    #[test]
    fn boxes_16_53_every_object_is_told() {
        let done = Destroyed {
            view: samples::boxes().remove(0),
            removed: vec!["container agentbox-fix-login".into()],
            failed: vec!["network agentbox-fix-login: has active endpoints".into()],
            kept_branch: Some("agentbox/fix-login".into()),
        };
        insta::assert_snapshot!(render_done(Look::PLAIN, &done));
    }
}
