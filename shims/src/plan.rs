//! What a service's command line becomes, the same for every service.
//!
//! Files a command names are files of the box: they are read through [`Place`] and travel as text,
//! so a path never reaches the host. The surprising thing: whatever a shim prints without asking
//! the host (`--version`, `--help`) is a guess at what an agent wants to know, made from the same
//! tables the host enforces.

use connectors::connector::{Connector, Input};
use connectors::grammar::{Flag, Grammar, Value};
use protocol::rpc::{ArgsParams, MAX_ARG_BYTES};
use protocol::text::visible;
use std::path::Path;

/// What is to be done for one command line.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Post this to the relay and end as it says.
    Call { method: String, params: serde_json::Value },
    /// Print this and end well.
    Print(String),
    /// Say this line and stop with exit code 2.
    Refuse(String),
}

/// Where in the box a command was typed, and how to read a file there.
pub struct Place<'a> {
    pub cwd: &'a Path,
    pub read: &'a dyn Fn(&Path) -> std::io::Result<String>,
}

impl Plan {
    /// A call whose arguments the host parses.
    pub fn call(method: &str, place: &Place<'_>, args: Vec<String>, stdin: Option<String>) -> Self {
        let path = place.cwd.to_str().map(str::to_owned);
        match serde_json::to_value(ArgsParams { path, args, stdin }) {
            Ok(params) => Plan::Call { method: method.to_owned(), params },
            Err(e) => Plan::Refuse(format!("{method}: the arguments cannot be sent: {e}")),
        }
    }
}

impl Place<'_> {
    /// The text of a file in the box, or the line that says why not.
    pub fn text(&self, surface: &str, file: &str) -> Result<String, String> {
        (self.read)(&self.cwd.join(file)).map_err(|e| {
            let shown = visible(file);
            format!("{surface}: cannot read '{shown}' in this box: {e}. Check the path.")
        })
    }
}

/// What a command's words need before the host's grammar takes them.
pub struct Words {
    pub grammar: &'static Grammar,
    /// Flags that name a file of the box, and the flags that take its text.
    pub files: &'static [(&'static str, &'static str)],
    /// Flags the host sets by itself.
    pub dropped: &'static [&'static str],
}

impl Words {
    /// The words with texts in place of files. A text that is too long for a word comes beside
    /// them.
    pub fn read(&self, args: &[String], place: &Place<'_>) -> Result<Sent, String> {
        let mut sent = Sent::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                sent.args.push(word.clone());
                sent.args.extend(words.by_ref().cloned());
                break;
            }
            let (name, glued) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let file = self.files.iter().find(|(flag, _)| *flag == name);
            if let Some((flag, text)) = file {
                let file = glued.or_else(|| words.next().cloned());
                let surface = self.grammar.surface;
                let file = file.ok_or_else(|| format!("{surface}: '{flag}' needs a file."))?;
                sent.text(text, place.text(surface, &file)?);
            } else if let Some(flag) = self.with_value(name) {
                let long = self.files.iter().any(|(_, text)| *text == flag.long);
                match glued.or_else(|| words.next().cloned()) {
                    Some(value) if long => sent.text(flag.long, value),
                    Some(value) => sent.args.extend([flag.long.to_owned(), value]),
                    None => sent.args.push(word.clone()),
                }
            } else if !self.dropped.contains(&word.as_str()) {
                sent.args.push(word.clone());
            }
        }
        Ok(sent)
    }

    fn with_value(&self, name: &str) -> Option<&'static Flag> {
        let named = |f: &&Flag| f.long == name || f.short == Some(name);
        self.grammar.flags.iter().filter(named).find(|f| !matches!(f.value, Value::None))
    }
}

/// What goes to the host for one command.
#[derive(Debug, Default)]
pub struct Sent {
    pub args: Vec<String>,
    pub stdin: Option<String>,
}

impl Sent {
    /// The text an operation is about. It has the way beside the words for itself.
    fn text(&mut self, flag: &str, value: String) {
        if value.len() > MAX_ARG_BYTES && self.stdin.is_none() {
            self.stdin = Some(value);
        } else {
            self.args.extend([flag.to_owned(), value]);
        }
    }

    /// A call of an operation, if its grammar takes the words.
    pub fn call(self, connector: &Connector, op: &str, place: &Place<'_>) -> Result<Plan, String> {
        let Self { args, stdin } = self;
        let method = format!("integration.{}.{op}", connector.service);
        let Some(op) = connector.op(op) else { return Err(format!("{method}: there is none.")) };
        let input = Input { args: &args, stdin: stdin.as_deref() };
        (op.parse)(&input).map_err(|refusal| refusal.text)?;
        Ok(Plan::call(&method, place, args, stdin))
    }
}

/// The help of a service's command: what the host does for this box.
pub fn help(command: &str, connector: &Connector, spelled: impl Fn(&str) -> String) -> String {
    let mut text = format!(
        "{command}: {} through the host of this box. The credentials stay there.\n\n",
        connector.title
    );
    for info in connector.infos() {
        let class = if info.write { "  (the person is asked)" } else { "" };
        let line = format!("{command} {} {}", spelled(info.name), info.usage);
        text.push_str(&format!("  {}{class}\n      {}\n", line.trim_end(), info.summary));
    }
    text
}

/// The help of one operation of it.
pub fn usage(command: &str, connector: &Connector, op: &str, spelled: &str) -> String {
    let Some(op) = connector.op(op) else { return String::new() };
    let asked = if op.info.write { " The person is asked." } else { "" };
    let line = format!("{command} {spelled} {}", op.info.usage);
    format!("{}\n\n{}{asked}\n", line.trim_end(), op.info.summary)
}

pub fn is_help(word: &str) -> bool {
    matches!(word, "--help" | "-h")
}
