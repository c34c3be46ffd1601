//! Questions for programs: one JSON object per line, `asked` and `resolved`, each question once.

use crate::json::SCHEMA;
use crate::offers::with_offers;
use protocol::QuestionId;
use protocol::control::HostEvent;
use protocol::question::{Outcome, Question};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What has been told, so that a program that falls behind hears of everything once all the same.
#[derive(Default)]
pub struct Lines {
    open: BTreeMap<QuestionId, String>,
}

impl Lines {
    /// The lines an event is worth.
    pub fn of(&mut self, event: &HostEvent) -> Option<String> {
        let values = match event {
            HostEvent::Snapshot { questions, .. } => self.snapshot(questions),
            HostEvent::Asked { question } => self.asked(question).into_iter().collect(),
            HostEvent::Resolved { id, box_name, outcome } => {
                self.open.remove(id);
                vec![resolved(id, box_name, Some(outcome))]
            }
            _ => vec![],
        };
        let text: String = values.iter().map(|value| format!("{value}\n")).collect();
        (!text.is_empty()).then_some(text)
    }

    fn asked(&mut self, question: &Question) -> Option<Value> {
        let known = self.open.insert(question.id.clone(), question.box_name.to_string());
        let question = with_offers(question).ok().filter(|_| known.is_none())?;
        Some(json!({"schema": SCHEMA, "event": "asked", "question": question}))
    }

    /// Everything as it is now. How a question ended that is no longer in it was missed.
    fn snapshot(&mut self, questions: &[Question]) -> Vec<Value> {
        let is_open = |id: &QuestionId| questions.iter().any(|q| q.id == *id);
        let gone: Vec<_> = self.open.keys().filter(|id| !is_open(id)).cloned().collect();
        let ended = gone.into_iter().filter_map(|id| {
            let name = self.open.remove(&id)?;
            Some(resolved(&id, &name, None))
        });
        let mut values: Vec<_> = ended.collect();
        values.extend(questions.iter().filter_map(|q| self.asked(q)));
        values
    }
}

fn resolved(id: &QuestionId, box_name: &str, outcome: Option<&Outcome>) -> Value {
    json!({
        "schema": SCHEMA,
        "event": "resolved",
        "id": id,
        "boxName": box_name,
        "outcome": outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn parsed(text: Option<String>) -> Vec<Value> {
        let text = text.unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_question_comes_and_goes_once() {
        let open = samples::questions();
        let mut lines = Lines::default();
        let snapshot = |questions: &[Question]| HostEvent::Snapshot {
            status: samples::status(),
            boxes: vec![],
            questions: questions.to_vec(),
        };
        assert_eq!(lines.of(&snapshot(&[])), None);
        let first = parsed(lines.of(&snapshot(&open[..1])));
        assert_eq!(first.len(), 1);
        assert_eq!(first[0]["event"], "asked");
        assert_eq!(first[0]["schema"], 1);
        assert_eq!(first[0]["question"]["digest"], "d1");
        assert_eq!(lines.of(&HostEvent::Asked { question: open[0].clone() }), None);

        let behind = parsed(lines.of(&snapshot(&open[1..2])));
        assert_eq!(
            (&behind[0]["event"], &behind[0]["outcome"]),
            (&json!("resolved"), &Value::Null)
        );
        assert_eq!(behind[0]["boxName"], "fix-login");
        assert_eq!(behind[1]["question"]["id"], open[1].id.as_str());

        let outcome = Outcome::Expired;
        let id = open[1].id.clone();
        let ended = lines.of(&HostEvent::Resolved { id, box_name: "docs-bot".into(), outcome });
        let ended = parsed(ended);
        assert_eq!(ended[0]["outcome"]["kind"], "expired");
        assert_eq!(lines.of(&HostEvent::BoxRemoved { id: open[0].box_id.clone() }), None);
    }
}
