//! `agentbox-ctl watch` (box user, kept alive by PID 1): tells the host that a branch moved.
//!
//! The host then fetches from the box, so commits are safe within a moment. A burst of changes
//! becomes one post; a storm becomes a few posts a second. A post that fails is repeated: soon at
//! first, ever later while the host is away, and at once when its socket comes back.

use crate::client::Relay;
use crate::error::Result;
use crate::places;
use crate::refs_watch::{News, RefsWatch};
use protocol::rpc::EventPost;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Repositories that are watched.
const MOST: usize = 200;
/// A commit writes several files; this long after the last one it is over.
const QUIET: Duration = Duration::from_millis(100);
/// The shortest time between two posts, and the longest a storm can put one off.
const SPACING: Duration = Duration::from_millis(400);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(60);

pub fn run() -> Result<i32> {
    let mut refs = RefsWatch::new(repositories(), &places::relay_socket())?;
    let mut timing = Timing::new(Instant::now());
    loop {
        let news = refs.wait(timing.due())?;
        timing.notice(news, Instant::now());
        if timing.due().is_some_and(|due| due <= Instant::now()) {
            let posted = Relay::open().and_then(|relay| relay.event(&EventPost::ref_change()));
            timing.posted(posted.is_ok(), Instant::now());
        }
    }
}

/// Where git keeps the workspace's repositories: as they were seeded, and the workspace's own, which
/// somebody may make later.
fn repositories() -> Vec<PathBuf> {
    let list = std::fs::read_to_string(places::repositories()).unwrap_or_default();
    let own = places::workspace().join(".git");
    let seeded = list.lines().filter(|line| line.starts_with('/')).take(MOST).map(PathBuf::from);
    let mut all: Vec<PathBuf> = std::iter::once(own).chain(seeded).collect();
    all.dedup();
    all
}

/// When to post next. Pure: time comes in from outside.
#[derive(Debug)]
struct Timing {
    due: Option<Instant>,
    /// No post later than this while changes keep coming.
    latest: Instant,
    last_post: Option<Instant>,
    failing: bool,
    retry: Duration,
}

impl Timing {
    /// The first post is due at once: what moved while nobody watched is not lost.
    fn new(now: Instant) -> Self {
        Self { due: Some(now), latest: now, last_post: None, failing: false, retry: FIRST_RETRY }
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn notice(&mut self, news: News, now: Instant) {
        if news.host_came && self.failing {
            self.retry = FIRST_RETRY;
            self.due = Some(now + QUIET);
        }
        if !news.refs_changed {
            return;
        }
        let spaced = self.last_post.map_or(now, |last| last + SPACING);
        if self.due.is_none() || self.failing {
            self.latest = (now + SPACING).max(spaced);
            self.failing = false;
        }
        self.due = Some((now + QUIET).max(spaced).min(self.latest));
    }

    fn posted(&mut self, well: bool, now: Instant) {
        self.last_post = Some(now);
        self.failing = !well;
        if well {
            self.due = None;
            self.retry = FIRST_RETRY;
        } else {
            self.due = Some(now + self.retry);
            self.retry = (self.retry * 2).min(LAST_RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGE: News = News { refs_changed: true, host_came: false };
    const HOST: News = News { refs_changed: false, host_came: true };

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn idle_means_no_timer() {
        let start = Instant::now();
        let mut timing = Timing::new(start);
        assert_eq!(timing.due(), Some(start));
        timing.posted(true, start);
        assert_eq!(timing.due(), None);
        timing.notice(HOST, start + ms(5));
        timing.notice(News::default(), start + ms(6));
        assert_eq!(timing.due(), None);
    }

    #[test]
    fn a_storm_gives_a_few_posts_a_second() {
        let start = Instant::now();
        let mut timing = Timing::new(start);
        timing.posted(true, start);
        let mut posts = 0;
        for step in 0..3000 {
            let now = start + ms(step);
            timing.notice(CHANGE, now);
            if timing.due().is_some_and(|due| due <= now) {
                posts += 1;
                timing.posted(true, now);
            }
        }
        assert!((6..=8).contains(&posts), "{posts} posts in 3 s");
    }

    #[test]
    fn a_single_change_is_posted_soon() {
        let start = Instant::now();
        let mut timing = Timing::new(start);
        timing.posted(true, start);
        let later = start + Duration::from_secs(60);
        timing.notice(CHANGE, later);
        assert_eq!(timing.due(), Some(later + QUIET));
    }

    #[test]
    fn a_failed_post_is_repeated_until_it_is_through() {
        let start = Instant::now();
        let mut timing = Timing::new(start);
        let mut now = start;
        for wait in [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000] {
            timing.posted(false, now);
            assert_eq!(timing.due(), Some(now + ms(wait)));
            now += ms(wait);
        }
        timing.posted(false, now);
        timing.notice(HOST, now + ms(1));
        assert_eq!(timing.due(), Some(now + ms(1) + QUIET));
        timing.posted(true, now + ms(200));
        assert_eq!(timing.due(), None);
    }

    #[test]
    fn a_change_while_failing_is_tried_at_once() {
        let start = Instant::now();
        let mut timing = Timing::new(start);
        timing.posted(false, start);
        timing.posted(false, start + ms(500));
        timing.notice(CHANGE, start + ms(5000));
        assert_eq!(timing.due(), Some(start + ms(5000) + QUIET));
    }
}
