//! `integration.<service>.<op>`: whatever the connectors' tables describe.
//!
//! The tables say what a box may ask for and what the host then runs or calls; here is only the way
//! through the gate, the same for every service. A credential goes into the environment of the one
//! program that needs it, or into the one request, and is masked in what comes back.

use crate::call::{Call, Stop};
use crate::decide::{Refusal, Request, rule};
use crate::http;
use crate::ports::Policy;
use crate::process::Limit;
use approvals::{Draft, Rememberable, Scope};
use connectors::connector::{
    Action, Ask, Connector, Input, Means, Op, Prepared, Program, Scopes, SecretUse,
};
use connectors::{registry, worktree};
use protocol::exit;
use protocol::question::Fact;
use protocol::rpc::{ArgsParams, Envelope, MAX_STDIN};
use protocol::text::{shortened, visible};
use serde_json::json;
use std::ffi::OsString;

/// Lines of a text shown in a question, and how much of each.
const SHOWN_LINES: usize = 80;
const SHOWN_LINE: usize = 400;
/// A command line is shown whole up to here; beyond, each long word says how much it leaves out.
const SHOWN_ARGV: usize = 32 * 1024;
const SHOWN_WORD: usize = 4000;

pub(crate) struct Plan {
    connector: &'static Connector,
    op: &'static Op,
    prepared: Prepared,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} {:?}", self.connector.service, self.op.info.name, self.prepared)
    }
}

impl Plan {
    pub fn may_ask(&self) -> bool {
        self.prepared.ask.is_some()
    }
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (service, op) = split(request.method).ok_or_else(|| {
        rule(
            exit::UNADDRESSABLE,
            format!("unknown integration method shape: {}", visible(request.method)),
        )
    })?;
    let connector = registry::find(service).filter(|c| !c.ops.is_empty()).ok_or_else(|| {
        rule(exit::UNADDRESSABLE, format!("unknown integration service: {service}"))
    })?;
    let op = connector.op(op).ok_or_else(|| {
        let names: Vec<&str> = connector.ops.iter().map(|o| o.info.name).collect();
        let what = connector.program().map_or(connector.title, |p| p.name);
        let text = format!(
            "integration {service}: op '{op}' not on allowlist for {what}. Available: {}",
            names.join(", ")
        );
        rule(exit::REFUSED, text)
    })?;
    let surface = format!("{service} {}", op.info.name);
    let params: ArgsParams = request.params(&surface)?;
    if let Some(path) = &params.path {
        worktree::normalise(path).map_err(|e| rule(e.exit_code(), format!("{surface}: {e}")))?;
    }
    connectors::grammar::check_size(&surface, &params.args)?;
    if params.stdin.as_ref().is_some_and(|text| text.len() > MAX_STDIN) {
        let text = format!("{surface}: the text is larger than {MAX_STDIN} bytes.");
        return Err(rule(exit::UNADDRESSABLE, text));
    }
    let input = Input { args: &params.args, stdin: params.stdin.as_deref() };
    let prepared = (op.parse)(&input)?;
    enabled(connector, request.policy)?;
    Ok(Plan { connector, op, prepared })
}

/// The service and the operation of `integration.<service>.<op>`; an operation may hold dots.
fn split(method: &str) -> Option<(&str, &str)> {
    let (service, op) = method.strip_prefix("integration.")?.split_once('.')?;
    let word = |text: &str, dots: bool| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || (dots && b == b'.'))
    };
    let shaped = word(service, false) && word(op, true) && !op.ends_with('.') && !op.contains("..");
    shaped.then_some((service, op))
}

/// Off unless a person said otherwise in settings no box can write.
pub(crate) fn enabled(connector: &Connector, policy: &Policy) -> Result<(), Refusal> {
    if policy.integration(connector.service).enabled {
        return Ok(());
    }
    let service = connector.service;
    let text = format!(
        "{service} integration is disabled — enable with `agentbox integrations enable {service}`"
    );
    Err(rule(exit::REFUSED, text))
}

