//! `agentbox git`: a box's pushes, fetches and branches, typed on the host.
//!
//! What a person types here needs no question: it is their own. It does not enter the box either;
//! the host does it as it would for the box. Only the merge of a pull runs there, because that is
//! where the files are. The surprising thing: exit codes are those of the commands in a box, so that
//! a script sees the same on either side.

mod pr;
mod status;

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::in_box::in_box;
use crate::json;
use crate::table;
use crate::ui::Look;
use clap::Subcommand;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{RemoteView, Remotes, Request, Target};
use protocol::ctl::paths::{CTL, WORKSPACE};
use protocol::rpc::{Envelope, GitParams};
use protocol::text::visible;
use serde::Serialize;

/// Push, fetch and choose branches for a box
///
/// Does for a box what it could ask you for, without asking: you typed it. The credentials are
/// yours and stay on the host.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  agentbox git push fix-login                    push the box's branch
  agentbox git push fix-login --host-only --as review
  agentbox git pull fix-login                    fetch, and merge in the box
  agentbox git push fix-login --repo api         of a repository below the workspace
  agentbox git branch fix-login feature/login    push to that branch from now on
  agentbox git remotes fix-login --refresh       take over the project's remotes
  agentbox git status fix-login                  what is changed there
  agentbox git pr create fix-login -- --fill     a pull request of its branch"
)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Push(Push),
    Fetch(Fetch),
    Pull(Pull),
    Remotes(RemotesArgs),
    Branch(Branch),
    Status(status::Args),
    Pr(pr::Args),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Push a box's branch
///
/// Pushes the branch the box commits to, to the branch of that name at the remote or to the one
/// chosen with `agentbox git branch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git push                             the only box of this project
  agentbox git push fix-login --tags            and its tags
  agentbox git push fix-login --host-only       to this computer's repository only")]
struct Push {
    #[command(flatten)]
    which: Which,

    /// A repository below the workspace, by its folder [default: the workspace's own]
    #[arg(long, value_name = "FOLDER")]
    repo: Option<String>,

    /// A remote of the project [default: origin]
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,

    /// Replace the branch if it is where it was last seen
    #[arg(long)]
    force_with_lease: bool,

    /// Push the box's tags as well
    #[arg(long)]
    tags: bool,

    /// Try it and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Bring the branch to this computer's repository and publish nothing
    #[arg(long, conflicts_with_all = ["remote", "force_with_lease", "tags", "dry_run"])]
    host_only: bool,

    /// The branch's name there [default: the box's branch]
    #[arg(long = "as", value_name = "BRANCH", requires = "host_only")]
    name: Option<String>,

    /// Also when commits of that branch are lost
    #[arg(long, requires = "host_only")]
    force: bool,
}

/// Fetch a remote for a box
///
/// Fetches every branch and gives the box what it lacks. Nothing in the box is merged.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git fetch fix-login
  agentbox git fetch fix-login --prune --tags")]
struct Fetch {
    #[command(flatten)]
    which: Which,

    /// A repository below the workspace, by its folder [default: the workspace's own]
    #[arg(long, value_name = "FOLDER")]
    repo: Option<String>,

    /// A remote of the project [default: origin]
    #[arg(long, value_name = "NAME")]
    remote: Option<String>,

    /// Remove branches that are gone at the remote
    #[arg(long)]
    prune: bool,

    /// Fetch tags as well
    #[arg(long)]
    tags: bool,
}

/// Fetch a remote and merge in the box
///
/// Fetches as `agentbox git fetch` does; then the box merges the upstream of the branch that is
/// checked out there, else the remote's default branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git pull fix-login
  agentbox git pull fix-login --ff-only")]
struct Pull {
    #[command(flatten)]
    fetch: Fetch,

    /// Stop when it would take a merge commit
    #[arg(long)]
    ff_only: bool,
}

/// Show where a box's pushes go
///
/// A box keeps the remotes its project had when it was made, whatever happens to the project's
/// settings. With --refresh it gets those of now, and the difference is shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git remotes fix-login
  agentbox git remotes fix-login --refresh")]
struct RemotesArgs {
    #[command(flatten)]
    which: Which,

    /// Take over the remotes the project has now
    #[arg(long)]
    refresh: bool,
}

/// Choose the branch a box pushes to
///
/// A box pushes to a branch with the name of its own, agentbox/<name>, unless you say otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox git branch fix-login                  where its pushes go
  agentbox git branch fix-login feature/login    to that branch from now on
  agentbox git branch fix-login --own            to its own again")]
struct Branch {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// The branch at the remote
    #[arg(value_name = "BRANCH", conflicts_with = "own")]
    name: Option<String>,

    /// The box's own branch again
    #[arg(long)]
    own: bool,

