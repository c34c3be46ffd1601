//! Real programs in a real box without a network: they need no flag to get out, and none gets around.

use crate::agents::{ANTHROPIC, AT_LAST};
use crate::egress::{HERE, Web, lines};
use crate::world::{World, text};
use agentbox_e2e::wait::eventually_or;
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Child, Stdio};

const KEY: &str = "sk-ant-api03-canary-5e1d7c9b3f2a8046";

/// A computer whose boxes have everything and this mode, with a policy in the global file.
fn world(mode: &str, prepare: impl FnOnce(&mut World) -> (Web, String)) -> (World, Web) {
    let mut world = World::bare();
    let (web, policy) = prepare(&mut world);
    world.configure(&format!(
        "box: {{stage: full, vnc: false}}\negress: {{mode: {mode}}}\nsecrets: {{backend: file}}\n"
    ));
    std::fs::write(world.home().join("egress.yaml"), policy).unwrap();
    world.start_serve();
    (world, web)
}

fn allowed(web: &Web) -> String {
    format!(
        "domains: [{{host: {HERE}, rules: [{{path: {{prefix: /v1/}}, ports: [{}], websocket: true}}]}}]\n",
        web.tls
    )
}

/// A box of this mode, `tools`, and a server it may reach below `/v1/`.
fn tools(mode: &str) -> (World, Web) {
    let (world, web) = world(mode, |world| {
        let web = Web::start(world);
        let policy = allowed(&web);
        (web, policy)
    });
    world.create("tools");
    (world, web)
}

#[test]
fn egress_12_53_programs_get_out_by_themselves() {
    let (world, web) = tools("balanced");
    let url = web.url("/v1/tool");
    let socket = url.replace("https://", "wss://");
    for (tool, script) in [
        ("curl", format!("curl -fsS {url}")),
        ("node's fetch", format!("node -e \"fetch('{url}').then(r => process.exit(r.ok ? 0 : 1))\"")),
        (
            "a WebSocket",
            format!(
                "node -e \"const ws = new WebSocket('{socket}'); ws.onopen = () => ws.send('hi'); \
                 ws.onmessage = (m) => process.exit(m.data === 'hi' ? 0 : 1); ws.onerror = () => process.exit(2); \
                 setTimeout(() => process.exit(3), 15000)\""
            ),
        ),
        ("python", format!("python3 -c \"import urllib.request as u; assert u.urlopen('{url}').status == 200\"")),
        ("npm", "npm view is-number@7.0.0 version".to_owned()),
        ("npm install", "mkdir -p /tmp/n && cd /tmp/n && npm install --no-audit --no-fund is-number@7.0.0".into()),
        ("apt", "sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends python3-pip python3-requests cargo-web >/dev/null".into()),
        ("pip", "cd /tmp && python3 -m pip download -q --no-deps six==1.16.0".into()),
        ("python's requests", format!("python3 -c \"import requests; assert requests.get('{url}').ok\"")),
        ("cargo", "cd /tmp && cargo init -q --name x c && cd c && echo 'itoa = \"=1.0.1\"' >> Cargo.toml && cargo fetch".into()),
    ] {
        works(&world, tool, &script);
    }
    // Publishing is not reading: it is asked about.
    let registry = world.box_ok("tools", "npm config get registry").trim().to_owned();
    let publish = format!("{registry}is-number");
    let check = world.agentbox(&["egress", "check", &publish, "-X", "PUT", "tools"]);
    assert_eq!(check.status.code(), Some(4), "{}", text(&check.stdout));
    // What was recorded makes a policy under which it would have passed.
    let suggested = world.json(&["egress", "suggest", "tools"]).to_string();
    assert!(suggested.contains("- npm") && suggested.contains("/v1/tool"), "{suggested}");
}

fn works(world: &World, tool: &str, script: &str) {
    let done = world.in_box("tools", script);
    let said = format!("{}{}", text(&done.stdout), text(&done.stderr));
    let stopped = lines(world, &["tools", "--denied"]);
    assert_eq!(done.status.code(), Some(0), "{tool}: {said}\n{stopped:?}");
}

