//! Credentials: kept in the keychain, listed here, used by the relay and for boxes' requests.
//!
//! Which credentials there are is written down beside their values' place, so that a box's call
//! never touches the keychain for one that nobody stored. Connectors use everybody's; what a policy
//! puts into a box's request is the box's own, else its project's, else everybody's: see [`Resolver`].

mod resolver;

pub use resolver::{Resolver, RootOf};

use crate::core::Core;
use crate::engine;
use crate::store::{Credential, Store, now};
use approvals::BoxFuture;
use connectors::connector::{Connector, SecretUse};
use connectors::registry;
use egress::host_name::HostName;
use protocol::control::{ControlError, ErrorCode, Level};
use protocol::integrations::{SecretScope, SecretText, SecretView, Tried};
use protocol::{BoxId, SecretId};
use relay::{Credentials, Entry};
use secrets::{Scope, Value, Vault};
use std::path::Path;
use std::sync::Arc;

/// More than any credential goes to.
const MOST_HOSTS: usize = 64;
/// Shorter values are found in too much that is none; nothing masks them in what comes back.
const MASKED_FROM: usize = 8;

/// Values, and what is written down about them. The relay sees everybody's.
pub struct Kept {
    pub vault: Vault,
    pub store: Store,
}

impl Credentials for Kept {
    fn get<'a>(&'a self, id: &'a SecretId) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(async move {
            let everybody = SecretScope::Everybody;
            let known = self.store.credential(&everybody, id).await.map_err(|e| e.to_string())?;
            match known {
                None => return Ok(None),
                Some(known) if !known.settled => return Err(unsettled(id)),
                Some(_) => {}
            }
            let value = self.vault.get(&Scope::Everybody, id).await.map_err(|e| with_hint(&e))?;
            if value.is_some()
                && let Err(e) =
                    self.store.credentials_used(vec![(everybody, id.clone(), now())]).await
            {
                tracing::warn!("{e}");
            }
            Ok(value)
        })
    }
}

impl Kept {
    /// Keeps a value, in place of the one that was there.
    async fn set(
        &self,
        scope: &SecretScope,
        id: &SecretId,
        value: Value,
        hosts: Option<&[String]>,
    ) -> Result<(), ControlError> {
        let place = placed(scope)?;
        let _turn = self.vault.turn().await;
        self.refuse_namesake(scope, &place).await?;
        self.keep(&place, scope, id, value, hosts).await?;
        self.note("credential-set", scope, id, "stored").await
    }

    /// However this ends, no value can go to hosts that were said for another.
    async fn keep(
        &self,
        place: &Scope,
        scope: &SecretScope,
        id: &SecretId,
        value: Value,
        hosts: Option<&[String]>,
    ) -> Result<(), ControlError> {
        let known = self.store.credential(scope, id).await?;
        let same = known
            .as_ref()
            .is_some_and(|known| known.settled && hosts.is_none_or(|hosts| known.hosts == *hosts));
        // A new value for the same hosts leaves requests alone that come meanwhile.
        let before = if same { known } else { self.store.credential_unsettled(scope, id).await? };
        if let Err(e) = self.vault.set(place, id, value).await {
            // One that did not answer may still do it: then nobody knows which value there is.
            if !same && !matches!(e, secrets::Error::Silent(_)) {
                self.store.credential_restored(scope, id, before).await?;
            }
            return Err(control_error(&e));
        }
        Ok(self.store.credential_set(scope, id, hosts).await?)
    }

    /// Whether there was one.
    async fn remove(&self, scope: &SecretScope, id: &SecretId) -> Result<bool, ControlError> {
        let _turn = self.vault.turn().await;
        self.remove_in_turn(scope, id).await
    }

    /// Those of one box. What cannot be removed now stays listed.
    async fn remove_of(&self, of: &BoxId) {
        let _turn = self.vault.turn().await;
        let all = match self.store.credentials().await {
            Ok(all) => all,
            Err(e) => return tracing::warn!("credentials of box {of} may be left: {e}"),
        };
        for known in all.iter().filter(|c| c.scope == SecretScope::Box { id: of.clone() }) {
            if let Err(e) = self.remove_in_turn(&known.scope, &known.id).await {
                tracing::warn!("credential {} of box {of} is left: {}", known.id, e.message);
            }
        }
    }

    async fn remove_in_turn(
        &self,
        scope: &SecretScope,
        id: &SecretId,
    ) -> Result<bool, ControlError> {
        let place = placed(scope)?;
        self.refuse_namesake(scope, &place).await?;
        let there = self.vault.remove(&place, id).await.map_err(|e| control_error(&e))?;
        let known = self.store.credential(scope, id).await?.is_some();
        self.store.credential_removed(scope, id).await?;
        if there || known {
            self.note("credential-removed", scope, id, "removed").await?;
        }
        Ok(there || known)
    }

