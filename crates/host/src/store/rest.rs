//! Which boxes a person has put to rest, and what this installation once had.

use super::{Result, Store};
use protocol::BoxId;
use std::collections::HashSet;
use std::path::PathBuf;

impl Store {
    /// What placeholders are worked out from; made once.
    pub async fn placeholder_key(&self, fresh: String) -> Result<String> {
        self.run(move |conn| {
            conn.execute("INSERT OR IGNORE INTO meta VALUES ('placeholders', ?1)", [fresh])?;
            let get = "SELECT value FROM meta WHERE key = 'placeholders'";
            Ok(conn.query_row(get, [], |r| r.get(0))?)
        })
        .await
    }

    /// Notes that a person wants a box to rest, or not any more.
    pub async fn put_rest(&self, id: &BoxId, rests: bool) -> Result<()> {
        let key = format!("rest:{id}");
        self.run(move |conn| {
            let sql = if rests {
                "INSERT OR REPLACE INTO meta VALUES (?1, '')"
            } else {
                "DELETE FROM meta WHERE key = ?1"
            };
            conn.execute(sql, [key])?;
            Ok(())
        })
        .await
    }

    pub async fn resting(&self) -> Result<HashSet<BoxId>> {
        self.ids("SELECT substr(key, 6) FROM meta WHERE key LIKE 'rest:%'").await
    }

    /// Every box this installation has made, those that are gone among them.
    pub async fn ever_made(&self) -> Result<HashSet<BoxId>> {
        self.ids("SELECT DISTINCT box_id FROM audit WHERE kind = 'box-created'").await
    }

    async fn ids(&self, sql: &'static str) -> Result<HashSet<BoxId>> {
        self.run(move |conn| {
            let mut query = conn.prepare(sql)?;
            let rows = query.query_map([], |r| r.get::<_, String>(0))?;
            Ok(rows.filter_map(|id| id.ok()?.parse().ok()).collect())
        })
        .await
    }

    /// The folders that have had boxes.
    pub async fn projects(&self) -> Result<Vec<PathBuf>> {
        self.run(|conn| {
            let mut query = conn.prepare("SELECT root FROM projects")?;
            let rows = query.query_map([], |r| r.get::<_, String>(0))?;
            Ok(rows.filter_map(|root| root.ok().map(PathBuf::from)).collect())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_rests_is_remembered_until_it_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let ids = ["b00000001", "b00000002"].map(|id| id.parse::<BoxId>().unwrap());
        for id in &ids {
            store.put_rest(id, true).await.unwrap();
            store.put_rest(id, true).await.unwrap();
        }
        store.put_rest(&ids[0], false).await.unwrap();
        assert_eq!(store.resting().await.unwrap(), HashSet::from([ids[1].clone()]));
        store.remove_box(&ids[1]).await.unwrap();
        assert!(store.resting().await.unwrap().is_empty());
    }
}
