//! `agentbox demo`: one push from a box, with the person at the door.
//!
//! Everything real: a repository and a remote in a folder of its own, a box, a commit, a push, a
//! question. Nobody but the person answers it, so there is no flag for that. Box and folder are
//! gone afterwards, on every way out.

use super::{approvals, audit, destroy};
use crate::commands::create::show_step;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::progress::Steps;
use crate::question;
use crate::ui::Ui;
use host::client::{Client, Incoming, Writer};
use jiff::Timestamp;
use protocol::boxes::BoxView;
use protocol::control::{
    AuditQuery, CreateBox, Destroyed, Exec, Exited, HostEvent, HostStatus, Request, Target,
};
use protocol::{BoxId, exit, question as wire, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

/// What the agent of this demo does.
const WORK: &str = "set -e
echo 'A line from inside the box.' >> README.md
git commit --quiet --all --message 'Add a line from inside the box'
git push";

/// See a box ask, and answer it
///
/// Makes a repository with a remote in a temporary folder, creates a box for it, and lets the box
/// commit and push. The push waits until you allow or deny it. Everything is removed at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox demo          about a minute; you answer one question
  agentbox demo --keep   look around afterwards")]
pub struct Args {
    /// Leave the box and the folder in place
    #[arg(long)]
    keep: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let interrupt = Interrupt::install()?;
    let client = ctx.client()?;
    let stage = Stage::build(args.keep)?;
    ctx.ui.say(&format!("A repository and its remote are in {}", stage.folder.display()));
    let mut made = None;
    let result = play(ctx, &client, &interrupt, &stage, &mut made);
    let swept = match (&made, args.keep) {
        (Some(view), true) => {
            ctx.ui.hint(&format!("agentbox shell {0}; agentbox destroy {0} when done", view.name));
            Ok(())
        }
        (Some(view), false) => sweep(&ctx.ui, &client, view),
        (None, _) => Ok(()),
    };
    // What went wrong in the play matters more than what went wrong in sweeping up after it.
    result.and(swept).map(|()| Exit::OK)
}

fn play(
    ctx: &Context,
    client: &Client,
    interrupt: &Interrupt,
    stage: &Stage,
    made: &mut Option<BoxView>,
) -> Result<(), CommandError> {
    let ui = &ctx.ui;
    let view = create(ui, client, interrupt, stage)?;
    *made = Some(view.clone());
    let watcher = Watcher::start(ui, client, &view.id)?;
    ui.say("\nIn the box, an agent commits and runs `git push`.\n");
    let ended = work(client, interrupt, &view.id);
    let answered = watcher.finish();
    let code = ended?;
    show_result(ctx, client, stage, &view, code)?;
    judge(code, answered.as_ref())
}

fn create(
    ui: &Ui,
    client: &Client,
    interrupt: &Interrupt,
    stage: &Stage,
) -> Result<BoxView, CommandError> {
    let request = Request::CreateBox(CreateBox {
        workspace: stage.project().to_string_lossy().into_owned(),
        name: Some(stage.name.clone()),
        ..CreateBox::default()
    });
    let steps = Steps::new(ui);
    interrupt.call(client, &request, |incoming| show_step(&steps, incoming))
}

/// The box's own words go to standard error: they are not this command's result.
fn work(client: &Client, interrupt: &Interrupt, id: &BoxId) -> Result<i32, CommandError> {
    let request = Request::Exec(Exec {
        target: Target::id(id),
        argv: ["sh", "-c", WORK].map(Into::into).into(),
        tty: false,
        cols: 0,
        rows: 0,
        user: None,
    });
    let exited: Exited = interrupt.call(client, &request, |incoming| {
        if let Incoming::Stdout(bytes) | Incoming::Stderr(bytes) = incoming {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            for line in text.lines() {
                eprintln!("  │ {}", text::visible(line));
            }
        }
    })?;
    Ok(exited.exit_code)
}

/// Shows this box's question as soon as it is asked, and remembers how it ended.
struct Watcher {
    hang_up: Writer,
    thread: JoinHandle<()>,
    outcome: Receiver<wire::Outcome>,
}

impl Watcher {
    fn start(ui: &Ui, client: &Client, id: &BoxId) -> Result<Self, CommandError> {
        let status: HostStatus = client.call(&Request::Status)?;
        let conversation = client.open(&Request::Subscribe)?;
        let hang_up = conversation.writer()?;
        let (sender, outcome) = mpsc::channel();
        let (ui, id) = (ui.clone(), id.clone());
        let thread = std::thread::spawn(move || {
            let mut asked = None;
            // It ends when we hang up, which reads as an error and is none.
            let _ = conversation.finish::<()>(|incoming| {
                let Incoming::Event(event) = incoming else { return };
                match *event {
                    HostEvent::Asked { question } if question.box_id == id => {
                        ui.say(&invitation(&ui, &question, &status.kind));
                        asked = Some(question.id);
                    }
                    HostEvent::Resolved { id, outcome, .. } if Some(&id) == asked.as_ref() => {
                        ui.say(&format!("The question was {}.\n", approvals::ending(&outcome)));
                        let _ = sender.send(outcome);
                    }
                    _ => {}
                }
            });
        });
        Ok(Self { hang_up, thread, outcome })
    }

    /// The host tells of the answer before the command in the box ends, but on another
    /// connection: it may still be on its way.
    fn finish(self) -> Option<wire::Outcome> {
        let outcome = self.outcome.recv_timeout(std::time::Duration::from_secs(2)).ok();
        self.hang_up.hang_up();
        let _ = self.thread.join();
        outcome
    }
}

fn invitation(ui: &Ui, asked: &wire::Question, host_kind: &str) -> String {
    let shown = question::render(ui.err, asked, std::slice::from_ref(asked), Timestamp::now());
    let here = format!("`agentbox approve {}` in another terminal", asked.box_name);
    let how = match host_kind {
        "desktop" => format!("in the dialog, the notification or the window, or with {here}"),
        _ => format!("with {here}"),
    };
    format!("{shown}\n{}\n", ui.err.bold(&format!("Now answer it {how}.")))
}

fn show_result(
    ctx: &Context,
    client: &Client,
    stage: &Stage,
    view: &BoxView,
    code: i32,
) -> Result<(), CommandError> {
    let said = match code {
        exit::OK => "the push went through",
        exit::DENIED => "the push was denied",
        _ => "the push failed",
    };
    let log = git(&stage.remote(), &["log", "--oneline", "--all", "--decorate"])?;
    let of_box = AuditQuery { target: Some(Target::id(&view.id)), limit: 50, ..Default::default() };
    let records = client.call::<Vec<_>>(&Request::Audit(of_box))?;
    let trail =
        audit::render_ages(ctx.ui.out, &records, std::slice::from_ref(view), Timestamp::now());
    let log: Vec<_> = log.lines().map(|l| format!("  {}", text::visible(l))).collect();
    ctx.ui.out(&format!(
        "In the box: exit code {code}, {said}.\n\nThe remote now has:\n{}\n\nThe audit trail of {}:\n{trail}",
        log.join("\n"),
        view.name
    ))
}

/// A yes and a no are both what the demo is for; anything else is a failure.
fn judge(code: i32, answered: Option<&wire::Outcome>) -> Result<(), CommandError> {
    let fits = match answered {
        Some(outcome) if outcome.is_yes() => code == exit::OK,
        Some(_) => code == exit::DENIED,
        None => {
            return Err(CommandError::failed("the push ended without a question")
                .hint("`agentbox doctor` checks what a host needs"));
        }
    };
    if fits {
        return Ok(());
    }
    Err(CommandError::failed(format!("the push ended with {code}, which does not fit the answer")))
}

fn sweep(ui: &Ui, client: &Client, view: &BoxView) -> Result<(), CommandError> {
    let gone: Destroyed =
        client.call(&Request::DestroyBox { target: Target::id(&view.id), branch: None })?;
    // Its branch goes with the folder.
    let gone = Destroyed { kept_branches: Vec::new(), ..gone };
    ui.say(&format!("\n{}", destroy::render_done(ui.err, &gone).trim_end()));
    match gone.failed.first() {
        None => Ok(()),
        Some(what) => Err(CommandError::failed(format!("left behind: {}", text::visible(what)))),
    }
}

/// The folder all of it happens in; removed when dropped, unless kept.
struct Stage {
    name: String,
    folder: PathBuf,
    sweeper: Option<tempfile::TempDir>,
}

impl Stage {
    fn build(keep: bool) -> Result<Self, CommandError> {
        let dir = tempfile::Builder::new().prefix("agentbox-demo-").rand_bytes(4).tempdir()?;
        let folder = dir.path().canonicalize()?;
        let name = demo_name(&folder);
        let mut stage = Self { name, folder, sweeper: Some(dir) };
        stage.fill()?;
        if keep && let Some(dir) = stage.sweeper.take() {
            let _ = dir.keep();
        }
        Ok(stage)
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    fn remote(&self) -> PathBuf {
        self.folder.join("remote.git")
    }

    fn fill(&self) -> Result<(), CommandError> {
        let (project, remote) = (self.project(), self.remote());
        let (project_arg, remote_arg) = (project.to_string_lossy(), remote.to_string_lossy());
        git(&self.folder, &["init", "--quiet", "--bare", "--initial-branch=main", &remote_arg])?;
        git(&self.folder, &["init", "--quiet", "--initial-branch=main", &project_arg])?;
        git(&project, &["config", "user.name", "AgentBox demo"])?;
        git(&project, &["config", "user.email", "demo@agentbox.invalid"])?;
        git(&project, &["config", "commit.gpgSign", "false"])?;
        std::fs::write(project.join("README.md"), "# A demo\n")?;
        git(&project, &["add", "README.md"])?;
        git(&project, &["commit", "--quiet", "--message", "First commit"])?;
        git(&project, &["remote", "add", "origin", &remote_arg])?;
        git(&project, &["push", "--quiet", "origin", "main"])?;
        Ok(())
    }
}

/// `demo-` and four characters a box name may have, taken from the folder's random ones.
fn demo_name(folder: &Path) -> String {
    let text = folder.to_string_lossy().to_ascii_lowercase();
    let tail: Vec<char> = text.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("demo-{}", tail[tail.len().saturating_sub(4)..].iter().collect::<String>())
}

fn git(at: &Path, args: &[&str]) -> Result<String, CommandError> {
    let cannot = |why: String| CommandError::failed(format!("git {}: {why}", args[0]));
    let output = Command::new("git")
        .args(args)
        .current_dir(at)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .map_err(|e| cannot(e.to_string()).hint("install git"))?;
    if !output.status.success() {
        return Err(cannot(text::visible(String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::question::{Outcome as Ended, Surface};

    #[test]
    fn the_stage_is_a_repository_with_a_remote_and_leaves_nothing() {
        let stage = Stage::build(false).unwrap();
        assert!(stage.name.parse::<protocol::BoxName>().is_ok(), "{}", stage.name);
        let log = git(&stage.remote(), &["log", "--format=%s", "main"]).unwrap();
        assert_eq!(log, "First commit\n");
        let folder = stage.folder.clone();
        drop(stage);
        assert!(!folder.exists());
    }

    #[test]
    fn a_kept_stage_stays() {
        let stage = Stage::build(true).unwrap();
        let folder = stage.folder.clone();
        drop(stage);
        assert!(folder.join("project/.git").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_yes_and_a_no_are_both_fine_and_nothing_else_is() {
        let yes = Ended::Allowed { by: Surface::Cli };
        let no = Ended::Denied { by: Surface::Dialog };
        assert!(judge(0, Some(&yes)).is_ok());
        assert!(judge(10, Some(&no)).is_ok());
        assert!(judge(10, Some(&Ended::Expired)).is_ok());
        assert_eq!(judge(1, Some(&yes)).unwrap_err().kind, crate::error::Kind::Failed);
        assert!(judge(0, Some(&no)).is_err());
        assert!(judge(0, None).is_err());
    }
}
