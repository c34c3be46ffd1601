//! The real agents in a box, at work. What answers them is a stand-in for the company's interface that
//! runs in the box and says one sentence.

use crate::image::full;
use crate::world::{SOON, World};
use agentbox_e2e::wait::eventually_or;
use std::time::Duration;

pub const ANTHROPIC: &str = include_str!("../standins/anthropic.js");
pub const OPENAI: &str = include_str!("../standins/openai.js");
/// An agent's first start, on a busy machine.
pub const AT_LAST: Duration = Duration::from_secs(120);

pub fn serve(world: &World, name: &str, script: &str) {
    let mut command =
        world.agentbox_command(&["shell", name, "--", "sh", "-c", "cat > /tmp/api.js"]);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    world.box_ok(name, "tmux new-session -d -s api 'node /tmp/api.js'");
    // No agent is quicker than it.
    let listens = "exec 3<>/dev/tcp/127.0.0.1/9999";
    eventually_or(AT_LAST, "the stand-in", || {
        let output = world.in_box(name, &format!("bash -c '{listens}'"));
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}")) }
    });
}

fn states(world: &World) -> Vec<String> {
    let told = world.json(&["events"]);
    let events = told["events"].as_array().cloned().unwrap_or_default();
    let of_agents = events.iter().filter(|e| e["kind"] == "agent-state");
    of_agents.map(|e| e["payload"]["state"].as_str().unwrap_or("ended").to_owned()).collect()
}

/// The agent says the sentence, and the host hears that it worked and is done.
#[track_caller]
fn answers(world: &World, agent: &str) {
    eventually_or(AT_LAST, &format!("{agent} answering"), || {
        let shown = world.box_ok("ag", &format!("tmux capture-pane -pJ -t ={agent}:"));
        if shown.contains("All done here.") { Ok(()) } else { Err(shown) }
    });
    eventually_or(SOON, &format!("{agent} being done"), || {
        let view = world.json(&["list"])["boxes"][0]["agents"][0].clone();
        if view["agent"] == agent && view["state"] == "done" { Ok(()) } else { Err(view) }
    });
    let told = states(world);
    assert!(told.iter().any(|state| state == "working"), "{told:?}");
    world.ok(&[agent, "stop", "ag"]);
}

#[test]
fn claude_works_in_a_box_and_the_host_sees_it() {
    let mut world = full("");
    world.create("ag");
    serve(&world, "ag", ANTHROPIC);
    world.set("ANTHROPIC_API_KEY", "sk-ant-a-key-that-is-longer-than-twenty");
    world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9999");
    world.ok(&["claude", "start", "ag", "-d", "--", "say hi"]);
    answers(&world, "claude");
}

/// What Claude asks by one of its own tools is seen outside, until it is answered in its terminal.
#[test]
fn claude_asks_in_a_box_and_the_host_sees_it() {
    let mut world = full("");
    world.create("ag");
    serve(&world, "ag", ANTHROPIC);
    world.set("ANTHROPIC_API_KEY", "sk-ant-a-key-that-is-longer-than-twenty");
    world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9999");
    let asks = "use AskUserQuestion {\"questions\":[{\"question\":\"Which way?\",\"header\":\"Way\",\
        \"multiSelect\":false,\"options\":[{\"label\":\"Left\",\"description\":\"By the river\"},\
        {\"label\":\"Right\",\"description\":\"Over the hill\"}]}]}";
    world.ok(&["claude", "start", "ag", "-d", "--", asks]);
    comes_to(&world, "question");
    let shown = world.ok(&["agent", "get-plan-question", "ag"]);
    assert!(shown.contains("│ [Way] Which way?") && shown.contains("│   2. Right"), "{shown}");
    // The box draws the dialog after its hooks; a key before that would be lost.
    eventually_or(AT_LAST, "the dialog", || {
        let pane = world.box_ok("ag", "tmux capture-pane -pJ -t =claude:");
        if pane.contains("Enter to select") { Ok(()) } else { Err(pane) }
    });
    world.box_ok("ag", "tmux send-keys -t =claude: Enter");
    comes_to(&world, "done");
    assert_eq!(world.agentbox(&["agent", "get-plan-question", "ag"]).status.code(), Some(1));
    world.ok(&["claude", "stop", "ag"]);

    let plan = ["--permission-mode", "plan", "use ExitPlanMode {\"plan\":\"1. Look around\"}"];
    world.ok(&[&["claude", "start", "ag", "-d", "--"][..], &plan].concat());
    comes_to(&world, "end-plan");
    world.ok(&["claude", "stop", "ag"]);

    world.ok(&["claude", "start", "ag", "-d", "--", "refuse this"]);
    comes_to(&world, "error");
}

#[track_caller]
fn comes_to(world: &World, state: &str) {
    let wait = ["agent", "wait-for", state, "ag", "--timeout", "120s"];
    let output = world.agentbox(&wait);
    assert!(
        output.status.success(),
        "{output:?} {:?} {}",
        states(world),
        world.box_ok("ag", "tmux capture-pane -pJ -t =claude:")
    );
}

#[test]
fn codex_works_in_a_box_and_the_host_sees_it() {
    let mut world = full("");
    world.create("ag");
    serve(&world, "ag", OPENAI);
    world.box_ok(
        "ag",
        "printf '%s\\n' 'model_provider = \"t\"' '[model_providers.t]' 'name = \"t\"' \
         'base_url = \"http://127.0.0.1:9999/v1\"' 'wire_api = \"responses\"' \
         'env_key = \"OPENAI_API_KEY\"' | cat - ~/.codex/config.toml > /tmp/c && cp /tmp/c ~/.codex/config.toml",
    );
    world.set("OPENAI_API_KEY", "sk-x");
    world.ok(&["codex", "start", "ag", "-d", "--", "say hi"]);
    answers(&world, "codex");
}

#[test]
fn opencode_works_in_a_box_and_the_host_sees_it() {
    let mut world = full("");
    world.create("ag");
    serve(&world, "ag", ANTHROPIC);
    world.box_ok(
        "ag",
        "echo '{\"model\": \"anthropic/claude-sonnet-4-5\", \"provider\": {\"anthropic\": {\"options\": \
         {\"baseURL\": \"http://127.0.0.1:9999/v1\"}}}}' > ~/.config/opencode/opencode.json",
    );
    world.set("ANTHROPIC_API_KEY", "sk-x");
    world.ok(&["opencode", "start", "ag", "-d", "--", "--prompt", "say hi"]);
    answers(&world, "opencode");
}
