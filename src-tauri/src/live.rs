//! What the host last said: its status, boxes and open questions, kept up to date by its events.

use protocol::boxes::{BoxState, BoxView};
use protocol::control::{HostEvent, HostStatus};
use protocol::question::Question;
use protocol::sessions::AgentState;

#[derive(Debug, Default, Clone)]
pub struct Live {
    pub status: Option<HostStatus>,
    /// By project and index.
    pub boxes: Vec<BoxView>,
    /// Oldest first.
    pub questions: Vec<Question>,
}

impl Live {
    pub fn apply(&mut self, event: HostEvent) {
        match event {
            HostEvent::Snapshot { status, boxes, questions } => {
                *self = Live { status: Some(status), boxes, questions };
            }
            HostEvent::BoxChanged { view } => self.put(view),
            HostEvent::BoxRemoved { id } => self.boxes.retain(|b| b.id != id),
            HostEvent::Asked { question } => {
                self.questions.retain(|q| q.id != question.id);
                self.questions.push(question);
            }
            HostEvent::AskedAgain { id, times } => {
                if let Some(question) = self.questions.iter_mut().find(|q| q.id == id) {
                    question.times = times;
                }
            }
            HostEvent::Resolved { id, .. } => self.questions.retain(|q| q.id != id),
            HostEvent::Status { status } => self.status = Some(status),
            HostEvent::Progress { .. }
            | HostEvent::Usage { .. }
            | HostEvent::ShowWindow { .. }
            | HostEvent::JobChanged { .. }
            | HostEvent::JobsCleared { .. }
            | HostEvent::UnitsChanged { .. }
            | HostEvent::Traffic { .. }
            | HostEvent::Told { .. } => {}
        }
    }

    pub fn running(&self) -> usize {
        self.boxes.iter().filter(|b| b.state == BoxState::Running).count()
    }

    /// What each agent does that runs.
    pub fn agents(&self) -> impl Iterator<Item = AgentState> + '_ {
        let up = self.boxes.iter().filter(|view| view.state == BoxState::Running);
        up.flat_map(|view| view.agents.iter().map(|agent| agent.state))
    }

    pub fn is_quiet(&self) -> bool {
        self.status.as_ref().is_some_and(|s| s.quiet_until.is_some())
    }

    /// Unknown counts as reachable: an alarm needs a reason.
    pub fn engine_reachable(&self) -> bool {
        self.status.as_ref().is_none_or(|s| s.engine.reachable)
    }

    fn put(&mut self, view: BoxView) {
        match self.boxes.iter_mut().find(|b| b.id == view.id) {
            Some(known) => *known = view,
            None => self.boxes.push(view),
        }
        self.boxes.sort_by(|a, b| {
            (&a.project, &a.project_root, a.index).cmp(&(&b.project, &b.project_root, b.index))
        });
    }
}

#[cfg(test)]
pub mod samples {
    //! Boxes and questions for the tests of this program.

    use super::*;
    use protocol::control::EngineStatus;
    use protocol::question::{Answers, Evidence, Tier};

    pub fn a_box(id: u8, name: &str, project: &str, state: BoxState) -> BoxView {
        BoxView {
            id: format!("b{id:08x}").parse().unwrap(),
            name: name.parse().unwrap(),
            display_name: None,
            index: u32::from(id),
            project: project.into(),
            project_root: format!("/home/me/{project}"),
            workspace: format!("/home/me/{project}"),
            state,
            branch: None,
            publish: None,
            image: "agentbox/box".into(),
            created_at: 0,
            questions: 0,
            muted_until: None,
            channel: "socket".into(),
            busy: None,
            agents: Vec::new(),
            logins: Vec::new(),
            web: None,
            screen: None,
            nested_repos: Vec::new(),
            egress: protocol::egress::EgressMode::Open,
            down: None,
        }
    }

    pub fn question(id: u8, name: &str, title: &str) -> Question {
        Question {
            id: format!("{id:032x}").parse().unwrap(),
            box_id: format!("b{id:08x}").parse().unwrap(),
            box_name: name.parse().unwrap(),
            project: "shop-api".into(),
            method: "git.push".into(),
            tier: Tier::Routine,
            title: title.into(),
            target: "github.com/acme/shop-api".into(),
            evidence: Evidence::default(),
            warnings: Vec::new(),
            argv: vec!["git".into(), "push".into()],
            remember: None,
            answers: Answers::default(),
            times: 1,
            created_at: 0,
            expires_at: 1,
            digest: format!("d{id}"),
        }
    }

    pub fn status(reachable: bool) -> HostStatus {
        HostStatus {
            version: "0.1.0".into(),
            proto: 1,
            pid: 1,
            kind: "desktop".into(),
            home: "/home/me/.agentbox".into(),
            started_at: 0,
            engine: EngineStatus { reachable, detail: "refused".into(), hint: None },
            notices: Vec::new(),
            boxes: 0,
            questions: 0,
            quiet_until: None,
            jobs: protocol::queue::JobCounts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{a_box, question, status};
    use super::*;
    use protocol::question::Outcome;

    #[test]
    fn a_snapshot_replaces_everything() {
        let mut live = Live::default();
        live.apply(HostEvent::Asked { question: question(1, "a", "Push") });
        live.apply(HostEvent::Snapshot {
            status: status(true),
            boxes: vec![a_box(1, "a", "shop", BoxState::Running)],
            questions: Vec::new(),
        });
        assert!(live.questions.is_empty());
        assert_eq!(live.running(), 1);
    }

    #[test]
    fn events_change_one_thing() {
        let mut live = Live::default();
        live.apply(HostEvent::BoxChanged { view: a_box(2, "b", "shop", BoxState::Running) });
        live.apply(HostEvent::BoxChanged { view: a_box(1, "a", "shop", BoxState::Running) });
        live.apply(HostEvent::BoxChanged { view: a_box(2, "b", "shop", BoxState::Stopped) });
        let names: Vec<_> = live.boxes.iter().map(|b| b.name.as_str()).collect();
        assert_eq!((names, live.running()), (vec!["a", "b"], 1));

        let asked = question(1, "a", "Push");
        live.apply(HostEvent::Asked { question: asked.clone() });
        live.apply(HostEvent::Asked { question: asked.clone() });
        assert_eq!(live.questions.len(), 1);
        live.apply(HostEvent::Resolved {
            id: asked.id,
            box_name: "a".into(),
            outcome: Outcome::Expired,
        });
        assert!(live.questions.is_empty());
    }
}
