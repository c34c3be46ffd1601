//! Looking at boxes: details, the log, what they use.

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use boxes::{Chunk, Disk, Sample};
use futures_util::StreamExt;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{ControlError, Target};
use protocol::looking::{BoxDetails, BoxLimits, BoxMount, BoxProcess, BoxUsage, DiskUsage, Usage};
use protocol::text::visible;
use protocol::{BoxId, Millis};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// How long the first measurement is waited for.
const FIRST_SAMPLE: Duration = Duration::from_secs(4);
/// How long the engine may take to add up files before the rest is shown without them.
const FIRST_DISK: Duration = Duration::from_secs(4);
/// Adding up files is dear.
const DISK_AGE: Duration = Duration::from_secs(30);
/// Nobody reads faster.
const FASTEST: Duration = Duration::from_millis(250);

type Reply<T> = Result<T, ControlError>;

impl Api {
    pub async fn details(&self, target: Target) -> Reply<BoxDetails> {
        let id = self.find(&target)?;
        let view = self.view(&id)?;
        let (boxes, record) = self.core.reach(&id).await?;
        let seen = match boxes.details(&record).await {
            Err(boxes::Error::NoContainer) => boxes::Details::default(),
            seen => seen.map_err(control_error)?,
        };
        let up = matches!(view.state, BoxState::Running | BoxState::Paused);
        // Looking wakes nobody.
        let sessions = match view.state {
            BoxState::Running => self.sessions(Target::id(&id)).await.ok(),
            _ => None,
        };
        let starved = self.core.with_known(&id, |known| known.starved) == Some(true);
        let (usage, processes) = if up {
            let (sample, processes) =
                tokio::join!(first_sample(&boxes, &record), boxes.processes(&record));
            let disk = self.core.disk().await;
            let usage = box_usage(&view, sample, disk.as_ref());
            (Some(usage), processes.ok().map(|all| all.into_iter().map(process).collect()))
        } else {
            (None, None)
        };
        Ok(BoxDetails {
            units: self.core.units_of(&id).await,
            ready: self.core.with_known(&id, |known| known.ready) == Some(true),
            workspace: record.workspace.display().to_string(),
            base: record.base.clone(),
            container: record.container.clone(),
            started_at: seen.started_at.as_deref().and_then(millis),
            ended_at: seen.finished_at.as_deref().and_then(millis).filter(|_| !up),
            exit_code: seen.exit_code.filter(|_| !up),
            out_of_memory: seen.out_of_memory || starved,
            limits: BoxLimits { memory_bytes: seen.memory, cpus: seen.cpus, pids: seen.pids },
            usage,
            processes,
            carried: record.carry.clone(),
            mounts: seen
                .mounts
                .into_iter()
                .map(|(from, to, writable)| BoxMount { from, to, writable })
                .collect(),
            endpoints: self.core.with_known(&id, |known| known.endpoints).unwrap_or_default(),
            sessions,
            view,
        })
    }

