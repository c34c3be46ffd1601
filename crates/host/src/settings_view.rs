//! Every setting as it is, for people who look at all of them at once.

use crate::api::Api;
use crate::autostart;
use crate::config::{defaults_problems, own_layers, project_layers, read_project_file};
use crate::config::{setting_default, setting_names};
use project::{FILE_NAME, Project};
use protocol::control::{ControlError, ErrorCode};
use protocol::text::visible;
use protocol::window::{SettingFrom, SettingKind, SettingView, SettingsView};
use settings::registry::{self, Holds, Scope};
use settings::{Kind, Layers, Settings, Source};
use std::path::{Path, PathBuf};

impl Api {
    /// For the project around a folder; without one, what holds where no project says otherwise.
    pub async fn settings_view(&self, cwd: Option<&str>) -> Result<SettingsView, ControlError> {
        let home = self.core().home.clone();
        let bad = |e: settings::Error| ControlError::new(ErrorCode::Usage, e.to_string());
        let Some(cwd) = cwd else {
            let layers = own_layers(&home, Path::new("/")).map_err(bad)?;
            return Ok(view(None, &layers, Vec::new()));
        };
        let root = boxes::project::project_root(Path::new(cwd)).await;
        let root = root.map_err(crate::engine::control_error)?;
        let layers = project_layers(&home, &root).map_err(bad)?;
        let problems = problems(&home, &root);
        Ok(view(Some(root), &layers, problems))
    }
}

impl Api {
    /// Does at once what a setting stands for, where that is outside of the host.
    pub fn follow_setting(&self, key: &str) -> Result<(), ControlError> {
        if key != "desktop.launchAtLogin" {
            return Ok(());
        }
        let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
        let settings = Settings::load(&self.core().home).map_err(|e| failed(e.to_string()))?;
        let own = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let app = own.with_file_name("agentbox-desktop");
        if settings.desktop.launch_at_login && !app.is_file() {
            let text = format!("{} is not there, so nothing can start at login", app.display());
            return Err(failed(text));
        }
        autostart::set(settings.desktop.launch_at_login, &app)
            .map(drop)
            .map_err(|e| failed(format!("the setting is kept, but starting at login is not: {e}")))
    }
}

fn view(project: Option<PathBuf>, layers: &Layers, mut problems: Vec<String>) -> SettingsView {
    let unknown = |(file, key): (&Path, &str)| {
        visible(&format!("{}: {key} is no setting, and has no effect", file.display()))
    };
    problems.extend(layers.unknown().map(unknown));
    SettingsView {
        project: project.map(|root| root.to_string_lossy().into_owned()),
        settings: setting_names(true).iter().filter_map(|name| one(name, layers)).collect(),
        problems,
    }
}

fn one(name: &str, layers: &Layers) -> Option<SettingView> {
    let key = registry::find(name)?;
    let (decided, default) = (layers.decided(name), setting_default(name));
    let from = match decided.as_ref().map(|(layer, _)| layer.source) {
        None | Some(Source::CommandLine) => SettingFrom::Default,
        Some(Source::Global) => SettingFrom::Global,
        Some(Source::Project) => SettingFrom::Project,
        Some(Source::Workspace) => SettingFrom::Workspace,
    };
    Some(SettingView {
        key: name.to_owned(),
        about: key.about.to_owned(),
        takes: takes(key.kind),
        value: decided.map(|(_, value)| value).or_else(|| default.clone()),
        default,
        from,
        only_global: key.scope == Scope::Host,
        after_restart: key.holds == Holds::Restart,
        advanced: key.advanced,
        at_terminal: key.at_terminal,
    })
}

fn takes(kind: Kind) -> SettingKind {
    match kind {
        Kind::Bool => SettingKind::Bool,
        Kind::Whole { least, most } => {
            // A page counts exactly up to here.
            let most = (most < (1 << 53)).then_some(most);
            SettingKind::Whole { least, most }
        }
        Kind::Size => SettingKind::Size,
        Kind::Cpus => SettingKind::Cpus,
        Kind::Text => SettingKind::Text,
        Kind::OneOf(words) => {
            SettingKind::OneOf { words: words.iter().map(|word| (*word).to_owned()).collect() }
        }
        Kind::Words => SettingKind::Words,
        Kind::Hours => SettingKind::Hours,
        Kind::Address => SettingKind::Address,
    }
}

/// What is wrong with the project's file, in lines.
fn problems(home: &Path, root: &Path) -> Vec<String> {
    let text = match read_project_file(root) {
        Ok(text) => text.unwrap_or_default(),
        Err(why) => return vec![format!("{FILE_NAME} cannot be read: {why}")],
    };
    let parsed = Project::parse(&text);
    let found = defaults_problems(home, root, &parsed.project.unwrap_or_default());
    let all = parsed.errors.iter().chain(&found.errors).chain(&found.warnings).chain(&found.looser);
    all.map(|problem| visible(&problem.line(FILE_NAME))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_says_who_decided_it() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.yaml"), "box: {memory: 4g}\ncloud: {x: 1}\n")
            .unwrap();
        let layers = own_layers(home.path(), Path::new("/")).unwrap();
        let all = view(None, &layers, Vec::new());
        let of = |key: &str| all.settings.iter().find(|s| s.key == key).unwrap();
        let memory = of("box.memory");
        assert_eq!((memory.value.as_deref(), memory.from), (Some("4g"), SettingFrom::Global));
        let vnc = of("box.vnc");
        assert_eq!((vnc.value.as_deref(), vnc.from), (Some("true"), SettingFrom::Default));
        assert!(of("approvals.promptCommand").at_terminal && !vnc.at_terminal);
        assert!(of("integrations.notion.enabled").takes == SettingKind::Bool);
        assert_eq!(all.problems.len(), 1, "{:?}", all.problems);
    }
}
