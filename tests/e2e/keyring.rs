//! A keyring that is really locked: everybody is told at once, and nobody is shown a password dialog.

use crate::services::Service;
use crate::world::{World, text};
use agentbox_e2e::session::Options;
use zbus::zvariant::{ObjectPath, OwnedObjectPath};

const TOKEN: &str = "ntn_locked0123456789abcdefghijkl";

/// `Lock` of the Secret Service, for the login keyring.
fn lock(world: &World) {
    let login = ObjectPath::from_static_str("/org/freedesktop/secrets/collection/login").unwrap();
    let reply = world
        .session()
        .bus()
        .call_method(
            Some("org.freedesktop.secrets"),
            "/org/freedesktop/secrets",
            Some("org.freedesktop.Secret.Service"),
            "Lock",
            &(vec![login],),
        )
        .unwrap();
    let (locked, _): (Vec<OwnedObjectPath>, OwnedObjectPath) = reply.body().deserialize().unwrap();
    assert_eq!(locked.len(), 1, "the login keyring was not locked");
}

/// The program that asks for a keyring's password is started when it is first needed.
fn has_prompter(world: &World) -> bool {
    let name = "org.gnome.keyring.SystemPrompter";
    let bus = zbus::blocking::fdo::DBusProxy::new(&world.session().bus()).unwrap();
    bus.name_has_owner(name.try_into().unwrap()).unwrap()
}

#[test]
fn a_locked_keyring_is_said_and_waited_for_by_nobody() {
    let notion = Service::start("{}");
    let mut world = World::desktop_before(Options::default());
    world.set("NOTION_API_BASE_URL", &notion.url);
    world.configure("integrations: {notion: {enabled: true}}\n");
    world.start_desktop();
    world.create("docs-bot");
    world.store("notion.token", TOKEN);
    world.box_ok("docs-bot", "ntn api v1/users/me");
    let asked = notion.asked().len();

    lock(&world);
    // Which credentials there are is known without the keyring.
    let listed = world.json(&["secrets", "list"]);
    let notion_token =
        listed["secrets"].as_array().unwrap().iter().find(|s| s["id"] == "notion.token");
    assert_eq!(notion_token.unwrap()["stored"], true, "{listed}");
    for args in [&["secrets", "test", "notion.token"][..], &["secrets", "rm", "notion.token", "-y"]]
    {
        let output = world.agentbox(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("the keychain is locked"), "{args:?}: {said}");
        assert!(said.contains("hint: unlock the login keyring"), "{args:?}: {said}");
    }
    let tried = world.agentbox(&["integrations", "test", "notion"]);
    assert_eq!(tried.status.code(), Some(1));
    assert!(text(&tried.stdout).contains("the keychain is locked"), "{tried:?}");

    let call = world.in_box("docs-bot", "ntn api v1/users/me");
    let said = text(&call.stderr);
    assert_eq!(call.status.code(), Some(1), "{said}");
    assert!(said.contains("notion.token: the keychain is locked"), "{said}");
    assert_eq!(notion.asked().len(), asked, "the service was called without the credential");

    let keychain = world.json(&["doctor"])["checks"].clone();
    let keychain = keychain.as_array().unwrap().iter().find(|c| c["label"] == "keychain").cloned();
    let keychain = keychain.unwrap();
    assert_eq!((&keychain["level"], &keychain["detail"]), (&"warn".into(), &"locked".into()));
    // Nobody was asked for a password.
    assert!(!has_prompter(&world), "a password dialog was brought up");

    // Boxes and questions go on without it.
    let oid = world.commit("docs-bot", "One");
    let push = world.push("docs-bot");
    world.approve("docs-bot", &[]);
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(world.at_remote("agentbox/docs-bot"), Some(oid));
    world.ok(&["audit", "verify"]);
}
