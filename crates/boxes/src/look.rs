//! Looking at a box from outside: what the engine knows of it, without a command in it.
//!
//! The box has a hand in some of it (names of processes, its log), so all of that is bounded, and
//! shown only after it was made harmless by whoever shows it.

use crate::engine::{Kind, QUICK, SLOW};
use crate::exec::Chunk;
use crate::lifecycle::gone;
use crate::{Boxes, Engine, Error, Record, labels};
use bollard::container::LogOutput;
use bollard::models::{ContainerCpuStats, ContainerMemoryStats, ContainerStatsResponse};
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptionsBuilder, ListImagesOptionsBuilder,
    LogsOptionsBuilder, StatsOptionsBuilder, TopOptionsBuilder,
};
use futures_util::{Stream, StreamExt};
use protocol::BoxId;
use std::collections::HashMap;
use std::time::Duration;

/// Processes that are listed; a box may have many more.
const MAX_PROCESSES: usize = 500;
/// How much of a process's command line is kept.
const MAX_COMMAND: usize = 300;
/// Asks for lines that are little longer: a process may have megabytes of arguments, and the engine
/// keeps all it is told in memory.
const PS: &str = "--cols 400 -eo user:16,pid,time,args";
/// Podman looks for itself when it is asked in this way; any other, and it has the box's own `ps` tell.
const PODMAN_PS: &str = "user,pid,time,comm";
/// Adding up the files of large boxes takes its time.
const ADD_UP: Duration = Duration::from_secs(60);

/// What the engine says of one container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// As the engine writes them: RFC 3339.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub exit_code: Option<i64>,
    pub out_of_memory: bool,
    pub memory: Option<u64>,
    pub cpus: Option<f64>,
    pub pids: Option<u64>,
    /// Of the host and in the box, and whether the box may write there.
    pub mounts: Vec<(String, String, bool)>,
}

/// One process, as `ps` of the engine's computer tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub user: String,
    pub pid: String,
    pub time: String,
    pub command: String,
}

/// What a box uses at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Of one processor, so that two busy ones are 200; none before there is a second sample.
    pub cpu_percent: Option<f64>,
    /// Without the files that the kernel keeps at hand.
    pub memory: Option<u64>,
    pub memory_limit: Option<u64>,
    pub pids: Option<u64>,
    pub pids_limit: Option<u64>,
    pub received: Option<u64>,
    pub sent: Option<u64>,
}

/// What takes up room on the engine's disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// The own files of each box.
    pub boxes: HashMap<BoxId, u64>,
    /// Images of this installation, checkpoints among them.
    pub images: u64,
    /// Left where the engine keeps its data, when that is on this computer.
    pub free: Option<u64>,
}

impl Boxes {
    pub async fn details(&self, record: &Record) -> Result<Details, Error> {
        let docker = self.engine.docker();
        let inspect = docker.inspect_container(&record.container, None::<InspectContainerOptions>);
        let seen = self.engine.ask("look at the box", QUICK, inspect).await.map_err(gone)?;
        let state = seen.state.unwrap_or_default();
        let limits = seen.host_config.unwrap_or_default();
        let positive = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
        // The engine has a year one for what never was.
        let moment = |text: Option<String>| text.filter(|t| !t.starts_with("0001-"));
        let mounts = seen.mounts.unwrap_or_default().into_iter().filter_map(|mount| {
            Some((mount.source.unwrap_or_default(), mount.destination?, mount.rw.unwrap_or(true)))
        });
        let mut mounts: Vec<_> = mounts.collect();
        mounts.sort_by(|a, b| a.1.cmp(&b.1));
        Ok(Details {
            started_at: moment(state.started_at),
            finished_at: moment(state.finished_at),
            exit_code: state.exit_code,
            out_of_memory: state.oom_killed.unwrap_or(false),
            memory: positive(limits.memory),
            #[allow(clippy::cast_precision_loss, reason = "a handful of processors")]
            cpus: positive(limits.nano_cpus).map(|nano| nano as f64 / 1e9),
            pids: positive(limits.pids_limit),
            mounts,
        })
    }

