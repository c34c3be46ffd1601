//! Questions as events: what the window, `agentbox approvals --watch` and the tray menu follow.

use crate::core::Core;
use approvals::Sink;
use protocol::control::HostEvent;
use protocol::question::{Outcome, Question};
use std::sync::Weak;

pub struct EventSink(pub Weak<Core>);

impl Sink for EventSink {
    fn show(&self, question: &Question) {
        let Some(core) = self.0.upgrade() else { return };
        core.send(HostEvent::Asked { question: question.clone() });
        core.send_view_later(&question.box_id);
    }

    fn again(&self, question: &Question) {
        let Some(core) = self.0.upgrade() else { return };
        core.send(HostEvent::AskedAgain { id: question.id.clone(), times: question.times });
    }

    fn withdraw(&self, question: &Question, outcome: &Outcome) {
        let Some(core) = self.0.upgrade() else { return };
        core.send(HostEvent::Resolved {
            id: question.id.clone(),
            box_name: question.box_name.to_string(),
            outcome: outcome.clone(),
        });
        core.send_view_later(&question.box_id);
    }

    fn is_attached(&self) -> bool {
        self.0.upgrade().is_some_and(|core| core.is_watched())
    }
}
