//! `control.sock`: the API for other processes of the same person.
//!
//! The socket is 0600 in a 0700 folder, and the peer's uid is asked for on top. One request per
//! connection; a client that leaves cancels what it asked for.

use crate::api::{Api, HangUp};
use crate::oplog::OpLog;
use boxes::{Chunk, Exec, Size, Watch};
use protocol::BoxId;
use protocol::boxes::Progress;
use protocol::control::{
    CheckpointView, ControlError, CreateBox, CreateCheckpoint, ErrorCode, Exited, HostEvent,
    Request, Target,
};
use protocol::egress::{Traffic, TrafficAction, TrafficKind, TrafficQuery};
use protocol::frame::{self, Kind};
use protocol::sessions::SessionKind;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Binds the socket; the caller holds the host lock, so what lies there is stale.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

pub async fn serve(listener: UnixListener, api: Api, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    tracing::warn!("control socket: {e}");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let own = nix::unistd::geteuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| may_control(peer.uid(), own)) {
            tracing::warn!("control socket: refused a process of another user");
            continue;
        }
        let (api, stop) = (api.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                // What a client waits for ends with the host, whatever it is.
                () = stop.cancelled() => {}
                done = converse(stream, api) => {
                    if let Err(e) = done {
                        tracing::debug!("control connection: {e}");
                    }
                }
            }
        });
    }
}

/// The person this host belongs to, and root, whom nothing here could keep out.
fn may_control(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

/// How a command ends that the engine could not start.
const NOT_STARTED: i64 = 126;

async fn converse(stream: UnixStream, api: Api) -> io::Result<()> {
    let (mut from, to) = stream.into_split();
    let mut to = Frames(to);
    let Some((Kind::Request, body)) = read(&mut from).await? else { return Ok(()) };
    let request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(e) => {
            let error = ControlError::new(ErrorCode::Usage, format!("unknown request: {e}"))
                .hint("the client and the host may be of different versions; restart the host.");
            return to.send(Kind::Error, &error).await;
        }
    };
    match request {
        Request::Subscribe => subscribe(&api, from, to).await,
        Request::FollowEvents { target, since, limit } => {
            follow(&api, target, since, limit, from, to).await
        }
        Request::Exec(exec) => {
            let size = exec.tty.then_some(Size { cols: exec.cols, rows: exec.rows });
            match api.exec(exec.target, exec.argv, size, exec.user).await {
                Ok((running, hang_up)) => {
                    if pump(running, &hang_up, from, to).await?.is_break() {
                        hang_up.end();
                    }
                    Ok(())
                }
                Err(e) => to.finish(Err(e)).await,
            }
        }
        Request::CreateBox(create) if create.goes_on => go_on_making(&api, create, from, to).await,
        Request::CreateBox(create) => {
            let (watcher, progress) = watcher();
            let making = api.create_box(create, watcher);
            with_progress(making, progress, from, to).await
        }
        Request::CreateCheckpoint(create) => {
            let (watcher, progress) = watcher();
            let making = checkpoint(&api, create, watcher);
            with_progress(making, progress, from, to).await
        }
        Request::InFront { id } => {
            let _seen = api.in_front(id);
            gone(&mut from).await;
            Ok(())
        }
        Request::FollowBoxes => follow_boxes(&api, from, to).await,
        Request::FollowTraffic(query) => follow_traffic(&api, query, from, to).await,
        Request::SwitchEgress { target, mode } => {
            let (watcher, progress) = watcher();
            let switching = api.switch_egress(target, mode, watcher);
            with_progress(switching, progress, from, to).await
        }
        Request::FollowUsage { target, every_ms } => {
            let (usage, mut measured) = mpsc::channel(1);
            let (out, frames) = mpsc::channel(1);
            let passing = async move {
                while let Some(usage) = measured.recv().await {
                    let event = Box::new(HostEvent::Usage { usage });
                    if out.send(Out::Event(event)).await.is_err() {
                        return;
                    }
                }
            };
            let every = std::time::Duration::from_millis(u64::from(every_ms));
            let work = async { tokio::join!(api.follow_usage(target, every, usage), passing).0 };
            with_frames(work, frames, from, to).await
        }
        Request::Logs { target, tail, follow } => {
            let (out, frames) = chunks_out();
            with_frames(Box::pin(api.logs(target, tail, follow, out)), frames, from, to).await
        }
        Request::ExportBox { target } => {
            let (out, frames) = chunks_out();
            with_frames(Box::pin(api.export_box(target, out)), frames, from, to).await
        }
        Request::Await { until, timeout_ms } => {
            tokio::select! {
                reply = api.wait_until(until, timeout_ms) => {
                    to.finish(reply.and_then(|r| value(&r))).await
                }
                () = gone(&mut from) => Ok(()),
            }
        }
        // These end the connection's task too: the answer goes first.
        Request::Stop => {
            to.finish(value(&())).await?;
            api.request_stop();
            Ok(())
        }
        Request::HandOver => {
            let may = api.may_hand_over();
            let going = may.is_ok();
            to.finish(may.and_then(|()| value(&()))).await?;
            if going {
                api.request_stop();
            }
            Ok(())
        }
        other => {
            tokio::select! {
                reply = dispatch(&api, other) => to.finish(reply).await,
                // Questions are answered and boxes started to the end even so; reads just stop.
                () = gone(&mut from) => Ok(()),
            }
        }
    }
}

