//! How often a box has asked lately, so that nobody is worn down until they click yes.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Questions of one box that may be raised in [`WINDOW`].
const QUESTIONS: usize = 20;
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// So many denials of one method in [`PAUSE`] mean no for another [`PAUSE`].
const DENIALS: usize = 3;
pub const PAUSE: Duration = Duration::from_secs(5 * 60);

/// One box's recent past.
#[derive(Debug, Default)]
pub struct History {
    asked: VecDeque<Instant>,
    denied: VecDeque<(Instant, String)>,
}

impl History {
    /// The box has to wait before it may raise another question of this kind.
    pub fn is_too_much(&mut self, method: &str, now: Instant) -> bool {
        while self.asked.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            self.asked.pop_front();
        }
        while self.denied.front().is_some_and(|(at, _)| now.duration_since(*at) >= PAUSE) {
            self.denied.pop_front();
        }
        self.asked.len() >= QUESTIONS || self.is_paused(method, now)
    }

    pub fn note_asked(&mut self, now: Instant) {
        self.asked.push_back(now);
    }

    /// True when this was the one too many: the method is not heard for [`PAUSE`] from now on.
    pub fn note_denied(&mut self, method: &str, now: Instant) -> bool {
        let paused = self.is_paused(method, now);
        self.denied.push_back((now, method.to_owned()));
        !paused && self.is_paused(method, now)
    }

    fn is_paused(&self, method: &str, now: Instant) -> bool {
        let recent = |at: &Instant| now.duration_since(*at) < PAUSE;
        self.denied.iter().filter(|(at, m)| m == method && recent(at)).count() >= DENIALS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn relay_a22_a_flood_of_questions_is_stopped() {
        let mut history = History::default();
        for _ in 0..20 {
            assert!(!history.is_too_much("git.push", Instant::now()));
            history.note_asked(Instant::now());
        }
        assert!(history.is_too_much("git.push", Instant::now()));
        tokio::time::advance(WINDOW).await;
        assert!(!history.is_too_much("git.push", Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn relay_a22_three_denials_of_one_kind_are_enough_for_a_while() {
        let mut history = History::default();
        for last in [false, false, true] {
            assert!(!history.is_too_much("git.push", Instant::now()));
            assert_eq!(history.note_denied("git.push", Instant::now()), last);
        }
        assert!(!history.note_denied("git.push", Instant::now()), "that is known already");
        assert!(history.is_too_much("git.push", Instant::now()));
        assert!(!history.is_too_much("gh.pr.create", Instant::now()));
        tokio::time::advance(PAUSE).await;
        assert!(!history.is_too_much("git.push", Instant::now()));
    }
}
