//! The desktop's own window for choosing a folder.

use crate::window;
use protocol::control::{ControlError, ErrorCode};
use tauri::{AppHandle, Runtime};
use tokio::sync::oneshot;

type Choice = Result<Option<String>, ControlError>;

/// The folder a person chooses; none when they leave it. It opens where `start` is.
#[tauri::command]
pub async fn choose_folder<R: Runtime>(app: AppHandle<R>, start: Option<String>) -> Choice {
    let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
    let (tx, rx) = oneshot::channel();
    let handle = app.clone();
    app.run_on_main_thread(move || ask(&handle, start.as_deref(), tx))
        .map_err(|e| failed(format!("No folder can be chosen: {e}.")))?;
    // Nobody answers when the window goes.
    rx.await.unwrap_or(Ok(None))
}

#[cfg(target_os = "linux")]
fn ask<R: Runtime>(app: &AppHandle<R>, start: Option<&str>, answer: oneshot::Sender<Choice>) {
    use gtk::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tauri::Manager;

    let parent = app.get_webview_window(window::LABEL).and_then(|w| w.gtk_window().ok());
    let chooser = gtk::FileChooserNative::new(
        Some("Choose a project folder"),
        parent.as_ref(),
        gtk::FileChooserAction::SelectFolder,
        Some("Choose"),
        Some("Cancel"),
    );
    chooser.set_modal(true);
    match start.map(std::path::Path::new).filter(|path| path.is_absolute() && path.is_dir()) {
        Some(folder) => drop(chooser.set_filename(folder)),
        None => drop(chooser.set_current_folder(gtk::glib::home_dir())),
    }
    let open = Rc::new(RefCell::new(Some((chooser.clone(), answer))));
    // What is open is kept by its own signal until it was answered.
    chooser.connect_response(move |_, response| {
        let Some((chooser, answer)) = open.borrow_mut().take() else { return };
        let chosen = (response == gtk::ResponseType::Accept).then(|| chooser.filename()).flatten();
        let _ = answer.send(chosen.map(in_words).transpose());
        chooser.destroy();
    });
    chooser.show();
}

#[cfg(target_os = "linux")]
fn in_words(path: std::path::PathBuf) -> Result<String, ControlError> {
    path.into_os_string().into_string().map_err(|path| {
        let text = format!("{} has a name that is not UTF-8.", path.to_string_lossy());
        ControlError::new(ErrorCode::Usage, text)
    })
}

#[cfg(not(target_os = "linux"))]
fn ask<R: Runtime>(_: &AppHandle<R>, _: Option<&str>, answer: oneshot::Sender<Choice>) {
    let _ = window::LABEL;
    let error = ControlError::new(ErrorCode::Failed, "Folders cannot be chosen here.");
    let _ = answer.send(Err(error.hint("Type the folder's path.")));
}
