//! What a box may ask git for: push, fetch, pull.
//!
//! Every flag is value-less and known by its exact spelling; there are no positionals, because the
//! relay owns remote and branch. Nothing that names a program, a file, a refspec or another
//! repository has a spelling that passes. What comes out of [`Push::to_argv`] and
//! [`Fetch::to_argv`] are `'static` words: a token a box wrote cannot be among them.
//!
//! The surprising thing: `--force-with-lease` and `--tags` come back bare, and no host program gets
//! to see them so. Only the host knows which object id a lease is on and which tags there are: the
//! relay writes the lease and one refspec per tag itself.

use protocol::exit;
use protocol::rpc::{GitParams, MAX_ARG_BYTES, MAX_ARGS, MAX_ARGS_BYTES};
use protocol::text::visible;

pub use crate::names::{BadName, BranchName, ObjectId, RefName, RemoteName, TagName};

/// The command a grammar belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Push,
    /// `git push --host-only`.
    Land,
    Fetch,
    Pull,
}

/// Parsed `git.push`: where the box's branch goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    Remote(Push),
    Host(Land),
}

/// To a remote, for others to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Push {
    pub remote: RemoteName,
    pub force_with_lease: bool,
    /// The box's tags as well.
    pub tags: bool,
    pub dry_run: bool,
    pub common: Common,
}

/// To the host's own repository; nothing is published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Land {
    /// The branch's name there; the box's own when absent.
    pub name: Option<BranchName>,
    /// Also when commits of the branch there are lost.
    pub force: bool,
    pub common: Common,
}

/// Parsed `git.fetch`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetch {
    pub remote: RemoteName,
    pub prune: bool,
    pub prune_tags: bool,
    /// `--tags` or `--no-tags`, when either was given.
    pub tags: Option<bool>,
    pub force: bool,
    pub dry_run: bool,
    pub common: Common,
}

/// Parsed `git pull`, which is a fetch by the host and a merge in the box. It has no method of its
/// own on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pull {
    pub ff_only: bool,
    pub prune: bool,
    pub tags: Option<bool>,
    pub common: Common,
}

/// How much git says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Common {
    pub quiet: bool,
    pub verbose: bool,
    /// `--progress` or `--no-progress`, when either was given.
    pub progress: Option<bool>,
}

/// Why a request was refused. Displays as one line, without the line's end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    #[error("{0}: unsupported flag '{shown}'. Allowed: {list}.", shown = visible(.1), list = .0.allowed())]
    Flag(Op, String),
    #[error("{0}: unexpected argument '{shown}': the relay chooses remote and branch. {hint}", shown = visible(.1), hint = .0.hint())]
    Positional(Op, String),
    #[error("{0}: flag '{shown}' was given twice or contradicts another. Give it once.", shown = visible(.1))]
    Repeated(Op, String),
    #[error("{0}: {1}. Use the name of a remote the project has, such as origin.")]
    Remote(Op, BadName),
    #[error("{0}: {1}. Give the name of a branch, without refs/heads/.")]
    Branch(Op, BadName),
    #[error(
        "git push: --host-only publishes nothing, so it takes no remote. Leave out one of them."
    )]
    RemoteForHost,
    #[error("{0}: hostOnly, as and force are for 'git push --host-only' alone.")]
    NotForHost(Op),
    #[error("{0}: {1} arguments are too many; at most {MAX_ARGS} are taken.")]
    TooMany(Op, usize),
    #[error(
        "{0}: {1} bytes of arguments are too many; at most {MAX_ARG_BYTES} each and {MAX_ARGS_BYTES} in all are taken."
    )]
    TooLarge(Op, usize),
}

impl GitError {
    /// 64 when the request has no readable shape, 65 when a rule forbids it.
    pub fn exit_code(&self) -> i32 {
        match self {
            GitError::TooMany(..)
            | GitError::TooLarge(..)
            | GitError::RemoteForHost
            | GitError::NotForHost(_) => exit::UNADDRESSABLE,
            _ => exit::REFUSED,
        }
    }
}

