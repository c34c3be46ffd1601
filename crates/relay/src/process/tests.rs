use super::*;

fn sh() -> Tool {
    Tool::find("sh", OsStr::new("/usr/bin:/bin")).unwrap()
}

async fn script(text: &str, limit: Limit) -> Output {
    let args = ["-c".into(), text.into()];
    sh().run(Path::new("/"), &args, &base_env(std::env::vars_os()), limit).await.unwrap()
}

fn short() -> Limit {
    Limit { idle: Duration::from_millis(300), total: Duration::from_secs(5), memory: Some(1 << 30) }
}

#[tokio::test]
async fn output_and_code_come_back() {
    let output = script("echo out; echo err >&2; exit 7", Limit::LOCAL).await;
    assert_eq!((output.code, output.out(), output.err()), (7, "out\n".into(), "err\n".into()));
    assert_eq!(script("kill -9 $$", Limit::LOCAL).await.code, 137);
}

#[tokio::test]
async fn relay_19_59_a_program_that_hangs_is_ended_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pid");
    let text = format!("sleep 600 & echo $! > {}; wait", pids.display());
    let output = script(&text, short()).await;
    assert_eq!(output.code, 124);
    assert!(output.err().contains("timed out after 300ms"), "{}", output.err());
    let pid = std::fs::read_to_string(&pids).unwrap().trim().to_owned();
    let alive =
        || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "));
    for _ in 0..100 {
        if !alive() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("child {pid} is still alive");
}

/// On a clock that jumps ahead while nothing happens: the limit that is really in use.
#[tokio::test(start_paused = true)]
async fn relay_19_59_a_program_that_asks_a_service_has_two_minutes() {
    let limit = Limit::SERVICE.within(crate::Waits::default().program);
    let output = script("sleep 600", limit).await;
    assert_eq!(output.code, 124);
    assert_eq!(output.err(), format!("relay: {} timed out after 120000ms\n", shell()));
    let filters = Limit::FILTERS.within(crate::Waits::default().program);
    assert_eq!((filters.idle, filters.total), (limit.idle, limit.total));
    assert_eq!(crate::Waits::default().request, Duration::from_secs(30));
}

/// `sh` is a link to whichever shell there is.
fn shell() -> String {
    sh().path.file_name().unwrap().to_string_lossy().into_owned()
}

#[tokio::test]
async fn relay_19_60_a_flood_is_cut_and_ended() {
    let output = script("yes | head -c 100000000; echo done", Limit::LOCAL).await;
    assert_eq!(output.stdout.len(), MAX_STREAM);
    assert!(output.out().ends_with("relay: output cut after 8388608 bytes\n"));
}

#[tokio::test]
async fn a_child_that_keeps_the_pipe_does_not_hold_the_relay() {
    let output = script("sleep 600 & exit 0", short()).await;
    assert_eq!(output.code, 124);
}

#[tokio::test]
async fn a_program_that_takes_all_memory_ends() {
    // Without a line's end in sight tail keeps everything.
    let text = "head -c 400000000 /dev/zero | tail -n 1 | wc -c";
    let small = Limit { memory: Some(64 << 20), ..Limit::LOCAL };
    let output = script(text, small).await;
    assert_ne!(output.out().trim(), "400000000", "the bound did not hold");
    assert_eq!(script(text, Limit::LOCAL).await.out().trim(), "400000000");
}

#[test]
fn the_environment_is_built_not_inherited() {
    let given = [
        ("HOME", "/h"),
        ("GIT_DIR", "/evil"),
        ("GIT_SSH_COMMAND", "evil"),
        ("LD_PRELOAD", "evil"),
        ("NODE_OPTIONS", "evil"),
        ("PATH", "bin:/usr/bin:.:/tmp"),
    ];
    let env = base_env(given.into_iter().map(|(k, v)| (k.into(), v.into())));
    let get = |k: &str| env.iter().find(|(key, _)| key == k).map(|(_, v)| v.to_str().unwrap());
    assert_eq!(get("HOME"), Some("/h"));
    assert_eq!(get("PATH"), Some("/usr/bin"));
    for gone in ["GIT_DIR", "GIT_SSH_COMMAND", "LD_PRELOAD", "NODE_OPTIONS"] {
        assert_eq!(get(gone), None, "{gone} came through");
    }
    assert_eq!(get("GIT_TERMINAL_PROMPT"), Some("0"));
}

#[test]
fn relay_a35_a_program_in_a_shared_folder_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let fake = dir.path().join("git");
    std::fs::write(&fake, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([dir.path(), Path::new("/usr/bin")]).unwrap();
    assert_eq!(
        Tool::find("git", &path).unwrap().path.parent(),
        fake.canonicalize().unwrap().parent()
    );
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_ne!(Tool::find("git", &path).unwrap().path, fake);
    assert!(Tool::find("no-such-program", &path).is_err());
}
