//! `agentbox list`: boxes of this project, or all of them.

mod compact;

use crate::context::{Context, current_dir};
use crate::error::{Exit, Outcome};
use crate::follow::{self, Screen, Then};
use crate::json;
use crate::project;
use crate::table;
use crate::ui::Look;
use host::client::Client;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{HostEvent, Request, Target};
use protocol::queue::JobCounts;
use protocol::sessions::{AgentState, SessionView, is_shell};
use protocol::text::visible;
use serde::Serialize;
use std::path::Path;

/// List boxes
///
/// Shows the boxes of the project you are in; all boxes with -g. N is what other commands take as
/// a short name inside the project. With -w it stays and shows every change until Ctrl-C. Nothing is
/// asked of the boxes themselves, so that it is quick; --live does ask, and counts their shells.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  agentbox list             boxes of the project in this folder
  agentbox list -gw         all boxes, as they change
  agentbox list --live      and the shells in them
  agentbox list --cmux -w   all boxes, for the sidebar of cmux
  agentbox list -g --json   all boxes, for a program"
)]
pub struct Args {
    /// Boxes of all projects
    #[arg(short, long, visible_short_alias = 'a', visible_alias = "all")]
    global: bool,

    /// Stay and show what changes
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,

    /// Ask every running box for its shells
    #[arg(long, conflicts_with = "watch")]
    live: bool,

    /// All boxes in two short lines each, for a narrow place such as cmux's sidebar
    #[arg(long, conflicts_with_all = ["json", "live"])]
    cmux: bool,

    /// The same for Herdr, where a box's name leads to its web app
    #[arg(long, conflicts_with_all = ["json", "live", "cmux"])]
    herdr: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

impl Args {
    fn form(&self) -> Form {
        match (self.cmux, self.herdr) {
            (false, false) => Form::Table,
            (_, links) => Form::Compact { links },
        }
    }

