//! Whether there is a newer AgentBox, as its release feed says. Nothing is downloaded and nothing run.

use protocol::text::plain;
use serde::{Deserialize, Serialize};

/// A feed is a few lines.
const MOST: usize = 64 * 1024;
const LONGEST_NOTES: usize = 4000;

/// The newest release there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    pub version: String,
    #[serde(default)]
    pub notes: String,
    /// The page people get it from.
    pub url: String,
    /// Of what lies there, for who downloads it.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// Asks the feed; what it says is checked, because it is shown and may be opened.
pub async fn latest(feed: &str) -> Result<Release, String> {
    read(&relay::fetch_json(feed).await?)
}

fn read(bytes: &[u8]) -> Result<Release, String> {
    if bytes.len() > MOST {
        return Err("the feed is larger than 64 KB".to_owned());
    }
    let told: Release = serde_json::from_slice(bytes)
        .map_err(|e| format!("the feed is no {{version, notes, url, sha256}}: {e}"))?;
    if number(&told.version).is_none() {
        return Err(format!("the feed's version {:?} is none", plain(&told.version)));
    }
    if !told.url.starts_with("https://") || told.url.len() > 500 || !is_address(&told.url) {
        return Err("the feed's url is no https address".to_owned());
    }
    let is_sum = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if told.sha256.as_ref().is_some_and(|sum| !is_sum(sum)) {
        return Err("the feed's sha256 is none".to_owned());
    }
    let notes: String = told.notes.chars().take(LONGEST_NOTES).collect();
    Ok(Release { notes, ..told })
}

/// Nothing a program that opens addresses could take for something else.
fn is_address(url: &str) -> bool {
    url.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'@'))
}

/// Whether one version is newer than another. What is no version is never newer.
pub fn is_newer(one: &str, than: &str) -> bool {
    match (number(one), number(than)) {
        (Some(one), Some(than)) => one > than,
        _ => false,
    }
}

/// `1.2.3` or `1.2.3-beta.1`; the one before a release is less than it.
fn number(text: &str) -> Option<([u32; 3], bool, Vec<Part>)> {
    if text.len() > 64 {
        return None;
    }
    let (text, before) = match text.split_once('-') {
        Some((text, before)) => (text, Some(before)),
        None => (text, None),
    };
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    let three = [parts.next()??, parts.next()??, parts.next()??];
    let words = before.map(|text| text.split('.').map(Part::of).collect::<Option<Vec<_>>>());
    let words = match words {
        Some(words) => Some(words?),
        None => None,
    };
    parts.next().is_none().then(|| (three, words.is_none(), words.unwrap_or_default()))
}

/// Numbers are less than words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u32),
    Word(String),
}

impl Part {
    fn of(text: &str) -> Option<Self> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if text.is_empty() || !text.bytes().all(fits) {
            return None;
        }
        Some(text.parse().map_or_else(|_| Part::Word(text.to_owned()), Part::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let all =
            ["0.9.9", "1.0.0-alpha", "1.0.0-beta.2", "1.0.0-beta.10", "1.0.0", "1.0.1", "1.10.0"];
        for pair in all.windows(2) {
            assert!(is_newer(pair[1], pair[0]) && !is_newer(pair[0], pair[1]), "{pair:?}");
        }
        for bad in ["", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.x", "1.0.0-", "1.0.0-a b"] {
            assert!(!is_newer(bad, "0.0.1"), "{bad}");
        }
    }

    #[test]
    fn a_feed_that_is_none_is_refused() {
        let good = r#"{"version":"9.0.0","notes":"n","url":"https://example.org/9"}"#;
        assert_eq!(read(good.as_bytes()).unwrap().version, "9.0.0");
        for bad in [
            "[]",
            "<html>",
            r#"{"version":"9.0.0"}"#,
            r#"{"version":"new","url":"https://example.org"}"#,
            r#"{"version":"9.0.0","url":"javascript:alert(1)"}"#,
            r#"{"version":"9.0.0","url":"https://example.org/$(id) x"}"#,
            r#"{"version":"9.0.0","url":"http://example.org"}"#,
            r#"{"version":"9.0.0","url":"https://example.org","sha256":"zz"}"#,
        ] {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(read(&vec![b' '; MOST + 1]).is_err());
    }
}
