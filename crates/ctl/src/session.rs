//! `agentbox-ctl session`: agents and shells that go on when nobody looks.
//!
//! tmux keeps them and is the only list. What a session runs, and with which variables, comes on
//! standard input and waits on tmpfs for the process that runs it: neither a login nor a prompt is
//! ever in a process list, and a tmux server that runs already takes nothing from us. The surprising
//! thing: the program is our child, not our successor, so that somebody is there to tell how it ended.

use crate::agent_state;
use crate::error::{Doing, Error, Result};
use crate::{input, resume};
use protocol::ctl::{NewSession, SESSION_EXISTS, SessionLine, paths};
use protocol::sessions::{Agent, AgentState, is_session_name};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTSTP};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const TMUX: &str = "/usr/bin/tmux";
/// What every image's terminfo knows.
const USUAL_TERM: &str = "xterm-256color";
const CLAUDE_STATE: &str = include_str!("../../../box/claude.json");
/// How much of a key Claude remembers.
const KEY_END: usize = 20;
const USAGE: &str =
    "use 'agentbox-ctl session list', 'start', 'attach <name> [--term <name>]' or 'kill <name>'.";

pub fn run(args: &[OsString]) -> Result<i32> {
    let words: Vec<&str> = args.iter().filter_map(|a| a.to_str()).collect();
    match words.as_slice() {
        ["list"] => list(),
        ["before"] => before(),
        ["start"] => start(&input::json_line(&mut io::stdin().lock())?),
        ["run", name] => run_in_terminal(checked(name)?),
        ["attach", name] => attach(checked(name)?, USUAL_TERM),
        ["attach", name, "--term", term] => attach(checked(name)?, term),
        ["kill", name] => kill(checked(name)?),
        _ => Err(Error::Usage(USAGE.into())),
    }
}

fn checked(name: &str) -> Result<&str> {
    if is_session_name(name) {
        return Ok(name);
    }
    Err(Error::Usage("a session's name is letters, digits, '-' and '_'.".into()))
}

fn tmux(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(TMUX);
    // A session started inside another one is one beside it, not in it.
    command.args(args).env_remove("TMUX").stdin(Stdio::null());
    // Nor is it part of a task or a service that starts it.
    command.env_remove(protocol::supervisor::ENV_UNIT);
    command.output().map_err(|e| Error::Program("tmux", e))
}

fn exact(name: &str) -> String {
    format!("={name}")
}

fn exists(name: &str) -> Result<bool> {
    Ok(tmux(&["has-session", "-t", &exact(name)])?.status.success())
}

fn list() -> Result<i32> {
    let format = "#{session_created} #{session_attached} #{session_name} #{@agentbox-agent}";
    // Without a server there is no session, which tmux calls a failure.
    let output = tmux(&["list-sessions", "-F", format])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<SessionLine> = text.lines().filter_map(line).collect();
    lines.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    let json = serde_json::to_string(&lines).map_err(|e| Error::Failed(e.to_string()))?;
    crate::say(&format!("{json}\n"));
    Ok(protocol::exit::OK)
}

fn before() -> Result<i32> {
    let all = resume::before(|name| exists(name).unwrap_or(true));
    let json = serde_json::to_string(&all).map_err(|e| Error::Failed(e.to_string()))?;
    crate::say(&format!("{json}\n"));
    Ok(protocol::exit::OK)
}

fn line(text: &str) -> Option<SessionLine> {
    let mut fields = text.split(' ');
    let created = fields.next()?.parse().ok()?;
    let attached = fields.next()?.parse().ok()?;
    let name = fields.next().filter(|name| is_session_name(name))?.to_owned();
    let agent = fields.next().and_then(Agent::named);
    Some(SessionLine { name, created, attached, agent })
}

fn plan_of(name: &str) -> PathBuf {
    Path::new(paths::SESSIONS).join(format!("{name}.json"))
}

fn end_of(name: &str) -> PathBuf {
    Path::new(paths::SESSIONS).join(format!("{name}.exit"))
}