impl Outgoing {
    pub fn parse(params: &GitParams) -> Result<Self, GitError> {
        if params.host_only {
            return Land::parse(params).map(Outgoing::Host);
        }
        Push::parse(params).map(Outgoing::Remote)
    }
}

impl Land {
    fn parse(params: &GitParams) -> Result<Self, GitError> {
        if params.remote.is_some() {
            return Err(GitError::RemoteForHost);
        }
        let given = Given::read(Op::Land, &params.args)?;
        let name = params.name.as_deref().map(str::parse).transpose();
        let name = name.map_err(|e| GitError::Branch(Op::Land, e))?;
        Ok(Self { name, force: params.force, common: given.common() })
    }
}

impl Push {
    pub fn parse(params: &GitParams) -> Result<Self, GitError> {
        not_for_host(Op::Push, params)?;
        let given = Given::read(Op::Push, &params.args)?;
        Ok(Self {
            remote: remote(Op::Push, params.remote.as_deref())?,
            force_with_lease: given.has(Flag::ForceWithLease),
            tags: given.has(Flag::Tags),
            dry_run: given.has(Flag::DryRun),
            common: given.common(),
        })
    }

    /// The flags again, from the value.
    pub fn to_argv(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        flags.extend(self.force_with_lease.then_some(Flag::ForceWithLease));
        flags.extend(self.tags.then_some(Flag::Tags));
        flags.extend(self.dry_run.then_some(Flag::DryRun));
        self.common.collect(&mut flags);
        words(&flags)
    }
}

impl Fetch {
    pub fn parse(params: &GitParams) -> Result<Self, GitError> {
        not_for_host(Op::Fetch, params)?;
        let given = Given::read(Op::Fetch, &params.args)?;
        Ok(Self {
            remote: remote(Op::Fetch, params.remote.as_deref())?,
            prune: given.has(Flag::Prune),
            prune_tags: given.has(Flag::PruneTags),
            tags: given.either(Flag::Tags, Flag::NoTags),
            force: given.has(Flag::Force),
            dry_run: given.has(Flag::DryRun),
            common: given.common(),
        })
    }

    /// The flags again, from the value.
    pub fn to_argv(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        flags.extend(self.prune.then_some(Flag::Prune));
        flags.extend(self.prune_tags.then_some(Flag::PruneTags));
        flags.extend(self.tags.map(|on| if on { Flag::Tags } else { Flag::NoTags }));
        flags.extend(self.force.then_some(Flag::Force));
        flags.extend(self.dry_run.then_some(Flag::DryRun));
        self.common.collect(&mut flags);
        words(&flags)
    }
}

impl Pull {
    pub fn parse(args: &[String]) -> Result<Self, GitError> {
        let given = Given::read(Op::Pull, args)?;
        Ok(Self {
            ff_only: given.has(Flag::FfOnly),
            prune: given.has(Flag::Prune),
            tags: given.either(Flag::Tags, Flag::NoTags),
            common: given.common(),
        })
    }

    /// The half the host does. `git fetch` knows no `--ff-only`.
    pub fn to_fetch(&self) -> Fetch {
        Fetch { prune: self.prune, tags: self.tags, common: self.common, ..Fetch::default() }
    }

    /// Flags of the merge in the box. `git merge` knows no `--prune`.
    pub fn merge_argv(&self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        flags.extend(self.ff_only.then_some(Flag::FfOnly));
        flags.extend(self.common.quiet.then_some(Flag::Quiet));
        words(&flags)
    }
}

impl Common {
    fn collect(self, flags: &mut Vec<Flag>) {
        flags.extend(self.quiet.then_some(Flag::Quiet));
        flags.extend(self.verbose.then_some(Flag::Verbose));
        flags.extend(self.progress.map(|on| if on { Flag::Progress } else { Flag::NoProgress }));
    }
}

/// Every flag there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    ForceWithLease,
    DryRun,
    Prune,
    PruneTags,
    Tags,
    NoTags,
    Force,
    FfOnly,
    Quiet,
    Verbose,
    Progress,
    NoProgress,
}

