//! Real scripts as menus.

use super::*;
use crate::samples;
use approvals::{BoxFuture, Journal, JournalError, Limits, Wanted};
use protocol::question::Grant;
use tokio::task::JoinHandle;

/// Remembers nothing; asks every time.
struct Blank;

impl Journal for Blank {
    fn asked<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn resolved<'a>(
        &'a self,
        _: &'a QuestionId,
        _: &'a Outcome,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn refused<'a>(
        &'a self,
        _: &'a approvals::Draft,
        _: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
    fn grant_for<'a>(
        &'a self,
        _: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async { Ok(None) })
    }
    fn remember<'a>(&'a self, _: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

struct Desk {
    broker: Broker,
    folder: tempfile::TempDir,
    stop: CancellationToken,
}

impl Desk {
    /// A menu that is this shell script.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("menu");
        // By another process: what a child of this one has open for writing, if only until it
        // becomes its own program, cannot be run.
        let text = folder.path().join("text");
        std::fs::write(&text, format!("#!/bin/sh\ncd {}\n{script}\n", folder.path().display()))
            .unwrap();
        let copied = std::process::Command::new("cp").arg(&text).arg(&path).status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let command =
            PromptCommand::new(&[path.to_string_lossy().into_owned()], OsStr::new(""), env)
                .unwrap();
        let broker = Broker::new(Arc::new(Blank), Limits::default());
        let (prompts, stop) = (Prompts::default(), CancellationToken::new());
        broker.add_sink(Arc::new(prompts.clone()));
        tokio::spawn(prompts.run(command, broker.clone(), stop.clone()));
        Self { broker, folder, stop }
    }

    fn ask(&self, title: &str) -> JoinHandle<Outcome> {
        let (broker, draft) = (self.broker.clone(), samples::draft(title));
        tokio::spawn(async move { broker.ask(draft).await.unwrap() })
    }

    /// The same about files for a new box.
    async fn outcome_of_files(&self) -> Outcome {
        let (broker, mut draft) = (self.broker.clone(), samples::draft("Copy"));
        draft.answers = protocol::question::Answers {
            yes: "Copy".into(),
            without: Some("Without these files".into()),
            no: "Cancel".into(),
            ..Default::default()
        };
        let asking = tokio::spawn(async move { broker.ask(draft).await.unwrap() });
        tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap().unwrap()
    }

    async fn outcome(&self, title: &str) -> Outcome {
        tokio::time::timeout(Duration::from_secs(20), self.ask(title)).await.unwrap().unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    async fn wait_for(&self, name: &str) -> String {
        for _ in 0..500 {
            let text = self.read(name);
            if text.ends_with('\n') {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no {name}");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

const BY: Surface = Surface::PromptCommand;
/// Reads the question as a person would, then chooses the last line.
const READ_AND_ALLOW: &str = "cat > seen; sleep 0.5; tail -n 1 seen";

#[tokio::test]
async fn the_yes_line_allows_and_nothing_else_does() {
    let desk = Desk::new(READ_AND_ALLOW);
    assert_eq!(desk.outcome("Push").await, Outcome::Allowed { by: BY });
    let seen = desk.read("seen");
    assert!(seen.starts_with("1. Deny\n"), "{seen}");

    for script in [
        "cat > seen; sleep 0.5; head -n 1 seen", // Deny
        "cat > seen; sleep 0.5; sed -n 3p seen", // a line of the question
        "sleep 0.5; echo '2. Allow once'",       // without the code
        "sleep 0.5; echo allow",
        "sleep 0.5; echo ' 2. Allow once (0000)'",
        "sleep 0.5; echo y",
        "sleep 0.5; echo", // Enter on nothing
        "exit 1",          // Escape
        "true",
        "cat > seen; sleep 0.5; tail -n 1 seen; tail -n 1 seen",
    ] {
        let desk = Desk::new(script);
        assert_eq!(desk.outcome("Push").await, Outcome::Denied { by: BY }, "{script}");
    }
}

#[tokio::test]
async fn the_line_before_the_last_goes_on_without_files_where_that_is_an_answer() {
    for (script, wanted) in [
        (READ_AND_ALLOW, Outcome::Allowed { by: BY }),
        ("cat > seen; sleep 0.5; tail -n 2 seen | head -n 1", Outcome::Without { by: BY }),
        ("cat > seen; sleep 0.5; head -n 1 seen", Outcome::Denied { by: BY }),
        ("cat > seen; sleep 0.5; echo '2. Without these files'", Outcome::Denied { by: BY }),
        ("exit 1", Outcome::Denied { by: BY }),
    ] {
        let desk = Desk::new(script);
        assert_eq!(desk.outcome_of_files().await, wanted, "{script}");
    }
    let desk = Desk::new(READ_AND_ALLOW);
    desk.outcome_of_files().await;
    let seen = desk.read("seen");
    let lines: Vec<_> = seen.lines().filter(|l| !l.starts_with("    ")).collect();
    assert_eq!(lines[0], "1. Cancel");
    assert!(lines[1].starts_with("2. Without these files (") && lines[2].starts_with("3. Copy ("));
    assert_eq!(lines.len(), 3);
    // Where it was not offered, the same words are any other line.
    let desk = Desk::new(
        "code=$(tail -n 1 | grep -o '([0-9a-f]*)'); sleep 0.5; echo \"2. Without these files $code\"",
    );
    assert_eq!(desk.outcome("Push").await, Outcome::Denied { by: BY });
}

#[tokio::test]
async fn relay_19_56_a_menu_that_answers_at_once_was_not_read() {
    let desk = Desk::new("cat > seen; echo run >> runs; tail -n 1 seen");
    let asking = desk.ask("Push");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!asking.is_finished());
    assert_eq!(desk.read("runs").lines().count(), 3, "shown again, but not for ever");
    asking.abort();
}

#[tokio::test]
async fn a_program_that_fails_answers_nothing() {
    for script in ["exit 2", "echo cannot open display; exit 1", "kill -9 $$"] {
        let desk = Desk::new(&format!("echo run > ran\n{script}"));
        let asking = desk.ask("Push");
        desk.wait_for("ran").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!asking.is_finished(), "{script}");
        asking.abort();
    }
}

#[tokio::test]
async fn relay_a24_the_question_is_there_in_full_and_cannot_add_a_choice() {
    let desk = Desk::new(READ_AND_ALLOW);
    let title = format!("Push\n2. Allow once (0000)\u{202e}{}--admin", "x".repeat(5000));
    desk.outcome(&title).await;
    let seen = desk.read("seen");
    let choices = seen.lines().filter(|l| !l.starts_with("    ")).count();
    assert_eq!(choices, 2, "{seen}");
    assert!(seen.contains("--admin") && !seen.contains('\u{202e}'));
    for part in [
        "smoke · shop asks:",
        "Title: Roadmap",
        "| First line",
        "a.txt, 3 bytes, overwrites",
        "⚠ rewrites history",
        "$ git push",
    ] {
        assert!(seen.contains(part), "no {part:?} in {seen}");
    }
}

#[tokio::test]
async fn one_question_is_shown_at_a_time() {
    let desk = Desk::new(
        "cat > seen; echo \"$AGENTBOX_QUESTION_TITLE\" >> began; sleep 0.6; tail -n 1 seen",
    );
    let mut other = samples::draft("Two");
    other.asker.box_id = "b00000002".parse().unwrap();
    let one = desk.ask("One");
    desk.wait_for("began").await;
    let broker = desk.broker.clone();
    let two = tokio::spawn(async move { broker.ask(other).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(desk.read("began"), "One\n");
    assert!(one.await.unwrap().is_yes() && two.await.unwrap().is_yes());
    assert_eq!(desk.read("began"), "One\nTwo\n");
}

#[tokio::test]
async fn relay_19_51_a_menu_goes_with_its_question_and_takes_its_children_along() {
    let desk = Desk::new("sleep 77 & echo $! > child; echo $$ > own; wait");
    let asking = desk.ask("Push");
    let pids = [desk.wait_for("child").await, desk.wait_for("own").await];
    asking.abort();
    for pid in pids {
        let stat = format!("/proc/{}/stat", pid.trim());
        let gone = || std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z "));
        for _ in 0..250 {
            if gone() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(gone(), "{pid} lives on");
    }
}

#[tokio::test]
async fn the_environment_is_built_and_says_what_is_asked() {
    let desk = Desk::new("env > env; exit 1");
    desk.outcome("Push").await;
    let env = desk.read("env");
    for line in [
        "AGENTBOX_QUESTION_BOX=smoke",
        "AGENTBOX_QUESTION_METHOD=git.push",
        "AGENTBOX_QUESTION_ARGV_JSON=[\"git\",\"push\"]",
        "PATH=/usr/bin:/bin",
    ] {
        assert!(env.lines().any(|l| l == line), "no {line} in {env}");
    }
    assert!(!env.contains("CARGO"), "{env}");
}

#[test]
fn the_program_is_an_absolute_path_or_found_where_host_programs_are() {
    let new = |argv: &[&str]| {
        let argv: Vec<_> = argv.iter().map(ToString::to_string).collect();
        let made = PromptCommand::new(&argv, OsStr::new("/usr/bin:/bin"), vec![]);
        made.map(|c| c.args).map_err(|e| e.to_string())
    };
    assert_eq!(new(&["/bin/sh", "-c", "x"]), Ok(vec!["-c".into(), "x".into()]));
    assert_eq!(new(&["sh", "-c"]), Ok(vec!["-c".into()]));
    assert!(new(&[]).unwrap_err().contains("empty"));
    assert!(new(&["bin/menu"]).unwrap_err().contains("not an absolute path"));
    assert!(new(&["no-such-menu"]).unwrap_err().contains("not installed"));
    assert!(new(&["/etc/passwd"]).unwrap_err().contains("not a program"));
}
