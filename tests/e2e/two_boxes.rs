//! Two boxes of one repository at once: each speaks for itself.

use crate::world::{APP, SOON, World};
use agentbox_e2e::wait::eventually;

#[test]
fn two_boxes_push_at_once_and_answers_never_cross() {
    let world = World::desktop();
    for name in ["left", "right"] {
        world.create(name);
    }
    let (left, right) = (world.commit("left", "From left"), world.commit("right", "From right"));
    let (push_left, push_right) = (world.push("left"), world.push("right"));
    for name in ["left", "right"] {
        let question = world.question_of(name);
        assert_eq!(question["title"], format!("Push 1 commit to origin/agentbox/{name}"));
    }
    // One dialog after the other, in whichever order they came.
    for _ in 0..2 {
        let (name, other) = eventually(SOON, "a dialog", || {
            let windows = world.screen().windows(APP);
            let pairs = [("left", "right"), ("right", "left")];
            pairs.into_iter().find(|(name, _)| windows.contains(&format!("{name} asks")))
        });
        let title = format!("{name} asks");
        eventually(SOON, "the end of the grace", || {
            world.screen().exists(APP, &title, "Allow once").then_some(())
        });
        let texts = world.screen().texts(APP, &title).join("\n");
        let says = |name: &str| texts.contains(&format!("From {name}"));
        assert!(says(name) && !says(other), "{texts}");
        let answer = if name == "left" { "Deny" } else { "Allow once" };
        world.screen().press(APP, &title, answer, SOON);
        world.screen().gone(APP, &title, SOON);
    }
    let (left_end, right_end) = (push_left.end(), push_right.end());
    assert_eq!((left_end.code, right_end.code), (Some(10), Some(0)), "{left_end:?} {right_end:?}");
    assert_eq!(world.at_remote("agentbox/left"), None);
    assert_eq!(world.at_remote("agentbox/right"), Some(right));
    // The denied one is still on the host, where its owner can look at it.
    assert_eq!(world.git(&world.project(), &["rev-parse", "agentbox/left"]), left);
}
