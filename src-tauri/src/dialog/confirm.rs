//! A question of the app's own before it does what a person chose in the tray and might regret.
//!
//! No box asks here and nothing is allowed by it: closing it in any way only leaves things as they are.
//! It takes the keyboard, for the person has just asked for it, but Enter means Cancel.

use super::{place, readers};
use agentbox_desktop::labels::{GAP, bold, text_of};
use gtk::glib;
use gtk::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;

const WIDTH: i32 = 420;
/// The second half of a double click on the menu means nothing here.
const GRACE: Duration = Duration::from_millis(350);

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirm {
    /// “Stop fix-login?”. While it is asked, it is asked once.
    pub title: String,
    /// What would be lost, a line each.
    pub lines: Vec<String>,
    /// The word on the button that does it.
    pub verb: &'static str,
}

thread_local! {
    /// What is on screen, by its title. Only the main thread has any.
    static OPEN: RefCell<HashMap<String, gtk::Dialog>> = RefCell::default();
}

/// Whether the person wants it. No, when it is on screen already: the answer is given there.
pub async fn ask(what: Confirm) -> bool {
    let (answer, answered) = oneshot::channel();
    glib::idle_add_once(move || show(what, answer));
    answered.await.unwrap_or(false)
}

fn show(what: Confirm, answer: oneshot::Sender<bool>) {
    if let Some(dialog) = OPEN.with_borrow(|open| open.get(&what.title).cloned()) {
        dialog.present();
        return;
    }
    let dialog = drawn(&what);
    OPEN.with_borrow_mut(|open| open.insert(what.title.clone(), dialog.clone()));
    let answer = RefCell::new(Some(answer));
    dialog.connect_response(move |dialog, response| {
        let Some(answer) = answer.take() else { return };
        OPEN.with_borrow_mut(|open| open.remove(&what.title));
        dialog.hide();
        dialog.close();
        let _ = answer.send(response == gtk::ResponseType::Accept);
    });
    place::put(&dialog);
    dialog.present();
}

fn drawn(what: &Confirm) -> gtk::Dialog {
    let dialog = gtk::Dialog::new();
    dialog.set_title(&what.title);
    dialog.set_keep_above(true);
    dialog.stick();
    let content = dialog.content_area();
    content.set_spacing(GAP);
    content.set_border_width(GAP.unsigned_abs());
    content.set_size_request(WIDTH, -1);
    let title = text_of(&what.title);
    title.set_attributes(Some(&bold(1.2)));
    content.pack_start(&title, false, false, 0);
    for line in &what.lines {
        content.pack_start(&text_of(line), false, false, 0);
    }
    let act = dialog.add_button(what.verb, gtk::ResponseType::Accept);
    let cancel = dialog.add_button("Cancel", gtk::ResponseType::Reject);
    dialog.set_default_response(gtk::ResponseType::Reject);
    act.set_sensitive(false);
    let waiting = act.downgrade();
    glib::timeout_add_local_once(GRACE, move || {
        if let Some(act) = waiting.upgrade() {
            act.set_sensitive(true);
        }
    });
    readers::describe(&dialog, &what.lines.join(" "));
    readers::describe(&cancel, "Leaves everything as it is");
    content.show_all();
    dialog.set_focus(Some(&cancel));
    dialog
}
