//! Lines of traffic: what is written down of a request, and what is not.
//!
//! A line is begun when something arrives and written once, when it is over: by whoever refuses it, or
//! when its answer has gone. It holds no header, no body, no query value but harmless ones, and no path
//! segment that could be a token; known credentials are masked in whatever text is left.

use crate::ports::{Log, Told};
use crate::redact::Known;
use crate::request::CanonicalRequest;
use protocol::BoxId;
use protocol::egress::{InjectionFault, Reason, RuleSeen, Traffic, TrafficAction, TrafficKind};
use protocol::text::visible;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::OwnedSemaphorePermit;

/// Refusals of a box that it can ask about.
const MOST_RECENT: usize = 64;
/// Values of these parameters say what is done and nothing else.
const SHOWN: [&str; 1] = ["service"];
const REDACTED: &str = "‹redacted›";
/// Of a path or a detail in a line.
const MOST_TEXT: usize = 1024;
const MOST_QUERY: usize = 32;

/// Where the lines of one box go.
pub(crate) struct Notebook {
    box_id: BoxId,
    log: Arc<dyn Log>,
    pub known: Arc<Known>,
    recent: Mutex<VecDeque<Traffic>>,
}

impl Notebook {
    pub fn new(box_id: BoxId, log: Arc<dyn Log>, known: Arc<Known>) -> Arc<Self> {
        Arc::new(Self { box_id, log, known, recent: Mutex::default() })
    }

    fn write(&self, mut line: Traffic) {
        for text in [&mut line.detail, &mut line.path, &mut line.host].into_iter().flatten() {
            *text = visible(&self.known.mask_text(text));
        }
        line.query.iter_mut().for_each(|text| *text = visible(&self.known.mask_text(text)));
        if line.action == TrafficAction::Blocked {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.push_back(line.clone());
            if recent.len() > MOST_RECENT {
                recent.pop_front();
            }
        }
        // A line is written while others are torn down; a fault here must not make two.
        if std::panic::catch_unwind(AssertUnwindSafe(|| self.log.note(line))).is_err() {
            tracing::error!("egress: a line of traffic of {} was lost", self.box_id);
        }
    }

    /// A refusal that is remembered: this one, or the last.
    pub fn refusal(&self, id: Option<&str>) -> Option<Traffic> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        match id {
            Some(id) => recent.iter().find(|line| line.id == id).cloned(),
            None => recent.back().cloned(),
        }
    }

    /// Something that decides nothing by itself.
    pub fn remark(
        &self,
        kind: TrafficKind,
        host: Option<&str>,
        reason: Option<Reason>,
        detail: String,
    ) {
        let mut line = blank(&self.box_id, kind);
        line.reason = reason;
        line.host = host.map(str::to_owned);
        line.detail = Some(detail);
        self.write(line);
    }
}

/// What went through, counted where it goes through.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub up: AtomicU64,
    pub down: AtomicU64,
}

/// A line that is not written yet; it is when it is dropped.
pub(crate) struct Line {
    notebook: Arc<Notebook>,
    traffic: Traffic,
    began: Instant,
    pub meter: Arc<Meter>,
    /// What the request takes up for as long as there is something to write about it.
    pub place: Option<OwnedSemaphorePermit>,
    written: bool,
}

impl Line {
    pub fn new(notebook: &Arc<Notebook>, kind: TrafficKind) -> Self {
        Self {
            notebook: notebook.clone(),
            traffic: blank(&notebook.box_id, kind),
            began: Instant::now(),
            meter: Arc::default(),
            place: None,
            written: false,
        }
    }

    pub fn id(&self) -> &str {
        &self.traffic.id
    }

    pub fn host(&mut self, scheme: &str, host: &str, port: u16) {
        self.traffic.scheme = Some(scheme.to_owned());
        self.traffic.host = Some(host.to_owned());
        self.traffic.port = Some(port);
    }

    pub fn method(&mut self, method: &str) {
        self.traffic.method = Some(visible(&cut(method, 32)));
    }

    pub fn request(&mut self, request: &CanonicalRequest) {
        self.host(request.scheme.as_str(), request.host.as_str(), request.port);
        self.method(&request.method);
        self.traffic.path = Some(shown_path(request.target.path()));
        self.traffic.query = shown_query(request.target.query().unwrap_or_default());
    }

