//! The repository itself, by git's own HTTP server.

use super::{Reply, State, command};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, StatusCode};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

pub fn output(repo: &Path, args: &[&str]) -> Option<String> {
    let output = command(repo, args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub fn allow_pushes(repo: &Path) {
    assert!(command(repo, &["config", "http.receivepack", "true"]).status().unwrap().success());
}

/// `refs/pull/<n>/head`, as GitHub keeps them.
pub fn mirror_pulls(state: &State) {
    for pull in &state.pulls {
        let name = format!("refs/pull/{}/head", pull.number);
        let _ = command(&state.repo, &["update-ref", &name, &state.head_of(pull)]).output();
    }
}

/// Runs `git http-backend` for one request.
pub fn serve(repo: &Path, parts: &hyper::http::request::Parts, body: &[u8]) -> Reply {
    let header = |name: &str| {
        parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
    };
    let name = repo.file_name().unwrap().to_str().unwrap();
    let path = parts.uri.path().replacen("/o/r.git", &format!("/{name}"), 1);
    let mut child = command(repo, &["http-backend"])
        .env("GIT_PROJECT_ROOT", repo.parent().unwrap())
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(output.len() - 4);
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let mut reply = Response::new(Full::new(Bytes::copy_from_slice(&output[end + 4..])));
    for line in head.lines() {
        let Some((key, value)) = line.split_once(": ") else { continue };
        if key == "Status" {
            let code = value.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(500);
            *reply.status_mut() = StatusCode::from_u16(code).unwrap();
        } else {
            let key: hyper::header::HeaderName = key.parse().unwrap();
            reply.headers_mut().insert(key, value.parse().unwrap());
        }
    }
    reply
}
