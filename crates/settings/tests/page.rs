//! `docs/settings.md` and `docs/schema/config.schema.json`, written from the table.
//!
//! `AGENTBOX_UPDATE_REFERENCE=1 cargo test -p agentbox-settings` writes them; without the variable the
//! test fails when they and the program differ.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agentbox_settings::registry::{Holds, KEYS, Key, Scope, Workspace};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[track_caller]
fn assert_written(path: &Path, text: &str) {
    if std::env::var_os("AGENTBOX_UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let how = "AGENTBOX_UPDATE_REFERENCE=1 cargo test -p agentbox-settings";
    assert!(written == text, "{} is not what the program says; run {how}", path.display());
}

fn page() -> String {
    let mut text = "# Settings

Written from the program. `agentbox config explain KEY` says the same of one key, and which file decides it.

- *file*: where you may set it. **global** is `~/.agentbox/config.yaml` alone; **project** also the file of a
  project (`agentbox config path`), which wins.
- *repository*: what `defaults:` in a project's `agentbox.yaml` may say of it. A box can write that file, so
  **tighter** takes only what allows less than your own files do, **free** takes anything, because it allows
  nothing, and **never** takes nothing. A file you trust as it is (`agentbox config trust-workspace`) may set
  whatever is **project** under *file*, but for `workspace.trusted`.
- *holds*: **now** is from the next call, box or session on; **restart** is when AgentBox starts.
"
    .to_owned();
    let mut section = "";
    for key in KEYS {
        let own = key.name.split('.').next().unwrap();
        if own != section {
            section = own;
            let _ = write!(
                text,
                "\n## {own}\n\n| key | value | default | file | repository | holds | what for |\n|---|---|---|---|---|---|---|\n"
            );
        }
        let _ = writeln!(text, "{}", row(key));
    }
    text
}

fn row(key: &Key) -> String {
    let default = if key.default.is_empty() { "–".into() } else { format!("`{}`", key.default) };
    let file = if key.scope == Scope::Host { "global" } else { "project" };
    let repository = match key.workspace {
        Workspace::Never => "never",
        Workspace::Tighter { .. } => "tighter",
        Workspace::Free => "free",
    };
    let holds = if key.holds == Holds::Now { "now" } else { "restart" };
    let (name, what, about) = (key.name, key.kind.what(), key.about);
    format!("| `{name}` | {what} | {default} | {file} | {repository} | {holds} | {about} |")
}

#[test]
fn the_page_is_what_the_program_says() {
    assert_written(&docs("settings.md"), &page());
}

#[test]
fn the_schema_is_what_the_program_says() {
    let text = serde_json::to_string_pretty(&agentbox_settings::schema()).unwrap() + "\n";
    assert_written(&docs("schema/config.schema.json"), &text);
}
