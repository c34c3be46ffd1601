use super::*;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use proptest::prelude::*;

const VALUE: &str = "s3cr3t/value+with=signs\"and\\more";

fn id() -> SecretId {
    "github.push".parse().unwrap()
}

fn known(value: &str, payloads: &[&str]) -> Known {
    let known = Known::new(std::iter::empty());
    known.used(&id(), value, payloads, Instant::now());
    known
}

fn masked(known: &Known, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
    let mut masker = Masker::new(known.patterns(Instant::now()));
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&masker.pass(Bytes::copy_from_slice(piece)));
    }
    out.extend_from_slice(&masker.finish());
    (out, !masker.found.is_empty())
}

fn every_spelling() -> Vec<Vec<u8>> {
    let mut all = vec![
        VALUE.as_bytes().to_vec(),
        percent(VALUE.as_bytes()),
        json(VALUE.as_bytes()),
        VALUE.bytes().flat_map(|b| format!("{b:02x}").into_bytes()).collect(),
        STANDARD_NO_PAD.encode(format!("x-access-token:{VALUE}")).into_bytes(),
    ];
    for before in ["", "a", "ab", "abc"] {
        let encoded = STANDARD_NO_PAD.encode(format!("{before}{VALUE}tail"));
        all.push(encoded.into_bytes());
        all.push(URL_SAFE_NO_PAD.encode(format!("{before}{VALUE}")).into_bytes());
    }
    all
}

#[test]
fn every_spelling_is_found_and_lengths_stay() {
    let payload = format!("x-access-token:{VALUE}");
    let known = known(VALUE, &[&payload]);
    for spelling in every_spelling() {
        let text = [b"{\"got\": \"", spelling.as_slice(), b"\"}"].concat();
        let (out, found) = masked(&known, &[&text]);
        let shown = String::from_utf8_lossy(&spelling).into_owned();
        assert!(found, "{shown}");
        assert_eq!(out.len(), text.len());
        assert!(out.starts_with(b"{\"got\": \"") && out.ends_with(b"\"}"), "{shown}");
        assert!(String::from_utf8_lossy(&out).matches('*').count() >= LEAST, "{shown}");
    }
}

/// What is encoded by somebody who was given it encoded: an error page in a link, a header in a log that
/// is itself a value.
#[test]
fn spellings_of_spellings_are_found() {
    let payload = format!("x-access-token:{VALUE}");
    let known = known(VALUE, &[&payload]);
    let once = {
        let mut all = every_spelling();
        all.push(percent(VALUE.as_bytes()).to_ascii_lowercase_escapes());
        all.push(json(VALUE.as_bytes()).iter().flat_map(|b| slashed(*b)).collect());
        all.push(STANDARD.encode(&payload).into_bytes());
        all.push(URL_SAFE_NO_PAD.encode(&payload).into_bytes());
        all
    };
    for inner in once {
        let text = std::str::from_utf8(&inner).unwrap();
        let mut outer = vec![
            percent(text.as_bytes()),
            percent(text.as_bytes()).to_ascii_lowercase_escapes(),
            json(text.as_bytes()),
        ];
        for before in ["", "a", "ab", "Basic ", "{\"a\": \""] {
            outer.push(STANDARD.encode(format!("{before}{text}\"}}")).into_bytes());
            outer.push(URL_SAFE_NO_PAD.encode(format!("{before}{text}")).into_bytes());
        }
        for twice in outer {
            let page = [b"<p>", twice.as_slice(), b"</p>"].concat();
            let (out, found) = masked(&known, &[&page]);
            let shown = String::from_utf8_lossy(&twice).into_owned();
            assert!(found, "{text} as {shown}");
            assert_eq!(out.len(), page.len());
            // What is left of it does not give the value away.
            let left: usize = out.split(|b| *b == b'*').map(<[u8]>::len).max().unwrap();
            assert!(left < twice.len() / 2, "{text} as {shown}: {}", String::from_utf8_lossy(&out));
            let pieces: Vec<&[u8]> = page.chunks(7).collect();
            assert_eq!(masked(&known, &pieces).0, out, "{text} as {shown}");
        }
    }
}

fn slashed(b: u8) -> Vec<u8> {
    if b == b'/' { b"\\/".to_vec() } else { vec![b] }
}

