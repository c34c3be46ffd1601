//! What the host says to `agentbox-ctl` over the engine's exec streams, and hears back.
//!
//! The host is trusted by the box, the box is not trusted by the host: replies are bounded and
//! only ever used as data for git's own checks.

use crate::conversations::ConversationId;
use crate::sessions::Agent;
use crate::{BoxId, BoxName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where things are inside a box.
pub mod paths {
    /// The one binary.
    pub const CTL: &str = "/usr/local/bin/agentbox-ctl";
    /// The real git behind the shim.
    pub const GIT: &str = "/usr/bin/git";
    /// tmpfs; nothing in it survives a stop or reaches an image.
    pub const RUN: &str = "/run/agentbox";
    /// The box's folder of host sockets, mounted read-only.
    pub const HOST: &str = "/run/agentbox/host";
    pub const RELAY_SOCKET: &str = "/run/agentbox/host/relay.sock";
    /// The way out of a box without a network.
    pub const EGRESS_SOCKET: &str = "/run/agentbox/host/egress.sock";
    /// The bearer token, 0400, owned by the box user.
    pub const TOKEN: &str = "/run/agentbox/token";
    /// Exists once PID 1 has given the box user its ids and the workspace its owner.
    pub const READY: &str = "/run/agentbox/ready";
    /// The screen's password, as its server keeps it; there is a screen when it is there.
    pub const SCREEN_PASSWORD: &str = "/run/agentbox/screen/password";
    /// There is an ssh server when it is there.
    pub const SSH_HOST_KEY: &str = "/run/agentbox/ssh/host_key";
    pub const SSH_AUTHORIZED: &str = "/run/agentbox/ssh/authorized_keys";
    /// The box has an engine of its own when it is there.
    pub const DOCKER: &str = "/run/agentbox/docker";
    /// The port on which the host has addresses for boxes; the box has the same ones when it is there.
    pub const FRONT: &str = "/run/agentbox/front";
    /// The box has no network and goes out through the host when it is there.
    pub const EGRESS: &str = "/run/agentbox/egress";
    /// The certificates of the host's own authority, and nobody else's.
    pub const EGRESS_CA: &str = "/etc/agentbox/ca.crt";
    /// Everything the system trusts, for Java.
    pub const JAVA_TRUST: &str = "/etc/agentbox/cacerts.p12";
    /// What the system trusts, as one file.
    pub const SYSTEM_TRUST: &str = "/etc/ssl/certs/ca-certificates.crt";
    /// What git asks for a user and a password; a link to the one binary.
    pub const ASKPASS: &str = "/usr/local/bin/agentbox-askpass";
    pub const WORKSPACE: &str = "/workspace";
    /// The data of the box's own container engine; a volume.
    pub const DOCKER_DATA: &str = "/var/lib/docker";
    /// One log per daemon.
    pub const LOGS: &str = "/var/log/agentbox";
    /// `name version`, line by line: the agents in the image.
    pub const VERSIONS: &str = "/etc/agentbox/versions";
    /// Who the box is, `NAME='value'` line by line; written at every start and in no checkpoint.
    pub const IDENTITY: &str = "/etc/agentbox/box.env";
    /// What sessions are started with and how they ended, the box user's own; tmpfs like its parent.
    pub const SESSIONS: &str = "/run/agentbox/session";
    /// The host's object stores are mounted below, read-only: `/agentbox/objects/0/objects`, ….
    pub const OBJECTS: &str = "/agentbox/objects";
    /// One line for each repository of the workspace, where git keeps it; written when it is seeded,
    /// read by who watches them.
    pub const REPOSITORIES: &str = "/home/vscode/.local/state/agentbox/repositories";
    /// Images a person pasted, the newest few.
    pub const PASTES: &str = "/home/vscode/.local/state/agentbox/pastes";
    /// Certificates of the host, one `.crt` each, trusted by PID 1 before it is ready.
    pub const CERTIFICATES: &str = "/usr/local/share/ca-certificates/agentbox";
}

/// Ports a box listens on; published on the host's loopback where the box has a network.
pub mod ports {
    pub const WEB: u16 = 80;
    /// noVNC's page and its WebSocket.
    pub const SCREEN: u16 = 6080;
    pub const SSH: u16 = 22;
    /// Where programs in a box without a network find their proxy; on its loopback alone.
    pub const PROXY: u16 = 3128;
}

/// The in-box user; renumbered to the host's ids by PID 1.
pub const BOX_USER: &str = "vscode";
/// Environment of PID 1: the ids the box user gets.
pub const ENV_UID: &str = "AGENTBOX_UID";
pub const ENV_GID: &str = "AGENTBOX_GID";

/// The first byte `agentbox-ctl forward` prints: it is connected, and what follows is the program's.
pub const FORWARD_READY: u8 = b'+';

/// Standard input of `agentbox-ctl go` (run as root at every start), and the first line of that of
/// `agentbox-ctl begin` (run as root once).
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Go {
    pub token: String,
    #[serde(default)]
    pub daemons: Daemons,
    /// None leaves what the box knows of itself as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// None for a box with a network of its own, which then trusts none of what is in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
}

/// What a box without a network needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Egress {
    /// Certificates of the host's own authority in PEM, the one in use first. Whatever else of ours the
    /// box trusts, it stops trusting.
    pub certificates: Vec<String>,
}

