//! `git`: network commands go to the host, everything else to the real git, unchanged.
//!
//! The box's git has no credentials, so `push`, `fetch` and `pull` become requests to the relay,
//! by the relay's own grammar. git's global options are parsed first: `git -C app push` is a push
//! too. The surprising thing: an alias is not looked at, so `git p` reaches the real git and fails
//! there for lack of a credential.

use connectors::git::{Fetch, GitError, Pull, Push, RemoteName};
use protocol::rpc::GitParams;
use protocol::text::visible;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// What is to be done for one command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Run the real git with the arguments as they are.
    Exec,
    Push(Request),
    Fetch(Request),
    /// Fetch by the host, then `git merge` in the box with these flags.
    Pull {
        fetch: Request,
        merge: Vec<&'static str>,
    },
    /// Say this line and stop.
    Refuse(String),
}

/// A call for the relay, and the folder in the box it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub dir: PathBuf,
    pub params: GitParams,
}

/// Plans `git <args>` run in `cwd`.
pub fn plan<S: AsRef<OsStr>>(args: &[S], cwd: &Path) -> Plan {
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    let Some(line) = Line::read(&args, cwd) else { return Plan::Exec };
    let asks_for_help = matches!(line.rest.first(), Some(t) if *t == "-h" || *t == "--help");
    if asks_for_help {
        return Plan::Exec;
    }
    match line.command {
        "push" | "fetch" | "pull" => line.network().unwrap_or_else(Plan::Refuse),
        "clone" => line.clone_local().unwrap_or_else(Plan::Refuse),
        _ => Plan::Exec,
    }
}

/// The same with a remote chosen by name, which git's own command line has no safe place for.
pub fn plan_with_remote<S: AsRef<OsStr>>(args: &[S], cwd: &Path, remote: &RemoteName) -> Plan {
    let name = |mut request: Request| {
        request.params.remote = Some(remote.as_str().to_owned());
        request
    };
    match plan(args, cwd) {
        Plan::Push(request) => Plan::Push(name(request)),
        Plan::Fetch(request) => Plan::Fetch(name(request)),
        Plan::Pull { fetch, merge } => Plan::Pull { fetch: name(fetch), merge },
        other => other,
    }
}

/// A command line taken apart.
struct Line<'a> {
    /// The working folder after every `-C`.
    dir: PathBuf,
    /// The first global option that changes which repository, program or setting is used.
    steering: Option<&'a str>,
    command: &'a str,
    rest: &'a [&'a OsStr],
}

/// What a global option does to the words after it.
enum Global {
    Plain,
    Folder,
    Steering {
        takes_value: bool,
    },
    /// Prints something and ends, or is unknown: git's own business.
    Other,
}

impl<'a> Line<'a> {
    /// None when there is no command, or git would not get as far as one.
    fn read(args: &'a [&'a OsStr], cwd: &Path) -> Option<Self> {
        let mut dir = cwd.to_owned();
        let mut steering = None;
        let mut at = 0;
        loop {
            let token = args.get(at)?.to_str()?;
            at += 1;
            if !token.starts_with('-') {
                return Some(Self {
                    dir: lexical(&dir),
                    steering,
                    command: token,
                    rest: &args[at..],
                });
            }
            match global(token) {
                Global::Plain => {}
                Global::Folder => {
                    dir.push(args.get(at)?);
                    at += 1;
                }
                Global::Steering { takes_value } => {
                    steering = steering.or(Some(token));
                    at += usize::from(takes_value);
                }
                Global::Other => return None,
            }
        }
    }

    fn network(self) -> Result<Plan, String> {
        let command = self.command;
        if let Some(option) = self.steering {
            let option = visible(option);
            return Err(format!(
                "git {command}: '{option}' before a network command is not supported: the host runs \
                 it with its own settings. Leave the option out, or use -C <folder>."
            ));
        }
        let args = texts(command, self.rest)?;
        let refused = |e: GitError| e.to_string();
        let request = |dir: PathBuf, args| {
            let path = dir.to_str().map(str::to_owned);
            Request { dir, params: GitParams { path, remote: None, args } }
        };
        if command == "pull" {
            let pull = Pull::parse(&args).map_err(refused)?;
            let args = pull.to_fetch().to_argv().into_iter().map(str::to_owned).collect();
            return Ok(Plan::Pull { fetch: request(self.dir, args), merge: pull.merge_argv() });
        }
        let request = request(self.dir, args);
        if command == "push" {
            Push::parse(&request.params).map_err(refused)?;
            Ok(Plan::Push(request))
        } else {
            Fetch::parse(&request.params).map_err(refused)?;
            Ok(Plan::Fetch(request))
        }
    }

    /// A copy of a repository that is in the box already needs no host.
    fn clone_local(self) -> Result<Plan, String> {
        match clone_source(self.rest) {
            None => Ok(Plan::Exec),
            Some(source) if is_local(source) => Ok(Plan::Exec),
            Some(source) => Err(format!(
                "git clone: '{}' is not a path in this box, and cloning from the network is not \
                 available in this version. Clone it on the host into the project, or name a local \
                 repository with a leading /, ./ or ../",
                visible(&source.to_string_lossy())
            )),
        }
    }
}

