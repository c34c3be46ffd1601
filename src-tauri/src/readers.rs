//! What a screen reader says of a dialog's parts that hold no text of their own.

use gtk::atk::prelude::*;
use gtk::atk::{self, Role};
use gtk::prelude::*;

/// Gives a widget a name, and a sentence about it.
pub fn call(widget: &impl IsA<gtk::Widget>, name: &str, about: &str) {
    if let Some(accessible) = widget.accessible() {
        accessible.set_name(name);
        accessible.set_description(about);
    }
}

/// Adds a sentence to what has a name already.
pub fn describe(widget: &impl IsA<gtk::Widget>, about: &str) {
    if let Some(accessible) = widget.accessible() {
        accessible.set_description(about);
    }
}

/// Names something that is drawn and cannot be pressed.
pub fn picture(widget: &impl IsA<gtk::Widget>, name: &str) {
    if let Some(accessible) = widget.accessible() {
        accessible.set_name(name);
    }
    set_role(widget, Role::Image);
}

/// As [`call`], for a part that holds others.
pub fn group(widget: &impl IsA<gtk::Widget>, name: &str, about: &str) {
    call(widget, name, about);
    set_role(widget, Role::Panel);
}

/// Said as soon as it changes, wherever the reader is.
pub fn speaks_up(widget: &impl IsA<gtk::Widget>) {
    set_role(widget, Role::Alert);
}

fn set_role(widget: &impl IsA<gtk::Widget>, role: Role) {
    if let Some(accessible) = widget.accessible() {
        atk::prelude::AtkObjectExt::set_role(&accessible, role);
    }
}
