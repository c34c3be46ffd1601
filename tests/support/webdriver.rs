//! The webview, driven by `WebKitWebDriver`, or Chromium, by its own driver: find, click, read, run script,
//! take a picture.
//!
//! The driver starts the app itself, so the app must open a window on its own; without one the driver
//! waits for ever, which is why every answer has a time limit. One driver serves one session; it takes
//! a free port and is killed with its value, because a driver left behind would serve later tests with
//! an old desktop.

use crate::session::Session;
use crate::wait::{eventually, eventually_or};
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for a cold start of the app on a busy machine.
const ANSWER: Duration = Duration::from_secs(60);
const START: Duration = Duration::from_secs(60);
/// The key under which the protocol hands out elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Chromium's own folder, gone with it.
    profile: Option<TempDir>,
}

/// An element of the page, as the driver knows it.
#[derive(Debug, Clone)]
pub struct Element(String);

impl Browser {
    /// A plain browser with an empty page.
    #[track_caller]
    pub fn plain(session: &Session) -> Self {
        let found = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut places = found.map(|dir| dir.path().join("webkit2gtk-4.1/MiniBrowser"));
        let program =
            places.find(|file| file.exists()).expect("MiniBrowser of libwebkit2gtk-4.1-0");
        Self::open(session, &program, &["--automation"])
    }

    /// Starts the program and attaches to its first window.
    #[track_caller]
    pub fn open(session: &Session, program: &Path, args: &[&str]) -> Self {
        Self::open_with(session, program, args, &[])
    }

