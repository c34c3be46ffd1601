//! What connectors to REST APIs share: command lines that become requests.
//!
//! A path is put together from fixed words and checked ids; whatever else a box said goes into the
//! query or the body, where it cannot change which resource is meant. A file is never named: text
//! travels as text.

use crate::connector::{
    Action, ApiCall, Ask, HttpMethod, Input, Op, OpInfo, Prepared, Scope, Scopes, fact,
};
use crate::grammar::{Grammar, Parsed, Refused};
use crate::refusal::Refusal;
use protocol::question::Fact;
use protocol::text::visible;
use serde_json::{Map, Value as Json};

/// Flags that would name a file. The shims read a box's file and send its text.
pub const FILES: &[Refused] = &[Refused {
    spellings: &[
        "--file",
        "--desc-file",
        "--description-file",
        "--markdown-file",
        "--text-file",
        "--attach",
    ],
    why: "names a file, and the host opens none for a box; give the text itself",
}];

/// A box's command line, by its grammar.
pub fn line(grammar: &'static Grammar, input: &Input<'_>) -> Result<Parsed, Refusal> {
    if input.stdin.is_some() {
        return Err(grammar.refuse("it takes no text on standard input. Give it as a flag."));
    }
    grammar.parse(input.args)
}

/// The id that stands alone on the line.
pub fn id<'p>(
    grammar: &Grammar,
    parsed: &'p Parsed,
    fits: fn(&str) -> bool,
    what: &str,
) -> Result<&'p str, Refusal> {
    let id = parsed.positionals.first().map_or("", String::as_str);
    if fits(id) {
        return Ok(id);
    }
    Err(grammar.refuse(format!("'{}' is not {what}.", visible(id))))
}

/// The value of a flag that must be there.
pub fn needed<'p>(grammar: &Grammar, parsed: &'p Parsed, flag: &str) -> Result<&'p str, Refusal> {
    parsed.value(flag).ok_or_else(|| grammar.refuse(format!("'{flag}' is needed.")))
}

/// Which of two flags was given: exactly one must be.
pub fn either<'p>(
    grammar: &Grammar,
    parsed: &'p Parsed,
    flags: [&'static str; 2],
) -> Result<(&'static str, &'p str), Refusal> {
    match flags.map(|flag| parsed.value(flag).map(|value| (flag, value))) {
        [Some(one), None] | [None, Some(one)] => Ok(one),
        _ => {
            Err(grammar
                .refuse(format!("exactly one of '{}' and '{}' is needed.", flags[0], flags[1])))
        }
    }
}

pub type Query = Vec<(String, String)>;

/// Pairs whose values the connector chose itself.
pub fn query(pairs: &[(&str, &str)]) -> Query {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A request that changes nothing.
pub fn read(parts: &[&str], query: Query) -> Prepared {
    let path = path(parts);
    Prepared::read(Action::Call(ApiCall { method: HttpMethod::Get, path, query, body: None }))
}

/// A request that changes something, and the question about it.
pub fn write(
    method: HttpMethod,
    parts: &[&str],
    query: Query,
    body: Map<String, Json>,
    ask: Ask,
) -> Prepared {
    let body = Some(Json::Object(body));
    Prepared::write(Action::Call(ApiCall { method, path: path(parts), query, body }), ask)
}

fn path(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{part}")).collect()
}

/// A request's body in the making, and the same for people: what is not shown is not sent.
#[derive(Default)]
pub struct Change {
    pub body: Map<String, Json>,
    pub facts: Vec<Fact>,
    /// The long text in it.
    pub text: Option<String>,
}

impl Change {
    pub fn json(&mut self, key: &str, label: &str, value: impl Into<Json>, shown: &str) {
        self.body.insert(key.to_owned(), value.into());
        self.facts.push(fact(label, shown));
    }

    pub fn set(&mut self, key: &str, label: &str, value: &str) {
        self.json(key, label, value, value);
    }

    pub fn maybe(&mut self, key: &str, label: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.set(key, label, value);
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str, label: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.json(key, label, value == "true", if value == "true" { "yes" } else { "no" });
        }
    }

    /// Text of many lines.
    pub fn long(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.body.insert(key.to_owned(), text.into());
            self.text = Some(text.to_owned());
        }
    }
}

/// What a remembered yes covers: this place, or every place of the service.
pub fn scopes(op: &str, place: &str, exact: String, kind: &str) -> Option<Scopes> {
    let exact = Scope { key: format!("{op} {place}"), what: exact };
    let kind = Some(Scope { key: op.to_owned(), what: kind.to_owned() });
    Some(Scopes { exact, kind })
}