impl Flag {
    fn long(self) -> &'static str {
        match self {
            Flag::ForceWithLease => "--force-with-lease",
            Flag::DryRun => "--dry-run",
            Flag::Prune => "--prune",
            Flag::PruneTags => "--prune-tags",
            Flag::Tags => "--tags",
            Flag::NoTags => "--no-tags",
            Flag::Force => "--force",
            Flag::FfOnly => "--ff-only",
            Flag::Quiet => "--quiet",
            Flag::Verbose => "--verbose",
            Flag::Progress => "--progress",
            Flag::NoProgress => "--no-progress",
        }
    }

    fn short(self) -> Option<&'static str> {
        match self {
            Flag::Prune => Some("-p"),
            Flag::Force => Some("-f"),
            Flag::Quiet => Some("-q"),
            Flag::Verbose => Some("-v"),
            _ => None,
        }
    }

    /// The flag that says the contrary.
    fn contrary(self) -> Option<Flag> {
        match self {
            Flag::Tags => Some(Flag::NoTags),
            Flag::NoTags => Some(Flag::Tags),
            Flag::Progress => Some(Flag::NoProgress),
            Flag::NoProgress => Some(Flag::Progress),
            _ => None,
        }
    }

    fn is_spelled(self, token: &str) -> bool {
        token == self.long() || Some(token) == self.short()
    }
}

const COMMON: &[Flag] = &[Flag::Quiet, Flag::Verbose, Flag::Progress, Flag::NoProgress];

impl Op {
    fn own(self) -> &'static [Flag] {
        match self {
            Op::Push => &[Flag::ForceWithLease, Flag::Tags, Flag::DryRun],
            Op::Land => &[],
            Op::Fetch => {
                &[Flag::Prune, Flag::PruneTags, Flag::Tags, Flag::NoTags, Flag::Force, Flag::DryRun]
            }
            Op::Pull => &[Flag::FfOnly, Flag::Prune, Flag::Tags, Flag::NoTags],
        }
    }

    fn flags(self) -> impl Iterator<Item = Flag> {
        self.own().iter().chain(COMMON).copied()
    }

    fn allowed(self) -> String {
        let spelled = self.flags().map(|f| match f.short() {
            Some(short) => format!("{}/{short}", f.long()),
            None => f.long().to_owned(),
        });
        spelled.collect::<Vec<_>>().join(", ")
    }

    fn hint(self) -> &'static str {
        match self {
            Op::Push => "Plain 'git push' pushes this box's branch.",
            Op::Land => "Name the branch with --as.",
            Op::Fetch => "Plain 'git fetch' fetches every branch of the project's remote.",
            Op::Pull => "Plain 'git pull' fetches and merges this branch's upstream.",
        }
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Op::Push => "git push",
            Op::Land => "git push --host-only",
            Op::Fetch => "git fetch",
            Op::Pull => "git pull",
        })
    }
}

/// The flags of one request, each at most once.
struct Given(Vec<Flag>);

impl Given {
    fn read(op: Op, args: &[String]) -> Result<Self, GitError> {
        check_size(op, args)?;
        let mut given = Self(Vec::new());
        for token in args {
            let flag = find(op, token)?;
            if given.has(flag) || flag.contrary().is_some_and(|c| given.has(c)) {
                return Err(GitError::Repeated(op, token.clone()));
            }
            given.0.push(flag);
        }
        Ok(given)
    }

    fn has(&self, flag: Flag) -> bool {
        self.0.contains(&flag)
    }

    fn either(&self, yes: Flag, no: Flag) -> Option<bool> {
        if self.has(yes) { Some(true) } else { self.has(no).then_some(false) }
    }

    fn common(&self) -> Common {
        Common {
            quiet: self.has(Flag::Quiet),
            verbose: self.has(Flag::Verbose),
            progress: self.either(Flag::Progress, Flag::NoProgress),
        }
    }
}

