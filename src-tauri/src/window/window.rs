//! The window process: one webview, a client of the control socket, never a host.
//!
//! Closing the window ends the process. The page can reach nothing but the commands in
//! [`crate::commands`]: it loads only what is embedded, opens no other page and no other window.

use crate::args::Wanted;
use crate::person::AtDesktop;
use crate::subscription::Subscription;
use crate::{
    Failure, chooser, commands, copies, display, home, links, logging, tray_end, window_state,
};
use agentbox_window::Window;
use std::path::PathBuf;
use std::sync::Arc;
use tauri::webview::NewWindowResponse;
use tauri::{App, Manager, Runtime, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};

/// The only window's label; the capabilities name it too.
pub const LABEL: &str = "main";

/// What the webview would send out by itself goes here, where nobody listens. The page's own rules do not cover
/// all of it: a link that is clicked and one that says `preconnect` open a connection before anybody is asked.
/// macOS heeds it only with a feature that is not switched on, and nobody has tried.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Whose window it is: the menu's entry is known to panels by this name.
#[cfg(target_os = "linux")]
const APP: &str = "agentbox-desktop";

pub fn run(wanted: Wanted) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    gtk::glib::set_prgname(Some(APP));
    display::require()?;
    let home = home::prepared()?;
    logging::start(&home, "window.log");
    let runtime = home::runtime()?;
    tauri::async_runtime::set(runtime.handle().clone());
    let app = tauri::Builder::default()
        .manage(wanted.page)
        .manage(copies::Home(home.clone()))
        .manage(copies::Dropped::default())
        .invoke_handler(tauri::generate_handler![
            commands::call,
            commands::subscribe,
            commands::initial_page,
            commands::shows,
            commands::begin,
            commands::hang_up,
            commands::stream,
            commands::stream_write,
            commands::stream_resize,
            commands::stream_taken,
            commands::screen_password,
            commands::files,
            links::open_place,
            copies::copy_in,
            copies::copy_dropped,
            copies::copy_out,
            copies::save,
            chooser::choose_folder
        ])
        .setup(move |app| {
            if wanted.of_the_tray {
                tray_end::watch(app.handle().clone());
            }
            Ok(open(app, home.clone())?)
        })
        .build(tauri::generate_context!())
        .map_err(|e| Failure::new(format!("the window cannot be opened: {e}.")))?;
    app.run(|_, _| {});
    Ok(())
}

fn open(app: &App, home: PathBuf) -> tauri::Result<()> {
    // Before there is a page that could ask for them.
    let window = Window::in_front_of(&home, Arc::new(AtDesktop(app.handle().clone())));
    app.manage(Subscription::new(window.client().clone()));
    app.manage(window);
    // The app's own is too large for a window manager to take.
    #[cfg(target_os = "linux")]
    crate::icon::on_windows();
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App("index.html".into()))
        .title("AgentBox")
        .inner_size(980.0, 680.0)
        .min_inner_size(640.0, 420.0)
        .on_navigation(|url| url.scheme() == "tauri")
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .proxy_url(NOWHERE.parse().map_err(tauri::Error::InvalidUrl)?)
        .build()?;
    copies::watch(&window);
    tell_focus(&window);
    window_state::keep(&window, home);
    Ok(())
}

/// The window system's word for who has the keyboard.
fn tell_focus<R: Runtime>(window: &WebviewWindow<R>) {
    let host = window.state::<Window>().inner().clone();
    window.on_window_event(move |event| match event {
        WindowEvent::Focused(focused) => host.focused(*focused),
        WindowEvent::Destroyed => host.focused(false),
        _ => {}
    });
}

/// Puts the window before the person, wherever it was.
pub fn come_to_front<R: Runtime>(app: &impl Manager<R>) {
    let Some(window) = app.get_webview_window(LABEL) else { return };
    for done in [window.unminimize(), window.show(), window.set_focus()] {
        if let Err(e) = done {
            tracing::warn!("the window cannot be brought to the front: {e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    /// Whoever widens one of these changes what a tricked page can do, and should have to say so here.
    #[test]
    fn the_page_may_listen_to_events_and_load_what_is_embedded_and_nothing_else() {
        let mut may: Value =
            serde_json::from_str(include_str!("../../capabilities/window.json")).unwrap();
        let described = may.as_object_mut().unwrap().remove("description").unwrap();
        assert!(described.as_str().unwrap().contains("src/window/commands.rs"), "{described}");
        let listens = ["core:event:allow-listen", "core:event:allow-unlisten"];
        assert_eq!(
            may,
            json!({
                "$schema": "../gen/schemas/desktop-schema.json",
                "identifier": "window",
                "windows": [super::LABEL],
                "permissions": listens,
            })
        );
        let app: Value = serde_json::from_str(include_str!("../../tauri.conf.json")).unwrap();
        let csp = "default-src 'self'; connect-src ipc: http://ipc.localhost; \
            style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; \
            frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
        assert_eq!(app["app"]["security"], json!({ "csp": csp }));
        assert_eq!(app["app"]["windows"], json!([]));
    }
}
