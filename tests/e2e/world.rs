//! One person's computer for one test: a home, a project with a remote, a host, boxes.
//!
//! Everything goes through the programs people use. A world takes its boxes with it when it ends,
//! also when its test failed.

use agentbox_e2e::atspi::Desktop;
use agentbox_e2e::notify::Notifications;
use agentbox_e2e::session::{Options, Session};
use agentbox_e2e::tray::{Item, Tray};
use agentbox_e2e::wait::{eventually, eventually_or};
use bollard::Docker;
use bollard::query_parameters as query;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// For things that take a moment, on a machine that may be very busy.
pub const SOON: Duration = Duration::from_secs(60);
/// How soon surfaces that did not get the answer are clear. The promise is a second; a machine that does
/// other tests at the same time gets three.
pub const AT_ONCE: Duration = Duration::from_secs(3);
/// What the desktop app is called on the accessibility bus.
pub const APP: &str = "agentbox-desktop";

pub struct World {
    /// None: a computer without a desktop.
    pub session: Option<Session>,
    env: BTreeMap<String, String>,
    dir: PathBuf,
    bin: PathBuf,
    host: Option<Child>,
    /// Where its engine is, when that is not the tests' usual one.
    engine: Option<String>,
    // Kept for a world without a session, whose folder the session would own.
    _own: Option<tempfile::TempDir>,
}

impl World {
    /// Where the programs under test are.
    pub fn programs() -> PathBuf {
        bin()
    }

    /// A desktop with all parts, and AgentBox in its tray.
    pub fn desktop() -> Self {
        Self::desktop_with(Options::default())
    }

    pub fn desktop_with(options: Options) -> Self {
        let mut world = Self::desktop_before(options);
        world.start_desktop();
        world
    }

    /// A desktop where AgentBox does not run yet.
    pub fn desktop_before(options: Options) -> Self {
        let session = Session::start(options);
        let (env, dir) = (session.env().clone(), session.dir().to_owned());
        let world = Self {
            session: Some(session),
            env,
            dir,
            bin: bin(),
            host: None,
            engine: None,
            _own: None,
        };
        world.prepared()
    }

    /// A computer without a screen, and `agentbox serve`.
    pub fn headless() -> Self {
        let mut world = Self::bare();
        world.configure("");
        world.start_serve();
        world
    }

    /// A computer without a screen whose boxes reach it by this channel, with more settings. Questions
    /// wait there for `agentbox approve`.
    pub fn over(channel: &str, more: &str) -> Self {
        let mut world = Self::bare();
        world.configure(&settings(channel, more));
        world.start_serve();
        world
    }

    /// A computer without a screen where nothing runs yet.
    pub fn bare() -> Self {
        let own = tempfile::Builder::new().prefix("abx.").tempdir_in("/tmp").unwrap();
        let dir = own.path().to_owned();
        let home = dir.join("home");
        std::fs::create_dir(&home).unwrap();
        let mut env = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        for key in ["PATH", "DOCKER_HOST", "USER", "LANG"] {
            if let Ok(value) = std::env::var(key) {
                env.insert(key.to_owned(), value);
            }
        }
        let world =
            Self { session: None, env, dir, bin: bin(), host: None, engine: None, _own: Some(own) };
        world.prepared()
    }

    /// With a project, and a folder for programs of the host that a test brings along.
    fn prepared(mut self) -> Self {
        let own = self.dir.join("bin");
        std::fs::create_dir(&own).unwrap();
        let path = format!("{}:{}", own.display(), self.env["PATH"]);
        self.env.insert("PATH".into(), path);
        self.make_project();
        self.configure_only(&with_stage(""));
        self
    }

    /// The host's settings, before or while it runs. Unless they say something about it, questions
    /// wait for an `agentbox approve` to come, and boxes have no more than a shell.
    pub fn configure(&self, yaml: &str) {
        let wait =
            if yaml.contains("approvals:") { "" } else { "approvals: {whenNobodyWatches: wait}\n" };
        self.configure_only(&with_stage(&format!("{yaml}{wait}")));
    }

    pub fn configure_only(&self, yaml: &str) {
        std::fs::create_dir_all(self.home()).unwrap();
        std::fs::write(self.home().join("config.yaml"), yaml).unwrap();
    }

