//! Which unit is to do what next. Pure: what stands goes in, what is to change comes out.
//!
//! A dependency counts as it stands now, not as it once was. The caller applies every action, which
//! changes a state, and asks again until nothing is left to do.

use protocol::supervisor::UnitState as State;

/// What scheduling needs to know of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub is_task: bool,
    /// Indexes of the units it needs.
    pub needs: Vec<usize>,
    pub state: State,
    /// It is to run: by itself, or because somebody said so.
    pub wanted: bool,
    /// Whatever it needs.
    pub now: bool,
    pub probed: bool,
    /// It ended by itself before anybody could have relied on it.
    pub ended_early: bool,
}

/// How a unit stands for those that need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Satisfied,
    Open,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Launch(usize),
    Wait(usize),
    Skip(usize),
    /// What it was skipped for has changed.
    Revive(usize),
}

impl Node {
    pub fn standing(&self) -> Standing {
        match self.state {
            State::Done | State::Ready => Standing::Satisfied,
            State::Running if !self.is_task && !self.probed => Standing::Satisfied,
            State::Failed | State::Skipped | State::Crashed => Standing::Failed,
            State::Stopped if self.ended_early => Standing::Failed,
            _ => Standing::Open,
        }
    }

    /// Of its needs.
    fn needed(&self, all: &[Node]) -> Standing {
        let mut worst = Standing::Satisfied;
        for standing in self.needs.iter().filter_map(|need| all.get(*need)).map(Node::standing) {
            match standing {
                Standing::Failed => return Standing::Failed,
                Standing::Open => worst = Standing::Open,
                Standing::Satisfied => {}
            }
        }
        worst
    }

    fn next(&self, at: usize, all: &[Node]) -> Option<Action> {
        let needed = if self.now { Standing::Satisfied } else { self.needed(all) };
        match (self.state, needed) {
            (State::Skipped, Standing::Open | Standing::Satisfied) => Some(Action::Revive(at)),
            (State::Pending | State::Waiting, _) if !self.wanted => None,
            (State::Pending | State::Waiting, Standing::Satisfied) => Some(Action::Launch(at)),
            (State::Pending | State::Waiting, Standing::Failed) if self.is_task => {
                Some(Action::Skip(at))
            }
            (State::Pending, _) => Some(Action::Wait(at)),
            _ => None,
        }
    }
}

/// What is to change, each unit at most once.
pub fn schedule(units: &[Node]) -> Vec<Action> {
    units.iter().enumerate().filter_map(|(at, unit)| unit.next(at, units)).collect()
}

