//! A conversation as it is to be in a box: the project's folder is the workspace there.
//!
//! Line by line, in constant memory. What cannot be read, or is too long to be looked at, goes as it is;
//! a last line that an agent is still writing stays behind.

use protocol::conversations::MOST_BYTES;
use protocol::ctl::paths::WORKSPACE;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};

/// A longer line is passed on unread.
const MOST_LINE: u64 = 16 * 1024 * 1024;

/// Copies a conversation; `change` gives a line that is to stand for another.
pub fn rewrite(
    mut from: impl BufRead,
    to: impl Write,
    change: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> io::Result<()> {
    let mut to = Bounded { to, left: MOST_BYTES };
    let mut line = Vec::new();
    loop {
        line.clear();
        from.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return to.flush();
        }
        let whole = line.last() == Some(&b'\n');
        if !whole && line.len() as u64 == MOST_LINE {
            to.write_all(&line)?;
            rest(&mut from, &mut to)?;
            continue;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if !whole && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_err() {
            return to.flush();
        }
        to.write_all(&change(text).unwrap_or_else(|| text.to_vec()))?;
        to.write_all(b"\n")?;
    }
}

/// The rest of a line.
fn rest(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let here = from.fill_buf()?;
        let end = here.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(here.len());
        to.write_all(&here[..taken])?;
        from.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(());
        }
    }
}

struct Bounded<W> {
    to: W,
    left: u64,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| io::Error::other("the conversation is too long"))?;
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A line of Claude's whose folder is the project's. Everything else of it stays, byte by byte.
pub fn claude(line: &[u8], folder: &str) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        cwd: Option<&'a RawValue>,
    }
    // A list would be read as well, by its order.
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let cwd = serde_json::from_slice::<Line<'_>>(line).ok()?.cwd?.get();
    if serde_json::from_str::<Cow<'_, str>>(cwd).ok()? != folder {
        return None;
    }
    // The text is a part of the line.
    let at = (cwd.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let (before, after) = (line.get(..at)?, line.get(at + cwd.len()..)?);
    Some([before, format!("\"{WORKSPACE}\"").as_bytes(), after].concat())
}

/// A line of Codex's that says where it works. Elsewhere a path is what somebody said, and stays.
pub fn codex(line: &[u8], folder: &str) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let Kind { kind, payload } = serde_json::from_slice(line).ok()?;
    let settings = || {
        let event = serde_json::from_str::<Event<'_>>(payload.get());
        event.is_ok_and(|event| event.kind == "thread_settings_applied")
    };
    match &*kind {
        "session_meta" | "turn_context" => {}
        // Newer versions take the folder to go on in from here.
        "event_msg" if settings() => {}
        _ => return None,
    }
    let mut whole: Value = serde_json::from_slice(line).ok()?;
    moved(whole.get_mut("payload")?, folder).then(|| whole.to_string().into_bytes())
}

