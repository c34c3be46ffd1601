//! A yes-or-no to the person at the terminal. Everything but a plain yes is a no, but
//! where Enter says it too.

use crate::ui::Ui;
use std::io::{self, BufRead, Write};

/// Asks on standard error, reads one line. Enter, end of input and anything unclear mean no.
pub fn yes(ui: &Ui, question: &str) -> bool {
    answer(ui, question, "[y/N]").is_some_and(|line| is_yes(&line))
}

/// The same where nothing is lost by it: Enter means yes. End of input and anything unclear mean no.
pub fn not_no(ui: &Ui, question: &str) -> bool {
    answer(ui, question, "[Y/n]").is_some_and(|line| line == "\n" || is_yes(&line))
}

fn answer(ui: &Ui, question: &str, choices: &str) -> Option<String> {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{} {choices} ", ui.err.bold(question));
    let _ = stderr.flush();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok().map(|_| line)
}

/// Which of several; none when the person wants none of them.
pub fn one_of(ui: &Ui, question: &str, choices: &[String]) -> Option<usize> {
    let mut stderr = io::stderr().lock();
    for (at, choice) in choices.iter().enumerate() {
        let _ = writeln!(stderr, "  {}) {choice}", at + 1);
    }
    let _ = write!(stderr, "{} [1-{}] ", ui.err.bold(question), choices.len());
    let _ = stderr.flush();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    let chosen: usize = line.trim().parse().ok()?;
    (1..=choices.len()).contains(&chosen).then(|| chosen - 1)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_a_plain_yes_is_one() {
        for yes in ["y\n", "Y\n", " yes \n"] {
            assert!(super::is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yep\n", "ja\n", "y y\n"] {
            assert!(!super::is_yes(no), "{no:?}");
        }
    }
}
