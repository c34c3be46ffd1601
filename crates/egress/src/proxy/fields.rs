//! Header fields on their way through. Pure.

use super::strict::{TAKES_TRAILERS, names_websocket};
use hyper::Method;
use hyper::header::{
    ACCEPT_ENCODING, AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, COOKIE, DATE, EXPECT, EXPIRES, Entry, HOST,
    HeaderMap, HeaderName, HeaderValue, LOCATION, MAX_FORWARDS, PRAGMA, RANGE, RETRY_AFTER,
    SEC_WEBSOCKET_KEY, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, WWW_AUTHENTICATE,
};

/// Of one connection only.
const HOP: [HeaderName; 5] =
    [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")];
/// Says that the same host answers elsewhere, where no box gets to.
const ALT_SVC: HeaderName = HeaderName::from_static("alt-svc");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const IF_RANGE: HeaderName = HeaderName::from_static("if-range");
/// Say how a message is to be read, where it goes or who sent it: of use before a body only, and a
/// program that joins the two would read it in another way than the proxy did.
const NEVER_LAST: [HeaderName; 20] = [
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    EXPECT,
    EXPIRES,
    HOST,
    LOCATION,
    MAX_FORWARDS,
    PRAGMA,
    RETRY_AFTER,
    SET_COOKIE,
    TRAILER,
    VARY,
    WWW_AUTHENTICATE,
];
const OURS: &str = "x-agentbox-";
/// Of fields after a body, names and values together.
const MOST_LAST: usize = 16 * 1024;

/// Some `Upgrade` field speaks of WebSockets: the bytes after this request are not looked at.
pub(super) fn names_socket(fields: &HeaderMap) -> bool {
    fields.get_all(UPGRADE).iter().any(|value| names_websocket(value.as_bytes()))
}

/// The request asks to become a WebSocket, and nothing else.
pub(super) fn wants_socket(method: &Method, fields: &HeaderMap) -> bool {
    let upgrade = words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    *method == Method::GET
        && upgrade
        && is_websocket(fields)
        && fields.contains_key(SEC_WEBSOCKET_KEY)
}

pub(super) fn is_websocket(fields: &HeaderMap) -> bool {
    let mut wanted = words(fields, &UPGRADE);
    wanted.next().is_some_and(|word| word.eq_ignore_ascii_case("websocket"))
        && wanted.next().is_none()
}

/// Puts back what makes a WebSocket of a request or an answer.
pub(super) fn as_socket(fields: &mut HeaderMap) {
    fields.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    fields.remove(TE);
}

/// Says to a server by HTTP/1 that the box takes fields after a body, if it does.
pub(super) fn as_asked(fields: &mut HeaderMap) {
    if fields.contains_key(TE) {
        fields.insert(CONNECTION, HeaderValue::from_static("TE"));
    }
}

/// The one Host field; an error when there are several or it is no text.
pub(super) fn host(fields: &HeaderMap) -> Result<Option<&str>, ()> {
    let mut all = fields.get_all(HOST).iter();
    let Some(host) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(());
    }
    host.to_str().map(Some).map_err(drop)
}

