//! The settings there are, and what each may be.

use protocol::links::EngineKind;
use protocol::sessions::{Agent, is_session_name};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[serde(expecting = "lines such as `approvals:` with keys below them")]
pub struct Settings {
    #[serde(deserialize_with = "or_default")]
    pub engine: Engine,
    #[serde(rename = "box", deserialize_with = "or_default")]
    pub boxes: Boxes,
    #[serde(deserialize_with = "or_default")]
    pub approvals: Approvals,
    #[serde(deserialize_with = "or_default")]
    pub secrets: Secrets,
    /// By service. Whether there is such a service is not known here.
    #[serde(deserialize_with = "integrations")]
    pub integrations: BTreeMap<String, Integration>,
    #[serde(deserialize_with = "or_default")]
    pub gh: Gh,
    #[serde(deserialize_with = "or_default")]
    pub relay: Relay,
    #[serde(deserialize_with = "or_default")]
    pub checkpoint: Checkpoint,
    #[serde(deserialize_with = "or_default")]
    pub proxy: Proxy,
    #[serde(deserialize_with = "or_default")]
    pub egress: Egress,
    #[serde(deserialize_with = "or_default")]
    pub claude: AgentSettings,
    #[serde(deserialize_with = "or_default")]
    pub codex: AgentSettings,
    #[serde(deserialize_with = "or_default")]
    pub opencode: AgentSettings,
    #[serde(deserialize_with = "or_default")]
    pub autopause: Autopause,
    #[serde(deserialize_with = "or_default")]
    pub queue: Queue,
    #[serde(deserialize_with = "or_default")]
    pub update: Update,
    #[serde(deserialize_with = "or_default")]
    pub desktop: Desktop,
    #[serde(deserialize_with = "or_default")]
    pub attach: Attach,
    #[serde(deserialize_with = "or_default")]
    pub code: Code,
    #[serde(deserialize_with = "or_default")]
    pub shell: Shell,
    #[serde(deserialize_with = "or_default")]
    pub workspace: WorkspaceFile,
}

/// How boxes get out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Egress {
    #[serde(deserialize_with = "or_default")]
    pub mode: protocol::egress::EgressMode,
}

/// The app in the tray.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Desktop {
    /// It starts when the person logs in.
    pub launch_at_login: bool,
}

/// How sessions are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Attach {
    #[serde(deserialize_with = "or_default")]
    pub open_in: OpenIn,
}

/// Where a session is shown, in a terminal that can be asked for another place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OpenIn {
    #[default]
    Split,
    Window,
    Tab,
    Same,
}

/// How `agentbox code` opens a box.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Code {
    #[serde(deserialize_with = "or_default")]
    pub ide: Ide,
    /// The editor gets a terminal for the log of each service.
    pub auto_terminals: bool,
    /// The box is ready before the editor opens.
    pub wait: bool,
    /// For at most so long.
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ide {
    /// VS Code, else Cursor.
    #[default]
    Auto,
    Vscode,
    Cursor,
}

impl Default for Code {
    fn default() -> Self {
        Self { ide: Ide::Auto, auto_terminals: true, wait: true, timeout_ms: 120_000 }
    }
}

/// How `agentbox shell` begins.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Shell {
    /// A user of the box; none means the one agents work as.
    pub user: Option<String>,
    /// It reads a profile.
    pub login: bool,
    /// It goes on when its terminal closes.
    pub tmux: bool,
}

impl Default for Shell {
    fn default() -> Self {
        Self { user: None, login: true, tmux: true }
    }
}

/// What the person thinks of a repository's `agentbox.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct WorkspaceFile {
    /// SHA-256 of the one text that may also loosen.
    pub trusted: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Update {
    /// Where releases are announced; without it nobody is asked.
    #[serde(deserialize_with = "feed")]
    pub feed: Option<String>,
}

