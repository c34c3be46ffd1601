//! What is kept, and what is written down about it.

use super::*;
use protocol::audit::AuditRecord;
use secrets::Backend;
use std::path::PathBuf;

struct World {
    kept: Kept,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(|dir| Vault::new(Backend::File(dir.join("secrets"))))
    }

    fn with(vault: impl FnOnce(&Path) -> Vault) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("agentbox.db")).unwrap();
        Self { kept: Kept { vault: vault(dir.path()), store }, dir }
    }

    async fn set(&self, scope: &SecretScope, value: &str, hosts: Option<&[&str]>) -> bool {
        let hosts = hosts.map(|all| all.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>());
        self.kept.set(scope, &id(), Value::new(value.into()), hosts.as_deref()).await.is_ok()
    }

    async fn row(&self, scope: &SecretScope) -> Option<Credential> {
        self.kept.store.credential(scope, &id()).await.unwrap()
    }

    async fn for_connectors(&self) -> Result<Option<String>, String> {
        let value = Credentials::get(&self.kept, &id()).await?;
        Ok(value.map(|value| value.expose().to_owned()))
    }

    async fn trail(&self) -> Vec<AuditRecord> {
        self.kept
            .store
            .audit(crate::store::Filter { limit: 100, ..Default::default() })
            .await
            .unwrap()
    }

    /// From now on nothing can be written.
    fn close_folder(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = self.dir.path().join("secrets");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }
}

fn id() -> SecretId {
    "ex.token".parse().unwrap()
}

const ALL: SecretScope = SecretScope::Everybody;

fn project(root: &str) -> SecretScope {
    SecretScope::Project { root: root.into() }
}

fn of_box(id: &str) -> SecretScope {
    SecretScope::Box { id: id.parse().unwrap() }
}

#[tokio::test]
async fn connectors_get_everybodys_and_nothing_narrower() {
    let world = World::new();
    assert!(world.set(&project("/p"), "of the project", None).await);
    assert!(world.set(&of_box("b00000001"), "of the box", None).await);
    assert_eq!(world.for_connectors().await, Ok(None));
    assert!(world.set(&ALL, "of everybody", None).await);
    assert_eq!(world.for_connectors().await, Ok(Some("of everybody".into())));
    assert!(world.row(&ALL).await.unwrap().last_used.is_some());
}

#[tokio::test]
async fn no_value_is_written_down() {
    let world = World::new();
    assert!(world.set(&ALL, "sesame-open-0123", Some(&["a.example"])).await);
    assert!(world.set(&of_box("b00000001"), "sesame-open-0123", None).await);
    assert!(world.kept.remove(&ALL, &id()).await.unwrap());
    let trail = world.trail().await;
    let said: Vec<&str> = trail.iter().map(|record| record.summary.as_str()).collect();
    assert_eq!(
        said,
        [
            "Credential ex.token stored",
            "Credential ex.token of box b00000001 stored",
            "Credential ex.token removed"
        ]
    );
    assert_eq!(trail[1].box_id, Some("b00000001".parse().unwrap()));
    for name in ["agentbox.db", "agentbox.db-wal"] {
        let bytes = std::fs::read(world.dir.path().join(name)).unwrap_or_default();
        let found = bytes.windows(6).any(|window| window == b"sesame");
        assert!(!found, "the value is in {name}");
    }
}

#[tokio::test]
async fn a_failed_change_leaves_value_and_hosts_as_they_were() {
    let world = World::new();
    assert!(world.set(&ALL, "first", Some(&["a.example"])).await);
    let before = world.row(&ALL).await;
    world.close_folder();
    assert!(!world.set(&ALL, "second", Some(&["b.example"])).await);
    assert_eq!(world.row(&ALL).await, before);
    assert!(!world.set(&of_box("b00000001"), "second", None).await);
    assert_eq!(world.row(&of_box("b00000001")).await, None);
    // Refused before anything is touched.
    assert!(!world.set(&ALL, "", Some(&["b.example"])).await);
    assert!(!world.set(&ALL, "a\nb", Some(&["b.example"])).await);
    assert_eq!(world.row(&ALL).await, before);
}

/// A keyring that was given up may still take the value: which one it has is not known then.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn egress_12_38_hosts_are_not_believed_when_nobody_knows_which_value_is_stored() {
    let silent = resolver::tests::Silent::start();
    let world = World::with(|_| silent.vault());
    assert!(!world.set(&ALL, "second", Some(&["a.example"])).await);
    assert!(!world.row(&ALL).await.unwrap().settled);
    let said = world.for_connectors().await.unwrap_err();
    assert_eq!(said, "ex.token was not stored completely; set it again");
}

