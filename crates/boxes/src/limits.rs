//! How much of the computer a box may use, as the engine is told.

use crate::engine::QUICK;
use crate::lifecycle::gone;
use crate::{Boxes, Error, Profile, Record};
use bollard::models::{ContainerUpdateBody, HostConfig};
use protocol::Limits;
use std::collections::HashMap;

/// Processes and threads a box may have at once when nobody says otherwise. They count as the
/// person's own: a fork bomb must end inside.
const PIDS: u64 = 8192;

/// Storage that can keep a container below a size.
const SIZED: [&str; 4] = ["devicemapper", "btrfs", "zfs", "windowsfilter"];

/// Without what this engine cannot do, and a sentence about that.
pub fn possible(limits: Limits, profile: &Profile) -> (Limits, Option<String>) {
    let driver = profile.storage_driver.as_str();
    if limits.disk_bytes.unwrap_or(0) == 0 || SIZED.contains(&driver) {
        return (limits, None);
    }
    let text = format!(
        "the engine's storage ({driver}) cannot limit the size of one box; the disk limit is not set"
    );
    (Limits { disk_bytes: None, ..limits }, Some(text))
}

pub(crate) fn apply(limits: Limits, to: &mut HostConfig) {
    let some = |value: Option<u64>| value.filter(|v| *v > 0).and_then(|v| i64::try_from(v).ok());
    to.memory = some(limits.memory_bytes);
    to.nano_cpus = some(limits.nano_cpus);
    to.pids_limit = some(limits.pids.filter(|v| *v > 0).or(Some(PIDS)));
    to.storage_opt =
        some(limits.disk_bytes).map(|size| HashMap::from([("size".to_owned(), size.to_string())]));
}

impl Boxes {
    /// Changes what a box may use while it is there, running or not. What is absent stays.
    pub async fn set_limits(&self, record: &Record, limits: Limits) -> Result<(), Error> {
        let docker = self.engine.docker();
        let info = self.engine.ask("look at the engine", QUICK, docker.info()).await?;
        let all = All { processors: info.ncpu.unwrap_or(1), memory: info.mem_total.unwrap_or(0) };
        let request = docker.update_container(&record.container, change(limits, &all));
        self.engine.ask("change the box's limits", QUICK, request).await.map_err(gone)
    }
}

/// As much as the engine's computer has.
struct All {
    processors: i64,
    memory: i64,
}

/// To an engine 0 means unchanged, so that what has no limit any more is said in other words: all the
/// memory and all the processors that there are.
fn change(limits: Limits, all: &All) -> ContainerUpdateBody {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let memory = limits.memory_bytes.map(|v| if v == 0 { all.memory } else { number(v) });
    let cpus = limits.nano_cpus.map(|v| match v {
        0 => all.processors.saturating_mul(1_000_000_000),
        v => number(v),
    });
    ContainerUpdateBody {
        memory,
        // As much again on disk, as when a box is made; a limit must not be above this one.
        memory_swap: memory.map(|v| v.saturating_mul(2)),
        nano_cpus: cpus,
        pids_limit: limits.pids.map(|v| number(if v == 0 { PIDS } else { v })),
        ..ContainerUpdateBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_in_the_engines_words_what_has_no_limit() {
        let none = Limits {
            memory_bytes: Some(0),
            nano_cpus: Some(0),
            pids: Some(0),
            ..Limits::default()
        };
        let all = All { processors: 4, memory: 1 << 34 };
        let told = change(none, &all);
        assert_eq!((told.memory, told.memory_swap), (Some(1 << 34), Some(1 << 35)));
        assert_eq!((told.nano_cpus, told.pids_limit), (Some(4_000_000_000), Some(8192)));
        let some = change(Limits { memory_bytes: Some(1 << 30), ..Limits::default() }, &all);
        assert_eq!((some.memory, some.memory_swap), (Some(1 << 30), Some(2 << 30)));
        assert_eq!((some.nano_cpus, some.pids_limit), (None, None));
    }

    #[test]
    fn processes_are_limited_whatever_is_said() {
        for pids in [None, Some(0)] {
            let mut config = HostConfig::default();
            apply(Limits { pids, ..Limits::default() }, &mut config);
            assert_eq!((config.pids_limit, config.memory), (Some(8192), None));
        }
        let mut config = HostConfig::default();
        let limits = Limits {
            memory_bytes: Some(1 << 30),
            nano_cpus: Some(500_000_000),
            pids: Some(64),
            disk_bytes: Some(5),
        };
        apply(limits, &mut config);
        let told = (config.memory, config.nano_cpus, config.pids_limit);
        assert_eq!(told, (Some(1 << 30), Some(500_000_000), Some(64)));
        assert_eq!(config.storage_opt.unwrap()["size"], "5");
    }
}
