use super::*;

fn rules(policy: &Policy, host: &str) -> Vec<Rule> {
    let host = HostName::parse(host).unwrap();
    policy.record(&host).map(|(_, record)| record.rules.clone()).unwrap_or_default()
}

#[test]
fn egress_12_20_a_repository_to_read_is_four_rules() {
    let text = "services: [{name: github, repos: [Acme/Widget, acme/widget], git: {access: read}}]";
    let policy = policy(text);
    assert_eq!(hosts(&policy), ["github.com"]);
    let rules = rules(&policy, "github.com");
    let paths: Vec<_> =
        rules.iter().map(|rule| rule.path.as_ref().unwrap().text.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/acme/widget.git/info/refs",
            "/acme/widget.git/git-upload-pack",
            "/acme/widget/info/refs",
            "/acme/widget/git-upload-pack",
        ]
    );
    assert!(rules.iter().all(|rule| rule.schemes.iter().all(|scheme| *scheme == Scheme::Https)));
}

#[test]
fn egress_12_21_fetching_is_not_pushing() {
    let policy = policy("services: [{name: github, repos: [acme/widget], git: {access: read}}]");
    allowed(&policy, "GET https://github.com/ACME/widget.git/info/refs?service=git-upload-pack");
    allowed(&policy, "POST https://github.com/acme/widget/git-upload-pack");
    for line in [
        "GET https://github.com/acme/widget.git/info/refs?service=git-receive-pack",
        "GET https://github.com/acme/widget.git/info/refs",
        "POST https://github.com/acme/widget.git/git-receive-pack",
        "POST https://github.com/acme/widget2.git/git-upload-pack",
        "GET https://github.com/acme/widget",
        "POST https://github.com/acme/widget.git/info/lfs/objects/batch",
    ] {
        denied(&policy, line, Reason::NoRuleMatched);
    }
}

#[test]
fn egress_12_22_naming_repositories_takes_catch_alls_away() {
    let text = "services: [copilot, {name: github, repos: [a/b], git: {access: read}}]";
    let scoped = rendered(&[(Layer::Global, text)]);
    denied(&scoped.policy, "GET https://github.com/x/y", Reason::NoRuleMatched);
    allowed(&scoped.policy, "POST https://github.com/a/b.git/git-upload-pack");
    // Its own hosts stay.
    allowed(&scoped.policy, "GET https://api.githubcopilot.com/");
    allowed(&scoped.policy, "GET https://api.github.com/copilot_internal/v2/token");
    assert_eq!(codes(&scoped), [""; 0]);
    let wide = rendered(&[(Layer::Global, text), (Layer::Project, "domains:\n- github.com\n")]);
    allowed(&wide.policy, "GET https://github.com/x/y");
    assert_eq!(codes(&wide), ["scope_defeated"]);
    let warning = &wide.warnings[0];
    assert_eq!(
        (warning.layer.as_str(), warning.line, warning.path.as_str()),
        ("project", 2, "domains[0]")
    );
    // The order does not matter, and it can be said otherwise.
    let later = [(Layer::Global, text), (Layer::Project, "services: [copilot]")];
    denied(&rendered(&later).policy, "GET https://github.com/x/y", Reason::NoRuleMatched);
    let open = text.replace("git: {", "exclusive: false, git: {");
    allowed(&policy(&open), "GET https://github.com/x/y");
}

#[test]
fn egress_12_23_a_service_can_be_told_anew() {
    let first = "
services:
- github
- {name: github, repos: [a/b], git: {access: read, auth: {secret: gh.key, client_shim: {kind: git-askpass}}}}
domains: [{host: github.com, rules: [{path: {exact: /login}}]}]
";
    let second =
        "services: [{name: github, merge_mode: replace, repos: [a/b], api: {access: read}}]";
    assert_eq!(rendered(&[(Layer::Global, first)]).policy.shims.len(), 1);
    let both = rendered(&[(Layer::Global, first), (Layer::Project, second)]).policy;
    assert_eq!(hosts(&both), ["github.com", "api.github.com"]);
    assert_eq!(both.shims, []);
    assert_eq!(rules(&both, "github.com").len(), 1);
    let alone = [(Layer::Global, "services: [github]"), (Layer::Project, second)];
    assert_eq!(hosts(&rendered(&alone).policy), ["api.github.com"]);
}

