//! Routes of Portless, a proxy people may have for their own servers already.
//!
//! Where its proxy runs, each box gets two names there, both leading to the proxy of this host, which
//! knows the box by its name whatever its ports are. So a route never goes stale, and a box met through
//! Portless is kept as far from the person's other pages as one met directly.
//!
//! Everything here is a convenience: whatever fails leaves the box with the names it has anyway. A
//! route somebody else made is left alone.

use crate::core::Core;
use crate::urls::lock;
use protocol::{BoxId, BoxName};
use relay::process::{Limit, Tool, base_env};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

const PROGRAM: &str = "portless";
/// It is a script that ends at once.
const LIMIT: Limit = Limit::of(Duration::from_secs(15));
/// A list of routes longer than this is none.
const MAX_ROUTES: u64 = 1024 * 1024;

/// The addresses Portless has for a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Urls {
    pub web: String,
    pub screen: Option<String>,
}

/// A line of its `routes.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Route {
    hostname: String,
    port: u16,
    /// 0 for one that was made by hand.
    pid: u32,
}

impl Core {
    /// Gives a box its names, if Portless is there. Called again it does nothing.
    pub async fn route(&self, id: &BoxId, name: &BoxName) {
        let wish = self.record(id).and_then(|record| record.wishes.portless);
        let wanted = wish.unwrap_or(self.settings.proxy.portless);
        let Some(portless) = self.portless().filter(|_| wanted) else {
            lock(&self.web.portless).remove(id);
            return;
        };
        if lock(&self.web.portless).contains_key(id) {
            return;
        }
        let Some(web) = portless.alias(name.as_str()).await else { return };
        let has_screen = self.record(id).is_some_and(|record| record.features.vnc);
        let screen = if has_screen { portless.alias(&format!("vnc-{name}")).await } else { None };
        lock(&self.web.portless).insert(id.clone(), Urls { web, screen });
        self.send_view(id);
    }

    /// Takes a box's names back.
    pub async fn unroute(&self, id: &BoxId) {
        let Some(urls) = lock(&self.web.portless).remove(id) else { return };
        let Some(portless) = self.portless() else { return };
        for url in std::iter::once(urls.web).chain(urls.screen) {
            portless.remove(&url).await;
        }
    }

    /// Portless with its proxy running, when routes to this host's proxy make sense.
    fn portless(&self) -> Option<Portless> {
        let port = self.web.port.load(Ordering::Acquire);
        if port == 0 {
            return None;
        }
        let state = state_dir()?;
        if !is_running(&state) {
            return None;
        }
        let path = self.relay.program(PROGRAM)?;
        let before = self.web.port_before.load(Ordering::Acquire);
        Some(Portless { tool: Tool { path }, state, port, before })
    }
}

struct Portless {
    tool: Tool,
    state: PathBuf,
    /// Where routes are to lead, and where they led when the host ran before.
    port: u16,
    before: u16,
}

impl Portless {
    /// Makes a route, unless the name is somebody else's; its address.
    async fn alias(&self, name: &str) -> Option<String> {
        let url = self.run(&["get", "--no-worktree", name]).await?;
        let url = address(url.trim())?;
        let taken = self.route_of(&url);
        if taken.as_ref().is_some_and(|route| route.pid != 0) {
            tracing::info!("Portless has a server named {name}; the box goes without");
            return None;
        }
        if let Some(route) = &taken
            && ![self.port, self.before].contains(&route.port)
        {
            tracing::info!("Portless has a route named {name}; the box goes without");
            return None;
        }
        if taken.is_none_or(|route| route.port != self.port) {
            self.run(&["alias", name, &self.port.to_string()]).await?;
        }
        Some(url)
    }

    /// Only what leads here is removed.
    async fn remove(&self, url: &str) {
        let ours = self.route_of(url).is_some_and(|r| r.pid == 0 && r.port == self.port);
        let host = host_of(url).and_then(|host| host.split('.').next());
        if let Some(name) = host.filter(|_| ours) {
            self.run(&["alias", "--remove", name]).await;
        }
    }

    fn route_of(&self, url: &str) -> Option<Route> {
        let host = host_of(url)?;
        let file = self.state.join("routes.json");
        let short = std::fs::metadata(&file).is_ok_and(|m| m.len() <= MAX_ROUTES);
        let text = short.then(|| std::fs::read(&file).ok())??;
        let routes: Vec<Route> = serde_json::from_slice(&text).ok()?;
        routes.into_iter().find(|route| route.hostname == host)
    }

    async fn run(&self, words: &[&str]) -> Option<String> {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        let mut env = base_env(std::env::vars_os());
        env.push(("PORTLESS_STATE_DIR".into(), self.state.clone().into()));
        // Names below localhost need no line in a system file.
        env.push(("PORTLESS_SYNC_HOSTS".into(), "0".into()));
        match self.tool.run(Path::new("/"), &args, &env, LIMIT).await {
            Ok(output) if output.ok() => String::from_utf8(output.stdout).ok(),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                tracing::info!(
                    "portless {}: {}",
                    words.join(" "),
                    protocol::text::visible(why.trim())
                );
                None
            }
            Err(e) => {
                tracing::info!("portless: {e}");
                None
            }
        }
    }
}

fn state_dir() -> Option<PathBuf> {
    let given = std::env::var_os("PORTLESS_STATE_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
    given.or_else(|| std::env::home_dir().map(|home| home.join(".portless")))
}

/// By its pid file; a process of another user is one, too.
fn is_running(state: &Path) -> bool {
    let text = std::fs::read_to_string(state.join("proxy.pid")).unwrap_or_default();
    let Some(pid) = text.trim().parse().ok().filter(|pid: &i32| *pid > 0) else { return false };
    let alive = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None);
    matches!(alive, Ok(()) | Err(nix::errno::Errno::EPERM))
}

/// An address as it may be shown and opened; what another program printed is not taken on trust.
fn address(text: &str) -> Option<String> {
    let host = host_of(text)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let rest = text.split_once("://")?.1.strip_prefix(host)?;
    let port = rest.is_empty() || rest.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    (!host.is_empty() && host.len() < 256 && host.chars().all(plain) && port)
        .then(|| text.to_owned())
}

fn host_of(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    rest.split(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_taken() {
        for good in ["https://fix.localhost", "http://fix.localhost:1355", "http://vnc-fix.test"] {
            assert_eq!(address(good).as_deref(), Some(good));
        }
        for bad in [
            "",
            "fix.localhost",
            "http://",
            "http://fix.localhost/x",
            "javascript:alert(1)",
            "http://fix.localhost:99999",
            "http://a b",
            "http://user@host",
            "http://fix.localhost\nhttp://evil",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }

    #[test]
    fn it_runs_when_its_process_does() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_running(dir.path()));
        for (pid, runs) in [(std::process::id().to_string(), true), ("-1".into(), false)] {
            std::fs::write(dir.path().join("proxy.pid"), pid).unwrap();
            assert_eq!(is_running(dir.path()), runs);
        }
    }
}