pub(crate) async fn execute(call: &Call, plan: Plan) -> Result<Envelope, Stop> {
    let Plan { connector, op, prepared } = plan;
    let reads = prepared.ask.is_none();
    match (&connector.means, prepared.action) {
        (Means::Cli(program), Action::Run { args, stdin }) => {
            let env = call.env(program.env_prefixes);
            let tool = call.ready(connector, program, &env).await?;
            let argv: Vec<String> =
                std::iter::once(program.name.to_owned()).chain(args.iter().cloned()).collect();
            let plan = format!("{argv:?} {stdin:?}");
            if !reads {
                // A yes must not end at a locked keychain. The values are read again after it.
                Loaded::for_program(call, connector.secrets, program).await?;
            }
            let title = pass(call, connector, op, prepared.ask, &argv, plan).await?;
            let later = call.clone();
            let work = async move {
                let secrets = Loaded::for_program(&later, connector.secrets, program).await?;
                let env = [env, secrets.env].concat();
                let stdin = stdin.as_deref().map(str::as_bytes);
                let output = later.run(&tool, &args, stdin, &env, Limit::SERVICE).await?;
                let values: Vec<&secrets::Value> = secrets.values.iter().collect();
                let envelope = Envelope {
                    exit_code: output.code,
                    stdout: secrets::redact_values(&output.out(), &values),
                    stderr: secrets::redact_values(&output.err(), &values),
                    pushed: None,
                };
                Ok(noted_down(&later, reads, title, &argv, envelope).await)
            };
            if reads { work.await } else { call.finish(work).await }
        }
        (Means::Http(api), Action::Call(request)) => {
            let policy = call.policy.integration(connector.service);
            let base = policy.base_url.as_deref().unwrap_or(api.base_url).to_owned();
            http::check(&base, &request).map_err(|why| {
                Stop::fail(exit::FAILURE, format!("{}: {why}.", connector.service))
            })?;
            let argv = http::shown(&base, &request);
            let plan = format!("{argv:?} {:?}", request.body);
            if !reads {
                // Without the credential there is nothing to ask a person about.
                Loaded::for_api(call, connector).await?;
            }
            let title = pass(call, connector, op, prepared.ask, &argv, plan).await?;
            let later = call.clone();
            let work = async move {
                let loaded = Loaded::for_api(&later, connector).await?;
                let envelope = http::call(&later, api, &base, &request, &loaded.values).await;
                Ok(noted_down(&later, reads, title, &argv, envelope).await)
            };
            if reads { work.await } else { call.finish(work).await }
        }
        _ => Err(Stop::fail(exit::FAILURE, format!("{} is misconfigured", connector.service))),
    }
}

async fn noted_down(
    call: &Call,
    reads: bool,
    title: String,
    argv: &[String],
    envelope: Envelope,
) -> Envelope {
    let data = json!({ "argv": noted(argv) });
    if reads {
        call.read(title, data, envelope).await
    } else {
        call.done(title, data, envelope).await
    }
}

/// Lets a read pass and asks for a write. What it was, for the trail.
async fn pass(
    call: &Call,
    connector: &Connector,
    op: &Op,
    ask: Option<Ask>,
    argv: &[String],
    plan: String,
) -> Result<String, Stop> {
    let Some(ask) = ask else {
        return Ok(format!("{} {}", connector.title, op.info.name));
    };
    let draft = draft(call, ask, argv, plan);
    let title = draft.title.clone();
    let policy = call.policy.integration(connector.service);
    if policy.auto_approve_writes && draft.tier == protocol::question::Tier::Routine {
        let reason = format!("integrations.{}.autoApproveWrites", connector.service);
        call.allowed_by(&draft, &reason).await?;
    } else {
        call.gate(draft, None).await?;
    }
    Ok(title)
}

pub(crate) fn draft(call: &Call, ask: Ask, argv: &[String], plan: String) -> Draft {
    let mut draft = call.draft(ask.tier, visible(&ask.title), visible(&ask.target));
    let fact = |f: Fact| Fact { label: visible(&f.label), value: shortened(&f.value, SHOWN_WORD) };
    draft.evidence.facts = ask.facts.into_iter().map(fact).collect();
    if let Some(text) = &ask.body {
        (draft.evidence.body, draft.evidence.more_body) = lines(text);
    }
    draft.warnings = ask.warnings.iter().map(|w| visible(w)).collect();
    draft.remember = ask.remember.map(rememberable);
    draft.argv = shown(argv);
    draft.plan = plan;
    draft
}

