//! What is around a proxy.

use super::{server::Authorities, until, within};
use agentbox_egress::authority::Authority;
use agentbox_egress::dial::{Net, Stream};
use agentbox_egress::host_name::HostName;
use agentbox_egress::policy::Policy;
use agentbox_egress::ports::{Answer, Ask, Gate, Log, SecretFault, Secrets, Told};
use agentbox_egress::proxy::{BoxSetup, Deps, Limits, Placeholder, Proxy};
use approvals::BoxFuture;
use protocol::egress::{Reason, Traffic, TrafficAction, TrafficKind};
use protocol::{BoxId, SecretId};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, watch};

pub const TOKEN: &str = "1111111111111111111111111111111111111111111111111111111111111111";

pub struct World {
    pub proxy: Arc<Proxy>,
    pub net: Arc<TestNet>,
    pub secrets: Arc<TestSecrets>,
    pub log: Arc<TestLog>,
    pub gate: Arc<TestGate>,
    pub authority: Arc<Authority>,
    pub authorities: Authorities,
    pub home: tempfile::TempDir,
    policies: Mutex<HashMap<BoxId, watch::Sender<Option<Arc<Policy>>>>>,
}

pub fn box_id(n: u8) -> BoxId {
    BoxId::from_bytes([0, 0, 0, n])
}

pub fn hash(token: &str) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(token.as_bytes()).into()
}

impl World {
    /// Box 1 with this policy.
    pub fn new(policy: Policy) -> Self {
        Self::with(Some(policy), Limits::default(), Vec::new())
    }

    pub fn with(policy: Option<Policy>, limits: Limits, placeholders: Vec<Placeholder>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let authority = Authority::open(&home.path().join("ca"), SystemTime::now()).unwrap();
        let authority = Arc::new(authority);
        let authorities = Authorities::new();
        let (net, secrets) = (Arc::new(TestNet::default()), Arc::new(TestSecrets::default()));
        let (log, gate) = (Arc::new(TestLog::default()), Arc::new(TestGate::default()));
        let roots = authorities.roots();
        let proxy = Proxy::new(Deps {
            secrets: secrets.clone(),
            log: log.clone(),
            gate: gate.clone(),
            net: net.clone(),
            authority: authority.clone(),
            roots: Box::new(move || roots.clone()),
            limits,
        });
        let world = Self {
            proxy: Arc::new(proxy),
            net,
            secrets,
            log,
            gate,
            authority,
            authorities,
            home,
            policies: Mutex::default(),
        };
        world.open(1, policy, placeholders);
        world
    }

    pub fn open(&self, n: u8, policy: Option<Policy>, placeholders: Vec<Placeholder>) {
        let (sender, receiver) = watch::channel(policy.map(Arc::new));
        self.policies.lock().unwrap().insert(box_id(n), sender);
        self.proxy.open(BoxSetup {
            id: box_id(n),
            name: format!("box-{n}").parse().unwrap(),
            token: hash(&TOKEN.replace('1', &n.to_string())),
            policy: receiver,
            placeholders,
        });
        let dir = self.dir(n);
        std::fs::create_dir_all(&dir).unwrap();
        self.proxy.listen(&box_id(n), &dir).unwrap();
    }

    fn dir(&self, n: u8) -> PathBuf {
        self.home.path().join(n.to_string())
    }

    pub fn socket(&self, n: u8) -> PathBuf {
        self.dir(n).join("egress.sock")
    }

    pub fn set_policy(&self, policy: Option<Policy>) {
        self.policies.lock().unwrap()[&box_id(1)].send(policy.map(Arc::new)).unwrap();
    }

    pub async fn dial(&self) -> UnixStream {
        UnixStream::connect(self.socket(1)).await.unwrap()
    }
}

/// Names lead to made-up public addresses, and those to servers of the test.
#[derive(Default)]
pub struct TestNet {
    names: Mutex<HashMap<String, Vec<IpAddr>>>,
    ways: Mutex<HashMap<SocketAddr, SocketAddr>>,
    pub lookups: Mutex<Vec<String>>,
    pub dials: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

impl TestNet {
    /// A name at an address of its own, whose port leads to a real one.
    pub fn route(&self, name: &str, port: u16, to: SocketAddr) -> SocketAddr {
        let mut names = self.names.lock().unwrap();
        let address = names.entry(name.to_owned()).or_insert_with(|| {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            vec![IpAddr::from([203, 0, 113, u8::try_from(n + 1).unwrap()])]
        })[0];
        let at = SocketAddr::new(address, port);
        self.ways.lock().unwrap().insert(at, to);
        at
    }

    pub fn resolve(&self, name: &str, addresses: &[&str]) {
        let all = addresses.iter().map(|a| a.parse().unwrap()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), all);
    }

    pub fn was_left_alone(&self) -> bool {
        self.lookups.lock().unwrap().is_empty() && self.dials.lock().unwrap().is_empty()
    }
}

