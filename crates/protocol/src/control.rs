//! The control socket: what the CLI, the tray and the window ask of the host.

use crate::boxes::{BoxView, Progress};
use crate::carry::CarryChoice;
use crate::conversations::{FindConversations, RelaunchAgents};
#[allow(unused_imports, reason = "named beside the requests they answer")]
use crate::egress::{
    CaView, EgressChange, EgressChanged, EgressChecked, EgressExplained, EgressFile, EgressMode,
    EgressPlace, EgressSuggested, EgressView, PolicyForm, PolicyOf, PolicyView, Traffic,
    TrafficQuery,
};
use crate::events::BoxEvent;
use crate::integrations::{Layer, SecretScope, SecretText};
#[allow(unused_imports, reason = "named beside the requests they answer")]
use crate::links::{EditorLink, EngineKind, Link, LinkTo, SshConfig, SshHost, TasksFile};
use crate::looking::{BranchFate, Usage};
use crate::question::{Outcome, Question, Surface, Verdict};
use crate::queue::{JobCounts, JobStatus, JobView, SubmitJob, Until};
use crate::sessions::{Agent, StartSession};
use crate::{BoxId, GrantId, JobId, Limits, Millis, QuestionId, SecretId};
use serde::{Deserialize, Serialize};

/// One call. The reply's type is named beside each variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    tag = "method",
    content = "params",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Request {
    /// → [`HostStatus`]
    Status,
    /// → `Vec<Check>`
    Doctor,
    /// → `Vec<BoxView>`, by project and index
    Boxes,
    /// → [`BoxView`], with [`HostEvent::Progress`] on the way
    CreateBox(CreateBox),
    /// → [`BoxView`]
    StartBox { target: Target },
    /// → [`BoxView`]
    StopBox { target: Target },
    /// What destroying would lose. → [`Loss`]
    WhatIfDestroyed { target: Target },
    /// → [`Destroyed`]
    DestroyBox {
        target: Target,
        /// None: deleted when it has no commits of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "bindings", ts(optional))]
        branch: Option<BranchFate>,
    },
    /// Runs a command in a box; Stdin/Stdout/Stderr/Resize frames flow. → [`Exited`]
    Exec(Exec),
    /// → `Vec<Question>`, oldest first
    Questions,
    /// → `()`
    Answer { id: QuestionId, digest: String, verdict: Verdict, surface: Surface },
    /// The newest records that fit, oldest first. → `Vec<AuditRecord>`
    Audit(AuditQuery),
    /// → [`crate::audit::AuditVerdict`]
    AuditVerify,
    /// → `Vec<Grant>`
    Grants,
    /// → `()`
    RevokeGrant { id: GrantId },
    /// A box's questions are denied at once for so many seconds; none ends that. → [`BoxView`]
    Mute {
        target: Target,
        #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
        seconds: Option<u64>,
    },
    /// No dialogs and notifications for so many seconds; none ends that. → [`HostStatus`]
    Quiet {
        #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
        seconds: Option<u64>,
    },
    /// What boxes told, oldest first: at most `limit` with an id above `since`, the newest when
    /// there are more. → `Vec<BoxEvent>`
    Events {
        target: Option<Target>,
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        since: u64,
        limit: u32,
    },
    /// The same, and then what comes, as [`HostEvent::Told`] until the client leaves. Who follows
    /// these answers no questions. → never
    FollowEvents {
        target: Option<Target>,
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        since: u64,
        limit: u32,
    },
    /// Does for a box what it could ask for itself, without asking: the person typed it. → `Envelope`
    Act {
        target: Target,
        call: String,
        #[cfg_attr(feature = "bindings", ts(type = "unknown"))]
        with: serde_json::Value,
    },
    /// The remotes a box was registered with against those its project has now; `apply` takes the
    /// new ones. → [`Remotes`]
    Remotes { target: Target, apply: bool },
    /// The branch a box's pushes go to at a remote; none is its own. → [`BoxView`]
    SetBranch { target: Target, branch: Option<String> },
    /// → `Vec<CheckpointView>`, newest first
    Checkpoints { target: Option<Target> },
    /// → `()`
    RemoveCheckpoint { id: String },
    /// → `Vec<SecretView>`
    Secrets,
    /// → `()`
    SetSecret {
        id: SecretId,
        value: SecretText,
        /// Whose it is; none is everybody's.
        #[serde(default)]
        scope: SecretScope,
        /// The only hosts it may be sent to; none keeps what was said before.
        #[serde(default)]
        hosts: Option<Vec<String>>,
    },
    /// Whether there was one. → `bool`
    RemoveSecret {
        id: SecretId,
        #[serde(default)]
        scope: SecretScope,
    },
    /// → `Tried`
    TestSecret {
        id: SecretId,
        #[serde(default)]
        scope: SecretScope,
    },
    /// As they are for the folder's project. → `Vec<IntegrationView>`
    Integrations { cwd: Option<String> },
    /// → `IntegrationView`
    SetIntegration { service: String, enabled: bool, layer: Layer, cwd: Option<String> },
    /// → `Tried`
    TestIntegration { service: String, cwd: Option<String> },
    /// Events until the client leaves; the first is [`HostEvent::Snapshot`]. → never
    Subscribe,
    /// A person has this box's page before them, for as long as this connection is kept: what they see
    /// there is told by no notification. → never
    InFront { id: BoxId },
    /// Opens the window, or brings it to the front, at a page (`inbox`, `boxes`, `box/<id>`). → `()`
    ShowWindow { page: String },
    /// An agent is about to log in inside a box, which is refused where that is switched off.
    /// → [`BoxView`]
    WillLogIn { target: Target, agent: Agent },
    /// Sessions of a running box, oldest first. → `Vec<SessionView>`
    Sessions { target: Target },
    /// The box is brought up first. → `SessionView`
    StartSession(StartSession),
    /// Whether there was one. → `bool`
    EndSession { target: Target, name: String },
    /// Asks a headless host to make room for a desktop one. → `()`
    HandOver,
    /// Ends the host; boxes go on. → `()`
    Stop,
    // Copies and checkpoints.
    /// The box a person means. → [`BoxView`]
    FindBox { target: Target },
    /// The box freezes for a moment. → [`CheckpointView`], with [`HostEvent::Progress`] on the way
    CreateCheckpoint(CreateCheckpoint),
    /// What new boxes of a project start from; none is its built image again, for the folder's
    /// project. → `()`
    SetDefaultCheckpoint { id: Option<String>, cwd: Option<String> },
    // ---- addresses
    /// Brings a box up and says where it is reached. → [`Link`]
    /// `engine` is what the engine is taken for, where a command line says so.
    Link {
        target: Target,
        to: LinkTo,
        loopback: bool,
        #[serde(default)]
        #[cfg_attr(feature = "bindings", ts(optional))]
        engine: Option<EngineKind>,
    },
    /// The same for an editor. → [`EditorLink`]
    EditorLink { target: Target },
    /// → [`SshConfig`]
    SshConfig,
    // Lifecycle and looking.
    /// Freezes a box; where the engine cannot, stops it. → [`BoxView`]
    PauseBox { target: Target },
    /// Lets a paused box go on. → [`BoxView`]
    UnpauseBox { target: Target },
    /// Brings back a box, or every box nobody has put to rest. → `Recovery`
    Recover { target: Option<Target> },
    /// Until the box runs and was let go, at most so long. → `Waited`
    WaitFor { target: Target, seconds: u32 },
    /// → `BoxDetails`
    Details { target: Target },
    /// What the box's first process said, as Stdout and Stderr frames. → `()`
    Logs { target: Target, tail: u32, follow: bool },
    /// What boxes use, as [`HostEvent::Usage`] until the client leaves. → never
    FollowUsage { target: Option<Target>, every_ms: u32 },
    /// A snapshot, then boxes as they change, until the client leaves. Who follows these answers no
    /// questions. → never
    FollowBoxes,
    /// The workspace of a box as a tar stream, in Stdout frames. → `Exported`
    ExportBox { target: Target },
    /// What is left behind; with `only`, that is removed. → `Pruned`
    Prune { all: bool, only: Option<Vec<String>> },
    // Choosing what to make a box from.
    /// Projects that boxes were made for and that are still there, the latest first.
    /// → `Vec<ProjectView>`
    Projects,
    /// What is in a folder that matters for a new box. → `FolderView`
    LookAtFolder { path: String },
    // Conversations.
    /// Those on this computer, newest first. → `Vec<ConversationView>`
    Conversations(FindConversations),
    /// Starts agents again that ran when the box went down; a box that does not run has none.
    /// → `Relaunch`
    RelaunchAgents(RelaunchAgents),
    /// Brings a box up and, when it was down and nobody works in it, what is new on the host to it.
    /// → `Resynced`
    Resync { target: Target },
    // Editors and ssh.
    /// A terminal in the editor for each service of a box. → [`TasksFile`]
    EditorTasks { target: Target, regenerate: bool },
    /// Brings a box up and says how ssh reaches it. → [`SshHost`]
    SshHost { target: Target },
    // Files from this computer.
    /// What `agentbox.yaml` wants copied into a box of this folder. → `CarryPlan`
    CarryPlan { workspace: String },
    // Tasks and services.
    /// As the box's supervisor told last, also of one that does not run. → `Option<BoxStatus>`
    Units { target: Target },
    // What a person changes about a box that is there.
    /// What they call it; none takes that away. → [`BoxView`]
    SetDisplayName { target: Target, name: Option<String> },
    /// How much it may use from now on; what is absent stays. → [`BoxView`]
    SetLimits { target: Target, limits: Limits },
    // ---- background jobs
    /// A box and an agent with something to do, when there is room. → `Submitted`
    SubmitJob(Box<SubmitJob>),
    /// → `Vec<JobView>`, oldest first
    Jobs,
    /// By its id or a unique beginning of it, with so many lines of its log. → `JobDetails`
    Job { id: String, tail: u32 },
    /// One that waits; with `kill` also one under way, whose box is taken back. → `JobView`
    CancelJob { id: String, kill: bool },
    /// Forgets jobs that are over, of these kinds. → `Vec<JobId>`
    ClearJobs { kinds: Vec<JobStatus> },
    /// → `Awaited`
    Await {
        until: Until,
        #[cfg_attr(feature = "bindings", ts(type = "number"))]
        timeout_ms: u64,
    },
    // ---- settings
    /// Sets a key in one of the person's own files; no value takes it out. → `()`
    SetSetting { key: String, value: Option<String>, layer: Layer, cwd: Option<String> },
    /// Writes one of those files anew, unless it is no longer what was opened: the SHA-256 of that, none
    /// when there was no file. → `()`
    WriteSettings { text: String, opened: Option<String>, layer: Layer, cwd: Option<String> },
    /// Every setting as it is for the project around a folder, or for all. → `SettingsView`
    Settings { cwd: Option<String> },
    // ---- what agents ask
    /// Agents of a box that have a plan or a question. → `Vec<AgentAsks>`
    AgentAsks { target: Target },
    // ---- what boxes send out
    /// How a box stands with the network. → [`EgressView`]
    Egress { target: Target },
    /// Gives a box another way out. One that gets or loses its network is stopped for that and started
    /// again: whoever asks for it has asked the person. → [`BoxView`], with [`HostEvent::Progress`] on the way
    SwitchEgress { target: Target, mode: EgressMode },
    /// A policy as it is now. → [`PolicyView`]
    EgressPolicy { of: PolicyOf, form: PolicyForm },
    /// What would become of a request. → [`EgressChecked`]
    CheckEgress { of: PolicyOf, url: String, method: String },
    /// Why a request was stopped: this one, or the box's last. → [`EgressExplained`]
    ExplainEgress { target: Target, event: Option<String> },
    /// Adds a rule to one of the person's own policies. → [`EgressChanged`]
    ChangeEgress(EgressChange),
    /// Reads every layer again, of a box or of all. → `Vec<EgressReloaded>`
    ReloadEgress { target: Option<Target> },
    /// One of the person's policy files; `place` is a project's or the global one. → [`EgressFile`]
    EgressFile { place: EgressPlace, agent: Option<Agent>, cwd: Option<String> },
    /// Writes it anew, unless it is no longer what was opened (SHA-256 of that, none when there was no
    /// file), or is no policy. → `Vec<EgressReloaded>`
    WriteEgressFile {
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<String>,
        text: String,
        opened: Option<String>,
    },
    /// The newest lines of traffic that fit, oldest first. → `Vec<Traffic>`
    Traffic(TrafficQuery),
    /// The same, and then what comes, as [`HostEvent::Traffic`] until the client leaves. → never
    FollowTraffic(TrafficQuery),
    /// The least policy under which a box's recorded traffic would have passed. → [`EgressSuggested`]
    SuggestEgress {
        target: Target,
        #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
        since: Option<Millis>,
    },
    /// How often boxes called agents' APIs. → `Vec<ApiUse>`
    ApiUse {
        target: Option<Target>,
        #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
        since: Option<Millis>,
    },
    /// → [`CaView`]
    EgressCa,
    /// A person's word on what a repository's policy file asks for, at this text of it. → [`EgressView`]
    AnswerRepository { target: Target, digest: String, accept: bool },
    /// A person knows that a host sent credentials back, and wants them put in again. Whether they were
    /// held back. → `bool`
    AcknowledgeEcho { host: String },
}

