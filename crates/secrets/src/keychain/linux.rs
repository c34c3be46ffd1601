//! The freedesktop Secret Service (GNOME Keyring, KWallet, KeePassXC) over D-Bus.
//!
//! Only the default collection is used, and only while it is unlocked. Where the service would ask
//! for a password it hands out a *prompt*, which does nothing until somebody starts it: we never do.
//!
//! The connection and the transfer session are kept between calls, for they cost as much as all the
//! rest. They are bound to the keyring process by its unique bus name, so a keyring that was
//! restarted is noticed at the first question, which is then put to the new one.

use crate::{Error, Scope, Value};
use protocol::SecretId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use zbus::names::{BusName, OwnedUniqueName};
use zbus::zvariant::{
    DynamicType, ObjectPath, OwnedObjectPath, OwnedValue, Type, Value as Variant,
};
use zbus::{Connection, Message};
use zeroize::Zeroizing;

const SERVICE_NAME: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// What the protocol says for “none”.
const NOTHING: &str = "/";

/// Names are ours, values the home's, the scope's or the credential's.
type Attributes<'a> = HashMap<&'a str, Cow<'a, str>>;
/// Session, parameters, value, content type.
type Secret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

#[derive(Debug)]
pub(crate) struct Keychain {
    home: String,
    /// None means the bus of this session.
    address: Option<String>,
    link: Mutex<Option<Link>>,
    /// The default collection at the last call.
    last: Mutex<Option<OwnedObjectPath>>,
}

/// A keyring process we talk to.
#[derive(Debug, Clone)]
struct Link {
    bus: Connection,
    owner: OwnedUniqueName,
    session: OwnedObjectPath,
}

/// One of its collections.
struct Collection {
    link: Link,
    path: OwnedObjectPath,
}

impl Keychain {
    pub fn new(home: String) -> Self {
        Self { home, address: None, link: Mutex::default(), last: Mutex::default() }
    }

    pub fn on_bus(home: &str, address: &str) -> Self {
        let address = Some(address.to_owned());
        Self { address, ..Self::new(home.to_owned()) }
    }

    /// Whether credentials could be kept in this session.
    pub async fn usable() -> Result<(), Error> {
        Self::new(String::new()).open().await.map(|_| ())
    }

    pub async fn get(&self, scope: &Scope, id: &SecretId) -> Result<Option<Value>, Error> {
        let (collection, items) = self.find(&self.attributes(scope, id)).await?;
        let Some(item) = items.into_iter().next() else { return Ok(None) };
        let session = collection.link.session.as_ref();
        let asked = collection.link.call(&item, ITEM, "GetSecret", &(session,)).await;
        let reply = asked.map_err(failure)?;
        let (_, _, value, _): Secret = read(&reply)?;
        Value::from_bytes(Zeroizing::new(value)).map(Some)
    }

    pub async fn set(&self, scope: &Scope, id: &SecretId, value: Value) -> Result<(), Error> {
        let collection = self.open().await?;
        let attributes = self.attributes(scope, id);
        let kept = collection.put(&label(scope, id), &attributes, &value).await?;
        // The service replaces one item with these attributes; another tool may have made more.
        for item in collection.search(&attributes).await? {
            if item != kept {
                collection.delete(&item).await?;
            }
        }
        Ok(())
    }

    pub async fn remove(&self, scope: &Scope, id: &SecretId) -> Result<bool, Error> {
        let collection = self.open().await?;
        let items = collection.search(&self.attributes(scope, id)).await?;
        for item in &items {
            collection.delete(item).await?;
        }
        Ok(!items.is_empty())
    }

    pub async fn list(&self, scope: &Scope) -> Result<Vec<SecretId>, Error> {
        let collection = self.open().await?;
        let mut ids = Vec::new();
        for item in collection.search(&self.ours(scope)).await? {
            let attributes: HashMap<String, String> =
                collection.link.property(&item, ITEM, "Attributes").await?;
            ids.extend(attributes.get("id").and_then(|id| id.parse().ok()));
        }
        Ok(ids)
    }

