//! Times as people say them.

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned};
use protocol::Millis;
use protocol::question::Remember;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// “12 s ago”. A clock that went back says “now”, never a negative age.
pub fn ago(now: Timestamp, then: Millis) -> String {
    match seconds_between(then, now) {
        ..=0 => "now".to_owned(),
        seconds => format!("{} ago", rough(seconds)),
    }
}

/// “in 14 min”, or “now” when the moment has come.
pub fn until(now: Timestamp, then: Millis) -> String {
    match -seconds_between(then, now) {
        ..=0 => "now".to_owned(),
        seconds => format!("in {}", rough(seconds)),
    }
}

/// One unit, rounded down.
pub fn rough(seconds: i64) -> String {
    match seconds {
        ..MINUTE => format!("{} s", seconds.max(0)),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => format!("{} h", seconds / HOUR),
        _ if seconds / DAY == 1 => "1 day".to_owned(),
        _ => format!("{} days", seconds / DAY),
    }
}

/// How long a step took: “0.4 s”, “12.3 s”, “2 min 5 s”.
pub fn took(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}.{} s", ms % 1000 / 100),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The moment itself, in the person's time zone.
pub fn exact(then: Millis, zone: TimeZone) -> String {
    let zoned = timestamp(then).to_zoned(zone);
    strtime::format("%Y-%m-%d %H:%M:%S", &zoned).unwrap_or_else(|_| then.to_string())
}

/// The end of something that lasts so many seconds from now: “until 15:20”, “until tomorrow 09:00”,
/// “until 2026-01-31 09:00”, “until you remove it”.
pub fn ends(now: &Zoned, seconds: u64) -> String {
    if seconds >= Remember::ALWAYS {
        return "until you remove it".into();
    }
    let length = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let Ok(then) = now.checked_add(length) else { return "until you remove it".into() };
    let tomorrow = now.date().tomorrow().ok();
    let form = match then.date() {
        day if day == now.date() => "until %H:%M",
        day if Some(day) == tomorrow => "until tomorrow %H:%M",
        _ => "until %Y-%m-%d %H:%M",
    };
    strtime::format(form, &then).unwrap_or_else(|_| then.to_string())
}

/// Seconds from now to a moment, rounded to the nearest; none left when it has passed.
pub fn seconds_until(now: Timestamp, then: Millis) -> u64 {
    let left = timestamp(then).duration_since(now).as_millis();
    u64::try_from((left + 500) / 1000).unwrap_or(0)
}

/// Seconds left of today.
pub fn rest_of_today(now: &Zoned) -> u64 {
    let end = now.tomorrow().and_then(|t| t.start_of_day());
    let left = end.map_or(0, |end| end.duration_since(now).as_secs());
    u64::try_from(left).unwrap_or(0).max(1)
}

/// The longest time in seconds an answer is remembered, when not for good.
const LONGEST: u64 = 30 * 24 * 3600;

/// `1h`, `30d` or `always`: a time to remember an answer for, in seconds.
pub fn parse_remembered(text: &str) -> Result<u64, String> {
    if text == "always" { Ok(Remember::ALWAYS) } else { parse_duration(text) }
}

/// `30m`, `1h`, `2d`: a length of time, in seconds.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a length of time such as 30m, 1h or 2d");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let length =
        span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?.as_secs();
    let length = u64::try_from(length).ok().filter(|s| *s > 0).ok_or_else(wrong)?;
    if length > LONGEST { Err(format!("{text:?} is too long: at most 30d")) } else { Ok(length) }
}

/// The longest wait, in milliseconds: a day.
const LONGEST_WAIT: u64 = 24 * 3600 * 1000;

/// How every `--timeout` is written: `30s`, `2m`, or a bare number of milliseconds. In milliseconds.
pub fn parse_timeout(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time such as 30s or 2m, nor a number of milliseconds");
    let span = |text: &str| {
        let span: Span = text.parse().ok()?;
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        u64::try_from(length.as_millis()).ok()
    };
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let ms = if bare { text.parse().ok() } else { span(text) };
    match ms.ok_or_else(wrong)? {
        ms if ms > LONGEST_WAIT => Err(format!("{text:?} is too long: at most 1d")),
        ms => Ok(ms),
    }
}

/// Whole seconds that are no shorter.
pub fn seconds_of(ms: u64) -> u32 {
    u32::try_from(ms.div_ceil(1000)).unwrap_or(u32::MAX)
}

/// How long ago something was.
pub fn seconds_since(now: Timestamp, then: Millis) -> i64 {
    seconds_between(then, now)
}

fn timestamp(at: Millis) -> Timestamp {
    i64::try_from(at).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default()
}

fn seconds_between(from: Millis, to: Timestamp) -> i64 {
    to.duration_since(timestamp(from)).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rough_and_never_negative() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let at = |seconds_ago: i64| u64::try_from((1_000_000 - seconds_ago) * 1000).unwrap();
        let said: Vec<_> = [-5, 0, 12, 180, 7300, 90_000, 500_000].map(|s| ago(now, at(s))).into();
        let wanted = ["now", "now", "12 s ago", "3 min ago", "2 h ago", "1 day ago", "5 days ago"];
        assert_eq!(said, wanted);
        assert_eq!(until(now, at(-840)), "in 14 min");
        assert_eq!(until(now, at(1)), "now");
    }

    #[test]
    fn lengths_of_time_are_read() {
        assert_eq!(parse_duration("30m"), Ok(1800));
        assert_eq!(parse_duration("1h"), Ok(3600));
        assert_eq!(parse_duration("2d"), Ok(172_800));
        for bad in ["", "0m", "-1h", "soon", "1", "1mo", "31d"] {
            assert!(parse_duration(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn waits_are_milliseconds_or_times() {
        assert_eq!(parse_timeout("1500"), Ok(1500));
        assert_eq!(parse_timeout("0"), Ok(0));
        assert_eq!(parse_timeout("10s"), Ok(10_000));
        assert_eq!(parse_timeout("250ms"), Ok(250));
        assert_eq!(parse_timeout("1d"), Ok(LONGEST_WAIT));
        for bad in ["", "soon", "-1", "-1s", "+5", "1.5", "2d", "99999999999999999999"] {
            assert!(parse_timeout(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!([0, 1, 1000, 1001].map(seconds_of), [0, 1, 1, 2]);
    }

    #[test]
    fn an_end_is_said_as_people_say_it() {
        let evening = jiff::civil::date(2026, 1, 1).at(23, 0, 0, 0);
        let now = evening.to_zoned(TimeZone::UTC).unwrap();
        let said = [1800, 3600, 86_400, 2 * 86_400, Remember::ALWAYS].map(|s| ends(&now, s));
        let wanted = [
            "until 23:30",
            "until tomorrow 00:00",
            "until tomorrow 23:00",
            "until 2026-01-03 23:00",
            "until you remove it",
        ];
        assert_eq!(said, wanted);
        assert_eq!(rest_of_today(&now), 3600);
        assert_eq!(parse_remembered("always"), Ok(Remember::ALWAYS));
        assert!(parse_duration("always").is_err());
    }

    #[test]
    fn steps_say_how_long_they_took() {
        assert_eq!([420, 12_345, 125_000].map(took), ["0.4 s", "12.3 s", "2 min 5 s"]);
    }

    #[test]
    fn exact_times_are_in_the_given_zone() {
        assert_eq!(exact(0, TimeZone::UTC), "1970-01-01 00:00:00");
    }
}
