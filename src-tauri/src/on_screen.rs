//! Where a dialog stands and how large it may be: in the middle of the screen, never larger than it.

use gtk::gdk;
use gtk::prelude::*;

/// The part of the screen that panels leave free.
pub fn work_area() -> gdk::Rectangle {
    let screen = gdk::Display::default().and_then(|d| d.primary_monitor().or_else(|| d.monitor(0)));
    screen.map_or_else(|| gdk::Rectangle::new(0, 0, 1024, 600), |m| m.workarea())
}

/// Only a wish where the window system places windows itself (Wayland).
pub fn put(dialog: &gtk::Dialog) {
    let (_, size) = dialog.preferred_size();
    let area = work_area();
    dialog.move_(
        area.x() + start(area.width(), size.width, 2),
        area.y() + start(area.height(), size.height, 3),
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

/// Where something of `size` starts in `room`: with so much of what is free before it.
fn start(room: i32, size: i32, part: i32) -> i32 {
    (room - size).max(0) / part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_moves_up_only_as_far_as_it_must() {
        assert_eq!(pulled_in(100, 300, 800), 100);
        assert_eq!(pulled_in(600, 300, 800), 500);
        assert_eq!(pulled_in(600, 900, 800), 0);
    }

    #[test]
    fn nothing_leaves_the_screen() {
        assert_eq!(start(1000, 600, 2), 200);
        assert_eq!(start(1000, 990, 2), 5);
        assert_eq!(start(1000, 2000, 2), 0);
    }
}
