//! Which credentials are stored, whose they are, which hosts they may go to, and when they were used.
//! Never their values.
//!
//! A value and the hosts it may go to are kept in two places, and a host can end between the two. So
//! a row is *unsettled* while they may not belong together, and nothing uses it then.

use super::{Result, Store, now, signed};
use protocol::integrations::SecretScope;
use protocol::{Millis, SecretId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub id: SecretId,
    pub scope: SecretScope,
    /// As [`egress::host_name::HostName`] writes them; none is anywhere.
    pub hosts: Vec<String>,
    /// Its value is stored, and is the one these hosts were said for.
    pub settled: bool,
    pub set_at: Millis,
    pub last_used: Option<Millis>,
}

/// A use that is to be written down.
pub type Use = (SecretScope, SecretId, Millis);

const COLUMNS: &str = "id, scope, owner, hosts, settled, set_at, last_used";

impl Store {
    /// Its value, or the hosts it may go to, are about to change. What there was before.
    pub async fn credential_unsettled(
        &self,
        scope: &SecretScope,
        id: &SecretId,
    ) -> Result<Option<Credential>> {
        let (scope, id) = (scope.clone(), id.clone());
        self.run(move |conn| {
            let tx = conn.transaction()?;
            let before = one(&tx, &scope, &id)?;
            let (kind, owner) = columns(&scope);
            tx.execute(
                "INSERT INTO credentials (id, scope, owner, hosts, settled, set_at)
                 VALUES (?1, ?2, ?3, '[]', 0, ?4)
                 ON CONFLICT (scope, owner, id) DO UPDATE SET settled = 0",
                params![id.as_str(), kind, owner, signed(now())],
            )?;
            tx.commit()?;
            Ok(before)
        })
        .await
    }

    /// Its value is stored; it may go to these hosts, or to those that were said before.
    pub async fn credential_set(
        &self,
        scope: &SecretScope,
        id: &SecretId,
        hosts: Option<&[String]>,
    ) -> Result<()> {
        let (scope, id) = (scope.clone(), id.to_string());
        let hosts = hosts.map(serde_json::to_string).transpose()?;
        self.run(move |conn| {
            let (kind, owner) = columns(&scope);
            conn.execute(
                "INSERT INTO credentials (id, scope, owner, hosts, settled, set_at)
                 VALUES (?1, ?2, ?3, coalesce(?4, '[]'), 1, ?5)
                 ON CONFLICT (scope, owner, id) DO UPDATE SET
                 hosts = coalesce(?4, hosts), settled = 1, set_at = excluded.set_at",
                params![id, kind, owner, hosts, signed(now())],
            )?;
            Ok(())
        })
        .await
    }

