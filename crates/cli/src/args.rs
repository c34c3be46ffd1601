//! The command line: global flags and the list of commands. Each command's own flags are in its
//! file below `commands`.

use crate::commands::{
    agent, agent_state, app, approvals, approve, attach, audit, checkpoints, code, complete_boxes,
    completions, config, cp, create, dashboard, demo, deny, destroy, doctor, download, drive,
    egress, events, fork, git, grants, host, init, inspect, install, integrations, limits, list,
    logs, man, mute, open, pause, prepare, prune, queue, quiet, quit, recover, screen, secrets,
    self_update, serve, services, shell, ssh_config, start, status, stop, top, unpause, url,
    validate, wait,
};
use crate::context::Context;
use crate::error::Outcome;
use crate::ui::ColorChoice;
use clap::{Parser, Subcommand};
use protocol::sessions::Agent;
use std::path::PathBuf;

/// Coding agents in boxes, with you at the door
///
/// A box is an isolated place for an agent to work in. It holds no credential: what needs one,
/// such as a push, becomes a question that you answer on the desktop or here.
#[derive(Debug, Parser)]
#[command(
    name = "agentbox",
    version,
    max_term_width = 100,
    after_help = "Examples:
  agentbox create -n fix-login    a box for the project in this folder
  agentbox claude -n fix-login    the same, with Claude Code at work in it
  agentbox shell fix-login        a shell in it
  agentbox approvals              what boxes ask of you
  agentbox demo                   see all of it in a minute"
)]
pub struct Cli {
    /// Where AgentBox keeps its state [env: AGENTBOX_HOME; default: ~/.agentbox]
    #[arg(long, global = true, value_name = "PATH")]
    pub home: Option<PathBuf>,

    /// When to use colour; auto also honours NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,

