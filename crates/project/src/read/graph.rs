//! What units say about each other.

use super::units::Seen;
use crate::problem::Problems;
use crate::{Project, UnitName};
use std::collections::HashMap;

pub(super) fn check(project: &Project, seen: &[Seen], problems: &mut Problems) {
    let mut by_name: HashMap<&UnitName, usize> = HashMap::new();
    for (index, unit) in seen.iter().enumerate() {
        // A name stands once in each section, so the other is of the other kind.
        if by_name.insert(&unit.name, index).is_some() {
            let message = format!("{} is the name of a service already", unit.name);
            problems.error("Y050", unit.place, unit.at.path(), &message);
        }
    }
    let mut edges: Vec<Vec<usize>> = Vec::with_capacity(seen.len());
    for unit in seen {
        let mut out = Vec::new();
        for (need, place) in &unit.needs {
            match by_name.get(need) {
                Some(_) if *need == unit.name => {
                    problems.error("Y052", *place, unit.at.path(), "needs itself");
                }
                Some(&other) => {
                    if unit.starts && !seen[other].starts {
                        let message = format!(
                            "needs {need}, which does not start by itself (autostart: false)"
                        );
                        let hint = format!("this waits until somebody starts {need}");
                        problems.warning("Y054", *place, unit.at.path(), &message, Some(&hint));
                    }
                    out.push(other);
                }
                None => {
                    let known: Vec<&str> = seen.iter().map(|unit| unit.name.as_str()).collect();
                    let message = format!("needs {need}, which is no service and no task");
                    match super::fields::did_you_mean(need.as_str(), &known) {
                        Some(hint) => {
                            problems.error_hint("Y051", *place, unit.at.path(), &message, &hint);
                        }
                        None => problems.error("Y051", *place, unit.at.path(), &message),
                    }
                }
            }
        }
        edges.push(out);
    }
    cycles(seen, &edges, problems);
    exposed(project, seen, problems);
}

/// One problem for each way that leads back to where it came from. Without recursion: a chain may be
/// as long as the file.
fn cycles(seen: &[Seen], edges: &[Vec<usize>], problems: &mut Problems) {
    let mut done = vec![false; seen.len()];
    let mut on_path = vec![false; seen.len()];
    // Tasks first: they are what people read first.
    let mut starts: Vec<usize> = (0..seen.len()).collect();
    starts.sort_by_key(|&index| !seen[index].is_task);
    for start in starts {
        if done[start] {
            continue;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        on_path[start] = true;
        while let Some((unit, next)) = path.last_mut() {
            let (unit, at) = (*unit, *next);
            *next += 1;
            match edges[unit].get(at) {
                Some(&other) if on_path[other] => {
                    let names = path.iter().map(|(unit, _)| *unit);
                    let round = names.skip_while(|unit| *unit != other).chain([other]);
                    let round: Vec<&str> = round.map(|unit| seen[unit].name.as_str()).collect();
                    let message = format!("needs go round: {}", round.join(" → "));
                    let first = &seen[other];
                    problems.error("Y053", first.place, first.at.path(), &message);
                }
                Some(&other) if !done[other] => {
                    on_path[other] = true;
                    path.push((other, 0));
                }
                Some(_) => {}
                None => {
                    on_path[unit] = false;
                    done[unit] = true;
                    path.pop();
                }
            }
        }
    }
}

fn exposed(project: &Project, seen: &[Seen], problems: &mut Problems) {
    let named = project.services.iter().filter(|service| service.expose.is_some());
    let names: Vec<&str> = named.map(|service| service.name.as_str()).collect();
    if names.len() > 1 {
        let second = seen.iter().find(|unit| unit.name.as_str() == names[1]);
        let message = format!("more than one service has expose: {}", names.join(", "));
        let place = second.map(|unit| unit.place).unwrap_or_default();
        problems.error("Y024", place, "services", &message);
    }
}
