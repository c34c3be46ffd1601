//! `agentbox egress edit`: one of the person's policies in their editor.
//!
//! The host takes the new text when it is a policy and the file is still the one that was opened. A mistake
//! is shown, and the editor offered again with what was written.

use super::{agents, told_rejected};
use crate::ask;
use crate::context::{Context, current_dir};
use crate::editor::Draft;
use crate::error::{CommandError, Exit, Kind, Outcome};
use crate::json;
use host::client::Client;
use protocol::control::Request;
use protocol::egress::{EgressFile, EgressPlace, EgressReloaded};
use protocol::sessions::Agent;
use protocol::text::visible;

/// What an empty file begins with.
const BEGUN: &str = "\
# What boxes may reach. `agentbox egress policy show` shows what all files come to.
#
# services: [github]                  # hosts by a name of the catalog
# domains:
# - docs.example.com                  # all of a host, by TLS
# - host: api.example.com
#   rules:
#   - { methods: [GET], path: { prefix: /v1/ } }
#   - { action: ask, methods: [POST], path: { exact: /v1/jobs } }
# deny:
# - { host: '*.paste.example', reason: no paste sites }
";

/// Open one of your policies in your editor; it is checked before it counts
///
/// EDITOR or VISUAL names the editor; vi without them. What is no policy is not written: its mistakes are
/// shown, and you can go on editing. Boxes follow a change at once. Exits with 2 when the text is no policy
/// or a box cannot follow it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox egress edit                    for the project in this folder
  agentbox egress edit --global           for every project
  agentbox egress edit --agent claude     for boxes of the project in which Claude works")]
pub struct Args {
    /// Your file for the project in this folder [default]
    #[arg(long, conflicts_with = "global")]
    project: bool,

    /// Your file for every project
    #[arg(long)]
    global: bool,

    /// The one that counts only where this agent works
    #[arg(long, value_name = "AGENT", value_parser = agents())]
    agent: Option<Agent>,

    /// Print what became of the boxes' policies as JSON
    #[arg(short, long)]
    json: bool,
}

/// A file of the person's, as requests name it.
struct Which {
    place: EgressPlace,
    agent: Option<Agent>,
    cwd: Option<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    // A project is what is meant without a word.
    let _ = args.project;
    let which = Which {
        place: if args.global { EgressPlace::Global } else { EgressPlace::Project },
        agent: args.agent,
        cwd: current_dir().map(|here| here.to_string_lossy().into_owned()),
    };
    let client = ctx.client()?;
    let Which { place, agent, cwd } = &which;
    let request = Request::EgressFile { place: *place, agent: *agent, cwd: cwd.clone() };
    let file: EgressFile = client.call(&request)?;
    let given = if file.digest.is_some() { file.text.as_str() } else { BEGUN };
    let draft = Draft::of("egress.yaml", given)?;
    let Some(reloaded) = written(ctx, &client, &which, &file, given, draft)? else {
        ctx.ui.say("nothing was changed");
        return Ok(Exit::OK);
    };
    ctx.ui.say(&format!("{} is changed", visible(&file.path)));
    if args.json {
        json::print(&ctx.ui, "reloaded", &reloaded)?;
    }
    Ok(if told_rejected(&ctx.ui, &reloaded) { Exit(2) } else { Exit::OK })
}

/// Until it is taken, or the person gives up. None when not a byte was changed.
fn written(
    ctx: &Context,
    client: &Client,
    which: &Which,
    file: &EgressFile,
    given: &str,
    draft: Draft,
) -> Result<Option<Vec<EgressReloaded>>, CommandError> {
    loop {
        draft.open()?;
        let text = match draft.text() {
            Ok(text) if text == given => return Ok(None),
            Ok(text) => text,
            Err(why) => return Err(draft.kept(why.into())),
        };
        let request = Request::WriteEgressFile {
            place: which.place,
            agent: which.agent,
            cwd: which.cwd.clone(),
            text,
            opened: file.digest.clone(),
        };
        let why = match client.call(&request) {
            Ok(reloaded) => return Ok(Some(reloaded)),
            Err(why) => CommandError::from(why),
        };
        // Only a mistake in the text is mended by editing it.
        if why.kind != Kind::Usage || !ctx.ui.interactive {
            return Err(draft.kept(why));
        }
        ctx.ui.report(&why);
        if !ask::not_no(&ctx.ui, "Edit it again?") {
            return Err(draft.kept(CommandError::usage("it is no policy")));
        }
    }
}
