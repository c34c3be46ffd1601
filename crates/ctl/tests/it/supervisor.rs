//! The real supervisor with real processes, outside a box. Each has its own folder and ports.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const CTL: &str = env!("CARGO_BIN_EXE_agentbox-ctl");
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Supervisor {
    pub dir: tempfile::TempDir,
    pub daemon: Child,
    web: u16,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A service that listens, after a while, and answers with a status.
pub fn server(port: u16, host: &str, after: &str, status: &str) -> String {
    format!(
        "sleep {after}; exec perl -MIO::Socket::IP -e '$s = IO::Socket::IP->new(LocalHost => \
         \"{host}\", LocalPort => {port}, Listen => 9, ReuseAddr => 1) or die $!; \
         while ($c = $s->accept) {{ $_ = <$c>; while (defined($l = <$c>) && $l =~ /\\S/) {{}} \
         print $c \"HTTP/1.1 {status} X\\r\\nContent-Length: 5\\r\\n\\r\\nhello\"; close $c }}'"
    )
}

impl Supervisor {
    pub fn new(yaml: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("agentbox.yaml"), yaml).unwrap();
        Self::in_dir(dir)
    }

    fn in_dir(dir: tempfile::TempDir) -> Self {
        Self::by(Path::new(CTL), dir)
    }

    /// Run by another program.
    pub fn by(program: &Path, dir: tempfile::TempDir) -> Self {
        let web = free_port();
        let daemon = Self::command(program, &dir, web).spawn().unwrap();
        let one = Self { dir, daemon, web };
        one.eventually("it answers", || UnixStream::connect(one.socket()).is_ok());
        one
    }

    /// Another one after it has gone.
    pub fn again(&mut self, program: &Path) {
        self.daemon = Self::command(program, &self.dir, self.web).spawn().unwrap();
        self.eventually("it answers", || UnixStream::connect(self.socket()).is_ok());
    }

    fn command(program: &Path, dir: &tempfile::TempDir, web: u16) -> Command {
        let at = |name: &str| dir.path().join(name);
        let mut command = Command::new(program);
        command.arg("daemon").arg("--socket").arg(at("run/ctl.sock"));
        command.arg("--log-dir").arg(at("log")).arg("--state-dir").arg(at("lib"));
        command.arg("--workspace").arg(dir.path()).stdin(Stdio::null());
        command.env("AGENTBOX_WEB_PROXY_PORT", web.to_string()).env("HOME", dir.path());
        command.env("AGENTBOX_BRIDGE_TOKEN", "secret").env("AGENTBOX_RELAY_TOKEN", "secret");
        command.env_remove("AGENTBOX_BOX_ID");
        command
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("run/ctl.sock")
    }

    fn write(&self, yaml: &str) {
        fs::write(self.dir.path().join("agentbox.yaml"), yaml).unwrap();
    }

    fn ask(&self, ask: &Value) -> Value {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("{ask}\n").as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{ask}: {e}: {line}"))
    }

    pub fn good(&self, ask: &Value) -> Value {
        let mut answer = self.ask(ask);
        assert_eq!(answer["ok"], true, "{ask}: {answer}");
        answer["data"].take()
    }

    pub fn unit(&self, name: &str) -> Value {
        let status = self.good(&json!({ "op": "status" }));
        let all = status["services"].as_array().unwrap().iter();
        let mut all = all.chain(status["tasks"].as_array().unwrap());
        all.find(|unit| unit["name"] == name).cloned().unwrap_or(Value::Null)
    }

    pub fn state(&self, name: &str) -> String {
        self.unit(name)["state"].as_str().unwrap_or_default().to_owned()
    }

    pub fn until(&self, name: &str, state: &str) -> Value {
        self.eventually(&format!("{name} is {state}"), || self.state(name) == state);
        self.unit(name)
    }

    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(format!("log/{name}.log"))).unwrap_or_default()
    }

    pub fn ctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(CTL);
        command.args(args).arg("--socket").arg(self.socket());
        command.output().unwrap()
    }

    #[track_caller]
    pub fn eventually(&self, what: &str, so: impl FnMut() -> bool) {
        self.eventually_within(PATIENCE, what, so);
    }

    #[track_caller]
    pub fn eventually_within(&self, patience: Duration, what: &str, mut so: impl FnMut() -> bool) {
        let end = Instant::now() + patience;
        while !so() {
            if Instant::now() >= end {
                let mut logs = String::new();
                for entry in
                    fs::read_dir(self.dir.path().join("log")).into_iter().flatten().flatten()
                {
                    logs += &format!("{}:\n", entry.file_name().display());
                    logs += &fs::read_to_string(entry.path()).unwrap_or_default();
                }
                panic!("{what}: not so\n{logs}");
            }
            std::thread::sleep(Duration::from_millis(15));
        }
    }

    /// Whether a process of this supervisor has this in its command line.
    fn runs(&self, what: &str) -> bool {
        let own = format!("AGENTBOX_SUPERVISOR={}", self.socket().display());
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            line.contains(what) && String::from_utf8_lossy(&read("environ")).contains(&own)
        })
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.daemon.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub fn stop(&mut self) -> Option<i32> {
        self.signal("-TERM");
        self.daemon.wait().unwrap().code()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Ok(None) = self.daemon.try_wait() {
            self.stop();
        }
    }
}

