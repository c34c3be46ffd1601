//! `agentbox-ctl agent-state <agent> <state> [--hook] …`: what an agent's hooks call. With `--hook` the
//! agent says on standard input which conversation it is at, and what it asks.
//!
//! A hook must never hold up or fail its agent, so whatever goes wrong here is nobody's problem.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::{hook, resume};
use protocol::asks::MOST_TEXT;
use protocol::rpc::{EventPost, MAX_EVENT};
use protocol::sessions::{AGENT_EVENT, Agent, AgentReport, AgentState};
use std::ffi::OsString;

pub fn run(args: &[OsString]) -> Result<i32> {
    let mut words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
    let mut says = |option: &str| {
        let before = words.len();
        words.retain(|word| *word != option);
        words.len() < before
    };
    let (from_hook, clear_pending) = (says("--hook"), says("--clear-pending"));
    let after_asking = says("--after-asking");
    let [agent, state] = words[..] else { return Err(usage()) };
    let (agent, state) = (Agent::named(agent), AgentState::named(state));
    let (Some(agent), Some(state)) = (agent, state) else { return Err(usage()) };
    let input = if from_hook || after_asking { hook::input() } else { None };
    let input = input.as_deref().unwrap_or_default();
    if from_hook {
        resume::from_hook(agent, input);
    }
    if after_asking && !hook::was_asking(input) {
        return Ok(protocol::exit::OK);
    }
    let asks = state.asks().then(|| hook::asks(input)).flatten();
    send(AgentReport { agent, state: Some(state), clear_pending, asks });
    Ok(protocol::exit::OK)
}

fn usage() -> Error {
    let states = AgentState::ALL.map(AgentState::as_str).join("|");
    Error::Usage(format!("use 'agentbox-ctl agent-state claude|codex|opencode {states}'."))
}

/// None: it has ended.
pub fn tell(agent: Agent, state: Option<AgentState>) {
    send(AgentReport { agent, state, clear_pending: false, asks: None });
}

/// A host that is away learns of the next change.
fn send(report: AgentReport) {
    if let Some(post) = post(report) {
        let _ = Relay::open().and_then(|relay| relay.event(&post));
    }
}

/// With as much of what is asked as a host takes.
fn post(mut report: AgentReport) -> Option<EventPost> {
    let mut most = MOST_TEXT;
    loop {
        if let Some(asks) = &mut report.asks {
            asks.shorten(most);
        }
        let payload = serde_json::value::to_raw_value(&report).ok()?;
        let post = EventPost { kind: AGENT_EVENT.into(), ts: None, payload: Some(payload) };
        let fits = serde_json::to_vec(&post).ok()?.len() <= MAX_EVENT
            && report.asks.as_ref().is_none_or(|asks| asks.weight() <= MOST_TEXT);
        if fits {
            return Some(post);
        }
        if most == 0 {
            report.asks = None;
        }
        most = most / 4 * 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::asks::{AgentOption, AgentQuestion, Asks};

    fn sent(state: AgentState, asks: Asks) -> Asks {
        let report = AgentReport {
            agent: Agent::Claude,
            state: Some(state),
            clear_pending: false,
            asks: Some(asks),
        };
        let post = post(report).unwrap();
        assert!(serde_json::to_vec(&post).unwrap().len() <= MAX_EVENT);
        let report: AgentReport = serde_json::from_str(post.payload.unwrap().get()).unwrap();
        report.asks.unwrap().of(state).unwrap()
    }

    #[test]
    fn as_much_is_sent_as_a_host_takes() {
        let plan = |text: String| Asks { plan: Some(text), ..Asks::default() };
        let short = sent(AgentState::EndPlan, plan("one".into()));
        assert_eq!((short.plan.as_deref(), short.cut), (Some("one"), false));
        let long = sent(AgentState::EndPlan, plan("é\n".repeat(1_000_000)));
        assert!(long.cut && long.plan.unwrap().len() > 30_000);
        // Each of these is six characters of JSON.
        let odd = sent(AgentState::EndPlan, plan("\u{1b}".repeat(1_000_000)));
        assert!(odd.cut && odd.plan.unwrap().len() > 5_000);
        let text = "x".repeat(100_000);
        let option = AgentOption { label: text.clone(), description: text.clone() };
        let (header, options) = (text.clone(), vec![option; 200]);
        let question = AgentQuestion { question: text, header, options, multi_select: true };
        let many =
            sent(AgentState::Question, Asks { questions: vec![question; 200], ..Asks::default() });
        assert!(many.cut && many.questions.len() == 8 && many.questions[0].question.len() > 100);
    }
}
