//! Certificates in text files, as far as a box needs to know them: which are ours.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// In the name of every authority of ours, and of nobody else's.
const OURS: &[u8] = b"AgentBox Egress CA";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    pub der: Vec<u8>,
}

impl Certificate {
    /// Made by this or another host of AgentBox.
    pub fn is_ours(&self) -> bool {
        self.der.windows(OURS.len()).any(|part| part == OURS)
    }

    /// The first eight hex digits of its fingerprint.
    pub fn mark(&self) -> String {
        Sha256::digest(&self.der)[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.der);
        let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line));
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        format!("{BEGIN}\n{lines}{END}\n")
    }
}

/// All that can be read; what cannot is left out.
pub fn all(text: &str) -> Vec<Certificate> {
    parts(text).filter_map(|(_, certificate)| certificate).collect()
}

/// The text without certificates of ours that are not `wanted`, and with those that are. None when it is
/// so already.
pub fn with(text: &str, wanted: &[Certificate]) -> Option<String> {
    let mut kept = String::new();
    let mut there: Vec<Certificate> = Vec::new();
    for (part, certificate) in parts(text) {
        match certificate {
            Some(one) if one.is_ours() && (!wanted.contains(&one) || there.contains(&one)) => {}
            Some(one) => {
                kept.push_str(part);
                there.push(one);
            }
            None => kept.push_str(part),
        }
    }
    let missing = wanted.iter().filter(|one| !there.contains(one));
    let more: String = missing.map(Certificate::pem).collect();
    if !more.is_empty() && !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    kept.push_str(&more);
    (kept != text).then_some(kept)
}

/// The text in pieces: each certificate with its line's end, and what lies between.
fn parts(text: &str) -> impl Iterator<Item = (&str, Option<Certificate>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find(BEGIN).unwrap_or(rest.len());
        if at > 0 {
            let (before, after) = rest.split_at(at);
            rest = after;
            return Some((before, None));
        }
        let end = rest.find(END).map_or(rest.len(), |end| end + END.len());
        let end = if rest[end..].starts_with('\n') { end + 1 } else { end };
        let (block, after) = rest.split_at(end);
        rest = after;
        Some((block, decoded(block)))
    })
}

fn decoded(block: &str) -> Option<Certificate> {
    let inner = block.trim_end().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let text: String = inner.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(text).ok().map(|der| Certificate { der })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(text: &str) -> Certificate {
        Certificate { der: text.as_bytes().to_vec() }
    }

    fn ours(number: u8) -> Certificate {
        certificate(&format!("30 AgentBox Egress CA 0000000{number} {}", "x".repeat(100)))
    }

    #[test]
    fn a_bundle_gets_ours_once_and_loses_what_has_retired() {
        let other = certificate("somebody else's");
        let bundle = format!("# a comment\n{}", other.pem());
        let with_one = with(&bundle, &[ours(1)]).unwrap();
        assert_eq!(all(&with_one), [other.clone(), ours(1)]);
        assert_eq!(with(&with_one, &[ours(1)]), None);
        // While one replaces the other, both are trusted.
        let both = with(&with_one, &[ours(2), ours(1)]).unwrap();
        assert_eq!(all(&both), [other.clone(), ours(1), ours(2)]);
        let next = with(&both, &[ours(2)]).unwrap();
        assert_eq!(all(&next), [other.clone(), ours(2)]);
        assert_eq!(with(&next, &[]).unwrap(), bundle);
        assert_eq!(with(&bundle, &[]), None);
        let twice = format!("{next}{}", ours(2).pem());
        assert_eq!(all(&with(&twice, &[ours(2)]).unwrap()), [other, ours(2)]);
    }

    #[test]
    fn text_that_is_no_certificate_stays_as_it_is() {
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"] {
            assert_eq!(with(text, &[]), None, "{text}");
            let more = with(text, &[ours(1)]).unwrap();
            assert!(more.starts_with(text) && all(&more) == [ours(1)], "{more}");
        }
        assert!(all("-----BEGIN CERTIFICATE-----\nAAAA").is_empty());
    }

    #[test]
    fn a_certificate_reads_back_as_it_was_written() {
        assert_eq!(all(&ours(1).pem()), [ours(1)]);
        assert_eq!(ours(1).mark().len(), 8);
        assert_ne!(ours(1).mark(), ours(2).mark());
        assert!(ours(1).is_ours() && !certificate("x").is_ours());
    }
}
