use super::*;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LIMIT: Duration = Duration::from_secs(15);

/// What hyper would read, and what was wrong.
async fn read(pieces: &[&[u8]]) -> (Vec<u8>, Option<Fault>) {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let (mut strict, faults) = Strict::new(server, LIMIT);
    let sending = async {
        for piece in pieces {
            client.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        client.shutdown().await.unwrap();
    };
    let reading = async {
        let mut all = Vec::new();
        let mut part = [0; 4096];
        loop {
            tokio::select! {
                biased;
                read = strict.read(&mut part) => match read {
                    Ok(0) | Err(_) => return all,
                    Ok(n) => all.extend_from_slice(&part[..n]),
                },
                // In place of a fault there is nothing more to read, for ever.
                () = async {
                    while faults.get().is_none() {
                        tokio::task::yield_now().await;
                    }
                } => return all,
            }
        }
    };
    let ((), all) = tokio::join!(sending, reading);
    (without_field(&all), faults.get().copied())
}

/// What is added to every request of HTTP/1.1, taken away.
fn without_field(bytes: &[u8]) -> Vec<u8> {
    let field = format!("te: {TAKES_TRAILERS}\r\n\r\n").into_bytes();
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(field.len()).position(|part| part == field) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(b"\r\n");
        rest = &rest[at + field.len()..];
    }
    [&out[..], rest].concat()
}

async fn fault(request: &str) -> Option<&'static str> {
    let (_, fault) = read(&[request.as_bytes()]).await;
    fault.map(|f| f.detail)
}