/// Long values cost what they must and no more: one layer, and short beginnings in the automaton.
#[test]
fn long_values_are_looked_for_in_bounded_memory() {
    let long: String = (b'a'..=b'z').map(char::from).cycle().step_by(7).take(64 * 1024).collect();
    let known = known(&long, &[]);
    let patterns = known.patterns(Instant::now());
    assert!(patterns.spellings.iter().map(|s| s.len()).sum::<usize>() < 32 * long.len());
    assert!(patterns.search.as_ref().unwrap().memory_usage() < 1 << 20);
    let (out, found) = masked(&known, &[b"x", &long.as_bytes()[..1000], &long.as_bytes()[1000..]]);
    assert!(found);
    assert_eq!(out, format!("x{}", "*".repeat(long.len())).into_bytes());
    // One letter before its end it is something else, and all of it comes out.
    let other = [&long.as_bytes()[..long.len() - 1], b"!"].concat();
    let pieces: Vec<&[u8]> = other.chunks(999).collect();
    assert_eq!(masked(&known, &pieces), (other.clone(), false));
}

#[test]
fn other_text_is_handed_on_untouched() {
    let known = known(VALUE, &[]);
    let piece = Bytes::from_static(b"nothing to see in here, s3cr3t santa");
    let mut masker = Masker::new(known.patterns(Instant::now()));
    let passed = masker.pass(piece.clone());
    assert_eq!(passed.as_ptr(), piece.as_ptr(), "not even copied");
}

#[test]
fn values_are_looked_for_as_long_as_they_were_used_lately() {
    let known = Known::new(std::iter::empty());
    let start = Instant::now();
    known.used(&id(), VALUE, &[], start);
    known.used(&id(), "rotated-to-this-value", &[], start + Duration::from_secs(60));
    let finds = |text: &str, at| !known.patterns(at).find(text.as_bytes()).is_empty();
    assert!(finds(VALUE, start + Duration::from_secs(100)));
    assert!(finds("rotated-to-this-value", start + Duration::from_secs(100)));
    let later = start + KEPT + Duration::from_secs(1);
    assert!(!finds(VALUE, later));
    assert!(finds("rotated-to-this-value", later));
}

#[test]
fn only_so_many_values_are_kept() {
    let known = Known::new(std::iter::empty());
    let start = Instant::now();
    for n in 0..u32::try_from(MOST).unwrap() + 10 {
        known.used(
            &id(),
            &format!("value-number-{n:04}"),
            &[],
            start + Duration::from_millis(n.into()),
        );
    }
    let patterns = known.patterns(start);
    assert!(patterns.find(b"value-number-0000").is_empty());
    assert!(!patterns.find(b"value-number-0073").is_empty());
}

#[test]
fn a_short_value_is_masked_where_a_header_is_nothing_else() {
    let known = known("abc123", &[]);
    let mut headers = HeaderMap::new();
    headers.insert("x-echo", HeaderValue::from_static("Bearer abc123"));
    headers.insert("x-other", HeaderValue::from_static("abc1234"));
    let found = known.patterns(Instant::now()).mask_headers(&mut headers);
    assert_eq!(found, [id()]);
    assert_eq!(headers["x-echo"], "Bearer ******");
    assert_eq!(headers["x-other"], "abc1234");
    assert_eq!(masked(&known, &[b"abc123"]).0, b"abc123");
}

#[test]
fn placeholders_are_found_and_never_masked_in_answers() {
    let fake = "ghp_agentboxABCDEFGHIJKLMNOPQRSTUVWX".to_owned();
    let known = Known::new([(id(), fake.clone())].into_iter());
    let patterns = known.patterns(Instant::now());
    let basic = STANDARD_NO_PAD.encode(format!("x-access-token:{fake}"));
    for text in [fake.clone(), format!("Basic {basic}"), format!("?t={fake}")] {
        assert_eq!(patterns.misplaced(text.as_bytes(), &[]), Some(Found::Placeholder(id())));
        assert_eq!(patterns.misplaced(text.as_bytes(), &[id()]), None);
    }
    assert_eq!(masked(&known, &[fake.as_bytes()]), (fake.into_bytes(), false));
}

proptest! {
    /// However a body is cut, no spelling gets through, and everything else does.
    #[test]
    fn no_cut_lets_a_value_through(
        before in "[a-z s3]{0,20}",
        between in "[a-z s3]{0,20}",
        cuts in proptest::collection::vec(1usize..12, 1..40),
    ) {
        let known = known(VALUE, &[]);
        let text = format!("{before}{VALUE}{between}{VALUE}{VALUE}!");
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        let (out, _) = masked(&known, &pieces);
        let stars = "*".repeat(VALUE.len());
        prop_assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("{before}{stars}{between}{stars}{stars}!")
        );
    }
}
