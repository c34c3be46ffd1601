//! Where each thing that can be chosen stands in the tray's menu, and since when.
//!
//! A click is aimed at what was read, and the menu may change on its way. The surprising thing: panels name an
//! entry by a number that counts places, and a menu of the same shape keeps its numbers, so the click on a
//! question that has ended would reach the one that moved up. Two things keep that from happening: such a menu
//! gets new numbers, and a yes counts only where it has stood for a moment, for an eye is slower than a panel.

use crate::menu::{Action, Entry, Item};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// As long as every other surface makes a yes wait.
const GRACE: Duration = Duration::from_millis(350);

/// Whether a place now means something else than before.
pub fn differ(from: &[Entry], to: &[Entry]) -> bool {
    !in_order(from).eq(in_order(to))
}

/// Every line of the menu from top to bottom, with what it does.
fn in_order(menu: &[Entry]) -> impl Iterator<Item = Option<&Action>> {
    menu.iter().flat_map(|entry| {
        let (own, below): (_, &[Item]) = match entry {
            Entry::Text(_) | Entry::Separator => (None, &[]),
            Entry::Item(item) => (Some(&item.action), &[]),
            Entry::Submenu { items, .. } => (None, items),
        };
        std::iter::once(own).chain(below.iter().map(|item| Some(&item.action)))
    })
}

/// Since when each yes stands where it does.
#[derive(Debug, Default)]
pub struct Standing(HashMap<String, (usize, Instant)>);

impl Standing {
    /// The menu was drawn like this.
    pub fn drawn(&mut self, menu: &[Entry], now: Instant) {
        let of = |(place, action): (usize, Option<&Action>)| {
            let id = action.filter(|action| is_yes(action))?.to_id();
            let before = self.0.get(&id).filter(|(was, _)| *was == place);
            let since = before.map_or(now, |(_, since)| *since);
            Some((id, (place, since)))
        };
        self.0 = in_order(menu).enumerate().filter_map(of).collect();
    }

    /// Whether what was chosen may have been aimed at what stood there before.
    pub fn is_too_new(&self, action: &Action, now: Instant) -> bool {
        let since = self.0.get(&action.to_id()).map(|(_, since)| *since);
        // One that is in the menu no more was clicked in an older one: it names its question itself.
        is_yes(action) && since.is_some_and(|since| now.duration_since(since) < GRACE)
    }
}

fn is_yes(action: &Action) -> bool {
    matches!(action, Action::AllowOnce { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;
    use crate::live::samples::{a_box, question};
    use crate::menu::view;
    use protocol::boxes::BoxState;
    use protocol::question::Question;

    fn asked(ids: impl IntoIterator<Item = u8>) -> Vec<Question> {
        ids.into_iter().map(|id| question(id, "a", &format!("Push {id}"))).collect()
    }

    fn menu(questions: Vec<Question>) -> Vec<Entry> {
        view(&Live { questions, ..Live::default() }).menu
    }

    fn yes(id: u8) -> Action {
        let q = question(id, "a", "Push");
        Action::AllowOnce { id: q.id, digest: q.digest }
    }

    #[test]
    fn a_place_that_means_something_else_is_seen_even_if_the_shape_is_the_same() {
        // Ten of twelve are listed; when the first ends the list is as long as it was.
        let (before, after) = (menu(asked(1..=12)), menu(asked(2..=12)));
        assert_eq!(in_order(&before).count(), in_order(&after).count());
        assert!(differ(&before, &after));
        assert!(
            !differ(&before, &menu(asked(1..=13))),
            "only what leads to the others counts anew"
        );
        let mut other = asked(1..=12);
        other[1].digest = "another".into();
        assert!(differ(&before, &menu(other)), "the same question says something else");
        assert!(differ(&before, &menu(asked([2, 1].into_iter().chain(3..=12)))));
    }

    #[test]
    fn a_box_that_takes_the_place_of_another_is_seen_and_one_that_does_something_else_is_not() {
        let of = |id, name: &str| {
            let boxes = vec![a_box(id, name, "shop", BoxState::Running)];
            view(&Live { boxes, ..Live::default() }).menu
        };
        assert!(differ(&of(1, "a"), &of(2, "b")));
        assert!(!differ(&of(1, "a"), &of(1, "renamed")), "words alone move nothing");
    }

    #[test]
    fn a_yes_waits_anew_where_it_has_just_come_to_stand() {
        let (mut standing, start) = (Standing::default(), Instant::now());
        standing.drawn(&menu(asked(1..=3)), start);
        assert!(standing.is_too_new(&yes(1), start));
        let later = start + GRACE;
        assert!(!standing.is_too_new(&yes(2), later));
        // The first ends, the others move up, and one comes.
        standing.drawn(&menu(asked(2..=4)), later);
        for id in [2, 3, 4] {
            assert!(standing.is_too_new(&yes(id), later), "{id}");
            assert!(!standing.is_too_new(&yes(id), later + GRACE), "{id}");
        }
        // One that comes below moves nobody.
        standing.drawn(&menu(asked(2..=5)), later + GRACE);
        assert!(!standing.is_too_new(&yes(2), later + GRACE));
        assert!(standing.is_too_new(&yes(5), later + GRACE));
    }

    #[test]
    fn a_no_never_waits() {
        let (mut standing, now) = (Standing::default(), Instant::now());
        standing.drawn(&menu(asked(1..=1)), now);
        let q = question(1, "a", "Push");
        assert!(!standing.is_too_new(&Action::Deny { id: q.id, digest: q.digest }, now));
        assert!(!standing.is_too_new(&Action::Quit, now));
    }
}
