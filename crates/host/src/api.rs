//! The one surface: what can be asked of a host. The tray calls it, the control socket forwards
//! to it.

use crate::core::{Core, Watching, fresh_token};
use crate::down::TakingDown;
use crate::engine::control_error;
use crate::quiet::Quiet;
use crate::rest::Session;
use crate::store::Filter;
use crate::{Kind, doctor, resolve};
use approvals::{AnswerError, Broker};
use boxes::{Exec, ExecSpec, Size, Watcher};
use protocol::audit::{AuditRecord, AuditVerdict};
use protocol::boxes::{BoxState, BoxView, Created, WhyDown};
use protocol::control::{
    AuditQuery, Check, CheckpointView, ControlError, CreateBox, ErrorCode, HostEvent, HostStatus,
    Notice, Remotes, Target,
};
use protocol::ctl::{BOX_USER, paths};
use protocol::events::BoxEvent;
use protocol::integrations::{IntegrationView, Layer, SecretScope, SecretText, SecretView, Tried};
use protocol::question::{Grant, Question, Surface, Verdict};
use protocol::rpc::Envelope;
use protocol::{BoxId, GrantId, QuestionId, SecretId};
use relay::Entry;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::broadcast;

/// The most records one call gives.
const MAX_AUDIT: u32 = 1000;
/// How long a command whose person has gone is given to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// A handle on the running host. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    pub(crate) core: Arc<Core>,
}

/// The record of a box being muted or heard again; the last one holds.
pub(crate) const MUTED: &str = "box-muted";

type Reply<T> = Result<T, ControlError>;

