//! Files between this computer and a box, as the page wants them copied.
//!
//! The page says which box and which folder of it. Which files of this computer, only the person says: by
//! choosing them in a window of the desktop, or by dropping them on ours. The page learns their names.

use crate::chooser::{Wanted, choose};
use crate::programs::agentbox;
use agentbox_window::Window;
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode};
use protocol::text::visible;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tauri::{AppHandle, DragDropEvent, Emitter, Runtime, State, WebviewWindow, WindowEvent};

/// Carries the names of what is dragged over the window; none when it is gone again.
const OVER: &str = "files-over";
/// Carries the names of what was dropped.
const DROPPED: &str = "files-dropped";

/// Where AgentBox keeps its state.
pub struct Home(pub PathBuf);

/// What was last dropped on the window, for one copy.
#[derive(Default)]
pub struct Dropped(Mutex<Vec<PathBuf>>);

impl Dropped {
    fn lock(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the page what is dragged and dropped.
pub fn watch<R: Runtime>(window: &WebviewWindow<R>) {
    use tauri::Manager;
    let there = window.clone();
    window.on_window_event(move |event| {
        let WindowEvent::DragDrop(event) = event else { return };
        let _ = match event {
            DragDropEvent::Enter { paths, .. } => there.emit(OVER, Some(names(paths))),
            DragDropEvent::Drop { paths, .. } => {
                there.state::<Dropped>().lock().clone_from(paths);
                let _ = there.emit(OVER, None::<Vec<String>>);
                there.emit(DROPPED, names(paths))
            }
            DragDropEvent::Leave => there.emit(OVER, None::<Vec<String>>),
            _ => Ok(()),
        };
    });
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| visible(&path.file_name().unwrap_or_default().to_string_lossy());
    paths.iter().map(name).collect()
}

/// Copies files that the person chooses; how many.
#[tauri::command]
pub async fn copy_in<R: Runtime>(
    app: AppHandle<R>,
    window: State<'_, Window>,
    home: State<'_, Home>,
    id: BoxId,
    to: String,
) -> Result<usize, ControlError> {
    let from = choose(&app, Wanted::Files, None).await?;
    put(window.inner().clone(), home.0.clone(), id, from, to).await
}

/// Copies what was dropped last, once.
#[tauri::command]
pub async fn copy_dropped(
    window: State<'_, Window>,
    home: State<'_, Home>,
    dropped: State<'_, Dropped>,
    id: BoxId,
    to: String,
    names: Vec<String>,
) -> Result<usize, ControlError> {
    let from = std::mem::take(&mut *dropped.lock());
    // What the person said yes to is what was shown to them.
    if self::names(&from) != names {
        let text = "Other files were dropped meanwhile, so nothing was copied.";
        return Err(ControlError::new(ErrorCode::Failed, text).hint("Drop them once more."));
    }
    put(window.inner().clone(), home.0.clone(), id, from, to).await
}

/// Copies out of a box, into a folder that the person chooses.
#[tauri::command]
pub async fn copy_out<R: Runtime>(
    app: AppHandle<R>,
    window: State<'_, Window>,
    home: State<'_, Home>,
    id: BoxId,
    from: String,
) -> Result<Option<String>, ControlError> {
    let chosen = choose(&app, Wanted::TargetFolder, None).await?;
    let Some(to) = chosen.into_iter().next() else { return Ok(None) };
    let (window, home, target) = (window.inner().clone(), home.0.clone(), to.clone());
    waited(move || window.copy_out(&agentbox()?, &home, &id, &from, &target)).await?;
    Ok(Some(visible(&to.to_string_lossy())))
}

/// Writes a text of the page, such as a log, to a file that the person names; where it is.
#[tauri::command]
pub async fn save<R: Runtime>(
    app: AppHandle<R>,
    name: String,
    text: String,
) -> Result<Option<String>, ControlError> {
    let chosen = choose(&app, Wanted::NewFile(plain_name(&name)), None).await?;
    let Some(to) = chosen.into_iter().next() else { return Ok(None) };
    let file = to.clone();
    waited(move || {
        std::fs::write(&file, text).map_err(|e| {
            let text = format!("{} cannot be written: {e}.", visible(&file.to_string_lossy()));
            ControlError::new(ErrorCode::Failed, text)
        })
    })
    .await?;
    Ok(Some(visible(&to.to_string_lossy())))
}

/// What a page proposes is a name, and leads nowhere.
fn plain_name(name: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || "-_. ".contains(*c);
    let plain: String = name.chars().filter(fits).take(80).collect();
    let plain = plain.trim_start_matches('.').trim();
    if plain.is_empty() { "agentbox.txt".to_owned() } else { plain.to_owned() }
}

async fn put(
    window: Window,
    home: PathBuf,
    id: BoxId,
    from: Vec<PathBuf>,
    to: String,
) -> Result<usize, ControlError> {
    let count = from.len();
    if count > 0 {
        waited(move || window.copy_in(&agentbox()?, &home, &id, &from, &to)).await?;
    }
    Ok(count)
}

async fn waited(
    work: impl FnOnce() -> Result<(), ControlError> + Send + 'static,
) -> Result<(), ControlError> {
    let done = tauri::async_runtime::spawn_blocking(work).await;
    done.map_err(|e| ControlError::new(ErrorCode::Failed, format!("It ended early: {e}.")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere() {
        assert_eq!(plain_name("fix-login web.log"), "fix-login web.log");
        assert_eq!(plain_name("../../.bashrc"), "bashrc");
        assert_eq!(plain_name("/etc/passwd"), "etcpasswd");
        assert_eq!(plain_name("..."), "agentbox.txt");
    }
}
