//! Showing a session of a box in this terminal, or in another place of the terminal around it.

use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::exec;
use crate::place::Elsewhere;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::ctl::paths;
use protocol::sessions::SessionView;

/// Shows a session where it is wanted: here, or in a place of its own.
pub fn show_in(
    ctx: &Context,
    client: &Client,
    place: Option<&Elsewhere>,
    which: Option<String>,
    session: &str,
) -> Outcome {
    let Some(place) = place else { return show(ctx, client, which, session) };
    // The other place is not in this folder's project for sure: the box goes by its id.
    let view: BoxView = client.call(&Request::FindBox { target: target(which.clone()) })?;
    let id = view.id.to_string();
    let named = format!("--session-name={session}");
    match place.show(ctx, &["attach", &id, &named, "--inline"])? {
        Some(exit) => Ok(exit),
        None => show(ctx, client, which, session),
    }
}

/// Hands the terminal to a session until it is left or ends. Ends as the session's program did, or
/// with 0 when it was left.
pub fn show(ctx: &Context, client: &Client, which: Option<String>, session: &str) -> Outcome {
    let term = std::env::var("TERM").unwrap_or_default();
    let mut argv = vec![paths::CTL, "session", "attach", session];
    if !term.is_empty() && !term.starts_with('-') {
        argv.extend(["--term", &term]);
    }
    let argv = argv.into_iter().map(str::to_owned).collect();
    let code = exec::run(client, target(which.clone()), argv, true)?;
    if code == 0 && still_there(client, which.clone(), session) {
        let again = match reference(client, which) {
            Some(word) => format!(" {word}"),
            None => String::new(),
        };
        let command = if protocol::sessions::is_shell(session) {
            let label = session.strip_prefix("shell-").map(|l| format!(" -n {l}"));
            format!("agentbox shell attach{again}{}", label.unwrap_or_default())
        } else {
            format!("agentbox attach{again} --session-name {session}")
        };
        ctx.ui.say(&format!("Session detached. Reattach with: {command}"));
    }
    Ok(Exit(u8::try_from(code).unwrap_or(1)))
}

fn still_there(client: &Client, which: Option<String>, session: &str) -> bool {
    let request = Request::Sessions { target: target(which) };
    let sessions: Vec<SessionView> = client.call(&request).unwrap_or_default();
    sessions.iter().any(|s| s.name == session)
}

/// What the person would type for this box again: its number where they are, else its name.
fn reference(client: &Client, which: Option<String>) -> Option<String> {
    if which.is_some() {
        return which;
    }
    let here = crate::context::current_dir()?;
    let boxes: Vec<BoxView> = client.call(&Request::Boxes).ok()?;
    let mine = boxes.iter().filter(|b| here.starts_with(&b.project_root));
    mine.map(|b| b.index.to_string()).next()
}
