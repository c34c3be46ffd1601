//! Settings as a person looks at them and changes them, and what a repository says about them.
//!
//! The person's own files decide; a repository's `agentbox.yaml` can only tighten (see
//! [`settings::workspace`]). Every change made here is on record.

use crate::api::Api;
use crate::core::Core;
use crate::project_dirs::project_dir;
use crate::trust::{digest, is_trusted};
use connectors::registry as connectors;
use project::{FILE_NAME, Parsed, Problem, Project};
use protocol::control::{ControlError, ErrorCode};
use protocol::integrations::Layer;
use protocol::text::{shortened, visible};
use relay::Entry;
use settings::registry::{self, Key, Scope};
use settings::workspace::{Left, Why};
use settings::{Layers, Settings, Source, edit};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More than the reader takes, so that it can say so.
const MOST: u64 = (1 << 20) + 1;
/// What is told about one file at once.
const MOST_TOLD: usize = 100;
/// At the top of a project's file: which project it is of.
pub(crate) const OF: &str = "# project: ";
/// For a file that somebody else wrote to.
pub const CHANGED_HINT: &str = "open it again and make your change there";
/// Keys that one edited file can have on record, each.
const MOST_RECORDED: usize = 200;

/// The settings as they are now for a project: the person's own, and what its repository tightens.
pub fn project_settings(home: &Path, root: &Path) -> Result<Settings, settings::Error> {
    project_layers(home, root)?.settings()
}

/// The same, file by file.
pub fn project_layers(home: &Path, root: &Path) -> Result<Layers, settings::Error> {
    let mut layers = own_layers(home, root)?;
    let text = read_project_file(root).unwrap_or_default().unwrap_or_default();
    let (file, leaves) = (root.join(FILE_NAME), repository_defaults(&text));
    if is_trusted(&layers, home, root, &text) {
        layers.trust(file, leaves);
    } else {
        layers.tighten(file, leaves);
    }
    Ok(layers)
}

/// The person's own files. What holds for a folder holds for those in it.
pub(crate) fn own_layers(home: &Path, root: &Path) -> Result<Layers, settings::Error> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for root in root.ancestors() {
        let dir = project_dir(home, root);
        of_this_project(&dir.join("config.yaml"), root)?;
        dirs.push(dir);
    }
    dirs.reverse();
    Layers::load(home, &dirs)
}

/// A folder is found by a short hash, which whoever names folders could make the same for two of them.
fn of_this_project(file: &Path, root: &Path) -> Result<(), settings::Error> {
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(()) };
    match text.lines().find_map(|line| line.strip_prefix(OF)) {
        Some(other) if Path::new(other) != root => Err(settings::Error::Invalid {
            path: file.to_owned(),
            reason: format!("it is of another project: {}", visible(other)),
        }),
        _ => Ok(()),
    }
}

/// `defaults:` of a project's file, none when it cannot be read: making a box says what is wrong with it.
fn repository_defaults(text: &str) -> Vec<(String, String)> {
    // Most files have none, and reading all the rest takes time.
    if !text.contains("defaults") {
        return Vec::new();
    }
    let Parsed { project: Some(project), .. } = Project::parse(text) else { return Vec::new() };
    leaves(&project)
}

pub(crate) fn leaves(project: &Project) -> Vec<(String, String)> {
    project.defaults.iter().map(|one| (one.key.clone(), one.value.clone())).collect()
}

/// The text of a project's file; none when there is none. It never waits and has a largest size.
pub fn read_project_file(root: &Path) -> Result<Option<String>, String> {
    // Never waits, as it would for a pipe.
    let mut options = std::fs::OpenOptions::new();
    let open = options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(root.join(FILE_NAME));
    let file = match open {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| e.to_string())?,
    };
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

/// What of a project's `defaults:` is a mistake, what somebody should know, and what the person's own
/// files are tighter about already.
#[derive(Debug, Default)]
pub struct DefaultsProblems {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
    pub looser: Vec<Problem>,
}

pub fn defaults_problems(home: &Path, root: &Path, project: &Project) -> DefaultsProblems {
    let mut found = DefaultsProblems::default();
    let mut layers = own_layers(home, root).unwrap_or_default();
    let text = read_project_file(root).unwrap_or_default().unwrap_or_default();
    let file = root.join(FILE_NAME);
    let all = if is_trusted(&layers, home, root, &text) {
        layers.trust(file, leaves(project))
    } else {
        layers.tighten(file, leaves(project))
    };
    for left in all {
        let place = project.defaults.iter().find(|one| one.key == left.key);
        let place = place.map(|one| one.place).unwrap_or_default();
        let (code, message, hint) = told(&left);
        let path = visible(&shortened(&format!("defaults.{}", left.key), 120));
        let problem = Problem { place, path, code, message, hint };
        match left.why {
            Why::Invalid(_) => found.errors.push(problem),
            Why::Looser { .. } => found.looser.push(problem),
            Why::Unknown { .. } | Why::NotFromHere => found.warnings.push(problem),
        }
    }
    found
}

