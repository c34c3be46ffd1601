//! The login keychain of macOS, as generic passwords. Nobody has run this yet: it is only known to
//! compile.
//!
//! The calls block, so each has a thread. Interaction is switched off while they run: a locked
//! keychain, or one that wants to ask whether this program may read the item, is an error instead of
//! a window.

use crate::{Error, Scope, Value};
use protocol::SecretId;
use security_framework::base::Error as MacError;
use security_framework::item::{ItemClass, ItemSearchOptions, Limit, SearchResult};
use security_framework::os::macos::keychain::SecKeychain;
use security_framework::passwords::{
    delete_generic_password, get_generic_password, set_generic_password,
};
use zeroize::Zeroizing;

// From SecBase.h.
const NOT_FOUND: i32 = -25300;
const NOT_AVAILABLE: i32 = -25291;
const NO_SUCH_KEYCHAIN: i32 = -25294;
const NO_DEFAULT_KEYCHAIN: i32 = -25307;
const AUTH_FAILED: i32 = -25293;
const INTERACTION_NOT_ALLOWED: i32 = -25308;
const INTERACTION_REQUIRED: i32 = -25315;

#[derive(Debug)]
pub(crate) struct Keychain {
    /// Part of the item's “service”; its “account” is the credential.
    home: String,
}

impl Keychain {
    pub fn new(home: String) -> Self {
        Self { home }
    }

    pub async fn get(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        let id = id.clone();
        let get = move |service: &str| get_generic_password(service, id.as_str());
        let found = self.quietly(scope, get).await?;
        found.map(|bytes| Value::from_bytes(Zeroizing::new(bytes))).transpose()
    }

    pub async fn set(&self, scope: &Scope, id: &SecretId, value: Value) -> Result<(), Error> {
        let id = id.clone();
        let set = move |service: &str| {
            set_generic_password(service, id.as_str(), value.expose().as_bytes())
        };
        self.quietly(scope, set).await.map(|_| ())
    }

    pub async fn remove(&self, scope: &Scope, id: &SecretId) -> Result<bool, Error> {
        let id = id.clone();
        let delete = move |service: &str| delete_generic_password(service, id.as_str());
        Ok(self.quietly(scope, delete).await?.is_some())
    }

    pub async fn list(&self, scope: &Scope) -> Result<Vec<SecretId>, Error> {
        let found = self.quietly(scope, |service| {
            let items = ItemSearchOptions::new()
                .class(ItemClass::generic_password())
                .service(service)
                .load_attributes(true)
                .limit(Limit::All)
                .search()?;
            let account = |item: &SearchResult| item.simplify_dict()?.remove("acct")?.parse().ok();
            Ok(items.iter().filter_map(account).collect())
        });
        Ok(found.await?.unwrap_or_default())
    }

    /// There is no connection to give up.
    #[allow(clippy::unused_self)]
    pub fn forget(&self) {}

    fn service(&self, scope: &Scope) -> String {
        match scope.parts() {
            None => format!("agentbox {}", self.home),
            Some((kind, name)) => format!("agentbox/{kind}/{name} {}", self.home),
        }
    }

    /// None when there is no such item.
    async fn quietly<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce(&str) -> Result<T, MacError> + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let service = self.service(scope);
        let done = tokio::task::spawn_blocking(move || {
            let _silent = SecKeychain::disable_user_interaction()?;
            work(&service)
        });
        match done.await {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(e)) if e.code() == NOT_FOUND => Ok(None),
            Ok(Err(e)) => Err(failure(e)),
            Err(_) => Err(Error::Failed("asking the keychain was interrupted".into())),
        }
    }
}

fn failure(error: MacError) -> Error {
    match error.code() {
        AUTH_FAILED | INTERACTION_NOT_ALLOWED | INTERACTION_REQUIRED => Error::Locked,
        NOT_AVAILABLE | NO_SUCH_KEYCHAIN | NO_DEFAULT_KEYCHAIN => {
            Error::Missing("there is no login keychain".into())
        }
        code => Error::Failed(format!("the keychain refused: {error} ({code})")),
    }
}
