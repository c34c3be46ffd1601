//! What every command needs: the home, a way to talk, and a host to ask.

use crate::error::CommandError;
use crate::launch;
use crate::ui::Ui;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::links::EngineKind;
use protocol::text::visible;
use settings::edit::Scalar;
use settings::{Layers, Settings, registry};
use std::path::{Path, PathBuf};

pub struct Context {
    pub home: PathBuf,
    pub ui: Ui,
    /// Settings that the command line gives.
    pub said: Vec<(&'static str, Scalar)>,
}

impl Context {
    pub fn new(home: Option<PathBuf>, set: &[String], ui: Ui) -> Result<Self, CommandError> {
        let said = set.iter().map(|pair| said(pair)).collect::<Result<_, _>>()?;
        let home = home.or_else(host::home::default_home).ok_or_else(|| {
            CommandError::usage("there is no home folder to keep AgentBox's state in")
                .hint("name one with --home or AGENTBOX_HOME")
        })?;
        // The host is another process with another working directory.
        Ok(Self { home: std::path::absolute(home)?, ui, said })
    }

    /// The settings of a project, under what the command line says.
    pub fn settings_of(&self, root: &Path) -> Result<Settings, CommandError> {
        let mistake = |e: settings::Error| CommandError::usage(e.to_string());
        let mut layers = host::project_layers(&self.home, root).map_err(mistake)?;
        layers.say(&self.said);
        layers.settings().map_err(mistake)
    }

    /// What the command line takes the engine for; the host knows what files say.
    pub fn engine_kind(&self) -> Option<EngineKind> {
        let mut layers = Layers::default();
        layers.say(&self.said);
        layers.decided("engine.kind")?;
        layers.settings().ok().map(|settings| settings.engine.kind)
    }

    /// The same for the project of a box; the person's own where no box is meant by the words.
    pub fn settings_of_box(&self, client: &Client, of: Target) -> Result<Settings, CommandError> {
        let found: Result<BoxView, _> = client.call(&Request::FindBox { target: of });
        self.settings_of(
            found.as_ref().map_or(Path::new("/"), |view| Path::new(&view.project_root)),
        )
    }

    /// The host as it is; a call fails when none runs.
    pub fn client_if_running(&self) -> Client {
        Client::new(&self.home)
    }

    /// A host that answers, started when none runs.
    pub fn client(&self) -> Result<Client, CommandError> {
        let client = self.client_if_running();
        if !launch::is_running(&self.home) {
            launch::start(&self.home, &client, &self.ui)?;
        }
        Ok(client)
    }
}

/// `KEY=VALUE`, of a setting that the command itself reads.
fn said(pair: &str) -> Result<(&'static str, Scalar), CommandError> {
    let wrong = |text: String| CommandError::usage(visible(&text));
    let (name, value) =
        pair.split_once('=').ok_or_else(|| wrong(format!("--set {pair}: it is KEY=VALUE")))?;
    let key = registry::find(name).ok_or_else(|| {
        let error = wrong(format!("there is no setting {name}"));
        match registry::meant(name) {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error.hint("agentbox config list --include-advanced shows all of them"),
        }
    })?;
    if !key.by_command {
        return Err(wrong(format!("{name} cannot be set for one call"))
            .hint(format!("agentbox config set {name} VALUE, or a flag of the command")));
    }
    let value = key.kind.parse(value).map_err(|why| wrong(format!("{name}: {why}")))?;
    Ok((key.name, value))
}

/// The box a person named, seen from where they are.
pub fn target(query: Option<String>) -> Target {
    Target { query, cwd: current_dir().map(|d| d.to_string_lossy().into_owned()) }
}

/// Where the person is, with symbolic links resolved as the host resolves a project's folder.
pub fn current_dir() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    Some(here.canonicalize().unwrap_or(here))
}

/// The folder that holds this program, where its companions lie.
pub fn own_folder() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_says_what_commands_read() {
        let (key, value) = said("attach.openIn=tab").unwrap();
        assert_eq!((key, value), ("attach.openIn", Scalar::Text("tab".into())));
        for bad in ["attach.openIn", "attach.openIn=nowhere", "atach.openIn=tab", "box.memory=4g"] {
            assert!(said(bad).is_err(), "{bad}");
        }
        let why = said("approvals.mode=safe").unwrap_err();
        assert!(why.error.contains("cannot be set for one call"), "{}", why.error);
    }
}
