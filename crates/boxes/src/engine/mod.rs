//! The container engine: finding it, knowing what it is, and asking it under a time limit.
//!
//! Nothing here knows about boxes. Every wait has a limit, because a wedged engine must not wedge
//! the host; a request that outlives its limit is dropped, which closes its connection.

mod address;
mod context;
mod discover;
mod hijack;
mod podman;

pub use address::Address;
pub use context::context_name;
pub use discover::{Attempt, Environment, Failure, Found};

pub(crate) use discover::hint;
pub(crate) use hijack::{Hijacked, ReadHalf, WriteHalf};

use crate::{Channel, Error};
use bollard::Docker;
use bollard::models::SystemInfoCgroupDriverEnum as CgroupDriver;
use bollard::models::SystemInfoCgroupVersionEnum as CgroupVersion;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub const MINIMUM_API: &str = "1.41";

/// For requests the engine answers from memory.
pub(crate) const QUICK: Duration = Duration::from_secs(30);
/// For requests that make or remove something on disk.
pub(crate) const SLOW: Duration = Duration::from_secs(120);

/// A reachable engine. Cheap to clone; each request opens its own connection, so an engine that
/// was restarted is simply there again.
#[derive(Clone)]
pub struct Engine {
    docker: Docker,
    address: Address,
    profile: Arc<Profile>,
}

/// What kind of engine it is, as a person and the create flow need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub kind: Kind,
    pub version: String,
    pub api: String,
    pub address: Address,
    pub rootless: bool,
    /// Security labels are enforced, so a mount of a host folder is unreadable unless they are
    /// switched off for the container.
    pub selinux: bool,
    pub storage_driver: String,
    /// It can freeze a container.
    pub can_pause: bool,
    /// Where it keeps everything, on its own computer.
    pub data_root: String,
    /// It runs on this computer's own kernel, so a Unix socket of ours works in a container.
    pub own_kernel: bool,
}

impl Profile {
    /// How boxes on this engine reach the host, unless a person says otherwise.
    pub fn channel(&self) -> Channel {
        if self.own_kernel { Channel::Socket } else { Channel::Exec }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docker,
    DockerDesktop,
    OrbStack,
    Colima,
    Podman,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Docker => "Docker",
            Kind::DockerDesktop => "Docker Desktop",
            Kind::OrbStack => "OrbStack",
            Kind::Colima => "Colima",
            Kind::Podman => "Podman",
        })
    }
}

/// “Docker 20.10.24, API 1.41, at unix:///var/run/docker.sock”.
impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Profile { kind, version, api, address, .. } = self;
        write!(f, "{kind} {version}, API {api}, at {address}")
    }
}

impl Engine {
    /// Finds an engine: `host` when configured, else `DOCKER_HOST`, the current docker context,
    /// the usual sockets.
    pub async fn connect(host: Option<&str>) -> Result<Engine, Error> {
        Self::connect_in(host, &Environment::current()).await
    }

    /// [`Engine::connect`] with home folder and variables given.
    pub async fn connect_in(
        host: Option<&str>,
        environment: &Environment,
    ) -> Result<Engine, Error> {
        let (docker, address) = discover::discover(host, environment).await?;
        let profile = limited("say what it is", QUICK, profile(&docker, &address)).await??;
        require_api(&profile)?;
        Ok(Engine { docker, address, profile: Arc::new(profile) })
    }

    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Is it still there?
    pub async fn ping(&self) -> Result<(), Error> {
        self.ask("answer", QUICK, self.docker.ping()).await.map(|_| ())
    }

    /// One request with a limit and a subject for its errors. Boxed, because the client's futures
    /// are kilobytes each and end up nested in ours.
    pub(crate) async fn ask<T>(
        &self,
        what: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, Error> {
        limited(what, limit, Box::pin(request)).await?.map_err(|error| Error::engine(what, error))
    }

    pub(crate) fn docker(&self) -> &Docker {
        &self.docker
    }

    /// A client for streams whose first answer may take long (build, pull, import, stop).
    pub(crate) fn patient(&self, limit: Duration) -> Docker {
        self.docker.clone().with_timeout(limit)
    }

    /// Starts an exec and takes over its connection.
    pub(crate) async fn start_exec(&self, id: &str, tty: bool) -> Result<Hijacked, Error> {
        let what = "start a command in the box";
        let start = hijack::start_exec(&self.address, &self.profile.api, id, tty);
        limited(what, QUICK, start).await?
    }
}

/// Waits for `future`, but no longer than `limit`.
pub(crate) async fn limited<T>(
    what: &str,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, future)
        .await
        .map_err(|_| Error::Timeout { what: what.to_owned(), after: limit })
}

