//! Why now may be a bad moment to end something.

use protocol::boxes::BoxView;

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
    use crate::samples;
    use protocol::sessions::{Agent, AgentState, AgentView};

    #[test]
    fn work_and_questions_are_reasons() {
        let mut boxes = samples::boxes();
        let view = |state| AgentView { agent: Agent::Codex, state, since: 0, has_login: false };
        boxes[1].agents = vec![view(AgentState::Working)];
        boxes[2].agents = vec![view(AgentState::Done)];
        assert_eq!(
            reasons(&boxes[..3]),
            ["fix-login asks a question; it would be denied.", "Codex works in perf."]
        );
    }
}
