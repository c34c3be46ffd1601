//! `agentbox claude login` and its like: an agent's own login, inside a box.
//!
//! With a terminal it is the agent's own dialogue. Without one, or with `--headless`, the login waits in
//! the box: its address is printed for a person at a browser anywhere, and what they bring back from
//! there is handed to it.

mod address;
mod waiting;

use crate::context::{Context, target};
use crate::error::{CommandError, Exit, Outcome};
use crate::{ask, exec, json, terminal};
use address::{Address, address, one_time_code};
use host::client::Client;
use host::opener;
use protocol::boxes::BoxView;
use protocol::control::Request;
use protocol::sessions::Agent;
use protocol::text::visible;
use serde::Serialize;
use std::io::{BufRead, Read, Write};
use waiting::{Login, State, last_words};

const LONGEST_CODE: u64 = 2000;

/// Log the agent in, inside a box
///
/// Runs the agent's own login there. The box holds that login from then on: it is the one
/// credential a box may hold, `agentbox list` says so, and it goes with the box. Without a terminal, or
/// with --headless, the login waits in the box for a quarter of an hour: its address is printed, also in
/// a line AGENTBOX_LOGIN_URL=… (and AGENTBOX_LOGIN_CODE=… where there is a code to type) for scripts, and
/// --code or --wait goes on with it. Exit code 1 when the login failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agentbox claude login fix-login                 in this terminal
  agentbox claude login fix-login --headless      print the address; open it in any browser
  agentbox claude login fix-login --code 'x#y'    the code from there
  agentbox codex login fix-login --wait           until the login in the browser is done")]
pub struct LoginArgs {
    /// Number, name, id, unique id prefix, project/name or @project [default: the project's only
    /// box]
    #[arg(value_name = "BOX")]
    which: Option<String>,

    /// Print the login's address and let it wait in the box
    #[arg(long)]
    headless: bool,

    /// Hand this code to the login that waits; - reads it from standard input. Claude only
    #[arg(long, value_name = "CODE", conflicts_with = "headless")]
    code: Option<String>,

    /// Wait until the login that waits in the box is done
    #[arg(long, conflicts_with_all = ["headless", "code"])]
    wait: bool,

    /// The agent's own dialogue, also without a terminal
    #[arg(long, conflicts_with_all = ["headless", "code", "wait"])]
    interactive: bool,

    /// Print JSON; does not wait unless told to
    #[arg(short, long, conflicts_with = "interactive")]
    json: bool,

    /// Arguments for the agent's login
    #[arg(last = true, value_name = "ARG", conflicts_with_all = ["code", "wait"])]
    args: Vec<String>,
}

/// How a login stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    r#box: &'a str,
    agent: Agent,
    /// `waiting` or `loggedIn`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    /// The address is one of the agent's company.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_host: Option<bool>,
    /// What to type at the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    one_time_code: Option<&'a str>,
}

pub fn run(ctx: &Context, client: &Client, agent: Agent, args: LoginArgs) -> Outcome {
    if args.code.is_some() && agent != Agent::Claude {
        let text = format!("{} takes no code: it is typed in the browser", agent.title());
        let hint = format!("agentbox {} login --wait waits until that is done", agent.as_str());
        return Err(CommandError::usage(text).hint(hint));
    }
    let headless = args.headless || args.json || !terminal::both_ends();
    let begins = args.code.is_none() && !args.wait;
    if begins && headless && !args.interactive {
        needs_no_choice(agent, &args.args)?;
    }
    let view: BoxView = client.call(&Request::FindBox { target: target(args.which.clone()) })?;
    let to = || target(Some(view.id.to_string()));
    let one = One { ctx, view: &view, login: Login { client, target: to(), agent }, args: &args };
    if let Some(code) = &args.code {
        return one.give(code);
    }
    if args.wait {
        return one.ended(one.login.wait()?);
    }
    // Before anything: the host says so where logins are switched off, and notes it.
    client.call::<BoxView>(&Request::WillLogIn { target: to(), agent })?;
    let argv: Vec<String> = command(agent).iter().map(|w| (*w).to_owned()).collect();
    let argv = [argv, args.args.clone()].concat();
    let title = agent.title();
    ctx.ui.say(&format!("{title} logs in inside {}; the box holds that login.", view.name));
    if headless && !args.interactive {
        return one.begin(argv);
    }
    let code = exec::run(client, to(), argv, terminal::both_ends())?;
    Ok(Exit(u8::try_from(code).unwrap_or(1)))
}