impl Settings {
    pub fn agent(&self, agent: Agent) -> &AgentSettings {
        match agent {
            Agent::Claude => &self.claude,
            Agent::Codex => &self.codex,
            Agent::Opencode => &self.opencode,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Checkpoint {
    /// How many checkpoints one may build on before the next is made of one layer.
    pub max_layers: u32,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { max_layers: 3 }
    }
}

/// How one of the agents is started in boxes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct AgentSettings {
    /// Its session's name; none means the agent's own.
    #[serde(deserialize_with = "session_name")]
    pub session_name: Option<String>,
    /// It need not ask before each step, because a box keeps it in. None means yes.
    pub dangerously_skip_permissions: Option<bool>,
    /// The person's own login of the agent may be given to boxes.
    pub login: bool,
    /// The person's own settings of the agent are brought to boxes.
    pub sync: bool,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { session_name: None, dangerously_skip_permissions: None, login: true, sync: true }
    }
}

impl AgentSettings {
    pub fn skips_permissions(&self) -> bool {
        self.dangerously_skip_permissions.unwrap_or(true)
    }
}

fn session_name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(from)?;
    match name {
        Some(name) if !is_session_name(&name) => Err(D::Error::custom(format!(
            "sessionName: {name:?} is no name of a session: letters, digits, - and _"
        ))),
        name => Ok(name),
    }
}

/// When boxes that nobody uses are frozen.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Autopause {
    pub enabled: bool,
    /// Below and at this number none is frozen.
    pub max_running_boxes: u32,
    /// How long a box must have been idle.
    pub idle_minutes: u32,
}

impl Default for Autopause {
    fn default() -> Self {
        Self { enabled: true, max_running_boxes: 5, idle_minutes: 5 }
    }
}

/// When a background job may begin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Queue {
    /// While fewer boxes run or are being made.
    pub max_concurrent: u32,
    /// While fewer agents work, whatever the number of boxes; 0 is off.
    pub max_working: u32,
    /// How long an agent that is done or waits still counts as working.
    pub idle_grace_seconds: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { max_concurrent: 5, max_working: 0, idle_grace_seconds: 15 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Engine {
    /// `unix:///path/to.sock`; none means the usual places.
    pub host: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub channel: Channel,
    /// What the engine is taken for, whatever it says of itself.
    #[serde(deserialize_with = "or_default")]
    pub kind: EngineKind,
}

/// The names by which boxes' web apps and screens are reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Proxy {
    /// On this computer's loopback; 0 switches the names off.
    pub port: u16,
    /// Whether Portless gets routes to boxes when its proxy runs.
    pub portless: bool,
}

impl Default for Proxy {
    fn default() -> Self {
        Self { port: 1355, portless: true }
    }
}

/// How often one box may knock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Relay {
    pub calls_per_minute: u32,
    pub events_per_minute: u32,
}

impl Default for Relay {
    fn default() -> Self {
        Self { calls_per_minute: 240, events_per_minute: 600 }
    }
}

/// How a box reaches the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Channel {
    /// By mounted sockets where the engine runs on this machine's kernel, else through the engine.
    #[default]
    Auto,
    Socket,
    Exec,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Boxes {
    /// An image to use instead of the built one.
    pub image: Option<String>,
    /// Certificate files boxes trust besides the public ones. None means those the host has added
    /// locally; an empty list means none.
    pub extra_cas: Option<Vec<PathBuf>>,
    /// The most one copy between a box and the host may carry.
    pub cp_max_bytes: u64,
    /// How much the built image has in it.
    #[serde(deserialize_with = "or_default")]
    pub stage: Stage,
    /// Whether boxes have a screen, where their image has one.
    pub vnc: bool,
    /// Whether boxes have a container engine of their own.
    #[serde(deserialize_with = "or_default")]
    pub docker: InnerDocker,
    /// Files with settings that git ignores come along into new boxes.
    pub with_env: bool,
    /// A box that was down takes over what is new on the host when an agent is started in it.
    pub resync_on_start: bool,
    /// How much of the computer a new box may use: `4g`, `1.5`, a number of processes, `20g`.
    #[serde(deserialize_with = "size")]
    pub memory: Option<u64>,
    #[serde(deserialize_with = "cpus")]
    pub cpus: Option<u64>,
    pub pids_limit: Option<u64>,
    #[serde(deserialize_with = "size")]
    pub disk: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    Core,
    Desktop,
    #[default]
    Full,
}