    /// A project is known to the vault by a short hash, and whoever names folders can make two the
    /// same. The second would read and replace what is the first's.
    async fn refuse_namesake(&self, scope: &SecretScope, at: &Scope) -> Result<(), ControlError> {
        let all = self.store.credentials().await?;
        let other = all.iter().find(|c| c.scope != *scope && place(&c.scope).as_ref() == Some(at));
        match other {
            None => Ok(()),
            Some(other) => Err(usage(format!(
                "this project cannot be told from the one{} by its short name",
                words(&other.scope)
            ))
            .hint("rename its folder")),
        }
    }

    async fn note(
        &self,
        kind: &'static str,
        scope: &SecretScope,
        id: &SecretId,
        what: &str,
    ) -> Result<(), ControlError> {
        let known = self.store.credential(scope, id).await?;
        let hosts = known.map(|known| known.hosts).unwrap_or_default();
        let box_id = match scope {
            SecretScope::Box { id } => Some(id.clone()),
            _ => None,
        };
        let summary = format!("Credential {id}{} {what}", words(scope));
        let kept_in = self.vault.kept_in();
        let data =
            serde_json::json!({ "id": id, "keptIn": kept_in, "scope": scope, "hosts": hosts });
        Ok(self.store.record(Entry { box_id, kind, summary, data }).await?)
    }
}

/// Its value and the hosts it may go to may not belong together.
fn unsettled(id: &SecretId) -> String {
    format!("{id} was not stored completely; set it again")
}

fn with_hint(error: &secrets::Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn control_error(error: &secrets::Error) -> ControlError {
    let code = match error {
        secrets::Error::Empty | secrets::Error::TooLarge | secrets::Error::Malformed(_) => {
            ErrorCode::Usage
        }
        _ => ErrorCode::Failed,
    };
    let reply = ControlError::new(code, error.to_string());
    match error.hint() {
        Some(hint) => reply.hint(hint),
        None => reply,
    }
}

fn usage(text: impl Into<String>) -> ControlError {
    ControlError::new(ErrorCode::Usage, text)
}

/// Everything that uses a credential, and how.
fn users(id: &SecretId) -> Vec<(&'static Connector, &'static SecretUse)> {
    let uses = |c: &&'static Connector| {
        let c = *c;
        c.secrets.iter().filter(|s| s.id == id.as_str()).map(move |s| (c, s)).collect::<Vec<_>>()
    };
    registry::CONNECTORS.iter().flat_map(uses).collect()
}

/// Where the vault keeps it. None for a folder that no project of ours can be in.
fn place(scope: &SecretScope) -> Option<Scope> {
    Some(match scope {
        SecretScope::Everybody => Scope::Everybody,
        SecretScope::Project { root } => {
            Scope::Project(boxes::project::project_hash(Path::new(root)).parse().ok()?)
        }
        SecretScope::Box { id } => Scope::Box(id.clone()),
    })
}

fn placed(scope: &SecretScope) -> Result<Scope, ControlError> {
    place(scope).ok_or_else(|| usage("there is no place for credentials of this project"))
}

/// How a scope is said on the command line, with a space before it.
fn flags(scope: &SecretScope) -> String {
    match scope {
        SecretScope::Everybody => String::new(),
        SecretScope::Project { root } => format!(" --project {root}"),
        SecretScope::Box { id } => format!(" --box {id}"),
    }
}

fn words(scope: &SecretScope) -> String {
    match scope {
        SecretScope::Everybody => String::new(),
        SecretScope::Project { root } => format!(" of {root}"),
        SecretScope::Box { id } => format!(" of box {id}"),
    }
}

/// Exact names only, as requests have them: a binding that needs interpreting binds nothing.
fn bound_hosts(hosts: &[String]) -> Result<Vec<String>, ControlError> {
    if hosts.len() > MOST_HOSTS {
        return Err(usage(format!("a credential can be bound to {MOST_HOSTS} hosts at most")));
    }
    let parsed = |text: &String| {
        let host = HostName::authored(text).map_err(|e| {
            usage(e.to_string()).hint("name each host exactly, without scheme, port, path or *")
        });
        host.map(|host| host.as_str().to_owned())
    };
    let mut all = hosts.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    all.dedup();
    Ok(all)
}

impl Core {
    fn kept(&self) -> Kept {
        Kept { vault: self.vault.clone(), store: self.store.clone() }
    }

    /// A box is gone for good: so are the credentials that were its alone.
    pub async fn remove_secrets_of(&self, of: &BoxId) {
        self.kept().remove_of(of).await;
    }

    /// What could be stored and what is.
    pub async fn secrets(&self) -> Result<Vec<SecretView>, ControlError> {
        let stored = self.store.credentials().await?;
        let known = registry::CONNECTORS.iter().flat_map(|c| c.secrets);
        let mut ids: Vec<SecretId> = known.filter_map(|s| s.id.parse().ok()).collect();
        let is_stored =
            |id: &SecretId| stored.iter().any(|c| c.id == *id && c.scope == SecretScope::Everybody);
        ids.retain(|id| !is_stored(id));
        ids.sort();
        ids.dedup();
        let kept_in = self.vault.kept_in();
        let mut all: Vec<SecretView> = ids.into_iter().map(|id| could_be(id, kept_in)).collect();
        all.extend(stored.into_iter().map(|known| view(known, kept_in)));
        all.sort_by(|a, b| (&a.id, &a.scope).cmp(&(&b.id, &b.scope)));
        Ok(all)
    }