async fn profile(docker: &Docker, address: &Address) -> Result<Profile, Error> {
    let what = "say what it is";
    let version = docker.version().await.map_err(|error| Error::engine(what, error))?;
    let info = docker.info().await.map_err(|error| Error::engine(what, error))?;
    let components = version.components.unwrap_or_default();
    let options = info.security_options.unwrap_or_default();
    let has = |option: &str| options.iter().any(|o| o.split(',').any(|part| part == option));
    let system = info.operating_system.unwrap_or_default();
    let there = Kernel {
        release: info.kernel_version.unwrap_or_default(),
        name: info.name.clone().unwrap_or_default(),
    };
    let kind = if components.iter().any(|part| part.name == "Podman Engine") {
        Kind::Podman
    } else if system.contains("Docker Desktop") {
        Kind::DockerDesktop
    } else if system.contains("OrbStack") {
        Kind::OrbStack
    } else if info.name.as_deref() == Some("colima") {
        Kind::Colima
    } else {
        Kind::Docker
    };
    let rootless = has("name=rootless")
        || has("rootless")
        || (kind == Kind::Podman && podman::is_rootless(address).await.unwrap_or(false));
    Ok(Profile {
        kind,
        version: version.version.unwrap_or_default(),
        api: docker.client_version().to_string(),
        address: address.clone(),
        rootless,
        selinux: has("name=selinux") || has("selinux"),
        storage_driver: info.driver.unwrap_or_default(),
        can_pause: can_pause(rootless, info.cgroup_driver, info.cgroup_version),
        data_root: info.docker_root_dir.unwrap_or_default(),
        own_kernel: is_ours(address, kind, &there, here().as_ref()),
    })
}

/// Freezing is the kernel's cgroups; without root only the second version can be had.
fn can_pause(rootless: bool, driver: Option<CgroupDriver>, version: Option<CgroupVersion>) -> bool {
    driver != Some(CgroupDriver::NONE) && !(rootless && version == Some(CgroupVersion::_1))
}

/// What a kernel says of itself: its release and the computer's name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kernel {
    release: String,
    name: String,
}

/// None where containers cannot run on the computer's own kernel.
fn here() -> Option<Kernel> {
    let own = nix::sys::utsname::uname().ok().filter(|_| cfg!(target_os = "linux"))?;
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    Some(Kernel { release: text(own.release())?, name: text(own.nodename())? })
}

/// Whether the engine's kernel is this one. Two computers may run the same release, and a socket may
/// be forwarded from another, so the names must agree too. A wrong no costs a little time for each
/// call; a wrong yes, a box that cannot reach the host.
fn is_ours(address: &Address, kind: Kind, there: &Kernel, here: Option<&Kernel>) -> bool {
    let in_a_machine = matches!(kind, Kind::DockerDesktop | Kind::OrbStack | Kind::Colima);
    matches!(address, Address::Unix(_)) && !in_a_machine && here == Some(there)
}

fn require_api(profile: &Profile) -> Result<(), Error> {
    let number = |text: &str| -> Option<(u32, u32)> {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    if number(&profile.api) >= number(MINIMUM_API) {
        return Ok(());
    }
    Err(Error::OldEngine { address: profile.address.to_string(), api: profile.api.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_16_54_without_root_the_old_cgroups_cannot_pause() {
        let (v1, v2) = (Some(CgroupVersion::_1), Some(CgroupVersion::_2));
        assert!(can_pause(false, Some(CgroupDriver::CGROUPFS), v1));
        assert!(can_pause(true, Some(CgroupDriver::SYSTEMD), v2));
        assert!(!can_pause(true, Some(CgroupDriver::CGROUPFS), v1));
        assert!(!can_pause(true, Some(CgroupDriver::NONE), v2));
        assert!(can_pause(false, None, None));
    }

    #[test]
    fn only_an_engine_on_this_very_kernel_gets_sockets() {
        let kernel =
            |release: &str, name: &str| Kernel { release: release.into(), name: name.into() };
        let (unix, tcp) = (Address::Unix("/a".into()), Address::Tcp("h:1".into()));
        let own = kernel("6.1.0-13", "laptop");
        let ours =
            |address: &Address, kind, there: &Kernel| is_ours(address, kind, there, Some(&own));
        assert!(ours(&unix, Kind::Docker, &own));
        assert!(ours(&unix, Kind::Podman, &own));
        assert!(!ours(&tcp, Kind::Docker, &own));
        assert!(!ours(&unix, Kind::DockerDesktop, &own));
        assert!(!ours(&unix, Kind::Docker, &kernel("6.1.0-13", "server")));
        assert!(!ours(&unix, Kind::Docker, &kernel("6.6.22-linuxkit", "laptop")));
        assert!(!is_ours(&unix, Kind::Docker, &own, None));
    }
}
