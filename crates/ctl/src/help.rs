//! What `agentbox-ctl help` says.

use crate::error::{Error, Result};
use std::ffi::OsString;

pub const OVERVIEW: &str = "\
agentbox-ctl: the box's side of AgentBox.

Commands for people and agents:
  git push|fetch|pull|clone …   ask the host to do it with its credentials
  integration …                 services through the host: Notion, Linear, Trello, ClickUp
  gh|ntn|linear|trello|clickup  the same, as the commands people know
  cp toHost|fromHost …          files from this box to the host, or from there
  download workspace            the whole workspace to the host's project folder
  open <address>                offer a web page to the person
  checkpoint create …           keep this box as it is now
  status                        the tasks and services of agentbox.yaml
  logs <unit> [-f]              what one of them says
  start|stop|restart <service>  one service
  recreate <service> --yes      its container made anew, without its data
  run-task <task> [--wait]      run a task again
  reload                        read agentbox.yaml again
  wait-ready                    wait until tasks are done and services up
  validate [path]               check agentbox.yaml
  render <file>                 replace placeholders and texts in it, and make up secrets
  secret list|rotate|rm         those that are made up, by name
  egress policy|why|check       what may go out of a box without a network, and why not
  egress request <host> …       ask a person for more of it
  event <kind> [json]           tell whoever follows 'agentbox events' something
  rpc <method> [json]           one raw call to the host
  help [command]                this text, or more about one command
  --version                     print the version

Commands the host, PID 1 and agents run:
  init, begin, carry, go, daemon, bridge, egress, forward, front, ls, editor-tasks, seed,
  bundle, unbundle, clone-in, merge, resync, pack, unpack-into, hold, watch,
  session, drive, agent-state, agent-config, conversation, container-unit, keep-paste

In a box, plain 'git push', 'git fetch' and 'git pull' do the same as 'agentbox-ctl git', and 'gh',
'ntn', 'notion', 'linear', 'trello' and 'clickup' are commands of their own.
";

