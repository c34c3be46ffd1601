//! One box, in sections: what it is, where it is reached, what it uses, who works in it.

use crate::size;
use crate::time::{ago, rough, seconds_since};
use crate::ui::Look;
use jiff::Timestamp;
use protocol::boxes::{BoxState, BoxView};
use protocol::looking::{BoxDetails, BoxLimits, BoxMount, BoxProcess};
use protocol::sessions::{SessionView, is_shell};
use protocol::text::visible;
use std::fmt::Write;

/// Lines of the process list; the rest is counted.
const LISTED: usize = 15;

type Rows = Vec<(String, String)>;

pub fn render(look: Look, of: &BoxDetails, inspect: bool, now: Timestamp) -> String {
    let mut text = rows(&about(look, of, now));
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            let _ = write!(text, "\n{}\n{body}", look.bold(title));
        }
    };
    section("ENDPOINTS", rows(&endpoints(&of.view)));
    section("RESOURCES", rows(&resources(look, of)));
    section("AGENTS", rows(&agents(of, now)));
    section("SHELLS", rows(&shells(of, now)));
    section("PORTS", rows(&ports(of)));
    if let Some(units) = &of.units {
        let _ = write!(text, "\n{}", crate::commands::services::units(look, units));
    }
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            let _ = write!(text, "\n{}\n{body}", look.bold(title));
        }
    };
    if inspect {
        section("PROCESSES", of.processes.as_deref().map(processes).unwrap_or_default());
        section("MOUNTS", of.mounts.iter().map(mount).collect());
        section("ORIGIN", rows(&origin(of)));
    }
    text
}

fn rows(rows: &Rows) -> String {
    rows.iter().fold(String::new(), |mut text, (label, value)| {
        let _ = writeln!(text, "{label:<11} {value}");
        text
    })
}

fn row(label: &str, value: impl Into<String>) -> (String, String) {
    (label.to_owned(), value.into())
}

fn about(look: Look, of: &BoxDetails, now: Timestamp) -> Rows {
    let view = &of.view;
    let named = view.display_name.as_deref().map(|n| format!(" ({})", visible(n)));
    let name = format!("{}{}", look.bold(view.name.as_str()), named.unwrap_or_default());
    let mut all = vec![
        row("box", format!("{name}, {} of {}", view.id, visible(&view.project))),
        row("state", state(of, now)),
    ];
    all.extend(view.branch.as_deref().map(|branch| row("branch", visible(branch))));
    all.extend(view.publish.as_deref().map(|branch| row("pushes to", visible(branch))));
    for nested in &view.nested_repos {
        let text = format!("{} in {}", visible(&nested.branch), visible(&nested.path));
        all.push(row("branch", text));
    }
    all.push(row("workspace", visible(&of.workspace)));
    if view.egress.is_controlled() {
        let mode = view.egress.as_str();
        all.push(row("egress", format!("{mode} (agentbox egress status {})", view.name)));
    }
    if view.questions > 0 {
        all.push(row("questions", format!("{} (agentbox approvals)", view.questions)));
    }
    all.extend(logins(view));
    all
}

/// The one kind of credential a box may hold.
fn logins(view: &BoxView) -> Option<(String, String)> {
    let names: Vec<&str> = view.logins.iter().map(|agent| agent.title()).collect();
    (!names.is_empty())
        .then(|| row("logins", format!("holds the login of {}", names.join(" and "))))
}

fn endpoints(view: &BoxView) -> Rows {
    let web = view.web.as_deref().map(|url| row("web app", visible(url)));
    let screen = view.screen.as_deref().map(|url| row("screen", visible(url)));
    web.into_iter().chain(screen).collect()
}

fn resources(look: Look, of: &BoxDetails) -> Rows {
    let mut all = Vec::new();
    if let Some(usage) = &of.usage {
        all.extend(usage.cpu_percent.map(|share| row("processor", format!("{share:.1} %"))));
        all.push(row("memory", size::known(usage.memory_bytes)));
        all.push(row("disk", size::known(usage.disk_bytes)));
    }
    if let Some(processes) = &of.processes {
        all.push(row("processes", count(of, processes.len())));
    }
    all.push(row("limits", limits(&of.limits)));
    let reached = of.usage.iter().flat_map(|usage| &usage.at_limit);
    let reached: Vec<&str> = reached.map(|limit| limit.as_str()).collect();
    if !reached.is_empty() {
        let hint = format!("  (agentbox stop {} ends what runs in it)", of.view.name);
        all.push(row("at limit", format!("{} {}{hint}", look.warn("⚠"), reached.join(", "))));
    }
    if of.out_of_memory && of.view.state == BoxState::Running {
        let what = "it had used up its memory, and something in it was ended";
        all.push(row("starved", format!("{} {what}", look.warn("⚠"))));
    }
    all
}

/// “41, with threads 64 of 64”: threads are what is limited.
fn count(of: &BoxDetails, listed: usize) -> String {
    let usage = of.usage.as_ref();
    match usage.map(|usage| (usage.pids, usage.pids_limit)) {
        Some((Some(all), Some(most))) => format!("{listed}, with threads {all} of {most}"),
        _ => listed.to_string(),
    }
}

