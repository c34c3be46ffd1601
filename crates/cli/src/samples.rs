//! Fixed data for tests of what is printed.

use jiff::Timestamp;
use protocol::audit::AuditRecord;
use protocol::boxes::{BoxState, BoxView};
use protocol::control::{Check, EngineStatus, HostStatus, Level, Notice};
use protocol::egress::{
    ApiUse, EgressMode, EgressView, Injected, InjectedCount, LayerState, Reason, RepositoryPolicy,
    RuleSeen, Traffic, TrafficAction, TrafficKind,
};
use protocol::question::{
    Answers, Commit, Evidence, Fact, FileLine, Grant, Question, Reach, Remember, Tier,
};
use protocol::queue::{Gate, JobStatus, JobView};
use protocol::sessions::Agent;

const NOW_MS: u64 = 1_767_225_600_000;

pub fn now() -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(NOW_MS).unwrap()).unwrap()
}

pub fn boxes() -> Vec<BoxView> {
    vec![
        one_box("b0000000a", "fix-login", 1, BoxState::Running, "shop-api", 1),
        one_box("b0000000b", "perf", 2, BoxState::Stopped, "shop-api", 0),
        one_box("b0000000c", "docs-bot", 1, BoxState::Missing, "docs", 0),
        BoxView {
            branch: None,
            ..one_box(
                "b0000000d",
                "a-box-with-a-very-long-name-that-somebody-chose-for-a-reason",
                2,
                BoxState::Unknown,
                "docs",
                12,
            )
        },
    ]
}

fn one_box(
    id: &str,
    name: &str,
    index: u32,
    state: BoxState,
    project: &str,
    questions: u32,
) -> BoxView {
    BoxView {
        id: id.parse().unwrap(),
        name: name.parse().unwrap(),
        display_name: None,
        index,
        project: project.into(),
        project_root: format!("/home/ada/{project}"),
        workspace: format!("/home/ada/{project}"),
        state,
        branch: Some(format!("agentbox/{name}")),
        publish: None,
        image: "agentbox/box:0123456789ab".into(),
        created_at: NOW_MS - 3_600_000,
        questions,
        muted_until: None,
        channel: "socket".into(),
        busy: None,
        agents: Vec::new(),
        logins: Vec::new(),
        web: (state != BoxState::Missing).then(|| format!("http://{name}.localhost:1355")),
        screen: (state != BoxState::Missing)
            .then(|| format!("http://{name}.vnc.localhost:1355/vnc.html")),
        nested_repos: Vec::new(),
        egress: EgressMode::Open,
        down: None,
    }
}

pub fn questions() -> Vec<Question> {
    let push = Question {
        id: "3fa9c1d2000000000000000000000001".parse().unwrap(),
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        project: "shop-api".into(),
        method: "git.push".into(),
        tier: Tier::Routine,
        title: "Push 5 commits to origin/fix-login".into(),
        target: "github.com/acme/shop-api".into(),
        evidence: Evidence {
            commits: vec![
                commit("9f31c02", "Check token expiry before refresh"),
                commit("1a77be4", "Add test for clock skew"),
                commit("c0ffee1", "Log refresh failures"),
            ],
            more_commits: 2,
            summary: Some("5 files, +84 −12".into()),
            ..Evidence::default()
        },
        warnings: vec!["changes CI: .github/workflows/ci.yml".into()],
        argv: ["git", "push", "origin", "refs/agentbox/fix-login:refs/heads/fix-login"]
            .map(Into::into)
            .into(),
        remember: Some(Remember {
            exact: "push to fix-login of github.com/acme/shop-api".into(),
            kind: Some("push to any branch of github.com/acme/shop-api".into()),
            only: None,
        }),
        answers: Answers::default(),
        times: 1,
        created_at: NOW_MS - 12_000,
        expires_at: NOW_MS + 888_000,
        digest: "d1".into(),
    };
    let force = Question {
        id: "77e0aa10000000000000000000000002".parse().unwrap(),
        box_id: "b0000000c".parse().unwrap(),
        box_name: "docs-bot".parse().unwrap(),
        project: "docs".into(),
        tier: Tier::Irreversible,
        title: "Delete origin/old draft".into(),
        target: "git.example.org/docs".into(),
        evidence: Evidence::default(),
        warnings: vec![],
        argv: ["git", "push", "origin", ":refs/heads/old draft"].map(Into::into).into(),
        remember: None,
        created_at: NOW_MS - 200_000,
        digest: "d2".into(),
        ..push.clone()
    };
    vec![push.clone(), force, a_page(push)]
}

