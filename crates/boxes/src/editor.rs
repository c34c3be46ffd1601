//! An editor's list of terminals in a box, by way of `agentbox-ctl editor-tasks`.

use crate::engine::{QUICK, limited};
use crate::exec::{CtlCall, Sink};
use crate::{Boxes, Error, Record};
use bytes::Bytes;
use futures_util::stream;
use protocol::links::TasksFile;

/// One word.
const MAX_ANSWER: usize = 64;

impl Boxes {
    /// Has the box write the list; what became of it.
    pub async fn editor_tasks(
        &self,
        record: &Record,
        regenerate: bool,
    ) -> Result<TasksFile, Error> {
        let more = regenerate.then_some("--regenerate");
        let args = std::iter::once("editor-tasks").chain(more).map(str::to_owned).collect();
        let (call, mut answer) = (CtlCall { args, ..CtlCall::default() }, Word::default());
        let told = self.ctl(&record.container, call, stream::empty(), &mut answer);
        limited("write the editor's terminals", QUICK, told).await??;
        serde_json::from_slice(&answer.0).map_err(bad)
    }
}

fn bad(error: impl std::fmt::Display) -> Error {
    Error::BadAnswer {
        command: "editor-tasks".to_owned(),
        why: protocol::text::shortened(&error.to_string(), 200),
    }
}

#[derive(Default)]
struct Word(Vec<u8>);

impl Sink for Word {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        if self.0.len() + bytes.len() > MAX_ANSWER {
            return Err(bad("it is too long"));
        }
        self.0.extend_from_slice(&bytes);
        Ok(())
    }
}
