//! A host's relay and a box that speaks to it: a real socket or a real bridge, real git, real
//! repositories. Only the engine's exec stream is replaced, by git in the box's own repository.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

mod inside;

use agentbox_relay as relay;
use approvals::{BoxFuture, Broker, Draft, Journal, JournalError, Limits, Wanted};
use protocol::control::CheckpointView;
use protocol::ctl::{CloneIn, KnownTags, Pack, TagsHead, Unbundle};
use protocol::events::JsonText;
use protocol::question::{Grant, Outcome, Question, Surface, Verdict};
use protocol::rpc::{Envelope, EventPost};
use protocol::{BoxId, SecretId};
use relay::process::base_env;
use relay::{
    BoxPort, Checkpoints, Credentials, Deps, Entry, EventLog, IntegrationPolicy, NewCheckpoint,
    Policies, Policy, PortError, Rates, Registration, Relay, RemoteUrls, Token, Trail, TrailError,
    Waits, Worktree,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub const BRANCH: &str = "agentbox/smoke";

/// How the box reaches the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The relay's own socket, as it is mounted into a box.
    Socket,
    /// The real `agentbox-ctl bridge`, over pipes instead of the engine's exec stream.
    Bridge,
}

/// Every test twice: once over each carrier.
#[macro_export]
macro_rules! over_both_carriers {
    ($($(#[$meta:meta])* async fn $name:ident($carrier:ident) $body:block)*) => {
        $(
            mod $name {
                #[allow(unused_imports)]
                use super::*;

                $(#[$meta])*
                async fn over($carrier: $crate::support::Carrier) $body

                #[tokio::test]
                async fn socket() {
                    over($crate::support::Carrier::Socket).await;
                }

                #[tokio::test]
                async fn bridge() {
                    over($crate::support::Carrier::Bridge).await;
                }
            }
        )*
    };
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn commit(dir: &Path, file: &str, subject: &str) -> String {
    let path = dir.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, subject).unwrap();
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", subject]);
    git(dir, &["rev-parse", "HEAD"])
}

/// Plays the box's side: bundles from and to a plain repository.
struct BoxRepo {
    dir: PathBuf,
    /// Cuts the end off every bundle, as a box that wants to leave litter would.
    spoil: Arc<AtomicBool>,
    clones: Arc<Clones>,
    copies: Arc<Inside>,
}

pub use inside::Inside;

/// What the host cloned for the box: the plan, and the bundle's content.
pub type Clones = Mutex<Vec<(CloneIn, Option<Vec<u8>>)>>;

impl BoxPort for BoxRepo {
    fn export_bundle<'a>(
        &'a self,
        _: &'a BoxId,
        _: &'a str,
        branch: &'a str,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<Option<String>, PortError>> {
        Box::pin(async move {
            let tip = git(&self.dir, &["rev-parse", &format!("refs/heads/{branch}")]);
            if !haves.contains(&tip) {
                let head = format!("refs/heads/{branch}");
                let mut args =
                    vec!["bundle", "create", "-q", dest.to_str().unwrap(), &head, "--not"];
                args.extend(haves.iter().map(String::as_str));
                git(&self.dir, &args);
            }
            if self.spoil.load(Ordering::Relaxed) {
                let file = std::fs::File::options().write(true).open(dest).unwrap();
                file.set_len(file.metadata().unwrap().len() - 40).unwrap();
            }
            Ok(Some(tip))
        })
    }

    fn import_bundle<'a>(
        &'a self,
        _: &'a BoxId,
        unbundle: Unbundle,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            if let Some(bundle) = bundle {
                git(&self.dir, &["bundle", "unbundle", bundle.to_str().unwrap()]);
            }
            for at in unbundle.refs {
                git(&self.dir, &["update-ref", &at.name, &at.oid]);
            }
            Ok(())
        })
    }

    fn export_tags<'a>(
        &'a self,
        _: &'a BoxId,
        _: &'a str,
        known: &'a KnownTags,
        haves: &'a [String],
        dest: &'a Path,
    ) -> BoxFuture<'a, Result<TagsHead, PortError>> {
        Box::pin(async move {
            // The real command: its answer is what the host has to cope with.
            let mut ctl = Command::new(ctl());
            ctl.args(["bundle", "--tags"]).args(haves).env("AGENTBOX_WORKSPACE", &self.dir);
            let mut child = ctl
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let line = serde_json::to_string(known).unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), line.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            let end = output.stdout.iter().position(|b| *b == b'\n').unwrap();
            std::fs::write(dest, &output.stdout[end + 1..]).unwrap();
            Ok(serde_json::from_slice(&output.stdout[..end]).unwrap())
        })
    }

    fn import_clone<'a>(
        &'a self,
        _: &'a BoxId,
        clone: CloneIn,
        bundle: Option<&'a Path>,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            let bundle = bundle.map(|path| std::fs::read(path).unwrap());
            self.clones.lock().unwrap().push((clone, bundle));
            Ok(())
        })
    }

    fn pack<'a>(
        &'a self,
        _: &'a BoxId,
        what: Pack,
        dest: std::fs::File,
        limit: u64,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move { self.copies.pack(&self.dir, what, dest, limit) })
    }

    fn unpack<'a>(
        &'a self,
        _: &'a BoxId,
        tar: std::fs::File,
        dest: &'a str,
    ) -> BoxFuture<'a, Result<(), PortError>> {
        Box::pin(async move {
            self.copies.unpack(tar, dest);
            Ok(())
        })
    }

    fn checkpoints<'a>(&'a self, _: &'a BoxId) -> BoxFuture<'a, Result<Checkpoints, PortError>> {
        Box::pin(async { Ok(self.copies.known()) })
    }

    fn checkpoint<'a>(
        &'a self,
        _: &'a BoxId,
        wanted: NewCheckpoint,
    ) -> BoxFuture<'a, Result<CheckpointView, PortError>> {
        Box::pin(async { Ok(self.copies.capture(wanted)) })
    }

    fn ref_changed(&self, _: &BoxId) {}
}

