//! `agentbox egress allow`, `ask` and `deny`: one more rule.
//!
//! The host is asked what the rule comes to before it is asked for it, so that a person sees the very lines
//! and what they let through. To allow something always needs a yes: what a rule of a file opens depends on
//! boxes that may not be there yet, so that nothing to tell is not nothing opened.

use super::{lines, told_rejected};
use crate::ask;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::time;
use protocol::control::Request;
use protocol::egress::{EgressAction, EgressChange, EgressChanged, EgressPlace};
use protocol::text::visible;
use std::fmt::Write;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The host, such as api.example.com; *.example.com is it and everything below it
    #[arg(value_name = "HOST")]
    host: String,

    /// Only this method, such as GET; may be given again [default: any]
    #[arg(short = 'X', long = "method", value_name = "METHOD")]
    methods: Vec<String>,

    /// Only this path; everything below it when it ends with / or /* [default: every path]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// On this port; may be given again [default: 443]
    #[arg(long = "port", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    ports: Vec<u16>,

    /// For this box alone: number, name, id, unique id prefix, project/name or @project [default: the
    /// project's only box]
    #[arg(long = "box", value_name = "BOX", conflicts_with_all = ["project", "global"])]
    which: Option<String>,

    /// In your file for the project in this folder
    #[arg(long, conflicts_with = "global")]
    project: bool,

    /// In your file for every project
    #[arg(long)]
    global: bool,

    /// For so long: 30m, 1h, 2d; for a box alone [default: until you remove it, or the box goes]
    #[arg(long, value_name = "TIME", value_parser = time::parse_duration,
        conflicts_with_all = ["project", "global"])]
    ttl: Option<u64>,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,

    /// Don't ask
    #[arg(short, long)]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, action: EgressAction, args: Args) -> Outcome {
    let client = ctx.client()?;
    let place = match (args.project, args.global) {
        (true, _) => EgressPlace::Project,
        (_, true) => EgressPlace::Global,
        _ => EgressPlace::Box,
    };
    let change = EgressChange {
        target: target(args.which),
        place,
        host: args.host,
        methods: args.methods.iter().map(|method| method.to_ascii_uppercase()).collect(),
        path: args.path,
        ports: args.ports,
        action,
        seconds: args.ttl,
        dry_run: true,
    };
    let would: EgressChanged = client.call(&Request::ChangeEgress(change.clone()))?;
    if args.dry_run {
        return dry(ctx, &would, place, args.json);
    }
    if !agreed(ctx, &would, &change, args.yes)? {
        ctx.ui.say("Nothing was changed.");
        return Ok(Exit::OK);
    }
    let done: EgressChanged =
        client.call(&Request::ChangeEgress(EgressChange { dry_run: false, ..change.clone() }))?;
    if args.json {
        json::print(&ctx.ui, "change", &done)?;
    } else {
        ctx.ui.out(&render(&change, &done))?;
        if let Some(id) = &done.grant {
            let id: String = id.as_str().chars().take(8).collect();
            ctx.ui.hint(&format!("agentbox grants rm {id} takes it back"));
        }
    }
    Ok(if told_rejected(&ctx.ui, &done.reloaded) { Exit(2) } else { Exit::OK })
}

fn dry(ctx: &Context, would: &EgressChanged, place: EgressPlace, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "change", would)?;
        return Ok(Exit::OK);
    }
    ctx.ui.say(&goes_to(would, place));
    ctx.ui.out(&lines(&would.added))?;
    ctx.ui.say(&widens(would, place));
    Ok(Exit::OK)
}

/// Whether it may be done. Denying never asks, nor does a question where there was one or a no.
fn agreed(
    ctx: &Context,
    would: &EgressChanged,
    change: &EgressChange,
    yes: bool,
) -> Result<bool, CommandError> {
    let needs_yes = match change.action {
        EgressAction::Allow => true,
        EgressAction::Ask => !would.widens.is_empty(),
        EgressAction::Deny => false,
    };
    if !needs_yes {
        return Ok(true);
    }
    let shown: String = lines(&would.added).lines().map(|line| format!("  {line}\n")).collect();
    ctx.ui.say(&format!(
        "{}\n\n{shown}\n{}",
        goes_to(would, change.place),
        widens(would, change.place)
    ));
    if yes {
        return Ok(true);
    }
    if !ctx.ui.interactive {
        return Err(CommandError::usage(
            "this may let more through, and nobody is there to be asked; nothing was changed",
        )
        .hint("add --yes when you want it, or --dry-run to look at it"));
    }
    Ok(ask::yes(&ctx.ui, "Add this rule?"))
}

fn goes_to(would: &EgressChanged, place: EgressPlace) -> String {
    match (&would.file, place) {
        (Some(file), _) => format!("In {}:", visible(file)),
        (None, EgressPlace::Box) => "For one box:".to_owned(),
        (None, EgressPlace::Project) => "For the project:".to_owned(),
        (None, EgressPlace::Global) => "For every project:".to_owned(),
    }
}

fn widens(would: &EgressChanged, place: EgressPlace) -> String {
    if would.widens.is_empty() {
        let text = match place {
            EgressPlace::Box => "It lets nothing through that was not let through before.",
            _ => "What it lets through besides depends on the policy of each box.",
        };
        return text.to_owned();
    }
    let mut text = "It lets through what was not let through before:".to_owned();
    for one in &would.widens {
        let _ = write!(text, "\n  {}", visible(one));
    }
    text
}

/// `allow  api.example.com (egress.yaml)`.
fn render(change: &EgressChange, done: &EgressChanged) -> String {
    let word = match change.action {
        EgressAction::Allow => "allow",
        EgressAction::Ask => "ask",
        EgressAction::Deny => "deny",
    };
    let place = match (&done.file, change.seconds) {
        (Some(file), _) => visible(file),
        (None, Some(seconds)) => {
            let length = time::rough(i64::try_from(seconds).unwrap_or(i64::MAX));
            format!("for this box, for {length}")
        }
        (None, None) => "for this box, until you remove it".to_owned(),
    };
    format!("{word}  {} ({place})\n", visible(&change.host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_where_it_went_and_what_it_opens() {
        let change = EgressChange {
            host: "api.example.com".into(),
            seconds: Some(3600),
            ..EgressChange::default()
        };
        let mut done = EgressChanged {
            widens: vec!["GET https://api.example.com/v1/ and below\x1b".into()],
            ..EgressChanged::default()
        };
        assert_eq!(render(&change, &done), "allow  api.example.com (for this box, for 1 h)\n");
        let told = widens(&done, EgressPlace::Global);
        assert!(!told.contains('\x1b') && told.lines().count() == 2, "{told}");
        done.file = Some("/home/ada/.agentbox/egress.yaml".into());
        assert_eq!(
            render(&change, &done),
            "allow  api.example.com (/home/ada/.agentbox/egress.yaml)\n"
        );
        assert_eq!(goes_to(&done, EgressPlace::Global), "In /home/ada/.agentbox/egress.yaml:");
        done.widens.clear();
        assert!(widens(&done, EgressPlace::Box).contains("nothing"));
        assert!(widens(&done, EgressPlace::Project).contains("depends"));
    }
}
