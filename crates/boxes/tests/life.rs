//! The life of a box on a real engine, from create to destroy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_boxes::engine::Address;
use agentbox_boxes::{Boxes, Change, Chunk, Engine, EngineEvent, Error, ExecSpec, Size, progress};
use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use protocol::boxes::{BoxState, Progress};
use protocol::ctl::{CloneIn, KnownTags, RefAt, Unbundle};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Install, Repo, TOKEN, docker, eventually, expect_err, git};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn inspect(install: &Install, container: &str) -> ContainerInspectResponse {
    let docker = docker(install.boxes.engine());
    docker.inspect_container(container, None::<InspectContainerOptions>).await.unwrap()
}

fn pins(repo: &Repo) -> String {
    repo.git(&["for-each-ref", "refs/agentbox"])
}

#[tokio::test]
async fn boxes_16_03_status_in_the_box_equals_the_hosts() {
    let repo = Repo::new();
    repo.write("staged", "old");
    repo.write("gone", "old");
    repo.write("run.sh", "#!/bin/sh\n");
    repo.git(&["add", "."]);
    repo.git(&["commit", "-q", "-m", "second"]);
    repo.write("staged", "new");
    repo.write("added", "new");
    repo.git(&["add", "staged", "added"]);
    repo.write("staged", "newer");
    std::fs::remove_file(repo.path().join("gone")).unwrap();
    let script = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(repo.path().join("run.sh"), script).unwrap();
    repo.write("later", "intended");
    repo.git(&["add", "-N", "later"]);
    repo.write("new dir/file", "untracked");
    repo.write(".gitignore", "secret\n");
    repo.write("secret", "ignored");
    let odd = OsString::from_vec(b"odd\xff".to_vec());
    std::fs::write(repo.path().join(odd), "bytes").unwrap();
    std::os::unix::fs::symlink("README", repo.path().join("link")).unwrap();
    let status = repo.git(&["status", "--porcelain"]);

    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let inside = install.output(&record, &["git", "status", "--porcelain"]).await;
    assert_eq!(inside.trim_end(), status);
    assert_eq!(repo.git(&["status", "--porcelain"]), status);
    assert_eq!(repo.git(&["stash", "list"]), "");
    assert_eq!(install.output(&record, &["cat", "staged", "new dir/file"]).await, "neweruntracked");
    assert_ne!(install.run(&record, &["test", "-e", "secret"]).await.0, 0);
    assert_eq!(
        install.output(&record, &["git", "branch", "--show-current"]).await.trim(),
        record.branch.clone().unwrap()
    );
    assert_eq!(record.branch, Some(format!("agentbox/{}", record.name)));
    assert_eq!(
        install.output(&record, &["git", "rev-parse", "HEAD"]).await.trim(),
        record.base.clone().unwrap()
    );
    assert_eq!(install.output(&record, &["stat", "-c", "%U", "new dir"]).await.trim(), "vscode");
}

#[tokio::test]
async fn boxes_16_07_a_linked_worktree_becomes_a_whole_repository() {
    let repo = Repo::new();
    let beside = tempfile::tempdir().unwrap();
    let linked = beside.path().join("linked");
    repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    std::fs::create_dir(linked.join("sub")).unwrap();
    let install = Install::new().await;
    let record = install.create(&linked.join("sub")).await;
    assert_eq!(
        install.output(&record, &["git", "rev-parse", "--show-toplevel"]).await.trim(),
        "/workspace"
    );
    assert!(install.output(&record, &["git", "log", "--oneline"]).await.contains("first"));
    assert_eq!(record.workspace, linked.canonicalize().unwrap());
}

