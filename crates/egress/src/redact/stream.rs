//! Looking through a body that comes in pieces, without holding it up.

use super::{Kind, Patterns};
use bytes::Bytes;
use protocol::SecretId;
use std::sync::Arc;

/// Overwrites credentials in a body on its way to a box. Only what could be the beginning of one is held
/// back until more has come.
pub(crate) struct Masker {
    patterns: Arc<Patterns>,
    /// As it came, and which bytes of it a spelling has covered already.
    held: Vec<u8>,
    covered: Vec<bool>,
    /// Whose were found.
    pub found: Vec<SecretId>,
}

impl Masker {
    pub fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, held: Vec::new(), covered: Vec::new(), found: Vec::new() }
    }

    pub fn pass(&mut self, piece: Bytes) -> Bytes {
        if self.held.is_empty() && self.patterns.unfinished(&piece) == 0 && !self.has_secret(&piece)
        {
            return piece;
        }
        self.held.extend_from_slice(&piece);
        self.covered.resize(self.held.len(), false);
        self.cover();
        let keep = self.patterns.unfinished(&self.held);
        self.let_go(self.held.len() - keep)
    }

    /// The rest, when nothing more will come.
    pub fn finish(&mut self) -> Bytes {
        self.let_go(self.held.len())
    }

    /// How much is held back.
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    fn has_secret(&self, bytes: &[u8]) -> bool {
        self.patterns.find(bytes).iter().any(|kind| matches!(kind, Kind::Secret(_)))
    }

    fn cover(&mut self) {
        for (place, kind) in self.patterns.places(&self.held) {
            if let Kind::Secret(id) = kind {
                self.covered[place].fill(true);
                if !self.found.contains(id) {
                    self.found.push(id.clone());
                }
            }
        }
    }

    fn let_go(&mut self, n: usize) -> Bytes {
        let covered = self.covered.drain(..n);
        let bytes = self.held.drain(..n).zip(covered);
        bytes.map(|(byte, covered)| if covered { b'*' } else { byte }).collect()
    }
}

/// What was found in what a box sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Secret(SecretId),
    /// At a host that has no rule for it.
    Placeholder(SecretId),
}

impl Patterns {
    /// The first thing in it that must not go to a host with rules for these credentials.
    pub fn misplaced(&self, bytes: &[u8], at_home: &[SecretId]) -> Option<Found> {
        self.find(bytes).into_iter().find_map(|kind| match kind {
            Kind::Secret(id) => Some(Found::Secret(id.clone())),
            Kind::Placeholder(id) if at_home.contains(id) => None,
            Kind::Placeholder(id) => Some(Found::Placeholder(id.clone())),
        })
    }
}
