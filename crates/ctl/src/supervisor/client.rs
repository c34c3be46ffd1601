//! The commands for people and agents: `status`, `logs`, `start`, `run-task` and the like.
//!
//! A supervisor that is just being started again is waited for; PID 1 sees to that, nobody else.

use super::show;
use crate::error::{Error, Result};
use protocol::exit;
use protocol::supervisor::{
    Answer, Ask, LogEvent, Reloaded, SOCKET, ServiceStatus, Status, Stream, TaskStatus, UnitState,
    WaitReady, code,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Bad arguments, or a file with mistakes.
pub const INVALID: i32 = 2;
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// How long the last lines of a task that has ended may take.
const LAST_LINES: Duration = Duration::from_secs(2);

/// What is given on the command line.
struct Words {
    socket: PathBuf,
    json: bool,
    flags: Vec<String>,
    /// Flags with a value.
    values: Vec<(String, String)>,
    units: Option<Vec<String>>,
    plain: Vec<String>,
}

pub const COMMANDS: [&str; 8] =
    ["status", "logs", "start", "stop", "restart", "reload", "run-task", "wait-ready"];

pub fn run(command: &str, args: &[OsString]) -> Result<i32> {
    let words = match Words::parse(command, args) {
        Ok(words) => words,
        Err(why) => return Ok(refuse(&why)),
    };
    match command {
        "status" => status(&words),
        "logs" => logs(&words),
        "start" | "stop" | "restart" => service(command, &words),
        "reload" => reload(&words),
        "run-task" => run_task(&words),
        _ => wait_ready(&words),
    }
}

fn refuse(why: &str) -> i32 {
    crate::complain(&format!("agentbox-ctl: {why}"));
    INVALID
}

impl Words {
    fn parse(command: &str, args: &[OsString]) -> std::result::Result<Self, String> {
        let (flags, values, most): (&[&str], &[&str], usize) = match command {
            "status" | "reload" => (&[], &[], 0),
            "logs" => (&["-f", "--follow"], &["-n", "--tail"], 1),
            "start" => (&["--now"], &[], 1),
            "run-task" => (&["--force", "--wait"], &[], 1),
            "wait-ready" => (&["--no-fail-fast"], &["--timeout"], 0),
            _ => (&[], &[], 1),
        };
        let help = format!("run 'agentbox-ctl help {command}'");
        let mut words = Self {
            socket: std::env::var_os("AGENTBOX_CTL_SOCKET").map_or(SOCKET.into(), PathBuf::from),
            json: false,
            flags: Vec::new(),
            values: Vec::new(),
            units: None,
            plain: Vec::new(),
        };
        let mut args = args.iter().map(|arg| arg.to_string_lossy().into_owned()).peekable();
        while let Some(word) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{word} needs a value; {help}."));
            match word.as_str() {
                "--socket" => words.socket = value()?.into(),
                "-j" | "--json" => words.json = true,
                "--units" if command == "wait-ready" => {
                    let units = words.units.get_or_insert_default();
                    while let Some(unit) = args.next_if(|word| !word.starts_with('-')) {
                        units.push(unit);
                    }
                }
                known if flags.contains(&known) => words.flags.push(word),
                known if values.contains(&known) => {
                    let value = value()?;
                    words.values.push((word, value));
                }
                plain if !plain.starts_with('-') && words.plain.len() < most => {
                    words.plain.push(word);
                }
                _ => {
                    let shown = protocol::text::visible(&word);
                    return Err(format!("'{shown}' is not understood; {help}."));
                }
            }
        }
        if words.plain.len() < most {
            return Err(format!("a name is missing; {help}."));
        }
        Ok(words)
    }

    fn has(&self, flags: &[&str]) -> bool {
        self.flags.iter().any(|flag| flags.contains(&flag.as_str()))
    }

    fn number<T: std::str::FromStr>(
        &self,
        flags: &[&str],
    ) -> std::result::Result<Option<T>, String> {
        let given = self.values.iter().rev().find(|(flag, _)| flags.contains(&flag.as_str()));
        given
            .map(|(flag, text)| text.parse().map_err(|_| format!("{flag} takes a number.")))
            .transpose()
    }

    fn name(&self) -> String {
        self.plain.first().cloned().unwrap_or_default()
    }

    /// The answer's data, or its failure.
    fn ask<T: DeserializeOwned>(&self, ask: &Ask) -> Result<std::result::Result<T, Answer>> {
        let answer = first_line(&mut self.send(ask)?)?;
        if !answer.ok {
            return Ok(Err(answer));
        }
        let data = serde_json::from_value(answer.data.unwrap_or(Value::Null));
        data.map(Ok).map_err(|e| Error::BadAnswer(e.to_string()))
    }

    fn send(&self, ask: &Ask) -> Result<BufReader<UnixStream>> {
        let mut stream = self.connect()?;
        let mut line = serde_json::to_vec(ask).map_err(|e| Error::Failed(e.to_string()))?;
        line.push(b'\n');
        stream.write_all(&line).map_err(|e| self.away(&e))?;
        Ok(BufReader::new(stream))
    }

    fn connect(&self) -> Result<UnixStream> {
        let patient = std::env::var_os("AGENTBOX").is_some_and(|value| value == "1");
        let mut left = if patient { ATTEMPTS } else { 0 };
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => return Ok(stream),
                Err(e) if left > 0 && is_away(&e) => {
                    left -= 1;
                    std::thread::sleep(PAUSE);
                }
                Err(e) => return Err(self.away(&e)),
            }
        }
    }

    fn away(&self, error: &io::Error) -> Error {
        let path = self.socket.display();
        Error::Failed(format!(
            "the supervisor does not answer on {path}: {error}. PID 1 starts it when the box is \
             ready; its own log is {}/ctl-daemon.log",
            protocol::ctl::paths::LOGS
        ))
    }
}

