//! What a dialog says itself: ages, sizes and how a question ended. Everything else comes from the
//! host.

use gtk::glib;
use protocol::Millis;
use protocol::question::{Outcome, Surface};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Milliseconds since the epoch.
pub fn now() -> Millis {
    let micros = glib::real_time();
    Millis::try_from(micros / 1000).unwrap_or(0)
}

/// “12 s ago”. A time ahead of the clock counts as now.
pub fn ago(at: Millis, now: Millis) -> String {
    match now.saturating_sub(at) / 1000 {
        seconds @ ..MINUTE => format!("{seconds} s ago"),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        seconds if seconds / DAY == 1 => "1 day ago".into(),
        seconds => format!("{} days ago", seconds / DAY),
    }
}

/// “512 bytes”, “1.2 KB”, “34 MB”.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths {
        ..100 => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        _ => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// How a question ended, for somebody who was reading it.
pub fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Allowed { by } => format!("Allowed {}", place(*by)),
        Outcome::Without { by } => format!("Without these files, said {}", place(*by)),
        Outcome::Denied { by } => format!("Denied {}", place(*by)),
        Outcome::Granted { .. } => "Allowed by a rule".into(),
        Outcome::Expired => "Nobody answered in time: denied".into(),
        Outcome::Withdrawn => "The command in the box ended: withdrawn".into(),
        Outcome::HostStopped => "AgentBox stopped: denied".into(),
        Outcome::TooMany => "Too many questions from this box: denied".into(),
        Outcome::Muted => "The box is muted: denied".into(),
        Outcome::Nobody => "Nobody was there to ask: denied".into(),
    }
}

fn place(surface: Surface) -> &'static str {
    match surface {
        Surface::Dialog => "in this dialog",
        Surface::Notification => "from the notification",
        Surface::Window => "in the window",
        Surface::Tray => "from the tray",
        Surface::Cli => "on the command line",
        Surface::Terminal => "in the terminal",
        Surface::PromptCommand => "in the menu",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rough_and_never_negative() {
        let said = [0, 12_000, 180_000, 7_300_000, 90_000_000, 500_000_000]
            .map(|ms| ago(1_000_000_000_000 - ms, 1_000_000_000_000));
        assert_eq!(
            said,
            ["0 s ago", "12 s ago", "3 min ago", "2 h ago", "1 day ago", "5 days ago"]
        );
        assert_eq!(ago(2000, 1000), "0 s ago");
    }

    #[test]
    fn sizes_are_short() {
        let said = [0, 999, 1000, 1234, 34_567, 1_000_000, 3_400_000_000].map(size);
        let wanted = ["0 bytes", "999 bytes", "1.0 KB", "1.2 KB", "34 KB", "1.0 MB", "3.4 GB"];
        assert_eq!(said, wanted);
    }

    #[test]
    fn an_end_says_where() {
        assert_eq!(ending(&Outcome::Denied { by: Surface::Terminal }), "Denied in the terminal");
        let without = ending(&Outcome::Without { by: Surface::Window });
        assert_eq!(without, "Without these files, said in the window");
        assert_eq!(ending(&Outcome::Muted), "The box is muted: denied");
    }
}
