//! `checkpoint.create`: a box asks to be captured as it is.
//!
//! A checkpoint with a name of its own does no harm until somebody starts from it. One that new
//! boxes start from by themselves, or that takes another's place, is a way for one box to reach
//! every later one: that is asked every time and nothing remembers it.

use crate::call::{Call, Stop};
use crate::decide::{Refusal, Request};
use crate::ports::{Checkpoints, NewCheckpoint};
use approvals::{Draft, Rememberable, Scope};
use connectors::checkpoint::Create;
use protocol::control::CheckpointView;
use protocol::question::{Fact, Tier};
use protocol::rpc::{CheckpointParams, Envelope};
use protocol::text::visible;
use protocol::{BoxId, exit};
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(600);
/// Checkpoints one box may make in any hour: each is an image on the host's disk.
const PER_HOUR: usize = 4;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct Plan(pub(crate) Create);

/// When each box was captured lately. Not part of a box's state, so that a restart of the box does
/// not make it forget.
#[derive(Default)]
pub(crate) struct Quota(Mutex<HashMap<BoxId, VecDeque<Instant>>>);

impl Quota {
    /// How long the box has to wait for its next one; none when it need not.
    fn wait(&self, id: &BoxId, now: Instant) -> Option<Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let made = all.get_mut(id)?;
        while made.front().is_some_and(|at| now.duration_since(*at) >= HOUR) {
            made.pop_front();
        }
        let oldest = made.front().filter(|_| made.len() >= PER_HOUR)?;
        Some(HOUR.saturating_sub(now.duration_since(*oldest)))
    }

    fn check(&self, id: &BoxId, now: Instant) -> Result<(), Stop> {
        let Some(wait) = self.wait(id, now) else { return Ok(()) };
        let text = format!(
            "{}: {PER_HOUR} checkpoints of this box were made in the last hour; wait {} min.",
            Create::SURFACE,
            wait.as_secs().div_ceil(60)
        );
        Err(Stop::fail(exit::REFUSED, text))
    }

    fn take(&self, id: &BoxId, now: Instant) -> Result<(), Stop> {
        self.check(id, now)?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(id.clone()).or_default().push_back(now);
        Ok(())
    }
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    match request.method {
        "checkpoint.create" => {
            let params: CheckpointParams = request.params(Create::SURFACE)?;
            Ok(Plan(Create::parse(&params)?))
        }
        _ => Err(Refusal::Unknown),
    }
}

pub(crate) async fn execute(call: &Call, Plan(create): Plan) -> Result<Envelope, Stop> {
    let id = &call.reg().id;
    call.shared.quota.check(id, Instant::now())?;
    let there = call.shared.deps.port.checkpoints(id).await.map_err(|e| failed(&e.0))?;
    let wanted = wanted(call, &create, &there);
    let same: Vec<&CheckpointView> =
        there.all.iter().filter(|view| view.name == wanted.name).collect();
    if let Some(view) = same.first().filter(|_| !create.replace) {
        let name = visible(&view.name);
        return Err(failed(&format!(
            "there is a checkpoint {name} already; choose another name or add --replace."
        )));
    }
    let draft = draft(call, &create, &wanted, &same);
    let title = draft.title.clone();
    call.gate(draft, create.is_plain().then_some("checkpoint of the box itself")).await?;
    // Again: several may have been asked for at once.
    call.shared.quota.take(id, Instant::now())?;
    let later = call.clone();
    let work = async move {
        let data = json!({ "name": wanted.name, "default": wanted.set_default, "replaces": wanted.replaces });
        let envelope = capture(&later, wanted).await.unwrap_or_else(|stop| stop.envelope);
        Ok(later.done(title, data, envelope).await)
    };
    call.finish(work).await
}

