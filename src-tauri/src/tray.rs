//! Draws a [`TrayView`] as the tray icon and its menu.
//!
//! A panel may come later than the app or never: building the icon is retried each second and
//! everything else goes on meanwhile. Labels show text as it is, never as markup or access keys.

use crate::actions::Actions;
use crate::image::Image;
use crate::main_thread::MainThread;
use crate::menu::{Action, Entry, Item, TrayView, literal};
use crate::places::{self, Standing};
use crate::tray_picture::{self, Look};
use host::Api;
use protocol::control::Notice;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tray_icon::menu::{IsMenuItem, Menu, MenuEvent, MenuItem, PredefinedMenuItem, Submenu};
use tray_icon::{Icon, MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent};

const PART: &str = "tray";
const AGAIN: Duration = Duration::from_secs(1);
/// At most ten new pictures per second, however much happens.
const PACE: Duration = Duration::from_millis(100);

thread_local! {
    /// Only the main thread has one. It goes with the process: dropping it waits for the panel.
    static SHOWN: RefCell<Option<ManuallyDrop<TrayIcon>>> = const { RefCell::new(None) };
    /// What the menu on the panel says, and since when.
    static STANDING: RefCell<Standing> = RefCell::default();
}

/// Shows the icon and keeps it up to date for the life of the app.
pub async fn keep(
    main: MainThread,
    api: Api,
    actions: Actions,
    mut views: watch::Receiver<TrayView>,
) {
    // Heard from the first: a theme may change while the first picture is drawn.
    let mut theme = theme(&main).await;
    let mut shown = appear(&main, &api, &actions, &mut views).await;
    loop {
        let repaint = tokio::select! {
            changed = views.changed() => match changed {
                Ok(()) => false,
                Err(_) => return,
            },
            () = theme_changes(&mut theme) => true,
        };
        let view = views.borrow_and_update().clone();
        let (from, to) = (shown.clone(), view.clone());
        match main.ask(move || redraw(&from, &to, repaint)).await {
            Ok(()) => shown = view,
            // The next one is compared with what is still up.
            Err(e) => tracing::warn!("the tray icon cannot be changed: {e}"),
        }
        tokio::time::sleep(PACE).await;
    }
}

type Theme = Option<watch::Receiver<()>>;

/// Hears when the desktop's theme changes; none where nobody tells.
async fn theme(main: &MainThread) -> Theme {
    if cfg!(not(target_os = "linux")) {
        return None; // the menu bar colours the icon itself
    }
    let (changes, theme) = watch::channel(());
    let followed = main.ask(move || {
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
    main: &MainThread,
    api: &Api,
    actions: &Actions,
    views: &mut watch::Receiver<TrayView>,
) -> TrayView {
    let mut panel = Panel::default();
    let mut said = None;
    loop {
        let view = views.borrow_and_update().clone();
        let (there, first, actions) = (main.clone(), view.clone(), actions.clone());
        let built = match panel.answers().await {
            Ok(()) => main.ask(move || build(&there, &first, actions)).await,
            Err(why) => Err(why),
        };
        match built {
            Ok(()) => {
                api.clear_notice(PART);
                return view;
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

fn build(main: &MainThread, view: &TrayView, actions: Actions) -> Result<(), String> {
    listen(main, actions);
    let icon = TrayIconBuilder::new()
        .with_id("agentbox")
        .with_icon(picture(view)?)
        .with_icon_as_template(true)
        .with_title(shown_title(&view.title))
        .with_tooltip(&view.tooltip)
        .with_menu(Box::new(draw(&view.menu)?))
        .with_menu_on_left_click(false)
        .build()
        .map_err(in_words)?;
    SHOWN.set(Some(ManuallyDrop::new(icon)));
    stands(&view.menu);
    Ok(())
}

/// After the panel has it: a click that was quicker is too new.
fn stands(menu: &[Entry]) {
    STANDING.with_borrow_mut(|standing| standing.drawn(menu, Instant::now()));
}

/// What is clicked comes on a thread of the icon's own.
fn listen(main: &MainThread, actions: Actions) {
    let (there, chosen) = (main.clone(), actions.clone());
    MenuEvent::set_event_handler(Some(move |event: MenuEvent| {
        let Some(action) = Action::from_id(event.id().as_ref()) else { return };
        let chosen = chosen.clone();
        there.post(move || choose(&chosen, action));
    }));
    let there = main.clone();
    TrayIconEvent::set_event_handler(Some(move |event| {
        let TrayIconEvent::Click { button, button_state, .. } = event else { return };
        if button == MouseButton::Left && button_state == MouseButtonState::Up {
            let actions = actions.clone();
            there.post(move || actions.open_front());
        }
    }));
}

fn choose(actions: &Actions, action: Action) {
    if STANDING.with_borrow(|standing| standing.is_too_new(&action, Instant::now())) {
        actions.too_soon();
    } else {
        actions.perform(action);
    }
}

fn redraw(from: &TrayView, to: &TrayView, repaint: bool) -> Result<(), String> {
    SHOWN.with_borrow_mut(|shown| {
        let Some(icon) = shown else { return Ok(()) };
        if repaint || from.icon != to.icon {
            icon.set_icon(Some(picture(to)?)).map_err(in_words)?;
            // Of macOS only, where each new picture counts as a coloured one until this is said.
            icon.set_icon_as_template(true);
        }
        if from.title != to.title {
            icon.set_title(Some(shown_title(&to.title)));
        }
        if from.tooltip != to.tooltip {
            icon.set_tooltip(Some(&to.tooltip)).map_err(in_words)?;
        }
        if from.menu != to.menu {
            let menu = draw(&to.menu)?;
            // Only another shape gets new numbers, and no menu has the shape of none.
            if places::differ(&from.menu, &to.menu) {
                icon.set_menu(None);
            }
            icon.set_menu(Some(Box::new(menu)));
            stands(&to.menu);
        }
        Ok(())
    })
}

/// On macOS the title stands in the menu bar itself, where only the icon belongs.
fn shown_title(title: &str) -> &str {
    if cfg!(target_os = "linux") { title } else { "" }
}

fn draw(entries: &[Entry]) -> Result<Menu, String> {
    let menu = Menu::new();
    for entry in entries {
        menu.append(entry_item(entry)?.as_ref()).map_err(in_words)?;
    }
    Ok(menu)
}

fn entry_item(entry: &Entry) -> Result<Box<dyn IsMenuItem>, String> {
    Ok(match entry {
        Entry::Text(text) => Box::new(MenuItem::new(literal(text), false, None)),
        Entry::Item(item) => Box::new(clickable(item)),
        Entry::Separator => Box::new(PredefinedMenuItem::separator()),
        Entry::Submenu { label, items } => {
            let submenu = Submenu::new(literal(label), true);
            for item in items {
                submenu.append(&clickable(item)).map_err(in_words)?;
            }
            Box::new(submenu)
        }
    })
}

fn clickable(item: &Item) -> MenuItem {
    MenuItem::with_id(item.action.to_id(), literal(&item.label), true, None)
}

fn picture(view: &TrayView) -> Result<Icon, String> {
    let Image { rgba, width, height } = tray_picture::draw(view.icon, look());
    Icon::from_rgba(rgba, width, height).map_err(in_words)
}

#[cfg(target_os = "linux")]
fn look() -> Look {
    if crate::panel::is_dark() { Look::Dark } else { Look::Light }
}

#[cfg(not(target_os = "linux"))]
fn look() -> Look {
    Look::Template
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