fn start(plan: &NewSession) -> Result<i32> {
    let name = checked(&plan.name)?;
    if plan.argv.is_empty() {
        return Err(Error::BadInput("a session without a program".into()));
    }
    if exists(name)? {
        return Ok(SESSION_EXISTS);
    }
    let _ = fs::remove_file(end_of(name));
    if plan.agent == Some(Agent::Claude) {
        begin_state();
    }
    if plan.agent == Some(Agent::Claude)
        && let Some(key) = plan.env.get("ANTHROPIC_API_KEY")
    {
        agree_to_key(key);
    }
    let file = plan_of(name);
    write_private(&file, &serde_json::to_vec(plan).map_err(|e| Error::Failed(e.to_string()))?)?;
    let (cols, rows) = (plan.cols.clamp(2, 1000).to_string(), plan.rows.clamp(2, 1000).to_string());
    let here = format!("{}:", exact(name));
    let mut args = vec!["new-session", "-d", "-s", name, "-c", paths::WORKSPACE];
    args.extend(["-x", &cols, "-y", &rows, "--", paths::CTL, "session", "run", name]);
    // Ctrl-a leads commands to tmux, twice it is itself; Ctrl-b does the same for who is used to it.
    for option in [
        ["set-option", "-t", &here, "prefix", "C-a"],
        ["set-option", "-t", &here, "prefix2", "C-b"],
        ["set-option", "-t", &here, "status", "off"],
    ] {
        args.push(";");
        args.extend(option);
    }
    if let Some(agent) = plan.agent {
        args.extend([";", "set-option", "-t", &here, "@agentbox-agent", agent.as_str()]);
    }
    args.extend([
        ";",
        "bind-key",
        "C-a",
        "send-prefix",
        ";",
        "bind-key",
        "C-b",
        "send-prefix",
        "-2",
    ]);
    let output = tmux(&args)?;
    if output.status.success() {
        return Ok(protocol::exit::OK);
    }
    let _ = fs::remove_file(&file);
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.contains("duplicate session") {
        return Ok(SESSION_EXISTS);
    }
    Err(Error::Failed(format!("tmux: {said}")))
}

/// Claude's state file, as the image has it. A box made from a checkpoint has none: the old one may
/// have held a login.
fn begin_state() {
    let Some(path) = std::env::home_dir().map(|home| home.join(".claude.json")) else { return };
    if !path.exists() {
        let _ = write_private(&path, CLAUDE_STATE.as_bytes());
    }
}

/// Claude asks whether a key of its environment is meant, which the person has said by giving it. It
/// remembers the answer by the key's end. What cannot be noted is asked.
fn agree_to_key(key: &str) {
    let Some(path) = std::env::home_dir().map(|home| home.join(".claude.json")) else { return };
    let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    let Ok(mut settings) = serde_json::from_str::<serde_json::Value>(&text) else { return };
    let end: String = key.chars().skip(key.chars().count().saturating_sub(KEY_END)).collect();
    if agree(&mut settings, end) {
        let _ = write_private(&path, settings.to_string().as_bytes());
    }
}

/// Whether that is news.
fn agree(settings: &mut serde_json::Value, end: String) -> bool {
    let Some(settings) = settings.as_object_mut() else { return false };
    let answers = settings.entry("customApiKeyResponses").or_insert_with(|| json!({}));
    let Some(answers) = answers.as_object_mut() else { return false };
    let approved = answers.entry("approved").or_insert_with(|| json!([]));
    let Some(approved) = approved.as_array_mut() else { return false };
    let end = serde_json::Value::String(end);
    let new = !approved.contains(&end);
    if new {
        approved.push(end);
    }
    new
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).doing(doing)?;
    file.write_all(bytes).doing(doing)
}

