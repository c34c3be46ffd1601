//! What people ask about boxes' ways out, and change in them.

use super::{Reply, Who, layers, project_of};
use crate::api::Api;
use crate::core::Core;
use crate::store::Lines;
use egress::check;
use egress::host_name::HostName;
use egress::policy::{Inputs, Policy, Rendered};
use protocol::boxes::BoxView;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::egress::{
    ApiUse, CaView, EgressChange, EgressChanged, EgressChecked, EgressExplained, EgressFile,
    EgressMode, EgressPlace, EgressReloaded, EgressSuggested, EgressVerdict, EgressView,
    InjectedCount, LayerState, LayerView, PolicyForm, PolicyOf, PolicyProblem, PolicyView, Traffic,
    TrafficAction, TrafficKind, TrafficQuery,
};
use protocol::sessions::Agent;
use protocol::text::visible;
use protocol::{BoxId, Millis, SecretId};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::broadcast;

/// The most lines one call gives, and that a suggestion is made from.
const MOST_LINES: u32 = 1000;
const MOST_READ: u32 = 20_000;
const DAY: Millis = 24 * 60 * 60 * 1000;

fn usage(text: impl Into<String>) -> ControlError {
    ControlError::new(ErrorCode::Usage, text)
}

/// The APIs of agents, by the hosts that answer prompts.
const APIS: [(&str, &str); 5] = [
    ("api.anthropic.com", "Anthropic"),
    ("api.openai.com", "OpenAI"),
    ("chatgpt.com", "ChatGPT"),
    ("generativelanguage.googleapis.com", "Gemini"),
    ("opencode.ai", "OpenCode"),
];

/// A policy and whose it is.
struct Wanted {
    mode: EgressMode,
    policy: Result<Rendered, Vec<PolicyProblem>>,
    layers: Vec<LayerView>,
    /// The box, or the project of one.
    of: (Option<BoxId>, Option<PathBuf>),
}

impl Api {
    fn who(&self, target: &Target) -> Reply<Who> {
        let id = self.find(target)?;
        let record = self.core.record(&id).ok_or_else(|| usage("the box is gone"))?;
        Ok(Who::of(&record))
    }

    pub async fn egress(&self, target: Target) -> Reply<EgressView> {
        let who = self.who(&target)?;
        self.core.egress_view(&who).await
    }

    pub async fn egress_policy(&self, of: PolicyOf, form: PolicyForm) -> Reply<PolicyView> {
        let wanted = self.wanted(of).await?;
        let (mode, layers) = (wanted.mode, wanted.layers);
        Ok(match wanted.policy {
            Ok(Rendered { policy, warnings }) => PolicyView {
                mode,
                text: policy.to_yaml(form),
                digest: Some(policy.digest()),
                layers,
                warnings: self.with_secrets(&policy, warnings, &wanted.of).await?,
                problems: Vec::new(),
            },
            Err(problems) => PolicyView { mode, layers, problems, ..PolicyView::default() },
        })
    }

    /// What is stored and what is named, against each other.
    async fn with_secrets(
        &self,
        policy: &Policy,
        mut warnings: Vec<PolicyProblem>,
        of: &(Option<BoxId>, Option<PathBuf>),
    ) -> Reply<Vec<PolicyProblem>> {
        let stored = self.core.resolver.stored(of.0.as_ref(), of.1.as_deref()).await;
        let stored = stored.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?;
        warnings.extend(egress::policy::lint::secrets(policy, &stored));
        Ok(warnings)
    }