/// The trail: kinds with their sentences, and the data of what was recorded.
#[derive(Default)]
pub struct Notes(pub Mutex<Vec<(String, String)>>, pub Mutex<Vec<Value>>);

/// What boxes told.
#[derive(Default)]
pub struct Heard {
    pub events: Mutex<Vec<EventPost>>,
    pub statuses: Mutex<Vec<JsonText>>,
    next: AtomicU64,
}

impl EventLog for Heard {
    fn keep(&self, _: &BoxId, event: EventPost) -> u64 {
        self.events.lock().unwrap().push(event);
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn status(&self, _: &BoxId, status: JsonText) {
        self.statuses.lock().unwrap().push(status);
    }
}

/// Settings a test can change at any time.
#[derive(Default)]
pub struct Settings(pub Mutex<Policy>);

impl Policies for Settings {
    fn policy(&self, _: &Path) -> Policy {
        self.0.lock().unwrap().clone()
    }
}

/// Stored credentials; an error stands for a keychain that cannot be read.
#[derive(Default)]
pub struct Stored(pub Mutex<HashMap<String, Result<String, String>>>);

impl Credentials for Stored {
    fn get<'a>(
        &'a self,
        id: &'a SecretId,
    ) -> BoxFuture<'a, Result<Option<secrets::Value>, String>> {
        let found = self.0.lock().unwrap().get(id.as_str()).cloned().transpose();
        Box::pin(async move { found.map(|value| value.map(secrets::Value::new)) })
    }
}

impl Trail for Notes {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        Box::pin(async move {
            self.0.lock().unwrap().push((entry.kind.to_owned(), entry.summary));
            self.1.lock().unwrap().push(entry.data);
            Ok(())
        })
    }

    fn jot(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        self.record(entry)
    }
}

