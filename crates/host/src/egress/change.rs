//! Rules that a person adds by a command or in the window, and the files they write themselves.

use super::layers::{own_file, read_file};
use super::{Reply, Who, edit, project_of};
use crate::core::Core;
use crate::home;
use egress::host_name::HostName;
use egress::new_rule::NewRule;
use egress::policy::{Action, HostPattern, Layer, LayerText, PathKind, PathRule, Policy};
use egress::request::{Scheme, method};
use protocol::control::{ControlError, ErrorCode};
use protocol::egress::{
    EgressAction, EgressChange, EgressChanged, EgressFile, EgressPlace, EgressReloaded,
};
use protocol::question::{Reach, Remember};
use protocol::sessions::Agent;
use protocol::text::visible;
use relay::Entry;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn usage(text: impl Into<String>) -> ControlError {
    ControlError::new(ErrorCode::Usage, text)
}

pub(super) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}

/// The rules that a change comes to, one for each port.
fn rules_of(change: &EgressChange) -> Reply<Vec<NewRule>> {
    let host = match change.host.strip_prefix("*.") {
        Some(_) => HostPattern::parse(&change.host, false).map_err(|e| usage(e.to_string()))?,
        None => {
            HostPattern::Exact(HostName::authored(&change.host).map_err(|e| usage(e.to_string()))?)
        }
    };
    let methods: BTreeSet<String> = change
        .methods
        .iter()
        .map(|m| method(m).map_err(|_| usage(format!("{} is no method", visible(m)))))
        .collect::<Reply<_>>()?;
    let path = change.path.as_deref().map(path_of).transpose()?;
    let action = match change.action {
        EgressAction::Allow => Action::Allow,
        EgressAction::Ask => Action::Ask,
        EgressAction::Deny => Action::Deny,
    };
    let ports = if change.ports.is_empty() { vec![443] } else { change.ports.clone() };
    let whole = methods.is_empty() && path.is_none();
    let one = |port: u16| NewRule {
        scheme: if port == 80 { Scheme::Http } else { Scheme::Https },
        host: host.clone(),
        port,
        methods: (!methods.is_empty()).then(|| methods.clone()),
        path: path.clone(),
        websocket: whole && action == Action::Allow,
        action,
        asked: None,
    };
    if ports.contains(&0) {
        return Err(usage("0 is no port"));
    }
    Ok(ports.into_iter().map(one).collect())
}

fn path_of(text: &str) -> Reply<PathRule> {
    let (kind, text) = match text.strip_suffix('*') {
        Some(below) if below.ends_with('/') => (PathKind::Prefix, below),
        _ if text.ends_with('/') => (PathKind::Prefix, text),
        _ => (PathKind::Exact, text),
    };
    let target = egress::request::Target::parse(text);
    let target = target.map_err(|_| usage(format!("{} is no path", visible(text))))?;
    if target.query().is_some() || target.is_dotted() {
        return Err(usage(format!("{} is no path: neither ? nor .. fit in", visible(text))));
    }
    Ok(PathRule { kind, text: target.path().to_owned(), ignore_case: false })
}

fn sentence(rule: &NewRule, name: &str) -> String {
    let verb = match rule.action {
        Action::Allow => "Let",
        Action::Ask => "Ask before letting",
        Action::Deny => "Do not let",
    };
    let methods = match &rule.methods {
        Some(methods) => {
            format!("send {} to", methods.iter().cloned().collect::<Vec<_>>().join(", "))
        }
        None => "reach".to_owned(),
    };
    let path = rule.path.as_ref().map(|path| {
        let below = if path.kind == PathKind::Prefix { "*" } else { "" };
        format!("{}{below}", path.text)
    });
    let port =
        if rule.port == rule.scheme.port() { String::new() } else { format!(":{}", rule.port) };
    visible(&format!("{verb} {name} {methods} {}{port}{}", rule.host, path.unwrap_or_default()))
}

