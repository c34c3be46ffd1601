//! The app's icon on the windows of this process.

/// At the size that window lists use. Main thread only.
#[cfg(target_os = "linux")]
pub fn on_windows() {
    use gtk::gdk_pixbuf::PixbufLoader;
    use gtk::prelude::*;

    let loader = PixbufLoader::new();
    let read = loader.write(include_bytes!("../../icons/app/64.png"));
    // Closed in any case, or GTK complains.
    match read.and(loader.close()) {
        Ok(()) => {
            if let Some(icon) = loader.pixbuf() {
                gtk::Window::set_default_icon(&icon);
            }
        }
        Err(e) => tracing::warn!("the icon cannot be read: {e}"),
    }
}
