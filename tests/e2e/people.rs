//! Who runs the tests is who runs AgentBox: an ordinary person.

#[test]
fn nobody_runs_a_tray_as_root() {
    let uid = nix::unistd::geteuid().as_raw();
    assert_ne!(uid, 0, "run scripts/test: it makes an unprivileged user");
    assert_ne!(uid, 1000, "1000 is the box user's own id and would hide a missing renumbering");
}
