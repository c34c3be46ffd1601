//! Every setting there is: what it may be, what it is without anybody's word, what it is for, which file
//! may hold it and what of it a repository may say.
//!
//! The files' reader, `agentbox config`, the schema and the page in `docs` go by this table, and a test
//! holds it to the typed model.

use crate::kind::Kind;
use protocol::similar::{similar, similar_within};

#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Such as `box.memory`; a `*` stands for any one word.
    pub name: &'static str,
    pub kind: Kind,
    /// As it is typed; empty is nothing.
    pub default: &'static str,
    pub about: &'static str,
    pub scope: Scope,
    pub workspace: Workspace,
    pub holds: Holds,
    /// Few people ever need it.
    pub advanced: bool,
    /// The command itself reads it, so `--set` can say it for one call.
    pub by_command: bool,
    /// Names programs, files or addresses of this computer, or is nearly root here: no window changes it.
    pub at_terminal: bool,
    /// What boxes may do when it is more than it was, in a sentence; empty where that is nothing of note.
    /// `*` stands for the service.
    pub allows: &'static str,
}

/// Which of the person's files may hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// How the host itself works: the global file alone.
    Host,
    /// Also the file of a project.
    Project,
}

/// What `defaults:` of a repository's `agentbox.yaml` may say of a key. A box can write that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// Nothing.
    Never,
    /// Only what allows less than the person's own files do. `none` is what no number or 0 means.
    Tighter { none: u64 },
    /// Anything: it allows nothing.
    Free,
}

/// When a change has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// From the next call, box or session on.
    Now,
    /// When AgentBox starts.
    Restart,
}

impl Key {
    const fn host(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            about,
            scope: Scope::Host,
            workspace: Workspace::Never,
            holds: Holds::Restart,
            advanced: false,
            by_command: false,
            at_terminal: false,
            allows: "",
        }
    }

    const fn project(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        about: &'static str,
    ) -> Self {
        let key = Self::host(name, kind, default, about).now();
        Self { scope: Scope::Project, ..key }
    }

    const fn now(self) -> Self {
        Self { holds: Holds::Now, ..self }
    }

    const fn by_command(self) -> Self {
        Self { by_command: true, ..self }
    }

    const fn at_terminal(self) -> Self {
        Self { at_terminal: true, ..self }
    }

    const fn allows(self, allows: &'static str) -> Self {
        Self { allows, ..self }
    }

    const fn advanced(self) -> Self {
        Self { advanced: true, ..self }
    }

    const fn tighter(self) -> Self {
        self.tighter_than(u64::MAX)
    }

    const fn tighter_than(self, none: u64) -> Self {
        Self { workspace: Workspace::Tighter { none }, ..self }
    }

    const fn free(self) -> Self {
        Self { workspace: Workspace::Free, ..self }
    }

    /// Whether a change from one value to another, as they are typed, lets boxes do more. What was not said
    /// before counts as the least, what nobody knows yet as the most that can be.
    pub fn loosens(&self, from: Option<&str>, to: Option<&str>) -> bool {
        let rank = |typed: &str| self.kind.parse(typed).ok().and_then(|v| self.kind.place_of(&v));
        let from = from.and_then(rank).unwrap_or(0);
        let to = to.and_then(rank).unwrap_or_else(|| self.kind.last_place());
        !self.allows.is_empty() && to > from
    }

    /// Whether this is the key of that name.
    pub fn is(&self, name: &str) -> bool {
        let (mut own, mut given) = (self.name.split('.'), name.split('.'));
        loop {
            match (own.next(), given.next()) {
                (None, None) => return true,
                (Some("*"), Some(word)) if is_word(word) => {}
                (Some(own), Some(word)) if own == word => {}
                _ => return false,
            }
        }
    }
}

fn is_word(word: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !word.is_empty() && word.bytes().all(plain)
}

/// The key of this name, such as `integrations.notion.enabled`.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.is(name))
}

/// Sections that decide about boxes: what is misspelt there must not be passed over.
const POLICY: [&str; 13] = [
    "approvals",
    "claude",
    "codex",
    "egress",
    "engine",
    "gh",
    "integrations",
    "opencode",
    "portal",
    "proxy",
    "relay",
    "secrets",
    "workspace",
];

