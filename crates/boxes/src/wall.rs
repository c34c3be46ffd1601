//! That a box without a network has none, proven before anything in it runs.
//!
//! Twice: the engine says what the container is attached to, which nothing in a box can change, and
//! `agentbox-ctl egress selftest` in the box tries the ways out that must not be there. What the box says
//! can only make matters worse for it: a way that is found stops the box, and so does silence.

use crate::answer::Answer;
use crate::create::json_line;
use crate::engine::{QUICK, limited};
use crate::exec::CtlCall;
use crate::lifecycle::gone;
use crate::{Boxes, Error, Record};
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{InspectContainerOptions, KillContainerOptionsBuilder};
use futures_util::stream;
use protocol::ctl::{Selftest, Tested};
use protocol::text::shortened;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// What a container without a network is attached to, by the engine's word for it.
const NONE: &str = "none";
/// A whole test; most of what it tries fails at once.
const TEST: Duration = Duration::from_secs(20);
const ANSWER: usize = 16 * 1024;
/// More addresses than a computer has, and few enough to try.
const ADDRESSES: usize = 64;
/// What a person is shown of what was found.
const SHOWN: usize = 8;

impl Boxes {
    /// An error, and a stopped box, unless a box meant to have no network has none. Boxes that are meant
    /// to have one pass.
    pub async fn prove_closed(&self, record: &Record) -> Result<(), Error> {
        if !record.egress.is_controlled() {
            return Ok(());
        }
        self.prove_container_closed(&record.container).await
    }

    pub(crate) async fn prove_container_closed(&self, container: &str) -> Result<(), Error> {
        let proven = async {
            self.refuse_networks(container).await?;
            let found = self.selftest(container, false).await?.open;
            if found.is_empty() { Ok(()) } else { Err(Error::EgressUnsafe(shown(found))) }
        };
        let Err(error) = Box::pin(proven).await else { return Ok(()) };
        self.end_at_once(container).await;
        Err(error)
    }

    /// An error, and a stopped box, when somebody has attached a box to a network that is to have none.
    pub async fn prove_unattached(&self, record: &Record) -> Result<(), Error> {
        if !record.egress.is_controlled() {
            return Ok(());
        }
        let seen = self.refuse_networks(&record.container).await;
        if matches!(seen, Err(Error::EgressUnsafe(_))) {
            self.end_at_once(&record.container).await;
        }
        seen
    }

    /// By the engine's word alone; the container need not run.
    pub(crate) async fn refuse_networks(&self, container: &str) -> Result<(), Error> {
        let docker = self.engine.docker();
        let inspect = docker.inspect_container(container, None::<InspectContainerOptions>);
        let seen = self.engine.ask("look at the box", QUICK, inspect).await.map_err(gone)?;
        let found = networks(&seen);
        if found.is_empty() { Ok(()) } else { Err(Error::EgressUnsafe(shown(found))) }
    }

    /// Has the box try what must not work and, where asked, what must.
    pub async fn selftest_of(&self, record: &Record) -> Result<Tested, Error> {
        self.selftest(&record.container, true).await
    }

    async fn selftest(&self, container: &str, proxy: bool) -> Result<Tested, Error> {
        let line = json_line(&Selftest { addresses: own_addresses(), proxy })?;
        let call = CtlCall {
            args: vec!["egress".to_owned(), "selftest".to_owned()],
            user: Some("0".to_owned()),
            ..CtlCall::default()
        };
        let mut answer = Answer::to("egress selftest", ANSWER);
        let feed = stream::iter([Ok(line)]);
        let test = Box::pin(self.ctl(container, call, feed, &mut answer));
        limited("test the box's way out", TEST, test).await??;
        answer.read()
    }

    /// Without a moment for what runs in it. Whatever comes of it is said by the next look at the engine.
    async fn end_at_once(&self, container: &str) {
        let options = KillContainerOptionsBuilder::default().signal("SIGKILL").build();
        let request = self.engine.docker().kill_container(container, Some(options));
        if let Err(error) = self.engine.ask("stop the box", QUICK, request).await {
            // One that does not run has been stopped.
            tracing::warn!(%error, "a box whose way out is not safe may still run");
        }
    }
}

/// Every network a container has or will have when it starts; none for one with loopback alone.
fn networks(seen: &ContainerInspectResponse) -> Vec<String> {
    let mode = seen.host_config.as_ref().and_then(|host| host.network_mode.clone());
    let attached = seen.network_settings.as_ref().and_then(|network| network.networks.as_ref());
    let names: BTreeSet<String> =
        mode.into_iter().chain(attached.into_iter().flat_map(|all| all.keys().cloned())).collect();
    if names.is_empty() {
        return vec!["the engine does not say which networks it has".to_owned()];
    }
    let others = names.into_iter().filter(|name| name != NONE);
    others.map(|name| format!("it is attached to the network {name}")).collect()
}

/// The box has a say in what stands there.
fn shown(found: Vec<String>) -> Vec<String> {
    found.into_iter().take(SHOWN).map(|line| shortened(&line, 200)).collect()
}

/// Where this computer could be reached, if there were a way.
fn own_addresses() -> Vec<IpAddr> {
    let Ok(all) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
    };
    let routed = |address: &IpAddr| match address {
        IpAddr::V4(four) => !four.is_loopback(),
        IpAddr::V6(six) => !six.is_loopback() && !six.is_unicast_link_local(),
    };
    let all: BTreeSet<IpAddr> = all.filter_map(address).filter(routed).collect();
    all.into_iter().take(ADDRESSES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(mode: &str, networks: &[&str]) -> Vec<String> {
        let attached: serde_json::Map<_, _> =
            networks.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let seen = json!({
            "HostConfig": { "NetworkMode": mode },
            "NetworkSettings": { "Networks": attached },
        });
        super::networks(&serde_json::from_value(seen).unwrap())
    }

    #[test]
    fn egress_12_52_a_network_is_seen_however_it_came() {
        assert!(seen("none", &["none"]).is_empty());
        assert!(seen("none", &[]).is_empty());
        assert_eq!(seen("none", &["none", "bridge"]), ["it is attached to the network bridge"]);
        assert_eq!(seen("none", &["bridge"]).len(), 1);
        assert_eq!(seen("host", &["host"]).len(), 1);
        assert_eq!(seen("4f2a", &["none"]).len(), 1);
        assert_eq!(seen("container:4f2a", &[]).len(), 1);
        // An engine that says nothing is not believed.
        assert_eq!(networks(&ContainerInspectResponse::default()).len(), 1);
    }

    #[test]
    fn this_computers_own_addresses_are_tried() {
        assert!(own_addresses().iter().all(|address| !address.is_loopback()));
    }
}
