//! Files of this computer that a project's `agentbox.yaml` wants in its boxes: the list, and the question.
//!
//! Asked here when a person sits at the terminal. Without one the host asks whoever watches, or says
//! what to set. The surprising thing: `--yes` never answers this one.

use crate::context::Context;
use crate::error::{CommandError, Kind};
use crate::size;
use crate::table;
use crate::ui::{Look, Ui};
use protocol::carry::{CarryBy, CarryChoice, CarryKind, CarryLine, CarryPlan};
use protocol::control::Request;
use protocol::text::visible;
use std::io::{self, BufRead, Write};

const YES: &str = "AGENTBOX_CARRY_YES";
const HOW: &str = "AGENTBOX_CARRY";

/// What to do with the files `agentbox.yaml` wants copied.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Copy the files that agentbox.yaml wants from this computer, without asking
    /// [env: AGENTBOX_CARRY_YES=1]
    #[arg(long)]
    carry_yes: bool,

    /// Make the box without those files, or ask about them even where a rule says yes
    /// [env: AGENTBOX_CARRY=skip]
    #[arg(long, value_name = "HOW")]
    carry: Option<How>,

    /// Make the box also when some of those files cannot be copied, and say which
    #[arg(long)]
    pub carry_best_effort: bool,

    /// It is a fork's
    #[arg(skip)]
    forked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    Skip,
    Ask,
}

/// What flags and variables say, before anybody is asked.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Copy(CarryBy),
    Skip,
    Ask,
    /// Also when a rule says yes.
    AskAnyway,
}

impl Flags {
    /// Copied with a fork, without a question.
    pub fn send() -> Self {
        Self { carry_yes: true, forked: true, ..Self::default() }
    }

    /// Left out, without a question.
    pub fn skip() -> Self {
        Self { carry: Some(How::Skip), ..Self::default() }
    }

    /// What a person wants, asked at the terminal when there is one and something to ask about.
    pub fn decide(
        &self,
        ctx: &Context,
        workspace: &str,
    ) -> Result<Option<CarryChoice>, CommandError> {
        match self.wish(|name| std::env::var(name).ok())? {
            Wish::Skip => Ok(Some(CarryChoice::Skip)),
            Wish::Copy(by) => {
                Ok(Some(CarryChoice::Copy { digest: None, by, remember: false, at: None }))
            }
            // The host asks whoever watches it.
            Wish::Ask if !ctx.ui.interactive => Ok(None),
            Wish::AskAnyway if !ctx.ui.interactive => Ok(Some(CarryChoice::Ask)),
            wish => ask(ctx, workspace, wish == Wish::AskAnyway),
        }
    }

    /// Leaving out wins over copying, a flag over its variable.
    fn wish(&self, env: impl Fn(&str) -> Option<String>) -> Result<Wish, CommandError> {
        let how = match (self.carry, env(HOW).filter(|how| !how.is_empty())) {
            (Some(how), _) => Some(how),
            (None, Some(how)) => Some(match how.as_str() {
                "skip" => How::Skip,
                "ask" => How::Ask,
                _ => {
                    return Err(CommandError::usage(format!("{HOW} is skip or ask, not {how:?}"))
                        .hint(format!("unset {HOW}, or set it to one of them")));
                }
            }),
            (None, None) => None,
        };
        let yes_by_env = env(YES).is_some_and(|yes| yes == "1") && self.carry != Some(How::Ask);
        Ok(match how {
            Some(How::Skip) => Wish::Skip,
            _ if self.forked => Wish::Copy(CarryBy::Fork),
            _ if self.carry_yes => Wish::Copy(CarryBy::Flag),
            _ if yes_by_env => Wish::Copy(CarryBy::Env),
            Some(How::Ask) => Wish::AskAnyway,
            None => Wish::Ask,
        })
    }
}

fn ask(ctx: &Context, workspace: &str, anyway: bool) -> Result<Option<CarryChoice>, CommandError> {
    let request = Request::CarryPlan { workspace: workspace.to_owned() };
    let plan: CarryPlan = ctx.client()?.call(&request)?;
    if plan.files.iter().all(|file| file.kind == CarryKind::Missing) {
        return Ok(None);
    }
    let known = plan.remembered.is_some();
    if let Some(rule) = plan.remembered.filter(|_| !anyway) {
        // The host looks again by itself, and asks when the list is another one by then.
        let rule = visible(&rule);
        ctx.ui
            .say(&format!("Files of this computer by a rule (`agentbox grants` shows it): {rule}"));
        return Ok(None);
    }
    ctx.ui.say("The project's agentbox.yaml wants files of this computer in the box:\n");
    ctx.ui.say(&render(&ctx.ui, &plan.files));
    if let Some(changes) = &plan.changes {
        ctx.ui.say(&format!("Since the list you agreed to: {}.\n", visible(changes)));
    }
    let digest = Some(plan.digest);
    let copy = |remember| CarryChoice::Copy { digest, by: CarryBy::Prompt, remember, at: None };
    match answer(&ctx.ui, known) {
        Answer::Copy => Ok(Some(copy(false))),
        Answer::Remember => Ok(Some(copy(true))),
        Answer::Without => Ok(Some(CarryChoice::Skip)),
        Answer::Cancel => Err(CommandError::new(Kind::Declined, "cancelled; no box was made")),
    }
}