#[tokio::test]
async fn requests_pass_as_they_are_however_they_are_cut() {
    let all = "\
        GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n\
        POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
        POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n\
        5\r\nhello\r\n00A\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n\
        GET http://a/ HTTP/1.0\r\nX: \t y \r\n\r\n";
    for cut in [1, 2, 3, 7, 50, all.len()] {
        let pieces: Vec<&[u8]> = all.as_bytes().chunks(cut).collect();
        let (passed, fault) = read(&pieces).await;
        assert_eq!(fault, None);
        assert_eq!(String::from_utf8(passed).unwrap(), all, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_request_that_changes_the_protocol_frees_the_rest() {
    for head in [
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n",
    ] {
        let all = format!("{head}\x16\x03\n\n\0 anything");
        let (passed, fault) = read(&[all.as_bytes()]).await;
        assert_eq!((passed, fault), (all.into_bytes(), None));
    }
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused() {
    let with = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n0\r\n\r\n");
    for (fields, wanted) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", "both"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", "both"),
        ("Content-Length: 5\r\nContent-Length: 5", "several Content-Length"),
        ("Content-Length: 5\r\nContent-Length: 6", "several Content-Length"),
        ("Content-Length: 5, 5", "not a number"),
        ("Content-Length: +5", "not a number"),
        ("Content-Length: -5", "not a number"),
        ("Content-Length: 0x5", "not a number"),
        ("Content-Length: 5 5", "not a number"),
        ("Content-Length:", "not a number"),
        ("Content-Length: 99999999999999999999999", "not a number"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "several Transfer"),
        ("Transfer-Encoding: gzip, chunked", "not just chunked"),
        ("Transfer-Encoding: chunked, identity", "not just chunked"),
        ("Transfer-Encoding: xchunked", "not just chunked"),
        ("Transfer-Encoding: \"chunked\"", "not just chunked"),
        ("Transfer-Encoding: \x0bchunked", "control characters"),
        ("Transfer-Encoding : chunked", "not a word"),
        ("Transfer-Encoding\t: chunked", "not a word"),
        (" Transfer-Encoding: chunked", "folded"),
        ("X: a\r\n b", "folded"),
        ("X: a\r\n\tTransfer-Encoding: chunked", "folded"),
        ("X: a\rTransfer-Encoding: chunked", "control characters"),
        ("X: a\nTransfer-Encoding: chunked", "LF alone"),
        ("X: a\0b", "control characters"),
        ("no colon", "no colon"),
        (": empty", "not a word"),
        ("Host: b", "several Host"),
        ("Upgrade: websocket\r\nContent-Length: 3", "changes the protocol"),
    ] {
        let said = fault(&with(fields)).await;
        assert!(said.is_some_and(|s| s.contains(wanted)), "{fields:?}: {said:?}");
    }
}

#[tokio::test]
async fn request_lines_have_three_words() {
    for (line, wanted) in [
        ("GET /a b HTTP/1.1", "three words"),
        ("GET  / HTTP/1.1", "three words"),
        ("GET /", "three words"),
        (" GET / HTTP/1.1", "three words"),
        ("G\u{e9}T / HTTP/1.1", "method"),
        ("GET /\u{e9} HTTP/1.1", "escape"),
        ("GET /\t HTTP/1.1", "escape"),
        ("GET / HTTP/2.0", "version"),
        ("GET / HTTP/1.10", "version"),
        ("GET / http/1.1", "version"),
        ("GET http:// HTTP/1.1", "target"),
    ] {
        let said = fault(&format!("{line}\r\nHost: a\r\n\r\n")).await;
        assert!(said.is_some_and(|s| s.contains(wanted)), "{line:?}: {said:?}");
    }
    assert!(fault("GET / HTTP/1.1\r\n\r\n").await.is_some_and(|s| s.contains("no Host")));
    assert!(fault("GET / HTTP/1.1\nHost: a\n\n").await.is_some_and(|s| s.contains("LF alone")));
    let old = "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(fault(old).await.is_some_and(|s| s.contains("not just chunked")));
}

#[tokio::test]
async fn chunks_are_what_they_say() {
    for (body, wanted) in [
        ("5;ext=1\r\nhello\r\n0\r\n\r\n", "just a number"),
        ("5 \r\nhello\r\n0\r\n\r\n", "just a number"),
        ("\r\nhello\r\n0\r\n\r\n", "just a number"),
        ("0x5\r\nhello\r\n0\r\n\r\n", "just a number"),
        ("5\nhello\n0\n\n", "just a number"),
        ("5\r\nhello!\r\n0\r\n\r\n", "end where it says"),
        ("5\r\nhell\r\n0\r\n\r\n", "end where it says"),
        ("5\rXhello\r\n0\r\n\r\n", "end where it says"),
        ("ffffffffffffffff\r\n", "too large"),
        ("0000000000000000\r\n\r\n", "too large"),
        ("0\r\n folded: 1\r\n\r\n", "folded"),
        ("0\r\nbad name: 1\r\n\r\n", "not a word"),
        ("0\r\nX: 1\nY: 2\r\n\r\n", "control characters"),
    ] {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let said = fault(&format!("{head}{body}")).await;
        assert!(said.is_some_and(|s| s.contains(wanted)), "{body:?}: {said:?}");
    }
}

#[tokio::test]
async fn heads_are_bounded() {
    let many = "A: b\r\n".repeat(MOST_HEADERS);
    let said = fault(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")).await;
    assert_eq!(said, Some("there are too many header fields"));
    let long = "a".repeat(MOST_HEAD);
    let said = fault(&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n")).await;
    assert_eq!(said, Some("the head is too large"));
    let said = fault(&format!("GET /{long}")).await;
    assert_eq!(said, Some("the head is too large"));
}

#[tokio::test]
async fn something_harmless_stands_in_place_of_a_fault() {
    let (passed, fault) = read(&[b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET /evil"]).await;
    assert_eq!(passed, IN_PLACE);
    assert_eq!(fault.unwrap().reason, Reason::BadRequest);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_in_is_given_up() {
    let (mut client, server) = tokio::io::duplex(4096);
    let (mut strict, faults) = Strict::new(server, LIMIT);
    let mut part = [0; 4096];
    // Nothing at all is waited for; that is idling, and somebody else's to bound.
    let idle = tokio::time::timeout(LIMIT * 4, strict.read(&mut part)).await;
    assert!(idle.is_err());
    let trickle = async {
        for byte in "GET / HTTP/1.1\r\nHost: a\r\nX: 0123456789".bytes() {
            client.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let started = tokio::time::Instant::now();
    let read = tokio::select! {
        read = strict.read(&mut part) => read.unwrap(),
        () = async { trickle.await; std::future::pending().await } => 0,
    };
    assert_eq!(part[..read], *IN_PLACE);
    assert!(started.elapsed() < LIMIT + Duration::from_secs(2));
    assert_eq!(faults.get().unwrap().detail, "the head took too long");
}

proptest! {
    /// Whatever comes, and however it is cut: what passes is what came, or ends in what stands in its place.
    #[test]
    fn noise_never_changes_what_passes(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("GET / HTTP/1.1\r\n"), Just("Host: a\r\n"), Just("\r\n"), Just("Content-Length: 3\r\n"),
                Just("Transfer-Encoding: chunked\r\n"), Just("abc"), Just("3\r\nabc\r\n"), Just("0\r\n\r\n"),
                Just("\n"), Just("\r"), Just(" "), Just("X: y\r\n"),
            ],
            0..24,
        ),
        cut in 1usize..40,
    ) {
        let text = parts.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
        let (whole, fault_whole) = runtime.block_on(read(&[text.as_bytes()]));
        let (passed, fault) = runtime.block_on(read(&pieces));
        prop_assert_eq!(fault, fault_whole);
        let real = passed.strip_suffix(IN_PLACE).unwrap_or(&passed);
        let real_whole = whole.strip_suffix(IN_PLACE).unwrap_or(&whole);
        // Empty lines before a request are not passed on.
        let gist = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "");
        prop_assert!(gist(text.as_bytes()).starts_with(&gist(real)));
        if fault.is_none() {
            prop_assert_eq!(real, real_whole);
        }
    }
}
