//! The keys of `agentbox.yaml` in one table: names, shapes, ranges, choices and meanings.
//!
//! The reader takes them from here, and so does the schema for editors, so the two cannot part.

/// The keys of one mapping.
pub(crate) type Table = &'static [Key];

#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub about: &'static str,
}

/// What stands behind a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Bool {
        otherwise: bool,
    },
    Text,
    /// A whole number.
    Int {
        least: i64,
        most: i64,
        otherwise: Option<i64>,
    },
    /// A number that something is multiplied with.
    Factor,
    OneOf(&'static [&'static str]),
    /// A mapping with these keys.
    Mapping(Table),
    /// A mapping with any keys.
    Free(Table),
    /// Names of services or tasks, with what they are.
    Units(Unit),
    /// Names of replacement sets, with their rules.
    Sets,
    Rules,
    CarryList,
    /// For a shell, or word by word.
    Command,
    Env,
    /// Names of units.
    Needs,
    Image,
    Ports,
    /// Words for a container, or one string of them.
    Args,
    ContainerName,
    ReadyWhen,
    Pattern,
    HttpAddress,
    RunOnce,
    Source,
    Destination,
    /// Octal.
    Mode,
    /// A number, or a string with one.
    User,
    /// Strings that are not blank.
    Words,
    SetNames,
    /// Settings of boxes.
    Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Service,
    Task,
}

/// Ten years in milliseconds, which is as good as for ever.
pub(crate) const HIGHEST: i64 = 10 * 365 * 24 * 3600 * 1000;

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

const fn millis(least: i64, otherwise: i64) -> Shape {
    Shape::Int { least, most: HIGHEST, otherwise: Some(otherwise) }
}

const PORT: Shape = Shape::Int { least: 1, most: 65535, otherwise: None };

pub(crate) const TOP: Table = &[
    key("services", Shape::Units(Unit::Service), "Programs that run as long as the box does."),
    key("tasks", Shape::Units(Unit::Task), "Programs that run to their end."),
    key("replacements", Shape::Sets, "Named replacements, for carry and agentbox-ctl render."),
    key("carry", Shape::CarryList, "Files of this computer that are copied into a new box."),
    key(
        "defaults",
        Shape::Settings,
        "Settings for boxes of this project. They can only tighten what your own say.",
    ),
    key("ide", Shape::Free(IDE), "Hints for editors."),
];

pub(crate) const SERVICE: Table = &[
    key("command", Shape::Command, "A string for bash, or a list of words without a shell."),
    key("image", Shape::Image, "A container in the box's own engine, instead of a command."),
    key("cwd", Shape::Text, "Its folder, from the workspace."),
    key("env", Shape::Env, "Its variables; for an image they are in image.env."),
    key("autostart", Shape::Bool { otherwise: true }, "False: it waits until somebody starts it."),
    key("restart", Shape::OneOf(RESTARTS), "When it is started again. Without it: on-failure."),
    key("backoff", Shape::Mapping(BACKOFF), "How long it waits before it is started again."),
    key("needs", Shape::Needs, "Units that are up or done before it starts."),
    key("ready_when", Shape::ReadyWhen, "When it counts as up. Without it: as soon as it runs."),
    key("expose", Shape::Mapping(EXPOSE), "People see this service at the box's web address."),
    key("stop_grace_ms", millis(0, 5000), "How long it has to end before it is killed."),
    key("ide", Shape::Free(SERVICE_IDE), "Hints for editors."),
];

pub(crate) const TASK: Table = &[
    key("command", Shape::Command, "A string for bash, or a list of words without a shell."),
    key("cwd", Shape::Text, "Its folder, from the workspace."),
    key("env", Shape::Env, "Its variables."),
    key("needs", Shape::Needs, "Units that are up or done before it runs."),
    key("run_once", Shape::RunOnce, "When it need not run again."),
    key(
        "timeout_ms",
        Shape::Int { least: 1, most: HIGHEST, otherwise: None },
        "How long it may take.",
    ),
];

/// Known, but of services only.
pub(crate) const NOT_TASK: &[&str] = &["restart", "autostart", "backoff", "ready_when", "expose"];

pub(crate) const RESTARTS: &[&str] = &["always", "on-failure", "never"];

