//! Files of a box as a stream, to whoever keeps it: nothing is staged, so memory and disk of the host
//! stay as they are however much the box sends.

use crate::create::json_line;
use crate::exec::{Chunk, CtlCall, Sink};
use crate::{Boxes, Error, Record};
use bytes::Bytes;
use futures_util::stream;
use protocol::ctl::Pack;
use std::path::Path;
use tokio::sync::mpsc;

impl Boxes {
    /// Has the box pack files into `to`, as fast as they are taken from there; how many bytes.
    pub async fn export(
        &self,
        record: &Record,
        what: &Pack,
        to: mpsc::Sender<Chunk>,
    ) -> Result<u64, Error> {
        let call = CtlCall { args: vec!["pack".to_owned()], ..CtlCall::default() };
        let feed = stream::iter([Ok(json_line(what)?)]);
        let mut passed = Passed { to, bytes: 0 };
        self.ctl(&record.container, call, feed, &mut passed).await?;
        Ok(passed.bytes)
    }
}

struct Passed {
    to: mpsc::Sender<Chunk>,
    bytes: u64,
}

impl Sink for Passed {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        let nobody =
            |_| Error::io("write", Path::new("the copy"), std::io::ErrorKind::BrokenPipe.into());
        self.bytes += bytes.len() as u64;
        self.to.send(Chunk::Stdout(bytes)).await.map_err(nobody)
    }
}