/// Makes a box's request fit for a server. What only the box and this proxy have to do with each other
/// stays here, and so does what the box says in our name.
pub(super) fn towards_server(fields: &mut HeaderMap) {
    let trailers = words(fields, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    drop_hops(fields);
    fields.remove(EXPECT);
    fields.remove(HTTP2_SETTINGS);
    fields.remove(HOST);
    drop_ours(fields);
    announce(fields);
    trim(fields);
    if trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Makes a server's answer fit for the box. No server speaks in our name.
pub(super) fn towards_box(fields: &mut HeaderMap) {
    drop_hops(fields);
    fields.remove(ALT_SVC);
    drop_ours(fields);
    announce(fields);
}

/// Of the fields that are announced to come after a body, those that may.
fn announce(fields: &mut HeaderMap) {
    if !fields.contains_key(TRAILER) {
        return;
    }
    let may = |word: &&str| HeaderName::from_bytes(word.as_bytes()).is_ok_and(|n| may_be_last(&n));
    let names: Vec<&str> = words(fields, &TRAILER).filter(may).collect();
    let left = HeaderValue::from_str(&names.join(", ")).ok().filter(|_| !names.is_empty());
    match left {
        Some(left) => drop(fields.insert(TRAILER, left)),
        None => drop(fields.remove(TRAILER)),
    }
}

fn may_be_last(name: &HeaderName) -> bool {
    let text = name.as_str();
    let hop = HOP.contains(name) || text.starts_with("proxy-");
    !hop && *name != ALT_SVC && !text.starts_with(OURS) && !NEVER_LAST.contains(name)
}

/// hyper gives fields after a body only to those who say that they take them. Everybody who speaks
/// HTTP/1.1 can read them, so [`super::strict`] says it for them all; what the box itself said stays.
pub(super) fn unsay(fields: &mut HeaderMap) {
    let own: Vec<HeaderValue> =
        fields.get_all(TE).iter().filter(|said| *said != TAKES_TRAILERS).cloned().collect();
    fields.remove(TE);
    for said in own {
        fields.append(TE, said);
    }
}

/// An answer is looked through for what was put in, so it has to be whole and plain.
pub(super) fn plain_answer(fields: &mut HeaderMap) {
    fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    fields.remove(RANGE);
    fields.remove(IF_RANGE);
}

/// Fields after a body of the box's. None of them may look as if it had been before it.
pub(super) fn trailer(fields: &mut HeaderMap, put_in: &[HeaderName]) {
    keep(fields, |name| may_be_last(name) && !put_in.contains(name));
}

/// Fields after a body of a server's. False when there are too many of them, and then there are none.
pub(super) fn trailer_towards_box(fields: &mut HeaderMap) -> bool {
    keep(fields, may_be_last);
    let size: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let fits = size <= MOST_LAST;
    if !fits {
        fields.clear();
    }
    fits
}

fn keep(fields: &mut HeaderMap, may_stay: impl Fn(&HeaderName) -> bool) {
    drop_hops(fields);
    let gone: Vec<HeaderName> = fields.keys().filter(|name| !may_stay(name)).cloned().collect();
    for name in gone {
        fields.remove(name);
    }
}

/// HTTP/2 may send cookies in crumbs; HTTP/1 has one field.
pub(super) fn join_cookies(fields: &mut HeaderMap) {
    let Entry::Occupied(mut cookies) = fields.entry(COOKIE) else { return };
    if cookies.iter().count() > 1 {
        let all: Vec<&[u8]> = cookies.iter().map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
            cookies.insert(joined);
        }
    }
}

fn drop_hops(fields: &mut HeaderMap) {
    let named: Vec<HeaderName> = words(fields, &CONNECTION)
        .filter_map(|word| HeaderName::from_bytes(word.as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&HOP) {
        fields.remove(name);
    }
    drop_prefixed(fields, "proxy-");
}

fn drop_ours(fields: &mut HeaderMap) {
    drop_prefixed(fields, OURS);
}

fn drop_prefixed(fields: &mut HeaderMap, prefix: &str) {
    let gone: Vec<HeaderName> =
        fields.keys().filter(|name| name.as_str().starts_with(prefix)).cloned().collect();
    for name in gone {
        fields.remove(name);
    }
}

/// Blanks around a value mean nothing, and some servers refuse them.
fn trim(fields: &mut HeaderMap) {
    for value in fields.values_mut() {
        let trimmed = value.as_bytes().trim_ascii();
        if trimmed.len() != value.len()
            && let Ok(trimmed) = HeaderValue::from_bytes(trimmed)
        {
            *value = trimmed;
        }
    }
}

/// The words of a field that is a list.
fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn what_is_of_one_connection_stays_there() {
        let mut all = fields(&[
            ("host", "a"),
            ("connection", "keep-alive, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "5"),
            ("proxy-authorization", "Basic x"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("http2-settings", "AA"),
            ("te", "gzip"),
            ("expect", "100-continue"),
            ("x-agentbox-reason", "fake"),
            ("accept", " text/plain \t"),
        ]);
        towards_server(&mut all);
        assert_eq!(all, fields(&[("accept", "text/plain")]));
    }

    #[test]
    fn trailers_are_announced_and_harmless() {
        let mut all = fields(&[("te", "trailers, deflate"), ("trailer", "x-sum")]);
        towards_server(&mut all);
        assert_eq!(all, fields(&[("te", "trailers"), ("trailer", "x-sum")]));
        let mut last =
            fields(&[("x-sum", "1"), ("authorization", "x"), ("host", "b"), ("x-key", "y")]);
        trailer(&mut last, &[HeaderName::from_static("x-key")]);
        assert_eq!(last, fields(&[("x-sum", "1")]));
        let mut all = fields(&[("trailer", "Host, x-sum"), ("trailer", "te,X-AgentBox-Egress")]);
        towards_box(&mut all);
        assert_eq!(all, fields(&[("trailer", "x-sum")]));
        let mut all = fields(&[("trailer", "Content-Length, no name")]);
        towards_box(&mut all);
        assert_eq!(all, fields(&[]));
    }

    #[test]
    fn what_the_box_says_it_takes_is_its_own_word() {
        for (said, left) in [
            (&["x-agentbox, trailers"][..], &[][..]),
            (&["trailers", "x-agentbox, trailers"], &["trailers"]),
            (&["gzip", "deflate", "x-agentbox, trailers"], &["gzip", "deflate"]),
        ] {
            let all = |words: &[&'static str]| -> HeaderMap {
                words.iter().map(|word| (TE, HeaderValue::from_static(word))).collect()
            };
            let mut fields = all(said);
            unsay(&mut fields);
            assert_eq!(fields, all(left));
        }
    }

    #[test]
    fn no_server_speaks_in_our_name() {
        let mut all = fields(&[("x-agentbox-egress", "blocked"), ("alt-svc", "h3"), ("etag", "1")]);
        towards_box(&mut all);
        assert_eq!(all, fields(&[("etag", "1")]));
    }

    #[test]
    fn crumbs_become_one_cookie() {
        let mut all = fields(&[("cookie", "a=1"), ("cookie", "b=2")]);
        join_cookies(&mut all);
        assert_eq!(all, fields(&[("cookie", "a=1; b=2")]));
    }

    #[test]
    fn a_websocket_is_asked_for_in_one_way() {
        let asks = |all: &[(&'static str, &'static str)]| wants_socket(&Method::GET, &fields(all));
        let key = ("sec-websocket-key", "x");
        assert!(asks(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), key]));
        assert!(!asks(&[("upgrade", "websocket"), key]));
        assert!(!asks(&[("connection", "upgrade"), ("upgrade", "websocket, h2c"), key]));
        assert!(!asks(&[("connection", "upgrade"), ("upgrade", "websocket")]));
        assert!(names_socket(&fields(&[("upgrade", "h2c, WEBSOCKET")])));
    }

    #[test]
    fn there_is_one_host() {
        assert_eq!(host(&fields(&[])), Ok(None));
        assert_eq!(host(&fields(&[("host", "a")])), Ok(Some("a")));
        assert_eq!(host(&fields(&[("host", "a"), ("host", "a")])), Err(()));
    }
}
