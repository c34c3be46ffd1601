//! What a question about a list says, and what a rule made at it covers.

use super::*;
use std::fs;

struct Here {
    home: tempfile::TempDir,
}

impl Here {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for project in ["shop", "docs"] {
            fs::create_dir(home.path().join(project)).unwrap();
        }
        for file in ["a", "b", "c", "d"] {
            fs::write(home.path().join(file), "x").unwrap();
        }
        Self { home }
    }

    fn root(&self, project: &str) -> PathBuf {
        self.home.path().join(project)
    }

    fn plan(&self, project: &str, carry: &str) -> Plan {
        let parsed = Project::parse(&format!("carry: {carry}\n"));
        resolve(&parsed.project.unwrap(), &self.root(project), self.home.path(), 100).unwrap()
    }

    fn draft(&self, project: &str, carry: &str, since: Option<&str>) -> Draft {
        let (id, name) = ("b00000001".parse().unwrap(), "new".parse().unwrap());
        let plan = self.plan(project, carry);
        let since = since.map(|before| plan.since(&self.plan(project, before).said()));
        draft(&plan, &self.root(project), &id, &name, since)
    }
}

#[test]
fn a_rule_is_for_one_list_of_one_project() {
    let here = Here::new();
    let rule = |project, carry| here.draft(project, carry, None).remember.unwrap();
    let shop = rule("shop", "[~/a, ~/b]");
    assert_eq!((shop.only, shop.kind.as_ref()), (Some(Reach::Project), None));
    assert_eq!(shop.exact.what, "start with copies of just ~/a, ~/b");
    assert_eq!(rule("shop", "[~/a, ~/b]"), shop);
    for (project, other) in [("docs", "[~/a, ~/b]"), ("shop", "[~/b, ~/a]"), ("shop", "[~/a]")] {
        assert_ne!(rule(project, other).exact.key, shop.exact.key, "{project}: {other}");
    }
    let many = rule("shop", "[~/a, ~/b, ~/c, ~/d, {src: ~/e, optional: true}]").exact.what;
    assert_eq!(many, "start with copies of just ~/a, ~/b, ~/c and 1 more");
}

#[test]
fn what_is_new_since_a_remembered_list_is_marked() {
    let here = Here::new();
    let shown = |draft: &Draft| {
        let paths = draft.evidence.files.iter().map(|file| file.path.clone());
        paths.map(|path| path.rsplit(", ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = "[{src: ~/a, mode: 0600}, {src: ~/b, mode: 0600}, {src: ~/c, mode: 0600}]";
    let first = here.draft("shop", list, None);
    assert_eq!(shown(&first), ["0600", "0600", "0600"]);
    assert_eq!(first.evidence.summary.unwrap(), "3 B in all");
    let before = "[{src: ~/a, mode: 0600}, {src: ~/b, mode: 0644}, ~/d]";
    let second = here.draft("shop", list, Some(before));
    assert_eq!(shown(&second), ["0600", "changed", "new"]);
    assert_eq!(
        second.evidence.summary.unwrap(),
        "3 B in all; since the list you agreed to: 1 new, 1 changed, 1 gone, 1 as it was"
    );
}

#[test]
fn what_is_not_there_or_not_filled_in_is_told_and_what_was_sent_is_noted() {
    let carried = |name: &str| Carried {
        src: format!("/home/ada/{name}"),
        dest: format!("/opt/{name}"),
        bytes: 1,
        hash: "00".into(),
        by: CarryBy::Queue,
        approved_at: Some(1),
        kind: CarryKind::File,
        mode: None,
        user: None,
        terms: None,
        warnings: vec!["looks like a credential".into()],
        failed: None,
        unfilled: vec![],
    };
    let failed = Carried { failed: Some("it is a folder".into()), ..carried("b") };
    let odd = Carried { unfilled: vec!["AGENTBOX_PROJECT_ROOT".into()], ..carried("c\u{1b}") };
    let all = [carried("a"), failed, odd];
    assert_eq!(
        warnings(&all).collect::<Vec<_>>(),
        [
            "carry: not copied: /home/ada/b → /opt/b: it is a folder",
            "carry: {{AGENTBOX_PROJECT_ROOT}} in /home/ada/c\\x1b has no value and was left as it is",
        ]
    );
    let name = "new".parse().unwrap();
    let summary = "Copied 2 entries of this computer into new; 1 entry failed";
    assert_eq!(noted(&name, &all), summary);
    assert_eq!(noted(&name, &all[..1]), "Copied 1 entry of this computer into new");
}