#[test]
fn yaml_13_01_02_08_a_file_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agentbox.yaml");
    let check = |more: &[&str]| {
        let mut command = Command::new(CTL);
        command.arg("validate").arg(&file).args(more).output().unwrap()
    };
    let none = check(&[]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8(none.stderr).unwrap().contains("not found"));
    fs::write(&file, "").unwrap();
    let empty = check(&[]);
    assert_eq!(empty.status.code(), Some(0));
    assert_eq!(empty.stdout, b"OK: 0 service(s), 0 task(s)\n");
    fs::write(&file, "services:\n  web: {command: x, restartt: never}\n").unwrap();
    let warned = check(&[]);
    assert_eq!(warned.status.code(), Some(0));
    let said = String::from_utf8(warned.stderr).unwrap();
    assert!(said.lines().count() == 1 && said.contains("restart"), "{said}");
    assert_eq!(check(&["--strict"]).status.code(), Some(2));
}

#[test]
fn yaml_13_12_13_failed_needs_hold_and_a_later_success_lets_go() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'test -e ok || exit 7'}\n  after: {command: echo after, needs: [t]}\n\
         services:\n  web: {command: sleep 1000, needs: [t]}\n",
    );
    let failed = s.until("t", "failed");
    assert_eq!(failed["lastExitCode"], 7);
    let skipped = s.until("after", "skipped");
    assert_eq!((&skipped["lastExitCode"], &skipped["failedDeps"]), (&Value::Null, &json!(["t"])));
    let held = s.until("web", "waiting");
    assert_eq!((&held["failedDeps"], &held["blockedOn"]), (&json!(["t"]), &json!(["t"])));
    let waited = s.good(&json!({ "op": "wait-ready", "timeoutMs": 50_000 }));
    assert_eq!(waited["ready"], false);
    assert!(waited["failed"].as_array().unwrap().contains(&json!("t")), "{waited}");
    fs::write(s.dir.path().join("ok"), "").unwrap();
    let output = s.ctl(&["run-task", "t", "--wait"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    s.until("after", "done");
    s.until("web", "running");
    let waited = s.ctl(&["wait-ready", "--timeout", "30000"]);
    assert_eq!((waited.status.code(), &*waited.stdout), (Some(0), &b"ready\n"[..]));
}

#[test]
fn yaml_13_14_independent_tasks_run_side_by_side() {
    let begun = "date +%s%N > $AGENTBOX_UNIT.begun; sleep 0.8; date +%s%N > $AGENTBOX_UNIT.ended";
    let s = Supervisor::new(&format!(
        "tasks:\n  a: {{command: '{begun}'}}\n  b: {{command: '{begun}'}}\n"
    ));
    s.until("a", "done");
    s.until("b", "done");
    let at = |name: &str| -> u128 {
        fs::read_to_string(s.dir.path().join(name)).unwrap().trim().parse().unwrap()
    };
    assert!(at("a.begun") < at("b.ended") && at("b.begun") < at("a.ended"));
}

#[test]
fn yaml_13_15_what_does_not_start_by_itself_is_started_with_its_needs() {
    let s = Supervisor::new(
        "services:\n  db: {command: sleep 1000, autostart: false}\n\
         \x20 web: {command: sleep 1000, autostart: false, needs: [db]}\n",
    );
    assert_eq!(s.good(&json!({ "op": "wait-ready" }))["ready"], true);
    assert_eq!((s.state("db").as_str(), s.state("web").as_str()), ("pending", "pending"));
    let output = s.ctl(&["start", "web"]);
    assert!(output.status.success(), "{output:?}");
    s.until("web", "running");
    assert_eq!(s.state("db"), "running");
    assert_eq!(s.ctl(&["start", "nosuch"]).status.code(), Some(1));
    assert_eq!(s.ctl(&["wait-ready", "--units", "nosuch"]).status.code(), Some(2));
}

#[test]
fn started_now_a_service_does_not_wait_for_its_needs() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: exit 7}\n\
         services:\n  db: {command: sleep 1000, autostart: false}\n\
         \x20 web: {command: sleep 1000, autostart: false, needs: [db, t]}\n",
    );
    s.until("t", "failed");
    let held = s.ctl(&["start", "web"]);
    assert_eq!(String::from_utf8(held.stdout).unwrap(), "web: waiting for t\n");
    s.good(&json!({ "op": "stop", "service": "db" }));
    let started = s.ctl(&["start", "web", "--now"]);
    let said = String::from_utf8(started.stdout).unwrap();
    assert!(said.starts_with("web: running (pid "), "{said}");
    assert_eq!(s.state("db"), "stopped");
    // The next time it waits as before.
    let held = s.ctl(&["restart", "web"]);
    assert!(String::from_utf8(held.stdout).unwrap().starts_with("web: waiting for db, t"));
}

