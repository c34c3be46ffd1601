//! The ports of a box, published on the host's loopback and nowhere else.
//!
//! The engine picks the host's numbers anew at every start, so they are read back, never assumed.

use crate::engine::QUICK;
use crate::lifecycle::gone;
use crate::{Boxes, Error, Features, Record};
use bollard::models::{PortBinding, PortMap, PortSummary};
use bollard::query_parameters::InspectContainerOptions;
use protocol::boxes::Endpoints;
use protocol::ctl::ports;

const LOOPBACK: &str = "127.0.0.1";

/// What to publish; the host's number is left to the engine.
pub(crate) fn bindings(features: Features) -> PortMap {
    let wanted = [(true, ports::WEB), (features.vnc, ports::SCREEN), (features.ssh, ports::SSH)];
    let binding = || {
        Some(vec![PortBinding {
            host_ip: Some(LOOPBACK.to_owned()),
            host_port: Some("0".to_owned()),
        }])
    };
    wanted
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, port)| (key(port), binding()))
        .collect()
}

/// The names of the published ports, as the container's configuration wants them.
pub(crate) fn exposed(bindings: &PortMap) -> Vec<String> {
    bindings.keys().cloned().collect()
}

fn key(port: u16) -> String {
    format!("{port}/tcp")
}

fn from_map(map: &PortMap) -> Endpoints {
    let of = |port: u16| {
        let bound = map.get(&key(port))?.as_ref()?;
        let ours = bound.iter().find(|b| b.host_ip.as_deref() == Some(LOOPBACK))?;
        ours.host_port.as_deref()?.parse().ok().filter(|port| *port != 0)
    };
    Endpoints { web: of(ports::WEB), vnc: of(ports::SCREEN), ssh: of(ports::SSH) }
}

/// The same from a line of the engine's list.
pub(crate) fn from_list(list: &[PortSummary]) -> Endpoints {
    let of = |port: u16| {
        let ours = |p: &&PortSummary| p.private_port == port && p.ip.as_deref() == Some(LOOPBACK);
        list.iter().find(ours)?.public_port
    };
    Endpoints { web: of(ports::WEB), vnc: of(ports::SCREEN), ssh: of(ports::SSH) }
}

impl Boxes {
    /// Where a running box can be reached now.
    pub async fn endpoints(&self, record: &Record) -> Result<Endpoints, Error> {
        let docker = self.engine.docker();
        let inspect = docker.inspect_container(&record.container, None::<InspectContainerOptions>);
        let seen = self.engine.ask("look at the box", QUICK, inspect).await.map_err(gone)?;
        let map = seen.network_settings.and_then(|network| network.ports).unwrap_or_default();
        Ok(from_map(&map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(ip: &str, port: &str) -> PortBinding {
        PortBinding { host_ip: Some(ip.into()), host_port: Some(port.into()) }
    }

    #[test]
    fn only_what_a_box_has_is_published_and_only_on_loopback() {
        let all = Features { vnc: true, ssh: true, docker: false };
        let mut names = exposed(&bindings(all));
        names.sort();
        assert_eq!(names, ["22/tcp", "6080/tcp", "80/tcp"]);
        assert_eq!(exposed(&bindings(Features::default())), ["80/tcp"]);
        for bound in bindings(all).into_values().flatten().flatten() {
            assert_eq!(bound.host_ip.as_deref(), Some("127.0.0.1"));
        }
    }

    #[test]
    fn ports_are_read_back_from_the_loopback_alone() {
        let map = PortMap::from([
            ("80/tcp".into(), Some(vec![bound("0.0.0.0", "1"), bound("127.0.0.1", "49153")])),
            ("6080/tcp".into(), None),
            ("22/tcp".into(), Some(vec![bound("127.0.0.1", "0")])),
        ]);
        assert_eq!(from_map(&map), Endpoints { web: Some(49153), vnc: None, ssh: None });
        let line = |private_port, ip: &str, public_port| PortSummary {
            ip: Some(ip.into()),
            private_port,
            public_port,
            ..PortSummary::default()
        };
        let list =
            [line(22, "127.0.0.1", Some(5)), line(80, "::", Some(6)), line(80, "127.0.0.1", None)];
        assert_eq!(from_list(&list), Endpoints { web: None, vnc: None, ssh: Some(5) });
    }
}
