//! When people do not want to be disturbed: quiet hours, and “quiet for one hour”.
//!
//! Quiet answers nothing and hides nothing: the inbox, the tray's menu and the terminal show every
//! question all the time. It only keeps those surfaces back that jump at people, and lets them go
//! on when it is over. The surprising thing: a question that would time out in the quiet is told
//! all the same, as a notification, because silence would be an answer.

use crate::core::Core;
use approvals::Sink;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use protocol::question::{Outcome, Question};
use protocol::{BoxName, Millis};
use settings::QuietHours;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// A computer that slept must not be quiet for as long as it slept.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A part of every day of the local clock. May go past midnight.
#[derive(Debug, Clone, Copy)]
struct Hours(QuietHours);

impl Hours {
    /// When the stretch that holds this moment ends.
    fn end(self, now: &Zoned) -> Option<Timestamp> {
        let today = now.date();
        let days = [today.yesterday().ok(), Some(today)];
        let stretches = days.into_iter().flatten().filter_map(|day| self.stretch(day, now));
        let now = now.timestamp();
        stretches.into_iter().find(|(start, end)| *start <= now && now < *end).map(|(_, end)| end)
    }

    /// When the next stretch begins.
    fn next_start(self, now: &Zoned) -> Option<Timestamp> {
        let days = [Some(now.date()), now.date().tomorrow().ok()];
        let starts = days.into_iter().flatten().filter_map(|day| self.stretch(day, now));
        starts.map(|(start, _)| start).find(|start| *start > now.timestamp())
    }

    fn stretch(self, day: Date, now: &Zoned) -> Option<(Timestamp, Timestamp)> {
        let zone = now.time_zone();
        let at = |day: Date, minute: u16| {
            let time = Time::midnight().checked_add(i64::from(minute).minutes()).ok()?;
            Some(day.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp())
        };
        let QuietHours { from, to } = self.0;
        let last = if to > from { day } else { day.tomorrow().ok()? };
        Some((at(day, from)?, at(last, to)?))
    }
}

/// What a person has said about it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Quiet(Millis),
    /// The quiet hours that run were ended by hand.
    Awake(Millis),
}

/// Whether it is quiet, and until when. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Quiet {
    inner: Arc<Inner>,
}

struct Inner {
    hours: Option<Hours>,
    /// None means the computer's own, which may change while we run.
    zone: Option<TimeZone>,
    said: Mutex<Said>,
    said_something: Notify,
    state: watch::Sender<Option<Millis>>,
}

impl Quiet {
    pub fn new(hours: Option<QuietHours>) -> Self {
        Self::in_zone(hours, None)
    }