    /// Print the box as JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Push(push) => {
            let params = push.params();
            act(ctx, push.which, push.repo.as_deref(), "git.push", &params)
        }
        Action::Fetch(fetch) => {
            let params = fetch.params();
            act(ctx, fetch.which, fetch.repo.as_deref(), "git.fetch", &params)
        }
        Action::Pull(pull) => run_pull(ctx, pull),
        Action::Remotes(remotes) => run_remotes(ctx, remotes),
        Action::Branch(branch) => run_branch(ctx, branch),
        Action::Status(args) => status::run(ctx, args),
        Action::Pr(args) => pr::run(ctx, args),
    }
}

/// Flags that were given, as the box would send them.
fn flags(given: &[(&str, bool)]) -> Vec<String> {
    given.iter().filter(|(_, on)| *on).map(|(flag, _)| (*flag).to_owned()).collect()
}

impl Push {
    fn params(&self) -> GitParams {
        let args = flags(&[
            ("--force-with-lease", self.force_with_lease),
            ("--tags", self.tags),
            ("--dry-run", self.dry_run),
        ]);
        GitParams {
            path: self.repo.as_deref().map(in_workspace),
            remote: self.remote.clone(),
            args,
            host_only: self.host_only,
            name: self.name.clone(),
            force: self.force,
        }
    }
}

impl Fetch {
    fn params(&self) -> GitParams {
        let args = flags(&[("--prune", self.prune), ("--tags", self.tags)]);
        let path = self.repo.as_deref().map(in_workspace);
        GitParams { path, remote: self.remote.clone(), args, ..GitParams::default() }
    }
}

/// Where a repository below the workspace lies in the box.
fn in_workspace(folder: &str) -> String {
    format!("{WORKSPACE}/{}", folder_name(folder))
}

fn folder_name(folder: &str) -> &str {
    folder.trim_start_matches("./").trim_end_matches('/')
}

/// A folder that has no repository of its own would mean the one around it: not what was asked for.
fn check_repo(client: &Client, target: &Target, repo: Option<&str>) -> Result<(), CommandError> {
    let Some(repo) = repo.map(folder_name) else { return Ok(()) };
    let view: BoxView = client.call(&Request::FindBox { target: target.clone() })?;
    if view.nested_repos.iter().any(|nested| nested.path == repo) {
        return Ok(());
    }
    let text = format!("{} has no repository {:?} below its workspace", view.name, visible(repo));
    let known: Vec<String> = view.nested_repos.iter().map(|n| visible(&n.path)).collect();
    Err(CommandError::usage(text).hint(match known.as_slice() {
        [] => "it has only the workspace's own; leave --repo away".to_owned(),
        known => format!("it has {}", known.join(", ")),
    }))
}

fn ask(
    client: &Client,
    target: Target,
    call: &str,
    params: &impl Serialize,
) -> Result<Envelope, CommandError> {
    let with = serde_json::to_value(params).map_err(|e| CommandError::failed(e.to_string()))?;
    Ok(client.call(&Request::Act { target, call: call.to_owned(), with })?)
}

fn act(ctx: &Context, which: Which, repo: Option<&str>, call: &str, params: &GitParams) -> Outcome {
    let (client, target) = (ctx.client()?, target(which.which));
    check_repo(&client, &target, repo)?;
    let envelope = ask(&client, target, call, params)?;
    tell(ctx, &envelope, which.json)
}

/// What the command said, and its exit code as ours.
fn tell(ctx: &Context, envelope: &Envelope, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "result", envelope)?;
    } else {
        ctx.ui.out(&shown(&envelope.stdout))?;
        let talk = shown(&envelope.stderr);
        if !talk.is_empty() {
            ctx.ui.say(talk.trim_end_matches('\n'));
        }
    }
    Ok(Exit(u8::try_from(envelope.exit_code).unwrap_or(1)))
}

/// A remote and a box have their say in it: line by line, without control characters.
fn shown(text: &str) -> String {
    text.lines().map(|line| visible(line) + "\n").collect()
}

fn run_pull(ctx: &Context, pull: Pull) -> Outcome {
    let client = ctx.client()?;
    let Pull { fetch, ff_only } = pull;
    let target = target(fetch.which.which.clone());
    check_repo(&client, &target, fetch.repo.as_deref())?;
    let fetched = ask(&client, target.clone(), "git.fetch", &fetch.params())?;
    if fetched.exit_code != 0 {
        return tell(ctx, &fetched, fetch.which.json);
    }
    let mut argv: Vec<String> = match fetch.repo.as_deref() {
        Some(repo) => vec!["env".into(), "-C".into(), in_workspace(repo)],
        None => Vec::new(),
    };
    argv.extend([CTL.to_owned(), "merge".to_owned()]);
    argv.extend(fetch.remote.iter().flat_map(|name| ["--remote".to_owned(), name.clone()]));
    argv.extend(ff_only.then(|| "--ff-only".to_owned()));
    let merged = in_box(&client, target, argv, &[])?;
    let both = Envelope {
        exit_code: merged.exit_code,
        stdout: fetched.stdout + &merged.stdout,
        stderr: fetched.stderr + &merged.stderr,
        pushed: None,
    };
    tell(ctx, &both, fetch.which.json)
}

