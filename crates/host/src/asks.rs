//! What agents ask of the people who work with them, as far as their boxes tell.
//!
//! A plan or a question is the box's word and may hold anything. It is kept in memory, one for each
//! agent of a box, and goes with the state it belongs to; neither the store nor an event has it.

use crate::api::Api;
use crate::core::Known;
use protocol::Millis;
use protocol::asks::{AgentAsks, Asks};
use protocol::control::{ControlError, Target};
use protocol::sessions::{Agent, AgentReport, AgentState};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// What was said of an agent.
pub struct Said {
    pub state: AgentState,
    pub clears: bool,
    pub asks: Option<Asks>,
    pub at: Millis,
}

impl Api {
    /// Agents of a box that have a plan or a question, and what it is.
    pub fn agent_asks(&self, target: &Target) -> Result<Vec<AgentAsks>, ControlError> {
        let id = self.find(target)?;
        let open = self.core.with_known(&id, |known| asking(&known.agents, &known.asks));
        Ok(open.unwrap_or_default())
    }
}

/// What agents do, and since when.
type Doing = BTreeMap<Agent, (AgentState, Millis)>;

impl Known {
    /// Takes note of what an agent does now, none that it has ended; whether that is news.
    pub fn note_agent(&mut self, agent: Agent, said: Option<Said>) -> bool {
        note(&mut self.agents, &mut self.asks, agent, said)
    }
}

fn note(
    doing: &mut Doing,
    open: &mut BTreeMap<Agent, Asks>,
    agent: Agent,
    said: Option<Said>,
) -> bool {
    let before = doing.get(&agent).map(|(state, _)| *state);
    let Some(Said { state, clears, asks, at }) = said else {
        open.remove(&agent);
        return doing.remove(&agent).is_some();
    };
    let after = state.after(before, clears);
    // What was not heeded changes nothing about what is open.
    if after == state {
        match asks.and_then(|asks| asks.of(state)) {
            Some(asks) => open.insert(agent, asks),
            None => open.remove(&agent),
        };
    }
    if before == Some(after) {
        return false;
    }
    doing.insert(agent, (after, at));
    true
}

fn asking(doing: &Doing, open: &BTreeMap<Agent, Asks>) -> Vec<AgentAsks> {
    let one = |(agent, (state, since)): (&Agent, &(AgentState, Millis))| {
        let Asks { plan, questions, cut } = open.get(agent).cloned().unwrap_or_default();
        AgentAsks { agent: *agent, state: *state, since: *since, plan, questions, cut }
    };
    doing.iter().filter(|(_, (state, _))| state.asks()).map(one).collect()
}

/// A report as it may be kept and told, and what the agent asks.
pub fn without_asks(payload: Option<Box<RawValue>>) -> (Option<Box<RawValue>>, Option<Asks>) {
    let report = payload.as_ref().map(|p| serde_json::from_str::<AgentReport>(p.get()));
    match report {
        Some(Ok(mut report)) => {
            let asks = report.asks.take();
            (to_raw_value(&report).ok(), asks)
        }
        _ => (payload, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(state: AgentState, clears: bool, plan: Option<&str>) -> Said {
        let asks = plan.map(|plan| Asks { plan: Some(plan.into()), ..Asks::default() });
        Said { state, clears, asks, at: 7 }
    }

    #[test]
    fn a_plan_is_kept_as_long_as_it_is_open_and_no_longer() {
        let (mut doing, mut kept) = (Doing::new(), BTreeMap::new());
        let mut note = |said: Option<Said>| {
            let news = note(&mut doing, &mut kept, Agent::Claude, said);
            let asking = asking(&doing, &kept);
            let open = asking.first().map(|one| one.plan.clone().unwrap_or_default());
            (news, open, kept.len())
        };
        let open = |text: &str| Some(text.to_owned());
        assert_eq!(
            note(Some(said(AgentState::EndPlan, false, Some("one")))),
            (true, open("one"), 1)
        );
        assert_eq!(note(Some(said(AgentState::Working, false, None))), (false, open("one"), 1));
        assert_eq!(
            note(Some(said(AgentState::Waiting, false, Some("x")))),
            (false, open("one"), 1)
        );
        assert_eq!(
            note(Some(said(AgentState::EndPlan, false, Some("two")))),
            (false, open("two"), 1)
        );
        assert_eq!(note(Some(said(AgentState::EndPlan, false, None))), (false, open(""), 0));
        assert_eq!(
            note(Some(said(AgentState::EndPlan, false, Some("three")))),
            (false, open("three"), 1)
        );
        assert_eq!(note(Some(said(AgentState::Working, true, None))), (true, None, 0));
        assert_eq!(note(Some(said(AgentState::Working, false, Some("four")))), (false, None, 0));
        assert_eq!(
            note(Some(said(AgentState::EndPlan, false, Some("five")))),
            (true, open("five"), 1)
        );
        assert_eq!(note(None), (true, None, 0));
        assert_eq!(note(None), (false, None, 0));
    }

    #[test]
    fn a_report_is_kept_without_what_is_asked() {
        let text = r#"{"agent":"claude","state":"end-plan","asks":{"plan":"secret"}}"#;
        let (kept, asks) = without_asks(RawValue::from_string(text.into()).ok());
        assert_eq!(asks.unwrap().plan.as_deref(), Some("secret"));
        assert_eq!(kept.unwrap().get(), r#"{"agent":"claude","state":"end-plan"}"#);
    }
}
