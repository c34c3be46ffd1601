//! Agents and shells in boxes, and what agents say they are doing.

use crate::api::Api;
use crate::asks::Said;
use crate::conversations::Opening;
use crate::core::Core;
use crate::engine::control_error;
use boxes::Record;
use protocol::BoxId;
use protocol::asks::Asks;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::conversations::Begin;
use protocol::ctl::{NewSession, SessionLine};
use protocol::events::BoxEvent;
use protocol::integrations::SecretText;
use protocol::sessions::{
    AGENT_EVENT, Agent, AgentReport, SessionKind, SessionView, StartSession, is_login,
    is_session_name, shell_session,
};
use settings::AgentSettings;
use std::collections::BTreeMap;
use std::sync::Arc;

type Reply<T> = Result<T, ControlError>;

/// A login shell, as a terminal would start it.
const SHELL: [&str; 2] = ["bash", "-l"];
/// Numbers tried for a shell without a name.
const MOST_SHELLS: u32 = 100;

impl Api {
    /// Agents and shells that run in a box, oldest first. A box that does not run has none.
    pub async fn sessions(&self, target: Target) -> Reply<Vec<SessionView>> {
        let id = self.find(&target)?;
        match self.core.box_state(&id) {
            BoxState::Running => {}
            BoxState::Paused => self.core.bring_up(&id).await?,
            _ => return Ok(Vec::new()),
        }
        let (boxes, record) = self.core.reach(&id).await?;
        let lines = boxes.sessions(&record).await.map_err(control_error)?;
        Ok(lines.into_iter().map(Core::session_view).collect())
    }

    pub async fn start_session(&self, start: StartSession) -> Reply<SessionView> {
        let id = self.find(&start.target)?;
        let _used = self.core.session(&id);
        self.core.bring_up(&id).await?;
        let (boxes, record) = self.core.reach(&id).await?;
        let (cols, rows) = (start.cols, start.rows);
        let plain = matches!(start.what, SessionKind::Shell { plain: true, .. });
        let named = |name: String| {
            let words = if plain { &SHELL[..1] } else { &SHELL[..] };
            let argv = words.iter().map(|word| (*word).to_owned()).collect();
            let env = BTreeMap::new();
            NewSession { name, argv, env, agent: None, conversation: None, cols, rows }
        };
        let mut said = None;
        let plan = match start.what {
            SessionKind::Agent { agent, name, args, env, sync, skip_permissions, begin } => {
                let mut settings =
                    self.core.settings_for(&record.project_root)?.agent(agent).clone();
                let name = name.or(settings.session_name.clone());
                let name = name.unwrap_or_else(|| agent.as_str().to_owned());
                if begin != Begin::Nothing {
                    // Nothing is brought under a conversation that goes on.
                    let lines = boxes.sessions(&record).await.map_err(control_error)?;
                    if lines.iter().any(|line| line.name == name) {
                        return Err(taken(&record, &name));
                    }
                }
                let wish = record.wishes.skip_permissions.get(&agent).copied();
                settings.dangerously_skip_permissions =
                    skip_permissions.or(wish).or(settings.dangerously_skip_permissions);
                said = skip_permissions;
                if sync && settings.sync && !record.wishes.isolated.contains(&agent) {
                    self.core.sync_agent(&boxes, &record, agent).await?;
                }
                self.core.note_agent(&id, agent).await?;
                let mut env = allowed(agent, env, &settings);
                self.note_login(&id, agent, &env).await?;
                // What a policy puts right on the way out; a login of the person's own goes before it.
                for (name, fake) in self.core.made_up(&record).await? {
                    if agent.variables().contains(&name.as_str()) {
                        env.entry(name).or_insert(fake);
                    }
                }
                let opening = self.core.opening(&boxes, &record, agent, &name, begin);
                let Opening { first, last, conversation } = Box::pin(opening).await?;
                let argv = command_line(agent, &settings, [first, args, last].concat());
                NewSession { name, argv, env, agent: Some(agent), conversation, cols, rows }
            }
            SessionKind::Shell { label: Some(label), .. } => named(shell_session(&label)),
            SessionKind::Shell { label: None, .. } => {
                let taken = boxes.sessions(&record).await.map_err(control_error)?;
                named(free_shell(&taken)?)
            }
        };
        if !is_session_name(&plan.name) {
            let text = format!("{:?} cannot be the name of a session", plan.name);
            return Err(ControlError::new(ErrorCode::Usage, text)
                .hint("letters, digits, - and _, at most 48."));
        }
        let started = boxes.start_session(&record, &plan).await.map_err(control_error)?;
        if !started {
            return Err(taken(&record, &plan.name));
        }
        if let Some(agent) = plan.agent {
            self.core.with_known(&id, |known| known.started.insert(agent));
            self.keep_wish(&id, agent, said).await?;
        }
        let created = crate::store::now() / 1000;
        let line = SessionLine { name: plan.name, created, attached: 0, agent: plan.agent };
        Ok(Core::session_view(line))
    }

