//! What looking at boxes costs: the host knows them, and asks its engine next to nothing for a list.

use crate::create_faults;

/// A list may ask the engine so often, however many boxes there are.
const MOST: usize = 2;
/// So many that whatever the host asks by itself meanwhile does not count.
const LISTS: usize = 10;

#[test]
fn a_list_of_many_boxes_takes_at_most_two_calls_to_the_engine() {
    let (world, between) = create_faults::world();
    for name in ["tally-one", "tally-two", "tally-three", "tally-four"] {
        world.create(name);
    }
    world.ok(&["stop", "tally-three"]);
    world.ok(&["pause", "tally-four"]);
    for args in [&["list", "--json"][..], &["list", "-g", "--json"], &["list"]] {
        between.take_requests();
        for _ in 0..LISTS {
            let listed = world.ok(args);
            for name in ["tally-one", "tally-two", "tally-three", "tally-four"] {
                assert!(listed.contains(name), "{name} is not in {listed}");
            }
            assert!(listed.contains("stopped") && listed.contains("paused"), "{listed}");
        }
        let asked = between.take_requests();
        eprintln!("{LISTS} times agentbox {args:?}: the engine was asked {} times", asked.len());
        assert!(asked.len() <= LISTS * MOST, "agentbox {args:?}: {asked:?}");
    }
    // The count counts: what has to ask does.
    world.ok(&["status", "tally-one"]);
    let asked = between.take_requests();
    assert!(asked.iter().any(|line| line.starts_with("GET ")), "{asked:?}");
}