impl Net for TestNet {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.lookups.lock().unwrap().push(name.to_owned());
        let found = self.names.lock().unwrap().get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        self.dials.lock().unwrap().push(to);
        let way = self.ways.lock().unwrap().get(&to).copied();
        Box::pin(async move {
            let way = way.ok_or(io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(TcpStream::connect(way).await?) as Box<dyn Stream>)
        })
    }

    fn interfaces(&self) -> Vec<IpAddr> {
        vec![[127, 0, 0, 1].into(), [198, 51, 100, 9].into()]
    }
}

/// Credentials by id, and for which hosts.
#[derive(Default)]
pub struct TestSecrets {
    values: Mutex<HashMap<String, String>>,
    bound: Mutex<HashMap<String, String>>,
    /// The keychain waits for a password that nobody types.
    pub locked: Mutex<bool>,
    pub broken: Mutex<bool>,
    pub asked: AtomicUsize,
}

impl TestSecrets {
    pub fn set(&self, id: &str, value: &str) {
        self.values.lock().unwrap().insert(id.into(), value.into());
    }

    pub fn bind(&self, id: &str, host: &str) {
        self.bound.lock().unwrap().insert(id.into(), host.into());
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Secrets for TestSecrets {
    fn resolve<'a>(
        &'a self,
        id: &'a SecretId,
        _: &'a BoxId,
        host: &'a HostName,
    ) -> BoxFuture<'a, Result<secrets::Value, SecretFault>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(!*self.broken.lock().unwrap(), "a fault in the store of credentials");
        let bound = self.bound.lock().unwrap().get(id.as_str()).cloned();
        let value = self.values.lock().unwrap().get(id.as_str()).cloned();
        let locked = *self.locked.lock().unwrap();
        Box::pin(async move {
            if locked {
                std::future::pending::<()>().await;
            }
            if bound.is_some_and(|bound| bound != host.as_str()) {
                let host = host.to_string();
                return Err(SecretFault::HostBinding { id: id.clone(), host });
            }
            let value = value.ok_or_else(|| SecretFault::NotFound(id.clone()))?;
            Ok(secrets::Value::new(value))
        })
    }
}

/// Every line, in the order in which they were written.
#[derive(Default)]
pub struct TestLog(Mutex<Vec<Traffic>>);

impl Log for TestLog {
    fn note(&self, line: Traffic) {
        self.0.lock().unwrap().push(line);
    }
}

impl TestLog {
    pub fn all(&self) -> Vec<Traffic> {
        self.0.lock().unwrap().clone()
    }

    /// Waits for a line.
    pub async fn line(&self, what: &str, fits: impl Fn(&Traffic) -> bool) -> Traffic {
        until(what, || self.all().into_iter().find(|line| fits(line))).await
    }

    pub async fn blocked(&self, reason: Reason) -> Traffic {
        let fits =
            |line: &Traffic| line.action == TrafficAction::Blocked && line.reason == Some(reason);
        self.line(reason.code(), fits).await
    }

    pub async fn kind(&self, kind: TrafficKind) -> Traffic {
        self.line(&format!("{kind:?}"), |line| line.kind == kind).await
    }

    /// All that was let through, once there are so many.
    pub async fn allowed(&self, n: usize) -> Vec<Traffic> {
        until("lines of what was allowed", || {
            let all = self.all();
            let allowed: Vec<_> =
                all.into_iter().filter(|l| l.action == TrafficAction::Allowed).collect();
            (allowed.len() >= n).then_some(allowed)
        })
        .await
    }

    pub fn text(&self) -> String {
        serde_json::to_string(&self.all()).unwrap()
    }
}

/// The person: answers as the test says, or lets wait.
#[derive(Default)]
pub struct TestGate {
    pub asked: Mutex<Vec<Ask>>,
    answer: Mutex<Option<Answer>>,
    told: Notify,
}

impl TestGate {
    pub fn say(&self, answer: Answer) {
        *self.answer.lock().unwrap() = Some(answer);
        self.told.notify_waiters();
    }

    pub fn yes(&self) {
        self.say(Answer::Allowed(Told::Once));
    }

    pub fn asked(&self) -> Vec<Ask> {
        self.asked.lock().unwrap().clone()
    }
}

impl Gate for TestGate {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        self.asked.lock().unwrap().push(ask);
        Box::pin(async move {
            loop {
                let told = self.told.notified();
                if let Some(answer) = *self.answer.lock().unwrap() {
                    return answer;
                }
                told.await;
            }
        })
    }
}

/// Limits that a test can wait for.
pub fn hasty() -> Limits {
    let short = Duration::from_millis(300);
    Limits { head: short, greeting: short, grace: short, secret: short, ..Limits::default() }
}

pub async fn gone(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(stream, &mut rest);
    let _ = within("the end of a connection", read).await;
    rest
}
