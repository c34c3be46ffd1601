//! Text in the windows of our own: plain text, never markup, in a few ways of saying it.

use gtk::pango::{self, AttrList};
use gtk::prelude::*;

/// Between the parts of a dialog.
pub const GAP: i32 = 12;
/// How long a dialog has to be on screen as it is before a yes can be pressed: a click or key on its way to
/// another window, or to another button, is no answer.
pub const GRACE: std::time::Duration = std::time::Duration::from_millis(350);

/// One line of plain text.
pub fn line(text: &str) -> gtk::Label {
    let label = gtk::Label::new(None);
    label.set_text(text);
    label.set_xalign(0.0);
    label
}

/// One line that is not the first to be read.
pub fn dim(text: &str) -> gtk::Label {
    let label = line(text);
    fade(&label);
    label
}

/// The theme's own `dim-label` is too pale to read.
pub fn fade(label: &gtk::Label) {
    label.set_opacity(0.75);
}

/// Plain text that wraps, inside a word if need be.
pub fn text_of(text: &str) -> gtk::Label {
    let label = line(text);
    label.set_line_wrap(true);
    label.set_line_wrap_mode(pango::WrapMode::WordChar);
    label.set_hexpand(true);
    label
}

pub fn bold(scale: f64) -> AttrList {
    let list = AttrList::new();
    list.insert(pango::AttrInt::new_weight(pango::Weight::Bold));
    list.insert(pango::AttrFloat::new_scale(scale));
    list
}

pub fn monospace() -> AttrList {
    let list = AttrList::new();
    list.insert(pango::AttrString::new_family("monospace"));
    list
}

/// Set apart from what we say ourselves.
pub fn sheet(content: &impl IsA<gtk::Widget>) -> gtk::Frame {
    content.set_margin_top(8);
    content.set_margin_bottom(8);
    content.set_margin_start(10);
    content.set_margin_end(10);
    let frame = gtk::Frame::new(None);
    frame.style_context().add_class("view");
    frame.add(content);
    frame
}
