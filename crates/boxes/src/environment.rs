//! The environment of a box's container: for every command in it, however it is started.

use crate::Features;
use protocol::ctl::{ENV_GID, ENV_UID, Identity};
use protocol::egress::EgressMode;
use protocol::egress_env::variables;

/// `NAME=value` each. `image` is what the image itself says; it may be made from a box of the other kind.
pub(crate) fn environment(
    identity: &Identity,
    (uid, gid): (u32, u32),
    features: Features,
    egress: EgressMode,
    image: &[String],
) -> Vec<String> {
    let own = identity.variables().into_iter().map(|(name, value)| format!("{name}={value}"));
    own.chain([
        format!("{ENV_UID}={uid}"),
        format!("{ENV_GID}={gid}"),
        // Empty is as good as none, and hides that of a checkpoint whose box had a screen.
        format!("DISPLAY={}", if features.vnc { ":1" } else { "" }),
    ])
    .chain(way_out(egress, features.docker, image))
    .collect()
}

/// Where the proxy of a box without a network is, and whom to trust. A box with a network gets none of
/// it; what its image brings along is made to mean nothing.
pub(crate) fn way_out(egress: EgressMode, inner_engine: bool, before: &[String]) -> Vec<String> {
    let all = variables(inner_engine).into_iter();
    if egress.is_controlled() {
        return all.map(|variable| format!("{}={}", variable.name, variable.value)).collect();
    }
    let given = |name: &str| {
        let values = before.iter().filter_map(|pair| pair.split_once('='));
        values.rev().find(|(one, _)| *one == name).map(|(_, value)| value)
    };
    // One that somebody else set stays.
    let ours = all.filter(|v| given(v.name).is_some_and(|value| same(v.name, value, &v.value)));
    ours.map(|variable| format!("{}={}", variable.name, variable.idle)).collect()
}

/// The two that depend on the box are ours whatever they say.
fn same(name: &str, value: &str, ours: &str) -> bool {
    value == ours || (name.eq_ignore_ascii_case("NO_PROXY") && value.starts_with("localhost,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            id: "b00000001".parse().unwrap(),
            name: "fix".parse().unwrap(),
            host_workspace: None,
            project_root: None,
            project_index: 1,
        }
    }

    fn of(egress: EgressMode, image: &[String]) -> Vec<String> {
        environment(&identity(), (1000, 1000), Features::default(), egress, image)
    }

    #[test]
    fn only_a_box_without_a_network_is_told_of_a_proxy() {
        let open = of(EgressMode::Open, &["PATH=/bin".into()]);
        assert!(!open.iter().any(|pair| pair.to_lowercase().contains("proxy")), "{open:?}");
        for mode in [EgressMode::Observe, EgressMode::Balanced, EgressMode::Locked] {
            let closed = of(mode, &[]);
            for wanted in [
                "http_proxy=http://127.0.0.1:3128",
                "HTTPS_PROXY=http://127.0.0.1:3128",
                "NODE_USE_ENV_PROXY=1",
                "GIT_ASKPASS=/usr/local/bin/agentbox-askpass",
                "GIT_TERMINAL_PROMPT=0",
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
                "NODE_EXTRA_CA_CERTS=/etc/agentbox/ca.crt",
            ] {
                assert!(closed.iter().any(|pair| pair == wanted), "{wanted}: {closed:?}");
            }
        }
    }

    #[test]
    fn what_an_image_brings_along_means_nothing_in_a_box_with_a_network() {
        let mut image = of(EgressMode::Locked, &[]);
        image.push("AWS_CA_BUNDLE=/mine.pem".into());
        image.push("HTTP_PROXY=http://proxy.example:8080".into());
        let open = of(EgressMode::Open, &image);
        for wanted in ["https_proxy=", "GIT_TERMINAL_PROMPT=1", "JAVA_TOOL_OPTIONS=", "NO_PROXY="] {
            assert!(open.iter().any(|pair| pair == wanted), "{wanted}: {open:?}");
        }
        assert!(!open.iter().any(|pair| pair.contains("3128")), "{open:?}");
        // The person's own.
        let touched = |name: &str| open.iter().any(|pair| pair.starts_with(name));
        assert!(!touched("AWS_CA_BUNDLE=") && !touched("HTTP_PROXY="), "{open:?}");
    }
}