/// Which box is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Target {
    /// An index, id, unique id prefix or name; none means the only box of the folder's project.
    pub query: Option<String>,
    /// The folder the person is in.
    pub cwd: Option<String>,
}

impl Target {
    pub fn id(id: &BoxId) -> Self {
        Self { query: Some(id.to_string()), cwd: None }
    }
}

/// Which records of the trail are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct AuditQuery {
    pub target: Option<Target>,
    /// Of these kinds only; empty means all.
    pub kinds: Vec<String>,
    /// Not before this moment.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub since: Option<Millis>,
    /// Before this moment.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub until: Option<Millis>,
    /// In the summary, whatever the case.
    pub text: Option<String>,
    /// Only records after this number, and then the oldest first ones: for walking the whole trail.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub after: Option<u64>,
    pub limit: u32,
}

/// A captured state of a box, as an image of the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CheckpointView {
    /// The image's name on the engine.
    pub id: String,
    pub name: String,
    pub project: String,
    pub project_root: String,
    pub box_name: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub created_at: Millis,
    /// New boxes of the project start from it.
    pub default: bool,
    #[serde(default)]
    pub kind: CheckpointKind,
    /// The checkpoints it builds on, nearest first.
    #[serde(default)]
    pub parents: Vec<String>,
    /// What it adds on the engine's disk.
    #[serde(default)]
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub bytes: u64,
    /// The built image at its bottom; none when it is not known.
    #[serde(default)]
    pub base: Option<String>,
    /// Files such as `.env` are in it.
    #[serde(default)]
    pub includes_env: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum CheckpointKind {
    /// What the box changed, on top of what it was made from.
    #[default]
    Layered,
    /// All of it in one layer.
    Flattened,
}

