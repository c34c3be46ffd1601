//! A call for unit tests: a relay with nobody around it, and one box.

use crate::call::{Call, Origin};
use crate::ports::{
    BoxPort, Checkpoints, Credentials, Entry, EventLog, NewCheckpoint, Policies, Policy, PortError,
    Trail, TrailError,
};
use crate::process::base_env;
use crate::{Deps, Rates, Registration, Relay, Token, Waits};
use approvals::{BoxFuture, Broker, Draft, Journal, JournalError, Limits, Wanted};
use protocol::control::CheckpointView;
use protocol::ctl::{CloneIn, KnownTags, Pack, TagsHead, Unbundle};
use protocol::events::JsonText;
use protocol::question::{Grant, Outcome, Question};
use protocol::rpc::EventPost;
use protocol::{BoxId, QuestionId, SecretId};
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A call of a box whose relay has its programs in `<dir>/bin` and this environment.
pub fn call(dir: &Path, method: &str, inherited: Vec<(OsString, OsString)>) -> Call {
    let nobody = Arc::new(Nobody);
    let relay = Relay::new(Deps {
        broker: Broker::new(nobody.clone(), Limits::default()),
        port: nobody.clone(),
        trail: nobody.clone(),
        events: nobody.clone(),
        policies: nobody.clone(),
        credentials: nobody,
        search_path: dir.join("bin").into(),
        env: base_env(inherited.iter().cloned()),
        inherited,
        home: dir.join("home"),
        scratch: dir.join("scratch"),
        question_timeout: Limits::default().timeout,
        rates: Rates::default(),
        waits: Waits::default(),
    });
    let registration = Registration {
        id: "b00000001".parse().unwrap(),
        name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: dir.join("shop"),
        workspace: dir.join("shop"),
        worktrees: Vec::new(),
    };
    let id = registration.id.clone();
    relay.open(registration, Token::from_bytes([7; 32]).hash());
    Call {
        shared: relay.shared.clone(),
        state: relay.state(&id).unwrap(),
        method: method.to_owned(),
        origin: Origin::Box,
        policy: Arc::new(Policy::default()),
        times: approvals::Times::default(),
    }
}

/// Keeps nothing, has nothing, and every stored credential is the same.
struct Nobody;

type Got<'a, T> = BoxFuture<'a, Result<T, PortError>>;

fn none<'a, T: Send + 'a>() -> Got<'a, T> {
    Box::pin(async { Err(PortError("no box".into())) })
}

impl BoxPort for Nobody {
    fn export_bundle<'a>(
        &'a self,
        _: &'a BoxId,
        _: &'a str,
        _: &'a str,
        _: &'a [String],
        _: &'a Path,
    ) -> Got<'a, Option<String>> {
        none()
    }
    fn import_bundle<'a>(&'a self, _: &'a BoxId, _: Unbundle, _: Option<&'a Path>) -> Got<'a, ()> {
        none()
    }
    fn pack<'a>(&'a self, _: &'a BoxId, _: Pack, _: File, _: u64) -> Got<'a, ()> {
        none()
    }
    fn unpack<'a>(&'a self, _: &'a BoxId, _: File, _: &'a str) -> Got<'a, ()> {
        none()
    }
    fn checkpoints<'a>(&'a self, _: &'a BoxId) -> Got<'a, Checkpoints> {
        none()
    }
    fn checkpoint<'a>(&'a self, _: &'a BoxId, _: NewCheckpoint) -> Got<'a, CheckpointView> {
        none()
    }
    fn export_tags<'a>(
        &'a self,
        _: &'a BoxId,
        _: &'a str,
        _: &'a KnownTags,
        _: &'a [String],
        _: &'a Path,
    ) -> Got<'a, TagsHead> {
        none()
    }
    fn import_clone<'a>(&'a self, _: &'a BoxId, _: CloneIn, _: Option<&'a Path>) -> Got<'a, ()> {
        none()
    }
    fn ref_changed(&self, _: &BoxId) {}
}

impl Trail for Nobody {
    fn record(&self, _: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        Box::pin(async { Ok(()) })
    }
    fn jot(&self, _: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        Box::pin(async { Ok(()) })
    }
}

impl EventLog for Nobody {
    fn keep(&self, _: &BoxId, _: EventPost) -> u64 {
        0
    }
    fn status(&self, _: &BoxId, _: JsonText) {}
}

impl Policies for Nobody {
    fn policy(&self, _: &Path) -> Policy {
        Policy::default()
    }
}

impl Credentials for Nobody {
    fn get<'a>(&'a self, _: &'a SecretId) -> BoxFuture<'a, Result<Option<secrets::Value>, String>> {
        Box::pin(async { Ok(Some(secrets::Value::new("stored-credential".into()))) })
    }
}

impl Journal for Nobody {
    fn asked<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn resolved<'a>(
        &'a self,
        _: &'a QuestionId,
        _: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn refused<'a>(
        &'a self,
        _: &'a Draft,
        _: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn grant_for<'a>(
        &'a self,
        _: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async { Ok(None) })
    }
    fn remember<'a>(&'a self, _: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}