const GO: &str = r#"package main
import ("net/http"; "os")
func main() { r, err := http.Get(os.Args[1]); if err != nil || r.StatusCode != 200 { panic(err) } }
"#;
const JAVA: &str = r"import java.net.*;
class Get { public static void main(String[] a) throws Exception {
  System.exit(((HttpURLConnection) new URL(a[0]).openConnection()).getResponseCode() == 200 ? 0 : 1); } }
";

/// Each has whom it trusts from another place.
#[test]
fn egress_12_53_54_languages_browsers_and_late_clocks_get_out_too() {
    let (world, web) = tools("balanced");
    let url = web.url("/v1/tool");
    for (tool, script) in [
        ("apt", "sudo apt-get update -qq && sudo apt-get install -y -qq --no-install-recommends golang-go openjdk-17-jdk-headless chromium faketime >/dev/null".to_owned()),
        ("Go", format!("mkdir /tmp/go && cd /tmp/go && cat >get.go <<'E'\n{GO}E\ngo run get.go {url}")),
        ("Java", format!("cd /tmp && cat >Get.java <<'E'\n{JAVA}E\njava Get.java {url}")),
        ("Chromium", format!("timeout 60 /usr/bin/chromium --headless --no-sandbox --disable-gpu --no-first-run --dump-dom {url} 2>/tmp/chromium | grep -q {HERE}")),
        ("a clock that is 36 hours late", format!("faketime -f -36h curl -fsS {url}")),
    ] {
        works(&world, tool, &script);
    }
}

