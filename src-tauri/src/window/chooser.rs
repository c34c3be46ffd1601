//! The desktop's own window for choosing a folder or files.

use crate::window;
use protocol::control::{ControlError, ErrorCode};
use std::path::{Path, PathBuf};
use tauri::{AppHandle, Runtime};
use tokio::sync::oneshot;

type Choice = Result<Vec<PathBuf>, ControlError>;

/// What a person is to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    ProjectFolder,
    /// Where a copy goes.
    TargetFolder,
    /// What is copied.
    Files,
    /// A file to write, with a name to begin with.
    NewFile(String),
}

impl Wanted {
    #[cfg(target_os = "linux")]
    fn title(&self) -> &'static str {
        match self {
            Wanted::ProjectFolder => "Choose a project folder",
            Wanted::TargetFolder => "Choose a folder to copy to",
            Wanted::Files => "Choose files to copy into the box",
            Wanted::NewFile(_) => "Save as",
        }
    }
}

/// The folder a person chooses; none when they leave it. It opens where `start` is.
#[tauri::command]
pub async fn choose_folder<R: Runtime>(
    app: AppHandle<R>,
    start: Option<String>,
) -> Result<Option<String>, ControlError> {
    let start = start.map(PathBuf::from);
    let chosen = choose(&app, Wanted::ProjectFolder, start.as_deref()).await?;
    chosen.into_iter().next().map(in_words).transpose()
}

/// What the person chooses; nothing when they leave it.
pub async fn choose<R: Runtime>(
    app: &AppHandle<R>,
    wanted: Wanted,
    start: Option<&Path>,
) -> Choice {
    let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
    let (tx, rx) = oneshot::channel();
    let (handle, start) = (app.clone(), start.map(Path::to_owned));
    app.run_on_main_thread(move || ask(&handle, wanted, start.as_deref(), tx))
        .map_err(|e| failed(format!("Nothing can be chosen: {e}.")))?;
    // Nobody answers when the window goes.
    rx.await.unwrap_or(Ok(Vec::new()))
}

#[cfg(target_os = "linux")]
fn ask<R: Runtime>(
    app: &AppHandle<R>,
    wanted: Wanted,
    start: Option<&Path>,
    answer: oneshot::Sender<Choice>,
) {
    use gtk::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tauri::Manager;

    let parent = app.get_webview_window(window::LABEL).and_then(|w| w.gtk_window().ok());
    let action = match wanted {
        Wanted::Files => gtk::FileChooserAction::Open,
        Wanted::NewFile(_) => gtk::FileChooserAction::Save,
        _ => gtk::FileChooserAction::SelectFolder,
    };
    let chooser = gtk::FileChooserNative::new(
        Some(wanted.title()),
        parent.as_ref(),
        action,
        Some(if action == gtk::FileChooserAction::Save { "Save" } else { "Choose" }),
        Some("Cancel"),
    );
    chooser.set_modal(true);
    chooser.set_select_multiple(wanted == Wanted::Files);
    chooser.set_do_overwrite_confirmation(true);
    match start.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(folder) => drop(chooser.set_filename(folder)),
        None => drop(chooser.set_current_folder(gtk::glib::home_dir())),
    }
    if let Wanted::NewFile(name) = &wanted {
        chooser.set_current_name(name);
    }
    let open = Rc::new(RefCell::new(Some((chooser.clone(), answer))));
    // What is open is kept by its own signal until it was answered.
    chooser.connect_response(move |_, response| {
        let Some((chooser, answer)) = open.borrow_mut().take() else { return };
        let accepted = response == gtk::ResponseType::Accept;
        let chosen = if accepted { chooser.filenames() } else { Vec::new() };
        let _ = answer.send(Ok(chosen));
        chooser.destroy();
    });
    chooser.show();
}

fn in_words(path: PathBuf) -> Result<String, ControlError> {
    path.into_os_string().into_string().map_err(|path| {
        let text = format!("{} has a name that is not UTF-8.", path.to_string_lossy());
        ControlError::new(ErrorCode::Usage, text)
    })
}

#[cfg(not(target_os = "linux"))]
fn ask<R: Runtime>(_: &AppHandle<R>, _: Wanted, _: Option<&Path>, answer: oneshot::Sender<Choice>) {
    let _ = window::LABEL;
    let error = ControlError::new(ErrorCode::Failed, "Nothing can be chosen here.");
    let _ = answer.send(Err(error.hint("Type the folder's path, or use: agentbox cp")));
}
