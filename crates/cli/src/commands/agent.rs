//! `agentbox claude`, `codex` and `opencode`: an agent in a box of its own, or in one that is there.
//!
//! The three are one command with another name. The agent runs in a session, so it goes on when this
//! terminal closes. Variables that hold its login travel with the request and stay on the box's tmpfs;
//! see `login:` in the settings to keep them back.

use crate::attach;
use crate::commands::login::{self, LoginArgs};
use crate::commands::{background, create};
use crate::context::{Context, target};
use crate::conversations::BeginArgs;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::place::{Elsewhere, Where};
use crate::resync;
use crate::terminal;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{ErrorCode, Request};
use protocol::conversations::Begin;
use protocol::integrations::SecretText;
use protocol::sessions::{Agent, SessionKind, SessionView, StartSession};
use std::collections::BTreeMap;

/// Flags of everything that starts an agent.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct How {
    /// The session's name [default: the agent's]
    #[arg(long, value_name = "NAME")]
    pub(super) session_name: Option<String>,

    /// Start it and come back; `agentbox attach` shows it
    #[arg(short = 'd', long = "no-attach", conflicts_with_all = ["attach_in", "inline"])]
    detached: bool,

    #[command(flatten)]
    place: Where,

    /// Leave the box's settings of the agent as they are
    #[arg(long)]
    pub(super) no_sync_config: bool,

    #[command(flatten)]
    permissions: Permissions,

    #[command(flatten)]
    begin: BeginArgs,

    /// Arguments for the agent
    #[arg(last = true, value_name = "ARG")]
    pub(super) args: Vec<String>,
}

impl How {
    /// As usual, shown or not.
    pub fn usual(detached: bool, place: Where) -> Self {
        Self { detached, place, ..Self::default() }
    }

    pub(super) fn skip_permissions(&self, agent: Agent) -> Result<Option<bool>, CommandError> {
        self.permissions.said(agent)
    }
}

/// Whether the agent asks before each step.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
struct Permissions {
    /// Let the agent do each step without asking, in this box from now on; the box keeps it in
    ///
    /// So it is unless claude.dangerouslySkipPermissions, or the same of codex, says otherwise. OpenCode
    /// has no such choice.
    #[arg(long, overrides_with = "no_dangerously_skip_permissions")]
    dangerously_skip_permissions: bool,

    /// Have the agent ask before each step, in this box from now on
    #[arg(long)]
    no_dangerously_skip_permissions: bool,
}

impl Permissions {
    fn said(self, agent: Agent) -> Result<Option<bool>, CommandError> {
        let given = self.dangerously_skip_permissions || self.no_dangerously_skip_permissions;
        if given && agent == Agent::Opencode {
            let text = "OpenCode has no such choice: it asks as its own settings say";
            return Err(CommandError::usage(text).hint("set \"permission\" in your opencode.json"));
        }
        Ok(given.then_some(self.dangerously_skip_permissions))
    }
}

/// Start the agent in a box that is there
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    #[command(flatten)]
    how: How,

    /// Leave the box without what is new here since it was down
    #[arg(long)]
    no_resync: bool,

    /// Print the session as JSON; does not attach
    #[arg(short, long, conflicts_with_all = ["attach_in", "inline"])]
    json: bool,
}

/// Show the agent in a box, started when it does not run
///
/// Ctrl-a opens a menu, as in `agentbox attach`.
#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The session's name [default: the agent's]
    #[arg(long, value_name = "NAME")]
    session_name: Option<String>,

    #[command(flatten)]
    place: Where,
}

/// End the agent and its session; the box goes on
#[derive(Debug, clap::Args)]
pub struct StopArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The session's name [default: the agent's]
    #[arg(long, value_name = "NAME")]
    session_name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
pub enum Action {
    Start(StartArgs),
    Attach(AttachArgs),
    Login(LoginArgs),
    Stop(StopArgs),
}

