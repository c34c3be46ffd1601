//! Which credentials are stored and when they were used. Never their values.

use super::{Result, Store, now, signed};
use protocol::{Millis, SecretId};
use rusqlite::params;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub id: SecretId,
    pub set_at: Millis,
    pub last_used: Option<Millis>,
}

impl Store {
    pub async fn credential_set(&self, id: &SecretId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            conn.execute(
                "INSERT INTO credentials VALUES (?1, ?2, NULL) ON CONFLICT (id) DO UPDATE SET
                 set_at = excluded.set_at",
                params![id, signed(now())],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn credential_removed(&self, id: &SecretId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            conn.execute("DELETE FROM credentials WHERE id = ?1", [id])?;
            Ok(())
        })
        .await
    }

    pub async fn credential_used(&self, id: &SecretId) -> Result<()> {
        let id = id.to_string();
        self.run(move |conn| {
            let used = params![id, signed(now())];
            conn.execute("UPDATE credentials SET last_used = ?2 WHERE id = ?1", used)?;
            Ok(())
        })
        .await
    }

    pub async fn credentials(&self) -> Result<Vec<Credential>> {
        self.run(|conn| {
            let mut query =
                conn.prepare("SELECT id, set_at, last_used FROM credentials ORDER BY id")?;
            let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
            let rows = query.query_map([], |r| {
                let id: Option<SecretId> = r.get::<_, String>(0)?.parse().ok();
                let (set_at, used) = (r.get(1)?, r.get::<_, Option<i64>>(2)?);
                Ok(id.map(|id| Credential {
                    id,
                    set_at: unsigned(set_at),
                    last_used: used.map(unsigned),
                }))
            })?;
            Ok(rows.filter_map(|r| r.ok().flatten()).collect())
        })
        .await
    }
}
