//! What agents ask the people who work with them: plans and questions. A box may tell anything of the
//! kind; it is shown as the box's word, it is soon forgotten, and no answer of it counts on the host.

use crate::world::{Running, SOON, World, text};
use agentbox_e2e::wait::eventually_or;
use serde_json::{Value, json};

/// A hook of an agent, run as the agent runs it.
#[track_caller]
fn hook(world: &World, name: &str, words: &str, input: &Value) {
    let mut command = world.agentbox_command(&[
        "shell",
        name,
        "--",
        "sh",
        "-c",
        &format!("agentbox-ctl agent-state {words}"),
    ]);
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ =
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.to_string().as_bytes());
    assert!(child.wait().unwrap().success(), "{words}");
}

fn plan(text: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "tool_name": "ExitPlanMode", "tool_input": { "plan": text } })
}

fn question(text: &str) -> Value {
    let options = [("Left", "By the river"), ("Right", "Over the hill")]
        .map(|(label, description)| json!({ "label": label, "description": description }));
    let question =
        json!({ "question": text, "header": "Way", "multiSelect": false, "options": options });
    json!({ "tool_name": "AskUserQuestion", "tool_input": { "questions": [question] } })
}

#[track_caller]
fn state(world: &World, name: &str) -> String {
    world.ok(&["agent", "state", name]).trim().to_owned()
}

fn code(world: &World, args: &[&str]) -> Option<i32> {
    world.agentbox(args).status.code()
}

#[test]
fn a_plan_and_a_question_are_waited_for_and_shown() {
    let world = World::headless();
    world.create("asks-plan");
    let wait = |state: &str| {
        let running =
            Running::start(world.agentbox_command(&["agent", "wait-for", state, "asks-plan"]));
        eventually_or(SOON, "the waiting", || {
            running.is_connected().then_some(()).ok_or("not yet")
        });
        running
    };
    let show = ["agent", "get-plan-question", "asks-plan"];
    let none = world.agentbox(&show);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("No agent in asks-plan has a plan or a question for you."));

    let (planned, needed) = (wait("end-plan"), wait("input-needed"));
    hook(&world, "asks-plan", "claude working --hook --clear-pending", &json!({}));
    hook(&world, "asks-plan", "claude end-plan --hook", &plan("# Mend-it\n\n1. Look-around\n"));
    assert_eq!(planned.end().code, Some(0));
    assert_eq!(needed.end().code, Some(0));
    // What runs beside the asking says in general that it works or waits.
    for words in ["claude working", "claude waiting", "claude compacting"] {
        hook(&world, "asks-plan", words, &json!({}));
        assert_eq!(state(&world, "asks-plan"), "claude end-plan", "{words}");
    }
    let shown = world.ok(&show);
    assert!(shown.contains("Claude in asks-plan has a plan for you"), "{shown}");
    assert!(shown.contains("  │ # Mend-it\n  │ \n  │ 1. Look-around\n"), "{shown}");
    let told = world.json(&show);
    assert_eq!(told["asks"][0]["state"], "end-plan");
    assert_eq!(told["asks"][0]["plan"], "# Mend-it\n\n1. Look-around\n");
    assert_eq!(
        code(&world, &["agent", "wait-for", "question", "asks-plan", "--timeout", "100"]),
        Some(1)
    );
    assert_eq!(code(&world, &["agent", "wait-for", "planning", "asks-plan"]), Some(2));

    // Once the tool has been used, it is over; other tools end nothing.
    let batch = |tool: &str| json!({ "tool_calls": [{ "tool_name": tool }] });
    hook(&world, "asks-plan", "claude working --clear-pending --after-asking", &batch("Bash"));
    assert_eq!(state(&world, "asks-plan"), "claude end-plan");
    hook(
        &world,
        "asks-plan",
        "claude working --clear-pending --after-asking",
        &batch("ExitPlanMode"),
    );
    assert_eq!(state(&world, "asks-plan"), "claude working");
    assert_eq!(code(&world, &show), Some(1));

    let asked = wait("question");
    hook(&world, "asks-plan", "claude question --hook", &question("Which-way?"));
    assert_eq!(asked.end().code, Some(0));
    let shown = world.ok(&show);
    let lines = "  │ [Way] Which-way?\n  │   1. Left\n  │      By the river\n  │   2. Right\n";
    assert!(
        shown.contains("Claude in asks-plan asks you something") && shown.contains(lines),
        "{shown}"
    );
    assert_eq!(world.json(&show)["asks"][0]["questions"][0]["options"][1]["label"], "Right");
    assert!(world.ok(&["list"]).contains("claude asks"));
    hook(&world, "asks-plan", "claude done", &json!({}));
    assert_eq!(code(&world, &show), Some(1));

    for (words, state_of, listed) in [
        ("claude compacting", "claude compacting", "claude compacts"),
        ("claude error", "claude error", "claude failed"),
        // A while after an error it says that it waits, which is no news.
        ("claude waiting --clear-pending", "claude error", "claude failed"),
        ("claude working", "claude working", "claude works"),
    ] {
        hook(&world, "asks-plan", words, &json!({}));
        assert_eq!(state(&world, "asks-plan"), state_of);
        let list = world.ok(&["list"]);
        assert!(list.contains(listed), "{list}");
    }
    assert!(world.ok(&["status", "asks-plan"]).contains("works"));

    // Another agent asks for itself, and a box that is stopped asks nothing.
    hook(&world, "asks-plan", "opencode question --hook", &question("And-now?"));
    assert_eq!(world.json(&show)["asks"][0]["agent"], "opencode");
    world.ok(&["stop", "asks-plan"]);
    assert_eq!(code(&world, &show), Some(1));
}

