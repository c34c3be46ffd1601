//! `agentbox agent get-plan-question`: what an agent in a box asks whoever works with it.
//!
//! The words are the box's. Each line of them stands behind a bar, also where the terminal would have
//! broken it, and nothing in them moves a cursor: none can pass for a word of the host.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::json;
use crate::time::ago;
use crate::ui::Look;
use jiff::Timestamp;
use protocol::asks::{AgentAsks, AgentQuestion};
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::text::visible;
use std::fmt::Write;

/// Show the plan or the question an agent has for you
///
/// What Claude wants agreed to at the end of plan mode, and what Claude or OpenCode ask with options,
/// in the agent's own words. It is answered in the agent's terminal: `agentbox attach`. Exit code 1
/// when no agent asks anything.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number, name, id or unique id prefix [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(args.which) })?;
    let asks: Vec<AgentAsks> = client.call(&Request::AgentAsks { target: Target::id(&view.id) })?;
    if args.json {
        json::print(&ctx.ui, "asks", &asks)?;
    } else if asks.is_empty() {
        ctx.ui.say(&format!("No agent in {} has a plan or a question for you.", view.name));
    } else {
        ctx.ui.out(&render(ctx.ui.out, view.name.as_str(), &asks, Timestamp::now()))?;
        ctx.ui.hint(&format!("agentbox attach {} answers it, in the agent's terminal", view.name));
    }
    Ok(if asks.is_empty() { Exit::FAILED } else { Exit::OK })
}

fn render(look: Look, name: &str, asks: &[AgentAsks], now: Timestamp) -> String {
    let mut text = String::new();
    for (n, one) in asks.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        let who = format!("{} in {name}", one.agent.title());
        let age = look.dim(&ago(now, one.since));
        let _ = writeln!(text, "{} {}  {age}", look.bold(&who), one.state.in_words());
        let lines = lines(one);
        if lines.is_empty() {
            let _ = writeln!(text, "  What it is can be seen in the agent's terminal only.");
        }
        for line in lines.iter().flat_map(|line| broken(line, look.width)) {
            let _ = writeln!(text, "  {} {line}", look.dim("│"));
        }
        if one.cut {
            let _ = writeln!(text, "  There is more of it in the agent's terminal.");
        }
    }
    text
}

/// Its words, line by line, made visible.
fn lines(asks: &AgentAsks) -> Vec<String> {
    let plan = asks.plan.as_deref().unwrap_or_default();
    let mut all: Vec<String> = plan.lines().map(visible).collect();
    for question in &asks.questions {
        if !all.is_empty() {
            all.push(String::new());
        }
        all.extend(asked(question));
    }
    all
}

fn asked(of: &AgentQuestion) -> Vec<String> {
    let about = match visible(&of.header) {
        header if header.is_empty() => header,
        header => format!("[{header}] "),
    };
    let several = if of.multi_select { " (several may be chosen)" } else { "" };
    let mut all = vec![format!("{about}{}{several}", visible(&of.question))];
    for (n, option) in (1..).zip(&of.options) {
        all.push(format!("  {n}. {}", visible(&option.label)));
        if !option.description.is_empty() {
            all.push(format!("     {}", visible(&option.description)));
        }
    }
    all
}

/// As long as fits behind the bar.
fn broken(line: &str, width: Option<usize>) -> Vec<String> {
    let room = width.unwrap_or(usize::MAX).saturating_sub(5).max(8);
    let mut parts = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        // Some letters take two columns, and what takes none may as well.
        let wide = if c.is_ascii() { 1 } else { 2 };
        if used + wide > room {
            parts.push(String::new());
            used = 0;
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        used += wide;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use protocol::asks::AgentOption;
    use protocol::sessions::{Agent, AgentState};

    fn plan(text: &str) -> AgentAsks {
        AgentAsks {
            agent: Agent::Claude,
            state: AgentState::EndPlan,
            since: 0,
            plan: Some(text.into()),
            questions: vec![],
            cut: false,
        }
    }

    #[test]
    fn a_plan_and_questions_are_shown_in_full() {
        let option = |label: &str, description: &str| AgentOption {
            label: label.into(),
            description: description.into(),
        };
        let question = AgentQuestion {
            question: "Which library?".into(),
            header: "Dates".into(),
            options: vec![option("jiff", "Small and right"), option("chrono", "")],
            multi_select: true,
        };
        let asks = AgentAsks {
            agent: Agent::Opencode,
            state: AgentState::Question,
            plan: None,
            questions: vec![question],
            cut: true,
            ..plan("")
        };
        let unknown = AgentAsks { plan: None, ..plan("") };
        let all = [plan("# Plan\n\n1. Look\n2. Mend"), asks, unknown];
        insta::assert_snapshot!(render(Look::PLAIN, "fix-login", &all, samples::now()));
    }

    #[test]
    fn no_word_of_a_box_stands_at_the_start_of_a_line() {
        let bad = "\u{1b}[2J\u{1b}[H■ fix-login · shop\r\n\u{202e}Push\u{2028}x\r  y\u{85}\u{8}\n";
        let long = format!("{}agentbox approve 3fa9c1d2", " ".repeat(75));
        let wide = "漢".repeat(90);
        let text = render(
            Look::PLAIN,
            "fix-login",
            &[plan(&format!("{bad}{long}\n{wide}"))],
            samples::now(),
        );
        for line in text.lines().skip(1) {
            assert!(line.starts_with("  │ "), "{line}");
            let columns: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
            assert!(columns <= 80, "{line}");
        }
        assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}') && !text.contains('\u{2028}'), "{text:?}");
    }
}
