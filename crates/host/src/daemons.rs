//! What runs in a box besides commands, as the host sees it: where it is reached, and with what.
//!
//! The screen's password is minted at every start and whenever a host takes a box over, brought to
//! the box with its token, and kept here in memory alone: it is in no database, no view, no log.
//! A host that comes back gives each running box a new one ([`Core::adopt`]); a screen that is open
//! stays open.

use crate::config::project_settings;
use crate::core::{Core, Known};
use crate::{home, ssh_keys};
use boxes::{Boxes, Features, Record, Stage};
use protocol::BoxId;
use protocol::boxes::{BoxState, Endpoints};
use protocol::control::{ControlError, ErrorCode};
use protocol::ctl::{Daemons, Egress, Go};
use settings::{InnerDocker, Settings};
use std::path::Path;
use std::sync::Arc;

/// As long as the protocol of the screen makes use of.
const PASSWORD: usize = 8;
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Core {
    #[allow(dead_code, reason = "for whoever leads people into a box")]
    /// Where a box is reached on this computer; none for a box nobody knows. Empty unless it runs.
    pub fn endpoints(&self, id: &BoxId) -> Option<Endpoints> {
        self.state().boxes.get(id).map(|known| known.endpoints)
    }

    #[allow(dead_code, reason = "for whoever leads people to a screen")]
    /// The password of a box's screen; none while it has no screen. Never to be shown or written
    /// down.
    pub fn vnc_password(&self, id: &BoxId) -> Option<String> {
        self.state().boxes.get(id)?.vnc_password.clone()
    }

    /// The settings as they are now for a project: the person's own, and what its repository tightens.
    pub fn settings_for(&self, project_root: &Path) -> Result<Settings, ControlError> {
        project_settings(&self.home, project_root)
            .map_err(|e| ControlError::new(ErrorCode::Usage, e.to_string()))
    }

    /// What a box with these features is started with.
    pub(crate) fn daemons(&self, id: &BoxId, has: Features) -> Result<Daemons, ControlError> {
        let keys = has.ssh.then(|| ssh_keys::ensure(&self.home, id)).transpose();
        let ssh = keys.map_err(|e| {
            let dir = home::box_dir(&self.home, id);
            let text = format!("the box's ssh keys cannot be kept in {}: {e}", dir.display());
            ControlError::new(ErrorCode::Failed, text)
        })?;
        let vnc_password = has.vnc.then(password).transpose()?;
        Ok(Daemons { docker: has.docker, vnc_password, ssh, front: self.web_port() })
    }

    pub(crate) fn go(self: &Arc<Self>, record: &Record, token: &str) -> Result<Go, ControlError> {
        let daemons = self.daemons(&record.id, record.features)?;
        let certificates = self.authority(record.egress)?;
        let egress = record.egress.is_controlled().then_some(Egress { certificates });
        Ok(Go { token: token.to_owned(), daemons, identity: Some(record.identity()), egress })
    }

    /// Notes what a box has been started with, and where it is reached now.
    pub(crate) async fn went(&self, boxes: &Boxes, record: &Record, daemons: Daemons) {
        let endpoints = match boxes.endpoints(record).await {
            Ok(endpoints) => endpoints,
            Err(e) => {
                tracing::warn!("the ports of box {} are not known: {e}", record.name);
                Endpoints::default()
            }
        };
        if let Some(known) = self.state().boxes.get_mut(&record.id) {
            known.endpoints = endpoints;
            known.vnc_password = daemons.vnc_password.filter(|_| record.features.vnc);
        }
        self.send_view(&record.id);
    }
}

impl Known {
    /// Nothing leads into a box that does not run.
    pub(crate) fn close(&mut self, state: BoxState) {
        if matches!(state, BoxState::Stopped | BoxState::Missing) {
            self.endpoints = Endpoints::default();
            self.vnc_password = None;
            self.starved = false;
        }
    }
}

/// What a new box is to have: what the person said for this one, else their settings.
pub(crate) fn wanted(settings: &Settings, vnc: Option<bool>, docker: Option<bool>) -> Features {
    Features {
        vnc: vnc.unwrap_or(settings.boxes.vnc),
        ssh: true,
        docker: docker.unwrap_or(settings.boxes.docker == InnerDocker::On),
    }
}

pub fn stage(settings: &Settings) -> Stage {
    match settings.boxes.stage {
        settings::Stage::Core => Stage::Core,
        settings::Stage::Desktop => Stage::Desktop,
        settings::Stage::Full => Stage::Full,
    }
}

/// Eight letters and digits, all equally likely.
fn password() -> Result<String, ControlError> {
    let mut text = String::new();
    while text.len() < PASSWORD {
        let bytes: [u8; 32] = crate::create::random()?;
        // Above the largest multiple of 62 some letters would come more often.
        let fair = bytes.into_iter().filter(|b| *b < 248);
        let letters = fair.map(|b| char::from(LETTERS[usize::from(b) % LETTERS.len()]));
        text.extend(letters.take(PASSWORD - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_eight_letters_and_digits_and_differ() {
        let some: Vec<String> = (0..50).map(|_| password().unwrap()).collect();
        assert!(some.iter().all(|p| p.len() == 8 && p.bytes().all(|b| b.is_ascii_alphanumeric())));
        assert_eq!(some.iter().collect::<std::collections::HashSet<_>>().len(), 50);
    }

    #[test]
    fn only_the_person_gives_a_box_an_engine() {
        let mut settings = Settings::default();
        assert!(!wanted(&settings, None, None).docker);
        assert!(wanted(&settings, None, Some(true)).docker);
        settings.boxes.docker = InnerDocker::On;
        assert!(wanted(&settings, None, None).docker);
        assert!(!wanted(&settings, None, Some(false)).docker);
        assert!(wanted(&settings, None, None).vnc);
        assert!(!wanted(&settings, Some(false), None).vnc);
    }
}