/// A row of a connector's table.
pub const fn op(
    name: &'static str,
    write: bool,
    usage: &'static str,
    summary: &'static str,
    parse: fn(&Input<'_>) -> Result<Prepared, Refusal>,
) -> Op {
    Op { info: OpInfo { name, write, usage, summary }, parse }
}

/// There is something to read in it.
pub fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// A day, or a moment of one, as the number of milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct When {
    pub millis: i64,
    /// The hour was given.
    pub timed: bool,
}

pub const A_DATE: &str = "a date like 2026-01-31 or 2026-01-31T17:00:00Z";

pub fn is_date(text: &str) -> bool {
    when(text).is_some()
}

/// `2026-01-31`, or with a time and its distance from UTC.
pub fn when(text: &str) -> Option<When> {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let seconds = time.map_or(Some(0), second_of_day)?;
    let millis = (day(date)? * 86_400 + seconds) * 1000;
    Some(When { millis, timed: time.is_some() })
}

/// `2026-01-31` as days since 1970.
fn day(text: &str) -> Option<i64> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=9999).contains(&year) || !(1..=longest).contains(&day) {
        return None;
    }
    // Years are counted from March, so that the day that may be missing is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    Some(before + (153 * month + 2) / 5 + day - 719_469)
}

/// `17:00`, `17:00:00` or `17:00:00.000`, and `Z` or `+02:00`.
fn second_of_day(text: &str) -> Option<i64> {
    let (clock, away) = match text.strip_suffix('Z') {
        Some(clock) => (clock, 0),
        None => {
            let at = text.rfind(['+', '-'])?;
            let [hours, minutes] = numbers(&text[at + 1..], ':', [2, 2])?;
            let away = (hours * 60 + minutes) * 60;
            (&text[..at], if text[at..].starts_with('-') { -away } else { away })
        }
    };
    let clock = clock.split_once('.').map_or(Some(clock), |(clock, fraction)| {
        let digits = fraction.bytes().all(|b| b.is_ascii_digit());
        (digits && (1..=9).contains(&fraction.len())).then_some(clock)
    })?;
    let [hours, minutes, seconds] = numbers(clock, ':', [2, 2, 2])
        .or_else(|| numbers(clock, ':', [2, 2]).map(|[hours, minutes]| [hours, minutes, 0]))?;
    let fits = hours < 24 && minutes < 60 && seconds < 60 && away.abs() < 86_400;
    fits.then_some((hours * 60 + minutes) * 60 + seconds - away)
}

/// Numbers of exactly so many digits each.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut out = [0; N];
    for (number, digits) in out.iter_mut().zip(digits) {
        let part = parts.next()?;
        let plain = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        *number = part.parse().ok().filter(|_| plain)?;
    }
    parts.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_have_two_forms() {
        let millis = |text| when(text).map(|w| (w.millis, w.timed));
        assert_eq!(millis("1970-01-01"), Some((0, false)));
        assert_eq!(millis("2000-02-29"), Some((951_782_400_000, false)));
        assert_eq!(millis("2026-01-31T17:00:00Z"), Some((1_769_878_800_000, true)));
        assert_eq!(millis("2026-01-31T18:00+01:00"), millis("2026-01-31T17:00:00.000Z"));
        assert_eq!(millis("2026-01-31T12:00:00-05:00"), millis("2026-01-31T17:00Z"));
        for bad in [
            "",
            "tomorrow",
            "2026-1-31",
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "1969-12-31",
            "2026-01-31T",
            "2026-01-31T17",
            "2026-01-31T17:00",
            "2026-01-31T24:00Z",
            "2026-01-31T17:00:00.Z",
            "2026-01-31T17:00+1:00",
            "2026-01-31 17:00Z",
            "+026-01-31",
            "２０２６-01-31",
        ] {
            assert_eq!(when(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn days_are_counted_like_everybody_does(seconds in 0_i64..253_402_300_799) {
            let stamp = jiff::Timestamp::from_second(seconds).unwrap();
            prop_assert_eq!(when(&stamp.to_string()).unwrap().millis, seconds * 1000);
        }

        #[test]
        fn no_text_is_too_odd_to_be_no_date(text in "[0-9T:Z.+ -]{0,30}|.{0,12}") {
            let _ = when(&text);
        }
    }
}
