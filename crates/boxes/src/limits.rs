//! How much of the computer a box may use, as the engine is told.

use crate::Profile;
use bollard::models::HostConfig;
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

#[cfg(test)]
mod tests {
    use super::*;

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
