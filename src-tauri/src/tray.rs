//! Draws a [`TrayView`] as the tray icon and its menu.
//!
//! A panel may come later than the app or never: building the icon is retried each second and
//! everything else goes on meanwhile. Labels show text as it is, never as markup or access keys.

use crate::actions::Actions;
use crate::menu::{Action, Entry, Icon, Item, TrayView, literal};
use crate::tray_icon;
use host::Api;
use protocol::control::Notice;
use std::time::Duration;
use tauri::image::Image;
use tauri::menu::{IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu};
use tauri::tray::{MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent};
use tauri::{AppHandle, Wry};
use tokio::sync::{oneshot, watch};

const PART: &str = "tray";
const AGAIN: Duration = Duration::from_secs(1);
/// At most ten new pictures per second, however much happens.
const PACE: Duration = Duration::from_millis(100);

/// Shows the icon and keeps it up to date for the life of the app.
pub async fn keep(
    app: AppHandle,
    api: Api,
    actions: Actions,
    mut views: watch::Receiver<TrayView>,
) {
    let (icon, mut shown) = appear(&app, &api, &actions, &mut views).await;
    let mut theme = theme(&app).await;
    loop {
        let repaint = tokio::select! {
            changed = views.changed() => match changed {
                Ok(()) => false,
                Err(_) => return,
            },
            () = theme_changes(&mut theme) => true,
        };
        let view = views.borrow_and_update().clone();
        let (icon, from, to) = (icon.clone(), shown.clone(), view.clone());
        let drawn = on_main(&app, move |app| redraw(app, &icon, &from, &to, repaint)).await;
        if let Err(e) = drawn {
            tracing::warn!("the tray icon cannot be changed: {e}");
        }
        shown = view;
        tokio::time::sleep(PACE).await;
    }
}

type Theme = Option<watch::Receiver<()>>;

/// Hears when the desktop's theme changes; none where nobody tells.
async fn theme(app: &AppHandle) -> Theme {
    if cfg!(not(target_os = "linux")) {
        return None; // the menu bar colours the icon itself
    }
    let (changes, theme) = watch::channel(());
    let followed = on_main(app, move |_| {
        #[cfg(target_os = "linux")]
        crate::panel::on_change(move || {
            let _ = changes.send(());
        });
        Ok(())
    });
    followed.await.ok().map(|()| theme)
}

async fn theme_changes(theme: &mut Theme) {
    let heard = match theme {
        Some(theme) => theme.changed().await.is_ok(),
        None => false,
    };
    if !heard {
        std::future::pending::<()>().await;
    }
}

/// Tries until a panel takes the icon.
async fn appear(
    app: &AppHandle,
    api: &Api,
    actions: &Actions,
    views: &mut watch::Receiver<TrayView>,
) -> (TrayIcon, TrayView) {
    let mut panel = Panel::default();
    let mut said = None;
    loop {
        let view = views.borrow_and_update().clone();
        let (first, actions) = (view.clone(), actions.clone());
        let built = match panel.answers().await {
            Ok(()) => on_main(app, move |app| build(app, &first, actions)).await,
            Err(why) => Err(why),
        };
        match built {
            Ok(icon) => {
                api.clear_notice(PART);
                return (icon, view);
            }
            Err(why) if said.as_ref() != Some(&why) => {
                tracing::warn!("no tray icon: {why}");
                api.set_notice(notice(&why));
                said = Some(why);
            }
            Err(_) => {}
        }
        tokio::time::sleep(AGAIN).await;
    }
}

#[cfg(target_os = "linux")]
type Panel = crate::tray_host::TrayHost;

/// The menu bar is always there.
#[cfg(not(target_os = "linux"))]
#[derive(Default)]
struct Panel;