#[tokio::test]
async fn boxes_16_09_commits_come_back_and_the_host_may_collect_garbage() {
    let repo = Repo::new();
    repo.write("work", "uncommitted");
    repo.git(&["add", "work"]);
    let install = Install::new().await;
    let (one, two) = (install.create(repo.path()).await, install.create(repo.path()).await);

    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["worktree", "prune"]);
    repo.git(&["gc", "-q", "--prune=now"]);

    // What the host does with a bundle: fetch it into a clean repository that reads its objects.
    let transfer = tempfile::tempdir().unwrap();
    git(transfer.path(), &["init", "-q", "--bare"]);
    let alternates = transfer.path().join("objects/info/alternates");
    std::fs::write(alternates, format!("{}/.git/objects\n", repo.path().display())).unwrap();
    for record in [&one, &two] {
        install.output(record, &["git", "fsck", "--connectivity-only"]).await;
        install.output(record, &["git", "commit", "-q", "-m", "from the box"]).await;
        let head = install.output(record, &["git", "rev-parse", "HEAD"]).await.trim().to_owned();
        let (branch, base) = (record.branch.clone().unwrap(), record.base.clone().unwrap());
        let file = transfer.path().join("bundle");
        let oid = install
            .boxes
            .export_bundle(record, "/workspace", &branch, &[base], &file, 1 << 20)
            .await;
        assert_eq!(oid.unwrap(), Some(head.clone()));
        let spec = format!("+refs/heads/{branch}:refs/heads/{branch}");
        git(transfer.path(), &["fetch", "-q", "bundle", &spec]);
        assert_eq!(git(transfer.path(), &["show", &format!("{head}:work")]), "uncommitted");

        // Nothing new: the commit is told, the file is empty.
        let again = install
            .boxes
            .export_bundle(record, "/workspace", &branch, std::slice::from_ref(&head), &file, 0)
            .await;
        assert_eq!(again.unwrap(), Some(head));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
        let none =
            install.boxes.export_bundle(record, "/workspace", "agentbox/none", &[], &file, 0).await;
        assert_eq!(none.unwrap(), None);
        let tiny = install.boxes.export_bundle(record, "/workspace", &branch, &[], &file, 10).await;
        assert!(matches!(tiny, Err(Error::TooLarge { limit: 10 })));
    }
}

#[tokio::test]
async fn objects_and_refs_reach_the_box() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let base = record.base.clone().unwrap();
    repo.write("new", "from upstream");
    repo.git(&["add", "new"]);
    repo.git(&["commit", "-q", "-m", "upstream"]);
    let tip = repo.git(&["rev-parse", "HEAD"]);
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("b");
    repo.git(&["bundle", "create", "-q", bundle.to_str().unwrap(), "main", &format!("^{base}")]);
    let plan = Unbundle {
        refs: vec![RefAt { name: "refs/remotes/origin/main".into(), oid: tip.clone() }],
        prune: Some("refs/remotes/origin/".into()),
        bundle: true,
        ..Unbundle::default()
    };
    install.boxes.import_bundle(&record, &plan, Some(&bundle)).await.unwrap();
    assert_eq!(install.output(&record, &["git", "show", "origin/main:new"]).await, "from upstream");

    let bad = Unbundle {
        refs: vec![RefAt { name: "refs/heads/x".into(), oid: tip }],
        ..Unbundle::default()
    };
    let error = expect_err(install.boxes.import_bundle(&record, &bad, None).await);
    assert!(matches!(&error, Error::InBox { command, .. } if command == "unbundle"), "{error}");
}

#[tokio::test]
async fn tags_leave_the_box_and_a_clone_arrives_in_it() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let base = record.base.clone().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    install.output(&record, &["git", "tag", "-a", "-m", "first", "v1"]).await;
    install.output(&record, &["git", "tag", "known"]).await;
    let known = RefAt { name: "refs/tags/known".into(), oid: base.clone() };
    let known = KnownTags { tags: vec![known] };
    let haves = [base.clone()];
    let head = install
        .boxes
        .export_tags(&record, "/workspace", &known, &haves, &file, 1 << 20)
        .await
        .unwrap();
    assert_eq!((head.tags.len(), head.tags[0].name.as_str()), (1, "refs/tags/v1"));
    repo.git(&["fetch", "-q", file.to_str().unwrap(), "refs/tags/v1:refs/tags/v1"]);
    assert_eq!(repo.git(&["rev-parse", "v1^{commit}"]), base);

    repo.git(&["bundle", "create", "-q", file.to_str().unwrap(), "main"]);
    let clone = CloneIn {
        dir: "/workspace/vendor/lib".into(),
        url: "https://git.example.org/acme/lib.git".into(),
        object_format: "sha1".into(),
        refs: vec![RefAt { name: "refs/heads/main".into(), oid: base.clone() }],
        branch: Some("main".into()),
        at: Some(base),
        ..CloneIn::default()
    };
    install.boxes.clone_in(&record, &clone, Some(&file)).await.unwrap();
    let inside = |args: &[&str]| {
        let argv: Vec<String> = ["git", "-C", "/workspace/vendor/lib"]
            .iter()
            .chain(args)
            .map(ToString::to_string)
            .collect();
        let (install, record) = (&install, &record);
        async move {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            install.output(record, &argv).await
        }
    };
    assert_eq!(inside(&["status", "-sb"]).await.trim(), "## main...origin/main");
    let owner = install.output(&record, &["stat", "-c", "%U", "/workspace/vendor/lib/.git"]).await;
    assert_eq!(owner.trim(), "vscode");
    let again = expect_err(install.boxes.clone_in(&record, &clone, Some(&file)).await);
    assert!(again.to_string().contains("is there already"), "{again}");
}

