//! How streams travel when a box's sockets cannot be mounted.
//!
//! The host runs `agentbox-ctl bridge` in the box through the engine's exec stream and speaks yamux
//! over it, the host as the yamux client, the box as the server. For every connection to a socket
//! in the box, the box opens one stream. Its first byte says which socket it was; what follows is
//! what travelled on the connection. The host identifies the box by the exec stream it opened.
//!
//! What goes out to the network has a bridge of its own: a download must not hold up a question.

/// The socket a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    Relay,
    /// The host's proxy, for a box without a network.
    Egress,
}

impl Service {
    pub const ALL: [Service; 2] = [Service::Relay, Service::Egress];

    /// The word for it in `agentbox-ctl bridge <name>`.
    pub fn name(self) -> &'static str {
        match self {
            Service::Relay => "relay",
            Service::Egress => "egress",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Streams one box may have open.
    pub fn max_streams(self) -> usize {
        match self {
            Service::Relay => MAX_STREAMS,
            Service::Egress => MAX_EGRESS_STREAMS,
        }
    }

    /// The stream's first byte.
    pub fn tag(self) -> u8 {
        match self {
            Service::Relay => b'r',
            Service::Egress => b'e',
        }
    }

    pub fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.tag() == tag)
    }

    /// The file name below [`crate::ctl::paths::HOST`].
    pub fn socket(self) -> &'static str {
        match self {
            Service::Relay => "relay.sock",
            Service::Egress => "egress.sock",
        }
    }
}

/// What `agentbox-ctl bridge` writes to standard output before yamux begins: the sockets are there.
pub const READY: &[u8] = b"agentbox-bridge 1\n";
/// Calls one box may have open.
pub const MAX_STREAMS: usize = 64;
/// Connections to the network one box may have open through a bridge.
pub const MAX_EGRESS_STREAMS: usize = 128;
