//! The store of credentials: one of two places behind the same calls.
//!
//! It keeps no copy of a value: a credential changed or removed elsewhere counts at the next call.
//! Only [`Vault::recent`] may answer with what the keychain said up to [`FRESH`] ago.
//!
//! [`FRESH`]: crate::FRESH

use crate::folder::Folder;
use crate::keychain::Keychain;
use crate::lately::Lately;
use crate::{Error, Scope, Value};
use protocol::SecretId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long any call may take in all.
pub const LIMIT: Duration = Duration::from_secs(3);

/// Where credentials are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// The OS keychain. Installations with different homes do not see each other's items.
    Keychain { home: String },
    /// A folder with a file for each credential, for machines without a keychain.
    File(PathBuf),
}

/// A handle to the store; clones share it.
#[derive(Clone, Debug)]
pub struct Vault(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    place: Place,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Place {
    Keychain { keychain: Keychain, lately: Lately },
    File(Folder),
}

impl Vault {
    /// Opens nothing yet.
    pub fn new(backend: Backend) -> Self {
        match backend {
            Backend::Keychain { home } => Self::of(Keychain::new(home)),
            Backend::File(dir) => Self::at(Place::File(Folder::new(dir))),
        }
    }

    /// The keychain on a bus that is not this session's own.
    #[cfg(target_os = "linux")]
    pub fn on_bus(home: &str, address: &str) -> Self {
        Self::of(Keychain::on_bus(home, address))
    }

    fn of(keychain: Keychain) -> Self {
        Self::at(Place::Keychain { keychain, lately: Lately::default() })
    }

    fn at(place: Place) -> Self {
        Self(Arc::new(Inside { place, turn: tokio::sync::Mutex::default() }))
    }

    /// For whoever writes down elsewhere what is stored here: with this held, nobody else who asks
    /// for it changes anything, and a value and what is written about it belong together.
    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    /// `keychain` or `file`.
    pub fn kept_in(&self) -> &'static str {
        match self.0.place {
            Place::Keychain { .. } => "keychain",
            Place::File(_) => "file",
        }
    }

    pub async fn get(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        self.bounded(async {
            match &self.0.place {
                Place::Keychain { keychain, .. } => keychain.get(scope, id).await,
                Place::File(folder) => folder.get(scope, id).await,
            }
        })
        .await
    }

    /// The same for a box's request, of which there may be many: what the keychain said up to 5 s ago
    /// counts, and one that did not answer is not asked again for half a minute. Files are always read.
    pub async fn recent(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        let Place::Keychain { lately, .. } = &self.0.place else {
            return self.get(scope, id).await;
        };
        if let Some(value) = lately.get(scope, id) {
            return Ok(Some(value));
        }
        let begun = lately.begin()?;
        let value = self.get(scope, id).await?;
        if let Some(value) = &value {
            lately.keep(&begun, scope, id, value);
        }
        Ok(value)
    }

    /// Keeps the value, in place of the one that was there.
    pub async fn set(&self, scope: &Scope, id: &SecretId, value: Value) -> Result<(), Error> {
        let value = value.checked()?;
        let _changed = self.changing(scope, id);
        self.bounded(async {
            match &self.0.place {
                Place::Keychain { keychain, .. } => keychain.set(scope, id, value).await,
                Place::File(folder) => folder.set(scope, id, value).await,
            }
        })
        .await
    }

    /// Whether there was one.
    pub async fn remove(&self, scope: &Scope, id: &SecretId) -> Result<bool, Error> {
        let _changed = self.changing(scope, id);
        self.bounded(async {
            match &self.0.place {
                Place::Keychain { keychain, .. } => keychain.remove(scope, id).await,
                Place::File(folder) => folder.remove(scope, id).await,
            }
        })
        .await
    }

    /// What is stored in a scope, by name. Values are not touched.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<SecretId>, Error> {
        let mut ids = self
            .bounded(async {
                match &self.0.place {
                    Place::Keychain { keychain, .. } => keychain.list(scope).await,
                    Place::File(folder) => folder.list(scope).await,
                }
            })
            .await?;
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn changing<'a>(&'a self, scope: &'a Scope, id: &'a SecretId) -> Changing<'a> {
        Changing { place: &self.0.place, scope, id }
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let answer = tokio::time::timeout(LIMIT, call).await;
        match (&self.0.place, answer) {
            (Place::Keychain { lately, .. }, Ok(answer)) => {
                lately.has_answered();
                answer
            }
            (Place::Keychain { keychain, lately }, Err(_)) => {
                keychain.forget();
                lately.was_silent();
                Err(Error::Silent("the keychain did not answer within 3 s"))
            }
            (Place::File(_), Ok(answer)) => answer,
            (Place::File(_), Err(_)) => {
                Err(Error::Silent("the folder of credentials did not answer within 3 s"))
            }
        }
    }
}

/// A value is being changed. However that ends, also when its caller leaves, what was read before
/// its end counts no more.
struct Changing<'a> {
    place: &'a Place,
    scope: &'a Scope,
    id: &'a SecretId,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if let Place::Keychain { lately, .. } = self.place {
            lately.forget(self.scope, self.id);
        }
    }
}
