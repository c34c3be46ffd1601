//! `agentbox drive`: an agent's or shell's terminal, worked by a program or from afar.
//!
//! What a terminal shows is the box's own word: it is bounded, and on its way to a person nothing in
//! it but colours is passed on as it is.

mod ansi;

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::in_box::in_box;
use crate::json;
use crate::time::parse_timeout;
use clap::Subcommand;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::ctl::paths::CTL;
use protocol::drive::{
    Act, Drive, LONGEST_TEXT, MOST_PRESSES, MOST_ROWS, NOT_IN_TIME, Screen, parse_keys,
};
use protocol::rpc::Envelope;
use protocol::sessions::{SessionView, is_shell};
use protocol::text::visible;
use std::io::Read;

/// See and work the terminal of an agent or a shell
///
/// For programs, and for people who are not in front of it. The session is the agent that was started
/// last, else the newest shell; --session names another. A box that does not run has none.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  agentbox drive snapshot fix-login                   what its agent shows
  agentbox drive prompt fix-login 'Run the tests'     type it, and Enter
  agentbox drive keypress fix-login '<Esc>' '<C-c>'
  agentbox drive wait fix-login --text 'done'         until that is on the screen

Exit codes: 1 when something did not come in time, 2 when there is no such session."
)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Snapshot(Snapshot),
    Keypress(Keypress),
    SendText(SendText),
    Prompt(Prompt),
    Wait(Wait),
    Resize(Resize),
}

/// Show what is on the screen
///
/// Control characters are made visible; with --ansi colours stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive snapshot fix-login
  agentbox drive snapshot fix-login --rows 500 --json")]
struct Snapshot {
    #[command(flatten)]
    which: Which,

    /// With its colours
    #[arg(long)]
    ansi: bool,

    /// So many lines, the newest, those above the screen among them [default: the screen]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ROWS)))]
    rows: Option<u32>,

    /// Say where the cursor is
    #[arg(long)]
    with_cursor: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// Press keys
///
/// Letters stand for themselves, keys with names are in angle brackets: <Enter> <Tab> <S-Tab> <Esc>
/// <Space> <BS> <Del> <Up> <Down> <Left> <Right> <Home> <End> <PageUp> <PageDown> <F1> to <F12>,
/// <C-x> with Ctrl, <M-x> with Alt. << is one <.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive keypress fix-login 'ls<Enter>'
  agentbox drive keypress fix-login '<Down>' '<Down>' '<Enter>' --delay 200")]
struct Keypress {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// Keys, one after the other
    #[arg(value_name = "KEYS", required = true)]
    keys: Vec<String>,

    /// Milliseconds between two keys
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay: u32,

    /// The session of exactly this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

/// Type a text and leave it there
///
/// As one paste, so that a line end in it sends nothing. Enter is not pressed: `agentbox drive prompt`
/// does that, too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive send-text fix-login 'not yet sent'
  agentbox drive send-text fix-login - < notes.md")]
struct SendText {
    #[command(flatten)]
    typed: Typed,
}

/// Type a text and press Enter
///
/// As one paste, so that a line end in it sends nothing; then Enter, which does. Between the two it
/// waits a little: a program that is still taking the paste would count Enter as a part of it. When
/// the text stays in the agent's input, give it more time with --delay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive prompt fix-login 'Run the tests'
  agentbox drive prompt fix-login - < task.md
  agentbox drive prompt fix-login - --delay 1000 < long-task.md")]
struct Prompt {
    #[command(flatten)]
    typed: Typed,

    /// Milliseconds between the text and Enter
    #[arg(long, value_name = "MS", default_value_t = 200)]
    delay: u32,
}

#[derive(Debug, clap::Args)]
struct Typed {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// The text; - reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,

    /// The session of exactly this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

/// Wait until a text is on the screen
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive wait fix-login --text 'Ready' --timeout 1m")]
struct Wait {
    #[command(flatten)]
    which: Which,

    /// What is waited for
    #[arg(long, value_name = "TEXT", required = true, allow_hyphen_values = true)]
    text: String,

