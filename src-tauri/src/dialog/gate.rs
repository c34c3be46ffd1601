//! When the yes can be pressed: not before a person could have read the question.
//!
//! Two conditions; going on without the listed files needs only the first. The dialog has been on screen as it is for a moment, so that a click or key on
//! its way to another window, or to another button, is not an answer. And where the question does
//! not fit, its end was scrolled into view. The broker holds the first one again by itself.

use super::layout::Layout;
use agentbox_desktop::labels::GRACE;
use gtk::glib;
use gtk::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// Rounding of sizes must not hide the end for ever.
const SLACK: f64 = 2.0;
const SCROLL: &str = "Scroll to the end to allow";

/// Keeps the button insensitive until both conditions hold.
pub fn guard(layout: &Layout) -> Rc<Gate> {
    let scrolled = layout.scroller.vadjustment();
    let gate = Rc::new(Gate {
        round: Cell::new(0),
        on_screen_long_enough: Cell::new(false),
        read: Cell::new(false),
        allow: layout.allow.downgrade(),
        without: layout.without.as_ref().map(ObjectExt::downgrade),
        hint: layout.hint.downgrade(),
        scrolled: scrolled.downgrade(),
    });
    gate.shut();
    let of_map = gate.clone();
    layout.dialog.connect_map(move |_| of_map.begin());
    let of_scroll = gate.clone();
    scrolled.connect_value_changed(move |_| of_scroll.look());
    let of_size = gate.clone();
    scrolled.connect_changed(move |_| of_size.look());
    gate
}

pub struct Gate {
    /// Counts the pauses: only the end of the last one counts.
    round: Cell<u32>,
    on_screen_long_enough: Cell<bool>,
    /// The end of the question has been in view.
    read: Cell<bool>,
    allow: glib::WeakRef<gtk::Widget>,
    without: Option<glib::WeakRef<gtk::Widget>>,
    hint: glib::WeakRef<gtk::Label>,
    scrolled: glib::WeakRef<gtk::Adjustment>,
}

impl Gate {
    /// The dialog came up, or what the yes means has changed: it waits anew.
    pub fn begin(self: &Rc<Self>) {
        self.on_screen_long_enough.set(false);
        self.shut();
        let (gate, round) = (self.clone(), self.round.get() + 1);
        self.round.set(round);
        glib::timeout_add_local_once(GRACE, move || {
            if gate.round.get() == round {
                gate.on_screen_long_enough.set(true);
                gate.look();
            }
        });
    }

    fn shut(&self) {
        for button in [self.allow.upgrade(), self.without()].into_iter().flatten() {
            button.set_sensitive(false);
        }
    }

    fn without(&self) -> Option<gtk::Widget> {
        self.without.as_ref().and_then(glib::WeakRef::upgrade)
    }

    /// What is pressed now is meant for this dialog.
    pub fn is_settled(&self) -> bool {
        self.on_screen_long_enough.get()
    }

    fn look(&self) {
        let Some(scrolled) = self.scrolled.upgrade() else { return };
        // Before it is drawn an area of no height seems to show its end.
        if !self.on_screen_long_enough.get() || scrolled.page_size() < 1.0 {
            return;
        }
        if let Some(without) = self.without() {
            without.set_sensitive(true);
        }
        if at_end(scrolled.value(), scrolled.page_size(), scrolled.upper()) {
            self.read.set(true);
        }
        let (Some(allow), Some(hint)) = (self.allow.upgrade(), self.hint.upgrade()) else { return };
        allow.set_sensitive(self.read.get());
        hint.set_text(if self.read.get() { "" } else { SCROLL });
    }
}

fn at_end(value: f64, page: f64, upper: f64) -> bool {
    value + page >= upper - SLACK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_in_view_or_not() {
        assert!(at_end(0.0, 300.0, 300.0), "all of it fits");
        assert!(!at_end(0.0, 300.0, 900.0));
        assert!(!at_end(500.0, 300.0, 900.0));
        assert!(at_end(599.5, 300.0, 900.0));
    }
}
