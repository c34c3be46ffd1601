//! What a box that was down takes over of your newer work, told before an agent starts in it.

use crate::context::{Context, target};
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::resync::Resynced;
use protocol::text::visible;

/// Files that are named one by one.
const SHOWN: usize = 20;

/// Has the box take over what is new, and says what came of it. An agent works without it, too, so
/// what fails is only told. What the agent should know, when it should know something.
pub fn before_an_agent(ctx: &Context, client: &Client, view: &BoxView) -> Option<String> {
    let request = Request::Resync { target: target(Some(view.id.to_string())) };
    match client.call::<Resynced>(&request) {
        Ok(told) => {
            for line in lines(&told) {
                ctx.ui.say(&line);
            }
            for_the_agent(&told)
        }
        Err(error) => {
            let why = visible(&error.to_string());
            ctx.ui.say(&format!("warning: the box did not take over what is new here: {why}"));
            None
        }
    }
}

fn counted(count: u32, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    }
}

/// For the person.
pub fn lines(told: &Resynced) -> Vec<String> {
    let new = [
        counted(told.commits, "commit", "commits"),
        counted(told.files, "uncommitted file", "uncommitted files"),
        counted(told.carried, "carried entry", "carried entries"),
    ];
    let new: Vec<String> = new.into_iter().flatten().collect();
    let mut lines = Vec::new();
    if !new.is_empty() {
        lines.push(format!("The box took over {} of this computer", new.join(" and ")));
    }
    if !told.kept.is_empty() {
        lines.push("These differ and stay as the box has them:".to_owned());
        lines.extend(names(told));
    }
    lines.extend(told.left.iter().map(|why| format!("warning: left as it is: {}", visible(why))));
    lines
}

fn names(told: &Resynced) -> Vec<String> {
    let shown = told.kept.iter().take(SHOWN).map(|name| format!("  {}", visible(name)));
    let rest = told.kept.len().saturating_sub(SHOWN);
    shown.chain((rest > 0).then(|| format!("  and {rest} more"))).collect()
}

/// As its first turn: what both sides changed is for whoever knows the work.
fn for_the_agent(told: &Resynced) -> Option<String> {
    if told.kept.is_empty() {
        return None;
    }
    Some(format!(
        "While this box was down, the project went on outside of it. What is new was merged into the \
         workspace. These files were changed on both sides and are as the box had them:\n{}\nLook \
         whether they still fit the rest, mend what does not, and say what you did.",
        names(told).join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_over_and_what_was_kept_is_told() {
        assert!(lines(&Resynced::default()).is_empty());
        assert_eq!(for_the_agent(&Resynced::default()), None);
        let told = Resynced {
            commits: 1,
            files: 3,
            carried: 1,
            kept: (0..22).map(|n| format!("src/{n}\u{1b}")).collect(),
            left: vec!["api: it is not on its branch".into()],
        };
        let text = lines(&told).join("\n");
        assert!(
            text.starts_with(
                "The box took over 1 commit and 3 uncommitted files and 1 carried entry"
            ),
            "{text}"
        );
        assert!(text.contains("src/19") && text.contains("and 2 more"), "{text}");
        assert!(text.contains("warning: left as it is: api:"), "{text}");
        let prompt = for_the_agent(&told).unwrap();
        assert!(
            prompt.contains("src/0") && !prompt.contains('\u{1b}') && !prompt.contains("src/20")
        );
    }
}