/// Groups of units to stop one after the other: whoever needs a unit goes before it.
pub fn stop_order(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut left: Vec<bool> = vec![true; needs.len()];
    let mut groups = Vec::new();
    loop {
        let needed = |at: usize| (0..needs.len()).any(|by| left[by] && needs[by].contains(&at));
        let group: Vec<usize> = (0..needs.len()).filter(|at| left[*at] && !needed(*at)).collect();
        if group.is_empty() {
            return groups;
        }
        for at in &group {
            left[*at] = false;
        }
        groups.push(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(is_task: bool, needs: Vec<usize>) -> Node {
        Node {
            is_task,
            needs,
            state: State::Pending,
            wanted: true,
            now: false,
            probed: !is_task,
            ended_early: false,
        }
    }

    fn apply(units: &mut [Node], action: Action) {
        match action {
            Action::Launch(at) => units[at].state = State::Running,
            Action::Wait(at) => units[at].state = State::Waiting,
            Action::Skip(at) => units[at].state = State::Skipped,
            Action::Revive(at) => units[at].state = State::Pending,
        }
    }

    /// Runs until nothing is left to do; every launch finds its needs met.
    fn settle(units: &mut [Node], started: &mut Vec<usize>) {
        for _ in 0..=units.len() * 4 {
            let actions = schedule(units);
            if actions.is_empty() {
                return;
            }
            for action in actions {
                if let Action::Launch(at) = action {
                    let met = |need: &usize| units[*need].standing() == Standing::Satisfied;
                    assert!(units[at].needs.iter().all(met), "{at} of {units:?}");
                    started.push(at);
                }
                apply(units, action);
            }
        }
        panic!("it never settles: {units:?}");
    }

    prop_compose! {
        /// Units that need earlier ones only, each with how it will end.
        fn graph()(size in 1usize..12)(
            picks in proptest::collection::vec(proptest::collection::vec(0usize..1000, 0..4), size),
            tasks in proptest::collection::vec(any::<bool>(), size),
            ends in proptest::collection::vec(0u8..5, size),
            order in proptest::collection::vec(0usize..1000, 0..80),
        ) -> (Vec<Node>, Vec<u8>, Vec<usize>) {
            let nodes = picks.iter().zip(&tasks).enumerate().map(|(at, (picks, is_task))| {
                let mut needs: Vec<usize> =
                    picks.iter().filter(|_| at > 0).map(|p| p % at.max(1)).collect();
                needs.sort_unstable();
                needs.dedup();
                node(*is_task, needs)
            });
            (nodes.collect(), ends, order)
        }
    }

    proptest! {
        #[test]
        fn nothing_starts_before_its_needs_and_nothing_is_left_waiting(
            (mut units, ends, order) in graph()
        ) {
            let mut started = Vec::new();
            settle(&mut units, &mut started);
            for pick in order.iter().copied().chain(0..units.len() * units.len()) {
                let at = pick % units.len();
                if units[at].state == State::Running {
                    units[at].state = match (units[at].is_task, ends[at]) {
                        (true, 0) => State::Failed,
                        (true, _) => State::Done,
                        (false, 0) => State::Crashed,
                        (false, 1) => State::Backoff,
                        (false, _) => State::Ready,
                    };
                }
                settle(&mut units, &mut started);
            }
            for unit in &units {
                let needed = unit.needed(&units);
                match unit.state {
                    State::Waiting => prop_assert!(needed != Standing::Satisfied, "{units:?}"),
                    State::Skipped => prop_assert!(needed == Standing::Failed, "{units:?}"),
                    State::Pending | State::Running => prop_assert!(false, "{units:?}"),
                    _ => {}
                }
            }
            let unique: std::collections::HashSet<_> = started.iter().collect();
            prop_assert_eq!(unique.len(), started.len());
        }

        #[test]
        fn whoever_needs_a_unit_stops_before_it((units, _, _) in graph()) {
            let needs: Vec<Vec<usize>> = units.iter().map(|unit| unit.needs.clone()).collect();
            let groups = stop_order(&needs);
            let place = |at: usize| groups.iter().position(|group| group.contains(&at)).unwrap();
            for (at, unit) in needs.iter().enumerate() {
                for need in unit {
                    prop_assert!(place(at) < place(*need));
                }
            }
            prop_assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), units.len());
        }
    }

    #[test]
    fn yaml_13_12_a_failed_need_skips_tasks_and_holds_services() {
        let mut units = vec![node(true, vec![]), node(true, vec![0]), node(false, vec![0])];
        units[0].state = State::Failed;
        assert_eq!(schedule(&units), [Action::Skip(1), Action::Wait(2)]);
        units[1].state = State::Skipped;
        units[2].state = State::Waiting;
        assert_eq!(schedule(&units), []);
        units[0].state = State::Done;
        assert_eq!(schedule(&units), [Action::Revive(1), Action::Launch(2)]);
    }

    #[test]
    fn a_dependency_counts_as_it_stands_now() {
        let mut units = vec![node(false, vec![]), node(false, vec![0])];
        units[0].state = State::Backoff;
        units[1].state = State::Waiting;
        assert_eq!(schedule(&units), []);
        units[1].now = true;
        assert_eq!(schedule(&units), [Action::Launch(1)]);
    }

    #[test]
    fn yaml_13_15_what_is_not_wanted_stays() {
        let mut units = vec![node(false, vec![])];
        units[0].wanted = false;
        assert_eq!(schedule(&units), []);
        units[0].wanted = true;
        assert_eq!(schedule(&units), [Action::Launch(0)]);
    }

    #[test]
    fn a_service_that_ends_before_it_was_up_has_failed() {
        let mut unit = node(false, vec![]);
        unit.state = State::Stopped;
        assert_eq!(unit.standing(), Standing::Open);
        unit.ended_early = true;
        assert_eq!(unit.standing(), Standing::Failed);
    }
}
