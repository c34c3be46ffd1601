//! `agentbox self-update`: whether there is a newer version, and how to get it.
//!
//! It asks one feed that the settings name, and nobody else. It downloads nothing and runs nothing: it
//! shows the commands and opens the page. What a package manager installed is that one's to replace.

use crate::ask;
use crate::context::Context;
use crate::error::{CommandError, Exit, Outcome};
use crate::json;
use boxes::{Boxes, Engine};
use host::opener;
use host::updates::{Release, is_newer, latest};
use protocol::text::visible;
use serde::Serialize;
use settings::Settings;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// See whether there is a newer AgentBox
///
/// Asks the release feed that `update.feed` of the settings names, and no one else. Nothing is
/// downloaded and nothing is run: you are shown the page and the commands. The box image is looked at
/// and never removed; boxes stay as they are. Skills that `agentbox install` wrote are brought to the
/// version that runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox self-update             what there is, and how to get it
  agentbox self-update --check     the same, and never open the page
  agentbox self-update --json")]
pub struct Args {
    /// Only say what there is
    #[arg(long, visible_alias = "dry-run")]
    check: bool,

    /// Open the release's page without asking
    #[arg(short, long, conflicts_with = "check")]
    yes: bool,

    /// Leave the skills that `agentbox install` put in place as they are
    #[arg(long)]
    skip_skills: bool,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    current: &'static str,
    /// None without a feed.
    latest: Option<Release>,
    newer: bool,
    /// The image new boxes use is there; none when the engine cannot be asked.
    image_ready: Option<bool>,
    /// Skills that were brought to this version; none when they were not looked at.
    skills_refreshed: Option<usize>,
    /// The package manager this program belongs to, if any.
    packaged_by: Option<Packager>,
    /// What to type to update.
    commands: Vec<String>,
}

pub fn run(ctx: &Context, args: Args) -> Outcome {
    let settings = Settings::load(&ctx.home).map_err(|e| CommandError::usage(e.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let release = match settings.update.feed.as_deref() {
        Some(feed) => Some(runtime.block_on(latest(feed)).map_err(|why| {
            CommandError::failed(format!("cannot learn about releases: {}", visible(&why)))
                .hint(format!("update.feed of the settings is {}", visible(feed)))
        })?),
        None => None,
    };
    let image_ready = runtime.block_on(image_ready(&settings));
    let packaged_by = runtime.block_on(packaged_by());
    let report = Report {
        current: CURRENT,
        newer: release.as_ref().is_some_and(|r| is_newer(&r.version, CURRENT)),
        latest: release,
        image_ready,
        skills_refreshed: (!args.check && !args.skip_skills).then(|| refreshed(ctx)).flatten(),
        packaged_by,
        commands: commands(packaged_by, checkout().as_deref()),
    };
    if args.json {
        json::print(&ctx.ui, "update", &report)?;
    } else {
        ctx.ui.out(&render(&report))?;
        if report.latest.is_none() {
            ctx.ui.hint(&format!(
                "set update.feed in {} to be told about releases",
                ctx.home.join("config.yaml").display()
            ));
        }
    }
    open_page(ctx, &args, &report)
}

/// None when it could not be done, which is said.
fn refreshed(ctx: &Context) -> Option<usize> {
    super::install::refresh_skills(&ctx.home)
        .map_err(|error| ctx.ui.warn(&format!("the skills were not refreshed: {}", error.error)))
        .ok()
}

fn open_page(ctx: &Context, args: &Args, report: &Report) -> Outcome {
    let Some(release) = report.latest.as_ref().filter(|_| report.newer && !args.check) else {
        return Ok(Exit::OK);
    };
    let asked = ctx.ui.interactive && !args.json;
    if args.yes || (asked && ask::yes(&ctx.ui, "Open its page?")) {
        opener::open(&release.url).map_err(|why| {
            CommandError::failed(why).hint(format!("open {} yourself", visible(&release.url)))
        })?;
    }
    Ok(Exit::OK)
}

fn render(report: &Report) -> String {
    let mut text = format!("current  {}\n", report.current);
    match &report.latest {
        None => text.push_str("latest   not known: no feed is set\n"),
        Some(release) => {
            let state = if report.newer { "" } else { ", you have the newest" };
            let _ = writeln!(text, "latest   {}{state}", visible(&release.version));
            if report.newer {
                let _ = writeln!(text, "page     {}", visible(&release.url));
                if let Some(sum) = &release.sha256 {
                    let _ = writeln!(text, "sha256   {}", visible(sum));
                }
            }
        }
    }
    let image = match report.image_ready {
        Some(true) => "ready",
        Some(false) => "not built for this version; the next box builds it",
        None => "not known: no engine answers",
    };
    let _ = writeln!(text, "image    {image}");
    if let Some(packager) = report.packaged_by {
        let name = packager.name();
        let _ = writeln!(text, "package  of {name}: update with your package manager");
    }
    if let Some(count) = report.skills_refreshed.filter(|count| *count > 0) {
        let _ = writeln!(text, "skills   {count} brought to this version");
    }
    if let Some(release) = report.latest.as_ref().filter(|r| report.newer && !r.notes.is_empty()) {
        text.push('\n');
        for line in release.notes.lines() {
            let _ = writeln!(text, "  {}", visible(line));
        }
    }
    if report.newer || report.latest.is_none() {
        text.push_str("\nTo update, type:\n");
        for command in &report.commands {
            let _ = writeln!(text, "  {command}");
        }
    }
    text
}

/// The clone this program was built in, if it was.
fn checkout() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let root = program.ancestors().find(|dir| dir.join("scripts/build").is_file())?;
    root.join(".git").exists().then(|| root.to_owned())
}

/// Who put this program where it is, and replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Packager {
    Dpkg,
    Rpm,
}

