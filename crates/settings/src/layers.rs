//! Which file says what: `<home>/config.yaml`, over it the host's own file for a project, over that what
//! the repository's `agentbox.yaml` tightens.
//!
//! The first two lie in no work tree. A project's file may narrow or widen what its boxes may do, but not
//! how the host itself works: where the engine is, where credentials are, who is asked. The repository's
//! can only narrow (see [`crate::workspace`]), unless the person trusts it as it is.

use crate::edit::{Scalar, put};
use crate::kind::shown;
use crate::registry::{self, Scope};
use crate::{Error, Settings};
use serde_norway::{Mapping, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of both files.
const FILE: &str = "config.yaml";

/// Who decided a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Global,
    Project,
    /// The repository's `agentbox.yaml`.
    Workspace,
    CommandLine,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Global => "global",
            Source::Project => "project",
            Source::Workspace => "workspace",
            Source::CommandLine => "cli",
        }
    }
}

/// What one file says.
#[derive(Debug, Clone)]
pub struct Layer {
    pub source: Source,
    pub path: PathBuf,
    pub(crate) given: Mapping,
    /// Keys in it that nobody knows.
    pub unknown: Vec<String>,
}

impl Layer {
    pub(crate) fn new(source: Source, path: PathBuf, given: Mapping) -> Self {
        Self { source, path, given, unknown: Vec::new() }
    }

    /// What it says of a key, as it could be typed.
    pub fn value(&self, key: &str) -> Option<String> {
        value(&self.given, key).map(shown)
    }

    /// Every key it gives.
    pub fn keys(&self) -> Vec<String> {
        fn walk(at: &str, given: &Mapping, into: &mut Vec<String>) {
            for (key, value) in given {
                let key = key.as_str().unwrap_or_default();
                let key = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
                match value {
                    Value::Mapping(inner) => walk(&key, inner, into),
                    _ => into.push(key),
                }
            }
        }
        let mut keys = Vec::new();
        walk("", &self.given, &mut keys);
        keys
    }
}

/// The files that decide, the lowest first.
#[derive(Debug, Clone, Default)]
pub struct Layers(Vec<Layer>);

impl Layers {
    /// The global file, and over it those in the host's own folders for a project and what is around it.
    pub fn load(home: &Path, dirs: &[impl AsRef<Path>]) -> Result<Self, Error> {
        let mut layers = Self::default();
        let global = home.join(FILE);
        let (_, given, unknown) = read_file(&global)?;
        layers.0.push(Layer { unknown, ..Layer::new(Source::Global, global, given) });
        for dir in dirs {
            let path = dir.as_ref().join(FILE);
            let (_, given, unknown) = read_file(&path)?;
            let invalid = |reason| Error::Invalid { path: path.clone(), reason };
            only_project_keys(&given, home).map_err(invalid)?;
            layers.0.push(Layer { unknown, ..Layer::new(Source::Project, path.clone(), given) });
            layers.typed().map_err(invalid)?;
        }
        Ok(layers)
    }

    /// What is wrong with a text that is to be one of these files; for a project, over the global one.
    pub fn check(home: &Path, file: &Path, source: Source, text: &str) -> Result<(), Error> {
        let invalid = |reason| Error::Invalid { path: file.to_owned(), reason };
        let (_, given, _) = parse(text).map_err(invalid)?;
        if source == Source::Project {
            only_project_keys(&given, home).map_err(invalid)?;
            let mut layers = Self::load(home, &[] as &[PathBuf])?;
            layers.push(Layer::new(source, file.to_owned(), given));
            layers.typed().map_err(invalid)?;
        }
        Ok(())
    }

    /// What all of them come to.
    pub fn settings(&self) -> Result<Settings, Error> {
        let path = self.0.last().map(|layer| layer.path.clone()).unwrap_or_default();
        self.typed().map_err(|reason| Error::Invalid { path, reason })
    }