pub fn limits(of: &BoxLimits) -> String {
    let all: Vec<String> = [
        of.memory_bytes.map(|n| format!("memory {}", size::bytes(n))),
        of.cpus.map(|n| format!("processors {n}")),
        of.pids.map(|n| format!("processes {n}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn agents(of: &BoxDetails, now: Timestamp) -> Rows {
    let line = |agent: &protocol::sessions::AgentView| {
        let login = if agent.has_login { ", with a login of its own" } else { "" };
        let time = rough(seconds_since(now, agent.since));
        row(agent.agent.as_str(), format!("{} ({time}){login}", agent.state.in_words()))
    };
    of.view.agents.iter().map(line).collect()
}

fn shells(of: &BoxDetails, now: Timestamp) -> Rows {
    let line = |session: &SessionView| {
        let seen = match session.attached {
            0 => "nobody looks".to_owned(),
            1 => "in a terminal".to_owned(),
            n => format!("in {n} terminals"),
        };
        row(&visible(&session.name), format!("{seen}, begun {}", ago(now, session.created_at)))
    };
    let all = of.sessions.iter().flatten();
    all.filter(|session| is_shell(&session.name)).map(line).collect()
}

fn ports(of: &BoxDetails) -> Rows {
    let at = |port: Option<u16>, label: &str| {
        port.map(|port| row(label, format!("127.0.0.1:{port} on this computer")))
    };
    let ends = of.endpoints;
    [at(ends.web, "80"), at(ends.vnc, "6080"), at(ends.ssh, "22")].into_iter().flatten().collect()
}

fn origin(of: &BoxDetails) -> Rows {
    let mut all = vec![
        row("image", visible(&of.view.image)),
        row("container", visible(&of.container)),
        row("channel", visible(&of.view.channel)),
        row("project", visible(&of.view.project_root)),
    ];
    all.extend(of.base.as_deref().map(|base| row("base", visible(base))));
    all
}

fn mount(of: &BoxMount) -> String {
    let from = if of.from.is_empty() { "memory".to_owned() } else { visible(&of.from) };
    let how = if of.writable { "writable" } else { "read-only" };
    format!("{} from {from}, {how}\n", visible(&of.to))
}

fn state(of: &BoxDetails, now: Timestamp) -> String {
    let word = of.view.state.as_str();
    let since = |at: Option<u64>| at.map(|at| rough(seconds_since(now, at)));
    match of.view.state {
        BoxState::Running if !of.ready => format!("{word}, but not ready"),
        BoxState::Running => match since(of.started_at) {
            Some(time) => format!("{word} for {time}"),
            None => word.to_owned(),
        },
        BoxState::Stopped => {
            let mut text = word.to_owned();
            if let Some(time) = since(of.ended_at) {
                let _ = write!(text, " {time} ago");
            }
            if let Some(down) = of.view.down {
                text.extend(down.why.in_words().map(|why| format!(", {why}")));
            } else if of.out_of_memory {
                text.push_str(", it had used up its memory");
            } else if let Some(code) = of.exit_code.filter(|code| *code != 0) {
                let _ = write!(text, " with exit code {code}");
            }
            text
        }
        _ => word.to_owned(),
    }
}

fn processes(all: &[BoxProcess]) -> String {
    let mut text = String::new();
    for process in all.iter().take(LISTED) {
        let (user, time) = (visible(&process.user), visible(&process.time));
        let _ = writeln!(text, "{user:<11} {time:>9}  {}", visible(&process.command));
    }
    if all.len() > LISTED {
        let _ = writeln!(text, "and {} more", all.len() - LISTED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use protocol::boxes::{Endpoints, NestedView};
    use protocol::sessions::{Agent, AgentState, AgentView};

    fn details(state: BoxState) -> BoxDetails {
        let running = state == BoxState::Running;
        let mut view = BoxView { state, ..samples::boxes().remove(0) };
        let at = view.created_at;
        if running {
            view.display_name = Some("The login".into());
            view.nested_repos =
                vec![NestedView { path: "api".into(), branch: "agentbox/fix-login--api".into() }];
            view.logins = vec![Agent::Claude];
            view.egress = protocol::egress::EgressMode::Balanced;
            let (agent, state) = (Agent::Claude, AgentState::Waiting);
            view.agents = vec![AgentView { agent, state, since: at, has_login: true }];
        }
        let one = |command: &str| BoxProcess {
            pid: "7".into(),
            user: "vscode".into(),
            time: "00:00:01".into(),
            command: command.into(),
        };
        let session = |name: &str, attached| SessionView {
            name: name.into(),
            agent: None,
            attached,
            created_at: at,
        };
        BoxDetails {
            view,
            ready: running,
            workspace: "/home/ada/shop-api".into(),
            base: Some("9f31c02".into()),
            container: "c0ffee".into(),
            started_at: Some(at),
            ended_at: Some(at),
            exit_code: Some(137),
            out_of_memory: false,
            limits: BoxLimits {
                memory_bytes: Some(2_000_000_000),
                cpus: Some(1.5),
                pids: Some(4096),
            },
            usage: None,
            processes: running.then(|| {
                std::iter::once(one("evil\x1b[2K")).chain((0..20).map(|_| one("sleep"))).collect()
            }),
            carried: vec![],
            units: Some(crate::commands::services::sample()),
            mounts: vec![BoxMount {
                from: "/home/ada/.agentbox/run/boxes/b0000000a".into(),
                to: "/run/agentbox/host".into(),
                writable: false,
            }],
            endpoints: if running {
                Endpoints { web: Some(49153), vnc: None, ssh: Some(49154) }
            } else {
                Endpoints::default()
            },
            sessions: running.then(|| vec![session("shell", 1), session("claude", 0)]),
        }
    }

    #[test]
    fn boxes_as_they_are() {
        let of = |state, inspect| render(Look::PLAIN, &details(state), inspect, samples::now());
        let texts = [
            of(BoxState::Running, true),
            of(BoxState::Stopped, false),
            of(BoxState::Missing, false),
        ];
        insta::assert_snapshot!(texts.join("\n---\n"));
    }
}
