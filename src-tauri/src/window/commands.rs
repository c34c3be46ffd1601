//! The page's way to [`window`](agentbox_window): each of these passes on and decides nothing.

use crate::page::Page;
use crate::subscription::Subscription;
use agentbox_window::Window;
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode, HostEvent};
use protocol::window::BoxFolder;
use serde_json::Value;
use tauri::ipc::{Channel, InvokeResponseBody};
use tauri::{AppHandle, Runtime, State};

/// Work that waits for the host, off the threads that draw.
async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ControlError> + Send + 'static,
) -> Result<T, ControlError> {
    let done = tauri::async_runtime::spawn_blocking(work).await;
    let early = |e| ControlError::new(ErrorCode::Failed, format!("The call ended early: {e}."));
    done.map_err(early)?
}

/// Sends one request to the host and gives its reply.
#[tauri::command]
pub async fn call(window: State<'_, Window>, request: Value) -> Result<Value, ControlError> {
    let window = window.inner().clone();
    waiting(move || window.call(request)).await
}

/// Lets the host's events flow to the page; called again, they start anew with a snapshot.
#[tauri::command]
pub fn subscribe<R: Runtime>(app: AppHandle<R>, subscription: State<'_, Subscription>) {
    subscription.begin(app);
}

/// Where the window was asked to open.
#[tauri::command]
pub fn initial_page(page: State<'_, Page>) -> String {
    page.to_string()
}

/// The page shows this box now, or none.
#[tauri::command]
pub fn shows(window: State<'_, Window>, id: Option<BoxId>) {
    window.shows(id);
}

/// Sends a request and gives its reply; events on the way go to the channel.
#[tauri::command]
pub async fn begin(
    window: State<'_, Window>,
    number: u32,
    request: Value,
    on_event: Channel<HostEvent>,
) -> Result<Value, ControlError> {
    let window = window.inner().clone();
    waiting(move || {
        window.begin(number, request, |event| {
            let _ = on_event.send(event);
        })
    })
    .await
}

/// Ends a long call or a stream.
#[tauri::command]
pub async fn hang_up(window: State<'_, Window>, number: u32) -> Result<(), ControlError> {
    let window = window.inner().clone();
    waiting(move || {
        window.hang_up(number);
        Ok(())
    })
    .await
}

/// Carries a stream to the channel until it ends.
#[tauri::command]
pub async fn stream(
    window: State<'_, Window>,
    number: u32,
    what: Value,
    on_bytes: Channel<InvokeResponseBody>,
) -> Result<i32, ControlError> {
    let window = window.inner().clone();
    waiting(move || {
        window.stream(number, what, |bytes| {
            let _ = on_bytes.send(InvokeResponseBody::Raw(bytes));
        })
    })
    .await
}

/// Keys for a terminal, words for a screen.
#[tauri::command]
pub async fn stream_write(
    window: State<'_, Window>,
    number: u32,
    bytes: Vec<u8>,
) -> Result<(), ControlError> {
    let window = window.inner().clone();
    waiting(move || {
        window.write(number, &bytes);
        Ok(())
    })
    .await
}

#[tauri::command]
pub async fn stream_resize(
    window: State<'_, Window>,
    number: u32,
    cols: u16,
    rows: u16,
) -> Result<(), ControlError> {
    let window = window.inner().clone();
    waiting(move || {
        window.resize(number, cols, rows);
        Ok(())
    })
    .await
}

/// The page has drawn so many bytes.
#[tauri::command]
pub fn stream_taken(window: State<'_, Window>, number: u32, bytes: usize) {
    window.taken(number, bytes);
}

#[tauri::command]
pub async fn screen_password(window: State<'_, Window>, id: BoxId) -> Result<String, ControlError> {
    let window = window.inner().clone();
    waiting(move || window.screen_password(&id)).await
}

/// What is in a folder of a box.
#[tauri::command]
pub async fn files(
    window: State<'_, Window>,
    id: BoxId,
    path: String,
) -> Result<BoxFolder, ControlError> {
    let window = window.inner().clone();
    waiting(move || window.files(&id, &path)).await
}
