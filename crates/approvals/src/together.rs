//! The very same asked twice at once is one question and one piece of work.
//!
//! A box that repeats itself gets one question on screen, which says how often it was asked, and a yes
//! to it runs the work once: each caller gets that one result. The work ends early only when the last
//! caller has left.

use crate::BoxFuture;
use futures_util::future::{FutureExt, Shared, WeakShared};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

type Running<T> = BoxFuture<'static, T>;

/// How often the same was asked for. Cheap to clone; all clones count together.
#[derive(Debug, Clone)]
pub struct Times(Arc<watch::Sender<u32>>);

impl Default for Times {
    /// Once.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(1)))
    }
}

impl Times {
    fn once_more(&self) {
        self.0.send_modify(|times| *times = times.saturating_add(1));
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u32> {
        self.0.subscribe()
    }
}

/// Work under way, by what it is. The key has to hold everything that makes a difference, for
/// example [`crate::Draft::fingerprint`].
pub struct Together<T: Clone> {
    running: Mutex<HashMap<String, Joined<T>>>,
}

struct Joined<T: Clone> {
    work: WeakShared<Running<T>>,
    times: Times,
}

impl<T: Clone> Default for Together<T> {
    fn default() -> Self {
        Self { running: Mutex::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> Together<T> {
    /// Joins the work of that key, or begins it. The work can tell how often it was asked for.
    pub async fn run<F>(&self, key: String, work: impl FnOnce(Times) -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.join(key, work).await
    }

    fn join<F>(&self, key: String, work: impl FnOnce(Times) -> F) -> Shared<Running<T>>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // What has ended, or was left by everyone.
        running.retain(|_, joined| joined.work.upgrade().is_some_and(|w| w.peek().is_none()));
        if let Some(joined) = running.get(&key)
            && let Some(shared) = joined.work.upgrade()
        {
            joined.times.once_more();
            return shared;
        }
        let times = Times::default();
        let shared: Shared<Running<T>> = (Box::pin(work(times.clone())) as Running<T>).shared();
        if let Some(work) = shared.downgrade() {
            running.insert(key, Joined { work, times });
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    fn slow(runs: &Arc<AtomicU32>) -> impl FnOnce(Times) -> Running<u32> + use<> {
        let runs = runs.clone();
        move |_| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                runs.fetch_add(1, Ordering::SeqCst) + 1
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn relay_19_53_the_same_at_once_is_done_once_and_both_get_the_result() {
        let (together, runs) = (Together::default(), Arc::default());
        let both = tokio::join!(
            together.run("push".into(), slow(&runs)),
            together.run("push".into(), slow(&runs))
        );
        assert_eq!(both, (1, 1));
        assert_eq!(together.run("push".into(), slow(&runs)).await, 2, "later is again");
        let two = tokio::join!(
            together.run("push".into(), slow(&runs)),
            together.run("pull".into(), slow(&runs))
        );
        assert_ne!(two.0, two.1);
    }

    #[tokio::test(start_paused = true)]
    async fn how_often_it_was_asked_for_is_counted_anew_for_each_piece_of_work() {
        let together = Together::default();
        let counted = |times: Times| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                *times.watch().borrow()
            }) as Running<u32>
        };
        let ask = || together.run("push".into(), counted);
        assert_eq!(tokio::join!(ask(), ask(), ask()), (3, 3, 3));
        assert_eq!(ask().await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_work_goes_on_while_somebody_waits_and_ends_with_the_last() {
        let (together, runs) = (Arc::new(Together::default()), Arc::default());
        let first = tokio::spawn({
            let (together, work) = (together.clone(), slow(&runs));
            async move { together.run("push".into(), work).await }
        });
        tokio::task::yield_now().await;
        let second = tokio::spawn({
            let (together, work) = (together.clone(), slow(&runs));
            async move { together.run("push".into(), work).await }
        });
        tokio::task::yield_now().await;
        first.abort();
        assert_eq!(second.await.unwrap(), 1);

        let third = tokio::spawn({
            let (together, work) = (together.clone(), slow(&runs));
            async move { together.run("push".into(), work).await }
        });
        tokio::task::yield_now().await;
        third.abort();
        let _ = third.await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
