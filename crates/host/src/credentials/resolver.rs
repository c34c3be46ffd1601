//! The credential for a box's request: the box's own, else its project's, else everybody's.
//!
//! The next one is looked for only where there is none. One that is locked, unsafe, malformed or bound
//! to other hosts ends the search: a wider credential in its place would be one that nobody meant.
//!
//! A value and the hosts it may go to come from two places. What is written down is therefore read
//! before the value and again after it, and the value counts only if that has not changed.

use super::{place, unsettled, with_hint};
use crate::store::{Credential, Store, StoreError, Use, now};
use approvals::BoxFuture;
use egress::host_name::HostName;
use egress::policy::lint::StoredSecret;
use egress::ports::{SecretFault, Secrets};
use protocol::integrations::SecretScope;
use protocol::{BoxId, SecretId};
use secrets::{Error, Value, Vault};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The root of a box's project; none for a box nobody knows.
pub type RootOf = Arc<dyn Fn(&BoxId) -> Option<PathBuf> + Send + Sync>;

/// How long a request may wait for its credential in all.
const DEADLINE: Duration = Duration::from_secs(5);
/// How often a search begins anew because what is written down changed under it.
const TRIES: usize = 3;
/// Uses that wait to be written down; more are not, and the next one of the credential is.
const WAITING: usize = 256;
/// Uses of this long are written down together.
const TOGETHER: Duration = Duration::from_millis(500);

pub struct Resolver {
    vault: Vault,
    store: Store,
    root_of: RootOf,
    /// Its task writes what is left and ends when this goes.
    used: mpsc::Sender<Use>,
}

impl Resolver {
    /// On a runtime: a task of it writes down when credentials were used.
    pub fn new(vault: Vault, store: Store, root_of: RootOf) -> Self {
        let (used, uses) = mpsc::channel(WAITING);
        tokio::spawn(write_down(store.clone(), uses));
        Self { vault, store, root_of, used }
    }

    /// Whether the credential a request of this box would get is bound to hosts, and this is one of
    /// them.
    pub async fn is_bound(&self, id: &SecretId, of: &BoxId, host: &HostName) -> bool {
        let Some(root) = (self.root_of)(of) else { return false };
        let known = match self.store.credentials_named(id).await {
            Ok(known) => known,
            Err(e) => {
                tracing::warn!("{e}");
                return false;
            }
        };
        let scopes = scopes(Some(of), Some(&root));
        let narrowest = narrowest(&scopes, &known);
        narrowest.is_some_and(|one| one.settled && one.hosts.iter().any(|h| h == host.as_str()))
    }

    /// The credentials that requests of a box, or of a project's boxes, could get; everybody's with
    /// neither. For the linter: one for each name, the one that would be taken.
    pub async fn stored(
        &self,
        of: Option<&BoxId>,
        root: Option<&Path>,
    ) -> Result<Vec<StoredSecret>, StoreError> {
        let of_box = of.and_then(|of| (self.root_of)(of));
        let scopes = scopes(of, root.or(of_box.as_deref()));
        let all = self.store.credentials().await?;
        let same_name = all.chunk_by(|a, b| a.id == b.id);
        let taken = same_name.filter_map(|same| narrowest(&scopes, same).filter(|one| one.settled));
        let stored = taken.map(|one| StoredSecret {
            id: one.id.clone(),
            hosts: one.hosts.iter().filter_map(|host| HostName::parse(host).ok()).collect(),
        });
        Ok(stored.collect())
    }

    async fn find(&self, id: &SecretId, of: &BoxId, host: &HostName) -> Result<Value, SecretFault> {
        let Some(root) = (self.root_of)(of) else {
            return Err(SecretFault::Unavailable(format!("{id}: the box is not known")));
        };
        let scopes = scopes(Some(of), Some(&root));
        for _ in 0..TRIES {
            let before = self.known(id).await?;
            let found = self.look(id, host, &scopes, &before).await;
            if same(&before, &self.known(id).await?) {
                let (scope, value) = found?;
                // When there are too many to keep up with, it was used just now all the same.
                let _ = self.used.try_send((scope, id.clone(), now()));
                return Ok(value);
            }
        }
        Err(SecretFault::Unavailable(format!("{id} is being changed")))
    }