/// A checkpoint, with its steps in the log.
async fn checkpoint(
    api: &Api,
    create: CreateCheckpoint,
    watcher: boxes::Watcher,
) -> Result<CheckpointView, ControlError> {
    let Ok(view) = api.find_box(&create.target) else {
        return api.create_checkpoint(create, watcher).await;
    };
    let what = format!("of {}", view.name);
    let log = OpLog::begin(&api.core().home, "checkpoint", &what, watcher);
    let made = api.create_checkpoint(create, log.clone()).await;
    log.end(made.as_ref().err().map(|e| e.message.as_str()));
    made
}

async fn dispatch(api: &Api, request: Request) -> Result<serde_json::Value, ControlError> {
    // Work that changes something goes on when the client leaves half-way.
    let api = api.clone();
    let task = tokio::spawn(async move {
        match request {
            Request::Status => value(&api.status().await),
            Request::Doctor => value(&api.doctor().await),
            Request::Boxes => value(&api.boxes().await),
            Request::StartBox { target } => {
                let work = api.start_box(target.clone());
                value(&Box::pin(api.logged("start", &target, work)).await?)
            }
            Request::StopBox { target } => value(&api.stop_box(target).await?),
            Request::WhatIfDestroyed { target } => {
                value(&Box::pin(api.what_if_destroyed(target)).await?)
            }
            Request::DestroyBox { target, branch } => {
                let work = api.destroy_box(target.clone(), branch);
                value(&Box::pin(api.logged("destroy", &target, work)).await?)
            }
            Request::PauseBox { target } => value(&api.pause_box(target).await?),
            Request::UnpauseBox { target } => value(&api.unpause_box(target).await?),
            Request::Recover { target } => value(&api.recover(target).await?),
            Request::WaitFor { target, seconds } => value(&api.wait_for(target, seconds).await?),
            Request::Details { target } => value(&api.details(target).await?),
            Request::Prune { all, only } => value(&api.prune(all, only).await?),
            Request::Questions => value(&api.questions()),
            Request::Answer { id, digest, verdict, surface } => {
                value(&api.answer(&id, &digest, verdict, surface)?)
            }
            Request::Audit(query) => value(&api.audit(query).await?),
            Request::AuditVerify => value(&api.audit_verify().await?),
            Request::Grants => value(&api.grants().await?),
            Request::RevokeGrant { id } => value(&api.revoke_grant(id).await?),
            Request::ShowWindow { page } => value(&api.show_window(&page)?),
            Request::Mute { target, seconds } => value(&api.mute(target, seconds).await?),
            Request::Quiet { seconds } => value(&api.quiet(seconds)),
            Request::Events { target, since, limit } => value(&api.events(target, since, limit)?),
            Request::Act { target, call, with } => value(&api.act(target, &call, &with).await?),
            Request::Remotes { target, apply } => value(&api.remotes(target, apply).await?),
            Request::SetBranch { target, branch } => value(&api.set_branch(target, branch).await?),
            Request::Checkpoints { target } => value(&api.checkpoints(target).await?),
            Request::RemoveCheckpoint { id } => value(&api.remove_checkpoint(&id).await?),
            Request::Secrets => value(&api.secrets().await?),
            Request::SetSecret { id, value: text, scope, hosts } => {
                value(&api.set_secret(id, text, scope, hosts).await?)
            }
            Request::RemoveSecret { id, scope } => value(&api.remove_secret(id, scope).await?),
            Request::TestSecret { id, scope } => value(&api.test_secret(id, scope).await?),
            Request::Integrations { cwd } => value(&api.integrations(cwd).await?),
            Request::SetIntegration { service, enabled, layer, cwd } => {
                value(&api.set_integration(&service, enabled, layer, cwd).await?)
            }
            Request::TestIntegration { service, cwd } => {
                value(&api.test_integration(&service, cwd).await?)
            }
            Request::FindBox { target } => value(&api.find_box(&target)?),
            Request::WillLogIn { target, agent } => value(&api.will_log_in(&target, agent).await?),
            Request::Sessions { target } => value(&api.sessions(target).await?),
            Request::StartSession(start) => {
                let target = start.target.clone();
                match start.what {
                    SessionKind::Agent { agent, .. } => {
                        let work = api.start_session(start);
                        value(&Box::pin(api.logged(agent.as_str(), &target, work)).await?)
                    }
                    SessionKind::Shell { .. } => value(&api.start_session(start).await?),
                }
            }
            Request::EndSession { target, name } => value(&api.end_session(target, &name).await?),
            Request::SetDefaultCheckpoint { id, cwd } => {
                value(&api.set_default_checkpoint(id, cwd).await?)
            }
            Request::Link { target, to, loopback, engine } => {
                value(&api.link(target, to, loopback, engine).await?)
            }
            Request::EditorLink { target } => value(&api.editor_link(target).await?),
            Request::SshConfig => value(&api.ssh_config()?),
            Request::Projects => value(&api.projects().await?),
            Request::LookAtFolder { path } => value(&api.look_at_folder(&path).await?),
            Request::Conversations(query) => value(&api.conversations(query).await?),
            Request::RelaunchAgents(what) => value(&Box::pin(api.relaunch_agents(what)).await?),
            Request::Resync { target } => value(&api.resync(target).await?),
            Request::EditorTasks { target, regenerate } => {
                value(&api.editor_tasks(target, regenerate).await?)
            }
            Request::SshHost { target } => value(&api.ssh_host(target).await?),
            Request::CarryPlan { workspace } => value(&api.carry_plan(&workspace).await?),
            Request::Units { target } => value(&api.units(target).await?),
            Request::SetDisplayName { target, name } => {
                value(&api.set_display_name(target, name).await?)
            }
            Request::SetLimits { target, limits } => value(&api.set_limits(target, limits).await?),
            Request::SubmitJob(submit) => value(&api.submit_job(*submit).await?),
            Request::Jobs => value(&api.jobs().await?),
            Request::Job { id, tail } => value(&api.job(&id, tail).await?),
            Request::CancelJob { id, kill } => value(&api.cancel_job(&id, kill).await?),
            Request::ClearJobs { kinds } => value(&api.clear_jobs(&kinds).await?),
            Request::SetSetting { key, value: text, layer, cwd } => {
                api.set_setting(&key, text.as_deref(), layer, cwd.as_deref()).await?;
                value(&api.follow_setting(&key)?)
            }
            Request::WriteSettings { text, opened, layer, cwd } => {
                api.write_settings(text, opened, layer, cwd.as_deref()).await?;
                value(&api.follow_setting("desktop.launchAtLogin")?)
            }
            Request::Settings { cwd } => value(&api.settings_view(cwd.as_deref()).await?),
            Request::AgentAsks { target } => value(&api.agent_asks(&target)?),
            Request::Egress { target } => value(&api.egress(target).await?),
            Request::EgressPolicy { of, form } => value(&api.egress_policy(of, form).await?),
            Request::CheckEgress { of, url, method } => {
                value(&api.check_egress(of, &url, &method).await?)
            }
            Request::ExplainEgress { target, event } => {
                value(&api.explain_egress(target, event).await?)
            }
            Request::ChangeEgress(change) => value(&api.change_egress(change).await?),
            Request::ReloadEgress { target } => value(&api.reload_egress(target).await?),
            Request::EgressFile { place, agent, cwd } => {
                value(&api.egress_file(place, agent, cwd).await?)
            }
            Request::WriteEgressFile { place, agent, cwd, text, opened } => {
                value(&api.write_egress_file(place, agent, cwd, text, opened).await?)
            }
            Request::Traffic(query) => value(&api.traffic(query).await?),
            Request::SuggestEgress { target, since } => {
                value(&api.suggest_egress(target, since).await?)
            }
            Request::ApiUse { target, since } => value(&api.api_use(target, since).await?),
            Request::EgressCa => value(&api.egress_ca()?),
            Request::AnswerRepository { target, digest, accept } => {
                value(&api.answer_repository(target, &digest, accept).await?)
            }
            Request::AcknowledgeEcho { host } => value(&api.acknowledge_echo(&host).await?),
            Request::HandOver
            | Request::Stop
            | Request::Subscribe
            | Request::FollowEvents { .. }
            | Request::FollowBoxes
            | Request::InFront { .. }
            | Request::FollowUsage { .. }
            | Request::FollowTraffic(_)
            | Request::SwitchEgress { .. }
            | Request::Logs { .. }
            | Request::ExportBox { .. }
            | Request::Exec(_)
            | Request::CreateBox(_)
            | Request::CreateCheckpoint(_)
            | Request::Await { .. } => {
                Err(ControlError::new(ErrorCode::Failed, "this request is answered elsewhere"))
            }
        }
    });
    task.await.unwrap_or_else(|e| Err(ControlError::new(ErrorCode::Failed, e.to_string())))
}

