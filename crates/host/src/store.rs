//! SQLite: boxes, approvals, grants, the audit trail.
//!
//! One thread owns the connection; everybody else sends it closures. A write is on disk before its
//! caller goes on (`synchronous = FULL`), so that killing the host at any moment loses nothing
//! that was acted upon. The trail is chained by hash in the same transaction that appends to it.

use protocol::audit::{AuditRecord, AuditVerdict};
use protocol::question::{Grant, Outcome, Question};
use protocol::{BoxId, GrantId, Millis, QuestionId};
use relay::Entry;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the database holds something unreadable: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the database was made by a newer AgentBox (schema {0}); update AgentBox")]
    TooNew(u32),
    #[error("the database thread has ended")]
    Gone,
}

type Result<T> = std::result::Result<T, StoreError>;
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle on the database thread. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
}

/// A box as it is kept: its record, and the hash of the token of its last start.
#[derive(Debug, Clone)]
pub struct StoredBox {
    pub record: boxes::Record,
    pub token_hash: [u8; 32],
}

/// Forward only; the number of applied steps is SQLite's `user_version`.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE projects (root TEXT PRIMARY KEY, last_index INTEGER NOT NULL) STRICT;
    CREATE TABLE boxes (
        id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, record TEXT NOT NULL, token_hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY, box_id TEXT NOT NULL, question TEXT NOT NULL, asked_at INTEGER NOT NULL,
        outcome TEXT, open_ms INTEGER
    ) STRICT;
    CREATE INDEX approvals_open ON approvals (id) WHERE outcome IS NULL;
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, box_id TEXT NOT NULL, method TEXT NOT NULL, scope TEXT NOT NULL,
        rule TEXT NOT NULL, expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, box_id TEXT, kind TEXT NOT NULL,
        summary TEXT NOT NULL, data TEXT NOT NULL, hash TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_box ON audit (box_id, seq);
",
    "CREATE TABLE making (id TEXT PRIMARY KEY, workspace TEXT NOT NULL) STRICT;",
];

