//! What a project's own files say about what its boxes may do has no effect.

use crate::world::World;

const WISHES: &str = "\
integrations:
  notion: {enabled: true, autoApproveWrites: true}
approvals:
  mode: safe
defaults:
  integrations: {linear: {enabled: true}}
";

#[test]
fn relay_19_34_and_a19_a_repository_cannot_switch_anything_on() {
    let world = World::over("auto", "");
    // Both ways it gets there: the person commits it, or the box writes it.
    std::fs::write(world.project().join("agentbox.yaml"), WISHES).unwrap();
    world.git(&world.project(), &["add", "."]);
    world.git(&world.project(), &["commit", "-qm", "Wishes"]);
    world.create("fix-login");
    assert_eq!(world.box_ok("fix-login", "cat agentbox.yaml"), WISHES.trim_end());
    let page = "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d";
    let calls = [
        "ntn api v1/users/me".to_owned(),
        format!("ntn pages create --parent page:{page} --content '# Notes'"),
        "linear issue mine".to_owned(),
    ];
    let refused = || {
        for call in &calls {
            let output = world.in_box("fix-login", call);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(65), "{call}: {said}");
            assert!(said.contains("integration is disabled"), "{call}: {said}");
        }
    };
    refused();
    world
        .box_ok("fix-login", "printf 'integrations: {notion: {enabled: true}}\\n' > agentbox.yaml");
    refused();
    // Nor is anything allowed that would be asked about otherwise.
    world.commit("fix-login", "One");
    let (question, denied) = world.answered("fix-login", "git push", "deny");
    assert_eq!(denied.code, Some(10), "{}", denied.err);
    assert_eq!(question["title"].as_str().unwrap().split(' ').next(), Some("Push"));
    assert!(!world.audit_kinds("fix-login").contains(&"allowed-by-policy".to_owned()));

    let checks = world.json(&["doctor"])["checks"].clone();
    let checks = checks.as_array().unwrap();
    let row = checks.iter().find(|c| c["label"] == "repository");
    let row = row.unwrap_or_else(|| panic!("{checks:?}"));
    assert_eq!((&row["group"], &row["level"]), (&"relay".into(), &"warn".into()));
    let detail = row["detail"].as_str().unwrap();
    for key in [
        "integrations.notion.enabled",
        "integrations.notion.autoApproveWrites",
        "approvals.mode",
        "defaults.integrations.linear.enabled",
    ] {
        assert!(detail.contains(key), "no {key} in {detail}");
    }
    let file = world.project().join("agentbox.yaml").display().to_string();
    assert!(detail.contains(&file) && detail.contains("has no effect"), "{detail}");
    let mode = checks.iter().find(|c| c["group"] == "relay" && c["label"] == "approvals").unwrap();
    assert_eq!(mode["detail"], "every write asks", "{mode}");
}