impl Journal for Notes {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async {
            self.0.lock().unwrap().push(("asked".into(), question.title.clone()));
            Ok(())
        })
    }
    fn resolved<'a>(
        &'a self,
        _: &'a protocol::QuestionId,
        outcome: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.0.lock().unwrap().push(("answered".into(), format!("{outcome:?}")));
            Ok(())
        })
    }
    fn refused<'a>(
        &'a self,
        draft: &'a Draft,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let line = format!("{}: {outcome:?}", draft.title);
            self.0.lock().unwrap().push(("not-asked".into(), line));
            Ok(())
        })
    }
    fn grant_for<'a>(
        &'a self,
        _: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async { Ok(None) })
    }
    fn remember<'a>(&'a self, _: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A host repository, its remote, a box with its own repository, and a relay between them.
pub struct World {
    pub dir: tempfile::TempDir,
    pub host: PathBuf,
    pub remote: PathBuf,
    pub inside: PathBuf,
    pub socket: PathBuf,
    pub token: Token,
    pub broker: Broker,
    pub notes: Arc<Notes>,
    pub heard: Arc<Heard>,
    pub settings: Arc<Settings>,
    pub stored: Arc<Stored>,
    pub spoil: Arc<AtomicBool>,
    pub clones: Arc<Clones>,
    pub copies: Arc<Inside>,
    pub relay: Arc<Relay>,
}

/// What is not as usual in a world.
#[derive(Clone)]
pub struct Setup {
    pub carrier: Carrier,
    /// The host's repository has a commit.
    pub with_base: bool,
    /// Not the path of the bare repository beside the host's.
    pub remote_url: Option<String>,
    /// None: a box without a repository.
    pub with_repo: bool,
    /// The branch the person chose for pushes.
    pub publish: Option<String>,
    pub limits: Limits,
    pub rates: Rates,
    pub waits: Waits,
    /// Variables of the host beside its own.
    pub env: Vec<(String, String)>,
    /// The person has the project's own `bin` in front of everything else on PATH.
    pub project_on_path: bool,
}

impl Setup {
    pub fn new(carrier: Carrier) -> Self {
        let limits =
            Limits { timeout: Duration::from_secs(60), grace: Duration::ZERO, ..Limits::default() };
        Self {
            carrier,
            with_base: true,
            remote_url: None,
            with_repo: true,
            publish: None,
            limits,
            rates: Rates::default(),
            waits: Waits::default(),
            env: Vec::new(),
            project_on_path: false,
        }
    }
}

impl World {
    pub async fn new(carrier: Carrier) -> Self {
        Self::with(Setup::new(carrier)).await
    }

    /// The host's repository and its remote have no commit yet.
    pub async fn empty(carrier: Carrier) -> Self {
        Self::with(Setup { with_base: false, ..Setup::new(carrier) }).await
    }