    /// How long at most: 30s, 2m, or milliseconds
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_timeout)]
    timeout: u64,

    /// Print the screen as JSON
    #[arg(short, long)]
    json: bool,
}

/// Give the terminal another size
///
/// It keeps it until somebody attaches.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox drive resize fix-login 120 40")]
struct Resize {
    /// Number, name, id, unique id prefix, project/name or @project
    #[arg(value_name = "BOX")]
    which: String,

    /// Columns
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1000))]
    cols: u16,

    /// Rows
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1000))]
    rows: u16,

    /// The session of exactly this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// The session of exactly this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    match args.action {
        Action::Snapshot(args) => snapshot(ctx, args),
        Action::Keypress(args) => {
            let act = Act::Press { keys: keys(&args.keys)?, pause_ms: args.delay };
            done(ctx, Some(args.which), args.session.as_deref(), act)
        }
        Action::SendText(args) => type_in(ctx, args.typed, None),
        Action::Prompt(args) => type_in(ctx, args.typed, Some(args.delay)),
        Action::Wait(args) => wait(ctx, args),
        Action::Resize(args) => {
            let act = Act::Resize { cols: args.cols, rows: args.rows };
            done(ctx, Some(args.which), args.session.as_deref(), act)
        }
    }
}

fn keys(words: &[String]) -> Result<Vec<protocol::drive::Press>, CommandError> {
    let mut all = Vec::new();
    for word in words {
        let keys = parse_keys(word).map_err(|key| {
            CommandError::usage(format!("{} is no key", visible(&key)))
                .hint("agentbox drive keypress --help lists them; << is one <")
        })?;
        all.extend(keys);
    }
    if all.len() > MOST_PRESSES {
        let text = format!("{} keys are too many; at most {MOST_PRESSES} at once", all.len());
        return Err(CommandError::usage(text).hint("agentbox drive send-text types long texts"));
    }
    Ok(all)
}

/// With a pause, Enter follows after so many milliseconds.
fn type_in(ctx: &Context, args: Typed, enter_after: Option<u32>) -> Outcome {
    let text = match args.text.as_str() {
        "-" => {
            let mut text = String::new();
            let most = u64::try_from(LONGEST_TEXT).unwrap_or(u64::MAX) + 1;
            std::io::stdin().lock().take(most).read_to_string(&mut text)?;
            text.trim_end_matches('\n').to_owned()
        }
        text => text.to_owned(),
    };
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(CommandError::usage("a text of 1 byte to 64 KB is needed")
            .hint("put longer ones into a file of the box with agentbox cp, and name it"));
    }
    let then_enter = enter_after.is_some();
    let act = Act::Paste { text, then_enter, pause_ms: enter_after.unwrap_or_default() };
    done(ctx, Some(args.which), args.session.as_deref(), act)
}

fn snapshot(ctx: &Context, args: Snapshot) -> Outcome {
    let act = Act::Look { ansi: args.ansi, rows: args.rows };
    let answer = ask(ctx, args.which.which, args.which.session.as_deref(), act)?;
    let screen = screen(&answer)?;
    if args.json {
        json::print(&ctx.ui, "screen", &screen)?;
    } else {
        ctx.ui.out(&shown(&screen, args.ansi))?;
        if args.with_cursor {
            let (row, column) = (screen.cursor_y + 1, screen.cursor_x + 1);
            ctx.ui.say(&format!("cursor  row {row}, column {column}"));
        }
    }
    Ok(Exit::OK)
}

fn wait(ctx: &Context, args: Wait) -> Outcome {
    let act = Act::Await { text: args.text.clone(), within_ms: args.timeout };
    let answer = ask(ctx, args.which.which, args.which.session.as_deref(), act)?;
    if answer.exit_code == NOT_IN_TIME {
        let text = format!("{:?} was not on the screen within {} ms", args.text, args.timeout);
        return Err(CommandError::failed(visible(&text))
            .hint("agentbox drive snapshot shows what is; --timeout waits longer"));
    }
    let screen = screen(&answer)?;
    if args.json {
        json::print(&ctx.ui, "screen", &screen)?;
    }
    Ok(Exit::OK)
}