/// A box is to be captured as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CreateCheckpoint {
    pub target: Target,
    /// The box's name and a number when absent.
    pub name: Option<String>,
    /// In one layer, however few it builds on.
    pub merged: bool,
    /// New boxes of the project start from it.
    pub set_default: bool,
    /// One of that name goes once the new one is there.
    pub replace: bool,
    /// Files such as `.env` are captured, too.
    pub include_env: bool,
}

/// A box's remotes, then and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Remotes {
    pub registered: Vec<RemoteView>,
    pub current: Vec<RemoteView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct RemoteView {
    pub name: String,
    /// Without user information.
    pub fetch: String,
    pub push: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct CreateBox {
    /// Absolute path of the project folder.
    pub workspace: String,
    pub name: Option<String>,
    pub image: Option<String>,
    /// A screen, or none; what the settings say unless it is given.
    #[serde(default)]
    pub vnc: Option<bool>,
    /// A container engine of its own, or none; what the settings say unless it is given.
    #[serde(default)]
    pub docker: Option<bool>,
    /// A checkpoint of the project to start from, by name or id; none is the project's default.
    pub snapshot: Option<String>,
    /// A commit to start from; what is uncommitted comes along as far as it fits.
    #[serde(default)]
    pub from_branch: Option<String>,
    /// An existing branch to work on, without anything uncommitted.
    #[serde(default)]
    pub use_branch: Option<String>,
    /// Settings that git ignores come along; none is what the settings say.
    #[serde(default)]
    pub with_env: Option<bool>,
    #[serde(default)]
    pub limits: Limits,
    /// What was made stays when making the box fails.
    #[serde(default)]
    pub keep_on_failure: bool,
    /// What was decided about the files `agentbox.yaml` wants copied; none is to be asked.
    #[serde(default)]
    pub carry: Option<CarryChoice>,
    /// A file among them that cannot be copied is told, and the box is made all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "bindings", ts(as = "Option<bool>", optional))]
    pub carry_best_effort: bool,
    /// It is made to its end when whoever asked for it leaves, unless they call it off.
    #[serde(default)]
    pub goes_on: bool,
    /// Names at Portless, or none; what the settings say unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(optional))]
    pub portless: Option<bool>,
    /// Agents that get nothing of the person's settings of them in this box.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "bindings", ts(as = "Option<Vec<Agent>>", optional))]
    pub isolate: Vec<Agent>,
    /// How it gets out; what the settings say unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(optional))]
    pub egress: Option<EgressMode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Exec {
    pub target: Target,
    pub argv: Vec<String>,
    pub tty: bool,
    pub cols: u16,
    pub rows: u16,
    /// Somebody else in the box than the agents' user, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "bindings", ts(optional))]
    pub user: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Exited {
    pub exit_code: i32,
}

/// What would be gone for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Loss {
    pub view: BoxView,
    /// Lines of `git status --porcelain` in the box, of a repository below the workspace with its place
    /// before them; none when that is not known, as of a box that is stopped.
    pub uncommitted: Option<Vec<String>>,
    /// Commits on its branch that are on no remote: “9f31c02 Check token expiry”. They stay when the
    /// branch does.
    #[serde(default)]
    pub unpushed: Vec<String>,
    /// How many there are in all; none when that is not known.
    #[serde(default)]
    pub unpushed_count: Option<u32>,
    /// Commits on other branches in the box: nobody else has them. None when that is not known.
    #[serde(default)]
    pub stranded: Option<Vec<String>>,
}

/// What a destroy did, object by object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Destroyed {
    pub view: BoxView,
    /// “container agentbox-x”, “network agentbox-x”, …
    pub removed: Vec<String>,
    /// What was gone already.
    #[serde(default)]
    pub absent: Vec<String>,
    /// What could not be removed, and why.
    pub failed: Vec<String>,
    /// Branches that stay in the person's repositories, because there are commits on them.
    #[serde(default)]
    pub kept_branches: Vec<String>,
    /// Branches made for commits that the box's own branch does not have, because a person works there.
    #[serde(default)]
    pub rescued: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct HostStatus {
    pub version: String,
    pub proto: u32,
    pub pid: u32,
    /// `desktop` or `headless`.
    pub kind: String,
    pub home: String,
    #[cfg_attr(feature = "bindings", ts(type = "number"))]
    pub started_at: Millis,
    pub engine: EngineStatus,
    /// What a person should know: no tray host, no notification daemon, no keyring.
    pub notices: Vec<Notice>,
    pub boxes: u32,
    pub questions: u32,
    /// No dialogs and notifications until then.
    #[cfg_attr(feature = "bindings", ts(type = "number | null"))]
    pub quiet_until: Option<Millis>,
    /// Background jobs that are not over.
    #[serde(default)]
    pub jobs: JobCounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct EngineStatus {
    pub reachable: bool,
    /// “Docker 20.10.24, API 1.41, at unix:///var/run/docker.sock”, or why it cannot be reached.
    pub detail: String,
    pub hint: Option<String>,
}

/// A part of the desktop that is missing or broken, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Notice {
    /// `tray`, `notifications`, `keyring`, …; one notice per part.
    pub part: String,
    pub message: String,
    pub hint: Option<String>,
}

/// One row of `agentbox doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct Check {
    pub group: String,
    pub label: String,
    pub level: Level,
    pub detail: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum Level {
    Ok,
    Info,
    Warn,
    Fail,
}

/// What changes while one watches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
#[allow(
    clippy::large_enum_variant,
    reason = "events are few and short-lived; a box around each would only be noise"
)]
pub enum HostEvent {
    /// Everything as it is now: first on every subscription, and again after a client fell behind.
    Snapshot {
        status: HostStatus,
        boxes: Vec<BoxView>,
        questions: Vec<Question>,
    },
    BoxChanged {
        view: BoxView,
    },
    BoxRemoved {
        id: BoxId,
    },
    Asked {
        question: Question,
    },
    /// The box asked for the very same again: it is still one question.
    AskedAgain {
        id: QuestionId,
        times: u32,
    },
    Resolved {
        id: QuestionId,
        box_name: String,
        outcome: Outcome,
    },
    Status {
        status: HostStatus,
    },
    /// A box told something.
    Told {
        event: BoxEvent,
    },
    Progress {
        progress: Progress,
    },
    /// What boxes use; only for those who asked.
    Usage {
        usage: Usage,
    },
    ShowWindow {
        page: String,
    },
    /// A background job came, began or ended; how many there are now.
    JobChanged {
        job: JobView,
        counts: JobCounts,
    },
    /// Jobs that were over are forgotten.
    JobsCleared {
        ids: Vec<JobId>,
    },
    /// Tasks and services of a box are not as they were; [`Request::Units`] says how they are.
    UnitsChanged {
        id: BoxId,
    },
    /// A box sent something out, or was kept from it; only for those who asked.
    Traffic {
        line: Traffic,
    },
}

/// A failure a client can act on. Only `code` may be matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub struct ControlError {
    pub code: ErrorCode,
    pub message: String,
    pub hints: Vec<String>,
}

impl ControlError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(export))]
pub enum ErrorCode {
    /// The request itself is wrong: bad name, ambiguous or unknown box.
    Usage,
    /// There is one already.
    Exists,
    /// No container engine answers.
    Engine,
    /// The image every box is built on is not there and cannot be had now.
    BaseImage,
    /// No question with that id is open.
    NotPending,
    /// The answer names another content than the question has.
    DigestMismatch,
    /// The answer came before a person could have read the question.
    TooSoon,
    /// This kind of question cannot be remembered.
    NotRememberable,
    /// The question has no such answer.
    NotOffered,
    /// The screen is locked: nothing can be allowed from it.
    Locked,
    /// It was tried and failed.
    Failed,
    /// It failed, and the box is kept as far as it was made.
    Unfinished,
}
