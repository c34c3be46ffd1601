//! Whatever names a credential, its file is in the folder of credentials: one name, nothing that climbs or
//! hides, and nothing outside is made, read or changed.
//!
//! The first line is the name, the second whose it is, the rest its value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::{BoxId, SecretId};
use secrets::{Backend, ProjectKey, Scope, Value, Vault};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

struct Place {
    runtime: tokio::runtime::Runtime,
    around: tempfile::TempDir,
    vault: Vault,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let around = tempfile::tempdir_in(parent).expect("a folder");
        std::fs::write(around.path().join("canary"), "untouched").expect("a file");
        let vault = Vault::new(Backend::File(around.path().join("secrets")));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Place { runtime, around, vault }
    })
}

/// Every file below, by its path.
fn files(dir: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a kind");
        assert!(!kind.is_symlink());
        if kind.is_dir() {
            files(&entry.path(), found);
        } else {
            found.insert(entry.path());
        }
    }
}

fn one_name(text: &str) {
    let parts: Vec<_> = Path::new(text).components().collect();
    assert!(matches!(parts[..], [Component::Normal(name)] if name == text), "{text:?}");
    assert!(!text.starts_with(['.', '-', '@']) && text.len() <= 128, "{text:?}");
    assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)), "{text:?}");
}

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(3, '\n');
    let (name, whose) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let value = lines.next().unwrap_or("value");
    let scope = match (whose.parse::<ProjectKey>(), whose.parse::<BoxId>()) {
        (_, Ok(id)) => Scope::Box(id),
        (Ok(key), _) => {
            one_name(key.as_str());
            Scope::Project(key)
        }
        _ => Scope::Everybody,
    };
    let Ok(id) = name.parse::<SecretId>() else { return };
    one_name(id.as_str());
    assert_eq!(id.as_str(), name);
    let Place { runtime, around, vault } = place();
    let root = around.path().join("secrets");
    let stored = runtime.block_on(vault.set(&scope, &id, Value::new(value.to_owned())));
    let mut found = BTreeSet::new();
    files(around.path(), &mut found);
    assert!(found.remove(&around.path().join("canary")));
    assert!(found.iter().all(|file| file.starts_with(&root)), "{found:?}");
    match stored {
        Ok(()) => {
            assert_eq!(found.len(), 1, "{found:?}");
            let file = found.first().expect("one");
            assert_eq!(file.file_name().and_then(|name| name.to_str()), Some(id.as_str()));
            let kept = runtime.block_on(vault.get(&scope, &id)).expect("a value").expect("a value");
            assert!(!kept.expose().is_empty() && !kept.expose().contains(['\r', '\n', '\0']));
            assert_eq!(runtime.block_on(vault.list(&scope)).expect("names"), [id.clone()]);
            assert!(runtime.block_on(vault.remove(&scope, &id)).expect("removed"));
        }
        Err(e) => {
            assert!(found.is_empty(), "{found:?}");
            // What is said is the same of another value of this shape: none of it is in the text.
            let other = value.replace(|c: char| c.is_ascii_alphanumeric(), "q");
            let said = runtime.block_on(vault.set(&scope, &id, Value::new(other)));
            assert_eq!(said.expect_err("the same fault").to_string(), e.to_string());
        }
    }
    assert_eq!(std::fs::read_to_string(around.path().join("canary")).expect("a canary"), "untouched");
});
