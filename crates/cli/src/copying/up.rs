//! A box that has to run for what is asked of it.

use crate::context::Context;
use crate::error::CommandError;
use host::client::Client;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{Request, Target};

/// The box a person means, running. One that sleeps is woken, with a word about it.
pub fn running(ctx: &Context, client: &Client, target: Target) -> Result<BoxView, CommandError> {
    let view: BoxView = client.call(&Request::FindBox { target })?;
    let doing = match view.state {
        BoxState::Paused if view.busy.is_none() => "is paused; waking it",
        BoxState::Stopped => "is stopped; starting it",
        BoxState::Missing => {
            let text = format!("the engine has nothing of box {} any more", view.name);
            return Err(CommandError::failed(text)
                .hint(format!("agentbox destroy {} forgets it", view.name)));
        }
        _ => return Ok(view),
    };
    ctx.ui.say(&format!("{} {doing}", view.name));
    Ok(client.call(&Request::StartBox { target: Target::id(&view.id) })?)
}