/// An engine in a box takes powers that nothing in a repository may give it, so a compose file there
/// decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InnerDocker {
    /// No, and whoever makes a box for a project with a compose file is told how to have one.
    #[default]
    Auto,
    On,
    Off,
}

impl Default for Boxes {
    fn default() -> Self {
        Self {
            image: None,
            extra_cas: None,
            cp_max_bytes: 100 * 1024 * 1024,
            stage: Stage::default(),
            vnc: true,
            docker: InnerDocker::default(),
            with_env: false,
            resync_on_start: true,
            memory: None,
            cpus: None,
            pids_limit: None,
            disk: None,
        }
    }
}

impl Boxes {
    pub fn limits(&self) -> protocol::Limits {
        protocol::Limits {
            memory_bytes: self.memory,
            nano_cpus: self.cpus,
            pids: self.pids_limit,
            disk_bytes: self.disk,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Approvals {
    /// Seconds a question waits before it is a no.
    pub timeout_seconds: u64,
    #[serde(deserialize_with = "or_default")]
    pub mode: ApprovalMode,
    /// `22:00-07:00`, in local time: no dialogs and notifications then.
    pub quiet: Option<QuietHours>,
    /// A program that is asked as well, and its arguments. The program is an absolute path or a
    /// name to be looked for, never a path relative to wherever the host happens to run.
    #[serde(deserialize_with = "prompt_command")]
    pub prompt_command: Option<Vec<String>>,
    #[serde(deserialize_with = "or_default")]
    pub when_nobody_watches: WhenNobody,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            timeout_seconds: 15 * 60,
            mode: ApprovalMode::default(),
            quiet: None,
            prompt_command: None,
            when_nobody_watches: WhenNobody::default(),
        }
    }
}

impl Approvals {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
}

/// Which writes are done without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalMode {
    /// None.
    #[default]
    Ask,
    /// Those that stay on the box's own branch or in its folder.
    Safe,
}

/// What becomes of a question when no surface can show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WhenNobody {
    /// It waits where there is a desktop, and is a no where there is none.
    #[default]
    Auto,
    /// It waits for someone to come, until its time is up.
    Wait,
    /// It is a no at once.
    Deny,
}

/// Two minutes of the day, never the same; `to` is the first that is not quiet any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    pub from: u16,
    pub to: u16,
}

impl QuietHours {
    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute_of_day(from)?, minute_of_day(to)?);
        (from != to).then_some(Self { from, to })
    }
}

fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, below: u16| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|n: &u16| digits && *n < below)
    };
    let whole = number(minutes, 60).filter(|_| minutes.len() == 2)?;
    Some(number(hours, 24)? * 60 + whole)
}

impl<'de> Deserialize<'de> for QuietHours {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "quiet: {text:?} is no stretch of the day such as 22:00-07:00"
            ))
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Secrets {
    #[serde(deserialize_with = "or_default")]
    pub backend: SecretsBackend,
}

/// Where credentials are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretsBackend {
    #[default]
    Keychain,
    /// Files below the home, for machines without a keychain.
    File,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Integration {
    /// None means what the service itself starts with.
    pub enabled: Option<bool>,
    /// Its writes are done without a question.
    pub auto_approve_writes: bool,
    /// Another address of the service, for an own installation or a test. No slash at its end.
    #[serde(deserialize_with = "base_url")]
    pub base_url: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "keys below it")]
pub struct Gh {
    /// Whether `gh pr checkout` in a box may change the branch of the person's own work tree.
    pub checkout: bool,
}

