//! Header fields on their way through. Pure.

use hyper::Method;
use hyper::header::{
    CONNECTION, COOKIE, EXPECT, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use protocol::web::Host;
use std::net::IpAddr;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
/// Of one connection only, and what a proxy must not pass on.
const HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
];
/// Promises about a name that outlive the box and bind whatever has the name next.
const LASTING: [HeaderName; 3] = [
    STRICT_TRANSPORT_SECURITY,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("public-key-pins"),
];

/// Whether the request asks to become a WebSocket.
pub fn wants_socket(method: &Method, fields: &HeaderMap) -> bool {
    let upgrade = words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    *method == Method::GET && upgrade && is_websocket(fields)
}

/// The only protocol that is ever changed to.
pub fn is_websocket(fields: &HeaderMap) -> bool {
    let mut wanted = words(fields, &UPGRADE);
    wanted.next().is_some_and(|word| word.eq_ignore_ascii_case("websocket"))
        && wanted.next().is_none()
}

/// Puts back what makes a WebSocket of a request or an answer.
pub fn as_socket(fields: &mut HeaderMap) {
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
}

/// The one Host header; none when there is none or more than one.
pub fn host(fields: &HeaderMap) -> Option<&str> {
    let mut all = fields.get_all(HOST).iter();
    let host = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(host)
}

/// Whether the browser says that another site is behind the request, and it is no visit to a page.
/// A page of one box must not reach another box, or the other box's sources, through the browser.
/// `is_own` knows the names of the box that is asked for.
pub fn is_foreign(fields: &HeaderMap, is_own: impl Fn(&Host) -> bool) -> bool {
    let text = |name: &str| fields.get(name).and_then(|value| value.to_str().ok());
    let visits = text("sec-fetch-mode") == Some("navigate");
    let Some(origin) = text(ORIGIN.as_str()) else {
        let site = text("sec-fetch-site");
        return !visits && site.is_some_and(|site| site == "cross-site" || site == "same-site");
    };
    // `null` is what a sandboxed page of anybody's has.
    let Some((_, authority)) = origin.split_once("://") else { return true };
    // Any box can be reached under any box's name at its own port: only this port makes it ours.
    let here = [host(fields), text(FORWARDED_HOST.as_str())];
    let is_here = here.into_iter().flatten().any(|here| port(here) == port(authority));
    match Host::read(authority) {
        // A form of another site may lead here, as when one logs in there; a form of another box not.
        Host::Foreign => !visits,
        name @ Host::Ours(_) => !is_here || !is_own(&name),
    }
}

fn port(authority: &str) -> Option<&str> {
    authority.rsplit_once(':').map(|(_, port)| port)
}