/// Whether a key nobody knows may stand in a file all the same: perhaps another version knows it.
pub(crate) fn may_be_foreign(name: &str) -> bool {
    let section = name.split('.').next().unwrap_or(name);
    let sections: Vec<&str> = KEYS.iter().filter_map(|key| key.name.split('.').next()).collect();
    // Short words are near to many.
    let letters = if section.len() < 8 { 1 } else { 2 };
    let misspelt = || similar_within(section, &sections, letters).is_some();
    let looks_known = meant(name).is_some() || (!sections.contains(&section) && misspelt());
    // A merge of YAML may bring anything.
    let plain = name.split('.').all(is_word);
    plain && !POLICY.contains(&section) && !looks_known
}

/// The name that was perhaps meant.
pub fn meant(name: &str) -> Option<&'static str> {
    let all: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    similar(name, &all).or_else(|| {
        let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
        let word = name.rsplit('.').next()?;
        let lasts: Vec<&str> = all.iter().map(|name| last(name)).collect();
        let near = similar(word, &lasts)?;
        all.iter().copied().find(|name| last(name) == near)
    })
}

const ANY: Kind = Kind::Whole { least: 0, most: u64::MAX };
const COUNT: Kind = Kind::Whole { least: 0, most: u32::MAX as u64 };
const ONE_OR_MORE: Kind = Kind::Whole { least: 1, most: u32::MAX as u64 };
/// How many processes a box may have without anybody's word.
const PROCESSES: u64 = 8192;

macro_rules! agent {
    ($agent:literal, $title:literal) => {
        [
            Key::project(
                concat!($agent, ".sessionName"),
                Kind::Text,
                "",
                concat!("The name of ", $title, "'s session in a box; the agent's own without it."),
            )
            .free(),
            Key::project(
                concat!($agent, ".dangerouslySkipPermissions"),
                Kind::Bool,
                "true",
                concat!($title, " does not ask before each step, because a box keeps it in; OpenCode's own settings decide that."),
            )
            .tighter()
            .allows(concat!($title, " then takes its steps in boxes without asking before each.")),
            Key::project(
                concat!($agent, ".login"),
                Kind::Bool,
                "true",
                concat!("Boxes get your login of ", $title, "."),
            )
            .tighter()
            .allows(concat!(
                "Agents in boxes then use your account of ",
                $title,
                ", and what runs in a box can read that login."
            )),
            Key::project(
                concat!($agent, ".sync"),
                Kind::Bool,
                "true",
                concat!("Your own settings of ", $title, " are brought to boxes."),
            )
            .tighter()
            .allows(concat!("Boxes then get your own settings of ", $title, " to read.")),
        ]
    };
}

const CLAUDE: [Key; 4] = agent!("claude", "Claude Code");
const CODEX: [Key; 4] = agent!("codex", "Codex");
const OPENCODE: [Key; 4] = agent!("opencode", "OpenCode");