    pub async fn check_egress(
        &self,
        of: PolicyOf,
        url: &str,
        method: &str,
    ) -> Reply<EgressChecked> {
        let wanted = self.wanted(of).await?;
        let policy = wanted.policy.map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            ControlError::new(ErrorCode::Failed, format!("there is no policy: {}", all.join("\n")))
        })?;
        let policy = policy.policy;
        if wanted.mode == EgressMode::Open {
            return Ok(EgressChecked {
                verdict: EgressVerdict::Allow,
                reason: None,
                method: visible(method),
                url: visible(url),
                rule: None,
                injects: Vec::new(),
                hint: Some("the box has a network of its own; nothing stands between.".into()),
            });
        }
        let request = check::read(url, method).map_err(|reason| {
            usage(format!("{} cannot be sent: {}", visible(url), egress::explain::why(reason)))
        })?;
        let would = policy.would(&request);
        let rule = would.rule.and_then(|at| policy.rule(at));
        let injects: Vec<SecretId> =
            rule.iter().flat_map(|(_, rule)| rule.secrets().cloned()).collect();
        let shown = format!(
            "{}://{}{}{}",
            request.scheme.as_str(),
            request.host.in_url(),
            if request.port == request.scheme.port() {
                String::new()
            } else {
                format!(":{}", request.port)
            },
            request.target.to_text()
        );
        let hint = match (would.verdict, would.reason) {
            (EgressVerdict::Deny, Some(reason)) => Some(egress::explain::why(reason).to_owned()),
            (EgressVerdict::Ask, _) => Some("A person would be asked.".to_owned()),
            _ => None,
        };
        Ok(EgressChecked {
            verdict: would.verdict,
            reason: would.reason,
            method: request.method.clone(),
            url: visible(&shown),
            rule: would.rule.and_then(|at| policy.seen(at)),
            injects,
            hint,
        })
    }

    /// A box's policy as it is in force; else as one would be.
    async fn wanted(&self, of: PolicyOf) -> Reply<Wanted> {
        if let Some(target) = &of.target {
            let who = self.who(target)?;
            return Ok(self.core.wanted_of(&who).await);
        }
        let root = project_of(of.cwd.as_deref()).await?;
        let mode = match of.mode {
            Some(mode) => mode,
            None => match &root {
                Some(root) => self.core.settings_for(root)?.egress.mode,
                None => self.core.settings.egress.mode,
            },
        };
        let agents: Vec<Agent> = of.agent.into_iter().collect();
        let found = layers::read(&layers::places(&self.core.home, root.as_deref(), &agents));
        let policy = if found.problems.is_empty() {
            let inputs = Inputs { mode, agents, layers: found.texts };
            egress::policy::render(&inputs).map_err(|problems| problems.0)
        } else {
            Err(found.problems)
        };
        Ok(Wanted { mode, policy, layers: found.views, of: (None, root) })
    }

    pub async fn explain_egress(
        &self,
        target: Target,
        event: Option<String>,
    ) -> Reply<EgressExplained> {
        let id = self.find(&target)?;
        self.core.egress.lines.settled_within().await;
        let line = match event {
            Some(event) => self.core.store.traffic_line(event).await?.filter(|l| l.box_id == id),
            None => {
                let last = Lines { box_id: Some(id), denied: true, limit: 1, ..Lines::default() };
                self.core.store.traffic(last).await?.pop()
            }
        };
        let line = line.ok_or_else(|| usage("no such request of the box is on record"))?;
        let why = line.reason.map(egress::explain::why).unwrap_or_default().to_owned();
        let hint = egress::explain::hint(&line);
        Ok(EgressExplained { line, why, hint })
    }

    pub async fn change_egress(&self, change: EgressChange) -> Reply<EgressChanged> {
        let who = match (change.place, &change.target.query) {
            (EgressPlace::Box, _) | (_, Some(_)) => self.who(&change.target)?,
            (_, None) => self.core.nobody(change.target.cwd.as_deref()).await?,
        };
        if change.place == EgressPlace::Box && !who.mode.is_controlled() {
            let text = format!("{} has a network of its own; rules do not hold it back", who.name);
            return Err(usage(text).hint(format!("agentbox egress mode {} balanced", who.name)));
        }
        self.core.change_egress(&who, &change).await
    }

    pub async fn reload_egress(&self, target: Option<Target>) -> Reply<Vec<EgressReloaded>> {
        let only = target.map(|target| self.who(&target)).transpose()?;
        Ok(self.core.reload_ways(|who| only.as_ref().is_none_or(|o| o.id == who.id)).await)
    }

    pub async fn egress_file(
        &self,
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<String>,
    ) -> Reply<EgressFile> {
        self.core.egress_file(place, agent, cwd.as_deref()).await
    }

    pub async fn write_egress_file(
        &self,
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<String>,
        text: String,
        opened: Option<String>,
    ) -> Reply<Vec<EgressReloaded>> {
        self.core.write_egress_file(place, agent, cwd.as_deref(), text, opened).await
    }

    pub async fn traffic(&self, query: TrafficQuery) -> Reply<Vec<Traffic>> {
        self.core.egress.lines.settled_within().await;
        let wanted = Lines {
            box_id: query.target.map(|t| self.find_past(&t)).transpose()?,
            denied: query.denied,
            since: query.since,
            before: query.before,
            text: query.text.filter(|text| !text.is_empty()),
            limit: query.limit.min(MOST_LINES),
        };
        Ok(self.core.store.traffic(wanted).await?)
    }

    /// Lines as they come, of the boxes that are wanted.
    pub(crate) fn follow_traffic(&self) -> broadcast::Receiver<Traffic> {
        self.core.egress.lines.follow()
    }

    pub async fn suggest_egress(
        &self,
        target: Target,
        since: Option<Millis>,
    ) -> Reply<EgressSuggested> {
        let id = self.find_past(&target)?;
        self.core.egress.lines.settled_within().await;
        let all = Lines { box_id: Some(id), since, limit: MOST_READ, ..Lines::default() };
        Ok(egress::suggest::suggest(&self.core.store.traffic(all).await?))
    }

    pub async fn api_use(
        &self,
        target: Option<Target>,
        since: Option<Millis>,
    ) -> Reply<Vec<ApiUse>> {
        let box_id = target.map(|target| self.find_past(&target)).transpose()?;
        self.core.egress.lines.settled_within().await;
        let all = Lines { box_id, since, limit: MOST_READ, ..Lines::default() };
        let lines = self.core.store.traffic(all).await?;
        Ok(used(&lines, |id| self.core.record(id).map(|record| record.name.to_string())))
    }

    pub fn egress_ca(&self) -> Reply<CaView> {
        let running = self.core.egress_running()?;
        let now = SystemTime::now();
        let current =
            running.authority.current(now).ok_or_else(|| usage("there is no authority"))?;
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let not_after = current.expires.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(CaView {
            name: current.name,
            fingerprint: hex(&Sha256::digest(&current.der)),
            not_after: Millis::try_from(not_after.as_millis()).unwrap_or(Millis::MAX),
            file: current.file.display().to_string(),
            pem: running.authority.certificates(now).concat(),
        })
    }

    pub async fn answer_repository(
        &self,
        target: Target,
        digest: &str,
        accept: bool,
    ) -> Reply<EgressView> {
        let who = self.who(&target)?;
        self.core.answer_repository(&who, digest, accept).await?;
        self.core.egress_view(&who).await
    }

    pub async fn acknowledge_echo(&self, host: &str) -> Reply<bool> {
        let host = HostName::parse(host).map_err(|e| usage(e.to_string()))?;
        let held = self.core.egress.running().is_some_and(|r| r.proxy.acknowledge(&host));
        if held {
            let entry = relay::Entry {
                box_id: None,
                kind: "egress-echo",
                summary: format!("Credentials are put into requests to {host} again"),
                data: serde_json::json!({ "host": host.as_str() }),
            };
            self.core.store.record(entry).await?;
        }
        Ok(held)
    }
}

