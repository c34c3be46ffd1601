//! Files on their way out of a box and into it, as tar streams.
//!
//! What a box sends is hostile and is only written down here, up to a bound; reading it is for
//! whoever asked. The file on the host is given by handle: it need not have a name.

use crate::create::json_line;
use crate::engine::limited;
use crate::exec::{CtlCall, Nothing, Sink};
use crate::{Boxes, Error, Record};
use bytes::Bytes;
use futures_util::stream;
use protocol::ctl::Pack;
use std::path::Path;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// A box that takes longer is stalling.
const PATIENCE: Duration = Duration::from_secs(600);

impl Boxes {
    /// Has the box pack files into `dest`, at most `limit` bytes.
    pub async fn pack(
        &self,
        record: &Record,
        what: &Pack,
        dest: std::fs::File,
        limit: u64,
    ) -> Result<(), Error> {
        let mut sink = Bounded { file: File::from_std(dest), left: limit, limit };
        let call = CtlCall { args: vec!["pack".to_owned()], ..CtlCall::default() };
        let feed = stream::iter([Ok(json_line(what)?)]);
        let packed = self.ctl(&record.container, call, feed, &mut sink);
        limited("get files from the box", PATIENCE, packed).await??;
        sink.file.flush().await.map_err(written)
    }

    /// Gives the box a tar stream to lay out at `dest`, as the box user.
    pub async fn unpack(
        &self,
        record: &Record,
        tar: std::fs::File,
        dest: &str,
    ) -> Result<(), Error> {
        let args = vec!["unpack-into".to_owned(), dest.to_owned()];
        let call = CtlCall { args, ..CtlCall::default() };
        let feed = tokio_util::io::ReaderStream::with_capacity(File::from_std(tar), 64 * 1024);
        let mut nothing = Nothing;
        let told = self.ctl(&record.container, call, feed, &mut nothing);
        limited("bring files to the box", PATIENCE, told).await?
    }
}

fn written(error: std::io::Error) -> Error {
    Error::io("write", Path::new("the copy"), error)
}

/// A file that takes so much and no more.
struct Bounded {
    file: File,
    left: u64,
    limit: u64,
}

impl Sink for Bounded {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        let size = bytes.len() as u64;
        self.left = self.left.checked_sub(size).ok_or(Error::TooLarge { limit: self.limit })?;
        self.file.write_all(&bytes).await.map_err(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[tokio::test]
    async fn a_box_cannot_fill_the_disk() {
        let mut file = tempfile::tempfile().unwrap();
        let mut sink =
            Bounded { file: File::from_std(file.try_clone().unwrap()), left: 10, limit: 10 };
        sink.take(Bytes::from_static(b"12345")).await.unwrap();
        sink.take(Bytes::from_static(b"67890")).await.unwrap();
        let more = sink.take(Bytes::from_static(b"x")).await;
        assert!(matches!(more, Err(Error::TooLarge { limit: 10 })));
        sink.file.flush().await.unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "1234567890");
    }
}
