//! Questions, how they ended, and the rules people made at them.

use super::audit::append;
use super::{Result, Store, now, signed};
use protocol::question::{Grant, Outcome, Question, Reach};
use protocol::{BoxId, GrantId, QuestionId};
use relay::Entry;
use rusqlite::{Connection, OptionalExtension, params};
use std::time::Duration;

impl Store {
    /// Writes the question and its line in the trail, together.
    pub async fn asked(&self, question: Question) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            let at = signed(question.created_at);
            tx.execute(
                "INSERT INTO approvals (id, box_id, question, asked_at) VALUES (?1, ?2, ?3, ?4)",
                params![
                    question.id.as_str(),
                    question.box_id.as_str(),
                    serde_json::to_string(&question)?,
                    at
                ],
            )?;
            let entry = Entry {
                box_id: Some(question.box_id.clone()),
                kind: "asked",
                summary: format!("{} asks: {}", question.box_name, question.title),
                data: serde_json::json!({
                    "question": question.id, "method": question.method, "argv": question.argv,
                    "target": question.target, "digest": question.digest,
                }),
            };
            append(&tx, &entry)?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// Writes how a question ended, once.
    pub async fn resolved(&self, id: QuestionId, outcome: Outcome, open: Duration) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            end_question(&tx, &id, &outcome, Some(open))?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// Questions that were open when the host was killed are a no. How many there were.
    pub async fn close_lost_questions(&self) -> Result<usize> {
        self.run(|conn| {
            let tx = conn.transaction()?;
            let ids: Vec<String> = {
                let mut query = tx.prepare("SELECT id FROM approvals WHERE outcome IS NULL")?;
                query.query_map([], |r| r.get(0))?.collect::<rusqlite::Result<_>>()?
            };
            for id in ids.iter().filter_map(|id| id.parse().ok()) {
                end_question(&tx, &id, &Outcome::HostStopped, None)?;
            }
            tx.commit()?;
            Ok(ids.len())
        })
        .await
    }

    /// A rule that holds now, covers one of the scopes and reaches this box.
    pub async fn grant_for(
        &self,
        box_id: BoxId,
        project_root: String,
        method: String,
        scopes: Vec<String>,
    ) -> Result<Option<Grant>> {
        self.run(move |conn| {
            let mut query = conn.prepare_cached(
                "SELECT rule FROM grants WHERE method = ?1 AND scope = ?2 AND expires_at > ?3 AND (
                 (reach = 'box' AND box_id = ?4) OR (reach = 'project' AND project_root = ?5)
                 OR reach = 'everywhere') LIMIT 1",
            )?;
            for scope in scopes {
                let wanted = params![method, scope, signed(now()), box_id.as_str(), project_root];
                let rule: Option<String> = query.query_row(wanted, |r| r.get(0)).optional()?;
                if let Some(rule) = rule {
                    return Ok(Some(serde_json::from_str(&rule)?));
                }
            }
            Ok(None)
        })
        .await
    }

    pub async fn add_grant(&self, grant: Grant) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            tx.execute(
                "INSERT INTO grants VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    grant.id.as_str(),
                    grant.box_id.as_str(),
                    grant.method,
                    grant.scope,
                    serde_json::to_string(&grant)?,
                    signed(grant.expires_at),
                    reach(grant.reach),
                    grant.project_root
                ],
            )?;
            let entry = Entry {
                box_id: Some(grant.box_id.clone()),
                kind: "rule-made",
                summary: format!("Rule: {}", grant.sentence),
                data: serde_json::json!({ "grant": grant.id, "expiresAt": grant.expires_at }),
            };
            append(&tx, &entry)?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// Rules that still hold, newest first.
    pub async fn grants(&self) -> Result<Vec<Grant>> {
        self.run(|conn| {
            let mut query =
                conn.prepare("SELECT rule FROM grants WHERE expires_at > ?1 ORDER BY rowid DESC")?;
            let rows = query.query_map([signed(now())], |r| r.get::<_, String>(0))?;
            rows.map(|r| Ok(serde_json::from_str(&r?)?)).collect()
        })
        .await
    }

    /// True when there was such a rule.
    pub async fn revoke(&self, id: GrantId) -> Result<bool> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            let rule: Option<String> = tx
                .query_row("SELECT rule FROM grants WHERE id = ?1", [id.as_str()], |r| r.get(0))
                .optional()?;
            let Some(rule) = rule else { return Ok(false) };
            let grant: Grant = serde_json::from_str(&rule)?;
            tx.execute("DELETE FROM grants WHERE id = ?1", [id.as_str()])?;
            let entry = Entry {
                box_id: Some(grant.box_id),
                kind: "rule-removed",
                summary: format!("Rule removed: {}", grant.sentence),
                data: serde_json::json!({ "grant": id }),
            };
            append(&tx, &entry)?;
            tx.commit()?;
            Ok(true)
        })
        .await
    }
}

fn reach(reach: Reach) -> &'static str {
    match reach {
        Reach::Box => "box",
        Reach::Project => "project",
        Reach::Everywhere => "everywhere",
    }
}

fn end_question(
    tx: &Connection,
    id: &QuestionId,
    outcome: &Outcome,
    open: Option<Duration>,
) -> Result<()> {
    let open_ms = open.and_then(|d| i64::try_from(d.as_millis()).ok());
    let question: Option<String> = tx
        .query_row(
            "UPDATE approvals SET outcome = ?2, open_ms = ?3 WHERE id = ?1 AND outcome IS NULL RETURNING question",
            params![id.as_str(), serde_json::to_string(outcome)?, open_ms],
            |r| r.get(0),
        )
        .optional()?;
    let Some(question) = question else { return Ok(()) };
    let question: Question = serde_json::from_str(&question)?;
    // The trail has what was asked; the whole of it was only for whoever had to answer.
    tx.execute("UPDATE approvals SET question = '' WHERE id = ?1", [id.as_str()])?;
    let entry = Entry {
        box_id: Some(question.box_id),
        kind: "answered",
        summary: format!("{}: {}", question.title, in_words(outcome)),
        data: serde_json::json!({
            "question": id, "outcome": outcome, "openMs": open_ms, "digest": question.digest,
        }),
    };
    append(tx, &entry)
}

/// How a question ended, for the trail.
pub fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Allowed { by } => format!("allowed ({})", by.as_str()),
        Outcome::Granted { .. } => "allowed by a rule".into(),
        Outcome::Without { by } => format!("goes on without these files ({})", by.as_str()),
        Outcome::Denied { by } => format!("denied ({})", by.as_str()),
        Outcome::Expired => "no answer in time, denied".into(),
        Outcome::Withdrawn => "withdrawn, the command in the box ended".into(),
        Outcome::HostStopped => "the host stopped, denied".into(),
        Outcome::TooMany => "asked too often, denied".into(),
        Outcome::Muted => "the box is muted, denied".into(),
        Outcome::Nobody => "nobody watched, denied".into(),
    }
}
