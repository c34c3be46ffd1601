//! `agentbox config edit`: a settings file in the person's editor.
//!
//! The editor gets a copy. It takes the file's place when what is in it is in order, so a mistake never
//! leaves boxes without settings.

use super::view::Place;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use project::{FILE_NAME, Project};
use protocol::text::visible;
use settings::Layers;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run(ctx: &Context, global: bool, workspace: bool) -> Outcome {
    // A broken file is what somebody wants to mend here, so the files are not read yet.
    let place = Place::files(ctx)?;
    if workspace {
        return edit_workspace(ctx, &place.workspace());
    }
    let file = if global { place.global() } else { place.project() };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => begun(global, &place.root),
        Err(e) => return Err(CommandError::failed(format!("{}: {e}", file.display()))),
    };
    let dir = tempfile::Builder::new().prefix("agentbox-").tempdir()?;
    let copy = dir.path().join("config.yaml");
    std::fs::write(&copy, &text)?;
    open(&copy)?;
    let written = std::fs::read_to_string(&copy)?;
    if written == text {
        ctx.ui.say("nothing was changed");
        return Ok(Exit::OK);
    }
    let fine = if global {
        Layers::load(dir.path(), &[] as &[PathBuf]).map(|_| ())
    } else {
        Layers::load(&ctx.home, &[dir.path()]).map(|_| ())
    };
    if let Err(why) = fine.and_then(|()| settings::edit::write(&file, &written)) {
        let kept = dir.keep().join("config.yaml");
        let why = why.to_string().replace(&copy.display().to_string(), "the file");
        return Err(CommandError::usage(format!("nothing was changed: {}", visible(&why)))
            .hint(format!("what you wrote is in {}", kept.display())));
    }
    ctx.ui.say(&format!("{} is changed", file.display()));
    Ok(Exit::OK)
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
    open(file)?;
    let read = host::read_project_file(file.parent().unwrap_or(Path::new(".")));
    let failed = |why| CommandError::failed(format!("{FILE_NAME} cannot be read: {why}"));
    let Some(text) = read.map_err(failed)? else { return Ok(Exit::OK) };
    let parsed = Project::parse(&text);
    for problem in parsed.errors.iter().chain(&parsed.warnings) {
        ctx.ui.warn(&visible(&problem.line(FILE_NAME)));
    }
    Ok(if parsed.errors.is_empty() { Exit::OK } else { Exit(2) })
}

fn open(file: &Path) -> Result<(), CommandError> {
    let named = ["EDITOR", "VISUAL"].into_iter().filter_map(|name| std::env::var(name).ok());
    let named = named.map(|line| line.trim().to_owned()).find(|line| !line.is_empty());
    let line = named.unwrap_or_else(|| "vi".to_owned());
    let words = shlex::split(&line).unwrap_or_default();
    let Some((program, args)) = words.split_first() else {
        return Err(CommandError::usage(format!("{} names no editor", visible(&line))));
    };
    let ended = Command::new(program).args(args).arg(file).status().map_err(|e| {
        CommandError::failed(format!("{} cannot be started: {e}", visible(program)))
            .hint("set EDITOR to your editor")
    })?;
    if ended.success() {
        return Ok(());
    }
    Err(CommandError::failed(format!("{} ended badly", visible(program))))
}
