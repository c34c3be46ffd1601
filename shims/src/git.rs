//! `git`: network commands go to the host, everything else to the real git, unchanged.
//!
//! The box's git has no credentials, so `push`, `fetch`, `pull` and a `clone` from the network
//! become requests to the relay, by the relay's own grammar. git's global options are parsed first:
//! `git -C app push` is a push too.
//!
//! The host chooses remote and branch. What agents type all the same, such as `git push -u origin
//! HEAD`, is taken when it means exactly what the host would do anyway, and refused otherwise. The
//! surprising thing: an alias is not looked at, so `git p` reaches the real git and fails there for
//! lack of a credential.

use connectors::clone::Cloning;
use connectors::git::{BranchName, Fetch, GitError, Op, Outgoing, Pull, RemoteName};
use protocol::exit;
use protocol::rpc::{ArgsParams, GitParams};
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
        /// The remote's branch to merge; the upstream when absent.
        from: Option<BranchName>,
    },
    Clone(ArgsParams),
    Refuse(Refused),
}

/// Say this line and stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: i32,
    pub line: String,
}

/// A call for the relay, and the folder in the box it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub dir: PathBuf,
    pub params: GitParams,
    /// A line for whoever typed it, when what happens is not what they may think.
    pub note: Option<String>,
}

/// What a plan may have to know about the box. Looked at only when a command needs it.
pub trait Look {
    /// The repository a folder belongs to; empty when it belongs to none.
    fn repository(&self, dir: &Path) -> Repository;
    fn exists(&self, path: &Path) -> bool;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The branch the host gave this box.
    pub own: Option<String>,
    pub remotes: Vec<String>,
    /// The host knows nothing of it, such as a clone beside the project.
    pub foreign: bool,
}

impl Repository {
    /// The branch that is checked out is the one the host pushes.
    fn on_own_branch(&self) -> bool {
        match (&self.branch, &self.own) {
            (Some(branch), Some(own)) => branch == own,
            // A box of before that was not told.
            (Some(branch), None) => branch.starts_with("agentbox/"),
            (None, _) => false,
        }
    }
}

/// Plans `git <args>` run in `cwd`.
pub fn plan<S: AsRef<OsStr>>(args: &[S], cwd: &Path, look: &dyn Look) -> Plan {
    planned(args, cwd, look, None)
}

/// The same with a remote chosen by name, beside the command line.
pub fn plan_with_remote<S: AsRef<OsStr>>(
    args: &[S],
    cwd: &Path,
    look: &dyn Look,
    remote: &RemoteName,
) -> Plan {
    planned(args, cwd, look, Some(remote))
}

fn planned<S: AsRef<OsStr>>(
    args: &[S],
    cwd: &Path,
    look: &dyn Look,
    remote: Option<&RemoteName>,
) -> Plan {
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    let Some(line) = Line::read(&args, cwd) else { return Plan::Exec };
    let asks_for_help = matches!(line.rest.first(), Some(t) if *t == "-h" || *t == "--help");
    if asks_for_help {
        return Plan::Exec;
    }
    let plan = match line.command {
        "push" => line.words(remote).and_then(|words| words.push(look)),
        "fetch" => line.words(remote).and_then(|words| words.fetch(look)),
        "pull" => line.words(remote).and_then(|words| words.pull(look)),
        "clone" => line.clone_from(look),
        _ => Ok(Plan::Exec),
    };
    plan.unwrap_or_else(Plan::Refuse)
}

type Planned = Result<Plan, Refused>;

impl From<GitError> for Refused {
    fn from(error: GitError) -> Self {
        let code = match error {
            GitError::RemoteForHost => error.exit_code(),
            _ => exit::SHIM_REFUSED,
        };
        Self { code, line: error.to_string() }
    }
}

