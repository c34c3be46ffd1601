//! One request: whom it is for, whether it may pass, and the answer.

use crate::Boxes;
use crate::fields;
use crate::page::Page;
use crate::wire::{self, ToBoxes};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, HeaderMap, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use protocol::boxes::BoxState;
use protocol::web::{Host, SCREEN, What};
use protocol::{BoxId, BoxName};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests and sockets one box may have open at once.
const MAX_OPEN: usize = 128;
/// How long a box may take for the head of an answer; a slow upload counts.
const ANSWER: Duration = Duration::from_secs(600);
/// A path of a screen's name that no program in a box gets to see; the ticket follows it.
pub const TICKET: &str = "/.agentbox/screen/";
/// How long waking a frozen box may take.
const WAKE: Duration = Duration::from_secs(20);

pub(crate) type Reply = Response<Answer>;

pub(crate) struct Passing {
    boxes: Arc<dyn Boxes>,
    client: ToBoxes,
    open: Mutex<HashMap<BoxId, Arc<Semaphore>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Where a request goes.
struct Way {
    id: BoxId,
    name: BoxName,
    port: u16,
    state: BoxState,
}

impl Way {
    fn keep_from_other_screens(&self, fields: &mut HeaderMap) {
        if self.port == SCREEN {
            fields::without_cookies(fields);
        }
    }
}

impl Passing {
    pub fn new(boxes: Arc<dyn Boxes>, stop: CancellationToken, tasks: TaskTracker) -> Self {
        let client = wire::client(boxes.clone());
        Self { boxes, client, open: Mutex::default(), stop, tasks }
    }

    pub fn open(&self, id: &BoxId) -> usize {
        self.places().get(id).map_or(0, |places| MAX_OPEN - places.available_permits())
    }

    fn places(&self) -> MutexGuard<'_, HashMap<BoxId, Arc<Semaphore>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, id: &BoxId) -> Option<OwnedSemaphorePermit> {
        let mut all = self.places();
        // Boxes come and go; those nobody uses are forgotten.
        all.retain(|other, places| other == id || places.available_permits() < MAX_OPEN);
        let places = all.entry(id.clone()).or_insert_with(|| Arc::new(Semaphore::new(MAX_OPEN)));
        places.clone().try_acquire_owned().ok()
    }

    pub async fn answer(&self, request: Request<Incoming>, from: SocketAddr) -> Reply {
        let asked = request.headers().clone();
        match self.pass(request, from).await {
            Ok(reply) => reply,
            Err(page) => page.response(&asked).map(Answer::page),
        }
    }