/// Makes a browser's request fit for the box.
pub fn towards_box(fields: &mut HeaderMap, host: &str, from: IpAddr) {
    drop_hops(fields);
    fields.remove(EXPECT);
    fields.remove("proxy");
    let text = |name: &HeaderName, fields: &HeaderMap| {
        fields.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    // Another proxy may stand before this one. It is believed where that cannot do harm.
    let before = text(&FOR, fields).filter(|chain| chain.len() < 256);
    let via = before.map_or_else(|| from.to_string(), |chain| format!("{chain}, {from}"));
    let proto = text(&PROTO, fields).filter(|p| p == "https" || p == "http");
    let proto = proto.unwrap_or_else(|| "http".to_owned());
    let name = |host: &str| host.rsplit_once(':').map_or(host.to_owned(), |(name, _)| name.into());
    let known = text(&FORWARDED_HOST, fields).filter(|other| name(other) == name(host));
    let outer = known.unwrap_or_else(|| host.to_owned());
    let given = |host: &str| host.rsplit_once(':').map(|(_, port)| port.to_owned());
    let port = given(&outer).unwrap_or_else(|| if proto == "https" { "443" } else { "80" }.into());
    let node = match from {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("\"[{v6}]\""),
    };
    let forwarded = format!("for={node};host=\"{outer}\";proto={proto}");
    for (name, value) in [
        (FOR, via),
        (PROTO, proto),
        (FORWARDED_HOST, outer),
        (FORWARDED_PORT, port),
        (FORWARDED, forwarded),
    ] {
        match HeaderValue::from_str(&value) {
            Ok(value) => fields.insert(name, value),
            Err(_) => fields.remove(name),
        };
    }
}

/// Makes a box's answer fit for the browser.
pub fn towards_browser(fields: &mut HeaderMap) {
    drop_hops(fields);
    for name in LASTING {
        fields.remove(name);
    }
    let cookies: Vec<HeaderValue> = fields.get_all(SET_COOKIE).iter().map(own_cookie).collect();
    fields.remove(SET_COOKIE);
    for cookie in cookies {
        fields.append(SET_COOKIE, cookie);
    }
}

/// Names of screens have a parent in common, for which a page may set cookies that all of them get. A
/// screen needs none, so none pass.
pub fn without_cookies(fields: &mut HeaderMap) {
    fields.remove(COOKIE);
    fields.remove(SET_COOKIE);
}

fn drop_hops(fields: &mut HeaderMap) {
    let named: Vec<String> = words(fields, &CONNECTION).map(str::to_ascii_lowercase).collect();
    for name in named {
        fields.remove(name.as_str());
    }
    for name in HOP {
        fields.remove(name);
    }
}

fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let all = fields.get_all(name).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

/// Without `Domain`, which could name what all boxes have in common, a cookie is for the one name it
/// came from.
fn own_cookie(cookie: &HeaderValue) -> HeaderValue {
    let is_domain = |part: &[u8]| {
        let name = part.split(|b| *b == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"domain")
    };
    let mut parts = cookie.as_bytes().split(|b| *b == b';');
    let first = parts.next().unwrap_or_default();
    let kept = std::iter::once(first).chain(parts.filter(|part| !is_domain(part)));
    let text = kept.collect::<Vec<_>>().join(&b';');
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn hop_by_hop_fields_stay_behind() {
        let mut map = fields(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "Basic x"),
            ("proxy", "http://evil"),
            ("expect", "100-continue"),
            ("accept", "*/*"),
        ]);
        towards_box(&mut map, "fix.localhost:1355", IpAddr::from([127, 0, 0, 1]));
        let left: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
        for gone in ["connection", "x-mine", "keep-alive", "upgrade", "proxy", "expect"] {
            assert!(!left.contains(&gone), "{gone}: {left:?}");
        }
        assert_eq!(map["accept"], "*/*");
        assert_eq!(map["x-forwarded-for"], "127.0.0.1");
        assert_eq!(map["x-forwarded-host"], "fix.localhost:1355");
        assert_eq!(map["x-forwarded-proto"], "http");
        assert_eq!(map["x-forwarded-port"], "1355");
        assert_eq!(map["forwarded"], "for=127.0.0.1;host=\"fix.localhost:1355\";proto=http");
    }

    #[test]
    fn another_proxy_before_this_one_is_told_of() {
        let mut map = fields(&[
            ("x-forwarded-for", "::1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "fix.localhost"),
            ("forwarded", "for=evil"),
        ]);
        towards_box(&mut map, "fix.localhost", IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(map["x-forwarded-for"], "::1, ::1");
        assert_eq!(map["x-forwarded-port"], "443");
        assert_eq!(map["forwarded"], "for=\"[::1]\";host=\"fix.localhost\";proto=https");
        let mut map = fields(&[("x-forwarded-host", "evil.com"), ("x-forwarded-proto", "x")]);
        towards_box(&mut map, "fix.localhost:1355", IpAddr::from([127, 0, 0, 1]));
        assert_eq!(map["x-forwarded-host"], "fix.localhost:1355");
        assert_eq!(map["x-forwarded-proto"], "http");
    }

    #[test]
    fn cookies_are_for_their_own_name() {
        for (given, kept) in [
            ("a=1; Domain=localhost; Path=/", "a=1; Path=/"),
            ("a=domain=x; DOMAIN = .localhost;Secure", "a=domain=x;Secure"),
            ("a=1;domain", "a=1"),
            ("Domain=1; Path=/", "Domain=1; Path=/"),
        ] {
            let mut map = fields(&[("set-cookie", given), ("set-cookie", "b=2")]);
            towards_browser(&mut map);
            let all: Vec<_> = map.get_all(SET_COOKIE).iter().collect();
            assert_eq!(all, [kept, "b=2"]);
        }
    }

    #[test]
    fn a_box_makes_no_lasting_promises_for_its_name() {
        let mut map =
            fields(&[("strict-transport-security", "max-age=9"), ("alt-svc", "h3=\":1\"")]);
        towards_browser(&mut map);
        assert!(map.is_empty());
    }

    #[test]
    fn pages_of_other_boxes_and_sites_are_kept_out() {
        let own = |host: &Host| *host == Host::read("fix.localhost");
        let foreign = |all: &[(&str, &str)]| is_foreign(&fields(all), own);
        assert!(!foreign(&[]), "curl");
        let here = ("host", "fix.localhost:1355");
        assert!(!foreign(&[here, ("origin", "http://fix.localhost:1355")]));
        assert!(foreign(&[here, ("origin", "http://fix.localhost:32768")]), "another box's port");
        let before = ("x-forwarded-host", "fix.localhost");
        assert!(!foreign(&[here, before, ("origin", "https://fix.localhost")]));
        let visit = ("sec-fetch-mode", "navigate");
        for other in ["http://b.localhost:1355", "null"] {
            assert!(
                foreign(&[("origin", other)]) && foreign(&[("origin", other), visit]),
                "{other}"
            );
        }
        for other in ["https://evil.com", "http://localhost:1355"] {
            assert!(
                foreign(&[("origin", other)]) && !foreign(&[("origin", other), visit]),
                "{other}"
            );
        }
        let site =
            |site: &str, mode: &str| foreign(&[("sec-fetch-site", site), ("sec-fetch-mode", mode)]);
        assert!(site("cross-site", "no-cors") && site("same-site", "cors"));
        assert!(
            !site("cross-site", "navigate") && !site("same-origin", "cors") && !site("none", "x")
        );
    }

    #[test]
    fn only_websockets_are_changed_to() {
        let wants = |all: &[(&str, &str)]| wants_socket(&Method::GET, &fields(all));
        assert!(wants(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]));
        assert!(!wants(&[("connection", "upgrade"), ("upgrade", "h2c")]));
        assert!(!wants(&[("connection", "upgrade"), ("upgrade", "websocket, h2c")]));
        assert!(!wants(&[("upgrade", "websocket")]));
    }
}
