//! Files and captured states of boxes, on a real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use agentbox_boxes::{Capture, Error, progress};
use futures_util::StreamExt;
use protocol::ctl::Pack;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use support::{Install, Repo, TOKEN, docker, expect_err};

fn entries(mut file: File) -> BTreeMap<String, String> {
    file.rewind().unwrap();
    let mut archive = tar::Archive::new(file);
    let read = |mut entry: tar::Entry<'_, File>| {
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        let name = entry.path().unwrap().display().to_string();
        (name.trim_end_matches('/').to_owned(), text)
    };
    archive.entries().unwrap().map(|entry| read(entry.unwrap())).collect()
}

fn plain<'a>(name: &'a str, image: &'a str) -> Capture<'a> {
    Capture { name, image, flatten: false, keeps_env: false }
}

fn files(sources: &[&str]) -> Pack {
    let sources = sources.iter().map(ToString::to_string).collect();
    Pack::Files { sources, exclude: vec!["target".into()] }
}

#[tokio::test]
async fn files_leave_a_box_and_enter_it() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let script = "mkdir -p src/target 'src/new dir' && echo one > 'src/new dir/a' \
                  && echo no > src/target/x && ln -s 'new dir/a' src/l && sudo chmod 600 README";
    install.output(&record, &["sh", "-c", script]).await;
    let file = tempfile::tempfile().unwrap();
    let what = files(&["/workspace/src", "/workspace/README"]);
    install.boxes.pack(&record, &what, file.try_clone().unwrap(), 1 << 20).await.unwrap();
    let found = entries(file.try_clone().unwrap());
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["README", "src", "src/l", "src/new dir", "src/new dir/a"]);
    assert_eq!((found["src/new dir/a"].as_str(), found["README"].as_str()), ("one\n", "hello\n"));

    // And back in, elsewhere, as the box user.
    let stream = || {
        let mut again = file.try_clone().unwrap();
        again.rewind().unwrap();
        again
    };
    install.boxes.unpack(&record, stream(), "/workspace/copy/").await.unwrap();
    let said = install.output(&record, &["cat", "copy/src/l", "copy/README"]).await;
    assert_eq!(said, "one\nhello\n");
    let owner = install.output(&record, &["stat", "-c", "%U", "copy", "copy/src/new dir/a"]).await;
    assert_eq!(owner, "vscode\nvscode\n");
    // Two sources do not fit one name.
    let error = expect_err(install.boxes.unpack(&record, stream(), "/workspace/name").await);
    assert!(matches!(&error, Error::InBox { command, .. } if command == "unpack-into"), "{error}");

    let missing = install.boxes.pack(&record, &files(&["/no/such"]), stream(), 1 << 20).await;
    assert!(expect_err(missing).to_string().contains("/no/such"));
    let secret = files(&["/etc/shadow"]);
    let unreadable = install.boxes.pack(&record, &secret, stream(), 1 << 20).await;
    assert!(matches!(expect_err(unreadable), Error::InBox { .. }), "packing is the box user's");
    let tiny = install.boxes.pack(&record, &what, stream(), 100).await;
    assert!(matches!(tiny, Err(Error::TooLarge { limit: 100 })));
}

#[tokio::test]
async fn the_workspace_leaves_without_what_git_ignores() {
    let repo = Repo::new();
    repo.write(".gitignore", "ignored\n");
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    install.output(&record, &["sh", "-c", "echo x > ignored; echo y > fresh"]).await;
    let file = tempfile::tempfile().unwrap();
    let what = Pack::Workspace { exclude: vec![], respects_git: true };
    install.boxes.pack(&record, &what, file.try_clone().unwrap(), 1 << 20).await.unwrap();
    let names: Vec<String> = entries(file).into_keys().collect();
    assert_eq!(names, [".gitignore", "README", "fresh"]);
}

/// Every byte of an image: its configuration and all its layers.
async fn saved(install: &Install, image: &str) -> Vec<u8> {
    let docker = docker(install.boxes.engine());
    let mut stream = docker.export_image(image);
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.unwrap());
    }
    bytes
}

fn holds(bytes: &[u8], text: &str) -> bool {
    let finder = text.as_bytes();
    bytes.windows(finder.len()).any(|window| window == finder)
}

/// An image that is gone after the test, however it ends.
struct Captured<'a>(&'a Install, String);

impl Drop for Captured<'_> {
    fn drop(&mut self) {
        let (boxes, image) = (self.0.boxes.clone(), self.1.clone());
        let remove = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let _ = runtime.block_on(boxes.remove_checkpoint(&image));
        };
        let _ = std::thread::spawn(remove).join();
    }
}

