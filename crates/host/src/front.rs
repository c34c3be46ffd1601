//! Boxes whose page a person has before them: what they see there needs no notification.
//!
//! It is a window's word, and holds for as long as the window keeps its connection: a window that is
//! closed, killed or loses the keyboard takes it back by leaving. It allows nothing and hides no
//! question.

use crate::api::Api;
use crate::core::Core;
use protocol::BoxId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Once for each window that shows one.
#[derive(Default)]
pub struct Front(Mutex<Vec<BoxId>>);

impl Front {
    fn lock(&self) -> MutexGuard<'_, Vec<BoxId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A box's page is before a person until this is dropped.
pub struct InFront {
    core: Arc<Core>,
    id: BoxId,
}

impl InFront {
    pub(crate) fn new(core: &Arc<Core>, id: BoxId) -> Self {
        tracing::debug!("the page of box {id} came to the front");
        core.front.lock().push(id.clone());
        Self { core: core.clone(), id }
    }
}

impl Drop for InFront {
    fn drop(&mut self) {
        let mut front = self.core.front.lock();
        if let Some(at) = front.iter().position(|id| *id == self.id) {
            front.swap_remove(at);
        }
        drop(front);
        tracing::debug!("the page of box {} left the front", self.id);
    }
}

impl Api {
    /// A person sees this box's page right now. Nobody sees anything on a locked screen.
    pub fn is_in_front(&self, id: &BoxId) -> bool {
        let core = self.core();
        !core.broker.is_locked() && core.front.lock().contains(id)
    }

    pub(crate) fn in_front(&self, id: BoxId) -> InFront {
        InFront::new(self.core(), id)
    }
}
