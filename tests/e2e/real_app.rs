//! A web app with a database, as people have them: Node, and Redis as a container in the box's own engine.

use crate::checkpoints::Images;
use crate::urls::{self, ask};
use crate::world::{World, text};
use agentbox_e2e::wait::eventually_or;
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// An engine starts, an image is taken in, a package is installed, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts visits in the database, through a package of its own.
const SERVER: &str = r#"
const http = require("http"), net = require("net"), greet = require("greet");
const count = () => new Promise((done, failed) => {
  const to = net.connect(6379, "127.0.0.1", () => to.write("INCR visits\r\n"));
  to.on("data", (said) => { done(String(said).trim().slice(1)); to.end(); }).on("error", failed);
});
http.createServer(async (asked, answer) => {
  if (asked.url === "/health") return answer.end("ok");
  try { answer.end(greet(await count())); } catch (e) { answer.writeHead(500).end(String(e)); }
}).listen(3000, "127.0.0.1");
"#;

const YAML: &str = r#"
carry: [{src: ~/redis.tar, dest: ~/redis.tar}]
tasks:
  database-image:
    command: |
      timeout 90 sh -c 'until docker info; do sleep 0.2; done' >/dev/null 2>&1
      docker image inspect redis:local >/dev/null 2>&1 || docker import ~/redis.tar redis:local
  install:
    command: npm install --no-audit --no-fund && echo installed >> ~/installs
    run_once: {inputs: [package.json, "greet/**"]}
services:
  db:
    image:
      name: redis:local
      ports: ["6379:6379"]
      args: [/usr/bin/redis-server, --protected-mode, "no", --dir, /data, --appendonly, "yes", --appendfsync, always]
    needs: [database-image]
    ready_when: {port: 6379}
    restart: always
  web:
    command: [node, server.js]
    needs: [install, db]
    ready_when: {http: "http://127.0.0.1:3000/health"}
    expose: {port: 3000}
"#;

/// There is no registry here: Debian's Redis with what it is linked to, as the files of an image.
fn redis(image: &str, to: &std::path::Path) {
    let script = "apt-get update -qq && apt-get install -yqq --no-install-recommends redis-server >/dev/null \
        && mkdir -p /r/data /r/tmp && cp --parents -L /usr/bin/redis-server \
           $(ldd /usr/bin/redis-server | grep -o '/[^ ]*') /r && tar -C /r -c .";
    let mut run = Command::new("docker");
    run.args(["run", "--rm", "--user=root", "--entrypoint=sh", image, "-c", script]);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    fs::write(to, output.stdout).unwrap();
}

fn project(world: &World) {
    let put = |name: &str, content: &str| {
        let path = world.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    put("agentbox.yaml", YAML);
    put("server.js", SERVER);
    put("package.json", r#"{"name": "shop", "dependencies": {"greet": "file:greet"}}"#);
    put("greet/package.json", r#"{"name": "greet", "version": "1.0.0"}"#);
    put("greet/index.js", "module.exports = (n) => `visit ${n}`;\n");
    put(".gitignore", "node_modules\n");
    world.git(&world.project(), &["add", "-A"]);
    world.git(&world.project(), &["commit", "-qm", "An app"]);
}

/// Visits the app until it answers: its word, and the how manieth visit that was.
#[track_caller]
fn visit(world: &World, port: u16, name: &str) -> (String, u32) {
    let host = format!("{name}.localhost:{port}");
    eventually_or(PATIENCE, &format!("an answer of {host}"), || {
        let answer = ask(port, &host, "");
        let said = answer.rsplit('\n').next().unwrap_or_default().split_once(' ');
        if let Some((word, Ok(n))) = said.map(|(word, n)| (word, n.parse()))
            && answer.starts_with("HTTP/1.1 200")
        {
            return Ok((word.to_owned(), n));
        }
        let units = world.agentbox(&["status", name]);
        let logs = world.in_box(name, "tail -n 5 /var/log/agentbox/*.log");
        Err(format!("{answer}\n{}{}", text(&units.stdout), text(&logs.stdout)))
    })
}

/// Every unit by its name, with its state.
fn units(world: &World, name: &str) -> Vec<(String, String)> {
    let status = world.json(&["services", "list", name])["status"].clone();
    let all =
        ["tasks", "services"].map(|kind| status[kind].as_array().cloned().unwrap_or_default());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.concat().iter().map(|unit| (word(&unit["name"]), word(&unit["state"]))).collect()
}

#[test]
fn an_app_with_a_database_comes_up_right_the_first_time_and_every_time_after() {
    let (world, port) = urls::world("box: {stage: full}\n");
    project(&world);
    let image = world.json(&["prepare", "--stage", "full"])["prepared"]["image"].clone();
    redis(image.as_str().unwrap(), &world.home().parent().unwrap().join("redis.tar"));

    let _images = Images(&world);
    world.ok(&["create", "-n", "app", "--docker", "--carry-yes"]);
    world.ok(&["wait", "app", "--timeout", "120s"]);
    let (word, first) = visit(&world, port, "app");
    assert_eq!(word, "visit");
    let visits: Vec<u32> = (0..5).map(|_| visit(&world, port, "app").1).collect();
    let before = visits[4];
    assert!(before >= first + 5, "{first} {before}");
    let up = [("database-image", "done"), ("install", "done"), ("db", "ready"), ("web", "ready")];
    let up = up.map(|(name, state)| (name.to_owned(), state.to_owned()));
    let same = |name: &str| {
        let mut seen = units(&world, name);
        seen.sort();
        let mut wanted = up.to_vec();
        wanted.sort();
        assert_eq!(seen, wanted);
    };
    same("app");
    assert_eq!(world.box_ok("app", "cat ~/installs"), "installed");

    // Down and up: what was counted is there, what was installed is not installed again.
    world.ok(&["stop", "app"]);
    world.ok(&["start", "app"]);
    world.ok(&["wait", "app", "--timeout", "120s"]);
    assert!(visit(&world, port, "app").1 > before);
    assert_eq!(world.box_ok("app", "cat ~/installs"), "installed");

    // From a checkpoint: what is installed comes along; what the box's engine held stays with that box.
    world.ok(&["checkpoint", "create", "app", "--name", "warm"]);
    world.ok(&["create", "-n", "again", "--docker", "--carry-yes", "--snapshot", "warm"]);
    world.ok(&["wait", "again", "--timeout", "120s"]);
    assert!(visit(&world, port, "again").1 < before);
    same("again");
    assert_eq!(world.box_ok("again", "cat ~/installs"), "installed");

    // What it was made of changed.
    world.box_ok("app", "echo 'module.exports = (n) => `hello ${n}`;' > greet/index.js");
    world.ok(&["stop", "app"]);
    world.ok(&["start", "app"]);
    let (word, count) = visit(&world, port, "app");
    assert!(word == "hello" && count > before, "{word} {count}");
    assert_eq!(world.box_ok("app", "cat ~/installs"), "installed\ninstalled");
}
