//! Opens a box's web app or screen in the person's browser, for the page.
//!
//! The page never learns the address: that of a screen ends with its password.

use crate::place::{Place, open};
use agentbox_window::{Window, to_control};
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode, Request, Target};
use tauri::State;

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
