//! A box's screen and its ssh server: reached from this computer, with what the host knows, and by
//! nobody else. PID 1 keeps them running.

use crate::image::{full, inspect, port, published};
use crate::world::{SOON, World, text};
use agentbox_e2e::rfb;
use agentbox_e2e::wait::{eventually, eventually_or, in_time};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::Duration;

/// The password a box's screen asks for now.
fn password(world: &World, name: &str) -> String {
    let dump = world.box_ok(name, "od -An -v -tx1 /run/agentbox/screen/password");
    let bytes: Vec<u8> =
        dump.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    rfb::unscrambled(&bytes)
}

fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let _ = write!(stream, "GET {path} HTTP/1.0\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    text(&answer)
}

#[track_caller]
fn opens(port: u16, password: &str) {
    let size = eventually_or(SOON, "the screen", || rfb::greet(port, password));
    assert_eq!(size, (1280, 800));
}

#[test]
fn a_screen_opens_in_the_browser_with_the_password_of_this_start() {
    let mut world = full("");
    let made = world.create("seen");
    let screen = port("seen", "6080/tcp");
    let page = eventually(SOON, "the page", || {
        let page = get(screen, "/vnc.html");
        page.contains("200 OK").then_some(page)
    });
    assert!(page.contains("noVNC"), "{page}");
    let first = password(&world, "seen");
    assert!(first.len() == 8 && first.bytes().all(|b| b.is_ascii_alphanumeric()), "{first}");
    opens(screen, &first);
    assert_eq!(rfb::greet(screen, "nonsense"), Err("refused".into()));
    assert_eq!(world.box_ok("seen", "echo $DISPLAY"), ":1");
    // The server itself is not reachable from other computers or boxes.
    let listening = world.box_ok("seen", "cat /proc/net/tcp");
    let rfb: Vec<&str> = listening.lines().filter(|line| line.contains(":170D 00000000")).collect();
    assert!(rfb.len() == 1 && rfb[0].contains("0100007F:170D"), "{listening}");

    // Nowhere but in the box's memory and the host's.
    let seen = format!("{:?}", inspect("seen"));
    let database = text(&std::fs::read(world.home().join("agentbox.db")).unwrap());
    let log = text(&std::fs::read(world.home().join("agentbox.db-wal")).unwrap_or_default());
    let said = world.ok(&["list", "--json"]) + &world.ok(&["status", "--json"]);
    for place in [&seen, &database, &log, &said, &world.host_log()] {
        assert!(!place.contains(&first), "the password is in {place}");
    }

    world.ok(&["stop", "seen"]);
    world.ok(&["start", "seen"]);
    let screen = port("seen", "6080/tcp");
    let second = eventually(SOON, "a new password", || {
        Some(password(&world, "seen")).filter(|now| *now != first)
    });
    opens(screen, &second);
    assert_eq!(rfb::greet(screen, &first), Err("refused".into()));

    // A host that comes back gives it another one.
    world.kill_host();
    world.start_serve();
    eventually_or(SOON, "a new password", || match password(&world, "seen") {
        now if now == second => Err("the old one".to_owned()),
        now => rfb::greet(screen, &now),
    });
    assert_eq!(made["state"], "running");
}

#[test]
fn boxes_16_48_a_box_without_a_screen_has_no_port_for_one() {
    let world = full("");
    world.json(&["create", "-n", "blind", "--no-vnc"]);
    let ports = published(&inspect("blind"));
    let inner: Vec<&str> = ports.iter().map(|(inner, _, _)| inner.as_str()).collect();
    assert_eq!(inner, ["22/tcp", "80/tcp"]);
    assert!(ports.iter().all(|(_, address, _)| address == "127.0.0.1"), "{ports:?}");
    eventually(SOON, "the ssh server", || {
        world.in_box("blind", "pgrep -x sshd").status.success().then_some(())
    });
    assert!(!world.in_box("blind", "pgrep Xvnc").status.success());
    assert!(!world.in_box("blind", "test -e /run/agentbox/screen").status.success());
    assert_eq!(world.box_ok("blind", "echo $DISPLAY"), "");
}

/// A way into a box, as the host would take it.
pub struct Ssh<'a> {
    world: &'a World,
    pub folder: std::path::PathBuf,
    id: String,
    port: u16,
}

impl<'a> Ssh<'a> {
    pub fn to(world: &'a World, made: &serde_json::Value) -> Self {
        let id = made["id"].as_str().unwrap().to_owned();
        let folder = world.home().join("boxes").join(&id).join("ssh");
        let port = port(made["name"].as_str().unwrap(), "22/tcp");
        Self { world, folder, id, port }
    }

    /// With the host's own keys, and nobody else's words.
    fn command(&self, program: &str, key: &std::path::Path) -> Command {
        let mut command = self.world.command(program);
        let known = format!("UserKnownHostsFile={}", self.folder.join("known_hosts").display());
        let alias = format!("HostKeyAlias=agentbox-{}", self.id);
        for option in ["BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"] {
            command.args(["-o", option]);
        }
        command.args(["-F", "none", "-o", &known, "-o", &alias, "-i"]).arg(key);
        command.args([if program == "sftp" { "-P" } else { "-p" }, &self.port.to_string()]);
        command
    }

    pub fn run(&self, user: &str, key: &std::path::Path, more: &[&str]) -> Output {
        let mut command = self.command("ssh", key);
        command.arg(format!("{user}@127.0.0.1")).args(more).output().unwrap()
    }
}

