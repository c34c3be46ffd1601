//! Follows the host's events: keeps the tray's picture up to date and opens the window when the
//! host says so.

use crate::live::Live;
use crate::menu::{self, TrayView};
use crate::notifications::Notifier;
use crate::window_child::WindowChild;
use host::Api;
use protocol::control::HostEvent;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// The tray as it should look; only changes are announced, and only the newest is kept.
pub fn start(api: Api, window: WindowChild, notifier: Notifier) -> watch::Receiver<TrayView> {
    let (views, receiver) = watch::channel(menu::view(&Live::default()));
    tauri::async_runtime::spawn(follow(api, window, notifier, views));
    receiver
}

async fn follow(api: Api, window: WindowChild, notifier: Notifier, views: watch::Sender<TrayView>) {
    // Subscribed first: what happens while the snapshot is made comes after it.
    let mut events = api.subscribe();
    let mut live = Live::default();
    live.apply(api.snapshot().await);
    loop {
        publish(&views, menu::view(&live));
        match events.recv().await {
            Ok(HostEvent::ShowWindow { page }) => {
                if let Err(why) = window.show(&page) {
                    tracing::warn!("{why}");
                    notifier.tell("The AgentBox window could not be opened", &why);
                }
            }
            Ok(event) => live.apply(event),
            Err(RecvError::Lagged(_)) => live.apply(api.snapshot().await),
            Err(RecvError::Closed) => return,
        }
    }
}

fn publish(views: &watch::Sender<TrayView>, view: TrayView) {
    views.send_if_modified(|shown| {
        let changed = *shown != view;
        *shown = view;
        changed
    });
}