fn global(token: &str) -> Global {
    let name = token.split_once('=').map_or(token, |(name, _)| name);
    let takes_value = !token.contains('=');
    match name {
        "-C" if takes_value => Global::Folder,
        "-c" if takes_value => Global::Steering { takes_value },
        "--config-env" | "--git-dir" | "--work-tree" | "--namespace" | "--attr-source"
        | "--shallow-file" => Global::Steering { takes_value },
        // Without a value it prints a path and ends.
        "--exec-path" if !takes_value => Global::Steering { takes_value: false },
        "--bare" => Global::Steering { takes_value: false },
        "-p"
        | "--paginate"
        | "-P"
        | "--no-pager"
        | "--no-replace-objects"
        | "--no-lazy-fetch"
        | "--no-optional-locks"
        | "--no-advice"
        | "--literal-pathspecs"
        | "--no-literal-pathspecs"
        | "--glob-pathspecs"
        | "--noglob-pathspecs"
        | "--icase-pathspecs" => Global::Plain,
        _ => Global::Other,
    }
}

fn texts(command: &str, tokens: &[&OsStr]) -> Result<Vec<String>, String> {
    let text = |t: &&OsStr| {
        t.to_str().map(str::to_owned).ok_or_else(|| {
            let shown = visible(&t.to_string_lossy());
            format!("git {command}: argument '{shown}' is not UTF-8. Leave it out.")
        })
    };
    tokens.iter().map(text).collect()
}

/// Options of `git clone` whose value is the next word.
const CLONE_VALUES: &[&str] = &[
    "-b",
    "--branch",
    "-o",
    "--origin",
    "-u",
    "--upload-pack",
    "--template",
    "--reference",
    "--reference-if-able",
    "--separate-git-dir",
    "--depth",
    "--shallow-since",
    "--shallow-exclude",
    "-c",
    "--config",
    "--server-option",
    "-j",
    "--jobs",
    "--filter",
    "--bundle-uri",
    "--ref-format",
    "--revision",
];

/// The word that says what to clone. A word after it is a folder to make.
fn clone_source<'a>(tokens: &[&'a OsStr]) -> Option<&'a OsStr> {
    let mut words = tokens.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => return words.next().copied(),
            Some(flag) if CLONE_VALUES.contains(&flag) => {
                words.next();
            }
            Some(flag) if flag.starts_with('-') && flag != "-" => {}
            _ => return Some(word),
        }
    }
    None
}

fn is_local(source: &OsStr) -> bool {
    let bytes = source.as_encoded_bytes();
    let exact: &[&[u8]] = &[b".", b".."];
    let starts: &[&[u8]] = &[b"file://", b"/", b"./", b"../", b"~/"];
    exact.contains(&bytes) || starts.iter().any(|s| bytes.starts_with(s))
}

