//! `agentbox approvals --answer`: questions as they come, answered by typing.
//!
//! An answer is a word and the question's code: `allow 3fa9`. No single key and no Enter means yes
//! anywhere, because a box sees what is typed into it and can ask a moment before. A code is used
//! for one question only, also after that one is over.

use crate::commands::approve;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::question;
use crate::time;
use crate::ui::Look;
use host::client::{Client, ClientError, Incoming};
use jiff::Zoned;
use protocol::QuestionId;
use protocol::control::{HostEvent, Request, Target};
use protocol::question::{Breadth, Question, Reach, Remember, Surface, Verdict};
use protocol::text::visible;
use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, SyncSender};

const CODE: usize = 4;
const MUTE: u64 = 3600;
const HELP: &str = "Type `allow CODE`, `deny CODE`, `remember CODE` to allow it again without \
asking, `without CODE` to go on without the files it lists, `mute CODE` to deny that box for an hour, `show` to see what is open, `quit` to leave.";

pub fn run(ctx: &Context) -> Outcome {
    if !ctx.ui.interactive {
        return Err(CommandError::usage("answering needs a terminal to show the questions on")
            .hint("a program watches with `agentbox approvals --watch --json`")
            .hint("and answers with `agentbox approve ID --digest DIGEST`"));
    }
    let client = ctx.client()?;
    let (sender, heard) = mpsc::sync_channel(64);
    let conversation = client.open(&Request::Subscribe)?;
    let events = sender.clone();
    std::thread::spawn(move || {
        let ended = conversation.finish::<()>(|incoming| {
            if let Incoming::Event(event) = incoming {
                let _ = events.send(Heard::Event(event));
            }
        });
        let _ = events.send(Heard::HostLeft(ended.err()));
    });
    std::thread::spawn(move || read_lines(&sender));
    ctx.ui.say(&format!("Waiting for questions. {HELP}"));
    let mut session = Session::new(ctx.ui.err);
    prompt();
    for heard in heard {
        let steps = match heard {
            Heard::Event(event) => session.event(*event, &Zoned::now()),
            Heard::Line(line) => Some(session.line(&line, &Zoned::now())),
            Heard::HostLeft(None) | Heard::InputEnded => return Ok(Exit::OK),
            Heard::HostLeft(Some(error)) => {
                ctx.ui.say("");
                return Err(error.into());
            }
        };
        let Some(steps) = steps else { continue };
        for step in steps {
            match step {
                Step::Say(text) => ctx.ui.say(&text),
                Step::Leave => return Ok(Exit::OK),
                Step::Ask(request) => send(ctx, &client, &request),
            }
        }
        prompt();
    }
    Ok(Exit::OK)
}

enum Heard {
    Event(Box<HostEvent>),
    Line(String),
    InputEnded,
    HostLeft(Option<ClientError>),
}

fn read_lines(to: &SyncSender<Heard>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if to.send(Heard::Line(line)).is_err() {
            return;
        }
    }
    let _ = to.send(Heard::InputEnded);
}

fn prompt() {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "> ");
    let _ = stderr.flush();
}

/// The host's event says what came of it; only a failure is told here.
fn send(ctx: &Context, client: &Client, request: &Request) {
    if let Err(error) = client.call::<serde_json::Value>(request) {
        ctx.ui.report(&approve::explain(error));
    }
}

/// What a line or an event leads to.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are a few at a time")]
enum Step {
    Say(String),
    Ask(Request),
    Leave,
}

impl Step {
    fn say(text: impl Into<String>) -> Vec<Step> {
        vec![Step::Say(text.into())]
    }
}

/// Everything between the terminal and the host, without either.
struct Session {
    look: Look,
    open: Vec<Shown>,
    /// Codes that had a question, over or not.
    used: HashSet<String>,
    /// The rule that is being made.
    making: Option<Making>,
}

struct Shown {
    question: Question,
    code: String,
}

struct Making {
    id: QuestionId,
    reach: Option<Reach>,
    breadth: Option<Breadth>,
    seconds: Option<u64>,
}

impl Session {
    fn new(look: Look) -> Self {
        Self { look, open: Vec::new(), used: HashSet::new(), making: None }
    }