#[test]
fn whoever_is_patient_waits_for_what_has_failed() {
    let s = Supervisor::new("tasks:\n  t: {command: test -e ok}\n  slow: {command: sleep 1000}\n");
    s.until("t", "failed");
    let began = Instant::now();
    let waited = s.ctl(&["wait-ready", "--no-fail-fast", "--timeout", "700"]);
    assert!(began.elapsed() >= Duration::from_millis(700));
    assert_eq!(waited.status.code(), Some(1));
    let said = String::from_utf8(waited.stdout).unwrap();
    assert_eq!(said, "not ready\nfailed: t\ntimed out: slow\n");
    let mut waiting = Command::new(CTL);
    waiting.args(["wait-ready", "--no-fail-fast", "--units", "t"]);
    let waiting = waiting.arg("--socket").arg(s.socket()).stdout(Stdio::piped());
    let mut waiting = waiting.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(waiting.try_wait().unwrap().is_none());
    fs::write(s.dir.path().join("ok"), "").unwrap();
    s.good(&json!({ "op": "run-task", "name": "t" }));
    let waited = waiting.wait_with_output().unwrap();
    assert_eq!((waited.status.code(), &*waited.stdout), (Some(0), &b"ready\n"[..]));
}

#[test]
fn yaml_13_16_what_cannot_be_started_says_so_at_once() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: [no-such-binary]}\n\
         services:\n  s: {command: [no-such-binary], restart: never}\n\
         \x20 c: {command: sleep 1000, cwd: does/not/exist, restart: never}\n",
    );
    assert_eq!(s.until("t", "failed")["lastExitCode"], -1);
    assert_eq!(s.until("s", "crashed")["lastExitCode"], -1);
    s.until("c", "crashed");
    assert!(s.log("t").contains("no-such-binary"), "{}", s.log("t"));
    assert!(s.log("c").contains("does/not/exist"), "{}", s.log("c"));
}

#[test]
fn yaml_13_19_22_restarts_have_rules() {
    let s = Supervisor::new(
        "services:\n  well: {command: 'true', restart: never}\n  bad: {command: 'false', restart: never}\n\
         \x20 often: {command: exit 3, backoff: {initial_ms: 10, max_ms: 20, max_attempts: 3}}\n\
         \x20 always: {command: 'true', restart: always, \
         backoff: {initial_ms: 10, max_ms: 20, max_attempts: 3}}\n",
    );
    let always = s.until("always", "crashed");
    assert_eq!((&always["restarts"], &always["lastExitCode"]), (&json!(3), &json!(0)));
    assert_eq!(s.until("well", "stopped")["restarts"], 0);
    assert_eq!(s.until("bad", "crashed")["restarts"], 0);
    let often = s.until("often", "crashed");
    assert_eq!((&often["restarts"], &often["lastExitCode"]), (&json!(3), &json!(3)));
    let waited = s.ctl(&["wait-ready", "--units", "often", "--timeout", "60000", "--json"]);
    assert_eq!(waited.status.code(), Some(1));
    let waited: Value = serde_json::from_slice(&waited.stdout).unwrap();
    assert_eq!(waited, json!({ "ready": false, "failed": ["often"] }));
}

