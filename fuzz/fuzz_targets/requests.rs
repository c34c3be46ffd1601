//! A whole request: method and parameters. Whatever comes, there is a plan or a refusal of one line.
//!
//! The first line is the method, the rest the parameters. What passes can be sent again from what
//! was understood, and means the same.
#![no_main]

use connectors::checkpoint::Create;
use connectors::files::{CopyIn, CopyOut, Download, Excludes, HostPath};
use libfuzzer_sys::fuzz_target;
use relay::fuzzing::{Passed, decide};
use serde_json::json;
use std::path::{Path, PathBuf};

/// A path in a box: absolute, every part a name.
fn in_box(path: &str) {
    assert!(path.starts_with('/') && path.len() <= 4200, "{path:?}");
    let name = |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    assert!(path == "/" || path[1..].split('/').all(name), "{path:?}");
}

/// A path on the host: below its start, and nothing a terminal obeys.
fn on_host(path: &HostPath, may_climb: bool) -> PathBuf {
    let (home, project) = (Path::new("/home/ada"), Path::new("/src/shop"));
    let full = path.under(home, project);
    let text = written(&full);
    assert!(full.is_absolute() && !text.chars().any(char::is_control), "{text:?}");
    assert!(may_climb || !text.split('/').any(|part| part == ".."), "{text:?}");
    full
}

fn written(path: &Path) -> String {
    path.to_str().expect("it came as text").to_owned()
}

fn patterns(excludes: &Excludes) {
    assert!(excludes.patterns().len() <= 64 + 8);
    for pattern in excludes.patterns() {
        assert!(!pattern.is_empty() && pattern.len() <= 256 && !pattern.chars().any(char::is_control), "{pattern:?}");
    }
}

fn to_host(copy: CopyOut) {
    assert!(!copy.sources.is_empty() && copy.sources.len() <= 256);
    for source in &copy.sources {
        in_box(source.as_str());
        assert_ne!(source.as_str(), "/");
    }
    patterns(&copy.excludes);
    let dest = on_host(&copy.dest, false);
    let sources: Vec<&str> = copy.sources.iter().map(|s| s.as_str()).collect();
    let slash = if copy.dest.is_folder() { "/" } else { "" };
    let params = json!({
        "path": "/", "sources": sources, "dest": format!("{}{slash}", written(&dest)),
        "exclude": copy.excludes.patterns(), "defaultExcludes": false,
    });
    // Eight patterns are our own.
    if copy.excludes.patterns().len() > 64 || written(&dest).len() > 4000 {
        return;
    }
    let Some(Ok(Passed::ToHost(again))) = decide("cp.toHost", &params.to_string()) else { panic!("{params}") };
    assert_eq!((&again.sources, &again.excludes), (&copy.sources, &copy.excludes));
    assert_eq!((on_host(&again.dest, false), again.dest.is_folder()), (dest, copy.dest.is_folder()), "{params}");
}

fn from_host(copy: CopyIn) {
    assert!(!copy.sources.is_empty() && copy.sources.len() <= 256);
    // Where a source leads is looked up on the host's disk, so it may climb.
    let sources: Vec<PathBuf> = copy.sources.iter().map(|source| on_host(source, true)).collect();
    let names: Vec<String> = sources.iter().map(|source| written(source)).collect();
    in_box(copy.dest.as_str());
    patterns(&copy.excludes);
    let slash = if copy.into { "/" } else { "" };
    let params = json!({
        "path": "/", "sources": names, "dest": format!("{}{slash}", copy.dest.as_str()),
        "exclude": copy.excludes.patterns(), "defaultExcludes": false,
    });
    if copy.excludes.patterns().len() > 64 || names.iter().any(|name| name.len() > 4000) {
        return;
    }
    let Some(Ok(Passed::FromHost(again))) = decide("cp.fromHost", &params.to_string()) else { panic!("{params}") };
    assert_eq!((&again.dest, again.into, &again.excludes), (&copy.dest, copy.into, &copy.excludes), "{params}");
    let again: Vec<PathBuf> = again.sources.iter().map(|source| on_host(source, true)).collect();
    assert_eq!(again, sources);
}

fn download(download: Download) {
    patterns(&download.excludes);
    let params = json!({ "exclude": download.excludes.patterns(), "defaultExcludes": download.respects_git });
    let Some(Ok(Passed::Download(again))) = decide("download.workspace", &params.to_string()) else { panic!("{params}") };
    assert_eq!(again, download);
}

fn checkpoint(create: Create) {
    if let Some(name) = &create.name {
        let name = name.as_str();
        assert!((1..=64).contains(&name.len()) && name.as_bytes()[0].is_ascii_alphanumeric(), "{name:?}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{name:?}");
    }
    assert!(!create.replace || create.name.is_some());
    let name = create.name.as_ref().map(|name| name.as_str());
    let params = json!({ "name": name, "setDefault": create.set_default, "replace": create.replace });
    let Some(Ok(Passed::Checkpoint(again))) = decide("checkpoint.create", &params.to_string()) else { panic!("{params}") };
    assert_eq!(again, create);
}

fuzz_target!(|text: &str| {
    let (method, params) = text.split_once('\n').unwrap_or((text, "{}"));
    match decide(method, params) {
        None => {}
        Some(Err((code, text))) => {
            assert!([64, 65, 13, 400, 501].contains(&code), "{code} {text}");
            assert!(code == 501 || !text.trim().is_empty(), "{code}");
            assert!(!text.strip_suffix('\n').unwrap_or(&text).chars().any(char::is_control), "{text:?}");
            assert_eq!(protocol::text::visible(text.trim_end()), text.trim_end());
        }
        Some(Ok(Passed::ToHost(copy))) => to_host(copy),
        Some(Ok(Passed::FromHost(copy))) => from_host(copy),
        Some(Ok(Passed::Download(given))) => download(given),
        Some(Ok(Passed::Checkpoint(create))) => checkpoint(create),
        Some(Ok(Passed::Link(link))) => {
            let params = json!({ "url": link.as_str() });
            let Some(Ok(Passed::Link(again))) = decide("browser.open", &params.to_string()) else { panic!("{params}") };
            assert_eq!(again, link);
        }
        Some(Ok(Passed::CommandLine)) => {}
    }
});