impl Store {
    /// Opens or makes the database and starts its thread, which ends with the last handle.
    pub fn open(path: &Path) -> Result<Self> {
        let mut conn = Connection::open(path)?;
        conn.busy_timeout(Duration::from_secs(5))?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        conn.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut conn)?;
        let (jobs, mut inbox) = mpsc::channel::<Job>(256);
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                while let Some(job) = inbox.blocking_recv() {
                    job(&mut conn);
                }
            })
            .map_err(|_| StoreError::Gone)?;
        Ok(Self { jobs })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tx, rx) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            let _ = tx.send(work(conn));
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Gone)?;
        rx.await.map_err(|_| StoreError::Gone)?
    }

    /// This installation's id, made at the first start. It labels everything on the engine.
    pub async fn install_id(&self, fresh: String) -> Result<String> {
        self.run(move |conn| {
            conn.execute("INSERT OR IGNORE INTO meta VALUES ('install', ?1)", [fresh])?;
            Ok(conn.query_row("SELECT value FROM meta WHERE key = 'install'", [], |r| r.get(0))?)
        })
        .await
    }

    /// The next number in a project. Never given twice, whatever becomes of the box.
    pub async fn next_index(&self, root: &Path) -> Result<u32> {
        let root = root.to_string_lossy().into_owned();
        self.run(move |conn| {
            Ok(conn.query_row(
                "INSERT INTO projects VALUES (?1, 1)
                 ON CONFLICT (root) DO UPDATE SET last_index = last_index + 1 RETURNING last_index",
                [root],
                |r| r.get(0),
            )?)
        })
        .await
    }

    pub async fn boxes(&self) -> Result<Vec<StoredBox>> {
        self.run(|conn| {
            let mut query = conn.prepare("SELECT record, token_hash FROM boxes")?;
            let rows = query.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get(1)?)))?;
            rows.map(|row| {
                let (record, token_hash) = row?;
                Ok(StoredBox { record: serde_json::from_str(&record)?, token_hash })
            })
            .collect()
        })
        .await
    }

    /// A box is about to be made on the engine: should this host end now, the next one knows what
    /// to take back.
    pub async fn begin_box(&self, id: &BoxId, workspace: &Path) -> Result<()> {
        let row = [id.to_string(), workspace.to_string_lossy().into_owned()];
        self.run(move |conn| {
            conn.execute("INSERT OR IGNORE INTO making VALUES (?1, ?2)", row)?;
            Ok(())
        })
        .await
    }

    /// Boxes that were begun and neither kept nor taken back, and what they were made from.
    pub async fn unfinished(&self) -> Result<Vec<(BoxId, PathBuf)>> {
        self.run(|conn| {
            let mut query = conn.prepare("SELECT id, workspace FROM making")?;
            let rows =
                query.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))?;
            let parsed = |row: rusqlite::Result<(String, String)>| {
                let (id, workspace) = row.ok()?;
                Some((id.parse().ok()?, PathBuf::from(workspace)))
            };
            Ok(rows.filter_map(parsed).collect())
        })
        .await
    }

    /// Nothing is left of it.
    pub async fn taken_back(&self, id: &BoxId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            conn.execute("DELETE FROM making WHERE id = ?1", [id])?;
            Ok(())
        })
        .await
    }

    /// Keeps a box, new or known.
    pub async fn put_box(&self, stored: StoredBox) -> Result<()> {
        self.run(move |conn| {
            let kept = stored.record.without_passwords();
            let record = serde_json::to_string(&kept)?;
            let (id, name) = (kept.id.as_str(), kept.name.as_str());
            let tx = conn.transaction()?;
            tx.execute(
                "INSERT INTO boxes VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET
                 name = excluded.name, record = excluded.record, token_hash = excluded.token_hash",
                params![id, name, record, stored.token_hash],
            )?;
            tx.execute("DELETE FROM making WHERE id = ?1", [id])?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// Forgets a box and every rule made for it.
    pub async fn remove_box(&self, id: &BoxId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            let tx = conn.transaction()?;
            tx.execute("DELETE FROM boxes WHERE id = ?1", [&id])?;
            tx.execute("DELETE FROM grants WHERE box_id = ?1", [&id])?;
            Ok(tx.commit()?)
        })
        .await
    }

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

    pub async fn grant_for(
        &self,
        box_id: BoxId,
        method: String,
        scope: String,
    ) -> Result<Option<Grant>> {
        self.run(move |conn| {
            let rule: Option<String> = conn
                .query_row(
                    "SELECT rule FROM grants WHERE box_id = ?1 AND method = ?2 AND scope = ?3 AND expires_at > ?4",
                    params![box_id.as_str(), method, scope, signed(now())],
                    |r| r.get(0),
                )
                .optional()?;
            Ok(rule.map(|r| serde_json::from_str(&r)).transpose()?)
        })
        .await
    }

    pub async fn add_grant(&self, grant: Grant) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            tx.execute(
                "INSERT INTO grants VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    grant.id.as_str(),
                    grant.box_id.as_str(),
                    grant.method,
                    grant.scope,
                    serde_json::to_string(&grant)?,
                    signed(grant.expires_at)
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

    pub async fn record(&self, entry: Entry) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            append(&tx, &entry)?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// The newest records, oldest first.
    pub async fn audit(&self, box_id: Option<BoxId>, limit: u32) -> Result<Vec<AuditRecord>> {
        self.run(move |conn| {
            let mut query = conn.prepare(
                "SELECT seq, at, box_id, kind, summary, data, hash FROM audit
                 WHERE ?1 IS NULL OR box_id = ?1 ORDER BY seq DESC LIMIT ?2",
            )?;
            let id = box_id.as_ref().map(BoxId::as_str);
            let rows = query.query_map(params![id, limit], row)?;
            let mut records = rows.map(|r| parsed(r?)).collect::<Result<Vec<_>>>()?;
            records.reverse();
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

fn migrate(conn: &mut Connection) -> Result<()> {
    let done: u32 = conn.pragma_query_value(None, "user_version", |r| r.get(0))?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if done > known {
        return Err(StoreError::TooNew(done));
    }
    for (step, sql) in (1u32..).zip(MIGRATIONS).skip(done as usize) {
        let tx = conn.transaction()?;
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "user_version", step)?;
        tx.commit()?;
    }
    Ok(())
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
        Outcome::Denied { by } => format!("denied ({})", by.as_str()),
        Outcome::Expired => "no answer in time, denied".into(),
        Outcome::Withdrawn => "withdrawn, the command in the box ended".into(),
        Outcome::HostStopped => "the host stopped, denied".into(),
        Outcome::TooMany => "too many open questions, denied".into(),
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

fn append(tx: &Connection, entry: &Entry) -> Result<()> {
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

/// SQLite keeps signed numbers; times fit for the next few hundred million years.
fn signed(time: Millis) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests;
