//! `gh.pr.*`, `gh.run.*` and `gh.api`: GitHub, for the one repository a worktree came from.
//!
//! Which repository that is was settled when the box was made, by the address of `origin`. `gh` runs
//! away from every project and finds nothing out by itself: repository, branch, pull request, base,
//! title and body are all on its command line.
//!
//! The surprising thing: a write on a pull request reads it first. The question then names what is
//! really there, a remembered yes covers that one number, and the box's own pull request is known by
//! where it comes from instead of by the box's word.

mod ask;
mod checkout;
mod fill;
mod found;
mod login;

use crate::call::{Call, Stop};
use crate::decide::{Refusal, Request, rule};
use crate::integration;
use crate::registration::Worktree;
use connectors::connector::Ask;
use connectors::gh::{
    Api, CONNECTOR, Create, Head, Method, Pr, PrOp, PrRef, RepoSlug, Run, RunOp, Verdict,
};
use connectors::git::RemoteName;
use found::{Base, Found};
use login::Gh;
use protocol::exit;
use protocol::rpc::{ApiParams, ArgsParams, Envelope};
use protocol::text::visible;
use serde_json::json;

#[derive(Debug)]
pub(crate) struct Plan {
    /// The worktree's number.
    at: usize,
    repo: RepoSlug,
    /// The branch the box pushes to, as the repository's pull requests name it.
    own: Head,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Pr(Pr),
    Run(Run),
    Api(Api),
}

impl Plan {
    pub fn may_ask(&self) -> bool {
        match &self.work {
            Work::Pr(pr) => pr.op().is_write(),
            Work::Run(run) => run.op() == RunOp::Rerun,
            Work::Api(api) => api.method == Method::Post,
        }
    }
}

/// What a method names.
#[derive(Clone, Copy)]
enum Command {
    Pr(PrOp),
    Run(RunOp),
    Api,
}

impl Command {
    fn find(method: &str) -> Result<Self, Refusal> {
        let rest = method.strip_prefix("gh.").unwrap_or_default();
        let unknown = |family: &str, op: &str, instead: &str| {
            Refusal::Bad(format!("unknown gh.{family}.* op: {}{instead}", visible(op)))
        };
        match rest.split_once('.') {
            Some(("pr", op)) => {
                PrOp::find(op).map(Command::Pr).ok_or_else(|| unknown("pr", op, ""))
            }
            Some(("run", op)) => {
                let instead = if op == "watch" { "; use gh.run.view" } else { "" };
                RunOp::find(op).map(Command::Run).ok_or_else(|| unknown("run", op, instead))
            }
            None if rest == "api" => Ok(Command::Api),
            _ => Err(Refusal::Unknown),
        }
    }

    fn surface(self) -> &'static str {
        match self {
            Command::Pr(op) => op.surface(),
            Command::Run(op) => op.surface(),
            Command::Api => "gh api",
        }
    }
}

pub(crate) fn decide(request: &Request<'_>) -> Result<Plan, Refusal> {
    let command = Command::find(request.method)?;
    let surface = command.surface();
    let (path, args, endpoint) = match command {
        Command::Api => {
            let params: ApiParams = request.params(surface)?;
            (params.path, params.args, params.endpoint)
        }
        _ => {
            let params: ArgsParams = request.params(surface)?;
            if params.stdin.is_some() {
                return Err(rule(exit::UNADDRESSABLE, format!("{surface}: it reads no input.")));
            }
            (params.path, params.args, String::new())
        }
    };
    connectors::grammar::check_size(surface, &args)?;
    if matches!(command, Command::Pr(PrOp::Checkout)) && !request.policy.checkout {
        let text = "gh pr checkout: disabled; it changes the files of the person's own work tree. \
                    They can switch it on with 'gh: {checkout: true}' in AgentBox's own config.yaml.";
        return Err(rule(exit::CHECKOUT_OFF, text));
    }
    let at = request.worktree(surface, path.as_deref())?;
    let worktree = &request.reg.worktrees[at];
    let (repo, own) = place(surface, worktree)?;
    let work = match command {
        Command::Pr(op) => Work::Pr(pr(op, &args, worktree, &repo, &own)?),
        Command::Run(op) => Work::Run(Run::parse(op, &args)?),
        Command::Api => Work::Api(Api::parse(&endpoint, &args, &repo)?),
    };
    integration::enabled(&CONNECTOR, request.policy)?;
    Ok(Plan { at, repo, own, work })
}

/// The repository of the worktree, and the box's branch there. Pushes may go to a fork of it.
fn place(surface: &str, worktree: &Worktree) -> Result<(RepoSlug, Head), Refusal> {
    let origin = worktree.remotes.get(&RemoteName::default());
    let repo = origin.and_then(|urls| RepoSlug::from_url(&urls.fetch)).ok_or_else(|| {
        let text = format!(
            "{surface}: the project had no remote 'origin' on GitHub when this box was made."
        );
        rule(exit::REFUSED, text)
    })?;
    let fork = origin.and_then(|urls| RepoSlug::from_url(&urls.push));
    let fork =
        fork.filter(|fork| fork.host() == repo.host() && !repo.is(fork.owner(), fork.name()));
    let own = Head {
        owner: fork.map(|fork| fork.owner().to_owned()),
        branch: worktree.published().clone(),
    };
    Ok((repo, own))
}

