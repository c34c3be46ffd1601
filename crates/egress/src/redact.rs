//! Credentials that were put into requests, looked for in whatever goes to and comes from a box.
//!
//! A server may send back what it was given, in a header, in an error page, in another spelling; the box
//! could then send it on. What was used in the last quarter of an hour is looked for in all spellings that
//! are cheap to look for, and in those once more in base64, in a link or in JSON. This is no boundary:
//! spellings that are not here pass. The boundary is that a credential goes to its own server only.

mod stream;

pub(crate) use stream::{Found, Masker};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::header::{HeaderMap, HeaderValue};
use protocol::SecretId;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How long a value is looked for after it was last used.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// Shorter spellings would be found in ordinary text.
const LEAST: usize = 8;
/// Values of one box.
const MOST: usize = 64;
/// What of a spelling is in the automaton; the rest is compared where that was found. So a long value
/// costs its own length and not a state for every byte.
const BEGINNING: usize = 32;
/// Longer values, which hardly any header holds, are looked for in one layer of spelling.
const TWICE: usize = 4096;

/// What one box's credentials look like.
pub(crate) struct Known {
    state: Mutex<State>,
}

struct State {
    used: Vec<Used>,
    fakes: Vec<(SecretId, Vec<Spelling>)>,
    patterns: Arc<Patterns>,
}

type Spelling = Zeroizing<Vec<u8>>;

struct Used {
    secret: SecretId,
    value: Zeroizing<String>,
    /// What was put into headers, as far as it is not the value itself.
    payloads: Vec<Zeroizing<String>>,
    spellings: Vec<Spelling>,
    until: Instant,
}

/// What a pattern belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A credential itself, which no box should hold.
    Secret(SecretId),
    /// What a box holds in its place.
    Placeholder(SecretId),
}

/// A set of spellings at one moment.
#[derive(Default)]
pub(crate) struct Patterns {
    /// For the beginnings of the spellings.
    search: Option<AhoCorasick>,
    /// In the order of their bytes.
    spellings: Vec<Spelling>,
    kinds: Vec<Kind>,
    longest: usize,
    /// Values too short to be looked for: a header that is nothing else is masked.
    short: Vec<(SecretId, Zeroizing<String>)>,
}

impl Known {
    pub fn new(placeholders: impl Iterator<Item = (SecretId, String)>) -> Self {
        let fakes: Vec<_> =
            placeholders.map(|(secret, value)| (secret, spellings(&value, &[]))).collect();
        let mut state = State { used: Vec::new(), fakes, patterns: Arc::default() };
        state.rebuild();
        Self { state: Mutex::new(state) }
    }

    /// What the box holds in place of credentials is this from now on.
    pub fn hold(&self, placeholders: impl Iterator<Item = (SecretId, String)>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fakes =
            placeholders.map(|(secret, value)| (secret, spellings(&value, &[]))).collect();
        state.rebuild();
    }

    /// A value was put into a request, in these words.
    pub fn used(&self, secret: &SecretId, value: &str, payloads: &[&str], now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(now);
        let until = now + KEPT;
        let same = |used: &&mut Used| used.secret == *secret && *used.value == value;
        if let Some(used) = state.used.iter_mut().find(same) {
            used.until = until;
            let is_new = |text: &&&str| !used.payloads.iter().any(|known| **known == ***text);
            let new: Vec<&str> = payloads.iter().filter(is_new).copied().collect();
            if new.is_empty() {
                return;
            }
            used.payloads.extend(new.into_iter().map(owned));
            let all: Vec<&str> = used.payloads.iter().map(|text| text.as_str()).collect();
            used.spellings = spellings(value, &all);
        } else {
            if state.used.len() >= MOST {
                let oldest = state.used.iter().enumerate().min_by_key(|(_, used)| used.until);
                let oldest = oldest.map(|(at, _)| at);
                oldest.map(|at| state.used.swap_remove(at));
            }
            state.used.push(Used {
                secret: secret.clone(),
                value: owned(value),
                payloads: payloads.iter().map(|text| owned(text)).collect(),
                spellings: spellings(value, payloads),
                until,
            });
        }
        state.rebuild();
    }

