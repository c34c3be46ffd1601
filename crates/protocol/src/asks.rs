//! What an agent asks whoever works with it: to agree to its plan, or to choose among options.
//!
//! It is answered in the agent's own terminal, inside the box; no answer goes through the host, and
//! none lets anything happen outside the box. All words of it are the box's: bounded here, and made
//! visible before they are shown.

use crate::Millis;
use crate::sessions::{Agent, AgentState};
use serde::{Deserialize, Serialize};

/// The bytes of all its words together.
pub const MOST_TEXT: usize = 60 * 1024;
/// Agents ask four at once, with four options each.
const MOST_QUESTIONS: usize = 8;
const MOST_OPTIONS: usize = 16;

/// As an agent's hook tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<AgentQuestion>,
    /// Some of it was too long to be brought here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AgentQuestion {
    pub question: String,
    /// What it is about, in a word or two.
    #[serde(default)]
    pub header: String,
    #[serde(default)]
    pub options: Vec<AgentOption>,
    /// More than one option may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AgentOption {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

/// An agent that asks, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AgentAsks {
    pub agent: Agent,
    /// [`AgentState::EndPlan`] or [`AgentState::Question`].
    pub state: AgentState,
    /// By the host's clock.
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub since: Millis,
    /// Neither this nor a question: it asks, and the host was not told what, or has forgotten.
    pub plan: Option<String>,
    pub questions: Vec<AgentQuestion>,
    pub cut: bool,
}

impl Asks {
    /// What of it belongs to a state. None also when it is larger than any hook of ours makes it.
    pub fn of(self, state: AgentState) -> Option<Self> {
        let own = match state {
            AgentState::EndPlan => Self { questions: Vec::new(), ..self },
            AgentState::Question => Self { plan: None, ..self },
            _ => return None,
        };
        let few = own.questions.len() <= MOST_QUESTIONS
            && own.questions.iter().all(|q| q.options.len() <= MOST_OPTIONS);
        let says = own.plan.is_some() || !own.questions.is_empty();
        (says && few && own.weight() <= MOST_TEXT).then_some(own)
    }

    pub fn weight(&self) -> usize {
        self.texts().map(str::len).sum()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let questions = self.questions.iter().flat_map(|q| {
            let options = q.options.iter().flat_map(|o| [o.label.as_str(), o.description.as_str()]);
            [q.question.as_str(), q.header.as_str()].into_iter().chain(options)
        });
        self.plan.as_deref().into_iter().chain(questions)
    }

    /// Leaves out what is more than `most` bytes of each text, and questions and options that are too
    /// many.
    pub fn shorten(&mut self, most: usize) {
        let mut cut = self.questions.len() > MOST_QUESTIONS;
        self.questions.truncate(MOST_QUESTIONS);
        let mut short = |text: &mut String| {
            cut |= text.len() > most;
            let fits = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(fits.unwrap_or(0));
        };
        if let Some(plan) = &mut self.plan {
            short(plan);
        }
        for question in &mut self.questions {
            short(&mut question.question);
            short(&mut question.header);
            for option in &mut question.options {
                short(&mut option.label);
                short(&mut option.description);
            }
        }
        for question in &mut self.questions {
            cut |= question.options.len() > MOST_OPTIONS;
            question.options.truncate(MOST_OPTIONS);
        }
        self.cut |= cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(text: &str) -> AgentOption {
        AgentOption { label: text.into(), description: text.into() }
    }

    fn question(text: &str, options: usize) -> AgentQuestion {
        let options = vec![option(text); options];
        AgentQuestion { question: text.into(), header: text.into(), options, multi_select: false }
    }

    #[test]
    fn what_is_too_much_is_left_out_and_said_to_be() {
        let mut asks = Asks { questions: vec![question("äöü", 40); 20], ..Asks::default() };
        assert_eq!(asks.clone().of(AgentState::Question), None);
        asks.shorten(3);
        assert!(asks.cut && asks.texts().all(|text| text == "ä"));
        assert_eq!((asks.questions.len(), asks.questions[0].options.len()), (8, 16));
        assert!(asks.of(AgentState::Question).is_some());
        let mut fits = Asks { plan: Some("abc".into()), ..Asks::default() };
        fits.shorten(3);
        assert!(!fits.cut);
    }

    #[test]
    fn only_what_the_state_speaks_of_is_taken() {
        let both = Asks { plan: Some("p".into()), questions: vec![question("q", 2)], cut: false };
        let plan = both.clone().of(AgentState::EndPlan).unwrap();
        assert!(plan.plan.is_some() && plan.questions.is_empty());
        let asked = both.clone().of(AgentState::Question).unwrap();
        assert!(asked.plan.is_none() && asked.questions.len() == 1);
        assert_eq!(both.of(AgentState::Working), None);
        let long = Asks { plan: Some("x".repeat(MOST_TEXT + 1)), ..Asks::default() };
        assert_eq!(long.of(AgentState::EndPlan), None);
        assert_eq!(Asks::default().of(AgentState::EndPlan), None);
    }
}
