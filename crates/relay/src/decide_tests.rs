use super::*;
use crate::registration::RemoteUrls;

fn registration(paths: &[&str]) -> Registration {
    let urls = RemoteUrls { fetch: "/r.git".into(), push: "/r.git".into() };
    let worktree = |path: &&str| Worktree {
        container_path: (*path).to_owned(),
        branch: "agentbox/smoke".parse().unwrap(),
        own_branch: true,
        publish: None,
        base: None,
        host_repo: "/r".into(),
        host_objects: "/r/.git/objects".into(),
        object_format: "sha1".into(),
        remotes: [("origin".parse().unwrap(), urls.clone())].into(),
        transfer: "/t".into(),
    };
    Registration {
        id: "b00000001".parse().unwrap(),
        name: "smoke".parse().unwrap(),
        project: "shop".into(),
        project_root: "/r".into(),
        workspace: "/r".into(),
        worktrees: paths.iter().map(worktree).collect(),
    }
}

fn decided(reg: &Registration, method: &str, params: Option<&RawValue>) -> Result<Plan, Refusal> {
    decide(&Request { reg, policy: &Policy::default(), method, params })
}

fn code(paths: &[&str], method: &str, params: &str) -> i32 {
    let raw = RawValue::from_string(params.to_owned()).unwrap();
    match decided(&registration(paths), method, Some(&raw)) {
        Ok(_) => 0,
        Err(Refusal::Unknown) => 501,
        Err(Refusal::Bad(_)) => 400,
        Err(Refusal::Rule(envelope)) => {
            assert_eq!(envelope.stderr.matches('\n').count(), 1, "{:?}", envelope.stderr);
            envelope.exit_code
        }
    }
}

const ROOT: &[&str] = &["/workspace"];

#[test]
fn relay_19_05_unknown_methods_are_unknown() {
    for method in ["something.unhandled", "git.lease-token", "", "GIT.PUSH", "git.push\0"] {
        assert_eq!(code(ROOT, method, "{}"), 501, "{method:?}");
    }
}

#[test]
fn relay_19_08_no_worktree_is_64() {
    let refusal = decided(&registration(&[]), "git.push", None).unwrap_err();
    let text = "no worktree registered for box b00000001 matching /workspace: the project had no git repository when this box was made\n";
    assert_eq!(refusal, rule(64, text));
}

#[test]
fn relay_19_09_paths_select_a_worktree() {
    let both = registration(&["/workspace", "/workspace/app"]);
    for (path, at) in [("/workspace/app/x", 1), ("/workspace/application", 0), ("/home/vscode", 0)]
    {
        let raw = RawValue::from_string(format!("{{\"path\":{path:?}}}")).unwrap();
        let plan = decided(&both, "git.fetch", Some(&raw)).unwrap();
        assert!(matches!(plan, Plan::Git(git::Plan::Fetch(n, _)) if n == at), "{path}");
    }
    assert_eq!(code(ROOT, "git.push", r#"{"path":"/workspace/app/../.."}"#), 64);
    assert_eq!(code(ROOT, "git.push", r#"{"path":"/workspace\u0000"}"#), 64);
}

#[test]
fn relay_19_11_refspecs_and_value_flags_are_65() {
    for arg in [
        ":main",
        "HEAD:main",
        "+x:y",
        "--receive-pack=x",
        "-o",
        "--exec=x",
        "--mirror",
        "--force",
        "-f",
        "--delete",
    ] {
        assert_eq!(code(ROOT, "git.push", &format!("{{\"args\":[{arg:?}]}}")), 65, "{arg}");
    }
}

#[test]
fn relay_19_12_programs_and_addresses_as_remotes_are_65() {
    let upload = r#"{"args":["--upload-pack=touch X; git-upload-pack"]}"#;
    assert_eq!(code(ROOT, "git.fetch", upload), 65);
    for remote in ["--upload-pack=x", "--exec=x", "ext::sh", "", "https://h/x", "../x", "upstream"]
    {
        let params = format!("{{\"remote\":{remote:?}}}");
        assert_eq!(code(ROOT, "git.fetch", &params), 65, "{remote}");
        assert_eq!(code(ROOT, "git.push", &params), 65, "{remote}");
    }
}

#[test]
fn relay_a25_parameters_are_strict() {
    for params in [
        r#"{"hostPath":"/etc"}"#,
        r#"{"args":[1]}"#,
        r#"{"args":"--quiet"}"#,
        r#"{"args":[],"args":["--quiet"]}"#,
        "[]",
        "7",
        r#"{"env":{"GIT_SSH":"x"}}"#,
    ] {
        assert_eq!(code(ROOT, "git.push", params), 64, "{params}");
    }
}

#[test]
fn relay_a20_huge_argument_lists_are_refused() {
    let many = format!("{{\"args\":[{}\"-q\"]}}", "\"-q\",".repeat(300));
    assert_eq!(code(ROOT, "git.push", &many), 64);
    let long = format!("{{\"args\":[\"{}\"]}}", "x".repeat(70_000));
    assert_eq!(code(ROOT, "git.push", &long), 64);
}
