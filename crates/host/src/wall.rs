//! Boxes without a network: that they have none, and how one changes sides.
//!
//! A box in which a way out was found is stopped by the time anybody hears of it. Here it is told: to
//! whoever started it, in the notices, in the audit trail.

use crate::api::Api;
use crate::core::Core;
use crate::engine::control_error;
use boxes::{Record, Watcher};
use protocol::BoxId;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{ControlError, ErrorCode, Notice, Target};
use protocol::egress::EgressMode;
use relay::Entry;
use std::sync::Arc;

type Reply<T> = Result<T, ControlError>;

/// The notice's part, one for each box.
fn part(record: &Record) -> String {
    format!("egress_unsafe {}", record.name)
}

impl Api {
    /// Gives a box another way out. The caller has asked the person where that stops the box.
    pub async fn switch_egress(
        &self,
        target: Target,
        mode: EgressMode,
        watcher: Watcher,
    ) -> Reply<BoxView> {
        let id = self.find(&target)?;
        let turn = self.core().turn(&id).await?;
        // To its end, whoever goes away meanwhile: a box has one container before and one after.
        let (core, of) = (self.core().clone(), id.clone());
        let switched = core.tasks.clone().spawn(async move {
            let _turn = turn;
            core.switch_egress(&of, mode, &watcher).await
        });
        switched.await.map_err(|e| ControlError::new(ErrorCode::Failed, e.to_string()))??;
        let view = self.view(&id)?;
        self.core().mode_changed(&view).await;
        Ok(view)
    }
}

impl Core {
    /// What came of starting a box, told where a way out was found that must not be there.
    pub(crate) async fn proven(
        &self,
        record: &Record,
        started: Result<(), boxes::Error>,
    ) -> Reply<()> {
        match started {
            Ok(()) => self.clear_unsafe(record),
            Err(error) => {
                self.note_unsafe(record, &error).await;
                return Err(control_error(error));
            }
        }
        Ok(())
    }

    pub(crate) async fn note_unsafe(&self, record: &Record, error: &boxes::Error) {
        let boxes::Error::EgressUnsafe(found) = error else { return };
        tracing::error!("box {}: {error}", record.name);
        self.set_box_state(&record.id, BoxState::Stopped);
        let message = format!("box {} was stopped: {error}", record.name);
        let notice = Notice { part: part(record), message, hint: error.hint() };
        self.state().notices.insert(notice.part.clone(), notice);
        self.send_status();
        let entry = Entry {
            box_id: Some(record.id.clone()),
            kind: "egress-unsafe",
            summary: format!("Box {} was stopped: it had a way around its policy", record.name),
            data: serde_json::json!({ "found": found, "mode": record.egress }),
        };
        if let Err(e) = self.store.record(entry).await {
            tracing::error!("that box {} was stopped is not on record: {e}", record.name);
        }
    }

    /// It is proven again that nothing leads around.
    fn clear_unsafe(&self, record: &Record) {
        if self.state().notices.remove(&part(record)).is_some() {
            self.send_status();
        }
    }

    /// Gives a box another way out; the caller has asked the person and holds the box's turn. One that
    /// gets or loses its network is stopped for that, and started again if it ran. Whatever fails leaves
    /// it with the way out it had, stopped at worst.
    async fn switch_egress(
        self: &Arc<Self>,
        id: &BoxId,
        mode: EgressMode,
        watcher: &Watcher,
    ) -> Reply<()> {
        let (boxes, before) = self.reach(id).await?;
        if before.egress == mode {
            return Ok(());
        }
        if before.egress.is_controlled() == mode.is_controlled() {
            return self.note_switch(&before, Record { egress: mode, ..before.clone() }).await;
        }
        if self.is_busy(id) {
            let text = format!("{} is being captured", before.name);
            return Err(ControlError::new(ErrorCode::Failed, text).hint("try again in a moment."));
        }
        let state = boxes.state_of(&before).await.map_err(control_error)?;
        if state != BoxState::Stopped {
            boxes.stop(&before).await.map_err(control_error)?;
            self.set_box_state(id, BoxState::Stopped);
        }
        let ctl = crate::ctl_binary();
        let remade = boxes.remake(&before, mode, ctl.as_deref(), watcher).await;
        let after = remade.map_err(control_error)?.record;
        let switched = async {
            self.note_switch(&before, after.clone()).await?;
            if state == BoxState::Stopped { Ok(()) } else { self.start_box(id).await }
        };
        // Whichever of the two counts, the other one goes.
        let (counts, switched) = match switched.await {
            Ok(()) => (after, Ok(())),
            Err(why) => self.take_back_switch(after, before, why).await,
        };
        if let Err(e) = boxes.tidy(&counts).await {
            // The next look at the engine finds it again.
            tracing::warn!("box {} has a container too many: {e}", counts.name);
        }
        switched
    }

    async fn note_switch(self: &Arc<Self>, before: &Record, after: Record) -> Reply<()> {
        let (from, to) = (before.egress.as_str(), after.egress.as_str());
        let summary = format!("Box {} goes out by {to}, not {from}", after.name);
        let data = serde_json::json!({ "from": from, "to": to });
        self.change_side(after, "egress-mode", summary, data).await
    }

    /// The box as it was, and why it is not as wanted. Where not even that can be written down, what is
    /// on disk counts.
    async fn take_back_switch(
        self: &Arc<Self>,
        after: Record,
        before: Record,
        why: ControlError,
    ) -> (Record, Reply<()>) {
        self.set_box_state(&before.id, BoxState::Stopped);
        if let Err(e) = self.note_switch(&after, before.clone()).await {
            return (after, Err(e));
        }
        let name = &before.name;
        let why = why.hint(format!("{name} is as it was, and stopped: agentbox start {name}."));
        (before, Err(why))
    }
}