    pub(crate) fn typed(&self) -> Result<Settings, String> {
        let mut merged = Mapping::new();
        for layer in &self.0 {
            merge(&mut merged, layer.given.clone());
        }
        typed(merged)
    }

    pub fn all(&self) -> &[Layer] {
        &self.0
    }

    /// What a command line says, over everything else.
    pub fn say(&mut self, said: &[(&str, Scalar)]) {
        if said.is_empty() {
            return;
        }
        let mut given = Mapping::new();
        for (key, value) in said {
            let words: Vec<String> = key.split('.').map(str::to_owned).collect();
            put(&mut given, &words, value.clone().into());
        }
        self.0.push(Layer::new(Source::CommandLine, PathBuf::new(), given));
    }

    /// Keys in the person's files that nobody knows, each with its file.
    pub fn unknown(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0
            .iter()
            .flat_map(|layer| layer.unknown.iter().map(|key| (layer.path.as_path(), key.as_str())))
    }

    pub(crate) fn push(&mut self, layer: Layer) {
        self.0.push(layer);
    }

    /// Below the person's own file for the very project, when there is one.
    pub(crate) fn put_below_project(&mut self, layer: Layer) {
        let at = self.0.iter().rposition(|one| one.source == Source::Project);
        self.0.insert(at.unwrap_or(self.0.len()), layer);
    }

    /// What the repository's file sets: keys with their values.
    pub fn of_workspace(&self) -> Vec<(String, String)> {
        let layers = self.0.iter().filter(|layer| layer.source == Source::Workspace);
        let all = layers.flat_map(|layer| {
            layer.keys().into_iter().filter_map(|key| Some((layer.value(&key)?, key)))
        });
        all.map(|(value, key)| (key, value)).collect()
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// What one of the files says of a key.
    pub fn said_in(&self, file: &Path, key: &str) -> Option<String> {
        self.0.iter().find(|layer| layer.path == file)?.value(key)
    }

    /// Who decides a key, and how; none when nobody does.
    pub fn decided(&self, key: &str) -> Option<(&Layer, String)> {
        self.0.iter().rev().find_map(|layer| Some((layer, layer.value(key)?)))
    }
}

impl Settings {
    /// Reads `config.yaml` below the home; a missing or empty file means the defaults.
    pub fn load(home: &Path) -> Result<Self, Error> {
        Self::load_for(home, None)
    }

    /// The settings for one project, whose folder below the home (not in the project) is given.
    pub fn load_for(home: &Path, project_dir: Option<&Path>) -> Result<Self, Error> {
        Layers::load(home, project_dir.as_slice())?.settings()
    }
}

fn read_file(path: &Path) -> Result<Parsed, Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
        Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
    };
    parse(&text).map_err(|reason| Error::Invalid { path: path.to_owned(), reason })
}

/// The settings of one text, the keys it gives and those nobody knows.
pub(crate) type Parsed = (Settings, Mapping, Vec<String>);

/// Read twice: only the text knows the line a mistake is in, and only the keys can be merged.
pub(crate) fn parse(text: &str) -> Result<Parsed, String> {
    let settings: Result<Option<Settings>, _> = serde_norway::from_str(text);
    let given = keys_of(text)?;
    match settings {
        Ok(settings) => Ok((settings.unwrap_or_default().checked()?, given, Vec::new())),
        Err(mistake) => {
            let (known, unknown) = without_foreign(given.clone());
            // There is more wrong with it, and the text knows where.
            let settings =
                typed(known.clone()).ok().filter(|_| known != given).ok_or(mistake.to_string())?;
            Ok((settings, known, unknown))
        }
    }
}

/// What a text gives, also what nobody knows.
pub(crate) fn keys_of(text: &str) -> Result<Mapping, String> {
    let given: Value = serde_norway::from_str(text).map_err(|e| e.to_string())?;
    Ok(match given {
        Value::Mapping(given) => pruned(given),
        _ => Mapping::new(),
    })
}