/// The first lines of a text, each made visible, and how many more there are.
pub(crate) fn lines(text: &str) -> (Vec<String>, u32) {
    let all = text.lines().count();
    let first = text.lines().take(SHOWN_LINES).map(|line| shortened(line, SHOWN_LINE)).collect();
    (first, u32::try_from(all.saturating_sub(SHOWN_LINES)).unwrap_or(u32::MAX))
}

/// What the trail keeps of a command line that nobody was asked about.
pub(crate) fn noted(argv: &[String]) -> Vec<String> {
    const MOST: usize = 2048;
    let mut room = MOST;
    let mut kept = Vec::new();
    for word in argv {
        // By what it is on paper: one sign that cannot be seen takes a dozen letters to say.
        let word = shortened(word, MOST);
        if word.len() > room {
            let more = argv.len() - kept.len();
            kept.push(format!("… {more} more"));
            break;
        }
        room -= word.len();
        kept.push(word);
    }
    kept
}

/// A command line for people: whole, unless it is longer than anybody reads.
pub(crate) fn shown(argv: &[String]) -> Vec<String> {
    let long = argv.iter().map(String::len).sum::<usize>() > SHOWN_ARGV;
    let most = if long { SHOWN_WORD } else { usize::MAX };
    argv.iter().map(|word| shortened(word, most)).collect()
}

pub(crate) fn rememberable(scopes: Scopes) -> Rememberable {
    let scope = |s: connectors::connector::Scope| Scope { key: s.key, what: visible(&s.what) };
    Rememberable { exact: scope(scopes.exact), kind: scopes.kind.map(scope), only: None }
}

/// A connector sets only variables of its own program's: any other could steer what else is run.
pub(crate) fn own_variables(uses: &[SecretUse], program: &Program) -> Result<(), String> {
    let own = |used: &&SecretUse| program.env_prefixes.iter().any(|p| used.env.starts_with(p));
    match uses.iter().find(|used| !own(used)) {
        Some(used) => Err(format!("{} may not set {} for its program", program.name, used.env)),
        None => Ok(()),
    }
}

/// Credentials for one call, gone with it.
pub(crate) struct Loaded {
    pub values: Vec<secrets::Value>,
    pub env: Vec<(OsString, OsString)>,
}

impl Loaded {
    /// What is stored of the program's credentials, as its variables. With none stored it uses its
    /// own login.
    pub async fn for_program(
        call: &Call,
        uses: &[SecretUse],
        program: &Program,
    ) -> Result<Self, Stop> {
        own_variables(uses, program).map_err(|why| Stop::fail(exit::BAD_ENVIRONMENT, why))?;
        let mut loaded = Self { values: Vec::new(), env: Vec::new() };
        for wanted in uses {
            if let Some(value) = get(call, wanted.id).await? {
                loaded.env.push((wanted.env.into(), value.expose().into()));
                loaded.values.push(value);
            }
        }
        Ok(loaded)
    }

    /// All credentials an API needs, in their order.
    async fn for_api(call: &Call, connector: &Connector) -> Result<Self, Stop> {
        let mut values = Vec::new();
        for wanted in connector.secrets {
            let value = get(call, wanted.id).await?;
            values.push(value.ok_or_else(|| {
                let text = format!(
                    "{}: no credential {} on the host. Ask the person to run 'agentbox secrets set {}'.",
                    connector.service, wanted.id, wanted.id
                );
                Stop::fail(exit::NOT_LOGGED_IN, text)
            })?);
        }
        Ok(Self { values, env: Vec::new() })
    }
}

