//! What a person changes about a box that is there: what they call it, and how much it may use.

use crate::api::Api;
use crate::engine::control_error;
use protocol::Limits;
use protocol::boxes::BoxView;
use protocol::control::{ControlError, ErrorCode, Target};
use protocol::text::plain;

/// The longest name a person may give a box to look at.
const LONGEST: usize = 60;

type Reply<T> = Result<T, ControlError>;

impl Api {
    /// Changes what a box is called where people see it, and nothing else.
    pub async fn set_display_name(&self, target: Target, name: Option<String>) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        let gone = || ControlError::new(ErrorCode::Usage, "the box is gone");
        let mut record = self.core.record(&id).ok_or_else(gone)?;
        record.display_name = name.as_deref().map(displayed).transpose()?;
        let summary = match &record.display_name {
            Some(name) => format!("Box {} is shown as {name}", record.name),
            None => format!("Box {} is shown by its name", record.name),
        };
        let data = serde_json::json!({ "displayName": record.display_name });
        self.core.change(record, "box-changed", summary, data).await?;
        self.view(&id)
    }

    /// Changes what a box may use, at once and for good. What is absent stays as it is.
    pub async fn set_limits(&self, target: Target, limits: Limits) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let _turn = self.core.turn(&id).await?;
        if limits.disk_bytes.is_some() {
            let text = "the size of a box is decided when it is made";
            return Err(ControlError::new(ErrorCode::Usage, text)
                .hint("agentbox create --disk makes one with a limit."));
        }
        let (boxes, mut record) = self.core.reach(&id).await?;
        boxes.set_limits(&record, limits).await.map_err(control_error)?;
        record.limits = limits.or(record.limits);
        let summary = format!("Box {} got other limits", record.name);
        let data = serde_json::json!({ "limits": record.limits });
        self.core.change(record, "box-changed", summary, data).await?;
        self.view(&id)
    }
}

/// As it may be shown.
fn displayed(name: &str) -> Reply<String> {
    let name = plain(name);
    let length = name.chars().count();
    if (1..=LONGEST).contains(&length) {
        return Ok(name);
    }
    let text = match length {
        0 => "a name without a letter shows nothing".to_owned(),
        _ => format!("a name to show has at most {LONGEST} characters; this one has {length}"),
    };
    Err(ControlError::new(ErrorCode::Usage, text).hint("--clear-name takes the name away."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_to_look_at_cannot_disturb_what_is_around_it() {
        assert_eq!(displayed(" The \x1b[31mlogin\n").unwrap(), "The [31mlogin");
        assert_eq!(displayed("a\u{202e}b\u{200b}c").unwrap(), "abc");
        assert_eq!(displayed(&"ö".repeat(60)).unwrap().chars().count(), 60);
        for bad in ["", "\x07\u{feff}", &"x".repeat(61)] {
            assert!(displayed(bad).is_err(), "{bad:?}");
        }
    }
}