macro_rules! agent_command {
    ($name:ident, $title:literal, $word:literal) => {
        #[derive(Debug, clap::Args)]
        #[command(
            args_conflicts_with_subcommands = true,
            about = concat!("Run ", $title, " in a box"),
            long_about = concat!(
                "Run ", $title, " in a box\n\nMakes a box for the project, starts ", $title,
                " in it and shows it. Leave it with Ctrl-a d: it goes on; Ctrl-a alone opens a menu (see ",
                "`agentbox attach --help`). What follows `--` is for ",
                "the agent; what it should do can be the first of it."
            ),
            after_help = concat!(
                "Examples:\n  agentbox ", $word, " -n fix-login          a box of that name, with ", $title,
                " in it\n  agentbox ", $word, " start fix-login       in a box that is there\n  agentbox ",
                $word, " login fix-login       log it in there\n  agentbox ",
                $word, " -i 'fix the login'    in the background, when there is room"
            )
        )]
        pub struct $name {
            #[command(flatten)]
            create: create::Options,

            #[command(flatten)]
            how: How,

            #[command(flatten)]
            background: background::Background,

            /// Print the box, or the job, as JSON; does not attach
            #[arg(short, long, conflicts_with_all = ["attach_in", "inline"])]
            json: bool,

            #[command(subcommand)]
            action: Option<Action>,
        }

        impl $name {
            pub fn run(self, ctx: &Context, agent: Agent) -> Outcome {
                match self.action {
                    Some(action) => act(ctx, agent, action),
                    None if self.background.is_wanted() => {
                        background::submit(ctx, agent, self.create, &self.how, self.background, self.json)
                    }
                    None => in_new_box(ctx, agent, self.create, self.how, self.json),
                }
            }
        }
    };
}

agent_command!(ClaudeArgs, "Claude Code", "claude");
agent_command!(CodexArgs, "Codex", "codex");
agent_command!(OpencodeArgs, "OpenCode", "opencode");

fn in_new_box(
    ctx: &Context,
    agent: Agent,
    options: create::Options,
    how: How,
    as_json: bool,
) -> Outcome {
    let begin = if how.begin.is_nothing() {
        Begin::Nothing
    } else {
        how.begin.find(&ctx.client()?, agent, &options.folder()?)?
    };
    begin_in_new_box(ctx, agent, options, begin, how, as_json)
}

/// The same, with what it begins with found already.
pub fn begin_in_new_box(
    ctx: &Context,
    agent: Agent,
    options: create::Options,
    begin: Begin,
    how: How,
    as_json: bool,
) -> Outcome {
    // Before anything is made.
    let place = how.place.elsewhere(ctx)?;
    how.skip_permissions(agent)?;
    let view = create::make(ctx, options)?.view;
    let client = ctx.client()?;
    let which = Some(view.id.to_string());
    let session = start(&client, agent, which.clone(), &how, begin)?;
    if as_json {
        json::print(&ctx.ui, "box", &view)?;
        return Ok(Exit::OK);
    }
    ctx.ui.say(&recap(&view));
    finish(ctx, &client, &view, &how, place.as_ref(), &session)
}

fn recap(view: &BoxView) -> String {
    let branch = view.branch.as_deref().map(|b| format!(", on branch {b}")).unwrap_or_default();
    format!("Box {} of {}{branch}", view.name, view.project)
}

fn finish(
    ctx: &Context,
    client: &Client,
    view: &BoxView,
    how: &How,
    place: Option<&Elsewhere>,
    session: &SessionView,
) -> Outcome {
    if how.detached || (place.is_none() && !terminal::both_ends()) {
        ctx.ui.out(&format!("started {} in {}\n", session.name, view.name))?;
        ctx.ui.hint(&format!("agentbox attach {}", view.name));
        return Ok(Exit::OK);
    }
    attach::show_in(ctx, client, place, Some(view.name.to_string()), &session.name)
}

/// The agent of a box, shown where the person likes it; started when it does not run.
pub fn show(ctx: &Context, agent: Agent, which: Option<String>) -> Outcome {
    let args = AttachArgs { which, session_name: None, place: Where::default() };
    act(ctx, agent, Action::Attach(args))
}

