//! `gh` in a real box: the host's own `gh` with the host's login, against a GitHub server that runs
//! here.

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../standins/github/mod.rs"]
mod standin;

use crate::channels::over_both_channels;
use crate::world::{World, settings};
use standin::GitHub;
pub use standin::TOKEN;
use std::path::PathBuf;

/// The server, and what it runs on.
pub struct Site {
    pub github: GitHub,
    /// The bare repository it serves as `o/r`.
    pub repo: PathBuf,
    _runtime: tokio::runtime::Runtime,
}

impl Site {
    /// Serves a bare repository of the world's folder; a small library when there is none.
    pub fn start(world: &World, name: &str) -> Self {
        let repo = world.dir().join(name);
        if !repo.exists() {
            let work = world.dir().join("library");
            world.git(world.dir(), &["init", "-q", "-b", "main", "library"]);
            std::fs::write(work.join("README.md"), "# Library\n").unwrap();
            world.git(&work, &["add", "."]);
            let author = ["-c", "user.name=Lin", "-c", "user.email=lin@example.org"];
            world.git(&work, &[&author[..], &["commit", "-qm", "First"]].concat());
            world.git(world.dir(), &["clone", "-q", "--bare", "library", name]);
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let github = runtime.block_on(GitHub::start(world.dir()));
        github.serve(&repo);
        Self { github, repo, _runtime: runtime }
    }

    /// The person's git and `gh` trust its certificate.
    pub fn trusted_by(&self, world: &mut World) {
        let certificate = self.github.certificate.display().to_string();
        world.git(world.dir(), &["config", "--global", "http.sslCAInfo", &certificate]);
        world.set("SSL_CERT_FILE", &certificate);
    }
}

over_both_channels! {
    fn relay_19_23_and_24_a_box_reads_and_opens_pull_requests_with_the_hosts_gh(channel) {
        let mut world = World::bare();
        let site = Site::start(&world, "remote.git");
        world.git(&world.project(), &["remote", "set-url", "origin", &site.github.url()]);
        site.trusted_by(&mut world);
        let base = format!("https://{}/api/v3", site.github.host());
        world.configure(&settings(
            channel,
            &format!(
                "secrets: {{backend: file}}\nintegrations: {{github: {{enabled: true, baseUrl: '{base}'}}}}\n"
            ),
        ));
        world.start_serve();
        world.create("fix-login");
        let list = "gh pr list --json number,title";
        let none = world.in_box("fix-login", list);
        assert_eq!(none.status.code(), Some(4), "no login yet: {none:?}");
        world.store("github.enterprise-token", TOKEN);

        let oid = world.commit("fix-login", "Fix the login");
        let (_, pushed) = world.answered("fix-login", "git push", "approve");
        assert_eq!(pushed.code, Some(0), "{}{}", pushed.err, world.host_log());
        assert_eq!(world.box_ok("fix-login", list), "[]");

        let create = "gh pr create --title 'Fix the login' --body 'It expired.'";
        let (question, denied) = world.answered("fix-login", create, "deny");
        assert_eq!(denied.code, Some(10), "{}", denied.err);
        assert_eq!(question["title"], "Open a pull request from agentbox/fix-login into main");
        assert!(question["evidence"].to_string().contains(&oid), "{question}");
        assert_eq!(world.box_ok("fix-login", list), "[]");

        let (_, created) = world.answered("fix-login", create, "approve");
        assert_eq!(created.code, Some(0), "{}{}", created.err, world.host_log());
        assert!(created.err.contains("/o/r/pull/1\n"), "{}", created.err);
        let pull = site.github.pull(1);
        assert_eq!(
            (pull.title.as_str(), pull.body.as_str(), pull.head.as_str(), pull.base.as_str()),
            ("Fix the login", "It expired.", "agentbox/fix-login", "main")
        );
        assert_eq!(world.box_ok("fix-login", list), r#"[{"number":1,"title":"Fix the login"}]"#);
        // The box's branch is meant when nothing is said.
        let view = world.box_ok("fix-login", "gh pr view --json title,headRefName");
        assert!(view.contains("agentbox/fix-login"), "{view}");

        let used = site.github.state.lock().unwrap().credentials.clone();
        assert!(used.iter().any(|header| header.ends_with(TOKEN)), "the host logged in");
        let asked = world.audit_kinds("fix-login").iter().filter(|kind| *kind == "asked").count();
        assert_eq!(asked, 3, "reads were asked about");
        assert!(!world.json(&["audit", "-n", "500"]).to_string().contains(TOKEN));
    }
}