impl Core {
    /// A project's boxes, without one of them being meant.
    async fn nobody(&self, cwd: Option<&str>) -> Reply<Who> {
        let root = project_of(cwd).await?.unwrap_or_else(|| PathBuf::from("/"));
        let id = BoxId::from_bytes([0; 4]);
        let name = protocol::BoxName::from_folder("project", &id);
        let mode = self.settings.egress.mode;
        Ok(Who { id, name, root, mode, agents: BTreeSet::default(), branch: None })
    }

    async fn wanted_of(self: &Arc<Self>, who: &Who) -> Wanted {
        let agents: Vec<Agent> = who.agents.iter().copied().collect();
        let mut views = layers::read(&layers::places(&self.home, Some(&who.root), &agents)).views;
        if let Ok(Some(asked)) = self.repository_asks(who).await {
            let (layer, file) = ("repository".to_owned(), Some(asked.view.file.clone()));
            views.push(LayerView { layer, file, state: asked.view.state });
        }
        let (problems, warnings) = {
            let ways = self.egress.ways();
            let way = ways.get(&who.id);
            way.map(|way| (way.problems.clone(), way.warnings.clone())).unwrap_or_default()
        };
        // What is not in force any more is shown with why.
        for view in views.iter_mut().filter(|view| view.state == LayerState::InForce) {
            let broken = |p: &PolicyProblem| {
                p.layer == view.layer && view.file.as_deref().is_some_and(|f| f.ends_with(&p.file))
            };
            if problems.iter().any(broken) {
                view.state = LayerState::Invalid;
            }
        }
        let policy = match self.policy_of(&who.id) {
            Some(policy) if problems.is_empty() => {
                Ok(Rendered { policy: (*policy).clone(), warnings })
            }
            _ if !problems.is_empty() => Err(problems),
            _ => match self.gather(who).await {
                Ok(inputs) => egress::policy::render(&inputs).map_err(|problems| problems.0),
                Err(problems) => Err(problems),
            },
        };
        let of = (Some(who.id.clone()), None);
        Wanted { mode: who.mode, policy, layers: views, of }
    }

