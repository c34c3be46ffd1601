//! `agentbox-ctl cp toHost|fromHost …` and `agentbox-ctl download workspace`: files between this
//! box and the host.
//!
//! A path of the box is made absolute here, because only the box knows where it was typed. A path
//! of the host goes as it is: `~` is the person's home there, a relative one starts in the folder
//! the box was made from.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::rpc::{exit_code, print};
use connectors::grammar::{Flag, Grammar, Parsed, Positionals};
use protocol::rpc::{CopyParams, DownloadParams};
use protocol::text::visible;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

const EXCLUDE: Flag = Flag::text("--exclude", None).repeating();
const EVERYTHING: Flag = Flag::plain("--no-default-excludes", None);
/// Folders always go with what is in them; the flag is what people are used to.
const RECURSIVE: Flag = Flag::plain("--recursive", Some("-r"));

static COPY: Grammar = Grammar {
    surface: "cp",
    flags: &[EXCLUDE, EVERYTHING, RECURSIVE],
    refused: &[],
    positionals: Positionals { least: 2, most: 256, what: "sources and a destination" },
};

static DOWNLOAD: Grammar = Grammar {
    surface: "download",
    flags: &[EXCLUDE, EVERYTHING],
    refused: &[],
    positionals: Positionals { least: 1, most: 1, what: "what to download: workspace" },
};

pub fn run(args: &[OsString]) -> Result<i32> {
    let usage = || Error::Usage("use 'agentbox-ctl cp toHost|fromHost <source…> <dest>'.".into());
    let (direction, rest) = args.split_first().ok_or_else(usage)?;
    let parsed = parse(&COPY, rest)?;
    let (dest, sources) = parsed.positionals.split_last().ok_or_else(usage)?;
    let cwd = current_dir();
    let (method, sources, dest) = match direction.to_str() {
        Some("toHost") => {
            let sources = sources.iter().map(|s| in_box(&cwd, s)).collect();
            ("cp.toHost", sources, dest.clone())
        }
        Some("fromHost") => ("cp.fromHost", sources.to_vec(), in_box(&cwd, dest)),
        _ => return Err(usage()),
    };
    let (exclude, default_excludes) = excludes(&parsed);
    let path = cwd.to_str().map(str::to_owned);
    ask(method, &CopyParams { path, sources, dest, exclude, default_excludes })
}

pub fn download(args: &[OsString]) -> Result<i32> {
    let parsed = parse(&DOWNLOAD, args)?;
    let (exclude, default_excludes) = excludes(&parsed);
    match parsed.positionals.first().map(String::as_str) {
        Some("workspace") => {
            let path = current_dir().to_str().map(str::to_owned);
            ask("download.workspace", &DownloadParams { path, exclude, default_excludes })
        }
        other => {
            let shown = visible(other.unwrap_or_default());
            let text =
                format!("'{shown}' cannot be downloaded; use 'agentbox-ctl download workspace'.");
            Err(Error::Usage(text))
        }
    }
}

fn parse(grammar: &'static Grammar, args: &[OsString]) -> Result<Parsed> {
    let text = |a: &OsString| {
        let bad = || Error::Usage(format!("'{}' is not UTF-8.", visible(&a.to_string_lossy())));
        a.to_str().map(str::to_owned).ok_or_else(bad)
    };
    let args: Vec<String> = args.iter().map(text).collect::<Result<_>>()?;
    // Whatever is wrong with it, it cannot be addressed to the host.
    grammar.parse(&args).map_err(|refusal| Error::Usage(refusal.text))
}

fn excludes(parsed: &Parsed) -> (Vec<String>, Option<bool>) {
    let exclude = parsed.values("--exclude").map(str::to_owned).collect();
    (exclude, parsed.has("--no-default-excludes").then_some(false))
}

fn ask(method: &str, params: &impl Serialize) -> Result<i32> {
    let params = serde_json::to_value(params).map_err(|e| Error::Failed(e.to_string()))?;
    let envelope = Relay::open()?.call(method, params)?;
    print(&envelope);
    Ok(exit_code(&envelope))
}

fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| crate::places::workspace())
}

/// A full path without `.` and `..`. A slash at its end stays: it makes a folder of it.
fn in_box(cwd: &Path, path: &str) -> String {
    let mut full = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::ParentDir => drop(full.pop()),
            Component::CurDir => {}
            part => full.push(part),
        }
    }
    let folder = path.ends_with('/') || path == "." || path.ends_with("/.") || path.ends_with("..");
    let end = if folder && full != Path::new("/") { "/" } else { "" };
    format!("{}{end}", full.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_box_are_full() {
        let at = |path: &str| in_box(Path::new("/workspace/app"), path);
        assert_eq!(at("a"), "/workspace/app/a");
        assert_eq!(at("./a/"), "/workspace/app/a/");
        assert_eq!(at("../b"), "/workspace/b");
        assert_eq!(at("/tmp/../x"), "/x");
        assert_eq!(at("."), "/workspace/app/");
        assert_eq!(at("../../../.."), "/");
    }
}
