//! What the broker and the relay write goes to the store.

use crate::store::{Store, StoreError, in_words};
use approvals::{BoxFuture, Draft, Journal, JournalError, Wanted};
use protocol::QuestionId;
use protocol::question::{Grant, Outcome, Question};
use relay::{Entry, Trail, TrailError};
use std::time::Duration;

/// The store, as the two see it.
pub struct Written(pub Store);

fn lost(e: StoreError) -> JournalError {
    JournalError(e.to_string())
}

impl Journal for Written {
    fn asked<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { self.0.asked(question.clone()).await.map_err(lost) })
    }

    fn resolved<'a>(
        &'a self,
        id: &'a QuestionId,
        outcome: &'a Outcome,
        open_for: Duration,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.0.resolved(id.clone(), outcome.clone(), open_for).await.map_err(lost)
        })
    }

    fn refused<'a>(
        &'a self,
        draft: &'a Draft,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let entry = Entry {
                box_id: Some(draft.asker.box_id.clone()),
                kind: "not-asked",
                summary: format!("{}: {}", draft.title, in_words(outcome)),
                data: serde_json::json!({ "method": draft.method, "outcome": outcome }),
            };
            self.0.record(entry).await.map_err(lost)
        })
    }

    fn grant_for<'a>(
        &'a self,
        wanted: &'a Wanted<'a>,
    ) -> BoxFuture<'a, Result<Option<Grant>, JournalError>> {
        Box::pin(async move {
            let Wanted { asker, method, keys } = wanted;
            let (box_id, root) = (asker.box_id.clone(), asker.project_root.clone());
            let grant = self.0.grant_for(box_id, root, (*method).to_owned(), keys.to_vec()).await;
            let grant = grant.map_err(lost)?;
            if let Some(grant) = &grant {
                let entry = Entry {
                    box_id: Some(asker.box_id.clone()),
                    kind: "allowed-by-rule",
                    summary: format!("Allowed by a rule: {}", grant.sentence),
                    data: serde_json::json!({ "grant": grant.id, "scope": grant.scope, "method": method }),
                };
                self.0.record(entry).await.map_err(lost)?;
            }
            Ok(grant)
        })
    }

    fn remember<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { self.0.add_grant(grant.clone()).await.map_err(lost) })
    }
}

impl Trail for Written {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        Box::pin(async { self.0.record(entry).await.map_err(|e| TrailError(e.to_string())) })
    }

    fn jot(&self, entry: Entry) -> BoxFuture<'_, Result<(), TrailError>> {
        Box::pin(async { self.0.jot(entry).await.map_err(|e| TrailError(e.to_string())) })
    }
}
