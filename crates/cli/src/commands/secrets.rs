//! `agentbox secrets`: credentials for the services boxes use, kept in the keychain.
//!
//! A value comes by standard input or a hidden prompt, never by the command line, where every
//! process of the computer could read it; and it never comes back.

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use crate::time;
use crate::ui::Look;
use clap::Subcommand;
use jiff::Timestamp;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use protocol::SecretId;
use protocol::control::{Level, Request};
use protocol::integrations::{SecretText, SecretView, Tried};
use protocol::text::visible;
use std::io::{self, IsTerminal, Read, Write};

/// The longest value that is read.
const LONGEST: u64 = 64 * 1024;

/// Keep credentials for the services boxes use
///
/// Values are kept in the keychain of this computer (or in files, when `secrets.backend: file` is
/// set) and are used by the host alone: a box never sees one. With none stored, the host program's
/// own login is used.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  agentbox secrets                          what can be stored, and what is
  agentbox secrets set notion.token         asks for the value without showing it
  pass show notion | agentbox secrets set notion.token
  agentbox secrets test notion.token        does the service take it?"
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
    },
    /// Remove a stored value
    Rm {
        /// The credential's name
        id: SecretId,
        /// Don't ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Try whether the service takes it
    Test {
        /// The credential's name
        id: SecretId,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        None => list(ctx, args.json),
        Some(Action::List { json }) => list(ctx, json),
        Some(Action::Set { id }) => set(ctx, id),
        Some(Action::Rm { id, yes }) => remove(ctx, id, yes),
        Some(Action::Test { id, json }) => {
            let tried: Tried = ctx.client()?.call(&Request::TestSecret { id: id.clone() })?;
            tell(ctx, id.as_str(), &tried, json)
        }
    }
}

fn list(ctx: &Context, as_json: bool) -> Outcome {
    let all: Vec<SecretView> = ctx.client()?.call(&Request::Secrets)?;
    if as_json {
        json::print(&ctx.ui, "secrets", &all)?;
    } else {
        ctx.ui.out(&render(ctx.ui.out, &all, Timestamp::now()))?;
    }
    Ok(Exit::OK)
}

fn render(look: Look, all: &[SecretView], now: Timestamp) -> String {
    let row = |s: &SecretView| {
        let state =
            if s.stored { format!("in the {}", s.kept_in) } else { "not stored".to_owned() };
        let used = match (s.stored, s.last_used) {
            (true, Some(at)) => time::ago(now, at),
            (true, None) => "never".to_owned(),
            (false, _) => "-".to_owned(),
        };
        vec![s.id.to_string(), visible(&s.used_by.join(", ")), state, used, visible(&s.about)]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    table::render(look, &["NAME", "FOR", "STORED", "LAST USED", "WHAT IT IS"], &rows)
}

fn set(ctx: &Context, id: SecretId) -> Outcome {
    // Before the value: a misspelt name should not cost a typed secret.
    let client = ctx.client()?;
    let known: Vec<SecretView> = client.call(&Request::Secrets)?;
    if !known.iter().any(|s| s.id == id) {
        let names: Vec<_> = known.iter().map(|s| s.id.to_string()).collect();
        return Err(CommandError::usage(format!("nothing here uses a credential named {id}"))
            .hint(format!("there are {}", names.join(", "))));
    }
    let value = read_value(&id)?;
    client.call::<()>(&Request::SetSecret { id: id.clone(), value })?;
    ctx.ui.out(&format!("stored  {id}\n"))?;
    ctx.ui.say(&format!("hint: agentbox secrets test {id} tries it"));
    Ok(Exit::OK)
}

fn remove(ctx: &Context, id: SecretId, yes: bool) -> Outcome {
    if !yes && !ctx.ui.interactive {
        return Err(CommandError::usage("nobody is there to be asked; nothing was removed")
            .hint(format!("agentbox secrets rm {id} -y")));
    }
    if !yes && !ask::yes(&ctx.ui, &format!("Remove {id} for good?")) {
        ctx.ui.say("Kept.");
        return Ok(Exit::OK);
    }
    if ctx.client()?.call::<bool>(&Request::RemoveSecret { id: id.clone() })? {
        ctx.ui.out(&format!("removed  {id}\n"))?;
        return Ok(Exit::OK);
    }
    Err(CommandError::usage(format!("{id} is not stored")).hint("agentbox secrets lists what is"))
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
        stdin.lock().take(LONGEST + 1).read_to_string(&mut text)?;
    }
    let value = text.strip_suffix('\n').unwrap_or(&text);
    let value = value.strip_suffix('\r').unwrap_or(value);
    if value.is_empty() {
        return Err(CommandError::usage("no value was given; nothing was stored")
            .hint("type it at the question, or send it on standard input"));
    }
    if value.contains(['\n', '\r']) {
        return Err(CommandError::usage("the value has more than one line; nothing was stored")
            .hint("store the line with the credential alone"));
    }
    if value.len() as u64 > LONGEST {
        return Err(CommandError::usage("the value is longer than 64 KiB; nothing was stored")
            .hint("a credential is shorter; look whether a whole file was sent"));
    }
    Ok(SecretText(value.to_owned()))
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
            },
            SecretView {
                id: "notion.token".parse().unwrap(),
                stored: false,
                used_by: vec!["Notion".into()],
                about: "An integration's secret".into(),
                kept_in: "keychain".into(),
                set_at: None,
                last_used: None,
            },
        ];
        insta::assert_snapshot!(render(Look::PLAIN, &all, samples::now()));
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
