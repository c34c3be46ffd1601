//! The beginning of a push, read before its server hears of it.

use super::answer::Refusal;
use crate::policy::PushRule;
use crate::policy::push::{Commands, LONGEST, PushFault, read_commands};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use protocol::egress::Reason;
use std::collections::VecDeque;
use std::io::{self, Write};

/// Refuses a push that changes what its rule does not allow. Otherwise what was read of it.
pub(super) async fn look(
    headers: &HeaderMap,
    body: &mut Incoming,
    rule: &PushRule,
) -> Result<VecDeque<Bytes>, Refusal> {
    let mut plain = Plain::new(headers)?;
    let mut read = VecDeque::new();
    let mut taken = 0;
    loop {
        let data = match body.frame().await {
            None => None,
            // After fields that follow a body there is no more of it.
            Some(Ok(frame)) => frame.into_data().ok(),
            Some(Err(e)) => return Err(Refusal::with(Reason::BadRequest, e.to_string())),
        };
        let ended = data.is_none();
        if let Some(data) = data {
            plain.take(&data)?;
            taken += data.len();
            read.push_back(data);
        }
        match read_commands(plain.bytes(), ended).map_err(denied)? {
            Commands::All(commands) => {
                rule.check(&commands).map_err(denied)?;
                return Ok(read);
            }
            // Packed up, nothing can be made as long as one likes.
            Commands::More if taken >= LONGEST => return Err(denied(PushFault::TooLong)),
            Commands::More => {}
        }
    }
}

fn denied(fault: PushFault) -> Refusal {
    Refusal::with(Reason::GitRefDenied, fault.to_string())
}

/// The body as its server will read it.
enum Plain {
    AsIs(Vec<u8>),
    Unpacked(Box<MultiGzDecoder<Start>>),
}

impl Plain {
    fn new(headers: &HeaderMap) -> Result<Self, Refusal> {
        let packed = Refusal::with(Reason::GitRefDenied, "the push is packed in an unknown way");
        let mut how = headers.get_all(CONTENT_ENCODING).iter();
        match (how.next().map(|value| value.as_bytes().to_ascii_lowercase()), how.next()) {
            (None, _) => Ok(Self::AsIs(Vec::new())),
            (Some(how), None) if how == b"identity" => Ok(Self::AsIs(Vec::new())),
            (Some(how), None) if how == b"gzip" || how == b"x-gzip" => {
                Ok(Self::Unpacked(Box::new(MultiGzDecoder::new(Start::default()))))
            }
            _ => Err(packed),
        }
    }

    fn take(&mut self, data: &[u8]) -> Result<(), Refusal> {
        match self {
            // What is beyond is not looked at, whatever came in one piece.
            Self::AsIs(bytes) => {
                let room = LONGEST.saturating_sub(bytes.len());
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                Ok(())
            }
            Self::Unpacked(decoder) => {
                let written = decoder.write_all(data).and_then(|()| decoder.flush());
                match written {
                    Ok(()) => Ok(()),
                    Err(_) if decoder.get_ref().0.len() >= LONGEST => Ok(()),
                    Err(e) => Err(Refusal::with(
                        Reason::GitRefDenied,
                        format!("the push cannot be unpacked: {e}"),
                    )),
                }
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::AsIs(bytes) => bytes,
            Self::Unpacked(decoder) => &decoder.get_ref().0,
        }
    }
}

/// So much of what is unpacked is kept; more is an error, or a few bytes could become a great many.
#[derive(Default)]
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LONGEST.saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let n = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
