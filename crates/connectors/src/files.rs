//! Copies between a box and the host: whose path is whose, what is left out, which names need a
//! second look.
//!
//! Nothing here touches a disk. The relay finds out where a path really leads; the lists of names
//! are then asked about that real path. The surprising thing: names are compared without regard to
//! case everywhere, because some disks do the same, and a name that only looks dangerous costs no
//! more than a question.

use crate::refusal::Refusal;
use crate::worktree::{self, BoxPath};
use protocol::rpc::{CopyParams, DownloadParams, MAX_PATH_BYTES};
use protocol::text::{shortened, visible};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Patterns one copy may bring along, and how long each may be.
const MAX_EXCLUDES: usize = 64;
const MAX_EXCLUDE_BYTES: usize = 256;
/// Parts of a path on the host: each is looked up on its disk, several times over.
const MAX_PARTS: usize = 128;
/// How much of a bad path is repeated.
const SHOWN: usize = 200;

/// What is made again by tools, or is no business of a copy.
pub const DEFAULT_EXCLUDES: [&str; 8] =
    [".git", "node_modules", "bin", "obj", "packages", "dist", ".next", "target"];

/// `cp.toHost`: from the box to a place on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOut {
    pub sources: Vec<BoxPath>,
    pub dest: HostPath,
    pub excludes: Excludes,
}

/// `cp.fromHost`: from the host to a place in the box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyIn {
    pub sources: Vec<HostPath>,
    pub dest: BoxPath,
    /// It was written with a slash at its end: a folder, whether it is there yet or not.
    pub into: bool,
    pub excludes: Excludes,
}

/// `download.workspace`: the box's workspace over the host's project folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The person's own patterns only: git knows what else is made again.
    pub excludes: Excludes,
    /// What git ignores stays behind.
    pub respects_git: bool,
}

impl CopyOut {
    pub const SURFACE: &str = "cp toHost";

    pub fn parse(params: &CopyParams) -> Result<Self, Refusal> {
        let cwd = cwd(Self::SURFACE, params.path.as_deref())?;
        let sources = sources(Self::SURFACE, params)?;
        let sources: Vec<BoxPath> =
            sources.iter().map(|s| in_box(Self::SURFACE, &cwd, s)).collect::<Result<_, _>>()?;
        if sources.iter().any(|s| s.as_str() == "/") {
            let why = "'/' is the whole box; name a file or folder in it.";
            return Err(Refusal::shape(Self::SURFACE, why));
        }
        let dest = HostPath::parse(Self::SURFACE, &params.dest)?;
        dest.without_parents(Self::SURFACE)?;
        let excludes = excludes(Self::SURFACE, params)?;
        Ok(Self { sources, dest, excludes })
    }
}

impl CopyIn {
    pub const SURFACE: &str = "cp fromHost";

    pub fn parse(params: &CopyParams) -> Result<Self, Refusal> {
        let cwd = cwd(Self::SURFACE, params.path.as_deref())?;
        let sources = sources(Self::SURFACE, params)?;
        let sources =
            sources.iter().map(|s| HostPath::parse(Self::SURFACE, s)).collect::<Result<_, _>>()?;
        let dest = in_box(Self::SURFACE, &cwd, &params.dest)?;
        let into = params.dest.ends_with('/');
        let excludes = excludes(Self::SURFACE, params)?;
        Ok(Self { sources, dest, into, excludes })
    }
}

impl Download {
    pub const SURFACE: &str = "download workspace";

    pub fn parse(params: &DownloadParams) -> Result<Self, Refusal> {
        cwd(Self::SURFACE, params.path.as_deref())?;
        let excludes = Excludes::parse(Self::SURFACE, &params.exclude, false)?;
        Ok(Self { excludes, respects_git: params.default_excludes != Some(false) })
    }
}

