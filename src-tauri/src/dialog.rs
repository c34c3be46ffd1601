//! Questions as native dialogs, one per box at a time, closed from outside as soon as they are
//! over.
//!
//! A dialog only reports what was pressed; the broker decides whether it counts. Closing it in any
//! way is a no. The surprising thing: a sink is called while the broker holds its lock, sometimes
//! on this very main thread, so everything here is queued on the main loop and never run in place.

mod gate;
mod layout;
mod place;

use approvals::Sink;
use gtk::gdk_pixbuf::{Colorspace, InterpType, Pixbuf};
use gtk::glib;
use gtk::prelude::*;
use host::Api;
use layout::Layout;
use protocol::QuestionId;
use protocol::control::ErrorCode;
use protocol::question::{Outcome, Question, Surface, Verdict};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tauri::AppHandle;
use tauri::image::Image;

const ICON: i32 = 64;

/// Shows the host's questions as dialogs from now on. Main thread only.
pub fn add_to(app: &AppHandle, api: &Api) {
    if let Some(icon) = app.default_window_icon() {
        use_icon(icon);
    }
    api.broker().add_sink(Arc::new(Dialogs { api: api.clone() }));
}

/// The app's icon on every window, at a size that window lists use.
pub fn use_icon(icon: &Image<'_>) {
    let (Ok(width), Ok(height)) = (i32::try_from(icon.width()), i32::try_from(icon.height()))
    else {
        return;
    };
    let pixels = glib::Bytes::from(icon.rgba());
    let whole = Pixbuf::from_bytes(&pixels, Colorspace::Rgb, true, 8, width, height, width * 4);
    if let Some(small) = whole.scale_simple(ICON, ICON, InterpType::Bilinear) {
        gtk::Window::set_default_icon(&small);
    }
}

struct Dialogs {
    api: Api,
}

impl Sink for Dialogs {
    fn show(&self, question: &Question) {
        let (api, question) = (self.api.clone(), question.clone());
        glib::idle_add_once(move || open(api, question));
    }

    fn withdraw(&self, question: &Question, _: &Outcome) {
        let id = question.id.clone();
        glib::idle_add_once(move || close(&id));
    }
}

struct Open {
    dialog: gtk::Dialog,
    /// Which of the staggered places on screen it has.
    slot: usize,
}

thread_local! {
    /// The dialogs on screen; only the main thread has any.
    static OPEN: RefCell<HashMap<QuestionId, Open>> = RefCell::default();
}

fn open(api: Api, question: Question) {
    let slot = OPEN.with_borrow(|open| place::free_slot(open.values().map(|o| o.slot)));
    let layout = Layout::new(&question);
    let dialog = layout.dialog.clone();
    gate::guard(&layout);
    OPEN.with_borrow_mut(|open| {
        open.insert(question.id.clone(), Open { dialog: dialog.clone(), slot })
    });
    dialog.connect_response(move |_, response| answered(&api, &question, response));
    place::put(&dialog, slot);
    dialog.show();
}

/// Whatever was not a press on `Allow once` is a no: Deny, Escape, the window's close button.
fn answered(api: &Api, question: &Question, response: gtk::ResponseType) {
    if !OPEN.with_borrow(|open| open.contains_key(&question.id)) {
        return; // closed by us
    }
    let allow = response == gtk::ResponseType::Accept;
    let verdict = if allow { Verdict::AllowOnce } else { Verdict::Deny };
    match api.answer(&question.id, &question.digest, verdict, Surface::Dialog) {
        Err(e) if e.code == ErrorCode::TooSoon => tracing::info!("{e}"),
        Err(e) => {
            tracing::warn!("the answer to a dialog was not taken: {e}");
            close(&question.id);
        }
        Ok(()) => close(&question.id),
    }
}

/// Takes the dialog off the screen now; GTK frees it once its loop comes round.
fn close(id: &QuestionId) {
    let Some(open) = OPEN.with_borrow_mut(|open| open.remove(id)) else { return };
    open.dialog.hide();
    open.dialog.close();
}