#[tokio::test]
async fn a_new_value_keeps_the_hosts_until_others_are_said() {
    let world = World::new();
    assert!(world.set(&ALL, "first", Some(&["a.example"])).await);
    assert!(world.set(&ALL, "second", None).await);
    assert_eq!(world.row(&ALL).await.unwrap().hosts, ["a.example"]);
    assert!(world.set(&ALL, "third", Some(&[])).await);
    assert_eq!(world.row(&ALL).await.unwrap().hosts, Vec::<String>::new());
    assert_eq!(world.for_connectors().await, Ok(Some("third".into())));
}

#[tokio::test]
async fn a_project_with_anothers_short_name_gets_nothing_of_it() {
    let world = World::new();
    // The one pair of different roots with the same hash that is at hand.
    let (first, second) = (project("/p"), project("/p/"));
    assert_eq!(place(&first), place(&second));
    assert!(world.set(&first, "first", None).await);
    assert!(!world.set(&second, "second", None).await);
    assert!(world.kept.remove(&second, &id()).await.is_err());
    let kept = world.kept.vault.get(&place(&first).unwrap(), &id()).await.unwrap().unwrap();
    assert_eq!(kept.expose(), "first");
}

#[tokio::test]
async fn what_was_a_boxs_goes_with_it() {
    let world = World::new();
    let (gone, other) = (of_box("b00000001"), of_box("b00000002"));
    for scope in [&ALL, &gone, &other] {
        assert!(world.set(scope, "value", None).await);
    }
    world.kept.remove_of(&"b00000001".parse().unwrap()).await;
    assert_eq!(world.row(&gone).await, None);
    assert!(world.kept.vault.get(&place(&gone).unwrap(), &id()).await.unwrap().is_none());
    for scope in [&ALL, &other] {
        assert!(world.row(scope).await.is_some());
        assert!(world.kept.vault.get(&place(scope).unwrap(), &id()).await.unwrap().is_some());
    }
}

/// A value of one writer never stands with the hosts of another.
#[tokio::test(flavor = "multi_thread")]
async fn egress_12_38_writers_at_once_do_not_mix_values_and_hosts() {
    let world = Arc::new(World::new());
    for _ in 0..10 {
        let mut all = tokio::task::JoinSet::new();
        for host in ["a.example", "b.example", "c.example"] {
            let world = world.clone();
            all.spawn(async move { world.set(&ALL, host, Some(&[host])).await });
        }
        assert!(all.join_all().await.into_iter().all(|done| done));
        let value = world.for_connectors().await.unwrap().unwrap();
        assert_eq!(world.row(&ALL).await.unwrap().hosts, [value]);
    }
}

#[test]
fn egress_12_38_a_binding_is_to_exact_hosts() {
    let hosts = |all: &[&str]| {
        let all: Vec<String> = all.iter().map(|h| (*h).to_owned()).collect();
        bound_hosts(&all).map_err(|e| e.message)
    };
    assert_eq!(
        hosts(&["GitHub.com", "github.com.", "api.github.com"]).unwrap(),
        ["api.github.com", "github.com"]
    );
    assert_eq!(hosts(&["bücher.example"]).unwrap(), ["xn--bcher-kva.example"]);
    assert_eq!(hosts(&[]).unwrap(), Vec::<String>::new());
    for bad in [
        "",
        "*",
        "*.github.com",
        "https://github.com",
        "github.com:443",
        "github.com/x",
        "a b",
        "a,b",
    ] {
        assert!(hosts(&[bad]).is_err(), "{bad:?}");
    }
    assert!(hosts(&vec!["a.example"; MOST_HOSTS + 1]).is_err());
}

#[test]
fn what_a_person_should_know_about_a_value() {
    let token: SecretId = "github.token".parse().unwrap();
    assert_eq!(remark(&token, "12345678", &ALL), None);
    let short = remark(&token, "1234567\n", &ALL).unwrap();
    assert!(short.contains("shorter than 8 bytes") && !short.contains("1234567"), "{short}");
    let narrow = remark(&token, "12345678", &project("/p")).unwrap();
    assert!(narrow.contains("GitHub uses the github.token of everybody"), "{narrow}");
    assert_eq!(remark(&id(), "12345678", &project("/p")), None);
}
