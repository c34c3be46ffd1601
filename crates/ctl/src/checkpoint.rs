//! `agentbox-ctl checkpoint create`: asks the host to keep this box as it is now.

use crate::client::Relay;
use crate::error::{Error, Result};
use crate::rpc::{exit_code, print};
use protocol::rpc::CheckpointParams;
use std::ffi::OsString;

const USAGE: &str =
    "use 'agentbox-ctl checkpoint create [--name <name>] [--set-default] [--replace]'.";

pub fn run(args: &[OsString]) -> Result<i32> {
    let params = parse(args).ok_or_else(|| Error::Usage(USAGE.into()))?;
    let params = serde_json::to_value(params).map_err(|e| Error::Failed(e.to_string()))?;
    let envelope = Relay::open()?.call("checkpoint.create", params)?;
    print(&envelope);
    Ok(exit_code(&envelope))
}

fn parse(args: &[OsString]) -> Option<CheckpointParams> {
    let words: Option<Vec<&str>> = args.iter().map(|a| a.to_str()).collect();
    let words = words?;
    let (first, rest) = words.split_first()?;
    if *first != "create" {
        return None;
    }
    let mut params = CheckpointParams::default();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--name" if params.name.is_none() => params.name = Some((*rest.next()?).to_owned()),
            "--set-default" => params.set_default = true,
            "--replace" => params.replace = true,
            word => match word.strip_prefix("--name=") {
                Some(name) if params.name.is_none() => params.name = Some(name.to_owned()),
                _ => return None,
            },
        }
    }
    Some(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_read_word_by_word() {
        let parse = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            super::parse(&words)
        };
        let plain = CheckpointParams::default();
        assert_eq!(parse("create"), Some(plain.clone()));
        let named = CheckpointParams { name: Some("a".into()), replace: true, ..plain };
        assert_eq!(parse("create --name a --replace"), Some(named.clone()));
        assert_eq!(parse("create --replace --name=a"), Some(named));
        for bad in
            ["", "remove", "create a", "create --name", "create --name a --name b", "create --x"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