impl Packager {
    fn name(self) -> &'static str {
        match self {
            Packager::Dpkg => "dpkg",
            Packager::Rpm => "rpm",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Packager::Dpkg => "sudo apt install ./agentbox_*.deb    # the new package",
            Packager::Rpm => "sudo dnf install ./agentbox_*.rpm    # the new package",
        }
    }
}

async fn packaged_by() -> Option<Packager> {
    let program = std::env::current_exe().ok()?;
    if !program.starts_with("/usr") || program.starts_with("/usr/local") {
        return None;
    }
    if in_list(&program, Path::new("/var/lib/dpkg/info/agentbox.list")) {
        return Some(Packager::Dpkg);
    }
    in_rpm(&program).await.then_some(Packager::Rpm)
}

/// What dpkg knows of a package is a line per file; asking dpkg itself reads the lists of all packages.
fn in_list(program: &Path, list: &Path) -> bool {
    let list = std::fs::read_to_string(list).unwrap_or_default();
    list.lines().any(|line| Path::new(line) == program)
}

async fn in_rpm(program: &Path) -> bool {
    let mut rpm = tokio::process::Command::new("/usr/bin/rpm");
    rpm.args(["-q", "-f", "--"]).arg(program).kill_on_drop(true);
    let asked = tokio::time::timeout(Duration::from_secs(5), rpm.output()).await;
    asked.is_ok_and(|done| done.is_ok_and(|done| done.status.success()))
}

fn commands(packager: Option<Packager>, checkout: Option<&Path>) -> Vec<String> {
    let restart = "agentbox quit    # the next command starts the new version".to_owned();
    if let Some(packager) = packager {
        return vec![packager.command().to_owned(), restart];
    }
    match checkout {
        Some(root) => {
            let root = protocol::text::quoted(&root.display().to_string());
            vec![format!("git -C {root} pull --ff-only"), format!("make -C {root} build"), restart]
        }
        None => vec!["# with the package manager that installed it, then:".to_owned(), restart],
    }
}

/// Whether new boxes find their image. Nothing is built or removed.
async fn image_ready(settings: &Settings) -> Option<bool> {
    let spec = super::prepare::image_spec(settings, host::daemons::stage(settings)).ok()?;
    let tag = spec.tag().ok()?;
    let engine = Engine::connect(settings.engine.host.as_deref()).await.ok()?;
    let of = |stage| boxes::ImageSpec { stage, ..spec.clone() };
    let made = Boxes::new(engine, super::prepare::NOBODY).inventory(of).await.ok()?;
    Some(made.iter().any(|row| row.tag == tag && row.image.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(latest: Option<&str>, image_ready: Option<bool>) -> Report {
        let latest = latest.map(|version| Release {
            version: version.into(),
            notes: "Quicker.\n\x1b[2JAnd safer.".into(),
            url: "https://example.org/9".into(),
            sha256: Some("ab".repeat(32)),
        });
        Report {
            current: "1.0.0",
            newer: latest.as_ref().is_some_and(|r| is_newer(&r.version, "1.0.0")),
            latest,
            image_ready,
            skills_refreshed: image_ready.map(usize::from),
            packaged_by: None,
            commands: commands(None, Some(Path::new("/home/ada/agentbox"))),
        }
    }

    #[test]
    fn a_package_is_replaced_by_its_manager_alone() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("agentbox.list");
        assert!(!in_list(Path::new("/usr/bin/agentbox"), &list));
        std::fs::write(&list, "/.\n/usr\n/usr/bin\n/usr/bin/agentbox\n").unwrap();
        assert!(in_list(Path::new("/usr/bin/agentbox"), &list));
        assert!(!in_list(Path::new("/usr/bin/agent"), &list));

        let packager = Some(Packager::Dpkg);
        let told = Report {
            packaged_by: packager,
            commands: commands(packager, Some(Path::new("/usr"))),
            ..report(Some("9.0.0"), Some(true))
        };
        let text = render(&told);
        assert!(text.contains("package  of dpkg: update with your package manager\n"), "{text}");
        assert!(
            text.contains("sudo apt install ./agentbox_*.deb") && !text.contains("git"),
            "{text}"
        );
        assert!(!render(&report(Some("9.0.0"), None)).contains("package "));
    }

    #[test]
    fn what_there_is_is_told() {
        let texts = [
            render(&report(Some("9.0.0"), Some(false))),
            render(&report(Some("1.0.0"), Some(true))),
            render(&report(None, None)),
        ];
        insta::assert_snapshot!(texts.join("---\n"));
    }
}
