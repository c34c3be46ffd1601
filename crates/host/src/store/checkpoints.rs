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
            tx.execute("DELETE FROM meta WHERE key = ?1", [capture(&checkpoint.id)])?;
            Ok(tx.commit()?)
        })
        .await
    }

    /// An image is about to be made; whether it was is known once it is a checkpoint.
    pub async fn begin_capture(&self, image: &str) -> Result<()> {
        let key = capture(image);
        self.run(move |conn| {
            conn.execute("INSERT OR REPLACE INTO meta VALUES (?1, '')", [key])?;
            Ok(())
        })
        .await
    }

    pub async fn end_capture(&self, image: &str) -> Result<()> {
        let key = capture(image);
        self.run(move |conn| {
            conn.execute("DELETE FROM meta WHERE key = ?1", [key])?;
            Ok(())
        })
        .await
    }

    /// Images that were begun and never became a checkpoint.
    pub async fn unfinished_captures(&self) -> Result<Vec<String>> {
        self.run(|conn| {
            let mut query =
                conn.prepare("SELECT substr(key, 9) FROM meta WHERE key LIKE 'capture:%'")?;
            let rows = query.query_map([], |r| r.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
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

fn capture(image: &str) -> String {
    format!("capture:{image}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_captured_is_known_until_it_is_a_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        for image in ["a:1", "a:2", "a:3"] {
            store.begin_capture(image).await.unwrap();
        }
        store.end_capture("a:1").await.unwrap();
        let kept = CheckpointView {
            id: "a:2".into(),
            name: "n".into(),
            project: "p".into(),
            project_root: "/p".into(),
            box_name: "b".into(),
            created_at: 1,
            default: false,
        };
        store.put_checkpoint(kept).await.unwrap();
        assert_eq!(store.unfinished_captures().await.unwrap(), ["a:3"]);
    }
}
