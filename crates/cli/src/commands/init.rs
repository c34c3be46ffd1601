//! `agentbox init`: a first `agentbox.yaml` for a project, from the files in its folder. Needs no host.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use project::draft::{Draft, Folder, draft};
use project::{FILE_NAME, Project};
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More of a file than says anything, and one more than is read as YAML, so that none is taken for whole.
const MOST: u64 = (1 << 20) + 1;

/// Write a first agentbox.yaml for a project
///
/// Looks at the files in the folder (package.json and its lock, Cargo.toml, pyproject.toml, go.mod,
/// compose files, Makefile, Procfile, .env.example and others) and writes what a box should install
/// and run, with comments. Nothing is run. Look it through: all of it is a guess.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox init            write agentbox.yaml here
  agentbox init --print    only show what it would be
  agentbox init --force    in the place of the one that is there")]
pub struct Args {
    /// The project's folder [default: this one]
    path: Option<PathBuf>,

    /// Show it and write nothing
    #[arg(long)]
    print: bool,

    /// Also in the place of an agentbox.yaml that is there
    #[arg(long, conflicts_with = "print")]
    force: bool,

    /// Print what was found as JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    written: bool,
    from: &'a [String],
    services: &'a [String],
    tasks: &'a [String],
    text: &'a str,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    let cannot = |why: &str| CommandError::usage(format!("{}: {why}", shown(path)));
    let folder = path.canonicalize().map_err(|e| cannot(&e.to_string()))?;
    if !folder.is_dir() {
        return Err(cannot("is not a folder"));
    }
    let root = super::config::root_of(&folder)?;
    if !args.print && root != folder {
        let text = format!(
            "{} is a folder of {}; boxes read {FILE_NAME} at its top",
            shown(&folder),
            shown(&root)
        );
        return Err(CommandError::usage(text).hint(format!("agentbox init {}", shown(&root))));
    }
    let draft = draft(&look(&folder));
    let parsed = Project::parse(&draft.text);
    if let Some(error) = parsed.errors.first() {
        let text = format!("what was made up is not in order: {}", error.line(FILE_NAME));
        return Err(CommandError::failed(text).hint("please report it; nothing was written"));
    }
    let file = folder.join(FILE_NAME);
    if !args.print {
        write(&file, &draft.text, args.force)?;
    }
    if args.json {
        let report = Report {
            file: file.display().to_string(),
            written: !args.print,
            from: &draft.from,
            services: &draft.services,
            tasks: &draft.tasks,
            text: &draft.text,
        };
        json::print(&ctx.ui, "init", &report)?;
    } else if args.print {
        ctx.ui.out(&draft.text)?;
    } else {
        ctx.ui.out(&format!("{}\n", shown(&file)))?;
        ctx.ui.say(&told(&draft));
        ctx.ui.hint("look it through, then agentbox create");
    }
    Ok(Exit::OK)
}

fn shown(path: &Path) -> String {
    protocol::text::visible(&path.display().to_string())
}

fn told(draft: &Draft) -> String {
    let list = |what: &str, names: &[String]| match names {
        [] => format!("no {what}"),
        names => format!("{what} {}", names.join(", ")),
    };
    let from = match draft.from.as_slice() {
        [] => "nothing known was found".to_owned(),
        from => format!("made from {}", from.join(", ")),
    };
    format!("{from}: {}; {}", list("tasks", &draft.tasks), list("services", &draft.services))
}

fn look(folder: &Path) -> Folder {
    let mut found = Folder::default();
    for name in Folder::NAMES {
        let path = folder.join(name);
        // A link may lead to what is no part of the project and must not come into its file.
        if !path.symlink_metadata().is_ok_and(|data| data.is_file()) {
            continue;
        }
        let text = if Folder::is_read(name) { read(&path) } else { String::new() };
        found.add(name, text);
    }
    found
}

/// What can be read of a file; of one that cannot, its name says enough.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    if let Ok(file) = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        let _ = file.take(MOST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), CommandError> {
    let cannot = |e: std::io::Error| CommandError::failed(format!("{}: {e}", shown(file)));
    if force {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(folder)
            .map_err(cannot)?;
        new.write_all(text.as_bytes()).map_err(cannot)?;
        new.persist(file).map_err(|e| cannot(e.error))?;
        return Ok(());
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(file);
    match made {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let text = format!("{} is there already", shown(file));
            Err(CommandError::failed(text)
                .hint("agentbox init --print shows what would be written; --force writes it"))
        }
        made => made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(cannot),
    }
}
