//! Host programs: by absolute path, with argv, without a shell, in their own process group, with
//! an environment that is built up, and never longer or louder than allowed.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::Instant;

/// The most that is kept of one output stream. More ends the program.
pub const MAX_STREAM: usize = 8 * 1024 * 1024;
/// Between a friendly and an unfriendly end.
const KILL_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(
        "{0} is not installed on the host, or not in a folder of PATH that only its owner can write"
    )]
    Missing(String),
    #[error("cannot run {}: {source}", program.display())]
    Spawn { program: PathBuf, source: std::io::Error },
}

/// How long a program may take.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// Without a byte of output.
    pub idle: Duration,
    pub total: Duration,
    /// Bytes of memory each process may have for its data. A few kilobytes of objects can be made
    /// to unfold into more than any computer has; only git meets such things.
    pub memory: Option<u64>,
}

const GIB: u64 = 1024 * 1024 * 1024;

impl Limit {
    /// For work on local files.
    pub const LOCAL: Limit = Limit {
        idle: Duration::from_secs(60),
        total: Duration::from_secs(60),
        memory: Some(2 * GIB),
    };
    /// For work over a network, where a slow line is no fault.
    pub const NETWORK: Limit = Limit {
        idle: Duration::from_secs(120),
        total: Duration::from_secs(30 * 60),
        memory: Some(4 * GIB),
    };
    /// For a program that asks a service something.
    pub const SERVICE: Limit = Limit::of(Duration::from_secs(120));

    /// For a program that works through what a box has written, such as `gh` and its filters.
    pub const FILTERS: Limit = Limit { memory: Some(GIB / 2), ..Limit::SERVICE };

    /// So long and no longer, whatever it prints.
    pub const fn of(time: Duration) -> Self {
        Limit { idle: time, total: time, memory: None }
    }

    /// The same, and never longer than this.
    #[must_use]
    pub fn within(self, most: Duration) -> Self {
        Limit { idle: self.idle.min(most), total: self.total.min(most), ..self }
    }
}

