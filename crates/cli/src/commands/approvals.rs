//! `agentbox approvals`: open questions, in full, once or as they come.

mod answer;
mod lines;

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::offers::with_offers;
use crate::question;
use crate::ui::Look;
use host::client::{Client, Incoming};
use jiff::Timestamp;
use lines::Lines;
use protocol::boxes::BoxView;
use protocol::control::{HostEvent, Request};
use protocol::question::{self as wire, Question, Surface};
use protocol::text::visible;

/// Show what boxes ask of you
///
/// Each question in full: who asks, what would happen where, the evidence and the exact command.
/// A question nobody answers in time is a no.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox approvals                  what is open now
  agentbox approvals --watch          and what comes, until Ctrl-C
  agentbox approvals --answer         and answer it here, as it comes
  agentbox approvals --watch --json   one JSON object per line, for programs
  agentbox approve 3fa9c1d2           say yes to one of them")]
pub struct Args {
    /// Stay and show questions as they come and go
    #[arg(short, long)]
    watch: bool,

    /// Stay, show questions as they come, and take answers typed here
    #[arg(short, long, conflicts_with_all = ["watch", "json"])]
    answer: bool,

    /// Print JSON; with --watch one object per line
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.answer {
        return answer::run(ctx);
    }
    let client = ctx.client()?;
    if args.watch {
        return watch(ctx, &client, args.json);
    }
    let open: Vec<Question> = client.call(&Request::Questions)?;
    tell(ctx, &open, args.json)
}

/// The questions of one box.
pub fn of_box(ctx: &Context, client: &Client, view: &BoxView, as_json: bool) -> Outcome {
    let mut open: Vec<Question> = client.call(&Request::Questions)?;
    open.retain(|question| question.box_id == view.id);
    tell(ctx, &open, as_json)
}

fn tell(ctx: &Context, open: &[Question], as_json: bool) -> Outcome {
    if as_json {
        let open: serde_json::Result<Vec<_>> = open.iter().map(with_offers).collect();
        let open = open.map_err(|e| CommandError::failed(e.to_string()))?;
        json::print(&ctx.ui, "questions", &open)?;
    } else if open.is_empty() {
        ctx.ui.say("No questions.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, open, Timestamp::now()))?;
    }
    Ok(Exit::OK)
}

fn render(look: Look, open: &[Question], now: Timestamp) -> String {
    let each = open.iter().map(|q| question::render(look, q, open, now));
    each.collect::<Vec<_>>().join("\n")
}

/// Until the person or the host leaves.
fn watch(ctx: &Context, client: &Client, as_json: bool) -> Outcome {
    ctx.ui.say("Waiting for questions. Ctrl-C ends this.");
    let mut failed = None;
    let mut lines = Lines::default();
    let conversation = client.open(&Request::Subscribe)?;
    let hang_up = conversation.writer()?;
    let ended = conversation.finish::<()>(|incoming| {
        let Incoming::Event(event) = incoming else { return };
        let text =
            if as_json { lines.of(&event) } else { told(ctx.ui.out, &event, Timestamp::now()) };
        if let Some(text) = text
            && let Err(error) = ctx.ui.out(&text)
        {
            hang_up.hang_up();
            failed = Some(error);
        }
    });
    match (failed, ended) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(Exit::OK),
        (None, Err(error)) => Err(CommandError::from(error)),
    }
}

/// What one event changes for somebody who watches questions.
fn told(look: Look, event: &HostEvent, now: Timestamp) -> Option<String> {
    match event {
        HostEvent::Snapshot { questions, .. } if questions.is_empty() => None,
        HostEvent::Snapshot { questions, .. } => Some(render(look, questions, now) + "\n"),
        HostEvent::Asked { question } => {
            Some(question::render(look, question, std::slice::from_ref(question), now) + "\n")
        }
        HostEvent::Resolved { id, box_name, outcome } => {
            let id = &id.as_str()[..8];
            Some(format!("{id}  {}: {}\n\n", visible(box_name), ending(outcome)))
        }
        _ => None,
    }
}

/// How a question ended, in words.
pub fn ending(outcome: &wire::Outcome) -> String {
    let at = |surface: &Surface| match surface {
        Surface::Dialog => "in the dialog",
        Surface::Notification => "in the notification",
        Surface::Window => "in the window",
        Surface::Tray => "in the tray",
        Surface::Cli => "on the command line",
        Surface::Terminal => "in the terminal",
        Surface::PromptCommand => "in the menu",
    };
    match outcome {
        wire::Outcome::Allowed { by } => format!("allowed {}", at(by)),
        wire::Outcome::Granted { .. } => "allowed by a rule".into(),
        wire::Outcome::Without { by } => format!("goes on without these files, said {}", at(by)),
        wire::Outcome::Denied { by } => format!("denied {}", at(by)),
        wire::Outcome::Expired => "not answered in time, so denied".into(),
        wire::Outcome::Withdrawn => "withdrawn, the command in the box ended".into(),
        wire::Outcome::HostStopped => "denied, the host stopped".into(),
        wire::Outcome::TooMany => "denied, the box asks too much".into(),
        wire::Outcome::Muted => "denied, the box is muted".into(),
        wire::Outcome::Nobody => "denied, nobody was there to ask".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_watcher_hears_questions_come_and_go() {
        let open = samples::questions();
        let events = [
            HostEvent::Snapshot { status: samples::status(), boxes: vec![], questions: vec![] },
            HostEvent::Asked { question: open[0].clone() },
            HostEvent::BoxRemoved { id: open[0].box_id.clone() },
            HostEvent::Resolved {
                id: open[0].id.clone(),
                box_name: "fix-login".into(),
                outcome: wire::Outcome::Denied { by: Surface::Dialog },
            },
            HostEvent::Snapshot { status: samples::status(), boxes: vec![], questions: open },
        ];
        let said: Vec<_> =
            events.iter().filter_map(|e| told(Look::PLAIN, e, samples::now())).collect();
        insta::assert_snapshot!(said.concat());
    }
}
