//! The tasks and services of a box, as its supervisor told last.
//!
//! It is kept, so a box that is stopped or paused has an answer, too. All of it is the box's own
//! word: bounded when it came, and made visible here.

use crate::api::Api;
use crate::core::Core;
use protocol::BoxId;
use protocol::control::{ControlError, Target};
use protocol::supervisor::BoxStatus;
use protocol::text::shortened;

/// The most units and ports of a box that are shown.
const MOST: usize = 500;
const NAME: usize = 100;
const MISTAKES: usize = 4000;

impl Api {
    pub async fn units(&self, target: Target) -> Result<Option<BoxStatus>, ControlError> {
        let id = self.find(&target)?;
        Ok(self.core.units_of(&id).await)
    }
}

impl Core {
    /// None when it never told, or nothing anybody can read.
    pub async fn units_of(&self, id: &BoxId) -> Option<BoxStatus> {
        let text = self.store.status_of(id).await.ok()??;
        serde_json::from_str(&text).ok().map(harmless)
    }
}

fn harmless(mut told: BoxStatus) -> BoxStatus {
    let name = |text: &mut String| *text = shortened(text, NAME);
    name(&mut told.box_id);
    name(&mut told.timestamp);
    told.services.truncate(MOST);
    for service in &mut told.services {
        name(&mut service.name);
        service.blocked_on.truncate(MOST);
        service.blocked_on.iter_mut().for_each(name);
        service.needs.truncate(MOST);
        service.needs.iter_mut().for_each(name);
    }
    told.tasks.truncate(MOST);
    for task in &mut told.tasks {
        name(&mut task.name);
        task.blocked_on.truncate(MOST);
        task.blocked_on.iter_mut().for_each(name);
        task.needs.truncate(MOST);
        task.needs.iter_mut().for_each(name);
    }
    told.ports.truncate(MOST);
    told.ports.iter_mut().filter_map(|port| port.service.as_mut()).for_each(name);
    if let Some(why) = &mut told.config_error {
        let lines: Vec<String> = why.lines().take(50).map(|line| shortened(line, 500)).collect();
        let text = lines.join("\n");
        *why = text.chars().take(MISTAKES).collect();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_boxs_word_is_bounded_and_visible() {
        let service =
            json!({"name": "\u{1b}[2Jweb", "state": "on fire", "blockedOn": ["a\u{202e}"]});
        let told = json!({
            "schema": 1, "boxId": "b00000001", "timestamp": "x",
            "services": vec![service; 600], "tasks": [], "ports": [{"port": 1, "service": "\r"}],
            "configError": "\u{1b}]0;x\u{7}\nsecond",
        });
        let told = harmless(serde_json::from_value(told).unwrap());
        assert_eq!(told.services.len(), MOST);
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("\\u001b") && !text.contains('\u{202e}'), "{text}");
        assert!(told.config_error.unwrap().ends_with("\nsecond"));
        assert_eq!(told.services[0].state.as_str(), "unknown");
    }
}
