//! The store of credentials on real parts: files, and GNOME Keyring on a bus of its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support {
    #[path = "mod.rs"]
    pub mod desktop;
    pub mod prompting;
}

use agentbox_secrets::{Backend, Error, LIMIT, Scope, Value, Vault};
use nix::sys::signal::Signal;
use protocol::SecretId;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::desktop::{Bus, Keyring, eventually, items, label, lock};
use support::prompting::Prompting;

/// More than the limit, for a machine that builds something at the same time.
const SOON: Duration = LIMIT.saturating_add(Duration::from_millis(1500));

const ALL: Scope = Scope::Everybody;

fn id(text: &str) -> SecretId {
    text.parse().unwrap()
}

fn github() -> SecretId {
    id("github.token")
}

async fn put(vault: &Vault, id: &SecretId, text: &str) -> Result<(), Error> {
    vault.set(&ALL, id, Value::new(text.into())).await
}

async fn text(vault: &Vault, id: &SecretId) -> Option<String> {
    vault.get(&ALL, id).await.unwrap().map(|value| value.expose().to_owned())
}

/// What every back end does.
async fn contract(vault: &Vault) {
    let (github, notion) = (github(), id("notion.token"));
    assert_eq!(vault.list(&ALL).await.unwrap(), []);
    assert_eq!(text(vault, &github).await, None);
    assert!(!vault.remove(&ALL, &github).await.unwrap());

    put(vault, &notion, "ntn").await.unwrap();
    put(vault, &github, "first\n").await.unwrap();
    assert_eq!(text(vault, &github).await.as_deref(), Some("first"));
    put(vault, &github, "zweiter Wert: ✓ \"'\\ $X").await.unwrap();
    assert_eq!(text(vault, &github).await.as_deref(), Some("zweiter Wert: ✓ \"'\\ $X"));
    assert_eq!(vault.list(&ALL).await.unwrap(), [github.clone(), notion.clone()]);

    for (bad, why) in
        [("", Error::Empty), ("\n", Error::Empty), (&"x".repeat(65537), Error::TooLarge)]
    {
        assert_eq!(put(vault, &github, bad).await, Err(why));
    }
    for bad in ["a\0b", "a\nb", "a\n\n"] {
        assert!(matches!(put(vault, &github, bad).await, Err(Error::Malformed(_))), "{bad:?}");
    }
    let largest = "x".repeat(64 * 1024);
    put(vault, &github, &largest).await.unwrap();
    assert_eq!(text(vault, &github).await, Some(largest));

    assert!(vault.remove(&ALL, &github).await.unwrap());
    assert!(!vault.remove(&ALL, &github).await.unwrap());
    assert_eq!(text(vault, &github).await, None);
    assert_eq!(text(vault, &notion).await.as_deref(), Some("ntn"));
    assert_eq!(vault.list(&ALL).await.unwrap(), [notion]);
}

/// The same id in each scope is another credential.
async fn scopes(vault: &Vault) {
    let project = |key: &str| Scope::Project(key.parse().unwrap());
    let of_box = |id: &str| Scope::Box(id.parse().unwrap());
    let all = [ALL, project("aa"), project("ab"), of_box("b01020304"), of_box("b01020305")];
    let github = github();
    for scope in &all {
        let value = Value::new(format!("of {scope}"));
        vault.set(scope, &github, value).await.unwrap();
    }
    for scope in &all {
        let value = vault.get(scope, &github).await.unwrap().unwrap();
        assert_eq!(value.expose(), format!("of {scope}"));
        assert_eq!(vault.list(scope).await.unwrap(), std::slice::from_ref(&github));
    }
    for (n, scope) in all.iter().enumerate() {
        assert!(vault.remove(scope, &github).await.unwrap());
        assert!(!vault.remove(scope, &github).await.unwrap());
        for (m, other) in all.iter().enumerate() {
            let kept = vault.get(other, &github).await.unwrap();
            assert_eq!(kept.is_some(), m > n, "{other} after {scope} was removed");
        }
    }
}