/// One with facts, a body and files.
fn a_page(push: Question) -> Question {
    let fact = |label: &str, value: &str| Fact { label: label.into(), value: value.into() };
    let file = |path: &str, bytes, note: Option<&str>| FileLine {
        path: path.into(),
        bytes,
        note: note.map(Into::into),
    };
    Question {
        id: "c4d5e6f7000000000000000000000003".parse().unwrap(),
        box_id: "b0000000b".parse().unwrap(),
        box_name: "perf".parse().unwrap(),
        method: "integration.notion.page.create".into(),
        tier: Tier::Sensitive,
        title: "Create a Notion page in “Roadmap”".into(),
        target: "notion.so".into(),
        evidence: Evidence {
            facts: vec![fact("Title", "What we measured"), fact("Parent page", "Roadmap")],
            body: vec!["# What we measured".into(), String::new(), "Startup: 120 ms".into()],
            more_body: 40,
            files: vec![
                file("notes/graph.png", 34_567, None),
                file(".envrc", 120, Some("looks like a credential")),
            ],
            more_files: 1,
            ..Evidence::default()
        },
        warnings: vec![],
        argv: ["ntn", "pages", "create", "--parent=Roadmap"].map(Into::into).into(),
        remember: None,
        digest: "d3".into(),
        ..push
    }
}

fn commit(oid: &str, subject: &str) -> Commit {
    Commit { oid: oid.into(), subject: subject.into() }
}

pub fn grants() -> Vec<Grant> {
    let one = Grant {
        id: "abcdef01000000000000000000000003".parse().unwrap(),
        reach: Reach::Box,
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".parse().unwrap(),
        project: "shop-api".into(),
        project_root: "/home/ada/shop-api".into(),
        method: "git.push".into(),
        scope: "github.com/acme/shop-api fix-login".into(),
        sentence: "Let fix-login push to fix-login of github.com/acme/shop-api".into(),
        created_at: NOW_MS - 60_000,
        expires_at: NOW_MS + 3_540_000,
    };
    let wide = Grant {
        id: "12345678000000000000000000000004".parse().unwrap(),
        reach: Reach::Everywhere,
        sentence: "Let every box push to any branch of github.com/acme/shop-api".into(),
        expires_at: one.created_at + Remember::ALWAYS * 1000,
        ..one.clone()
    };
    let project = Grant {
        id: "87654321000000000000000000000005".parse().unwrap(),
        reach: Reach::Project,
        sentence: "Let every box of shop-api create pull requests".into(),
        ..one.clone()
    };
    vec![one, project, wide]
}

pub fn audit() -> Vec<AuditRecord> {
    let record = |seq: u64, ago: u64, id: Option<&str>, kind: &str, summary: &str| AuditRecord {
        seq,
        at: NOW_MS - ago * 1000,
        box_id: id.map(|i| i.parse().unwrap()),
        kind: kind.into(),
        summary: summary.into(),
        data: serde_json::json!({}),
        hash: format!("{seq:064x}"),
    };
    vec![
        record(1, 90_000, None, "host-started", "A headless host started"),
        record(2, 3_600, Some("b0000000a"), "box-created", "Created fix-login of shop-api"),
        record(3, 60, Some("b0000000a"), "asked", "Push 5 commits to origin/fix-login"),
        record(4, 12, Some("b00000099"), "refused", "push\u{202e} --force"),
    ]
}