    /// A variable of every program that is started from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.into(), value.into());
    }

    /// Boxes are made on this engine, not on the tests' usual one.
    pub fn use_engine(&mut self, host: &str) {
        self.set("DOCKER_HOST", host);
        self.engine = Some(host.to_owned());
    }

    /// The engine its boxes are on.
    pub async fn docker(&self) -> Option<Docker> {
        match &self.engine {
            Some(host) => engine_at(host).await,
            None => docker().await,
        }
    }

    /// A program of the host, found before any other of its name.
    pub fn host_program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.dir.join("bin").join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    // ---- the project

    pub fn project(&self) -> PathBuf {
        self.dir.join("shop")
    }

    pub fn remote(&self) -> PathBuf {
        self.dir.join("remote.git")
    }

    pub fn home(&self) -> PathBuf {
        PathBuf::from(&self.env["HOME"]).join(".agentbox")
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn make_project(&self) {
        std::fs::create_dir(self.project()).unwrap();
        self.git(&self.dir, &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        self.git(&self.project(), &["init", "-q", "-b", "main"]);
        self.git(&self.project(), &["config", "user.name", "Ada Lovelace"]);
        self.git(&self.project(), &["config", "user.email", "ada@example.org"]);
        std::fs::write(self.project().join("README.md"), "# Shop\n").unwrap();
        self.git(&self.project(), &["add", "."]);
        self.git(&self.project(), &["commit", "-qm", "First"]);
        let remote = self.remote().display().to_string();
        self.git(&self.project(), &["remote", "add", "origin", &remote]);
        self.git(&self.project(), &["push", "-q", "origin", "main"]);
    }

    /// Git on the host, as the person.
    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.command("git").current_dir(dir).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    /// Where a branch is at the remote.
    pub fn at_remote(&self, branch: &str) -> Option<String> {
        let refs = self.git(&self.remote(), &["for-each-ref", "--format=%(refname) %(objectname)"]);
        let name = format!("refs/heads/{branch} ");
        refs.lines().find_map(|line| line.strip_prefix(&name).map(str::to_owned))
    }

    // ---- the programs

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(&self.dir);
        command
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// `agentbox …` in the project, as it ends.
    pub fn agentbox(&self, args: &[&str]) -> Output {
        self.agentbox_command(args).output().unwrap()
    }

    pub fn agentbox_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(self.program("agentbox"));
        command.current_dir(self.project()).args(args).stdin(Stdio::null());
        command
    }

    /// `agentbox …`, which must work; its output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.agentbox(args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.success(),
            "agentbox {args:?}: {}\n{out}{err}{}",
            output.status,
            self.host_log()
        );
        out
    }

    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("agentbox {args:?}: {e}: {text}"))
    }

    pub fn start_serve(&mut self) {
        let program = self.program("agentbox");
        self.start_host(program, &["serve"]);
    }

    pub fn start_desktop(&mut self) {
        let program = self.program("agentbox-desktop");
        self.start_host(program, &[]);
    }

    #[track_caller]
    fn start_host(&mut self, program: PathBuf, args: &[&str]) {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.dir.join("host.log"))
            .unwrap();
        let child = self
            .command(&program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let pid = child.id();
        self.host = Some(child);
        eventually_or(SOON, "the host answering", || {
            let output = self.agentbox(&["status", "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if status["status"]["pid"] == pid && status["status"]["engine"]["reachable"] == true {
                return Ok(());
            }
            Err(format!("{status}{}{}", text(&output.stderr), self.host_log()))
        });
    }

    pub fn host_pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.host.as_ref().expect("a host").id()).unwrap())
    }

    pub fn kill_host(&mut self) {
        let mut child = self.host.take().expect("a host");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Lets go of the host process: another one is about to take its place.
    pub fn take_host(&mut self) -> Child {
        self.host.take().expect("a host")
    }

    /// The host ends by itself.
    #[track_caller]
    pub fn await_host_end(&mut self) {
        let mut child = self.host.take().expect("a host");
        eventually(SOON, "the host ending", || child.try_wait().unwrap());
    }

    pub fn host_log(&self) -> String {
        let log = std::fs::read_to_string(self.dir.join("host.log")).unwrap_or_default();
        let own = std::fs::read_to_string(self.home().join("logs/desktop.log")).unwrap_or_default();
        format!("\n--- host.log\n{log}\n--- desktop.log\n{own}")
    }

    // ---- boxes

    #[track_caller]
    pub fn create(&self, name: &str) -> Value {
        self.json(&["create", "-n", name])["box"].clone()
    }

    /// A shell script in a box, as it ends.
    pub fn in_box(&self, name: &str, script: &str) -> Output {
        self.agentbox(&["shell", name, "--", "sh", "-c", script])
    }

    /// A shell script in a box, which must work; its output.
    #[track_caller]
    pub fn box_ok(&self, name: &str, script: &str) -> String {
        let output = self.in_box(name, script);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.success(),
            "in {name}: {script}: {}\n{out}{err}{}",
            output.status,
            self.host_log()
        );
        out.trim_end().to_owned()
    }

    /// Commits a file in a box; the commit.
    #[track_caller]
    pub fn commit(&self, name: &str, subject: &str) -> String {
        let file = subject.to_lowercase().replace(' ', "-");
        let script = format!(
            "echo '{subject}' > {file} && git add -A && git commit -qm '{subject}' && git rev-parse HEAD"
        );
        self.box_ok(name, &script)
    }

    /// `git push` in a box, under way.
    pub fn push(&self, name: &str) -> Running {
        Running::start(self.agentbox_command(&["shell", name, "--", "git", "push"]))
    }

    /// A shell script in a box, under way.
    pub fn begin(&self, name: &str, script: &str) -> Running {
        Running::start(self.agentbox_command(&["shell", name, "--", "sh", "-c", script]))
    }

    /// A script in a box that asks one question, which is answered with `approve` or `deny`; the
    /// question and what came of the script.
    #[track_caller]
    pub fn answered(&self, name: &str, script: &str, answer: &str) -> (Value, Ended) {
        let running = self.begin(name, script);
        let question = self.question_of(name);
        self.ok(&[
            answer,
            question["id"].as_str().unwrap(),
            "--digest",
            question["digest"].as_str().unwrap(),
        ]);
        (question, running.end())
    }

    /// Allows the question of a box, as a program that has read it does.
    #[track_caller]
    pub fn approve(&self, name: &str, more: &[&str]) {
        let question = self.question_of(name);
        let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
        self.ok(&[&["approve", id, "--digest", digest], more].concat());
    }

    pub fn questions(&self) -> Vec<Value> {
        self.json(&["approvals"])["questions"].as_array().unwrap().clone()
    }

    /// The question of a box, once it is there.
    #[track_caller]
    pub fn question_of(&self, name: &str) -> Value {
        eventually_or(SOON, &format!("a question of {name}"), || {
            let questions = self.questions();
            let found = questions.iter().find(|q| q["boxName"] == name).cloned();
            found.ok_or_else(|| format!("{questions:?}{}", self.host_log()))
        })
    }

    /// Stores a credential the way people do: by a pipe.
    #[track_caller]
    pub fn store(&self, id: &str, value: &str) {
        use std::io::Write;
        let mut command = self.agentbox_command(&["secrets", "set", id]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("{value}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    pub fn audit_kinds(&self, name: &str) -> Vec<String> {
        let records = self.json(&["audit", name]);
        let records = records["records"].as_array().unwrap().iter();
        records.map(|r| r["kind"].as_str().unwrap().to_owned()).collect()
    }

    // ---- the desktop

    pub fn session(&self) -> &Session {
        self.session.as_ref().expect("a desktop")
    }

    pub fn screen(&self) -> Desktop {
        Desktop::new(self.session())
    }

    pub fn notifications(&self) -> Notifications {
        Notifications::new(self.session())
    }

    #[track_caller]
    pub fn tray(&self) -> Item {
        Tray::new(self.session()).wait_for("AgentBox", SOON)
    }

    /// Removes what a test's boxes left on the engine, found by the label of its project.
    fn remove_boxes(&self, project: &Path) {
        let root = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
        let label = format!("agentbox.project={}", ::boxes::project::project_hash(&root));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Some(docker) = self.docker().await else { return };
            let filters = HashMap::from([("label".to_owned(), vec![label])]);
            let all =
                query::ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
            for container in docker.list_containers(Some(all)).await.unwrap_or_default() {
                let force =
                    query::RemoveContainerOptionsBuilder::default().force(true).v(true).build();
                let _ =
                    docker.remove_container(&container.id.unwrap_or_default(), Some(force)).await;
            }
            let all = query::ListNetworksOptionsBuilder::default().filters(&filters).build();
            for network in docker.list_networks(Some(all)).await.unwrap_or_default() {
                let _ = docker.remove_network(&network.id.unwrap_or_default()).await;
            }
            let all = query::ListVolumesOptionsBuilder::default().filters(&filters).build();
            let volumes = docker.list_volumes(Some(all)).await.ok().and_then(|list| list.volumes);
            for volume in volumes.unwrap_or_default() {
                let _ =
                    docker.remove_volume(&volume.name, None::<query::RemoveVolumeOptions>).await;
            }
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.host_log());
        }
        if let Some(host) = &mut self.host {
            let pid = Pid::from_raw(i32::try_from(host.id()).unwrap_or(0));
            let _ = kill(pid, Signal::SIGTERM);
            let gone = agentbox_e2e::wait::try_eventually(SOON, || match host.try_wait() {
                Ok(Some(_)) => Ok(()),
                _ => Err(()),
            });
            if gone.is_err() {
                let _ = host.kill();
                let _ = host.wait();
            }
        }
        // A test may have made projects beside the usual one.
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|p| p.is_dir())
            .for_each(|p| self.remove_boxes(&p));
    }
}

