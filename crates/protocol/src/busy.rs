//! Why now may be a bad moment to end something.

use crate::boxes::BoxView;

/// One sentence for each agent at work and each box that asks.
pub fn reasons(boxes: &[BoxView]) -> Vec<String> {
    let mut all = Vec::new();
    for view in boxes {
        for agent in view.agents.iter().filter(|agent| agent.state.is_at_work()) {
            all.push(format!("{} works in {}.", agent.agent.title(), view.name));
        }
        match view.questions {
            0 => {}
            1 => all.push(format!("{} asks a question; it would be denied.", view.name)),
            n => all.push(format!("{} asks {n} questions; they would be denied.", view.name)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{Agent, AgentState, AgentView};

    fn view(name: &str) -> BoxView {
        let text = format!(
            r#"{{"id":"b00000001","name":"{name}","index":1,"project":"p","projectRoot":"/p","workspace":"/p",
            "state":"running","branch":null,"publish":null,"image":"i","createdAt":0,"questions":0,
            "mutedUntil":null,"channel":"socket","busy":null,"agents":[],"logins":[]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn work_and_questions_are_reasons() {
        let agent = |state| AgentView { agent: Agent::Codex, state, since: 0, has_login: false };
        let asks = BoxView { questions: 1, ..view("fix-login") };
        let asks_more = BoxView { questions: 2, ..view("docs") };
        let works = BoxView { agents: vec![agent(AgentState::Working)], ..view("perf") };
        let idle = BoxView { agents: vec![agent(AgentState::Done)], ..view("idle") };
        assert_eq!(
            reasons(&[asks, works, idle, asks_more]),
            [
                "fix-login asks a question; it would be denied.",
                "Codex works in perf.",
                "docs asks 2 questions; they would be denied.",
            ]
        );
    }
}