    /// The next call starts over with a new connection.
    pub fn forget(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A search finds every item that has these attributes and any others. So scopes differ in the
    /// value of one that all have: a wider scope's search must not find a narrower one's item.
    fn ours(&self, scope: &Scope) -> Attributes<'_> {
        let application = match scope.parts() {
            None => Cow::from("agentbox"),
            Some((kind, name)) => Cow::from(format!("agentbox/{kind}/{name}")),
        };
        HashMap::from([("application", application), ("home", self.home.as_str().into())])
    }

    fn attributes<'a>(&'a self, scope: &Scope, id: &'a SecretId) -> Attributes<'a> {
        let mut attributes = self.ours(scope);
        attributes.insert("id", id.as_str().into());
        attributes
    }

    /// The items with these attributes. Every agent's read waits for this, so all that has to be asked is
    /// asked at once, of the collection that was the default last time; if it is not, nothing of it counts.
    async fn find(
        &self,
        attributes: &Attributes<'_>,
    ) -> Result<(Collection, Vec<OwnedObjectPath>), Error> {
        if let (Some(link), Some(path)) = (kept(&self.link), kept(&self.last)) {
            let likely = Collection { link, path };
            let (default, locked, items) = tokio::join!(
                likely.link.default_collection(),
                likely.is_locked(),
                likely.search(attributes)
            );
            if default.is_ok_and(|default| default == likely.path) {
                return if locked? { Err(Error::Locked) } else { Ok((likely, items?)) };
            }
        }
        let collection = self.open().await?;
        let items = collection.search(attributes).await?;
        Ok((collection, items))
    }

    async fn open(&self) -> Result<Collection, Error> {
        if let Some(link) = kept(&self.link)
            && let Ok(path) = link.default_collection().await
        {
            return self.unlocked(link, path).await;
        }
        let link = Link::new(self.address.as_deref()).await?;
        keep(&self.link, &link);
        let path = link.default_collection().await.map_err(failure)?;
        self.unlocked(link, path).await
    }

    async fn unlocked(&self, link: Link, path: OwnedObjectPath) -> Result<Collection, Error> {
        if path.as_str() == NOTHING {
            return Err(Error::Missing("it has no default keyring".into()));
        }
        keep(&self.last, &path);
        let collection = Collection { link, path };
        if collection.is_locked().await? { Err(Error::Locked) } else { Ok(collection) }
    }
}

impl Link {
    async fn new(address: Option<&str>) -> Result<Self, Error> {
        let no_bus = |_| Error::Missing("there is no D-Bus session to ask".into());
        let bus = match address {
            Some(address) => zbus::connection::Builder::address(address).map_err(no_bus)?,
            None => zbus::connection::Builder::session().map_err(no_bus)?,
        };
        let bus = bus.build().await.map_err(no_bus)?;
        // “plain” leaves the value readable to whoever may watch this bus; they are the ones who may
        // ask the keyring for it as well.
        let arguments = ("plain", Variant::from(""));
        let service = BusName::try_from(SERVICE_NAME).map_err(|e| failure(e.into()))?;
        let asked =
            bus.call_method(Some(service), SERVICE_PATH, Some(SERVICE), "OpenSession", &arguments);
        let reply = asked.await.map_err(failure)?;
        let (_, session): (OwnedValue, OwnedObjectPath) = read(&reply)?;
        let header = reply.header();
        let owner = header.sender().ok_or_else(|| Error::Failed(NONSENSE.into()))?;
        Ok(Self { owner: owner.to_owned().into(), session, bus })
    }

    async fn default_collection(&self) -> zbus::Result<OwnedObjectPath> {
        let service = ObjectPath::from_static_str(SERVICE_PATH)?;
        let reply = self.call(&service, SERVICE, "ReadAlias", &("default",)).await?;
        reply.body().deserialize()
    }

