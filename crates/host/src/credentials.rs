//! Credentials: kept in the keychain, listed here, used by the relay.
//!
//! Which credentials there are is written down beside their values' place, so that a box's call
//! never touches the keychain for one that nobody stored.

use crate::core::Core;
use crate::store::{Credential, Store};
use approvals::BoxFuture;
use connectors::connector::{Connector, SecretUse};
use connectors::registry;
use protocol::SecretId;
use protocol::control::{ControlError, ErrorCode, Level};
use protocol::integrations::{SecretText, SecretView, Tried};
use relay::{Credentials, Entry};
use secrets::{Value, Vault};
use std::sync::Arc;

/// The relay's view.
pub struct Kept {
    pub vault: Vault,
    pub store: Store,
}

impl Credentials for Kept {
    fn get<'a>(&'a self, id: &'a SecretId) -> BoxFuture<'a, Result<Option<Value>, String>> {
        Box::pin(async move {
            let known = self.store.credentials().await.map_err(|e| e.to_string())?;
            if !known.iter().any(|c| c.id == *id) {
                return Ok(None);
            }
            let value = self.vault.get(id).await.map_err(|e| with_hint(&e))?;
            if value.is_some()
                && let Err(e) = self.store.credential_used(id).await
            {
                tracing::warn!("{e}");
            }
            Ok(value)
        })
    }
}

fn with_hint(error: &secrets::Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn control_error(error: &secrets::Error) -> ControlError {
    let reply = ControlError::new(ErrorCode::Failed, error.to_string());
    match error.hint() {
        Some(hint) => reply.hint(hint),
        None => reply,
    }
}

/// Everything that uses a credential, and how.
fn users(id: &SecretId) -> Vec<(&'static Connector, &'static SecretUse)> {
    let uses = |c: &&'static Connector| {
        let c = *c;
        c.secrets.iter().filter(|s| s.id == id.as_str()).map(move |s| (c, s)).collect::<Vec<_>>()
    };
    registry::CONNECTORS.iter().flat_map(uses).collect()
}

impl Core {
    /// What could be stored and what is.
    pub async fn secrets(&self) -> Result<Vec<SecretView>, ControlError> {
        let stored = self.store.credentials().await?;
        let known = registry::CONNECTORS.iter().flat_map(|c| c.secrets);
        let mut ids: Vec<SecretId> = known.filter_map(|s| s.id.parse().ok()).collect();
        ids.extend(stored.iter().map(|c| c.id.clone()));
        ids.sort();
        ids.dedup();
        Ok(ids.into_iter().map(|id| self.secret_view(id, &stored)).collect())
    }

    fn secret_view(&self, id: SecretId, stored: &[Credential]) -> SecretView {
        let users = users(&id);
        let known = stored.iter().find(|c| c.id == id);
        SecretView {
            stored: known.is_some(),
            used_by: users.iter().map(|(c, _)| c.title.to_owned()).collect(),
            about: users.first().map(|(_, s)| s.about.to_owned()).unwrap_or_default(),
            kept_in: self.vault.kept_in().to_owned(),
            set_at: known.map(|c| c.set_at),
            last_used: known.and_then(|c| c.last_used),
            id,
        }
    }

    pub async fn set_secret(&self, id: SecretId, value: SecretText) -> Result<(), ControlError> {
        if users(&id).is_empty() {
            let known = registry::CONNECTORS.iter().flat_map(|c| c.secrets).map(|s| s.id);
            let known = known.collect::<Vec<_>>().join(", ");
            let text = format!("nothing here uses a credential named {id}");
            return Err(ControlError::new(ErrorCode::Usage, text).hint(format!("known: {known}.")));
        }
        self.vault.set(&id, Value::new(value.0)).await.map_err(|e| control_error(&e))?;
        self.store.credential_set(&id).await?;
        self.note_secret("credential-set", &id, "stored").await
    }

    pub async fn remove_secret(&self, id: SecretId) -> Result<bool, ControlError> {
        let there = self.vault.remove(&id).await.map_err(|e| control_error(&e))?;
        let known = self.store.credentials().await?.iter().any(|c| c.id == id);
        self.store.credential_removed(&id).await?;
        if there || known {
            self.note_secret("credential-removed", &id, "removed").await?;
        }
        Ok(there || known)
    }

    async fn note_secret(
        &self,
        kind: &'static str,
        id: &SecretId,
        what: &str,
    ) -> Result<(), ControlError> {
        let summary = format!("Credential {id} {what}");
        let data = serde_json::json!({ "id": id, "keptIn": self.vault.kept_in() });
        Ok(self.store.record(Entry { box_id: None, kind, summary, data }).await?)
    }

    /// Is it there, and does the service take it?
    pub async fn test_secret(self: &Arc<Self>, id: &SecretId) -> Result<Tried, ControlError> {
        let value = self.vault.get(id).await.map_err(|e| control_error(&e))?;
        if value.is_none() {
            let hint = Some(format!("agentbox secrets set {id}"));
            return Ok(Tried { level: Level::Fail, detail: "not stored".into(), hint });
        }
        match users(id).first() {
            Some((connector, _)) => self.test_integration(connector.service, None).await,
            None => {
                let detail =
                    format!("stored in the {}; nothing here uses it", self.vault.kept_in());
                Ok(Tried { level: Level::Info, detail, hint: None })
            }
        }
    }
}
