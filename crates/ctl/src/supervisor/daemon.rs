//! `agentbox-ctl daemon`: the supervisor itself.
//!
//! One at a time, by a lock. What an earlier one left running when it was killed is ended first, so
//! nothing ever runs twice. The socket is there before any unit, so that a unit may ask about the
//! others.

use super::engine::{Engine, Event, Places};
use super::log::Logs;
use super::push::Push;
use super::web::Web;
use super::{cgroup, environment, process, server, state_dir};
use crate::error::{Doing, Error, Result};
use crate::passwd::{self, Account};
use crate::places;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use protocol::ctl::{BOX_USER, paths};
use protocol::supervisor::{RUN, SOCKET, STATE, STATE_DIR};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    set_capabilities, set_keep_capabilities,
};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How long leftovers may take to end.
const LEFTOVERS: Duration = Duration::from_secs(5);
/// How long the host may take for the last word.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Where things are, unless somebody says otherwise.
struct Options {
    socket: PathBuf,
    config: PathBuf,
    logs: PathBuf,
    state: PathBuf,
    workspace: PathBuf,
}

impl Options {
    fn parse(args: &[OsString]) -> Result<Self> {
        let workspace = places::workspace();
        let mut options = Self {
            socket: Path::new(RUN).join("ctl.sock"),
            config: workspace.join("agentbox.yaml"),
            logs: paths::LOGS.into(),
            state: STATE.into(),
            workspace,
        };
        let mut words = args.iter();
        let mut config = None;
        while let Some(word) = words.next() {
            let usage = || {
                let flags = "--socket, --config, --log-dir, --state-dir, --workspace";
                Error::Usage(format!("daemon takes {flags}, each with a path."))
            };
            let into = match word.to_str() {
                Some("--socket") => &mut options.socket,
                Some("--config") => config.insert(PathBuf::new()),
                Some("--log-dir") => &mut options.logs,
                Some("--state-dir") => &mut options.state,
                Some("--workspace") => &mut options.workspace,
                _ => return Err(usage()),
            };
            *into = words.next().map(PathBuf::from).ok_or_else(usage)?;
        }
        options.config = config.unwrap_or_else(|| options.workspace.join("agentbox.yaml"));
        Ok(options)
    }
}

pub fn run(args: &[OsString]) -> Result<i32> {
    let options = Options::parse(args)?;
    // Before there is another thread: each has its own.
    keep_to_oneself().doing(|| "keep port 80 from units")?;
    if let Some(dir) = options.socket.parent() {
        fs::create_dir_all(dir).doing(|| format!("make {}", dir.display()))?;
    }
    let Some(_lock) = lock(&options.socket.with_extension("lock"))? else {
        return Ok(protocol::exit::OK);
    };
    process::be(&options.socket);
    nix::sys::prctl::set_child_subreaper(true).doing(|| "become the reaper of units")?;
    end_leftovers();
    let listener = server::bind(&options.socket)?;
    let (tell, events) = channel();
    let logs = Arc::new(Logs::new(options.logs.clone()));
    server::serve(listener, logs.clone(), tell.clone()).doing(|| "listen")?;
    let state = state_dir::resolve(&options.state, &options.logs);
    let published = if options.socket.starts_with(RUN) {
        Path::new(RUN).join("state-dir")
    } else {
        options.socket.with_extension("state-dir")
    };
    let _ = fs::write(published, state.display().to_string());
    // Before anybody else waits for children.
    let env = environment::of_units();
    listen_for_signals(&tell)?;
    let Options { config, workspace, socket, .. } = options;
    let engine_places = Places { socket: socket.clone(), config, workspace, state };
    let web = Web::new(Web::usual_port());
    let mut engine = Engine::new(engine_places, env, logs, tell, web, Push::start());
    engine.load();
    engine.run(&events);
    engine.web.close();
    engine.push.end(LAST_WORD);
    let _ = fs::remove_file(&socket);
    Ok(protocol::exit::OK)
}

/// None when another one has it, which is said.
fn lock(path: &Path) -> Result<Option<Flock<File>>> {
    let doing = || format!("open {}", path.display());
    let mut options = File::options();
    let file =
        options.read(true).write(true).create(true).truncate(false).open(path).doing(doing)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut file) => {
            file.set_len(0).doing(doing)?;
            write!(file, "{}", std::process::id()).doing(doing)?;
            Ok(Some(file))
        }
        Err((mut file, _)) => {
            let mut pid = String::new();
            let _ = Read::take(&mut file, 20).read_to_string(&mut pid);
            crate::complain(&format!("already running (pid {})", protocol::text::visible(&pid)));
            Ok(None)
        }
    }
}