#[test]
fn yaml_13_20_21_everything_a_service_started_ends_with_it() {
    let s = Supervisor::new(
        "services:\n  a: {command: 'sleep 4711 & setsid sleep 4712 & wait'}\n\
         \x20 deaf: {command: 'trap \"\" TERM; sleep 4713 & while :; do wait; sleep 1; done', \
         stop_grace_ms: 300, ready_when: {port: 1, timeout_ms: 300}}\n",
    );
    s.eventually("it runs", || s.runs("sleep 4711") && s.runs("sleep 4712"));
    let stopped = s.good(&json!({ "op": "stop", "service": "a" }));
    assert_eq!(stopped["state"], "stopped");
    assert!(!s.runs("sleep 4711") && !s.runs("sleep 4712"));
    let deaf = s.until("deaf", "backoff");
    assert_eq!(deaf["lastSignal"], 9);
    assert!(s.log("deaf").contains("[ctl] not ready after 300 ms"), "{}", s.log("deaf"));
    s.good(&json!({ "op": "stop", "service": "deaf" }));
    assert!(!s.runs("sleep 4713"));
}

#[test]
fn a_killed_service_leaves_nobody_behind_and_comes_back() {
    let s = Supervisor::new(
        "services:\n  a: {command: 'sleep 4721 & wait', backoff: {initial_ms: 50}}\n",
    );
    let first = s.until("a", "running")["pid"].as_i64().unwrap();
    s.eventually("it runs", || s.runs("sleep 4721"));
    // The first process alone: the one it started keeps the group alive.
    assert!(Command::new("kill").args(["-9", &first.to_string()]).status().unwrap().success());
    s.eventually("it is another one", || {
        let unit = s.unit("a");
        unit["state"] == "running" && unit["pid"] != first && unit["restarts"] == 1
    });
    s.eventually("there is one", || count(&s, "sleep 4721") == 1);
    let second = s.unit("a")["pid"].as_i64().unwrap();
    assert!(
        Command::new("kill").args(["-9", "--", &format!("-{second}")]).status().unwrap().success()
    );
    s.eventually("it is a third", || s.unit("a")["restarts"] == 2 && s.state("a") == "running");
    s.eventually("there is one", || count(&s, "sleep 4721") == 1);
}

/// Processes of a supervisor that are exactly this.
fn count(s: &Supervisor, line: &str) -> usize {
    let own = format!("AGENTBOX_SUPERVISOR={}", s.socket().display());
    let is = |entry: &fs::DirEntry| {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        String::from_utf8_lossy(&read("cmdline")).replace('\0', " ").trim() == line
            && String::from_utf8_lossy(&read("environ")).contains(&own)
    };
    fs::read_dir("/proc").unwrap().flatten().filter(is).count()
}

#[test]
fn a_killed_supervisor_leaves_nothing_that_runs_twice() {
    let mut s = Supervisor::new("services:\n  a: {command: sleep 4731}\n");
    s.eventually("it runs", || count(&s, "sleep 4731") == 1);
    s.signal("-KILL");
    s.daemon.wait().unwrap();
    assert_eq!(count(&s, "sleep 4731"), 1);
    s.again(Path::new(CTL));
    s.eventually("it answers", || {
        UnixStream::connect(s.socket()).is_ok() && s.state("a") == "running"
    });
    s.eventually("there is one", || count(&s, "sleep 4731") == 1);
    s.stop();
    assert_eq!(count(&s, "sleep 4731"), 0);
}