/// Resolves `.` and `..` by text. The relay refuses `..`, and only compares paths.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// Whether a program name means this shim.
pub fn is_called(argv0: &OsString) -> bool {
    Path::new(argv0).file_name() == Some(OsStr::new("git"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn planned(line: &[&str]) -> Plan {
        plan(line, Path::new("/workspace"))
    }

    fn request(path: &str, args: &[&str]) -> Request {
        let args = args.iter().map(ToString::to_string).collect();
        let params = GitParams { path: Some(path.into()), remote: None, args };
        Request { dir: path.into(), params }
    }

    fn refusal(line: &[&str]) -> String {
        match planned(line) {
            Plan::Refuse(text) => text,
            other => panic!("{line:?} gave {other:?}"),
        }
    }

    #[test]
    fn relay_19_21_network_commands_are_caught() {
        assert!(refusal(&["push", "origin", "main"]).contains("'origin'"));
        assert_eq!(
            planned(&["-C", "/workspace/app", "push", "-q"]),
            Plan::Push(request("/workspace/app", &["-q"]))
        );
        assert_eq!(planned(&["status"]), Plan::Exec);
        assert_eq!(planned(&["push"]), Plan::Push(request("/workspace", &[])));
        assert_eq!(planned(&["--no-pager", "fetch"]), Plan::Fetch(request("/workspace", &[])));
        assert_eq!(
            planned(&["-p", "pull", "--ff-only", "-q", "-p"]),
            Plan::Pull {
                fetch: request("/workspace", &["--prune", "--quiet"]),
                merge: vec!["--ff-only", "--quiet"]
            }
        );
    }

    #[test]
    fn folders_add_up() {
        let at = |line: &[&str]| match planned(line) {
            Plan::Fetch(request) => request.params.path.unwrap(),
            other => panic!("{line:?} gave {other:?}"),
        };
        assert_eq!(at(&["-C", "app", "fetch"]), "/workspace/app");
        assert_eq!(at(&["-C", "app", "-C", "../lib/.", "fetch"]), "/workspace/lib");
        assert_eq!(at(&["-C", "/a", "-C", "b", "fetch"]), "/a/b");
        assert_eq!(at(&["-C", "", "fetch"]), "/workspace");
        assert_eq!(at(&["-C", "../../..", "fetch"]), "/");
    }

    #[test]
    fn steering_options_are_refused_before_network_commands_only() {
        for option in [
            &["-c", "core.sshCommand=x"][..],
            &["--config-env=a=B"],
            &["--config-env", "a=B"],
            &["--git-dir=/x"],
            &["--git-dir", "/x"],
            &["--work-tree", "/x"],
            &["--exec-path=/x"],
            &["--namespace", "n"],
            &["--bare"],
        ] {
            let mut line = option.to_vec();
            line.push("push");
            assert!(refusal(&line).contains(option[0]), "{option:?}");
            line.pop();
            line.push("log");
            assert_eq!(planned(&line), Plan::Exec);
        }
        // The value of -c is not the command.
        assert_eq!(planned(&["-c", "push", "log"]), Plan::Exec);
    }

    #[test]
    fn what_is_not_ours_goes_to_git() {
        for line in [
            &[][..],
            &["--version"],
            &["--exec-path"],
            &["-C"],
            &["-C", "/x"],
            &["--unknown", "push"],
            &["p"],
            &["ls-remote"],
            &["remote", "update"],
            &["submodule", "update"],
            &["push", "--help"],
            &["push", "-h"],
            &["help", "push"],
            &["clone"],
        ] {
            assert_eq!(planned(line), Plan::Exec, "{line:?}");
        }
        let odd = [OsStr::from_bytes(b"\xff")];
        assert_eq!(plan(&odd, Path::new("/")), Plan::Exec);
    }

    #[test]
    fn refusals_name_the_word() {
        assert!(
            refusal(&["push", "--force"]).starts_with("git push: unsupported flag '--force'. ")
        );
        assert!(refusal(&["push", "-u", "origin", "HEAD"]).contains("'-u'"));
        assert!(refusal(&["fetch", "origin"]).contains("'origin'"));
        assert!(refusal(&["pull", "--rebase"]).contains("'--rebase'"));
        let odd = [OsStr::new("push"), OsStr::from_bytes(b"a\xff")];
        assert!(matches!(plan(&odd, Path::new("/")), Plan::Refuse(t) if t.contains("UTF-8")));
    }

    #[test]
    fn only_local_clones_run() {
        for line in [
            &["clone", "/srv/a"][..],
            &["clone", "./a", "b"],
            &["clone", "--depth", "1", "-b", "main", "file:///srv/a", "b"],
            &["clone", "--", "../a"],
            &["clone", "-q", "."],
            &["clone", "~/a"],
        ] {
            assert_eq!(planned(line), Plan::Exec, "{line:?}");
        }
        for line in [
            &["clone", "https://h/o/r"][..],
            &["clone", "git@h:o/r"],
            &["clone", "o/r", "/tmp/x"],
            &["clone", "--depth", "1", "ssh://h/r", "./x"],
            &["clone", "--", "ext::sh"],
            &["clone", "host:path"],
            &["clone", "-"],
        ] {
            assert!(refusal(line).contains("from the network"), "{line:?}");
        }
    }

    #[test]
    fn a_remote_is_given_beside_the_command_line() {
        let fork = "fork".parse().unwrap();
        let Plan::Push(request) = plan_with_remote(&["push"], Path::new("/w"), &fork) else {
            panic!("no push")
        };
        assert_eq!(request.params.remote.as_deref(), Some("fork"));
        assert_eq!(plan_with_remote(&["log"], Path::new("/w"), &fork), Plan::Exec);
    }
}
