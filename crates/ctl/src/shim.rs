//! The commands of services, as shims (`gh`, `linear`, …) and as `agentbox-ctl integration …`:
//! carries out what [`shims`] planned.
//!
//! Files a command names are the box's, `-` is standard input; their text is sent. Nothing is
//! decided here: whatever has the shape of a call goes to the host, which answers for it.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::rpc::{exit_code, print};
use connectors::connector::Connector;
use connectors::registry::{self, CONNECTORS};
use protocol::exit;
use protocol::rpc::MAX_STDIN;
use protocol::text::visible;
use shims::plan::{Place, Plan};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

type Planner = fn(&[String], &Place<'_>) -> Plan;

/// By the name the binary is called.
const SHIMS: &[(&str, Planner)] = &[
    ("gh", shims::gh::plan),
    ("ntn", shims::ntn::plan),
    ("notion", shims::ntn::plan),
    ("linear", shims::linear::plan),
    ("trello", shims::trello::plan),
    ("clickup", shims::clickup::plan),
];

/// A shim and its name.
#[derive(Clone, Copy)]
pub struct Shim(&'static str, Planner);

impl Shim {
    /// The one that a program's name means.
    pub fn named(program: &OsStr) -> Option<Self> {
        let name = Path::new(program).file_name()?;
        SHIMS.iter().find(|(known, _)| name == *known).map(|(name, plan)| Shim(name, *plan))
    }

    pub fn run(self, args: &[OsString]) -> Result<i32> {
        let Shim(name, plan) = self;
        let Some(args) = texts(args) else {
            crate::complain(&format!("{name}: an argument is not UTF-8. Leave it out."));
            return Ok(exit::SHIM_REFUSED);
        };
        let cwd = current_dir();
        carry_out(plan(&args, &Place { cwd: &cwd, read: &read }))
    }
}

/// `agentbox-ctl integration [--stdin] [<service> [<op> [--] <args>…]]`.
pub fn integration(args: &[OsString]) -> Result<i32> {
    let Some(args) = texts(args) else {
        return Err(Error::Usage("an argument is not UTF-8. Leave it out.".into()));
    };
    let (with_stdin, args) = match args.split_first() {
        Some((flag, rest)) if flag == "--stdin" => (true, rest),
        _ => (false, &args[..]),
    };
    match args {
        [] => {
            crate::say(&CONNECTORS.iter().map(|c| overview(c)).collect::<String>());
            Ok(exit::OK)
        }
        [service] => {
            let unknown = || {
                let known: Vec<&str> = CONNECTORS.iter().map(|c| c.service).collect();
                let (service, known) = (visible(service), known.join(", "));
                Error::Usage(format!("unknown service '{service}'. There are: {known}."))
            };
            crate::say(&overview(registry::find(service).ok_or_else(unknown)?));
            Ok(exit::OK)
        }
        [service, op, rest @ ..] => {
            let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
            let failed = |e: io::Error| Error::Io("read standard input".to_owned(), e);
            let stdin = with_stdin.then(|| read(Path::new("-"))).transpose().map_err(failed)?;
            let cwd = current_dir();
            let place = Place { cwd: &cwd, read: &read };
            let method = format!("integration.{service}.{op}");
            carry_out(Plan::call(&method, &place, rest.to_vec(), stdin))
        }
    }
}

/// One service: what can be asked of it, and how.
fn overview(connector: &Connector) -> String {
    let mut text = format!("{}: {}\n", connector.service, connector.about);
    for op in connector.ops {
        let asked = if op.info.write { "  (asks the person)" } else { "" };
        let line = format!("{} {} {}", connector.service, op.info.name, op.info.usage);
        text.push_str(&format!("  agentbox-ctl integration {}{asked}\n", line.trim_end()));
    }
    text
}

fn carry_out(plan: Plan) -> Result<i32> {
    match plan {
        Plan::Call { method, params } => {
            let envelope = Relay::open()?.call(&method, params)?;
            print(&envelope);
            Ok(exit_code(&envelope))
        }
        Plan::Print(text) => {
            crate::say(&text);
            Ok(exit::OK)
        }
        Plan::Refuse(line) => {
            crate::complain(&line);
            Ok(exit::SHIM_REFUSED)
        }
    }
}

/// What to say when the host takes its time. A read waits for no person.
pub fn notice(method: &str) -> &'static str {
    if may_ask(method) { "waiting for approval on the host…" } else { "waiting for the host…" }
}

fn may_ask(method: &str) -> bool {
    let op = |connector: &Connector, name: &str| {
        let below = format!("{name}.");
        let mut same = connector.infos().filter(|i| i.name == name || i.name.starts_with(&below));
        same.next().is_none_or(|first| first.write || same.any(|i| i.write))
    };
    match method.split_once('.') {
        Some(("git", name)) => name != "fetch",
        Some(("gh", name)) => op(&connectors::gh::CONNECTOR, name),
        Some(("integration", rest)) => rest
            .split_once('.')
            .and_then(|(service, name)| Some(op(registry::find(service)?, name)))
            .unwrap_or(true),
        _ => true,
    }
}

fn texts(args: &[OsString]) -> Option<Vec<String>> {
    args.iter().map(|arg| arg.to_str().map(str::to_owned)).collect()
}

fn current_dir() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| crate::places::workspace())
}

/// A text of the box, no longer than the host takes.
fn read(path: &Path) -> io::Result<String> {
    let most = MAX_STDIN as u64 + 1;
    let mut text = String::new();
    if path.file_name() == Some(OsStr::new("-")) {
        io::stdin().lock().take(most).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(path)?.take(most).read_to_string(&mut text)?;
    }
    if text.len() > MAX_STDIN {
        let why = format!("it is longer than {MAX_STDIN} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_has_its_command_and_every_command_its_link_and_its_word() {
        for connector in CONNECTORS {
            let name = connector.program().map_or(connector.service, |p| p.name);
            assert!(SHIMS.iter().any(|(shim, _)| *shim == name), "{name}");
        }
        let image = include_str!("../../../Dockerfile.box");
        let links = image.lines().find_map(|l| l.split_once("for name in ")?.1.split_once(';'));
        let mut links: Vec<&str> = links.unwrap().0.split(' ').collect();
        links.retain(|name| !["git", "xdg-open", "open"].contains(name));
        let names: Vec<&str> = SHIMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(links, names);
        for name in names {
            assert!(crate::help::OVERVIEW.contains(name), "{name}");
        }
    }

    #[test]
    fn names_are_taken_from_the_end_of_the_path() {
        for name in ["gh", "/usr/local/bin/trello", "./clickup"] {
            assert!(Shim::named(OsStr::new(name)).is_some(), "{name}");
        }
        for name in ["agentbox-ctl", "git", "ghx", "", "/usr/bin/gh/x"] {
            assert!(Shim::named(OsStr::new(name)).is_none(), "{name}");
        }
    }

    #[test]
    fn only_what_may_ask_speaks_of_approval() {
        for method in [
            "git.push",
            "git.clone",
            "gh.pr.create",
            "gh.api",
            "integration.trello.card.create",
            "integration.nobody.knows",
            "cp.toHost",
            "something",
        ] {
            assert!(may_ask(method), "{method}");
        }
        for method in [
            "git.fetch",
            "gh.pr.view",
            "gh.run.list",
            "integration.trello.card.list",
            "integration.clickup.whoami",
        ] {
            assert!(!may_ask(method), "{method}");
        }
    }
}
