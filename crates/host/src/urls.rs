//! By which addresses boxes are reached, and links to them.
//!
//! A name is chosen once and stays: `http://<box>.localhost:1355`, the name Portless gives it, or the
//! engine's own where it has one. Ports are others after every start, so only `--loopback` shows them.
//!
//! The surprising thing: a link to a screen that is given to a browser as an argument has a ticket in
//! it instead of the password, because arguments can be read by every program on this computer. The
//! proxy takes the ticket, once, and leads to the page with the password in the fragment.

use crate::api::Api;
use crate::core::{Core, Known};
use crate::portless;
use boxes::Kind;
use protocol::boxes::{BoxState, Endpoints};
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::links::{Link, LinkTo};
use protocol::web::{SCREEN, WEB, web_name};
use protocol::{BoxId, BoxName};
use proxy::TICKET;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a ticket waits for a browser to start.
const TICKET_TIME: Duration = Duration::from_secs(60);
const MAX_TICKETS: usize = 64;

/// What the host keeps about addresses.
#[derive(Default)]
pub struct Web {
    /// Where the proxy listens; 0 is nowhere.
    pub port: AtomicU16,
    /// Where the host before this one listened.
    pub port_before: AtomicU16,
    pub proxy: OnceLock<proxy::Proxy>,
    /// Addresses Portless has for boxes.
    pub portless: Mutex<HashMap<BoxId, portless::Urls>>,
    tickets: Mutex<HashMap<String, Ticket>>,
}

struct Ticket {
    of: BoxId,
    to: String,
    until: Instant,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Web {
    /// A new way to an address, for one use.
    fn ticket(&self, of: &BoxId, to: String) -> Result<String, ControlError> {
        let text = format!("{:032x}", u128::from_be_bytes(crate::create::random()?));
        let mut all = lock(&self.tickets);
        let now = Instant::now();
        all.retain(|_, ticket| ticket.until > now);
        if all.len() >= MAX_TICKETS {
            all.clear();
        }
        let ticket = Ticket { of: of.clone(), to, until: now + TICKET_TIME };
        all.insert(text.clone(), ticket);
        Ok(text)
    }

    pub fn redeem(&self, of: &BoxId, ticket: &str) -> Option<String> {
        let mut all = lock(&self.tickets);
        all.get(ticket).filter(|ticket| ticket.of == *of)?;
        all.remove(ticket).filter(|ticket| ticket.until > Instant::now()).map(|ticket| ticket.to)
    }
}

/// What addresses are made from.
pub struct Names {
    orbstack: bool,
    /// The proxy's; none when it does not listen.
    port: Option<u16>,
    portless: HashMap<BoxId, portless::Urls>,
}

impl Names {
    /// For lists: the address `agentbox url` opens, without a password.
    pub fn shown(&self, known: &Known, to: LinkTo) -> Option<String> {
        let (record, screen) = (&known.record, known.record.features.vnc);
        let has = known.state != BoxState::Missing && (to != LinkTo::Screen || screen);
        let base = has.then(|| self.base(&record.id, &record.name, known.endpoints, to))??;
        Some(base + page(to))
    }

    /// The address without a path.
    fn base(&self, id: &BoxId, name: &BoxName, at: Endpoints, to: LinkTo) -> Option<String> {
        let portless = self.portless.get(id);
        let portless = match to {
            LinkTo::Web if !self.orbstack => portless.map(|urls| urls.web.clone()),
            LinkTo::Screen => portless.and_then(|urls| urls.screen.clone()),
            _ => None,
        };
        let own = || {
            self.orbstack.then(|| match port(to) {
                WEB => format!("http://agentbox-{name}.orb.local"),
                other => format!("http://agentbox-{name}.orb.local:{other}"),
            })
        };
        let proxied = || Some(format!("http://{}:{}", web_name(name, port(to)), self.port?));
        portless.or_else(own).or_else(proxied).or_else(|| loopback(at, to))
    }
}

fn port(to: LinkTo) -> u16 {
    match to {
        LinkTo::Web => WEB,
        LinkTo::Screen => SCREEN,
        LinkTo::Port { port } => port,
    }
}

fn page(to: LinkTo) -> &'static str {
    if to == LinkTo::Screen { "/vnc.html" } else { "" }
}

fn loopback(at: Endpoints, to: LinkTo) -> Option<String> {
    let port = match to {
        LinkTo::Web => at.web,
        LinkTo::Screen => at.vnc,
        LinkTo::Port { .. } => None,
    };
    Some(format!("http://127.0.0.1:{}", port?))
}

impl Core {
    /// Where boxes have their addresses. Boxes are let go before the proxy listens; then it is where
    /// it is about to.
    pub fn web_port(&self) -> Option<u16> {
        let now = self.web.port.load(Ordering::Acquire);
        Some(if now == 0 { self.settings.proxy.port } else { now }).filter(|port| *port != 0)
    }

    pub fn names(&self) -> Names {
        let kind = self.state().engine.as_ref().map(|boxes| boxes.engine().profile().kind);
        let orbstack = match self.settings.engine.kind {
            Some(kind) => kind == settings::EngineKind::OrbStack,
            None => kind == Some(Kind::OrbStack),
        };
        let port = Some(self.web.port.load(Ordering::Acquire)).filter(|port| *port != 0);
        Names { orbstack, port, portless: lock(&self.web.portless).clone() }
    }
}

