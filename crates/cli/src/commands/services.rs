//! `agentbox services`: the tasks and services of a box's `agentbox.yaml`.

use crate::commands::logs;
use crate::commands::shell::names_a_box;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::in_box;
use crate::interrupt::Interrupt;
use crate::json;
use crate::table;
use crate::ui::Look;
use host::client::Client;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::Request;
use protocol::supervisor::{
    BoxStatus, PushedService, PushedTask, ServiceStatus, Status, TaskStatus, UnitState,
};
use protocol::text::{shortened, visible};
use serde::Serialize;

/// Show, run, start and stop the tasks and services of a box
///
/// Services and tasks are what agentbox.yaml in the box's workspace says. They are kept running by a
/// supervisor in the box; 'agentbox-ctl' does the same there. Without a command they are listed.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox services fix-login           what there is, and how it is
  agentbox services run fix-login test --force --wait
  agentbox services stop fix-login web
  agentbox services start fix-login web
  agentbox services restart fix-login web
  agentbox services restart             all of the project's only box"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    list: List,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(List),
    Run(Run),
    Start(Start),
    Stop(Stop),
    Restart(Restart),
}

/// List the tasks and services of a box
///
/// Of a box that does not run: as they were last.
#[derive(Debug, clap::Args)]
struct List {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Run a task of a box
///
/// One that is done is left alone without --force. The box is brought up for it. With --wait, what the
/// task says is shown and its exit code is this command's: 124 when it took longer than its timeout_ms, 1
/// when it was skipped. Ctrl-C ends the waiting, not the task.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
struct Run {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The task
    #[arg(value_name = "TASK", required = true)]
    unit: String,

    /// Also when it is done already, or run_once says it need not
    #[arg(long)]
    force: bool,

    /// Show what it says until it ends
    #[arg(long)]
    wait: bool,

    /// Print how it is as JSON; with --wait, once it has ended
    #[arg(short, long)]
    json: bool,
}

/// Start a service of a box
///
/// It starts when what it needs is done and up. The box is brought up for it. Exit code 1 when there is
/// no such service.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
struct Start {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The service
    #[arg(value_name = "SERVICE", required = true)]
    unit: String,

    /// At once, whatever it needs
    #[arg(long)]
    now: bool,

    /// Print how it is as JSON
    #[arg(short, long)]
    json: bool,
}

/// Stop a service of a box
///
/// It stays so until it is started or the box is. Exit code 1 when there is no such service.
#[derive(Debug, clap::Args)]
#[command(allow_missing_positional = true)]
struct Stop {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The service
    #[arg(value_name = "SERVICE", required = true)]
    unit: String,

    /// Print how it is as JSON
    #[arg(short, long)]
    json: bool,
}

/// Restart services of a box
///
/// All that run, one after the other, or one. The box is brought up for it. Exit code 1 when one of
/// them cannot be restarted.
#[derive(Debug, clap::Args)]
struct Restart {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The service [default: all that run]
    #[arg(value_name = "SERVICE")]
    service: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        None => show(ctx, args.list),
        Some(Action::List(list)) => show(ctx, list),
        Some(Action::Run(run)) => task(ctx, run),
        Some(Action::Start(start)) => {
            let now = if start.now { &["--now"][..] } else { &[] };
            service(ctx, "start", now, start.which, &start.unit, start.json)
        }
        Some(Action::Stop(stop)) => service(ctx, "stop", &[], stop.which, &stop.unit, stop.json),
        Some(Action::Restart(restart)) => again(ctx, restart),
    }
}

fn show(ctx: &Context, args: List) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(args.which.clone()) })?;
    if view.state == BoxState::Running {
        let status = status(&Interrupt::install()?, &client, args.which)?;
        if args.json {
            json::print(&ctx.ui, "status", &status)?;
        } else {
            ctx.ui.out(&units(ctx.ui.out, &as_told(&status)))?;
        }
        return Ok(Exit::OK);
    }
    let told: Option<BoxStatus> = client.call(&Request::Units { target: target(args.which) })?;
    let told = told.unwrap_or_default();
    if args.json {
        json::print(&ctx.ui, "status", &told)?;
    } else {
        ctx.ui.say(&format!("{} is {}; this is how it was last", view.name, view.state.as_str()));
        ctx.ui.out(&units(ctx.ui.out, &told))?;
    }
    Ok(Exit::OK)
}

