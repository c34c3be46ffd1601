//! What can go wrong, one variant per thing a caller can act on.
//!
//! The message says what failed and on what; [`Error::hint`] says what to do next. Neither ever
//! contains a token or a remote's user information.

use crate::Record;
use crate::engine::Attempt;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no container engine answered: {}", list(.0))]
    NoEngine(Vec<Attempt>),
    #[error("{address:?} is no engine address this program can use: {why}")]
    BadAddress { address: String, why: String },
    #[error(
        "the engine at {address} speaks API {api}, at least {} is needed",
        crate::engine::MINIMUM_API
    )]
    OldEngine { address: String, api: String },
    #[error("the engine went away while it was asked to {what}: {why}")]
    Unreachable { what: String, why: String },
    #[error("the engine could not {what}: {why}")]
    Engine { what: String, status: Option<u16>, why: String },
    #[error("gave up after {} s waiting to {what}", .after.as_secs())]
    Timeout { what: String, after: Duration },

    #[error("the base image {image} is not there and cannot be pulled: {why}")]
    NoBaseImage { image: String, why: String },
    #[error("there is no image {0}")]
    NoImage(String),
    #[error("the image {0} is no checkpoint of this installation")]
    NotOurs(String),
    #[error("an engine without root's rights cannot give a box an engine of its own")]
    NoInnerEngine,
    #[error("an image of the stage {} has no container engine in it", .0.as_str())]
    NoInnerEngineIn(crate::Stage),
    #[error("the box image could not be built{}: {why}\n{output}", at(step))]
    Build { step: String, why: String, output: String },

    #[error("the engine has something else of the name {0} already")]
    NameTaken(String),
    #[error("the workspace {0} is not there or is no folder")]
    NoWorkspace(PathBuf),
    #[error("no git program was found in {0:?}")]
    NoGit(String),
    #[error("git could not {what} in {}: {why}", .path.display())]
    Git { what: String, path: PathBuf, why: String },
    #[error("{} cannot be put into a box: {why}", .path.display())]
    Repository { path: PathBuf, why: String },
    #[error("the branches agentbox/{0} to agentbox/{0}-100 are all taken")]
    NoFreeBranch(String),
    #[error("the repository has a branch named agentbox, so none named agentbox/… can be made")]
    BranchInTheWay,
    #[error("a box cannot start from {name:?}: {why}")]
    Branch { name: String, why: String },
    #[error("a file from this computer could not be copied: {0}")]
    Carry(String),
    /// The box was made, and stays.
    #[error("carry: {} not copied into the box:\n  {}", entries(.0.len()), .0.join("\n  "))]
    NotCarried(Vec<String>),
    #[error("the repository of this box is gone: {}", .0.display())]
    RepositoryGone(PathBuf),

    #[error("the engine has nothing of this box any more; was it removed there?")]
    NoContainer,
    #[error("the box is not running")]
    NotRunning,
    /// It was stopped for that.
    #[error("egress_unsafe: the box is to have no network, and has one: {}", .0.join("; "))]
    EgressUnsafe(Vec<String>),
    #[error("the box must be stopped first")]
    NotStopped,
    #[error("nothing listens on port {0} in the box")]
    NotListening(u16),
    #[error("`agentbox-ctl {command}` in the box ended with {exit}: {stderr}")]
    InBox { command: String, exit: i64, stderr: String },
    #[error("the box sent something that is no answer to `agentbox-ctl {command}`: {why}")]
    BadAnswer { command: String, why: String },
    #[error("the box sent more than {limit} bytes")]
    TooLarge { limit: u64 },

    #[error("cannot {what} {}: {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("creating the box was called off")]
    Cancelled,
    /// Making a box failed, and so did taking it back.
    #[error("{0}")]
    NotCleaned(Box<Error>),
    /// Making a box failed, and somebody wanted to see what there is of it.
    #[error("{error}")]
    Unfinished { record: Box<Record>, error: Box<Error> },
}

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::NoEngine(attempts) => return Some(crate::engine::hint(attempts)),
            Error::NotCleaned(error) | Error::Unfinished { error, .. } => return error.hint(),
            Error::Branch { .. } => "`git branch -a` lists the branches there are",
            Error::BadAddress { .. } => "use unix:///path/to/docker.sock or tcp://host:port",
            Error::OldEngine { .. } => "update the engine (Docker 20.10 or Podman 4.3 and later)",
            Error::Unreachable { .. } => {
                "is it still running? `agentbox doctor` shows what is tried"
            }
            Error::Timeout { .. } => "the engine or the machine is very busy; try again",
            Error::NoBaseImage { .. } => {
                "without a registry, `make base-image` makes one with debootstrap and imports it"
            }
            Error::NoImage(_) => "leave the image out to use the built-in one",
            Error::NameTaken(_) => {
                "choose another name with --name, or remove what has it: docker rm, or podman rm"
            }
            Error::NoInnerEngine => "make the box without --docker, or use an engine run by root",
            Error::NoInnerEngineIn(_) => "set box.stage to full, or make the box without --docker",
            Error::NotRunning => "start it: agentbox start",
            Error::NotStopped => "stop it: agentbox stop",
            Error::EgressUnsafe(_) => {
                "it was stopped. Detach its container from every network but none, or make the box anew"
            }
            Error::NoContainer => {
                "agentbox prune forgets it; its commits stay on its branch in your repository"
            }
            Error::InBox { command, stderr, .. }
                if command == "go" && stderr.contains("No space left on device") =>
            {
                "something in the box has filled its folder in memory: agentbox stop empties it, \
                 agentbox start brings the box back"
            }
            Error::Engine { why, .. } if no_more_processes(why) => {
                "the box has used up its processes: agentbox status shows them, agentbox limits \
                 --pids-limit allows more at once, agentbox stop ends them all"
            }
            Error::NoGit(_) => "install git",
            Error::NoFreeBranch(_) => "delete old agentbox/ branches, or choose another name",
            Error::BranchInTheWay => "rename it: git branch -m agentbox something-else",
            Error::RepositoryGone(_) => "put it back where it was, or create the box anew",
            Error::Engine { why, .. } if why.contains("address pool") => {
                "each box has its own network and the engine has no address range left: \
                 destroy boxes, or give the engine more default-address-pools"
            }
            Error::Engine { why, .. } | Error::Build { why, .. } | Error::Carry(why) => {
                return crate::room::hint(why).map(str::to_owned);
            }
            Error::NotCarried(failed) => {
                return crate::room::hint(&failed.join("\n")).map(str::to_owned);
            }
            Error::InBox { stderr, .. } => return crate::room::hint(stderr).map(str::to_owned),
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// An engine runs, but this person may not use it.
    pub fn is_locked(&self) -> bool {
        let locked = |a: &Attempt| a.failure == crate::engine::Failure::PermissionDenied;
        matches!(self, Error::NoEngine(attempts) if attempts.iter().any(locked))
    }

    /// The engine could not be asked at all, so nothing is known about its boxes.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Error::NotCleaned(error) | Error::Unfinished { error, .. } => error.is_unreachable(),
            other => {
                matches!(
                    other,
                    Error::NoEngine(_) | Error::Unreachable { .. } | Error::Timeout { .. }
                )
            }
        }
    }

    /// The engine was not heard: what it was asked to do may be done, or be done later.
    pub fn leaves_doubt(&self) -> bool {
        matches!(
            self,
            Error::Unreachable { .. } | Error::Timeout { .. } | Error::Engine { status: None, .. }
        )
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Error::Engine { status, .. } => *status,
            _ => None,
        }
    }

    /// Gives the engine client's error a subject.
    pub(crate) fn engine(what: &str, error: bollard::errors::Error) -> Self {
        use bollard::errors::Error as E;
        let what = what.to_owned();
        match error {
            E::DockerResponseServerError { status_code, message } => {
                Error::Engine { what, status: Some(status_code), why: message }
            }
            E::DockerStreamError { error } => Error::Engine { what, status: None, why: error },
            E::SocketNotFoundError(path) => {
                Error::Unreachable { what, why: format!("{path} is not there") }
            }
            E::RequestTimeoutError => Error::Unreachable { what, why: "no answer".to_owned() },
            E::HyperLegacyError { .. } | E::HyperResponseError { .. } | E::IOError { .. } => {
                Error::Unreachable { what, why: deepest(&error) }
            }
            other => Error::Engine { what, status: None, why: other.to_string() },
        }
    }

    pub(crate) fn io(what: &'static str, path: &std::path::Path, source: std::io::Error) -> Self {
        Error::Io { what, path: path.to_owned(), source }
    }
}

/// What the kernel says when a limit of processes is reached, as engines pass it on.
fn no_more_processes(why: &str) -> bool {
    why.contains("esource temporarily unavailable")
}

/// The HTTP client's own text says only “client error”; the cause is at the bottom of the chain.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(next) = at.source() {
        at = next;
    }
    at.to_string()
}

/// A build may fail before its first step.
fn at(step: &str) -> String {
    if step.is_empty() { String::new() } else { format!(", {step}") }
}

fn entries(many: usize) -> String {
    if many == 1 { "1 entry was".to_owned() } else { format!("{many} entries were") }
}

fn list(attempts: &[Attempt]) -> String {
    let texts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
