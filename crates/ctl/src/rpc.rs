//! `agentbox-ctl rpc <method> [json]`: one raw call, for tests and the curious.

use crate::client::Relay;
use crate::error::{Error, Result};
use protocol::rpc::Envelope;
use std::ffi::OsString;
use std::io::Write;

pub fn run(args: &[OsString]) -> Result<i32> {
    let texts: Option<Vec<&str>> = args.iter().map(|a| a.to_str()).collect();
    let (method, json) = match texts.as_deref() {
        Some([method]) => (*method, "{}"),
        Some([method, json]) => (*method, *json),
        _ => return Err(Error::Usage("use 'agentbox-ctl rpc <method> [json]'.".into())),
    };
    let params = serde_json::from_str(json)
        .map_err(|e| Error::Usage(format!("the parameters are no JSON: {e}.")))?;
    let envelope = Relay::open()?.call(method, params)?;
    print(&envelope);
    Ok(exit_code(&envelope))
}

/// Gives back what the command said on the host.
pub fn print(envelope: &Envelope) {
    let _ = std::io::stdout().write_all(envelope.stdout.as_bytes());
    let _ = std::io::stderr().write_all(envelope.stderr.as_bytes());
}

/// A failure stays one where only eight bits of the code survive.
pub fn exit_code(envelope: &Envelope) -> i32 {
    match envelope.exit_code {
        code @ 0..=255 => code,
        _ => protocol::exit::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_never_becomes_success() {
        let code = |exit_code| super::exit_code(&Envelope { exit_code, ..Envelope::default() });
        assert_eq!(code(0), 0);
        assert_eq!(code(65), 65);
        assert_eq!(code(256), 1);
        assert_eq!(code(-1), 1);
    }
}
