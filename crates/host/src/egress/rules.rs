//! Rules that people made for boxes at questions and by commands, kept with all other rules.

use super::Who;
use crate::core::Core;
use approvals::Asker;
use egress::gate::METHOD;
use egress::new_rule::NewRule;
use protocol::control::{ControlError, ErrorCode};
use protocol::question::{Grant, Reach, Remember};
use protocol::{BoxId, GrantId};
use std::time::Duration;

impl Core {
    /// Those that hold for a box now. One that cannot be read is not in force.
    pub(super) async fn new_rules(&self, who: &Who) -> Vec<NewRule> {
        let grants = self.egress_grants(who).await.unwrap_or_else(|e| {
            tracing::error!("rules of box {} cannot be read: {}", who.name, e.message);
            Vec::new()
        });
        grants.iter().filter_map(|grant| NewRule::parse(&grant.scope)).collect()
    }

    pub(super) async fn egress_grants(&self, who: &Who) -> Result<Vec<Grant>, ControlError> {
        let root = who.root.to_string_lossy();
        let mut all = self.store.grants().await?;
        all.retain(|grant| {
            grant.method == METHOD
                && match grant.reach {
                    Reach::Box => grant.box_id == who.id,
                    Reach::Project => grant.project_root == root,
                    Reach::Everywhere => true,
                }
        });
        Ok(all)
    }

    /// Keeps a rule in the list of rules, and has it in force when this returns.
    pub(super) async fn keep_rule(
        self: &std::sync::Arc<Self>,
        of: &BoxId,
        rule: &NewRule,
        reach: Reach,
        time: Duration,
        sentence: String,
    ) -> Result<GrantId, ControlError> {
        let record = self.record(of);
        let record =
            record.ok_or_else(|| ControlError::new(ErrorCode::Usage, "the box is gone"))?;
        let now = crate::store::now();
        let time = time.min(Duration::from_secs(Remember::ALWAYS));
        let grant = Grant {
            id: GrantId::from_bytes(crate::create::random()?),
            box_id: record.id.clone(),
            box_name: record.name.clone(),
            method: METHOD.to_owned(),
            scope: rule.to_text(),
            sentence,
            created_at: now,
            expires_at: now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            reach,
            project: protocol::text::visible(&record.project),
            project_root: record.project_root.to_string_lossy().into_owned(),
        };
        let (id, expires) = (grant.id.clone(), time);
        self.store.add_grant(grant).await?;
        self.reload_reached(of, reach).await;
        self.reload_when_over(of, reach, expires);
        Ok(id)
    }

    async fn reload_reached(self: &std::sync::Arc<Self>, of: &BoxId, reach: Reach) {
        let root = self.record(of).map(|record| record.project_root);
        self.reload_ways(|who| match reach {
            Reach::Box => who.id == *of,
            Reach::Project => Some(&who.root) == root.as_ref(),
            Reach::Everywhere => true,
        })
        .await;
    }

    /// A rule that ends is taken out when it does.
    fn reload_when_over(self: &std::sync::Arc<Self>, of: &BoxId, reach: Reach, time: Duration) {
        if time >= Duration::from_secs(Remember::ALWAYS) {
            return;
        }
        let (core, of) = (self.clone(), of.clone());
        self.tasks.spawn_on(
            async move {
                tokio::select! {
                    () = core.stop.cancelled() => {}
                    () = tokio::time::sleep(time) => core.reload_reached(&of, reach).await,
                }
            },
            &self.runtime,
        );
    }

    pub(crate) fn asker(&self, id: &BoxId) -> Option<Asker> {
        let record = self.record(id)?;
        Some(Asker {
            box_id: record.id,
            box_name: record.name,
            project: protocol::text::visible(&record.project),
            project_root: record.project_root.to_string_lossy().into_owned(),
        })
    }
}
