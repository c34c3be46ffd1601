//! Where there are no native dialogs of ours yet: what would have to be asked first is not done. The window asks,
//! and the command line does.

/// See the Linux one.
pub struct Confirm {
    pub title: String,
    pub lines: Vec<String>,
    pub verb: &'static str,
}

/// Only asked where something would be lost, so nobody's yes may be assumed.
pub async fn ask(what: Confirm) -> bool {
    tracing::warn!("{} Not done from the tray: {}", what.title, what.lines.join(" "));
    false
}