/// Puts the workspace where the folder, or a path in it, is all of a text. Whether there was one.
fn moved(value: &mut Value, folder: &str) -> bool {
    match value {
        Value::String(text) => {
            let below = text.strip_prefix(folder);
            let Some(below) = below.filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
                return false;
            };
            *text = format!("{WORKSPACE}{below}");
            true
        }
        Value::Array(all) => all.iter_mut().fold(false, |any, one| moved(one, folder) | any),
        Value::Object(all) => all.values_mut().fold(false, |any, one| moved(one, folder) | any),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(text: &[u8], change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
        let mut out = Vec::new();
        rewrite(text, &mut out, change).unwrap();
        out
    }

    fn claude_text(text: &str) -> String {
        String::from_utf8(through(text.as_bytes(), |line| claude(line, "/home/ada/shop"))).unwrap()
    }

    #[test]
    fn of_a_line_of_claude_only_the_folder_changes() {
        for (line, wanted) in [
            (
                r#"{"b": 1.50,  "cwd":"/home/ada/shop","a":"/home/ada/shop"}"#,
                r#"{"b": 1.50,  "cwd":"/workspace","a":"/home/ada/shop"}"#,
            ),
            (r#"{"cwd":"\/home\/ada\/shop"}"#, r#"{"cwd":"/workspace"}"#),
            (r#"{"cwd":"/home/ada/shop2"}"#, r#"{"cwd":"/home/ada/shop2"}"#),
            (r#"{"cwd":"/home/ada/shop/api"}"#, r#"{"cwd":"/home/ada/shop/api"}"#),
            (r#"{"m":{"cwd":"/home/ada/shop"}}"#, r#"{"m":{"cwd":"/home/ada/shop"}}"#),
            (r#"{"cwd":7}"#, r#"{"cwd":7}"#),
            (r#"{"cwd":null}"#, r#"{"cwd":null}"#),
            (r#"["/home/ada/shop"]"#, r#"["/home/ada/shop"]"#),
            (r#"{"cwd":"/x","cwd":"/home/ada/shop"}"#, r#"{"cwd":"/x","cwd":"/home/ada/shop"}"#),
            ("not json \"cwd\":\"/home/ada/shop\"", "not json \"cwd\":\"/home/ada/shop\""),
            ("", ""),
        ] {
            assert_eq!(claude_text(&format!("{line}\n")), format!("{wanted}\n"));
        }
    }

    #[test]
    fn a_line_that_is_still_being_written_stays_behind() {
        assert_eq!(claude_text("{\"a\":1}\n{\"cwd\":\"/home"), "{\"a\":1}\n");
        assert_eq!(claude_text("{\"a\":1}\n{\"b\":2}"), "{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(claude_text(""), "");
    }

    #[test]
    fn bytes_that_are_no_text_and_deep_lines_go_as_they_are() {
        let deep = [b"[".repeat(100_000), b"\n".to_vec()].concat();
        assert_eq!(through(&deep, |line| claude(line, "/x")), deep);
        assert_eq!(through(&deep, |line| codex(line, "/x")), deep);
        let odd = b"{\"cwd\":\"\xff\xfe\"}\n\0\n".to_vec();
        assert_eq!(through(&odd, |line| claude(line, "/x")), odd);
    }

    #[test]
    fn a_line_too_long_to_look_at_goes_as_it_is() {
        let size = usize::try_from(MOST_LINE).unwrap();
        for more in [0, 1, 100_000] {
            let long = format!("{{\"cwd\":\"/x\",\"a\":\"{}\"}}\n", "a".repeat(size + more));
            let text = format!("{long}{{\"cwd\":\"/x\"}}\n");
            let out = through(text.as_bytes(), |line| claude(line, "/x"));
            assert_eq!(out, format!("{long}{{\"cwd\":\"/workspace\"}}\n").into_bytes());
        }
    }

    #[test]
    fn a_conversation_has_an_end() {
        let endless = io::BufReader::with_capacity(1 << 20, io::repeat(b'a'));
        let told = rewrite(endless, io::sink(), |_| None).unwrap_err();
        assert!(told.to_string().contains("too long"), "{told}");
    }

    #[test]
    fn codex_says_where_it_works_in_few_places() {
        let text = |line: &str| {
            let out = codex(line.as_bytes(), "/p/shop");
            out.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap())
        };
        let meta = text(
            r#"{"ordinal":0,"type":"session_meta","payload":{"id":"x","cwd":"/p/shop","roots":["/p/shop/api","/p/shopping","see /p/shop"]}}"#,
        );
        assert_eq!(
            meta.unwrap(),
            serde_json::json!({"ordinal": 0, "type": "session_meta", "payload": {
                "id": "x", "cwd": "/workspace", "roots": ["/workspace/api", "/p/shopping", "see /p/shop"]}})
        );
        let applied = r#"{"type":"event_msg","payload":{"type":"thread_settings_applied","thread_settings":{"cwd":"/p/shop"}}}"#;
        assert_eq!(text(applied).unwrap()["payload"]["thread_settings"]["cwd"], "/workspace");
        assert!(text(r#"{"type":"turn_context","payload":{"cwd":"/p/shop"}}"#).is_some());
        for same in [
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"/p/shop"}}"#,
            r#"{"type":"response_item","payload":{"cwd":"/p/shop"}}"#,
            r#"{"type":"turn_context","payload":{"cwd":"/p/other"}}"#,
            r#"{"type":"turn_context"}"#,
            r#"{"type":5,"payload":{"cwd":"/p/shop"}}"#,
            "broken",
        ] {
            assert_eq!(text(same), None, "{same}");
        }
    }
}
