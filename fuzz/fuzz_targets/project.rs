//! Whatever is in an agentbox.yaml, reading it ends, and a project comes out exactly when there is no
//! mistake; what is shown of it is one line, and nothing it names is out of bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use project::carry::{denied, plan};
use project::render::{Values, render};
use project::{Probe, Project};
use std::path::Path;

fuzz_target!(|text: &str| {
    let (host, inside) = (Project::parse(text), Project::parse_in_box(text));
    for parsed in [&host, &inside] {
        assert_eq!(parsed.project.is_some(), parsed.errors.is_empty());
        for problem in parsed.errors.iter().chain(&parsed.warnings) {
            let line = problem.line("agentbox.yaml");
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(line.len() < 8192 && problem.place.line > 0, "{line:?}");
        }
    }
    let Some(project) = host.project else { return };
    // The host is never more lenient than a box.
    let twin = inside.project.expect("a box reads what the host reads");
    assert_eq!((&twin.services, &twin.tasks), (&project.services, &project.tasks));
    for service in &project.services {
        for need in &service.needs {
            assert!(project.service(need.as_str()).is_some() || project.task(need.as_str()).is_some());
        }
        if let Some(Probe::LogMatch(pattern)) = service.ready_when.as_ref().map(|ready| &ready.probe) {
            pattern.is_match("ready");
        }
    }
    for set in &project.replacements {
        let _ = render("app.localhost {{AGENTBOX_BOX_NAME}} ready", true, &set.rules, &Values::default());
    }
    if let Ok(all) = plan(&project, Path::new("/src/shop"), Path::new("/home/ada"), "/home/vscode") {
        for one in all {
            assert!(one.dest.starts_with('/') && denied(&one.dest).is_none(), "{}", one.dest);
            assert!(!one.dest.split('/').any(|part| part == ".."), "{}", one.dest);
            let below = one.source.starts_with("/src/shop") || one.source.starts_with("/home/ada");
            assert!(below || one.item.src.starts_with('/'), "{:?}", one.source);
        }
    }
});