pub fn checks() -> Vec<Check> {
    let check = |group: &str, label: &str, level, detail: &str, hint: Option<&str>| Check {
        group: group.into(),
        label: label.into(),
        level,
        detail: detail.into(),
        hint: hint.map(Into::into),
    };
    vec![
        check("system", "home", Level::Ok, "/home/ada/.agentbox", None),
        check("system", "git", Level::Ok, "git 2.39.5", None),
        check("engine", "engine", Level::Fail, "no engine answered", Some("start Docker")),
        check(
            "engine",
            "box image",
            Level::Info,
            "not built yet",
            Some("agentbox prepare --build"),
        ),
        check("system", "settings", Level::Ok, "readable", None),
        check("desktop", "notifications", Level::Warn, "no daemon", None),
    ]
}

pub fn status() -> HostStatus {
    HostStatus {
        version: "0.1.0".into(),
        proto: protocol::PROTO,
        pid: 4711,
        kind: "headless".into(),
        home: "/home/ada/.agentbox".into(),
        started_at: NOW_MS - 7_300_000,
        engine: EngineStatus {
            reachable: false,
            detail: "no engine answered at unix:///var/run/docker.sock".into(),
            hint: Some("start Docker, or set engine.host".into()),
        },
        notices: vec![Notice {
            part: "keyring".into(),
            message: "no keyring answers".into(),
            hint: Some("unlock it".into()),
        }],
        boxes: 4,
        questions: 1,
        quiet_until: None,
        jobs: protocol::queue::JobCounts { queued: 2, running: 1 },
    }
}

/// One that waits, one that failed, one that is done.
pub fn jobs() -> Vec<JobView> {
    let job = |n: u8, status: JobStatus| JobView {
        id: protocol::JobId::from_bytes([n, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f]),
        status,
        agent: Agent::Claude,
        box_name: None,
        box_id: None,
        workspace: "/home/ada/shop-api".into(),
        prompt: "fix the login test that fails on every second run\nand tell why".into(),
        gate: Gate::Running(5),
        created_at: NOW_MS - 200_000,
        started_at: None,
        finished_at: None,
        reason: None,
        hint: None,
        log: format!("/home/ada/.agentbox/logs/queue/{n:02x}1b2c3d4e5f.log"),
    };
    vec![
        job(10, JobStatus::Queued),
        JobView {
            box_name: Some("fix-login".into()),
            started_at: Some(NOW_MS - 100_000),
            finished_at: Some(NOW_MS - 90_000),
            reason: Some("worker-died".into()),
            hint: Some("submit it again.".into()),
            ..job(11, JobStatus::Failed)
        },
        JobView {
            box_name: Some("shop-api-b00000001".into()),
            agent: Agent::Opencode,
            gate: Gate::Working(2),
            finished_at: Some(NOW_MS - 90_000),
            ..job(12, JobStatus::Done)
        },
    ]
}

