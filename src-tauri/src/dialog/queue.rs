//! Whose turn it is: one question at a time is before the person, the others wait, oldest first.
//!
//! What is before them stays until it is over: nothing that comes or goes meanwhile takes its place.
//! No widgets here.

use protocol::QuestionId;
use protocol::question::Question;
use std::collections::VecDeque;

#[derive(Default)]
pub struct Queue {
    current: Option<QuestionId>,
    waiting: VecDeque<Question>,
}

impl Queue {
    /// Its place is by age: an older one may be told of later, when its box has room for it.
    pub fn add(&mut self, question: Question) {
        let known = self.waiting.iter().any(|q| q.id == question.id);
        if known || self.current.as_ref() == Some(&question.id) {
            return;
        }
        let at = self.waiting.partition_point(|q| q.created_at <= question.created_at);
        self.waiting.insert(at, question);
    }

    /// It was asked for once more: one that waits says so when its turn comes.
    pub fn again(&mut self, question: &Question) {
        if let Some(waiting) = self.waiting.iter_mut().find(|q| q.id == question.id) {
            waiting.times = question.times;
        }
    }

    /// Forgets a question that waits; false when it is not among them.
    pub fn withdraw(&mut self, id: &QuestionId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|q| q.id != *id);
        self.waiting.len() < before
    }

    /// The next one, when nothing is before the person.
    pub fn next(&mut self) -> Option<Question> {
        if self.current.is_some() {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.current = Some(next.id.clone());
        Some(next)
    }

    /// The one before the person has gone from the screen.
    pub fn done(&mut self, id: &QuestionId) {
        self.current.take_if(|current| current == id);
    }

    /// How many there are, the one before the person included.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }
}

/// “1 of 3”; nothing where there is only one.
pub fn place(all: usize) -> String {
    if all > 1 { format!("1 of {all}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::question;

    fn asked(id: u8, at: u64) -> Question {
        Question { created_at: at, ..question(id, "a", "Push") }
    }

    fn of(questions: &[Question]) -> Queue {
        let mut queue = Queue::default();
        for question in questions {
            queue.add(question.clone());
        }
        queue
    }

    #[test]
    fn one_at_a_time_and_the_oldest_first() {
        let (one, two, three) = (asked(1, 10), asked(2, 20), asked(3, 30));
        let mut queue = of(&[three.clone(), one.clone(), two.clone()]);
        assert_eq!(queue.next().map(|q| q.id), Some(one.id.clone()));
        assert_eq!(queue.next(), None, "one is there");
        assert_eq!(queue.len(), 3);
        queue.done(&two.id);
        assert_eq!(queue.next(), None, "that was another one");
        queue.done(&one.id);
        assert_eq!(queue.next().map(|q| q.id), Some(two.id.clone()));
        queue.done(&two.id);
        assert_eq!(queue.next().map(|q| q.id), Some(three.id.clone()));
        queue.done(&three.id);
        assert_eq!((queue.next(), queue.len()), (None, 0));
    }

    #[test]
    fn nothing_takes_the_place_of_what_a_person_is_about_to_answer() {
        let mut queue = of(&[asked(2, 20)]);
        let shown = queue.next().unwrap();
        queue.add(asked(1, 10));
        queue.add(shown.clone());
        assert_eq!((queue.next(), queue.len()), (None, 2));
        queue.done(&shown.id);
        assert_eq!(queue.next().map(|q| q.created_at), Some(10));
    }

    #[test]
    fn the_same_age_keeps_the_order_of_arrival() {
        let mut queue = of(&[asked(3, 5), asked(1, 5), asked(2, 5)]);
        let mut order = Vec::new();
        while let Some(next) = queue.next() {
            queue.done(&next.id);
            order.push(next.id);
        }
        assert_eq!(order, [3, 1, 2].map(|id| asked(id, 5).id));
    }

    #[test]
    fn what_is_over_before_its_turn_is_never_shown() {
        let (one, two, three) = (asked(1, 10), asked(2, 20), asked(3, 30));
        let mut queue = of(&[one.clone(), two.clone(), three.clone()]);
        queue.next();
        assert!(queue.withdraw(&two.id));
        assert!(!queue.withdraw(&two.id));
        assert!(!queue.withdraw(&one.id), "it is on screen");
        queue.done(&one.id);
        assert_eq!(queue.next().map(|q| q.id), Some(three.id));
    }

    #[test]
    fn one_that_waits_knows_how_often_it_was_asked() {
        let (one, two) = (asked(1, 10), asked(2, 20));
        let mut queue = of(&[one.clone(), two.clone()]);
        queue.next();
        for question in [&one, &two] {
            queue.again(&Question { times: 3, ..question.clone() });
        }
        queue.done(&one.id);
        assert_eq!(queue.next().map(|q| (q.id, q.times)), Some((two.id, 3)));
    }

    #[test]
    fn a_place_is_told_where_there_are_several() {
        assert_eq!([0, 1, 2, 1000].map(place), ["", "", "1 of 2", "1 of 1000"]);
    }

    #[test]
    fn a_thousand_wait_without_work() {
        let started = std::time::Instant::now();
        let mut queue = Queue::default();
        let nth = |n: u64| Question {
            id: format!("{n:032x}").parse().unwrap(),
            created_at: 1000 - n,
            ..question(1, "a", "Push")
        };
        for n in 0..1000 {
            queue.add(nth(n));
        }
        assert_eq!(queue.len(), 1000);
        for n in 0..500 {
            assert!(queue.withdraw(&nth(n).id));
        }
        let mut last = 0;
        while let Some(next) = queue.next() {
            assert!(next.created_at > last);
            last = next.created_at;
            queue.done(&next.id);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }
}
