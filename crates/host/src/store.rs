//! SQLite: boxes, approvals, grants, the audit trail, events; a file for each below this one.
//!
//! One thread owns the connection; everybody else sends it closures. A write is on disk before its
//! caller goes on (`synchronous = FULL`), so that nothing that was acted upon is ever lost. Records of
//! what changed nothing are only handed to the system before their caller goes on: killing the host
//! loses none of them, and the disk has them within a second. The trail is chained by hash in the same
//! transaction that appends to it.

mod approvals;
mod audit;
mod boxes;
mod checkpoints;
mod credentials;
mod events;
mod jobs;
mod rest;
mod traffic;

pub use approvals::in_words;
pub use audit::Filter;
pub use boxes::StoredBox;
pub(crate) use checkpoints::number_in;
pub use credentials::{Credential, Use};
pub use traffic::Lines;

use protocol::Millis;
use relay::Entry;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
    #[error("the disk of {} is full; nothing can be written down there", .0.display())]
    Full(PathBuf),
    #[error("{0}")]
    Unwritten(String),
    #[error("the database thread has ended")]
    Gone,
}

type Result<T> = std::result::Result<T, StoreError>;

impl StoreError {
    /// Says that the disk is full where that is why.
    fn named(self, at: &Path) -> Self {
        let StoreError::Sqlite(rusqlite::Error::SqliteFailure(error, _)) = &self else {
            return self;
        };
        let full = match error.code {
            rusqlite::ErrorCode::DiskFull => true,
            // What shares the database between programs cannot grow either, and says only that.
            rusqlite::ErrorCode::SystemIoFailure | rusqlite::ErrorCode::CannotOpen => {
                nix::sys::statvfs::statvfs(at).is_ok_and(|disk| disk.blocks_available() < 16)
            }
            _ => false,
        };
        if full { StoreError::Full(at.to_owned()) } else { self }
    }
}

/// What the thread is asked to do.
enum Job {
    Work(Box<dyn FnOnce(&mut Connection) + Send>),
    /// A record for the trail. Several that wait are written together: one wait for the disk.
    Record(Record),
    /// What was not waited for goes to the disk now.
    Sync,
}

struct Record {
    entry: Entry,
    /// Its writer waits until the disk has it.
    synced: bool,
    done: oneshot::Sender<Result<()>>,
}

/// Records written in one go.
const TOGETHER: usize = 256;
/// How much later the disk may have a record nobody waits for.
const SYNC_AFTER: Duration = Duration::from_secs(1);

/// A handle on the database thread. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
    /// A [`Job::Sync`] is due.
    sync_due: Arc<AtomicBool>,
    /// The folder of the database.
    home: Arc<Path>,
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
    "
    ALTER TABLE grants ADD COLUMN reach TEXT NOT NULL DEFAULT 'box';
    ALTER TABLE grants ADD COLUMN project_root TEXT NOT NULL DEFAULT '';
    UPDATE grants SET rule = json_set(rule, '$.reach', 'box', '$.project', '', '$.projectRoot', '');
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, box_id TEXT NOT NULL, kind TEXT NOT NULL, received_at INTEGER NOT NULL,
        ts INTEGER, payload TEXT
    ) STRICT;
    CREATE TABLE statuses (box_id TEXT PRIMARY KEY, at INTEGER NOT NULL, status TEXT NOT NULL) STRICT;
    CREATE TABLE credentials (id TEXT PRIMARY KEY, set_at INTEGER NOT NULL, last_used INTEGER) STRICT;
    CREATE TABLE checkpoints (
        id TEXT PRIMARY KEY, project_root TEXT NOT NULL, name TEXT NOT NULL, checkpoint TEXT NOT NULL,
        created_at INTEGER NOT NULL, is_default INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX audit_kind ON audit (kind, seq);
",
    "CREATE TABLE jobs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, job TEXT NOT NULL
    ) STRICT;",
    "
    CREATE TABLE traffic (
        id TEXT PRIMARY KEY, box_id TEXT NOT NULL, at INTEGER NOT NULL, blocked INTEGER NOT NULL,
        place TEXT NOT NULL, line TEXT NOT NULL
    ) STRICT;
    CREATE INDEX traffic_box ON traffic (box_id, id);
    CREATE TABLE repository_policies (
        root TEXT NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL, accepted INTEGER NOT NULL,
        at INTEGER NOT NULL, PRIMARY KEY (root, digest)
    ) STRICT;