    async fn pass(&self, request: Request<Incoming>, from: SocketAddr) -> Result<Reply, Page> {
        let (mut parts, body) = request.into_parts();
        let host = checked_host(&parts)?;
        let way = self.way(&parts, &host)?;
        let place = self.place(&way.id).ok_or_else(|| Page::crowded(&way.name))?;
        self.wake(&way).await?;
        if let Some(ticket) = parts.uri.path().strip_prefix(TICKET)
            && way.port == SCREEN
        {
            return self.redeem(&way, ticket);
        }

        let upgrade = fields::wants_socket(&parts.method, &parts.headers);
        let browser = upgrade.then(|| parts.extensions.remove::<OnUpgrade>()).flatten();
        fields::towards_box(&mut parts.headers, &host, from.ip());
        way.keep_from_other_screens(&mut parts.headers);
        if browser.is_some() {
            fields::as_socket(&mut parts.headers);
        }
        parts.uri =
            address(&way, &parts.uri).ok_or_else(|| Page::bad_request("It has no path."))?;
        parts.version = Version::HTTP_11;
        let sent = self.client.request(Request::from_parts(parts, body));
        let late = |_| Page::late(&way.name, way.port);
        let answer = tokio::time::timeout(ANSWER, sent).await.map_err(late)?;
        let answer = answer.map_err(|e| unanswered(&way, &e))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let garbled = || Page::garbled(&way.name, way.port);
            let browser = browser.ok_or_else(garbled)?;
            let mut joined = self.join(answer, browser, place).ok_or_else(garbled)?;
            way.keep_from_other_screens(joined.headers_mut());
            return Ok(joined);
        }
        let (mut head, body) = answer.into_parts();
        fields::towards_browser(&mut head.headers);
        way.keep_from_other_screens(&mut head.headers);
        head.version = Version::HTTP_11;
        Ok(Response::from_parts(head, Answer::of_box(body, place)))
    }

    /// The box, if it is there and the request may go to it.
    fn way(&self, parts: &Parts, host: &str) -> Result<Way, Page> {
        let read = Host::read(host);
        let Host::Ours(meanings) = &read else { return Err(Page::foreign_name()) };
        if parts.method == Method::CONNECT || parts.method == Method::TRACE {
            return Err(Page::bad_method());
        }
        let found = self.find(meanings);
        // Before anything is said about which boxes there are.
        let is_own = |other: &Host| match (other, &found) {
            (Host::Ours(meanings), Some(way)) => {
                self.find(meanings).is_some_and(|o| o.id == way.id)
            }
            _ => false,
        };
        if fields::is_foreign(&parts.headers, is_own) {
            return Err(Page::cross_site());
        }
        let way = found.ok_or_else(Page::unknown)?;
        match Page::of_state(&way.name, way.state) {
            Some(page) => Err(page),
            None => Ok(way),
        }
    }

    fn find(&self, meanings: &[What]) -> Option<Way> {
        meanings.iter().find_map(|What { name, port }| {
            let (id, state) = self.boxes.find(name)?;
            Some(Way { id, name: name.clone(), port: *port, state })
        })
    }

    async fn wake(&self, way: &Way) -> Result<(), Page> {
        if way.state != BoxState::Paused {
            return Ok(());
        }
        match tokio::time::timeout(WAKE, self.boxes.wake(&way.id)).await {
            Ok(Ok(())) => Ok(()),
            other => {
                tracing::debug!("proxy: {} was not woken: {other:?}", way.name);
                Err(Page::asleep(&way.name))
            }
        }
    }

    fn redeem(&self, way: &Way, ticket: &str) -> Result<Reply, Page> {
        let to = self.boxes.redeem(&way.id, ticket).and_then(|to| HeaderValue::from_str(&to).ok());
        let mut reply = Response::new(Answer::nothing());
        *reply.status_mut() = StatusCode::SEE_OTHER;
        reply.headers_mut().insert(LOCATION, to.ok_or_else(|| Page::used_up(&way.name))?);
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(reply)
    }

    /// Both sides have agreed on a WebSocket: from now on bytes go through as they are.
    fn join(
        &self,
        mut answer: Response<Incoming>,
        browser: OnUpgrade,
        place: OwnedSemaphorePermit,
    ) -> Option<Reply> {
        if !fields::is_websocket(answer.headers()) {
            return None;
        }
        let inside = hyper::upgrade::on(&mut answer);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let joined = async {
                let (browser, inside) = tokio::try_join!(browser, inside)?;
                Ok::<_, hyper::Error>(carry(browser, inside).await)
            };
            tokio::select! {
                () = stop.cancelled() => {}
                ended = joined => tracing::trace!("proxy: a socket ended: {ended:?}"),
            }
            drop(place);
        });
        let (mut head, _) = answer.into_parts();
        fields::towards_browser(&mut head.headers);
        fields::as_socket(&mut head.headers);
        Some(Response::from_parts(head, Answer::nothing()))
    }
}

async fn carry(browser: Upgraded, inside: Upgraded) -> std::io::Result<(u64, u64)> {
    let (mut browser, mut inside) = (TokioIo::new(browser), TokioIo::new(inside));
    tokio::io::copy_bidirectional(&mut browser, &mut inside).await
}

/// The Host header; an address in the request line must say the same.
fn checked_host(parts: &Parts) -> Result<String, Page> {
    let host = fields::host(&parts.headers);
    let host = host.ok_or_else(|| Page::bad_request("It must have exactly one Host header."))?;
    if parts.uri.authority().is_some_and(|a| !a.as_str().eq_ignore_ascii_case(host)) {
        return Err(Page::bad_request("Its address and its Host header differ."));
    }
    Ok(host.to_owned())
}

/// The address by which the pool knows a box's port.
fn address(way: &Way, asked: &Uri) -> Option<Uri> {
    let path = asked.path_and_query()?;
    let authority = format!("{}:{}", way.id, way.port);
    Uri::builder().scheme("http").authority(authority).path_and_query(path.clone()).build().ok()
}

fn unanswered(way: &Way, error: &hyper_util::client::legacy::Error) -> Page {
    tracing::debug!("proxy: {} port {}: {error:?}", way.name, way.port);
    let source = std::error::Error::source(error);
    let parse = source
        .and_then(|source| source.downcast_ref::<hyper::Error>())
        .is_some_and(|e| e.is_parse() || e.is_parse_too_large());
    if parse { Page::garbled(&way.name, way.port) } else { Page::silent(&way.name, way.port) }
}

/// A body on its way to the browser, and the place it takes until it is over.
pub(crate) struct Answer {
    body: Either<Incoming, Full<Bytes>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Answer {
    fn of_box(body: Incoming, place: OwnedSemaphorePermit) -> Self {
        Self { body: Either::Left(body), _place: Some(place) }
    }

    fn page(body: Full<Bytes>) -> Self {
        Self { body: Either::Right(body), _place: None }
    }

    fn nothing() -> Self {
        Self::page(Full::default())
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
