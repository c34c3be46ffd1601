//! `agentbox secrets`: credentials for the services boxes use, kept in the keychain.
//!
//! A value comes by standard input, a hidden prompt or a file, never by the command line or the
//! environment, where every process of the computer could read it; and it never comes back.

mod import;

use crate::ask;
use crate::commands::config::root_of;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use crate::time;
use crate::ui::Look;
use clap::Subcommand;
use host::client::Client;
use jiff::Timestamp;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use protocol::SecretId;
use protocol::boxes::BoxView;
use protocol::control::{Level, Request};
use protocol::integrations::{SecretScope, SecretText, SecretView, Tried};
use protocol::text::visible;
use serde::Serialize;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

/// The longest value that is read.
const LONGEST: usize = 64 * 1024;
/// Of a test: there is nothing to be tested.
const ABSENT: Exit = Exit(4);

/// Keep credentials for the services boxes use
///
/// Values are kept in the keychain of this computer (or in files, when `secrets.backend: file` is
/// set) and are used by the host alone: a box never sees one. With none stored, the host program's
/// own login is used.
///
/// Integrations use the ones they name. Others are for egress policies, which put them into boxes'
/// requests: of one name, a box gets its own, else its project's, else everybody's. One that is bound
/// to hosts goes to no other, whatever a policy says.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox secrets                          what can be stored, and what is
  agentbox secrets set notion.token         asks for the value without showing it
  pass show notion | agentbox secrets set notion.token
  agentbox secrets test notion.token        does the service take it?
  agentbox secrets set shop.deploy --host api.example.com --project"
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what can be stored, and what is
    List {
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Store a value, or replace the one that is stored
    ///
    /// The value is read from standard input, or asked for without showing it.
    Set {
        /// The credential's name, such as github.token
        id: SecretId,
        /// A host it may be sent to, and to no others; can be given several times. Without it, what was
        /// said before holds
        #[arg(long = "host", value_name = "HOST")]
        hosts: Vec<String>,
        /// It may be sent to any host that a policy names
        #[arg(long, conflicts_with = "hosts")]
        any_host: bool,
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Replace a stored value; the hosts it is bound to stay
    ///
    /// The next request has the new value. It is read from standard input, or asked for without
    /// showing it.
    Rotate {
        /// The credential's name
        id: SecretId,
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Remove a stored value
    Rm {
        /// The credential's name
        id: SecretId,
        #[command(flatten)]
        whose: Whose,
        /// Don't ask
        #[arg(short, long)]
        yes: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Try whether it is there and the service takes it
    ///
    /// Exit code 4 when it is not stored, 1 when it is of no use.
    Test {
        /// The credential's name
        id: SecretId,
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    Import(import::Args),
}

/// Whose a credential is: everybody's, unless it is said.
#[derive(Debug, clap::Args)]
struct Whose {
    /// Only for boxes of the project in DIR; without DIR, of the one in this folder
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,

    /// Only for one box: its number, id or name
    #[arg(long = "box", value_name = "BOX", conflicts_with = "project")]
    of_box: Option<String>,
}

impl Whose {
    fn scope(&self, client: &Client) -> Result<SecretScope, CommandError> {
        match (&self.project, &self.of_box) {
            (Some(folder), _) => {
                // A project that is gone is named as it was.
                let root = if folder.exists() { root_of(folder)? } else { folder.clone() };
                let root = root.into_os_string().into_string();
                let no_name = |_| CommandError::usage("the project's folder has no name in UTF-8");
                Ok(SecretScope::Project { root: root.map_err(no_name)? })
            }
            (None, Some(which)) => {
                let found = Request::FindBox { target: target(Some(which.clone())) };
                match client.call::<BoxView>(&found) {
                    Ok(view) => Ok(SecretScope::Box { id: view.id }),
                    // One that is gone has an id still.
                    Err(e) => match which.parse() {
                        Ok(id) => Ok(SecretScope::Box { id }),
                        Err(_) => Err(e.into()),
                    },
                }
            }
            (None, None) => Ok(SecretScope::Everybody),
        }
    }
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        None => list(ctx, args.json),
        Some(Action::List { json }) => list(ctx, json),
        Some(Action::Set { id, hosts, any_host, whose, json }) => {
            let hosts = (any_host || !hosts.is_empty()).then_some(hosts);
            set(ctx, id, &whose, hosts, json)
        }
        Some(Action::Rotate { id, whose, json }) => rotate(ctx, id, &whose, json),
        Some(Action::Rm { id, whose, yes, json }) => remove(ctx, id, &whose, yes, json),
        Some(Action::Test { id, whose, json }) => test(ctx, id, &whose, json),
        Some(Action::Import(args)) => import::run(ctx, &args),
    }
}

fn list(ctx: &Context, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let all: Vec<SecretView> = client.call(&Request::Secrets)?;
    if as_json {
        json::print(&ctx.ui, "secrets", &all)?;
        return Ok(Exit::OK);
    }
    let of_boxes = all.iter().any(|s| matches!(s.scope, SecretScope::Box { .. }));
    let boxes = if of_boxes { client.call(&Request::Boxes)? } else { Vec::new() };
    ctx.ui.out(&render(ctx.ui.out, &all, &boxes, Timestamp::now()))?;
    Ok(Exit::OK)
}

const HEADER: [&str; 6] = ["NAME", "WHOSE", "HOSTS", "KEPT IN", "LAST USED", "FOR"];

fn render(look: Look, all: &[SecretView], boxes: &[BoxView], now: Timestamp) -> String {
    let row = |s: &SecretView| {
        let state = if s.stored { s.kept_in.clone() } else { "not stored".to_owned() };
        let used = match (s.stored, s.last_used) {
            (true, Some(at)) => time::ago(now, at),
            (true, None) => "never".to_owned(),
            (false, _) => "-".to_owned(),
        };
        let hosts = match (s.hosts.is_empty(), s.stored) {
            (false, _) => visible(&s.hosts.join(", ")),
            (true, true) => "any".to_owned(),
            (true, false) => "-".to_owned(),
        };
        let what = if s.used_by.is_empty() {
            "policies".to_owned()
        } else {
            visible(&format!("{}: {}", s.used_by.join(", "), s.about))
        };
        vec![s.id.to_string(), whose(&s.scope, boxes), hosts, state, used, what]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table::render(look, &HEADER, &rows)
}

fn whose(scope: &SecretScope, boxes: &[BoxView]) -> String {
    match scope {
        SecretScope::Everybody => "everybody".to_owned(),
        SecretScope::Project { root } => visible(root),
        SecretScope::Box { id } => match boxes.iter().find(|view| view.id == *id) {
            Some(view) => format!("box {}", view.name),
            None => format!("box {id}"),
        },
    }
}

fn set(
    ctx: &Context,
    id: SecretId,
    whose: &Whose,
    hosts: Option<Vec<String>>,
    as_json: bool,
) -> Outcome {
    // Before the value: a wrong folder or box should not cost a typed secret.
    let client = ctx.client()?;
    let scope = whose.scope(&client)?;
    let known: Vec<SecretView> = client.call(&Request::Secrets)?;
    let stored = store(ctx, &client, &id, &scope, hosts)?;
    if as_json {
        json::print(&ctx.ui, "secret", &stored)?;
        return Ok(Exit::OK);
    }
    ctx.ui.out(&format!("stored  {id}\n"))?;
    let has_user = known.iter().any(|s| s.id == id && !s.used_by.is_empty());
    if has_user && scope == SecretScope::Everybody {
        ctx.ui.say(&format!("hint: agentbox secrets test {id} tries it"));
    } else if !has_user {
        ctx.ui.say(&format!("No integration uses {id}: it is for policies that name it."));
    }
    Ok(Exit::OK)
}

fn rotate(ctx: &Context, id: SecretId, whose: &Whose, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let scope = whose.scope(&client)?;
    if !is_stored(&client, &id, &scope)? {
        return Err(not_stored(&id));
    }
    let stored = store(ctx, &client, &id, &scope, None)?;
    if as_json {
        json::print(&ctx.ui, "secret", &stored)?;
    } else {
        ctx.ui.out(&format!("replaced  {id}\n"))?;
    }
    Ok(Exit::OK)
}

/// What became of a credential.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Became<'a> {
    id: &'a SecretId,
    scope: &'a SecretScope,
    stored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

/// Reads the value and has it stored.
fn store<'a>(
    ctx: &Context,
    client: &Client,
    id: &'a SecretId,
    scope: &'a SecretScope,
    hosts: Option<Vec<String>>,
) -> Result<Became<'a>, CommandError> {
    let value = read_value(id)?;
    let request = Request::SetSecret { id: id.clone(), value, scope: scope.clone(), hosts };
    let remark: Option<String> = client.call(&request)?;
    for line in remark.iter().flat_map(|text| text.lines()) {
        ctx.ui.warn(&visible(line));
    }
    Ok(Became { id, scope, stored: true, remark })
}

fn is_stored(client: &Client, id: &SecretId, scope: &SecretScope) -> Result<bool, CommandError> {
    let all: Vec<SecretView> = client.call(&Request::Secrets)?;
    Ok(all.iter().any(|s| s.id == *id && s.scope == *scope && s.stored))
}

fn not_stored(id: &SecretId) -> CommandError {
    CommandError::usage(format!("{id} is not stored")).hint("agentbox secrets lists what is")
}

fn remove(ctx: &Context, id: SecretId, whose: &Whose, yes: bool, as_json: bool) -> Outcome {
    if !yes && !ctx.ui.interactive {
        return Err(CommandError::usage("nobody is there to be asked; nothing was removed")
            .hint(format!("agentbox secrets rm {id} -y")));
    }
    let client = ctx.client()?;
    let scope = whose.scope(&client)?;
    if !yes && !ask::yes(&ctx.ui, &format!("Remove {id} for good?")) {
        ctx.ui.say("Kept.");
        return Ok(Exit::OK);
    }
    if !client.call::<bool>(&Request::RemoveSecret { id: id.clone(), scope: scope.clone() })? {
        return Err(not_stored(&id));
    }
    if as_json {
        let gone = Became { id: &id, scope: &scope, stored: false, remark: None };
        json::print(&ctx.ui, "secret", &gone)?;
    } else {
        ctx.ui.out(&format!("removed  {id}\n"))?;
    }
    Ok(Exit::OK)
}

fn test(ctx: &Context, id: SecretId, whose: &Whose, as_json: bool) -> Outcome {
    let client = ctx.client()?;
    let scope = whose.scope(&client)?;
    let stored = is_stored(&client, &id, &scope)?;
    let tried: Tried = client.call(&Request::TestSecret { id: id.clone(), scope })?;
    let told = tell(ctx, id.as_str(), &tried, as_json)?;
    Ok(if stored { told } else { ABSENT })
}

/// What came of a test; exit code 1 unless it is good.
pub fn tell(ctx: &Context, name: &str, tried: &Tried, as_json: bool) -> Outcome {
    if as_json {
        json::print(&ctx.ui, "result", tried)?;
    } else {
        ctx.ui.out(&render_tried(ctx.ui.out, name, tried))?;
    }
    let good = matches!(tried.level, Level::Ok | Level::Info);
    Ok(if good { Exit::OK } else { Exit::FAILED })
}

fn render_tried(look: Look, name: &str, tried: &Tried) -> String {
    let mark = match tried.level {
        Level::Ok => look.good("✓"),
        Level::Info => look.dim("·"),
        Level::Warn => look.warn("!"),
        Level::Fail => look.bad("✗"),
    };
    let hint = tried.hint.as_ref().map(|h| format!("  hint: {}\n", visible(h))).unwrap_or_default();
    format!("{mark} {name}  {}\n{hint}", visible(&tried.detail))
}

/// From a pipe as it is, from a person without showing it.
fn read_value(id: &SecretId) -> Result<SecretText, CommandError> {
    let mut text = String::new();
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let hidden = Hidden::enter()?;
        eprint!("Value of {id} (not shown): ");
        io::stderr().flush()?;
        stdin.read_line(&mut text)?;
        drop(hidden);
        eprintln!();
    } else {
        // A line end more, and one byte to notice that there is more.
        stdin.lock().take(LONGEST as u64 + 3).read_to_string(&mut text)?;
    }
    one_line(text).map_err(|unfit| {
        CommandError::usage(format!("{}; nothing was stored", unfit.what)).hint(unfit.hint)
    })
}

/// Why a text is no credential.
#[derive(Debug, PartialEq, Eq)]
struct Unfit {
    what: &'static str,
    hint: &'static str,
}

/// A value without its line end.
fn one_line(mut text: String) -> Result<SecretText, Unfit> {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    let unfit = |what, hint| Err(Unfit { what, hint });
    if text.is_empty() {
        return unfit(
            "no value was given",
            "type it at the question, or send it on standard input",
        );
    }
    if text.len() > LONGEST {
        let hint = "a credential is shorter; look whether a whole file was sent";
        return unfit("the value is longer than 64 KiB", hint);
    }
    if text.contains(['\n', '\r']) {
        return unfit(
            "the value has more than one line",
            "store the line with the credential alone",
        );
    }
    if text.contains('\0') {
        return unfit("the value has a NUL character in it", "look whether it is text at all");
    }
    Ok(SecretText(text))
}

/// What is typed is not shown until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn of(scope: SecretScope) -> SecretView {
        SecretView {
            id: "github.read".parse().unwrap(),
            stored: true,
            used_by: vec![],
            about: String::new(),
            kept_in: "keychain".into(),
            set_at: Some(0),
            last_used: None,
            scope,
            hosts: Vec::new(),
        }
    }

    #[test]
    fn egress_12_32_a_value_is_one_line() {
        for given in ["tok", "tok\n", "tok\r\n"] {
            assert_eq!(one_line(given.into()).unwrap().0, "tok", "{given:?}");
        }
        for bad in ["", "\n", "\r\n", "tok\n\n", "tok\r", "a\nb", "a\0b"] {
            assert!(one_line(bad.into()).is_err(), "{bad:?}");
        }
        assert!(one_line("x".repeat(LONGEST)).is_ok());
        assert!(one_line("x".repeat(LONGEST + 1)).is_err());
    }

    #[test]
    fn credentials_without_their_values() {
        let all = [
            SecretView {
                id: "github.token".parse().unwrap(),
                stored: true,
                used_by: vec!["GitHub".into()],
                about: "A personal access token".into(),
                kept_in: "keychain".into(),
                set_at: Some(0),
                last_used: None,
                scope: SecretScope::Everybody,
                hosts: Vec::new(),
            },
            SecretView {
                last_used: Some(1_767_225_300_000),
                hosts: vec!["api.github.com".into(), "github.com".into()],
                ..of(SecretScope::Project { root: "/home/ada/shop-api".into() })
            },
            of(SecretScope::Box { id: "b0000000a".parse().unwrap() }),
            of(SecretScope::Box { id: "b000000ff".parse().unwrap() }),
            SecretView {
                id: "notion.token".parse().unwrap(),
                stored: false,
                used_by: vec!["Notion".into()],
                about: "An integration's secret".into(),
                kept_in: "keychain".into(),
                set_at: None,
                last_used: None,
                scope: SecretScope::Everybody,
                hosts: Vec::new(),
            },
        ];
        insta::assert_snapshot!(render(Look::PLAIN, &all, &samples::boxes(), samples::now()));
    }

    #[test]
    fn a_test_says_what_to_do() {
        let tried = Tried {
            level: Level::Warn,
            detail: "not logged in".into(),
            hint: Some("run gh auth login".into()),
        };
        insta::assert_snapshot!(render_tried(Look::PLAIN, "github", &tried));
    }
}
