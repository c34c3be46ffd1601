//! `agentbox create`: a new box for a folder.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::progress::Steps;
use host::client::Incoming;
use protocol::BoxName;
use protocol::boxes::BoxView;
use protocol::control::{CreateBox, HostEvent, Request};
use protocol::text::visible;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What says that a project runs containers.
const COMPOSE: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/// Create a box for a project
///
/// The box gets a copy of the folder as it is now, changes included, and its own branch. Nothing
/// it does reaches your repository except the commits on that branch. Ctrl-C takes everything back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox create                      a box for the project in this folder
  agentbox create ~/shop -n fix-login  one with a name, for another folder")]
pub struct Args {
    #[command(flatten)]
    options: Options,

    /// Print the box as JSON
    #[arg(long)]
    json: bool,
}

/// What a box is made from, wherever one is made.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The project's folder [default: this one]
    path: Option<PathBuf>,

    /// The box's name [default: the folder's name and the box's id]
    #[arg(short, long)]
    name: Option<String>,

    /// Use this image instead of the built-in one
    #[arg(long, value_name = "REF")]
    image: Option<String>,

    /// Start from this checkpoint of the project, by name or id [default: the project's, if it has
    /// one]
    #[arg(long, value_name = "REF", conflicts_with = "image")]
    snapshot: Option<String>,

    /// No screen, whatever the settings say
    #[arg(long)]
    no_vnc: bool,

    /// Give the box a container engine of its own
    ///
    /// It takes rights that other boxes do not have (to mount file systems and change its own
    /// network, without system call filters). Without the flag box.docker decides.
    #[arg(long, overrides_with = "no_docker")]
    docker: bool,

    /// No container engine in the box, whatever the settings say
    #[arg(long)]
    no_docker: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let view = make(ctx, args.options)?;
    if args.json {
        json::print(&ctx.ui, "box", &view)?;
    } else {
        ctx.ui.say("");
        ctx.ui.out(&render(&view))?;
        ctx.ui.hint(&format!("agentbox shell {}", view.name));
    }
    Ok(Exit::OK)
}

/// Makes a box and shows how it comes along.
pub fn make(ctx: &Context, options: Options) -> Result<BoxView, CommandError> {
    let create = CreateBox {
        name: options.name.as_deref().map(checked_name).transpose()?,
        workspace: workspace(options.path.as_deref())?,
        image: options.image,
        snapshot: options.snapshot,
        vnc: options.no_vnc.then_some(false),
        docker: (options.docker || options.no_docker).then_some(options.docker),
    };
    let compose = undecided_compose(ctx, &create);
    let request = Request::CreateBox(create);
    let interrupt = Interrupt::install()?;
    let client = ctx.client()?;
    let made = {
        let steps = Steps::new(&ctx.ui);
        interrupt.call(&client, &request, |incoming| show_step(&steps, incoming))
    };
    let view = made.map_err(explain)?;
    if let Some(file) = compose {
        ctx.ui.hint(&format!(
            "the project has a {file}, but the box has no container engine: a repository cannot \
             give a box one. You can, with --docker or box.docker: on (off ends this hint)."
        ));
    }
    Ok(view)
}

/// A compose file in the project of somebody who has not said yet whether boxes get an engine.
fn undecided_compose(ctx: &Context, create: &CreateBox) -> Option<&'static str> {
    let settings = settings::Settings::load(&ctx.home).ok()?;
    if create.docker.is_some() || settings.boxes.docker != settings::InnerDocker::Auto {
        return None;
    }
    COMPOSE.into_iter().find(|file| Path::new(&create.workspace).join(file).is_file())
}

/// Checked before anything is started, so that a typing error costs nothing.
pub fn checked_name(name: &str) -> Result<String, CommandError> {
    match name.parse::<BoxName>() {
        Ok(name) => Ok(name.to_string()),
        Err(error) => Err(CommandError::usage(error.to_string())),
    }
}

fn workspace(path: Option<&Path>) -> Result<String, CommandError> {
    let path = path.unwrap_or(Path::new("."));
    let cannot = |why: &str| CommandError::usage(format!("{} {why}", path.display()));
    let found = path.canonicalize().map_err(|e| cannot(&format!("cannot be used: {e}")))?;
    if !found.is_dir() {
        return Err(cannot("is not a folder"));
    }
    found.into_os_string().into_string().map_err(|_| cannot("has a name that is not UTF-8"))
}

pub fn show_step(steps: &Steps, incoming: Incoming) {
    if let Incoming::Event(event) = incoming
        && let HostEvent::Progress { progress } = *event
    {
        steps.show(progress);
    }
}

fn explain(error: CommandError) -> CommandError {
    match error.kind {
        crate::error::Kind::Interrupted => CommandError {
            error: "interrupted: the host takes back what was made so far".into(),
            ..error
        },
        _ => error,
    }
}

fn render(view: &BoxView) -> String {
    let mut text = format!("name    {}\nid      {}\n", view.name, view.id);
    if let Some(branch) = &view.branch {
        let _ = writeln!(text, "branch  {}", visible(branch));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn boxes_16_02_a_bad_name_is_a_usage_error() {
        for bad in ["3", "My Box", "claude-dash", ""] {
            assert_eq!(checked_name(bad).unwrap_err().kind, crate::error::Kind::Usage);
        }
        assert_eq!(checked_name("fix-login").unwrap(), "fix-login");
    }

    #[test]
    fn a_folder_is_made_absolute_and_must_be_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(workspace(Some(dir.path())).unwrap().starts_with('/'));
        assert_eq!(workspace(Some(&file)).unwrap_err().kind, crate::error::Kind::Usage);
        assert_eq!(
            workspace(Some(&dir.path().join("no"))).unwrap_err().kind,
            crate::error::Kind::Usage
        );
    }

    #[test]
    fn what_was_made() {
        let boxes = samples::boxes();
        insta::assert_snapshot!(format!("{}\n{}", render(&boxes[0]), render(&boxes[3])));
    }
}
