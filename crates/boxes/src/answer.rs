//! What a box answers to a command of ours: its own word, so bounded, parsed, and never shown raw.

use crate::Error;
use crate::exec::Sink;
use bytes::Bytes;
use protocol::text::shortened;
use serde::de::DeserializeOwned;

/// Longer complaints are not about what was asked.
const LONGEST_COMPLAINT: usize = 200;

/// An answer of so many bytes at most.
pub(crate) struct Answer {
    command: &'static str,
    limit: usize,
    bytes: Vec<u8>,
}

impl Answer {
    pub fn to(command: &'static str, limit: usize) -> Self {
        Self { command, limit, bytes: Vec::new() }
    }

    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.bytes).map_err(|error| self.bad(&error.to_string()))
    }

    /// The command printed nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A parser's complaint quotes what it could not read.
    pub fn bad(&self, why: &str) -> Error {
        let why = shortened(why, LONGEST_COMPLAINT);
        Error::BadAnswer { command: self.command.to_owned(), why }
    }
}

impl Sink for Answer {
    async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(self.bad("it is too long"));
        }
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::sessions::Agent;

    #[tokio::test]
    async fn an_answer_is_bounded_and_draws_on_nobodys_terminal() {
        let mut answer = Answer::to("session", 1000);
        let text = r#""\u001b]52;c;ZXZpbA==\u0007\u202e""#;
        answer.take(Bytes::from_static(text.as_bytes())).await.unwrap();
        let said = answer.read::<Agent>().unwrap_err().to_string();
        assert!(!said.chars().any(char::is_control) && !said.contains('\u{202e}'), "{said:?}");
        assert!(said.chars().count() < 400, "{said}");
        let more = answer.take(vec![b'x'; 1000].into()).await.unwrap_err();
        assert!(more.to_string().contains("too long"), "{more}");
    }
}
