//! Sessions in a box, by way of `agentbox-ctl session`.
//!
//! What the box answers is its own word: bounded, parsed, and never more than a name and two numbers.

use crate::answer::Answer;
use crate::create::json_line;
use crate::engine::{QUICK, SLOW, limited};
use crate::exec::{CtlCall, Nothing};
use crate::{Boxes, Error, Record};
use futures_util::stream;
use protocol::ctl::{BOX_USER, NewSession, SESSION_EXISTS, SessionBefore, SessionLine};
use protocol::sessions::{Agent, is_session_name};

/// More sessions than anybody has, and their names.
const MAX_ANSWER: usize = 256 * 1024;
/// More agents than are started again.
const MOST_BEFORE: usize = 16;

impl Boxes {
    /// All sessions of a running box, oldest first.
    pub async fn sessions(&self, record: &Record) -> Result<Vec<SessionLine>, Error> {
        let mut answer = Answer::to("session", MAX_ANSWER);
        let call = session(&["list"]);
        let told = self.ctl(&record.container, call, stream::empty(), &mut answer);
        limited("list sessions", QUICK, told).await??;
        let lines: Vec<SessionLine> = answer.read()?;
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

    /// What ran when the box went down and does not run now. The box's own word.
    pub async fn sessions_before(&self, record: &Record) -> Result<Vec<SessionBefore>, Error> {
        let mut answer = Answer::to("session", MAX_ANSWER);
        let told = self.ctl(&record.container, session(&["before"]), stream::empty(), &mut answer);
        limited("list earlier sessions", QUICK, told).await??;
        let lines: Vec<SessionBefore> = answer.read()?;
        let lines = lines.into_iter().filter(|line| is_session_name(&line.name));
        Ok(lines.take(MOST_BEFORE).collect())
    }

    /// Gives the box a conversation; `tar` has it below [`protocol::ctl::INCOMING_CONVERSATION`].
    pub async fn bring_conversation(
        &self,
        record: &Record,
        tar: std::fs::File,
    ) -> Result<(), Error> {
        self.unpack(record, tar, &format!("/home/{BOX_USER}/")).await?;
        let call = CtlCall { args: vec!["conversation".to_owned()], ..CtlCall::default() };
        let mut nothing = Nothing;
        let told = self.ctl(&record.container, call, stream::empty(), &mut nothing);
        limited("put a conversation in its place", SLOW, told).await?
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
