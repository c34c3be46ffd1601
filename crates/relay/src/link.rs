//! `browser.open`: a box would like a person to see a page.
//!
//! The box has its answer at once, whatever becomes of it: an agent must not hang because nobody
//! looks. What follows is an offer of a few seconds, one for each box at a time. Only a yes to that
//! very offer opens the page; no setting and no rule does. The surprising thing: the opener is
//! started in a way of its own, because it may become the browser itself and then has to outlive
//! the call, without the bounds other host programs get.

use crate::call::{Call, Stop};
use crate::decide::{Refusal, Request};
use crate::process::Tool;
use connectors::link::Link;
use protocol::exit;
use protocol::question::{Fact, Tier};
use protocol::rpc::{Envelope, EventPost, OpenParams};
use serde_json::json;
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// How long an offer stands.
/// What whoever looks at the events is told.
pub(crate) const EVENT: &str = "browser-open";
const OFFER: Duration = Duration::from_secs(25);
/// How long the opener may take to say whether it worked.
const OPEN: Duration = Duration::from_secs(15);
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// What tells the opener which desktop it is on.
const DESKTOP: &[&str] = &["XDG_", "DESKTOP_SESSION", "KDE_", "GNOME_", "BROWSER", "GDK_", "MOZ_"];

#[derive(Debug)]
pub(crate) struct Plan(pub(crate) Link);

/// The one offer of a box that may be open.
#[derive(Default)]
pub(crate) struct Offer(Mutex<CancellationToken>);

impl Offer {
    /// Takes the place of the one before, which ends.
    fn replace(&self) -> CancellationToken {
        let fresh = CancellationToken::new();
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, fresh.clone()).cancel();
        fresh
    }
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    match request.method {
        "browser.open" => {
            let params: OpenParams = request.params(Link::SURFACE)?;
            Ok(Plan(Link::parse(&params.url)?))
        }
        _ => Err(Refusal::Unknown),
    }
}

pub(crate) fn execute(call: &Call, Plan(link): Plan) -> Result<Envelope, Stop> {
    if !call.state.links.take() {
        return Err(Stop::denied("browser open: too many links from this box; wait and retry"));
    }
    let payload = json!({ "url": link.as_str() });
    let payload = serde_json::value::to_raw_value(&payload).ok();
    let event = EventPost { kind: EVENT.into(), ts: None, payload };
    call.shared.deps.events.keep(&call.reg().id, event);
    let replaced = call.state.offer.replace();
    let (later, closed) = (call.clone(), call.state.closed.clone());
    call.shared.tasks.spawn(async move {
        // Dropping the offer withdraws its question.
        tokio::select! {
            () = offer(&later, &link) => {}
            () = replaced.cancelled() => {}
            () = closed.cancelled() => {}
        }
    });
    Ok(Envelope::default())
}

async fn offer(call: &Call, link: &Link) {
    let title = format!("Open a page of {} in your browser", link.site());
    let mut draft = call.draft(Tier::Sensitive, title, link.site());
    draft.evidence.facts = vec![
        Fact { label: "Site".into(), value: link.site().into() },
        Fact { label: "Host".into(), value: link.host().into() },
        Fact { label: "Address".into(), value: link.as_str().into() },
    ];
    if link.may_look_like_another() {
        let text = "the name has letters of other scripts: it may look like another site's";
        draft.warnings.push(text.into());
    }
    draft.argv = vec![OPENER.to_owned(), link.as_str().to_owned()];
    draft.timeout = Some(OFFER);
    let title = draft.title.clone();
    if call.gate(draft, None).await.is_err() {
        return;
    }
    // From here on a newer offer changes nothing any more.
    let (later, url) = (call.clone(), link.as_str().to_owned());
    let opened = async move {
        let envelope = open(&later, &url).await.unwrap_or_else(|stop| stop.envelope);
        Ok(later.done(title, json!({ "argv": [OPENER, url] }), envelope).await)
    };
    if let Ok(envelope) = call.finish(opened).await
        && envelope.exit_code != 0
    {
        tracing::warn!("a page was not opened: {}", envelope.stderr.trim_end());
    }
}

async fn open(call: &Call, url: &str) -> Result<Envelope, Stop> {
    let tool = call.tool(OPENER)?;
    let mut child = command(&tool, url, environment(call)).spawn().map_err(|e| {
        Stop::fail(exit::FAILURE, format!("browser open: cannot run {}: {e}", tool.path.display()))
    })?;
    match tokio::time::timeout(OPEN, child.wait()).await {
        Ok(Ok(status)) if !status.success() => {
            Err(Stop::fail(exit::FAILURE, format!("browser open: {OPENER} failed: {status}")))
        }
        Ok(Err(e)) => Err(Stop::fail(exit::FAILURE, format!("browser open: {OPENER}: {e}"))),
        // One that has not ended is the browser by now.
        Ok(Ok(_)) | Err(_) => Ok(Envelope::default()),
    }
}

/// One argument, nothing to read, nobody listening, in no folder of anybody's.
fn command(tool: &Tool, url: &str, env: Vec<(OsString, OsString)>) -> Command {
    let mut command = Command::new(&tool.path);
    command.arg(url).current_dir("/").env_clear().envs(env);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(false);
    command
}

/// Other host programs must not open a browser; this one must, and the person's own choice counts.
fn environment(call: &Call) -> Vec<(OsString, OsString)> {
    let mut env = call.env(DESKTOP);
    let own = call.shared.deps.inherited.iter().find(|(key, _)| key == "BROWSER").cloned();
    env.retain(|(key, _)| key != "BROWSER");
    env.extend(own);
    env
}