/// What a program left behind.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// Its own code, 128 + signal, or 124 when it ran out of time.
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Output {
    pub fn ok(&self) -> bool {
        self.code == 0
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A program on this host, found once.
#[derive(Debug, Clone)]
pub struct Tool {
    pub path: PathBuf,
}

impl Tool {
    /// Searches PATH, skipping relative entries and folders that others can write: a box must not
    /// be able to put its own `git` in the way.
    pub fn find(name: &str, path: &OsStr) -> Result<Self, ProcessError> {
        Self::find_in(name, trusted_dirs(path))
    }

    /// The first of the folders that has it.
    pub fn find_in(
        name: &str,
        mut dirs: impl Iterator<Item = PathBuf>,
    ) -> Result<Self, ProcessError> {
        let found = dirs.find_map(|dir| Some(dir.join(name)).filter(|file| is_program(file)));
        let file = found.ok_or_else(|| ProcessError::Missing(name.to_owned()))?;
        Ok(Self { path: file.canonicalize().unwrap_or(file) })
    }

    /// Runs it to its end, without input.
    pub async fn run(
        &self,
        cwd: &Path,
        args: &[OsString],
        env: &[(OsString, OsString)],
        limit: Limit,
    ) -> Result<Output, ProcessError> {
        self.feed(cwd, args, None, env, limit).await
    }

    /// Runs it to its end with this as its input.
    pub async fn feed(
        &self,
        cwd: &Path,
        args: &[OsString],
        stdin: Option<&[u8]>,
        env: &[(OsString, OsString)],
        limit: Limit,
    ) -> Result<Output, ProcessError> {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(cwd).env_clear().envs(env.iter().map(|(k, v)| (k, v)));
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        if let Some(bytes) = limit.memory {
            bounded::memory(&mut command, bytes);
        }
        let spawned = command.spawn();
        let mut child =
            spawned.map_err(|source| ProcessError::Spawn { program: self.path.clone(), source })?;
        let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
        let mut out = Capture::new(child.stdout.take());
        let mut err = Capture::new(child.stderr.take());
        let pipe = child.stdin.take();
        let feeding = async move {
            if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
                // It need not read what it is given.
                let _ = pipe.write_all(bytes).await;
            }
        };
        let mut feeding = std::pin::pin!(feeding);
        let mut fed = false;

        let started = Instant::now();
        let mut late = None;
        while !(out.ended && err.ended) {
            let quiet_until = out.last.max(err.last) + limit.idle;
            let until = quiet_until.min(started + limit.total);
            tokio::select! {
                () = out.read(), if !out.ended => {}
                () = err.read(), if !err.ended => {}
                () = &mut feeding, if !fed => fed = true,
                () = tokio::time::sleep_until(until) => {
                    late = Some(if until == quiet_until { limit.idle } else { limit.total });
                }
            }
            if late.is_some() || out.full || err.full {
                group.end(&mut child).await;
                break;
            }
        }
        // It may have closed its output and gone on.
        let status = if let Ok(status) =
            tokio::time::timeout_at(started + limit.total + KILL_AFTER, child.wait()).await
        {
            status
        } else {
            late = Some(limit.total);
            group.end(&mut child).await;
            child.wait().await
        };
        drop(group);
        let mut output = Output {
            code: status.map_or(1, exit_code),
            stdout: out.finish(),
            stderr: err.finish(),
        };
        if let Some(time) = late {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let line = format!("relay: {name} timed out after {}ms\n", time.as_millis());
            output.stderr.extend_from_slice(line.as_bytes());
            output.code = protocol::exit::TIMED_OUT;
        }
        Ok(output)
    }
}

/// The environment every host program starts from.
///
/// Built up from names that are known to be harmless and needed; whatever steers git, loaders or
/// runtimes from outside (`GIT_*`, `LD_*`, `NODE_OPTIONS`, …) is not among them.
pub fn base_env(
    inherited: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    const KEEP: &[&str] = &[
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    const SET: &[(&str, &str)] = &[
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("PAGER", "cat"),
        ("NO_COLOR", "1"),
        ("EDITOR", "false"),
        ("VISUAL", "false"),
        ("GIT_EDITOR", "false"),
        ("BROWSER", "false"),
        // A read asks nobody, so nothing it starts may: no window for a password either.
        ("SSH_ASKPASS_REQUIRE", "never"),
        ("GCM_INTERACTIVE", "never"),
    ];
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for (key, value) in inherited {
        if key == "PATH" {
            let dirs: Vec<PathBuf> = trusted_dirs(&value).collect();
            env.push((key, std::env::join_paths(dirs).unwrap_or_else(|_| "/usr/bin:/bin".into())));
        } else if KEEP.iter().any(|k| key == *k) {
            env.push((key, value));
        }
    }
    env.extend(SET.iter().map(|(k, v)| (k.into(), v.into())));
    env
}

pub(crate) fn trusted_dirs(path: &OsStr) -> impl Iterator<Item = PathBuf> + use<> {
    let dirs: Vec<PathBuf> = std::env::split_paths(path).collect();
    dirs.into_iter().filter(|dir| is_trusted(dir))
}

/// Nobody but its owner's group can put a program there.
pub(crate) fn is_trusted(dir: &Path) -> bool {
    let shared = |m: std::fs::Metadata| m.mode() & 0o002 != 0;
    dir.is_absolute() && !std::fs::metadata(dir).is_ok_and(shared)
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The program and everything it started. Dropped, all of it is killed.
struct Group(Option<Pid>);

impl Group {
    async fn end(&self, child: &mut tokio::process::Child) {
        let Some(pid) = self.0 else { return };
        let _ = killpg(pid, Signal::SIGTERM);
        let _ = tokio::time::timeout(KILL_AFTER, child.wait()).await;
        let _ = killpg(pid, Signal::SIGKILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // The leader may be gone while its children live on in the group.
            let _ = killpg(pid, Signal::SIGKILL);
        }
    }
}

/// The one place that needs `unsafe`: a bound on memory must be there before the program's first
/// instruction, or what it starts at once escapes it. So it is set between fork and exec, which costs
/// a fork: programs that do not need it are started the quick way.
mod bounded {
    use nix::sys::resource::{Resource, setrlimit};
    use tokio::process::Command;

    #[allow(
        unsafe_code,
        reason = "pre_exec; the closure makes one system call and allocates nothing"
    )]
    pub fn memory(command: &mut Command, bytes: u64) {
        let bound = move || Ok(setrlimit(Resource::RLIMIT_DATA, bytes, bytes)?);
        unsafe {
            command.pre_exec(bound);
        }
    }
}

/// One output stream, bounded.
struct Capture<R> {
    from: Option<R>,
    chunk: Vec<u8>,
    kept: Vec<u8>,
    last: Instant,
    ended: bool,
    full: bool,
}

impl<R: AsyncRead + Unpin> Capture<R> {
    fn new(from: Option<R>) -> Self {
        let ended = from.is_none();
        Self {
            from,
            chunk: vec![0; 16 * 1024],
            kept: Vec::new(),
            last: Instant::now(),
            ended,
            full: false,
        }
    }

    /// Reads some, or notes the end.
    async fn read(&mut self) {
        let Some(from) = &mut self.from else { return };
        match from.read(&mut self.chunk).await {
            Ok(0) | Err(_) => self.ended = true,
            Ok(n) => {
                self.last = Instant::now();
                let room = MAX_STREAM - self.kept.len();
                self.kept.extend_from_slice(&self.chunk[..n.min(room)]);
                self.full = n > room;
                self.ended = self.full;
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.full {
            let marker = format!("\nrelay: output cut after {MAX_STREAM} bytes\n");
            self.kept.truncate(MAX_STREAM - marker.len());
            self.kept.extend_from_slice(marker.as_bytes());
        }
        self.kept
    }
}

#[cfg(test)]
mod tests;
