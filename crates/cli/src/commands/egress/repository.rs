//! `agentbox egress repository`: a person's word on what a repository's own policy asks for.
//!
//! A box can write that file, through what is merged. So it counts only at a text a person looked at: the
//! yes goes with the digest of what was shown.

use super::status::stands;
use crate::ask;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::ui::Look;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::egress::{EgressView, LayerState, RepositoryPolicy};
use protocol::text::visible;
use std::fmt::Write;

/// The least of a digest that names a text.
const SHORTEST: usize = 8;

/// Show what a repository's own policy asks for, and say yes or no to it
///
/// `.agentbox/egress.yaml` of the newest commit on this computer, against the text you last said yes to. A
/// box can write that file, through what you merge, so it has an effect only as you accepted it; any change
/// of it waits for you again. Exits with 2 when the file is no longer the one of the digest, or nobody can
/// be asked and --yes is not given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress repository fix-login
  agentbox egress repository fix-login --accept 5c1f2e3d   shows it once more, and asks
  agentbox egress repository fix-login --refuse 5c1f2e3d")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// Let the file, at this digest of it, count for boxes of the project
    #[arg(long, value_name = "DIGEST", conflicts_with = "refuse")]
    accept: Option<String>,

    /// Leave the file, at this digest of it, without effect
    #[arg(long, value_name = "DIGEST")]
    refuse: Option<String>,

    /// Don't ask
    #[arg(short, long, requires = "accept")]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(Some(args.which)) })?;
    let target = Target::id(&view.id);
    let egress: EgressView = client.call(&Request::Egress { target: target.clone() })?;
    let (accept, named) = match (args.accept, args.refuse) {
        (Some(digest), _) => (true, digest),
        (_, Some(digest)) => (false, digest),
        (None, None) => return show(ctx, &view, egress.repository.as_ref(), args.json),
    };
    let Some(asked) = egress.repository else { return Err(nothing(&view)) };
    if named.len() < SHORTEST || !asked.digest.starts_with(&named) {
        let text = format!("{} is not the file of this digest; nothing was changed", asked.file);
        return Err(CommandError::usage(visible(&text))
            .hint(format!("agentbox egress repository {} shows what it asks for now", view.name)));
    }
    if accept && !agreed(ctx, &asked, args.yes)? {
        ctx.ui.say("Nothing was changed.");
        return Ok(Exit::OK);
    }
    let request = Request::AnswerRepository { target, digest: asked.digest, accept };
    let now: EgressView = client.call(&request)?;
    if args.json {
        json::print(&ctx.ui, "repository", &now.repository)?;
    } else if let Some(now) = &now.repository {
        ctx.ui.out(&format!("{} {}\n", visible(&now.file), stands(now)))?;
    }
    Ok(Exit::OK)
}

fn show(ctx: &Context, view: &BoxView, asked: Option<&RepositoryPolicy>, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "repository", &asked)?;
        return Ok(Exit::OK);
    }
    let Some(asked) = asked else {
        ctx.ui.say(&nothing(view).error);
        return Ok(Exit::OK);
    };
    ctx.ui.out(&render(ctx.ui.out, asked))?;
    if matches!(asked.state, LayerState::Waiting | LayerState::Refused) {
        let (name, digest) = (&view.name, visible(&asked.digest));
        ctx.ui.hint(&format!("agentbox egress repository {name} --accept {digest}"));
    }
    Ok(Exit::OK)
}

fn nothing(view: &BoxView) -> CommandError {
    CommandError::usage(format!("the repository of {} has no policy of its own", view.name))
}

fn agreed(ctx: &Context, asked: &RepositoryPolicy, yes: bool) -> Result<bool, CommandError> {
    ctx.ui.say(&render(ctx.ui.err, asked));
    if yes {
        return Ok(true);
    }
    if !ctx.ui.interactive {
        return Err(CommandError::usage("this needs a yes, and nobody can be asked here")
            .hint("add --yes when you have looked at it"));
    }
    Ok(ask::yes(&ctx.ui, &format!("Let {}, as it is now, count?", visible(&asked.file))))
}

/// Nothing is cut: what matters may be at the end.
fn render(look: Look, asked: &RepositoryPolicy) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} {}", look.bold(&visible(&asked.file)), stands(asked));
    let _ = writeln!(text, "  commit  {}", visible(&asked.commit));
    let _ = writeln!(text, "  digest  {}\n", visible(&asked.digest));
    for line in &asked.diff {
        let shown = visible(line);
        let painted = match shown.chars().next() {
            Some('+') => look.good(&shown),
            Some('-') => look.bad(&shown),
            _ => shown,
        };
        let _ = writeln!(text, "  {painted}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn what_a_repository_asks_for() {
        let asked = samples::egress().repository.unwrap();
        insta::assert_snapshot!(render(Look::PLAIN, &asked));
    }
}
