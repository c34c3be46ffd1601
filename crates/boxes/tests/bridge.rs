//! A box without mounted sockets reaches the host through the engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_boxes::{Bridge, Channel, Record, progress};
use bollard::query_parameters::InspectContainerOptions;
use protocol::bridge::{READY, Service};
use protocol::ctl::paths;
use std::future::poll_fn;
use std::time::{Duration, Instant};
use support::{Install, Repo, TOKEN, docker, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use yamux::{Config, Connection, Mode};

async fn exec_box(install: &Install, repo: &Repo) -> Record {
    let mut spec = install.spec(repo.path(), &install.image().await);
    spec.channel = Some(Channel::Exec);
    install.boxes.create(spec, progress::silent()).await.unwrap()
}

/// Greets, and answers every call with its own body as output, until it is aborted.
async fn attach(mut bridge: Bridge) -> JoinHandle<()> {
    let mut greeting = [0; READY.len()];
    bridge.read_exact(&mut greeting).await.unwrap();
    assert_eq!(greeting, READY);
    let mut connection = Connection::new(bridge.compat(), Config::default(), Mode::Client);
    tokio::spawn(async move {
        while let Some(Ok(stream)) = poll_fn(|cx| connection.poll_next_inbound(cx)).await {
            tokio::spawn(answer(stream));
        }
    })
}

async fn answer(stream: yamux::Stream) -> std::io::Result<()> {
    let mut stream = stream.compat();
    assert_eq!(stream.read_u8().await?, Service::Relay.tag());
    let mut asked = Vec::new();
    while !asked.ends_with(b"}}") {
        if stream.read_buf(&mut asked).await? == 0 {
            return Ok(());
        }
    }
    let asked = String::from_utf8(asked).unwrap();
    assert!(asked.contains(&format!("Authorization: Bearer {TOKEN}")));
    let (_, body) = asked.split_once("\r\n\r\n").unwrap();
    let body = serde_json::json!({ "exitCode": 3, "stdout": body, "stderr": "" }).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}

async fn rpc(install: &Install, record: &Record) -> i64 {
    install.run(record, &["agentbox-ctl", "rpc", "a.b", r#"{"c":1}"#]).await.0
}

/// The bridges that run in the box.
async fn bridges(install: &Install, record: &Record) -> usize {
    let count = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | \
                 grep -o '/bin/[a]gentbox-ctl bridge' | wc -l";
    install.output(record, &["sh", "-c", count]).await.trim().parse().unwrap()
}

#[tokio::test]
async fn a_box_without_mounted_sockets_reaches_the_host() {
    let repo = Repo::new();
    let install = Install::new().await;
    assert_eq!(install.boxes.engine().profile().channel(), Channel::Socket);
    let record = exec_box(&install, &repo).await;
    assert_eq!(record.channel, Channel::Exec);
    let seen = docker(install.boxes.engine())
        .inspect_container(&record.container, None::<InspectContainerOptions>)
        .await
        .unwrap();
    let mounted =
        seen.mounts.unwrap().into_iter().any(|m| m.destination.as_deref() == Some(paths::HOST));
    assert!(!mounted);
    assert_eq!(rpc(&install, &record).await, 126);

    let host = attach(install.boxes.bridge(&record, Service::Relay).await.unwrap()).await;
    let said = install.run(&record, &["agentbox-ctl", "rpc", "a.b", r#"{"c":1}"#]).await;
    assert_eq!(said, (3, r#"{"method":"a.b","params":{"c":1}}"#.into(), String::new()));
    let socket = install.output(&record, &["stat", "-c", "%a %U %F", paths::RELAY_SOCKET]).await;
    assert_eq!(socket.trim(), "600 vscode socket");
    // The box user cannot put another in its place.
    assert_ne!(install.run(&record, &["rm", "-f", paths::RELAY_SOCKET]).await.0, 0);

    // A host that is gone: its bridge ends, and callers hear of it at once.
    host.abort();
    eventually("the bridge ends", || async { bridges(&install, &record).await == 0 }).await;
    let began = Instant::now();
    assert_eq!(rpc(&install, &record).await, 126);
    assert!(began.elapsed() < Duration::from_secs(5));

    // The next host, in the same box that was never stopped.
    let host = attach(install.boxes.bridge(&record, Service::Relay).await.unwrap()).await;
    assert_eq!(rpc(&install, &record).await, 3);

    // And one that comes although the one before has not left.
    let newer = attach(install.boxes.bridge(&record, Service::Relay).await.unwrap()).await;
    eventually("the older one leaves", || async { bridges(&install, &record).await == 1 }).await;
    eventually("its host notices", || async { host.is_finished() }).await;
    assert_eq!(rpc(&install, &record).await, 3);

    // Stopping is not held up, and starting begins anew.
    let began = Instant::now();
    install.boxes.stop(&record).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "stop took {:?}", began.elapsed());
    eventually("the host notices", || async { newer.is_finished() }).await;
    install.boxes.start(&record, TOKEN).await.unwrap();
    assert_eq!(rpc(&install, &record).await, 126);
    let _host = attach(install.boxes.bridge(&record, Service::Relay).await.unwrap()).await;
    assert_eq!(rpc(&install, &record).await, 3);
    install.boxes.destroy(&record).await.unwrap();
}

#[tokio::test]
async fn a_bridge_may_be_started_before_the_box_is_ready() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = exec_box(&install, &repo).await;
    install.boxes.stop(&record).await.unwrap();
    assert!(install.boxes.bridge(&record, Service::Relay).await.is_err());
    docker(install.boxes.engine())
        .start_container(
            &record.container,
            None::<bollard::query_parameters::StartContainerOptions>,
        )
        .await
        .unwrap();
    let _host = attach(install.boxes.bridge(&record, Service::Relay).await.unwrap()).await;
    install.boxes.release(&record, TOKEN).await.unwrap();
    assert_eq!(rpc(&install, &record).await, 3);
}
