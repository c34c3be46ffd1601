//! The store of credentials: one of two places behind the same five calls.
//!
//! It keeps no copy of a value: a credential changed or removed elsewhere counts at the next call.

use crate::folder::Folder;
use crate::keychain::Keychain;
use crate::{Error, Value};
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
pub struct Vault(Arc<Place>);

#[derive(Debug)]
enum Place {
    Keychain(Keychain),
    File(Folder),
}

impl Vault {
    /// Opens nothing yet.
    pub fn new(backend: Backend) -> Self {
        Self(Arc::new(match backend {
            Backend::Keychain { home } => Place::Keychain(Keychain::new(home)),
            Backend::File(dir) => Place::File(Folder::new(dir)),
        }))
    }

    /// The keychain on a bus that is not this session's own.
    #[cfg(target_os = "linux")]
    pub fn on_bus(home: &str, address: &str) -> Self {
        Self(Arc::new(Place::Keychain(Keychain::on_bus(home, address))))
    }

    /// `keychain` or `file`.
    pub fn kept_in(&self) -> &'static str {
        match *self.0 {
            Place::Keychain(_) => "keychain",
            Place::File(_) => "file",
        }
    }

    pub async fn get(&self, id: &SecretId) -> Result<Option<Value>, Error> {
        self.bounded(async {
            match &*self.0 {
                Place::Keychain(keychain) => keychain.get(id).await,
                Place::File(folder) => folder.get(id).await,
            }
        })
        .await
    }

    /// Keeps the value, in place of the one that was there.
    pub async fn set(&self, id: &SecretId, value: Value) -> Result<(), Error> {
        let value = value.checked()?;
        self.bounded(async {
            match &*self.0 {
                Place::Keychain(keychain) => keychain.set(id, value).await,
                Place::File(folder) => folder.set(id, value).await,
            }
        })
        .await
    }

    /// Whether there was one.
    pub async fn remove(&self, id: &SecretId) -> Result<bool, Error> {
        self.bounded(async {
            match &*self.0 {
                Place::Keychain(keychain) => keychain.remove(id).await,
                Place::File(folder) => folder.remove(id).await,
            }
        })
        .await
    }

    /// What is stored, by name. Values are not touched.
    pub async fn list(&self) -> Result<Vec<SecretId>, Error> {
        let mut ids = self
            .bounded(async {
                match &*self.0 {
                    Place::Keychain(keychain) => keychain.list().await,
                    Place::File(folder) => folder.list().await,
                }
            })
            .await?;
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    async fn bounded<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::time::timeout(LIMIT, call).await.unwrap_or_else(|_| {
            Err(Error::Failed(match &*self.0 {
                Place::Keychain(keychain) => {
                    keychain.forget();
                    "the keychain did not answer within 3 s".into()
                }
                Place::File(_) => "the folder of credentials did not answer within 3 s".into(),
            }))
        })
    }
}
