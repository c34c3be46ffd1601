//! A project's tasks and services in its boxes: they come up in order once the box has its files, stay
//! up, and end with it.

use crate::world::{SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or, in_time};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A web server that says something.
const SERVER: &str = r#"use IO::Socket::INET;
my ($port, $says) = @ARGV;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 50, ReuseAddr => 1) or die $!;
$| = 1; print "listening\n";
while (1) { my $c = $s->accept or next; while (my $l = <$c>) { last if $l !~ /\S/ }
  print $c "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($says) . "\r\n\r\n$says"; close $c }
"#;

fn world(yaml: &str) -> (World, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut world = World::bare();
    world.configure(&format!("proxy: {{port: {port}}}\n"));
    world.start_serve();
    fs::write(world.project().join("server.pl"), SERVER).unwrap();
    fs::write(world.project().join("agentbox.yaml"), yaml).unwrap();
    (world, port)
}

fn status(world: &World, name: &str) -> Value {
    let said = world.in_box(name, "agentbox-ctl status --json");
    serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"))
}

fn unit(world: &World, name: &str, unit: &str) -> Value {
    let status = status(world, name);
    let all = status["services"].as_array().unwrap().iter();
    let mut all = all.chain(status["tasks"].as_array().unwrap());
    all.find(|one| one["name"] == unit).cloned().unwrap_or_default()
}

#[track_caller]
fn until(world: &World, name: &str, which: &str, state: &str) -> Value {
    eventually_or(SOON, &format!("{which} is {state}"), || {
        let unit = unit(world, name, which);
        if unit["state"] == state { Ok(unit) } else { Err(unit.to_string()) }
    })
}

fn ask(port: u16, host: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    stream.set_read_timeout(Some(SOON)).unwrap();
    let _ = write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

#[test]
fn a_project_comes_up_in_order_and_is_reached_by_its_address() {
    let yaml = "tasks:
  install: {command: 'echo installed >> installed; sleep 0.3', run_once: true}
  env: {command: 'echo \"PORT=3000\" > .env', needs: [install]}
services:
  web:
    command: . ./.env && exec perl server.pl $PORT hello-from-$AGENTBOX_BOX_NAME
    needs: [env]
    ready_when: {port: 3000, interval_ms: 100}
    expose: {port: 3000}
";
    let (world, port) = world(yaml);
    world.create("upward");
    assert_eq!(world.ok(&["wait", "upward", "--timeout", "120s"]), "ready\n");
    let web = unit(&world, "upward", "web");
    assert_eq!(web["state"], "ready");
    eventually_or(SOON, "the page", || {
        let answer = ask(port, &format!("upward.localhost:{port}"));
        if answer.ends_with("hello-from-upward") { Ok(()) } else { Err(answer) }
    });
    // The host knows without asking, and shows it.
    let shown = eventually_or(SOON, "the host knows", || {
        let shown = world.ok(&["status", "upward"]);
        let so = shown.contains("TASKS") && shown.contains("SERVICES") && shown.contains("ready");
        if so { Ok(shown) } else { Err(shown) }
    });
    assert!(shown.contains("BLOCKED ON") && shown.contains("install"), "{shown}");
    let listed = world.ok(&["services", "list", "upward"]);
    assert!(
        listed.contains("web") && listed.contains("ready") && listed.contains("3000"),
        "{listed}"
    );
    let log = world.ok(&["logs", "upward", "web"]);
    assert!(log.contains(" O listening"), "{log}");
    // It runs as the box user, with all of that user's groups.
    let owner = world.box_ok(
        "upward",
        "ps -o user= -p $(pgrep -xf 'agentbox-ctl daemon|/usr/local/bin/agentbox-ctl daemon')",
    );
    assert_eq!(owner, "vscode");

    eventually_or(SOON, "the host knows that the tasks are done", || {
        let known = world.json(&["services", "list", "upward"])["status"].clone();
        let done = known["tasks"].as_array().unwrap().iter().all(|task| task["state"] == "done");
        if done { Ok(()) } else { Err(known) }
    });
    world.ok(&["stop", "upward"]);
    let after = world.json(&["services", "list", "upward"]);
    assert_eq!(after["status"]["tasks"][0]["state"], "done", "{after}");
    world.ok(&["start", "upward"]);
    assert_eq!(world.ok(&["wait", "upward", "--units", "web"]), "ready\n");
    let install = unit(&world, "upward", "install");
    assert_eq!(install["skipReason"], "marker matches");
    assert_eq!(world.box_ok("upward", "cat installed"), "installed");
    assert_eq!(world.ok(&["services", "restart", "upward", "web"]).split(':').next(), Some("web"));
    until(&world, "upward", "web", "ready");
    assert_eq!(world.agentbox(&["wait", "upward", "--units", "nosuch"]).status.code(), Some(2));
    assert_eq!(world.agentbox(&["services", "restart", "upward", "nosuch"]).status.code(), Some(1));
}

/// Root's rights of a process, as the kernel shows them; see capabilities(7).
fn powers(world: &World, name: &str, process: &str) -> Vec<String> {
    let script = format!(
        "sed -n 's/^Cap\\(Inh\\|Prm\\|Eff\\|Amb\\):\\t0*\\(.\\)/\\2/p' /proc/{process}/status"
    );
    world.box_ok(name, &script).lines().map(str::to_owned).collect()
}

#[test]
fn the_supervisor_alone_may_have_port_80_and_needs_no_engines_leave() {
    let yaml = "tasks:
  try: {command: 'grep ^Cap /proc/self/status > caps'}
services:
  web: {command: 'exec perl server.pl 3000 hello', expose: {port: 3000}}
";
    let (world, _) = world(yaml);
    world.create("ported");
    assert_eq!(world.ok(&["wait", "ported", "--timeout", "120s"]), "ready\n");
    let supervisor = world.box_ok("ported", "pgrep -xf '(.*/)?agentbox-ctl daemon'");
    // The one right of its own, and nothing for those it starts.
    assert_eq!(powers(&world, "ported", &supervisor), ["0", "400", "400", "0"]);
    let web = until(&world, "ported", "web", "running")["pid"].to_string();
    assert_eq!(powers(&world, "ported", &web), ["0", "0", "0", "0"]);
    assert_eq!(world.box_ok("ported", "grep -c 'Cap[^B].*:.*[1-9a-f]' caps || true"), "0");
    assert_eq!(status(&world, "ported")["webProxy"]["state"], "listening");
}

#[test]
fn what_is_killed_in_a_box_comes_back_once() {
    let yaml = "services:
  a: {command: 'sleep 5511 & wait', backoff: {initial_ms: 50}}
  deaf: {command: 'trap \"\" TERM; while :; do sleep 1; done', stop_grace_ms: 500}
";
    let (world, _) = world(yaml);
    world.create("phoenix");
    let first = until(&world, "phoenix", "a", "running")["pid"].as_i64().unwrap();
    let count = || world.box_ok("phoenix", "pgrep -fxc 'sleep 5511' || true");
    eventually(SOON, "it runs", || (count() == "1").then_some(()));
    world.box_ok("phoenix", &format!("kill -9 {first}"));
    eventually(SOON, "it is back", || {
        let unit = unit(&world, "phoenix", "a");
        (unit["state"] == "running" && unit["restarts"] == 1).then_some(())
    });
    let second = unit(&world, "phoenix", "a")["pid"].as_i64().unwrap();
    world.box_ok("phoenix", &format!("/bin/kill -9 -- -{second}"));
    eventually(SOON, "it is back", || {
        (unit(&world, "phoenix", "a")["restarts"] == 2).then_some(())
    });
    until(&world, "phoenix", "a", "running");
    eventually_or(SOON, "one is left", || if count() == "1" { Ok(()) } else { Err(count()) });
    // Logs of the box's own daemons are found the same way.
    assert!(world.agentbox(&["logs", "phoenix", "ctl-daemon"]).status.success());
    // The supervisor itself: PID 1 starts it again, and nothing runs twice.
    let daemon = world.box_ok("phoenix", "cat /run/agentbox/supervisor/ctl.lock");
    world.box_ok("phoenix", &format!("kill -9 {daemon}"));
    eventually(SOON, "it is another one", || {
        let now = world.box_ok("phoenix", "cat /run/agentbox/supervisor/ctl.lock");
        (now != daemon && !now.is_empty()).then_some(())
    });
    until(&world, "phoenix", "a", "running");
    eventually_or(SOON, "one is left", || if count() == "1" { Ok(()) } else { Err(count()) });
    let stopped = world.box_ok("phoenix", "agentbox-ctl stop deaf");
    assert_eq!(stopped, "deaf: stopped");
    assert!(world.box_ok("phoenix", "agentbox-ctl logs deaf").contains("it is killed"));
}

#[test]
fn a_bad_file_is_told_and_mended_without_a_restart() {
    let (world, _) = world("services: {}\n");
    world.create("mended");
    world.box_ok("mended", "printf 'services: {web: {}}\\n' > agentbox.yaml");
    let bad = world.in_box("mended", "agentbox-ctl reload");
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("Y011"), "{bad:?}");
    eventually_or(SOON, "the host knows", || {
        let shown = world.ok(&["status", "mended"]);
        if shown.contains("Y011") { Ok(()) } else { Err(shown) }
    });
    // Nor is one that is bad from the start the end of everything.
    world.ok(&["stop", "mended"]);
    world.ok(&["start", "mended"]);
    let error = eventually(SOON, "it is said", || {
        status(&world, "mended")["configError"].as_str().map(str::to_owned)
    });
    assert!(error.contains("agentbox.yaml:1:"), "{error}");
    world.box_ok("mended", "printf 'services: {web: {command: sleep 1000}}\\n' > agentbox.yaml");
    assert!(world.box_ok("mended", "agentbox-ctl reload").starts_with("added: web"));
    until(&world, "mended", "web", "running");
    let checked = world.in_box("mended", "agentbox-ctl validate");
    assert_eq!(text(&checked.stdout), "OK: 1 service(s), 0 task(s)\n");
}

#[test]
fn boxes_16_20_a_stop_is_quick_and_services_hear_of_it() {
    let yaml = "services:
  db: {command: 'trap \"echo db ended >> order; exit\" TERM; touch db.up; sleep 1000 & wait'}
  web: {command: 'trap \"echo web ended >> order; exit\" TERM; touch web.up; sleep 1000 & wait', needs: [db]}
";
    let (world, _) = world(yaml);
    world.create("orderly");
    in_time(Duration::from_secs(5), "a stop", || {
        until(&world, "orderly", "web", "running");
        // They listen by then.
        eventually(SOON, "both services", || {
            let both = world.in_box("orderly", "test -e db.up -a -e web.up && rm db.up web.up");
            both.status.success().then_some(())
        });
        let begun = std::time::Instant::now();
        world.ok(&["stop", "orderly"]);
        let took = begun.elapsed();
        world.ok(&["start", "orderly"]);
        let ended = world.box_ok("orderly", "cat order; rm order");
        assert_eq!(ended, "web ended\ndb ended");
        eprintln!("stopping took {took:?}");
        took
    });
    let started = unit(&world, "orderly", "db");
    assert!(!started.is_null(), "{}", json!(started));
}

#[test]
fn boxes_16_16_the_first_task_reads_a_carried_file() {
    let yaml = "carry: [{src: ./key.local, dest: /home/vscode/key}]
tasks:
  first: {command: cat ~/key .env.local > seen}
";
    let (world, _) = world(yaml);
    fs::write(world.project().join(".gitignore"), "*.local\n").unwrap();
    fs::write(world.project().join("key.local"), "carried").unwrap();
    fs::write(world.project().join(".env.local"), "settings").unwrap();
    world.ok(&["create", "-n", "laden", "--carry-yes", "--with-env"]);
    let first = until(&world, "laden", "first", "done");
    assert_eq!(first["lastExitCode"], 0);
    assert_eq!(world.box_ok("laden", "cat seen"), "carriedsettings");
}

#[test]
fn a_port_that_is_busy_in_a_box_is_named_and_waited_for() {
    let yaml = "services:
  web:
    command: exec perl server.pl 3000 fresh
    autostart: false
    ready_when: {port: 3000, interval_ms: 100}
    backoff: {initial_ms: 200, max_ms: 400}
";
    let (world, _) = world(yaml);
    world.create("crowded");
    world.box_ok(
        "crowded",
        "setsid perl server.pl 3000 left-over > /dev/null 2>&1 & echo $! > /tmp/pid",
    );
    world.box_ok(
        "crowded",
        "for i in $(seq 100); do curl -s 127.0.0.1:3000 && exit; sleep 0.1; done; exit 1",
    );
    world.box_ok("crowded", "agentbox-ctl start web");
    let pid = world.box_ok("crowded", "pgrep -fx 'perl server.pl 3000 left-over'");
    eventually_or(SOON, "it is named", || {
        let log = world.ok(&["logs", "crowded", "web"]);
        let wanted = format!("port 3000 already in use by pid {pid}");
        if log.contains(&wanted) { Ok(()) } else { Err(log) }
    });
    assert_ne!(unit(&world, "crowded", "web")["state"], "ready");
    world.box_ok("crowded", &format!("kill {pid}"));
    until(&world, "crowded", "web", "ready");
    assert_eq!(world.box_ok("crowded", "curl -s 127.0.0.1:3000"), "fresh");
}

#[test]
fn ten_services_need_little_memory() {
    let services: String = (0..10).map(|n| format!("  s{n}: {{command: sleep 1000}}\n")).collect();
    let (world, _) = world(&format!("services:\n{services}"));
    world.create("modest");
    until(&world, "modest", "s9", "running");
    let rss = "awk '/VmRSS/ {print $2}' /proc/$(cat /run/agentbox/supervisor/ctl.lock)/status";
    let rss: u64 = world.box_ok("modest", rss).parse().unwrap();
    eprintln!("the supervisor of ten services: {rss} kB");
    assert!(rss <= 6 * 1024, "{rss} kB");
}

/// A command to the tests' engine, which must work; its output.
fn engine(args: &[&str]) -> String {
    let output = std::process::Command::new("docker").args(args).output().unwrap();
    assert!(output.status.success(), "docker {args:?}: {output:?}");
    text(&output.stdout).trim().to_owned()
}

/// A supervisor outside a box with the tests' own engine: one inside a box is the same program, and
/// needs an image of gigabytes.
struct Outside {
    dir: tempfile::TempDir,
    daemon: std::process::Child,
    ctl: std::path::PathBuf,
    container: String,
}

impl Outside {
    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(&self.ctl);
        command.args(args).env("AGENTBOX_WORKSPACE", self.dir.path());
        command.env("AGENTBOX_CTL_SOCKET", self.dir.path().join("ctl.sock"));
        command
    }

    fn unit(&self) -> Value {
        let said = self.command(&["status", "--json"]).output().unwrap();
        let status: Value = serde_json::from_slice(&said.stdout).unwrap_or_default();
        assert!(!status.to_string().contains("s3cr3t"), "{status}");
        status["services"][0].clone()
    }

    #[track_caller]
    fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        eventually_or(SOON, what, || {
            let unit = self.unit();
            let log = fs::read_to_string(self.dir.path().join("log/db.log")).unwrap_or_default();
            if so(&unit) { Ok(unit) } else { Err(format!("{unit}\n{log}")) }
        })
    }

    fn in_container(&self, script: &str) {
        engine(&["exec", &self.container, "sh", "-c", script]);
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill").arg(self.daemon.id().to_string()).status();
        let _ = self.daemon.wait();
        let mut remove = std::process::Command::new("docker");
        let _ = remove.args(["rm", "-f", &self.container]).output();
    }
}

