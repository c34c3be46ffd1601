//! What a repository's `agentbox.yaml` says under `defaults:`.
//!
//! A box can write that file, so it can only tighten: each key is judged by the table, and what allows
//! more than the person's own files do is left out. Nothing here is an error: whoever shows it decides.
//! A person may trust one text of one project's file; then it counts like their own file for the project,
//! which is still not a word about how the host itself works.

use crate::edit::put;
use crate::layers::{Layer, Layers, Source, value as value_at};
use crate::registry::{self, Scope, Workspace};
use serde_norway::{Mapping, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Which text of a project's file is trusted, by its SHA-256. Only the person's own file for the very
/// project says so.
pub const TRUSTED: &str = "workspace.trusted";

/// Of a value. Nobody could look at more, and reading it takes time.
const LONGEST: usize = 4096;

/// A key that has no effect, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// As the file has it; anything may be in it.
    pub key: String,
    pub value: String,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// There is no such setting; perhaps this one.
    Unknown { meant: Option<&'static str> },
    /// A repository does not decide it.
    NotFromHere,
    /// The person's own files allow less.
    Looser { own: String },
    /// It is no value of this setting.
    Invalid(String),
}

impl Layers {
    /// Puts what a repository's file says on top, as far as it tightens. The leaves are keys with the
    /// letters of their values.
    pub fn tighten(
        &mut self,
        file: PathBuf,
        leaves: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<Left> {
        self.add(file, leaves, false)
    }

    /// Puts in all of it that can be set for one project, because the person trusts it: below their own
    /// file for the project, which they may change at any time.
    pub fn trust(
        &mut self,
        file: PathBuf,
        leaves: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<Left> {
        self.add(file, leaves, true)
    }

    fn add(
        &mut self,
        file: PathBuf,
        leaves: impl IntoIterator<Item = (String, String)>,
        trusted: bool,
    ) -> Vec<Left> {
        let mut given = Mapping::new();
        let mut left = Vec::new();
        let mut names = BTreeSet::new();
        for (key, value) in leaves {
            // Written in two ways, one of them would be what is shown, the other what counts.
            if !names.insert(key.clone()) {
                left.push(Left { key, value, why: Why::Invalid("it is given twice".to_owned()) });
                continue;
            }
            // A key without a value counts as not there.
            if matches!(value.as_str(), "" | "~" | "null") {
                continue;
            }
            match self.judged(&key, &value, &given, trusted) {
                Ok(None) => {}
                Ok(Some(wider)) => given = wider,
                Err(why) => left.push(Left { key, value, why }),
            }
        }
        let layer = Layer::new(Source::Workspace, file, given);
        if trusted {
            self.put_below_project(layer);
        } else {
            self.push(layer);
        }
        left
    }

    /// What is given with this key as well; none when it changes nothing.
    fn judged(
        &mut self,
        key: &str,
        value: &str,
        given: &Mapping,
        trusted: bool,
    ) -> Result<Option<Mapping>, Why> {
        let name = key.split('[').next().unwrap_or(key);
        let Some(known) = registry::find(name) else {
            return Err(Why::Unknown { meant: registry::meant(name) });
        };
        let trusted = trusted && known.scope == Scope::Project && name != TRUSTED;
        if known.workspace == Workspace::Never && !trusted {
            return Err(Why::NotFromHere);
        }
        if value.len() > LONGEST {
            return Err(Why::Invalid(format!("it is longer than {LONGEST} bytes")));
        }
        let typed = known.kind.parse(value).map_err(Why::Invalid)?;
        let text = crate::kind::shown(&typed.clone().into());
        if let Workspace::Tighter { none } = known.workspace
            && !trusted
        {
            let own = self.decided(name).map_or(known.default.to_owned(), |(_, own)| own);
            let allows = |text: &str, unclear: u64| match text {
                "" => none,
                text => known.kind.rank(text, none).unwrap_or(unclear),
            };
            // What nobody can rank loses: a new value then allows everything, the person's nothing.
            let (new, old) = (allows(&text, u64::MAX), allows(&own, 0));
            if new == old {
                return Ok(None);
            }
            if new > old {
                let own = if own.is_empty() { "no limit".to_owned() } else { own };
                return Err(Why::Looser { own });
            }
        }
        let mut wider = given.clone();
        let words: Vec<String> = name.split('.').map(str::to_owned).collect();
        let mut typed: Value = typed.into();
        // The next word of a list.
        if let (false, Some(Value::Sequence(before)), Value::Sequence(more)) =
            (key.ends_with("[0]"), value_at(given, name), &typed)
        {
            typed = Value::Sequence(before.iter().chain(more).cloned().collect());
        }
        put(&mut wider, &words, typed);
        self.push(Layer::new(Source::Workspace, PathBuf::new(), wider.clone()));
        let fits = self.typed();
        self.pop();
        fits.map(|_| Some(wider)).map_err(Why::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layers of somebody with this global file, and what is left of these leaves.
    fn tightened(global: &str, leaves: &[(&str, &str)]) -> (Layers, Vec<Left>) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.yaml"), global).unwrap();
        let mut layers = Layers::load(home.path(), &[] as &[PathBuf]).unwrap();
        let leaves = leaves.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let left = layers.tighten("/src/agentbox.yaml".into(), leaves);
        (layers, left)
    }

    fn why(global: &str, key: &str, value: &str) -> Why {
        let (layers, mut left) = tightened(global, &[(key, value)]);
        let (before, _) = tightened(global, &[]);
        assert_eq!(layers.settings().unwrap(), before.settings().unwrap(), "{key}: {value}");
        assert_eq!(left.len(), 1, "{key}: {value}");
        left.remove(0).why
    }

    #[test]
    fn what_cannot_be_ranked_is_not_replaced() {
        for own in ["4e9", "4000000000.0", "'4e9'"] {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join("config.yaml"), format!("box: {{memory: {own}}}\n"))
                .unwrap();
            if Layers::load(home.path(), &[] as &[PathBuf]).and_then(|l| l.settings()).is_err() {
                continue;
            }
            assert!(
                matches!(
                    why(&format!("box: {{memory: {own}}}\n"), "box.memory", "512g"),
                    Why::Looser { .. }
                ),
                "{own}"
            );
        }
    }

    #[test]
    fn what_allows_less_is_taken() {
        let (layers, left) = tightened(
            "box: {memory: 8g}\n",
            &[
                ("box.vnc", "false"),
                ("box.memory", "4g"),
                ("box.cpus", "1.5"),
                ("box.pidsLimit", "100"),
                ("box.stage", "core"),
                ("box.docker", "off"),
                ("box.cpMaxBytes", "5"),
                ("claude.dangerouslySkipPermissions", "false"),
                ("claude.sessionName", "shop"),
                ("codex.login", "no"),
                ("box.disk", ""),
            ],
        );
        assert_eq!(left, []);
        let s = layers.settings().unwrap();
        assert_eq!((s.boxes.vnc, s.boxes.memory), (false, Some(4 << 30)));
        assert_eq!((s.boxes.cpus, s.boxes.pids_limit), (Some(1_500_000_000), Some(100)));
        assert_eq!((s.boxes.stage, s.boxes.docker), (crate::Stage::Core, crate::InnerDocker::Off));
        assert_eq!((s.boxes.cp_max_bytes, s.boxes.disk), (5, None));
        assert!(!s.claude.skips_permissions() && !s.codex.login);
        assert_eq!(s.claude.session_name.as_deref(), Some("shop"));
        let (layer, value) = layers.decided("box.memory").unwrap();
        assert_eq!((layer.source, value.as_str()), (Source::Workspace, "4g"));
        assert_eq!(layer.path, PathBuf::from("/src/agentbox.yaml"));
    }

    #[test]
    fn what_allows_more_is_not() {
        let looser = |own: &str| Why::Looser { own: own.to_owned() };
        assert_eq!(why("box: {vnc: false}", "box.vnc", "true"), looser("false"));
        assert_eq!(why("box: {memory: 2g}", "box.memory", "4g"), looser("2g"));
        assert_eq!(why("box: {memory: 2g}", "box.memory", "0"), looser("2g"));
        assert_eq!(why("", "box.pidsLimit", "9000"), looser("8192"));
        assert_eq!(why("", "box.docker", "on"), looser("auto"));
        assert_eq!(why("box: {stage: core}", "box.stage", "full"), looser("core"));
        assert_eq!(why("", "box.cpMaxBytes", "104857601"), looser("104857600"));
        let asks = "claude: {dangerouslySkipPermissions: false}";
        assert_eq!(why(asks, "claude.dangerouslySkipPermissions", "true"), looser("false"));
        // The same is no news.
        assert_eq!(tightened("", &[("box.vnc", "true"), ("box.memory", "0")]).1, []);
    }

    #[test]
    fn yaml_13_55_a_cloned_repository_approves_nothing() {
        let unknown = |meant| Why::Unknown { meant };
        assert_eq!(why("", "box.autoApproveHostActions", "true"), unknown(None));
        for (key, value) in [
            ("approvals.mode", "safe"),
            ("integrations.notion.enabled", "true"),
            ("integrations.notion.autoApproveWrites", "true"),
            ("approvals.promptCommand[0]", "/tmp/evil"),
            ("box.image", "evil"),
            ("box.extraCas[0]", "/workspace/evil.crt"),
            ("box.withEnv", "true"),
            ("gh.checkout", "true"),
        ] {
            assert_eq!(why("", key, value), Why::NotFromHere, "{key}");
        }
        assert_eq!(why("", "box.memroy", "4g"), unknown(Some("box.memory")));
        assert!(matches!(why("", "box.memory", "lots"), Why::Invalid(_)));
        assert!(matches!(why("", "claude.sessionName", "a b"), Why::Invalid(_)));
    }

    #[test]
    fn a_trusted_file_counts_like_the_persons_own_for_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let ca = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (one, two) = (ca("one"), ca("two"));
        let trusted = |leaves: &[(&str, &str)]| {
            let mut layers = tightened("box: {memory: 2g}", &[]).0;
            let leaves = leaves.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let left = layers.trust("/src/agentbox.yaml".into(), leaves);
            (layers, left)
        };
        let (layers, left) = trusted(&[
            ("box.withEnv", "true"),
            ("box.memory", "4g"),
            ("integrations.notion.enabled", "true"),
            ("box.extraCas[0]", &one),
            ("box.extraCas[1]", &two),
        ]);
        assert_eq!(left, []);
        let s = layers.settings().unwrap();
        assert!(s.boxes.with_env && s.integrations["notion"].enabled == Some(true));
        assert_eq!(s.boxes.memory, Some(4 << 30));
        assert_eq!(s.boxes.extra_cas.unwrap(), [PathBuf::from(one), PathBuf::from(two)]);
        // How the host works is nobody's but the person's, and nor is whom they trust.
        let all = "a".repeat(64);
        for (key, value) in [
            ("approvals.promptCommand[0]", "/tmp/evil"),
            ("engine.host", "tcp://evil"),
            ("secrets.backend", "file"),
            ("workspace.trusted", all.as_str()),
        ] {
            let (layers, left) = trusted(&[(key, value)]);
            assert_eq!(left[0].why, Why::NotFromHere, "{key}");
            assert!(layers.decided(key).is_none(), "{key}");
        }
        assert!(matches!(trusted(&[("box.memory", "lots")]).1[0].why, Why::Invalid(_)));
    }

    #[test]
    fn yaml_13_54_the_engine_is_no_repositorys() {
        let (layers, left) = tightened("engine: {kind: orbstack}", &[("engine.kind", "other")]);
        assert_eq!(left[0].why, Why::NotFromHere);
        let (layer, kind) = layers.decided("engine.kind").unwrap();
        assert_eq!((layer.source, kind.as_str()), (Source::Global, "orbstack"));
    }
}