    /// Keeps a value. What the person should know about it, if anything.
    pub async fn set_secret(
        &self,
        id: SecretId,
        value: SecretText,
        scope: SecretScope,
        hosts: Option<Vec<String>>,
    ) -> Result<Option<String>, ControlError> {
        let hosts = hosts.as_deref().map(bound_hosts).transpose()?;
        let scope = self.scope_of(scope).await?;
        let remark = remark(&id, &value.0, &scope);
        self.kept().set(&scope, &id, Value::new(value.0), hosts.as_deref()).await?;
        Ok(remark)
    }

    pub async fn remove_secret(
        &self,
        id: SecretId,
        scope: SecretScope,
    ) -> Result<bool, ControlError> {
        let scope = match self.store.credential(&scope, &id).await? {
            // As it was listed: the folder or the box may be gone.
            Some(known) => known.scope,
            None => self.scope_of(scope).await?,
        };
        self.kept().remove(&scope, &id).await
    }

    /// Is it there, and does the service take it?
    pub async fn test_secret(
        self: &Arc<Self>,
        id: &SecretId,
        scope: SecretScope,
    ) -> Result<Tried, ControlError> {
        let scope = match self.store.credential(&scope, id).await? {
            Some(known) => known.scope,
            None => self.scope_of(scope).await?,
        };
        let hint = Some(format!("agentbox secrets set {id}{}", flags(&scope)));
        let absent = |detail: &str| Tried { level: Level::Fail, detail: detail.into(), hint };
        match self.store.credential(&scope, id).await? {
            None => return Ok(absent("not stored")),
            Some(known) if !known.settled => return Ok(absent("not stored completely")),
            Some(_) => {}
        }
        let value = self.vault.get(&placed(&scope)?, id).await.map_err(|e| control_error(&e))?;
        if value.is_none() {
            return Ok(absent("not stored"));
        }
        match users(id).first() {
            Some((connector, _)) if scope == SecretScope::Everybody => {
                self.test_integration(connector.service, None).await
            }
            _ => {
                let detail = match self.vault.kept_in() {
                    "file" => "stored in a file".to_owned(),
                    place => format!("stored in the {place}"),
                };
                Ok(Tried { level: Level::Ok, detail, hint: None })
            }
        }
    }

    /// The scope as it is written down: a project by the root of the folder that was named, a box that
    /// there is.
    async fn scope_of(&self, scope: SecretScope) -> Result<SecretScope, ControlError> {
        match scope {
            SecretScope::Everybody => Ok(scope),
            SecretScope::Project { root } => {
                let root = boxes::project::project_root(Path::new(&root)).await;
                let root = root.map_err(engine::control_error)?;
                let root = root.into_os_string().into_string().map_err(|root| {
                    let shown = root.to_string_lossy().into_owned();
                    usage(format!("the project's folder has no name in UTF-8: {shown}"))
                })?;
                Ok(SecretScope::Project { root })
            }
            SecretScope::Box { id } if self.record(&id).is_some() => Ok(SecretScope::Box { id }),
            SecretScope::Box { id } => Err(usage(format!("there is no box {id}"))),
        }
    }
}

fn remark(id: &SecretId, value: &str, scope: &SecretScope) -> Option<String> {
    let mut all = Vec::new();
    if value.trim_end_matches(['\r', '\n']).len() < MASKED_FROM {
        all.push(format!(
            "the value is shorter than {MASKED_FROM} bytes: it cannot be masked where a service sends it back"
        ));
    }
    let users: Vec<_> = users(id).iter().map(|(connector, _)| connector.title).collect();
    if *scope != SecretScope::Everybody && !users.is_empty() {
        all.push(format!(
            "{} uses the {id} of everybody; this one is for policies alone",
            users.join(", ")
        ));
    }
    (!all.is_empty()).then(|| all.join("\n"))
}

/// One that a connector would use.
fn could_be(id: SecretId, kept_in: &str) -> SecretView {
    let users = users(&id);
    SecretView {
        stored: false,
        used_by: users.iter().map(|(c, _)| c.title.to_owned()).collect(),
        about: users.first().map(|(_, s)| s.about.to_owned()).unwrap_or_default(),
        kept_in: kept_in.to_owned(),
        set_at: None,
        last_used: None,
        scope: SecretScope::Everybody,
        hosts: Vec::new(),
        id,
    }
}

fn view(known: Credential, kept_in: &str) -> SecretView {
    let users = match known.scope {
        SecretScope::Everybody => users(&known.id),
        _ => Vec::new(),
    };
    SecretView {
        stored: known.settled,
        used_by: users.iter().map(|(c, _)| c.title.to_owned()).collect(),
        about: users.first().map(|(_, s)| s.about.to_owned()).unwrap_or_default(),
        kept_in: kept_in.to_owned(),
        set_at: Some(known.set_at),
        last_used: known.last_used,
        scope: known.scope,
        hosts: known.hosts,
        id: known.id,
    }
}

#[cfg(test)]
mod tests;