    /// Nothing was changed after all: as it was.
    pub async fn credential_restored(
        &self,
        scope: &SecretScope,
        id: &SecretId,
        before: Option<Credential>,
    ) -> Result<()> {
        let Some(before) = before else { return self.credential_removed(scope, id).await };
        let (scope, id) = (scope.clone(), id.to_string());
        self.run(move |conn| {
            let (kind, owner) = columns(&scope);
            conn.execute(
                "UPDATE credentials SET settled = ?4 WHERE id = ?1 AND scope = ?2 AND owner = ?3",
                params![id, kind, owner, before.settled],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn credential_removed(&self, scope: &SecretScope, id: &SecretId) -> Result<()> {
        let (scope, id) = (scope.clone(), id.to_string());
        self.run(move |conn| {
            let (kind, owner) = columns(&scope);
            conn.execute(
                "DELETE FROM credentials WHERE id = ?1 AND scope = ?2 AND owner = ?3",
                params![id, kind, owner],
            )?;
            Ok(())
        })
        .await
    }

    pub async fn credentials_used(&self, uses: Vec<Use>) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            for (scope, id, at) in uses {
                let (kind, owner) = columns(&scope);
                tx.execute(
                    "UPDATE credentials SET last_used = max(coalesce(last_used, 0), ?4)
                     WHERE id = ?1 AND scope = ?2 AND owner = ?3",
                    params![id.as_str(), kind, owner, signed(at)],
                )?;
            }
            Ok(tx.commit()?)
        })
        .await
    }

    pub async fn credential(
        &self,
        scope: &SecretScope,
        id: &SecretId,
    ) -> Result<Option<Credential>> {
        let (scope, id) = (scope.clone(), id.clone());
        self.run(move |conn| one(conn, &scope, &id)).await
    }

    /// Those of this name, in every scope.
    pub async fn credentials_named(&self, id: &SecretId) -> Result<Vec<Credential>> {
        let id = id.to_string();
        self.run(move |conn| {
            let text = format!("SELECT {COLUMNS} FROM credentials WHERE id = ?1");
            let mut query = conn.prepare_cached(&text)?;
            let rows = query.query_map([id], credential)?.collect::<std::result::Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// By name, and for one name from the widest scope to the narrowest.
    pub async fn credentials(&self) -> Result<Vec<Credential>> {
        let mut all: Vec<Credential> = self
            .run(|conn| {
                let mut query = conn.prepare(&format!("SELECT {COLUMNS} FROM credentials"))?;
                let rows = query.query_map([], credential)?;
                Ok(rows.collect::<std::result::Result<_, _>>()?)
            })
            .await?;
        all.sort_by(|a, b| (&a.id, &a.scope).cmp(&(&b.id, &b.scope)));
        Ok(all)
    }
}

fn one(conn: &Connection, scope: &SecretScope, id: &SecretId) -> Result<Option<Credential>> {
    let (kind, owner) = columns(scope);
    let text =
        format!("SELECT {COLUMNS} FROM credentials WHERE id = ?1 AND scope = ?2 AND owner = ?3");
    let mut query = conn.prepare_cached(&text)?;
    Ok(query.query_row(params![id.as_str(), kind, owner], credential).optional()?)
}

fn columns(scope: &SecretScope) -> (&'static str, &str) {
    match scope {
        SecretScope::Everybody => ("everybody", ""),
        SecretScope::Project { root } => ("project", root),
        SecretScope::Box { id } => ("box", id.as_str()),
    }
}

/// A row that cannot be read is an error and not left out: with the hosts of a credential would go
/// the promise that it goes nowhere else.
fn credential(row: &Row<'_>) -> rusqlite::Result<Credential> {
    let unreadable = |column: usize, e: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, e)
    };
    let owner: String = row.get(2)?;
    let scope = match row.get_ref(1)?.as_str()? {
        "everybody" => SecretScope::Everybody,
        "project" => SecretScope::Project { root: owner },
        "box" => SecretScope::Box { id: owner.parse().map_err(|e| unreadable(2, Box::new(e)))? },
        other => return Err(unreadable(1, other.into())),
    };
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(Credential {
        id: row.get_ref(0)?.as_str()?.parse().map_err(|e| unreadable(0, Box::new(e)))?,
        scope,
        hosts: serde_json::from_str(row.get_ref(3)?.as_str()?)
            .map_err(|e| unreadable(3, Box::new(e)))?,
        settled: row.get(4)?,
        set_at: unsigned(row.get(5)?),
        last_used: row.get::<_, Option<i64>>(6)?.map(unsigned),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{MIGRATIONS, connect};
    use super::*;

    fn id() -> SecretId {
        "ex.token".parse().unwrap()
    }

    fn scopes() -> [SecretScope; 3] {
        [
            SecretScope::Everybody,
            SecretScope::Project { root: "/p".into() },
            SecretScope::Box { id: "b00000001".parse().unwrap() },
        ]
    }

    fn store() -> (Store, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (Store::open(&dir.path().join("agentbox.db")).unwrap(), dir)
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[tokio::test]
    async fn credentials_of_each_scope_are_their_own() {
        let (store, _dir) = store();
        for (n, scope) in scopes().iter().enumerate() {
            let bound = hosts(&["a.example", "b.example"][..n.min(2)]);
            store.credential_set(scope, &id(), Some(&bound)).await.unwrap();
        }
        store.credentials_used(vec![(scopes()[1].clone(), id(), 77)]).await.unwrap();
        let all = store.credentials().await.unwrap();
        assert_eq!(all.iter().map(|c| c.scope.clone()).collect::<Vec<_>>(), scopes());
        assert_eq!(all.iter().map(|c| c.hosts.len()).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(all.iter().map(|c| c.last_used).collect::<Vec<_>>(), [None, Some(77), None]);
        store.credential_removed(&scopes()[1], &id()).await.unwrap();
        assert_eq!(store.credentials_named(&id()).await.unwrap().len(), 2);
        assert_eq!(store.credential(&scopes()[1], &id()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn hosts_stay_until_others_are_said() {
        let (store, _dir) = store();
        let [all, ..] = scopes();
        let bound = async || store.credential(&all, &id()).await.unwrap().unwrap().hosts;
        store.credential_set(&all, &id(), Some(&hosts(&["a.example"]))).await.unwrap();
        store.credential_set(&all, &id(), None).await.unwrap();
        assert_eq!(bound().await, ["a.example"]);
        store.credential_set(&all, &id(), Some(&[])).await.unwrap();
        assert_eq!(bound().await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_was_begun_is_unsettled_until_it_is_done_or_undone() {
        let (store, _dir) = store();
        let [all, ..] = scopes();
        assert_eq!(store.credential_unsettled(&all, &id()).await.unwrap(), None);
        assert!(!store.credential(&all, &id()).await.unwrap().unwrap().settled);
        store.credential_restored(&all, &id(), None).await.unwrap();
        assert_eq!(store.credential(&all, &id()).await.unwrap(), None);

        store.credential_set(&all, &id(), Some(&hosts(&["a.example"]))).await.unwrap();
        let before = store.credential_unsettled(&all, &id()).await.unwrap();
        store.credential_restored(&all, &id(), before.clone()).await.unwrap();
        assert_eq!(store.credential(&all, &id()).await.unwrap(), before);
    }

    /// Ids are lower case already; the table would not take another that differs only by case either.
    #[tokio::test]
    async fn egress_12_33_ids_that_differ_by_case_do_not_coexist() {
        let (store, _dir) = store();
        let [all, ..] = scopes();
        store.credential_set(&all, &id(), None).await.unwrap();
        let added = store.run(|conn| {
            let row =
                "INSERT INTO credentials VALUES ('Ex.Token', 'everybody', '', '[]', 1, 0, NULL)";
            Ok(conn.execute(row, [])?)
        });
        assert!(added.await.is_err());
    }

    #[tokio::test]
    async fn a_row_that_cannot_be_read_is_an_error() {
        for change in ["hosts = 'x'", "scope = 'agent'", "id = 'x'"] {
            let (store, _dir) = store();
            store.credential_set(&SecretScope::Everybody, &id(), None).await.unwrap();
            let sql = format!("UPDATE credentials SET {change}");
            store.run(move |conn| Ok(conn.execute(&sql, [])?)).await.unwrap();
            assert!(store.credentials().await.is_err(), "{change}");
        }
    }

    /// What was stored before there were scopes is everybody's, and goes where it went.
    #[tokio::test]
    async fn credentials_of_an_older_agentbox_are_everybodys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentbox.db");
        {
            let conn = Connection::open(&path).unwrap();
            let before = MIGRATIONS.iter().position(|sql| sql.contains("owner TEXT")).unwrap();
            for sql in &MIGRATIONS[..before] {
                conn.execute_batch(sql).unwrap();
            }
            conn.pragma_update(None, "user_version", u32::try_from(before).unwrap()).unwrap();
            conn.execute("INSERT INTO credentials VALUES ('ex.token', 5, 6)", []).unwrap();
        }
        drop(connect(&path).unwrap());
        let store = Store::open(&path).unwrap();
        let known = Credential {
            id: id(),
            scope: SecretScope::Everybody,
            hosts: Vec::new(),
            settled: true,
            set_at: 5,
            last_used: Some(6),
        };
        assert_eq!(store.credentials().await.unwrap(), [known]);
    }
}