#[cfg(not(target_os = "linux"))]
impl Panel {
    async fn answers(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn notice(why: &str) -> Notice {
    Notice {
        part: PART.into(),
        message: format!("The tray icon cannot be shown: {why}."),
        hint: Some(
            "Start a panel with a tray; on GNOME, install the AppIndicator extension. \
             The window opens with: agentbox-desktop"
                .into(),
        ),
    }
}

/// Runs on the main thread, where menus and icons live, and waits for the outcome.
async fn on_main<T: Send + 'static>(
    app: &AppHandle,
    work: impl FnOnce(&AppHandle) -> tauri::Result<T> + Send + 'static,
) -> Result<T, String> {
    let (tx, rx) = oneshot::channel();
    let handle = app.clone();
    app.run_on_main_thread(move || {
        let _ = tx.send(work(&handle));
    })
    .map_err(|e| e.to_string())?;
    rx.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
}

fn build(app: &AppHandle, view: &TrayView, actions: Actions) -> tauri::Result<TrayIcon> {
    let clicked = actions.clone();
    TrayIconBuilder::with_id("agentbox")
        .icon(image(view.icon))
        .icon_as_template(true)
        .title(shown_title(&view.title))
        .tooltip(&view.tooltip)
        .menu(&draw(app, &view.menu)?)
        .show_menu_on_left_click(false)
        .on_menu_event(move |_, event| {
            if let Some(action) = Action::from_id(event.id().as_ref()) {
                actions.perform(action);
            }
        })
        .on_tray_icon_event(move |_, event| {
            let TrayIconEvent::Click { button, button_state, .. } = event else { return };
            if button == MouseButton::Left && button_state == MouseButtonState::Up {
                clicked.open_front();
            }
        })
        .build(app)
}

fn redraw(
    app: &AppHandle,
    icon: &TrayIcon,
    from: &TrayView,
    to: &TrayView,
    repaint: bool,
) -> tauri::Result<()> {
    if repaint || from.icon != to.icon {
        icon.set_icon(Some(image(to.icon)))?;
    }
    if from.title != to.title {
        icon.set_title(Some(shown_title(&to.title)))?;
    }
    if from.tooltip != to.tooltip {
        icon.set_tooltip(Some(&to.tooltip))?;
    }
    if from.menu != to.menu {
        icon.set_menu(Some(draw(app, &to.menu)?))?;
    }
    Ok(())
}

/// On macOS the title stands in the menu bar itself, where only the icon belongs.
fn shown_title(title: &str) -> &str {
    if cfg!(target_os = "linux") { title } else { "" }
}

fn draw(app: &AppHandle, entries: &[Entry]) -> tauri::Result<Menu<Wry>> {
    let menu = Menu::new(app)?;
    for entry in entries {
        menu.append(entry_item(app, entry)?.as_ref())?;
    }
    Ok(menu)
}

fn entry_item(app: &AppHandle, entry: &Entry) -> tauri::Result<Box<dyn IsMenuItem<Wry>>> {
    Ok(match entry {
        Entry::Text(text) => Box::new(MenuItem::new(app, literal(text), false, None::<&str>)?),
        Entry::Item(item) => Box::new(clickable(app, item)?),
        Entry::Separator => Box::new(PredefinedMenuItem::separator(app)?),
        Entry::Submenu { label, items } => {
            let submenu = Submenu::new(app, literal(label), true)?;
            for item in items {
                submenu.append(&clickable(app, item)?)?;
            }
            Box::new(submenu)
        }
    })
}

fn clickable(app: &AppHandle, item: &Item) -> tauri::Result<MenuItem<Wry>> {
    MenuItem::with_id(app, item.action.to_id(), literal(&item.label), true, None::<&str>)
}

#[cfg(target_os = "linux")]
fn image(icon: Icon) -> Image<'static> {
    let dark = crate::panel::is_dark();
    tray_icon::draw(icon, if dark { tray_icon::Look::Dark } else { tray_icon::Look::Light })
}

#[cfg(not(target_os = "linux"))]
fn image(icon: Icon) -> Image<'static> {
    tray_icon::draw(icon, tray_icon::Look::Template)
}
