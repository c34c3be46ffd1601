//! `agentbox config`: every setting, who decided it, and changes to it.
//!
//! Looking needs no host: the files are the person's own. Changes go through the host, which writes
//! one at a time and keeps a record.

mod edit;
mod trust;
mod view;

use crate::context::{Context, current_dir};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use clap::{Subcommand, ValueEnum};
use host::find_setting;
use protocol::control::Request;
use protocol::integrations::Layer;
use protocol::text::visible;
use settings::registry::{Holds, Key, Scope};
use std::path::PathBuf;
pub use view::root_of;
use view::{Place, View};

/// Show and change settings
///
/// A setting comes from the built-in default, your global file, your file for a project, or the
/// project's agentbox.yaml, which can only tighten unless you trust it as it is. What a command line says
/// wins over all of them.
/// Exits with 2 when there is no such setting, a value does not fit it or a file has a mistake.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox config list                      the settings, and who decided them
  agentbox config explain box.memory        what it is for, and what each file says
  agentbox config set box.memory 4g         for boxes of the project in this folder
  agentbox config set box.memory 4g --global
  agentbox config unset box.memory
  agentbox config trust-workspace           what agentbox.yaml asks for, then a question")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what a setting is, and who decided it
    Get {
        /// Its name, such as box.memory
        key: String,
        /// Also what every other file says
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Change a setting
    ///
    /// In your file for the project in this folder where it can be set for one project, else in the
    /// global file.
    Set {
        /// Its name, such as box.memory
        key: String,
        /// The new value; a list is [a, b]
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        file: Which,
        /// Print what it is now as JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Take a setting out of a file, so that the ones below decide
    Unset {
        /// Its name, such as box.memory
        key: String,
        #[command(flatten)]
        file: Which,
        /// Print what it is now as JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Show settings and who decided them; --include-advanced shows every one
    List {
        /// What all files come to, or what one of them says
        #[arg(long, value_enum, default_value = "effective")]
        scope: Of,
        /// Also what few people ever need
        #[arg(long)]
        include_advanced: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Show what a setting is for, what it may be, and what each file says
    Explain {
        /// Its name, such as box.memory
        key: String,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Show where the files are
    Path {
        /// Only the global file
        #[arg(long)]
        global: bool,
        /// Only your file for the project in this folder
        #[arg(long, conflicts_with = "global")]
        project: bool,
        /// Only the project's agentbox.yaml
        #[arg(long, conflicts_with_all = ["global", "project"])]
        workspace: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Open a file in your editor; it is checked before it counts
    ///
    /// EDITOR or VISUAL names the editor; vi without them.
    Edit {
        /// The global file
        #[arg(long)]
        global: bool,
        /// Your file for the project in this folder [default]
        #[arg(long, conflicts_with = "global")]
        project: bool,
        /// The project's agentbox.yaml, in place; its mistakes are shown afterwards
        #[arg(long, conflicts_with_all = ["global", "project"])]
        workspace: bool,
    },
    /// Show the projects that have settings of their own
    ListProjects {
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Let the project's agentbox.yaml, as it is now, set what it could not: it is shown, then asked
    ///
    /// A box can write that file, so it can only tighten. Your yes lets this one text of it loosen what
    /// is shown, for this project; any change of the file ends that. How the host itself works it never
    /// decides. Exits with 2 when nobody can be asked and no digest is given.
    TrustWorkspace {
        /// Take the yes back
        #[arg(long, conflicts_with = "digest")]
        revoke: bool,
        /// Do not ask: this is the digest of the file that was looked at
        #[arg(long, value_name = "SHA256")]
        digest: Option<String>,
        /// Print what it asks for as JSON; without --digest and --revoke nothing is changed
        #[arg(short, long)]
        json: bool,
    },
    /// Print the JSON Schema of the settings files, for editors
    Schema,
}

/// Which file is changed.
#[derive(Debug, clap::Args)]
struct Which {
    /// In the global file, for every project
    #[arg(long)]
    global: bool,

    /// In your file for the project in this folder
    #[arg(long, conflicts_with = "global")]
    project: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    Effective,
    Global,
    Project,
    Workspace,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Get { key, all, json } => get(ctx, &key, all, json),
        Action::Set { key, value, file, json } => change(ctx, &key, Some(value), &file, json),
        Action::Unset { key, file, json } => change(ctx, &key, None, &file, json),
        Action::List { scope, include_advanced, json } => list(ctx, scope, include_advanced, json),
        Action::Explain { key, json } => explain(ctx, &key, json),
        Action::Path { global, project, workspace, json } => {
            path(ctx, [global, project, workspace], json)
        }
        Action::Edit { global, workspace, .. } => edit::run(ctx, global, workspace),
        Action::ListProjects { json } => list_projects(ctx, json),
        Action::TrustWorkspace { revoke, digest, json } => trust::run(ctx, revoke, digest, json),
        Action::Schema => {
            let text = serde_json::to_string_pretty(&settings::schema());
            ctx.ui.out(&(text.map_err(|e| CommandError::failed(e.to_string()))? + "\n"))?;
            Ok(Exit::OK)
        }
    }
}

fn known(key: &str) -> Result<&'static Key, CommandError> {
    find_setting(key).map_err(|meant| {
        let error = CommandError::usage(format!("there is no setting {}", visible(key)));
        match meant {
            Some(meant) => error.hint(format!("did you mean {meant}?")),
            None => error.hint("agentbox config list --include-advanced shows all of them"),
        }
    })
}

fn get(ctx: &Context, key: &str, all: bool, as_json: bool) -> Outcome {
    known(key)?;
    let place = Place::here(ctx)?;
    let view = View::of(&place, key, all);
    if as_json {
        json::print(&ctx.ui, "setting", &view)?;
    } else {
        ctx.ui.out(&view.lines())?;
    }
    Ok(Exit::OK)
}

fn change(ctx: &Context, key: &str, value: Option<String>, file: &Which, as_json: bool) -> Outcome {
    let about = known(key)?;
    if let Some(value) = &value {
        let bad = |why: String| CommandError::usage(format!("{key}: {}", visible(&why)));
        about.kind.parse(value).map_err(bad)?;
    }
    let layer = match about.scope {
        _ if file.global => Layer::Global,
        Scope::Host if file.project => {
            let text = format!("{key} cannot be set for one project");
            return Err(CommandError::usage(text).hint("set it with --global"));
        }
        Scope::Host => Layer::Global,
        Scope::Project => Layer::Project,
    };
    let cwd = current_dir().map(|here| here.to_string_lossy().into_owned());
    let request = Request::SetSetting { key: key.to_owned(), value: value.clone(), layer, cwd };
    ctx.client()?.call::<()>(&request)?;
    let place = Place::here(ctx)?;
    let view = View::of(&place, key, false);
    if as_json {
        json::print(&ctx.ui, "setting", &view)?;
    } else {
        ctx.ui.out(&view.lines())?;
    }
    if about.holds == Holds::Restart {
        ctx.ui.hint("it holds when AgentBox starts the next time; agentbox quit ends it");
    }
    let written = match layer {
        Layer::Global => "global",
        Layer::Project => "project",
    };
    if value.is_some() && view.from != written {
        ctx.ui.hint(&format!("{} decides it here; agentbox config explain {key}", view.from));
    }
    let own = match view.from {
        "default" => None,
        "workspace" => Some("agentbox.yaml still sets it".to_owned()),
        from => {
            let flag = if from == "global" { " --global" } else { "" };
            Some(format!("your {from} file still sets it; agentbox config unset {key}{flag}"))
        }
    };
    if let Some(still) = own.filter(|_| value.is_none()) {
        ctx.ui.hint(&still);
    }
    Ok(Exit::OK)
}

fn list(ctx: &Context, scope: Of, advanced: bool, as_json: bool) -> Outcome {
    let place = Place::here(ctx)?;
    let all = place.views(
        match scope {
            Of::Effective => None,
            Of::Global => Some("global"),
            Of::Project => Some("project"),
            Of::Workspace => Some("workspace"),
        },
        advanced,
    );
    if as_json {
        json::print(&ctx.ui, "settings", &all)?;
        return Ok(Exit::OK);
    }
    if all.is_empty() {
        ctx.ui.say("it says nothing");
        return Ok(Exit::OK);
    }
    let row = |view: &View| {
        vec![view.key.clone(), visible(view.shown()), view.from.to_owned(), view.about.to_owned()]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    ctx.ui.out(&table::render(ctx.ui.out, &["SETTING", "VALUE", "FROM", "WHAT FOR"], &rows))?;
    Ok(Exit::OK)
}

fn explain(ctx: &Context, key: &str, as_json: bool) -> Outcome {
    let about = known(key)?;
    let place = Place::here(ctx)?;
    let told = place.explained(key, about);
    if as_json {
        json::print(&ctx.ui, "setting", &told)?;
    } else {
        ctx.ui.out(&told.text())?;
    }
    Ok(Exit::OK)
}

fn path(ctx: &Context, [global, project, workspace]: [bool; 3], as_json: bool) -> Outcome {
    let place = Place::files(ctx)?;
    let files = [
        ("global", place.global(), global),
        ("project", place.project(), project),
        ("workspace", place.workspace(), workspace),
    ];
    let one = files.iter().find(|(_, _, wanted)| *wanted);
    if as_json {
        let all: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .filter(|(name, ..)| one.is_none_or(|(wanted, ..)| wanted == name))
            .map(|(name, path, _)| ((*name).to_owned(), path.display().to_string().into()))
            .collect();
        json::print(&ctx.ui, "paths", &all)?;
    } else if let Some((_, path, _)) = one {
        ctx.ui.out(&format!("{}\n", path.display()))?;
    } else {
        let row = |(name, path, _): &(&str, PathBuf, bool)| {
            let there = if path.is_file() { "" } else { "not there" };
            vec![(*name).to_owned(), path.display().to_string(), there.to_owned()]
        };
        let rows: Vec<_> = files.iter().map(row).collect();
        ctx.ui.out(&table::render(ctx.ui.out, &["FILE", "PATH", ""], &rows))?;
    }
    Ok(Exit::OK)
}

fn list_projects(ctx: &Context, as_json: bool) -> Outcome {
    let all = host::configured_projects(&ctx.home);
    if as_json {
        json::print(&ctx.ui, "projects", &all)?;
        return Ok(Exit::OK);
    }
    if all.is_empty() {
        ctx.ui.say("no project has settings of its own");
        return Ok(Exit::OK);
    }
    let row = |one: &host::ConfiguredProject| {
        let root = one.root.as_ref().map_or("?".to_owned(), |root| root.display().to_string());
        vec![visible(&root), one.keys.join(", "), one.file.display().to_string()]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    ctx.ui.out(&table::render(ctx.ui.out, &["PROJECT", "SETTINGS", "FILE"], &rows))?;
    Ok(Exit::OK)
}