    /// None when there is nothing to say.
    fn event(&mut self, event: HostEvent, now: &Zoned) -> Option<Vec<Step>> {
        let mut text = String::new();
        match event {
            HostEvent::Asked { question } => text += &self.asked(question, now)?,
            // Told with the question when somebody looks: a box must not be able to fill the terminal.
            HostEvent::AskedAgain { id, times } => {
                if let Some(shown) = self.open.iter_mut().find(|s| s.question.id == id) {
                    shown.question.times = times;
                }
            }
            HostEvent::Resolved { id, outcome, .. } => {
                text += &self.over(&id, &super::ending(&outcome))?;
            }
            HostEvent::Snapshot { questions, .. } => {
                let is_open = |s: &Shown| questions.iter().any(|q| q.id == s.question.id);
                let gone = self.open.iter().filter(|s| !is_open(s)).map(|s| s.question.id.clone());
                for id in gone.collect::<Vec<_>>() {
                    text += &self.over(&id, "no longer open").unwrap_or_default();
                }
                for question in questions {
                    text += &self.asked(question, now).unwrap_or_default();
                }
            }
            _ => {}
        }
        if text.is_empty() {
            return None;
        }
        // A line may be half typed: start on a fresh one, and say again what is being asked.
        let mut steps = Step::say(format!("\n{}", text.trim_end()));
        steps.extend(self.next_choice(now).map(Step::Say));
        Some(steps)
    }

    fn asked(&mut self, question: Question, now: &Zoned) -> Option<String> {
        if self.open.iter().any(|s| s.question.id == question.id) {
            return None;
        }
        let code = self.fresh_code(&question.id);
        let shown = Shown { question, code };
        let text = self.show(&shown, now);
        self.open.push(shown);
        Some(text)
    }

    /// The id's first characters, more of them when a question had those already.
    fn fresh_code(&mut self, id: &QuestionId) -> String {
        let id = id.as_str();
        let lengths = CODE..=id.len();
        let code = lengths.map(|n| &id[..n]).find(|code| !self.used.contains(*code)).unwrap_or(id);
        self.used.insert(code.to_owned());
        code.to_owned()
    }

    fn show(&self, shown: &Shown, now: &Zoned) -> String {
        let (code, look) = (&shown.code, self.look);
        let ends = time::until(now.timestamp(), shown.question.expires_at);
        let remember = match shown.question.remember {
            Some(_) => format!("  or  {}", look.bold(&format!("remember {code}"))),
            None => String::new(),
        };
        let without = match shown.question.answers.without {
            Some(_) => format!("  or  {}", look.bold(&format!("without {code}"))),
            None => String::new(),
        };
        format!(
            "{}  {}  or  {}{without}{remember}  {}\n\n",
            question::shown(look, &shown.question, now.timestamp()),
            look.bold(&format!("allow {code}")),
            look.bold(&format!("deny {code}")),
            look.dim(&format!("(expires {ends})")),
        )
    }

    fn over(&mut self, id: &QuestionId, how: &str) -> Option<String> {
        let at = self.open.iter().position(|s| s.question.id == *id)?;
        let Shown { question, code } = self.open.remove(at);
        if self.making.as_ref().is_some_and(|m| m.id == *id) {
            self.making = None;
        }
        Some(format!("{code}  {}: {how}\n", question.box_name))
    }

    fn line(&mut self, line: &str, now: &Zoned) -> Vec<Step> {
        let line = line.trim_ascii().to_ascii_lowercase();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let Some(making) = self.making.take() {
            return self.choose(making, &words, now);
        }
        match words[..] {
            [] | ["help" | "?"] => Step::say(HELP),
            ["quit" | "exit" | "q"] => vec![Step::Leave],
            ["show"] if self.open.is_empty() => Step::say("No questions."),
            ["show"] => {
                let all: String = self.open.iter().map(|s| self.show(s, now)).collect();
                Step::say(all.trim_end())
            }
            [verb @ ("show" | "allow" | "deny" | "remember" | "without" | "mute"), code] => {
                self.act(verb, code, now)
            }
            ["allow" | "deny" | "remember" | "without" | "mute"] => Step::say(self.say_which()),
            _ => Step::say(format!("That is no answer. {HELP}")),
        }
    }

    fn act(&mut self, verb: &str, code: &str, now: &Zoned) -> Vec<Step> {
        let Some(shown) = self.open.iter().find(|s| s.code == code) else {
            let why = if self.used.contains(code) {
                format!("{code} is over.")
            } else {
                format!("No question has the code {}.", visible(code))
            };
            return Step::say(format!("{why} {}", self.say_which()));
        };
        match verb {
            "allow" => vec![answer(shown, Verdict::AllowOnce)],
            "deny" => vec![answer(shown, Verdict::Deny)],
            "without" if shown.question.answers.without.is_none() => {
                Step::say("This question lists no files to go on without.")
            }
            "without" => vec![answer(shown, Verdict::Without)],
            "mute" => {
                let target = Target::id(&shown.question.box_id);
                vec![Step::Ask(Request::Mute { target, seconds: Some(MUTE) })]
            }
            "remember" if shown.question.remember.is_none() => {
                Step::say("This is asked every time and cannot be remembered.")
            }
            "remember" => {
                let id = shown.question.id.clone();
                // Nothing to choose where there is one only.
                let reach = shown.question.remember.as_ref().and_then(|r| r.only);
                self.making = Some(Making { id, reach, breadth: None, seconds: None });
                self.next_choice(now).map(Step::Say).into_iter().collect()
            }
            _ => Step::say(self.show(shown, now).trim_end()),
        }
    }