fn act(ctx: &Context, agent: Agent, action: Action) -> Outcome {
    let client = ctx.client()?;
    match action {
        Action::Start(mut args) => {
            let place = args.how.place.elsewhere(ctx)?;
            let view = which_box(&client, args.which)?;
            let which = Some(view.id.to_string());
            let begin = args.how.begin.find(&client, agent, &folder_of(&view))?;
            let fresh = args.how.args.is_empty() && begin == Begin::Nothing;
            if !args.no_resync
                && let Some(news) = resync::before_an_agent(ctx, &client, &view)
                && args.how.args.is_empty()
                && !matches!(begin, Begin::Plan { .. })
            {
                args.how.args.push(news);
            }
            let session = match start(&client, agent, which.clone(), &args.how, begin) {
                Err(Failed::Exists(name)) if fresh => {
                    ctx.ui.say(&format!("{} runs already in {}", agent.title(), view.name));
                    running(&client, which, &name)?
                }
                other => other?,
            };
            if args.json {
                json::print(&ctx.ui, "session", &session)?;
                return Ok(Exit::OK);
            }
            finish(ctx, &client, &view, &args.how, place.as_ref(), &session)
        }
        Action::Attach(args) => {
            let place = args.place.elsewhere(ctx)?;
            let view = which_box(&client, args.which)?;
            let which = Some(view.id.to_string());
            let news = resync::before_an_agent(ctx, &client, &view);
            let how = How {
                session_name: args.session_name,
                no_sync_config: true,
                args: news.into_iter().collect(),
                ..How::default()
            };
            let name = match start(&client, agent, which, &how, Begin::Last) {
                Ok(session) => session.name,
                Err(Failed::Exists(name)) => name,
                Err(other) => return Err(other.into()),
            };
            attach::show_in(ctx, &client, place.as_ref(), Some(view.name.to_string()), &name)
        }
        Action::Login(args) => login::run(ctx, &client, agent, args),
        Action::Stop(args) => {
            let view = which_box(&client, args.which)?;
            let which = Some(view.id.to_string());
            let name = match args.session_name {
                Some(name) => name,
                None => session_of(&client, which.clone(), agent)?,
            };
            let target = target(which);
            if !client.call::<bool>(&Request::EndSession { target, name: name.clone() })? {
                let text = format!("{} does not run in {}", agent.title(), view.name);
                return Err(CommandError::failed(text)
                    .hint(format!("agentbox status {} shows what runs there", view.name)));
            }
            ctx.ui.out(&format!("ended {name} in {}\n", view.name))?;
            Ok(Exit::OK)
        }
    }
}

/// The folder whose conversations are meant: this one when it is of the box's project, else the box's.
fn folder_of(view: &BoxView) -> String {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).ok();
    let here = here.filter(|dir| dir.starts_with(&view.workspace));
    let here = here.and_then(|dir| dir.into_os_string().into_string().ok());
    here.unwrap_or_else(|| view.workspace.clone())
}

fn which_box(client: &Client, which: Option<String>) -> Result<BoxView, CommandError> {
    Ok(client.call(&Request::FindBox { target: target(which) })?)
}

fn running(
    client: &Client,
    which: Option<String>,
    name: &str,
) -> Result<SessionView, CommandError> {
    let all: Vec<SessionView> = client.call(&Request::Sessions { target: target(which) })?;
    let found = all.into_iter().find(|s| s.name == name);
    found.ok_or_else(|| {
        CommandError::failed(format!("the session {name} has just ended"))
            .hint("run it again to start another")
    })
}

/// The session an agent runs in, whatever its name.
fn session_of(
    client: &Client,
    which: Option<String>,
    agent: Agent,
) -> Result<String, CommandError> {
    let all: Vec<SessionView> = client.call(&Request::Sessions { target: target(which) })?;
    let found = all.into_iter().find(|s| s.agent == Some(agent)).map(|s| s.name);
    Ok(found.unwrap_or_else(|| agent.as_str().to_owned()))
}

/// Why an agent was not started.
enum Failed {
    Exists(String),
    Otherwise(CommandError),
}

impl From<Failed> for CommandError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Exists(name) => {
                CommandError::failed(format!("there is a session {name} already"))
                    .hint("agentbox attach shows it")
            }
            Failed::Otherwise(error) => error,
        }
    }
}

fn start(
    client: &Client,
    agent: Agent,
    which: Option<String>,
    how: &How,
    begin: Begin,
) -> Result<SessionView, Failed> {
    let (cols, rows) = terminal::size();
    let skip_permissions = how.skip_permissions(agent).map_err(Failed::Otherwise)?;
    let what = SessionKind::Agent {
        agent,
        name: how.session_name.clone(),
        args: how.args.clone(),
        env: variables(agent),
        sync: !how.no_sync_config,
        skip_permissions,
        begin,
    };
    let request = StartSession { target: target(which.clone()), what, cols, rows };
    client.call(&Request::StartSession(request)).map_err(|e| {
        if e.code() == Some(ErrorCode::Exists) {
            let name = match how.session_name.clone() {
                Some(name) => Ok(name),
                None => session_of(client, which, agent),
            };
            name.map_or_else(Failed::Otherwise, Failed::Exists)
        } else {
            Failed::Otherwise(e.into())
        }
    })
}

/// What of the person's environment is for the agent.
pub fn variables(agent: Agent) -> BTreeMap<String, SecretText> {
    let value = |name: &&str| {
        let value = std::env::var(name).ok().filter(|v| !v.is_empty())?;
        Some(((*name).to_owned(), SecretText(value)))
    };
    agent.variables().iter().filter_map(value).collect()
}