#[test]
fn what_was_asked_is_in_no_file_and_no_event() {
    let mut world = World::headless();
    world.create("asks-kept");
    hook(&world, "asks-kept", "claude end-plan --hook", &plan("a very particular plan"));
    hook(&world, "asks-kept", "codex question --hook", &question("a very particular question"));
    let asks =
        |world: &World| world.json(&["agent", "get-plan-question", "asks-kept"])["asks"].clone();
    assert_eq!(asks(&world)[0]["plan"], "a very particular plan");
    let events = world.ok(&["events", "--json"]);
    assert!(events.contains("end-plan") && !events.contains("very particular"), "{events}");
    world.kill_host();
    let found = world.command("grep").args(["-rl", "very particular"]).arg(world.home()).output();
    assert_eq!(text(&found.unwrap().stdout), "");
    // The next host knows that something is asked, and where it can be seen.
    world.start_serve();
    eventually_or(SOON, "the state", || match asks(&world) {
        asks if asks[0]["state"] == "end-plan" && asks[0]["plan"].is_null() => Ok(()),
        asks => Err(asks),
    });
    let shown = world.ok(&["agent", "get-plan-question", "asks-kept"]);
    assert!(shown.contains("in the agent's terminal only"), "{shown}");
}

#[test]
fn a_box_cannot_speak_as_the_host_by_a_plan_nor_fill_it() {
    let world = World::headless();
    world.create("asks-evil");
    let show = ["agent", "get-plan-question", "asks-evil"];
    let evil = "\u{1b}[2J\u{1b}[1;1H\u{1b}]0;x\u{7}■ good · shop\r\nhint: agentbox approve\u{202e}\u{85}\n\
        \n■ good · shop  now\n  Push\n\n    git push";
    hook(&world, "asks-evil", "claude end-plan --hook", &plan(evil));
    let shown = world.ok(&show);
    assert!(shown.contains("\\x1b[2J"), "{shown}");
    assert!(!shown.chars().any(|c| c != '\n' && c.is_control()) && !shown.contains('\u{202e}'));
    for line in shown.lines().skip(1) {
        assert!(line.starts_with("  │ "), "{line:?}");
    }
    let told = text(&world.agentbox(&[&show[..], &["--json"]].concat()).stdout);
    assert!(!told.chars().any(|c| c != '\n' && c.is_control()) && !told.contains('\u{202e}'));
    // It is no question of the host, and nothing about it can be answered.
    assert_eq!(world.questions(), Vec::<Value>::new());
    assert_eq!(code(&world, &["agent", "approve", "asks-evil", "--option", "once"]), Some(2));
    assert_eq!(
        code(&world, &["agent", "wait-for", "prompt", "asks-evil", "--timeout", "100"]),
        Some(1)
    );
    assert!(!world.in_box("asks-evil", "agentbox-ctl approve x").status.success());

    // As much of a long one as the host takes, and the word that there is more.
    hook(
        &world,
        "asks-evil",
        "claude end-plan --hook",
        &plan(&"long \u{1b} words\n".repeat(100_000)),
    );
    let told = world.json(&show);
    assert_eq!(told["asks"][0]["cut"], true);
    assert!(told["asks"][0]["plan"].as_str().unwrap().len() <= 64 * 1024);
    assert!(world.ok(&show).ends_with("There is more of it in the agent's terminal.\n"));
    // Too long to be read in the box: it asks, and nobody is told what.
    hook(&world, "asks-evil", "claude question --hook", &question(&"x".repeat(10_000_000)));
    assert_eq!(world.json(&show)["asks"][0]["questions"], json!([]));

    // Past every hook of ours.
    let post = |body: &str| {
        format!(
            "{body} | curl -s -o /dev/null -w '%{{http_code}}\\n' --unix-socket /run/agentbox/host/relay.sock \
             -H \"Authorization: Bearer $(cat /run/agentbox/token)\" -H 'Content-Type: application/json' --data-binary @- http://agentbox/events"
        )
    };
    let report = |inner: &str| {
        format!(
            "printf '{{\"type\":\"agent-state\",\"payload\":{{\"agent\":\"claude\",\"state\":\"question\",\"asks\":'; {inner}; printf '}}}}'"
        )
    };
    let huge = "printf '{\"plan\":\"'; head -c 10000000 /dev/zero | tr '\\0' x; printf '\"}'";
    let many = "printf '{\"questions\":['; yes '{\"question\":\"\"},' | head -n 3000 | tr -d '\\n'; printf '{\"question\":\"\"}]}'";
    let of = |inner: &str| world.box_ok("asks-evil", &post(&format!("{{ {}; }}", report(inner))));
    let code_of = of(huge);
    assert!(["413", "400", "000"].contains(&code_of.trim()), "{code_of}");
    assert_eq!(of(many).trim(), "202");
    assert_eq!(world.json(&show)["asks"][0]["questions"], json!([]), "more than anybody asks");

    let before = host_memory(&world);
    let flood = format!(
        "p=$(head -c 40000 /dev/zero | tr '\\0' x); i=0; while [ $i -lt 600 ]; do \
         agentbox-ctl event agent-state '{{\"agent\":\"claude\",\"state\":\"end-plan\",\"asks\":{{\"plan\":\"'$p'\"}}}}' 2>/dev/null; \
         agentbox-ctl agent-state claude working --clear-pending; i=$((i+1)); done; {}",
        "agentbox-ctl agent-state claude done"
    );
    world.in_box("asks-evil", &flood);
    let after = host_memory(&world);
    eprintln!("host: {} MB before the flood, {} MB after", before >> 20, after >> 20);
    assert!(after < before + 32 * 1024 * 1024, "{before} {after}");
    assert_eq!(world.json(&["list"])["boxes"][0]["name"], "asks-evil");
    eventually_or(SOON, "the host hearing it again", || {
        hook(&world, "asks-evil", "claude end-plan --hook", &plan("last"));
        match world.json(&show)["asks"][0]["plan"].clone() {
            last if last == "last" => Ok(()),
            other => Err(other),
        }
    });
}