pub(crate) const BACKOFF: Table = &[
    key("initial_ms", millis(0, 500), "The first wait."),
    key("max_ms", millis(0, 30_000), "The longest wait."),
    key(
        "factor",
        Shape::Factor,
        "How much longer each wait is than the one before. Without it: 2.",
    ),
    key(
        "max_attempts",
        Shape::Int { least: 0, most: u32::MAX as i64, otherwise: Some(0) },
        "After so many it is given up; 0 is never.",
    ),
    key("reset_after_ms", millis(0, 60_000), "Up so long, and the waits begin anew."),
];

pub(crate) const READY_WHEN: Table = &[
    key("port", PORT, "Somebody listens there."),
    key("host", Shape::Text, "Where the port is. Without it: 127.0.0.1 and ::1."),
    key("log_match", Shape::Pattern, "It wrote a line that this regular expression matches."),
    key("http", Shape::HttpAddress, "It answers there. Redirects are not followed."),
    key(
        "expect_status",
        Shape::Int { least: 100, most: 599, otherwise: None },
        "The answer's status. Without it: any 2xx.",
    ),
    key("interval_ms", millis(1, 500), "The wait between two attempts."),
    key("initial_delay_ms", millis(0, 0), "The wait before the first attempt."),
    key("timeout_ms", millis(1, 60_000), "After this it is not up, counted from its start."),
    key("on_timeout", Shape::OneOf(ON_TIMEOUT), "What is done then. Without it: kill."),
];

pub(crate) const ON_TIMEOUT: &[&str] = &["kill", "mark_unhealthy"];

/// One of these, and the keys that mean nothing beside it.
pub(crate) const PROBES: &[(&str, &[&str])] = &[
    ("port", &["expect_status"]),
    ("log_match", &["host", "expect_status", "interval_ms", "initial_delay_ms"]),
    ("http", &["host"]),
];

pub(crate) const EXPOSE: Table = &[
    key("port", PORT, "Where the service listens."),
    key("as", Shape::Int { least: 80, most: 80, otherwise: Some(80) }, "Always 80."),
];

pub(crate) const IMAGE: Table = &[
    key("name", Shape::Text, "Such as postgres:17."),
    key("ports", Shape::Ports, "Such as 5437:5432: in the box, in the container."),
    key("env", Shape::Env, "The container's variables."),
    key("args", Shape::Args, "Words after the image's name."),
    key("container_name", Shape::ContainerName, "Without it: the service's name."),
];

pub(crate) const RULE: Table = &[
    key("from", Shape::Text, "What is replaced."),
    key("to", Shape::Text, "What comes instead; {{AGENTBOX_BOX_NAME}} and the like are filled in."),
    key("regex", Shape::Bool { otherwise: false }, "From is a regular expression."),
    key("flags", Shape::Text, "Of the expression: g, i, m, s, u. Without it: g."),
];

pub(crate) const CARRY: Table = &[
    key("src", Shape::Source, "On this computer: from /, from ~/ or from ./ (the project)."),
    key("dest", Shape::Destination, "In the box: from / or from ~/. Without it: as src."),
    key("mode", Shape::Mode, "Octal, such as \"0600\"."),
    key("user", Shape::User, "The owner's number. Without it: the box's user."),
    key("exclude", Shape::Words, "Names and globs that stay out of a folder."),
    key(
        "default_excludes",
        Shape::Bool { otherwise: true },
        "False: node_modules, target and the like are not left out.",
    ),
    key("optional", Shape::Bool { otherwise: false }, "It may be missing."),
    key("replaceEnvs", Shape::Bool { otherwise: false }, "Placeholders in the file are filled in."),
    key("replace", Shape::Rules, "Replacements in the file."),
    key("rules", Shape::SetNames, "Sets of replacements, before replace."),
];

const IDE: Table = &[key(
    "auto_open_terminals",
    Shape::Bool { otherwise: true },
    "False: the editor opens no terminals for the logs.",
)];

pub(crate) const SERVICE_IDE: Table =
    &[key("tail", Shape::Bool { otherwise: true }, "False: the editor does not show its log.")];

pub(crate) fn find(table: Table, name: &str) -> Option<&'static Key> {
    table.iter().find(|key| key.name == name)
}

pub(crate) fn names(table: Table) -> Vec<&'static str> {
    table.iter().map(|key| key.name).collect()
}
