//! What the proxy keeps of a large push: nothing. A program of its own, so that nobody else's memory counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures)]
// The other tests use the rest.
#![allow(dead_code, unused_imports, clippy::unnecessary_wraps)]

#[path = "proxy/support/mod.rs"]
mod support;

use agentbox_egress::policy::Policy;
use bytes::Bytes;
use http_body_util::BodyExt;
use support::client::read_answer;
use support::server::text;
use support::*;
use tokio::io::AsyncWriteExt;

const MIB: usize = 1024 * 1024;
const PUSHED: usize = 500 * MIB;

/// Of this process, with client and server in it.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Of what is sent, what follows the list of refs.
fn body() -> Vec<u8> {
    let (old, new) = ("1".repeat(40), "2".repeat(40));
    let line = format!("{old} {new} refs/heads/agentbox/x\0report-status");
    format!("{:04x}{line}0000PACK", line.len() + 4).into_bytes()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn egress_12_57_egress_r10_a_push_of_500_mib_is_not_gathered() {
    let policy = Policy::from_yaml(
        "services:\n- name: github\n  repos: [acme/widget]\n  git:\n    access: readwrite\n    \
         auth: {secret: github.acme.push}\n    push: {refs: ['agentbox/*']}\n",
    );
    let world = World::new(policy.unwrap());
    world.secrets.set("github.acme.push", "ghp_RealValueOfTheUserThatNoBoxShouldSee");
    let _server = Server::https(&world, "github.com", |request| {
        Box::pin(async move {
            let (mut body, mut length) = (request.into_body(), 0);
            while let Some(frame) = body.frame().await {
                length += frame.unwrap().into_data().map_or(0, |data| data.len());
            }
            text(length.to_string())
        })
    })
    .await;
    let start = body();
    let mut tls = Client::new(&world).tunnel("github.com", 443).await.unwrap();
    let head = format!(
        "POST /acme/widget.git/git-receive-pack HTTP/1.1\r\nHost: github.com\r\n\
         Content-Length: {}\r\n\r\n",
        start.len() + PUSHED
    );
    tls.write_all(head.as_bytes()).await.unwrap();
    tls.write_all(&start).await.unwrap();
    let piece = Bytes::from(vec![0xa5; MIB / 4]);
    let (mut before, mut most) = (0, 0);
    for n in 0..PUSHED / piece.len() {
        tokio::time::timeout(SOON, tls.write_all(&piece)).await.unwrap().unwrap();
        // Buffers have their size after a few.
        if n == 32 {
            before = resident();
        }
        most = most.max(resident());
    }
    tls.flush().await.unwrap();
    assert_eq!(read_answer(&mut tls).await.text(), (start.len() + PUSHED).to_string());
    let grown = most.saturating_sub(before);
    assert!(grown < 16 * MIB, "{} MiB more", grown / MIB);
    let line = world.log.allowed(1).await.remove(0);
    assert_eq!(line.bytes_up, (start.len() + PUSHED) as u64);
}
