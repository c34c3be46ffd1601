//! Sessions in a box, by way of `agentbox-ctl session`.
//!
//! What the box answers is its own word: bounded, parsed, and never more than a name and two numbers.

use crate::create::json_line;
use crate::engine::{QUICK, limited};
use crate::exec::{CtlCall, Nothing, Sink};
use crate::{Boxes, Error, Record};
use bytes::Bytes;
use futures_util::stream;
use protocol::ctl::{NewSession, SESSION_EXISTS, SessionLine};
use protocol::sessions::{Agent, is_session_name};

/// More sessions than anybody has, and their names.
const MAX_ANSWER: usize = 256 * 1024;

impl Boxes {
    /// All sessions of a running box, oldest first.
    pub async fn sessions(&self, record: &Record) -> Result<Vec<SessionLine>, Error> {
        let mut answer = Answer(Vec::new());
        let call = session(&["list"]);
        let told = self.ctl(&record.container, call, stream::empty(), &mut answer);
        limited("list sessions", QUICK, told).await??;
        let lines: Vec<SessionLine> = serde_json::from_slice(&answer.0).map_err(bad)?;
        Ok(lines.into_iter().filter(|line| is_session_name(&line.name)).collect())
    }

    /// Whether it was started; not when there is one of that name.
    pub async fn start_session(&self, record: &Record, plan: &NewSession) -> Result<bool, Error> {
        let feed = stream::iter([Ok(json_line(plan)?)]);
        let mut nothing = Nothing;
        let told = self.ctl(&record.container, session(&["start"]), feed, &mut nothing);
        match limited("start a session", QUICK, told).await? {
            Err(Error::InBox { exit, .. }) if exit == i64::from(SESSION_EXISTS) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Has the box merge what was brought of the person's settings of an agent.
    pub async fn take_agent_config(&self, record: &Record, agent: Agent) -> Result<(), Error> {
        let args = ["agent-config", agent.as_str()].map(str::to_owned).to_vec();
        let (call, mut nothing) = (CtlCall { args, ..CtlCall::default() }, Nothing);
        let told = self.ctl(&record.container, call, stream::empty(), &mut nothing);
        limited("merge an agent's settings", QUICK, told).await?
    }

    /// Whether there was one.
    pub async fn end_session(&self, record: &Record, name: &str) -> Result<bool, Error> {
        let (call, mut nothing) = (session(&["kill", name]), Nothing);
        let told = self.ctl(&record.container, call, stream::empty(), &mut nothing);
        match limited("end a session", QUICK, told).await? {
            Err(Error::InBox { exit: 1, .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }
}

fn session(args: &[&str]) -> CtlCall {
    let args = std::iter::once("session").chain(args.iter().copied()).map(str::to_owned);
    CtlCall { args: args.collect(), ..CtlCall::default() }
}

fn bad(error: impl std::fmt::Display) -> Error {
    Error::BadAnswer { command: "session".to_owned(), why: error.to_string() }
}

struct Answer(Vec<u8>);

impl Sink for Answer {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        if self.0.len() + bytes.len() > MAX_ANSWER {
            return Err(bad("it is too long"));
        }
        self.0.extend_from_slice(&bytes);
        Ok(())
    }
}
