//! Questions as native dialogs, one at a time, closed from outside as soon as they are over.
//!
//! A dialog only reports what was pressed; the broker decides whether it counts. Closing it in any
//! way is a no. A question that ended elsewhere says so for a moment before it goes; then the next
//! one comes. The surprising thing: a sink is called while the broker holds its lock, sometimes on
//! this very main thread, so everything here is queued on the main loop and never run in place.

pub mod confirm;
mod evidence;
mod gate;
mod layout;
mod queue;
mod remember;
mod rule;
mod words;

use agentbox_desktop::{on_screen as place, readers};
use approvals::Sink;
use gate::Gate;
use gtk::gdk::keys::constants::Escape;
use gtk::glib::{self, ControlFlow, Propagation};
use gtk::prelude::*;
use host::Api;
use host::quiet::{Hushed, Manner};
use layout::Layout;
use protocol::QuestionId;
use protocol::control::{ErrorCode, Target};
use protocol::question::{Outcome, Question, Surface, Verdict};
use queue::Queue;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// How long a dialog says how its question ended.
const ENDING: Duration = Duration::from_secs(2);
/// Between one dialog and the next: they are seen to be two, and an older question of the same box,
/// which the broker sends only now, comes first.
const BETWEEN: Duration = Duration::from_millis(150);
const COUNTING: Duration = Duration::from_millis(50);
const MUTE_SECONDS: u64 = 3600;

/// Shows the host's questions as dialogs from now on. Main thread only.
pub fn add_to(api: &Api) {
    crate::icon::on_windows();
    let dialogs = Dialogs { api: api.clone() };
    let hushed = Hushed::new(dialogs, Manner::StepsForward, api.quietness());
    api.broker().add_sink(hushed.clone());
    tokio::spawn(hushed.follow());
    tokio::spawn(go_on_after_the_quiet(api.clone()));
}

/// What waited for its turn when the quiet began is kept back like what came in it.
async fn go_on_after_the_quiet(api: Api) {
    let mut quiet = api.quietness().watch();
    while quiet.changed().await.is_ok() {
        let api = api.clone();
        glib::idle_add_once(move || advance(&api));
    }
}

struct Dialogs {
    api: Api,
}

impl Sink for Dialogs {
    fn show(&self, question: &Question) {
        let (api, question) = (self.api.clone(), question.clone());
        glib::idle_add_once(move || {
            STATE.with_borrow_mut(|state| state.queue.add(question));
            advance(&api);
            recount_soon(&api);
        });
    }

    fn again(&self, question: &Question) {
        let question = question.clone();
        glib::idle_add_once(move || {
            STATE.with_borrow_mut(|state| state.queue.again(&question));
            if let Some(open) = of(&question.id).filter(|open| !open.over) {
                open.layout.set_times(&question);
            }
        });
    }

    fn withdraw(&self, question: &Question, outcome: &Outcome) {
        let (api, question, outcome) = (self.api.clone(), question.clone(), outcome.clone());
        glib::idle_add_once(move || {
            if !STATE.with_borrow_mut(|state| state.queue.withdraw(&question.id)) {
                end(&api, &question, &outcome);
            }
            recount_soon(&api);
        });
    }
}

#[derive(Default)]
struct State {
    queue: Queue,
    open: Option<Open>,
    /// Another dialog was there just before.
    follows: bool,
    /// They are about to be counted.
    counting: bool,
}

/// The dialog on screen.
#[derive(Clone)]
struct Open {
    id: QuestionId,
    layout: Rc<Layout>,
    gate: Rc<Gate>,
    /// A press may still mean the dialog before this one.
    follows: bool,
    /// The question is over; only its end is still to be read.
    over: bool,
}

thread_local! {
    /// Only the main thread has any.
    static STATE: RefCell<State> = RefCell::default();
}

/// Shows the next question, if there is one and nothing is on screen.
fn advance(api: &Api) {
    if api.quietness().until(words::now()).is_some() {
        return;
    }
    if let Some(question) = STATE.with_borrow_mut(|state| state.queue.next()) {
        open(api, question);
    } else {
        STATE.with_borrow_mut(|state| state.follows &= state.open.is_some());
    }
}

fn open(api: &Api, question: Question) {
    let layout = Rc::new(Layout::new(&question));
    layout.set_place(&queue::place(all(api)));
    let gate = gate::guard(&layout);
    let dialog = layout.dialog.clone();
    STATE.with_borrow_mut(|state| {
        let follows = std::mem::replace(&mut state.follows, true);
        let id = question.id.clone();
        state.open = Some(Open { id, layout, gate, follows, over: false });
    });
    keep_counting(api.clone(), question.id.clone());
    let id = question.id.clone();
    dialog.connect_key_press_event(move |_, event| {
        let leaves = event.keyval() == Escape && of(&id).is_some_and(|o| o.layout.is_remembering());
        if leaves {
            turn(&id);
        }
        if leaves { Propagation::Stop } else { Propagation::Proceed }
    });
    let (shown, asked) = (api.clone(), question.id.clone());
    let api = api.clone();
    dialog.connect_response(move |_, response| match response {
        layout::REMEMBER => turn(&question.id),
        layout::MUTE => mute(&api, &question),
        other => answered(&api, &question, other),
    });
    place::put(&dialog);
    shown.broker().shown_again(&asked);
    dialog.show();
}