impl Api {
    /// Brings a box up and says where it is reached.
    pub async fn link(
        &self,
        target: Target,
        to: LinkTo,
        only_loopback: bool,
    ) -> Result<Link, ControlError> {
        let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
        let id = self.find(&target)?;
        let gone = || ControlError::new(ErrorCode::Usage, "the box is gone");
        let record = self.core.record(&id).ok_or_else(gone)?;
        if to == LinkTo::Screen && !record.features.vnc {
            return Err(failed(format!("VNC is disabled for {}", record.name)).hint(
                "a box has one when it is made without --no-vnc, at the stage desktop or full.",
            ));
        }
        self.core.bring_up(&id).await?;
        let at = self.core.endpoints(&id).unwrap_or_default();
        let base = if only_loopback {
            loopback(at, to)
                .ok_or_else(|| failed(format!("{} has no port of its own here", record.name)))
        } else {
            self.core.names().base(&id, &record.name, at, to).ok_or_else(|| {
                failed(format!("{} has no address", record.name))
                    .hint("set proxy.port in config.yaml, so that boxes have names.")
            })
        }?;
        let shown = base + page(to);
        if to != LinkTo::Screen {
            return Ok(Link { url: shown.clone(), open: Some(shown.clone()), shown });
        }
        self.core.screen_link(&id, &record.name, shown)
    }
}

impl Core {
    /// noVNC takes what stands in the fragment before what stands in the query.
    fn screen_link(&self, id: &BoxId, name: &BoxName, shown: String) -> Result<Link, ControlError> {
        let password = self.vnc_password(id).ok_or_else(|| {
            let text = format!("the screen of {name} is not ready");
            ControlError::new(ErrorCode::Failed, text).hint("try again in a moment.")
        })?;
        let url = format!("{shown}#autoconnect=1&resize=scale&password={password}");
        let port = self.web.port.load(Ordering::Acquire);
        let open = match port {
            0 => None,
            port => {
                let ticket = self.web.ticket(id, url.clone())?;
                Some(format!("http://{}:{port}{TICKET}{ticket}", web_name(name, SCREEN)))
            }
        };
        Ok(Link { url, shown, open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(names: &Names, to: LinkTo) -> Option<String> {
        let at = Endpoints { web: Some(5001), vnc: Some(5002), ssh: None };
        names.base(&"b00000001".parse().unwrap(), &"fix".parse().unwrap(), at, to)
    }

    #[test]
    fn boxes_16_47_each_engine_has_its_names() {
        let mut names = Names { orbstack: false, port: Some(1355), portless: HashMap::new() };
        let other = LinkTo::Port { port: 3000 };
        let all =
            |names: &Names| [LinkTo::Web, LinkTo::Screen, other].map(|to| base(names, to).unwrap());
        assert_eq!(
            all(&names),
            [
                "http://fix.localhost:1355",
                "http://fix.vnc.localhost:1355",
                "http://3000-fix.localhost:1355"
            ]
        );
        let urls = portless::Urls {
            web: "https://fix.localhost".into(),
            screen: Some("https://vnc-fix.localhost".into()),
        };
        names.portless.insert("b00000001".parse().unwrap(), urls);
        assert_eq!(base(&names, LinkTo::Web).unwrap(), "https://fix.localhost");
        assert_eq!(base(&names, LinkTo::Screen).unwrap(), "https://vnc-fix.localhost");
        assert_eq!(base(&names, other).unwrap(), "http://3000-fix.localhost:1355");
        names.orbstack = true;
        assert_eq!(base(&names, LinkTo::Web).unwrap(), "http://agentbox-fix.orb.local");
        assert_eq!(base(&names, LinkTo::Screen).unwrap(), "https://vnc-fix.localhost");
        names.portless.clear();
        assert_eq!(base(&names, LinkTo::Screen).unwrap(), "http://agentbox-fix.orb.local:6080");
        let off = Names { orbstack: false, port: None, portless: HashMap::new() };
        assert_eq!(base(&off, LinkTo::Web).unwrap(), "http://127.0.0.1:5001");
        assert_eq!(base(&off, LinkTo::Screen).unwrap(), "http://127.0.0.1:5002");
        assert_eq!(base(&off, other), None);
    }

    #[test]
    fn a_ticket_is_for_one_box_and_one_use() {
        let (web, a, b) =
            (Web::default(), "b00000001".parse().unwrap(), "b00000002".parse().unwrap());
        let ticket = web.ticket(&a, "x".into()).unwrap();
        assert_eq!(web.redeem(&b, &ticket), None);
        assert_eq!(web.redeem(&a, "0"), None);
        assert_eq!(web.redeem(&a, &ticket).as_deref(), Some("x"));
        assert_eq!(web.redeem(&a, &ticket), None);
        for _ in 0..200 {
            web.ticket(&a, "x".into()).unwrap();
        }
        assert!(lock(&web.tickets).len() <= MAX_TICKETS);
    }
}
