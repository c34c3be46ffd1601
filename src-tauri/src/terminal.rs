//! A shell of a box in the person's own terminal.
//!
//! Terminals agree on nothing: each has its own way to be told what to run. The command is always
//! passed on as words of its own, never as one string for a shell to take apart. No program out of a
//! project's folder is started, whatever the environment says: a box may have written it.

use crate::programs::agentbox;
use host::opener::find;
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// A terminal that has not failed by then is open.
const PATIENCE: Duration = Duration::from_secs(5);

/// Programs by name, in the order in which they are looked for, with what comes before the command.
/// A name that is not here is told `-e`, as xterm is.
const TERMINALS: [(&str, &[&str]); 15] = [
    ("x-terminal-emulator", &["-e"]),
    ("gnome-terminal", &["--"]),
    ("kgx", &["--"]),
    ("ptyxis", &["--"]),
    ("konsole", &["-e"]),
    ("xfce4-terminal", &["-x"]),
    ("kitty", &[]),
    ("alacritty", &["-e"]),
    ("wezterm", &["start", "--"]),
    ("foot", &[]),
    ("ghostty", &["-e"]),
    ("mate-terminal", &["-x"]),
    ("terminator", &["-x"]),
    ("urxvt", &["-e"]),
    ("xterm", &["-e"]),
];

/// Opens a terminal with a shell of the box in it.
pub async fn shell(id: &BoxId, projects: &[PathBuf]) -> Result<(), ControlError> {
    let command = [agentbox()?.into_os_string(), "shell".into(), id.as_str().into()];
    let (program, args) = if cfg!(target_os = "macos") {
        in_terminal_app(&command)?
    } else {
        let wanted = std::env::var_os("TERMINAL");
        let program = choose(wanted.as_deref(), projects, find).ok_or_else(none)?;
        let args = words(&program, &command);
        (program, args)
    };
    start(&program, &args).await
}

fn none() -> ControlError {
    ControlError::new(ErrorCode::Failed, "No terminal was found.")
        .hint("Install one, such as xterm, or name yours in the variable TERMINAL.")
}

