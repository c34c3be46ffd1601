//! Files that are dragged from another program: a small GTK window that holds them, and the mouse.
//!
//! The drag is the real one of the window system, with its own grab and messages, so what is tested is
//! what a file manager would do. A drag goes on while the button is down: the caller looks at the page in
//! between, and lets go when it has seen enough.

use crate::session::Session;
use crate::wait::eventually_or;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SOURCE: &str = include_str!("drag-source.py");
/// In the lower left corner of the display, out of every window's way.
const PLACE: (i32, i32) = (40, 740);
const SOON: Duration = Duration::from_secs(30);

/// A window with files in it.
pub struct Files<'a> {
    session: &'a Session,
    program: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl<'a> Files<'a> {
    #[track_caller]
    pub fn show(session: &'a Session, files: &[PathBuf]) -> Self {
        let mut command = session.command("/usr/bin/python3");
        command.arg("-c").arg(SOURCE).args(files).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("python3 with GTK (python3-gi, gir1.2-gtk-3.0)");
        let output = BufReader::new(program.stdout.take().expect("its output"));
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = said.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                heard.lock().expect("no panic").push(line);
            }
        });
        let files = Self { session, program, said };
        files.says("shown");
        files
    }

    /// Takes the files up and carries them to a place of the display, where they stay in the air.
    #[track_caller]
    pub fn carry_to(&self, x: i32, y: i32) {
        self.forget();
        self.mouse(&["mousemove", &PLACE.0.to_string(), &PLACE.1.to_string()]);
        self.mouse(&["mousedown", "1"]);
        // A little way, for the press to become a drag.
        for step in 1..=6 {
            self.move_to(PLACE.0 + 5 * step, PLACE.1 - 5 * step);
        }
        self.says("begun");
        for part in 1..=10 {
            let on_the_way = |from: i32, to: i32| from + (to - from) * part / 10;
            self.move_to(on_the_way(PLACE.0, x), on_the_way(PLACE.1, y));
        }
    }

    /// Moves what is in the air.
    #[track_caller]
    pub fn move_to(&self, x: i32, y: i32) {
        self.mouse(&["mousemove", &x.to_string(), &y.to_string()]);
    }

    /// Lets go; how it ended: `dropped` where somebody took them, else `failed`.
    #[track_caller]
    pub fn let_go(&self) -> String {
        self.mouse(&["mouseup", "1"]);
        self.says("ended");
        let said = self.said.lock().expect("no panic");
        let failed = said.iter().any(|line| line == "failed");
        if failed { "failed" } else { "dropped" }.to_owned()
    }

    fn mouse(&self, args: &[&str]) {
        let mut command: Command = self.session.command("xdotool");
        let done = command.args(args).status().expect("xdotool");
        assert!(done.success(), "xdotool {args:?}: {done}");
    }

    fn forget(&self) {
        self.said.lock().expect("no panic").clear();
    }

    #[track_caller]
    fn says(&self, word: &str) {
        eventually_or(SOON, &format!("“{word}” of what is dragged"), || {
            let said = self.said.lock().expect("no panic").clone();
            if said.iter().any(|line| line == word) { Ok(()) } else { Err(format!("{said:?}")) }
        });
    }
}

impl Drop for Files<'_> {
    fn drop(&mut self) {
        let _ = self.session.command("xdotool").args(["mouseup", "1"]).status();
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
