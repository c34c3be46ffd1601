//! What the files come to where the person is.

use crate::context::{Context, current_dir};
use crate::error::CommandError;
use host::{defaults_problems, setting_default, setting_names};
use project::{FILE_NAME, Project};
use protocol::text::visible;
use serde::Serialize;
use settings::Layers;
use settings::registry::{Holds, Key, Scope, Workspace};
use std::path::{Path, PathBuf};

/// A person in a project.
pub struct Place {
    home: PathBuf,
    pub root: PathBuf,
    pub layers: Layers,
    /// What of the project's `defaults:` has no effect, and why, by its path in the file.
    left: Vec<(String, String)>,
    /// The project's file may loosen, too.
    trusted: bool,
}

impl Place {
    /// Says what is wrong with the project's file: what it tightens has no effect then.
    pub fn here(ctx: &Context) -> Result<Self, CommandError> {
        let root = root()?;
        let mut layers = host::project_layers(&ctx.home, &root).map_err(|e| {
            let text = e.to_string();
            let is_global = text.contains(&ctx.home.join("config.yaml").display().to_string());
            let hint = if is_global {
                "agentbox config edit --global"
            } else {
                "agentbox config edit opens your file for this project"
            };
            CommandError::usage(text).hint(hint)
        })?;
        for (file, key) in layers.unknown() {
            let text = format!("{}: {key} is no setting, and has no effect", file.display());
            ctx.ui.warn(&visible(&text));
        }
        layers.say(&ctx.said);
        let text = host::read_project_file(&root).unwrap_or_else(|why| {
            ctx.ui.warn(&format!("{FILE_NAME} cannot be read: {why}"));
            None
        });
        let parsed = Project::parse(&text.unwrap_or_default());
        for error in &parsed.errors {
            ctx.ui.warn(&visible(&error.line(FILE_NAME)));
        }
        if !parsed.errors.is_empty() {
            ctx.ui.warn(&format!("{FILE_NAME} cannot be read, so its defaults have no effect"));
        }
        let found = defaults_problems(&ctx.home, &root, &parsed.project.unwrap_or_default());
        for problem in found.errors.iter().chain(&found.warnings) {
            ctx.ui.warn(&visible(&problem.line(FILE_NAME)));
        }
        let trust = host::trust_of(&ctx.home, &root).ok().flatten();
        if trust.as_ref().is_some_and(|trust| trust.ended) {
            ctx.ui.warn(&format!(
                "{FILE_NAME} has changed since you trusted it, and only tightens now; agentbox config \
                 trust-workspace shows what it asks for, --revoke forgets the old text"
            ));
        }
        let all = found.errors.into_iter().chain(found.warnings).chain(found.looser);
        let left = all.map(|problem| (problem.path, problem.message)).collect();
        let trusted = trust.is_some_and(|trust| trust.trusted);
        Ok(Self { home: ctx.home.clone(), root, layers, left, trusted })
    }

    /// Where the files are, without a look into them.
    pub fn files(ctx: &Context) -> Result<Self, CommandError> {
        let (home, root) = (ctx.home.clone(), root()?);
        Ok(Self { home, root, layers: Layers::default(), left: Vec::new(), trusted: false })
    }

    pub fn global(&self) -> PathBuf {
        self.home.join("config.yaml")
    }

    pub fn project(&self) -> PathBuf {
        host::project_dir(&self.home, &self.root).join("config.yaml")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.join(FILE_NAME)
    }

    /// Every setting, or those one kind of file gives.
    pub fn views(&self, of: Option<&str>, advanced: bool) -> Vec<View> {
        let Some(of) = of else {
            let names = setting_names(advanced);
            return names.iter().map(|key| View::of(self, key, false)).collect();
        };
        let layers = self.layers.all().iter().filter(|layer| layer.source.as_str() == of);
        let each = layers.flat_map(|layer| {
            layer.keys().into_iter().map(|key| View {
                value: layer.value(&key),
                from: layer.source.as_str(),
                file: Some(layer.path.clone()),
                about: settings::registry::find(&key).map_or("", |known| known.about),
                layers: None,
                key,
            })
        });
        each.collect()
    }

