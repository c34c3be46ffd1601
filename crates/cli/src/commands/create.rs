//! `agentbox create`: a new box for a folder.

use super::limits::{LimitArgs, size};
use crate::carry;
use crate::commands::{egress, shell};
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::json;
use crate::place::Where;
use crate::progress::Steps;
use crate::size::bytes;
use crate::terminal;
use host::client::Incoming;
use protocol::boxes::Created;
use protocol::control::{CreateBox, HostEvent, Request};
use protocol::egress::EgressMode;
use protocol::sessions::Agent;
use protocol::text::visible;
use protocol::{BoxName, Limits};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What says that a project runs containers.
const COMPOSE: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// Files that are named one by one.
const SHOWN: usize = 20;

/// Create a box for a project
///
/// The box gets a copy of the folder as it is now, changes included, and its own branch. Nothing
/// it does reaches your repository except the commits on that branch. Ctrl-C takes everything back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox create                      a box for the project in this folder
  agentbox create ~/shop -n fix-login  one with a name, for another folder
  agentbox create --from-branch main   start from main, with your uncommitted changes
  agentbox create -b fix/login         work on an existing branch
  agentbox create --egress locked      without a network, but for what you allow
  agentbox create --attach             and a shell in it at once")]
pub struct Args {
    #[command(flatten)]
    options: Options,

    /// Open a shell in it when it is there
    #[arg(long)]
    attach: bool,

    #[command(flatten)]
    place: Where,

    /// Print the box as JSON
    #[arg(short, long, conflicts_with_all = ["attach", "attach_in", "inline"])]
    json: bool,
}

/// What a box is made from, wherever one is made.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// The project's folder [default: this one]
    path: Option<PathBuf>,

    /// The same, as a flag
    #[arg(short = 'C', long, value_name = "PATH", conflicts_with = "path")]
    workspace: Option<PathBuf>,

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

    /// Give the box a container engine of its own; such a box is near root on this computer
    ///
    /// It takes rights that other boxes do not have: to mount file systems and to change its network,
    /// without system call filters. An agent that means harm can get from there to this computer. Use
    /// it only for projects you would run as root. Without the flag box.docker decides.
    #[arg(long, overrides_with = "no_docker")]
    docker: bool,

    /// No container engine in the box, whatever the settings say
    #[arg(long)]
    no_docker: bool,

    /// How the box gets out to the network [default: what egress.mode says]
    ///
    /// open: a network of its own. The others have no network, and everything passes through the host:
    /// observe lets all of it pass and records it, balanced asks you about what no rule allows, locked
    /// refuses it. `agentbox egress mode` changes it later.
    #[arg(long, value_name = "MODE", value_parser = egress::modes())]
    egress: Option<EgressMode>,

    /// Give the box names at Portless when its proxy runs, whatever the settings say
    #[arg(long, overrides_with = "no_portless")]
    portless: bool,

    /// No names at Portless, whatever the settings say
    #[arg(long)]
    no_portless: bool,

    /// Leave Claude in this box without your own settings of it, now and later
    #[arg(long)]
    isolate_claude_config: bool,

    /// Leave Codex in this box without your own settings of it, now and later
    #[arg(long)]
    isolate_codex_config: bool,

    /// Leave OpenCode in this box without your own settings of it, now and later
    #[arg(long)]
    isolate_opencode_config: bool,

    /// Start from this branch, tag or commit; uncommitted changes come along where they fit
    #[arg(long, value_name = "REF", conflicts_with = "use_branch")]
    from_branch: Option<String>,

    /// Work on this existing branch, without uncommitted changes
    #[arg(short = 'b', long, value_name = "BRANCH")]
    use_branch: Option<String>,

    /// Take settings along that git ignores, such as .env
    #[arg(long)]
    with_env: bool,

    #[command(flatten)]
    limits: LimitArgs,

    /// Disk the box may use, such as 20g, where the engine's storage can limit it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    disk: Option<u64>,

    /// Keep what was made when making the box fails
    #[arg(long)]
    keep_on_failure: bool,

    #[command(flatten)]
    carry: carry::Flags,

    /// Say everything that is done on the way, such as the output of a build
    #[arg(short, long)]
    verbose: bool,

    /// Take the usual answer to every question; files of this computer are still asked about
    #[arg(short, long)]
    yes: bool,
}