    fn in_zone(hours: Option<QuietHours>, zone: Option<TimeZone>) -> Self {
        let inner = Inner {
            hours: hours.map(Hours),
            zone,
            said: Mutex::new(Said::Nothing),
            said_something: Notify::new(),
            state: watch::channel(None).0,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Quiet from now on for so long; none ends it, quiet hours that run included.
    pub fn set(&self, time: Option<Duration>) {
        self.set_at(now(), time);
    }

    fn set_at(&self, now: Millis, time: Option<Duration>) {
        let said = match time {
            Some(time) => Said::Quiet(now.saturating_add(millis(time))),
            None => self.hours_end(now).map_or(Said::Nothing, Said::Awake),
        };
        *self.said() = said;
        self.inner.said_something.notify_one();
    }

    /// When the quiet that holds this moment ends; none when it is not quiet.
    pub fn until(&self, now: Millis) -> Option<Millis> {
        let said = *self.said();
        let hours = match said {
            Said::Awake(until) if now < until => None,
            _ => self.hours_end(now),
        };
        let asked_for = match said {
            Said::Quiet(until) if now < until => Some(until),
            _ => None,
        };
        let end = hours.max(asked_for)?;
        // The one may run into the other.
        Some(self.hours_end(end).unwrap_or(end))
    }

    /// Follows [`Quiet::until`]: hears of each begin and each end.
    pub fn watch(&self) -> watch::Receiver<Option<Millis>> {
        self.inner.state.subscribe()
    }

    /// Tells the watchers, until told to stop. Without quiet hours it sleeps until somebody says
    /// something.
    pub async fn keep(self, stop: CancellationToken) {
        loop {
            let now = now();
            let until = self.until(now);
            self.inner.state.send_if_modified(|told| std::mem::replace(told, until) != until);
            let change = until.or_else(|| self.next_start(now));
            let wait = change.map(|at| Duration::from_millis(at.saturating_sub(now)));
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.inner.said_something.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.inner.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hours_end(&self, now: Millis) -> Option<Millis> {
        let end = self.inner.hours?.end(&self.zoned(now)?)?;
        Millis::try_from(end.as_millisecond()).ok()
    }

    fn next_start(&self, now: Millis) -> Option<Millis> {
        let start = self.inner.hours?.next_start(&self.zoned(now)?)?;
        Millis::try_from(start.as_millisecond()).ok()
    }

    fn zoned(&self, at: Millis) -> Option<Zoned> {
        let at = Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()?;
        Some(at.to_zoned(self.inner.zone.clone().unwrap_or_else(TimeZone::system)))
    }
}

/// Keeps the host's quiet, and tells everybody when it begins and ends.
pub(crate) async fn keep(core: Arc<Core>) {
    let mut changes = core.quiet.watch();
    let tell = async {
        while changes.changed().await.is_ok() {
            core.send_status();
        }
    };
    tokio::select! {
        () = core.quiet.clone().keep(core.stop.clone()) => {}
        () = tell => {}
    }
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        // A clock that is a little behind must not make this spin.
        Some(time) => tokio::time::sleep(time.clamp(Duration::from_millis(10), LOOK_AGAIN)).await,
        None => std::future::pending().await,
    }
}

/// How a surface disturbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Takes the middle of the screen: a dialog, a menu.
    StepsForward,
    /// Says a word at the edge: a notification.
    Speaks,
}

impl Manner {
    /// Whether a question may be shown now.
    fn allows(self, quiet_until: Option<Millis>, expires_at: Millis) -> bool {
        match (quiet_until, self) {
            (None, _) => true,
            (Some(_), Manner::StepsForward) => false,
            (Some(until), Manner::Speaks) => expires_at <= until,
        }
    }
}

/// A surface that keeps back in the quiet and shows what is still open when it is over.
pub struct Hushed<S> {
    surface: S,
    manner: Manner,
    quiet: Quiet,
    held: Mutex<Vec<Question>>,
}

impl<S: Sink> Hushed<S> {
    pub fn new(surface: S, manner: Manner, quiet: Quiet) -> Arc<Self> {
        Arc::new(Self { surface, manner, quiet, held: Mutex::default() })
    }

    /// Shows what was kept back each time the quiet changes.
    pub async fn follow(self: Arc<Self>) {
        let mut quiet = self.quiet.watch();
        while quiet.changed().await.is_ok() {
            self.look_again(now());
        }
    }

    pub async fn follow_until(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    fn look_again(&self, now: Millis) {
        let until = self.quiet.until(now);
        // Held while the surface is told: a withdrawal that comes meanwhile must come after.
        let mut held = self.held();
        held.retain(|question| {
            let shown = self.manner.allows(until, question.expires_at);
            if shown {
                self.surface.show(question);
            }
            !shown
        });
    }

    fn show_at(&self, question: &Question, now: Millis) {
        let mut held = self.held();
        if self.manner.allows(self.quiet.until(now), question.expires_at) {
            self.surface.show(question);
        } else {
            held.push(question.clone());
        }
    }

    fn held(&self) -> MutexGuard<'_, Vec<Question>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Sink> Sink for Hushed<S> {
    fn show(&self, question: &Question) {
        self.show_at(question, now());
    }

    fn again(&self, question: &Question) {
        match self.held().iter_mut().find(|q| q.id == question.id) {
            Some(held) => held.times = question.times,
            None => self.surface.again(question),
        }
    }

    fn withdraw(&self, question: &Question, outcome: &Outcome) {
        let mut held = self.held();
        let before = held.len();
        held.retain(|q| q.id != question.id);
        if held.len() == before {
            self.surface.withdraw(question, outcome);
        }
    }

    fn is_attached(&self) -> bool {
        self.surface.is_attached()
    }

    fn note(&self, box_name: &BoxName, text: &str) {
        if self.quiet.until(now()).is_none() {
            self.surface.note(box_name, text);
        }
    }
}

fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 22:00 to 7:00.
    const NIGHT: QuietHours = QuietHours { from: 22 * 60, to: 7 * 60 };
    const LUNCH: QuietHours = QuietHours { from: 12 * 60, to: 13 * 60 };
    const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn at(text: &str) -> Millis {
        let local: jiff::civil::DateTime = text.parse().unwrap();
        let zoned = local.to_zoned(berlin()).unwrap();
        zoned.timestamp().as_millisecond().try_into().unwrap()
    }

    fn quiet(hours: Option<QuietHours>) -> Quiet {
        Quiet::in_zone(hours, Some(berlin()))
    }

    #[test]
    fn quiet_hours_may_go_past_midnight() {
        let quiet = quiet(Some(NIGHT));
        let morning = Some(at("2026-03-04T07:00:00"));
        assert_eq!(quiet.until(at("2026-03-03T21:59:59")), None);
        assert_eq!(quiet.until(at("2026-03-03T22:00:00")), morning);
        assert_eq!(quiet.until(at("2026-03-04T00:00:00")), morning);
        assert_eq!(quiet.until(at("2026-03-04T06:59:59")), morning);
        assert_eq!(quiet.until(at("2026-03-04T07:00:00")), None);
    }

    #[test]
    fn the_local_clock_counts_when_it_is_changed() {
        let quiet = quiet(Some(NIGHT));
        // The night in which an hour is left out, and the one in which it comes twice.
        for (evening, morning, hours) in [
            ("2026-03-28T22:00:00", "2026-03-29T07:00:00", 8),
            ("2026-10-24T22:00:00", "2026-10-25T07:00:00", 10),
        ] {
            assert_eq!(quiet.until(at(evening)), Some(at(morning)));
            assert_eq!(at(morning) - at(evening), hours * 3_600_000);
        }
    }

    #[test]
    fn quiet_for_an_hour_ends_by_itself_or_by_hand() {
        let quiet = quiet(None);
        let now = at("2026-03-03T10:00:00");
        assert_eq!(quiet.until(now), None);
        quiet.set_at(now, HOUR);
        assert_eq!(quiet.until(now), Some(now + 3_600_000));
        assert_eq!(quiet.until(now + 3_600_000), None);
        quiet.set_at(now, None);
        assert_eq!(quiet.until(now), None);
    }

    #[test]
    fn what_was_asked_for_runs_into_the_quiet_hours() {
        let quiet = quiet(Some(LUNCH));
        let now = at("2026-03-03T11:30:00");
        quiet.set_at(now, HOUR);
        assert_eq!(quiet.until(now), Some(at("2026-03-03T13:00:00")));
        quiet.set_at(now, HOUR.map(|h| 4 * h));
        assert_eq!(quiet.until(now), Some(at("2026-03-03T15:30:00")));
    }

    #[test]
    fn quiet_hours_can_be_ended_for_this_once() {
        let quiet = quiet(Some(LUNCH));
        let now = at("2026-03-03T12:10:00");
        quiet.set_at(now, None);
        assert_eq!(quiet.until(now), None);
        assert_eq!(quiet.until(at("2026-03-03T12:59:00")), None);
        assert!(quiet.until(at("2026-03-04T12:10:00")).is_some(), "tomorrow they are back");
    }

    #[test]
    fn the_next_change_is_known() {
        let quiet = quiet(Some(LUNCH));
        let next = |text| quiet.next_start(at(text));
        assert_eq!(next("2026-03-03T11:00:00"), Some(at("2026-03-03T12:00:00")));
        assert_eq!(next("2026-03-03T12:00:00"), Some(at("2026-03-04T12:00:00")));
    }

    #[test]
    fn a_question_that_would_time_out_in_the_quiet_is_told_but_steps_not_forward() {
        for (manner, expected) in
            [(Manner::StepsForward, [true, false, false]), (Manner::Speaks, [true, true, false])]
        {
            let cases = [(None, 50), (Some(100), 100), (Some(100), 101)];
            assert_eq!(cases.map(|(until, expires)| manner.allows(until, expires)), expected);
        }
    }

    #[derive(Default)]
    struct Screen(Mutex<Vec<String>>);

    impl Sink for Screen {
        fn show(&self, question: &Question) {
            self.0.lock().unwrap().push(format!("show {}", question.title));
        }
        fn withdraw(&self, question: &Question, _: &Outcome) {
            self.0.lock().unwrap().push(format!("gone {}", question.title));
        }
        fn note(&self, _: &BoxName, text: &str) {
            self.0.lock().unwrap().push(format!("note {text}"));
        }
    }

    fn question(n: u8, title: &str, expires_at: Millis) -> Question {
        crate::samples::question(n, title, expires_at)
    }

    #[test]
    fn what_is_open_when_the_quiet_ends_is_shown_and_the_rest_never_was() {
        let quiet = quiet(None);
        let now = at("2026-03-03T10:00:00");
        quiet.set_at(now, HOUR);
        let late = now + 10 * 3_600_000;
        let hushed = Hushed::new(Screen::default(), Manner::StepsForward, quiet.clone());
        let seen = || hushed.surface.0.lock().unwrap().clone();
        let (one, two) = (question(1, "one", late), question(2, "two", late));
        hushed.show_at(&one, now);
        hushed.show_at(&two, now);
        hushed.look_again(now);
        hushed.withdraw(&one, &Outcome::Expired);
        assert!(seen().is_empty());
        hushed.look_again(now + 3_600_000);
        hushed.look_again(now + 3_600_000);
        assert_eq!(seen(), ["show two"]);
        hushed.withdraw(&two, &Outcome::Expired);
        assert_eq!(seen(), ["show two", "gone two"]);
    }

    #[test]
    fn a_longer_quiet_lets_a_notification_through_that_would_now_come_too_late() {
        let quiet = quiet(None);
        let now = at("2026-03-03T10:00:00");
        quiet.set_at(now, HOUR.map(|h| h / 60));
        let hushed = Hushed::new(Screen::default(), Manner::Speaks, quiet.clone());
        hushed.show_at(&question(1, "one", now + 900_000), now);
        assert!(hushed.surface.0.lock().unwrap().is_empty());
        quiet.set_at(now, HOUR);
        hushed.look_again(now);
        assert_eq!(*hushed.surface.0.lock().unwrap(), ["show one"]);
    }

    #[tokio::test]
    async fn watchers_hear_of_begin_and_end() {
        let quiet = Quiet::new(None);
        let stop = CancellationToken::new();
        let keeping = tokio::spawn(quiet.clone().keep(stop.clone()));
        let mut states = quiet.watch();
        quiet.set(Some(Duration::from_secs(1)));
        states.changed().await.unwrap();
        assert!(states.borrow_and_update().is_some());
        states.changed().await.unwrap();
        assert!(states.borrow_and_update().is_none());
        stop.cancel();
        keeping.await.unwrap();
    }
}
