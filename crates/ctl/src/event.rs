//! `agentbox-ctl event <kind> [json]`: tells the host something, for whoever follows
//! `agentbox events` there.

use crate::client::Relay;
use crate::error::{Error, Result};
use protocol::rpc::EventPost;
use serde_json::value::RawValue;
use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

pub fn run(args: &[OsString]) -> Result<i32> {
    let texts: Option<Vec<&str>> = args.iter().map(|a| a.to_str()).collect();
    let (kind, json) = match texts.as_deref() {
        Some([kind]) => (*kind, None),
        Some([kind, json]) => (*kind, Some(*json)),
        _ => return Err(Error::Usage("use 'agentbox-ctl event <kind> [json]'.".into())),
    };
    let payload = json.map(str::to_owned).map(RawValue::from_string).transpose();
    let payload = payload.map_err(|e| Error::Usage(format!("the payload is no JSON: {e}.")))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ts = u64::try_from(since.as_millis()).ok();
    Relay::open()?.event(&EventPost { kind: kind.to_owned(), ts, payload })?;
    Ok(protocol::exit::OK)
}
