//! `agentbox cp`: files and folders between this computer and a box.

use crate::ask;
use crate::context::{Context, target};
use crate::copying::changes::{bounds, cut_short};
use crate::copying::paths::{Copy, parse};
use crate::copying::stream::{Moving, Packed, feed};
use crate::copying::walk::{Source, Walk};
use crate::copying::{gate, named, shown, up};
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use connectors::files::{Excludes, LeftOut};
use files::landing::Landing;
use files::place::Place;
use files::rules::Tops;
use files::stream::{Ended, Taken, read};
use host::oplog::OpLog;
use protocol::boxes::BoxView;
use protocol::control::{Request, Target};
use protocol::ctl::Pack;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Copy files between this computer and a box
///
/// A path in a box is <box>:<path>; a relative one starts in /workspace, ~ is the box user's home.
/// The last path is the destination: into it when it is a folder or ends with '/', else under that
/// name. A single path in a box is copied to this folder.
///
/// Folders go without .git, node_modules, bin, obj, packages, dist, .next and target, unless git
/// tracks them. What a box sends is not trusted: entries that would leave the destination, links out
/// of it, devices and the like are refused and named, and the rest is copied. Files here that are
/// replaced are named; at a terminal you are asked before a file that you named is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox cp ./fixtures fix-login:/workspace/    a folder into a box
  agentbox cp a.txt fix-login:b.txt               under another name
  agentbox cp fix-login:dist/app.tar .            a file from a box
  agentbox cp fix-login:coverage                  a folder to here")]
pub struct Args {
    /// Sources and the destination
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,

    /// Leave out: a name, or a pattern with * and ? over the path below the source
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Leave out nothing but what --exclude says
    #[arg(long)]
    no_default_excludes: bool,

    /// Copy however large it is, and replace files without asking
    #[arg(short, long)]
    yes: bool,

    /// From a box: replace nothing that has the same name here, and fail instead
    #[arg(long, conflicts_with = "yes")]
    no_replace: bool,

    /// Print what was copied as JSON
    #[arg(short, long)]
    json: bool,
}

/// What became of a copy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Copied {
    to: String,
    files: usize,
    bytes: u64,
    left_out: Vec<String>,
    refused: Vec<String>,
    /// Files that were there before, at most a hundred.
    replaced: Vec<String>,
    replaced_count: usize,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let excludes =
        Excludes::parse("cp", &args.exclude, false).map_err(|e| CommandError::failed(e.text))?;
    let copy = parse(&args.paths)?;
    let words: Vec<_> = args.paths.iter().map(|path| path.to_string_lossy()).collect();
    let log = OpLog::begin(&ctx.home, "cp", &words.join(" "), boxes::progress::silent());
    let done = match copy {
        Copy::ToBox { sources, which, dest } => {
            to_box(ctx, &args, excludes, &sources, which, &dest)
        }
        Copy::FromBox { which, sources, dest } => from_box(ctx, &args, &which, sources, dest),
    };
    log.end(done.as_ref().err().map(|e| e.error.as_str()));
    done
}

fn to_box(
    ctx: &Context,
    args: &Args,
    excludes: Excludes,
    sources: &[PathBuf],
    which: String,
    dest: &str,
) -> Outcome {
    let sources: Vec<Source> = sources.iter().map(|s| Source::find(s)).collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    if let Some(twice) = sources.iter().find(|s| !names.insert(&s.name)) {
        let text = format!("{} is one of two sources of that name", shown(&twice.typed));
        return Err(CommandError::failed(text).hint("copy them one after the other"));
    }
    let client = ctx.client()?;
    let view: BoxView = client.call(&Request::FindBox { target: target(Some(which.clone())) })?;
    let limit = limit(&ctx.home, &view)?;
    let mut walk = Walk::new(LeftOut::new(excludes, !args.no_default_excludes));
    let (mut bytes, mut files) = (0, 0);
    for source in &sources {
        let weight = gate::weigh(&mut walk, source)?;
        if !args.yes {
            gate::check(source, &weight, limit, &format!("{which}:{dest}"))?;
        }
        bytes += weight.bytes;
        files += weight.files;
    }

    let view = up::running(ctx, &client, Target::id(&view.id))?;
    let moving = Moving::new(&ctx.ui, format!("Copy to {}", view.name), Some(bytes));
    let several = if sources.len() > 1 { &["--several"][..] } else { &[] };
    let command = [&["unpack-into"], several, &[dest]].concat();
    feed(&client, &Target::id(&view.id), &command, moving, |input| {
        let mut tar = tar::Builder::new(input);
        for source in &sources {
            walk.send(source, &mut tar)?;
        }
        Ok(tar.finish()?)
    })?;
    let to = format!("{}:{dest}", view.name);
    let left_out = walk.behind.into_iter().collect();
    let (refused, replaced) = (Vec::new(), Vec::new());
    told(ctx, args, Copied { to, files, bytes, left_out, refused, replaced, replaced_count: 0 })
}

