use super::*;
use protocol::audit::{AuditRecord, AuditVerdict};
use protocol::question::{Answers, Evidence, Grant, Outcome, Question, Reach, Surface, Tier};
use protocol::{BoxId, GrantId, QuestionId};

fn entry(summary: &str) -> Entry {
    Entry {
        box_id: Some("b00000001".parse().unwrap()),
        kind: "refused",
        summary: summary.into(),
        data: serde_json::json!({}),
    }
}

fn question(id: u8) -> Question {
    Question {
        id: QuestionId::from_bytes([id; 16]),
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        project: "shop".into(),
        method: "git.push".into(),
        tier: Tier::Routine,
        title: "Push 1 commit to origin/main".into(),
        target: "example.org/shop".into(),
        evidence: Evidence::default(),
        warnings: vec![],
        argv: vec!["git".into()],
        remember: None,
        answers: Answers::default(),
        times: 1,
        created_at: 1,
        expires_at: 2,
        digest: "d".into(),
    }
}

async fn synchronous(store: &Store) -> i64 {
    let level =
        |conn: &mut Connection| Ok(conn.pragma_query_value(None, "synchronous", |r| r.get(0))?);
    store.run(level).await.unwrap()
}

fn store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Store::open(&dir.path().join("agentbox.db")).unwrap(), dir)
}

#[tokio::test]
async fn the_chain_holds_and_every_kind_of_tampering_shows() {
    let tampers = [
        ("UPDATE audit SET summary = 'harmless' WHERE seq = 2", "record 2 was changed"),
        ("UPDATE audit SET at = at + 1 WHERE seq = 1", "record 1 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "record 2 is missing"),
        ("DELETE FROM audit WHERE seq = 3", "the newest records are missing"),
        ("DELETE FROM audit", "the newest records are missing"),
    ];
    for (sql, broken) in tampers {
        let (store, _dir) = store();
        for n in 0..3 {
            store.record(entry(&n.to_string())).await.unwrap();
        }
        assert_eq!(store.verify().await.unwrap(), AuditVerdict { records: 3, broken: None });
        store.run(move |conn| Ok(conn.execute_batch(sql)?)).await.unwrap();
        assert_eq!(store.verify().await.unwrap().broken.as_deref(), Some(broken), "{sql}");
    }
}

#[tokio::test]
async fn a_question_is_in_the_trail_from_asking_to_answer() {
    let (store, _dir) = store();
    let q = question(1);
    store.asked(q.clone()).await.unwrap();
    let by = Outcome::Allowed { by: Surface::Tray };
    store.resolved(q.id.clone(), by.clone(), Duration::from_millis(1500)).await.unwrap();
    // Only the first end counts.
    store.resolved(q.id.clone(), Outcome::Expired, Duration::ZERO).await.unwrap();
    let trail = store
        .audit(Filter { box_id: Some(q.box_id), limit: 10, ..Filter::default() })
        .await
        .unwrap();
    let kinds: Vec<&str> = trail.iter().map(|r| r.kind.as_str()).collect();
    assert_eq!(kinds, ["asked", "answered"]);
    assert_eq!(trail[1].data["openMs"], 1500);
    assert!(trail[1].summary.ends_with("allowed (tray)"));
}

#[tokio::test]
async fn questions_of_a_killed_host_are_a_no() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentbox.db");
    Store::open(&path).unwrap().asked(question(1)).await.unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.close_lost_questions().await.unwrap(), 1);
    assert_eq!(store.close_lost_questions().await.unwrap(), 0);
    let trail = store.audit(Filter { limit: 10, ..Filter::default() }).await.unwrap();
    assert!(trail[1].summary.ends_with("the host stopped, denied"));
    assert_eq!(store.verify().await.unwrap().broken, None);
}

#[tokio::test]
async fn boxes_16_26_an_index_is_never_used_twice() {
    let (store, _dir) = store();
    let (a, b) = (Path::new("/a"), Path::new("/b"));
    assert_eq!(store.next_index(a).await.unwrap(), 1);
    assert_eq!(store.next_index(a).await.unwrap(), 2);
    assert_eq!(store.next_index(b).await.unwrap(), 1);
    assert_eq!(store.next_index(a).await.unwrap(), 3);
}