#[tokio::test]
async fn relay_a39_a_checkpoint_is_ours_and_holds_no_token() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    install
        .output(&record, &["sh", "-c", "echo canary-in-the-workspace > kept; echo K=canary-in-env > .env; sudo touch /etc/kept"])
        .await;
    let captured = agentbox_boxes::checkpoint_image(&record, "first.try");
    let capture = plain("first.try", &captured);
    install.boxes.capture(&record, capture, &progress::silent()).await.unwrap();
    let captured = Captured(&install, captured);
    let image = captured.1.as_str();
    assert!(image.starts_with("agentbox/checkpoint:"), "{image}");
    assert!(image.contains("-first.try-"), "{image}");
    // The box goes on as if nothing had been.
    assert_eq!(install.output(&record, &["cat", "kept"]).await, "canary-in-the-workspace\n");
    assert_eq!(install.output(&record, &["cat", ".env"]).await, "K=canary-in-env\n");

    let seen = docker(install.boxes.engine()).inspect_image(image).await.unwrap();
    let config = seen.config.unwrap();
    let labels = config.labels.unwrap();
    assert_eq!(labels["agentbox.role"], "checkpoint");
    assert_eq!(labels["agentbox.checkpoint"], "first.try");
    assert_eq!(labels["agentbox.box"], record.id.as_str());
    assert_eq!(labels["agentbox.project"].len(), 16);
    assert!(labels["agentbox.owner"].starts_with("test-"));
    let env = config.env.unwrap();
    assert!(!env.iter().any(|e| e.contains(record.id.as_str())), "{env:?}");

    let bytes = saved(&install, image).await;
    assert!(holds(&bytes, "canary-in-the-workspace"), "the scan does not see layers");
    assert!(!holds(&bytes, TOKEN), "the token is in the image");
    assert!(!holds(&bytes, "canary-in-env"), "a file of settings is in the image");
    drop(bytes);

    // A box can start from it.
    let spec = install.spec(repo.path(), image);
    let child = install.boxes.create(spec, progress::silent()).await.unwrap();
    assert_eq!(install.output(&child, &["cat", "kept"]).await, "canary-in-the-workspace\n");
    install.output(&child, &["test", "-e", "/etc/kept"]).await;
    let branch = install.output(&child, &["git", "branch", "--show-current"]).await;
    assert_eq!(Some(branch.trim().to_owned()), child.branch);
    let id = install.output(&child, &["printenv", "AGENTBOX_BOX_ID"]).await;
    assert_eq!(id.trim(), child.id.as_str());
    let own = install.output(&child, &["git", "config", "--get-all", "commit.gpgsign"]).await;
    assert_eq!(own, "false\n", "nothing of the old repository's settings is left");

    // Another installation's hands are off it.
    let stranger = Install::new().await;
    let error = expect_err(stranger.boxes.remove_checkpoint(image).await);
    assert!(matches!(error, Error::NotOurs(_)), "{error}");
    let in_use = install.boxes.remove_checkpoint(image).await;
    assert!(in_use.is_err(), "a box stands on it");
    install.boxes.destroy(&child).await.unwrap();
    assert!(install.boxes.remove_checkpoint(image).await.unwrap());
    assert!(!install.boxes.remove_checkpoint(image).await.unwrap());
    let base = expect_err(install.boxes.remove_checkpoint(&record.image).await);
    assert!(matches!(base, Error::NotOurs(_)), "{base}");
}

/// A command that is frozen half-way into the box would keep it frozen for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_box_is_captured_while_commands_are_started_in_it() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (boxes, record, done) = (install.boxes.clone(), record.clone(), done.clone());
        busy.spawn(async move {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let argv = vec!["true".to_owned()];
                let spec = agentbox_boxes::ExecSpec { argv, ..Default::default() };
                let mut exec = boxes.exec(&record, spec).await.unwrap();
                while exec.output.next().await.unwrap().is_some() {}
                assert_eq!(exec.control.exit_code().await.unwrap(), 0);
            }
        });
    }
    for n in 0..6 {
        let name = format!("busy{n}");
        let image = agentbox_boxes::checkpoint_image(&record, &name);
        let _gone = Captured(&install, image.clone());
        install.boxes.capture(&record, plain(&name, &image), &progress::silent()).await.unwrap();
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    while let Some(ended) = busy.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    let repo = Repo::new();
    let install = Install::new().await;
    let record = install.create(repo.path()).await;
    install.output(&record, &["truncate", "-s", "8G", "huge"]).await;
    let mut file = tempfile::tempfile().unwrap();
    let what = files(&["/workspace/huge"]);
    let packed = install.boxes.pack(&record, &what, file.try_clone().unwrap(), 10 << 20).await;
    assert!(matches!(packed, Err(Error::TooLarge { .. })));
    assert!(file.seek(std::io::SeekFrom::End(0)).unwrap() <= 10 << 20);
    file.flush().unwrap();
}
