//! Whether there is a newer AgentBox, as its release feed says. Nothing is downloaded and nothing run.

use crate::doctor::{check, ok};
use protocol::control::{Check, Level};
use protocol::text::{plain, visible};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const CURRENT: &str = env!("CARGO_PKG_VERSION");
/// A check-up does not wait longer for a feed.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// The check-up's row about it. A feed that does not answer is to know; nothing stops working.
pub(crate) async fn row(feed: &str) -> Check {
    row_of(within(PATIENCE, feed).await, CURRENT)
}

async fn within(patience: Duration, feed: &str) -> Result<Release, String> {
    let slow = |_| format!("the feed did not answer within {patience:?}");
    tokio::time::timeout(patience, latest(feed)).await.map_err(slow)?
}

fn row_of(told: Result<Release, String>, current: &str) -> Check {
    let info = |detail: &str, hint: &str| check("host", "updates", Level::Info, detail, Some(hint));
    match told {
        Ok(release) if is_newer(&release.version, current) => info(
            &format!("AgentBox {} is there; this is {current}", release.version),
            &format!("get it from `{}`", release.url),
        ),
        Ok(_) => ok("host", "updates", format!("{current} is the newest")),
        Err(why) => {
            let hint = "update.feed in the settings is the address that is asked";
            info(&format!("not known: {}", visible(&why)), hint)
        }
    }
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

    fn release(version: &str) -> Release {
        let url = "https://example.org/9".to_owned();
        Release { version: version.to_owned(), notes: String::new(), url, sha256: None }
    }

    #[test]
    fn a_check_up_says_which_version_there_is_and_where() {
        let newer = row_of(Ok(release("9.0.0")), "0.1.0");
        assert_eq!(newer.level, Level::Info);
        assert_eq!(newer.detail, "AgentBox 9.0.0 is there; this is 0.1.0");
        assert_eq!(newer.hint.as_deref(), Some("get it from `https://example.org/9`"));
        for known in ["0.1.0", "0.0.9"] {
            let newest = row_of(Ok(release(known)), "0.1.0");
            assert_eq!((newest.level, &*newest.detail), (Level::Ok, "0.1.0 is the newest"));
        }
        let silent = row_of(Err("no\u{1b}[31m".into()), "0.1.0");
        assert_eq!(silent.level, Level::Info);
        assert!(silent.detail.starts_with("not known: no"), "{}", silent.detail);
        assert!(!silent.detail.contains('\u{1b}'), "{}", silent.detail);
    }

    #[tokio::test]
    async fn a_feed_that_says_nothing_is_not_waited_for() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let feed = format!("http://{}/latest.json", silent.local_addr().unwrap());
        let told = within(Duration::from_millis(20), &feed).await;
        assert_eq!(told, Err("the feed did not answer within 20ms".to_owned()));
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
