//! Whether what the box prints may be written now.
//!
//! While it may not, nothing more is read either: the box waits, and nothing piles up here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    shut: AtomicBool,
    /// Held while something is written.
    writing: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    /// Writes when the gate is open, whole.
    pub fn pass<T>(&self, write: impl FnOnce() -> T) -> T {
        let mut writing = self.lock();
        while self.0.shut.load(Ordering::SeqCst) {
            writing = self.0.opened.wait(writing).unwrap_or_else(PoisonError::into_inner);
        }
        write()
    }

    /// From here on nothing of the box is written.
    pub fn shut(&self) {
        self.0.shut.store(true, Ordering::SeqCst);
        drop(self.lock());
    }

    pub fn open(&self) {
        let writing = self.lock();
        self.0.shut.store(false, Ordering::SeqCst);
        drop(writing);
        self.0.opened.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn what_comes_while_it_is_shut_comes_after() {
        let gate = Gate::default();
        assert_eq!(gate.pass(|| 5), 5);
        gate.shut();
        let (tell, told) = channel();
        let other = gate.clone();
        std::thread::spawn(move || other.pass(|| tell.send(()).unwrap()));
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        gate.open();
        told.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