/// Without the keys that nobody knows and that may be there all the same; their names.
pub(crate) fn without_foreign(given: Mapping) -> (Mapping, Vec<String>) {
    fn walk(at: &str, given: Mapping, names: &mut Vec<String>) -> Mapping {
        let mut kept = Mapping::new();
        for (key, value) in given {
            let Some(word) = key.as_str() else {
                kept.insert(key, value);
                continue;
            };
            let name = if at.is_empty() { word.to_owned() } else { format!("{at}.{word}") };
            let below = format!("{name}.");
            let is_known = registry::find(&name).is_some()
                || registry::KEYS.iter().any(|known| known.name.starts_with(&below));
            match value {
                // Which shape the file has: so far there is one.
                Value::Number(_) if name == "schema" => {}
                Value::Mapping(inner) if is_known => {
                    kept.insert(key, Value::Mapping(walk(&name, inner, names)));
                }
                _ if !is_known && registry::may_be_foreign(&name) => names.push(name),
                value => {
                    kept.insert(key, value);
                }
            }
        }
        kept
    }
    let mut names = Vec::new();
    let kept = walk("", given, &mut names);
    (pruned(kept), names)
}

pub(crate) fn typed(given: Mapping) -> Result<Settings, String> {
    let settings: Settings =
        serde_norway::from_value(Value::Mapping(given)).map_err(|e| e.to_string())?;
    settings.checked()
}

/// Without what says nothing: keys without a value, sections without a key.
fn pruned(given: Mapping) -> Mapping {
    let kept = given.into_iter().filter_map(|(key, value)| match value {
        Value::Null => None,
        Value::Mapping(inner) => {
            let inner = pruned(inner);
            (!inner.is_empty()).then_some((key, Value::Mapping(inner)))
        }
        value => Some((key, value)),
    });
    kept.collect()
}