/// Many at once, some of them on the same credential.
async fn crowd(vault: &Vault) {
    let mut all = tokio::task::JoinSet::new();
    for n in 0..40 {
        let vault = vault.clone();
        all.spawn(async move {
            let id = id(&format!("crowd.n{}", n % 4));
            put(&vault, &id, &format!("value {n}")).await.unwrap();
            assert!(text(&vault, &id).await.unwrap().starts_with("value "));
        });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
    assert_eq!(vault.list(&ALL).await.unwrap().len(), 4);
}

#[tokio::test]
async fn files_keep_the_contract() {
    let home = tempfile::tempdir().unwrap();
    let vault = Vault::new(Backend::File(home.path().join("secrets")));
    assert_eq!(vault.kept_in(), "file");
    contract(&vault).await;
    let again = Vault::new(Backend::File(home.path().join("secrets")));
    assert_eq!(text(&again, &id("notion.token")).await.as_deref(), Some("ntn"));
}

#[tokio::test]
async fn files_keep_scopes_apart() {
    let home = tempfile::tempdir().unwrap();
    scopes(&Vault::new(Backend::File(home.path().join("secrets")))).await;
}

#[tokio::test]
async fn the_keychain_keeps_scopes_apart() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    scopes(&Vault::on_bus("/h", &bus.address())).await;
    assert_eq!(items(&bus, "id", "github.token").len(), 0);
}

/// What an earlier version stored, and what a person sees of a scope in a program for keyrings.
#[tokio::test]
async fn everybodys_items_are_what_they_were() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    store_by_hand(&bus, &[("application", "agentbox"), ("home", "/h"), ("id", "github.token")]);
    let vault = Vault::on_bus("/h", &bus.address());
    assert_eq!(text(&vault, &github()).await.as_deref(), Some("by hand"));
    let scope = Scope::Box("b01020304".parse().unwrap());
    vault.set(&scope, &github(), Value::new("narrow".into())).await.unwrap();
    let found = items(&bus, "application", "agentbox/box/b01020304");
    assert_eq!(found.len(), 1);
    assert_eq!(label(&bus, &found[0]), "AgentBox: github.token (box b01020304)");
    assert_eq!(text(&vault, &github()).await.as_deref(), Some("by hand"));
}

async fn recent(vault: &Vault) -> Option<String> {
    vault.recent(&ALL, &github()).await.unwrap().map(|value| value.expose().to_owned())
}

#[tokio::test]
async fn egress_12_35_the_next_request_sees_what_was_set_here() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let home = tempfile::tempdir().unwrap();
    let vaults = [
        Vault::on_bus("/h", &bus.address()),
        Vault::new(Backend::File(home.path().join("secrets"))),
    ];
    for vault in vaults {
        assert_eq!(recent(&vault).await, None);
        for n in 0..3 {
            put(&vault, &github(), &format!("value {n}")).await.unwrap();
            assert_eq!(recent(&vault).await, Some(format!("value {n}")));
        }
        assert!(vault.remove(&ALL, &github()).await.unwrap());
        assert_eq!(recent(&vault).await, None);
    }
}

#[tokio::test]
async fn egress_12_35_a_file_changed_by_hand_counts_at_the_next_request() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("secrets");
    let vault = Vault::new(Backend::File(folder.clone()));
    put(&vault, &github(), "first").await.unwrap();
    let in_flight = vault.recent(&ALL, &github()).await.unwrap().unwrap();
    std::fs::write(folder.join("github.token"), "second\n").unwrap();
    assert_eq!(recent(&vault).await.as_deref(), Some("second"));
    assert_eq!(in_flight.expose(), "first");
}

