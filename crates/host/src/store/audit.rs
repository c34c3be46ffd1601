//! The audit trail: appended to, chained by hash, never changed.

use super::{Job, Record, Result, SYNC_AFTER, Store, StoreError, now, signed};
use protocol::audit::{AuditRecord, AuditVerdict};
use protocol::{BoxId, Millis};
use relay::Entry;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

/// What the records of one answer may weigh: boxes have a say in how long they are.
const MAX_WEIGHT: usize = 3 * 1024 * 1024;

/// Which records are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub box_id: Option<BoxId>,
    pub kinds: Vec<String>,
    pub since: Option<Millis>,
    pub until: Option<Millis>,
    pub text: Option<String>,
    pub after: Option<u64>,
    pub limit: u32,
}

impl Store {
    /// On disk when this returns.
    pub async fn record(&self, entry: Entry) -> Result<()> {
        self.append(entry, true).await
    }

    /// Out of this process when this returns, and on disk a second later.
    pub async fn jot(&self, entry: Entry) -> Result<()> {
        self.append(entry, false).await?;
        if !self.sync_due.swap(true, Ordering::AcqRel) {
            let store = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(SYNC_AFTER).await;
                store.sync_due.store(false, Ordering::Release);
                let _ = store.jobs.send(Job::Sync).await;
            });
        }
        Ok(())
    }

    async fn append(&self, entry: Entry, synced: bool) -> Result<()> {
        let (done, rx) = oneshot::channel();
        let record = Record { entry, synced, done };
        self.jobs.send(Job::Record(record)).await.map_err(|_| StoreError::Gone)?;
        rx.await.map_err(|_| StoreError::Gone)?
    }

    /// The newest records that fit, oldest first; after a given record, the first ones that fit. Fewer
    /// than asked for when they are long: whoever wants all of them asks again after the last.
    pub async fn audit(&self, filter: Filter) -> Result<Vec<AuditRecord>> {
        self.run(move |conn| {
            let forward = filter.after.is_some();
            let order = if forward { "ASC" } else { "DESC" };
            let mut query = conn.prepare(&format!(
                "SELECT seq, at, box_id, kind, summary, data, hash FROM audit
                 WHERE (?1 IS NULL OR box_id = ?1) AND (?2 IS NULL OR at >= ?2)
                 AND (?3 IS NULL OR at < ?3) AND (?4 IS NULL OR seq > ?4)
                 AND (?5 = '[]' OR kind IN (SELECT value FROM json_each(?5)))
                 AND (?6 IS NULL OR instr(lower(summary), lower(?6)) > 0)
                 ORDER BY seq {order} LIMIT ?7"
            ))?;
            let wanted = params![
                filter.box_id.as_ref().map(BoxId::as_str),
                filter.since.map(signed),
                filter.until.map(signed),
                filter.after.map(signed),
                serde_json::to_string(&filter.kinds)?,
                filter.text,
                filter.limit
            ];
            let mut rows = query.query(wanted)?;
            let (mut records, mut weight) = (Vec::new(), 0);
            while let Some(r) = rows.next()? {
                let raw = row(r)?;
                weight += raw.summary.len() + raw.data.len();
                if weight > MAX_WEIGHT && !records.is_empty() {
                    break;
                }
                records.push(parsed(raw)?);
            }
            if !forward {
                records.reverse();
            }
            Ok(records)
        })
        .await
    }

    /// Walks the whole chain.
    pub async fn verify(&self) -> Result<AuditVerdict> {
        self.run(|conn| {
            let mut query = conn.prepare(
                "SELECT seq, at, box_id, kind, summary, data, hash FROM audit ORDER BY seq",
            )?;
            let mut rows = query.query([])?;
            let mut verdict = AuditVerdict { records: 0, broken: None };
            let mut last = String::new();
            while let Some(r) = rows.next()? {
                let raw = row(r)?;
                verdict.records += 1;
                let expected = chain(&last, &raw);
                if raw.seq != i64::try_from(verdict.records).unwrap_or(i64::MAX) {
                    verdict.broken = Some(format!("record {} is missing", verdict.records));
                    break;
                }
                if raw.hash != expected {
                    verdict.broken = Some(format!("record {} was changed", raw.seq));
                    break;
                }
                last = raw.hash;
            }
            let head: Option<(i64, String)> = conn
                .query_row("SELECT value FROM meta WHERE key = 'audit-head'", [], |r| {
                    r.get::<_, String>(0)
                })
                .optional()?
                .and_then(|v| {
                    v.split_once(' ').map(|(n, h)| (n.parse().unwrap_or(0), h.to_owned()))
                });
            let cut = head.is_some_and(|(n, h)| n > 0 && h != last && verdict.broken.is_none());
            if cut {
                verdict.broken = Some("the newest records are missing".into());
            }
            Ok(verdict)
        })
        .await
    }
}

struct Raw {
    seq: i64,
    at: i64,
    box_id: Option<String>,
    kind: String,
    summary: String,
    data: String,
    hash: String,
}

fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        seq: r.get(0)?,
        at: r.get(1)?,
        box_id: r.get(2)?,
        kind: r.get(3)?,
        summary: r.get(4)?,
        data: r.get(5)?,
        hash: r.get(6)?,
    })
}

fn parsed(raw: Raw) -> Result<AuditRecord> {
    Ok(AuditRecord {
        seq: u64::try_from(raw.seq).unwrap_or(0),
        at: u64::try_from(raw.at).unwrap_or(0),
        box_id: raw.box_id.and_then(|id| id.parse().ok()),
        kind: raw.kind,
        summary: raw.summary,
        data: serde_json::from_str(&raw.data)?,
        hash: raw.hash,
    })
}

pub(super) fn append(tx: &Connection, entry: &Entry) -> Result<()> {
    let last: Option<(i64, String)> = tx
        .query_row("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1", [], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .optional()?;
    let (seq, last) = last.unwrap_or_default();
    let mut raw = Raw {
        seq: seq + 1,
        at: signed(now()),
        box_id: entry.box_id.as_ref().map(ToString::to_string),
        kind: entry.kind.to_owned(),
        summary: entry.summary.clone(),
        data: entry.data.to_string(),
        hash: String::new(),
    };
    raw.hash = chain(&last, &raw);
    tx.execute(
        "INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![raw.seq, raw.at, raw.box_id, raw.kind, raw.summary, raw.data, raw.hash],
    )?;
    // Where the chain ends is kept beside it, so that cutting off its end is noticed too.
    tx.execute(
        "INSERT INTO meta VALUES ('audit-head', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [format!("{} {}", raw.seq, raw.hash)],
    )?;
    Ok(())
}

/// Every field with its length before it: no two records have the same bytes.
fn chain(last: &str, raw: &Raw) -> String {
    let mut hasher = Sha256::new();
    let (seq, at) = (raw.seq.to_string(), raw.at.to_string());
    let fields =
        [last, &seq, &at, raw.box_id.as_deref().unwrap_or(""), &raw.kind, &raw.summary, &raw.data];
    for field in fields {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field.as_bytes());
    }
    hasher.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
