//! `agentbox config edit`: a settings file in the person's editor.
//!
//! The editor gets a copy. The host puts it in the file's place when what is in it is in order, so a
//! mistake never leaves boxes without settings, and when the file is still the one that was opened, so
//! nothing that was set meanwhile is lost. What the person wrote is kept when it is not taken.

use super::view::Place;
use crate::context::{Context, current_dir};
use crate::editor::{self, Draft};
use crate::error::{CommandError, Exit, Outcome};
use crate::launch;
use project::{FILE_NAME, Project};
use protocol::control::Request;
use protocol::integrations::Layer;
use protocol::text::visible;
use settings::{Layers, Settings, Source};
use std::path::{Path, PathBuf};

pub fn run(ctx: &Context, global: bool, workspace: bool) -> Outcome {
    // A broken file is what somebody wants to mend here, so the files are not read yet.
    let place = Place::files(ctx)?;
    if workspace {
        return edit_workspace(ctx, &place.workspace());
    }
    let (file, layer) =
        if global { (place.global(), Layer::Global) } else { (place.project(), Layer::Project) };
    let there = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(CommandError::failed(format!("{}: {e}", file.display()))),
    };
    let opened = there.as_deref().map(host::digest);
    let text = there.unwrap_or_else(|| begun(global, &place.root));
    let draft = Draft::of("config.yaml", &text)?;
    draft.open()?;
    let written = draft.text();
    if written.as_ref().is_ok_and(|written| *written == text) {
        ctx.ui.say("nothing was changed");
        return Ok(Exit::OK);
    }
    let put = written.map_err(CommandError::from).and_then(|text| {
        let new = New { file: file.clone(), text, opened, layer };
        new.put(ctx)
    });
    if let Err(why) = put {
        return Err(draft.kept(why));
    }
    ctx.ui.say(&format!("{} is changed", file.display()));
    Ok(Exit::OK)
}

/// A text that is to be one of the person's files.
struct New {
    file: PathBuf,
    text: String,
    /// The digest of what the editor was given; none when there was no file.
    opened: Option<String>,
    layer: Layer,
}

impl New {
    fn put(&self, ctx: &Context) -> Result<(), CommandError> {
        let source = match self.layer {
            Layer::Global => Source::Global,
            Layer::Project => Source::Project,
        };
        // No host is started for a text it would refuse.
        Layers::check(&ctx.home, &self.file, source, &self.text).map_err(unwritten)?;
        if !launch::is_running(&ctx.home) && Settings::load(&ctx.home).is_err() {
            return self.mend(ctx);
        }
        let cwd = current_dir().map(|here| here.to_string_lossy().into_owned());
        let request = Request::WriteSettings {
            text: self.text.clone(),
            opened: self.opened.clone(),
            layer: self.layer,
            cwd,
        };
        Ok(ctx.client()?.call::<()>(&request)?)
    }

    /// No host starts while the global file is broken, and this is what mends it.
    fn mend(&self, ctx: &Context) -> Result<(), CommandError> {
        let is_opened = |there: Option<&str>| there.map(host::digest) == self.opened;
        settings::edit::write(&self.file, &self.text, is_opened).map_err(unwritten)?;
        ctx.ui.hint("no host could run with the file as it was, so this change is not on record");
        Ok(())
    }
}

fn unwritten(e: settings::Error) -> CommandError {
    let text = visible(&e.to_string());
    match e {
        settings::Error::Invalid { .. } => CommandError::usage(text),
        settings::Error::Changed(_) => CommandError::failed(text).hint(host::CHANGED_HINT),
        _ => CommandError::failed(text),
    }
}

/// What an empty file begins with.
fn begun(global: bool, root: &Path) -> String {
    let page = "# agentbox config list --include-advanced shows every setting.\n";
    let of = settings::edit::as_comment(&format!("project: {}", root.display()));
    if global { page.to_owned() } else { of + page }
}

/// The project's own file is edited in place; a mistake in it changes nothing until a box is made.
fn edit_workspace(ctx: &Context, file: &Path) -> Outcome {
    // A link in a repository may lead to a file that is none of the project's.
    if file.symlink_metadata().is_ok_and(|data| !data.is_file()) {
        let text = format!("{} is no plain file", visible(&file.display().to_string()));
        return Err(CommandError::failed(text).hint("put a file in its place"));
    }
    editor::open(file)?;
    let read = host::read_project_file(file.parent().unwrap_or(Path::new(".")));
    let failed = |why| CommandError::failed(format!("{FILE_NAME} cannot be read: {why}"));
    let Some(text) = read.map_err(failed)? else { return Ok(Exit::OK) };
    let parsed = Project::parse(&text);
    for problem in parsed.errors.iter().chain(&parsed.warnings) {
        ctx.ui.warn(&visible(&problem.line(FILE_NAME)));
    }
    Ok(if parsed.errors.is_empty() { Exit::OK } else { Exit(2) })
}
