//! `agentbox queue`: background jobs.

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::table;
use crate::time::{ago, parse_timeout, rough, seconds_since};
use crate::ui::Look;
use clap::ValueEnum;
use jiff::Timestamp;
use protocol::JobId;
use protocol::control::Request;
use protocol::queue::{Awaited, JobDetails, JobStatus, JobView, Until};
use protocol::text::visible;
use std::fmt::Write;

/// Jobs that ended longer ago, in seconds, are listed with --all.
const RECENT: i64 = 3600;

/// Show and steer background jobs
///
/// A job makes a box and starts an agent in it, when there is room: agentbox claude -i TEXT. It is done
/// when the agent is at work. Without a subcommand the jobs are listed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox claude -i 'fix the login test' -n fix-login
  agentbox queue                             what waits, is under way or ended of late
  agentbox queue show 3f2a                   one job, and the end of its log
  agentbox queue wait-for job-done --job 3f2a --timeout 5m")]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(ListArgs),
    Show(ShowArgs),
    Cancel(CancelArgs),
    Clear(ClearArgs),
    WaitFor(WaitForArgs),
}

/// List jobs, oldest first
///
/// Those that ended more than an hour ago only with --all. Jobs that are over are kept for a day, the
/// newest 200 of them.
#[derive(Debug, Default, clap::Args)]
struct ListArgs {
    /// All that are kept
    #[arg(short, long)]
    all: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Show a job and the end of its log
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The job's id, or a beginning of it that no other has
    id: String,

    /// How many lines of its log, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    tail: u32,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Cancel a job that waits
#[derive(Debug, clap::Args)]
struct CancelArgs {
    /// The job's id, or a beginning of it that no other has
    id: String,

    /// Also one that is under way; its box is taken back
    #[arg(long)]
    kill: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Forget jobs that are over, and their logs
#[derive(Debug, Clone, Copy, clap::Args)]
struct ClearArgs {
    /// Those that are done
    #[arg(long)]
    done: bool,

    /// Those that failed
    #[arg(long)]
    failed: bool,

    /// Those that were cancelled
    #[arg(long)]
    cancelled: bool,

    /// Whatever is over
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Wait for something to become of jobs or boxes
///
/// Exit code 1 when the time is up, and after job-done also when the job failed or was cancelled.
#[derive(Debug, clap::Args)]
struct WaitForArgs {
    /// What to wait for
    #[arg(value_name = "WHAT")]
    what: What,

    /// The box of box-paused, box-running and box-stopped [default: the project's only box]
    #[arg(long = "box", value_name = "BOX")]
    which: Option<String>,

    /// The job of job-done [default: the next that is over]
    #[arg(long, value_name = "ID")]
    job: Option<String>,