    fn say_which(&self) -> String {
        match &self.open[..] {
            [] => "No questions.".into(),
            open => {
                let codes: Vec<_> = open.iter().map(|s| s.code.as_str()).collect();
                format!("Open: {}.", codes.join(", "))
            }
        }
    }

    /// One choice on the way to a rule. Whatever is none of the choices leaves all as it was.
    fn choose(&mut self, mut making: Making, words: &[&str], now: &Zoned) -> Vec<Step> {
        let Some(shown) = self.open.iter().find(|s| s.question.id == making.id) else {
            return Step::say("The question is over.");
        };
        let Some(remember) = &shown.question.remember else { return Step::say(HELP) };
        let understood = match (&making, words) {
            (Making { reach: None, .. }, [word]) => {
                making.reach = reach(word);
                making.reach.is_some()
            }
            (Making { breadth: None, .. }, [word]) if remember.kind.is_some() => {
                making.breadth = breadth(word);
                making.breadth.is_some()
            }
            (Making { seconds: None, .. }, [word]) => {
                making.seconds = seconds(word, now);
                making.seconds.is_some()
            }
            (_, ["allow", code]) if *code == shown.code => {
                let verdict = making.verdict();
                return verdict.map(|v| answer(shown, v)).into_iter().collect();
            }
            _ => false,
        };
        if !understood {
            return Step::say(
                "No rule was made and nothing was answered; the question stays open.",
            );
        }
        self.making = Some(making);
        self.next_choice(now).map(Step::Say).into_iter().collect()
    }

    /// What is to be chosen next.
    fn next_choice(&self, now: &Zoned) -> Option<String> {
        let making = self.making.as_ref()?;
        let shown = self.open.iter().find(|s| s.question.id == making.id)?;
        let remember = shown.question.remember.as_ref()?;
        let (name, project) = (&shown.question.box_name, visible(&shown.question.project));
        if making.reach.is_none() {
            return Some(format!(
                "Who?    1  {name}\n        2  every box of {project}, new ones too\n        \
                 3  every box of every project, new ones too"
            ));
        }
        if let (None, Some(kind)) = (making.breadth, &remember.kind) {
            let (exact, kind) = (visible(&remember.exact), visible(kind));
            return Some(format!("What?   1  {exact}\n        2  more than that: {kind}"));
        }
        let Some(seconds) = making.seconds else {
            return Some(
                "Until?  1  an hour from now\n        2  the end of today\n        3  30 days from \
                 now\n        4  you remove it\n        or for a time such as 2h"
                    .into(),
            );
        };
        let (reach, breadth) = (making.reach?, making.breadth.unwrap_or_default());
        let rule = question::rule(&shown.question, reach, breadth, seconds, now)?;
        let allow = self.look.bold(&format!("allow {}", shown.code));
        Some(format!("{rule}.\nType {allow} to allow this and keep the rule; Enter leaves it."))
    }
}

impl Making {
    fn verdict(&self) -> Option<Verdict> {
        let (reach, seconds) = (self.reach?, self.seconds?);
        Some(Verdict::Remember { reach, breadth: self.breadth.unwrap_or_default(), seconds })
    }
}

fn answer(shown: &Shown, verdict: Verdict) -> Step {
    let question = &shown.question;
    Step::Ask(Request::Answer {
        id: question.id.clone(),
        digest: question.digest.clone(),
        verdict,
        surface: Surface::Terminal,
    })
}

fn reach(word: &str) -> Option<Reach> {
    match word {
        "1" | "box" => Some(Reach::Box),
        "2" | "project" => Some(Reach::Project),
        "3" | "everywhere" => Some(Reach::Everywhere),
        _ => None,
    }
}

fn breadth(word: &str) -> Option<Breadth> {
    match word {
        "1" | "exactly" => Some(Breadth::Exact),
        "2" | "kind" => Some(Breadth::Kind),
        _ => None,
    }
}

fn seconds(word: &str, now: &Zoned) -> Option<u64> {
    match word {
        "1" => Some(3600),
        "2" | "today" => Some(time::rest_of_today(now)),
        "3" => Some(30 * 24 * 3600),
        "4" | "always" => Some(Remember::ALWAYS),
        other => time::parse_duration(other).ok(),
    }
}

#[cfg(test)]
mod tests;