    /// What the box's first process said, into `to`, as fast as it is taken from there.
    pub async fn logs(
        &self,
        target: Target,
        tail: u32,
        follow: bool,
        to: mpsc::Sender<Chunk>,
    ) -> Reply<()> {
        let id = self.find(&target)?;
        let (boxes, record) = self.core.reach(&id).await?;
        let mut lines = boxes.logs(&record, tail, follow);
        while let Some(chunk) = lines.next().await {
            let chunk = chunk.map_err(control_error)?;
            if to.send(chunk).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// What boxes use, again and again, for as long as somebody takes it.
    pub async fn follow_usage(
        &self,
        target: Option<Target>,
        every: Duration,
        to: mpsc::Sender<Usage>,
    ) -> Reply<()> {
        let only = target.map(|target| self.find(&target)).transpose()?;
        self.core.engine().await?;
        let mut meters = Meters::default();
        self.core.measure(only.as_ref(), &mut meters);
        let _ = tokio::join!(
            tokio::time::timeout(FIRST_SAMPLE, meters.all_told()),
            tokio::time::timeout(FIRST_DISK, self.core.disk())
        );
        let mut tick = tokio::time::interval(every.max(FASTEST));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = to.closed() => return Ok(()),
                _ = tick.tick() => {}
            }
            let views = self.core.measure(only.as_ref(), &mut meters);
            let disk = self.core.known_disk();
            self.core.refresh_disk();
            let usage = |view: &BoxView| {
                box_usage(view, meters.latest().get(&view.id).copied(), disk.as_ref())
            };
            let usage = Usage {
                boxes: views.iter().map(usage).collect(),
                disk: DiskUsage {
                    boxes_bytes: disk.as_ref().map(|d| d.boxes.values().sum()),
                    images_bytes: disk.as_ref().map(|d| d.images),
                    free_bytes: disk.as_ref().and_then(|d| d.free),
                },
            };
            if to.send(usage).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// The measuring of running boxes; it ends when this is dropped.
#[derive(Default)]
struct Meters {
    tasks: HashMap<BoxId, AbortOnDropHandle<()>>,
    latest: Arc<Mutex<HashMap<BoxId, Sample>>>,
    told: Arc<tokio::sync::Notify>,
}

impl Meters {
    fn latest(&self) -> MutexGuard<'_, HashMap<BoxId, Sample>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every box that is measured has said what it uses.
    async fn all_told(&self) {
        loop {
            let news = self.told.notified();
            let all = {
                let latest = self.latest();
                let known = |id: &BoxId| latest.get(id).is_some_and(|s| s.cpu_percent.is_some());
                self.tasks.iter().all(|(id, task)| task.is_finished() || known(id))
            };
            if all {
                return;
            }
            news.await;
        }
    }
}

impl Core {
    /// Measures the boxes that run now and no others; all of them, as they are.
    fn measure(&self, only: Option<&BoxId>, meters: &mut Meters) -> Vec<BoxView> {
        let mut views = self.views();
        views.retain(|view| only.is_none_or(|id| view.id == *id));
        let up = |view: &&BoxView| matches!(view.state, BoxState::Running | BoxState::Paused);
        let running: Vec<BoxId> = views.iter().filter(up).map(|view| view.id.clone()).collect();
        meters.tasks.retain(|id, task| running.contains(id) && !task.is_finished());
        meters.latest().retain(|id, _| running.contains(id));
        let Some(boxes) = self.state().engine.clone() else { return views };
        for id in running {
            if meters.tasks.contains_key(&id) {
                continue;
            }
            let Some(record) = self.record(&id) else { continue };
            let (latest, told) = (meters.latest.clone(), meters.told.clone());
            let (boxes, of) = (boxes.clone(), id.clone());
            let task = tokio::spawn(async move {
                let mut samples = boxes.samples(&record);
                while let Some(Ok(sample)) = samples.next().await {
                    latest
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(of.clone(), sample);
                    told.notify_one();
                }
                told.notify_one();
            });
            meters.tasks.insert(id, AbortOnDropHandle::new(task));
        }
        views
    }

    fn known_disk(&self) -> Option<Disk> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, d)| d.clone())
    }

    /// How much room everything takes, not older than half a minute.
    pub(crate) async fn disk(&self) -> Option<Disk> {
        let _one = self.adding_up.lock().await;
        let fresh = {
            let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
            sizes.as_ref().filter(|(at, _)| at.elapsed() < DISK_AGE).map(|(_, d)| d.clone())
        };
        if fresh.is_some() {
            return fresh;
        }
        let disk = self.engine().await.ok()?.disk().await.ok()?;
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        *sizes = Some((Instant::now(), disk.clone()));
        Some(disk)
    }

    /// Adds up again in the background, when it is time.
    fn refresh_disk(self: &Arc<Self>) {
        let old = {
            let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
            sizes.as_ref().is_none_or(|(at, _)| at.elapsed() >= DISK_AGE)
        };
        if old && self.adding_up.try_lock().is_ok() {
            let core = self.clone();
            self.tasks.spawn(async move {
                let _ = core.disk().await;
            });
        }
    }
}

async fn first_sample(boxes: &boxes::Boxes, record: &boxes::Record) -> Option<Sample> {
    let mut samples = boxes.samples(record);
    let mut last = None;
    let measured = tokio::time::timeout(FIRST_SAMPLE, async {
        while let Some(Ok(sample)) = samples.next().await {
            last = Some(sample);
            if sample.cpu_percent.is_some() {
                return;
            }
        }
    });
    let _ = measured.await;
    last
}

fn box_usage(view: &BoxView, sample: Option<Sample>, disk: Option<&Disk>) -> BoxUsage {
    let sample = sample.unwrap_or_default();
    BoxUsage {
        id: view.id.clone(),
        name: view.name.to_string(),
        project: view.project.clone(),
        project_root: view.project_root.clone(),
        state: view.state,
        cpu_percent: sample.cpu_percent,
        memory_bytes: sample.memory,
        memory_limit: sample.memory_limit,
        pids: sample.pids,
        pids_limit: sample.pids_limit,
        at_limit: crate::strain::at_limit(&sample),
        disk_bytes: disk.and_then(|d| d.boxes.get(&view.id)).copied(),
        received_bytes: sample.received,
        sent_bytes: sample.sent,
    }
}

fn process(seen: boxes::Process) -> BoxProcess {
    let boxes::Process { pid, user, time, command } = seen;
    let [pid, user, time, command] = [pid, user, time, command].map(|text| visible(&text));
    BoxProcess { pid, user, time, command }
}

fn millis(text: &str) -> Option<Millis> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}
