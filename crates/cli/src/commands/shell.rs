//! `agentbox shell`: a shell or a command in a box.
//!
//! A shell lives in a session of its own, so it goes on when its window closes. A command's exit code
//! is ours, and bytes flow as through a pipe unless there is a terminal at both ends. The surprising
//! thing: a word that names no box is taken as the command when the folder's project has exactly one
//! box, so that `agentbox shell make` does what it says.

use crate::attach;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::exec::{self, Ended};
use crate::json;
use crate::place::Elsewhere;
use crate::table;
use crate::terminal;
use crate::time;
use crate::ui::Ui;
use host::client::{Client, ClientError};
use protocol::boxes::BoxView;
use protocol::control::{ErrorCode, Request};
use protocol::links::{SshConfig, SshHost};
use protocol::sessions::{SessionKind, SessionView, StartSession, is_shell, shell_session};
use protocol::text::visible;

/// How shells and engines say that a program is not there.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Run a shell or a command in a box
///
/// Without a command it is a shell in a session of its own: leave it with Ctrl-a d and it goes on,
/// come back with the same command. Ctrl-a alone opens a menu; see `agentbox attach --help`. A command's words are passed on as they are; a single word with
/// spaces in it goes through `sh -c`. The exit code is the command's.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox shell                        a shell in the project's only box
  agentbox shell fix-login -n logs      another one, called logs
  agentbox shell fix-login -- npm test  a command in a box
  agentbox shell -- 'cd api && ls'      through sh -c
  agentbox shell -- git apply < fix.patch
  agentbox shell fix-login --user root -- apt-get update
  agentbox shell ls                     the shells there are"
)]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The shell of this name, made when it is not there
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["new", "command"])]
    name: Option<String>,

    /// A new shell beside those there are
    #[arg(long, conflicts_with = "command")]
    new: bool,

    /// A shell that ends with this terminal
    #[arg(long, conflicts_with_all = ["name", "new"])]
    no_tmux: bool,

    /// A shell that reads no profile, only what every shell reads
    #[arg(long, conflicts_with = "command")]
    no_login: bool,

    /// As this user of the box, by name or number, instead of the one agents work as
    ///
    /// Such a shell has no session: it ends with this terminal. shell.user says it for every shell.
    #[arg(long, value_name = "USER", conflicts_with_all = ["name", "new"])]
    user: Option<String>,

    /// Print ssh's configuration for the box and start nothing: then ssh BOX, scp, rsync and the like
    /// lead into it
    #[arg(long, conflicts_with_all = ["name", "new", "no_tmux", "no_login", "user", "command"])]
    ssh_config: bool,

    /// With --ssh-config: print JSON
    #[arg(short, long, requires = "ssh_config")]
    json: bool,

    /// The command and its arguments [default: a login shell]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,

    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Ls(LsArgs),
    Attach(AttachArgs),
    Kill(KillArgs),
}

/// List the shells of a box
#[derive(Debug, clap::Args)]
struct LsArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Show a shell that is there
#[derive(Debug, clap::Args)]
struct AttachArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Which one
    #[arg(short, long, value_name = "NAME", default_value = "shell")]
    name: String,
}