fn refused(line: impl Into<String>) -> Refused {
    Refused { code: exit::SHIM_REFUSED, line: line.into() }
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

    /// The words after the command, when nothing before it steers git.
    fn texts(&self) -> Result<Vec<String>, Refused> {
        let command = self.command;
        if let Some(option) = self.steering {
            let option = visible(option);
            return Err(refused(format!(
                "git {command}: '{option}' before a network command is not supported: the host runs \
                 it with its own settings. Leave the option out, or use -C <folder>."
            )));
        }
        let text = |t: &&OsStr| {
            t.to_str().map(str::to_owned).ok_or_else(|| {
                let shown = visible(&t.to_string_lossy());
                refused(format!("git {command}: argument '{shown}' is not UTF-8. Leave it out."))
            })
        };
        self.rest.iter().map(text).collect()
    }

    fn words(self, remote: Option<&RemoteName>) -> Result<Words, Refused> {
        let op = match self.command {
            "push" => Op::Push,
            "fetch" => Op::Fetch,
            _ => Op::Pull,
        };
        Words::sort(op, self.texts()?, remote, self.dir)
    }

    /// A copy of a repository that is in the box already needs no host.
    fn clone_from(self, look: &dyn Look) -> Planned {
        let Some(source) = clone_source(self.rest) else { return Ok(Plan::Exec) };
        let here = is_path(source) || look.exists(&self.dir.join(source));
        if here && !self.rest.iter().any(|word| is_remote(word)) {
            return Ok(Plan::Exec);
        }
        let mut args = self.texts()?;
        // Said or not said, all is brought; with a depth there is one branch anyway.
        let shallow = args.iter().any(|a| a.starts_with("--depth"));
        let implied = |a: &str| shallow && a == "--single-branch";
        args.retain(|a| !CLONE_TALK.contains(&a.as_str()) && !implied(a));
        let mut cloning = Cloning::parse(&args).map_err(|e| refused(e.text))?;
        let absolute = |dir: String| lexical(&self.dir.join(dir)).to_str().map(str::to_owned);
        cloning.dir = cloning.dir.and_then(absolute);
        let path = self.dir.to_str().map(str::to_owned);
        Ok(Plan::Clone(ArgsParams { path, args: cloning.argv(), stdin: None }))
    }
}

/// The words of a push, fetch or pull by what they are.
struct Words {
    op: Op,
    dir: PathBuf,
    /// Flags of the relay's grammar, and whatever it will refuse.
    flags: Vec<String>,
    remote: Option<String>,
    places: Vec<String>,
    host_only: bool,
    name: Option<String>,
    force: Option<String>,
}