const WRITE: &str = "
services:
- name: github
  repos: [acme/widget]
  git: { access: readwrite, auth: { secret: github.acme.push, client_shim: {kind: git-askpass} }, push: { refs: ['agentbox/*'] }, lfs: true }
  api: { access: readwrite, auth: { secret: github.acme.api, client_shim: {kind: env} } }
";

#[test]
fn egress_12_25_every_request_of_git_gets_the_credential() {
    let policy = policy(WRITE);
    for line in [
        "GET https://github.com/acme/widget.git/info/refs?service=git-upload-pack",
        "POST https://github.com/acme/widget.git/git-upload-pack",
        "GET https://github.com/acme/widget/info/refs?service=git-receive-pack",
        "POST https://github.com/acme/widget/git-receive-pack",
        "PUT https://github.com/acme/widget.git/info/lfs/locks",
    ] {
        let rule = policy.rule(allowed(&policy, line)).unwrap().1;
        let header = &rule.transform.as_ref().unwrap().headers[0];
        assert_eq!(header.how, How::Basic { username: "x-access-token".to_owned() });
        assert_eq!(
            (header.name.as_str(), header.secret.as_str()),
            ("authorization", "github.acme.push")
        );
        assert_eq!(rule.transform.as_ref().unwrap().on_existing, OnExisting::ReplacePlaceholder);
        assert_eq!(
            rule.push.is_some(),
            line.ends_with("git-receive-pack") && line.starts_with("POST")
        );
    }
    let kinds: Vec<_> = policy.shims.iter().map(|shim| (&shim.kind, shim.host.as_str())).collect();
    let env = ShimKind::Env { name: "GH_TOKEN".to_owned() };
    let askpass = ShimKind::GitAskpass { username: "x-access-token".to_owned() };
    assert_eq!(kinds, [(&env, "api.github.com"), (&askpass, "github.com")]);
    let warnings = rendered(&[(Layer::Global, WRITE)]);
    assert_eq!(codes(&warnings), ["push_scope_bypassed"]);
}

#[test]
fn an_api_is_for_working_on_a_repository_not_for_owning_it() {
    let policy = policy(WRITE);
    let api = |line: &str| line.replacen(" /", " https://api.github.com/", 1);
    for line in [
        "GET /repos/acme/widget",
        "POST /repos/acme/widget/pulls",
        "GET /repos/Acme/Widget/issues?state=open",
        "GET /repos/acme/widget/branches/main",
        "GET /repos/acme/widget/hookshot",
    ] {
        allowed(&policy, &api(line));
    }
    for line in [
        "GET /repos/acme/widget/hooks",
        "POST /repos/acme/widget/hooks/1/tests",
        "POST /repos/acme/widget//hooks",
        "POST /repos/acme/widget/HOOKS",
        "POST /repos/acme/widget/hook%73",
        "PUT /repos/acme/widget/keys",
        "PUT /repos/acme/widget/actions/secrets/A",
        "PUT /repos/acme/widget/environments/x",
        "PUT /repos/acme/widget/collaborators/x",
        "POST /repos/acme/widget/transfer",
        "DELETE /repos/acme/widget",
        "DELETE /repos/acme/widget/",
        "PATCH /repos/acme/widget",
        "POST /repos/acme/widget/actions/workflows/ci.yml/dispatches",
        "PUT /repos/acme/widget/branches/main/protection",
        "DELETE /repos/acme/widget/branches/a/b/protection/enforce_admins",
        "POST /repos/acme/widget/actions/runners/registration-token",
    ] {
        denied(&policy, &api(line), Reason::DeniedByRule);
    }
    denied(&policy, "POST https://api.github.com/graphql", Reason::NoRuleMatched);
    denied(&policy, "GET https://api.github.com/repos/acme/other", Reason::NoRuleMatched);
    denied(
        &policy,
        "GET https://api.github.com/repos/acme/widget/x%2F..%2Fhooks",
        Reason::AmbiguousPath,
    );
    let hooks = super::policy(&WRITE.replace(
        "api: { access: readwrite,",
        "api: { access: readwrite, allow_admin: [hooks, delete],",
    ));
    allowed(&hooks, &api("POST /repos/acme/widget/hooks"));
    allowed(&hooks, &api("DELETE /repos/acme/widget"));
    denied(&hooks, &api("PUT /repos/acme/widget/keys"), Reason::DeniedByRule);
    let read =
        super::policy("services: [{name: github, repos: [acme/widget], api: {access: read}}]");
    allowed(&read, &api("GET /repos/acme/widget/pulls"));
    denied(&read, &api("POST /repos/acme/widget/pulls"), Reason::NoRuleMatched);
    denied(&read, &api("GET /repos/acme/widget/keys"), Reason::DeniedByRule);
}

