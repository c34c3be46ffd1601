//! What an agent tells its hooks on standard input.

use protocol::asks::Asks;
use serde::Deserialize;
use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;

/// With a long prompt in it.
const MOST_INPUT: u64 = 4 * 1024 * 1024;
/// A hook whose caller keeps its input open must not hold the agent up.
const PATIENCE: Duration = Duration::from_secs(1);
/// Tools by which Claude asks the person.
const ASKING: [&str; 2] = ["ExitPlanMode", "AskUserQuestion"];

pub fn input() -> Option<Vec<u8>> {
    let (send, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = Vec::new();
        let _ = std::io::stdin().take(MOST_INPUT).read_to_end(&mut input);
        let _ = send.send(input);
    });
    told.recv_timeout(PATIENCE).ok()
}

/// Before a tool is used: the plan or the questions it is used for.
pub fn asks(input: &[u8]) -> Option<Asks> {
    #[derive(Deserialize)]
    struct Hook {
        tool_input: Asks,
    }
    let hook: Hook = serde_json::from_slice(input).ok()?;
    Some(hook.tool_input)
}

/// After several tools were used: whether the agent asked by one of them.
pub fn was_asking(input: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Hook {
        tool_calls: Vec<Call>,
    }
    #[derive(Deserialize)]
    struct Call {
        tool_name: String,
    }
    let hook: Option<Hook> = serde_json::from_slice(input).ok();
    hook.is_some_and(|hook| {
        hook.tool_calls.iter().any(|call| ASKING.contains(&call.tool_name.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_and_questions_are_read_as_claude_tells_them() {
        let plan = br#"{"session_id":"x","hook_event_name":"PreToolUse","tool_name":"ExitPlanMode",
            "tool_input":{"plan":"1. Look","planFilePath":"/p.md"},"tool_use_id":"t"}"#;
        assert_eq!(asks(plan).unwrap().plan.as_deref(), Some("1. Look"));
        let question = br#"{"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":
            "Which?","header":"Way","multiSelect":true,"options":[{"label":"A","description":"a",
            "preview":"p"},{"label":"B","description":"b"}]}]}}"#;
        let asked = asks(question).unwrap().questions.remove(0);
        assert!(asked.multi_select && asked.options[1].label == "B" && asked.header == "Way");
        for none in [&b""[..], b"{", b"[]", br#"{"tool_input":{"questions":[1]}}"#] {
            assert_eq!(asks(none), None);
        }
    }

    #[test]
    fn the_end_of_asking_is_told_from_other_tools() {
        let of = |name: &str| {
            format!(
                r#"{{"tool_calls":[{{"tool_name":"Bash"}},{{"tool_name":"{name}","tool_response":[1]}}]}}"#
            )
        };
        assert!(was_asking(of("AskUserQuestion").as_bytes()));
        assert!(was_asking(of("ExitPlanMode").as_bytes()));
        assert!(!was_asking(of("Read").as_bytes()));
        assert!(!was_asking(b"{}"));
    }
}
