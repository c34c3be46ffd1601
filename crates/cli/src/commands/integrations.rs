//! `agentbox integrations`: services boxes may use through the host.

use crate::commands::secrets::tell;
use crate::context::{Context, current_dir};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::table;
use crate::ui::Look;
use clap::Subcommand;
use protocol::control::Request;
use protocol::integrations::{IntegrationView, Layer, Tried};
use protocol::text::visible;

/// Choose which services boxes may use
///
/// A service that is enabled can be read by boxes; each write asks you. Whatever a project's own
/// files say about it has no effect: a box could write them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox integrations                      what there is
  agentbox integrations enable notion        for every project
  agentbox integrations enable linear --project
  agentbox integrations test github          does it answer?"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show every service
    List {
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Show what boxes can do with a service
    Show {
        /// The service's name
        service: String,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Let boxes use a service
    Enable(Which),
    /// Keep boxes from using a service
    Disable(Which),
    /// Try whether it answers, with the login a box's request would use
    Test {
        /// The service's name
        service: String,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The service's name
    service: String,

    /// Only for boxes of the project in this folder
    #[arg(long)]
    project: bool,
}

fn cwd() -> Option<String> {
    current_dir().map(|d| d.to_string_lossy().into_owned())
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        None => list(ctx, args.json),
        Some(Action::List { json }) => list(ctx, json),
        Some(Action::Show { service, json }) => show(ctx, &service, json),
        Some(Action::Enable(which)) => switch(ctx, which, true),
        Some(Action::Disable(which)) => switch(ctx, which, false),
        Some(Action::Test { service, json }) => {
            let request = Request::TestIntegration { service: service.clone(), cwd: cwd() };
            let tried: Tried = ctx.client()?.call(&request)?;
            tell(ctx, &visible(&service), &tried, json)
        }
    }
}

fn list(ctx: &Context, as_json: bool) -> Outcome {
    let all: Vec<IntegrationView> = ctx.client()?.call(&Request::Integrations { cwd: cwd() })?;
    if as_json {
        json::print(&ctx.ui, "integrations", &all)?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, &all))?;
    }
    Ok(Exit::OK)
}

fn render(look: Look, all: &[IntegrationView]) -> String {
    let row = |i: &IntegrationView| {
        let state = if i.enabled { "enabled" } else { "disabled" };
        let by = match i.decided_by.as_str() {
            "default" => String::new(),
            layer => format!(" ({layer})"),
        };
        let means = match &i.program {
            Some(p) => p.path.clone().unwrap_or_else(|| format!("{} not installed", p.name)),
            None => "called directly".to_owned(),
        };
        vec![i.service.clone(), format!("{state}{by}"), visible(&means), visible(&i.about)]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table::render(look, &["SERVICE", "STATE", "BY", "WHAT FOR"], &rows)
}

fn show(ctx: &Context, service: &str, as_json: bool) -> Outcome {
    let all: Vec<IntegrationView> = ctx.client()?.call(&Request::Integrations { cwd: cwd() })?;
    let found = all.iter().find(|i| i.service == service).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|i| i.service.as_str()).collect();
        let text = format!("there is no integration named {}", visible(service));
        crate::error::CommandError::usage(text).hint(format!("there are {}", names.join(", ")))
    })?;
    if as_json {
        json::print(&ctx.ui, "integration", found)?;
    } else {
        ctx.ui.out(&render_one(ctx.ui.out, found))?;
    }
    Ok(Exit::OK)
}

fn render_one(look: Look, found: &IntegrationView) -> String {
    let mut text = render(look, std::slice::from_ref(found));
    text.push('\n');
    let op = |o: &protocol::integrations::OpView| {
        vec![o.name.clone(), if o.write { "asks" } else { "passes" }.into(), visible(&o.summary)]
    };
    let rows: Vec<_> = found.ops.iter().map(op).collect();
    text.push_str(&table::render(look, &["A BOX CAN", "AND IT", "WHAT IT DOES"], &rows));
    if !found.credentials.is_empty() {
        let names: Vec<_> = found.credentials.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\nCredentials: {}\n", names.join(", ")));
    }
    text
}

fn switch(ctx: &Context, which: Which, enabled: bool) -> Outcome {
    let layer = if which.project { Layer::Project } else { Layer::Global };
    let request = Request::SetIntegration { service: which.service, enabled, layer, cwd: cwd() };
    let now: IntegrationView = ctx.client()?.call(&request)?;
    let what = if enabled { "enabled" } else { "disabled" };
    ctx.ui.out(&format!("{what}  {}\n", now.service))?;
    if now.enabled != enabled {
        ctx.ui.say(&format!(
            "hint: the settings of this project still say otherwise; agentbox integrations {} {} --project changes them",
            if enabled { "enable" } else { "disable" },
            now.service
        ));
    } else if enabled {
        ctx.ui.say(&format!("hint: agentbox integrations test {} tries it", now.service));
    }
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::integrations::{OpView, ProgramView};

    #[test]
    fn services_and_what_boxes_can_do() {
        let view = IntegrationView {
            service: "notion".into(),
            title: "Notion".into(),
            about: "Boxes can read pages and ask to write them.".into(),
            enabled: true,
            decided_by: "project".into(),
            program: Some(ProgramView { name: "ntn".into(), path: None }),
            credentials: vec!["notion.token".parse().unwrap()],
            ops: vec![
                OpView { name: "api".into(), write: false, summary: "Read anything".into() },
                OpView { name: "page.create".into(), write: true, summary: "Create a page".into() },
            ],
            install_hint: None,
            login_hint: None,
        };
        insta::assert_snapshot!(render_one(Look::PLAIN, &view));
    }
}
