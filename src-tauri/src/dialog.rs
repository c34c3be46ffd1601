//! Questions as native dialogs, one per box at a time, closed from outside as soon as they are
//! over.
//!
//! A dialog only reports what was pressed; the broker decides whether it counts. Closing it in any
//! way is a no. A question that ended elsewhere says so for a moment before it goes. The surprising
//! thing: a sink is called while the broker holds its lock, sometimes on this very main thread, so
//! everything here is queued on the main loop and never run in place.

mod evidence;
mod gate;
mod layout;
mod place;
mod remember;
mod rule;
mod words;

use approvals::Sink;
use gate::Gate;
use gtk::gdk::keys::constants::Escape;
use gtk::gdk_pixbuf::{Colorspace, InterpType, Pixbuf};
use gtk::glib::{self, Propagation};
use gtk::prelude::*;
use host::Api;
use host::quiet::{Hushed, Manner};
use layout::Layout;
use protocol::QuestionId;
use protocol::control::{ErrorCode, Target};
use protocol::question::{Outcome, Question, Surface, Verdict};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tauri::AppHandle;
use tauri::image::Image;

const ICON: i32 = 64;
/// How long a dialog says how its question ended.
const ENDING: Duration = Duration::from_secs(2);
const MUTE_SECONDS: u64 = 3600;

/// Shows the host's questions as dialogs from now on. Main thread only.
pub fn add_to(app: &AppHandle, api: &Api) {
    if let Some(icon) = app.default_window_icon() {
        use_icon(icon);
    }
    let dialogs = Dialogs { api: api.clone() };
    let hushed = Hushed::new(dialogs, Manner::StepsForward, api.quietness());
    api.broker().add_sink(hushed.clone());
    tauri::async_runtime::spawn(hushed.follow());
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

    fn withdraw(&self, question: &Question, outcome: &Outcome) {
        let (question, outcome) = (question.clone(), outcome.clone());
        glib::idle_add_once(move || end(&question, &outcome));
    }
}

/// A dialog on screen.
#[derive(Clone)]
struct Open {
    layout: Rc<Layout>,
    gate: Rc<Gate>,
    /// Which of the staggered places on screen it has.
    slot: usize,
    /// The question is over; only its end is still to be read.
    over: bool,
}

thread_local! {
    /// The dialogs on screen; only the main thread has any.
    static OPEN: RefCell<HashMap<QuestionId, Open>> = RefCell::default();
}

fn open(api: Api, question: Question) {
    let slot = OPEN.with_borrow(|open| place::free_slot(open.values().map(|o| o.slot)));
    let layout = Rc::new(Layout::new(&question));
    let gate = gate::guard(&layout);
    let dialog = layout.dialog.clone();
    let shown = Open { layout, gate, slot, over: false };
    OPEN.with_borrow_mut(|open| open.insert(question.id.clone(), shown));
    let id = question.id.clone();
    dialog.connect_key_press_event(move |_, event| {
        let leaves = event.keyval() == Escape && of(&id).is_some_and(|o| o.layout.is_remembering());
        if leaves {
            turn(&id);
        }
        if leaves { Propagation::Stop } else { Propagation::Proceed }
    });
    dialog.connect_response(move |_, response| match response {
        layout::REMEMBER => turn(&question.id),
        layout::MUTE => mute(&api, &question),
        other => answered(&api, &question, other),
    });
    place::put(&dialog, slot);
    dialog.show();
}

fn of(id: &QuestionId) -> Option<Open> {
    OPEN.with_borrow(|open| open.get(id).cloned())
}

/// Opens or closes the rule in the making; the yes then means something else and waits anew.
fn turn(id: &QuestionId) {
    if let Some(open) = of(id).filter(|o| !o.over) {
        open.layout.turn();
        open.gate.begin();
    }
}

/// Whatever was not a press on the yes is a no: Deny, Escape, the window's close button.
fn answered(api: &Api, question: &Question, response: gtk::ResponseType) {
    let Some(open) = of(&question.id) else { return }; // closed by us
    if open.over {
        close(&question.id);
        return;
    }
    let allow = response == gtk::ResponseType::Accept;
    let verdict = if allow { open.layout.verdict() } else { Verdict::Deny };
    match api.answer(&question.id, &question.digest, verdict, Surface::Dialog) {
        Err(e) if e.code == ErrorCode::TooSoon => tracing::info!("{e}"),
        // It stays for when the person is back.
        Err(e) if e.code == ErrorCode::Locked => tracing::info!("{e}"),
        Err(e) => {
            tracing::warn!("the answer to a dialog was not taken: {e}");
            close(&question.id);
        }
        Ok(()) => close(&question.id),
    }
}

fn mute(api: &Api, question: &Question) {
    let (api, id) = (api.clone(), question.box_id.clone());
    tauri::async_runtime::spawn(async move {
        if let Err(e) = api.mute(Target::id(&id), Some(MUTE_SECONDS)).await {
            tracing::warn!("the box was not muted: {e}");
        }
    });
}

/// The question ended elsewhere: says how, then goes.
fn end(question: &Question, outcome: &Outcome) {
    let id = question.id.clone();
    if *outcome == Outcome::HostStopped {
        close(&id);
        return;
    }
    let ending = OPEN.with_borrow_mut(|open| {
        let open = open.get_mut(&id)?;
        open.over = true;
        Some(open.layout.clone())
    });
    let Some(layout) = ending else { return };
    layout.end(&question.box_name, &words::ending(outcome), outcome.is_yes());
    glib::timeout_add_local_once(ENDING, move || close(&id));
}

/// Takes the dialog off the screen now; GTK frees it once its loop comes round.
fn close(id: &QuestionId) {
    let Some(open) = OPEN.with_borrow_mut(|open| open.remove(id)) else { return };
    open.layout.dialog.hide();
    open.layout.dialog.close();
}
