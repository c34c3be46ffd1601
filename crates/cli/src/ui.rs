//! Where text goes and how it looks: data to standard output, talk to standard error.
//!
//! Colour only on terminals, off with `NO_COLOR`, and never the only signal. Commands render
//! to strings and hand them over, so what they print can be tested without a terminal.

use crate::error::CommandError;
use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, IsTerminal, Write};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// How one stream is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub color: bool,
    /// Columns of the terminal; none when it is not one and lines may be as long as they are.
    pub width: Option<usize>,
}

impl Look {
    #[cfg(test)]
    pub const PLAIN: Look = Look { color: false, width: Some(80) };

    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub fn warn(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    pub fn bad(self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub fn hint(self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[derive(Debug, Clone)]
pub struct Ui {
    pub out: Look,
    pub err: Look,
    /// A person can answer on standard input.
    pub interactive: bool,
}

// Every word goes through the one `Ui`, so that a command without it cannot talk.
#[allow(clippy::unused_self)]
impl Ui {
    pub fn from_environment(choice: ColorChoice) -> Self {
        let out = io::stdout().is_terminal();
        let err = io::stderr().is_terminal();
        let look = |terminal: bool, width: Option<usize>| Look {
            color: wants_color(choice, terminal),
            width: terminal.then_some(width.unwrap_or(80)),
        };
        Self {
            out: look(out, columns(io::stdout())),
            err: look(err, columns(io::stderr())),
            interactive: io::stdin().is_terminal() && err,
        }
    }

    /// Data. The text brings its own line ends.
    pub fn out(&self, text: &str) -> Result<(), CommandError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Talk, one or more lines. A closed standard error is nobody's problem.
    pub fn say(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    pub fn hint(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.hint("hint:")));
    }

    pub fn warn(&self, text: &str) {
        self.say(&format!("{} {text}", self.err.warn("warning:")));
    }

    pub fn report(&self, error: &CommandError) {
        use crate::error::Kind;
        match error.kind {
            Kind::ReaderLeft => return,
            Kind::Interrupted | Kind::Declined => self.say(&error.error),
            _ => self.say(&format!("{} {}", self.err.bad("error:"), error.error)),
        }
        for hint in &error.hints {
            self.hint(hint);
        }
    }
}

fn wants_color(choice: ColorChoice, terminal: bool) -> bool {
    let refused = || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !refused(),
    }
}

fn columns(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let width = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    width.filter(|w| *w > 0).map(|w| w.max(20))
}
