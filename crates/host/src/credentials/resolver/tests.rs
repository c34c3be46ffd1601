//! Which credential a request gets, and when it gets none.

use super::*;
use crate::credentials::Kept;
use secrets::Backend;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

/// A session bus that takes every connection and never says a word.
pub(in crate::credentials) struct Silent {
    dir: tempfile::TempDir,
    _socket: std::os::unix::net::UnixListener,
}

impl Silent {
    pub fn start() -> Self {
        // Short: a Unix socket's path has 108 bytes at most.
        let dir = tempfile::Builder::new().prefix("abx.").tempdir_in("/tmp").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("bus")).unwrap();
        Self { dir, _socket: socket }
    }

    #[cfg(target_os = "linux")]
    pub fn vault(&self) -> Vault {
        Vault::on_bus("/h", &format!("unix:path={}/bus", self.dir.path().display()))
    }
}

/// Two boxes of the project `/p`, one of `/q`.
const ONE: &str = "b00000001";
const TWO: &str = "b00000002";
const FAR: &str = "b00000003";

struct World {
    kept: Kept,
    resolver: Resolver,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(|dir| Vault::new(Backend::File(dir.join("secrets"))))
    }

    fn with(vault: impl FnOnce(&Path) -> Vault) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("agentbox.db")).unwrap();
        let vault = vault(dir.path());
        let root_of: RootOf = Arc::new(|id| match id.as_str() {
            ONE | TWO => Some("/p".into()),
            FAR => Some("/q".into()),
            _ => None,
        });
        let resolver = Resolver::new(vault.clone(), store.clone(), root_of);
        Self { kept: Kept { vault, store }, resolver, dir }
    }

    async fn set(&self, scope: &SecretScope, value: &str, hosts: &[&str]) {
        let hosts: Vec<String> = hosts.iter().map(|h| (*h).to_owned()).collect();
        self.kept.set(scope, &id(), Value::new(value.into()), Some(&hosts)).await.unwrap();
    }

    async fn resolve(&self, of: &str, host: &str) -> Result<String, SecretFault> {
        let (of, host) = (of.parse().unwrap(), HostName::parse(host).unwrap());
        let value = self.resolver.resolve(&id(), &of, &host).await?;
        Ok(value.expose().to_owned())
    }

    async fn is_bound(&self, of: &str, host: &str) -> bool {
        let (of, host) = (of.parse().unwrap(), HostName::parse(host).unwrap());
        self.resolver.is_bound(&id(), &of, &host).await
    }

    fn file(&self, scope: &SecretScope) -> PathBuf {
        let folder = self.dir.path().join("secrets");
        let key = boxes::project::project_hash(Path::new("/p"));
        match scope {
            SecretScope::Everybody => folder.join("ex.token"),
            SecretScope::Project { .. } => folder.join("@project").join(key).join("ex.token"),
            SecretScope::Box { id } => folder.join("@box").join(id.as_str()).join("ex.token"),
        }
    }
}

fn id() -> SecretId {
    "ex.token".parse().unwrap()
}

const ALL: SecretScope = SecretScope::Everybody;

fn project() -> SecretScope {
    SecretScope::Project { root: "/p".into() }
}

fn of_box() -> SecretScope {
    SecretScope::Box { id: ONE.parse().unwrap() }
}

fn not_found() -> SecretFault {
    SecretFault::NotFound(id())
}

