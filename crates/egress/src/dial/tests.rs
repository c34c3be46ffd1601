use super::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// Names that resolve to what the test says; every connection is noted, and made unless it is to hang or
/// fail.
#[derive(Default)]
struct Fake {
    names: HashMap<&'static str, Vec<IpAddr>>,
    silent: Vec<IpAddr>,
    shut: Vec<IpAddr>,
    looked: Mutex<Vec<String>>,
    connected: Mutex<Vec<SocketAddr>>,
}

impl Net for Fake {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.looked.lock().unwrap().push(name.to_owned());
        let found = self.names.get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        self.connected.lock().unwrap().push(to);
        Box::pin(async move {
            if self.silent.contains(&to.ip()) {
                std::future::pending::<()>().await;
            }
            if self.shut.contains(&to.ip()) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Ok(Box::new(tokio::io::empty()) as Box<dyn Stream>)
        })
    }

    fn interfaces(&self) -> Vec<IpAddr> {
        vec!["198.51.100.9".parse().unwrap()]
    }
}

fn ips(all: &[&str]) -> Vec<IpAddr> {
    all.iter().map(|a| a.parse().unwrap()).collect()
}

fn to(host: &str, allow_private: bool) -> Destination {
    Destination { host: HostName::parse(host).unwrap(), port: 443, allow_private }
}

fn dialer(fake: Fake) -> (Dialer, Arc<Fake>) {
    let fake = Arc::new(fake);
    (Dialer::new(fake.clone(), Duration::from_secs(30)), fake)
}

fn connected(fake: &Fake) -> Vec<String> {
    fake.connected.lock().unwrap().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_connected_to() {
    let inside = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "198.51.100.9", "::ffff:10.0.0.1"];
    for address in inside {
        let names = [("in.ex.com", ips(&[address]))].into();
        let (dialer, fake) = dialer(Fake { names, ..Fake::default() });
        let refused = dialer.dial(&to("in.ex.com", false)).await.err().unwrap();
        assert_eq!(refused.reason, Reason::PrivateAddress, "{address}");
        // The same without a name.
        let refused = dialer.dial(&to(address, false)).await.err().unwrap();
        assert_eq!(refused.reason, Reason::PrivateAddress, "{address}");
        assert_eq!(connected(&fake), [""; 0]);
    }
}

#[tokio::test]
async fn what_is_connected_to_is_what_was_filtered() {
    let names = [("mixed.ex.com", ips(&["127.0.0.1", "203.0.113.5"]))].into();
    let (dialer, fake) = dialer(Fake { names, ..Fake::default() });
    let dialled = dialer.dial(&to("mixed.ex.com", false)).await.ok().unwrap();
    assert_eq!(dialled.remote.to_string(), "203.0.113.5:443");
    assert!(!dialled.private);
    assert_eq!(connected(&fake), ["203.0.113.5:443"]);
    assert_eq!(fake.looked.lock().unwrap().len(), 1, "a name is looked up once");
}

#[tokio::test]
async fn a_private_address_is_marked_as_one() {
    let names = [("db.ex.com", ips(&["10.0.0.1"]))].into();
    let (dialer, _) = dialer(Fake { names, ..Fake::default() });
    assert!(dialer.dial(&to("db.ex.com", true)).await.ok().unwrap().private);
}

#[tokio::test]
async fn containers_are_neighbours_from_the_moment_they_are_known() {
    let names = [("c.ex.com", ips(&["203.0.113.5"]))].into();
    let (dialer, _) = dialer(Fake { names, ..Fake::default() });
    assert!(dialer.dial(&to("c.ex.com", false)).await.is_ok());
    let subnets = vec!["203.0.113.0/24".parse().unwrap()];
    dialer.surround(Surroundings { subnets, ports: Vec::new() });
    let refused = dialer.dial(&to("c.ex.com", false)).await.err().unwrap();
    assert_eq!(refused.reason, Reason::PrivateAddress);
}

#[tokio::test]
async fn this_computer_has_one_name_and_agentbox_is_not_behind_it() {
    let (dialer, fake) = dialer(Fake::default());
    dialer.surround(Surroundings { subnets: Vec::new(), ports: vec![1355] });
    let at = |port| Destination { port, ..to("host.agentbox.internal", false) };
    assert!(dialer.dial(&at(8080)).await.is_ok());
    assert_eq!(dialer.dial(&at(1355)).await.err().unwrap().reason, Reason::PrivateAddress);
    assert_eq!(connected(&fake), ["127.0.0.1:8080"]);
    assert!(fake.looked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_answer_holds_nobody_up() {
    let names = [("two.ex.com", ips(&["203.0.113.5", "203.0.113.6", "203.0.113.7"]))].into();
    let (silent, shut) = (ips(&["203.0.113.5"]), ips(&["203.0.113.6"]));
    let (dialer, _) = dialer(Fake { names, silent, shut, ..Fake::default() });
    let dialled = dialer.dial(&to("two.ex.com", false)).await.ok().unwrap();
    assert_eq!(dialled.remote.to_string(), "203.0.113.7:443");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends() {
    let names = [("dead.ex.com", ips(&["203.0.113.5"])), ("shut.ex.com", ips(&["203.0.113.6"]))];
    let (silent, shut) = (ips(&["203.0.113.5"]), ips(&["203.0.113.6"]));
    let (dialer, _) = dialer(Fake { names: names.into(), silent, shut, ..Fake::default() });
    let reason = async |host| dialer.dial(&to(host, false)).await.err().unwrap().reason;
    assert_eq!(reason("dead.ex.com").await, Reason::UpstreamTimeout);
    assert_eq!(reason("shut.ex.com").await, Reason::UpstreamUnreachable);
    assert_eq!(reason("none.ex.com").await, Reason::UpstreamUnreachable);
}