async fn get(call: &Call, id: &str) -> Result<Option<secrets::Value>, Stop> {
    let id =
        id.parse().map_err(|e: protocol::ids::BadId| Stop::fail(exit::FAILURE, e.to_string()))?;
    let value = call.shared.deps.credentials.get(&id).await;
    value.map_err(|why| Stop::fail(exit::FAILURE, format!("{id}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use connectors::connector::OpInfo;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn the_trail_keeps_little_of_a_long_command_line() {
        let words = |word: &str, n: usize| vec![word.to_owned(); n];
        assert_eq!(noted(&words("--label=a", 3)), words("--label=a", 3));
        for argv in
            [words(&"\u{202e}".repeat(85), 30), words(&"x".repeat(60_000), 4), words("", 250)]
        {
            let kept = noted(&argv);
            assert!(kept.iter().map(String::len).sum::<usize>() < 4096, "{kept:?}");
        }
        assert_eq!(noted(&words(&"x".repeat(1500), 3))[1], "… 2 more");
    }

    #[test]
    fn relay_19_32_methods_have_one_shape() {
        assert_eq!(split("integration.notion.page.create"), Some(("notion", "page.create")));
        for bad in [
            "integration.notion.",
            "integration.NOTION.api",
            "integration.notion",
            "integration..api",
            "integration.notion.page..create",
            "integration.notion.page.",
            "integration.notion.Api",
            "integration.no-tion.api",
            "integration.notion.a\0b",
        ] {
            assert_eq!(split(bad), None, "{bad:?}");
        }
    }

    const SAMPLE: Program = Program {
        name: "sample",
        version_args: &["--version"],
        auth_args: &["whoami"],
        install_hint: "install it",
        login_hint: "log in",
        env_prefixes: &["SAMPLE_"],
    };

    const READ: Op = Op {
        info: OpInfo { name: "read", write: false, usage: "", summary: "Reads." },
        parse: |_| Ok(reading()),
    };

    /// Hands its credential over in this variable.
    const fn sample(secrets: &'static [SecretUse]) -> Connector {
        Connector {
            service: "sample",
            title: "Sample",
            about: "",
            on_by_default: false,
            means: Means::Cli(SAMPLE),
            secrets,
            ops: &[READ],
            own_ops: &[],
        }
    }

    const fn in_variable(env: &'static str) -> SecretUse {
        SecretUse { id: "sample.token", env, about: "" }
    }

    static GOOD: Connector = sample(&[in_variable("SAMPLE_TOKEN")]);
    static PATH: Connector = sample(&[in_variable("SAMPLE_TOKEN"), in_variable("PATH")]);
    static LATE: Connector = sample(&[in_variable("MY_SAMPLE_TOKEN")]);

    fn reading() -> Prepared {
        let action = Action::Run { args: vec!["read".into()], stdin: None };
        Prepared { action, ask: None }
    }

    /// The program writes down its environment; what it wrote, and what the box is told.
    async fn read(connector: &'static Connector) -> (Option<String>, Envelope) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let script = format!("#!/bin/sh\n/usr/bin/env >> {}\n", log.display());
        // By another process: what a child of this one has open for writing cannot be run.
        std::fs::write(dir.path().join("text"), script).unwrap();
        let copy = [dir.path().join("text"), bin.join("sample")];
        assert!(std::process::Command::new("cp").args(copy).status().unwrap().success());
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join("sample"), runs).unwrap();
        let inherited = [("PATH", "/usr/bin:/bin"), ("SAMPLE_SPACE", "mine"), ("OTHER", "not")];
        let inherited = inherited.map(|(key, value)| (key.into(), value.into())).to_vec();
        let call = testing::call(dir.path(), "integration.sample.read", inherited);
        let plan = Plan { connector, op: &connector.ops[0], prepared: reading() };
        let done = execute(&call, plan).await;
        (read_text(&log), done.unwrap_or_else(|stop| stop.envelope))
    }

    fn read_text(file: &Path) -> Option<String> {
        std::fs::read_to_string(file).ok()
    }

    #[tokio::test]
    async fn relay_19_38_and_a34_a_connector_sets_only_variables_of_its_own() {
        for (connector, variable) in [(&PATH, "PATH"), (&LATE, "MY_SAMPLE_TOKEN")] {
            let (ran, envelope) = read(connector).await;
            assert_eq!(ran, None, "something was run");
            let text = format!("sample may not set {variable} for its program\n");
            assert_eq!((envelope.exit_code, envelope.stderr), (78, text));
        }
        let (ran, envelope) = read(&GOOD).await;
        assert_eq!(envelope.exit_code, 0, "{}", envelope.stderr);
        let ran = ran.unwrap();
        assert!(ran.contains("\nSAMPLE_TOKEN=stored-credential\n"), "{ran}");
        assert!(ran.contains("\nSAMPLE_SPACE=mine\n") && !ran.contains("OTHER"), "{ran}");
    }
}