    pub async fn with(setup: Setup) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (host, remote, inside) = (path("host"), path("remote.git"), path("inside"));
        for d in [&host, &inside, &path("run"), &path("repos"), &path("bin"), &path("scratch")] {
            std::fs::create_dir_all(d).unwrap();
        }
        git(dir.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        git(&host, &["init", "-q", "-b", "main"]);
        git(&host, &["remote", "add", "origin", remote.to_str().unwrap()]);
        let base = setup.with_base.then(|| commit(&host, "README", "first"));
        if setup.with_base {
            git(&host, &["push", "-q", "origin", "main"]);
        }
        git(&inside, &["init", "-q", "-b", BRANCH]);
        let alternates = inside.join(".git/objects/info/alternates");
        std::fs::write(alternates, host.join(".git/objects").to_str().unwrap()).unwrap();
        if let Some(base) = &base {
            git(&inside, &["reset", "-q", "--hard", base]);
        }

        let (notes, spoil) = (Arc::new(Notes::default()), Arc::new(AtomicBool::new(false)));
        let (heard, stored) = (Arc::new(Heard::default()), Arc::new(Stored::default()));
        let clones: Arc<Clones> = Arc::default();
        let copies: Arc<Inside> = Arc::default();
        let settings = Arc::new(Settings::default());
        settings.0.lock().unwrap().copy_max_bytes = 100 * 1024 * 1024;
        let broker = Broker::new(notes.clone(), setup.limits);
        let own = setup.env.iter().map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let mut inherited: Vec<_> = std::env::vars_os().chain(own).collect();
        let mut search_path = path("bin").into_os_string();
        search_path.push(":");
        let given = setup.env.iter().find(|(key, _)| key == "PATH").map(|(_, v)| OsString::from(v));
        search_path.push(given.or_else(|| std::env::var_os("PATH")).unwrap());
        if setup.project_on_path {
            let mut all = host.join("bin").into_os_string();
            all.push(":");
            all.push(&search_path);
            search_path = all;
            inherited.retain(|(key, _)| key != "PATH");
            inherited.push(("PATH".into(), search_path.clone()));
        }
        let relay = Arc::new(Relay::new(Deps {
            broker: broker.clone(),
            port: Arc::new(BoxRepo {
                dir: inside.clone(),
                spoil: spoil.clone(),
                clones: clones.clone(),
                copies: copies.clone(),
            }),
            trail: notes.clone(),
            events: heard.clone(),
            policies: settings.clone(),
            credentials: stored.clone(),
            search_path,
            env: base_env(inherited.iter().cloned()),
            inherited,
            home: path("home"),
            scratch: path("scratch"),
            question_timeout: setup.limits.timeout,
            rates: setup.rates,
            waits: setup.waits,
        }));
        let url = setup.remote_url.unwrap_or_else(|| remote.to_str().unwrap().to_owned());
        let worktree = Worktree {
            container_path: "/workspace".into(),
            branch: BRANCH.parse().unwrap(),
            own_branch: true,
            publish: setup.publish.map(|branch| branch.parse().unwrap()),
            base: base.map(|base| base.parse().unwrap()),
            host_repo: host.clone(),
            host_objects: host.join(".git/objects"),
            object_format: "sha1".into(),
            remotes: [("origin".parse().unwrap(), RemoteUrls { fetch: url.clone(), push: url })]
                .into(),
            transfer: path("repos/workspace.git"),
        };
        let registration = Registration {
            id: "b00000001".parse().unwrap(),
            name: "smoke".parse().unwrap(),
            project: "shop".into(),
            project_root: host.clone(),
            workspace: host.clone(),
            worktrees: setup.with_repo.then_some(worktree).into_iter().collect(),
        };
        let token = Token::from_bytes([7; 32]);
        relay.open(registration, token.hash());
        let socket = path("run/relay.sock");
        let world = Self {
            dir,
            host,
            remote,
            inside,
            socket,
            token,
            broker,
            notes,
            heard,
            settings,
            stored,
            spoil,
            clones,
            copies,
            relay,
        };
        world.connect(setup.carrier).await;
        world
    }

    /// Makes the socket that the box's clients use.
    pub async fn connect(&self, carrier: Carrier) {
        self.door(carrier, "b00000001".parse().unwrap(), &self.socket).await;
    }

