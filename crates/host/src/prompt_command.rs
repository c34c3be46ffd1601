//! Questions through a program of the person's own choice, such as a menu
//! (`approvals.promptCommand`).
//!
//! The contract is that of menus like dmenu: lines on standard input, the chosen line on standard
//! output. The first line is the no, so that Enter never allows; then comes the whole question,
//! indented; the last line is the yes, with a code no text of a box can hold. Exactly that line
//! allows. Where a question can also go on without the files it lists, the line before the last says
//! so, with the same code. Any other choice, and closing the menu (exit code 1 and no output), denies;
//! a program that fails answers nothing, and the question stays open elsewhere.
//!
//! One at a time, without a shell, and ended with everything it started as soon as the question is
//! over.

use crate::core::Core;
use crate::quiet::{Hushed, Manner};
use approvals::{AnswerError, Broker, Sink};
use protocol::QuestionId;
use protocol::control::Notice;
use protocol::question::{Outcome, Question, Surface, Tier, Verdict};
use protocol::text::{command_line, visible};
use relay::process::{Limit, Output, ProcessError, Tool, base_env};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const PART: &str = "prompt command";
/// Longer than any question waits; the question's own end comes first.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// A yes that comes sooner after the menu appeared was not meant for it.
const GRACE: Duration = Duration::from_millis(350);
/// How often a question is shown anew because its answer came too soon.
const TRIES: u32 = 3;

type Env = Vec<(OsString, OsString)>;

#[derive(Debug, thiserror::Error)]
pub enum BadCommand {
    #[error("approvals.promptCommand is empty")]
    Empty,
    #[error("approvals.promptCommand: {} is not an absolute path", .0.display())]
    Relative(PathBuf),
    #[error("approvals.promptCommand: {} is not a program", .0.display())]
    NoProgram(PathBuf),
    #[error("approvals.promptCommand: {0}")]
    NotFound(#[from] ProcessError),
}

/// The program and its arguments.
#[derive(Debug, Clone)]
pub struct PromptCommand {
    tool: Tool,
    args: Vec<OsString>,
    env: Env,
}

impl PromptCommand {
    /// The program is an absolute path, or a name that is looked for where host programs are.
    /// `env` is all it gets besides what describes the question.
    pub fn new(argv: &[String], search_path: &OsStr, env: Env) -> Result<Self, BadCommand> {
        let (program, args) = argv.split_first().ok_or(BadCommand::Empty)?;
        let tool = if program.contains('/') {
            named(PathBuf::from(program))?
        } else {
            Tool::find(program, search_path)?
        };
        Ok(Self { tool, args: args.iter().map(Into::into).collect(), env })
    }

    /// The surface that asks through it, for as long as the host runs. A command that cannot run
    /// is told of, and questions stay where else they are shown.
    pub(crate) fn start(core: &Arc<Core>, argv: &[String]) -> Arc<dyn Sink> {
        let prompts = Prompts::default();
        let env = base_env(std::env::vars_os());
        match Self::new(argv, &std::env::var_os("PATH").unwrap_or_default(), env) {
            Ok(command) => {
                let asking = prompts.clone().run(command, core.broker.clone(), core.stop.clone());
                core.tasks.spawn(asking);
            }
            Err(e) => {
                tracing::error!("{e}");
                core.state().notices.insert(PART.into(), notice(&e));
                prompts.shared.nobody.store(true, Ordering::Relaxed);
            }
        }
        let hushed = Hushed::new(prompts, Manner::StepsForward, core.quiet.clone());
        core.tasks.spawn(hushed.clone().follow_until(core.stop.clone()));
        hushed
    }

    /// Shows one question; dropped, the program and all it started are ended.
    async fn ask(&self, question: &Question) -> Said {
        let menu = Menu::new(question);
        let env: Env = self.env.iter().cloned().chain(described(question)).collect();
        let input = menu.lines.join("\n") + "\n";
        let (began, limit) = (Instant::now(), Limit::of(LONGEST));
        let ran = self.tool.feed(Path::new("/"), &self.args, Some(input.as_bytes()), &env, limit);
        match ran.await {
            Ok(output) => menu.said(&output, began.elapsed()),
            Err(e) => Said::Failed(e.to_string()),
        }
    }
}

fn named(path: PathBuf) -> Result<Tool, BadCommand> {
    if !path.is_absolute() {
        return Err(BadCommand::Relative(path));
    }
    let runs = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
    if !std::fs::metadata(&path).is_ok_and(runs) {
        return Err(BadCommand::NoProgram(path));
    }
    Ok(Tool { path })
}

fn notice(e: &BadCommand) -> Notice {
    Notice {
        part: PART.into(),
        message: format!("Questions cannot be asked through your own program: {e}."),
        hint: Some("Change approvals.promptCommand in config.yaml and restart the host.".into()),
    }
}

/// What came of showing a question.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Chosen(Verdict),
    TooSoon,
    Failed(String),
}

/// The lines a person chooses from.
struct Menu {
    lines: Vec<String>,
    /// The lines that let something go on.
    choices: Vec<(String, Verdict)>,
}

impl Menu {
    fn new(question: &Question) -> Self {
        let answers = &question.answers;
        let offered = answers.without.iter().map(|label| (label, Verdict::Without));
        let offered = offered.chain([(&answers.yes, Verdict::AllowOnce)]);
        let code = &question.id.as_str()[..4];
        let choices: Vec<_> = (2..)
            .zip(offered)
            .map(|(n, (label, verdict))| (format!("{n}. {label} ({code})"), verdict))
            .collect();
        let mut lines = vec![format!("1. {}", answers.no)];
        // Indented: no line of the question can pass for one of the choices.
        lines.extend(described_in_full(question).iter().map(|l| format!("    {}", visible(l))));
        lines.extend(choices.iter().map(|(line, _)| line.clone()));
        Self { lines, choices }
    }