#[tokio::test]
async fn egress_12_35_what_another_program_changed_counts_after_five_seconds() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let (ours, other) = (Vault::on_bus("/h", &bus.address()), Vault::on_bus("/h", &bus.address()));
    put(&ours, &github(), "first").await.unwrap();
    assert_eq!(recent(&ours).await.as_deref(), Some("first"));
    let begun = Instant::now();
    put(&other, &github(), "second").await.unwrap();
    while recent(&ours).await.as_deref() != Some("second") {
        assert!(begun.elapsed() < Duration::from_secs(8), "the old value was never given up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // And for a person's own question at once.
    put(&other, &github(), "third").await.unwrap();
    assert_eq!(text(&ours, &github()).await.as_deref(), Some("third"));
}

#[tokio::test]
async fn egress_12_36_a_keyring_that_hangs_holds_up_one_request_and_the_others_not_at_all() {
    let bus = Bus::start();
    let keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "kept").await.unwrap();
    keyring.signal(Signal::SIGSTOP);
    let begun = Instant::now();
    let failed = vault.recent(&ALL, &github()).await.unwrap_err();
    assert_eq!(failed, Error::Silent("the keychain did not answer within 3 s"));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let begun = Instant::now();
    for _ in 0..20 {
        let failed = vault.recent(&ALL, &github()).await.unwrap_err();
        assert_eq!(failed, Error::Silent("the keychain did not answer a moment ago"));
    }
    assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());

    // A person's own try, once it is answered, ends the pause for boxes.
    keyring.signal(Signal::SIGCONT);
    assert_eq!(text(&vault, &github()).await.as_deref(), Some("kept"));
    assert_eq!(recent(&vault).await.as_deref(), Some("kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_stand_a_crowd() {
    let home = tempfile::tempdir().unwrap();
    crowd(&Vault::new(Backend::File(home.path().join("secrets")))).await;
}

#[tokio::test]
async fn the_keychain_keeps_the_contract() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/home/a/.agentbox", &bus.address());
    assert_eq!(vault.kept_in(), "keychain");
    contract(&vault).await;
    let again = Vault::on_bus("/home/a/.agentbox", &bus.address());
    assert_eq!(text(&again, &id("notion.token")).await.as_deref(), Some("ntn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keychain_stands_a_crowd() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    crowd(&Vault::on_bus("/home/a/.agentbox", &bus.address())).await;
    assert_eq!(items(&bus, "application", "agentbox").len(), 4);
}

#[tokio::test]
async fn a_credential_is_one_item_with_a_name_people_know() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    for value in ["one", "two", "three"] {
        put(&vault, &github(), value).await.unwrap();
    }
    let found = items(&bus, "id", "github.token");
    assert_eq!(found.len(), 1);
    assert_eq!(label(&bus, &found[0]), "AgentBox: github.token");
    assert_eq!(items(&bus, "application", "agentbox"), found);
}

/// Another tool can make items that the service does not take for the same.
#[tokio::test]
async fn duplicates_go_when_a_credential_is_set() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    for n in ["1", "2"] {
        store_by_hand(
            &bus,
            &[("application", "agentbox"), ("home", "/h"), ("id", "github.token"), ("n", n)],
        );
    }
    assert_eq!(items(&bus, "id", "github.token").len(), 2);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "ours").await.unwrap();
    assert_eq!(items(&bus, "id", "github.token").len(), 1);
    assert_eq!(text(&vault, &github()).await.as_deref(), Some("ours"));
    store_by_hand(
        &bus,
        &[("application", "agentbox"), ("home", "/h"), ("id", "github.token"), ("n", "3")],
    );
    assert!(vault.remove(&ALL, &github()).await.unwrap());
    assert_eq!(items(&bus, "id", "github.token").len(), 0);
}

#[tokio::test]
async fn two_homes_do_not_see_each_other() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let (a, b) =
        (Vault::on_bus("/home/a", &bus.address()), Vault::on_bus("/home/b", &bus.address()));
    put(&a, &github(), "of a").await.unwrap();
    assert_eq!(text(&b, &github()).await, None);
    assert_eq!(b.list(&ALL).await.unwrap(), []);
    put(&b, &github(), "of b").await.unwrap();
    assert!(b.remove(&ALL, &github()).await.unwrap());
    assert_eq!(text(&a, &github()).await.as_deref(), Some("of a"));
    assert_eq!(a.list(&ALL).await.unwrap(), [github()]);
}

#[tokio::test]
async fn a_locked_keychain_says_so_at_once_and_asks_nobody() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "kept").await.unwrap();
    lock(&bus);
    let begun = Instant::now();
    assert_eq!(vault.get(&ALL, &github()).await.unwrap_err(), Error::Locked);
    assert_eq!(put(&vault, &github(), "new").await, Err(Error::Locked));
    assert_eq!(vault.remove(&ALL, &github()).await, Err(Error::Locked));
    assert_eq!(vault.list(&ALL).await, Err(Error::Locked));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    assert!(Error::Locked.hint().unwrap().contains("unlock"));
}

