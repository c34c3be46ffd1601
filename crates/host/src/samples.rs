//! Questions for the tests of this crate.

use approvals::{Asker, Draft, Times};
use protocol::Millis;
use protocol::question::{Answers, Evidence, Fact, FileLine, Question, Tier};

pub fn question(n: u8, title: &str, expires_at: Millis) -> Question {
    Question {
        id: format!("{n:032x}").parse().unwrap(),
        box_id: "b00000001".parse().unwrap(),
        box_name: "smoke".parse().unwrap(),
        project: "shop".into(),
        method: "git.push".into(),
        tier: Tier::Routine,
        title: title.into(),
        target: "example.org/shop".into(),
        evidence: Evidence::default(),
        warnings: vec![],
        argv: vec!["git".into(), "push".into()],
        remember: None,
        answers: Answers::default(),
        times: 1,
        created_at: 0,
        expires_at,
        digest: format!("d{n}"),
    }
}

pub fn draft(title: &str) -> Draft {
    Draft {
        asker: Asker {
            box_id: "b00000001".parse().unwrap(),
            box_name: "smoke".parse().unwrap(),
            project: "shop".into(),
            project_root: "/home/ada/shop".into(),
        },
        method: "git.push".into(),
        tier: Tier::Routine,
        title: title.into(),
        target: "example.org/shop".into(),
        evidence: Evidence {
            facts: vec![Fact { label: "Title".into(), value: "Roadmap".into() }],
            body: vec!["First line".into()],
            files: vec![FileLine {
                path: "a.txt".into(),
                bytes: 3,
                note: Some("overwrites".into()),
            }],
            ..Evidence::default()
        },
        warnings: vec!["rewrites history".into()],
        argv: vec!["git".into(), "push".into()],
        plan: String::new(),
        remember: None,
        answers: Answers::default(),
        times: Times::default(),
        timeout: None,
    }
}
