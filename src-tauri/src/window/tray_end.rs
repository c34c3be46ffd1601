//! Goes when the tray does, however that ended: the next tray opens a window of its own.
//!
//! The tray holds the other end of this program's input and writes nothing to it. The kernel closes it even for a
//! tray that is killed, so nothing has to be asked again and again.

use std::io::Read;
use tauri::AppHandle;

/// Ends the app with its input.
pub fn watch(app: AppHandle) {
    std::thread::spawn(move || {
        until_the_end(std::io::stdin().lock());
        tracing::info!("the tray is gone, and so is its window");
        app.exit(0);
    });
}

/// What cannot be read has no tray at its other end either.
fn until_the_end(mut input: impl Read) {
    let _ = std::io::copy(&mut input, &mut std::io::sink());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn input_that_is_held_open_holds_the_window_open() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let waits = std::thread::spawn(move || until_the_end(reader));
        writer.write_all(b"nothing that matters").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waits.is_finished());
        drop(writer);
        waits.join().unwrap();
    }
}
