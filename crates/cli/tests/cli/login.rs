//! Logins without a terminal: what the box is asked, what a person and a script get to see of its answer.

use crate::support::{FakeHost, a_box};
use protocol::control::{Exited, Request};
use protocol::frame::Kind;
use serde_json::Value;
use std::sync::{Arc, Mutex};

const URL: &str = "https://claude.com/cai/oauth/authorize?code=true&state=VvQ-_x";

/// A box whose login says this and ends so; what it was given on its input.
fn saying(said: &'static str, exit_code: i32) -> (FakeHost, Arc<Mutex<String>>) {
    let given = Arc::new(Mutex::new(String::new()));
    let input = given.clone();
    let host = FakeHost::new(move |request, call| match request {
        Request::FindBox { .. } | Request::WillLogIn { .. } => call.result(&a_box("/p".as_ref())),
        Request::Exec(_) => {
            while let Some((Kind::Stdin, bytes)) = call.next().filter(|(_, b)| !b.is_empty()) {
                input.lock().unwrap().push_str(&String::from_utf8(bytes).unwrap());
            }
            call.send(Kind::Stdout, said.as_bytes());
            call.result(&Exited { exit_code });
        }
        other => panic!("{other:?}"),
    });
    (host, given)
}

fn methods(host: &FakeHost) -> Vec<String> {
    host.asked().iter().map(|r| r["method"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_address_is_printed_for_people_and_scripts() {
    let said = "If the browser didn't open, visit: \
                https://claude.com/cai/oauth/authorize?code=true&state=VvQ-_x\nPaste code here if prompted > ";
    let (host, _) = saying(said, 0);
    let printed = format!("{URL}\nAGENTBOX_LOGIN_URL={URL}\n");
    let line = ["claude", "login", "fix-login", "--headless", "--", "--console"];
    let ended = host.run(&line).exits(0).prints(&printed);
    ended.says("the box holds that login").says("agentbox claude login fix-login --code CODE");
    // It is noted before it begins.
    assert_eq!(methods(&host), ["findBox", "willLogIn", "exec"]);
    let argv = host.asked_once("exec")["argv"].clone();
    let words: Vec<&str> =
        argv.as_array().unwrap()[6..].iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(words, ["env", "DISPLAY=", "claude", "auth", "login", "--console"]);

    let (host, _) = saying(said, 0);
    let json = host.run(&["claude", "login", "fix-login", "--json"]).exits(0).json();
    assert_eq!(json["login"]["url"], URL);
    assert_eq!(
        (&json["login"]["state"], &json["login"]["knownHost"]),
        (&"waiting".into(), &true.into())
    );
}

#[test]
fn a_code_travels_as_input_alone() {
    for (words, typed) in [(&["--code", "good#x"][..], ""), (&["--code", "-"], "good#x\n")] {
        let (host, given) = saying("Login successful.\n", 10);
        let line = [&["claude", "login", "fix-login"], words].concat();
        let ended = crate::support::Ended::of({
            let mut child =
                host.home.command(&line).stdin(std::process::Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), typed.as_bytes()).unwrap();
            child
        });
        ended.exits(0).prints("Claude is logged in in fix-login\n");
        assert_eq!(*given.lock().unwrap(), "good#x\n");
        assert!(!host.asked().iter().any(|r| r.to_string().contains("good#x")));
        assert_eq!(methods(&host), ["findBox", "exec"]);
    }
}

#[test]
fn what_the_box_answers_decides_how_it_ends() {
    let code = ["claude", "login", "fix-login", "--code", "bad#x"];
    for (said, exit_code, told) in [
        (
            "\nLogin failed: Request failed with status code 400\n",
            11,
            "Login failed: Request failed",
        ),
        ("Invalid code. Please make sure the full code was copied.\n", 0, "Invalid code."),
        ("", 13, "no login of Claude waits in fix-login"),
        ("\u{1b}]0;x\u{7}odd", 1, "odd"),
    ] {
        let (host, _) = saying(said, exit_code);
        let ended = host.run(&code).exits(1).says(told);
        assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
    }
    let (host, _) = saying("Successfully logged in\n", 10);
    let json = host.run(&["codex", "login", "fix-login", "--wait", "--json"]).exits(0).json();
    assert_eq!(json["login"]["state"], "loggedIn");
}

#[test]
fn an_address_that_could_deceive_is_not_printed() {
    for said in [
        "https://claude.com@evil.example/\n",
        "http://claude.com/\n",
        "https://claude.com/\u{202e}moc\n",
        "nothing\n",
    ] {
        let (host, _) = saying(said, 0);
        let ended = host.run(&["claude", "login", "fix-login", "--headless"]).exits(1).prints("");
        assert!(!ended.stderr.contains('\u{202e}'), "{ended:?}");
    }
    let (host, _) = saying("https://claude.com.evil.example/\n", 0);
    let ended = host.run(&["claude", "login", "fix-login", "--headless"]).exits(0);
    ended.says("warning: claude.com.evil.example is no address Claude is known to log in at");
}

#[test]
fn a_login_that_makes_no_sense_asks_nobody() {
    let (host, _) = saying("", 0);
    for line in [
        &["codex", "login", "fix-login", "--code", "x"][..],
        &["opencode", "login", "fix-login", "--headless"],
        &["opencode", "login", "fix-login", "--headless", "--", "--provider", "openai"],
        &["claude", "login", "--headless", "--code", "x"],
        &["claude", "login", "--interactive", "--json"],
    ] {
        let _ = host.run(line).exits(2);
    }
    assert_eq!(host.asked(), Vec::<Value>::new());
}