async fn capture(call: &Call, wanted: NewCheckpoint) -> Result<Envelope, Stop> {
    let made = call.shared.deps.port.checkpoint(&call.reg().id, wanted);
    let made = tokio::time::timeout(LIMIT, made).await.map_err(|_| {
        let text = format!("{}: timed out after {}ms", Create::SURFACE, LIMIT.as_millis());
        Stop::fail(exit::TIMED_OUT, text)
    })?;
    let view = made.map_err(|e| failed(&e.0))?;
    let default = if view.default { ", where new boxes of the project start" } else { "" };
    let stdout = format!("saved checkpoint {}{default}\n", visible(&view.name));
    Ok(Envelope { stdout, ..Envelope::default() })
}

fn failed(why: &str) -> Stop {
    Stop::fail(exit::FAILURE, format!("{}: {why}", Create::SURFACE))
}

fn wanted(call: &Call, create: &Create, there: &Checkpoints) -> NewCheckpoint {
    let numbered = || format!("{}-{}", call.reg().name, there.next);
    let name = create.name.as_ref().map_or_else(numbered, ToString::to_string);
    let same = there.all.iter().filter(|view| view.name == name);
    let replaces: Vec<(String, bool)> = same.map(|view| (view.id.clone(), view.default)).collect();
    // Whoever takes the place of what new boxes start from is what they start from.
    let set_default = create.set_default || replaces.iter().any(|(_, default)| *default);
    NewCheckpoint { name, set_default, replaces, merged: false, include_env: false }
}

fn draft(
    call: &Call,
    create: &Create,
    wanted: &NewCheckpoint,
    replaced: &[&CheckpointView],
) -> Draft {
    let reg = call.reg();
    let (project, name) = (visible(&reg.project), &wanted.name);
    let tier = if create.is_plain() { Tier::Routine } else { Tier::Irreversible };
    let default = wanted.set_default;
    let title = match (default, replaced.first()) {
        (true, _) => format!("Start every new box of {project} from checkpoint {name}"),
        (false, Some(_)) => format!("Replace checkpoint {name} of {project}"),
        (false, None) => format!("Save a checkpoint of {} as {name}", reg.name),
    };
    let mut draft = call.draft(tier, title, project.clone());
    draft.evidence.facts = vec![
        Fact { label: "Box".into(), value: reg.name.to_string() },
        Fact { label: "Checkpoint".into(), value: name.clone() },
    ];
    if default {
        let text = format!("what this box put into itself reaches every new box of {project}");
        draft.warnings.push(text);
    }
    for view in replaced {
        let text = format!(
            "the checkpoint {} of {} is lost",
            visible(&view.name),
            visible(&view.box_name)
        );
        draft.warnings.push(text);
    }
    draft.argv = vec!["checkpoint".into(), "create".into(), "--name".into(), name.clone()];
    draft.argv.extend(create.set_default.then(|| "--set-default".into()));
    draft.argv.extend(create.replace.then(|| "--replace".into()));
    draft.plan = format!("{wanted:?}");
    draft.remember = create.is_plain().then(|| Rememberable {
        only: None,
        exact: Scope { key: "plain".into(), what: "save checkpoints of itself".into() },
        kind: None,
    });
    draft
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_a39_four_in_any_hour() {
        let quota = Quota::default();
        let (one, other): (BoxId, BoxId) =
            ("b00000001".parse().unwrap(), "b00000002".parse().unwrap());
        let start = Instant::now();
        let after = |minutes: u64| start + Duration::from_secs(60 * minutes);
        for minutes in [0, 10, 20, 30] {
            assert!(quota.take(&one, after(minutes)).is_ok());
        }
        let refused = quota.take(&one, after(59)).unwrap_err().envelope;
        assert_eq!(refused.exit_code, 65);
        assert!(refused.stderr.contains("wait 1 min."), "{}", refused.stderr);
        assert!(quota.take(&other, after(59)).is_ok());
        assert!(quota.take(&one, after(60)).is_ok());
        assert!(quota.take(&one, after(61)).is_err());
    }
}