/// The one the person names, else the first there is.
fn choose(
    wanted: Option<&OsStr>,
    projects: &[PathBuf],
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Option<PathBuf> {
    let named = wanted.and_then(|name| match Path::new(name) {
        path if path.is_absolute() => Some(path.to_owned()).filter(|path| path.is_file()),
        // Anything with a folder in it would be looked for below the current one.
        path if path.components().count() == 1 => find(path.to_str()?),
        _ => None,
    });
    let known = TERMINALS.iter().filter_map(|(name, _)| find(name));
    named.into_iter().chain(known).find(|program| !is_of_a_project(program, projects))
}

/// Looked at with links followed, as the system will.
fn is_of_a_project(program: &Path, projects: &[PathBuf]) -> bool {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    projects.iter().any(|project| program.starts_with(project) || real.starts_with(project))
}

/// What the terminal is told, so that it runs the command.
fn words(program: &Path, command: &[OsString]) -> Vec<OsString> {
    let name = program.file_name().unwrap_or_default();
    let known = TERMINALS.iter().find(|(own, _)| OsStr::new(own) == name);
    let before = known.map_or(["-e"].as_slice(), |(_, before)| before);
    before.iter().map(OsString::from).chain(command.iter().cloned()).collect()
}

/// In the person's home, and on its own: it outlives AgentBox.
async fn start(program: &Path, args: &[OsString]) -> Result<(), ControlError> {
    let failed = |why: String| {
        ControlError::new(ErrorCode::Failed, format!("{} failed: {why}.", program.display()))
    };
    let mut terminal = Command::new(program);
    terminal.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(home) = std::env::var_os("HOME").filter(|home| Path::new(home).is_dir()) {
        terminal.current_dir(home);
    }
    let mut child = terminal.process_group(0).spawn().map_err(|e| failed(e.to_string()))?;
    match tokio::time::timeout(PATIENCE, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(failed(status.to_string())),
        Ok(Err(e)) => Err(failed(e.to_string())),
        Ok(Ok(_)) => Ok(()),
        Err(_) => {
            tokio::spawn(outlive(child));
            Ok(())
        }
    }
}

/// Nothing is left of it in the list of processes when it ends.
async fn outlive(mut child: Child) {
    let _ = child.wait().await;
}

/// Terminal runs files, not commands: a small one is written for it.
fn in_terminal_app(command: &[OsString]) -> Result<(PathBuf, Vec<OsString>), ControlError> {
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |why: String| ControlError::new(ErrorCode::Failed, why);
    let home = host::home::default_home().ok_or_else(none)?;
    let file = home.join("run").join("shell.command");
    let text = script(&home, command).ok_or_else(|| failed("A path is not text.".into()))?;
    let written = std::fs::remove_file(&file)
        .or_else(|e| if e.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
        .and_then(|()| {
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o700).open(&file)?;
            std::io::Write::write_all(&mut file, text.as_bytes())
        });
    written.map_err(|e| failed(format!("{} cannot be written: {e}.", file.display())))?;
    let open = find("open").ok_or_else(none)?;
    Ok((open, vec!["-a".into(), "Terminal".into(), file.into_os_string()]))
}

/// Terminal does not pass our environment on.
fn script(home: &Path, command: &[OsString]) -> Option<String> {
    let quoted = |word: &OsStr| Some(format!("'{}'", word.to_str()?.replace('\'', "'\\''")));
    let words: Option<Vec<String>> = command.iter().map(|word| quoted(word)).collect();
    let home = quoted(home.as_os_str())?;
    Some(format!("#!/bin/sh\nAGENTBOX_HOME={home} exec {}\n", words?.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only<'a>(there: &'a [&'a str]) -> impl Fn(&str) -> Option<PathBuf> + 'a {
        move |name| there.contains(&name).then(|| Path::new("/usr/bin").join(name))
    }

    fn chosen(wanted: Option<&str>, there: &[&str]) -> Option<String> {
        let program = choose(wanted.map(OsStr::new), &[], only(there))?;
        Some(program.display().to_string())
    }

    #[test]
    fn each_terminal_is_told_in_its_own_way() {
        let command = ["/opt/agentbox".into(), "shell".into(), "b00000001".into()];
        for (program, before) in [
            ("/usr/bin/x-terminal-emulator", vec!["-e"]),
            ("/usr/bin/gnome-terminal", vec!["--"]),
            ("/usr/bin/kgx", vec!["--"]),
            ("/usr/bin/konsole", vec!["-e"]),
            ("/usr/bin/xfce4-terminal", vec!["-x"]),
            ("/usr/bin/kitty", vec![]),
            ("/usr/bin/alacritty", vec!["-e"]),
            ("/usr/bin/wezterm", vec!["start", "--"]),
            ("/usr/bin/foot", vec![]),
            ("/usr/bin/xterm", vec!["-e"]),
            ("/home/me/bin/st", vec!["-e"]),
        ] {
            let told = words(Path::new(program), &command);
            let expected: Vec<OsString> =
                before.iter().map(OsString::from).chain(command.clone()).collect();
            assert_eq!(told, expected, "{program}");
        }
    }

    #[test]
    fn the_persons_own_comes_first() {
        assert_eq!(chosen(None, &["xterm", "konsole"]).as_deref(), Some("/usr/bin/konsole"));
        assert_eq!(chosen(Some("xterm"), &["xterm", "konsole"]).as_deref(), Some("/usr/bin/xterm"));
        assert_eq!(chosen(Some("gone"), &["xterm"]).as_deref(), Some("/usr/bin/xterm"));
        assert_eq!(chosen(Some("/bin/sh"), &["xterm"]).as_deref(), Some("/bin/sh"));
        assert_eq!(chosen(Some("/no/such"), &["xterm"]).as_deref(), Some("/usr/bin/xterm"));
        assert_eq!(chosen(None, &[]), None);
    }

    #[test]
    fn nothing_comes_from_a_project() {
        for wanted in ["./xterm", "bin/xterm", "../xterm"] {
            assert_eq!(
                chosen(Some(wanted), &["bin/xterm", "./xterm", "../xterm"]),
                None,
                "{wanted}"
            );
        }
        let projects = [PathBuf::from("/bin"), PathBuf::from("/usr/bin")];
        assert_eq!(choose(Some(OsStr::new("/bin/sh")), &projects, only(&["xterm"])), None);
    }

    #[test]
    fn a_script_takes_every_word_as_it_is() {
        let text = script(Path::new("/Users/o'neill/.agentbox"), &["/a b".into(), "shell".into()]);
        let expected =
            "#!/bin/sh\nAGENTBOX_HOME='/Users/o'\\''neill/.agentbox' exec '/a b' 'shell'\n";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[tokio::test]
    async fn a_terminal_that_fails_says_so() {
        let program = find("false").unwrap();
        let error = start(&program, &[]).await.unwrap_err();
        assert!(error.message.contains("exit status: 1"), "{error}");
        assert!(start(Path::new("/no/such"), &[]).await.is_err());
        assert!(start(&find("true").unwrap(), &[]).await.is_ok());
    }
}