fn is_away(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn first_line(reader: &mut BufReader<UnixStream>) -> Result<Answer> {
    let mut line = String::new();
    let read = reader.read_line(&mut line);
    if !matches!(read, Ok(1..)) {
        return Err(Error::Failed("the supervisor went away before it answered.".into()));
    }
    serde_json::from_str(&line).map_err(|e| Error::BadAnswer(e.to_string()))
}

/// Says why not; which exit code that is.
fn failed(answer: &Answer, unknown: i32) -> i32 {
    let why = answer.error.as_deref().unwrap_or("the supervisor refused");
    crate::complain(&format!("agentbox-ctl: {}", show::harmless(why)));
    match answer.code.as_deref() {
        Some(code::UNKNOWN_UNIT) => unknown,
        Some(code::INVALID_CONFIG) => INVALID,
        _ => exit::FAILURE,
    }
}

fn print_json(what: &impl serde::Serialize) {
    crate::say(&format!("{}\n", serde_json::to_string(what).unwrap_or_default()));
}

fn status(words: &Words) -> Result<i32> {
    let status: Status = match words.ask(&Ask::Status)? {
        Ok(status) => status,
        Err(answer) => return Ok(failed(&answer, exit::FAILURE)),
    };
    if words.json {
        print_json(&status);
    } else {
        crate::say(&show::status(&status));
    }
    Ok(exit::OK)
}

fn logs(words: &Words) -> Result<i32> {
    let tail = match words.number(&["-n", "--tail"]) {
        Ok(tail) => tail,
        Err(why) => return Ok(refuse(&why)),
    };
    let follow = words.has(&["-f", "--follow"]);
    let mut reader = words.send(&Ask::Logs { service: words.name(), tail, follow })?;
    let answer = first_line(&mut reader)?;
    if !answer.ok {
        return Ok(failed(&answer, exit::FAILURE));
    }
    let data = answer.data.unwrap_or_default();
    let events: Vec<LogEvent> = serde_json::from_value(data["events"].clone())
        .map_err(|e| Error::BadAnswer(e.to_string()))?;
    let print = |event: &LogEvent| {
        if words.json { print_json(event) } else { crate::say(&show::log(event)) }
    };
    events.iter().for_each(print);
    for event in stream(reader) {
        print(&event);
    }
    Ok(exit::OK)
}

/// The lines that follow the first one.
fn stream(reader: BufReader<UnixStream>) -> impl Iterator<Item = LogEvent> {
    let event = |line: String| {
        let value: Value = serde_json::from_str(&line).ok()?;
        serde_json::from_value(value["event"].clone()).ok()
    };
    reader.lines().map_while(io::Result::ok).filter_map(event)
}

fn service(command: &str, words: &Words) -> Result<i32> {
    let service = words.name();
    let ask = match command {
        "start" => Ask::Start { service, now: words.has(&["--now"]) },
        "stop" => Ask::Stop { service },
        _ => Ask::Restart { service },
    };
    let status: ServiceStatus = match words.ask(&ask)? {
        Ok(status) => status,
        Err(answer) => return Ok(failed(&answer, exit::FAILURE)),
    };
    if words.json {
        print_json(&status);
    } else {
        let pid = status.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let waits = match status.blocked_on.as_slice() {
            [] => String::new(),
            needs => format!(" for {}", needs.join(", ")),
        };
        crate::say(&format!("{}: {}{pid}{waits}\n", status.name, status.state.as_str()));
    }
    Ok(exit::OK)
}

fn reload(words: &Words) -> Result<i32> {
    let done: Reloaded = match words.ask(&Ask::Reload)? {
        Ok(done) => done,
        Err(answer) => return Ok(failed(&answer, exit::FAILURE)),
    };
    if words.json {
        print_json(&done);
        return Ok(exit::OK);
    }
    for (what, names) in
        [("added", &done.added), ("removed", &done.removed), ("changed", &done.changed)]
    {
        let names = if names.is_empty() { "(none)".to_owned() } else { names.join(", ") };
        crate::say(&format!("{what}: {names}\n"));
    }
    Ok(exit::OK)
}

fn run_task(words: &Words) -> Result<i32> {
    let (name, wait) = (words.name(), words.has(&["--wait"]));
    let force = words.has(&["--force"]);
    let lines = (wait && !words.json).then(|| follow_task(words, &name)).transpose()?;
    let task: TaskStatus = match words.ask(&Ask::RunTask { name, force, wait })? {
        Ok(task) => task,
        Err(answer) => return Ok(failed(&answer, exit::FAILURE)),
    };
    if let Some(ended) = lines {
        let ran = task.state != UnitState::Skipped && task.skip_reason.is_none();
        let _ = ended.recv_timeout(if ran { LAST_LINES } else { PAUSE });
    }
    if words.json {
        print_json(&task);
    } else {
        let why = task.skip_reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let line = format!("{}: {}{why}", task.name, task.state.as_str());
        if wait { crate::complain(&line) } else { crate::say(&format!("{line}\n")) }
    }
    Ok(match task.state {
        _ if !wait => exit::OK,
        UnitState::Done => exit::OK,
        UnitState::Failed => match task.last_exit_code {
            Some(code @ 1..=255) => code,
            _ => exit::FAILURE,
        },
        _ => exit::FAILURE,
    })
}

/// Shows what a task says from now on; tells when it has said its last.
fn follow_task(words: &Words, name: &str) -> Result<std::sync::mpsc::Receiver<()>> {
    let ask = Ask::Logs { service: name.to_owned(), tail: Some(0), follow: true };
    let mut reader = words.send(&ask)?;
    // A name nobody knows is refused by whoever runs it.
    let known = first_line(&mut reader)?.ok;
    let (to, ended) = channel();
    std::thread::spawn(move || {
        for event in stream(reader).take_while(|_| known) {
            if event.line.starts_with("[ctl] exited") {
                let _ = to.send(());
            } else if event.stream == Stream::Stderr {
                crate::complain(&event.line);
            } else {
                crate::say(&format!("{}\n", event.line));
            }
        }
    });
    Ok(ended)
}

fn wait_ready(words: &Words) -> Result<i32> {
    let timeout_ms = match words.number(&["--timeout"]) {
        Ok(timeout) => timeout,
        Err(why) => return Ok(refuse(&why)),
    };
    let patient = words.has(&["--no-fail-fast"]);
    let ask = Ask::WaitReady { timeout_ms, units: words.units.clone(), patient };
    let waited: WaitReady = match words.ask(&ask)? {
        Ok(waited) => waited,
        Err(answer) => return Ok(failed(&answer, INVALID)),
    };
    if words.json {
        print_json(&waited);
    } else if waited.ready {
        crate::say("ready\n");
    } else {
        let mut text = "not ready\n".to_owned();
        for (what, names) in [("failed", &waited.failed), ("timed out", &waited.timed_out)] {
            if !names.is_empty() {
                text.push_str(&format!("{what}: {}\n", names.join(", ")));
            }
        }
        crate::say(&text);
    }
    Ok(if waited.ready { exit::OK } else { exit::FAILURE })
}