impl Api {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.core.subscribe()
    }

    /// Somebody could answer questions, for as long as this is kept.
    pub(crate) fn watching(&self) -> Watching {
        self.core.watching()
    }

    /// Everything as it is now.
    pub async fn snapshot(&self) -> HostEvent {
        HostEvent::Snapshot {
            status: self.core.status(),
            boxes: self.boxes().await,
            questions: self.questions(),
        }
    }

    #[allow(clippy::unused_async, reason = "part of the surface, whose reads may need the engine")]
    pub async fn status(&self) -> HostStatus {
        self.core.status()
    }

    pub async fn doctor(&self) -> Vec<Check> {
        doctor::online(&self.core).await
    }

    /// All boxes, from what the engine's events have told: no engine call at all.
    #[allow(clippy::unused_async, reason = "part of the surface, whose reads may need the engine")]
    pub async fn boxes(&self) -> Vec<BoxView> {
        self.core.views()
    }

    pub async fn create_box(&self, request: CreateBox, watcher: Watcher) -> Reply<Created> {
        self.core.create(request, watcher).await
    }

    pub async fn start_box(&self, target: Target) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        self.core.start_box(&id).await?;
        self.view(&id)
    }

    pub async fn stop_box(&self, target: Target) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        let _down = TakingDown::mark(&self.core, &id, WhyDown::Person);
        boxes.stop(&record).await.map_err(control_error)?;
        self.core.set_box_state(&id, BoxState::Stopped);
        self.core.store.put_rest(&id, true).await?;
        self.view(&id)
    }

    /// Runs a command in a box as its user; a stopped or paused box is brought up first.
    pub async fn exec(
        &self,
        target: Target,
        argv: Vec<String>,
        tty: Option<Size>,
        user: Option<String>,
    ) -> Reply<(Exec, HangUp)> {
        let user = user.map(crate::box_user::checked).transpose()?;
        let user = user.unwrap_or_else(|| BOX_USER.to_owned());
        let id = self.find(&target)?;
        let used = self.core.session(&id);
        self.core.awake(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        let mark = format!("{MARK}={:032x}", u128::from_be_bytes(crate::create::random()?));
        let term = tty.is_some().then(|| "TERM=xterm-256color".to_owned());
        let spec = ExecSpec {
            argv,
            user: Some(user.clone()),
            cwd: Some(paths::WORKSPACE.into()),
            env: term.into_iter().chain([mark.clone()]).collect(),
            tty: tty.is_some(),
            size: tty,
        };
        let exec = boxes.exec(&record, spec).await.map_err(control_error)?;
        Ok((exec, HangUp { core: self.core.clone(), boxes, record, user, mark, _used: used }))
    }

    pub fn questions(&self) -> Vec<Question> {
        self.core.broker.pending()
    }

    pub fn answer(
        &self,
        id: &QuestionId,
        digest: &str,
        verdict: Verdict,
        by: Surface,
    ) -> Reply<()> {
        self.core.broker.answer(id, digest, verdict, by).map_err(|e| {
            let code = match e {
                AnswerError::NotPending => ErrorCode::NotPending,
                AnswerError::DigestMismatch => ErrorCode::DigestMismatch,
                AnswerError::TooSoon => ErrorCode::TooSoon,
                AnswerError::NotRememberable => ErrorCode::NotRememberable,
                AnswerError::NotOffered => ErrorCode::NotOffered,
                AnswerError::Locked => ErrorCode::Locked,
            };
            ControlError::new(code, e.to_string())
        })
    }

    /// For surfaces that hold back in the quiet.
    pub fn quietness(&self) -> Quiet {
        self.core.quiet.clone()
    }

    /// To add surfaces.
    pub fn broker(&self) -> &Broker {
        &self.core.broker
    }

    pub async fn audit(&self, query: AuditQuery) -> Reply<Vec<AuditRecord>> {
        let filter = Filter {
            box_id: query.target.map(|t| self.find_past(&t)).transpose()?,
            kinds: query.kinds,
            since: query.since,
            until: query.until,
            text: query.text,
            after: query.after,
            limit: query.limit.min(MAX_AUDIT),
        };
        Ok(self.core.store.audit(filter).await?)
    }

    pub async fn audit_verify(&self) -> Reply<AuditVerdict> {
        Ok(self.core.store.verify().await?)
    }

    pub async fn grants(&self) -> Reply<Vec<Grant>> {
        Ok(self.core.store.grants().await?)
    }

    pub async fn revoke_grant(&self, id: GrantId) -> Reply<()> {
        if self.core.store.revoke(id).await? {
            // It may have been one about the network.
            self.core.reload_ways(|_| true).await;
            return Ok(());
        }
        Err(ControlError::new(ErrorCode::Usage, "there is no such rule")
            .hint("agentbox grants lists the rules."))
    }

    /// Denies a box's questions for a while.
    pub async fn mute(&self, target: Target, seconds: Option<u64>) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let time = seconds.map(Duration::from_secs);
        self.core.broker.mute(&id, time);
        let until = self.core.broker.muted_until(&id);
        if let Some(known) = self.core.state().boxes.get_mut(&id) {
            known.muted_until = until;
        }
        let view = self.view(&id)?;
        let what = if time.is_some() { "muted" } else { "unmuted" };
        let entry = Entry {
            box_id: Some(id.clone()),
            kind: MUTED,
            summary: format!("Box {} {what}", view.name),
            data: serde_json::json!({ "until": until }),
        };
        self.core.store.record(entry).await?;
        self.core.send_view(&id);
        if let Some(time) = time {
            self.core.send_view_after(&id, time);
        }
        Ok(view)
    }

    /// Holds dialogs and notifications back for a while.
    pub fn quiet(&self, seconds: Option<u64>) -> HostStatus {
        self.core.quiet.set(seconds.map(Duration::from_secs));
        self.core.send_status();
        self.core.status()
    }

    pub fn events(&self, target: Option<Target>, since: u64, limit: u32) -> Reply<Vec<BoxEvent>> {
        let id = target.map(|t| self.find(&t)).transpose()?;
        Ok(self.told(id.as_ref(), since, limit))
    }

    pub(crate) fn told(&self, id: Option<&BoxId>, since: u64, limit: u32) -> Vec<BoxEvent> {
        self.core.events_log.since(id, since, limit.min(MAX_AUDIT) as usize)
    }

    /// Does for a box what it could ask for; the person typed it.
    pub async fn act(
        &self,
        target: Target,
        call: &str,
        with: &serde_json::Value,
    ) -> Reply<Envelope> {
        let id = self.find(&target)?;
        let _used = self.core.session(&id);
        if self.core.box_state(&id) == BoxState::Paused {
            self.core.awake(&id).await?;
        }
        let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
        let params = serde_json::value::to_raw_value(with).map_err(|e| failed(e.to_string()))?;
        let acted = self.core.relay.act(&id, call, &params).await;
        let acted = acted.map_err(|e| failed(e.to_string()))?;
        acted.map_err(|text| ControlError::new(ErrorCode::Usage, text))
    }

    pub async fn remotes(&self, target: Target, apply: bool) -> Reply<Remotes> {
        let id = self.find(&target)?;
        self.core.remotes(&id, apply).await
    }

    pub async fn set_branch(&self, target: Target, branch: Option<String>) -> Reply<BoxView> {
        let id = self.find(&target)?;
        self.core.set_branch(&id, branch).await?;
        self.view(&id)
    }

    pub async fn checkpoints(&self, target: Option<Target>) -> Reply<Vec<CheckpointView>> {
        let name = match target {
            Some(target) => Some(self.view(&self.find(&target)?)?.name.to_string()),
            None => None,
        };
        let mut all = self.core.store.checkpoints().await?;
        all.retain(|c| name.as_ref().is_none_or(|name| c.box_name == *name));
        Ok(all)
    }

    pub async fn remove_checkpoint(&self, id: &str) -> Reply<()> {
        self.core.remove_checkpoint(id).await
    }

    pub async fn secrets(&self) -> Reply<Vec<SecretView>> {
        self.core.secrets().await
    }

    /// What the person should know about the value, if anything.
    pub async fn set_secret(
        &self,
        id: SecretId,
        value: SecretText,
        scope: SecretScope,
        hosts: Option<Vec<String>>,
    ) -> Reply<Option<String>> {
        self.core.set_secret(id, value, scope, hosts).await
    }

    pub async fn remove_secret(&self, id: SecretId, scope: SecretScope) -> Reply<bool> {
        self.core.remove_secret(id, scope).await
    }

    pub async fn test_secret(&self, id: SecretId, scope: SecretScope) -> Reply<Tried> {
        self.core.test_secret(&id, scope).await
    }

    pub async fn integrations(&self, cwd: Option<String>) -> Reply<Vec<IntegrationView>> {
        self.core.integrations(cwd.as_deref()).await
    }

    pub async fn set_integration(
        &self,
        service: &str,
        enabled: bool,
        layer: Layer,
        cwd: Option<String>,
    ) -> Reply<IntegrationView> {
        self.core.set_integration(service, enabled, layer, cwd.as_deref()).await
    }

    pub async fn test_integration(&self, service: &str, cwd: Option<String>) -> Reply<Tried> {
        self.core.test_integration(service, cwd.as_deref()).await
    }

    /// Tells people about a part of the desktop; one notice per part.
    pub fn set_notice(&self, notice: Notice) {
        let old = self.core.state().notices.insert(notice.part.clone(), notice.clone());
        if old.as_ref() != Some(&notice) {
            self.core.send_status();
        }
    }

    pub fn clear_notice(&self, part: &str) {
        let old = self.core.state().notices.remove(part);
        if old.is_some() {
            self.core.send_status();
        }
    }

    pub fn show_window(&self, page: &str) -> Reply<()> {
        if self.core.kind == Kind::Headless {
            let text = "this host runs without a desktop and has no window";
            return Err(ControlError::new(ErrorCode::Failed, text)
                .hint("start agentbox-desktop; it takes over from this host."));
        }
        self.core.send(HostEvent::ShowWindow { page: page.to_owned() });
        Ok(())
    }

    /// Only a headless host makes room for a desktop one.
    pub(crate) fn may_hand_over(&self) -> Reply<()> {
        if self.core.kind == Kind::Desktop {
            return Err(ControlError::new(ErrorCode::Failed, "a desktop host is already running"));
        }
        Ok(())
    }

    pub fn request_stop(&self) {
        self.core.stop.cancel();
    }

    pub(crate) fn find(&self, target: &Target) -> Reply<BoxId> {
        resolve::resolve(&self.core.candidates(), target)
    }

    /// The trail outlives boxes: an id that is gone can still be asked about.
    pub(crate) fn find_past(&self, target: &Target) -> Reply<BoxId> {
        let past = target.query.as_deref().and_then(|q| q.parse().ok());
        self.find(target).or_else(|e| past.ok_or(e))
    }

    pub fn find_box(&self, target: &Target) -> Reply<BoxView> {
        self.view(&self.find(target)?)
    }

    pub(crate) fn view(&self, id: &BoxId) -> Reply<BoxView> {
        self.core.view(id).ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))
    }
}

