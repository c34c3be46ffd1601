//! Servers that send credentials back. One that keeps doing so gets none until a person says so.

use crate::host_name::HostName;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(60 * 60);
/// The third within the hour is one too many.
const MOST: usize = 3;

#[derive(Default)]
pub(crate) struct Echoes(Mutex<HashMap<HostName, Host>>);

#[derive(Default)]
struct Host {
    when: Vec<Instant>,
    suspended: bool,
}

impl Echoes {
    /// True when this was the one too many.
    pub fn note(&self, host: &HostName, now: Instant) -> bool {
        let mut hosts = self.lock();
        hosts.retain(|_, host| {
            host.when.retain(|at| now.saturating_duration_since(*at) < WITHIN);
            host.suspended || !host.when.is_empty()
        });
        let host = hosts.entry(host.clone()).or_default();
        host.when.push(now);
        host.when.len() >= MOST && !std::mem::replace(&mut host.suspended, true)
    }

    pub fn is_suspended(&self, host: &HostName) -> bool {
        self.lock().get(host).is_some_and(|host| host.suspended)
    }

    pub fn suspended(&self) -> Vec<HostName> {
        let hosts = self.lock();
        let mut all: Vec<_> =
            hosts.iter().filter(|(_, h)| h.suspended).map(|(name, _)| name.clone()).collect();
        all.sort();
        all
    }

    /// A person knows about it; it starts anew.
    pub fn acknowledge(&self, host: &HostName) -> bool {
        self.lock().remove(host).is_some_and(|host| host.suspended)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HostName, Host>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_echo_in_an_hour_is_one_too_many() {
        let echoes = Echoes::default();
        let (a, b) = (HostName::parse("a.com").unwrap(), HostName::parse("b.com").unwrap());
        let start = Instant::now();
        assert!(!echoes.note(&a, start));
        assert!(!echoes.note(&a, start));
        assert!(!echoes.note(&b, start));
        assert!(!echoes.note(&a, start + WITHIN), "the first two are forgotten");
        assert!(!echoes.note(&a, start + WITHIN));
        assert!(echoes.note(&a, start + WITHIN));
        assert!(!echoes.note(&a, start + WITHIN), "it is said once");
        assert_eq!(echoes.suspended().len(), 1);
        // Time alone does not put it right.
        echoes.note(&b, start + WITHIN * 3);
        assert!(echoes.is_suspended(&a) && !echoes.is_suspended(&b));
        assert!(echoes.acknowledge(&a));
        assert!(!echoes.is_suspended(&a));
    }
}