pub const KEYS: &[Key] = &[
    Key::host(
        "engine.host",
        Kind::Text,
        "",
        "The engine's address, such as unix:///var/run/docker.sock. Without it: DOCKER_HOST, the docker context, the usual places.",
    )
    .at_terminal(),
    Key::host(
        "engine.channel",
        Kind::OneOf(&["auto", "socket", "exec"]),
        "auto",
        "How boxes reach the host.",
    )
    .advanced(),
    Key::project(
        "engine.kind",
        Kind::OneOf(&["auto", "orbstack", "docker-desktop", "other"]),
        "auto",
        "What the engine is taken for when it comes to addresses of boxes. Auto: what it says of itself.",
    )
    .by_command(),
    Key::project("box.image", Kind::Text, "", "An image used instead of the built one.").at_terminal(),
    Key::project(
        "box.stage",
        Kind::OneOf(&["core", "desktop", "full"]),
        "full",
        "How much the built image has in it.",
    )
    .tighter(),
    Key::project("box.vnc", Kind::Bool, "true", "Boxes have a screen.").tighter(),
    Key::project(
        "box.docker",
        Kind::OneOf(&["off", "auto", "on"]),
        "auto",
        "Boxes have a container engine of their own: on. Auto is no, with a hint when a project has a compose file.",
    )
    .tighter()
    .at_terminal(),
    Key::project(
        "box.extraCas",
        Kind::Words,
        "",
        "Certificate files boxes trust. Without it: those added to your system; [] is none.",
    )
    .at_terminal(),
    Key::project(
        "box.cpMaxBytes",
        Kind::Whole { least: 1, most: u64::MAX },
        "104857600",
        "The most one copy between a box and this computer may carry.",
    )
    .tighter()
    .advanced(),
    Key::project(
        "box.withEnv",
        Kind::Bool,
        "false",
        "New boxes get .env files and the like, which git ignores.",
    )
    .allows("Credentials in files that git ignores are then in the hands of every new box."),
    Key::project(
        "box.resyncOnStart",
        Kind::Bool,
        "true",
        "A box that was down takes over what is new here when an agent is started in it.",
    )
    .tighter(),
    Key::project("box.memory", Kind::Size, "", "The memory of a new box; 0 is no limit.").tighter(),
    Key::project("box.cpus", Kind::Cpus, "", "The processors of a new box; 0 is no limit.")
        .tighter(),
    Key::project("box.pidsLimit", ANY, "8192", "The processes of a new box; 0 is the usual 8192.")
        .tighter_than(PROCESSES),
    Key::project(
        "box.disk",
        Kind::Size,
        "",
        "The disk of a new box, where the engine can limit it; 0 is no limit.",
    )
    .tighter(),
    Key::host(
        "approvals.timeoutSeconds",
        Kind::Whole { least: 1, most: u64::MAX },
        "900",
        "After so many seconds a question is a no.",
    ),
    Key::project(
        "approvals.mode",
        Kind::OneOf(&["ask", "safe"]),
        "ask",
        "Safe: pushes to the box's own branch, its own pull request and copies to .agentbox/out do not ask.",
    )
    .allows("Boxes then push to their own branch, open pull requests from it and copy files to .agentbox/out/<box> in your project without asking you. Everything else still asks."),
    Key::host("approvals.quiet", Kind::Hours, "", "No dialogs and notifications then; local time."),
    Key::host(
        "approvals.promptCommand",
        Kind::Words,
        "",
        "A program that is asked, too, with its arguments.",
    )
    .at_terminal(),
    Key::host(
        "approvals.whenNobodyWatches",
        Kind::OneOf(&["auto", "wait", "deny"]),
        "auto",
        "What becomes of a question nobody can see. Auto: deny without a desktop, wait with one.",
    ),
    Key::host(
        "secrets.backend",
        Kind::OneOf(&["keychain", "file"]),
        "keychain",
        "Where credentials are kept.",
    )
    .allows("Credentials are then in files that only you can read, and no longer in the keychain: every program that you run can read them."),
    Key::project(
        "integrations.*.enabled",
        Kind::Bool,
        "",
        "Boxes may use the service. Without it: as the service starts out.",
    )
    .allows("Boxes then read at * in your name without asking you. What they want to write there is asked about first, unless other settings say otherwise."),
    Key::project(
        "integrations.*.autoApproveWrites",
        Kind::Bool,
        "false",
        "The service's writes do not ask.",
    )
    .allows("Boxes then create, change and delete at * in your name without asking you. What they did stands in the activity."),
    Key::project(
        "integrations.*.baseUrl",
        Kind::Address,
        "",
        "Another address of the service; http:// only to this computer.",
    )
    .advanced()
    .at_terminal(),
    Key::project(
        "gh.checkout",
        Kind::Bool,
        "false",
        "`gh pr checkout` in a box may change your own branch.",
    )
    .allows("A pull request that a box checks out with gh pr checkout is then also checked out in your own repository on this computer."),
    Key::project(
        "egress.mode",
        Kind::OneOf(&["locked", "balanced", "observe", "open"]),
        "open",
        "How new boxes get out. Open: a network, nothing is recorded. The others have none but AgentBox's proxy. Observe: everything passes and is recorded. Balanced: package registries, agents' services and what you allowed; the rest asks. Locked: only what you allowed and the box's own agent.",
    )
    .tighter()
    .allows("New boxes then reach more of the network than before, and can send there whatever they hold."),
    CLAUDE[0],
    CLAUDE[1],
    CLAUDE[2],
    CLAUDE[3],
    CODEX[0],
    CODEX[1],
    CODEX[2],
    CODEX[3],
    OPENCODE[0],
    OPENCODE[1],
    OPENCODE[2],
    OPENCODE[3],
    Key::project(
        "attach.openIn",
        Kind::OneOf(&["split", "window", "tab", "same"]),
        "split",
        "Where agents are shown in tmux, Herdr, cmux and iTerm2; elsewhere it is this terminal.",
    )
    .by_command(),
    Key::project(
        "code.ide",
        Kind::OneOf(&["auto", "vscode", "cursor"]),
        "auto",
        "The editor of `agentbox code`. Auto: VS Code, else Cursor.",
    )
    .free()
    .by_command(),
    Key::project(
        "code.autoTerminals",
        Kind::Bool,
        "true",
        "The editor gets a terminal for the log of each service.",
    )
    .free()
    .by_command(),
    Key::project("code.wait", Kind::Bool, "true", "The editor opens when the box is ready.")
        .free()
        .by_command(),
    Key::project(
        "code.timeoutMs",
        Kind::Whole { least: 0, most: 600_000 },
        "120000",
        "After so many milliseconds the editor opens all the same.",
    )
    .free()
    .by_command(),
    Key::project(
        "shell.user",
        Kind::Text,
        "",
        "The user of `agentbox shell` in a box. Without it: the one agents work as.",
    )
    .by_command(),
    Key::project("shell.login", Kind::Bool, "true", "A shell reads a profile.").free().by_command(),
    Key::project("shell.tmux", Kind::Bool, "true", "A shell goes on when its terminal closes.")
        .free()
        .by_command(),
    Key::host("autopause.enabled", Kind::Bool, "true", "Boxes that nobody uses are paused."),
    Key::host("autopause.maxRunningBoxes", ONE_OR_MORE, "5", "Only while more than this run."),
    Key::host("autopause.idleMinutes", ONE_OR_MORE, "5", "And after this time."),
    Key::host(
        "queue.maxConcurrent",
        ONE_OR_MORE,
        "5",
        "Background jobs begin while fewer boxes run.",
    ),
    Key::host(
        "queue.maxWorking",
        COUNT,
        "0",
        "Or, when not 0, while fewer agents work.",
    ),
    Key::host(
        "queue.idleGraceSeconds",
        COUNT,
        "15",
        "So long an agent that is done, needs you or failed still counts as working.",
    )
    .advanced(),
    Key::host(
        "proxy.port",
        Kind::Whole { least: 0, most: 65535 },
        "1355",
        "The port of the addresses of boxes; 0: none.",
    ),
    Key::host("proxy.portless", Kind::Bool, "true", "Portless gets routes to boxes when it runs."),
    Key::host(
        "desktop.launchAtLogin",
        Kind::Bool,
        "false",
        "The app in the tray starts when you log in.",
    )
    .now(),
    Key::host("relay.callsPerMinute", COUNT, "240", "How often one box may ask.").advanced(),
    Key::host("relay.eventsPerMinute", COUNT, "600", "How often one box may tell.").advanced(),
    Key::host(
        "checkpoint.maxLayers",
        ONE_OR_MORE,
        "3",
        "Checkpoints one may build on before the next is one layer.",
    )
    .now()
    .advanced(),
    Key::host(
        "update.feed",
        Kind::Address,
        "",
        "What `agentbox self-update` asks. Without it: nobody.",
    )
    .now()
    .at_terminal(),
    Key::project(
        "workspace.trusted",
        Kind::Text,
        "",
        "The SHA-256 of the project's agentbox.yaml that may loosen, too; `agentbox config trust-workspace` asks and sets it. In your file for the project alone.",
    )
    .advanced()
    .at_terminal(),
];

#[cfg(test)]
mod tests;
