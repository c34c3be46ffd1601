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
            if let Some(number) = number_in(&checkpoint.box_name, &checkpoint.name) {
                let key = counted(&checkpoint.project_root, &checkpoint.box_name);
                let before = read_number(&tx, &key)?;
                if number > before {
                    let value = number.to_string();
                    tx.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", [key, value])?;
                }
            }
            Ok(tx.commit()?)
        })
        .await
    }

    /// The highest number a checkpoint of such a box of the project has had, those that are gone
    /// among them.
    pub async fn last_checkpoint(&self, project_root: &str, box_name: &str) -> Result<u32> {
        let key = counted(project_root, box_name);
        self.run(move |conn| read_number(conn, &key)).await
    }

    /// What new boxes of a project start from, from now on; none is nothing of the kind.
    pub async fn set_default_checkpoint(&self, root: &str, id: Option<&str>) -> Result<()> {
        let (root, id) = (root.to_owned(), id.map(str::to_owned));
        self.run(move |conn| {
            let sql = "UPDATE checkpoints SET is_default = (id IS ?2) WHERE project_root = ?1";
            conn.execute(sql, params![root, id])?;
            Ok(())
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
}

fn counted(project_root: &str, box_name: &str) -> String {
    format!("checkpoints:{box_name}:{project_root}")
}

fn read_number(conn: &rusqlite::Connection, key: &str) -> Result<u32> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    let text: Option<String> = conn.query_row(sql, [key], |r| r.get(0)).optional()?;
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// The number of a checkpoint that has no name of its own.
pub(crate) fn number_in(box_name: &str, name: &str) -> Option<u32> {
    let number = name.strip_prefix(box_name)?.strip_prefix('-')?.parse().ok()?;
    // A number nobody counts to was chosen by somebody.
    Some(number).filter(|n| *n < 1_000_000)
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
            ..CheckpointView::default()
        };
        store.put_checkpoint(kept).await.unwrap();
        assert_eq!(store.unfinished_captures().await.unwrap(), ["a:3"]);
    }

    #[tokio::test]
    async fn a_number_is_given_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let put = |id: &str, name: &str| {
            store.put_checkpoint(CheckpointView {
                id: id.into(),
                name: name.into(),
                project_root: "/p".into(),
                box_name: "fix".into(),
                ..CheckpointView::default()
            })
        };
        for (id, name) in
            [("a:1", "fix-1"), ("a:2", "fix-2"), ("a:3", "base"), ("a:4", "fix-99999999")]
        {
            put(id, name).await.unwrap();
        }
        store.remove_checkpoint("a:2").await.unwrap();
        assert_eq!(store.last_checkpoint("/p", "fix").await.unwrap(), 2);
        assert_eq!(store.last_checkpoint("/p", "other").await.unwrap(), 0);
        store.set_default_checkpoint("/p", Some("a:3")).await.unwrap();
        let default = async || {
            let all = store.checkpoints().await.unwrap();
            all.into_iter().find(|view| view.default).map(|view| view.id)
        };
        assert_eq!(default().await.as_deref(), Some("a:3"));
        store.set_default_checkpoint("/p", None).await.unwrap();
        assert_eq!(default().await, None);
    }
}