/// End a shell and what runs in it
#[derive(Debug, clap::Args)]
struct KillArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Which one
    #[arg(short, long, value_name = "NAME", default_value = "shell")]
    name: String,

    /// All of them
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    match args.action {
        Some(Action::Ls(ls)) => return list(ctx, &client, ls),
        Some(Action::Attach(to)) => {
            if !terminal::both_ends() {
                return Err(CommandError::failed("a shell can be shown on a terminal only")
                    .hint("agentbox shell BOX -- COMMAND runs one without"));
            }
            return attach::show(ctx, &client, to.which, &shell_session(&to.name));
        }
        Some(Action::Kill(kill)) => return end(ctx, &client, kill),
        None => {}
    }
    if args.ssh_config {
        return ssh_config(ctx, &client, args.which, args.json);
    }
    let set = ctx.settings_of_box(&client, target(args.which.clone()))?.shell;
    let user = args.user.or(set.user);
    let named = args.name.is_some() || args.new;
    let own = !args.no_tmux && user.is_none() && (set.tmux || named);
    let in_session = args.command.is_empty() && own && terminal::both_ends();
    let kind = Kind { name: args.name, new: args.new, plain: args.no_login || !set.login };
    let code = match args.which {
        Some(word) if args.command.is_empty() && !names_a_box(&client, &word)? => {
            as_command(&ctx.ui, &client, word, user)?
        }
        which if in_session => return session(ctx, &client, which, &kind, None),
        which => {
            let argv = argv(&args.command, kind.plain);
            exec::run_as(&client, target(which), argv, terminal::both_ends(), user)?
        }
    };
    Ok(Exit(u8::try_from(code).unwrap_or(1)))
}

/// Which shell, and how it begins.
#[derive(Debug, Default)]
pub struct Kind {
    name: Option<String>,
    new: bool,
    plain: bool,
}

/// A shell in a session: the one of that name, started when it is not there.
pub fn session(
    ctx: &Context,
    client: &Client,
    which: Option<String>,
    kind: &Kind,
    place: Option<&Elsewhere>,
) -> Outcome {
    let label = (!kind.new).then(|| kind.name.clone().unwrap_or_else(|| "shell".to_owned()));
    let (cols, rows) = terminal::size();
    let start = StartSession {
        target: target(which.clone()),
        what: SessionKind::Shell { label: label.clone(), plain: kind.plain },
        cols,
        rows,
    };
    let name = match client.call::<SessionView>(&Request::StartSession(start)) {
        Ok(view) => view.name,
        Err(e) if e.code() == Some(ErrorCode::Exists) => shell_session(&label.unwrap_or_default()),
        Err(e) => return Err(e.into()),
    };
    attach::show_in(ctx, client, place, which, &name)
}

/// Brings the box up and prints how ssh reaches it.
fn ssh_config(ctx: &Context, client: &Client, which: Option<String>, as_json: bool) -> Outcome {
    let host: SshHost = client.call(&Request::SshHost { target: target(which) })?;
    if as_json {
        json::print(&ctx.ui, "sshHost", &host)?;
        return Ok(Exit::OK);
    }
    let config: SshConfig = client.call(&Request::SshConfig)?;
    let Some(block) = block_of(&config.text, &host.host) else {
        let text = format!("the host keeps no ssh configuration for {}", host.name);
        return Err(CommandError::failed(text).hint("agentbox ssh-config shows what it keeps"));
    };
    ctx.ui.out(&block)?;
    Ok(Exit::OK)
}

/// The lines of one host.
fn block_of(text: &str, host: &str) -> Option<String> {
    let is_it = |block: &&str| {
        let first = block.lines().next().unwrap_or_default();
        first.strip_prefix("Host ").is_some_and(|names| names.split(' ').any(|name| name == host))
    };
    let found = text.split("\n\n").find(is_it)?;
    Some(format!("{}\n", found.trim_end()))
}

fn shells(client: &Client, which: Option<String>) -> Result<Vec<SessionView>, CommandError> {
    let all: Vec<SessionView> = client.call(&Request::Sessions { target: target(which) })?;
    Ok(all.into_iter().filter(|session| is_shell(&session.name)).collect())
}

fn list(ctx: &Context, client: &Client, args: LsArgs) -> Outcome {
    let found = shells(client, args.which)?;
    if args.json {
        json::print(&ctx.ui, "shells", &found)?;
    } else if found.is_empty() {
        ctx.ui.say("No shells.");
        ctx.ui.hint("agentbox shell starts one");
    } else {
        let row = |s: &SessionView| {
            let attached = if s.attached == 0 { "-".to_owned() } else { s.attached.to_string() };
            vec![s.name.clone(), attached, time::ago(jiff::Timestamp::now(), s.created_at)]
        };
        let rows: Vec<_> = found.iter().map(row).collect();
        ctx.ui.out(&table::render(ctx.ui.out, &["SHELL", "ATTACHED", "CREATED"], &rows))?;
    }
    Ok(Exit::OK)
}