#[test]
fn yaml_13_34_35_36_a_container_is_a_service_like_any_other() {
    let world = World::headless();
    let image = world.create("imaged")["image"].as_str().unwrap().to_owned();
    let mut build = std::process::Command::new("docker");
    build
        .args(["build", "-q", "-t", "agentbox-e2e-units", "-"])
        .stdin(std::process::Stdio::piped());
    let mut build = build.stdout(std::process::Stdio::null()).spawn().unwrap();
    let file = format!("FROM {image}\nENTRYPOINT [\"/bin/bash\", \"-c\"]\n");
    build.stdin.take().unwrap().write_all(file.as_bytes()).unwrap();
    assert!(build.wait().unwrap().success());
    let container = format!("agentbox-e2e-db-{}", std::process::id());
    let yaml = |secret: &str| {
        format!(
            "services:
  db:
    image:
      name: agentbox-e2e-units
      container_name: {container}
      env: {{SECRET: {secret}}}
      args:
        - |
          echo \"word=$0\"
          trap 'exit 0' TERM
          if test -e /tmp/second; then while ! test -e /tmp/go; do sleep 0.1; done; fi
          touch /tmp/second; echo ready
          while ! test -e /tmp/die; do sleep 0.1; done; rm /tmp/die; exit 3
        - 60 1
    ready_when: {{log_match: '^ready$', timeout_ms: 600000}}
    backoff: {{initial_ms: 50}}
"
        )
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("agentbox.yaml"), yaml("s3cr3t")).unwrap();
    let ctl = world.program("box/agentbox-ctl");
    let mut daemon = std::process::Command::new(&ctl);
    daemon.arg("daemon").arg("--socket").arg(at("ctl.sock")).arg("--log-dir").arg(at("log"));
    daemon.arg("--state-dir").arg(at("lib")).arg("--workspace").arg(dir.path());
    let daemon = daemon.env_remove("AGENTBOX_BOX_ID").spawn().unwrap();
    let one = Outside { daemon, ctl, container: container.clone(), dir };
    let unit = one.until("it is ready", |unit| unit["state"] == "ready");
    assert_eq!(unit["command"], "docker:agentbox-e2e-units");
    let log = || fs::read_to_string(one.dir.path().join("log/db.log")).unwrap();
    eventually_or(SOON, "its first word in the log", || {
        if log().contains("\tword=60 1\n") { Ok(()) } else { Err(log()) }
    });
    assert_eq!(engine(&["exec", &container, "printenv", "SECRET"]), "s3cr3t");

    one.in_container("touch /tmp/die");
    let unit = one.until("it is back", |unit| unit["restarts"] == 1 && unit["state"] == "running");
    assert_eq!(unit["lastExitCode"], 3);
    eventually(SOON, "it said its first word again", || {
        (log().matches("\tword=60 1\n").count() == 2).then_some(())
    });
    assert_eq!(one.unit()["state"], "running", "an old line made it ready");
    one.in_container("touch /tmp/go");
    one.until("it is ready", |unit| unit["state"] == "ready");
    // The same container once more, and it fails once more.
    one.in_container("touch /tmp/die");
    one.until("it is back", |unit| unit["restarts"] == 2 && unit["lastExitCode"] == 3);

    fs::write(one.dir.path().join("agentbox.yaml"), yaml("s3cr3t2")).unwrap();
    assert!(one.command(&["reload"]).output().unwrap().status.success());
    one.until("it is another", |unit| unit["drift"] == true && unit["state"] == "ready");
    assert_eq!(engine(&["exec", &container, "printenv", "SECRET"]), "s3cr3t");
    assert_eq!(one.command(&["recreate", "db"]).output().unwrap().status.code(), Some(2));
    let again = one.command(&["recreate", "db", "--yes"]).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    one.until("it is made anew", |unit| unit["drift"] == false && unit["state"] == "ready");
    assert_eq!(engine(&["exec", &container, "printenv", "SECRET"]), "s3cr3t2");

    let stopped = one.command(&["stop", "db"]).output().unwrap();
    assert_eq!(text(&stopped.stdout), "db: stopped\n");
    eventually_or(SOON, "a container that rests", || {
        match engine(&["inspect", "-f", "{{.State.Running}}", &container]) {
            runs if runs == "false" => Ok(()),
            runs => Err(runs),
        }
    });
}