/// As the supervisor says now.
fn status(
    interrupt: &Interrupt,
    client: &Client,
    which: Option<String>,
) -> Result<Status, CommandError> {
    let said = in_box::run(interrupt, client, target(which), &["status", "--json"])?;
    if said.exit_code != 0 {
        return Err(CommandError::failed(said.complaint())
            .hint("agentbox logs BOX shows what the box's first process says"));
    }
    serde_json::from_slice(&said.stdout).map_err(|_| {
        CommandError::failed("the box's supervisor gave no answer that can be read")
            .hint("agentbox logs BOX shows what the box's first process says")
    })
}

/// One shape for what is told and what is asked.
fn as_told(status: &Status) -> BoxStatus {
    let service = |s: &ServiceStatus| PushedService {
        name: s.name.clone(),
        state: s.state,
        port: status.ports.iter().find(|p| p.service.as_ref() == Some(&s.name)).map(|p| p.port),
        probed: false,
        expose: None,
        blocked_on: s.blocked_on.clone(),
        needs: Vec::new(),
        restarts: s.restarts,
    };
    let task = |t: &TaskStatus| PushedTask {
        name: t.name.clone(),
        state: t.state,
        blocked_on: t.blocked_on.clone(),
        needs: Vec::new(),
        last_exit_code: t.last_exit_code,
    };
    BoxStatus {
        services: status.services.iter().map(service).collect(),
        tasks: status.tasks.iter().map(task).collect(),
        ports: status.ports.clone(),
        config_error: status.config_error.clone(),
        ..BoxStatus::default()
    }
}

/// TASKS and SERVICES, for a person.
pub fn units(look: Look, told: &BoxStatus) -> String {
    let mut text = String::new();
    if let Some(why) = &told.config_error {
        let lines: Vec<String> = why.lines().take(50).map(|line| shortened(line, 500)).collect();
        text.push_str(&format!("{} agentbox.yaml has mistakes:\n", look.warn("⚠")));
        text.push_str(&format!("{}\n", lines.join("\n")));
    }
    let list = |names: &[String]| {
        let names: Vec<String> = names.iter().take(20).map(|name| shortened(name, 100)).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(", ") }
    };
    if !told.tasks.is_empty() {
        let row = |task: &PushedTask| {
            let exit = task.last_exit_code.map_or_else(|| "-".to_owned(), |code| code.to_string());
            vec![visible(&task.name), state(look, task.state), exit, list(&task.blocked_on)]
        };
        let rows: Vec<Vec<String>> = told.tasks.iter().map(row).collect();
        text.push_str(&table::render(look, &["TASKS", "STATE", "EXIT", "BLOCKED ON"], &rows));
    }
    if !told.services.is_empty() {
        let row = |service: &PushedService| {
            vec![
                visible(&service.name),
                state(look, service.state),
                service.port.map_or_else(|| "-".to_owned(), |port| port.to_string()),
                service.restarts.to_string(),
                list(&service.blocked_on),
            ]
        };
        let rows: Vec<Vec<String>> = told.services.iter().map(row).collect();
        let heads = ["SERVICES", "STATE", "PORT", "RESTARTS", "BLOCKED ON"];
        text.push_str(&table::render(look, &heads, &rows));
    }
    text
}

fn state(look: Look, state: UnitState) -> String {
    let word = state.as_str();
    match state {
        UnitState::Failed | UnitState::Crashed => look.bad(word),
        UnitState::Unhealthy | UnitState::Backoff | UnitState::Skipped => look.warn(word),
        UnitState::Ready | UnitState::Done => look.good(word),
        _ => word.to_owned(),
    }
}

fn task(ctx: &Context, args: Run) -> Outcome {
    let (client, interrupt) = (ctx.client()?, Interrupt::install()?);
    let mut words = vec!["run-task"];
    words.extend(args.force.then_some("--force"));
    words.extend(args.wait.then_some("--wait"));
    if args.wait && !args.json {
        words.push(&args.unit);
        let request = Request::Exec(in_box::ctl(target(args.which), &words));
        let ended = logs::show(&interrupt, &client, &request, true)?;
        return Ok(exit(ended["exitCode"].as_i64().unwrap_or(1)));
    }
    words.extend(["--json", &args.unit]);
    let said = in_box::run(&interrupt, &client, target(args.which), &words)?;
    let Ok(task) = serde_json::from_slice::<TaskStatus>(&said.stdout) else {
        return Err(no_unit(&said));
    };
    if args.json {
        json::print(&ctx.ui, "task", &task)?;
    } else {
        let why = task.skip_reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let line = format!("{}: {}{}", task.name, task.state.as_str(), why);
        ctx.ui.out(&format!("{}\n", shortened(&line, 500)))?;
    }
    Ok(exit(i64::from(said.exit_code)))
}

