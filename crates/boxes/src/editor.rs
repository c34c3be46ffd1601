//! An editor's list of terminals in a box, by way of `agentbox-ctl editor-tasks`.

use crate::answer::Answer;
use crate::engine::{QUICK, limited};
use crate::exec::CtlCall;
use crate::{Boxes, Error, Record};
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
        let (call, mut answer) =
            (CtlCall { args, ..CtlCall::default() }, Answer::to("editor-tasks", MAX_ANSWER));
        let told = self.ctl(&record.container, call, stream::empty(), &mut answer);
        limited("write the editor's terminals", QUICK, told).await??;
        answer.read()
    }
}
