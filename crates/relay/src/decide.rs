//! From a hostile request to a typed plan, or to a refusal. Pure: nothing is spawned, nobody asked.

use crate::registration::{Registration, Worktree};
use connectors::git::{Fetch, Push};
use connectors::worktree;
use protocol::exit;
use protocol::rpc::{Envelope, GitParams};
use protocol::text::visible;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What the host will do if nobody objects.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Asks first. The number is the worktree's.
    Push(usize, Push),
    /// A read: goes on.
    Fetch(usize, Fetch),
}

/// Why not.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such method; HTTP 501.
    Unknown,
    Rule(Box<Envelope>),
}

pub fn decide(
    reg: &Registration,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Plan, Refusal> {
    match method {
        "git.push" => {
            let params: GitParams = parse("git push", params)?;
            let push = Push::parse(&params).map_err(|e| rule(e.exit_code(), e))?;
            let at = select("git push", reg, params.path.as_deref())?;
            known_remote("git push", &reg.worktrees[at], &push.remote)?;
            Ok(Plan::Push(at, push))
        }
        "git.fetch" => {
            let params: GitParams = parse("git fetch", params)?;
            let fetch = Fetch::parse(&params).map_err(|e| rule(e.exit_code(), e))?;
            let at = select("git fetch", reg, params.path.as_deref())?;
            known_remote("git fetch", &reg.worktrees[at], &fetch.remote)?;
            Ok(Plan::Fetch(at, fetch))
        }
        _ => Err(Refusal::Unknown),
    }
}

fn rule(code: i32, text: impl ToString) -> Refusal {
    Refusal::Rule(Box::new(Envelope::fail(code, text.to_string())))
}

/// Strict: unknown fields, wrong types and repeated keys are refused.
fn parse<T: DeserializeOwned + Default>(
    surface: &str,
    params: Option<&RawValue>,
) -> Result<T, Refusal> {
    let Some(params) = params else { return Ok(T::default()) };
    // serde would also take a list for a struct.
    if !params.get().starts_with('{') {
        let text = format!("{surface}: bad parameters: an object is needed");
        return Err(rule(exit::UNADDRESSABLE, text));
    }
    serde_json::from_str(params.get()).map_err(|e| {
        let why = visible(&e.to_string());
        rule(exit::UNADDRESSABLE, format!("{surface}: bad parameters: {why}"))
    })
}

fn select(surface: &str, reg: &Registration, path: Option<&str>) -> Result<usize, Refusal> {
    let path = match path {
        Some(path) => {
            worktree::normalise(path).map_err(|e| rule(e.exit_code(), format!("{surface}: {e}")))?
        }
        None => worktree::BoxPath::default(),
    };
    let paths: Vec<&str> = reg.worktrees.iter().map(|w| w.container_path.as_str()).collect();
    worktree::resolve(&paths, &path).ok_or_else(|| {
        let text = format!("no worktree registered for box {} matching {}", reg.id, path.as_str());
        rule(exit::UNADDRESSABLE, text)
    })
}

fn known_remote(
    surface: &str,
    worktree: &Worktree,
    remote: &connectors::git::RemoteName,
) -> Result<(), Refusal> {
    if worktree.remotes.contains_key(remote) {
        return Ok(());
    }
    let names: Vec<String> = worktree.remotes.keys().map(ToString::to_string).collect();
    let known = if names.is_empty() {
        "the project had no remote when this box was made".to_owned()
    } else {
        format!("known remotes: {}", names.join(", "))
    };
    Err(rule(exit::REFUSED, format!("{surface}: unknown remote '{remote}'; {known}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::RemoteUrls;

    fn registration(paths: &[&str]) -> Registration {
        let urls = RemoteUrls { fetch: "/r.git".into(), push: "/r.git".into() };
        let worktree = |path: &&str| Worktree {
            container_path: (*path).to_owned(),
            branch: "agentbox/smoke".parse().unwrap(),
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
            worktrees: paths.iter().map(worktree).collect(),
        }
    }

    fn code(paths: &[&str], method: &str, params: &str) -> i32 {
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        match decide(&registration(paths), method, Some(&raw)) {
            Ok(_) => 0,
            Err(Refusal::Unknown) => 501,
            Err(Refusal::Rule(envelope)) => {
                assert_eq!(envelope.stderr.matches('\n').count(), 1, "{:?}", envelope.stderr);
                envelope.exit_code
            }
        }
    }

    const ROOT: &[&str] = &["/workspace"];

    #[test]
    fn relay_19_05_unknown_methods_are_unknown() {
        for method in ["something.unhandled", "git.clone", "", "GIT.PUSH", "git.push\0"] {
            assert_eq!(code(ROOT, method, "{}"), 501, "{method:?}");
        }
    }

    #[test]
    fn relay_19_08_no_worktree_is_64() {
        let refusal = decide(&registration(&[]), "git.push", None).unwrap_err();
        let text = "no worktree registered for box b00000001 matching /workspace\n";
        assert_eq!(refusal, rule(64, text));
    }

    #[test]
    fn relay_19_09_paths_select_a_worktree() {
        let both = registration(&["/workspace", "/workspace/app"]);
        for (path, at) in
            [("/workspace/app/x", 1), ("/workspace/application", 0), ("/home/vscode", 0)]
        {
            let raw = RawValue::from_string(format!("{{\"path\":{path:?}}}")).unwrap();
            let plan = decide(&both, "git.fetch", Some(&raw)).unwrap();
            assert!(matches!(plan, Plan::Fetch(n, _) if n == at), "{path}");
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
            "--tags",
        ] {
            assert_eq!(code(ROOT, "git.push", &format!("{{\"args\":[{arg:?}]}}")), 65, "{arg}");
        }
    }

    #[test]
    fn relay_19_12_programs_and_addresses_as_remotes_are_65() {
        let upload = r#"{"args":["--upload-pack=touch X; git-upload-pack"]}"#;
        assert_eq!(code(ROOT, "git.fetch", upload), 65);
        for remote in
            ["--upload-pack=x", "--exec=x", "ext::sh", "", "https://h/x", "../x", "upstream"]
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
}