fn merge(below: &mut Mapping, over: Mapping) {
    for (key, value) in over {
        match (below.get_mut(&key), value) {
            (Some(Value::Mapping(below)), Value::Mapping(over)) => merge(below, over),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn only_project_keys(given: &Mapping, home: &Path) -> Result<(), String> {
    let layer = Layer::new(Source::Project, PathBuf::new(), given.clone());
    let keys = layer.keys();
    let foreign = |key: &&String| {
        // What no table knows is told by the model.
        registry::find(key).is_some_and(|known| known.scope == Scope::Host)
    };
    match keys.iter().find(foreign) {
        Some(key) => Err(format!(
            "{key} cannot be set for one project; set it in {}",
            home.join(FILE).display()
        )),
        None => Ok(()),
    }
}

/// What stands at a key.
pub(crate) fn value<'a>(given: &'a Mapping, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => given.get(key),
        Some((section, rest)) => value(given.get(section)?.as_mapping()?, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApprovalMode;
    use protocol::links::EngineKind;
    use std::path::PathBuf;

    /// A home and a project's folder below it, with these files; an empty text is no file.
    fn world(global: &str, project: &str) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("projects/0123-shop");
        std::fs::create_dir_all(&dir).unwrap();
        for (folder, text) in [(home.path(), global), (&dir, project)] {
            if !text.is_empty() {
                std::fs::write(folder.join(FILE), text).unwrap();
            }
        }
        (home, dir)
    }

    fn loaded(global: &str, project: &str) -> Result<Settings, String> {
        let (home, dir) = world(global, project);
        Settings::load_for(home.path(), Some(&dir)).map_err(|e| e.to_string())
    }

    #[test]
    fn no_files_are_the_defaults() {
        assert_eq!(loaded("", "").unwrap(), Settings::default());
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Settings::load(home.path()).unwrap(), Settings::default());
        assert_eq!(
            Settings::load_for(home.path(), Some(Path::new("/nonexistent"))).unwrap(),
            Settings::default()
        );
    }

    #[test]
    fn a_project_wins_key_by_key() {
        let s = loaded(
            "approvals: {mode: safe, timeoutSeconds: 5}\nintegrations: {notion: {enabled: true, autoApproveWrites: true}, linear: {enabled: true}}\nbox: {image: a, cpMaxBytes: 7}\n",
            "approvals: {mode: ask}\nintegrations: {notion: {enabled: false}, linear: }\nbox: {image: b}\ngh: {checkout: true}\n",
        )
        .unwrap();
        assert_eq!((s.approvals.mode, s.approvals.timeout_seconds), (ApprovalMode::Ask, 5));
        let notion = &s.integrations["notion"];
        assert_eq!((notion.enabled, notion.auto_approve_writes), (Some(false), true));
        assert_eq!(s.integrations["linear"].enabled, Some(true));
        assert_eq!((s.boxes.image.as_deref(), s.boxes.cp_max_bytes), (Some("b"), 7));
        assert!(s.gh.checkout);
    }

    #[test]
    fn a_project_does_not_decide_how_the_host_works() {
        for key in [
            "engine: {host: x}",
            "engine: {channel: exec}",
            "update: {feed: https://example.com/feed}",
            "secrets: {backend: file}",
            "approvals: {mode: ask, promptCommand: [x]}",
            "approvals: {timeoutSeconds: 5}",
            "approvals: {quiet: 22:00-7:00}",
            "approvals: {whenNobodyWatches: wait}",
        ] {
            let why = loaded("", key).unwrap_err();
            assert!(why.contains("cannot be set for one project; set it in /"), "{key}: {why}");
            assert!(why.contains("/projects/0123-shop/config.yaml: "), "{why}");
            loaded(key, "").unwrap();
        }
        loaded("", "engine:\nsecrets: {}\napprovals: {quiet: }\n").unwrap();
    }

    #[test]
    fn what_nobody_knows_is_kept_apart_and_named() {
        let (home, dir) =
            world("cloud: {region: x}\nbox: {hetznerLocation: nbg1, memory: 1g}\n", "");
        let layers = Layers::load(home.path(), &[dir]).unwrap();
        let unknown: Vec<&str> = layers.unknown().map(|(_, key)| key).collect();
        assert_eq!(unknown, ["cloud", "box.hetznerLocation"]);
        assert_eq!(layers.settings().unwrap().boxes.memory, Some(1 << 30));
        assert!(layers.decided("cloud.region").is_none());
        // Another mistake beside it is told with its line.
        let why = loaded("cloud: {region: x}\nbox:\n  memory: [lots]\n", "").unwrap_err();
        assert!(why.contains("config.yaml"), "{why}");
    }

    #[test]
    fn yaml_13_54_a_command_line_wins_over_every_file() {
        let (home, dir) = world("engine: {kind: orbstack}", "engine: {kind: docker-desktop}");
        let mut layers = Layers::load(home.path(), &[dir]).unwrap();
        let (layer, kind) = layers.decided("engine.kind").unwrap();
        assert_eq!((layer.source.as_str(), kind.as_str()), ("project", "docker-desktop"));
        layers.say(&[("engine.kind", Scalar::Text("auto".into()))]);
        let (layer, kind) = layers.decided("engine.kind").unwrap();
        assert_eq!((layer.source.as_str(), kind.as_str()), ("cli", "auto"));
        assert_eq!(layers.settings().unwrap().engine.kind, EngineKind::Auto);
    }

    #[test]
    fn a_mistake_is_told_with_its_file_and_line() {
        let why = loaded("", "gh:\n  chekout: true\n").unwrap_err();
        assert!(why.contains("0123-shop/config.yaml: gh: unknown field `chekout`"), "{why}");
        assert!(why.contains("line 2"), "{why}");
        let (home, _) = world("gh: [", "");
        let why = Settings::load(home.path()).unwrap_err();
        assert!(matches!(why, Error::Invalid { .. }), "{why}");
        std::fs::remove_file(home.path().join(FILE)).unwrap();
        std::fs::create_dir(home.path().join(FILE)).unwrap();
        assert!(matches!(Settings::load(home.path()), Err(Error::Read { .. })));
    }
}