/// One that passed with a credential, one that was stopped, one that is to be looked at, and one carried
/// unseen.
pub fn traffic() -> Vec<Traffic> {
    let fetch = Traffic {
        id: "01JQ3V7M0K0000000000000001".into(),
        at: NOW_MS - 90_000_000,
        box_id: "b0000000a".parse().unwrap(),
        kind: TrafficKind::Request,
        action: TrafficAction::Allowed,
        reason: Some(Reason::RuleMatched),
        detail: None,
        scheme: Some("https".into()),
        host: Some("github.com".into()),
        port: Some(443),
        method: Some("GET".into()),
        path: Some("/acme/shop-api.git/info/refs".into()),
        query: vec!["service=git-upload-pack".into()],
        rule: Some(RuleSeen {
            host: "github.com".into(),
            index: 0,
            origin: "project:egress.yaml:7".into(),
        }),
        injected: vec![Injected {
            header: "authorization".into(),
            secret: "github.push".parse().unwrap(),
            transform: "basic".into(),
        }],
        status: Some(200),
        bytes_up: 0,
        bytes_down: 4211,
        ms: 84,
        proto: Some("h2/h1".into()),
        remote: Some("192.0.2.7:443".into()),
        approval: None,
    };
    let quiet = Traffic {
        reason: None,
        query: vec![],
        rule: None,
        injected: vec![],
        proto: None,
        remote: None,
        ..fetch.clone()
    };
    vec![
        fetch,
        Traffic {
            id: "01JQ3V7M0K0000000000000002".into(),
            at: NOW_MS,
            action: TrafficAction::Blocked,
            reason: Some(Reason::NoRuleMatched),
            method: Some("POST".into()),
            host: Some("api.example.com".into()),
            path: Some("/v1/\x1b[2J/a/very/long/path/that/goes/on/and/on".into()),
            status: Some(403),
            bytes_up: 1_234,
            bytes_down: 0,
            ..quiet.clone()
        },
        Traffic {
            id: "01JQ3V7M0K0000000000000003".into(),
            at: NOW_MS,
            box_id: "b00000099".parse().unwrap(),
            kind: TrafficKind::Alert,
            action: TrafficAction::Noted,
            reason: Some(Reason::PlaceholderMisuse),
            detail: Some("github.push\u{202e}".into()),
            method: None,
            path: None,
            host: Some("paste.example".into()),
            status: None,
            bytes_up: 0,
            bytes_down: 0,
            ..quiet.clone()
        },
        Traffic {
            id: "01JQ3V7M0K0000000000000004".into(),
            at: NOW_MS,
            box_id: "b0000000d".parse().unwrap(),
            kind: TrafficKind::Passthrough,
            reason: Some(Reason::RuleMatched),
            method: None,
            path: None,
            host: Some("pinned.example.com".into()),
            port: Some(8443),
            status: None,
            bytes_up: 34_567,
            bytes_down: 3_400_000_000,
            ..quiet
        },
    ]
}

/// One in which something was stopped, put in, allowed and asked for.
pub fn egress() -> EgressView {
    let mut stopped = traffic().remove(1);
    stopped.at = NOW_MS - 200_000;
    EgressView {
        mode: EgressMode::Balanced,
        unavailable: None,
        revision: 3,
        hosts: 42,
        last_blocked: Some(stopped),
        injected: vec![
            InjectedCount { secret: "github.push".parse().unwrap(), count: 12 },
            InjectedCount { secret: "anthropic.key".parse().unwrap(), count: 1 },
        ],
        grants: vec![Grant {
            method: "egress".into(),
            scope: "https api.example.com".into(),
            sentence: "Let fix-login send GET to api.example.com/v1/".into(),
            ..grants().remove(0)
        }],
        repository: Some(RepositoryPolicy {
            file: ".agentbox/egress.yaml".into(),
            commit: "9f31c02".into(),
            digest: "5c1f2e3d".repeat(8),
            state: LayerState::Waiting,
            diff: ["+domains:", "+- docs.example.com", "-- old.example.com", " # \x1b[2J"]
                .map(Into::into)
                .into(),
        }),
    }
}

pub fn api_use() -> Vec<ApiUse> {
    let one = ApiUse {
        box_id: "b0000000a".parse().unwrap(),
        box_name: "fix-login".into(),
        api: "Anthropic".into(),
        host: "api.anthropic.com".into(),
        calls: 1204,
        failed: 3,
        bytes_up: 34_000_000,
        bytes_down: 1_500_000,
        last: NOW_MS - 180_000,
    };
    let gone = ApiUse {
        box_id: "b00000099".parse().unwrap(),
        box_name: "b00000099".into(),
        api: "OpenAI".into(),
        host: "api.openai.com".into(),
        calls: 1,
        failed: 0,
        ..one.clone()
    };
    vec![one, gone]
}
