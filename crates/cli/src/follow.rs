//! Calls that go on until the person leaves: events as they come, and a screen that is redrawn.

use crate::error::CommandError;
use crate::ui::Ui;
use host::client::{Client, Incoming};
use protocol::control::{HostEvent, Request};

/// What to do after an event.
pub enum Then {
    GoOn,
    Leave,
}

/// Hands every event to `see` until that leaves or the host ends.
pub fn events(
    client: &Client,
    request: &Request,
    mut see: impl FnMut(HostEvent) -> Result<Then, CommandError>,
) -> Result<(), CommandError> {
    let conversation = client.open(request)?;
    let hang_up = conversation.writer()?;
    let mut left = None;
    let ended = conversation.finish::<()>(|incoming| {
        let Incoming::Event(event) = incoming else { return };
        if left.is_some() {
            return;
        }
        match see(*event) {
            Ok(Then::GoOn) => {}
            Ok(Then::Leave) => {
                left = Some(Ok(()));
                hang_up.hang_up();
            }
            Err(error) => {
                left = Some(Err(error));
                hang_up.hang_up();
            }
        }
    });
    match left {
        Some(left) => left,
        None => Ok(ended?),
    }
}

/// One page after the other: in place on a terminal, one below the other elsewhere.
#[derive(Default)]
pub struct Screen {
    drawn: bool,
}

impl Screen {
    pub fn draw(&mut self, ui: &Ui, text: &str) -> Result<(), CommandError> {
        let first = !std::mem::replace(&mut self.drawn, true);
        match (ui.out.width, first) {
            (Some(_), true) => ui.out(&format!("\x1b[2J\x1b[H{text}")),
            // Each line takes away what was longer before it, and the end what is left below.
            (Some(_), false) => {
                let text = text.replace('\n', "\x1b[K\n");
                ui.out(&format!("\x1b[H{text}\x1b[J"))
            }
            (None, true) => ui.out(text),
            (None, false) => ui.out(&format!("\n{text}")),
        }
    }
}
