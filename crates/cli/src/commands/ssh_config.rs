//! `agentbox ssh-config`: boxes as hosts of `ssh`.
//!
//! The host keeps a file that knows the boxes; here one marked line that includes it is put into the
//! person's own configuration, or taken out again. Everything else in that file stays as it is.

use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::{ask, json};
use protocol::control::Request;
use protocol::links::SshConfig;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const BEGIN: &str = "# >>> agentbox >>>";
const END: &str = "# <<< agentbox <<<";

/// Let ssh know the boxes
///
/// Prints ssh's configuration for the boxes that run. With --install your ~/.ssh/config includes it,
/// so that `ssh BOX`, and whatever uses ssh, leads into a box; the file behind it follows the boxes as
/// they come and go. A box whose name is one of your own hosts is only known as agentbox-BOX.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox ssh-config --install   then: ssh fix-login
  agentbox ssh-config --uninstall take the line out again
  agentbox ssh-config > boxes     then: ssh -F boxes fix-login")]
pub struct Args {
    /// Include it in ~/.ssh/config
    #[arg(long, conflicts_with = "uninstall")]
    install: bool,

    /// Take it out of ~/.ssh/config
    #[arg(long)]
    uninstall: bool,

    /// Do not ask before ~/.ssh/config is changed
    #[arg(short, long)]
    yes: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let config: SshConfig = ctx.client()?.call(&Request::SshConfig)?;
    if !args.install && !args.uninstall {
        if args.json {
            json::print(&ctx.ui, "sshConfig", &config)?;
        } else {
            ctx.ui.out(&config.text)?;
        }
        return Ok(Exit::OK);
    }
    let file = own_config()?;
    let before = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(CommandError::failed(format!("{}: {e}", file.display()))),
    };
    let rest = without_block(&before).map_err(|why| {
        CommandError::failed(format!("{}: {why}", file.display()))
            .hint("mend it by hand, then repeat")
    })?;
    let after = if args.install { block(&config.path) + &rest } else { rest };
    if after == before {
        ctx.ui.say(&format!("{} is as wanted already.", file.display()));
    } else if args.yes || agreed(ctx, &file, args.install)? {
        write(&file, &after)
            .map_err(|e| CommandError::failed(format!("{}: {e}", file.display())))?;
        ctx.ui.say(&format!("changed {}", file.display()));
    }
    Ok(Exit::OK)
}

fn own_config() -> Result<PathBuf, CommandError> {
    let home =
        std::env::home_dir().ok_or_else(|| CommandError::failed("there is no home folder"))?;
    Ok(home.join(".ssh/config"))
}

fn agreed(ctx: &Context, file: &Path, install: bool) -> Result<bool, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::usage(format!(
            "{} is not changed without a yes",
            file.display()
        ))
        .hint("say it with --yes"));
    }
    let what =
        if install { "Put an Include line at the top of" } else { "Take the Include line out of" };
    Ok(ask::yes(&ctx.ui, &format!("{what} {}?", file.display())))
}

fn block(include: &str) -> String {
    let path = include.replace('%', "%%");
    format!("{BEGIN}\nInclude \"{path}\"\n{END}\n\n")
}

/// The text without what was put in before.
fn without_block(text: &str) -> Result<String, &'static str> {
    let Some((before, rest)) = text.split_once(BEGIN) else { return Ok(text.to_owned()) };
    let whole = "it has the beginning of AgentBox's lines, but not their end";
    let (_, after) = rest.split_once(END).ok_or(whole)?;
    let after = after.strip_prefix('\n').unwrap_or(after);
    Ok(before.to_owned() + after.strip_prefix('\n').unwrap_or(after))
}

/// Whole or not at all. A link stays a link, and the file it leads to keeps its permissions.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = real.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(&real).map_or(0o600, |m| m.permissions().mode() & 0o777);
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    fresh.persist(&real)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installing_twice_and_uninstalling_leaves_the_file_as_it_was() {
        for own in ["", "Host a\n  Port 1\n", "\n\n# x"] {
            let once = block("/h/ssh/config") + own;
            assert!(once.starts_with(BEGIN) && once.contains("Include \"/h/ssh/config\"\n"));
            assert_eq!(without_block(&once).unwrap(), own);
        }
        assert!(without_block(&format!("{BEGIN}\nInclude x\n")).is_err());
    }

    #[test]
    fn links_and_permissions_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("dotfiles/ssh"), dir.path().join("config"));
        fs::create_dir(real.parent().unwrap()).unwrap();
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        let fresh = dir.path().join("a/.ssh/config");
        write(&fresh, "x").unwrap();
        assert_eq!(fs::metadata(&fresh).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
