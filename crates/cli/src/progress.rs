//! Steps of something long, on standard error.
//!
//! On a terminal one line per step that is redrawn in place while it runs, by a thread, so that
//! the clock moves even when the host is silent. Elsewhere plain lines, a detail at most every few
//! seconds, so that a log of a long build stays readable and still shows life.

use crate::table::cut;
use crate::time::took;
use crate::ui::{Look, Ui};
use protocol::boxes::{Progress, StepState};
use protocol::text::visible;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const REDRAW: Duration = Duration::from_millis(120);
const QUIET_MS: u64 = 5_000;
/// After so long without a line, one says that it still goes on.
const ALIVE: Duration = Duration::from_secs(20);
const BAR: usize = 20;

/// Shows progress until dropped.
pub struct Steps {
    events: Option<Sender<Progress>>,
    drawer: Option<JoinHandle<()>>,
}

impl Steps {
    /// With every word of what is done, one below the other.
    pub fn verbose(ui: &Ui) -> Self {
        let look = ui.err;
        Self::drawn_by(move |incoming| {
            let mut plain = Plain { every_word: true, ..Plain::default() };
            draw_plain(look, incoming, ALIVE, &mut plain, put);
        })
    }

    pub fn new(ui: &Ui) -> Self {
        let look = ui.err;
        Self::drawn_by(move |incoming| match look.width {
            Some(_) => draw_live(look, incoming),
            None => draw_plain(look, incoming, ALIVE, &mut Plain::default(), put),
        })
    }

    fn drawn_by(draw: impl FnOnce(&mpsc::Receiver<Progress>) + Send + 'static) -> Self {
        let (events, incoming) = mpsc::channel();
        let drawer = std::thread::spawn(move || draw(&incoming));
        Self { events: Some(events), drawer: Some(drawer) }
    }

    pub fn show(&self, progress: Progress) {
        if let Some(events) = &self.events {
            let _ = events.send(progress);
        }
    }

    /// For callers on other threads.
    pub fn sender(&self) -> Option<Sender<Progress>> {
        self.events.clone()
    }
}

impl Drop for Steps {
    /// Waits for the last line, so that what follows does not mix with it.
    fn drop(&mut self) {
        drop(self.events.take());
        if let Some(drawer) = self.drawer.take() {
            let _ = drawer.join();
        }
    }
}