    /// The processes of a box that runs or is paused.
    pub async fn processes(&self, record: &Record) -> Result<Vec<Process>, Error> {
        let podman = self.engine.profile().kind == Kind::Podman;
        let options = TopOptionsBuilder::default().ps_args(if podman { PODMAN_PS } else { PS });
        let options = options.build();
        let request = self.engine.docker().top_processes(&record.container, Some(options));
        let listed = self.engine.ask("list the box's processes", QUICK, request).await;
        let listed = listed.map_err(|error| match error.status() {
            Some(409) => Error::NotRunning,
            _ => gone(error),
        })?;
        let rows = listed.processes.unwrap_or_default().into_iter().take(MAX_PROCESSES);
        Ok(rows.filter_map(process).collect())
    }

    /// What a running box uses, about once a second, until it ends or nobody listens.
    pub fn samples(
        &self,
        record: &Record,
    ) -> impl Stream<Item = Result<Sample, Error>> + Send + Unpin + use<> {
        let options = StatsOptionsBuilder::default().stream(true).one_shot(false).build();
        let stats = self.engine.docker().stats(&record.container, Some(options));
        Box::pin(stats.map(|seen| match seen {
            Ok(seen) => Ok(sample(&seen)),
            Err(error) => Err(gone(Error::engine("measure the box", error))),
        }))
    }

    /// What a running box uses right now, processors left aside.
    pub async fn glance(&self, record: &Record) -> Result<Sample, Error> {
        let options = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        let mut stats = self.engine.docker().stats(&record.container, Some(options));
        let what = "measure the box";
        let seen = crate::engine::limited(what, QUICK, stats.next()).await?;
        match seen {
            Some(Ok(seen)) => Ok(sample(&seen)),
            Some(Err(error)) => Err(gone(Error::engine(what, error))),
            None => Err(Error::NotRunning),
        }
    }

    /// What the box's first process said, the last `tail` lines and, when wanted, what it says from
    /// now on. The engine reads from the end, so a long log costs nothing.
    pub fn logs(
        &self,
        record: &Record,
        tail: u32,
        follow: bool,
    ) -> impl Stream<Item = Result<Chunk, Error>> + Send + Unpin + use<> {
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .follow(follow)
            .tail(&tail.to_string())
            .build();
        let lines = self.engine.docker().logs(&record.container, Some(options));
        Box::pin(lines.map(|line| match line {
            Ok(LogOutput::StdErr { message }) => Ok(Chunk::Stderr(message)),
            Ok(
                LogOutput::StdOut { message }
                | LogOutput::StdIn { message }
                | LogOutput::Console { message },
            ) => Ok(Chunk::Stdout(message)),
            Err(error) => Err(gone(Error::engine("read the box's log", error))),
        }))
    }

    /// How much room everything takes. Slow: the engine adds up files.
    pub async fn disk(&self) -> Result<Disk, Error> {
        let docker = self.engine.patient(ADD_UP);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .size(true)
            .filters(&self.ours())
            .build();
        let request = docker.list_containers(Some(options));
        let containers = self.engine.ask("add up the boxes' files", ADD_UP, request).await?;
        let size = |container: bollard::models::ContainerSummary| {
            let id = container.labels?.remove(labels::BOX)?.parse().ok()?;
            Some((id, u64::try_from(container.size_rw.unwrap_or(0)).unwrap_or(0)))
        };
        let boxes = containers.into_iter().filter_map(size).collect();
        let options = ListImagesOptionsBuilder::default().filters(&self.owned()).build();
        let request = docker.list_images(Some(options));
        let images = self.engine.ask("list the images", SLOW, request).await?;
        let images = images.iter().map(|image| u64::try_from(image.size).unwrap_or(0)).sum();
        Ok(Disk { boxes, images, free: self.engine.free_bytes() })
    }
}

impl Engine {
    /// Left where it keeps its data, when that is on this computer.
    pub fn free_bytes(&self) -> Option<u64> {
        let profile = self.profile();
        let root = Some(profile.data_root.as_str()).filter(|r| profile.own_kernel && !r.is_empty());
        let seen = nix::sys::statvfs::statvfs(root?).ok()?;
        Some(seen.blocks_available() * seen.fragment_size())
    }
}

fn process(row: Vec<String>) -> Option<Process> {
    let mut fields = row.into_iter();
    let (user, pid, time) = (fields.next()?, fields.next()?, fields.next()?);
    let command = fields.collect::<Vec<_>>().join(" ").chars().take(MAX_COMMAND).collect();
    Some(Process { user, pid, time, command })
}

