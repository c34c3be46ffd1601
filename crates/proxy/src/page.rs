//! What people see when a box has nothing to show: one sentence, and what to do.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use protocol::BoxName;
use protocol::boxes::BoxState;

/// A page without anything of a box's making in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub status: StatusCode,
    title: String,
    text: String,
    command: Option<String>,
    /// The browser is to forget what it keeps under this name.
    forget: bool,
}

impl Page {
    fn new(status: StatusCode, title: impl Into<String>, text: impl Into<String>) -> Self {
        Self { status, title: title.into(), text: text.into(), command: None, forget: false }
    }

    fn command(mut self, command: String) -> Self {
        self.command = Some(command);
        self
    }

    pub fn bad_request(why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Not a request for a box", why)
    }

    pub fn bad_method() -> Self {
        let text = "This address leads to a box's web app, not to other computers.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Not possible here", text)
    }

    /// The name is none of ours, so neither is the request.
    pub fn foreign_name() -> Self {
        let text = "AgentBox answers here for boxes by their names: <box>.localhost.";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "No box of that name", text)
    }

    /// What a box that is gone has left in the browser, such as a service worker, would speak for the
    /// next one of its name.
    pub fn unknown() -> Self {
        let page =
            Self::new(StatusCode::NOT_FOUND, "No box of that name", "It may have been destroyed.");
        Self { forget: true, ..page.command("agentbox list -g".into()) }
    }

    pub fn cross_site() -> Self {
        let text =
            "A page of another site or of another box asked for this. Open the address itself.";
        Self::new(StatusCode::FORBIDDEN, "Kept apart", text)
    }

    pub fn crowded(name: &BoxName) -> Self {
        let text = "Close some of its pages, then reload this one.";
        let title = format!("{name} has too many connections open");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, title, text)
    }

    /// For a box that does not run; none for one that does or can be woken.
    pub fn of_state(name: &BoxName, state: BoxState) -> Option<Self> {
        let page =
            |title: String, text: &str| Self::new(StatusCode::SERVICE_UNAVAILABLE, title, text);
        Some(match state {
            BoxState::Running | BoxState::Paused => return None,
            BoxState::Stopped => {
                page(format!("{name} is stopped"), "Start it, then reload this page.")
                    .command(format!("agentbox start {name}"))
            }
            BoxState::Creating => {
                page(format!("{name} is being made"), "Reload this page in a moment.")
            }
            BoxState::Missing => page(
                format!("{name} has no container any more"),
                "Somebody removed it outside AgentBox.",
            )
            .command(format!("agentbox destroy {name}")),
            BoxState::Unknown => {
                page(format!("{name} cannot be reached"), "The container engine does not answer.")
                    .command("agentbox status".into())
            }
        })
    }

    pub fn asleep(name: &BoxName) -> Self {
        let title = format!("{name} could not be woken");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, title, "It is paused.")
            .command(format!("agentbox start {name}"))
    }

    /// A link to a screen works once, and not for long.
    pub fn used_up(name: &BoxName) -> Self {
        let text = "Links to a screen work once and for a minute.";
        Self::new(StatusCode::GONE, "This link has been used", text)
            .command(format!("agentbox screen {name}"))
    }

    pub fn silent(name: &BoxName, port: u16) -> Self {
        let text =
            format!("Nothing answers on port {port} in the box. Is the program there running?");
        Self::new(StatusCode::BAD_GATEWAY, format!("{name} does not answer"), text)
    }

    pub fn garbled(name: &BoxName, port: u16) -> Self {
        let text = format!("What the program on port {port} in the box sent is not an answer.");
        Self::new(StatusCode::BAD_GATEWAY, format!("{name} gave no proper answer"), text)
    }

    pub fn late(name: &BoxName, port: u16) -> Self {
        let text = format!("The program on port {port} in the box took too long.");
        Self::new(StatusCode::GATEWAY_TIMEOUT, format!("{name} does not answer"), text)
    }

    /// HTML for browsers, plain text for everything else.
    pub fn response(&self, asked: &HeaderMap) -> Response<Full<Bytes>> {
        let accepts = asked.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, body) = if accepts.contains("text/html") {
            ("text/html; charset=utf-8", self.html())
        } else {
            ("text/plain; charset=utf-8", self.plain())
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
        fields.insert("content-security-policy", HeaderValue::from_static(policy));
        fields.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if self.forget {
            fields.insert("clear-site-data", HeaderValue::from_static("\"*\""));
        }
        response
    }

    fn plain(&self) -> String {
        let command = self.command.as_ref().map(|c| format!("hint: {c}\n")).unwrap_or_default();
        format!("{}. {}\n{command}", self.title, self.text)
    }

    fn html(&self) -> String {
        let command = self.command.as_ref();
        let command = command.map(|c| format!("<pre>{}</pre>", escape(c))).unwrap_or_default();
        format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
             <style>{STYLE}</style><main><h1>{title}</h1><p>{text}</p>{command}</main></html>",
            title = escape(&self.title),
            text = escape(&self.text),
        )
    }
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0;min-height:100vh;display:grid;place-items:center;font:16px/1.5 system-ui,sans-serif;\
background:#fafafa;color:#1c1c1e}\
main{max-width:34rem;padding:2rem}h1{font-size:1.25rem;margin:0 0 .5rem}p{margin:0 0 1rem}\
pre{margin:0;padding:.6rem .8rem;border:1px solid #d4d4d8;border-radius:6px;background:#fff;overflow:auto}\
@media(prefers-color-scheme:dark){body{background:#18181b;color:#f4f4f5}\
pre{background:#27272a;border-color:#3f3f46}}";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_box_says_how_to_start_it() {
        let name: BoxName = "fix".parse().unwrap();
        let page = Page::of_state(&name, BoxState::Stopped).unwrap();
        assert_eq!(
            page.plain(),
            "fix is stopped. Start it, then reload this page.\nhint: agentbox start fix\n"
        );
        assert!(page.html().contains("<pre>agentbox start fix</pre>"));
        assert!(page.html().contains("prefers-color-scheme:dark"));
        assert_eq!(Page::of_state(&name, BoxState::Running), None);
        assert_eq!(Page::of_state(&name, BoxState::Paused), None);
        assert!(Page::foreign_name().html().contains("&lt;box&gt;.localhost"));
    }
}