    /// A sidebar belongs to no folder.
    fn global(&self) -> bool {
        self.global || self.form() != Form::Table
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Table,
    Compact { links: bool },
}

/// A box, and its sessions when it was asked for them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    view: BoxView,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<SessionView>>,
}

impl From<BoxView> for Row {
    fn from(view: BoxView) -> Self {
        Self { view, sessions: None }
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let (form, global) = (args.form(), args.global());
    if args.watch {
        return watch(ctx, global, form);
    }
    let client = ctx.client()?;
    let all: Vec<BoxView> = client.call(&Request::Boxes)?;
    let total = all.len();
    let shown = if global { all } else { of_project(all, current_dir().as_deref()) };
    let mut shown: Vec<Row> = shown.into_iter().map(Row::from).collect();
    if args.live {
        ask_all(&client, &mut shown);
    }
    if args.json {
        json::print(&ctx.ui, "boxes", &shown)?;
    } else if shown.is_empty() {
        ctx.ui.say(if global || total == 0 {
            "No boxes yet."
        } else {
            "No boxes for this folder."
        });
        if total > 0 {
            ctx.ui.hint(&format!("agentbox list -g shows {total} elsewhere"));
        }
        ctx.ui.hint("agentbox create makes one for this folder");
    } else {
        ctx.ui.out(&match form {
            Form::Table => page(ctx.ui.out, &shown, !global, args.live),
            Form::Compact { links } => short_page(ctx.ui.out, &shown, links),
        })?;
        for line in logins(&shown) {
            ctx.ui.say(&line);
        }
    }
    Ok(Exit::OK)
}

/// All at once: each takes as long as a command in its box.
fn ask_all(client: &Client, rows: &mut [Row]) {
    std::thread::scope(|scope| {
        // A paused box stays paused.
        for row in rows.iter_mut().filter(|row| row.view.state == BoxState::Running) {
            scope.spawn(|| {
                let request = Request::Sessions { target: Target::id(&row.view.id) };
                row.sessions = client.call(&request).ok();
            });
        }
    });
}

/// Fed by the host's events: nothing is asked again and again.
fn watch(ctx: &Context, global: bool, form: Form) -> Outcome {
    let (mut all, mut screen, mut drawn) = (Vec::new(), Screen::default(), None);
    let (cwd, mut jobs) = (current_dir(), JobCounts::default());
    follow::events(&ctx.client()?, &Request::FollowBoxes, |event| {
        if let Some(counts) = jobs_in(&event) {
            jobs = counts;
        }
        apply(&mut all, event);
        let shown = if global { all.clone() } else { of_project(all.clone(), cwd.as_deref()) };
        let shown: Vec<Row> = shown.into_iter().map(Row::from).collect();
        let text = match (shown.as_slice(), form) {
            ([], _) => "No boxes.\n".to_owned(),
            (shown, Form::Table) => page(ctx.ui.out, shown, !global, false),
            (shown, Form::Compact { links }) => short_page(ctx.ui.out, shown, links),
        };
        let text =
            text + &jobs.in_words().map(|words| format!("\njobs: {words}\n")).unwrap_or_default();
        if drawn.as_ref() != Some(&text) {
            screen.draw(&ctx.ui, &text)?;
            drawn = Some(text);
        }
        Ok(Then::GoOn)
    })?;
    Ok(Exit::OK)
}

/// How many jobs wait and are under way, where an event says so.
fn jobs_in(event: &HostEvent) -> Option<JobCounts> {
    match event {
        HostEvent::Snapshot { status, .. } => Some(status.jobs),
        HostEvent::JobChanged { counts, .. } => Some(*counts),
        _ => None,
    }
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
    let Some(root) = project::around(&all, cwd).map(str::to_owned) else { return Vec::new() };
    all.into_iter().filter(|v| v.project_root == root).collect()
}

/// The one kind of credential a box may hold, said wherever boxes are listed.
fn logins(rows: &[Row]) -> Vec<String> {
    let line = |view: &BoxView| {
        let agents: Vec<&str> = view.logins.iter().map(|agent| agent.title()).collect();
        format!("{} holds a login of {}", view.name, agents.join(" and "))
    };
    rows.iter().map(|row| &row.view).filter(|view| !view.logins.is_empty()).map(line).collect()
}

/// `claude waits, codex done`.
pub(super) fn agents(view: &BoxView) -> String {
    let word = |state| match state {
        AgentState::Ready => "ready",
        AgentState::Working => "works",
        AgentState::Waiting => "waits",
        AgentState::Done => "done",
        AgentState::EndPlan => "has a plan",
        AgentState::Question => "asks",
        AgentState::Compacting => "compacts",
        AgentState::Error => "failed",
    };
    let each = view.agents.iter().map(|a| format!("{} {}", a.agent.as_str(), word(a.state)));
    let text = each.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".to_owned() } else { text }
}

fn short_page(look: Look, rows: &[Row], links: bool) -> String {
    let boxes: Vec<BoxView> = rows.iter().map(|row| row.view.clone()).collect();
    compact::page(look, &boxes, links)
}

/// The table, below the name of the project when all boxes are of one.
fn page(look: Look, rows: &[Row], of_one: bool, live: bool) -> String {
    let table = render(look, rows, live);
    match rows.first().filter(|_| of_one) {
        Some(row) => format!("Project: {}\n{table}", visible(&row.view.project)),
        None => table,
    }
}

fn render(look: Look, rows: &[Row], live: bool) -> String {
    let home = std::env::home_dir();
    let mut header = vec!["N", "NAME", "STATE", "AGENT", "SHELLS", "URL", "WORKSPACE"];
    let cells = |row: &Row| {
        let view = &row.view;
        vec![
            view.index.to_string(),
            called(view),
            state(view),
            agents(view),
            shells(row),
            view.web.as_deref().map_or_else(|| "-".to_owned(), address),
            short(&view.workspace, home.as_deref()),
        ]
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    if !live {
        header.remove(SHELLS);
        for row in &mut rows {
            row.remove(SHELLS);
        }
    }
    table::render(look, &header, &rows)
}

/// Where the shells are in a row.
const SHELLS: usize = 4;

/// Its name, which is what commands take, and what the person calls it.
fn called(view: &BoxView) -> String {
    match &view.display_name {
        Some(name) => format!("{} ({})", view.name, visible(name)),
        None => view.name.to_string(),
    }
}

fn state(view: &BoxView) -> String {
    // Frozen for a moment, and by nobody's pause.
    let mut state = view.busy.as_deref().map_or_else(|| view.state.as_str().to_owned(), visible);
    if view.egress.is_controlled() {
        state = format!("{state}, {}", view.egress.as_str());
    }
    match view.questions {
        0 => state,
        1 => format!("{state}, asks"),
        n => format!("{state}, asks {n}"),
    }
}

fn shells(row: &Row) -> String {
    let shells = |all: &Vec<SessionView>| all.iter().filter(|s| is_shell(&s.name)).count();
    row.sessions.as_ref().map_or_else(|| "-".to_owned(), |all| shells(all).to_string())
}

/// A folder as people write it.
fn short(folder: &str, home: Option<&Path>) -> String {
    match home.and_then(|home| Path::new(folder).strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => visible(&format!("~/{}", rest.display())),
        None => visible(folder),
    }
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
        let mut boxes = samples::boxes();
        boxes[1].display_name = Some("Quicker \x1b queries".into());
        let mut rows: Vec<Row> = boxes.into_iter().map(Row::from).collect();
        let shell =
            |name: &str| SessionView { name: name.into(), agent: None, attached: 0, created_at: 0 };
        rows[0].sessions = Some(vec![shell("shell"), shell("shell-2"), shell("claude")]);
        let text =
            [page(Look::PLAIN, &rows[..2], true, true), page(Look::PLAIN, &rows, false, false)];
        let text = text.join("\n");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_folder_below_home_is_short() {
        let home = Some(Path::new("/home/ada"));
        assert_eq!(short("/home/ada/shop", home), "~/shop");
        assert_eq!(short("/home/ada", home), "~");
        assert_eq!(short("/home/adam", home), "/home/adam");
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
}