#[tokio::test]
async fn boxes_16_17_and_18_the_container_holds_no_secret_and_no_power() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let seen = inspect(&install, &record.container).await;
    let config = seen.config.clone().unwrap();
    let env = config.env.unwrap();
    for entry in &env {
        let name = entry.split('=').next().unwrap();
        let secret =
            ["_TOKEN", "_PASSWORD", "_API_KEY", "_SECRET"].iter().any(|end| name.ends_with(end));
        assert!(!secret, "{name} is in the environment");
    }
    assert!(!serde_json::to_string(&seen).unwrap().contains(TOKEN));
    let labels = config.labels.unwrap();
    assert_eq!(labels["agentbox.box"], record.id.as_str());
    assert_eq!(labels["agentbox.name"], record.name.as_str());
    assert!(labels["agentbox.owner"].starts_with("test-"));
    assert_eq!(labels["agentbox.project"].len(), 16);
    assert_eq!(
        (labels["agentbox.role"].as_str(), labels["agentbox.schema"].as_str()),
        ("box", "1")
    );

    let host = seen.host_config.unwrap();
    assert!(host.cap_add.unwrap_or_default().is_empty());
    assert!(host.security_opt.unwrap_or_default().is_empty());
    assert!(host.devices.unwrap_or_default().is_empty());
    assert_eq!(host.privileged, Some(false));
    assert_eq!(host.network_mode, record.network);
    assert!(host.binds.unwrap_or_default().is_empty());

    // The token is there for the box user, on tmpfs, and the host's folders cannot be written.
    assert_eq!(install.output(&record, &["cat", "/run/agentbox/token"]).await.trim(), TOKEN);
    for path in ["/run/agentbox/host/x", "/agentbox/objects/0/objects/x"] {
        let (code, _, error) = install.run_as(&record, Some("0"), &["touch", path]).await;
        assert!(code != 0 && error.contains("Read-only"), "{path}: {error}");
    }
    assert_eq!(install.output(&record, &["sudo", "-n", "id", "-u"]).await.trim(), "0");
}

#[tokio::test]
async fn the_box_reaches_the_hosts_socket() {
    let repo = Repo::new();
    let install = Install::new().await;
    let path = install.run.path().join("relay.sock");
    let record = install.create(repo.path()).await;
    // Made after the box: the folder is mounted, not the socket.
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (uid, gid) = agentbox_boxes::box_ids();
    std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
    // In a loop: the box's ref watcher calls as well.
    let serve = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
            });
        }
    });
    let argv = ["curl", "-sS", "--unix-socket", "/run/agentbox/host/relay.sock", "http://host/"];
    assert_eq!(install.output(&record, &argv).await, "hi");
    serve.abort();
}

#[tokio::test]
async fn boxes_16_20_stop_is_quick_and_start_keeps_the_workspace() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let state = || async { install.boxes.states().await.unwrap().remove(&record.id) };
    assert_eq!(state().await, Some(BoxState::Running));
    install.output(&record, &["sh", "-c", "echo kept > file"]).await;

    let started = Instant::now();
    install.boxes.stop(&record).await.unwrap();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "stop took {took:?}");
    assert_eq!(state().await, Some(BoxState::Stopped));
    install.boxes.stop(&record).await.unwrap();

    let other = TOKEN.replace('0', "f");
    install.boxes.start(&record, &other).await.unwrap();
    assert_eq!(install.output(&record, &["cat", "file"]).await, "kept\n");
    assert_eq!(install.output(&record, &["cat", "/run/agentbox/token"]).await.trim(), other);

    docker(install.boxes.engine()).pause_container(&record.container).await.unwrap();
    assert_eq!(state().await, Some(BoxState::Paused));
    install.boxes.start(&record, TOKEN).await.unwrap();
    install.boxes.start(&record, TOKEN).await.unwrap();
    assert_eq!(state().await, Some(BoxState::Running));

    let removal = install.boxes.destroy(&record).await.unwrap();
    let name = format!("agentbox-{}", record.name);
    let expected = [
        format!("container {name}"),
        format!("network {name}"),
        format!("refs/agentbox/{}", record.id),
    ];
    assert_eq!((removal.removed, removal.failed), (expected.to_vec(), vec![]));
    assert_eq!(state().await, None);
    assert_eq!(pins(&repo), "");
    install.boxes.stop(&record).await.unwrap();
    assert!(matches!(install.boxes.start(&record, TOKEN).await, Err(Error::NoContainer)));
}

