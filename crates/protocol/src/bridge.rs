//! How streams travel when a box's sockets cannot be mounted.
//!
//! The host runs `agentbox-ctl bridge` in the box through the engine's exec stream and speaks yamux
//! over it, the host as the yamux client, the box as the server. For every connection to a socket
//! in the box, the box opens one stream. Its first byte says which socket it was; what follows is
//! what travelled on the connection. The host identifies the box by the exec stream it opened.

/// The socket a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Relay,
}

impl Service {
    pub const ALL: [Service; 1] = [Service::Relay];

    /// The stream's first byte.
    pub fn tag(self) -> u8 {
        match self {
            Service::Relay => b'r',
        }
    }

    pub fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.tag() == tag)
    }

    /// The file name below [`crate::ctl::paths::HOST`].
    pub fn socket(self) -> &'static str {
        match self {
            Service::Relay => "relay.sock",
        }
    }
}

/// What `agentbox-ctl bridge` writes to standard output before yamux begins: the sockets are there.
pub const READY: &[u8] = b"agentbox-bridge 1\n";
/// Streams one box may have open.
pub const MAX_STREAMS: usize = 64;
