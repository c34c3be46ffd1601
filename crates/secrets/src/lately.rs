//! What the keychain said a moment ago, for requests that cannot wait for it each time.
//!
//! A value stays here for [`FRESH`] at most and is overwritten then, asked for or not. Whatever is
//! set or removed through the vault is forgotten at once; a read that was under way meanwhile is not
//! kept. And when the keychain did not answer, it is left alone for [`PAUSE`]: everybody who needs it
//! is told so at once, instead of one after the other finding out.

use crate::{Error, Scope, Value};
use protocol::SecretId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How old a value may be that another program could have changed.
pub const FRESH: Duration = Duration::from_secs(5);
/// For how long a keychain that did not answer is not asked on behalf of boxes.
pub const PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Lately(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    values: HashMap<(Scope, SecretId), (Instant, Value)>,
    /// Grows with every change through the vault.
    generation: u64,
    silent_until: Option<Instant>,
    sweeper: Option<AbortHandle>,
}

/// When a read began, by the changes until then.
pub(crate) struct Begun(u64);

impl Lately {
    /// A value that is fresh enough.
    pub fn get(&self, scope: &Scope, id: &SecretId) -> Option<Value> {
        let kept = self.lock();
        let (since, value) = kept.values.get(&(scope.clone(), id.clone()))?;
        (since.elapsed() < FRESH).then(|| value.clone())
    }

    /// Whether the keychain may be asked.
    pub fn begin(&self) -> Result<Begun, Error> {
        let mut kept = self.lock();
        if kept.silent_until.is_some_and(|until| Instant::now() < until) {
            return Err(Error::Silent("the keychain did not answer a moment ago"));
        }
        kept.silent_until = None;
        Ok(Begun(kept.generation))
    }

    /// Must be called on a runtime: it overwrites the value in time.
    pub fn keep(&self, begun: &Begun, scope: &Scope, id: &SecretId, value: &Value) {
        let mut kept = self.lock();
        if kept.generation != begun.0 {
            return;
        }
        kept.values.insert((scope.clone(), id.clone()), (Instant::now(), value.clone()));
        if kept.sweeper.is_none() {
            kept.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(&self.0))).abort_handle());
        }
    }

    /// It is about to be changed, or has been.
    pub fn forget(&self, scope: &Scope, id: &SecretId) {
        let mut kept = self.lock();
        kept.generation += 1;
        kept.values.remove(&(scope.clone(), id.clone()));
    }

    pub fn was_silent(&self) {
        self.lock().silent_until = Some(Instant::now() + PAUSE);
    }

    pub fn has_answered(&self) {
        self.lock().silent_until = None;
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lately {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Overwrites values when their time is up, until there are none.
async fn sweep(of: Weak<Mutex<Kept>>) {
    loop {
        let next = {
            let Some(kept) = of.upgrade() else { return };
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.values.retain(|_, (since, _)| since.elapsed() < FRESH);
            let Some(oldest) = kept.values.values().map(|(since, _)| *since).min() else {
                kept.sweeper = None;
                return;
            };
            oldest + FRESH
        };
        tokio::time::sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Scope = Scope::Everybody;

    fn id() -> SecretId {
        "ex.token".parse().unwrap()
    }

    fn keep(lately: &Lately, text: &str) {
        lately.keep(&lately.begin().unwrap(), &ALL, &id(), &Value::new(text.into()));
    }

    fn text(lately: &Lately) -> Option<String> {
        lately.get(&ALL, &id()).map(|value| value.expose().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_gone_from_memory_after_five_seconds() {
        let lately = Lately::default();
        keep(&lately, "one");
        tokio::time::sleep(Duration::from_millis(4900)).await;
        assert_eq!(text(&lately).as_deref(), Some("one"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(text(&lately), None);
        assert!(lately.lock().values.is_empty(), "it is still in memory");
        assert!(lately.lock().sweeper.is_none());

        keep(&lately, "two");
        tokio::time::sleep(Duration::from_secs(3)).await;
        keep(&lately, "three");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(text(&lately).as_deref(), Some("three"));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(lately.lock().values.is_empty(), "it is still in memory");
    }

    #[tokio::test(start_paused = true)]
    async fn egress_12_35_a_read_that_a_change_overtook_is_not_kept() {
        let lately = Lately::default();
        let begun = lately.begin().unwrap();
        lately.forget(&ALL, &id());
        lately.keep(&begun, &ALL, &id(), &Value::new("old".into()));
        assert_eq!(text(&lately), None);
        keep(&lately, "new");
        lately.forget(&ALL, &id());
        assert_eq!(text(&lately), None);
    }

    #[tokio::test(start_paused = true)]
    async fn egress_12_36_a_silent_keychain_is_left_alone_for_half_a_minute() {
        let lately = Lately::default();
        lately.was_silent();
        assert!(matches!(lately.begin(), Err(Error::Silent(_))));
        tokio::time::sleep(Duration::from_millis(29_900)).await;
        assert!(lately.begin().is_err());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(lately.begin().is_ok());

        lately.was_silent();
        lately.has_answered();
        assert!(lately.begin().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_sweeper_goes_with_its_owner() {
        let lately = Lately::default();
        keep(&lately, "one");
        let sweeper = lately.lock().sweeper.clone().unwrap();
        drop(lately);
        tokio::task::yield_now().await;
        assert!(sweeper.is_finished());
    }
}
