//! The person in front of the window, asked in a window of the desktop and never in the page.

use agentbox_window::{Loosening, Person};
use std::sync::mpsc;
use tauri::{AppHandle, Runtime};

pub struct AtDesktop<R: Runtime>(pub AppHandle<R>);

impl<R: Runtime> Person for AtDesktop<R> {
    fn agrees(&self, to: &Loosening) -> bool {
        let (answer, answered) = mpsc::channel();
        let (app, to) = (self.0.clone(), to.clone());
        let asks = self.0.run_on_main_thread(move || ask(&app, &to, answer));
        // Nobody answers when the window goes.
        asks.is_ok() && answered.recv().unwrap_or(false)
    }
}

#[cfg(target_os = "linux")]
fn ask<R: Runtime>(app: &AppHandle<R>, to: &Loosening, answer: mpsc::Sender<bool>) {
    use tauri::Manager;
    let window = app.get_webview_window(crate::window::LABEL);
    let parent = window.and_then(|window| window.gtk_window().ok());
    crate::confirm::ask(parent.as_ref(), to, answer);
}

/// No window of our own can ask here yet: a no, and the page says what to type at a terminal.
#[cfg(not(target_os = "linux"))]
fn ask<R: Runtime>(_: &AppHandle<R>, _: &Loosening, answer: mpsc::Sender<bool>) {
    let _ = answer.send(false);
}