impl Core {
    /// Starts a box with a fresh token.
    pub(crate) async fn start_box(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        // Waking a box while it is captured would change it under the engine's hands.
        if self.is_busy(id) {
            return Ok(());
        }
        let (boxes, record) = self.reach(id).await?;
        if let Some(repo) = record.repos().find(|repo| !repo.common_dir.exists()) {
            let text = format!("main repo for box worktree missing: {}", repo.common_dir.display());
            return Err(ControlError::new(ErrorCode::Failed, text).hint("recreate the box."));
        }
        let _starting = Starting::mark(self, id);
        let token = fresh_token()?;
        let go = self.go(&record, token.as_str())?;
        let daemons = go.daemons.clone();
        self.register(&record, &token)?;
        self.reload_recorded(&record).await;
        self.keep_token(&record, &token).await?;
        self.keep_bridge(id);
        self.proven(&record, boxes.start(&record, go).await).await?;
        self.with_known(id, |known| known.ending.settle(SystemTime::now()));
        self.state().set_released(id, true);
        self.set_box_state(id, BoxState::Running);
        self.went(&boxes, &record, daemons).await;
        self.set_ready(id);
        self.keep_bridge(id);
        self.store.put_rest(id, false).await?;
        Ok(())
    }

    /// Gives a box that runs already a fresh token: it was started by other means, or this host
    /// has just come up.
    pub(crate) async fn adopt(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        let (boxes, record) = self.reach(id).await?;
        self.keep_bridge(id);
        let token = fresh_token()?;
        let go = self.go(&record, token.as_str())?;
        let daemons = go.daemons.clone();
        self.relay.expect(id, token.hash());
        self.egress_expect(id, &token);
        self.proven(&record, boxes.release(&record, go).await).await?;
        self.with_known(id, |known| known.ending.settle(SystemTime::now()));
        self.relay.settle(id);
        self.egress_settle(id);
        self.went(&boxes, &record, daemons).await;
        self.keep_token(&record, &token).await?;
        self.set_ready(id);
        self.land_soon(id);
        Ok(())
    }