fn sample(seen: &ContainerStatsResponse) -> Sample {
    let networks = seen.networks.as_ref();
    let all = |of: fn(&bollard::models::ContainerNetworkStats) -> Option<u64>| {
        networks.map(|n| n.values().filter_map(of).fold(0, u64::saturating_add))
    };
    let memory = seen.memory_stats.as_ref();
    Sample {
        cpu_percent: cpu_percent(seen.precpu_stats.as_ref(), seen.cpu_stats.as_ref()),
        memory: memory.and_then(used),
        memory_limit: memory.and_then(|m| m.limit),
        pids: seen.pids_stats.as_ref().and_then(|p| p.current),
        pids_limit: seen.pids_stats.as_ref().and_then(|p| p.limit).filter(|n| *n > 0),
        received: all(|n| n.rx_bytes),
        sent: all(|n| n.tx_bytes),
    }
}

/// Used by the box between two samples, as a share of what one processor can do in that time.
#[allow(clippy::cast_precision_loss, reason = "nanoseconds between two samples")]
fn cpu_percent(before: Option<&ContainerCpuStats>, now: Option<&ContainerCpuStats>) -> Option<f64> {
    let (before, now) = (before?, now?);
    let total = |stats: &ContainerCpuStats| stats.cpu_usage.as_ref()?.total_usage;
    let used = total(now)?.saturating_sub(total(before)?);
    let passed = now.system_cpu_usage?.checked_sub(before.system_cpu_usage?).filter(|t| *t > 0)?;
    let processors = now.online_cpus.filter(|n| *n > 0).unwrap_or(1);
    Some(used as f64 / passed as f64 * f64::from(processors) * 100.0)
}

/// Without the cache of files, which the kernel takes back when it needs the room. Its name differs
/// between the versions of cgroups.
fn used(memory: &ContainerMemoryStats) -> Option<u64> {
    let part = |name: &str| memory.stats.as_ref().and_then(|stats| stats.get(name)).copied();
    let cache = part("total_inactive_file").or_else(|| part("inactive_file")).unwrap_or(0);
    Some(memory.usage?.saturating_sub(cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(json: serde_json::Value) -> ContainerStatsResponse {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_sample_is_what_was_used_in_between() {
        let seen = stats(serde_json::json!({
            "precpu_stats": { "cpu_usage": { "total_usage": 1_000 }, "system_cpu_usage": 10_000 },
            "cpu_stats": {
                "cpu_usage": { "total_usage": 2_000 },
                "system_cpu_usage": 14_000,
                "online_cpus": 4
            },
            "memory_stats": {
                "usage": 500, "limit": 900,
                "stats": { "total_inactive_file": 100, "inactive_file": 7 }
            },
            "networks": { "eth0": { "rx_bytes": 1, "tx_bytes": 2 }, "eth1": { "rx_bytes": 3 } },
            "pids_stats": { "current": 5, "limit": 60 }
        }));
        let wanted = Sample {
            cpu_percent: Some(100.0),
            memory: Some(400),
            memory_limit: Some(900),
            pids: Some(5),
            pids_limit: Some(60),
            received: Some(4),
            sent: Some(2),
        };
        assert_eq!(sample(&seen), wanted);
    }

    #[test]
    fn what_an_engine_does_not_say_is_not_known() {
        assert_eq!(sample(&stats(serde_json::json!({}))), Sample::default());
        let first = stats(serde_json::json!({
            "precpu_stats": { "cpu_usage": { "total_usage": 0 } },
            "cpu_stats": { "cpu_usage": { "total_usage": 2_000 }, "system_cpu_usage": 14_000 },
        }));
        assert_eq!(sample(&first).cpu_percent, None);
    }

    #[test]
    fn a_process_may_be_called_anything() {
        let row = |fields: &[&str]| process(fields.iter().map(|f| (*f).to_owned()).collect());
        let seen = row(&["vscode", "12", "00:00:01", "sh", "-c", "x"]).unwrap();
        assert_eq!((seen.pid.as_str(), seen.command.as_str()), ("12", "sh -c x"));
        let long = row(&["a", "1", "t", &"x".repeat(9_000)]).unwrap();
        assert_eq!(long.command.len(), MAX_COMMAND);
        assert_eq!(row(&["a", "1"]), None);
    }
}
