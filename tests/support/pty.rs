//! A person's terminal: a program with a real one, what it shows, and keys for it.

use crate::wait::eventually_or;
use nix::pty::openpty;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A program may be an agent that starts for the first time, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

pub struct Terminal {
    child: Child,
    master: File,
    /// The other end, by its name.
    path: PathBuf,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    /// Starts a program on a terminal of 100 columns and 30 rows.
    pub fn start(command: Command) -> Self {
        let pty = openpty(None, None).unwrap();
        let path = nix::unistd::ttyname(&pty.slave).unwrap();
        stty(&path, 100, 30);
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        // The terminal has to be the program's own, or it hears of no resize and no hang-up.
        let mut own = Command::new("setsid");
        own.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        own.env_clear().env("TERM", "xterm-256color");
        own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(dir) = command.get_current_dir() {
            own.current_dir(dir);
        }
        own.stdin(end(&pty.slave)).stdout(end(&pty.slave)).stderr(end(&pty.slave));
        let child = own.spawn().unwrap();
        drop((own, pty.slave));
        let master = File::from(pty.master);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, into) = (master.try_clone().unwrap(), shown.clone());
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                into.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        });
        Self { child, master, path, shown, reader }
    }

    pub fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, cols: u16, rows: u16) {
        stty(&self.path, cols, rows);
    }

    /// Everything it has printed so far, escape sequences included.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn shows(&self, text: &str) {
        eventually_or(PATIENCE, &format!("the terminal showing {text:?}"), || {
            let shown = self.text();
            if shown.contains(text) { Ok(()) } else { Err(shown) }
        });
    }

    /// How it ended, and everything it printed.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = eventually_or(PATIENCE, "the program ending", || {
            self.child.try_wait().unwrap().ok_or_else(|| self.text())
        });
        // The last words may still be on their way.
        eventually_or(PATIENCE, "the terminal closing", || {
            if self.reader.is_finished() { Ok(()) } else { Err(self.text()) }
        });
        (status, self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stty(path: &std::path::Path, cols: u16, rows: u16) {
    let (cols, rows) = (cols.to_string(), rows.to_string());
    let mut command = Command::new("stty");
    command.arg("-F").arg(path).args(["cols", &cols, "rows", &rows]);
    assert!(command.status().unwrap().success(), "stty {}", path.display());
}
