//! Services that keep git repositories, held to some of them.
//!
//! A fetch is a POST like a push, so reading and writing are told apart by the end points of git's protocol,
//! not by methods. A push is looked into: which refs it may change is part of its rule.
//!
//! The surprising thing: naming repositories takes rules away. Where another service would allow the same
//! host as a whole, that would undo the naming, so it is left out; see `exclusive`.

use super::catalog::{Expansion, Gives, Service, catalog_host, narrowed, on_existing};
use super::{
    Action, HeaderRule, HostPattern, How, Origin, PathKind, PathRule, PushRule, Rule, Shim,
    ShimKind, Transform,
};
use crate::host_name::HostName;
use crate::request::QueryMap;
use protocol::SecretId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One kind of server.
#[derive(Debug)]
pub(super) struct Provider {
    /// What the service is without repositories.
    pub hosts: &'static [&'static str],
    /// Where its repositories are; none is told by the policy.
    pub git_host: Option<&'static str>,
    /// Where its API is, if that is another host.
    pub api_host: Option<&'static str>,
    /// How long the names of its repositories are.
    pub depth: std::ops::RangeInclusive<usize>,
    /// Names are the same in any case.
    pub ignore_case: bool,
    /// The user's name that goes with a token; none is told by the policy.
    pub username: Option<&'static str>,
    pub api: Option<Api>,
    /// Where objects of LFS are, below a repository.
    pub lfs: &'static [&'static str],
}

#[derive(Debug)]
pub(super) struct Api {
    /// Before a repository's name.
    pub root: &'static str,
    /// The name is one segment, its slashes escaped.
    pub escaped: bool,
    /// Before the token.
    pub word: &'static str,
    /// The variable from which its program takes a token.
    pub env: Option<&'static str>,
    /// What owns a repository rather than works on it: (name, methods or any, below the repository).
    pub admin: &'static [(&'static str, &'static [&'static str], &'static str)],
}

/// What a policy says about repositories.
#[derive(Debug, Clone)]
pub(super) struct Scoped {
    pub host: Option<HostName>,
    pub port: u16,
    pub allow_private: bool,
    /// Paths without a leading slash and `.git`, each once.
    pub repos: Vec<String>,
    pub git: Option<GitSurface>,
    pub api: Option<ApiSurface>,
    pub exclusive: bool,
}

#[derive(Debug, Clone)]
pub(super) struct GitSurface {
    pub write: bool,
    pub auth: Option<GitAuth>,
    pub push: PushRule,
    pub lfs: bool,
}