#[tokio::test]
async fn a_box_whose_repository_is_gone_is_not_started() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    install.boxes.stop(&record).await.unwrap();
    drop(repo);
    assert!(matches!(install.boxes.start(&record, TOKEN).await, Err(Error::RepositoryGone(_))));
    assert_eq!(install.boxes.states().await.unwrap()[&record.id], BoxState::Stopped);
}

#[tokio::test]
async fn boxes_16_25_a_strangers_container_is_never_touched() {
    let repo = Repo::new();
    let install = Install::new().await;
    let image = install.image().await;
    let spec = install.spec(repo.path(), &image);
    let name = format!("agentbox-{}", spec.name);
    let docker = docker(install.boxes.engine());
    let labels = [("agentbox.box", spec.id.as_str()), ("agentbox.owner", "somebody-else")];
    let body = ContainerCreateBody {
        image: Some(image),
        labels: Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::default().name(&name).build();
    docker.create_container(Some(options), body).await.unwrap();

    let id = spec.id.clone();
    let error = expect_err(install.boxes.create(spec, progress::silent()).await);
    assert!(matches!(&error, Error::NameTaken(taken) if *taken == name), "{error}");
    assert_eq!(pins(&repo), "");
    assert!(install.boxes.states().await.unwrap().is_empty());
    let removal = install.boxes.sweep(&id).await.unwrap();
    assert_eq!(
        (removal.removed.len(), removal.failed.len()),
        (0, 0),
        "the network was left behind"
    );
    assert!(docker.inspect_container(&name, None::<InspectContainerOptions>).await.is_ok());
    let force = RemoveContainerOptionsBuilder::default().force(true).build();
    docker.remove_container(&name, Some(force)).await.unwrap();
}

#[tokio::test]
async fn a_failing_create_leaves_nothing_behind() {
    let repo = Repo::new();
    let install = Install::new().await;
    // Not there, and there but without agentbox-ctl.
    for image in ["agentbox-test/none:none", "debian:bookworm-slim"] {
        let spec = install.spec(repo.path(), image);
        let id = spec.id.clone();
        let error = expect_err(install.boxes.create(spec, progress::silent()).await);
        assert!(matches!(error, Error::NoImage(_) | Error::Engine { .. }), "{error}");
        let left = install.boxes.sweep(&id).await.unwrap();
        assert_eq!((left.removed.len(), left.failed.len()), (0, 0), "{left:?}");
        assert_eq!(pins(&repo), "");
    }
}

#[tokio::test]
async fn a_create_nobody_waits_for_is_undone() {
    let repo = Repo::new();
    let huge = std::fs::File::create(repo.path().join("huge")).unwrap();
    huge.set_len(20 << 30).unwrap();
    let install = Install::new().await;
    let spec = install.spec(repo.path(), &install.image().await);
    let id = spec.id.clone();
    let copying = Arc::new(tokio::sync::Notify::new());
    let watcher = {
        let copying = copying.clone();
        Arc::new(move |progress: Progress| {
            if progress.step == "Copy the project" && progress.detail.is_some() {
                copying.notify_one();
            }
        })
    };
    tokio::select! {
        made = install.boxes.create(spec, watcher) => panic!("{made:?}"),
        () = copying.notified() => {}
    }
    eventually("the container is removed", || async {
        install.boxes.states().await.unwrap().is_empty()
    })
    .await;
    eventually("the pins are removed", || async { pins(&repo).is_empty() }).await;
    eventually("the network is removed", || async {
        install.boxes.sweep(&id).await.unwrap().removed.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_plain_folder_is_copied_without_what_tools_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("src/node_modules")).unwrap();
    std::fs::write(folder.path().join("src/a"), "text").unwrap();
    std::fs::write(folder.path().join("src/node_modules/b"), "made").unwrap();
    let install = Install::new().await;
    let record = install.create(folder.path()).await;
    assert_eq!((&record.branch, &record.repo), (&None, &None));
    assert_eq!(install.output(&record, &["find", ".", "-type", "f"]).await, "./src/a\n");
    install.boxes.destroy(&record).await.unwrap();
}

#[tokio::test]
async fn a_repository_without_commits_and_one_with_alternates_work() {
    let empty = tempfile::tempdir().unwrap();
    git(empty.path(), &["init", "-q", "-b", "main"]);
    std::fs::write(empty.path().join("new"), "x").unwrap();
    let install = Install::new().await;
    let record = install.create(empty.path()).await;
    assert_eq!(record.base, None);
    assert_eq!(install.output(&record, &["git", "status", "--porcelain"]).await, "?? new\n");

    let repo = Repo::new();
    let beside = tempfile::tempdir().unwrap();
    let clone = beside.path().join("clone");
    repo.git(&["clone", "-q", "--shared", ".", clone.to_str().unwrap()]);
    let record = install.create(&clone).await;
    let (code, out, error) = install.run(&record, &["git", "show", "HEAD:README"]).await;
    assert_eq!((code, out.as_str(), error.as_str()), (0, "hello\n", ""));
}

#[tokio::test]
async fn large_untracked_files_stream_in_little_memory() {
    let repo = Repo::new();
    let size = 300_u64 << 20;
    std::fs::File::create(repo.path().join("large")).unwrap().set_len(size).unwrap();
    repo.write("small", "end");
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    assert_eq!(
        install.output(&record, &["stat", "-c", "%s", "large"]).await.trim(),
        size.to_string()
    );
    assert_eq!(install.output(&record, &["cat", "small"]).await, "end");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100_000, "{peak} kB at the peak");
}

#[tokio::test]
async fn certificates_that_the_image_lacks_are_put_in() {
    let repo = Repo::new();
    let install = Install::new().await;
    let mut spec = install.spec(repo.path(), &install.image().await);
    let key = install.run.path().join("key");
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=AgentBox test authority", "-keyout"])
        .arg(&key)
        .output()
        .unwrap();
    assert!(made.status.success());
    spec.certificates.push(("extra.crt".to_owned(), made.stdout.clone()));
    let record = install.boxes.create(spec, progress::silent()).await.unwrap();
    let bundle = install.output(&record, &["cat", "/etc/ssl/certs/ca-certificates.crt"]).await;
    let body = String::from_utf8(made.stdout).unwrap();
    let body = body.lines().nth(1).unwrap();
    assert!(bundle.contains(body), "the certificate is not in the bundle");
}

#[tokio::test]
async fn commands_get_input_terminal_and_exit_code() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    assert_eq!(
        install.run(&record, &["sh", "-c", "echo o; echo e >&2; exit 7"]).await,
        (7, "o\n".into(), "e\n".into())
    );

    let argv = ["sh", "-c", "pwd; id -un; echo $X; cat"].map(str::to_owned).to_vec();
    let spec =
        ExecSpec { argv, cwd: Some("/tmp".into()), env: vec!["X=y".into()], ..ExecSpec::default() };
    let mut exec = install.boxes.exec(&record, spec).await.unwrap();
    exec.input.write_all(b"typed").await.unwrap();
    exec.input.shutdown().await.unwrap();
    assert_eq!(collect(&mut exec).await, b"/tmp\nvscode\ny\ntyped");
    assert_eq!(exec.control.exit_code().await.unwrap(), 0);

    // A terminal has the size it was given, can be resized, and its bytes are taken literally.
    let script = "stty -opost; until [ \"$(stty size)\" = '33 101' ]; do sleep 0.02; done; \
                  printf '\\001\\000\\000\\000\\377\\377\\377\\377'; \
                  until [ \"$(stty size)\" = '40 120' ]; do sleep 0.02; done; printf end";
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let size = Some(Size { cols: 101, rows: 33 });
    let mut exec = install
        .boxes
        .exec(&record, ExecSpec { argv, tty: true, size, ..ExecSpec::default() })
        .await
        .unwrap();
    let header = b"\x01\0\0\0\xff\xff\xff\xff".to_vec();
    let mut first = Vec::new();
    while first.len() < header.len() {
        match exec.output.next().await.unwrap() {
            Some(Chunk::Stdout(bytes)) => first.extend(bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(first, header);
    exec.control.resize(Size { cols: 120, rows: 40 }).await.unwrap();
    assert_eq!(collect(&mut exec).await, b"end");

    let argv = vec!["/no/such/program".to_owned()];
    let mut exec =
        install.boxes.exec(&record, ExecSpec { argv, ..ExecSpec::default() }).await.unwrap();
    collect(&mut exec).await;
    assert!(matches!(exec.control.exit_code().await.unwrap(), 126 | 127));

    install.boxes.stop(&record).await.unwrap();
    let stopped = install
        .boxes
        .exec(&record, ExecSpec { argv: vec!["true".into()], ..ExecSpec::default() })
        .await;
    assert!(matches!(stopped, Err(Error::NotRunning)));
}

async fn collect(exec: &mut agentbox_boxes::Exec) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(Chunk::Stdout(bytes) | Chunk::Stderr(bytes)) = exec.output.next().await.unwrap()
    {
        all.extend(bytes);
    }
    all
}

#[tokio::test]
async fn events_tell_what_happens_to_our_boxes_only() {
    let (repo, other) = (Repo::new(), Repo::new());
    let install = Install::new().await;
    let stranger = Install::new().await;
    let record = install.create(repo.path()).await;
    let foreign = stranger.create(other.path()).await;
    let mut events = install.boxes.events();
    assert_eq!(next(&mut events).await, EngineEvent::Connected);
    stranger.boxes.stop(&foreign).await.unwrap();
    install.boxes.stop(&record).await.unwrap();
    until(&mut events, &record.id, Change::Died { code: Some(0) }).await;
    install.boxes.start(&record, TOKEN).await.unwrap();
    until(&mut events, &record.id, Change::Started).await;
    install.boxes.destroy(&record).await.unwrap();
    until(&mut events, &record.id, Change::Destroyed).await;
}

async fn next(events: &mut (impl futures_util::Stream<Item = EngineEvent> + Unpin)) -> EngineEvent {
    tokio::time::timeout(Duration::from_secs(30), events.next()).await.unwrap().unwrap()
}

async fn until(
    events: &mut (impl futures_util::Stream<Item = EngineEvent> + Unpin),
    id: &protocol::BoxId,
    wanted: Change,
) {
    loop {
        match next(events).await {
            EngineEvent::Changed(of, _, change, _) => {
                assert_eq!(of, *id, "an event of somebody else's box");
                if change == wanted {
                    return;
                }
            }
            // Other tests have boxes with networks.
            EngineEvent::Attached(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Passes connections on to the engine until it is aborted, and then drops them all.
fn stand_in(socket: &std::path::Path, engine: std::path::PathBuf) -> tokio::task::JoinHandle<()> {
    let _ = std::fs::remove_file(socket);
    let listener = tokio::net::UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let engine = engine.clone();
            connections.spawn(async move {
                let mut server = tokio::net::UnixStream::connect(engine).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    })
}

#[tokio::test]
async fn an_engine_that_comes_back_is_announced() {
    let Address::Unix(real) = support::engine().await.profile().address.clone() else {
        panic!("this test stands between us and the engine's socket");
    };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("engine.sock");
    let first = stand_in(&socket, real.clone());
    let engine = Engine::connect(Some(socket.to_str().unwrap())).await.unwrap();
    let boxes = Boxes::new(engine, "test-nobody");
    let mut events = boxes.events();
    assert_eq!(next(&mut events).await, EngineEvent::Connected);
    first.abort();
    assert!(matches!(next(&mut events).await, EngineEvent::Lost(_)));
    assert!(boxes.states().await.unwrap_err().is_unreachable());
    let second = stand_in(&socket, real);
    loop {
        match next(&mut events).await {
            EngineEvent::Connected => break,
            EngineEvent::Lost(_) | EngineEvent::Attached(_) => {}
            EngineEvent::Changed(id, ..) => panic!("nobody has a box {id}"),
        }
    }
    assert!(boxes.states().await.unwrap().is_empty());
    second.abort();
}