fn find(op: Op, token: &str) -> Result<Flag, GitError> {
    let unknown = if token.starts_with('-') { GitError::Flag } else { GitError::Positional };
    op.flags().find(|f| f.is_spelled(token)).ok_or_else(|| unknown(op, token.to_owned()))
}

fn check_size(op: Op, args: &[String]) -> Result<(), GitError> {
    if args.len() > MAX_ARGS {
        return Err(GitError::TooMany(op, args.len()));
    }
    if let Some(long) = args.iter().find(|a| a.len() > MAX_ARG_BYTES) {
        return Err(GitError::TooLarge(op, long.len()));
    }
    let all = args.iter().map(String::len).sum();
    if all > MAX_ARGS_BYTES { Err(GitError::TooLarge(op, all)) } else { Ok(()) }
}

fn not_for_host(op: Op, params: &GitParams) -> Result<(), GitError> {
    if params.host_only || params.name.is_some() || params.force {
        return Err(GitError::NotForHost(op));
    }
    Ok(())
}

fn remote(op: Op, name: Option<&str>) -> Result<RemoteName, GitError> {
    let name = name.map_or_else(|| Ok(RemoteName::default()), str::parse);
    name.map_err(|e| GitError::Remote(op, e))
}

fn words(flags: &[Flag]) -> Vec<&'static str> {
    flags.iter().map(|f| f.long()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn args(tokens: &[&str]) -> GitParams {
        GitParams { args: tokens.iter().map(ToString::to_string).collect(), ..GitParams::default() }
    }

    fn refused(tokens: &[&str]) {
        for error in [Push::parse(&args(tokens)).err(), Fetch::parse(&args(tokens)).err()] {
            let error = error.unwrap_or_else(|| panic!("{tokens:?} was taken"));
            assert_eq!(error.exit_code(), 65, "{error}");
        }
    }

    #[test]
    fn relay_19_10_plain_requests_pass() {
        assert_eq!(Push::parse(&args(&[])).unwrap(), Push::default());
        assert_eq!(Push::default().remote.as_str(), "origin");
        assert!(Push::default().to_argv().is_empty());
        let push = Push::parse(&args(&["-q", "--tags", "--force-with-lease"])).unwrap();
        assert_eq!(push.to_argv(), ["--force-with-lease", "--tags", "--quiet"]);
        let fetch = Fetch::parse(&args(&["-p", "--no-tags", "-f", "-v"])).unwrap();
        assert_eq!(fetch.to_argv(), ["--prune", "--no-tags", "--force", "--verbose"]);
    }

    #[test]
    fn relay_19_11_refspecs_and_programs_are_refused() {
        for one in [
            ":main",
            "HEAD:main",
            "+x:y",
            "origin",
            "",
            "--receive-pack=x",
            "--exec=x",
            "--mirror",
            "--all",
            "--delete",
            "-d",
            "--repo=x",
            "--recurse-submodules",
            "--push-option=x",
            "--",
            "-",
            "--quie",
            "--quiet=1",
            "-qv",
            "--QUIET",
            " --quiet",
            "--quiet\n",
            "-c",
            "--force-with-lease=main:abc",
            "--refmap=x",
            "--server-option=x",
            "--follow-tags",
        ] {
            refused(&[one]);
        }
        refused(&["-o", "x"]);
        refused(&["--receive-pack", "x"]);
        for bad in ["--force", "-f", "--prune", "--no-tags", "--host-only"] {
            assert!(Push::parse(&args(&[bad])).is_err(), "{bad} was taken by push");
        }
    }

    #[test]
    fn relay_19_12_fetch_runs_no_program_and_knows_names_only() {
        refused(&["--upload-pack=touch X; git-upload-pack"]);
        refused(&["--upload-pack", "x"]);
        refused(&["-c", "core.sshCommand=x"]);
        for bad in ["--upload-pack=x", "ext::sh", "", "https://h/x", "/srv/x", "a b"] {
            let params = GitParams { remote: Some(bad.into()), ..GitParams::default() };
            assert_eq!(Fetch::parse(&params).unwrap_err().exit_code(), 65);
            assert_eq!(Push::parse(&params).unwrap_err().exit_code(), 65);
        }
        let params = GitParams { remote: Some("fork".into()), ..GitParams::default() };
        assert_eq!(Fetch::parse(&params).unwrap().remote.as_str(), "fork");
    }

    fn landing(name: Option<&str>, force: bool) -> GitParams {
        let name = name.map(str::to_owned);
        GitParams { host_only: true, name, force, ..GitParams::default() }
    }

    #[test]
    fn relay_19_19_a_landing_has_a_branch_name_and_no_remote() {
        let land = |params: &GitParams| Outgoing::parse(params);
        let plain = land(&landing(None, false)).unwrap();
        assert_eq!(plain, Outgoing::Host(Land::default()));
        let Ok(Outgoing::Host(named)) = land(&landing(Some("main"), true)) else { panic!() };
        assert_eq!((named.name.unwrap().as_str(), named.force), ("main", true));
        let remote = GitParams { remote: Some("origin".into()), ..landing(None, false) };
        assert_eq!(land(&remote).unwrap_err().exit_code(), 64);
        let flags = GitParams { args: vec!["--tags".into()], ..landing(None, false) };
        assert_eq!(land(&flags).unwrap_err().exit_code(), 65);
    }

    #[test]
    fn relay_a06_what_is_no_branch_name_is_refused() {
        for bad in ["-x", "a..b", "refs/heads/x", "", "HEAD", "a b", "a\n", "x:y", "a*"] {
            let error = Outgoing::parse(&landing(Some(bad), false)).unwrap_err();
            assert_eq!(error.exit_code(), 65, "{bad:?}");
            assert!(error.to_string().starts_with("git push --host-only: "), "{error}");
        }
    }

    #[test]
    fn relay_19_19_as_and_force_are_for_landings_alone() {
        for params in [
            GitParams { name: Some("main".into()), ..GitParams::default() },
            GitParams { force: true, ..GitParams::default() },
        ] {
            assert_eq!(Outgoing::parse(&params).unwrap_err().exit_code(), 64);
            assert_eq!(Fetch::parse(&params).unwrap_err().exit_code(), 64);
        }
        assert_eq!(Fetch::parse(&landing(None, false)).unwrap_err().exit_code(), 64);
    }

    #[test]
    fn relay_a10_repeated_and_contrary_flags_are_refused() {
        refused(&["-q", "--quiet"]);
        refused(&["--progress", "--no-progress"]);
        assert!(Fetch::parse(&args(&["--tags", "--no-tags"])).is_err());
    }

    #[test]
    fn relay_a20_huge_argument_lists_have_no_shape() {
        let many: Vec<&str> = vec!["-q"; MAX_ARGS + 1];
        assert_eq!(Push::parse(&args(&many)).unwrap_err().exit_code(), 64);
        let long = "x".repeat(MAX_ARG_BYTES + 1);
        assert_eq!(Push::parse(&args(&[&long])).unwrap_err().exit_code(), 64);
        let part = "x".repeat(MAX_ARG_BYTES);
        assert_eq!(Push::parse(&args(&[part.as_str(); 5])).unwrap_err().exit_code(), 64);
    }

    #[test]
    fn refusals_say_what_and_what_instead() {
        let text = |tokens: &[&str]| Push::parse(&args(tokens)).unwrap_err().to_string();
        assert_eq!(
            text(&["--force"]),
            "git push: unsupported flag '--force'. Allowed: --force-with-lease, --tags, \
             --dry-run, --quiet/-q, --verbose/-v, --progress, --no-progress."
        );
        assert_eq!(
            text(&["origin"]),
            "git push: unexpected argument 'origin': the relay chooses remote and branch. \
             Plain 'git push' pushes this box's branch."
        );
        assert!(text(&["a\n\x1b[2J\u{202e}"]).contains("'a⏎\\x1b[2J⟨U+202E⟩'"));
        let params = GitParams { remote: Some("ext::sh".into()), ..GitParams::default() };
        assert_eq!(
            Push::parse(&params).unwrap_err().to_string(),
            "git push: 'ext::sh' is not the name of a remote. Use the name of a remote the project \
             has, such as origin."
        );
    }

    #[test]
    fn pull_is_split_between_host_and_box() {
        let tokens = ["--ff-only", "-q", "-p", "--tags", "--progress"].map(String::from);
        let pull = Pull::parse(&tokens).unwrap();
        assert_eq!(pull.to_fetch().to_argv(), ["--prune", "--tags", "--quiet", "--progress"]);
        assert_eq!(pull.merge_argv(), ["--ff-only", "--quiet"]);
        for bad in ["--rebase", "--force", "--dry-run", "origin"] {
            assert!(Pull::parse(&[bad.to_string()]).is_err(), "{bad} was taken");
        }
    }

    /// Real spellings, near misses and anything else.
    fn token() -> impl Strategy<Value = String> {
        let known = Op::Fetch.flags().chain(Op::Push.flags()).chain([Flag::FfOnly]);
        let known: Vec<String> =
            known.flat_map(|f| [Some(f.long()), f.short()]).flatten().map(String::from).collect();
        prop_oneof![
            4 => proptest::sample::select(known.clone()),
            1 => (proptest::sample::select(known), ".{1,4}").prop_map(|(flag, tail)| flag + &tail),
            1 => "-{0,2}[a-z:=+]{0,8}",
            1 => ".*",
        ]
    }

    proptest! {
        #[test]
        fn what_is_rebuilt_parses_to_the_same_value(tokens in prop::collection::vec(token(), 0..6)) {
            let params = GitParams { args: tokens, ..GitParams::default() };
            if let Ok(push) = Push::parse(&params) {
                prop_assert_eq!(Push::parse(&args(&push.to_argv())).unwrap(), push);
            }
            if let Ok(fetch) = Fetch::parse(&params) {
                prop_assert_eq!(Fetch::parse(&args(&fetch.to_argv())).unwrap(), fetch);
            }
            if let Ok(pull) = Pull::parse(&params.args) {
                prop_assert!(Fetch::parse(&args(&pull.to_fetch().to_argv())).is_ok());
            }
        }

        #[test]
        fn no_bytes_give_a_word_outside_the_fixed_set(tokens in prop::collection::vec(token(), 0..6)) {
            let params = GitParams { args: tokens, ..GitParams::default() };
            let allowed = |op: Op, argv: Vec<&'static str>| {
                argv.iter().all(|word| op.flags().any(|f| f.long() == *word))
            };
            if let Ok(push) = Push::parse(&params) {
                prop_assert!(allowed(Op::Push, push.to_argv()));
            }
            if let Ok(fetch) = Fetch::parse(&params) {
                prop_assert!(allowed(Op::Fetch, fetch.to_argv()));
            }
        }

        #[test]
        fn a_landing_never_reaches_a_remote_nor_a_push_the_host(
            tokens in prop::collection::vec(token(), 0..3),
            host_only in any::<bool>(),
            remote in proptest::option::of("(origin|-o|.{0,6})"),
            name in proptest::option::of("(main|refs/heads/x|-x|.{0,6})"),
            force in any::<bool>(),
        ) {
            let params = GitParams { path: None, remote, args: tokens, host_only, name, force };
            match Outgoing::parse(&params) {
                Ok(Outgoing::Host(land)) => {
                    prop_assert!(params.host_only && params.remote.is_none());
                    prop_assert_eq!(land.name.map(|n| n.to_string()), params.name);
                    prop_assert_eq!(land.force, params.force);
                }
                Ok(Outgoing::Remote(_)) => {
                    prop_assert!(!params.host_only && params.name.is_none() && !params.force);
                }
                Err(error) => prop_assert!(!error.to_string().chars().any(char::is_control)),
            }
        }

        #[test]
        fn a_refusal_is_one_line(tokens in prop::collection::vec(token(), 0..4)) {
            let params = GitParams { args: tokens, ..GitParams::default() };
            if let Err(error) = Push::parse(&params) {
                let line = error.to_string();
                prop_assert!(line.starts_with("git push: "));
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
