//! What a box may reach: seen from inside real boxes, with real programs, against a real server.

use crate::channels::over_both_channels;
use crate::world::{SOON, World, text};
use agentbox_e2e::wait::{eventually, eventually_or};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WEB: &str = include_str!("../standins/web.js");
/// The name of this computer's services, in policies and boxes.
pub const HERE: &str = "host.agentbox.internal";
pub const TOKEN: &str = "canary-ghp-7f3a9c5d2e8b41";

/// A server on this computer's loopback, with a certificate the host trusts.
pub struct Web {
    child: Child,
    pub tls: u16,
    pub plain: u16,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Web {
    /// Before the host is started: it is told whom to trust.
    pub fn start(world: &mut World) -> Self {
        let dir = world.dir().join("web");
        std::fs::create_dir(&dir).unwrap();
        certificates(&dir);
        let system =
            std::env::var("SSL_CERT_FILE").unwrap_or("/etc/ssl/certs/ca-certificates.crt".into());
        let mut bundle = std::fs::read_to_string(system).unwrap_or_default();
        bundle.push_str(&std::fs::read_to_string(dir.join("ca.crt")).unwrap());
        std::fs::write(dir.join("bundle.crt"), bundle).unwrap();
        world.set("SSL_CERT_FILE", dir.join("bundle.crt").to_str().unwrap());
        let script = dir.join("web.js");
        std::fs::write(&script, WEB).unwrap();
        let mut child = world
            .command("node")
            .args([&script, &dir.join("web.crt"), &dir.join("web.key"), &dir])
            .arg(TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ports = lines.next().unwrap().unwrap();
        let (tls, plain) = ports.split_once(' ').unwrap();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let into = seen.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                into.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, tls: tls.parse().unwrap(), plain: plain.parse().unwrap(), seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{HERE}:{}{path}", self.tls)
    }

    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn certificates(dir: &Path) {
    let run = |args: &str| {
        let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    run(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=web",
    );
    run(&format!(
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout web.key -out web.csr -subj /CN={HERE}"
    ));
    std::fs::write(dir.join("ext"), format!("subjectAltName=DNS:{HERE}\n")).unwrap();
    run(
        "x509 -req -in web.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out web.crt",
    );
}

/// A computer whose new boxes have this mode, with a policy in the global file. Credentials are files.
fn world(channel: &str, mode: &str, policy: impl FnOnce(&Web) -> String) -> (World, Web) {
    let mut world = World::bare();
    let web = Web::start(&mut world);
    world.configure(&format!(
        "engine: {{channel: {channel}}}\negress: {{mode: {mode}}}\nsecrets: {{backend: file}}\n"
    ));
    std::fs::write(world.home().join("egress.yaml"), policy(&web)).unwrap();
    world.start_serve();
    (world, web)
}

fn reads(web: &Web) -> String {
    format!(
        "domains: [{{host: {HERE}, rules: [{{methods: [GET], path: {{prefix: /v1/}}, ports: [{}]}}]}}]\n",
        web.tls
    )
}

/// Status, reason and body of a request by curl in a box.
fn curl(world: &World, name: &str, args: &str) -> (String, String) {
    let script = format!(
        "curl -sS -m 20 -o /tmp/body -w '%{{http_code}} %header{{x-agentbox-reason}}' {args}; echo; cat /tmp/body"
    );
    let output = world.in_box(name, &script);
    let all = text(&output.stdout);
    let (status, body) = all.split_once('\n').unwrap_or((all.as_str(), ""));
    (format!("{}{}", status.trim(), text(&output.stderr)), body.to_owned())
}

fn in_bash(script: &str) -> String {
    format!("bash -c '{script}'")
}

pub fn lines(world: &World, args: &[&str]) -> Vec<Value> {
    let said = world.json(&[&["egress", "log"], args].concat());
    said["traffic"].as_array().unwrap_or_else(|| panic!("{said}")).clone()
}

over_both_channels! {
    /// A box reaches what its policy allows with programs that know nothing of it, and nothing else; why
    /// is said in the answer, in the box and here.
    fn egress_12_02_03_53_59_a_box_reaches_what_its_policy_allows_and_nothing_else(channel) {
        let (world, web) = world(channel, "locked", reads);
        world.create("out");
        let (status, body) = curl(&world, "out", &web.url("/v1/a"));
        assert_eq!(status, "200", "{body}");
        let said: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(said["host"], format!("{HERE}:{}", web.tls));
        let (status, body) = curl(&world, "out", &format!("-X POST --data-binary @/bin/bash {}", web.url("/v1/a")));
        assert_eq!(status, "403 no_rule_matched", "{body}");
        assert!(body.contains("hint: ask the user to run: agentbox egress allow"), "{body}");
        let (status, _) = curl(&world, "out", "https://example.com/");
        assert_eq!(status, "403 host_not_allowed");
        let (status, _) = curl(&world, "out", &format!("http://{HERE}:{}/v1/a", web.plain));
        assert!(status.starts_with("403"), "{status}");
        assert_eq!(web.seen().len(), 1, "only what was allowed arrived");
        // In the box.
        let why = world.box_ok("out", "agentbox-ctl egress why --last");
        assert!(why.contains("reason: "), "{why}");
        let policy = world.box_ok("out", "agentbox-ctl egress policy");
        assert!(policy.contains(HERE) && !policy.contains("egress.yaml"), "{policy}");
        let check = world.in_box("out", &format!("agentbox-ctl egress check {} -X POST", web.url("/v1/a")));
        assert_eq!(check.status.code(), Some(3), "{}", text(&check.stdout));
        // Here.
        let all = lines(&world, &["out"]);
        let allowed = all.iter().find(|line| line["action"] == "allowed").unwrap();
        assert_eq!((&allowed["status"], &allowed["method"]), (&200.into(), &"GET".into()));
        assert!(allowed["rule"]["origin"].as_str().unwrap().starts_with("global:egress.yaml"), "{allowed}");
        assert_eq!(allowed["rule"]["index"], 0);
        let denied = lines(&world, &["out", "--denied"]);
        assert!(denied.len() >= 3 && denied.iter().all(|line| line["action"] == "blocked"), "{denied:?}");
        let explained = world.json(&["egress", "explain", "out"]);
        assert!(!explained["explained"]["why"].as_str().unwrap().is_empty(), "{explained}");
        let certificate = world.box_ok("out", &format!(
            "openssl s_client -proxy 127.0.0.1:3128 -connect {HERE}:{} </dev/null 2>/dev/null | grep issuer || \
             curl -sv {} 2>&1 | grep issuer", web.tls, web.url("/v1/")));
        assert!(certificate.contains("AgentBox Egress CA"), "{certificate}");
    }

    /// Nothing leads around the proxy, for root either.
    fn egress_12_51_nothing_leads_around_the_proxy(channel) {
        let (world, web) = world(channel, "observe", reads);
        world.create("shut");
        for attack in [
            "curl -sS -m 3 --noproxy '*' https://1.1.1.1/".to_owned(),
            format!("curl -sS -m 3 --noproxy '*' http://127.0.0.1:{}/v1/a", web.plain),
            "timeout 3 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'".into(),
            "timeout 3 bash -c 'exec 3<>/dev/udp/8.8.8.8/53; printf x >&3; read -t 2 -u 3 _'".into(),
            "timeout 3 bash -c 'exec 3<>/dev/tcp/2606:4700:4700::1111/443'".into(),
            "timeout 3 bash -c 'exec 3<>/dev/tcp/172.17.0.1/22'".into(),
            "timeout 3 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80'".into(),
            "timeout 5 getent hosts x8f2.example.com".into(),
            "timeout 5 ping -c1 -W1 1.1.1.1".into(),
            "sudo ip link add dummy0 type dummy".into(),
            "sudo timeout 3 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'".into(),
        ] {
            let tried = world.in_box("shut", &attack);
            assert_ne!(tried.status.code(), Some(0), "{attack}: {}", text(&tried.stdout));
        }
        assert!(web.seen().is_empty());
        // By the proxy: names of this computer and of machines' metadata, other ports, other protocols.
        for (target, reasons) in [
            ("http://127.0.0.1:22/", "private_address denied_by_rule host_not_allowed port_not_allowed"),
            ("http://localhost:1355/", "denied_by_rule"),
            ("http://169.254.169.254/latest/meta-data/", "denied_by_rule private_address"),
            ("http://[::1]/", "private_address denied_by_rule"),
            ("http://10.0.0.1/", "private_address"),
            ("http://metadata.google.internal/", "denied_by_rule"),
        ] {
            let (status, body) = curl(&world, "shut", &format!("--noproxy nobody.example -g '{target}'"));
            let reason = status.split(' ').nth(1).unwrap_or_default();
            assert!(status.starts_with("403") && reasons.contains(reason), "{target}: {status} {body}");
        }
        let ssh = world.in_box("shut", &in_bash(
            "exec 3<>/dev/tcp/127.0.0.1/3128; printf \"CONNECT example.com:22 HTTP/1.1\\r\\nHost: example.com:22\\r\\n\\r\\n\" >&3; timeout 5 head -1 <&3"));
        assert!(text(&ssh.stdout).contains(" 403 "), "{}", text(&ssh.stdout));
        let raw = world.in_box("shut", &in_bash(&format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128; printf \"CONNECT {HERE}:{} HTTP/1.1\\r\\nHost: {HERE}:{}\\r\\n\\r\\n\" >&3; \
             while read -r line <&3 && [ ${{#line}} -gt 1 ]; do :; done; printf \"SSH-2.0-x\\r\\n\" >&3; timeout 12 cat <&3 | wc -c", web.tls, web.tls)));
        assert_eq!(text(&raw.stdout).trim(), "0", "what is not HTTP gets no answer");
        eventually(SOON, "the line about it", || {
            lines(&world, &["shut", "--denied"]).iter().any(|line| line["reason"] == "not_http").then_some(())
        });
        // Another box's socket is not there, and its token is of no use.
        let token = world.create("other");
        let id = token["created"]["view"]["id"].as_str().or(token["box"]["id"].as_str()).unwrap_or("b").to_owned();
        let (status, _) = curl(&world, "shut", &format!(
            "--proxy-user {id}:{} {}", "0".repeat(64), web.url("/v1/a")));
        assert!(status.contains("407"), "{status}");
    }

    /// git over HTTPS: the token is put in on the way, and only the box's own branches can be pushed.
    fn egress_12_25_26_git_pushes_with_a_token_it_never_has(channel) {
        let (world, web) = world(channel, "locked", |web| format!(
            "services:\n- name: git\n  host: {HERE}\n  port: {}\n  repos: [acme/widget]\n  git: {{access: readwrite, auth: {{secret: git.push, username: x-access-token, client_shim: {{kind: git-askpass}}}}, push: {{refs: ['agentbox/*']}}}}\n", web.tls));
        let bare = world.dir().join("web/acme/widget.git");
        world.git(world.dir(), &["init", "-q", "--bare", "-b", "main", bare.to_str().unwrap()]);
        world.store("git.push", TOKEN);
        world.create("dev");
        let url = web.url("/acme/widget.git");
        world.box_ok("dev", &format!(
            "cd /tmp && /usr/bin/git clone -q {url} w 2>&1 && cd w && /usr/bin/git config user.email a@b.c && \
             /usr/bin/git config user.name a && echo hi > f && /usr/bin/git add f && /usr/bin/git commit -qm one && \
             /usr/bin/git push -q origin HEAD:refs/heads/agentbox/x"));
        assert!(!world.git(&bare, &["rev-parse", "refs/heads/agentbox/x"]).is_empty());
        let refused = world.in_box("dev", "cd /tmp/w && /usr/bin/git push origin HEAD:main 2>&1");
        assert_ne!(refused.status.code(), Some(0));
        let gone = world.in_box("dev", "cd /tmp/w && /usr/bin/git push origin :agentbox/x 2>&1");
        assert_ne!(gone.status.code(), Some(0));
        assert!(!world.git(&bare, &["rev-parse", "refs/heads/agentbox/x"]).is_empty());
        let refusals = lines(&world, &["dev", "--denied"]);
        assert!(refusals.iter().any(|l| l["reason"] == "git_ref_denied" && l["detail"].as_str().unwrap_or_default().contains("refs/heads/main")), "{refusals:?}");
        assert!(web.seen().iter().filter(|r| r["url"].as_str().unwrap().contains("receive-pack")).all(|r| r["authorization"].as_str().unwrap_or_default().starts_with("Basic ")));
        // The box never had it, and neither has anything that is written down.
        let held = world.in_box("dev", &format!("sudo grep -rlF {TOKEN} / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; env | grep -F {TOKEN}; true"));
        assert_eq!(text(&held.stdout), "");
        let written = [world.ok(&["egress", "log", "dev", "--json"]), world.ok(&["audit", "--json"]), world.host_log()].concat();
        assert!(!written.contains(TOKEN));
    }
}

#[test]
fn a_tunnel_is_used_for_what_it_was_opened_for() {
    let (world, web) = world("auto", "locked", reads);
    world.create("front");
    let at = web.url("/v1/a");
    for (args, wanted) in [
        (format!("-H 'Host: evil.example' {at}"), "421 authority_mismatch"),
        (format!("--http1.1 -H 'Host: evil.example' {at}"), "421 authority_mismatch"),
        (format!("--path-as-is {}", web.url("/v1/../admin")), "403 ambiguous_path"),
        (format!("--path-as-is {}", web.url("/v1/%2e%2E/admin")), "403 ambiguous_path"),
        (format!("--path-as-is '{}'", web.url("/v1/..;/admin")), "403 ambiguous_path"),
        (format!("-X TRACE {at}"), "403 method_forbidden"),
    ] {
        let (status, body) = curl(&world, "front", &args);
        assert_eq!(status, wanted, "{args}: {body}");
    }
    // The certificate of another name is not asked for in a tunnel to this one.
    let to = format!("--connect-to evil.example:443:{HERE}:{}", web.tls);
    let (fronted, _) = curl(&world, "front", &format!("{to} https://evil.example/v1/a"));
    assert!(fronted.starts_with("000"), "{fronted}");
    eventually(SOON, "the line about it", || {
        let all = lines(&world, &["front", "--denied"]);
        all.iter().any(|line| line["reason"] == "sni_mismatch").then_some(())
    });
    assert!(web.seen().is_empty(), "{:?}", web.seen());
}

#[test]
fn egress_12_41_an_edit_counts_at_once_and_a_mistake_leaves_the_policy_of_before() {
    let (world, web) = world("auto", "locked", reads);
    world.create("edits");
    let file = world.home().join("egress.yaml");
    let wide = reads(&web).replace("[GET]", "[GET, POST]");
    assert!(curl(&world, "edits", &format!("-d x {}", web.url("/v1/a"))).0.starts_with("403"));
    std::fs::write(&file, &wide).unwrap();
    eventually(SOON, "the edit", || {
        (curl(&world, "edits", &format!("-d x {}", web.url("/v1/a"))).0 == "200").then_some(())
    });
    // Two edits right after each other: the second counts.
    std::fs::write(&file, "domains: [").unwrap();
    std::fs::write(&file, reads(&web)).unwrap();
    assert_eq!(world.agentbox(&["egress", "reload"]).status.code(), Some(0));
    assert!(curl(&world, "edits", &format!("-d x {}", web.url("/v1/a"))).0.starts_with("403"));
    std::fs::write(&file, format!("{wide}domain: [typo]\n")).unwrap();
    let rejected = world.agentbox(&["egress", "reload"]);
    assert_eq!(rejected.status.code(), Some(2), "{}", text(&rejected.stderr));
    assert!(text(&rejected.stderr).contains("domain"), "{}", text(&rejected.stderr));
    assert_eq!(curl(&world, "edits", &web.url("/v1/a")).0, "200", "the policy of before holds");
    assert!(curl(&world, "edits", &format!("-d x {}", web.url("/v1/a"))).0.starts_with("403"));
    let show = world.agentbox(&["egress", "policy", "show", "edits"]);
    assert_eq!(show.status.code(), Some(2), "{}", text(&show.stderr));
}

/// A host that nobody reaches from here: what was allowed to go out ends with that, and not with a no.
const NOWHERE: &str = "docs.agentbox-test.example";

#[test]
fn egress_12_46_48_a_person_is_asked_and_the_answer_is_remembered_where_they_say() {
    let (world, _web) = world("auto", "balanced", |_| String::new());
    world.create("asks");
    let said = |path: &str, word: &str| {
        format!(
            "curl -sS -m 60 -o /dev/null -w '%{{http_code}} %header{{x-agentbox-reason}}' https://{NOWHERE}{path} | grep -qx '{word}'"
        )
    };
    let (question, denied) =
        world.answered("asks", &said("/v1/docs/a", "403 approval_denied"), "deny");
    let title = question["title"].as_str().unwrap();
    assert!(title.starts_with(&format!("Read {NOWHERE}/v1/docs/a")), "{question}");
    assert_eq!(denied.code, Some(0), "{denied:?}");
    // A no is a no for a while; something else is another question, and a yes lets it go.
    let (_, allowed) =
        world.answered("asks", &said("/v1/guide/b", "502 upstream_unreachable"), "approve");
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let once = lines(&world, &["asks"]);
    assert!(once.iter().any(|line| line["approval"] == "once"), "{once:?}");
    let waiting = world.begin("asks", &said("/v2/api/c", "502 upstream_unreachable"));
    let question = world.question_of("asks");
    let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
    world.ok(&["approve", id, "--digest", digest, "--for", "always", "--reach", "project"]);
    assert_eq!(waiting.end().code, Some(0));
    let shown = world.json(&["egress", "policy", "show", "asks", "--origin"]);
    assert!(shown.to_string().contains("project:egress.yaml"), "{shown}");
    // A new box of the project has it, too, after a restart of the host as well.
    world.create("later");
    let later = world.in_box("later", &said("/v2/api/d", "502 upstream_unreachable"));
    assert_eq!(later.status.code(), Some(0), "{}", text(&later.stderr));
    assert!(world.questions().is_empty());
}

#[test]
fn egress_12_47_many_requests_for_one_thing_are_one_question() {
    let (world, _web) = world("auto", "balanced", |_| String::new());
    world.create("many");
    let script = format!(
        "for n in $(seq 50); do curl -sS -m 60 -o /dev/null -w '%{{http_code}}\\n' https://{NOWHERE}/v1/files/one & done | sort | uniq -c | grep -qx ' *50 502'"
    );
    let running = world.begin("many", &script);
    world.question_of("many");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(world.questions().len(), 1);
    world.approve("many", &[]);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn egress_12_50_without_its_host_a_box_gets_nothing_out_and_is_told_so() {
    let (mut world, web) = world("auto", "locked", reads);
    world.create("alone");
    assert_eq!(curl(&world, "alone", &web.url("/v1/a")).0, "200");
    world.kill_host();
    let tried = beside_the_host(
        &world,
        "alone",
        &format!(
            "curl -s -m 10 -o /dev/null -w '%{{http_connect}} %header{{x-agentbox-reason}}' {}; curl -s -m 10 -D- http://x.example/ | tr -d '\\r'",
            web.url("/v1/a")
        ),
    );
    assert!(tried.contains("503") && tried.contains("policy_unavailable"), "{tried}");
    assert!(tried.to_lowercase().contains("retry-after: 5"), "{tried}");
    world.start_serve();
    eventually(SOON, "the box's way out", || {
        (curl(&world, "alone", &web.url("/v1/a")).0 == "200").then_some(())
    });
}

#[test]
fn a_box_changes_sides_and_keeps_its_files() {
    let (world, web) = world("auto", "open", reads);
    world.create("turn");
    world.box_ok("turn", "echo kept > ~/file");
    let refused = world.agentbox(&["egress", "mode", "turn", "locked"]);
    assert_ne!(refused.status.code(), Some(0), "a restart is asked about first");
    world.ok(&["egress", "mode", "turn", "locked", "--yes"]);
    assert_eq!(world.box_ok("turn", "cat ~/file").trim(), "kept");
    assert_eq!(curl(&world, "turn", &web.url("/v1/a")).0, "200");
    assert_eq!(curl(&world, "turn", "https://example.com/").0, "403 host_not_allowed");
    assert_ne!(
        world.in_box("turn", "curl -sS -m 3 --noproxy '*' https://1.1.1.1/").status.code(),
        Some(0)
    );
    // Looser without a restart: what is not allowed passes, but for this computer's own services.
    world.ok(&["egress", "mode", "turn", "observe", "--yes"]);
    assert_eq!(
        curl(&world, "turn", &format!("-d x https://{NOWHERE}/")).0,
        "502 upstream_unreachable"
    );
    assert!(curl(&world, "turn", &format!("-d x {}", web.url("/other"))).0.starts_with("403"));
    // A policy that cannot be read does not leave the looser one in force.
    let file = world.home().join("egress.yaml");
    std::fs::write(&file, "domains: [").unwrap();
    world.agentbox(&["egress", "mode", "turn", "locked", "--yes"]);
    let shut = curl(&world, "turn", &format!("-d x https://{NOWHERE}/")).0;
    assert!(shut.contains("503"), "{shut}");
    std::fs::write(&file, reads(&web)).unwrap();
    world.ok(&["egress", "reload"]);
    assert!(curl(&world, "turn", &format!("-d x https://{NOWHERE}/")).0.contains("403"));
    world.ok(&["egress", "mode", "turn", "observe", "--yes"]);
    let suggested = world.json(&["egress", "suggest", "turn"]);
    assert!(suggested.to_string().contains("/v1/a"), "{suggested}");
    world.ok(&["egress", "mode", "turn", "open", "--yes"]);
    assert_eq!(world.box_ok("turn", "cat ~/file; echo -n $HTTPS_PROXY").trim(), "kept");
}

#[test]
fn egress_12_42_a_websocket_needs_a_rule_and_ends_with_it() {
    let (world, web) = world("auto", "locked", reads);
    world.create("ws");
    let upgrade = format!(
        "curl -sS -m 5 --http1.1 -o /dev/null -w '%{{http_code}} %header{{x-agentbox-reason}}' -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
         -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' {}",
        web.url("/v1/ws")
    );
    let said = text(&world.in_box("ws", &upgrade).stdout);
    assert_eq!(said.trim(), "403 websocket_not_permitted");
    let file = world.home().join("egress.yaml");
    std::fs::write(&file, reads(&web).replace("methods: [GET]", "methods: [GET], websocket: true"))
        .unwrap();
    world.ok(&["egress", "reload"]);
    assert!(text(&world.in_box("ws", &upgrade).stdout).starts_with("101"));
    let open = world.begin("ws", &upgrade.replace("-m 5", "-m 60"));
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(&file, reads(&web)).unwrap();
    world.ok(&["egress", "reload"]);
    open.end_within(Duration::from_secs(15));
}

#[test]
fn egress_12_56_what_a_repository_asks_for_waits_for_a_person() {
    let (world, web) = world("auto", "locked", |_| String::new());
    world.create("wants");
    world.box_ok("wants", &format!(
        "mkdir -p .agentbox && cat > .agentbox/egress.yaml <<'Y'\n{}Y\ngit add -A && git -c user.name=a -c user.email=a@b.c commit -qm wants", reads(&web)));
    let asked = || world.json(&["egress", "repository", "wants"]);
    eventually_or(SOON, "the request", || {
        let said = asked();
        if said.to_string().contains("waiting") { Ok(()) } else { Err(said.to_string()) }
    });
    assert_ne!(curl(&world, "wants", &web.url("/v1/a")).0, "200", "a request is not a rule");
    let status = world.json(&["status"]);
    assert!(status["status"]["notices"].to_string().contains("egress"), "{status}");
    let digest = asked()["repository"]["digest"].as_str().unwrap().to_owned();
    world.ok(&["egress", "repository", "wants", "--accept", &digest, "--yes"]);
    assert_eq!(curl(&world, "wants", &web.url("/v1/a")).0, "200");
    // Another text is another request.
    world.box_ok("wants", "echo '# more' >> .agentbox/egress.yaml && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm more");
    eventually(SOON, "the layer's end", || {
        (curl(&world, "wants", &web.url("/v1/a")).0 != "200").then_some(())
    });
    assert!(
        world
            .agentbox(&["egress", "repository", "wants", "--accept", &digest, "--yes"])
            .status
            .code()
            != Some(0)
    );
}

#[test]
fn egress_12_55_the_key_of_the_authority_is_nowhere_in_a_box() {
    let (world, _web) = world("auto", "locked", reads);
    world.create("keys");
    let found = world.in_box("keys", "sudo grep -rl 'PRIVATE KEY' /etc/agentbox /usr/local/share/ca-certificates /etc/ssl /run /agentbox /home 2>/dev/null; true");
    let found = text(&found.stdout);
    assert!(found.lines().all(|file| file.contains("ssh")), "{found}");
    let key = std::fs::read_dir(world.home().join("ca"))
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "key"))
        .unwrap();
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let ca = world.json(&["egress", "ca"]);
    assert!(ca["ca"]["name"].as_str().unwrap().starts_with("AgentBox Egress CA "), "{ca}");
}

#[test]
fn egress_12_57_a_long_download_takes_no_memory() {
    let (world, web) = world("auto", "locked", |web| reads(web).replace("/v1/", "/big"));
    world.create("big");
    curl(&world, "big", &web.url("/big?bytes=1000000"));
    let before = rss(&world);
    let got =
        world.box_ok("big", &format!("curl -sS '{}' | wc -c", web.url("/big?bytes=2000000000")));
    assert_eq!(got.trim(), "2000000000");
    let grown = rss(&world).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KB more after 2 GB");
}

/// A command in a box that needs no host.
fn beside_the_host(world: &World, name: &str, script: &str) -> String {
    let container = format!("agentbox-{name}");
    let mut command = world.command("docker");
    command.args(["exec", "-u", "vscode", &container, "sh", "-c", script]);
    let output = command.output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

fn rss(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.host_pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
