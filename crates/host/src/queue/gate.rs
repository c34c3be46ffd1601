//! Whether there is room for one more, and if not, when that may change by itself.

use protocol::Millis;
use protocol::queue::Gate;
use protocol::sessions::AgentState;

/// An agent that has said nothing yet counts as working for so long.
const UNKNOWN: Millis = 90_000;

/// A box that runs.
pub struct Seen {
    pub created_at: Millis,
    /// What its agents do, and since when.
    pub agents: Vec<(AgentState, Millis)>,
}

/// How many count against a gate, and when one of them stops to without anything happening.
pub fn busy(
    gate: Gate,
    making: usize,
    running: &[Seen],
    grace: Millis,
    now: Millis,
) -> (u32, Option<Millis>) {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    if let Gate::Running(_) = gate {
        return (count(making + running.len()), None);
    }
    let ends = running.iter().flat_map(|seen| match seen.agents.as_slice() {
        [] => vec![Some(seen.created_at + UNKNOWN)],
        agents => agents.iter().map(|(state, since)| ends(*state, *since, grace)).collect(),
    });
    let working: Vec<Option<Millis>> = ends.filter(|end| end.is_none_or(|end| end > now)).collect();
    let soonest = working.iter().flatten().min().copied();
    (count(making + working.len()), soonest)
}

/// Until when an agent counts as working; none when that is up to it.
fn ends(state: AgentState, since: Millis, grace: Millis) -> Option<Millis> {
    match state {
        AgentState::Working => None,
        AgentState::Ready => Some(since.saturating_add(UNKNOWN)),
        AgentState::Waiting | AgentState::Done => Some(since.saturating_add(grace)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_000_000;

    fn seen(agents: &[(AgentState, Millis)]) -> Seen {
        let agents = agents.iter().map(|(state, ago)| (*state, NOW - ago)).collect();
        Seen { created_at: NOW - 60_000, agents }
    }

    #[test]
    fn boxes_that_run_and_boxes_being_made_take_room() {
        let boxes = [seen(&[]), seen(&[(AgentState::Done, 500_000)])];
        assert_eq!(busy(Gate::Running(5), 1, &boxes, 15_000, NOW), (3, None));
    }

    #[test]
    fn only_agents_at_work_take_room_and_those_that_were_a_moment_ago() {
        let working = Gate::Working(2);
        let of = |boxes: &[Seen]| busy(working, 0, boxes, 15_000, NOW);
        assert_eq!(of(&[seen(&[(AgentState::Working, 900_000)])]), (1, None));
        assert_eq!(of(&[seen(&[(AgentState::Done, 14_000)])]), (1, Some(NOW + 1000)));
        assert_eq!(of(&[seen(&[(AgentState::Waiting, 15_000)])]), (0, None));
        assert_eq!(of(&[seen(&[(AgentState::Ready, 80_000)])]), (1, Some(NOW + 10_000)));
        assert_eq!(of(&[seen(&[])]), (1, Some(NOW + 30_000)));
        let old = Seen { created_at: NOW - 90_000, agents: vec![] };
        assert_eq!(of(&[old]), (0, None));
        let two = [seen(&[(AgentState::Working, 1), (AgentState::Done, 1)])];
        assert_eq!(busy(working, 1, &two, 15_000, NOW), (3, Some(NOW + 14_999)));
    }
}
