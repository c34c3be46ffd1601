//! Is there a desktop to show anything on?
//!
//! The window library panics without one, which tells nobody what to do, so this is asked first.

use crate::Failure;

/// Fails with exit code 2 and says what to use instead.
#[cfg(target_os = "linux")]
pub fn require() -> Result<(), Failure> {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let why = if !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        "there is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set."
    } else if gtk::init().is_err() {
        "the display named by DISPLAY or WAYLAND_DISPLAY cannot be opened."
    } else {
        return Ok(());
    };
    Err(Failure::usage(why).hint("Without a desktop, run the host with: agentbox serve"))
}

#[cfg(not(target_os = "linux"))]
pub fn require() -> Result<(), Failure> {
    Ok(())
}
