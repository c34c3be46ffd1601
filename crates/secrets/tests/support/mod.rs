//! A bus and a keyring of a test's own, and a stand-in that wants a password for everything.
//!
//! The bus knows no service files: what a test did not start is not there, and nothing of the
//! machine's own desktop is reached.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zbus::blocking::{Connection, connection};
use zbus::zvariant::{ObjectPath, OwnedObjectPath};

/// A session bus.
pub struct Bus {
    dir: tempfile::TempDir,
    daemon: Child,
}

impl Bus {
    pub fn start() -> Self {
        // Short: a Unix socket's path has 108 bytes at most.
        let dir = tempfile::Builder::new().prefix("abx.").tempdir_in("/tmp").unwrap();
        let config = dir.path().join("bus.conf");
        let text = format!(
            "<!DOCTYPE busconfig PUBLIC '-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN'
               'http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd'>
             <busconfig><type>session</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>
             <policy context='default'><allow send_destination='*' eavesdrop='true'/>
             <allow eavesdrop='true'/><allow own='*'/></policy></busconfig>",
            dir.path().display()
        );
        std::fs::write(&config, text).unwrap();
        let daemon = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--config-file"])
            .arg(&config)
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon (package dbus)");
        let bus = Self { dir, daemon };
        let socket = bus.dir.path().join("bus");
        eventually("the bus", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        bus
    }

    pub fn address(&self) -> String {
        format!("unix:path={}/bus", self.dir.path().display())
    }

    pub fn connect(&self) -> Connection {
        let address = self.address();
        let builder = connection::Builder::address(address.as_str()).unwrap();
        builder.method_timeout(Duration::from_secs(20)).build().unwrap()
    }

    pub fn stop(&self, signal: Signal) {
        send(&self.daemon, signal);
    }

    pub fn has_keyring(&self) -> bool {
        let name = zbus::names::BusName::try_from("org.freedesktop.secrets").unwrap();
        let dbus = zbus::blocking::fdo::DBusProxy::new(&self.connect()).unwrap();
        dbus.name_has_owner(name).unwrap()
    }

    fn folder(&self, name: &str) -> PathBuf {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = self.dir.path().join(name);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).unwrap();
        path
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        end(&mut self.daemon);
    }
}

/// GNOME Keyring with its login keyring unlocked. A second one on the same bus finds the files of
/// the first.
pub struct Keyring {
    daemon: Child,
}

impl Keyring {
    pub fn start(bus: &Bus) -> Self {
        let mut daemon = Command::new("gnome-keyring-daemon")
            .args(["--foreground", "--unlock", "--components=secrets"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", bus.folder("home"))
            .env("XDG_RUNTIME_DIR", bus.folder("run"))
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("gnome-keyring-daemon (package gnome-keyring)");
        // With an empty password no keyring would be made.
        daemon.stdin.take().unwrap().write_all(b"test").unwrap();
        eventually("the keyring", || bus.has_keyring());
        Self { daemon }
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.daemon, signal);
    }

    /// Gone for good, as its bus sees it.
    pub fn kill(mut self, bus: &Bus) {
        end(&mut self.daemon);
        eventually("the end of the keyring", || !bus.has_keyring());
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        end(&mut self.daemon);
    }
}

const SERVICE: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";

/// Locks the login keyring, as a screen lock or the person would.
pub fn lock(bus: &Bus) {
    let bus = bus.connect();
    let call = |method, arguments: &[ObjectPath<'_>]| {
        let interface = Some("org.freedesktop.Secret.Service");
        bus.call_method(Some(SERVICE), SERVICE_PATH, interface, method, &(arguments,)).unwrap()
    };
    let collection =
        ObjectPath::from_static_str("/org/freedesktop/secrets/collection/login").unwrap();
    let reply = call("Lock", &[collection]);
    let (locked, _): (Vec<OwnedObjectPath>, OwnedObjectPath) = reply.body().deserialize().unwrap();
    assert_eq!(locked.len(), 1, "the login keyring was not locked");
}

/// The items a tool other than ours sees.
pub fn items(bus: &Bus, attribute: &str, value: &str) -> Vec<OwnedObjectPath> {
    let attributes = std::collections::HashMap::from([(attribute, value)]);
    let interface = Some("org.freedesktop.Secret.Service");
    let reply = bus
        .connect()
        .call_method(Some(SERVICE), SERVICE_PATH, interface, "SearchItems", &(attributes,))
        .unwrap();
    let (unlocked, _): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
        reply.body().deserialize().unwrap();
    unlocked
}

pub fn label(bus: &Bus, item: &OwnedObjectPath) -> String {
    let proxy =
        zbus::blocking::Proxy::new(&bus.connect(), SERVICE, item, "org.freedesktop.Secret.Item")
            .unwrap();
    proxy.get_property("Label").unwrap()
}

pub fn eventually(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !ready() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