fn told(left: &Left) -> (&'static str, String, Option<String>) {
    let value = shortened(&left.value, 60);
    match &left.why {
        Why::Invalid(why) => ("Y070", shortened(why, 300), None),
        Why::Unknown { meant } => {
            let hint = meant.map(|name| format!("did you mean {name}?"));
            ("W010", "there is no such setting".to_owned(), hint)
        }
        Why::NotFromHere => {
            // Not how to set it: whoever wrote the file would only have to be believed.
            let key = left.key.split('[').next().unwrap_or_default();
            let message = "has no effect here: a box can write this file".to_owned();
            ("W011", message, Some(format!("agentbox config explain {key}")))
        }
        Why::Looser { own } => {
            let message =
                format!("{value} has no effect: a repository can only tighten, and yours is {own}");
            ("W012", message, None)
        }
    }
}

/// Every setting by name, with those of each service.
pub fn setting_names(advanced: bool) -> Vec<String> {
    let wanted = registry::KEYS.iter().filter(|key| advanced || !key.advanced);
    let each = wanted.flat_map(|key| match key.name.split_once('*') {
        None => vec![key.name.to_owned()],
        Some((before, after)) => {
            let services = connectors::CONNECTORS.iter();
            services.map(|c| format!("{before}{}{after}", c.service)).collect()
        }
    });
    each.collect()
}

/// The setting of this name, or the name that was perhaps meant.
pub fn find_setting(name: &str) -> Result<&'static Key, Option<String>> {
    let service = name.strip_prefix("integrations.").and_then(|rest| rest.split('.').next());
    if let (Some(key), Some(service)) = (registry::find(name), service)
        && connectors::find(service).is_none()
    {
        let all: Vec<&str> = connectors::CONNECTORS.iter().map(|c| c.service).collect();
        let near = protocol::similar::similar(service, &all);
        return Err(near.map(|near| key.name.replace('*', near)));
    }
    registry::find(name).ok_or_else(|| registry::meant(name).map(str::to_owned))
}

/// What a setting is when no file says anything, as it could be typed.
pub fn setting_default(name: &str) -> Option<String> {
    let key = registry::find(name)?;
    let service = name.strip_prefix("integrations.").and_then(|rest| rest.strip_suffix(".enabled"));
    let started = service.and_then(connectors::find).map(|c| c.on_by_default.to_string());
    started.or_else(|| (!key.default.is_empty()).then(|| key.default.to_owned()))
}

/// A project that has settings of its own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfiguredProject {
    /// None when the file does not say.
    pub root: Option<PathBuf>,
    pub file: PathBuf,
    pub keys: Vec<String>,
}

pub fn configured_projects(home: &Path) -> Vec<ConfiguredProject> {
    let Ok(dirs) = std::fs::read_dir(home.join("projects")) else { return Vec::new() };
    let mut all: Vec<ConfiguredProject> = dirs
        .filter_map(|dir| {
            let dir = dir.ok()?.path();
            let file = dir.join("config.yaml");
            let text = std::fs::read_to_string(&file).ok()?;
            let said = text.lines().find_map(|line| line.strip_prefix(OF)).map(PathBuf::from);
            let root = said.filter(|root| project_dir(home, root) == dir);
            let layers = Layers::load(home, &[&dir]).ok();
            let keys = layers.and_then(|l| l.all().last().map(settings::Layer::keys));
            Some(ConfiguredProject { root, file, keys: keys.unwrap_or_default() })
        })
        .collect();
    all.sort_by(|a, b| (&a.root, &a.file).cmp(&(&b.root, &b.file)));
    all
}

