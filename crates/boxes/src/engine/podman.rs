//! What Podman says of itself beside the interface it shares with Docker.

use super::Address;
use super::address::Stream;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// An engine's account of itself is a few kilobytes.
const MAX_ANSWER: u64 = 1024 * 1024;

/// Whether it runs without root's rights. Podman before version 5 says so in a field of its own only,
/// which clients made for Docker do not know.
pub(super) async fn is_rootless(address: &Address) -> io::Result<bool> {
    let answer = match address.open().await? {
        Stream::Unix(stream) => info(stream).await?,
        Stream::Tcp(stream) => info(stream).await?,
    };
    Ok(says_rootless(&answer))
}

async fn info(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Vec<u8>> {
    // The first version of the protocol: the answer ends with the connection and is in one piece.
    let request = "GET /v1.41/info HTTP/1.0\r\nHost: agentbox\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn says_rootless(answer: &[u8]) -> bool {
    let body = answer.windows(4).position(|at| at == b"\r\n\r\n").map(|at| &answer[at + 4..]);
    let info: Option<serde_json::Value> = body.and_then(|body| serde_json::from_slice(body).ok());
    info.is_some_and(|info| info["Rootless"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_54_podman_says_in_its_own_way_that_it_has_no_root() {
        let says =
            |body: &str| says_rootless(format!("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{body}").as_bytes());
        assert!(says(r#"{"Rootless":true,"SecurityOptions":["name=seccomp,profile=default"]}"#));
        assert!(!says(r#"{"Rootless":false}"#));
        assert!(!says(r#"{"SecurityOptions":[]}"#));
        assert!(!says("not json") && !says_rootless(b""));
    }
}