/// Without the token, which must not come into a log by way of somebody's debugging.
impl std::fmt::Debug for Go {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Go").field("daemons", &self.daemons).finish_non_exhaustive()
    }
}

/// A token alone: no daemons.
impl From<&str> for Go {
    fn from(token: &str) -> Self {
        Self { token: token.to_owned(), daemons: Daemons::default(), identity: None, egress: None }
    }
}

impl From<&String> for Go {
    fn from(token: &String) -> Self {
        token.as_str().into()
    }
}

/// Who a box is, for programs in it and for files that are made for it. It has no room for a secret:
/// everything in the box may read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub id: BoxId,
    pub name: BoxName,
    /// Where on the host the workspace is from; none when that is no text. Nothing is mounted there.
    pub host_workspace: Option<String>,
    pub project_root: Option<String>,
    /// Its number among the project's boxes.
    pub project_index: u32,
}

impl Identity {
    /// Every variable that differs from box to box.
    pub const NAMES: [&str; 7] = [
        "AGENTBOX_BOX_ID",
        "AGENTBOX_BOX_NAME",
        "AGENTBOX_BOX_KIND",
        "AGENTBOX_BOX_HOST",
        "AGENTBOX_HOST_WORKSPACE",
        "AGENTBOX_PROJECT_ROOT",
        "AGENTBOX_PROJECT_INDEX",
    ];

    /// As environment variables. A value that is more than a line is left out: it could not be told
    /// from the next one in a file, and is the same nowhere and everywhere then.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let Self { id, name, host_workspace, project_root, project_index } = self;
        let [id_is, name_is, kind_is, host_is, workspace_is, root_is, index_is] = Self::NAMES;
        let all = [
            ("AGENTBOX", Some("1".to_owned())),
            (id_is, Some(id.to_string())),
            (name_is, Some(name.to_string())),
            (kind_is, Some("docker".to_owned())),
            (host_is, Some(format!("{name}.localhost"))),
            (workspace_is, host_workspace.clone()),
            (root_is, project_root.clone()),
            (index_is, Some(project_index.to_string())),
        ];
        let line = |value: &String| !value.is_empty() && !value.chars().any(char::is_control);
        all.into_iter().filter_map(|(name, value)| Some((name, value.filter(line)?))).collect()
    }
}

/// What PID 1 keeps running besides the box's own commands. What the image lacks is not started.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Daemons {
    /// A container engine of the box's own.
    pub docker: bool,
    /// The screen's password, 8 letters and digits; none means no screen.
    pub vnc_password: Option<String>,
    /// None means no ssh server.
    pub ssh: Option<SshKeys>,
    /// Where the host's proxy listens; the box's own addresses are served on the same port in it.
    pub front: Option<u16>,
}

/// What an ssh server needs to know: itself, and whom to let in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SshKeys {
    /// One line: `ssh-ed25519 …`.
    pub authorized_key: String,
    /// The server's private key, as OpenSSH keeps it.
    pub host_key: String,
}

/// Without the secrets.
impl std::fmt::Debug for Daemons {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let screen = self.vnc_password.is_some();
        let mut parts = f.debug_struct("Daemons");
        parts.field("docker", &self.docker).field("screen", &screen);
        parts.field("ssh", &self.ssh.is_some()).field("front", &self.front).finish()
    }
}