impl Api {
    /// Sets a key in one of the person's files, or takes it out.
    pub async fn set_setting(
        &self,
        key: &str,
        value: Option<&str>,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<(), ControlError> {
        self.core().set_setting(key, value, layer, cwd).await
    }

    /// Writes one of the person's files anew, if nobody has since they opened it.
    pub async fn write_settings(
        &self,
        text: String,
        opened: Option<String>,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<(), ControlError> {
        self.core().write_settings(text, opened, layer, cwd).await
    }
}

impl Core {
    async fn set_setting(
        &self,
        key: &str,
        value: Option<&str>,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<(), ControlError> {
        let usage = |text: String| ControlError::new(ErrorCode::Usage, text);
        let known = find_setting(key).map_err(|meant| {
            let text = format!("there is no setting {}", shortened(&visible(key), 80));
            let error = usage(text);
            match meant {
                Some(meant) => error.hint(format!("did you mean {meant}?")),
                None => error.hint("agentbox config list --include-advanced shows all of them."),
            }
        })?;
        let value = value.map(|text| {
            known.kind.parse(text).map_err(|why| usage(format!("{key}: {}", visible(&why))))
        });
        let value = value.transpose()?;
        if layer == Layer::Project && known.scope == Scope::Host {
            let text = format!("{key} cannot be set for one project");
            return Err(usage(text).hint("set it with --global."));
        }
        let (file, of) = self.settings_file(layer, cwd).await?;
        let (to, own, new) = (file.clone(), key.to_owned(), value.clone());
        let changed = blocking(move || {
            if let (Some(_), Some(root)) = (&new, &of) {
                let comment = format!("{}{}", OF.trim_start_matches("# "), root.display());
                edit::begin(&to, &comment)?;
            }
            match new {
                Some(new) => edit::set(&to, &own, new).map(|()| true),
                None => edit::unset(&to, &own),
            }
        });
        if changed.await? {
            self.note_setting(key, value, &file).await?;
        }
        Ok(())
    }

    async fn write_settings(
        &self,
        text: String,
        opened: Option<String>,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<(), ControlError> {
        if text.len() as u64 >= MOST {
            return Err(ControlError::new(ErrorCode::Usage, "the file is too long"));
        }
        let (file, _) = self.settings_file(layer, cwd).await?;
        let source = match layer {
            Layer::Global => Source::Global,
            Layer::Project => Source::Project,
        };
        let (home, to) = (self.home.clone(), file.clone());
        let changes = blocking(move || {
            Layers::check(&home, &to, source, &text)?;
            edit::write(&to, &text, |there| there.map(digest) == opened)
        });
        let changes = changes.await?;
        for change in changes.iter().take(MOST_RECORDED) {
            let value = change.value.as_deref().map(|text| scalar(&change.key, text));
            self.note_setting(&change.key, value, &file).await?;
        }
        let more = match changes.len() {
            0 => "no setting is another one".to_owned(),
            1..=MOST_RECORDED => return Ok(()),
            count => format!("{} more settings are others", count - MOST_RECORDED),
        };
        let entry = Entry {
            box_id: None,
            kind: "setting-changed",
            summary: shortened(&format!("{} edited; {more}", file.display()), 300),
            data: serde_json::json!({ "key": null, "file": file }),
        };
        Ok(self.store.record(entry).await?)
    }

    /// One of the person's files, and the project it is of.
    async fn settings_file(
        &self,
        layer: Layer,
        cwd: Option<&str>,
    ) -> Result<(PathBuf, Option<PathBuf>), ControlError> {
        let root = match (layer, cwd) {
            (Layer::Global, _) => return Ok((self.home.join("config.yaml"), None)),
            (Layer::Project, Some(cwd)) => boxes::project::project_root(Path::new(cwd)).await,
            (Layer::Project, None) => {
                let text = "which project? No folder was named.";
                return Err(ControlError::new(ErrorCode::Usage, text));
            }
        };
        let root = root.map_err(crate::engine::control_error)?;
        Ok((project_dir(&self.home, &root).join("config.yaml"), Some(root)))
    }

    async fn note_setting(
        &self,
        key: &str,
        value: Option<edit::Scalar>,
        file: &Path,
    ) -> Result<(), ControlError> {
        let value = value.map(|value| match value {
            edit::Scalar::Bool(yes) => serde_json::json!(yes),
            edit::Scalar::Number(number) => serde_json::json!(number),
            edit::Scalar::Text(text) => serde_json::json!(text),
            edit::Scalar::List(all) => serde_json::json!(all),
        });
        let what = value.as_ref().map_or_else(|| "unset".to_owned(), |v| format!("set to {v}"));
        let entry = Entry {
            box_id: None,
            kind: "setting-changed",
            summary: shortened(&format!("{key} {what} in {}", file.display()), 300),
            data: serde_json::json!({ "key": key, "value": value, "file": file }),
        };
        Ok(self.store.record(entry).await?)
    }

    /// What the project's `defaults:` come to is told; what is no value at all is a mistake.
    pub(crate) fn check_defaults(
        &self,
        project: &Project,
        root: &Path,
    ) -> Result<Vec<String>, ControlError> {
        let found = defaults_problems(&self.home, root, project);
        let line = |problem: &Problem| problem.line(FILE_NAME);
        if !found.errors.is_empty() {
            let error = ControlError::new(ErrorCode::Failed, "agentbox.yaml validation failed:");
            let error = found
                .errors
                .iter()
                .take(MOST_TOLD)
                .fold(error, |error, one| error.hint(format!("  {}", line(one))));
            return Err(error.hint("agentbox validate checks it again."));
        }
        Ok(found.warnings.iter().chain(&found.looser).take(MOST_TOLD).map(line).collect())
    }
}

/// Away from the threads that answer: another process may keep a file for a moment.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, settings::Error> + Send + 'static,
) -> Result<T, ControlError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))?.map_err(unwritable)
}