fn cwd(surface: &str, path: Option<&str>) -> Result<BoxPath, Refusal> {
    let bad = |e: worktree::BadPath| Refusal::shape(surface, e.to_string());
    path.map_or_else(|| Ok(BoxPath::default()), |path| worktree::normalise(path).map_err(bad))
}

fn sources<'a>(surface: &str, params: &'a CopyParams) -> Result<&'a [String], Refusal> {
    crate::grammar::check_size(surface, &params.sources)?;
    if params.sources.is_empty() {
        return Err(Refusal::shape(surface, "nothing to copy; name at least one source."));
    }
    Ok(&params.sources)
}

/// A path in the box; a relative one is meant from where the command ran.
fn in_box(surface: &str, cwd: &BoxPath, path: &str) -> Result<BoxPath, Refusal> {
    let bad = |e: worktree::BadPath| Refusal::shape(surface, e.to_string());
    match path {
        "" => Err(Refusal::shape(surface, "a path in the box is empty.")),
        path if path.starts_with('/') => worktree::normalise(path).map_err(bad),
        path if path.len() > MAX_PATH_BYTES => worktree::normalise(path).map_err(bad),
        path => worktree::normalise(&format!("{}/{path}", cwd.as_str())).map_err(bad),
    }
}

fn excludes(surface: &str, params: &CopyParams) -> Result<Excludes, Refusal> {
    Excludes::parse(surface, &params.exclude, params.default_excludes != Some(false))
}

/// A path on the host as a box wrote it. Where it leads is only known on the host's disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPath {
    base: Base,
    /// What follows the base, without slashes at either end.
    rest: String,
    folder: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    Home,
    /// The folder the box was made from; never where the host happens to run.
    Workspace,
}

impl HostPath {
    pub fn parse(surface: &str, text: &str) -> Result<Self, Refusal> {
        let bad = |why: &str| {
            let shown = shortened(text, SHOWN);
            Err(Refusal::shape(surface, format!("path '{shown}' on the host {why}")))
        };
        if text.is_empty() {
            return Err(Refusal::shape(surface, "a path on the host is empty."));
        }
        if text.len() > MAX_PATH_BYTES {
            return bad("is too long.");
        }
        if text.chars().any(char::is_control) {
            return bad("holds a control character.");
        }
        if text.split('/').count() > MAX_PARTS {
            return bad("has too many parts.");
        }
        let (base, rest) = match text.strip_prefix('~') {
            Some("") => (Base::Home, ""),
            Some(rest) if rest.starts_with('/') => (Base::Home, rest),
            Some(_) => return bad("names somebody's home; write ~/… or the full path."),
            None if text.starts_with('/') => (Base::Root, text),
            None => (Base::Workspace, text),
        };
        let folder = text.ends_with('/') || text == "~" || text == "." || text.ends_with("/.");
        Ok(Self { base, rest: rest.trim_matches('/').to_owned(), folder })
    }

    /// The full path, not yet looked at.
    pub fn under(&self, home: &Path, workspace: &Path) -> PathBuf {
        match self.base {
            Base::Root => Path::new("/").join(&self.rest),
            Base::Home => home.join(&self.rest),
            Base::Workspace => workspace.join(&self.rest),
        }
    }

    /// It was written as a folder, whether it is there yet or not.
    pub fn is_folder(&self) -> bool {
        self.folder
    }

    /// Where something is written must be sayable before it is there.
    fn without_parents(&self, surface: &str) -> Result<(), Refusal> {
        if self.rest.split('/').any(|s| s == "..") {
            let shown = shortened(&self.rest, SHOWN);
            let why = format!("destination '{shown}' holds '..'; write the path it leads to.");
            return Err(Refusal::shape(surface, why));
        }
        Ok(())
    }
}

/// What a copy leaves out: names of files and folders, or patterns over the path below the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excludes(Vec<String>);