    /// The same, with more variables.
    #[track_caller]
    pub fn open_with(
        session: &Session,
        program: &Path,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let mut browser = Self::start_driver(session, env);
        let options = json!({ "binary": program, "args": args });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "webkitgtk:browserOptions": options } } });
        browser.begin(&wanted);
        browser
    }

    #[track_caller]
    fn begin(&mut self, wanted: &Value) {
        let made =
            self.call("POST", "/session", wanted).unwrap_or_else(|why| panic!("no browser: {why}"));
        made["sessionId"].as_str().expect("a session id").clone_into(&mut self.session);
    }

    /// Chromium without a window, with an empty page. It looks nothing up on the network by itself.
    #[track_caller]
    pub fn chromium(width: u32, height: u32) -> Self {
        let port = free_port();
        let mut driver = Command::new("chromedriver");
        driver.arg(format!("--port={port}"));
        let profile = tempfile::tempdir().expect("a folder for a profile");
        let args = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.path().display()),
        ]);
        let mut browser = Self::started(driver, port, "chromedriver");
        browser.profile = Some(profile);
        let options = json!({ "binary": "/usr/bin/chromium", "args": args });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        browser.begin(&wanted);
        browser
    }

    /// Light or dark, as the system would say it. Chromium alone can be told.
    #[track_caller]
    pub fn prefer(&self, scheme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// A page of exactly this size, whatever the window has around it, in UTC and in English: what looks
    /// the same on every computer. Chromium alone can be told.
    #[track_caller]
    pub fn stand_still(&self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        self.devtools("Emulation.setTimezoneOverride", &json!({ "timezoneId": "UTC" }));
        self.devtools("Emulation.setLocaleOverride", &json!({ "locale": "en-US" }));
    }

    #[track_caller]
    pub fn go_to(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// The first element that fits the selector, as soon as it is there.
    #[track_caller]
    pub fn find(&self, css: &str, deadline: Duration) -> Element {
        eventually_or(deadline, &format!("an element {css}"), || self.try_find(css))
    }

    /// All elements that fit the selector now. The page may drop one while the
    /// driver makes its list, and then the driver has no list: it is asked again.
    #[track_caller]
    pub fn find_all(&self, css: &str) -> Vec<Element> {
        let query = json!({ "using": "css selector", "value": css });
        let found = eventually_or(Duration::from_secs(30), &format!("elements {css}"), || {
            self.in_session("POST", "/elements", &query)
        });
        found.as_array().into_iter().flatten().filter_map(element).collect()
    }

    /// The first element that fits the selector and whose text contains `text`.
    #[track_caller]
    pub fn find_text(&self, css: &str, text: &str, deadline: Duration) -> Element {
        eventually_or(deadline, &format!("an element {css} with “{text}”"), || {
            let all: Vec<_> =
                self.find_all(css).into_iter().map(|e| (self.try_text(&e), e)).collect();
            let found = all.iter().find(|(t, _)| t.as_ref().is_ok_and(|t| t.contains(text)));
            found
                .map(|(_, e)| e.clone())
                .ok_or_else(|| format!("{:?}", all.iter().map(|(t, _)| t).collect::<Vec<_>>()))
        })
    }

    #[track_caller]
    pub fn click(&self, element: &Element) {
        self.post(&format!("/element/{}/click", element.0), &json!({}));
    }

    /// Types into an element.
    #[track_caller]
    pub fn type_text(&self, element: &Element, text: &str) {
        self.post(&format!("/element/{}/value", element.0), &json!({ "text": text }));
    }

    #[track_caller]
    pub fn text(&self, element: &Element) -> String {
        self.try_text(element).unwrap_or_else(|why| panic!("no text: {why}"))
    }

    /// Runs a script in the page; it says its result with `return`.
    #[track_caller]
    pub fn execute(&self, script: &str, args: &[Value]) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": args }))
    }

    /// The same for a script that says its result with its one argument.
    #[track_caller]
    pub fn execute_async(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Presses and releases a key, wherever the focus is.
    #[track_caller]
    pub fn press(&self, key: &str) {
        let actions = json!([
            { "type": "keyDown", "value": key }, { "type": "keyUp", "value": key },
        ]);
        let keys = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        self.post("/actions", &keys);
    }

    /// From a key to the next picture, in milliseconds, the middle of several.
    #[track_caller]
    pub fn latency(&self, key: &str) -> f64 {
        let script = format!(
            "const done = arguments[0], times = [];
             const once = () => {{
               const begun = performance.now();
               document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}));
               requestAnimationFrame(() => setTimeout(() => {{
                 times.push(performance.now() - begun);
                 times.length < 15 ? setTimeout(once, 30) : done(times.sort((a, b) => a - b)[7]);
               }}));
             }};
             once();"
        );
        self.execute_async(&script).as_f64().expect("a number")
    }

    /// Where an element is in the page: left, top, width, height.
    #[track_caller]
    pub fn place(&self, element: &Element) -> [f64; 4] {
        let script =
            "const r = arguments[0].getBoundingClientRect(); return [r.x, r.y, r.width, r.height]";
        let said = self.execute(script, &[json!({ ELEMENT: element.0 })]);
        let number = |at: usize| said[at].as_f64().unwrap_or_else(|| panic!("no place: {said}"));
        [number(0), number(1), number(2), number(3)]
    }

    #[track_caller]
    pub fn title(&self) -> String {
        self.in_session("GET", "/title", &Value::Null)
            .ok()
            .and_then(|title| title.as_str().map(str::to_owned))
            .expect("a title")
    }

    /// Makes the window so large.
    #[track_caller]
    pub fn resize(&self, width: u32, height: u32) {
        self.post("/window/rect", &json!({ "width": width, "height": height }));
    }

    /// Takes a picture of the page and keeps it as `<name>.png` among the artifacts.
    #[track_caller]
    pub fn shoot(&self, name: &str) -> PathBuf {
        // Two frames later everything that was asked for is painted.
        let script =
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))";
        self.post("/execute/async", &json!({ "script": script, "args": [] }));
        let picture =
            self.in_session("GET", "/screenshot", &Value::Null).expect("a picture of the page");
        let png = base64::engine::general_purpose::STANDARD
            .decode(picture.as_str().expect("a picture as text"))
            .expect("base64");
        let file = crate::screen::artifacts().join(format!("{name}.png"));
        std::fs::write(&file, png).expect("a writable folder for artifacts");
        file
    }

    #[track_caller]
    fn start_driver(session: &Session, env: &[(&str, &str)]) -> Self {
        let port = free_port();
        let mut driver = session.command("WebKitWebDriver");
        driver.arg(format!("--port={port}")).env("TAURI_WEBVIEW_AUTOMATION", "true");
        driver.envs(env.iter().copied());
        Self::started(driver, port, "WebKitWebDriver")
    }

    #[track_caller]
    fn started(mut driver: Command, port: u16, name: &str) -> Self {
        driver.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let driver = driver.spawn().unwrap_or_else(|e| panic!("{name}: {e}"));
        let browser = Self { driver, port, session: String::new(), profile: None };
        eventually(START, name, || TcpStream::connect(("127.0.0.1", port)).ok());
        browser
    }

    fn try_find(&self, css: &str) -> Result<Element, String> {
        let found =
            self.in_session("POST", "/element", &json!({ "using": "css selector", "value": css }))?;
        element(&found).ok_or_else(|| found.to_string())
    }

    fn try_text(&self, element: &Element) -> Result<String, String> {
        let text = self.in_session("GET", &format!("/element/{}/text", element.0), &Value::Null)?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    #[track_caller]
    fn devtools(&self, command: &str, params: &Value) {
        self.post("/goog/cdp/execute", &json!({ "cmd": command, "params": params }));
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.in_session("POST", path, body).unwrap_or_else(|why| panic!("webview: {path}: {why}"))
    }

    fn in_session(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.call(method, &format!("/session/{}{path}", self.session), body)
    }

    /// One request; the answer's `value`, or what the driver complains about.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = exchange(self.port, method, path, &body).map_err(|error| error.to_string())?;
        let value = answer["value"].clone();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the app, too; a driver that is merely killed would leave it on the screen.
        if !self.session.is_empty() {
            let _ = self.in_session("DELETE", "", &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn element(value: &Value) -> Option<Element> {
    value[ELEMENT].as_str().map(|id| Element(id.to_owned()))
}

/// Free at this moment; tests run one at a time, so it stays so.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a free port")
        .port()
}

/// HTTP as small as these drivers need it: one connection per request, and a length in the answer. One of
/// them keeps the connection all the same.
fn exchange(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(ANSWER))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        line.clear();
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    serde_json::from_slice(&answer).map_err(std::io::Error::other)
}