#[test]
fn tasks_are_run_and_services_stopped_and_started_from_the_host() {
    let yaml = "tasks:
  count: {command: 'echo run >> runs; echo said; echo badly >&2; exit $(cat code || echo 0)'}
  hold: {command: 'while [ ! -e go ]; do sleep 0.1; done'}
services:
  web: {command: sleep 1000}
  later: {command: sleep 1000, needs: [hold]}
";
    let (world, _) = world(yaml);
    world.create("driven");
    world.ok(&["wait", "driven", "--units", "count,web", "--timeout", "120s"]);
    let runs = || world.box_ok("driven", "grep -c run runs");
    // One that is done is left alone, unless somebody insists.
    assert_eq!(world.ok(&["services", "run", "driven", "count"]), "count: done\n");
    assert_eq!(runs(), "1");
    let again = world.agentbox(&["services", "run", "driven", "count", "--force", "--wait"]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert_eq!(text(&again.stdout), "said\n");
    let err = text(&again.stderr);
    assert!(err.contains("badly\n") && err.ends_with("count: done\n"), "{err}");
    assert_eq!(runs(), "2");
    world.box_ok("driven", "echo 7 > code");
    let failed = world.agentbox(&["services", "run", "count", "--force", "--wait", "--json"]);
    assert_eq!(failed.status.code(), Some(7), "{failed:?}");
    let failed: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(failed["task"]["state"], "failed");
    assert_eq!((&failed["task"]["lastExitCode"], runs().as_str()), (&json!(7), "3"));

    assert_eq!(world.ok(&["services", "stop", "driven", "web"]), "web: stopped\n");
    assert_eq!(unit(&world, "driven", "web")["state"], "stopped");
    let started = world.json(&["services", "start", "driven", "web"]);
    assert_eq!(started["service"]["name"], "web");
    until(&world, "driven", "web", "running");
    let waits = world.ok(&["services", "start", "driven", "later"]);
    assert_eq!(waits, "later: waiting for hold\n");
    world.ok(&["services", "start", "driven", "later", "--now"]);
    until(&world, "driven", "later", "running");
    let listed = world.ok(&["services", "driven"]);
    assert!(listed.contains("later") && listed.contains("hold"), "{listed}");
    for wrong in [
        &["run", "driven", "nosuch"][..],
        &["run", "driven", "web", "--wait"],
        &["stop", "driven", "hold"],
    ] {
        let refused = world.agentbox(&[&["services"], wrong].concat());
        assert_eq!(refused.status.code(), Some(1), "{wrong:?}: {refused:?}");
        assert!(!refused.stderr.is_empty());
    }
}