impl Excludes {
    pub fn parse(surface: &str, given: &[String], with_default: bool) -> Result<Self, Refusal> {
        if given.len() > MAX_EXCLUDES {
            let why = format!("more than {MAX_EXCLUDES} patterns to leave out; use fewer.");
            return Err(Refusal::shape(surface, why));
        }
        let bad = |p: &&String| {
            p.is_empty() || p.len() > MAX_EXCLUDE_BYTES || p.chars().any(char::is_control)
        };
        if let Some(pattern) = given.iter().find(bad) {
            let shown = shortened(pattern, SHOWN);
            let why = format!("'{shown}' is no pattern; use a name such as dist, or docs/*.tmp.");
            return Err(Refusal::shape(surface, why));
        }
        let default = DEFAULT_EXCLUDES.iter().filter(|_| with_default).map(ToString::to_string);
        Ok(Self(default.chain(given.iter().cloned()).collect()))
    }

    /// Every pattern, the built-in ones among them.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Whether a path below the source is left out. The source itself never is: it was named.
    pub fn cover(&self, below: &[u8]) -> bool {
        self.0.iter().any(|pattern| {
            let pattern = pattern.trim_end_matches('/').as_bytes();
            if pattern.iter().any(|b| b"*?/".contains(b)) {
                is_like(pattern, below)
            } else {
                below.split(|b| *b == b'/').any(|name| name == pattern)
            }
        })
    }
}

/// What a person's copy leaves out of a folder: their own patterns, and what tools make again. A
/// folder that git tracks is source, whatever it is called.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    given: Excludes,
    default: bool,
    tracked: BTreeSet<Vec<u8>>,
}

impl LeftOut {
    pub fn new(given: Excludes, default: bool) -> Self {
        Self { given, default, tracked: BTreeSet::new() }
    }

    /// What to ask git in the folder: which files of it lie in something of such a name.
    pub fn question() -> Vec<String> {
        let words = ["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--"];
        let names = DEFAULT_EXCLUDES.iter().filter(|name| **name != ".git");
        let specs =
            names.flat_map(|name| [format!(":(glob)**/{name}/**"), format!(":(glob)**/{name}")]);
        words.iter().map(ToString::to_string).chain(specs).collect()
    }

    /// Git's answer for the folder that is copied next.
    pub fn tracked(&mut self, listed: &[u8]) {
        self.tracked.clear();
        for path in listed.split(|b| *b == 0) {
            let ends = (0..path.len()).filter(|at| path[*at] == b'/').chain([path.len()]);
            for end in ends {
                let upto = &path[..end];
                if is_made_again(upto) && !self.tracked.contains(upto) {
                    self.tracked.insert(upto.to_vec());
                }
            }
        }
    }

    /// Whether a path below the source is left out; what it lies in is not.
    pub fn covers(&self, below: &[u8]) -> bool {
        let default = self.default && is_made_again(below) && !self.tracked.contains(below);
        default || self.given.cover(below)
    }
}

fn is_made_again(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    DEFAULT_EXCLUDES.iter().any(|made| made.as_bytes() == name)
}

/// Whether a file's own name is like one of these.
pub fn is_named(name: &[u8], patterns: &[impl AsRef<str>]) -> bool {
    patterns.iter().any(|pattern| is_like(pattern.as_ref().as_bytes(), name))
}

