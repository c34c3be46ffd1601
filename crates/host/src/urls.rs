//! By which addresses boxes are reached, and links to them.
//!
//! A name is chosen once and stays: `http://<box>.localhost:1355`, the name Portless gives it, or the
//! engine's own where it has one. Ports are others after every start, so only `--loopback` shows them.
//!
//! The surprising thing: a link to a screen that is given to a browser as an argument has a ticket in
//! it instead of the password, because arguments can be read by every program on this computer. The
//! proxy takes the ticket, once, and leads to the page with the password in the fragment.

use crate::api::Api;
use crate::config::own_layers;
use crate::core::{Core, Known};
use crate::portless;
use boxes::{Kind, Record};
use protocol::boxes::{BoxState, Endpoints};
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::links::{EngineKind, Link, LinkTo};
use protocol::web::{SCREEN, WEB, web_name};
use protocol::{BoxId, BoxName};
use proxy::TICKET;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
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
    /// What the engine says of itself.
    orbstack: bool,
    /// What projects, or a command line, say of it.
    kinds: HashMap<PathBuf, EngineKind>,
    /// The proxy's; none when it does not listen.
    port: Option<u16>,
    portless: HashMap<BoxId, portless::Urls>,
}

impl Names {
    /// For lists: the address `agentbox url` opens, without a password.
    pub fn shown(&self, known: &Known, to: LinkTo) -> Option<String> {
        let (record, screen) = (&known.record, known.record.features.vnc);
        let has = known.state != BoxState::Missing && (to != LinkTo::Screen || screen);
        let base = has.then(|| self.base(record, known.endpoints, to))??;
        Some(base + page(to))
    }

    /// The address without a path.
    fn base(&self, record: &Record, at: Endpoints, to: LinkTo) -> Option<String> {
        let orbstack = self.is_orbstack(&record.project_root);
        self.of(&record.id, &record.name, orbstack, at, to)
    }

    /// What the project's boxes are taken to run on.
    fn is_orbstack(&self, project_root: &Path) -> bool {
        match self.kinds.get(project_root).copied().unwrap_or_default() {
            EngineKind::Auto => self.orbstack,
            kind => kind == EngineKind::OrbStack,
        }
    }

    fn of(
        &self,
        id: &BoxId,
        name: &BoxName,
        orbstack: bool,
        at: Endpoints,
        to: LinkTo,
    ) -> Option<String> {
        let portless = self.portless.get(id);
        let portless = match to {
            LinkTo::Web if !orbstack => portless.map(|urls| urls.web.clone()),
            LinkTo::Screen => portless.and_then(|urls| urls.screen.clone()),
            _ => None,
        };
        let own = || {
            orbstack.then(|| match port(to) {
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

    /// For boxes of these projects.
    pub fn names(&self, roots: impl IntoIterator<Item = PathBuf>) -> Names {
        let kind = self.state().engine.as_ref().map(|boxes| boxes.engine().profile().kind);
        let orbstack = kind == Some(Kind::OrbStack);
        let mut kinds = HashMap::new();
        for root in roots {
            // No repository decides it, so its file need not be read.
            let read = |root: &PathBuf| own_layers(&self.home, root).and_then(|own| own.settings());
            kinds.entry(root).or_insert_with_key(|root| {
                read(root).map_or(self.settings.engine.kind, |settings| settings.engine.kind)
            });
        }
        let port = Some(self.web.port.load(Ordering::Acquire)).filter(|port| *port != 0);
        Names { orbstack, kinds, port, portless: lock(&self.web.portless).clone() }
    }
}

impl Api {
    /// Brings a box up and says where it is reached.
    pub async fn link(
        &self,
        target: Target,
        to: LinkTo,
        only_loopback: bool,
        taken_for: Option<EngineKind>,
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
            let mut names = self.core.names([record.project_root.clone()]);
            if let Some(kind) = taken_for {
                names.kinds.insert(record.project_root.clone(), kind);
            }
            names.base(&record, at, to).ok_or_else(|| {
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
        names.of(&"b00000001".parse().unwrap(), &"fix".parse().unwrap(), names.orbstack, at, to)
    }

    #[test]
    fn boxes_16_47_each_engine_has_its_names() {
        let mut names = Names {
            orbstack: false,
            kinds: HashMap::new(),
            port: Some(1355),
            portless: HashMap::new(),
        };
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
        let off = Names { port: None, orbstack: false, portless: HashMap::new(), ..names };
        assert_eq!(base(&off, LinkTo::Web).unwrap(), "http://127.0.0.1:5001");
        assert_eq!(base(&off, LinkTo::Screen).unwrap(), "http://127.0.0.1:5002");
        assert_eq!(base(&off, other), None);
    }

    #[test]
    fn yaml_13_54_a_project_says_what_the_engine_is_taken_for() {
        let kinds = [("/orb", EngineKind::OrbStack), ("/desk", EngineKind::DockerDesktop)];
        let mut names = Names {
            orbstack: true,
            kinds: kinds.map(|(root, kind)| (root.into(), kind)).into(),
            port: None,
            portless: HashMap::new(),
        };
        let seen =
            |names: &Names| ["/orb", "/desk", "/other"].map(|r| names.is_orbstack(r.as_ref()));
        assert_eq!(seen(&names), [true, false, true]);
        names.orbstack = false;
        assert_eq!(seen(&names), [true, false, false]);
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
