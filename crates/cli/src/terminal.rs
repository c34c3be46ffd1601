//! The person's own terminal while it belongs to a program in a box.

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Stdin};

/// Raw mode until dropped: every key goes to the box, Ctrl-C included.
pub struct Raw {
    stdin: Stdin,
    before: Termios,
}

impl Raw {
    pub fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // What was typed for the session is not for the shell that comes next.
        let _ = tcsetattr(&self.stdin, SetArg::TCSAFLUSH, &self.before);
    }
}

/// Whether a person sits at both ends.
pub fn both_ends() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Columns and rows.
pub fn size() -> (u16, u16) {
    // A terminal nobody has sized yet says zero, which programs in the box take at its word.
    let known = terminal_size::terminal_size_of(io::stdout()).map(|(w, h)| (w.0, h.0));
    known.filter(|(w, h)| *w > 0 && *h > 0).unwrap_or((80, 24))
}