/// Units of a supervisor that was killed.
fn end_leftovers() {
    ask_leftovers();
    process::kill_all();
}

fn ask_leftovers() {
    let found = process::strays(None);
    if found.is_empty() {
        return;
    }
    crate::complain(&format!("ending {} processes of an earlier supervisor", found.len()));
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        for stray in process::strays(None) {
            let _ = kill(stray.pid, signal);
            let _ = kill(stray.pid, Signal::SIGCONT);
        }
        let end = Instant::now() + LEFTOVERS;
        while Instant::now() < end {
            process::reap();
            if process::strays(None).is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn listen_for_signals(tell: &Sender<Event>) -> Result<()> {
    let doing = || "listen for signals";
    let mut signals =
        signal_hook::iterator::Signals::new([SIGCHLD, SIGTERM, SIGINT]).doing(doing)?;
    let tell = tell.clone();
    super::thread("signals", move || {
        for signal in signals.forever() {
            let event = if signal == SIGCHLD { Event::Child } else { Event::Stop };
            if tell.send(event).is_err() {
                return;
            }
        }
    })
    .doing(doing)
}

/// What listening on port 80 takes. Some engines let everybody in a box do that, others nobody but root.
const PORTS: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;

const NOTHING: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Of all that root may do, only this survives the next program's start (spec §7). Called as the box
/// user, with root's powers kept.
fn keep_ports() -> rustix::io::Result<()> {
    set_capabilities(
        None,
        CapabilitySets { effective: PORTS, permitted: PORTS, inheritable: PORTS },
    )?;
    configure_capability_in_ambient_set(PORTS, true)
}

/// Nobody this process starts gets what it may do itself.
fn keep_to_oneself() -> rustix::io::Result<()> {
    let own = capabilities(None)?;
    // The ambient set goes with it.
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..own })
}

/// `agentbox-ctl daemon supervisor` (root, by PID 1): makes the supervisor's folders and becomes the
/// box user, with all groups of that user: the inner engine's socket is open to one of them. All it
/// keeps of root is the right to port 80.
pub fn prepare() -> Result<Command> {
    let user = Account::of_system(BOX_USER)?;
    for dir in [RUN, paths::LOGS, STATE] {
        let doing = || format!("make {dir}");
        fs::create_dir_all(dir).doing(doing)?;
        own(Path::new(dir), &user, 3).doing(doing)?;
    }
    for (link, to) in [(SOCKET, "supervisor/ctl.sock"), (STATE_DIR, "supervisor/state-dir")] {
        let _ = fs::remove_file(link);
        symlink(to, link).doing(|| format!("make {link}"))?;
    }
    // Most boxes have none to write, and units end without them, too.
    let _ = cgroup::delegate(&user);
    let groups = fs::read_to_string(passwd::GROUP).unwrap_or_default();
    let mut groups: Vec<Gid> =
        passwd::groups_of(&groups, BOX_USER).into_iter().map(Gid::from_raw).collect();
    groups.push(Gid::from_raw(user.gid));
    let doing = || "become the box user";
    let kept = set_keep_capabilities(true);
    setgroups(&groups).doing(doing)?;
    setgid(Gid::from_raw(user.gid)).doing(doing)?;
    setuid(Uid::from_raw(user.uid)).doing(doing)?;
    if let Err(e) = kept.and_then(|()| keep_ports()) {
        // A box that root itself may not do that in has no address, and everything else.
        set_capabilities(None, NOTHING).doing(doing)?;
        crate::complain(&format!("port 80 may be out of reach: {e}"));
    }
    let mut command = Command::new(paths::CTL);
    command.arg("daemon").env("HOME", &user.home).env("USER", BOX_USER);
    command.env("LOGNAME", BOX_USER).env("SHELL", "/bin/bash");
    // Threads that each have a heap of their own would cost memory for nothing.
    command.env("MALLOC_ARENA_MAX", "1").current_dir(paths::WORKSPACE);
    Ok(command)
}

/// Gives a folder and the little that is in it to the box user.
fn own(path: &Path, user: &Account, depth: u32) -> std::io::Result<()> {
    let data = path.symlink_metadata()?;
    if data.uid() != user.uid {
        lchown(path, Some(user.uid), Some(user.gid))?;
    }
    if depth > 0 && data.is_dir() {
        for entry in fs::read_dir(path)?.flatten() {
            own(&entry.path(), user, depth - 1)?;
        }
    }
    Ok(())
}
