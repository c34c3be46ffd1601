//! The window's pages in a browser, against a real host: serves what `npm run build:browser` has made, and
//! joins the page to [`agentbox_window::Window`] by a WebSocket, where the desktop app does it by Tauri.
//!
//! Only for tests, on loopback, for one test's own host: whoever reaches the port may do what the window
//! may.

use agentbox_window::Window;
use host::client::Incoming;
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// How long the page's words may wait for ours.
const TURN: Duration = Duration::from_millis(5);

/// A served page. It goes on until the test process ends.
pub struct Page {
    port: u16,
}

impl Page {
    /// Serves `files` for the host of `home`.
    #[track_caller]
    pub fn serve(files: &Path, home: &Path) -> Self {
        assert!(files.join("index.html").is_file(), "{} was not built", files.display());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (files, home) = (files.to_owned(), home.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, home) = (files.clone(), home.clone());
                std::thread::spawn(move || answer(stream, &files, &home));
            }
        });
        Self { port }
    }

    /// The address of one of the window's pages, such as `boxes` or `box/<id>/logs`.
    pub fn at(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/#{page}", self.port)
    }

    /// The same page over samples, without any host.
    pub fn pictured(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/pictures.html#{page}", self.port)
    }
}

fn answer(stream: TcpStream, files: &Path, home: &Path) {
    let Some(path) = path_of(&stream) else { return };
    if path == "/socket" {
        if let Ok(socket) = tungstenite::accept(stream) {
            join(socket, &Window::new(home));
        }
    } else {
        let _ = serve(stream, files, &path);
    }
}

/// What is asked for, without taking it off the stream; a browser may send the line in pieces.
fn path_of(stream: &TcpStream) -> Option<String> {
    let mut head = [0; 2048];
    loop {
        let read = stream.peek(&mut head).ok().filter(|read| *read > 0)?;
        let text = String::from_utf8_lossy(&head[..read]);
        if let Some((line, _)) = text.split_once("\r\n") {
            return line.split(' ').nth(1).map(str::to_owned);
        }
        if read == head.len() {
            return None;
        }
        std::thread::sleep(TURN);
    }
}

fn serve(mut stream: TcpStream, files: &Path, path: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let wanted = PathBuf::from(path.trim_start_matches('/').split(['?', '#']).next().unwrap_or(""));
    let plain = wanted.components().all(|part| matches!(part, Component::Normal(_)));
    let wanted = if wanted.as_os_str().is_empty() { "index.html".into() } else { wanted };
    let body = if plain { std::fs::read(files.join(&wanted)).ok() } else { None };
    let kind = match wanted.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let (status, body) = body.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// What the page says.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
enum Said {
    Call { n: u32, request: Value },
    Begin { n: u32, request: Value },
    Stream { n: u32, what: Value },
    Write { n: u32, bytes: Vec<u8> },
    Resize { n: u32, cols: u16, rows: u16 },
    Taken { n: u32, bytes: usize },
    HangUp { n: u32 },
    ScreenPassword { n: u32, id: BoxId },
    Files { n: u32, id: BoxId, path: String },
    Subscribe,
}

/// Both ways on one socket: what is ready goes out, then the page is heard for a moment.
fn join(mut socket: WebSocket<TcpStream>, window: &Window) {
    let _ = socket.get_ref().set_read_timeout(Some(TURN));
    let (tx, rx): (Sender<Message>, Receiver<Message>) = channel();
    loop {
        while let Ok(message) = rx.try_recv() {
            if socket.send(message).is_err() {
                return;
            }
        }
        match socket.read() {
            Ok(Message::Text(text)) => {
                let said = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
                hear(said, window, &tx);
            }
            Ok(Message::Close(_)) => return,
            Ok(_) => {}
            Err(tungstenite::Error::Io(e))
                if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn hear(said: Said, window: &Window, tx: &Sender<Message>) {
    let (window, tx) = (window.clone(), tx.clone());
    match said {
        Said::Call { n, request } => reply(tx, n, move |_| window.call(request)),
        Said::Begin { n, request } => reply(tx, n, move |tx| {
            window.begin(n, request, |event| say(tx, &json!({ "n": n, "event": event })))
        }),
        Said::Stream { n, what } => reply(tx, n, move |tx| {
            let give = |bytes: Vec<u8>| {
                let mut message = n.to_be_bytes().to_vec();
                message.extend(bytes);
                let _ = tx.send(Message::Binary(message.into()));
            };
            window.stream(n, what, give).map(Value::from)
        }),
        Said::ScreenPassword { n, id } => {
            reply(tx, n, move |_| window.screen_password(&id).map(Value::from));
        }
        Said::Files { n, id, path } => reply(tx, n, move |_| {
            let folder = window.files(&id, &path)?;
            serde_json::to_value(folder)
                .map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))
        }),
        Said::Write { n, bytes } => window.write(n, &bytes),
        Said::Resize { n, cols, rows } => window.resize(n, cols, rows),
        Said::Taken { n, bytes } => window.taken(n, bytes),
        Said::HangUp { n } => window.hang_up(n),
        Said::Subscribe => drop(std::thread::spawn(move || subscribe(&window, &tx))),
    }
}

/// Works beside the page's other words, and says what came of it.
fn reply(
    tx: Sender<Message>,
    n: u32,
    work: impl FnOnce(&Sender<Message>) -> Result<Value, ControlError> + Send + 'static,
) {
    std::thread::spawn(move || match work(&tx) {
        Ok(ok) => say(&tx, &json!({ "n": n, "ok": ok })),
        Err(error) => say(&tx, &json!({ "n": n, "error": error })),
    });
}

fn say(tx: &Sender<Message>, word: &Value) {
    let _ = tx.send(Message::Text(word.to_string().into()));
}

fn subscribe(window: &Window, tx: &Sender<Message>) {
    let end = window.client().open(&Request::Subscribe).and_then(|conversation| {
        conversation.finish::<()>(|incoming| {
            if let Incoming::Event(event) = incoming {
                say(tx, &json!({ "host": event }));
            }
        })
    });
    let why = end.map_or_else(|e| e.to_string(), |()| "the host stopped".to_owned());
    say(tx, &json!({ "down": why }));
}
