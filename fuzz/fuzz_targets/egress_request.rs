//! What a box sends as a request means one thing: canonical once is canonical for ever, what goes up is seen
//! to go up, and nothing that ends a line or a text is in what is sent on. Where one request ends and the
//! next begins does not depend on how they are cut, and is where a parser of another make sees it.
#![no_main]

use egress::check::read;
use egress::fuzzing::pass;
use egress::host_name::HostName;
use egress::request::{Target, method};
use libfuzzer_sys::fuzz_target;

fn plain(text: &str) {
    assert!(text.bytes().all(|b| b.is_ascii_graphic()), "{text:?}");
}

/// As the most obliging server would resolve it: parameters cut off, blanks trimmed, dots decoded.
fn climbs(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    let blanks: Vec<String> = (0..=0x20).chain([0x7f]).map(|b| format!("%{b:02x}")).collect();
    path.split('/').any(|segment| {
        let name = segment.split(';').next().unwrap_or_default();
        let mut name = name.split("%3b").next().unwrap_or_default();
        while let Some(rest) = blanks.iter().find_map(|b| name.strip_prefix(b).or(name.strip_suffix(b))) {
            name = rest;
        }
        matches!(name, "." | "..")
    })
}

fn check_target(text: &str) {
    let Ok(target) = Target::parse(text) else { return };
    plain(&target.to_text());
    assert!(target.path().starts_with('/') && !target.path().starts_with("//"), "{target:?}");
    assert!(!target.path().contains(['?', '#', '\\']), "{target:?}");
    let again = Target::parse(&target.to_text()).expect("canonical is good");
    assert_eq!(again, target);
    // Every way up is seen, whatever it is spelled like.
    assert!(target.is_dotted() || !climbs(target.path()), "{target:?} from {text:?}");
    // And nothing is decoded into what would be read differently.
    assert!(target.is_veiled() || !target.path().to_ascii_uppercase().contains("%2F"), "{target:?}");
    target.query_map();
}

fn check_host(text: &str) {
    for parsed in [HostName::parse(text), HostName::authored(text)] {
        let Ok(host) = parsed else { continue };
        plain(host.as_str());
        assert!(!host.as_str().contains(['/', '@', '?', '#', '*', '[', ']']), "{host:?}");
        assert_eq!(HostName::parse(host.as_str()).as_ref(), Ok(&host));
        assert_eq!(HostName::parse(&host.in_url()).as_ref(), Ok(&host));
        assert_eq!(HostName::parse(&host.as_str().to_ascii_uppercase()).as_ref(), Ok(&host));
    }
}

fn check_url(text: &str) {
    let (wanted, url) = text.split_once(' ').unwrap_or(("GET", text));
    let Ok(request) = read(url, wanted) else { return };
    assert!(request.port > 0);
    let url = format!("{}://{}:{}{}", request.scheme, request.host.in_url(), request.port, request.target);
    plain(&url);
    assert_eq!(read(&url, &request.method).as_ref(), Ok(&request), "{url}");
}

/// Requests that passed, as another parser reads them; false when the last is not complete.
fn check_requests(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let mut fields = [httparse::EMPTY_HEADER; 300];
        let mut head = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(end)) = head.parse(bytes) else { return false };
        assert!(bytes[..end].ends_with(b"\r\n\r\n"));
        let named = |name: &str| -> Vec<&[u8]> {
            let all = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            all.map(|field| field.value).collect()
        };
        let clean = |value: &[u8]| !value.iter().any(|b| b"\r\n\0".contains(b));
        assert!(head.headers.iter().all(|field| clean(field.value) && !field.name.is_empty()));
        plain(head.path.expect("a target"));
        let (host, length, encoding) = (named("host"), named("content-length"), named("transfer-encoding"));
        assert!(host.len() <= 1 && length.len() + encoding.len() <= 1, "{head:?}");
        let upgrade = named("upgrade").concat().to_ascii_lowercase();
        if head.method == Some("CONNECT") || upgrade.windows(9).any(|part| part == b"websocket") {
            assert!(length.is_empty() && encoding.is_empty());
            return true;
        }
        bytes = &bytes[end..];
        if let [length] = length[..] {
            let length: u64 = std::str::from_utf8(length).unwrap().trim().parse().expect("a number");
            let Ok(length) = usize::try_from(length) else { return false };
            if length > bytes.len() {
                return false;
            }
            bytes = &bytes[length..];
        } else if !encoding.is_empty() {
            assert!(encoding[0].eq_ignore_ascii_case(b"chunked"));
            loop {
                let Ok(httparse::Status::Complete((at, size))) = httparse::parse_chunk_size(bytes) else {
                    return false;
                };
                let Ok(size) = usize::try_from(size) else { return false };
                assert!(!bytes[..at].contains(&b';'), "{:?}", &bytes[..at]);
                bytes = &bytes[at..];
                if size == 0 {
                    break;
                }
                if size + 2 > bytes.len() {
                    return false;
                }
                assert_eq!(bytes[size..size + 2], *b"\r\n");
                bytes = &bytes[size + 2..];
            }
            let Ok(httparse::Status::Complete((at, _))) = httparse::parse_headers(bytes, &mut [httparse::EMPTY_HEADER; 4096])
            else {
                return false;
            };
            bytes = &bytes[at..];
        }
    }
    true
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_target(text);
        check_target(&format!("/{text}"));
        check_host(text);
        check_url(text);
        if let Ok(method) = method(text) {
            plain(&method);
            assert_eq!(egress::request::method(&method), Ok(method.clone()));
        }
    }
    // What is added for hyper is taken away again in `pass`, and could not be told from the same words here.
    if bytes.windows(10).any(|part| part == b"x-agentbox") {
        return;
    }
    let whole = pass(bytes, usize::MAX);
    // Empty lines before a request are not passed on; everything else is as it came.
    let gist = |bytes: &[u8]| -> Vec<u8> { bytes.iter().filter(|b| !b"\r\n".contains(b)).copied().collect() };
    assert!(gist(bytes).starts_with(&gist(&whole.bytes)));
    let complete = check_requests(&whole.bytes);
    for piece in [1, 3, 17] {
        let cut = pass(bytes, piece);
        assert_eq!(cut.fault, whole.fault);
        // A fault in a body ends it where it was met, and that may be in the middle of a piece.
        if whole.fault.is_none() {
            assert_eq!(cut.bytes, whole.bytes);
        } else {
            assert!(cut.bytes.starts_with(&whole.bytes));
            assert!(!complete || check_requests(&cut.bytes) || cut.bytes != whole.bytes);
        }
    }
});