/// Says what no well-behaved program says, over TLS in a tunnel: attack.js HOST PORT. Prints a word for each try.
const ATTACKS: &str = r#"
const net = require("net"), tls = require("tls"), http2 = require("http2");
const [host, port] = process.argv.slice(2), at = `${host}:${port}`;
const ca = require("fs").readFileSync("/etc/agentbox/ca.crt");
const tunnel = (alpn) => new Promise((done, failed) => {
  const raw = net.connect(3128, "127.0.0.1", () => raw.write(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n\r\n`));
  raw.once("data", () => {
    const over = tls.connect({ socket: raw, servername: host, ca, ALPNProtocols: [alpn] }, () => done(over));
    over.on("error", failed);
  });
});
const one = async (text) => {
  const stream = await tunnel("http/1.1");
  let said = "";
  stream.on("data", (part) => (said += part)).on("error", () => {});
  stream.write(text);
  await new Promise((done) => { stream.on("close", done); setTimeout(done, 3000); });
  stream.destroy();
  return said.split(" ")[1] || "closed";
};
const two = async (fields) => {
  const stream = await tunnel("h2");
  const session = http2.connect(`https://${at}`, { createConnection: () => stream });
  session.on("error", () => {});
  return new Promise((done) => {
    setTimeout(() => done("closed"), 3000);
    let request;
    try { request = session.request(fields); } catch { return done("closed"); }
    request.on("response", (head) => done(String(head[":status"]))).on("error", () => done("closed")).end();
  }).finally(() => session.destroy());
};
const inner = `GET /admin HTTP/1.1\r\nHost: ${at}\r\n\r\n`;
(async () => {
  const said = [];
  for (const text of [
    `POST /v1/a HTTP/1.1\r\nHost: ${at}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    `POST /v1/a HTTP/1.1\r\nHost: ${at}\r\nContent-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    `POST /v1/a HTTP/1.1\r\nHost: ${at}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`,
    `GET /v1/a HTTP/1.1\r\nHost: ${at}\r\nHost: evil.example\r\n\r\n`,
    `GET https://evil.example/v1/a HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
    `GET /v1/a\r\nX: HTTP/1.1\r\nHost: ${at}\r\n\r\n`,
  ]) said.push(await one(text));
  for (const fields of [
    { ":authority": "evil.example" },
    { ":authority": at, host: "evil.example" },
    { ":authority": at, ":path": "/v1/../admin" },
    { ":authority": at, ":path": "//evil.example/v1/a" },
    { ":authority": at, ":path": "https://evil.example/v1/a" },
    { ":authority": at, ":scheme": "http" },
    { ":authority": at, "transfer-encoding": "chunked" },
  ]) said.push(await two({ ":method": "GET", ":scheme": "https", ":path": "/v1/a", ...fields }));
  console.log(said.join(" "));
})();
"#;

#[test]
fn no_request_is_smuggled_out_of_a_real_box() {
    let (world, web) = tools("locked");
    let script =
        format!("cat >/tmp/attack.js <<'E'\n{ATTACKS}\nE\nnode /tmp/attack.js {HERE} {}", web.tls);
    let said = world.box_ok("tools", &script);
    let said: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(said.len(), 13, "{said:?}");
    assert!(said.iter().all(|word| *word == "closed" || word.starts_with('4')), "{said:?}");
    assert!(web.seen().is_empty(), "{said:?} {:?}", web.seen());
}

/// The stand-in for Anthropic's interface, on this computer.
struct Api(Child);

impl Api {
    fn start(world: &World) -> (Self, u16) {
        let script = world.dir().join("api.js");
        std::fs::write(&script, ANTHROPIC).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = world.command("node");
        command.arg(script).env("PORT", port.to_string()).stdin(Stdio::null());
        (Self(command.spawn().unwrap()), port)
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_agent_works_with_a_placeholder_and_its_key_never_enters_the_box() {
    let mut api = None;
    let (mut world, web) = world("locked", |world| {
        let (server, port) = Api::start(world);
        api = Some(server);
        world.set("API", &port.to_string());
        let web = Web::start(world);
        let policy = format!(
            "services: [{{name: claude, auth: {{secret: anthropic.key, type: api_key, client_shim: {{kind: env}}}}}}]\n\
             domains:\n- host: {HERE}\n  rules: [{{path: {{prefix: /v1/}}, ports: [{}]}}]\n  transform:\n    request:\n      \
             headers: {{x-api-key: {{secret: anthropic.key, transform: {{type: raw}}}}}}\n      on_existing_header: replace_placeholder\n",
            web.tls
        );
        (web, policy)
    });
    world.store("anthropic.key", KEY);
    world.create("ag");
    world.set("ANTHROPIC_BASE_URL", &format!("https://{HERE}:{}", web.tls));
    world.ok(&["claude", "start", "ag", "-d", "--", "say hi"]);
    eventually_or(AT_LAST, "claude answering", || {
        let shown = world.box_ok("ag", "tmux capture-pane -pJ -t =claude:");
        if shown.contains("All done here.") {
            Ok(())
        } else {
            Err(format!("{shown}\n{:?}", web.seen()))
        }
    });
    let asked: Vec<Value> = web
        .seen()
        .into_iter()
        .filter(|r| r["url"].as_str().unwrap().starts_with("/v1/messages"))
        .collect();
    assert!(!asked.is_empty() && asked.iter().all(|r| r["apiKey"] == KEY), "{asked:?}");
    // What the box has is made up, and of no use elsewhere.
    let env = world.box_ok("ag", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^ANTHROPIC_API_KEY= | sort -u");
    assert!(env.contains("sk-ant-api03-agentbox") && !env.contains(KEY), "{env}");
    let held = world.in_box(
        "ag",
        &format!("sudo grep -rlF {KEY} / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; true"),
    );
    assert_eq!(text(&held.stdout), "");
    let fake = env.trim().lines().next().unwrap().split_once('=').unwrap().1.to_owned();
    let misuse = world.box_ok("ag", &format!("curl -sS -o /dev/null -w '%{{http_code}} %header{{x-agentbox-reason}}' -H 'x-api-key: {fake}' https://api.openai.com/v1/models || true"));
    assert!(misuse.starts_with("403"), "{misuse}");
    let counted = world.json(&["egress", "status", "ag"]).to_string();
    assert!(counted.contains("anthropic.key"), "{counted}");
    drop(api);
}
