//! Which box's page is before the person, told to the host for as long as it is so.
//!
//! The page says what it shows, the window system whether the window has the keyboard; only both
//! together count, so no page can claim to be looked at. The host hears it by one connection that is
//! kept as long: whatever ends this process takes the word back. A host that comes back hears it again.

use crate::Window;
use host::client::{Client, Writer};
use protocol::BoxId;
use protocol::control::Request;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Front {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What the page shows.
    shown: Option<BoxId>,
    /// The window has the keyboard.
    focused: bool,
    /// Ends the connection that says so.
    connection: Option<Writer>,
    /// Somebody keeps it.
    running: bool,
}

impl State {
    fn before_the_person(&self) -> Option<&BoxId> {
        self.shown.as_ref().filter(|_| self.focused)
    }
}

impl Front {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(self: &Arc<Self>, client: &Client, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        let before = state.before_the_person().cloned();
        change(&mut state);
        if state.before_the_person() == before.as_ref() {
            return;
        }
        if let Some(connection) = state.connection.take() {
            connection.hang_up();
        }
        if !std::mem::replace(&mut state.running, true) {
            let (front, client) = (self.clone(), client.clone());
            std::thread::spawn(move || front.keep(&client));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// One box after the other, as long as the process lives.
    fn keep(&self, client: &Client) {
        loop {
            let mut state = self.lock();
            let id = loop {
                match state.before_the_person() {
                    Some(id) => break id.clone(),
                    None => {
                        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(state);
            self.say(client, &id);
            // The host ended it, or there is none: a moment, unless something else is shown by then.
            let same = |state: &mut State| state.before_the_person() == Some(&id);
            let paused = self.changed.wait_timeout_while(self.lock(), AGAIN, same);
            drop(paused.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Tells the host until it is no longer so.
    fn say(&self, client: &Client, id: &BoxId) {
        let Ok(conversation) = client.open(&Request::InFront { id: id.clone() }) else { return };
        let Ok(writer) = conversation.writer() else { return };
        {
            let mut state = self.lock();
            if state.before_the_person() != Some(id) {
                return;
            }
            state.connection = Some(writer);
        }
        let _ = conversation.finish::<()>(|_| {});
        self.lock().connection = None;
    }
}

impl Window {
    /// The page shows this box now, or none.
    pub fn shows(&self, id: Option<BoxId>) {
        self.front.set(&self.client, |state| state.shown = id);
    }

    /// Whether the window has the keyboard. For the window system to say, not for the page.
    pub fn focused(&self, focused: bool) {
        self.front.set(&self.client, |state| state.focused = focused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::frame::{self, Kind};
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;

    /// A host that only listens.
    fn host(home: &Path) -> UnixListener {
        let socket = host::home::control_socket(home);
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&socket);
        UnixListener::bind(socket).unwrap()
    }

    fn id(n: u8) -> BoxId {
        format!("b{n:08x}").parse().unwrap()
    }

    /// The next word of the window: which box is in front.
    fn hears(host: &UnixListener) -> (BoxId, UnixStream) {
        let mut stream = host.accept().unwrap().0;
        let (kind, body) = frame::read(&mut stream).unwrap().unwrap();
        assert_eq!(kind, Kind::Request);
        let Ok(Request::InFront { id }) = serde_json::from_slice(&body) else { panic!() };
        (id, stream)
    }

    fn ends(mut stream: UnixStream) {
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0, "the connection was closed");
    }

    #[test]
    fn only_a_page_that_is_shown_in_a_window_with_the_keyboard_is_in_front() {
        let home = tempfile::tempdir().unwrap();
        let (host, window) = (host(home.path()), Window::new(home.path()));
        host.set_nonblocking(true).unwrap();
        window.shows(Some(id(1)));
        window.focused(false);
        assert!(host.accept().is_err(), "it has not got the keyboard");
        window.shows(None);
        window.focused(true);
        assert!(host.accept().is_err(), "no box is shown");
        host.set_nonblocking(false).unwrap();

        window.shows(Some(id(1)));
        let (first, stream) = hears(&host);
        assert_eq!(first, id(1));
        window.focused(false);
        ends(stream);
        window.focused(true);
        let (again, stream) = hears(&host);
        assert_eq!(again, id(1));
        window.shows(Some(id(2)));
        ends(stream);
        let (second, stream) = hears(&host);
        assert_eq!(second, id(2));
        window.shows(None);
        ends(stream);
    }

    #[test]
    fn a_host_that_comes_back_hears_it_again() {
        let home = tempfile::tempdir().unwrap();
        let (host, window) = (host(home.path()), Window::new(home.path()));
        window.focused(true);
        window.shows(Some(id(1)));
        let (_, stream) = hears(&host);
        drop(stream);
        let (again, stream) = hears(&host);
        assert_eq!(again, id(1));
        window.shows(None);
        ends(stream);
    }
}
