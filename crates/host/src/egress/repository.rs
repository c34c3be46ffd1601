//! What a repository asks for: `.agentbox/egress.yaml` of a commit that has come to this computer.
//!
//! A box can write that file and commit it, so it is a request and nothing else. It counts at a text a
//! person has said yes to, byte for byte, for this project; any other text is left out, shown and waits.

use super::{Reply, Who};
use crate::core::Core;
use egress::policy::{Layer, LayerText};
use protocol::control::{ControlError, ErrorCode, Notice};
use protocol::egress::{LayerState, RepositoryPolicy};
use protocol::text::{shortened, visible};
use relay::Entry;
use sha2::{Digest, Sha256};
use std::sync::Arc;

pub const FILE: &str = ".agentbox/egress.yaml";
const MOST: u64 = 1 << 20;
/// Of a difference, in lines and each line.
const MOST_LINES: usize = 400;
const LONGEST: usize = 200;

/// A repository's request, with its text.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub view: RepositoryPolicy,
    text: String,
    /// All of it can be shown.
    whole: bool,
}

/// The notice's part, one for each box.
fn part(who: &Who) -> String {
    format!("egress-request {}", who.name)
}

impl Core {
    /// What the box's branch asks for; none when it asks for nothing.
    pub(crate) async fn repository_asks(&self, who: &Who) -> Reply<Option<Asked>> {
        let Some(branch) = &who.branch else { return Ok(None) };
        let found = boxes::committed_file(&who.root, branch, FILE, MOST).await;
        let Some(file) = found.map_err(crate::engine::control_error)? else { return Ok(None) };
        let Ok(text) = String::from_utf8(file.bytes) else { return Ok(None) };
        let digest: String =
            Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        let root = who.root.to_string_lossy().into_owned();
        let said = self.store.repository_said(root.clone(), digest.clone()).await?;
        let before = self.store.repository_accepted(root).await?.unwrap_or_default();
        let state = match said {
            Some(true) => LayerState::InForce,
            Some(false) => LayerState::Refused,
            None => LayerState::Waiting,
        };
        let (diff, whole) = match state {
            LayerState::InForce => (Vec::new(), true),
            _ => diff(&before, &text),
        };
        let view = RepositoryPolicy { file: FILE.into(), commit: file.commit, digest, state, diff };
        Ok(Some(Asked { view, text, whole }))
    }

    /// The request as a layer, where a person said yes to it. People are told of one that waits.
    pub(super) async fn repository_layer(&self, who: &Who) -> Option<LayerText> {
        let asked = match self.repository_asks(who).await {
            Ok(asked) => asked,
            Err(e) => {
                tracing::warn!(
                    "what the repository of {} asks for is not known: {}",
                    who.name,
                    e.message
                );
                None
            }
        };
        let waits = asked.as_ref().is_some_and(|a| a.view.state == LayerState::Waiting);
        self.tell_of_request(who, waits);
        let asked = asked.filter(|asked| asked.view.state == LayerState::InForce)?;
        Some(LayerText { layer: Layer::Repository, file: FILE.to_owned(), text: asked.text })
    }

    fn tell_of_request(&self, who: &Who, waits: bool) {
        let part = part(who);
        let changed = if waits {
            let message = format!("{} asks in {FILE} to reach more of the network", who.name);
            let hint = Some(format!("agentbox egress repository {}", who.name));
            let notice = Notice { part: part.clone(), message, hint };
            self.state().notices.insert(part, notice).is_none()
        } else {
            self.state().notices.remove(&part).is_some()
        };
        if changed {
            self.send_status();
        }
    }

    /// A person's word on one text of it.
    pub(super) async fn answer_repository(
        self: &Arc<Self>,
        who: &Who,
        digest: &str,
        accept: bool,
    ) -> Reply<()> {
        let asked = self.repository_asks(who).await?.ok_or_else(|| {
            ControlError::new(ErrorCode::Usage, format!("the repository has no {FILE}"))
        })?;
        if asked.view.digest != digest {
            let text = format!("{FILE} is another one by now");
            return Err(ControlError::new(ErrorCode::DigestMismatch, text)
                .hint("look at it again before you answer."));
        }
        // Nor is one for anybody to agree to that nobody was shown to its end.
        if accept && !asked.whole {
            let text = format!(
                "{FILE} cannot be shown whole: at most {MOST_LINES} lines of {LONGEST} characters are"
            );
            return Err(ControlError::new(ErrorCode::Usage, text)
                .hint("agentbox egress edit takes what you want of it into your own file."));
        }
        // A text that is no policy is not for anybody to agree to.
        if accept {
            let layers = vec![LayerText {
                layer: Layer::Repository,
                file: FILE.to_owned(),
                text: asked.text.clone(),
            }];
            let inputs = egress::policy::Inputs { layers, ..egress::policy::Inputs::default() };
            egress::policy::render(&inputs)
                .map_err(|problems| ControlError::new(ErrorCode::Usage, problems.to_string()))?;
        }
        let root = who.root.to_string_lossy().into_owned();
        self.store.say_of_repository(root, digest.to_owned(), asked.text, accept).await?;
        let verb = if accept { "accepted" } else { "refused" };
        let entry = Entry {
            box_id: Some(who.id.clone()),
            kind: "egress-repository",
            summary: format!("What {FILE} asks for was {verb}"),
            data: serde_json::json!({ "digest": digest, "commit": asked.view.commit, "accepted": accept }),
        };
        self.store.record(entry).await?;
        let root = who.root.clone();
        self.reload_ways(|other| other.root == root).await;
        Ok(())
    }
}

/// Line by line, what goes and what comes. Made visible and bounded; whether nothing was left out for that.
fn diff(before: &str, after: &str) -> (Vec<String>, bool) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same_first = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new, first) = (&old[same_first..], &new[same_first..], &new[..same_first]);
    let same_last = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (gone, come) = (&old[..old.len() - same_last], &new[..new.len() - same_last]);
    let line = |mark: char, text: &str| format!("{mark}{}", shortened(&visible(text), LONGEST));
    let mut whole = new.iter().chain(first).all(|text| visible(text).chars().count() <= LONGEST);
    let mut all: Vec<String> = Vec::new();
    all.extend(first.iter().map(|text| line(' ', text)));
    all.extend(gone.iter().map(|text| line('-', text)));
    all.extend(come.iter().map(|text| line('+', text)));
    all.extend(new[come.len()..].iter().map(|text| line(' ', text)));
    if all.len() > MOST_LINES {
        let more = all.len() - MOST_LINES;
        all.truncate(MOST_LINES);
        all.push(format!(" … and {more} more lines"));
        whole = false;
    }
    (all, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_goes_and_what_comes_and_hides_nothing() {
        let shown = diff(
            "domains:\n- a.ex.com\n- b.ex.com\n",
            "domains:\n- evil\u{202e}.ex.com\n- b.ex.com\n",
        );
        let lines = [" domains:", "-- a.ex.com", "+- evil⟨U+202E⟩.ex.com", " - b.ex.com"];
        assert_eq!(shown, (lines.map(str::to_owned).to_vec(), true));
        assert_eq!(diff("", "a\n"), (vec!["+a".to_owned()], true));
        let (long, whole) = diff("", &"x\n".repeat(900));
        assert_eq!((long.len(), whole), (MOST_LINES + 1, false));
        let (_, whole) = diff("", &format!("domains: [{}]\n", "a.ex.com, ".repeat(50)));
        assert!(!whole, "a line that is cut is not shown whole");
    }
}