impl Words {
    fn sort(
        op: Op,
        words: Vec<String>,
        remote: Option<&RemoteName>,
        dir: PathBuf,
    ) -> Result<Self, Refused> {
        let remote = remote.map(ToString::to_string);
        let (flags, places) = (Vec::new(), Vec::new());
        let mut sorted =
            Self { op, dir, flags, remote, places, host_only: false, name: None, force: None };
        let push = op == Op::Push;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            match flag {
                "--remote" => sorted.remote = Some(needs_value(op, flag, value, &mut words)?),
                "--as" if push => sorted.name = Some(needs_value(op, flag, value, &mut words)?),
                "--host-only" if push && value.is_none() => sorted.host_only = true,
                "--force" | "-f" if push && value.is_none() => sorted.force = Some(word),
                // The box notes the upstream after every push.
                "--set-upstream" | "-u" if push && value.is_none() => {}
                _ if flag.starts_with('-') || flag.is_empty() => sorted.flags.push(word),
                _ => sorted.places.push(word),
            }
        }
        Ok(sorted)
    }

    fn push(mut self, look: &dyn Look) -> Planned {
        let repository = self.repository(look)?;
        self.take_remote(&repository)?;
        if let Some(refspec) = self.places.first() {
            let current = repository.branch.as_deref();
            let means_current = refspec == "HEAD" || Some(refspec.as_str()) == current;
            match current.filter(|_| means_current) {
                Some(_) if repository.on_own_branch() => {}
                Some(branch) => return Err(refused(other_branch(branch, &repository))),
                None => return Err(GitError::Positional(self.op, refspec.clone()).into()),
            }
            self.none_after(1)?;
        }
        let elsewhere = repository.branch.as_deref().filter(|_| !repository.on_own_branch());
        let note = elsewhere.filter(|_| repository.own.is_some());
        let note = note.map(|branch| other_branch(branch, &repository));
        if !self.host_only {
            self.flags.extend(self.force.take());
        }
        let request = self.request(note);
        Outgoing::parse(&request.params)?;
        Ok(Plan::Push(request))
    }

    fn fetch(mut self, look: &dyn Look) -> Planned {
        let repository = self.repository(look)?;
        self.take_remote(&repository)?;
        self.none_after(0)?;
        let request = self.request(None);
        Fetch::parse(&request.params)?;
        Ok(Plan::Fetch(request))
    }

    fn pull(mut self, look: &dyn Look) -> Planned {
        let repository = self.repository(look)?;
        self.take_remote(&repository)?;
        let bad = |word: &String| GitError::Positional(Op::Pull, word.clone());
        let from =
            self.places.first().map(|word| word.parse().map_err(|_| bad(word))).transpose()?;
        self.none_after(1)?;
        let pull = Pull::parse(&self.flags)?;
        self.flags = pull.to_fetch().to_argv().into_iter().map(str::to_owned).collect();
        let fetch = self.request(None);
        Fetch::parse(&fetch.params)?;
        Ok(Plan::Pull { fetch, merge: pull.merge_argv(), from })
    }

    fn repository(&self, look: &dyn Look) -> Result<Repository, Refused> {
        let repository = look.repository(&self.dir);
        if !repository.foreign {
            return Ok(repository);
        }
        Err(refused(format!(
            "{}: this repository is not the project's, and the host pushes and fetches that one only. \
             Run it in the project's folder; to renew a clone, clone again.",
            self.op
        )))
    }

    /// The first place is a remote the box was made with.
    fn take_remote(&mut self, repository: &Repository) -> Result<(), Refused> {
        if self.places.is_empty() {
            return Ok(());
        }
        let word = self.places.remove(0);
        if !repository.remotes.contains(&word) || self.remote.as_ref().is_some_and(|r| *r != word) {
            return Err(GitError::Positional(self.op, word).into());
        }
        self.remote = Some(word);
        Ok(())
    }

    fn none_after(&self, count: usize) -> Result<(), Refused> {
        let extra = self.places.get(count).cloned();
        extra.map_or(Ok(()), |word| Err(GitError::Positional(self.op, word).into()))
    }

    fn request(self, note: Option<String>) -> Request {
        let params = GitParams {
            path: self.dir.to_str().map(str::to_owned),
            remote: self.remote,
            args: self.flags,
            host_only: self.host_only,
            name: self.name,
            force: self.host_only && self.force.is_some(),
        };
        Request { dir: self.dir, params, note }
    }
}

fn needs_value(
    op: Op,
    flag: &str,
    glued: Option<String>,
    words: &mut impl Iterator<Item = String>,
) -> Result<String, Refused> {
    let value = glued.or_else(|| words.next());
    value.ok_or_else(|| refused(format!("{op}: '{flag}' needs a value.")))
}

