//! Bakes the app's configuration and the window's permissions into the binary.

fn main() {
    tauri_build::build();
}