    pub async fn end_session(&self, target: Target, name: &str) -> Reply<bool> {
        let id = self.find(&target)?;
        if self.core.box_state(&id) != BoxState::Running {
            return Ok(false);
        }
        let (boxes, record) = self.core.reach(&id).await?;
        let before = boxes.sessions(&record).await.map_err(control_error)?;
        let agent = before.into_iter().find(|line| line.name == name).and_then(|line| line.agent);
        let ended = boxes.end_session(&record, name).await.map_err(control_error)?;
        // It cannot tell any more.
        if let Some(agent) = agent.filter(|_| ended) {
            self.core.set_agent(&id, agent, None);
        }
        Ok(ended)
    }

    /// The person is about to log an agent in inside a box.
    pub async fn will_log_in(&self, target: &Target, agent: Agent) -> Reply<BoxView> {
        let id = self.find(target)?;
        let Some(record) = self.core.record(&id) else { return self.view(&id) };
        if !self.core.settings_for(&record.project_root)?.agent(agent).login {
            return Err(self.core.logins_are_off(agent, ErrorCode::Failed));
        }
        self.holds_login(&id, agent).await?;
        self.view(&id)
    }

    /// That the person said an agent of a box need not ask, or must. It holds for the box, so that an
    /// agent that comes back by itself comes back as it was.
    async fn keep_wish(&self, id: &BoxId, agent: Agent, said: Option<bool>) -> Reply<()> {
        let Some(mut record) = self.core.record(id) else { return Ok(()) };
        let before = record.wishes.skip_permissions.get(&agent).copied();
        let Some(skips) = said.filter(|said| before != Some(*said)) else { return Ok(()) };
        record.wishes.skip_permissions.insert(agent, skips);
        let how = if skips { "without asking" } else { "and asks before each step" };
        let summary = format!("{} works in {} {how}", agent.title(), record.name);
        let data = serde_json::json!({ "agent": agent, "skipPermissions": skips });
        self.core.change(record, "box-changed", summary, data).await
    }

    /// The box holds a login from now on; that is said wherever it is shown.
    async fn note_login(
        &self,
        id: &BoxId,
        agent: Agent,
        env: &BTreeMap<String, String>,
    ) -> Reply<()> {
        let names = || env.keys().filter(|name| is_personal(name));
        let Some(mut record) = self.core.record(id) else { return Ok(()) };
        let given = record.given.entry(agent).or_default();
        let before = given.len();
        given.extend(names().cloned());
        if given.len() > before {
            let data = serde_json::json!({ "agent": agent, "variables": given });
            let summary = format!("{} was given variables for {}", record.name, agent.title());
            self.core.change(record, "box-changed", summary, data).await?;
        }
        if names().any(|name| is_login(name)) { self.holds_login(id, agent).await } else { Ok(()) }
    }

    async fn holds_login(&self, id: &BoxId, agent: Agent) -> Reply<()> {
        let Some(mut record) = self.core.record(id) else { return Ok(()) };
        if !record.logins.insert(agent) {
            return Ok(());
        }
        let summary = format!("Box {} was given the login of {}", record.name, agent.title());
        let data = serde_json::json!({ "agent": agent });
        self.core.change(record, "box-changed", summary, data).await
    }
}

/// A login, or an address that may have one in it.
pub(crate) fn is_personal(variable: &str) -> bool {
    is_login(variable) || variable.ends_with("_BASE_URL")
}

fn taken(record: &Record, name: &str) -> ControlError {
    let text = format!("{} has a session {name} already", record.name);
    let hint = format!("agentbox attach {} shows it.", record.name);
    ControlError::new(ErrorCode::Exists, text).hint(hint)
}

/// Only what the agent knows, and no login where the person has switched that off.
pub(crate) fn allowed(
    agent: Agent,
    env: BTreeMap<String, SecretText>,
    settings: &AgentSettings,
) -> BTreeMap<String, String> {
    let known = agent.variables();
    env.into_iter()
        .filter(|(name, _)| known.contains(&name.as_str()))
        .filter(|(name, _)| settings.login || !is_login(name))
        .map(|(name, value)| (name, value.0))
        .collect()
}

/// The program with what the person wants and what a box makes safe to leave out: it cannot do
/// harm, so it need not ask before each step.
fn command_line(agent: Agent, settings: &AgentSettings, args: Vec<String>) -> Vec<String> {
    let (bypass, instead): (&str, &[&str]) = match agent {
        Agent::Claude => (
            "--dangerously-skip-permissions",
            &["--permission-mode", "--dangerously-skip-permissions"],
        ),
        Agent::Codex => (
            "--dangerously-bypass-approvals-and-sandbox",
            &[
                "--yolo",
                "--full-auto",
                "-a",
                "--ask-for-approval",
                "-s",
                "--sandbox",
                "--dangerously-bypass-approvals-and-sandbox",
            ],
        ),
        Agent::Opencode => ("", &[]),
    };
    let says = |arg: &String| {
        let word = arg.split_once('=').map_or(arg.as_str(), |(word, _)| word);
        instead.contains(&word)
    };
    let own = !args.iter().any(says);
    let bypass = Some(bypass).filter(|b| !b.is_empty() && own && settings.skips_permissions());
    // Codex runs hooks it was not asked about only with this; those in the image tell what it does.
    let hooks = (agent == Agent::Codex).then_some("--dangerously-bypass-hook-trust");
    let first = std::iter::once(agent.as_str()).chain(hooks).chain(bypass).map(str::to_owned);
    first.chain(args).collect()
}

