//! The one way out: a name is looked up, the addresses are filtered, and one of those is connected to.
//!
//! The proxy runs on the person's computer, where much can be reached that no box should: the computer
//! itself, its network, other boxes, a cloud machine's metadata. What is filtered is the address that will
//! be connected to, so a name that resolves differently a moment later gains nothing.
//!
//! Nothing else in this crate connects to anything.

mod filter;

use crate::host_name::HostName;
use crate::policy::THIS_COMPUTER;
use approvals::BoxFuture;
use filter::Own;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ipnet::IpNet;
use protocol::egress::Reason;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to somewhere.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// The network of this computer.
pub trait Net: Send + Sync + 'static {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;

    /// Every address of an interface of this computer, as of now.
    fn interfaces(&self) -> Vec<IpAddr>;
}

/// The network as the operating system has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Net for System {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(to).await?;
            // What comes from a box is passed on as it comes.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }

    fn interfaces(&self) -> Vec<IpAddr> {
        let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
        let address = |interface: nix::ifaddrs::InterfaceAddress| {
            let storage = interface.address?;
            let v4 = storage.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
            v4.or_else(|| storage.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip())))
        };
        all.filter_map(address).collect()
    }
}

/// What of this computer no box reaches, however it is allowed.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Networks of containers.
    pub subnets: Vec<IpNet>,
    /// Ports of loopback that AgentBox itself listens on.
    pub ports: Vec<u16>,
}

/// Where to, and what its record allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub host: HostName,
    pub port: u16,
    pub allow_private: bool,
}

#[derive(Debug)]
pub(crate) struct Refused {
    pub reason: Reason,
    pub detail: String,
}

/// A connection, and whom it is to.
pub(crate) struct Dialled {
    pub stream: Box<dyn Stream>,
    pub remote: SocketAddr,
    /// Only a record that allows private addresses may use it.
    pub private: bool,
}

pub(crate) struct Dialer {
    net: Arc<dyn Net>,
    around: RwLock<Arc<Surroundings>>,
    limit: Duration,
}

/// When an address does not answer, the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(300);
/// Of one name.
const MOST_ADDRESSES: usize = 16;

impl Dialer {
    pub fn new(net: Arc<dyn Net>, limit: Duration) -> Self {
        Self { net, around: RwLock::default(), limit }
    }

    pub fn surround(&self, around: Surroundings) {
        *self.around.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(around);
    }

    pub async fn dial(&self, to: &Destination) -> Result<Dialled, Refused> {
        match tokio::time::timeout(self.limit, self.dial_now(to)).await {
            Ok(dialled) => dialled,
            Err(_) => Err(Refused {
                reason: Reason::UpstreamTimeout,
                detail: format!("{} did not take a connection in time", to.host),
            }),
        }
    }

    async fn dial_now(&self, to: &Destination) -> Result<Dialled, Refused> {
        let around = self.around.read().unwrap_or_else(PoisonError::into_inner).clone();
        if to.host.as_str() == THIS_COMPUTER {
            return self.dial_here(to, &around).await;
        }
        let found = self.lookup(&to.host).await?;
        let own = Own { interfaces: self.net.interfaces(), subnets: &around.subnets };
        let may = |address: &IpAddr| own.may_dial(*address, to.allow_private);
        let (open, shut): (Vec<IpAddr>, Vec<IpAddr>) = found.iter().partition(|a| may(a));
        if open.is_empty() {
            let shown: Vec<String> = shut.iter().map(ToString::to_string).collect();
            let detail = format!("{} is at {}", to.host, shown.join(", "));
            return Err(Refused { reason: Reason::PrivateAddress, detail });
        }
        let (stream, remote) = self.first(&open, to.port).await.map_err(|e| unreachable(to, &e))?;
        Ok(Dialled { stream, remote, private: !own.may_dial(remote.ip(), false) })
    }

    /// A service of this computer, which a policy names by its one alias.
    async fn dial_here(&self, to: &Destination, around: &Surroundings) -> Result<Dialled, Refused> {
        if around.ports.contains(&to.port) {
            let detail = format!("port {} is AgentBox's own", to.port);
            return Err(Refused { reason: Reason::PrivateAddress, detail });
        }
        let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, to.port));
        let stream = self.net.connect(remote).await.map_err(|e| unreachable(to, &e))?;
        Ok(Dialled { stream, remote, private: false })
    }

    async fn lookup(&self, host: &HostName) -> Result<Vec<IpAddr>, Refused> {
        if let Some(address) = host.address() {
            return Ok(vec![address]);
        }
        let unknown = |detail| Refused { reason: Reason::UpstreamUnreachable, detail };
        let mut found = self.net.lookup(host.as_str()).await.map_err(|e| {
            tracing::debug!("egress: {host}: {e}");
            unknown(format!("the name {host} was not found"))
        })?;
        let mut seen = std::collections::HashSet::new();
        found.retain(|address| seen.insert(*address));
        found.truncate(MOST_ADDRESSES);
        if found.is_empty() {
            return Err(unknown(format!("the name {host} has no address")));
        }
        Ok(found)
    }

    /// The first of them that answers.
    async fn first(
        &self,
        addresses: &[IpAddr],
        port: u16,
    ) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        let mut waiting = FuturesUnordered::new();
        let mut left = addresses.iter();
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        loop {
            if let Some(address) = left.next() {
                let to = SocketAddr::new(*address, port);
                waiting.push(async move { (self.net.connect(to).await, to) });
            }
            let more = left.len() > 0;
            tokio::select! {
                next = waiting.next() => match next {
                    Some((Ok(stream), to)) => return Ok((stream, to)),
                    Some((Err(e), _)) => failed = e,
                    None => return Err(failed),
                },
                () = tokio::time::sleep(STAGGER), if more => {}
            }
        }
    }
}

fn unreachable(to: &Destination, e: &io::Error) -> Refused {
    tracing::debug!("egress: {}:{}: {e}", to.host, to.port);
    let detail = format!("{}:{} cannot be reached: {}", to.host, to.port, e.kind());
    Refused { reason: Reason::UpstreamUnreachable, detail }
}

#[cfg(test)]
mod tests;