#[test]
fn yaml_13_10_23_units_see_their_own_environment_and_no_keys() {
    let s = Supervisor::new("tasks:\n  t: {command: env, env: {V: 3.10}}\n");
    s.until("t", "done");
    let log = s.log("t");
    assert!(log.contains("\tstdout\tV=3.10\n") && log.contains("\tPATH=/"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn yaml_13_24_25_26_a_reload_changes_what_changed() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'trap \"sleep 0.3; echo old ended >> order; exit 0\" TERM; sleep 4741 & wait'}\n\
         services:\n  same: {command: sleep 4742}\n  gone: {command: sleep 4743}\n",
    );
    s.until("t", "running");
    let same = s.until("same", "running")["pid"].clone();
    s.eventually("all run", || s.runs("sleep 4741") && s.runs("sleep 4743"));
    s.write("services: {web: {}}");
    let bad = s.ask(&json!({ "op": "reload" }));
    assert_eq!((&bad["ok"], &bad["code"]), (&json!(false), &json!("invalid_config")));
    assert!(bad["error"].as_str().unwrap().contains("Y011"), "{bad}");
    assert_eq!(s.unit("same")["pid"], same);
    assert_eq!(s.state("t"), "running");
    s.write(
        "tasks:\n  t: {command: echo new began >> order}\nservices:\n  same: {command: sleep 4742}\n\
         \x20 more: {command: sleep 4744}\n",
    );
    let output = s.ctl(&["reload"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "added: more\nremoved: gone\nchanged: t\n");
    s.until("t", "done");
    s.eventually("it is gone", || !s.runs("sleep 4743") && !s.runs("sleep 4741"));
    let order = fs::read_to_string(s.dir.path().join("order")).unwrap();
    assert_eq!(order, "old ended\nnew began\n");
    assert_eq!(s.unit("same")["pid"], same);
    assert_eq!(s.unit("gone"), Value::Null);
}

#[test]
fn yaml_13_26_a_bad_file_leaves_a_supervisor_that_can_be_told() {
    let s = Supervisor::new("services: {web: {}}\n");
    let status = s.good(&json!({ "op": "status" }));
    assert!(status["configError"].as_str().unwrap().contains("Y011"), "{status}");
    assert_eq!(s.ask(&json!({ "op": "wait-ready" }))["code"], "invalid_config");
    s.write("services: {web: {command: sleep 1000}}\n");
    s.good(&json!({ "op": "reload" }));
    s.until("web", "running");
    assert_eq!(s.good(&json!({ "op": "status" }))["configError"], Value::Null);
}

/// Supervisors on this one's socket.
fn daemons(s: &Supervisor) -> Vec<u32> {
    let line = format!("\0daemon\0--socket\0{}\0", s.socket().display());
    let pid = |entry: fs::DirEntry| {
        let text = fs::read(entry.path().join("cmdline")).ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        String::from_utf8_lossy(&text).contains(&line).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(pid).collect()
}

#[test]
fn yaml_13_27_28_there_is_one_supervisor() {
    let s = Supervisor::new(&format!(
        "tasks:\n  t: {{command: '{CTL} status --json --socket run/ctl.sock', env: {{AGENTBOX: 1}}}}\n"
    ));
    assert_eq!(s.until("t", "done")["lastExitCode"], 0);
    assert_eq!(daemons(&s), [s.daemon.id()]);
    let second = Supervisor::command(Path::new(CTL), &s.dir, s.web).output().unwrap();
    assert_eq!(second.status.code(), Some(0));
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(said, format!("already running (pid {})\n", s.daemon.id()));
    assert_eq!(daemons(&s), [s.daemon.id()]);
    assert_eq!(s.good(&json!({ "op": "ping" })), "pong");
    let hello = s.good(&json!({ "op": "hello" }));
    assert_eq!((&hello["proto"], &hello["pid"]), (&json!(1), &json!(s.daemon.id())));
}

#[test]
fn yaml_13_29_30_a_port_makes_ready_and_others_wait_for_it() {
    let (a, b) = (free_port(), free_port());
    let s = Supervisor::new(&format!(
        "services:\n  db: {{command: {:?}, ready_when: {{port: {a}, interval_ms: 50}}}}\n\
         \x20 six: {{command: {:?}, ready_when: {{port: {b}, interval_ms: 50}}}}\n\
         tasks:\n  after: {{command: 'date -u +%FT%T.%3NZ > began', needs: [db, six]}}\n",
        server(a, "127.0.0.1", "0.3", "200"),
        server(b, "::1", "0.1", "200"),
    ));
    s.until("after", "done");
    let began = fs::read_to_string(s.dir.path().join("began")).unwrap();
    for name in ["db", "six"] {
        let unit = s.unit(name);
        assert_eq!(unit["state"], "ready");
        let ready = unit["readyAt"].as_str().unwrap();
        assert!(ready > unit["startedAt"].as_str().unwrap(), "{unit}");
        assert!(began.trim() >= ready, "{began}: {unit}");
    }
    let ports = s.good(&json!({ "op": "status" }))["ports"].clone();
    assert!(ports.as_array().unwrap().contains(&json!({ "port": a, "service": "db" })), "{ports}");
}

#[test]
fn yaml_13_31_redirects_count_only_when_they_are_expected() {
    let (a, b) = (free_port(), free_port());
    let s = Supervisor::new(&format!(
        "services:\n  good: {{command: {:?}, ready_when: {{http: 'http://127.0.0.1:{a}/x', \
         expect_status: 302, interval_ms: 50}}}}\n\
         \x20 bad: {{command: {:?}, ready_when: {{http: 'http://localhost:{b}/x', interval_ms: 50, \
         timeout_ms: 700, on_timeout: mark_unhealthy}}}}\n",
        server(a, "127.0.0.1", "0", "302"),
        server(b, "127.0.0.1", "0", "302"),
    ));
    s.until("good", "ready");
    s.until("bad", "unhealthy");
}

#[test]
fn yaml_13_32_an_unhealthy_service_may_recover() {
    let port = free_port();
    let s = Supervisor::new(&format!(
        "services:\n  slow: {{command: {:?}, ready_when: {{port: {port}, interval_ms: 50, \
         timeout_ms: 200, on_timeout: mark_unhealthy}}}}\n  web: {{command: sleep 1000, needs: [slow]}}\n",
        server(port, "127.0.0.1", "1", "200"),
    ));
    s.until("slow", "unhealthy");
    assert_eq!(s.state("web"), "waiting");
    s.until("slow", "ready");
    s.until("web", "running");
}

#[test]
fn yaml_13_33_lines_are_matched_whole_and_without_colours() {
    let s = Supervisor::new(
        "services:\n  a: {command: 'printf \"\\033[32mre\"; sleep 0.2; printf \"ady\\033[0m\\n\"; sleep 1000', \
         ready_when: {log_match: '^ready$'}}\n\
         \x20 prompt: {command: 'printf \"listening> \"; sleep 1000', ready_when: {log_match: 'listening'}}\n",
    );
    s.until("a", "ready");
    s.until("prompt", "ready");
}

#[test]
fn a_port_that_is_left_over_makes_nobody_ready() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let s = Supervisor::new(&format!(
        "services:\n  web: {{command: {:?}, ready_when: {{port: {port}, interval_ms: 50}}, \
         backoff: {{initial_ms: 100}}}}\n",
        server(port, "127.0.0.1", "0.4", "200"),
    ));
    let wanted = format!("port {port} already in use by pid {}", std::process::id());
    s.eventually("it is said", || s.log("web").contains(&wanted));
    assert_ne!(s.state("web"), "ready");
    drop(held);
    s.until("web", "ready");
}

#[test]
fn yaml_13_37_the_web_address_leads_to_the_exposed_service() {
    let port = free_port();
    let s = Supervisor::new("services:\n  web: {command: sleep 1000}\n");
    s.until("web", "running");
    assert!(TcpStream::connect(("127.0.0.1", s.web)).is_err());
    s.write(&format!(
        "services:\n  web: {{command: {:?}, ready_when: {{port: {port}}}, expose: {{port: {port}}}}}\n",
        server(port, "127.0.0.1", "1", "200"),
    ));
    s.good(&json!({ "op": "reload" }));
    let get = || {
        let mut stream = TcpStream::connect(("127.0.0.1", s.web)).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    let mut first = None;
    s.eventually("somebody answers", || {
        first = get();
        first.is_some()
    });
    let first = first.unwrap();
    assert!(first.starts_with("HTTP/1.1 503") && first.contains("Retry-After: 1"), "{first}");
    s.until("web", "ready");
    assert!(get().unwrap().ends_with("hello"));
    let status = s.good(&json!({ "op": "status" }));
    assert_eq!(status["webProxy"]["state"], "listening");
}

/// A service that says every line back.
fn echo(port: u16) -> String {
    format!(
        "exec perl -MIO::Socket::IP -e '$s = IO::Socket::IP->new(LocalHost => \"127.0.0.1\", \
         LocalPort => {port}, Listen => 9, ReuseAddr => 1) or die $!; \
         while ($c = $s->accept) {{ $c->autoflush(1); print $c $_ while <$c> }}'"
    )
}

#[test]
fn a_connection_to_the_web_address_outlives_a_reload() {
    let port = free_port();
    let yaml = format!(
        "services:\n  web: {{command: {:?}, ready_when: {{port: {port}}}, expose: {{port: {port}}}}}\n",
        echo(port)
    );
    let s = Supervisor::new(&format!("{yaml}  other: {{command: sleep 4781}}\n"));
    let web = s.until("web", "ready")["pid"].clone();
    let mut stream = TcpStream::connect(("127.0.0.1", s.web)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut say = |word: &str| {
        writeln!(stream, "{word}").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), word);
    };
    say("before");
    s.write(&format!("{yaml}  other: {{command: sleep 4782}}\n  more: {{command: sleep 4783}}\n"));
    let done = s.good(&json!({ "op": "reload" }));
    assert_eq!(done, json!({ "added": ["more"], "removed": [], "changed": ["other"] }));
    s.until("more", "running");
    say("after");
    assert_eq!(s.unit("web")["pid"], web);
}

#[test]
fn yaml_13_39_40_41_done_once_is_done() {
    let yaml = |command: &str| {
        format!(
            "tasks:\n  install: {{command: '{command}', run_once: true}}\n\
             \x20 good: {{command: echo ran >> good, run_once: {{check: echo looking; test -e fine}}}}\n\
             \x20 inputs: {{command: echo ran >> inputs, run_once: {{inputs: [lock]}}}}\n"
        )
    };
    let install = "echo ran >> install; test ! -e broken";
    let mut s = Supervisor::new(&yaml(install));
    for name in ["install", "good", "inputs"] {
        s.until(name, "done");
    }
    let marker = s.dir.path().join("lib/tasks/install");
    assert_eq!(fs::read_to_string(&marker).unwrap().len(), 65);
    assert!(!s.dir.path().join("lib/tasks/good").exists());
    assert!(s.log("good").contains("[check] looking"), "{}", s.log("good"));
    let again = |s: &mut Supervisor| {
        s.stop();
        s.again(Path::new(CTL));
        s.eventually("it answers", || UnixStream::connect(s.socket()).is_ok());
    };
    let ran = |s: &Supervisor, name: &str| {
        fs::read_to_string(s.dir.path().join(name)).unwrap_or_default().lines().count()
    };
    fs::write(s.dir.path().join("fine"), "").unwrap();
    fs::write(s.dir.path().join("lock"), "2").unwrap();
    again(&mut s);
    assert_eq!(s.until("install", "done")["skipReason"], "marker matches");
    assert_eq!(s.until("good", "done")["skipReason"], "check passed");
    s.until("inputs", "done");
    assert_eq!((ran(&s, "install"), ran(&s, "good"), ran(&s, "inputs")), (1, 1, 2));
    assert!(s.log("install").contains("\tstdout\t[ctl] not run: marker matches"));
    // Not forced it stays done; forced and failed it is to be done again.
    assert_eq!(s.ctl(&["run-task", "install", "--wait"]).status.code(), Some(0));
    assert_eq!(ran(&s, "install"), 1);
    fs::write(s.dir.path().join("broken"), "").unwrap();
    assert_eq!(s.ctl(&["run-task", "install", "--force", "--wait"]).status.code(), Some(1));
    assert_eq!(ran(&s, "install"), 2);
    assert!(!marker.exists());
    fs::remove_file(s.dir.path().join("broken")).unwrap();
    again(&mut s);
    s.until("install", "done");
    assert_eq!(ran(&s, "install"), 3);
    s.write(&yaml("echo ran >> install"));
    s.good(&json!({ "op": "reload" }));
    s.eventually("a changed one runs", || ran(&s, "install") == 4);
}

#[test]
fn yaml_13_39_who_sees_done_finds_the_mark() {
    let s = Supervisor::new("tasks:\n  t: {command: sleep 0.5, run_once: true}\n");
    let mut stream = UnixStream::connect(s.socket()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"{\"op\":\"subscribe\"}\n").unwrap();
    for line in BufReader::new(stream).lines() {
        let change: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if change["state"] == "done" {
            assert_eq!((&change["unit"], &change["kind"]), (&json!("t"), &json!("task")));
            break;
        }
    }
    assert!(s.dir.path().join("lib/tasks/t").exists());
}

#[test]
fn a_task_has_its_time_and_a_deaf_one_is_killed() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'trap \"\" TERM; sleep 4751 & while :; do wait; sleep 1; done', timeout_ms: 200}\n",
    );
    let task = s.until("t", "failed");
    assert_eq!(task["lastExitCode"], 124);
    assert!(!s.runs("sleep 4751"));
    assert!(s.log("t").contains("[ctl] took longer than 200 ms"), "{}", s.log("t"));
}