/// `*` stands for anything, slashes too, and `?` for one byte. One step back is remembered at a
/// time, so no pattern takes longer than its length times the path's.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b) if *b == b'?' || *b == text[t] => (p, t) = (p + 1, t + 1),
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, t) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// The file at this real path looks like a credential.
pub fn looks_secret(path: &str) -> bool {
    const FOLDERS: &[&str] = &[
        ".ssh",
        ".aws",
        ".azure",
        ".gnupg",
        ".kube",
        ".password-store",
        ".mozilla",
        ".thunderbird",
        ".terraform.d",
    ];
    const PLACES: &[&str] = &[
        ".config/gh",
        ".config/hub",
        ".config/gcloud",
        ".config/op",
        ".config/chromium",
        ".config/google-chrome",
        ".docker/config.json",
        ".git/config",
        ".m2/settings.xml",
    ];
    const NAMES: &[&str] = &[
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".my.cnf",
        ".htpasswd",
        ".pypirc",
        ".git-credentials",
        ".vault-token",
        ".dev.vars",
        ".dockercfg",
        "auth.json",
        "local.settings.json",
        "master.key",
    ];
    const STEMS: &[&str] = &["credentials", ".credentials", "secrets", "secret", "kubeconfig"];
    const ENDS: &[&str] = &[
        ".pem",
        ".key",
        ".pfx",
        ".p12",
        ".keystore",
        ".jks",
        ".kdbx",
        ".ppk",
        ".asc",
        ".gpg",
        "_history",
        ".tfstate",
        ".ovpn",
    ];
    const KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    let path = folded(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = |s: &str| name == s || name.strip_prefix(s).is_some_and(|r| r.starts_with('.'));
    let public = name.rsplit('.').next() == Some("pub");
    let key = |k: &str| name.starts_with(k) && !public;
    path.split('/').any(|s| FOLDERS.contains(&s))
        || PLACES.iter().any(|place| holds(&path, place))
        || NAMES.contains(&name)
        || name.starts_with(".env")
        || STEMS.iter().any(|s| stem(s))
        || ENDS.iter().any(|end| name.ends_with(end))
        || KEYS.iter().any(|k| key(k))
}

/// A file at this path is run, or obeyed, by programs on the host that nobody thinks of as running
/// it: hooks, build files, editors, shells, agents.
pub fn runs_code(path: &str) -> bool {
    const FOLDERS: &[&str] = &[
        ".git",
        ".vscode",
        ".idea",
        ".claude",
        ".codex",
        ".cursor",
        ".opencode",
        ".gemini",
        ".husky",
        ".githooks",
        ".github",
        ".gitlab",
        ".circleci",
        ".devcontainer",
        ".cargo",
        ".ssh",
        ".gnupg",
        ".zed",
        ".vim",
        ".oh-my-zsh",
        "bin",
        "sbin",
    ];
    const PLACES: &[&str] = &[
        ".local/bin",
        ".config/autostart",
        ".config/systemd",
        ".config/fish",
        ".config/git",
        ".config/nvim",
        ".config/environment.d",
        ".local/share/applications",
        ".local/share/systemd",
        "library/launchagents",
        "library/launchdaemons",
    ];
    const NAMES: &[&str] = &[
        "agentbox.yaml",
        "agentbox.yml",
        "package.json",
        "makefile",
        "gnumakefile",
        "justfile",
        ".justfile",
        "taskfile.yml",
        "taskfile.yaml",
        "rakefile",
        "build.rs",
        "setup.py",
        "conftest.py",
        "sitecustomize.py",
        "lefthook.yml",
        ".pre-commit-config.yaml",
        ".gitlab-ci.yml",
        ".gitconfig",
        ".gitmodules",
        ".gitattributes",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        ".mise.toml",
        "mise.toml",
        ".tool-versions",
        ".mcp.json",
        "opencode.json",
        "claude.md",
        "claude.local.md",
        "agents.md",
        "gemini.md",
        ".cursorrules",
        ".windsurfrules",
        ".editorconfig",
        ".exrc",
        ".vimrc",
        ".nvimrc",
        ".emacs",
        ".dir-locals.el",
        ".tmux.conf",
        ".inputrc",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".kshrc",
        ".mkshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".logout",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        ".xsessionrc",
        ".pam_environment",
        "config.fish",
    ];
    let path = folded(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    path.split('/').any(|s| FOLDERS.contains(&s))
        || PLACES.iter().any(|place| holds(&path, place))
        || NAMES.contains(&name)
        // .envrc, and what tools that read .env files do with them
        || name.starts_with(".env")
        || [".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"].contains(&name)
        || name.rsplit('.').next() == Some("desktop")
}

/// Whole segments of a path, in a row.
fn holds(path: &str, place: &str) -> bool {
    format!("/{path}/").contains(&format!("/{place}/"))
}

/// One spelling for all a disk may take for the same: lower case, without what some disks ignore.
fn folded(path: &str) -> String {
    let ignored = |c: &char| matches!(*c as u32, 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff);
    path.chars().filter(|c| !ignored(c)).flat_map(char::to_lowercase).collect()
}

/// A name of the host or the box that cannot be copied, as it is shown.
pub fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_tracks_is_source() {
        let mut out = LeftOut::new(Excludes::parse("cp", &["*.log".into()], false).unwrap(), true);
        assert!(out.covers(b"packages") && out.covers(b"a/bin") && out.covers(b"x/y.log"));
        assert!(!out.covers(b"src") && !out.covers(b"binary"));
        out.tracked(b"packages/a/index.js\0tools/bin/run\0");
        for kept in ["packages", "packages/a", "tools/bin", "packages/a/index.js"] {
            assert!(!out.covers(kept.as_bytes()), "{kept}");
        }
        for left in ["bin", "packages/a/node_modules", "packages/a/x.log", ".git"] {
            assert!(out.covers(left.as_bytes()), "{left}");
        }
        out.tracked(b"");
        assert!(out.covers(b"packages"));
        assert!(!LeftOut::default().covers(b"packages"));
    }

    #[test]
    fn env_files_go_by_their_own_name() {
        for env in [".env", ".env.local", "appsettings.Development.json", ".dev.vars"] {
            assert!(is_named(env.as_bytes(), &protocol::ctl::ENV_FILES), "{env}");
        }
        for other in ["env", ".environment", "appsettings.json", "a.env"] {
            assert!(!is_named(other.as_bytes(), &protocol::ctl::ENV_FILES), "{other}");
        }
    }

    fn copy(sources: &[&str], dest: &str) -> CopyParams {
        let sources = sources.iter().map(ToString::to_string).collect();
        CopyParams { sources, dest: dest.into(), ..CopyParams::default() }
    }

    fn text(strings: &[&str]) -> Vec<String> {
        strings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_of_the_host_have_three_beginnings() {
        let (home, workspace) = (Path::new("/home/ada"), Path::new("/src/shop"));
        for (written, full, into) in [
            ("~", "/home/ada", true),
            ("~/x", "/home/ada/x", false),
            ("~/", "/home/ada/", true),
            ("/etc/hosts", "/etc/hosts", false),
            ("README.md", "/src/shop/README.md", false),
            ("docs/", "/src/shop/docs", true),
            (".", "/src/shop/.", true),
            ("a/~/b", "/src/shop/a/~/b", false),
        ] {
            let path = HostPath::parse("cp", written).unwrap();
            assert_eq!(path.under(home, workspace), Path::new(full), "{written}");
            assert_eq!(path.is_folder(), into, "{written}");
        }
    }

    #[test]
    fn relay_a16_a_path_is_a_path() {
        let long = "x/".repeat(500_000);
        for bad in ["", "~root/x", "a\0b", "a\nb", "\u{9b}", &long] {
            let error = HostPath::parse("cp toHost", bad).unwrap_err();
            assert_eq!(error.exit_code, 64, "{bad:?}");
            assert!(error.text.starts_with("cp toHost: ") && error.text.len() < 500, "{error}");
        }
        for bad in ["/workspace/../x", "../x", "/a\0b", "a\nb", "", &long] {
            assert_eq!(CopyOut::parse(&copy(&[bad], "x")).unwrap_err().exit_code, 64, "{bad:?}");
            assert_eq!(CopyIn::parse(&copy(&["x"], bad)).unwrap_err().exit_code, 64, "{bad:?}");
        }
        let with_path = CopyParams { path: Some("/workspace/../x".into()), ..copy(&["a"], "b") };
        assert_eq!(CopyOut::parse(&with_path).unwrap_err().exit_code, 64);
        assert_eq!(CopyIn::parse(&with_path).unwrap_err().exit_code, 64);
        assert_eq!(CopyOut::parse(&copy(&["/"], "x")).unwrap_err().exit_code, 64);
        assert_eq!(CopyOut::parse(&copy(&["a"], "../x")).unwrap_err().exit_code, 64);
        assert_eq!(CopyOut::parse(&copy(&[], "x")).unwrap_err().exit_code, 64);
    }

    #[test]
    fn paths_of_the_box_are_meant_from_where_the_command_ran() {
        let params =
            CopyParams { path: Some("/workspace/app".into()), ..copy(&["out", "/tmp/x"], "d/") };
        let out = CopyOut::parse(&params).unwrap();
        let sources: Vec<&str> = out.sources.iter().map(BoxPath::as_str).collect();
        assert_eq!(sources, ["/workspace/app/out", "/tmp/x"]);
        assert!(out.dest.is_folder());
        let into = CopyIn::parse(&copy(&["a"], "sub/")).unwrap();
        assert_eq!((into.dest.as_str(), into.into), ("/workspace/sub", true));
    }

    #[test]
    fn names_and_patterns_are_left_out() {
        let excludes =
            |given: &[&str], default| Excludes::parse("cp", &text(given), default).unwrap();
        let built_in = excludes(&[], true);
        for out in ["node_modules", "a/node_modules/b", ".git/config", "x/target"] {
            assert!(built_in.cover(out.as_bytes()), "{out}");
        }
        for kept in ["targets", "a/distribution", "src/main.rs", "x.git"] {
            assert!(!built_in.cover(kept.as_bytes()), "{kept}");
        }
        let own = excludes(&["*.log", "docs/*/draft", "a?c", "tmp/"], false);
        for out in ["x.log", "a/b/x.log", "docs/x/y/draft", "abc", "q/tmp/r"] {
            assert!(own.cover(out.as_bytes()), "{out}");
        }
        for kept in ["x.log2", "draft", "q/abc", "node_modules", "\u{ff}"] {
            assert!(!own.cover(kept.as_bytes()), "{kept}");
        }
        for bad in [&[""][..], &["a\nb"], &[&"x".repeat(300)], &["x"; 65]] {
            assert_eq!(Excludes::parse("cp", &text(bad), true).unwrap_err().exit_code, 64);
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let pattern = format!("{}b", "a*".repeat(127));
        let path = "a".repeat(4096);
        let started = std::time::Instant::now();
        assert!(!is_like(pattern.as_bytes(), path.as_bytes()));
        assert!(started.elapsed() < std::time::Duration::from_secs(1));
    }

    #[test]
    fn relay_a17_credentials_are_known_by_name_whatever_their_case() {
        for secret in [
            "/src/shop/.env",
            "/src/shop/.ENV",
            "/src/shop/.Env.Local",
            "/src/shop/sub/.envrc",
            "/home/ada/.ssh/id_ed25519",
            "/home/ada/.SSH/config",
            "/home/ada/.aws/config",
            "/home/ada/.config/gh/hosts.yml",
            "/home/ada/.config/GH/hosts.yml",
            "/src/shop/credentials",
            "/src/shop/credentials.json",
            "/src/shop/.npmrc",
            "/src/shop/tls/server.PEM",
            "/src/shop/server.key",
            "/src/shop/id_rsa",
            "/src/shop/id_ed25519_work",
            "/src/shop/.git/config",
            "/home/ada/.bash_history",
            "/src/shop/.e\u{200c}nv",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for plain in [
            "/src/shop/README.md",
            "/src/shop/environment.md",
            "/src/shop/id_rsa.pub",
            "/src/shop/sshd/config",
            "/src/shop/keys.rs",
            "/src/shop/credentialstore.go",
        ] {
            assert!(!looks_secret(plain), "{plain}");
        }
    }

    #[test]
    fn relay_a18_what_runs_on_the_host_is_known_by_name() {
        for special in [
            "/src/shop/.git/hooks/pre-commit",
            "/src/shop/.GIT/config",
            "/src/shop/.envrc",
            "/src/shop/agentbox.yaml",
            "/src/shop/.vscode/tasks.json",
            "/src/shop/.idea/x",
            "/src/shop/.claude/settings.json",
            "/src/shop/.husky/pre-push",
            "/src/shop/web/package.json",
            "/src/shop/MAKEFILE",
            "/src/shop/.github/workflows/ci.yml",
            "/home/ada/.bashrc",
            "/home/ada/.zshenv",
            "/home/ada/bin/ls",
            "/home/ada/Library/LaunchAgents/x.plist",
        ] {
            assert!(runs_code(special), "{special}");
        }
        for plain in ["/src/shop/a.txt", "/src/shop/git/x", "/src/shop/package.json5"] {
            assert!(!runs_code(plain), "{plain}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_path_of_the_host_starts_where_it_says(path in "[~./a ]{1,12}|.{0,20}") {
            if let Ok(path) = HostPath::parse("cp", &path) {
                let full = path.under(Path::new("/home/ada"), Path::new("/src/shop"));
                proptest::prop_assert!(full.is_absolute());
                proptest::prop_assert!(!full.to_string_lossy().chars().any(char::is_control));
            }
        }

        /// What passes can be asked for again by the paths that were understood.
        #[test]
        fn paths_that_passed_stay_as_they_are(
            cwd in proptest::option::of("(/|\\.|a|\\.\\.){0,8}"),
            one in "[~./a \n]{0,10}|.{0,20}",
            other in "[~./a \0]{0,10}|.{0,20}",
            exclude in proptest::collection::vec("[a*/.\n]{0,4}", 0..3),
        ) {
            let given = CopyParams { path: cwd, exclude, default_excludes: Some(false), ..copy(&[&one], &other) };
            let plain = |path: &str| {
                path == "/" || path.strip_prefix('/').is_some_and(|rest| {
                    rest.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control))
                })
            };
            if let Ok(out) = CopyOut::parse(&given) {
                proptest::prop_assert!(out.sources.iter().all(|s| plain(s.as_str()) && s.as_str() != "/"));
                let dest = out.dest.under(Path::new("/home/ada"), Path::new("/src/shop"));
                proptest::prop_assert!(!dest.components().any(|part| part.as_os_str() == ".."));
                let sources: Vec<String> = out.sources.iter().map(|s| s.as_str().to_owned()).collect();
                let again = CopyParams { path: None, sources, ..given.clone() };
                proptest::prop_assert_eq!(CopyOut::parse(&again).unwrap(), out);
            }
            if let Ok(copied) = CopyIn::parse(&given) {
                proptest::prop_assert!(plain(copied.dest.as_str()));
                let slash = if copied.into { "/" } else { "" };
                let dest = format!("{}{slash}", copied.dest.as_str());
                let again = CopyParams { path: None, dest, ..given };
                proptest::prop_assert_eq!(CopyIn::parse(&again).unwrap(), copied);
            }
        }

        #[test]
        fn patterns_that_passed_stay_as_they_are(
            exclude in proptest::collection::vec("[a*/.\n\0]{0,4}|.{0,9}", 0..4),
            path in proptest::option::of("(/|\\.|a|\n){0,6}"),
            all in proptest::option::of(proptest::bool::ANY),
        ) {
            let given = DownloadParams { path, exclude, default_excludes: all };
            if let Ok(download) = Download::parse(&given) {
                let clean = |p: &String| !p.is_empty() && !p.chars().any(char::is_control);
                proptest::prop_assert!(download.excludes.patterns().iter().all(clean));
                let again = DownloadParams {
                    path: None,
                    exclude: download.excludes.patterns().to_vec(),
                    default_excludes: Some(download.respects_git),
                };
                proptest::prop_assert_eq!(Download::parse(&again).unwrap(), download);
            }
        }
    }
}