    fn said(&self, output: &Output, after: Duration) -> Said {
        let out = output.out();
        let chosen = out.strip_suffix('\n').unwrap_or(&out);
        let goes_on = self.choices.iter().find(|(line, _)| line == chosen);
        match (output.code, goes_on) {
            (0, Some(_)) if after < GRACE => Said::TooSoon,
            (0, Some((_, verdict))) => Said::Chosen(*verdict),
            (0, None) => Said::Chosen(Verdict::Deny),
            (1, _) if chosen.is_empty() => Said::Chosen(Verdict::Deny),
            (code, _) => {
                let last = output.err().lines().last().map(visible).unwrap_or_default();
                Said::Failed(format!("it ended with {code}: {last}"))
            }
        }
    }
}

fn described_in_full(question: &Question) -> Vec<String> {
    let evidence = &question.evidence;
    let mut lines = vec![
        format!("{} · {} asks:", question.box_name, question.project),
        question.title.clone(),
        question.target.clone(),
    ];
    lines.extend(question.repeated());
    if question.tier == Tier::Irreversible {
        lines.push("⚠ cannot be undone".into());
    }
    lines.extend(question.warnings.iter().map(|w| format!("⚠ {w}")));
    lines.extend(evidence.facts.iter().map(|f| format!("{}: {}", f.label, f.value)));
    lines.extend(evidence.commits.iter().map(|c| format!("{} {}", c.oid, c.subject)));
    lines.extend(more(evidence.more_commits, "commit"));
    lines.extend(evidence.body.iter().map(|line| format!("| {line}")));
    lines.extend(more(evidence.more_body, "line"));
    for file in &evidence.files {
        let note = file.note.as_ref().map(|n| format!(", {n}")).unwrap_or_default();
        lines.push(format!("{}, {} bytes{note}", file.path, file.bytes));
    }
    lines.extend(more(evidence.more_files, "file"));
    lines.extend(evidence.summary.clone());
    lines.push(format!("$ {}", command_line(&question.argv)));
    lines
}

fn more(count: u32, what: &str) -> Option<String> {
    let plural = if count == 1 { "" } else { "s" };
    (count > 0).then(|| format!("and {count} more {what}{plural}"))
}

/// For programs that would rather draw something of their own.
fn described(question: &Question) -> Env {
    let argv = serde_json::to_string(&question.argv).unwrap_or_default();
    let tier = match question.tier {
        Tier::Routine => "routine",
        Tier::Sensitive => "sensitive",
        Tier::Irreversible => "irreversible",
    };
    [
        ("ID", question.id.as_str()),
        ("BOX", question.box_name.as_str()),
        ("PROJECT", &question.project),
        ("METHOD", &question.method),
        ("TIER", tier),
        ("TITLE", &question.title),
        ("TARGET", &question.target),
        ("ARGV_JSON", &argv),
    ]
    .map(|(name, value)| (format!("AGENTBOX_QUESTION_{name}").into(), value.into()))
    .into()
}

/// The surface: writes down what should be asked; [`Prompts::run`] asks it.
#[derive(Clone, Default)]
pub struct Prompts {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// In the order they came.
    open: Mutex<Vec<Question>>,
    changed: Notify,
    /// Nobody asks what is written down here.
    nobody: AtomicBool,
}

impl Sink for Prompts {
    fn show(&self, question: &Question) {
        self.shared.lock().push(question.clone());
        self.shared.changed.notify_one();
    }

    fn again(&self, question: &Question) {
        if let Some(open) = self.shared.lock().iter_mut().find(|q| q.id == question.id) {
            open.times = question.times;
        }
    }

    fn withdraw(&self, question: &Question, _: &Outcome) {
        self.shared.lock().retain(|q| q.id != question.id);
        self.shared.changed.notify_one();
    }

    fn is_attached(&self) -> bool {
        !self.shared.nobody.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, id: &QuestionId) -> bool {
        self.lock().iter().any(|q| q.id == *id)
    }

    async fn over(&self, id: &QuestionId) {
        while self.has(id) {
            self.changed.notified().await;
        }
    }
}

impl Prompts {
    /// Asks one question after the other until told to stop.
    pub async fn run(self, command: PromptCommand, broker: Broker, stop: CancellationToken) {
        let serve = async {
            loop {
                let next = self.shared.lock().first().cloned();
                match next {
                    None => self.shared.changed.notified().await,
                    Some(question) => self.ask(&command, &broker, &question).await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = serve => {}
        }
    }

    /// One question, until it is answered or over; then it is not asked here again.
    async fn ask(&self, command: &PromptCommand, broker: &Broker, question: &Question) {
        for _ in 0..TRIES {
            let said = tokio::select! {
                said = command.ask(question) => said,
                () = self.shared.over(&question.id) => return,
            };
            let verdict = match said {
                Said::Chosen(verdict) => verdict,
                Said::TooSoon => continue,
                Said::Failed(why) => {
                    tracing::warn!("the prompt command answered nothing: {why}");
                    break;
                }
            };
            match broker.answer(&question.id, &question.digest, verdict, Surface::PromptCommand) {
                Err(AnswerError::TooSoon) => {}
                Ok(()) | Err(AnswerError::NotPending) => break,
                Err(e) => {
                    tracing::warn!("the answer of the prompt command was not taken: {e}");
                    break;
                }
            }
        }
        self.shared.lock().retain(|q| q.id != question.id);
    }
}

#[cfg(test)]
mod tests;