fn of(id: &QuestionId) -> Option<Open> {
    STATE.with_borrow(|state| state.open.clone().filter(|open| open.id == *id))
}

/// All open questions: a box shows only its first, but the others come after it.
fn all(api: &Api) -> usize {
    let shown = STATE.with_borrow(|state| state.queue.len());
    shown.max(api.questions().len())
}

/// Counts them once however many come and go at a time.
fn recount_soon(api: &Api) {
    if STATE.with_borrow_mut(|state| std::mem::replace(&mut state.counting, true)) {
        return;
    }
    let api = api.clone();
    glib::timeout_add_local_once(COUNTING, move || {
        STATE.with_borrow_mut(|state| state.counting = false);
        recount(&api);
    });
}

/// Says anew how many there are.
fn recount(api: &Api) {
    let open = STATE.with_borrow(|state| state.open.clone());
    if let Some(open) = open.filter(|open| !open.over) {
        open.layout.set_place(&queue::place(all(api)));
    }
}

/// Nobody tells of a box's second question while its first is on screen.
fn keep_counting(api: Api, id: QuestionId) {
    glib::timeout_add_seconds_local(1, move || {
        if of(&id).is_none() {
            return ControlFlow::Break;
        }
        recount(&api);
        ControlFlow::Continue
    });
}

/// Opens or closes the rule in the making; the yes then means something else and waits anew.
fn turn(id: &QuestionId) {
    if let Some(open) = of(id).filter(|o| !o.over) {
        open.layout.turn();
        open.gate.begin();
    }
}

/// Whatever was not a press on what lets something go on is a no: Deny, Escape, the window's close
/// button.
fn answered(api: &Api, question: &Question, response: gtk::ResponseType) {
    let Some(open) = of(&question.id) else { return }; // closed by us
    if open.over {
        close(api, &question.id);
        return;
    }
    // The second half of a double click on the dialog that was here a moment ago.
    if open.follows && response == gtk::ResponseType::Reject && !open.gate.is_settled() {
        return;
    }
    let verdict = match response {
        gtk::ResponseType::Accept => open.layout.verdict(),
        layout::WITHOUT => Verdict::Without,
        _ => Verdict::Deny,
    };
    match api.answer(&question.id, &question.digest, verdict, Surface::Dialog) {
        Err(e) if e.code == ErrorCode::TooSoon => tracing::info!("{e}"),
        // It stays for when the person is back.
        Err(e) if e.code == ErrorCode::Locked => tracing::info!("{e}"),
        Err(e) => {
            tracing::warn!("the answer to a dialog was not taken: {e}");
            close(api, &question.id);
        }
        Ok(()) => close(api, &question.id),
    }
}

fn mute(api: &Api, question: &Question) {
    let (api, id) = (api.clone(), question.box_id.clone());
    tokio::spawn(async move {
        if let Err(e) = api.mute(Target::id(&id), Some(MUTE_SECONDS)).await {
            tracing::warn!("the box was not muted: {e}");
        }
    });
}

/// The question ended elsewhere: says how, then goes.
fn end(api: &Api, question: &Question, outcome: &Outcome) {
    let id = question.id.clone();
    if *outcome == Outcome::HostStopped {
        close(api, &id);
        return;
    }
    let ending = STATE.with_borrow_mut(|state| {
        let open = state.open.as_mut().filter(|open| open.id == id)?;
        open.over = true;
        Some(open.layout.clone())
    });
    let Some(layout) = ending else { return };
    layout.end(&question.box_name, &words::ending(outcome), outcome.goes_on());
    let api = api.clone();
    glib::timeout_add_local_once(ENDING, move || close(&api, &id));
}

/// Takes the dialog off the screen now, and brings the next; GTK frees it once its loop comes round.
fn close(api: &Api, id: &QuestionId) {
    let closed = STATE.with_borrow_mut(|state| {
        let open = state.open.take_if(|open| open.id == *id)?;
        state.queue.done(id);
        Some(open)
    });
    let Some(open) = closed else { return };
    open.layout.dialog.hide();
    open.layout.dialog.close();
    let api = api.clone();
    glib::timeout_add_local_once(BETWEEN, move || advance(&api));
}
