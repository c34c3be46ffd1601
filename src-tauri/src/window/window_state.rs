//! The size of the window and where it was, from one time to the next: one line in a file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tauri::{PhysicalPosition, PhysicalSize, Runtime, WebviewWindow, WindowEvent};

const FILE: &str = "window";

/// Whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub width: u32,
    pub height: u32,
    pub x: i32,
    pub y: i32,
    pub maximized: bool,
}

impl State {
    /// What was kept; none when there is nothing, or nothing a window could be.
    pub fn load(home: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(home.join(FILE)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let state = Self {
            width: words.next()?.parse().ok()?,
            height: words.next()?.parse().ok()?,
            x: words.next()?.parse().ok()?,
            y: words.next()?.parse().ok()?,
            maximized: words.next()? == "maximized",
        };
        let fits = |size: u32| (200..=20_000).contains(&size);
        (fits(state.width) && fits(state.height)).then_some(state)
    }

    fn line(self) -> String {
        let form = if self.maximized { "maximized" } else { "plain" };
        format!("{} {} {} {} {form}\n", self.width, self.height, self.x, self.y)
    }
}

/// Puts the window where it was, unless that screen is gone, and keeps where it is when it closes.
pub fn keep<R: Runtime>(window: &WebviewWindow<R>, home: PathBuf) {
    let kept = State::load(&home);
    if let Some(state) = kept {
        let _ = window.set_size(PhysicalSize::new(state.width, state.height));
        if on_a_screen(window, state) {
            let _ = window.set_position(PhysicalPosition::new(state.x, state.y));
        }
        if state.maximized {
            let _ = window.maximize();
        }
    }
    let (there, last) = (window.clone(), Mutex::new(kept));
    window.on_window_event(move |event| {
        if !matches!(
            event,
            WindowEvent::CloseRequested { .. } | WindowEvent::Resized(_) | WindowEvent::Moved(_)
        ) {
            return;
        }
        let Some(mut now) = state_of(&there) else { return };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        // Maximized it has the screen's size: what it had before is kept.
        if let Some(before) = last.filter(|_| now.maximized) {
            now = State { maximized: true, ..before };
        }
        if last.replace(now) == Some(now) {
            return;
        }
        if let Err(e) = std::fs::write(home.join(FILE), now.line()) {
            tracing::warn!("where the window is cannot be kept: {e}");
        }
    });
}

fn state_of<R: Runtime>(window: &WebviewWindow<R>) -> Option<State> {
    let (size, at) = (window.inner_size().ok()?, window.outer_position().ok()?);
    let maximized = window.is_maximized().unwrap_or(false);
    Some(State { width: size.width, height: size.height, x: at.x, y: at.y, maximized })
}

/// Enough of it to take hold of.
fn on_a_screen<R: Runtime>(window: &WebviewWindow<R>, state: State) -> bool {
    let screens = window.available_monitors().unwrap_or_default();
    screens.iter().any(|screen| {
        let (at, size) = (screen.position(), screen.size());
        let right = at.x + i32::try_from(size.width).unwrap_or(i32::MAX);
        let bottom = at.y + i32::try_from(size.height).unwrap_or(i32::MAX);
        (at.x - 100..right - 100).contains(&state.x) && (at.y..bottom - 50).contains(&state.y)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_it_was_written() {
        let state = State { width: 980, height: 680, x: -20, y: 40, maximized: true };
        assert_eq!(State::parse(&state.line()), Some(state));
        for bad in
            ["", "980 680", "980 680 0 0", "0 680 0 0 plain", "a b c d e", "99999 9 0 0 plain"]
        {
            assert_eq!(State::parse(bad), None, "{bad}");
        }
    }
}