/// In the session's terminal: becomes the parent of what was planned.
fn run_in_terminal(name: &str) -> Result<i32> {
    let file = plan_of(name);
    let doing = || format!("read {}", file.display());
    let plan: NewSession = serde_json::from_slice(&fs::read(&file).doing(doing)?)
        .map_err(|e| Error::Failed(format!("{}: {e}", file.display())))?;
    // What stood in it is in the child's memory from here on, and nowhere else.
    fs::remove_file(&file).doing(doing)?;
    let Some((program, rest)) = plan.argv.split_first() else { return Ok(protocol::exit::OK) };
    let tell = |state| plan.agent.map(|agent| agent_state::tell(agent, state));
    tell(Some(AgentState::Ready));
    if let Some(agent) = plan.agent {
        resume::began(agent, name, plan.conversation.as_ref());
    }
    // What is typed at the program is for the program. A handler, unlike ignoring, is not inherited.
    for typed in [SIGINT, SIGQUIT, SIGTSTP] {
        let _ = signal_hook::flag::register(typed, Arc::new(AtomicBool::new(false)));
    }
    let mut command = Command::new(program);
    command.args(rest).envs(&plan.env).env("AGENTBOX_SESSION", name);
    let code = match command.spawn().and_then(|mut child| child.wait()) {
        Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Err(e) => {
            crate::complain(&format!("agentbox: cannot run {program}: {e}"));
            if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
        }
    };
    let _ = write_private(&end_of(name), code.to_string().as_bytes());
    resume::ended(name);
    tell(None);
    Ok(code)
}

/// Shows a session in this terminal. Ends with 0 when it was left, and as the program did when that
/// ended.
fn attach(name: &str, term: &str) -> Result<i32> {
    if !exists(name)? {
        // It may have ended between its start and now.
        return how_it_ended(name).ok_or_else(|| {
            Error::Failed(format!("no session {name}; 'agentbox-ctl session list' shows them."))
        });
    }
    let term = if is_known(term) { term } else { USUAL_TERM };
    // Somebody may have given it a size of its own; from here on it has this terminal's.
    let _ = tmux(&["set-option", "-w", "-u", "-t", &format!("{}:", exact(name)), "window-size"]);
    let mut command = Command::new(TMUX);
    command.args(["attach-session", "-t", &exact(name)]).env_remove("TMUX").env("TERM", term);
    let status = command.status().map_err(|e| Error::Program("tmux", e))?;
    if exists(name)? {
        return Ok(if status.success() { protocol::exit::OK } else { protocol::exit::FAILURE });
    }
    Ok(how_it_ended(name).unwrap_or(protocol::exit::OK))
}

fn how_it_ended(name: &str) -> Option<i32> {
    fs::read_to_string(end_of(name)).ok()?.trim().parse().ok()
}

/// A terminal nobody here has heard of makes tmux give up at once.
fn is_known(term: &str) -> bool {
    let mut command = Command::new("infocmp");
    command.arg("--").arg(term).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn kill(name: &str) -> Result<i32> {
    let ended = tmux(&["kill-session", "-t", &exact(name)])?.status.success();
    let _ = fs::remove_file(plan_of(name));
    resume::ended(name);
    Ok(if ended { protocol::exit::OK } else { protocol::exit::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_tmux_is_read_and_a_strange_one_left_out() {
        let read = line("1700000000 2 shell-3").unwrap();
        assert_eq!(
            (read.created, read.attached, read.name.as_str()),
            (1_700_000_000, 2, "shell-3")
        );
        for bad in ["", "x 0 a", "1 0 ", "1 0 a:b"] {
            assert_eq!(line(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_key_is_agreed_to_once_and_the_rest_stays() {
        let mut settings = json!({"theme": "dark", "customApiKeyResponses": {"rejected": ["x"]}});
        assert!(agree(&mut settings, "abc".into()));
        assert!(!agree(&mut settings, "abc".into()));
        let wanted = json!({"rejected": ["x"], "approved": ["abc"]});
        assert_eq!(
            (&settings["customApiKeyResponses"], &settings["theme"]),
            (&wanted, &json!("dark"))
        );
        for strange in [json!([]), json!({"customApiKeyResponses": 5})] {
            assert!(!agree(&mut strange.clone(), "abc".into()));
        }
    }

    #[test]
    fn only_what_it_knows_is_done() {
        for bad in [&["list", "x"][..], &["attach"], &["attach", "a:b"], &["kill", "-t"], &[]] {
            let args: Vec<OsString> = bad.iter().map(OsString::from).collect();
            assert_eq!(run(&args).unwrap_err().exit_code(), 64, "{bad:?}");
        }
    }
}