    /// A setting for this call alone, such as attach.openIn=tab; `agentbox config explain` says which
    /// can be given here
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", hide_short_help = true)]
    pub set: Vec<String>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Create(create::Args),
    Claude(agent::ClaudeArgs),
    Codex(agent::CodexArgs),
    Opencode(agent::OpencodeArgs),
    Fork(fork::Args),
    Attach(attach::Args),
    Agent(agent_state::Args),
    Queue(queue::Args),
    List(list::Args),
    Dashboard(dashboard::Args),
    Shell(shell::Args),
    Services(services::Args),
    Wait(wait::Args),
    Logs(logs::Args),
    Top(top::Args),
    Inspect(inspect::Args),
    Limits(limits::Args),
    Drive(drive::Args),
    Pause(pause::Args),
    Unpause(unpause::Args),
    Stop(stop::Args),
    Start(start::Args),
    Recover(recover::Args),
    Destroy(destroy::Args),
    Prune(prune::Args),
    Cp(cp::Args),
    Download(download::Args),
    #[command(name = "checkpoint")]
    Checkpoints(checkpoints::Args),
    Url(url::Args),
    Screen(screen::Args),
    Code(code::Args),
    Open(open::Args),
    SshConfig(ssh_config::Args),
    Git(git::Args),
    Approvals(approvals::Args),
    Approve(approve::Args),
    Deny(deny::Args),
    Grants(grants::Args),
    Mute(mute::Args),
    Quiet(quiet::Args),
    Audit(audit::Args),
    Events(events::Args),
    Secrets(secrets::Args),
    Egress(egress::Args),
    Integrations(integrations::Args),
    Config(config::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Init(init::Args),
    Validate(validate::Args),
    Prepare(prepare::Args),
    Demo(demo::Args),
    Serve(serve::Args),
    Host(host::Args),
    App(app::Args),
    Quit(quit::Args),
    Install(install::Args),
    SelfUpdate(self_update::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(name = "__complete-boxes", hide = true)]
    CompleteBoxes(complete_boxes::Args),
}

impl Command {
    pub fn run(self, ctx: &Context) -> Outcome {
        match self {
            Command::Create(args) => create::run(ctx, args),
            Command::Claude(args) => args.run(ctx, Agent::Claude),
            Command::Codex(args) => args.run(ctx, Agent::Codex),
            Command::Opencode(args) => args.run(ctx, Agent::Opencode),
            Command::Fork(args) => fork::run(ctx, args),
            Command::Attach(args) => attach::run(ctx, args),
            Command::Agent(args) => agent_state::run(ctx, args),
            Command::Queue(args) => queue::run(ctx, args),
            Command::List(args) => list::run(ctx, args),
            Command::Dashboard(args) => dashboard::run(ctx, args),
            Command::Shell(args) => shell::run(ctx, args),
            Command::Services(args) => services::run(ctx, args),
            Command::Wait(args) => wait::run(ctx, args),
            Command::Logs(args) => logs::run(ctx, args),
            Command::Top(args) => top::run(ctx, args),
            Command::Inspect(args) => inspect::run(ctx, args),
            Command::Limits(args) => limits::run(ctx, args),
            Command::Drive(args) => drive::run(ctx, args),
            Command::Pause(args) => pause::run(ctx, args),
            Command::Unpause(args) => unpause::run(ctx, args),
            Command::Stop(args) => stop::run(ctx, args),
            Command::Start(args) => start::run(ctx, args),
            Command::Recover(args) => recover::run(ctx, args),
            Command::Destroy(args) => destroy::run(ctx, args),
            Command::Prune(args) => prune::run(ctx, args),
            Command::Cp(args) => cp::run(ctx, args),
            Command::Download(args) => download::run(ctx, args),
            Command::Checkpoints(args) => checkpoints::run(ctx, args),
            Command::Url(args) => url::run(ctx, args),
            Command::Screen(args) => screen::run(ctx, args),
            Command::Code(args) => code::run(ctx, args),
            Command::Open(args) => open::run(ctx, args),
            Command::SshConfig(args) => ssh_config::run(ctx, args),
            Command::Git(args) => git::run(ctx, args),
            Command::Approvals(args) => approvals::run(ctx, args),
            Command::Approve(args) => approve::run(ctx, args),
            Command::Deny(args) => deny::run(ctx, args),
            Command::Grants(args) => grants::run(ctx, args),
            Command::Mute(args) => mute::run(ctx, args),
            Command::Quiet(args) => quiet::run(ctx, args),
            Command::Audit(args) => audit::run(ctx, args),
            Command::Events(args) => events::run(ctx, args),
            Command::Secrets(args) => secrets::run(ctx, args),
            Command::Egress(args) => egress::run(ctx, args),
            Command::Integrations(args) => integrations::run(ctx, args),
            Command::Config(args) => config::run(ctx, args),
            Command::Status(args) => status::run(ctx, args),
            Command::Doctor(args) => doctor::run(ctx, args),
            Command::Init(args) => init::run(ctx, args),
            Command::Validate(args) => validate::run(ctx, args),
            Command::Prepare(args) => prepare::run(ctx, args),
            Command::Demo(args) => demo::run(ctx, args),
            Command::Serve(args) => serve::run(ctx, args),
            Command::Host(args) => host::run(ctx, args),
            Command::App(args) => app::run(ctx, args),
            Command::Quit(args) => quit::run(ctx, args),
            Command::Install(args) => install::run(ctx, args),
            Command::SelfUpdate(args) => self_update::run(ctx, args),
            Command::Completions(args) => completions::run(ctx, args),
            Command::Man(args) => man::run(ctx, args),
            Command::CompleteBoxes(args) => complete_boxes::run(ctx, args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_flag_is_explained() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn whatever_prints_json_does_it_by_either_flag() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            for arg in command.get_arguments().filter(|arg| arg.get_long() == Some("json")) {
                assert_eq!(arg.get_short(), Some('j'), "{path}");
            }
            command.get_subcommands().for_each(|sub| check(sub, &path));
        }
        check(&Cli::command(), "");
    }

    /// Commands that show something and change nothing.
    #[test]
    fn every_command_that_only_looks_can_print_json() {
        const LOOKS: [&[&str]; 44] = [
            &["list"],
            &["status"],
            &["inspect"],
            &["limits"],
            &["top"],
            &["wait"],
            &["drive", "snapshot"],
            &["shell", "ls"],
            &["git", "remotes"],
            &["git", "branch"],
            &["git", "status"],
            &["git", "pr"],
            &["agent", "state"],
            &["agent", "approvals"],
            &["host", "status"],
            &["app", "status"],
            &["checkpoint", "ls"],
            &["approvals"],
            &["grants"],
            &["audit"],
            &["audit", "verify"],
            &["events"],
            &["secrets", "list"],
            &["egress", "status"],
            &["egress", "policy", "show"],
            &["egress", "policy", "lint"],
            &["egress", "check"],
            &["egress", "explain"],
            &["egress", "log"],
            &["egress", "suggest"],
            &["egress", "use"],
            &["egress", "ca"],
            &["egress", "repository"],
            &["integrations", "list"],
            &["integrations", "show"],
            &["config", "get"],
            &["config", "list"],
            &["config", "explain"],
            &["config", "path"],
            &["config", "list-projects"],
            &["ssh-config"],
            &["url"],
            &["doctor"],
            &["prepare"],
        ];
        for path in LOOKS {
            let root = Cli::command();
            let found = path.iter().try_fold(&root, |at, word| at.find_subcommand(word));
            let found = found.unwrap_or_else(|| panic!("no command {path:?}"));
            let json = |command: &clap::Command| {
                command.get_arguments().any(|arg| arg.get_long() == Some("json"))
            };
            assert!(json(found) || json(&root), "{path:?}");
        }
    }

    #[test]
    fn help_of_everything() {
        fn collect(command: &mut clap::Command, path: &str, into: &mut String) {
            let path = format!("{path} {}", command.get_name());
            into.push_str(&format!("==={path}\n{}\n", command.render_long_help()));
            for sub in command.get_subcommands_mut() {
                collect(sub, &path, into);
            }
        }
        let mut root = Cli::command().term_width(80);
        let mut text = String::new();
        collect(&mut root, "", &mut text);
        insta::assert_snapshot!(text);
    }
}