#[test]
fn other_servers_have_their_own_ways() {
    let text = "
services:
- name: gitlab
  repos: [acme/team/widget]
  git: { access: readwrite, auth: { secret: gl.key }, lfs: true }
  api: { access: readwrite, auth: { secret: gl.key } }
- name: gitea
  host: git.ex.com
  port: 3000
  repos: [acme/widget]
  git: { access: read }
  api: { access: read, auth: { secret: tea.key } }
- name: git
  host: plain.ex.com
  repos: [Widget]
  git: { access: read, auth: { secret: plain.key, username: ada } }
";
    let policy = policy(text);
    let header = |line: &str| {
        let rule = policy.rule(allowed(&policy, line)).unwrap().1;
        rule.transform.as_ref().map(|transform| transform.headers[0].how.clone())
    };
    let oauth = How::Basic { username: "oauth2".to_owned() };
    assert_eq!(
        header("POST https://gitlab.com/acme/team/widget.git/git-receive-pack"),
        Some(oauth)
    );
    assert_eq!(
        header("GET https://gitlab.com/api/v4/projects/acme%2Fteam%2Fwidget"),
        Some(How::Bearer)
    );
    assert_eq!(
        header("POST https://gitlab.com/api/v4/projects/ACME%2fteam%2Fwidget/merge_requests"),
        Some(How::Bearer)
    );
    denied(
        &policy,
        "GET https://gitlab.com/api/v4/projects/acme%2Fteam%2Fwidget/hooks",
        Reason::DeniedByRule,
    );
    denied(&policy, "GET https://gitlab.com/api/v4/projects/acme%2Fother", Reason::AmbiguousPath);
    denied(&policy, "GET https://gitlab.com/api/v4/projects/17", Reason::NoRuleMatched);
    denied(
        &policy,
        "GET https://gitlab.com/acme/other.git/info/refs?service=git-upload-pack",
        Reason::NoRuleMatched,
    );
    allowed(&policy, "PUT https://gitlab.com/acme/team/widget.git/gitlab-lfs/objects/abc/12");
    let token = How::Format { before: "token ".to_owned(), after: String::new() };
    assert_eq!(header("GET https://git.ex.com:3000/api/v1/repos/acme/widget/pulls"), Some(token));
    assert_eq!(
        header("GET https://git.ex.com:3000/acme/widget/info/refs?service=git-upload-pack"),
        None
    );
    denied(
        &policy,
        "GET https://git.ex.com/acme/widget/info/refs?service=git-upload-pack",
        Reason::PortNotAllowed,
    );
    let ada = How::Basic { username: "ada".to_owned() };
    assert_eq!(header("POST https://plain.ex.com/Widget.git/git-upload-pack"), Some(ada));
    denied(&policy, "POST https://plain.ex.com/widget.git/git-upload-pack", Reason::NoRuleMatched);
    let read = super::policy(
        "services: [{name: gitlab, repos: [a/b], git: {access: read, lfs: true}}, {name: git, host: x.ex.com}]",
    );
    allowed(&read, "POST https://gitlab.com/a/b.git/info/lfs/objects/batch");
    allowed(&read, "GET https://gitlab.com/a/b.git/gitlab-lfs/objects/abc");
    denied(&read, "PUT https://gitlab.com/a/b.git/gitlab-lfs/objects/abc/1", Reason::NoRuleMatched);
    denied(&read, "POST https://gitlab.com/a/b.git/info/lfs/locks", Reason::NoRuleMatched);
    allowed(&read, "POST https://x.ex.com/anything");
}
