//! Showing a session of a box in this terminal, or in another place of the terminal around it.

use crate::commands::destroy;
use crate::context::{Context, target};
use crate::error::{Exit, Outcome};
use crate::exec;
use crate::place::Elsewhere;
use crate::terminal;
use crate::wrapper::Left;
use host::client::Client;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
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
    let view: BoxView = client.call(&Request::FindBox { target: target(which) })?;
    let (code, left) = if terminal::both_ends() {
        exec::run_wrapped(&ctx.home, client, &view, argv)?
    } else {
        (exec::run(client, Target::id(&view.id), argv, true)?, None)
    };
    if left == Some(Left::ToDestroy) {
        return destroy::confirmed(ctx, &view);
    }
    if code == 0
        && let Some(found) = still_there(client, &view, session)
    {
        let again = again(&found, &reference(&view));
        ctx.ui.say(&format!("Session detached. Reattach with: {again}"));
    }
    Ok(Exit(u8::try_from(code).unwrap_or(1)))
}

fn still_there(client: &Client, view: &BoxView, session: &str) -> Option<SessionView> {
    let request = Request::Sessions { target: Target::id(&view.id) };
    let sessions: Vec<SessionView> = client.call(&request).unwrap_or_default();
    sessions.into_iter().find(|s| s.name == session)
}

/// What the person would type for this box: its number where they are, else its name.
fn reference(view: &BoxView) -> String {
    let here = crate::context::current_dir();
    if here.is_some_and(|here| here.starts_with(&view.project_root)) {
        return view.index.to_string();
    }
    view.name.to_string()
}

/// The command that shows a session again.
fn again(session: &SessionView, which: &str) -> String {
    let name = &session.name;
    if protocol::sessions::is_shell(name) {
        let label = name.strip_prefix("shell-").map(|l| format!(" -n {l}"));
        return format!("agentbox shell attach {which}{}", label.unwrap_or_default());
    }
    match session.agent {
        Some(agent) if agent.as_str() == name => format!("agentbox {name} attach {which}"),
        Some(agent) => {
            format!("agentbox {} attach {which} --session-name {name}", agent.as_str())
        }
        None => format!("agentbox attach {which} --session-name {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::sessions::Agent;

    #[test]
    fn each_session_is_found_again() {
        let of = |name: &str, agent| {
            let name = name.to_owned();
            again(&SessionView { name, agent, attached: 0, created_at: 1 }, "2")
        };
        assert_eq!(of("claude", Some(Agent::Claude)), "agentbox claude attach 2");
        let named = "agentbox codex attach 2 --session-name work";
        assert_eq!(of("work", Some(Agent::Codex)), named);
        assert_eq!(of("own", None), "agentbox attach 2 --session-name own");
        assert_eq!(of("shell", None), "agentbox shell attach 2");
        assert_eq!(of("shell-logs", None), "agentbox shell attach 2 -n logs");
    }
}
