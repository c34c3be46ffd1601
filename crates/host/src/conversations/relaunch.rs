//! Agents that ran when a box went down, started again when it is up.

use super::Reply;
use crate::api::Api;
use crate::engine::control_error;
use crate::sessions::is_personal;
use boxes::Record;
use protocol::boxes::BoxState;
use protocol::control::Target;
use protocol::conversations::{Begin, Relaunch, RelaunchAgents, Relaunched};
use protocol::integrations::SecretText;
use protocol::resync::Resynced;
use protocol::sessions::{Agent, SessionKind, StartSession};
use std::collections::BTreeMap;

impl Api {
    /// Starts each again, and goes on when one cannot be.
    pub async fn relaunch_agents(&self, request: RelaunchAgents) -> Reply<Relaunch> {
        let id = self.find(&request.target)?;
        if self.core.box_state(&id) != BoxState::Running {
            return Ok(Relaunch::default());
        }
        let (boxes, record) = self.core.reach(&id).await?;
        let before = boxes.sessions_before(&record).await.map_err(control_error)?;
        let mut done = Relaunch::default();
        if request.resync && !before.is_empty() {
            // They can go on without it.
            let resynced = self.resync(Target::id(&id)).await;
            done.resynced = resynced.unwrap_or_else(|error| Resynced {
                left: vec![error.message],
                ..Resynced::default()
            });
        }
        for one in before {
            let what = SessionKind::Agent {
                agent: one.agent,
                name: Some(one.name.clone()),
                args: Vec::new(),
                env: variables(&request, &record, one.agent),
                sync: false,
                skip_permissions: None,
                begin: Begin::Last,
            };
            let target = Target::id(&id);
            let (cols, rows) = (request.cols, request.rows);
            let started = self.start_session(StartSession { target, what, cols, rows }).await;
            let failed = started.err().map(|error| error.message);
            done.agents.push(Relaunched { agent: one.agent, name: one.name, failed });
        }
        Ok(done)
    }
}

/// What of the person's environment an agent gets that the box says it ran. A box could say so to come by
/// a login: it gets what a person gave that agent there before, and no other.
fn variables(
    request: &RelaunchAgents,
    record: &Record,
    agent: Agent,
) -> BTreeMap<String, SecretText> {
    let mut env = request.env.get(&agent).cloned().unwrap_or_default();
    let given = record.given.get(&agent);
    env.retain(|name, _| !is_personal(name) || given.is_some_and(|given| given.contains(name)));
    env
}