fn command(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude => &["env", "DISPLAY=", "claude", "auth", "login"],
        Agent::Codex => &["codex", "login", "--device-auth"],
        Agent::Opencode => &["opencode", "auth", "login"],
    }
}

/// OpenCode asks which provider and which way; without a terminal both have to be said.
fn needs_no_choice(agent: Agent, args: &[String]) -> Result<(), CommandError> {
    let said = |short: &str, long: &str| {
        let is = |arg: &String| arg == short || arg == long || arg.starts_with(&format!("{long}="));
        args.iter().any(is)
    };
    if agent != Agent::Opencode || (said("-p", "--provider") && said("-m", "--method")) {
        return Ok(());
    }
    Err(CommandError::usage("OpenCode asks which provider and way you log in with; say both").hint(
        "agentbox opencode login BOX --headless -- --provider openai --method 'ChatGPT Pro/Plus (headless)'",
    ))
}

/// One login of one box.
struct One<'a> {
    ctx: &'a Context,
    view: &'a BoxView,
    login: Login<'a>,
    args: &'a LoginArgs,
}

impl One<'_> {
    fn by_hand(&self) -> String {
        let (agent, name) = (self.login.agent.as_str(), &self.view.name);
        format!("agentbox {agent} login {name} --interactive shows the agent's own dialogue")
    }

    fn begin(&self, argv: Vec<String>) -> Outcome {
        let said = match self.login.start(argv)? {
            State::Waits(said) => said,
            State::Silent(said) => {
                return Err(self
                    .failed("it said nothing to go on with", &said)
                    .hint(self.by_hand()));
            }
            other => return self.ended(other),
        };
        let at = address(&said, self.login.agent)
            .map_err(|why| self.failed(why, &said).hint(self.by_hand()))?;
        let code = one_time_code(&said);
        if !at.known {
            let title = self.login.agent.title();
            self.ctx.ui.warn(&format!("{} is no address {title} is known to log in at", at.host));
        }
        if self.args.json {
            self.print("waiting", Some(&at), code.as_deref())?;
        } else {
            self.ctx.ui.say("Open this in a browser:");
            self.ctx.ui.out(&format!("{}\nAGENTBOX_LOGIN_URL={}\n", at.url, at.url))?;
            if let Some(code) = &code {
                self.ctx.ui.say("and type this code there:");
                self.ctx.ui.out(&format!("{code}\nAGENTBOX_LOGIN_CODE={code}\n"))?;
            }
        }
        // A script that reads the address goes on by itself.
        if self.args.json || !self.ctx.ui.interactive || !terminal::both_ends() {
            self.ctx.ui.say("The login waits in the box for 15 minutes.");
            self.ctx.ui.hint(&self.next());
            return Ok(Exit::OK);
        }
        self.offer_browser(&at);
        match self.login.agent {
            Agent::Claude => self.ask_for_code(),
            Agent::Codex | Agent::Opencode => {
                self.ctx.ui.say("Waiting until you are done there.");
                self.ended(self.login.wait()?)
            }
        }
    }

    /// What to type to go on.
    fn next(&self) -> String {
        let (agent, name) = (self.login.agent, &self.view.name);
        let how = if agent == Agent::Claude { "--code CODE" } else { "--wait" };
        format!("agentbox {} login {name} {how} goes on with it", agent.as_str())
    }

    fn offer_browser(&self, at: &Address) {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let here = cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY");
        if here
            && ask::yes(&self.ctx.ui, &format!("Open {} in the browser here?", at.host))
            && let Err(why) = opener::open(&at.url)
        {
            self.ctx.ui.warn(&visible(&why));
        }
    }

    /// Until it is right, or the login has ended.
    fn ask_for_code(&self) -> Outcome {
        loop {
            let _ = write!(std::io::stderr().lock(), "Code from the browser: ");
            let _ = std::io::stderr().flush();
            let Some(code) = read_code()? else {
                self.ctx.ui.say("");
                self.ctx.ui.hint(&self.next());
                return Ok(Exit::OK);
            };
            match self.login.give(&code)? {
                State::Waits(said) => self.ctx.ui.warn(&last_words(&said)),
                other => return self.ended(other),
            }
        }
    }

    fn give(&self, code: &str) -> Outcome {
        let code = if code == "-" { read_code()? } else { checked(code)? };
        let Some(code) = code else { return Err(CommandError::usage("there is no code")) };
        self.ended(self.login.give(&code)?)
    }

    fn ended(&self, state: State) -> Outcome {
        let (title, name) = (self.login.agent.title(), &self.view.name);
        match state {
            State::In if self.args.json => self.print("loggedIn", None, None)?,
            State::In => self.ctx.ui.out(&format!("{title} is logged in in {name}\n"))?,
            State::None => {
                let again = format!("agentbox {} login {name}", self.login.agent.as_str());
                return Err(CommandError::failed(format!("no login of {title} waits in {name}"))
                    .hint(format!("{again} --headless starts one")));
            }
            State::Waits(said) => {
                let error = self.failed("it was not taken", &said);
                return Err(error.hint(self.next()));
            }
            State::Failed(said) | State::Silent(said) => {
                let again = format!(
                    "agentbox {} login {} --headless starts another",
                    self.login.agent.as_str(),
                    self.view.name
                );
                return Err(self.failed("it ended", &said).hint(again));
            }
        }
        Ok(Exit::OK)
    }

    fn failed(&self, why: &str, said: &str) -> CommandError {
        let (title, name) = (self.login.agent.title(), &self.view.name);
        let words = last_words(said);
        let words = if words.is_empty() { String::new() } else { format!("\n{words}") };
        CommandError::failed(format!("{title} is not logged in in {name}: {why}{words}"))
    }

    fn print(
        &self,
        state: &'static str,
        at: Option<&Address>,
        one_time_code: Option<&str>,
    ) -> Result<(), CommandError> {
        let report = Report {
            r#box: self.view.name.as_str(),
            agent: self.login.agent,
            state,
            url: at.map(|at| at.url.as_str()),
            known_host: at.map(|at| at.known),
            one_time_code,
        };
        json::print(&self.ctx.ui, "login", &report)
    }
}

