//! Where a dialog stands and how large it may be: in the middle of the screen, a step aside from
//! the others, never larger than the screen.

use gtk::gdk;
use gtk::prelude::*;

const STEP: i32 = 28;
/// After so many the next stands in the middle again.
const SLOTS: usize = 8;

/// The first place nobody has.
pub fn free_slot(taken: impl Iterator<Item = usize>) -> usize {
    let taken: Vec<usize> = taken.collect();
    (0..=taken.len()).find(|slot| !taken.contains(slot)).unwrap_or(0)
}

/// The part of the screen that panels leave free.
pub fn work_area() -> gdk::Rectangle {
    let screen = gdk::Display::default().and_then(|d| d.primary_monitor().or_else(|| d.monitor(0)));
    screen.map_or_else(|| gdk::Rectangle::new(0, 0, 1024, 600), |m| m.workarea())
}

/// Only a wish where the window system places windows itself (Wayland).
pub fn put(dialog: &gtk::Dialog, slot: usize) {
    let (_, size) = dialog.preferred_size();
    let area = work_area();
    let aside = STEP * i32::try_from(slot % SLOTS).unwrap_or(0);
    dialog.move_(
        area.x() + start(area.width(), size.width, 2, aside),
        area.y() + start(area.height(), size.height, 3, aside),
    );
}

/// A dialog that has grown moves up, as far as it must and no further.
pub fn keep_on_screen(dialog: &gtk::Dialog) {
    let ((x, y), (_, size)) = (dialog.position(), dialog.preferred_size());
    let area = work_area();
    let top = pulled_in(y - area.y(), size.height, area.height()) + area.y();
    if top != y {
        dialog.move_(x, top);
    }
}

fn pulled_in(top: i32, size: i32, room: i32) -> i32 {
    top.min(room - size).max(0)
}

/// Where something of `size` starts in `room`, `aside` from its usual place but still inside.
fn start(room: i32, size: i32, part: i32, aside: i32) -> i32 {
    let free = (room - size).max(0);
    (free / part + aside).min(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again() {
        assert_eq!(free_slot([].into_iter()), 0);
        assert_eq!(free_slot([0, 2].into_iter()), 1);
    }

    #[test]
    fn what_grows_moves_up_only_as_far_as_it_must() {
        assert_eq!(pulled_in(100, 300, 800), 100);
        assert_eq!(pulled_in(600, 300, 800), 500);
        assert_eq!(pulled_in(600, 900, 800), 0);
    }

    #[test]
    fn nothing_leaves_the_screen() {
        assert_eq!(start(1000, 600, 2, 0), 200);
        assert_eq!(start(1000, 600, 2, 28), 228);
        assert_eq!(start(1000, 990, 2, 28), 10);
        assert_eq!(start(1000, 2000, 2, 28), 0);
    }
}