#[tokio::test]
async fn egress_12_37_the_narrowest_that_there_is_counts() {
    let world = World::new();
    let all = async || {
        let mut got = Vec::new();
        for of in [ONE, TWO, FAR] {
            got.push(world.resolve(of, "a.example").await.ok());
        }
        got
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(all().await, [None, None, None]);
    world.set(&project(), "of p", &[]).await;
    assert_eq!(all().await, [some("of p"), some("of p"), None]);
    world.set(&ALL, "of all", &[]).await;
    assert_eq!(all().await, [some("of p"), some("of p"), some("of all")]);
    world.set(&of_box(), "of one", &[]).await;
    assert_eq!(all().await, [some("of one"), some("of p"), some("of all")]);
    assert!(world.kept.remove(&project(), &id()).await.unwrap());
    assert_eq!(all().await, [some("of one"), some("of all"), some("of all")]);
    // One whose file is gone is not there.
    std::fs::remove_file(world.file(&of_box())).unwrap();
    assert_eq!(all().await, [some("of all"), some("of all"), some("of all")]);
}

#[tokio::test]
async fn egress_12_37_a_narrower_one_that_cannot_be_used_is_no_reason_to_take_a_wider() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 5] = [
        ("open to others", |file| {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("symbolic link", |file| {
            let elsewhere = file.with_file_name("elsewhere");
            std::fs::rename(file, &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, file).unwrap();
        }),
        ("the credential is empty", |file| std::fs::write(file, "\n").unwrap()),
        ("more than one line", |file| std::fs::write(file, "sesame\nopen").unwrap()),
        ("not text", |file| std::fs::write(file, b"sesame\xff").unwrap()),
    ];
    for (why, spoil) in spoils {
        for narrow in [project(), of_box()] {
            let world = World::new();
            world.set(&ALL, "of all", &[]).await;
            world.set(&narrow, "sesame", &[]).await;
            spoil(&world.file(&narrow));
            let Err(SecretFault::Unusable(said)) = world.resolve(ONE, "a.example").await else {
                panic!("{why}: it was used, or a wider one");
            };
            assert!(said.contains("ex.token") && said.contains(why), "{said}");
            assert!(!said.contains("sesame"), "{said}");
            assert_eq!(world.resolve(FAR, "a.example").await.unwrap(), "of all");
        }
    }
}

#[tokio::test]
async fn egress_12_33_what_nobody_stored_here_is_not_there() {
    let world = World::new();
    assert_eq!(world.resolve(ONE, "a.example").await, Err(not_found()));
    // A value without a word about whose it is and where it may go.
    let place = secrets::Scope::Everybody;
    world.kept.vault.set(&place, &id(), Value::new("found".into())).await.unwrap();
    assert_eq!(world.resolve(ONE, "a.example").await, Err(not_found()));
}

#[tokio::test]
async fn a_box_nobody_knows_gets_nothing() {
    let world = World::new();
    world.set(&ALL, "of all", &[]).await;
    let fault = world.resolve("b00000009", "a.example").await.unwrap_err();
    assert!(matches!(fault, SecretFault::Unavailable(_)), "{fault}");
    assert!(!world.is_bound("b00000009", "a.example").await);
}

#[tokio::test]
async fn egress_12_38_a_bound_credential_goes_to_its_hosts_and_nowhere_else() {
    let world = World::new();
    world.set(&ALL, "of all", &["github.com", "api.github.com"]).await;
    for host in ["github.com", "api.github.com", "GitHub.com."] {
        assert_eq!(world.resolve(ONE, host).await.unwrap(), "of all", "{host}");
        assert!(world.is_bound(ONE, host).await, "{host}");
    }
    for host in ["api.ex.com", "x.github.com", "github.com.ex.com", "hub.com", "10.0.0.1"] {
        let fault = world.resolve(ONE, host).await.unwrap_err();
        assert_eq!(fault, SecretFault::HostBinding { id: id(), host: host.into() });
        assert!(!world.is_bound(ONE, host).await, "{host}");
    }
    // Being set again without a word about hosts frees nothing.
    world.kept.set(&ALL, &id(), Value::new("new".into()), None).await.unwrap();
    assert!(world.resolve(ONE, "api.ex.com").await.is_err());
}

#[tokio::test]
async fn egress_12_38_a_narrower_ones_binding_is_not_got_around_by_a_wider() {
    let world = World::new();
    world.set(&ALL, "of all", &[]).await;
    world.set(&project(), "of p", &["github.com"]).await;
    let fault = world.resolve(ONE, "api.ex.com").await.unwrap_err();
    assert!(matches!(fault, SecretFault::HostBinding { .. }), "{fault}");
    assert_eq!(world.resolve(FAR, "api.ex.com").await.unwrap(), "of all");
    // An unbound one is bound to no host, whatever a wider one says.
    assert!(world.is_bound(ONE, "github.com").await);
    assert!(!world.is_bound(FAR, "github.com").await);
    world.set(&of_box(), "of one", &[]).await;
    assert!(!world.is_bound(ONE, "github.com").await);
}

#[tokio::test]
async fn egress_12_38_what_was_not_stored_completely_is_not_used() {
    let world = World::new();
    world.set(&ALL, "of all", &["github.com"]).await;
    world.kept.store.credential_unsettled(&ALL, &id()).await.unwrap();
    let fault = world.resolve(ONE, "github.com").await.unwrap_err();
    assert_eq!(
        fault,
        SecretFault::Unusable("ex.token was not stored completely; set it again".into())
    );
    assert!(!world.is_bound(ONE, "github.com").await);
    assert_eq!(world.resolver.stored(None, None).await.unwrap(), []);
}

/// Values that say which host they are for, changed while requests go on.
#[tokio::test(flavor = "multi_thread")]
async fn egress_12_38_no_value_goes_to_the_hosts_of_another_while_it_is_changed() {
    let world = Arc::new(World::new());
    let (a, b) = ("a.example", "b.example");
    world.set(&ALL, a, &[a]).await;
    let writer = tokio::spawn({
        let world = world.clone();
        async move {
            for n in 0..60 {
                let host = if n % 2 == 0 { b } else { a };
                world.set(&ALL, host, &[host]).await;
            }
        }
    });
    while !writer.is_finished() {
        for host in [a, b] {
            if let Ok(value) = world.resolve(ONE, host).await {
                assert_eq!(value, host, "it went to the other's host");
            }
        }
    }
    writer.await.unwrap();
    assert_eq!(world.resolve(ONE, a).await.unwrap(), a);
}

#[tokio::test]
async fn egress_12_35_the_next_request_has_the_new_value() {
    let world = World::new();
    world.set(&ALL, "first", &[]).await;
    let in_flight = world.resolve(ONE, "a.example").await.unwrap();
    world.set(&ALL, "second", &[]).await;
    assert_eq!(world.resolve(ONE, "a.example").await.unwrap(), "second");
    std::fs::write(world.file(&ALL), "third\n").unwrap();
    assert_eq!(world.resolve(ONE, "a.example").await.unwrap(), "third");
    assert_eq!(in_flight, "first");
    assert!(world.kept.remove(&ALL, &id()).await.unwrap());
    assert_eq!(world.resolve(ONE, "a.example").await, Err(not_found()));
}

/// A new value for the same hosts never leaves a request without one.
#[tokio::test(flavor = "multi_thread")]
async fn egress_12_35_requests_go_on_while_a_value_is_replaced() {
    let world = Arc::new(World::new());
    world.set(&ALL, "value 0", &["a.example"]).await;
    let writer = tokio::spawn({
        let world = world.clone();
        async move {
            for n in 1..20 {
                let value = Value::new(format!("value {n}"));
                world.kept.set(&ALL, &id(), value, None).await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    while !writer.is_finished() {
        let value = world.resolve(ONE, "a.example").await.unwrap();
        assert!(value.starts_with("value "));
    }
    writer.await.unwrap();
    assert_eq!(world.resolve(ONE, "a.example").await.unwrap(), "value 19");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn egress_12_36_a_keychain_that_never_answers_is_given_up_and_holds_nobody_up() {
    let silent = Silent::start();
    let world = World::with(|_| silent.vault());
    world.kept.store.credential_set(&ALL, &id(), None).await.unwrap();
    let begun = Instant::now();
    let both = tokio::join!(world.resolve(ONE, "a.example"), world.resolve(TWO, "a.example"));
    for fault in [both.0.unwrap_err(), both.1.unwrap_err()] {
        let SecretFault::Unavailable(said) = fault else { panic!("{fault}") };
        assert!(said.starts_with("ex.token: the keychain did not answer"), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_millis(5500), "{:?}", begun.elapsed());

    // Those after them are told at once; what is not stored needs no keychain at all.
    let begun = Instant::now();
    for _ in 0..10 {
        let fault = world.resolve(ONE, "a.example").await.unwrap_err();
        assert!(matches!(fault, SecretFault::Unavailable(_)), "{fault}");
    }
    let (of, host) = (ONE.parse().unwrap(), HostName::parse("a.example").unwrap());
    let other: SecretId = "other.token".parse().unwrap();
    let fault = world.resolver.resolve(&other, &of, &host).await.unwrap_err();
    assert_eq!(fault, SecretFault::NotFound(other));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_use_is_written_down_soon_and_not_waited_for() {
    let world = World::new();
    world.set(&ALL, "of all", &[]).await;
    world.set(&project(), "of p", &[]).await;
    world.resolve(ONE, "a.example").await.unwrap();
    let used = async |scope: &SecretScope| {
        world.kept.store.credential(scope, &id()).await.unwrap().unwrap().last_used
    };
    let end = Instant::now() + Duration::from_secs(10);
    while used(&project()).await.is_none() {
        assert!(Instant::now() < end, "it was not written down");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(used(&ALL).await, None);
}

#[tokio::test]
async fn the_linter_sees_what_would_be_taken() {
    let world = World::new();
    world.set(&ALL, "of all", &[]).await;
    world.set(&project(), "of p", &["b.example", "a.example"]).await;
    let other: SecretId = "a.other".parse().unwrap();
    world.kept.set(&of_box(), &other, Value::new("x".into()), None).await.unwrap();
    let of: BoxId = ONE.parse().unwrap();
    let hosts = |stored: Vec<StoredSecret>| -> Vec<(String, usize)> {
        stored.iter().map(|one| (one.id.to_string(), one.hosts.len())).collect()
    };
    let token = |n: usize| ("ex.token".to_owned(), n);
    let box_only = ("a.other".to_owned(), 0);
    assert_eq!(hosts(world.resolver.stored(None, None).await.unwrap()), [token(0)]);
    assert_eq!(
        hosts(world.resolver.stored(None, Some(Path::new("/p"))).await.unwrap()),
        [token(2)]
    );
    assert_eq!(
        hosts(world.resolver.stored(None, Some(Path::new("/q"))).await.unwrap()),
        [token(0)]
    );
    assert_eq!(hosts(world.resolver.stored(Some(&of), None).await.unwrap()), [box_only, token(2)]);
}