impl Settings {
    /// What no single key can tell.
    pub(crate) fn checked(self) -> Result<Self, String> {
        if self.approvals.timeout_seconds == 0 {
            return Err("approvals.timeoutSeconds must be at least 1".into());
        }
        if self.checkpoint.max_layers == 0 {
            return Err("checkpoint.maxLayers must be at least 1".into());
        }
        if self.autopause.max_running_boxes == 0 {
            return Err("autopause.maxRunningBoxes must be at least 1".into());
        }
        if self.autopause.idle_minutes == 0 {
            return Err("autopause.idleMinutes must be at least 1".into());
        }
        if self.queue.max_concurrent == 0 {
            return Err("queue.maxConcurrent must be at least 1".into());
        }
        if self.boxes.cp_max_bytes == 0 {
            return Err("box.cpMaxBytes must be at least 1".into());
        }
        let is_digest = |text: &String| {
            text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        if self.workspace.trusted.as_ref().is_some_and(|text| !is_digest(text)) {
            return Err("workspace.trusted must be 64 hex digits".into());
        }
        // A certificate that is not there would only be missed by whoever needs it in a box.
        let certificates = self.boxes.extra_cas.iter().flatten();
        if let Some(file) = certificates.into_iter().find(|file| !file.exists()) {
            return Err(format!("box.extraCas: there is no file {}", file.display()));
        }
        Ok(self)
    }
}

/// `key:` with nothing after it is as good as no key.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A number or a text, as people write amounts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Whole(u64),
    Part(f64),
    Text(String),
}

impl Amount {
    fn text(&self) -> String {
        match self {
            Amount::Whole(n) => n.to_string(),
            Amount::Part(n) => n.to_string(),
            Amount::Text(text) => text.clone(),
        }
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(amount) = Option::<Amount>::deserialize(from)? else { return Ok(None) };
    let text = amount.text();
    let bad = || D::Error::custom(format!("{text:?} is no size such as 512m or 4g"));
    protocol::limits::parse_size(&text).map(Some).ok_or_else(bad)
}

fn cpus<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(amount) = Option::<Amount>::deserialize(from)? else { return Ok(None) };
    let text = amount.text();
    let bad = || D::Error::custom(format!("{text:?} is no number of processors such as 2 or 1.5"));
    protocol::limits::parse_cpus(&text).map(Some).ok_or_else(bad)
}

fn integrations<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Integration>, D::Error> {
    let given: Option<BTreeMap<String, Option<Integration>>> = Option::deserialize(from)?;
    let given = given.unwrap_or_default().into_iter();
    Ok(given.map(|(name, integration)| (name, integration.unwrap_or_default())).collect())
}

fn prompt_command<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    let Some(command) = Option::<Vec<String>>::deserialize(from)? else { return Ok(None) };
    let program = command.first().map_or("", String::as_str);
    let bare = !program.contains('/') && !["", ".", ".."].contains(&program);
    if !(bare || program.starts_with('/')) || command.iter().any(|word| word.contains('\0')) {
        return Err(D::Error::custom(format!(
            "promptCommand: {program:?} is neither a program's name nor an absolute path"
        )));
    }
    Ok(Some(command))
}

fn feed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    check_url(&text).map_err(|why| D::Error::custom(format!("feed: {text:?} {why}")))?;
    Ok(Some(text))
}

fn base_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    check_url(&text).map_err(|why| D::Error::custom(format!("baseUrl: {text:?} {why}")))?;
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

