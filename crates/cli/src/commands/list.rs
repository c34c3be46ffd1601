//! `agentbox list`: boxes of this project, or all of them.

use crate::context::{Context, current_dir};
use crate::error::{Exit, Outcome};
use crate::follow::{self, Screen, Then};
use crate::json;
use crate::table;
use crate::ui::Look;
use protocol::boxes::BoxView;
use protocol::control::{HostEvent, Request};
use protocol::sessions::AgentState;
use protocol::text::visible;
use std::path::Path;

/// List boxes
///
/// Shows the boxes of the project you are in; all boxes with -g. N is what other commands take as
/// a short name inside the project. With -w it stays and shows every change until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  agentbox list             boxes of the project in this folder
  agentbox list -gw         all boxes, as they change
  agentbox list -g --json   all boxes, for a program"
)]
pub struct Args {
    /// Boxes of all projects
    #[arg(short, long, visible_short_alias = 'a', visible_alias = "all")]
    global: bool,

    /// Stay and show what changes
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.watch {
        return watch(ctx, args.global);
    }
    let all: Vec<BoxView> = ctx.client()?.call(&Request::Boxes)?;
    let total = all.len();
    let shown = if args.global { all } else { of_project(all, current_dir().as_deref()) };
    if args.json {
        json::print(&ctx.ui, "boxes", &shown)?;
    } else if shown.is_empty() {
        ctx.ui.say(if args.global || total == 0 {
            "No boxes yet."
        } else {
            "No boxes for this folder."
        });
        if total > 0 {
            ctx.ui.hint(&format!("agentbox list -g shows {total} elsewhere"));
        }
        ctx.ui.hint("agentbox create makes one for this folder");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &shown))?;
        for line in logins(&shown) {
            ctx.ui.say(&line);
        }
    }
    Ok(Exit::OK)
}

/// Fed by the host's events: nothing is asked again and again.
fn watch(ctx: &Context, global: bool) -> Outcome {
    let (mut all, mut screen, mut drawn) = (Vec::new(), Screen::default(), None);
    let cwd = current_dir();
    follow::events(&ctx.client()?, &Request::FollowBoxes, |event| {
        apply(&mut all, event);
        let shown = if global { all.clone() } else { of_project(all.clone(), cwd.as_deref()) };
        let text = match shown.as_slice() {
            [] => "No boxes.\n".to_owned(),
            shown => render(ctx.ui.out, shown),
        };
        if drawn.as_ref() != Some(&text) {
            screen.draw(&ctx.ui, &text)?;
            drawn = Some(text);
        }
        Ok(Then::GoOn)
    })?;
    Ok(Exit::OK)
}

pub(super) fn apply(all: &mut Vec<BoxView>, event: HostEvent) {
    match event {
        HostEvent::Snapshot { boxes, .. } => *all = boxes,
        HostEvent::BoxChanged { view } => {
            match all.iter_mut().find(|b| b.id == view.id) {
                Some(known) => *known = view,
                None => all.push(view),
            }
            all.sort_by(|a, b| (&a.project_root, a.index).cmp(&(&b.project_root, b.index)));
        }
        HostEvent::BoxRemoved { id } => all.retain(|b| b.id != id),
        _ => {}
    }
}

/// The boxes of the innermost project around a folder.
pub(super) fn of_project(all: Vec<BoxView>, cwd: Option<&Path>) -> Vec<BoxView> {
    let around = |view: &&BoxView| cwd.is_some_and(|d| d.starts_with(&view.project_root));
    let roots = all.iter().filter(around).map(|v| v.project_root.clone());
    let Some(root) = roots.max_by_key(String::len) else {
        return Vec::new();
    };
    all.into_iter().filter(|v| v.project_root == root).collect()
}

/// The one kind of credential a box may hold, said wherever boxes are listed.
fn logins(boxes: &[BoxView]) -> Vec<String> {
    let line = |view: &BoxView| {
        let agents: Vec<&str> = view.logins.iter().map(|agent| agent.title()).collect();
        format!("{} holds a login of {}", view.name, agents.join(" and "))
    };
    boxes.iter().filter(|view| !view.logins.is_empty()).map(line).collect()
}

/// `claude waits, codex done`.
pub(super) fn agents(view: &BoxView) -> String {
    let word = |state| match state {
        AgentState::Ready => "ready",
        AgentState::Working => "works",
        AgentState::Waiting => "waits",
        AgentState::Done => "done",
    };
    let each = view.agents.iter().map(|a| format!("{} {}", a.agent.as_str(), word(a.state)));
    let text = each.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".to_owned() } else { text }
}

fn render(look: Look, boxes: &[BoxView]) -> String {
    let rows: Vec<Vec<String>> = boxes
        .iter()
        .map(|view| {
            vec![
                view.index.to_string(),
                view.name.to_string(),
                // Frozen for a moment, and by nobody's pause.
                view.busy.as_deref().map_or_else(|| view.state.as_str().to_owned(), visible),
                agents(view),
                view.branch.as_deref().map_or_else(|| "-".to_owned(), visible),
                if view.questions == 0 { "-".to_owned() } else { view.questions.to_string() },
                visible(&view.project),
                view.web.as_deref().map_or_else(|| "-".to_owned(), address),
            ]
        })
        .collect();
    table::render(
        look,
        &["N", "NAME", "STATE", "AGENT", "BRANCH", "QUESTIONS", "PROJECT", "URL"],
        &rows,
    )
}

/// Only the host: everything here is HTTP.
fn address(url: &str) -> String {
    visible(url.split_once("://").map_or(url, |(_, host)| host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_table_fits_80_columns() {
        let text = render(Look::PLAIN, &samples::boxes());
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_watched_list_follows_every_change() {
        let (mut all, boxes) = (Vec::new(), samples::boxes());
        apply(&mut all, HostEvent::BoxChanged { view: boxes[1].clone() });
        apply(&mut all, HostEvent::BoxChanged { view: boxes[0].clone() });
        let names = |all: &[BoxView]| all.iter().map(|b| b.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&all), ["fix-login", "perf"]);
        let stopped = BoxView { state: protocol::boxes::BoxState::Stopped, ..boxes[0].clone() };
        apply(&mut all, HostEvent::BoxChanged { view: stopped.clone() });
        assert_eq!(all[0], stopped);
        apply(&mut all, HostEvent::BoxRemoved { id: stopped.id });
        assert_eq!(names(&all), ["perf"]);
    }

    #[test]
    fn a_folder_means_its_innermost_project() {
        let names = |cwd: &str| {
            let found = of_project(samples::boxes(), Some(Path::new(cwd)));
            found.iter().map(|v| v.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("/home/ada/shop-api/src"), ["fix-login", "perf"]);
        assert_eq!(names("/home/ada"), [""; 0]);
        assert_eq!(names("/home/ada/shop-api-2"), [""; 0]);
    }
}