fn grant(n: u8, reach: Reach, expires_at: Millis) -> Grant {
    Grant {
        id: GrantId::from_bytes([n; 16]),
        reach,
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: "/shop".into(),
        method: "git.push".into(),
        scope: format!("scope {n}"),
        sentence: "Let smoke push".into(),
        created_at: 0,
        expires_at,
    }
}

async fn covered(store: &Store, id: &str, root: &str, scopes: &[&str]) -> bool {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    let found = store.grant_for(id.parse().unwrap(), root.into(), "git.push".into(), scopes);
    found.await.unwrap().is_some()
}

#[tokio::test]
async fn rules_hold_until_they_expire_or_are_removed() {
    let (store, _dir) = store();
    store.add_grant(grant(1, Reach::Box, now() + 60_000)).await.unwrap();
    store.add_grant(grant(2, Reach::Box, now() - 1)).await.unwrap();
    assert!(covered(&store, "b00000001", "/shop", &["scope 9", "scope 1"]).await);
    assert!(!covered(&store, "b00000001", "/shop", &["scope 2"]).await);
    assert_eq!(store.grants().await.unwrap().len(), 1);
    assert!(store.revoke(GrantId::from_bytes([1; 16])).await.unwrap());
    assert!(!store.revoke(GrantId::from_bytes([1; 16])).await.unwrap());
    assert!(!covered(&store, "b00000001", "/shop", &["scope 1"]).await);
}

#[tokio::test]
async fn a_rule_reaches_as_far_as_it_says() {
    let (store, _dir) = store();
    let later = now() + 60_000;
    for (n, reach) in [(1, Reach::Box), (2, Reach::Project), (3, Reach::Everywhere)] {
        store.add_grant(grant(n, reach, later)).await.unwrap();
    }
    let cases = [
        ("b00000001", "/shop", [true, true, true]),
        ("b00000002", "/shop", [false, true, true]),
        ("b00000002", "/other", [false, false, true]),
    ];
    for (id, root, wanted) in cases {
        for (n, wanted) in (1..).zip(wanted) {
            let scope = format!("scope {n}");
            assert_eq!(covered(&store, id, root, &[&scope]).await, wanted, "{id} {root} {n}");
        }
    }
    // A box takes its own rules with it, not those made for others.
    store.remove_box(&"b00000001".parse().unwrap()).await.unwrap();
    assert_eq!(store.grants().await.unwrap().len(), 2);
}

#[tokio::test]
async fn records_that_come_at_once_are_one_whole_chain() {
    let (store, _dir) = store();
    let all = (0..500).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.record(entry(&n.to_string())).await.unwrap() })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    assert_eq!(store.verify().await.unwrap(), AuditVerdict { records: 500, broken: None });
}

#[tokio::test]
async fn the_trail_can_be_searched() {
    let (store, _dir) = store();
    for (kind, summary) in [("refused", "git push"), ("executed", "Push 1"), ("asked", "push 2")] {
        let box_id = (kind != "asked").then(|| "b00000001".parse().unwrap());
        let data = serde_json::json!({});
        store.record(Entry { box_id, kind, summary: summary.into(), data }).await.unwrap();
    }
    let found = async |filter: Filter| {
        let filter = Filter { limit: 10, ..filter };
        store.audit(filter).await.unwrap().iter().map(|r| r.seq).collect::<Vec<_>>()
    };
    let kinds = vec!["refused".to_owned(), "asked".to_owned()];
    assert_eq!(found(Filter { kinds, ..Filter::default() }).await, [1, 3]);
    assert_eq!(found(Filter { text: Some("PUSH".into()), ..Filter::default() }).await, [1, 2, 3]);
    assert_eq!(found(Filter { after: Some(1), ..Filter::default() }).await, [2, 3]);
    assert!(found(Filter { since: Some(now() + 1000), ..Filter::default() }).await.is_empty());
    assert_eq!(found(Filter { until: Some(now() + 1000), ..Filter::default() }).await.len(), 3);
    let box_id = Some("b00000001".parse().unwrap());
    assert_eq!(found(Filter { box_id, ..Filter::default() }).await, [1, 2]);
}

