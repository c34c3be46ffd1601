//! `agentbox-ctl agent-state <agent> <state> [--hook]`: what an agent's hooks call. With `--hook` the
//! agent says on standard input which conversation it is at.
//!
//! A hook must never hold up or fail its agent, so whatever goes wrong here is nobody's problem.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::resume;
use protocol::rpc::EventPost;
use protocol::sessions::{AGENT_EVENT, Agent, AgentReport, AgentState};
use std::ffi::OsString;

pub fn run(args: &[OsString]) -> Result<i32> {
    let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
    let (words, hook) = match words.as_slice() {
        [words @ .., "--hook"] => (words, true),
        words => (words, false),
    };
    let [agent, state] = words else { return Err(usage()) };
    let (agent, state) = (Agent::named(agent), AgentState::named(state));
    let (Some(agent), Some(state)) = (agent, state) else { return Err(usage()) };
    if hook {
        resume::from_hook(agent);
    }
    tell(agent, Some(state));
    Ok(protocol::exit::OK)
}

fn usage() -> Error {
    let states = "ready|working|waiting|done";
    Error::Usage(format!("use 'agentbox-ctl agent-state claude|codex|opencode {states}'."))
}

/// None: it has ended. A host that is away learns of the next change.
pub fn tell(agent: Agent, state: Option<AgentState>) {
    let report = AgentReport { agent, state };
    let Ok(payload) = serde_json::value::to_raw_value(&report) else { return };
    let post = EventPost { kind: AGENT_EVENT.into(), ts: None, payload: Some(payload) };
    let _ = Relay::open().and_then(|relay| relay.event(&post));
}