const COMMANDS: &[(&str, &str)] = &[
    (
        "git",
        "\
agentbox-ctl git [--remote <name>] push|fetch|pull [flags]
agentbox-ctl git clone [--branch <name>] [--depth <n>] <address> [folder]

The host runs the command with its own credentials; a push or a clone may ask a person first. The
branch that is pushed is the host's choice: the one the box was made with. Arguments that say the
same, such as 'origin HEAD', are taken; others are refused. Other git commands run the box's own
git.

  push    --force-with-lease --tags --dry-run --set-upstream
  push    --host-only [--as <branch>] [--force]
          makes the branch available in the host's own repository; nothing is published
  fetch   --prune --prune-tags --tags --no-tags --force --dry-run
  pull    --ff-only --prune --tags --no-tags
  all     --quiet --verbose --progress --no-progress
  clone   https://host/owner/repo, git@host:owner/repo, ssh://git@host/owner/repo, owner/repo

Exit codes: the command's own; 2 refused in the box, 10 denied, 64 and 65 refused by the host,
124 took too long, 126 the host cannot be reached.
",
    ),
    (
        "integration",
        "\
agentbox-ctl integration
agentbox-ctl integration <service>
agentbox-ctl integration [--stdin] <service> <operation> [--] [arguments]

Lists the services and what can be asked of them, or asks. The host calls the service with its own
credentials; an operation that changes something asks a person first. With --stdin the text on
standard input goes along, for operations that take one.

A service is off until the person enables it on the host: 'agentbox integrations enable <service>'.

Exit codes: the command's own; 4 no login on the host, 10 denied, 64 and 65 refused by the host,
124 took too long, 126 the host cannot be reached, 127 a program is missing on the host.
",
    ),
    (
        "cp",
        "\
agentbox-ctl cp toHost [--exclude <pattern>]… [--no-default-excludes] <source…> <dest>
agentbox-ctl cp fromHost [--exclude <pattern>]… [--no-default-excludes] <source…> <dest>

Copies files and folders out of this box or into it. The person is shown every file first. On the
host '~/…' is the person's home and a relative path starts in the project folder. Into a folder
when the destination is one or ends with '/', else under that name.

Left out of folders by default: .git node_modules bin obj packages dist .next target

Exit codes: 10 denied or changed meanwhile, 64 and 65 refused by the host, 124 took too long, 126
the host cannot be reached, 1 anything else.
",
    ),
    (
        "download",
        "\
agentbox-ctl download workspace [--exclude <pattern>]… [--no-default-excludes]

Brings what differs in /workspace to the host's project folder, without what git ignores. Nothing is
deleted there. The person is asked every time; 'git push' is the safer way for commits.
",
    ),
    (
        "open",
        "\
agentbox-ctl open <address>

Offers a web page to the person, who may open it in the host's browser within 25 seconds. Ends at
once and well, whatever they do; 64 when it is no http or https address. 'xdg-open' does the same.
",
    ),
    (
        "checkpoint",
        "\
agentbox-ctl checkpoint create [--name <name>] [--set-default] [--replace]

Keeps this box as it is now, as an image new boxes can start from. The box freezes meanwhile. At
most four an hour.
",
    ),
    (
        "event",
        "\
agentbox-ctl event <kind> [json]

Tells the host something: a kind of a-z, 0-9, - and . and any JSON up to 64 KiB. 'agentbox events'
shows it there. Nobody is asked and nothing is done.
",
    ),
    (
        "rpc",
        "\
agentbox-ctl rpc <method> [json]

Posts {method, params} to the host, prints what the command said there and ends with its exit code.
",
    ),
    (
        "status",
        "\
agentbox-ctl status [--json]

The tasks and services of /workspace/agentbox.yaml: how they are, what they wait for, who listens on
which port. The supervisor that runs them is started by PID 1 and logs to
/var/log/agentbox/ctl-daemon.log
",
    ),
    (
        "logs",
        "\
agentbox-ctl logs <unit> [-n|--tail <count>] [-f|--follow] [--json]

What a task or service said, the newest 200 lines: '<time> O|E <line>'. Lines of the supervisor
begin with '[ctl] '. With --follow it goes on.
",
    ),
    (
        "start",
        "\
agentbox-ctl start <service> [--now] [--json]

Starts a service and services it needs that do not start by themselves. It waits for what it needs,
unless --now is given.
",
    ),
    (
        "stop",
        "\
agentbox-ctl stop <service> [--json]

Asks the service and all it started to end, and insists after its stop_grace_ms. It stays stopped
until 'start', or the next start of the box.
",
    ),
    (
        "restart",
        "\
agentbox-ctl restart <service> [--json]

Stops and starts a service. Its pauses between attempts begin anew.
",
    ),
    (
        "recreate",
        "\
agentbox-ctl recreate <service> --yes

Removes the container of a service with an image and makes it anew from what agentbox.yaml says now.
What is in it is lost. Until then a container is kept as it was made, and 'status --json' says 'drift'.
",
    ),
    (
        "reload",
        "\
agentbox-ctl reload [--json]

Reads agentbox.yaml again. What changed is stopped and started as it is now, the rest goes on. Exit
code 2 and no change at all when the file has mistakes.
",
    ),
    (
        "run-task",
        "\
agentbox-ctl run-task <task> [--force] [--wait] [--json]

Runs a task again. One that is done is left alone unless --force is given, which also runs it
although run_once says it need not. With --wait what it says is shown, and its exit code is this
command's: 124 when it took longer than its timeout_ms, 1 when it was skipped.
",
    ),
    (
        "wait-ready",
        "\
agentbox-ctl wait-ready [--timeout <ms>] [--units <name>…] [--no-fail-fast] [--json]

Waits until tasks are done and services up: all that start by themselves, or those that are named.
Exit code 1 after 60000 ms or another time, and at once when one of them has failed unless
--no-fail-fast is given; 2 when there is no such unit or agentbox.yaml has mistakes.
",
    ),
    (
        "render",
        "\
agentbox-ctl render <file> [--out <path> | --in-place] [--env] [--rules <set>,…]
                    [--rule '<from>=><to>'] [--rule-regex '<pattern>=><to>']

Prints the file, or writes it whole, with its texts replaced: first {{AGENTBOX_BOX_NAME}} and the like
when --env is given, then the sets of 'replacements' in agentbox.yaml, then the rules as they stand on
the command line. At last {{AGENTBOX_AUTO_SECRET}} becomes a new secret, and
{{AGENTBOX_AUTO_SECRET:<name>}} one that is made once in this box and then stays the same.

  --config <path>     instead of /workspace/agentbox.yaml
  --state-dir <path>  where secrets with a name are kept

A file that would not change is not written. Exit codes: 1 it cannot be done, 2 wrong arguments.
",
    ),
    (
        "secret",
        "\
agentbox-ctl secret list [--json]
agentbox-ctl secret rotate <name>
agentbox-ctl secret rm <name>

The secrets of this box that 'render' made for {{AGENTBOX_AUTO_SECRET:<name>}}. Values are never shown.
A secret that is rotated has a new value at once, one that is removed is made anew when it is next asked
for; files keep the old one until they are rendered again.

  --state-dir <path>  where they are kept

Exit codes: 1 there is no such secret, 2 wrong arguments.
",
    ),
    (
        "validate",
        "\
agentbox-ctl validate [path] [--strict] [--json]

Checks agentbox.yaml, or another file. Exit code 2 when it has mistakes or is not there, and with
--strict when there are warnings.
",
    ),
    (
        "init",
        "\
agentbox-ctl init

PID 1 of a box: gives the box user its ids, waits for 'go', watches branches, reaps processes and
stops the box in order.
",
    ),
    (
        "begin",
        "\
agentbox-ctl begin [--hold] < plan, tar

Run by the host as root once: 'seed' and then 'go' in one. With --hold PID 1 waits on for files that are
to be carried.
",
    ),
    (
        "carry",
        "\
agentbox-ctl carry < files

Run by the host as root once: lays out files of the person's computer, with their modes and owners.
",
    ),
    (
        "go",
        "\
agentbox-ctl go < {\"token\": …}

Run by the host as root at every start: stores the box's token and what its daemons need, and
releases PID 1.
",
    ),
    (
        "daemon",
        "\
agentbox-ctl daemon [--socket <path>] [--config <path>] [--log-dir <path>] [--state-dir <path>]
                    [--workspace <path>]
agentbox-ctl daemon dockerd|xvnc|sshd|supervisor

The supervisor of the project's tasks and services, once per socket. With a name, run by PID 1: makes
the way free for one of the box's daemons and becomes it.
",
    ),
    (
        "forward",
        "\
agentbox-ctl forward <port>

Run by the host. Connects to a port on this box's loopback and carries that connection on standard
input and output.
",
    ),
    (
        "egress",
        "\
agentbox-ctl egress policy
agentbox-ctl egress why [<event>|--last]
agentbox-ctl egress check <address> [-X <method>]
agentbox-ctl egress request <host> [--method <method>] [--path <path>] --reason <text>
agentbox-ctl egress serve|selftest|trust

The way out of a box that has no network of its own: everything passes the host, where a policy decides.
policy says what is allowed, why says why a request was stopped, check says what would become of one, and
request asks a person for more; it waits for the answer.

Exit codes of check: 0 allowed, 3 denied, 4 a person would be asked. Of request: 0 granted, 3 not.
Of all: 64 wrong words, 126 the host cannot be reached.

serve, run by PID 1, is the proxy at 127.0.0.1:3128, which carries every connection to the host. selftest
and trust are run by the host as root: one tries ways out that must not be there, the other has the
system trust the certificates of the host's own authority.
",
    ),
    (
        "front",
        "\
agentbox-ctl front <box>

Run by PID 1: the box's own addresses, <box>.localhost and <port>-<box>.localhost, on the port the host
has them on.
",
    ),
    (
        "editor-tasks",
        "\
agentbox-ctl editor-tasks [--regenerate]

Run by the host: writes .vscode/tasks.json with a terminal for the log of each service. A file somebody
else wrote is kept, unless --regenerate is given.
",
    ),
    (
        "bridge",
        "\
agentbox-ctl bridge [relay|egress]

Run by the host as root where its sockets cannot be mounted: serves one in the box and carries each
connection over standard input and output.
",
    ),
    (
        "seed",
        "\
agentbox-ctl seed < plan, tar

Run by the host once: lays out the workspace as it is on the host.
",
    ),
    (
        "bundle",
        "\
agentbox-ctl bundle <branch>|--tags [have…]

Run by the host: writes where the branch or the tags are and a bundle of what the host does not
have.
",
    ),
    (
        "unbundle",
        "\
agentbox-ctl unbundle < refs, bundle

Run by the host: takes in fetched commits and sets remote-tracking refs.
",
    ),
    (
        "clone-in",
        "\
agentbox-ctl clone-in < plan, bundle

Run by the host: makes a repository of what it cloned.
",
    ),
    (
        "merge",
        "\
agentbox-ctl merge [--remote <name>] [--ff-only] [--quiet]

Run by the host after a fetch: merges the upstream of the branch that is checked out, else the
remote's default branch.
",
    ),
    (
        "ls",
        "\
agentbox-ctl ls -- <folder>

Run by the host: what is in a folder, a line of JSON for each entry.
",
    ),
    (
        "pack",
        "\
agentbox-ctl pack < what

Run by the host: writes files of the box as a tar stream.
",
    ),
    (
        "unpack-into",
        "\
agentbox-ctl unpack-into [--several] <dest> < tar

Run by the host: lays out files it sent. Several things go into a folder only.
",
    ),
    (
        "keep-paste",
        "\
agentbox-ctl keep-paste <name> < image

Run by the host: keeps an image that was pasted, and the newest twenty of them.
",
    ),
    (
        "hold",
        "\
agentbox-ctl hold < what

Run by the host as root while the box is captured: keys, logins and .env files are out of the way until
its input ends.
",
    ),
    (
        "watch",
        "\
agentbox-ctl watch

Run by PID 1: tells the host when a branch of the workspace's repository moves.
",
    ),
    (
        "resync",
        "\
agentbox-ctl resync < plan

Run by the host: takes over what is new there. Where both sides changed the same, the box's stays.
",
    ),
    (
        "session",
        "\
agentbox-ctl session list|start|kill <name>|before|…

Run by the host: agents and shells that go on when nobody looks.
",
    ),
    (
        "drive",
        "\
agentbox-ctl drive < what

Run by the host: reads the terminal of a session, or types into it.
",
    ),
    (
        "agent-state",
        "\
agentbox-ctl agent-state claude|codex|opencode STATE [--hook] [--clear-pending] [--after-asking]

Run by an agent's hooks: tells the host what the agent does. It is shown there, and jobs wait for it.
STATE is ready, working, waiting, done, end-plan, question, compacting or error.

  --hook           Standard input is what the agent tells its hooks: the conversation, and with
                   end-plan and question the plan or the questions.
  --clear-pending  The plan or the question told before is open no longer. Without it, working,
                   waiting and compacting change nothing as long as one is.
  --after-asking   Tell it only when the tools of which standard input tells are those by which the
                   agent asks.
",
    ),
    (
        "agent-config",
        "\
agentbox-ctl agent-config claude|codex|opencode

Run by the host: merges what it has brought of the person's settings with the box's own.
",
    ),
    (
        "conversation",
        "\
agentbox-ctl conversation

Run by the host: puts a conversation it has brought where its agent looks for it.
",
    ),
    (
        "container-unit",
        "\
agentbox-ctl container-unit < what

Run by the supervisor for a service with an image: runs its container and ends as that does.
",
    ),
];