/// The table, and under each line what to look at twice.
fn render(ui: &Ui, files: &[CarryLine]) -> String {
    let mut rows = Vec::with_capacity(files.len());
    for file in files {
        let bytes = match file.kind {
            CarryKind::Missing => "—".to_owned(),
            _ => size::bytes(file.bytes),
        };
        let user = file.user.map(|user| format!("user {user}"));
        let notes: Vec<String> = file.notes.iter().chain(&user).map(|note| visible(note)).collect();
        rows.push(vec![
            visible(&file.src),
            visible(&file.dest),
            bytes,
            file.mode.clone().unwrap_or_default(),
            notes.join(", "),
        ]);
    }
    // Nothing is cut: the end of a path may be what matters.
    let look = Look { width: None, ..ui.err };
    let mut text = table::render(look, &["FROM", "TO", "SIZE", "MODE", ""], &rows);
    for file in files {
        for warning in &file.warnings {
            let (mark, src) = (ui.err.bad("⚠"), visible(&file.src));
            text.push_str(&format!("{mark} {src}: {}\n", visible(warning)));
        }
    }
    text
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Copy,
    /// And the same list in every new box of the project.
    Remember,
    Without,
    Cancel,
}

fn answer(ui: &Ui, known: bool) -> Answer {
    let choices = if known {
        "[c]opy, [W]ithout these files, [q]uit"
    } else {
        "[c]opy, copy this list [a]lways in this project, [W]ithout these files, [q]uit"
    };
    loop {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{} {choices}: ", ui.err.bold("Copy them?"));
        let _ = stderr.flush();
        let mut line = String::new();
        // The end of input is no answer.
        if !io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            return Answer::Cancel;
        }
        if let Some(answer) = meant(&line) {
            return answer;
        }
    }
}

/// None when it is unclear. Enter alone never copies anything.
fn meant(line: &str) -> Option<Answer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "c" | "copy" | "y" | "yes" => Some(Answer::Copy),
        "a" | "always" => Some(Answer::Remember),
        "" | "w" | "without" | "skip" | "s" => Some(Answer::Without),
        "q" | "quit" | "n" | "no" | "cancel" => Some(Answer::Cancel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(flags: &Flags, set: &[(&str, &str)]) -> Wish {
        let env = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        flags.wish(env).unwrap()
    }

    #[test]
    fn yaml_13_52_what_flags_and_variables_say() {
        let none = Flags::default();
        let yes = Flags { carry_yes: true, ..Flags::default() };
        let both = Flags { carry_yes: true, carry: Some(How::Skip), ..Flags::default() };
        let asks = Flags { carry: Some(How::Ask), ..Flags::default() };
        assert_eq!(wish(&none, &[]), Wish::Ask);
        assert_eq!(wish(&none, &[(YES, "1")]), Wish::Copy(CarryBy::Env));
        assert_eq!(wish(&none, &[(YES, "0"), (HOW, "")]), Wish::Ask);
        assert_eq!(wish(&none, &[(YES, "1"), (HOW, "skip")]), Wish::Skip);
        assert_eq!(wish(&yes, &[]), Wish::Copy(CarryBy::Flag));
        assert_eq!(wish(&both, &[]), Wish::Skip);
        assert_eq!(wish(&Flags::send(), &[]), Wish::Copy(CarryBy::Fork));
        assert_eq!(wish(&Flags::skip(), &[(YES, "1")]), Wish::Skip);
        assert_eq!(wish(&asks, &[(YES, "1"), (HOW, "skip")]), Wish::AskAnyway);
        assert_eq!(wish(&none, &[(HOW, "ask")]), Wish::AskAnyway);
        assert!(none.wish(|_| Some("maybe".into())).is_err());
    }

    #[test]
    fn enter_is_careful() {
        assert_eq!(meant("\n"), Some(Answer::Without));
        assert_eq!(meant("Copy\n"), Some(Answer::Copy));
        assert_eq!(meant("always\n"), Some(Answer::Remember));
        assert_eq!(meant("q\n"), Some(Answer::Cancel));
        assert_eq!(meant("what\n"), None);
    }
}