",
    "
    ALTER TABLE credentials RENAME TO credentials_of_everybody;
    CREATE TABLE credentials (
        id TEXT NOT NULL COLLATE NOCASE, scope TEXT NOT NULL, owner TEXT NOT NULL, hosts TEXT NOT NULL,
        settled INTEGER NOT NULL, set_at INTEGER NOT NULL, last_used INTEGER,
        PRIMARY KEY (scope, owner, id)
    ) STRICT;
    INSERT INTO credentials
        SELECT id, 'everybody', '', '[]', 1, set_at, last_used FROM credentials_of_everybody;
    DROP TABLE credentials_of_everybody;
",
];

impl Store {
    /// Opens or makes the database and starts its thread, which ends with the last handle.
    pub fn open(path: &Path) -> Result<Self> {
        let home: Arc<Path> = path.parent().unwrap_or(path).into();
        let mut conn = connect(path).map_err(|e| e.named(&home))?;
        let (jobs, mut inbox) = mpsc::channel::<Job>(256);
        let at = home.clone();
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                let mut next = None;
                while let Some(job) = next.take().or_else(|| inbox.blocking_recv()) {
                    match job {
                        Job::Work(work) => work(&mut conn),
                        Job::Record(record) => {
                            next = record_together(&mut conn, record, &mut inbox, &at);
                        }
                        Job::Sync => sync(&conn),
                    }
                }
            })
            .map_err(|_| StoreError::Gone)?;
        Ok(Self { jobs, sync_due: Arc::default(), home })
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tx, rx) = oneshot::channel();
        let job = Box::new(move |conn: &mut Connection| {
            let _ = tx.send(work(conn));
        });
        self.jobs.send(Job::Work(job)).await.map_err(|_| StoreError::Gone)?;
        rx.await.map_err(|_| StoreError::Gone)?.map_err(|e: StoreError| e.named(&self.home))
    }

    /// This installation's id, made at the first start. It labels everything on the engine.
    pub async fn install_id(&self, fresh: String) -> Result<String> {
        self.run(move |conn| {
            conn.execute("INSERT OR IGNORE INTO meta VALUES ('install', ?1)", [fresh])?;
            Ok(conn.query_row("SELECT value FROM meta WHERE key = 'install'", [], |r| r.get(0))?)
        })
        .await
    }

    /// Where the proxy listens now; where it listened before, or 0.
    pub async fn replace_proxy_port(&self, port: u16) -> Result<u16> {
        self.run(move |conn| {
            let get = "SELECT value FROM meta WHERE key = 'proxy-port'";
            let before: Option<String> = conn.query_row(get, [], |r| r.get(0)).optional()?;
            let set = "INSERT OR REPLACE INTO meta VALUES ('proxy-port', ?1)";
            conn.execute(set, [port.to_string()])?;
            Ok(before.and_then(|text| text.parse().ok()).unwrap_or(0))
        })
        .await
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut conn)?;
    Ok(conn)
}

/// Writes a record and those that wait behind it; the first job that is something else.
fn record_together(
    conn: &mut Connection,
    first: Record,
    inbox: &mut mpsc::Receiver<Job>,
    home: &Path,
) -> Option<Job> {
    let mut waiting = vec![first];
    let mut other = None;
    while other.is_none() && waiting.len() < TOGETHER {
        match inbox.try_recv() {
            Ok(Job::Record(record)) => waiting.push(record),
            Ok(job) => other = Some(job),
            Err(_) => break,
        }
    }
    let failed = append_all(conn, &waiting).err().map(|e| e.named(home).to_string());
    for record in waiting {
        let written = failed.clone().map_or(Ok(()), |why| Err(StoreError::Unwritten(why)));
        let _ = record.done.send(written);
    }
    other
}

fn append_all(conn: &mut Connection, records: &[Record]) -> Result<()> {
    let unsynced = !records.iter().any(|record| record.synced);
    if unsynced {
        conn.pragma_update(None, "synchronous", "NORMAL")?;
    }
    let written = (|| {
        let tx = conn.transaction()?;
        records.iter().try_for_each(|record| audit::append(&tx, &record.entry))?;
        Ok(tx.commit()?)
    })();
    if unsynced {
        conn.pragma_update(None, "synchronous", "FULL")?;
    }
    written
}

fn sync(conn: &Connection) {
    // Syncs the log before it moves its pages. Readers in the way are no reason to wait.
    let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    if let Err(e) = moved {
        tracing::warn!("the database could not be synced: {e}");
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
