//! `gh` made ready for one repository: the program, its environment, and one host's credential.
//!
//! `gh` sends whatever credential is in its environment to whatever host the repository is on, and
//! a repository's remote may lead anywhere. So the credential for github.com goes there alone, the
//! one for another server only to the server the person named, and no other variable of `gh`'s
//! reaches it. Where nothing is stored, `gh` uses its own login, which it keeps by host.

use crate::call::{Call, Stop};
use crate::integration::Loaded;
use crate::process::{Limit, Output, Tool};
use connectors::connector::Program;
use connectors::gh::{CONNECTOR, RepoSlug};
use protocol::exit;
use protocol::rpc::Envelope;
use std::ffi::OsString;

/// Whatever a person set for themselves, nothing here asks, draws, pages or looks for news.
const QUIET: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_NO_EXTENSION_UPDATE_NOTIFIER", "1"),
    ("GH_TELEMETRY", "false"),
    ("GH_PAGER", "cat"),
];

pub(super) struct Gh {
    tool: Tool,
    env: Vec<(OsString, OsString)>,
    /// Masked in whatever `gh` says.
    token: Option<secrets::Value>,
    repo: RepoSlug,
}

/// `gh` with a login for the repository's host, or the reason why not.
pub(super) async fn open(call: &Call, repo: &RepoSlug) -> Result<Gh, Stop> {
    let Some(program) = CONNECTOR.program() else {
        return Err(Stop::fail(exit::FAILURE, "gh is misconfigured"));
    };
    let mut env = call.env(&["GH_CONFIG_DIR"]);
    env.extend(QUIET.iter().map(|(key, value)| (key.into(), value.into())));
    // The folders above the empty one it runs in may be a repository, such as a home under git.
    env.push(("GIT_CEILING_DIRECTORIES".into(), call.shared.deps.scratch.clone().into()));
    let tool = call.ready(&CONNECTOR, program, &env).await?;
    let token = token(call, repo, program).await?;
    if token.is_none() {
        logged_in(call, &tool, program, repo, &env).await?;
    }
    env.push(("GH_HOST".into(), repo.host().into()));
    env.push(("GH_REPO".into(), repo.to_string().into()));
    if let Some(token) = &token {
        let names = variables(repo).iter();
        env.extend(names.map(|name| (name.into(), token.expose().into())));
    }
    Ok(Gh { tool, env, token, repo: repo.clone() })
}

/// Where `gh` looks for a host's token. Its newer versions count the hosts of ghe.com to github.com.
fn variables(repo: &RepoSlug) -> &'static [&'static str] {
    if repo.is_github_com() {
        &["GH_TOKEN"]
    } else if repo.host().ends_with(".ghe.com") {
        &["GH_TOKEN", "GH_ENTERPRISE_TOKEN"]
    } else {
        &["GH_ENTERPRISE_TOKEN"]
    }
}

/// The stored credential for the repository's host, else the one of the host's environment.
async fn token(
    call: &Call,
    repo: &RepoSlug,
    program: &Program,
) -> Result<Option<secrets::Value>, Stop> {
    let (secret, inherited) = if repo.is_github_com() {
        ("github.token", ["GH_TOKEN", "GITHUB_TOKEN"])
    } else if is_named(call, repo.host()) {
        ("github.enterprise-token", ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"])
    } else {
        return Ok(None);
    };
    let uses: Vec<_> = CONNECTOR.secrets.iter().filter(|s| s.id == secret).copied().collect();
    if let Some(value) = Loaded::for_program(call, &uses, program).await?.values.pop() {
        return Ok(Some(value));
    }
    let found = inherited.iter().find_map(|name| variable(call, name));
    Ok(found.map(secrets::Value::new))
}

/// The person said that their server's credential is for this host.
fn is_named(call: &Call, host: &str) -> bool {
    let by_setting = call.policy.integration(CONNECTOR.service).base_url;
    let by_setting = by_setting.as_deref().and_then(host_of);
    let by_variable = variable(call, "GH_HOST");
    by_setting.is_some_and(|named| named == host)
        || by_variable.is_some_and(|named| named.to_ascii_lowercase() == host)
}

/// The host of `https://host[:port]/…`.
fn host_of(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split('/').next()?.to_ascii_lowercase();
    Some(host).filter(|host| !host.is_empty() && !host.contains('@'))
}

fn variable(call: &Call, name: &str) -> Option<String> {
    let found = call.shared.deps.inherited.iter().rev().find(|(key, _)| key == name);
    let value = found.and_then(|(_, value)| value.to_str());
    value.filter(|value| !value.is_empty()).map(str::to_owned)
}

async fn logged_in(
    call: &Call,
    tool: &Tool,
    program: &Program,
    repo: &RepoSlug,
    env: &[(OsString, OsString)],
) -> Result<(), Stop> {
    let host = repo.host();
    let text = if repo.is_github_com() {
        format!("gh not authenticated on host ({})", program.login_hint)
    } else {
        format!("gh not authenticated on host for {host} (run `gh auth login --hostname {host}`)")
    };
    call.logged_in(tool, &["auth", "status", "--hostname", host], env, text).await
}

impl Gh {
    pub fn repo(&self) -> &RepoSlug {
        &self.repo
    }

    /// Runs it away from every project.
    pub async fn run(
        &self,
        call: &Call,
        argv: &[String],
        stdin: Option<&str>,
    ) -> Result<Output, Stop> {
        call.run(&self.tool, argv, stdin.map(str::as_bytes), &self.env, Limit::FILTERS).await
    }

    /// What it said, without its credential.
    pub fn envelope(&self, output: &Output) -> Envelope {
        let values: Vec<&secrets::Value> = self.token.iter().collect();
        Envelope {
            exit_code: output.code,
            stdout: secrets::redact_values(&output.out(), &values),
            stderr: secrets::redact_values(&output.err(), &values),
            pushed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_address() {
        assert_eq!(host_of("https://GHE.corp/api/v3").as_deref(), Some("ghe.corp"));
        assert_eq!(host_of("https://ghe.corp:8443").as_deref(), Some("ghe.corp:8443"));
        for bad in ["http://ghe.corp", "ghe.corp", "https://", "https://ghe.corp@evil.example/"] {
            assert_eq!(host_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_token_is_read_from_the_variable_of_its_host() {
        let of = |url: &str| variables(&RepoSlug::from_url(url).unwrap());
        assert_eq!(of("https://github.com/o/r"), ["GH_TOKEN"]);
        assert_eq!(of("https://ghe.corp/o/r"), ["GH_ENTERPRISE_TOKEN"]);
        assert_eq!(of("https://acme.ghe.com/o/r"), ["GH_TOKEN", "GH_ENTERPRISE_TOKEN"]);
        assert_eq!(of("https://github.com.evil.example/o/r"), ["GH_ENTERPRISE_TOKEN"]);
    }
}
