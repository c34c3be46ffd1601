//! Commands in a box.
//!
//! [`Boxes::exec`] hands out the three parts of a running command: input, output, control. The
//! host's own calls of `agentbox-ctl` go through [`Boxes::ctl`], which feeds and drains at the same
//! time (a full pipe in either direction would block both) and holds the box to limits.

use crate::engine::{QUICK, ReadHalf, WriteHalf, limited};
use crate::{Boxes, Engine, Error, Record};
use bollard::models::ExecConfig;
use bollard::query_parameters::ResizeExecOptionsBuilder;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use protocol::ctl::{BOX_USER, paths};
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How long the box may refuse to read or to print anything.
const STALLED: Duration = Duration::from_secs(120);
/// How long `agentbox-ctl` may work after it has all its input.
const FINISH: Duration = Duration::from_secs(900);
/// Engines let go of a terminal at Ctrl-P Ctrl-Q by default and so swallow every Ctrl-P. There is no
/// way to say “never”; nobody types Ctrl-\\ Ctrl-] twice.
const DETACH_KEYS: &str = "\u{1c},\u{1d},\u{1c},\u{1d}";
/// How much of what went wrong is kept.
const STDERR: usize = 8 * 1024;

#[derive(Debug, Clone, Default)]
pub struct ExecSpec {
    pub argv: Vec<String>,
    /// The box user when absent.
    pub user: Option<String>,
    /// `/workspace` when absent.
    pub cwd: Option<String>,
    /// `NAME=value`; never a secret.
    pub env: Vec<String>,
    pub tty: bool,
    /// The terminal's first size.
    pub size: Option<Size>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
}

/// A running command. Dropping the input is its end of input; dropping the output makes it write
/// into nothing.
pub struct Exec {
    pub input: WriteHalf,
    pub output: ExecOutput,
    pub control: ExecControl,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    Stdout(Bytes),
    /// Never with a terminal, which has one stream only.
    Stderr(Bytes),
}

pub struct ExecOutput(pub(crate) ReadHalf);

impl ExecOutput {
    /// The next piece of output; none when the command has ended. May be cancelled and called
    /// again without loss.
    pub async fn next(&mut self) -> Result<Option<Chunk>, Error> {
        let piece = self.0.next().await.map_err(|error| Error::Unreachable {
            what: "read a command's output".to_owned(),
            why: error.to_string(),
        })?;
        Ok(piece.map(
            |(stderr, bytes)| if stderr { Chunk::Stderr(bytes) } else { Chunk::Stdout(bytes) },
        ))
    }
}

#[derive(Clone)]
pub struct ExecControl {
    engine: Engine,
    id: String,
}

impl ExecControl {
    pub async fn resize(&self, size: Size) -> Result<(), Error> {
        let options =
            ResizeExecOptionsBuilder::default().w(size.cols.into()).h(size.rows.into()).build();
        let request = self.engine.docker().resize_exec(&self.id, options);
        self.engine.ask("resize a terminal", QUICK, request).await
    }