impl Core {
    pub(super) async fn change_egress(
        self: &Arc<Self>,
        who: &Who,
        change: &EgressChange,
    ) -> Reply<EgressChanged> {
        let rules = rules_of(change)?;
        let policy = self.policy_for(who).await;
        let mut widens: Vec<String> = Vec::new();
        for rule in &rules {
            let mut more = match &policy {
                Some(policy) => rule.widens(policy),
                // Nothing can be said against it, so everything has to be.
                None => rule.widens(&Policy::default()),
            };
            let in_file = change.place != EgressPlace::Box && rule.action != Action::Deny;
            let own = policy.as_ref().and_then(|policy| policy.wildcard_for(rule));
            let own = own.map(ToString::to_string);
            let wildcard = own.or_else(|| self.wildcard_in_files(rule));
            if let Some(wildcard) = wildcard.filter(|_| in_file) {
                more.push(format!("what {wildcard} says no longer counts for {}", rule.host));
            }
            widens
                .extend(more.into_iter().filter(|word| !widens.contains(word)).collect::<Vec<_>>());
        }
        let added: Vec<String> =
            rules.iter().map(|rule| format!("- {}\n", rule.in_yaml())).collect();
        let mut changed =
            EgressChanged { added: added.concat(), widens, ..EgressChanged::default() };
        if change.seconds.is_some() && change.place != EgressPlace::Box {
            return Err(usage("only a rule of one box can end by itself"));
        }
        if let Some(file) = own_file(&self.home, Some(&who.root), change.place, None) {
            changed.file = Some(file.display().to_string());
        }
        if change.dry_run {
            return Ok(changed);
        }
        for rule in &rules {
            if change.place == EgressPlace::Box {
                let time = Duration::from_secs(change.seconds.unwrap_or(Remember::ALWAYS));
                let said = sentence(rule, who.name.as_str());
                changed.grant = Some(self.keep_rule(&who.id, rule, Reach::Box, time, said).await?);
            } else {
                changed.reloaded = self.add_to_file(who, change.place, rule, None).await?;
            }
        }
        if change.place == EgressPlace::Box {
            changed.reloaded = self.reload_ways(|other| other.id == who.id).await;
        }
        Ok(changed)
    }

    /// The policy that a change is held against: the box's, or what a box of the project would have.
    async fn policy_for(self: &Arc<Self>, who: &Who) -> Option<Arc<Policy>> {
        if let Some(policy) = self.policy_of(&who.id) {
            return Some(policy);
        }
        // An open box is told what a rule adds to nothing, as it will be when the box is not open any more.
        let inputs = self.gather(who).await.ok()?;
        egress::policy::render(&inputs).ok().map(|rendered| Arc::new(rendered.policy))
    }

    /// Adds one rule to one of the person's files.
    pub(super) async fn add_to_file(
        self: &Arc<Self>,
        who: &Who,
        place: EgressPlace,
        rule: &NewRule,
        why: Option<&str>,
    ) -> Reply<Vec<EgressReloaded>> {
        let file = own_file(&self.home, Some(&who.root), place, None)
            .ok_or_else(|| usage("a box has no file of its own"))?;
        let text = read_file(&file).map_err(|e| broken(&file, &e))?.unwrap_or_default();
        let entry = rule.in_yaml();
        let added = match rule.action {
            Action::Deny => edit::as_denial(&entry)
                .and_then(|denial| edit::add(&text, edit::List::Deny, &denial)),
            Action::Allow | Action::Ask => edit::add(&text, edit::List::Domains, &entry),
        };
        let added = added.ok_or_else(|| {
            broken(&file, "a rule cannot be added to the way its list is written")
                .hint("agentbox egress edit opens it.")
        })?;
        let what = why.map_or_else(|| sentence(rule, "boxes"), str::to_owned);
        self.write_policy(&file, place, None, added, &what).await
    }

    /// Writes one of the person's files whole, if it is a policy, and puts it in force.
    async fn write_policy(
        self: &Arc<Self>,
        file: &Path,
        place: EgressPlace,
        agent: Option<Agent>,
        text: String,
        what: &str,
    ) -> Reply<Vec<EgressReloaded>> {
        check(&text, place, agent)?;
        write_private(file, &text).map_err(|e| broken(file, &e.to_string()))?;
        let entry = Entry {
            box_id: None,
            kind: "egress-policy",
            summary: format!("{}: {what}", shown(&self.home, file)),
            data: serde_json::json!({ "file": file, "digest": digest(&text) }),
        };
        self.store.record(entry).await?;
        Ok(self.reload_ways(|_| true).await)
    }