/// A credential is sent there: readable on the way only for this machine itself.
fn check_url(text: &str) -> Result<(), &'static str> {
    let url: http::Uri = text.parse().map_err(|_| "is not an address")?;
    let host = url.host().unwrap_or_default();
    if host.is_empty() {
        return Err("is not an address such as https://api.example.com/v1");
    }
    if url.authority().is_some_and(|a| a.as_str().contains('@')) || url.query().is_some() {
        return Err("must be an address without a login and a query");
    }
    match url.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_loopback(host) => Ok(()),
        _ => Err("must begin with https:// (http:// only to this machine)"),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        let given: Option<Settings> = serde_norway::from_str(text).map_err(|e| e.to_string())?;
        given.unwrap_or_default().checked()
    }

    #[track_caller]
    fn assert_refused(text: &str, said: &[&str]) {
        let why = parse(text).expect_err(text);
        for part in said {
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        for text in ["", "# nothing\n", "engine:\nbox:\napprovals:\nsecrets:\nintegrations:\ngh:\n"]
        {
            assert_eq!(parse(text).unwrap(), Settings::default(), "{text}");
        }
        let s = Settings::default();
        assert_eq!(s.engine.channel, Channel::Auto);
        assert_eq!(s.boxes.cp_max_bytes, 104_857_600);
        assert_eq!((s.boxes.stage, s.boxes.vnc), (Stage::Full, true));
        assert_eq!(s.boxes.docker, InnerDocker::Auto);
        assert_eq!(s.approvals.mode, ApprovalMode::Ask);
        assert_eq!(s.approvals.when_nobody_watches, WhenNobody::Auto);
        assert_eq!(s.secrets.backend, SecretsBackend::Keychain);
        assert!(!s.gh.checkout);
        assert_eq!(s.queue, Queue { max_concurrent: 5, max_working: 0, idle_grace_seconds: 15 });
        assert_eq!(s.proxy, Proxy { port: 1355, portless: true });
    }

    #[test]
    fn keys_reach_their_fields() {
        let s = parse(
            "engine: {host: 'unix:///x.sock', channel: exec, kind: orbstack}
proxy: {port: 0, portless: false}
box: {extraCas: [/etc], image: mine, cpMaxBytes: 5, stage: desktop, vnc: false, docker: on}
approvals: {timeoutSeconds: 60, mode: safe, quiet: 22:00-07:00, promptCommand: [dmenu, -i], whenNobodyWatches: deny}
secrets: {backend: file}
integrations: {notion: {enabled: true, autoApproveWrites: true, baseUrl: 'https://n.example/v1/'}, linear: , trello: {enabled: }}
gh: {checkout: true}
update: {feed: 'https://example.org/agentbox/latest.json'}",
        )
        .unwrap();
        assert_eq!(s.engine.host.as_deref(), Some("unix:///x.sock"));
        assert_eq!((s.engine.channel, s.engine.kind), (Channel::Exec, EngineKind::OrbStack));
        assert_eq!(s.proxy, Proxy { port: 0, portless: false });
        assert_eq!(s.boxes.extra_cas, Some(vec!["/etc".into()]));
        assert_eq!((s.boxes.image.as_deref(), s.boxes.cp_max_bytes), (Some("mine"), 5));
        assert_eq!((s.boxes.stage, s.boxes.vnc), (Stage::Desktop, false));
        assert_eq!(s.boxes.docker, InnerDocker::On);
        assert_eq!(s.approvals.timeout(), Duration::from_secs(60));
        assert_eq!(s.approvals.mode, ApprovalMode::Safe);
        assert_eq!(s.approvals.quiet, Some(QuietHours { from: 22 * 60, to: 7 * 60 }));
        assert_eq!(s.approvals.prompt_command, Some(vec!["dmenu".into(), "-i".into()]));
        assert_eq!(s.approvals.when_nobody_watches, WhenNobody::Deny);
        assert_eq!(s.secrets.backend, SecretsBackend::File);
        let notion = &s.integrations["notion"];
        assert_eq!((notion.enabled, notion.auto_approve_writes), (Some(true), true));
        assert_eq!(notion.base_url.as_deref(), Some("https://n.example/v1"));
        assert_eq!(s.integrations["linear"], Integration::default());
        assert_eq!(s.integrations["trello"].enabled, None);
        assert!(s.gh.checkout);
        assert_eq!(s.update.feed.as_deref(), Some("https://example.org/agentbox/latest.json"));
        assert_refused("update: {feed: 'http://example.org/x'}", &["feed", "https://"]);
    }

    #[test]
    fn a_misspelt_key_is_named() {
        assert_refused("approvals: {timeout: 5}", &["approvals", "`timeout`", "timeoutSeconds"]);
        assert_refused("aprovals: {}", &["aprovals", "approvals"]);
        assert_refused(
            "integrations: {notion: {enable: true}}",
            &["integrations.notion", "`enable`"],
        );
        assert_refused("box: {autoApproveHostActions: true}", &["autoApproveHostActions"]);
        assert_refused("gh:\n  checkout: maybe\n", &["gh.checkout", "line 2"]);
        assert_refused("- a\n", &["lines such as"]);
        assert_refused("gh: {checkout: true}\ngh: {checkout: false}\n", &["duplicate"]);
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        assert_refused("approvals: {timeoutSeconds: 0}", &["timeoutSeconds"]);
        assert_refused("checkpoint: {maxLayers: 0}", &["maxLayers"]);
        assert_refused("autopause: {maxRunningBoxes: 0}", &["autopause.maxRunningBoxes"]);
        assert_refused("autopause: {idleMinutes: 0}", &["autopause.idleMinutes"]);
        assert_refused("queue: {maxConcurrent: 0}", &["queue.maxConcurrent"]);
        assert_refused("box: {cpMaxBytes: 0}", &["cpMaxBytes"]);
        assert_refused("box: {cpMaxBytes: -1}", &["cpMaxBytes"]);
        assert_refused("box: {stage: huge}", &["box.stage", "core", "desktop", "full"]);
        assert_refused("box: {docker: maybe}", &["box.docker", "auto", "on", "off"]);
        assert_refused(
            "box: {extraCas: [/nope.crt]}",
            &["box.extraCas: there is no file /nope.crt"],
        );
        assert_refused("approvals: {mode: never}", &["approvals.mode", "never", "ask", "safe"]);
        assert_refused("engine: {channel: tcp}", &["engine.channel", "socket"]);
        assert_refused("secrets: {backend: env}", &["secrets.backend", "keychain"]);
    }

    #[test]
    fn quiet_hours_are_two_times_of_the_day() {
        assert_eq!(QuietHours::parse("9:05 - 23:59"), Some(QuietHours { from: 545, to: 1439 }));
        for bad in [
            "",
            "22:00",
            "24:00-7:00",
            "22:60-7:00",
            "22-7",
            "7:00-07:00",
            "+1:00-2:00",
            "1:5-2:00",
        ] {
            assert_eq!(QuietHours::parse(bad), None, "{bad}");
            assert_refused(
                &format!("approvals: {{quiet: '{bad}'}}"),
                &["approvals: quiet: ", "22:00-07:00"],
            );
        }
    }

    #[test]
    fn a_prompt_command_does_not_depend_on_the_working_folder() {
        for good in ["[/usr/bin/dmenu]", "[dmenu, -p, '']", "[a..b]"] {
            assert!(parse(&format!("approvals: {{promptCommand: {good}}}")).is_ok(), "{good}");
        }
        for bad in ["[]", "['']", "[./ask]", "[bin/ask]", "[..]", "[a, \"b\\0\"]"] {
            let text = format!("approvals: {{promptCommand: {bad}}}");
            assert_refused(&text, &["approvals: promptCommand: ", "neither a program"]);
        }
        assert!(parse("approvals: {promptCommand: dmenu -i}").is_err());
    }

    #[test]
    fn credentials_go_over_tls_or_stay_on_this_machine() {
        for good in [
            "https://api.example.com",
            "https://api.example.com:8443/v1",
            "http://localhost:8080",
            "http://127.0.0.1:1/x",
            "http://[::1]:80",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for bad in [
            "http://api.example.com",
            "http://localhost.example.com",
            "http://localhost@example.com",
            "https://user:pass@example.com",
            "http://127.0.0.1.example.com",
            "http://0.0.0.0",
            "https://x/?a=b",
            "ftp://localhost",
            "localhost:8080",
            "/v1",
            "https://",
            "",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
            let text = format!("integrations: {{notion: {{baseUrl: '{bad}'}}}}");
            assert_refused(&text, &["integrations.notion: baseUrl: "]);
        }
    }
}