#[tokio::test]
async fn a_service_that_wants_a_password_is_locked_and_its_prompt_stays_unseen() {
    let bus = Bus::start();
    let service = Prompting::start(&bus.address());
    let vault = Vault::on_bus("/h", &bus.address());
    assert_eq!(put(&vault, &github(), "new").await, Err(Error::Locked));
    assert_eq!(vault.remove(&ALL, &github()).await, Err(Error::Locked));
    let Err(Error::Failed(why)) = vault.get(&ALL, &github()).await else { panic!("it was read") };
    assert_eq!(why, "the keyring refused: not without the password");
    assert_eq!(service.counts.shown.load(Ordering::SeqCst), 0);
    assert_eq!(service.counts.dismissed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn no_service_is_missing_until_one_comes() {
    let bus = Bus::start();
    let vault = Vault::on_bus("/h", &bus.address());
    let missing = vault.get(&ALL, &github()).await.unwrap_err();
    assert!(
        matches!(&missing, Error::Missing(why) if why.contains("no Secret Service")),
        "{missing}"
    );
    assert!(missing.hint().unwrap().contains("secrets.backend: file"));
    let _keyring = Keyring::start(&bus);
    put(&vault, &github(), "kept").await.unwrap();
}

#[tokio::test]
async fn no_bus_is_missing() {
    for address in ["unix:path=/nonexistent/bus", "nonsense", ""] {
        let vault = Vault::on_bus("/h", address);
        let missing = vault.list(&ALL).await.unwrap_err();
        assert!(
            matches!(&missing, Error::Missing(why) if why.contains("no D-Bus session")),
            "{missing}"
        );
    }
}

#[tokio::test]
async fn a_keyring_that_ended_between_calls_is_missing_and_its_successor_is_found() {
    let bus = Bus::start();
    let keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "kept").await.unwrap();
    keyring.kill(&bus);
    let begun = Instant::now();
    assert!(matches!(vault.get(&ALL, &github()).await, Err(Error::Missing(_))));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    let _again = Keyring::start(&bus);
    assert_eq!(text(&vault, &github()).await.as_deref(), Some("kept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_killed_while_it_is_asked_is_an_error_at_once() {
    let bus = Bus::start();
    let keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "kept").await.unwrap();
    keyring.signal(Signal::SIGSTOP);
    let asked = tokio::spawn({
        let vault = vault.clone();
        async move {
            let begun = Instant::now();
            let answer = vault.get(&ALL, &github()).await;
            (answer.map(|_| ()), begun.elapsed())
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    keyring.kill(&bus);
    let (answer, took) = asked.await.unwrap();
    assert!(matches!(answer, Err(Error::Missing(_) | Error::Failed(_))), "{answer:?}");
    assert!(took < LIMIT, "{took:?}");
}

#[tokio::test]
async fn a_keyring_that_hangs_is_given_up_after_three_seconds() {
    let bus = Bus::start();
    let keyring = Keyring::start(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    put(&vault, &github(), "kept-value").await.unwrap();
    keyring.signal(Signal::SIGSTOP);
    let fresh = Vault::on_bus("/h", &bus.address());
    for vault in [&vault, &fresh] {
        let begun = Instant::now();
        let failed = put(vault, &github(), "another-value").await.unwrap_err();
        let took = begun.elapsed();
        assert_eq!(failed.to_string(), "the keychain did not answer within 3 s");
        assert!(took >= LIMIT && took < SOON, "{took:?}");
    }
    keyring.signal(Signal::SIGCONT);
    // Calls that were given up may still be done by the keyring when it wakes up.
    let kept = text(&vault, &github()).await.unwrap();
    assert!(["kept-value", "another-value"].contains(&kept.as_str()));
    assert_eq!(items(&bus, "id", "github.token").len(), 1);
}

#[tokio::test]
async fn a_bus_that_hangs_is_given_up_after_three_seconds() {
    let bus = Bus::start();
    let _keyring = Keyring::start(&bus);
    bus.stop(Signal::SIGSTOP);
    let begun = Instant::now();
    let failed = Vault::on_bus("/h", &bus.address()).list(&ALL).await.unwrap_err();
    assert!(matches!(failed, Error::Silent(_)), "{failed}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    bus.stop(Signal::SIGCONT);
}

#[tokio::test]
async fn nothing_is_opened_before_it_is_needed() {
    let bus = Bus::start();
    let before = bus_clients(&bus);
    let vault = Vault::on_bus("/h", &bus.address());
    assert_eq!(vault.kept_in(), "keychain");
    assert_eq!(bus_clients(&bus), before);
    let _ = vault.list(&ALL).await;
    drop(vault);
    eventually("the end of the connection", || bus_clients(&bus) == before);
}

/// Connections besides the one that asks.
fn bus_clients(bus: &Bus) -> usize {
    let dbus = zbus::blocking::fdo::DBusProxy::new(&bus.connect()).unwrap();
    dbus.list_names().unwrap().iter().filter(|name| name.starts_with(':')).count()
}

fn store_by_hand(bus: &Bus, attributes: &[(&str, &str)]) {
    let mut tool = std::process::Command::new("secret-tool")
        .args(["store", "--label=by hand"])
        .args(attributes.iter().flat_map(|(name, value)| [*name, *value]))
        .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("secret-tool (package libsecret-tools)");
    std::io::Write::write_all(&mut tool.stdin.take().unwrap(), b"by hand").unwrap();
    assert!(tool.wait().unwrap().success());
}
