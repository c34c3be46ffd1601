//! A Secret Service that says it is unlocked and then wants a password for every change, as KeePassXC
//! can. It counts how often its prompt was started and put away.

// The macro needs `self` and touches every argument.
#![allow(clippy::unused_self, clippy::used_underscore_binding)]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zbus::blocking::{Connection, connection};
use zbus::interface;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

#[derive(Clone, Default)]
pub struct Counts {
    pub shown: Arc<AtomicUsize>,
    pub dismissed: Arc<AtomicUsize>,
}

/// Serves until dropped.
pub struct Prompting {
    _bus: Connection,
    pub counts: Counts,
}

impl Prompting {
    pub fn start(address: &str) -> Self {
        let counts = Counts::default();
        let bus = connection::Builder::address(address)
            .and_then(|b| b.name("org.freedesktop.secrets"))
            .and_then(|b| b.serve_at("/org/freedesktop/secrets", Service))
            .and_then(|b| b.serve_at("/c", Collection))
            .and_then(|b| b.serve_at("/i", Item))
            .and_then(|b| b.serve_at("/p", Prompt(counts.clone())))
            .and_then(zbus::blocking::connection::Builder::build)
            .unwrap();
        Self { _bus: bus, counts }
    }
}

fn path(text: &'static str) -> OwnedObjectPath {
    text.try_into().unwrap()
}

struct Service;

#[interface(name = "org.freedesktop.Secret.Service")]
impl Service {
    fn open_session(&self, _algorithm: &str, _input: Value<'_>) -> (OwnedValue, OwnedObjectPath) {
        (Value::from("").try_into().unwrap(), path("/s"))
    }

    fn read_alias(&self, _name: &str) -> OwnedObjectPath {
        path("/c")
    }
}

struct Collection;

#[interface(name = "org.freedesktop.Secret.Collection")]
impl Collection {
    #[zbus(property)]
    fn locked(&self) -> bool {
        false
    }

    fn search_items(&self, _attributes: HashMap<String, String>) -> Vec<OwnedObjectPath> {
        vec![path("/i")]
    }

    fn create_item(
        &self,
        _properties: HashMap<String, OwnedValue>,
        _secret: (OwnedObjectPath, Vec<u8>, Vec<u8>, String),
        _replace: bool,
    ) -> (OwnedObjectPath, OwnedObjectPath) {
        (path("/"), path("/p"))
    }
}

struct Item;

#[interface(name = "org.freedesktop.Secret.Item")]
impl Item {
    fn delete(&self) -> OwnedObjectPath {
        path("/p")
    }

    fn get_secret(&self, _session: OwnedObjectPath) -> zbus::fdo::Result<()> {
        Err(zbus::fdo::Error::AuthFailed("not without the password".into()))
    }
}

struct Prompt(Counts);

#[interface(name = "org.freedesktop.Secret.Prompt")]
impl Prompt {
    fn prompt(&self, _window: &str) {
        self.0.shown.fetch_add(1, Ordering::SeqCst);
    }

    fn dismiss(&self) {
        self.0.dismissed.fetch_add(1, Ordering::SeqCst);
    }
}