    pub fn explained(&self, key: &str, about: &'static Key) -> Explained {
        Explained {
            setting: View::of(self, key, true),
            takes: about.kind.what(),
            default: setting_default(key),
            file: if about.scope == Scope::Host { "global" } else { "project" },
            workspace: match about.workspace {
                _ if self.trusted && about.scope == Scope::Project => "trusted",
                Workspace::Never => "never",
                Workspace::Tighter { .. } => "tighter",
                Workspace::Free => "free",
            },
            command_line: about.by_command,
            holds: if about.holds == Holds::Now { "now" } else { "restart" },
            left: self
                .left
                .iter()
                .find(|(path, _)| *path == format!("defaults.{key}"))
                .map(|(_, why)| why.clone()),
        }
    }
}

fn root() -> Result<PathBuf, CommandError> {
    root_of(&current_dir().ok_or_else(|| CommandError::usage("this folder is not there"))?)
}

/// The project a folder belongs to.
pub fn root_of(folder: &Path) -> Result<PathBuf, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(boxes::project::project_root(folder))?)
}

/// One setting as it is.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub key: String,
    /// As it could be typed; none when nothing is set and there is no default.
    pub value: Option<String>,
    pub from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    #[serde(skip)]
    pub about: &'static str,
    /// What each file says, the deciding one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Said>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Said {
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    value: String,
}

/// A command line is none.
#[allow(clippy::ptr_arg, reason = "what `filter` hands over")]
fn is_file(path: &PathBuf) -> bool {
    !path.as_os_str().is_empty()
}

impl View {
    pub fn of(place: &Place, key: &str, all: bool) -> Self {
        let decided = place.layers.decided(key);
        let said = || {
            let layers = place.layers.all().iter().rev();
            let said = layers.filter_map(|layer| {
                let value = layer.value(key)?;
                let file = Some(layer.path.clone()).filter(is_file);
                Some(Said { from: layer.source.as_str(), file, value })
            });
            said.collect()
        };
        Self {
            key: key.to_owned(),
            from: decided.as_ref().map_or("default", |(layer, _)| layer.source.as_str()),
            file: decided.as_ref().map(|(layer, _)| layer.path.clone()).filter(is_file),
            value: decided.map(|(_, value)| value).or_else(|| setting_default(key)),
            about: settings::registry::find(key).map_or("", |known| known.about),
            layers: all.then(said),
        }
    }

    pub fn shown(&self) -> &str {
        self.value.as_deref().unwrap_or("<unset>")
    }

    pub fn lines(&self) -> String {
        let mut text =
            format!("{} = {}   (from: {})\n", self.key, visible(self.shown()), self.from);
        for said in self.layers.iter().flatten() {
            text.push_str(&said.line());
        }
        text
    }
}

impl Said {
    fn line(&self) -> String {
        format!(
            "  {:<10} {}   {}\n",
            self.from,
            visible(&self.value),
            self.file.as_ref().map_or_else(String::new, |f| visible(&f.to_string_lossy()))
        )
    }
}

/// One setting with what it is for.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    #[serde(flatten)]
    setting: View,
    takes: String,
    default: Option<String>,
    /// `global`: only there; `project`: also for one project.
    file: &'static str,
    /// What a project's agentbox.yaml may say: `never`, `tighter` or `free`; `trusted` is anything,
    /// because you trust it as it is.
    workspace: &'static str,
    holds: &'static str,
    /// `--set` says it for one call.
    command_line: bool,
    /// Why what the project's agentbox.yaml says has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

impl Explained {
    pub fn text(&self) -> String {
        let default = self.default.as_deref().unwrap_or("nothing");
        let file = match self.file {
            "global" => "your global file alone",
            _ => "your global file, or yours for a project",
        };
        let workspace = match self.workspace {
            "never" => "may not set it",
            "tighter" => "may set it to what allows less than yours",
            "trusted" => "may set it: you trust the file as it is",
            _ => "may set it",
        };
        let holds = match self.holds {
            "now" => "from the next call, box or session on",
            _ => "when AgentBox starts",
        };
        let mut text = self.setting.lines();
        text.push_str(&format!(
            "\n{}\n\nvalue          {}\ndefault        {default}\nset in         {file}\nagentbox.yaml  {workspace}\nholds          {holds}\n",
            self.setting.about, self.takes
        ));
        if self.command_line {
            text.push_str(&format!("for one call   --set {}=VALUE\n", self.setting.key));
        }
        if let Some(why) = &self.left {
            text.push_str(&format!("\nagentbox.yaml here: {}\n", visible(why)));
        }
        text
    }
}
