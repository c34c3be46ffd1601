//! A command for a service that has no program of its own: its words are the connector's table.
//!
//! `trello card create …` and `trello card.create …` are the same. The connector's grammar is asked
//! before anything is sent, so a slip of the pen is told at once; the host asks it again.

use crate::plan::{Place, Plan, Sent, help, is_help, usage};
use connectors::connector::{Connector, Input, Op};
use protocol::text::visible;

/// Plans `<command> <args>`. `files` says which flags name a file of the box, and which flag takes
/// its text.
pub fn plan(
    connector: &'static Connector,
    files: &[(&str, &str)],
    args: &[String],
    place: &Place<'_>,
) -> Plan {
    let command = connector.service;
    match args.first().map(String::as_str) {
        None | Some("help" | "--help" | "-h") => {
            return Plan::Print(help(command, connector, |op| op.replace('.', " ")));
        }
        Some("--version" | "-V") => {
            let version = env!("CARGO_PKG_VERSION");
            return Plan::Print(format!("{command} version {version} (through AgentBox)\n"));
        }
        Some(_) => {}
    }
    let Some((op, rest)) = op(connector, args) else { return unknown(connector, args) };
    if let [word] = rest
        && is_help(word)
    {
        let spelled = op.info.name.replace('.', " ");
        return Plan::Print(usage(command, connector, op.info.name, &spelled));
    }
    let planned = texts(&format!("{command} {}", op.info.name), op, files, rest, place)
        .and_then(|args| Sent { args, stdin: None }.call(connector, op.info.name, place));
    planned.unwrap_or_else(Plan::Refuse)
}

/// The operation the first words name, and the words after it.
fn op<'a>(connector: &Connector, args: &'a [String]) -> Option<(&'static Op, &'a [String])> {
    let (first, rest) = args.split_first()?;
    if let Some(op) = connector.op(first) {
        return Some((op, rest));
    }
    let (second, rest) = rest.split_first()?;
    Some((connector.op(&format!("{first}.{second}"))?, rest))
}

fn unknown(connector: &Connector, args: &[String]) -> Plan {
    let said: Vec<String> = args.iter().take(2).map(|word| visible(word)).collect();
    let names: Vec<String> =
        connector.ops.iter().map(|op| op.info.name.replace('.', " ")).collect();
    Plan::Refuse(format!(
        "{}: there is no '{}' here. Available: {}.",
        connector.service,
        said.join(" "),
        names.join(", ")
    ))
}

/// The words with texts in place of files.
fn texts(
    surface: &str,
    op: &Op,
    files: &[(&str, &str)],
    args: &[String],
    place: &Place<'_>,
) -> Result<Vec<String>, String> {
    // The value of another flag may look like one that names a file; the grammar knows.
    if (op.parse)(&Input { args, stdin: None }).is_ok() {
        return Ok(args.to_vec());
    }
    let mut out = Vec::with_capacity(args.len());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let (name, glued) =
            word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
        let Some((flag, text)) = files.iter().find(|(flag, _)| *flag == name) else {
            out.push(word.clone());
            continue;
        };
        let file = glued.or_else(|| words.next().map(String::as_str));
        let file = file.ok_or_else(|| format!("{surface}: '{flag}' needs a file."))?;
        out.push(format!("{text}={}", place.text(surface, file)?));
    }
    Ok(out)
}