/// Parses, and lets the box's branch mean what it is called at the remote.
fn pr(
    op: PrOp,
    args: &[String],
    worktree: &Worktree,
    repo: &RepoSlug,
    own: &Head,
) -> Result<Pr, Refusal> {
    let mut pr = Pr::parse(op, args, repo)?;
    let is_own = |head: &Head| head.owner.is_none() && head.branch == worktree.branch;
    match &mut pr {
        Pr::List(flags) if flags.value("--head") == Some(worktree.branch.as_str()) => {
            flags.set("--head", Some(own.branch.to_string()));
        }
        Pr::Create(Create { head: Some(head), .. }) if is_own(head) => *head = own.clone(),
        _ => {}
    }
    if let Some(target) = target_mut(&mut pr) {
        let means_own = match target {
            None => true,
            Some(PrRef::Branch(head)) => is_own(head),
            Some(PrRef::Number(_)) => false,
        };
        if means_own {
            let own = PrRef::of(own.clone());
            *target =
                Some(own.map_err(|why| rule(exit::REFUSED, format!("{}: {why}", op.surface())))?);
        }
    }
    Ok(pr)
}

/// The pull request an operation is about, where it may be left out.
fn target_mut(pr: &mut Pr) -> Option<&mut Option<PrRef>> {
    match pr {
        Pr::View(target, _)
        | Pr::Diff(target, _)
        | Pr::Checks(target, _)
        | Pr::Comment(target, _)
        | Pr::Review(target, ..)
        | Pr::Close(target, _)
        | Pr::Reopen(target)
        | Pr::Merge(target, ..) => Some(target),
        Pr::List(_) | Pr::Create(_) | Pr::Checkout(_) => None,
    }
}

pub(crate) async fn execute(call: &Call, plan: Plan) -> Result<Envelope, Stop> {
    let Plan { at, repo, own, work } = plan;
    if matches!(work, Work::Pr(Pr::Checkout(_))) {
        checkout::guard(call, at).await?;
    }
    let gh = login::open(call, &repo).await?;
    match work {
        Work::Pr(Pr::Checkout(target)) => checkout::execute(call, &gh, at, &target).await,
        Work::Pr(Pr::Create(create)) => self::create(call, gh, at, own, create).await,
        Work::Pr(pr) if pr.op().is_write() => on_pr(call, gh, &own, pr).await,
        Work::Pr(pr) => {
            let argv = pr.argv(&repo, pr.target());
            read(call, &gh, pr.op().surface(), argv).await
        }
        Work::Run(run) if run.op() == RunOp::Rerun => {
            rerun(call, gh, run, own.branch.as_str()).await
        }
        Work::Run(run) => read(call, &gh, run.op().surface(), run.argv(&repo)).await,
        Work::Api(api) if api.method == Method::Get => {
            read(call, &gh, "gh api", api.argv(&repo).0).await
        }
        Work::Api(api) => {
            let ask = ask::api(&repo, &api);
            let (argv, stdin) = api.argv(&repo);
            let step = Step { argv, stdin, bound: String::new() };
            // Whose pull request it is is not looked up: it is asked every time.
            write(call, gh, ask, step, None).await
        }
    }
}

async fn read(call: &Call, gh: &Gh, surface: &str, argv: Vec<String>) -> Result<Envelope, Stop> {
    let output = gh.run(call, &argv, None).await?;
    let envelope = gh.envelope(&output);
    Ok(call.read(surface.to_owned(), json!({ "argv": integration::noted(&argv) }), envelope).await)
}

/// What runs after a yes, and what the yes is bound to beside it.
struct Step {
    argv: Vec<String>,
    stdin: Option<String>,
    bound: String,
}

/// Asks, then does exactly that.
async fn write(
    call: &Call,
    gh: Gh,
    ask: Ask,
    step: Step,
    safe: Option<&str>,
) -> Result<Envelope, Stop> {
    let title = gate(call, ask, &step, safe).await?;
    let later = call.clone();
    call.finish(async move { run_step(&later, &gh, title, step).await }).await
}

async fn gate(call: &Call, ask: Ask, step: &Step, safe: Option<&str>) -> Result<String, Stop> {
    let plan = format!("{:?} {:?} {}", step.argv, step.stdin, step.bound);
    let draft = integration::draft(call, ask, &whole(&step.argv), plan);
    let title = draft.title.clone();
    call.gate(draft, safe).await?;
    Ok(title)
}

async fn run_step(call: &Call, gh: &Gh, title: String, step: Step) -> Result<Envelope, Stop> {
    let output = gh.run(call, &step.argv, step.stdin.as_deref()).await?;
    let data = json!({ "argv": shown(&step.argv) });
    Ok(call.done(title, data, gh.envelope(&output)).await)
}

fn whole(argv: &[String]) -> Vec<String> {
    std::iter::once("gh".to_owned()).chain(argv.iter().cloned()).collect()
}