fn other_branch(branch: &str, repository: &Repository) -> String {
    let own = repository.own.as_deref().unwrap_or("the branch it was made with");
    let (branch, own) = (visible(branch), visible(own));
    format!(
        "git push: '{branch}' is checked out, but the host pushes this box's branch, {own}. Bring the \
         commits there first: git switch {own} && git merge {branch}"
    )
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

/// Options of `git clone` about how much it says.
const CLONE_TALK: &[&str] = &["-q", "--quiet", "-v", "--verbose", "--progress", "--no-progress"];

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

/// Something no folder is called.
fn is_remote(word: &OsStr) -> bool {
    let Some(text) = word.to_str() else { return false };
    (text.contains("://") && !text.starts_with("file://")) || text.starts_with("git@")
}

fn is_path(source: &OsStr) -> bool {
    let bytes = source.as_encoded_bytes();
    let exact: &[&[u8]] = &[b".", b".."];
    let starts: &[&[u8]] = &[b"file://", b"/", b"./", b"../", b"~/"];
    exact.contains(&bytes) || starts.iter().any(|s| bytes.starts_with(s))
}

/// Resolves `.` and `..` by text. The relay refuses `..`, and only compares paths.
pub(crate) fn lexical(path: &Path) -> PathBuf {
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
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    /// A box as it is made: on its own branch, with one remote.
    struct Usual {
        branch: &'static str,
        foreign: bool,
    }

    const OWN: &str = "agentbox/t";
    const USUAL: Usual = Usual { branch: OWN, foreign: false };

    impl Look for Usual {
        fn repository(&self, _: &Path) -> Repository {
            Repository {
                branch: Some(self.branch.to_owned()),
                own: Some(OWN.to_owned()),
                remotes: vec!["origin".to_owned(), "fork".to_owned()],
                foreign: self.foreign,
            }
        }

        fn exists(&self, path: &Path) -> bool {
            path == Path::new("/workspace/vendor/lib")
        }
    }

    fn planned(line: &[&str]) -> Plan {
        plan(line, Path::new("/workspace"), &USUAL)
    }

    fn request(path: &str, args: &[&str]) -> Request {
        let args = args.iter().map(ToString::to_string).collect();
        let params = GitParams { path: Some(path.into()), args, ..GitParams::default() };
        Request { dir: path.into(), params, note: None }
    }

    fn to_remote(remote: &str, args: &[&str]) -> Request {
        let mut request = request("/workspace", args);
        request.params.remote = Some(remote.into());
        request
    }

    fn refusal_in(look: &Usual, line: &[&str]) -> Refused {
        match plan(line, Path::new("/workspace"), look) {
            Plan::Refuse(refused) => refused,
            other => panic!("{line:?} gave {other:?}"),
        }
    }

    fn refusal(line: &[&str]) -> String {
        let refused = refusal_in(&USUAL, line);
        assert_eq!(refused.code, 2, "{refused:?}");
        refused.line
    }

    #[test]
    fn relay_19_21_network_commands_are_caught() {
        assert!(refusal(&["push", "origin", "main"]).contains("'main'"));
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
                merge: vec!["--ff-only", "--quiet"],
                from: None,
            }
        );
    }

    #[test]
    fn relay_19_21_what_means_the_same_is_taken() {
        for line in [
            &["push", "origin"][..],
            &["push", "origin", "HEAD"],
            &["push", "-u", "origin", "HEAD"],
            &["push", "--set-upstream", "origin", OWN],
            &["push", "origin", OWN, "-u"],
            &["push", "--remote", "origin"],
            &["push", "--remote=origin", "origin"],
        ] {
            assert_eq!(planned(line), Plan::Push(to_remote("origin", &[])), "{line:?}");
        }
        assert_eq!(planned(&["push", "-u"]), Plan::Push(request("/workspace", &[])));
        assert_eq!(
            planned(&["push", "fork", "--tags", "--force-with-lease"]),
            Plan::Push(to_remote("fork", &["--tags", "--force-with-lease"]))
        );
        assert_eq!(planned(&["fetch", "origin", "-p"]), Plan::Fetch(to_remote("origin", &["-p"])));
        assert_eq!(
            planned(&["pull", "origin", "main"]),
            Plan::Pull {
                fetch: to_remote("origin", &[]),
                merge: vec![],
                from: Some("main".parse().unwrap())
            }
        );
    }

    #[test]
    fn relay_a03_what_means_something_else_is_refused() {
        for (line, word) in [
            (&["push", "elsewhere"][..], "'elsewhere'"),
            (&["push", "https://h/x"], "'https://h/x'"),
            (&["push", "main"], "'main'"),
            (&["push", "origin", "HEAD:main"], "'HEAD:main'"),
            (&["push", "origin", ":main"], "':main'"),
            (&["push", "origin", "+HEAD"], "'+HEAD'"),
            (&["push", "origin", "refs/heads/agentbox/t"], "'refs/heads/agentbox/t'"),
            (&["push", "origin", "HEAD", "main"], "'main'"),
            (&["push", "origin", "agentbox/t:main"], "'agentbox/t:main'"),
            (&["push", "--remote", "fork", "origin"], "'origin'"),
            (&["push", "--", "origin"], "'--'"),
            (&["push", ""], "''"),
            (&["push", "--as", "x"], "--host-only"),
            (&["push", "--force"], "'--force'"),
            (&["push", "-f", "origin"], "'-f'"),
            (&["push", "-uf"], "'-uf'"),
            (&["push", "--set-upstream=x"], "'--set-upstream=x'"),
            (&["push", "--remote"], "'--remote'"),
            (&["push", "--remote", "-o"], "'-o'"),
            (&["fetch", "elsewhere"], "'elsewhere'"),
            (&["fetch", "origin", "main"], "'main'"),
            (&["fetch", "--host-only"], "'--host-only'"),
            (&["pull", "origin", "a:b"], "'a:b'"),
            (&["pull", "origin", "a", "b"], "'b'"),
        ] {
            let line_said = refusal(line);
            assert!(line_said.contains(word), "{line:?}: {line_said}");
        }
    }

    #[test]
    fn another_branch_is_never_pushed_in_silence() {
        let elsewhere = Usual { branch: "fix/login", foreign: false };
        for line in [&["push", "-u", "origin", "fix/login"][..], &["push", "origin", "HEAD"]] {
            let refused = refusal_in(&elsewhere, line);
            assert!(refused.line.contains("git switch agentbox/t && git merge fix/login"));
        }
        assert!(refusal_in(&elsewhere, &["push", "origin", OWN]).line.contains("'agentbox/t'"));
        let Plan::Push(plain) = plan(&["push"], Path::new("/w"), &elsewhere) else { panic!() };
        assert!(plain.note.unwrap().contains("the host pushes this box's branch, agentbox/t"));
    }

    #[test]
    fn a_repository_beside_the_project_is_left_alone() {
        let beside = Usual { branch: "main", foreign: true };
        for line in [&["push"][..], &["fetch"], &["pull"], &["push", "--host-only"]] {
            assert!(refusal_in(&beside, line).line.contains("not the project's"), "{line:?}");
        }
        assert_eq!(plan(&["log"], Path::new("/x"), &beside), Plan::Exec);
    }

    #[test]
    fn relay_19_19_landings_take_a_name_and_force() {
        let landing = |name: Option<&str>, force: bool| {
            let mut request = request("/workspace", &[]);
            request.params.host_only = true;
            request.params.name = name.map(str::to_owned);
            request.params.force = force;
            Plan::Push(request)
        };
        assert_eq!(planned(&["push", "--host-only"]), landing(None, false));
        assert_eq!(planned(&["push", "--host-only", "--as", "x"]), landing(Some("x"), false));
        assert_eq!(planned(&["push", "--as=x", "-f", "--host-only"]), landing(Some("x"), true));
        assert!(refusal(&["push", "--host-only", "--as", "-x"]).contains("'-x'"));
        assert!(refusal(&["push", "--host-only", "--as", "a..b"]).contains("'a..b'"));
        assert!(refusal(&["push", "--host-only", "--tags"]).contains("'--tags'"));
        for line in
            [&["push", "--host-only", "--remote", "origin"][..], &["push", "origin", "--host-only"]]
        {
            let refused = refusal_in(&USUAL, line);
            assert_eq!(refused.code, 64, "{line:?}");
        }
        let fork = "fork".parse().unwrap();
        let beside = plan_with_remote(&["push", "--host-only"], Path::new("/w"), &USUAL, &fork);
        assert!(matches!(beside, Plan::Refuse(Refused { code: 64, .. })));
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
        assert_eq!(plan(&odd, Path::new("/"), &USUAL), Plan::Exec);
    }

    #[test]
    fn refusals_name_the_word() {
        assert!(
            refusal(&["push", "--force"]).starts_with("git push: unsupported flag '--force'. ")
        );
        assert!(refusal(&["pull", "--rebase"]).contains("'--rebase'"));
        let odd = [OsStr::new("push"), OsStr::from_bytes(b"a\xff")];
        let plan = plan(&odd, Path::new("/"), &USUAL);
        assert!(matches!(plan, Plan::Refuse(refused) if refused.line.contains("UTF-8")));
    }

    #[test]
    fn clones_in_the_box_run_there() {
        for line in [
            &["clone", "/srv/a"][..],
            &["clone", "./a", "b"],
            &["clone", "--depth", "1", "-b", "main", "file:///srv/a", "b"],
            &["clone", "--", "../a"],
            &["clone", "-q", "."],
            &["clone", "~/a"],
            &["clone", "vendor/lib"],
        ] {
            assert_eq!(planned(line), Plan::Exec, "{line:?}");
        }
    }

    #[test]
    fn clones_from_elsewhere_are_the_hosts() {
        let cloned = |line: &[&str]| match planned(line) {
            Plan::Clone(params) => (params.path.unwrap(), params.args.join(" ")),
            other => panic!("{line:?} gave {other:?}"),
        };
        for (line, path, args) in [
            (&["clone", "https://h.org/o/r"][..], "/workspace", "-- https://h.org/o/r"),
            (&["clone", "git@h.org:o/r", "x"], "/workspace", "-- git@h.org:o/r /workspace/x"),
            (&["clone", "o/r", "/tmp/x"], "/workspace", "-- https://github.com/o/r.git /tmp/x"),
            (
                &["-C", "a", "clone", "o/r", "../x"],
                "/workspace/a",
                "-- https://github.com/o/r.git /workspace/x",
            ),
            (
                &["clone", "--depth", "1", "--single-branch", "-q", "-b", "v1", "o/r"],
                "/workspace",
                "--branch=v1 --depth=1 -- https://github.com/o/r.git",
            ),
        ] {
            assert_eq!(cloned(line), (path.to_owned(), args.to_owned()), "{line:?}");
        }
    }

    #[test]
    fn in_doubt_a_clone_is_refused() {
        for line in [
            &["clone", "--", "ext::sh"][..],
            &["clone", "host:path"],
            &["clone", "-"],
            &["clone", "nowhere"],
            &["clone", "--recurse-submodules", "o/r"],
            &["clone", "--mirror", "https://h.org/o/r"],
            &["clone", "--reference", "/srv/a", "https://h.org/o/r"],
            &["clone", "/srv/a", "https://h.org/o/r"],
            &["clone", "--dep", "1", "https://h.org/o/r"],
            &["clone", "https://me:pw@h.org/o/r"],
            &["-c", "core.sshCommand=x", "clone", "https://h.org/o/r"],
        ] {
            assert!(refusal(line).starts_with("git clone: "), "{line:?}");
        }
    }

    #[test]
    fn a_remote_is_given_beside_the_command_line() {
        let fork = "fork".parse().unwrap();
        let with = |line: &[&str]| plan_with_remote(line, Path::new("/w"), &USUAL, &fork);
        let Plan::Push(request) = with(&["push"]) else { panic!("no push") };
        assert_eq!(request.params.remote.as_deref(), Some("fork"));
        assert_eq!(with(&["log"]), Plan::Exec);
    }

    fn word() -> impl Strategy<Value = String> {
        const KNOWN: &[&str] = &[
            "push",
            "pull",
            "fetch",
            "clone",
            "-C",
            "-c",
            "origin",
            "HEAD",
            OWN,
            "main",
            "-u",
            "--tags",
            "--host-only",
            "--as",
            "--force",
            "--remote",
            "-q",
            "--",
            "o/r",
            ":main",
            "https://h.org/o/r",
        ];
        prop_oneof![4 => proptest::sample::select(KNOWN).prop_map(str::to_owned), 1 => ".{0,8}"]
    }

    proptest! {
        /// Whatever is typed, what leaves the box is something the relay's grammar takes, and a
        /// refusal is one line.
        #[test]
        fn every_plan_fits_the_relays_grammar(words in prop::collection::vec(word(), 0..7)) {
            match plan(&words, Path::new("/workspace"), &USUAL) {
                Plan::Push(request) => prop_assert!(Outgoing::parse(&request.params).is_ok()),
                Plan::Fetch(fetch) | Plan::Pull { fetch, .. } => {
                    prop_assert!(Fetch::parse(&fetch.params).is_ok());
                }
                Plan::Clone(params) => prop_assert!(Cloning::parse(&params.args).is_ok()),
                Plan::Refuse(refused) => {
                    prop_assert!(refused.line.starts_with("git "), "{}", refused.line);
                    prop_assert!(!refused.line.chars().any(char::is_control), "{}", refused.line);
                }
                Plan::Exec => {}
            }
        }
    }
}
