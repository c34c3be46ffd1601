//! `agentbox validate`: whether an `agentbox.yaml` is in order. Needs no host and no engine.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use project::{FILE_NAME, Parsed, Problem, Project};
use protocol::text::visible;
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Something is wrong with the file.
const INVALID: Exit = Exit(2);
/// One more than the reader takes, so that it says so.
const MOST: u64 = (1 << 20) + 1;

/// Check a project's agentbox.yaml
///
/// Every mistake is shown with its place. Keys nobody knows are warnings. The same check is made before
/// a box is made. Exits with 2 when there is a mistake.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox validate               the file of the project in this folder
  agentbox validate --strict      warnings are mistakes, too
  agentbox validate --schema > agentbox.schema.json")]
pub struct Args {
    /// The file, or a folder of the project [default: this one]
    path: Option<PathBuf>,

    /// Warnings are mistakes, too
    #[arg(long)]
    strict: bool,

    /// Print the JSON Schema of the file, for editors, and check nothing
    #[arg(long, conflicts_with_all = ["path", "strict", "json"])]
    schema: bool,

    /// Print what was found as JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    valid: bool,
    services: usize,
    tasks: usize,
    carry: usize,
    errors: &'a [Problem],
    warnings: &'a [Problem],
}

/// The schema of the file, with what may stand under `defaults:`.
pub fn schema() -> Result<String, CommandError> {
    let schema = project::schema::schema(&settings::defaults_schema());
    let text = serde_json::to_string_pretty(&schema);
    Ok(text.map_err(|e| CommandError::failed(e.to_string()))? + "\n")
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    if args.schema {
        ctx.ui.out(&schema()?)?;
        return Ok(Exit::OK);
    }
    let path = find(args.path.as_deref().unwrap_or(Path::new(".")))?;
    let mut parsed = with_defaults(ctx, &path, Project::parse(&read(&path)?));
    parsed.errors.extend(refused(&path, &parsed));
    let fine = parsed.warnings.is_empty() || !args.strict;
    let valid = fine && parsed.errors.is_empty();
    let project = parsed.project.clone().unwrap_or_default();
    if args.json {
        let report = Report {
            file: path.display().to_string(),
            valid,
            services: project.services.len(),
            tasks: project.tasks.len(),
            carry: project.carry.len(),
            errors: &parsed.errors,
            warnings: &parsed.warnings,
        };
        json::print(&ctx.ui, "validation", &report)?;
    } else {
        for warning in &parsed.warnings {
            ctx.ui.warn(&visible(&warning.line(FILE_NAME)));
        }
        for error in &parsed.errors {
            ctx.ui.say(&visible(&error.line(FILE_NAME)));
        }
    }
    if valid && !args.json {
        let (services, tasks) = (project.services.len(), project.tasks.len());
        ctx.ui.out(&format!("OK: {services} service(s), {tasks} task(s)\n"))?;
    }
    Ok(if valid { Exit::OK } else { INVALID })
}

/// With what is wrong with its `defaults:`, which the reader does not look into.
fn with_defaults(ctx: &Context, path: &Path, mut parsed: Parsed) -> Parsed {
    let Some(project) = &parsed.project else { return parsed };
    let root = path.parent().unwrap_or(Path::new("/"));
    let found = host::defaults_problems(&ctx.home, root, project);
    parsed.warnings.extend(found.warnings);
    parsed.warnings.sort_by_key(|problem| problem.place);
    if !found.errors.is_empty() {
        parsed.errors.extend(found.errors);
        parsed.project = None;
    }
    parsed
}

/// What no box would take, whatever is on disk.
fn refused(path: &Path, parsed: &Parsed) -> Vec<Problem> {
    let Some(project) = &parsed.project else { return Vec::new() };
    let root = path.parent().unwrap_or(Path::new("/"));
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    project::carry::problems(project, root, &home, "/home/vscode")
}

/// The file itself, or the nearest at or above a folder.
fn find(path: &Path) -> Result<PathBuf, CommandError> {
    let cannot = |why: &str| CommandError::usage(format!("{}: {why}", path.display()));
    let found = path.canonicalize().map_err(|e| cannot(&e.to_string()))?;
    if !found.is_dir() {
        return Ok(found);
    }
    let above = found.ancestors().map(|folder| folder.join(FILE_NAME)).find(|file| file.is_file());
    above.ok_or_else(|| {
        cannot(&format!("no {FILE_NAME} was found here or above")).hint("agentbox init writes one")
    })
}

fn read(path: &Path) -> Result<String, CommandError> {
    let cannot = |why: String| CommandError::usage(format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| cannot(e.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).map_err(|e| cannot(e.to_string()))?;
    String::from_utf8(bytes).map_err(|_| cannot("is not UTF-8".to_owned()))
}