    pub fn patterns(&self, now: Instant) -> Arc<Patterns> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.forget(now) {
            state.rebuild();
        }
        state.patterns.clone()
    }

    /// A text for people, without credentials.
    pub fn mask_text(&self, text: &str) -> String {
        let patterns = self.patterns(Instant::now());
        let mut bytes = text.as_bytes().to_vec();
        if patterns.mask(&mut bytes).is_empty() {
            return text.to_owned();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl State {
    fn forget(&mut self, now: Instant) -> bool {
        let before = self.used.len();
        self.used.retain(|used| used.until > now);
        before != self.used.len()
    }

    fn rebuild(&mut self) {
        let mut patterns = Patterns::default();
        let secrets = self.used.iter().flat_map(|used| {
            used.spellings.iter().map(|s| (Kind::Secret(used.secret.clone()), s.clone()))
        });
        let fakes = self.fakes.iter().flat_map(|(secret, all)| {
            all.iter().map(|s| (Kind::Placeholder(secret.clone()), s.clone()))
        });
        let mut all: Vec<_> = secrets.chain(fakes).collect();
        all.sort_by(|(_, a), (_, b)| a.cmp(b));
        (patterns.kinds, patterns.spellings) = all.into_iter().unzip();
        patterns.longest = patterns.spellings.iter().map(|s| s.len()).max().unwrap_or(0);
        let short = self.used.iter().filter(|used| used.value.len() < LEAST);
        patterns.short = short.map(|u| (u.secret.clone(), u.value.clone())).collect();
        if !patterns.spellings.is_empty() {
            let built = AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(patterns.spellings.iter().map(|s| &s[..s.len().min(BEGINNING)]));
            match built {
                Ok(search) => patterns.search = Some(search),
                Err(e) => tracing::error!("egress: credentials cannot be looked for: {e}"),
            }
        }
        self.patterns = Arc::new(patterns);
    }
}

impl Patterns {
    pub fn is_empty(&self) -> bool {
        self.search.is_none() && self.short.is_empty()
    }

    /// Where spellings begin in it, and which.
    fn begun(&self, bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
        let hits = self.search.iter().flat_map(move |search| search.find_overlapping_iter(bytes));
        hits.map(|hit| (hit.start(), hit.pattern().as_usize()))
    }

    /// Where spellings are in it, and whose.
    fn places<'a>(&'a self, bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, &'a Kind)> {
        self.begun(bytes).filter_map(move |(start, which)| {
            let spelling = &self.spellings[which];
            let all = bytes[start..].starts_with(spelling);
            all.then(|| (start..start + spelling.len(), &self.kinds[which]))
        })
    }

    /// Whose spellings are in it, each once.
    pub fn find(&self, bytes: &[u8]) -> Vec<&Kind> {
        let mut found: Vec<&Kind> = Vec::new();
        for (_, kind) in self.places(bytes) {
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        found
    }

    /// Overwrites credentials and says whose there were.
    fn mask(&self, bytes: &mut [u8]) -> Vec<SecretId> {
        let mut places = Vec::new();
        let mut found = Vec::new();
        for (place, kind) in self.places(bytes) {
            if let Kind::Secret(id) = kind {
                found.push(id.clone());
                places.push(place);
            }
        }
        for place in places {
            bytes[place].fill(b'*');
        }
        found.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        found.dedup();
        found
    }

    /// Overwrites credentials in the headers of an answer. Whose there were.
    pub fn mask_headers(&self, headers: &mut HeaderMap) -> Vec<SecretId> {
        let mut all = Vec::new();
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            let mut found = self.mask(&mut bytes);
            for (id, short) in &self.short {
                let is_it = |word: &[u8]| word == short.as_bytes();
                if is_it(&bytes) || bytes.split(|b| *b == b' ').next_back().is_some_and(is_it) {
                    let from = bytes.len() - short.len();
                    bytes[from..].fill(b'*');
                    found.push(id.clone());
                }
            }
            if !found.is_empty() {
                all.append(&mut found);
                *value = HeaderValue::from_bytes(&bytes)
                    .unwrap_or_else(|_| HeaderValue::from_static("***"));
            }
        }
        all.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        all.dedup();
        all
    }

    /// How many bytes at the end could be the beginning of a spelling.
    pub fn unfinished(&self, bytes: &[u8]) -> usize {
        let end = &bytes[bytes.len() - bytes.len().min(self.longest.saturating_sub(1))..];
        let long = self.begun(end).filter_map(|(start, which)| {
            let (rest, spelling) = (&end[start..], &self.spellings[which]);
            (spelling.len() > rest.len() && spelling.starts_with(rest)).then_some(rest.len())
        });
        let long = long.max().unwrap_or(0);
        // A beginning of the beginning; the spellings are sorted, so those with it stand together.
        let begins = |tail: &[u8]| {
            let from = self.spellings.partition_point(|spelling| spelling.as_slice() < tail);
            let with = self.spellings[from..].iter().take_while(|s| s.starts_with(tail));
            with.into_iter().any(|spelling| spelling.len() > tail.len())
        };
        let most = end.len().min(BEGINNING);
        let short = (long + 1..=most).rev().find(|n| begins(&end[end.len() - n..]));
        short.unwrap_or(long)
    }
}

fn owned(text: &str) -> Zeroizing<String> {
    Zeroizing::new(text.to_owned())
}

/// Spellings that are long enough, each once.
#[derive(Default)]
struct Spellings(Vec<Spelling>);

impl Spellings {
    fn add(&mut self, bytes: Vec<u8>) {
        let spelling = Zeroizing::new(bytes);
        if spelling.len() >= LEAST && !self.0.contains(&spelling) {
            self.0.push(spelling);
        }
    }

    /// What base64 makes of it wherever in a text it stands.
    fn add_base64(&mut self, raw: &[u8]) {
        for shift in 0..3 {
            self.add(shifted(&STANDARD_NO_PAD, raw, shift));
            self.add(shifted(&URL_SAFE_NO_PAD, raw, shift));
        }
    }

    fn add_escaped(&mut self, raw: &[u8]) {
        self.add(percent(raw));
        self.add(percent(raw).to_ascii_lowercase_escapes());
        self.add(json(raw));
        self.add(
            json(raw)
                .iter()
                .flat_map(|b| if *b == b'/' { b"\\/".to_vec() } else { vec![*b] })
                .collect(),
        );
    }
}

/// All spellings of a value. Payloads are what was put into a header, as far as it is not the value itself.
fn spellings(value: &str, payloads: &[&str]) -> Vec<Spelling> {
    let mut all = Spellings::default();
    let raw = value.as_bytes();
    all.add(raw.to_vec());
    if value.len() >= LEAST {
        all.add_base64(raw);
        all.add_escaped(raw);
        all.add(raw.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect());
        all.add(raw.iter().flat_map(|b| format!("{b:02X}").into_bytes()).collect());
    }
    for payload in payloads {
        all.add(STANDARD_NO_PAD.encode(payload).into_bytes());
        all.add(URL_SAFE_NO_PAD.encode(payload).into_bytes());
    }
    if value.len() <= TWICE {
        for once in all.0.clone() {
            all.add_base64(&once);
            all.add_escaped(&once);
        }
    }
    all.0
}

/// What base64 makes of the value after so many other bytes, as far as neither those nor what follows can
/// change it.
fn shifted(engine: &impl Engine, raw: &[u8], shift: usize) -> Vec<u8> {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(raw);
    let encoded = engine.encode(&bytes).into_bytes();
    let from = [0, 2, 3][shift];
    let whole = bytes.len() * 8 / 6;
    encoded.get(from..whole).unwrap_or_default().to_vec()
}

fn percent(raw: &[u8]) -> Vec<u8> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let escape = |b: &u8| if plain(*b) { vec![*b] } else { format!("%{b:02X}").into_bytes() };
    raw.iter().flat_map(escape).collect()
}

trait LowerEscapes {
    fn to_ascii_lowercase_escapes(self) -> Vec<u8>;
}

impl LowerEscapes for Vec<u8> {
    /// `%2F` as `%2f`, letters elsewhere as they are.
    fn to_ascii_lowercase_escapes(mut self) -> Vec<u8> {
        let marks: Vec<usize> = (0..self.len()).filter(|at| self[*at] == b'%').collect();
        for at in marks {
            if let Some(digits) = self.get_mut(at + 1..at + 3) {
                digits.make_ascii_lowercase();
            }
        }
        self
    }
}

/// Between the quotation marks of a string. A credential that is no UTF-8 is in no JSON.
fn json(raw: &[u8]) -> Vec<u8> {
    let quoted = std::str::from_utf8(raw).ok().and_then(|text| serde_json::to_string(text).ok());
    let inner = quoted.as_deref().and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    inner.unwrap_or_default().as_bytes().to_vec()
}

#[cfg(test)]
mod tests;