    async fn keep_token(&self, record: &boxes::Record, token: &relay::Token) -> Reply<()> {
        let token_hash = *token.hash().as_bytes();
        let _one = self.changing.lock().await;
        // As it is by now, which may be another than at the start of the start.
        let record = self.record(&record.id).unwrap_or_else(|| record.clone());
        Ok(self.store.put_box(crate::store::StoredBox { record, token_hash }).await?)
    }
}

/// Marks the processes of one command in a box.
const MARK: &str = "AGENTBOX_COMMAND";

/// Ends a command in a box whose person has gone: engines leave it running.
pub struct HangUp {
    core: Arc<Core>,
    boxes: boxes::Boxes,
    record: boxes::Record,
    user: String,
    mark: String,
    /// As long as the command runs, or is being ended.
    _used: Session,
}

impl HangUp {
    /// Why a command could not be started, when the box has no room for it.
    pub(crate) async fn why_not_started(&self) -> Option<ControlError> {
        crate::strain::why_not_started(&self.boxes, &self.record).await
    }

    /// In the background. A process that changed its environment has left on purpose.
    pub fn end(self) {
        let script = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null | \
            grep -qxF \"$0\" && kill -HUP ${p#/proc/}; done; true";
        let spec = ExecSpec {
            argv: vec!["sh".into(), "-c".into(), script.into(), self.mark],
            user: Some(self.user),
            ..ExecSpec::default()
        };
        self.core.tasks.spawn(async move {
            let ended = async {
                let mut exec = self.boxes.exec(&self.record, spec).await?;
                while exec.output.next().await?.is_some() {}
                Ok::<_, boxes::Error>(())
            };
            if !matches!(tokio::time::timeout(PATIENCE, ended).await, Ok(Ok(()))) {
                tracing::debug!("a command in {} may go on", self.record.name);
            }
        });
    }
}

/// While this lives, the engine's event about the start is no news.
struct Starting {
    core: Arc<Core>,
    id: BoxId,
}

impl Starting {
    fn mark(core: &Arc<Core>, id: &BoxId) -> Self {
        let this = Self { core: core.clone(), id: id.clone() };
        this.set(true);
        this
    }

    fn set(&self, starting: bool) {
        if let Some(known) = self.core.state().boxes.get_mut(&self.id) {
            known.starting = starting;
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.set(false);
    }
}
