//! `agentbox logs`: what the first process of a box said, or one of its tasks and services.
//!
//! A box writes its log itself. On a terminal its control characters are made visible; a pipe gets
//! the bytes as they are. Nothing is kept: a line is printed and forgotten.

use crate::commands::shell::names_a_box;
use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::in_box;
use crate::interrupt::Interrupt;
use host::client::{Client, Incoming};
use protocol::control::Request;
use protocol::text::visible;
use std::io::{self, IsTerminal, Write};

/// A line without an end is printed in pieces of this size.
const LONGEST: usize = 16 * 1024;

/// Show the log of a box
///
/// It is what the box's first process said: how it came up, what it looked after, how it ended. A box
/// that does not run has one, too. With a task or a service of agentbox.yaml it is what that one said;
/// the box is brought up for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox logs fix-login        the last 200 lines
  agentbox logs fix-login -f     and what comes, until Ctrl-C
  agentbox logs fix-login web -f what the service web says
  agentbox logs web --daemon     of the box web, whatever services there are
  agentbox logs -n 1000 > box.log")]
pub struct Args {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// A task or a service of the box's agentbox.yaml
    #[arg(value_name = "UNIT")]
    unit: Option<String>,

    /// What the box's first process said, and nothing else: a word is then the box
    #[arg(long, conflicts_with = "unit")]
    daemon: bool,

    /// How many lines, the newest
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 200)]
    tail: u32,

    /// Stay and show what comes
    #[arg(short, long)]
    follow: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let client = ctx.client()?;
    let request = match (args.which, args.unit) {
        (Some(word), None) if !args.daemon && !names_a_box(&client, &word)? => {
            of_unit(None, &word, args.tail, args.follow)
        }
        (which, Some(unit)) => of_unit(which, &unit, args.tail, args.follow),
        (which, None) => {
            Request::Logs { target: target(which), tail: args.tail, follow: args.follow }
        }
    };
    let unit = matches!(request, Request::Exec(_));
    let ended = show(&Interrupt::install()?, &client, &request, unit)?;
    Ok(match ended["exitCode"].as_i64() {
        Some(1..) => Exit::FAILED,
        _ => Exit::OK,
    })
}

/// Passes on what a call says as it comes, complaints `apart` from the rest; what it answers at last.
pub fn show(
    interrupt: &Interrupt,
    client: &Client,
    request: &Request,
    apart: bool,
) -> Result<serde_json::Value, CommandError> {
    let mut out = Printer::new(io::stdout().is_terminal());
    let mut err =
        Printer::new(if apart { io::stderr().is_terminal() } else { io::stdout().is_terminal() });
    let mut unwritable = None;
    let ended: Result<serde_json::Value, CommandError> =
        interrupt.call(client, request, |incoming| {
            if unwritable.is_some() {
                return;
            }
            let written = match incoming {
                Incoming::Stdout(bytes) => out.print(&mut io::stdout().lock(), &bytes),
                Incoming::Stderr(bytes) if apart => err.print(&mut io::stderr().lock(), &bytes),
                // The first process complains; to the person it is all one log.
                Incoming::Stderr(bytes) => err.print(&mut io::stdout().lock(), &bytes),
                Incoming::Event(_) => Ok(()),
            };
            if let Err(error) = written {
                unwritable = Some(error);
                interrupt.hang_up();
            }
        });
    match unwritable {
        Some(error) => Err(error.into()),
        None => ended,
    }
}

fn of_unit(which: Option<String>, unit: &str, tail: u32, follow: bool) -> Request {
    let tail = tail.to_string();
    let mut words = vec!["logs", "-n", &tail];
    words.extend(follow.then_some("-f"));
    words.push(unit);
    Request::Exec(in_box::ctl(target(which), &words))
}

/// Passes lines on, harmless ones where a person reads them.
struct Printer {
    terminal: bool,
    begun: Vec<u8>,
}

impl Printer {
    fn new(terminal: bool) -> Self {
        Self { terminal, begun: Vec::new() }
    }

    fn print(&mut self, to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        if !self.terminal {
            to.write_all(bytes)?;
            return to.flush();
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.begun.extend_from_slice(piece);
            if self.begun.ends_with(b"\n") || self.begun.len() >= LONGEST {
                let line = std::mem::take(&mut self.begun);
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches(['\n', '\r']).replace('\t', "    ");
                writeln!(to, "{}", visible(&line))?;
            }
        }
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_cannot_take_over_the_terminal() {
        let mut shown = Vec::new();
        let mut printer = Printer::new(true);
        printer.print(&mut shown, b"agentbox init: rea").unwrap();
        printer.print(&mut shown, b"dy\nevil \x1b]0;title\x07\r\n").unwrap();
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.starts_with("agentbox init: ready\nevil "), "{shown:?}");
        assert!(!shown.contains('\x1b') && !shown.contains('\x07'), "{shown:?}");
        let mut raw = Vec::new();
        Printer::new(false).print(&mut raw, b"\x1b[1m\n").unwrap();
        assert_eq!(raw, b"\x1b[1m\n");
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let mut shown = Vec::new();
        let mut printer = Printer::new(true);
        for _ in 0..100 {
            printer.print(&mut shown, &[b'x'; 1024]).unwrap();
        }
        assert!(printer.begun.len() < LONGEST && shown.len() > 80 * 1024);
    }
}
