//! What boxes told, the newest of it.

use super::{Result, Store, signed};
use protocol::BoxId;
use protocol::events::{BoxEvent, JsonText};
use rusqlite::{Row, params};

impl Store {
    /// Adds events and lets go of the dropped ones.
    pub async fn put_events(&self, events: Vec<BoxEvent>, dropped: Vec<u64>) -> Result<()> {
        self.run(move |conn| {
            let tx = conn.transaction()?;
            {
                let mut insert = tx.prepare_cached(
                    "INSERT OR REPLACE INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for event in &events {
                    let payload = event.payload.as_ref().map(JsonText::as_str);
                    insert.execute(params![
                        signed(event.id),
                        event.box_id.as_str(),
                        event.kind,
                        signed(event.received_at),
                        event.ts.map(signed),
                        payload
                    ])?;
                }
                let mut delete = tx.prepare_cached("DELETE FROM events WHERE id = ?1")?;
                for id in dropped {
                    delete.execute([signed(id)])?;
                }
            }
            if let Some(last) = events.last() {
                tx.execute(
                    "INSERT INTO meta VALUES ('last-event', ?1) ON CONFLICT (key) DO UPDATE SET
                     value = excluded.value",
                    [last.id.to_string()],
                )?;
            }
            Ok(tx.commit()?)
        })
        .await
    }

    /// All that is kept, oldest first, and the highest number ever given.
    pub async fn events(&self) -> Result<(Vec<BoxEvent>, u64)> {
        self.run(|conn| {
            let mut query = conn.prepare(
                "SELECT id, box_id, kind, received_at, ts, payload FROM events ORDER BY id",
            )?;
            let rows = query.query_map([], event)?;
            let events: Vec<BoxEvent> = rows.filter_map(|e| e.ok().flatten()).collect();
            let last: Option<String> = conn
                .query_row("SELECT value FROM meta WHERE key = 'last-event'", [], |r| r.get(0))
                .ok();
            let last = last.and_then(|n| n.parse().ok()).unwrap_or(0);
            Ok((events, last))
        })
        .await
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<Option<BoxEvent>> {
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    let Ok(box_id) = row.get::<_, String>(1)?.parse::<BoxId>() else { return Ok(None) };
    let payload: Option<String> = row.get(5)?;
    Ok(Some(BoxEvent {
        id: unsigned(row.get(0)?),
        box_id,
        kind: row.get(2)?,
        received_at: unsigned(row.get(3)?),
        ts: row.get::<_, Option<i64>>(4)?.map(unsigned),
        payload: payload.and_then(JsonText::parse),
    }))
}