fn free_shell(taken: &[SessionLine]) -> Reply<String> {
    let is_free = |name: &String| taken.iter().all(|line| line.name != *name);
    let names = (1..=MOST_SHELLS).map(|n| match n {
        1 => "shell".to_owned(),
        n => format!("shell-{n}"),
    });
    names.into_iter().find(is_free).ok_or_else(|| {
        ControlError::new(ErrorCode::Failed, "there are too many shells in this box")
            .hint("agentbox shell kill ends one.")
    })
}

impl Core {
    pub(crate) fn logins_are_off(&self, agent: Agent, code: ErrorCode) -> ControlError {
        let text = format!("boxes hold no login of {}: the settings say so", agent.title());
        ControlError::new(code, text).hint(format!(
            "set {}: {{login: true}} in {}.",
            agent.as_str(),
            self.home.join("config.yaml").display()
        ))
    }

    fn session_view(line: SessionLine) -> SessionView {
        let agent = line.agent.or_else(|| Agent::named(&line.name));
        SessionView {
            name: line.name,
            agent,
            attached: line.attached,
            created_at: line.created.saturating_mul(1000),
        }
    }

    /// A box that is touched runs afterwards.
    pub(crate) async fn bring_up(self: &Arc<Self>, id: &BoxId) -> Reply<()> {
        self.awake(id).await
    }

    /// Takes note of what a box said, where it is about its agents.
    pub(crate) fn heard(&self, event: &BoxEvent, asks: Option<Asks>) {
        if event.kind != AGENT_EVENT {
            return;
        }
        let report = event.payload.as_ref().map(|p| serde_json::from_str(p.as_str()));
        let Some(Ok(AgentReport { agent, state, clear_pending, .. })) = report else { return };
        let at = event.received_at;
        let said = state.map(|state| Said { state, clears: clear_pending, asks, at });
        self.set_agent(&event.box_id, agent, said);
    }

    fn set_agent(&self, id: &BoxId, agent: Agent, said: Option<Said>) {
        {
            let mut state = self.state();
            let Some(known) = state.boxes.get_mut(id) else { return };
            if !known.note_agent(agent, said) {
                return;
            }
        }
        self.send_view(id);
    }

    /// What agents said to an earlier host. That host had started those it gave something to.
    pub(crate) fn recall_agents(&self) {
        for event in self.events_log.of_agents() {
            self.heard(&event, None);
        }
        for known in self.state().boxes.values_mut() {
            let Record { logins, given, .. } = &known.record;
            known.started = logins.iter().chain(given.keys()).copied().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn a_box_makes_asking_unnecessary_unless_the_person_says_how() {
        let settings = AgentSettings::default();
        let line = |agent, args: &[&str]| command_line(agent, &settings, words(args)).join(" ");
        assert_eq!(line(Agent::Claude, &["hi"]), "claude --dangerously-skip-permissions hi");
        assert_eq!(
            line(Agent::Claude, &["--permission-mode=plan"]),
            "claude --permission-mode=plan"
        );
        assert_eq!(
            line(Agent::Codex, &["-s", "read-only"]),
            "codex --dangerously-bypass-hook-trust -s read-only"
        );
        assert_eq!(line(Agent::Opencode, &[]), "opencode");
        let careful =
            AgentSettings { dangerously_skip_permissions: Some(false), ..AgentSettings::default() };
        assert_eq!(command_line(Agent::Claude, &careful, vec![]), ["claude"]);
    }

    #[test]
    fn only_variables_of_the_agent_reach_it_and_logins_can_be_kept_back() {
        let env = |names: &[&str]| {
            let text = |name: &&str| ((*name).to_owned(), SecretText("v".into()));
            names.iter().map(text).collect::<BTreeMap<_, _>>()
        };
        let names = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GITHUB_TOKEN", "LD_PRELOAD"];
        let given = |settings: &AgentSettings| {
            allowed(Agent::Codex, env(&names), settings).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(given(&AgentSettings::default()), ["OPENAI_API_KEY", "OPENAI_BASE_URL"]);
        let without = AgentSettings { login: false, ..AgentSettings::default() };
        assert_eq!(given(&without), ["OPENAI_BASE_URL"]);
    }

    #[test]
    fn boxes_16_34_a_new_shell_takes_the_lowest_free_number() {
        let line =
            |name: &str| SessionLine { name: name.into(), created: 0, attached: 0, agent: None };
        assert_eq!(free_shell(&[]).unwrap(), "shell");
        assert_eq!(free_shell(&[line("shell"), line("shell-3")]).unwrap(), "shell-2");
    }
}
