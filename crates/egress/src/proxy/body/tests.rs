use super::*;
use crate::redact::Known;
use proptest::prelude::*;
use std::time::Instant;

const VALUE: &str = "ghp_RealValueOfTheUserThatNoBoxShouldSee";

fn patterns() -> Arc<Patterns> {
    let known = Known::new(std::iter::empty());
    known.used(&"ex.token".parse().unwrap(), VALUE, &[], Instant::now());
    known.patterns(Instant::now())
}

/// What passes of a body that comes in pieces of this size, and whether it was broken off.
fn scanned(body: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let mut scan = Scan::new(patterns(), Vec::new());
    let mut out = Vec::new();
    for piece in body.chunks(piece) {
        match scan.pass(Bytes::copy_from_slice(piece)) {
            Ok(passed) => out.extend_from_slice(&passed),
            Err(_) => return (out, true),
        }
    }
    out.extend_from_slice(&scan.finish());
    (out, false)
}

/// A body with the value so that it ends there.
fn ending_at(end: usize) -> Vec<u8> {
    let mut body = vec![b'.'; end - VALUE.len()];
    body.extend_from_slice(VALUE.as_bytes());
    body.resize(LOOKED_AT + 4096, b'.');
    body
}

#[test]
fn the_first_mebibyte_is_looked_through_to_its_last_byte_and_no_further() {
    assert_eq!(LOOKED_AT, 1_048_576);
    for piece in [7, 4096, 5000, 65_536, LOOKED_AT - 1, LOOKED_AT, LOOKED_AT + 1, usize::MAX] {
        let piece = piece.min(LOOKED_AT + 4096);
        for end in [VALUE.len(), 8192 + 7, LOOKED_AT - 1, LOOKED_AT] {
            assert!(scanned(&ending_at(end), piece).1, "ends at {end}, pieces of {piece}");
        }
        // Its last byte is beyond: it is not in what is looked through, and goes as it is.
        for end in [LOOKED_AT + 1, LOOKED_AT + VALUE.len() - 1, LOOKED_AT + VALUE.len() + 100] {
            let body = ending_at(end);
            let (out, broken) = scanned(&body, piece);
            assert!(!broken, "ends at {end}, pieces of {piece}");
            assert!(out == body, "ends at {end}, pieces of {piece}: {} bytes", out.len());
        }
    }
}

/// The first bytes have gone when it turns out what they began: they are not let go twice.
#[test]
fn a_value_in_pieces_of_any_size_is_found() {
    for size in 1..VALUE.len() + 3 {
        let (out, broken) = scanned(format!("ab {VALUE}").as_bytes(), size);
        assert!(broken && out.len() < 3 + CERTAIN, "pieces of {size}: {}", out.len());
        let begun = format!("ab {} and no more", &VALUE[..20]);
        assert_eq!(scanned(begun.as_bytes(), size), (begun.clone().into_bytes(), false));
    }
}

#[test]
fn nothing_is_held_back_beyond_what_is_looked_through() {
    let mut scan = Scan::new(patterns(), Vec::new());
    let body = vec![b'.'; LOOKED_AT];
    assert_eq!(scan.pass(body.into()).unwrap().len(), LOOKED_AT);
    let piece = Bytes::from_static(b"ends like one: ghp_RealValueOfTheUser");
    let passed = scan.pass(piece.clone()).unwrap();
    assert_eq!(passed.as_ptr(), piece.as_ptr(), "not even copied");
    assert_eq!(scan.waiting(), 0);
}

proptest! {
    /// However a body is cut, the value is found, and not much of it has gone before.
    #[test]
    fn no_cut_hides_a_value(
        before in "[a-z gh_p]{0,30}",
        cuts in proptest::collection::vec(1usize..12, 1..40),
    ) {
        let body = format!("{before}{VALUE}tail");
        let mut scan = Scan::new(patterns(), Vec::new());
        let (mut rest, mut out, mut found) = (body.as_bytes(), Vec::new(), false);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() || found { break; }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            match scan.pass(Bytes::copy_from_slice(piece)) {
                Ok(passed) => out.extend_from_slice(&passed),
                Err(_) => found = true,
            }
            rest = left;
        }
        prop_assert!(found);
        prop_assert!(out.len() < before.len() + CERTAIN);
        prop_assert!(body.as_bytes().starts_with(&out));
    }
}
