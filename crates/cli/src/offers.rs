//! The answers a question offers, by number and by key, for programs that choose among them.
//!
//! Each has the same number at every question, so that a number that was meant for another question
//! never says more than it would have said there.

use protocol::question::{Breadth, Question, Reach, Verdict};
use serde_json::{Value, json};

/// How long a yes is remembered when nobody says.
const HOUR: u64 = 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    Deny,
    Once,
    Remember(Reach),
    /// Go on without the files it lists.
    Without,
}

impl Offer {
    const ALL: [Offer; 6] = [
        Offer::Deny,
        Offer::Once,
        Offer::Remember(Reach::Box),
        Offer::Remember(Reach::Project),
        Offer::Remember(Reach::Everywhere),
        Offer::Without,
    ];

    fn key(self) -> &'static str {
        match self {
            Offer::Deny => "deny",
            Offer::Once => "once",
            Offer::Remember(Reach::Box) => "box",
            Offer::Remember(Reach::Project) => "project",
            Offer::Remember(Reach::Everywhere) => "everywhere",
            Offer::Without => "without",
        }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = (1..).zip(Self::ALL);
        let found = all.find(|(n, offer)| text == offer.key() || text == n.to_string());
        found.map(|(_, offer)| offer).ok_or_else(|| {
            let keys = (1..).zip(Self::ALL).map(|(n, offer)| format!("{n} or {}", offer.key()));
            format!("no answer: {}", keys.collect::<Vec<_>>().join(", "))
        })
    }

    pub fn verdict(self, seconds: Option<u64>) -> Verdict {
        match self {
            Offer::Deny => Verdict::Deny,
            Offer::Once => Verdict::AllowOnce,
            Offer::Without => Verdict::Without,
            Offer::Remember(reach) => {
                let seconds = seconds.unwrap_or(HOUR);
                Verdict::Remember { reach, breadth: Breadth::Exact, seconds }
            }
        }
    }

    /// What it would do at a question; none when it is not offered there.
    fn says(self, question: &Question) -> Option<String> {
        Some(match self {
            Offer::Deny => question.answers.no.clone(),
            Offer::Once => question.answers.yes.clone(),
            Offer::Without => question.answers.without.clone()?,
            Offer::Remember(reach) => {
                let (name, project) = (question.box_name.as_str(), &question.project);
                let remember = question.remember.as_ref().filter(|r| r.allows(reach))?;
                remember.sentence(name, project, reach, Breadth::Exact)
            }
        })
    }
}

/// A question for programs, with the answers it offers as `options`.
pub fn with_offers(question: &Question) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(question)?;
    let options = (1..).zip(Offer::ALL).filter_map(|(number, offer)| {
        let says = offer.says(question)?;
        Some(json!({ "number": number, "key": offer.key(), "says": says }))
    });
    value["options"] = options.collect();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_question_says_what_may_be_answered() {
        let of = |question: &Question| {
            let value = with_offers(question).unwrap();
            let options = value["options"].as_array().unwrap().clone();
            options.iter().map(|o| format!("{} {}", o["number"], o["key"])).collect::<Vec<_>>()
        };
        let open = samples::questions();
        let all = ["1 \"deny\"", "2 \"once\"", "3 \"box\"", "4 \"project\"", "5 \"everywhere\""];
        assert_eq!(of(&open[0]), all);
        assert_eq!(of(&open[1]), all[..2], "asked every time");
        let mut project = open[0].clone();
        project.remember.as_mut().unwrap().only = Some(Reach::Project);
        assert_eq!(of(&project), [all[0], all[1], all[3]], "a number keeps its meaning");
        let mut files = open[1].clone();
        files.answers.without = Some("Without these files".into());
        assert_eq!(of(&files), [all[0], all[1], "6 \"without\""]);
        let says = &with_offers(&files).unwrap()["options"][2]["says"];
        assert_eq!(says, "Without these files");
        let says = &with_offers(&open[0]).unwrap()["options"][3]["says"];
        assert!(says.as_str().unwrap().starts_with("Let every box of "), "{says}");
    }

    #[test]
    fn an_answer_is_chosen_by_number_or_key() {
        assert_eq!(Offer::parse("1"), Ok(Offer::Deny));
        assert_eq!(Offer::parse("once"), Offer::parse("2"));
        assert_eq!(Offer::parse("project"), Ok(Offer::Remember(Reach::Project)));
        assert_eq!(Offer::parse("6").unwrap().verdict(None), Verdict::Without);
        for bad in ["", "0", "7", "-1", "yes", "02", "Once"] {
            assert!(Offer::parse(bad).unwrap_err().contains("2 or once"), "{bad}");
        }
        let reach = Reach::Box;
        let hour = Verdict::Remember { reach, breadth: Breadth::Exact, seconds: 3600 };
        assert_eq!(Offer::Remember(reach).verdict(None), hour);
    }
}