fn service(
    ctx: &Context,
    word: &str,
    flags: &[&str],
    which: Option<String>,
    unit: &str,
    as_json: bool,
) -> Outcome {
    let (client, interrupt) = (ctx.client()?, Interrupt::install()?);
    let words = [&[word][..], flags, &["--json", unit]].concat();
    let said = in_box::run(&interrupt, &client, target(which), &words)?;
    let status = serde_json::from_slice::<ServiceStatus>(&said.stdout);
    let Some(status) = status.ok().filter(|_| said.exit_code == 0) else {
        return Err(no_unit(&said));
    };
    if as_json {
        json::print(&ctx.ui, "service", &status)?;
    } else {
        let waits = match status.blocked_on.as_slice() {
            [] => String::new(),
            needs => format!(" for {}", needs.join(", ")),
        };
        let line = format!("{}: {}{waits}", status.name, status.state.as_str());
        ctx.ui.out(&format!("{}\n", shortened(&line, 500)))?;
    }
    Ok(Exit::OK)
}

fn exit(code: i64) -> Exit {
    Exit(u8::try_from(code).unwrap_or(1))
}

fn no_unit(said: &in_box::Said) -> CommandError {
    CommandError::failed(said.complaint())
        .hint("agentbox services list shows the tasks and services there are")
}

#[derive(Serialize)]
struct Restarted {
    service: String,
    ok: bool,
    state: Option<UnitState>,
    error: Option<String>,
}

fn again(ctx: &Context, args: Restart) -> Outcome {
    let client = ctx.client()?;
    let interrupt = Interrupt::install()?;
    let (which, service) = match (args.which, args.service) {
        (Some(word), None) if !names_a_box(&client, &word)? => (None, Some(word)),
        given => given,
    };
    let services = match service {
        Some(service) => vec![service],
        None => {
            let status = status(&interrupt, &client, which.clone())?;
            let rests = [UnitState::Pending, UnitState::Waiting, UnitState::Stopped];
            let running = status.services.into_iter().filter(|s| !rests.contains(&s.state));
            running.map(|service| service.name).collect()
        }
    };
    let mut done = Vec::new();
    for service in services {
        let words = ["restart", "--json", &service];
        let said = in_box::run(&interrupt, &client, target(which.clone()), &words)?;
        let status = serde_json::from_slice::<ServiceStatus>(&said.stdout).ok();
        let ok = said.exit_code == 0;
        let one = Restarted {
            service,
            ok,
            state: status.filter(|_| ok).map(|status| status.state),
            error: (!ok).then(|| said.complaint()),
        };
        if !args.json {
            let name = visible(&one.service);
            match (&one.error, one.state) {
                (Some(why), _) => ctx.ui.warn(&format!("{name}: {why}")),
                (None, Some(state)) => ctx.ui.out(&format!("{name}: {}\n", state.as_str()))?,
                (None, None) => ctx.ui.out(&format!("{name}: restarted\n"))?,
            }
        }
        done.push(one);
    }
    if args.json {
        json::print(&ctx.ui, "restarted", &done)?;
    } else if done.is_empty() {
        ctx.ui.say("no service runs");
    }
    Ok(if done.iter().all(|one| one.ok) { Exit::OK } else { Exit::FAILED })
}

/// For tests of whoever shows them.
#[cfg(test)]
pub fn sample() -> BoxStatus {
    let service = |name: &str, state, blocked: &[&str]| PushedService {
        name: name.into(),
        state,
        port: (state == UnitState::Ready).then_some(3000),
        probed: true,
        expose: None,
        blocked_on: blocked.iter().map(|name| (*name).to_owned()).collect(),
        needs: Vec::new(),
        restarts: 0,
    };
    let task = |name: &str, state, code| PushedTask {
        name: name.into(),
        state,
        blocked_on: vec![],
        needs: vec![],
        last_exit_code: code,
    };
    BoxStatus {
        schema: 1,
        services: vec![
            service("db", UnitState::Ready, &[]),
            service("web", UnitState::Waiting, &["seed"]),
        ],
        tasks: vec![
            task("install", UnitState::Done, Some(0)),
            task("seed", UnitState::Failed, Some(7)),
        ],
        ..BoxStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_and_services_as_they_are() {
        let mut told = sample();
        told.services[0].name = "evil\u{1b}[2K".into();
        told.config_error = Some("agentbox.yaml:2:3: services.web: needs command or image".into());
        insta::assert_snapshot!(units(Look::PLAIN, &told));
    }
}