    pub(super) async fn egress_file(
        &self,
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<&str>,
    ) -> Reply<EgressFile> {
        let path = self.file_at(place, agent, cwd).await?;
        let text = read_file(&path).map_err(|e| broken(&path, &e))?;
        let digest = text.as_deref().map(digest);
        let path = path.display().to_string();
        Ok(EgressFile { path, text: text.unwrap_or_default(), digest })
    }

    pub(super) async fn write_egress_file(
        self: &Arc<Self>,
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<&str>,
        text: String,
        opened: Option<String>,
    ) -> Reply<Vec<EgressReloaded>> {
        let path = self.file_at(place, agent, cwd).await?;
        let now = read_file(&path).map_err(|e| broken(&path, &e))?;
        if now.as_deref().map(digest) != opened {
            let text = format!("{} was changed meanwhile", path.display());
            return Err(ControlError::new(ErrorCode::DigestMismatch, text)
                .hint(crate::config::CHANGED_HINT));
        }
        self.write_policy(&path, place, agent, text, "edited").await
    }

    async fn file_at(
        &self,
        place: EgressPlace,
        agent: Option<Agent>,
        cwd: Option<&str>,
    ) -> Reply<PathBuf> {
        let root = project_of(cwd).await?;
        own_file(&self.home, root.as_deref(), place, agent)
            .ok_or_else(|| usage("say which project's file is meant, or the global one"))
    }
}

/// A text by itself must be a policy; what it comes to with the others is found out box by box.
fn check(text: &str, place: EgressPlace, agent: Option<Agent>) -> Reply<()> {
    let layer = match (place, agent) {
        (EgressPlace::Global, None) => Layer::Global,
        (EgressPlace::Global, Some(_)) => Layer::GlobalAgent,
        (_, None) => Layer::Project,
        (_, Some(_)) => Layer::ProjectAgent,
    };
    let file = super::layers::file_name(agent);
    let layers = vec![LayerText { layer, file, text: text.to_owned() }];
    let inputs = egress::policy::Inputs { layers, ..egress::policy::Inputs::default() };
    match egress::policy::render(&inputs) {
        Ok(_) => Ok(()),
        Err(problems) => Err(usage(problems.to_string())),
    }
}

fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    home::private_dir(dir)?;
    let mut new = tempfile::Builder::new().prefix(".egress").tempfile_in(dir)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}

fn shown(home: &Path, file: &Path) -> String {
    visible(&file.strip_prefix(home).unwrap_or(file).display().to_string())
}

fn broken(file: &Path, why: &str) -> ControlError {
    ControlError::new(ErrorCode::Failed, format!("{}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(host: &str, path: Option<&str>) -> EgressChange {
        EgressChange {
            host: host.to_owned(),
            path: path.map(str::to_owned),
            ..EgressChange::default()
        }
    }

    #[test]
    fn what_a_person_types_is_read_into_a_rule_or_refused() {
        let rule = &rules_of(&change("API.ex.com", Some("/v1/*"))).unwrap()[0];
        assert_eq!(rule.host.to_string(), "api.ex.com");
        assert_eq!(rule.path.as_ref().unwrap().kind, PathKind::Prefix);
        let exact = &rules_of(&change("api.ex.com", Some("/v1"))).unwrap()[0];
        assert_eq!(exact.path.as_ref().unwrap().kind, PathKind::Exact);
        for (host, path) in [
            ("https://api.ex.com", None),
            ("*.com", None),
            ("*", None),
            ("api.ex.com:22", None),
            ("api.ex.com", Some("v1")),
            ("api.ex.com", Some("/v1/../x")),
            ("api.ex.com", Some("/v1?a=1")),
        ] {
            assert!(rules_of(&change(host, path)).is_err(), "{host} {path:?}");
        }
    }

    #[test]
    fn a_rule_reads_as_a_sentence() {
        let wanted = EgressChange {
            methods: vec!["post".into()],
            ports: vec![8443],
            action: EgressAction::Deny,
            ..change("api.ex.com", Some("/v1/"))
        };
        let rule = &rules_of(&wanted).unwrap()[0];
        assert_eq!(sentence(rule, "fix"), "Do not let fix send POST to api.ex.com:8443/v1/*");
    }
}