    async fn egress_view(self: &Arc<Self>, who: &Who) -> Reply<EgressView> {
        self.egress.lines.settled_within().await;
        let (unavailable, revision, hosts) = {
            let ways = self.egress.ways();
            match ways.get(&who.id) {
                Some(way) => {
                    let policy = way.policy.borrow().clone();
                    let hosts = policy.as_ref().map_or(0, |policy| policy.records.len());
                    let why = way.problems.first().map(ToString::to_string);
                    (why, way.revision, hosts)
                }
                None => (None, 0, 0),
            }
        };
        let of = |denied, since, limit| Lines {
            box_id: Some(who.id.clone()),
            denied,
            since,
            limit,
            ..Lines::default()
        };
        let last_blocked = self.store.traffic(of(true, None, 1)).await?.pop();
        let since = crate::store::now().saturating_sub(DAY);
        let lines = self.store.traffic(of(false, Some(since), MOST_READ)).await?;
        let mut counts: BTreeMap<SecretId, u64> = BTreeMap::new();
        for injected in lines.iter().flat_map(|line| &line.injected) {
            *counts.entry(injected.secret.clone()).or_default() += 1;
        }
        let counted = |(secret, count)| InjectedCount { secret, count };
        Ok(EgressView {
            mode: who.mode,
            unavailable,
            revision,
            hosts: u32::try_from(hosts).unwrap_or(u32::MAX),
            last_blocked,
            injected: counts.into_iter().map(counted).collect(),
            grants: self.egress_grants(who).await?,
            repository: self.repository_asks(who).await?.map(|asked| asked.view),
        })
    }

    /// A box goes on with another mode of the same kind: its policy is another one.
    pub(crate) async fn mode_changed(self: &Arc<Self>, view: &BoxView) {
        if let Some(record) = self.record(&view.id).filter(|r| r.egress.is_controlled()) {
            self.reload_way(&Who::of(&record)).await;
        }
    }
}

/// How often each box called each API.
fn used(lines: &[Traffic], name: impl Fn(&BoxId) -> Option<String>) -> Vec<ApiUse> {
    let mut all: BTreeMap<(BoxId, &str), ApiUse> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind == TrafficKind::Request) {
        let Some(host) = line.host.as_deref() else { continue };
        let Some((host, api)) = APIS.into_iter().find(|(known, _)| *known == host) else {
            continue;
        };
        let sends = line.method.as_deref() == Some("POST");
        if line.action != TrafficAction::Allowed || !sends {
            continue;
        }
        let entry = all.entry((line.box_id.clone(), host)).or_insert_with(|| ApiUse {
            box_id: line.box_id.clone(),
            box_name: name(&line.box_id).unwrap_or_else(|| line.box_id.to_string()),
            api: api.to_owned(),
            host: host.to_owned(),
            calls: 0,
            failed: 0,
            bytes_up: 0,
            bytes_down: 0,
            last: 0,
        });
        entry.calls += 1;
        entry.failed += u64::from(line.status.is_none_or(|status| status >= 400));
        entry.bytes_up += line.bytes_up;
        entry.bytes_down += line.bytes_down;
        entry.last = entry.last.max(line.at);
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_agents_are_counted_by_box_and_api() {
        let id: BoxId = "b00000001".parse().unwrap();
        let line = |host: &str, method: &str, status: u16| {
            let at = u64::from(status);
            let mut line =
                super::super::log::said(&id, TrafficKind::Request, "x".into(), at, String::new());
            line.action = TrafficAction::Allowed;
            line.reason = Some(protocol::egress::Reason::RuleMatched);
            line.host = Some(host.into());
            line.method = Some(method.into());
            line.status = Some(status);
            (line.bytes_up, line.bytes_down) = (10, 100);
            line
        };
        let lines = [
            line("api.anthropic.com", "POST", 200),
            line("api.anthropic.com", "POST", 529),
            line("api.anthropic.com", "GET", 200),
            line("docs.ex.com", "POST", 200),
        ];
        let all = used(&lines, |_| Some("fix".into()));
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].calls, all[0].failed, all[0].bytes_down), (2, 1, 200));
        assert_eq!(
            (all[0].api.as_str(), all[0].box_name.as_str(), all[0].last),
            ("Anthropic", "fix", 529)
        );
    }
}