    pub fn traffic(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    pub fn told(&mut self, told: Told) {
        let word = match told {
            Told::Once => "once",
            Told::ForBox => "box",
            Told::ForProject => "project",
            Told::Always => "always",
            Told::Rule => "rule",
        };
        self.traffic.approval = Some(word.to_owned());
    }

    /// It may pass. The line is written when all of it has.
    pub fn allowed(&mut self, reason: Reason, rule: Option<RuleSeen>) {
        self.traffic.action = TrafficAction::Allowed;
        self.traffic.reason = Some(reason);
        self.traffic.rule = rule;
    }

    /// Refused, for this.
    pub fn blocked(mut self, reason: Reason, detail: Option<&str>) -> Traffic {
        self.traffic.action = TrafficAction::Blocked;
        self.traffic.reason = Some(reason);
        self.traffic.status = Some(reason.status());
        self.traffic.detail = detail.map(|text| cut(text, MOST_TEXT));
        self.finish();
        self.traffic.clone()
    }

    /// Neither refused nor let through: it ended.
    pub fn noted(mut self, reason: Option<Reason>, detail: &str) {
        self.traffic.action = TrafficAction::Noted;
        self.traffic.reason = reason;
        self.traffic.detail = Some(cut(detail, MOST_TEXT));
        self.finish();
    }

    /// It led to lines of its own and needs none.
    pub fn not_needed(mut self) {
        self.written = true;
    }

    fn finish(&mut self) {
        if std::mem::replace(&mut self.written, true) {
            return;
        }
        if self.traffic.action == TrafficAction::Noted && self.traffic.detail.is_none() {
            self.traffic.detail = Some("it ended before anything was decided".to_owned());
        }
        self.traffic.bytes_up = self.meter.up.load(Ordering::Relaxed);
        self.traffic.bytes_down = self.meter.down.load(Ordering::Relaxed);
        self.traffic.ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.notebook.write(self.traffic.clone());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The word for a fault, as it stands in a line.
pub(crate) fn fault_word(fault: InjectionFault) -> &'static str {
    match fault {
        InjectionFault::ExistingHeaderPresent => "existing_header_present",
        InjectionFault::SecretResolverUnavailable => "secret_resolver_unavailable",
        InjectionFault::SecretResolutionFailed => "secret_resolution_failed",
        InjectionFault::TransformFailed => "transform_failed",
        InjectionFault::InsecureScheme => "insecure_scheme",
        InjectionFault::SecretHostBinding => "secret_host_binding",
        InjectionFault::Suspended => "suspended",
    }
}

fn blank(box_id: &BoxId, kind: TrafficKind) -> Traffic {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    Traffic {
        id: id(at),
        at,
        box_id: box_id.clone(),
        kind,
        action: TrafficAction::Noted,
        reason: None,
        detail: None,
        scheme: None,
        host: None,
        port: None,
        method: None,
        path: None,
        query: Vec::new(),
        rule: None,
        injected: Vec::new(),
        status: None,
        bytes_up: 0,
        bytes_down: 0,
        ms: 0,
        proto: None,
        remote: None,
        approval: None,
    }
}

/// An id for a line that is written elsewhere, in the same order.
pub fn new_line_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    id(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// 26 characters that sort by time: ten for the milliseconds, sixteen that count up from a random start.
fn id(at: u64) -> String {
    static LAST: Mutex<(u64, u128)> = Mutex::new((0, 0));
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let (at, low) = {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock may be set back; ids go on.
        *last = if at > last.0 { (at, random()) } else { (last.0, last.1.wrapping_add(1)) };
        *last
    };
    let all = u128::from(at) << 80 | low & ((1 << 80) - 1);
    (0..26)
        .rev()
        .map(|place| char::from(DIGITS[usize::try_from(all >> (place * 5) & 31).unwrap_or(0)]))
        .collect()
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    // Without randomness ids still differ: they count.
    let _ = getrandom::fill(&mut bytes);
    // Room to count within the eighty bits.
    u128::from_le_bytes(bytes) >> 49
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn shown_path(path: &str) -> String {
    let shown: Vec<&str> = path
        .split('/')
        .map(|segment| if looks_like_token(segment) { REDACTED } else { segment })
        .collect();
    cut(&shown.join("/"), MOST_TEXT)
}

/// Names, and values of those that are harmless.
fn shown_query(query: &str) -> Vec<String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let shown = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if SHOWN.contains(&name) && value.len() <= 64 && !looks_like_token(value) {
            return format!("{name}={value}");
        }
        if looks_like_token(name) { REDACTED.to_owned() } else { cut(name, 64) }
    });
    shown.take(MOST_QUERY).collect()
}

/// What services hand out looks like this; so do long hashes, and they are no loss.
fn looks_like_token(segment: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "sk-",
        "xoxb-",
        "xoxp-",
        "lin_api_",
        "ntn_",
        "AKIA",
        "eyJ",
    ];
    if segment.len() >= 12 && PREFIXES.iter().any(|prefix| segment.starts_with(prefix)) {
        return true;
    }
    // A name is made of words; a token of letters and digits that say nothing. Long parts between the
    // marks that words are joined with are looked at.
    let parts = segment.split(|c: char| !c.is_ascii_alphanumeric());
    let random = |part: &str| part.len() >= 20 && entropy(part) >= 3.0 && is_mixed(part);
    segment.len() >= 20 && (parts.into_iter().any(random) || is_uuid(segment))
}

