//! Where a box's pushes go: the remotes it was registered with and the branch a person chose.
//!
//! Both are the host's: what a box writes into its own repository changes neither.

use crate::core::Core;
use crate::engine::control_error;
use connectors::git::BranchName;
use protocol::BoxId;
use protocol::control::{ControlError, ErrorCode, RemoteView, Remotes};
use relay::{Entry, TokenHash};
use std::sync::Arc;

impl Core {
    /// The registered remotes and those the project has now. `apply` takes the new ones.
    pub async fn remotes(
        self: &Arc<Self>,
        id: &BoxId,
        apply: bool,
    ) -> Result<Remotes, ControlError> {
        let usage = |text: &str| ControlError::new(ErrorCode::Usage, text);
        let mut record = self.record(id).ok_or_else(|| usage("the box is gone"))?;
        let Some(repo) = &mut record.repo else {
            return Err(usage("the box has no repository"));
        };
        let fresh = boxes::repo::inspect(&repo.toplevel).await.map_err(control_error)?;
        let fresh = fresh.ok_or_else(|| usage("the project is no repository any more"))?;
        let views = |remotes: &std::collections::BTreeMap<String, boxes::Remote>| {
            let view = |(name, urls): (&String, &boxes::Remote)| RemoteView {
                name: name.clone(),
                fetch: secrets::redact(&urls.fetch_url),
                push: secrets::redact(&urls.push_url),
            };
            remotes.iter().map(view).collect::<Vec<_>>()
        };
        let remotes = Remotes { registered: views(&repo.remotes), current: views(&fresh.remotes) };
        if apply && remotes.registered != remotes.current {
            repo.remotes = fresh.remotes;
            let summary = format!("Remotes of box {} refreshed", record.name);
            self.change(record, "box-changed", summary, serde_json::json!({ "remotes": remotes }))
                .await?;
        }
        Ok(remotes)
    }

    /// The branch a box's pushes go to at a remote; none is its own again.
    pub async fn set_branch(
        self: &Arc<Self>,
        id: &BoxId,
        branch: Option<String>,
    ) -> Result<(), ControlError> {
        let usage = |text: String| ControlError::new(ErrorCode::Usage, text);
        let mut record = self.record(id).ok_or_else(|| usage("the box is gone".into()))?;
        if record.branch.is_none() {
            return Err(usage("the box has no repository".into()));
        }
        if let Some(branch) = &branch {
            branch.parse::<BranchName>().map_err(|e| usage(e.to_string()))?;
        }
        record.publish = branch.filter(|b| Some(b) != record.branch.as_ref());
        let to = record.publish.clone().or_else(|| record.branch.clone()).unwrap_or_default();
        let summary = format!("Pushes of box {} go to {to}", record.name);
        self.change(record, "box-changed", summary, serde_json::json!({ "publish": to })).await
    }

    /// Keeps a changed record and lets the relay know. How the box gets out stays as it is by then,
    /// whenever the record was read: only [`Core::change_side`] changes that.
    pub(crate) async fn change(
        self: &Arc<Self>,
        record: boxes::Record,
        kind: &'static str,
        summary: String,
        data: serde_json::Value,
    ) -> Result<(), ControlError> {
        let _one = self.changing.lock().await;
        let record = match self.record(&record.id) {
            Some(boxes::Record { container, network, egress, files, .. }) => {
                boxes::Record { container, network, egress, files, ..record }
            }
            None => record,
        };
        self.put_record(record, kind, summary, data).await
    }

    /// The same for one that changes sides.
    pub(crate) async fn change_side(
        self: &Arc<Self>,
        record: boxes::Record,
        kind: &'static str,
        summary: String,
        data: serde_json::Value,
    ) -> Result<(), ControlError> {
        let _one = self.changing.lock().await;
        self.put_record(record, kind, summary, data).await
    }

    async fn put_record(
        self: &Arc<Self>,
        record: boxes::Record,
        kind: &'static str,
        summary: String,
        data: serde_json::Value,
    ) -> Result<(), ControlError> {
        let id = record.id.clone();
        let stored = self.store.boxes().await?.into_iter().find(|b| b.record.id == id);
        let gone = || ControlError::new(ErrorCode::Usage, "the box is gone");
        let token_hash = stored.ok_or_else(gone)?.token_hash;
        let entry = Entry { box_id: Some(id.clone()), kind, summary, data };
        self.store.record(entry).await?;
        let stored = crate::store::StoredBox { record: record.clone(), token_hash };
        self.store.put_box(stored).await?;
        if let Some(known) = self.state().boxes.get_mut(&id) {
            known.record = record.clone();
        }
        self.register_hash(&record, TokenHash::from_bytes(token_hash))?;
        self.reload_recorded(&record).await;
        self.send_view(&id);
        Ok(())
    }
}