/// A value of a file as it would be set.
fn scalar(key: &str, text: &str) -> edit::Scalar {
    let known = find_setting(key).ok().and_then(|known| known.kind.parse(text).ok());
    known.unwrap_or_else(|| edit::Scalar::Text(text.to_owned()))
}

fn unwritable(e: settings::Error) -> ControlError {
    let code = match e {
        settings::Error::Invalid { .. } => ErrorCode::Usage,
        _ => ErrorCode::Failed,
    };
    let error = ControlError::new(code, e.to_string());
    if matches!(e, settings::Error::Changed(_)) { error.hint(CHANGED_HINT) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(yaml: &str) -> (tempfile::TempDir, tempfile::TempDir) {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(root.path().join(FILE_NAME), yaml).unwrap();
        (home, root)
    }

    #[test]
    fn a_repository_tightens_a_projects_settings() {
        let (home, root) = world("defaults: {box: {memory: 2g, vnc: false, withEnv: true}}\n");
        let settings = project_settings(home.path(), root.path()).unwrap();
        assert_eq!(settings.boxes.memory, Some(2 << 30));
        assert!(!settings.boxes.vnc && !settings.boxes.with_env);
        std::fs::write(home.path().join("config.yaml"), "box: {memory: 1g}\n").unwrap();
        let settings = project_settings(home.path(), root.path()).unwrap();
        assert_eq!(settings.boxes.memory, Some(1 << 30));
        std::fs::write(root.path().join(FILE_NAME), "defaults: {box: {memory: 2g}").unwrap();
        let settings = project_settings(home.path(), root.path()).unwrap();
        assert_eq!(settings.boxes.memory, Some(1 << 30));
    }

    #[test]
    fn what_has_no_effect_is_told_with_its_place() {
        let text = "defaults:\n  box:\n    memroy: 2g\n    withEnv: true\n    cpMaxBytes: 999999999\n    cpus: many\n";
        let (home, root) = world(text);
        let project = Project::parse(text).project.unwrap();
        let found = defaults_problems(home.path(), root.path(), &project);
        let lines = |all: &[Problem]| {
            all.iter().map(|one| one.line(FILE_NAME)).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            lines(&found.warnings),
            "agentbox.yaml:3:13: defaults.box.memroy: there is no such setting (W010); did you mean box.memory?\n\
             agentbox.yaml:4:14: defaults.box.withEnv: has no effect here: a box can write this file (W011); agentbox config explain box.withEnv"
        );
        assert!(lines(&found.looser).contains("yours is 104857600 (W012)"));
        assert!(lines(&found.errors).contains("agentbox.yaml:6:11: defaults.box.cpus: \"many\""));
    }

    #[test]
    fn services_are_known_by_name() {
        assert!(find_setting("integrations.notion.enabled").is_ok());
        let meant = find_setting("integrations.notoin.enabled").unwrap_err();
        assert_eq!(meant.as_deref(), Some("integrations.notion.enabled"));
        assert!(setting_names(false).contains(&"integrations.github.enabled".to_owned()));
        assert!(!setting_names(false).contains(&"relay.callsPerMinute".to_owned()));
        assert!(setting_names(true).iter().all(|name| find_setting(name).is_ok()));
    }

    #[test]
    fn a_project_without_its_name_is_listed_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let root = Path::new("/srv/shop");
        let dir = project_dir(home.path(), root);
        edit::begin(&dir.join("config.yaml"), "project: /srv/shop").unwrap();
        edit::set(&dir.join("config.yaml"), "gh.checkout", edit::Scalar::Bool(true)).unwrap();
        let other = home.path().join("projects/0123-other");
        // Another project's name in it is not believed.
        edit::begin(&other.join("config.yaml"), "project: /srv/shop").unwrap();
        let all = configured_projects(home.path());
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].root.as_deref(), all[0].keys.len()), (None, 0));
        assert_eq!((all[1].root.as_deref(), all[1].keys.len()), (Some(root), 1));
    }
}
