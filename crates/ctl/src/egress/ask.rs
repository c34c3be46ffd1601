//! `agentbox-ctl egress policy|why|check|request`: what an agent can know about the way out, and how it
//! asks for more of it.
//!
//! All of it is asked of the proxy, by the way every program takes. A wish becomes a question to the
//! person; nothing here grants anything.

use super::client::{self, Answer, quoted};
use crate::error::{Error, Result};
use protocol::egress::inside::{CHECK, Checked, Granted, POLICY, REQUEST, WHY, Why, Wish};
use protocol::egress::{EgressVerdict, Reason};
use protocol::text::visible;
use serde::de::DeserializeOwned;
use std::ffi::OsString;

/// `check` ends with these.
const DENIED: i32 = 3;
const ASKS: i32 = 4;

pub fn policy() -> Result<i32> {
    let answer = good(client::get(POLICY))?;
    // Somebody else may have written parts of it.
    let text = String::from_utf8_lossy(&answer.body);
    let lines = text.lines().map(|line| format!("{}\n", visible(line)));
    crate::say(&lines.collect::<String>());
    Ok(protocol::exit::OK)
}

pub fn why(args: &[OsString]) -> Result<i32> {
    let words = words(args)?;
    let path = match words[..] {
        [] | ["--last"] => WHY.to_owned(),
        [event] if !event.starts_with('-') => format!("{WHY}?event={}", quoted(event)),
        _ => return Err(Error::Usage("egress why takes an event's id, or --last.".into())),
    };
    let answer = client::get(&path).map_err(unreachable)?;
    if answer.status == 404 && answer.reason.is_none() {
        crate::say("No request of this box was stopped that is still known.\n");
        return Ok(protocol::exit::OK);
    }
    let Why { event, reason, request, detail, hint } = read(&good(Ok(answer))?)?;
    let detail = detail.map(|detail| format!(" ({})", visible(&detail))).unwrap_or_default();
    let [event, request, hint] = [event, request, hint].map(|text| visible(&text));
    crate::say(&format!(
        "{request}\nreason: {}{detail}\nhint: {hint}\nevent: {event}\n",
        reason.code()
    ));
    Ok(protocol::exit::OK)
}

pub fn check(args: &[OsString]) -> Result<i32> {
    let usage = || Error::Usage("egress check takes an address and, with -X, a method.".into());
    let (mut url, mut method) = (None, "GET");
    let words = words(args)?;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-X" | "--method" => method = rest.next().ok_or_else(usage)?,
            word if url.is_none() && !word.starts_with('-') => url = Some(word),
            _ => return Err(usage()),
        }
    }
    let path = format!("{CHECK}?url={}&method={}", quoted(url.ok_or_else(usage)?), quoted(method));
    let answer = client::get(&path).map_err(unreachable)?;
    if answer.status == 400 {
        return Err(Error::Usage(format!("{} is no address.", visible(url.unwrap_or_default()))));
    }
    let Checked { verdict, reason, hint } = read(&good(Ok(answer))?)?;
    let (word, code) = match verdict {
        EgressVerdict::Allow | EgressVerdict::Observe => ("allowed", protocol::exit::OK),
        EgressVerdict::Ask => ("asks", ASKS),
        EgressVerdict::Deny => ("denied", DENIED),
    };
    let hint = hint.map(|hint| format!("hint: {}\n", visible(&hint))).unwrap_or_default();
    crate::say(&format!("{word}: {}\n{hint}", reason.code()));
    Ok(code)
}

pub fn request(args: &[OsString]) -> Result<i32> {
    let wish = wish(&words(args)?)?;
    crate::complain("agentbox: waiting for a person to answer on the host…");
    let body = serde_json::to_vec(&wish).map_err(|e| Error::Failed(e.to_string()))?;
    let Granted { granted, reason } = read(&good(client::post(REQUEST, &body))?)?;
    let word = if granted { "granted" } else { "not granted" };
    crate::say(&format!("{word}: {}\n", reason.code()));
    Ok(if granted { protocol::exit::OK } else { DENIED })
}

fn wish(words: &[&str]) -> Result<Wish> {
    let usage = || {
        let text = "egress request takes a host, and --reason \"…\"; --method and --path say more.";
        Error::Usage(text.into())
    };
    let (mut host, mut method, mut path, mut reason) = (None, None, None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let into = match *word {
            "--method" => &mut method,
            "--path" => &mut path,
            "--reason" => &mut reason,
            word if host.is_none() && !word.starts_with('-') => {
                host = Some(word.to_owned());
                continue;
            }
            _ => return Err(usage()),
        };
        *into = Some((*rest.next().ok_or_else(usage)?).to_owned());
    }
    let reason = reason.filter(|reason: &String| !reason.trim().is_empty());
    Ok(Wish { host: host.ok_or_else(usage)?, method, path, reason: reason.ok_or_else(usage)? })
}

fn words(args: &[OsString]) -> Result<Vec<&str>> {
    let word = |arg: &OsString| arg.to_str().map(|_| ());
    if args.iter().any(|arg| word(arg).is_none()) {
        return Err(Error::Usage("an argument is not text.".into()));
    }
    Ok(args.iter().filter_map(|arg| arg.to_str()).collect())
}

/// An answer that is one.
fn good(answer: std::io::Result<Answer>) -> Result<Answer> {
    let answer = answer.map_err(unreachable)?;
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    if answer.reason.as_deref() == Some(Reason::PolicyUnavailable.code()) {
        let text = "AgentBox on the host does not answer, or has no valid policy for this box";
        return Err(Error::NoWayOut(text.into()));
    }
    let why = answer.reason.unwrap_or_else(|| format!("it answered {}", answer.status));
    Err(Error::Failed(format!("the proxy refused to say: {why}")))
}

fn unreachable(error: std::io::Error) -> Error {
    Error::NoWayOut(format!("nobody listens at 127.0.0.1:3128 in this box: {error}"))
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T> {
    serde_json::from_slice(&answer.body).map_err(|e| Error::BadAnswer(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_has_a_host_and_a_reason() {
        let made = wish(&["x.example", "--reason", "docs", "--method", "POST"]).unwrap();
        assert_eq!((made.host.as_str(), made.reason.as_str()), ("x.example", "docs"));
        assert_eq!((made.method.as_deref(), made.path), (Some("POST"), None));
        for bad in [
            &["x.example"][..],
            &["--reason", "docs"],
            &["x.example", "--reason", " "],
            &["x.example", "y.example", "--reason", "docs"],
            &["x.example", "--reason"],
            &["x.example", "--allow", "--reason", "docs"],
        ] {
            assert_eq!(wish(bad).unwrap_err().exit_code(), 64, "{bad:?}");
        }
    }
}