fn host_memory(world: &World) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", world.host_pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_boxs_question_is_waited_for_and_answered_by_its_options() {
    let world = World::headless();
    world.create("asks-push");
    let approvals = |more: &[&str]| {
        let words = [&["agent", "approvals", "asks-push", "--wait", "--json"][..], more].concat();
        let output = world.agentbox(&words);
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (late, told) = approvals(&["--timeout", "100"]);
    assert_eq!((late, &told["questions"]), (Some(1), &json!([])));

    let ask = |subject: &str| {
        world.commit("asks-push", subject);
        let prompt =
            Running::start(world.agentbox_command(&["agent", "wait-for", "prompt", "asks-push"]));
        let push = world.push("asks-push");
        let (code, told) = approvals(&[]);
        assert_eq!(code, Some(0));
        assert_eq!(prompt.end().code, Some(0));
        let question = told["questions"][0].clone();
        (question["id"].as_str().unwrap().to_owned(), question, push)
    };
    let (id, question, push) = ask("one");
    let keys: Vec<_> =
        question["options"].as_array().unwrap().iter().map(|o| o["key"].clone()).collect();
    assert_eq!(keys, ["deny", "once", "box", "project", "everywhere"]);
    let digest = question["digest"].as_str().unwrap();
    let option = |option: &str, more: &[&str]| {
        code(&world, &[&["agent", "approve", &id, "--option", option], more].concat())
    };
    assert_eq!(option("6", &["--digest", digest]), Some(2));
    assert_eq!(option("once", &[]), Some(2), "nobody has read it");
    assert_eq!(option("once", &["--digest", digest, "--for", "1h"]), Some(2));
    assert_eq!(option("once", &["--digest", digest, "--deny"]), Some(2));
    assert_eq!(option("2", &["--digest", digest]), Some(0));
    assert_eq!(push.end().code, Some(0));
    assert_eq!(world.json(&["grants"])["grants"], json!([]));

    let (id, _, push) = ask("two");
    world.ok(&["agent", "approve", &id, "--cancel"]);
    assert_eq!(push.end().code, Some(10));
    assert_eq!(world.json(&["grants"])["grants"], json!([]));

    let (id, question, push) = ask("three");
    let digest = question["digest"].as_str().unwrap();
    let said = world.ok(&["agent", "approve", &id, "--option", "box", "--digest", digest]);
    assert!(said.contains("rule  Let asks-push"), "{said}");
    assert_eq!(push.end().code, Some(0));
    let grants = world.json(&["grants"])["grants"].clone();
    assert_eq!((grants.as_array().unwrap().len(), &grants[0]["reach"]), (1, &json!("box")));
}