fn end(ctx: &Context, client: &Client, args: KillArgs) -> Outcome {
    let names = if args.all {
        shells(client, args.which.clone())?.into_iter().map(|s| s.name).collect()
    } else {
        vec![shell_session(&args.name)]
    };
    for name in names {
        let request =
            Request::EndSession { target: target(args.which.clone()), name: name.clone() };
        if !client.call::<bool>(&request)? {
            return Err(CommandError::failed(format!("there is no shell {}", visible(&name)))
                .hint("agentbox shell ls shows them"));
        }
        ctx.ui.out(&format!("ended {name}\n"))?;
    }
    Ok(Exit::OK)
}

/// Looked up beforehand: once a command was tried, it has eaten the input of the next one.
pub fn names_a_box(client: &Client, word: &str) -> Result<bool, ClientError> {
    let boxes: Vec<BoxView> = client.call(&Request::Boxes)?;
    let is_index = word.bytes().all(|b| b.is_ascii_digit());
    // `@project` and `project/name`; a path in a box begins with a slash or a dot.
    let is_qualified = word.starts_with('@')
        || word.split_once('/').is_some_and(|(p, _)| boxes.iter().any(|b| b.project == p));
    let is_id = |b: &BoxView| word.len() >= 3 && b.id.as_str().starts_with(word);
    let container = word.strip_prefix("agentbox-");
    let is_one = |b: &BoxView| {
        let name = b.name.as_str();
        let called = b.display_name.as_deref() == Some(word);
        name == word || container == Some(name) || called || is_id(b)
    };
    Ok(is_index || is_qualified || boxes.iter().any(is_one))
}

/// The word named no box: it may be a command for the only one there is.
fn as_command(
    ui: &Ui,
    client: &Client,
    word: String,
    user: Option<String>,
) -> Result<i32, CommandError> {
    let tty = terminal::both_ends();
    let line = argv(std::slice::from_ref(&word), false);
    let code = match exec::run_as(client, target(None), line, tty, user.clone()) {
        // No single box to take it: the host says what is wrong with the word as a box.
        Err(Ended::Host(e)) if e.code() == Some(ErrorCode::Usage) => {
            exec::run_as(client, target(Some(word.clone())), argv(&[], false), tty, user)?
        }
        other => other?,
    };
    if NO_PROGRAM.contains(&code) {
        ui.hint(&format!("{} is neither a box nor a program in it", visible(&word)));
    }
    Ok(code)
}

fn argv(command: &[String], plain: bool) -> Vec<String> {
    let words: &[&str] = match command {
        [] if plain => &["bash"],
        [] => &["bash", "-l"],
        [line] if line.contains(char::is_whitespace) => &["sh", "-c", line],
        words => return words.to_vec(),
    };
    words.iter().map(|w| (*w).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_of_sshs_configuration() {
        let text = "# Written\n\nHost agentbox-a a\n  Port 1\n\nHost agentbox-ab\n  Port 2\n";
        assert_eq!(block_of(text, "agentbox-a").unwrap(), "Host agentbox-a a\n  Port 1\n");
        assert_eq!(block_of(text, "agentbox-ab").unwrap(), "Host agentbox-ab\n  Port 2\n");
        assert_eq!(block_of(text, "Port"), None);
    }

    #[test]
    fn boxes_16_33_words_stay_words() {
        let given = |words: &[&str]| {
            argv(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>(), false)
        };
        assert_eq!(given(&[]), ["bash", "-l"]);
        assert_eq!(argv(&[], true), ["bash"]);
        assert_eq!(given(&["ls"]), ["ls"]);
        assert_eq!(given(&["printf", "%s|", "a b", "c"]), ["printf", "%s|", "a b", "c"]);
        assert_eq!(given(&["echo $HOME"]), ["sh", "-c", "echo $HOME"]);
    }
}