    /// Makes the socket of one box; it is called `relay.sock`.
    pub async fn door(&self, carrier: Carrier, id: BoxId, socket: &Path) {
        match carrier {
            Carrier::Socket => self.relay.listen(&id, socket.parent().unwrap()).unwrap(),
            Carrier::Bridge => {
                let io = bridge(socket);
                let relay = self.relay.clone();
                tokio::spawn(async move { relay.attach(&id, io).await });
                for _ in 0..500 {
                    if UnixStream::connect(socket).await.is_ok() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                panic!("the bridge did not come up");
            }
        }
    }

    /// Puts a program in front of every other on the host's search path.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.dir.path().join("bin").join(name);
        // By another process: what a child of this one has open for writing, if only until it
        // becomes its own program, cannot be run.
        let text = self.dir.path().join(format!("{name}.text"));
        std::fs::write(&text, script).unwrap();
        assert!(Command::new("cp").arg(&text).arg(&path).status().unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn policy(&self, change: impl FnOnce(&mut Policy)) {
        change(&mut self.settings.0.lock().unwrap());
    }

    pub fn enable(&self, service: &str) {
        let on = IntegrationPolicy { enabled: true, ..IntegrationPolicy::default() };
        self.policy(|policy| drop(policy.integrations.insert(service.into(), on)));
    }

    pub fn store(&self, id: &str, value: &str) {
        self.stored.0.lock().unwrap().insert(id.into(), Ok(value.into()));
    }

    pub fn headers(&self) -> Vec<(String, String)> {
        [("host", "agentbox"), ("content-type", "application/json")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter()
            .chain([("authorization".to_owned(), format!("Bearer {}", self.token.as_str()))])
            .collect()
    }

    pub async fn raw(
        &self,
        head: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> (u16, String) {
        self.raw_at(&self.socket, head, headers, body).await
    }

    /// The same at another box's door.
    pub async fn raw_at(
        &self,
        socket: &Path,
        head: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> (u16, String) {
        let mut stream = UnixStream::connect(socket).await.unwrap();
        let mut text =
            format!("{head} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (key, value) in headers {
            text.push_str(&format!("{key}: {value}\r\n"));
        }
        text.push_str("\r\n");
        // The relay may refuse before it has read everything, and hang up on the rest.
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.write_all(body).await;
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let status = reply.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, reply.split_once("\r\n\r\n").map(|(_, b)| b.to_owned()).unwrap_or_default())
    }

    pub async fn post(&self, body: &str) -> (u16, String) {
        self.raw("POST /rpc", &self.headers(), body.as_bytes()).await
    }

    pub async fn call(&self, method: &str, params: Value) -> Envelope {
        let (status, body) =
            self.post(&json!({ "method": method, "params": params }).to_string()).await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Calls and answers the question it raises.
    pub async fn answered(
        &self,
        method: &str,
        params: Value,
        verdict: Verdict,
    ) -> (Envelope, Question) {
        let answer = async {
            let question = self.question().await;
            self.broker.answer(&question.id, &question.digest, verdict, Surface::Cli).unwrap();
            question
        };
        tokio::join!(self.call(method, params), answer)
    }

    pub async fn question(&self) -> Question {
        for _ in 0..500 {
            if let Some(question) = self.broker.pending().pop() {
                return question;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no question came");
    }

    /// Waits until something is so.
    pub async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..1500 {
            if is_so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it did not come to that: {what}");
    }

    pub fn at_remote(&self, branch: &str) -> Option<String> {
        let output = Command::new("git")
            .current_dir(&self.remote)
            .args(["rev-parse", "-q", "--verify", &format!("refs/heads/{branch}")])
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    pub fn kinds(&self) -> Vec<String> {
        self.notes.0.lock().unwrap().iter().map(|(kind, _)| kind.clone()).collect()
    }
}

/// The box's program, as it is built for boxes.
fn ctl() -> PathBuf {
    std::env::var_os("AGENTBOX_CTL").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/box/agentbox-ctl"),
        PathBuf::from,
    )
}

/// The real `agentbox-ctl bridge`, listening at `socket`; its other end.
fn bridge(
    socket: &Path,
) -> impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static {
    let ctl = ctl();
    let mut child = tokio::process::Command::new(&ctl)
        .arg("bridge")
        .env("AGENTBOX_RELAY_SOCKET", socket)
        // Anything that is there says the box is ready.
        .env("AGENTBOX_READY_FILE", "/")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}; build it with make build", ctl.display()));
    let (from, to) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    // Ends with its input, when the relay lets go of the other end.
    tokio::spawn(async move { child.wait().await });
    tokio::io::join(from, to)
}

/// A process is there and has not ended.
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|text| !text.contains(") Z "))
}
