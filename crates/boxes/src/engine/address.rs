//! Where an engine listens, parsed once.

use crate::Error;
use std::path::PathBuf;
use tokio::net::{TcpStream, UnixStream};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    Unix(PathBuf),
    /// `host:port`, without encryption.
    Tcp(String),
}

impl Address {
    /// Parses `unix:///path`, `/path`, `tcp://host:port` or `http://host:port`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::BadAddress { address: text.to_owned(), why: why.to_owned() };
        if let Some(path) = text.strip_prefix("unix://").or(text.starts_with('/').then_some(text)) {
            let absolute = path.starts_with('/');
            return absolute
                .then(|| Self::Unix(path.into()))
                .ok_or_else(|| bad("the path is not absolute"));
        }
        if let Some(rest) = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://")) {
            let host = rest.trim_end_matches('/');
            let usable = host.rsplit_once(':').is_some_and(|(name, port)| {
                !name.is_empty() && port.parse::<u16>().is_ok() && !host.contains(['/', '@', ' '])
            });
            return usable
                .then(|| Self::Tcp(host.to_owned()))
                .ok_or_else(|| bad("expected host:port"));
        }
        Err(bad(if text.starts_with("ssh://") {
            "engines over SSH are not supported"
        } else if text.starts_with("https://") {
            "engines over TLS are not supported"
        } else {
            "unknown scheme"
        }))
    }

    pub(super) async fn open(&self) -> std::io::Result<Stream> {
        Ok(match self {
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
            Address::Tcp(host) => Stream::Tcp(TcpStream::connect(host).await?),
        })
    }
}

pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
            Address::Tcp(host) => write!(f, "tcp://{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_are_read() {
        assert_eq!(Address::parse("unix:///a/b").unwrap(), Address::Unix("/a/b".into()));
        assert_eq!(Address::parse("/a/b").unwrap(), Address::Unix("/a/b".into()));
        assert_eq!(Address::parse("tcp://h:2375").unwrap(), Address::Tcp("h:2375".into()));
        assert_eq!(Address::parse("http://[::1]:1/").unwrap(), Address::Tcp("[::1]:1".into()));
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for bad in ["", "unix://a", "tcp://h", "tcp://:1", "tcp://u@h:1", "ssh://h", "https://h:1"]
        {
            assert!(matches!(Address::parse(bad), Err(Error::BadAddress { .. })), "{bad:?}");
        }
    }
}
