//! The host's events, carried to the page by one thread.
//!
//! When the host goes, the page hears `host-down` once and the thread tries again each second; a
//! new connection starts with a snapshot, so nothing has to be caught up. The page may subscribe
//! again at any time (it was reloaded, or it gave up waiting): that starts the events anew.

use crate::window;
use host::client::{Client, Incoming, Writer};
use protocol::control::{HostEvent, Request};
use serde::Serialize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tauri::{AppHandle, Emitter, Runtime};

/// Carries a [`HostEvent`].
const EVENT: &str = "host-event";
/// Carries why the host cannot be heard.
const DOWN: &str = "host-down";
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Serialize)]
struct Down {
    why: String,
}

pub struct Subscription {
    client: Client,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wanted_again: Condvar,
}

#[derive(Default)]
struct State {
    running: bool,
    /// The page subscribed and has not been answered yet.
    wanted: bool,
    /// Ends the current connection.
    connection: Option<Writer>,
}

impl Subscription {
    pub fn new(client: Client) -> Self {
        Self { client, shared: Arc::default() }
    }

    pub fn begin<R: Runtime>(&self, app: AppHandle<R>) {
        let mut state = self.shared.lock();
        state.wanted = true;
        if let Some(connection) = state.connection.take() {
            connection.hang_up();
        }
        self.shared.wanted_again.notify_all();
        if !state.running {
            state.running = true;
            let (client, shared) = (self.client.clone(), self.shared.clone());
            std::thread::spawn(move || carry(&app, &client, &shared));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page's wish, once.
    fn take_wish(&self) -> bool {
        std::mem::take(&mut self.lock().wanted)
    }

    /// A second, or less when the page subscribes meanwhile.
    fn pause(&self) {
        let waiting = self.wanted_again.wait_timeout_while(self.lock(), AGAIN, |s| !s.wanted);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }
}

fn carry<R: Runtime>(app: &AppHandle<R>, client: &Client, shared: &Shared) {
    loop {
        let wished = shared.take_wish();
        match listen(app, client, shared) {
            Ended::Again => continue,
            // Silent retries stay silent: the page knows already.
            Ended::Never(why) if wished => tell(app, why),
            Ended::Never(_) => {}
            Ended::Broke(why) => tell(app, why),
        }
        shared.pause();
    }
}

enum Ended {
    /// It never began.
    Never(String),
    Broke(String),
    /// The page wanted it to start anew.
    Again,
}

fn listen<R: Runtime>(app: &AppHandle<R>, client: &Client, shared: &Shared) -> Ended {
    let conversation = match client.open(&Request::Subscribe) {
        Ok(conversation) => conversation,
        Err(e) => return Ended::Never(e.to_string()),
    };
    {
        let mut state = shared.lock();
        state.connection = conversation.writer().ok();
        // Nothing was read yet: a wish made up to now sees this connection's snapshot.
        state.wanted = false;
    }
    let end = conversation.finish::<()>(|incoming| {
        if let Incoming::Event(event) = incoming {
            pass_on(app, &event);
        }
    });
    let mut state = shared.lock();
    state.connection = None;
    match end {
        _ if state.wanted => Ended::Again,
        Ok(()) => Ended::Broke("the AgentBox host stopped".into()),
        Err(e) => Ended::Broke(e.to_string()),
    }
}

fn pass_on<R: Runtime>(app: &AppHandle<R>, event: &HostEvent) {
    if matches!(event, HostEvent::ShowWindow { .. }) {
        window::come_to_front(app);
    }
    let _ = app.emit(EVENT, event);
}

fn tell<R: Runtime>(app: &AppHandle<R>, why: String) {
    tracing::info!("{why}");
    let _ = app.emit(DOWN, Down { why });
}