    async fn property<T>(&self, object: &ObjectPath<'_>, of: &str, name: &str) -> Result<T, Error>
    where
        T: TryFrom<OwnedValue>,
    {
        let reply = self.call(object, PROPERTIES, "Get", &(of, name)).await.map_err(failure)?;
        let value: OwnedValue = read(&reply)?;
        T::try_from(value).map_err(|_| Error::Failed(NONSENSE.into()))
    }

    async fn call<B>(
        &self,
        object: &ObjectPath<'_>,
        interface: &str,
        method: &str,
        arguments: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + DynamicType,
    {
        self.bus.call_method(Some(&self.owner), object, Some(interface), method, arguments).await
    }
}

impl Collection {
    async fn is_locked(&self) -> Result<bool, Error> {
        self.link.property(&self.path, COLLECTION, "Locked").await
    }

    async fn search(&self, attributes: &Attributes<'_>) -> Result<Vec<OwnedObjectPath>, Error> {
        let asked =
            self.link.call(&self.path, COLLECTION, "SearchItems", &(plain(attributes),)).await;
        read(&asked.map_err(failure)?)
    }

    async fn put(
        &self,
        label: &str,
        attributes: &Attributes<'_>,
        value: &Value,
    ) -> Result<OwnedObjectPath, Error> {
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(label)),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(plain(attributes))),
        ]);
        let session = self.link.session.as_ref();
        let secret = (session, [0u8; 0].as_slice(), value.expose().as_bytes(), "text/plain");
        let arguments = (properties, secret, true);
        let asked = self.link.call(&self.path, COLLECTION, "CreateItem", &arguments).await;
        let (item, prompt): (OwnedObjectPath, OwnedObjectPath) = read(&asked.map_err(failure)?)?;
        self.no_prompt(&prompt).await?;
        Ok(item)
    }

    async fn delete(&self, item: &OwnedObjectPath) -> Result<(), Error> {
        let reply = self.link.call(item, ITEM, "Delete", &()).await.map_err(failure)?;
        self.no_prompt(&read(&reply)?).await
    }

    /// A prompt means that the service wants a password first. It is put away unseen.
    async fn no_prompt(&self, prompt: &OwnedObjectPath) -> Result<(), Error> {
        if prompt.as_str() == NOTHING {
            return Ok(());
        }
        let _ = self.link.call(prompt, PROMPT, "Dismiss", &()).await;
        Err(Error::Locked)
    }
}

fn plain<'a>(attributes: &'a Attributes<'_>) -> HashMap<&'a str, &'a str> {
    attributes.iter().map(|(name, value)| (*name, value.as_ref())).collect()
}

/// What a person sees in a program for keyrings.
fn label(scope: &Scope, id: &SecretId) -> String {
    match scope {
        Scope::Everybody => format!("AgentBox: {id}"),
        _ => format!("AgentBox: {id} ({scope})"),
    }
}

const NONSENSE: &str = "the keyring answered something that is not the Secret Service's protocol";

fn kept<T: Clone>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn keep<T: Clone>(place: &Mutex<Option<T>>, what: &T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.clone());
}

fn read<T>(reply: &Message) -> Result<T, Error>
where
    T: for<'a> serde::Deserialize<'a> + Type,
{
    reply.body().deserialize().map_err(|_| Error::Failed(NONSENSE.into()))
}

/// A failed call in words. Only the service's own text is quoted, never what it was sent.
fn failure(error: zbus::Error) -> Error {
    let zbus::Error::MethodError(name, said, _) = error else {
        return Error::Failed("the D-Bus session ended while the keyring was asked".into());
    };
    match name.rsplit('.').next().unwrap_or_default() {
        "IsLocked" => Error::Locked,
        "ServiceUnknown" | "NameHasNoOwner" => {
            Error::Missing("no Secret Service (GNOME Keyring, KWallet) runs in this session".into())
        }
        "NoReply" | "Disconnected" => Error::Failed("the keyring ended while it was asked".into()),
        _ => {
            let said = said.filter(|said| !said.is_empty()).unwrap_or_else(|| name.to_string());
            Error::Failed(format!("the keyring refused: {said}"))
        }
    }
}