impl Options {
    /// A box of that name for a folder, all else as usual.
    pub fn named(path: Option<PathBuf>, name: String, carry: carry::Flags) -> Self {
        Self { path, name: Some(name), carry, ..Self::default() }
    }

    fn isolated(&self) -> Vec<Agent> {
        let each = [
            (self.isolate_claude_config, Agent::Claude),
            (self.isolate_codex_config, Agent::Codex),
            (self.isolate_opencode_config, Agent::Opencode),
        ];
        each.into_iter().filter(|(wanted, _)| *wanted).map(|(_, agent)| agent).collect()
    }

    /// The folder it is made for, absolute.
    pub fn folder(&self) -> Result<String, CommandError> {
        workspace(self.path.as_deref().or(self.workspace.as_deref()))
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let place = args.place.elsewhere(ctx)?;
    let attach = args.attach || args.place.is_given();
    if attach && place.is_none() && !terminal::both_ends() {
        return Err(CommandError::usage("--attach needs a terminal to show the shell on")
            .hint("leave it away and run: agentbox shell BOX -- COMMAND"));
    }
    let made = make(ctx, args.options)?;
    if args.json {
        json::print(&ctx.ui, "box", &made)?;
    } else {
        ctx.ui.say("");
        ctx.ui.out(&render(&made))?;
        if attach {
            let which = Some(made.view.id.to_string());
            return shell::session(
                ctx,
                &ctx.client()?,
                which,
                &shell::Kind::default(),
                place.as_ref(),
            );
        }
        ctx.ui.hint(&format!("agentbox shell {}", made.view.name));
    }
    Ok(Exit::OK)
}

/// Makes a box and shows how it comes along.
pub fn make(ctx: &Context, options: Options) -> Result<Created, CommandError> {
    let verbose = options.verbose;
    let create = request(ctx, options)?;
    let compose = undecided_compose(ctx, &create);
    let request = Request::CreateBox(create);
    let interrupt = Interrupt::install()?;
    let client = ctx.client()?;
    let made = {
        let steps = if verbose { Steps::verbose(&ctx.ui) } else { Steps::new(&ctx.ui) };
        interrupt.call::<Created>(&client, &request, |incoming| show_step(&steps, incoming))
    }
    .map_err(explain)?;
    for warning in warnings(&made) {
        ctx.ui.say(&warning);
    }
    if let Some(file) = compose {
        ctx.ui.hint(&format!(
            "the project has a {file}, but the box has no container engine: a repository cannot \
             give a box one. You can, with --docker or box.docker: on (off ends this hint)."
        ));
    }
    Ok(made)
}

/// What the host is asked for, checked and agreed to as far as can be done here.
pub fn request(ctx: &Context, options: Options) -> Result<CreateBox, CommandError> {
    let isolate = options.isolated();
    let create = CreateBox {
        name: options.name.as_deref().map(checked_name).transpose()?,
        workspace: options.folder()?,
        image: options.image,
        snapshot: options.snapshot,
        vnc: options.no_vnc.then_some(false),
        docker: (options.docker || options.no_docker).then_some(options.docker),
        from_branch: options.from_branch,
        use_branch: options.use_branch,
        with_env: options.with_env.then_some(true),
        limits: Limits { disk_bytes: options.disk, ..options.limits.limits() },
        keep_on_failure: options.keep_on_failure,
        goes_on: false,
        carry: None,
        carry_best_effort: options.carry.carry_best_effort,
        portless: (options.portless || options.no_portless).then_some(options.portless),
        isolate,
        egress: options.egress,
    };
    // There is nothing else to ask about yet.
    let _ = options.yes;
    let carry = options.carry.decide(ctx, &create.workspace)?;
    Ok(CreateBox { carry, ..create })
}

/// A compose file in the project of somebody who has not said yet whether boxes get an engine.
fn undecided_compose(ctx: &Context, create: &CreateBox) -> Option<&'static str> {
    let root = super::config::root_of(Path::new(&create.workspace)).ok()?;
    let settings = host::project_settings(&ctx.home, &root).ok()?;
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

/// What a person should know of a box that was made all the same.
fn warnings(made: &Created) -> Vec<String> {
    let mut lines: Vec<String> =
        made.warnings.iter().map(|w| format!("warning: {}", visible(w))).collect();
    if !made.skipped.is_empty() {
        lines.push("warning: these uncommitted files did not fit and stayed behind:".to_owned());
        let shown = made.skipped.iter().take(SHOWN).map(|path| format!("  {}", visible(path)));
        lines.extend(shown);
        if made.skipped.len() > SHOWN {
            lines.push(format!("  and {} more", made.skipped.len() - SHOWN));
        }
        let id = &made.view.id;
        lines.push(format!(
            "hint: your changes as they were: git show refs/agentbox/{id}/carryover"
        ));
    }
    lines
}

fn render(made: &Created) -> String {
    let view = &made.view;
    let mut text = format!("name    {}\nid      {}\n", view.name, view.id);
    if let Some(branch) = &view.branch {
        let _ = writeln!(text, "branch  {}", visible(branch));
    }
    if view.egress.is_controlled() {
        let _ = writeln!(text, "egress  {}", view.egress.as_str());
    }
    for (path, branch) in &made.nested {
        let _ = writeln!(text, "branch  {} in {}", visible(branch), visible(path));
    }
    if !made.with_env.is_empty() {
        let names: Vec<String> = made.with_env.iter().map(|name| visible(name)).collect();
        let _ = writeln!(text, "with    {}", names.join(", "));
    }
    for file in made.carried.iter().filter(|file| file.failed.is_none()) {
        let _ = writeln!(text, "copied  {}, {}", visible(&file.dest), bytes(file.bytes));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use protocol::boxes::BoxView;

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

    fn made(view: BoxView) -> Created {
        let none = Vec::new;
        let (nested, carried) = (vec![], vec![]);
        Created { view, nested, skipped: none(), with_env: none(), carried, warnings: none() }
    }

    #[test]
    fn what_was_made() {
        let boxes = samples::boxes();
        let text = [render(&made(boxes[0].clone())), render(&made(boxes[3].clone()))];
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn boxes_16_13_what_stayed_behind_is_listed() {
        let view = samples::boxes()[0].clone();
        let created = Created {
            nested: vec![("api".into(), "agentbox/fix--api".into())],
            skipped: (0..25).map(|n| format!("src/{n}\x1b.rs")).collect(),
            with_env: vec![".env".into(), "api/.env.local".into()],
            carried: vec![protocol::carry::Carried {
                src: "/home/ada/.npmrc".into(),
                dest: "/home/vscode/.npmrc".into(),
                bytes: 1024,
                hash: "00".into(),
                by: protocol::carry::CarryBy::Prompt,
                approved_at: None,
                kind: protocol::carry::CarryKind::File,
                mode: None,
                user: None,
                terms: None,
                warnings: vec![],
                failed: None,
                unfilled: vec![],
            }],
            warnings: vec!["the disk limit is not set".into()],
            ..made(view)
        };
        insta::assert_snapshot!(format!(
            "{}\n\n{}",
            warnings(&created).join("\n"),
            render(&created)
        ));
    }

    #[test]
    fn boxes_16_12_two_branches_are_one_too_many() {
        #[derive(clap::Parser)]
        struct Create {
            #[command(flatten)]
            _args: Args,
        }
        let parse = |args: &[&str]| {
            let words = std::iter::once("create").chain(args.iter().copied());
            <Create as clap::Parser>::try_parse_from(words).map(drop)
        };
        assert!(parse(&["--use-branch", "a", "--from-branch", "b"]).is_err());
        assert!(
            parse(&["-b", "a", "--memory", "4g", "--cpus", "1.5", "--pids-limit", "9"]).is_ok()
        );
        for bad in [["--memory", "lots"], ["--cpus", "-1"], ["--pids-limit", "x"], ["--disk", "1x"]]
        {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
