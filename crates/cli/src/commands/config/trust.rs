//! `agentbox config trust-workspace`: a yes to one text of the project's agentbox.yaml.
//!
//! What is shown and what is trusted is the same read of the file: the yes goes with its digest.

use super::view::Place;
use crate::ask;
use crate::context::{Context, current_dir};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use host::{Trust, trust_of};
use project::FILE_NAME;
use protocol::control::Request;
use protocol::integrations::Layer;
use protocol::text::visible;
use settings::workspace::TRUSTED;
use std::fmt::Write;

/// Settings a person can look at in one go.
const MOST: usize = 20;

pub fn run(ctx: &Context, revoke: bool, digest: Option<String>, as_json: bool) -> Outcome {
    let place = Place::files(ctx)?;
    if revoke {
        set(ctx, None)?;
        return told(ctx, &place, as_json, "it can only tighten");
    }
    let trust = look(ctx, &place)?;
    if digest.as_ref().is_some_and(|digest| *digest != trust.digest) {
        let text = format!("{FILE_NAME} is not the file of this digest; nothing was changed");
        return Err(CommandError::failed(text)
            .hint("agentbox config trust-workspace shows what it asks for now"));
    }
    if trust.trusted || (as_json && digest.is_none()) {
        return told(ctx, &place, as_json, "it is trusted as it is");
    }
    if !trust.needed && digest.is_none() {
        ctx.ui.say(&format!("{FILE_NAME} asks for nothing that needs your trust"));
        return Ok(Exit::OK);
    }
    if trust.sets.len() > MOST {
        let text =
            format!("{FILE_NAME} asks for {} settings, which nobody reads", trust.sets.len());
        return Err(CommandError::failed(text)
            .hint("agentbox config set KEY VALUE --project sets what you want of it yourself"));
    }
    if digest.is_none() {
        ctx.ui.say(&asks(&trust));
        if !ctx.ui.interactive {
            return Err(CommandError::usage("trust needs a yes, and nobody can be asked here")
                .hint(format!("--digest {} says yes to this very file", trust.digest)));
        }
        if !ask::yes(&ctx.ui, &format!("Let {FILE_NAME}, as it is now, set this?")) {
            ctx.ui.say("nothing was changed");
            return Ok(Exit::OK);
        }
    }
    set(ctx, Some(trust.digest))?;
    told(ctx, &place, as_json, "it is trusted as it is, and no other text of it")
}

fn look(ctx: &Context, place: &Place) -> Result<Trust, CommandError> {
    let bad = |why: String| {
        CommandError::usage(format!("{FILE_NAME} cannot be read: {}", visible(&why)))
            .hint("agentbox validate checks it")
    };
    let trust = trust_of(&ctx.home, &place.root).map_err(bad)?;
    let shown = visible(&place.workspace().display().to_string());
    trust.ok_or_else(|| {
        CommandError::failed(format!("there is no {shown}"))
            .hint("agentbox init writes one; run this in the project's folder")
    })
}

/// Nothing is cut: the end of an address may be what matters.
fn asks(trust: &Trust) -> String {
    let mut text = format!(
        "{} asks for more than your settings allow. It would set, for this project:\n",
        visible(&trust.file.display().to_string())
    );
    for one in &trust.sets {
        let own = one.own.as_deref().unwrap_or("nothing");
        let about = settings::registry::find(&one.key).map_or("", |key| key.about);
        let _ = writeln!(text, "\n  {}: {}", visible(&one.key), visible(&one.value));
        let _ = writeln!(text, "    yours: {}", visible(own));
        let _ = writeln!(text, "    {about}");
    }
    text + "\nA box can write this file, through what you merge. Your yes is for this project and for the file \
            as it is now."
}

fn set(ctx: &Context, value: Option<String>) -> Result<(), CommandError> {
    let cwd = current_dir().map(|here| here.to_string_lossy().into_owned());
    let (key, layer) = (TRUSTED.to_owned(), Layer::Project);
    Ok(ctx.client()?.call::<()>(&Request::SetSetting { key, value, layer, cwd })?)
}

fn told(ctx: &Context, place: &Place, as_json: bool, text: &str) -> Outcome {
    if as_json {
        let trust = trust_of(&ctx.home, &place.root).unwrap_or_default();
        json::print(&ctx.ui, "trust", &trust)?;
    } else {
        ctx.ui.say(&format!("{FILE_NAME}: {text}"));
    }
    Ok(Exit::OK)
}
