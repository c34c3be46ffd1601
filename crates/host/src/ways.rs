//! The ways into boxes: the proxy as this host runs it, and what follows boxes as they come and go.

use crate::core::Core;
use boxes::engine::Address;
use protocol::boxes::BoxState;
use protocol::control::{HostEvent, Notice};
use protocol::web::{SCREEN, WEB};
use protocol::{BoxId, BoxName};
use proxy::{BoxFuture, Boxes, Listening, Proxy, Wire};
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tokio::net::TcpStream;
use tokio::sync::broadcast::error::RecvError;

/// The notice's part.
const PROXY: &str = "proxy";

impl Core {
    /// Listens, unless switched off, and keeps what depends on boxes up to date.
    pub async fn open_ways(self: Arc<Self>) {
        let wanted = self.settings.proxy.port;
        if wanted != 0
            && let Some(listening) = self.listen_for_browsers(wanted).await
        {
            let port = listening.port();
            let before = self.store.replace_proxy_port(port).await.unwrap_or_default();
            self.web.port_before.store(before, Ordering::Release);
            self.web.port.store(port, Ordering::Release);
            let proxy = Proxy::new(Arc::new(Ways(Arc::downgrade(&self))), self.stop.clone());
            let serving = proxy.clone();
            let _ = self.web.proxy.set(proxy);
            self.tasks.spawn(async move { serving.serve(listening).await });
        }
        let core = self.clone();
        self.tasks.spawn(async move { core.follow_boxes().await });
    }

    /// On the usual port, else on any: links still work then, but not those of yesterday.
    async fn listen_for_browsers(&self, wanted: u16) -> Option<Listening> {
        let busy = match Listening::bind(wanted).await {
            Ok(listening) => return Some(listening),
            Err(e) => e,
        };
        let instead = Listening::bind(0).await;
        let message = match &instead {
            Ok(other) => format!(
                "port {wanted} cannot be used ({busy}); boxes are at port {} for now",
                other.port()
            ),
            Err(e) => format!("boxes have no names: no port of 127.0.0.1 can be used ({e})"),
        };
        tracing::warn!("{message}");
        let hint = format!(
            "end the program that uses {wanted} or set proxy.port in config.yaml, then restart AgentBox"
        );
        let notice = Notice { part: PROXY.into(), message, hint: Some(hint) };
        self.state().notices.insert(PROXY.into(), notice);
        self.send_status();
        instead.ok()
    }

    /// Boxes come, go and change their ports; routes and files that name them follow.
    async fn follow_boxes(self: Arc<Self>) {
        let mut events = self.subscribe();
        self.all_changed().await;
        loop {
            let event = tokio::select! {
                () = self.stop.cancelled() => return,
                event = events.recv() => event,
            };
            match event {
                Ok(HostEvent::BoxChanged { view }) => {
                    self.route(&view.id, &view.name).await;
                    self.write_ssh_config();
                }
                Ok(HostEvent::BoxRemoved { id }) => {
                    self.unroute(&id).await;
                    self.write_ssh_config();
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.all_changed().await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn all_changed(self: &Arc<Self>) {
        let known = |k: &crate::core::Known| (k.record.id.clone(), k.record.name.clone());
        let all: Vec<(BoxId, BoxName)> = self.state().boxes.values().map(known).collect();
        for (id, name) in all {
            self.route(&id, &name).await;
        }
        self.write_ssh_config();
    }
}

/// Holds the host weakly: the host owns the proxy that owns this.
struct Ways(Weak<Core>);

impl Ways {
    fn core(&self) -> io::Result<Arc<Core>> {
        self.0.upgrade().ok_or_else(|| io::Error::other("the host is stopping"))
    }
}

impl Boxes for Ways {
    fn find(&self, name: &BoxName) -> Option<(BoxId, BoxState)> {
        let core = self.0.upgrade()?;
        let state = core.state();
        let known = state.boxes.values().find(|known| known.record.name == *name)?;
        Some((known.record.id.clone(), known.state))
    }

    fn wake<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let core = self.core().map_err(|e| e.to_string())?;
            core.thaw(id).await.map_err(|e| e.to_string())
        })
    }

    fn redeem(&self, id: &BoxId, ticket: &str) -> Option<String> {
        self.0.upgrade()?.web.redeem(id, ticket)
    }

    fn connect<'a>(&'a self, id: &'a BoxId, port: u16) -> BoxFuture<'a, io::Result<Wire>> {
        Box::pin(async move {
            let core = self.core()?;
            let (boxes, record) = core.reach(id).await.map_err(io::Error::other)?;
            // A published port is on the loopback of the engine's computer.
            let near = matches!(boxes.engine().profile().address, Address::Unix(_));
            let at = core.endpoints(id).filter(|_| near).unwrap_or_default();
            let published = match port {
                WEB => at.web,
                SCREEN => at.vnc,
                _ => None,
            };
            if let Some(port) = published {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                let _ = stream.set_nodelay(true);
                return Ok(Wire::new(stream));
            }
            let stream = boxes.forward(&record, port).await.map_err(io::Error::other)?;
            Ok(Wire::new(stream))
        })
    }
}
