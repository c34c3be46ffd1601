//! Lines of what boxes sent out. Written in batches; old ones go.

use super::{Result, Store, now, signed};
use protocol::egress::{Traffic, TrafficAction, TrafficKind};
use protocol::{BoxId, Millis};
use rusqlite::{Connection, params};
use std::time::Duration;

/// Lines that are kept of each box. What was refused is counted apart from the rest, and no box's lines push out
/// another's: a box that is refused a lot must not be able to make people forget what it was let send.
const MOST: i64 = 100_000;
const MOST_REFUSED: i64 = 5_000;
/// And how long.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    pub box_id: Option<BoxId>,
    pub denied: bool,
    pub since: Option<Millis>,
    /// Older than the one with this id.
    pub before: Option<String>,
    pub text: Option<String>,
    pub limit: u32,
}

impl Store {
    /// Without waiting for the disk: a line is told, never acted upon.
    pub async fn add_traffic(&self, lines: Vec<Traffic>) -> Result<()> {
        self.run(move |conn| {
            conn.pragma_update(None, "synchronous", "NORMAL")?;
            let written = add(conn, &lines);
            conn.pragma_update(None, "synchronous", "FULL")?;
            written
        })
        .await
    }

    /// Removes what is old or too much.
    pub async fn trim_traffic(&self) -> Result<()> {
        self.run(|conn| {
            let kept = Millis::try_from(KEPT.as_millis()).unwrap_or(Millis::MAX);
            let oldest = signed(now().saturating_sub(kept));
            conn.execute("DELETE FROM traffic WHERE at < ?1", [oldest])?;
            let mut boxes = conn.prepare_cached("SELECT DISTINCT box_id FROM traffic")?;
            let boxes: Vec<String> = boxes.query_map([], |r| r.get(0))?.collect::<rusqlite::Result<_>>()?;
            let mut trim = conn.prepare_cached(
                "DELETE FROM traffic WHERE box_id = ?1 AND blocked = ?2 AND id <= (SELECT id FROM traffic
                 WHERE box_id = ?1 AND blocked = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)",
            )?;
            for id in boxes {
                for (refused, most) in [(false, MOST), (true, MOST_REFUSED)] {
                    trim.execute(params![id, refused, most])?;
                }
            }
            Ok(())
        })
        .await
    }

    /// The newest that fit, oldest first.
    pub async fn traffic(&self, wanted: Lines) -> Result<Vec<Traffic>> {
        self.run(move |conn| {
            let mut query = conn.prepare_cached(
                "SELECT line FROM traffic WHERE (?1 IS NULL OR box_id = ?1) AND (?2 = 0 OR blocked = 1)
                 AND at >= ?3 AND (?4 IS NULL OR id < ?4)
                 AND (?5 IS NULL OR instr(lower(place), lower(?5)) > 0) ORDER BY id DESC LIMIT ?6",
            )?;
            let since = signed(wanted.since.unwrap_or(0));
            let of = wanted.box_id.as_ref().map(BoxId::as_str);
            let rows = query.query_map(
                params![of, wanted.denied, since, wanted.before, wanted.text, wanted.limit],
                |r| r.get::<_, String>(0),
            )?;
            // A line of another version that cannot be read is no reason to show none.
            let mut lines: Vec<Traffic> =
                rows.filter_map(|row| serde_json::from_str(&row.ok()?).ok()).collect();
            lines.reverse();
            Ok(lines)
        })
        .await
    }

    pub async fn traffic_line(&self, id: String) -> Result<Option<Traffic>> {
        self.run(move |conn| {
            let mut query = conn.prepare_cached("SELECT line FROM traffic WHERE id = ?1")?;
            let line = query.query_map([id], |r| r.get::<_, String>(0))?.next().transpose()?;
            Ok(line.and_then(|line| serde_json::from_str(&line).ok()))
        })
        .await
    }

    /// What a person said of a text that a project's repository asks for.
    pub async fn repository_said(&self, root: String, digest: String) -> Result<Option<bool>> {
        self.run(move |conn| {
            let mut query = conn.prepare_cached(
                "SELECT accepted FROM repository_policies WHERE root = ?1 AND digest = ?2",
            )?;
            Ok(query.query_map([root, digest], |r| r.get(0))?.next().transpose()?)
        })
        .await
    }

    pub async fn say_of_repository(
        &self,
        root: String,
        digest: String,
        text: String,
        accepted: bool,
    ) -> Result<()> {
        self.run(move |conn| {
            conn.execute(
                "INSERT OR REPLACE INTO repository_policies VALUES (?1, ?2, ?3, ?4, ?5)",
                params![root, digest, text, accepted, signed(now())],
            )?;
            Ok(())
        })
        .await
    }

    /// The text that was last said yes to.
    pub async fn repository_accepted(&self, root: String) -> Result<Option<String>> {
        self.run(move |conn| {
            let mut query = conn.prepare_cached(
                "SELECT text FROM repository_policies WHERE root = ?1 AND accepted = 1
                 ORDER BY at DESC, rowid DESC LIMIT 1",
            )?;
            Ok(query.query_map([root], |r| r.get(0))?.next().transpose()?)
        })
        .await
    }
}

fn add(conn: &mut Connection, lines: &[Traffic]) -> Result<()> {
    let tx = conn.transaction()?;
    {
        let mut insert =
            tx.prepare_cached("INSERT OR IGNORE INTO traffic VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
        for line in lines {
            let place = [line.host.as_deref(), line.path.as_deref()]
                .map(Option::unwrap_or_default)
                .concat();
            let blocked = line.action == TrafficAction::Blocked || line.kind == TrafficKind::Alert;
            insert.execute(params![
                line.id,
                line.box_id.as_str(),
                signed(line.at),
                blocked,
                place,
                serde_json::to_string(line)?
            ])?;
        }
    }
    Ok(tx.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::said;

    #[tokio::test]
    async fn what_a_box_was_refused_pushes_out_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let line = |of: &str, n: i64, action| {
            let id = format!("{n:08}{of}");
            let mut line =
                said(&of.parse().unwrap(), TrafficKind::Request, id, now(), String::new());
            line.action = action;
            line
        };
        let (a, b) = ("b00000001", "b00000002");
        let mut all = vec![line(a, 0, TrafficAction::Allowed), line(b, 0, TrafficAction::Blocked)];
        all.extend((1..=MOST_REFUSED + 9).map(|n| line(a, n, TrafficAction::Blocked)));
        store.add_traffic(all).await.unwrap();
        store.trim_traffic().await.unwrap();
        let of = |id: &str, denied| Lines {
            box_id: Some(id.parse().unwrap()),
            denied,
            limit: u32::MAX,
            ..Lines::default()
        };
        let kept = store.traffic(of(a, true)).await.unwrap();
        assert_eq!(i64::try_from(kept.len()).unwrap(), MOST_REFUSED);
        assert_eq!(store.traffic(of(a, false)).await.unwrap().len(), kept.len() + 1);
        assert_eq!(store.traffic(of(b, false)).await.unwrap().len(), 1);
    }
}
