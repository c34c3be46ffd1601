//! Captured states of boxes.

use super::{Result, Store, signed};
use protocol::control::CheckpointView;
use rusqlite::{OptionalExtension, params};

impl Store {
    /// Keeps a checkpoint; one that is to be the project's default takes that from the one before.
    pub async fn put_checkpoint(&self, checkpoint: CheckpointView) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            if checkpoint.default {
                let root = [&checkpoint.project_root];
                tx.execute("UPDATE checkpoints SET is_default = 0 WHERE project_root = ?1", root)?;
            }
            tx.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    checkpoint.id,
                    checkpoint.project_root,
                    checkpoint.name,
                    serde_json::to_string(&checkpoint)?,
                    signed(checkpoint.created_at),
                    checkpoint.default
                ],
            )?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// Newest first.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointView>> {
        self.run(|conn| {
            let mut query = conn.prepare(
                "SELECT checkpoint, is_default FROM checkpoints ORDER BY created_at DESC, rowid DESC",
            )?;
            let rows = query.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get(1)?)))?;
            rows.map(|row| {
                let (text, default) = row?;
                Ok(CheckpointView { default, ..serde_json::from_str(&text)? })
            })
            .collect()
        })
        .await
    }

    pub async fn remove_checkpoint(&self, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.run(move |conn| Ok(conn.execute("DELETE FROM checkpoints WHERE id = ?1", [id])? > 0))
            .await
    }

    /// What new boxes of a project start from.
    pub async fn default_checkpoint(&self, project_root: &str) -> Result<Option<String>> {
        let root = project_root.to_owned();
        self.run(move |conn| {
            let sql = "SELECT id FROM checkpoints WHERE project_root = ?1 AND is_default = 1";
            Ok(conn.query_row(sql, [root], |r| r.get(0)).optional()?)
        })
        .await
    }
}
