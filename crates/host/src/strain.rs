//! Boxes that have used up what they may use, and disks that are nearly full: said before somebody
//! wonders why nothing works.

use crate::core::Core;
use crate::doctor::{check, ok};
use boxes::{Boxes, Record, Sample};
use futures_util::StreamExt;
use protocol::BoxId;
use protocol::boxes::BoxState;
use protocol::control::{Check, ControlError, ErrorCode, Level};
use protocol::looking::AtLimit;
use protocol::text::size;
use std::path::Path;
use std::time::{Duration, Instant};

/// Boxes that are measured at once.
const TOGETHER: usize = 8;
/// How long one box may take to be measured.
const PATIENCE: Duration = Duration::from_secs(4);
/// A disk with less than this left is as good as full: a box image is larger.
const LITTLE: u64 = 1_000_000_000;

/// What of its limits a box has reached: nineteen parts of twenty.
pub(crate) fn at_limit(of: &Sample) -> Vec<AtLimit> {
    let near = |used: Option<u64>, limit: Option<u64>| match (used, limit) {
        (Some(used), Some(limit)) if limit > 0 => {
            used.saturating_mul(20) >= limit.saturating_mul(19)
        }
        _ => false,
    };
    let memory = near(of.memory, of.memory_limit).then_some(AtLimit::Memory);
    let processes = near(of.pids, of.pids_limit).then_some(AtLimit::Processes);
    memory.into_iter().chain(processes).collect()
}

impl Core {
    /// The kernel has ended something in a box.
    pub(crate) fn out_of_memory(&self, id: &BoxId) {
        let noted = self.with_known(id, |known| {
            known.starved = true;
            (known.record.name.clone(), known.ending.out_of_memory(Instant::now()))
        });
        let Some((name, ended_it)) = noted else { return };
        tracing::warn!("{name} had used up its memory; something in it was ended");
        if ended_it {
            self.send_view(id);
        }
    }

    /// How the running boxes stand with their limits.
    pub(crate) async fn strained(&self) -> Vec<Check> {
        let running: Vec<(Record, bool)> = {
            let state = self.state();
            let up = state.boxes.values().filter(|known| known.state == BoxState::Running);
            up.map(|known| (known.record.clone(), known.starved)).collect()
        };
        let Some(boxes) = self.state().engine.clone().filter(|_| !running.is_empty()) else {
            return Vec::new();
        };
        let look = |(record, starved): (Record, bool)| {
            let boxes = boxes.clone();
            async move {
                let seen = tokio::time::timeout(PATIENCE, boxes.glance(&record)).await;
                let seen = seen.ok().and_then(Result::ok);
                let said = seen.map(|seen| words(&seen)).unwrap_or_default();
                row(record.name.as_str(), said, starved)
            }
        };
        let rows = futures_util::stream::iter(running.into_iter().map(look)).buffered(TOGETHER);
        let rows: Vec<Option<Check>> = rows.collect().await;
        let rows: Vec<Check> = rows.into_iter().flatten().collect();
        if rows.is_empty() {
            return vec![ok("boxes", "limits", "no box is at its limits".into())];
        }
        rows
    }
}

/// A box at its limit of processes is no place for another command.
pub(crate) async fn why_not_started(boxes: &Boxes, record: &Record) -> Option<ControlError> {
    let seen = tokio::time::timeout(PATIENCE, boxes.glance(record)).await.ok()?.ok()?;
    if !at_limit(&seen).contains(&AtLimit::Processes) {
        return None;
    }
    let (name, text) = (&record.name, words(&seen).join(", "));
    let text = format!("{name} is at its limit: {text}; no command can be started in it");
    let hint = format!("{}.", what_to_do(name.as_str()));
    Some(ControlError::new(ErrorCode::Failed, text).hint(hint))
}

fn what_to_do(name: &str) -> String {
    format!(
        "agentbox status {name} shows what runs in it, agentbox limits {name} allows it more, \
         agentbox stop {name} ends it"
    )
}

/// “processes (64 of 64)”.
fn words(of: &Sample) -> Vec<String> {
    let text = |limit| match limit {
        AtLimit::Memory => {
            let (used, most) = (of.memory.unwrap_or(0), of.memory_limit.unwrap_or(0));
            format!("memory ({} of {})", size(used), size(most))
        }
        AtLimit::Processes => {
            let (used, most) = (of.pids.unwrap_or(0), of.pids_limit.unwrap_or(0));
            format!("processes ({used} of {most})")
        }
    };
    at_limit(of).into_iter().map(text).collect()
}

fn row(name: &str, reached: Vec<String>, starved: bool) -> Option<Check> {
    let mut said = Vec::new();
    if !reached.is_empty() {
        said.push(format!("at its limit: {}", reached.join(", ")));
    }
    if starved {
        said.push("it had used up its memory and something in it was ended".to_owned());
    }
    let hint = what_to_do(name);
    (!said.is_empty()).then(|| check("boxes", name, Level::Warn, &said.join("; "), Some(&hint)))
}

/// How much room a folder's disk has.
pub(crate) fn disk(group: &str, at: &Path) -> Option<Check> {
    let seen = nix::sys::statvfs::statvfs(at).ok()?;
    Some(disk_row(group, &at.display().to_string(), seen.blocks_available() * seen.fragment_size()))
}

pub(crate) fn disk_row(group: &str, at: &str, free: u64) -> Check {
    let detail = format!("{} free at {at}", size(free));
    if free >= LITTLE {
        return ok(group, "disk", detail);
    }
    let hint = "make room: agentbox prune --all shows what nobody needs any more";
    check(group, "disk", Level::Warn, &detail, Some(hint))
}

/// What to do about a full disk of this computer. That of the engine has a hint already.
pub(crate) fn room_hint(error: ControlError) -> ControlError {
    // Memory of a box that is full is no disk.
    let known = error.message.contains("`agentbox-ctl go`")
        || error.hints.iter().any(|hint| hint.contains("make room"));
    if known || !boxes::room::is_full(&error.message) {
        return error;
    }
    error.hint("make room on that disk and try again; agentbox prune --all shows what can go.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_as_reached_shortly_before() {
        let of = |pids, memory| Sample {
            pids: Some(pids),
            pids_limit: Some(100),
            memory: Some(memory),
            memory_limit: Some(1000),
            ..Sample::default()
        };
        assert_eq!(at_limit(&of(94, 949)), []);
        assert_eq!(at_limit(&of(95, 949)), [AtLimit::Processes]);
        assert_eq!(at_limit(&of(100, 1000)), [AtLimit::Memory, AtLimit::Processes]);
        let unlimited = Sample { pids_limit: None, memory_limit: Some(0), ..of(100, 1000) };
        assert_eq!(at_limit(&unlimited), []);
        assert_eq!(words(&of(100, 1)), ["processes (100 of 100)"]);
    }

    #[test]
    fn only_boxes_in_trouble_have_a_row() {
        assert_eq!(row("calm", Vec::new(), false), None);
        let row = row("evil", vec!["processes (64 of 64)".into()], true).unwrap();
        assert_eq!((row.level, row.label.as_str()), (Level::Warn, "evil"));
        assert!(row.detail.starts_with("at its limit: processes (64 of 64); it had"), "{row:?}");
        assert_eq!(disk_row("system", "/x", 999_999_999).level, Level::Warn);
        assert_eq!(disk_row("system", "/x", 1_000_000_000).level, Level::Ok);
    }
}
