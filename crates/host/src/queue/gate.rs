//! Whether there is room for one more, and if not, when that may change by itself.
//!
//! What an agent does is its box's own word, and a box may lie: it takes up one place at most, only for
//! agents this host has started in it, and not for ever.

use protocol::Millis;
use protocol::queue::Gate;
use protocol::sessions::AgentState;

/// An agent that has said nothing yet counts as working for so long.
const UNKNOWN: Millis = 90_000;

/// No agent takes longer over it. One that gives it up does not say so.
const COMPACTING: Millis = 10 * 60 * 1000;

/// A box nobody has used for so long is no reason to wait, whatever it says.
const LONGEST: Millis = 6 * 60 * 60 * 1000;

/// A box that runs.
pub struct Seen {
    pub created_at: Millis,
    /// When a person or this host last did something in it.
    pub used_at: Millis,
    /// What the agents do that this host has started in it, and since when.
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
    let ends = running.iter().map(|seen| seen.ends(grace)).filter(|end| *end > now);
    let ends: Vec<Millis> = ends.collect();
    (count(making + ends.len()), ends.iter().min().copied())
}

impl Seen {
    /// Until when it counts as one with an agent at work, if nothing happens.
    fn ends(&self, grace: Millis) -> Millis {
        let longest = self.used_at.saturating_add(LONGEST);
        let end = |(state, since): &(AgentState, Millis)| match state {
            AgentState::Working => longest,
            AgentState::Compacting => since.saturating_add(COMPACTING).min(longest),
            AgentState::Ready => since.saturating_add(UNKNOWN).min(longest),
            AgentState::Waiting
            | AgentState::Done
            | AgentState::EndPlan
            | AgentState::Question
            | AgentState::Error => since.saturating_add(grace).min(longest),
        };
        let ends = self.agents.iter().map(end).max();
        ends.unwrap_or(self.created_at.saturating_add(UNKNOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_000_000;

    fn seen(agents: &[(AgentState, Millis)]) -> Seen {
        let agents = agents.iter().map(|(state, ago)| (*state, NOW - ago)).collect();
        Seen { created_at: NOW - 60_000, used_at: NOW - 5000, agents }
    }

    fn working(boxes: &[Seen]) -> (u32, Option<Millis>) {
        busy(Gate::Working(2), 0, boxes, 15_000, NOW)
    }

    #[test]
    fn boxes_that_run_and_boxes_being_made_take_room() {
        let boxes = [seen(&[]), seen(&[(AgentState::Done, 500_000)])];
        assert_eq!(busy(Gate::Running(5), 1, &boxes, 15_000, NOW), (3, None));
    }

    #[test]
    fn only_agents_at_work_take_room_and_those_that_were_a_moment_ago() {
        let longest = Some(NOW - 5000 + LONGEST);
        assert_eq!(working(&[seen(&[(AgentState::Working, 900_000)])]), (1, longest));
        assert_eq!(working(&[seen(&[(AgentState::Done, 14_000)])]), (1, Some(NOW + 1000)));
        assert_eq!(working(&[seen(&[(AgentState::Waiting, 15_000)])]), (0, None));
        assert_eq!(working(&[seen(&[(AgentState::Ready, 80_000)])]), (1, Some(NOW + 10_000)));
        assert_eq!(working(&[seen(&[(AgentState::Compacting, 599_000)])]), (1, Some(NOW + 1000)));
        for asks in [AgentState::EndPlan, AgentState::Question, AgentState::Error] {
            assert_eq!(working(&[seen(&[(asks, 15_000)])]), (0, None));
        }
        assert_eq!(working(&[seen(&[])]), (1, Some(NOW + 30_000)));
        let old = Seen { created_at: NOW - 90_000, ..seen(&[]) };
        assert_eq!(working(&[old]), (0, None));
        let made = busy(Gate::Working(2), 1, &[seen(&[(AgentState::Done, 1)])], 15_000, NOW);
        assert_eq!(made, (2, Some(NOW + 14_999)));
    }

    #[test]
    fn a_box_that_reports_many_agents_at_work_takes_one_place() {
        let many = seen(&[(AgentState::Done, 1), (AgentState::Working, 1), (AgentState::Ready, 1)]);
        assert_eq!(working(&[many]), (1, Some(NOW - 5000 + LONGEST)));
    }

    #[test]
    fn a_box_that_reports_work_for_ever_is_waited_for_only_so_long() {
        let now = NOW + LONGEST;
        let liar = Seen { created_at: 0, used_at: NOW, agents: vec![(AgentState::Working, now)] };
        let of = |now| busy(Gate::Working(1), 0, std::slice::from_ref(&liar), 15_000, now);
        assert_eq!(of(now - 1), (1, Some(now)));
        assert_eq!(of(now), (0, None));
        let again =
            Seen { agents: vec![(AgentState::Done, now), (AgentState::Ready, now)], ..liar };
        assert_eq!(busy(Gate::Working(1), 0, &[again], 15_000, now), (0, None));
    }
}