/// One line of the person's; none at the end of input.
fn read_code() -> Result<Option<String>, CommandError> {
    let mut line = String::new();
    std::io::stdin().lock().take(LONGEST_CODE + 2).read_line(&mut line)?;
    checked(&line)
}

fn checked(code: &str) -> Result<Option<String>, CommandError> {
    let code = code.trim();
    let fits = code.len() as u64 <= LONGEST_CODE && code.chars().all(|c| c.is_ascii_graphic());
    if !fits {
        return Err(CommandError::usage(
            "that is no code: it is one word, as the browser shows it",
        ));
    }
    Ok((!code.is_empty()).then(|| code.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_word() {
        assert_eq!(checked(" ab#cd\n").unwrap().as_deref(), Some("ab#cd"));
        assert_eq!(checked("\n").unwrap(), None);
        for bad in ["a b", "a\x03b", "a\nb", &"x".repeat(3000)] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn opencode_is_told_everything() {
        let words = |line: &[&str]| line.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for line in [&[][..], &["-p", "openai"], &["--method=x"]] {
            assert!(needs_no_choice(Agent::Opencode, &words(line)).is_err(), "{line:?}");
            assert!(needs_no_choice(Agent::Claude, &words(line)).is_ok());
        }
        let both = words(&["--provider=openai", "-m", "x"]);
        assert!(needs_no_choice(Agent::Opencode, &both).is_ok());
    }
}
