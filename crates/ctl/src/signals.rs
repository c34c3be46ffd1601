//! Signals as something to wait for, with a time limit.
//!
//! A handler sets its flag and then writes a byte, so a wake-up always finds its reason. Between
//! signals the process sleeps in `read`.

use crate::error::{Doing, Result};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM, SIGUSR1};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub struct Signals {
    wake: UnixStream,
    go: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let doing = || "listen for signals";
        let (wake, write) = UnixStream::pair().doing(doing)?;
        let (go, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&go)).doing(doing)?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&stop)).doing(doing)?;
        signal_hook::flag::register(SIGINT, Arc::clone(&stop)).doing(doing)?;
        for signal in [SIGUSR1, SIGTERM, SIGINT, SIGCHLD] {
            let write = write.try_clone().doing(doing)?;
            signal_hook::low_level::pipe::register(signal, write).doing(doing)?;
        }
        Ok(Self { wake, go, stop })
    }

    /// Sleeps until a signal comes or the time is there.
    pub fn wait(&mut self, until: Option<Instant>) {
        let left = until.map(|t| t.saturating_duration_since(Instant::now()));
        // Zero would mean “no limit”.
        let left = left.map(|d| d.max(Duration::from_millis(1)));
        if self.wake.set_read_timeout(left).is_ok() {
            let _ = self.wake.read(&mut [0; 64]);
        }
    }

    /// Whether SIGUSR1 came since the last look.
    pub fn take_go(&self) -> bool {
        self.go.swap(false, Ordering::SeqCst)
    }

    /// Whether the box is to stop.
    pub fn must_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