/// Whether there is more to say about a command.
pub fn knows(command: &OsString) -> bool {
    COMMANDS.iter().any(|(name, _)| command == name)
}

pub fn run(args: &[OsString]) -> Result<i32> {
    let Some(topic) = args.first() else {
        crate::say(OVERVIEW);
        return Ok(protocol::exit::OK);
    };
    let found = COMMANDS.iter().find(|(name, _)| topic == name);
    let (_, text) = found.ok_or_else(|| {
        let shown = protocol::text::visible(&topic.to_string_lossy());
        Error::Usage(format!("no command '{shown}'. Run 'agentbox-ctl help' for the list."))
    })?;
    crate::say(text);
    Ok(protocol::exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_the_list_and_has_a_text() {
        let main = include_str!("main.rs");
        let (_, list) = main.split_once("match command.to_str().unwrap_or_default() {").unwrap();
        let (list, _) = list.split_once("\"help\" |").unwrap();
        let arms = list.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
        let mut names: Vec<&str> = arms.collect();
        assert!(names.len() > 30, "{names:?}");
        names.extend(crate::supervisor::client::COMMANDS);
        let words: Vec<&str> = OVERVIEW.split([' ', ',', '|', '\n']).collect();
        for name in names {
            assert!(words.contains(&name), "{name} is not in the list");
            assert!(knows(&name.into()), "there is no text about {name}");
        }
    }
}