#[tokio::test]
async fn rules_of_an_older_database_go_on_for_their_box() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentbox.db");
    let conn = Connection::open(&path).unwrap();
    for sql in &MIGRATIONS[..2] {
        conn.execute_batch(sql).unwrap();
    }
    conn.pragma_update(None, "user_version", 2).unwrap();
    let mut rule = serde_json::to_value(grant(1, Reach::Box, now() + 60_000)).unwrap();
    for new in ["reach", "project", "projectRoot"] {
        rule.as_object_mut().unwrap().remove(new);
    }
    let row =
        rusqlite::params!["1", "b00000001", "git.push", "scope 1", rule.to_string(), i64::MAX];
    conn.execute("INSERT INTO grants VALUES (?1, ?2, ?3, ?4, ?5, ?6)", row).unwrap();
    drop(conn);
    let store = Store::open(&path).unwrap();
    assert!(covered(&store, "b00000001", "/shop", &["scope 1"]).await);
    assert!(!covered(&store, "b00000002", "/shop", &["scope 1"]).await);
}

#[test]
fn a_newer_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentbox.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::TooNew(99))));
}

#[tokio::test]
async fn what_was_begun_is_known_until_it_is_kept_or_taken_back() {
    let (store, _dir) = store();
    let id: BoxId = "b00000001".parse().unwrap();
    store.begin_box(&id, Path::new("/shop")).await.unwrap();
    assert_eq!(store.unfinished().await.unwrap(), [(id.clone(), "/shop".into())]);
    store.taken_back(&id).await.unwrap();
    assert!(store.unfinished().await.unwrap().is_empty());
}

#[tokio::test]
async fn what_changed_nothing_is_in_the_chain_without_waiting_for_the_disk() {
    const FULL: i64 = 2;
    let (store, dir) = store();
    store.jot(entry("a read")).await.unwrap();
    assert_eq!(synchronous(&store).await, FULL, "everything else still waits for the disk");
    store.record(entry("a write")).await.unwrap();
    store.jot(entry("a refusal")).await.unwrap();
    // A copy of the files is what is left when the process is killed now.
    let left = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().path()) {
        if !file.to_string_lossy().ends_with("-shm") {
            std::fs::copy(&file, left.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    let left = Store::open(&left.path().join("agentbox.db")).unwrap();
    let records = left.audit(Filter { limit: 10, ..Filter::default() }).await.unwrap();
    let summaries: Vec<&str> = records.iter().map(|r| r.summary.as_str()).collect();
    assert_eq!(summaries, ["a read", "a write", "a refusal"]);
    assert_eq!(left.verify().await.unwrap(), AuditVerdict { records: 3, broken: None });
    // One sync is due for all that was jotted down meanwhile.
    let due = || store.sync_due.load(std::sync::atomic::Ordering::Acquire);
    assert!(due() && !moved_to_the_database(dir.path()));
    while due() {
        tokio::time::sleep(SYNC_AFTER / 20).await;
    }
    while !moved_to_the_database(dir.path()) {
        tokio::time::sleep(SYNC_AFTER / 20).await;
    }
}

/// The pages of the log have been copied, which is done only after the log is on disk.
fn moved_to_the_database(dir: &Path) -> bool {
    let bytes = std::fs::read(dir.join("agentbox.db")).unwrap();
    bytes.windows(9).any(|w| w == b"a refusal")
}

#[tokio::test]
async fn long_records_come_in_several_answers_and_none_is_missing() {
    let (store, _dir) = store();
    for n in 0..20 {
        let data = serde_json::json!({ "argv": "x".repeat(400_000) });
        store.jot(Entry { data, ..entry(&format!("read {n}")) }).await.unwrap();
    }
    let mut all = vec![];
    loop {
        let after = all.last().map_or(0, |r: &AuditRecord| r.seq);
        let part =
            store.audit(Filter { after: Some(after), limit: 500, ..Filter::default() }).await;
        let part = part.unwrap();
        if part.is_empty() {
            break;
        }
        assert!(part.len() < 9, "{}", part.len());
        all.extend(part);
    }
    assert_eq!(all.iter().map(|r| r.seq).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    let newest = store.audit(Filter { limit: 500, ..Filter::default() }).await.unwrap();
    assert_eq!(newest.last().unwrap().seq, 20);
}
