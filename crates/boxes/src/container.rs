//! A box's container, as the engine is told to make it.

use crate::create::{STOP_SECONDS, box_ids};
use crate::engine::{Kind, Profile};
use crate::environment::environment;
use crate::labels::Labels;
use crate::{Error, Features, docker, limits, ports};
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountTmpfsOptions, MountType,
};
use protocol::Limits;
use protocol::ctl::{Identity, paths};
use protocol::egress::EgressMode;
use std::path::Path;

/// Everything that differs from box to box.
pub(crate) struct Plan<'a> {
    pub identity: Identity,
    pub image: &'a str,
    /// What the image itself puts into the environment.
    pub image_env: &'a [String],
    pub mounts: Vec<Mount>,
    /// The box's own network; none for a box that goes out through the host.
    pub network: Option<&'a str>,
    pub egress: EgressMode,
    pub features: Features,
    pub limits: Limits,
    pub labels: Labels,
}

impl Plan<'_> {
    pub fn body(self, profile: &Profile) -> ContainerCreateBody {
        let Self { identity, image, image_env, mounts, network, egress, features, .. } = self;
        let rootless = is_rootless_podman(profile);
        let mut host = HostConfig {
            mounts: Some(mounts),
            security_opt: profile.selinux.then(|| vec!["label=disable".to_owned()]),
            userns_mode: rootless.then(|| "keep-id:uid=1000,gid=1000".to_owned()),
            log_config: Some(log_limit(profile)),
            ..HostConfig::default()
        };
        let exposed_ports = Some(attach(&mut host, network, features));
        limits::apply(limits::possible(self.limits, profile).0, &mut host);
        if features.docker {
            docker::empower(&mut host, &identity.id);
        }
        let ids = ids_in(profile);
        ContainerCreateBody {
            image: Some(image.to_owned()),
            // The container's name may be longer than a host name can be.
            hostname: Some(identity.name.to_string()),
            entrypoint: Some(vec![paths::CTL.to_owned(), "init".to_owned()]),
            cmd: Some(Vec::new()),
            user: Some("0".to_owned()),
            working_dir: Some(paths::WORKSPACE.to_owned()),
            env: Some(environment(&identity, ids, features, egress, image_env)),
            exposed_ports,
            labels: Some(self.labels),
            stop_timeout: Some(STOP_SECONDS.into()),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }
}

/// Puts a container on the box's network, with the ports people use; or on none, with nothing but
/// loopback. Answers the ports.
fn attach(host: &mut HostConfig, network: Option<&str>, features: Features) -> Vec<String> {
    let Some(network) = network else {
        host.network_mode = Some("none".to_owned());
        // There is nothing to listen in on; without containers of its own, nobody needs it either.
        host.cap_drop = (!features.docker).then(|| vec!["NET_RAW".to_owned()]);
        return Vec::new();
    };
    let bindings = ports::bindings(features);
    let exposed = ports::exposed(&bindings);
    host.network_mode = Some(network.to_owned());
    host.port_bindings = Some(bindings);
    exposed
}

/// Rootless Podman maps the host user to 1000 in the box.
fn ids_in(profile: &Profile) -> (u32, u32) {
    if is_rootless_podman(profile) { (1000, 1000) } else { box_ids() }
}

fn is_rootless_podman(profile: &Profile) -> bool {
    profile.kind == Kind::Podman && profile.rootless
}

/// In memory: nothing in it survives a stop or reaches an image.
pub(crate) fn run_folder() -> Mount {
    Mount {
        target: Some(paths::RUN.to_owned()),
        typ: Some(MountType::TMPFS),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: Some(16 << 20),
            mode: Some(0o755),
            ..MountTmpfsOptions::default()
        }),
        ..Mount::default()
    }
}

/// A mount (not a bind: a missing folder must be an error, not be made as root) without whatever
/// is mounted below it, because older engines would leave that writable.
pub(crate) fn read_only(host: &Path, inside: &str) -> Result<Mount, Error> {
    let Some(source) = host.to_str() else {
        let why = "its name is not plain text, so the engine cannot mount it".to_owned();
        return Err(Error::Repository { path: host.to_owned(), why });
    };
    Ok(Mount {
        target: Some(inside.to_owned()),
        source: Some(source.to_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    })
}

/// PID 1's output is a file on the host that root in the box can write to; it must not grow. Podman
/// begins it anew and knows no second one.
fn log_limit(profile: &Profile) -> HostConfigLogConfig {
    let mut limit = vec![("max-size", "4m")];
    if profile.kind != Kind::Podman {
        limit.push(("max-file", "2"));
    }
    let config = limit.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    HostConfigLogConfig { typ: Some("json-file".to_owned()), config: Some(config.collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_without_a_network_publishes_nothing() {
        let all = Features { vnc: true, ssh: true, docker: false };
        let mut host = HostConfig::default();
        assert!(attach(&mut host, None, all).is_empty());
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert!(host.port_bindings.is_none());
        assert_eq!(host.cap_drop, Some(vec!["NET_RAW".to_owned()]));
        let mut open = HostConfig::default();
        assert_eq!(attach(&mut open, Some("n1"), all).len(), 3);
        assert_eq!(open.network_mode.as_deref(), Some("n1"));
        assert!(open.cap_drop.is_none() && open.port_bindings.is_some());
    }
}