fn shown(argv: &[String]) -> Vec<String> {
    integration::shown(&whole(argv))
}

/// Completes what the box left open, so that `gh` needs no repository to look things up in.
async fn create(
    call: &Call,
    gh: Gh,
    at: usize,
    own: Head,
    mut create: Create,
) -> Result<Envelope, Stop> {
    let explicit = create.head.is_some();
    let head = create.head.get_or_insert(own).clone();
    let place = Base::find(call, &gh, &head).await?;
    let base = create.base.get_or_insert(place.default).clone();
    if create.fill {
        let (title, body) = fill::from_commits(call, at, &base, &head).await?;
        create.title.get_or_insert(title);
        create.body.get_or_insert(body);
        create.fill = false;
    }
    let ask = ask::create(gh.repo(), &create, explicit, place.head.as_ref());
    let bound = format!("{:?}", place.head);
    let argv = Pr::Create(create).argv(gh.repo(), None);
    let safe = (!explicit).then_some("PR on the box's branch");
    write(call, gh, ask, Step { argv, stdin: None, bound }, safe).await
}

/// A write on a pull request that is there.
async fn on_pr(call: &Call, gh: Gh, own: &Head, pr: Pr) -> Result<Envelope, Stop> {
    let surface = pr.op().surface();
    let Some(target) = pr.target() else {
        return Err(Stop::fail(exit::FAILURE, format!("{surface}: there is no pull request")));
    };
    let found = Found::find(call, &gh, target, pr.op()).await?;
    let number = PrRef::Number(found.number);
    if matches!(pr, Pr::Merge(..)) {
        return merge(call, gh, pr, found).await;
    }
    let argv = pr.argv(gh.repo(), Some(&number));
    let step = Step { argv, stdin: None, bound: found.head_ref_oid.to_string() };
    let safe = matches!(pr, Pr::Comment(..)) && found.is_of(own);
    let ask = ask::on_pr(gh.repo(), &pr, &found);
    if !matches!(pr, Pr::Review(_, Verdict::Approve, _)) {
        return write(call, gh, ask, step, safe.then_some("PR on the box's branch")).await;
    }
    // An approval is of what the person saw.
    let title = gate(call, ask, &step, None).await?;
    let later = call.clone();
    let work = async move {
        let now = Found::find(&later, &gh, &number, PrOp::Review).await?;
        unchanged(PrOp::Review, &found, &now)?;
        run_step(&later, &gh, title, step).await
    };
    call.finish(work).await
}

/// Merges what was shown: the command carries its commit, and GitHub merges nothing else.
async fn merge(call: &Call, gh: Gh, pr: Pr, found: Found) -> Result<Envelope, Stop> {
    let surface = PrOp::Merge.surface();
    if found.state != "OPEN" {
        let state = visible(&found.state.to_lowercase());
        let text = format!(
            "{surface}: pull request #{} is {state}; there is nothing to merge.",
            found.number
        );
        return Err(Stop::fail(exit::FAILURE, text));
    }
    // A queue merges later, and by then with commits nobody was shown.
    if found::has_merge_queue(call, &gh, found.number).await? {
        let text = format!(
            "{surface}: {} takes merges through a queue, which a box cannot use. Ask the person to queue pull request #{}.",
            visible(&found.base_ref_name),
            found.number
        );
        return Err(Stop::fail(exit::REFUSED, text));
    }
    let number = PrRef::Number(found.number);
    let argv = pr.pinned_argv(gh.repo(), &number, &found.head_ref_oid);
    let step = Step { argv, stdin: None, bound: String::new() };
    let title = gate(call, ask::on_pr(gh.repo(), &pr, &found), &step, None).await?;
    let later = call.clone();
    let work = async move {
        let envelope = run_step(&later, &gh, title, step).await?;
        if envelope.exit_code != 0
            && let Ok(now) = Found::find(&later, &gh, &number, PrOp::Merge).await
        {
            unchanged(PrOp::Merge, &found, &now)?;
        }
        Ok(envelope)
    };
    call.finish(work).await
}

fn unchanged(op: PrOp, then: &Found, now: &Found) -> Result<(), Stop> {
    if then.head_ref_oid == now.head_ref_oid {
        return Ok(());
    }
    let text = format!(
        "{}: changed since approval: pull request #{} now ends in {}, not in {}. Nothing was done; run it again.",
        op.surface(),
        then.number,
        now.head_ref_oid,
        then.head_ref_oid
    );
    Err(Stop::denied(text))
}

async fn rerun(call: &Call, gh: Gh, run: Run, own: &str) -> Result<Envelope, Stop> {
    let seen = found::seen(call, &gh, &run).await?;
    let ask = ask::rerun(gh.repo(), &run, &seen);
    let step = Step { argv: run.argv(gh.repo()), stdin: None, bound: String::new() };
    // A run of another branch may be a deployment.
    let own = seen.head_branch.as_deref() == Some(own);
    write(call, gh, ask, step, own.then_some("rerun on the box's branch")).await
}

#[cfg(test)]
mod tests;