    async fn known(&self, id: &SecretId) -> Result<Vec<Credential>, SecretFault> {
        let known = self.store.credentials_named(id).await;
        known.map_err(|e| SecretFault::Unavailable(format!("{id}: {e}")))
    }

    async fn look(
        &self,
        id: &SecretId,
        host: &HostName,
        scopes: &[SecretScope],
        known: &[Credential],
    ) -> Result<(SecretScope, Value), SecretFault> {
        for scope in scopes {
            let Some(one) = known.iter().find(|one| one.scope == *scope) else { continue };
            if !one.settled {
                return Err(SecretFault::Unusable(unsettled(id)));
            }
            if !one.hosts.is_empty() && !one.hosts.iter().any(|bound| bound == host.as_str()) {
                let (id, host) = (id.clone(), host.to_string());
                return Err(SecretFault::HostBinding { id, host });
            }
            let Some(place) = place(scope) else { continue };
            let value = self.vault.recent(&place, id).await;
            if let Some(value) = value.map_err(|e| self.fault(id, &e))? {
                return Ok((scope.clone(), value));
            }
        }
        Err(SecretFault::NotFound(id.clone()))
    }

    fn fault(&self, id: &SecretId, error: &Error) -> SecretFault {
        let text = format!("{id}: {}", with_hint(error));
        let in_keychain = self.vault.kept_in() == "keychain";
        match error {
            Error::Locked | Error::Missing(_) | Error::Silent(_) => SecretFault::Unavailable(text),
            Error::Failed(_) if in_keychain => SecretFault::Unavailable(text),
            Error::Failed(_) | Error::TooLarge | Error::Empty | Error::Malformed(_) => {
                SecretFault::Unusable(text)
            }
        }
    }
}

impl Secrets for Resolver {
    fn resolve<'a>(
        &'a self,
        id: &'a SecretId,
        of: &'a BoxId,
        host: &'a HostName,
    ) -> BoxFuture<'a, Result<Value, SecretFault>> {
        Box::pin(async move {
            let found = tokio::time::timeout(DEADLINE, self.find(id, of, host)).await;
            found.unwrap_or_else(|_| {
                let text = format!("{id}: the {} did not answer in time", self.vault.kept_in());
                Err(SecretFault::Unavailable(text))
            })
        })
    }
}

/// From the narrowest to the widest.
fn scopes(of: Option<&BoxId>, root: Option<&Path>) -> Vec<SecretScope> {
    let of_box = of.map(|id| SecretScope::Box { id: id.clone() });
    // What is no UTF-8 cannot be said in a request to store one for it.
    let root = root.and_then(Path::to_str);
    let of_project = root.map(|root| SecretScope::Project { root: root.to_owned() });
    of_box.into_iter().chain(of_project).chain([SecretScope::Everybody]).collect()
}

fn narrowest<'a>(scopes: &[SecretScope], known: &'a [Credential]) -> Option<&'a Credential> {
    scopes.iter().find_map(|scope| known.iter().find(|one| one.scope == *scope))
}

/// Whether what is written down is the same, but for when it was used.
fn same(before: &[Credential], after: &[Credential]) -> bool {
    let unused = |one: &Credential| Credential { last_used: None, ..one.clone() };
    before.iter().map(unused).eq(after.iter().map(unused))
}

async fn write_down(store: Store, mut uses: mpsc::Receiver<Use>) {
    while let Some((scope, id, at)) = uses.recv().await {
        let mut all = HashMap::from([((scope, id), at)]);
        let end = tokio::time::Instant::now() + TOGETHER;
        while let Ok(Some((scope, id, at))) = tokio::time::timeout_at(end, uses.recv()).await {
            all.insert((scope, id), at);
        }
        let all = all.into_iter().map(|((scope, id), at)| (scope, id, at)).collect();
        if let Err(e) = store.credentials_used(all).await {
            tracing::warn!("{e}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