fn value(reply: &impl Serialize) -> Result<serde_json::Value, ControlError> {
    serde_json::to_value(reply).map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))
}

/// A snapshot, then events; a client that falls behind gets a new snapshot.
async fn subscribe(api: &Api, mut from: OwnedReadHalf, mut to: Frames) -> io::Result<()> {
    let mut events = api.subscribe();
    let _somebody = api.watching();
    to.send(Kind::Event, &api.snapshot().await).await?;
    loop {
        let event = tokio::select! {
            () = gone(&mut from) => return Ok(()),
            event = events.recv() => event,
        };
        match event {
            Ok(event) => to.send(Kind::Event, &event).await?,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                to.send(Kind::Event, &api.snapshot().await).await?;
            }
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        }
    }
}

/// What boxes told and tell. Whoever only listens to that answers no question.
async fn follow(
    api: &Api,
    target: Option<Target>,
    since: u64,
    limit: u32,
    mut from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<()> {
    // Listening comes first: what is told while the past is read comes after it, not never.
    let mut events = api.subscribe();
    let only = match target.as_ref().map(|target| api.find(target)).transpose() {
        Ok(only) => only,
        Err(error) => return to.send(Kind::Error, &error).await,
    };
    let mut last = since;
    let mut missed = Some(limit);
    loop {
        if let Some(limit) = missed.take() {
            for event in api.told(only.as_ref(), last, limit) {
                last = event.id;
                to.send(Kind::Event, &HostEvent::Told { event }).await?;
            }
        }
        let event = tokio::select! {
            () = gone(&mut from) => return Ok(()),
            event = events.recv() => event,
        };
        match event {
            Ok(HostEvent::Told { event }) if event.id > last => {
                if only.as_ref().is_none_or(|id| event.box_id == *id) {
                    last = event.id;
                    to.send(Kind::Event, &HostEvent::Told { event }).await?;
                }
            }
            Ok(_) => {}
            // Too slow for the queue; the ring still has them.
            Err(broadcast::error::RecvError::Lagged(_)) => missed = Some(u32::MAX),
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        }
    }
}

/// What boxes sent out, and what they send.
async fn follow_traffic(
    api: &Api,
    query: TrafficQuery,
    mut from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<()> {
    // Listening comes first: what happens while the past is read comes after it, not never.
    let mut lines = api.follow_traffic();
    let only = match query.target.as_ref().map(|target| api.find_past(target)).transpose() {
        Ok(only) => only,
        Err(error) => return to.send(Kind::Error, &error).await,
    };
    let past = match api.traffic(query.clone()).await {
        Ok(past) => past,
        Err(error) => return to.send(Kind::Error, &error).await,
    };
    // Not by order: a request that takes long is told after younger ones.
    let told: HashSet<String> = past.iter().map(|line| line.id.clone()).collect();
    for line in past {
        to.send(Kind::Event, &HostEvent::Traffic { line }).await?;
    }
    loop {
        let line = tokio::select! {
            () = gone(&mut from) => return Ok(()),
            line = lines.recv() => line,
        };
        match line {
            Ok(line) if !told.contains(&line.id) && wanted(&line, only.as_ref(), &query) => {
                to.send(Kind::Event, &HostEvent::Traffic { line }).await?;
            }
            // Not wanted or told already; or too slow for the queue: what was missed is on disk.
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        }
    }
}

fn wanted(line: &Traffic, only: Option<&BoxId>, query: &TrafficQuery) -> bool {
    let text = query.text.as_deref().unwrap_or_default().to_lowercase();
    let place =
        [line.host.as_deref(), line.path.as_deref()].map(Option::unwrap_or_default).concat();
    let stopped = line.action == TrafficAction::Blocked || line.kind == TrafficKind::Alert;
    only.is_none_or(|id| line.box_id == *id)
        && (!query.denied || stopped)
        && place.to_lowercase().contains(&text)
}

/// Boxes as they change, for somebody who only looks.
async fn follow_boxes(api: &Api, mut from: OwnedReadHalf, mut to: Frames) -> io::Result<()> {
    let mut events = api.subscribe();
    to.send(Kind::Event, &api.snapshot().await).await?;
    loop {
        let event = tokio::select! {
            () = gone(&mut from) => return Ok(()),
            event = events.recv() => event,
        };
        match event {
            Ok(
                event @ (HostEvent::BoxChanged { .. }
                | HostEvent::BoxRemoved { .. }
                | HostEvent::JobChanged { .. }),
            ) => {
                to.send(Kind::Event, &event).await?;
            }
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {
                to.send(Kind::Event, &api.snapshot().await).await?;
            }
            Err(broadcast::error::RecvError::Closed) => return Ok(()),
        }
    }
}

/// What comes before the answer.
enum Out {
    Event(Box<HostEvent>),
    Chunk(Chunk),
}

impl From<Chunk> for Out {
    fn from(chunk: Chunk) -> Self {
        Out::Chunk(chunk)
    }
}

/// A short queue: whoever fills it waits for the client.
fn chunks_out() -> (mpsc::Sender<Chunk>, mpsc::Receiver<Chunk>) {
    mpsc::channel(4)
}

/// Work that sends frames on the way; it ends when the client leaves.
async fn with_frames<T: Serialize, F: Into<Out>>(
    work: impl Future<Output = Result<T, ControlError>>,
    mut frames: mpsc::Receiver<F>,
    mut from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<()> {
    let mut work = std::pin::pin!(work);
    let reply = loop {
        tokio::select! {
            biased;
            Some(frame) = frames.recv() => to.out(frame.into()).await?,
            reply = &mut work => break reply,
            () = gone(&mut from) => return Ok(()),
        }
    };
    while let Ok(frame) = frames.try_recv() {
        to.out(frame.into()).await?;
    }
    to.finish(reply.and_then(|r| value(&r))).await
}

/// Steps of a create, as events for the client. A full queue drops details, never the outcome.
struct ToClient(mpsc::Sender<Progress>);

impl Watch for ToClient {
    fn progress(&self, progress: Progress) {
        let _ = self.0.try_send(progress);
    }
}

fn watcher() -> (boxes::Watcher, mpsc::Receiver<Progress>) {
    let (tx, rx) = mpsc::channel(256);
    (Arc::new(ToClient(tx)), rx)
}

async fn with_progress<T: Serialize>(
    work: impl Future<Output = Result<T, ControlError>>,
    mut progress: mpsc::Receiver<Progress>,
    mut from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<()> {
    let mut work = std::pin::pin!(work);
    let reply = loop {
        tokio::select! {
            biased;
            Some(progress) = progress.recv() => to.send(Kind::Event, &HostEvent::Progress { progress }).await?,
            reply = &mut work => break reply,
            // Dropping the work takes back what it has made so far.
            () = gone(&mut from) => return Ok(()),
        }
    };
    while let Ok(progress) = progress.try_recv() {
        to.send(Kind::Event, &HostEvent::Progress { progress }).await?;
    }
    to.finish(reply.and_then(|r| value(&r))).await
}

/// Makes a box to the end, also when the client leaves; only what is called off is taken back.
async fn go_on_making(
    api: &Api,
    create: CreateBox,
    mut from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<()> {
    let (watcher, mut progress) = watcher();
    let (off, (tell, made)) = (CancellationToken::new(), tokio::sync::oneshot::channel());
    let (making, called_off) = (api.clone(), off.clone());
    api.core().tasks.spawn(async move {
        let stop = making.core().stop.clone();
        tokio::select! {
            made = making.create_box(create, watcher) => {
                if let Err(Err(error)) = tell.send(made) {
                    tracing::warn!("a box nobody waits for was not made: {error}");
                }
            }
            () = called_off.cancelled() => {}
            () = stop.cancelled() => {}
        }
    });
    let mut left = std::pin::pin!(left(&mut from));
    let mut made = std::pin::pin!(made);
    let is_off = loop {
        tokio::select! {
            biased;
            Some(progress) = progress.recv() => {
                if to.send(Kind::Event, &HostEvent::Progress { progress }).await.is_err() {
                    break left.await;
                }
            }
            reply = &mut made => {
                let stopping = || ControlError::new(ErrorCode::Failed, "the host is stopping");
                let reply = reply.unwrap_or_else(|_| Err(stopping()));
                return to.finish(reply.and_then(|made| value(&made))).await;
            }
            is_off = &mut left => break is_off,
        }
    };
    if is_off {
        off.cancel();
    }
    Ok(())
}

/// Waits until the client leaves; whether it called off what it had asked for.
async fn left(from: &mut OwnedReadHalf) -> bool {
    while let Ok(Some((kind, _))) = read(from).await {
        if kind == Kind::CallOff {
            return true;
        }
    }
    false
}

/// Moves bytes between a client and a command until the command ends, or breaks off when the client
/// does.
async fn pump(
    exec: Exec,
    of: &HangUp,
    from: OwnedReadHalf,
    mut to: Frames,
) -> io::Result<ControlFlow<(), ()>> {
    let Exec { mut input, mut output, control } = exec;
    let resizer = control.clone();
    let feed = async move {
        let mut from = from;
        while let Some((kind, bytes)) = read(&mut from).await? {
            match kind {
                Kind::Stdin if bytes.is_empty() => input.shutdown().await?,
                Kind::Stdin => input.write_all(&bytes).await?,
                Kind::Resize => {
                    if let [a, b, c, d] = bytes[..] {
                        let size = Size {
                            cols: u16::from_be_bytes([a, b]),
                            rows: u16::from_be_bytes([c, d]),
                        };
                        let _ = resizer.resize(size).await;
                    }
                }
                _ => return Ok(()),
            }
        }
        io::Result::Ok(())
    };
    let mut feed = std::pin::pin!(feed);
    let mut fed = false;
    let failed = loop {
        tokio::select! {
            chunk = output.next() => match chunk {
                Ok(Some(chunk)) => {
                    let (kind, bytes) = match chunk {
                        Chunk::Stdout(bytes) => (Kind::Stdout, bytes),
                        Chunk::Stderr(bytes) => (Kind::Stderr, bytes),
                    };
                    // Input goes on while a client takes its time for output: it may wait for us the same way.
                    let mut write = std::pin::pin!(to.bytes(kind, &bytes));
                    loop {
                        tokio::select! {
                            written = &mut write => break written?,
                            ended = &mut feed, if !fed => match ended {
                                Ok(()) => return Ok(ControlFlow::Break(())),
                                Err(_) => fed = true,
                            },
                        }
                    }
                }
                Ok(None) => break None,
                Err(e) => break Some(e),
            },
            // The client is gone: nobody is left to write to.
            ended = &mut feed, if !fed => match ended {
                Ok(()) => return Ok(ControlFlow::Break(())),
                // The command closed its input; its output still counts.
                Err(_) => fed = true,
            },
        }
    };
    let reply = match failed {
        Some(e) => Err(crate::engine::control_error(e)),
        None => control.exit_code().await.map_err(crate::engine::control_error),
    };
    // The engine has said in its own words that it could not start the command.
    let reply = match reply {
        Ok(NOT_STARTED) => of.why_not_started().await.map_or(Ok(NOT_STARTED), Err),
        reply => reply,
    };
    let exited = |code: i64| Exited { exit_code: i32::try_from(code).unwrap_or(1) };
    to.finish(reply.and_then(|code| value(&exited(code)))).await?;
    Ok(ControlFlow::Continue(()))
}

/// Resolves when the client hangs up. Anything it still says is not for us.
async fn gone(from: &mut OwnedReadHalf) {
    let mut ignored = [0; 64];
    while from.read(&mut ignored).await.is_ok_and(|n| n > 0) {}
}

async fn read(from: &mut OwnedReadHalf) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; frame::HEADER];
    match from.read_exact(&mut head).await {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    };
    let (kind, len) = frame::parse_header(head)?;
    let mut payload = vec![0; len];
    from.read_exact(&mut payload).await?;
    Ok(Some((kind, payload)))
}

/// The sending half.
struct Frames(OwnedWriteHalf);

impl Frames {
    /// One JSON value is one frame; a larger one is refused, never split.
    async fn send(&mut self, kind: Kind, body: &impl Serialize) -> io::Result<()> {
        let body = serde_json::to_vec(body)?;
        self.0.write_all(&frame::header(kind, body.len())?).await?;
        self.0.write_all(&body).await
    }

    async fn out(&mut self, out: Out) -> io::Result<()> {
        match out {
            Out::Event(event) => self.send(Kind::Event, &event).await,
            Out::Chunk(Chunk::Stdout(bytes)) => self.bytes(Kind::Stdout, &bytes).await,
            Out::Chunk(Chunk::Stderr(bytes)) => self.bytes(Kind::Stderr, &bytes).await,
        }
    }

    async fn bytes(&mut self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        for chunk in chunks(payload) {
            // In one go: a large copy is tens of thousands of these.
            let mut frame = Vec::with_capacity(frame::HEADER + chunk.len());
            frame.extend_from_slice(&frame::header(kind, chunk.len())?);
            frame.extend_from_slice(chunk);
            self.0.write_all(&frame).await?;
        }
        Ok(())
    }

    async fn finish(&mut self, reply: Result<serde_json::Value, ControlError>) -> io::Result<()> {
        match reply {
            Ok(value) => match self.send(Kind::Result, &value).await {
                Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                    let error = ControlError::new(ErrorCode::Failed, "the answer is too long")
                        .hint("ask for less at once.");
                    self.send(Kind::Error, &error).await
                }
                sent => sent,
            },
            Err(error) => self.send(Kind::Error, &crate::strain::room_hint(error)).await,
        }
    }
}

/// Output of a command, cut into frames.
fn chunks(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    let empty = payload.is_empty().then_some(payload);
    empty.into_iter().chain(payload.chunks(frame::MAX_PAYLOAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_users_process_may_not_control_the_host() {
        assert!(may_control(4242, 4242));
        assert!(may_control(0, 4242));
        assert!(!may_control(1000, 4242));
        assert!(!may_control(1000, 0));
    }

    #[tokio::test]
    async fn the_socket_is_for_its_owner_alone_and_replaces_a_stale_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        drop(bind(&path).unwrap());
        let _listener = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