/// Second line of `agentbox-ctl begin`'s standard input, first of the `seed` it starts. A tar stream
/// with the untracked files, relative to the workspace, follows it up to the end of input.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedPlan {
    /// Outer ones before inner ones. None: the project is no git repository, only the files are laid
    /// out.
    pub repos: Vec<SeedRepo>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedRepo {
    /// From the workspace; empty for the workspace's own.
    pub path: String,
    /// Where the repository is kept, from the workspace, when that is not `.git` in its folder: a
    /// submodule's.
    pub git_dir: Option<String>,
    /// It has files of Git LFS.
    pub lfs: bool,
    /// `agentbox/<name>`.
    pub branch: String,
    /// `sha1` or `sha256`.
    pub object_format: String,
    /// In-box paths of the mounted object stores.
    pub alternates: Vec<String>,
    /// Boundary commits of a shallow host repository.
    pub shallow: Vec<String>,
    /// The commit the box starts from; none in a repository without commits.
    pub base: Option<String>,
    /// Tree of what is staged on the host, when it differs from `base`.
    pub index_tree: Option<String>,
    /// Tree of the tracked files as they are on the host's disk, when it differs from the index.
    pub worktree_tree: Option<String>,
    /// Remotes by name, addresses without user information.
    pub remotes: Vec<(String, String)>,
    /// Remote-tracking refs, full name and object id.
    pub tracking: Vec<RefAt>,
    /// `user.name`, `user.email` and other harmless settings.
    pub config: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefAt {
    pub name: String,
    pub oid: String,
}

/// First line of `agentbox-ctl bundle <branch> [have…]`'s standard output. The bundle follows
/// unless `oid` is absent or one of the haves.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleHead {
    pub oid: Option<String>,
}

/// The most tags one call of `agentbox-ctl bundle --tags` tells about.
pub const MAX_TAGS: usize = 100;

/// Standard input of `agentbox-ctl bundle --tags [have…]`: tags that are of no interest, because
/// the remote has them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownTags {
    pub tags: Vec<RefAt>,
}

/// First line of its standard output. A bundle follows unless every tag is a commit the host has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagsHead {
    /// Full names below `refs/tags/`, at most [`MAX_TAGS`].
    pub tags: Vec<RefAt>,
    /// How many more there are.
    #[serde(default)]
    pub more: u32,
}

/// First line of `agentbox-ctl clone-in`'s standard input. A bundle follows when there are `refs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloneIn {
    /// Absolute; must not be there, or be empty.
    pub dir: String,
    /// Becomes the address of `origin`.
    pub url: String,
    pub object_format: String,
    /// Heads and tags of the repository, full names.
    pub refs: Vec<RefAt>,
    /// Boundary commits of a shallow clone.
    pub shallow: Vec<String>,
    /// The branch to be on; none when `at` is a tag's commit.
    pub branch: Option<String>,
    /// The commit to be at; none in a repository without commits.
    pub at: Option<String>,
}

/// First line of `agentbox-ctl unbundle`'s standard input. A bundle follows when `bundle` is set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unbundle {
    /// The repository's folder in the box; absent for the workspace's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Refs to set once the objects are there; full names below `refs/remotes/` or `refs/tags/`.
    pub refs: Vec<RefAt>,
    /// Refs below this prefix that are not in `refs` are removed (`fetch --prune`).
    pub prune: Option<String>,
    pub bundle: bool,
    /// What a branch without an upstream gets as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Upstream>,
}

/// A branch of the box and the branch of a remote it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    pub branch: String,
    pub remote: String,
    /// The branch's name at the remote.
    pub merge: String,
}

/// Standard input of `agentbox-ctl egress selftest` (run as root, before anything of the box's own runs).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selftest {
    /// Of the computer the host runs on; none of them may be reached.
    pub addresses: Vec<std::net::IpAddr>,
    /// The proxy must answer; it does only once the box is released.
    pub proxy: bool,
}

/// Its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    /// Ways out that must not be there.
    pub open: Vec<String>,
    /// What must work and does not.
    pub missing: Vec<String>,
}

/// Standard input of `agentbox-ctl hold` (run as root). It says [`HELD`], and puts everything back
/// when its input ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Files such as `.env` stay where they are.
    pub keeps_env: bool,
}

pub const HELD: &str = "held\n";

/// First line of `agentbox-ctl pack`'s standard input (run as the box user). It answers with a tar
/// stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Pack {
    /// Files and folders by their absolute paths, each found in the archive under its last name.
    /// One that is a link is followed; links below it stay links.
    Files { sources: Vec<String>, exclude: Vec<String> },
    /// The workspace's files, named from there, without git's own data.
    Workspace {
        exclude: Vec<String>,
        /// What git ignores stays behind.
        respects_git: bool,
    },
    /// Files and folders a person asked for, as `Files`. What stayed behind is told on standard
    /// error.
    Copy {
        sources: Vec<String>,
        exclude: Vec<String>,
        /// What tools make again stays behind, too, unless git tracks it.
        default_excludes: bool,
        /// A source that is not there is none.
        optional: bool,
    },
    /// What of the workspace a person brings home.
    Download {
        respects_git: bool,
        /// `node_modules` goes along, wherever it is.
        node_modules: bool,
        /// Files of these names go along although git ignores them.
        also: Vec<String>,
        /// And nothing else.
        only: bool,
    },
}

