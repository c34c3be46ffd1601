//! One line of traffic, as people read it. All of it may be a box's own words.

use protocol::egress::{Reason, Traffic, TrafficAction, TrafficKind};
use protocol::text::visible;

/// One word for what became of it.
pub fn verdict(of: &Traffic) -> &'static str {
    match (of.action, of.kind, of.reason) {
        (TrafficAction::Blocked, ..) => "stopped",
        (TrafficAction::Allowed, _, Some(Reason::Observed)) => "observed",
        (TrafficAction::Allowed, _, Some(Reason::Approved)) => "approved",
        (TrafficAction::Allowed, ..) => "allowed",
        (_, TrafficKind::Alert, _) => "alert",
        (_, TrafficKind::Reload, _) => "reload",
        (_, TrafficKind::Selftest, _) => "selftest",
        (_, TrafficKind::SecretWarning | TrafficKind::SecretEcho, _) => "secret",
        (TrafficAction::Noted, ..) => "noted",
    }
}

/// `api.example.com:8443/v1/jobs`; what is usual is left out.
pub fn place(of: &Traffic) -> String {
    let host = of.host.as_deref().map(visible).unwrap_or_default();
    let scheme = of.scheme.as_deref().filter(|scheme| *scheme != "https");
    let scheme = scheme.map(|scheme| format!("{}://", visible(scheme))).unwrap_or_default();
    let usual = if of.scheme.as_deref() == Some("http") { 80 } else { 443 };
    let port = of.port.filter(|port| *port != usual).map(|port| format!(":{port}"));
    let path = of.path.as_deref().map(visible).unwrap_or_default();
    if host.is_empty() {
        return path;
    }
    format!("{scheme}{host}{}{path}", port.unwrap_or_default())
}

pub fn method(of: &Traffic) -> String {
    match (of.kind, &of.method) {
        (_, Some(method)) => visible(method),
        (TrafficKind::Connect, None) => "CONNECT".to_owned(),
        (TrafficKind::Passthrough, None) => "tunnel".to_owned(),
        _ => "-".to_owned(),
    }
}

/// `POST api.example.com/v1/jobs`.
pub fn request(of: &Traffic) -> String {
    format!("{} {}", method(of), place(of))
}

/// `no_rule_matched`, with what there is to say about it.
pub fn reason(of: &Traffic) -> String {
    let code = of.reason.map_or("no reason", Reason::code);
    match &of.detail {
        Some(detail) => format!("{code}: {}", visible(detail)),
        None => code.to_owned(),
    }
}

/// Four characters at most: `0`, `999`, `1.2k`, `34M`.
pub fn size(bytes: u64) -> String {
    let mut tenths = bytes.saturating_mul(10);
    let mut unit = "";
    for next in ["k", "M", "G", "T", "P"] {
        if tenths < 10_000 {
            break;
        }
        tenths /= 1000;
        unit = next;
    }
    if unit.is_empty() || tenths >= 100 {
        format!("{}{unit}", tenths / 10)
    } else {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn sizes_are_four_characters_at_most() {
        let said =
            [0, 999, 1000, 1234, 34_567, 999_999, 1_500_000, 3_400_000_000, u64::MAX].map(size);
        let wanted = ["0", "999", "1.0k", "1.2k", "34k", "999k", "1.5M", "3.4G"];
        assert_eq!(said[..8], wanted);
        assert!(said.iter().all(|size| size.len() <= 5), "{said:?}");
    }

    #[test]
    fn what_is_usual_is_left_out() {
        let all = samples::traffic();
        assert_eq!(request(&all[0]), "GET github.com/acme/shop-api.git/info/refs");
        let odd = Traffic { port: Some(8443), ..all[0].clone() };
        assert_eq!(place(&odd), "github.com:8443/acme/shop-api.git/info/refs");
        let plain = Traffic { scheme: Some("http".into()), port: Some(80), ..all[0].clone() };
        assert_eq!(place(&plain), "http://github.com/acme/shop-api.git/info/refs");
    }
}
