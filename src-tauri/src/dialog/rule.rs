//! A rule in the making: whom it covers, what, and until when, as one sentence. No widgets here.

use jiff::fmt::strtime;
use jiff::{SignedDuration, Zoned};
use protocol::question::{Breadth, Question, Reach, Remember, Verdict};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Hour,
    Today,
    Month,
    Always,
}

/// What is chosen; at first the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    pub reach: Reach,
    pub breadth: Breadth,
    pub until: Until,
}

impl Wish {
    pub fn least(remember: &Remember) -> Self {
        Self { reach: remember.least(), breadth: Breadth::Exact, until: Until::Hour }
    }
}

/// One of several, and what it adds to the one before.
pub struct Choice<T> {
    pub value: T,
    pub label: &'static str,
    pub adds: String,
}

fn choice<T>(value: T, label: &'static str, adds: impl Into<String>) -> Choice<T> {
    Choice { value, label, adds: adds.into() }
}

/// None to choose when there is one only.
pub fn who(question: &Question, remember: &Remember) -> Vec<Choice<Reach>> {
    if remember.only.is_some() {
        return Vec::new();
    }
    let others = format!("also every other box of {}, new ones too", question.project);
    vec![
        choice(Reach::Box, "This box", ""),
        choice(Reach::Project, "This project", others),
        choice(
            Reach::Everywhere,
            "Everywhere",
            "also the boxes of every other project, new ones too",
        ),
    ]
}

/// None to choose when there is no wider kind.
pub fn what(remember: &Remember) -> Vec<Choice<Breadth>> {
    let Some(kind) = &remember.kind else { return Vec::new() };
    vec![
        choice(Breadth::Exact, "Exactly this", remember.exact.clone()),
        choice(Breadth::Kind, "This kind", format!("also: {kind}")),
    ]
}

pub fn until() -> Vec<Choice<Until>> {
    vec![
        choice(Until::Hour, "1 hour", ""),
        choice(Until::Today, "Today", ""),
        choice(Until::Month, "30 days", ""),
        choice(Until::Always, "Always", ""),
    ]
}

impl Wish {
    pub fn verdict(self, now: &Zoned) -> Verdict {
        let Wish { reach, breadth, until } = self;
        Verdict::Remember { reach, breadth, seconds: until.seconds(now) }
    }

    /// The rule and its end.
    pub fn sentence(self, question: &Question, remember: &Remember, now: &Zoned) -> String {
        let name = question.box_name.as_str();
        let rule = remember.sentence(name, &question.project, self.reach, self.breadth);
        format!("{rule} {}.", self.until.words(now))
    }
}

impl Until {
    fn seconds(self, now: &Zoned) -> u64 {
        match self {
            Until::Hour => HOUR,
            Until::Today => rest_of_today(now).unwrap_or(HOUR),
            Until::Month => 30 * DAY,
            Until::Always => Remember::ALWAYS,
        }
    }

    /// “until 15:20”, “until tomorrow 09:00”, “until 2026-01-31 09:00”, “until you remove it”.
    fn words(self, now: &Zoned) -> String {
        let end = |seconds: u64| {
            let length = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
            let then = now.checked_add(length).ok()?;
            let form = match then.date() {
                day if day == now.date() => "until %H:%M",
                day if now.date().tomorrow().is_ok_and(|t| t == day) => "until tomorrow %H:%M",
                _ => "until %Y-%m-%d %H:%M",
            };
            strtime::format(form, &then).ok()
        };
        let always = || "until you remove it".to_owned();
        if self == Until::Always { always() } else { end(self.seconds(now)).unwrap_or_else(always) }
    }
}

fn rest_of_today(now: &Zoned) -> Option<u64> {
    let midnight = now.tomorrow().ok()?.start_of_day().ok()?;
    u64::try_from(midnight.duration_since(now).as_secs()).ok().filter(|left| *left > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::question;

    fn ten() -> Zoned {
        jiff::civil::date(2031, 3, 5).at(10, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap()
    }

    fn remember() -> Remember {
        Remember {
            exact: "push to a of x".into(),
            kind: Some("push to any branch of x".into()),
            only: None,
        }
    }

    #[test]
    fn the_rule_is_one_sentence() {
        let question = question(1, "fix-login", "Push");
        let of = |wish: Wish| wish.sentence(&question, &remember(), &ten());
        let least = Wish::least(&remember());
        assert_eq!(of(least), "Let fix-login push to a of x until 11:00.");
        let wide = Wish { reach: Reach::Project, breadth: Breadth::Kind, until: Until::Today };
        assert_eq!(
            of(wide),
            "Let every box of shop-api push to any branch of x until tomorrow 00:00."
        );
        let month = Wish { reach: Reach::Everywhere, until: Until::Month, ..least };
        assert_eq!(of(month), "Let every box push to a of x until 2031-04-04 10:00.");
        let always = Wish { until: Until::Always, ..least };
        assert_eq!(of(always), "Let fix-login push to a of x until you remove it.");
    }

    #[test]
    fn the_verdict_is_what_the_sentence_says() {
        let of = |until| match (Wish { until, ..Wish::least(&remember()) }).verdict(&ten()) {
            Verdict::Remember { seconds, .. } => seconds,
            _ => 0,
        };
        let all = [Until::Hour, Until::Today, Until::Month, Until::Always].map(of);
        assert_eq!(all, [3600, 14 * 3600, 30 * 86_400, Remember::ALWAYS]);
    }

    #[test]
    fn wider_choices_say_what_they_add() {
        let question = question(1, "fix-login", "Push");
        let adds: Vec<_> = who(&question, &remember()).into_iter().map(|c| c.adds).collect();
        assert_eq!(adds[0], "");
        assert!(adds[1].contains("every other box of shop-api"));
        assert!(adds[2].contains("every other project"));
        assert!(what(&remember())[1].adds.starts_with("also: push to any"));
        assert!(what(&Remember { kind: None, ..remember() }).is_empty());
        assert_eq!(until().len(), 4);
    }

    #[test]
    fn whom_it_covers_is_no_choice_where_there_is_one_only() {
        let question = question(1, "fix-login", "Copy");
        let project = Remember { kind: None, only: Some(Reach::Project), ..remember() };
        assert!(who(&question, &project).is_empty());
        let least = Wish::least(&project);
        assert_eq!(
            least.sentence(&question, &project, &ten()),
            "Let every box of shop-api push to a of x until 11:00."
        );
        assert!(matches!(least.verdict(&ten()), Verdict::Remember { reach: Reach::Project, .. }));
    }
}