    /// How long at most: 30s, 2m, or milliseconds
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_timeout)]
    timeout: u64,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// A box that is not there yet
    NewBox,
    /// No job waits or is under way
    EmptyQueue,
    /// The box is paused
    BoxPaused,
    /// The box runs
    BoxRunning,
    /// The box is stopped
    BoxStopped,
    /// The job is over
    JobDone,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action.unwrap_or_else(|| Action::List(ListArgs::default())) {
        Action::List(args) => list(ctx, &args),
        Action::Show(args) => show(ctx, args),
        Action::Cancel(args) => cancel(ctx, args),
        Action::Clear(args) => clear(ctx, args),
        Action::WaitFor(args) => wait_for(ctx, args),
    }
}

fn list(ctx: &Context, args: &ListArgs) -> Outcome {
    let now = Timestamp::now();
    let mut jobs: Vec<JobView> = ctx.client()?.call(&Request::Jobs)?;
    let kept = jobs.len();
    let recent = |job: &JobView| job.finished_at.is_none_or(|at| seconds_since(now, at) < RECENT);
    jobs.retain(|job| args.all || recent(job));
    if args.json {
        json::print(&ctx.ui, "jobs", &jobs)?;
        return Ok(Exit::OK);
    }
    if jobs.is_empty() {
        ctx.ui.say("No jobs.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, &jobs, now))?;
    }
    if kept > jobs.len() {
        ctx.ui.hint(&format!("agentbox queue list --all shows {} older", kept - jobs.len()));
    } else if jobs.is_empty() {
        ctx.ui.hint("agentbox claude -i 'what to do' makes one");
    }
    Ok(Exit::OK)
}

fn show(ctx: &Context, args: ShowArgs) -> Outcome {
    let details: JobDetails = ctx.client()?.call(&Request::Job { id: args.id, tail: args.tail })?;
    if args.json {
        json::print(&ctx.ui, "job", &details)?;
    } else {
        ctx.ui.out(&render_one(&details, Timestamp::now()))?;
    }
    Ok(Exit::OK)
}

fn cancel(ctx: &Context, args: CancelArgs) -> Outcome {
    let job: JobView = ctx.client()?.call(&Request::CancelJob { id: args.id, kill: args.kill })?;
    if args.json {
        json::print(&ctx.ui, "job", &job)?;
    } else {
        ctx.ui.out(&format!("cancelled {}\n", job.id))?;
    }
    Ok(Exit::OK)
}

fn clear(ctx: &Context, args: ClearArgs) -> Outcome {
    let each = [
        (args.done, JobStatus::Done),
        (args.failed, JobStatus::Failed),
        (args.cancelled, JobStatus::Cancelled),
    ];
    let wanted = each.into_iter().filter(|(wanted, _)| *wanted || args.all);
    let kinds: Vec<JobStatus> = wanted.map(|(_, kind)| kind).collect();
    if kinds.is_empty() {
        return Err(CommandError::usage("say which jobs are to be forgotten")
            .hint("--done, --failed, --cancelled or --all"));
    }
    let ids: Vec<JobId> = ctx.client()?.call(&Request::ClearJobs { kinds })?;
    if args.json {
        json::print(&ctx.ui, "cleared", &ids)?;
    } else {
        let jobs = if ids.len() == 1 { "job" } else { "jobs" };
        ctx.ui.out(&format!("cleared {} {jobs}\n", ids.len()))?;
    }
    Ok(Exit::OK)
}

fn wait_for(ctx: &Context, args: WaitForArgs) -> Outcome {
    let until = until(args.what, args.which, args.job)?;
    let request = Request::Await { until, timeout_ms: args.timeout };
    let awaited: Awaited = Interrupt::install()?.call(&ctx.client()?, &request, |_| {})?;
    if args.json {
        json::print(&ctx.ui, "awaited", &awaited)?;
    } else if awaited.met {
        ctx.ui.out(&told(args.what, &awaited))?;
    } else {
        ctx.ui.say("not in time");
        ctx.ui.hint("agentbox queue shows what waits and why; --timeout waits longer");
    }
    let failed = awaited.job.as_ref().is_some_and(|job| job.status != JobStatus::Done);
    Ok(if awaited.met && !failed { Exit::OK } else { Exit::FAILED })
}

fn until(what: What, which: Option<String>, job: Option<String>) -> Result<Until, CommandError> {
    let of_box = matches!(what, What::BoxPaused | What::BoxRunning | What::BoxStopped);
    if which.is_some() && !of_box {
        return Err(CommandError::usage("--box goes with box-paused, box-running or box-stopped")
            .hint("leave --box away, or name one of these instead"));
    }
    if let Some(job) = job.as_ref().filter(|_| what != What::JobDone) {
        return Err(CommandError::usage("--job goes with job-done")
            .hint(format!("agentbox queue wait-for job-done --job {}", visible(job))));
    }
    Ok(match what {
        What::NewBox => Until::NewBox,
        What::EmptyQueue => Until::EmptyQueue,
        What::BoxPaused => Until::BoxPaused { target: target(which) },
        What::BoxRunning => Until::BoxRunning { target: target(which) },
        What::BoxStopped => Until::BoxStopped { target: target(which) },
        What::JobDone => Until::JobOver { job },
    })
}

fn told(what: What, awaited: &Awaited) -> String {
    match (what, &awaited.job, &awaited.view) {
        (_, Some(job), _) => format!("{} {}\n", job.id, status(job)),
        (What::NewBox, _, Some(view)) => format!("{}\n", view.name),
        (_, _, Some(view)) => format!("{} {}\n", view.name, view.state.as_str()),
        _ => "empty\n".to_owned(),
    }
}

/// `failed: worker-died`.
fn status(job: &JobView) -> String {
    let reason = job.reason.as_deref().map(|reason| format!(": {}", visible(reason)));
    format!("{}{}", job.status.as_str(), reason.unwrap_or_default())
}

fn render(look: Look, jobs: &[JobView], now: Timestamp) -> String {
    let row = |job: &JobView| {
        vec![
            job.id.to_string(),
            job.status.as_str().to_owned(),
            job.agent.as_str().to_owned(),
            job.box_name.as_deref().map_or_else(|| "-".to_owned(), visible),
            job.gate.max().to_string(),
            rough(seconds_since(now, job.created_at)),
            visible(job.prompt.lines().next().unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    table::render(look, &["ID", "STATUS", "AGENT", "BOX", "MAX", "AGE", "PROMPT"], &rows)
}

fn render_one(details: &JobDetails, now: Timestamp) -> String {
    let job = &details.job;
    let mut text = String::new();
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<9}{value}");
    };
    row("job", job.id.as_str());
    row("status", &status(job));
    if let Some(hint) = &job.hint {
        row("hint", &visible(hint));
    }
    if let Some(busy) = details.busy {
        row("waits", &job.gate.in_words(busy));
    }
    row("agent", job.agent.title());
    row("box", &job.box_name.as_deref().map_or_else(|| "-".to_owned(), visible));
    row("project", &visible(&job.workspace));
    row("queued", &ago(now, job.created_at));
    if let Some(at) = job.started_at {
        row("started", &ago(now, at));
    }
    if let Some(at) = job.finished_at {
        row("ended", &ago(now, at));
    }
    for (n, line) in job.prompt.lines().enumerate() {
        row(if n == 0 { "prompt" } else { "" }, &visible(line));
    }
    row("log", &visible(&job.log));
    if !details.lines.is_empty() {
        text.push('\n');
    }
    for line in &details.lines {
        let _ = writeln!(text, "{}", visible(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn jobs_in_a_table() {
        let text = render(Look::PLAIN, &samples::jobs(), samples::now());
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn one_job_with_its_log() {
        let mut jobs = samples::jobs();
        let lines = vec!["2026 BEGIN job".to_owned(), "2026 FAIL\u{1b}[2K".to_owned()];
        let failed = JobDetails { job: jobs.remove(1), busy: None, lines };
        let waits = JobDetails { job: jobs.remove(0), busy: Some(5), lines: vec![] };
        let texts = [failed, waits].map(|details| render_one(&details, samples::now()));
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn flags_go_with_what_they_are_for() {
        let some = || Some("x".to_owned());
        assert!(until(What::JobDone, None, some()).is_ok());
        assert!(until(What::BoxPaused, some(), None).is_ok());
        assert!(until(What::NewBox, some(), None).is_err());
        assert!(until(What::BoxPaused, None, some()).is_err());
    }
}
