//! Policy files as they change, so that an edit counts without a command.
//!
//! Linux tells of changes; elsewhere the files are looked at every few seconds, while a box without a
//! network is there. What a file says is read by whoever reloads, never here.

use crate::core::Core;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// An editor writes a file in several steps.
const SETTLED: Duration = Duration::from_millis(300);

/// Folders that are watched.
#[derive(Default)]
pub struct Watched {
    /// The set of folders may be another one.
    pub again: Notify,
}

impl Core {
    pub(super) fn watch_policies(self: &Arc<Self>) {
        let core = self.clone();
        self.tasks.spawn_on(
            async move {
                let stop = core.stop.clone();
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = core.follow_policies() => {}
                }
            },
            &self.runtime,
        );
    }

    /// Folders in which a layer of some box may lie.
    fn policy_folders(&self) -> Vec<std::path::PathBuf> {
        let mut all: Vec<std::path::PathBuf> = vec![self.home.clone(), self.home.join("projects")];
        for who in self.controlled() {
            let places = super::layers::places(&self.home, Some(&who.root), &[]);
            all.extend(places.into_iter().filter_map(|p| p.path.parent().map(Into::into)));
        }
        all.sort();
        all.dedup();
        all.retain(|dir| dir.is_dir());
        all
    }

    #[cfg(target_os = "linux")]
    async fn follow_policies(self: Arc<Self>) {
        use futures_util::StreamExt as _;
        use inotify::{Inotify, WatchMask};
        let mut missed = false;
        loop {
            let made = Inotify::init().and_then(|inotify| {
                let mask = WatchMask::CLOSE_WRITE
                    | WatchMask::MOVED_TO
                    | WatchMask::MOVED_FROM
                    | WatchMask::DELETE
                    | WatchMask::CREATE;
                for dir in self.policy_folders() {
                    inotify.watches().add(dir, mask)?;
                }
                inotify.into_event_stream(vec![0; 16 * 1024])
            });
            let mut events = match made {
                Ok(events) => events,
                Err(e) => {
                    tracing::warn!(
                        "policy files are not followed; use agentbox egress reload: {e}"
                    );
                    self.egress.watched.again.notified().await;
                    continue;
                }
            };
            // A file may have come with its folder, before anybody watched that.
            if std::mem::take(&mut missed) {
                self.reload_ways(|_| true).await;
            }
            loop {
                let event = tokio::select! {
                    () = self.egress.watched.again.notified() => break,
                    event = events.next() => event,
                };
                let Some(Ok(event)) = event else { break };
                let name = event.name.unwrap_or_default();
                let name = name.to_string_lossy();
                let is_policy = name.starts_with("egress.") && name.ends_with(".yaml");
                if is_policy {
                    tokio::time::sleep(SETTLED).await;
                    // Whatever came meanwhile is read with it.
                    while let Ok(Some(_)) =
                        tokio::time::timeout(Duration::ZERO, events.next()).await
                    {
                    }
                    self.reload_ways(|_| true).await;
                } else if event.mask.contains(inotify::EventMask::ISDIR) {
                    missed = true;
                    break;
                }
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn follow_policies(self: Arc<Self>) {
        use std::time::SystemTime;
        let stamps = |core: &Core| -> Vec<(std::path::PathBuf, Option<SystemTime>, u64)> {
            let places = core.controlled().into_iter().flat_map(|who| {
                let agents: Vec<_> = who.agents.iter().copied().collect();
                super::layers::places(&core.home, Some(&who.root), &agents)
            });
            let one = |place: super::layers::Place| {
                let data = place.path.metadata().ok();
                let at = data.as_ref().and_then(|data| data.modified().ok());
                (place.path, at, data.map_or(0, |data| data.len()))
            };
            places.map(one).collect()
        };
        let mut before = stamps(&self);
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = stamps(&self);
            if now != before {
                before = now;
                self.reload_ways(|_| true).await;
            }
        }
    }
}
