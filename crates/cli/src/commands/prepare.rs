//! `agentbox prepare`: which box images there are, and one made before the first box needs it.
//!
//! Talks to the engine itself, so that it works before any host runs, for example in a setup
//! script.

mod inventory;

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::progress::Steps;
use boxes::{Boxes, Engine, ImageSpec, Stage, Watcher, host_certificates};
use host::oplog::OpLog;
use protocol::boxes::{Progress, StepState};
use serde::Serialize;
use settings::Settings;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// An image belongs to nobody: its tag says what is in it.
pub const NOBODY: &str = "shared";

/// Show the box images, or build one
///
/// Without a flag nothing is built: it says which images there are, how large and how old they are and
/// what is in them. The first `create` builds the image it needs; doing that now, with --build, makes
/// the first one quick. On a machine that cannot pull the base image, --import-base takes a root file
/// system as a tar archive instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox prepare                          which images there are, and their agents
  agentbox prepare --build                  build the one that new boxes use
  agentbox prepare --force                  once more, with today's agents
  agentbox prepare --import-base base.tar   without a registry; see `make base-image`")]
pub struct Args {
    /// Build the image that new boxes use, if it is not there
    #[arg(long)]
    build: bool,

    /// Build this one: core (a shell), desktop (and a screen), full (and the agents) [default:
    /// box.stage of the settings]
    #[arg(long, value_enum, hide_possible_values = true)]
    stage: Option<Chosen>,

    /// Build it again from nothing, with the newest packages and agents
    #[arg(short, long, visible_alias = "fresh")]
    force: bool,

    /// Build nothing, as without any flag
    #[arg(long, conflicts_with_all = ["build", "stage", "force", "import_base"])]
    status: bool,

    /// Import this tar archive as the base image first, and build; - is standard input
    #[arg(long, value_name = "FILE")]
    import_base: Option<PathBuf>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

impl Args {
    fn builds(&self) -> bool {
        self.build || self.force || self.stage.is_some() || self.import_base.is_some()
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Chosen {
    Core,
    Desktop,
    Full,
}

impl From<Chosen> for Stage {
    fn from(chosen: Chosen) -> Self {
        match chosen {
            Chosen::Core => Stage::Core,
            Chosen::Desktop => Stage::Desktop,
            Chosen::Full => Stage::Full,
        }
    }
}

/// What there is afterwards.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Prepared {
    image: String,
    stage: &'static str,
    engine: String,
    /// The base image, when it was imported now.
    imported: Option<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    // A folder that is no project, or somebody else's, has no settings of its own.
    let root = super::config::root_of(Path::new(".")).unwrap_or_else(|_| ctx.home.clone());
    let settings =
        host::project_settings(&ctx.home, &root).map_err(|e| CommandError::usage(e.to_string()))?;
    if !args.builds() {
        return inventory::run(ctx, &settings, args.json);
    }
    let stage = args.stage.map_or_else(|| host::daemons::stage(&settings), Stage::from);
    let spec = image_spec(&settings, stage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let prepared = {
        let steps = Steps::new(&ctx.ui);
        let log = OpLog::begin(&ctx.home, "prepare", stage.as_str(), watcher(&steps));
        let done = runtime.block_on(async {
            tokio::select! {
                done = prepare(&settings, &spec, &args, log.clone()) => done,
                _ = tokio::signal::ctrl_c() => Err(CommandError::interrupted()),
            }
        });
        log.end(done.as_ref().err().map(|e| e.error.as_str()));
        done
    };
    // A read of standard input that nobody will finish must not keep us here.
    runtime.shutdown_background();
    let prepared = prepared?;
    if args.json {
        json::print(&ctx.ui, "prepared", &prepared)?;
    } else {
        ctx.ui.out(&format!("image   {}\nengine  {}\n", prepared.image, prepared.engine))?;
    }
    Ok(Exit::OK)
}

pub fn image_spec(settings: &Settings, stage: Stage) -> Result<ImageSpec, CommandError> {
    let ctl = host::ctl_binary().ok_or_else(|| {
        CommandError::failed("agentbox-ctl, the program that goes into every box, was not found")
            .hint("build it with `make build`, or set AGENTBOX_CTL to its path")
    })?;
    Ok(ImageSpec::new(stage, ctl, host_certificates(settings.boxes.extra_cas.as_deref())))
}

async fn prepare(
    settings: &Settings,
    spec: &ImageSpec,
    args: &Args,
    watcher: Watcher,
) -> Result<Prepared, CommandError> {
    let engine = Engine::connect(settings.engine.host.as_deref()).await?;
    let about = engine.profile().to_string();
    let imported = match &args.import_base {
        Some(file) => Some(import(&engine, file, &watcher).await?),
        None => None,
    };
    let boxes = Boxes::new(engine, NOBODY);
    let image = if args.force {
        boxes.rebuild_image(spec, watcher).await?
    } else {
        boxes.ensure_image(spec, watcher).await?
    };
    Ok(Prepared { image, stage: spec.stage.as_str(), engine: about, imported })
}

async fn import(engine: &Engine, file: &Path, watcher: &Watcher) -> Result<String, CommandError> {
    let archive = open(file)?;
    let started = Instant::now();
    let tell = |state| {
        watcher.progress(Progress {
            step: "Import the base image".into(),
            state,
            detail: None,
            fraction: None,
            elapsed_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(0),
        });
    };
    tell(StepState::Running);
    let imported = engine.import_base(archive).await;
    tell(if imported.is_ok() { StepState::Done } else { StepState::Failed });
    Ok(imported?)
}

fn open(file: &Path) -> Result<tokio::fs::File, CommandError> {
    let opened = if file == Path::new("-") {
        std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from)
    } else {
        std::fs::File::open(file)
    };
    let archive = opened.map_err(|e| {
        CommandError::usage(format!("cannot read {}: {e}", file.display()))
            .hint("`make base-image` makes one and imports it")
    })?;
    Ok(tokio::fs::File::from_std(archive))
}

fn watcher(steps: &Steps) -> Watcher {
    let events = steps.sender();
    Arc::new(move |progress: Progress| {
        if let Some(events) = &events {
            let _ = events.send(progress);
        }
    })
}