#[test]
fn an_ssh_server_lets_in_the_key_of_its_box_alone() {
    let world = full("");
    let (made, other) = (world.create("told"), world.create("other"));
    let (ssh, other) = (Ssh::to(&world, &made), Ssh::to(&world, &other));
    let key = ssh.folder.join("id_ed25519");
    let who = eventually_or(SOON, "a session", || {
        let output = ssh.run("vscode", &key, &["whoami; echo $AGENTBOX_BOX_NAME $LANG; pwd"]);
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    });
    assert_eq!(who, "vscode\ntold C.UTF-8\n/home/vscode\n");
    for (user, key) in [("vscode", other.folder.join("id_ed25519")), ("root", key.clone())] {
        let refused = ssh.run(user, &key, &["true"]);
        assert_eq!(refused.status.code(), Some(255), "{user}");
        assert!(text(&refused.stderr).contains("Permission denied (publickey)"), "{refused:?}");
    }
    // It is the one that was expected: the other one's key would not do.
    eventually_or(SOON, "the other one's session", || {
        let output = other.run("vscode", &other.folder.join("id_ed25519"), &["true"]);
        if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
    });
    let strange = Ssh { port: other.port, ..Ssh::to(&world, &made) };
    let refused = strange.run("vscode", &key, &["true"]);
    assert!(text(&refused.stderr).contains("Host key verification failed"), "{refused:?}");
    // No way through it.
    let through =
        ssh.command("ssh", &key).args(["-W", "127.0.0.1:22", "vscode@127.0.0.1"]).output();
    let through = through.unwrap();
    assert!(!through.status.success());
    assert!(text(&through.stderr).contains("administratively prohibited"), "{through:?}");
    // Files come and go.
    let batch = world.dir().join("batch");
    std::fs::write(&batch, "put README.md /tmp/copied\nls /tmp/copied\n").unwrap();
    let mut sftp = ssh.command("sftp", &key);
    sftp.arg("-b").arg(&batch).arg("vscode@127.0.0.1").current_dir(world.project());
    let output = sftp.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(world.box_ok("told", "cat /tmp/copied"), "# Shop");
    // What a checkpoint would keep has no key in it.
    let keys = "sudo find / -xdev \\( -name 'ssh_host_*key*' -o -name authorized_keys \\)";
    assert_eq!(world.box_ok("told", keys), "");
    // Gone with the box.
    world.ok(&["destroy", "-y", "told"]);
    assert!(!ssh.folder.exists());
}

#[test]
fn daemons_come_back_when_they_are_killed_and_leave_nothing_behind() {
    let world = full("");
    world.create("tough");
    let screen = port("tough", "6080/tcp");
    opens(screen, &password(&world, "tough"));
    for (program, shown) in [("Xvnc", "Xvnc"), ("websockify", "websockify"), ("sshd", "sshd")] {
        let pid = || {
            let found = world.in_box("tough", &format!("pgrep -o -f '(^|/){program}( |$)'"));
            text(&found.stdout).trim().to_owned()
        };
        let before = eventually(SOON, shown, || Some(pid()).filter(|pid| !pid.is_empty()));
        world.box_ok("tough", &format!("sudo kill -9 {before}"));
        eventually(SOON, &format!("another {shown}"), || {
            let now = pid();
            (!now.is_empty() && now != before).then_some(())
        });
    }
    opens(screen, &password(&world, "tough"));
    // Whatever loses its parent is taken care of, too.
    world.box_ok("tough", "for n in 1 2 3 4 5; do sh -c '(sleep 0.1 &) &' & done; wait");
    eventually(SOON, "no zombies", || {
        let count = world.box_ok("tough", "ps -eo stat= | grep -c '^Z' || true");
        (count == "0").then_some(())
    });
}

#[test]
fn what_daemons_print_is_kept_and_bounded() {
    let world = full("");
    world.create("noisy");
    eventually(SOON, "its log", || {
        let log = world.in_box("noisy", "cat /var/log/agentbox/sshd.log");
        text(&log.stdout).contains("listening on 0.0.0.0 port 22").then_some(())
    });
    let flood = "yes 'a line that says nothing' | head -c 5000000 | \
                 sudo tee /proc/$(pgrep -o -x sshd)/fd/2 > /dev/null; echo the end | \
                 sudo tee /proc/$(pgrep -o -x sshd)/fd/2 > /dev/null";
    world.box_ok("noisy", flood);
    eventually(SOON, "all of it", || {
        let log = world.box_ok("noisy", "tail -n 1 /var/log/agentbox/sshd.log");
        (log == "the end").then_some(())
    });
    let sizes = world.box_ok("noisy", "stat -c %s /var/log/agentbox/sshd.log*");
    let sizes: Vec<u64> = sizes.lines().map(|size| size.parse().unwrap()).collect();
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() <= 2 * 1024 * 1024, "{sizes:?}");
}

#[test]
fn stopping_an_idle_box_with_all_daemons_stays_quick() {
    let world = full("");
    world.create("idle");
    in_time(Duration::from_millis(500), "a stop", || {
        opens(port("idle", "6080/tcp"), &password(&world, "idle"));
        let began = std::time::Instant::now();
        world.ok(&["stop", "idle"]);
        let took = began.elapsed();
        world.ok(&["start", "idle"]);
        took
    });
}