/// Names of files that hold a project's settings and keys and are not in its repository; `*` stands for
/// anything.
pub const ENV_FILES: [&str; 7] = [
    ".env",
    ".env.*",
    ".envrc",
    ".dev.vars",
    "secrets.toml",
    "local.settings.json",
    "appsettings.*.json",
];

/// Where nobody keeps such files.
pub const NO_ENV_FILES: [&str; 8] =
    ["node_modules", ".git", ".venv", "venv", "__pycache__", "dist", ".next", "build"];

/// Below the box user's home: what the host brings of the person's settings, for `agentbox-ctl
/// agent-config` to merge and remove.
pub const INCOMING: &str = ".local/state/agentbox/incoming";

/// First line of `agentbox-ctl session start`'s standard input (run as the box user).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    pub name: String,
    pub argv: Vec<String>,
    /// Logins may be among them: they are never in an argument, a log or a file that stays.
    pub env: BTreeMap<String, String>,
    /// Whose state is told to the host.
    pub agent: Option<Agent>,
    /// What it goes on with. It is told by the host, because a box may go down before the agent says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The first size of its terminal.
    pub cols: u16,
    pub rows: u16,
}

/// Variables by their names alone, and no argument: a person's words may be among them.
impl std::fmt::Debug for NewSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.env.keys().collect();
        let program = self.argv.first();
        f.debug_struct("NewSession")
            .field("name", &self.name)
            .field("program", &program)
            .field("env", &names)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

/// One of `agentbox-ctl session list`'s answer, a JSON array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLine {
    pub name: String,
    /// Seconds since the Unix epoch, by the box's clock.
    pub created: u64,
    pub attached: u32,
    /// The agent it was started for.
    #[serde(default)]
    pub agent: Option<Agent>,
}

/// One of `agentbox-ctl session before`'s answer, a JSON array: what ran when the box went down and does
/// not run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionBefore {
    pub name: String,
    pub agent: Agent,
    /// What it was at, when it had got so far.
    pub conversation: Option<ConversationId>,
}

/// Below the box user's home: a conversation the host brings, as it is to be below the home, for
/// `agentbox-ctl conversation` to put there.
pub const INCOMING_CONVERSATION: &str = ".local/state/agentbox/incoming-conversation";
/// Below the box user's home: a plan the host brought.
pub const PLAN: &str = ".claude/plans/agentbox.md";

/// `agentbox-ctl session start` ends with this when there is a session of that name.
pub const SESSION_EXISTS: i32 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_knows_who_it_is_line_by_line() {
        let identity = Identity {
            id: "b00000001".parse().unwrap(),
            name: "fix".parse().unwrap(),
            host_workspace: Some("/home/a b/it's $HOME".into()),
            project_root: Some("/two\nlines".into()),
            project_index: 3,
        };
        let variables = identity.variables();
        let given =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str());
        assert_eq!(given("AGENTBOX"), Some("1"));
        assert_eq!(given("AGENTBOX_BOX_HOST"), Some("fix.localhost"));
        assert_eq!(given("AGENTBOX_HOST_WORKSPACE"), Some("/home/a b/it's $HOME"));
        assert_eq!(given("AGENTBOX_PROJECT_ROOT"), None);
        assert_eq!(given("AGENTBOX_PROJECT_INDEX"), Some("3"));
        let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), Identity::NAMES.len());
        assert!(names[1..].iter().all(|name| Identity::NAMES.contains(name)));
    }

    #[test]
    fn debugging_shows_no_login() {
        let env = BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "sk-hidden".to_owned())]);
        let argv = vec!["claude".to_owned(), "hidden words".to_owned()];
        let name = "claude".to_owned();
        let agent = Some(Agent::Claude);
        let plan = NewSession { name, argv, env, agent, conversation: None, cols: 80, rows: 24 };
        let shown = format!("{plan:?} {:?}", Go::from("hidden-token"));
        assert!(!shown.contains("hidden"), "{shown}");
        assert!(shown.contains("ANTHROPIC_API_KEY") && shown.contains("claude"), "{shown}");
    }
}
