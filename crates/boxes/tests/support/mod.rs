//! A real engine, a real repository, and boxes that are gone after the test.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_boxes as boxes;
use boxes::{
    Boxes, Chunk, CreateSpec, Engine, Error, ExecSpec, ImageSpec, Record, Stage, progress,
};
use protocol::{BoxId, BoxName};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The engine these tests need; without one they fail.
pub async fn engine() -> Engine {
    match Engine::connect(None).await {
        Ok(engine) => engine,
        Err(error) => panic!("these tests need a container engine: {error}"),
    }
}

/// The static in-box binary, made by `make build`.
pub fn ctl() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/box/agentbox-ctl");
    let path = std::env::var_os("AGENTBOX_CTL").map_or(usual, PathBuf::from);
    assert!(
        path.is_file(),
        "{} is not there: run `make build` or set AGENTBOX_CTL",
        path.display()
    );
    path
}

pub fn random() -> [u8; 4] {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

/// An installation of its own: everything it makes is removed when it is dropped.
pub struct Install {
    pub boxes: Boxes,
    pub run: tempfile::TempDir,
    made: std::sync::Mutex<Vec<BoxId>>,
}

impl Install {
    pub async fn new() -> Self {
        let owner = format!("test-{}", BoxId::from_bytes(random()));
        let run = tempfile::tempdir().unwrap();
        Self { boxes: Boxes::new(engine().await, &owner), run, made: std::sync::Mutex::default() }
    }

    pub async fn image(&self) -> String {
        let spec = ImageSpec::new(Stage::Core, ctl(), boxes::host_certificates(None));
        self.boxes.ensure_image(&spec, progress::silent()).await.unwrap()
    }

    pub fn spec(&self, workspace: &Path, image: &str) -> CreateSpec {
        let id = BoxId::from_bytes(random());
        self.made.lock().unwrap().push(id.clone());
        CreateSpec {
            name: BoxName::from_folder("test", &id),
            id,
            index: 1,
            workspace: workspace.to_owned(),
            root: workspace.canonicalize().unwrap_or(workspace.to_owned()),
            image: image.to_owned(),
            channel: None,
            run_dir: self.run.path().to_owned(),
            token: TOKEN.to_owned(),
            daemons: protocol::ctl::Daemons::default(),
            certificates: boxes::host_certificates(None),
            taken_branches: Vec::new(),
            start: boxes::Start::Here,
            with_env: false,
            limits: protocol::Limits::default(),
            carry: None,
            keep_on_failure: false,
            wishes: boxes::Wishes::default(),
            egress: protocol::egress::EgressMode::Open,
            authority: Vec::new(),
        }
    }

    pub async fn create(&self, workspace: &Path) -> Record {
        let spec = self.spec(workspace, &self.image().await);
        self.boxes.create(spec, progress::silent()).await.unwrap()
    }

    /// Runs a command in a box: exit code, output, errors.
    pub async fn run(&self, record: &Record, argv: &[&str]) -> (i64, String, String) {
        self.run_as(record, None, argv).await
    }

    pub async fn run_as(
        &self,
        record: &Record,
        user: Option<&str>,
        argv: &[&str],
    ) -> (i64, String, String) {
        let argv = argv.iter().map(ToString::to_string).collect();
        let spec = ExecSpec { argv, user: user.map(str::to_owned), ..ExecSpec::default() };
        let mut exec = self.boxes.exec(record, spec).await.unwrap();
        exec.input.shutdown().await.unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        while let Some(chunk) = exec.output.next().await.unwrap() {
            match chunk {
                Chunk::Stdout(bytes) => out.extend(bytes),
                Chunk::Stderr(bytes) => err.extend(bytes),
            }
        }
        let code = exec.control.exit_code().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (code, text(out), text(err))
    }

    /// Output of a command that must succeed.
    pub async fn output(&self, record: &Record, argv: &[&str]) -> String {
        let (code, out, err) = self.run(record, argv).await;
        assert_eq!(code, 0, "{argv:?}: {out}{err}");
        out
    }
}

impl Drop for Install {
    fn drop(&mut self) {
        let (boxes, made) = (self.boxes.clone(), std::mem::take(&mut *self.made.lock().unwrap()));
        let sweep = move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            for id in made {
                let _ = runtime.block_on(boxes.sweep(&id));
            }
        };
        let _ = std::thread::spawn(sweep).join();
    }
}

/// A repository with an identity and one commit.
pub struct Repo {
    temp: tempfile::TempDir,
}

impl Repo {
    pub fn new() -> Self {
        let repo = Self { temp: tempfile::tempdir().unwrap() };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Dev"]);
        repo.git(&["config", "user.email", "dev@example.org"]);
        repo.write("README", "hello\n");
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "first"]);
        repo
    }

    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(dir).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

/// Asks until it is so, or fails.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(60);
    while !ask().await {
        assert!(Instant::now() < end, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A client of the tests' own, to look at the engine from outside.
pub fn docker(engine: &Engine) -> bollard::Docker {
    let boxes::engine::Address::Unix(path) = &engine.profile().address else {
        panic!("these tests look at the engine through its socket");
    };
    let version = bollard::ClientVersion { major_version: 1, minor_version: 41 };
    bollard::Docker::connect_with_unix(path.to_str().unwrap(), 60, &version).unwrap()
}

pub fn expect_err<T>(result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => error,
    }
}