#[derive(Debug, Clone)]
pub(super) struct GitAuth {
    pub secret: SecretId,
    pub username: String,
    pub shim: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ApiSurface {
    pub write: bool,
    pub auth: Option<(SecretId, bool)>,
    /// Names of what is let through all the same.
    pub admin: Vec<&'static str>,
}

const WHOLE: &str = "";

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "github",
        about: "GitHub, or some repositories of it.",
        gives: Gives::Git(Provider {
            hosts: &[
                "github.com",
                "*.github.com",
                "githubusercontent.com",
                "*.githubusercontent.com",
            ],
            git_host: Some("github.com"),
            api_host: Some("api.github.com"),
            depth: 2..=2,
            ignore_case: true,
            username: Some("x-access-token"),
            api: Some(Api {
                root: "/repos/",
                escaped: false,
                word: "Bearer",
                env: Some("GH_TOKEN"),
                admin: &[
                    ("hooks", &[], "/hooks"),
                    ("keys", &[], "/keys"),
                    ("secrets", &[], "/actions/secrets"),
                    ("secrets", &[], "/actions/variables"),
                    ("secrets", &[], "/dependabot/secrets"),
                    ("secrets", &[], "/codespaces/secrets"),
                    ("environments", &[], "/environments"),
                    ("collaborators", &[], "/collaborators"),
                    ("collaborators", &[], "/invitations"),
                    ("transfer", &[], "/transfer"),
                    ("delete", &["DELETE"], WHOLE),
                    ("settings", &["PATCH", "PUT", "POST"], WHOLE),
                    ("dispatches", &[], "/actions/workflows/*/dispatches"),
                    ("dispatches", &[], "/dispatches"),
                    ("runners", &[], "/actions/runners"),
                    ("permissions", &[], "/actions/permissions"),
                    ("protection", &[], "/branches/*/protection"),
                    ("protection", &[], "/rulesets"),
                ],
            }),
            lfs: &["/info/lfs/"],
        }),
    },
    Service {
        name: "gitlab",
        about: "GitLab, its own or yours with host, or some repositories of it.",
        gives: Gives::Git(Provider {
            hosts: &["gitlab.com", "*.gitlab.com"],
            git_host: Some("gitlab.com"),
            api_host: None,
            depth: 2..=20,
            ignore_case: true,
            username: Some("oauth2"),
            api: Some(Api {
                root: "/api/v4/projects/",
                escaped: true,
                word: "Bearer",
                env: None,
                admin: &[
                    ("hooks", &[], "/hooks"),
                    ("keys", &[], "/deploy_keys"),
                    ("tokens", &[], "/access_tokens"),
                    ("tokens", &[], "/deploy_tokens"),
                    ("secrets", &[], "/variables"),
                    ("secrets", &[], "/secure_files"),
                    ("environments", &[], "/environments"),
                    ("environments", &[], "/protected_environments"),
                    ("collaborators", &[], "/members"),
                    ("collaborators", &[], "/invitations"),
                    ("collaborators", &[], "/share"),
                    ("transfer", &[], "/transfer"),
                    ("delete", &["DELETE"], WHOLE),
                    ("settings", &["PATCH", "PUT", "POST"], WHOLE),
                    ("settings", &[], "/integrations"),
                    ("settings", &[], "/services"),
                    ("settings", &[], "/remote_mirrors"),
                    ("dispatches", &[], "/trigger"),
                    ("dispatches", &[], "/triggers"),
                    ("dispatches", &[], "/ref/*/trigger"),
                    ("dispatches", &["POST"], "/pipeline"),
                    ("dispatches", &[], "/pipeline_schedules"),
                    ("runners", &[], "/runners"),
                    ("protection", &[], "/protected_branches"),
                    ("protection", &[], "/protected_tags"),
                    ("protection", &[], "/push_rule"),
                ],
            }),
            lfs: &["/info/lfs/", "/gitlab-lfs/"],
        }),
    },
    Service {
        name: "gitea",
        about: "A server of Gitea or Forgejo, told with host, or some repositories of it.",
        gives: Gives::Git(Provider {
            hosts: &[],
            git_host: None,
            api_host: None,
            depth: 2..=2,
            ignore_case: true,
            username: Some("oauth2"),
            api: Some(Api {
                root: "/api/v1/repos/",
                escaped: false,
                word: "token",
                env: None,
                admin: &[
                    ("hooks", &[], "/hooks"),
                    ("keys", &[], "/keys"),
                    ("secrets", &[], "/actions/secrets"),
                    ("secrets", &[], "/actions/variables"),
                    ("collaborators", &[], "/collaborators"),
                    ("collaborators", &[], "/teams"),
                    ("transfer", &[], "/transfer"),
                    ("delete", &["DELETE"], WHOLE),
                    ("settings", &["PATCH", "PUT", "POST"], WHOLE),
                    ("settings", &[], "/push_mirrors"),
                    ("dispatches", &[], "/actions/workflows/*/dispatches"),
                    ("runners", &[], "/actions/runners"),
                    ("protection", &[], "/branch_protections"),
                    ("protection", &[], "/tag_protections"),
                ],
            }),
            lfs: &["/info/lfs/"],
        }),
    },
    Service {
        name: "git",
        about: "Any git server that speaks HTTP, told with host, or some repositories of it.",
        gives: Gives::Git(Provider {
            hosts: &[],
            git_host: None,
            api_host: None,
            depth: 1..=20,
            ignore_case: false,
            username: None,
            api: None,
            lfs: &["/info/lfs/"],
        }),
    },
];

impl Provider {
    /// Without repositories: all of it.
    pub fn whole(&self, host: Option<&HostName>, readonly: bool, origin: &Origin) -> Expansion {
        let own = host.map(|host| vec![HostPattern::Exact(host.clone())]);
        let known = || self.hosts.iter().filter_map(|host| catalog_host(host)).collect();
        let rule = Rule::whole_host(origin.clone());
        let rule = if readonly { narrowed(rule) } else { rule };
        let records = own.unwrap_or_else(known).into_iter().map(|host| (host, vec![rule.clone()]));
        Expansion { records: records.collect(), ..Expansion::default() }
    }

    pub fn scoped(&self, service: &str, scope: &Scoped, origin: &Origin) -> Expansion {
        let host = |known: Option<&str>| {
            scope.host.clone().or_else(|| known.and_then(|text| HostName::parse(text).ok()))
        };
        let mut all = Expansion { allow_private: scope.allow_private, ..Expansion::default() };
        let make = Make { provider: self, port: scope.port, origin };
        if let (Some(surface), Some(api), Some(host)) =
            (&scope.api, &self.api, host(self.api_host.or(self.git_host)))
        {
            let rules = scope.repos.iter().flat_map(|repo| make.api(api, surface, repo)).collect();
            if let (Some((secret, true)), Some(env)) = (&surface.auth, api.env) {
                let kind = ShimKind::Env { name: env.to_owned() };
                let (host, secrets) = (host.clone(), vec![secret.clone()]);
                all.shims.push(Shim { service: service.to_owned(), kind, host, secrets });
            }
            all.records.push((HostPattern::Exact(host), rules));
        }
        if let (Some(surface), Some(host)) = (&scope.git, host(self.git_host)) {
            let rules = scope.repos.iter().flat_map(|repo| make.git(surface, repo)).collect();
            if let Some(auth) = surface.auth.as_ref().filter(|auth| auth.shim) {
                let kind = ShimKind::GitAskpass { username: auth.username.clone() };
                let (host, secrets) = (host.clone(), vec![auth.secret.clone()]);
                all.shims.push(Shim { service: service.to_owned(), kind, host, secrets });
            }
            all.records.push((HostPattern::Exact(host), rules));
        }
        if scope.exclusive {
            all.governs = all.records.iter().map(|(host, _)| host.clone()).collect();
        }
        all
    }
}