/// Boxes of tests are of the smallest stage, unless the settings name another. They have no names in
/// a browser either: another host on this computer may have the usual port.
fn with_stage(yaml: &str) -> String {
    let proxy = if yaml.contains("proxy:") { "" } else { "proxy: {port: 0}\n" };
    let yaml = &format!("{yaml}{proxy}");
    if yaml.contains("stage:") {
        yaml.to_owned()
    } else if yaml.contains("box: {") {
        yaml.replacen("box: {", "box: {stage: core, ", 1)
    } else {
        format!("{yaml}box: {{stage: core}}\n")
    }
}

/// Settings of a host whose boxes use this channel and whose questions wait for an answer.
pub fn settings(channel: &str, more: &str) -> String {
    format!("engine: {{channel: {channel}}}\napprovals: {{whenNobodyWatches: wait}}\n{more}")
}

/// A command that goes on while the test does other things.
pub struct Running(Child);

/// What became of it.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub err: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Whether it has got as far as to speak with somebody, which is the host.
    pub fn is_connected(&self) -> bool {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).into_iter().flatten();
        let links = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.into_iter().any(|link| link.to_string_lossy().starts_with("socket:"))
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    #[track_caller]
    pub fn end(self) -> Ended {
        self.end_within(SOON)
    }

    #[track_caller]
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let ended = agentbox_e2e::wait::try_eventually(limit, || match self.0.try_wait() {
            Ok(Some(_)) => Ok(()),
            _ => Err(()),
        });
        if ended.is_err() {
            let _ = self.0.kill();
        }
        let output = self.0.wait_with_output().unwrap();
        let err = text(&output.stdout) + &text(&output.stderr);
        assert!(ended.is_ok(), "the command did not end within {limit:?}; it said: {err}");
        Ended { code: output.status.code(), err }
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the programs under test are.
fn bin() -> PathBuf {
    match std::env::var_os("AGENTBOX_BIN") {
        Some(dir) => dir.into(),
        None => {
            panic!("AGENTBOX_BIN says where agentbox and agentbox-desktop are; run scripts/test")
        }
    }
}

/// The engine, as the programs under test find it.
pub async fn docker() -> Option<Docker> {
    match std::env::var("DOCKER_HOST") {
        Ok(host) => engine_at(&host).await,
        Err(_) => Docker::connect_with_unix_defaults().ok()?.negotiate_version().await.ok(),
    }
}

async fn engine_at(host: &str) -> Option<Docker> {
    let socket = host.trim_start_matches("unix://");
    let docker = Docker::connect_with_unix(socket, 60, bollard::API_DEFAULT_VERSION);
    docker.ok()?.negotiate_version().await.ok()
}

/// Removes an image that only one test needed.
pub fn remove_image(tag: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Some(docker) = docker().await else { return };
        let _ = docker.remove_image(tag, None::<query::RemoveImageOptions>, None).await;
    });
}
