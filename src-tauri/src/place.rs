//! Opens a box's web app or screen in the person's browser.

use protocol::control::{ControlError, ErrorCode};
use protocol::links::{Link, LinkTo};
use serde::Deserialize;

/// What of a box a person can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    Web,
    Screen,
}

impl Place {
    pub fn link(self) -> LinkTo {
        match self {
            Place::Web => LinkTo::Web,
            Place::Screen => LinkTo::Screen,
        }
    }
}

/// Waits for the program that opens addresses, for a while.
pub fn open(link: &Link) -> Result<(), ControlError> {
    let failed = |text: String| ControlError::new(ErrorCode::Failed, text);
    let Some(address) = &link.open else {
        return Err(failed(format!("{} cannot be opened from here.", link.shown)).hint(
            "Its password would show. Set proxy.port in config.yaml, so that boxes have names, \
             or use: agentbox screen --print",
        ));
    };
    host::opener::open(address).map_err(|why| {
        failed(format!("No browser could be started: {why}."))
            .hint(format!("Open {} yourself.", link.shown))
    })
}