fn run_remotes(ctx: &Context, args: RemotesArgs) -> Outcome {
    let Which { which, json: as_json } = args.which;
    let named = which.clone();
    let request = Request::Remotes { target: target(which), apply: args.refresh };
    let remotes: Remotes = ctx.client()?.call(&request)?;
    if as_json {
        json::print(&ctx.ui, "remotes", &remotes)?;
        return Ok(Exit::OK);
    }
    let changes = difference(&remotes);
    let used = if args.refresh { &remotes.current } else { &remotes.registered };
    if used.is_empty() {
        ctx.ui.say("No remotes: this box cannot push.");
    } else {
        ctx.ui.out(&render(ctx.ui.out, used))?;
    }
    if changes.is_empty() {
        return Ok(Exit::OK);
    }
    let when =
        if args.refresh { "Taken over from the project:" } else { "The project differs now:" };
    ctx.ui.say(&format!("\n{when}\n{}", changes.join("\n")));
    if !args.refresh {
        let named = named.map(|name| format!(" {}", visible(&name))).unwrap_or_default();
        ctx.ui.hint(&format!("`agentbox git remotes{named} --refresh` takes that over"));
    }
    Ok(Exit::OK)
}

fn render(look: Look, remotes: &[RemoteView]) -> String {
    let row = |r: &RemoteView| {
        let push = if r.push == r.fetch { "the same".to_owned() } else { visible(&r.push) };
        vec![visible(&r.name), visible(&r.fetch), push]
    };
    let rows: Vec<_> = remotes.iter().map(row).collect();
    table::render(look, &["NAME", "FETCH", "PUSH"], &rows)
}

/// What is gone and what is new, one line each.
fn difference(remotes: &Remotes) -> Vec<String> {
    let Remotes { registered, current } = remotes;
    let line = |sign: char, r: &RemoteView| {
        let push = if r.push == r.fetch { String::new() } else { format!(", push {}", r.push) };
        format!("  {sign} {}", visible(&format!("{} {}{push}", r.name, r.fetch)))
    };
    let gone = registered.iter().filter(|r| !current.contains(r)).map(|r| line('-', r));
    let new = current.iter().filter(|r| !registered.contains(r)).map(|r| line('+', r));
    gone.chain(new).collect()
}

fn run_branch(ctx: &Context, args: Branch) -> Outcome {
    let client = ctx.client()?;
    let view: BoxView = if args.name.is_some() || args.own {
        let target = target(Some(args.which));
        client.call(&Request::SetBranch { target, branch: args.name })?
    } else {
        client.call(&Request::FindBox { target: target(Some(args.which)) })?
    };
    if args.json {
        json::print(&ctx.ui, "box", &view)?;
    } else {
        ctx.ui.out(&goes_to(&view))?;
    }
    Ok(Exit::OK)
}

fn goes_to(view: &BoxView) -> String {
    let own = view.branch.as_deref().unwrap_or("no branch");
    match &view.publish {
        Some(branch) => format!("{} pushes {} to {}\n", view.name, visible(own), visible(branch)),
        None => format!("{} pushes {}\n", view.name, visible(own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn remote(name: &str, fetch: &str, push: &str) -> RemoteView {
        RemoteView { name: name.into(), fetch: fetch.into(), push: push.into() }
    }

    #[test]
    fn remotes_then_and_now() {
        let remotes = Remotes {
            registered: vec![
                remote("origin", "https://github.com/acme/shop", "https://github.com/acme/shop"),
                remote("fork", "git@example.org:ada/shop", "git@example.org:ada/shop"),
            ],
            current: vec![
                remote("fork", "git@example.org:ada/shop", "git@example.org:ada/shop"),
                remote("origin", "https://github.com/acme/shop", "git@github.com:acme/shop"),
            ],
        };
        let changes = difference(&remotes).join("\n");
        insta::assert_snapshot!(format!("{}{changes}\n", render(Look::PLAIN, &remotes.current)));
        let same = Remotes { current: remotes.registered.clone(), ..remotes };
        assert!(difference(&same).is_empty());
    }

    #[test]
    fn where_pushes_go() {
        let mut view = samples::boxes().remove(0);
        assert_eq!(goes_to(&view), "fix-login pushes agentbox/fix-login\n");
        view.publish = Some("feature/login".into());
        assert_eq!(goes_to(&view), "fix-login pushes agentbox/fix-login to feature/login\n");
    }
}