fn draw_live(look: Look, incoming: &mpsc::Receiver<Progress>) {
    let mut current: Option<(Progress, Instant)> = None;
    loop {
        match incoming.recv_timeout(REDRAW) {
            Ok(progress) => {
                if current.as_ref().is_some_and(|(c, _)| c.step != progress.step) {
                    put("\n");
                }
                put(&format!("\r\x1b[2K{}", line(look, &progress)));
                let running = progress.state == StepState::Running;
                if !running {
                    put("\n");
                }
                current = running.then(|| (progress, Instant::now()));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some((progress, at)) = &current {
                    let since = u64::try_from(at.elapsed().as_millis()).unwrap_or(0);
                    let now =
                        Progress { elapsed_ms: progress.elapsed_ms + since, ..progress.clone() };
                    put(&format!("\r\x1b[2K{}", line(look, &now)));
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if current.is_some() {
        put("\n");
    }
}

fn draw_plain(
    look: Look,
    incoming: &mpsc::Receiver<Progress>,
    alive: Duration,
    plain: &mut Plain,
    mut put: impl FnMut(&str),
) {
    let mut said = Instant::now();
    let mut current: Option<(Progress, Instant)> = None;
    loop {
        let text = match incoming.recv_timeout(alive.saturating_sub(said.elapsed())) {
            Ok(progress) => {
                let text = plain.line(look, &progress);
                let running = progress.state == StepState::Running;
                current = running.then(|| (progress, Instant::now()));
                text
            }
            Err(RecvTimeoutError::Timeout) => {
                said = Instant::now();
                current.as_ref().map(|(progress, at)| {
                    let since = u64::try_from(at.elapsed().as_millis()).unwrap_or(0);
                    format!("    still at it after {}", took(progress.elapsed_ms + since))
                })
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Some(text) = text {
            put(&format!("{text}\n"));
            said = Instant::now();
        }
    }
}

fn put(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// One step as it is now, no wider than the terminal.
fn line(look: Look, progress: &Progress) -> String {
    let mark = match progress.state {
        StepState::Running => look.hint("·"),
        StepState::Done => look.good("✓"),
        StepState::Failed => look.bad("✗"),
    };
    let mut text = format!("{}  {}", visible(&progress.step), took(progress.elapsed_ms));
    if progress.state == StepState::Running {
        if let Some(fraction) = progress.fraction {
            text = format!("{text}  {}", bar(fraction));
        }
        if let Some(detail) = &progress.detail {
            text = format!("{text}  {}", visible(detail));
        }
    }
    // Two columns for the mark, one so that the cursor never wraps.
    let room = look.width.unwrap_or(usize::MAX).saturating_sub(3);
    format!("{mark} {}", cut(&text, room))
}

fn bar(fraction: f32) -> String {
    let share = fraction.clamp(0.0, 1.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let (full, percent) = ((share * BAR as f32) as usize, (share * 100.0) as u32);
    format!("{}{} {percent:>3} %", "█".repeat(full), "░".repeat(BAR - full))
}

/// What was last said where lines cannot be redrawn.
#[derive(Default)]
struct Plain {
    step: String,
    said_at: u64,
    detail: Option<String>,
    every_word: bool,
}

impl Plain {
    fn line(&mut self, look: Look, progress: &Progress) -> Option<String> {
        if progress.state != StepState::Running {
            self.step.clear();
            return Some(line(look, progress));
        }
        let step = visible(&progress.step);
        if self.every_word {
            return self.words(step, progress);
        }
        if self.step != step {
            self.step.clone_from(&step);
            self.said_at = progress.elapsed_ms;
            return Some(format!("· {step}"));
        }
        let detail = progress.detail.as_ref()?;
        let due = progress.elapsed_ms >= self.said_at + QUIET_MS;
        due.then(|| {
            self.said_at = progress.elapsed_ms;
            format!("    {}", visible(detail))
        })
    }

    /// What is new since the last word.
    fn words(&mut self, step: String, progress: &Progress) -> Option<String> {
        let begins = (self.step != step).then(|| format!("· {step}"));
        let detail = progress.detail.as_ref().filter(|d| self.detail.as_ref() != Some(*d));
        let said = detail.map(|detail| format!("    {}", visible(detail)));
        self.step = step;
        self.detail.clone_from(&progress.detail);
        let lines: Vec<String> = begins.into_iter().chain(said).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(state: StepState, ms: u64, detail: Option<&str>, fraction: Option<f32>) -> Progress {
        Progress {
            step: "Build the box image".into(),
            state,
            detail: detail.map(Into::into),
            fraction,
            elapsed_ms: ms,
        }
    }

    #[test]
    fn a_step_is_one_line_that_fits() {
        let running = at(StepState::Running, 12_300, Some("Step 4/9: RUN apt-get"), Some(0.42));
        let text = [
            line(Look::PLAIN, &running),
            line(Look { color: false, width: Some(40) }, &running),
            line(Look::PLAIN, &at(StepState::Done, 61_000, None, Some(1.0))),
            line(Look::PLAIN, &at(StepState::Failed, 900, None, None)),
        ];
        assert_eq!(text[1].chars().count(), 39);
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn a_log_gets_starts_ends_and_a_sign_of_life() {
        let mut plain = Plain::default();
        let said: Vec<_> = [
            at(StepState::Running, 0, None, None),
            at(StepState::Running, 100, Some("Step 1/9"), None),
            at(StepState::Running, 6_000, Some("Step 2/9"), None),
            at(StepState::Running, 6_100, Some("Step 3/9"), None),
            at(StepState::Done, 7_000, None, Some(1.0)),
        ]
        .iter()
        .filter_map(|p| plain.line(Look::PLAIN, p))
        .collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn with_verbose_every_word_is_said_once() {
        let mut plain = Plain { every_word: true, ..Plain::default() };
        let said: Vec<_> = [
            at(StepState::Running, 0, Some("Step 1/9"), None),
            at(StepState::Running, 1, Some("Step 1/9"), Some(0.1)),
            at(StepState::Running, 2, Some("Step 2/9"), Some(0.2)),
            at(StepState::Done, 3, None, Some(1.0)),
        ]
        .iter()
        .filter_map(|p| plain.line(Look::PLAIN, p))
        .collect();
        let wanted =
            ["· Build the box image\n    Step 1/9", "    Step 2/9", "✓ Build the box image  0.0 s"];
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_long_silence_is_broken() {
        let (events, incoming) = mpsc::channel();
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = lines.clone();
        let drawer = std::thread::spawn(move || {
            let put = |text: &str| kept.lock().unwrap().push(text.to_owned());
            draw_plain(
                Look::PLAIN,
                &incoming,
                Duration::from_millis(20),
                &mut Plain::default(),
                put,
            );
        });
        let until = |wanted: &str| {
            let end = Instant::now() + Duration::from_secs(30);
            while !lines.lock().unwrap().iter().any(|line| line.contains(wanted)) {
                assert!(Instant::now() < end, "no {wanted:?}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        events.send(at(StepState::Running, 61_000, None, None)).unwrap();
        until("still at it after 1 min");
        events.send(at(StepState::Done, 62_000, None, None)).unwrap();
        until("✓");
        drop(events);
        drawer.join().unwrap();
    }

    #[test]
    fn a_detail_cannot_move_the_cursor() {
        let text = line(Look::PLAIN, &at(StepState::Running, 0, Some("\x1b[2Jgone\r"), None));
        assert!(!text.contains('\x1b') && !text.contains('\r'), "{text:?}");
    }
}
