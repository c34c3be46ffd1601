//! The window's own question about a change that lets boxes do more: a window that no page can draw,
//! press or hide.
//!
//! Deny is the default and has the focus, and the yes cannot be pressed in the first moment: a page can
//! choose when it comes up, so a key or click on its way to the page must be a no. Closing it is a no.

use agentbox_desktop::labels::{GAP, GRACE, bold, fade, monospace, sheet, text_of};
use agentbox_desktop::{on_screen, readers};
use agentbox_window::Loosening;
use gtk::glib;
use gtk::prelude::*;
use std::sync::mpsc::Sender;

/// In letters: what is longer wraps.
const WIDTH: i32 = 60;
pub const TITLE: &str = "AgentBox asks";
const WHY: &str =
    "AgentBox's window asks for this. Deny it if it was not you who just asked for it there.";

/// Asks, and says once what was answered. Main thread only.
pub fn ask(parent: Option<&gtk::ApplicationWindow>, to: &Loosening, answer: Sender<bool>) {
    let dialog = gtk::Dialog::new();
    dialog.set_title(TITLE);
    dialog.set_transient_for(parent);
    dialog.set_keep_above(true);
    dialog.set_urgency_hint(true);
    dialog.set_resizable(false);
    let content = dialog.content_area();
    content.set_spacing(GAP);
    content.set_border_width(GAP.unsigned_abs());
    for part in parts(to) {
        content.pack_start(&part, false, false, 0);
    }
    let change = dialog.add_button(to.verb, gtk::ResponseType::Accept);
    let deny = dialog.add_button("Deny", gtk::ResponseType::Reject);
    dialog.set_default_response(gtk::ResponseType::Reject);
    content.show_all();
    dialog.set_focus(Some(&deny));
    readers::describe(&dialog, &to.title);
    readers::describe(&change, "Says yes to what is shown");
    readers::describe(&deny, "Says no: nothing is changed");
    hold_back(&dialog, &change);
    dialog.connect_response(move |dialog, response| {
        let _ = answer.send(response == gtk::ResponseType::Accept);
        dialog.hide();
        dialog.close();
    });
    on_screen::put(&dialog);
    dialog.show();
}

fn parts(to: &Loosening) -> Vec<gtk::Widget> {
    let title = paragraph(&to.title);
    title.set_attributes(Some(&bold(1.2)));
    let command = paragraph(&to.typed());
    command.set_attributes(Some(&monospace()));
    let why = paragraph(WHY);
    fade(&why);
    let (allows, of) = (paragraph(&to.allows), paragraph(&to.of));
    let mut parts: Vec<gtk::Widget> = vec![title.upcast(), allows.upcast(), of.upcast()];
    if !to.shows.is_empty() {
        let shows = paragraph(&to.shows.join("\n"));
        shows.set_attributes(Some(&monospace()));
        parts.push(sheet(&shows).upcast());
    }
    parts.extend([sheet(&command).upcast(), why.upcast()]);
    parts
}

fn paragraph(text: &str) -> gtk::Label {
    let label = text_of(text);
    label.set_width_chars(WIDTH);
    label.set_max_width_chars(WIDTH);
    label
}

/// The yes waits until the dialog has been on screen for a moment.
fn hold_back(dialog: &gtk::Dialog, change: &gtk::Widget) {
    change.set_sensitive(false);
    let change = change.downgrade();
    dialog.connect_map(move |_| {
        let change = change.clone();
        glib::timeout_add_local_once(GRACE, move || {
            if let Some(change) = change.upgrade() {
                change.set_sensitive(true);
            }
        });
    });
}
