//! A request as a person is asked about it. Nothing of a body, no value of a query; what a box could have
//! chosen is made visible.

use super::is_read;
use crate::new_rule::NewRule;
use crate::policy::PathKind;
use crate::ports::Ask;
use crate::request::Scheme;
use approvals::{Asker, Draft, Rememberable, Scope, Times};
use protocol::question::{Answers, Evidence, Fact, Reach, Tier};
use protocol::text::{shortened, visible};
use std::time::Duration;

/// Of an address, in the facts and in a title.
const LONGEST: usize = 512;
const IN_TITLE: usize = 80;
/// Of what the box says it is for.
const LONGEST_WHY: usize = 300;

/// What can be remembered of a yes.
pub struct Offer<'a> {
    pub near: &'a NewRule,
    pub wide: &'a NewRule,
    /// What each lets through besides, in words.
    pub nearer: Vec<String>,
    pub wider: Vec<String>,
    pub yaml: String,
    pub only: Option<Reach>,
}

pub fn draft(ask: &Ask, asker: Asker, offer: &Offer<'_>, timeout: Duration) -> Draft {
    let shown = address(ask, LONGEST);
    Draft {
        asker,
        method: super::METHOD.to_owned(),
        tier: if is_read(ask) && ask.secrets.is_empty() { Tier::Routine } else { Tier::Sensitive },
        title: title(ask),
        target: host(ask),
        evidence: Evidence { facts: facts(ask, offer, &shown), ..Evidence::default() },
        warnings: warnings(ask),
        argv: vec![visible(&ask.method), shown],
        plan: format!("{} {} {}", ask.port, ask.websocket, ask.path),
        remember: Some(remember(offer)),
        answers: Answers::default(),
        times: Times::default(),
        timeout: Some(timeout),
    }
}

fn title(ask: &Ask) -> String {
    let place = format!("{}{}", authority(ask), query_hidden(&ask.path));
    let place = shortened(&place, IN_TITLE);
    if ask.websocket {
        format!("Open a WebSocket to {place}")
    } else if is_read(ask) {
        format!("Read {place}")
    } else {
        format!("Send a {} request to {place}", visible(&ask.method))
    }
}

/// The host as it is compared and, where that differs, as it may be read.
fn host(ask: &Ask) -> String {
    let name = ask.host.as_str();
    if !name.split('.').any(|label| label.starts_with("xn--")) {
        return name.to_owned();
    }
    let (unicode, _) = idna::domain_to_unicode(name);
    format!("{name} (reads {})", visible(&unicode))
}

fn authority(ask: &Ask) -> String {
    let port = (ask.port != ask.scheme.port()).then(|| format!(":{}", ask.port));
    format!("{}{}", ask.host.in_url(), port.unwrap_or_default())
}

fn address(ask: &Ask, longest: usize) -> String {
    let path = query_hidden(&ask.path);
    let scheme = match (ask.websocket, ask.scheme) {
        (true, Scheme::Https) => "wss",
        (true, Scheme::Http) => "ws",
        (false, scheme) => scheme.as_str(),
    };
    shortened(&visible(&format!("{scheme}://{}{path}", authority(ask))), longest)
}

/// The path with the names of its query: a value may be a password.
fn query_hidden(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return visible(target) };
    let names = query.split('&').filter(|pair| !pair.is_empty());
    let names: Vec<String> = names
        .map(|pair| match pair.split_once('=') {
            Some((name, "")) => format!("{name}="),
            Some((name, _)) => format!("{name}=…"),
            None => pair.to_owned(),
        })
        .collect();
    visible(&format!("{path}?{}", names.join("&")))
}

fn facts(ask: &Ask, offer: &Offer<'_>, shown: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |label: &str, value: String| {
        facts.push(Fact { label: label.to_owned(), value });
    };
    fact("Request", format!("{} {shown}", visible(&ask.method)));
    if host(ask) != ask.host.as_str() {
        fact("Host", host(ask));
    }
    fact("Port", ask.port.to_string());
    if !is_read(ask) {
        fact("Size", ask.length.map_or_else(|| "not known before it is sent".to_owned(), size));
    }
    for secret in &ask.secrets {
        fact("Credential", format!("{secret} is put in"));
    }
    match &ask.rule {
        Some(rule) => fact(
            "Asked because",
            format!("{} says so for {}", visible(&rule.origin), visible(&rule.host)),
        ),
        None => fact("Asked because", "no rule speaks of it".to_owned()),
    }
    if is_read(ask) && super::folder_of(ask).is_some() {
        fact(
            "A yes also covers",
            format!("what it reads {}, with any query, while this is open", below(offer.near)),
        );
    }
    if let Some(why) = &ask.why {
        fact("The box says", format!("“{}”", shortened(&visible(why), LONGEST_WHY)));
    }
    if offer.only.is_none() {
        fact("Always for the project writes", visible(&offer.yaml));
    }
    facts
}

fn below(rule: &NewRule) -> String {
    match &rule.path {
        Some(path) if path.kind == PathKind::Prefix => {
            format!("below {}{}", rule.host, visible(&path.text))
        }
        Some(path) => format!("at {}{}", rule.host, visible(&path.text)),
        None => format!("from {}", rule.host),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0 => "nothing".to_owned(),
        1..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

fn warnings(ask: &Ask) -> Vec<String> {
    let mut all = Vec::new();
    if ask.scheme == Scheme::Http {
        all.push("not encrypted: others on the way can read and change it".to_owned());
    }
    if ask.port != ask.scheme.port() {
        all.push(format!("an unusual port: {}", ask.port));
    }
    if host(ask) != ask.host.as_str() {
        all.push("a name that may look like another".to_owned());
    }
    for secret in &ask.secrets {
        all.push(format!("uses your credential {secret}"));
    }
    all
}

fn remember(offer: &Offer<'_>) -> Rememberable {
    let (near, wide) = (offer.near, offer.wide);
    let also = |words: &[String]| {
        let words: Vec<String> = words.iter().map(|w| visible(w)).collect();
        if words.is_empty() { String::new() } else { format!(" (wider: {})", words.join("; ")) }
    };
    let near = format!("{} {}{}", verbs(near), below(near), also(&offer.nearer));
    let wide = format!("{} anything {}{}", verbs(wide), below(wide), also(&offer.wider));
    // What a rule covers is kept by the gate, not by these.
    let scope = |what: String| Scope { key: what.clone(), what };
    Rememberable { exact: scope(near), kind: Some(scope(wide)), only: offer.only }
}

fn verbs(rule: &NewRule) -> String {
    let web = if rule.websocket { " and open WebSockets" } else { "" };
    match &rule.methods {
        None => format!("read and send{web}"),
        Some(methods) if methods.iter().any(|m| m == "GET") => format!("read{web}"),
        Some(methods) => {
            let methods: Vec<String> = methods.iter().map(|m| visible(m)).collect();
            format!("send {}{web}", methods.join(", "))
        }
    }
}
