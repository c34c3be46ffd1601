use super::*;
use protocol::question::{Surface, Tier};

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
        tier: Tier::Normal,
        title: "Push 1 commit to origin/main".into(),
        target: "example.org/shop".into(),
        commits: vec![],
        more_commits: 0,
        summary: None,
        warnings: vec![],
        argv: vec!["git".into()],
        created_at: 1,
        expires_at: 2,
        digest: "d".into(),
    }
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
    let trail = store.audit(Some(q.box_id), 10).await.unwrap();
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
    let trail = store.audit(None, 10).await.unwrap();
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

#[tokio::test]
async fn rules_hold_until_they_expire_or_are_removed() {
    let (store, _dir) = store();
    let grant = |n: u8, expires_at| Grant {
        id: GrantId::from_bytes([n; 16]),
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        method: "git.push".into(),
        scope: format!("scope {n}"),
        sentence: "Let smoke push".into(),
        created_at: 0,
        expires_at,
    };
    store.add_grant(grant(1, now() + 60_000)).await.unwrap();
    store.add_grant(grant(2, now() - 1)).await.unwrap();
    let find = |scope: &str| {
        store.grant_for("b00000001".parse().unwrap(), "git.push".into(), scope.to_owned())
    };
    assert!(find("scope 1").await.unwrap().is_some());
    assert!(find("scope 2").await.unwrap().is_none());
    assert_eq!(store.grants().await.unwrap().len(), 1);
    assert!(store.revoke(GrantId::from_bytes([1; 16])).await.unwrap());
    assert!(!store.revoke(GrantId::from_bytes([1; 16])).await.unwrap());
    assert!(find("scope 1").await.unwrap().is_none());
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
