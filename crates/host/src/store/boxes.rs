//! Boxes, those being made, and how they are.

use super::{Result, Store, signed};
use protocol::BoxId;
use relay::Entry;
use rusqlite::OptionalExtension;
use rusqlite::params;
use std::path::{Path, PathBuf};

/// A box as it is kept: its record, and the hash of the token of its last start.
#[derive(Debug, Clone)]
pub struct StoredBox {
    pub record: boxes::Record,
    pub token_hash: [u8; 32],
}

impl Store {
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

    /// Every project that ever had a box, the last one first.
    pub async fn project_roots(&self) -> Result<Vec<String>> {
        self.run(|conn| {
            let mut query = conn.prepare("SELECT root FROM projects ORDER BY rowid DESC")?;
            let rows = query.query_map([], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
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

    /// Keeps a box that is known.
    pub async fn put_box(&self, stored: StoredBox) -> Result<()> {
        self.put(stored, None).await
    }

    /// Keeps a new box, and the record that it was made: both or neither.
    pub async fn put_new_box(&self, stored: StoredBox, made: Entry) -> Result<()> {
        self.put(stored, Some(made)).await
    }

    async fn put(&self, stored: StoredBox, entry: Option<Entry>) -> Result<()> {
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
            if let Some(entry) = &entry {
                super::audit::append(&tx, entry)?;
            }
            Ok(tx.commit()?)
        })
        .await
    }

    /// Forgets a box, every rule made for it alone and what it told.
    pub async fn remove_box(&self, id: &BoxId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            let tx = conn.transaction()?;
            tx.execute("DELETE FROM boxes WHERE id = ?1", [&id])?;
            tx.execute("DELETE FROM grants WHERE box_id = ?1 AND reach = 'box'", [&id])?;
            tx.execute("DELETE FROM events WHERE box_id = ?1", [&id])?;
            tx.execute("DELETE FROM statuses WHERE box_id = ?1", [&id])?;
            tx.execute("DELETE FROM meta WHERE key = ?1", [format!("rest:{id}")])?;
            Ok(tx.commit()?)
        })
        .await
    }

    pub async fn status_of(&self, id: &BoxId) -> Result<Option<String>> {
        let id = id.to_string();
        self.run(move |conn| {
            let mut query = conn.prepare_cached("SELECT status FROM statuses WHERE box_id = ?1")?;
            Ok(query.query_row([&id], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// How a box said it is, last.
    pub async fn put_status(&self, id: &BoxId, status: &str) -> Result<()> {
        let (id, status, at) = (id.to_string(), status.to_string(), signed(super::now()));
        self.run(move |conn| {
            conn.execute(
                "INSERT INTO statuses VALUES (?1, ?2, ?3) ON CONFLICT (box_id) DO UPDATE SET
                 at = excluded.at, status = excluded.status",
                params![id, at, status],
            )?;
            Ok(())
        })
        .await
    }
}
