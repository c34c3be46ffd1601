//! Opens a box's web app or screen in the person's browser.
//!
//! The page never learns the address: that of a screen ends with its password.

use agentbox_window::{Window, to_control};
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode, Request, Target};
use protocol::links::{Link, LinkTo};
use serde::Deserialize;
use tauri::State;

/// What of a box a person can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    Web,
    Screen,
}

impl Place {
    pub fn link(self) -> LinkTo {
        match self {
            Place::Web => LinkTo::Web,
            Place::Screen => LinkTo::Screen,
        }
    }
}

/// Brings the box up first.
#[tauri::command]
pub async fn open_place(
    window: State<'_, Window>,
    id: BoxId,
    place: Place,
) -> Result<(), ControlError> {
    let client = window.client().clone();
    let opened = tauri::async_runtime::spawn_blocking(move || {
        let request = Request::Link {
            target: Target::id(&id),
            to: place.link(),
            loopback: false,
            engine: None,
        };
        open(&client.call(&request).map_err(to_control)?)
    });
    opened.await.unwrap_or_else(|e| Err(ControlError::new(ErrorCode::Failed, e.to_string())))
}

/// Waits for the program that opens addresses, for a while.
pub fn open(link: &Link) -> Result<(), ControlError> {
    let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
    let Some(address) = &link.open else {
        return Err(failed(format!("{} cannot be opened from here.", link.shown)).hint(
            "Its password would show. Set proxy.port in config.yaml, so that boxes have names, \
             or use: agentbox screen --print",
        ));
    };
    host::opener::open(address).map_err(|why| {
        failed(format!("No browser could be started: {why}."))
            .hint(format!("Open {} yourself.", link.shown))
    })
}
