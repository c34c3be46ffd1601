//! `agentbox secrets import`: a folder with a file for each credential.

use super::{LONGEST, Whose, one_line};
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use crate::table;
use host::client::Client;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use protocol::SecretId;
use protocol::control::Request;
use protocol::integrations::{SecretScope, SecretText, SecretView};
use protocol::text::visible;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Store what a folder has a file for
///
/// A file's name is the credential's, its only line the value. Files with other names, links and
/// what is stored already are left out and told; nothing is removed from the folder. Exit code 1 when
/// a file was of no use.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder
    #[arg(long, value_name = "DIR")]
    from_dir: PathBuf,

    /// Replace what is stored already
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    whose: Whose,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// What became of one file.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    became: Became,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Became {
    Stored,
    Replaced,
    /// Not meant for this.
    LeftOut,
    Failed,
}

impl Became {
    fn word(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Replaced => "replaced",
            Self::LeftOut => "left out",
            Self::Failed => "failed",
        }
    }
}

pub fn run(ctx: &Context, args: &Args) -> Outcome {
    let names = names(&args.from_dir)?;
    let client = ctx.client()?;
    let scope = args.whose.scope(&client)?;
    let known: Vec<SecretView> = client.call(&Request::Secrets)?;
    let stored = |id: &SecretId| known.iter().any(|s| s.id == *id && s.scope == scope && s.stored);
    let mut lines = Vec::new();
    let mut exposed = false;
    for name in names {
        let Ok(id) = name.parse::<SecretId>() else {
            lines.push(line(name, Became::LeftOut, "not the name of a credential"));
            continue;
        };
        if stored(&id) && !args.replace {
            lines.push(line(name, Became::LeftOut, "stored already; --replace replaces it"));
            continue;
        }
        lines.push(match read(&args.from_dir.join(&name)) {
            Ok((value, open)) => {
                exposed |= open;
                match store(&client, &id, value, &scope) {
                    Ok(remark) => {
                        let became = if stored(&id) { Became::Replaced } else { Became::Stored };
                        Line { name, became, why: remark }
                    }
                    Err(e) => line(name, Became::Failed, &e.error),
                }
            }
            Err(why) => line(name, Became::Failed, &why),
        });
    }
    let failed = lines.iter().any(|line| line.became == Became::Failed);
    if args.json {
        json::print(&ctx.ui, "files", &lines)?;
    } else {
        ctx.ui.out(&render(ctx, &lines))?;
    }
    let folder = visible(&args.from_dir.to_string_lossy());
    if exposed {
        ctx.ui.warn(&format!("other users of this computer can read files in {folder}"));
    }
    if lines.iter().any(|line| matches!(line.became, Became::Stored | Became::Replaced)) {
        ctx.ui.hint(&format!("what was stored is still in {folder} as well; remove it there"));
    }
    Ok(if failed { Exit::FAILED } else { Exit::OK })
}

fn line(name: String, became: Became, why: &str) -> Line {
    Line { name, became, why: Some(why.to_owned()) }
}

fn render(ctx: &Context, lines: &[Line]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let row = |line: &Line| {
        let why = line.why.as_deref().unwrap_or_default().replace('\n', "; ");
        vec![visible(&line.name), line.became.word().to_owned(), visible(&why)]
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    table::render(ctx.ui.out, &["FILE", "BECAME", "WHY"], &rows)
}

fn store(
    client: &Client,
    id: &SecretId,
    value: SecretText,
    scope: &SecretScope,
) -> Result<Option<String>, CommandError> {
    let hosts = None;
    let request = Request::SetSecret { id: id.clone(), value, scope: scope.clone(), hosts };
    Ok(client.call(&request)?)
}

/// The names in a folder, in their order.
fn names(folder: &Path) -> Result<Vec<String>, CommandError> {
    let shown = visible(&folder.to_string_lossy());
    let unreadable = |e| CommandError::usage(format!("{shown} cannot be read: {e}"));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The value of a file, and whether others can read it. What is no file is not waited for, and a link
/// not followed: it could lead to anything this person can read.
fn read(path: &Path) -> Result<(SecretText, bool), String> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ELOOP) => return Err("it is a symbolic link".into()),
        Err(e) => return Err(e.desc().to_owned()),
    };
    let data = file.metadata().map_err(|e| e.to_string())?;
    if !data.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut text = String::new();
    // A line end more, and one byte to notice that there is more.
    let read = file.take(LONGEST as u64 + 3).read_to_string(&mut text);
    read.map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidData => "it is not text".to_owned(),
        _ => e.to_string(),
    })?;
    let value = one_line(text).map_err(|unfit| unfit.what.to_owned())?;
    Ok((value, data.mode() & 0o077 != 0))
}