fn done(ctx: &Context, which: Option<String>, session: Option<&str>, act: Act) -> Outcome {
    succeeded(&ask(ctx, which, session, act)?)?;
    Ok(Exit::OK)
}

fn ask(
    ctx: &Context,
    which: Option<String>,
    session: Option<&str>,
    act: Act,
) -> Result<Envelope, CommandError> {
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(which) })?;
    let target = Target::id(&view.id);
    let session = choose(&client, &view, session)?;
    let line = serde_json::to_vec(&Drive { session, act });
    let mut line = line.map_err(|e| CommandError::failed(e.to_string()))?;
    line.push(b'\n');
    in_box(&client, target, vec![CTL.to_owned(), "drive".to_owned()], &line)
}

/// The session of that name, else the agent started last, else the newest shell.
fn choose(client: &Client, view: &BoxView, named: Option<&str>) -> Result<String, CommandError> {
    let all: Vec<SessionView> = client.call(&Request::Sessions { target: Target::id(&view.id) })?;
    let newest = |fits: &dyn Fn(&&SessionView) -> bool| {
        all.iter().filter(fits).max_by_key(|s| s.created_at).map(|s| s.name.clone())
    };
    let found = match named {
        Some(name) => newest(&|s| s.name == name),
        None => newest(&|s| s.agent.is_some()).or_else(|| newest(&|s| is_shell(&s.name))),
    };
    found.ok_or_else(|| {
        let what = named.map_or_else(|| "agent or shell".to_owned(), |n| format!("session {n:?}"));
        let text = format!("there is no {} in {}", visible(&what), view.name);
        let error = CommandError::usage(text);
        match all.as_slice() {
            [] => error.hint(format!("agentbox claude start {} starts one", view.name)),
            all => {
                let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
                error.hint(format!("there is {}", names.join(", ")))
            }
        }
    })
}

fn succeeded(answer: &Envelope) -> Result<(), CommandError> {
    if answer.exit_code == 0 {
        return Ok(());
    }
    let said = answer.stderr.lines().map(visible).collect::<Vec<_>>().join("\n");
    Err(CommandError::failed(if said.is_empty() { "the box did not do it".into() } else { said })
        .hint("agentbox drive needs an image of this version; agentbox shell ls lists sessions"))
}

fn screen(answer: &Envelope) -> Result<Screen, CommandError> {
    succeeded(answer)?;
    serde_json::from_str(&answer.stdout).map_err(|e| {
        CommandError::failed(format!("the box's answer cannot be read: {e}"))
            .hint("agentbox attach shows the session itself")
    })
}

fn shown(screen: &Screen, ansi: bool) -> String {
    let line = |text: &String| {
        let text = if ansi { ansi::colours_only(text) } else { visible(text) };
        text.trim_end().to_owned() + "\n"
    };
    let mut text: String = screen.lines.iter().map(line).collect();
    if ansi {
        text.push_str(ansi::PLAIN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_cannot_take_over_the_terminal() {
        let lines = vec!["\x1b[31mred\x1b[0m \x1b]0;title\x07".to_owned(), "b\u{202e}c  ".into()];
        let session = "claude".to_owned();
        let screen = Screen { session, lines, cols: 80, rows: 2, cursor_x: 0, cursor_y: 0 };
        let plain = shown(&screen, false);
        assert!(!plain.contains('\x1b') && plain.ends_with("b⟨U+202E⟩c\n"), "{plain:?}");
        let coloured = shown(&screen, true);
        assert!(coloured.starts_with("\x1b[31mred\x1b[0m \\x1b]0;title"), "{coloured:?}");
    }

    #[test]
    fn what_is_no_key_is_said() {
        let words = |all: &[&str]| all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(keys(&words(&["ls<Enter>", "<C-c>"])).unwrap().len(), 3);
        let error = keys(&words(&["<Entre>"])).unwrap_err();
        assert_eq!(error.error, "<Entre> is no key");
    }
}