/// The person's own limit, as it is for the box's project.
pub fn limit(home: &Path, view: &BoxView) -> Result<u64, CommandError> {
    let settings = host::project_settings(home, Path::new(&view.project_root));
    Ok(settings.map_err(|e| CommandError::failed(e.to_string()))?.boxes.cp_max_bytes)
}

fn from_box(
    ctx: &Context,
    args: &Args,
    which: &str,
    sources: Vec<String>,
    dest: Option<PathBuf>,
) -> Outcome {
    let tops: Vec<String> = sources.iter().map(|s| last_name(s)).collect();
    let mut names = BTreeSet::new();
    if let Some(twice) = tops.iter().find(|top| !names.insert(*top)) {
        let text = format!("two sources are called {}", protocol::text::visible(twice));
        return Err(CommandError::failed(text).hint("copy them one after the other"));
    }
    let place = place(dest.as_deref(), &tops)?;
    let there = |found: fn(&Path) -> bool| -> Vec<String> {
        let all = tops.iter().map(|top| place.path_of(Path::new(top)));
        all.filter(|path| found(path)).map(|path| shown(&path)).collect()
    };
    if args.no_replace {
        let there = there(|path| path.symlink_metadata().is_ok());
        if !there.is_empty() {
            let text = format!("{} is there already, and stays as it is", named(&there));
            return Err(CommandError::failed(text).hint("choose another folder"));
        }
    } else if !args.yes && ctx.ui.interactive {
        let there = there(Path::is_file);
        if !there.is_empty() && !ask::yes(&ctx.ui, &format!("Replace {}?", named(&there))) {
            return Ok(Exit::OK);
        }
    }
    let client = ctx.client()?;
    let view = up::running(ctx, &client, target(Some(which.to_owned())))?;
    let what = Pack::Copy {
        sources,
        exclude: args.exclude.iter().cloned().chain([".git".to_owned()]).collect(),
        default_excludes: !args.no_default_excludes,
        optional: false,
    };
    let moving = Moving::new(&ctx.ui, format!("Copy from {}", view.name), None);
    let mut packed = Packed::open(&client, &Target::id(&view.id), &what, moving)?;
    let mut taken = Taken::default();
    let mut landing = Landing::new(place.clone());
    // There is no way in which a box writes git's own folder: git would run what is in it.
    let bounds = bounds(Tops::Only(&tops), false, args.yes);
    let done =
        read(&mut packed, bounds, &mut taken, |arrived, content| landing.put(arrived, content));
    let left_out = match done {
        Ok(()) => packed.end()?,
        Err(ended @ Ended::Broken(_)) => {
            packed.end()?;
            return Err(cut_short(ended));
        }
        Err(ended) => return Err(cut_short(ended)),
    };
    let strip = |line: String| line.strip_prefix("left out: ").map(str::to_owned);
    let left_out = left_out.into_iter().filter_map(strip).collect();
    let (files, bytes) = (taken.files, taken.bytes);
    let replaced = landing.replaced();
    let done = Copied {
        to: place.shown(),
        files,
        bytes,
        left_out,
        refused: taken.refused.clone(),
        replaced: replaced.names,
        replaced_count: replaced.count,
    };
    refused(ctx, &view, &taken);
    told(ctx, args, done)
}

fn refused(ctx: &Context, view: &BoxView, taken: &Taken) {
    for line in &taken.refused {
        ctx.ui.warn(&format!("{} sent {line}: refused", view.name));
    }
    if taken.more_refused > 0 {
        ctx.ui.warn(&format!("and {} more like these", taken.more_refused));
    }
}

fn told(ctx: &Context, args: &Args, done: Copied) -> Outcome {
    if args.json {
        json::print(&ctx.ui, "copied", &done)?;
    } else {
        if !done.left_out.is_empty() {
            ctx.ui.say(&format!("left out: {}", named(&done.left_out)));
            ctx.ui.hint("--no-default-excludes copies these, too");
        }
        match done.replaced_count {
            0 => {}
            n if n <= done.replaced.len() => {
                ctx.ui.say(&format!("replaced: {}", named(&done.replaced)));
            }
            n => ctx.ui.say(&format!("replaced: {} ({n} in all)", named(&done.replaced))),
        }
        if done.files == 0 && !done.refused.is_empty() {
            ctx.ui.say("nothing was copied");
        } else {
            ctx.ui.out(&format!("copied to {}\n", done.to))?;
        }
    }
    Ok(if done.refused.is_empty() { Exit::OK } else { Exit::FAILED })
}

fn place(dest: Option<&Path>, tops: &[String]) -> Result<Place, CommandError> {
    let typed = dest.unwrap_or(Path::new("."));
    let full = std::path::absolute(typed)?;
    let is_folder = typed.as_os_str().as_encoded_bytes().ends_with(b"/");
    let tops: Vec<(&str, bool)> = tops.iter().map(|top| (top.as_str(), false)).collect();
    Place::find(&full, is_folder, &tops).map_err(|e| CommandError::failed(e.to_string()))
}

fn last_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