/// What is the same for all rules of an entry.
struct Make<'a> {
    provider: &'a Provider,
    port: u16,
    origin: &'a Origin,
}

impl Make<'_> {
    fn rule(&self, path: PathRule) -> Rule {
        let ports = BTreeSet::from([self.port]);
        let whole = Rule::whole_host(self.origin.clone());
        Rule { path: Some(path), ports, websocket: false, ..whole }
    }

    fn path(&self, kind: PathKind, text: String) -> PathRule {
        PathRule { kind, text, ignore_case: self.provider.ignore_case }
    }

    fn git(&self, surface: &GitSurface, repo: &str) -> Vec<Rule> {
        let transform = surface.auth.as_ref().map(|auth| {
            let how = How::Basic { username: auth.username.clone() };
            let header =
                HeaderRule { name: "authorization".to_owned(), secret: auth.secret.clone(), how };
            Arc::new(Transform { headers: vec![header], on_existing: on_existing(auth.shim) })
        });
        let mut rules = Vec::new();
        // People clone with and without the ending, and git asks for what they typed.
        for repo in [format!("/{repo}.git"), format!("/{repo}")] {
            let mut services = vec!["git-upload-pack"];
            if surface.write {
                services.push("git-receive-pack");
            }
            for service in services {
                let refs = self.rule(self.path(PathKind::Exact, format!("{repo}/info/refs")));
                let query = QueryMap::from([("service".to_owned(), vec![service.to_owned()])]);
                rules.push(Rule { query: Some(query), ..narrowed(refs) });
                let data = self.rule(self.path(PathKind::Exact, format!("{repo}/{service}")));
                let pushes = service == "git-receive-pack";
                let push = pushes.then(|| Arc::new(surface.push.clone()));
                rules.push(Rule { methods: Some(posts()), push, ..data });
            }
            if surface.lfs {
                rules.extend(self.lfs(&repo, surface.write));
            }
        }
        for rule in &mut rules {
            rule.transform.clone_from(&transform);
        }
        rules
    }

    /// Whether a batch is for sending or fetching is in its body; where it leads to is a host of its own.
    fn lfs(&self, repo: &str, write: bool) -> Vec<Rule> {
        let below = |at: &&str| self.rule(self.path(PathKind::Prefix, format!("{repo}{at}")));
        let roots = self.provider.lfs.iter();
        if write {
            return roots.map(below).collect();
        }
        let batch = self.path(PathKind::Exact, format!("{repo}/info/lfs/objects/batch"));
        let batch = Rule { methods: Some(posts()), ..self.rule(batch) };
        roots.map(below).map(narrowed).chain([batch]).collect()
    }

    fn api(&self, api: &Api, surface: &ApiSurface, repo: &str) -> Vec<Rule> {
        let name = if api.escaped { repo.replace('/', "%2F") } else { repo.to_owned() };
        let at = format!("{}{name}", api.root);
        let transform = surface.auth.as_ref().map(|(secret, shim)| {
            let how = match api.word {
                "Bearer" => How::Bearer,
                word => How::Format { before: format!("{word} "), after: String::new() },
            };
            let header =
                HeaderRule { name: "authorization".to_owned(), secret: secret.clone(), how };
            Arc::new(Transform { headers: vec![header], on_existing: on_existing(*shim) })
        });
        let whole = [(PathKind::Exact, at.clone()), (PathKind::Prefix, format!("{at}/"))];
        let allow = whole.into_iter().map(|(kind, text)| {
            let rule = self.rule(self.path(kind, text));
            let rule = if surface.write { rule } else { narrowed(rule) };
            Rule { transform: transform.clone(), ..rule }
        });
        let kept = api.admin.iter().filter(|(word, ..)| !surface.admin.contains(word));
        let deny = kept.map(|(_, methods, below)| {
            let kind = if below.is_empty() { PathKind::Exact } else { PathKind::Pattern };
            let methods =
                methods.iter().map(|method| (*method).to_owned()).collect::<BTreeSet<_>>();
            Rule {
                methods: Some(methods).filter(|methods| !methods.is_empty()),
                action: Action::Deny,
                ..self.rule(self.path(kind, format!("{at}{below}")))
            }
        });
        allow.chain(deny).collect()
    }
}

fn posts() -> BTreeSet<String> {
    BTreeSet::from(["POST".to_owned()])
}
