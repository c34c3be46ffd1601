//! Is the panel dark, so that the tray needs the light glyph?
//!
//! Nobody tells an app. GNOME's and Unity's bars are dark in every theme; elsewhere the panel
//! follows the theme that GTK knows. Without a clue the answer is yes: most panels are.

use gtk::glib;
use gtk::prelude::*;
use std::rc::Rc;

/// Main thread only.
pub fn is_dark() -> bool {
    let desktop = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    if always_dark(&desktop) {
        return true;
    }
    let background = gtk::Label::new(None).style_context().lookup_color("theme_bg_color");
    background.is_none_or(|c| brightness(c.red(), c.green(), c.blue()) < 0.5)
}

/// Tells each time another theme is chosen, once its colours are known. Main thread only.
pub fn on_change(tell: impl Fn() + 'static) {
    let Some(settings) = gtk::Settings::default() else { return };
    let tell = Rc::new(tell);
    let later = move |_: &gtk::Settings| {
        let tell = tell.clone();
        glib::idle_add_local_once(move || tell());
    };
    settings.connect_gtk_theme_name_notify(later.clone());
    settings.connect_gtk_application_prefer_dark_theme_notify(later);
}

fn always_dark(desktop: &str) -> bool {
    desktop.split(':').any(|name| name == "GNOME" || name == "Unity")
}

fn brightness(red: f64, green: f64, blue: f64) -> f64 {
    0.299 * red + 0.587 * green + 0.114 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_desktops_have_dark_bars_whatever_the_theme() {
        assert!(always_dark("ubuntu:GNOME"));
        assert!(!always_dark("XFCE"));
        assert!(!always_dark("GNOME-Flashback"));
    }

    #[test]
    fn a_background_is_light_or_dark() {
        assert!(brightness(0.96, 0.96, 0.95) > 0.5);
        assert!(brightness(0.2, 0.2, 0.2) < 0.5);
    }
}
