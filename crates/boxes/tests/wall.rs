//! Boxes without a network, on a real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_boxes as boxes;
use bollard::models::{NetworkConnectRequest, NetworkDisconnectRequest};
use bollard::query_parameters::InspectContainerOptions;
use boxes::{Channel, EngineEvent, Error, Features, Record, progress};
use futures_util::StreamExt;
use protocol::boxes::{BoxState, Endpoints};
use protocol::bridge::{READY, Service};
use protocol::ctl::{Egress, Go};
use protocol::egress::EgressMode;
use support::{Install, Repo, TOKEN, docker, eventually, expect_err};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The name is what makes it one of ours; nobody signs anything with it here.
fn authority() -> String {
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let subject = "/CN=AgentBox Egress CA 0a0b0c0d";
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let mut command = Command::new("openssl");
    command.current_dir(dir.path()).args(["req", "-x509", "-subj", subject]).args(key);
    let made = command.args(["-keyout", "k", "-out", "c"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::read_to_string(dir.path().join("c")).unwrap()
}

fn go(egress: Option<Egress>) -> Go {
    Go { egress, ..Go::from(TOKEN) }
}

async fn closed(install: &Install, repo: &Repo, authority: &str) -> Record {
    let mut spec = install.spec(repo.path(), &install.image().await);
    spec.egress = EgressMode::Locked;
    spec.authority = vec![authority.to_owned()];
    install.boxes.create(spec, progress::silent()).await.unwrap()
}

async fn inspect(install: &Install, container: &str) -> bollard::models::ContainerInspectResponse {
    let docker = docker(install.boxes.engine());
    docker.inspect_container(container, None::<InspectContainerOptions>).await.unwrap()
}

/// Output and errors of a script as root, whatever becomes of it.
async fn as_root(install: &Install, record: &Record, script: &str) -> (i64, String) {
    let (code, out, err) = install.run_as(record, Some("0"), &["sh", "-c", script]).await;
    (code, format!("{out}{err}"))
}

#[tokio::test]
async fn a_controlled_box_has_loopback_and_nothing_else() {
    let (repo, install, ca) = (Repo::new(), Install::new().await, authority());
    let record = closed(&install, &repo, &ca).await;
    assert_eq!((record.egress, &record.network), (EgressMode::Locked, &None));
    let seen = inspect(&install, &record.container).await;
    let host = seen.host_config.unwrap();
    assert_eq!(host.network_mode.as_deref(), Some("none"));
    assert!(host.port_bindings.unwrap_or_default().is_empty());
    assert_eq!(host.cap_drop.unwrap_or_default(), ["NET_RAW"]);
    assert_eq!(install.boxes.endpoints(&record).await.unwrap(), Endpoints::default());
    let name = format!("agentbox-{}", record.name);
    let networks = docker(install.boxes.engine()).list_networks(None).await.unwrap();
    assert!(!networks.iter().any(|network| network.name.as_deref() == Some(&name)));

    let (_, devices) = as_root(&install, &record, "cat /proc/net/dev").await;
    let devices: Vec<&str> = devices.lines().skip(2).collect();
    assert!(devices.len() == 1 && devices[0].trim().starts_with("lo:"), "{devices:?}");
    for script in [
        "curl -sS -m 3 --noproxy '*' http://1.1.1.1/",
        "curl -sS -m 3 --noproxy '*' -g 'http://[2606:4700:4700::1111]/'",
        "curl -sS -m 3 --noproxy '*' http://169.254.169.254/",
        "exec 3<>/dev/tcp/8.8.8.8/53",
        "getent hosts example.com",
    ] {
        let script = format!("timeout 10 bash -c \"{script}\"");
        let (code, said) = as_root(&install, &record, &script).await;
        assert_ne!(code, 0, "{script}: {said}");
    }
    // Its own name is known, which sudo asks for.
    let (code, _, said) = install.run(&record, &["sudo", "-n", "true"]).await;
    assert_eq!((code, said.as_str()), (0, ""));
}

#[tokio::test]
async fn everything_in_a_controlled_box_knows_its_proxy_and_its_authority() {
    let (repo, install, ca) = (Repo::new(), Install::new().await, authority());
    let record = closed(&install, &repo, &ca).await;
    let env = install.output(&record, &["env"]).await;
    for variable in protocol::egress_env::variables(false) {
        let line = format!("{}={}", variable.name, variable.value);
        assert!(env.lines().any(|l| l == line), "{line}");
    }
    // The same for whoever comes by sudo, which takes most variables away.
    let sudo = install.output(&record, &["sudo", "-n", "env"]).await;
    assert!(sudo.contains("\nhttps_proxy=http://127.0.0.1:3128\n"), "{sudo}");
    assert_eq!(install.output(&record, &["cat", "/etc/agentbox/ca.crt"]).await, ca);
    let system = "/etc/ssl/certs/ca-certificates.crt";
    assert!(install.output(&record, &["cat", system]).await.ends_with(&ca));
    // By the hash of its name, too, and still there when the system's own program has run.
    let verify = ["openssl", "verify", "-CApath", "/etc/ssl/certs", "/etc/agentbox/ca.crt"];
    assert!(install.output(&record, &verify).await.contains("OK"));
    let (code, said) = as_root(&install, &record, "update-ca-certificates --fresh").await;
    assert_eq!(code, 0, "{said}");
    assert!(install.output(&record, &["cat", system]).await.contains(&ca));
    let rewritten = install
        .output(&record, &["/usr/bin/git", "ls-remote", "--get-url", "git@github.com:a/b.git"])
        .await;
    assert_eq!(rewritten.trim(), "https://github.com/a/b.git");
    let (code, said) = as_root(&install, &record, "apt-config dump Acquire::http::Proxy").await;
    assert!(code == 0 && said.contains("http://127.0.0.1:3128/"), "{said}");

    // A second start changes nothing; another authority takes the place of the first.
    let bundle = install.output(&record, &["sha256sum", system]).await;
    install.boxes.stop(&record).await.unwrap();
    let same = Egress { certificates: vec![ca.clone()] };
    install.boxes.start(&record, go(Some(same))).await.unwrap();
    assert_eq!(install.output(&record, &["sha256sum", system]).await, bundle);
    let next = authority();
    install.boxes.stop(&record).await.unwrap();
    let other = Egress { certificates: vec![next.clone()] };
    install.boxes.start(&record, go(Some(other))).await.unwrap();
    let now = install.output(&record, &["cat", system]).await;
    assert!(now.contains(&next) && !now.contains(&ca));
}

#[tokio::test]
async fn the_way_out_leads_to_the_hosts_socket_over_either_carrier() {
    let ca = authority();
    for channel in [Channel::Socket, Channel::Exec] {
        let (repo, install) = (Repo::new(), Install::new().await);
        let mut spec = install.spec(repo.path(), &install.image().await);
        spec.egress = EgressMode::Balanced;
        spec.channel = Some(channel);
        spec.authority = vec![ca.clone()];
        let record = install.boxes.create(spec, progress::silent()).await.unwrap();
        let page = ["curl", "-sS", "-i", "-m", "20", "http://example.com/x"];
        // Case 50: nobody is there yet.
        let said = install.output(&record, &page).await;
        assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
        assert!(
            said.contains("X-AgentBox-Reason: policy_unavailable\r\nRetry-After: 5\r\n"),
            "{said}"
        );
        let serving = match channel {
            Channel::Socket => serve_socket(&install),
            Channel::Exec => {
                serve_bridge(install.boxes.bridge(&record, Service::Egress).await.unwrap())
            }
        };
        let (install, record) = (&install, &record);
        eventually("the proxy answers", || async move {
            install.output(record, &page).await.ends_with("GET http://example.com/x HTTP/1.1")
        })
        .await;
        serving.abort();
        eventually("the proxy is gone", || async move {
            install.output(record, &page).await.starts_with("HTTP/1.1 503 ")
        })
        .await;
    }
}

/// Answers everybody with the first line of the request.
async fn answer(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    let mut head = vec![0; 4096];
    let read = stream.read(&mut head).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let line = head.lines().next().unwrap_or_default();
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len());
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn serve_socket(install: &Install) -> tokio::task::JoinHandle<()> {
    let path = install.run.path().join("egress.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let (uid, gid) = boxes::box_ids();
    std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    })
}

fn serve_bridge(mut bridge: boxes::Bridge) -> tokio::task::JoinHandle<()> {
    use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
    tokio::spawn(async move {
        let mut greeting = [0; READY.len()];
        bridge.read_exact(&mut greeting).await.unwrap();
        let config = yamux::Config::default();
        let mut host = yamux::Connection::new(bridge.compat(), config, yamux::Mode::Client);
        while let Some(Ok(stream)) = std::future::poll_fn(|cx| host.poll_next_inbound(cx)).await {
            let mut stream = stream.compat();
            tokio::spawn(async move {
                assert_eq!(stream.read_u8().await.unwrap(), Service::Egress.tag());
                answer(stream).await;
            });
        }
    })
}

#[tokio::test]
async fn a_port_in_a_controlled_box_is_reached_by_the_channel() {
    let (repo, install, ca) = (Repo::new(), Install::new().await, authority());
    let record = closed(&install, &repo, &ca).await;
    let serve = "printf 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' > /tmp/page; \
        (while :; do perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(Listen=>5,LocalAddr=>\"127.0.0.1\",\
        LocalPort=>3000,ReuseAddr=>1);while($c=$s->accept){$c->print(`cat /tmp/page`);close $c}'; done) \
        >/dev/null 2>&1 &";
    install.output(&record, &["sh", "-c", serve]).await;
    let (install, record) = (&install, &record);
    eventually("somebody listens", || async move {
        let Ok(mut stream) = install.boxes.forward(record, 3000).await else { return false };
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        page.ends_with("hello")
    })
    .await;
}

async fn attach_to_a_bridge(install: &Install, record: &Record) {
    let docker = docker(install.boxes.engine());
    let container = record.container.clone();
    let leave = NetworkDisconnectRequest { container: record.container.clone(), force: Some(true) };
    docker.disconnect_network("none", leave).await.unwrap();
    let join = NetworkConnectRequest { container, ..NetworkConnectRequest::default() };
    docker.connect_network("bridge", join).await.unwrap();
}

#[tokio::test]
async fn egress_12_52_a_network_that_somebody_attaches_is_found_and_ends_the_box() {
    let (repo, install, ca) = (Repo::new(), Install::new().await, authority());
    let record = closed(&install, &repo, &ca).await;
    let mut events = install.boxes.events();
    assert_eq!(events.next().await, Some(EngineEvent::Connected));
    attach_to_a_bridge(&install, &record).await;
    loop {
        let event = tokio::time::timeout(std::time::Duration::from_secs(30), events.next());
        if let Some(EngineEvent::Attached(container)) = event.await.unwrap()
            && container == record.container
        {
            break;
        }
    }
    let error = expect_err(install.boxes.prove_unattached(&record).await);
    assert!(matches!(&error, Error::EgressUnsafe(_)), "{error}");
    assert!(error.to_string().starts_with("egress_unsafe: "), "{error}");
    let (install, record) = (&install, &record);
    eventually("it is stopped", || async move {
        install.boxes.state_of(record).await.unwrap() == BoxState::Stopped
    })
    .await;
    // It does not start either, and nothing of it ran meanwhile.
    let error = expect_err(install.boxes.start(record, go(Some(Egress::default()))).await);
    assert!(matches!(error, Error::EgressUnsafe(_)), "{error}");
    assert_eq!(install.boxes.state_of(record).await.unwrap(), BoxState::Stopped);
}

#[tokio::test]
async fn egress_12_52_the_box_itself_finds_a_way_out_that_the_engine_is_silent_about() {
    let (repo, install) = (Repo::new(), Install::new().await);
    // A box with a network, which its record does not know of.
    let record = install.create(repo.path()).await;
    let tested = install.boxes.selftest_of(&record).await.unwrap();
    assert!(tested.open.iter().any(|line| line.contains("default route")), "{tested:?}");
    assert!(tested.missing.iter().any(|line| line.contains("does not answer")), "{tested:?}");
    let pretends = Record { egress: EgressMode::Locked, ..record.clone() };
    let error = expect_err(install.boxes.release(&pretends, go(Some(Egress::default()))).await);
    assert!(matches!(error, Error::EgressUnsafe(_)), "{error}");
    let (install, record) = (&install, &record);
    eventually("it is stopped", || async move {
        install.boxes.state_of(record).await.unwrap() == BoxState::Stopped
    })
    .await;
}

const MARKS: &str = "echo kept > /workspace/kept && echo home > ~/home && ln -s kept /workspace/link && \
    chmod 751 /workspace/kept && rm /workspace/README && sudo sh -c 'echo system > /opt/system; \
    chown 1234 /opt/system' && git -C /workspace rev-parse HEAD";
const LOOK: &str = "cat /workspace/kept ~/home /opt/system && readlink /workspace/link && \
    stat -c '%a %U %Y' /workspace/kept && stat -c %u /opt/system && ls /workspace && \
    git -C /workspace rev-parse HEAD && git -C /workspace status --porcelain";

#[tokio::test]
async fn a_box_changes_sides_and_back_with_all_its_files() {
    let (repo, install, ca) = (Repo::new(), Install::new().await, authority());
    let open = install.create(repo.path()).await;
    install.output(&open, &["sh", "-c", MARKS]).await;
    let before = install.output(&open, &["sh", "-c", LOOK]).await;
    let watcher = progress::silent();
    let running = install.boxes.remake(&open, EgressMode::Locked, None, &watcher).await;
    assert!(matches!(expect_err(running), Error::NotStopped));

    install.boxes.stop(&open).await.unwrap();
    let ctl = support::ctl();
    let made = install.boxes.remake(&open, EgressMode::Locked, Some(&ctl), &watcher).await.unwrap();
    let shut = made.record;
    assert_ne!(shut.container, open.container);
    assert_eq!((shut.egress, &shut.network), (EgressMode::Locked, &None));
    // The other one is there until this one counts.
    assert_eq!(install.boxes.state_of(&open).await.unwrap(), BoxState::Stopped);
    install.boxes.tidy(&shut).await.unwrap();
    assert!(matches!(expect_err(install.boxes.state_of(&open).await), Error::NoContainer));
    let egress = Egress { certificates: vec![ca.clone()] };
    install.boxes.start(&shut, go(Some(egress))).await.unwrap();
    assert_eq!(install.output(&shut, &["sh", "-c", LOOK]).await, before);
    let seen = inspect(&install, &shut.container).await;
    assert_eq!(seen.name.unwrap(), format!("/agentbox-{}", shut.name));
    assert_eq!(seen.host_config.unwrap().network_mode.as_deref(), Some("none"));
    let env = install.output(&shut, &["env"]).await;
    assert!(env.contains("\nhttps_proxy=http://127.0.0.1:3128\n"), "{env}");
    let name = format!("agentbox-{}", shut.name);
    let networks = docker(install.boxes.engine()).list_networks(None).await.unwrap();
    assert!(!networks.iter().any(|network| network.name.as_deref() == Some(&name)));
    install.output(&shut, &["sh", "-c", "echo more > ~/more"]).await;

    install.boxes.stop(&shut).await.unwrap();
    let made = install.boxes.remake(&shut, EgressMode::Open, None, &watcher).await.unwrap();
    let again = made.record;
    install.boxes.tidy(&again).await.unwrap();
    install.boxes.start(&again, go(None)).await.unwrap();
    assert_eq!(install.output(&again, &["sh", "-c", LOOK]).await, before);
    assert_eq!(install.output(&again, &["sh", "-c", "cat ~/more"]).await, "more\n");
    assert!(install.boxes.endpoints(&again).await.unwrap().web.is_some());
    // Nothing of the other side is left.
    let env = install.output(&again, &["env"]).await;
    assert!(!env.contains("3128") && env.contains("\nGIT_TERMINAL_PROMPT=1\n"), "{env}");
    let trusted = install.output(&again, &["cat", "/etc/ssl/certs/ca-certificates.crt"]).await;
    assert!(!trusted.contains(&ca));
    let left = "ls /etc/agentbox/ca.crt /etc/agentbox/cacerts.p12 /etc/apt/apt.conf.d/99agentbox \
        /etc/sudoers.d/agentbox-egress /etc/agentbox/egress.md 2>/dev/null | wc -l";
    assert_eq!(install.output(&again, &["sh", "-c", left]).await.trim(), "0");
    let url = ["/usr/bin/git", "ls-remote", "--get-url", "git@github.com:a/b.git"];
    assert_eq!(install.output(&again, &url).await.trim(), "git@github.com:a/b.git");

    // And when it goes, all of it goes.
    let removal = install.boxes.destroy(&again).await.unwrap();
    assert!(removal.failed.is_empty(), "{removal:?}");
    let images = install.boxes.everything().await.unwrap();
    assert!(images.iter().all(|left| left.of.as_ref() != Some(&again.id)), "{images:?}");
}

#[tokio::test]
async fn a_fault_on_the_way_leaves_the_box_as_it_was() {
    let (repo, install) = (Repo::new(), Install::new().await);
    let open = install.create(repo.path()).await;
    install.output(&open, &["sh", "-c", MARKS]).await;
    let before = install.output(&open, &["sh", "-c", LOOK]).await;
    install.boxes.stop(&open).await.unwrap();
    let watcher = progress::silent();
    // The last step fails: everything else is made by then.
    let nothing = std::path::Path::new("/nonexistent/agentbox-ctl");
    let failed = install.boxes.remake(&open, EgressMode::Locked, Some(nothing), &watcher).await;
    assert!(matches!(expect_err(failed), Error::Io { .. }));
    let of_box = || async {
        let all = install.boxes.everything().await.unwrap();
        all.into_iter().filter(|left| left.of.as_ref() == Some(&open.id)).count()
    };
    // The container and its network.
    assert_eq!(of_box().await, 2);
    // A host that was killed half-way is no different: what is not in the record goes.
    install.boxes.remake(&open, EgressMode::Locked, None, &watcher).await.unwrap();
    assert_eq!(of_box().await, 4);
    install.boxes.tidy(&open).await.unwrap();
    assert_eq!(of_box().await, 2);
    install.boxes.start(&open, go(None)).await.unwrap();
    assert_eq!(install.output(&open, &["sh", "-c", LOOK]).await, before);
}

#[tokio::test]
async fn a_checkpoint_of_a_box_that_changed_sides_holds_no_login() {
    let (repo, install) = (Repo::new(), Install::new().await);
    let open = install.create(repo.path()).await;
    let canary = "canary-7f3a9c-login";
    let login = format!("mkdir -p ~/.claude && echo {canary} > ~/.claude/.credentials.json");
    install.output(&open, &["sh", "-c", &login]).await;
    install.boxes.stop(&open).await.unwrap();
    let watcher = progress::silent();
    let shut =
        install.boxes.remake(&open, EgressMode::Locked, None, &watcher).await.unwrap().record;
    install.boxes.tidy(&shut).await.unwrap();
    install.boxes.start(&shut, go(Some(Egress::default()))).await.unwrap();
    let image = boxes::checkpoint_image(&shut, "kept");
    let capture = boxes::Capture { name: "kept", image: &image, flatten: false, keeps_env: true };
    install.boxes.capture(&shut, capture, &watcher).await.unwrap();
    install.boxes.finish_capture(&shut, capture, &watcher).await.unwrap();
    let docker = docker(install.boxes.engine());
    let mut layers = docker.export_image(&image);
    let mut bytes = Vec::new();
    while let Some(chunk) = layers.next().await {
        bytes.extend(chunk.unwrap());
    }
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("agentbox-ctl") && !has(canary));
    // The box has its login all the while.
    let kept = install.output(&shut, &["sh", "-c", "cat ~/.claude/.credentials.json"]).await;
    assert_eq!(kept.trim(), canary);
    // A box with a network that is made from it goes out by itself.
    let mut spec = install.spec(repo.path(), &image);
    spec.channel = None;
    let from = install.boxes.create(spec, watcher).await.unwrap();
    let env = install.output(&from, &["env"]).await;
    assert!(!env.contains("3128"), "{env}");
    assert_eq!(from.features, Features::default());
    assert!(install.boxes.remove_checkpoint(&image).await.is_err(), "a box is made from it");
    install.boxes.destroy(&from).await.unwrap();
    assert!(install.boxes.remove_checkpoint(&image).await.unwrap());
}