    /// How the command ended. Called when its output has: the engine may need a moment to notice.
    pub async fn exit_code(&self) -> Result<i64, Error> {
        let what = "read a command's exit code";
        let wait = async {
            loop {
                let request = self.engine.docker().inspect_exec(&self.id);
                let state = self.engine.ask(what, QUICK, request).await?;
                if let (Some(code), Some(false)) = (state.exit_code, state.running) {
                    return Ok(code);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        limited(what, QUICK, wait).await?
    }
}

impl Boxes {
    /// Starts a command in a running box.
    pub async fn exec(&self, record: &Record, spec: ExecSpec) -> Result<Exec, Error> {
        self.exec_in(&record.container, spec).await
    }

    pub(crate) async fn exec_in(&self, container: &str, spec: ExecSpec) -> Result<Exec, Error> {
        let what = "start a command in the box";
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(spec.tty),
            detach_keys: Some(DETACH_KEYS.to_owned()),
            cmd: Some(spec.argv),
            user: Some(spec.user.unwrap_or_else(|| BOX_USER.to_owned())),
            working_dir: spec.cwd,
            env: Some(spec.env),
            ..ExecConfig::default()
        };
        let gate = self.gates.of(container);
        let starting = gate.start().await;
        let request = self.engine.docker().create_exec(container, config);
        let created = self.engine.ask(what, QUICK, request).await;
        let created = created.map_err(|error| match error.status() {
            Some(404) => Error::NoContainer,
            Some(409) => Error::NotRunning,
            _ => error,
        })?;
        gate.started(&created.id);
        let hijacked = self.engine.start_exec(&created.id, spec.tty).await;
        if hijacked.as_ref().is_err_and(|e| !matches!(e, Error::Timeout { .. })) {
            gate.refused(&created.id);
        }
        let hijacked = hijacked?;
        drop(starting);
        let control = ExecControl { engine: self.engine.clone(), id: created.id };
        if let Some(size) = spec.size.filter(|_| spec.tty) {
            // A command that ended at once has no terminal to resize; its output is still wanted.
            if let Err(error) = control.resize(size).await {
                tracing::debug!(%error, "the first terminal size was not set");
            }
        }
        Ok(Exec { input: hijacked.write, output: ExecOutput(hijacked.read), control })
    }

    /// Runs `agentbox-ctl` in the box with `feed` as its input and `sink` for its output, and
    /// wants it to succeed.
    pub(crate) async fn ctl<S: Sink>(
        &self,
        container: &str,
        call: CtlCall,
        feed: impl Stream<Item = io::Result<Bytes>> + Send,
        sink: &mut S,
    ) -> Result<(), Error> {
        let name = call.args.first().cloned().unwrap_or_default();
        let argv = std::iter::once(paths::CTL.to_owned()).chain(call.args).collect();
        let spec = ExecSpec { argv, user: call.user, env: call.env, ..ExecSpec::default() };
        let Exec { input, output, control } = Box::pin(self.exec_in(container, spec)).await?;
        let mut stderr = Vec::new();
        let (sent, read) = {
            let mut feeding = Box::pin(send(input, feed));
            let mut reading = Box::pin(receive(output, sink, &mut stderr));
            tokio::select! {
                read = &mut reading => (Ok(()), read),
                sent = &mut feeding => (sent, limited("finish", FINISH, reading).await?),
            }
        };
        // A box that stopped reading has said why; a host file that cannot be read has not.
        match (sent, read) {
            (Err(NotSent::Source(error)), _) => {
                return Err(Error::Io {
                    what: "read",
                    path: "the project's files".into(),
                    source: error,
                });
            }
            (_, Err(error)) => return Err(error),
            _ => {}
        }
        let exit = control.exit_code().await?;
        if exit == 0 {
            return Ok(());
        }
        let stderr = protocol::text::visible(String::from_utf8_lossy(&stderr).trim());
        Err(Error::InBox { command: name, exit, stderr })
    }
}

/// One call of `agentbox-ctl`.
#[derive(Default)]
pub(crate) struct CtlCall {
    pub args: Vec<String>,
    pub user: Option<String>,
    pub env: Vec<String>,
}

/// Takes what a command prints. An error ends the command.
pub(crate) trait Sink {
    fn take(&mut self, bytes: Bytes) -> impl Future<Output = Result<(), Error>> + Send;
}

/// For commands whose output is of no interest.
pub(crate) struct Nothing;

impl Sink for Nothing {
    async fn take(&mut self, _: Bytes) -> Result<(), Error> {
        Ok(())
    }
}

enum NotSent {
    /// The host's own data could not be read.
    Source(io::Error),
    /// The box does not read any more.
    Closed,
}

async fn send(
    mut input: WriteHalf,
    feed: impl Stream<Item = io::Result<Bytes>> + Send,
) -> Result<(), NotSent> {
    tokio::pin!(feed);
    while let Some(chunk) = feed.next().await {
        let chunk = chunk.map_err(NotSent::Source)?;
        let written = tokio::time::timeout(STALLED, input.write_all(&chunk)).await;
        if !matches!(written, Ok(Ok(()))) {
            return Err(NotSent::Closed);
        }
    }
    input.shutdown().await.map_err(|_| NotSent::Closed)
}

async fn receive<S: Sink>(
    mut output: ExecOutput,
    sink: &mut S,
    stderr: &mut Vec<u8>,
) -> Result<(), Error> {
    while let Some(chunk) = output.next().await? {
        match chunk {
            Chunk::Stdout(bytes) => sink.take(bytes).await?,
            Chunk::Stderr(bytes) => {
                let room = STDERR.saturating_sub(stderr.len());
                stderr.extend_from_slice(&bytes[..room.min(bytes.len())]);
            }
        }
    }
    Ok(())
}
