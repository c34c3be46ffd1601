//! The outermost layer: help, version, mistakes.

use crate::support::{TestBox, said};

#[test]
fn help_and_version_are_there() {
    let at = TestBox::new();
    assert!(said(&mut at.ctl(&["--version"])).stdout.starts_with("agentbox-ctl 0."));
    for line in [&["--help"][..], &["help"], &[]] {
        assert!(said(&mut at.ctl(line)).stdout.contains("git push|fetch|pull"));
    }
    let names = ["git", "rpc", "init", "go", "seed", "bundle", "unbundle", "watch"];
    for name in names {
        let help = said(&mut at.ctl(&["help", name]));
        assert_eq!((help.code, help.stderr.as_str()), (0, ""));
        assert!(help.stdout.starts_with(&format!("agentbox-ctl {name}")));
    }
}

#[test]
fn mistakes_get_64_and_a_hint() {
    let at = TestBox::new();
    for line in [&["bogus"][..], &["help", "bogus"], &["rpc"], &["bundle"], &["bundle", "-x"]] {
        let said = said(&mut at.ctl(line));
        assert_eq!(said.code, 64, "{line:?}: {}", said.stderr);
        assert_eq!(said.stderr.lines().count(), 1);
    }
    let said = said(&mut at.ctl(&["bo\u{202e}gus"]));
    assert!(said.stderr.contains("⟨U+202E⟩"));
    assert!(said.stderr.contains("agentbox-ctl help"));
}

#[test]
fn init_is_for_pid_1_only() {
    let said = said(&mut TestBox::new().ctl(&["init"]));
    assert_eq!((said.code, said.stdout.as_str()), (64, ""));
}
