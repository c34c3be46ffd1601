//! Where questions are not shown as notifications yet (macOS): the tray and the window show them.
//! Native notifications and dialogs are not there on this system; what would be told is logged.

use host::Api;

#[derive(Clone)]
pub struct Notifier;

impl Notifier {
    pub fn start(_: &Api) -> Self {
        Self
    }

    pub fn tell(&self, title: &str, body: &str) {
        tracing::warn!("{title}: {body}");
    }

    pub fn tell_of_box(&self, _: &protocol::BoxId, title: &str, body: &str) {
        self.tell(title, body);
    }

    pub async fn emptied(&self) {}
}
