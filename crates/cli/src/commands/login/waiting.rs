//! A login that waits in a box while nobody's terminal is on it.
//!
//! It runs there by itself for at most a quarter of an hour, with a pipe as its input and what it says
//! in a file, both in the box's memory. A code reaches it through the pipe alone: in the box it is no
//! argument of any program and in no file.

use super::address::without_colours;
use crate::error::CommandError;
use crate::in_box::in_box_within;
use host::client::Client;
use protocol::control::Target;
use protocol::sessions::Agent;
use protocol::text::shortened;
use std::time::Duration;

/// How the scripts below tell what became of the login.
const IN: i32 = 10;
const FAILED: i32 = 11;
const SILENT: i32 = 12;
const NONE: i32 = 13;

/// Longer than the scripts allow themselves.
const SOON: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(1000);

/// Starts it and waits for what it has to say: `$1` agent, `$2` what comes after the address, then the
/// command. A login that waited before is ended.
const START: &str = r#"d=/dev/shm/agentbox-login-$1; want=$2; shift 2
[ ! -r "$d/pid" ] || kill -- "-$(cat "$d/pid")" 2>/dev/null
rm -rf "$d"; mkdir -m 700 "$d" && mkfifo -m 600 "$d/in" && : > "$d/out" || exit 11
setsid sh -c 'echo $$ > "$0/pid"; timeout --foreground 900 "$@" 0<>"$0/in" >"$0/out" 2>&1
echo $? > "$0/end"; mv "$0/end" "$0/rc"' "$d" "$@" </dev/null >/dev/null 2>&1 &
i=0; late=300
while [ $i -lt $late ] && [ ! -e "$d/rc" ]; do
  if grep -q 'https://' "$d/out"; then
    grep -v '://' "$d/out" | grep -q "$want" && break
    [ $late -lt 300 ] || [ $i -gt 284 ] || late=$((i + 15))
  fi
  i=$((i + 1)); sleep 0.2
done
head -c 16384 "$d/out"
[ ! -e "$d/rc" ] || { [ "$(cat "$d/rc")" = 0 ] && exit 10; exit 11; }
grep -q 'https://' "$d/out" && exit 0
kill -- "-$(cat "$d/pid")" 2>/dev/null; rm -rf "$d"; exit 12
"#;

/// Hands the line on its input to the login that waits, and says what that said to it.
const CODE: &str = r#"d=/dev/shm/agentbox-login-$1
[ -p "$d/in" ] && [ ! -e "$d/rc" ] && kill -0 "$(cat "$d/pid")" 2>/dev/null || exit 13
before=$(wc -c < "$d/out"); IFS= read -r code; printf '%s\n' "$code" 1<>"$d/in"
i=0; late=300
while [ $i -lt $late ] && [ ! -e "$d/rc" ]; do
  [ $late -lt 300 ] || [ "$(wc -c < "$d/out")" -le "$before" ] || late=$((i + 25))
  i=$((i + 1)); sleep 0.2
done
tail -c +$((before + 1)) "$d/out" | head -c 4096
[ -e "$d/rc" ] || exit 0
end=$(cat "$d/rc"); rm -rf "$d"; [ "$end" = 0 ] && exit 10; exit 11
"#;

/// Waits until it ends.
const WAIT: &str = r#"d=/dev/shm/agentbox-login-$1
[ -p "$d/in" ] || exit 13
while [ ! -e "$d/rc" ]; do kill -0 "$(cat "$d/pid")" 2>/dev/null || [ -e "$d/rc" ] || exit 13; sleep 0.5; done
tail -c 4096 "$d/out"; end=$(cat "$d/rc"); rm -rf "$d"; [ "$end" = 0 ] && exit 10; exit 11
"#;

/// What became of a login, with what it said last.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    Waits(String),
    In,
    Failed(String),
    /// It said nothing that helps.
    Silent(String),
    /// None waits in the box.
    None,
}

/// A box and the agent that logs in there.
pub struct Login<'c> {
    pub client: &'c Client,
    pub target: Target,
    pub agent: Agent,
}

impl Login<'_> {
    pub fn start(&self, command: Vec<String>) -> Result<State, CommandError> {
        let want = match self.agent {
            Agent::Claude => "Paste code",
            Agent::Codex | Agent::Opencode => "[A-Z0-9]\\{3,\\}-[A-Z0-9]\\{3,\\}",
        };
        self.script(START, [vec![want.to_owned()], command].concat(), b"", SOON)
    }

    /// The code is the box's input, never an argument there.
    pub fn give(&self, code: &str) -> Result<State, CommandError> {
        self.script(CODE, Vec::new(), format!("{code}\n").as_bytes(), SOON)
    }

    pub fn wait(&self) -> Result<State, CommandError> {
        self.script(WAIT, Vec::new(), b"", LONG)
    }

    fn script(
        &self,
        script: &str,
        more: Vec<String>,
        input: &[u8],
        limit: Duration,
    ) -> Result<State, CommandError> {
        let agent = self.agent.as_str();
        let mut argv = ["sh", "-c", script, "login", agent].map(str::to_owned).to_vec();
        argv.extend(more);
        let ended = in_box_within(self.client, self.target.clone(), argv, input, limit)?;
        Ok(match ended.exit_code {
            0 => State::Waits(ended.stdout),
            IN => State::In,
            FAILED => State::Failed(ended.stdout),
            SILENT => State::Silent(ended.stdout),
            NONE => State::None,
            _ => State::Failed(format!("{}\n{}", ended.stdout, ended.stderr)),
        })
    }
}

/// The last it said, for a person: a few lines behind a bar, with nothing that moves or hides. They are the
/// box's, and must not pass for the host's.
pub fn last_words(said: &str) -> String {
    let plain = without_colours(said);
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(3));
    last.map(|line| format!("  │ {}", shortened(line, 300))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_said_last_is_short_and_visible() {
        let said = "a\n\nb\n\x1b[91mError:\x1b[0m no\r\nc\u{202e}\n";
        let words = last_words(said);
        assert_eq!(words.lines().count(), 3, "{words}");
        assert!(words.contains("Error: no") && !words.contains(['\x1b', '\u{202e}']), "{words}");
        assert!(last_words(&"x".repeat(10_000)).len() < 400);
    }
}