fn is_mixed(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let upper = part.bytes().filter(u8::is_ascii_uppercase).count();
    let changes = part.as_bytes().windows(2).filter(|two| case(two[0]) != case(two[1])).count();
    // Words in a row have a capital each; a token changes more often than words end.
    digits >= 3 || (upper >= 3 && changes > part.len() / 3)
}

fn case(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    }
}

fn is_uuid(segment: &str) -> bool {
    let groups: Vec<usize> = segment.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && segment.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// Bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|b| counts[usize::from(b)] += 1);
    #[allow(clippy::cast_precision_loss)]
    let all = text.len() as f64;
    let share = |count: &u32| f64::from(*count) / all;
    -counts.iter().filter(|c| **c > 0).map(share).map(|p| p * p.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_could_be_tokens_are_not_written_down() {
        for token in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-ant-REDACTED",
            "XXk3jf8Sl29dkfjalsdkfA81",
            "d6a1f0b8c3e94756a1b2c3d4e5f60718",
            "aGVsbG8gd29ybGQgaG93IGFyZSB5b3U",
            "eyJhbGciOiJIUzI1NiJ9",
            "123e4567-e89b-12d3-a456-426614174000",
            "pre_d6a1f0b8c3e94756a1b2c3d4e5f60718",
        ] {
            assert!(looks_like_token(token), "{token}");
            assert_eq!(shown_path(&format!("/a/{token}/b")), "/a/‹redacted›/b");
        }
    }

    #[test]
    fn names_stay() {
        for name in [
            "",
            "v1",
            "widget.git",
            "git-receive-pack",
            "a-rather-long-name-of-a-repository",
            "internationalizationandlocalization",
            "get_the_list_of_all_issues_2024",
            "react-dom-18.2.0.tgz",
            "ContentManagementServiceController",
        ] {
            assert!(!looks_like_token(name), "{name}");
        }
    }

    #[test]
    fn of_queries_names_are_kept_and_harmless_values() {
        let shown = shown_query("service=git-upload-pack&token=abc&flag&q=1");
        assert_eq!(shown, ["service=git-upload-pack", "token", "flag", "q"]);
        assert_eq!(shown_query("service=ghp_16C7e42F292c6912E7710c838347Ae178B4a"), ["service"]);
        assert_eq!(shown_query(&"a=1&".repeat(1000)).len(), MOST_QUERY);
    }

    #[test]
    fn ids_sort_by_time_and_are_unique() {
        let mut all: Vec<String> = (0..2000).map(|n| id(1_700_000_000_000 + n / 10)).collect();
        assert!(all.iter().all(|id| id.len() == 26));
        assert!(all.is_sorted());
        all.dedup();
        assert_eq!(all.len(), 2000);
    }
}