#[test]
fn running_a_task_shows_what_it_says_and_ends_as_it_does() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'echo one; echo two >&2; exit 5'}\n  noisy: {command: 'seq 1 3000'}\n",
    );
    s.until("t", "failed");
    let output = s.ctl(&["run-task", "t", "--wait"]);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "one\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "two\nt: failed\n");
    s.until("noisy", "done");
    let output = s.ctl(&["run-task", "noisy", "--wait", "--force"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3000);
    let logs = s.ctl(&["logs", "noisy", "-n", "2"]);
    let text = String::from_utf8(logs.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].ends_with(" O 3000") && lines[1].ends_with(" E [ctl] exited with code 0"),
        "{text}"
    );
    for bad in [&["logs", "../x"][..], &["logs", "nosuch"], &["run-task", "nosuch"]] {
        assert_eq!(s.ctl(bad).status.code(), Some(1), "{bad:?}");
    }
    assert_eq!(s.ctl(&["logs"]).status.code(), Some(2));
    assert_eq!(s.ctl(&["status", "--nosuch"]).status.code(), Some(2));
}

#[test]
fn a_task_is_followed_from_run_to_run() {
    let s = Supervisor::new(
        "tasks:\n  t: {command: 'echo one; until test -e go; do sleep 0.02; done; echo two >&2'}\n",
    );
    s.eventually("it begins", || s.log("t").contains("one"));
    let mut command = Command::new(CTL);
    command.args(["logs", "t", "-f", "--socket"]).arg(s.socket());
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap().split_once(' ').unwrap().1.to_owned();
    assert_eq!(next(), "O one");
    fs::write(s.dir.path().join("go"), "").unwrap();
    assert_eq!([next(), next()], ["E two", "E [ctl] exited with code 0"]);
    s.until("t", "done");
    s.good(&json!({ "op": "run-task", "name": "t", "force": true }));
    assert_eq!([next(), next()], ["O one", "E two"]);
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn a_stop_is_in_order_and_leaves_nothing() {
    let trap =
        |name: &str| format!("trap \"echo {name} >> order; exit 0\" TERM; sleep 4761 & wait");
    let mut s = Supervisor::new(&format!(
        "services:\n  db: {{command: '{}'}}\n  api: {{command: '{}', needs: [db]}}\n\
         \x20 web: {{command: '{}', needs: [api]}}\ntasks:\n  t: {{command: sleep 4762}}\n",
        trap("db"),
        trap("api"),
        trap("web"),
    ));
    s.until("web", "running");
    s.eventually("all run", || count(&s, "sleep 4761") == 3 && s.runs("sleep 4762"));
    assert_eq!(s.stop(), Some(0));
    let order = fs::read_to_string(s.dir.path().join("order")).unwrap();
    assert_eq!(order, "web\napi\ndb\n");
    assert!(!s.runs("sleep 476"));
    assert!(!s.socket().exists());
}

#[test]
fn ten_idle_services_cost_little_memory_and_no_time() {
    let services: String = (0..10).map(|n| format!("  s{n}: {{command: sleep 4771}}\n")).collect();
    let s = Supervisor::new(&format!("services:\n{services}"));
    s.until("s9", "running");
    let proc = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", s.daemon.id())).unwrap();
    let ticks = || {
        let stat = proc("stat");
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let switches = || -> u64 {
        let mut all = 0;
        for task in fs::read_dir(format!("/proc/{}/task", s.daemon.id())).unwrap().flatten() {
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
            all += line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
        }
        all
    };
    s.eventually("it does nothing for two seconds", || {
        let (before, switched) = (ticks(), switches());
        std::thread::sleep(Duration::from_secs(2));
        (ticks(), switches()) == (before, switched)
    });
    let rss = proc("status");
    let rss = rss.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
    eprintln!("ten services: {rss}");
}
